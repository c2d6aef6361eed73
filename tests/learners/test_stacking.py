"""Stacked trees of pairs: the twin, any batching, drifts, which pair counts, bad input, saving."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import HoeffdingTree, StreamingStacking
from tamis.errors import DataError
from tests.learners.test_hoeffding import grown
from tests.twins.stacking import StackingTwin

EAGER = {"grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}


def moving(n=700, seed=0, n_features=4):
    """Three classes by two of the numbers; half-way they are turned round."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = (X[:, 0] > 0).astype(int) + (X[:, 2] > 0.5)
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, np.where(np.arange(n) < n // 2, y, 2 - y)


def state_of(model):
    pools = model._pools_
    arrays = [model.weights_, model._bias_, model._clock_, model._roots_, model._detectors_]
    return [array.tobytes() for array in (*arrays, *vars(pools).values())]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "leaf", "drift"), [(1, "majority", 0.5), (2, "nb-adaptive", 0.05), (2, "nb", None)]
)
def test_equals_the_twin(size, leaf, drift):
    X, y = moving(500)
    twin = StackingTwin(4, 3, size=size, drift=drift, leaf=leaf, grace=40, delta=1e-2, tie=0.3)
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    model = grown(StreamingStacking(size, leaf=leaf, drift=drift, **EAGER), X, y, [7, 100, 333])
    assert model.n_drifts_ == twin.drifts
    assert (twin.drifts > 0) == (drift is not None)
    assert model.subsets_.tolist() == [list(subset) for subset in twin.subsets]
    np.testing.assert_allclose(model.weights_, twin.w, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X[-40:]), [twin.predict_proba(row) for row in X[-40:]], atol=1e-9
    )


@settings(max_examples=8, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 700), max_size=12).map(sorted),
    seed=st.integers(0, 4),
)
def test_any_batching_leaves_the_same_bits(cuts, seed):
    X, y = moving(seed=seed)
    whole, parts = (StreamingStacking(drift=0.05, **EAGER) for _ in range(2))
    assert state_of(grown(whole, X, y)) == state_of(grown(parts, X, y, cuts))
    one_by_one = np.vstack([whole.predict_proba(row[None]) for row in X[:30]])
    np.testing.assert_array_equal(whole.predict_proba(X[:30]), one_by_one)
    pools = whole._pools_
    assert pools.state[0] + pools.state[6] == len(pools.links)  # every place is free or in use


def test_finds_the_pair_that_tells_only_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 8))
    y = np.where(X[:, 2] * X[:, 5] > 0, "same", "other")
    model, tree = StreamingStacking(), HoeffdingTree()
    for one in (model, tree):
        one.fit(X[:7000], y[:7000])
    assert len(model.subsets_) == 28
    assert all(model.subsets_[worth.argmax()].tolist() == [2, 5] for worth in np.abs(model.weights_))
    assert model.score(X[7000:], y[7000:]) > 0.9 > tree.score(X[7000:], y[7000:])


def test_restarts_the_trees_whose_errors_rise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 5))
    y = np.where(np.arange(6000) < 3000, X[:, 0] > 0.5, X[:, 0] <= 0.5).astype(int)
    follows, stays = StreamingStacking(), StreamingStacking(drift=None)
    for model in (follows, stays):
        model.fit(X[:4000], y[:4000])
    assert follows.n_drifts_ > stays.n_drifts_ == 0
    assert follows.score(X[4000:], y[4000:]) > 0.9
    named = {tuple(subset) for subset in follows.subsets_.tolist()}
    assert named == set(combinations(range(5), 2))


def test_too_many_subsets_few_features_and_late_classes():
    X, y = moving(300)
    with pytest.raises(
        DataError, match="4 features have 6 subsets of 2, more than max_trees = 5: select features"
    ):
        StreamingStacking(max_trees=5).fit(X, y)
    assert StreamingStacking(3).fit(X[:, :2], y).subsets_.tolist() == [[0, 1]]  # there are no three
    model = StreamingStacking().partial_fit(X[:100], np.minimum(y[:100], 1))
    model.partial_fit(X[100:], y[100:])
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    before = state_of(model)
    broken = X[:3].copy()
    broken[1, 2] = np.inf
    with pytest.raises(DataError, match="infinity in column 2 of row 1"):
        model.partial_fit(broken, y[:3])
    assert state_of(model) == before


def test_a_saved_ensemble_goes_on_as_if_nothing_had_happened(tmp_path):
    X, y = moving()
    straight = grown(StreamingStacking(drift=0.05, **EAGER), X, y)
    stopped = grown(StreamingStacking(drift=0.05, **EAGER), X[:430], y[:430])
    tamis.save(stopped, tmp_path / "stack.tamis")
    resumed = tamis.load(tmp_path / "stack.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[430:], y[430:])
    assert state_of(resumed) == state_of(straight)


@pytest.mark.parametrize(
    ("name", "value"),
    [("size", 0), ("drift", 0.0), ("leaf", HoeffdingTree()), ("max_trees", 0), ("grace_period", 0), ("max_depth", -1)],
)  # fmt: skip
def test_refuses_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        clone(StreamingStacking()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])
