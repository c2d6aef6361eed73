"""DISCUSS, slow and obvious: every entropy counted again from the rows of the window, after every row.

Barddal's thesis, chapter 8; the same options as `tamis.rows.discuss.discuss`. Categories are counted as they are; the
bins of numbers are asked of the window, one row at a time.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import log, log2, sqrt

import numpy as np
from scipy.stats import binom, chi2

from tamis.summaries.entropy import WindowCounts

LN4 = 2 * log(2)


def entropy(*columns):
    n = len(columns[0])
    return -sum(k / n * log2(k / n) for k in Counter(zip(*columns, strict=True)).values())


def gain(x, y):
    return entropy(x) + entropy(y) - entropy(x, y)


def free(x, y):
    return (len(set(x)) - 1) * (len(set(y)) - 1)


@cache
def by_chance(k, shares):
    """What G of a value with k rows is on average, classes of these shares drawn at random."""
    if k >= 32:
        return len(shares) - 1
    n = np.arange(1, k + 1)
    return sum(2 * ((binom.pmf(n, k, p) * n * np.log(n)).sum() - k * p * log(k * p)) for p in shares if p < 1)


def sparse_free(x, y):
    shares = tuple(sorted(n / len(y) for n in Counter(y).values()))
    if len(set(x)) < 2:
        return 0.0
    return max(sum(by_chance(n, shares) for n in Counter(x).values()) - (len(shares) - 1), 0.0)


class Errors:
    """What naive Bayes on the selected features has wrong, and Page's CUSUM of it, class by class."""

    def __init__(self, n_classes):
        self.C, self.features = n_classes, {}
        self.rows, self.wrong, self.guesses = [4.0] * n_classes, [2.0] * n_classes, [2.0] * n_classes
        self.steps, self.s, self.since = [(0.0, 0.0)] * n_classes, 0.0, 0

    def watch(self, selected, rows, codes, exact):
        known, self.features = self.features, {}
        for j in selected[:16]:
            if j in known:
                self.features[j] = known[j]
                continue
            column = [row[j] for row in rows]
            self.features[j] = (edges_of(column, exact), Counter(), Counter())
            for x, c in zip(column, codes, strict=True):
                self.learn(j, x, c, exact)

    def learn(self, j, x, c, exact):
        edges, table, total = self.features[j]
        table[bin_of(x, edges, exact), c] += 1
        total[c] += 1

    def judge(self, row, code, exact):
        """Return the evidence."""
        likelihood = [1.0] * self.C
        for j, (edges, table, total) in self.features.items():
            b = bin_of(row[j], edges, exact)
            for c in range(self.C):
                likelihood[c] *= (table[b, c] + 0.5) / (total[c] + 5.5)
        total = next(iter(self.features.values()))[2]
        for j in self.features:
            self.learn(j, row[j], code, exact)
        seen = [c for c in range(self.C) if total[c] > (c == code)]
        guess = max(seen, key=lambda c: likelihood[c], default=-1)
        for tally in (self.rows, self.wrong, self.guesses):
            tally[:] = [0.999 * t for t in tally]
        self.rows[code] += 1
        self.wrong[code] += guess != code
        if guess >= 0:
            self.guesses[guess] += 1
        self.s = max(0.0, self.s + self.steps[code][guess != code])
        self.since = self.since + 1 if self.s > 0 else 0
        return self.s

    def expect(self):
        for c in range(self.C):
            p = min(self.wrong[c] / self.rows[c], 0.98)
            chance = 1 - self.guesses[c] / sum(self.guesses)
            p1 = (p + min(max(p, chance), 0.98)) / 2 + 0.01
            self.steps[c] = log((1 - p1) / (1 - p)), log(p1 / p)


def edges_of(column, exact):
    """The nine most frequent values, or nine quantiles."""
    known = sorted(x for x in column if x == x)
    values = sorted(set(known))
    if exact:
        return sorted(sorted(values, key=lambda v: -known.count(v))[:9])
    if len(values) <= 10:
        return values[:-1]
    shares = [sum(x <= v for x in known) / len(known) * 10 for v in values]
    return sorted({next(v for v, s in zip(values, shares, strict=True) if s >= k) for k in range(1, 10)})


def bin_of(x, edges, exact):
    if x != x:
        return "missing"
    if exact:
        return x if x in edges else "other"
    return sum(x > e for e in edges)


def another_relation(old, young, C, alpha):
    """Whether pairs of a value and a class in two samples do not fit odds that are the same in both."""
    samples = [Counter(old), Counter(young)]
    values = [
        a for a in {a for a, _ in [*old, *young]} if all(sum(s[a, c] for c in range(C)) >= 5 for s in samples)
    ]
    cells = [(a, c) for a in values for c in range(C) if any(s[a, c] for s in samples)]
    freedom = len(cells) - len(values) - len({c for _, c in cells}) + 1
    if not values or freedom <= 0:
        return False
    bar = 1.25 * chi2.isf(alpha, freedom)
    n = np.array([[[s[a, c] for s in samples] for c in range(C)] for a in values], float)
    m = n.sum(axis=2, keepdims=True) * n.sum(axis=1, keepdims=True) / n.sum(axis=(1, 2), keepdims=True)

    def statistic():
        return 2 * (n[n > 0] * np.log(n[n > 0] / m[n > 0])).sum()

    if statistic() <= bar:
        return False
    for _ in range(20):
        for axes in ((0,), (2,), (1,)):
            fitted = m.sum(axis=axes, keepdims=True)
            m = m * np.divide(
                n.sum(axis=axes, keepdims=True), fitted, out=np.ones_like(fitted), where=fitted > 0
            )
    return statistic() > bar


class DiscussTwin:
    def __init__(
        self,
        n_features,
        n_classes,
        *,
        most=None,
        threshold=None,
        window=500,
        literal=False,
        margin=0.02,
        redundancy="conditional",
        alpha=1e-5,
        half_life=1000,
        corrected=True,
        min_features=None,
        interval=None,
        delta=0.05,
        n_bins=None,  # None: categories
    ):
        self.d, self.most, self.threshold, self.w = n_features, most or n_features + 1, threshold, window
        self.literal, self.margin, self.redundancy, self.corrected = literal, margin, redundancy, corrected
        self.alpha, self.half_life = None if literal else alpha, None if literal else half_life
        self.C, self.exact = n_classes, n_bins is None
        self.min_features, self.delta, self.n_bins = min_features, delta, n_bins or 5
        self.interval = interval or (1 if literal else window // 4)
        self.counts = WindowCounts(n_features, n_classes, window, n_bins=n_bins) if n_bins else None
        self.rows, self.codes, self.t = [], [], 0
        self.su, self.mean, self.selected, self.bar = [0.0] * n_features, [0.0] * n_features, [], None
        self.next, self.began, self.drift, self.n_selections = window, 0, False, 0
        self.age_then, self.found, self.raw = 0, -1, []
        self.forget()

    def forget(self):
        self.errors, self.edges, self.before = Errors(self.C), None, None

    def seen(self, x, j):
        first = self.first[j]
        low, middle, high = (first[round(31 * q)] for q in (0.25, 0.5, 0.75))
        unit = high - low or first[-1] - first[0] or abs(middle) or 2e-300
        return (x - middle) / unit / (1 + abs((x - middle) / unit))

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
        if (
            self.counts and self.t > 32
        ):  # numbers in units of the middle half of the first 32 rows, between -1 and 1
            row = [self.seen(x, j) for j, x in enumerate(row)]
        self.raw = [*self.raw, row][-self.w :]
        if self.counts and self.t == 32:
            self.first = [sorted(x[j] for x in self.raw) for j in range(self.d)]
            self.raw = [[self.seen(x, j) for j, x in enumerate(r)] for r in self.raw]
            self.counts = WindowCounts(self.d, self.C, self.w, n_bins=self.counts.n_bins)
            self.counts.update(np.array(self.raw), np.array(self.codes))
        elif self.counts:
            self.counts.update(np.array([row]), np.array([code]))
        self.drift = False
        self.su, fading = self.view(len(self.rows))[0], 0.0
        if self.half_life:
            fading = max(1 - 0.5 ** (1 / self.half_life), 1 / max(self.t - self.began, 1))
        self.mean = [m + fading * (s - m) for m, s in zip(self.mean, self.su, strict=True)]
        if self.errors.features:
            if self.errors.judge(row, code, self.exact) > -log(self.alpha):
                self.begin(self.errors.since)
                return
            if self.t % 16 == 0:
                self.errors.expect()
        if self.t >= self.next and (self.bar is None or self.fires()):
            self.renew(self.w)
        elif self.selected and not self.literal:
            self.look()

    def begin(self, n):
        self.began, self.found = self.t - min(max(n, 30), len(self.rows)), self.t
        self.forget()
        self.drift, self.selected, self.bar = True, [], None
        self.renew(self.t - self.began)

    def view(self, n, sparse=False):
        """SU, information gain, both corrected if asked, and degrees of freedom over the last n rows."""
        columns, y = self.columns(n)
        frees = [(sparse_free if sparse else free)(x, y) for x in columns]
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
                if s - self.shift[j] < self.bar[j] - self.slack(self.bar[j]):
                    return True
            elif s - self.shift[j] > self.bar[j] + self.margin:
                return True
        return False

    def slack(self, bar):
        return min(self.margin, 0.8 * bar)

    def look(self):
        due, young = self.alpha is not None and self.t % 50 == 0, self.age_then < self.w
        if due and not young:
            if n := self.rows_of_another_relation():
                self.begin(n)
                return
            if 0 <= self.found <= self.t - 2 * self.w:
                self.began, self.found, self.drift = self.t - self.w, -1, True
                self.forget()
                self.errors.watch(self.selected, self.raw, self.codes, self.exact)
        if (due and young) or (self.half_life and self.t % self.half_life == 0):
            self.renew(min(self.t - self.began, self.w))

    def rows_of_another_relation(self):
        age, young, alpha = self.t - self.began, min(150, self.w // 2), self.alpha / self.d
        if age % self.w < 50:
            if self.before is None:
                self.edges = [edges_of([row[j] for row in self.raw], self.exact) for j in range(self.d)]
                self.before = [[] for _ in range(self.d)]
            changed = False
            for j in range(self.d):
                bins = [bin_of(row[j], self.edges[j], self.exact) for row in self.raw]
                now = list(zip(bins, self.codes, strict=True))
                changed |= bool(self.before[j]) and another_relation(self.before[j], now, self.C, alpha)
                self.before[j] += now
            if changed:
                return self.w
        columns, y = self.columns(self.w)
        for x in columns:
            pairs = list(zip(x, y, strict=True))
            if another_relation(pairs[:-young], pairs[-young:], self.C, alpha):
                return young
        return 0

    def thresholds(self, n, spread, frees):
        if self.threshold == "auto":
            return [sqrt(log(1 / self.delta) / (2 * self.w))] * self.d
        if self.threshold is not None:
            return [self.threshold] * self.d
        return [
            2 * (chi2.isf(self.delta / self.d, max(f, 1)) - (f if self.corrected else 0)) / (n * LN4) / h
            if f * h > 0
            else 9.0
            for f, h in zip(frees, spread, strict=True)
        ]

    def fewest(self):
        if self.min_features is not None:
            return self.min_features
        shares = [self.codes.count(c) / len(self.codes) for c in range(self.C)]
        rare = (1 - max(shares)) * self.w < min(self.w / 10, 10 * self.n_bins)
        return self.most if rare and self.most <= self.d else 1

    def renew(self, n):
        if len(set(self.codes)) < 2:
            self.next = self.t + 1
            return
        self.n_selections += 1
        su, gains, spread, frees = self.view(n, sparse=True)
        if self.literal:
            su = self.su
        thresholds = self.thresholds(n, spread, frees)
        rank = su
        kept = self.selected if self.age_then >= self.w and not self.literal else []
        if self.half_life:
            rank = [m * (1.05 if j in kept else 1.0) for j, m in enumerate(self.mean)]
        order, taken = sorted(range(self.d), key=lambda j: -rank[j]), []
        for c in order:
            bar = thresholds[c]
            if c in kept:
                bar -= self.slack(bar)
            known = any(self.redundant(c, s, n, su, gains, kept) for s in taken) if su[c] > bar else True
            if len(taken) < self.most and not known:
                taken.append(c)
        full = len(taken) == self.most
        while len(taken) < min(self.fewest(), self.d):
            taken.append(next(c for c in order if c not in taken))
        self.bar, self.base = thresholds, None
        if full and self.literal:
            self.base = taken[-1]
        elif full:
            self.bar = [min(su[j] for j in taken)] * self.d
        self.above = [s >= b for s, b in zip(su, self.bar, strict=True)]
        self.shift = [mine - s if n == self.w else 0.0 for mine, s in zip(self.su, su, strict=True)]
        self.drift |= self.literal or (self.alpha is None and set(taken) != set(self.selected))
        if taken != self.selected:
            self.selected = taken
            if self.alpha is not None:
                n = min(self.t - self.began, len(self.raw))
                self.errors.watch(taken, self.raw[-n:], self.codes[-n:], self.exact)
        self.age_then = self.t - self.began
        self.next = max(self.t + self.interval, self.began + self.w)

    def redundant(self, c, s, n, su, gains, kept):
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
            return adds < (0.1 if c in kept else 0.3) * gains[c]
        columns, _ = self.columns(len(self.rows))
        x, z = columns[c], columns[s]
        bias = free(x, z) / (len(x) * LN4) if self.corrected else 0.0
        pair = 2 * (gain(x, z) - bias) / (entropy(x) + entropy(z))
        near = self.redundancy == "predominance" or abs(su[s] - su[c]) < sqrt(
            log(1 / self.delta) / (2 * self.w)
        )
        return near and pair > su[c]


def counted_in_bins(rows, codes, edges, n_classes):
    """Rows of each bin and class: below or at each edge, above all, missing; the last two bins of each feature."""
    tables = [[[0] * n_classes for _ in range(len(own) + 2)] for own in edges]
    for row, code in zip(rows, codes, strict=True):
        for j, x in enumerate(row):
            b = bin_of(x, edges[j], False)
            tables[j][-1 if b == "missing" else b][code] += 1
    return tables
