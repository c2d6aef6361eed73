"""More rows: a model is fitted again from a sample when rows double, with new orders, bins, classes and categories."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset, load, save
from tamis.base import row_sample as module
from tamis.base.categories import Categories
from tamis.base.row_sample import RowSample
from tamis.errors import DataError
from tests.twins.row_sample import row_sample

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


def rows(n=200, seed=0, column=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, column] += 3 * y
    return X, y


def equal(one, other, X):
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.cost_, other.cost_)
    np.testing.assert_array_equal(one.candidates_, other.candidates_)


# -- the rule ----------------------------------------------------------------------------------------------


@every_method
def test_doubled_rows_are_all_learned(name):
    """After 50 and 50 rows, and after 100 more, the model is that of `fit` on all of them."""
    X, y = rows()
    model = METHODS[name]().partial_fit(X[:50], y[:50])
    equal(model, METHODS[name]().fit(X[:50], y[:50]), X)
    for start, stop in ((50, 100), (100, 150), (150, 200)):
        model.partial_fit(X[start:stop], y[start:stop])
        if stop != 150:
            equal(model, METHODS[name]().fit(X[:stop], y[:stop]), X)
        elif name != "IFC2F":  # which counts rows in between
            equal(model, METHODS[name]().fit(X[:100], y[:100]), X)


@every_method
def test_order_bins_and_classes_are_learned_anew(name):
    """The informative column changes, its scale too, and a third class occurs."""
    X, y = rows(60, column=0)
    model = METHODS[name]().partial_fit(X, y)
    assert model.open().next_feature == 0
    X, y = rows(300, seed=1, column=2)
    X[:, 2] = 50 + 10 * X[:, 2]
    model.partial_fit(X[:290], y[:290])
    assert model.open().next_feature == 2
    assert model.score(X, y) > 0.8
    X[290:, 1] = 80.0
    model.partial_fit(X[290:], np.full(10, 7))
    assert model.classes_.tolist() == [0, 1, 7]
    assert model.predict_proba(X).shape == (300, 3)


@every_method
def test_rows_one_at_a_time(name):
    X, y = rows(9)
    model = METHODS[name]()
    for i in range(9):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert set(model.classes_) == set(y[:8])
    assert np.isfinite(model.predict_proba(X)).all()


@every_method
def test_saved_models_learn_on(name, tmp_path):
    X, y = rows()
    model = METHODS[name]().partial_fit(X[:60], y[:60])
    save(model, tmp_path / "model.tamis")
    again = load(tmp_path / "model.tamis").partial_fit(X[60:130], y[60:130])
    equal(again, model.partial_fit(X[60:130], y[60:130]), X)


def test_after_fit_only_new_rows_count():
    (X, y), (X_new, y_new) = rows(80), rows(80, seed=3, column=2)
    model = FixedSubset().fit(X, y)
    with pytest.raises(DataError, match="Label 5 was not seen"):
        model.partial_fit(X_new[:3], [0, 1, 5])
    model.partial_fit(X_new[:50], y_new[:50])
    equal(model, FixedSubset().fit(X, y), X)
    model.partial_fit(X_new[50:], y_new[50:])
    equal(model, FixedSubset().fit(X_new, y_new), X)
    assert FixedSubset().partial_fit(X, y).fit(X, y)._sample is None


def test_weights_are_copies():
    X, y = rows(60)
    weight = np.arange(60) % 3
    model = FixedSubset().partial_fit(X[:20], y[:20], sample_weight=weight[:20])
    model.partial_fit(X[20:], y[20:], sample_weight=weight[20:])
    equal(model, FixedSubset().fit(X, y, sample_weight=weight), X)


def test_rejected_rows_change_nothing():
    X, y = rows()
    model = IFC2F(random_state=0).partial_fit(X[:100], y[:100])
    before, sample = model.predict_proba(X), model._sample
    bad = X[100:].copy()
    bad[3, 1] = np.inf
    for act in (
        lambda: model.partial_fit(bad, y[100:]),
        lambda: model.partial_fit(X[100:, :3], y[100:]),
        lambda: model.partial_fit(X[100:], y[101:]),
        lambda: model.set_params(misclassification_cost=np.ones((3, 3))).partial_fit(X[100:], y[100:]),
    ):
        with pytest.raises((DataError, ValueError)):
            act()
    model.set_params(misclassification_cost=None)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model._sample is sample


def test_categories_are_added():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    frame = pd.DataFrame(
        {
            "colour": np.where(y == 1, "red", np.where(np.arange(240) < 100, "blue", "green")),
            "size": rng.normal(size=240),
        }
    )
    model = FixedSubset().partial_fit(frame[:100], y[:100])
    assert model.categories_["colour"] in (["red", "blue"], ["blue", "red"])
    model.partial_fit(frame[100:150], y[100:150])
    assert model.open().next_feature == "colour"
    model.partial_fit(frame[150:], y[150:])
    equal(model, FixedSubset().fit(frame, y), frame)
    assert model.categories_ == FixedSubset().fit(frame, y).categories_
    assert model.score(frame, y) == 1.0


def test_sparse_rows_stay_sparse():
    X, y = rows()
    X[X < 0.5] = 0.0
    model = FixedSubset().partial_fit(sp.csr_array(X[:100]), y[:100])
    model.partial_fit(sp.csr_array(X[100:]), y[100:])
    assert sp.issparse(model._sample.rows)
    equal(model, FixedSubset().fit(sp.csr_array(X), y), X)


# -- the sample --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fading", [1.0, 0.9])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_sample_equals_its_twin(monkeypatch, fading, size):
    monkeypatch.setattr(module, "_MOST", 12)
    rng = np.random.default_rng(0)
    codes = (rng.random(60) < 0.1).astype(int)
    sample = RowSample(Categories({}), np.array([0, 1]))
    for at in range(0, 60, size):
        part = np.arange(at, min(at + size, 60))
        sample = sample.with_rows(part[:, None].astype(float), codes[part], part - at, seed=3, fading=fading)
    expected = row_sample(module._uniform(3, 0, 60).tolist(), codes.tolist(), 12, fading)
    if size == 1:  # in larger batches, a row of a class may stay that left before
        assert sample.rows[:, 0].tolist() == expected
    np.testing.assert_array_equal(sample.origin, sample.rows[:, 0])
    np.testing.assert_array_equal(sample.codes, codes[sample.origin])
    assert set(expected) >= set(sample.origin[codes[sample.origin] == 0])
    assert len(sample.rows) <= 14


def test_memory_is_bounded():
    sample = RowSample(Categories({}), np.arange(3))
    for at in range(40):
        X = np.full((1_000, 2), at, dtype=float)
        sample = sample.with_rows(X, np.full(1_000, min(at, 2)), np.arange(1_000), seed=0)
    assert 10_000 <= len(sample.rows) <= 10_006
    assert abs(sample.rows[:, 0].mean() - 19.5) < 0.5
    assert sample.n_seen == 40_000


def test_categories_that_left_the_sample_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 40)
    model, y = FixedSubset(), np.tile([0, 1], 50)
    for at in range(20):
        model.partial_fit(
            pd.DataFrame({"id": [f"id {at}.{i}" for i in range(100)], "x": np.arange(100.0)}), y
        )
    assert len(model._sample.categories.values[0]) <= 180


def test_draws_do_not_depend_on_the_batches():
    whole = module._uniform(5, 0, 50)
    parts = [module._uniform(5, a, b - a) for a, b in ((0, 3), (3, 4), (4, 17), (17, 50))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert (whole > 0).all()
    assert (whole <= 1).all()
