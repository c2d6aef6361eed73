"""A test for a change of the relation between a feature and the class: recent rows against earlier ones.

With n_abs rows of value a and class b in part s of the window, the relation is the same in both parts if the model

    m_abs = u_ab v_as w_bs                                                                                 (1)

fits: the frequencies of values and classes may change, but not the odds ratios of the classes between values. The model
is fitted by iterative proportional scaling, and 2 sum n ln(n / m) is approximately chi-square distributed with
(values - 1) (classes - 1) degrees of freedom, fewer if cells are empty in both parts (Bishop, Fienberg, Holland:
Discrete Multivariate Analysis, 1975).
Without w, the statistic needs no iteration and is larger, so only few features have to be fitted iteratively.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy.special import chdtri

from tamis._guard import ThreadSafeState
from tamis._kernels import njit
from tamis._validation import Array, Floats, Rows
from tamis.summaries.batch import n_bytes
from tamis.summaries.fixed_bins import FixedBins, zeros_in_first_bin

LOOK = 512  # rows between two tests of a RelationWatch
_YOUNG = (1, 2, 4, 8)  # numbers of recent intervals that are compared with all rows before
_ALPHA, _BINS = 1e-4, 5  # false-alarm rate of a test, and number of values of a feature
_SPARSE = 1.25  # factor of the critical values, for cells with few rows
_VALUES = 40  # values of a feature up to which critical values are tabulated
_MAX_ITERATIONS = 20  # of scaling
_FEW = 5.0  # values with fewer rows in a part are ignored: the chi-square approximation does not hold


@functools.lru_cache(maxsize=64)
def critical_values(alpha: float, n_features: int, n_classes: int) -> Floats:
    """Return the value that the largest statistic exceeds with probability alpha, by degrees of freedom."""
    freedom = np.arange(1.0, _VALUES * n_classes)
    return np.append(np.inf, _SPARSE * chdtri(freedom, alpha / n_features))


@njit(strict=True)
def find_changed_feature(young: int, state: Any, n_classes: int, bars: Array) -> int:
    """Return a feature whose relation to the class differs in the most recent rows, or -1.

    Parameters
    ----------
    young : int
        Number of recent rows that are compared with the other rows of the window.
    state : tuple
        ``counts.with_bins(young)`` of dense rows, see :mod:`tamis.summaries.entropy`.
    n_classes : int
    bars : ndarray, float64
        Critical values by degrees of freedom; the last one also for more degrees.

    Examples
    --------
    >>> from tamis.summaries.entropy import WindowCounts
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.integers(0, 3, (400, 4)).astype(float), rng.integers(0, 2, 400)
    >>> X[200:, 2] = codes[200:]
    >>> counts = WindowCounts(4, 2, window=400, categorical=range(4))
    >>> counts.update(X, codes)
    >>> find_changed_feature(150, counts.with_bins(150), 2, np.full(5, 30.0))
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
        for p in range(first, last if first < last else w):  # a ring buffer
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
def find_changed_table(old: Array, young: Array, bars: Array) -> int:
    """Return the first feature whose table has changed, or -1.

    Parameters
    ----------
    old, young : ndarray of shape (n_features, n_values, n_classes)
        Number of rows of each value and class before, and now.
    bars : ndarray
        As for :func:`find_changed_feature`.
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
    """Return whether (1) is rejected."""
    for a in range(counts.shape[0]):
        old, young = 0.0, 0.0
        for b in range(counts.shape[1]):
            old, young = old + counts[a, b, 0], young + counts[a, b, 1]
        if old < _FEW or young < _FEW:
            for b in range(counts.shape[1]):
                counts[a, b, 0] = counts[a, b, 1] = 0.0
    free = _degrees_of_freedom(counts)
    if free <= 0:
        return False
    bar = bars[min(free, len(bars) - 1)]
    for rounds in (0, _MAX_ITERATIONS):  # noqa: SIM110 - a generator cannot be compiled
        if _statistic(counts, rounds) <= bar:
            return False
    return True


@njit(strict=True)
def _degrees_of_freedom(counts: Array) -> int:
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
    """Return the distance of (1) from the counts after some iterations of scaling; without any, w is omitted."""
    m = np.zeros(n.shape)
    _fit_without_w(n, m)
    for _ in range(rounds):
        _scale_to_margins(n, m)
    distance = 0.0
    for a in range(n.shape[0]):
        for b in range(n.shape[1]):
            for s in range(n.shape[2]):
                if n[a, b, s] > 0.0 and m[a, b, s] > 0.0:
                    distance += n[a, b, s] * np.log(n[a, b, s] / m[a, b, s])
    return 2.0 * distance


@njit(strict=True)
def _fit_without_w(n: Array, m: Array) -> None:
    """Write the fit of u_ab v_as: the product of its two margins, over that of each value."""
    A, B, S = n.shape
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


@njit(strict=True)
def _scale_to_margins(n: Array, m: Array) -> None:
    """Scale the fit once to each of its three margins: class and part, then value and class, then value and part."""
    A, B, S = n.shape
    for b in range(B):
        for s in range(S):
            _scale(n[:, b, s], m[:, b, s])
    for a in range(A):
        for b in range(B):
            _scale(n[a, b], m[a, b])
        for s in range(S):
            _scale(n[a, :, s], m[a, :, s])


@njit(strict=True)
def _scale(n: Array, m: Array) -> None:
    """Scale the fit of some cells to the sum of their counts."""
    fitted, counted = 0.0, 0.0
    for i in range(n.shape[0]):
        fitted, counted = fitted + m[i], counted + n[i]
    if fitted > 0.0:
        for i in range(n.shape[0]):
            m[i] *= counted / fitted


class RelationWatch(ThreadSafeState):
    """Tests every 512 rows for a change in the relation of any feature to the class.

    The last 512, 1024, 2048 and 4096 rows are compared with all rows before them. Features are discretised into five
    bins at the quantiles of the first 256 rows. Missing values are ignored.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.normal(size=(2048, 3)), rng.integers(0, 2, 2048)
    >>> X[1024:, 1] += codes[1024:]
    >>> watch = RelationWatch(n_features=3, n_classes=2)
    >>> [watch.has_changed(X[i : i + LOOK], codes[i : i + LOOK]) for i in range(0, 2048, LOOK)]
    [False, False, True, True]
    """

    _shapes = "_bins (its own) fill own  _looks[] (j, V, c) float in [0, inf) fill 0  n_rows in [0, 2**62)"

    def __init__(self, n_features: int, n_classes: int) -> None:
        self._bins = FixedBins(n_features, n_classes, _BINS)
        self._looks: list[Array] = []  # (n_features, values, n_classes) row counts at the last tests
        self.n_rows = 0

    nbytes = property(n_bytes)

    def widen(self, n_features: int) -> None:
        """Add features, which were 0 in all (CSR) rows so far."""
        old = self._bins.n_features
        super().widen(n_features)
        self._looks = [zeros_in_first_bin(look, slice(old, None)) for look in self._looks]

    def has_changed(self, X: Rows, codes: Array) -> bool:
        """Update with validated rows, at most up to the next test; return whether it finds a change.

        All rows have equal weight.
        """
        self._bins.update(X, codes)
        self.n_rows += len(codes)
        if self.n_rows % LOOK:
            return False
        now = self._bins.counts()
        n_features, _, n_classes = now.shape
        bars = critical_values(_ALPHA / len(_YOUNG), n_features, n_classes)
        before = [self._looks[-k] for k in _YOUNG if k <= len(self._looks)]
        self._looks = [*self._looks[1 - max(_YOUNG) :], now]
        return any(find_changed_table(old, now - old, bars) >= 0 for old in before)
