"""CVFDT, slow and obvious: every node keeps its rows of the window, and recounts all it is asked from them.

Hulten, Spencer, Domingos, KDD 2001; the same options as `tamis.learners.CVFDT`.
"""

from __future__ import annotations

import math

import numpy as np

from tests.twins.hoeffding import HoeffdingTwin


class Node:
    """A leaf, or a split once `feature` is set."""

    def __init__(self, n_classes, depth):
        self.n_classes, self.depth, self.since = n_classes, depth, 0
        self.entries = []  # (number of the row, row, label), of the window
        self.ranges = {}  # of a feature and a class: least and greatest value since the window was counted again
        self.right = {"majority": 0, "nb": 0}
        self.feature, self.threshold, self.values, self.children = None, None, [], []
        self.alternate = None

    def add(self, number, row, y):
        self.entries.append((number, row, y))
        self.widen(row, y)

    def widen(self, row, y):
        for f, x in enumerate(row):
            if not math.isnan(x):
                low, high = self.ranges.get((f, y), (x, x))
                self.ranges[f, y] = min(low, x), max(high, x)

    def remove(self, number):
        for entry in [entry for entry in self.entries if entry[0] == number]:
            self.entries.remove(entry)
            for f, x in enumerate(entry[1]):
                left = self.of_class(f, entry[2])
                if not math.isnan(x) and len(set(left)) < 2:
                    self.ranges.pop((f, entry[2]))
                    for value in left[:1]:
                        self.ranges[f, entry[2]] = value, value

    def count_again(self):
        self.ranges = {}
        for _, row, y in self.entries:
            self.widen(row, y)

    @property
    def rows(self):
        return [row for _, row, _ in self.entries]

    @property
    def weights(self):
        return np.bincount([y for *_, y in self.entries], minlength=self.n_classes).astype(float)

    @property
    def weight(self):
        return len(self.entries)

    def of_class(self, f, c):
        return np.array([row[f] for _, row, y in self.entries if y == c and not math.isnan(row[f])])

    def range_of(self, f, c):
        return self.ranges[f, c]

    def child(self, row):
        """Return where a row goes on, or None if it stays."""
        if self.feature is None or math.isnan(row[self.feature]):
            return None
        x = row[self.feature]
        if self.threshold is not None:
            return self.children[0 if x <= self.threshold else 1]
        if len(self.values) == 1:
            return self.children[0 if x == self.values[0] else 1]
        return self.children[self.values.index(x)] if x in self.values else None

    def way(self, row):
        path = [self]
        while (following := path[-1].child(row)) is not None:
            path.append(following)
        return path

    def everything(self):
        """Return the node and all below and beside it."""
        found = [self]
        for node in [*self.children, self.alternate]:
            if node is not None:
                found += node.everything()
        return found


class CVFDTTwin(HoeffdingTwin):
    def __init__(self, n_classes, *, window, check_every, test_every, test_rows, **options):
        super().__init__(n_classes, **options)
        self.window, self.check_every = window, check_every
        self.test_every, self.test_rows = test_every, test_rows
        self.root, self.seen = Node(n_classes, 0), 0
        self.started = self.replaced = self.dropped = 0

    # -- learning ------------------------------------------------------------------------------------------

    def learn(self, row, y):
        for node in self.root.everything():
            node.remove(self.seen - self.window)
        for f, known in self.values.items():
            if not math.isnan(row[f]) and row[f] not in known:
                known.append(row[f])
        is_test = self.seen % self.test_every >= self.test_every - self.test_rows
        growing = self._learn_tree(self.root, row, y, is_test)
        self.seen += 1
        if self.seen > self.window and self.seen % self.window == 0:
            for node in self.root.everything():
                node.count_again()
        if self.seen % self.test_every == 0:
            self.root = self._judge(self.root)
        for node, split in growing:
            self._split(node, split)
        # splits are found out of date by what is known now, before leaves split; new splits have no alternate yet
        if self.seen % self.check_every == 0:
            new = [node for node, _ in growing]
            for node in self.root.everything():
                if node.feature is not None and node.alternate is None and node not in new:
                    self._check(node)

    def _learn_tree(self, top, row, y, is_test):
        """Learn a row in a tree and the alternates by its way; return the leaves that are to split, and how."""
        way, growing = top.way(row), []
        guess = self._guess(self._who_votes(way), row, y)
        top.errors = getattr(top, "errors", 0) + (is_test and guess != y)
        for node in way:
            node.add(self.seen, row, y)
            if node.alternate is not None:
                node.own_errors += is_test and guess != y
                growing += self._learn_tree(node.alternate, row, y, is_test)
        last = way[-1]
        if last.feature is None:
            growing += self._try(last)
        elif last.threshold is None and len(last.values) > 1 and not math.isnan(row[last.feature]):
            last.values.append(row[last.feature])
            last.children.append(Node(self.n_classes, last.depth + 1))
        return growing

    def _who_votes(self, way):
        return next((node for node in reversed(way) if node.weight > 0), way[0])

    def _bound(self, node):
        n_classes = np.count_nonzero(node.weights)
        return math.sqrt(math.log2(n_classes) ** 2 * math.log(1 / self.delta) / (2 * node.weight))

    def _try(self, leaf):
        leaf.since += 1
        if leaf.since < self.grace or (self.max_depth is not None and leaf.depth >= self.max_depth):
            return []
        leaf.since = 0
        if np.count_nonzero(leaf.weights) < 2:
            return []
        found = [self._best(leaf, f) for f in self._order(len(leaf.rows[0]))]
        merits = sorted([merit for merit, *_ in found] + [0.0])
        eps = self._bound(leaf)
        if merits[-1] <= 0 or not (merits[-1] - merits[-2] > eps or eps < self.tie):
            return []
        return [(leaf, next(one for one in found if one[0] == merits[-1]))]

    def _split(self, node, split):
        _, node.feature, node.threshold, values, branches = split
        node.values = list(values)
        node.children = [Node(self.n_classes, node.depth + 1) for _ in branches]

    def _check(self, node):
        if np.count_nonzero(node.weights) < 2:
            return
        eps, present = self._bound(node), max(self._best(node, node.feature)[0], 0.0)
        wanted = min(eps, self.tie / 2) if eps < self.tie else eps
        others = [self._best(node, f) for f in self._order(len(node.rows[0])) if f != node.feature]
        best = max(others, key=lambda one: one[0])
        if best[0] > present + wanted:
            other = Node(self.n_classes, node.depth)
            other.entries, other.ranges = list(node.entries), dict(node.ranges)
            self._split(other, best)
            node.alternate, node.own_errors, node.lead = other, 0, -math.inf
            other.errors = 0
            self.started += 1

    def _judge(self, node):
        """Return what stands in the place of a node after its alternate, and those below, were compared."""
        if node.alternate is not None:
            lead = node.own_errors - node.alternate.errors
            if lead > 0:
                self.replaced += 1
                return self._judge(node.alternate)
            if lead <= node.lead:
                node.alternate = None
                self.dropped += 1
            else:
                node.own_errors, node.alternate.errors, node.lead = 0, 0, lead
                node.alternate = self._judge(node.alternate)
        node.children = [self._judge(child) for child in node.children]
        return node

    # -- predicting ----------------------------------------------------------------------------------------

    def predict_proba(self, row):
        return self._votes(self._who_votes(self.root.way(row)), row)

    def nodes(self, node=None, depth=0):
        """Return (depth, feature, threshold, weights) of each node before its children."""
        node = self.root if node is None else node
        found = [(depth, node.feature, node.threshold, node.weights)]
        for child in node.children:
            found += self.nodes(child, depth + 1)
        return found
