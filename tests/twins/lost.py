"""The test for a lost feature, row by row: Shiryaev-Roberts statistics in the open."""

import math


def first_alarm(raw, theta, tested, limit, clip=2.5, odds=math.exp(2)):
    """Return (row, feature), or None. Each feature has two hypotheses; the last two of a row name no feature."""
    h = len(theta)
    R, W = [0.0] * h, [0.0] * h
    for i, row in enumerate(raw):
        for k in range(h):
            R[k] = (1.0 + R[k]) * math.exp(theta[k] * min(row[k], clip))
            W[k] = (1.0 + W[k]) * math.exp(row[k])
        features = [j for j in range(len(tested)) if tested[j]]
        if all((R[2 * j] + R[2 * j + 1]) / 2 <= math.exp(limit) for j in features):
            continue
        best = max(features, key=lambda j: W[2 * j] + W[2 * j + 1])
        of_best = W[2 * best] + W[2 * best + 1]
        of_others = sum(W[2 * j] + W[2 * j + 1] for j in features if j != best)
        if of_best >= odds * of_others and of_best >= W[-2] + W[-1]:
            return i, best
    return None
