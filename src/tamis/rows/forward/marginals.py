"""The univariate relevance of very many features, in memory proportional to their number.

Faded means, variances and covariances with the targets, by the same steps as :mod:`tamis.rows.forward.scatter`, but
without the products of two features. A batch of CSR rows costs O(stored values x targets), and O(features x targets)
once.
"""

from __future__ import annotations

from typing import Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Rows
from tamis.rows.forward.scatter import Scatter

# Weight, mean, variance, target mean, covariance.
Moments: TypeAlias = tuple[float, Array, Array, Array, Array]


@njit()
def _sum_csr(
    data: Array, indices: Array, indptr: Array, targets: Array, weight: Array, s1: Array, s2: Array, sy: Array
) -> None:
    """Add sum w x to s1, sum w x^2 to s2 and sum w x t to sy, over the stored values; t is centred."""
    for i in range(indptr.shape[0] - 1):
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            s1[j] += weight[i] * x
            s2[j] += weight[i] * x * x
            for c in range(targets.shape[1]):
                sy[c, j] += weight[i] * x * targets[i, c]


@njit(strict=True)
def of_dense(X: Array, targets: Array, weight: Array, total: float) -> tuple[Array, Array, Array, Array]:
    """Return mean, variance, target mean and covariances of rows; relative to the first row, for accuracy."""
    p, n_targets = X.shape[1], targets.shape[1]
    mean, variance, target_mean = np.zeros(p), np.zeros(p), np.zeros(n_targets)
    covariance = np.zeros((n_targets, p))
    for i in range(1, X.shape[0]):
        share = weight[i] / total
        for j in range(p):
            x = X[i, j] - X[0, j]
            mean[j] += share * x
            variance[j] += share * x * x
        for c in range(n_targets):
            t = share * (targets[i, c] - targets[0, c])
            target_mean[c] += t
            if t != 0.0:  # at most two, for indicators
                for j in range(p):
                    covariance[c, j] += t * (X[i, j] - X[0, j])
    for c in range(n_targets):
        for j in range(p):
            covariance[c, j] -= target_mean[c] * mean[j]
        target_mean[c] += targets[0, c]
    for j in range(p):
        variance[j] = max(variance[j] - mean[j] * mean[j], 0.0)
        mean[j] += X[0, j]
    return mean, variance, target_mean, covariance


@njit(strict=True)
def merge_moments(
    a: float, b: float, mean: Array, variance: Array, target_mean: Array, covariance: Array, new_mean: Array,
    new_variance: Array, new_target_mean: Array, new_covariance: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return mean, variance, target mean and covariance of all rows; a, b: proportions of earlier and new ones."""
    n_targets, p = covariance.shape
    univariate, between = (np.empty(p), np.empty(p), np.empty(n_targets)), np.empty((n_targets, p))
    for j in range(p):
        gap = new_mean[j] - mean[j]
        univariate[0][j] = mean[j] + b * gap
        univariate[1][j] = a * variance[j] + b * new_variance[j] + a * b * gap * gap
    for c in range(n_targets):
        target_gap = new_target_mean[c] - target_mean[c]
        univariate[2][c] = target_mean[c] + b * target_gap
        for j in range(p):
            together = target_gap * (new_mean[j] - mean[j])
            between[c, j] = a * covariance[c, j] + b * new_covariance[c, j] + a * b * together
    return (*univariate, between)


class Marginals(SizedState):
    """Faded mean, variance and covariances with the targets of each feature.

    Parameters
    ----------
    n_features, n_targets : int

    Attributes
    ----------
    weight : float
    mean, variance : ndarray of shape (n_features,), float64
    target_mean : ndarray of shape (n_targets,), float64
    covariance : ndarray of shape (n_targets, n_features), float64

    Examples
    --------
    >>> marginals = Marginals(2, 1)
    >>> X, y = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[0.0], [1.0]])
    >>> marginals.update(X, y, np.ones(2), 1.0)
    >>> marginals.variance, marginals.covariance
    (array([1., 0.]), array([[0.5, 0. ]]))
    """

    _state_spec = Shapes("""
        weight float in [0, 1e150]
        mean (j) float in [-1e150, 1e150] fill 0
        variance (j) float in [0, 1e300] fill 0
        target_mean (c) float in [-1e150, 1e150] fill 0
        covariance (c, j) float in [-1e300, 1e300] fill 0
    """)

    def __init__(self, n_features: int, n_targets: int) -> None:
        self.weight = 0.0
        self.mean, self.variance = np.zeros(n_features), np.zeros(n_features)
        self.target_mean, self.covariance = np.zeros(n_targets), np.zeros((n_targets, n_features))

    @classmethod
    def of_matrix(cls, scatter: Scatter, n: int) -> Self:
        """Return the marginal statistics of the first `n` columns of a scatter matrix; the others are the targets."""
        known = cls(n, len(scatter.mean) - n)
        known.weight = scatter.weight
        if scatter.weight > 0.0:
            known.mean, known.target_mean = scatter.mean[:n].copy(), scatter.mean[n:].copy()
            known.variance = np.diag(scatter.S)[:n] * scatter.unit[:n] ** 2 / scatter.weight
            known.covariance = (scatter.S[:n, n:] * scatter.unit[n:]).T * scatter.unit[:n] / scatter.weight
        return known

    @classmethod
    def of_moments(cls, moments: Moments) -> Self:
        """Return the statistics with these moments."""
        known = cls.__new__(cls)
        known.weight, known.mean, known.variance, known.target_mean, known.covariance = moments
        return known

    def update(self, X: Rows, targets: Array, weight: Array, fade: float) -> None:
        """Update with a batch; the arguments are those of :meth:`tamis.rows.forward.scatter.Scatter.update`."""
        self.merge(moments(X, targets, weight), fade)

    def merge(self, later: Moments, fade: float) -> None:
        """Add the moments of later rows, after the weight of this one is multiplied by `fade`."""
        new, mean, variance, target_mean, covariance = later
        if new > 0.0:
            old = fade * self.weight
            self.weight = total = old + new
            self.mean, self.variance, self.target_mean, self.covariance = merge_moments(
                old / total, new / total, self.mean, self.variance, self.target_mean, self.covariance, mean, variance,
                target_mean, covariance,
            )  # fmt: skip

    @property
    def moments(self) -> Moments:
        """The moments, to be merged into another one."""
        return self.weight, self.mean, self.variance, self.target_mean, self.covariance

    def fade(self, keep: float) -> None:
        """Multiply the weight of all rows so far."""
        self.weight *= keep


def moments(X: Rows, targets: Array, weight: Array) -> Moments:
    """Return weight, mean, variance, target mean and covariances of a block of rows."""
    total = float(weight.sum())
    if not sp.issparse(X):
        X, targets = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(targets)
        return total, *of_dense(X, targets, weight, total)
    s1, s2, sy = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros((targets.shape[1], X.shape[1]))
    target_mean = weight @ targets / total
    _sum_csr(X.data, X.indices, X.indptr, targets - target_mean, weight, s1, s2, sy)
    mean = s1 / total
    return total, mean, np.maximum(s2 / total - mean * mean, 0.0), target_mean, sy / total
