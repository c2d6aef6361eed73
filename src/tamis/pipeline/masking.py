"""Zeros (or NaN) in place of unselected features, so that a learner's number of features is constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Mask, Rows
from tamis.pipeline.scaling import RunningScale, bounded

__all__ = ["Masker"]

_NOTHING = np.empty(0, np.intp)


@njit(strict=True)
def _fill(X: Any, mask: Any, left: Any, selected: Any, blank: float, masked: Any) -> None:
    # Touching only the selected columns is then faster than copying rows.
    few = 20 * selected.shape[0] < X.shape[1]
    for i in range(X.shape[0]):
        if few:
            for j in left:
                masked[i, j] = blank
            for j in selected:
                masked[i, j] = X[i, j]
        else:
            for j in range(X.shape[1]):
                masked[i, j] = X[i, j] if mask[j] else blank  # not a product, which would keep NaN


@njit(strict=True)
def _fill_scaled(
    X: Any, left: Any, selected: Any, shift: Any, factor: Any, blank: float, masked: Any
) -> None:
    for i in range(X.shape[0]):
        for j in left:
            masked[i, j] = blank
        for j in selected:
            masked[i, j] = bounded((X[i, j] - shift[j]) * factor[j])


class Masker:
    """Masks batches; dense ones share one buffer.

    Parameters
    ----------
    blank : float, default=0.0
        Value of unselected features in dense rows. In sparse rows they are not stored.

    Examples
    --------
    >>> mask = np.array([False, True])
    >>> Masker().mask(np.array([[1.0, 2.0], [3.0, 4.0]]), mask, np.flatnonzero(mask))
    array([[0., 2.],
           [0., 4.]])
    """

    _state_spec = Shapes("_masked (n, f)  _selected (s) in [0, max(f, 1))")

    def __init__(self, blank: float = 0.0) -> None:
        self.blank = blank
        self._masked: Array = np.empty((0, 0))  # the last batch, with zeros outside `_selected`
        self._selected = _NOTHING

    def __deepcopy__(self, memo: dict[int, Any]) -> Masker:
        return Masker(self.blank)  # the last batch is not needed

    def mask(
        self, X: Rows, mask: Mask, selected: NDArray[np.intp], scale: RunningScale | None = None
    ) -> Rows:
        """Return the rows with unselected features blank; dense rows are valid only until the next call.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
        mask : ndarray of shape (n_features,), bool
        selected : ndarray of shape (n_selected,), int
            Where the mask is true. Pass the same array as long as the mask does not change.
        scale : RunningScale, optional
            Applied to the selected features.
        """
        if sp.issparse(X):
            kept = _drop_stored(X, mask)
            return kept if scale is None else scale.transform(kept)
        X = X if scale is None else scale.encode(X)
        dtype = X.dtype if scale is None else np.dtype(np.float64)
        if self._masked.shape != X.shape or self._masked.dtype != dtype:
            self._masked, self._selected = np.full(X.shape, self.blank, dtype), selected
        left = _NOTHING if selected is self._selected else self._selected
        if scale is None:
            _fill(X, mask, left, selected, self.blank, self._masked)
        else:
            _fill_scaled(X, left, selected, scale.shift, scale.factor, self.blank, self._masked)
        self._selected = selected
        return self._masked


def _drop_stored(X: Rows, mask: Mask) -> Rows:
    kept = mask[X.indices]
    before = np.zeros(len(kept) + 1, dtype=X.indptr.dtype)  # number of kept values before each
    np.cumsum(kept, out=before[1:])
    return type(X)((X.data[kept], X.indices[kept], before[X.indptr]), shape=X.shape)
