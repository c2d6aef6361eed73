"""Thinned points against all points: the weight up to any value errs by what was said, and no more was said."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.summaries.quantile_kernels import halve, thin


def thinned(points, weight, size, low=0.0, high=0.0):
    """Return the points that are kept, the weight of each, and what either sum of errors grew by."""
    kept, kept_weight = np.full((1, size), np.nan), np.zeros(1)
    lows, highs = np.array([low]), np.array([high])
    order = np.argsort(points)[None, :]
    thin(points[None], order, weight[None], np.zeros(1, np.int32), kept, kept_weight, lows, highs)
    return kept[0], kept_weight[0], lows[0] - low, highs[0] - high


def errors(points, weight, kept, kept_weight):
    """Return by how much the weight up to any value is too small and too large at most."""
    known = ~np.isnan(points)
    gaps = [
        kept_weight * (kept <= x).sum() - weight[known & (points <= x)].sum()
        for x in np.unique(points[known])
    ]
    return max(0.0, -min(gaps)), max(0.0, *gaps)


def drawn(n, rng, unlike):
    """Draw n points, some equal, among gaps and points without weight."""
    points = np.round(rng.normal(size=n), 1)
    weight = rng.uniform(0.2, 3.0, n) if unlike else np.full(n, 0.7)
    points, weight = np.r_[points, np.nan, 1.0, np.nan], np.r_[weight, 1.0, 0.0, 2.0]
    mixed = rng.permutation(n + 3)
    return points[mixed], weight[mixed]


@pytest.mark.parametrize(
    ("n", "unlike"), [(8, False), (4, False), (1, False), (13, False), (3, False), (17, True), (8, True)]
)
def test_the_error_is_half_a_point_or_none_where_points_repeat(n, unlike, rng):
    for _ in range(40):
        points, weight = drawn(n, rng, unlike)
        kept, kept_weight, low, high = thinned(points, weight, 8, 5.0, 2.0)
        total = weight[~np.isnan(points)].sum()
        assert kept_weight == pytest.approx(total / 8)
        assert set(kept) <= set(points[(weight > 0) & ~np.isnan(points)])
        said = 0.0 if not unlike and 8 % n == 0 else 0.5 * kept_weight
        np.testing.assert_allclose([low, high], said, atol=1e-12)
        assert max(np.array(errors(points, weight, kept, kept_weight)) - said) <= 1e-9


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (1.0, 3.0), (3.0, 1.0)])
def test_of_pairs_the_point_is_kept_whose_error_there_is_less_of(low, high, rng):
    for _ in range(40):
        points, weight = drawn(16, rng, unlike=False)
        kept, kept_weight, more_low, more_high = thinned(points, weight, 8, low, high)
        expected = [0.7, 0.0] if high > low else [0.0, 0.7]
        np.testing.assert_allclose([more_low, more_high], expected)
        assert max(np.array(errors(points, weight, kept, kept_weight)) - expected) <= 1e-9


@pytest.mark.parametrize("n", [16, 8, 4, 1, 13, 3, 40])
@pytest.mark.parametrize("high", [0.0, 9.0])
def test_sorted_points_of_one_weight_are_thinned_to_the_same(n, high, rng):
    points = np.r_[np.sort(rng.normal(size=n)), np.nan]
    kept, kept_weight, lows, highs = np.zeros((1, 8)), np.zeros(1), np.ones(1), np.full(1, high)
    halve(points[None], np.full(1, 0.7), np.zeros(1, np.int32), kept, kept_weight, lows, highs)
    expected = thinned(points, np.r_[np.full(n, 0.7), 0.7], 8, 1.0, high)
    np.testing.assert_array_equal(kept[0], expected[0])
    np.testing.assert_allclose([kept_weight[0], lows[0] - 1.0, highs[0] - high], expected[1:], atol=1e-12)


def test_features_without_a_slot_or_a_point_are_passed_over():
    points = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]])
    for slot, expected in (([-1, 0, 1], [[0.0], [4.0]]), ([1, 0, -1], [[0.0], [2.0]])):
        kept, kept_weight, low, high = np.zeros((2, 1)), np.zeros(2), np.zeros(2), np.ones(2)
        order = np.argsort(points, axis=1)
        thin(points, order, np.ones((3, 2)), np.array(slot, np.int32), kept, kept_weight, low, high)
        assert kept.tolist() == expected
        assert (kept_weight.tolist(), low.tolist(), high.tolist()) == ([0.0, 2.0], [0.0, 1.0], [1.0, 1.0])
