"""Magnitudes of drift as their definitions say, of two lists of (value, label) pairs."""

import math


def shares(items, over):
    return [items.count(one) / len(items) for one in over] if items else None


def distance(before, after, kind):
    """Return the mean of the summands and of those that chance alone would give: (d, bias)."""
    over = sorted({*before, *after})
    p, q = shares(before, over), shares(after, over)
    if p is None or q is None:
        return (1.0, 0.0) if p is not q else (0.0, 0.0)
    each = 1 / len(before) + 1 / len(after)
    if kind == "hellinger":
        return sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(p, q, strict=True)) / 2, (
            len(over) - 1
        ) / 8 * each
    pooled = shares([*before, *after], over)
    bias = sum(math.sqrt(2 / math.pi * s * (1 - s) * each) for s in pooled) / 2
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2, bias


def conditional(before, after, of, given, kind):
    """Return the mean over the values of the condition, weighted by its shares in both windows."""
    totals = [0.0, 0.0]
    for condition in {given(pair) for pair in [*before, *after]}:
        parts = [[of(pair) for pair in window if given(pair) == condition] for window in (before, after)]
        weight = (len(parts[0]) / len(before) + len(parts[1]) / len(after)) / 2
        for k, one in enumerate(distance(*parts, kind)):
            totals[k] += weight * one
    return totals


def magnitudes(before, after, kind="hellinger", corrected=True):
    def value(pair):
        return pair[0]

    def label(pair):
        return pair[1]

    every = {
        "covariate": distance([value(pair) for pair in before], [value(pair) for pair in after], kind),
        "class_conditional": conditional(before, after, value, label, kind),
        "posterior": conditional(before, after, label, value, kind),
        "joint": distance(before, after, kind),
    }
    if kind != "hellinger":
        every = {name: (d * d, bias * bias) for name, (d, bias) in every.items()}
    return {name: math.sqrt(max(d - (bias if corrected else 0.0), 0.0)) for name, (d, bias) in every.items()}
