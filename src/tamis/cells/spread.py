"""Evidence for the class from the variance of a column, which a covariance common to all classes ignores.

Rows of a class are assumed normal about its mean, independently for each column. The evidence of the variance of the
class, s_c^2, beyond the pooled one, s^2, is::

    E(c, x) = -log(s_c / s) - (x - m_c)^2 / 2 (1 / s_c^2 - 1 / s^2),    summed over columns              (1)

Variances of few rows differ by chance, so their logarithms are shrunk towards each other. With l_c = log s_c^2 of n_c
rows, l their mean weighted by rows, k the kurtosis within the classes (at least 3) and L classes::

    log s_c^2 := log s^2 + w (l_c - log s^2),    w = max(0, 1 - 2 (L - 1) / sum_c n_c (l_c - l)^2 / (k - 1))     (2)

If the variances of the classes are equal, the sum is chi-squared with L - 1 degrees of freedom. It has an effect only
beyond twice that number, as in Akaike's criterion. Ten rows with the pooled variance are added to each class. Values
are clipped at the outer quantiles, as in :mod:`tamis.cells.discriminant`.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints
from tamis.cells.bins import faded_classes, in_order, outer_quantiles

_ROWS = 10.0  # rows with the pooled variance, added to each class
_AT_ONCE = 128  # rows processed at a time


@njit(strict=True)
def _evidence(x: Array, order: Array, means: Array, level: Array, slope: Array, evidence: Array) -> None:
    """Fill in (1) of each row and class after each of the columns in order; -1 and missing values are skipped."""
    n, n_steps = order.shape
    for i in range(n):
        for c in range(len(means)):
            evidence[i, 0, c] = 0.0
        for s in range(n_steps):
            j = order[i, s]
            known = j >= 0 and not np.isnan(x[i, j])
            for c in range(len(means)):
                evidence[i, s + 1, c] = evidence[i, s, c]
                if known:
                    apart = x[i, j] - means[c, j]
                    evidence[i, s + 1, c] += level[c, j] - slope[c, j] * apart * apart


class Spread:
    """Evidence for the classes from the variances of any of the columns.

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    Both classes have the mean 0, and class 1 has twice the standard deviation:

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 1)) * (1 + y[:, None])
    >>> Spread(2).fit(X, y).evidence(np.array([[0.0], [3.0]]))[1].round(1)
    array([[ 0.4, -0.2],
           [-1.9,  0.4]])
    """

    _state_spec = Shapes(
        "n_classes (=k)  _low (d) finite  _high (d) float in [_low, inf)  _means (k, d) float in [-2, 2]"
        "  _level (k, d) float in [-1e50, 1e50]  _slope (k, d) float in [-1e50, 1e50]  _powers[:1] float in [0, 1e18]"
        "  _powers (5, k, d) float in [-1.000001 * _powers[0], 1.000001 * _powers[0]]"
    )

    # State after fit, for K columns, whose numbers are clipped and scaled to -1 to 1:
    #   _low, _high     (K,)                   bounds of the clipping
    #   _powers         (5, n_classes, K)      sums of their powers 0 to 4 over the known values of a class, with fading
    #   _means, _level, _slope (n_classes, K)  m_c, -log(s_c / s), (1 / s_c^2 - 1 / s^2) / 2

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self._reset(np.zeros(0), np.zeros(0))

    def _reset(self, low: Floats, high: Floats) -> None:
        self._low, self._high = low, high
        self._powers: Floats = np.zeros((5, self.n_classes, len(low)))
        self._means, self._level, self._slope = np.zeros((3, self.n_classes, len(low)))

    def fit(self, values: Array, y: Array, sizes: Ints | None = None) -> Spread:
        """Fit to rows: `values` of shape (n_rows, K), NaN where missing, `y` of class codes.

        Categorical columns, whose numbers of categories are in `sizes`, have no variance and are ignored.
        """
        values = np.asarray(values, dtype=np.float64)
        # All values of a categorical column are then the same number.
        numeric = np.ones(values.shape[1], dtype=bool) if sizes is None else sizes == 0
        self._reset(*outer_quantiles(values, numeric))
        return self.partial_fit(values, y, 1.0)

    def partial_fit(self, values: Array, y: Array, fading: float) -> Spread:
        """Update with more rows; each multiplies the weight of the earlier ones by `fading`."""
        x = self._clip_and_scale(values)
        hot = faded_classes(y, self.n_classes, fading)
        there, x = ~np.isnan(x), np.nan_to_num(x)
        self._powers = fading ** len(y) * self._powers
        # For few rows at a time, BLAS sums each product in the same order for any number of threads.
        for at in range(0, len(y), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            power = there[part].astype(np.float64)
            for sums in self._powers:
                sums += hot[part].T @ power
                power *= x[part]
        self._update_coefficients()
        return self

    def _update_coefficients(self) -> None:
        """Compare the variances of the classes, (2)."""
        n, first, second, third, fourth = self._powers
        m = first / np.maximum(n, 1e-300)
        within = np.maximum(second - n * m**2, 0.0)
        fourth = np.maximum(fourth - 4.0 * m * third + 6.0 * m**2 * second - 3.0 * n * m**4, 0.0)
        total = np.maximum(n.sum(axis=0), 1e-300)
        common = np.maximum(within.sum(axis=0) / total, 1e-12)
        variance = (within + _ROWS * common) / (n + _ROWS)
        kurtosis = (fourth / variance**2).sum(axis=0) / total
        logarithm = np.log(variance)
        share = n / total
        apart = logarithm - (share * logarithm).sum(axis=0)
        chi2 = (n * apart**2).sum(axis=0) / (np.maximum(kurtosis, 3.0) - 1.0)
        degrees = np.maximum((n > 0.0).sum(axis=0) - 1.0, 0.0)
        shrinkage = np.maximum(0.0, 1.0 - 2.0 * degrees / np.maximum(chi2, 1e-300))
        varies = (n > 0.0) & (within.sum(axis=0) > 0.0)
        beyond = np.where(varies, shrinkage * (logarithm - np.log(common)), 0.0)
        self._means, self._level = m, -0.5 * beyond
        self._slope = 0.5 * np.expm1(-beyond) / common

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return len(self._low)

    def evidence(self, values: Array, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class, cumulated over its columns, (1).

        Parameters and return value as for :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        order = in_order(values) if order is None else order
        array = np.empty((len(order), order.shape[1] + 1, self.n_classes))
        _evidence(self._clip_and_scale(values), order, self._means, self._level, self._slope, array)
        return array.transpose(1, 0, 2)

    def _clip_and_scale(self, values: Array) -> Floats:
        """Return the numbers, clipped and scaled to -1 to 1, NaN where missing."""
        middle, half = self._low / 2.0 + self._high / 2.0, self._high / 2.0 - self._low / 2.0
        cut = np.clip(np.asarray(values, dtype=np.float64), self._low, self._high)
        return (cut - middle) / np.where(half > 0.0, half, 1.0)
