"""Kernels that read quantiles, ranks and counts from sorted runs of weighted values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis._jit import njit

__all__ = ["TOLERANCE", "Runs", "read_buffer", "read_rows", "read_table", "read_zero", "select", "weigh"]

TOLERANCE = 1e-12  # relative; cumulative weights that differ by less are equal


class Runs(NamedTuple):
    """Several sorted runs per feature: run r of feature f at start[f, r]:stop[f, r]."""

    values: NDArray[np.float64]
    below: NDArray[np.float64]  # weight of the run up to and including each value
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


@njit(strict=True)
def read_buffer(
    points: Array, weight: Array, slot: Array, r: int, values: Array, below: Array, start: Array, stop: Array
) -> None:
    """Write the sorted points of a buffer as run r of each feature; each point of a feature weighs the same."""
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
def read_rows(
    points: Array, order: Array, weight: Array, r: int, values: Array, below: Array, start: Array, stop: Array
) -> None:
    """Write rows, in the order of each feature, as run r."""
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
def read_table(
    first: int, begin: Array, value: Array, weight: Array, r: int, values: Array, below: Array, start: Array,
    stop: Array,
) -> None:  # fmt: skip
    """Write the values of a table as run r."""
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
def read_zero(weight: Array, r: int, values: Array, below: Array, start: Array, stop: Array) -> None:
    """Write one value, 0, with its weight as run r."""
    """Write the values of a table as run r."""
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
def select(values: Array, below: Array, start: Array, stop: Array, fractions: Array, found: Array) -> None:
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
            need, best = fractions[h] * total - TOLERANCE * total, np.nan
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
def weigh(
    values: Array, below: Array, start: Array, stop: Array, of_class: Array, cuts: Array, found: Array
) -> None:
    """Add up the weight of each class up to each cut."""
    for f in range(start.shape[0]):
        for r in range(start.shape[1]):
            for h in range(cuts.shape[1]):
                place = _up_to(values, start[f, r], stop[f, r], cuts[f, h])
                if place > start[f, r]:
                    found[f, h, of_class[r]] += below[place - 1]
