"""The published quantile summary, slow and obvious: lists of (value, weights of the classes), one feature at a time.

Wang and Barbu (2021), Section 2.2, with the levels of Zhang and Wang (2007).
"""

from __future__ import annotations

import math

import numpy as np


def merge(one, other):
    weights = {}
    for value, weight in one + other:
        weights[value] = weights.get(value, 0.0) + weight
    return sorted(weights.items())


def prune(summary, g):
    """Return at most g tuples: each group becomes its largest value with the weights of all."""
    if len(summary) <= g:
        return summary
    total, before, groups = sum(weight.sum() for _, weight in summary), 0.0, {}
    for value, weight in summary:
        groups.setdefault(min(math.floor(g * (before / total)), g - 1), []).append((value, weight))
        before += weight.sum()
    return [(group[-1][0], sum(weight for _, weight in group)) for _, group in sorted(groups.items())]


class PrunedTwin:
    """One feature."""

    def __init__(self, n_classes, eps):
        self.n_classes, self.eps = n_classes, eps
        self.raw, self.levels, self.finished, self.n_blocks = [], [], [], 0

    def sizes(self):
        n_rows, levels = 2 ** len(self.finished) / self.eps, 1
        while math.ceil(levels / (self.eps / 2)) * 2**levels < n_rows:
            levels += 1
        block = math.ceil(levels / (self.eps / 2))
        return block, max(math.ceil(n_rows / block), 1)

    def add(self, x, code, weight=1.0, keep=1.0):
        for part in (self.raw, *self.levels, *self.finished):
            part[:] = [(value, keep * of_class) for value, of_class in part]
        self.raw.append((x, weight * np.eye(self.n_classes)[code]))
        block, n_blocks = self.sizes()
        if len(self.raw) < block:
            return
        carried, self.raw = prune(merge(self.known(), []), block // 2), []
        for level in range(len(self.levels) + 1):
            if level == len(self.levels):
                self.levels.append(carried)
                break
            if not self.levels[level]:
                self.levels[level] = carried
                break
            carried, self.levels[level] = prune(merge(self.levels[level], carried), block // 2), []
        self.n_blocks += 1
        if self.n_blocks == n_blocks:
            self.finished.append(prune(self.merged(self.levels), math.ceil(2 / self.eps)))
            self.levels, self.n_blocks = [], 0

    def known(self):
        """Return the rows that wait and have a value and a weight."""
        return [(x, weight) for x, weight in self.raw if not math.isnan(x) and weight.any()]

    def merged(self, parts):
        whole = []
        for part in parts:
            whole = merge(whole, part)
        return whole

    def counts(self, n_bins):
        summary = self.merged([self.known(), *self.levels, *self.finished])
        counts, total, below = np.zeros((n_bins, self.n_classes)), sum(w.sum() for _, w in summary), 0.0
        for _, weight in summary:
            counts[
                sum(below > 0 and below >= h * total / n_bins * (1 - 1e-12) for h in range(1, n_bins))
            ] += weight
            below += weight.sum()
        return counts
