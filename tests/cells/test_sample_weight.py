"""A weight of w counts a row w times, and all copies of a row are held out together."""

import numpy as np
import pandas as pd
import pytest

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.cells.policy_selection import best_thresholds, selection_groups, stratified_folds
from tamis.errors import DataError

METHODS = {
    "IFC2F": lambda **settings: IFC2F(order="mrmr", random_state=0, **settings),
    "ETANA": lambda **settings: ETANA(order="mrmr", random_state=0, **settings),
    "FETANA": lambda **settings: FETANA(order="mrmr", n_iterations=300, random_state=0, **settings),
    "AdaptiveIFC2F": lambda **settings: AdaptiveIFC2F(
        decision="discriminant", max_steps=3, random_state=0, **settings
    ),
    "FixedSubset": lambda **settings: FixedSubset(random_state=0, **settings),
    "AACO": lambda **settings: AACO(n_subsets=20, random_state=0, **settings),
}
every_method = pytest.mark.parametrize("name", METHODS)


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, :2] += 1.5 * y[:, None]
    X[:, 3] = rng.integers(0, 3, n)
    return X, y, rng.integers(0, 4, n)


@every_method
def test_a_weight_is_a_number_of_copies(name, monkeypatch):
    """The same folds for the rows repeated by hand: then every bit is the same."""
    X, y, weight = rows()
    at = np.repeat(np.arange(len(y)), weight)
    weighted = METHODS[name](categorical=[3]).fit(X, y, sample_weight=weight)
    assert "_origin" not in vars(weighted)
    repeated = METHODS[name](categorical=[3])
    monkeypatch.setattr(type(repeated), "_origin", at)
    repeated.fit(X[at], y[at])
    monkeypatch.undo()
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    np.testing.assert_array_equal(weighted.cost_, repeated.cost_)
    assert weighted.categories_ == repeated.categories_
    np.testing.assert_array_equal(weighted.prior_, np.bincount(y, weights=weight) / weight.sum())


@every_method
def test_a_weight_of_one_changes_nothing_and_of_zero_omits_the_row(name):
    X, y, weight = rows()
    plain = METHODS[name]().fit(X[weight > 1], y[weight > 1])
    other = METHODS[name]().fit(X, y, sample_weight=(weight > 1).astype(float))
    np.testing.assert_array_equal(plain.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(plain.cost_, other.cost_)


def test_published_methods_equal_repeated_rows():
    """Nothing is held out, so nothing else is needed."""
    X, y, weight = rows()
    at = np.repeat(np.arange(len(y)), weight)
    for published in (
        IFC2F.published(random_state=0),
        ETANA.published(),
        FETANA.published(n_iterations=300, random_state=0),
    ):
        one, other = (
            published.fit(X, y, weight).predict_proba(X),
            published.fit(X[at], y[at]).predict_proba(X),
        )
        np.testing.assert_array_equal(one, other)


@every_method
def test_copies_of_noise_are_not_worth_a_price(name):
    """Were copies on both sides of a split, any column would predict the class of its own copies."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    model = METHODS[name](cost=0.02).fit(X, y, sample_weight=np.full(60, 5))
    model.predict(X)
    assert model.n_features_used_.mean() <= 1.0


def test_copies_share_a_fold():
    y, origin = np.tile([0, 1], 30).repeat(3), np.arange(60).repeat(3)
    for fold in (stratified_folds(y, 5, origin), selection_groups(y, origin)):
        assert (fold.reshape(60, 3) == fold[::3, None]).all()
        assert len(np.unique(fold)) > 4
    assert (stratified_folds(np.array([0, 0, 1, 1]), 2, np.array([0, 0, 1, 2])) == [-1, -1, 0, 1]).all()


def test_thresholds_are_chosen_without_copies():
    """Thresholds that are right by chance seem better on copies of the rows that they were chosen on."""
    y, origin, costs = np.zeros(200, dtype=np.int64), np.arange(40).repeat(5), []
    for seed in range(20):
        risk, rate, wrong = np.random.default_rng(seed).random((3, 4, 40)).repeat(5, axis=2)
        walks = risk, rate, np.zeros((4, 200)), wrong
        costs.append(
            [best_thresholds(*walks, y, origin=copies)[0].mean() for copies in (origin, np.arange(200))]
        )
    together, apart = np.mean(costs, axis=0)
    assert apart < together - 0.01


def test_categories_are_ranked_by_their_weight():
    frame = pd.DataFrame({"colour": ["a", "a", "b", "c"] * 20, "size": np.arange(80.0)})
    weight = np.tile([1, 0, 3, 0], 20)
    model = FixedSubset().fit(frame, np.tile([0, 0, 1, 1], 20), sample_weight=weight)
    assert model.categories_ == {"colour": ["b", "a"]}


@pytest.mark.parametrize(
    ("weight", "words"), [(0.5, "whole"), (-1, "negative"), (0, "zero"), ([1, 2], "rows"), (1e9, "sums")]
)
def test_other_weights_are_refused(weight, words):
    X, y, _ = rows()
    model = FixedSubset().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(DataError, match=words):
        model.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(X), before)
