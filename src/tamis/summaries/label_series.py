"""Serial dependence of the labels of a stream, and its range in rows.

If a feature is unrelated to the class, the correlation of the score contributions of two rows at lag k is the product
of the autocorrelations of feature and label. The labels alone therefore determine whether tests that assume independent
rows remain valid: if labels are exchangeable, they do for any autocorrelation of the features, and if the labels
decorrelate within some number of rows, so do the contributions.

The dependence is measured by the blocking method: equations (2) to (4) of :mod:`tamis.dependence.autocorrelation`, at
the levels l of blocks of L = 2^l rows that have at least 8 blocks. The correlation length is the largest R_c of any
level. With the threshold of 3, one of 100 streams of 3,000 exchangeable labels is classified as dependent (7 if a class
has 0.5 % of the rows); a false alarm only reduces power.

A cycle of the label is a line of its spectrum. With I_f the periodogram of the indicators of the last n <= 3,187
labels, summed over the classes, at the frequencies f = 3, ..., n / 2 - 1 cycles per n rows, and h = 0 or 3 for a cycle
whose phase drifts, labels are cyclic if for some f::

    I = mean of I_g over |g - f| <= h,     J = mean of I_g over .7 f <= g <= 1.4 f, |g - f| > h + 1            (1)
    P[F > I / J] < .01 / number of f,      F with 4 h + 2 degrees of freedom, and twice the number of g in J

Without a cycle, J estimates the spectrum around f, of which I is a gamma variable. The period is the lag of the largest
autocorrelation of the labels at these frequencies, up to a third of the labels: labels that lag by it have the same
cycle, whatever its shape, and several cycles in a calendar have a common period. It is determined after 64, 80, 96,
112, 128, 160, ... rows, and so does not depend on the batches. While labels have a cycle, .05 replaces .01.

A change of the class proportions also increases R, in proportion to L, although nearby rows are independent. The
inflation of sums over at most m rows is therefore measured within long blocks P of 16 m rows, whose proportions may
differ. With n blocks b of L rows in n_P long blocks (the last one may be incomplete)::

    W_c(L) = sum_P sum_{b in P} (N_bc - mean over P)^2 / ((n - n_P) L q_c),     sum_c W_c(L) / (C - 1)       (2)
"""

from __future__ import annotations

import functools
import math
from typing import Self

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.special import fdtrc

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Floats, Ints
from tamis.dependence.autocorrelation import SIGNIFICANT, count_ratios, memory_level
from tamis.summaries.batch import n_bytes

# Lags of the label, about geometric, whose phases in cycles of 5 to 336 rows are as different as possible.
LAGS = (87, 120, 198, 334, 587, 1578, 1981, 3187)
_LONGEST = max(LAGS)
_LEVELS = 48
_LOWEST = 2  # blocks of 4 rows: as informative as blocks of 2, at a quarter of the cost
_FEWEST = 8  # smallest number of blocks of a level that is used
_SHORTEST = 64  # labels in which a cycle is looked for
_ALPHA, _WIDTHS = 0.01, (0, 3)  # of (1); h
_STAYS = 5.0  # factor of this level while labels have a cycle
# Frequencies beside a line at least, and its smallest multiple of them that is tested.
_BESIDE, _LEAST = 8.0, 2.0
_LEAK = 4  # frequencies on each side that contain a part of a line between two of them
_MOST_CLASSES = 16  # the most frequent ones, in which a cycle is looked for
_NEARER = 0.2  # of the autocorrelation: by how much a lag of all labels must exceed a short one
_N_ROWS = 2.0 ** np.arange(_LEVELS)  # rows of a block, by level


@njit(strict=True)
def _add(
    codes: Array, start: int, ring: Array, pending: Array, total: Array, squares: Array, blocks: Array
) -> None:
    """Count rows at the lowest level and carry each completed block to the level above, like a binary counter."""
    n_classes = pending.shape[1]
    for i in range(codes.shape[0]):
        row = start + i + 1
        ring[(row - 1) % ring.shape[0]] = codes[i]
        pending[_LOWEST, codes[i]] += 1
        if row % (1 << _LOWEST):
            continue
        row, level = row >> _LOWEST, _LOWEST
        while level + 1 < pending.shape[0]:
            for c in range(n_classes):
                n = pending[level, c]
                total[level, c] += n
                squares[level, c] += float(n) * n
                pending[level + 1, c] += n
                pending[level, c] = 0
            blocks[level] += 1
            if row & 1:
                break
            row >>= 1
            level += 1


@functools.lru_cache(maxsize=64)
def _around(n: int, h: int) -> tuple[Ints, Ints, list[Ints], list[Ints], Ints, Ints]:
    """Return, for each f of (1) below n: first and last g of J, of I, and of what J leaves out; and their numbers.

    >>> [np.ravel(part)[20] for part in _around(100, 0)[:2]]
    [np.int64(15), np.int64(32)]
    """
    f, wide = np.arange(3, n), _BESIDE * (h + 1)
    low = np.maximum(np.minimum(0.7 * f, f - wide).astype(np.intp), 1)
    high = np.minimum(np.maximum(1.4 * f, f + wide).astype(np.intp), n - 1)
    near, apart = [[np.maximum(f - width, 1), np.minimum(f + width, n - 1)] for width in (h, h + 1)]
    return low, high, near, apart, near[1] - near[0] + 1, np.maximum(high - low - (apart[1] - apart[0]), 1)


class LabelSeries(SizedState):
    """Block variances of the labels at doubling block lengths, and the last labels; mergeable.

    Parameters
    ----------
    n_classes : int
    cycles : bool, default=False
        Whether `update` looks for a period of the labels.

    Notes
    -----
    Memory: 1.2 kB per class, and the codes of the last 3,187 labels (13 kB), for any number of rows. A batch is
    equivalent to its rows one at a time, exactly. Merging adds the complete blocks of the other part; the last labels
    are those of the later part.

    References
    ----------
    Flyvbjerg, Petersen (1989). Error estimates on averages of correlated data. Equations (2) to (4) of
    :mod:`tamis.dependence.autocorrelation`.

    Examples
    --------
    Labels that change every ten rows on average, and the same labels in random order:

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(rng.integers(0, 2, 300), rng.integers(1, 20, 300))
    >>> series, random = LabelSeries(2), LabelSeries(2)
    >>> _ = series.update(labels)
    >>> _ = random.update(rng.permutation(labels))
    >>> series.dependent, random.dependent
    (True, False)
    >>> bool(10 < series.correlation_length() < 20)
    True
    """

    _state_spec = Shapes("""
        _pending (48, c) int64 in [0, 2**62) fill 0
        _total (48, c) int64 in [0, 2**62) fill 0
        _squares (48, c) float in [0, inf) fill 0
        _blocks (48) int64 in [0, 2**62)
        _ring (3187) int32 in [0, max(_total.shape[1], 1))
        _n_last in [0, 3187]
        n_rows in [0, 2**62)
        period in [0, 3187]
    """)

    cycles = False
    period = 0  # of the cycle of the labels in rows; 0: none

    def __init__(self, n_classes: int, *, cycles: bool = False) -> None:
        self.cycles = cycles
        self._pending = np.zeros((_LEVELS, n_classes), np.int64)  # rows of the incomplete block
        self._total = np.zeros((_LEVELS, n_classes), np.int64)  # rows of the complete blocks
        self._squares = np.zeros((_LEVELS, n_classes))  # sum of the squared counts of the complete blocks
        self._blocks = np.zeros(_LEVELS, np.int64)
        self._ring = np.zeros(_LONGEST, np.int32)  # label of row i at i modulo the length
        self._n_last = 0
        self.n_rows = 0
        self.period = 0

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._total.shape[1]

    @property
    def n_counted(self) -> int:
        """Number of labels, of merged parts too, in complete blocks of four."""
        return int(self._total[_LOWEST].sum())

    nbytes = property(n_bytes)

    @property
    def last(self) -> NDArray[np.int32]:
        """Codes of the last labels, oldest first; at most ``max(LAGS)``."""
        ring, first, n = self.ring
        return np.concatenate([ring[first:], ring[:first]])[_LONGEST - n :]

    @property
    def ring(self) -> tuple[NDArray[np.int32], int, int]:
        """Codes of the last ``max(LAGS)`` labels in a ring, the place of the next one, and how many there are."""
        return self._ring, self.n_rows % _LONGEST, self._n_last

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        super().reorder(order)
        self._ring = np.argsort(order).astype(np.int32)[self._ring]

    def update(self, codes: Array) -> Ints:
        """Add labels in the order of their rows.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,), int64
            Class of each row, below `n_classes`.

        Returns
        -------
        ndarray of shape (n_rows,), int64
            Class of the row one period earlier; -1 without a cycle, or if it is not known.
        """
        before, start = np.full(len(codes), -1, np.int64), 0
        while start < len(codes):
            left = self._until_search() if self.cycles else len(codes) - start
            part = slice(start, min(len(codes), start + left))
            if self.period:
                known = np.concatenate([self.last[-self.period :], codes[part]])
                lag = len(known) - self.period
                if lag > 0:
                    before[part.stop - lag : part.stop] = known[:lag]
            of_blocks = self._pending, self._total, self._squares, self._blocks
            _add(codes[part], self.n_rows, self._ring, *of_blocks)
            self.n_rows += part.stop - start
            self._n_last, start = min(self._n_last + part.stop - start, _LONGEST), part.stop
            if self.cycles and part.stop - part.start == left:
                self.period = self.find_period()
        return before

    def _until_search(self) -> int:
        """Return the rows until a period is looked for: after 64, 80, 96, 112, 128, 160, ... rows."""
        step = 1 << max(self.n_rows.bit_length() - 3, 4)  # a quarter of the largest power of two up to n
        return max(step - self.n_rows % step, _SHORTEST - self.n_rows)

    def merge(self, other: Self, *, first: bool = False) -> None:
        """Add the labels of another part of the stream, of the same classes.

        Parameters
        ----------
        other : LabelSeries
        first : bool, default=False
            Whether the rows of `other` precede those of this object.
        """
        early, late = (other, self) if first else (self, other)
        last = np.concatenate([early.last, late.last])[-_LONGEST:]
        # A block that spans both parts would mix distant rows, so incomplete blocks of the early part are dropped. The
        # row count restarts at a multiple of all block lengths in use, with the late part's incomplete blocks.
        self._total, self._squares = early._total + late._total, early._squares + late._squares
        self._blocks = early._blocks + late._blocks
        self._pending, self.n_rows, self._n_last = late._pending.copy(), late.n_rows, len(last)
        self.period = late.period or early.period
        padded = np.concatenate([np.zeros(_LONGEST - len(last), np.int32), last])
        self._ring = np.roll(padded, self.n_rows % _LONGEST).astype(np.int32)

    def inflation(self) -> tuple[Floats, Floats]:
        """Return R of each level with at least 8 blocks, and its excess over 1 in standard errors.

        Returns
        -------
        ratio, excess : ndarray of shape (n_levels,), float64
            From level 2 on: blocks of 4, 8, 16, ... rows.
        """
        return self._read()[:2]

    def _read(self) -> tuple[Floats, Floats, Floats]:
        """Return R, its excess over 1 in standard errors, and R_c, by level."""
        levels = slice(_LOWEST, _LOWEST + np.count_nonzero(self._blocks >= _FEWEST))
        blocks = self._blocks[levels].astype(np.float64)
        return count_ratios(self._total[levels], self._squares[levels], blocks, _N_ROWS[levels])

    @property
    def constant(self) -> bool:
        """Whether all labels are of one class."""
        return bool(np.count_nonzero(self._total[_LOWEST]) < 2)

    @property
    def dependent(self) -> bool:
        """Whether the labels are serially dependent, (4)."""
        return bool(self.inflation()[1].max(initial=0.0) > SIGNIFICANT)

    def variance_inflation(self, longest: int = 128) -> float:
        """Return the variance of sums of the labels relative to independent labels; 1 unless :attr:`dependent`.

        The score contributions of an unrelated feature have the product of the autocorrelations of feature and label,
        so this is an upper bound for the score of any unrelated feature, over up to `longest` rows. A change of the
        class proportions has little effect, (2).

        Parameters
        ----------
        longest : int, default=128
            Rows of the longest blocks used.

        Returns
        -------
        float
        """
        if not self.dependent:
            return 1.0
        top = max(longest.bit_length() - 1, _LOWEST)
        levels = np.arange(_LOWEST, top + 1)[self._blocks[_LOWEST : top + 1] >= _FEWEST]
        above = top + 4
        n_inner = 2 ** (above - levels)
        left = self._blocks[levels] - n_inner * self._blocks[above]  # in the last, incomplete long block
        rest = (self._total[levels] - self._total[above]).astype(np.float64)
        within = self._squares[levels] - self._squares[above] / n_inner[:, None]
        within -= rest * rest / np.maximum(left, 1)[:, None]
        rows = _N_ROWS[levels] * np.maximum(self._blocks[levels] - self._blocks[above] - (left > 0), 1)
        share = self._total[levels] / np.maximum(self._blocks[levels] * _N_ROWS[levels], 1.0)[:, None]
        seen = (share > 0.0) & (share < 1.0)
        dispersion = np.divide(within, share * rows[:, None], out=np.zeros_like(within), where=seen)
        freedom = np.maximum(seen.sum(axis=1) - 1.0, 1.0)
        return max(1.0, float((dispersion.sum(axis=1) / freedom).max(initial=1.0)))

    def find_period(self) -> int:
        """Return the period of the last labels in rows, or 0 if they have no cycle, (1)."""
        n = self._n_last
        if n < _SHORTEST:
            return 0
        indicators = np.argsort(-self._total[_LOWEST], kind="stable")[:_MOST_CLASSES, None] == self.last
        centred = indicators - indicators.mean(axis=1, keepdims=True)
        spectrum = scipy.fft.rfft(centred, axis=1)
        power = (np.abs(spectrum) ** 2).sum(axis=0)[: n // 2]
        total, f = np.concatenate([[0.0], np.cumsum(power)]), np.arange(3, len(power))
        level = _ALPHA * (_STAYS if self.period else 1.0)
        is_line = np.zeros(spectrum.shape[1], dtype=bool)
        for h in _WIDTHS:
            low, high, near, apart, n_near, beside = _around(len(power), h)
            inner = total[near[1] + 1] - total[near[0]]
            around = total[high + 1] - total[low] - (total[apart[1] + 1] - total[apart[0]])
            at = np.flatnonzero(inner * beside > _LEAST * around * n_near)
            ratio = inner[at] * beside[at] / np.maximum(around[at] * n_near[at], 1e-300)
            found = f[at[fdtrc(2.0 * n_near[at], 2.0 * beside[at], ratio) < level / len(f)]]
            if len(found):
                for shift in range(-_LEAK, _LEAK + 1):
                    is_line[np.clip(found + shift, 1, len(power) - 1)] = True
                break
        if not is_line.any():
            return 0
        cycle = scipy.fft.irfft(np.where(is_line, spectrum, 0.0), n, axis=1)
        size = scipy.fft.next_fast_len(2 * n, real=True)
        square = (np.abs(scipy.fft.rfft(cycle, size, axis=1)) ** 2).sum(axis=0)
        lags = scipy.fft.irfft(square, size)[: n // 3 + 1] / (n - np.arange(n // 3 + 1))
        first = int(np.argmax(np.diff(lags) > 0.0))  # the main lobe ends there
        nearer = lags * (1.0 - _NEARER * np.arange(len(lags)) / n)
        return first + int(np.argmax(nearer[first:])) if first else 0

    def memory_length(self) -> float:
        """Return the memory in rows: the smallest block length from which R is flat; infinite if none is."""
        ratio = self._read()[0]
        if not len(ratio):
            return 1.0
        blocks = self._blocks[_LOWEST : _LOWEST + len(ratio)].astype(np.float64)
        level = memory_level(ratio, blocks)
        return float(_N_ROWS[_LOWEST + int(level)]) if math.isfinite(level) else level

    def correlation_length(self) -> float:
        """Return the correlation length in rows: the largest R_c of any class and level, at least 1."""
        return float(self._read()[2].max(initial=1.0))
