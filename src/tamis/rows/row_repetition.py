"""Integer sample weights for methods that count rows: a row of weight k is repeated k times."""

from __future__ import annotations

from tamis._validation import Array, Rows, repeated_rows


def repeat_rows(X: Rows, y: Array, sample_weight: Array) -> tuple[Rows, Array]:
    """Return the rows, each repeated by its weight.

    Raises
    ------
    DataError
        If a weight is not an integer, or the repeated rows are too many.

    Examples
    --------
    >>> import numpy as np
    >>> repeat_rows(np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0]), np.array([2.0, 0.0, 1.0]))
    (array([[1.],
           [1.],
           [3.]]), array([0, 0, 0]))
    """
    at = repeated_rows(sample_weight)
    return X[at], y[at]
