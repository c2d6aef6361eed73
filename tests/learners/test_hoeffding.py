"""Hoeffding trees: the twin node by node, any batching, drifts, classifiers in leaves, bad input, saving, export."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import CVFDT, VFDR, AdaptiveRandomForest, HoeffdingAdaptiveTree, HoeffdingTree, WeightedNaiveBayes
from tamis.errors import DataError
from tamis.learners import export_text, plot_tree
from tamis.learners.hoeffding.categories import MAX_CATEGORIES, Categories
from tamis.learners.hoeffding.nodes import Number, Pools
from tamis.learners.hoeffding.splits import update_statistics
from tests.twins.hoeffding import HoeffdingTwin

EAGER = {"grace_period": 40, "delta": 1e-2, "tie_threshold": 0.3}


def rows(rng, n, *, missing=0.03):
    """Two numbers, a coin and four categories; what decides the class changes in the middle."""
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 2, n), rng.integers(0, 4, n) * 1.5])
    before = np.arange(n) < n // 2
    y = np.where(before, (X[:, 0] > 0) + (X[:, 3] == 3), (X[:, 1] < 0.3) * 1 + (X[:, 3] == 1.5))
    y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def grown(model, X, y, cuts=()):
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        if stop > start:
            model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    return model


def state_of(model):
    """Return what a tree knows: its nodes, with what each has room for left out."""
    pools = model._pools_
    return [
        array.tobytes()
        for array in (pools.links, pools.numbers, pools.weights, pools.gaussians, pools.counts)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adaptive", "leaf", "categorical", "binary"),
    [
        (False, "majority", (), False),
        (False, "nb-adaptive", (2, 3), False),
        (False, "nb", (2, 3), True),
        (True, "majority", (), False),
        (True, "nb-adaptive", (2, 3), False),
    ],
)
def test_equals_the_twin_node_by_node(adaptive, leaf, categorical, binary):
    rng = np.random.default_rng(1)
    X, y = rows(rng, 1400 if leaf == "majority" else 700)
    twin = HoeffdingTwin(
        3, adaptive=adaptive, leaf=leaf, grace=40, delta=1e-2, tie=0.3, categorical=categorical, binary=binary
    )
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    options = {"leaf": leaf, "categorical": list(categorical), "binary_splits": binary, **EAGER}
    model = HoeffdingAdaptiveTree(bootstrap=False, **options) if adaptive else HoeffdingTree(**options)
    grown(model, X, y, np.sort(rng.integers(0, len(y), 9)))
    found, wanted = model.nodes_, twin.nodes()
    assert len(found) == len(wanted) >= 9
    for node, (depth, feature, threshold, weights) in zip(found, wanted, strict=True):
        assert (node.depth, node.feature) == (depth, feature)
        assert node.threshold == (None if threshold is None else pytest.approx(threshold))
        np.testing.assert_allclose(node.class_weights, weights, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X[-60:]), [twin.predict_proba(row) for row in X[-60:]], atol=1e-9
    )
    if adaptive:
        assert model.n_alternates_replaced_ == twin.replaced
        assert model.n_alternates_started_ > 0


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(("penalty", "categorical"), [(0.3, (2, 3)), (0.9, ())])
def test_regularised_trees_equal_the_twin(adaptive, penalty, categorical):
    rng = np.random.default_rng(1)
    X, y = rows(rng, 1400)
    twin = HoeffdingTwin(
        3, adaptive=adaptive, leaf="majority", grace=40, delta=1e-2, tie=0.3, categorical=categorical, penalty=penalty
    )  # fmt: skip
    for row, label in zip(X, y, strict=True):
        twin.learn(row, label)
    options = {"leaf": "majority", "categorical": list(categorical), **EAGER}
    make = HoeffdingAdaptiveTree if adaptive else HoeffdingTree
    more = {"bootstrap": False} if adaptive else {}
    model = grown(make(new_feature_penalty=penalty, **more, **options), X, y, [7, 700])
    assert [node[:3] for node in twin.nodes()] == [
        (node.depth, node.feature, None if node.threshold is None else pytest.approx(node.threshold))
        for node in model.nodes_
    ]


def test_a_regularised_tree_uses_fewer_features():
    """Ten noisy copies of two relevant features: a split on another copy has to pay for it."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20_000, 2))
    X = np.repeat(Z, 5, axis=1) + 0.3 * rng.normal(size=(20_000, 10))
    y = (Z[:, 0] > 0) ^ (Z[:, 1] > 0.3)
    plain, regularised = (
        HoeffdingTree(100, 1e-7, 0.1, new_feature_penalty=penalty).fit(X, y) for penalty in (0.0, 0.9)
    )
    used = [np.count_nonzero(model.feature_importances_) for model in (plain, regularised)]
    assert used == [10, 2]
    assert regularised.score(X, y) > plain.score(X, y) - 0.01


@settings(max_examples=15, deadline=None)
@given(
    adaptive=st.booleans(),
    cuts=st.lists(st.integers(0, 900), max_size=12).map(sorted),
    seed=st.integers(0, 5),
    max_nodes=st.sampled_from([None, 1, 7]),
)
def test_any_batching_leaves_the_same_bits(adaptive, cuts, seed, max_nodes):
    X, y = rows(np.random.default_rng(seed), 900)
    make = HoeffdingAdaptiveTree if adaptive else HoeffdingTree
    whole, parts = (make(categorical=[2, 3], max_nodes=max_nodes, **EAGER) for _ in range(2))
    assert state_of(grown(whole, X, y)) == state_of(grown(parts, X, y, cuts))
    alive = whole._pools_.links[:, -1] == 1
    assert alive.sum() == whole._pools_.state[6] <= (max_nodes or 10**9)
    assert whole.n_nodes_ <= alive.sum()
    slots = whole._pools_.links[alive, 8]
    assert sorted(slots[slots >= 0]) == sorted(set(slots[slots >= 0]))  # no leaf shares its statistics


def test_finds_the_features_and_follows_them():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(9000, 20))
    old, new = X[:, 4] + X[:, 11] > 1, X[:, 7] > 0.4
    plain, adaptive = HoeffdingTree(), HoeffdingAdaptiveTree()
    for model in (plain, adaptive):
        model.fit(X[:4000], old[:4000])
        assert set(np.argsort(model.feature_importances_)[-2:]) == {4, 11}
        assert model.feature_importances_.sum() == pytest.approx(1)
        model.partial_fit(X[4000:8000], new[4000:8000])
    assert adaptive.feature_importances_.argmax() == 7
    assert adaptive.n_alternates_replaced_ >= 1
    assert adaptive.score(X[8000:], new[8000:]) >= max(0.95, plain.score(X[8000:], new[8000:]))


def test_a_leaf_that_has_seen_one_class_does_not_split_by_rounding():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 4))
    y = X[:, 0] > 0.5
    noisy, at = y ^ (rng.random(6000) < 0.1), 0
    model = HoeffdingTree(tie_threshold=1.0, grace_period=50)
    while at == 0 or model.n_nodes_ == 1:
        model.partial_fit(X[at : at + 50], noisy[at : at + 50])
        at += 50
    assert all(np.count_nonzero(node.class_weights) == 2 for node in model.nodes_[1:])
    far = abs(X[:, 0] - model.nodes_[0].threshold) > 0.1
    model.partial_fit(X[far], y[far])
    assert model.n_nodes_ == 3


def test_alternates_that_are_no_better_are_dropped():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(6000, 3))
    y = X[:, 0] > 0.5
    noisy = np.where((np.arange(6000) > 2500) & (rng.random(6000) < 0.5), rng.random(6000) < 0.5, y)
    model = HoeffdingAdaptiveTree(leaf="majority").fit(X, noisy)
    pools = model._pools_
    assert model.n_alternates_started_ > 0
    assert (pools.links[:, -1] == 1).sum() == pools.state[6]
    assert pools.state[0] + pools.state[6] == len(pools.links)  # every place is free or in use


def test_reseeded_bootstrap_differs_and_repeats():
    X, y = rows(np.random.default_rng(0), 600)
    votes = [grown(HoeffdingAdaptiveTree(random_state=s, **EAGER), X, y).predict_proba(X) for s in (0, 0, 1)]
    np.testing.assert_array_equal(votes[0], votes[1])
    assert not np.array_equal(votes[0], votes[2])


@pytest.mark.slow
@pytest.mark.parametrize("library", ["HoeffdingTreeClassifier", "HoeffdingAdaptiveTreeClassifier"])
def test_is_as_right_as_rivers(library):
    tree = pytest.importorskip("river.tree")
    theirs = getattr(tree, library)(**({"seed": 0} if "Adaptive" in library else {}))
    mine = (HoeffdingAdaptiveTree if "Adaptive" in library else HoeffdingTree)(delta=1e-7)  # River's
    stream = tamis.load_stream("SEA", seed=0, n_rows=1500, n_drifts=0, n_irrelevant=3)
    right = np.zeros(2)
    for X, y in stream:
        for row, label in zip(np.asarray(X, dtype=float), y, strict=True):
            x = dict(enumerate(row.tolist()))
            right[0] += theirs.predict_one(x) == label
            theirs.learn_one(x, label)
            right[1] += hasattr(mine, "classes_") and mine.predict(row[None])[0] == label
            mine.partial_fit(row[None], [label], classes=[0, 1])
    assert right[1] / 1500 == pytest.approx(right[0] / 1500, abs=0.02)


@pytest.mark.parametrize("make", [HoeffdingTree, HoeffdingAdaptiveTree, AdaptiveRandomForest])
def test_a_value_that_a_class_has_not_had_counts_against_it(make):
    """Indicators of a class: rows of the others never have them, so their variance there is 0."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=3000)
    X = np.zeros((3000, 40))
    X[np.arange(3000), 10 * y + rng.integers(0, 10, size=3000)] = 1.0  # ten rare indicators of each class
    model = make(grace_period=10**6).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.99


def test_a_row_unlike_all_classes_goes_to_the_class_it_differs_from_least():
    X = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]] * 20)
    tree = HoeffdingTree(leaf="nb").fit(X, [0, 1] * 20)
    np.testing.assert_array_equal(
        tree.predict([[0.0, 0.0, 5.0], [5.0, 1.0, 1.0], [0.0, 7.0, 7.0]]), [0, 1, 0]
    )


@pytest.mark.parametrize("weight", [1.0, 3.0, 7.0])
def test_a_repeated_value_has_no_variance_whatever_its_weight(weight):
    pools = Pools(1, 0, 1)
    for value in [0.1] * 3:
        update_statistics(pools.arrays(), 0, np.array([value]), np.empty(0, np.int64), 0, weight)
    np.testing.assert_array_equal(pools.gaussians[0, 0, :, 0], [3 * weight, 0.1, 0.0, 0.1, 0.1])


# -- leaves that own a classifier --------------------------------------------------------------------------


@pytest.mark.parametrize("make", [HoeffdingTree, HoeffdingAdaptiveTree])
def test_a_leaf_has_its_own_classifier_and_children_inherit_it(make):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(700, 3))
    y = np.where(X[:, 0] > 0.5, X[:, 1] > 0.5, X[:, 2] > 0.7).astype(int)
    options = {"bootstrap": False} if make is HoeffdingAdaptiveTree else {}
    model = make(leaf=WeightedNaiveBayes(), max_depth=1, grace_period=200, tie_threshold=1.0, **options)
    for at in range(0, 700, 70):
        model.partial_fit(X[at : at + 70], y[at : at + 70], classes=[0, 1])
    root = model.nodes_[0]
    side = X[:, root.feature] <= root.threshold
    for part in (side, ~side):  # the rows before the split, then those of the side
        learned = part.copy()
        learned[:200] = True
        alone = WeightedNaiveBayes().partial_fit(X[learned], y[learned], classes=[0, 1])
        np.testing.assert_allclose(model.predict_proba(X[part]), alone.predict_proba(X[part]), atol=1e-9)
        assert model.leaf_of(X[part][0]).n_seen_ == learned.sum()
    assert not hasattr(model.leaf, "classes_")


def test_alternate_trees_begin_with_fresh_classifiers():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2600, 2))
    y = np.where(np.arange(2600) < 1000, X[:, 0] > 0.5, X[:, 0] < 0.5).astype(int)
    leaf = WeightedNaiveBayes(None, weight=None)
    model = HoeffdingAdaptiveTree(leaf=leaf, grace_period=100, random_state=1).fit(X, y)
    assert model.n_alternates_replaced_ >= 1
    assert model.score(X[-500:], y[-500:]) > 0.9


@pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn")  # GaussianNB after one row
def test_a_classifier_that_refuses_rows_leaves_the_tree_as_it_was():
    X = np.random.default_rng(0).uniform(size=(60, 2))
    model = HoeffdingAdaptiveTree(leaf=GaussianNB(var_smoothing=1e-3)).fit(X, np.arange(60) % 2)
    kept = model.predict_proba(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[0.5, 0.1], [np.nan, 1]], [0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), kept)
    assert model.n_seen_ == 60


# -- odd and bad data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [HoeffdingTree, HoeffdingAdaptiveTree, VFDR, CVFDT])
def test_categories_that_never_repeat_take_bounded_memory(method):
    """With a branch for each, whose leaf counts all of them, 4,800 categories took 13 GB."""
    rng, sizes = np.random.default_rng(0), []
    model = method(categorical=[1])
    for start in range(0, 3000, 500):
        X = np.column_stack([rng.normal(size=500), np.arange(start, start + 500.0)])
        model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
        sizes.append(model._categories_.n_cells)
    assert sizes == [500, *[MAX_CATEGORIES] * 5]
    assert len(tamis.dumps(model)) < 120e6
    assert np.isfinite(model.predict_proba(X)).all()
    tamis.loads(tamis.dumps(model)).partial_fit(X, X[:, 0] > 0)


def test_each_feature_has_its_own_room_for_categories():
    many, few = np.arange(3000.0), np.arange(3000.0) % 7
    categories = Categories()
    for part in np.array_split(np.column_stack([many, few]), 6):
        categories.cells(part, learn=True)
    assert categories.n_cells == MAX_CATEGORIES + 7
    cells = categories.cells(np.array([[2.0, 6.0], [2500.0, 8.0]]), learn=True)
    assert (cells[:, 0] >= 0).tolist() == [True, False]
    assert (cells[:, 1] >= 0).tolist() == [True, True]


def test_new_classes_and_categories_find_their_place():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (1200, 2)) * 10.0
    model = HoeffdingTree(categorical="all", grace_period=100).fit(
        X[:600], np.array(["a", "b", "a"])[X[:600, 0].astype(int) // 10]
    )
    assert [node.category for node in model.nodes_[1:]] == [*dict.fromkeys(X[:600, 0])]
    assert model.predict([[7.0, np.nan]]).shape == (1,)  # unknown, missing: the heaviest branch
    fresh = np.column_stack([np.full(50, 77.0), X[:50, 1]])
    model.partial_fit(fresh, ["new"] * 50)
    assert model.nodes_[-1].category == 77.0
    assert model.nodes_[-1].weight == 49  # the first one only made the branch
    assert model.predict([[77.0, 0.0]])[0] == "new"
    assert model.classes_.tolist() == ["a", "b", "new"]


def test_nothing_to_split_by_stays_a_leaf():
    ones = np.ones((3000, 2))
    assert HoeffdingTree().fit(ones, np.arange(3000) % 2).n_nodes_ == 1
    assert HoeffdingTree().fit(np.full((3000, 2), np.nan), np.arange(3000) % 2).depth_ == 0
    alone = HoeffdingTree().fit(np.random.default_rng(0).normal(size=(3000, 2)), np.zeros(3000, dtype=int))
    assert alone.n_leaves_ == 1
    assert alone.feature_importances_.tolist() == [0, 0]


def test_refuses_and_stays_as_it_was():
    X, y = rows(np.random.default_rng(0), 400)
    model = grown(HoeffdingTree(**EAGER), X, y)
    before = state_of(model)
    for bad, what in [(np.inf, "infinity in column 1 of row 2"), (1e200, "scale it")]:
        broken = X[:5].copy()
        broken[2, 1] = bad
        with pytest.raises(DataError, match=what):
            model.partial_fit(broken, y[:5])
    with pytest.raises(DataError, match="row 1"):
        model.partial_fit(X[:2], [1.0, np.nan])
    with pytest.raises(TypeError, match="toarray"):
        model.partial_fit(sp.csr_matrix(X[:2]), y[:2])
    assert state_of(model) == before
    assert model.n_seen_ == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [("grace_period", 0), ("delta", 1), ("tie_threshold", -1), ("leaf", "knn"), ("n_cuts", 0), ("max_depth", -1),
     ("max_nodes", 0), ("categorical", [9]), ("binary_splits", 2), ("bootstrap", "no"), ("random_state", -1)],
)  # fmt: skip
def test_refuses_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        HoeffdingAdaptiveTree(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])


# -- keeping and showing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", ["nb-adaptive", WeightedNaiveBayes()])
def test_goes_on_after_saving_copying_and_cloning(tmp_path, leaf):
    X, y = rows(np.random.default_rng(0), 500)
    model = grown(HoeffdingAdaptiveTree(leaf=leaf, categorical=[3], **EAGER), X[:300], y[:300])
    tamis.save(model, tmp_path / "tree.tamis")
    others = [tamis.load(tmp_path / "tree.tamis"), copy.deepcopy(model)]
    others.append(grown(clone(model), X[:300], y[:300]))
    grown(model, X[300:], y[300:])
    for other in others:
        grown(other, X[300:], y[300:])
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_text_and_picture():
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.uniform(size=3000), "colour": rng.integers(0, 3, 3000)})
    y = np.where(frame["colour"] == 1, "red", np.where(frame["size"] > 0.5, "big", "small"))
    model = HoeffdingTree(categorical=["colour"], max_depth=2).fit(frame, y)
    text = export_text(model)
    assert {"|--- colour == 0", "|--- colour == 1", "|--- colour == 2"} <= set(text.split("\n"))
    assert "|   |--- class: red" in text
    assert "|   |--- size <= " in text
    small = HoeffdingTree(max_depth=1).fit(frame[["size"]] / 1000, frame["size"] > 0.5)
    threshold = small.nodes_[0].threshold
    assert f"|--- size <= {threshold:.2g}\n" in export_text(small)
    assert 0.0004 < threshold < 0.0006
    short = export_text(model, ["a", "b"], max_depth=0)
    assert short.count("truncated branch of depth") == 3
    assert short.startswith("|--- b == ")
    rest = HoeffdingTree(categorical=["colour"], max_depth=1, binary_splits=True).fit(frame, y)
    assert "|--- colour != 1" in export_text(rest)
    ax = plot_tree(model)
    assert sum("bits" in label.get_text() for label in ax.texts) == model.n_nodes_ - model.n_leaves_
    with pytest.raises(ValueError, match="1 names"):
        export_text(model, ["a"])


def test_grows_up_to_its_largest_number_of_nodes():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    assert HoeffdingTree(max_nodes=3).fit(X, X[:, 0] > 0).n_nodes_ == 3
    assert HoeffdingTree(max_nodes=2).fit(X, X[:, 0] > 0).n_nodes_ == 1


def test_both_votes_of_a_leaf_are_counted_by_the_weight_of_the_rows():
    """With one class both votes are always right, whatever the bootstrap makes a row weigh."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = HoeffdingAdaptiveTree(leaf="nb-adaptive", random_state=0)
    model.partial_fit(X, np.zeros(100, dtype=int), classes=[0, 1])
    numbers = model._pools_.numbers[0]
    assert numbers[Number.RIGHT_BY_MAJORITY] == numbers[Number.RIGHT_BY_BAYES] > 0
