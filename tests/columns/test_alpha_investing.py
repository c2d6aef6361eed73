"""Alpha-investing equals its twin and full regressions, and stops where nothing can be tested."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from tamis import AlphaInvesting, Grafting, PenalisedSelector
from tamis.base.trace import COLLINEAR, REJECTED
from tamis.columns.claims import claims
from tamis.columns.glm import LogisticModel, PoissonModel
from tamis.columns.linear import LinearModel
from tamis.columns.online_fdr import AlphaWealth, LORDPlusPlus, make_rule
from tamis.columns.tails import log_chi2_tail, log_f_tail, log_t_tail
from tamis.errors import DataError
from tests.twins.alpha_investing import (
    alpha_investing,
    group_alpha_investing,
    group_p_value,
    group_p_value_logistic,
    last_p_value,
    robust_test,
)

ONES = np.ones(40)


def waves():
    """Forty rows without random numbers, for figures of another program."""
    i = np.arange(40.0)
    X = np.column_stack([np.sin(i * i / 7), np.cos(3 * i * i / 11), np.sin(5 * i * i / 13 + 1)])
    y = X[:, 0] - 0.6 * X[:, 1] + np.cos(2.3 * i * i / 19) * (1 + 0.5 * X[:, 2])
    return X, y


class Generous(AlphaWealth):
    """A rule of one's own: every second useless feature is welcome."""

    def levels(self, log_p):
        return np.full(len(log_p), np.log(0.5))


def planted(rng, n=100, p=300, noise=0.5):
    X = rng.normal(size=(n, p))
    return X, X[:, [5, 50, 100]] @ [1.0, -1.0, 0.7] + noise * rng.normal(size=n)


# -- decisions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w0", "payout", "intercept"), [(0.5, 0.5, True), (0.05, 0.05, True), (0.5, 0.25, False)]
)
def test_equals_its_twin(w0, payout, intercept, rng):
    X, y = planted(rng)
    selected, p_values, wealths = alpha_investing(X, y, w0, payout, intercept)
    selector = AlphaInvesting(initial_wealth=w0, payout=payout, intercept=intercept).fit(X, y)
    assert selector.selected_ == [f"x{j}" for j in selected]
    np.testing.assert_allclose(selector.trace_["p_value"], p_values, rtol=1e-9)
    np.testing.assert_allclose(selector.trace_["wealth"], wealths, rtol=1e-9)
    assert selector.wealth_ == selector.trace_["wealth"][-1]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(5, 40), st.floats(0.0, 0.999), st.booleans())
def test_blocks_decide_as_single_offers_whatever_the_correlation(seed, n, correlation, binary):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 80))
    for j in range(1, 80):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    y = X[:, 10] + X[:, 60] + 0.5 * rng.normal(size=n)
    selector = AlphaInvesting("logistic" if binary else "linear")
    y = (y > np.median(y)).astype(int) if binary else y
    whole = selector.fit(X, y)
    one = AlphaInvesting(selector.model).start(y)
    assert whole.selected_ == [f"x{j}" for j in range(80) if one.offer(X[:, j])]
    np.testing.assert_allclose(whole.trace_["log_p"], one.trace_["log_p"], rtol=1e-6, atol=1e-6)
    assert whole.stopped_ == one.stopped_


def test_rules_are_components(rng):
    X, y = planted(rng)
    found = AlphaInvesting(rule="lord++", target_fdr=0.1).fit(X, y)
    same = AlphaInvesting(rule=LORDPlusPlus(0.1)).fit(X, y)
    assert found.selected_ == same.selected_
    assert found.selected_[:3] == ["x5", "x50", "x100"]
    for rule in (
        "alpha-spending",
        "lond",
        "e-lond",
        "closed-e-lond",
        "e-lord",
        "e-saffron",
        "score",
        "saffron",
        "addis",
    ):
        selector = AlphaInvesting(rule=rule, target_fdr=0.2).fit(X, y)
        assert {"x5", "x50"} <= set(selector.selected_)
        accepted = selector.trace_["decision"] == "accepted"
        assert (accepted == (selector.trace_["p_value"] <= selector.trace_["threshold"])).all()
        assert selector.trace_["wealth"][-1] == pytest.approx(selector.wealth_, rel=1e-9)


def test_target_fdr_sets_wealth_and_payout(rng):
    X, y = planted(rng)
    found = AlphaInvesting(target_fdr=0.05).fit(X, y)
    assert found.trace_["threshold"][0] == pytest.approx(0.025 / 2)
    assert found.selected_ == AlphaInvesting(initial_wealth=0.025, payout=0.025).fit(X, y).selected_


def test_p_values_beyond_float64_are_compared_all_the_same(rng):
    X = rng.normal(size=(2000, 3))
    y = X[:, 1] + 1e-3 * rng.normal(size=2000)
    selector = AlphaInvesting(target_fdr=1e-300).fit(X, y)
    record = selector.trace_[1]
    assert record["decision"] == "accepted"
    assert record["p_value"] == 0.0
    assert -20_000 < record["log_p"] < -5_000


def test_memory_does_not_grow_with_the_number_of_features(rng):
    y = rng.normal(size=100)
    selector = AlphaInvesting(trace="selected").start(y)
    block = rng.normal(size=(100, 2000))
    selector.offer_many(block)
    tracemalloc.start()
    for _ in range(25):  # 40 MB of features
        selector.offer_many(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
    assert selector.n_offered_ == 52_000


# -- p-values ----------------------------------------------------------------------------------------------

# Computed with statsmodels 0.15.0 for `waves()`: the p-value of the last coefficient with one, two and three features.
STATSMODELS = {
    "OLS": [3.3942834115086907e-09, 0.03423593812116634, 0.5185176006600726],
    "OLS, row i counted 1 + i % 3 times": [2.108178721556952e-20, 0.002385838159520107, 0.04481596659685988],
    "GLM binomial, likelihood ratio": [2.9541699332631446e-09, 0.0505714834447195, 0.7871608521672695],
    "GLM Poisson, likelihood ratio": [5.176314907242219e-18, 0.03808214749336742, 8.210935831189392e-05],
    "GLM binomial, score": [1.8688456095330846e-07, 0.06813794684909245, 0.7880264695287876],
    "GLM Poisson, score": [4.91489037414837e-15, 0.03870414586086713, 6.586006373473751e-05],
}


@pytest.mark.parametrize("kind", list(STATSMODELS))
def test_p_values_are_those_of_statsmodels(kind):
    X, y = waves()
    weight = 1.0 + np.arange(40) % 3 if "counted" in kind else ONES
    if "binomial" in kind:
        model = LogisticModel((y > 0).astype(float), weight, True, False, False)
    elif "Poisson" in kind:
        model = PoissonModel(np.floor(np.exp(y) + 0.5), weight, True, False, False)
    else:
        model = LinearModel(y, weight, True, False, False)
    for j, expected in enumerate(STATSMODELS[kind]):
        several, proposal = model.evidence(X[:, j:]), model.propose(X[:, j])
        log_p = several.log_p[0] if "score" in kind else proposal.log_p
        assert np.exp(log_p) == pytest.approx(expected, rel=1e-9 if "OLS" in kind else 1e-8)
        if "OLS" in kind:
            assert several.log_p[0] == pytest.approx(proposal.log_p, rel=1e-9)
        model.accept(proposal)


def test_p_values_are_those_of_a_full_fit_for_awkward_columns(rng):
    """Nearly collinear, far from zero, tiny, huge."""
    X = rng.normal(size=(60, 6))
    X[:, 1] = X[:, 0] + 1e-3 * rng.normal(size=60)
    X[:, 2] += 1e4
    X[:, 3] *= 1e-9
    X[:, 4] *= 1e9
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    for kind in (np.array, sp.csc_matrix):
        model = LinearModel(y, np.ones(60), True, False, False)
        model.accept(model.propose(X[:, 0]))
        log_p = model.evidence(kind(X[:, 1:])).log_p
        for j in range(1, 6):
            scaled = (X[:, j] - X[:, j].mean()) / X[:, j].std()
            assert np.exp(log_p[j - 1]) == pytest.approx(last_p_value([X[:, 0], scaled], y), rel=1e-8)


def test_public_implementations_p_value_on_request(rng):
    X, y = planted(rng)
    record = AlphaInvesting(pvalue="exp").fit(X[:, :1], y).trace_[0]
    centred, x = y - y.mean(), X[:, 0] - X[:, 0].mean()
    drop = (centred @ x) ** 2 / (x @ x)
    assert record["p_value"] == pytest.approx(np.exp(-drop / (2 * (centred @ centred) / 100)), rel=1e-9)


def test_robust_variance_keeps_its_level_where_the_classical_one_does_not(rng):
    rates = {}
    for variance in ("classical", "robust"):
        hits = 0
        for seed in range(60):
            own = np.random.default_rng(seed)
            X = own.normal(size=(80, 40))
            y = own.normal(size=80) * np.abs(X[:, 0]) ** 2
            trace = AlphaInvesting(variance=variance, initial_wealth=1e-9, payout=0.0).fit(X, y).trace_
            hits += trace["p_value"][0] < 0.05
        rates[variance] = hits / 60
    assert rates["classical"] > 0.25
    assert rates["robust"] < 0.2


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_robust_p_values_are_those_of_the_textbook(model):
    """Beside one feature that is selected; the regression of the working residual, in the weights of the fit."""
    X, y = waves()
    target = {"linear": y, "logistic": (y > 0).astype(float), "poisson": np.floor(np.exp(y) + 0.5)}[model]
    make = {"linear": LinearModel, "logistic": LogisticModel, "poisson": PoissonModel}[model]
    grown = make(target, ONES, True, True, False)
    grown.accept(grown.propose(X[:, 0]))
    found = grown.evidence(X[:, 1:])
    root = np.ones(40) if model == "linear" else grown.root
    for j in (1, 2):
        design = np.column_stack([np.ones(40), X[:, [0, j]]]) * root[:, None]
        t, p_robust = robust_test(design, grown.residual, 37)
        z = design[:, 2] - design[:, :2] @ np.linalg.lstsq(design[:, :2], design[:, 2], rcond=None)[0]
        drop, total = (z @ grown.residual) ** 2 / (z @ z), grown.residual @ grown.residual
        p_own = (
            stats.chi2.sf(drop, 1) if model == "logistic" else stats.f.sf(drop * 37 / (total - drop), 1, 37)
        )
        assert found.statistic[j - 1] == pytest.approx(t**2, rel=1e-9)
        assert np.exp(found.log_p[j - 1]) == pytest.approx(max(p_robust, p_own), rel=1e-9)
        assert grown.propose(X[:, j]).log_p == pytest.approx(found.log_p[j - 1], rel=1e-9)


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_a_robust_test_counts_a_row_of_weight_2_as_the_row_twice(model, rng):
    X, y = rng.normal(size=(40, 6)), rng.poisson(2.0, size=40)
    y = (y > 1).astype(int) if model == "logistic" else y
    weight = rng.integers(0, 4, size=40)
    weighted = AlphaInvesting(model, variance="robust").fit(X, y, sample_weight=weight)
    repeated = AlphaInvesting(model, variance="robust").fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.trace_["log_p"], repeated.trace_["log_p"], rtol=1e-7)


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_robust_blocks_decide_as_single_offers(model, rng):
    X = rng.normal(size=(60, 1100))  # more than are tested at once
    X[:, 500:] = rng.random((60, 600)) < 0.1
    X[:, 40] = X[:, 7] + 1e-3 * rng.normal(size=60)
    y = X[:, 7] + 0.7 * X[:, 900] + 0.5 * rng.normal(size=60)
    y = {"linear": y, "logistic": (y > 0).astype(int), "poisson": np.floor(np.exp(y))}[model]
    whole = AlphaInvesting(model, variance="robust").fit(X, y)
    one = AlphaInvesting(model, variance="robust").start(y)
    assert whole.selected_ == [f"x{j}" for j in range(1100) if one.offer(X[:, j])]
    assert "x7" in whole.selected_
    np.testing.assert_allclose(whole.trace_["log_p"], one.trace_["log_p"], rtol=1e-6, atol=1e-9)
    sparse = AlphaInvesting(model, variance="robust").fit(sp.csc_matrix(X), y)
    assert sparse.selected_ == whole.selected_


def false_and_true(make, n_runs, **parameters):
    """Return how many of the selected were false and true in all runs; the target rate is 0.1."""
    counts = np.zeros(2, dtype=int)
    for seed in range(n_runs):
        X, y, true = make(np.random.default_rng(seed))
        accepted = AlphaInvesting(target_fdr=0.1, **parameters).start(y).offer_many(X)
        counts += [(accepted & ~true).sum(), (accepted & true).sum()]
    return counts.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("n_true", "beta"), [(1, 1.0), (10, 0.3)])
def test_counts_keep_the_rate_though_the_last_feature_that_matters_is_still_to_come(n_true, beta):
    """With the variance of the Poisson model, 156 and 74 of what was selected in these runs is false."""

    def make(rng):
        X, true = rng.normal(size=(400, 150)), np.zeros(150, dtype=bool)
        true[[149] if n_true == 1 else range(9, 150, 15)] = True
        return X, rng.poisson(np.exp(beta * X[:, true].sum(axis=1))), true

    false, found = false_and_true(make, 10, model="poisson")
    assert false <= 2
    assert found >= 0.5 * 10 * n_true
    assert false_and_true(make, 10, model="poisson", variance="classical")[0] > 50


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_robust_tests_are_not_fooled_by_few_rows(model):
    """Columns of 7 % ones, none of which matters, beside three features that do; thresholds near 0.01."""
    below = np.zeros(2)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        known, X = rng.normal(size=(200, 3)), (rng.random((200, 400)) < 0.07).astype(float)
        eta = known.sum(axis=1)
        y = {"linear": eta + rng.normal(size=200), "logistic": rng.random(200) < 1 / (1 + np.exp(4 - eta)),
             "poisson": rng.poisson(np.exp(0.5 * eta))}[model].astype(float)  # fmt: skip
        make = {"linear": LinearModel, "logistic": LogisticModel, "poisson": PoissonModel}[model]
        grown = make(y, np.ones(200), True, True, False)
        for j in range(3):
            grown.accept(grown.propose(known[:, j]))
        log_p = grown.evidence(X).log_p
        below += [(log_p < np.log(0.01)).sum(), (log_p < np.log(0.001)).sum()]
    assert below[0] <= 0.01 * 4800 + 3 * np.sqrt(48)
    assert below[1] <= 0.001 * 4800 + 3 * np.sqrt(4.8)


def test_robust_tests_hold_with_twenty_rows():
    below = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 500)) * np.exp(rng.normal(size=(20, 1)))
        y = rng.normal(size=20)
        below += (LinearModel(y, np.ones(20), True, True, False).evidence(X).log_p < np.log(0.001)).sum()
    assert below <= 0.001 * 10_000 + 3 * np.sqrt(10)


def test_tails_reach_far():
    """Against mpmath 1.3 with 50 digits."""
    assert log_t_tail(np.array([1e8]), 100.0)[0] == pytest.approx(-693.30645381196998, rel=1e-14)
    assert log_t_tail(np.array([0.0, np.inf]), 5.0).tolist() == [0.0, -np.inf]
    both = log_t_tail(np.array([1.0e3, 1.2e3, 1.4e3]), 1e6)  # on both sides of where probabilities underflow
    assert np.diff(np.diff(both))[0] == pytest.approx(0.0, abs=0.05)
    assert log_chi2_tail(np.array([0.0]))[0] == 0.0


def test_tails_keep_their_digits_where_probabilities_have_lost_theirs():
    """Against the limit of the density, exact to 1e-12 there: p from 1e-316 to 2e-320 is no normal number."""
    df = 50.0
    t2 = np.array([2e14, 2.7e14, 2.8e14])
    tail = (
        math.log(2) + special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * math.log(df * math.pi)
        + 0.5 * (df + 1) * math.log(df) - math.log(df) - 0.5 * df * np.log(t2)
    )  # fmt: skip
    np.testing.assert_allclose(log_t_tail(t2, df), tail, rtol=1e-11)


def test_a_score_test_near_its_bar_is_settled_by_the_likelihood_ratio():
    """The eight rows of the docstring: p is 0.123 by the score and 0.104 by the likelihood ratio; the bar is 0.11."""
    x, y = np.arange(8.0)[:, None], np.array([0, 0, 1, 0, 1, 0, 1, 1])
    selector = AlphaInvesting("logistic", initial_wealth=0.22, payout=0.0).fit(x, y)
    assert selector.selected_ == ["x0"]
    assert selector.trace_["p_value"][0] == pytest.approx(0.104, abs=1e-3)
    assert AlphaInvesting("logistic", initial_wealth=0.2, payout=0.0).fit(x, y).selected_ == []


def test_a_step_that_overshoots_is_halved():
    """One row has nearly all counts: Newton's first step from the mean would lose likelihood."""
    x = np.arange(12.0) ** 2 / 100.0
    y = np.array([0, 0, 1, 0, 1, 0, 2, 0, 1, 0, 2, 400.0])

    def loss(b):
        eta = b[0] + b[1] * x
        return np.exp(eta).sum() - y @ eta

    best = optimize.minimize(
        loss, [-4.0, 8.0], method="Nelder-Mead", options={"maxiter": 9000, "fatol": 1e-12}
    ).fun
    alone = y.sum() - y.sum() * np.log(y.mean())
    model = PoissonModel(y, np.ones(12), True, False, False)
    assert model.propose(x).statistic == pytest.approx(2 * (alone - best), rel=1e-6)


def test_a_column_is_collinear_within_a_millionth_of_the_span(rng):
    X, y = planted(rng)
    for model in (
        LinearModel(y, np.ones(100), True, False, False),
        PoissonModel(np.floor(np.exp(y)), np.ones(100), True, True, False),
    ):
        model.accept(model.propose(X[:, 5]))
        aside = (X[:, 7] - X[:, 7].mean()) / X[:, 7].std() * (X[:, 5] - X[:, 5].mean()).std()
        near = X[:, [5]] + np.outer(aside, [1e-8, 1e-7, 1e-5, 1e-3])
        assert model.evidence(near).status.tolist() == [COLLINEAR, COLLINEAR, REJECTED, REJECTED]


# -- ends --------------------------------------------------------------------------------------------------


def test_stops_when_no_degree_of_freedom_is_left(rng):
    X, y = rng.normal(size=(12, 200)), rng.normal(size=12)
    selector = AlphaInvesting(rule=Generous()).fit(X, y)
    assert len(selector.selected_) == 10  # n - 2
    assert selector.stopped_ == "10 features for 12 rows leave no degrees of freedom"
    last = int(selector.trace_["offer"][selector.trace_["decision"] == "accepted"].max())
    assert set(selector.trace_["decision"][last + 1 :]) == {"full"}
    wealth = selector.wealth_
    assert selector.offer(y, "the target itself") is False
    assert selector.wealth_ == wealth


def test_stops_when_y_is_explained(rng):
    X = rng.normal(size=(50, 5))
    selector = AlphaInvesting().fit(X, X[:, 1] - 2 * X[:, 3])
    assert selector.stopped_ == "2 features explain y exactly"
    assert selector.selected_ == ["x1", "x3"]


def test_stops_at_max_features(rng):
    X, y = planted(rng)
    selector = AlphaInvesting(max_features=2).fit(X, y)
    assert selector.selected_ == ["x5", "x50"]
    assert selector.stopped_ == "max_features: 2 features are selected"
    drawn = []

    def features():
        for j in range(300):
            drawn.append(j)
            yield f"x{j}", X[:, j]

    AlphaInvesting(max_features=2).fit_stream(features(), y)
    assert len(drawn) == 51  # a stream is not drawn from once nothing can be accepted


def test_perfect_separation_is_survived_and_said(rng):
    X = rng.normal(size=(60, 30))
    X[:, 4] = np.where(np.arange(60) % 2, 1.0, -1.0) * (1 + np.abs(X[:, 4]))
    selector = AlphaInvesting("logistic").fit(X, np.arange(60) % 2)
    assert "x4" in selector.selected_
    assert selector.stopped_ == f"{len(selector.selected_)} features separate the two classes perfectly"
    assert np.isfinite(selector.trace_["log_p"][:4]).all()


def test_part_of_a_class_set_apart_does_not_stop_it(rng):
    """A column that is 1 in some rows of one class only: its coefficient has no maximum, the others' have."""
    X = rng.normal(size=(200, 6))
    y = (X[:, 5] + rng.normal(size=200) > 0).astype(int)
    X[:, 0] = (y == 1) & (rng.random(200) < 0.4)
    selector = AlphaInvesting("logistic").fit(X, y)
    assert {"x0", "x5"} <= set(selector.selected_)
    assert selector.stopped_ is None


def test_refused_columns_cost_nothing_and_leave_the_basis_as_it_is(rng):
    X, y = planted(rng)
    selector, control = AlphaInvesting().start(y), AlphaInvesting().start(y)
    for one in (selector, control):
        one.offer_many(X[:, :60])
    wealth = selector.wealth_
    sums = X[:, 5] + X[:, 50]
    assert not selector.offer_many(np.column_stack([sums, np.full(100, 3.3), 2 * X[:, 5] - 1])).any()
    assert selector.trace_["decision"][-3:].tolist() == ["collinear", "constant", "collinear"]
    assert selector.wealth_ == wealth
    for one in (selector, control):
        one.offer_many(X[:, 60:])
    np.testing.assert_array_equal(selector.trace_["log_p"][63:], control.trace_["log_p"][60:])


# -- features that leave -----------------------------------------------------------------------------------


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_features_are_tested_again_as_the_last_of_a_full_fit(model, robust, signs, rng):
    """Whichever order they entered in; a Wald test in a generalised linear model; all rows speak for signs."""
    X, y = waves()
    if signs:
        i = np.arange(40)
        X = np.column_stack([np.where(i // period % 2, 1.0, -1.0) for period in (1, 2, 4)])
        y = 0.3 * (X[:, 0] + X[:, 1]) + np.cos(2.3 * i * i / 19)
    X = X * [1e6, 1.0, 1e-6] + [3.0, 0.0, 0.0]
    target = {"linear": y, "logistic": (y > 0).astype(float), "poisson": np.floor(np.exp(y) + 0.5)}[model]
    make = {"linear": LinearModel, "logistic": LogisticModel, "poisson": PoissonModel}[model]
    weight = 1.0 + rng.integers(0, 2, 40) if not robust else ONES
    grown = make(target, weight, True, robust, False)
    for j in range(3):
        grown.accept(grown.propose(X[:, j]))
    found, df = np.exp(grown.retest(X)), weight.sum() - 4
    for last in range(3):
        order = [j for j in range(3) if j != last] + [last]
        design = np.column_stack([np.ones(40), X[:, order]])
        root = np.sqrt(weight) if model == "linear" else grown.root
        aim = target if model == "linear" else grown.fit.eta
        whitened = design * root[:, None]
        beta = np.linalg.lstsq(whitened, root * aim, rcond=None)[0][-1]
        others = whitened[:, :-1]
        z = whitened[:, -1] - others @ np.linalg.lstsq(others, whitened[:, -1], rcond=None)[0]
        wald, rss = beta**2 * (z @ z), grown.residual @ grown.residual
        by_f = stats.f.sf(wald * df / rss, 1, df)
        expected = by_f if model == "linear" or (robust and model == "poisson") else stats.chi2.sf(wald, 1)
        if robust:
            leverage = (np.linalg.qr(whitened)[0] ** 2).sum(axis=1)
            t = abs(beta) * (z @ z) / np.sqrt((z**2 * grown.residual**2 / (1 - leverage)).sum())
            degrees = min((z @ z) ** 2 / (z**4).sum() - 1, df)
            expected = max(expected, 2 * stats.t.sf(t, degrees))
        assert found[last] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_a_model_that_restarts_is_one_that_grew(model, rng):
    X = rng.normal(size=(50, 12))
    y = {"linear": X[:, 0] + rng.normal(size=50), "logistic": (X[:, 0] + rng.normal(size=50) > 0).astype(float),
         "poisson": rng.poisson(np.exp(0.4 * X[:, 0])).astype(float)}[model]  # fmt: skip
    make = {"linear": LinearModel, "logistic": LogisticModel, "poisson": PoissonModel}[model]
    weight = 1.0 + rng.integers(0, 2, 50)
    restarted, grown = make(y, weight, True, False, False), make(y, weight, True, False, False)
    for j in range(6):
        restarted.accept(restarted.propose(X[:, j]))
    for j in (1, 3, 4):
        grown.accept(grown.propose(X[:, j]))
    restarted.restart(X[:, [1, 3, 4]])
    np.testing.assert_allclose(restarted.evidence(X[:, 6:]).log_p, grown.evidence(X[:, 6:]).log_p, rtol=1e-6)
    assert restarted.propose(X[:, 7]).statistic == pytest.approx(grown.propose(X[:, 7]).statistic, rel=1e-6)
    assert restarted.df == grown.df


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_a_stand_in_leaves_when_what_it_stood_for_comes(model):
    rng = np.random.default_rng(0)
    true = rng.normal(size=(500, 3))
    X = np.column_stack([true + 0.6 * rng.normal(size=(500, 3)), rng.normal(size=(500, 40)), true])
    eta = true.sum(axis=1)
    y = {"linear": eta + rng.normal(size=500), "logistic": rng.random(500) < 1 / (1 + np.exp(-2 * eta)),
         "poisson": rng.poisson(np.exp(0.5 * eta))}[model]  # fmt: skip
    names = [
        *(f"like {j}" for j in range(3)),
        *(f"noise {j}" for j in range(40)),
        *(f"true {j}" for j in range(3)),
    ]
    stays = AlphaInvesting(model, target_fdr=0.1).start(y)
    stays.offer_many(X, names)
    assert {"like 0", "like 1", "like 2"} <= set(stays.selected_)
    goes = AlphaInvesting(model, target_fdr=0.1, release=0.05).start(y)
    accepted = goes.offer_many(X, names)
    assert goes.selected_ == ["true 0", "true 1", "true 2"]
    assert accepted[[0, 1, 2, -1]].all()  # as they were judged when they came
    assert np.flatnonzero(goes.get_support()).tolist() == [43, 44, 45]
    one = AlphaInvesting(model, target_fdr=0.1, release=0.05).start(y)
    for j, name in enumerate(names):
        one.offer(X[:, j], name)
    assert one.selected_ == goes.selected_
    np.testing.assert_allclose(one.trace_["log_p"], goes.trace_["log_p"], rtol=1e-6, atol=1e-9)
    assert goes.offer(X[:, 0], "like 0") is False  # it may come again, and has nothing to say


def test_what_leaves_is_above_release(rng):
    X = rng.normal(size=(100, 2))
    X[:, 1] += X[:, 0]
    y = 0.3 * X[:, 0] + X[:, 1] + rng.normal(size=100)
    p = last_p_value([X[:, 1], X[:, 0]], y)
    assert 0.001 < p < 0.3
    assert AlphaInvesting(release=1.01 * p).fit(X, y).selected_ == ["x0", "x1"]
    assert AlphaInvesting(release=0.99 * p).fit(X, y).selected_ == ["x1"]


def test_release_makes_room(rng):
    """A model that was full for `max_features` goes on when one of them leaves."""
    true = rng.normal(size=(300, 2))
    X = np.column_stack([true[:, 0] + 0.5 * rng.normal(size=300), true[:, 0], true[:, 1]])
    y = true.sum(axis=1) + rng.normal(size=300)
    assert AlphaInvesting(max_features=2).fit(X, y).selected_ == ["x0", "x1"]
    selector = AlphaInvesting(max_features=2, release=0.05).fit(X, y)
    assert selector.selected_ == ["x1", "x2"]
    assert selector.stopped_ == "max_features: 2 features are selected"


def test_release_and_clusters_keep_the_rate_where_columns_are_correlated():
    """Ten of 300 columns matter, each correlated with its neighbours by 0.7: of 15 runs, what is false."""
    false, n = np.zeros(3), np.zeros(3)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 300))
        for j in range(1, 300):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(0.51) * X[:, j]
        true = rng.choice(300, 10, replace=False)
        y = 0.5 * X[:, true].sum(axis=1) + rng.normal(size=400)
        plain = AlphaInvesting(target_fdr=0.1).fit(X, y)
        own = AlphaInvesting(target_fdr=0.1, release=0.05).fit(X, y)
        matters = {f"x{j}" for j in true}
        for i, verdicts in enumerate((
            [name in matters for name in plain.selected_], [name in matters for name in own.selected_],
            [bool(matters & set(cluster)) for cluster in claims(own, X).values()],
        )):  # fmt: skip
            false[i] += verdicts.count(False)
            n[i] += len(verdicts)
    share = false / n
    assert share[0] > 0.3
    assert share[1] < 0.6 * share[0]
    assert share[2] < 0.1


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"model": "probit"},
            "model must be one of 'linear', 'logistic', 'multinomial', 'poisson', got 'probit'",
        ),
        ({"rule": "fdr"}, "rule must be one of 'alpha-investing'"),
        ({"initial_wealth": -1}, "initial_wealth must be a number"),
        ({"payout": 1}, "payout must be a number"),
        ({"target_fdr": 2}, "target_fdr must be a number"),
        ({"variance": "hc3"}, "variance must be one of"),
        ({"pvalue": "t"}, "pvalue must be one of"),
        ({"release": 0.0}, r"release must be a number in \(0, 1\]"),
        ({"intercept": "yes"}, "intercept must be one of"),
        ({"max_features": 0}, "max_features must be an integer"),
    ],
)
def test_impossible_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        AlphaInvesting(**parameters).start(np.arange(9.0))


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        ("linear", np.ones(9), r"y is constant \(1\)"),
        ("linear", np.arange(2.0), r"y has 2 sample\(s\) of total weight 2, too few"),
        ("linear", np.array(list("ababababa")), "y contains 'a', which is text"),
        ("logistic", np.ones(9), r"y has 1 class\(es\) \(1.0\), but model='logistic' needs two"),
        ("logistic", np.arange(9), r"y has 9 class\(es\) \(0, 1, 2, 3, 4\)"),
        ("poisson", np.arange(9.0) - 3, "y contains -3, but model='poisson' needs counts"),
        ("poisson", np.zeros(9), "y is constant"),
        ("poisson", np.array([0.0, 1.0]), "too few for this model"),
    ],
)
def test_impossible_targets_are_explained(model, y, message):
    with pytest.raises(DataError, match=message):
        AlphaInvesting(model).start(y)


def test_the_linear_model_of_a_rare_class_is_robust(rng):
    X, y = (rng.random((300, 400)) < 0.01).astype(float), rng.permutation(np.repeat([1.0, 0.0], [6, 294]))
    with pytest.warns(UserWarning, match="6 of 300 rows have the value 1: .*choose model='logistic'"):
        classical = AlphaInvesting(variance="classical").fit(X, y)
    auto = AlphaInvesting(target_fdr=0.1).fit(X, y)
    assert len(auto.selected_) == 0 < 3 < len(classical.selected_)


def test_the_linear_model_of_outliers_is_robust(rng):
    X, y = (rng.random((300, 400)) < 0.01).astype(float), rng.normal(size=300)
    y[[3, 50, 210]] = 100.0, -80.0, 120.0
    with pytest.warns(UserWarning, match=r"kurtosis \d+, .*choose variance='robust'"):
        classical = AlphaInvesting(target_fdr=0.1, variance="classical").fit(X, y)
    auto, robust = (AlphaInvesting(target_fdr=0.1, variance=how).fit(X, y) for how in ("auto", "robust"))
    assert len(robust.selected_) == 0 < 3 < len(classical.selected_)
    np.testing.assert_array_equal(auto.trace_["p_value"], robust.trace_["p_value"])
    normal = rng.normal(size=(300, 20))  # the t test is valid for them for any target
    auto = AlphaInvesting().fit(normal, y)
    with pytest.warns(UserWarning, match="kurtosis"):
        classical = AlphaInvesting(variance="classical").fit(normal, y)
    np.testing.assert_allclose(auto.trace_["p_value"], classical.trace_["p_value"], rtol=1e-9)
    for scale in (1e-200, 1e200):
        with pytest.warns(UserWarning, match="kurtosis"):
            AlphaInvesting(variance="classical").start(y * scale)


def test_the_linear_model_warns_of_rare_values(rng):
    with pytest.warns(UserWarning, match="kurtosis"):
        AlphaInvesting(variance="classical").start(np.repeat([0, 1, 2], [2, 2, 56]))


def test_the_linear_model_does_not_warn_of_numbers_or_of_halves(rng, recwarn):
    X = rng.normal(size=(60, 3))
    for y in (
        np.arange(60) % 2,
        np.arange(60) % 3 == 0,
        np.arange(60) % 7,
        X[:, 0],
        X[:, 1] * 1e-200 + 1e-199,
    ):
        AlphaInvesting(variance="classical").fit(X, y)
    for how in ("auto", "robust"):
        AlphaInvesting(variance=how).fit(X, np.arange(60) < 3)
    assert not recwarn.list


def test_labels_of_two_classes_may_be_anything(rng):
    X, y = planted(rng)
    labels = np.where(y > 0, "up", "down")
    selector = AlphaInvesting("logistic", target_fdr=0.1).fit(X, labels)
    assert selector.selected_ == AlphaInvesting("logistic", target_fdr=0.1).fit(X, y > 0).selected_
    assert sorted(selector.classes_) == ["down", "up"]
    assert {"x5", "x50"} <= set(selector.selected_)


# -- groups ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_groups_equal_their_twin(model, rng):
    X = rng.normal(size=(150, 40))
    y = X[:, [4, 5, 6, 20]].sum(axis=1) + rng.normal(size=150)
    y, p_value = (y, group_p_value) if model == "linear" else ((y > 0) * 1, group_p_value_logistic)
    groups = [[*range(4 * k, 4 * k + 4)] for k in range(10)]
    selected, p_values, wealth = group_alpha_investing(X, y, groups, p_value)
    ours = AlphaInvesting(model, groups=dict(enumerate(groups))).fit(X, y)
    assert ours.selected_ == [f"x{j}" for j in selected]
    assert selected[:4] == [4, 5, 6, 7]
    np.testing.assert_allclose(ours.trace_["p_value"], p_values, rtol=1e-6)
    assert ours.wealth_ == pytest.approx(wealth, rel=1e-9)
    by_block = AlphaInvesting(model, groups="blocks").start(y)
    for group in groups:
        by_block.offer_many(sp.csc_matrix(X[:, group]), [f"x{j}" for j in group])
    assert by_block.selected_ == ours.selected_


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
@pytest.mark.parametrize("variance", ["classical", "robust", "series"])
def test_a_group_of_one_is_a_column(model, variance, rng):
    X, y = planted(rng, n=200, p=110)
    y = {"linear": y, "logistic": (y > 0) * 1, "poisson": rng.poisson(np.exp(0.5 * y))}[model]
    alone = AlphaInvesting(model, variance=variance).fit(X, y)
    groups = {j: [j] for j in range(0, 110, 2)}
    grouped = AlphaInvesting(model, variance=variance, groups=groups).fit(X, y)
    assert grouped.selected_ == alone.selected_
    # A score test is refined by the likelihood ratio only near its threshold; a group always is.
    tolerance = 1e-6 if model == "linear" or variance != "classical" else 0.3
    np.testing.assert_allclose(grouped.trace_["log_p"], alone.trace_["log_p"], rtol=tolerance, atol=0.02)


@pytest.mark.parametrize(("model", "robust"), [("linear", False), ("logistic", False), ("poisson", True)])
def test_groups_of_noise_keep_their_rate(model, robust):
    """1000 unrelated groups of five columns beside a selected one, at a level of .05: standard error .007."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 5001))
    mean = 0.5 * X[:, 0]
    y = {
        "linear": mean + rng.normal(size=300),
        "logistic": 1.0 * (mean + rng.logistic(size=300) > 0),
        "poisson": 1.0 * rng.poisson(np.exp(mean)),
    }[model]
    make = {"linear": LinearModel, "logistic": LogisticModel, "poisson": PoissonModel}[model]
    fitted = make(y, np.ones(300), True, robust, False)
    fitted.accept(fitted.propose(X[:, 0]))
    log_p = [fitted.evidence_of_group(X[:, j : j + 5]).log_p for j in range(1, 5001, 5)]
    rate = np.mean(np.array(log_p) < math.log(0.05))
    assert (0.005 if robust else 0.03) < rate < 0.07


def test_what_a_group_leaves_out(rng):
    X, y = planted(rng)
    X[:, 6], X[:, 7], X[:, 8] = 3.0, X[:, 5], X[:, 5] + X[:, 9]
    selector = AlphaInvesting(groups={"group": [5, 6, 7, 8, 9]}, max_features=3).fit(X[:, :30], y)
    assert selector.trace_["decision"][5:10].tolist() == [
        "accepted", "constant", "collinear", "accepted", "collinear",
    ]  # fmt: skip
    group = {"group": [*range(20)]}
    full = AlphaInvesting(groups=group, max_features=3, target_fdr=0.01).fit(X[:, 10:110], y)
    assert (full.trace_["decision"][:20] == "full").all()
    assert "x40" in full.selected_  # it stands after the group
    after = AlphaInvesting(max_features=3, target_fdr=0.01).fit(X[:, 30:110], y)
    assert full.wealth_ == pytest.approx(after.wealth_)


def test_a_group_may_lose_a_column_to_release(rng):
    X, y = planted(rng)
    X[:, 0] = X[:, 5] + rng.normal(size=100)
    groups = {"proxy": [0, 1]}
    stays = AlphaInvesting(groups=groups, target_fdr=0.1).fit(X, y)
    assert {"x0", "x1", "x5", "x50", "x100"} <= set(stays.selected_)
    leaves = AlphaInvesting(groups=groups, release=0.01, target_fdr=0.1).fit(X, y)
    assert {"x5", "x50", "x100"} <= set(leaves.selected_)
    assert not {"x0", "x1"} & set(leaves.selected_)


def test_tails_of_groups_reach_far():
    for k, df in ((2, 30.0), (5, 200.0), (11, 7.0)):
        for f in (0.5, 3.0, 20.0):
            assert log_f_tail(f, k, df) == pytest.approx(stats.f.logsf(f, k, df), rel=1e-8)
    # Where the probability underflows: two degrees of freedom have a closed form.
    assert log_f_tail(1e9, 2, 100.0) == pytest.approx(-50 * math.log1p(2e7), rel=1e-12)
    assert log_chi2_tail(np.array([5000.0]), 2)[0] == pytest.approx(-2500.0, rel=1e-12)
    half = 1450.0  # four degrees: exp(-h) (1 + h)
    assert log_chi2_tail(np.array([2 * half]), 4)[0] == pytest.approx(math.log1p(half) - half, rel=1e-12)


@pytest.mark.parametrize("model", ["logistic", "multinomial"])
def test_rows_sorted_by_class_keep_their_relations(model, rng):
    y = np.repeat(np.arange(2 + (model == "multinomial")), 400)
    X = rng.normal(size=(len(y), 6))
    X[:, 3] += 0.4 * y
    auto = AlphaInvesting(model, target_fdr=0.05).fit(X, y)
    assert auto.get_support().tolist() == [False, False, False, True, False, False]
    X[:, 5] = np.cumsum(rng.normal(size=len(y)))  # a series, which differs between any two runs
    auto = AlphaInvesting(model, target_fdr=0.05).fit(X, y)
    assert auto.selected_ == ["x3"]
    assert auto.trace_["p_value"][5] > 0.01
    groups = {"series": ["x5", "x4"], "other": ["x3", "x2"]}
    in_groups = AlphaInvesting(model, target_fdr=0.05, groups=groups).fit(X, y)
    assert sorted(in_groups.selected_) == ["x2", "x3"]
    runs = np.arange(len(y)) // 20 % 2  # 60 runs: an order of time
    assert AlphaInvesting("logistic").fit(X, runs).rows_dependent_


def test_a_prior_gives_columns_the_levels_of_their_weights_in_any_blocks(rng):
    X = rng.normal(size=(200, 90))
    y = 0.32 * X[:, 70] + X[:, 3] + rng.normal(size=200)
    prior = {"x70": 40.0, 71: 2.0}
    whole = AlphaInvesting(target_fdr=0.05, prior=prior).fit(X, y)
    single = AlphaInvesting(target_fdr=0.05, prior=prior).start(y)
    for j in range(90):
        single.offer(X[:, j])
    assert whole.selected_ == single.selected_ == ["x3", "x70"]
    assert AlphaInvesting(target_fdr=0.05).fit(X, y).selected_ == ["x3"]
    np.testing.assert_allclose(single.trace_["threshold"], whole.trace_["threshold"], rtol=1e-9)
    rule = make_rule("alpha-investing", 0.05).start()
    weight = np.ones(90)
    weight[[70, 71]] = 40.0, 2.0
    for p, w, accepted, threshold in zip(
        whole.trace_["log_p"],
        weight,
        whole.trace_["decision"] == "accepted",
        whole.trace_["threshold"],
        strict=True,
    ):
        assert threshold == pytest.approx(np.exp(rule.level(w)), rel=1e-9)
        rule.update(accepted, p, w)


def test_a_group_has_the_mean_weight_of_its_columns(rng):
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    groups = {"a": [0, 1], "b": [2, 3]}
    found = AlphaInvesting(rule="lond", groups=groups, prior={"x0": 3.0}).fit(X, y).trace_["threshold"]
    rule = make_rule("lond", None).start()
    assert found[0] == pytest.approx(np.exp(rule.level(2.0)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"prior": {"a": 0.0}},
            r"prior must be a dict from columns to weights, numbers from 0.001 to 1000 or None, got",
        ),
        ({"prior": ["a"]}, "prior must be a dict from columns to weights"),
        (
            {"prior": {"a": 2.0}, "rule": "closed-e-lond"},
            "prior was given, but the rule ClosedELOND has no weights",
        ),
    ],
)
def test_impossible_priors_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        AlphaInvesting(**parameters).start(np.arange(20.0))


@pytest.mark.parametrize("kind", [AlphaInvesting, Grafting, PenalisedSelector])
def test_text_labels_lead_to_the_model_of_classes(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.where(X[:, 2] + 0.3 * rng.normal(size=200) > 0, "on", "off")
    with pytest.raises(
        DataError, match=r"y contains 'o[nf]+', which is text: choose model='logistic' if it has two"
    ):
        kind().fit(X, y)
    assert kind(model="logistic").fit(X, y).selected_ == ["x2"]
