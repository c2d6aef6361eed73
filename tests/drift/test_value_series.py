"""The variance inflation of autocorrelated values against its twin, and on values whose mean shifts."""

import numpy as np
import pytest

from tamis.drift.value_series import SERIES_SIZE, add_values
from tests.twins import drift as twin


def inflation(values, every=1):
    series = np.zeros(SERIES_SIZE)
    add_values(np.asarray(values, dtype=float), series, every)
    return max(series[2], 1.0)


@pytest.mark.parametrize(("n", "length"), [(0, 1), (15, 2), (100, 3), (800, 5), (3001, 20)])
def test_inflation_is_the_twins(n, length, rng):
    values = 1e3 + np.repeat(rng.normal(size=n), length)[:n]
    assert inflation(values) == pytest.approx(twin.variance_inflation(values), rel=1e-6)


def test_any_parts_are_all_at_once(rng):
    values = np.repeat(rng.random(300), 4)
    whole, parts = np.zeros(SERIES_SIZE), np.zeros(SERIES_SIZE)
    add_values(values, whole, 32)
    for part in np.split(values, [1, 2, 40, 64, 700]):
        add_values(part, parts, 32)
    np.testing.assert_array_equal(whole, parts)
    assert whole[2] > 2


def test_a_shift_of_the_mean_is_no_autocorrelation():
    found = 0
    for seed in range(100):
        values = np.random.default_rng(seed).random(3000) < np.repeat([0.1, 0.4], 1500)
        found += inflation(values, 32) > 1
    assert found <= 5  # 1.6 % in 500 runs


def test_constant_values_are_not_autocorrelated():
    assert inflation(np.full(1000, 0.1)) == 1.0
