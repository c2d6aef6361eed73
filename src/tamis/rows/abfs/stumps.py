"""Decision stumps: sufficient statistics for a stump on each feature, their gains, and frozen stumps.

Categorical features have weights per value and class, numeric ones a Gaussian per class (weight, mean, squared
deviations, minimum and maximum), as in a leaf of a Hoeffding tree. All statistics are stored feature by feature in one
row per class, so that updating them with a row of the stream accesses contiguous memory.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes, state_error, without_columns
from tamis._validation import Array, Floats, Indices, Ints
from tamis.base.categories import MAX_CATEGORIES
from tamis.dependence.expected_g import MANY, expected_g, fill_expected_g
from tamis.dependence.split_gain import LEAST_SHARE, entropy_times_weight, gain_of_two, share_below
from tamis.rows.softsign_scaler import N_SCALING_ROWS, SoftsignScaler
from tamis.summaries.categories import find_slot, n_slots_for

_CUTS = 10  # equally spaced cut points of a numeric feature
_MEAN, _SQUARES, _LOW, _HIGH = 0, 1, 2, 3


@njit(strict=True)
def _encode(X: Array, columns: Array, start: Array, keys: Array, ids: Array, used: Array, out: Array) -> int:
    """Write the code of each value, new ones in order of appearance; return the column whose table is full, or -1.

    Values after the 10,000th of a column share the last code.
    """
    for i in range(X.shape[0]):
        row = X[i]
        bits = row.view(np.uint64)
        for k in range(len(columns)):
            x = row[columns[k]]
            slot = find_slot(x, bits[columns[k]], keys, start[k], start[k + 1])
            if keys[slot] != x:
                if used[k] >= MAX_CATEGORIES:
                    out[i, k] = MAX_CATEGORIES - 1
                    continue
                if 4 * (used[k] + 1) > 3 * (start[k + 1] - start[k]):
                    return k
                keys[slot], ids[slot] = x, used[k]
                used[k] += 1
            out[i, k] = ids[slot]
    return -1


@njit(strict=True)
def _observe(
    X: Array, ids: Array, y: Array, weight: Array, start: Array, total: Array, normal: Array, counts: Array
) -> None:
    """Add rows to the Gaussians of the numeric and the counts of the categorical features."""
    for i in range(len(y)):
        w, c = weight[i], y[i]
        total[c] += w
        share = w / total[c]
        mean, squares, low, high = normal[0, c], normal[1, c], normal[2, c], normal[3, c]
        for j in range(X.shape[1]):
            x = X[i, j]
            gap = x - mean[j]
            mean[j] += share * gap
            squares[j] += w * gap * (x - mean[j])
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)
        for k in range(ids.shape[1]):
            counts[c, start[k] + ids[i, k]] += w


@njit(strict=True)
def _weight_below(cut: float, c: int, j: int, total: Array, normal: Array) -> float:
    """Return the weight of a class with values up to the cut."""
    if total[c] == 0.0:
        return 0.0
    deviation = np.sqrt(normal[_SQUARES, c, j] / total[c])
    share = share_below(cut, normal[_MEAN, c, j], deviation, normal[_LOW, c, j], normal[_HIGH, c, j])
    return share * total[c]


@njit(strict=True)
def _numeric_gains(total: Array, normal: Array, gains: Array, cuts: Array) -> None:
    """Write the best gain of each numeric feature, and its cut."""
    left, right = np.empty(len(total)), np.empty(len(total))
    for j in range(len(gains)):
        low, high = normal[_LOW, :, j].min(), normal[_HIGH, :, j].max()
        gains[j], cuts[j] = 0.0, low
        if not low < high:
            continue
        for k in range(1, _CUTS + 1):
            cut = low + (high * (k / (_CUTS + 1)) - low * (k / (_CUTS + 1)))
            for c in range(len(total)):
                left[c] = _weight_below(cut, c, j, total, normal)
            gain = gain_of_two(total, left, right)
            if gain > gains[j]:
                gains[j], cuts[j] = gain, cut


@njit(strict=True)
def _categorical_gains(
    total: Array, start: Array, used: Array, counts: Array, rows: float, gains: Array, alone: Array
) -> None:
    """Write the best gain of each categorical feature, and the value that is split off; -1 if each has a branch.

    `rows`: the effective number of rows, to subtract the expected gain by chance of many branches; 0: no correction.
    """
    whole, right, chance = total.sum(), np.empty(len(total)), np.empty(MANY + 1)
    fill_expected_g(total, chance)
    for k in range(len(gains)):
        branches, after, free = 0, 0.0, -chance[MANY]
        gains[k], alone[k] = 0.0, -1
        for at in range(start[k], start[k] + used[k]):
            weight = counts[:, at].sum()
            branches += weight > LEAST_SHARE * whole
            after += entropy_times_weight(counts[:, at])
            free += expected_g(weight / whole * rows, chance)
        if branches >= 2:  # no binary split gains more
            bias = free / (2.0 * rows * np.log(2.0)) if rows > 0.0 else 0.0
            gains[k] = max((entropy_times_weight(total) - after) / whole - max(bias, 0.0), 0.0)
            continue
        for v in range(used[k]):
            gain = gain_of_two(total, counts[:, start[k] + v], right)
            if gain > gains[k]:
                gains[k], alone[k] = gain, v


@dataclass
class Stump:
    """A tree with one split; its predictions do not change after it was frozen.

    Attributes
    ----------
    feature : int
    column : int
        Its position among the numeric or the categorical features.
    cut : float
        Rows up to it go left; NaN for categories.
    classes : ndarray of int64
        Class of the left and right branch, or of each value's branch; -1 without rows.
    other : int
        Class of all other values; -1: none.
    gain : float
        Information gain in bits at its selection.
    """

    feature: int
    column: int
    cut: float
    classes: Ints
    other: int
    gain: float

    def predict(self, X: Array, ids: Array) -> Ints:
        """Return the class code of each row; -1 if its branch has no class.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_numeric)
        ids : ndarray of shape (n_rows, n_categorical)
            Numbers of the values, see `Values`.
        """
        if not math.isnan(self.cut):
            return self.classes[(X[:, self.column] > self.cut).astype(np.int64)]
        value = ids[:, self.column]
        known = value < len(self.classes)
        return np.where(known, self.classes[np.where(known, value, 0)], self.other)


class Values:
    """Integer codes of the values of categorical columns, in order of appearance.

    Attributes
    ----------
    start : ndarray of shape (n_columns + 1,)
        Table bounds: column k occupies start[k] to start[k + 1].
    used : ndarray of shape (n_columns,)
        Number of values seen in each column.
    """

    def __init__(self, columns: Indices) -> None:
        self.columns = columns
        self.used = np.zeros(len(columns), np.int64)
        self._make(np.full(len(columns), n_slots_for(2) - 1))

    _state_spec = Shapes("""
        columns (v) int
        used (v) int64 in [0, len(_keys))
        start (v+1) int64 in [0, len(_keys)] increasing
        _keys (m) float in (-inf, inf) or nan
        _ids (m) int64 in [0, 2**62)
    """)

    def check_state(self) -> None:
        """Raise unless a loaded table supports lookups: its size must be a power of two, with a free slot.

        Raises
        ------
        StateError
            If so.
        """
        width, taken = np.diff(self.start), ~np.isnan(self._keys)
        fits = self.start[0] == 0 and self.start[-1] == len(self._keys) and (width & (width - 1) == 0).all()
        for k, used in enumerate(self.used):
            slots = slice(self.start[k], self.start[k + 1])
            ids = self._ids[slots][taken[slots]]
            fits &= len(ids) == used < width[k] and (ids < used).all()
        if not fits:
            raise state_error("The codes of categories are inconsistent")

    def _make(self, width: Array) -> None:
        self.start = np.r_[0, np.cumsum(width)].astype(np.int64)
        self._keys = np.full(self.start[-1], np.nan)
        self._ids = np.zeros(self.start[-1], np.int64)

    def number(self, X: Array) -> Ints:
        """Return the code of each value of the rows, shape (n_rows, n_columns)."""
        out = np.empty((len(X), len(self.columns)), np.int64)
        if len(self.columns):
            while (full := _encode(X, self.columns, self.start, self._keys, self._ids, self.used, out)) >= 0:
                self._grow(full)
        return out

    def widened(self, columns: Indices) -> Values:
        """Return a copy with additional columns, whose only value so far is 0."""
        new, wide = Values(np.arange(len(columns) - len(self.columns))), copy.copy(self)
        new.number(np.zeros((1, len(new.columns))))
        wide.columns, wide.used = columns, np.append(self.used, new.used)
        wide.start = np.append(self.start, self.start[-1] + new.start[1:])
        wide._keys, wide._ids = np.append(self._keys, new._keys), np.append(self._ids, new._ids)
        return wide

    def _grow(self, full: int) -> None:
        """Double the table of one column, and reinsert all values with their codes."""
        width = np.diff(self.start)
        width[full] *= 2
        start, keys, ids, used = self.start, self._keys, self._ids, self.used
        self._make(width)
        self.used = np.zeros_like(used)
        one = np.zeros(1, np.int64)
        for k in range(len(width)):
            if k != full:
                old, new = slice(start[k], start[k + 1]), slice(self.start[k], self.start[k + 1])
                self._keys[new], self._ids[new], self.used[k] = keys[old], ids[old], used[k]
        slots = slice(start[full], start[full + 1])
        kept = keys[slots][~np.isnan(keys[slots])][np.argsort(ids[slots][~np.isnan(keys[slots])])]
        part = slice(full, full + 1)
        _encode(
            kept[:, None], one, self.start[full : full + 2], self._keys, self._ids, self.used[part],
            np.empty((len(kept), 1), np.int64),
        )  # fmt: skip


def _no_normals(n_classes: int, n_columns: int) -> Floats:
    fresh = np.zeros((4, n_classes, n_columns))
    fresh[_LOW], fresh[_HIGH] = np.inf, -np.inf
    return fresh


class Observers:
    """Statistics of the rows since the last reset: one candidate stump on each feature.

    Parameters
    ----------
    numeric : ndarray of int
        The numeric features.
    values : Values
        The categorical ones.
    n_classes : int
    corrected : bool
        Whether the expected gain by chance of many branches is subtracted.
    robust : bool
        Whether numbers are scaled by a :class:`SoftsignScaler` of the first 32 rows.

    Attributes
    ----------
    total : ndarray of shape (n_classes,)
        Weight of the rows.
    """

    def __init__(
        self,
        numeric: Indices,
        values: Values,
        n_classes: int,
        corrected: bool = False,
        robust: bool = False,
    ) -> None:
        self.numeric, self.values, self.corrected, self.robust = numeric, values, corrected, robust
        self._scaler: SoftsignScaler | None = None
        # Rows before the scaler is fitted.
        self._early = (np.zeros((0, len(numeric))), np.zeros(0, np.int64), np.zeros(0))
        self.total = np.zeros(0)
        self._squares = 0.0  # of the weights
        self._normal = np.zeros((4, 0, len(numeric)))
        self._counts = np.zeros((0, values.start[-1]))
        self._start: Ints = values.start
        self.grow(n_classes)

    def grow(self, n_classes: int) -> None:
        """Allocate space for more classes."""
        more = n_classes - len(self.total)
        fresh = _no_normals(more, len(self.numeric))
        self.total = np.r_[self.total, np.zeros(more)]
        self._normal = np.concatenate([self._normal, fresh], axis=1)
        self._counts = np.concatenate([self._counts, np.zeros((more, self._counts.shape[1]))])

    def widened(self, numeric: Indices, values: Values) -> Observers:
        """Return a copy with additional numeric or categorical features, which were 0 in all rows."""
        wide, more = copy.copy(self), len(numeric) - len(self.numeric)
        self._move_counts()
        wide._counts = np.pad(self._counts, ((0, 0), (0, values.start[-1] - self._start[-1])))
        # The value 0 is the first.
        wide._counts[:, values.start[len(self.values.columns) : -1]] = self.total[:, None]
        fresh = _no_normals(len(self.total), more)
        if self._scaler is not None or not self.robust:  # else the early rows are counted later
            fresh[_LOW : _HIGH + 1, self.total > 0.0] = 0.0
        wide.numeric, wide.values, wide._start = numeric, values, values.start
        wide._normal = np.concatenate([self._normal, fresh], axis=2)
        wide._early = np.pad(self._early[0], ((0, 0), (0, more))), *self._early[1:]
        wide._scaler = None if self._scaler is None else self._scaler.widened(len(numeric))
        return wide

    def without(self, columns: Indices) -> Observers:
        """Return a copy as if some numeric features, given by their positions, had been 0 in all rows."""
        cleared, fresh = copy.copy(self), _no_normals(len(self.total), len(columns))
        if self._scaler is not None or not self.robust:  # else the early rows are counted later
            fresh[_LOW : _HIGH + 1, self.total > 0.0] = 0.0
        cleared._normal = self._normal.copy()
        cleared._normal[:, :, columns] = fresh
        cleared._early = without_columns(self._early[0], columns), *self._early[1:]
        cleared._scaler = None if self._scaler is None else self._scaler.without(columns)
        return cleared

    def _move_counts(self) -> None:
        """Move the counts to the current positions of their values."""
        start = self.values.start
        if start is self._start:
            return
        counts = np.zeros((len(self.total), start[-1]))
        for k in range(len(start) - 1):
            width = self._start[k + 1] - self._start[k]
            counts[:, start[k] : start[k] + width] = self._counts[:, self._start[k] : self._start[k + 1]]
        self._counts, self._start = counts, start

    def add(self, X: Array, ids: Array, y: Array, weight: Array) -> None:
        """Update the statistics with rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_numeric), float64
            C-contiguous.
        ids : ndarray of shape (n_rows, n_categorical), int64
        y : ndarray of shape (n_rows,), int64
        weight : ndarray of shape (n_rows,), float64
            Above 0.
        """
        self._move_counts()
        for w in weight.tolist():  # one by one: a batch gives the bits of its rows
            self._squares += w * w
        if self.robust and self._scaler is None and len(self.numeric):
            n = min(N_SCALING_ROWS - len(self._early[1]), len(y))
            first = X[:n], y[:n], weight[:n]
            self._early = tuple(np.concatenate(both) for both in zip(self._early, first, strict=True))  # type: ignore[assignment]
            _observe(X[:n, :0], ids[:n], *first[1:], self._start, self.total, self._normal, self._counts)
            if len(self._early[1]) == N_SCALING_ROWS:
                self._normal, self._scaler = self._normals()
            X, ids, y, weight = X[n:], ids[n:], y[n:], weight[n:]
        if len(y):
            X = X if self._scaler is None else self._scaler(X)
            _observe(X, ids, y, weight, self._start, self.total, self._normal, self._counts)

    def _normals(self) -> tuple[Floats, SoftsignScaler | None]:
        """Return the Gaussians of the numeric features (of the early rows, until others exist), and their scaler."""
        if self._scaler is not None or not len(self._early[1]):
            return self._normal, self._scaler
        X, y, weight = self._early
        squash, normal = SoftsignScaler(X), _no_normals(len(self.total), X.shape[1])
        none = np.zeros((len(y), 0), np.int64)
        _observe(squash(X), none, y, weight, self._start, np.zeros_like(self.total), normal, self._counts)
        return normal, squash

    def gains(self) -> tuple[Floats, Floats]:
        """Return the gain in bits of a stump on each feature (0 if there is none), and its split.

        Returns
        -------
        gains : ndarray of shape (n_features,)
        splits : ndarray of shape (n_features,)
            The cut; or the number of the value that is split off, -1 if each value has a branch.
        """
        self._move_counts()
        n = len(self.numeric)
        gains, splits = np.zeros((2, n + len(self.values.columns)))
        if not self.total.any():
            return gains, splits
        values, ways = np.zeros_like(gains), np.zeros_like(splits)
        if n:
            _numeric_gains(self.total, self._normals()[0], values[:n], ways[:n])
        if n < len(values):
            rows = self.total.sum() ** 2 / self._squares if self.corrected else 0.0  # Kish's effective size
            _categorical_gains(
                self.total, self._start, self.values.used, self._counts, rows, values[n:], ways[n:]
            )
        order = np.r_[self.numeric, self.values.columns]
        gains[order], splits[order] = values, ways
        return gains, splits

    def stump(self, feature: int, gain: float, split: float) -> Stump:
        """Return the stump on a feature."""
        if feature in self.numeric:
            j = int(np.searchsorted(self.numeric, feature))
            normal, squash = self._normals()
            left = np.array([_weight_below(split, c, j, self.total, normal) for c in range(len(self.total))])
            classes = np.array([left.argmax(), (self.total - left).argmax()])
            cut = float(split) if squash is None else squash.back(float(split), j)
            return Stump(feature, j, cut, classes, -1, gain)
        k = int(np.searchsorted(self.values.columns, feature))
        counts = self._counts[:, self._start[k] : self._start[k] + self.values.used[k]]
        if split >= 0:
            v = int(split)
            rest = int((self.total - counts[:, v]).argmax())
            classes = np.full(v + 1, rest)
            classes[v] = counts[:, v].argmax()
            return Stump(feature, k, math.nan, classes, rest, gain)
        classes = np.where(counts.any(axis=0), counts.argmax(axis=0), -1)
        return Stump(feature, k, math.nan, classes, -1, gain)
