"""ForwardPartialCorrelation, slow and obvious: all rows are kept, and each gain is that of a linear system of its own.

What must agree with the fast version: which features are chosen and in which order, their gains, what the others would
add, and (for the regression and two classes) nothing less. Drifts are not looked for.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2


class ForwardPartialCorrelation:
    def __init__(self, n_kept, half_life=None, alpha=0.01, regression=False, inertia=3.5):
        self.inertia = inertia
        self.n_kept, self.half_life, self.alpha, self.regression = n_kept, half_life, alpha, regression
        self.X, self.y, self.weight, self.order, self.next = [], [], [], [], 0

    def learn(self, X, y, weight=None):
        """Learn rows one at a time; choose at the ends of blocks."""
        for i in range(len(y)):
            self.X.append(np.asarray(X[i], dtype=float))
            self.y.append(y[i])
            self.weight.append(1.0 if weight is None else weight[i])
            n = len(self.y)
            if (n in (10, 25, 50) or n % 100 == 0) and n >= self.next:
                w = np.array(self.weight) * (0.5 ** (np.arange(n - 1, -1, -1.0) / (self.half_life or np.inf)))
                self.next = n + min(max(int(w.sum() / 8), 1), 500)
                self.choose()

    def moments(self):
        """Correlations of the features, their covariances with the scaled targets, effective rows."""
        X, n = np.array(self.X), len(self.y)
        age = np.arange(n - 1, -1, -1.0)
        recency = 0.5 ** (age / self.half_life) if self.half_life else np.ones(n)
        w = np.array(self.weight) * recency
        n_effective = w.sum() ** 2 / (w @ recency)
        share = w / w.sum()
        Z = X - share @ X
        spread = np.sqrt(share @ Z**2)
        Z = np.where(spread > 0, Z / np.where(spread > 0, spread, 1.0), 0.0)
        R = (share[:, None] * Z).T @ Z
        if self.regression:
            y = np.array(self.y, dtype=float)
            y = y - share @ y
            T = (y / np.sqrt(share @ y**2))[:, None]
        else:
            T = []
            for label in sorted(set(self.y)):
                inside = np.array(self.y) == label
                p = share @ inside
                T.append((inside - p) / np.sqrt(p))
            T = np.array(T).T
        return R, (share[:, None] * Z).T @ T, n_effective

    def gain(self, R, B, j, chosen, ridge):
        """What j adds to the explained share: that with it, less that without it."""
        if R[j, j] == 0.0:
            return 0.0

        def explained(some):
            if not some:
                return 0.0
            A = R[np.ix_(some, some)] + ridge * np.eye(len(some))
            return np.trace(B[some].T @ np.linalg.solve(A, B[some]))

        return explained([*chosen, j]) - explained(chosen)

    def error(self, R, j, chosen, ridge, n):
        """The standard error of what j adds, as a correlation."""
        left = 1 + ridge
        if chosen:
            A = R[np.ix_(chosen, chosen)] + ridge * np.eye(len(chosen))
            left -= R[j, chosen] @ np.linalg.solve(A, R[chosen, j])
        return np.sqrt(max(left - ridge, 0.0) / (n * left * (1 + ridge)))

    def choose(self):
        R, B, n = self.moments()
        p, freedom = len(R), max(B.shape[1] - 1, 1)
        decides = self.n_kept is None
        ridge = 1e-6 if decides else (1 + np.sqrt(p / n)) ** 2 - 1
        bar = chi2.isf(self.alpha / p, freedom) / n if decides else 0.0
        chosen, entered = [], []
        while len(chosen) < (p if decides else self.n_kept):
            gains = [0.0 if j in chosen else self.gain(R, B, j, chosen, ridge) for j in range(p)]
            favoured = [
                max(2 * g, (np.sqrt(g) + self.inertia * self.error(R, j, chosen, ridge, n)) ** 2)
                if j in self.order and g > 0
                else g
                for j, g in enumerate(gains)
            ]
            j = int(np.argmax(favoured))
            if gains[j] <= bar * (1 - sum(entered) / freedom):
                break
            chosen.append(j)
            entered.append(gains[j])
        self.order, self.entered = chosen, entered
        self.left = [0.0 if j in chosen else self.gain(R, B, j, chosen, ridge) for j in range(p)]
