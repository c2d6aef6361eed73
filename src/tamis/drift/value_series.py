"""The factor by which autocorrelation inflates the variance of the mean of a sequence whose mean may change.

The values form blocks of m = 2^l values, l = 0, 1, ..., 9. With s_k the sum of the k-th block, the variance of the
means of independent values is compared with the squared differences of neighbouring blocks (Allan 1966), P pairs::

    V(l) = sum_k (s_2k+1 - s_2k)^2 / (2 m P)                                                        (1)
    v = sum_(l < top) V(l) / 2^(l + 1) + V(top - 1) / 2^top,    R(l) = V(l) / v                     (2)

v is the variance of one value, since (1) are the squared Haar coefficients of the values. R is 1 for independent
values, and grows with l towards the variance inflation of their mean. A shift of the mean by d alters one difference of
each length, and adds at most m d^2 / (2 P v) to R(l). The levels read have at least 8 pairs and m / 2, so this is at
most d^2 / v. Values are dependent where

    (R(l) - 1) sqrt(P / 2) > 3        at some level with P >= 4 m                                   (3)

where a shift adds at most d^2 / (8 v). The factor 3 is that of :mod:`tamis.summaries.label_series`. The inflation is
the largest R(l).

Allan: Statistics of atomic frequency standards, Proceedings of the IEEE 54(2), 1966.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit

__all__ = ["SERIES_SIZE", "add_values"]

Floats = NDArray[np.float64]
_LEVELS = 10
_FEWEST = 8  # smallest number of pairs of a level that is used
_SIGNIFICANT = 3.0
# Layout: the number of values, the first value, the last inflation; then for each level the sum of the first block of
# an incomplete pair, the sum of squared differences, and the number of pairs.
_HEAD = 3
SERIES_SIZE = _HEAD + 3 * _LEVELS


@njit(allocates=False)
def _mean_square(series: Floats, level: int) -> float:
    """Return V(l), (1)."""
    at = _HEAD + 3 * level
    mean_square: float = series[at + 1] / (2.0 ** (level + 1) * series[at + 2])
    return mean_square


@njit(allocates=False)
def _read(series: Floats) -> float:
    """Return the largest R(l) of (2) if the values are dependent, (3), else 1."""
    variance, top, mean_square = 0.0, 0, 0.0
    while top < _LEVELS and series[_HEAD + 3 * top + 2] >= max(_FEWEST, 2.0**top / 2.0):
        mean_square = _mean_square(series, top)
        variance += mean_square / 2.0 ** (top + 1)
        top += 1
    variance += mean_square / 2.0**top  # (2)
    largest, dependent = 1.0, False
    if variance > 0.0:
        for level in range(top):
            pairs, ratio = series[_HEAD + 3 * level + 2], _mean_square(series, level) / variance
            largest = max(largest, ratio)
            tested = pairs >= 4.0 * 2.0**level
            dependent |= tested and (ratio - 1.0) * np.sqrt(pairs / 2.0) > _SIGNIFICANT  # (3)
    return largest if dependent else 1.0


@njit(allocates=False)
def add_values(values: Floats, series: Floats, every: int) -> None:
    """Add values to the blocks, and read the inflation after each multiple of `every` values.

    Parameters
    ----------
    values : ndarray of shape (n,), float64
    series : ndarray of shape (SERIES_SIZE,), float64
        Updated; zeros before the first value.
    every : int

    Examples
    --------
    Each value is repeated eight times, and the mean of the values rises in between. ``series[2]`` is the inflation:

    >>> rng = np.random.default_rng(0)
    >>> values = np.repeat(rng.normal(size=500), 8) + np.repeat([0.0, 3.0], 2000)
    >>> series, shuffled = np.zeros(SERIES_SIZE), np.zeros(SERIES_SIZE)
    >>> add_values(values, series, 32)
    >>> add_values(rng.permutation(values), shuffled, 32)
    >>> bool(7.0 < series[2] < 11.0), float(shuffled[2])
    (True, 1.0)
    """
    for i in range(len(values)):
        if series[0] == 0.0:
            series[1] = values[i]
        block, at = values[i] - series[1], int(series[0])
        for level in range(_LEVELS):
            place = _HEAD + 3 * level
            if (at >> level) & 1 == 0:
                series[place] = block
                break
            difference = block - series[place]
            series[place + 1] += difference * difference
            series[place + 2] += 1.0
            block += series[place]
        series[0] += 1.0
        if series[0] % every == 0.0:
            series[2] = _read(series)
