"""Random rules: the twin, one set is VFDR, any batching, subsets and rows, drifts, bad input, saving."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import VFDR, HoeffdingTree, RandomRules
from tamis.errors import DataError
from tests.learners.test_hoeffding import grown
from tests.learners.test_vfdr import state_of as state_of_set
from tests.learners.test_vfdr import turned
from tests.twins.random_rules import RandomRulesTwin
from tests.twins.random_rules import dealt as dealt_slowly

EAGER = {"grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}
PUBLISHED = {"grace_period": 200, "delta": 1e-7, "drift": None}


def state_of(model):
    return [state_of_set(rules) for rules in model._sets_]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ordered", "leaf", "categorical", "drift", "size"),
    [
        (False, "nb-adaptive", (2, 3), 0.7, 3),
        (True, "majority", (), None, 2),
        (False, "nb", (1, 3), None, 1),
    ],
)
def test_equals_the_twin_rule_by_rule(ordered, leaf, categorical, drift, size):
    X, y = turned(900, 3)
    X[:, 1] = X[:, 1].round() if 1 in categorical else X[:, 1]
    tie = 0.3 if drift is None else 0.25
    twin = RandomRulesTwin(
        3, 4, sets=3, size=size, skip=0.2, seed=5, ordered=ordered, leaf=leaf, categorical=categorical, drift=drift,
        grace=40, delta=1e-2, tie=tie,
    )  # fmt: skip
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    model = RandomRules(
        3, size, skip=0.2, random_state=5, ordered=ordered, leaf=leaf, categorical=list(categorical), drift=drift,
        grace_period=40, delta=1e-2, tie_threshold=tie,
    )  # fmt: skip
    grown(model, X, y, [100, 101, 350])
    assert model.subsets_.tolist() == twin.subsets
    assert model.n_rules_.tolist() == [len(rules.rules) for rules in twin.sets]
    assert model.n_dropped_ == sum(rules.dropped for rules in twin.sets)
    assert (model.n_dropped_ > 0) == (drift is not None)
    assert model.n_rules_.sum() >= 3
    for subset, rules, wanted in zip(twin.subsets, model.rule_sets_, twin.sets, strict=True):
        for rule, other in zip(rules, [*wanted.rules, wanted.default], strict=True):
            found = [(one.feature, one.operator) for one in rule.literals]
            assert found == [(subset[f], sign) for f, sign, *_ in other.literals]
            for one, literal in zip(rule.literals, other.literals, strict=True):
                assert (one.value, one.gain) == (pytest.approx(literal[2]), pytest.approx(literal[3]))
            np.testing.assert_allclose(rule.class_weights, other.weights, atol=1e-9)
            assert (rule.n_covered, rule.n_right) == (other.covered, other.known)
    np.testing.assert_allclose(
        model.predict_proba(X[-60:]), [twin.predict_proba(row) for row in X[-60:]], atol=1e-9
    )


@pytest.mark.parametrize("ordered", [False, True])
def test_one_set_of_all_features_and_rows_is_vfdr(ordered):
    X, y = turned(900)
    options = {"ordered": ordered, "drift": 0.05, "categorical": [2, 3], **EAGER}
    one, rules = RandomRules(1, None, skip=0.0, **options), VFDR(**options)
    grown(one, X, y), grown(rules, X, y)
    assert state_of(one) == [state_of_set(rules)]
    np.testing.assert_array_equal(one.predict_proba(X), rules.predict_proba(X))
    np.testing.assert_array_equal(one.feature_importances_, rules.feature_importances_)


@settings(max_examples=10, deadline=None)
@given(
    drift=st.sampled_from([None, 0.1]),
    skip=st.sampled_from([0.0, 0.4, 0.95]),
    cuts=st.lists(st.integers(0, 900), max_size=12).map(sorted),
    seed=st.integers(0, 5),
    max_rules=st.sampled_from([None, 2]),
)
def test_any_batching_leaves_the_same_bits(drift, skip, cuts, seed, max_rules):
    X, y = turned(900, seed)
    options = {"drift": drift, "skip": skip, "categorical": [2, 3], "max_rules": max_rules, **EAGER}
    whole, parts = (RandomRules(3, 3, random_state=seed, **options) for _ in range(2))
    assert state_of(grown(whole, X, y)) == state_of(grown(parts, X, y, cuts))
    assert max_rules is None or whole.n_rules_.max() <= max_rules
    one_by_one = np.vstack([whole.predict_proba(row[None]) for row in X[:20]])
    np.testing.assert_array_equal(whole.predict_proba(X[:20]), one_by_one)


def test_every_set_has_its_features_and_its_share_of_the_rows():
    X = np.random.default_rng(0).uniform(size=(4000, 7))
    model = RandomRules(10, 3, skip=0.3, random_state=2).fit(X, (X[:, 0] > 0.5).astype(int))
    assert model.subsets_.tolist() == dealt_slowly(10, 3, 7, 2)
    counts = np.bincount(model.subsets_.ravel(), minlength=7)
    assert counts.max() - counts.min() <= 1
    learned = np.array([rules.n_seen_ for rules in model._sets_]) / 4000
    assert np.abs(learned - 0.7).max() < 4 * np.sqrt(0.3 * 0.7 / 4000)
    assert len(set(learned)) > 1
    for subset, rules in zip(model.subsets_, model.rule_sets_, strict=True):
        assert {one.feature for rule in rules for one in rule.literals} <= set(subset.tolist())
    assert model.feature_importances_.argmax() == 0
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_more_right_than_the_rules_of_one_set_where_features_add_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 8))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    sets, published, one = RandomRules(), RandomRules(**PUBLISHED), VFDR(leaf="majority")
    for model in (sets, published, one):
        model.fit(X[:10_000], y[:10_000])
    scores = [model.score(X[10_000:], y[10_000:]) for model in (sets, published, one)]
    assert min(scores[:2]) > 0.92
    assert scores[2] < 0.8


def test_recovers_from_a_drift_unless_told_not_to():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(10_000, 5))
    y = np.where(np.arange(10_000) < 5000, X[:, 0] > 0.5, X[:, 1] > 0.5).astype(int)
    stays, drops = (
        RandomRules(leaf="majority", max_features=None, drift=drift).fit(X[:5000], y[:5000])
        for drift in (None, 0.002)
    )
    for model in (stays, drops):
        assert model.feature_importances_.argmax() == 0
        model.partial_fit(X[5000:7000], y[5000:7000])
    assert (stays.n_dropped_, drops.n_dropped_ > 0) == (0, True)
    assert drops.feature_importances_.argmax() == 1
    assert drops.score(X[7000:], y[7000:]) > 0.95
    assert drops.n_rules_.sum() < stays.n_rules_.sum()  # those of before are gone


def test_parameters_set_between_batches_are_those_of_every_set():
    X, y = turned(900)
    model = grown(RandomRules(2, None, max_rules=1, **EAGER), X[:450], y[:450])
    assert model.n_rules_.max() == 1
    grown(model.set_params(max_rules=None), X[450:], y[450:])
    assert model.n_rules_.min() > 1


def test_late_classes_categories_and_missing_values():
    frame = pd.DataFrame(
        {"size": np.random.default_rng(0).uniform(size=4000), "colour": np.arange(4000.0) % 3}
    )
    y = np.where(frame["colour"] == 1, "red", np.where(frame["size"] > 0.5, "big", "small"))
    model = RandomRules(6, 1, categorical=["colour"]).fit(frame, y)
    asked = pd.DataFrame({"size": [np.nan, np.nan, 0.9], "colour": [1.0, np.nan, 77.0]})
    assert model.predict(asked)[0] == "red"
    model.partial_fit(asked[2:], ["new"])
    assert model.classes_.tolist()[-1] == "new"
    votes = model.predict_proba(asked)
    assert votes.shape == (3, 4)
    np.testing.assert_allclose(votes.sum(axis=1), 1.0)
    assert all(len(rules.classes_) == 4 for rules in model._sets_)


def test_a_saved_model_goes_on_as_if_nothing_had_happened(tmp_path):
    X, y = turned(900)
    options = {"categorical": [2, 3], "drift": 0.05, **EAGER}
    straight, stopped = (RandomRules(3, 3, **options) for _ in range(2))
    grown(straight, X, y), grown(stopped, X[:430], y[:430])
    tamis.save(stopped, tmp_path / "rules.tamis")
    resumed = tamis.load(tmp_path / "rules.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[430:], y[430:])
    assert state_of(resumed) == state_of(straight)
    assert resumed.n_seen_ == 900


def test_refuses_and_stays_as_it_was():
    X, y = turned(400)
    model = grown(RandomRules(2, **EAGER), X, y)
    before = state_of(model)
    broken = X[:5].copy()
    broken[2, 1] = np.inf
    with pytest.raises(DataError, match="infinity in column 1 of row 2"):
        model.partial_fit(broken, y[:5])
    assert state_of(model) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_estimators", 0), ("max_features", 0), ("max_features", 1.5), ("skip", 1.0), ("skip", -0.1), ("ordered", "no"),
     ("drift", 0.0), ("leaf", HoeffdingTree()), ("max_rules", 0), ("random_state", None), ("categorical", [9])],
)  # fmt: skip
def test_refuses_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        clone(RandomRules()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])
