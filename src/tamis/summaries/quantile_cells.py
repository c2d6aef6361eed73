"""Buffer of the stored cells of CSR rows, which are sorted in bulk so that each costs O(1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array
from tamis.summaries.quantile_tables import Table, empty_table

__all__ = ["WaitingCells"]


@njit(strict=True)
def _group(columns: Array, order: Array, next_place: Array, grouped: Array) -> None:
    """Write the positions of the cells column by column, in their original order within each column."""
    for i in order:
        column = columns[i]
        grouped[next_place[column]] = i
        next_place[column] += 1


class WaitingCells:
    """Columns, values and weights of cells, in order of arrival.

    Parameters
    ----------
    dtype : str
        Data type of the values.
    """

    def __init__(self, dtype: str) -> None:
        self.n = 0
        self.columns = np.empty(0, np.int32)
        self.values = np.empty(0, dtype)
        self.weights = np.empty(0)

    def add(self, columns: Array, values: Array, weights: Array, most: int) -> None:
        """Append cells; `most` is the largest number that will be stored."""
        end = self.n + len(values)
        if len(self.values) < end:
            room = min(max(end, 2 * len(self.values)), max(end, most))
            self.columns, self.values, self.weights = (
                np.concatenate([old[: self.n], np.zeros(room - self.n, old.dtype)])
                for old in (self.columns, self.values, self.weights)
            )
        part = slice(self.n, end)
        self.columns[part], self.values[part], self.weights[part] = columns, values, weights
        self.n = end

    def all(self) -> tuple[Array, Array, NDArray[np.float64]]:
        """Return columns, values and weights."""
        return self.columns[: self.n], self.values[: self.n], self.weights[: self.n]

    def table(self, n_features: int) -> Table:
        """Return the cells as a table: feature by feature, each distinct value once."""
        if self.n == 0:
            return empty_table(n_features, self.values.dtype.name)
        columns, values, weights = self.all()
        order = np.empty(self.n, np.int64)
        begins = np.r_[0, np.cumsum(np.bincount(columns, minlength=n_features))]
        _group(columns, np.argsort(values), begins, order)
        columns, values, weights = columns[order], values[order], weights[order]
        new = np.flatnonzero(np.r_[True, (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])])
        start = np.zeros(n_features + 1, np.int64)
        np.cumsum(np.bincount(columns[new], minlength=n_features), out=start[1:])
        return Table(start, values[new], np.add.reduceat(weights, new))

    def without(self, columns: Array) -> WaitingCells:
        """Return the cells of other columns."""
        cells, kept = WaitingCells(self.values.dtype.name), ~np.isin(self.columns[: self.n], columns)
        columns_of, values, weights = self.all()
        cells.add(columns_of[kept], values[kept], weights[kept], self.n)
        return cells

    def scaled(self, factor: float) -> WaitingCells:
        """Return the same cells with all weights multiplied."""
        cells = WaitingCells(self.values.dtype.name)
        columns, values, weights = self.all()
        cells.add(columns, values, weights * factor, self.n)
        return cells

    def stored_as(self, dtype: str) -> WaitingCells:
        """Return the same cells in another data type."""
        cells = WaitingCells(dtype)
        cells.add(*self.all(), self.n)
        return cells

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.columns.nbytes + self.values.nbytes + self.weights.nbytes
