"""Zeros in place of the columns that are not selected, so that a learner keeps its width."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._jit import njit

__all__ = ["Masker"]

_NOTHING = np.empty(0, np.intp)


@njit(strict=True)
def _fill(X: Any, mask: Any, left: Any, selected: Any, masked: Any) -> None:
    few = (
        20 * selected.shape[0] < X.shape[1]
    )  # then touching only their columns is quicker than reading the rows
    for i in range(X.shape[0]):
        if few:
            for j in left:
                masked[i, j] = 0.0
            for j in selected:
                masked[i, j] = X[i, j]
        else:
            for j in range(X.shape[1]):
                masked[i, j] = X[i, j] if mask[j] else 0.0  # not a product, which would keep NaN


class Masker:
    """Masks batches, dense ones in one array that is used again and again.

    Examples
    --------
    >>> mask = np.array([False, True])
    >>> Masker().mask(np.array([[1.0, 2.0], [3.0, 4.0]]), mask, np.flatnonzero(mask))
    array([[0., 2.],
           [0., 4.]])
    """

    def __init__(self) -> None:
        self._masked: Array = np.empty((0, 0))  # the last batch, with zeros outside `_selected`
        self._selected = _NOTHING

    def mask(self, X: Rows, mask: NDArray[np.bool_], selected: NDArray[np.intp]) -> Rows:
        """Return the rows with zeros in the columns that are not selected; dense ones only until the next call.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
        mask : ndarray of shape (n_features,), bool
        selected : ndarray of shape (n_selected,), int
            Where the mask is true; the same array as long as it is the same mask.
        """
        if sp.issparse(X):
            return _drop_stored(X, mask)
        if self._masked.shape != X.shape or self._masked.dtype != X.dtype:
            self._masked, self._selected = np.zeros_like(X), selected
        left = _NOTHING if selected is self._selected else self._selected
        _fill(X, mask, left, selected, self._masked)
        self._selected = selected
        return self._masked


def _drop_stored(X: Rows, mask: NDArray[np.bool_]) -> Rows:
    kept = mask[X.indices]
    before = np.zeros(len(kept) + 1, dtype=X.indptr.dtype)  # how many cells are kept before each
    np.cumsum(kept, out=before[1:])
    return type(X)((X.data[kept], X.indices[kept], before[X.indptr]), shape=X.shape)
