"""The points of each feature for one class: staged rows, buffered cells, counted values and thinned points.

Thinned points are in buffers on levels, like the digits of a binary counter, with the error bound of their thinning.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from tamis._validation import Array, Floats, Indices, Ints, Mask
from tamis.summaries import quantile_kernels as kernels
from tamis.summaries.batch import n_bytes
from tamis.summaries.quantile_kernels import Runs

CHUNK = 1 << 16  # values sorted at a time, so that they fit in the cache
_ROOM = 1 << 15  # values allocated at a time: frequent reallocation would cost more than filling
_FADED = 1e-3  # of the largest error: weight that can be neglected
Change = Callable[[Array], Array]


@dataclass(frozen=True)
class Table:
    """Distinct values of each feature in order, with their weights: those of feature j at start[j]:start[j + 1]."""

    start: Ints
    value: Array
    weight: Floats

    @classmethod
    def of_cells(cls, columns: Array, values: Array, weights: Array, n_features: int) -> Table:
        """Return the table of cells, which are in order; the weights of equal values are added."""
        new = np.r_[True, (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])]
        places = np.flatnonzero(new[: len(values)])
        start = np.r_[0, np.cumsum(np.bincount(columns[places], minlength=n_features))]
        weight = np.add.reduceat(weights, places) if len(places) else weights
        return cls(start, values[places], weight)

    def stored_as(self, dtype: str) -> Table:
        """Return the table with values of another data type."""
        feature = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        return Table.of_cells(feature, self.value.astype(dtype), self.weight, len(self.start) - 1)

    def joined(self, other: Table) -> Table:
        """Return the union of two tables; the weights of equal values are added."""
        room = len(self.value) + len(other.value)
        start, value, weight = np.zeros_like(self.start), np.empty(room, self.value.dtype), np.empty(room)
        n = kernels.union(
            self.start, self.value, self.weight, other.start, other.value, other.weight, start, value, weight
        )
        return Table(start, value[:n].copy(), weight[:n].copy())

    def only(self, chosen: Mask) -> Table:
        """Return the table of the chosen features; the others have no values."""
        lengths = np.diff(self.start)
        inside = np.repeat(chosen, lengths)
        start = np.concatenate([[0], np.cumsum(np.where(chosen, lengths, 0))])
        return Table(start, self.value[inside], self.weight[inside])


class WaitingCells:
    """The stored cells of CSR rows in order of arrival, which are sorted in bulk so that each costs O(1).

    Parameters
    ----------
    columns, values, weights : ndarray of shape (n,)
        The first cells.
    """

    def __init__(self, columns: Array, values: Array, weights: Array) -> None:
        self.columns, self.values, self.weights = columns, values, weights
        self.n = len(columns)

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

    def all(self) -> tuple[Array, Array, Floats]:
        """Return columns, values and weights."""
        return self.columns[: self.n], self.values[: self.n], self.weights[: self.n]

    def table(self, n_features: int) -> Table:
        """Return the cells as a table: feature by feature, each distinct value once."""
        columns, values, weights = self.all()
        if self.n == 0:
            return Table(np.zeros(n_features + 1, np.int64), values, weights)
        order = np.empty(self.n, np.int64)
        begins = np.r_[0, np.cumsum(np.bincount(columns, minlength=n_features))]
        kernels.group_cells(columns, np.argsort(values), begins, order)
        return Table.of_cells(columns[order], values[order], weights[order], n_features)


@dataclass(frozen=True)
class Buffer:
    """Sorted points of equal weight for each thinned feature; a weight of 0 means no points yet."""

    points: Array  # (n_slots, size)
    weight: Floats  # (n_slots,)

    @classmethod
    def empty(cls, n_slots: int, size: int, dtype: DTypeLike) -> Buffer:
        """Return a buffer without values."""
        return cls(np.zeros((n_slots, size), dtype), np.zeros(n_slots))

    def placed(self, slot: Array, n_slots: int) -> Buffer:
        """Return a buffer of more slots, with the points of slot s here in `slot[s]`; the others are empty."""
        buffer = Buffer.empty(n_slots, self.points.shape[1], self.points.dtype)
        buffer.points[slot], buffer.weight[slot] = self.points, self.weight
        return buffer

    def mass(self) -> Floats:
        """Return the weight of all points of each slot."""
        return self.weight * self.points.shape[1]


class Levels:
    """The thinned points of some features, one slot per feature. Arrays are replaced, never modified in place.

    Parameters
    ----------
    eps : float
        Largest error by thinning, as a fraction of the weight.
    """

    def __init__(self, eps: float) -> None:
        self.eps = eps
        self.buffers: list[Buffer | None] = []
        self.low = np.empty(0)  # bound by which the weight below any x may be too small, per slot
        self.high = np.empty(0)  # bound by which it may be too large

    @property
    def n_slots(self) -> int:
        """Number of features that are thinned."""
        return len(self.low)

    def size(self, *, even: bool) -> int:
        """Return the number of points of the next block after thinning; rows of equal weight need half as many."""
        # Each level adds an error of 1 / (4 size), a new top level twice that.
        levels = max(len(self.buffers), 2) + 3
        size = math.ceil(levels / ((4.0 if even else 2.0) * self.eps))
        top = self.buffers[-1].points.shape[1] if self.buffers and self.buffers[-1] is not None else size
        return size + (size + top) % 2  # two buffers that are thinned together have an even number of points

    def new_block(self, size: int, dtype: DTypeLike) -> Buffer:
        """Return an empty buffer for the next block."""
        self.low, self.high = self.low.copy(), self.high.copy()
        return Buffer.empty(self.n_slots, size, dtype)

    def add_slots(self, n: int) -> None:
        """Make room for further features."""
        self.low, self.high = (np.r_[old, np.zeros(n)] for old in (self.low, self.high))
        old = np.arange(self.n_slots - n)
        self.buffers = [b and b.placed(old, self.n_slots) for b in self.buffers]

    def mapped(self, points: Change, weight: Change) -> Levels:
        """Return the levels with functions applied to the points and to the weights, of any number of axes."""
        levels = Levels(self.eps)
        levels.buffers = [b and Buffer(points(b.points), weight(b.weight)) for b in self.buffers]
        levels.low, levels.high = weight(self.low), weight(self.high)
        return levels

    def mass(self, block: Buffer) -> Floats:
        """Return the weight of all points of each slot, including those of the block."""
        return sum((b.mass() for b in self.buffers if b is not None), block.mass())

    # -- thinning ------------------------------------------------------------------------------------------

    def thin_rows(self, block: Buffer, points: Array, weight: Floats, slot: Array) -> Array:
        """Thin points whose weights are those of their rows into the block; return the order of the points."""
        into = (slot, block.points, block.weight, self.low, self.high)
        if weight.min() == weight.max():
            points.sort(axis=1)
            kernels.halve(points, np.full(len(slot), weight[0]), *into)
            return np.broadcast_to(np.arange(points.shape[1]), points.shape)
        order = np.argsort(points, axis=1)
        kernels.thin(points, order, np.ascontiguousarray(np.broadcast_to(weight, points.shape)), *into)
        return order

    def thin_table(self, block: Buffer, table: Table, slot: Array) -> None:
        """Thin the values of some features into their slots of the block."""
        lengths = np.diff(table.start)
        features = np.flatnonzero(lengths)
        features = features[np.argsort(lengths[features], kind="stable")]
        at = 0
        while at < len(features):
            n = max(1, CHUNK // int(lengths[features[min(at + 255, len(features) - 1)]]))
            some = features[at : at + min(n, 256)]
            width = int(lengths[some].max())
            inside = np.arange(width) < lengths[some][:, None]
            index = np.where(inside, table.start[some][:, None] + np.arange(width), 0)
            weight = np.where(inside, table.weight[index], 0.0)
            order = np.broadcast_to(np.arange(width), inside.shape)
            into = (slot[some], block.points, block.weight, self.low, self.high)
            kernels.thin(table.value[index], order, weight, *into)
            at += len(some)

    def enter(self, table: Table, slot: Array, block: Buffer) -> None:
        """Thin counted values into the highest level, where few thinnings will follow; otherwise into the block."""
        top = self.buffers[-1] if self.buffers else None
        if top is None:
            self.thin_table(block, table, slot)
        elif len(table.value):
            entering = Buffer(np.zeros_like(top.points), np.zeros_like(top.weight))
            self.thin_table(entering, table, slot)
            self.buffers = [*self.buffers[:-1], self._collapse(top, entering, self.mass(entering))]

    def carry(self, block: Buffer, level: int = 0, mass: Floats | None = None) -> None:
        """Place the block on its level; two buffers on one level are thinned together and carried to the next."""
        if not block.weight.any():
            return
        mass = self.mass(block) if mass is None else mass
        buffers = [*self.buffers, *[None] * (level + 1 - len(self.buffers))]
        while (other := buffers[level]) is not None:
            block = self._collapse(other, block, mass)
            buffers[level] = None
            level += 1
            if level == len(buffers):
                buffers.append(None)
        buffers[level] = block
        self.buffers = buffers
        self._drop_faded(block, mass)

    def _drop_faded(self, block: Buffer, mass: Floats) -> None:
        """Drop older points whose weight has faded to a fraction of the error; memory no longer grows with the rows."""
        for level, buffer in enumerate(self.buffers):
            is_older = buffer is not None and buffer is not block and (buffer.weight < block.weight).all()
            if buffer is not None and is_older and (buffer.mass() <= _FADED * self.eps * mass).all():
                self.low = self.low + buffer.mass()
                self.buffers = [*self.buffers[:level], None, *self.buffers[level + 1 :]]
        while self.buffers[-1] is None:
            self.buffers = self.buffers[:-1]

    def _collapse(self, a: Buffer, b: Buffer, mass: Floats) -> Buffer:
        """Merge two buffers and thin them to half, or to as few points as the error allows."""
        left, right = a.points.shape[1], b.points.shape[1]
        n_slots, n = len(a.weight), left + right
        equal = bool((a.weight == b.weight).all())
        joint = Buffer.empty(n_slots, self._room(a, b, mass, equal=equal), a.points.dtype)
        for first in range(0, n_slots, max(CHUNK // n, 16)):
            part = slice(first, first + max(CHUNK // n, 16))
            points = np.concatenate([a.points[part], b.points[part]], axis=1)
            slot = np.arange(first, first + len(points), dtype=np.int32)
            into = (slot, joint.points, joint.weight, self.low, self.high)
            if equal:
                points.sort(axis=1)
                kernels.halve(points, a.weight[part], *into)
            else:
                weight = np.repeat(np.stack([a.weight[part], b.weight[part]], axis=1), [left, right], axis=1)
                kernels.thin(points, np.argsort(points, axis=1), weight, *into)
        return joint

    def _room(self, a: Buffer, b: Buffer, mass: Floats, *, equal: bool) -> int:
        """Return the number of points of two buffers after thinning: half of them, or more to stay within eps."""
        n: int = a.points.shape[1] + b.points.shape[1]
        least, most = np.minimum(self.low, self.high), np.maximum(self.low, self.high)
        allowed = self.eps * mass
        if equal and n % 2 == 0:
            return n // 2 if (np.maximum(least + a.weight, most) <= allowed).all() else n
        both = (a.weight > 0.0) & (b.weight > 0.0)
        joint = 0.5 * np.where(both, a.mass() + b.mass(), 0.0)
        for size in ((n + 1) // 2, n, 2 * n):
            if (most + joint / size <= allowed).all():
                return size
        return 4 * n

    def merge(self, other: Levels, slot: Array, block: Buffer) -> None:
        """Add other levels, whose slots correspond to `slot` here; `block` must be carried next."""
        self.low[slot] += other.low
        self.high[slot] += other.high
        placed = [b and b.placed(slot, self.n_slots) for b in other.buffers]
        mass = self.mass(block) + sum(buffer.mass() for buffer in placed if buffer is not None)
        for level, buffer in enumerate(placed):
            if buffer is not None:
                self.carry(buffer, level, mass)


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
        self.distinct = math.ceil(1.0 / eps)  # a feature with more values than that is thinned
        # With equal weights and no missing values, half the size gives the same certificate.
        self.even = True
        self.weight_of_first = 0.0
        self.n_staged = 0
        self.staged = np.empty((0, n_features), dtype)  # dense rows of the next block
        self.staged_weight = np.empty(0)
        self.waiting = WaitingCells(np.empty(0, np.int32), np.empty(0, dtype), np.empty(0))
        # Features counted value by value.
        self.table = Table(np.zeros(n_features + 1, np.int64), np.empty(0, dtype), np.empty(0))
        self.slot = np.full(n_features, -1, np.int32)  # slot of a thinned feature in the levels, else -1
        self.levels = Levels(eps)

    def thinned(self) -> Indices:
        """Return which feature is in each slot."""
        features = np.flatnonzero(self.slot >= 0)
        return features[np.argsort(self.slot[features])]

    @property
    def size(self) -> int:
        """Number of points of the next block after thinning, which is half its rows."""
        return self.levels.size(even=self.even)

    def _new_block(self) -> Buffer:
        return self.levels.new_block(self.size, self.staged.dtype)

    # -- rows ----------------------------------------------------------------------------------------------

    def add(self, X: Array, rows: Ints, weight: Floats, *, has_missing: bool) -> None:
        """Add some rows of a dense batch; `has_missing` is whether any row of the class had a missing value."""
        self.weight_of_first = self.weight_of_first or weight[0]
        self.even &= not has_missing and bool((weight == self.weight_of_first).all())
        self.add_rows(X, rows, weight)

    def add_rows(self, X: Array, rows: Ints, weight: Floats) -> None:
        """Add rows whose weights are known to be equal, or not."""
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

    def _stage(self, X: Array, rows: Ints, weight: Floats, block: int) -> None:
        held, need = self.n_staged, self.n_staged + len(rows)
        if len(self.staged) < need:
            more = max(block // 8, _ROOM // max(self.staged.shape[1], 1) if self.levels.buffers else 0)
            room = min(block, max(need, held + more))
            staged, staged_weight = np.zeros((room, self.staged.shape[1]), self.staged.dtype), np.zeros(room)
            staged[:held], staged_weight[:held] = self.staged[:held], self.staged_weight[:held]
            self.staged, self.staged_weight = staged, staged_weight
        self.staged[held:need], self.staged_weight[held:need] = X[rows], weight
        self.n_staged = need

    def _flush(self, X: Array, rows: Ints, weight: Floats) -> None:
        """Thin a block of dense rows; the values of counted features are added exactly."""
        n_features, n, dtype = len(self.slot), len(rows), self.staged.dtype
        block, step = self._new_block(), max(CHUNK // n, 16)
        counted = int(np.count_nonzero(self.slot < 0))
        values, weights = np.empty(counted * n, dtype), np.empty(counted * n)
        ends, filled = np.zeros(n_features + 1, np.int64), 0
        for first in range(0, n_features, step):
            slot = self.slot[first : first + step]
            points = np.empty((len(slot), n), dtype)
            kernels.copy_columns(X, rows, first, points)
            order = self.levels.thin_rows(block, points, weight, slot)
            part = ends[first + 1 : first + 1 + len(slot)]
            part[:] = filled
            if (slot < 0).any():
                filled = kernels.distinct_runs(points, order, weight, slot, part, values, weights, filled)
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
                cells, block = self.cells(), self._new_block()
                self.waiting.n = 0
                self.levels.thin_table(block, cells.only(self.slot >= 0), self.slot)
                self._absorb(block, cells.only(self.slot < 0))

    def cells(self) -> Table:
        """Return the buffered cells as a table."""
        return self.waiting.table(len(self.slot))

    def widened(self, n_features: int) -> ClassPoints:
        """Return the points with added features that have no stored cells; no dense row may be staged."""
        points, more = copy.copy(self), (0, n_features - len(self.slot))
        points.staged = np.empty((0, n_features), self.staged.dtype)
        points.slot = np.pad(self.slot, more, constant_values=-1)
        points.table = replace(self.table, start=np.pad(self.table.start, more, mode="edge"))
        return points

    def without(self, columns: Indices) -> ClassPoints:
        """Return the points without any stored cells of some features; no dense row may be staged."""
        points, left = copy.copy(self), np.ones(len(self.slot), np.bool_)
        left[columns] = False
        waits = left[self.waiting.columns[: self.waiting.n]]
        points.waiting = WaitingCells(*(cells[waits] for cells in self.waiting.all()))
        points.table = self.table.only(left)
        thinned = self.thinned()
        slots = left[thinned]
        points.levels = self.levels.mapped(lambda values: values[slots], lambda weight: weight[slots])
        points.slot = np.full(len(self.slot), -1, np.int32)
        points.slot[thinned[slots]] = np.arange(points.levels.n_slots)
        return points

    # -- counted and thinned features ----------------------------------------------------------------------

    def _absorb(self, block: Buffer, counted: Table) -> None:
        """Add to the counted values, thin features with too many of them, and carry the block upwards."""
        table = self.table.joined(counted) if len(counted.value) else self.table
        many = np.diff(table.start) > self.distinct
        if many.any():
            block = self._add_slots(np.flatnonzero(many), block)
            self.levels.enter(table.only(many), self.slot, block)
            table = table.only(~many)
        self.table = replace(table)  # a new object invalidates earlier readings
        self.levels.carry(block)

    def _add_slots(self, features: Indices, block: Buffer) -> Buffer:
        old = np.arange(self.levels.n_slots)
        self.slot = self.slot.copy()
        self.slot[features] = len(old) + np.arange(len(features))
        self.levels.add_slots(len(features))
        return block.placed(old, self.levels.n_slots)

    def of_columns(self, columns: Indices) -> ClassPoints:
        """Return the points of some features, in ascending order, for reading; no cells may be buffered."""
        part, chosen = copy.copy(self), np.zeros(len(self.slot), np.bool_)
        chosen[columns] = True
        part.staged, part.slot = self.staged[: self.n_staged, columns], self.slot[columns]
        table = self.table.only(chosen)
        part.table = replace(table, start=np.r_[table.start[columns], table.start[-1]])
        return part

    def scaled(self, factor: float) -> ClassPoints:
        """Return the points with all weights multiplied."""
        points, (columns, values, weights) = copy.copy(self), self.waiting.all()
        points.staged_weight = self.staged_weight * factor
        points.waiting = WaitingCells(columns.copy(), values.copy(), weights * factor)
        points.table = replace(self.table, weight=self.table.weight * factor)
        points.levels = self.levels.mapped(lambda values: values, lambda weight: weight * factor)
        return points

    def stored_as(self, dtype: str) -> ClassPoints:
        """Return the points in another data type."""
        points, (columns, values, weights) = copy.copy(self), self.waiting.all()
        points.staged = self.staged.astype(dtype)
        points.waiting = WaitingCells(columns.copy(), values.astype(dtype), weights.copy())
        points.table = self.table.stored_as(dtype)
        points.levels = self.levels.mapped(lambda values: values.astype(dtype), lambda weight: weight)
        return points

    def merged(self, other: ClassPoints) -> ClassPoints:
        """Return these points merged with others of the same class, whose weights are on the same scale."""
        points = self.scaled(1.0)
        points.staged, points.even = self.staged.copy(), self.even and other.even
        block, theirs = points._new_block(), other.thinned()
        block = points._add_slots(theirs[points.slot[theirs] < 0], block)
        points.levels.merge(other.levels, points.slot[theirs], block)
        thinned = points.slot >= 0
        crowded = points.table.only(thinned).joined(other.table.only(thinned))
        points.table = points.table.only(~thinned)
        points.levels.enter(crowded, points.slot, block)
        points._absorb(block, other.table.only(~thinned))
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

    def read(self, first: int, stop: int, cells: Table, zero: Array, r: int, runs: Runs) -> int:
        """Write the runs of some features, from run r on; return the next run."""
        if self.n_staged:
            self._read_staged(first, stop, r, runs)
            r += 1
        tables = [self.table, cells]
        if zero.any():
            some = zero > 0.0
            begin = np.r_[np.zeros(first + 1, np.int64), np.cumsum(some)]
            tables.append(Table(begin, np.zeros(some.sum(), self.staged.dtype), zero[some]))
        for table in tables:
            if len(table.value):
                kernels.read_table(first, table.start, table.value, table.weight, r, runs)
                r += 1
        for buffer in self.levels.buffers:
            if buffer is not None:
                kernels.read_even(buffer.points, buffer.weight, self.slot[first:stop], r, runs)
                r += 1
        return r

    def _read_staged(self, first: int, stop: int, r: int, runs: Runs) -> None:
        n = self.n_staged
        points, weight = np.empty((stop - first, n), self.staged.dtype), self.staged_weight[:n]
        kernels.copy_columns(self.staged, np.arange(n), first, points)
        if weight.min() == weight.max():
            points.sort(axis=1)
            slot = np.arange(len(points), dtype=self.slot.dtype)
            kernels.read_even(points, np.full(len(points), weight[0]), slot, r, runs)
        else:
            kernels.read_rows(points, np.argsort(points, axis=1), weight, r, runs)

    nbytes = property(n_bytes)
