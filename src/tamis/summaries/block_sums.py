"""Sums of every feature within every class, by blocks of consecutive rows, for long-run variances.

Rows are summed in at most K blocks of L rows (K is 32 for up to four classes, 16 for up to eight, else 8). When all
blocks are complete, adjacent blocks are merged and L doubles, so there are always between K / 2 and K blocks that
together contain every row. With fading, L stops at 1/16 of the effective number of rows; the two oldest blocks are then
merged instead.

With s_kc, n_kc the sums and the weights of class c in block k, and w2_kc the sum of w f^2, for weights w that fade
by f::

    m_c = sum_k s_kc / sum_k n_kc,    U_kc = s_kc - m_c n_kc,    f_kc = w2_kc / sum_k w2_kc                   (1)

U_kc sums to 0 over the blocks. If blocks are longer than the range of dependence between rows, E U_kc^2 is proportional
to f_kc (1 - f_kc). The long-run covariance of the class means, with 1 / max_c sum_k f_kc^2 - 1 degrees of freedom
(K - 1 for equal blocks), is then estimated by::

    cov(m_c, m_d) = sum_k U_kc U_kd / (n_c n_d sqrt(1 - sum_k f_kc^2) sqrt(1 - sum_k f_kd^2))                 (2)

Blocks may differ in length, so merging two parts of a stream concatenates their blocks.

A cycle shared by feature and label does not average out within blocks. Pairing each row with an earlier label reveals
it: the difference of the class means then varies with the lag, as it would with the phase of the cycle. The sums are
therefore also stored by the label `s` rows before, for a few lags s.

Flyvbjerg, Petersen: Error estimates on averages of correlated data, Journal of Chemical Physics 91, 1989.
Schmeiser: Batch size effects in the analysis of simulation output, Operations Research 30(3), 1982 (10 to 30 blocks).
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from tamis._kernels import njit
from tamis._validation import Array, Floats, Mask, Rows
from tamis.dependence.autocorrelation import FEWEST_LAGS, flat_level, growth, join_blocks, join_pairs
from tamis.summaries.batch import FadingState, n_bytes
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.label_series import LAGS

_PART = 4096  # rows paired with their lags at a time
_NO_LABELS, _NO_PLACES = np.empty(0, np.int32), np.empty(0, np.int64)


@njit()
def _add_values(
    X: Array, codes: Array, weight: Array, square: Array, sums: Array, weights: Array, squares: Array
) -> None:
    added = np.zeros(sums.shape)
    for i in range(X.shape[0]):
        row, w, s = X[i], weight[i], added[codes[i]]
        weights[codes[i]] += w
        squares[codes[i]] += square[i]
        for j in range(X.shape[1]):
            s[j] += w * row[j]
    sums += added


@njit()
def _add_blocks(
    X: Array, codes: Array, weight: Array, square: Array, start: int, at: int, length: int, sums: Array,
    weights: Array, squares: Array, rows: Array,
) -> int:  # fmt: skip
    """Add rows, from `start` on, to the blocks from `at` on; return the first row beyond them."""
    while start < X.shape[0] and at < rows.shape[0]:
        stop = min(start + length - rows[at], X.shape[0])
        part = slice(start, stop)
        _add_values(
            X[part], codes[part], weight[part], square[part], sums[at, :, 0], weights[at], squares[at]
        )
        rows[at] += stop - start
        start, at = stop, at + 1
    return start


@njit(strict=True)
def _add_stored(
    data: Array, indices: Array, indptr: Array, weights: Array, sums: Array, missing: Array
) -> None:
    """Add rows in CSR form to the sums of each lag and class, by the weight of each row in them."""
    for i in range(weights.shape[2]):
        for at in range(weights.shape[0]):
            for c in range(weights.shape[1]):
                w = weights[at, c, i]
                if w == 0.0:
                    continue
                for k in range(indptr[i], indptr[i + 1]):
                    if data[k] == data[k]:
                        sums[at, c, indices[k]] += w * data[k]
                    else:
                        missing[at, c, indices[k]] += w


@njit(strict=True)
def _add_weights(codes: Array, weight: Array, square: Array, sums: Array, squares: Array) -> None:
    for i in range(codes.shape[0]):
        sums[codes[i]] += weight[i]
        squares[codes[i]] += square[i]


@njit(strict=True)
def _pair(
    labels: Array, places: Array, start: int, weight: Array, ring: Array, end: int, n_before: int, paired: Array,
    weights: Array,
) -> int:  # fmt: skip
    """Write the weight of each row by the class of the label that precedes its places by each lag; return the end.

    `labels` has the label of each place of the series from the first row of the batch on, and the first of these rows
    is at `start`; without `places`, each row has one. The `n_before` labels before it are in the ring, the last one
    before the place `end`.
    """
    stop = 0
    for at in range(len(LAGS)):
        stop = start - LAGS[at]
        for i in range(weight.shape[0]):
            n = places[i] if places.shape[0] else 1
            first, stop = stop, stop + n
            for place in range(max(first, -n_before), stop):
                if place >= 0:
                    c = labels[place]
                else:
                    c = ring[end + place if end + place >= 0 else end + place + ring.shape[0]]
                paired[at, c, i] += weight[i] / n
                weights[at, c] += weight[i] / n
    return stop + LAGS[len(LAGS) - 1]


@njit(strict=True)
def _cells(X: Array, edges: Array, first: Array, cells: Array) -> None:
    """Write the bin of each value minus that of 0; NaN where missing. `edges` is (n_bins - 1, n_features)."""
    for i in range(X.shape[0]):
        row, bins = X[i], cells[i]
        for j in range(X.shape[1]):
            bins[j] = -first[j] if row[j] == row[j] else np.nan
        for h in range(edges.shape[0]):
            for j in range(X.shape[1]):
                bins[j] += 1.0 if row[j] > edges[h, j] else 0.0


@njit(strict=True)
def _cells_stored(data: Array, indices: Array, edges: Array, first: Array, cells: Array) -> None:
    for at in range(data.shape[0]):
        x, j, b = data[at], indices[at], 0
        for h in range(edges.shape[1]):
            b += x > edges[j, h]
        cells[at] = b - first[j] if x == x else np.nan


@njit(strict=True)
def _count(cells: Array, first: Array, codes: Array, weight: Array, table: Array) -> None:
    for i in range(cells.shape[0]):
        c, w = codes[i], weight[i]
        for j in range(cells.shape[1]):
            if cells[i, j] == cells[i, j]:
                table[c, int(cells[i, j]) + first[j], j] += w


@njit(strict=True)
def _count_values(X: Array, edges: Array, codes: Array, weight: Array, table: Array) -> None:
    """Count the bins of values. `edges` is (n_bins - 1, n_features)."""
    n_edges, exceed = edges.shape[0], np.zeros(table.shape)
    # Count the values above each edge, which needs no indices; the bins are the differences. NaN is in no bin.
    for i in range(X.shape[0]):
        row, w, sums = X[i], weight[i], exceed[codes[i]]
        lowest, edge = sums[0], edges[0]
        for j in range(X.shape[1]):
            lowest[j] += w if row[j] <= edge[j] else 0.0
        for h in range(n_edges):
            above, edge = sums[h + 1], edges[h]
            for j in range(X.shape[1]):
                above[j] += w if row[j] > edge[j] else 0.0
    for c in range(table.shape[0]):
        for h in range(n_edges):
            for j in range(X.shape[1]):
                table[c, h, j] += max(exceed[c, h, j] - (exceed[c, h + 1, j] if h else 0.0), 0.0)
        for j in range(X.shape[1]):
            table[c, n_edges, j] += exceed[c, n_edges, j]


@njit(strict=True)
def _count_stored(
    data: Array, indices: Array, indptr: Array, first: Array, codes: Array, weight: Array, table: Array, stored: Array
) -> None:  # fmt: skip
    for i in range(codes.shape[0]):
        c, w = codes[i], weight[i]
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            stored[c, j] += w
            if data[at] == data[at]:
                table[c, int(data[at]) + first[j], j] += w


class BlockSums(FadingState):
    """Sums of values, or counts of bins, of each feature within each class and block of rows; mergeable.

    Parameters
    ----------
    n_features, n_classes : int
    edges : ndarray of shape (n_features, n_bins - 1), optional
        Ascending. With edges, the bins of the values are counted; without, the values are summed.
    fades : bool, default=False
        Whether the `keep` of :meth:`update` reduces the weight of older rows.
    lags : bool, default=True
        Whether rows are also summed by earlier labels; may be changed between batches. Requires the same `keep` for
        all classes.

    Notes
    -----
    Memory: 8 K C m bytes per feature for K blocks of C classes, with m = 1 (values) or the number of bins, and 64 C for
    the lags: 640 bytes for the values of two classes. Features with missing values take twice as much. A batch is
    equivalent to its rows one at a time, up to rounding.

    References
    ----------
    Flyvbjerg, Petersen (1989). Error estimates on averages of correlated data. Equations (1) and (2) of
    :mod:`tamis.summaries.block_sums`.

    Examples
    --------
    For two series with an autocorrelation of 0.9, the variance of the difference of the class means is about ten times
    that of independent rows, 4 / n:

    >>> from scipy.signal import lfilter
    >>> noise = np.random.default_rng(0).normal(size=(20000, 2))
    >>> series = lfilter([1], [1, -0.9], noise, axis=0)
    >>> X, y = series[:, :1] / series[:, 0].std(), (series[:, 1] > 0).astype(int)
    >>> blocks = BlockSums(n_features=1, n_classes=2)
    >>> blocks.update(X, y)
    >>> covariance, freedom = blocks.covariance()
    >>> variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    >>> bool(5 < variance[0] / (4 / 20000) < 20), round(freedom)
    (True, 19)
    """

    _shapes = """
        _gain (c) float in (0, inf) fill 1
        _sums (b, c, m, j) finite fill 0
        _missing (b, c, j?) float in [0, inf) fill 0
        _stored (b, c, j?) float in [0, inf) fill 0
        _sparse_weight (b, c) float in [0, inf) fill 0
        _weight (b, c) float in [0, inf) fill 0
        _weight2 (b, c) float in [0, inf) fill 0
        _rows (b) int64 in [0, 2**62)
        _lag_sums (8, c, j) finite fill 0
        _lag_missing (8, c, j?) float in [0, inf) fill 0
        _lag_weight (8, c) float in [0, inf) fill 0
        _edges (j?, m-1) finite fill 0
        _first (j) int64 in [0, m) fill 0
        length in [1, 2**62)
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        edges: Array | None = None,
        *,
        fades: bool = False,
        lags: bool = True,
    ) -> None:
        self.fades = fades
        self.lags = lags
        self.length = 1  # L
        self._gain = np.ones(n_classes)
        self._edges = np.empty((0, 0)) if edges is None else np.asarray(edges, np.float64)
        # The bin of 0.
        self._first = np.zeros(n_features, np.int64) if edges is None else (self._edges < 0.0).sum(axis=1)
        self._sums = np.zeros((0, n_classes, self._edges.shape[1] + 1, n_features))
        # `_stored` is the weight of the stored cells, of counts in CSR rows.
        self._missing, self._stored = np.zeros((2, 0, n_classes, 0))
        self._sparse_weight, self._weight, self._weight2 = np.zeros((3, 0, n_classes))
        self._rows = np.zeros(0, np.int64)
        self._lag_sums = np.zeros((len(LAGS), n_classes, n_features))
        self._lag_missing = np.zeros((len(LAGS), n_classes, 0))
        self._lag_weight = np.zeros((len(LAGS), n_classes))

    _BY_BLOCK = ("_sums", "_missing", "_stored", "_sparse_weight", "_weight", "_weight2", "_rows")
    _BY_LAG = ("_lag_sums", "_lag_missing", "_lag_weight")

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self._sums.shape[3])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self._sums.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of rows in all blocks."""
        return int(self._rows.sum())

    nbytes = property(n_bytes)

    @property
    def _counts(self) -> bool:
        return bool(self._edges.shape[1] > 0)

    @property
    def _most(self) -> int:
        """K."""
        return 32 if self.n_classes <= 4 else 16 if self.n_classes <= 8 else 8

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self,
        X: Rows,
        codes: Array,
        sample_weight: Array | None = None,
        keep: float | Array = 1.0,
        before: Array | tuple[Array, int, int] | None = None,
        fade: Array | None = None,
        places: Array | None = None,
    ) -> None:
        """Add a validated batch of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
            NaN is skipped, feature by feature.
        codes : ndarray of shape (n_rows,), int64
            Class of each row, below `n_classes`.
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float or ndarray of shape (n_classes,), in [0, 1]
            Factor for the weight of all earlier rows (per class, if an array), applied first.
        before : ndarray of shape (n,), int, or tuple, optional
            Codes of the rows just before these, oldest first, for the lags; or a ring of codes, the place after the
            last of them, and how many there are (:attr:`tamis.summaries.label_series.LabelSeries.ring`).
        fade : ndarray of shape (n_rows,), optional
            Factor for the weight of each of these rows at the end of the batch.
        places : ndarray of shape (n_rows,), int64, optional
            Number of consecutive places of each row in the series; 1 by default. A row is divided between blocks.
        """
        if not (isinstance(keep, float) and keep == 1.0):
            self.fade(keep)
        gain = self._gain[codes] if fade is None else self._gain[codes] * fade
        weight = gain if sample_weight is None else gain * sample_weight
        cells = self._as_cells(X) if self._counts and (self.lags or sp.issparse(X)) else X
        is_sparse = sp.issparse(cells)
        has_missing = not is_sparse and not np.isfinite(cells.sum())
        missing = np.isnan(cells) if has_missing else None
        present = cells if missing is None else np.where(missing, 0.0, cells)
        is_plain = places is None and not (is_sparse or has_missing)
        if self.lags:
            if not isinstance(before, tuple):
                before = _NO_LABELS if before is None else before
                before = before, len(before), len(before)
            self._add_lagged(present, missing, codes, weight, before, places)
        if not self._counts:
            cells = present
        left = None if places is None else np.array([places, weight, weight * gain])
        square, start, n, at = weight * gain, 0, len(codes), len(self._rows) - 1
        filled = int(self._rows[at]) if at >= 0 else self.length
        while start < n:
            if filled >= self.length:
                at, filled = at + 1, 0
                if at >= len(self._rows):
                    n_places = n - start if left is None else int(left[0, start:].sum())
                    at = self._open_blocks(n_places)
            if is_plain and not self._counts:
                of_blocks = self.length, self._sums, self._weight, self._weight2, self._rows
                start = _add_blocks(cells, codes, weight, square, start, at, *of_blocks)
                at = len(self._rows) - 1
                filled = self.length  # or all rows are added
                continue
            room = self.length - filled
            if left is None:
                rows, start = slice(start, min(n, start + room)), min(n, start + room)
                n_places, own = rows.stop - rows.start, (weight[rows], square[rows])
            else:
                rows, (of_row, *own), start = take_places(left, start, room)  # type: ignore[assignment]
                n_places = int(of_row.sum())
            filled += n_places
            self._rows[at] = filled
            part = cells if rows.stop - rows.start == n else cells[rows]
            self._add(at, part, None if missing is None else missing[rows], codes[rows], *own)

    def _as_cells(self, X: Rows) -> Rows:
        """Return the bin of each value minus the bin of 0."""
        if sp.issparse(X):
            values = np.empty(X.nnz)
            _cells_stored(X.data, X.indices, self._edges, self._first, values)
            return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        cells = np.empty(X.shape)
        _cells(X, np.ascontiguousarray(self._edges.T), self._first, cells)
        return cells

    def _open_blocks(self, n_places: int) -> int:
        """Append empty blocks for so many more rows, as many as there is room for; return the place of the first."""
        if len(self._rows) >= self._most:
            squares = np.maximum(self._weight2.sum(axis=0), 1e-300)
            # Class by class, as their clocks may differ. With fading, the blocks span one to two times these rows.
            effective = (self._weight.sum(axis=0) ** 2 / squares).sum() if self.fades else np.inf
            starts, self.length = join_blocks(len(self._rows), self.length, effective, self._most)
            self._join(starts)
        first = len(self._rows)
        n_new = max(min(-(-n_places // self.length), self._most - first), 1)
        for name in self._BY_BLOCK:
            value = getattr(self, name)
            setattr(self, name, np.concatenate([value, np.zeros((n_new, *value.shape[1:]), value.dtype)]))
        return first

    def _join(self, starts: Array) -> None:
        """Join the blocks from each start to the next one."""
        for name in self._BY_BLOCK:
            value = getattr(self, name)
            sums = value[starts] if not value.size else np.add.reduceat(value, starts, axis=0)
            setattr(self, name, sums)

    def _double(self) -> None:
        """Join adjacent blocks in pairs."""
        self._join(np.arange(0, len(self._rows), 2))
        self.length *= 2

    def _add(
        self, at: int, cells: Rows, missing: Array | None, codes: Array, weight: Array, square: Array
    ) -> None:
        """Add rows to a block."""
        sparse, sums, weights = sp.issparse(cells), self._sums[at], (self._weight[at], self._weight2[at])
        if not (sparse or self._counts):
            _add_values(cells, codes, weight, square, sums[:, 0], *weights)
        else:
            _add_weights(codes, weight, square, *weights)
        if sparse:
            self._sparse_weight[at] += np.bincount(codes, weight, minlength=self.n_classes)
        if not self._counts:
            if sparse or missing is not None:
                of_class = np.zeros((1, self.n_classes, len(codes)))
                of_class[0, codes, np.arange(len(codes))] = weight
                self._add_rest(
                    cells, missing, of_class, self._sums[at : at + 1, :, 0], "_missing", slice(at, at + 1)
                )
        elif sparse:
            if not self._stored.shape[2]:
                self._stored = np.zeros((*self._weight.shape, self.n_features))
            form = cells.data, cells.indices, cells.indptr
            _count_stored(*form, self._first, codes, weight, sums, self._stored[at])
        elif self.lags:
            _count(cells, self._first, codes, weight, sums)
        else:  # these are the values
            _count_values(cells, np.ascontiguousarray(self._edges.T), codes, weight, sums)

    def _add_lagged(
        self, cells: Rows, missing: Array | None, codes: Array, weight: Array,
        before: tuple[Array, int, int], places: Array | None,
    ) -> None:  # fmt: skip
        """Add each row to the class of the label some rows before."""
        labels, at = codes if places is None else np.repeat(codes, places), 0
        places = _NO_PLACES if places is None else places
        for start in range(0, len(codes), _PART):
            part = slice(start, start + _PART)
            rows = cells if len(codes) <= _PART else cells[part]
            paired = np.zeros((*self._lag_weight.shape, rows.shape[0]))
            at = _pair(labels, places[part], at, weight[part], *before, paired, self._lag_weight)
            if not sp.issparse(rows):
                self._lag_sums += _product(paired, rows)
            if missing is not None or sp.issparse(rows):
                gaps = None if missing is None else missing[part]
                self._add_rest(rows, gaps, paired, self._lag_sums, "_lag_missing")

    def _add_rest(
        self, X: Rows, missing: Array | None, weights: Array, sums: Array, name: str, at: slice = slice(None)
    ) -> None:
        """Add the values of CSR rows to sums, and the weights of missing values to a part of an attribute."""
        sparse, of_missing = sp.issparse(X), getattr(self, name)
        if (missing is not None or (sparse and np.isnan(X.data).any())) and not of_missing.shape[2]:
            of_missing = np.zeros((*of_missing.shape[:2], self.n_features))
            setattr(self, name, of_missing)
        if sparse:
            _add_stored(X.data, X.indices, X.indptr, weights, sums, of_missing[at])
        elif missing is not None:
            of_missing[at] += _product(weights, missing)

    def _rescale(self) -> None:
        for name in self._BY_BLOCK[:-1] + self._BY_LAG:
            value = getattr(self, name)
            by = self._gain**2 if name == "_weight2" else self._gain
            setattr(self, name, value / by.reshape(-1, *[1] * (value.ndim - 2)))
        self._gain = np.ones_like(self._gain)

    def merge(self, other: Self, *, first: bool = False) -> None:
        """Add the blocks of another part of the stream, of the same features and classes, both as of their last row.

        Parameters
        ----------
        other : BlockSums
            If its edges differ, only the sums with more rows are kept.
        first : bool, default=False
            Whether the rows of `other` precede those of this object.
        """
        parts: list[Any] = [self._now(), other._now()]
        if not np.array_equal(self._edges, other._edges):
            parts = [max(parts, key=lambda part: part.n_rows)]
        while len(parts) > 1 and parts[0].length != parts[1].length:
            min(parts, key=lambda part: part.length)._double()
        parts = parts[::-1] if first else parts
        for name in self._BY_BLOCK + self._BY_LAG:
            values = [getattr(part, name) for part in parts]
            width = max(value.shape[-1] for value in values)
            if name in ("_missing", "_stored", "_lag_missing"):
                values = [v if v.shape[-1] == width else np.zeros((*v.shape[:-1], width)) for v in values]
            setattr(self, name, np.concatenate(values) if name in self._BY_BLOCK else np.sum(values, axis=0))
        self._edges, self._first, self.length = parts[0]._edges, parts[0]._first, parts[0].length
        self._gain = np.ones_like(self._gain)
        while len(self._rows) > self._most:
            self._double()

    def _now(self) -> Self:
        """Return a copy with the weights as of the last row."""
        now = copy.copy(self)
        now._rescale()
        return now

    # -- results -------------------------------------------------------------------------------------------

    def by_block(self, shortest: float = 1.0) -> tuple[Any, ...]:
        """Return sums, weights of the values and of all rows, and squares of these, in blocks of `shortest` rows.

        Returns
        -------
        sums : ndarray of shape (n_blocks, n_classes, m, n_features), float64
        present : ndarray of shape (n_blocks, n_classes, n_features) or (n_blocks, n_classes, 1), float64
        weight, weight2 : ndarray of shape (n_blocks, n_classes), float64
        """
        part = self._now()
        if len(part._rows):
            at = np.cumsum(np.r_[0, part._rows])
            starts = [0]
            for k in range(1, len(part._rows)):
                if at[k] - at[starts[-1]] >= shortest:
                    starts.append(k)
            part._join(np.array(starts))
        sums = part._sums
        if part._counts:
            if part._stored.shape[2]:
                zeros = np.maximum(part._sparse_weight[..., None] - part._stored, 0.0)
                sums = sums.copy()
                columns = np.arange(part.n_features)
                sums[:, :, part._first, columns] += zeros
            return sums, sums.sum(axis=2), part._weight, part._weight2
        weight = part._weight[..., None]
        present = weight - part._missing if part._missing.shape[2] else weight
        return sums, present, part._weight, part._weight2

    def covariance(self, shortest: float = 1.0) -> tuple[Floats, float]:
        """Return the long-run covariance of the class means, (2), and its degrees of freedom.

        For counts, the means are those of the bins.

        Parameters
        ----------
        shortest : float, default=1
            Minimum number of rows in a block; adjacent blocks are merged until they reach it.

        Returns
        -------
        covariance : ndarray of shape (n_classes, n_classes, n_features), float64
            0 for a class without rows or with all rows in one block; see :meth:`spread_out`.
        freedom : float
            Degrees of freedom for the other classes; 0 if there are none.
        """
        sums, weight, _, weight2 = self.by_block(shortest)
        if not len(sums):
            return np.zeros((self.n_classes, self.n_classes, self.n_features)), 0.0
        share = weight2 / np.maximum(weight2.sum(axis=0), 1e-300)
        concentration = (share**2).sum(axis=0)  # of each class
        values = self._class_sums(sums)
        count = np.maximum(weight.sum(axis=0), 1e-300)
        mean = values.sum(axis=0) / count
        U = (values - mean * weight) / count  # (1)
        U = U / np.sqrt(np.maximum(1.0 - concentration, 1e-300))[:, None]
        several = concentration < 1.0 - 1e-9
        several &= weight2.sum(axis=0) > 0.0
        U[:, ~several] = 0.0
        freedom = float(1.0 / concentration[several].max() - 1.0) if several.any() else 0.0
        return np.einsum("kcj,kdj->cdj", U, U), freedom

    def rises(self, shortest: float = 1.0) -> Mask:
        """Return whether the variance of the sums of each feature within the classes rises beyond this block length.

        Parameters
        ----------
        shortest : float, default=1
            Minimum number of rows in a block.

        Returns
        -------
        ndarray of shape (n_features,), bool
        """
        return flat_level(*self._curve(shortest, 8)) > 0

    def growth(self) -> Floats:
        """Return the growth of the variance of the sums of each feature within the classes; shape (n_features,)."""
        curve, blocks = self._curve(1.0, 4)
        return growth(curve, blocks) if len(blocks) > 1 else np.zeros(self.n_features)

    def _curve(self, shortest: float, fewest: int) -> tuple[Floats, Floats]:
        """Return the variance between blocks of this length and its doubles, and their number."""
        sums, weight, *_ = self.by_block(shortest)
        values = self._class_sums(sums)
        within = (values - values.sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300) * weight).sum(axis=1)
        curve, blocks = [], []
        while len(within) >= fewest:
            blocks.append(float(len(within)))
            curve.append((within**2).sum(axis=0) * blocks[-1] / (blocks[-1] - 1.0))
            within = join_pairs(within)
        return np.array(curve).reshape(len(blocks), self.n_features), np.array(blocks)

    def preceded(self, n_rows: int, sums: Array, count: Array, moments: ClassMoments) -> Self:
        """Return a copy in which all rows before the first block are one more block.

        Parameters
        ----------
        n_rows : int
            How many rows precede the first block.
        sums : ndarray of shape (n_classes, m, n_features), float64
            Of all rows; weights of the values in each bin, if there are edges.
        count : ndarray of shape (n_classes, n_features), float64
            Weight of the values present, of all rows.
        moments : ClassMoments
            Of all rows, whose weights are used.
        """
        part, (mine, present, _, weight2) = self._now(), self.by_block()
        part._rows = np.concatenate([[n_rows], part._rows])
        part._sums = np.concatenate([(sums - mine.sum(axis=0))[None], mine])
        part._weight = _with_first(part._weight, moments.weight())
        part._weight2 = _with_first(weight2, moments.squared_weight())
        present = np.broadcast_to(present, (*present.shape[:2], part.n_features))
        part._missing = part._weight[..., None] - _with_first(present, count)
        part._stored, part._sparse_weight = np.zeros((*part._weight.shape, 0)), np.zeros_like(part._weight)
        return part

    def n_occupied(self, shortest: float = 1.0) -> Floats:
        """Return in how many blocks, effectively, the values of each feature outside its most frequent bin are.

        Parameters
        ----------
        shortest : float, default=1
            Minimum number of rows in a block.

        Returns
        -------
        ndarray of shape (n_features,), float64
            Infinite for sums of values.
        """
        if not self._counts:
            return np.full(self.n_features, np.inf)
        table = self.by_block(shortest)[0].sum(axis=1)
        rest = table.sum(axis=1) - table[:, table.sum(axis=0).argmax(axis=0), np.arange(self.n_features)]
        return rest.sum(axis=0) ** 2 / np.maximum((rest**2).sum(axis=0), 1e-300)

    def _class_sums(self, sums: Array) -> Any:
        """Return the sums of the values, or of the bins minus that of 0, (n_blocks, n_classes, n_features)."""
        if not self._counts:
            return sums[:, :, 0]
        return (sums * (np.arange(sums.shape[2])[:, None] - self._first)).sum(axis=2)

    def spread_out(self, shortest: float = 1.0) -> Mask:
        """Return which classes have rows in at least two blocks of `shortest` or more rows; shape (n_classes,)."""
        weight2 = self.by_block(shortest)[3]
        return (weight2 > 0.0).sum(axis=0) > 1

    def lagged_means(self, shortest: float = 1.0) -> tuple[Floats, Floats]:
        """Return the mean of each feature given the class of an earlier label, for each lag.

        Parameters
        ----------
        shortest : float, default=1
            Smallest lag, if there are four of them; otherwise the four longest.

        Returns
        -------
        mean, weight : ndarray of shape (n_lags, n_classes, n_features), float64
            For the lags with at least a quarter of the rows. For counts, the mean bin minus the bin of 0.
        """
        now = self._now()
        lagged, of_lag = now._lag_weight, now._lag_weight.sum(axis=1)
        weight = lagged[..., None] - (now._lag_missing if now._lag_missing.shape[2] else 0.0)
        weight = np.broadcast_to(weight, now._lag_sums.shape)
        known = (of_lag >= 0.25 * now._weight.sum()) & (of_lag > 0.0)
        fourth = np.sort(np.where(known, LAGS, 0))[-FEWEST_LAGS]
        use = known & (np.array(LAGS) >= min(shortest, fourth))
        mean = now._lag_sums[use] / np.maximum(weight[use], 1e-300)
        return np.where(weight[use] > 0.0, mean, 0.0), weight[use]


def _with_first(parts: Array, total: Array) -> Floats:
    """Return the values of the blocks, preceded by what is left of the total."""
    return np.concatenate([np.maximum(total - parts.sum(axis=0), 0.0)[None], parts])


def take_places(left: Array, start: int, room: int) -> tuple[slice, Array, int]:
    """Return the rows from `start` that fit into some places of a series, with their places and weights.

    Parameters
    ----------
    left : ndarray of shape (n_weights, n_rows), float64
        Places of each row, its weight, and others. A row that only partly fits in keeps the rest, in place.
    start, room : int

    Returns
    -------
    rows : slice
    own : ndarray of shape (n_weights, n_rows_taken), float64
    next : int
        Start of the rows that are left.

    Examples
    --------
    >>> left = np.array([[1.0, 4.0, 2.0], [1.0, 4.0, 2.0]])
    >>> take_places(left, 0, 3)
    (slice(0, 2, None), array([[1., 2.],
           [1., 2.]]), 1)
    >>> left[0]
    array([1., 2., 2.])
    """
    ends = np.cumsum(left[0, start:])
    n_taken = min(int(np.searchsorted(ends, room)) + 1, len(ends))
    stop, over = start + n_taken, ends[n_taken - 1] - room
    own = left[:, start:stop].copy()
    if over <= 0.0:
        return slice(start, stop), own, stop
    left[:, stop - 1] *= over / left[0, stop - 1]
    left[0, stop - 1] = over
    own[:, -1] -= left[:, stop - 1]
    return slice(start, stop), own, stop - 1


def _product(weights: Array, rows: Array) -> Array:
    """Return the weighted sums of rows for each lag and class, as one product of matrices."""
    return (weights.reshape(-1, weights.shape[2]) @ rows).reshape(*weights.shape[:2], rows.shape[1])
