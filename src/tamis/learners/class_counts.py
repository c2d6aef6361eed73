"""Counts, means and sums of squares of every feature within every class, over all rows or the last ones.

The kernels behind :mod:`tamis.learners.class_likelihoods`, which documents the statistics and when they are recomputed.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit, overwrite
from tamis._validation import Array
from tamis.summaries.categories import find_slot

# The sum of squares is recomputed when removing a row leaves less than this fraction of it, before cancellation
# (including that of earlier removals) costs significant digits.
_RECOUNT_BELOW = 1e-2


@njit(strict=True)
def _add(row: Array, n: Array, mean: Array, m2: Array) -> None:
    for j in range(row.shape[0]):
        seen = row[j] == row[j]
        step = row[j] - mean[j] if seen else 0.0
        n[j] += 1.0 if seen else 0.0
        shift = step / max(n[j], 1.0)
        mean[j] += shift
        m2[j] += step * (step - shift)


@njit(strict=True)
def _remove(row: Array, n: Array, mean: Array, m2: Array) -> int:
    """Remove a row; where too few digits remain, set m2 to -1. Return the number of such features."""
    n_lost = 0
    for j in range(row.shape[0]):
        seen = row[j] == row[j]
        step = row[j] - mean[j] if seen else 0.0
        n[j] -= 1.0 if seen else 0.0
        shift = step / max(n[j], 1.0)
        left = m2[j] - step * (step + shift)
        lost = left < _RECOUNT_BELOW * m2[j]
        n_lost += lost
        mean[j] = mean[j] - shift if n[j] > 0.0 else 0.0
        m2[j] = -1.0 if lost else left
    return n_lost


@njit(strict=True)
def _repair(rows: Array, row_codes: Array, y: int, n: Array, mean: Array, m2: Array) -> None:
    """Recompute the marked features of class y from the window."""
    for j in range(rows.shape[1]):
        if m2[j] >= 0.0:
            continue
        count, centre, square = 0.0, 0.0, 0.0
        for p in range(rows.shape[0]):
            if row_codes[p] == y and rows[p, j] == rows[p, j]:
                step = rows[p, j] - centre
                count += 1.0
                centre += step / count
                square += step * (rows[p, j] - centre)
        n[j], mean[j], m2[j] = count, centre, square


@njit(strict=True)
def _count(row: Array, y: int, by: float, columns: Array, start: Array, keys: Array, counts: Array) -> None:
    bits = row.view(np.uint64)
    for j in columns:
        if row[j] == row[j]:
            counts[find_slot(row[j], bits[j], keys, start[j], start[j + 1] - 1), y] += by


@njit(strict=True)
def learn_rows(
    X: Array, codes: Array, rows: Array, row_codes: Array, clock: Array, n_rows: Array,
    n: Array, mean: Array, m2: Array, columns: Array, start: Array, keys: Array, counts: Array,
) -> None:  # fmt: skip
    """Update the statistics with rows, oldest first.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    codes : ndarray of shape (n_rows,), int64
    rows, row_codes : ndarray of shape (window, n_features) and (window,)
        The window as a ring buffer; empty if all rows count.
    clock : ndarray of shape (1,), int64
        Number of rows seen.
    n_rows : ndarray of shape (n_classes,), float64
    n, mean, m2 : ndarray of shape (n_classes, n_features), float64
    columns, start, keys : ndarray
        The columns of categories and their tables, as in :mod:`tamis.summaries.categories`.
    counts : ndarray of shape (n_slots, n_classes), float64
    """
    w = rows.shape[0]
    for i in range(X.shape[0]):
        y = codes[i]
        if w > 0:
            p = clock[0] % w
            if clock[0] >= w:
                old = row_codes[p]
                row_codes[p] = -1
                n_rows[old] -= 1.0
                if _remove(rows[p], n[old], mean[old], m2[old]) > 0:
                    _repair(rows, row_codes, old, n[old], mean[old], m2[old])
                _count(rows[p], old, -1.0, columns, start, keys, counts)
            overwrite(rows[p], X[i])
            row_codes[p] = y
        clock[0] += 1
        n_rows[y] += 1.0
        _count(X[i], y, 1.0, columns, start, keys, counts)
        if w > 0 and clock[0] % w == 0:
            n[:], mean[:], m2[:] = 0.0, 0.0, 0.0
            for p in range(w):
                _add(rows[p], n[row_codes[p]], mean[row_codes[p]], m2[row_codes[p]])
        else:
            _add(X[i], n[y], mean[y], m2[y])


@njit(strict=True)
def move_tables(
    start: Array, keys: Array, counts: Array, new_start: Array, new_keys: Array, new_counts: Array
) -> None:
    """Move the remaining categories (those whose key is not NaN) to new tables."""
    bits = keys.view(np.uint64)
    for j in range(start.shape[0] - 1):
        for slot in range(start[j], start[j + 1] - 1):
            if keys[slot] == keys[slot]:
                to = find_slot(keys[slot], bits[slot], new_keys, new_start[j], new_start[j + 1] - 1)
                new_keys[to] = keys[slot]
                overwrite(new_counts[to], counts[slot])
