"""Levels of a numeric target as their definition says it: row by row, from a sorted list of the last values."""

import math


def levels(target, last=1000, n_levels=5, growth=8):
    found, due, cuts = [], 0, None
    for i, value in enumerate(target):
        if i == due:
            recent = sorted(target[max(i + 1 - last, 0) : i + 1])
            others = [one for one in recent if one < recent[-1]]
            cuts = [recent[math.ceil(h * len(recent) / n_levels) - 1] for h in range(1, n_levels)]
            cuts = [min(cut, others[-1]) if others else cut for cut in cuts]
            due += max(min(i + 1, last) // growth, 1)
        found.append(sum(cut < value for cut in cuts))
    return found


def trend(x, codes):
    """T of a numeric target: the contrast of the level means that a straight line would show, over its error."""
    groups = {c: [a for a, b in zip(x, codes, strict=True) if b == c] for c in sorted(set(codes))}
    n = len(x)
    middle = sum(c * len(group) for c, group in groups.items()) / n
    top, error = 0.0, 0.0
    for c, group in groups.items():
        mean = sum(group) / len(group)
        a = len(group) * (c - middle)
        top += a * mean
        error += a**2 * sum((value - mean) ** 2 for value in group) / len(group) / len(group)
    return abs(top) / math.sqrt(error)
