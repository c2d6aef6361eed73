"""DISCUSS: rows a second, selections included, over the number of features, beside the same counts in NumPy.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_discuss.py

Two features decide the class, others from row 4000 on; 10 % of the labels are flipped. Batches of 100 rows, processor
time, one thread. The peer keeps the integer counts of the window in NumPy, O(features) a row in vectorised steps, and
looks at the symmetrical uncertainties after every row; it selects nothing.
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

from tamis import DISCUSS

Learn = Callable[[np.ndarray, np.ndarray], object]


class NumpyWindow:
    """Counts of bits over the last rows, and SU after every row."""

    def __init__(self, n_features: int, window: int = 300) -> None:
        k = np.arange(window + 1.0)
        self.f, self.w, self.t = k * np.log2(np.maximum(k, 1.0)), window, 0
        self.counts = np.zeros((n_features, 2, 2), int)
        self.rows, self.codes = np.zeros((window, n_features), int), np.zeros(window, int)
        self.all = np.arange(n_features)

    def learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        for row, code in zip(X.astype(int), y, strict=True):
            p = self.t % self.w
            if self.t >= self.w:
                self.counts[self.all, self.rows[p], self.codes[p]] -= 1
            self.counts[self.all, row, code] += 1
            self.rows[p], self.codes[p], self.t = row, code, self.t + 1
            n = min(self.t, self.w)
            t_x, t_xy = self.f[self.counts.sum(axis=2)].sum(axis=1), self.f[self.counts].sum(axis=(1, 2))
            t_y = self.f[self.counts[0].sum(axis=0)].sum()
            spread = 2 * self.f[n] - t_x - t_y
            su = 2 * (self.f[n] - t_x - t_y + t_xy) / np.maximum(spread, 1e-9)
            np.flatnonzero(su > 0.05)
        return su


def rows(n_rows: int, n_features: int, bits: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, n_features))
    first = np.arange(n_rows) < 4000
    y = np.where(first, X[:, 0] + X[:, 1] > 1, X[:, 2] + X[:, 3] > 1)
    return np.round(X) if bits else X, np.where(rng.random(n_rows) < 0.1, ~y, y).astype(int)


def speed(learn: Learn, X: np.ndarray, y: np.ndarray) -> float:
    """Return rows a second of processor time after the first 500, which compile what there is to compile."""
    learn(X[:500], y[:500])
    begin = time.process_time()
    for start in range(500, len(X), 100):
        learn(X[start : start + 100], y[start : start + 100])
    return (len(X) - 500) / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[20, 50, 100, 200, 500, 1000])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    kinds: dict[str, tuple[bool, Callable[[int], Learn]]] = {
        "bits": (True, lambda _: DISCUSS(categorical="all").partial_fit),
        "bits, no drifts": (True, lambda _: DISCUSS(categorical="all", alpha_drift=None).partial_fit),
        "numbers": (False, lambda _: DISCUSS().partial_fit),
        "numpy, bits": (True, lambda d: NumpyWindow(d).learn),
    }
    print("rows a second of processor time, medians\nfeatures " + " ".join(f"{name:>15}" for name in kinds))
    for d in asked.features:
        shown = []
        for name, (bits, make) in kinds.items():
            X, y = rows(2000 if name.startswith("numpy") else asked.rows, d, bits)
            shown.append(statistics.median(speed(make(d), X, y) for _ in range(asked.rounds)))
        print(f"{d:>8} " + " ".join(f"{value:>15,.0f}" for value in shown), flush=True)


if __name__ == "__main__":
    main()
