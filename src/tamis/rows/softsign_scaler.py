"""Robust scaling to (-1, 1) that preserves the order of values.

With an outlier, equally spaced cuts between the minimum and the maximum do not separate the other values, and squares
of very small or large numbers underflow or overflow. Values scaled by :class:`SoftsignScaler` have neither problem.
"""

from __future__ import annotations

import numpy as np

from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Floats

N_SCALING_ROWS = 32  # number of rows that determine the scale


class SoftsignScaler(SizedState):
    """Scale numbers to (-1, 1) in the same order: z / (1 + ``|z|``), with z in units of the interquartile range.

    Outliers then have limited influence at any scale.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns), float64
        The rows from which the quartiles are computed.

    Examples
    --------
    >>> squash = SoftsignScaler(np.array([[1.0], [2.0], [3.0], [4.0], [1e300]]))
    >>> squash(np.array([[3.0], [5.0], [1e300]]))[:, 0]
    array([0. , 0.5, 1. ])
    >>> squash.back(0.5, 0)
    5.0
    >>> squash.inverse(np.array([[0.0], [0.5]]))[:, 0]
    array([3., 5.])
    """

    _state_spec = Shapes("_middle (j) finite fill 0  _unit (j) float in (0, inf) fill 1e-300")
    _middle: Floats

    def __init__(self, rows: Array) -> None:
        halves = 0.5 * np.where(np.isnan(rows), 0.0, rows)  # halves, so that no difference overflows
        low, self._middle, high = np.quantile(halves, [0.25, 0.5, 0.75], axis=0, method="nearest")
        spread = np.where(high > low, high - low, halves.max(axis=0) - halves.min(axis=0))
        self._unit: Floats = np.where(spread > 0.0, spread, np.maximum(np.abs(self._middle), 1e-300))

    def __call__(self, X: Array) -> Floats:
        """Return the scaled numbers."""
        with np.errstate(over="ignore"):
            z = np.clip((0.5 * X - self._middle) / self._unit, -1e300, 1e300)
        return z / (1.0 + np.abs(z))

    def inverse(self, U: Array) -> Floats:
        """Return the numbers whose scaled values are given, shape (n_rows, n_columns)."""
        z = U / np.maximum(1.0 - np.abs(U), 1e-16)
        with np.errstate(over="ignore"):
            X = 2.0 * (self._middle + self._unit * z)
        most = np.finfo(np.float64).max
        return np.clip(X, -most, most)

    def equals(self, other: SoftsignScaler | None) -> bool:
        """Return whether another scaler gives the same values, bit for bit."""
        return other is not None and all(
            np.array_equal(mine, theirs)
            for mine, theirs in ((self._middle, other._middle), (self._unit, other._unit))
        )

    def back(self, u: float, column: int) -> float:
        """Return the number whose scaled value is u."""
        z = u / max(1.0 - abs(u), 1e-16)
        with np.errstate(over="ignore"):
            x = 2.0 * (self._middle[column] + self._unit[column] * z)
        return float(np.clip(x, -np.finfo(np.float64).max, np.finfo(np.float64).max))
