"""Quantiles of each feature by class, in one pass and bounded memory, with a certified rank error.

Each class has its own points. A block of 2k rows is sorted feature by feature, and every second value is kept with
twice the weight; two such buffers are merged, sorted and thinned in the same way, and so on like a binary counter
(Munro and Paterson 1980; Manku, Rajagopalan and Lindsay 1998). All features share one layout, so that sorting runs over
one contiguous array. The certificate is the sum of the largest rank errors of all thinnings, for any values in any
order.

* The values of a feature with few distinct values are counted exactly rather than thinned.
* Weights: n sorted points of weights w are thinned to m points of equal weight sum(w) / m, the values at the ranks
  (i + 1/2) sum(w) / m. This covers weighted and faded rows, missing values and sparse columns.
* Fading is forward decay (Cormode, Shkapenyuk, Srivastava and Xu 2009): new rows get increasing weights.
* The implicit zeros of CSR rows are not points; their weight is that of all CSR rows minus that of their stored cells.
* The size k grows with the number of levels, so that the error stays below eps for any length of the stream.
* From the ninth class on, the first 32 dense rows of a class are stored together with those of the other rare classes:
  each row costs O(1), however many labels occur once.

Deviations from Wang and Barbu (2021), whose summary this replaces: their Algorithm 1 stores a pruned summary back at
the level it came from, so its error is unbounded; their Algorithm 3 compares the count of one bin with cumulative cuts.
Here bin h contains the values x with q_h < x <= q_(h+1), where q_h is the smallest value with F(q_h) >= h / K,
including ties.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from tamis._atomic import atomic
from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, Rows, check_number
from tamis.summaries.batch import FadingState, check_batch, n_bytes
from tamis.summaries.quantile_kernels import Runs, between, select, weigh
from tamis.summaries.quantile_points import CHUNK, ClassPoints
from tamis.summaries.quantile_windows import MOST_CLASSES, EdgeWindows

_LARGEST = {name: float(np.finfo(name).max) for name in ("float32", "float64")}
_LARGEST32, _SMALLEST = _LARGEST["float32"], float(np.finfo(np.float32).smallest_subnormal)
_MOST_TIES = 64  # values of a feature that float32 may confuse with the value before
_RARE = 32  # rows of a class without points of its own


# The last reading of counts: the weight of the rows at that time, and optionally windows around the edges. Stored
# outside the summaries, since readings are not part of their state: they are neither saved nor rolled back.
_readings: weakref.WeakKeyDictionary[QuantileSummary, tuple[float, EdgeWindows | None]]
_readings = weakref.WeakKeyDictionary()


@njit()
def _count_unfit(X: Array, largest: float) -> int:
    """Count the values that are NaN, infinite or too large."""
    unfit = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            unfit += not abs(X[i, j]) <= largest
    return unfit


@njit()
def _close(x: float, before: float) -> bool:
    """Return whether float32 may confuse a value with the one before, or with 0 or infinity."""
    size, gap = abs(x), abs(x - before)
    return (
        ((gap > 0.0) & (gap <= size * 2.0**-24)) | ((size > 0.0) & (size < _SMALLEST)) | (size > _LARGEST32)
    )


@njit()
def _count_close(X: Array, last: Array) -> int:
    close = 0
    for j in range(X.shape[1]):
        close += _close(X[0, j], last[j])
    for i in range(1, X.shape[0]):
        for j in range(X.shape[1]):
            close += _close(X[i, j], X[i - 1, j])
    return close


@njit(strict=True)
def _rows_until_lost(data: Array, indices: Array, indptr: Array, last: Array, ties: Array) -> int:
    for i in range(indptr.shape[0] - 1):
        lost = 0
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], data[at]
            if _close(x, last[j]):
                ties[j] += 1 if _SMALLEST <= abs(x) <= _LARGEST32 else _MOST_TIES
            last[j] = x
            lost += ties[j] >= _MOST_TIES
        if lost:
            return i
    return indptr.shape[0] - 1


@njit(strict=True)
def _weigh_missing(X: Array, codes: Array, weight: Array, largest: float, missing: Array) -> bool:
    """Add the weight of NaN for each class and feature; return False if another value is invalid."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if x != x:
                missing[codes[i], j] += weight[i]
            elif not abs(x) <= largest:
                return False
    return True


def rows_until_lost(X: Rows, last: Array, ties: Array) -> int:
    """Return how many of the first rows float32 can represent without making many distinct values equal.

    The limit is 64 values of a feature so close to the value before that float32 may round both to the same number; a
    single value that overflows, or that becomes 0, also exceeds it.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features), floating
    last : ndarray of shape (n_features,), float64
        The value of each feature in the row before; updated in place.
    ties : ndarray of shape (n_features,), int64
        The number of such values so far; updated in place.

    Returns
    -------
    int
        -1, and nothing is updated, if a value is infinite.

    Examples
    --------
    >>> rows_until_lost(np.array([[0.5], [1e-60]]), np.zeros(1), np.zeros(1, np.int64))
    1
    """
    if X.dtype == np.float32 or not X.shape[0]:
        return int(X.shape[0])
    if not sp.issparse(X) and not _count_close(X, last):
        last[:] = X[-1]
        return int(X.shape[0])
    if np.isinf(X.data if sp.issparse(X) else X).any():
        return -1
    if sp.issparse(X):
        return int(_rows_until_lost(X.data, X.indices, X.indptr, last, ties))
    n, n_features = X.shape
    columns = np.tile(np.arange(n_features, dtype=np.int32), n)
    return int(_rows_until_lost(X.ravel(), columns, np.arange(n + 1) * n_features, last, ties))


class QuantileSummary(FadingState):
    """Cumulative weights of the values of each feature up to any cut, by class; mergeable.

    Parameters
    ----------
    n_features, n_classes : int
    eps : float in (0, 0.5), default=0.01
        The error of the weight up to any cut is at most `eps` times the total weight, in each class and in all classes
        together, for any values in any order. `rank_error` returns the bound of the current state, usually smaller.
    dtype : float32 or float64, default=float32
        Data type of the stored values. Rounding to float32 preserves their order but may make adjacent values equal.

    Notes
    -----
    Counts and class totals are exact up to 2**53 rows, as are all results for a feature with at most 1 / eps distinct
    values in each class. Memory per feature and class: at most (L + 2) k values, where L = log2(n / k) and
    k = (L + 3) / (4 eps); k doubles if rows differ in weight, values are missing or rows are sparse. A class of up to
    32 dense rows, after the first eight classes, takes 5/4 of its rows. CSR rows take O(stored values) time; a batch is
    equivalent to its rows one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(100_000, 2)), rng.integers(0, 2, 100_000)
    >>> X[:, 1] = np.round(X[:, 1])
    >>> summary = QuantileSummary(n_features=2, n_classes=2)
    >>> summary.update(X, y)
    True
    >>> np.abs(summary.quantile([0.25, 0.5]) - [[-0.674, 0.0], [-1.0, 0.0]]).max() < 0.02
    np.True_
    >>> summary.rank_error().round(4)  # the second feature has few distinct values
    array([0.0073, 0.    ])
    >>> int(summary.counts(5).sum()), summary.nbytes < X.nbytes / 50
    (200000, True)
    """

    _shapes = """
        n_features (=j)
        _gain (c) float in (0, inf) fill 1
        _weight (c) float in [0, inf) fill 0
        _sparse_weight (c) float in [0, inf) fill 0
        _stored (c, j?) float in [0, inf) fill 0
        _missing (c, j?) float in [0, inf) fill 0
        _waits (c) int64 in [-1, 32] fill 0
        _rare (R, j) dtype in (-inf, inf) or nan fill 0
        _rare_weight (R) float in [0, inf)
        _rare_class (R) int64 in [0, max(len(_waits), 1))
        _n_rare in [0, len(_rare)]
        eps float in (0, 0.5)
        _points[].distinct in [1.0 / eps, 1.0 / eps + 1.0]
        _points[].levels.eps float in [eps, eps]
        _points[].n_staged in [0, len(its.staged)]
        _points[].staged (N, j) dtype in (-inf, inf) or nan
        _points[].staged_weight (N) float in [0, inf)
        _points[].slot (j) int32 in [-1, len(its.levels.low))
        _points[].levels.low (L) float in [0, inf)
        _points[].levels.high (L) float in [0, inf)
        _points[].levels.buffers[].points (B, *) dtype finite
        _points[].levels.buffers[].weight (B) float in [0, inf)
        _points[].waiting.n in [0, len(its.columns)]
        _points[].waiting.columns (W) int32 in [0, j)
        _points[].waiting.values (W) dtype finite
        _points[].waiting.weights (W) float in [0, inf)
        _points[].table.start (j+1) int64 in [0, len(its.value)] increasing
        _points[].table.value (T) dtype finite
        _points[].table.weight (T) float in [0, inf)
    """

    def __init__(
        self, n_features: int, n_classes: int, eps: float = 0.01, dtype: DTypeLike = np.float32
    ) -> None:
        check_number("eps", eps, low=0.0, high=0.5, open_low=True, open_high=True)
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        self.eps = float(eps)
        self.dtype: str = np.dtype(dtype).name
        self.n_features = n_features
        self._gain = np.ones(n_classes)  # weight of a new row of each class
        self._weight = np.zeros(n_classes)
        self._sparse_weight = np.zeros(n_classes)  # weight of the CSR rows
        # Weight of stored cells; (n_classes, n_features) once CSR rows have been seen.
        self._stored = np.zeros((n_classes, 0))
        self._missing = np.zeros((n_classes, 0))  # weight of NaN; (n_classes, n_features) after the first
        self._points: list[ClassPoints] = []  # in the order of their classes, which wait for no rows
        # Rows of each class among the rare ones; -1: it has points.
        self._waits = np.zeros(n_classes, np.int64)
        self._rare = np.empty((0, n_features), self.dtype)
        self._rare_weight, self._rare_class, self._n_rare = np.empty(0), np.empty(0, np.int64), 0
        self._add_points(0)

    def check_state(self) -> None:
        """Validate that each slot of a loaded summary belongs to exactly one feature, and each row to a rare class.

        Raises
        ------
        StateError
            If a slot belongs to two features or to none, or if classes have other points or rows than is stated.
        """
        n_rare = np.bincount(self._rare_class[: self._n_rare], minlength=self.n_classes)
        if len(self._points) != len(self._classes) or not np.array_equal(n_rare, np.maximum(self._waits, 0)):
            raise state_error("'_points' of a QuantileSummary are not those of its classes")
        for points in self._points:
            slots = np.sort(points.slot[points.slot >= 0])
            if not np.array_equal(slots, np.arange(points.levels.n_slots)):
                raise state_error("'slot' of a QuantileSummary does not assign each slot to one feature")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._weight)

    def grow(self, n_classes: int) -> None:
        """Add classes, with codes after the existing ones."""
        n_before = self.n_classes
        super().grow(n_classes)
        self._add_points(n_before)

    def _add_points(self, first: int) -> None:
        """Add points for new classes, from `first` on, if they are among the first ones."""
        new = range(first, min(self.n_classes, MOST_CLASSES))
        self._waits[new.start : new.stop] = -1
        self._points = [*self._points, *(ClassPoints(self.n_features, self.eps, self.dtype) for _ in new)]

    @property
    def _classes(self) -> Indices:
        """Classes with points."""
        return np.flatnonzero(self._waits < 0)

    def _points_of(self, c: int) -> ClassPoints:
        """Return the points of a class; its rows leave the rare ones."""
        at = int(np.count_nonzero(self._waits[:c] < 0))
        if self._waits[c] >= 0:
            points, n = ClassPoints(self.n_features, self.eps, self.dtype), self._n_rare
            is_own = self._rare_class[:n] == c
            if (rows := np.flatnonzero(is_own)).size:
                points.add(self._rare, rows, self._rare_weight[rows], has_missing=self._has_missing(c))
                self._rare, self._rare_weight, self._rare_class = (
                    part[:n][~is_own] for part in (self._rare, self._rare_weight, self._rare_class)
                )
                self._n_rare = n - len(rows)
            self._waits = self._waits.copy()
            self._waits[c] = -1
            self._points = [*self._points[:at], points, *self._points[at:]]
        return self._points[at]

    def widen(self, n_features: int) -> None:
        """Add features, which count as 0 in all rows so far; these must have been CSR rows.

        Raises
        ------
        ValueError
            If some rows were dense.
        """
        self._reject_dense()
        super().widen(n_features)
        self._points = [points.widened(n_features) for points in self._points]

    def forget(self, columns: Indices) -> None:
        """Forget some features: they then count as 0 in all rows so far, which must have been CSR rows.

        Raises
        ------
        ValueError
            If some rows were dense.
        """
        self._reject_dense()
        super().forget(columns)
        self._points = [points.without(columns) for points in self._points]

    def _reject_dense(self) -> None:
        if not np.array_equal(self._weight, self._sparse_weight):
            raise ValueError("Dense rows have a fixed number of columns: pass CSR rows from the start.")

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        places = np.cumsum(self._waits < 0) - 1
        self._points = [self._points[places[c]] for c in order if self._waits[c] < 0]
        super().reorder(order)
        self._rare_class = np.argsort(order)[self._rare_class]

    def stored_as(self, dtype: str) -> QuantileSummary:
        """Return the summary with its values stored as "float32" or "float64"."""
        if dtype == self.dtype:
            return self
        summary = copy.copy(self)
        summary.dtype = dtype
        summary._points = [points.stored_as(dtype) for points in self._points]
        summary._rare = self._rare.astype(dtype)
        return summary

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self, X: Rows, codes: Array, sample_weight: Array | None = None, keep: float | Array = 1.0
    ) -> bool:
        """Add a batch of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
            NaN is skipped, feature by feature.
        codes : ndarray of shape (n_rows,), int64
            Class of each row, below `n_classes`.
        sample_weight : ndarray of shape (n_rows,), optional
            Not negative.
        keep : float or ndarray of shape (n_classes,), in [0, 1]
            Factor for the weight of all earlier rows (per class, if an array), applied first.

        Returns
        -------
        bool
            False, with the state unchanged, if a value is infinite or too large for `dtype`.

        Raises
        ------
        DataError
            If shapes, classes, weights or `keep` are invalid; the state is unchanged.
        """
        check_batch(X, codes, sample_weight, keep, self.n_features, self.n_classes)
        gain = self._faded_gain(keep)
        weight = gain[codes] if sample_weight is None else gain[codes] * sample_weight
        largest = _LARGEST[self.dtype]
        missing = np.zeros((0, 0))
        values = X.data.reshape(1, -1) if sp.issparse(X) else X
        if _count_unfit(values, largest):
            if sp.issparse(X):
                if not (np.isnan(X.data) | (np.abs(X.data) <= largest)).all():
                    return False
            else:
                missing = np.zeros((self.n_classes, self.n_features))
                if not _weigh_missing(X, codes, weight, largest, missing):
                    return False
        self._gain = gain
        self._weight = self._weight + np.bincount(codes, weight, minlength=self.n_classes)
        if sp.issparse(X):
            self._add_csr(X, codes, weight)
        else:
            self._add_dense(X, codes, weight, missing)
        return True

    def _add_dense(self, X: Array, codes: Array, weight: Array, missing: Array) -> None:
        if missing.size:
            self._missing = self._missing + missing if self._missing.size else missing
        known, own = weight > 0.0, np.unique(codes)
        if (self._waits[own] >= 0).any():
            arrived = np.bincount(codes[known], minlength=self.n_classes)
            is_rare = (self._waits >= 0) & (self._waits + arrived <= _RARE)
            if (rows := np.flatnonzero(known & is_rare[codes])).size:
                self._waits = self._waits + np.where(is_rare, arrived, 0)
                self._store_rare(X[rows], weight[rows], codes[rows])
            own = own[~is_rare[own]]
        for c in own.tolist():
            if (rows := np.flatnonzero((codes == c) & known)).size:
                self._points_of(c).add(X, rows, weight[rows], has_missing=self._has_missing(c))

    def _has_missing(self, c: int) -> bool:
        return bool(self._missing.size and self._missing[c].any())

    def _store_rare(self, rows: Array, weight: Array, codes: Array) -> None:
        end = self._n_rare + len(rows)
        if len(self._rare) < end:
            more = end + end // 4 - self._n_rare
            self._rare, self._rare_weight, self._rare_class = (
                np.concatenate([old[: self._n_rare], np.zeros((more, *old.shape[1:]), old.dtype)])
                for old in (self._rare, self._rare_weight, self._rare_class)
            )
        part = slice(self._n_rare, end)
        self._rare[part], self._rare_weight[part], self._rare_class[part] = rows, weight, codes
        self._n_rare = end

    def _add_csr(self, X: Rows, codes: Array, weight: Array) -> None:
        self._sparse_weight = self._sparse_weight + np.bincount(codes, weight, minlength=self.n_classes)
        if not self._stored.size:
            self._stored = np.zeros((self.n_classes, self.n_features))
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        cell_weight, cell_code = weight[row], codes[row]
        np.add.at(self._stored, (cell_code, X.indices), cell_weight)
        known = cell_weight > 0.0
        nan = np.isnan(X.data)
        if nan.any():
            known &= ~nan
            if not self._missing.size:
                self._missing = np.zeros((self.n_classes, self.n_features))
            np.add.at(self._missing, (cell_code[nan], X.indices[nan]), cell_weight[nan])
        for c in np.unique(codes[self._waits[codes] >= 0]).tolist():  # also if all its values are 0
            self._points_of(c)
        for c in np.unique(cell_code).tolist():
            cells = np.flatnonzero(known & (cell_code == c))
            self._points_of(c).add_cells(X.indices[cells], X.data[cells], cell_weight[cells])

    def _rescale(self) -> None:
        self._points = [
            points if gain == 1.0 else points.scaled(1.0 / gain)
            for points, gain in zip(self._points, self._gain[self._classes], strict=True)
        ]
        self._rare_weight = self._rare_weight / self._gain[self._rare_class]
        self._weight, self._sparse_weight = self._weight / self._gain, self._sparse_weight / self._gain
        self._stored, self._missing = self._stored / self._gain[:, None], self._missing / self._gain[:, None]
        self._gain = np.ones_like(self._gain)

    def fade(self, keep: float | Array) -> None:
        """Multiply the weight of all rows (per class, if an array) by `keep`, in [0, 1]."""
        self._rescale()
        super().fade(keep)

    @atomic
    def merge(self, other: QuantileSummary) -> None:
        """Add another summary of the same features, each with its weights as of its last row.

        Raises
        ------
        ValueError
            If the numbers of features or classes, eps or dtype differ.
        """
        mine, theirs = (
            f"{s.n_features} features, {s.n_classes} classes, eps={s.eps:g}, {s.dtype}" for s in (self, other)
        )
        if mine != theirs or self.eps != other.eps:
            raise ValueError(f"Cannot merge quantiles of {theirs} into quantiles of {mine}.")
        other = copy.copy(other)
        other._rescale()
        self._rescale()
        self._weight = self._weight + other._weight
        self._sparse_weight = self._sparse_weight + other._sparse_weight
        self._stored = _sum(self._stored, other._stored)
        self._missing = _sum(self._missing, other._missing)
        for c, more in zip(other._classes.tolist(), other._points, strict=True):
            points = self._points_of(c).merged(more)
            at = np.count_nonzero(self._waits[:c] < 0)
            self._points = [*self._points[:at], points, *self._points[at + 1 :]]
        n = other._n_rare
        self._add_dense(other._rare[:n], other._rare_class[:n], other._rare_weight[:n], np.zeros((0, 0)))

    # -- results -------------------------------------------------------------------------------------------

    def weight(self) -> Floats:
        """Return the faded number of rows of each class, shape (n_classes,)."""
        return self._weight / self._gain

    def count(self) -> Floats:
        """Return the exact (faded) number of non-missing values of each class and feature."""
        missing = self._missing if self._missing.size else np.zeros((self.n_classes, 1))
        values = np.maximum(self._weight[:, None] - missing, 0.0) / self._gain[:, None]
        return values + np.zeros((1, self.n_features))

    def quantile(self, q: float | Array) -> Floats:
        """Return the smallest value x with F(x) >= q.

        Parameters
        ----------
        q : float or array-like of shape (n,), in [0, 1]

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, n)
            NaN for a feature without values.
        """
        fractions = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((fractions >= 0.0) & (fractions <= 1.0)).all():
            raise ValueError(f"q must lie in [0, 1], got {q!r}.")
        order = np.argsort(fractions)
        values = np.empty((self.n_features, len(fractions)))
        for first, runs, of_class in self._in_one_scale()._pooled()._runs():
            part = np.empty((len(runs.start), len(fractions)))
            room, nothing = np.empty((5, len(of_class)), np.int64), np.empty((0, 0, 0))
            select(runs, of_class, fractions[order], room, part, nothing)
            values[first : first + len(part), order] = part
        return values[:, 0] if np.ndim(q) == 0 else values

    def weight_below(self, cuts: Array) -> Floats:
        """Return the weight of the values up to and including each cut.

        Parameters
        ----------
        cuts : array-like of shape (n_features, n)

        Returns
        -------
        ndarray of shape (n_features, n, n_classes)
        """
        cuts = np.ascontiguousarray(cuts, dtype=np.float64)
        pooled = self._pooled()
        values = np.zeros((*cuts.shape, pooled.n_classes))
        for first, runs, of_class in pooled._runs():
            part = slice(first, first + len(runs.start))
            weigh(runs, of_class, cuts[part], values[part])
        return self._of_each_class(values, cuts) / self._gain

    def counts(self, n_bins: int) -> Floats:
        """Return the weight of each class in each of `n_bins` bins of about equal weight.

        Bin h contains the values x with q_h < x <= q_(h+1), where q_h is the smallest value with F(q_h) >= h / n_bins.
        A very frequent value spans several bins, so some bins are empty.

        Returns
        -------
        ndarray of shape (n_features, n_bins, n_classes)
            The sum over the bins is `count`, to the last bit.
        """
        check_number("n_bins", n_bins, low=1, integer=True)
        fractions = np.arange(1, n_bins) / n_bins
        counts = np.empty((self.n_features, n_bins, self.n_classes))
        # Removed, so that an interrupt leaves no partial reading.
        last_weight, windows = _readings.pop(self, (None, None))
        if windows is not None and not self._can_follow(windows, n_bins):
            windows = None
        if windows is None:
            windows = self._new_windows(last_weight, n_bins)
            now = self._in_one_scale()
            upto = now._of_each_class(*now._pooled()._weight_up_to(fractions, windows))
        else:
            now, upto = self, np.zeros((self.n_features, n_bins - 1, self.n_classes))
            left = np.flatnonzero(~windows.read(fractions, upto))
            if len(left):
                part = self._of_columns(left)
                around = EdgeWindows(part._points, len(left), n_bins - 1, self.dtype)
                upto[left] = part._weight_up_to(fractions, around)[0]
                windows.replace(left, around)
        between(upto, now._gain, self.count(), counts)
        _readings[self] = float(self._weight.sum()), windows
        return counts

    def _weight_up_to(self, fractions: Array, windows: EdgeWindows | None) -> tuple[Floats, Floats]:
        """Return the weight of each class up to the quantiles, and these; open windows around them."""
        upto = np.zeros((self.n_features, len(fractions), self.n_classes))
        cuts = np.empty(upto.shape[:2])
        for first, runs, of_class in self._runs():
            part = slice(first, first + len(runs.start))
            room = np.empty((5, len(of_class)), np.int64)
            select(runs, of_class, fractions, room, cuts[part], upto[part])
            if windows is not None:
                windows.open(first, runs, of_class, cuts[part])
        return upto, cuts

    def _pooled(self) -> QuantileSummary:
        """Return the classes with points, and one class of all rare rows, for reading; self if no class is rare."""
        classes = self._classes
        if len(classes) == self.n_classes:
            return self
        pooled, rare, n = copy.copy(self), ClassPoints(self.n_features, self.eps, self.dtype), self._n_rare
        rare.staged, rare.staged_weight, rare.n_staged = self._rare[:n], self._rare_weight[:n], n
        pooled._points = [*self._points, rare]
        pooled._weight, pooled._sparse_weight, pooled._stored = (
            np.concatenate([part[classes], np.zeros((1, *part.shape[1:]))])
            for part in (self._weight, self._sparse_weight, self._stored)
        )
        return pooled

    def _of_each_class(self, weights: Floats, cuts: Floats) -> Floats:
        """Return the weight of each class up to each cut, given those of :meth:`_pooled`."""
        classes, n = self._classes, self._n_rare
        if len(classes) == self.n_classes:
            return weights
        whole = np.zeros((*cuts.shape, self.n_classes))
        whole[:, :, classes] = weights[:, :, :-1]
        of_cut = np.empty((self.n_classes, self.n_features))
        for h in range(cuts.shape[1]):
            of_cut[:] = 0.0
            below = np.where(self._rare[:n] <= cuts[:, h], self._rare_weight[:n, None], 0.0)
            np.add.at(of_cut, self._rare_class[:n], below)
            whole[:, h] += of_cut.T
        return whole

    def _of_columns(self, columns: Indices) -> QuantileSummary:
        """Return the points of some features, in ascending order, for reading; all rows must have been dense."""
        part = copy.copy(self)
        part.n_features = len(columns)
        part._points = [points.of_columns(columns) for points in self._points]
        return part

    def _can_follow(self, windows: EdgeWindows, n_bins: int) -> bool:
        """Add the rows staged since to the windows; return False if the windows can no longer be used."""
        return (
            windows.of.low.shape == (self.n_features, n_bins - 1)
            and not self._stored.size
            and bool((self._gain == 1.0).all())
            and windows.are_of(self._points)
            and windows.add_staged(self._points)
        )

    def _new_windows(self, last_weight: float | None, n_bins: int) -> EdgeWindows | None:
        """Return windows to open, if several readings are expected before the next block is thinned."""
        if last_weight is None or self._stored.size or not (self._gain == 1.0).all() or n_bins < 2:
            return None
        if self.n_classes > MOST_CLASSES or any(points.waiting.n for points in self._points):
            return None
        since = max(float(self._weight.sum()) - last_weight, 1.0)
        staged = float(sum(points.n_staged for points in self._points))
        room = [2 * p.size - p.n_staged for p in self._points if p.n_staged]
        share = [p.n_staged / staged for p in self._points if p.n_staged]
        if min((n / of for n, of in zip(room, share, strict=True)), default=0.0) < 4.0 * since:
            return None
        return EdgeWindows(self._points, self.n_features, n_bins - 1, self.dtype)

    def rank_error(self, *, by_class: bool = False) -> Floats:
        """Return the certified bound of the error of a weight up to any cut, as a fraction of all.

        Returns
        -------
        ndarray of shape (n_features,), or (n_features, n_classes) with `by_class`
            0 where all weights are exact.
        """
        low, high = np.zeros((2, self.n_classes, self.n_features))
        for c, points in zip(self._classes.tolist(), self._points, strict=True):
            features = points.thinned()
            low[c, features], high[c, features] = points.levels.low, points.levels.high
        low, high = low / self._gain[:, None], high / self._gain[:, None]
        count = self.count()
        if not by_class:
            low, high, count = (part.sum(axis=0) for part in (low, high, count))
        error = np.maximum(low, high)
        return np.divide(error, count, out=np.zeros_like(error), where=count > 0.0).T

    def _in_one_scale(self) -> QuantileSummary:
        """Return self, or an equivalent summary with one gain if the classes fade separately."""
        if (self._gain == self._gain[:1]).all():
            return self
        now = copy.copy(self)
        now._rescale()
        return now

    def _runs(self) -> Iterator[tuple[int, Runs, Array]]:
        """Yield the first feature of a chunk, the runs of its features, and the class of each run."""
        width = sum(points.width for points in self._points)
        chunk = max(CHUNK // max(width, 1), 128)  # rows of few values are slow to gather
        cells = [points.cells() for points in self._points]
        zeros = np.zeros((self.n_classes, self.n_features))
        if self._stored.size:
            zeros = np.maximum(self._sparse_weight[:, None] - self._stored, 0.0)
        most = sum(4 + len(points.levels.buffers) for points in self._points)
        for first in range(0, self.n_features, chunk):
            stop = min(first + chunk, self.n_features)
            room = np.full(stop - first, width)
            for table in (*cells, *(points.table for points in self._points)):
                room += np.diff(table.start[first : stop + 1])
            starts = np.zeros((stop - first, most), np.int64)
            starts[:, :1] = (np.cumsum(room) - room)[:, None]
            values, below = np.empty(room.sum(), self.dtype), np.empty(room.sum())
            runs = Runs(values, below, starts, np.zeros_like(starts), np.zeros(starts.shape))
            ends = [0]
            for points, table, zero in zip(self._points, cells, zeros, strict=True):
                ends.append(points.read(first, stop, table, zero[first:stop], ends[-1], runs))
            yield first, runs, np.repeat(np.arange(len(self._points)), np.diff(ends))

    nbytes = property(n_bytes)


def _sum(a: Array, b: Array) -> Array:
    """Add two arrays of weights; either may be empty."""
    if a.size and b.size:
        return a + b
    return a if a.size else b
