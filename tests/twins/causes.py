"""The tests of why labels differ from forecasts, row by row: Shiryaev-Roberts statistics in the open."""

import math


def first_alarm(raw, theta, group, tested, limit, shortest, clip=2.5):
    """Return (row, group), or None: the group with the largest mean of its statistics, if it exceeds exp(limit)."""
    h = len(theta)
    R, total, first = [0.0] * h, [0.0] * h, [0] * h
    for i, row in enumerate(raw):
        for k in range(h):
            R[k] = (1.0 + R[k]) * math.exp(theta[k] * min(row[k], clip))
            total[k] += theta[k] * min(row[k], clip)
            if total[k] <= 0.0:
                total[k], first[k] = 0.0, i + 1
        means = {}
        for g in range(len(tested)):
            members = [k for k in range(h) if group[k] == g]
            longest = max(i + 1 - first[k] for k in members)
            if tested[g] and longest >= shortest:
                means[g] = sum(R[k] for k in members) / len(members)
        best = max(means, key=means.get, default=None)
        if best is not None and means[best] > math.exp(limit):
            return i, best
    return None
