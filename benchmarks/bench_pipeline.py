"""StreamPipeline against the loop that one writes by hand with scikit-learn's parts.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_pipeline.py [--rows 20000]

By hand: `StandardScaler.partial_fit`, the selector, zeros in the columns that are not selected, the learner. Both
predict each batch before they learn from it. They run in turn, in processor time; printed is the median of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from tamis import FIRES, FisherScore, StreamPipeline

Batches = list[tuple[np.ndarray, np.ndarray]]


def by_hand(selector: Any, learner: Any, batches: Batches) -> tuple[float, float]:
    begin, right, scaler, mask = time.process_time(), 0, StandardScaler(), None
    for X, y in batches:
        if mask is not None:
            right += np.count_nonzero(learner.predict(given(X, scaler, mask)) == y)
        selector.partial_fit(X, y, classes=[0, 1])
        scaler.partial_fit(X)
        mask = selector.get_support()
        learner.partial_fit(given(X, scaler, mask), y, classes=[0, 1])
    return time.process_time() - begin, right / sum(len(y) for _, y in batches[1:])


def given(X: np.ndarray, scaler: StandardScaler, mask: np.ndarray) -> np.ndarray:
    return np.where(mask, scaler.transform(X), 0.0)


def pipeline(model: StreamPipeline, batches: Batches) -> tuple[float, float]:
    begin, right = time.process_time(), 0
    for k, (X, y) in enumerate(batches):
        if k:
            right += np.count_nonzero(model.predict(X) == y)
        model.partial_fit(X, y, classes=[0, 1])
    return time.process_time() - begin, right / sum(len(y) for _, y in batches[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    n_rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 50)) * 10.0 ** rng.integers(-3, 4, size=50)
    units = X / X.std(axis=0)
    y = (units[:, 3] - units[:, 9] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    print("| selector | rows in a call and a block | pipeline / by hand | accuracy | by hand |")
    print("| --- | --- | --- | --- | --- |")
    for selector in (FisherScore(5), FIRES(5)):
        for size in (100, 1000):
            batches = [(X[at : at + size], y[at : at + size]) for at in range(0, n_rows, size)]
            ratios = []
            for _ in range(4):
                parts = clone(selector), SGDClassifier(random_state=0)
                ours, good = pipeline(StreamPipeline(*map(clone, parts), batch_size=size), batches)
                theirs, hand = by_hand(*parts, batches)
                ratios.append(ours / theirs)
            ratio = statistics.median(ratios[1:])  # the first is compiled
            print(
                f"| `{type(selector).__name__}` | {size:,} | {ratio:.2f} | {good:.3f} | {hand:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
