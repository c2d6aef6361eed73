"""Time of ten targets over that of one, for selectors wrapped in PerTarget, in one run on one thread.

    python benchmarks/bench_per_target.py [--bound]

Median of five passes each, alternating, over 20,000 rows in batches of 2,000. "Alone": ten selectors fitted one by one.
--bound: ten targets of forward selection as if all but one had their matrix of the features for nothing, which bounds
what sharing it can gain; the selections are then wrong.
"""

import argparse
from statistics import median
from time import process_time

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from tamis import FisherScore, ForwardPartialCorrelation, MutualInformation, PerTarget, TScore
from tamis.rows.forward.scatter import Scatter

N_ROWS, BATCH, N_TARGETS, PASSES = 20_000, 2_000, 10, 5


def seconds(model, X, y):
    model = clone(model).partial_fit(X[:BATCH], y[:BATCH])
    start = process_time()
    for row in range(BATCH, len(X), BATCH):
        model.partial_fit(X[row : row + BATCH], y[row : row + BATCH])
    return process_time() - start


def without_matrix(model, X, y):
    """Return the time of PerTarget if only the matrix of its first target is updated."""
    model = PerTarget(model).partial_fit(X[:BATCH], y[:BATCH])
    update, first = Scatter.update, model.selectors_[0]._scatter

    def update_first(self, Z, weight, fade, squares=None):
        if self is first:
            update(self, Z, weight, fade, squares)
        else:
            self.weight, self.squares = first.weight, first.squares

    Scatter.update = update_first
    try:
        start = process_time()
        for row in range(BATCH, len(X), BATCH):
            model.partial_fit(X[row : row + BATCH], y[row : row + BATCH])
        return process_time() - start
    finally:
        Scatter.update = update


def bound():
    rng = np.random.default_rng(0)
    print("| features | ten, over one | ten if the matrix were shared, over one |")
    print("| --- | --- | --- |")
    for n_features, n_rows, passes in ((50, N_ROWS, 3), (1000, N_ROWS // 4, 1)):
        X = rng.normal(size=(n_rows, n_features))
        Y = (X[:, :N_TARGETS] + rng.normal(size=(n_rows, N_TARGETS)) > 0).astype(np.int64)
        selector = ForwardPartialCorrelation(5)
        times = [
            (
                seconds(selector, X, Y[:, 0]),
                seconds(PerTarget(selector), X, Y),
                without_matrix(selector, X, Y),
            )
            for _ in range(passes)
        ]
        one, ten, shared = (median(column) for column in zip(*times, strict=True))
        print(f"| {n_features} | {ten / one:.1f} | {shared / one:.1f} |", flush=True)


def main():
    rng = np.random.default_rng(0)
    print("| selector | features | one target, us per row | ten, over one | alone, over one |")
    print("| --- | --- | --- | --- | --- |")
    for selector, n_features in (
        (TScore(5), 200), (TScore(5), 1000), (FisherScore(5), 1000), (MutualInformation(5), 50),
        (ForwardPartialCorrelation(5), 50), (ForwardPartialCorrelation(5), 1000),
    ):  # fmt: skip
        n_rows = N_ROWS if n_features < 1000 else N_ROWS // 4
        X = rng.normal(size=(n_rows, n_features))
        Y = (X[:, :N_TARGETS] + rng.normal(size=(n_rows, N_TARGETS)) > 0).astype(np.int64)
        times = [
            (
                seconds(selector, X, Y[:, 0]),
                seconds(PerTarget(selector), X, Y),
                sum(seconds(selector, X, Y[:, t]) for t in range(N_TARGETS)),
            )
            for _ in range(PASSES if n_features < 1000 else 1)
        ]
        one, ten, alone = (median(column) for column in zip(*times, strict=True))
        name = type(selector).__name__
        per_row = one / (n_rows - BATCH) * 1e6
        print(f"| {name} | {n_features} | {per_row:.2f} | {ten / one:.1f} | {alone / one:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound", action="store_true")
    with threadpool_limits(1):
        (bound if parser.parse_args().bound else main)()
