"""What random subsets beside a run cost: the selector and learner of a run against its copies of the learner.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_random_subset.py

Runs with no, one and three subsets in turn, on batches of 100 rows, in processor time; printed are the quickest runs
and their ratios to the run with none.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np

from tamis import FIRES, HoeffdingTree, Perceptron, WeightedNaiveBayes, prequential

ROUNDS, BATCHES = 5, 100
DRAWS: dict[str, dict[str, Any]] = {
    "none": {"baselines": "none"},
    "one": {"n_draws": 1},
    "three": {"n_draws": 3},
}


def spent(X: np.ndarray, y: np.ndarray, learner: Any, **options: Any) -> float:
    begin = time.process_time()
    prequential((X, y), FIRES(0.1), learner, **options)
    return time.process_time() - begin


def main() -> None:
    rng = np.random.default_rng(0)
    for n_features in (57, 500):
        X = rng.random((100 * BATCHES, n_features))
        y = (X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=len(X)) > 2.5).astype(int)
        for make in (lambda: Perceptron(random_state=0), WeightedNaiveBayes, HoeffdingTree):
            spent(X[:500], y[:500], make())  # compiles
            rounds = [[spent(X, y, make(), **options) for options in DRAWS.values()] for _ in range(ROUNDS)]
            none, *rest = np.min(rounds, axis=0) / BATCHES * 1e6
            ratios = ", ".join(
                f"{name} {value / none:.2f}" for name, value in zip(("one", "three"), rest, strict=True)
            )
            print(
                f"{n_features:>5} features, {type(make()).__name__:<14} {none:7.0f} us a batch; times with {ratios}"
            )


if __name__ == "__main__":
    main()
