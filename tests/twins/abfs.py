"""ABFS, slow and obvious: one row at a time, every stump's candidates tried one after the other."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from scipy.stats import binom

from tamis.drift import make


def entropy(parts):
    whole = sum(parts)
    return -sum(p / whole * math.log2(p / whole) for p in parts if p > 0) if whole > 0 else 0.0


def information_gain(branches):
    total = [sum(part) for part in zip(*branches, strict=True)]
    whole = sum(total)
    if sum(sum(part) > 0.01 * whole for part in branches) < 2:
        return 0.0
    return max(entropy(total) - sum(sum(part) / whole * entropy(part) for part in branches), 0.0)


def by_chance(k, shares):
    """What G of a value with k rows is on average; between whole k on a line, from 32 on as chi square."""
    if k >= 32:
        return len(shares) - 1
    if k != int(k):
        low = by_chance(int(k), shares)
        return low + (k - int(k)) * (by_chance(int(k) + 1, shares) - low)
    n = np.arange(1, int(k) + 1)
    return sum(
        2 * ((binom.pmf(n, k, p) * n * np.log(n)).sum() - (k * p * math.log(k * p) if k else 0))
        for p in shares
        if p < 1
    )


class Candidate:
    """Keeps every row, and counts when asked."""

    def __init__(self, n_features, n_classes, categorical, published):
        self.n_features, self.n_classes, self.categorical = n_features, n_classes, categorical
        self.published = published
        self.rows, self.weight, self.tried = [], 0.0, 0.0

    def add(self, x, y, weight):
        self.rows.append((x, y, weight))
        self.weight += weight

    def splits(self, j):
        """Yield (gain, function from a value to a branch's class, or None)."""
        if j in self.categorical:
            counts = defaultdict(lambda: [0.0] * self.n_classes)
            for x, y, w in self.rows:
                counts[x[j]][y] += w
            multiway = {v: int(np.argmax(part)) for v, part in counts.items()}
            whole, rows = sum(w for *_, w in self.rows), sum(w for *_, w in self.rows) ** 2
            rows /= sum(w * w for *_, w in self.rows)
            shares = [sum(part[c] for part in counts.values()) / whole for c in range(self.n_classes)]
            shares = [share for share in shares if share > 0]
            free = sum(by_chance(sum(part) / whole * rows, shares) for part in counts.values())
            bias = 0.0 if self.published else max(free - (len(shares) - 1), 0) / (2 * rows * math.log(2))
            if sum(sum(part) > 0.01 * whole for part in counts.values()) >= 2:
                yield information_gain(list(counts.values())) - bias, multiway.get
                return
            for v, part in list(counts.items()):
                rest = [sum(other[c] for u, other in counts.items() if u != v) for c in range(self.n_classes)]
                a, b = int(np.argmax(part)), int(np.argmax(rest))
                yield information_gain([part, rest]), lambda x, v=v, a=a, b=b: a if x == v else b
            return
        classes, first = [], sorted(x[j] for x, _, _ in self.rows[:32])
        n = len(first) - 1
        low, middle, high = (
            first[round(n * q)] for q in (0.25, 0.5, 0.75)
        )  # the nearest, of a half the even
        unit = high - low or first[-1] - first[0] or abs(middle) or 1e-300

        def seen(x):
            if self.published:
                return x
            return (x - middle) / unit / (1 + abs((x - middle) / unit))

        for c in range(self.n_classes):
            values = np.array([seen(x[j]) for x, y, _ in self.rows if y == c])
            weights = np.array([w for _, y, w in self.rows if y == c])
            if len(values):
                mean = np.average(values, weights=weights)
                deviation = math.sqrt(np.average((values - mean) ** 2, weights=weights))
                classes.append((weights.sum(), mean, deviation, values.min(), values.max()))
            else:
                classes.append((0.0, 0.0, 0.0, math.inf, -math.inf))
        low, high = min(c[3] for c in classes), max(c[4] for c in classes)
        for cut in np.linspace(low, high, 12)[1:-1] if low < high else []:
            left, right = [], []
            for weight, mean, deviation, least, greatest in classes:
                if weight == 0 or cut < least:
                    share = 0.0
                elif cut >= greatest:
                    share = 1.0
                else:
                    share = 0.5 * (1 + math.erf((cut - mean) / (deviation * math.sqrt(2))))
                left.append(weight * share)
                right.append(weight - weight * share)
            a, b = int(np.argmax(left)), int(np.argmax(right))
            yield information_gain([left, right]), lambda x, cut=cut, a=a, b=b: a if seen(x) <= cut else b

    def best(self, j):
        best = (0.0, None)
        for gain, branch in self.splits(j):
            if gain > best[0] + 1e-9:  # the first of equals
                best = gain, branch
        return best


class ABFS:
    def __init__(
        self, n_features, n_classes, grace_period, threshold, detector, hoeffding, cap, categorical, published
    ):
        self.shape = n_features, n_classes, categorical, published
        self.grace_period, self.threshold, self.detector = grace_period, threshold, detector
        self.hoeffding, self.cap = hoeffding, cap
        self.units, self.candidate, self.drifts = [], Candidate(*self.shape), []
        self.n = 0

    def update(self, x, y):
        row, self.n = self.n, self.n + 1
        weight = min(1.0, self.cap)
        for i, unit in enumerate(self.units):
            hit = unit["branch"](x[unit["feature"]]) == y
            key = "right" if hit else "wrong"
            unit[key] += weight
            weight = min(weight * (unit["right"] + unit["wrong"]) / (2 * unit[key]), self.cap)
            if unit["detector"].update(0.0 if hit else 1.0):
                self.units, self.candidate = self.units[:i], Candidate(*self.shape)
                self.drifts.append(row)
                return
        self.candidate.add(x, y, weight)
        if self.candidate.weight >= self.candidate.tried + self.grace_period:
            self.candidate.tried = self.candidate.weight
            self.select()

    def select(self):
        gains = {j: self.candidate.best(j) for j in range(self.shape[0]) if j not in self.selected}
        first = max(gains, key=lambda j: gains[j][0])
        second = max([0.0] + [gains[j][0] for j in gains if j != first])
        bound = math.sqrt(math.log(1e7) / (2 * self.candidate.weight)) * math.log2(self.shape[1])
        if self.hoeffding and gains[first][0] - second <= bound and bound >= 0.1:
            return
        if gains[first][0] > self.threshold:
            self.units.append({"feature": first, "branch": gains[first][1], "gain": gains[first][0],
                               "right": 0.0, "wrong": 0.0, "detector": make(self.detector)})  # fmt: skip
            self.candidate = Candidate(*self.shape)

    @property
    def selected(self):
        return [unit["feature"] for unit in self.units]

    @property
    def scores(self):
        scores = [self.candidate.best(j)[0] if self.candidate.rows else 0.0 for j in range(self.shape[0])]
        for i, unit in enumerate(self.units):
            scores[unit["feature"]] = (len(self.units) - i) * math.log2(self.shape[1]) + unit["gain"]
        return np.array(scores)
