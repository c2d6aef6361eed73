"""Nearest neighbours beside River's, MOA's and scikit-learn's: rows per second, each predicted, then learned from.

    pip install '.[river]'
    pip install capymoa==0.15.1     # optional; needs Java 17
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_knn.py

Normal features, two classes by a linear rule of five of them, 10 neighbours among the last 1000 rows, which are there
before the clock starts. All run in one process, in turn, on the same rows; medians over the rounds. River's and MOA's
take one row at a time by nature; MOA's loop is its own, in Java, over rows that are there already. River's and
scikit-learn's do not scale the features. scikit-learn's cannot learn more rows: it is given the last 1000 before each
batch. At last, the cost of categories and of missing values, and memory by window.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from tamis import WeightedKNN

Run = Callable[[], Callable[[], object]]  # gets ready; what it returns is timed
WINDOW = 1000


def data(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n, n_features))
    margin = X[:, :5] @ [1.5, -1.2, 1.0, -0.8, 0.6]
    return X, (margin + 0.5 * rng.standard_normal(n) > 0).astype(int)


def ours(X: np.ndarray, y: np.ndarray, size: int, **parameters: Any) -> Run:
    def ready() -> Callable[[], None]:
        model = WeightedKNN(window=WINDOW, **parameters).fit(X[:WINDOW], y[:WINDOW])

        def run() -> None:
            for at in range(WINDOW, len(X), size):
                model.predict(X[at : at + size])
                model.partial_fit(X[at : at + size], y[at : at + size])

        return run

    return ready


def of_sklearn(X: np.ndarray, y: np.ndarray) -> Run:
    def run() -> None:
        for at in range(WINDOW, len(X), 100):
            model = KNeighborsClassifier(10, algorithm="brute").fit(X[at - WINDOW : at], y[at - WINDOW : at])
            model.predict(X[at : at + 100])

    return lambda: run


def of_river(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river.neighbors import KNNClassifier, LazySearch
    except ImportError:
        return None
    rows, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()

    def ready() -> Callable[[], None]:
        model = KNNClassifier(10, engine=LazySearch(window_size=WINDOW))
        for row, label in zip(rows[:WINDOW], labels[:WINDOW], strict=True):
            model.learn_one(row, label)

        def run() -> None:
            for row, label in zip(rows[WINDOW:], labels[WINDOW:], strict=True):
                model.predict_one(row)
                model.learn_one(row, label)

        return run

    return ready


def of_moa(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        import jpype
        from capymoa.classifier import KNN
        from capymoa.stream import NumpyStream
    except Exception:  # no package, or no Java
        return None
    from com.yahoo.labs.samoa.instances import DenseInstance, Instances
    from moa.evaluation import (
        BasicClassificationPerformanceEvaluator,
        EfficientEvaluationLoops,
        WindowClassificationPerformanceEvaluator,
    )
    from moa.streams import CachedInstancesStream

    schema = NumpyStream(X[:10], y[:10], dataset_name="rows").get_schema()
    rows = Instances(schema.get_moa_header(), len(X))
    for row in np.column_stack([X, y]):
        one = DenseInstance(1.0, jpype.JArray(jpype.JDouble)(row))
        one.setDataset(schema.get_moa_header())
        rows.add(one)

    def ready() -> Callable[[], None]:
        model, stream = KNN(schema, k=10, window_size=WINDOW).moa_learner, CachedInstancesStream(rows)
        for _ in range(WINDOW):
            model.trainOnInstance(stream.nextInstance())
        return lambda: EfficientEvaluationLoops.PrequentialEvaluation(
            stream, model, BasicClassificationPerformanceEvaluator(), WindowClassificationPerformanceEvaluator(),
            len(X) - WINDOW, 1000, False, False,
        )  # fmt: skip

    return ready


def speeds(runs: dict[str, tuple[Run | None, int]], n_rounds: int) -> dict[str, float]:
    """Return rows per second of each that can run, medians; the first round, which compiles, is not counted."""
    spent: dict[str, list[float]] = {name: [] for name, (run, _) in runs.items() if run is not None}
    for _ in range(n_rounds + 1):
        for name in spent:
            ready, n = runs[name]
            run = ready()
            start = time.perf_counter()
            run()
            spent[name].append(n / (time.perf_counter() - start))
    return {name: statistics.median(rates[1:]) for name, rates in spent.items()}


def against_peers(n_features: int, n_rounds: int) -> None:
    n = 500_000 // n_features
    X, y = data(WINDOW + n, n_features)
    few = max(60, n // 50)
    some = max(200, n // 10)
    head, middle = slice(WINDOW + few), slice(WINDOW + some)
    runs: dict[str, tuple[Run | None, int]] = {
        "River": (of_river(X[head], y[head]), few),
        "MOA": (of_moa(X[middle], y[middle]), some),
        "scikit-learn, 100": (of_sklearn(X, y), n),
        "no weights, 1": (ours(X[middle], y[middle], 1, weight=None), some),
        "no weights, 100": (ours(X, y, 100, weight=None), n),
        "SU, 1": (ours(X[middle], y[middle], 1), some),
        "SU, 100": (ours(X, y, 100), n),
    }
    found = speeds(runs, n_rounds)
    river, moa = found.get("River", float("nan")), found.get("MOA", float("nan"))
    for name, rate in found.items():
        print(
            f"{n_features:>6} {name:>20} {rate:>12,.0f} {rate / river:>9.1f} {rate / moa:>8.1f}", flush=True
        )


def kinds_of_rows(n_rounds: int) -> None:
    print("\n50 features, batches of 100, no weights: rows per second")
    X, y = data(WINDOW + 5000, 50)
    missing, categories = X.copy(), np.floor(X * 2)
    missing[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    cases = {"numbers": (X, None), "5 % missing": (missing, None), "categories": (categories, "all")}
    cases["a number that only rises"] = np.column_stack([X[:, 1:], np.arange(len(X))]), None
    runs: dict[str, tuple[Run | None, int]] = {
        name: (ours(rows, y, 100, weight=None, categorical=c), 5000) for name, (rows, c) in cases.items()
    }
    for name, rate in speeds(runs, n_rounds).items():
        print(f"{name:>26} {rate:>12,.0f}", flush=True)


def memory() -> None:
    print("\nbytes per kept value of 50 features, no weights")
    for window in (1000, 10_000, 100_000):
        X, y = data(window, 50)
        tracemalloc.start()
        model = WeightedKNN(window=window, weight=None, score_window=2).fit(X, y)
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        print(f"{window:>26,} {used / X.size:>12.2f}", flush=True)
        del model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'columns':>6} {'':>19} {'rows / s':>12} {'to River':>9} {'to MOA':>8}")
    for n_features in options.features:
        against_peers(n_features, options.rounds)
    kinds_of_rows(options.rounds)
    memory()


if __name__ == "__main__":
    main()
