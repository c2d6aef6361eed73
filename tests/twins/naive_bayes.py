"""Naive Bayes with weights, slow and obvious: everything is recounted from the rows of the window for each prediction.

Barddal's thesis, section 7.2, with the conventions of `tamis.learners.class_likelihoods`.
"""

from __future__ import annotations

import math
from statistics import fmean


def square_sum(values):
    """Sum of the squared deviations from the mean; exactly 0 if all are the same."""
    centre = values[0] + fmean([v - values[0] for v in values])
    return sum((v - centre) ** 2 for v in values)


def gaussian(x, values, everyone):
    """Log-density of x, given the class's values and those of all classes."""
    spread = square_sum(everyone) / max(len(everyone) - 1, 1)
    n = len(values)
    if spread == 0:
        return 0.0
    if n > 1 and len(set(values)) == 1:
        return math.log((n + 1 if x == values[0] else 1) / (n + 2)) - 0.5 * math.log(spread)
    if n > 1:
        centre, variance = fmean(values), max(square_sum(values) / (n - 1), 1e-18 * spread)
    else:
        centre, variance = fmean(values or everyone), spread
    return -0.5 * math.log(2 * math.pi * variance) - (x - centre) ** 2 / (2 * variance)


def share(x, values, everyone):
    """Log of the smoothed share of category x in the class."""
    return math.log((values.count(x) + 1) / (len(values) + max(len(set(everyone)), 1)))


def joint(window, x, n_classes, categorical=(), exponents=None):
    """log P[c] + sum_j e_j log P[x_j | c] for each class c; `window` holds pairs of a row and a code."""
    scores = []
    for c in range(n_classes):
        of_class = [row for row, code in window if code == c]
        if not of_class:
            scores.append(-math.inf)
            continue
        score = math.log(len(of_class) / len(window))
        for j, value in enumerate(x):
            everyone = [row[j] for row, _ in window if not math.isnan(row[j])]
            if math.isnan(value) or not (everyone or j in categorical):
                continue
            values = [row[j] for row in of_class if not math.isnan(row[j])]
            score += (1 if exponents is None else exponents[j]) * (share if j in categorical else gaussian)(
                value, values, everyone
            )
        scores.append(score)
    return scores


def printed(window, x, n_classes, categorical, weights, eps=1e-4):
    """Eq. 7.6 as it is printed, in logarithms: the factor w_i + eps beside each likelihood."""
    factor = sum(math.log(w + eps) for w, value in zip(weights, x, strict=True) if not math.isnan(value))
    return [score + factor for score in joint(window, x, n_classes, categorical)]
