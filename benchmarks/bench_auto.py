"""Rows per second of `Auto`, beside what its selectors cost alone one after the other.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_auto.py

Batches of 100 rows, a selection after each, processor time; the quickest of three rounds.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np

from tamis import FIRES, Auto, FisherScore, ForwardPartialCorrelation, JointScreening

ROUNDS, BATCHES = 3, 100


def spent(X: np.ndarray, y: np.ndarray, selector: Any) -> float:
    begin = time.process_time()
    for start in range(0, len(y), 100):
        selector.partial_fit(X[start : start + 100], y[start : start + 100], [0, 1])
        selector.get_support()
    return time.process_time() - begin


def main() -> None:
    rng = np.random.default_rng(0)
    for n_features in (10, 50, 200):
        X = rng.normal(size=(100 * BATCHES, n_features))
        y = (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
        makers = {
            "auto, linear": Auto,
            "auto, naive Bayes": lambda: Auto(learner="naive-bayes"),
            "forward, fires, fisher, joint": None,
        }
        singly = (
            lambda: ForwardPartialCorrelation(0.4),
            lambda: FIRES(0.4),
            lambda: FisherScore(0.4),
            JointScreening,
        )
        for name, make in makers.items():
            for one in singly if make is None else (make,):
                spent(X[:500], y[:500], one())  # compiles
            rounds = [
                sum(spent(X, y, one()) for one in (singly if make is None else (make,)))
                for _ in range(ROUNDS)
            ]
            print(f"{n_features:>5} features, {name:<30} {len(X) / min(rounds):>9,.0f} rows a second")


if __name__ == "__main__":
    main()
