"""The sparse rows of :class:`tamis.JointScreening`: stored by their values, counted by them.

Dense rows of 100,000 features take 800 kB each, and counting one takes a comparison per feature and level. Of a
sparse row only the values are stored and counted. A value of 0 has a known level in each feature, so the number of
rows at that level is the number not at any other level: :func:`settle` writes it before counts are read.

=============  ================  ========================================================================
attribute      shape, dtype      meaning
=============  ================  ========================================================================
``_data``      (n,) float64      the values of the last rows, one row after the other
``_indices``   (n,) int32        their features
``_indptr``    (r + 1,) int64    start of each of the r rows, r at most ``size``
``n_written``  int               rows stored so far
``levels``     (j,) int64        fine level of 0 in each feature
``bits``       (e, q) bool       whether 0 is above each edge of the paired features
``place``      (j,) int32        where a feature is among the paired ones, -1 if it is not
``totals``     (c,) int64        rows of each class among those that are counted
=============  ================  ========================================================================
"""

from __future__ import annotations

import copy
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._shapes import Shapes, state_error, without_columns
from tamis._validation import Array, Indices, Ints, Mask, Rows
from tamis.rows.joint.pair_counts import Counts


class Zero(NamedTuple):
    """The contribution of a value of 0 to the counts, see the module docstring."""

    levels: Ints
    bits: Mask
    place: NDArray[np.int32]
    totals: Ints


@njit(strict=True)
def count_sparse_row(data: Array, indices: Array, code: int, zero: Zero, counts: Counts) -> None:
    """Update the counts of the levels that 0 does not have, and set the bits of the row."""
    bits = zero.bits
    bit = np.uint32(1) << np.uint32(counts.n[1])
    for k in range(bits.shape[0]):
        for i in range(bits.shape[1]):
            if bits[k, i]:
                counts.bits[k, i] |= bit
    for at in range(len(data)):
        j, x, level = indices[at], data[at], 0
        for k in range(counts.fine.shape[1]):
            level += x > counts.fine[j, k]
        if level != zero.levels[j]:
            counts.alone[j, level, code] += 1
        i = zero.place[j]
        if i >= 0:
            for k in range(counts.edges.shape[1]):
                if x > counts.edges[j, k]:
                    counts.bits[k, i] |= bit
                else:
                    counts.bits[k, i] &= ~bit
    zero.totals[code] += 1
    counts.class_bits[code] |= bit
    counts.n[0] += 1
    counts.n[1] += 1


@njit(strict=True)
def settle(zero: Zero, alone: Array) -> None:
    """Write how many rows of each class have the level of 0."""
    levels, totals = zero.levels, zero.totals
    for j in range(alone.shape[0]):
        for c in range(alone.shape[2]):
            rest = totals[c]
            for level in range(alone.shape[1]):
                if level != levels[j]:
                    rest -= alone[j, level, c]
            alone[j, levels[j], c] = rest


@njit(strict=True)
def value_at(data: Array, indices: Array, j: int) -> float:
    """Return the value of feature j in a row."""
    at = np.searchsorted(indices, j)
    return data[at] if at < len(indices) and indices[at] == j else 0.0


class SparseRows:
    """The last rows, and the contribution of a value of 0 to the counts. Only `totals` is modified in place.

    Parameters
    ----------
    n_features : int
    size : int
        Number of rows that are stored.

    Notes
    -----
    Memory: 12 bytes for each value of the stored rows, and 12 for each feature.

    Examples
    --------
    >>> rows = SparseRows(4, size=2)
    >>> X = sp.csr_matrix([[0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0]])
    >>> rows.store(X, n_seen=3)
    >>> rows.last(np.array([1, 2])).toarray()
    array([[2., 0., 0., 0.],
           [0., 0., 0., 3.]])
    """

    _state_spec = Shapes("""
        n_features (=j)  size (=w)  n_written in [0, 2**62)
        _data (n) fixed  _indices (n) int32 in [0, j) fixed
        _indptr (>0) int64 in [0, len(its._data)] increasing fixed
        levels (j) int64 in [0, 10) fixed  bits (e, q) bool any "two values" fixed
        place (j) int32 in [-1, its.bits.shape[1]) fixed  totals (c) int64 in [0, 2**31)
    """)

    def __init__(self, n_features: int, size: int) -> None:
        self.n_features, self.size, self.n_written = n_features, size, 0
        self._data, self._indices = np.zeros(0), np.zeros(0, np.int32)
        self._indptr = np.zeros(1, np.int64)
        self.levels, self.place = np.zeros(n_features, np.int64), np.full(n_features, -1, np.int32)
        self.bits, self.totals = np.zeros((0, 0), np.bool_), np.zeros(0, np.int64)

    @property
    def zero(self) -> Zero:
        """The contribution of a value of 0 to the counts."""
        return Zero(self.levels, self.bits, self.place, self.totals)

    def check_state(self) -> None:
        """Raise if the loaded rows do not fit their values.

        Raises
        ------
        StateError
            If so.
        """
        n_rows = len(self._indptr) - 1
        if (
            self._indptr[0] != 0
            or self._indptr[-1] != len(self._data)
            or n_rows != min(self.n_written, self.size)
        ):
            raise state_error(f"{n_rows} sparse rows are stored of {self.n_written}, whose values do not fit")

    def store(self, X: Rows, n_seen: int) -> None:
        """Store the rows that are new, of rows that end with row number `n_seen`; the others are stored already."""
        n_new = min(n_seen - self.n_written, self.size)
        if n_new <= 0:
            return
        first, begin = X.indptr[X.shape[0] - n_new], max(len(self._indptr) - 1 + n_new - self.size, 0)
        gone, offset = self._indptr[begin], len(self._data)
        self._data = np.concatenate([self._data[gone:], X.data[first : X.indptr[-1]]])
        self._indices = np.concatenate([self._indices[gone:], X.indices[first : X.indptr[-1]]])
        ends = X.indptr[X.shape[0] - n_new + 1 :].astype(np.int64) - first + offset
        self._indptr = np.concatenate([self._indptr[begin:], ends]) - gone
        self.n_written = n_seen

    def last(self, numbers: Ints) -> Rows:
        """Return the stored rows in the slots of these row numbers, CSR; an overwritten slot contains a later row."""
        n_rows = len(self._indptr) - 1
        places = numbers if n_rows < self.size else (numbers - self.n_written) % self.size
        stored = sp.csr_matrix((self._data, self._indices, self._indptr), (n_rows, self.n_features))
        return stored[places]

    def begin(self, counts: Counts) -> None:
        """Start to count by new levels."""
        self.levels = np.count_nonzero(counts.fine < 0.0, axis=1)
        self.bits = np.ascontiguousarray((counts.edges[counts.columns] < 0.0).T)
        self.place = np.full(self.n_features, -1, np.int32)
        self.place[counts.columns] = np.arange(len(counts.columns))
        self.totals = np.zeros(len(counts.class_bits), np.int64)

    def widened(self, n_features: int, counts: Counts | None) -> Self:
        """Return a copy with additional features, which were 0 in all rows; `counts` have them already."""
        wide = copy.copy(self)
        wide.n_features = n_features
        wide._fit(counts)
        return wide

    def without(self, columns: Indices, counts: Counts | None) -> Self:
        """Return a copy as if some features had been 0 in all rows; `counts` have forgotten them already."""
        cleared = copy.copy(self)
        n_rows = len(self._indptr) - 1
        kept = without_columns(
            sp.csr_matrix((self._data, self._indices, self._indptr), (n_rows, self.n_features)), columns
        )
        cleared._data, cleared._indices = kept.data, kept.indices
        cleared._indptr = kept.indptr.astype(np.int64)
        cleared._fit(counts)
        return cleared

    def _fit(self, counts: Counts | None) -> None:
        """Recompute the contribution of a value of 0, keeping the rows so far."""
        totals = self.totals.copy()
        if counts is None:
            self.levels = np.zeros(self.n_features, np.int64)
            self.place = np.full(self.n_features, -1, np.int32)
        else:
            self.begin(counts)
        self.totals = totals
