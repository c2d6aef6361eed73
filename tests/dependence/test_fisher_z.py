"""Fisher's z equals the test of what two regressions leave, for every set of conditions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.dependence.fisher_z import FisherZ
from tamis.errors import DataError
from tests.twins.osfs import independent, separated


def tangled(seed, n=60, k=7):
    """Columns that depend on one another and on the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k)) @ (np.eye(k) + 0.5 * rng.normal(size=(k, k)))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(np.int64)


def started(X, y, alpha=0.05):
    test = FisherZ(alpha).start(y)
    for column in X.T:
        test.keep(test.candidate(column))
    return test


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_separation_equals_that_of_residuals(seed, most):
    X, y = tangled(seed, k=6)
    test = started(X, y)
    for i in range(6):
        others = [j for j in range(6) if j != i]
        expected = separated(X, y, i, others, 0.05, most)
        assert test.is_separated(i, others, most) == expected
        always = [
            independent(X[:, i], y, [X[:, j] for j in (others[2], *more)], 0.05)
            for size in range(most)
            for more in itertools.combinations([others[0], *others[3:]], size)
        ]
        assert test.is_separated(i, [others[0], *others[3:]], most, always=others[2]) == any(always)


def test_against_the_target_and_the_kept(rng):
    X, y = tangled(3)
    X = np.column_stack([X, np.full(60, 0.1), X[:, 0] * 1e-3 + 1e6])
    screening = FisherZ().start(y).screen(X)
    test = FisherZ().start(y)
    for j in range(7):
        candidate = test.candidate(X[:, j])
        assert candidate.strength == pytest.approx(abs(np.corrcoef(X[:, j], y)[0, 1]), rel=1e-12)
        assert candidate.dependent != independent(X[:, j], y, [], 0.01)
        assert screening.near[j] >= candidate.dependent
        assert [screening.strength[j], screening.log_p[j]] == pytest.approx(
            [candidate.strength, candidate.log_p], rel=1e-9
        )
        test.keep(candidate)
    assert screening.near[7:].all()  # what a first look cannot tell
    assert test.candidate(X[:, 7]).constant
    far = test.candidate(X[:, 8])
    assert far.strength == pytest.approx(test.strength_[0], rel=1e-6)
    shared, significant = test.dependence_on_kept(far)
    assert shared == pytest.approx(np.abs(np.corrcoef(X[:, :7].T, X[:, 0])[-1, :7]), rel=1e-6)
    assert significant[0]


def test_dropped_columns_are_forgotten_and_a_copy_is_a_snapshot():
    import copy

    X, y = tangled(5)
    test = started(X, y)
    before = copy.copy(test)
    test.drop([1, 4])
    same = started(X[:, [0, 2, 3, 5, 6]], y)
    assert test.n_kept_ == 5
    np.testing.assert_array_equal(test.strength_, same.strength_)
    np.testing.assert_allclose(test._correlations, same._correlations, rtol=1e-12, atol=1e-15)
    for _ in range(9):  # beyond the room there was
        test.keep(test.candidate(X[:, 1]))
    np.testing.assert_array_equal(before._kept[:7], started(X, y)._kept[:7])


def test_few_rows_separate_nothing_that_cannot_be_tested():
    X, y = tangled(1, n=5, k=3)
    y[:2], y[2:] = 0, 1
    test = started(X, y)
    assert not test.is_separated(0, [1, 2], 2, always=1) or independent(X[:, 0], y, [X[:, 1]], 0.05)
    four = started(X[:4], np.array([0, 1, 0, 1]))
    assert not four.is_separated(0, [1, 2], 3)


@pytest.mark.parametrize(
    ("alpha", "y", "words"),
    [
        (0.0, [0, 1, 0, 1], "alpha must be a number in"), (1.5, [0, 1, 0, 1], "got 1.5"),
        (0.01, [0, 1, 0], "3 sample"), (0.01, [1, 1, 1, 1], "y is constant"),
    ],
)  # fmt: skip
def test_refusals(alpha, y, words):
    with pytest.raises((ValueError, DataError), match=words):
        FisherZ(alpha).start(np.array(y))
