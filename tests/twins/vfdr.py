"""Very fast decision rules, slow and obvious: an object for each rule, statistics recounted from all of its rows.

Gama, Kosina, IJCAI 2011; Kosina, Gama, DMKD 29, 2015; the same options as `tamis.learners.VFDR`.
"""

from __future__ import annotations

import math

import numpy as np

from tests.twins.hoeffding import HoeffdingTwin, Leaf, Window, entropy


class Rule(Leaf):
    """A leaf of no tree, whose rows are those since its last literal."""

    def __init__(self, n_classes, drift):
        super().__init__(np.zeros(n_classes), 0)
        self.literals = []  # [feature, operator, value, gain]
        self.drift = drift
        self.begin_anew(np.zeros(n_classes))

    def begin_anew(self, weights):
        self.weights = np.array(weights, dtype=float)
        self.since, self.covered, self.known = 0, 0, 0
        self.rows, self.labels, self.right = [], [], {"majority": 0, "nb": 0}
        self.adwin = Window(self.drift) if self.drift else None

    def covers(self, row):
        return all(self.holds(row[f], operator, value) for f, operator, value, _ in self.literals)

    def holds(self, x, operator, value):
        if math.isnan(x):
            return False
        return {"<=": x <= value, ">": x > value, "==": x == value, "!=": x != value}[operator]

    def add(self, f, operator, value, gain):
        for literal in self.literals:
            if literal[:2] == [f, operator] and operator in ("<=", ">"):
                literal[2:] = [value, literal[3] + gain]
                return
        self.literals.append([f, operator, value, gain])


class VFDRTwin(HoeffdingTwin):
    def __init__(self, n_classes, *, ordered=True, drift=None, max_rules=None, **options):
        super().__init__(n_classes, binary=True, **options)
        self.ordered, self.drift, self.max_rules = ordered, drift, max_rules
        self.rules, self.default, self.dropped = [], Rule(n_classes, drift), 0

    def learn(self, row, y):
        for f, known in self.values.items():
            if not math.isnan(row[f]) and row[f] not in known:
                known.append(row[f])
        learned = []
        for rule in list(self.rules):
            if not rule.covers(row):
                continue
            if self._errors_rise(rule, row, y):
                self.rules.remove(rule)
                self.dropped += 1
                continue
            learned.append(rule)
            if self.ordered:
                break
        if not learned:
            if self._errors_rise(self.default, row, y):
                self.default.begin_anew(np.zeros(self.n_classes))
                self.dropped += 1
            learned = [self.default]
        growing = []
        for rule in learned:
            rule.weights[y] += 1
            rule.rows.append(row)
            rule.labels.append(y)
            rule.since += 1
            if rule.since == self.grace:
                rule.since = 0
                best = self._best_literal(rule)
                if best is not None:
                    growing.append((rule, best))
        for rule, best in growing:
            self._give(rule, best)

    def _errors_rise(self, rule, row, y):
        known = self._guess(rule, row, y) == y
        rule.covered += 1
        rule.known += known
        return bool(rule.adwin is not None and rule.adwin.update(float(not known)))

    def _best_literal(self, rule):
        n_classes = np.count_nonzero(rule.weights)
        if n_classes < 2:
            return None
        found = [self._best(rule, f) for f in self._order(len(rule.rows[0]))]
        merits = sorted([merit for merit, *_ in found] + [0.0])
        eps = math.sqrt(math.log2(n_classes) ** 2 * math.log(1 / self.delta) / (2 * rule.covered))
        if merits[-1] <= 0 or not (merits[-1] - merits[-2] > eps or eps < self.tie):
            return None
        return next(one for one in found if one[0] == merits[-1])

    def _give(self, rule, best):
        merit, f, threshold, values, parts = best
        if rule is self.default and len(self.rules) == self.max_rules:
            return
        gain = merit * rule.weight
        signs = ("<=", ">") if threshold is not None else ("==", "!=")
        h = [entropy(part) for part in parts]
        side = 0 if h[0] < h[1] or (h[0] == h[1] and sum(parts[0]) >= sum(parts[1])) else 1
        if rule is self.default:
            rule.begin_anew(parts[1 - side])
            rule = Rule(self.n_classes, self.drift)
            self.rules.append(rule)
        rule.add(f, signs[side], threshold if threshold is not None else values[0], gain)
        rule.begin_anew(parts[side])

    def predict_proba(self, row):
        covering = [rule for rule in self.rules if rule.covers(row)] or [self.default]
        if self.ordered:
            covering = covering[:1]
        return np.mean([self._votes(rule, row) for rule in covering], axis=0)
