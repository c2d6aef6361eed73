"""The rule of Auto and a tree of its forests as their formulas say it, in plain Python."""

import math
from statistics import NormalDist


def compared(losses, weight):
    """Return by how much each candidate is behind the best, and the standard error of the paired difference."""
    total, n_candidates = sum(weight), len(losses[0])

    def mean(values):
        return sum(w * v for w, v in zip(weight, values, strict=True)) / total

    means = [mean([row[a] for row in losses]) for a in range(n_candidates)]
    best = means.index(min(means))
    n = total - 1
    behind, error = [], []
    for a in range(n_candidates):
        d = [row[a] - row[best] for row in losses]
        behind.append(mean(d))
        error.append((mean([(x - behind[a]) ** 2 for x in d]) / n) ** 0.5)
    return behind, error


def smallest(sizes, losses, weight, tolerance, now, is_costly):
    """Return the candidate that is selected after `now`."""
    behind, error = compared(losses, weight)
    z = NormalDist().inv_cdf(1 - 0.05 / len(sizes))
    bar = (z if is_costly else 2) * error[now]
    is_early = is_costly and len(losses) < 500
    is_left = behind[now] > bar + 2 / len(losses)
    is_left &= behind[now] > 0 and behind[now] + error[now] > tolerance
    good = []
    for a, size in enumerate(sizes):
        is_good = behind[a] <= 0 or behind[a] + error[a] <= tolerance
        is_sure = not is_early and (max(error[a], error[now]) <= tolerance or len(losses) >= 1000)
        if is_good and ((is_left and not is_early) or (size < sizes[now] and is_sure)):
            good.append((size, behind[a], a))
    return min(good)[2] if good else now


def brier(shares, true, weight):
    """Return the Brier score of one row relative to that of the proportions of the classes."""
    total = sum(weight)
    base = sum(w / total * (1 - w / total) for w in weight)
    return sum((share - (k == true)) ** 2 for k, share in enumerate(shares)) / base


def best_split(X, y, weight, columns, cuts, least=5):
    """Return the column and cut of largest decrease of the squared error, and that decrease."""

    def squares(rows):
        total = sum(weight[i] for i in rows)
        mean = sum(weight[i] * y[i] for i in rows) / total
        return sum(weight[i] * (y[i] - mean) ** 2 for i in rows)

    rows = [i for i in range(len(y)) if weight[i] > 0]
    found = (None, None, 0.0)
    for j in columns:
        for cut in cuts[j]:
            left = [i for i in rows if X[i][j] <= cut]
            right = [i for i in rows if X[i][j] > cut]
            if min(sum(weight[i] for i in left), sum(weight[i] for i in right)) < least:
                continue
            gain = squares(rows) - squares(left) - squares(right)
            if gain > found[2] + 1e-9:
                found = (j, cut, gain)
    return found


def logistic_regression(Z, is_class, mask, rate=0.01):
    """Return the weights and the offset of a logistic regression of the columns in `mask`, one row after another."""
    w, b = [0.0] * len(mask), 0.0
    for z, t in zip(Z, is_class, strict=True):
        inside = [value * kept for value, kept in zip(z, mask, strict=True)]
        p = 1 / (1 + math.exp(-(b + sum(weight * value for weight, value in zip(w, inside, strict=True)))))
        step = rate / (1 + rate * (1 + sum(value**2 for value in inside)) / 4) * (t - p)
        b += step
        w = [weight + step * value for weight, value in zip(w, inside, strict=True)]
    return w, b
