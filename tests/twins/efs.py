"""EFS, slow and obvious: one row at a time, one feature at a time, no Numba.

Carvalho, Cohen, KDD 2006. The sums run in eight lanes, so the fast version must agree bit for bit.
"""

from __future__ import annotations

import numpy as np

MOST, LEAST = 2.0**200, 2.0**-200


def in_lanes(values):
    """Sum every eighth value, then the eight sums."""
    total = 0.0
    for k in range(8):
        lane = 0.0
        for value in values[k::8]:
            lane += value
        total += lane
    return total


class Winnow:
    def __init__(self, n_weights):
        self.u, self.v = [2.0] * n_weights, [1.0] * n_weights

    def mirrored(self):
        other = Winnow(0)
        other.u, other.v = list(self.v), list(self.u)
        return other


class EfsTwin:
    def __init__(self, n_features, *, alpha=1.5, beta=0.5, theta=1.0, margin=1.0, by_range=False):
        self.J, self.alpha, self.beta = n_features, alpha, beta
        self.theta, self.margin, self.by_range = theta, margin, by_range
        self.labels = []  # in order of appearance
        self.winnows = [Winnow(n_features + 1)]  # one for two labels, then one each; the bias is last
        self.mistakes = 0

    def learn(self, X, y, sample_weight=None):
        for i, label in enumerate(y):
            weight = 1.0 if sample_weight is None else float(sample_weight[i])
            self.learn_row([float(x) for x in X[i]], label, weight)
        return self

    def meet(self, label):
        if label in self.labels:
            return
        self.labels.append(label)
        if len(self.labels) == 3:
            self.winnows.append(self.winnows[0].mirrored())
        if len(self.labels) >= 3:
            self.winnows.append(Winnow(self.J + 1))

    def learn_row(self, x, label, weight):
        self.meet(label)
        if weight == 0:
            return
        present = self.ranged(x) if self.by_range else self.summed(x)
        for k, winnow in enumerate(self.winnows):
            y = 1 if self.labels[k] == label else -1
            if y * (self.score(winnow, x, present) - self.theta) <= self.margin:
                self.mistakes += 1
                self.correct(winnow, present, y, weight)

    def score(self, winnow, x, present):
        """The sum of a row's values is divided once."""
        gaps = [u - v for u, v in zip(winnow.u, winnow.v, strict=True)]
        if self.by_range:
            return in_lanes([present[j] * gaps[j] for j in range(self.J)])
        products = in_lanes([x[j] * gaps[j] for j in range(self.J)])
        return (products + gaps[self.J]) / (1 + in_lanes([abs(value) for value in x]))

    def summed(self, x):
        total = 1 + in_lanes([abs(value) for value in x])
        present = {j: value / total for j, value in enumerate(x) if value != 0}
        present[self.J] = 1 / total
        return present

    def ranged(self, x):
        width = max(x) - min(x)
        return {j: (value - min(x)) / width if width > 0 else 0.0 for j, value in enumerate(x)}

    def correct(self, winnow, present, y, weight):
        for j, value in present.items():
            up = (self.alpha * (1 + abs(value))) ** weight
            down = (self.beta * (1 - abs(value))) ** weight
            if (value >= 0 and y > 0) or (value < 0 and y < 0):
                winnow.u[j] = min(winnow.u[j] * up, MOST)
                winnow.v[j] = max(winnow.v[j] * down, LEAST)
            else:
                winnow.u[j] = max(winnow.u[j] * down, LEAST)
                winnow.v[j] = min(winnow.v[j] * up, MOST)

    @property
    def scores(self):
        gaps = [[abs(w.u[j] - w.v[j]) for j in range(self.J)] for w in self.winnows]
        return np.array(gaps).max(axis=0)
