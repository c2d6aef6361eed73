"""The e-values of unused features: the formula, their rate at any time, and what they find."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.watch.conditional import ConditionalRelevance, SequentialTTests


def slow_evalue(values, begin, rows):
    """The mean of (1) over c = 1 and 10, for the sums of `rows` values from row `begin` on."""
    values = values[begin:]
    sums = values[: len(values) // rows * rows].reshape(-1, rows).sum(axis=1)
    n, S, V = len(sums), sums.sum(), (sums**2).sum()
    return np.mean([np.sqrt(c / (n + c)) * (1.0 - S**2 / ((n + c) * V)) ** (-n / 2) for c in (1.0, 10.0)])


def test_evalues_are_those_of_the_formula(rng):
    values = rng.normal(size=(900, 4)) + np.array([0.0, 0.1, 0.3, 0.0])
    tests = SequentialTTests(2, 2, 10)  # series 0 and 2 are those of feature 0
    tests.open(np.array([True, False]), np.ones((2, 2), dtype=bool))
    for start in range(0, 400, 70):
        tests.update(values[start : min(start + 70, 400)])
    tests.open(np.array([True, True]), np.array([[True, True], [True, False]]))
    tests.update(values[400:])
    np.testing.assert_allclose(tests.evalues(), 1.0)  # the memory of the series is unknown
    for lengths in ([[10, 20], [40, 10]], [[80, 20], [160, 10]]):
        tests.lengthen(np.array(lengths, dtype=float))
        first = [slow_evalue(values[:, 2 * s], 0, lengths[s][0]) for s in range(2)]
        second = [slow_evalue(values[:, 2 * s], 400, lengths[s][0]) for s in range(2)]
        other = slow_evalue(values[:, 1], 400, 20)
        expected = [np.mean(first) / 2 + np.mean(second) / 6 + 1 / 3, other / 2 + 1 / 2]
        np.testing.assert_allclose(tests.evalues(), expected, rtol=1e-10)


def test_capital_is_spent_once_and_returned_only_if_it_was_never_at_stake():
    tests, one = SequentialTTests(1, 1, 5), np.array([True])
    assert tests.evalues() == 1.0
    for r in range(1, 51):
        tests.open(one, one[None])
        # Four grow, of which the smallest is given up, beside what is not at stake.
        np.testing.assert_allclose(tests.evalues(), 1.0 if r < 4 else 0.75 + 1 / r)
    tests.close(one, is_free=~one)
    np.testing.assert_allclose(tests.evalues(), 1 / 51)
    tests.close(one, is_free=one)
    np.testing.assert_allclose(tests.evalues(), 1.0)


def test_blocks_that_prove_too_short_are_joined(rng):
    tests = SequentialTTests(1, 2, 10)
    tests.open(np.array([True, True]), np.ones((1, 2), dtype=bool))
    values = np.repeat(rng.normal(size=(20, 2)) + 1.0, 50, axis=0)
    tests.update(values)
    tests.lengthen(np.array([[10.0, 10.0]]))
    assert (tests.evalues() > 1000).all()
    tests.lengthen(np.array([[25.0, 200.0]]))  # half as long is tolerated
    assert tests.evalues()[0] > 1000
    np.testing.assert_allclose(tests.evalues()[1], 0.5 + 0.5 * slow_evalue(values[:, 1], 0, 160))
    tests.lengthen(np.array([[np.nan, 1e9]]))
    assert tests.evalues()[0] > 1000
    np.testing.assert_allclose(tests.evalues()[1], 1.0)  # no block is long enough


def watched(X, y, inflation=None):
    """Yield the test of a model that uses the first column after each 100 rows."""
    test = ConditionalRelevance(X.shape[1], 3, 500.0)
    residuals = np.column_stack([~y, y, np.zeros(len(y))])
    for start in range(0, len(X), 100):
        rows = slice(start, start + 100)
        test.update(X[rows], residuals[rows], np.array([0]), inflation)
        yield test


DESIGNS = {
    "independent": lambda rng, n: rng.normal(size=(n, 9)),
    "episodes": lambda rng, n: (
        np.repeat(rng.normal(size=(n // 20, 9)), 20, axis=0) + 0.2 * rng.normal(size=(n, 9))
    ),
    "heavy tails": lambda rng, n: rng.standard_t(2, size=(n, 9)),
    "copies": lambda rng, n: rng.normal(size=(n, 9)) + 2.0 * rng.normal(size=(n, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_at_any_time_few_irrelevant_features_have_large_evalues(design):
    largest = []
    for seed in range(8):
        Z = DESIGNS[design](np.random.default_rng([3, seed]), 10_000)
        noise = np.random.default_rng([4, seed]).permutation(Z[:, 8]) if design == "copies" else Z[:, 8]
        along = [test.evalues() for test in watched(Z[:, :8], Z[:, 0] + noise > 0)]
        largest.append(np.max(along, axis=0)[1:])
    # At most 5 % of 56 features reach 20: more than seven have a probability of 1 %.
    assert (np.concatenate(largest) >= 20).sum() <= 7


def test_a_relevant_feature_is_found_and_a_copy_is_not(rng, tmp_path):
    X = rng.normal(size=(4000, 5))
    X[:, 3] = X[:, 0]
    y = X[:, 0] + X[:, 2] + rng.normal(size=4000) > 0
    *_, test = watched(X, y)
    assert test.evalues()[0] == 0  # the model uses it
    assert test.evalues()[2] > 1e6
    assert not (test.evalues()[[1, 3, 4]] > 20).any()
    tamis.save(test, tmp_path / "test.tamis")
    np.testing.assert_array_equal(tamis.load(tmp_path / "test.tamis").evalues(), test.evalues())


def test_a_feature_that_becomes_relevant_later_is_found(rng):
    X = rng.normal(size=(14_000, 4))
    y = X[:, 0] + np.where(np.arange(14_000) < 8000, 0.0, X[:, 2]) + rng.normal(size=14_000) > 0
    values = np.array([test.evalues()[2] for test in watched(X, y)])
    assert values[:80].max() < 20
    assert values[110] > 4000  # 3,000 rows after the change


def test_a_feature_whose_values_last_for_lots_is_found(rng):
    """Seven lots weigh half in the coefficients of a half-life of 500 rows: too few for the features used."""
    X = np.repeat(rng.normal(size=(160, 4)), 200, axis=0)
    y = X[:, 0] + X[:, 2] + 0.5 * rng.logistic(size=len(X)) > 0
    found = []
    for inflation in (np.inf, 250.0):
        *_, test = watched(X, y, inflation=np.full(4, inflation))
        found.append(test.evalues())
    assert np.isnan(found[0][1:]).all()
    assert found[1][2] > 1000
    assert (found[1][[1, 3]] < 20).all()
