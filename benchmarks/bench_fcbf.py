"""FCBF over a window of 1000 rows: a batch of 100 rows and a selection, beside the same filter in NumPy.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_fcbf.py

The same filter in NumPy puts the window's rows into quantile bins and counts every pair it needs with one matrix
product per feature kept. Both see the same batches in turn, in one process: ten signals with copies, and noise.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import FCBF

WINDOW, BINS = 1000, 5


def batches(n_features: int, n_batches: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n_batches):
        X = rng.normal(size=(100, n_features))
        X[:, 10 : n_features // 2] = (
            X[:, np.arange(10, n_features // 2) % 10] + 0.5 * X[:, 10 : n_features // 2]
        )
        found.append((X, (X[:, :10].sum(axis=1) > 0).astype(int)))
    return found


def uncertainty(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the symmetrical uncertainty of a column of codes with others."""
    n = len(one)
    table = (
        np.stack([(others == b).T.astype(float) @ np.eye(one.max() + 1)[one] for b in range(BINS)], axis=1)
        / n
    )
    bits = lambda p, axes: -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=axes)  # noqa: E731
    h_other, h_one, h_both = bits(table.sum(2), 1), bits(table.sum(1), 1), bits(table, (1, 2))
    return 2 * (h_other + h_one - h_both) / (h_other + h_one)


class NumpyFCBF:
    """The published filter on the last rows."""

    def __init__(self) -> None:
        self.X, self.y = None, None

    def learn(self, X: np.ndarray, y: np.ndarray) -> int:
        self.X = X if self.X is None else np.vstack([self.X, X])[-WINDOW:]
        self.y = y if self.y is None else np.r_[self.y, y][-WINDOW:]
        cuts = np.quantile(self.X, np.arange(1, BINS) / BINS, axis=0)
        codes = sum((cut < self.X).astype(int) for cut in cuts)
        su = uncertainty(self.y, codes)
        left, kept = np.argsort(-su), 0
        while len(left):
            first, left, kept = left[0], left[1:], kept + 1
            left = left[uncertainty(codes[:, first], codes[:, left]) < su[left]] if len(left) else left
        return kept


def seconds(
    step: Callable[[np.ndarray, np.ndarray], object], data: list[tuple[np.ndarray, np.ndarray]]
) -> float:
    start = time.perf_counter()
    for X, y in data:
        step(X, y)
    return (time.perf_counter() - start) / len(data)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[57, 500, 5000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("milliseconds per batch of 100 rows and a selection, one thread; ratios are medians over rounds")
    print(" features    learn   select    paper     numpy  numpy/paper   kept")
    for n_features in arguments.features:
        data = batches(n_features, 10)
        ours, paper, plain = FCBF(), FCBF.paper(), NumpyFCBF()
        steps = {
            "learn": ours.partial_fit,
            "select": lambda X, y: ours.get_support(),  # noqa: B023
            "paper": lambda X, y: paper.partial_fit(X, y).get_support(),  # noqa: B023
            "numpy": plain.learn,
        }
        for step in steps.values():
            seconds(step, data)
        rounds = [
            {name: seconds(step, data) for name, step in steps.items()} for _ in range(arguments.rounds)
        ]
        times = " ".join(f"{1e3 * statistics.median(r[name] for r in rounds):>8.2f}" for name in steps)
        ratio = statistics.median(r["numpy"] / r["paper"] for r in rounds)
        print(f"{n_features:>9} {times} {ratio:>12.1f} {ours.get_support().sum():>6}", flush=True)


if __name__ == "__main__":
    main()
