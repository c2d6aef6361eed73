"""HEFT-Stream, slow and obvious: one row at a time, a dictionary for each member, chunks as lists.

Nguyen, Woon, Ng, Wan, PAKDD 2012; the same draws as `tamis.pipeline.HEFTStream`. Members and selector are given.
"""

from __future__ import annotations

import copy

import numpy as np
from scipy.stats import poisson
from sklearn.base import clone

from tests.twins.forest import uniform


class HEFTTwin:
    def __init__(self, n_features, n_classes, kinds, selector, *, size=10, chunk=150, seed=0):
        self.n_classes, self.kinds, self.size, self.chunk, self.seed = n_classes, kinds, size, chunk, seed
        self.selector, self.selected = clone(selector), list(range(n_features))
        self.begun, self.seen, self.rows, self.labels, self.drifts = 0, 0, [], [], []
        self.members = [self.new(m % len(kinds)) for m in range(size)]
        self.before, self.weights = None, [1 / size] * size

    def new(self, kind):
        member = {
            "kind": kind, "born": self.begun, "columns": self.selected, "model": clone(self.kinds[kind]), "young": True
        }  # fmt: skip
        self.begun += 1
        return member

    def teach(self, member, row, y, number):
        times = int(poisson.ppf(np.nextafter(uniform(self.seed, number, member["born"]), 1), 1.0))
        for _ in range(times):
            member["model"].partial_fit([row[member["columns"]]], [y], classes=np.arange(self.n_classes))
            member["young"] = False

    def learn(self, row, y):
        self.selector.partial_fit([row], [y], classes=np.arange(self.n_classes))
        for member in self.members:
            self.teach(member, row, y, self.seen)
        self.rows.append(row)
        self.labels.append(y)
        self.seen += 1
        if len(self.rows) == self.chunk:
            self.end_chunk()
            self.rows, self.labels = [], []

    def begin(self, kind):
        member = self.new(kind)
        for i, (row, y) in enumerate(zip(self.rows, self.labels, strict=True)):
            self.teach(member, row, y, self.seen - self.chunk + i)
        return member

    def end_chunk(self):
        selected = self.selector.get_support(indices=True).tolist()
        errors = [0.0] * self.size
        if self.before is None:
            self.selected = selected
            self.members = [self.begin(m % len(self.kinds)) for m in range(self.size)]
        else:
            for m, member in enumerate(self.before):
                wrong = [
                    (1 - self.votes(member, row)[y]) ** 2
                    for row, y in zip(self.rows, self.labels, strict=True)
                ]
                errors[m] = float(np.mean(wrong))
            if selected != self.selected:
                self.selected = selected
                self.drifts.append(self.seen - 1)
                worst, best = errors.index(max(errors)), errors.index(min(errors))
                self.members[worst] = self.begin(self.members[best]["kind"])
                errors[worst] = errors[best]
        p = [self.labels.count(c) / self.chunk for c in range(self.n_classes)]
        guess = sum(q * (1 - q) ** 2 for q in p)
        gains = [max(guess - error, 0) for error in errors]
        self.weights = [gain / sum(gains) if sum(gains) else 1 / self.size for gain in gains]
        self.before = copy.deepcopy(self.members)

    def votes(self, member, row):
        if member["young"]:
            return np.full(self.n_classes, 1 / self.n_classes)
        found = np.zeros(self.n_classes)
        found[member["model"].classes_] = member["model"].predict_proba([row[member["columns"]]])[0]
        return found

    def predict_proba(self, row):
        return sum(w * self.votes(member, row) for w, member in zip(self.weights, self.members, strict=True))
