"""ABFS beside River's pieces put together, and a learner with and without it.

    pip install '.[river]'      # optional
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_abfs.py [--features 100 500 1000] [--rows 50000]

First rows per second of the selection alone, tries and drifts included, by the number of features, batches of 100 rows:
bits as categories, normal numbers, one row at a time, and a River Hoeffding tree that observes the same features. Then,
on the streams of Barddal's Chapter 9 with 500 irrelevant features, CPU seconds of the whole loop (naive Bayes,
test-then-train) without and with ABFS: of 20,000 rows, times ten, beside the 200,000 rows of Table 9.4
(11 to 70 s and 29 to 118 s with naive Bayes, on another machine).
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import ABFS, WeightedNaiveBayes, load_stream, prequential


def rows(n: int, n_features: int, bits: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose class is a majority of three features, of three others in the second half; 10 % flips."""
    rng = np.random.default_rng(n_features)
    X = rng.integers(0, 2, (n, n_features)).astype(float) if bits else rng.normal(size=(n, n_features))
    votes = np.where(np.arange(n) < n // 2, X[:, :3].sum(axis=1), X[:, 3:6].sum(axis=1))
    return X, ((votes > (1.5 if bits else 0.0)) ^ (rng.random(n) < 0.1)).astype(int)


def speed(n: int, n_features: int, bits: bool, size: int = 100, **options: Any) -> float:
    X, y = rows(n, n_features, bits)
    selector = ABFS(categorical="all" if bits else None, **options)
    selector.partial_fit(X[:1], y[:1], classes=[0, 1])
    begin = time.process_time()
    for at in range(1, n, size):
        selector.partial_fit(X[at : at + size], y[at : at + size])
    return (n - 1) / (time.process_time() - begin)


def loop_seconds(name: str, n_rows: int, with_abfs: bool) -> tuple[float, float]:
    """Return CPU seconds for 200,000 rows, and the accuracy."""
    stream = load_stream(name, seed=1, protocol="chapter9", n_rows=n_rows, n_irrelevant=500)
    X, y = stream.take(n_rows)
    selector = ABFS(categorical=stream.categorical) if with_abfs else None
    learner = WeightedNaiveBayes(window=None, weight=None, categorical=stream.categorical)
    begin = time.process_time()
    result = prequential((X, y), selector, learner, n_tracked=0, baselines="none")
    return (time.process_time() - begin) * 200_000 / n_rows, result.summary()["accuracy"]


def of_river(n: int, n_features: int) -> float | None:
    try:
        from river.tree import HoeffdingTreeClassifier
    except ImportError:
        return None
    X, y = rows(n, n_features, False)
    tree = HoeffdingTreeClassifier(grace_period=500)
    given = [dict(enumerate(row)) for row in X.tolist()]
    begin = time.process_time()
    for row, label in zip(given, y.tolist(), strict=True):
        tree.learn_one(row, label)
    return n / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[100, 500, 1000])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--streams", nargs="+", default=["AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA"])
    args = parser.parse_args()
    for bits in (True, False):
        speed(2000, 10, bits)  # compiles
    loop_seconds("BG1", 2000, True)
    print("rows per second of the selection, batches of 100 rows")
    for n_features in args.features:
        river = of_river(1000, n_features)
        print(
            f"{n_features:5} features: bits {speed(args.rows, n_features, True):9,.0f}"
            f"  numbers {speed(args.rows, n_features, False):9,.0f}"
            f"  numbers, row by row {speed(args.rows // 10, n_features, False, 1):9,.0f}"
            f"  threshold 0.01, bits {speed(args.rows, n_features, True, threshold=0.01):9,.0f}"
            + (f"  River's Hoeffding tree {river:7,.0f}" if river else ""),
            flush=True,
        )
    print(
        "CPU seconds of test-then-train for 200,000 rows at 500 irrelevant features, naive Bayes (accuracy)"
    )
    for name in args.streams:
        (alone, all_right), (chosen, right) = (loop_seconds(name, 20_000, on) for on in (False, True))
        print(
            f"{name:4} alone {alone:6.1f} s ({all_right:.3f})   with ABFS {chosen:6.1f} s ({right:.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
