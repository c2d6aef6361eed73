"""Numeric targets: what is acquired, the error and the loss, beside fixed values and all values.

`python experiments/cells_regression.py [diabetes ...] [FixedSubset ...]` prints, for each data set and method, the loss
(squared error as a share of the variance, plus prices), its standard error over the rows held out, R2 and the number of
values. Every row is held out once (three folds). The data sets are those that scikit-learn contains or generates.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

PRICE = 0.01
FOLDS = 3
METHODS = (FixedSubset, ETANA, FETANA, IFC2F, AdaptiveIFC2F, AACO)


def switch(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Column 0 indicates which of two others the target follows; eight further columns are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 11))
    X[:, 0] = rng.integers(0, 2, n)
    y = 3 * X[np.arange(n), 1 + X[:, 0].astype(int)] + 2 * X[:, 0] + 0.5 * rng.normal(size=n)
    return X, y


SETS = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman": lambda: make_friedman1(1000, 12, noise=1.0, random_state=0),
    "linear": lambda: make_regression(1000, 20, n_informative=5, noise=40.0, random_state=0),
    "switch": switch,
}


def main(methods: tuple[type, ...] = METHODS, sets: tuple[str, ...] = ()) -> None:
    print(f"{'data':10} {'method':16} {'loss':>6} {'error':>6} {'R2':>6} {'values':>6}")
    for name in sets or tuple(SETS):
        X, y = SETS[name]()
        fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
        rows = {}
        for f in range(FOLDS):
            rest, held = fold != f, fold == f
            scale = y[rest].var()
            for method in methods:
                model = method(PRICE, objective="squared-error", random_state=0).fit(X[rest], y[rest])
                predicted = model.predict(X[held])
                add(rows, method.__name__, y[held], predicted, scale, model.n_features_used_, PRICE)
            add(
                rows,
                "nothing",
                y[held],
                np.full(held.sum(), y[rest].mean()),
                scale,
                np.zeros(held.sum()),
                PRICE,
            )
            for label, other in (
                ("ridge, all", RidgeCV()),
                ("boosting, all", HistGradientBoostingRegressor(random_state=0)),
            ):
                predicted = other.fit(X[rest], y[rest]).predict(X[held])
                add(rows, label, y[held], predicted, scale, np.full(held.sum(), X.shape[1]), PRICE)
        for label, parts in rows.items():
            true, predicted, loss, n = (np.concatenate(part) for part in zip(*parts, strict=True))
            error, score = loss.std() / np.sqrt(len(loss)), r2_score(true, predicted)
            print(
                f"{name:10} {label:16} {loss.mean():6.3f} {error:6.3f} {score:6.3f} {n.mean():6.2f}",
                flush=True,
            )


def add(rows, label, true, predicted, scale, n, price) -> None:
    loss = (true - predicted) ** 2 / scale + price * n
    rows.setdefault(label, []).append((true, predicted, loss, n))


if __name__ == "__main__":
    chosen = [method for method in METHODS if method.__name__ in sys.argv[1:]]
    main(tuple(chosen) or METHODS, tuple(name for name in SETS if name in sys.argv[1:]))
