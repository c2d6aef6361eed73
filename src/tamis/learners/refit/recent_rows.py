"""The last rows of a stream, in immutable blocks shared by the copies of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tamis._shapes import state_error
from tamis._validation import Array, Rows

# Minimum rows per block: 10,000 single rows are 156 arrays to concatenate, not 10,000.
_MIN_BLOCK = 64


class Block(NamedTuple):
    """Consecutive rows, with their codes or targets, and their weights (None: 1 each)."""

    X: Rows
    y: Array
    weights: Array | None


class RecentRows:
    """The last rows; immutable: adding rows returns another object that shares the blocks.

    Parameters
    ----------
    blocks, tail : tuple of tuples (X, y, weights)
        In order of arrival; the blocks of the tail are small and are merged later.
    n_rows : int
        Number of last rows that count.

    Examples
    --------
    >>> rows = RecentRows()
    >>> for at in range(5):
    ...     rows = rows.with_rows(Block(np.array([[float(at)]]), np.array([at]), None), max_rows=3)
    >>> rows.concatenate().y.tolist()
    [2, 3, 4]
    """

    def __init__(
        self,
        blocks: tuple[tuple[Rows, Array, Array | None], ...] = (),
        tail: tuple[tuple[Rows, Array, Array | None], ...] = (),
        n_rows: int = 0,
    ) -> None:
        self.blocks, self.tail, self.n_rows = blocks, tail, n_rows

    def __deepcopy__(self, memo: dict[int, Any]) -> RecentRows:
        return self

    def with_rows(self, block: Block, max_rows: int) -> RecentRows:
        """Return the last `max_rows` rows after appending a block, which must not be written to later.

        Fewer than `max_rows` rows, one block and 64 rows are stored.
        """
        n_new = len(block.y)
        blocks, tail = self.blocks, (*self.tail, tuple(block))
        n_rows = min(self.n_rows + n_new, max_rows)
        if n_new >= _MIN_BLOCK or len(tail) >= _MIN_BLOCK or sum(len(y) for _, y, _ in tail) >= _MIN_BLOCK:
            blocks, tail = (*blocks, tuple(_join(tail))), ()
            first, n_held = 0, sum(len(y) for _, y, _ in blocks)
            while n_held - len(blocks[first][1]) >= n_rows:
                n_held -= len(blocks[first][1])
                first += 1
            blocks = blocks[first:]
        return RecentRows(blocks, tail, n_rows)

    def changed(self, change: Callable[[Rows], Rows]) -> RecentRows:
        """Return the rows with other columns."""
        blocks, tail = (
            tuple((change(X), y, weights) for X, y, weights in part) for part in (self.blocks, self.tail)
        )
        return RecentRows(blocks, tail, self.n_rows)

    def last(self, n_rows: int) -> RecentRows:
        """Return the last `n_rows` of the rows."""
        return RecentRows(self.blocks, self.tail, min(n_rows, self.n_rows))

    def concatenate(self) -> Block:
        """Return the rows as one block."""
        X, y, weights = _join((*self.blocks, *self.tail))
        start = len(y) - self.n_rows
        if start == 0:
            return Block(X, y, weights)
        return Block(X[start:], y[start:], None if weights is None else weights[start:])

    def check(self, n_features: int, n_codes: int | None, *, is_sparse: bool) -> None:
        """Validate loaded rows; `n_codes`: number of classes, None for a regression.

        Raises
        ------
        StateError
            If the state is inconsistent with `n_features` columns.
        """
        n_held = 0
        for X, y, weights in (*self.blocks, *self.tail):
            fits = (
                sp.issparse(X) == is_sparse
                and isinstance(y, np.ndarray)
                and X.shape == (len(y), n_features)
                and X.dtype.kind == "f"
                and not np.isinf(X.data if is_sparse else X).any()
                and y.shape == (len(y),)
                and y.dtype == (np.float64 if n_codes is None else np.int64)
                and bool(np.isfinite(y).all() if n_codes is None else ((y >= 0) & (y < n_codes)).all())
                and (weights is None or (weights.shape == y.shape and bool((weights >= 0.0).all())))
            )
            if not fits:
                raise state_error("The rows of a Refit do not match its columns and classes")
            n_held += len(y)
        if not 0 <= self.n_rows <= n_held:
            raise state_error(f"A Refit counts {self.n_rows} rows of {n_held}")


def _join(blocks: tuple[tuple[Rows, Array, Array | None], ...]) -> Block:
    if len(blocks) == 1:
        return Block(*blocks[0])
    parts, targets, weights = zip(*blocks, strict=True)
    try:
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    except ValueError:
        raise state_error("The blocks of a Refit's rows have different columns") from None
    if all(one is None for one in weights):
        return Block(X, np.concatenate(targets), None)
    filled = [np.ones(len(y)) if w is None else w for y, w in zip(targets, weights, strict=True)]
    return Block(X, np.concatenate(targets), np.concatenate(filled))
