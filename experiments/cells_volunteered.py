"""Does a value that was not asked for do harm? The log loss after one such value, beside that of the class shares.

    python experiments/cells_volunteered.py [--sets spambase splice ...] [--methods ETANA ...] [--out volunteered.csv]
    python experiments/cells_volunteered.py --summary [--out volunteered.csv]

Every set of 1,000 rows or more, 1,200 of them learned from and up to 800 held out, drawn once, the same for all
methods; all settings are the defaults. For each column that a method may ask for, the value of that column is given for
every held-out row, before anything else is known. A column violates the goal if its log loss is above that of the class
shares by more than two standard errors of the paired differences. With no relation at all, that happens by chance for
one column in 44. The file is written after each set and method, and what it contains is not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("TAMIS_SHARED", ROOT.parent / "shared"))
SETS = (
    "german", "splice", "svmguide3", "magic04", "spambase", "electricity", "usenet2", "a8a", "mnist", "coil20",
    "isolet", "usenet", "dota2", "madelon", "url_day0_part", "pcmac", "spam_corpus", "imdb", "news20", "dorothea",
)  # fmt: skip
METHODS = {
    "IFC2F": lambda: IFC2F(random_state=0),
    "ETANA": lambda: ETANA(random_state=0),
    "FETANA": lambda: FETANA(random_state=0),
    "AdaptiveIFC2F": lambda: AdaptiveIFC2F(random_state=0),
    "FixedSubset": lambda: FixedSubset(random_state=0),
    "AACO": lambda: AACO(random_state=0),
    "AdaptiveIFC2F ensemble": lambda: AdaptiveIFC2F(decision="ensemble", random_state=0),
    "ETANA published": lambda: ETANA.published(method="points", random_state=0, prior="empirical"),
}
LEARNED, HELD = 1200, 800


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = SHARED / "data" / name / "data.npz"
    with np.load(path, allow_pickle=False) as arrays:
        y = arrays["y"].astype(np.int64)
        X = sp.csr_array(sp.load_npz(path)) if "indptr" in arrays else arrays["X"]
    rows = np.random.default_rng(0).permutation(len(y))[: LEARNED + HELD]
    X = X[rows].astype(np.float64)
    return X, np.unique(y[rows], return_inverse=True)[1]


def excess(model: object, X: np.ndarray, y: np.ndarray) -> list[tuple[str, float, float, float]]:
    """Return each candidate, the log loss of the class shares, the excess after its value, and its standard error."""
    values, codes = model._cells(X, np.arange(X.shape[0]))
    prior = -np.log(np.maximum(model.prior_, 1e-12))[y]
    found = []
    for position in range(len(model.candidates_)):
        state = model._start(X.shape[0])
        known = codes[:, position] >= 0
        state.volunteered[:] = known
        model._observe(state, np.full(len(y), position), codes[:, position], values[:, position])
        loss = -np.log(np.maximum(state.posterior[np.arange(len(y)), y], 1e-12))
        gap = (loss - prior)[known]
        if len(gap) > 1:
            error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
            found.append((str(model.name_of(position)), float(prior.mean()), float(gap.mean()), error))
    return found


def summary(path: Path) -> None:
    cases: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            case = cases.setdefault((row["set"], row["method"]), [])
            case.append((float(row["excess"]), float(row["error"])))
    print("| set | method | columns | violations | mean excess | largest |\n|---|---|---|---|---|---|")
    total, columns = 0, 0
    for (name, method), found in cases.items():
        gap, error = np.array(found).T
        violations = int(np.sum(gap > 2 * error + 1e-12))
        total, columns = total + violations, columns + len(gap)
        print(f"| {name} | {method} | {len(gap)} | {violations} | {gap.mean():+.4f} | {gap.max():+.4f} |")
    print(f"\n{total} violations of {columns} columns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("volunteered.csv"))
    options = parser.parse_args()
    done = set()
    if options.out.exists():
        with options.out.open(encoding="utf-8") as file:
            done = {(row["set"], row["method"]) for row in csv.DictReader(file)}
    for name in () if options.summary else options.sets:
        X, y = load(name)
        n = len(y) * LEARNED // (LEARNED + HELD)
        for method in options.methods:
            if (name, method) in done:
                continue
            start = time.process_time()
            model = METHODS[method]().fit(X[:n], y[:n])
            seconds = time.process_time() - start
            found = excess(model, X[n:], y[n:])
            bad = [column for column, _, gap, error in found if gap > 2 * error + 1e-12]
            print(f"{name} {method}: {len(bad)} of {len(found)} {bad[:8]}, fit {seconds:.1f} s", flush=True)
            new = not options.out.exists()
            with options.out.open("a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                if new:
                    writer.writerow(["set", "method", "column", "prior", "excess", "error"])
                writer.writerows((name, method, *row) for row in found)
    summary(options.out)


if __name__ == "__main__":
    main()
