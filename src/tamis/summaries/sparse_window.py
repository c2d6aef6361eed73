"""The window of :mod:`tamis.summaries.entropy` for sparse binary rows: only ones are stored and counted.

A row costs O(ones). The contribution of the zeros to the sums, f(n - n_1) and f(n_y - n_1y), is added on reading.
"""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, Ints, Rows
from tamis.errors import DataError
from tamis.summaries.batch import n_bytes


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
