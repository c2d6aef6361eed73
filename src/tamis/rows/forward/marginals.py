"""The relevance of each of very many features by itself, in memory proportional to their number.

Faded means, variances and covariances with the targets, by the same steps as :mod:`tamis.rows.forward.scatter`, but
without the products of two features. A block of CSR rows costs O(stored values x targets), and O(features x targets)
once.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._jit import njit

__all__ = ["Marginals"]


@njit()
def _sum_csr(
    data: Array, indices: Array, indptr: Array, targets: Array, weight: Array, s1: Array, s2: Array, sy: Array
) -> None:
    """s1 += sum w x, s2 += sum w x^2, sy += sum w x t over the stored values, t as its deviation from the mean."""
    for i in range(indptr.shape[0] - 1):
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            s1[j] += weight[i] * x
            s2[j] += weight[i] * x * x
            for c in range(targets.shape[1]):
                sy[c, j] += weight[i] * x * targets[i, c]


@njit(strict=True)
def _merged(
    a: float, b: float, mean: Array, variance: Array, target_mean: Array, covariance: Array, new_mean: Array,
    new_variance: Array, new_target_mean: Array, new_covariance: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return mean, variance, target mean and covariance of all rows; a and b are the shares of earlier and new ones."""
    n_targets, p = covariance.shape
    found, between = (np.empty(p), np.empty(p), np.empty(n_targets)), np.empty((n_targets, p))
    for j in range(p):
        gap = new_mean[j] - mean[j]
        found[0][j] = mean[j] + b * gap
        found[1][j] = a * variance[j] + b * new_variance[j] + a * b * gap * gap
    for c in range(n_targets):
        target_gap = new_target_mean[c] - target_mean[c]
        found[2][c] = target_mean[c] + b * target_gap
        for j in range(p):
            together = target_gap * (new_mean[j] - mean[j])
            between[c, j] = a * covariance[c, j] + b * new_covariance[c, j] + a * b * together
    return (*found, between)


class Marginals:
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

    def __init__(self, n_features: int, n_targets: int) -> None:
        self.weight = 0.0
        self.mean, self.variance = np.zeros(n_features), np.zeros(n_features)
        self.target_mean, self.covariance = np.zeros(n_targets), np.zeros((n_targets, n_features))

    def update(self, X: Rows, targets: Array, weight: Array, fade: float) -> None:
        """Take in a block of rows; the arguments are those of :meth:`tamis.rows.scatter.Scatter.update`."""
        arriving = float(weight.sum())
        target_mean = weight @ targets / arriving
        mean, variance, covariance = _of_block(X, targets - target_mean, weight, arriving)
        self._combine(fade * self.weight, arriving, mean, variance, target_mean, covariance)

    def _combine(
        self, old: float, new: float, mean: Array, variance: Array, target_mean: Array, covariance: Array
    ) -> None:
        self.weight = total = old + new
        self.mean, self.variance, self.target_mean, self.covariance = _merged(
            old / total, new / total, self.mean, self.variance, self.target_mean, self.covariance, mean, variance,
            target_mean, covariance,
        )  # fmt: skip

    def merge(self, later: Marginals, fade: float) -> None:
        """Take in the rows of others as if they had come after those of this one."""
        if later.weight > 0.0:
            self._combine(
                fade * self.weight,
                later.weight,
                later.mean,
                later.variance,
                later.target_mean,
                later.covariance,
            )

    def grow(self, n_targets: int) -> None:
        """Append targets that were 0 in all rows so far."""
        new = n_targets - len(self.target_mean)
        self.target_mean = np.pad(self.target_mean, (0, new))
        self.covariance = np.pad(self.covariance, ((0, new), (0, 0)))

    def widen(self, n_features: int) -> None:
        """Append features that were 0 in all rows so far."""
        new = n_features - len(self.mean)
        self.mean, self.variance = np.pad(self.mean, (0, new)), np.pad(self.variance, (0, new))
        self.covariance = np.pad(self.covariance, ((0, 0), (0, new)))

    def forget(self, columns: Array) -> None:
        """Know of some features that they were 0 in all rows so far."""
        self.mean, self.variance, self.covariance = (
            self.mean.copy(),
            self.variance.copy(),
            self.covariance.copy(),
        )
        self.mean[columns] = self.variance[columns] = 0.0
        self.covariance[:, columns] = 0.0

    def fade(self, keep: float) -> None:
        """Multiply the weight of all rows so far."""
        self.weight *= keep


def _of_block(
    X: Rows, targets: Array, weight: Array, total: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean, variance and covariances of the rows of a block."""
    if sp.issparse(X):
        s1, s2, sy = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros((targets.shape[1], X.shape[1]))
        _sum_csr(X.data, X.indices, X.indptr, targets, weight, s1, s2, sy)
        mean = s1 / total
        return mean, np.maximum(s2 / total - mean * mean, 0.0), sy / total
    first = X[0].astype(np.float64)
    deviation = X - first
    mean = weight @ deviation / total
    variance = np.maximum(weight @ (deviation * deviation) / total - mean * mean, 0.0)
    return first + mean, variance, (weight[:, None] * targets).T @ deviation / total
