"""LeverageScores, slow and obvious: a decomposition of all rows at once while nothing is lost, and Gram-Schmidt.

Papailiopoulos, Kyrillidis, Boutsidis, KDD 2014; Boutsidis, Mahoney, Drineas, SODA 2009; sketch: Liberty, KDD 2013.
"""

from __future__ import annotations

import numpy as np


class LeverageTwin:
    """Keeps the mean of all rows, and sketches their deviations from it."""

    def __init__(self, n_features, size, k, *, block_size=100, half_life=np.inf):
        self.B = np.zeros((n_features, size))
        self.mean, self.weight = np.zeros(n_features), 0.0
        self.size, self.k, self.block_size, self.half_life = size, k, block_size, half_life
        self.rows, self.weights = [], []  # those that wait

    def learn(self, X, sample_weight=None):
        for i, x in enumerate(np.asarray(X, dtype=float)):
            weight = 1.0 if sample_weight is None else sample_weight[i]
            if weight > 0:
                self.rows.append(x)
                self.weights.append(weight)
            if len(self.rows) == self.block_size:
                self.B, self.mean, self.weight = self.sketched()
                self.rows, self.weights = [], []
        return self

    def sketched(self):
        if not self.rows:
            return self.B, self.mean, self.weight
        keep = 0.5 ** (len(self.rows) / self.half_life)
        w, n = keep * self.weight, sum(self.weights)
        mean = np.average(self.rows, axis=0, weights=self.weights)
        columns = [np.sqrt(weight) * (x - mean) for x, weight in zip(self.rows, self.weights, strict=True)]
        columns.append(np.sqrt(w * n / (w + n)) * (mean - self.mean))
        U, s, _ = np.linalg.svd(np.column_stack([np.sqrt(keep) * self.B, *columns]), full_matrices=False)
        U, s = np.pad(U, ((0, 0), (0, self.size))), np.pad(s, (0, self.size))
        s = np.sqrt(np.maximum(s[: self.size] ** 2 - s[self.size - 1] ** 2, 0.0))
        return U[:, : self.size] * s, (w * self.mean + n * mean) / (w + n), w + n

    @property
    def scores(self):
        B, *_ = self.sketched()
        long = [column for column in B.T[: self.k] if column @ column > 1e-12 * (B[:, 0] @ B[:, 0])]
        return sum(column**2 / (column @ column) for column in long)

    def selected(self, m):
        """Return m features in the order in which they are selected."""
        B, *_ = self.sketched()
        largest, chosen = max(B[j] @ B[j] for j in range(len(B))), []
        while len(chosen) < m:
            residual = B.copy()
            while len(chosen) < m:
                lengths = [-1 if j in chosen else residual[j] @ residual[j] for j in range(len(B))]
                best = int(np.argmax(lengths))
                if lengths[best] <= 1e-12 * largest:
                    break
                direction = residual[best] / np.sqrt(lengths[best])
                residual = residual - np.outer(residual @ direction, direction)
                chosen.append(best)
        return chosen
