"""CVFDT: the twin node by node, any batching, what is forgotten, drifts, odd data, bad input, saving."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import CVFDT, HoeffdingTree
from tests.learners.test_hoeffding import grown, rows
from tests.twins.cvfdt import CVFDTTwin

SOON = {"check_every": 50, "test_every": 90, "test_rows": 40}
EAGER = {**SOON, "grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}


def state_of(model):
    own = (model._rows_, model._cells_, model._codes_, model._births_, model._trials_)
    return [array.tobytes() for array in (*own, *vars(model._pools_).values())]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaf", "categorical", "binary", "window"),
    [
        ("majority", (), False, 150),
        ("nb-adaptive", (2, 3), False, 150),
        ("nb", (2, 3), True, 250),
    ],
)
def test_equals_the_twin_node_by_node(leaf, categorical, binary, window):
    X, y = rows(np.random.default_rng(1), 900)
    twin = CVFDTTwin(
        3, window=window, leaf=leaf, categorical=categorical, binary=binary, grace=40, delta=1e-2, tie=0.3, **SOON
    )  # fmt: skip
    model = CVFDT(window, leaf=leaf, categorical=list(categorical), binary_splits=binary, **EAGER)
    for stop in range(100, 901, 100):
        for i in range(stop - 100, stop):
            twin.learn(X[i], y[i])
        grown(model, X[stop - 100 : stop], y[stop - 100 : stop], [7, 50])
        found, wanted = model.nodes_, twin.nodes()
        assert [(node.depth, node.feature) for node in found] == [one[:2] for one in wanted]
        for node, (_, _, threshold, weights) in zip(found, wanted, strict=True):
            assert node.threshold == (None if threshold is None else pytest.approx(threshold))
            np.testing.assert_array_equal(node.class_weights, weights)
        np.testing.assert_allclose(
            model.predict_proba(X[-60:]), [twin.predict_proba(row) for row in X[-60:]], atol=1e-7
        )
    assert model.n_alternates_started_ == twin.started > 0
    assert model.n_alternates_replaced_ == twin.replaced
    assert model.n_alternates_dropped_ == twin.dropped
    assert twin.replaced + twin.dropped > 0


@settings(max_examples=8, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 700), max_size=12).map(sorted),
    seed=st.integers(0, 4),
    max_nodes=st.sampled_from([None, 7]),
)
def test_any_batching_leaves_the_same_bits(cuts, seed, max_nodes):
    X, y = rows(np.random.default_rng(seed), 700)
    whole, parts = (CVFDT(150, categorical=[2, 3], max_nodes=max_nodes, **EAGER) for _ in range(2))
    assert state_of(grown(whole, X, y)) == state_of(grown(parts, X, y, cuts))
    alive = whole._pools_.links[:, -1] == 1
    assert alive.sum() == whole._pools_.state[6] <= (max_nodes or 10**9)
    slots = whole._pools_.links[alive, 8]
    assert sorted(slots) == sorted(set(slots.tolist()) - {-1})  # every node has statistics of its own


def test_knows_the_rows_of_the_window_and_no_others():
    X, y = rows(np.random.default_rng(3), 1000)
    model = grown(CVFDT(200, categorical=[2, 3], **EAGER), X, y)
    nodes = model.nodes_
    np.testing.assert_array_equal(nodes[0].class_weights, np.bincount(y[-200:], minlength=3))
    kept = model._pools_.gaussians[model._pools_.links[model._pools_.state[3], 8]]
    for c in range(3):
        values = X[-200:][y[-200:] == c, 0]
        assert kept[c, 1, 0] == pytest.approx(np.nanmean(values), rel=1e-12)
        assert kept[c, 2, 0] == pytest.approx(np.nanvar(values) * np.isfinite(values).sum(), rel=1e-9)
        assert kept[c, 3:, 0].tolist() == [np.nanmin(values), np.nanmax(values)]  # counted again at row 1000
    assert all(node.class_weights.min() >= 0 for node in nodes)


def test_follows_the_feature_that_tells():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(9000, 12))
    y = np.where(np.arange(9000) < 4500, X[:, 4] > 0.5, X[:, 7] > 0.5).astype(int)
    model, plain = CVFDT(2000), HoeffdingTree()
    for one in (model, plain):
        one.fit(X[:4500], y[:4500])
        assert one.feature_importances_.argmax() == 4
        one.partial_fit(X[4500:7500], y[4500:7500])
    assert model.feature_importances_.argmax() == 7
    assert model.n_alternates_replaced_ >= 1
    assert model.score(X[7500:], y[7500:]) > max(0.98, plain.score(X[7500:], y[7500:]))


def test_without_drift_nothing_is_replaced():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(9000, 5))
    y = (X[:, 1] > 0.4).astype(int)
    model = CVFDT(2000).fit(X, y)
    assert model.n_alternates_started_ == 0
    assert model.score(X, y) > 0.98


def test_constant_features_that_were_not_constant_before():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) * [1, 1e9, 1]
    y = rng.integers(0, 2, 900)
    X[300:, 1] = 5.0
    X[:, 2] += 3 * y
    model = CVFDT(100, leaf="nb", **EAGER).partial_fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X[-100:], y[-100:]) > 0.8


def test_late_classes_categories_and_missing_values():
    X, y = rows(np.random.default_rng(0), 800, missing=0.3)
    X[400:, 3] += 6.0  # categories not met before
    model = CVFDT(150, categorical=[2, 3], **EAGER)
    model.partial_fit(X[:400], np.where(y[:400] == 2, 0, y[:400]))
    model.partial_fit(X[400:], y[400:])
    votes = model.predict_proba(np.vstack([X, np.full((1, 4), np.nan), [[99.0] * 4]]))
    np.testing.assert_allclose(votes.sum(axis=1), 1)


def test_a_saved_tree_goes_on_as_if_nothing_had_happened(tmp_path):
    X, y = rows(np.random.default_rng(0), 800)
    straight, stopped = (grown(CVFDT(150, **EAGER), X[:n], y[:n]) for n in (800, 430))
    tamis.save(stopped, tmp_path / "tree.tamis")
    resumed = tamis.load(tmp_path / "tree.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[430:], y[430:])
    assert state_of(resumed) == state_of(straight)


@pytest.mark.parametrize(
    ("name", "value"),
    [("window", 0), ("check_every", 0), ("test_every", 0), ("test_rows", 0), ("test_rows", 1001),
     ("leaf", HoeffdingTree())],
)  # fmt: skip
def test_refuses_parameters_of_its_own(name, value):
    with pytest.raises(ValueError, match=name):
        clone(CVFDT()).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])
