"""Relevance and reliance of each feature over the rows, thinned to a fixed number of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._validation import Ints

Floats = NDArray[np.float32]

_MOST = 256  # number of points at which every second one is dropped
_FIRST_SPACING = 100  # rows between two points


class History(ThreadSafe):
    """The course of two measures of each feature: 128 to 256 points, evenly spaced over all rows.

    Parameters
    ----------
    n_features : int

    Examples
    --------
    >>> history = History(2)
    >>> for row in range(100, 100_001, 100):
    ...     history.add(row, np.array([row, 0.0]), np.array([0.5, 0.5]))
    >>> rows, relevance, reliance = history.read()
    >>> rows[:3], len(rows), relevance.shape
    (array([100, 500, 900]), 250, (250, 2))
    """

    _shapes = "_rows (m) int64 in [0, 2**62)  _values (m, 2, j) float32  _n in [0, m]  _spacing in [1, 2**62)"

    def __init__(self, n_features: int) -> None:
        self._rows = np.zeros(_MOST, dtype=np.int64)
        self._values = np.zeros((_MOST, 2, n_features), dtype=np.float32)
        self._n, self._spacing = 0, _FIRST_SPACING

    def add(self, row: int, relevance: Floats, reliance: Floats) -> None:
        """Add the measures after `row` rows, unless the last point is near."""
        if self._n and row - self._rows[self._n - 1] < self._spacing:
            return
        if self._n == _MOST:
            # The actual distance, since batches may be larger than the spacing.
            self._n, self._spacing = _MOST // 2, 2 * int(self._rows[-1] - self._rows[-2])
            for values in (self._rows, self._values):
                values[: self._n] = values[::2].copy()
            if row - self._rows[self._n - 1] < self._spacing:
                return
        self._rows[self._n], self._values[self._n] = row, (relevance, reliance)
        self._n += 1

    def read(self) -> tuple[Ints, Floats, Floats]:
        """Return the rows, shape (n,), and both measures, shape (n, n_features)."""
        n = self._n
        return self._rows[:n].copy(), self._values[:n, 0].copy(), self._values[:n, 1].copy()
