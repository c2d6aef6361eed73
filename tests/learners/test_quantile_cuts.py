"""Thresholds at quantiles: the twin, the counts that are exact, and trees on heavy tails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import HoeffdingAdaptiveTree, HoeffdingTree
from tamis.errors import StateError
from tamis.learners.hoeffding.splits import best_edge, count_value, weight_up_to
from tests.twins.quantile_cuts import QuantileCuts


def counted(values, codes, n_edges, n_classes, weight=1.0):
    edges, bins = np.full(n_edges, np.inf), np.zeros((n_classes, n_edges + 1))
    for i, (x, c) in enumerate(zip(values, codes, strict=True)):
        count_value(edges, bins, c, x, weight, weight * (i + 1))
    return edges, bins


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-30, 30), min_size=1, max_size=150),
    n_edges=st.sampled_from([1, 2, 3, 5, 10]),
    n_classes=st.integers(1, 3),
)
def test_equals_the_twin(values, n_edges, n_classes):
    codes = [(7 * i + x) % n_classes for i, x in enumerate(values)]
    twin = QuantileCuts(n_edges, n_classes)
    for x, c in zip(values, codes, strict=True):
        twin.count(c, float(x), 1.0)
    edges, bins = counted(np.array(values, dtype=float), codes, n_edges, n_classes)
    n = len(twin.bins) - 1
    np.testing.assert_array_equal(edges[:n], [edge for edge, _ in twin.bins[:-1]])
    np.testing.assert_array_equal(bins[:, :n], np.array([weights for _, weights in twin.bins[:-1]]).T)
    np.testing.assert_array_equal(bins[:, -1] if n == n_edges else bins[:, n], twin.bins[-1][1])
    assert bins.sum() == len(values)
    assert (edges[1:] >= edges[:-1]).all()


def test_few_values_are_counted_exactly_and_divide_the_classes():
    values, codes = np.repeat([3.0, 1.0, 2.0], 20), np.repeat([1, 0, 0], 20)
    edges, bins = counted(values, codes, 5, 2)
    np.testing.assert_array_equal(edges, [1.0, 2.0, 3.0, np.inf, np.inf])
    gain, edge = best_edge(edges, bins, *np.empty((3, 2)))
    assert edge == 2.0
    assert gain == pytest.approx(np.log2(3) - 2 / 3)
    assert [weight_up_to(edges, bins, c, 2.0) for c in (0, 1)] == [40.0, 0.0]


@pytest.mark.parametrize("in_order", [False, True])
def test_edges_follow_the_quantiles_of_heavy_tails(in_order):
    """Each of 21 bins should have 4.8 % of the values; also if they arrive in ascending order."""
    values = np.random.default_rng(0).standard_cauchy(20_000)
    edges, _ = counted(np.sort(values) if in_order else values, np.zeros(len(values), int), 20, 1)
    shares = np.diff(np.searchsorted(np.sort(values), edges), prepend=0, append=len(values)) / len(values)
    assert shares.max() < 0.15
    assert np.sort(np.abs(edges))[5] < 1.0


@pytest.mark.parametrize("make", [HoeffdingTree, HoeffdingAdaptiveTree])
def test_cauchy_columns_are_divided_at_zero(make):
    """Normal distributions miss the threshold in 2,000 rows: their range and variance are those of the tails."""
    accuracy = {"normal": [], "quantiles": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_cauchy((4000, 5))
        y = ((X[:, 0] > 0) ^ (rng.random(4000) < 0.05)).astype(int)
        for splitter, scores in accuracy.items():
            scores.append(make(splitter=splitter).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]))
    assert min(accuracy["quantiles"]) > 0.92
    assert np.mean(accuracy["normal"]) < 0.8


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 600), max_size=8).map(sorted), seed=st.integers(0, 5))
def test_any_batching_leaves_the_same_bits(cuts, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((600, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) > 0) + (rng.random(600) < 0.1)
    models = [HoeffdingAdaptiveTree(50, 0.05, 0.3, splitter="quantiles") for _ in range(2)]
    for model, ends in zip(models, ([], cuts), strict=True):
        for start, stop in zip([0, *ends], [*ends, 600], strict=True):
            if stop > start:
                model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    np.testing.assert_array_equal(models[0]._pools_.bins, models[1]._pools_.bins)


def test_continues_after_saving_with_a_new_class(tmp_path):
    X = np.random.default_rng(0).standard_cauchy((2000, 4))
    y = (X[:, 0] > 0).astype(int)
    model = HoeffdingTree(splitter="quantiles").fit(X, y)
    tamis.save(model, tmp_path / "tree.tamis")
    loaded = tamis.load(tmp_path / "tree.tamis")
    for one in (model, loaded):
        one.partial_fit(X[:500], y[:500] + 1)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert model.predict_proba(X).shape == (2000, 3)


@pytest.mark.parametrize(("name", "value"), [("edges", np.nan), ("edges", -np.inf), ("bins", -1.0)])
def test_impossible_counts_are_rejected(name, value):
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = HoeffdingTree(splitter="quantiles").fit(X, X[:, 0] > 0)
    getattr(model._pools_, name)[0, 0, ..., 1] = value
    with pytest.raises(StateError, match=name):
        model._state_spec.check_values(model)
