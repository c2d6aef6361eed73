"""JointScreening, slow and obvious: rows in lists, every table counted again from them, every test by scipy.

What must agree with the fast version: the cuts, the scores, the set, its order, the partners and the drifts.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import chi2, kruskal


def information(*columns):
    """Entropy of the joint values of columns, in bits."""
    _, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    share = counts / counts.sum()
    return -(share * np.log2(share)).sum()


def trend_of(levels, y):
    """Kruskal and Wallis' H by scipy; 0 where too few rows are outside the commonest level and class."""
    outside = (len(y) - np.unique(part, return_counts=True)[1].max() for part in (levels, y))
    if math.prod(outside) < 5 * len(y):
        return 0.0
    return kruskal(*(levels[y == c] for c in np.unique(y))).statistic


def with_few_rows(n_levels, n_classes, n):
    """Williams' correction of G."""
    return 1.0 + (n_levels + 1) * (n_classes + 1) / (6.0 * n)


def edges_of(column, n_levels):
    values = np.unique(column)
    if len(values) <= n_levels:
        return [a + (b - a) / 2.0 for a, b in itertools.pairwise(values)]
    return np.unique(np.quantile(column, np.arange(1, n_levels) / n_levels)).tolist()


class Cusum:
    """Page's test that errors are no longer as likely as p, but as p1: the best sum of log ratios up to now."""

    def __init__(self):
        self.ratios = []

    def update(self, wrong, p, p1):
        self.ratios.append(math.log(p1 / p) if wrong else math.log((1.0 - p1) / (1.0 - p)))

    def state(self):
        """The largest sum of the last ratios (0: of none), and of how many."""
        total, best = 0.0, (0.0, 0)
        for k, ratio in enumerate(reversed(self.ratios), 1):
            total += ratio
            best = max(best, (total, k))
        return best


class JointScreening:
    def __init__(self, n_levels, alpha=0.01, alpha_drift=1e-5, memory=1000):
        self.n_levels, self.alpha, self.alpha_drift, self.memory = n_levels, alpha, alpha_drift, memory
        self.all, self.rows = [], None  # every row ever; those that count
        self.set, self.scores, self.partners, self.drifts = [], None, None, []

    def learn(self, X, y):
        for x, label in zip(X, y, strict=True):
            self.all.append((x, int(label)))
            if self.scores is None:
                self.scores, self.partners = np.zeros(len(x)), np.full(len(x), -1)
            if self.rows is not None:
                self.take(x, int(label))
            elif len(self.all) == 64:
                self.begin(64)

    def begin(self, n, chunk=512.0):
        recent = np.array([x for x, _ in self.all[-self.memory :]])
        self.coarse = [edges_of(recent[:, j], self.n_levels) for j in range(recent.shape[1])]
        self.fine = [edges_of(recent[:, j], 10) for j in range(recent.shape[1])]
        self.rows, self.chunk, self.next, self.pair = [], chunk, 48, None
        self.block = 0  # rows since tables were last brought up to date
        self.older, self.end, self.detector = 0, int(chunk), Cusum()
        for x, label in self.all[-min(n, self.memory) :]:
            self.take(x, label)

    def levels(self, x, edges):
        return [sum(value > e for e in own) for value, own in zip(x, edges, strict=True)]

    def take(self, x, label):
        low, high = self.levels(x, self.coarse), self.levels(x, self.fine)
        self.rows.append((low, high, label))
        if self.pair is not None:
            wrong = self.guess.get((low[self.pair[0]], low[self.pair[1]]), 0) != label
            self.detector.update(wrong, *self.shares[label])
            evidence, since = self.detector.state()
            if evidence > -math.log(self.alpha_drift):
                self.drifts.append(len(self.all) - 1)
                self.set, self.scores, self.partners = [], np.zeros(len(x)), np.full(len(x), -1)
                self.begin(max(32, since))
                return
        self.block += 1
        if self.block < 32 and len(self.rows) != self.next:
            return
        self.block = 0
        if len(self.rows) >= self.end:
            if self.varies_by_now():
                self.begin(len(self.rows), self.chunk)
                return
            del self.rows[: self.older]
            self.older = len(self.rows)
            self.chunk *= 1.5
            self.end, self.next = int(len(self.rows) + self.chunk), 0
        if len(self.rows) >= self.next:
            self.renew()

    def varies_by_now(self):
        recent = np.array([x for x, _ in self.all[-min(len(self.rows), self.memory) :]])
        for j, edges in enumerate(self.fine):
            values, counts = np.unique(recent[:, j], return_counts=True)
            if not edges and len(recent) - counts[values == np.sort(recent[:, j])[len(recent) // 2]] >= 32:
                return True
        return False

    def renew(self):
        n = len(self.rows)
        self.next = max(n + 8, int(n * 1.125))
        low, high = np.array([row[0] for row in self.rows]), np.array([row[1] for row in self.rows])
        y = np.array([row[2] for row in self.rows])
        n_classes, d = len(np.unique(y)), low.shape[1]
        if n_classes < 2:
            return
        unit = 2.0 * n * math.log(2.0)
        scores, partners = np.zeros(d), np.full(d, -1)
        for j in range(d):
            gain = information(high[:, j]) + information(y) - information(high[:, j], y)
            freedom = (len(np.unique(high[:, j])) - 1) * (n_classes - 1)
            bar = chi2.isf(0.75 * self.alpha / d, freedom) if freedom else np.inf
            if unit * gain > bar * with_few_rows(len(np.unique(high[:, j])), n_classes, n):
                scores[j] = gain - freedom / unit
            trend = trend_of(high[:, j], y)
            if trend > chi2.isf(0.25 * self.alpha / d, n_classes - 1):
                scores[j] = max(scores[j], (trend - (n_classes - 1)) / unit)
        alone = scores.copy()
        met = [len(np.unique(low[:, j])) for j in range(d)]
        given, dependent, joint = {}, {}, {}
        for x, z in itertools.permutations(range(d), 2):
            n_pairs = len(np.unique(10 * low[:, x] + low[:, z]))
            if n < 5 * n_pairs * n_classes or met[x] < 2 or met[z] < 2:
                continue
            both = information(low[:, x], low[:, z])
            rest = information(low[:, x], low[:, z], y) - both
            gain = information(low[:, z], y) - information(low[:, z]) - rest
            freedom = (met[x] - 1) * (n_classes - 1) * met[z]
            bar = chi2.isf(self.alpha / d**2, freedom) * with_few_rows(met[x], n_classes, n / met[z])
            given[x, z] = unit * gain > bar
            joint[x, z] = information(y) - rest
            shared = information(low[:, x]) + information(low[:, z]) - both
            bar = chi2.isf(self.alpha / d**2, (met[x] - 1) * (met[z] - 1)) * with_few_rows(met[x], met[z], n)
            dependent[x, z] = unit * shared > bar
            if given[x, z] and gain - freedom / unit > scores[x] + 1e-12:
                scores[x], partners[x] = gain - freedom / unit, z
        order, chosen = scores + alone, []
        for x in sorted(np.flatnonzero(scores > 0).tolist(), key=lambda x: -order[x]):
            if not any(dependent.get((x, z)) and not given.get((x, z)) for z in chosen):
                chosen.append(x)
        for x in list(chosen):
            if any(dependent.get((x, z)) and not given.get((x, z)) for z in chosen if z != x):
                chosen.remove(x)
        self.set, self.scores, self.partners = chosen or self.set, scores, partners
        if self.set:
            self.watch(low, y, joint)

    def watch(self, low, y, joint):
        told = {pair: joint.get(pair, 0.0) for pair in itertools.permutations(self.set, 2)}
        best = max(told, key=lambda pair: told[pair], default=(self.set[0],) * 2)
        pair = tuple(sorted(best)) if told.get(best, 0.0) > 0.0 else (self.set[0],) * 2
        if pair != self.pair:
            self.detector = Cusum()
        self.pair, self.guess = pair, {}
        cells = {(int(row[pair[0]]), int(row[pair[1]])) for row in low}
        for a, b in cells:
            labels = y[(low[:, pair[0]] == a) & (low[:, pair[1]] == b)]
            self.guess[a, b] = int(np.bincount(labels).argmax())
        guesses = np.array([self.guess[int(row[pair[0]]), int(row[pair[1]])] for row in low])
        self.shares, n_classes = {}, len(np.unique(y))
        for c in range(n_classes):
            spare = len(cells) / n_classes
            wrong, rows = ((y == c) & (guesses != c)).sum() + spare / 2, (y == c).sum() + spare
            p = min(wrong / rows + 0.5 * math.sqrt(wrong / rows * (1.0 - wrong / rows) / rows), 0.98)
            chance = min(max(p, (guesses != c).mean()), 0.98)
            self.shares[c] = p, (p + chance) / 2 + 0.01
