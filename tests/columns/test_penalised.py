"""Streaming AIC, BIC and RIC equal full regressions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from tamis import ForwardStepwise, PenalisedSelector
from tests.twins.penalised import penalised


def planted(rng, n=80, p=120):
    X = rng.normal(size=(n, p))
    return X, X[:, 20] - X[:, 90] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("criterion", "n_candidates"), [("aic", None), ("bic", None), ("ric", None), ("ric", 120)]
)
def test_equals_its_twin(criterion, n_candidates, rng):
    X, y = planted(rng)
    selected, gains = penalised(X, y, criterion, n_candidates)
    selector = PenalisedSelector(criterion, n_candidates=n_candidates).fit(X, y)
    assert selector.selected_ == [f"x{j}" for j in selected]
    np.testing.assert_allclose(selector.trace_["statistic"], gains, rtol=1e-7, atol=1e-9)
    assert {"x20", "x90"} <= set(selector.selected_)


def test_thresholds_are_the_penalties(rng):
    X, y = planted(rng)
    X = X[:, :5]
    for criterion, expected in (("aic", [2.0] * 5), ("bic", [np.log(80)] * 5)):
        assert PenalisedSelector(criterion).fit(X, y).trace_["threshold"].tolist() == expected
    np.testing.assert_allclose(
        PenalisedSelector("ric").fit(X, y).trace_["threshold"], 2 * np.log(np.arange(2, 7))
    )


def test_aic_goes_on_to_n_minus_2_and_ric_does_not(rng):
    X, y = planted(rng, n=40, p=600)
    aic, ric = PenalisedSelector("aic").fit(X, y), PenalisedSelector("ric", n_candidates=600).fit(X, y)
    assert len(aic.selected_) == 38
    assert aic.stopped_ == "38 features for 40 rows leave no degrees of freedom"
    assert len(ric.selected_) < 6


@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_gain_of_what_is_accepted_is_a_likelihood_ratio(model, rng):
    X, y = planted(rng)
    target = (y > 0) if model == "logistic" else rng.poisson(np.exp(0.5 * y))
    selector = PenalisedSelector("bic", model=model).fit(X, target)
    accepted = selector.trace_["decision"] == "accepted"
    assert (selector.trace_["statistic"][accepted] > np.log(80)).all()
    assert {"x20", "x90"} <= set(selector.selected_)


@pytest.mark.parametrize("kind", [PenalisedSelector, ForwardStepwise])
@pytest.mark.parametrize("varies", ["a feature still to come", "more than Poisson"])
def test_counts_that_vary_more_than_poisson_accept_no_noise(kind, varies):
    """Plain likelihood ratios take 23 of 99 columns of noise with a strong feature still to come."""
    false, found = 0, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 100))
        mean = np.exp(0.5 + X[:, 99])
        if varies == "more than Poisson":
            mean = mean * rng.gamma(1.0, 1.0, size=500)
        names = kind("ric", model="poisson", n_candidates=100).fit(X, rng.poisson(mean)).selected_
        false, found = false + len(names) - ("x99" in names), found + ("x99" in names)
    assert found == 4
    assert false <= 3


def test_the_gain_of_counts_has_the_p_value_of_the_robust_test(rng):
    X = rng.normal(size=(60, 5))
    trace = PenalisedSelector("ric", model="poisson").fit(X, rng.poisson(np.exp(X[:, 4]))).trace_
    np.testing.assert_allclose(chi2.logsf(trace["statistic"], 1), trace["log_p"], rtol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": "hqic"}, "criterion must be one of 'aic', 'bic', 'ric', got 'hqic'"),
        ({"n_candidates": 0}, "n_candidates must be an integer"),
        ({"model": "probit"}, "model must be one of"),
    ],
)
def test_impossible_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        PenalisedSelector(**parameters).start(np.arange(9.0))
