"""HUWRS: the twin, which members restart, votes, unlabelled rows; `test_chunked.py` has what HEFT-Stream does too."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from tamis import HUWRS, HoeffdingTree, WeightedNaiveBayes
from tamis.errors import DataError
from tests.learners.test_chunked import moving
from tests.learners.test_hoeffding import grown
from tests.twins.huwrs import HUWRSTwin

SMALL = {"n_estimators": 4, "chunk_size": 60, "estimator": "nb", "retrain_below": 0.85}
ALONE = {"n_estimators": 6, "chunk_size": 200, "max_features": 1, "estimator": "nb"}


@pytest.mark.slow
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


def test_those_whose_features_moved_restart():
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
    then, drifts = model._reference_.copy(), list(model.drifts_)
    moved = X[:90].copy()
    moved[:, 0] += 50
    model.reweigh(moved)
    has_it = np.array([0 in member.columns for member in model.members_])
    assert model.weights_[has_it].max() < model.weights_[~has_it].min()
    assert [member.model.n_seen_ for member in model.members_] == kept
    np.testing.assert_array_equal(model._reference_, then)
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


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_features", 0.0), ("max_features", 0), ("max_features", "sqrt"), ("retrain_below", 1.1),
     ("silent_below", -0.1), ("n_bins", 1)],
)  # fmt: skip
def test_refuses_parameters_of_its_own(name, value):
    with pytest.raises(ValueError, match=name):
        clone(HUWRS()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])
