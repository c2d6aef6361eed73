"""Selectors with one model per class, added when the first row of the class arrives.

Selectors that train one weight vector for two classes, and one per class for more.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Rows, reject_nonfinite, validated
from tamis.base import Claims, RowSelector
from tamis.base.rows import feature_names


class IncrementalClasses(RowSelector):
    """A selector that adds a model for a class when its first row arrives. A subclass implements two hooks."""

    _shapes = "_order (o) int64 in [0, len(classes_)) distinct  classes_ (>o) labels"
    _order: Array  # codes of the classes in order of appearance

    claims = Claims(equals_rows="exactly", sparse_time=True)

    @abstractmethod
    def _add_class(self, code: int) -> None:
        """Add a class to `_order`, and create its model."""

    @abstractmethod
    def _learn_known_classes(
        self, data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, weights: Array
    ) -> None:
        """Learn rows of known classes, each given by the cells of `data` between two positions of `indptr`.

        `indices` are their columns, empty for dense rows; `slots` are the positions of their classes in `_order`.
        """

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        n_rows, n_features = X.shape
        dense = not sp.issparse(X)
        if dense:
            data, indptr, indices = X.reshape(-1), np.arange(n_rows + 1) * n_features, np.empty(0, np.int32)
        else:
            data, indptr, indices = X.data, X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False)
        weights = np.ones(n_rows) if sample_weight is None else sample_weight
        for is_new, start, stop in split_at_new_classes(y, self._order, self.classes_.shape[0]):
            if is_new:
                self._add_class(int(y[start]))
            slots = class_positions(self._order, self.classes_.shape[0])[y[start:stop]]
            self._learn_known_classes(
                data, indptr[start : stop + 1], indices, dense, slots, weights[start:stop]
            )


def split_at_new_classes(y: Array, order: Array, n_classes: int) -> Iterator[tuple[bool, int, int]]:
    """Split a batch before the first row of each new class.

    Parameters
    ----------
    y : ndarray of shape (n_rows,), int64
        Class codes.
    order : ndarray of shape (n_seen,), int64
        Codes of the classes seen so far.
    n_classes : int
        Number of classes declared or seen.

    Yields
    ------
    (is_new, start, stop)
        Rows `start` to `stop`; `is_new` indicates that the first of them belongs to a new class.

    Examples
    --------
    >>> list(split_at_new_classes(np.array([0, 0, 2, 0, 1]), np.array([0]), 3))
    [(False, 0, 2), (True, 2, 4), (True, 4, 5)]
    """
    opened: set[int] = set()
    if order.shape[0] < n_classes:
        codes, first = np.unique(y, return_index=True)
        opened = set(first[~np.isin(codes, order)].tolist())
    for start, stop in itertools.pairwise(sorted({0, *opened, y.shape[0]})):
        yield start in opened, start, stop


def class_positions(order: Array, n_classes: int) -> Array:
    """Return the position of each class code in `order`, shape (n_classes,); 0 for unseen classes.

    >>> class_positions(np.array([2, 0]), 3)
    array([1, 0, 0])
    """
    slots = np.zeros(n_classes, np.int64)
    slots[order] = np.arange(order.shape[0])
    return slots


_NOISE = 1e-12  # relative; values that differ by less are the same constant


@njit(strict=True)
def row_margin(
    weights: Array, columns: Array, cells: Array, wide: bool, slot: int
) -> tuple[float, int, int, float]:
    """Return y w.x, the vector that takes the step, that of the opposite step (-1: none), and the scale of the step.

    The cells of a wide row are indexed by column, those of other rows are aligned with `columns`.
    """
    ahead, best, rival = 0.0, -math.inf, -1
    for c in range(weights.shape[0]):
        score = 0.0
        for i in range(columns.shape[0]):
            score += weights[c, columns[i]] * cells[columns[i] if wide else i]
        if c == slot or weights.shape[0] == 1:
            ahead = score
        elif score > best:
            best, rival = score, c
    if weights.shape[0] == 1:
        y = 1.0 if slot == 0 else -1.0
        return y * ahead, 0, -1, y
    return ahead - best, slot, rival, 0.5


class LinearClasses(IncrementalClasses):
    """A selector with a linear classifier: w for two classes; from the third on w / 2, -w / 2 and one from 0.

    `_weights` of shape (1, n_features) or (n_classes, n_features) are in the order in which the classes appeared.

    A model without an intercept would use a constant feature as one. From the second row on, a feature that has had the
    same value in all rows therefore counts as 0, until it varies.
    """

    _shapes = "_constant (k) int32 in [0, j)  _value (k) float in (-inf, inf)  _n_counted in [0, 2]"
    _weights: Array
    _constant: Array  # features not 0 that have been constant so far, ascending
    _value: Array  # and their values
    _n_counted: int  # rows of positive weight, at most 2

    def _start(self, n_features: int) -> None:
        self._constant, self._value, self._n_counted = np.empty(0, np.int32), np.empty(0), 0

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        start, n = 0, len(y)
        counted = np.arange(n) if sample_weight is None else np.flatnonzero(sample_weight)
        is_first = self._n_counted < 2 and self._claims().ignores_constants
        for at in counted[: 2 - self._n_counted].tolist() if is_first else []:
            part = slice(start, at + 1)
            self._learn_varying(X[part], y[part], None if sample_weight is None else sample_weight[part])
            if self._n_counted == 0:
                row = X[[at]].toarray()[0] if sp.issparse(X) else X[at]
                self._constant = np.flatnonzero(row).astype(np.int32)
                self._value = row[self._constant].astype(np.float64)
            self._n_counted, start = self._n_counted + 1, at + 1
        if start < n:
            self._learn_varying(
                X[start:], y[start:], None if sample_weight is None else sample_weight[start:]
            )

    def _learn_varying(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        """Learn rows in which constant features count as 0."""
        if len(self._constant):
            X = self._without_constants(X, sample_weight)
            if self._n_counted == 1:
                constant, value = self._constant, self._value
                self._forget_columns(constant)
                self._constant, self._value = constant, value
        super()._learn(X, y, sample_weight)

    def _forget_columns(self, columns: Indices) -> None:
        super()._forget_columns(columns)
        kept = ~np.isin(self._constant, columns)
        self._constant, self._value = self._constant[kept], self._value[kept]

    def _merge_constants(self, other: LinearClasses) -> None:
        """Keep the features that are the same constant in the rows of both."""
        _, mine, theirs = np.intersect1d(
            self._constant, other._constant, assume_unique=True, return_indices=True
        )
        same = np.abs(self._value[mine] - other._value[theirs]) <= _NOISE * np.abs(self._value[mine])
        self._constant, self._value = self._constant[mine[same]], self._value[mine[same]]
        self._n_counted = min(self._n_counted + other._n_counted, 2)

    def _without_constants(self, X: Rows, sample_weight: Array | None) -> Rows:
        """Return rows with 0 for the features that have been constant up to that row."""
        columns, is_sparse = self._constant, sp.issparse(X)
        cells = X[:, columns].toarray() if is_sparse else X[:, columns]
        differs = np.abs(cells - self._value) > _NOISE * np.abs(self._value)
        if sample_weight is not None:
            differs &= (sample_weight > 0.0)[:, None]
        varies = np.logical_or.accumulate(differs, axis=0)
        X = X.copy()
        if is_sparse:
            place = np.full(X.shape[1], -1)
            place[columns] = np.arange(len(columns))
            row, at = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), place[X.indices]
            X.data[(at >= 0) & ~varies[row, at]] = 0.0
        else:
            X[:, columns] = np.where(varies, cells, 0.0)
        self._constant, self._value = columns[~varies[-1]], self._value[~varies[-1]]
        return X

    def _add_class(self, code: int) -> None:
        self._order = np.append(self._order, code)
        if self._order.shape[0] == 3:
            self._weights = np.vstack((0.5 * self._weights, -0.5 * self._weights))
        if self._order.shape[0] >= 3:
            self._weights = np.vstack((self._weights, np.zeros_like(self._weights[:1])))

    def _coefficients(self) -> Array:
        """Return the weights in the form used for predictions."""
        return self._weights

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the classifier, which uses the selected features only.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            With up to two classes, positive means ``classes_[1]``. With three or more there is one column per class,
            and the largest wins; a class that was declared but never seen gets -inf.
        """
        check_is_fitted(self)
        X = validated(self, X)
        reject_nonfinite(X, feature_names(self))
        scores = X @ self._coefficients().T
        n_classes = self.classes_.shape[0]
        if n_classes <= 2:
            return np.asarray(scores[:, 0] if self._order[0] == 1 else -scores[:, 0])
        if self._weights.shape[0] == 1:
            scores = np.hstack((0.5 * scores, -0.5 * scores))[:, : self._order.shape[0]]
        columns = np.full((X.shape[0], n_classes), -np.inf)
        columns[:, self._order] = scores
        return columns

    def predict(self, X: Any) -> Array:
        """Return the class with the largest score for each row, shape (n_rows,)."""
        scores = self.decision_function(X)
        last = self.classes_.shape[0] - 1
        winner = scores.argmax(axis=1) if scores.ndim == 2 else np.minimum(scores > 0, last)
        return self.classes_[winner]
