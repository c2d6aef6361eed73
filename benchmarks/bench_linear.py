"""Tamis' Perceptron beside scikit-learn's: CPU time of learning and predicting batches, as ratios from one run.

python benchmarks/bench_linear.py [--smoke]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn import linear_model

from tamis import Perceptron


def shortest(calls: dict[str, Callable[[], object]], rounds: int, repeats: int) -> dict[str, float]:
    """Return the shortest time of each call in microseconds; the calls take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (time.process_time() - start) / repeats * 1e6)
    return best


def main(smoke: bool) -> None:
    rng = np.random.default_rng(0)
    print(f"{'rows':>6} {'columns':>8} {'call':<9} {'Tamis, us':>10} {'scikit-learn, us':>17} {'ratio':>6}")
    for n_rows, n_columns in ((1, 100), (100, 100), (100, 1000)):
        X = rng.normal(size=(n_rows, n_columns))
        y = (X[:, 0] > 0).astype(int)
        ours = Perceptron().partial_fit(X, y, classes=[0, 1])
        theirs = linear_model.Perceptron(random_state=0).partial_fit(X, y, classes=[0, 1])
        for name in ("partial_fit", "predict"):
            given = (X, y) if name == "partial_fit" else (X,)
            calls = {
                "ours": partial(getattr(ours, name), *given),
                "theirs": partial(getattr(theirs, name), *given),
            }
            took = shortest(calls, 2 if smoke else 7, 3 if smoke else 200)
            print(
                f"{n_rows:>6} {n_columns:>8} {name:<11} {took['ours']:>8.1f} {took['theirs']:>17.1f}"
                f" {took['ours'] / took['theirs']:>6.2f}"
            )


if __name__ == "__main__":
    main("--smoke" in sys.argv)
