"""The long-run variance of many series, from blocks whose length follows the memory of each.

The squared differences of neighbouring blocks of m = 1, 2, 4, ... rows, divided by 2 m, are the variance per row of
sums over m rows (:func:`tamis.dependence.autocorrelation.mean_squares`); a shift of the mean alters one difference of
each length. The long-run variance is the largest value from the length on at which they no longer increase
significantly (:func:`tamis.dependence.autocorrelation.flat_level`), or from one row on if none exceeds that of one row
by three standard errors. It has as many degrees of freedom as there are pairs of blocks of twice that length, and is
undetermined (NaN) with fewer than eight.

Under long memory, the variance grows with the length of the blocks at a constant rate, and no length is the last at
which it does. The growth is its slope over the last four lengths with eight pairs or more
(:func:`tamis.dependence.autocorrelation.growth`).

The estimate in use is of the rows until one to two times `every` rows ago, since a shift increases it all the same.
"""

from __future__ import annotations

import numpy as np

from tamis._guard import ThreadSafe
from tamis._validation import Floats
from tamis.dependence.autocorrelation import (
    SIGNIFICANT,
    add_rows,
    block_ratios,
    extrapolation,
    flat_level,
    growth,
    mean_squares,
)

_LEVELS = 16  # block lengths: 1, 2, ..., 32,768
_FEWEST_PAIRS = 8
_FEWEST_BLOCKS = 8  # of a length from which a curve is extrapolated


class LongRunVariance(ThreadSafe):
    """The long-run variances of m series.

    Parameters
    ----------
    n_series : int

    Attributes
    ----------
    of_row : ndarray of shape (m,)
        The variance of single values, from neighbouring ones.
    variance, freedom : ndarray of shape (m,)
        The long-run variance in use, NaN if undetermined, and its degrees of freedom.
    growth : ndarray of shape (m,)
        Doublings of the variance per doubling of the length of the longest blocks: 2 d for a fractional order d.

    Examples
    --------
    Values that last for 20 rows:

    >>> rng = np.random.default_rng(0)
    >>> series = LongRunVariance(2)
    >>> series.update(np.column_stack([rng.normal(size=8000), np.repeat(rng.normal(size=400), 20)]))
    >>> series.estimate(at_once=True)
    >>> bool(0.9 < series.variance[0] < 2.0), bool(15 < series.variance[1] < 35)
    (True, True)
    """

    _shapes = (
        f"_series (m, {3 + 3 * _LEVELS}) float  of_row (m) float in [0, inf)"
        "  _newest (3, m) float or nan  growth (m) float  variance (m) float or nan  freedom (m) float"
    )

    def __init__(self, n_series: int) -> None:
        self._series = np.zeros((n_series, 3 + 3 * _LEVELS))
        self.of_row, self.freedom, self.growth = np.zeros((3, n_series))
        self.variance = np.full(n_series, np.nan)
        self._newest = np.array([self.variance, self.freedom, self.growth])

    @property
    def largest(self) -> Floats:
        """The larger of the long-run variance in use and that of all rows; NaN if both are undetermined."""
        return np.asarray(np.fmax(self.variance, self._newest[0]))

    def update(self, values: Floats) -> None:
        """Add rows of shape (n, m)."""
        add_rows(np.ascontiguousarray(values), self._series, 0)

    def estimate(self, *, at_once: bool = False) -> None:
        """Estimate the variances of all rows so far; use the estimate before, unless `at_once`."""
        V, pairs = mean_squares(self._series)
        n_levels = int(np.count_nonzero(pairs >= _FEWEST_PAIRS))
        V, pairs = V[:n_levels], pairs[:n_levels]
        newest = np.zeros((3, len(self.variance)))
        newest[0] = np.nan
        if n_levels:
            excess = (V - V[0]) * np.sqrt(pairs[:, None] / 2.0)
            flat = np.where((excess > SIGNIFICANT * V[0]).any(axis=0), flat_level(V, pairs), 0)
            known = flat + 1 < n_levels
            newest[0, known] = np.where(np.arange(n_levels)[:, None] >= flat, V, 0.0).max(axis=0)[known]
            newest[1, known] = pairs[flat[known] + 1]
            self.of_row = V[0]
            newest[2] = growth(V, pairs)
        self.variance, self.freedom, self.growth = (newest if at_once else self._newest).copy()
        self._newest = newest


def reached_inflation(columns: Floats) -> Floats:
    """Return the variance inflation of sums over all values; extrapolated where longer blocks increase it, (10a).

    Parameters
    ----------
    columns : ndarray of shape (m, n_rows)
        Centred columns, each of them a row of the array.

    Returns
    -------
    ndarray of shape (m,)
        At most `n_rows`.

    Examples
    --------
    Lots of 200 rows, of which 1,000 rows contain five, and independent rows:

    >>> rng = np.random.default_rng(0)
    >>> columns = np.array([np.repeat(rng.normal(size=5), 200), rng.normal(size=1000)])
    >>> reached_inflation(columns - columns.mean(axis=1, keepdims=True)).round()
    array([1000.,    1.])
    """
    ratio, excess = block_ratios(columns)
    n = columns.shape[1]
    blocks = n // (2.0 * 2.0 ** np.arange(len(ratio)))
    inflation = np.maximum(ratio.max(axis=0, initial=1.0), 1.0)
    if top := int(np.count_nonzero(blocks >= _FEWEST_BLOCKS)):
        reached = ratio[top - 1] * extrapolation(growth(ratio[:top], blocks[:top]), blocks[top - 1])
        still = flat_level(ratio, blocks) >= top - 1
        inflation = np.where(still, np.maximum(inflation, np.minimum(reached, n)), inflation)
    return np.where((excess > SIGNIFICANT).any(axis=0), inflation, 1.0)
