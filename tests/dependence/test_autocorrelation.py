"""Autocorrelation against its definitions: block ratios, values, inflations of statistics, and tests that use them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from tamis import OSFS, SAOLA
from tamis.dependence.autocorrelation import (
    SERIES_SIZE,
    Inflation,
    add_values,
    anova_inflation,
    block_ratios,
    contrast_inflation,
    cycle_inflation,
    table_inflation,
    uncertainty,
    variance_inflation,
)
from tamis.dependence.fisher_z import FisherZ
from tamis.dependence.g_square import GSquare
from tests.twins import dependent_rows, drift


def series(rng, n, n_columns, phi):
    return lfilter([1], [1, -phi], rng.normal(size=(n + 500, n_columns)), axis=0)[500:]


@pytest.mark.parametrize("n", [5, 8, 61, 300])
def test_ratios_equal_their_definition(n, rng):
    columns = series(rng, n, 3, 0.8).T
    columns -= columns.mean(axis=1, keepdims=True)
    ratio, excess = block_ratios(columns)
    lengths = [2**k for k in range(1, 20) if n // 2**k >= 4]
    assert ratio.shape == excess.shape == (len(lengths), 3)
    for i, length in enumerate(lengths):
        for j, x in enumerate(columns):
            sums = [sum(x[b * length : (b + 1) * length]) for b in range(n // length)]
            expected = sum(s * s for s in sums) / (len(sums) * length * np.mean(x**2))
            assert ratio[i, j] == pytest.approx(expected)
            assert excess[i, j] == pytest.approx((expected - 1) * np.sqrt((len(sums) - 1) / 2))
    assert (variance_inflation(columns, always=True) == ratio.max(axis=0, initial=1.0)).all()


@pytest.mark.parametrize("make", [FisherZ, GSquare])
@pytest.mark.parametrize("phi", [0.5, 0.9, 0.99])
def test_unrelated_series_are_rarely_dependent(make, phi, rng):
    wrong = {"auto": 0, "independent": 0}
    for _ in range(15):
        X, z = np.split(series(rng, 2000, 21, phi), [20], axis=1)
        y = (z[:, 0] > 0).astype(np.int64)
        for how in wrong:
            test = make(0.01, dependence=how).start(y)
            wrong[how] += sum(test.candidate(x).dependent for x in X.T.copy())
    assert wrong["auto"] <= 6  # of 300
    assert wrong["independent"] > 2 * max(wrong["auto"], 1)


@pytest.mark.parametrize("make", [FisherZ, GSquare])
def test_a_relation_is_found_and_conditions_count_rows_as_fewer_too(make, rng):
    cause = series(rng, 3000, 1, 0.9)[:, 0]
    y = (cause + series(rng, 3000, 1, 0.9)[:, 0] > 0).astype(np.int64)
    copy, unrelated = cause + 0.3 * rng.normal(size=3000), series(rng, 3000, 1, 0.9)[:, 0]
    test = make().start(y)
    assert test.rows_dependent_
    for column in (cause, copy, unrelated):
        test.keep(test.candidate(column))
    assert test.candidate(cause).dependent
    assert not test.is_separated(0, [2], 1)
    assert test.is_separated(2, [0], 1)
    assert not test.dependence_on_kept(test.candidate(unrelated))[1][0]


@pytest.mark.parametrize("make", [FisherZ, GSquare])
def test_independent_and_sorted_rows_count_once(make, rng):
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 3, size=400)
    for codes, held in ((y, X), (np.sort(y), X[np.argsort(y)]), (np.tile(np.sort(y[:200]), 2), X)):
        auto, plain = make().start(codes), make(dependence="independent").start(codes)
        for x in held.T.copy():
            one, other = auto.candidate(x), plain.candidate(x)
            assert (one.log_p, one.dependent, one.inflation) == (other.log_p, other.dependent, 1.0)
    assert not make().start(y).rows_dependent_
    assert make(dependence="series").start(np.sort(y)).rows_dependent_
    with pytest.raises(ValueError, match="dependence must be"):
        make(dependence="none").start(y)


@pytest.mark.parametrize("make", [FisherZ, GSquare])
@pytest.mark.parametrize("period", [24, 60, 168])
def test_a_cycle_that_column_and_class_share_is_no_dependence(make, period):
    wrong, plain = 0, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        phase = 2 * np.pi * rng.random(21)
        X = np.sin(2 * np.pi * np.arange(2500)[:, None] / period + phase) + rng.normal(size=(2500, 21))
        y = (X[:, 20] > 0).astype(np.int64)
        wrong += sum(make().start(y).candidate(x).dependent for x in X[:, :20].T.copy())
        plain += sum(
            make(dependence="independent").start(y).candidate(x).dependent for x in X[:, :20].T.copy()
        )
    assert wrong <= 4 < 40 < plain  # of 80


@pytest.mark.parametrize("make", [FisherZ, GSquare])
def test_a_relevant_series_is_dependent_whatever_the_memory(make):
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z, x = series(rng, 1500, 2, 0.9).T
        found += make().start((z > 0).astype(np.int64)).candidate(0.6 * z + x).dependent
    assert found >= 8


@pytest.mark.parametrize("make", [FisherZ, GSquare])
@pytest.mark.parametrize("n_runs", [1, 2, 4, 5, 6])
def test_series_in_any_number_of_runs_of_each_class_are_rarely_dependent(make, n_runs, rng):
    y = np.repeat(np.arange(2 * n_runs) % 2, 2400 // (2 * n_runs))
    wrong, shift = 0, 0
    for _ in range(4):
        X = series(rng, len(y), 20, 0.9)
        wrong += sum(make().start(y).candidate(x).dependent for x in X.T.copy())
        shift += make().start(y).candidate(rng.normal(size=len(y)) + y).dependent
    assert wrong <= 4  # of 80
    assert shift >= 3  # the difference of the classes is no dependence of the rows


@pytest.mark.parametrize("make", [FisherZ, GSquare])
def test_random_walks_are_undetermined(make, rng):
    X, z = np.split(np.cumsum(rng.normal(size=(2000, 21)), axis=0), [20], axis=1)
    test = make().start((z[:, 0] > np.median(z)).astype(np.int64))
    assert sum(test.candidate(x).dependent for x in X.T.copy()) <= 1


@pytest.mark.parametrize("make", [OSFS, SAOLA])
def test_selectors_choose_fewer_unrelated_series(make, rng):
    X, z = np.split(series(rng, 2000, 41, 0.95), [40], axis=1)
    y = (z[:, 0] > 0).astype(int)
    selector = make(alpha=0.001).fit(X, y)
    assert selector.rows_dependent_
    plain = make(FisherZ(0.001, dependence="independent")).fit(X, y)
    assert not plain.rows_dependent_
    assert len(selector.selected_) <= 1 < len(plain.selected_)


def counted(cells, y, n_bins, n_classes, n_blocks):
    counts = np.zeros((n_blocks, n_classes, n_bins, 1))
    np.add.at(counts, (np.arange(len(y)) * n_blocks // len(y), y, cells, 0), 1.0)
    return counts, counts.sum(axis=(2, 3))


@pytest.mark.parametrize(("n_bins", "n_classes"), [(2, 2), (5, 2), (3, 4)])
def test_a_tables_inflation_equals_its_definition(n_bins, n_classes):
    rng = np.random.default_rng(0)
    cells, y = np.repeat(rng.integers(0, n_bins, 60), 10), np.repeat(rng.integers(0, n_classes, 60), 10)
    counts, weight = counted(cells, y, n_bins, n_classes, 20)
    blocks = np.array_split(np.arange(600), 20)
    expected = dependent_rows.table_inflation(cells, y, n_bins, n_classes, blocks)
    found, freedom, own = table_inflation(counts, weight, weight)
    assert found[0] == pytest.approx(expected)
    assert 1.0 <= freedom[0] <= (n_bins - 1) * (n_classes - 1)
    assert own[0] > 3.0


def test_independent_rows_inflate_nothing_on_average():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        counts, weight = counted(*rng.integers(0, 3, (2, 960)), 3, 3, 32)
        found.append(table_inflation(counts, weight, weight)[0][0])
    assert 1.0 < np.mean(found) < 1.15  # never below 1


def test_missing_values_are_rows_without_a_bin():
    """With a fifth of the values missing in each column, the inflation was a fifth too small."""
    rng = np.random.default_rng(3)
    bins, y = rng.integers(0, 3, 2000), rng.integers(0, 2, 2000)
    whole, weight = counted(bins, y, 3, 2, 25)
    there = np.arange(2000) % 5 > 0
    part = np.zeros_like(whole)
    np.add.at(part, ((np.arange(2000) * 25 // 2000)[there], y[there], bins[there], 0), 1.0)
    own, of_some = (table_inflation(part, w, w)[0][0] for w in (part.sum(axis=(2, 3)), weight))
    assert of_some == pytest.approx(own)
    rows_twice = table_inflation(2.0 * part, 2.0 * weight, 4.0 * weight)[0][0]
    assert rows_twice == pytest.approx(own)


def test_of_two_classes_anova_and_contrast_agree():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 2, 5))
    M = np.einsum("kcj,kdj->cdj", root, root)
    effective, variance = rng.uniform(50, 90, (2, 5)), np.ones((2, 5))
    contrast = contrast_inflation(M, effective, variance, effective)
    anova, freedom = anova_inflation(M, variance, effective)
    np.testing.assert_allclose(anova, contrast[0])
    np.testing.assert_array_equal(freedom, 1.0)


def test_a_cycle_raises_the_variance_to_that_over_the_lags():
    M, count, lagged = np.zeros((2, 2, 1)), np.full((2, 1), 100.0), np.zeros((6, 2, 1))
    M[0, 0] = M[1, 1] = 0.01
    lagged[:, 0, 0] = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    assert contrast_inflation(M, count, np.ones((2, 1)), count, lagged)[0, 0] == pytest.approx(1.2 / 0.02)
    assert cycle_inflation(M, count, lagged)[0] == pytest.approx(1.2 / 0.02)
    assert cycle_inflation(M, count, lagged[:3])[0] == 1.0  # too few lags
    of_feature = contrast_inflation(M, count, np.ones((2, 1)), count, contrasts=count[None])
    assert of_feature[0, 0] == 1.0


def test_pvalues_and_bands_allow_for_few_blocks():
    one = np.ones(1)
    assert Inflation(one[None], one, 1e9 * one).pvalue(4.0 * one)[0] == pytest.approx(0.0455, abs=1e-4)
    assert Inflation(one[None], one, 4.0 * one).pvalue(4.0 * one)[0] == pytest.approx(0.1161, abs=1e-4)
    assert uncertainty(1e9 * one, 0.05)[0] == pytest.approx(1.0, abs=1e-5)
    assert uncertainty(4.0 * one, 0.05)[0] == pytest.approx((2.7764 / 1.95996) ** 2, abs=1e-3)


def inflation(values, every=1):
    series = np.zeros(SERIES_SIZE)
    add_values(np.asarray(values, dtype=float), series, every)
    return max(series[2], 1.0)


@pytest.mark.parametrize(("n", "length"), [(0, 1), (15, 2), (100, 3), (800, 5), (3001, 20)])
def test_inflation_is_the_twins(n, length, rng):
    values = 1e3 + np.repeat(rng.normal(size=n), length)[:n]
    assert inflation(values) == pytest.approx(drift.variance_inflation(values), rel=1e-6)


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
