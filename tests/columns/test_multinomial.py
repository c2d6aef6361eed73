"""Multinomial alpha-investing equals its twin, is the logistic model for two classes, and keeps its level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tamis import AlphaInvesting
from tamis.columns.glm import LogisticModel, MultinomialModel
from tests.twins.alpha_investing import group_alpha_investing, group_p_value_multinomial


def classes_of(rng, X, n_classes=3, size=1.5):
    """Classes whose log odds depend on the first columns, one each."""
    odds = np.column_stack([np.zeros(len(X)), size * X[:, : n_classes - 1]])
    return (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)


@pytest.mark.parametrize("width", [1, 2])
def test_equals_its_twin(width, rng):
    X = rng.normal(size=(80, 12))
    y = classes_of(rng, X)
    groups = [[*range(start, start + width)] for start in range(0, 12, width)]
    selected, p_values, wealth = group_alpha_investing(X, y, groups, group_p_value_multinomial)
    ours = AlphaInvesting("multinomial", groups=dict(enumerate(groups))).fit(X, y)
    assert ours.selected_ == [f"x{j}" for j in selected]
    assert {0, 1} <= set(selected)
    np.testing.assert_allclose(ours.trace_["p_value"], p_values, rtol=1e-6)
    assert ours.wealth_ == pytest.approx(wealth, rel=1e-9)


def test_a_score_statistic_is_that_of_all_parameters(rng):
    """U'I^-1 U with the information of every parameter, computed row by row."""
    X, weight = rng.normal(size=(50, 4)), 1.0 + rng.integers(0, 3, size=50)
    y = classes_of(rng, X, 4).astype(float)
    model = MultinomialModel(y, weight, True, False, False)
    model.accept(model.propose(X[:, 0]))
    found = model.evidence(X[:, 1:]).statistic
    for j in (1, 2, 3):
        score, information = np.zeros((3, 3)), np.zeros((3, 3, 3, 3))
        for row, label, mu, w in zip(X, y, model.fit.mean, weight, strict=True):
            d = np.array([1.0, row[0], row[j]])
            for a in range(3):
                score[a] += w * ((label == a + 1) - mu[a + 1]) * d
                for b in range(3):
                    information[a, :, b] += w * mu[a + 1] * ((a == b) - mu[b + 1]) * np.outer(d, d)
        expected = score.ravel() @ np.linalg.solve(information.reshape(9, 9), score.ravel())
        assert found[j - 1] == pytest.approx(expected, rel=1e-6)


def test_two_classes_are_the_logistic_model(rng):
    X = rng.normal(size=(120, 40))
    y = (X[:, 3] - X[:, 30] + rng.logistic(size=120) > 0).astype(int)
    ours, logistic = AlphaInvesting("multinomial").fit(X, y), AlphaInvesting("logistic").fit(X, y)
    assert ours.selected_ == logistic.selected_
    np.testing.assert_allclose(ours.trace_["log_p"], logistic.trace_["log_p"], rtol=1e-6)
    weight = 1.0 + rng.integers(0, 2, size=120)
    both = [make(1.0 * y, weight, True, True, False) for make in (MultinomialModel, LogisticModel)]
    for model in both:
        model.accept(model.propose(X[:, 3]))
    by_class, plain = (model.evidence(X[:, 4:]).log_p for model in both)
    np.testing.assert_allclose(by_class, np.minimum(plain + math.log(2.0), 0.0), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 6])
def test_p_values_are_uniform_for_unrelated_columns(n_classes):
    """Beside a selected column, 300 rows; the score test of 4000 columns, and the likelihood ratio of 300."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4001))
    y = classes_of(rng, X, n_classes, 0.0)
    y = np.where(X[:, 0] > 1.0, 0, y).astype(float)
    model = MultinomialModel(y, np.ones(300), True, False, False)
    model.accept(model.propose(X[:, 0]))
    p = np.exp(model.evidence(X[:, 1:]).log_p)
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert np.mean(p < 0.01) < 0.016
    ratios = np.exp([model.propose(X[:, j]).log_p for j in range(1, 301)])
    assert 0.02 < np.mean(ratios < 0.05) < 0.09


@pytest.mark.parametrize("variance", ["robust", "series"])
def test_tests_by_class_keep_their_level(variance):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2000))
    y = rng.integers(0, 4, size=400)
    p = (
        AlphaInvesting("multinomial", variance=variance, max_features=1, target_fdr=0.001)
        .fit(X, y)
        .trace_["p_value"]
    )
    assert np.mean(p < 0.05) < 0.06


def test_series_are_noticed(rng):
    """Autocorrelated classes and columns, none of 200 related: the classical variance accepts dozens of them."""
    accepted, plain = 0, 0
    for _ in range(4):
        steps = rng.normal(size=(300, 203))
        for i in range(1, 300):
            steps[i] += 0.9 * steps[i - 1]
        X, y = steps[:, 3:], steps[:, :3].argmax(axis=1)
        selector = AlphaInvesting("multinomial", target_fdr=0.1).fit(X, y)
        assert selector.rows_dependent_
        accepted += len(selector.selected_)
        plain += len(AlphaInvesting("multinomial", target_fdr=0.1, variance="classical").fit(X, y).selected_)
    assert accepted <= 2
    assert plain > 12


def test_a_weight_is_that_many_rows(rng):
    X, weight = rng.normal(size=(90, 30)), rng.integers(0, 3, size=90)
    y = classes_of(rng, X)
    rows = np.repeat(np.arange(90), weight)
    weighted = AlphaInvesting("multinomial", variance="classical").fit(X, y, sample_weight=weight)
    repeated = AlphaInvesting("multinomial", variance="classical").fit(X[rows], y[rows])
    assert weighted.selected_ == repeated.selected_
    np.testing.assert_allclose(weighted.trace_["log_p"], repeated.trace_["log_p"], rtol=1e-6)


def test_a_proxy_leaves(rng):
    X = rng.normal(size=(300, 2))
    y = classes_of(rng, X)
    proxy = X[:, [0]] + 0.7 * rng.normal(size=(300, 1))
    both = np.column_stack([proxy, X])
    assert AlphaInvesting("multinomial", target_fdr=0.1).fit(both, y).selected_ == ["x0", "x1", "x2"]
    assert AlphaInvesting("multinomial", target_fdr=0.1, release=0.05).fit(both, y).selected_ == ["x1", "x2"]


def test_separated_classes_stop_the_search(rng):
    X = rng.normal(size=(60, 50))
    y = np.digitize(X[:, 4], [-0.5, 0.5])
    selector = AlphaInvesting("multinomial").fit(X, y)
    assert selector.stopped_ == "1 features separate the classes perfectly"
    assert selector.selected_ == ["x4"]
