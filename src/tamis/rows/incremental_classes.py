"""Selectors with one model per class, added when the first row of the class arrives."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array, Rows
from tamis.base import RowSelector
from tamis.base.declarations import Claims


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
