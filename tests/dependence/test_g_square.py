"""The G-square test equals SciPy's, stratum by stratum; symmetrical uncertainty equals scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from tamis import OSFS, SAOLA, FastOSFS
from tamis.checks import check_column_selector
from tamis.dependence.g_square import GSquare
from tests.twins.g_square import degrees, g_square, separated


def answers(seed, n=200, k=5):
    """Columns of 2 to 4 values that depend on one another and on three classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2 + np.arange(k) % 3, size=(n, k))
    X[:, 1] = np.where(rng.random(n) < 0.7, X[:, 0], X[:, 1])
    y = np.where(rng.random(n) < 0.5, X[:, 0], rng.integers(0, 3, size=n))
    X[:, 4] = np.where(rng.random(n) < 0.6, y, X[:, 4] % 3)
    return X.astype(np.float64), y


def started(X, y, **parameters):
    test = GSquare(0.05, **parameters).start(y)
    for column in X.T:
        test.keep(test.candidate(column))
    return test


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from(["skip", "independent"]))
def test_separation_equals_that_of_the_strata(seed, most, unreliable):
    X, y = answers(seed)
    test = started(X, y, unreliable=unreliable)
    for i in range(5):
        others = [j for j in range(5) if j != i]
        assert test.is_separated(i, others, most) == separated(X, y, i, others, 0.05, most, unreliable)
        expected = separated(X, y, i, others[1:], 0.05, most, unreliable, always=others[:1])
        assert test.is_separated(i, others[1:], most, always=others[0]) == expected


def test_against_the_target_and_the_kept():
    X, y = answers(3)
    rng = np.random.default_rng(0)
    X = np.column_stack([X, y + rng.normal(size=200), rng.normal(size=200), np.ones(200)])
    test = GSquare(n_bins=4).start(y)
    screening = test.screen(X)
    for j in range(7):
        candidate = test.candidate(X[:, j])
        x = X[:, j] if j < 5 else np.searchsorted(np.quantile(X[:, j], [0.25, 0.5, 0.75]), X[:, j])
        p = scipy.stats.chi2.sf(g_square(x, y, []), degrees(x, y, []))
        assert candidate.strength == pytest.approx(normalized_mutual_info_score(x, y), abs=1e-12)
        assert np.exp(candidate.log_p) == pytest.approx(p, rel=1e-9)
        assert candidate.dependent == (p < 0.01)
        assert [screening.strength[j], screening.log_p[j]] == pytest.approx(
            [candidate.strength, candidate.log_p], rel=1e-9, abs=1e-12
        )
        assert screening.near[j] == candidate.dependent
        shared, significant = test.dependence_on_kept(candidate)
        for q in range(min(j, 5)):
            assert shared[q] == pytest.approx(normalized_mutual_info_score(x, X[:, q]), abs=1e-12)
            p = scipy.stats.chi2.sf(g_square(x, X[:, q], []), degrees(x, X[:, q], []))
            assert significant[q] == (p < 0.01)
        test.keep(candidate)
    assert screening.near[7]
    assert test.candidate(X[:, 7]).constant


def test_p_values_that_underflow():
    y = np.arange(4000) % 2
    log_p = GSquare().start(y).candidate(y.astype(float)).log_p
    assert log_p == pytest.approx(scipy.stats.norm.logsf(np.sqrt(2 * 4000 * np.log(2))) + np.log(2), rel=1e-6)


def test_dropped_columns_are_forgotten():
    X, y = answers(5)
    test, same = started(X, y), started(X[:, [0, 2, 4]], y)
    test.drop([1, 3])
    assert test.n_kept_ == 3
    np.testing.assert_array_equal(test.strength_, same.strength_)
    for place in range(3):
        others = [j for j in range(3) if j != place]
        assert test.is_separated(place, others, 3) == same.is_separated(place, others, 3)
    for _ in range(9):  # beyond the room there was
        test.keep(test.candidate(X[:, 1]))
    assert test.dependence_on_kept(test.candidate(X[:, 1]))[0][-9:] == pytest.approx(np.ones(9))


@pytest.mark.slow
@pytest.mark.parametrize("selector", [SAOLA("g-square"), OSFS("g-square"), FastOSFS(GSquare(n_bins=3))])
def test_selectors_with_it_conform(selector):
    assert check_column_selector(selector).failed == {}


def test_it_sees_what_no_correlation_shows(rng):
    X = rng.normal(size=(600, 20))
    y = (np.abs(X[:, 7]) < 0.6).astype(int) + (np.abs(X[:, 7]) < 0.2)
    assert "x7" not in FastOSFS(alpha=1e-4).fit(X, y).selected_
    assert FastOSFS("g-square", alpha=1e-4).fit(X, y).selected_ == ["x7"]
    assert SAOLA(GSquare(threshold=0.1)).fit(X, y).selected_ == ["x7"]


def test_sets_that_cannot_be_tested_separate_nothing(rng):
    """Three degrees of freedom for each of the four values of a condition: 59 rows are less than 5 for each."""
    y = rng.integers(0, 2, size=59)
    X = y[:, None] + 0.5 * rng.normal(size=(59, 3))
    kept = {
        how: FastOSFS(GSquare(n_bins=4, unreliable=how)).fit(X, y).selected_
        for how in ("skip", "independent")
    }
    assert kept == {"skip": ["x0", "x1", "x2"], "independent": ["x0"]}


@pytest.mark.parametrize(
    ("n", "n_classes", "parts"), [(20, 2, 2), (90, 2, 3), (240, 2, 4), (240, 3, 3), (90, 3, 2)]
)
def test_few_rows_are_cut_in_few_parts(n, n_classes, parts):
    test = GSquare().start(np.arange(n) % n_classes)
    assert np.unique(test.candidate(np.arange(float(n))).values).tolist() == list(range(parts))


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({"alpha": 2}, [0, 1], "alpha must be a number"), ({"n_bins": 1}, [0, 1], "n_bins must be an integer in"),
        ({"threshold": 1.0}, [0, 1], "threshold must be a number"), ({}, [1, 1], "y is constant"),
        ({"unreliable": "no"}, [0, 1], "unreliable must be one of 'skip', 'independent'"),
    ],
)  # fmt: skip
def test_refusals(parameters, y, words):
    with pytest.raises(ValueError, match=words):
        GSquare(**parameters).start(np.array(y))
