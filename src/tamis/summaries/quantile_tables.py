"""Exact weights of the values of features with few distinct values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array

__all__ = ["Table", "distinct_runs", "empty_table", "join", "split"]


@njit(strict=True)
def distinct_runs(
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
    """Merge two sorted tables of (feature, value), adding the weights of equal values; return the length."""
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
class Table:
    """Distinct values of each feature in order, with their weights: those of feature j at start[j]:start[j + 1]."""

    start: NDArray[np.int64]
    value: Array
    weight: NDArray[np.float64]

    def stored_as(self, dtype: str) -> Table:
        """Return the table with values of another data type; the weights of values that become equal are added."""
        value = self.value.astype(dtype)
        feature = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        new = np.r_[True, (value[1:] != value[:-1]) | (feature[1:] != feature[:-1])][: len(value)]
        places = np.flatnonzero(new)
        weight = np.add.reduceat(self.weight, places) if len(places) else self.weight
        return Table(np.r_[0, np.cumsum(new)][self.start], value[places], weight)


def empty_table(n_features: int, dtype: str) -> Table:
    """Return a table without values."""
    return Table(np.zeros(n_features + 1, np.int64), np.empty(0, dtype), np.empty(0))


def join(a: Table, b: Table) -> Table:
    """Return the union of two tables; the weights of equal values are added."""
    room = len(a.value) + len(b.value)
    start, value, weight = np.zeros_like(a.start), np.empty(room, a.value.dtype), np.empty(room)
    n = _union(a.start, a.value, a.weight, b.start, b.value, b.weight, start, value, weight)
    return Table(start, value[:n].copy(), weight[:n].copy())


def split(table: Table, chosen: NDArray[np.bool_]) -> tuple[Table, Table]:
    """Return the table of the chosen features and the table of the others."""
    lengths = np.diff(table.start)
    inside = np.repeat(chosen, lengths)
    parts = []
    for mask, who in ((inside, chosen), (~inside, ~chosen)):
        start = np.concatenate([[0], np.cumsum(np.where(who, lengths, 0))])
        parts.append(Table(start, table.value[mask], table.weight[mask]))
    return parts[0], parts[1]
