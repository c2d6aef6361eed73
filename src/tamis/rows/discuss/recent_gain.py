"""Information gain of features in the last rows of a window, unconditional and given another feature.

:mod:`tamis.summaries.entropy` maintains these measures for the whole window at O(1) per row; here they are recomputed
from its bins, for any number of its last rows. With f(k) = k log2 k, n_a rows in value a of feature s, and within these
n_ab of value b of feature c, n_ay of class y, n_aby of both::

    n I(X_c; Y | X_s) = sum_a [f(n_a) - sum_b f(n_ab) - sum_y f(n_ay) + sum_by f(n_aby)]           (1)
    bias = sum_a (values in a - 1) (classes in a - 1) / (2 n ln 2)                                 (2)

For a feature s with one value, (1) is the information gain of c; (2) is its mean if c is irrelevant given s (Miller,
Madow).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array
from tamis.dependence.expected_g import MANY, fill_expected_g

_LN4 = 2.0 * np.log(2.0)


@njit(strict=True)
def measure(n: int, state: Any, n_classes: int, statistics: Array) -> None:
    """Write the information gain of each feature over the last n rows.

    Parameters
    ----------
    n : int
        From 1 to the rows in the window.
    state : tuple
        ``counts.with_bins(n)`` of dense rows.
    n_classes : int
    statistics : ndarray of shape (4, n_features), float64
        Written: the information gain in bits; H(X) + H(Y) in bits; the degrees of freedom, by
        :mod:`tamis.dependence.expected_g`; the same as if all values had many rows, (values - 1) (classes - 1).

    Examples
    --------
    >>> from tamis.summaries.entropy import WindowCounts
    >>> counts, statistics = WindowCounts(2, 2, window=8, categorical=[0, 1]), np.empty((4, 2))
    >>> counts.update(np.array([[0.0, 3.0], [1.0, 3.0], [0.0, 3.0], [1.0, 4.0]]), np.array([0, 1, 0, 1]))
    >>> measure(3, counts.with_bins(3), 2, statistics)
    >>> statistics.round(2)
    array([[0.92, 0.25],
           [1.84, 1.84],
           [1.59, 1.59],
           [1.  , 1.  ]])
    """
    rows, table, _, fixed = state
    bins, ring, seen, start, f = rows[1], rows[2], rows[3], table[0], fixed[0]
    scale, w = 2.0 ** -fixed[2][2] / n, len(ring)
    n_y = np.zeros(n_classes, np.int64)
    for k in range(seen[0] - n, seen[0]):
        n_y[ring[k % w]] += 1
    t_y, classes = 0, 0
    for y in range(n_classes):
        t_y += f[n_y[y]]
        classes += n_y[y] > 0
    chance = np.empty(MANY + 1)
    fill_expected_g(n_y.astype(np.float64), chance)
    codes = ring.astype(np.uint64)
    first, last, wide = (seen[0] - n) % w, seen[0] % w, np.uint64(n_classes)
    counts = np.zeros((start[1:] - start[:-1]).max() * n_classes, np.int32)
    for j in range(len(start) - 1):
        width, own = start[j + 1] - start[j], bins[j]
        counts[: width * n_classes] = 0
        for p in range(first, last if first < last else w):  # the rows are in a ring buffer
            counts[np.uint64(own[p]) * wide + codes[p]] += 1
        for p in range(0 if first < last else last):
            counts[np.uint64(own[p]) * wide + codes[p]] += 1
        t_x, t_xy, values, free = 0, 0, 0, 0.0
        for b in range(width):
            n_x = 0
            for y in range(n_classes):
                n_x += counts[b * n_classes + y]
                t_xy += f[counts[b * n_classes + y]]
            t_x += f[n_x]
            values += n_x > 0
            free += chance[min(n_x, MANY)]
        statistics[0, j] = (f[n] - t_x - t_y + t_xy) * scale
        statistics[1, j] = (2 * f[n] - t_x - t_y) * scale
        statistics[2, j] = max(free - (classes - 1), 0.0) if values > 1 else 0.0
        statistics[3, j] = (values - 1) * (classes - 1)


@njit(strict=True)
def measure_gain(c: int, others: Array, n: int, state: Any, n_classes: int, gain: Array) -> None:
    """Write the conditional information gain of a feature given others, over the last n rows.

    Parameters
    ----------
    c : int
        The feature.
    others : ndarray of int
        The other features s.
    n, state, n_classes
        As for :func:`measure`.
    gain : ndarray of shape (len(others),), float64
        Written: I(X_c; Y | X_s) in bits, minus its bias.

    Examples
    --------
    Feature 1 is a copy of feature 0, and both equal the class, so neither adds information to the other:

    >>> from tamis.summaries.entropy import WindowCounts
    >>> counts, gain = WindowCounts(3, 2, window=100, categorical=[0, 1, 2]), np.empty(2)
    >>> codes, third = np.arange(100) % 2, np.arange(100) // 2 % 2
    >>> counts.update(np.c_[codes, codes, third].astype(float), codes)
    >>> measure_gain(1, np.array([0, 2]), 100, counts.with_bins(100), 2, gain)
    >>> gain.round(2)
    array([0.  , 0.99])
    """
    rows, table, _, fixed = state
    bins, ring, seen, start, f = rows[1], rows[2], rows[3], table[0], fixed[0]
    scale, w, width = 2.0 ** -fixed[2][2] / n, len(ring), start[c + 1] - start[c]
    for o in range(len(others)):
        s = others[o]
        counts = np.zeros((start[s + 1] - start[s], width, n_classes), np.int64)
        for k in range(seen[0] - n, seen[0]):
            counts[bins[s, k % w], bins[c, k % w], ring[k % w]] += 1
        total, free = 0, 0
        for a in range(len(counts)):  # n_a I(X_c; Y | X_s = a)
            n_a, values, classes = 0, 0, 0
            for b in range(width):
                n_b = 0
                for y in range(n_classes):
                    n_b += counts[a, b, y]
                    total += f[counts[a, b, y]]
                total -= f[n_b]
                values += n_b > 0
                n_a += n_b
            for y in range(n_classes):
                n_y = counts[a, :, y].sum()
                total -= f[n_y]
                classes += n_y > 0
            total += f[n_a]
            free += max(values - 1, 0) * max(classes - 1, 0)
        gain[o] = total * scale - free / (n * _LN4)
