"""Time of ten targets over that of one, for selectors wrapped in PerTarget, in one run on one thread.

    python benchmarks/bench_per_target.py [--bound]

Median of five passes each, alternating, over 20,000 rows in batches of 2,000. "Alone": ten selectors fitted one by one.
--bound: what sharing can gain, with wrong selections: the time as if all targets but one had for nothing their matrix
of the features (forward selection), or the sorting and the counts in fixed bins (mutual information), and as if all had
the sums of the rows (T scores).
"""

import argparse
from contextlib import ExitStack
from statistics import median
from time import process_time
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from tamis import FisherScore, ForwardPartialCorrelation, MutualInformation, PerTarget, TScore
from tamis.rows.forward.scatter import Scatter
from tamis.summaries import class_moments, fixed_bins
from tamis.summaries.quantile_points import Levels, kernels

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


def thin_unsorted(self, block, points, weight, slot):
    kernels.halve(
        points, np.full(len(slot), weight[0]), slot, block.points, block.weight, self.low, self.high
    )
    return np.broadcast_to(np.arange(points.shape[1]), points.shape)


def no_sums(X, codes, first, tile):
    return tuple(np.zeros((3, first[-1], X.shape[1])))


def free(selector, X, y):
    """Return the time without the work that depends on the features."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(Levels, "thin_rows", thin_unsorted))
        stack.enter_context(patch.object(fixed_bins, "_count", lambda *given: None))
        stack.enter_context(patch.object(class_moments, "_sum_targets", no_sums))
        return seconds(selector, X, y)


def bound():
    rng = np.random.default_rng(0)
    print("| selector | features | ten, over one | ten if this were shared, over one |")
    print("| --- | --- | --- | --- |")
    for selector, n_features in ((MutualInformation(5), 50), (TScore(5), 200)):
        X = rng.normal(size=(N_ROWS, n_features))
        Y = (X[:, :N_TARGETS] + rng.normal(size=(N_ROWS, N_TARGETS)) > 0).astype(np.int64)
        ratios = []
        for _ in range(PASSES):
            one, ten = seconds(selector, X, Y[:, 0]), seconds(PerTarget(selector), X, Y)
            own = one - free(selector, X, Y[:, 0])
            ratios.append((ten / one, (free(PerTarget(selector), X, Y) + own) / one))
        now, shared = (median(column) for column in zip(*ratios, strict=True))
        print(f"| {type(selector).__name__} | {n_features} | {now:.1f} | {shared:.1f} |", flush=True)
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
        print(
            f"| ForwardPartialCorrelation | {n_features} | {ten / one:.1f} | {shared / one:.1f} |", flush=True
        )


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
