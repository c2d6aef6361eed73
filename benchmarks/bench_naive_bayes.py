"""Naive Bayes beside River's, scikit-learn's and MOA's: rows per second, each first predicted, then learned from.

    pip install '.[river]'
    pip install capymoa==0.15.1     # optional; needs Java 17
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_naive_bayes.py

Normal features, two classes by a linear rule of five of them. All run in one process, in turn, on the same rows;
medians over the rounds. River's and MOA's take one row at a time by nature; MOA's loop is its own, in Java, over rows
that are there already. At last, the cost of categories and of missing values.
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
from sklearn.naive_bayes import GaussianNB

from tamis import WeightedNaiveBayes

Run = Callable[[], object]
OURS = {
    "all rows": {"window": None, "weight": None},
    "1000 rows": {"weight": None},
    "1000 rows, SU": {},
}


def data(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n, n_features))
    margin = X[:, :5] @ [1.5, -1.2, 1.0, -0.8, 0.6]
    return X, (margin + 0.5 * rng.standard_normal(n) > 0).astype(int)


def in_batches(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, size: int) -> Run:
    def run() -> None:
        model = make().partial_fit(X[:100], y[:100], classes=[0, 1])
        for at in range(0, len(X), size):
            model.predict(X[at : at + size])
            model.partial_fit(X[at : at + size], y[at : at + size])

    return run


def of_river(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river.naive_bayes import GaussianNB as RiverNB
    except ImportError:
        return None
    rows, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()

    def run() -> None:
        model = RiverNB()
        for row, label in zip(rows, labels, strict=True):
            model.predict_one(row)
            model.learn_one(row, label)

    return run


def of_moa(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        import jpype
        from capymoa.classifier import NaiveBayes
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

    def run() -> None:
        EfficientEvaluationLoops.PrequentialEvaluation(
            CachedInstancesStream(rows), NaiveBayes(schema).moa_learner, BasicClassificationPerformanceEvaluator(),
            WindowClassificationPerformanceEvaluator(), len(X), 1000, False, False,
        )  # fmt: skip

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


def against_peers(n_features: int, n_rounds: int) -> None:
    n = 2_000_000 // n_features
    X, y = data(n, n_features)
    few = max(500, n // 20)
    runs: dict[str, tuple[Run | None, int]] = {
        "River": (of_river(X[:few], y[:few]), few),
        "MOA": (of_moa(X[: n // 2], y[: n // 2]), n // 2),
        "scikit-learn, 100": (in_batches(GaussianNB, X, y, 100), n),
        "scikit-learn, 1": (in_batches(GaussianNB, X[:few], y[:few], 1), few),
    }
    for name, parameters in OURS.items():
        make = lambda parameters=parameters: WeightedNaiveBayes(**parameters)  # noqa: E731
        runs[f"{name}, 100"] = in_batches(make, X, y, 100), n
        runs[f"{name}, 1"] = in_batches(make, X[:few], y[:few], 1), few
    found = speeds(runs, n_rounds)
    river, moa = found.get("River", float("nan")), found.get("MOA", float("nan"))
    for name, rate in found.items():
        print(
            f"{n_features:>6} {name:>20} {rate:>12,.0f} {rate / river:>9.1f} {rate / moa:>8.2f}", flush=True
        )


def kinds_of_rows(n_rounds: int) -> None:
    print("\n200 features, batches of 100, window of 1000 rows, no weights: rows per second")
    X, y = data(20_000, 200)
    missing, categories = X.copy(), np.floor(X * 2)
    missing[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    cases = {
        "numbers": (X, None),
        "5 % missing": (missing, None),
        "categories": (categories, "all"),
        "0 and 1": ((X > 0).astype(float), "all"),
    }
    runs = {
        name: (in_batches(lambda c=c: WeightedNaiveBayes(weight=None, categorical=c), rows, y, 100), len(y))
        for name, (rows, c) in cases.items()
    }
    for name, rate in speeds(runs, n_rounds).items():
        print(f"{name:>20} {rate:>12,.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'columns':>6} {'':>19} {'rows / s':>12} {'to River':>9} {'to MOA':>8}")
    for n_features in options.features:
        against_peers(n_features, options.rounds)
    kinds_of_rows(options.rounds)


if __name__ == "__main__":
    main()
