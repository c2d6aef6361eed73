"""The five scores, slow and obvious: keep every row and its faded weight, then use the definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.stats


def faded_weights(batches, factor, per, clock):
    """Return the weight of every row after the last batch; batches: list of class codes."""
    weights, codes = np.empty(0), np.empty(0, dtype=int)
    for batch in batches:
        if per == "batch":
            fades = np.isin(codes, batch) if clock == "class" else np.ones(len(codes), dtype=bool)
            weights = np.where(fades, factor * weights, weights)
            weights, codes = np.append(weights, np.ones(len(batch))), np.append(codes, batch)
            continue
        for c in batch:
            weights = np.where((codes == c) | (clock == "global"), factor * weights, weights)
            weights, codes = np.append(weights, 1.0), np.append(codes, c)
    return weights


def fisher(x, y, w):
    known = ~np.isnan(x)
    x, y, w = x[known], y[known], w[known]
    between = within = 0.0
    grand = w @ x / w.sum() if w.sum() else 0.0
    for c in np.unique(y):
        xc, wc = x[y == c], w[y == c]
        mean = wc @ xc / wc.sum()
        between += wc.sum() * (mean - grand) ** 2
        within += wc @ (xc - mean) ** 2
    return between / within if within > 0 else (np.inf if between > 0 else 0.0)


def t_score(x, y, w, n_classes):
    sides = [1] if n_classes == 2 else range(n_classes)
    return max(_t(x, y == c, y, w) for c in sides)


def _t(x, inside, y, w):
    known = ~np.isnan(x)
    means, errors = [], []
    for side in (inside, ~inside):
        if not (side & known).any():
            return 0.0
        part, weight = x[side & known], w[side & known]
        mean = weight @ part / weight.sum()
        variance = weight @ (part - mean) ** 2 / weight.sum()
        # each class has its own effective size, scaled by its share of known values; those of a side add up
        size = 0.0
        for c in np.unique(y[side]):
            rows = y == c
            size += w[rows].sum() ** 2 / (w[rows] ** 2).sum() * w[rows & known].sum() / w[rows].sum()
        means.append(mean)
        errors.append(variance / size)
    gap, error = abs(means[0] - means[1]), np.sqrt(sum(errors))
    return gap / error if error > 0 else (np.inf if gap > 0 else 0.0)


def quantile_bins(x, w, n_bins):
    """Return the bin of each value: how many cuts q_h lie below it, q_h the smallest value with F(q_h) >= h / K."""
    values = np.unique(x)
    cumulative = np.array([w[x <= value].sum() for value in values])
    cuts = []
    for h in range(1, n_bins):
        reached = cumulative >= h / n_bins * cumulative[-1] * (1 - 1e-12)
        cuts.append(values[reached][0])
    return np.array([sum(value > cut for cut in cuts) for value in x])


def table(x, y, w, n_bins, n_classes):
    """Return the weight of each bin (n_bins=None: of each value, a category) and class."""
    known = ~np.isnan(x) & (w > 0)
    x, y, w = x[known], y[known], w[known]
    if len(x) == 0:
        return np.zeros((1, n_classes))
    bins = x.astype(int) if n_bins is None else quantile_bins(x, w, n_bins)
    counts = np.zeros((bins.max() + 1, n_classes))
    for b, c, weight in zip(bins, y, w, strict=True):
        counts[b, c] += weight
    return counts


def mutual_information(counts):
    n, total = counts.sum(), 0.0
    for b, c in itertools.product(*map(range, counts.shape)):
        if counts[b, c] > 0:
            total += counts[b, c] / n * np.log(counts[b, c] * n / (counts[b].sum() * counts[:, c].sum()))
    return total


def chi_square(counts):
    n, total = counts.sum(), 0.0
    for b, c in itertools.product(*map(range, counts.shape)):
        expected = counts[b].sum() * counts[:, c].sum() / n if n > 0 else 0.0
        if expected > 0:
            total += (counts[b, c] - expected) ** 2 / expected
    return total


def impurity(counts):
    return 1.0 - ((counts / counts.sum()) ** 2).sum() if counts.sum() > 0 else 0.0


def split_gain(counts, left):
    """Return what a split into the bins `left` and all others takes off the impurity."""
    inside = np.isin(np.arange(len(counts)), left)
    of_classes, n = counts.sum(axis=0), counts.sum()
    sides = [counts[side].sum(axis=0) for side in (inside, ~inside)]
    return impurity(of_classes) - sum(side.sum() / n * impurity(side) for side in sides) if n > 0 else 0.0


def gini(counts):
    return max([0.0, *(split_gain(counts, range(h)) for h in range(1, len(counts)))])


def gini_of_categories(counts):
    """Return the best gain of all splits of the categories in two (of two classes), else of the ordered ones."""
    if counts.shape[1] == 2:
        half = range(1, len(counts) // 2 + 1)
        subsets = (s for size in half for s in itertools.combinations(range(len(counts)), size))
        return max([0.0, *(split_gain(counts, s) for s in subsets)])
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return max(gini(counts[np.argsort(share[:, c])]) for c in range(counts.shape[1]))


def variances(samples):
    """Return the variance of each sample; none is smaller than that within all of them."""
    within = sum(np.sum((x - x.mean()) ** 2) for x in samples) / (sum(map(len, samples)) - len(samples))
    return within, [max(x.var(ddof=1), within) if len(x) > 1 else within for x in samples]


def t_pvalue(x, y):
    """Welch's test with the variances above, of each class against the rest, times the number of tests."""
    classes, found = np.unique(y), []
    for c in classes[: 1 if len(classes) == 2 else None]:
        one, rest = x[y == c], x[y != c]
        a, b = (v / len(x) for v, x in zip(variances([one, rest])[1], (one, rest), strict=True))
        freedom = (a + b) ** 2 / (a**2 / max(len(one) - 1, 1) + b**2 / max(len(rest) - 1, 1))
        t = abs(one.mean() - rest.mean()) / math.sqrt(a + b)
        found.append(2 * scipy.stats.t.sf(t, freedom))
    return min(1.0, len(found) * min(found))


def fisher_pvalue(x, y):
    """The larger one of F and of Welch's analysis of variance with the variances above."""
    samples = [x[y == c] for c in np.unique(y)]
    within, own = variances(samples)
    n, k = len(x), len(samples)
    f = sum(len(s) * (s.mean() - x.mean()) ** 2 for s in samples) / (k - 1) / within
    weight = [len(s) / v for s, v in zip(samples, own, strict=True)]
    centre = sum(w * s.mean() for w, s in zip(weight, samples, strict=True)) / sum(weight)
    apart = sum(w * (s.mean() - centre) ** 2 for w, s in zip(weight, samples, strict=True)) / (k - 1)
    rest = sum((1 - w / sum(weight)) ** 2 / max(len(s) - 1, 1) for w, s in zip(weight, samples, strict=True))
    welch = apart / (1 + 2 * (k - 2) / (k**2 - 1) * rest)
    return max(scipy.stats.f.sf(f, k - 1, n - k), scipy.stats.f.sf(welch, k - 1, (k**2 - 1) / (3 * rest)))


def exact_pvalues(X, y, n_bins, first=256):
    """p-values of chi-square and of the G-test, of all rows in bins cut at quantiles of the first ones.

    Of the smaller statistic, where less than five counts are expected somewhere.
    """
    found = []
    for column in X.T:
        known = sorted(x for x in column[:first] if x == x)
        edges = [known[math.ceil(len(known) * h / n_bins - 1e-9) - 1] for h in range(1, n_bins)]
        table = {}
        for x, label in zip(column, y, strict=True):
            if x == x:
                cell = (sum(x > edge for edge in edges), label)
                table[cell] = table.get(cell, 0) + 1
        n = sum(table.values())
        of_bin = {b: sum(t for (other, _), t in table.items() if other == b) for b, _ in table}
        of_class = {c: sum(t for (_, other), t in table.items() if other == c) for _, c in table}
        chi = g = 0.0
        for b in of_bin:
            for c in of_class:
                t, e = table.get((b, c), 0), of_bin[b] * of_class[c] / n
                chi += (t - e) ** 2 / e
                g += 2 * t * math.log(t / e) if t else 0.0
        freedom = (len(of_bin) - 1) * (len(of_class) - 1)
        if min(of_bin.values()) * min(of_class.values()) < 5 * n:
            chi = g = min(chi, g)
        found.append([scipy.stats.chi2.sf(s, freedom) if freedom else 1.0 for s in (chi, g)])
    return np.transpose(found)
