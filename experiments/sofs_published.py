"""SOFS beside OFS as classifiers of their own features, and as selectors, on sparse and on dense data.

    python experiments/sofs_published.py [--data FOLDER] [--rows 4000] [--seeds 3]

As in the paper, a classifier of B features predicts each row before it learns it; here in batches of 20. Accuracy is
the mean over shuffles, with the standard error. "random" is OFS on a random subset of B features.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis import OFS, SOFS

ROOT = Path(__file__).resolve().parents[1]
SETS = ("pcmac", "news20", "dexter", "dorothea", "spam_corpus", "a8a", "spambase", "splice", "madelon")


def read(folder: Path, n_rows: int, seed: int) -> tuple[sp.csr_matrix | np.ndarray, np.ndarray]:
    """Return the first rows of a shuffled set; columns are divided by their largest absolute value."""
    with np.load(folder / "data.npz", allow_pickle=False) as arrays:
        y = arrays["y"].astype(np.int64)
        X = sp.load_npz(folder / "data.npz") if "indptr" in arrays else sp.csr_matrix(arrays["X"])
    order = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    X = X.astype(np.float64)[order]
    largest = np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-12)
    X = X.multiply(1 / largest).tocsr()
    return (X if X.nnz < 0.25 * np.prod(X.shape) else X.toarray()), y[order]


def accuracy(selector: OFS | SOFS, X: sp.csr_matrix | np.ndarray, y: np.ndarray) -> float:
    right = 0
    selector.partial_fit(X[:20], y[:20])
    for start in range(20, len(y), 20):
        part = slice(start, start + 20)
        right += int(np.count_nonzero(selector.predict(X[part]) == y[part]))
        selector.partial_fit(X[part], y[part])
    return right / (len(y) - 20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS)
    arguments = parser.parse_args()
    print(
        "| set | rows x features | share | SOFS | OFS | random | seconds SOFS, OFS |\n|---|---|---|---|---|---|---|"
    )
    for name in arguments.sets:
        for share in (0.01, 0.1):
            found: dict[str, list[float]] = {"sofs": [], "ofs": [], "random": []}
            seconds = {"sofs": 0.0, "ofs": 0.0, "random": 0.0}
            for seed in range(arguments.seeds):
                X, y = read(arguments.data / name, arguments.rows, seed)
                n_kept = max(1, round(share * X.shape[1]))
                subset = np.random.default_rng(seed).choice(X.shape[1], n_kept, replace=False)
                runs = {
                    "sofs": (SOFS(n_kept), X),
                    "ofs": (OFS(n_kept), X),
                    "random": (OFS(1.0), X[:, np.sort(subset)]),
                }
                for kind, (selector, rows) in runs.items():
                    start = time.process_time()
                    found[kind].append(accuracy(selector, rows, y))
                    seconds[kind] += time.process_time() - start
            size = f"{X.shape[0]} x {X.shape[1]}"
            cells = [f"{np.mean(v):.3f} ± {np.std(v, ddof=1) / len(v) ** 0.5:.3f}" for v in found.values()]
            times = f"{seconds['sofs']:.1f}, {seconds['ofs']:.1f}"
            print(f"| {name} | {size} | {share} | {' | '.join(cells)} | {times} |", flush=True)


if __name__ == "__main__":
    main()
