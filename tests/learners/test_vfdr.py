"""Rules: the twin, any batching, drifts, what stands in a rule, bad input, saving."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import VFDR, HoeffdingTree
from tamis.errors import DataError
from tamis.learners import export_text
from tests.learners.test_hoeffding import grown, rows
from tests.twins.vfdr import VFDRTwin

EAGER = {"grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}


def turned(n, seed=1):
    """Two numbers, a coin and four categories; half-way the labels are turned round."""
    X, y = rows(np.random.default_rng(seed), n)
    return X, np.where(np.arange(n) < n // 2, y, 2 - y)


def state_of(model):
    rules = model._rules_
    arrays = [value for name, value in vars(rules).items() if name != "pools"]
    return [array.tobytes() for array in (*arrays, *vars(rules.pools).values())]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ordered", "leaf", "categorical", "drift", "max_rules"),
    [
        (True, "majority", (), None, None),
        (True, "nb-adaptive", (2, 3), 0.7, None),
        (False, "majority", (2, 3), None, 3),
        (False, "nb-adaptive", (2, 3), 0.7, None),
        (False, "nb", (), 0.7, None),
    ],
)
def test_equals_the_twin_rule_by_rule(ordered, leaf, categorical, drift, max_rules):
    X, y = turned(1500)
    tie = 0.3 if drift is None else 0.25
    twin = VFDRTwin(
        3, ordered=ordered, drift=drift, max_rules=max_rules, leaf=leaf, categorical=categorical, grace=40,
        delta=1e-2, tie=tie,
    )  # fmt: skip
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    model = VFDR(
        40,
        1e-2,
        tie,
        ordered=ordered,
        leaf=leaf,
        categorical=list(categorical),
        drift=drift,
        max_rules=max_rules,
    )
    grown(model, X, y, [100, 101, 350])
    assert model.n_dropped_ == twin.dropped
    assert (model.n_dropped_ > 0) == (drift is not None)
    assert model.n_rules_ == len(twin.rules) >= 2
    for rule, wanted in zip(model.rules_, [*twin.rules, twin.default], strict=True):
        found = [(one.feature, one.operator) for one in rule.literals]
        assert found == [tuple(literal[:2]) for literal in wanted.literals]
        for one, literal in zip(rule.literals, wanted.literals, strict=True):
            assert (one.value, one.gain) == (pytest.approx(literal[2]), pytest.approx(literal[3]))
        np.testing.assert_allclose(rule.class_weights, wanted.weights, atol=1e-9)
        assert (rule.n_covered, rule.n_right) == (wanted.covered, wanted.known)
    np.testing.assert_allclose(
        model.predict_proba(X[-60:]), [twin.predict_proba(row) for row in X[-60:]], atol=1e-9
    )


@settings(max_examples=15, deadline=None)
@given(
    ordered=st.booleans(),
    drift=st.sampled_from([None, 0.1]),
    cuts=st.lists(st.integers(0, 900), max_size=12).map(sorted),
    seed=st.integers(0, 5),
    max_rules=st.sampled_from([None, 2]),
)
def test_any_batching_leaves_the_same_bits(ordered, drift, cuts, seed, max_rules):
    X, y = turned(900, seed)
    options = {"ordered": ordered, "drift": drift, "categorical": [2, 3], "max_rules": max_rules, **EAGER}
    whole, parts = VFDR(**options), VFDR(**options)
    assert state_of(grown(whole, X, y)) == state_of(grown(parts, X, y, cuts))
    assert max_rules is None or whole.n_rules_ <= max_rules
    pools = whole._rules_.pools
    assert pools.state[0] + pools.state[6] == len(pools.links)  # every place is free or in use
    one_by_one = np.vstack([whole.predict_proba(row[None]) for row in X[:50]])
    np.testing.assert_array_equal(whole.predict_proba(X[:50]), one_by_one)


def test_finds_the_rules_that_made_the_labels():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 20))
    y = np.where((X[:, 4] > 0.7) | (X[:, 11] > 0.6), "b", "a")
    for ordered in (True, False):
        model = VFDR(ordered=ordered).fit(X[:15_000], y[:15_000])
        first, second = model.rules_[:2]
        assert [(one.feature, one.operator) for one in first.literals] == [(11, ">")]
        assert [(one.feature, one.operator) for one in second.literals] == [(4, ">")]
        assert first.literals[0].value == pytest.approx(0.6, abs=0.1)
        assert first.n_right == first.n_covered > 4000
        assert set(model.feature_importances_.argsort()[-2:]) == {4, 11}
        assert model.feature_importances_.sum() == pytest.approx(1)
        assert model.score(X[15_000:], y[15_000:]) > 0.95


def test_drops_the_rules_that_are_no_longer_true():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(12_000, 5))
    y = np.where(np.arange(12_000) < 6000, X[:, 0] > 0.5, X[:, 1] > 0.5).astype(int)
    stays, drops = VFDR(leaf="majority"), VFDR(leaf="majority", drift=0.002)
    for model in (stays, drops):
        model.fit(X[:6000], y[:6000])
        assert model.feature_importances_.argmax() == 0
        model.partial_fit(X[6000:7500], y[6000:7500])
    assert (stays.n_dropped_, drops.n_dropped_ > 0) == (0, True)
    assert drops.feature_importances_.argmax() == 1
    assert drops.score(X[7500:], y[7500:]) > 0.95 > stays.score(X[7500:], y[7500:])


def test_a_threshold_takes_the_place_of_one_that_it_implies():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30_000, 1))
    y = (rng.random(30_000) < X[:, 0] ** 4).astype(int)
    model = VFDR(leaf="majority", grace_period=50, tie_threshold=1.0).fit(X, y)
    for rule in model.rules_:
        signs = [literal.operator for literal in rule.literals]
        assert len(signs) == len(set(signs)) <= 2
    assert max(rule.n_covered for rule in model.rules_) < 30_000
    assert model.n_rules_ > 5


def test_many_conditions_on_categories():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(40_000, 2)).astype(float)
    y = (rng.random(40_000) < np.where(X[:, 0] < 6, 0.5, 0.05)).astype(int)
    model = VFDR(categorical="all", leaf="majority", grace_period=1000, tie_threshold=1.0).fit(X, y)
    assert max(len(rule.literals) for rule in model.rules_) > 4  # more than there was room for
    for rule in model.rules_:
        assert len({(one.feature, one.operator, one.value) for one in rule.literals}) == len(rule.literals)


def test_missing_values_and_new_categories_fall_to_rules_that_do_not_ask():
    frame = pd.DataFrame({"size": np.random.default_rng(0).uniform(size=4000), "colour": np.arange(4000) % 3})
    y = np.where(frame["colour"] == 1, "red", np.where(frame["size"] > 0.5, "big", "small"))
    model = VFDR(categorical=["colour"], leaf="majority").fit(frame, y)
    asked = pd.DataFrame({"size": [np.nan, np.nan, 0.9], "colour": [1.0, np.nan, 77.0]})
    default = model.rules_[-1].class_weights
    votes = model.predict_proba(asked)
    assert model.rules_[0].literals[0].feature == 1
    np.testing.assert_allclose(votes[1], default / default.sum())  # nothing holds
    assert model.predict(asked)[0] == "red"
    assert votes.shape == (3, 3)
    model.partial_fit(asked[2:], ["new"])
    assert model.classes_.tolist()[-1] == "new"


def test_rules_in_words():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.uniform(size=9000), "colour": rng.integers(0, 3, 9000)})
    y = np.where((frame["colour"] == 1) & (frame["size"] <= 0.4), "rare", "usual")
    options = {"categorical": ["colour"]}
    lines = export_text(VFDR(**options).fit(frame, y)).split("\n")
    assert lines[0].startswith("IF ")
    assert all(line.startswith("ELSE IF ") for line in lines[1:-1])
    assert lines[0] == "IF colour != 1 THEN usual"
    assert lines[1].startswith("ELSE IF size ")
    assert lines[-1] in ("ELSE rare", "ELSE usual")
    alone = export_text(VFDR(ordered=False, **options).fit(frame, y), ["a", "b"], show_weights=True).split(
        "\n"
    )
    assert all(line.startswith("IF ") and line.endswith("]") for line in alone[:-1])
    assert alone[-1].startswith("ELSE ")
    assert export_text(VFDR().fit(frame[:50], y[:50])) == "usual"  # the default rule alone
    with pytest.raises(ValueError, match="1 names"):
        export_text(VFDR().fit(frame, y), ["a"])


def test_on_noise_hardly_less_right_than_the_majority():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(20_000, 5)), (rng.random(20_000) < 0.3).astype(int)
    model = VFDR().fit(X[:15_000], y[:15_000])
    assert model.score(X[15_000:], y[15_000:]) > 0.69
    constant = VFDR().fit(np.ones((3000, 2)), np.arange(3000) % 2)
    assert constant.n_rules_ == 0
    assert constant.feature_importances_.tolist() == [0, 0]


def test_a_saved_set_goes_on_as_if_nothing_had_happened(tmp_path):
    X, y = turned(900)
    options = {"categorical": [2, 3], "drift": 0.05, "ordered": False, **EAGER}
    straight, stopped = grown(VFDR(**options), X, y), grown(VFDR(**options), X[:430], y[:430])
    tamis.save(stopped, tmp_path / "rules.tamis")
    resumed = tamis.load(tmp_path / "rules.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[430:], y[430:])
    assert state_of(resumed) == state_of(straight)
    assert resumed.n_seen_ == 900


def test_refuses_and_stays_as_it_was():
    X, y = turned(400)
    model = grown(VFDR(**EAGER), X, y)
    before = state_of(model)
    broken = X[:5].copy()
    broken[2, 1] = np.inf
    with pytest.raises(DataError, match="infinity in column 1 of row 2"):
        model.partial_fit(broken, y[:5])
    assert state_of(model) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [("grace_period", 0), ("delta", 1), ("tie_threshold", -1), ("leaf", HoeffdingTree()), ("n_cuts", 0),
     ("max_rules", 0), ("categorical", [9]), ("ordered", "no"), ("drift", 0.0)],
)  # fmt: skip
def test_refuses_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        clone(VFDR()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])
