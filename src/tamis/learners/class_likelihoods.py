"""Class-conditional likelihoods: Gaussians for numeric features, frequencies for categories, over a sliding window.

For feature j and class c, with n values in the window, their mean and their m2 (sum of squared deviations from the
mean), n_x values in category x, and m categories of the feature::

    P[x|c] = exp(-(x - mean)^2 / (2 s^2)) / (s sqrt(2 pi)),    s^2 = m2 / (n - 1)            (1)
    P[x|c] = (n_x + 1) / (n + m)                                                             (2)
    log P[c] + sum_j e_j log P[x_j|c]                                                        (3)

Missing values (NaN) are ignored. A row that leaves the window is removed from n, mean and m2 by Welford's recurrence in
reverse. Where that leaves less than a hundredth of m2, and for all features every `window` rows, the statistics are
recomputed from the window: rounding errors do not accumulate, and a feature that has become constant has m2 = 0.

Cases that (1) leaves undefined, with S^2 the variance of the feature over all classes:

* A feature with a single value over all classes is not informative: it is ignored, like unselected columns.
* s is at least 1e-9 S.
* For a class with one value of a feature, that value is the mean and s = S; for a class with none, the mean is that
  of all classes and s = S.
* A class with two or more identical values has P = (n + 1) / (n + 2) at that value and 1 / (n + 2) elsewhere, both in
  units of S, as (2) gives for a category and its complement. Scaling a feature by a constant therefore changes nothing.
* A class without rows has P[c] = 0.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis.errors import StateError
from tamis.learners.class_counts import learn_rows, move_tables
from tamis.summaries.categories import find_slot, insert, n_slots_for

_MIN_VARIANCE_RATIO = 1e-18  # smallest class variance, relative to that of all classes
_MAX_PENALTY = 1e300  # largest penalty on a log-likelihood
_LOG_2PI = math.log(2.0 * math.pi)
_Constants = tuple[Array, Array, Array, Array, Array, Array, Array, Array]


@njit(strict=True)
def _gaussians(
    n: Array, mean: Array, m2: Array, exponents: Array, is_number: Array
) -> tuple[Array, Array, Array, Array]:
    """Return centre, pull, level and miss of e log P[x] = level - pull (x - centre)^2.

    In a constant class, `miss` is added where x differs from centre.
    """
    centre, pull, level, miss = np.zeros(n.shape), np.zeros(n.shape), np.zeros(n.shape), np.zeros(n.shape)
    n_classes, n_features = n.shape
    for j in range(n_features):
        e = exponents[j]
        if e == 0.0 or not is_number[j]:
            continue
        total, shift, square, first = 0.0, 0.0, 0.0, 0.0
        for c in range(n_classes):
            if n[c, j] > 0.0:
                first = mean[c, j] if total == 0.0 else first
                total += n[c, j]
                shift += n[c, j] * (mean[c, j] - first)
        if total == 0.0:
            continue
        overall = first + shift / total
        for c in range(n_classes):
            square += m2[c, j] + n[c, j] * (mean[c, j] - overall) ** 2
        spread = square / max(total - 1.0, 1.0)
        if spread == 0.0:
            continue
        for c in range(n_classes):
            k = n[c, j]
            centre[c, j] = mean[c, j] if k > 0.0 else overall
            if k > 1.0 and m2[c, j] == 0.0:
                level[c, j] = e * (math.log((k + 1.0) / (k + 2.0)) - 0.5 * math.log(spread))
                miss[c, j] = -e * math.log(k + 1.0)
                continue
            variance = max(m2[c, j] / (k - 1.0), _MIN_VARIANCE_RATIO * spread) if k > 1.0 else spread
            pull[c, j] = 0.5 * e / variance
            level[c, j] = -0.5 * e * (_LOG_2PI + math.log(variance))
    return centre, pull, level, miss


@njit(strict=True)
def _category_log_shares(
    n: Array, exponents: Array, columns: Array, start: Array, keys: Array, counts: Array, table: Array
) -> None:
    """Write e log P[x] of each category, and of an unknown one into the free slots; 0 for missing values."""
    n_classes = n.shape[0]
    for j in columns:
        values = 0.0
        for slot in range(start[j], start[j + 1] - 1):
            occupied = False
            for c in range(n_classes):
                occupied |= counts[slot, c] > 0.0
            values += occupied
        values = max(values, 1.0)
        for c in range(n_classes):
            total = exponents[j] * math.log(n[c, j] + values)
            for slot in range(start[j], start[j + 1] - 1):
                k = counts[slot, c]
                table[slot, c] = (exponents[j] * math.log(k + 1.0) if k > 0.0 else 0.0) - total


@njit(strict=True)
def _prepare(
    n_rows: Array, n: Array, mean: Array, m2: Array, exponents: Array, is_number: Array
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Return log P[c], the arrays of `_gaussians`, the sum of log P[c] and all levels, and where `miss` is not 0."""
    centre, pull, level, miss = _gaussians(n, mean, m2, exponents, is_number)
    prior, base = np.empty(n_rows.shape[0]), np.empty(n_rows.shape[0])
    total = n_rows.sum()
    for c in range(n_rows.shape[0]):
        prior[c] = math.log(n_rows[c] / total) if n_rows[c] > 0.0 else -np.inf
        base[c] = prior[c] + level[c].sum()
    return prior, centre, pull, level, miss, base, np.flatnonzero(miss)


@njit()
def _distances(x0: Array, x1: Array, x2: Array, x3: Array, centre: Array, pull: Array, out: Array) -> None:
    """Sum pull (x - centre)^2 for four rows in one pass."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for j in range(centre.shape[0]):
        m, h = centre[j], pull[j]
        z0, z1, z2, z3 = x0[j] - m, x1[j] - m, x2[j] - m, x3[j] - m
        s0 += h * z0 * z0
        s1 += h * z1 * z1
        s2 += h * z2 * z2
        s3 += h * z3 * z3
    out[0], out[1], out[2], out[3] = s0, s1, s2, s3


@njit(strict=True)
def _robust_sum(x: Array, centre: Array, pull: Array, level: Array, miss: Array) -> float:
    """Return a row's sum over its observed features, without overflow for any magnitude."""
    total = 0.0
    for j in range(x.shape[0]):
        if x[j] != x[j]:
            continue
        total += level[j]
        if x[j] != centre[j]:
            total += miss[j]
            if pull[j] > 0.0:
                total -= min(pull[j] * (x[j] - centre[j]) ** 2, _MAX_PENALTY)
    return total


@njit(strict=True)
def _joint(
    X: Array, prior: Array, centre: Array, pull: Array, level: Array, miss: Array, base: Array, missed: Array,
    table: Array, columns: Array, start: Array, keys: Array, out: Array,
) -> None:  # fmt: skip
    n, n_features = X.shape
    n_classes = prior.shape[0]
    four = np.empty(4)
    for i in range(0, n, 4):
        last = n - 1
        a, b, c, d = X[i], X[min(i + 1, last)], X[min(i + 2, last)], X[min(i + 3, last)]
        for y in range(n_classes):
            _distances(a, b, c, d, centre[y], pull[y], four)
            for r in range(min(4, n - i)):
                if four[r] < _MAX_PENALTY:
                    out[i + r, y] = base[y] - four[r]
                else:  # NaN, or too large
                    out[i + r, y] = prior[y] + _robust_sum(X[i + r], centre[y], pull[y], level[y], miss[y])
            if four[0] + four[1] + four[2] + four[3] < _MAX_PENALTY and missed.shape[0] == 0:
                continue
            for r in range(min(4, n - i)):
                if four[r] < _MAX_PENALTY:
                    for at in missed:
                        if at // n_features == y and X[i + r, at % n_features] != centre[y, at % n_features]:
                            out[i + r, y] += miss[y, at % n_features]
        for r in range(min(4, n - i) if columns.shape[0] else 0):
            bits = X[i + r].view(np.uint64)
            for j in columns:
                x = X[i + r, j]
                if x == x:
                    slot = find_slot(x, bits[j], keys, start[j], start[j + 1] - 1)
                    for y in range(n_classes):
                        out[i + r, y] += table[slot, y]


class ClassLikelihoods:
    """Class-conditional likelihoods of every feature, over all rows or a sliding window.

    Parameters
    ----------
    n_features, n_classes : int
    window : int, optional
        Number of most recent rows that count; None: all.
    categorical : sequence of int, default=()
        Columns whose values are categories: any finite numbers.

    Attributes
    ----------
    n_rows : ndarray of shape (n_classes,), float64
        Number of rows of each class in the window.
    n, mean, m2 : ndarray of shape (n_classes, n_features), float64
        Number of observed values, their mean and the sum of their squared deviations from it.
    ready : bool
        Whether `joint` can be called: `prepare` was called after the last update.

    Examples
    --------
    >>> import numpy as np
    >>> likelihoods = ClassLikelihoods(2, 2, window=6, categorical=[1])
    >>> X = np.array([[9.0, 5], [1, 0], [2, 0], [3, 0], [1, 1], [2, 1], [3, 1]])
    >>> likelihoods.update(X, np.array([0, 0, 0, 0, 1, 1, 1]))
    >>> likelihoods.mean[:, 0], likelihoods.n_rows
    (array([2., 2.]), array([3., 3.]))

    In the last six rows the number is not informative; the category is four times as likely in its own class:

    >>> likelihoods.prepare(np.ones(2))
    >>> np.exp(np.diff(likelihoods.joint(np.array([[2.5, 1.0]])))).round(12)
    array([[4.]])
    """

    def __init__(
        self, n_features: int, n_classes: int, window: int | None = None, categorical: Any = ()
    ) -> None:
        self.n_rows = np.zeros(n_classes)
        shape = n_classes, n_features
        self.n, self.mean, self.m2 = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._rows, self._row_codes = np.zeros((window or 0, n_features)), np.zeros(window or 0, np.int64)
        self._clock = np.zeros(1, np.int64)
        self._columns = np.asarray(categorical, dtype=np.int64)
        self._n_categorical = len(self._columns)
        self._is_number = np.ones(n_features, dtype=bool)
        self._is_number[self._columns] = False
        self._build_tables(np.where(self._is_number, 0, n_slots_for(2)))

    @functools.cached_property
    def _constants(self) -> _Constants | None:
        """What `prepare` computes until the next change."""
        return None

    def _build_tables(self, sizes: Array) -> None:
        """Allocate an empty table for each categorical column."""
        self._start: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._keys = np.full(self._start[-1], np.nan)
        self._counts = np.zeros((self._start[-1], len(self.n_rows)))
        self._used = np.zeros(len(sizes), np.int64)

    def check_state(self) -> None:
        """Reject invalid tables of categories, and those too full for lookups.

        Raises
        ------
        StateError
            If a table is invalid.
        """
        start, sizes, free = self._start, np.diff(self._start), np.isnan(self._keys)
        room, taken = sizes[self._columns] - 1, sizes - np.add.reduceat(np.append(free, 0), start[:-1])
        fits = (
            start[0] == 0
            and start[-1] == len(self._keys)
            and np.array_equal(self._columns, np.flatnonzero(~self._is_number))
            and (sizes[self._is_number] == 0).all()
            and ((room >= 4) & (room & (room - 1) == 0) & (taken[self._columns] < room)).all()
        )
        if not fits:
            raise StateError(
                "The categories of a ClassLikelihoods fit no columns: the model was changed from outside, so fit it"
                " again or load it from where it was saved."
            )

    def update(self, X: Array, codes: Array) -> None:
        """Update with rows, oldest first; the state does not depend on the batch size.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
            NaN is missing; absolute values are at most 1e150, so that squares are finite.
        codes : ndarray of shape (n_rows,), int64
        """
        if len(self._columns):
            self._make_room(X)
        learn_rows(
            X, codes, self._rows, self._row_codes, self._clock, self.n_rows, self.n, self.mean, self.m2,
            self._columns, self._start, self._keys, self._counts,
        )  # fmt: skip
        self._constants = None

    def _make_room(self, X: Array) -> None:
        """Give each new category a slot. Slots of categories no longer in the window are freed first if needed."""
        short = np.zeros(len(self._is_number), dtype=bool)
        insert(X, self._columns, self._start, self._keys, self._used, short)
        if not short.any():
            return
        self._keys[~self._counts.any(axis=1)] = np.nan
        sizes = np.diff(self._start)
        crowded = short & (8 * self._n_categories() > 3 * (sizes - 1))
        while True:
            sizes = np.where(crowded, 2 * sizes - 1, sizes)
            self._resize_tables(sizes)
            crowded = np.zeros_like(short)
            insert(X, self._columns, self._start, self._keys, self._used, crowded)
            if not crowded.any():
                return

    def _resize_tables(self, sizes: Array) -> None:
        start, keys, counts = self._start, self._keys, self._counts
        self._build_tables(sizes)
        move_tables(start, keys, counts, self._start, self._keys, self._counts)
        self._used = self._n_categories()

    def _n_categories(self) -> Ints:
        """Return the number of occupied slots of each table."""
        occupied = np.concatenate([[0], np.cumsum(~np.isnan(self._keys))])
        return occupied[self._start[1:]] - occupied[self._start[:-1]]

    def select(self, columns: NDArray[np.intp]) -> ClassLikelihoods:
        """Return the likelihoods of a subset of the features; the result must not be updated.

        Parameters
        ----------
        columns : ndarray of int
            Ascending.
        """
        view = object.__new__(type(self))
        vars(view).update(vars(self))  # `copy` would double the time of this method
        view.n, view.mean, view.m2 = (part.take(columns, axis=1) for part in (self.n, self.mean, self.m2))
        view._rows, view._row_codes = np.empty((0, len(columns))), self._row_codes[:0]
        view._is_number, view._used = self._is_number[columns], self._used[columns]
        view._start = self._start[: len(columns) + 1]  # all 0 without categorical columns
        if len(self._columns):
            view._columns = np.flatnonzero(~view._is_number)
            view._n_categorical = len(view._columns)
            sizes = np.diff(self._start)
            view._start = np.concatenate([[0], np.cumsum(sizes[columns])])
            kept = np.repeat(np.isin(np.arange(len(sizes)), columns), sizes)
            view._keys, view._counts = self._keys[kept], self._counts[kept]
        view._constants = None
        return view

    @property
    def ready(self) -> bool:
        """Whether `joint` can be called."""
        return self._constants is not None

    def prepare(self, exponents: Array) -> None:
        """Precompute the parts of the log-likelihoods that do not depend on the row.

        Parameters
        ----------
        exponents : ndarray of shape (n_features,), float64, not negative
            e of (3); 0 ignores a feature.
        """
        constants = _prepare(self.n_rows, self.n, self.mean, self.m2, exponents, self._is_number)
        table = np.zeros_like(self._counts)
        if len(self._columns):
            _category_log_shares(
                self.n, exponents, self._columns, self._start, self._keys, self._counts, table
            )
        self._constants = *constants, table

    def joint(self, X: Array) -> Floats:
        """Return (3) for each class: the logarithm of its probability together with the row.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            The values of a row do not depend on the other rows.
        """
        if self._constants is None:
            raise ValueError("The likelihoods have changed: call prepare first.")
        log_joint = np.empty((len(X), len(self.n_rows)))
        _joint(X, *self._constants, self._columns, self._start, self._keys, log_joint)
        return log_joint
