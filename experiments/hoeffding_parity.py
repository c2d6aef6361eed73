"""Hoeffding trees beside River's on the same streams: prequential accuracy, row by row in batches of one.

Run: python experiments/hoeffding_parity.py [seeds] [rows]. Needs River. Prints a line for each run, then the table.
"""

from __future__ import annotations

import sys

import numpy as np
from river import tree
from scipy import stats

from tamis import HoeffdingAdaptiveTree, HoeffdingTree
from tamis.streams import load_stream

STREAMS = ("SEA", "AGR", "BG1", "RTG")


def rows_of(name, seed, n_rows, n_drifts):
    stream = load_stream(name, seed=seed, n_rows=n_rows, n_drifts=n_drifts, width=1)
    batches = list(stream)
    return (
        np.vstack([X for X, _ in batches]),
        np.concatenate([y for _, y in batches]),
        list(stream.categorical),
    )


def of_river(model, X, y):
    right = 0
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        right += model.predict_one(x) == label
        model.learn_one(x, label)
    return 100 * right / len(y)


def of_tamis(model, X, y):
    right = 0
    for i in range(len(y)):
        right += i > 0 and model.predict(X[i : i + 1])[0] == y[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    return 100 * right / len(y)


def accuracies(name, seed, n_rows, n_drifts):
    X, y, categorical = rows_of(name, seed, n_rows, n_drifts)
    X, y = X.astype(float), y.astype(int)
    return [
        of_river(tree.HoeffdingTreeClassifier(nominal_attributes=categorical), X, y),
        of_tamis(HoeffdingTree(categorical=categorical), X, y),
        of_river(tree.HoeffdingAdaptiveTreeClassifier(nominal_attributes=categorical, seed=seed), X, y),
        of_tamis(HoeffdingAdaptiveTree(categorical=categorical), X, y),
        of_tamis(HoeffdingAdaptiveTree(categorical=categorical, bootstrap=True, random_state=seed), X, y),
    ]


def main():
    given = [int(text) for text in sys.argv[1:]]
    n_seeds, n_rows = given[0] if given else 10, given[1] if len(given) > 1 else 20_000
    cases = [(name, n_drifts) for name in STREAMS for n_drifts in (0, 3)]
    found = {case: [] for case in cases}
    for seed in range(n_seeds):
        for name, n_drifts in cases:
            found[name, n_drifts].append(accuracies(name, seed, n_rows, n_drifts))
            print(name, n_drifts, seed, *np.round(found[name, n_drifts][-1], 2), flush=True)
    print(
        "stream, drifts: River HT, HT, River HAT, HAT, HAT with bootstrap; means, then the differences +- s.e."
    )
    for (name, n_drifts), values in found.items():
        a = np.array(values)
        gaps = [a[:, 1] - a[:, 0], a[:, 3] - a[:, 2], a[:, 4] - a[:, 2]]
        print(
            name,
            n_drifts,
            *np.round(a.mean(axis=0), 2),
            *(f"{g.mean():+.2f}+-{stats.sem(g):.2f}" for g in gaps),
        )


if __name__ == "__main__":
    main()
