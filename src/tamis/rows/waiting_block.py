"""A buffer of rows for methods that process batches of fixed size.

Each row is copied at most twice, regardless of the batch size; and because the arrays do not grow, the check of their
shapes before each call (``tamis._shapes``) can be skipped.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import scipy.sparse as sp

from tamis._shapes import Shapes, SizedState, state_error
from tamis._validation import Array, Rows
from tamis.errors import StateError


class WaitingBlock(SizedState):
    """Up to `size` rows, with their targets and weights.

    Parameters
    ----------
    size : int
        Maximum number of rows.
    n_features : int

    Attributes
    ----------
    n_rows : int
        Number of buffered rows.
    X : ndarray of shape (size or 0, n_features), float64
        Dense rows; those from `n_rows` on are undefined.
    sparse : tuple of CSR matrices
        Sparse rows, unmodified.
    y, weight : ndarray of shape (size or 0,)

    Examples
    --------
    >>> block = WaitingBlock(3, 1)
    >>> one = block.with_rows(np.array([[5.0]]), np.array([0]), np.ones(1))
    >>> two = one.with_rows(np.array([[7.0]]), np.array([1]), np.ones(1))
    >>> two.rows()[0].tolist(), two.n_rows, one.n_rows, two.empty_copy().n_rows
    ([[5.0], [7.0]], 2, 1, 0)
    """

    def __init__(self, size: int, n_features: int) -> None:
        self.size, self.n_rows = size, 0
        self.X, self.sparse = np.zeros((0, n_features)), tuple[Rows, ...]()
        self.y, self.weight = np.zeros(0), np.zeros(0)

    _state_spec = Shapes("""
        size in [1, 2**31)
        n_rows in [0, size]
        X (*, j) finite fill 0
        sparse[] (*, j) finite fill 0
        y (z) labels
        weight (z) float in [0, inf)
    """)

    def check_state(self) -> None:
        """Raise if a loaded buffer has fewer rows than it declares, or rows with other columns.

        Raises
        ------
        StateError
            If so.
        """
        rows = sum(part.shape[0] for part in self.sparse)
        columns = {part.shape[1] for part in (*self.sparse, self.X)}
        if (
            len(columns) > 1
            or len(self.y) not in (0, self.size)
            or len(self.y) < self.n_rows
            or (self.sparse and rows != self.n_rows)
        ):
            raise self._state_error(rows)
        self._check_room()

    def with_rows(self, X: Rows, y: Array, weight: Array) -> Self:
        """Return the buffer with additional rows, at most as many as fit; this one is unchanged."""
        grown, end = copy.copy(self), self.n_rows + len(y)
        if not len(self.y):
            grown.y, grown.weight = np.zeros(self.size, y.dtype), np.zeros(self.size)
        if self.sparse or (sp.issparse(X) and not self.n_rows):
            grown.sparse = (*self.sparse, sp.csr_matrix(X, copy=True))
        else:
            if not self.n_rows and not len(self.X):
                grown.X = np.zeros((self.size, X.shape[1]))
            self._check_room()
            grown.X[self.n_rows : end] = X.toarray() if sp.issparse(X) else X
        grown.y[self.n_rows : end], grown.weight[self.n_rows : end] = y, weight
        grown.n_rows = end
        return grown

    def rows(self) -> tuple[Rows, Array, Array]:
        """Return copies of the rows, targets and weights."""
        some = slice(self.n_rows)
        self._check_room()
        X = sp.vstack(self.sparse, format="csr") if self.sparse else self.X[some].copy()
        return X, self.y[some].copy(), self.weight[some].copy()

    def _check_room(self) -> None:
        if not self.sparse and len(self.X) < self.n_rows:
            raise self._state_error(len(self.X))

    def _state_error(self, n_rows: int) -> StateError:
        return state_error(f"A block counts {self.n_rows} rows, but contains {n_rows}")

    def empty_copy(self) -> Self:
        """Return an empty buffer in separate memory; this one keeps its rows for a rollback."""
        return type(self)(self.size, self.X.shape[1])


def own(X: Rows, y: Array, weight: Array) -> tuple[Rows, Array, Array]:
    """Return copies of rows, targets and weights, in the format of a buffer."""
    rows = sp.csr_matrix(X, copy=True) if sp.issparse(X) else np.array(X, dtype=np.float64)
    return rows, y.copy(), weight.copy()


def concatenate(blocks: tuple[tuple[Rows, Array, Array], ...]) -> tuple[Rows, Array, Array]:
    """Return rows, targets and weights of all blocks; CSR rows if some are."""
    if len(blocks) == 1:
        return blocks[0]
    parts, targets, weights = zip(*blocks, strict=True)
    sparse = any(sp.issparse(part) for part in parts)
    X = sp.vstack(parts, format="csr") if sparse else np.concatenate(parts)
    return X, np.concatenate(targets), np.concatenate(weights)
