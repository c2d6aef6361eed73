"""Windows of points around bin edges, from which counts are updated without reading the other points, bit for bit.

As long as no block is thinned, rows are only added to a summary. An edge then moves by few ranks, so its new position
is among the points next to it. The window around an edge contains the points with low < x < high (equal values of a
class in one entry) and the weight of each class up to `low`. New rows are compared with low and high; few of them enter
a window. The edge is the first value of the window that reaches the weight needed. If the edge has left the window, or
the window is full, the feature is read from all its points.

All weights must be integers, so that sums in any order are equal.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Mask
from tamis.summaries.quantile_kernels import (
    TOLERANCE,
    Runs,
    copy_columns,
    first_not_below,
    up_to,
    weight_before,
)  # fmt: skip
from tamis.summaries.quantile_points import ClassPoints

_SIDE = 16  # entries on each side of an edge
_ROOM = 3 * _SIDE  # capacity of a window: 16 entries may be added
MOST_CLASSES = 8  # each value of a window may need an entry per class
_CHUNK = 256  # features whose windows fit in the cache


class Windows(NamedTuple):
    """A window around each edge of each feature."""

    low: Array  # (n_features, n_edges), of the summary's dtype
    high: Array
    base: Floats  # (n_features, n_edges, n_classes): weight up to `low`
    total: Floats  # (n_features,)
    size: NDArray[np.int32]  # (n_features, n_edges): entries, -1 if the window cannot be used
    values: Array  # (n_features, n_edges, _ROOM), ascending
    classes: NDArray[np.int8]
    weights: Floats


@njit(strict=True, allocates=False)
def _is_whole(x: float) -> bool:
    return math.floor(x) == x


@njit(strict=True, allocates=False)
def _next_value(runs: Runs, of_class: Array, place: Array, group: Array, side: int) -> float:
    """Move the positions in the runs of a feature past the next value on one side, 1 or -1; return the value.

    `group` receives its weight in each class.
    """
    values, below, start, stop, unit = runs
    nearest, back = np.inf, (1 - side) // 2
    for r in range(place.shape[0]):
        at = place[r] - back
        if start[r] <= at < stop[r] and side * values[at] < nearest:
            nearest = side * values[at]
    for c in range(group.shape[0]):
        group[c] = 0.0
    for r in range(place.shape[0]):
        first = place[r] - back
        if start[r] <= first < stop[r] and side * values[first] == nearest:
            last = first + 1
            if side > 0 and last < stop[r] and values[last] == values[first]:
                last = up_to(values, last, stop[r], values[first])
            elif side < 0 and first > start[r] and values[first - 1] == values[first]:
                first = first_not_below(values, start[r], first, values[first])
            of_first = weight_before(first, start[r], unit[r], below)
            group[of_class[r]] += weight_before(last, start[r], unit[r], below) - of_first
            place[r] = last if side > 0 else first
    return side * nearest


@njit(strict=True, allocates=False)
def _fits(group: Array, room: int) -> bool:
    """Return whether the entries of a value, one per class that has it, fit into the room."""
    for c in range(group.shape[0]):
        room -= group[c] > 0.0
    return room >= 0


@njit(strict=True, allocates=False)
def _put(x: float, group: Array, n: int, values: Array, classes: Array, weights: Array) -> int:
    """Append a value to a window of n entries; return its new size, or -1 if a weight is not an integer."""
    for c in range(group.shape[0]):
        if group[c] > 0.0:
            values[n], classes[n], weights[n] = x, c, group[c]
            n += 1
            if not _is_whole(group[c]):
                return -1
    return n


@njit(strict=True)
def _fill(
    runs: Runs, of_class: Array, place: Array, base: Array, group: Array, values: Array, classes: Array,
    weights: Array,
) -> tuple[int, float, float]:  # fmt: skip
    """Write a window around positions in the runs and the weights before it; return its size (or -1), low and high."""
    n = 0
    while True:  # to the left, in descending order
        low = _next_value(runs, of_class, place, group, -1)
        if low == -np.inf or not _fits(group, _SIDE - n):
            break
        n = _put(low, group, n, values, classes, weights)
        if n < 0:
            return -1, low, low
    base += group  # weight of the value `low`
    for r in range(place.shape[0]):
        base[of_class[r]] += weight_before(place[r], runs.start[r], runs.unit[r], runs.below)
    for c in range(base.shape[0]):
        if not _is_whole(base[c]):
            return -1, low, low
    for i in range(n // 2):
        k = n - 1 - i
        values[i], values[k] = values[k], values[i]
        classes[i], classes[k] = classes[k], classes[i]
        weights[i], weights[k] = weights[k], weights[i]
    most = n + _SIDE
    after = values[n - 1] if n else low
    for r in range(place.shape[0]):
        place[r] = up_to(runs.values, place[r], runs.stop[r], after)
    while True:  # to the right
        high = _next_value(runs, of_class, place, group, 1)
        if high == np.inf or not _fits(group, most - n):
            return n, low, high
        n = _put(high, group, n, values, classes, weights)
        if n < 0:
            return -1, low, high


@njit(strict=True)
def _open(runs: Runs, of_class: Array, cuts: Array, windows: Windows) -> None:
    """Write the windows around the cuts; the size of a window is -1 if a weight is not an integer."""
    run_values, below, start, stop, unit = runs
    low, high, base, total, size, values, classes, weights = windows
    n_runs, n_classes = of_class.shape[0], base.shape[2]
    place, group, before = np.empty(n_runs, np.int64), np.empty(n_classes), np.empty(n_classes)
    for f in range(start.shape[0]):
        whole, total[f] = True, 0.0
        for r in range(n_runs):
            weight = weight_before(stop[f, r], start[f, r], unit[f, r], below)
            whole &= _is_whole(unit[f, r]) & _is_whole(weight)
            total[f] += weight
        for e in range(cuts.shape[1]):
            size[f, e] = -1
            if not whole or cuts[f, e] != cuts[f, e]:
                continue
            of_feature = Runs(run_values, below, start[f], stop[f], unit[f])
            before[:] = 0.0
            for r in range(n_runs):
                place[r] = up_to(run_values, start[f, r], stop[f, r], cuts[f, e])
            entries = values[f, e], classes[f, e], weights[f, e]
            size[f, e], low[f, e], high[f, e] = _fill(of_feature, of_class, place, before, group, *entries)
            base[f, e] = before


@njit(strict=True, allocates=False)
def _enter(x: float, c: int, w: float, n: int, values: Array, classes: Array, weights: Array) -> int:
    """Add a value to a window; return its new size, or -1 if it is full."""
    at = n
    while at > 0 and values[at - 1] > x:
        at -= 1
    i = at
    while i > 0 and values[i - 1] == x:
        i -= 1
        if classes[i] == c:
            weights[i] += w
            return n
    if n == values.shape[0]:
        return -1
    for k in range(n, at, -1):
        values[k], classes[k], weights[k] = values[k - 1], classes[k - 1], weights[k - 1]
    values[at], classes[at], weights[at] = x, c, w
    return n + 1


@njit(strict=True)
def _add(X: Array, rows: Array, w: float, c: int, windows: Windows) -> None:
    """Add rows of class c and weight w to the windows."""
    low, high, base, total, size, values, classes, weights = windows
    n_rows = rows.shape[0]
    block = np.empty((_CHUNK, n_rows), X.dtype)
    for first in range(0, X.shape[1], _CHUNK):
        n = min(_CHUNK, X.shape[1] - first)
        copy_columns(X, rows, first, block[:n])
        for b in range(n):
            f, there = first + b, np.int32(0)
            for i in range(n_rows):
                there += np.int32(block[b, i] == block[b, i])
            total[f] += w * there
            for e in range(low.shape[1]):
                left, right, n_left, n_right = low[f, e], high[f, e], np.int32(0), np.int32(0)
                for i in range(n_rows):  # branch-free counting
                    n_left += np.int32(block[b, i] <= left)
                    n_right += np.int32(block[b, i] >= right)
                base[f, e, c] += w * n_left
                if n_left + n_right == there or size[f, e] < 0:
                    continue
                for i in range(n_rows):
                    x = block[b, i]
                    if size[f, e] >= 0 and x > left and x < right:
                        size[f, e] = _enter(x, c, w, size[f, e], values[f, e], classes[f, e], weights[f, e])


@njit(strict=True, allocates=False)
def _trim(at: int, f: int, e: int, windows: Windows) -> None:
    """Remove the entries of a window that are more than _SIDE positions before or after position `at`."""
    values, classes, weights = windows.values[f, e], windows.classes[f, e], windows.weights[f, e]
    n, first = windows.size[f, e], max(at - _SIDE, 0)
    if at + _SIDE < n:
        n = at + _SIDE
        windows.high[f, e] = values[n]
        while n > 0 and values[n - 1] == values[n]:  # equal values stay together
            n -= 1
    while 0 < first < n and values[first] == values[first - 1]:
        first += 1
    if first > 0:
        windows.low[f, e] = values[first - 1]
    for i in range(first):
        windows.base[f, e, classes[i]] += weights[i]
    for i in range(first, n):
        values[i - first], classes[i - first], weights[i - first] = values[i], classes[i], weights[i]
    windows.size[f, e] = n - first


@njit(strict=True)
def _read(fractions: Array, upto: Array, is_read: Array, windows: Windows) -> None:
    """Write the weight of each class up to each edge, except for features with an edge outside its window.

    Entries far from the edge are removed from the windows to make room for others.
    """
    _, _, base, total, size, values, classes, weights = windows
    for f in range(total.shape[0]):
        is_read[f] = total[f] > 0.0
        for e in range(fractions.shape[0]):
            if not is_read[f]:
                break
            need, weight = fractions[e] * total[f] - TOLERANCE * total[f], 0.0
            for c in range(base.shape[2]):
                upto[f, e, c] = base[f, e, c]
                weight += base[f, e, c]
            i, n = 0, size[f, e]
            if weight >= need:  # the edge is at `low`, or before it
                n = -1
            while weight < need and i < n:
                x = values[f, e, i]
                while i < n and values[f, e, i] == x:
                    upto[f, e, classes[f, e, i]] += weights[f, e, i]
                    weight += weights[f, e, i]
                    i += 1
            is_read[f] = weight >= need and n >= 0
            if is_read[f] and n > 2 * _SIDE:
                _trim(i, f, e, windows)


class EdgeWindows:
    """Windows around the edges of each feature, and the number of rows that they include.

    Memory per feature and edge: 48 entries of value, class and weight, 0.6 to 0.8 kB.

    Parameters
    ----------
    points : list of ClassPoints
    n_features, n_edges : int
    dtype : str
        Data type of the points.
    """

    def __init__(self, points: list[ClassPoints], n_features: int, n_edges: int, dtype: str) -> None:
        # The buffers and the table of each class, which are replaced when a block is thinned.
        self.points: list[tuple[Any, Any]] = [(one.levels.buffers, one.table) for one in points]
        self.n_staged = [one.n_staged for one in points]  # staged rows of each class that are included
        edges = (n_features, n_edges)
        low, high, values = (np.empty(shape, dtype) for shape in (edges, edges, (*edges, _ROOM)))
        base, size = np.zeros((*edges, len(points))), np.full(edges, -1, np.int32)
        classes, weights = np.empty(values.shape, np.int8), np.empty(values.shape)
        self.of = Windows(low, high, base, np.empty(n_features), size, values, classes, weights)

    def open(self, first: int, runs: Runs, of_class: Array, cuts: Array) -> None:
        """Write the windows of some features, from `first` on, around their current cuts."""
        _open(runs, of_class, cuts, Windows._make(array[first : first + len(cuts)] for array in self.of))

    def replace(self, features: Indices, other: EdgeWindows) -> None:
        """Replace the windows of some features."""
        for name in Windows._fields:
            getattr(self.of, name)[features] = getattr(other.of, name)

    def are_of(self, points: list[ClassPoints]) -> bool:
        """Return whether these points have changed only by added rows since."""
        return len(points) == len(self.points) and all(
            one.levels.buffers is buffers and one.table is table and one.n_staged >= n and one.waiting.n == 0
            for one, (buffers, table), n in zip(points, self.points, self.n_staged, strict=True)
        )

    def add_staged(self, points: list[ClassPoints]) -> bool:
        """Add the rows staged since; return False, with the windows invalid, if their weights differ."""
        for c, one in enumerate(points):
            rows = np.arange(self.n_staged[c], one.n_staged)
            weight = one.staged_weight[rows]
            if not len(rows):
                continue
            if not (weight == np.floor(weight[0])).all():
                return False
            _add(one.staged, rows, weight[0], c, self.of)
            self.n_staged[c] = one.n_staged
        return True

    def read(self, fractions: Array, upto: Array) -> Mask:
        """Write the weight of each class up to each edge into `upto`; return for which features."""
        is_read = np.zeros(len(self.of.total), np.bool_)
        _read(fractions, upto, is_read, self.of)
        return is_read
