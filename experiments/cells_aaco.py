"""AACO beside the fixed subset and AdaptiveIFC2F, on sets of scikit-learn and on the indicator problem.

    python experiments/cells_aaco.py [--adaptive]

Two thirds of the rows are learned from, the rest are predicted. A value costs .01, and .02 in the indicator problem:
column 0 indicates which of five binary columns has the class, with 5 % errors.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from tamis import AACO, AdaptiveIFC2F, FixedSubset


def indicator(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Column 0 indicates which of five binary columns has the class."""
    rng = np.random.default_rng(seed)
    which, y = rng.integers(0, 5, n), rng.integers(0, 2, n)
    X = np.column_stack([which, rng.integers(0, 2, (n, 5))]).astype(np.float64)
    X[np.arange(n), 1 + which] = np.where(rng.random(n) < 0.05, 1 - y, y)
    return X, y


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    yield "indicator", *indicator(0), 0.02
    for name, read in (("wdbc", load_breast_cancer), ("wine", load_wine)):
        yield name, *read(return_X_y=True), 0.01
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", X, (y > np.median(y)).astype(int), 0.01


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--adaptive", action="store_true")
    arguments = parser.parse_args()
    for name, X, y, price in sets():
        order = np.random.default_rng(1).permutation(len(y))
        learned, held = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
        categorical = [0] if name == "indicator" else None
        models = {"FixedSubset": FixedSubset(price, categorical=categorical)}
        for k in (10, 20):
            models[f"AACO, {k}"] = AACO(price, n_neighbors=k, categorical=categorical, random_state=0)
        if arguments.adaptive:
            models["two steps"] = AdaptiveIFC2F(price, lookahead=2, categorical=categorical, random_state=0)
            models["AdaptiveIFC2F"] = AdaptiveIFC2F(price, categorical=categorical, random_state=0)
        for label, model in models.items():
            accuracy = model.fit(X[learned], y[learned]).score(X[held], y[held])
            loss = 1.0 - accuracy + model.cost_.mean()
            print(
                f"{name:10} {label:14} {accuracy:.3f} / {model.n_features_used_.mean():.2f} = {loss:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
