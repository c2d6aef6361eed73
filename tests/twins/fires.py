"""FIRES, slow and obvious: one row, one class, one formula at a time, with SciPy's log of the normal distribution.

Haug, Pawelczyk, Broelemann, Kasneci, KDD 2020; the same options as `tamis.rows.fires.fires`, dense rows only.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr


def expected_slopes(y, d, v, log_likelihood):
    """Return what the posterior of eta ~ N(d, v) says: (E[eta] - d) / v and (E[(eta - d)^2] / v - 1) / v."""

    def log_density(eta):
        return log_likelihood(y, eta) - 0.5 * (eta - d) ** 2 / v

    low, high = d - 60 - 12 * np.sqrt(v), d + 60 + 12 * np.sqrt(v)
    for _ in range(6):  # closer and closer to where it is not nothing
        eta = np.linspace(low, high, 5001)
        here = np.flatnonzero(log_density(eta) > log_density(eta).max() - 45)
        low, high = eta[max(here[0] - 1, 0)], eta[min(here[-1] + 1, 5000)]
    eta = np.linspace(low, high, 20001)
    share = np.exp(log_density(eta) - log_density(eta).max())
    share /= share.sum()
    return share @ (eta - d) / v, (share @ (eta - d) ** 2 / v - 1) / v


def log_logit(y, eta):
    return -np.logaddexp(0, -y * eta)


def log_poisson(y, eta):
    return y * eta - np.exp(np.minimum(eta, 150))


class FiresTwin:
    def __init__(
        self,
        n_features,
        n_classes,  # 0: a regression
        *,
        newton=False,
        scaling="standard",
        importance="parameter",
        learning_rate=None,
        half_life=2000,
        balanced="auto",
        intercept=False,
        sigma=1.0,
        penalty=0.01,
        reduce=np.mean,
        link=None,  # "logit" or "poisson"
    ):
        self.link = link
        self.n_models = n_classes if n_classes > 2 else 1
        self.regression = n_classes == 0
        self.newton, self.scaling, self.importance = newton, scaling, importance
        self.rate, self.half_life, self.balanced, self.intercept = (
            learning_rate,
            half_life,
            balanced,
            intercept,
        )
        self.prior, self.penalty, self.reduce = sigma, penalty, reduce
        self.mu = np.zeros((self.n_models, n_features))
        self.sigma = np.full((self.n_models, n_features), sigma)
        self.average, self.evidence = np.zeros_like(self.mu), 0.0
        self.bias = np.tile([0.0, sigma**2 if intercept else 0.0], (self.n_models, 1))
        self.rows, self.weights = (
            np.empty((0, n_features)),
            np.empty(0),
        )  # every row ever, and its faded weight
        self.targets, self.counts = np.empty(0), np.zeros(max(n_classes, 1))
        self.error = np.zeros(2)

    def _moments(self, values):
        if len(values) == 0:
            return np.zeros(values.shape[1:]), np.zeros(values.shape[1:])
        mean = np.average(values, axis=0, weights=self.weights[-len(values) :])
        return mean, np.average((values - mean) ** 2, axis=0, weights=self.weights[-len(values) :])

    def partial_fit(self, X, y, weight=None):
        weight = np.ones(len(X)) if weight is None else weight
        keep = 1.0 if self.half_life is None else 0.5 ** (weight.sum() / self.half_life)
        first = len(self.rows) == 0
        mean, variance = self._moments(self.rows)  # of the rows before this batch ...
        self.weights = np.append(keep * self.weights, weight)
        self.rows = np.vstack([self.rows, X])
        if first:  # ... but for the first batch, which scales itself
            mean, variance = self._moments(self.rows)
        scale = np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1)), 0)
        Z = X - mean if self.scaling else X
        Z = Z * scale if self.scaling == "standard" else Z
        self.mu *= keep
        faded = self.prior + keep * (self.sigma - self.prior)
        if self.newton:
            faded = np.sqrt(np.minimum(self.sigma**2 / keep, self.prior**2))
        noise, offset = 0.0 if self.link else 1.0, 0.0
        if self.link == "poisson":
            self.targets = np.append(self.targets, y)
            offset = np.log(max(self._moments(self.targets[:, None])[0][0], 0.5 / self.weights.sum()))
        elif self.regression:
            y, noise = self._standard_target(Z, y, weight, keep)
        else:
            self.counts = keep * self.counts + np.bincount(y, weight, minlength=len(self.counts))
        for k in range(self.n_models):
            self._step(k, Z, y, weight, noise, offset, faded[k])
        self.evidence = keep * self.evidence + weight.sum()
        self.average += weight.sum() / self.evidence * (self.mu - self.average)

    def _standard_target(self, Z, y, weight, keep):
        self.targets = np.append(self.targets, y)
        mean, variance = self._moments(self.targets[:, None])
        y = (y - mean[0]) / np.sqrt(variance[0])
        # The error is that of the model before this batch, which has not faded yet.
        error = y - (Z @ (self.mu[0] / keep) + self.bias[0, 0])
        self.error = keep * self.error + np.array([np.sum(weight * error**2), weight.sum()])
        return y, max(self.error[0] / self.error[1], 1e-6)

    def _row_weight(self, k, inside):
        if self.regression or not self.balanced:
            return 1.0
        total = self.counts.sum()
        part = self.counts[k] if inside else total - self.counts[k]
        weight = total / (2 * max(part, total / 20))
        return np.sqrt(weight) if self.balanced == "auto" and self.n_models > 1 else weight

    def _rate(self, label):
        if self.rate is not None:
            return self.rate
        step, weights = min(max(self.mu.shape[1] / 10, 1.0), 10.0), []
        for c, count in enumerate(self.counts):  # as many rows of each class as are known
            weights.append((count, 1.0 if self.regression else self._row_weight(label, c == label) ** 2))
        total = sum(count for count, _ in weights)
        return step / max(sum(count * w for count, w in weights) / total if total else 1.0, 1.0)

    def _step(self, k, Z, y, weight, noise, offset, sigma):
        label = 1 if self.n_models == 1 else k
        g1, g2, curves = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), np.zeros(len(Z))
        sum_a = sum_b = 0.0
        spread = sigma
        if self.newton:  # the margin's variance is that of the model as it will be faded for a gradient step
            keep = 1.0 if self.half_life is None else 0.5 ** (weight.sum() / self.half_life)
            spread = self.prior + keep * (self.sigma[k] - self.prior)
        for i, z in enumerate(Z):
            d = z @ self.mu[k] + self.bias[k, 0] + offset
            v = noise + (z**2) @ spread**2 + self.bias[k, 1]
            if self.link:  # (6)
                inside = y[i] == label
                w = weight[i] * self._row_weight(label, inside)
                sign = 1.0 if inside else -1.0
                target, log_likelihood = (y[i], log_poisson) if self.link == "poisson" else (sign, log_logit)
                a, b = expected_slopes(target, d, max(v, 1e-12), log_likelihood)  # 0 for a row of zeros
                h = a**2 - b
            elif self.regression:
                w, e = weight[i], y[i] - d
                a, b, h = e / v, e**2 / v**2 - 1 / v, 1 / v  # (5)
            else:
                inside = y[i] == label
                w, sign, rho = (
                    weight[i] * self._row_weight(label, inside),
                    1.0 if inside else -1.0,
                    np.sqrt(v),
                )
                m = sign * d / rho
                r = np.exp(-0.5 * m * m - 0.5 * np.log(2 * np.pi) - log_ndtr(m))
                a = r * sign / rho  # (2)
                b = -r * sign * d / rho**3  # (3)
                h = r * (r + m) / v  # (4)
            g1 += w * a * z
            g2 += w * (h if self.newton else b) * z**2
            curves[i] = w * h
            sum_a += w * a
            sum_b += w * (h if self.newton else b)
        rate = self._rate(label) / weight.sum()
        if self.newton:
            step = g1 / (1 / sigma**2 + g2)
            slope = g1 @ step
            bend = np.sum(step**2 / sigma**2) + np.sum(curves * (Z @ step) ** 2)
            damping = min(1.0, slope / bend) if bend > 0 else 0.0
            self.mu[k] += damping * step
            self.sigma[k] = 1 / np.sqrt(1 / sigma**2 + damping * g2)
            if self.intercept:
                self.bias[k, 1] = 1 / (1 / self.bias[k, 1] + sum_b)
                self.bias[k, 0] += self.bias[k, 1] * sum_a
        else:
            if self.regression and self.rate is None:  # no longer than the best step along the gradient
                bend = np.sum(curves * (Z @ g1) ** 2)
                rate = min(rate, g1 @ g1 / bend if bend > 0 else 0.0)
            self.mu[k] += rate * g1
            self.sigma[k] = np.maximum(sigma + rate * sigma * g2, 0)
            if self.intercept:
                self.bias[k, 0] += rate * sum_a
                self.bias[k, 1] = max(np.sqrt(self.bias[k, 1]) * (1 + rate * sum_b), 0) ** 2

    def kept(self, k):
        """The k features chosen one after another, by what their correlation with those chosen before leaves."""
        rows, scores, chosen = self.rows[-300:], self.scores, []
        while len(chosen) < k:
            worth = {}
            for j in set(range(len(scores))) - set(chosen):
                squares = [0.0]
                for i in chosen:
                    if np.ptp(rows[:, i]) > 0 and np.ptp(rows[:, j]) > 0:
                        squares.append(np.corrcoef(rows[:, i], rows[:, j])[0, 1] ** 2)
                worth[j] = scores[j] * (1 - max(squares)) if scores[j] > 0 else scores[j]
            chosen.append(max(worth, key=lambda j: (worth[j], -j)))
        return sorted(chosen)

    @property
    def scores(self):
        mu = self.mu if self.half_life is None else self.average
        scores = mu**2 - self.penalty * self.sigma**2
        if self.importance == "signal":
            scores = scores * self._moments(self.rows)[1]
        return self.reduce(scores, axis=0)
