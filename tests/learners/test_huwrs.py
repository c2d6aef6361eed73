"""HUWRS: the twin, any batching, which members begin anew, votes, unlabelled rows, bad input, saving."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import tamis
from tamis import HUWRS, HoeffdingTree, WeightedNaiveBayes, prequential
from tamis.errors import DataError, UnknownNameError
from tests.twins.huwrs import HUWRSTwin

SMALL = {"n_estimators": 4, "chunk_size": 60, "estimator": "nb", "retrain_below": 0.85}
ALONE = {"n_estimators": 6, "chunk_size": 200, "max_features": 1, "estimator": "nb"}


@parametrize_with_checks([HUWRS(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def moving(n=600, n_features=6, seed=0):
    """Three classes, told by feature 0, and by feature 3 from the middle on; the last feature has five values."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size=n)
    X = rng.normal(size=(n, n_features))
    X[np.arange(n), np.where(np.arange(n) < n // 2, 0, 3)] += 2 * y
    X[:, -1] = rng.integers(0, 5, size=n)
    return X, y


def grown(model, X, y, cuts=()):
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        if stop > start:
            model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    return model


@pytest.mark.parametrize(
    ("base", "bins", "categorical", "retrain"),
    [
        (WeightedNaiveBayes(None, weight=None), 10, [], 0.85),
        (HoeffdingTree(grace_period=30, tie_threshold=0.3), 4, [5], 0.8),
        (WeightedNaiveBayes(None, weight=None), 3, [5], 0.9),
    ],
)
def test_equals_the_twin(base, bins, categorical, retrain):
    X, y = moving(480)
    X[::9, 2] = np.nan
    X[300:, 4] = np.round(X[300:, 4])
    model = HUWRS(4, 60, estimator=base, n_bins=bins, categorical=categorical, retrain_below=retrain)
    grown(model, X[:1], y[:1])
    subsets = [member.columns.tolist() for member in model.members_]
    twin = HUWRSTwin(
        3, base, subsets, chunk=60, retrain=retrain, silent=model.silent_below, bins=bins, categorical=categorical
    )  # fmt: skip
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    grown(model, X[1:], y[1:], [7, 59, 60, 200])
    assert model.drifts_ == twin.drifts != []
    np.testing.assert_allclose(model.weights_, [one["weight"] for one in twin.members], atol=1e-9)
    assert model.weights_.min() < 0.999
    model.reweigh(X[:50])
    twin.reweigh(X[:50])
    np.testing.assert_allclose(model.weights_, [one["weight"] for one in twin.members], atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X[-40:]), [twin.predict_proba(row) for row in X[-40:]], atol=1e-9
    )


@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=12).map(sorted), seed=st.integers(0, 3))
def test_any_batching_leaves_the_same_bits(cuts, seed):
    X, y = moving(400, seed=seed)
    X[::17, 1] = np.nan
    whole = grown(HUWRS(**SMALL, categorical=[5]), X, y)
    parts = grown(HUWRS(**SMALL, categorical=[5]), X, y, cuts)
    for _ in range(2):
        np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
        np.testing.assert_array_equal(whole._then_, parts._then_)
        assert whole.drifts_ == parts.drifts_
        for model in (whole, parts):
            grown(model, X[::-1], y[::-1])


def test_those_whose_features_moved_begin_anew():
    X, y = moving(4000)
    model = HUWRS(**ALONE, retrain_below=0.85).fit(X[:2000], y[:2000])
    assert model.drifts_ == []
    before = {int(member.columns[0]): member.model for member in model.members_}
    model.partial_fit(X[2000:2200], y[2000:2200])
    assert model.drifts_ == [2199]
    after = {int(member.columns[0]): member.model for member in model.members_}
    assert [j for j in range(6) if before[j] is not after[j]] == [0, 3]
    assert all(after[j].n_seen_ == (200 if j in (0, 3) else 2200) for j in range(6))
    assert (model.weights_ > 0.85).all()


def test_never_retrained_members_lose_their_vote():
    X, y = moving(1200)
    model = HUWRS(**ALONE, retrain_below=0.0, silent_below=0.8).fit(X, y)
    assert model.drifts_ == []
    silent = [int(member.columns[0]) for member in model.members_ if member.weight < 0.8]
    assert sorted(silent) == [0, 3]
    loud = [member for member in model.members_ if member.weight >= 0.8]
    votes = sum(member.weight * member.model.predict_proba(X[:, member.columns]) for member in loud)
    np.testing.assert_allclose(model.predict_proba(X), votes / sum(member.weight for member in loud))
    model.set_params(silent_below=1.0)
    everyone = np.mean([m.model.predict_proba(X[:, m.columns]) for m in model.members_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), everyone)  # if no member has a vote, all have


def test_equal_rows_agree_and_a_rare_class_is_not_held_to_chance():
    X, y = moving(240)
    twice = HUWRS(**SMALL).fit(np.vstack([X[:60], X[:60]]), np.r_[y[:60], y[:60]])
    np.testing.assert_array_equal(twice.weights_, 1.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 6)), (rng.random(4000) < 0.03).astype(int)
    assert HUWRS(chunk_size=200, retrain_below=0.85).fit(X, y).drifts_ == []


def test_each_feature_is_in_as_many_subsets():
    X, y = moving(30, 11)
    model = HUWRS(5, max_features=4).fit(X, y)
    assert sorted(np.bincount(np.concatenate([m.columns for m in model.members_]))) == [1, 1] + [2] * 9
    assert all(len(set(m.columns.tolist())) == 4 for m in model.members_)
    other = HUWRS(5, max_features=4, random_state=1).fit(X, y)
    assert not np.array_equal(model._columns_, other._columns_)
    assert [HUWRS(2, max_features=share).fit(X, y)._columns_.shape[1] for share in (0.01, 0.3, 1.0, 99)] == [
        1,
        3,
        11,
        11,
    ]


def test_unlabelled_rows_move_the_votes_alone():
    X, y = moving(600)
    model = grown(HUWRS(**SMALL), X[:40], y[:40])
    assert model.reweigh(X).weights_.tolist() == [1.0] * 4  # nothing to compare with yet
    grown(model, X[40:300], y[40:300])
    kept = [member.model.n_seen_ for member in model.members_]
    then, drifts = model._then_.copy(), list(model.drifts_)
    moved = X[:90].copy()
    moved[:, 0] += 50
    model.reweigh(moved)
    has_it = np.array([0 in member.columns for member in model.members_])
    assert model.weights_[has_it].max() < model.weights_[~has_it].min()
    assert [member.model.n_seen_ for member in model.members_] == kept
    np.testing.assert_array_equal(model._then_, then)
    assert model.drifts_ == drifts
    assert model.n_seen_ == 300
    weights = model.weights_
    moved[3, 2] = np.inf
    with pytest.raises(DataError, match="infinity in column 2 of row 3"):
        model.reweigh(moved)
    assert model.weights_ is weights


def test_any_classifier_and_a_refused_batch():
    X, y = moving(600)
    model = HUWRS(3, 50, estimator=GaussianNB()).fit(X, y)
    assert model.score(X[500:], y[500:]) > 0.5
    assert not hasattr(model.estimator, "classes_")
    kept = model.predict_proba(X)
    for broken in (model, clone(model).set_params(estimator="naive-bayes").fit(X, y)):
        with pytest.raises(ValueError, match="NaN"):
            broken.partial_fit(np.vstack([X[:30], np.full((1, 6), np.nan)]), [*y[:30], 0])
        np.testing.assert_array_equal(broken.predict_proba(X), kept)
        assert broken.n_seen_ == 600


def test_categories_frames_and_late_classes():
    X, y = moving(400)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = HUWRS(**SMALL, categorical=["f"])
    model.partial_fit(frame[:200], np.where(y[:200] == 2, 0, y[:200]))
    model.partial_fit(frame[200:], y[200:])
    assert sorted(model.classes_.tolist()) == [0, 1, 2]
    assert model.predict(frame).shape == (400,)
    with pytest.raises(TypeError, match="toarray"):
        model.partial_fit(sp.csr_matrix(X), y)
    broken = frame[:5].copy()
    broken.loc[2, "b"] = np.inf
    with pytest.raises(DataError, match="infinity in column 'b' of row 2"):
        model.partial_fit(broken, y[:5])


def test_a_saved_ensemble_goes_on_as_if_nothing_had_happened(tmp_path):
    X, y = moving(500)
    straight, stopped = grown(HUWRS(**SMALL), X, y), grown(HUWRS(**SMALL), X[:230], y[:230])
    tamis.save(stopped, tmp_path / "huwrs.tamis")
    resumed = tamis.load(tmp_path / "huwrs.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[230:], y[230:])
    np.testing.assert_array_equal(resumed.predict_proba(X), straight.predict_proba(X))
    assert resumed.drifts_ == straight.drifts_ != []


def test_runs_in_a_prequential_loop():
    X, y = moving(600)
    assert prequential((X, y), None, HUWRS(**SMALL), baselines="none").summary()["accuracy"] > 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_estimators", 0), ("chunk_size", 7), ("max_features", 0.0), ("max_features", 0), ("max_features", "sqrt"),
     ("estimator", GaussianNB), ("estimator", Perceptron()), ("estimator", "perceptron"), ("retrain_below", 1.1),
     ("silent_below", -0.1), ("n_bins", 1), ("categorical", [9]), ("random_state", None)],
)  # fmt: skip
def test_refuses_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        clone(HUWRS()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])


def test_a_learner_that_nobody_knows_is_named():
    with pytest.raises(UnknownNameError, match="estimator: No learner is named 'nbb'; did you mean 'nb'"):
        HUWRS(estimator="nbb").fit(np.eye(4), [0, 0, 1, 1])
