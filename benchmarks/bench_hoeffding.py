"""Hoeffding trees and forests beside River's and MOA's: rows per second, each row first predicted, then learned from.

    pip install '.[river]'
    pip install capymoa==0.15.1     # optional; needs Java 17
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_hoeffding.py

Normal features, two classes by a linear rule of five of them. All run in one process, in turn, on the same rows, a
new tree each time; medians over the rounds. MOA's loop is its own, in Java, over rows that are there already.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import AdaptiveRandomForest, HoeffdingAdaptiveTree, HoeffdingTree, OzaBoost, StreamingRandomPatches

Run = Callable[[], object]
OURS: dict[str, Callable[[], Any]] = {
    "tree": HoeffdingTree,
    "adaptive tree": HoeffdingAdaptiveTree,
    "forest": lambda: AdaptiveRandomForest(10, 0.6),  # as MOA's, whose default is 100 trees
    "patches": lambda: StreamingRandomPatches(10, 0.6),
    "boosting": OzaBoost,
}


def data(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n, n_features))
    margin = X[:, :5] @ [1.5, -1.2, 1.0, -0.8, 0.6]
    return X, (margin + 0.5 * rng.standard_normal(n) > 0).astype(int)


def in_batches(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, size: int) -> Run:
    def run() -> None:
        model = make().partial_fit(X[:size], y[:size], classes=[0, 1])
        for at in range(size, len(X), size):
            model.predict(X[at : at + size])
            model.partial_fit(X[at : at + size], y[at : at + size])

    return run


def one_by_one(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> Run:
    """Return a run of a model of River's."""
    rows, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()

    def run() -> None:
        model = make()
        for row, label in zip(rows, labels, strict=True):
            model.predict_one(row)
            model.learn_one(row, label)

    return run


def of_river(name: str, X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river import ensemble, forest, tree
    except ImportError:
        return None
    makers = {
        "tree": tree.HoeffdingTreeClassifier,
        "adaptive tree": tree.HoeffdingAdaptiveTreeClassifier,
        "forest": lambda: forest.ARFClassifier(n_models=10, max_features=0.6, seed=0),
        "patches": lambda: ensemble.SRPClassifier(n_models=10, subspace_size=0.6, seed=0),
        "boosting": lambda: ensemble.AdaBoostClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=0),
    }
    return one_by_one(makers[name], X, y)


def of_moa(name: str, X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        import capymoa.classifier
    except Exception:  # no package, or no Java
        return None
    makers = {
        "tree": capymoa.classifier.HoeffdingTree,
        "adaptive tree": capymoa.classifier.HoeffdingAdaptiveTree,
        "forest": lambda of: capymoa.classifier.AdaptiveRandomForestClassifier(of, ensemble_size=10),
        "patches": lambda of: capymoa.classifier.StreamingRandomPatches(of, ensemble_size=10),
        "boosting": lambda of: capymoa.classifier.OzaBoost(of, boosting_iterations=10),
    }
    return in_moa(makers[name], X, y)


def in_moa(make: Callable[[Any], Any], X: np.ndarray, y: np.ndarray) -> Callable[[], float]:
    """Return a run of MOA's own prequential loop, which returns the accuracy."""
    import jpype
    from capymoa.stream import NumpyStream
    from com.yahoo.labs.samoa.instances import DenseInstance, Instances
    from moa.evaluation import (
        BasicClassificationPerformanceEvaluator,
        EfficientEvaluationLoops,
        WindowClassificationPerformanceEvaluator,
    )
    from moa.streams import CachedInstancesStream

    schema = NumpyStream(X[:1000], y[:1000], dataset_name="rows").get_schema()
    rows = Instances(schema.get_moa_header(), len(X))
    for row in np.column_stack([X, y]):
        one = DenseInstance(1.0, jpype.JArray(jpype.JDouble)(row))
        one.setDataset(schema.get_moa_header())
        rows.add(one)

    def run() -> float:
        evaluator = BasicClassificationPerformanceEvaluator()
        EfficientEvaluationLoops.PrequentialEvaluation(
            CachedInstancesStream(rows), make(schema).moa_learner, evaluator,
            WindowClassificationPerformanceEvaluator(), len(X), 1000, False, False,
        )  # fmt: skip
        return float(evaluator.getPerformanceMeasurements()[1].getValue())

    return run


def speeds(runs: dict[str, tuple[Run | None, int]], n_rounds: int) -> dict[str, float]:
    """Return rows per second of each that can run, medians; the first round, which compiles, is not counted."""
    spent: dict[str, list[float]] = {name: [] for name, (run, _) in runs.items() if run is not None}
    for _ in range(n_rounds + 1):
        for name in spent:
            run, n = runs[name]
            start = time.perf_counter()
            run()
            spent[name].append(n / (time.perf_counter() - start))
    return {name: statistics.median(rates[1:]) for name, rates in spent.items()}


def beside_river(
    title: str,
    peer: str,
    of_peer: Callable[[np.ndarray, np.ndarray], Run | None],
    ours: dict[str, Callable[[], Any]],
    n_values: int,
    n_rounds: int,
) -> None:
    """Print rows per second of learners of ours beside one of River's, which gets a tenth of the rows."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--features", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--rounds", type=int, default=n_rounds)
    options = parser.parse_args()
    print(f"{'features':>8} {'':>30} {'rows / s':>10} {'to River':>9}")
    for n_features in options.features:
        n = n_values // n_features
        X, y = data(n, n_features)
        few = n // 10
        runs: dict[str, tuple[Run | None, int]] = {peer: (of_peer(X[:few], y[:few]), few)}
        for name, make in ours.items():
            for size in (1, 100, 1000):
                part = few if size == 1 else n
                runs[f"{name}, {size}"] = in_batches(make, X[:part], y[:part], size), part
        found = speeds(runs, options.rounds)
        river = found.get(peer, float("nan"))
        for name, rate in found.items():
            print(f"{n_features:>8} {name:>30} {rate:>10,.0f} {rate / river:>9.1f}", flush=True)


def against_peers(name: str, n_features: int, n_rounds: int) -> None:
    n = 1_000_000 // n_features
    X, y = data(n, n_features)
    few = n // 10
    runs: dict[str, tuple[Run | None, int]] = {
        "River": (of_river(name, X[:few], y[:few]), few),
        "MOA": (of_moa(name, X[: n // 2], y[: n // 2]), n // 2),
    }
    for size in (1, 100, 1000):
        part = few if size == 1 else n
        runs[f"batches of {size}"] = in_batches(OURS[name], X[:part], y[:part], size), part
    found = speeds(runs, n_rounds)
    river, moa = found.get("River", float("nan")), found.get("MOA", float("nan"))
    for peer, rate in found.items():
        print(
            f"{n_features:>8} {name:>14} {peer:>16} {rate:>10,.0f} {rate / river:>9.1f} {rate / moa:>7.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--models", nargs="+", choices=list(OURS), default=list(OURS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'features':>8} {'':>31} {'rows / s':>10} {'to River':>9} {'to MOA':>7}")
    for n_features in options.features:
        for name in options.models:
            against_peers(name, n_features, options.rounds)


if __name__ == "__main__":
    main()
