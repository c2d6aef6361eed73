"""Forests: the twin, any batching and number of threads, drifts, what is drawn, bad input, saving."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import AdaptiveRandomForest, HoeffdingTree, StreamingRandomPatches
from tamis.catalog import find_learner
from tamis.learners.subsets import resolve_max_features
from tests.learners.test_hoeffding import grown, rows
from tests.twins.forest import ForestTwin

EAGER = {"grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}


def turned(n, seed=1):
    """Two numbers, a coin and four categories; half-way the labels are turned round."""
    X, y = rows(np.random.default_rng(seed), n)
    return X, np.where(np.arange(n) < n // 2, y, 2 - y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_leaf", "leaf", "categorical", "n_drawn", "rate", "warning", "penalty"),
    [
        (True, "majority", (), 2, 6.0, 0.5, 0.0),
        (True, "majority", (), 2, 6.0, 0.5, 0.6),
        (True, "nb-adaptive", (2, 3), 2, 2.0, 0.5, 0.0),
        (True, "majority", (2, 3), 3, 2.0, 0.5, 0.6),
        (False, "nb-adaptive", (2, 3), 3, 1.0, None, 0.0),
        (False, "nb", (), 1, None, 0.5, 0.0),
    ],
)
def test_equals_the_twin(by_leaf, leaf, categorical, n_drawn, rate, warning, penalty):
    X, y = turned(700, 0)  # other rows may tie, when rounding decides what a leaf predicts
    twin = ForestTwin(
        3, 4, trees=2, n_drawn=n_drawn, rate=rate, warning=warning, drift=1e-3, by_leaf=by_leaf, leaf=leaf,
        categorical=categorical, grace=40, delta=1e-2, tie=0.3, seed=5, penalty=penalty,
    )  # fmt: skip
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    make = AdaptiveRandomForest if by_leaf else StreamingRandomPatches
    model = make(
        2, n_drawn, bagging=rate, warning=warning, drift=1e-3, leaf=leaf, categorical=list(categorical),
        random_state=5, new_feature_penalty=penalty, **EAGER,
    )  # fmt: skip
    grown(model, X, y, [100, 101, 350])
    assert model.n_drifts_ == twin.events[1].sum() > 0
    assert model.n_warnings_ == twin.events[0].sum()
    assert (model.n_warnings_ > 0) == (warning is not None)
    for nodes, tree in zip(model._nodes(), twin.trees, strict=True):
        wanted = tree.nodes()
        assert [(node.depth, node.feature) for node in nodes] == [one[:2] for one in wanted]
        for node, (_, _, threshold, weights) in zip(nodes, wanted, strict=True):
            assert node.threshold == (None if threshold is None else pytest.approx(threshold))
            np.testing.assert_allclose(node.class_weights, weights, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X[-60:]), [twin.predict_proba(row) for row in X[-60:]], atol=1e-9
    )


@settings(max_examples=8, deadline=None)
@given(
    make=st.sampled_from([AdaptiveRandomForest, StreamingRandomPatches]),
    cuts=st.lists(st.integers(0, 900), max_size=12).map(sorted),
    seed=st.integers(0, 5),
    max_nodes=st.sampled_from([None, 7]),
)
def test_any_batching_and_any_threads_leave_the_same_bits(make, cuts, seed, max_nodes):
    X, y = turned(900, seed)
    options = {"categorical": [2, 3], "warning": 0.3, "drift": 0.1, "max_nodes": max_nodes, **EAGER}
    whole, parts, shared = (make(3, 3, n_jobs=n_jobs, **options) for n_jobs in (None, None, 2))
    grown(whole, X, y), grown(parts, X, y, cuts), grown(shared, X, y)
    votes = whole.predict_proba(X)
    for other in (parts, shared):
        np.testing.assert_array_equal(other.predict_proba(X), votes)
        assert (other.n_drifts_, other.n_warnings_) == (whole.n_drifts_, whole.n_warnings_)
    assert max_nodes is None or whole.n_nodes_.max() <= max_nodes


def test_one_tree_of_all_features_that_counts_each_row_once_is_a_hoeffding_tree():
    X, y = rows(np.random.default_rng(2), 1500)
    forest = AdaptiveRandomForest(
        1, None, bagging=None, warning=None, drift=None, categorical=[2, 3], **EAGER
    )
    tree = HoeffdingTree(categorical=[2, 3], **EAGER)
    grown(forest, X, y), grown(tree, X, y)
    assert forest.n_nodes_ == [tree.n_nodes_]
    np.testing.assert_allclose(forest.predict_proba(X), tree.predict_proba(X), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(forest.feature_importances_, tree.feature_importances_, rtol=1e-12)


def test_rows_count_as_poisson_says_and_trees_differ():
    X, y = np.random.default_rng(0).uniform(size=(4000, 3)), np.zeros(4000, int)
    forest = AdaptiveRandomForest(2, bagging=2.5).partial_fit(X, y, classes=[0, 1])
    weights = [tree.pools.weights[tree.pools.state[3], 0] / 4000 for tree in forest._trees_]
    assert weights == pytest.approx([2.5, 2.5], abs=4 * np.sqrt(2.5 / 4000))
    assert weights[0] != weights[1]


@pytest.mark.parametrize(("make", "by_leaf"), [(AdaptiveRandomForest, True), (StreamingRandomPatches, False)])
def test_every_feature_is_drawn_equally_often(make, by_leaf):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 12))
    y = (X.sum(axis=1) > 6).astype(int)
    forest = make(40, 3, grace_period=20, delta=0.5).fit(X, y)
    found = np.concatenate([np.unique(t.drawn[t.drawn[:, -1] >= 0, :-1], axis=0) for t in forest._trees_])
    assert (np.diff(found, axis=1) > 0).all()
    assert (len(found) > 400) if by_leaf else (len(found) == 40)
    n = len(found)
    counts = np.bincount(found.ravel(), minlength=12)
    assert np.abs(counts - n / 4).max() < 4 * np.sqrt(n * 3 / 16)


def test_the_streaming_random_forest_of_the_catalogue_keeps_its_trees_and_their_two_features():
    entry = find_learner("streaming-random-forest")
    srf = entry.load()(**dict(entry.parameters)).set_params(grace_period=20, delta=0.5)
    X, y = np.random.default_rng(0).uniform(size=(2000, 8)), np.arange(2000) < 1000
    y = np.where(y, X[:, 0] > 0.5, X[:, 0] < 0.5)
    srf.partial_fit(X[:1500], y[:1500])
    drawn = [tree.drawn.copy() for tree in srf._trees_]
    srf.partial_fit(X[1500:], y[1500:])
    assert len(srf._trees_) == 100
    assert srf.n_drifts_ == srf.n_warnings_ == 0
    for before, tree, nodes in zip(drawn, srf._trees_, srf._nodes(), strict=True):
        subset = np.unique(tree.drawn[tree.drawn[:, -1] >= 0, :-1], axis=0)
        assert subset.shape == (1, 2)
        assert subset.tolist() == np.unique(before[before[:, -1] >= 0, :-1], axis=0).tolist()
        assert {node.feature for node in nodes} - {None} <= set(subset[0].tolist())


def test_recovers_from_a_drift_sooner_than_a_tree():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(8000, 10))
    y = np.where(np.arange(8000) < 4000, X[:, 0] > 0.5, X[:, 1] > 0.5).astype(int)
    forest, tree = AdaptiveRandomForest(max_features=0.6), HoeffdingTree()
    for model in (forest, tree):
        model.partial_fit(X[:4000], y[:4000]).partial_fit(X[4000:6000], y[4000:6000])
    assert forest.score(X[6000:], y[6000:]) > max(0.95, tree.score(X[6000:], y[6000:]))
    assert forest.n_drifts_ >= 10


def test_late_classes_categories_and_missing_values():
    X, y = rows(np.random.default_rng(0), 1200, missing=0.2)
    X[600:, 3] += 6.0  # categories not met before
    forest = AdaptiveRandomForest(4, 2, categorical=[2, 3], warning=0.3, drift=0.1, **EAGER)
    forest.partial_fit(X[:600], np.where(y[:600] == 2, 0, y[:600]))
    assert forest.classes_.tolist() == [0, 1]
    forest.partial_fit(X[600:], y[600:])
    votes = forest.predict_proba(np.vstack([X, np.full((1, 4), np.nan), [[99.0] * 4]]))
    assert votes.shape == (1202, 3)
    np.testing.assert_allclose(votes.sum(axis=1), 1.0)


@pytest.mark.parametrize("make", [AdaptiveRandomForest, StreamingRandomPatches])
def test_a_saved_forest_goes_on_as_if_nothing_had_happened(make, tmp_path):
    X, y = turned(900)
    options = {"categorical": [2, 3], "warning": 0.5, "drift": 1e-3, **EAGER}
    straight, stopped, at = make(3, 3, **options), make(3, 3, **options), 0
    grown(straight, X, y)
    while at == 0 or not any(stopped._background_):
        grown(stopped, X[at : at + 10], y[at : at + 10])
        at += 10
    tamis.save(stopped, tmp_path / "forest.tamis")
    resumed = tamis.load(tmp_path / "forest.tamis")
    np.testing.assert_array_equal(resumed.predict_proba(X), stopped.predict_proba(X))
    resumed.partial_fit(X[at:], y[at:])
    np.testing.assert_array_equal(resumed.predict_proba(X), straight.predict_proba(X))


@pytest.mark.parametrize(
    ("max_features", "n_features", "wanted"),
    [("sqrt", 50, 8), ("sqrt", 1, 1), (0.6, 50, 30), (0.01, 5, 1), (1.0, 7, 7), (1, 7, 1), (9, 7, 7), (None, 3, 3)],
)  # fmt: skip
def test_how_many_features_are_drawn(max_features, n_features, wanted):
    assert resolve_max_features(max_features, n_features) == wanted


@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 0}, {"max_features": 0}, {"max_features": 1.5}, {"max_features": "log2"}, {"bagging": 0},
        {"warning": 0.0}, {"drift": 1.0}, {"leaf": HoeffdingTree()}, {"n_jobs": 0}, {"random_state": None},
    ],
)  # fmt: skip
def test_parameters_that_mean_nothing_are_refused(options):
    name = next(iter(options))
    model = clone(AdaptiveRandomForest()).set_params(**options)
    with pytest.raises(ValueError, match=name):
        model.partial_fit([[1.0, 2.0]], [0])
    assert not hasattr(model, "n_seen_")


@pytest.mark.parametrize("make", [AdaptiveRandomForest, StreamingRandomPatches])
def test_an_error_after_one_row_restores_trees_that_split_or_are_replaced(make, monkeypatch):
    """Each of 300 rows fails once: trees split, background trees start, drifts replace trees, a class appears."""
    X, y = turned(1200)
    y[950:1100] = 2 - y[950:1100]
    y[1150:] += 2 * (np.arange(50) % 5 == 0)
    forest = make(3, grace_period=20, tie_threshold=0.5, warning=0.9, drift=0.5).fit(X[:900], y[:900])
    nodes, drifts, learn = forest.n_nodes_.copy(), forest.n_drifts_, make._learn

    def late(self, rows, codes):
        learn(self, rows, codes)
        raise MemoryError

    for i in range(900, 1200):
        before, row = tamis.dumps(forest), (X[i : i + 1], y[i : i + 1])
        with monkeypatch.context() as patch:
            patch.setattr(make, "_learn", late)
            with pytest.raises(MemoryError):
                forest.partial_fit(*row)
        assert tamis.dumps(forest) == before
        assert tamis.dumps(forest.partial_fit(*row)) == tamis.dumps(tamis.loads(before).partial_fit(*row))
    assert (forest.n_nodes_ != nodes).any()
    assert forest.n_drifts_ > drifts
    assert len(forest.classes_) > 2


@pytest.mark.parametrize("changed", [np.float32, np.asfortranarray])
def test_an_array_of_another_type_or_order_is_refused(changed):
    X, y = turned(300)
    forest = AdaptiveRandomForest(2).fit(X, y)
    forest._trees_[1].pools.weights = changed(forest._trees_[1].pools.weights)
    for use in (
        lambda: forest.partial_fit(X[:1], y[:1]),
        lambda: forest.partial_fit(X, y),
        lambda: forest.predict(X),
    ):
        with pytest.raises(tamis.errors.StateError, match=r"pools\.weights"):
            use()
