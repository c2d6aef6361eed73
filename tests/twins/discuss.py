"""DISCUSS, slow and obvious: every entropy counted anew from the rows of the window, after every row.

Barddal's thesis, chapter 8; the same options as `tamis.rows.discuss`. Categories are counted as they are; the bins of
numbers are asked of the window, one row at a time.
"""

from __future__ import annotations

from collections import Counter
from math import log, log2, sqrt

import numpy as np
from scipy.stats import chi2

from tamis.summaries.entropy import WindowCounts

LN4 = 2 * log(2)


def entropy(*columns):
    n = len(columns[0])
    return -sum(k / n * log2(k / n) for k in Counter(zip(*columns, strict=True)).values())


def gain(x, y):
    return entropy(x) + entropy(y) - entropy(x, y)


def free(x, y):
    return (len(set(x)) - 1) * (len(set(y)) - 1)


class DiscussTwin:
    def __init__(
        self,
        n_features,
        n_classes,
        *,
        most=None,
        threshold=None,
        window=300,
        literal=False,
        margin=0.02,
        redundancy="conditional",
        early=True,
        half_life=1000,
        corrected=True,
        min_features=1,
        interval=None,
        delta=0.05,
        n_bins=None,  # None: categories
    ):
        self.d, self.most, self.threshold, self.w = n_features, most or n_features + 1, threshold, window
        self.literal, self.margin, self.redundancy, self.corrected = literal, margin, redundancy, corrected
        self.early, self.half_life = early and not literal, None if literal else half_life
        self.min_features, self.delta = min_features, delta
        self.interval = interval or (1 if literal else window // 4)
        self.counts = WindowCounts(n_features, n_classes, window, n_bins=n_bins) if n_bins else None
        self.rows, self.codes, self.t = [], [], 0
        self.su, self.mean, self.selected, self.bar = [0.0] * n_features, [0.0] * n_features, [], None
        self.next, self.began, self.drift, self.n_selections = window, 0, False, 0

    def columns(self, n):
        """The last n rows of each feature, and their classes."""
        rows = self.counts.binned()[0].tolist() if self.counts else self.rows
        return [[row[j] for row in rows[-n:]] for j in range(self.d)], self.codes[-n:]

    def learn(self, row, code):
        self.rows, self.codes, self.t = (
            [*self.rows, row][-self.w :],
            [*self.codes, code][-self.w :],
            self.t + 1,
        )
        if self.counts:
            self.counts.update(np.array([row]), np.array([code]))
        self.drift = False
        self.su, fading = self.view(len(self.rows))[0], 0.0
        if self.half_life:
            fading = 1 - 0.5 ** (1 / self.half_life)
        self.mean = [m + fading * (s - m) for m, s in zip(self.mean, self.su, strict=True)]
        if self.t >= self.next and (self.bar is None or self.fires()):
            self.renew(self.w)
        elif self.selected and not self.literal:
            self.look()

    def view(self, n):
        """SU, information gain, both corrected if asked, and degrees of freedom over the last n rows."""
        columns, y = self.columns(n)
        frees = [free(x, y) for x in columns]
        gains = [
            gain(x, y) - (f / (n * LN4) if self.corrected else 0) for x, f in zip(columns, frees, strict=True)
        ]
        spread = [entropy(x) + entropy(y) for x in columns]
        su = [min(max(2 * g / h, 0), 1) if h > 0 else 0.0 for g, h in zip(gains, spread, strict=True)]
        return su, gains, spread, frees

    def fires(self):
        for j, s in enumerate(self.su):
            if self.literal:
                bar = self.su[self.base] if self.base is not None else self.bar[j]
                if j != self.base and (
                    (s > bar and j not in self.selected) or (s < bar and j in self.selected)
                ):
                    return True
            elif self.above[j]:
                if s < self.bar[j] - self.slack(self.bar[j]):
                    return True
            elif s > self.bar[j] + self.margin:
                return True
        return False

    def slack(self, bar):
        return min(self.margin, 0.8 * bar)

    def look(self):
        half, step, age = self.w // 2, max(self.w // 6, 1), self.t - self.began
        if self.half_life and self.t % self.half_life == 0:
            self.renew(min(age, self.w))
        elif self.early and self.t % step == 0:
            if age >= self.w and self.has_news(half):
                self.began, age = self.t - half, half
            if age < self.w:
                self.renew(age)

    def has_news(self, n):
        columns, y = self.columns(n)
        return any(
            not self.above[j]
            and gain(x, y) * n * LN4 > chi2.isf(0.01 * self.delta / self.d, max(free(x, y), 1))
            for j, x in enumerate(columns)
        )

    def thresholds(self, n, spread, frees):
        if self.threshold == "auto":
            return [sqrt(log(1 / self.delta) / (2 * self.w))] * self.d
        if self.threshold is not None:
            return [self.threshold] * self.d
        return [
            2 * (chi2.isf(self.delta / self.d, f) - (f if self.corrected else 0)) / (n * LN4) / h
            if f * h > 0
            else 9.0
            for f, h in zip(frees, spread, strict=True)
        ]

    def renew(self, n):
        if len(set(self.codes)) < 2:
            self.next = self.t + 1
            return
        self.n_selections += 1
        su, gains, spread, frees = self.view(n)
        thresholds = self.thresholds(n, spread, frees)
        rank = su
        if self.half_life:
            rank = [m * (1.05 if j in self.selected else 1.0) for j, m in enumerate(self.mean)]
        order, taken = sorted(range(self.d), key=lambda j: -rank[j]), []
        for c in order:
            bar = thresholds[c]
            if c in self.selected and not self.literal:
                bar -= self.slack(bar)
            known = any(self.redundant(c, s, n, su, gains) for s in taken) if su[c] > bar else True
            if len(taken) < self.most and not known:
                taken.append(c)
        full = len(taken) == self.most
        while len(taken) < min(self.min_features, self.d):
            taken.append(next(c for c in order if c not in taken))
        self.bar, self.base = thresholds, None
        if full and self.literal:
            self.base = taken[-1]
        elif full:
            self.bar = [min(su[j] for j in taken)] * self.d
        self.above = [s >= b for s, b in zip(su, self.bar, strict=True)]
        self.drift = self.literal or set(taken) != set(self.selected)
        self.selected = taken
        self.next = max(self.t + self.interval, self.began + self.w)

    def redundant(self, c, s, n, su, gains):
        """Whether candidate c is redundant to the selected s."""
        if self.redundancy is None:
            return False
        if self.redundancy == "conditional":
            columns, y = self.columns(n)
            parts = {}
            for a, b, code in zip(columns[s], columns[c], y, strict=True):
                parts.setdefault(a, []).append((b, code))
            parts = [tuple(zip(*part, strict=True)) for part in parts.values()]
            adds = sum(len(x) / n * gain(x, z) - free(x, z) / (n * LN4) for x, z in parts)
            return adds < (0.1 if c in self.selected else 0.3) * gains[c]
        columns, _ = self.columns(len(self.rows))
        x, z = columns[c], columns[s]
        bias = free(x, z) / (len(x) * LN4) if self.corrected else 0.0
        pair = 2 * (gain(x, z) - bias) / (entropy(x) + entropy(z))
        near = self.redundancy == "predominance" or abs(su[s] - su[c]) < sqrt(
            log(1 / self.delta) / (2 * self.w)
        )
        return near and pair > su[c]
