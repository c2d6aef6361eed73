"""Contingency tables against counting one by one, and the scores on them against their definitions and SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tamis
from tamis.errors import DataError
from tamis.summaries.contingency import (
    Contingency,
    chi_square,
    chi_square_pvalue,
    gini_decrease,
    independence_statistic,
    mutual_information,
)
from tests.twins import quantiles as twin

tables = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 4)),
    elements=st.one_of(st.just(0.0), st.integers(0, 1000).map(float), st.floats(1e-3, 1e6)),
)


def counted(X, codes, weight, shape):
    table = np.zeros(shape)
    for i, j in itertools.product(*map(range, X.shape)):
        if not np.isnan(X[i, j]):
            table[j, int(X[i, j]), codes[i]] += weight[i]
    return table


@given(
    cuts=st.lists(st.integers(1, 79), max_size=4),
    weighted=st.booleans(),
    keep=st.sampled_from([1.0, 0.5, 1e-60]),
)
@settings(max_examples=40)
def test_any_batching_counts_every_value(cuts, weighted, keep):
    rng = np.random.default_rng(0)
    X, codes = rng.integers(0, 4, (80, 3)).astype(float), rng.integers(0, 2, 80)
    X[rng.random(X.shape) < 0.2] = np.nan
    weight = rng.random(80) if weighted else None
    contingency, faded = Contingency(3, 4, 2), np.ones(80)
    for a, b in itertools.pairwise([0, *sorted(set(cuts)), 80]):
        contingency.update(X[a:b], codes[a:b], None if weight is None else weight[a:b], keep)
        faded[:a] *= keep
    expected = counted(X, codes, faded * (1.0 if weight is None else weight), (3, 4, 2))
    np.testing.assert_allclose(contingency.table(), expected, rtol=1e-12, atol=1e-200)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32])
def test_codes_of_any_type_each_class_with_its_clock(dtype, rng):
    X, codes = rng.integers(0, 4, (50, 2)), rng.integers(0, 2, 50)
    contingency = Contingency(2, 4, 2)
    contingency.update(X[:20].astype(dtype), codes[:20])
    contingency.update(X[20:].astype(dtype), codes[20:], keep=np.array([1.0, 0.25]))
    weight = np.where((np.arange(50) < 20) & (codes == 1), 0.25, 1.0)
    assert np.array_equal(contingency.table(), counted(X.astype(float), codes, weight, (2, 4, 2)))


@pytest.mark.parametrize("bad", [4.0, -1.0, 0.5, np.inf, -np.inf])
def test_a_value_that_is_no_code_is_named_and_changes_nothing(bad):
    contingency, X = Contingency(2, 4, 2), np.ones((3, 2))
    contingency.update(X, np.array([0, 1, 1]))
    before = contingency.table()
    X[2, 1] = bad
    with pytest.raises(DataError, match=f"Column 1 contains {bad} in row 2 of the batch: encode .* 0 to 3"):
        contingency.update(X, np.array([0, 1, 1]), keep=0.5)
    assert np.array_equal(contingency.table(), before)


def test_merging_growing_and_reordering(rng, tmp_path):
    X, codes = rng.integers(0, 3, (60, 2)), rng.integers(0, 2, 60)
    whole, a, b = (Contingency(2, 3, 2) for _ in range(3))
    whole.update(X, codes)
    a.update(X[:25], codes[:25])
    b.update(X[25:40], codes[25:40], keep=0.5)  # nothing came before
    b.update(X[40:], codes[40:])
    a.merge(b)
    assert np.array_equal(a.table(), whole.table())
    loaded = tamis.load(tamis.save(a, tmp_path / "table"))
    assert np.array_equal(loaded.table(), a.table())
    a.grow(3)
    a.reorder(np.array([2, 1, 0]))
    assert np.array_equal(a.table()[..., [2, 1]], whole.table())
    assert not a.table()[..., 0].any()
    assert a.nbytes == 8 * (2 * 3 * 3 + 3)
    with pytest.raises(ValueError, match=r"counts of 2 features, 3 bins and 2 classes into .* and 3 classes"):
        a.merge(whole)


@given(tables)
@settings(max_examples=200)
def test_the_scores_are_their_definitions(table):
    full = table[table.sum(axis=(1, 2)) > 0]
    np.testing.assert_allclose(mutual_information(full), twin.mutual_information(full), atol=1e-12)
    np.testing.assert_allclose(gini_decrease(full), twin.gini_decrease(full), rtol=1e-9, atol=1e-12)
    statistic, freedom = chi_square(full)
    for t, found, degrees, p in zip(
        full, statistic, freedom, chi_square_pvalue(statistic, freedom), strict=True
    ):
        t = t[t.sum(axis=1) > 0][:, t.sum(axis=0) > 0]
        expected = scipy.stats.chi2_contingency(t, correction=False)
        assert found == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
        assert degrees == expected.dof
        assert p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("occurs", "rare"), [(1, 60), (2, 60), (5, 60), (30, 60), (2, 3)])
def test_few_counts_are_no_proof(occurs, rare):
    """The exact probability, of the hypergeometric distribution, has nearly as many zeros."""
    n = 3000
    for inside in range(1, min(occurs, rare) + 1):
        of_class = np.array([occurs - inside, inside])
        table = np.array([[[n - rare, rare] - of_class, of_class]], float)
        exact = scipy.stats.hypergeom.sf(inside - 1, n, rare, occurs)
        if exact < 0.02:
            assert exact**1.25 < chi_square_pvalue(*independence_statistic(table, log=False))[0] < 3.0 * exact
            assert chi_square_pvalue(*chi_square(table))[0] < exact**1.25


def test_nothing_one_bin_and_one_class_score_0():
    table = np.zeros((3, 2, 2))
    table[1, 0] = [5, 7]
    table[2, :, 1] = [3, 4]
    for score in (mutual_information, gini_decrease):
        assert score(table).tolist() == [0, 0, 0]
    statistic, freedom = chi_square(table)
    assert statistic.tolist() == [0, 0, 0]
    assert freedom.tolist() == [0, 0, 0]
    assert chi_square_pvalue(statistic, freedom).tolist() == [1, 1, 1]


@pytest.mark.parametrize("arguments", [(0, 2, 2), (2, 0, 2), (2, 2, -1), (2.5, 2, 2)])
def test_sizes_are_checked(arguments):
    with pytest.raises(ValueError, match="must be an integer"):
        Contingency(*arguments)
