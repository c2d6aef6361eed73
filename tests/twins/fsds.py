"""FSDS, slow and obvious: a singular value decomposition of all columns at every step.

Huang, Yoo, Kasiviswanathan, CIKM 2015, with the sketch of Liberty, KDD 2013.
"""

from __future__ import annotations

import numpy as np


class FsdsTwin:
    def __init__(self, n_features, size, k=2, *, block_size=100, half_life=np.inf):
        self.B = np.zeros((n_features, size))
        self.size, self.k, self.block_size, self.half_life = size, k, block_size, half_life
        self.rows, self.lost = [], 0.0  # those that wait, and the sum of all delta

    def learn(self, X, sample_weight=None):
        for i, x in enumerate(np.asarray(X, dtype=float)):
            weight = 1.0 if sample_weight is None else sample_weight[i]
            if weight > 0:
                self.rows.append(np.sqrt(weight) * x)
            if len(self.rows) == self.block_size:
                U, s, delta = self.shrunk()
                self.B, self.rows, self.lost = U * s, [], self.lost + delta
        return self

    def shrunk(self):
        B = self.B * np.sqrt(0.5 ** (len(self.rows) / self.half_life))
        C = np.column_stack([B, *self.rows])
        U, s, _ = np.linalg.svd(C, full_matrices=False)
        U, s = np.pad(U, ((0, 0), (0, self.size))), np.pad(s, (0, self.size))  # fewer features than columns
        delta = s[self.size - 1] ** 2
        return U[:, : self.size], np.sqrt(np.maximum(s[: self.size] ** 2 - delta, 0.0)), delta

    @property
    def scores(self):
        if self.rows:
            U, s, _ = self.shrunk()
        else:
            s = np.linalg.norm(self.B, axis=0)
            U = self.B / np.where(s > 0, s, 1)
        alpha = 8 * s[self.k - 1]
        return np.array(
            [
                max(abs(U[j, i]) * s[i] / (s[i] ** 2 + alpha) if s[i] > 0 else 0.0 for i in range(self.k))
                for j in range(len(U))
            ]
        )
