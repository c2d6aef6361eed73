"""Counts of pairs of features by class, over all rows since some row, with one bit per row and level.

A feature x has levels 0..K defined by K edges; bit k of a row is whether x is above edge k. For 32 rows these bits are
one word per feature and edge; the bitwise *and* of the words of two features and a class, and a count of bits, give the
number of rows of that class above both edges, from which a table of levels by levels by classes is derived. All pairs
of d features cost d^2 K^2 / 64 words per row and class, for any features.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Ints, Rows

BLOCK = 32  # rows in a word
_FINE = 10  # levels of a single feature
_CELLS = 1 << 17  # number of values sorted at once
_TILE = 32  # features per tile in the loops over pairs
_WORDS = 12_250  # limit on pairs times squared edges, with more than two levels


class Counts(NamedTuple):
    """d features, q of them in pairs, K edges, C classes."""

    edges: Floats  # (d, K), infinite where a feature has fewer levels
    fine: Floats  # (d, 9)
    columns: Indices  # (q,) the features in pairs
    bits: NDArray[np.uint32]  # (K, q) of the current word
    class_bits: NDArray[np.uint32]  # (C,)
    alone: Ints  # (d, 10, C) rows of each fine level
    above: Ints  # (q, K, C) rows above each edge
    pairs: NDArray[np.int32]  # (K, K, C, q (q - 1) / 2) rows above both edges
    n: Ints  # (2,) rows counted, and those of them that are only in the bits


class Gains(NamedTuple):
    """Statistics of the pairs, (q, q) each; `x given z` is in row x, column z."""

    given: Floats  # G of x given z minus its bar; negative: not significant
    gain: Floats  # bits that x adds to z, minus the expected gain by chance
    dependent: Floats  # G of the dependence of x and z minus its bar
    joint: Floats  # bits of information of both about the class


def default_n_levels(n_features: int, n_bins: int | None) -> int:
    """Return the number of levels of a feature in pairs.

    >>> default_n_levels(20, None), default_n_levels(50, None), default_n_levels(500, None)
    (9, 4, 2)
    """
    if n_bins is not None:
        return n_bins
    n_pairs = max(1, n_features * (n_features - 1) // 2)
    return min(_FINE, max(2, 1 + math.isqrt(_WORDS // n_pairs)))


def cut(rows: Rows, n_levels: int) -> Floats:
    """Return the edges of each column: between its values if they are few, else its quantiles."""
    edges = np.full((rows.shape[1], n_levels - 1), np.inf)
    step = max(1, _CELLS // rows.shape[0])
    if sp.issparse(rows):
        columns = rows.tocsc()
        filled = np.flatnonzero(np.diff(columns.indptr))  # the others are constant
        for first in range(0, len(filled), step):
            part = filled[first : first + step]
            edges[part] = cut(columns[:, part].toarray(), n_levels)
        return edges
    for first in range(0, rows.shape[1], step):
        values = np.sort(rows[:, first : first + step].T, axis=1)
        few = np.count_nonzero(values[:, 1:] > values[:, :-1], axis=1) < n_levels
        own = _distinct(values[few], n_levels)
        low, high = own[:, :-1], own[:, 1:]
        part = edges[first : first + step]
        part[few] = low + np.subtract(high, low, out=high.copy(), where=np.isfinite(high)) / 2.0
        quantiles = np.quantile(values[~few], np.arange(1, n_levels) / n_levels, axis=1)
        part[~few] = _distinct(quantiles.T, n_levels - 1)
    return edges


def _distinct(values: Array, n: int) -> Floats:
    """Return at most n distinct values of each sorted row; padded with infinity."""
    new = np.diff(values, axis=1, prepend=-np.inf) > 0.0
    distinct = np.full((len(values), n), np.inf)
    distinct[np.nonzero(new)[0], np.cumsum(new, axis=1)[new] - 1] = values[new]
    return distinct


def zeros(rows: Rows, columns: Indices, n_levels: int, n_classes: int, as_in: Counts | None = None) -> Counts:
    """Return zero counts, with levels determined by the rows, or existing ones."""
    n_edges, q = n_levels - 1, len(columns)
    edges, fine = (cut(rows, n_levels), cut(rows, _FINE)) if as_in is None else (as_in.edges, as_in.fine)
    return Counts(
        edges, fine, columns, np.zeros((n_edges, q), np.uint32), np.zeros(n_classes, np.uint32),
        np.zeros((rows.shape[1], _FINE, n_classes), np.int64), np.zeros((q, n_edges, n_classes), np.int64),
        np.zeros((n_edges, n_edges, n_classes, q * (q - 1) // 2), np.int32), np.zeros(2, np.int64),
    )  # fmt: skip


def set_zero(alone: Array, columns: Array) -> Ints:
    """Return univariate counts after some features are set to 0 in all rows; these have one level."""
    cleared: Ints = alone.copy()
    cleared[columns] = 0
    cleared[columns, 0] = alone[0].sum(axis=0)
    return cleared


def clear_columns(counts: Counts, columns: Array) -> Counts:
    """Return the counts, in new arrays, after some features are set to 0 in all rows."""
    gone = np.isin(counts.columns, columns)
    first, second = np.triu_indices(len(gone), 1)
    cleared = Counts._make(part.copy() for part in counts)
    cleared.bits[:, gone] = 0
    cleared.above[gone] = 0
    cleared.pairs[..., gone[first] | gone[second]] = 0
    return cleared._replace(alone=set_zero(counts.alone, columns))


def widened(counts: Counts, n_new: int, n_paired: int) -> Counts:
    """Return the counts with `n_new` more features, which were 0 in all rows, the first `n_paired` of them in pairs."""
    d, q = len(counts.alone), len(counts.columns)
    pairs = np.zeros((*counts.pairs.shape[:3], (q + n_paired) * (q + n_paired - 1) // 2), np.int32)
    end, before = 0, 0
    for i in range(q - 1):  # the pairs of each feature are contiguous
        pairs[..., end : end + q - 1 - i] = counts.pairs[..., before : before + q - 1 - i]
        end, before = end + q + n_paired - 1 - i, before + q - 1 - i
    alone = np.pad(counts.alone, ((0, n_new), (0, 0), (0, 0)))
    return counts._replace(
        columns=np.append(counts.columns, np.arange(d, d + n_paired)),
        bits=np.pad(counts.bits, ((0, 0), (0, n_paired))), alone=set_zero(alone, np.arange(d, d + n_new)),
        above=np.pad(counts.above, ((0, n_paired), (0, 0), (0, 0))), pairs=pairs,
    )  # fmt: skip


def add_classes(counts: Counts, n_classes: int) -> Counts:
    """Return the counts with room for new classes, in new arrays."""
    more = (0, n_classes - len(counts.class_bits))
    none = (0, 0)
    return counts._replace(
        class_bits=np.pad(counts.class_bits, more),
        alone=np.pad(counts.alone, (none, none, more)),
        above=np.pad(counts.above, (none, none, more)),
        pairs=np.pad(counts.pairs, (none, none, more, none)),
    )


def add_counts(counts: Counts, other: Counts, codes: Indices) -> Counts:
    """Return the sum of the counts of different rows in the same levels, in new arrays.

    Parameters
    ----------
    counts, other : Counts
        Without rows that are only in the bits.
    codes : ndarray of int
        Which classes of `counts` those of `other` are.
    """
    total = counts._replace(**{name: getattr(counts, name).copy() for name in ("alone", "above", "pairs")})
    total.alone[:, :, codes] += other.alone
    total.above[:, :, codes] += other.above
    total.pairs[:, :, codes] += other.pairs
    return total._replace(n=counts.n + other.n)


@njit(strict=True)
def count_row(row: Array, code: int, counts: Counts) -> None:
    """Update the univariate counts with a row, and set its bits."""
    bit = np.uint32(1) << np.uint32(counts.n[1])
    for j in range(row.shape[0]):
        level = 0
        for k in range(counts.fine.shape[1]):
            level += row[j] > counts.fine[j, k]
        counts.alone[j, level, code] += 1
    for i in range(counts.columns.shape[0]):
        j = counts.columns[i]
        for k in range(counts.edges.shape[1]):
            if row[j] > counts.edges[j, k]:
                counts.bits[k, i] |= bit
    counts.class_bits[code] |= bit
    counts.n[0] += 1
    counts.n[1] += 1


@njit(strict=True)
def popcount(word: np.uint32) -> np.int32:
    """Return the number of set bits."""
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    word = word + (word >> np.uint32(8))
    return np.int32((word + (word >> np.uint32(16))) & np.uint32(0x3F))


@njit(strict=True)
def count_pairs(counts: Counts) -> None:
    """Add the bits of the current word to the pair counts, and clear them."""
    n_edges, q = counts.bits.shape
    for c in range(counts.class_bits.shape[0]):
        for a in range(n_edges):
            for i in range(q):
                counts.above[i, a, c] += popcount(counts.bits[a, i] & counts.class_bits[c])
            for b in range(n_edges):
                pairs, others = counts.pairs[a, b, c], counts.bits[b]
                first = 0
                for i in range(q):
                    word = counts.bits[a, i] & counts.class_bits[c]
                    own, right = pairs[first : first + q - i - 1], others[i + 1 :]
                    for j in range(q - i - 1):  # from 0, so that several are counted at a time
                        own[j] += popcount(word & right[j])
                    first += q - i - 1
    counts.bits[:] = np.uint32(0)
    counts.class_bits[:] = np.uint32(0)
    counts.n[1] = 0


@njit(strict=True)
def table(counts: Counts, i: int, j: int, totals: Array, cells: Array) -> None:
    """Write the table of levels of `columns[i]`, of `columns[j]` and classes, i < j; `totals`: rows per class."""
    n_edges, q = counts.bits.shape
    at = i * (2 * q - i - 1) // 2 + j - i - 1
    if n_edges == 1:  # the common case with many features
        for c in range(totals.shape[0]):
            both = counts.pairs[0, 0, c, at]
            first, second = counts.above[i, 0, c] - both, counts.above[j, 0, c] - both
            cells[1, 1, c], cells[1, 0, c], cells[0, 1, c] = both, first, second
            cells[0, 0, c] = totals[c] - both - first - second
        return
    for c in range(totals.shape[0]):
        for a in range(n_edges + 1):
            for b in range(n_edges + 1):
                cells[a, b, c] = totals[c]
                if a and b:
                    cells[a, b, c] = counts.pairs[a - 1, b - 1, c, at]
                elif a:
                    cells[a, b, c] = counts.above[i, a - 1, c]
                elif b:
                    cells[a, b, c] = counts.above[j, b - 1, c]
        for a in range(n_edges + 1):  # from rows above both edges to rows between them
            for b in range(n_edges):
                cells[a, b, c] -= cells[a, b + 1, c]
        for a in range(n_edges):
            for b in range(n_edges + 1):
                cells[a, b, c] -= cells[a + 1, b, c]


def x_log_x(n: int = 1 << 14) -> Floats:
    """Return k log2 k for k from 0 to n - 1."""
    k = np.arange(n, dtype=np.float64)
    return k * np.log2(np.maximum(k, 1.0))


@njit(strict=True)
def _f(k: int, known: Array) -> float:
    if k <= 0:  # negative only if counts were modified from outside
        return 0.0
    return known[k] if k < known.shape[0] else k * math.log2(k)


@njit(strict=True)
def williams_correction(n_levels: Any, n_classes: Any, n: Any) -> Any:
    """Return the factor by which G of a table exceeds chi square under independence (Williams 1976)."""
    return 1.0 + (n_levels + 1) * (n_classes + 1) / (6.0 * n)


@njit(strict=True)
def measure(counts: Counts, totals: Array, bars: Array, known: Array, gains: Gains) -> None:
    """Write the statistics of every pair; `bars`: the critical values of G by degrees of freedom.

    `known`: k log2 k of small k.
    """
    n_edges, q = counts.bits.shape
    above, pairs = counts.above, counts.pairs
    n_levels, n_classes = n_edges + 1, totals.shape[0]
    n, sum_y, n_met = 0, 0.0, 0
    for c in range(n_classes):
        n += totals[c]
        sum_y += _f(totals[c], known)
        n_met += totals[c] > 0
    unit, log_n = 2.0 * n * math.log(2.0), math.log2(n)  # G per bit; bits of n rows
    sums, left, met = np.zeros(q), np.zeros(q), np.zeros(q, np.int64)  # sum of f(n_x), n H(Y|X), levels used
    for i in range(q):
        for a in range(n_levels):
            total = 0
            for c in range(n_classes):
                rows = totals[c] if a == 0 else counts.above[i, a - 1, c]
                if a < n_edges:
                    rows -= counts.above[i, a, c]
                total += rows
                left[i] -= _f(rows, known)
            sums[i] += _f(total, known)
            met[i] += total > 0
        left[i] += sums[i]
    # By the levels used of x and z: the bars of both tests, and the gain that is expected by chance.
    bar_given, bar_dependent, chance = np.zeros((3, n_levels + 1, n_levels + 1))
    for x in range(2, n_levels + 1):
        for z in range(2, n_levels + 1):
            freedom = (x - 1) * (n_met - 1) * z
            bar_given[x, z] = bars[freedom] * williams_correction(x, n_met, n / z)
            bar_dependent[x, z] = bars[(x - 1) * (z - 1)] * williams_correction(x, z, n)
            chance[x, z] = freedom / unit
    cells = np.zeros((n_levels, n_levels, n_classes), np.int64)
    for part in range(0, q, _TILE):  # cache-friendly order of the writes to (j, i)
        for i in range(min(part + _TILE, q)):
            for j in range(max(i + 1, part), min(part + _TILE, q)):
                gains.given[i, j] = gains.given[j, i] = gains.dependent[i, j] = gains.dependent[j, i] = -1.0
                gains.gain[i, j] = gains.gain[j, i] = gains.joint[i, j] = gains.joint[j, i] = 0.0
                if n < 5 * max(met[i], met[j]) * n_met or met[i] < 2 or met[j] < 2:
                    continue
                both, rest, n_pairs = 0.0, 0.0, 0  # sum of f(n_xz), n H(Y|XZ), occupied pairs of levels
                if n_edges == 1:  # without writing the table, in the same order
                    at, total = i * (2 * q - i - 1) // 2 + j - i - 1, 0
                    for c in range(n_classes):
                        rows = totals[c] - above[i, 0, c] - above[j, 0, c] + pairs[0, 0, c, at]
                        total += rows
                        rest -= _f(rows, known)
                    both += _f(total, known)
                    n_pairs += total > 0
                    for one in (j, i):  # above the edge of one alone
                        total = 0
                        for c in range(n_classes):
                            rows = above[one, 0, c] - pairs[0, 0, c, at]
                            total += rows
                            rest -= _f(rows, known)
                        both += _f(total, known)
                        n_pairs += total > 0
                    total = 0
                    for c in range(n_classes):
                        total += pairs[0, 0, c, at]
                        rest -= _f(pairs[0, 0, c, at], known)
                    both += _f(total, known)
                    n_pairs += total > 0
                else:
                    table(counts, i, j, totals, cells)
                    for a in range(n_levels):
                        for b in range(n_levels):
                            total = 0
                            for c in range(n_classes):
                                total += cells[a, b, c]
                                rest -= _f(cells[a, b, c], known)
                            both += _f(total, known)
                            n_pairs += total > 0
                if n < 5 * n_pairs * n_met:  # a copy occupies few pairs and is detected early
                    continue
                rest += both
                gains.joint[i, j] = gains.joint[j, i] = log_n - (sum_y + rest) / n
                for x, z in ((i, j), (j, i)):
                    gains.given[x, z] = unit * (left[z] - rest) / n - bar_given[met[x], met[z]]
                    gains.gain[x, z] = (left[z] - rest) / n - chance[met[x], met[z]]
                shared = log_n - (sums[i] + sums[j] - both) / n
                gains.dependent[i, j] = gains.dependent[j, i] = unit * shared - bar_dependent[met[i], met[j]]
