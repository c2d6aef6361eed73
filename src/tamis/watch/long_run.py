"""The long-run variance of many series, from blocks whose length follows the memory of each.

The squared differences of neighbouring blocks of m = 1, 2, 4, ... rows (Allan 1966), divided by 2 m, are the variance
per row of sums over m rows; a shift of the mean alters one difference of each length. The long-run variance is the
largest value from the length on at which they no longer increase significantly
(:func:`tamis.dependence.autocorrelation.flat_level`), or from one row on if none exceeds that of one row by three
standard errors. It has as many degrees of freedom as there are pairs of blocks of twice that length, and is
undetermined (NaN) with fewer than eight.

The estimate in use is of the rows until one to two times `every` rows ago, since a shift increases it all the same.

Allan: Statistics of atomic frequency standards, Proceedings of the IEEE 54(2), 1966.
"""

from __future__ import annotations

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats
from tamis.dependence.autocorrelation import SIGNIFICANT, flat_level

_LEVELS = 16  # block lengths: 1, 2, ..., 32,768
_FEWEST_PAIRS = 8


@njit(allocates=False)
def _add(values: Array, first: int, pending: Array, squares: Array) -> None:
    """Add rows of values (n, m) to the first blocks of incomplete pairs and the squared differences, both (l, m)."""
    n_levels = pending.shape[0]
    for i in range(values.shape[0]):
        at = first + i
        for k in range(values.shape[1]):
            block, level = values[i, k], 0
            while level < n_levels and (at >> level) & 1:
                difference = block - pending[level, k]
                squares[level, k] += difference * difference
                block += pending[level, k]
                level += 1
            if level < n_levels:
                pending[level, k] = block


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
        "_n in [0, 2**62)  _pending (l, m) float  _squares (l, m) float in [0, inf)  of_row (m) float in [0, inf)"
        "  _newest (2, m) float or nan  variance (m) float or nan  freedom (m) float"
    )

    def __init__(self, n_series: int) -> None:
        self._n = 0
        self._pending, self._squares = np.zeros((_LEVELS, n_series)), np.zeros((_LEVELS, n_series))
        self.of_row, self.freedom = np.zeros(n_series), np.zeros(n_series)
        self.variance = np.full(n_series, np.nan)
        self._newest = np.array([self.variance, self.freedom])

    def update(self, values: Floats) -> None:
        """Add rows of shape (n, m)."""
        _add(np.ascontiguousarray(values), self._n, self._pending, self._squares)
        self._n += len(values)

    def inflation(self) -> Floats:
        """Return the variance of sums relative to that of independent rows, of shape (m,).

        It is 1 unless blocks of some length differ significantly from independent rows, as in
        :func:`tamis.dependence.autocorrelation.add_values`.
        """
        size = 2.0 ** np.arange(_LEVELS)
        pairs = self._n // (2.0 * size)
        # A shift of the mean alters one difference of each length, so long blocks must be many.
        n_levels = int(np.count_nonzero(pairs >= np.maximum(_FEWEST_PAIRS, size / 2.0)))
        if not n_levels:
            return np.ones(len(self.of_row))
        size, pairs = size[:n_levels, None], pairs[:n_levels, None]
        V = self._squares[:n_levels] / (2.0 * pairs * size)
        variance = (V / (2.0 * size)).sum(axis=0) + V[-1] / (2.0 * size[-1])
        ratio = np.divide(V, variance, out=np.ones(V.shape), where=variance > 0.0)
        excess = np.where(pairs >= 4.0 * size, (ratio - 1.0) * np.sqrt(pairs / 2.0), 0.0)
        return np.where(excess.max(axis=0) > SIGNIFICANT, ratio.max(axis=0), 1.0)

    def estimate(self, *, at_once: bool = False) -> None:
        """Estimate the variances of all rows so far; use the estimate before, unless `at_once`."""
        size = 2.0 ** np.arange(1, _LEVELS + 1)
        pairs = self._n // size
        n_levels = int(np.count_nonzero(pairs >= _FEWEST_PAIRS))
        newest = np.array([np.full(len(self.variance), np.nan), np.zeros(len(self.variance))])
        if n_levels:
            V = self._squares[:n_levels] / (pairs * size)[:n_levels, None]
            excess = (V - V[0]) * np.sqrt(pairs[:n_levels, None] / 2.0)
            flat = np.where((excess > SIGNIFICANT * V[0]).any(axis=0), flat_level(V, pairs[:n_levels]), 0)
            known = flat + 1 < n_levels
            newest[0, known] = np.where(np.arange(n_levels)[:, None] >= flat, V, 0.0).max(axis=0)[known]
            newest[1, known] = pairs[flat[known] + 1]
            self.of_row = V[0]
        self.variance, self.freedom = (newest if at_once else self._newest).copy()
        self._newest = newest
