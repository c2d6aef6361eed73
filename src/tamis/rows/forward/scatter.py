"""The faded, centred scatter matrix of features and targets, in units that neither overflow nor vanish.

With rows z = (x, y) of weight w, each weighted by `fading` relative to the next one::

    W <- f W + sum_i w_i                                         f = fading to the number of rows    (1)
    S <- f S + sum_i w_i d_i d_i' + (f W_old w / W) g g'         d_i = z_i - m_batch                 (2)
    m <- m + (w / W) g                                           g = m_batch - m,  w = sum_i w_i     (3)

(Chan, Golub, LeVeque 1983): deviations from the batch mean and, as an additional row, the difference of the means. A
batch is thus one symmetric BLAS product (`dsyrk`), which also fades the old matrix, and a mean that is far from 0 or
changes costs no accuracy. The unit of a column is a power of two close to its largest deviation: the product of two
columns of 1e300 is finite, that of two of 1e-300 is not 0, and no digit is lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats

_WIDEST = 2.0**100  # deviation in units above which a column gets a new unit


@njit()
def _half_range(Z: Array, mean: Array, unit: Array, spread: Array) -> int:
    """Write half the range of the mean and the values of each column; it never overflows.

    Return the number of columns that need a (larger) unit.
    """
    low, high = mean.copy(), mean.copy()
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            low[j] = min(low[j], Z[i, j])
            high[j] = max(high[j], Z[i, j])
    late = 0
    for j in range(Z.shape[1]):
        spread[j] = high[j] / 2.0 - low[j] / 2.0
        late += spread[j] / _WIDEST > unit[j] or (spread[j] > 0.0 and unit[j] == 0.0)
    return late


@njit(strict=True)
def _deviations(
    Z: Array, weight: Array, old: float, arriving: float, mean: Array, unit: Array, rows: Array
) -> Array:
    """Write the deviations of (2), times the root of their weights; return the mean of all rows (3)."""
    n, p = Z.shape
    share = arriving / (old + arriving)
    gap_weight = np.sqrt(old * arriving / (old + arriving))
    step, inverse, centre = np.zeros(p), np.empty(p), np.empty(p)
    for j in range(p):
        inverse[j] = 1.0 / unit[j] if unit[j] > 0.0 else 1.0
    for i in range(n):
        for j in range(p):
            rows[i, j] = Z[i, j] * inverse[j] - mean[j] * inverse[j]
            step[j] += weight[i] * rows[i, j]
    for j in range(p):
        step[j] /= arriving
        rows[n, j] = gap_weight * step[j]
        centre[j] = mean[j] + share * step[j] * (unit[j] if unit[j] > 0.0 else 1.0)
    for i in range(n):
        root = np.sqrt(weight[i])
        for j in range(p):
            rows[i, j] = (rows[i, j] - step[j]) * root
    return centre


def _columns_to_rescale(spread: Array, unit: Array) -> NDArray[np.intp]:
    """Return the columns that need a (larger) unit."""
    return np.flatnonzero((spread / _WIDEST > unit) | ((spread > 0.0) & (unit == 0.0)))


def _power_of_two(size: Array) -> Floats:
    """Return a power of two close to each size, whose inverse is exact."""
    return np.ldexp(1.0, np.clip(np.frexp(size)[1], -1000, 1000))


class Scatter:
    """Faded weight, means and scatter matrix of `n_columns` columns.

    Parameters
    ----------
    n_columns : int

    Attributes
    ----------
    weight, squares : float
        Sums over the rows of w f and w f^2, for weights w that fade by f.
    mean : ndarray of shape (n_columns,), float64
        In units of the data.
    unit : ndarray of shape (n_columns,), float64
        Divisor of a column before it is multiplied by another; 0 while it is constant.
    S : ndarray of shape (n_columns, n_columns), float64, Fortran order
        The scatter (2), in products of units; only the upper triangle is stored.

    Examples
    --------
    >>> scatter = Scatter(2)
    >>> scatter.update(np.array([[1e6, 1.0], [1e6 + 2.0, 3.0], [1e6 + 4.0, 2.0]]), np.ones(3), 1.0)
    >>> scatter.mean, scatter.covariance()
    (array([1.000002e+06, 2.000000e+00]), array([[2.66666667, 0.66666667],
           [0.66666667, 0.66666667]]))
    """

    _state_spec = Shapes("""
        weight float in [0, 1e150]
        squares float in [its.weight**2 * 1e-18, its.weight * 1.01]
        mean (m) finite fill 0
        unit (m) float in [0, inf) fill 0
        S (m, m) float in [-1e150, 1e150] fortran fill 0
    """)

    def __init__(self, n_columns: int) -> None:
        self.weight = self.squares = 0.0
        self.mean, self.unit = np.zeros(n_columns), np.zeros(n_columns)
        self.S = np.zeros((n_columns, n_columns), order="F")

    @property
    def n_effective(self) -> float:
        """Effective number of rows that do not fade; without fading, their weight."""
        return self.weight**2 / self.squares if self.squares > 0.0 else 0.0

    def update(self, Z: Array, weight: Array, fade: float, squares: float | None = None) -> None:
        """Update with a batch.

        Parameters
        ----------
        Z : ndarray of shape (n_rows, n_columns), float64
            Finite.
        weight : ndarray of shape (n_rows,)
            Positive.
        fade : float in (0, 1]
            Factor of the weight of all earlier rows.
        squares : float, optional
            Sum of w f^2 over the batch; by default rows do not fade within it.
        """
        if self.weight == 0.0:
            self.mean = Z[0].copy()  # deviations of a constant column are exactly 0
        self._find_units(Z)
        old, arriving = fade * self.weight, float(weight.sum())
        rows = np.empty((len(Z) + 1, Z.shape[1]))
        mean = _deviations(Z, weight, old, arriving, self.mean, self.unit, rows)
        self.S = dsyrk(1.0, rows.T, beta=fade, c=self.S, overwrite_c=1)  # (2)
        self.mean, self.weight = mean, old + arriving
        self.squares = fade**2 * self.squares + (arriving if squares is None else squares)

    def _find_units(self, Z: Array) -> None:
        """Set the unit of columns that vary for the first time, or have outgrown theirs."""
        spread = np.empty(len(self.mean))
        if _half_range(Z, self.mean, self.unit, spread):
            late = _columns_to_rescale(spread, self.unit)
            self.unit = self.unit.copy()
            shrink = np.ones(len(self.unit))
            unit = _power_of_two(spread[late])
            shrink[late], self.unit[late] = self.unit[late] / unit, unit
            self.S *= shrink
            self.S *= shrink[:, None]

    @property
    def unit_or_one(self) -> Floats:
        """The unit, 1 for a constant column."""
        return np.where(self.unit > 0.0, self.unit, 1.0)

    def grow(self, n_columns: int) -> None:
        """Append columns that were 0 in all rows so far."""
        self._state_spec.extend(self, "m", n_columns)
        self.S = np.asfortranarray(self.S)

    def insert(self, at: int, n_new: int) -> None:
        """Insert columns that were 0 in all rows so far before position `at`."""
        n = len(self.mean)
        self.grow(n + n_new)
        self.reorder(np.concatenate([np.arange(at), np.arange(n, n + n_new), np.arange(at, n)]))

    def forget(self, columns: Array) -> None:
        """Set some columns to 0 in all rows so far."""
        self._state_spec.reset(self, "m", columns)
        self.S = np.asfortranarray(self.S)

    def reorder(self, order: Array) -> None:
        """Put the columns into another order."""
        self.mean, self.unit = self.mean[order], self.unit[order]
        full = np.triu(self.S) + np.triu(self.S, 1).T
        self.S = np.asfortranarray(full[np.ix_(order, order)])

    def replace(
        self, at: Array, mean: Array, variance: Array, covariance: Array, Z: Array, weight: Array
    ) -> None:
        """Replace some columns by others with known covariances with the last columns.

        Parameters
        ----------
        at : ndarray of int
            The columns to replace.
        mean, variance : ndarray of shape (len(at),)
            Of the new columns, in units of the data.
        covariance : ndarray of shape (n_last, len(at))
            With the last columns.
        Z : ndarray of shape (n_rows, n_columns - n_last)
            Rows in which all new columns are known; the remaining covariances are estimated from them.
        weight : ndarray of shape (n_rows,)
            Their weights.
        """
        n = len(self.mean) - len(covariance)
        unit = np.where(variance > 0.0, _power_of_two(np.sqrt(variance)), 0.0)
        self.mean, self.unit = self.mean.copy(), self.unit.copy()
        self.mean[at], self.unit[at] = mean, unit
        safe = self.unit_or_one
        deviation = Z / safe[:n] - self.mean[:n] / safe[:n]
        between = (weight[:, None] * deviation[:, at]).T @ deviation
        self.S[at, :n], self.S[:n, at] = between, between.T
        self.S[at, at] = self.weight * variance / safe[at] ** 2
        self.S[at, n:] = (self.weight * covariance / safe[n:, None] / safe[at]).T

    def fade(self, keep: float) -> None:
        """Multiply the weight of all rows so far."""
        self.weight, self.squares, self.S = keep * self.weight, keep**2 * self.squares, keep * self.S

    def covariance(self) -> Floats:
        """Return the covariance matrix in units of the data."""
        upper = np.triu(self.S)
        values: Floats = (upper + np.triu(upper, 1).T) / max(self.weight, 1e-300)
        return values * self.unit * self.unit[:, None]

    def merge(self, later: Scatter, fade: float) -> None:
        """Add the rows of another scatter matrix, as if they had followed those of this one.

        Parameters
        ----------
        later : Scatter
            With the same columns.
        fade : float in (0, 1]
            Factor of the weight of this one's rows.
        """
        if later.weight == 0.0:
            return
        unit = np.maximum(self.unit, later.unit)
        if self.weight > 0.0:  # different constants form a column that varies
            spread = np.abs(later.mean / 2.0 - self.mean / 2.0)
            late = _columns_to_rescale(spread, unit)
            unit[late] = _power_of_two(spread[late])
        safe = np.where(unit > 0.0, unit, 1.0)
        mine, theirs = self.unit / safe, later.unit / safe
        old, total = fade * self.weight, fade * self.weight + later.weight
        gap = later.mean / safe - (self.mean if self.weight > 0.0 else later.mean) / safe
        S = fade * (self.S * mine * mine[:, None]) + later.S * theirs * theirs[:, None]
        S += old * later.weight / total * np.outer(gap, gap)
        self.mean = (
            later.mean.copy() if self.weight == 0.0 else self.mean + (later.weight / total * gap) * safe
        )
        self.S, self.unit = np.asfortranarray(S), unit
        self.weight, self.squares = total, fade**2 * self.squares + later.squares
