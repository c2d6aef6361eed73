"""Mean and variance of every feature of a stream, in one pass and fixed memory.

Rows are summed as deviations from the running mean, so that a large offset costs no digits (Chan, Golub and
LeVeque 1983). With fading, the weight of all earlier rows is multiplied by a factor before each batch, which scales the
count and the sum of squares and leaves the mean unchanged.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from tamis._atomic import atomic
from tamis._guard import ThreadSafeState
from tamis._kernels import njit
from tamis._validation import Array, Floats, Rows


@njit()
def add_deviations(X: Array, rows: Array, w: Array, centre: Array, s1: Array, s2: Array) -> None:
    """s1 += sum w (x - c), s2 += sum w (x - c)^2 over four rows of X, in one pass over the sums."""
    x0, x1, x2, x3 = X[rows[0]], X[rows[1]], X[rows[2]], X[rows[3]]
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for j in range(X.shape[1]):
        c = centre[j]
        z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
        u0, u1, u2, u3 = w0 * z0, w1 * z1, w2 * z2, w3 * z3
        s1[j] += u0 + u1 + u2 + u3
        s2[j] += u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3


@njit()
def _sum_dense(X: Array, weight: Array, centre: Array, s1: Array, s2: Array) -> None:
    n = X.shape[0]
    rows, w = np.empty(4, np.int64), np.empty(4)
    for i in range(0, n, 4):
        for r in range(4):
            rows[r] = min(i + r, n - 1)
            w[r] = 0.0 if i + r >= n else (weight[i + r] if weight.shape[0] else 1.0)
        add_deviations(X, rows, w, centre, s1, s2)


@njit()
def _sum_csr(
    data: Array,
    indices: Array,
    indptr: Array,
    weight: Array,
    total: float,
    centre: Array,
    s1: Array,
    s2: Array,
) -> None:
    """Sum CSR rows: each row is first added as all zeros, then corrected by its stored values."""
    for j in range(centre.shape[0]):
        s1[j] = -total * centre[j]
        s2[j] = total * centre[j] * centre[j]
    for i in range(indptr.shape[0] - 1):
        w = weight[i] if weight.shape[0] else 1.0
        for at in range(indptr[i], indptr[i + 1]):
            x, j = float(data[at]), indices[at]
            s1[j] += w * x
            s2[j] += w * x * (x - 2.0 * centre[j])


@njit()
def all_finite(sums: Array) -> bool:
    """Whether no value is NaN or infinite."""
    check = 0.0
    for value in sums:
        check += value * 0.0
    return check == 0.0


@njit()
def absorbed(s1: Array, s2: Array, weight: float, keep: float, mean: Array, m2: Array) -> tuple[Array, Array]:
    """Return the mean and the sum of squares, updated with the batch."""
    new_mean, new_m2 = np.empty_like(mean), np.empty_like(m2)
    for j in range(mean.shape[0]):
        shift = s1[j] / weight
        new_mean[j] = mean[j] + shift
        new_m2[j] = max(keep * m2[j] + s2[j] - shift * s1[j], 0.0)
    return new_mean, new_m2


@njit()
def _absorb_zeros(total: float, weight: float, keep: float, mean: Array, m2: Array) -> None:
    """Update mean and sum of squares in place with rows of zeros, of total weight `total`."""
    for j in range(mean.shape[0]):
        s1 = -total * mean[j]
        shift = s1 / weight
        m2[j] = max(keep * m2[j] - s1 * mean[j] - shift * s1, 0.0)
        mean[j] += shift


@njit()
def inverse_scale(m2: Array, weight: float) -> Array:
    """Return the reciprocal standard deviation of each feature; 0 for a constant feature."""
    inverse = np.zeros(m2.shape[0])
    for j in range(m2.shape[0]):
        if m2[j] > 0.0:
            inverse[j] = math.sqrt(weight / m2[j])
    return inverse


class RunningMoments(ThreadSafeState):
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
    >>> import numpy as np
    >>> moments = RunningMoments(2)
    >>> moments.update(np.array([[1e6, 0.0], [1e6 + 2, 0.0]]))
    True
    >>> moments.mean, moments.variance()
    (array([1000001., 0.]), array([1., 0.]))
    """

    _shapes = "mean (j) finite fill 0  m2 (j) float in [0, inf) fill 0  weight float in [0, inf)"

    def __init__(self, n_features: int) -> None:
        self.weight = 0.0
        self.mean = np.zeros(n_features)
        self.m2 = np.zeros(n_features)

    def update(self, X: Rows, sample_weight: Array | None = None, keep: float = 1.0) -> bool:
        """Add a batch of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float in (0, 1]
            Factor for the weight of all earlier rows, applied first.

        Returns
        -------
        bool
            False, with the state unchanged, if a sum over the batch is NaN or infinite.
        """
        weight = _NO_WEIGHT if sample_weight is None else sample_weight
        arriving = float(X.shape[0]) if sample_weight is None else float(sample_weight.sum())
        s1, s2, centre = np.zeros_like(self.mean), np.zeros_like(self.m2), self.mean
        if self.weight == 0.0 and not sp.issparse(X) and np.isfinite(X[0]).all():
            centre = X[0].astype(np.float64)  # no mean yet: use the first row
        if not self.add(X, weight, s1, s2, centre=centre):
            return False
        self.absorb(s1, s2, arriving, keep, centre=centre)
        return True

    def add(
        self,
        X: Rows,
        weight: Array,
        s1: Array,
        s2: Array,
        columns: Array | None = None,
        centre: Array | None = None,
    ) -> bool:
        """Add the deviations of the rows from the mean, and their squares; return False if a sum is not finite.

        An empty `weight` means that every row weighs 1. CSR rows and sums may be restricted to some columns. Before the
        first row, `centre` may replace the mean, here and in `absorb`.
        """
        mean = self.mean if centre is None else centre
        if sp.issparse(X):
            arriving = float(weight.sum()) if len(weight) else float(X.shape[0])
            mean = mean if columns is None else mean[columns]
            _sum_csr(X.data, X.indices, X.indptr, weight, arriving, mean, s1, s2)
        else:
            _sum_dense(X, weight, mean, s1, s2)
        return bool(all_finite(s1) and all_finite(s2))

    def absorb(
        self,
        s1: Array,
        s2: Array,
        arriving: float,
        keep: float = 1.0,
        columns: Array | None = None,
        centre: Array | None = None,
    ) -> None:
        """Update the moments with a batch of weight `arriving` and its sums from `add` or a kernel; all finite.

        If the sums are restricted to some columns, the other columns were 0 in all rows.
        """
        self.weight = keep * self.weight + arriving
        if arriving <= 0.0:
            return
        if columns is None:
            mean = self.mean if centre is None else centre
            self.mean, self.m2 = absorbed(s1, s2, self.weight, keep, mean, self.m2)
            return
        some = absorbed(s1, s2, self.weight, keep, self.mean[columns], self.m2[columns])
        _absorb_zeros(arriving, self.weight, keep, self.mean, self.m2)
        self.mean[columns], self.m2[columns] = some

    def variance(self) -> Floats:
        """Return the population variance (divisor: the weight), shape (n_features,)."""
        return self.m2 / self.weight if self.weight > 0.0 else np.zeros_like(self.m2)

    def inverse_scale(self) -> Floats:
        """Return the reciprocal standard deviation of each feature; 0 for a constant feature."""
        return inverse_scale(self.m2, self.weight)

    def fade(self, keep: float) -> None:
        """Multiply the weight of all rows by `keep`, in [0, 1]."""
        self.weight, self.m2 = keep * self.weight, keep * self.m2

    @atomic
    def merge(self, other: RunningMoments) -> None:
        """Add another summary of the same features, each with its weights as of its last row.

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
