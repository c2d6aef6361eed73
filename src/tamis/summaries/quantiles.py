"""Quantiles of every feature within every class, in one pass and bounded memory, with a certified rank error.

Each class keeps its own points, so its counts are its own. A block of 2k rows is sorted, feature by feature, and
every second value is kept with twice the weight; two such buffers are joined, sorted and thinned in the same way, and
so on like a binary counter (Munro and Paterson 1980; Manku, Rajagopalan and Lindsay 1998). All features share one
layout, so that sorting runs over one contiguous array. How much each thinning can have moved a rank is known and
added up: that sum is the certificate, whatever the values and their order.

* A feature with few distinct values is not thinned: its values are counted one by one, which is exact.
* Weights: n sorted points of weights w are thinned to m points of equal weight sum(w) / m, the values at the ranks
  (i + 1/2) sum(w) / m. This serves weighted and faded rows, missing values and sparse columns.
* Fading is forward decay (Cormode, Shkapenyuk, Srivastava and Xu 2009): new rows weigh more and more.
* The zeros that CSR rows do not store are not points; their weight is that of all CSR rows less that of their cells.
* The size k grows with the number of levels, so that the error stays below eps however long the stream is.

Deviations from Wang and Barbu (2021), whose summary this replaces: their Algorithm 1 stores a pruned summary back at
the level it came from, so its error has no bound; their Algorithm 3 compares the count of one bin with cumulative cuts.
Here bin h holds the values x with q_h < x <= q_(h+1), q_h the smallest value with F(q_h) >= h / K, ties included.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from tamis._check import Array, Rows, check_number
from tamis._jit import njit

__all__ = ["QuantileSummary"]

_CHUNK = 1 << 16  # values sorted at a time: they stay in the cache
_LARGEST_GAIN = 1e100
_TOLERANCE = 1e-12  # relative; cumulative weights that differ by less are equal


@njit()
def _count_unfit(X: Array, largest: float) -> int:
    """Count the values that are NaN, infinite or too large."""
    unfit = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            unfit += not abs(X[i, j]) <= largest
    return unfit


@njit(strict=True)
def _weigh_missing(X: Array, codes: Array, weight: Array, largest: float, missing: Array) -> bool:
    """Add the weight of the NaN of each class and feature; False if another value is unfit."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if x != x:
                missing[codes[i], j] += weight[i]
            elif not abs(x) <= largest:
                return False
    return True


@njit()
def _columns(X: Array, rows: Array, first: int, block: Array) -> None:
    """Copy the rows, from column `first` on, feature by feature; sixteen rows at a time fill a cache line."""
    for start in range(0, rows.shape[0], 16):
        stop = min(start + 16, rows.shape[0])
        for f in range(block.shape[0]):
            for i in range(start, stop):
                block[f, i] = X[rows[i], first + f]


@njit(strict=True)
def _halve(
    points: Array, weight: Array, slot: Array, kept: Array, kept_weight: Array, low: Array, high: Array
) -> None:
    """Thin sorted points of one weight per feature; NaN come last and are no points.

    Of each pair the first or the second is kept, which makes the weight below any x too large or too small by one
    point's weight at most: the choice keeps both sums of errors even.
    """
    size = kept.shape[1]
    for f in range(points.shape[0]):
        s = slot[f]
        if s < 0:
            continue
        n, w = points.shape[1], weight[f]
        while n > 0 and points[f, n - 1] != points[f, n - 1]:
            n -= 1
        if n == 0 or w == 0.0:
            continue
        kept_weight[s] = w * n / size
        if n == 2 * size:
            odd = 1 if high[s] > low[s] else 0
            for q in range(size):
                kept[s, q] = points[f, 2 * q + odd]
            if odd:
                low[s] += w
            else:
                high[s] += w
        else:
            for q in range(size):
                kept[s, q] = points[f, math.ceil((q + 0.5) * n / size) - 1]
            if size % n != 0:
                low[s] += 0.5 * kept_weight[s]
                high[s] += 0.5 * kept_weight[s]


@njit(strict=True)
def _thin(
    points: Array,
    order: Array,
    weight: Array,
    slot: Array,
    kept: Array,
    kept_weight: Array,
    low: Array,
    high: Array,
) -> None:
    """Thin points of any weights, given their order, to points of one weight per feature."""
    size = kept.shape[1]
    for f in range(points.shape[0]):
        s = slot[f]
        if s < 0:
            continue
        n, total, least, most = 0, 0.0, np.inf, 0.0
        for i in range(points.shape[1]):
            w = weight[f, i]
            if w > 0.0 and points[f, i] == points[f, i]:
                n, total, least, most = n + 1, total + w, min(least, w), max(most, w)
        if n == 0:
            continue
        step = total / size
        kept_weight[s] = step
        half, loss_low, loss_high = 0.5 * step, 0.5 * step, 0.5 * step
        if least == most:
            if size % n == 0:
                loss_low = loss_high = 0.0
            elif n == 2 * size:
                odd = high[s] > low[s]
                half, loss_low, loss_high = (0.75 * step, least, 0.0) if odd else (0.25 * step, 0.0, least)
        q, below = 0, 0.0
        for i in range(order.shape[1]):
            x, w = points[f, order[f, i]], weight[f, order[f, i]]
            if w == 0.0 or x != x:
                continue
            below += w
            while q < size and half + q * step <= below:
                kept[s, q] = x
                q += 1
        for i in range(q, size):  # rounding
            kept[s, i] = kept[s, max(q - 1, 0)]
        low[s] += loss_low
        high[s] += loss_high


@njit(strict=True)
def _runs(
    points: Array,
    order: Array,
    weight: Array,
    slot: Array,
    ends: Array,
    values: Array,
    weights: Array,
    at: int,
) -> int:
    """Append each distinct value of the features without a slot and its weight; return the new end."""
    for f in range(points.shape[0]):
        if slot[f] < 0:
            begin = at
            for i in range(order.shape[1]):
                x, w = points[f, order[f, i]], weight[order[f, i]]
                if x != x:
                    break
                if at > begin and values[at - 1] == x:
                    weights[at - 1] += w
                else:
                    values[at], weights[at] = x, w
                    at += 1
        ends[f] = at
    return at


@njit(strict=True)
def _union(
    start_a: Array, value_a: Array, weight_a: Array, start_b: Array, value_b: Array, weight_b: Array,
    start: Array, value: Array, weight: Array,
) -> int:  # fmt: skip
    """Join two tables of (feature, value) in order; equal values add up. Return the length."""
    at = 0
    for j in range(start.shape[0] - 1):
        a, b = start_a[j], start_b[j]
        while a < start_a[j + 1] or b < start_b[j + 1]:
            if b == start_b[j + 1] or (a < start_a[j + 1] and value_a[a] <= value_b[b]):
                value[at], weight[at] = value_a[a], weight_a[a]
                if b < start_b[j + 1] and value_b[b] == value_a[a]:
                    weight[at] += weight_b[b]
                    b += 1
                a += 1
            else:
                value[at], weight[at] = value_b[b], weight_b[b]
                b += 1
            at += 1
        start[j + 1] = at
    return at


@dataclass(frozen=True)
class _Table:
    """Distinct values of each feature in order, with their weights: those of feature j at start[j]:start[j + 1]."""

    start: NDArray[np.int64]
    value: Array
    weight: NDArray[np.float64]


def _empty_table(n_features: int, dtype: str) -> _Table:
    return _Table(np.zeros(n_features + 1, np.int64), np.empty(0, dtype), np.empty(0))


def _join(a: _Table, b: _Table) -> _Table:
    room = len(a.value) + len(b.value)
    start, value, weight = np.zeros_like(a.start), np.empty(room, a.value.dtype), np.empty(room)
    n = _union(a.start, a.value, a.weight, b.start, b.value, b.weight, start, value, weight)
    return _Table(start, value[:n].copy(), weight[:n].copy())


def _split(table: _Table, chosen: NDArray[np.bool_]) -> tuple[_Table, _Table]:
    """Return the table of the chosen features and that of the others."""
    lengths = np.diff(table.start)
    inside = np.repeat(chosen, lengths)
    parts = []
    for mask, who in ((inside, chosen), (~inside, ~chosen)):
        start = np.concatenate([[0], np.cumsum(np.where(who, lengths, 0))])
        parts.append(_Table(start, table.value[mask], table.weight[mask]))
    return parts[0], parts[1]


@dataclass(frozen=True)
class _Buffer:
    """Sorted points of each thinned feature, all of one weight; weight 0: no points yet."""

    points: Array  # (n_slots, size)
    weight: NDArray[np.float64]  # (n_slots,)


@njit(strict=True)
def _group(columns: Array, order: Array, next_place: Array, grouped: Array) -> None:
    """Write the places of the cells column by column, keeping their order within each."""
    for i in order:
        column = columns[i]
        grouped[next_place[column]] = i
        next_place[column] += 1


class _Runs(NamedTuple):
    """Several sorted runs per feature: run r of feature f at start[f, r]:stop[f, r]."""

    values: NDArray[np.float64]
    below: NDArray[np.float64]  # weight of the run up to and including each value
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


class _ClassPoints:
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
        self.table = _empty_table(n_features, dtype)  # the features counted value by value
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
        for first in range(0, n_features, max(_CHUNK // n, 16)):
            slot = self.slot[first : first + max(_CHUNK // n, 16)]
            points = np.empty((len(slot), n), self.dtype)
            _columns(X, rows, first, points)
            order = self._thin_into(block, points, weight, slot)
            if (slot < 0).any():
                part = ends[first + 1 : first + 1 + len(slot)]
                filled = _runs(points, order, weight, slot, part, values, weights, filled)
            else:
                ends[first + 1 : first + 1 + len(slot)] = filled
        self._absorb(block, _Table(ends, values[:filled], weights[:filled]))

    def _thin_into(self, block: _Buffer, points: Array, weight: NDArray[np.float64], slot: Array) -> Array:
        """Thin points of shared weights into the slots of the block; return the order of the points."""
        if weight.min() == weight.max():
            points.sort(axis=1)
            _halve(
                points, np.full(len(slot), weight[0]), slot, block.points, block.weight, self.low, self.high
            )
            return np.broadcast_to(np.arange(points.shape[1]), points.shape)
        order = np.argsort(points, axis=1)
        by_feature = np.ascontiguousarray(np.broadcast_to(weight, points.shape))
        _thin(points, order, by_feature, slot, block.points, block.weight, self.low, self.high)
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
                thinned, counted = _split(cells, self.slot >= 0)
                self._thin_table(block, thinned)
                self._absorb(block, counted)

    def _make_room(self, n: int) -> None:
        room = len(self.pending[0])
        if room < n:
            more = min(max(n, 2 * room), max(n, self.most_pending)) - room
            self.pending = [np.concatenate([part, np.empty(more, part.dtype)]) for part in self.pending]

    def cells(self) -> _Table:
        """Return the waiting cells as a table."""
        n_features = len(self.slot)
        if self.n_pending == 0:
            return _empty_table(n_features, self.dtype)
        columns, values, weights = (part[: self.n_pending] for part in self.pending)
        order = np.empty(self.n_pending, np.int64)
        _group(
            columns,
            np.argsort(values),
            np.r_[0, np.cumsum(np.bincount(columns, minlength=n_features))],
            order,
        )
        columns, values, weights = columns[order], values[order], weights[order]
        new = np.flatnonzero(np.r_[True, (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])])
        start = np.zeros(n_features + 1, np.int64)
        np.cumsum(np.bincount(columns[new], minlength=n_features), out=start[1:])
        return _Table(start, values[new], np.add.reduceat(weights, new))

    def widened(self, n_features: int) -> _ClassPoints:
        """Return the same points with further features, of which none were stored; no dense row may be staged."""
        found, more = copy.copy(self), (0, n_features - len(self.slot))
        found.staged = np.empty((0, n_features), self.dtype)
        found.slot = np.pad(self.slot, more, constant_values=-1)
        found.table = replace(self.table, start=np.pad(self.table.start, more, mode="edge"))
        return found

    # -- levels --------------------------------------------------------------------------------------------

    def _absorb(self, block: _Buffer, counted: _Table) -> None:
        """Add to the counted values; thin the features that have too many of them; carry the block upwards."""
        table = _join(self.table, counted) if len(counted.value) else self.table
        many = np.diff(table.start) > self.distinct
        if many.any():
            crowded, table = _split(table, many)
            block = self._make_slots(np.flatnonzero(many), block)
            self._enter(crowded, block)
        self.table = table
        self._carry(block, 0)

    def _enter(self, table: _Table, block: _Buffer) -> None:
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

    def _thin_table(self, block: _Buffer, table: _Table) -> None:
        """Thin the values of some features into their slots of the block."""
        lengths = np.diff(table.start)
        features = np.flatnonzero(lengths)
        features = features[np.argsort(lengths[features], kind="stable")]
        at = 0
        while at < len(features):
            n = max(1, _CHUNK // int(lengths[features[min(at + 255, len(features) - 1)]]))
            some = features[at : at + min(n, 256)]
            width = int(lengths[some].max())
            index = table.start[some][:, None] + np.arange(width)
            inside = np.arange(width) < lengths[some][:, None]
            index = np.where(inside, index, 0)
            weight = np.where(inside, table.weight[index], 0.0)
            order = np.broadcast_to(np.arange(width), inside.shape)
            _thin(
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
        for first in range(0, n_slots, max(_CHUNK // n, 16)):
            part = slice(first, first + max(_CHUNK // n, 16))
            points = np.concatenate([a.points[part], b.points[part]], axis=1)
            slot = np.arange(first, first + len(points))
            if equal:
                points.sort(axis=1)
                _halve(points, a.weight[part], slot, joint.points, joint.weight, self.low, self.high)
            else:
                weight = np.repeat(np.stack([a.weight[part], b.weight[part]], axis=1), [left, right], axis=1)
                order = np.argsort(points, axis=1)
                _thin(points, order, weight, slot, joint.points, joint.weight, self.low, self.high)
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

    def merge(self, other: _ClassPoints) -> None:
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
        mine, self.table = _split(self.table, self.slot >= 0)
        theirs, counted = _split(other.table, self.slot >= 0)
        self._enter(_join(mine, theirs), block)
        self._absorb(block, counted)
        self.add_rows(other.staged, np.arange(other.n_staged), other.staged_weight[: other.n_staged])
        if other.n_pending:
            self.add_cells(*(part[: other.n_pending] for part in other.pending))

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def n_runs(self) -> int:
        """How many sorted runs hold the points of a feature."""
        return len([b for b in self.levels if b is not None]) + 4

    @property
    def width(self) -> int:
        """How many points a feature may have beside its counted values and waiting cells."""
        sizes: list[int] = [b.points.shape[1] for b in self.levels if b is not None]
        return sum(sizes) + self.n_staged + 1

    def read(self, first: int, stop: int, cells: _Table, zero: Array, r: int, runs: _Runs) -> int:
        """Write the runs of some features, from run r on; return the next run."""
        slot = self.slot[first:stop]
        points = np.empty((stop - first, self.n_staged), self.dtype)
        _columns(self.staged, np.arange(self.n_staged), first, points)
        weight = self.staged_weight[: self.n_staged]
        if self.n_staged and weight.min() == weight.max():
            points.sort(axis=1)
            order = np.tile(np.arange(self.n_staged), (len(points), 1))
        else:
            order = np.argsort(points, axis=1)
        _read_rows(points, order, weight, r, *runs)
        for i, table in enumerate((self.table, cells)):
            _read_table(first, table.start, table.value, table.weight, r + 1 + i, *runs)
        _read_zero(zero, r + 3, *runs)
        r += 4
        for buffer in self.levels:
            if buffer is not None:
                _read_buffer(buffer.points, buffer.weight, slot, r, *runs)
                r += 1
        return r

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


# -- read-outs: the points of a feature are several sorted runs, each with its cumulative weights ---------------


@njit(strict=True)
def _read_buffer(
    points: Array, weight: Array, slot: Array, r: int, values: Array, below: Array, start: Array, stop: Array
) -> None:
    for f in range(slot.shape[0]):
        at = stop[f, r - 1] if r else start[f, 0]
        start[f, r] = at
        s = slot[f]
        if s >= 0 and weight[s] > 0.0:
            for i in range(points.shape[1]):
                values[at], below[at] = points[s, i], weight[s] * (i + 1)
                at += 1
        stop[f, r] = at


@njit(strict=True)
def _read_rows(
    points: Array, order: Array, weight: Array, r: int, values: Array, below: Array, start: Array, stop: Array
) -> None:
    for f in range(points.shape[0]):
        at = stop[f, r - 1] if r else start[f, 0]
        start[f, r] = at
        total = 0.0
        for i in range(points.shape[1]):
            x = points[f, order[f, i]]
            if x != x:
                break
            total += weight[order[f, i]]
            values[at], below[at] = x, total
            at += 1
        stop[f, r] = at


@njit(strict=True)
def _read_table(
    first: int, begin: Array, value: Array, weight: Array, r: int, values: Array, below: Array, start: Array,
    stop: Array,
) -> None:  # fmt: skip
    for f in range(start.shape[0]):
        at = stop[f, r - 1] if r else start[f, 0]
        start[f, r] = at
        total = 0.0
        for i in range(begin[first + f], begin[first + f + 1]):
            total += weight[i]
            values[at], below[at] = value[i], total
            at += 1
        stop[f, r] = at


@njit(strict=True)
def _read_zero(weight: Array, r: int, values: Array, below: Array, start: Array, stop: Array) -> None:
    for f in range(start.shape[0]):
        at = stop[f, r - 1] if r else start[f, 0]
        start[f, r] = at
        if weight[f] > 0.0:
            values[at], below[at] = 0.0, weight[f]
            at += 1
        stop[f, r] = at


@njit(strict=True)
def _up_to(values: Array, low: int, high: int, x: float) -> int:
    """Return the first place in [low, high) whose value is larger than x."""
    while low < high:
        mid = (low + high) >> 1
        if values[mid] <= x:
            low = mid + 1
        else:
            high = mid
    return low


@njit(strict=True)
def _before(values: Array, low: int, high: int, x: float) -> int:
    """Return the first place in [low, high) whose value is not smaller than x."""
    while low < high:
        mid = (low + high) >> 1
        if values[mid] < x:
            low = mid + 1
        else:
            high = mid
    return low


@njit(strict=True)
def _select(values: Array, below: Array, start: Array, stop: Array, fractions: Array, found: Array) -> None:
    """Find the smallest value up to which at least a fraction of the weight lies, for ascending fractions."""
    n_runs = start.shape[1]
    low, high, place = np.empty(n_runs, np.int64), np.empty(n_runs, np.int64), np.empty(n_runs, np.int64)
    for f in range(start.shape[0]):
        total = 0.0
        for r in range(n_runs):
            low[r] = start[f, r]
            if stop[f, r] > start[f, r]:
                total += below[stop[f, r] - 1]
        for h in range(fractions.shape[0]):
            need, best = fractions[h] * total - _TOLERANCE * total, np.nan
            for r in range(n_runs):
                high[r] = stop[f, r]
            while True:
                widest = 0
                for r in range(1, n_runs):
                    if high[r] - low[r] > high[widest] - low[widest]:
                        widest = r
                if high[widest] == low[widest]:
                    break
                x, weight = values[(low[widest] + high[widest]) >> 1], 0.0
                for r in range(n_runs):
                    place[r] = _up_to(values, low[r], high[r], x)
                    if place[r] > start[f, r]:
                        weight += below[place[r] - 1]
                if weight >= need:
                    best = x
                    for r in range(n_runs):
                        high[r] = _before(values, low[r], place[r], x)
                else:
                    for r in range(n_runs):
                        low[r] = place[r]
            if best != best and total > 0.0:  # a fraction of 1 and rounding
                for r in range(n_runs):
                    if stop[f, r] > start[f, r] and not values[stop[f, r] - 1] <= best:
                        best = values[stop[f, r] - 1]
            found[f, h] = best


@njit(strict=True)
def _weigh(
    values: Array, below: Array, start: Array, stop: Array, of_class: Array, cuts: Array, found: Array
) -> None:
    """Add up the weight of each class up to each cut."""
    for f in range(start.shape[0]):
        for r in range(start.shape[1]):
            for h in range(cuts.shape[1]):
                place = _up_to(values, start[f, r], stop[f, r], cuts[f, h])
                if place > start[f, r]:
                    found[f, h, of_class[r]] += below[place - 1]


class QuantileSummary:
    """Weights of the values of each feature up to any cut, within each class; mergeable.

    Parameters
    ----------
    n_features, n_classes : int
    eps : float in (0, 0.5), default=0.01
        The weight up to any cut is off by at most `eps` times the whole, in each class and in all of them together,
        for any values in any order. `rank_error` returns the bound of the very state, usually smaller.
    dtype : float32 or float64, default=float32
        How values are kept. As float32 they are rounded on entry, which never changes their order but may make
        neighbours equal.

    Notes
    -----
    Counts and class totals are exact up to 2**53 rows, and so is everything about a feature with at most 1 / eps
    distinct values in each class. Memory per feature and class: at most (L + 2) k values, where L = log2(n / k) and
    k = (L + 3) / (4 eps); k doubles where rows differ in weight, values are missing or rows are sparse. CSR rows cost
    O(stored values) in time; a batch is the same as its rows one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(100_000, 2)), rng.integers(0, 2, 100_000)
    >>> X[:, 1] = np.round(X[:, 1])
    >>> summary = QuantileSummary(n_features=2, n_classes=2)
    >>> summary.update(X, y)
    True
    >>> np.abs(summary.quantile([0.25, 0.5]) - [[-0.674, 0.0], [-1.0, 0.0]]).max() < 0.02
    np.True_
    >>> summary.rank_error().round(4)  # the second feature has few distinct values
    array([0.0073, 0.    ])
    >>> int(summary.counts(5).sum()), summary.nbytes < X.nbytes / 50
    (200000, True)
    """

    def __init__(
        self, n_features: int, n_classes: int, eps: float = 0.01, dtype: DTypeLike = np.float32
    ) -> None:
        check_number("eps", eps, low=0.0, high=0.5, open_low=True, open_high=True)
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        self.eps = float(eps)
        self.dtype = np.dtype(dtype).name
        self.n_features = n_features
        self._gain = np.ones(n_classes)  # weight of a new row of each class
        self._weight = np.zeros(n_classes)
        self._sparse_weight = np.zeros(n_classes)  # of CSR rows alone
        self._stored = np.zeros(
            (n_classes, 0)
        )  # of stored cells; (n_classes, n_features) once CSR rows were seen
        self._missing = np.zeros((n_classes, 0))  # of NaN; (n_classes, n_features) once one was seen
        self._points = [_ClassPoints(n_features, self.eps, self.dtype) for _ in range(n_classes)]

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self._weight)

    def grow(self, n_classes: int) -> None:
        """Make room for new classes, with codes after the old ones."""
        n = n_classes - self.n_classes
        self._gain = np.r_[self._gain, np.ones(n)]
        self._weight, self._sparse_weight = (
            np.r_[w, np.zeros(n)] for w in (self._weight, self._sparse_weight)
        )
        self._stored, self._missing = (
            np.concatenate([w, np.zeros((n, w.shape[1]))]) for w in (self._stored, self._missing)
        )
        new = [_ClassPoints(self.n_features, self.eps, self.dtype) for _ in range(n)]
        self._points = [*self._points, *new]

    def widen(self, n_features: int) -> None:
        """Make room for further features, which were 0 in all rows so far; these must have been CSR rows.

        Raises
        ------
        ValueError
            If some rows were dense.
        """
        if not np.array_equal(self._weight, self._sparse_weight):
            raise ValueError(
                "Dense rows have a fixed number of columns: give CSR rows from the first one on."
            )
        more = ((0, 0), (0, n_features - self.n_features))
        self._stored, self._missing = (
            np.pad(a, more) if a.size else a for a in (self._stored, self._missing)
        )
        self._points = [points.widened(n_features) for points in self._points]
        self.n_features = n_features

    def reorder(self, order: Array) -> None:
        """Give each class another code: class c becomes what class `order[c]` was."""
        for name in ("_gain", "_weight", "_sparse_weight", "_stored", "_missing"):
            setattr(self, name, getattr(self, name)[order])
        self._points = [self._points[c] for c in order]

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self, X: Rows, codes: Array, sample_weight: Array | None = None, keep: float | Array = 1.0
    ) -> bool:
        """Take in a batch of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
            NaN is passed over, feature by feature.
        codes : ndarray of shape (n_rows,), int64
            Class of each row, below `n_classes`.
        sample_weight : ndarray of shape (n_rows,), optional
            Not negative.
        keep : float or ndarray of shape (n_classes,), in (0, 1]
            What the weight of all earlier rows (of each class) is multiplied by first.

        Returns
        -------
        bool
            False, and nothing is changed, if a value is infinite or too large for `dtype`.
        """
        gain = self._gain / keep
        weight = gain[codes] if sample_weight is None else gain[codes] * sample_weight
        largest = float(np.finfo(self.dtype).max)
        missing = np.zeros((0, 0))
        values = X.data.reshape(1, -1) if sp.issparse(X) else X
        if _count_unfit(values, largest):
            if sp.issparse(X):
                if not (np.isnan(X.data) | (np.abs(X.data) <= largest)).all():
                    return False
            else:
                missing = np.zeros((self.n_classes, self.n_features))
                if not _weigh_missing(X, codes, weight, largest, missing):
                    return False
        self._gain = gain
        self._weight = self._weight + np.bincount(codes, weight, minlength=self.n_classes)
        if sp.issparse(X):
            self._take_csr(X, codes, weight)
        else:
            self._take_dense(X, codes, weight, missing)
        if gain.max() > _LARGEST_GAIN:
            self._rescale()
        return True

    def _take_dense(self, X: Array, codes: Array, weight: Array, missing: Array) -> None:
        if missing.size:
            self._missing = self._missing + missing if self._missing.size else missing
        for c in np.unique(codes).tolist():
            rows = np.flatnonzero((codes == c) & (weight > 0.0))
            if len(rows):
                points = self._points[c]
                points.even &= not (missing.size and missing[c].any())
                points.even &= bool((weight[rows] == points.first_weight(weight[rows[0]])).all())
                points.add_rows(X, rows, weight[rows])

    def _take_csr(self, X: Rows, codes: Array, weight: Array) -> None:
        self._sparse_weight = self._sparse_weight + np.bincount(codes, weight, minlength=self.n_classes)
        if not self._stored.size:
            self._stored = np.zeros((self.n_classes, self.n_features))
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        cell_weight, cell_code = weight[row], codes[row]
        np.add.at(self._stored, (cell_code, X.indices), cell_weight)
        known = cell_weight > 0.0
        nan = np.isnan(X.data)
        if nan.any():
            known &= ~nan
            if not self._missing.size:
                self._missing = np.zeros((self.n_classes, self.n_features))
            np.add.at(self._missing, (cell_code[nan], X.indices[nan]), cell_weight[nan])
        for c in np.unique(cell_code).tolist():
            cells = np.flatnonzero(known & (cell_code == c))
            self._points[c].add_cells(X.indices[cells], X.data[cells], cell_weight[cells])

    def _rescale(self) -> None:
        """Divide all weights by the gain: the same state in smaller numbers."""
        for c, points in enumerate(self._points):
            if self._gain[c] != 1.0:
                points = copy.copy(points)
                points.scale(1.0 / self._gain[c])
                self._points = [*self._points[:c], points, *self._points[c + 1 :]]
        self._weight, self._sparse_weight = self._weight / self._gain, self._sparse_weight / self._gain
        self._stored, self._missing = self._stored / self._gain[:, None], self._missing / self._gain[:, None]
        self._gain = np.ones_like(self._gain)

    def merge(self, other: QuantileSummary) -> None:
        """Take in what another summary of the same features has seen; "now" is now for both.

        Raises
        ------
        ValueError
            If the numbers of features or classes, eps or dtype differ.
        """
        mine, theirs = (
            f"{s.n_features} features, {s.n_classes} classes, eps={s.eps:g}, {s.dtype}" for s in (self, other)
        )
        if mine != theirs or self.eps != other.eps:
            raise ValueError(f"Cannot merge quantiles of {theirs} into quantiles of {mine}.")
        other = copy.copy(other)
        other._rescale()
        self._rescale()
        self._weight = self._weight + other._weight
        self._sparse_weight = self._sparse_weight + other._sparse_weight
        self._stored = _sum(self._stored, other._stored)
        self._missing = _sum(self._missing, other._missing)
        self._points = [copy.copy(points) for points in self._points]
        for points, more in zip(self._points, other._points, strict=True):
            points.merge(more)

    # -- read-outs -----------------------------------------------------------------------------------------

    def weight(self) -> NDArray[np.float64]:
        """Return the faded number of rows of each class, shape (n_classes,)."""
        return self._weight / self._gain

    def count(self) -> NDArray[np.float64]:
        """Return the faded number of values of each class and feature that are not missing, exactly."""
        missing = self._missing if self._missing.size else np.zeros((self.n_classes, 1))
        found = np.maximum(self._weight[:, None] - missing, 0.0) / self._gain[:, None]
        return found + np.zeros((1, self.n_features))

    def quantile(self, q: float | Array) -> NDArray[np.float64]:
        """Return the smallest value x with F(x) >= q.

        Parameters
        ----------
        q : float or array-like of shape (n,), in [0, 1]

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, n)
            NaN where a feature has no value.
        """
        fractions = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((fractions >= 0.0) & (fractions <= 1.0)).all():
            raise ValueError(f"q must lie in [0, 1], got {q!r}.")
        order = np.argsort(fractions)
        found = np.empty((self.n_features, len(fractions)))
        for first, runs, _ in self._in_one_scale()._runs():
            part = np.empty((len(runs.start), len(fractions)))
            _select(runs.values, runs.below, runs.start, runs.stop, fractions[order], part)
            found[first : first + len(part), order] = part
        return found[:, 0] if np.ndim(q) == 0 else found

    def weight_below(self, cuts: Array) -> NDArray[np.float64]:
        """Return the weight of the values up to and including each cut.

        Parameters
        ----------
        cuts : array-like of shape (n_features, n)

        Returns
        -------
        ndarray of shape (n_features, n, n_classes)
        """
        cuts = np.ascontiguousarray(cuts, dtype=np.float64)
        found = np.zeros((*cuts.shape, self.n_classes))
        for first, runs, of_class in self._runs():
            part = slice(first, first + len(runs.start))
            _weigh(runs.values, runs.below, runs.start, runs.stop, of_class, cuts[part], found[part])
        return found / self._gain

    def counts(self, n_bins: int) -> NDArray[np.float64]:
        """Return the weight of each class in each of `n_bins` bins of about equal weight.

        Bin h holds the values x with q_h < x <= q_(h+1), where q_h is the smallest value with F(q_h) >= h / n_bins. A
        value that is frequent enough fills several bins' room, so that some are empty.

        Returns
        -------
        ndarray of shape (n_features, n_bins, n_classes)
            The sum over the bins is `count`, to the last bit.
        """
        check_number("n_bins", n_bins, low=1, integer=True)
        fractions = np.arange(1, n_bins) / n_bins
        below = np.zeros((self.n_features, n_bins + 1, self.n_classes))
        now = self._in_one_scale()
        for first, runs, of_class in now._runs():
            cuts = np.empty((len(runs.start), n_bins - 1))
            _select(runs.values, runs.below, runs.start, runs.stop, fractions, cuts)
            part = below[first : first + len(cuts), 1:-1]
            _weigh(runs.values, runs.below, runs.start, runs.stop, of_class, cuts, part)
        below /= now._gain
        below[:, -1] = self.count().T
        below = np.where(below > (1.0 - _TOLERANCE) * below[:, -1:], below[:, -1:], below)  # rounding
        return np.diff(below, axis=1)

    def rank_error(self, *, by_class: bool = False) -> NDArray[np.float64]:
        """Return the certified bound of the error of a weight up to any cut, as a fraction of all.

        Returns
        -------
        ndarray of shape (n_features,), or (n_features, n_classes) with `by_class`
            0 where everything is exact.
        """
        low, high = np.zeros((2, self.n_classes, self.n_features))
        for c, points in enumerate(self._points):
            low[c, points.thinned], high[c, points.thinned] = points.low, points.high
        low, high = low / self._gain[:, None], high / self._gain[:, None]
        count = self.count()
        if not by_class:
            low, high, count = (part.sum(axis=0) for part in (low, high, count))
        error = np.maximum(low, high)
        return np.divide(error, count, out=np.zeros_like(error), where=count > 0.0).T

    def _in_one_scale(self) -> QuantileSummary:
        """Return itself, or the same in other numbers where the classes fade by clocks of their own."""
        if (self._gain == self._gain[:1]).all():
            return self
        now = copy.copy(self)
        now._rescale()
        return now

    def _runs(self) -> Iterator[tuple[int, _Runs, Array]]:
        """Yield the first feature of a chunk, the runs of its features, and which class each run is of."""
        width = sum(points.width for points in self._points)
        chunk = max(_CHUNK // max(width, 1), 16)
        cells = [points.cells() for points in self._points]
        zeros = np.zeros((self.n_classes, self.n_features))
        if self._stored.size:
            zeros = np.maximum(self._sparse_weight[:, None] - self._stored, 0.0)
        of_class = np.concatenate([np.full(points.n_runs, c) for c, points in enumerate(self._points)])
        for first in range(0, self.n_features, chunk):
            stop = min(first + chunk, self.n_features)
            room = np.zeros(stop - first, np.int64)
            for points, table in zip(self._points, cells, strict=True):
                room += (
                    points.width
                    + np.diff(table.start[first : stop + 1])
                    + np.diff(points.table.start[first : stop + 1])
                )
            starts = np.zeros((stop - first, len(of_class)), np.int64)
            starts[:, 0] = np.cumsum(room) - room
            runs = _Runs(np.empty(room.sum()), np.empty(room.sum()), starts, np.zeros_like(starts))
            r = 0
            for points, table, zero in zip(self._points, cells, zeros, strict=True):
                r = points.read(first, stop, table, zero[first:stop], r, runs)
            yield first, runs, of_class

    @property
    def nbytes(self) -> int:
        """Bytes of the state."""
        arrays = (self._gain, self._weight, self._sparse_weight, self._stored, self._missing)
        return sum(a.nbytes for a in arrays) + sum(points.nbytes for points in self._points)


def _sum(a: Array, b: Array) -> Array:
    """Add two arrays of weights, of which either may be empty."""
    if a.size and b.size:
        return a + b
    return a if a.size else b
