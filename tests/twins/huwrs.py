"""HUWRS, slow and obvious: one row at a time, a dictionary for each member, bins as lists of rows, chunks as lists.

Hoens, Chawla, Polikar, ICDM 2011; Barddal's thesis, Eq. 5.2 and 5.3. The base classifier and the subsets are given.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from sklearn.base import clone


def present(rows, j):
    return [row[j] for row in rows if not math.isnan(row[j])]


def numbered_bins(values, n_bins):
    """Return what says the bin of a number: as many values in each, or a bin for each value if these are few."""
    distinct = sorted(set(values))
    if len(distinct) <= n_bins:
        ends = distinct[:-1]
    else:
        ends = [sorted(values)[math.ceil(len(values) * q / n_bins) - 1] for q in range(1, n_bins)]
    return lambda x: sum(x > end for end in ends)


def category_bins(values, n_bins):
    """Return what says the bin of a category: the commonest have their own, the others share one."""
    own = sorted(Counter(values), key=lambda value: (-values.count(value), value))[: n_bins - 1]
    return lambda x: own.index(x) if x in own else "other"


def agreement(then, now):
    """Return 1 - d_H / sqrt 2 of two lists of bins, chance taken out."""
    bins = set(then) | set(now)
    apart = sum(
        (math.sqrt(then.count(q) / len(then)) - math.sqrt(now.count(q) / len(now))) ** 2 for q in bins
    )
    chance = (len(bins) - 1) / 4 * (1 / len(then) + 1 / len(now))
    distance = math.sqrt(max(apart - chance, 0))
    return (math.sqrt(2) - distance) / math.sqrt(2)


class HUWRSTwin:
    def __init__(
        self, n_classes, base, subsets, *, chunk=500, retrain=0.95, silent=0.8, bins=10, categorical=()
    ):
        self.n_classes, self.base, self.chunk, self.bins = n_classes, base, chunk, bins
        self.retrain, self.silent, self.categorical = retrain, silent, categorical
        self.rows, self.labels, self.drifts, self.seen = [], [], [], 0
        self.members = [{"columns": subset, "weight": 1.0} for subset in subsets]
        for member in self.members:
            member["model"] = clone(base)

    def teach(self, member, row, y):
        member["model"].partial_fit([row[member["columns"]]], [y], classes=np.arange(self.n_classes))

    def learn(self, row, y):
        for member in self.members:
            self.teach(member, row, y)
        self.rows.append(row)
        self.labels.append(y)
        self.seen += 1
        if len(self.rows) == self.chunk:
            self.end_chunk()
            self.rows, self.labels = [], []

    def end_chunk(self):
        begins = False
        for member in self.members:
            if "rows" not in member:
                self.remember(member)
                continue
            member["weight"] = self.compared(member, self.rows, self.labels)
            if member["weight"] < self.retrain:
                begins = True
                member["model"], member["weight"] = clone(self.base), 1.0
                for row, y in zip(self.rows, self.labels, strict=True):
                    self.teach(member, row, y)
                self.remember(member)
        if begins:
            self.drifts.append(self.seen - 1)

    def remember(self, member):
        member["rows"], member["labels"] = self.rows, self.labels

    def compared(self, member, rows, labels):
        return float(np.mean([self.of_feature(member, j, rows, labels) for j in member["columns"]]))

    def of_feature(self, member, j, rows, labels):
        make = category_bins if j in self.categorical else numbered_bins
        bin_of = make(present(member["rows"], j), self.bins)
        found = []
        for label in set(labels):
            then = [row for row, y in zip(member["rows"], member["labels"], strict=True) if y == label]
            now = [row for row, y in zip(rows, labels, strict=True) if y == label]
            then, now = ([bin_of(x) for x in present(some, j)] for some in (then, now))
            if min(len(then), len(now)) >= self.bins:
                found.append(agreement(then, now))
        return np.mean(found) if found else 1.0

    def reweigh(self, rows):
        for member in self.members:
            blind = {**member, "labels": [0] * len(member["rows"])}
            member["weight"] = self.compared(blind, rows, [0] * len(rows))

    def predict_proba(self, row):
        voting = [member for member in self.members if member["weight"] >= self.silent]
        weights = [member["weight"] for member in voting] if voting else [1.0] * len(self.members)
        votes = np.zeros(self.n_classes)
        for weight, member in zip(weights, voting or self.members, strict=True):
            votes += weight * member["model"].predict_proba([row[member["columns"]]])[0]
        return votes / sum(weights)
