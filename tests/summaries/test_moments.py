"""Running moments against the two-pass formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tamis.summaries.moments import RunningMoments


@given(
    X=arrays(np.float64, (17, 3), elements=st.floats(-100, 100)),
    cuts=st.lists(st.integers(1, 16), max_size=4),
    sparse=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_any_batching_equals_two_passes(X, cuts, sparse):
    moments = RunningMoments(3)
    for part in np.split(X, sorted(set(cuts))):
        assert moments.update(sp.csr_matrix(part) if sparse else part)
    np.testing.assert_allclose(moments.mean, X.mean(0), atol=1e-11)
    np.testing.assert_allclose(moments.variance(), X.var(0), atol=1e-8)


def test_a_large_offset_costs_no_digits():
    X = np.random.default_rng(0).normal(1e6, 1.0, size=(10_000, 2))
    moments = RunningMoments(2)
    for start in range(0, len(X), 100):
        moments.update(X[start : start + 100])
    np.testing.assert_allclose(moments.variance(), (X - X.mean(0)).var(0), rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_and_fading_are_those_of_a_weighted_average(sparse):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(30, 4)), rng.random(30)
    moments, faded = RunningMoments(4), np.empty(0)
    for start in range(0, 30, 10):
        rows, weight = X[start : start + 10], w[start : start + 10]
        moments.update(sp.csr_matrix(rows) if sparse else rows, weight, keep=0.7)
        faded = np.append(0.7 * faded, weight)
    mean = np.average(X, axis=0, weights=faded)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(
        moments.variance(), np.average((X - mean) ** 2, axis=0, weights=faded), rtol=1e-12
    )


@given(at=st.integers(0, 20))
@settings(deadline=None)
def test_merge_equals_one_stream(at):
    X = np.random.default_rng(3).normal(5.0, 2.0, size=(20, 3))
    left, right, whole = RunningMoments(3), RunningMoments(3), RunningMoments(3)
    for moments, rows in ((left, X[:at]), (right, X[at:]), (whole, X)):
        if len(rows):
            moments.update(rows)
    left.merge(right)
    np.testing.assert_allclose(left.mean, whole.mean, rtol=1e-13)
    np.testing.assert_allclose(left.variance(), whole.variance(), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_changes_if_a_sum_is_not_finite(bad, sparse):
    X = np.array([[1.0, 2.0], [3.0, bad]])
    moments = RunningMoments(2)
    moments.update(np.array([[1.0, 5.0], [2.0, 7.0]]))
    mean = moments.mean.copy()
    assert not moments.update(sp.csr_matrix(X) if sparse else X)
    np.testing.assert_array_equal(moments.mean, mean)
    assert moments.weight == 2.0


def test_merging_other_features_is_refused():
    with pytest.raises(ValueError, match="moments of 2 features into moments of 3"):
        RunningMoments(3).merge(RunningMoments(2))


def test_first_rows_that_are_refused_leave_no_trace():
    """Another thread that reads `mean` meanwhile never sees the first row in the place of the mean."""
    moments = RunningMoments(2)
    before = moments.mean
    assert not moments.update(np.array([[5.0, 6.0], [np.inf, 1.0]]))
    assert moments.mean is before
    assert moments.update(np.array([[5.0, 6.0], [7.0, 8.0]]))
    assert (moments.mean.tolist(), moments.m2.tolist()) == ([6.0, 7.0], [2.0, 2.0])
