"""Kernels that thin points, count distinct values, and read quantiles, ranks and counts from sorted runs of points."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tamis._kernels import njit, overwrite
from tamis._validation import Array, Floats, Ints

TOLERANCE = 1e-12  # relative; cumulative weights that differ by less are treated as equal


class Runs(NamedTuple):
    """Several sorted runs per feature: run r of feature f at start[f, r]:stop[f, r]."""

    values: Array  # in the summary's dtype
    below: Floats  # weight of the run up to and including each value; only where unit is 0
    start: Ints
    stop: Ints
    unit: Floats  # (n_features, n_runs): the weight of each value of the run, 0 if they differ


@njit()
def copy_columns(X: Array, rows: Array, first: int, block: Array) -> None:
    """Copy the rows, from column `first` on, feature by feature; sixteen rows at a time fill a cache line."""
    for start in range(0, rows.shape[0], 16):
        stop = min(start + 16, rows.shape[0])
        for f in range(block.shape[0]):
            for i in range(start, stop):
                block[f, i] = X[rows[i], first + f]


# -- thinning: the rank error is bounded by `low` and `high` -----------------------------------------------


@njit(strict=True)
def halve(
    points: Array, weight: Array, slot: Array, kept: Array, kept_weight: Array, low: Array, high: Array
) -> None:
    """Thin sorted points of equal weight per feature; NaN come last and are ignored.

    The first or the second point of each pair is kept, which raises or lowers the weight below any x by at most one
    point's weight. The choice balances the sums of both errors.
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
def thin(
    points: Array, order: Array, weight: Array, slot: Array, kept: Array, kept_weight: Array, low: Array, high: Array
) -> None:  # fmt: skip
    """Thin points of any weights, given their order, to points of equal weight per feature."""
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


# -- values that are counted exactly -----------------------------------------------------------------------


@njit(strict=True)
def group_cells(columns: Array, order: Array, next_place: Array, grouped: Array) -> None:
    """Write the positions of the cells column by column, in their original order within each column."""
    for i in order:
        column = columns[i]
        grouped[next_place[column]] = i
        next_place[column] += 1


@njit(strict=True)
def distinct_runs(
    points: Array, order: Array, weight: Array, slot: Array, ends: Array, values: Array, weights: Array, at: int
) -> int:  # fmt: skip
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
def union(
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


# -- runs --------------------------------------------------------------------------------------------------


@njit(strict=True)
def read_even(points: Array, weight: Array, slot: Array, r: int, runs: Runs) -> None:
    """Write the sorted points of each feature with a slot as run r; equal weights, NaN last."""
    values, _, start, stop, unit = runs
    for f in range(slot.shape[0]):
        at = stop[f, r - 1] if r else start[f, 0]
        s, n = slot[f], 0
        if s >= 0 and weight[s] > 0.0:
            n = points.shape[1]
            while n > 0 and points[s, n - 1] != points[s, n - 1]:
                n -= 1
            for i in range(n):
                values[at + i] = points[s, i]
            unit[f, r] = weight[s]
        start[f, r], stop[f, r] = at, at + n


@njit(strict=True)
def read_rows(points: Array, order: Array, weight: Array, r: int, runs: Runs) -> None:
    """Write rows of any weights, in sorted order for each feature up to NaN, as run r."""
    values, below, start, stop, _ = runs
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
def read_table(first: int, begin: Array, value: Array, weight: Array, r: int, runs: Runs) -> None:
    """Write the values of a table as run r."""
    values, below, start, stop, _ = runs
    for f in range(start.shape[0]):
        at = stop[f, r - 1] if r else start[f, 0]
        start[f, r] = at
        total = 0.0
        for i in range(begin[first + f], begin[first + f + 1]):
            total += weight[i]
            values[at], below[at] = value[i], total
            at += 1
        stop[f, r] = at


@njit(allocates=False)
def first_not_below(values: Array, low: int, high: int, x: float) -> int:
    """Return the first position in [low, high) whose value is at least x."""
    while low < high:
        mid = (low + high) >> 1
        if values[mid] < x:
            low = mid + 1
        else:
            high = mid
    return low


@njit(allocates=False)
def up_to(values: Array, low: int, high: int, x: float) -> int:
    """Return the first position in [low, high) whose value is larger than x."""
    while high - low > 16:
        mid = (low + high) >> 1
        if values[mid] <= x:
            low = mid + 1
        else:
            high = mid
    array = np.float32(0.0)  # counting the last few values avoids mispredicted branches
    for i in range(low, high):
        array += np.float32(1.0) if values[i] <= x else np.float32(0.0)
    return low + int(array)


@njit(strict=True, allocates=False)
def weight_before(place: int, start: int, unit: float, below: Array) -> float:
    """Return the weight of a run before a position."""
    if place == start:
        return 0.0
    return unit * (place - start) if unit > 0.0 else below[place - 1]


@njit(strict=True, allocates=False)
def _reach(
    values: Array, below: Array, start: Array, unit: Array, need: float, low: Array, high: Array, place: Array,
    reached: Array, low_weight: float, high_weight: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the smallest value that reaches the weight needed, and the weight before; write its positions.

    The search narrows from both sides; low ends before the value, where the next search may start.
    """
    best, tries = np.nan, 0
    if low.shape[0] == 0:  # no rows yet
        return best, low_weight
    while True:
        widest = 0
        for r in range(1, low.shape[0]):
            if high[r] - low[r] > high[widest] - low[widest]:
                widest = r
        span = high[widest] - low[widest]
        if span == 0:
            return best, low_weight
        share = 0.5
        # A run is usually a representative sample; otherwise bisection helps.
        if tries % 3 < 2 and high_weight > low_weight:
            share = min(max((need - low_weight) / (high_weight - low_weight), 0.0), 1.0)
        tries += 1
        x, weight = values[low[widest] + min(int(share * span), span - 1)], 0.0
        for r in range(low.shape[0]):
            place[r] = up_to(values, low[r], high[r], x)
            weight += weight_before(place[r], start[r], unit[r], below)
        if weight < need:
            overwrite(low, place)
            low_weight = weight
            continue
        best, high_weight = x, weight
        overwrite(reached, place)
        for r in range(low.shape[0]):
            while place[r] > low[r] and values[place[r] - 1] == x:
                place[r] -= 1
        overwrite(high, place)


@njit(strict=True, allocates=False)
def _around_zero(
    values: Array, below: Array, start: Array, stop: Array, unit: Array, after: Array
) -> tuple[float, float]:
    """Return the weight below 0 and up to 0; write the positions after 0 to `after`."""
    before, upto = 0.0, 0.0
    for r in range(after.shape[0]):
        place = after[r] = up_to(values, start[r], stop[r], 0.0)
        upto += weight_before(place, start[r], unit[r], below)
        while place > start[r] and values[place - 1] == 0.0:
            place -= 1
        before += weight_before(place, start[r], unit[r], below)
    return before, upto


@njit(strict=True, allocates=False)
def select(
    runs: Runs, of_class: Array, fractions: Array, room: Array, quantiles: Array, weights: Array
) -> None:
    """Find the smallest value up to which at least a fraction of the weight lies, for ascending fractions.

    `weights[f, h]`, if allocated, receives the weight of each class up to the value. `room` is working space for five
    positions in each run.
    """
    values, below, start, stop, unit = runs
    n_runs = of_class.shape[0]
    low, high, place, reached, after_zero = room[0], room[1], room[2], room[3], room[4]
    for f in range(start.shape[0]):
        total, low_weight = 0.0, 0.0
        for r in range(n_runs):
            low[r] = start[f, r]
            total += weight_before(stop[f, r], start[f, r], unit[f, r], below)
        before, upto = _around_zero(values, below, start[f], stop[f], unit[f], after_zero)
        for h in range(fractions.shape[0]):
            need = fractions[h] * total - TOLERANCE * total
            if before < need <= upto:  # sparse rows are mostly 0: no search needed
                best = 0.0
                overwrite(reached, after_zero)
            else:
                overwrite(high, stop[f])
                best, low_weight = _reach(
                    values, below, start[f], unit[f], need, low, high, place, reached, low_weight, total
                )
            if best != best and total > 0.0:  # a fraction of 1 and rounding
                for r in range(n_runs):
                    reached[r] = stop[f, r]
                    if stop[f, r] > start[f, r] and not values[stop[f, r] - 1] <= best:
                        best = values[stop[f, r] - 1]
            quantiles[f, h] = best
            if weights.shape[0] and h > 0 and best == quantiles[f, h - 1]:  # a frequent value
                overwrite(weights[f, h], weights[f, h - 1])
            elif weights.shape[0] and best == best:
                for r in range(n_runs):
                    weights[f, h, of_class[r]] += weight_before(reached[r], start[f, r], unit[f, r], below)


@njit(strict=True, allocates=False)
def between(upto: Array, gain: Array, whole: Array, counts: Array) -> None:
    """Write the weight of each class between cuts from the cumulative weights, in units of `gain`, and the total."""
    for f in range(counts.shape[0]):
        for c in range(counts.shape[2]):
            before, most = 0.0, whole[c, f]
            for h in range(counts.shape[1]):
                weight = upto[f, h, c] / gain[c] if h < upto.shape[1] else most
                if weight > (1.0 - TOLERANCE) * most:  # rounding
                    weight = most
                counts[f, h, c] = weight - before
                before = weight


@njit(strict=True)
def weigh(runs: Runs, of_class: Array, cuts: Array, weights: Array) -> None:
    """Sum the weight of each class up to each cut."""
    values, below, start, stop, unit = runs
    for f in range(start.shape[0]):
        for r in range(of_class.shape[0]):
            for h in range(cuts.shape[1]):
                place = up_to(values, start[f, r], stop[f, r], cuts[f, h])
                weights[f, h, of_class[r]] += weight_before(place, start[f, r], unit[f, r], below)
