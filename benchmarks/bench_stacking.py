"""Stacked trees of pairs beside as many trees of River: rows per second, each row first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_stacking.py

River has no restricted trees, so its side is a loop over one Hoeffding tree for each pair of features, without what
combines them. Normal features, two classes by a linear rule of five of them. All run in one process, in turn, on the
same rows, a new model each time; medians over the rounds.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
from bench_hoeffding import Run, data, in_batches, speeds  # sets the number of threads first

from tamis import StreamingStacking


def of_river(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river import tree
    except ImportError:
        return None
    rows, labels = X.tolist(), y.tolist()
    pairs = list(combinations(range(X.shape[1]), 2))

    def run() -> None:
        trees = [tree.HoeffdingTreeClassifier() for _ in pairs]
        for row, label in zip(rows, labels, strict=True):
            for model, (i, j) in zip(trees, pairs, strict=True):
                part = {i: row[i], j: row[j]}
                model.predict_proba_one(part)
                model.learn_one(part, label)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'features':>8} {'':>24} {'rows / s':>10} {'to River':>9}")
    for n_features in options.features:
        n = 200_000 // n_features**2
        X, y = data(10 * n, n_features)
        runs: dict[str, tuple[Run | None, int]] = {"River": (of_river(X[:n], y[:n]), n)}
        for size in (1, 100, 1000):
            part = n if size == 1 else 10 * n
            runs[f"batches of {size}"] = (
                in_batches(StreamingStacking, X[:part], y[:part], min(size, part)),
                part,
            )
        found = speeds(runs, options.rounds)
        river = found.get("River", float("nan"))
        for name, rate in found.items():
            print(f"{n_features:>8} {name:>24} {rate:>10,.0f} {rate / river:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
