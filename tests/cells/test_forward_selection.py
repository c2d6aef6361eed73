"""Forward selection with boosted trees, a baseline in every report."""

import numpy as np

from tamis import FixedSubset
from tamis.cells.evaluation import _forward_selection, baselines


def parity(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return X, ((X[:, 2] > 0) ^ (X[:, 5] > 0.5) ^ (rng.random(n) < 0.05)).astype(int)


def test_it_finds_columns_that_are_only_jointly_relevant():
    X, y = parity(1500, 0)
    model = FixedSubset(0.01).fit(X, y)
    assert {2, 5} <= set(_forward_selection(model, X, y))
    X_held, y_held = parity(1000, 1)
    one = {item.name: item for item in baselines(model, X, y, X_held, y_held)}["forward selection, boosting"]
    assert one.accuracy > 0.85
    assert one.n_values < 6
    assert one.cost == np.round(0.01 * one.n_values, 9)


def test_it_pays_for_no_value_that_is_worth_less_than_its_price():
    X, y = parity(1500, 0)
    assert not len(_forward_selection(FixedSubset(0.6).fit(X, y), X, y))
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 5))
    assert len(_forward_selection(FixedSubset(0.05).fit(noise, y[:400]), noise, y[:400])) <= 1
