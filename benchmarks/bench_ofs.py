"""One OFS step (learn from 100 rows, read the scores) beside float-evaluation's OFS and a truncating one in NumPy.

    pip install --no-deps float-evaluation==0.0.2
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ofs.py

float-evaluation's OFS never truncates: it does less. All run in one process, in turn, on the same batches, once where
the classes are far apart (few mistakes) and once where labels are noise (a mistake in nearly every row). Medians over
the rounds; without float-evaluation its column is nan.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis import OFS

Batch = tuple[np.ndarray, np.ndarray]


def peer(selector: str = "OFS") -> type | None:
    """Return a selector of float-evaluation; its package needs scikit-multiflow, so only the module is imported."""
    if "float" not in sys.modules:
        found = importlib.util.find_spec("float")
        if found is None or not found.submodule_search_locations:
            return None
        (root,) = found.submodule_search_locations
        for name, folder in {"float": root, "float.feature_selection": f"{root}/feature_selection"}.items():
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [folder]
    base = importlib.import_module("float.feature_selection.base_feature_selector")
    sys.modules["float.feature_selection"].BaseFeatureSelector = base.BaseFeatureSelector
    return getattr(importlib.import_module(f"float.feature_selection.{selector.lower()}"), selector)


class NumpyOFS:
    """OFS by sparse projection, truncated by argpartition after each mistake."""

    def __init__(self, n_features: int, n_kept: int) -> None:
        self.w, self.n_cut = np.zeros(n_features), n_features - n_kept

    def learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        for x, sign in zip(X, np.where(y > 0, 1.0, -1.0), strict=True):
            kept = np.flatnonzero(self.w)
            mistake = sign * (self.w[kept] @ x[kept]) <= 1
            self.w *= 1 - 0.01 * 0.2
            if mistake:
                self.w += 0.2 * sign * x
                self.w *= min(1.0, 10.0 / math.sqrt(self.w @ self.w))
                self.w[np.argpartition(np.abs(self.w), self.n_cut)[: self.n_cut]] = 0.0
        return np.abs(self.w)


def batches(n_features: int, n_batches: int, apart: float) -> list[Batch]:
    rng = np.random.default_rng(0)
    planted = rng.choice(n_features, max(3, n_features // 20), replace=False)
    found = []
    for _ in range(n_batches):
        X, y = rng.random((100, n_features)), rng.integers(0, 2, 100)
        X[:, planted] += apart * (2 * y - 1)[:, None]
        found.append((X, y))
    return found


def seconds(step: Callable[[np.ndarray, np.ndarray], object], data: list[Batch]) -> float:
    start = time.perf_counter()
    for X, y in data:
        step(X, y)
    return (time.perf_counter() - start) / len(data)


def mistakes(data: list[Batch]) -> float:
    """Return how many rows of a batch are mistakes once the whole of `data` was learned."""
    selector, n = OFS(), 0
    for X, y in data:
        selector.partial_fit(X, y)
    for X, y in data:
        for i in range(0, 100, 10):
            n += np.count_nonzero((2 * y[i : i + 1] - 1) * selector.decision_function(X[i : i + 1]) <= 1)
            selector.partial_fit(X[i : i + 10], y[i : i + 10])
    return 10 * n / len(data)


def dense(n_features: int, apart: float, n_rounds: int, peer_class: type | None) -> None:
    data, n_kept = batches(n_features, 12 if n_features > 1000 else 50, apart), max(1, n_features // 10)
    selector, plain = OFS(), NumpyOFS(n_features, n_kept)
    steps: dict[str, Callable[[np.ndarray, np.ndarray], object]] = {
        "ours": lambda X, y: selector.partial_fit(X, y).scores_,
        "numpy": plain.learn,
    }
    if peer_class is not None:
        judge = peer_class(n_features, n_kept)
        steps["float"] = lambda X, y: judge.weight_features(X, y.copy())
    for step in steps.values():
        seconds(step, data)
    rounds = [{name: seconds(step, data) for name, step in steps.items()} for _ in range(n_rounds)]

    def median(of: str, to: str | None = None) -> float:
        return statistics.median(r.get(of, math.nan) / (r[to] if to else 1e-3) for r in rounds)

    times = f"{median('ours'):>9.4f} {median('numpy'):>9.3f} {median('float'):>9.3f}"
    ratios = f"{median('numpy', 'ours'):>11.1f} {median('float', 'ours'):>11.1f}"
    print(f"{n_features:>9} {mistakes(data):>9.1f} {times} {ratios}", flush=True)


def worst() -> None:
    print(
        "\nEvery row a mistake (an infinite margin would ask for it), 10,000 features: milliseconds per batch"
    )
    rng = np.random.default_rng(0)
    X = rng.random((5, 100, 10_000))
    for name, rows in {"distinct": X, "ties": np.round(X), "spread": 10.0 ** (300 * X - 200)}.items():
        for n_classes in (2, 3):
            data = [(batch, rng.integers(0, n_classes, 100)) for batch in rows]
            selector = OFS(margin=1e12)
            seconds(selector.partial_fit, data)
            best = statistics.median(seconds(selector.partial_fit, data) for _ in range(9))
            print(f"{name:>10} {n_classes} classes {best * 1e3:9.3f}", flush=True)


def sparse() -> None:
    print(
        "\nCSR, 100 stored values a row, B = 1000, noise labels: milliseconds per batch over the number of columns"
    )
    rng = np.random.default_rng(0)
    for n_features in (10_000, 100_000, 1_000_000):
        data = []
        for _ in range(10):
            columns = rng.integers(0, n_features, 10_000)
            X = sp.csr_matrix(
                (rng.random(10_000), (np.repeat(np.arange(100), 100), columns)), (100, n_features)
            )
            X.sum_duplicates()
            data.append((X, rng.integers(0, 2, 100)))
        selector = OFS(1000)
        print(
            f"{n_features:>10} {min(seconds(selector.partial_fit, data) for _ in range(5)) * 1e3:9.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[57, 500, 5000, 10000])
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    peer_class = peer()
    for title, apart in (("few mistakes", 1.0), ("noise labels", 0.0)):
        print(
            f"{title}: milliseconds per batch of 100 rows, float64, one thread; ratios are medians over rounds"
        )
        print(" features  mistakes      ours     numpy     float  numpy/ours  float/ours")
        for n_features in arguments.features:
            dense(n_features, apart, arguments.rounds, peer_class)
    worst()
    sparse()


if __name__ == "__main__":
    main()
