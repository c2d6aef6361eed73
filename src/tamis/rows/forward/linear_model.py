"""The linear model of the target that forward selection fits as a by-product, and the classes it predicts.

The selected features define a triangular system: the factor of their correlations, and the projection of the target in
each step (equation (2) of :mod:`tamis.rows.forward.forward`). Solving it is inexpensive. The model predicts the excess
of each class over its proportion, relative to its proportion, so all classes have equal weight, even rare ones.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats
from tamis.rows.forward.scatter import Scatter

NO_SPREAD = 1e-280  # of a sum of squares in units of the column, which are close to its spread


@njit()
def solve(factor: Array, order: Array, made: Array) -> Array:
    """Return the standardised weights of the model: back substitution in the triangle of the selected features in L."""
    weights = made.copy()
    for i in range(len(order) - 1, -1, -1):
        for c in range(weights.shape[1]):
            weights[i, c] /= factor[i, order[i]]
            for h in range(i):
                weights[h, c] -= factor[h, order[i]] * weights[i, c]
    return weights


@njit(strict=True)
def guess(X: Array, first: int, weights: Array, offset: Array) -> Array:
    """Return the class of the largest output of a model of the columns from `first` on; for a number, 1 above 0."""
    (k, n_targets), n = weights.shape, X.shape[0]
    codes, predicted, column = np.zeros(n, np.int64), np.empty((n_targets, n)), np.empty(n)
    for c in range(n_targets):
        predicted[c] = offset[c]
    for j in range(k):  # all rows at once: a sum per row would be latency-bound
        for i in range(n):
            column[i] = X[i, first + j]
        for c in range(n_targets):
            for i in range(n):
                predicted[c, i] += column[i] * weights[j, c]
    for i in range(n):
        codes[i] = predicted[0, i] > 0.0 if n_targets == 1 else 0
        for c in range(1, n_targets):
            if predicted[c, i] > predicted[codes[i], i]:
                codes[i] = c
    return codes


def unscale(scatter: Scatter, at: Array, slopes: Array, n: int, *, of_number: bool) -> tuple[Floats, Floats]:
    """Return weights and offset of the model of the features at these positions, from its slopes in their units.

    The targets of the scatter matrix follow its `n` features.
    """
    share = np.ones(1) if of_number else scatter.mean[n:]
    weights = slopes / scatter.unit_or_one[at, None] * inverse(share)
    return weights, np.where(share > 0.0, -scatter.mean[at] @ weights, -np.inf)


def target_scales(scatter: Scatter, of_targets: Array, n: int, *, of_number: bool) -> tuple[Floats, Floats]:
    """Return the factors that convert the scatter with the targets to b, and outputs of b to a prediction.

    `of_targets` is the inverse root of the scatter of each target with itself.
    """
    if of_number:
        return of_targets, inverse(of_targets)
    root = np.sqrt(scatter.weight * np.maximum(scatter.mean[n:], 0.0))
    return scatter.unit[n:] * inverse(root), root


def inverse(values: Array) -> Floats:
    """Return the inverse of each value, 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)


def inverse_root(squares: Array) -> Floats:
    """Return the inverse root of each sum of squares, 0 for a constant column."""
    return inverse(np.sqrt(np.where(squares > NO_SPREAD, squares, 0.0)))
