"""Kernels that thin sorted points and bound the resulting rank error."""

from __future__ import annotations

import math

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array

__all__ = ["copy_columns", "halve", "thin"]


@njit()
def copy_columns(X: Array, rows: Array, first: int, block: Array) -> None:
    """Copy the rows, from column `first` on, feature by feature; sixteen rows at a time fill a cache line."""
    for start in range(0, rows.shape[0], 16):
        stop = min(start + 16, rows.shape[0])
        for f in range(block.shape[0]):
            for i in range(start, stop):
                block[f, i] = X[rows[i], first + f]


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
    points: Array,
    order: Array,
    weight: Array,
    slot: Array,
    kept: Array,
    kept_weight: Array,
    low: Array,
    high: Array,
) -> None:
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
