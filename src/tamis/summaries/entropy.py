"""Entropies of every feature and of the class over a sliding window, exact, in O(1) per feature and row.

Barddal's thesis, section 6.1, as counts. With n rows in the window, n_x of value (bin) x, n_y of class y, n_xy of both,
and f(k) = k log2 k::

    T_X = sum f(n_x)     T_Y = sum f(n_y)     T_XY = sum f(n_xy)
    H(X) = (f(n) - T_X) / n     H(Y) = (f(n) - T_Y) / n                                      (1)
    H(Y|X) = (T_X - T_XY) / n                                                                (2)
    IG = H(Y) - H(Y|X)     gain ratio = IG / H(X)     SU = 2 IG / (H(X) + H(Y))              (3)
    bias = (values - 1) (classes - 1) / (2 n ln 2)                                           (4)

A row that arrives or leaves changes one term of each sum. f comes from a table of whole multiples of a power of two, so
the sums are integers: nothing is rounded on the way, whatever the stream's length, and the state depends on the rows of
the window alone. (1) to (3) equal their values from a recount within about 1e-15. The thesis updates entropies by
floating-point recurrences (Algorithm 1), right but for windows of 0 and 1 rows, which drift by 3e-10 in a million rows;
its Eq. 6.7 prints H(X|Y) where (2) is meant. (4) is what a feature that tells nothing has on average (Miller, Madow);
"values" are those with counts. Corrected scores subtract it from IG and stop at 0.

Entropies are in bits. SU is 0 while the window holds fewer than two classes, and where nothing varies.

Numbers are binned (:mod:`tamis.summaries.discretize`), categories counted one by one
(:mod:`tamis.summaries.categories`), sparse binary rows by their ones (:mod:`tamis.summaries.sparse_window`).

After every row
---------------
An algorithm that looks at SU after every row calls, from its own kernel::

    update_row(row, code, state, su, corrected)      # all of them change in place: state, su

    row : ndarray of shape (n_features,), float64, C-contiguous; NaN is missing
    code : int, the row's class
    state : ``counts.state``, a tuple of arrays: ask for it anew after each ``counts.prepare`` and ``counts.grow``
    su : ndarray of shape (n_features,), float64; overwritten by ``symmetrical_uncertainty(corrected)``
    corrected : bool

and takes in only as many rows at a time as ``prepare`` says, which makes room for their categories::

    while len(X):
        n = counts.prepare(X, codes)                 # checks them, too
        for row, code in zip(X[:n], codes[:n]):      # in a kernel of its own
            update_row(row, code, counts.state, su, corrected)
        X, codes = X[n:], codes[n:]

Dense rows only. The state is then what ``update`` leaves behind, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows, check_choice, check_number, is_integer, refuse_nonfinite
from tamis._jit import njit
from tamis.errors import DataError
from tamis.summaries.batch import check_batch
from tamis.summaries.categories import find_slot, insert, rehouse, room_for
from tamis.summaries.discretize import CELLS_PER_BIN, MIN_GAP, build_bins, quantile_cuts
from tamis.summaries.sparse_window import SparseWindow

__all__ = ["WindowCounts", "update_row"]

Floats = NDArray[np.float64]
State = tuple[Array, ...]
_BLOCK = 64  # features whose counts stay in the nearest cache while a batch is counted
_BITS = 60  # of the sums
_LN4 = 2.0 * np.log(2.0)


@njit(strict=True)
def _recount(j: int, n: int, state: State) -> None:
    """Count the bins of the window's rows anew, for one feature."""
    bins, ring, start, counts, sums, f, options = (
        state[1],
        state[2],
        state[5],
        state[7],
        state[8],
        state[15],
        state[16],
    )
    first, last = start[j], start[j + 1] - 1
    counts[first : last + 1] = 0
    for p in range(n):
        counts[first + bins[j, p], 1 + ring[p]] += 1
    sums[j] = 0
    for slot in range(first, last + 1):
        total, t_xy = 0, 0
        for c in range(1, counts.shape[1]):
            total += counts[slot, c]
            t_xy += f[counts[slot, c]]
        counts[slot, 0] = total
        if slot < last or options[1] == 0:
            sums[j, 0] += f[total]
            sums[j, 1] += t_xy
            sums[j, 2] += total > 0


@njit(strict=True)
def _cut_anew(n: int, state: State) -> None:
    """Bin the window's numbers by their cuts."""
    raw, bins, numeric, cuts = state[0], state[1], state[9], state[10]
    for j in range(len(raw)):
        if not numeric[j]:
            continue
        for p in range(n):
            b = 0
            for cut in cuts[j]:
                b += cut < raw[j, p]
            bins[j, p] = b if raw[j, p] == raw[j, p] else len(cuts[j]) + 1
        _recount(j, n, state)


@njit(strict=True)
def _bin_number(x: float, cuts: Array, grid: Array, j: int, pad: bool) -> int:
    v, b = np.floor((0.5 * x - grid[j, 0]) * grid[j, 1]) if pad else x, 0
    for q in range(cuts.shape[1]):
        b += cuts[j, q] < v
    return b


@njit(strict=True)
def _take(X: Array, codes: Array, begin: int, end: int, state: State) -> None:
    """Count rows, and forget those they replace, for some features."""
    (
        raw,
        bins,
        ring,
        seen,
        _,
        start,
        keys,
        counts,
        sums,
        numeric,
        cuts,
        grid,
        band,
        built,
        _,
        _,
        options,
        _,
        step,
    ) = state
    w, pad, skip = len(ring), options[0] == 1, options[1] == 1
    for i in range(len(X)):
        t = seen[0] + i
        p, y, row = t % w, codes[i], X[i]
        old_y = ring[p] if t >= w else -1
        fresh = t < w and (t + 1 == w or (t + 1) & t == 0)  # the window is full, or has doubled
        bits, ring[p] = row.view(np.uint64), y
        for j in range(begin, end):
            x, first, missing = row[j], start[j], start[j + 1] - start[j] - 1
            if x != x:
                b = missing
            elif numeric[j]:
                b = _bin_number(x, cuts, grid, j, pad)
            else:
                b = find_slot(x, bits[j], keys, first, first + missing) - first
            old, k_old, t_x, t_xy, values = bins[j, p], 0, 0, 0, 0
            raw[j, p], bins[j, p] = x, b
            if old_y >= 0:
                k, k_y = counts[first + old, 0], counts[first + old, 1 + old_y]
                counts[first + old, 0], counts[first + old, 1 + old_y] = k - 1, k_y - 1
                k_old = k - 1
                if not (skip and old == missing):
                    t_x, t_xy, values = -step[k], -step[k_y], -(k == 1)
            k, k_y = counts[first + b, 0] + 1, counts[first + b, 1 + y] + 1
            counts[first + b, 0], counts[first + b, 1 + y] = k, k_y
            if not (skip and b == missing):
                t_x, t_xy, values = t_x + step[k], t_xy + step[k_y], values + (k == 1)
            sums[j, 0] += t_x
            sums[j, 1] += t_xy
            sums[j, 2] += values
            if pad and numeric[j]:
                if old_y < 0 or old != b:
                    left = old_y >= 0 and old != missing and k_old < band[j, 0]
                    if left or (b != missing and k > band[j, 1]):
                        built[j, 1] = 1
                if fresh or (built[j, 1] and t - built[j, 0] > MIN_GAP):
                    _rebuild(j, t, fresh, state)


@njit(strict=True)
def _rebuild(j: int, t: int, fresh: bool, state: State) -> None:
    raw, bins, cuts, grid, band, built, cells = (
        state[0],
        state[1],
        state[10],
        state[11],
        state[12],
        state[13],
        state[14],
    )
    n = min(t + 1, raw.shape[1])
    build_bins(raw[j, :n], fresh, grid[j], cuts[j], band[j], cells, bins[j, :n])
    _recount(j, n, state)
    built[j, 0], built[j, 1] = t, 0


@njit(strict=True)
def _learn(X: Array, codes: Array, state: State) -> None:
    """Take in a batch, a block of features at a time."""
    ring, seen, class_counts = state[2], state[3], state[4]
    before, d = ring.copy(), X.shape[1]
    for begin in range(0, d, _BLOCK):
        ring[:] = before
        _take(X, codes, begin, min(begin + _BLOCK, d), state)
    seen[0] += len(X)
    class_counts[:] = 0
    for p in range(min(seen[0], len(ring))):
        class_counts[ring[p]] += 1


@njit(strict=True)
def _measure(state: State) -> None:
    """Write H(X), H(Y), H(Y|X) and the bias of each feature; H(Y) is that of the rows where it is counted."""
    _, _, ring, seen, class_counts, start, _, counts, sums, _, _, _, _, _, _, f, options, measures, _ = (
        state
    )
    unit = 2.0 ** -options[2]
    for j in range(len(start) - 1):
        n, last, t_y, classes = min(seen[0], len(ring)), start[j + 1] - 1, 0, 0
        skipped = options[1] * counts[last, 0]
        n -= skipped
        for c in range(len(class_counts)):
            k = class_counts[c] - (counts[last, 1 + c] if skipped else 0)
            t_y += f[k]
            classes += k > 0
        measures[:, j] = 0.0
        if n > 0:
            measures[0, j] = (f[n] - sums[j, 0]) * unit / n  # (1)
            measures[1, j] = (f[n] - t_y) * unit / n
            measures[2, j] = (sums[j, 0] - sums[j, 1]) * unit / n  # (2)
            measures[3, j] = max(sums[j, 2] - 1, 0) * max(classes - 1, 0) / (n * _LN4)  # (4)


@njit(strict=True)
def _uncertainty(measures: Array, corrected: bool, su: Array) -> None:
    for j in range(len(su)):
        h_x, h_y = measures[0, j], measures[1, j]
        gain = h_y - measures[2, j] - (measures[3, j] if corrected else 0.0)
        su[j] = min(max(2.0 * gain / (h_x + h_y), 0.0), 1.0) if h_x + h_y > 0.0 else 0.0  # (3)


@njit(strict=True)
def update_row(row: Array, code: int, state: State, su: Array, corrected: bool) -> None:
    """Take in one row and refresh the symmetrical uncertainties; the module's docstring tells how to call it.

    Examples
    --------
    >>> counts, su = WindowCounts(2, 2, window=4, categorical=[0, 1]), np.zeros(2)
    >>> X, codes = np.array([[0.0, 3.0], [1.0, 3.0], [0.0, 4.0], [1.0, 4.0]]), np.array([0, 1, 0, 1])
    >>> for row, code in zip(X[: counts.prepare(X, codes)], codes):
    ...     update_row(row, code, counts.state, su, False)
    >>> su
    array([1., 0.])
    """
    ring, seen, class_counts, measures = state[2], state[3], state[4], state[17]
    t = seen[0]
    p = t % len(ring)
    old = ring[p] if t >= len(ring) else -1
    if old >= 0:
        class_counts[old] -= 1
    class_counts[code] += 1
    _take(row.reshape(1, len(row)), np.full(1, code), 0, len(row), state)
    seen[0] = t + 1
    _measure(state)
    _uncertainty(measures, corrected, su)


@njit(strict=True)
def _pairs(i: int, others: Array, n: int, state: State, su: Array) -> None:
    """Write SU of feature i with others, counted from the bins of the window's rows in which both are known."""
    bins, start, f, skip = state[1], state[5], state[15], state[16][1]
    width = start[i + 1] - start[i]
    a = np.zeros(width, np.int64)
    for o in range(len(others)):
        j = others[o]
        other = start[j + 1] - start[j]
        b, both = np.zeros(other, np.int64), np.zeros(width * other, np.int64)
        a[:], known = 0, 0
        for p in range(n):
            x, z = bins[i, p], bins[j, p]
            if skip and (x == width - 1 or z == other - 1):
                continue
            known += 1
            a[x] += 1
            b[z] += 1
            both[x * other + z] += 1
        t_a, t_b, t_both = 0, 0, 0
        for k in a:
            t_a += f[k]
        for k in b:
            t_b += f[k]
        for k in both:
            t_both += f[k]
        spread = float(2 * f[known] - t_a - t_b)
        gain = f[known] - t_a - t_b + t_both
        su[o] = min(max(2.0 * gain / spread, 0.0), 1.0) if spread > 0.0 else 0.0


class WindowCounts:
    """Counts of every feature's values, together with the class, over the last rows.

    Parameters
    ----------
    n_features : int, at least 1
    n_classes : int, at least 0
        Classes are the codes 0, 1, ..., n_classes - 1; :meth:`grow` makes room for more.
    window : int, at least 2, default=200
        Rows that count, w.
    categorical : sequence of int, default=()
        Columns whose values are categories: any finite numbers. All others are numbers, to be binned.
    n_bins : int, at least 2, default=10
        Most bins of a number.
    discretizer : {"pad", "quantile"}, default="pad"
        How numbers are binned: adaptively (PaD), or by the exact quantiles of the window, taken anew every w / 4 rows.
        Either way the counts are those of the whole window in the bins of now.
    missing : {"category", "skip"}, default="category"
        Whether NaN is a category of its own, or a row with NaN does not count for that feature.

    Attributes
    ----------
    n_features, n_classes, window, n_rows : int
        `n_rows` is how many rows the window holds.
    class_counts : ndarray of shape (n_classes,), int64
    n_seen : int
        Rows taken in so far.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    Notes
    -----
    Rows are counted one by one: a batch leaves the same scores, bit for bit, as its rows in any other batches.

    Memory: 12 bytes per feature and row of the window, 4 per feature, bin and class, and about 300 per feature. CSR
    rows of zeros and ones are kept as they are, 4 bytes per one, with 4 bytes per feature and class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> counts = WindowCounts(n_features=3, n_classes=2, window=300, categorical=[2])
    >>> codes = rng.integers(0, 2, 1000)
    >>> X = np.c_[rng.normal(size=1000), rng.normal(size=1000) + 2 * codes, rng.integers(0, 4, 1000)]
    >>> counts.update(X, codes)
    >>> counts.n_rows, counts.class_counts.sum()
    (300, np.int64(300))
    >>> counts.symmetrical_uncertainty().round(2)
    array([0.02, 0.22, 0.  ])
    >>> counts.symmetrical_uncertainty(corrected=True).round(2)
    array([0.01, 0.21, 0.  ])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        window: int = 200,
        *,
        categorical: Any = (),
        n_bins: int = 10,
        discretizer: str = "pad",
        missing: str = "category",
    ) -> None:
        check_number("n_features", n_features, low=1, integer=True)
        check_number("n_classes", n_classes, low=0, integer=True)
        check_number("window", window, low=2, integer=True)
        check_number("n_bins", n_bins, low=2, integer=True)
        check_choice("discretizer", discretizer, ("pad", "quantile"))
        check_choice("missing", missing, ("category", "skip"))
        self.n_features, self.window, self.n_bins = int(n_features), int(window), int(n_bins)
        self.discretizer, self.missing = discretizer, missing
        self._numeric = _numeric_columns(categorical, self.n_features)
        self._sparse: SparseWindow | None = None  # instead of what follows, if the first rows are CSR
        self._raw = np.zeros(
            (0, self.window)
        )  # value of each feature in each row, a ring; made by the first rows
        self._bins = np.zeros((0, self.window), np.int32)
        self._ring = np.zeros(self.window, np.int64)  # class of each row
        self._seen = np.zeros(1, np.int64)
        self._class_counts = np.zeros(int(n_classes), np.int64)
        k = np.arange(self.window + 1, dtype=np.float64)
        f = k * np.log2(np.maximum(k, 1.0))
        scale = _BITS - int(np.ceil(np.log2(f[-1])))
        self._f = np.rint(np.ldexp(f, scale)).astype(np.int64)
        self._step = np.r_[0, np.diff(self._f)]
        self._options = np.array([discretizer == "pad", missing == "skip", scale], np.int64)
        self._renewed = 0  # when the quantiles were last taken

    # -- what there is -------------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        """For how many classes there is room."""
        return len(self._class_counts)

    @property
    def n_seen(self) -> int:
        """How many rows were taken in so far."""
        return int(self._seen[0])

    @property
    def n_rows(self) -> int:
        """How many rows the window holds."""
        return min(self.n_seen, self.window)

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """Rows of each class in the window, shape (n_classes,)."""
        return self._class_counts.copy()

    @property
    def state(self) -> State:
        """The arrays that :func:`update_row` changes."""
        if len(self._raw) == 0:
            self._build()
        return (
            self._raw, self._bins, self._ring, self._seen, self._class_counts, self._start, self._keys, self._counts,
            self._sums, self._numeric, self._cuts, self._grid, self._band, self._built, self._cells, self._f,
            self._options, self._measures, self._step,
        )  # fmt: skip

    def _build(self) -> None:
        d, cuts = self.n_features, self.n_bins - 1
        self._raw = np.zeros((d, self.window))
        self._bins = np.zeros((d, self.window), np.int32)
        self._start = np.r_[0, np.cumsum(np.where(self._numeric, self.n_bins + 1, room_for(2)))]
        self._keys = np.full(self._start[-1], np.nan)  # the category of each slot
        self._used = np.zeros(d, np.int64)  # slots that have one
        self._counts = np.zeros(
            (self._start[-1], 1 + self.n_classes), np.int32
        )  # n_x, then n_xy of each class
        self._sums = np.zeros((d, 3), np.int64)  # T_X, T_XY, values with counts
        self._cuts = np.full((d, cuts), np.inf)
        self._grid = np.zeros((d, 2))  # of PaD, as is what follows
        self._band = np.zeros((d, 2))
        self._built = np.zeros((d, 2), np.int64)  # row of the last build, and whether another is due
        self._cells = np.zeros(10 * CELLS_PER_BIN * self.n_bins + 2, np.int32)
        self._measures = np.zeros((4, d))

    # -- learning ------------------------------------------------------------------------------------------

    def grow(self, n_classes: int) -> None:
        """Make room for new classes, with codes after the old ones.

        Parameters
        ----------
        n_classes : int
            All classes, not fewer than before.
        """
        check_number("n_classes", n_classes, low=self.n_classes, integer=True)
        new = n_classes - self.n_classes
        self._class_counts = np.r_[self._class_counts, np.zeros(new, np.int64)]
        if self._sparse is not None:
            self._sparse.grow(n_classes)
        elif len(self._raw):
            self._counts = np.pad(self._counts, ((0, 0), (0, new)))

    def update(self, X: Rows, codes: Array) -> None:
        """Take in rows, in order.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or CSR matrix of zeros and ones
            Finite numbers, or NaN. If the first rows are CSR, the counts are kept by the ones alone: O(ones) per row.
        codes : ndarray of shape (n_rows,), int
            Class of each row, below `n_classes`.

        Raises
        ------
        DataError
            If X or codes are not as above; nothing is changed.
        """
        if sp.issparse(X) and self.n_seen == 0 and self._sparse is None:
            self._check(X, codes)
            self._sparse = SparseWindow(self.n_features, self.n_classes, self.window)
        if self._sparse is not None:
            self._check(X, codes)
            self._sparse.update(X, codes, self._ring, self._seen, self._class_counts)
            return
        X = X.toarray() if sp.issparse(X) else X
        codes = np.ascontiguousarray(codes, np.int64) if codes.dtype.kind in "iu" else codes
        while len(X):
            n = self.prepare(X, codes)
            _learn(np.ascontiguousarray(X[:n], np.float64), codes[:n], self.state)
            X, codes = X[n:], codes[n:]

    def prepare(self, X: Array, codes: Array) -> int:
        """Make ready for rows, and return how many of them :func:`update_row` may take before this is called again.

        Parameters
        ----------
        X, codes : ndarray
            As :meth:`update` takes them, dense.

        Returns
        -------
        int
            From 1 to their number.

        Raises
        ------
        DataError
            As :meth:`update`.
        """
        self._check(X, codes)
        state = self.state
        n, t, quarter = len(X), self.n_seen, max(self.window // 4, 1)
        if self.discretizer == "quantile" and self._numeric.any():
            due = t % quarter == 0 or (t < quarter and t & (t - 1) == 0)
            if due and self._renewed != t:
                self._cuts[self._numeric] = quantile_cuts(
                    self._raw[self._numeric, : self.n_rows], self.n_bins
                )
                _cut_anew(self.n_rows, state)
                self._renewed = t
            next_time = min(quarter - t % quarter, t if t > 0 and 2 * t < quarter else quarter)
            n = min(n, 1 if t == 0 else next_time)
        columns = np.flatnonzero(~self._numeric)
        if len(columns):
            self._make_room(np.ascontiguousarray(X[:n], np.float64), columns)
        return n

    def _make_room(self, X: Array, columns: Array) -> None:
        short = np.zeros(self.n_features, np.bool_)
        insert(X, columns, self._start, self._keys, self._used, short)
        if not short.any():
            return
        width = np.diff(self._start)
        for j in np.flatnonzero(short):
            slots = slice(self._start[j], self._start[j + 1] - 1)
            live = self._keys[slots][self._counts[slots, 0] > 0]
            values = np.union1d(live, X[:, j][~np.isnan(X[:, j])])
            width[j] = max(width[j], room_for(len(values)))
        start = np.r_[0, np.cumsum(width)]
        keys, counts = np.full(start[-1], np.nan), np.zeros((start[-1], 1 + self.n_classes), np.int32)
        rehouse(
            self._start,
            self._keys,
            self._counts,
            short,
            self._bins,
            self.n_rows,
            self._used,
            start,
            keys,
            counts,
        )
        self._start, self._keys, self._counts = start, keys, counts
        insert(X, columns, start, keys, self._used, np.zeros_like(short))

    def _check(self, X: Rows, codes: Array) -> None:
        check_batch(X, codes, None, 1.0, self.n_features, self.n_classes)
        if X.dtype.kind not in "fiub":
            raise DataError(f"X is of dtype {X.dtype}: give numbers.")
        refuse_nonfinite(X, allow_nan=True)

    # -- read-outs -----------------------------------------------------------------------------------------

    def _measured(self) -> Floats:
        """Return H(X), H(Y), H(Y|X) and the bias, shape (4, n_features)."""
        if self._sparse is not None:
            return self._sparse.measures(self._class_counts, self._f, int(self._options[2]))
        _measure(self.state)
        return self._measures

    def entropy(self) -> Floats:
        """Return H(X) of each feature in bits, (1): shape (n_features,), from 0 to log2 of its values."""
        found: Floats = self._measured()[0].copy()
        return found

    def class_entropy(self) -> float:
        """Return H(Y) of the window in bits, (1): from 0 to log2(n_classes)."""
        n = max(self.n_rows, 1)
        return float((self._f[n] - self._f[self._class_counts].sum()) * 2.0 ** -int(self._options[2]) / n)

    def conditional_entropy(self) -> Floats:
        """Return H(Y|X) of each feature in bits, (2): shape (n_features,), from 0 to H(Y)."""
        found: Floats = self._measured()[2].copy()
        return found

    def information_gain(self, corrected: bool = False) -> Floats:
        """Return IG of each feature in bits, (3): shape (n_features,), from 0 to H(Y).

        Parameters
        ----------
        corrected : bool, default=False
            Whether to subtract the bias (4).
        """
        _, h_y, h_y_x, bias = self._measured()
        found: Floats = np.maximum(h_y - h_y_x - (bias if corrected else 0.0), 0.0)
        return found

    def gain_ratio(self) -> Floats:
        """Return IG / H(X) of each feature, (3): shape (n_features,), 0 where H(X) is 0."""
        h_x, h_y, h_y_x, _ = self._measured()
        gain = np.maximum(h_y - h_y_x, 0.0)
        found: Floats = np.divide(gain, h_x, out=np.zeros(self.n_features), where=h_x > 0.0)
        return found

    def symmetrical_uncertainty(self, corrected: bool = False) -> Floats:
        """Return SU of each feature and the class, (3): shape (n_features,), in [0, 1].

        Parameters
        ----------
        corrected : bool, default=False
            Whether to subtract the bias (4) from IG.
        """
        su = np.empty(self.n_features)
        _uncertainty(self._measured(), bool(corrected), su)
        return su

    def pair_symmetrical_uncertainty(self, i: int, others: Array) -> Floats:
        """Return SU of feature i with each of the others over the window, without the class.

        Parameters
        ----------
        i : int
        others : array of int, shape (m,)

        Returns
        -------
        ndarray of shape (m,), float64
            In [0, 1]; of a feature with itself 1, or 0 if it is constant. With missing="skip", over the rows that have
            both.
        """
        others = np.asarray(others, np.int64)
        for j in (i, *others.tolist()):
            if not (is_integer(j) and 0 <= j < self.n_features):
                raise ValueError(f"There is no feature {j!r}: the features are 0 to {self.n_features - 1}.")
        if self._sparse is not None:
            return self._sparse.pairs(i, others, self._f, self.n_rows)
        su = np.empty(len(others))
        _pairs(i, others, self.n_rows, self.state, su)
        return su

    # -- the window ----------------------------------------------------------------------------------------

    def _order(self) -> NDArray[np.int64]:
        """Return the places of the window's rows, oldest first."""
        return np.arange(self.n_seen - self.n_rows, self.n_seen) % self.window

    def binned(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the window's rows as bins, oldest first, and their classes.

        Returns
        -------
        bins : ndarray of shape (n_rows, n_features), int32
            The bin of a number, in order of size; the rank of a category among those in the window. NaN is `n_bins`,
            or the number of the window's categories.
        codes : ndarray of shape (n_rows,), int64
        """
        order = self._order()
        if self._sparse is not None:
            return self._sparse.rows(order).toarray().astype(np.int32), self._ring[order]
        self.state  # noqa: B018
        bins = np.ascontiguousarray(self._bins[:, order].T)
        for j in np.flatnonzero(~self._numeric):
            values = self._raw[j, order]
            known = np.unique(values[~np.isnan(values)])
            bins[:, j] = np.where(np.isnan(values), len(known), np.searchsorted(known, values))
        return bins, self._ring[order]

    def rows(self) -> tuple[Rows, NDArray[np.int64]]:
        """Return the window's rows as they came, oldest first, and their classes.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features), float64, or CSR matrix
        codes : ndarray of shape (n_rows,), int64
        """
        order = self._order()
        if self._sparse is not None:
            return self._sparse.rows(order), self._ring[order]
        self.state  # noqa: B018
        return np.ascontiguousarray(self._raw[:, order].T), self._ring[order]

    @property
    def nbytes(self) -> int:
        """Bytes of the state."""
        if self._sparse is not None:
            return self._sparse.nbytes + self._ring.nbytes
        return sum(part.nbytes for part in self.state)


def _numeric_columns(categorical: Any, n_features: int) -> NDArray[np.bool_]:
    numeric = np.ones(n_features, np.bool_)
    for j in np.asarray(categorical).reshape(-1).tolist():
        if not (is_integer(j) and 0 <= j < n_features):
            raise ValueError(
                f"categorical names the column {j!r}, but the columns are 0 to {n_features - 1}: give their numbers."
            )
        numeric[j] = False
    return numeric
