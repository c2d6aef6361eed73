"""Random rules, slow and obvious: sets of rules of objects, each shown its own features of its own rows.

Almeida, Kosina, Gama, SAC 2013; the same options and draws as `tamis.learners.RandomRules`.
"""

from __future__ import annotations

import numpy as np

from tests.twins.forest import uniform
from tests.twins.vfdr import VFDRTwin


def dealt(n_subsets, size, n_features, seed):
    """Deal the features that have been dealt the least, in random order."""
    rng, used, subsets = np.random.default_rng(seed), [0] * n_features, []
    for _ in range(n_subsets):
        draws = rng.random(n_features)
        subset = sorted(range(n_features), key=lambda f: (used[f], draws[f]))[:size]
        for f in subset:
            used[f] += 1
        subsets.append(sorted(subset))
    return subsets


class RandomRulesTwin:
    def __init__(self, n_classes, n_features, *, sets, size, skip, categorical=(), seed=0, **options):
        self.skip, self.seed, self.row = skip, seed, 0
        self.subsets = dealt(sets, size, n_features, seed)
        self.sets = [
            VFDRTwin(n_classes, categorical=[k for k, f in enumerate(subset) if f in categorical], **options)
            for subset in self.subsets
        ]

    def learn(self, row, y):
        for t, (subset, rules) in enumerate(zip(self.subsets, self.sets, strict=True)):
            if uniform((self.seed << 24) + (1 << 23) + t, self.row, 0) >= self.skip:
                rules.learn(row[subset], y)
        self.row += 1

    def predict_proba(self, row):
        votes = [rules.predict_proba(row[own]) for own, rules in zip(self.subsets, self.sets, strict=True)]
        return np.mean(votes, axis=0)
