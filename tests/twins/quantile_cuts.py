"""Counts between edges as a list of bins: [largest value, weight of each class], the last without a largest value."""

import math


class QuantileCuts:
    def __init__(self, n_edges, n_classes):
        self.n_edges, self.n_classes = n_edges, n_classes
        self.bins = [[math.inf, [0.0] * n_classes]]

    def count(self, c, x, weight):
        at = next(k for k, (edge, _) in enumerate(self.bins) if x <= edge)
        if len(self.bins) <= self.n_edges and self.bins[at][0] != x:
            self.bins.insert(at, [x, [0.0] * self.n_classes])
            self.bins[at][1][c] += weight
            return
        self.bins[at][1][c] += weight
        mean = sum(sum(weights) for _, weights in self.bins) / (self.n_edges + 1)
        if len(self.bins) > self.n_edges and self.bins[at][0] != x and sum(self.bins[at][1]) > 2 * mean:
            self.divide(at, x)

    def divide(self, at, x):
        pairs = [k for k in range(self.n_edges) if at not in (k, k + 1)]
        if not pairs:
            return
        pair = min(pairs, key=lambda k: sum(self.bins[k][1]) + sum(self.bins[k + 1][1]))
        left, right, heavy = self.bins[pair], self.bins[pair + 1], self.bins[at]
        if sum(left[1]) + sum(right[1]) >= sum(heavy[1]):
            return
        joined = [right[0], [a + b for a, b in zip(left[1], right[1], strict=True)]]
        halves = [w / 2 for w in heavy[1]]
        others = [one for one in self.bins if one not in (left, right, heavy)]
        self.bins = sorted([*others, joined, [x, halves], [heavy[0], list(halves)]], key=lambda one: one[0])
