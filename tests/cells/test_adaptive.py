"""AdaptiveIFC2F against its twin; thresholds, groups, budgets, boosting, and rows that need their own order."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import tamis
from tamis import IFC2F, AdaptiveIFC2F
from tamis.base import PriceList
from tamis.cells.policy_selection import best_thresholds, selection_groups
from tests.cells.test_ifc2f import rows
from tests.twins import adaptive as twin
from tests.twins.ifc2f import joint


def tariff(model):
    """Own prices of the candidates, and the members and fee of each group."""
    found = model._tariff
    return found.own, [
        (np.flatnonzero(member), fee) for member, fee in zip(found.member, found.fee, strict=True)
    ]


@pytest.mark.parametrize(
    "settings",
    [{}, {"groups": [[0, 3], [1, 2, 4]]}, {"budget": 0.05}, {"cost": [0.01, 0.05, 0.0, 0.02, 0.01]},
     {"max_steps": 2}, {"groups": [[1, 4]], "budget": 0.03},
     {"cost": PriceList(0.005, fees=[([0, 2, 3], 0.02)])},
     {"cost": PriceList(0.01, fees=[([1, 4], 0.01)]), "budget": 0.05},
     {"lookahead": 2, "cost": [0.01, 0.02, 0.03, 0.02, 0.01]}],
    ids=str,
)  # fmt: skip
def test_buys_as_the_twin(rng, settings):
    X, y = rows(rng, d=5)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = AdaptiveIFC2F(**{"cost": 0.01, "n_bins": 3, "decision": "tree", **settings}).fit(X[:300], y[:300])
    tree = model._tree
    P = joint(tree.parent, tree.tables.transpose(1, 0, 2, 3), tree.prior)
    test = X[300:340]
    codes = model._codes(test[:, model.candidates_], np.arange(len(model.candidates_)))
    traces, used, cost = model.acquire(test), model.n_features_used_, model.cost_
    for trace, row, n, paid in zip(traces, codes, used, cost, strict=True):
        bought, spent, belief = twin.walk(
            P, row, model._Q, *tariff(model), model.max_risk_, model.min_rate_,
            settings.get("budget", np.inf), settings.get("max_steps", 30), settings.get("lookahead", 1),
        )  # fmt: skip
        assert trace.features == [model.name_of(k) for k in bought]
        assert n == len(bought)
        assert paid == trace.cost == pytest.approx(spent)
        np.testing.assert_allclose(trace.posteriors[-1], belief, rtol=1e-8, atol=1e-12)


def test_two_steps_find_the_column_that_indicates_the_next_one(rng):
    which, y = rng.integers(0, 4, 800), rng.integers(0, 2, 800)
    X = np.column_stack([which, rng.integers(0, 2, (800, 4))]).astype(float)
    X[np.arange(800), 1 + which] = y
    used = []
    for lookahead in (1, 2):
        model = AdaptiveIFC2F(0.02, lookahead=lookahead, decision="tree", categorical=[0]).fit(
            X[:500], y[:500]
        )
        assert model.score(X[500:], y[500:]) > 0.98
        used.append(model.n_features_used_.mean())
    assert used[1] < 2.05 < 2.3 < used[0]


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, 0.25])
def test_thresholds_are_those_of_the_family_that_costs_least_where_it_was_not_chosen(rng, budget):
    n = 60
    risk, rate = rng.random((6, n)), rng.random((6, n))
    spent = np.cumsum(rng.integers(0, 9, (6, n)), axis=0) / 64  # sums without rounding
    y, wrong = rng.integers(0, 2, n), rng.integers(0, 2, (6, n)).astype(float)

    def walk(i, highest, lowest):
        k = next((k for k in range(5) if risk[k, i] <= highest or rate[k, i] <= lowest), 5)
        return wrong[k, i], spent[k, i]

    def cheapest(family, rows):
        best, least = None, (np.inf, np.inf)
        for pair in family:
            errors, paid = np.sum([walk(i, *pair) for i in rows], axis=0)
            total = errors + paid if budget is None else errors if paid <= budget * len(rows) else np.inf
            if (total, paid) < least:
                best, least = pair, (total, paid)
        return best

    risks, rates = ([-np.inf, *np.quantile(part, np.linspace(0, 1, 25))] for part in (risk, rate))
    families = [
        [(a, -np.inf) for a in risks],
        [(-np.inf, b) for b in rates],
        list(itertools.product(risks, rates)),
    ]
    group, least = selection_groups(y), np.inf
    for family in families:
        judged = 0.0
        for g in np.unique(group):
            pair = cheapest(family, np.flatnonzero(group != g))
            paid = [walk(i, *pair) for i in np.flatnonzero(group == g)]
            judged += np.sum(paid) if budget is None else np.sum(paid, axis=0)[0]
        if judged < least:
            expected, least = cheapest(family, np.arange(n)), judged
    cost, *found = best_thresholds(risk, rate, spent, wrong, y, budget)
    assert tuple(found) == expected
    assert cost.sum() == least


def test_chance_columns_of_wide_data_are_not_bought():
    """The columns are chosen by the rows of each fold: chosen by all, the best of 2,000 tell of the rows held out."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2000)), (rng.random(60) < 0.4).astype(int)
    for decision in ("auto", "tree"):
        model = AdaptiveIFC2F(0.01, decision=decision, random_state=0).fit(X, y)
        model.predict(X)
        assert model.n_features_used_.max() == 0


def switched(rng, n=3000):
    """Column 0 says which of the other two holds the class."""
    y, which = rng.integers(0, 2, (2, n))
    X = rng.normal(size=(n, 3))
    X[:, 0] = which
    X[:, 1:] += 3 * (2 * y[:, None] - 1) * (which[:, None] == [0, 1])
    return X, y


def test_each_row_goes_its_own_way(rng):
    X, y = switched(rng)
    model = AdaptiveIFC2F(cost=0.02).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.98
    orders = {tuple(trace.features) for trace in model.acquire(X[2000:2200])}
    assert orders == {(0, 1), (0, 2)}  # column 0 is the context
    fixed = IFC2F(cost=0.02, calibrate=False, random_state=0).fit(X[:2000], y[:2000])
    assert fixed.score(X[2000:], y[2000:]) < 0.9


def test_sessions_follow_the_same_path(rng):
    X, y = switched(rng, 600)
    model = AdaptiveIFC2F(cost=0.02, groups=[[0, 2]]).fit(X, y)
    for x, trace in zip(X[:20], model.acquire(X[:20]), strict=True):
        session = model.open()
        while session.next_feature is not None:
            session.observe(x[session.next_feature])
        assert [step["feature"] for step in session.explain()] == trace.features
        assert session.cost == pytest.approx(trace.cost)
        again = model.open(session.state())
        assert (again.decision, again.cost) == (session.decision, pytest.approx(session.cost))


def test_unasked_evidence_counts_at_once(rng):
    X, y = switched(rng, 1000)
    session = AdaptiveIFC2F(cost=0.02).fit(X, y).open()
    first = session.next_feature
    other = 3 - first
    before = session.posterior[1]
    session.observe(6.0, other)
    assert session.posterior[1] > before + 0.2
    assert session.cost == 0.0


def test_group_is_paid_once(rng):
    X, y = rows(rng, d=6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = AdaptiveIFC2F(cost=0.03, groups=[["a", "b", "c"], ["d", "e"]]).fit(frame, y)
    traces = model.acquire(frame.iloc[:50])
    groups = {"a": 0, "b": 0, "c": 0, "d": 1, "e": 1, "f": 2}
    assert max(len(trace.features) for trace in traces) >= 3
    for trace in traces:
        assert trace.cost == pytest.approx(0.03 * len({groups[name] for name in trace.features}))
        if "a" in trace.features:
            assert {"b", "c"} <= set(trace.features)  # paid for, so taken


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.0, 0.02, 0.05])
def test_no_row_costs_more_than_the_budget(rng, budget):
    X, y = rows(rng)
    model = AdaptiveIFC2F(cost=0.01, budget=budget).fit(X, y)
    model.predict(X)
    assert model.cost_.max() <= budget + 1e-9
    assert model.cost_.max() > budget - 0.011


@pytest.mark.slow
def test_mean_budget_is_kept_on_new_rows(rng):
    X, y = rows(rng, n=3000)
    used = []
    for mean_budget in (1.0, 2.0, 4.0):
        model = AdaptiveIFC2F(cost=1.0, mean_budget=mean_budget).fit(X[:2000], y[:2000])
        model.predict(X[2000:])
        used.append(model.cost_.mean())
    assert used == sorted(used)
    np.testing.assert_array_less(used, [1.15, 2.3, 4.6])
    assert used[-1] > 2.5


def test_boosting_sees_what_a_tree_cannot(rng):
    """The class is the parity of three columns' signs."""
    X = rng.normal(size=(3000, 4))
    y = (np.sign(X[:, 0] * X[:, 1] * X[:, 2]) > 0).astype(int)
    X[:, 3] = y + 1.0 * rng.normal(size=3000)
    tree, boosting = (
        AdaptiveIFC2F(0.001, n_bins=2, decision=d, random_state=0).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])
        for d in ("tree", "ensemble")
    )  # fmt: skip
    assert boosting > tree + 0.1


@pytest.mark.slow
def test_boosting_keeps_columns_that_tell_only_together(rng):
    """No column says anything of the class by itself; two of sixty do together."""
    X = rng.normal(size=(2000, 60))
    y = (X[:, 7] * X[:, 31] > 0).astype(int)
    X[:, 50] = np.nan
    tree, boosting = (
        AdaptiveIFC2F(0.01, max_features=3, decision=d, random_state=0).fit(X[:1500], y[:1500])
        for d in ("tree", "ensemble")
    )
    assert {7, 31} <= set(boosting.candidates_.tolist())
    assert not {7, 31} <= set(tree.candidates_.tolist())
    assert boosting.score(X[1500:], y[1500:]) > 0.9 > 0.6 > tree.score(X[1500:], y[1500:])


@pytest.mark.slow
def test_spambase_is_ahead_of_a_greedy_network(load_shared):
    """Covert et al. (2023) on this split: 0.909 with 5 features."""
    X, y, _ = load_shared("spambase")
    X, order = np.asarray(X, dtype=float), np.random.default_rng(0).permutation(len(y))
    test, train = order[:920], order[1840:]
    model = AdaptiveIFC2F(0.01, decision="ensemble", max_steps=15, random_state=0)
    assert model.fit(X[train], y[train]).score(X[test], y[test]) > 0.909
    assert model.n_features_used_.mean() < 5.0


@pytest.mark.slow
def test_sparse_wide_rows(rng):
    X = sp.random_array((1200, 3000), density=0.02, rng=rng, format="csr")
    y = np.asarray(X[:, [7]].todense()).ravel() > 0
    y = y | (np.asarray(X[:, [9]].todense()).ravel() > 0)
    model = AdaptiveIFC2F(cost=0.001).fit(X, y.astype(int))
    assert len(model.candidates_) <= 64
    assert model.score(X, y.astype(int)) > 0.99


def test_same_seed_same_model(rng):
    X, y = rows(rng, n=120, d=4)
    settings = {"decision": "ensemble", "max_steps": 3, "random_state": 1}
    first, second = (AdaptiveIFC2F(**settings).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"groups": [["z"]]}, "groups names 'z', which is not a column"), ({"groups": [[1], [1]]}, "names 1 twice"),
     ({"budget": -1.0}, "budget must be"), ({"mean_budget": -1.0}, "mean_budget must be"),
     ({"decision": "forest"}, "decision"), ({"max_steps": 0}, "max_steps"), ({"max_features": 0}, "max_features")],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(rng, settings, message):
    X, y = rows(rng)
    with pytest.raises(ValueError, match=message):
        AdaptiveIFC2F(**settings).fit(X, y)


def test_too_few_rows_of_a_class(rng):
    X, y = rng.normal(size=(7, 2)), np.array([0, 0, 0, 0, 0, 0, 1])
    model = AdaptiveIFC2F().fit(X, y)
    assert model.predict(X).shape == (7,)


def test_where_no_column_varies_nothing_is_asked_for():
    y = np.arange(90) % 3 == 0
    model = AdaptiveIFC2F().fit(np.ones((90, 3)), y)
    assert not model.predict(np.ones((4, 3))).any()
    assert not model.cost_.any()
    assert model.open().next_feature is None


@pytest.mark.parametrize("seed", [10, 23])
def test_a_first_value_that_pays_is_bought_though_the_shares_are_as_sure_as_where_rows_stop(seed):
    """The threshold of the risk is found behind the first value, so it may lie above the risk before it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + 1.2 * rng.normal(size=400) > 0).astype(int)
    model = AdaptiveIFC2F(cost=0.01).fit(X[:200], y[:200])
    assert model.max_risk_ > model.prior_.min()
    assert model.score(X[200:], y[200:]) > 0.6
    assert (model.n_features_used_ >= 1).all()
    assert [trace.features[:1] for trace in model.acquire(X[200:203])] == [[0]] * 3


def test_a_saved_ensemble_decides_as_before(rng, tmp_path):
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 4)) + y[:, None]
    model = AdaptiveIFC2F(decision="ensemble", max_steps=3, random_state=0).fit(X, y)
    assert model.belief_ == "ensemble"
    again = tamis.load(tamis.save(model, tmp_path / "model.tamis"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
