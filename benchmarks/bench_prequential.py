"""What the evaluation loop adds to its selector and learner, at 100 rows a batch.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_prequential.py

The same selector and learner see the same batches in the shortest loop there is (select, zeros in place of the other
columns, predict, learn, learn) and in `prequential`: first with nothing else, then with what it does by default beside
that (scaled columns, the ranking of the rows, three random subsets). They run in turn, in processor time; printed are
the quickest runs, their ratio to the shortest loop, and the median of the pairs' ratios.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import FIRES, Perceptron, WeightedNaiveBayes, prequential
from tamis.streams import Stream

SHARE, SIZE, PAIRS = 0.1, 100, 11
PLAIN: dict[str, Any] = {"baselines": "none", "scale": "none", "auc": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "nothing else": PLAIN,
    "nothing else, zeros in place": PLAIN | {"masking": "zeros"},
    "scaled columns": PLAIN | {"scale": "standard"},
    "ranking": PLAIN | {"auc": True},
    "one random subset": PLAIN | {"baselines": "random", "n_draws": 1},
    "by default": {},
}


class Ready(Stream):
    """Batches that cost nothing to make."""

    def __init__(self, batches: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.ready = batches

    def batches(self, size: int = SIZE, *, start: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return iter(self.ready)

    def describe(self) -> dict[str, str]:
        return {"kind": "ready"}

    def _blocks(self, start: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return iter(self.ready)


def perceptron() -> Any:
    return Perceptron(random_state=0)


def naive_bayes() -> Any:
    return WeightedNaiveBayes(window=None, weight=None)


def bare(batches: list[tuple[np.ndarray, np.ndarray]], make: Callable[[], Any]) -> float:
    begin = time.process_time()
    selector, learner = FIRES(SHARE), make()
    X, y = batches[0]
    selector.partial_fit(X, y, classes=[0, 1])
    learner.partial_fit(X, y, classes=[0, 1])
    for X, y in batches[1:]:
        masked = X * selector.get_support()
        learner.predict(masked)
        selector.partial_fit(X, y)
        learner.partial_fit(masked, y)
    return time.process_time() - begin


def evaluated(batches: list[tuple[np.ndarray, np.ndarray]], make: Callable[[], Any], **options: Any) -> float:
    begin = time.process_time()
    prequential(Ready(batches), FIRES(SHARE), make(), batch_size=SIZE, **options)
    return time.process_time() - begin


def compare(n_features: int, n_rows: int, n_batches: int, make: Callable[[], Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features))
    y = (X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=n_rows) > 2.5).astype(int)
    parts = [(X[i : i + SIZE], y[i : i + SIZE]) for i in range(0, n_rows, SIZE)]
    batches = parts * (n_batches // len(parts))
    evaluated(batches, make)  # compiles
    runs = [
        [bare(batches, make), *(evaluated(batches, make, **options) for options in OPTIONS.values())]
        for _ in range(PAIRS)
    ]
    alone = min(row[0] for row in runs) / n_batches * 1e6
    print(f"{n_features:>5} features: FIRES and {make.__name__} {alone:7.1f} us a batch", flush=True)
    for i, name in enumerate(OPTIONS, start=1):
        loop = min(row[i] for row in runs) / n_batches * 1e6
        median = statistics.median(row[i] / row[0] for row in runs)
        print(f"      {name:<34} {loop:7.1f} us, ratio {loop / alone:.3f}, of pairs {median:.3f}", flush=True)


def main() -> None:
    for make in (perceptron, naive_bayes):
        for n_features, n_rows, n_batches in ((57, 20_000, 400), (500, 20_000, 400), (5000, 4_000, 200)):
            compare(n_features, n_rows, n_batches, make)


if __name__ == "__main__":
    main()
