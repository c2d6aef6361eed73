"""The points of each feature for one class: staged rows, buffered cells, counted values and thinned points."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array
from tamis.summaries.quantile_cells import WaitingCells
from tamis.summaries.quantile_levels import CHUNK, Buffer, Levels
from tamis.summaries.quantile_reading import Runs, read_even, read_rows, read_table, read_zero
from tamis.summaries.quantile_tables import Table, distinct_runs, empty_table, join, split
from tamis.summaries.quantile_thinning import copy_columns

__all__ = ["ClassPoints"]

_ROOM = 1 << 15  # values allocated at a time: frequent reallocation would cost more than filling


class ClassPoints:
    """The points of one class. Arrays are replaced, never modified in place, except staged rows and buffered cells.

    Parameters
    ----------
    n_features : int
    eps : float
        Largest error of the weight up to any value, as a fraction of the weight.
    dtype : str
        Data type of the points.
    """

    def __init__(self, n_features: int, eps: float, dtype: str) -> None:
        self.dtype = dtype
        self.distinct = math.ceil(1.0 / eps)  # a feature with more values than that is thinned
        # With equal weights and no missing values, half the size gives the same certificate.
        self.even = True
        self.weight_of_first = 0.0
        self.n_staged = 0
        self.staged = np.empty((0, n_features), dtype)  # dense rows of the next block
        self.staged_weight = np.empty(0)
        self.waiting = WaitingCells(dtype)
        self.table = empty_table(n_features, dtype)  # features counted value by value
        self.slot = np.full(n_features, -1, np.int32)  # slot of a thinned feature in the levels, else -1
        self.levels = Levels(eps, dtype)

    def thinned(self) -> NDArray[np.intp]:
        """Return which feature is in each slot."""
        features = np.flatnonzero(self.slot >= 0)
        return features[np.argsort(self.slot[features])]

    @property
    def size(self) -> int:
        """Number of points of the next block after thinning, which is half its rows."""
        return self.levels.size(even=self.even)

    # -- rows ----------------------------------------------------------------------------------------------

    def first_weight(self, weight: float) -> float:
        """Return the weight of the very first row, which is `weight` if there was none."""
        if self.weight_of_first == 0.0:
            self.weight_of_first = weight
        return self.weight_of_first

    def add_rows(self, X: Array, rows: NDArray[np.int64], weight: NDArray[np.float64]) -> None:
        """Add some rows of a dense batch."""
        at = 0
        while at < len(rows):
            block = max(2 * self.size, self.n_staged)
            if self.n_staged == 0 and len(rows) - at >= block:
                self._flush(X, rows[at : at + block], weight[at : at + block])
                at += block
                continue
            n = min(block - self.n_staged, len(rows) - at)
            self._stage(X, rows[at : at + n], weight[at : at + n], block)
            at += n
            if self.n_staged == block:
                staged, staged_weight = self.staged, self.staged_weight
                self.n_staged, self.staged, self.staged_weight = 0, staged[:0].copy(), np.empty(0)
                self._flush(staged, np.arange(block), staged_weight[:block])

    def _stage(self, X: Array, rows: NDArray[np.int64], weight: NDArray[np.float64], block: int) -> None:
        held, need = self.n_staged, self.n_staged + len(rows)
        if len(self.staged) < need:
            more = max(block // 8, _ROOM // max(self.staged.shape[1], 1) if self.levels.buffers else 0)
            room = min(block, max(need, held + more))
            staged, staged_weight = np.zeros((room, self.staged.shape[1]), self.dtype), np.zeros(room)
            staged[:held], staged_weight[:held] = self.staged[:held], self.staged_weight[:held]
            self.staged, self.staged_weight = staged, staged_weight
        self.staged[held:need], self.staged_weight[held:need] = X[rows], weight
        self.n_staged = need

    def _flush(self, X: Array, rows: NDArray[np.int64], weight: NDArray[np.float64]) -> None:
        """Thin a block of dense rows; the values of counted features are added exactly."""
        n_features, n = len(self.slot), len(rows)
        block = self.levels.new_block(self.size)
        counted = int(np.count_nonzero(self.slot < 0))
        values, weights = np.empty(counted * n, self.dtype), np.empty(counted * n)
        ends, filled = np.zeros(n_features + 1, np.int64), 0
        for first in range(0, n_features, max(CHUNK // n, 16)):
            slot = self.slot[first : first + max(CHUNK // n, 16)]
            points = np.empty((len(slot), n), self.dtype)
            copy_columns(X, rows, first, points)
            order = self.levels.thin_rows(block, points, weight, slot)
            part = ends[first + 1 : first + 1 + len(slot)]
            part[:] = filled
            if (slot < 0).any():
                filled = distinct_runs(points, order, weight, slot, part, values, weights, filled)
        self._absorb(block, Table(ends, values[:filled], weights[:filled]))

    # -- stored cells --------------------------------------------------------------------------------------

    @property
    def _most_waiting(self) -> int:
        """Largest number of buffered cells, so that sorting costs O(1) per cell."""
        thinned = 2 * self.size * self.levels.n_slots
        return max(1 << 14, len(self.slot) // 4, len(self.table.value), thinned)

    def add_cells(self, columns: Array, values: Array, weights: Array) -> None:
        """Add the stored cells of CSR rows, none of them NaN."""
        self.even = False
        at = 0
        while at < len(values):
            most = self._most_waiting
            part = slice(at, at + max(most - self.waiting.n, 0))
            self.waiting.add(columns[part], values[part], weights[part], most)
            at = min(part.stop, len(values))
            if self.waiting.n >= most:
                cells = self.cells()
                self.waiting.n = 0
                block = self.levels.new_block(self.size)
                thinned, counted = split(cells, self.slot >= 0)
                self.levels.thin_table(block, thinned, self.slot)
                self._absorb(block, counted)

    def cells(self) -> Table:
        """Return the buffered cells as a table."""
        return self.waiting.table(len(self.slot))

    def widened(self, n_features: int) -> ClassPoints:
        """Return the points with added features that have no stored cells; no dense row may be staged."""
        points, more = copy.copy(self), (0, n_features - len(self.slot))
        points.staged = np.empty((0, n_features), self.dtype)
        points.slot = np.pad(self.slot, more, constant_values=-1)
        points.table = replace(self.table, start=np.pad(self.table.start, more, mode="edge"))
        return points

    def without(self, columns: NDArray[np.intp]) -> ClassPoints:
        """Return the points without any stored cells of some features; no dense row may be staged."""
        points, gone = copy.copy(self), np.zeros(len(self.slot), np.bool_)
        gone[columns] = True
        points.waiting, points.table = self.waiting.without(columns), split(self.table, gone)[1]
        thinned = self.thinned()
        points.levels = self.levels.without(np.flatnonzero(gone[thinned]))
        points.slot = np.full(len(self.slot), -1, np.int32)
        left = thinned[~gone[thinned]]
        points.slot[left] = np.arange(len(left))
        return points

    # -- counted and thinned features ----------------------------------------------------------------------

    def _absorb(self, block: Buffer, counted: Table) -> None:
        """Add to the counted values, thin features with too many of them, and carry the block upwards."""
        table = join(self.table, counted) if len(counted.value) else self.table
        many = np.diff(table.start) > self.distinct
        if many.any():
            crowded, table = split(table, many)
            block = self._add_slots(np.flatnonzero(many), block)
            self.levels.enter(crowded, self.slot, block)
        self.table = replace(table)  # a new object invalidates earlier readings
        self.levels.carry(block)

    def _add_slots(self, features: NDArray[np.intp], block: Buffer) -> Buffer:
        self.slot = self.slot.copy()
        self.slot[features] = self.levels.n_slots + np.arange(len(features))
        self.levels.add_slots(len(features))
        return block.widened(self.levels.n_slots)

    def of_columns(self, columns: NDArray[np.intp]) -> ClassPoints:
        """Return the points of some features, in ascending order, for reading; no cells may be buffered."""
        part, chosen = copy.copy(self), np.zeros(len(self.slot), np.bool_)
        chosen[columns] = True
        part.staged, part.slot = self.staged[: self.n_staged, columns], self.slot[columns]
        table = split(self.table, chosen)[0]
        part.table = replace(table, start=np.r_[table.start[columns], table.start[-1]])
        return part

    def scaled(self, factor: float) -> ClassPoints:
        """Return the points with all weights multiplied."""
        points = copy.copy(self)
        points.staged_weight = self.staged_weight * factor
        points.waiting = self.waiting.scaled(factor)
        points.table = replace(self.table, weight=self.table.weight * factor)
        points.levels = self.levels.scaled(factor)
        return points

    def stored_as(self, dtype: str) -> ClassPoints:
        """Return the points in another data type."""
        points = copy.copy(self)
        points.dtype, points.staged = dtype, self.staged.astype(dtype)
        points.waiting, points.table = self.waiting.stored_as(dtype), self.table.stored_as(dtype)
        points.levels = self.levels.stored_as(dtype)
        return points

    def merged(self, other: ClassPoints) -> ClassPoints:
        """Return these points merged with others of the same class, whose weights are on the same scale."""
        points = self.scaled(1.0)
        points.staged, points.even = self.staged.copy(), self.even and other.even
        block, theirs = points.levels.new_block(points.size), other.thinned()
        block = points._add_slots(theirs[points.slot[theirs] < 0], block)
        points.levels.merge(other.levels, points.slot[theirs], block)
        mine, points.table = split(points.table, points.slot >= 0)
        crowded, counted = split(other.table, points.slot >= 0)
        points.levels.enter(join(mine, crowded), points.slot, block)
        points._absorb(block, counted)
        points.add_rows(other.staged, np.arange(other.n_staged), other.staged_weight[: other.n_staged])
        if other.waiting.n:
            points.add_cells(*other.waiting.all())
        return points

    # -- results -------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Largest number of points of a feature, apart from counted values and buffered cells."""
        sizes: list[int] = [b.points.shape[1] for b in self.levels.buffers if b is not None]
        return sum(sizes) + self.n_staged + 1

    @property
    def most_runs(self) -> int:
        """Largest number of runs that `read` writes."""
        return 4 + len(self.levels.buffers)

    def read(self, first: int, stop: int, cells: Table, zero: Array, r: int, runs: Runs) -> int:
        """Write the runs of some features, from run r on; return the next run."""
        if self.n_staged:
            self._read_staged(first, stop, r, runs)
            r += 1
        for table in (self.table, cells):
            if len(table.value):
                read_table(first, table.start, table.value, table.weight, r, *runs)
                r += 1
        if zero.any():
            read_zero(zero, r, *runs)
            r += 1
        for buffer in self.levels.buffers:
            if buffer is not None:
                read_even(buffer.points, buffer.weight, self.slot[first:stop], r, *runs)
                r += 1
        return r

    def _read_staged(self, first: int, stop: int, r: int, runs: Runs) -> None:
        points = np.empty((stop - first, self.n_staged), self.dtype)
        copy_columns(self.staged, np.arange(self.n_staged), first, points)
        weight = self.staged_weight[: self.n_staged]
        if weight.min() == weight.max():
            points.sort(axis=1)
            slot = np.arange(len(points), dtype=self.slot.dtype)
            read_even(points, np.full(len(points), weight[0]), slot, r, *runs)
        else:
            read_rows(points, np.argsort(points, axis=1), weight, r, *runs)

    @property
    def nbytes(self) -> int:
        """Bytes of the state."""
        table = self.table.start.nbytes + self.table.value.nbytes + self.table.weight.nbytes
        rows = self.staged.nbytes + self.staged_weight.nbytes
        return rows + table + self.slot.nbytes + self.waiting.nbytes + self.levels.nbytes
