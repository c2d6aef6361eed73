"""Nearest neighbours with weights, slow and obvious: ranges and distances are worked out again for each pair of rows.

Barddal's thesis, section 7.1, with the conventions of `tamis.learners.knn`.
"""

from __future__ import annotations

import math


def difference(a, b, number, low, high):
    """diff of one feature, (2) to (5)."""
    if not number:
        return 0.0 if a == b else 1.0  # NaN equals nothing
    if math.isnan(a) and math.isnan(b):
        return 1.0
    if math.isnan(a) or math.isnan(b):
        x = b if math.isnan(a) else a
        v = (x - low) / (high - low) if high > low else 0.0
        return max(v, 1 - v)
    return abs(a - b) / (high - low) if high > low else 0.0


def distances(window, x, weights, categorical=()):
    """Distances of x to the rows of the window, given oldest first, returned newest first."""
    squares = [0.0] * len(window)
    for j, weight in enumerate(weights):
        present = [row[j] for row in window if not math.isnan(row[j])]
        low, high = (min(present), max(present)) if present else (0.0, 0.0)
        for i, row in enumerate(window):
            squares[i] += weight * difference(x[j], row[j], j not in categorical, low, high) ** 2
    return [math.sqrt(square) for square in reversed(squares)]


def votes(found, codes, k, n_classes):
    """Votes of the k nearest; `found` and `codes` newest first, and so are rows at the same distance."""
    nearest = sorted(range(len(found)), key=lambda i: (found[i], i))[:k]
    return [sum(codes[i] == c for i in nearest) for c in range(n_classes)]
