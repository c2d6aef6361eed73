"""OFS, slow and obvious: one row at a time, a full sort after each mistake, no Numba.

Wang, Zhao, Hoi, Jin, IEEE TKDE 26(3), 2014. The sums run in the order of the columns (the length in eight lanes), so
the fast version must agree bit for bit.
"""

from __future__ import annotations

import math

import numpy as np


def ordered_sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


class Constants:
    """From the second row on, a feature that was the same in all rows counts as 0 until it varies."""

    def __init__(self):
        self.first = None

    def split(self, x):
        """Return the row with 0 for the constant features, and these features."""
        if self.first is None:
            self.first, self.varies = list(x), [value == 0 for value in x]
            return x, []
        for j, (value, first) in enumerate(zip(x, self.first, strict=True)):
            self.varies[j] = self.varies[j] or abs(value - first) > 1e-12 * abs(first)
        constant = [j for j, varies in enumerate(self.varies) if not varies]
        return np.array([0.0 if j in constant else value for j, value in enumerate(x)]), constant


class XorShift:
    def __init__(self, state):
        self.state = int(state)

    def random(self):
        z = self.state
        z ^= (z << 13) & (2**64 - 1)
        z ^= z >> 7
        z ^= (z << 17) & (2**64 - 1)
        self.state = z
        return (z >> 11) * 2.0**-53

    def sample(self, n, size):
        """Knuth's algorithm S: a column is drawn with the odds that enough are left."""
        drawn = []
        for j in range(n):
            if self.random() * (n - j) < size - len(drawn):
                drawn.append(j)
        return drawn


class OfsTwin:
    def __init__(
        self, n_features, n_kept, *, eta=0.2, lam=0.01, margin=1.0, partial=False, epsilon=0.2, state=1
    ):
        self.J, self.B = n_features, n_kept
        self.eta, self.lam, self.margin = eta, lam, margin
        self.partial, self.epsilon, self.random = partial, epsilon, XorShift(state)
        self.labels = []  # in order of appearance
        self.w = np.zeros((1, n_features))  # one vector for two labels, then one each
        self.scale = 1.0
        self.constants = Constants()
        self.mistakes = 0
        self.observed = []  # the columns looked at, row by row

    def learn(self, X, y, sample_weight=None):
        for i, label in enumerate(y):
            self.learn_row(
                np.asarray(X[i], dtype=np.float64), label, 1.0 if sample_weight is None else sample_weight[i]
            )
        return self

    def meet(self, label):
        if label not in self.labels:
            self.labels.append(label)
            if len(self.labels) == 3:
                self.w = np.array([self.w[0] / 2, -self.w[0] / 2, np.zeros(self.J)])
            elif len(self.labels) > 3:
                self.w = np.array([*self.w, np.zeros(self.J)])
        return self.labels.index(label)

    def learn_row(self, x, label, weight):
        if weight == 0:  # the row is left out, and opens no class
            return
        k = self.meet(label)
        if not self.partial:
            x, constant = self.constants.split(x)
            self.w[:, constant] = 0.0
        seen = self.look()
        self.observed.append(seen)
        scores = [ordered_sum(w[j] * x[j] for j in seen) for w in self.w]
        if len(self.w) == 1:
            y = 1.0 if k == 0 else -1.0
            lead, moves = y * scores[0], [(0, y)]
        else:
            rival = max((c for c in range(len(self.w)) if c != k), key=lambda c: (scores[c], -c))
            lead, moves = scores[k] - scores[rival], [(k, 0.5), (rival, -0.5)]
        lead *= self.scale
        if not self.partial:
            self.scale *= 1.0 - self.lam * self.eta
        if lead <= self.margin:
            self.mistakes += 1
            self.correct(x, seen, moves, weight)

    def look(self):
        if not self.partial:
            return list(range(self.J))
        if self.random.random() < self.epsilon:
            return self.random.sample(self.J, self.B)
        return [j for j in range(self.J) if self.w[:, j].any()]

    def correct(self, x, seen, moves, weight):
        self.w = self.w * self.scale
        self.scale = 1.0
        chance = [self.epsilon * self.B / self.J + (1 - self.epsilon) * w_j.any() for w_j in self.w.T]
        for c, sign in moves:
            for j in seen:
                step = sign * self.eta * weight * x[j]
                self.w[c, j] += step / chance[j] if self.partial else step
        self.project()
        self.truncate()

    def project(self):
        lanes = [ordered_sum(w_j * w_j for w in self.w for w_j in w[k::8]) for k in range(8)]
        length = math.sqrt(ordered_sum(lanes) * (1 if len(self.w) == 1 else 2))
        radius = 1 / math.sqrt(self.lam) if self.lam else math.inf
        self.factor = radius / length if length > radius else 1.0

    def truncate(self):
        sizes = [ordered_sum(abs(w_j) for w_j in column) for column in self.w.T]
        largest = sorted(range(self.J), key=lambda j: (-sizes[j], j))[: self.B]
        for j in range(self.J):
            self.w[:, j] = self.w[:, j] * self.factor if j in largest and sizes[j] > 0 else 0.0

    @property
    def scores(self):
        return np.array([ordered_sum(abs(w_j) for w_j in column) for column in self.w.T]) * self.scale
