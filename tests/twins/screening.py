"""T-score and Fisher score, slow and obvious: keep every row and its faded weight, then use the definitions."""

from __future__ import annotations

import numpy as np


def faded_weights(batches, factor, per, clock):
    """Return the weight of every row after the last batch; batches: list of class codes."""
    weights, codes = np.empty(0), np.empty(0, dtype=int)
    for batch in batches:
        if per == "batch":
            fades = np.isin(codes, batch) if clock == "class" else np.ones(len(codes), dtype=bool)
            weights = np.where(fades, factor * weights, weights)
            weights, codes = np.append(weights, np.ones(len(batch))), np.append(codes, batch)
            continue
        for c in batch:
            weights = np.where((codes == c) | (clock == "global"), factor * weights, weights)
            weights, codes = np.append(weights, 1.0), np.append(codes, c)
    return weights


def fisher(x, y, w):
    known = ~np.isnan(x)
    x, y, w = x[known], y[known], w[known]
    between = within = 0.0
    grand = w @ x / w.sum() if w.sum() else 0.0
    for c in np.unique(y):
        xc, wc = x[y == c], w[y == c]
        mean = wc @ xc / wc.sum()
        between += wc.sum() * (mean - grand) ** 2
        within += wc @ (xc - mean) ** 2
    return between / within if within > 0 else (np.inf if between > 0 else 0.0)


def t_score(x, y, w, n_classes):
    sides = [1] if n_classes == 2 else range(n_classes)
    return max(_t(x, y == c, y, w) for c in sides)


def _t(x, inside, y, w):
    known = ~np.isnan(x)
    means, errors = [], []
    for side in (inside, ~inside):
        if not (side & known).any():
            return 0.0
        part, weight = x[side & known], w[side & known]
        mean = weight @ part / weight.sum()
        variance = weight @ (part - mean) ** 2 / weight.sum()
        # each class has its own effective size, scaled by its share of known values; those of a side add up
        size = 0.0
        for c in np.unique(y[side]):
            rows = y == c
            size += w[rows].sum() ** 2 / (w[rows] ** 2).sum() * w[rows & known].sum() / w[rows].sum()
        means.append(mean)
        errors.append(variance / size)
    gap, error = abs(means[0] - means[1]), np.sqrt(sum(errors))
    return gap / error if error > 0 else (np.inf if gap > 0 else 0.0)
