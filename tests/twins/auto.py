"""The rule of Auto and a tree of its forests as their formulas say it, in plain Python."""

import math
from statistics import NormalDist


def compared(losses, weight, reference=None, batch=0):
    """Return by how much each candidate is behind the best, or another one, and the error of the paired difference."""
    total, n_candidates = sum(weight), len(losses[0])

    def mean(values):
        return sum(w * v for w, v in zip(weight, values, strict=True)) / total

    means = [mean([row[a] for row in losses]) for a in range(n_candidates)]
    best = means.index(min(means)) if reference is None else reference
    n = total - 1
    behind, error = [], []
    for a in range(n_candidates):
        d = [row[a] - row[best] for row in losses]
        behind.append(mean(d))
        variance = mean([(x - behind[a]) ** 2 for x in d]) / n
        parts = range(0, len(d), batch) if batch else ()
        if len(parts) >= 5:
            sums = [
                sum(w * (x - behind[a]) for w, x in zip(weight[i : i + batch], d[i : i + batch], strict=True))
                for i in parts
            ]
            variance = max(variance, sum((one / total) ** 2 for one in sums) * len(sums) / (len(sums) - 1))
        error.append(variance**0.5)
    return behind, error


def smallest(sizes, losses, weight, tolerance, now, is_costly, anchor, batch):
    """Return the candidate that is selected after `now`."""
    behind, error = compared(losses, weight, None, batch)
    good = [gap + spread <= tolerance for gap, spread in zip(behind, error, strict=True)]
    if anchor is not None:
        far = compared(losses, weight, anchor, batch)
        good = [a and gap + 2 * spread <= tolerance for a, gap, spread in zip(good, *far, strict=True)]
        good[anchor] |= not any(good)
    z = NormalDist().inv_cdf(1 - 0.05 / len(sizes))
    bar = (z if is_costly else 2) * error[now]
    is_early = is_costly and len(losses) < 500
    is_left = behind[now] > bar + 2 / len(losses) and not good[now]
    found = []
    for a, size in enumerate(sizes):
        is_sure = not is_early and (max(error[a], error[now]) <= tolerance or len(losses) >= 1000)
        if good[a] and ((is_left and not is_early) or (size < sizes[now] and is_sure)):
            found.append((size, behind[a], a))
    return min(found)[2] if found else now


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


def boosted(X, y, cuts, importance, penalties=(20, 10, 5, 2), n_rounds=6, rate=0.3):
    """Return the score of each column in penalised boosted trees of depth 4."""
    n, p = len(y), len(cuts)
    residual, used, gains = [value - sum(y) / n for value in y], set(), [0.0] * p
    scores = [one / sum(importance) for one in importance]
    for level, penalty in enumerate(penalties):
        for _ in range(n_rounds):
            noise = sum(value**2 for value in residual) / n
            members, fitted = {0: list(range(n))}, [0.0] * n
            for node in range(31):
                rows = members.get(node, [])
                for i in rows:
                    fitted[i] = sum(residual[j] for j in rows) / len(rows)
                found, most = None, 1e-9 * len(rows)
                for j in range(p) if node < 15 else ():
                    split = best_split([[row[j]] for row in (X[i] for i in rows)], [residual[i] for i in rows],
                                       [1.0] * len(rows), [0], [cuts[j]])  # fmt: skip
                    paid = split[2] - (0 if j in used else penalty * noise)
                    if split[0] is not None and paid > most:
                        found, most = (j, split[1], split[2]), paid
                if found:
                    j, cut, gain = found
                    used.add(j)
                    gains[j] += gain / noise
                    members[2 * node + 1] = [i for i in rows if X[i][j] <= cut]
                    members[2 * node + 2] = [i for i in rows if X[i][j] > cut]
            residual = [one - rate * two for one, two in zip(residual, fitted, strict=True)]
        scores = [len(penalties) - level if j in used and scores[j] < 1 else scores[j] for j in range(p)]
    return [scores[j] + (j in used) * gains[j] / (sum(gains) + 1) for j in range(p)]


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
