"""The test for a lost feature, row by row: Shiryaev-Roberts statistics in the open."""

import math


def first_alarm(raw, theta, tested, limit, shortest, clip=2.5, log_odds=2.0):
    """Return (row, feature), or None. Each feature has two hypotheses; the last two of a row name no feature."""
    h = len(theta)  # those of the features
    R, W, total, first = [0.0] * h, [0.0] * h, [0.0] * h, [0] * h
    for i, row in enumerate(raw):
        for k in range(h):
            R[k] = (1.0 + R[k]) * math.exp(theta[k] * min(row[k], clip))
            W[k] = (1.0 + W[k]) * math.exp(row[k])
            total[k] += theta[k] * min(row[k], clip)
            if total[k] <= 0.0:
                total[k], first[k] = 0.0, i + 1
        features = [j for j in range(len(tested)) if tested[j]]
        long = [j for j in features if i + 1 - min(first[2 * j], first[2 * j + 1]) >= shortest]
        if all((R[2 * j] + R[2 * j + 1]) / 2 <= math.exp(limit) for j in long):
            continue
        best = max(features, key=lambda j: W[2 * j] + W[2 * j + 1])
        of_best = W[2 * best] + W[2 * best + 1]
        of_others = sum(W[2 * j] + W[2 * j + 1] for j in features if j != best)
        leading = max(2 * best, 2 * best + 1, key=lambda k: R[k])
        run = raw[first[leading] : i + 1]
        of_feature, of_none = (
            sum(math.exp(sum(one[k] for one in run)) for k in pair)
            for pair in ((2 * best, 2 * best + 1), (h, h + 1))
        )
        if of_best >= math.exp(log_odds) * of_others and of_feature >= of_none:
            return i, best
    return None
