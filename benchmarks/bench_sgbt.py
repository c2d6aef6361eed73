"""SGBT beside CapyMOA's and River's boosting: prequential accuracy and rows per CPU second on five streams.

    pip install '.[river]'
    pip install capymoa==0.15.1     # needs Java 17
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_sgbt.py [--rows 5000] [--river 500]

Each row is predicted, then learned; ours in batches of 100 rows (and of 1). CapyMOA's loop is MOA's own, in Java, over
rows that are there already. River's `ADWINBoostingClassifier` of ten trees gets --river rows.
All run in one process, in turn, with their defaults.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from bench_hoeffding import in_moa

from tamis import SGBT, AdaptiveRandomForest, HoeffdingAdaptiveTree, OzaBoost, load_dataset, load_stream

STREAMS = ("electricity", "AGR", "AN", "RTG", "RBF")


def rows_of(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    stream = load_dataset(name) if name == "electricity" else load_stream(name, seed=1, n_rows=n_rows)
    X, y = stream.take(n_rows)
    return np.ascontiguousarray(X, dtype=float), np.unique(y, return_inverse=True)[1]


def prequential(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, size: int) -> tuple[float, float]:
    """Return accuracy and rows per second of CPU time."""
    make().fit(X[:300], y[:300]).predict(X[:300])  # compiles
    model, right, start = make(), 0, time.process_time()
    for at in range(0, len(X), size):
        part = slice(at, at + size)
        if at:
            right += int((model.predict(X[part]) == y[part]).sum())
        model.partial_fit(X[part], y[part], classes=[0, 1] if at == 0 else None)
    return right / (len(X) - size), len(X) / (time.process_time() - start)


def in_capymoa(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    try:
        from capymoa.classifier import StreamingGradientBoostedTrees
    except Exception:  # no package, or no Java
        return float("nan"), float("nan")
    run = in_moa(StreamingGradientBoostedTrees, X, y)
    start = time.process_time()
    percent = run()
    return percent / 100, len(X) / (time.process_time() - start)


def in_river(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    try:
        from river import ensemble, tree
    except ImportError:
        return float("nan"), float("nan")
    model = ensemble.ADWINBoostingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=0)
    right, start = 0, time.process_time()
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        right += model.predict_one(x) == label
        model.learn_one(x, label)
    return right / len(X), len(X) / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--river", type=int, default=500)
    parser.add_argument("--streams", nargs="+", default=STREAMS)
    options = parser.parse_args()
    print("| stream | | accuracy | rows / CPU s |\n| --- | --- | ---: | ---: |")
    for name in options.streams:
        X, y = rows_of(name, options.rows)
        few = slice(0, options.river)
        runs = {
            "SGBT, batches of 100": lambda X=X, y=y: prequential(SGBT, X, y, 100),
            "SGBT, row by row": lambda X=X, y=y: prequential(SGBT, X, y, 1),
            "CapyMOA's": lambda X=X, y=y: in_capymoa(X, y),
            f"River's boosting, {options.river} rows": lambda X=X[few], y=y[few]: in_river(X, y),
            "AdaptiveRandomForest": lambda X=X, y=y: prequential(AdaptiveRandomForest, X, y, 100),
            "OzaBoost": lambda X=X, y=y: prequential(OzaBoost, X, y, 100),
            "HoeffdingAdaptiveTree": lambda X=X, y=y: prequential(HoeffdingAdaptiveTree, X, y, 100),
        }
        for label, run in runs.items():
            accuracy, rate = run()
            print(f"| {name} | {label} | {accuracy:.3f} | {rate:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
