"""Inflations of dependent rows equal their definitions, and are 1 for independent rows."""

import numpy as np
import pytest

from tamis.dependence.long_run import (
    anova_inflation,
    contrast_inflation,
    cycle_inflation,
    feature_inflation,
    inflated_pvalue,
    table_inflation,
    uncertainty,
)
from tests.twins import dependent_rows as twin


def counted(cells, y, n_bins, n_classes, n_blocks):
    counts = np.zeros((n_blocks, n_classes, n_bins, 1))
    np.add.at(counts, (np.arange(len(y)) * n_blocks // len(y), y, cells, 0), 1.0)
    return counts, counts.sum(axis=(2, 3))


@pytest.mark.parametrize(("n_bins", "n_classes"), [(2, 2), (5, 2), (3, 4)])
def test_a_tables_inflation_equals_its_definition(n_bins, n_classes):
    rng = np.random.default_rng(0)
    cells, y = np.repeat(rng.integers(0, n_bins, 60), 10), np.repeat(rng.integers(0, n_classes, 60), 10)
    counts, weight2 = counted(cells, y, n_bins, n_classes, 20)
    blocks = np.array_split(np.arange(600), 20)
    expected = twin.table_inflation(cells, y, n_bins, n_classes, blocks)
    found, freedom, own = table_inflation(counts, weight2, 19.0)
    assert found[0] == pytest.approx(expected)
    assert 1.0 <= freedom[0] <= (n_bins - 1) * (n_classes - 1)
    assert own[0] > 3.0


def test_independent_rows_inflate_nothing_on_average():
    rng = np.random.default_rng(1)
    found = [
        table_inflation(*counted(*rng.integers(0, 3, (2, 960)), 3, 3, 32), 31.0)[0][0] for _ in range(200)
    ]
    assert 1.0 < np.mean(found) < 1.15  # never below 1


def test_of_two_classes_anova_and_contrast_agree():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 2, 5))
    M = np.einsum("kcj,kdj->cdj", root, root)
    effective, variance = rng.uniform(50, 90, (2, 5)), np.ones((2, 5))
    contrast = contrast_inflation(M, effective, variance, effective)
    anova, freedom = anova_inflation(M, variance, effective, 31.0)
    np.testing.assert_allclose(anova, contrast[0])
    np.testing.assert_array_equal(freedom, 1.0)


def test_a_cycle_raises_the_variance_to_that_over_the_lags():
    M, count, lagged = np.zeros((2, 2, 1)), np.full((2, 1), 100.0), np.zeros((6, 2, 1))
    M[0, 0] = M[1, 1] = 0.01
    lagged[:, 0, 0] = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    assert contrast_inflation(M, count, np.ones((2, 1)), count, lagged)[0, 0] == pytest.approx(1.2 / 0.02)
    assert cycle_inflation(M, count, lagged)[0] == pytest.approx(1.2 / 0.02)
    assert cycle_inflation(M, count, lagged[:3])[0] == 1.0  # too few lags
    assert feature_inflation(M, count, np.ones((2, 1)), count)[0] == 1.0


def test_pvalues_and_bands_allow_for_few_blocks():
    one = np.ones(1)
    assert inflated_pvalue(4.0 * one, one, one, 1e9 * one)[0] == pytest.approx(0.0455, abs=1e-4)
    assert inflated_pvalue(4.0 * one, one, one, 4.0 * one)[0] == pytest.approx(0.1161, abs=1e-4)
    assert uncertainty(1e9 * one, 0.05)[0] == pytest.approx(1.0, abs=1e-5)
    assert uncertainty(4.0 * one, 0.05)[0] == pytest.approx((2.7764 / 1.95996) ** 2, abs=1e-3)
