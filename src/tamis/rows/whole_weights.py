"""Weights where rows are counted one by one: a row of weight k counts k times."""

from __future__ import annotations

from tamis._check import Array, Rows, repeated_rows

__all__ = ["repeated"]


def repeated(X: Rows, y: Array, sample_weight: Array) -> tuple[Rows, Array]:
    """Return each row as often as its weight says.

    Raises
    ------
    DataError
        If a weight is not a whole number, or there are too many.

    Examples
    --------
    >>> import numpy as np
    >>> repeated(np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0]), np.array([2.0, 0.0, 1.0]))
    (array([[1.],
           [1.],
           [3.]]), array([0, 0, 0]))
    """
    at = repeated_rows(sample_weight)
    return X[at], y[at]
