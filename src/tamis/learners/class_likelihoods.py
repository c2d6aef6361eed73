"""How likely the values of a row are in each class: Gaussians of numbers, shares of categories, over the last rows.

For feature j and class c, with n values, their mean and m2 (the sum of squared deviations from it) of the rows that
count, and with n_x of them in category x, of which the feature has m::

    P[x|c] = exp(-(x - mean)^2 / (2 s^2)) / (s sqrt(2 pi)),    s^2 = m2 / (n - 1)            (1)
    P[x|c] = (n_x + 1) / (n + m)                                                             (2)
    log P[c] + sum_j e_j log P[x_j|c]                                                        (3)

Missing values (NaN) are left out of all of them. A row that leaves the window is taken out of n, mean and m2 by
Welford's recurrence backwards; wherever that takes away all but a billionth of m2, and every `window` rows everywhere,
they are counted again from the window: rounding does not pile up, and a feature that has become constant has m2 = 0.

Where (1) does not say what to do, with S^2 the variance of the feature over all classes:

* A feature that has had one value only, in all classes, tells nothing: it is left out, as columns that a selector
  did not select are.
* s is at least 1e-9 S.
* A class with one value of a feature has mean that value and s = S; one with none has the mean of all classes and S.
* A class with two values or more, all the same, has P = (n + 1) / (n + 2) at that value and 1 / (n + 2) elsewhere, both
  in units of S, as (2) would say of a category and all others. So multiplying a feature by a constant changes nothing.
* A class without rows has P[c] = 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis._jit import njit
from tamis.errors import StateError
from tamis.learners.class_counts import learn_rows, move_tables
from tamis.summaries.categories import find_slot, insert, room_for

__all__ = ["ClassLikelihoods"]

_LEAST = 1e-18  # of a variance, in that of all classes
_ROCK_BOTTOM = 1e300  # minus the lowest log-likelihood
_LOG_2PI = math.log(2.0 * math.pi)
_Constants = tuple[Array, Array, Array, Array, Array, Array, Array, Array]


@njit(strict=True)
def _gaussians(
    n: Array, mean: Array, m2: Array, exponents: Array, is_number: Array,
    centre: Array, pull: Array, level: Array, miss: Array,
) -> None:  # fmt: skip
    """Write e log P[x] = level - pull (x - centre)^2; in a constant class `miss` is added where x is not centre."""
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
            variance = max(m2[c, j] / (k - 1.0), _LEAST * spread) if k > 1.0 else spread
            pull[c, j] = 0.5 * e / variance
            level[c, j] = -0.5 * e * (_LOG_2PI + math.log(variance))


@njit(strict=True)
def _shares(
    n: Array, exponents: Array, columns: Array, start: Array, keys: Array, counts: Array, table: Array
) -> None:
    """Write e log P[x] of each category, and of one that is not in the table in its free slots; 0 for the missing."""
    n_classes = n.shape[0]
    for j in columns:
        values = 0.0
        for slot in range(start[j], start[j + 1] - 1):
            found = False
            for c in range(n_classes):
                found |= counts[slot, c] > 0.0
            values += found
        values = max(values, 1.0)
        for c in range(n_classes):
            total = exponents[j] * math.log(n[c, j] + values)
            for slot in range(start[j], start[j + 1] - 1):
                k = counts[slot, c]
                table[slot, c] = (exponents[j] * math.log(k + 1.0) if k > 0.0 else 0.0) - total


@njit(strict=True)
def _priors(n_rows: Array, level: Array, prior: Array, base: Array) -> None:
    """Write log P[c], and its sum with all levels."""
    total = n_rows.sum()
    for c in range(n_rows.shape[0]):
        prior[c] = math.log(n_rows[c] / total) if n_rows[c] > 0.0 else -np.inf
        base[c] = prior[c] + level[c].sum()


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
def _carefully(x: Array, centre: Array, pull: Array, level: Array, miss: Array) -> float:
    """Return a row's sum over the features that it has, whatever their size."""
    total = 0.0
    for j in range(x.shape[0]):
        if x[j] != x[j]:
            continue
        total += level[j]
        if x[j] != centre[j]:
            total += miss[j]
            if pull[j] > 0.0:
                total -= min(pull[j] * (x[j] - centre[j]) ** 2, _ROCK_BOTTOM)
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
                if four[r] < _ROCK_BOTTOM:
                    out[i + r, y] = base[y] - four[r]
                else:  # NaN, or too large
                    out[i + r, y] = prior[y] + _carefully(X[i + r], centre[y], pull[y], level[y], miss[y])
            if four[0] + four[1] + four[2] + four[3] < _ROCK_BOTTOM and missed.shape[0] == 0:
                continue
            for r in range(min(4, n - i)):
                if four[r] < _ROCK_BOTTOM:
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
    """Class-conditional likelihoods of every feature, over all rows or the last ones.

    Parameters
    ----------
    n_features, n_classes : int
    window : int, optional
        Rows that count; None: all.
    categorical : sequence of int, default=()
        Columns whose values are categories: any finite numbers.

    Attributes
    ----------
    n_rows : ndarray of shape (n_classes,), float64
        Rows of each class that count.
    n, mean, m2 : ndarray of shape (n_classes, n_features), float64
        Values that are there, their mean and the sum of their squared deviations from it.
    ready : bool
        Whether `joint` can be asked for, which it can not after a change, before `prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> likelihoods = ClassLikelihoods(2, 2, window=6, categorical=[1])
    >>> X = np.array([[9.0, 5], [1, 0], [2, 0], [3, 0], [1, 1], [2, 1], [3, 1]])
    >>> likelihoods.update(X, np.array([0, 0, 0, 0, 1, 1, 1]))
    >>> likelihoods.mean[:, 0], likelihoods.n_rows
    (array([2., 2.]), array([3., 3.]))

    In the last six rows the number says nothing; the category is four times likelier in its own class:

    >>> likelihoods.prepare(np.ones(2))
    >>> np.exp(np.diff(likelihoods.joint(np.array([[2.5, 1.0]])))).round(12)
    array([[4.]])
    """

    def __init__(
        self, n_features: int, n_classes: int, window: int | None = None, categorical: Any = ()
    ) -> None:
        self.n_rows = np.zeros(n_classes)
        self.n, self.mean, self.m2 = (np.zeros((n_classes, n_features)) for _ in range(3))
        self._rows, self._row_codes = np.zeros((window or 0, n_features)), np.zeros(window or 0, np.int64)
        self._clock = np.zeros(1, np.int64)
        self._columns = np.asarray(categorical, dtype=np.int64)
        self._n_categorical = len(self._columns)
        self._is_number = np.ones(n_features, dtype=bool)
        self._is_number[self._columns] = False
        self._build_tables(np.where(self._is_number, 0, room_for(2)))
        self._constants: _Constants | None = None

    def _build_tables(self, sizes: Array) -> None:
        """Lay out an empty table for each column of categories."""
        self._start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._keys = np.full(self._start[-1], np.nan)
        self._counts = np.zeros((self._start[-1], len(self.n_rows)))
        self._used = np.zeros(len(sizes), np.int64)

    def check_state(self) -> None:
        """Reject tables of categories that are none, or too full to be searched.

        Raises
        ------
        StateError
            If there is one.
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

    def grow(self, n_classes: int) -> None:
        """Make room for new classes, with codes after the old ones."""
        more = n_classes - len(self.n_rows)
        self.n_rows = np.pad(self.n_rows, (0, more))
        self.n, self.mean, self.m2 = (
            np.pad(part, ((0, more), (0, 0))) for part in (self.n, self.mean, self.m2)
        )
        self._counts = np.pad(self._counts, ((0, 0), (0, more)))
        self._constants = None

    def update(self, X: Array, codes: Array) -> None:
        """Take in rows, oldest first; the state is the same however they are cut into batches.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
            NaN is missing; no value beyond 1e150, whose square is a number.
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
        """Give each new category a slot. Where they are short, those that no row holds give up theirs first."""
        short = np.zeros(len(self._is_number), dtype=bool)
        insert(X, self._columns, self._start, self._keys, self._used, short)
        if not short.any():
            return
        self._keys[~self._counts.any(axis=1)] = np.nan
        sizes = np.diff(self._start)
        crowded = short & (8 * self._n_categories() > 3 * (sizes - 1))
        while True:
            sizes = np.where(crowded, 2 * sizes - 1, sizes)
            self._rehouse(sizes)
            crowded = np.zeros_like(short)
            insert(X, self._columns, self._start, self._keys, self._used, crowded)
            if not crowded.any():
                return

    def _rehouse(self, sizes: Array) -> None:
        start, keys, counts = self._start, self._keys, self._counts
        self._build_tables(sizes)
        move_tables(start, keys, counts, self._start, self._keys, self._counts)
        self._used = self._n_categories()

    def _n_categories(self) -> NDArray[np.int64]:
        """Return how many slots of each table are taken."""
        taken = np.concatenate([[0], np.cumsum(~np.isnan(self._keys))])
        found: NDArray[np.int64] = taken[self._start[1:]] - taken[self._start[:-1]]
        return found

    def of(self, columns: NDArray[np.intp]) -> ClassLikelihoods:
        """Return the likelihoods of some features alone; no rows must be given to it.

        Parameters
        ----------
        columns : ndarray of int
            Ascending.
        """
        found = object.__new__(type(self))
        vars(found).update(vars(self))  # `copy` takes as long as all that follows
        found.n, found.mean, found.m2 = (part.take(columns, axis=1) for part in (self.n, self.mean, self.m2))
        found._rows, found._row_codes = np.empty((0, len(columns))), self._row_codes[:0]
        found._is_number, found._used = self._is_number[columns], self._used[columns]
        found._start = self._start[: len(columns) + 1]  # all 0 where no column holds categories
        if len(self._columns):
            found._columns = np.flatnonzero(~found._is_number)
            found._n_categorical = len(found._columns)
            sizes = np.diff(self._start)
            found._start = np.concatenate([[0], np.cumsum(sizes[columns])])
            kept = np.repeat(np.isin(np.arange(len(sizes)), columns), sizes)
            found._keys, found._counts = self._keys[kept], self._counts[kept]
        found._constants = None
        return found

    @property
    def ready(self) -> bool:
        """Whether `joint` can be asked for."""
        return self._constants is not None

    def prepare(self, exponents: Array) -> None:
        """Work out what the classes' log-likelihoods are made of, all that does not depend on the row asked about.

        Parameters
        ----------
        exponents : ndarray of shape (n_features,), float64, not negative
            e of (3); 0 leaves a feature out.
        """
        centre, pull, level, miss = np.zeros((4, *self.mean.shape))
        _gaussians(self.n, self.mean, self.m2, exponents, self._is_number, centre, pull, level, miss)
        table = np.zeros_like(self._counts)
        if len(self._columns):
            _shares(self.n, exponents, self._columns, self._start, self._keys, self._counts, table)
        prior, base = np.empty((2, len(self.n_rows)))
        _priors(self.n_rows, level, prior, base)
        self._constants = prior, centre, pull, level, miss, base, np.flatnonzero(miss), table

    def joint(self, X: Array) -> NDArray[np.float64]:
        """Return (3) for each class: the logarithm of its probability together with the row.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            The same for a row whatever the rows beside it.
        """
        if self._constants is None:
            raise ValueError("The likelihoods have changed: call prepare first.")
        found = np.empty((len(X), len(self.n_rows)))
        _joint(X, *self._constants, self._columns, self._start, self._keys, found)
        return found
