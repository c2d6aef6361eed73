"""Numbers whose scale and far values do not matter: between -1 and 1, in the same order.

Cuts at equal distances, between the least and the greatest value, find nothing where one value is far away, and
squares of very small or large numbers vanish or overflow. What is seen through a :class:`Squash` has neither.
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array

__all__ = ["EARLY", "Squash"]

Floats = NDArray[np.float64]
EARLY = 32  # rows that say in which units numbers are seen


class Squash:
    """Numbers between -1 and 1 in place of any, in the same order: z / (1 + ``|z|``), z in units of the middle half.

    Far values then lie beside the others, whatever the scale.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns), float64
        They say where the middle half lies.

    Examples
    --------
    >>> squash = Squash(np.array([[1.0], [2.0], [3.0], [4.0], [1e300]]))
    >>> squash(np.array([[3.0], [5.0], [1e300]]))[:, 0]
    array([0. , 0.5, 1. ])
    >>> squash.back(0.5, 0)
    5.0
    """

    def __init__(self, rows: Array) -> None:
        halves = 0.5 * np.where(np.isnan(rows), 0.0, rows)  # halves, so that no difference overflows
        low, self._middle, high = np.quantile(halves, [0.25, 0.5, 0.75], axis=0, method="nearest")
        spread = np.where(high > low, high - low, halves.max(axis=0) - halves.min(axis=0))
        self._unit = np.where(spread > 0.0, spread, np.maximum(np.abs(self._middle), 1e-300))

    def __call__(self, X: Array) -> Floats:
        """Return the numbers as they are seen."""
        with np.errstate(over="ignore"):
            z = np.clip((0.5 * X - self._middle) / self._unit, -1e300, 1e300)
        found: Floats = z / (1.0 + np.abs(z))
        return found

    def widened(self, n_new: int) -> Squash:
        """Return the same with further columns, which were 0 in all rows."""
        wide = copy.copy(self)
        wide._middle = np.pad(self._middle, (0, n_new))
        wide._unit = np.pad(self._unit, (0, n_new), constant_values=1e-300)
        return wide

    def without(self, columns: Array) -> Squash:
        """Return the same for columns some of which were 0 in all rows."""
        found = copy.copy(self)
        found._middle, found._unit = self._middle.copy(), self._unit.copy()
        found._middle[columns], found._unit[columns] = 0.0, 1e-300
        return found

    def back(self, u: float, column: int) -> float:
        """Return the number that is seen as u."""
        z = u / max(1.0 - abs(u), 1e-16)
        with np.errstate(over="ignore"):
            x = 2.0 * (self._middle[column] + self._unit[column] * z)
        return float(np.clip(x, -np.finfo(np.float64).max, np.finfo(np.float64).max))
