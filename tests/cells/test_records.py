"""A policy replayed on records: the paths of sessions, and estimates that hold where values were recorded by class."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.base import PriceList
from tamis.cells.records import replay_records

PRICES = PriceList(
    {"a": 0.02, "b": 0.01, "c": 0.02, "d": 0.01, "e": 0.0, "f": 0.03},
    fees=[(["a", "b"], 0.01)],
    if_known={"f": {"c": 0.01}},
)


def rows(seed, n=1200, recorded=(0.5, 0.7, 0.9)):
    """Complete rows of three classes, and the same as recorded: each class with a probability of its own."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = (
        1.5 * rng.normal(size=(n, 6))
        + np.outer(y, [1, -1, 0, 0, 0.3, 0])
        + np.outer(y == 2, [0, 0, 1, 0, 0, 1])
    )
    X[:, 3] += y == 1
    kept = np.where(rng.random(X.shape) < np.array(recorded)[y][:, None], X, np.nan)
    return pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(kept, columns=list("abcdef")), y


def followed(model, row, budget):
    """Twin: a session that ends where the record lacks the value."""
    session, acquired = model.open(budget=budget), []
    while session.next_feature is not None and not math.isnan(row[session.next_feature]):
        acquired.append(session.next_feature)
        session.observe(row[session.next_feature])
    return acquired, session


@pytest.mark.parametrize("budget", [None, 0.03])
@pytest.mark.parametrize("method", [IFC2F, AdaptiveIFC2F, ETANA, FETANA, FixedSubset, AACO])
def test_a_record_is_followed_as_a_session_would(method, budget):
    X, kept, y = rows(0, 500)
    model = method(PRICES, random_state=0).fit(X[:400], y[:400])
    result = replay_records(model, kept[400:], y[400:], budget=budget)
    for i, row in enumerate(kept[400:].to_dict("records")):
        acquired, session = followed(model, row, budget)
        assert result.acquired[i] == acquired
        assert result.next_feature[i] == session.next_feature
        assert result.is_complete[i] == session.finished
        assert result.next_cost[i] == pytest.approx(session.next_cost)
        assert result.cost[i] == pytest.approx(session.cost)
        assert result.decision[i] == session.decision
        assert budget is None or session.cost <= budget * (1 + 1e-9)


def test_the_estimates_are_those_of_the_definition():
    X, kept, y = rows(1)
    model = AdaptiveIFC2F(0.02, random_state=0).fit(X[:600], y[:600])
    kept, y = kept[600:], y[600:]
    result = replay_records(model, kept, y)
    paths = [followed(model, row, None) for row in kept.to_dict("records")]
    due, had = {}, {}
    for (acquired, session), label in zip(paths, y, strict=True):
        for feature in [*acquired, session.next_feature]:
            due[label, feature] = due.get((label, feature), 0) + (feature is not None)
        for feature in acquired:
            had[label, feature] = had.get((label, feature), 0) + 1
    errors, costs = [], []
    for (acquired, session), label in zip(paths, y, strict=True):
        posteriors = [step["posterior"] for step in session.explain()]
        decided = [max(one, key=one.get) for one in [model.open().posterior, *posteriors]]
        wrong, w, cost = float(decided[0] != label), 1.0, 0.0
        for t, feature in enumerate(acquired, start=1):
            cost += 0.02 * w
            w *= due[label, feature] / had[label, feature]
            wrong += w * (float(decided[t] != label) - float(decided[t - 1] != label))
        errors.append(wrong)
        costs.append(cost + 0.02 * w * (not session.finished))
    assert result.error.value == pytest.approx(np.mean(errors))
    assert result.cost_estimate.value == pytest.approx(np.mean(costs))
    half = 1.964 * np.std(costs, ddof=1) / np.sqrt(len(costs))
    assert result.cost_estimate.high - result.cost_estimate.value == pytest.approx(half, rel=1e-3)


def test_complete_records_need_no_weights():
    X, _, y = rows(2)
    model = IFC2F(0.02, random_state=0).fit(X[:600], y[:600])
    result = replay_records(model, X[600:], y[600:])
    assert result.is_complete.all()
    assert not result.remarks()
    assert result.error.value == pytest.approx(1 - model.score(X[600:], y[600:]))
    assert result.cost_estimate.value == pytest.approx(model.cost_.mean())
    assert result.loss.value == pytest.approx(result.error.value + result.cost_estimate.value)


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [(0.3, 0.6, 0.95), (0.9, 0.3, 0.9)])
@pytest.mark.parametrize("method", [IFC2F, AdaptiveIFC2F])
def test_the_intervals_cover_what_complete_records_show(method, recorded):
    # 20 runs at 95 %: fewer than 16 successes have a probability of .003.
    hits = np.zeros(2)
    for seed in range(20):
        X, kept, y = rows(seed, 2400, recorded)
        model = method(0.02, random_state=0).fit(X[:800], y[:800])
        result = replay_records(model, kept[800:], y[800:])
        truth = [np.mean(model.predict(X[800:]) != y[800:]), model.cost_.mean()]
        hits += [
            one.low <= true <= one.high
            for one, true in zip((result.error, result.cost_estimate), truth, strict=True)
        ]
    assert (hits >= 16).all(), hits


def test_records_whose_class_is_suspected_would_mislead_without_weights():
    X, kept, y = rows(3, 6000, recorded=(0.9, 0.4, 0.9))
    model = IFC2F(0.02, random_state=0).fit(X[:1000], y[:1000])
    result = replay_records(model, kept[1000:], y[1000:])
    truth = np.mean(model.predict(X[1000:]) != y[1000:])
    whole = result.is_complete
    naive = np.mean(result.decision[whole] != y[1000:][whole])
    assert abs(naive - truth) > 0.05
    assert result.error.low < truth < result.error.high
    assert abs(result.error.value - truth) < abs(naive - truth)


def test_no_error_among_few_records_is_not_certainty():
    X, _, y = rows(4)
    model = IFC2F(0.0001, random_state=0).fit(X[:600], y[:600])
    wrong = model.predict(X[600:]) != y[600:]
    right = X[600:][~wrong][:20]
    result = replay_records(model, right, y[600:][~wrong][:20])
    assert result.error.value == 0.0
    assert result.error.low == pytest.approx(0.0, abs=1e-12)
    assert 0.1 < result.error.high < 0.3


def test_a_class_without_the_value_leaves_its_error_open():
    X, kept, y = rows(5)
    kept.loc[y == 1] = np.nan
    model = IFC2F(0.02, random_state=0).fit(X[:600], y[:600])
    result = replay_records(model, kept[600:], y[600:])
    share = np.mean(y[600:] == 1)
    assert result.error.high - result.error.low > share
    assert result.error.low < np.mean(model.predict(X[600:]) != y[600:]) < result.error.high
    assert any(f"For {share:.1%} of the records, no record of the class" in text for text in result.remarks())
    assert "<html" in result.report()


def test_numbers_and_records_without_labels():
    X, kept, y = rows(6)
    target = X["a"] + 0.5 * X["b"] + y
    model = AdaptiveIFC2F(0.02, objective="squared-error", random_state=0).fit(X[:600], target[:600])
    result = replay_records(model, kept[600:], target[600:])
    truth = model.score(X[600:], target[600:])
    assert abs(1 - result.error.value - truth) < 0.15
    assert "a squared error, as a share of the variance, of" in result.verdict()
    plain = replay_records(model, kept[600:])
    assert "records contain every value that the policy acquires" in plain.verdict()
    assert plain.to_dict().keys() & {"cost", "error", "loss"} == set()
    assert "label" not in plain.to_dict()["records"][0]


def test_invalid_arguments_are_named():
    X, kept, y = rows(7)
    model = IFC2F(0.02, random_state=0).fit(X[:600], y[:600])
    with pytest.raises(ValueError, match="budget"):
        replay_records(model, kept, y, budget=-1.0)
    with pytest.raises(ValueError, match="'z', which is not a column"):
        replay_records(model, kept, y, unavailable=["z"])
    barred = replay_records(model, kept, y, unavailable=["a"])
    assert not any("a" in acquired for acquired in barred.acquired)
