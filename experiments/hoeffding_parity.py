"""Hoeffding trees, or forests, beside River's on the same streams: prequential accuracy, row by row in batches of one.

Run: python experiments/hoeffding_parity.py [seeds] [rows] [trees | forests]. Needs River. Prints a line for each run,
then the table.
"""

from __future__ import annotations

import sys

import numpy as np
from river import ensemble, forest, tree
from scipy import stats

from tamis import AdaptiveRandomForest, HoeffdingAdaptiveTree, HoeffdingTree, StreamingRandomPatches
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


def of_trees(X, y, categorical, seed):
    return [
        of_river(tree.HoeffdingTreeClassifier(nominal_attributes=categorical), X, y),
        of_tamis(HoeffdingTree(categorical=categorical), X, y),
        of_river(tree.HoeffdingAdaptiveTreeClassifier(nominal_attributes=categorical, seed=seed), X, y),
        of_tamis(HoeffdingAdaptiveTree(categorical=categorical), X, y),
        of_tamis(HoeffdingAdaptiveTree(categorical=categorical, bootstrap=True, random_state=seed), X, y),
    ]


def of_forests(X, y, categorical, seed):
    base = tree.HoeffdingTreeClassifier(grace_period=50, delta=0.01, nominal_attributes=categorical)
    same = {"categorical": categorical, "random_state": seed}
    return [
        of_river(forest.ARFClassifier(10, max_features=0.6, nominal_attributes=categorical, seed=seed), X, y),
        of_tamis(AdaptiveRandomForest(10, 0.6, **same), X, y),
        of_river(ensemble.SRPClassifier(base, n_models=10, subspace_size=0.6, seed=seed), X, y),
        of_tamis(StreamingRandomPatches(10, 0.6, **same), X, y),
        of_tamis(AdaptiveRandomForest(10, None, **same), X, y),
    ]


OF = {
    "trees": (of_trees, "River HT, HT, River HAT, HAT, HAT with bootstrap"),
    "forests": (of_forests, "River ARF, ARF, River SRP, SRP, ARF of all features"),
}


def main():
    given = sys.argv[1:]
    n_seeds, n_rows = int(given[0]) if given else 10, int(given[1]) if len(given) > 1 else 20_000
    accuracies, names = OF[given[2] if len(given) > 2 else "trees"]
    cases = [(name, n_drifts) for name in STREAMS for n_drifts in (0, 3)]
    found = {case: [] for case in cases}
    for seed in range(n_seeds):
        for name, n_drifts in cases:
            X, y, categorical = rows_of(name, seed, n_rows, n_drifts)
            found[name, n_drifts].append(accuracies(X.astype(float), y.astype(int), categorical, seed))
            print(name, n_drifts, seed, *np.round(found[name, n_drifts][-1], 2), flush=True)
    print(f"stream, drifts: {names}; means, then the differences +- s.e.")
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
