"""OzaBoost, slow and obvious: each row passes the trees in order, and each tree decides how much the next one sees it.

Oza, Russell, AISTATS 2001; the same options and draws as `tamis.learners.hoeffding.forest`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import poisson

from tests.twins.forest import Tree, uniform


class OzaBoostTwin:
    def __init__(self, n_classes, n_features, trees=3, seed=0, **options):
        self.n_classes, self.seed, self.row = n_classes, seed, 0
        self.trees = [Tree(n_classes, n_features, n_features, t, False, **options) for t in range(trees)]
        self.right, self.wrong = [0.0] * trees, [0.0] * trees

    def learn(self, row, y):
        rate = 1.0
        for t, tree in enumerate(self.trees):
            share = uniform((self.seed << 24) + (1 << 23) + t, self.row, 0)
            known = tree.learn_times(row, y, int(poisson.ppf(np.nextafter(share, 1), rate)))
            tallies = self.right if known else self.wrong
            tallies[t] += rate
            rate = min(rate * (self.right[t] + self.wrong[t]) / (2 * tallies[t]), 100.0)
        self.row += 1

    def predict_proba(self, row):
        weights = [max(math.log((r + 1) / (w + 1)), 0.0) for r, w in zip(self.right, self.wrong, strict=True)]
        if not any(weights):
            weights = [1.0] * len(weights)
        votes = np.zeros(self.n_classes)
        for tree, weight in zip(self.trees, weights, strict=True):
            votes[np.argmax(tree.votes(row))] += weight
        return votes / votes.sum()
