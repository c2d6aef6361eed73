"""Drift detectors as their formulas read: whole histories, one value at a time. Each returns the detections."""

from __future__ import annotations

import math

import numpy as np


def ecdd(values, limit, weight=0.2, silent=30):
    """limit: function of the error rate."""
    found, x, z = [], [], 0.0
    for i, value in enumerate(values):
        x.append(value)
        z = (1 - weight) * z + weight * value
        p, t = sum(x) / len(x), len(x)
        sigma = math.sqrt(max(p * (1 - p) * weight / (2 - weight) * (1 - (1 - weight) ** (2 * t)), 0.0))
        if t >= silent and z > p + limit(p) * sigma:
            found.append(i)
            x, z = [], 0.0
    return found


def ddm(values, drift=3, warning=2, silent=30):
    """Returns the detections, and where a warning was on."""
    found, warned, x, least = [], [], [], None
    for i, value in enumerate(values):
        x.append(value)
        p = sum(x) / len(x)
        s = math.sqrt(max(p * (1 - p), 0.0) / len(x))
        if len(x) <= silent:
            continue
        if least is None or p + s <= sum(least):
            least = p, s
        if p + s > least[0] + drift * least[1]:
            found.append(i)
            x, least = [], None
        elif p + s > least[0] + warning * least[1]:
            warned.append(i)
    return found, warned


def hddm_a(values, alpha=0.001, two_sided=False):
    found, x = [], []
    best = worst = None

    def e(n):
        return math.sqrt(math.log(1 / alpha) / (2 * n))

    def apart(n0, n):
        return math.sqrt((n - n0) / (n0 * n) / 2 * math.log(2 / alpha))

    for i, value in enumerate(values):
        x.append(value)
        n, mean = len(x), np.mean(x)
        if best is None or best[1] + e(best[0]) >= mean + e(n):
            best = n, mean
        if worst is None or worst[1] - e(worst[0]) <= mean - e(n):
            worst = n, mean
        rose = best[0] < n and mean - best[1] >= apart(best[0], n)
        fell = two_sided and worst[0] < n and worst[1] - mean >= apart(worst[0], n)
        if rose or fell:
            found.append(i)
            x, best, worst = [], None, None
    return found


def weighted(x, rate):
    """Exponentially weighted mean of a list, and the sum of its squared weights."""
    mean, spread = x[0], 1.0
    for value in x[1:]:
        mean, spread = (1 - rate) * mean + rate * value, rate**2 + (1 - rate) ** 2 * spread
    return mean, spread


def hddm_w(values, alpha=0.001, rate=0.05):
    found, start, cut, first = [], 0, math.inf, None
    for i in range(len(values)):
        mean, spread = weighted(values[start : i + 1], rate)
        reach = mean + math.sqrt(spread * math.log(1 / alpha) / 2)
        if reach < cut:
            cut, first, after = reach, (mean, spread), i + 1
        elif i >= after:
            later = weighted(values[after : i + 1], rate)
            if later[0] - first[0] > math.sqrt((first[1] + later[1]) * math.log(1 / alpha) / 2):
                found.append(i)
                start, cut = i + 1, math.inf
    return found


def adwin(values, delta=0.002, every=32, two_sided=False):
    """Buckets are lists of the values themselves."""
    found, buckets, seen = [], [], 0
    for i, value in enumerate(values):
        buckets.append([value])
        seen += 1
        size = 1
        while sum(len(b) == size for b in buckets) > 5:
            at = next(k for k, b in enumerate(buckets) if len(b) == size)
            buckets[at : at + 2] = [buckets[at] + buckets[at + 1]]
            size *= 2
        if seen % every or sum(map(len, buckets)) <= 10:
            continue
        before, cut = np.mean(joined(buckets)), False
        while len(joined(buckets)) > 10 and different(buckets, delta):
            buckets, cut = buckets[1:], True
        if cut and (two_sided or np.mean(joined(buckets)) > before):
            found.append(i)
            buckets, seen = [], 0
    return found


def variance_inflation(values):
    """By block sums of all values, as the equations of tamis.dependence.autocorrelation read."""
    x, levels = np.asarray(values, dtype=float), []
    for level in range(10):
        m = 2**level
        sums = [x[k : k + m].sum() for k in range(0, len(x) - m + 1, m)]
        pairs = [(late - early) ** 2 for early, late in zip(sums[::2], sums[1::2], strict=False)]
        if len(pairs) < max(8, m / 2):
            break
        levels.append((np.mean(pairs) / (2 * m), len(pairs), m))
    if not levels:
        return 1.0
    v = sum(V / (2 * m) for V, _, m in levels) + levels[-1][0] / (2 * levels[-1][2])
    ratios = [(V / v, P, m) for V, P, m in levels]
    if any((R - 1) * math.sqrt(P / 2) > 3 for R, P, m in ratios if 4 * m <= P):
        return max(1.0, *(R for R, _, _ in ratios))
    return 1.0


def ecdd_given_last(values, limit):
    """One chart for the values after an error and one for the others; both begin again at each detection."""
    found, parts, after = [], ([], []), 0
    for i, value in enumerate(values):
        parts[after].append(value)
        drift = ecdd(parts[after], limit)
        after = int(value >= 0.5)
        if drift:
            found.append(i)
            parts, after = ([], []), 0
    return found


def joined(buckets):
    return [value for bucket in buckets for value in bucket]


def different(buckets, delta):
    whole = joined(buckets)
    n = len(whole)
    d = math.log(2 * math.log(n) / delta)
    for border in range(1, len(buckets)):
        old, new = joined(buckets[:border]), joined(buckets[border:])
        if min(len(old), len(new)) <= 6:
            continue
        m = 1 / (len(old) - 4) + 1 / (len(new) - 4)
        if abs(np.mean(old) - np.mean(new)) > math.sqrt(2 * m * np.var(whole) * d) + 2 / 3 * d * m:
            return True
    return False
