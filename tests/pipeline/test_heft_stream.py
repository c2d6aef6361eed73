"""HEFT-Stream: the twin, feature drifts, who is replaced; `learners/test_chunked.py` has what HUWRS does too."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from tamis import DISCUSS, FCBF, HEFTStream, HoeffdingTree, WeightedNaiveBayes
from tests.learners.test_hoeffding import grown
from tests.twins.heft_stream import HEFTTwin

SMALL = {"n_estimators": 4, "chunk_size": 60}


def moving(n=900, n_features=6, seed=0):
    """What tells the class is feature 0, then 3; three classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    tells = np.where(np.arange(n) < n // 2, X[:, 0], X[:, 3])
    y = np.digitize(tells + 0.3 * rng.normal(size=n), [-0.5, 0.7])
    return X, y


@pytest.mark.slow
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


def test_the_first_chunk_is_learned_by_all_and_restarted_with_what_was_selected():
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


def test_reseeded_ensembles_differ_and_repeat():
    X, y = moving(300)
    votes = [grown(HEFTStream(**SMALL, random_state=s), X, y).predict_proba(X) for s in (0, 0, 1)]
    np.testing.assert_array_equal(votes[0], votes[1])
    assert not np.array_equal(votes[0], votes[2])


@pytest.mark.parametrize(
    ("name", "value"),
    [("estimators", ()), ("estimators", "nb"), ("selector", "fcbf")],
)
def test_refuses_parameters_of_its_own(name, value):
    with pytest.raises(ValueError, match=name):
        clone(HEFTStream()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])
