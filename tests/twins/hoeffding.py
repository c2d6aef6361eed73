"""Hoeffding trees, slow and obvious: an object for each node, a row at a time, statistics recounted from all rows.

Domingos, Hulten, KDD 2000; Bifet, Gavalda, IDA 2009; the same options as `tamis.learners.hoeffding`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from tamis.drift import ADWIN


class Window(ADWIN):
    """ADWIN whose window is cut at a drift and not forgotten."""

    def update(self, value):
        return self._run(np.array([value])) >= 0


class Leaf:
    def __init__(self, weights, depth):
        self.depth, self.weights = depth, np.array(weights, dtype=float)
        self.since = 0  # rows since it last tried to split
        self.rows, self.labels = [], []
        self.right = {"majority": 0, "nb": 0}
        self.adwin = None  # only the top of an alternate tree needs one

    @property
    def weight(self):
        return self.weights.sum()

    def of_class(self, f, c):
        values = [row[f] for row, y in zip(self.rows, self.labels, strict=True) if y == c]
        return np.array([v for v in values if not math.isnan(v)])

    def range_of(self, f, c):
        values = self.of_class(f, c)
        return values.min(), values.max()


class Split(Leaf):
    def __init__(self, leaf, feature, threshold, values, merit):
        self.depth, self.weights, self.merit = leaf.depth, leaf.weights, merit
        self.feature, self.threshold, self.values = feature, threshold, values
        self.children, self.adwin, self.alternate = [], Window(), None
        self.dead = False  # an alternate tree is taking its place

    def next(self, row):
        x = row[self.feature]
        if math.isnan(x):
            return None
        if self.threshold is not None:
            return self.children[0 if x <= self.threshold else 1]
        if len(self.values) == 1:
            return self.children[0 if x == self.values[0] else 1]
        return self.children[self.values.index(x)] if x in self.values else None

    def way(self, row):
        return self.next(row) or max(
            self.children, key=lambda child: child.weight
        )  # the first of the heaviest


def entropy(weights):
    p = np.array(weights) / max(sum(weights), 1e-300)
    return -sum(q * math.log2(q) for q in p if q > 0)


def merit(total, branches):
    n = sum(total)
    if sum(sum(branch) > 0.01 * n for branch in branches) < 2:
        return -1
    return entropy(total) - sum(sum(branch) / n * entropy(branch) for branch in branches)


class HoeffdingTwin:
    def __init__(
        self, n_classes, *, adaptive=False, leaf="nb-adaptive", grace=200, delta=1e-7, tie=0.05, cuts=10,
        categorical=(), binary=False, max_depth=None, penalty=0.0,
    ):  # fmt: skip
        self.n_classes, self.adaptive, self.leaf = n_classes, adaptive, leaf
        self.grace, self.delta, self.tie, self.cuts = grace, delta, tie, cuts
        self.categorical, self.binary, self.max_depth = set(categorical), binary, max_depth
        self.root = Leaf(np.zeros(n_classes), 0)
        self.values = {f: [] for f in sorted(categorical)}  # met so far, in order
        self.replaced = 0
        self.penalty, self.split_before = penalty, set()

    # -- learning ------------------------------------------------------------------------------------------

    def learn(self, row, y):
        for f, known in self.values.items():
            if not math.isnan(row[f]) and row[f] not in known:
                known.append(row[f])
        self.split_before = {id(node) for node in self._splits(self.root)}
        self.root = self._learn(self.root, row, y)

    def _splits(self, node):
        """Return the splits of a subtree and of the alternates in it, but not what an alternate is replacing now."""
        if not isinstance(node, Split):
            return []
        inside = [] if node.dead else [node, *(s for child in node.children for s in self._splits(child))]
        return inside + (self._splits(node.alternate) if node.alternate is not None else [])

    def _penalised(self, merit, feature, used):
        return merit if merit <= 0 or feature in used else (1 - self.penalty) * merit

    def _learn(self, top, row, y):
        """Learn in the subtree, and return what stands in its place then."""
        path = [top]
        while isinstance(path[-1], Split):
            path.append(path[-1].way(row))
        leaf = path[-1]
        guess = self._guess(leaf, row, y)
        alternates = []
        for at, node in enumerate(path):
            node.weights[y] += 1
            if not self.adaptive or node.adwin is None:
                continue
            risen = node.adwin.update(float(guess != y))
            if not isinstance(node, Split):
                continue
            if risen:
                node.alternate = None
                node.starting = True
            elif node.alternate is not None:
                verdict = self._compare(node)
                if verdict > 0:
                    self.replaced += 1
                    node.dead = True
                    other = self._learn(node.alternate, row, y)
                    self._learn_alternates(alternates, row, y)
                    if at == 0:
                        return other
                    self._put(path[at - 1], node, other)
                    return self._after(path[:at], top)
                if verdict < 0:
                    node.alternate = None
                else:
                    alternates.append(node)
        self._learn_alternates(alternates, row, y)
        leaf.rows.append(row)
        leaf.labels.append(y)
        grown = self._try(leaf)
        for node in path[:-1]:
            if node.threshold is None and len(node.values) > 1 and node.next(row) is None:
                x = row[node.feature]
                if not math.isnan(x):
                    node.values.append(x)
                    node.children.append(Leaf(np.zeros(self.n_classes), node.depth + 1))
        if len(path) == 1:
            return grown
        self._put(path[-2], leaf, grown)
        return self._after(path[:-1], top)

    def _learn_alternates(self, nodes, row, y):
        for node in nodes:
            node.alternate = self._learn(node.alternate, row, y)

    def _put(self, parent, old, new):
        parent.children[parent.children.index(old)] = new

    def _after(self, path, top):
        for node in path:
            if getattr(node, "starting", False):
                node.starting = False
                node.alternate = Leaf(np.zeros(self.n_classes), node.depth)
                node.alternate.adwin = Window()
        return top

    def _compare(self, node):
        a, b = node.adwin, node.alternate.adwin
        if a.width <= 300 or b.width <= 300:
            return 0
        bound = math.sqrt(2 * a.mean * (1 - a.mean) * math.log(2 / 0.05) * (1 / a.width + 1 / b.width))
        return int(a.mean - b.mean > bound) - int(b.mean - a.mean > bound)

    def _try(self, leaf):
        leaf.since += 1
        if leaf.since < self.grace:
            return leaf
        if self.max_depth is not None and leaf.depth >= self.max_depth:
            return leaf
        leaf.since = 0
        n_classes = np.count_nonzero(leaf.weights)
        if n_classes < 2:
            return leaf
        found = [self._best(leaf, f) for f in self._order(len(leaf.rows[0]))]
        used = {s.feature for s in self._splits(self.root) if id(s) in self.split_before}
        full = {f: merit for merit, f, *_ in found}
        found = [(self._penalised(merit, f, used), f, *rest) for merit, f, *rest in found]
        merits = sorted([merit for merit, *_ in found] + [0.0])
        eps = math.sqrt(math.log2(n_classes) ** 2 * math.log(1 / self.delta) / (2 * leaf.weight))
        if merits[-1] <= 0 or not (merits[-1] - merits[-2] > eps or eps < self.tie):
            return leaf
        best = next(one for one in found if one[0] == merits[-1])
        split = Split(leaf, *best[1:4], full[best[1]])
        split.children = [Leaf(weights, leaf.depth + 1) for weights in best[4]]
        return split

    def _order(self, n_features):
        return [f for f in range(n_features) if f not in self.categorical] + sorted(self.categorical)

    def _best(self, leaf, f):
        """Return (merit, feature, threshold, values, weights of the branches)."""
        classes = [leaf.of_class(f, c) for c in range(self.n_classes)]
        total = [len(values) for values in classes]
        found = [(-1, f, None, [], [])]
        if f in self.categorical:
            met = [v for v in self.values[f] if any((values == v).any() for values in classes)]
            counts = {v: [np.sum(values == v) for values in classes] for v in met}
            if self.binary:
                for v in met:
                    parts = [counts[v], np.subtract(total, counts[v])]
                    found.append((self._of_two(total, parts), f, None, [v], parts))
            else:
                found.append((merit(total, list(counts.values())), f, None, met, list(counts.values())))
        elif sum(total):
            ends = [leaf.range_of(f, c) for c in range(self.n_classes) if total[c]]
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
            for k in range(self.cuts):
                cut = low + (high - low) / (self.cuts + 1) * (k + 1)
                if low < cut < high:
                    left = [
                        len(values) and len(values) * self._below(values, cut, *leaf.range_of(f, c))
                        for c, values in enumerate(classes)
                    ]
                    parts = [left, np.subtract(total, left)]
                    found.append((self._of_two(total, parts), f, cut, [], parts))
        return max(found, key=lambda one: one[0])

    def _of_two(self, total, parts):
        return -1 if min(sum(part) for part in parts) <= 0.01 * sum(total) else merit(total, parts)

    def _below(self, values, cut, low, high):
        if cut < low:
            return 0.0
        if cut >= high:
            return 1.0
        return norm.cdf(cut, values.mean(), values.std(ddof=1))

    # -- predicting ----------------------------------------------------------------------------------------

    def _guess(self, leaf, row, y):
        if leaf.weight == 0:
            return -1
        guess = majority = int(leaf.weights.argmax())
        if self.leaf != "majority":
            bayes = int(self._log_bayes(leaf, row).argmax())
            guess = bayes if self._by_bayes(leaf) else majority
            leaf.right["majority"] += majority == y
            leaf.right["nb"] += bayes == y
        return guess

    def _log_bayes(self, leaf, row):
        votes = np.full(self.n_classes, -np.inf)
        for c in np.flatnonzero(leaf.weights):
            votes[c], unseen = math.log(leaf.weights[c] / leaf.weight), 0
            for f, x in enumerate(row):
                values = leaf.of_class(f, c)
                if math.isnan(x):
                    continue
                if f in self.categorical:
                    m = max(len(self.values[f]), 1)
                    votes[c] += math.log((np.sum(values == x) + 1) / (len(values) + m))
                elif len(values) > 1 and np.ptp(values) > 0:
                    votes[c] += norm.logpdf(x, values.mean(), values.std(ddof=1))
                elif x not in values:
                    unseen += 1
            votes[c] -= 1e6 * unseen
        return votes

    def _votes(self, leaf, row):
        if leaf.weight == 0:
            return np.full(self.n_classes, 1 / self.n_classes)
        if not self._by_bayes(leaf):
            return leaf.weights / leaf.weight
        votes = self._log_bayes(leaf, row)
        share = np.exp(votes - votes.max())
        return share / share.sum()

    def _by_bayes(self, leaf):
        return self.leaf == "nb" or (self.leaf != "majority" and leaf.right["nb"] >= leaf.right["majority"])

    def predict_proba(self, row):
        node = self.root
        while isinstance(node, Split):
            node = node.way(row)
        return self._votes(node, row)

    def nodes(self, node=None, depth=0):
        """Return (depth, feature, threshold, weights) of each node before its children."""
        node = self.root if node is None else node
        if not isinstance(node, Split):
            return [(depth, None, None, node.weights)]
        found = [(depth, node.feature, node.threshold, node.weights)]
        for child in node.children:
            found += self.nodes(child, depth + 1)
        return found
