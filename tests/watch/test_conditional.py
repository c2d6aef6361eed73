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
    tests = SequentialTTests(2, 2)  # series 0 and 2 are those of feature 0
    tests.open(np.array([True, False]), np.array([[10, 0], [25, 0]]))
    for start in range(0, 400, 70):
        tests.update(values[start : min(start + 70, 400)])
    tests.open(np.array([True, True]), np.array([[7, 7], [7, 0]]))
    tests.update(values[400:])
    first = np.mean([slow_evalue(values[:, 0], 0, 10), slow_evalue(values[:, 2], 0, 25)])
    second = np.mean([slow_evalue(values[:, 0], 400, 7), slow_evalue(values[:, 2], 400, 7)])
    other = slow_evalue(values[:, 1], 400, 7)
    np.testing.assert_allclose(
        tests.evalues(), [first / 2 + second / 6 + 1 / 3, other / 2 + 1 / 2], rtol=1e-12
    )


def test_capital_is_spent_once_and_never_returned():
    tests = SequentialTTests(1, 1)
    assert tests.evalues() == 1.0
    for r in range(1, 51):
        tests.open(np.array([True]), np.array([[5]]))
        np.testing.assert_allclose(tests.evalues(), 1 / max(r - 3, 1))  # four grow, and what is not at stake
    tests.reset()
    np.testing.assert_allclose(tests.evalues(), 1 / 51)


def test_blocks_that_prove_too_short_are_given_up(rng):
    tests = SequentialTTests(1, 2)
    tests.open(np.array([True, True]), np.array([[10, 10]]))
    tests.update(np.repeat(rng.normal(size=(20, 2)) + 1.0, 50, axis=0))
    assert (tests.evalues() > 1000).all()
    tests.close(np.array([[20, 21]]))
    assert tests.evalues()[0] > 1000
    assert tests.evalues()[1] == 0.5


def watched(X, y, half_life=500.0):
    """Yield the test of a model that uses the first column after each 100 rows."""
    test = ConditionalRelevance(X.shape[1], 3, half_life)
    residuals = np.column_stack([~y, y, np.zeros(len(y))])
    for start in range(0, len(X), 100):
        rows = slice(start, start + 100)
        test.update(X[rows], np.empty((100, 0)), residuals[rows], np.array([0]))
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


def test_a_series_whose_memory_is_unknown_keeps_its_capital(rng):
    tests = SequentialTTests(2, 1)
    tests.open(np.array([True]), np.array([[10], [-2]]))
    tests.update(np.column_stack([np.zeros(100), 1.0 + rng.normal(size=100)]))
    np.testing.assert_allclose(tests.evalues(), 1.0)  # nothing was won or lost
    tests.assign(np.array([[0], [5]]))
    values = np.column_stack([np.zeros(200), 1.0 + rng.normal(size=200)])
    tests.update(values)
    won = slow_evalue(values[:, 1], 0, 5)
    np.testing.assert_allclose(tests.evalues(), 0.5 * (1.0 + won) / 2.0 + 0.5, rtol=1e-12)
