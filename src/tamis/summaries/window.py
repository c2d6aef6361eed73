"""Kernels that count the rows of a sliding window, for :mod:`tamis.summaries.entropy`.

The state is four tuples of arrays, with d features, w rows, c classes, and S slots (all bins of all features)::

    rows    raw (m, w) float64, ring of the values of the m numeric features; bins (d, w) int32, for PaD valid only
            where `write_bins` has written them;
            ring (w,) int64, the classes; seen (1,) int64, rows so far; class_counts (c,) int64
    table   start (d + 1,) int64, first slot of each feature, whose last slot is for missing values; keys (S,) float64,
            the category of each slot; counts (S, 1 + c) int32, n_x and n_xy; sums (d, 3) int64, T_X, T_XY and the
            number of values that occur
    bounds  numeric (d,) int64, row of a feature in raw, -1 if it is categorical; cuts (d, n_bins - 1) float64; for PaD
            grid (d, 3), band (d, 2) float64, counted (m, c, *) int32, rows by class and cell, cells as working space,
            built (d, 2) int64, the row of the last build and whether another one is due
    fixed   f, step (w + 1,) int64, k log2 k and its differences, times 2**scale; options (3,) int64, whether bins are
            PaD's, whether missing values are skipped, scale; measures (4, d) float64
"""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, Ints, Rows
from tamis.errors import DataError
from tamis.summaries.batch import n_bytes
from tamis.summaries.categories import find_slot
from tamis.summaries.discretize import MIN_GAP, build_bins, cell_of, join_counted, place_of

State: TypeAlias = tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]
Arrays: TypeAlias = Any
_BLOCK = 64  # features whose counts fit in the L1 cache while a batch is counted
_LN4 = 2.0 * np.log(2.0)


@njit(strict=True)
def acceptable(X: Array, codes: Array, n_classes: int) -> bool:
    """Return whether no value is infinite and every code is in [0, n_classes)."""
    for code in codes:
        if not 0 <= code < n_classes:
            return False
    flat, none = X.reshape(-1), 0
    for i in range(len(flat)):
        none += abs(flat[i]) == np.inf
    return none == 0


@njit(strict=True, allocates=False)
def _recount(j: int, n: int, rows: Arrays, table: Arrays, fixed: Arrays) -> None:
    """Recount the bins of one feature from the rows of the window."""
    _, bins, ring, _, _ = rows
    start, _, counts, _ = table
    counts[start[j] : start[j + 1]] = 0
    for p in range(n):
        counts[start[j] + bins[j, p], 1 + ring[p]] += 1
    _sum_counts(j, table, fixed)


@njit(strict=True, allocates=False)
def _sum_counts(j: int, table: Arrays, fixed: Arrays) -> None:
    """Compute the sums of one feature from its counts."""
    start, _, counts, sums = table
    f, _, options, _ = fixed
    last = start[j + 1] - 1
    sums[j] = 0
    for slot in range(start[j], last + 1):
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
def rebin(n: int, state: State) -> None:
    """Bin the numeric values of the window by their cuts."""
    rows, table, bounds, fixed = state
    raw, bins, _, _, _ = rows
    numeric, cuts, _, _, _, _, _ = bounds
    for j in range(len(numeric)):
        if numeric[j] < 0:
            continue
        for p in range(n):
            x, b = raw[numeric[j], p], 0
            for q in range(cuts.shape[1]):
                b += cuts[j, q] < x
            bins[j, p] = b if x == x else cuts.shape[1] + 1
        _recount(j, n, rows, table, fixed)


@njit(strict=True, allocates=False)
def _bin_of(v: float, cuts: Array, j: int, missing: int) -> int:
    """Return the bin of a PaD cell or of a numeric value; NaN is missing."""
    if v != v:
        return missing
    b = 0
    for q in range(cuts.shape[1]):
        b += cuts[j, q] < v
    return b


@njit(strict=True)
def write_bins(n: int, state: State) -> None:
    """Write PaD's bins of the last n rows."""
    raw, bins, ring, seen, _ = state[0]
    numeric, cuts, grid, _, _, _, _ = state[2]
    w = len(ring)
    first, last = (seen[0] - n) % w, seen[0] % w
    for j in range(len(numeric)):
        if numeric[j] < 0 or n == 0:
            continue
        own = raw[numeric[j]]
        if first < last:
            _write_bins(own[first:last], grid[j], cuts[j], bins[j, first:last])
        else:
            _write_bins(own[first:], grid[j], cuts[j], bins[j, first:])
            _write_bins(own[:last], grid[j], cuts[j], bins[j, :last])


@njit(strict=True, allocates=False)
def _write_bins(values: Array, grid: Array, cuts: Array, bins: Array) -> None:
    """Write the bins of some values of a feature, one cut after the other, so that the comparisons vectorize."""
    origin, scale, missing = grid[0], grid[1], np.int32(len(cuts) + 1)
    for p in range(len(values)):
        bins[p] = missing if (0.5 * values[p] - origin) * scale != (0.5 * values[p] - origin) * scale else 0
    for cut in cuts:
        if cut == np.inf:
            break
        for p in range(len(values)):  # beyond the last cell of the bin; never true for NaN
            bins[p] += np.int32((0.5 * values[p] - origin) * scale >= cut + 1.0)


@njit(strict=True, allocates=False)
def _count_row(row: Array, y: int, t: int, begin: int, end: int, state: State) -> None:
    """Count row t and remove the row that it replaces, for some features; class_counts and seen are unchanged."""
    rows, table, bounds, fixed = state
    raw, bins, ring, _, _ = rows
    start, keys, counts, sums = table
    numeric, cuts, grid, band, built, counted, _ = bounds
    _, step, options, _ = fixed
    w, pad, skip = len(ring), options[0] == 1, options[1] == 1
    p, bits = t % w, row.view(np.uint64)
    old_y = ring[p] if t >= w else -1
    fresh = t < w and (t + 1 == w or (t + 1) & t == 0)  # the window is full, or has doubled
    ring[p] = y
    for j in range(begin, end):
        x, at, first, missing = row[j], numeric[j], start[j], start[j + 1] - start[j] - 1
        v, old = x, bins[j, p]
        if (
            pad and at >= 0 and old_y >= 0 and raw[at, p] == x
        ):  # only the class may differ, for example between zeros
            if y != old_y:
                v = cell_of(x, grid[j])
                slot, place = first + _bin_of(v, cuts, j, missing), place_of(v, grid[j], counted.shape[2])
                counted[at, old_y, place] -= 1
                counted[at, y, place] += 1
                k_y, k = counts[slot, 1 + old_y], counts[slot, 1 + y] + 1
                counts[slot, 1 + old_y], counts[slot, 1 + y] = k_y - 1, k
                sums[j, 1] += step[k] - step[k_y]
            if fresh or (built[j, 1] and t - built[j, 0] > MIN_GAP):
                _rebuild(j, t, fresh, rows, table, bounds, fixed)
            continue
        if at >= 0 and pad:
            v = cell_of(x, grid[j])
            if old_y >= 0:
                left = cell_of(raw[at, p], grid[j])
                old = _bin_of(left, cuts, j, missing)
                if left == left:
                    counted[at, old_y, place_of(left, grid[j], counted.shape[2])] -= 1
            if v == v:
                counted[at, y, place_of(v, grid[j], counted.shape[2])] += 1
        if at >= 0:
            raw[at, p] = x
            b = _bin_of(v, cuts, j, missing)
        else:
            b = missing if x != x else find_slot(x, bits[j], keys, first, first + missing) - first
        k_old, t_x, t_xy, values = 0, 0, 0, 0
        bins[j, p] = b
        if old_y >= 0:
            k, k_y = counts[first + old, 0], counts[first + old, 1 + old_y]
            counts[first + old, 0], counts[first + old, 1 + old_y] = k - 1, k_y - 1
            k_old = k - 1
            if not (skip and old == missing):
                t_x, t_xy, values = -step[k], -step[k_y], -int(k == 1)
        k, k_y = counts[first + b, 0] + 1, counts[first + b, 1 + y] + 1
        counts[first + b, 0], counts[first + b, 1 + y] = k, k_y
        if not (skip and b == missing):
            t_x, t_xy, values = t_x + step[k], t_xy + step[k_y], values + (k == 1)
        sums[j, 0] += t_x
        sums[j, 1] += t_xy
        sums[j, 2] += values
        if not pad or at < 0:
            continue
        if old_y < 0 or old != b:
            few = old_y >= 0 and old != missing and k_old < band[j, 0]
            if few or (b != missing and k > band[j, 1]):
                built[j, 1] = 1
        if fresh or (built[j, 1] and t - built[j, 0] > MIN_GAP):
            _rebuild(j, t, fresh, rows, table, bounds, fixed)


@njit(strict=True, allocates=False)
def _count_cells(j: int, end: int, grid: Array, cuts: Array, counted: Array, table: Arrays) -> None:
    """Recount the bins of a feature from its cells; the count of missing values is unchanged."""
    start, _, counts, _ = table
    first = 1
    for b in range(len(cuts) + 1):
        last = min(int(cuts[b] - grid[2]), end) if b < len(cuts) and cuts[b] < np.inf else end
        for c in range(counted.shape[0]):
            total = 0
            for n in counted[c, first : last + 1]:
                total += n
            counts[start[j] + b, 1 + c] = total
        first = last + 1


@njit(strict=True, allocates=False)
def _rebuild(j: int, t: int, fresh: bool, rows: Arrays, table: Arrays, bounds: Arrays, fixed: Arrays) -> None:
    """Rebuild the bins of a feature from its cells, or, more slowly, from the rows of the window."""
    raw, bins, ring, _, _ = rows
    numeric, cuts, grid, band, built, all_counted, cells = bounds
    counted, n = all_counted[numeric[j]], min(t + 1, raw.shape[1])
    built[j, 0], built[j, 1] = t, 0
    end = 0 if fresh else join_counted(grid[j], cuts[j], band[j], counted, cells)
    if end > 0:
        _count_cells(j, end, grid[j], cuts[j], counted, table)
        _sum_counts(j, table, fixed)
        return
    values = raw[numeric[j], :n]
    middle = build_bins(values, fresh, grid[j], cuts[j], band[j], cells, bins[j, :n])
    _recount(j, n, rows, table, fixed)
    grid[j, 2] = middle - counted.shape[1] // 2
    counted[:] = 0
    for p in range(n):
        if values[p] == values[p]:
            counted[ring[p], place_of(cell_of(values[p], grid[j]), grid[j], counted.shape[1])] += 1


@njit(strict=True)
def learn(X: Array, codes: Array, state: State) -> None:
    """Add a batch, a block of features at a time."""
    _, _, ring, seen, class_counts = state[0]
    w, d, t = len(ring), X.shape[1], seen[0]
    before = np.empty(min(len(X), w), np.int64)  # codes of the rows that are replaced
    for i in range(len(before)):
        before[i] = ring[(t + i) % w]
    for begin in range(0, d, _BLOCK):
        for i in range(len(before)):
            ring[(t + i) % w] = before[i]
        for i in range(len(X)):
            _count_row(X[i], codes[i], t + i, begin, min(begin + _BLOCK, d), state)
    for i in range(len(X)):
        if t + i >= w:
            class_counts[before[i] if i < w else codes[i - w]] -= 1
        class_counts[codes[i]] += 1
    seen[0] += len(X)


@njit(strict=True)
def measure(state: State) -> None:
    """Write H(X), H(Y), H(Y|X) and the bias of each feature; H(Y) is over the rows counted for the feature."""
    rows, table, _, fixed = state
    _, _, ring, seen, class_counts = rows
    start, _, counts, sums = table
    n, options = min(seen[0], len(ring)), fixed[2]
    _measure(0, len(sums), n, class_counts, sums, fixed)
    if options[1] == 1:
        known = np.empty_like(class_counts)
        for j in range(len(sums)):
            missing = counts[start[j + 1] - 1]
            if missing[0] > 0:
                for c in range(len(known)):
                    known[c] = class_counts[c] - missing[1 + c]
                _measure(j, j + 1, n - missing[0], known, sums, fixed)


@njit(strict=True)
def _measure(begin: int, end: int, n: int, class_counts: Array, sums: Array, fixed: Arrays) -> None:
    """Write the measures of some features that are present in n rows, with these class counts."""
    f, _, options, measures = fixed
    if n == 0:
        measures[:, begin:end] = 0.0
        return
    t_y, classes, unit, whole = 0, 0, 2.0 ** -options[2], f[n]
    for k in class_counts:
        t_y += f[k]
        classes += k > 0
    h_y, free = (whole - t_y) * unit / n, max(classes - 1, 0)
    for j in range(begin, end):
        measures[0, j] = (whole - sums[j, 0]) * unit / n  # (1)
        measures[1, j] = h_y
        measures[2, j] = (sums[j, 0] - sums[j, 1]) * unit / n  # (2)
        measures[3, j] = max(sums[j, 2] - 1, 0) * free / (n * _LN4)  # (4)


@njit(strict=True)
def uncertainty(measures: Array, corrected: bool, su: Array) -> None:
    """Write the symmetrical uncertainties computed from the measures."""
    for j in range(len(su)):
        h_x, h_y = measures[0, j], measures[1, j]
        gain = h_y - measures[2, j] - (measures[3, j] if corrected else 0.0)
        su[j] = min(max(2.0 * gain / (h_x + h_y), 0.0), 1.0) if h_x + h_y > 0.0 else 0.0  # (3)


@njit(strict=True)
def update_row(row: Array, code: int, state: State, su: Array, corrected: bool) -> None:
    """Add one row and update the symmetrical uncertainties; :mod:`tamis.summaries.entropy` documents the calls.

    Examples
    --------
    >>> from tamis.summaries.entropy import WindowCounts
    >>> counts, su = WindowCounts(2, 2, window=4, categorical=[0, 1]), np.zeros(2)
    >>> X, codes = np.array([[0.0, 3.0], [1.0, 3.0], [0.0, 4.0], [1.0, 4.0]]), np.array([0, 1, 0, 1])
    >>> for row, code in zip(X[: counts.prepare(X, codes)], codes):
    ...     update_row(row, code, counts.state, su, False)
    >>> su
    array([1., 0.])
    """
    _, _, ring, seen, class_counts = state[0]
    if seen[0] >= len(ring):
        class_counts[ring[seen[0] % len(ring)]] -= 1
    class_counts[code] += 1
    _count_row(row, code, seen[0], 0, len(row), state)
    seen[0] += 1
    measure(state)
    uncertainty(state[3][3], corrected, su)


@njit(strict=True)
def pairs(i: int, others: Array, n: int, state: State, su: Array) -> None:
    """Write SU of feature i with others, from the bins of the window's rows in which both are present."""
    bins, start, f, skip = state[0][1], state[1][0], state[3][0], state[3][2][1]
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
        t_a, t_b, t_both = f[a].sum(), f[b].sum(), f[both].sum()
        spread, gain = float(2 * f[known] - t_a - t_b), f[known] - t_a - t_b + t_both
        su[o] = min(max(2.0 * gain / spread, 0.0), 1.0) if spread > 0.0 else 0.0


# -- The window of :mod:`tamis.summaries.entropy` for sparse binary rows: only ones are stored and counted

# A row costs O(ones). The contribution of the zeros to the sums, f(n - n_1) and f(n_y - n_1y), is added on reading.


@njit(strict=True)
def _learn_ones(
    indices: Array,
    indptr: Array,
    codes: Array,
    pool: Array,
    place: Array,
    end: int,
    ring: Array,
    seen: Array,
    class_counts: Array,
    ones: Array,
) -> int:
    """Add rows whose ones fit into the pool after `end`; return the new end."""
    w = len(ring)
    for i in range(len(codes)):
        p = seen[0] % w
        if seen[0] >= w:
            class_counts[ring[p]] -= 1
            for at in range(place[p, 0], place[p, 1]):
                ones[pool[at], 0] -= 1
                ones[pool[at], 1 + ring[p]] -= 1
        place[p, 0] = end
        for at in range(indptr[i], indptr[i + 1]):
            pool[end] = indices[at]
            ones[indices[at], 0] += 1
            ones[indices[at], 1 + codes[i]] += 1
            end += 1
        place[p, 1] = end
        ring[p] = codes[i]
        class_counts[codes[i]] += 1
        seen[0] += 1
    return end


@njit(strict=True)
def _measure_ones(ones: Array, class_counts: Array, f: Array, unit: float, measures: Array) -> None:
    n, t_y, classes = class_counts.sum(), 0, 0
    for k in class_counts:
        t_y += f[k]
        classes += k > 0
    for j in range(len(ones)):
        k = ones[j, 0]
        t_x, t_xy = f[k] + f[n - k], 0
        for c in range(len(class_counts)):
            t_xy += f[ones[j, 1 + c]] + f[class_counts[c] - ones[j, 1 + c]]
        measures[0, j] = (f[n] - t_x) * unit / n
        measures[1, j] = (f[n] - t_y) * unit / n
        measures[2, j] = (t_x - t_xy) * unit / n
        measures[3, j] = max(classes - 1, 0) / (n * 2.0 * np.log(2.0)) if 0 < k < n else 0.0


@njit(strict=True)
def _count_with(i: int, pool: Array, place: Array, n: int, together: Array) -> None:
    """Count the rows in which each feature is one together with feature i."""
    for p in range(n):
        is_found = False
        for at in range(place[p, 0], place[p, 1]):
            is_found = is_found or pool[at] == i
        if is_found:
            for at in range(place[p, 0], place[p, 1]):
                together[pool[at]] += 1


class SparseWindow(ThreadSafe):
    """The ones of the rows in the window, and their number for each feature and class.

    Parameters
    ----------
    n_features, n_classes, window : int

    Notes
    -----
    The caller stores the classes of the rows, their number and the class counts, and passes them in.
    """

    _shapes = """
        _end (=e)
        _ones (j, k) int32 in [0, len(_place)]
        _pool (>e) int32 in [0, j)
        _place (w, 2) int64 in [0, e]
    """

    def __init__(self, n_features: int, n_classes: int, window: int) -> None:
        self._ones = np.zeros((n_features, 1 + n_classes), np.int32)
        self._pool = np.zeros(0, np.int32)  # columns of the ones, row after row
        # Start and end of each row of the ring in the pool.
        self._place = np.zeros((window, 2), np.int64)
        self._end = 0

    def grow(self, n_classes: int) -> None:
        """Add classes."""
        self._ones = np.pad(self._ones, ((0, 0), (0, n_classes + 1 - self._ones.shape[1])))

    def reordered(self, columns: Indices) -> SparseWindow:
        """Return the window with the class counts reordered; the first column counts all rows."""
        window = copy.copy(self)
        window._ones = np.ascontiguousarray(self._ones[:, columns])
        return window

    def widened(self, n_new: int) -> SparseWindow:
        """Return the window with added features, which were 0 in all rows."""
        wide = copy.copy(self)
        wide._ones = np.pad(self._ones, ((0, n_new), (0, 0)))
        return wide

    def update(self, X: Rows, codes: Array, ring: Array, seen: Array, class_counts: Array) -> None:
        """Add rows of zeros and ones, CSR or dense, in order."""
        X = X if isinstance(X, sp.csr_matrix) else sp.csr_matrix(X)
        if not ((X.data == 0) | (X.data == 1)).all():
            at = int(np.flatnonzero((X.data != 0) & (X.data != 1))[0])
            row = int(np.searchsorted(X.indptr, at, side="right")) - 1
            raise DataError(
                f"Column {X.indices[at]} contains {X.data[at]} in row {row} of the batch, but CSR rows are counted by"
                " their ones: set what is present to 1, or give dense rows from the start."
            )
        if not X.has_canonical_format or not X.data.all():
            X = X.copy()
            X.eliminate_zeros()
            X.sum_duplicates()
        for begin in range(0, len(codes), len(ring)):
            rows = slice(begin, begin + len(ring))
            part, of_part = X if len(codes) <= len(ring) else X[rows], codes[rows].astype(np.int64)
            self._make_room(part.nnz, int(seen[0]))
            columns, ends = part.indices.astype(np.int32), part.indptr.astype(np.int64)
            pool, place = self._pool, self._place
            self._end = _learn_ones(
                columns, ends, of_part, pool, place, self._end, ring, seen, class_counts, self._ones
            )

    def _make_room(self, more: int, seen: int) -> None:
        if self._end + more <= len(self._pool):
            return
        window = len(self._place)
        oldest = int(self._place[seen % window, 0]) if seen >= window else 0
        live = self._pool[oldest : self._end]
        pool = np.zeros(max(2 * (len(live) + more), len(self._pool)), np.int32)
        pool[: len(live)] = live
        self._pool, self._end = pool, len(live)
        self._place = self._place - oldest

    def check_rows(self, order: Array, codes: Array) -> None:
        """Validate the counts of loaded ones against the rows at these positions with these classes, oldest first.

        Raises
        ------
        StateError
            If they differ.
        """
        begin, end = self._place[order].T
        chained = np.array_equal(begin[1:], end[:-1]) and (begin <= end).all()
        if chained and (not len(order) or end[-1] == self._end):
            columns = self._pool[begin[0] : self._end] if len(order) else self._pool[:0]
            classes = np.repeat(codes, end - begin)
            ones = np.zeros(self._ones.shape, np.int64)
            np.add.at(ones[:, 0], columns, 1)
            np.add.at(ones, (columns, 1 + classes), 1)
            if np.array_equal(ones, self._ones):
                return
        raise state_error("'_ones' of a SparseWindow is not as its rows make it")

    def measures(self, class_counts: Array, f: Array, scale: int) -> Floats:
        """Return H(X), H(Y), H(Y|X) and the bias, shape (4, n_features)."""
        measures = np.zeros((4, len(self._ones)))
        if class_counts.sum() > 0:
            _measure_ones(self._ones, class_counts, f, 2.0**-scale, measures)
        return measures

    def table(self, j: int, class_counts: Array) -> Ints:
        """Return the counts of feature j being 0, 1 and NaN (never) by class."""
        ones = self._ones[j, 1:].astype(np.int64)
        return np.stack([class_counts - ones, ones, np.zeros_like(ones)])

    def pairs(self, i: int, others: Array, f: Array, n: int) -> Floats:
        """Return SU of feature i with each of the others, computed from the rows in which both are one."""
        together = np.zeros(len(self._ones), np.int64)
        _count_with(i, self._pool, self._place, n, together)
        a, b, both = self._ones[i, 0], self._ones[others, 0], together[others]
        t_a, t_b = f[a] + f[n - a], f[b] + f[n - b]
        t_both = f[both] + f[a - both] + f[b - both] + f[n - a - b + both]
        spread = (2 * f[n] - t_a - t_b).astype(np.float64)
        su = np.divide(2.0 * (f[n] - t_a - t_b + t_both), spread, out=np.zeros(len(b)), where=spread > 0.0)
        return np.clip(su, 0.0, 1.0)

    def rows(self, order: Array) -> sp.csr_matrix:
        """Return the rows at these positions of the ring."""
        begin, end = self._place[order].T
        indices = [self._pool[b:e] for b, e in zip(begin, end, strict=True)]
        indptr = np.r_[0, np.cumsum(end - begin)]
        columns = np.concatenate(indices) if indices else np.empty(0, np.int32)
        return sp.csr_matrix((np.ones(len(columns)), columns, indptr), (len(order), len(self._ones)))

    nbytes = property(n_bytes)
