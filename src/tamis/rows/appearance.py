"""Classes in the order of their appearance: a method that opens a model for each learns in stretches between them."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from tamis._check import Array, Rows
from tamis.base import RowSelector

__all__ = ["ByAppearance", "slots_of", "stretches"]


class ByAppearance(RowSelector):
    """A selector that opens a model for a class when its first row comes. A subclass writes two hooks."""

    _order: Array  # codes of the classes in order of appearance

    _equals_rows = "exactly"
    _linear_in_stored_values = True

    @abstractmethod
    def _open_class(self, code: int) -> None:
        """Add a class to `_order`, and make its model."""

    @abstractmethod
    def _learn_stretch(
        self, data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, weights: Array
    ) -> None:
        """Learn rows of known classes, each the cells of `data` between two places of `indptr`.

        `indices` are their columns, empty where rows are dense; `slots` are the places of their classes in `_order`.
        """

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        n_rows, n_features = X.shape
        dense = not sp.issparse(X)
        if dense:
            data, indptr, indices = X.reshape(-1), np.arange(n_rows + 1) * n_features, np.empty(0, np.int32)
        else:
            data, indptr, indices = X.data, X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False)
        weights = np.ones(n_rows) if sample_weight is None else sample_weight
        for is_new, start, stop in stretches(y, self._order, self.classes_.shape[0]):
            if is_new:
                self._open_class(int(y[start]))
            slots = slots_of(self._order, self.classes_.shape[0])[y[start:stop]]
            self._learn_stretch(data, indptr[start : stop + 1], indices, dense, slots, weights[start:stop])


def stretches(y: Array, order: Array, n_classes: int) -> Iterator[tuple[bool, int, int]]:
    """Cut a batch where a class appears that was not seen before.

    Parameters
    ----------
    y : ndarray of shape (n_rows,), int64
        Class codes.
    order : ndarray of shape (n_seen,), int64
        Codes of the classes seen so far.
    n_classes : int
        Classes known, seen or not.

    Yields
    ------
    (is_new, start, stop)
        Rows `start` to `stop`; `is_new` says that the first of them is of a new class.

    Examples
    --------
    >>> list(stretches(np.array([0, 0, 2, 0, 1]), np.array([0]), 3))
    [(False, 0, 2), (True, 2, 4), (True, 4, 5)]
    """
    opened: set[int] = set()
    if order.shape[0] < n_classes:
        codes, first = np.unique(y, return_index=True)
        opened = set(first[~np.isin(codes, order)].tolist())
    for start, stop in itertools.pairwise(sorted({0, *opened, y.shape[0]})):
        yield start in opened, start, stop


def slots_of(order: Array, n_classes: int) -> Array:
    """Return at which place of `order` each class code stands, shape (n_classes,); 0 for those not seen.

    >>> slots_of(np.array([2, 0]), 3)
    array([1, 0, 0])
    """
    slots = np.zeros(n_classes, np.int64)
    slots[order] = np.arange(order.shape[0])
    return slots
