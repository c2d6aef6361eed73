"""Budgets of all methods, spending all of them, and objectives other than errors."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.base import PriceList
from tamis.cells.policy_selection import ranking_losses

METHODS = {
    "IFC2F": (IFC2F, {"random_state": 0}),
    "ETANA": (ETANA, {"random_state": 0}),
    "FETANA": (FETANA, {"n_iterations": 300, "random_state": 0}),
    "AdaptiveIFC2F": (AdaptiveIFC2F, {"max_steps": 8, "random_state": 0}),
    "FixedSubset": (FixedSubset, {}),
    "AACO": (AACO, {"n_subsets": 20, "random_state": 0}),
}
every_method = pytest.mark.parametrize("name", METHODS)
# Those that share FixedOrder with FixedSubset, and the slowest.
mostly_slow = pytest.mark.parametrize(
    "name",
    [
        name if name in ("AdaptiveIFC2F", "FixedSubset") else pytest.param(name, marks=pytest.mark.slow)
        for name in METHODS
    ],
)
PRICES = [0.01, 0.02, 0.03, 0.01, 0.02, 0.2]


def rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 6)) + np.array([0.9, 0.8, 0.7, 0.6, 0.5, 2.0]) * y[:, None], y


def fitted(name, **changes):
    X, y = rows()
    method, settings = METHODS[name]
    return method(PRICES, **settings, **changes).fit(X[:300], y[:300])


@every_method
@pytest.mark.parametrize("budget", [0.0, 0.03, 0.05])
def test_no_row_pays_more_than_the_budget(name, budget):
    X, _ = rows()
    model = fitted(name, budget=budget)
    model.predict(X)
    assert model.cost_.max(initial=0.0) <= budget + 1e-9
    assert all(5 not in trace.features for trace in model.acquire(X[:40]))  # dearer than the budget


@pytest.mark.slow
@every_method
def test_all_of_the_budget_is_spent(name):
    X, _ = rows()
    model, other = fitted(name, budget=0.05, spend="all"), fitted(name, budget=0.05)
    model.predict(X[300:])
    spent = model.cost_.copy()
    other.predict(X[300:])
    assert (spent > 0.05 - 0.01 - 1e-9).all()  # what is left buys no other value
    assert spent.mean() >= other.cost_.mean()
    assert model.score(X[300:], rows()[1][300:]) > 0.7


@mostly_slow
def test_a_mean_budget_bounds_the_mean_and_not_each_row(name):
    X, y = rows(700)
    method, settings = METHODS[name]
    model = method(PRICES, **settings, mean_budget=0.025).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.6
    assert 0.0 < model.cost_.mean() <= 0.025 + 0.005  # the rows of fit keep it, these within sampling noise
    model.predict(X[:500])
    assert model.cost_.mean() <= 0.025 + (0.003 if name == "AACO" else 1e-9)
    assert name in ("FixedSubset", "AACO") or model.cost_.max() > 0.025


@pytest.mark.parametrize("settings", [{"spend": "all"}, {"objective": "auc"}, {"mean_budget": 0.1}], ids=str)
def test_published_methods_stop_by_their_own_rule(settings):
    X, y = rows()
    with pytest.raises(ValueError, match=f"{next(iter(settings))}=.* needs calibrate=True"):
        ETANA.published(**settings).fit(X, y)


def test_without_a_budget_all_steps_are_taken():
    X, y = rows()
    model = AdaptiveIFC2F(0.3, max_steps=4, spend="all", random_state=0).fit(X[:300], y[:300])
    model.predict(X[300:])
    assert (model.n_features_used_ == 4).all()  # though no value is worth .3


def test_ranking_losses_are_one_minus_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    posterior = rng.dirichlet(np.ones(3), 200).round(1)
    posterior[np.arange(200), y] += 0.2
    found = ranking_losses(posterior, y)
    for c in range(3):
        np.testing.assert_allclose(1 - found[y == c].mean(), roc_auc_score(y == c, posterior[:, c]))


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("objective", ["log-loss", "auc"])
def test_probabilities_are_worth_values_that_no_decision_is(name, objective):
    """One class is rare: no value changes the decision, but all change its probability."""
    rng = np.random.default_rng(0)
    y = (rng.random(1600) < 0.08).astype(int)
    X = rng.normal(size=(1600, 4)) + 0.9 * y[:, None]
    method, settings = METHODS[name]
    settings = settings | (
        {"n_stored": 1000} if name == "AACO" else {}
    )  # of 500 rows 30 are of the rare class
    model = method(0.002, objective=objective, **settings).fit(X[:1000], y[:1000])
    other = method(0.002, **settings).fit(X[:1000], y[:1000])
    scores = []
    for one in (model, other):
        posterior = one.predict_proba(X[1000:])
        loss = ranking_losses(posterior, y[1000:]).mean()
        if objective == "log-loss":
            loss = -np.log(posterior[np.arange(600), y[1000:]]).mean()
        scores.append(loss + one.cost_.mean())
    assert scores[0] < scores[1] - 0.01
    assert model.n_features_used_.mean() > other.n_features_used_.mean()
    trace = model.acquire(X[1000])
    session = model.open()
    while session.next_feature is not None:
        session.observe(X[1000, session.next_feature])
    assert [step["feature"] for step in session.explain()] == trace.features


@pytest.mark.slow
@every_method
@pytest.mark.parametrize(
    "settings",
    [{"groups": [[0, 1, 2]]}, {"cost": PriceList(0.01, fees=[([0, 1, 2], 0.02)])},
     {"cost": PriceList(0.02, if_known={1: {0: 0.001}}, delays={2: 1.0}, delay_price=0.01)}],
    ids=["group", "fee", "delay"],
)  # fmt: skip
def test_shared_fees_are_paid_once_in_rows_and_sessions(name, settings):
    X, y = rows()
    X = X[:, :4].copy()
    X[300::3, 0] = np.nan  # unavailable: its fee is not paid
    method, own = METHODS[name]
    model = method(**{"cost": 0.02, **own, **settings}).fit(X[:300], y[:300])
    list_ = settings.get("cost")
    traces, cost = model.acquire(X[300:340]), model.cost_
    assert cost.max() > 0.0
    for trace, row, paid in zip(traces, X[300:340], cost, strict=True):
        known, expected = set(), 0.0
        for column in trace.features:
            if list_ is None or list_.fees:
                own_price = 0.01 if list_ else (0.02 if column == 3 else 0.0)
                fee = 0.02 if column < 3 and not known & {0, 1, 2} else 0.0
                expected += own_price + fee
            else:
                expected += 0.001 if column == 1 and 0 in known else 0.03 if column == 2 else 0.02
            known.add(column)
        assert paid == pytest.approx(expected)
        session = model.open()
        while session.next_feature is not None:
            value = row[session.next_feature]
            session.observe(None if np.isnan(value) else value)
        assert session.cost == pytest.approx(paid)
