"""The geometric reservoir: rows from which the values of a replaced feature are drawn.

Every row enters a reservoir of `size` rows and replaces a uniformly drawn one. A uniform draw at row t is then row s
with probability (1 / size) (1 - 1 / size)^(t - s - 1), so the replacement values follow a drift within a few times
`size` rows (Fumagalli et al. 2023, geometric sampling). In a conditional draw, only the `n_neighbours` stored rows that
are nearest in the unchanged columns are eligible.

All random numbers are drawn before the kernel runs, in the order of the rows, so a batch equals its rows one at a time.
"""

from __future__ import annotations

import math

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array


@njit(strict=True)
def draw_donors(
    rows: Array,
    n_stored: int,
    size: int,
    n_neighbours: int,
    replaced: Array,
    u_donor: Array,
    u_slot: Array,
    stored: Array,
    donors: Array,
) -> int:
    """Draw a donor for each evaluation, then store the row; return the number of rows stored.

    rows      (r + n, j)  the rows stored before the batch, then the batch
    replaced  (n, e, j)   which columns of an evaluation are replaced
    u_donor   (n, e)      uniform in [0, 1)
    u_slot    (n)         uniform in [0, 1)
    stored    (size)      out: the position in `rows` of each stored row
    donors    (n, e)      out: the position in `rows` of each donor

    """
    filled, first = n_stored, n_stored
    for s in range(n_stored):
        stored[s] = s
    n_features = rows.shape[1]
    scale = np.zeros(n_features)
    nearest, distance = np.zeros(max(n_neighbours, 1), np.int64), np.zeros(max(n_neighbours, 1))
    for i in range(replaced.shape[0]):
        if n_neighbours > 0:
            _inverse_variances(rows, stored, filled, scale)
        for e in range(replaced.shape[1]):
            if n_neighbours == 0:
                donors[i, e] = stored[min(int(u_donor[i, e] * filled), filled - 1)]
                continue
            k = _nearest(rows, first + i, stored, filled, replaced[i, e], scale, nearest, distance)
            donors[i, e] = nearest[min(int(u_donor[i, e] * k), k - 1)]
        if filled < size:
            stored[filled] = first + i
            filled += 1
        else:
            stored[min(int(u_slot[i] * size), size - 1)] = first + i
    return filled


@njit(strict=True)
def _inverse_variances(rows: Array, stored: Array, filled: int, scale: Array) -> None:
    """Write the reciprocal variance of each column over the stored rows; 0 for a constant column."""
    for j in range(scale.shape[0]):
        n, mean, m2 = 0, 0.0, 0.0
        for s in range(filled):
            x = rows[stored[s], j]
            if not math.isnan(x):
                n += 1
                delta = x - mean
                mean += delta / n
                m2 += delta * (x - mean)
        scale[j] = n / m2 if m2 > 0.0 else 0.0


@njit(strict=True)
def _nearest(
    rows: Array,
    at: int,
    stored: Array,
    filled: int,
    replaced: Array,
    scale: Array,
    nearest: Array,
    distance: Array,
) -> int:
    """Write the nearest stored rows, nearest first and ties by slot; return their number.

    A missing value is at distance 0 from another missing value, and at one standard deviation from any number.
    """
    k = 0
    for s in range(filled):
        r, d = stored[s], 0.0
        for j in range(scale.shape[0]):
            if not replaced[j]:
                a, b = rows[at, j], rows[r, j]
                if math.isnan(a) or math.isnan(b):
                    d += 0.0 if math.isnan(a) and math.isnan(b) else 1.0
                else:
                    d += (a - b) * (a - b) * scale[j]
        if k < nearest.shape[0]:
            k += 1
        elif d >= distance[k - 1]:
            continue
        p = k - 1
        while p > 0 and distance[p - 1] > d:
            distance[p], nearest[p] = distance[p - 1], nearest[p - 1]
            p -= 1
        distance[p], nearest[p] = d, r
    return k
