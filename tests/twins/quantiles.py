"""Quantile summaries and contingency tables, slow and obvious: keep every value, its class and its faded weight."""

from __future__ import annotations

import numpy as np


class QuantileTwin:
    def __init__(self, n_features, n_classes):
        self.n_classes = n_classes
        self.rows = np.empty((0, n_features))
        self.codes, self.weights = np.empty(0, np.int64), np.empty(0)

    def update(self, X, codes, weight=None, keep=1.0):
        keep = np.broadcast_to(keep, self.n_classes)
        self.rows = np.concatenate([self.rows, X])
        self.weights = np.r_[self.weights * keep[self.codes], np.ones(len(X)) if weight is None else weight]
        self.codes = np.r_[self.codes, codes]

    def merge(self, other):
        self.update(other.rows, other.codes, other.weights)

    def take(self, j):
        """Return the values of feature j in order, with their classes and weights."""
        known = np.flatnonzero(~np.isnan(self.rows[:, j]))
        order = known[np.argsort(self.rows[known, j], kind="stable")]
        return self.rows[order, j], self.codes[order], self.weights[order]

    def weight_below(self, cuts):
        found = np.zeros((*cuts.shape, self.n_classes))
        for j, of_feature in enumerate(cuts):
            x, codes, weight = self.take(j)
            for c in range(self.n_classes):
                total = np.r_[0.0, np.cumsum(weight * (codes == c))]
                found[j, :, c] = total[np.searchsorted(x, of_feature, "right")]
        return found

    def count(self):
        return self.weight_below(np.full((self.rows.shape[1], 1), np.inf))[:, 0].T

    def quantile(self, j, q):
        """Return the smallest x with F(x) >= q."""
        x, _, weight = self.take(j)
        up_to = np.cumsum(weight)
        return x[min(np.searchsorted(up_to, q * up_to[-1] * (1 - 1e-12), "left"), len(x) - 1)]

    def counts(self, n_bins):
        """Return the counts of bin(x) = #{h in 1..K-1 : x > q_h}."""
        found = np.zeros((self.rows.shape[1], n_bins, self.n_classes))
        for j in range(len(found)):
            x, codes, weight = self.take(j)
            if len(x):
                cuts = [self.quantile(j, h / n_bins) for h in range(1, n_bins)]
                np.add.at(found[j], (np.searchsorted(cuts, x, "left"), codes), weight)
        return found

    def rank_error(self, summary):
        """Return the largest error of the summary's weight up to any value, overall and by class, as fractions."""
        n_features = self.rows.shape[1]
        cuts = np.full((n_features, len(self.rows) + 1), np.inf)
        for j in range(n_features):
            x = self.take(j)[0]
            cuts[j, : len(x)] = x
        gap = summary.weight_below(cuts) - self.weight_below(cuts)
        count = self.count()
        overall = np.abs(gap.sum(axis=2)).max(axis=1) / np.maximum(count.sum(axis=0), 1e-300)
        return overall, np.abs(gap).max(axis=1) / np.maximum(count.T, 1e-300)


def mutual_information(table):
    found = []
    for t in table:
        n, r, k = t.sum(), t.sum(axis=1), t.sum(axis=0)
        cells = [(t[b, c], r[b] * k[c]) for b in range(len(r)) for c in range(len(k)) if t[b, c] > 0]
        found.append(sum(x / n * np.log(x * n / e) for x, e in cells))
    return np.array(found)


def gini_decrease(table):
    found = []
    for t in table:
        n, k = t.sum(), t.sum(axis=0)
        gains = [0.0]
        for h in range(1, len(t)):
            a, b = t[:h].sum(axis=0), t[h:].sum(axis=0)
            if a.sum() and b.sum():
                left = sum(part.sum() / n * (1 - ((part / part.sum()) ** 2).sum()) for part in (a, b))
                gains.append(1 - ((k / n) ** 2).sum() - left)
        found.append(max(gains))
    return np.array(found)


def orders(n, rng):
    """Return streams that are hard on summaries: the nine of the literature."""
    line = np.arange(n, dtype=float)
    zigzag, inside_out = np.empty(n), np.empty(n)
    zigzag[0::2], zigzag[1::2] = line[: (n + 1) // 2], line[::-1][: n // 2]
    inside_out[0::2], inside_out[1::2] = line[n // 2 :][: (n + 1) // 2], line[: n // 2][::-1]
    blocks = np.array_split(line, 200)
    return {
        "random": rng.permutation(line),
        "ascending": line,
        "descending": line[::-1].copy(),
        "zigzag": zigzag,
        "sawtooth": np.concatenate([line[start::97] for start in range(97)]),
        "blocks": np.concatenate([blocks[i] for i in rng.permutation(200)]),
        "inside out": inside_out,
        "ties": np.floor(rng.exponential(30, n)),
        "heavy zero": np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
    }
