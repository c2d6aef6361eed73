"""Has the relation of a feature to the class changed: the younger rows of a window against the older ones.

With n_abs rows of value a and class b in part s of the window, the relation is the same in both parts if

    m_abs = u_ab v_as w_bs                                                                                 (1)

fits them: the values and the classes may come in other shares, but the odds of two classes differ by the value as
they did. Iterated scaling finds the fit, and 2 sum n ln(n / m) is about chi-square with (values - 1) (classes - 1)
degrees of freedom, fewer where cells are empty in both parts (Bishop, Fienberg, Holland: Discrete Multivariate
Analysis, 1975).
Without w, which makes it the larger, it needs no iteration: so few features are fitted at all.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from tamis._check import Array
from tamis._jit import njit

__all__ = ["bars_of", "changed_feature", "changed_table"]

_SPARSE = 1.25  # the bar is so much higher than by chi square, for few rows a cell
_VALUES = 40  # of a feature, for which there are bars of their own
_ROUNDS = 20  # of scaling
_FEW = 5.0  # a value with fewer rows in a part is left out: chi square does not hold for it


@functools.lru_cache(maxsize=64)
def bars_of(alpha: float, n_features: int, n_classes: int) -> NDArray[np.float64]:
    """Return what the statistic of some feature exceeds with probability alpha, by degrees of freedom."""
    freedom = np.arange(1.0, _VALUES * n_classes)
    return np.append(np.inf, _SPARSE * chdtri(freedom, alpha / n_features))


@njit(strict=True)
def changed_feature(young: int, state: Any, n_classes: int, bars: Array) -> int:
    """Return a feature whose relation to the class is another one in the youngest rows, or -1.

    Parameters
    ----------
    young : int
        So many of the last rows are compared with the others of the window.
    state : tuple
        ``counts.with_bins(young)`` of dense rows, see :mod:`tamis.summaries.entropy`.
    n_classes : int
    bars : ndarray, float64
        What the statistic must exceed, by degrees of freedom; the last counts for more.

    Examples
    --------
    >>> from tamis.summaries.entropy import WindowCounts
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.integers(0, 3, (400, 4)).astype(float), rng.integers(0, 2, 400)
    >>> X[200:, 2] = codes[200:]
    >>> counts = WindowCounts(4, 2, window=400, categorical=range(4))
    >>> counts.update(X, codes)
    >>> changed_feature(150, counts.with_bins(150), 2, np.full(5, 30.0))
    2
    """
    rows, table, _, _ = state
    bins, ring, seen, start, of_all = rows[1], rows[2], rows[3], table[0], table[2]
    w, end = len(ring), seen[0]
    for j in range(len(start) - 1):
        counts = np.zeros((start[j + 1] - start[j], n_classes, 2))
        p = (end - young) % w
        for _ in range(young):
            counts[bins[j, p], ring[p], 1] += 1.0
            p = p + 1 if p + 1 < w else 0
        for b in range(len(counts)):
            for y in range(n_classes):
                counts[b, y, 0] = of_all[start[j] + b, 1 + y] - counts[b, y, 1]
        if _has_changed(counts, bars):
            return j
    return -1


@njit(strict=True)
def changed_table(old: Array, young: Array, bars: Array) -> int:
    """Return the first feature whose table is another one than it was, or -1.

    Parameters
    ----------
    old, young : ndarray of shape (n_features, n_values, n_classes)
        Rows of each value and class before, and now.
    bars : ndarray
        As for :func:`changed_feature`.
    """
    counts = np.empty((old.shape[1], old.shape[2], 2))
    for j in range(len(old)):
        for a in range(old.shape[1]):
            for b in range(old.shape[2]):
                counts[a, b, 0], counts[a, b, 1] = old[j, a, b], young[j, a, b]
        if _has_changed(counts, bars):
            return j
    return -1


# Sums are written as loops: NumPy's take several times as long to compile.


@njit(strict=True)
def _has_changed(counts: Array, bars: Array) -> bool:
    """Whether (1) does not fit."""
    for a in range(counts.shape[0]):
        old, young = 0.0, 0.0
        for b in range(counts.shape[1]):
            old, young = old + counts[a, b, 0], young + counts[a, b, 1]
        if old < _FEW or young < _FEW:
            for b in range(counts.shape[1]):
                counts[a, b, 0] = counts[a, b, 1] = 0.0
    free = _freedom(counts)
    if free <= 0:
        return False
    bar = bars[min(free, len(bars) - 1)]
    for rounds in (0, _ROUNDS):  # noqa: SIM110 - a generator cannot be compiled
        if _statistic(counts, rounds) <= bar:
            return False
    return True


@njit(strict=True)
def _freedom(counts: Array) -> int:
    A, B, _ = counts.shape
    cells, values, classes = 0, 0, 0
    for a in range(A):
        here = 0
        for b in range(B):
            here += counts[a, b, 0] + counts[a, b, 1] > 0.0
        cells += here
        values += here > 0
    for b in range(B):
        here = 0
        for a in range(A):
            here += counts[a, b, 0] + counts[a, b, 1] > 0.0
        classes += here > 0
    return cells - values - classes + 1


@njit(strict=True)
def _statistic(n: Array, rounds: int) -> float:
    """Return how far (1) is from the counts after some rounds of scaling; w is left out if there are none."""
    A, B, S = n.shape
    m = np.zeros((A, B, S))
    for a in range(A):
        total = 0.0
        for b in range(B):
            for s in range(S):
                total += n[a, b, s]
        for b in range(B):
            of_class = 0.0
            for s in range(S):
                of_class += n[a, b, s]
            for s in range(S):
                of_part = 0.0
                for c in range(B):
                    of_part += n[a, c, s]
                if total > 0.0:
                    m[a, b, s] = of_class * of_part / total
    for _ in range(rounds):
        for b in range(B):
            for s in range(S):
                fitted, counted = 0.0, 0.0
                for a in range(A):
                    fitted, counted = fitted + m[a, b, s], counted + n[a, b, s]
                if fitted > 0.0:
                    for a in range(A):
                        m[a, b, s] *= counted / fitted
        for a in range(A):
            for b in range(B):
                fitted, counted = 0.0, 0.0
                for s in range(S):
                    fitted, counted = fitted + m[a, b, s], counted + n[a, b, s]
                if fitted > 0.0:
                    for s in range(S):
                        m[a, b, s] *= counted / fitted
            for s in range(S):
                fitted, counted = 0.0, 0.0
                for b in range(B):
                    fitted, counted = fitted + m[a, b, s], counted + n[a, b, s]
                if fitted > 0.0:
                    for b in range(B):
                        m[a, b, s] *= counted / fitted
    found = 0.0
    for a in range(A):
        for b in range(B):
            for s in range(S):
                if n[a, b, s] > 0.0 and m[a, b, s] > 0.0:
                    found += n[a, b, s] * np.log(n[a, b, s] / m[a, b, s])
    return 2.0 * found
