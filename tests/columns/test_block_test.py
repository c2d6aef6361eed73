"""Tests of coefficients on autocorrelated rows: equal to their definition, and rarely wrong."""

import numpy as np
import pytest
from scipy.signal import fftconvolve, lfilter
from sklearn.base import clone

from tamis import OSFS, SAOLA, AlphaInvesting, FastOSFS
from tamis.columns.block_test import series_evidence, series_log_p
from tamis.dependence.autocorrelation import correlation_length, is_series
from tests.twins import block_test as twin


def series(rng, n, n_columns, phi):
    noise = rng.normal(size=(n + 300, n_columns))
    return lfilter([1], [1, -phi], noise, axis=0)[300:] * np.sqrt(1 - phi**2)


@pytest.mark.parametrize("n", [90, 301])
@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9])
def test_equals_its_definition(n, phi):
    X, r = np.split(series(np.random.default_rng(n), n, 4, phi), [3], axis=1)
    r, z = (r - r.mean(axis=0))[:, 0], X - X.mean(axis=0)
    found = series_evidence(
        X, np.full((n, 1), n**-0.5), r, True, lambda drop: np.full(len(drop), -np.inf), r, np.ones(n)
    )
    expected = [twin.pvalue(z[:, j].tolist(), r.tolist()) for j in range(3)]
    np.testing.assert_allclose(np.exp(found.log_p), expected, rtol=1e-8)
    assert correlation_length(r) == pytest.approx(twin.correlation_length(r.tolist()))
    assert is_series(r) == (phi > 0.0)


@pytest.mark.parametrize("halves", [1, 2])
def test_weighted_rows_are_repeated_rows_and_a_row_may_be_divided(halves):
    rng = np.random.default_rng(3)
    X, y, w = rng.normal(size=(300, 4)), rng.normal(size=300), rng.integers(1, 5, 300).astype(np.float64)

    def evidence(X, y, w):
        mean, share, root = np.average(X, axis=0, weights=w), w / w.sum(), np.sqrt(w)
        r = (y - share @ y) * root
        basis = np.sqrt(share)[:, None]
        found = series_evidence((X - mean) * root[:, None], basis, r, True, lambda drop: -drop, y, w)
        return found.log_p, correlation_length(r / root, w), is_series(r / root, w)

    whole = evidence(X, y, w)
    at = np.repeat(np.arange(300), (w if halves == 1 else np.full(300, 2.0)).astype(int))
    other = evidence(X[at], y[at], np.ones(len(at)) if halves == 1 else w[at] / 2.0)
    np.testing.assert_allclose(other[0], whole[0], rtol=1e-8)
    assert other[1:] == (pytest.approx(whole[1]), whole[2])


def test_a_selected_feature_is_tested_with_the_residual_of_all():
    X = series(np.random.default_rng(0), 400, 3, 0.8)
    z, y = X - X.mean(axis=0), X[:, 0] + series(np.random.default_rng(1), 400, 1, 0.8)[:, 0]
    q = np.linalg.qr(z)[0]
    residual = (y - y.mean()) - q @ (q.T @ y)
    slope = np.linalg.lstsq(z, y - y.mean(), rcond=None)[0]
    outside = np.column_stack(
        [z[:, j] - (o := np.linalg.qr(np.delete(z, j, 1))[0]) @ (o.T @ z[:, j]) for j in range(3)]
    )
    basis = np.column_stack([np.full(400, 400**-0.5), q])
    p = np.exp(series_log_p(outside, slope, residual, basis, np.full(3, -np.inf), y, np.ones(400)))
    assert p[0] < 1e-3
    assert (p[1:] > 0.01).all()
    for j in range(3):  # the same as a candidate beside the others
        others = np.column_stack([np.full(400, 400**-0.5), np.linalg.qr(np.delete(z, j, 1))[0]])
        rest = (y - y.mean()) - others @ (others.T @ (y - y.mean()))
        alone = series_evidence(
            z[:, [j]], others, rest, True, lambda drop: np.full(len(drop), -np.inf), y, np.ones(400)
        )
        assert p[j] == pytest.approx(np.exp(alone.log_p[0]), rel=0.3)  # whitened by another residual


@pytest.mark.parametrize(("model", "most"), [("linear", 6), ("logistic", 5), ("poisson", 6)])
def test_few_unrelated_series_are_accepted(model, most):
    accepted, plain = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = series(rng, 300, 100, 0.9), series(rng, 300, 1, 0.9)[:, 0]
        y = {"linear": y, "logistic": y > np.median(y), "poisson": rng.poisson(np.exp(y))}[model]
        selector = AlphaInvesting(target_fdr=0.1, model=model).fit(X, y)
        assert selector.rows_dependent_
        accepted += len(selector.selected_)
        if seed < 3 and model != "poisson":
            plain += len(
                AlphaInvesting(target_fdr=0.1, model=model, variance="classical").fit(X, y).selected_
            )
    assert accepted <= most
    assert plain >= 10 or model == "poisson"


def test_a_relevant_series_is_found_and_kept_on_retest():
    rng = np.random.default_rng(5)
    X, y = series(rng, 2000, 30, 0.9), series(rng, 2000, 1, 0.9)[:, 0]
    y += X[:, 20]
    assert AlphaInvesting(target_fdr=0.1, release=0.05).fit(X, y).selected_ == ["x20"]


def test_independent_rows_are_tested_as_before():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(300, 40)), rng.normal(size=300)
    one, other = (AlphaInvesting(variance=how).fit(X, y) for how in ("auto", "classical"))
    assert not one.rows_dependent_
    np.testing.assert_array_equal(one.trace_["p_value"], other.trace_["p_value"])


@pytest.mark.parametrize("model", ["linear", "logistic", "multinomial"])
def test_weights_do_not_hide_that_rows_are_a_series(model):
    rng, accepted = np.random.default_rng(8), 0
    for _ in range(5):
        X, y = series(rng, 500, 20, 0.9), series(rng, 500, 1, 0.9)[:, 0]
        y = {"linear": y, "logistic": y > 0, "multinomial": np.searchsorted([-0.5, 0.5], y)}[model]
        weight = rng.exponential(size=500)
        selector = AlphaInvesting(model, target_fdr=0.1).fit(X, y, sample_weight=weight)
        assert selector.rows_dependent_
        accepted += len(selector.selected_)
    assert accepted <= 2


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_columns_and_noisy_targets_of_lots_are_rarely_accepted(model):
    accepted = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        lots = np.repeat(rng.normal(size=(30, 101)), 200, axis=0)
        y = lots[:, 100] + 3.0 * rng.normal(size=6000)
        y = y if model == "linear" else y > np.median(y)
        accepted += len(AlphaInvesting(model, target_fdr=0.1).fit(lots[:, :100], y).selected_) > 0
    assert accepted <= 4  # a level of .1: 1.5 expected; 9 to 10 before


def test_the_classical_variance_warns_of_volatility_and_heavy_tails():
    rng = np.random.default_rng(0)
    volatility = np.exp(0.5 * series(rng, 2000, 1, 0.98)[:, 0])
    with pytest.warns(UserWarning, match="squares are autocorrelated|kurtosis"):
        AlphaInvesting(variance="classical").start(volatility * rng.normal(size=2000))
    with pytest.warns(UserWarning, match="kurtosis"):
        AlphaInvesting(variance="classical").start(
            series(rng, 1000, 1, 0.9)[:, 0] + 5.0 * rng.standard_t(1.5, 1000)
        )


def lots(rng, n, n_columns, length):
    return np.repeat(rng.normal(size=(n // length + 1, n_columns)), length, axis=0)[:n]


def garch(rng, n, n_columns):
    """A variance that all columns share."""
    noise, variance = rng.normal(size=(n, n_columns)), np.ones(n)
    for i in range(1, n):
        variance[i] = 0.05 + variance[i - 1] * (0.8 + 0.15 * float(noise[i - 1, -1] ** 2))
    return noise * np.sqrt(variance)[:, None]


def calendar(rng, n, n_columns, period):
    profile = rng.normal(size=(period, n_columns))
    profile = sum(np.roll(profile, k, axis=0) for k in (-2, -1, 0, 1, 2)) / np.sqrt(5.0)
    return np.tile(profile, (n // period + 1, 1))[:n] + series(rng, n, n_columns, 0.7)


def long_memory(rng, n, n_columns, d=0.4):
    k = np.arange(1, 4000)
    weights = np.r_[1.0, np.cumprod((k - 1 + d) / k)]
    return fftconvolve(rng.normal(size=(n + 4000, n_columns)), weights[:, None], axes=0)[4000 : n + 4000]


def noisy_target(rng, n):
    return np.r_[np.zeros(60), 1.0] * rng.normal(size=(n, 61))


def weekly(rng, n):
    return np.sin(2 * np.pi * (np.arange(n)[:, None] / 168 + rng.random(61))) + rng.normal(size=(n, 61))


UNRELATED = {
    "AR(.99) and noise": lambda rng: series(rng, 1000, 61, 0.99) + noisy_target(rng, 1000),
    "AR(2)": lambda rng: lfilter([1], [1, -1.7, 0.9], rng.normal(size=(1200, 61)), axis=0)[200:],
    "lots of 37 rows": lambda rng: lots(rng, 1500, 61, 37) + 2.0 * noisy_target(rng, 1500),
    "common volatility": lambda rng: np.exp(series(rng, 1000, 1, 0.98)) * rng.normal(size=(1000, 61)),
    "GARCH": lambda rng: garch(rng, 1000, 61),
    "t(1.5)": lambda rng: rng.standard_t(1.5, size=(1000, 61)),
    "AR(.9) of t(1.5)": lambda rng: lfilter([1], [1, -0.9], rng.standard_t(1.5, size=(1200, 61)), axis=0)[200:],
    "daily profiles": lambda rng: calendar(rng, 2000, 61, 24),
    "weekly sine": lambda rng: weekly(rng, 2000),
    "long memory": lambda rng: long_memory(rng, 1000, 61),
    "random walks": lambda rng: np.cumsum(rng.normal(size=(1000, 61)), axis=0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("design", UNRELATED)
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_any_of_sixty_unrelated_columns_is_rarely_accepted(design, model):
    accepted = 0
    for seed in range(20):
        Z = UNRELATED[design](np.random.default_rng(seed))
        y = Z[:, 60] if model == "linear" else Z[:, 60] > np.median(Z[:, 60])
        accepted += len(AlphaInvesting(model, target_fdr=0.1).fit(Z[:, :60], y).selected_) > 0
    assert accepted <= 5  # 2 expected at the nominal rate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selector", "most"),
    [
        (AlphaInvesting("multinomial", target_fdr=0.1), 0.5), (AlphaInvesting("logistic", rule="saffron"), 0.5),
        (OSFS(), 1.5), (FastOSFS(), 1.5), (SAOLA(), 1.5), (SAOLA("g-square"), 2.0), (OSFS("g-square"), 2.0),
    ],
)  # fmt: skip
def test_streamwise_methods_keep_few_unrelated_series(selector, most):
    """OSFS and SAOLA test at .01: .6 of 60 columns are expected."""
    for design, draw in UNRELATED.items():
        n_selected = []
        for seed in range(3):
            Z = draw(np.random.default_rng(seed))
            y = (Z[:, 60] > np.median(Z[:, 60])).astype(int)
            n_selected.append(len(clone(selector).fit(Z[:, :60], y).selected_))
        assert np.mean(n_selected) <= most, design


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_a_relevant_series_needs_at_most_as_many_rows_as_a_regression_of_known_variance(model):
    """At phi .9 and a slope of .4, the latter accepts in half of the runs at a level of .001 after 700 rows."""
    accepted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = series(rng, 400, 10, 0.9)
        y = 0.4 * X[:, 0] + series(rng, 400, 1, 0.9)[:, 0]
        y = y if model == "linear" else y > np.median(y)
        accepted += "x0" in AlphaInvesting(model, target_fdr=0.01).fit(X, y).selected_
    assert accepted >= (18 if model == "linear" else 10)


@pytest.mark.parametrize("n_runs", [1, 3, 5, 6])
def test_a_file_sorted_by_class_keeps_its_relations_whatever_the_number_of_runs(n_runs):
    rng = np.random.default_rng(n_runs)
    y = np.repeat(np.arange(2 * n_runs) % 2, 600 // (2 * n_runs))
    X = np.column_stack([rng.normal(size=(600, 5)), series(rng, 600, 5, 0.95)])
    X[:, 2] += y
    assert AlphaInvesting("logistic", target_fdr=0.05).fit(X, y).selected_ == ["x2"]
