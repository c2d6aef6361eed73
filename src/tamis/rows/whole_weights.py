"""Weights where rows are counted one by one: a row counts so many times."""

from __future__ import annotations

import numpy as np

from tamis._check import Array, Rows
from tamis.errors import DataError

__all__ = ["repeated"]


def repeated(X: Rows, y: Array, sample_weight: Array) -> tuple[Rows, Array]:
    """Return each row as often as its weight says.

    Raises
    ------
    DataError
        If a weight is not a whole number.

    Examples
    --------
    >>> repeated(np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0]), np.array([2.0, 0.0, 1.0]))
    (array([[1.],
           [1.],
           [3.]]), array([0, 0, 0]))
    """
    times = np.rint(sample_weight).astype(np.int64)
    if (times != sample_weight).any():
        wrong = sample_weight[times != sample_weight][0]
        raise DataError(f"sample_weight holds {wrong:g}, but rows are counted: give whole numbers.")
    at = np.repeat(np.arange(len(y)), times)
    return X[at], y[at]
