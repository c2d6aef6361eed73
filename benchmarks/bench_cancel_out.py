"""CancelOut online beside what the public versions do: a new network for each batch, trained for 50 epochs on it alone.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_cancel_out.py

Both in one process, on the same batches of 100 rows: milliseconds per batch, and the share of relevant columns among as
many selected, after each batch from the tenth on. No public version can be installed any more: float-evaluation took
its own out in 2022.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import CancelOut


def batches(n_features: int, n_batches: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], set[int]]:
    rng = np.random.default_rng(0)
    relevant = rng.choice(n_features, 5, replace=False)
    X = rng.normal(size=(100 * n_batches, n_features))
    y = (X[:, relevant].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    return [(X[i : i + 100], y[i : i + 100]) for i in range(0, len(X), 100)], set(relevant.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[57, 500, 5000])
    parser.add_argument("--batches", type=int, default=30)
    args = parser.parse_args()
    print(f"{'features':>8} {'online, ms':>11} {'found':>6} {'again, ms':>10} {'found':>6}")
    for n_features in args.features:
        data, relevant = batches(n_features, args.batches)
        online, anew = CancelOut(5), CancelOut(5, n_steps=50)
        times: tuple[list[float], list[float]] = ([], [])
        found: tuple[list[float], list[float]] = ([], [])
        for t, (X, y) in enumerate(data):
            for selector, learn, i in ((online, online.partial_fit, 0), (anew, anew.fit, 1)):
                start = time.perf_counter()
                learn(X, y)
                times[i].append(time.perf_counter() - start)
                if t >= 9:
                    found[i].append(len(relevant & set(selector.get_support(indices=True).tolist())) / 5)
        cells = [(1e3 * statistics.median(times[i]), float(np.mean(found[i]))) for i in (0, 1)]
        print(
            f"{n_features:8d} {cells[0][0]:11.2f} {cells[0][1]:6.2f} {cells[1][0]:10.2f} {cells[1][1]:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
