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

from tamis._check import Array, Rows
from tamis._guard import Guarded
from tamis._jit import njit
from tamis.summaries.fixed_bins import FixedBins, zeros_in_first_bin

__all__ = ["LOOK", "RelationWatch", "bars_of", "changed_feature", "changed_table"]

LOOK = 512  # rows that a watch compares with all before: whole blocks of evidence
_YOUNG = (1, 2, 4, 8)  # looks whose rows a watch compares with all before
_ALPHA, _BINS = 1e-4, 5  # of a watch: chance of a false alarm at a look, and values of a feature
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
    first, last = (end - young) % w, end % w
    codes, wide = ring.astype(np.uint64), np.uint64(n_classes)
    for j in range(len(start) - 1):
        n_values, own = start[j + 1] - start[j], bins[j]
        recent = np.zeros(n_values * n_classes, np.int32)
        for p in range(first, last if first < last else w):  # the rows lie in a ring
            recent[np.uint64(own[p]) * wide + codes[p]] += 1
        for p in range(0 if first < last else last):
            recent[np.uint64(own[p]) * wide + codes[p]] += 1
        counts = np.empty((n_values, n_classes, 2))
        for b in range(n_values):
            for y in range(n_classes):
                counts[b, y, 1] = recent[b * n_classes + y]
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


class RelationWatch(Guarded):
    """Every 512 rows: do the last 512, 1024, 2048 or 4096 rows show another relation of some feature to the class?

    They are compared with all rows before them. A feature has five values, cut at the quantiles of the first 256 rows.
    Missing ones are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.normal(size=(2048, 3)), rng.integers(0, 2, 2048)
    >>> X[1024:, 1] += codes[1024:]
    >>> watch = RelationWatch(n_features=3, n_classes=2)
    >>> [watch.has_changed(X[i : i + LOOK], codes[i : i + LOOK]) for i in range(0, 2048, LOOK)]
    [False, False, True, True]
    """

    _shapes = "_looks[] float in [0, inf)  n_rows in [0, 2**62)"

    def __init__(self, n_features: int, n_classes: int) -> None:
        self._bins = FixedBins(n_features, n_classes, _BINS)
        self._looks: list[Array] = []  # (n_features, values, n_classes) rows of each, at the last looks
        self.n_rows = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the state."""
        return self._bins.nbytes + sum(look.nbytes for look in self._looks)

    def grow(self, n_classes: int) -> None:
        """Make room for new classes, with codes after the old ones."""
        more = n_classes - self._bins.n_classes
        self._bins.grow(n_classes)
        self._looks = [np.pad(look, ((0, 0), (0, 0), (0, more))) for look in self._looks]

    def widen(self, n_features: int) -> None:
        """Make room for further features, which were 0 in all (CSR) rows so far."""
        old = self._bins.n_features
        self._bins.widen(n_features)
        more = ((0, n_features - old), (0, 0), (0, 0))
        self._looks = [zeros_in_first_bin(np.pad(look, more), slice(old, None)) for look in self._looks]

    def has_changed(self, X: Rows, codes: Array, sample_weight: Array | None = None) -> bool:
        """Take in rows that have been checked, up to the next look at most; say whether it shows a change.

        Rows of weight 0 are not counted; all others count alike.
        """
        self._bins.update(
            X, codes, None if sample_weight is None else (sample_weight > 0.0).astype(np.float64)
        )
        self.n_rows += len(codes)
        if self.n_rows % LOOK:
            return False
        now = self._bins.counts()
        n_features, _, n_classes = now.shape
        bars = bars_of(_ALPHA / len(_YOUNG), n_features, n_classes)
        before = [self._looks[-k] for k in _YOUNG if k <= len(self._looks)]
        self._looks = [*self._looks[1 - max(_YOUNG) :], now]
        return any(changed_table(old, now - old, bars) >= 0 for old in before)
