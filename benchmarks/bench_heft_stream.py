"""HEFT-Stream beside River's online bagging of Hoeffding trees: rows per second, first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_heft_stream.py

River has no ensemble that selects features, nor one of several kinds; its `BaggingClassifier` of ten trees counts rows
by Poisson(1) as HEFT-Stream does. Normal features, two classes by a linear rule of five of them. All run in one
process, in turn, on the same rows, begun anew each time; medians over the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_hoeffding import Run, data, in_batches, speeds  # sets the number of threads first

from tamis import AdaptiveRandomForest, HEFTStream

OURS: dict[str, Callable[[], Any]] = {
    "HEFT-Stream": HEFTStream,
    "HEFT-Stream, trees": lambda: HEFTStream(estimators=["hoeffding-tree"]),
    "adaptive random forest": AdaptiveRandomForest,
}


def of_river(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river import ensemble, tree
    except ImportError:
        return None
    rows, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()

    def run() -> None:
        model = ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=0)
        for row, label in zip(rows, labels, strict=True):
            model.predict_one(row)
            model.learn_one(row, label)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'features':>8} {'':>30} {'rows / s':>10} {'to River':>9}")
    for n_features in options.features:
        n = 500_000 // n_features
        X, y = data(n, n_features)
        few = n // 10
        runs: dict[str, tuple[Run | None, int]] = {"River's bagging": (of_river(X[:few], y[:few]), few)}
        for name, make in OURS.items():
            for size in (1, 100, 1000):
                part = few if size == 1 else n
                runs[f"{name}, {size}"] = in_batches(make, X[:part], y[:part], size), part
        found = speeds(runs, options.rounds)
        river = found.get("River's bagging", float("nan"))
        for name, rate in found.items():
            print(f"{n_features:>8} {name:>30} {rate:>10,.0f} {rate / river:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
