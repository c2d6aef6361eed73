"""Adaptive random forests, slow and obvious: a tree of objects each, a row at a time.

Gomes et al., Machine Learning 106, 2017; the same options and draws as `tamis.learners.hoeffding.forest`.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import poisson

from tests.twins.hoeffding import HoeffdingTwin, Split, Window

MASK = (1 << 64) - 1


def uniform(seed, row, born):
    """Return splitmix64 of three numbers, as a share."""
    z = (seed * 0x9E3779B97F4A7C15 + row) & MASK
    for extra in (born, 0):
        z = ((z + extra) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return (z >> 11) / 2**53


class Tree(HoeffdingTwin):
    """A tree whose leaves see the features that they drew, and learn a row as often as it counts."""

    def __init__(self, n_classes, n_features, n_drawn, key, by_leaf, **options):
        super().__init__(n_classes, **options)
        self.features = self._order_of(n_features)
        self.n_drawn, self.key, self.by_leaf = n_drawn, key, by_leaf
        self.births, self.born, self.drawn = 1, {id(self.root): 0}, {}
        self.right, self.seen = 0, 0
        self.kept = [self.root]  # so that no two leaves have the same id

    def _order_of(self, n_features):
        numeric = [f for f in range(n_features) if f not in self.categorical]
        return numeric + sorted(self.categorical)

    def seen_by(self, leaf, row):
        if id(leaf) not in self.drawn:
            return np.full(len(row), np.nan)
        return np.where(np.isin(np.arange(len(row)), self.drawn[id(leaf)]), row, np.nan)

    def draw(self, leaf):
        if id(leaf) in self.drawn:
            return
        birth, left, found = self.born[id(leaf)] if self.by_leaf else 0, self.n_drawn, []
        for place, f in enumerate(self.features):
            if uniform(self.key, place, birth) * (len(self.features) - place) < left:
                found.append(f)
                left -= 1
        self.drawn[id(leaf)] = found

    def learn_times(self, row, y, count):
        """Learn a row; return whether its class was known before."""
        self.split_before = {id(node) for node in self._splits(self.root)}
        for f, known in self.values.items():
            if not np.isnan(row[f]) and row[f] not in known:
                known.append(row[f])
        path = [self.root]
        while isinstance(path[-1], Split):
            path.append(path[-1].way(row))
        leaf = path[-1]
        self.draw(leaf)
        part, before = self.seen_by(leaf, row), dict(leaf.right)
        guess = self._guess(leaf, part, y)
        for name, had in before.items():
            leaf.right[name] = had + count * (leaf.right[name] - had)
        self.seen += 1
        self.right += guess == y
        if count:
            for node in path:
                node.weights[y] += count
            leaf.rows += [part] * count
            leaf.labels += [y] * count
            leaf.since += count - 1  # `_try` adds one
            self._settle(path, leaf, row)
        return guess == y

    def _settle(self, path, leaf, row):
        grown, new = self._try(leaf), []
        if grown is not leaf:
            new = grown.children
            if len(path) == 1:
                self.root = grown
            else:
                self._put(path[-2], leaf, grown)
        for child in new:
            self._bear(child)
        for node in path[:-1]:
            if node.threshold is None and len(node.values) > 1 and node.next(row) is None:
                x = row[node.feature]
                if not np.isnan(x):
                    node.values.append(x)
                    node.children.append(type(leaf)(np.zeros(self.n_classes), node.depth + 1))
                    self._bear(node.children[-1])

    def _bear(self, leaf):
        self.kept.append(leaf)
        self.born[id(leaf)] = self.births
        self.births += 1

    def votes(self, row):
        node = self.root
        while isinstance(node, Split):
            node = node.way(row)
        return self._votes(node, self.seen_by(node, row))


class ForestTwin:
    def __init__(
        self, n_classes, n_features, *, trees=3, n_drawn=2, rate=6.0, warning=0.01, drift=0.001, by_leaf=True,
        seed=0, **options,
    ):  # fmt: skip
        self.n_classes, self.rate, self.seed, self.row = n_classes, rate, seed, 0
        self.events = np.zeros((2, trees), int)
        self.deltas = warning, drift
        self.make = lambda t: Tree(
            n_classes, n_features, n_drawn, (seed << 24) + self.events[:, t].sum().item() * trees + t, by_leaf,
            **options,
        )  # fmt: skip
        self.trees = [self.make(t) for t in range(trees)]
        self.behind = [None] * trees
        self.watches = [self._watches() for _ in range(trees)]

    def _watches(self):
        return [Window(delta) if delta else None for delta in self.deltas]

    def learn(self, row, y):
        for t, tree in enumerate(self.trees):
            share = uniform((self.seed << 24) + (1 << 23) + t, self.row, 0)
            count = 1 if self.rate is None else int(poisson.ppf(np.nextafter(share, 1), self.rate))
            error = float(not tree.learn_times(row, y, count))
            if self.behind[t] is not None:
                self.behind[t].learn_times(row, y, count)
            warned, drifted = (watch is not None and watch.update(error) for watch in self.watches[t])
            if drifted:
                self.events[1, t] += 1
                self.trees[t] = self.behind[t] or self.make(t)
                self.behind[t] = None
                self.watches[t] = self._watches()
            elif warned:
                self.events[0, t] += 1
                self.watches[t][0] = self._watches()[0]
                self.behind[t] = self.make(t)
        self.row += 1

    def predict_proba(self, row):
        votes = sum((tree.right + 1) / (tree.seen + self.n_classes) * tree.votes(row) for tree in self.trees)
        return votes / votes.sum()
