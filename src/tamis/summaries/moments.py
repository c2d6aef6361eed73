"""Mean and variance of every feature of a stream, in one pass and fixed memory.

Rows are summed as deviations from the running mean, so that a large offset costs no digits (Chan, Golub and
LeVeque 1983). With fading, older rows weigh less: before a batch the weight of all earlier rows is multiplied by
a factor, which scales the count and the sum of squares and leaves the mean as it is.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._jit import njit

__all__ = ["RunningMoments"]


@njit()
def _deviations(X: Array, weight: Array, centre: Array, s1: Array, s2: Array) -> None:
    """s1 += sum w (x - c), s2 += sum w (x - c)^2; four rows share one pass over the sums."""
    n, J = X.shape
    weighted = weight.shape[0] == n
    for i in range(0, n, 4):
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        w0 = weight[i] if weighted else 1.0
        w1 = (weight[i1] if weighted else 1.0) if i + 1 < n else 0.0
        w2 = (weight[i2] if weighted else 1.0) if i + 2 < n else 0.0
        w3 = (weight[i3] if weighted else 1.0) if i + 3 < n else 0.0
        x0, x1, x2, x3 = X[i], X[i1], X[i2], X[i3]
        for j in range(J):
            c = centre[j]
            z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
            s1[j] += w0 * z0 + w1 * z1 + w2 * z2 + w3 * z3
            s2[j] += w0 * z0 * z0 + w1 * z1 * z1 + w2 * z2 * z2 + w3 * z3 * z3


@njit()
def _deviations_csr(
    data: Array, indices: Array, indptr: Array, weight: Array, total: float, centre: Array, s1: Array, s2: Array
) -> None:
    """As `_deviations`; every row first counts as all zeros, then its stored values make the difference."""
    n, J = indptr.shape[0] - 1, centre.shape[0]
    weighted = weight.shape[0] == n
    for j in range(J):
        s1[j] = -total * centre[j]
        s2[j] = total * centre[j] * centre[j]
    for i in range(n):
        w = weight[i] if weighted else 1.0
        for at in range(indptr[i], indptr[i + 1]):
            x, j = float(data[at]), indices[at]
            s1[j] += w * x
            s2[j] += w * x * (x - 2.0 * centre[j])


@njit()
def _absorb(s1: Array, s2: Array, before: float, after: float, keep: float, mean: Array, m2: Array) -> bool:
    """Move the moments to what they are with the batch; False, and nothing changed, if a sum is not finite."""
    J = mean.shape[0]
    total = 0.0
    for j in range(J):
        total += s2[j] * 0.0 + s1[j] * 0.0
    if total != 0.0:
        return False
    for j in range(J):
        shift = s1[j] / after
        mean[j] += shift
        m2[j] = max(keep * m2[j] + s2[j] - shift * s1[j], 0.0)
    return True


class RunningMoments:
    """Weighted count, mean and variance of each feature.

    Parameters
    ----------
    n_features : int

    Attributes
    ----------
    weight : float
        Sum of the (faded) row weights.
    mean : ndarray of shape (n_features,), float64
    m2 : ndarray of shape (n_features,), float64
        Sum of the weighted squared deviations from the mean.

    Examples
    --------
    >>> moments = RunningMoments(2)
    >>> moments.update(np.array([[1e6, 0.0], [1e6 + 2, 0.0]]))
    True
    >>> moments.mean, moments.variance()
    (array([1000001., 0.]), array([1., 0.]))
    """

    def __init__(self, n_features: int) -> None:
        self.weight = 0.0
        self.mean = np.zeros(n_features)
        self.m2 = np.zeros(n_features)

    def update(self, X: Rows, sample_weight: Array | None = None, keep: float = 1.0) -> bool:
        """Take in a batch of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float in (0, 1]
            What the weight of all earlier rows is multiplied by first.

        Returns
        -------
        bool
            False, and nothing is changed, if a sum over the batch is NaN or infinite.
        """
        n, n_features = X.shape
        weight = _NO_WEIGHT if sample_weight is None else sample_weight
        arriving = float(n) if sample_weight is None else float(sample_weight.sum())
        before = keep * self.weight
        if arriving == 0.0:
            return True
        s1, s2 = np.zeros(n_features), np.zeros(n_features)
        if sp.issparse(X):
            _deviations_csr(X.data, X.indices, X.indptr, weight, arriving, self.mean, s1, s2)
        elif self.weight == 0.0:  # nothing to deviate from yet: the first row will do
            first = X[0].astype(np.float64)
            if not np.isfinite(first).all():
                return False
            _deviations(X, weight, first, s1, s2)
            if not _absorb(s1, s2, 0.0, arriving, 1.0, self.mean, self.m2):
                return False
            self.mean += first
            self.weight = arriving
            return True
        else:
            _deviations(X, weight, self.mean, s1, s2)
        if not _absorb(s1, s2, before, before + arriving, keep, self.mean, self.m2):
            return False
        self.weight = before + arriving
        return True

    def variance(self) -> NDArray[np.float64]:
        """Return the variance (divided by the weight, not the weight less one), shape (n_features,)."""
        return self.m2 / self.weight if self.weight > 0.0 else np.zeros_like(self.m2)

    def inverse_scale(self) -> NDArray[np.float64]:
        """Return one over the standard deviation; 0 for a constant feature, which has nothing to tell."""
        variance = self.variance()
        with np.errstate(divide="ignore"):
            return np.where(variance > 0.0, 1.0 / np.sqrt(variance), 0.0)

    def merge(self, other: RunningMoments) -> None:
        """Take in what another summary of the same features has seen.

        Raises
        ------
        ValueError
            If the numbers of features differ.
        """
        if other.mean.shape != self.mean.shape:
            raise ValueError(
                f"Cannot merge moments of {other.mean.shape[0]} features into moments of {self.mean.shape[0]}."
            )
        if other.weight == 0.0:
            return
        total = self.weight + other.weight
        gap = other.mean - self.mean
        self.m2 = self.m2 + other.m2 + gap * gap * (self.weight * other.weight / total)
        self.mean = self.mean + gap * (other.weight / total)
        self.weight = total


_NO_WEIGHT = np.empty(0)
