"""Integer codes of categories: each (feature, value) pair is a cell, numbered in order of first occurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints
from tamis.learners.hoeffding.nodes import MISSING, UNKNOWN

MAX_CATEGORIES = 1000  # of a feature: each may have a branch, whose leaf counts all of them


class Categories:
    """The mapping from categories to cells.

    Attributes
    ----------
    n_cells : int
        Number of cells so far.
    values : ndarray of shape (room,), float64
        Value of each cell.
    """

    def __init__(self) -> None:
        # Columns: feature, bits of the value, cell; open addressing, at most half full.
        self._table: Ints = np.full((16, 3), -1)
        self.values: Floats = np.zeros(8)
        self.n_cells = 0

    def cells(self, X: Floats, *, learn: bool) -> Ints:
        """Return the cell of each value: -1 for missing values, -2 for new ones that get none.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_categorical), float64
        learn : bool
            Whether new categories are added, up to 1,000 of a feature.

        Returns
        -------
        ndarray of shape (n_rows, n_categorical), int64
        """
        cells = np.empty(X.shape, dtype=np.int64)
        X = np.ascontiguousarray(X) + 0.0  # -0.0 becomes 0.0
        bits, done = X.view(np.int64), 0
        if not self._table.flags.writeable:  # memory-mapped from a file
            self._table, self.values = self._table.copy(), self.values.copy()
        room = np.full(X.shape[1], MAX_CATEGORIES if learn else 0)
        if learn and self.n_cells + X.size > MAX_CATEGORIES:
            room -= np.bincount(self._table[:, 0] + 1, minlength=X.shape[1] + 1)[1:]
        while done < X.size:
            done, self.n_cells = _look_up(X, bits, self._table, self.values, self.n_cells, cells, done, room)
            if done < X.size:
                self._double()
        return cells

    def _double(self) -> None:
        kept = self._table[self._table[:, 0] >= 0]
        self._table = np.full((2 * len(self._table), 3), -1)
        self.values = np.concatenate([self.values, np.zeros_like(self.values)])
        for feature, bits, cell in kept:
            self._table[_place(self._table, feature, bits)] = feature, bits, cell


@njit()
def _place(table: Ints, feature: int, bits: int) -> Any:
    """Return the position of a value in the table, or the free position where it belongs."""
    z = (np.uint64(bits) + np.uint64(feature)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    at: Any = np.int64((z ^ (z >> np.uint64(32))) & np.uint64(table.shape[0] - 1))
    while table[at, 0] >= 0 and not (table[at, 0] == feature and table[at, 1] == bits):
        at = (at + 1) % table.shape[0]
    return at


@njit()
def _look_up(
    X: Floats, bits: Ints, table: Ints, values: Floats, n_cells: int, cells: Ints, start: int, room: Ints
) -> tuple[int, int]:
    """Look up the values from `start` on; return the position where the table is full, and the number of cells.

    `room`: how many new categories each feature may still have.
    """
    width = X.shape[1]
    for k in range(start, X.size):
        i, g = k // width, k % width
        cells[i, g] = MISSING
        if X[i, g] != X[i, g]:
            continue
        at = _place(table, g, bits[i, g])
        if table[at, 0] < 0:
            cells[i, g] = UNKNOWN
            if room[g] <= 0:
                continue
            if n_cells == values.shape[0]:
                return k, n_cells
            table[at, 0], table[at, 1], table[at, 2] = g, bits[i, g], n_cells
            values[n_cells] = X[i, g]
            n_cells += 1
            room[g] -= 1
        cells[i, g] = table[at, 2]
    return X.size, n_cells
