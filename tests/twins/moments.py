"""Class-conditional moments, slow and obvious: keep every row and its faded weight, then use the definitions."""

from __future__ import annotations

import numpy as np


class ClassMomentsTwin:
    def __init__(self, n_classes):
        self.n_classes = n_classes
        self.rows, self.codes, self.weights, self.recency = [], [], [], []

    def update(self, X, codes, weight=None, keep=1.0):
        keep = np.broadcast_to(keep, self.n_classes)
        self.weights = [w * keep[c] for w, c in zip(self.weights, self.codes, strict=True)]
        self.recency = [f * keep[c] for f, c in zip(self.recency, self.codes, strict=True)]
        self.rows += list(X)
        self.codes += list(codes)
        self.weights += list(np.ones(len(X)) if weight is None else weight)
        self.recency += [1.0] * len(X)

    def _of(self, c):
        inside = np.array(self.codes) == c
        return np.array(self.rows)[inside], np.array(self.weights)[inside]

    def effective(self):
        w, f, codes = np.array(self.weights), np.array(self.recency), np.array(self.codes)
        return np.array([w[codes == c].sum() ** 2 / (w * f)[codes == c].sum() for c in range(self.n_classes)])

    def moments(self, c, j):
        X, w = self._of(c)
        known = ~np.isnan(X[:, j])
        x, w = X[known, j], w[known]
        if w.sum() == 0:
            return 0.0, 0.0, 0.0
        mean = (w @ x) / w.sum()
        return w.sum(), mean, (w @ (x - mean) ** 2) / w.sum()

    def table(self):
        n_features = len(self.rows[0])
        return np.array([[self.moments(c, j) for j in range(n_features)] for c in range(self.n_classes)])
