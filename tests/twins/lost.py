"""The test for a lost feature, row by row: Shiryaev-Roberts statistics in the open, sums over the rows of each run."""

import math


def first_alarm(raw, theta, tested, limit, clip=1.5, shortest=40, margin=3.0):
    """Return (row, hypothesis), or None. The last two hypotheses of a row name no feature."""
    h = len(theta)
    R, total, start = [0.0] * h, [0.0] * h, [0] * h
    for i, row in enumerate(raw):
        for k in range(h):
            step = theta[k] * min(row[k], clip)
            R[k] = (1.0 + R[k]) * math.exp(step)
            total[k] += step
            if total[k] <= 0:
                total[k], start[k] = 0.0, i + 1
        features = [k for k in range(h - 2) if tested[k]]
        if not features:
            continue
        first = max(features, key=lambda k: R[k])
        if math.log(R[first]) <= limit or i + 1 - start[first] < shortest:
            continue
        sums = [sum(raw[r][k] for r in range(start[first], i + 1)) for k in range(h)]
        best = max(features, key=lambda k: sums[k])
        if math.log(R[best]) > limit and sums[best] >= max(sums[-2:]) + margin:
            return i, best
    return None
