"""Buffers of sorted points on levels, like the digits of a binary counter, and the error bound of thinning."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array
from tamis.summaries.quantile_tables import Table
from tamis.summaries.quantile_thinning import halve, thin

__all__ = ["CHUNK", "Buffer", "Levels"]

CHUNK = 1 << 16  # values sorted at a time, so that they fit in the cache


@dataclass(frozen=True)
class Buffer:
    """Sorted points of equal weight for each thinned feature; a weight of 0 means no points yet."""

    points: Array  # (n_slots, size)
    weight: NDArray[np.float64]  # (n_slots,)

    def widened(self, n_slots: int) -> Buffer:
        """Return the buffer with added empty slots."""
        points, more = self.points, n_slots - len(self.weight)
        return Buffer(
            np.concatenate([points, np.zeros((more, points.shape[1]), points.dtype)]),
            np.concatenate([self.weight, np.zeros(more)]),
        )

    def mass(self) -> NDArray[np.float64]:
        """Return the weight of all points of each slot."""
        mass: NDArray[np.float64] = self.weight * self.points.shape[1]
        return mass


class Levels:
    """The thinned points of some features, one slot per feature. Arrays are replaced, never modified in place.

    Parameters
    ----------
    eps : float
        Largest error by thinning, as a fraction of the weight.
    dtype : str
        Data type of the points.
    """

    def __init__(self, eps: float, dtype: str) -> None:
        self.eps = eps
        self.dtype = dtype
        self.buffers: list[Buffer | None] = []
        self.low = np.empty(0)  # bound by which the weight below any x may be too small, per slot
        self.high = np.empty(0)  # bound by which it may be too large

    @property
    def n_slots(self) -> int:
        """Number of features that are thinned."""
        return len(self.low)

    def size(self, *, even: bool) -> int:
        """Return the number of points of the next block after thinning; rows of equal weight need half as many."""
        levels = (
            max(len(self.buffers), 2) + 3
        )  # each adds an error of 1 / (4 size), a new top level twice that
        size = math.ceil(levels / ((4.0 if even else 2.0) * self.eps))
        top = self.buffers[-1].points.shape[1] if self.buffers and self.buffers[-1] is not None else size
        return size + (size + top) % 2  # two buffers that are thinned together have an even number of points

    def new_block(self, size: int) -> Buffer:
        """Return an empty buffer for the next block."""
        self.low, self.high = self.low.copy(), self.high.copy()
        return Buffer(np.zeros((self.n_slots, size), self.dtype), np.zeros(self.n_slots))

    def add_slots(self, n: int) -> None:
        """Make room for further features."""
        self.low, self.high = (np.r_[old, np.zeros(n)] for old in (self.low, self.high))
        self.buffers = [buffer and buffer.widened(self.n_slots) for buffer in self.buffers]

    def without(self, slots: Array) -> Levels:
        """Return the levels without some features; the slots of the others are renumbered."""
        levels = Levels(self.eps, self.dtype)
        levels.low, levels.high = np.delete(self.low, slots), np.delete(self.high, slots)
        levels.buffers = [
            b and Buffer(np.delete(b.points, slots, axis=0), np.delete(b.weight, slots)) for b in self.buffers
        ]
        return levels

    def mass(self, block: Buffer) -> NDArray[np.float64]:
        """Return the weight of all points of each slot, including those of the block."""
        mass: NDArray[np.float64] = sum((b.mass() for b in self.buffers if b is not None), block.mass())
        return mass

    # -- thinning ------------------------------------------------------------------------------------------

    def thin_rows(self, block: Buffer, points: Array, weight: NDArray[np.float64], slot: Array) -> Array:
        """Thin points whose weights are those of their rows into the block; return the order of the points."""
        if weight.min() == weight.max():
            points.sort(axis=1)
            one = np.full(len(slot), weight[0])
            halve(points, one, slot, block.points, block.weight, self.low, self.high)
            return np.broadcast_to(np.arange(points.shape[1]), points.shape)
        order = np.argsort(points, axis=1)
        by_feature = np.ascontiguousarray(np.broadcast_to(weight, points.shape))
        thin(points, order, by_feature, slot, block.points, block.weight, self.low, self.high)
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
            thin(
                table.value[index], order, weight, slot[some], block.points, block.weight, self.low, self.high
            )
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

    def carry(self, block: Buffer, level: int = 0, mass: NDArray[np.float64] | None = None) -> None:
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

    def _collapse(self, a: Buffer, b: Buffer, mass: NDArray[np.float64]) -> Buffer:
        """Merge two buffers and thin them to half, or to as few points as the error allows."""
        left, right = a.points.shape[1], b.points.shape[1]
        n_slots, n = len(a.weight), left + right
        equal = bool((a.weight == b.weight).all())
        size = self._room(a, b, mass, equal=equal)
        joint = Buffer(np.zeros((n_slots, size), self.dtype), np.zeros(n_slots))
        for first in range(0, n_slots, max(CHUNK // n, 16)):
            part = slice(first, first + max(CHUNK // n, 16))
            points = np.concatenate([a.points[part], b.points[part]], axis=1)
            slot = np.arange(first, first + len(points), dtype=np.int32)
            if equal:
                points.sort(axis=1)
                halve(points, a.weight[part], slot, joint.points, joint.weight, self.low, self.high)
            else:
                weight = np.repeat(np.stack([a.weight[part], b.weight[part]], axis=1), [left, right], axis=1)
                order = np.argsort(points, axis=1)
                thin(points, order, weight, slot, joint.points, joint.weight, self.low, self.high)
        return joint

    def _room(self, a: Buffer, b: Buffer, mass: NDArray[np.float64], *, equal: bool) -> int:
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

    # -- merging and fading --------------------------------------------------------------------------------

    def merge(self, other: Levels, slot: Array, block: Buffer) -> None:
        """Add other levels, whose slots correspond to `slot` here; `block` must be carried next."""
        self.low[slot] += other.low
        self.high[slot] += other.high
        aligned = [buffer and self._align(buffer, slot) for buffer in other.buffers]
        mass = self.mass(block) + sum(buffer.mass() for buffer in aligned if buffer is not None)
        for level, buffer in enumerate(aligned):
            if buffer is not None:
                self.carry(buffer, level, mass)

    def _align(self, buffer: Buffer, slot: Array) -> Buffer:
        aligned = Buffer(np.zeros((self.n_slots, buffer.points.shape[1]), self.dtype), np.zeros(self.n_slots))
        aligned.points[slot], aligned.weight[slot] = buffer.points, buffer.weight
        return aligned

    def scaled(self, factor: float) -> Levels:
        """Return the levels with all weights multiplied."""
        levels = Levels(self.eps, self.dtype)
        levels.buffers = [b and replace(b, weight=b.weight * factor) for b in self.buffers]
        levels.low, levels.high = self.low * factor, self.high * factor
        return levels

    def stored_as(self, dtype: str) -> Levels:
        """Return the levels with points of another data type."""
        levels = Levels(self.eps, dtype)
        levels.buffers = [b and replace(b, points=b.points.astype(dtype)) for b in self.buffers]
        levels.low, levels.high = self.low, self.high
        return levels

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held = [b.points.nbytes + b.weight.nbytes for b in self.buffers if b is not None]
        return sum(held) + self.low.nbytes + self.high.nbytes
