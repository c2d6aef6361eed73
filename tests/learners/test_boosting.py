from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson
from sklearn.base import clone

import tamis
from tamis import HoeffdingTree, OzaBoost
from tamis.learners.hoeffding.forest import _count
from tests.learners.test_hoeffding import grown, rows
from tests.twins.boosting import OzaBoostTwin

EAGER = {"grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize(("leaf", "categorical"), [("majority", ()), ("nb-adaptive", (2, 3))])
def test_equals_the_twin(leaf, categorical):
    X, y = rows(
        np.random.default_rng(4), 400
    )  # other rows may tie, when rounding decides what a leaf predicts
    twin = OzaBoostTwin(3, 4, 3, 5, leaf=leaf, categorical=categorical, grace=40, delta=1e-2, tie=0.3)
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    model = OzaBoost(3, leaf=leaf, categorical=list(categorical), random_state=5, **EAGER)
    grown(model, X, y, [100, 101, 250])
    np.testing.assert_allclose([tree.tally[0] for tree in model._trees_], twin.right, rtol=1e-9)
    np.testing.assert_allclose(
        model.tree_errors_, np.array(twin.wrong) / np.add(twin.right, twin.wrong), rtol=1e-9
    )
    for nodes, tree in zip(model._nodes(), twin.trees, strict=True):
        assert [(node.depth, node.feature) for node in nodes] == [one[:2] for one in tree.nodes()]
    assert max(model.n_nodes_) > 1
    np.testing.assert_allclose(
        model.predict_proba(X[-60:]), [twin.predict_proba(row) for row in X[-60:]], atol=1e-9
    )


@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(0, 500), max_size=12).map(sorted), seed=st.integers(0, 5))
def test_any_batching_leaves_the_same_bits(cuts, seed):
    X, y = rows(np.random.default_rng(seed), 500)
    whole, parts = (OzaBoost(3, categorical=[2, 3], max_nodes=7, **EAGER) for _ in range(2))
    grown(whole, X, y), grown(parts, X, y, cuts)
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))
    assert whole.n_nodes_.max() <= 7


@pytest.mark.parametrize("rate", [1e-3, 0.5, 1.0, 7.3, 100.0])
def test_rows_count_as_poisson_says(rate):
    shares = np.concatenate([np.linspace(0, 1, 400, endpoint=False), [1 - 2**-40]])
    counts = [_count(share, rate) for share in shares]
    np.testing.assert_array_equal(counts, poisson.ppf(np.nextafter(shares, 1), rate))


def test_half_of_the_weight_is_on_the_errors_of_the_tree_before(rng):
    X = rng.uniform(size=(3000, 4))
    y = (X[:, :3].sum(axis=1) > 1.5).astype(int)
    model = OzaBoost(2, max_depth=1, leaf="majority", **EAGER).fit(X[:2000], y[:2000])
    wrong = model._trees_[0].tally[1] - model._trees_[0].tally[0]
    assert wrong / model._trees_[0].tally[1] < 0.4
    assert model._trees_[1].tally[1] == pytest.approx(2000, rel=0.02)


def test_golden():
    """Boosted stumps add up three features, of which a stump has one; accuracies as measured at first."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(10_000, 5))
    y = (X[:, :3].sum(axis=1) > 1.5).astype(int)
    scores = [
        model.fit(X[:8000], y[:8000]).score(X[8000:], y[8000:])
        for model in (HoeffdingTree(max_depth=1, leaf="majority"), OzaBoost(max_depth=1, leaf="majority"))
    ]
    assert scores == pytest.approx([0.7145, 0.8845], abs=1e-9)


def test_many_trees_that_are_wrong_at_first():
    model = OzaBoost(1000).partial_fit([[0.0], [1.0]], [0, 1])
    assert np.isfinite(model.tree_errors_).all()
    np.testing.assert_allclose(model.predict_proba([[0.0]]).sum(), 1.0)


def test_late_classes_and_a_saved_model_resume(tmp_path):
    X, y = rows(np.random.default_rng(0), 900, missing=0.2)
    model = OzaBoost(3, categorical=[2, 3], **EAGER)
    model.partial_fit(X[:300], np.where(y[:300] == 2, 0, y[:300]))
    assert model.classes_.tolist() == [0, 1]
    model.partial_fit(X[300:600], y[300:600])
    tamis.save(model, tmp_path / "model.tamis")
    resumed = tamis.load(tmp_path / "model.tamis")
    for one in (model, resumed):
        one.partial_fit(X[600:], y[600:])
    np.testing.assert_array_equal(resumed.predict_proba(X), model.predict_proba(X))
    assert model.predict_proba(X).shape == (900, 3)


@pytest.mark.parametrize("options", [{"n_estimators": 0}, {"leaf": HoeffdingTree()}, {"random_state": None}])
def test_parameters_out_of_range(options):
    model = clone(OzaBoost()).set_params(**options)
    with pytest.raises(ValueError, match=next(iter(options))):
        model.partial_fit([[1.0, 2.0]], [0])
    assert not hasattr(model, "n_seen_")
