"""Classes in the order of their appearance: a method that opens a model for each learns in stretches between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from tamis._check import Array

__all__ = ["slots_of", "stretches"]


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
