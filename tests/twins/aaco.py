"""AACO's choice as its formula reads: one row, one neighbour, one subset at a time."""

from __future__ import annotations

import math


def distance(row, other, known, scale, categorical, low, high):
    """Squared distance in the known columns; a missing value of the other row counts as two random rows do."""
    total = 0.0
    for j in sorted(known):
        if math.isnan(other[j]):
            total += 2.0
        elif categorical[j]:
            total += scale[j] * (row[j] != other[j])
        else:
            a, b = (min(max(value, low[j]), high[j]) for value in (row[j], other[j]))
            total += scale[j] * (a - b) ** 2
    return total


def choose(row, known, asked, bank, distances, subsets, loss, price, k, factor=1.0, left=math.inf):
    """The next column by (1), or -1; `loss(i, columns)` is that of row i, `price(columns)` of them together."""
    near = sorted(range(len(bank)), key=lambda i: distances[i])[:k] if known else range(len(bank))
    free = [j for j in range(len(row)) if j not in asked]

    def total(subset):
        if price(subset) > left + 1e-9:
            return math.inf
        return sum(loss(i, known | subset) for i in near) / len(near) + factor * price(subset)

    offered = [set(), *({j} for j in free), *(set(subset) - asked for subset in subsets)]
    best = min(offered, key=lambda subset: (round(total(subset), 9), len(subset) > 0, len(subset) > 1))
    if not best:
        return -1
    return min(sorted(best), key=lambda j: round(total({j}), 9))
