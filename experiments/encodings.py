"""What stands for missing values and categories: means, moments of pairs, indicators; codes, frequencies, mean targets.

    python experiments/encodings.py            # 6 minutes

Accuracy of boosted trees on the columns that a selector chooses in the first half of a real set, in the second half.
The trees get the values as they are, missing ones and categories too. docs/screening.md has the tables.
"""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier

from tamis import (
    FIRES,
    AdaptiveRandomForest,
    Auto,
    ForwardPartialCorrelation,
    JointScreening,
    SGDLogisticRegression,
    load_stream,
    prequential,
)  # fmt: skip
from tamis.streams import ArrayStream

DATA = Path(os.environ.get("TAMIS_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
ROWS = 6000


def dense(name):
    with np.load(DATA / name / "data.npz") as held:
        X, y = held["X"].astype(float), held["y"]
    order = np.arange(len(y)) if name == "electricity" else np.random.default_rng(0).permutation(len(y))
    return X[order][:ROWS], (y == y.max())[order][:ROWS].astype(int)


def a8a():
    """The one-hot columns as the categories that they were: neighbours of which at most one is 1 in any row."""
    path = DATA / "a8a" / "data.npz"
    X, y = sp.load_npz(path).toarray(), np.load(path)["y"]
    columns, start = [], 0
    while start < X.shape[1]:
        stop = start + 1
        while stop < X.shape[1] and (X[:, start : stop + 1].sum(axis=1) <= 1).all():
            stop += 1
        columns.append(np.where(X[:, start:stop].any(axis=1), X[:, start:stop].argmax(axis=1) + 1, 0))
        start = stop
    order = np.random.default_rng(0).permutation(len(y))[:ROWS]
    return np.column_stack(columns)[order].astype(float), (y == y.max())[order].astype(int)


def accuracy(X, y, columns, categorical=()):
    half = len(y) // 2
    trees = HistGradientBoostingClassifier(
        max_iter=60, random_state=0, categorical_features=list(categorical) or None
    )
    return trees.fit(X[:half][:, columns], y[:half]).score(X[half:][:, columns], y[half:])


# -- missing values ----------------------------------------------------------------------------------------


def knock_out(X, y, kind, rng):
    """Return rows of which 60 % of the columns have missing values: at random, large ones, or those of one class."""
    shares = {
        "random": np.full(X.shape, 0.3),
        "large": np.where(np.median(X, axis=0) < X, 0.5, 0.05),
        "class": np.where(y == 1, 0.45, 0.1)[:, None] * np.ones(X.shape),
    }[kind]
    return np.where((rng.random(X.shape) < shares) & (rng.random(X.shape[1]) < 0.6), np.nan, X)


def mean_filled(X):
    found, total, count = X.copy(), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for i, row in enumerate(X):
        there = ~np.isnan(row)
        found[i, ~there] = (total / np.maximum(count, 1))[~there]
        total[there] += row[there]
        count += there
    return found


def forward(R, b, n_selected, ridge):
    """Forward selection from correlations, the same for all ways to estimate them."""
    R, left, added, chosen = R + ridge * np.eye(len(b)), b.copy(), np.diag(R) + ridge, []
    steps = []
    for _ in range(n_selected):
        gain = np.where(
            np.isin(np.arange(len(b)), chosen), -1.0, left**2 / np.maximum(added, ridge / 2 + 1e-9)
        )
        i = int(gain.argmax())
        step = R[i] - sum((one * one[i] for one in steps), np.zeros(len(b)))
        step /= np.sqrt(max(added[i], 1e-9))
        left, added = left - step * left[i] / np.sqrt(max(added[i], 1e-9)), added - step**2
        chosen.append(i)
        steps.append(step)
    return chosen


def correlations(X, y):
    """Return the correlations of the rows present, pair by pair."""
    there, Z = ~np.isnan(X), np.nan_to_num(X)
    n = there.T.astype(float) @ there
    mean, square = Z.T @ there / n, (Z**2).T @ there / n
    variance = np.maximum(square - mean**2, 1e-12)
    R = (Z.T @ Z / n - mean * mean.T) / np.sqrt(variance * variance.T)
    b = [
        np.corrcoef(x[ok], y[ok])[0, 1] if np.ptp(x[ok]) else 0.0 for x, ok in zip(X.T, there.T, strict=True)
    ]
    return np.nan_to_num(R), np.nan_to_num(np.array(b))


def missing():
    for name in ("spambase", "magic04", "electricity"):
        X0, y = dense(name)
        n_selected = max(3, round(0.1 * X0.shape[1]))
        for kind in ("random", "large", "class"):
            found: dict[str, list[float]] = {}
            for seed in range(3):
                X = knock_out(X0, y, kind, np.random.default_rng(seed))
                half = slice(0, len(y) // 2)
                filled, there = mean_filled(X), ~np.isnan(X)
                ridge = (1 + np.sqrt(X.shape[1] / (len(y) // 2))) ** 2 - 1
                both = np.hstack([filled, ~there])
                whole = there[half].all(axis=1)
                ways = {
                    "mean": (filled[half], y[half], n_selected),
                    "pairwise": (X[half], y[half], n_selected),
                    "mean and indicator": (both[half], y[half], 2 * n_selected + 5),
                    "complete rows": (X[half][whole], y[half][whole], n_selected),
                }
                for way, (rows, labels, n) in ways.items():
                    if len(labels) < 20:  # no row is complete
                        continue
                    columns = forward(*correlations(rows, labels), n, ridge)
                    columns = list(dict.fromkeys(j % X.shape[1] for j in columns))[:n_selected]
                    found.setdefault(way, []).append(accuracy(X, y, columns))
            print(
                name,
                kind,
                {way: round(float(np.mean(values)), 3) for way, values in found.items()},
                flush=True,
            )


# -- categories --------------------------------------------------------------------------------------------


def encoded(X, y, way, prior=10.0):
    """Return each category by its code, its share, or its mean target, of the rows before."""
    if way == "codes":
        return X
    found = np.zeros(X.shape)
    for j, column in enumerate(X.T.tolist()):
        count: dict[float, int] = {}
        total: dict[float, float] = {}
        mean = y[0]
        for i, (value, target) in enumerate(zip(column, y.tolist(), strict=True)):
            n = count.get(value, 0)
            share = n / max(i, 1)
            found[i, j] = (
                share if way == "frequency" else (total.get(value, 0.0) + prior * mean) / (n + prior)
            )
            count[value], total[value] = n + 1, total.get(value, 0.0) + target
            mean += (target - mean) / (i + 1)
    return found


def in_categories(name):
    """Return a set of categories, with three columns of identifiers, in codes without an order, as those of text."""
    X, y = a8a() if name == "a8a" else dense(name)
    rng = np.random.default_rng(0)
    if name == "electricity":
        cuts = [np.digitize(x, np.quantile(x, np.arange(1, 12) / 12)) for x in X[:, 2:].T]
        X = np.column_stack([np.round(48 * X[:, 1]), *cuts])
    X = np.column_stack([X, rng.integers(0, 400, (len(X), 3))])
    for j in range(X.shape[1]):
        values, codes = np.unique(X[:, j], return_inverse=True)
        X[:, j] = rng.permutation(len(values))[codes]
    return X, y


def categories():
    for name in ("splice", "a8a", "german", "electricity"):
        X, y = in_categories(name)
        n_selected, half, found = max(3, round(0.15 * X.shape[1])), slice(0, len(y) // 2), {}
        for way, prior in (
            ("codes", 0.0),
            ("frequency", 0.0),
            ("target", 1.0),
            ("target", 10.0),
            ("target", 50.0),
        ):
            rows = encoded(X, y, way, prior)
            for selector in (ForwardPartialCorrelation(n_selected), FIRES(n_selected), JointScreening()):
                columns = np.argsort(-selector.fit(rows[half], y[half]).scores_)[:n_selected]
                few = [at for at, j in enumerate(columns) if len(np.unique(X[:, j])) < 250]
                key = f"{type(selector).__name__} {way} {prior:g}".removesuffix(" 0")
                found[key] = round(accuracy(X, y, columns, few), 3)
        columns = np.argsort(-JointScreening(categorical="all").fit(X[half], y[half]).scores_)[:n_selected]
        few = [at for at, j in enumerate(columns) if len(np.unique(X[:, j])) < 250]
        found["JointScreening, its own encoding"] = round(accuracy(X, y, columns, few), 3)
        print(name, found, flush=True)


def forests():
    """Accuracy of a forest behind `Auto` that encodes every category by its mean target, and few of them by index."""
    for name in ("BG1", "BG2", "BG3", "AN", "AGR", "RTG", "splice", "a8a", "german", "electricity"):
        accuracy: dict[int, list[float]] = {0: [], 10: []}
        is_real = name.islower()
        for seed in range(1 if is_real else 3):
            if is_real:
                X, y = in_categories(name)
                stream = ArrayStream(X.astype(float), y)
                stream.categorical = list(range(X.shape[1]))
            else:
                stream = load_stream(name, seed=seed, n_rows=8000, n_drifts=1)
            for n_exact, values in accuracy.items():
                with patch.object(Auto, "_n_exact_categories", n_exact):
                    selector, learner = Auto(learner="trees"), AdaptiveRandomForest()
                    run = prequential(stream, selector, learner, baselines="none", auc=False, batch_size=100)
                values.append(run.summary()["accuracy"])
        print(name, {n: round(float(np.mean(values)), 3) for n, values in accuracy.items()}, flush=True)


# -- what a linear learner receives ------------------------------------------------------------------------


def learners():
    """Accuracy of logistic regression with every feature and behind FIRES, with codes and with mean targets."""
    for name in ("a8a", "splice", "electricity"):
        X, y = a8a() if name == "a8a" else dense(name)
        rng = np.random.default_rng(1)
        if name == "electricity":
            X = np.column_stack([np.digitize(x, np.quantile(x, np.linspace(0.05, 0.95, 19))) for x in X.T])
        X = np.column_stack([X, rng.integers(0, 400, (len(X), 2))])  # identifiers
        for j in range(X.shape[1]):
            values, codes = np.unique(X[:, j], return_inverse=True)
            X[:, j] = rng.permutation(len(values))[codes]
        columns, accuracy = list(range(X.shape[1])), {}
        for way, categorical in (("codes", []), ("mean targets", columns)):
            for selector in (None, FIRES(max(3, len(columns) // 10), categorical=columns)):
                stream = ArrayStream(X.astype(float), y)
                stream.categorical = categorical
                learner = SGDLogisticRegression(learning_rate="constant")
                run = prequential(stream, selector, learner, baselines="none", auc=False)
                behind = "every feature" if selector is None else "FIRES"
                accuracy[f"{behind}, {way}"] = round(run.summary()["accuracy"], 3)
        print(name, accuracy, flush=True)


if __name__ == "__main__":
    with np.errstate(invalid="ignore", divide="ignore"):  # columns without values, or constant ones
        missing()
    categories()
    forests()
    learners()
