"""T-score and Fisher score: learning a batch, reading the scores, beside scikit-learn's f_classif on the whole data.

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_screening.py
"""

from __future__ import annotations

import functools
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.feature_selection import f_classif

from tamis import FisherScore, TScore


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def learn_all(selector: TScore | FisherScore, batches: list[tuple[np.ndarray, np.ndarray]]) -> None:
    for batch in batches:
        selector.partial_fit(*batch)


def online(batches: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    selector = FisherScore()
    for batch in batches:
        selector.partial_fit(*batch, classes=[0, 1])
    return selector.scores_


def main() -> None:
    rng = np.random.default_rng(0)
    heads = ("T, ms a batch", "Fisher", "T scores, ms", "Fisher", "f_classif / Fisher")
    print(f"{'features':>8} " + " ".join(f"{head:>18}" for head in heads))
    for n_features in (57, 500, 5000, 10_000):
        X = rng.normal(size=(10_000 if n_features <= 5000 else 5_000, n_features))
        y = rng.integers(0, 2, len(X))
        batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, len(X), 100)]
        learn, read = [], []
        for selector in (TScore(), FisherScore()):
            selector.partial_fit(*batches[0], classes=[0, 1])
            rounds = [seconds(functools.partial(learn_all, selector, batches)) for _ in range(5)]
            learn.append(1e3 * statistics.median(rounds) / len(batches))
            read.append(1e3 * statistics.median(seconds(lambda s=selector: s.scores_) for _ in range(9)))

        def online(batches: list = batches) -> object:
            fresh = FisherScore()
            for batch in batches:
                fresh.partial_fit(*batch, classes=[0, 1])
            return fresh.scores_

        ratio = statistics.median(
            seconds(lambda X=X, y=y: f_classif(X, y)) / seconds(online) for _ in range(5)
        )
        print(
            f"{n_features:>8} {learn[0]:>18.4f} {learn[1]:>18.4f} {read[0]:>18.3f} {read[1]:>18.3f} {ratio:>18.2f}",
            flush=True,
        )
    print("\nstate after so many rows of 100 features (bytes)")
    for rows in (10_000, 100_000, 1_000_000):
        selector = TScore()
        for _ in range(rows // 10_000):
            selector.partial_fit(rng.normal(size=(10_000, 100)), rng.integers(0, 2, 10_000), classes=[0, 1])
        print(f"{rows:>10,} {selector._moments.nbytes:>8,}")


if __name__ == "__main__":
    main()
