"""SGBT, slow and obvious: trees of objects, lists of gradients by bin; the same draws as `tamis.learners.sgbt`.

Gunasekara, Pfahringer, Gomes, Bifet, Machine Learning 113, 2024.
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from tests.twins.forest import uniform
from tests.twins.hoeffding import Window


def total(values):
    """Return the sum from left to right, as the kernel adds; since Python 3.12, `sum` compensates rounding."""
    return functools.reduce(operator.add, values, 0.0)


class Leaf:
    def __init__(self, features, n_bins):
        self.g = self.h = 0.0
        self.rows = self.since = 0
        self.bins = {f: [[0.0, 0.0] for _ in range(n_bins)] for f in features}
        self.split = None  # feature, cut, left, right


class SgbtTwin:
    def __init__(
        self, n_features, n_outputs=1, steps=3, rate=0.05, n_drawn=2, grace=25, delta=0.05, tie=0.05, leaves=64,
        n_bins=16, drift=0.001, seed=0, block=200,
    ):  # fmt: skip
        self.p, self.K, self.S, self.rate, self.n_drawn = n_features, n_outputs, steps, rate, n_drawn
        self.grace, self.delta, self.tie, self.max_leaves, self.n_bins = grace, delta, tie, leaves, n_bins
        self.drift, self.seed, self.block = drift, seed, block
        self.events = [0] * (steps * n_outputs)
        self.trees = [self.new_tree(t) for t in range(steps * n_outputs)]
        self.recent, self.cuts, self.range = [], [[] for _ in range(n_features)], [None] * n_features

    def new_tree(self, t):
        drawn, left = [], self.n_drawn
        for f in range(self.p):
            if uniform((self.seed << 24) + t, f, self.events[t]) * (self.p - f) < left:
                drawn.append(f)
                left -= 1
        watch = Window(self.drift) if self.drift else None
        return {"drawn": drawn, "root": Leaf(drawn, self.n_bins), "leaves": 1, "watch": watch}

    def learn(self, rows, codes):
        for start in range(0, len(rows), self.block):
            part, labels = rows[start : start + self.block], codes[start : start + self.block]
            if start == 0:
                self.renew(part)
            for row, y in zip(part, labels, strict=True):
                self.learn_row(row, y)
            if start and len(part) == self.block:
                self.renew(part)

    def renew(self, part):
        for f in range(self.p):
            values = [row[f] for row in part if not np.isnan(row[f])]
            outside = sum(
                self.range[f] is None or not self.range[f][0] <= x <= self.range[f][1] for x in values
            )
            if outside <= 0.1 * len(part):
                continue
            self.range[f] = min(values), max(values)
            ends = sorted(set(values))
            if len(ends) > self.n_bins:
                shares = np.linspace(0, 1, self.n_bins + 1)[1:]
                ends = sorted({float(np.quantile(values, share, method="lower")) for share in shares})
            self.cuts[f] = ends[:-1]
            for tree in self.trees:
                for leaf in self.leaves_of(tree["root"]):
                    if f in leaf.bins:
                        leaf.bins[f] = [[0.0, 0.0] for _ in range(self.n_bins)]

    def leaves_of(self, node):
        return [node] if node.split is None else self.leaves_of(node.split[2]) + self.leaves_of(node.split[3])

    def leaf_of(self, node, row):
        while node.split is not None:
            f, cut, left, right = node.split
            to_left = left.h >= right.h if np.isnan(row[f]) else row[f] <= cut
            node = left if to_left else right
        return node

    def probabilities(self, scores):
        if self.K == 1:
            return [1 / (1 + math.exp(-scores[0]))]
        powers = [math.exp(score - max(scores)) for score in scores]
        return [power / total(powers) for power in powers]

    def learn_row(self, row, y):
        scores = [0.0] * self.K
        for s in range(self.S):
            proba = self.probabilities(scores)
            for k in range(self.K):
                t = k * self.S + s
                g = proba[k] - float(y == (1 if self.K == 1 else k))
                h = max(proba[k] * (1 - proba[k]), 1e-6)
                leaf = self.leaf_of(self.trees[t]["root"], row)
                value = -leaf.g / (leaf.h + 1)
                self.learn_in_leaf(self.trees[t], leaf, row, g, h)
                scores[k] += self.rate * value
                if self.drift and self.trees[t]["watch"].update(min(abs(g + h * value), 1.0)):
                    self.events[t] += 1
                    self.trees[t] = self.new_tree(t)

    def learn_in_leaf(self, tree, leaf, row, g, h):
        leaf.g += g
        leaf.h += h
        leaf.rows += 1
        leaf.since += 1
        for f, bins in leaf.bins.items():
            if not np.isnan(row[f]):
                at = sum(cut < row[f] for cut in self.cuts[f])
                bins[at][0] += g
                bins[at][1] += h
        if leaf.since >= self.grace:
            leaf.since = 0
            if tree["leaves"] < self.max_leaves:
                self.try_split(tree, leaf)

    def try_split(self, tree, leaf):
        found = []
        for f, bins in leaf.bins.items():
            G, H = total(b[0] for b in bins), total(b[1] for b in bins)
            best = (0.0, None)
            for at in range(len(self.cuts[f])):
                g, h = total(b[0] for b in bins[: at + 1]), total(b[1] for b in bins[: at + 1])
                if h >= 1 and H - h >= 1:
                    gain = g * g / (h + 1) + (G - g) ** 2 / (H - h + 1) - G * G / (H + 1)
                    best = max(best, (gain, self.cuts[f][at]), key=lambda one: one[0])
            found.append((best[0], -f, best[1]))
        (first, f, cut), second = max(found, key=lambda one: one[0]), sorted(one[0] for one in found)[-2:][0]
        if len(found) == 1:
            second = 0.0
        bound = math.sqrt(math.log(1 / self.delta) / (2 * leaf.rows))
        if first > 0 and (second < first * (1 - bound) or bound < self.tie):
            leaf.split = (-f, cut, Leaf(tree["drawn"], self.n_bins), Leaf(tree["drawn"], self.n_bins))
            tree["leaves"] += 1

    def predict_proba(self, row):
        scores = [
            total(
                -self.rate * leaf.g / (leaf.h + 1)
                for leaf in (
                    self.leaf_of(tree["root"], row) for tree in self.trees[k * self.S : (k + 1) * self.S]
                )
            )
            for k in range(self.K)
        ]
        proba = self.probabilities(scores)
        return [1 - proba[0], proba[0]] if self.K == 1 else proba
