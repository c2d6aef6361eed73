"""A row classified value by value: what is asked, given, refused and kept."""

import json

import numpy as np
import pandas as pd
import pytest

from tamis import IFC2F
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
