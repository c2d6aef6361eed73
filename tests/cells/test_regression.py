"""Numeric targets: values are acquired if they reduce the squared error by more than their price."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset, dumps, loads
from tamis.base.numeric_target import NumericTarget
from tamis.cells.evaluation import compare_classifiers, winner
from tamis.cells.policy_selection import Objective
from tamis.errors import DataError
from tests.twins import numeric_target as twin

SETTINGS = {"objective": "squared-error", "random_state": 0}
METHODS = {
    "IFC2F": lambda **more: IFC2F(**{"order": "mrmr", **SETTINGS, **more}),
    "ETANA": lambda **more: ETANA(**{"order": "mrmr", **SETTINGS, **more}),
    "FETANA": lambda **more: FETANA(**{"order": "mrmr", "n_iterations": 300, **SETTINGS, **more}),
    "AdaptiveIFC2F": lambda **more: AdaptiveIFC2F(
        **{"decision": "discriminant", "max_steps": 3, **SETTINGS, **more}
    ),
    "FixedSubset": lambda **more: FixedSubset(**{**SETTINGS, **more}),
    "AACO": lambda **more: AACO(**{"n_subsets": 10, **SETTINGS, **more}),
}
every_method = pytest.mark.parametrize("name", METHODS)


def rows(n=300, seed=0):
    """The target is the sum of columns 0 and 1; 2 and 3 are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, 100.0 + 10.0 * (2 * X[:, 0] + X[:, 1]) + rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = rows()
    return {name: make(cost=0.02).fit(X, y) for name, make in METHODS.items()}


@every_method
def test_a_number_is_predicted_from_few_values(fitted, name):
    X, y = rows(200, seed=1)
    model = fitted[name]
    predicted = model.predict(X)
    assert model.score(X, y) == pytest.approx(r2_score(y, predicted))
    assert model.score(X, y) > 0.75
    assert 1 <= model.n_features_used_.mean() <= 2.2
    asked = np.concatenate([trace.features for trace in model.acquire(X)])
    assert np.isin(asked, [0, 1]).mean() > 0.9
    assert is_regressor(model)
    assert not is_classifier(model)


@every_method
def test_sessions_predict_the_same(fitted, name):
    X, _ = rows(6, seed=2)
    model = fitted[name]
    for row, label, trace in zip(X, model.predict(X), model.acquire(X), strict=True):
        session = model.open()
        before = session.deviation
        while session.next_feature is not None:
            session.observe(row[session.next_feature])
        assert session.decision == label == trace.label
        assert session.cost == pytest.approx(trace.cost)
        assert session.deviation < before
        assert "standard deviation" in repr(session)


@every_method
def test_the_price_is_in_units_of_the_variance(fitted, name):
    """Another unit of the target changes nothing, and a price above any gain leaves the mean."""
    X, y = rows()
    other = METHODS[name](cost=0.02).fit(X, 1e-6 * y - 3.0)
    np.testing.assert_array_equal(
        other.cost_ if len(other.cost_) else 0, fitted[name].cost_ if len(other.cost_) else 0
    )
    np.testing.assert_allclose(1e6 * (other.predict(X) + 3.0), fitted[name].predict(X), rtol=1e-5)
    dear = METHODS[name](cost=2.0).fit(X, y)
    np.testing.assert_allclose(dear.predict(X), y.mean())
    assert not dear.cost_.any()


@every_method
def test_the_error_cost_and_the_prices_have_one_unit(fitted, name):
    """Eight times the cost of an error and of each value changes no decision; a power of two has the same bits."""
    X, y = rows()
    other = METHODS[name](cost=0.16, misclassification_cost=8.0).fit(X, y)
    held, _ = rows(100, seed=4)
    np.testing.assert_array_equal(other.predict(held), fitted[name].predict(held))
    np.testing.assert_allclose(other.cost_, 8.0 * fitted[name].cost_)
    np.testing.assert_allclose(
        other._losses(y[:100], y[::-1][:100]), 8.0 * fitted[name]._losses(y[:100], y[::-1][:100])
    )
    again = loads(dumps(other))
    assert again.misclassification_cost == 8.0
    np.testing.assert_array_equal(again.predict(held), other.predict(held))
    low = METHODS[name](cost=0.16, misclassification_cost=1e-3).fit(X, y)
    np.testing.assert_allclose(low.predict(held), y.mean())


@every_method
def test_noise_is_not_worth_a_price(name):
    rng = np.random.default_rng(3)
    model = METHODS[name](cost=0.01).fit(rng.normal(size=(200, 5)), rng.normal(size=200))
    model.predict(rng.normal(size=(50, 5)))
    assert model.n_features_used_.mean() <= 0.5


@every_method
def test_saved_and_more_rows(fitted, name):
    X, y = rows(120, seed=5)
    model = METHODS[name](cost=0.02).partial_fit(X[:60], y[:60])
    again = loads(dumps(model)).partial_fit(X[60:], y[60:])
    whole = METHODS[name](cost=0.02).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    np.testing.assert_array_equal(again.cost_, whole.cost_)
    np.testing.assert_array_equal(model.partial_fit(X[60:70], y[60:70]).classes_ < np.inf, True)


def test_one_value_tells_which_other_to_ask_for():
    """Each row has its own order, as for classes: column 0 indicates the column that the target follows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    which = rng.integers(0, 2, 1500)
    X[:, 0] = which
    y = 3 * X[np.arange(1500), 1 + which] + 6 * which + 0.3 * rng.normal(size=1500)
    model = AdaptiveIFC2F(cost=0.01, objective="squared-error").fit(X[:1000], y[:1000])
    fixed = FixedSubset(cost=0.01, objective="squared-error").fit(X[:1000], y[:1000])
    loss = [
        float(np.mean(one._losses(y[1000:], one.predict(X[1000:])) + one.cost_)) for one in (model, fixed)
    ]
    assert loss[0] < loss[1]
    paths = {tuple(trace.features) for trace in model.acquire(X[1000:])}
    assert {(0, 1), (0, 2)} <= paths


def test_categories_and_missing_values():
    rng = np.random.default_rng(0)
    size = rng.normal(size=300)
    kind = rng.choice(["a", "b", "c"], 300)
    y = 5.0 * (kind == "c") + size
    frame = pd.DataFrame({"kind": kind, "size": np.where(rng.random(300) < 0.1, np.nan, size)})
    model = AdaptiveIFC2F(cost=0.01, **SETTINGS).fit(frame, y)
    assert model.open().next_feature == "kind"
    assert model.score(frame, y) > 0.85


def test_bad_targets_are_refused():
    X, y = rows(60)
    model = FixedSubset(**SETTINGS).fit(X, y)
    for wrong in (
        np.where(np.arange(60) == 3, np.nan, y),
        np.full(60, "tall"),
        np.where(np.arange(60) == 3, np.inf, y),
    ):
        with pytest.raises(DataError):
            model.fit(X, wrong)
    with pytest.raises(ValueError, match="misclassification_cost has shape"):
        FixedSubset(misclassification_cost=1 - np.eye(2), **SETTINGS).fit(X, y)
    np.testing.assert_allclose(FixedSubset(**SETTINGS).fit(X, np.full(60, 4.0)).predict(X), 4.0)
    assert np.isfinite(FixedSubset(**SETTINGS).fit(X[:3], y[:3]).predict(X)).all()


def test_information_is_the_decrease_of_the_variance():
    """By the definition, from the posteriors after each value of each column."""
    X, y = rows(200)
    model = AdaptiveIFC2F(cost=0.01, **SETTINGS).fit(X, y)
    tree, values = model._tree, np.full((3, 4), -1)
    values[1, 0], values[2] = 2, [1, -1, 3, 0]
    posterior, information = tree.expected_information(values)
    means = model.classes_ / np.sqrt(model._target.unit)
    given = tree.infer(values)[1]
    for i in range(3):
        for f in range(4):
            expected = posterior[i] @ means**2 - (posterior[i] @ means) ** 2
            for v in range(given.shape[2]) if values[i, f] < 0 else ():
                joint = given[i, f, v] * posterior[i]
                expected -= joint @ means**2 - (joint @ means) ** 2 / joint.sum()
            np.testing.assert_allclose(information[i, f], expected if values[i, f] < 0 else 0.0, atol=1e-9)


# -- levels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y", [np.random.default_rng(0).normal(size=230), np.repeat([0.0, 0.0, 0.0, 1.0, 7.0], 30)]
)
def test_levels_equal_their_twin(y):
    target = NumericTarget(y)
    codes = twin.levels(y.tolist(), target.cuts.tolist())
    np.testing.assert_array_equal(target.codes(y), codes)
    assert set(codes) == set(range(len(target.means)))
    means, variances = twin.moments(y.tolist(), codes)
    np.testing.assert_allclose(target.means, means, rtol=1e-12)
    np.testing.assert_allclose(target.variances, variances, atol=1e-12)
    posterior = np.random.default_rng(1).dirichlet(np.ones(len(means)), 9)
    expected = np.array([twin.prediction(row, means, variances) for row in posterior.tolist()])
    np.testing.assert_allclose(target.predict(posterior), expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(target.deviation(posterior), expected[:, 1], rtol=1e-9)
    goal, label = Objective("squared-error", target.distances()), np.arange(9) % len(means)
    losses = [
        twin.squared_error(p, means, at) / y.var() for p, at in zip(posterior.tolist(), label, strict=True)
    ]
    np.testing.assert_allclose(goal.losses(posterior, label), losses, atol=1e-12)
    each = [goal.losses(posterior, np.full(9, level)) for level in range(len(means))]
    np.testing.assert_allclose(goal.risk(posterior), (posterior.T * each).sum(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(goal.risk(posterior)[4:5], goal.risk_of_rows(posterior[4:5]))


def test_a_race_compares_squared_errors():
    X, y = rows(240)
    candidates = compare_classifiers(
        {"fixed": METHODS["FixedSubset"](cost=0.02), "dear": METHODS["FixedSubset"](cost=0.9)},
        lambda at: X[at],
        y,
    )
    assert winner(candidates).name == "fixed"
    assert candidates[1].loss == pytest.approx(1.0, abs=0.05)
    assert candidates[0].loss < 0.3
