"""The linear model of the target that forward selection fits on its way, and the classes that it guesses.

The chosen features are those of a triangular system: the factor of their correlations, and what each step has made of
the target (equation (2) of :mod:`tamis.rows.forward.forward`). To solve it costs next to nothing. The model says how
the excess of each class over its share, in units of its share; so all classes have equal weight, even rare ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array
from tamis.rows.forward.scatter import Scatter

__all__ = ["NO_SPREAD", "fitted", "guess", "inverse", "inverse_root", "solve", "target_scales"]

NO_SPREAD = 1e-280  # of a sum of squares in units of the column, which are near its spread


@njit()
def solve(factor: Array, order: Array, made: Array) -> Array:
    """The weights of the model, in standard deviations: back substitution in the triangle that the chosen have in L."""
    weights = made.copy()
    for i in range(len(order) - 1, -1, -1):
        for c in range(weights.shape[1]):
            weights[i, c] /= factor[i, order[i]]
            for h in range(i):
                weights[h, c] -= factor[h, order[i]] * weights[i, c]
    return weights


@njit(strict=True)
def guess(X: Array, first: int, weights: Array, offset: Array) -> Array:
    """Return the class that a linear model of the columns from `first` on makes most of; of a number, 1 above 0."""
    (k, n_targets), n = weights.shape, X.shape[0]
    codes, predicted, column = np.zeros(n, np.int64), np.empty((n_targets, n)), np.empty(n)
    for c in range(n_targets):
        predicted[c] = offset[c]
    for j in range(k):  # all rows at once: the sum of one row would wait for each of its products
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


def fitted(
    scatter: Scatter, at: Array, slopes: Array, n: int, *, of_number: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights and offset of the model of the features at these places, from its slopes in their units.

    The targets of the scatter come after its `n` features.
    """
    share = np.ones(1) if of_number else scatter.mean[n:]
    weights = slopes / scatter.unit_or_one[at, None] * inverse(share)
    return weights, np.where(share > 0.0, -scatter.mean[at] @ weights, -np.inf)


def target_scales(
    scatter: Scatter, of_targets: Array, n: int, *, of_number: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what makes b of the scatter with the targets, and a prediction of what b gives.

    `of_targets` is one over the root of the scatter of each target with itself.
    """
    if of_number:
        return of_targets, inverse(of_targets)
    root = np.sqrt(scatter.weight * np.maximum(scatter.mean[n:], 0.0))
    return scatter.unit[n:] * inverse(root), root


def inverse(values: Array) -> NDArray[np.float64]:
    """Return one over each value, 0 of 0."""
    result: NDArray[np.float64] = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)
    return result


def inverse_root(squares: Array) -> NDArray[np.float64]:
    """Return one over the root of each sum of squares, 0 of a column that does not vary."""
    return inverse(np.sqrt(np.where(squares > NO_SPREAD, squares, 0.0)))
