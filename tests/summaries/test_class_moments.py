"""Class-conditional moments against the definitions, in any batching, dense, sparse, faded and merged."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis.summaries.class_moments import ClassMoments
from tests.twins.moments import ClassMomentsTwin


def rows(seed=0, n=60, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 100, 1e-3, 1] + [0, 5, 1e6, 0]
    X[:, 3] = rng.random(n) < 0.2  # mostly zeros
    X[rng.random(X.shape) < 0.3] = 0.0
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[:, 1] = np.where(np.arange(n) < 40, np.nan, X[:, 1])
    return X, rng.integers(0, 3, n), rng.random(n) * 2


def agree(moments, twin, least=0.0):
    """Compare what all values together weigh more than `least`."""
    table = twin.table()
    np.testing.assert_allclose(moments.count(), table[..., 0], rtol=1e-11, atol=1e-13)
    told = table[..., 0] >= least
    size = np.maximum(np.nanmax(np.abs(twin.rows), axis=0), 1.0)
    np.testing.assert_allclose(
        (moments.mean() / size)[told], (table[..., 1] / size)[told], rtol=1e-11, atol=1e-11
    )
    # beside what is left of the rows' weight, zeros are as uncertain as its rounding, and count by the squared mean
    slack = 1e-11 + (1e-16 * size**2 if least else 0.0 * size)
    wrong = np.abs(moments.variance() - table[..., 2]) > 1e-9 * np.abs(table[..., 2]) + slack
    assert not wrong[told].any(), (moments.variance(), table[..., 2])
    np.testing.assert_allclose(moments.effective(), twin.effective(), rtol=1e-11)


@given(
    cuts=st.lists(st.integers(1, 59), max_size=5),
    sparse=st.lists(st.booleans(), min_size=6, max_size=6),
    weighted=st.booleans(),
    missing=st.booleans(),
    keep=st.sampled_from([1.0, 0.9, 1e-30]),
)
@example(cuts=[54], sparse=[False] * 6, weighted=False, missing=True, keep=1e-30)
@example(cuts=[3, 54], sparse=[False] + [True] * 5, weighted=False, missing=True, keep=1e-30)
@example(cuts=[1, 2, 3, 4, 55], sparse=[False] * 5 + [True], weighted=True, missing=False, keep=1e-30)
@example(
    cuts=[1, 2, 47, 55],
    sparse=[False, False, True, False, True, False],
    weighted=False,
    missing=False,
    keep=1e-30,
)
@settings(max_examples=60, deadline=None)
def test_any_batching_of_any_kind_equals_the_definition(cuts, sparse, weighted, missing, keep):
    X, codes, weight = rows(missing=missing)
    moments, twin = ClassMoments(4, 3), ClassMomentsTwin(3)
    bounds = [0, *sorted(set(cuts)), 60]
    for a, b, csr in zip(bounds, bounds[1:], sparse, strict=False):
        w = weight[a:b] if weighted else None
        assert moments.update(sp.csr_matrix(X[a:b]) if csr else X[a:b], codes[a:b], w, keep)
        twin.update(X[a:b], codes[a:b], w, keep)
    agree(moments, twin, least=1e-11 if any(sparse) else 0.0)  # zeros are what is left of the rows' weight


def test_each_class_may_have_its_own_clock():
    X, codes, _ = rows()
    moments, twin = ClassMoments(4, 3), ClassMomentsTwin(3)
    for start in range(0, 60, 10):
        part = slice(start, start + 10)
        moments.update(X[part], codes[part], keep=np.array([1.0, 0.5, 0.9]))
        twin.update(X[part], codes[part], keep=np.array([1.0, 0.5, 0.9]))
    agree(moments, twin)


def test_a_large_offset_costs_no_digits():
    X = np.random.default_rng(0).normal(1e6, 1.0, size=(20_000, 1))
    for kind in (np.asarray, sp.csr_matrix):
        moments = ClassMoments(1, 1)
        for start in range(0, len(X), 100):
            moments.update(kind(X[start : start + 100]), np.zeros(100, dtype=np.int64))
        np.testing.assert_allclose(moments.variance()[0], (X - X.mean()).var(), rtol=1e-9)


def test_a_million_fadings_neither_overflow_nor_lose_digits():
    moments = ClassMoments(1, 1)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        x = rng.normal(size=(1, 1))
        moments.update(x, np.zeros(1, dtype=np.int64), keep=0.5)
    assert moments.weight()[0] == pytest.approx(2.0)
    assert moments.effective()[0] == pytest.approx(3.0)


@given(at=st.integers(0, 60), order=st.booleans(), sparse=st.booleans())
@settings(max_examples=40, deadline=None)
def test_merge_equals_one_stream(at, order, sparse):
    X, codes, weight = rows(missing=True)
    left, right, whole = (ClassMoments(4, 3) for _ in range(3))
    parts = [(left, slice(0, at)), (right, slice(at, 60)), (whole, slice(0, 60))]
    for moments, part in parts:
        if len(codes[part]):
            moments.update(sp.csr_matrix(X[part]) if sparse else X[part], codes[part], weight[part])
    first, second = (left, right) if order else (right, left)
    first.merge(second)
    for read in ("count", "mean", "variance", "effective", "weight"):
        np.testing.assert_allclose(getattr(first, read)(), getattr(whole, read)(), rtol=1e-10, atol=1e-12)


def test_grow_keeps_what_was_learned():
    X, codes, _ = rows()
    late, early = ClassMoments(4, 1), ClassMoments(4, 3)
    order = np.argsort(codes, kind="stable")
    for c in range(3):
        part = order[codes[order] == c]
        late.grow(max(c + 1, late.n_classes))
        late.update(X[part], codes[part])
        early.update(X[part], codes[part])
    np.testing.assert_array_equal(late.mean(), early.mean())
    np.testing.assert_array_equal(late.variance(), early.variance())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_values_change_nothing(sparse, bad):
    X, codes, _ = rows()
    moments = ClassMoments(4, 3)
    moments.update(X, codes)
    before = [moments.mean().copy(), moments.variance().copy(), moments.weight().copy()]
    X[50, 2] = bad
    X[3, 1] = np.nan
    assert not moments.update(sp.csr_matrix(X) if sparse else X, codes)
    for value, old in zip([moments.mean(), moments.variance(), moments.weight()], before, strict=True):
        np.testing.assert_array_equal(value, old)


def test_merging_other_shapes_is_refused():
    with pytest.raises(ValueError, match="2 features and 3 classes into moments of 4 features and 3 classes"):
        ClassMoments(4, 3).merge(ClassMoments(2, 3))


@pytest.mark.parametrize(("x", "weight", "n"), [(0.94, 0.1, 3), (0.72, 1.0, 5), (0.49, 2.9, 4)])
def test_a_spread_that_rounding_would_make_negative_is_zero(x, weight, n):
    """A first row that weighs nearly nothing beside equal ones: the difference of the sums of squares is negative."""
    moments = ClassMoments(1, 1)
    rows = np.append(0.0, np.full(n, x))[:, None]
    assert moments.update(rows, np.zeros(n + 1, np.int64), np.append(1e-28, np.full(n, weight)))
    assert moments.variance()[0, 0] >= 0.0


def test_columns_that_were_0_in_dense_rows_too():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    narrow, wide = ClassMoments(3, 2), ClassMoments(5, 2)
    for part, made in (
        (slice(0, 20), np.asarray),
        (slice(20, 40), sp.csr_matrix),
        (slice(40, 60), np.asarray),
    ):
        narrow.update(made(X[part]), codes[part], keep=0.9)
        wide.update(made(np.pad(X[part], ((0, 0), (0, 2)))), codes[part], keep=0.9)
    narrow.widen(5, dense_too=True)
    for name in ("count", "mean", "variance"):
        np.testing.assert_allclose(getattr(narrow, name)(), getattr(wide, name)(), rtol=1e-14, atol=1e-15)
    narrow.forget(np.array([1]), dense_too=True)
    assert narrow.mean()[:, 1].tolist() == narrow.variance()[:, 1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(narrow.count()[:, 1], narrow.weight(), rtol=1e-14)
