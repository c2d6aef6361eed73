"""The points that one class keeps of every feature: staged rows, buffers on levels, tables of few values."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis.summaries.quantile_reading import Runs, read_even, read_rows, read_table, read_zero
from tamis.summaries.quantile_tables import Table, distinct_runs, empty_table, join, split
from tamis.summaries.quantile_thinning import copy_columns, group, halve, thin

__all__ = ["CHUNK", "ClassPoints"]

CHUNK = 1 << 16  # values sorted at a time: they stay in the cache


@dataclass(frozen=True)
class _Buffer:
    """Sorted points of each thinned feature, all of one weight; weight 0: no points yet."""

    points: Array  # (n_slots, size)
    weight: NDArray[np.float64]  # (n_slots,)


class ClassPoints:
    """The points of one class. Arrays are replaced, never written to in place, except the staged rows."""

    def __init__(self, n_features: int, eps: float, dtype: str) -> None:
        self.eps = eps
        self.dtype = dtype
        self.even = (
            True  # one weight for all rows and nothing missing: half the size gives the same certificate
        )
        self.weight_of_first = 0.0
        self.n_staged = 0
        self.staged = np.empty((0, n_features), dtype)  # dense rows of the block to come
        self.staged_weight = np.empty(0)
        self.n_pending = 0
        self.pending: list[Array] = [  # columns, values and weights of the stored cells to come
            np.empty(0, np.int32),
            np.empty(0, dtype),
            np.empty(0),
        ]
        self.table = empty_table(n_features, dtype)  # the features counted value by value
        self.slot = np.full(n_features, -1, np.int64)  # where a thinned feature is in the buffers, else -1
        self.thinned = np.empty(0, np.int64)  # which feature is in each slot
        self.levels: list[_Buffer | None] = []
        self.low = np.empty(0)  # by how much the weight below any x may be too small, per slot
        self.high = np.empty(0)  # ... too large

    # -- sizes ---------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many points the next block is thinned to, and half its rows."""
        levels = max(len(self.levels), 2) + 3  # each level costs 1 / (4 size), and a new top one twice that
        size = math.ceil(levels / ((4.0 if self.even else 2.0) * self.eps))
        top = self.levels[-1].points.shape[1] if self.levels and self.levels[-1] is not None else size
        return size + (size + top) % 2  # two buffers that are thinned together have an even number of points

    @property
    def distinct(self) -> int:
        """How many distinct values a feature may have to be counted value by value."""
        return math.ceil(1.0 / self.eps)

    @property
    def most_pending(self) -> int:
        """At most so many stored cells wait, so that sorting them in costs O(1) each."""
        return max(1 << 14, len(self.slot) // 4, len(self.table.value), 2 * self.size * len(self.thinned))

    # -- rows ----------------------------------------------------------------------------------------------

    def first_weight(self, weight: float) -> float:
        """Return the weight of the first row of all, which is this one's if there was none."""
        if self.weight_of_first == 0.0:
            self.weight_of_first = weight
        return self.weight_of_first

    def add_rows(self, X: Array, rows: NDArray[np.int64], weight: NDArray[np.float64]) -> None:
        """Take in these rows of a dense batch."""
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
                self.n_staged, self.staged, self.staged_weight = (
                    0,
                    staged[:0].copy(),
                    staged_weight[:0].copy(),
                )
                self._flush(staged, np.arange(block), staged_weight[:block])

    def _stage(self, X: Array, rows: NDArray[np.int64], weight: NDArray[np.float64], block: int) -> None:
        need = self.n_staged + len(rows)
        if len(self.staged) < need:
            room = min(block, need + block // 4)
            staged, staged_weight = np.empty((room, self.staged.shape[1]), self.dtype), np.empty(room)
            staged[: self.n_staged] = self.staged[: self.n_staged]
            staged_weight[: self.n_staged] = self.staged_weight[: self.n_staged]
            self.staged, self.staged_weight = staged, staged_weight
        self.staged[self.n_staged : need] = X[rows]
        self.staged_weight[self.n_staged : need] = weight
        self.n_staged = need

    def _flush(self, X: Array, rows: NDArray[np.int64], weight: NDArray[np.float64]) -> None:
        """Thin a block of dense rows; the features that are counted take in its values as they are."""
        n_features, n = len(self.slot), len(rows)
        block = self._new_block()
        counted = int(np.count_nonzero(self.slot < 0))
        values, weights = np.empty(counted * n, self.dtype), np.empty(counted * n)
        ends, filled = np.zeros(n_features + 1, np.int64), 0
        for first in range(0, n_features, max(CHUNK // n, 16)):
            slot = self.slot[first : first + max(CHUNK // n, 16)]
            points = np.empty((len(slot), n), self.dtype)
            copy_columns(X, rows, first, points)
            order = self._thin_into(block, points, weight, slot)
            if (slot < 0).any():
                part = ends[first + 1 : first + 1 + len(slot)]
                filled = distinct_runs(points, order, weight, slot, part, values, weights, filled)
            else:
                ends[first + 1 : first + 1 + len(slot)] = filled
        self._absorb(block, Table(ends, values[:filled], weights[:filled]))

    def _thin_into(self, block: _Buffer, points: Array, weight: NDArray[np.float64], slot: Array) -> Array:
        """Thin points of shared weights into the slots of the block; return the order of the points."""
        if weight.min() == weight.max():
            points.sort(axis=1)
            halve(
                points, np.full(len(slot), weight[0]), slot, block.points, block.weight, self.low, self.high
            )
            return np.broadcast_to(np.arange(points.shape[1]), points.shape)
        order = np.argsort(points, axis=1)
        by_feature = np.ascontiguousarray(np.broadcast_to(weight, points.shape))
        thin(points, order, by_feature, slot, block.points, block.weight, self.low, self.high)
        return order

    def _new_block(self) -> _Buffer:
        self.low, self.high = self.low.copy(), self.high.copy()
        n_slots = len(self.thinned)
        return _Buffer(np.zeros((n_slots, self.size), self.dtype), np.zeros(n_slots))

    # -- stored cells --------------------------------------------------------------------------------------

    def add_cells(self, columns: Array, values: Array, weights: Array) -> None:
        """Take in the stored cells of CSR rows, none of them NaN."""
        self.even = False
        at = 0
        while at < len(values):
            n = min(max(self.most_pending - self.n_pending, 0), len(values) - at)
            part, end = slice(at, at + n), self.n_pending + n
            self._make_room(end)
            for waiting, arriving in zip(self.pending, (columns, values, weights), strict=True):
                waiting[self.n_pending : end] = arriving[part]
            at, self.n_pending = at + n, end
            if end >= self.most_pending:
                cells, self.n_pending = self.cells(), 0
                block = self._new_block()
                thinned, counted = split(cells, self.slot >= 0)
                self._thin_table(block, thinned)
                self._absorb(block, counted)

    def _make_room(self, n: int) -> None:
        room = len(self.pending[0])
        if room < n:
            more = min(max(n, 2 * room), max(n, self.most_pending)) - room
            self.pending = [np.concatenate([part, np.empty(more, part.dtype)]) for part in self.pending]

    def cells(self) -> Table:
        """Return the waiting cells as a table."""
        n_features = len(self.slot)
        if self.n_pending == 0:
            return empty_table(n_features, self.dtype)
        columns, values, weights = (part[: self.n_pending] for part in self.pending)
        order = np.empty(self.n_pending, np.int64)
        group(
            columns,
            np.argsort(values),
            np.r_[0, np.cumsum(np.bincount(columns, minlength=n_features))],
            order,
        )
        columns, values, weights = columns[order], values[order], weights[order]
        new = np.flatnonzero(np.r_[True, (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])])
        start = np.zeros(n_features + 1, np.int64)
        np.cumsum(np.bincount(columns[new], minlength=n_features), out=start[1:])
        return Table(start, values[new], np.add.reduceat(weights, new))

    def widened(self, n_features: int) -> ClassPoints:
        """Return the same points with further features, of which none were stored; no dense row may be staged."""
        found, more = copy.copy(self), (0, n_features - len(self.slot))
        found.staged = np.empty((0, n_features), self.dtype)
        found.slot = np.pad(self.slot, more, constant_values=-1)
        found.table = replace(self.table, start=np.pad(self.table.start, more, mode="edge"))
        return found

    # -- levels --------------------------------------------------------------------------------------------

    def _absorb(self, block: _Buffer, counted: Table) -> None:
        """Add to the counted values; thin the features that have too many of them; carry the block upwards."""
        table = join(self.table, counted) if len(counted.value) else self.table
        many = np.diff(table.start) > self.distinct
        if many.any():
            crowded, table = split(table, many)
            block = self._make_slots(np.flatnonzero(many), block)
            self._enter(crowded, block)
        self.table = table
        self._carry(block, 0)

    def _enter(self, table: Table, block: _Buffer) -> None:
        """Thin counted values into the highest level, where few thinnings are still to come; else into the block."""
        top = self.levels[-1] if self.levels else None
        if top is None:
            self._thin_table(block, table)
        elif len(table.value):
            entering = _Buffer(np.zeros_like(top.points), np.zeros_like(top.weight))
            self._thin_table(entering, table)
            self.levels = [*self.levels[:-1], self._collapse(top, entering, self._mass(entering))]

    def _mass(self, block: _Buffer) -> NDArray[np.float64]:
        """Return the weight of all points of each slot, those of the block included."""
        buffers = [block, *(buffer for buffer in self.levels if buffer is not None)]
        mass: NDArray[np.float64] = np.sum([b.weight * b.points.shape[1] for b in buffers], axis=0)
        return mass

    def _make_slots(self, features: NDArray[np.int64], block: _Buffer) -> _Buffer:
        self.slot = self.slot.copy()
        self.slot[features] = np.arange(len(self.thinned), len(self.thinned) + len(features))
        self.thinned = np.concatenate([self.thinned, features])
        self.low, self.high = (np.r_[old, np.zeros(len(features))] for old in (self.low, self.high))
        self.levels = [buffer and self._widen(buffer) for buffer in self.levels]
        return self._widen(block)

    def _widen(self, buffer: _Buffer) -> _Buffer:
        """Add slots without points."""
        n = len(self.thinned) - len(buffer.weight)
        return _Buffer(
            np.concatenate([buffer.points, np.zeros((n, buffer.points.shape[1]), self.dtype)]),
            np.concatenate([buffer.weight, np.zeros(n)]),
        )

    def _thin_table(self, block: _Buffer, table: Table) -> None:
        """Thin the values of some features into their slots of the block."""
        lengths = np.diff(table.start)
        features = np.flatnonzero(lengths)
        features = features[np.argsort(lengths[features], kind="stable")]
        at = 0
        while at < len(features):
            n = max(1, CHUNK // int(lengths[features[min(at + 255, len(features) - 1)]]))
            some = features[at : at + min(n, 256)]
            width = int(lengths[some].max())
            index = table.start[some][:, None] + np.arange(width)
            inside = np.arange(width) < lengths[some][:, None]
            index = np.where(inside, index, 0)
            weight = np.where(inside, table.weight[index], 0.0)
            order = np.broadcast_to(np.arange(width), inside.shape)
            thin(
                table.value[index],
                order,
                weight,
                self.slot[some],
                block.points,
                block.weight,
                self.low,
                self.high,
            )
            at += len(some)

    def _carry(self, block: _Buffer, level: int, mass: NDArray[np.float64] | None = None) -> None:
        """Put the block on its level; two on one level are thinned together and go to the next."""
        if not block.weight.any():
            return
        mass = self._mass(block) if mass is None else mass
        levels = [*self.levels, *[None] * (level + 1 - len(self.levels))]
        while (other := levels[level]) is not None:
            block = self._collapse(other, block, mass)
            levels[level] = None
            level += 1
            if level == len(levels):
                levels.append(None)
        levels[level] = block
        self.levels = levels

    def _collapse(self, a: _Buffer, b: _Buffer, mass: NDArray[np.float64]) -> _Buffer:
        """Join two buffers and thin them to half, or to as many points as the error allows."""
        left, right = a.points.shape[1], b.points.shape[1]
        n_slots, n = len(a.weight), left + right
        equal = bool((a.weight == b.weight).all())
        size = self._room(a, b, mass, equal=equal)
        joint = _Buffer(np.zeros((n_slots, size), self.dtype), np.zeros(n_slots))
        for first in range(0, n_slots, max(CHUNK // n, 16)):
            part = slice(first, first + max(CHUNK // n, 16))
            points = np.concatenate([a.points[part], b.points[part]], axis=1)
            slot = np.arange(first, first + len(points))
            if equal:
                points.sort(axis=1)
                halve(points, a.weight[part], slot, joint.points, joint.weight, self.low, self.high)
            else:
                weight = np.repeat(np.stack([a.weight[part], b.weight[part]], axis=1), [left, right], axis=1)
                order = np.argsort(points, axis=1)
                thin(points, order, weight, slot, joint.points, joint.weight, self.low, self.high)
        return joint

    def _room(self, a: _Buffer, b: _Buffer, mass: NDArray[np.float64], *, equal: bool) -> int:
        """Return how many points two buffers are to be thinned to: half of them, or more to stay within eps."""
        n: int = a.points.shape[1] + b.points.shape[1]
        least, most, allowed = (
            np.minimum(self.low, self.high),
            np.maximum(self.low, self.high),
            self.eps * mass,
        )
        if equal and n % 2 == 0:
            return n // 2 if (np.maximum(least + a.weight, most) <= allowed).all() else n
        both = (a.weight > 0.0) & (b.weight > 0.0)
        joint = 0.5 * np.where(both, a.weight * a.points.shape[1] + b.weight * b.points.shape[1], 0.0)
        for size in ((n + 1) // 2, n, 2 * n):
            if (most + joint / size <= allowed).all():
                return size
        return 4 * n

    # -- merging and fading --------------------------------------------------------------------------------

    def scale(self, factor: float) -> None:
        """Multiply all weights."""
        self.staged_weight = self.staged_weight * factor
        self.pending = [*self.pending[:2], self.pending[2] * factor]
        self.table = replace(self.table, weight=self.table.weight * factor)
        self.levels = [b and replace(b, weight=b.weight * factor) for b in self.levels]
        self.low, self.high = self.low * factor, self.high * factor

    def merge(self, other: ClassPoints) -> None:
        """Take in the points of the same class from elsewhere, whose weights have the same meaning."""
        self.even = self.even and other.even
        block = self._new_block()
        new = other.thinned[self.slot[other.thinned] < 0]
        block = self._make_slots(new, block)
        slot = self.slot[other.thinned]
        self.low[slot] += other.low
        self.high[slot] += other.high
        theirs_mass = np.zeros(len(self.thinned))  # which the errors just added up are a share of
        theirs_mass[slot] = sum(b.weight * b.points.shape[1] for b in other.levels if b is not None)
        mass = self._mass(block) + theirs_mass
        for level, buffer in enumerate(other.levels):
            if buffer is not None:
                aligned = _Buffer(
                    np.zeros((len(self.thinned), buffer.points.shape[1]), self.dtype),
                    np.zeros(len(self.thinned)),
                )
                aligned.points[slot], aligned.weight[slot] = buffer.points, buffer.weight
                self._carry(aligned, level, mass)
        mine, self.table = split(self.table, self.slot >= 0)
        theirs, counted = split(other.table, self.slot >= 0)
        self._enter(join(mine, theirs), block)
        self._absorb(block, counted)
        self.add_rows(other.staged, np.arange(other.n_staged), other.staged_weight[: other.n_staged])
        if other.n_pending:
            self.add_cells(*(part[: other.n_pending] for part in other.pending))

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """How many points a feature may have beside its counted values and waiting cells."""
        sizes: list[int] = [b.points.shape[1] for b in self.levels if b is not None]
        return sum(sizes) + self.n_staged + 1

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
        for buffer in self.levels:
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
            read_even(points, np.full(len(points), weight[0]), np.arange(len(points)), r, *runs)
        else:
            read_rows(points, np.argsort(points, axis=1), weight, r, *runs)

    @property
    def nbytes(self) -> int:
        """Bytes of the state."""
        arrays = [
            self.staged,
            self.staged_weight,
            *self.pending,
            self.slot,
            self.thinned,
            self.low,
            self.high,
        ]
        for part in (self.table, *self.levels):
            arrays += [] if part is None else vars(part).values()
        return sum(array.nbytes for array in arrays)
