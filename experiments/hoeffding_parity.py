"""Hoeffding trees, or forests, beside River's on the same streams: prequential accuracy, row by row in batches of one.

Run: python experiments/hoeffding_parity.py [seeds] [rows] [trees | forests | numbers | cuts]. Needs River, and for
`numbers` CapyMOA with Java. Prints a line for each run, then the table. Trees have the `delta` of River, 1e-7; in
`numbers` all three programs have that of CapyMOA, 1e-3.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from river import ensemble, forest, tree
from scipy import stats

from tamis import AdaptiveRandomForest, HoeffdingAdaptiveTree, HoeffdingTree, StreamingRandomPatches
from tamis.streams import load_dataset, load_stream

STREAMS = ("SEA", "AGR", "BG1", "RTG")
CUTS = {
    "Cauchy, above 0": lambda rng, shape: rng.standard_cauchy(shape),
    "lognormal(2.5), above 1": lambda rng, shape: np.exp(2.5 * rng.normal(size=shape)),
    "uniform, four bands": lambda rng, shape: rng.random(shape),
    "normal, above 0": lambda rng, shape: rng.normal(size=shape),
}
NUMBERS = ("electricity", "patches", "RBF", "SEA")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RIVER_DELTA = 1e-7


def rows_of(name, seed, n_rows, n_drifts):
    stream = load_stream(name, seed=seed, n_rows=n_rows, n_drifts=n_drifts, width=1)
    batches = list(stream)
    return (
        np.vstack([X for X, _ in batches]),
        np.concatenate([y for _, y in batches]),
        list(stream.categorical),
    )


def rows_with_numbers(name, seed, n_rows):
    """Return a stream of numbers and indicators; electricity is whole, but for the first 700 x `seed` rows."""
    rng = np.random.default_rng(seed)
    if name == "electricity":
        source = load_dataset(name, data_home=DATA)
        X, y = source.take(source.n_rows)
        y = np.unique(y, return_inverse=True)[1]
        return np.asarray(X, dtype=float)[700 * seed :], y[700 * seed :]
    if name == "RBF":  # 50 spheres of four classes
        centre, radius, label = rng.random((50, 10)), rng.random(50), rng.integers(0, 4, 50)
        of, way = rng.integers(0, 50, n_rows), rng.normal(size=(n_rows, 10))
        way *= (rng.normal(size=n_rows) * radius[of] / np.linalg.norm(way, axis=1))[:, None]
        return centre[of] + way, label[of]
    if name == "SEA":  # four concepts, 10 % of the labels flipped
        X, bound = 10 * rng.random((n_rows, 3)), np.array([8, 9, 7, 9.5])[np.arange(n_rows) * 4 // n_rows]
        return X, ((X[:, 0] + X[:, 1] <= bound) ^ (rng.random(n_rows) < 0.1)).astype(int)
    return _patches(rng, n_rows)


def rows_with_cuts(name, seed, n_rows):
    """Return five features, of which the first decides the class, with 5 % of the labels flipped."""
    rng = np.random.default_rng(seed)
    X = CUTS[name](rng, (n_rows, 5))
    y = np.floor(4 * X[:, 0]) % 2 == 1 if "bands" in name else X[:, 0] > ("lognormal" in name)
    return X, (y ^ (rng.random(n_rows) < 0.05)).astype(int)


def _patches(rng, n_rows):
    """Return rows of the form of forest cover: seven unequal classes, ten numbers, two sets of indicators, 30 sites."""
    share = np.array([0.365, 0.488, 0.062, 0.005, 0.016, 0.03, 0.034])
    site = np.repeat(rng.integers(0, 30, n_rows // 200 + 1), 200)[:n_rows]
    at_site = np.array([rng.dirichlet(8 * share + 0.05) for _ in range(30)])
    y = np.array([rng.choice(7, p=at_site[one]) for one in site])
    numbers = 0.8 * rng.normal(size=(7, 10))[y] + 0.7 * rng.normal(size=(30, 10))[site]
    numbers += rng.normal(size=(n_rows, 10))
    numbers[:, 3:6] = np.exp(numbers[:, 3:6])
    numbers[:, 6:9] = np.round(255 / (1 + np.exp(-numbers[:, 6:9])))
    soils = rng.dirichlet(np.full(40, 0.08), size=7)
    soil = np.array([rng.choice(40, p=soils[one]) for one in y])
    area = (site + (rng.random(n_rows) < 0.1)) % 4
    return np.hstack([numbers, np.eye(4)[area], np.eye(40)[soil]]), y


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
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(max(y.max() + 1, 2)))
    return 100 * right / len(y)


def of_capymoa(name, X, y):
    import capymoa.classifier
    from capymoa.evaluation import prequential_evaluation
    from capymoa.stream import NumpyStream

    names = [f"x{f}" for f in range(X.shape[1])]
    stream = NumpyStream(X, y, dataset_name="rows", feature_names=names)
    model = getattr(capymoa.classifier, name)(schema=stream.get_schema())
    return prequential_evaluation(stream, model)["cumulative"].accuracy()


def of_trees(X, y, categorical, seed):
    return [
        of_river(tree.HoeffdingTreeClassifier(nominal_attributes=categorical), X, y),
        of_tamis(HoeffdingTree(delta=RIVER_DELTA, categorical=categorical), X, y),
        of_river(tree.HoeffdingAdaptiveTreeClassifier(nominal_attributes=categorical, seed=seed), X, y),
        of_tamis(HoeffdingAdaptiveTree(delta=RIVER_DELTA, categorical=categorical, random_state=seed), X, y),
        of_tamis(HoeffdingAdaptiveTree(delta=RIVER_DELTA, categorical=categorical, bootstrap=False), X, y),
    ]


def of_numbers(X, y, _, seed):
    return [
        of_capymoa("HoeffdingTree", X, y),
        of_tamis(HoeffdingTree(), X, y),
        of_capymoa("HoeffdingAdaptiveTree", X, y),
        of_tamis(HoeffdingAdaptiveTree(random_state=seed), X, y),
        of_river(tree.HoeffdingTreeClassifier(delta=1e-3), X, y),
        of_river(tree.HoeffdingAdaptiveTreeClassifier(delta=1e-3, seed=seed), X, y),
    ]


def of_cuts(X, y, _, seed):
    return [
        of_tamis(HoeffdingTree(), X, y),
        of_tamis(HoeffdingTree(splitter="quantiles"), X, y),
        of_tamis(HoeffdingAdaptiveTree(random_state=seed), X, y),
        of_tamis(HoeffdingAdaptiveTree(splitter="quantiles", random_state=seed), X, y),
        of_river(tree.HoeffdingTreeClassifier(splitter=tree.splitter.HistogramSplitter()), X, y),
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
    "trees": (of_trees, "River HT, HT, River HAT, HAT, HAT without bootstrap"),
    "cuts": (of_cuts, "HT, HT by quantiles, HAT, HAT by quantiles, River HT with histograms"),
    "numbers": (of_numbers, "CapyMOA HT, HT, CapyMOA HAT, HAT, River HT, River HAT"),
    "forests": (of_forests, "River ARF, ARF, River SRP, SRP, ARF of all features"),
}


def main():
    given = sys.argv[1:]
    n_seeds, n_rows = int(given[0]) if given else 10, int(given[1]) if len(given) > 1 else 20_000
    what = given[2] if len(given) > 2 else "trees"
    accuracies, names = OF[what]
    cases = [(name, n_drifts) for name in STREAMS for n_drifts in (0, 3)]
    if what in ("numbers", "cuts"):
        cases = [(name, "") for name in (NUMBERS if what == "numbers" else CUTS)]
    found = {case: [] for case in cases}
    for seed in range(n_seeds):
        for name, n_drifts in cases:
            if what in ("numbers", "cuts"):
                make = rows_with_numbers if what == "numbers" else rows_with_cuts
                X, y, categorical = *make(name, seed, n_rows), []
            else:
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
