"""Streaming stacking, slow and obvious: a tree of objects for each subset, sums one by one.

Bifet, Frank, Holmes, Pfahringer, ACML 2010; the same options as `tamis.learners.StreamingStacking`.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from tests.twins.hoeffding import HoeffdingTwin, Split, Window


class Tree(HoeffdingTwin):
    def leaf_of(self, row):
        node = self.root
        while isinstance(node, Split):
            node = node.way(row)
        return node

    def asked(self, row, y):
        """Return the votes on a row, and whether the class is known; then learn it."""
        leaf = self.leaf_of(row)
        votes, counted = self._votes(leaf, row), dict(leaf.right)
        known = self._guess(leaf, row, y) == y
        leaf.right = counted  # `learn` counts again
        self.learn(row, y)
        return votes, known


class StackingTwin:
    def __init__(self, n_features, n_classes, *, size=2, drift=0.002, **options):
        self.n_classes, self.drift = n_classes, drift
        self.make = lambda: Tree(n_classes, **options)
        self.subsets = list(combinations(range(n_features), size))
        self.trees = [self.make() for _ in self.subsets]
        self.watches = [self.watch() for _ in self.subsets]
        self.w = [[1 / len(self.subsets)] * len(self.subsets) for _ in range(n_classes)]
        self.b, self.n, self.drifts = [0.0] * n_classes, 0, 0

    def watch(self):
        return Window(self.drift) if self.drift else None

    def inputs(self, votes, c):
        e = 0.001
        return [math.log((p[c] + e) / (1 - p[c] + (self.n_classes - 1) * e)) for p in votes]

    def z(self, a, c):
        return 1 / (1 + math.exp(-self.b[c] - sum(w * x for w, x in zip(self.w[c], a, strict=True))))

    def learn(self, row, y):
        votes, fired = [], []
        for t, subset in enumerate(self.subsets):
            found, known = self.trees[t].asked(row[list(subset)], y)
            votes.append(found)
            if self.watches[t] is not None and self.watches[t].update(float(not known)):
                fired.append(t)
        r = 2 / (self.n + len(self.trees) + 2)
        for c in range(self.n_classes):
            a = self.inputs(votes, c)
            z = self.z(a, c)
            step = r * ((y == c) - z) * z * (1 - z)
            self.b[c] += step
            self.w[c] = [w + step * x for w, x in zip(self.w[c], a, strict=True)]
        self.n += 1
        for t in fired:
            self.trees[t], self.watches[t] = self.make(), self.watch()
            for c in range(self.n_classes):
                self.w[c][t] = 0.0
            self.n = 10
            self.drifts += 1

    def predict_proba(self, row):
        votes = [tree.predict_proba(row[list(s)]) for tree, s in zip(self.trees, self.subsets, strict=True)]
        z = np.array([self.z(self.inputs(votes, c), c) for c in range(self.n_classes)])
        return z / z.sum()
