"""The selection of DISCUSS: features in order of symmetrical uncertainty, down to a threshold, without redundant ones.

Formulas (1), (2) and (3) are in the docstring of :mod:`tamis.rows.discuss.discuss`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis.dependence.expected_g import MANY, fill_expected_g
from tamis.summaries.entropy import WindowCounts

# -- Information gain of features in the last rows of a window, unconditional and given another feature

# :mod:`tamis.summaries.entropy` maintains these measures for the whole window at O(1) per row; here they are
# recomputed from its bins, for any number of its last rows. With f(k) = k log2 k, n_a rows in value a of feature s,
# and within these n_ab of value b of feature c, n_ay of class y, n_aby of both::
#
#     n I(X_c; Y | X_s) = sum_a [f(n_a) - sum_b f(n_ab) - sum_y f(n_ay) + sum_by f(n_aby)]           (1)
#     bias = sum_a (values in a - 1) (classes in a - 1) / (2 n ln 2)                                 (2)
#
# For a feature s with one value, (1) is the information gain of c; (2) is its mean if c is irrelevant given s (Miller,
# Madow).


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


# -- The selection of DISCUSS: features in order of symmetrical uncertainty, down to a threshold, without redundant ones

_LN4 = 2.0 * np.log(2.0)
_STAYS = 0.2  # fraction of the threshold that a selected feature needs to stay
_NEW, _OWN = 0.3, 0.1  # `share` of (3) for a new feature, and for a selected one


class WindowStatistics(NamedTuple):
    """Statistics of each feature over the last n rows, shape (n_features,) each."""

    n: int
    su: Floats
    gain: Floats  # minus its bias, if that is corrected
    spread: Floats  # H(X) + H(Y)
    free: Floats  # degrees of freedom, corrected for values with few rows
    classic: Floats  # the same, (values - 1) (classes - 1)


def view(n: int, counts: WindowCounts, corrected: bool) -> WindowStatistics:
    """Return the statistics of the last n rows of the window."""
    gain, spread, free, classic = values = np.empty((4, counts.n_features))
    measure(n, counts.with_bins(n), counts.n_classes, values)
    if corrected:
        gain -= free / (n * _LN4)
    su = np.clip(np.divide(2.0 * gain, spread, out=np.zeros(len(gain)), where=spread > 0.0), 0.0, 1.0)
    return WindowStatistics(n, su, gain, spread, free, classic)


class SelectionRules(NamedTuple):
    """The parameters of :class:`tamis.DISCUSS` for a selection."""

    most: int  # features
    fewest: int
    threshold: float | None
    redundancy: str | None
    corrected: bool
    delta: float
    epsilon: float  # (1)
    margin: float
    n_features: int  # of the rows, including those without statistics, which were always 0
    ranks: Ints | None  # order of equal features; None: the earlier one first

    def thresholds(self, view: WindowStatistics) -> Floats:
        """Return the threshold of the symmetrical uncertainty of each feature."""
        d = len(view.su)
        if self.threshold is not None:
            return np.full(d, self.threshold)
        bias = view.free if self.corrected else 0.0
        gain = (_chi_square(view.free, self.delta / self.n_features) - bias) / (view.n * _LN4)  # (2)
        is_defined = (view.spread > 0.0) & (view.free > 0.0)
        return np.divide(2.0 * gain, view.spread, out=np.full(d, np.inf), where=is_defined)

    def slack(self, bar: Floats) -> Floats:
        """Return how far a feature above the threshold may fall below it."""
        return np.minimum(self.margin, (1.0 - _STAYS) * bar)

    def walk(
        self, view: WindowStatistics, bar: Floats, rank: Floats, kept: list[int], counts: WindowCounts
    ) -> tuple[list[int], bool]:
        """Return the selected features in order, and whether their maximum number was reached.

        Parameters
        ----------
        view : View
        bar, rank : ndarray of shape (n_features,)
            Threshold of each feature, and the values that determine the order.
        kept : list of int
            Features to which the weaker redundancy criterion of selected ones applies.
        counts : WindowCounts
        """
        order = np.argsort(-rank, kind="stable") if self.ranks is None else np.lexsort((self.ranks, -rank))
        taken: list[int] = []
        for c in order[view.su[order] > bar[order]].tolist():
            if not self._is_redundant(c, taken, view, kept, counts):
                taken.append(c)
            if len(taken) == self.most:
                return taken, True
        rest = [c for c in order.tolist() if c not in taken]
        return taken + rest[: max(self.fewest - len(taken), 0)], False

    def _is_redundant(
        self, c: int, taken: list[int], view: WindowStatistics, kept: list[int], counts: WindowCounts
    ) -> bool:
        if self.redundancy is None or not taken:
            return False
        others = np.array(taken)
        if self.redundancy == "conditional":
            gain = np.empty(len(others))
            measure_gain(c, others, view.n, counts.with_bins(view.n), counts.n_classes, gain)
            share = _OWN if c in kept else _NEW
            return bool((gain < share * view.gain[c]).any())  # (3)
        is_redundant = counts.pair_symmetrical_uncertainty(c, others, self.corrected) > view.su[c]
        if self.redundancy == "hoeffding":
            is_redundant &= np.abs(view.su[others] - view.su[c]) < self.epsilon
        return bool(is_redundant.any())


def _chi_square(free: Floats, p: float) -> Floats:
    """Return the upper p quantile of chi-square for each of the degrees of freedom (at least 1)."""
    degrees, which = np.unique(free, return_inverse=True)
    return chdtri(np.maximum(degrees, 1.0), p)[which]
