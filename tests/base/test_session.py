"""A row classified value by value: what is asked, given, refused and kept."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import tamis
from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.base import PriceList
from tamis.errors import DataError, StateError

NAMES = ["age", "pulse", "scan", "noise"]


@pytest.fixture
def model(rng):
    y = np.where(rng.random(600) < 0.5, "ill", "well")
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=NAMES)
    for name, shift in (("age", 1.0), ("pulse", 1.4), ("scan", 2.0)):
        X[name] += shift * (y == "ill")
    return IFC2F(
        {"age": 0.001, "pulse": 0.01, "scan": 0.05, "noise": 0.01}, order="relevance", random_state=0
    ).fit(X, y)


def test_dialogue(model):
    session = model.open()
    assert session.next_feature == "age"
    assert set(session.posterior) == {"ill", "well"}
    session.observe(2.0)
    assert session.posterior["ill"] > 0.6
    assert not session.finished
    session.observe(3.0)
    session.observe(4.0) if session.next_feature else None
    assert session.next_feature is None
    assert session.decision == "ill"
    steps = session.explain()
    assert steps[0]["feature"] == "age"
    assert steps[0]["cost"] == 0.001
    assert session.cost == pytest.approx(sum(step["cost"] for step in steps))


def test_what_is_not_available_is_not_paid_for(model):
    session = model.open()
    before = session.posterior
    session.observe(None)
    assert session.posterior == before
    assert session.cost == 0.0
    assert session.explain()[0]["value"] is None
    assert session.next_feature == "pulse"


def test_what_was_not_asked_for_is_free_and_counts_at_once(model):
    session = model.open()
    before = session.posterior
    session.observe(3.5, "pulse")
    assert session.cost == 0.0
    assert max(session.posterior.values()) > max(before.values())
    asked = model.open()
    asked.observe(0.5)
    asked.observe(3.5)
    assert session.decision == asked.decision
    assert asked.cost > 0.0


def test_goes_on_in_another_process(model):
    session = model.open()
    session.observe(0.4)
    text = json.dumps(session.state())
    again = model.open(json.loads(text))
    assert (again.next_feature, again.posterior, again.cost) == (
        session.next_feature, session.posterior, session.cost,
    )  # fmt: skip
    with pytest.raises(ValueError, match="no list 'observed'"):
        model.open({"seen": []})


def test_refusals_leave_the_session_as_it_was(model):
    session = model.open()
    for value, error in ((np.inf, "must be finite"), ("high", "which is not a number")):
        with pytest.raises(DataError, match=error):
            session.observe(value)
    with pytest.raises(ValueError, match="No feature is named 'weight'"):
        session.observe(1.0, "weight")
    session.observe(1.0)
    with pytest.raises(ValueError, match="'age' was observed before"):
        session.observe(1.0, "age")
    while session.next_feature is not None:
        session.observe(9.0)
    assert len(session.explain()) >= 1
    with pytest.raises(ValueError, match="The session is finished: its decision is 'ill'"):
        session.observe(1.0)


def test_columns_without_names_go_by_number(rng):
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) + np.array([0.0, 2.0, 0.0]) * y[:, None]
    session = IFC2F(random_state=0).fit(X, y).open()
    assert session.next_feature == 1
    session.observe(5.0, 1)
    assert session.decision == 1
    assert isinstance(session.decision, int)


def test_a_model_is_validated_once_per_observation(model, monkeypatch):
    session, checked = model.open(), []
    validate = IFC2F._reject_invalid_state
    monkeypatch.setattr(IFC2F, "_reject_invalid_state", lambda self: (checked.append(self), validate(self)))
    session.observe(2.0)
    assert len(checked) == 1
    assert (session.next_feature, session.finished, session.decision) == ("pulse", False, "ill")
    assert session.next_cost == 0.01
    assert len(checked) == 1
    session._model.prices_ = session._model.prices_[:2]
    before = session.state()
    with pytest.raises(StateError, match="prices_"):
        session.observe(2.0)
    assert session.state() == before


@pytest.mark.parametrize("unit", [None, "°F"])
def test_a_value_outside_the_range_is_questioned_and_converted(rng, unit):
    y = rng.integers(0, 2, 300)
    X = np.column_stack([37.0 + y + rng.normal(size=300).clip(-1.9, 1.9), rng.normal(size=300)])
    prices = PriceList(0.001, units={} if unit is None else {0: {"°C": 1, "°F": (5 / 9, -160 / 9)}})
    model = IFC2F(prices, order="relevance", random_state=0).fit(X, y)
    low, high = X[:, 0].min(), X[:, 0].max()
    session = model.open()
    assert session.question(37.2, 0) is None
    assert f"98.6 is outside {low:g} to {high:g}" in session.question(98.6, 0)
    assert session.question(98.6, 0).count("which unit?") == 1
    if unit is None:
        with pytest.warns(UserWarning, match="0: 98.6 is outside .* which unit"):
            session.observe(98.6, 0)
        assert session.explain()[0]["outcome"] == "out of range"
        with pytest.raises(ValueError, match="has no unit '°F': declare it in PriceList"):
            model.open().observe(98.6, 0, unit="°F")
        return
    session.observe(98.6, 0, unit="F")
    assert (session.explain()[0]["value"], session.explain()[0]["outcome"]) == (pytest.approx(37.0), "value")
    assert tamis.loads(tamis.dumps(model)).open().question(98.6, 0) == model.open().question(98.6, 0)


def test_a_fee_is_paid_for_a_value_without_result(rng):
    """The draw is paid once: also if its first value had no result, or was a new category."""
    y = rng.integers(0, 2, 400)
    X = np.empty((400, 2), dtype=object)
    X[:, 0], X[:, 1] = np.where(rng.random(400) < 0.3 + 0.4 * y, "wet", "dry"), rng.normal(size=400) + y
    prices = PriceList(0.01, fees=[([0, 1], 0.02)])
    for estimator in (AdaptiveIFC2F(prices), IFC2F(prices), AACO(prices), FixedSubset(prices, n_features=2)):
        model = estimator.set_params(categorical=[0], random_state=0).fit(X, y)
        session = model.open()
        first = session.next_feature
        session.no_result()
        assert session.cost == pytest.approx(0.03)
        assert session.next_feature is None or session.next_cost == pytest.approx(0.01)
        free = model.open()
        free.observe(None)
        assert free.cost == 0.0
        rows = X[:1].copy()
        rows[0, 0] = "moist"
        mask = np.zeros((1, 2), dtype=bool)
        mask[0, first] = True
        (trace,) = model.acquire(rows, no_result=mask)
        assert trace.outcomes[0] == "no result"
        assert trace.cost == pytest.approx(0.02 + 0.01 * len(trace.features))
        if 0 in trace.features and first != 0:
            assert trace.values[trace.features.index(0)] == "moist"


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"ranges": {"age": (40, 30)}}, "the range of 'age' is"),
        ({"ranges": {"age": 3}}, "the range of 'age' is"),
        ({"units": {"age": {"months": 0}}}, "the unit 'months' of 'age' has 0"),
        ({"units": {"age": {"months": "twelve"}}}, "the unit 'months' of 'age' has 'twelve'"),
    ],
)
def test_units_and_ranges_are_validated(terms, message):
    with pytest.raises(ValueError, match=message):
        PriceList.from_dict({"prices": {"age": 1.0}, **terms})


def people():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(600) < 0.5, "ill", "well")
    return pd.DataFrame(
        rng.normal(size=(600, 4)) + np.outer(y == "ill", [1.0, 1.4, 2.0, 0.0]), columns=NAMES
    ), y


def test_the_best_questions_are_those_asked_without_the_better_ones():
    X, y = people()
    model = AdaptiveIFC2F(0.001, random_state=0).fit(X, y)
    session = model.open()
    best = session.best_questions(3)
    assert best[0] == (session.next_feature, session.next_cost)
    assert model.open(unavailable=[best[0][0]]).next_feature == best[1][0]
    assert len({feature for feature, _ in best}) == len(best)
    assert session.next_feature == best[0][0]
    assert model.open().state() == session.state()


def test_what_if_changes_nothing_and_undo_returns():
    X, y = people()
    model = AdaptiveIFC2F(0.001, random_state=0).fit(X, y)
    session = model.open()
    start, first = session.posterior, session.next_feature
    other = session.what_if(1.0)
    assert session.posterior == start
    session.observe(1.0)
    assert session.posterior == other.posterior
    assert session.explain()[0]["feature"] == first
    session.undo()
    assert (session.posterior, session.next_feature, session.cost) == (start, first, 0.0)
    with pytest.raises(ValueError, match="nothing to undo"):
        session.undo()


@pytest.mark.parametrize("method", [IFC2F, AdaptiveIFC2F, ETANA, FETANA, AACO, FixedSubset])
def test_a_budget_is_kept_and_a_value_beyond_it_may_be_volunteered(method):
    X, y = people()
    names = list(X.columns)
    prices = {name: 0.003 * (1 + k) for k, name in enumerate(names)}
    model = method(prices, random_state=0).fit(X, y)
    for budget in (0.0, 0.004, 0.01):
        session = model.open(budget=budget)
        while session.next_feature is not None:
            session.observe(0.5)
        assert session.cost <= budget * (1 + 1e-9)
        again = model.open(session.state())
        assert again.state() == session.state()
        assert again.posterior == session.posterior
    known = {step["feature"] for step in session.explain()}
    beyond = next((name for name in model._names() if name not in known), None)
    if beyond is not None:
        cost = session.cost
        session.observe(0.5, beyond)
        assert session.cost == cost
        assert session.explain()[-1]["feature"] == beyond
    with pytest.raises(ValueError, match="budget"):
        model.open(budget=-1.0)


def test_prices_in_a_currency_without_the_cost_of_an_error_are_questioned(rng):
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 2)) + y[:, None]
    prices = PriceList(12.0, currency="EUR")
    with pytest.warns(
        UserWarning, match="misclassification_cost was not given: a wrong decision costs 1 EUR"
    ):
        FixedSubset(prices).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FixedSubset(prices, misclassification_cost=100 * (1 - np.eye(2))).fit(X, y)
