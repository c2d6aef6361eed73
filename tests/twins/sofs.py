"""SOFS, slow and obvious: one row at a time, the covariance in full, a sort after each mistake.

Wu, Hoi, Mei, Yu, ACM TKDD 11(4), 2017.
"""

from __future__ import annotations

from tests.twins.ofs import Constants, ordered_sum


class SofsTwin:
    def __init__(self, n_features, n_kept, r=1.0):
        self.J, self.B, self.r = n_features, n_kept, r
        self.labels = []  # in order of appearance
        self.w = [[0.0] * n_features]  # one vector for two labels, then one each
        self.certainty = [0.0] * n_features  # 1 / Sigma - 1
        self.constants = Constants()
        self.mistakes = 0

    def learn(self, X, y, sample_weight=None):
        for i, label in enumerate(y):
            weight = 1.0 if sample_weight is None else float(sample_weight[i])
            self.learn_row([float(value) for value in X[i]], label, weight)
        return self

    def position(self, label):
        if label not in self.labels:
            self.labels.append(label)
            if len(self.labels) == 3:
                self.w = [[v / 2 for v in self.w[0]], [-v / 2 for v in self.w[0]]]
            if len(self.labels) >= 3:
                self.w.append([0.0] * self.J)
        return self.labels.index(label)

    def kept(self):
        ranked = sorted(range(self.J), key=lambda j: (-self.certainty[j], j))
        return [j for j in ranked[: self.B] if self.certainty[j] > 0]

    def learn_row(self, x, label, weight):
        k = self.position(label)
        if weight == 0:
            return
        x, constant = self.constants.split(x)
        for j in constant:
            self.certainty[j] = 0.0
            for w in self.w:
                w[j] = 0.0
        scores = [ordered_sum(w[j] * x[j] for j in range(self.J)) for w in self.w]
        if len(self.w) == 1:
            y = 1.0 if k == 0 else -1.0
            lead, moves = y * scores[0], [(0, y)]
        else:
            rival = max((c for c in range(len(self.w)) if c != k), key=lambda c: (scores[c], -c))
            lead, moves = scores[k] - scores[rival], [(k, 0.5), (rival, -0.5)]
        if lead >= 1:
            return
        self.mistakes += 1
        r = self.r / weight
        sigma = [1 / (1 + c) for c in self.certainty]
        alpha = (1 - lead) / (ordered_sum(s * v * v for s, v in zip(sigma, x, strict=True)) + r)
        for c, sign in moves:
            self.w[c] = [w + sign * alpha * s * v for w, s, v in zip(self.w[c], sigma, x, strict=True)]
        self.certainty = [c + v * v / r for c, v in zip(self.certainty, x, strict=True)]
        kept = self.kept()
        self.w = [[w[j] if j in kept else 0.0 for j in range(self.J)] for w in self.w]
