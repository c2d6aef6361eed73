"""HEFT-Stream: the twin, any batching, feature drifts, who is replaced, bad input, saving."""

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
from tamis import DISCUSS, FCBF, HEFTStream, HoeffdingTree, WeightedNaiveBayes, prequential
from tamis.errors import DataError, UnknownNameError
from tests.twins.heft_stream import HEFTTwin

SMALL = {"n_estimators": 4, "chunk_size": 60}


@parametrize_with_checks([HEFTStream(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def moving(n=900, n_features=6, seed=0):
    """What tells the class is feature 0, then 3; three classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    tells = np.where(np.arange(n) < n // 2, X[:, 0], X[:, 3])
    y = np.digitize(tells + 0.3 * rng.normal(size=n), [-0.5, 0.7])
    return X, y


def grown(model, X, y, cuts=()):
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        if stop > start:
            model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    return model


@pytest.mark.parametrize("seed", [0, 3])
def test_equals_the_twin(seed):
    X, y = moving(480)
    kinds = [WeightedNaiveBayes(None, weight=None), HoeffdingTree(grace_period=30, tie_threshold=0.3)]
    selector = FCBF(window=60)
    twin = HEFTTwin(6, 3, kinds, selector, size=4, chunk=60, seed=seed)
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    model = HEFTStream(**SMALL, estimators=kinds, random_state=seed)
    grown(model, X, y, [7, 59, 60, 200])
    assert model.drifts_ == twin.drifts != []
    assert model.selected_.tolist() == twin.selected
    assert [one.kind for one in model.members_] == [one["kind"] for one in twin.members]
    assert [one.columns.tolist() for one in model.members_] == [list(one["columns"]) for one in twin.members]
    np.testing.assert_allclose([one.weight for one in model.members_], twin.weights, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X[-40:]), [twin.predict_proba(row) for row in X[-40:]], atol=1e-9
    )


@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=12).map(sorted), seed=st.integers(0, 3))
def test_any_batching_leaves_the_same_bits(cuts, seed):
    X, y = moving(400, seed=seed)
    X[::17, 1] = np.nan
    whole = grown(HEFTStream(**SMALL, categorical=[5]), X.round(1), y)
    parts = grown(HEFTStream(**SMALL, categorical=[5]), X.round(1), y, cuts)
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    assert whole.drifts_ == parts.drifts_
    for model in (whole, parts):
        grown(model, X, y[::-1])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))


def test_follows_the_features_that_tell():
    X, y = moving(6000, 30)
    model = HEFTStream().fit(X[:3000], y[:3000])
    assert model.selected_.tolist() == [0]
    plain = HoeffdingTree().fit(X[:3000], y[:3000])
    for one in (model, plain):
        one.partial_fit(X[3000:4500], y[3000:4500])
    assert model.selected_.tolist() == [3]
    assert any(3000 <= row < 3300 for row in model.drifts_)
    assert model.score(X[4500:], y[4500:]) > plain.score(X[4500:], y[4500:]) + 0.1
    assert sum(member.weight for member in model.members_) == pytest.approx(1)
    assert max(model.members_, key=lambda member: member.weight).columns[0] == 3


def test_the_first_chunk_is_learned_by_all_and_begun_anew_with_what_was_selected():
    X, y = moving(100)
    model = grown(HEFTStream(3, 100), X[:99], y[:99])
    assert all(len(member.columns) == 6 for member in model.members_)
    assert (model.predict_proba(X).sum(axis=1) > 0.999).all()
    model.partial_fit(X[99:], y[99:])
    assert model.drifts_ == []  # nothing was selected before
    assert [member.columns.tolist() for member in model.members_] == [model.selected_.tolist()] * 3
    assert [member.kind for member in model.members_] == [0, 1, 0]


def test_any_classifiers_and_any_selector():
    X, y = moving(600)
    model = HEFTStream(3, 50, estimators=[GaussianNB(), "knn"], selector=DISCUSS(1)).fit(X, y)
    assert model.score(X[500:], y[500:]) > 0.5
    assert {type(member.model).__name__ for member in model.members_} <= {"GaussianNB", "WeightedKNN"}
    assert model.selected_.tolist() == [3]
    assert not hasattr(model.estimators[0], "classes_")
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[np.nan] * 6], [0])
    kept = model.predict_proba(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.vstack([X[:30], np.full((1, 6), np.nan)]), [*y[:30], 0])
    np.testing.assert_array_equal(model.predict_proba(X), kept)
    assert model.n_seen_ == 600


def test_categories_frames_and_late_classes():
    X, y = moving(400)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(f=np.arange(400) % 3)
    model = HEFTStream(**SMALL, categorical=["f"])
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
    straight, stopped = grown(HEFTStream(**SMALL), X, y), grown(HEFTStream(**SMALL), X[:230], y[:230])
    tamis.save(stopped, tmp_path / "heft.tamis")
    resumed = tamis.load(tmp_path / "heft.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[230:], y[230:])
    np.testing.assert_array_equal(resumed.predict_proba(X), straight.predict_proba(X))
    assert resumed.drifts_ == straight.drifts_


def test_reseeded_ensembles_differ_and_repeat():
    X, y = moving(300)
    votes = [grown(HEFTStream(**SMALL, random_state=s), X, y).predict_proba(X) for s in (0, 0, 1)]
    np.testing.assert_array_equal(votes[0], votes[1])
    assert not np.array_equal(votes[0], votes[2])


def test_runs_by_name():
    X, y = moving(600)
    assert prequential((X, y), None, HEFTStream(**SMALL), baselines="none").summary()["accuracy"] > 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_estimators", 0), ("chunk_size", 7), ("estimators", ()), ("estimators", "nb"), ("estimators", [GaussianNB]),
     ("estimators", [Perceptron()]), ("estimators", ["perceptron"]), ("selector", "fcbf"), ("categorical", [9]),
     ("random_state", None)],
)  # fmt: skip
def test_refuses_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        clone(HEFTStream()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])


def test_a_learner_that_nobody_knows_is_named():
    with pytest.raises(UnknownNameError, match="estimators: No learner is named 'nbb'; did you mean 'nb'"):
        HEFTStream(estimators=["nbb"]).fit(np.eye(4), [0, 0, 1, 1])
