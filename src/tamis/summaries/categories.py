"""Slots for the categories of every feature: one small hash table each, in one flat array.

Feature j owns the slots ``start[j]`` to ``start[j + 1] - 1``. The last slot is for missing values; the others, a power
of two, form a hash table with open addressing, and the slot of a category is its position there. When a table is three
quarters full, categories with a count of 0 are removed; if that is not enough, it grows. Memory therefore depends on
the categories in the window, not on all that ever occurred.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit, overwrite
from tamis._validation import Array

Table = tuple[Array, Array, Array]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@njit(strict=True, allocates=False)
def find_slot(x: float, bits: int, keys: Array, first: int, last: int) -> int:
    """Return the slot of a category, or the free slot (key NaN) where it would be inserted.

    Parameters
    ----------
    x : float
        Finite.
    bits : uint64
        The bits of x.
    keys : ndarray of float64
    first, last : int
        The table is keys[first:last]; its length is a power of two, and at least one slot is free.
    """
    mixed = ((bits ^ (bits >> _HALF)) * _MIX) >> _HALF
    slot = int(mixed * np.uint64(x != 0.0)) & (last - first - 1)  # 0.0 and -0.0 are one category
    while keys[first + slot] == keys[first + slot] and keys[first + slot] != x:
        slot = (slot + 1) & (last - first - 1)
    return first + slot


@njit(strict=True)
def insert(X: Array, columns: Array, start: Array, keys: Array, used: Array, short: Array) -> None:
    """Assign a slot to each new category, and mark the columns without enough slots."""
    for i in range(X.shape[0]):
        row = X[i]
        bits = row.view(np.uint64)
        for j in columns:
            x, first, last = row[j], start[j], start[j + 1] - 1
            if x != x or short[j]:
                continue
            slot = find_slot(x, bits[j], keys, first, last)
            if keys[slot] != x:
                if 4 * (used[j] + 1) > 3 * (last - first):
                    short[j] = True
                else:
                    keys[slot] = x
                    used[j] += 1


def n_slots_for(n_categories: int) -> int:
    """Return the number of slots of a table of `n_categories`, including that for missing values.

    >>> n_slots_for(2), n_slots_for(10)
    (5, 17)
    """
    return 1 + max(4, 1 << (3 * n_categories // 2).bit_length())


@njit(strict=True)
def _relocate(
    start: Array,
    keys: Array,
    counts: Array,
    short: Array,
    bins: Array,
    n: int,
    used: Array,
    new_start: Array,
    new_keys: Array,
    new_counts: Array,
) -> None:
    """Move all tables to new offsets; marked tables lose the categories that are in no row of the window."""
    moved = np.empty(len(keys), np.int64)
    for j in range(len(start) - 1):
        first, to = start[j], new_start[j]
        last, new_last = start[j + 1] - 1, new_start[j + 1] - 1
        if not short[j]:
            for i in range(last + 1 - first):
                new_keys[to + i] = keys[first + i]
                overwrite(new_counts[to + i], counts[first + i])
            continue
        used[j] = 0
        bits = keys[first:last].view(np.uint64)
        for slot in range(first, last):
            if counts[slot, 0] > 0:
                moved[slot] = find_slot(keys[slot], bits[slot - first], new_keys, to, new_last)
                new_keys[moved[slot]] = keys[slot]
                overwrite(new_counts[moved[slot]], counts[slot])
                used[j] += 1
        moved[last] = new_last
        overwrite(new_counts[new_last], counts[last])
        for p in range(n):
            bins[j, p] = moved[first + bins[j, p]] - to


def make_room(X: Array, columns: Array, table: Table, bins: Array, n: int, used: Array) -> Table:
    """Return the tables with a slot for each category of the rows, in new arrays if one had to grow or be cleared.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        C-contiguous.
    columns : ndarray of int64
        Categorical columns.
    table : tuple
        start (n_features + 1,), keys (n_slots,) and counts (n_slots, 1 + n_classes).
    bins : ndarray of shape (n_features, window), int32
        Slots of the categories in the window, relative to the feature's first slot; the first `n` entries are in use.
        Modified in place.
    used : ndarray of shape (n_features,), int64
        Number of slots with a key. Modified in place.
    """
    start, keys, counts = table
    short = np.zeros(len(used), np.bool_)
    insert(X, columns, start, keys, used, short)
    if not short.any():
        return table
    width = np.diff(start)
    for j in np.flatnonzero(short):
        slots = slice(start[j], start[j + 1] - 1)
        values = np.union1d(keys[slots][counts[slots, 0] > 0], X[:, j][~np.isnan(X[:, j])])
        width[j] = max(width[j], n_slots_for(len(values)))
    new_start = np.r_[0, np.cumsum(width)]
    new_keys = np.full(new_start[-1], np.nan)
    new_counts = np.zeros((new_start[-1], counts.shape[1]), np.int32)
    _relocate(start, keys, counts, short, bins, n, used, new_start, new_keys, new_counts)
    insert(X, columns, new_start, new_keys, used, np.zeros_like(short))
    return new_start, new_keys, new_counts
