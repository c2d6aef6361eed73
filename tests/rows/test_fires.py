"""FIRES against its twin, finite differences, the published formulas and planted streams."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from tamis.errors import DataError
from tamis.rows.fires import likelihood, quadrature
from tamis.rows.fires.fires import FIRES
from tamis.rows.fires.quadrature import LOGIT, POISSON, PROBIT
from tests.twins.fires import FiresTwin, expected_slopes, log_logit, log_poisson

OPTIONS = [
    {},
    {"update": "assumed-density"},
    {"scaling": None},
    {"scaling": "center", "importance": "signal"},
    {"half_life": None},
    {"half_life": np.inf},
    {"intercept": True},
    {"intercept": True, "update": "assumed-density", "half_life": 300},
    {"class_weight": None, "sigma": 0.3, "uncertainty_penalty": 1.0},
    {"scaling": None, "class_weight": None, "half_life": None, "learning_rate": 0.01},
    {"scaling": None, "importance": "signal"},
]


def stream(n_classes, n_batches=6, n_features=7, seed=0, size=25):
    """Batches of rows with features of several scales and offsets; the first three decide the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_batches * size, n_features))
    latent = X[:, :3] @ rng.normal(size=(3, max(n_classes, 1))) + 0.2 * rng.normal(
        size=(len(X), max(n_classes, 1))
    )
    y = (
        latent[:, 0]
        if n_classes == 0
        else (latent.argmax(1) if n_classes > 2 else (latent[:, 0] > 0).astype(int))
    )
    X = X * np.array([1, 3, 0.1, 1, 5, 1, 1])[:n_features] + np.array([0, 2, 1, 0, -3, 0, 0])[:n_features]
    X[:, -1] = 4.0  # a feature that never changes
    X[rng.random(X.shape) < 0.4] = 0.0
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def twin_of(options, n_classes, n_features=7):
    names = {
        "update": "newton",
        "class_weight": "balanced",
        "uncertainty_penalty": "penalty",
        "class_reduce": "reduce",
    }
    values = {"assumed-density": True, "gradient": False, "mean": np.mean, "max": np.max}
    translated = {names.get(key, key): values.get(value, value) for key, value in options.items()}
    return FiresTwin(n_features, n_classes, **translated)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_equals_the_twin(options, n_classes, sparse):
    selector = FIRES(3, model="probit" if n_classes else "gaussian", **options)
    twin = twin_of(options, n_classes)
    weight_of = np.random.default_rng(1)
    for t, (X, y) in enumerate(stream(n_classes)):
        weight = weight_of.random(len(X)) * 2 if t % 2 else None
        classes = np.arange(n_classes) if n_classes else None
        selector.partial_fit(sp.csr_matrix(X) if sparse else X, y, classes=classes, sample_weight=weight)
        twin.partial_fit(X, y, weight)
        np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(selector.sigma_, twin.sigma, rtol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "center", "intercept": True},
        {"scaling": None},
        {"scaling": None, "half_life": None, "importance": "signal"},
        {"half_life": None, "model": "logit"},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_wide_csr_rows_equal_dense_ones(options, n_classes):
    """Of 400 columns a batch stores some 20 of the first 40; those that it does not store move too."""
    wide, dense = FIRES(5, **options), FIRES(5, **options)
    rng = np.random.default_rng(0)
    for t in range(8):
        X = np.zeros((10, 400))
        X[:, :40] = (rng.random((10, 40)) < 0.05) * rng.normal(2.0, 1.0, (10, 40))
        y, weight = rng.integers(0, n_classes, 10), rng.random(10) if t % 2 else None
        wide.partial_fit(sp.csr_matrix(X), y, classes=range(n_classes), sample_weight=weight)
        dense.partial_fit(X, y, classes=range(n_classes), sample_weight=weight)
        for name in ("scores_", "mu_", "sigma_"):
            np.testing.assert_allclose(getattr(wide, name), getattr(dense, name), rtol=1e-9, atol=1e-12)
    broken, before = sp.csr_matrix(X), wide.scores_.copy()
    broken.data[-1] = np.inf
    with pytest.raises(DataError, match=f"contains infinity in column {broken.indices[-1]} of row"):
        wide.partial_fit(broken, y)
    np.testing.assert_array_equal(wide.scores_, before)
    none = sp.csr_matrix((10, 400))
    np.testing.assert_allclose(
        wide.partial_fit(none, y).scores_, dense.partial_fit(none.toarray(), y).scores_, rtol=1e-9, atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"update": "assumed-density", "intercept": True}, OPTIONS[9]], ids=str
)
@pytest.mark.parametrize("link", ["logit", "poisson"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_links_without_a_closed_form_equal_the_twin(options, link, sparse):
    """The twin has other identities, on a fine grid: moments of the posterior instead of slopes of the likelihood."""
    n_classes = 3 if link == "logit" else 0
    selector, twin = FIRES(3, model=link, **options), twin_of({**options, "link": link}, n_classes)
    for t, (X, y) in enumerate(stream(n_classes, n_batches=4)):
        weight = np.linspace(0.1, 2, len(X)) if t % 2 else None
        y = y if n_classes else np.floor(np.exp(y))
        classes = np.arange(3) if n_classes else None
        selector.partial_fit(sp.csr_matrix(X) if sparse else X, y, classes=classes, sample_weight=weight)
        twin.partial_fit(X, y, weight)
        np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(selector.sigma_, twin.sigma, rtol=1e-5)


@pytest.mark.parametrize(("link", "log_likelihood"), [(LOGIT, log_logit), (POISSON, log_poisson)])
def test_expected_slopes_however_wide_the_prior(link, log_likelihood):
    for y in (1.0, -1.0) if link == LOGIT else (0.0, 1.0, 5.0, 1000.0):
        for d in (-30.0, -0.3, 0.0, 2.0, 8.0, 30.0):
            for v in (0.01, 1.0, 10.0, 1000.0):
                a, b = quadrature.expected_slopes(y, d, v, link)
                exact = expected_slopes(y, d, v, log_likelihood)
                assert a == pytest.approx(exact[0], rel=1e-6, abs=1e-9 / v**0.5)
                assert b == pytest.approx(exact[1], rel=1e-4, abs=1e-6 * exact[0] ** 2 + 1e-5 / v)


@pytest.mark.parametrize("link", [LOGIT, POISSON])
def test_a_parameter_that_is_certain_has_the_slopes_of_the_likelihood(link):
    near, at = (quadrature.expected_slopes(1.0, 0.4, v, link) for v in (1e-10, 0.0))
    np.testing.assert_allclose(near, at, rtol=1e-8)
    wrong = 1 / (1 + np.exp(0.4))
    first, second = (wrong, -wrong * (1 - wrong)) if link == LOGIT else (1 - np.exp(0.4), -np.exp(0.4))
    np.testing.assert_allclose(at, (first, first**2 + second), rtol=1e-12)


@pytest.mark.parametrize("link", [LOGIT, POISSON])
@pytest.mark.parametrize("d", [0.0, 1000.0, -1000.0, 1e25, -1e25, 1e200, np.inf, np.nan])
@pytest.mark.parametrize("v", [0.0, -1e-17, 1e-300, 1e-12, 1.0, 1e25, 1e200, np.inf, np.nan])
def test_any_margin_and_variance_has_slopes_or_none_that_are_finite(link, d, v):
    a, _ = quadrature.expected_slopes(1.0, d, v, link)
    assert np.isfinite(a) == (abs(d) < 1e30 and abs(v) < 1e30)


@pytest.mark.slow
def test_counts_of_rare_events_find_their_features():
    """The rate is about one in ten, and doubles or halves with two of forty features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 40))
    y = rng.poisson(0.1 * np.exp(0.7 * X[:, 4] - 0.7 * X[:, 9]))
    assert FIRES(2, model="poisson").fit(X, y).get_support(indices=True).tolist() == [4, 9]
    many = FIRES(2, model="poisson").fit(X, y * 10_000)
    assert many.get_support(indices=True).tolist() == [4, 9]


@pytest.mark.parametrize("bad", [-1.0, 1e16])
def test_what_is_no_count_is_refused_and_nothing_is_learned(bad):
    X = np.eye(4)
    selector = FIRES(1, model="poisson").partial_fit(X, [0, 1, 5, 2])
    before = selector.scores_
    with pytest.raises(
        DataError, match=rf"from 0 to 1e\+15, and y is {bad:g} in row 2".replace("+16", r"\+16")
    ):
        selector.partial_fit(X, [0, 1, bad, 2])
    np.testing.assert_array_equal(selector.scores_, before)


def test_no_counts_at_all_are_learned_from():
    selector = FIRES(1, model="poisson").fit(np.eye(4), np.zeros(4))
    assert np.isfinite(selector.scores_).all()


def test_a_logit_row_far_on_the_wrong_side_pulls_less_than_a_probit_one():
    wide = [abs(likelihood.slopes(-1.0, 20.0, 1.0, link)[0]) for link in (LOGIT, PROBIT)]
    assert wide[0] <= 1.0 < wide[1]


@pytest.mark.parametrize("options", [{"class_reduce": "max"}, {"class_weight": "balanced"}], ids=str)
def test_options_for_several_classes_equal_the_twin(options):
    selector, twin = FIRES(3, **options), twin_of(options, 4)
    for X, y in stream(4):
        selector.partial_fit(X, y, classes=range(4))
        twin.partial_fit(X, y)
    np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_several_classes_select_no_copies(sparse):
    """Of three near copies of the most relevant feature one is kept, as in the twin; with two classes, all are."""
    selector, twin = FIRES(3), FiresTwin(6, 4)
    for X, y in stream(4, n_batches=14, n_features=6):
        X[:, 4:] = X[:, :1] + 0.01 * X[:, 4:]
        selector.partial_fit(sp.csr_matrix(X) if sparse else X, y, classes=range(4))
        twin.partial_fit(X, y)
        assert selector.get_support(indices=True).tolist() == twin.kept(3)
    assert selector.get_support()[[0, 4, 5]].sum() == 1
    assert selector.get_support().sum() == 3
    for plain in (FIRES(3, redundancy=None).fit(X, y), FIRES(3).fit(X, y == 1)):
        assert plain.get_support()[np.argsort(-plain.scores_, kind="stable")[:3]].all()


def test_rows_that_discount_widen_and_forget_with_the_columns():
    (X, y), *_ = stream(4)
    narrow, wide = FIRES(3), FIRES(3)
    narrow.partial_fit(sp.csr_matrix(X[:, :5]), y, classes=range(4)).widen(7)
    narrow.forget_columns([1])
    X[:, [1, 5, 6]] = 0.0
    wide.partial_fit(sp.csr_matrix(X), y, classes=range(4))
    X, y = stream(4)[1]
    for selector in (narrow, wide):
        selector.partial_fit(sp.csr_matrix(X), y)
    assert narrow.get_support().sum() == 3
    both = [selector._last_rows.columns(np.arange(7))[0] for selector in (narrow, wide)]
    np.testing.assert_array_equal(*both)


@given(m=st.floats(-1e6, 37.0))
@example(m=-8.5)  # just beyond where the continued fraction begins, and needs its terms
@settings(max_examples=300, deadline=None)
def test_inverse_mills_ratio_for_any_margin(m):
    with np.errstate(over="ignore"):
        exact = (
            np.exp(-0.5 * m * m - 0.5 * np.log(2 * np.pi) - log_ndtr(m)) if m > -30 else -m - 1 / m + 2 / m**3
        )
    assert likelihood.mills(m) == pytest.approx(exact, rel=2e-6 if m < -30 else 1e-10)


@pytest.mark.parametrize("probit", [True, False])
def test_slopes_are_the_derivatives_of_the_log_likelihood(probit):
    def log_likelihood(y, d, v):
        return log_ndtr(y * d / np.sqrt(v)) if probit else -0.5 * np.log(v) - 0.5 * (y - d) ** 2 / v

    rng = np.random.default_rng(0)
    for _ in range(50):
        y, d, v, h = rng.choice([-1.0, 1.0]), rng.normal() * 3, 1 + rng.random() * 5, 1e-5
        a, b, curvature = likelihood.slopes(y, d, v, probit)
        assert a == pytest.approx(
            (log_likelihood(y, d + h, v) - log_likelihood(y, d - h, v)) / (2 * h), abs=1e-8
        )
        # sigma_j moves v by 2 sigma_j x_j^2, so b is twice the derivative in v
        assert b == pytest.approx((log_likelihood(y, d, v + h) - log_likelihood(y, d, v - h)) / h, abs=1e-8)
        second = (
            log_likelihood(y, d + 1e-3, v) - 2 * log_likelihood(y, d, v) + log_likelihood(y, d - 1e-3, v)
        ) / 1e-6
        assert curvature == pytest.approx(-second, abs=1e-5)


def test_published_method_after_one_batch_by_hand():
    """From mu = 0, sigma = 1: r(0) = sqrt(2 / pi), so mu = alpha mean(y x / rho) sqrt(2 / pi) and sigma stays."""
    X = np.array([[1.0, 0.0, 2.0], [0.5, 1.0, 0.0], [1.0, 1.0, 1.0]])
    y = np.array([1, 0, 1])
    selector = FIRES.paper(1).partial_fit(X, y)
    signs, rho = np.array([1, -1, 1]), np.sqrt(1 + (X**2).sum(1))
    mu = 0.01 * np.sqrt(2 / np.pi) * (signs / rho) @ X / 3
    np.testing.assert_allclose(selector.mu_[0], mu, rtol=1e-12)
    np.testing.assert_allclose(selector.scores_, mu**2 - 0.01, rtol=1e-12)


def test_golden_ranking_of_the_published_method_on_spambase(load_shared):
    """The spec's own reading of the published protocol on Spambase finds the same best features."""
    X, y, _ = load_shared("spambase")
    X = np.asarray(X, dtype=np.float64)
    X = (X - X.min(0)) / np.maximum(X.max(0) - X.min(0), 1e-12)
    order = np.random.default_rng(0).permutation(len(y))
    twin, selector = (
        FiresTwin(57, 2, scaling=None, half_life=None, balanced=False, learning_rate=0.01),
        FIRES.paper(6),
    )
    for start in range(0, 1000, 100):
        rows = order[start : start + 100]
        twin.partial_fit(X[rows], y[rows])
        selector.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-9)
    assert selector.get_support(indices=True).tolist() == np.sort(np.argsort(-twin.scores)[:6]).tolist()


def planted(seed, n=4000, n_features=100, n_relevant=5):
    rng = np.random.default_rng(seed)
    relevant = np.sort(rng.choice(n_features, n_relevant, replace=False))
    X = rng.random((n, n_features))
    y = ((X[:, relevant] - 0.5) @ rng.choice([-1.0, 1.0], n_relevant) > 0).astype(int)
    return X, y, relevant


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"update": "assumed-density"}, {"scaling": "center"}], ids=str)
def test_finds_planted_features_whatever_their_scale(options):
    for seed in range(3):
        X, y, relevant = planted(seed)
        if options.get("scaling") != "center":
            X = X * np.random.default_rng(seed).lognormal(0, 3, X.shape[1]) + 100
        selector = FIRES(len(relevant), **options).fit(X, y)
        assert selector.get_support(indices=True).tolist() == relevant.tolist()


def test_follows_a_change_of_the_relevant_features():
    X, y, before = planted(0)
    X2, y2, after = planted(1)
    selector = FIRES(5, half_life=500).fit(X, y)
    assert selector.get_support(indices=True).tolist() == before.tolist()
    selector.partial_fit(X2, y2)
    assert selector.get_support(indices=True).tolist() == after.tolist()


def test_regression_finds_planted_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40)) * rng.lognormal(0, 2, 40)
    y = 1e4 + 3 * X[:, 5] / X[:, 5].std() - 2 * X[:, 11] / X[:, 11].std() + rng.normal(size=3000)
    for update in ("gradient", "assumed-density"):
        selector = FIRES(2, model="gaussian", update=update).fit(X, y)
        assert selector.get_support(indices=True).tolist() == [5, 11]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_features", [30, 200])
def test_regression_keeps_what_it_has_found(n_features, sparse):
    """A constant step overshot where the noise is small: with 200 features they were lost for 2,600 rows."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2400, n_features))
    y = 2 * X[:, 3] - X[:, 1] + 0.3 * rng.normal(size=2400)
    selector = FIRES(2, model="gaussian", scaling=None if sparse else "standard")
    for at in range(0, 2400, 100):
        rows = X[at : at + 100]
        selector.partial_fit(sp.csr_matrix(rows) if sparse else rows, y[at : at + 100])
        if at >= 500:
            assert selector.get_support(indices=True).tolist() == [1, 3], at


def test_binary_scores_do_not_depend_on_the_order_of_the_classes():
    X, y = np.vstack([X for X, _ in stream(2)]), np.concatenate([y for _, y in stream(2)])
    scores = [FIRES(3).partial_fit(X, y, classes=order).scores_ for order in ([0, 1], [1, 0])]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12)


def test_a_third_class_keeps_what_two_classes_taught():
    X, y = stream(2)[0]
    selector = FIRES(3, intercept=True).partial_fit(X, y)
    mu, (mean, variance) = selector.mu_.copy(), selector._models.bias[0].copy()
    assert mean != 0.0
    selector._models.grow(3)
    np.testing.assert_array_equal(selector._models.bias[:2], [[-mean, variance], [mean, variance]])
    np.testing.assert_array_equal(selector._models.mu, np.vstack([-mu, mu, np.zeros_like(mu)]))


def test_large_batches_are_consecutive_steps():
    X, y = np.vstack([X for X, _ in stream(2)]), np.concatenate([y for _, y in stream(2)])
    whole = FIRES(3, batch_size=25).fit(X, y)
    parts = FIRES(3, batch_size=25)
    for start in range(0, len(X), 25):
        parts.partial_fit(X[start : start + 25], y[start : start + 25])
    np.testing.assert_array_equal(whole.scores_, parts.scores_)


@pytest.mark.parametrize("scaling", ["standard", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_bad_row_in_a_late_step_undoes_the_earlier_ones(scaling, n_classes):
    batches = stream(n_classes)
    selector = FIRES(3, scaling=scaling, batch_size=25).partial_fit(*batches[0], classes=range(n_classes))
    before = selector.scores_.copy()
    X, y = np.vstack([X for X, _ in batches[1:]]), np.concatenate([y for _, y in batches[1:]])
    X[-3, 2] = np.inf
    with pytest.raises(DataError, match=r"infinity in column 2 of row 122"):
        selector.partial_fit(X, y)
    np.testing.assert_array_equal(selector.scores_, before)
    assert selector.n_seen_ == 25


@pytest.mark.parametrize("scaling", ["standard", None])
def test_squares_that_overflow_are_refused(scaling):
    X, y = stream(2)[0]
    selector = FIRES(3, scaling=scaling).partial_fit(X, y)
    before = selector.scores_.copy()
    with pytest.raises(DataError, match="too large"):
        selector.partial_fit(np.where(X == 0, 1e200, X), y)
    np.testing.assert_array_equal(selector.scores_, before)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "linear"}, "model must be one of 'probit', 'logit', 'gaussian', 'poisson', got 'linear'"),
        ({"learning_rate": 0}, "learning_rate must be a number in (0, 1e6] or None, got 0"),
        ({"half_life": -1}, "half_life must be a number in (0, inf] or None, got -1"),
        ({"batch_size": 0.5}, "batch_size must be an integer in [1, inf), got 0.5"),
        ({"n_features_to_select": 8}, "n_features_to_select must be an integer in [1, 7], got 8"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    import re

    with pytest.raises(ValueError, match=re.escape(message)):
        FIRES(**parameters).partial_fit(*stream(2)[0])


def test_a_row_of_a_rare_class_weighs_ten_at_most():
    """Only the one row of 1,000 has the feature: from mu = 0 the step is its weight times r(0) / rho, per row."""
    X, y = np.eye(1000)[:, :1], np.arange(1000) == 0
    selector = FIRES(1, scaling=None, half_life=None, batch_size=1000).partial_fit(X, y)
    assert selector.mu_[0, 0] == pytest.approx(10 * np.sqrt(2 / np.pi) / np.sqrt(2) / 1000)


def test_a_batch_that_only_the_last_model_refuses_leaves_the_others_as_they_were():
    """The huge row is right beyond doubt for the first two classes; for the third its slope overflows."""
    selector = FIRES(1, scaling=None, half_life=None, class_weight=None, sigma=1e-120)
    selector.partial_fit([[1.0], [1.0], [-1.0]], [0, 2, 1])
    mu = selector.mu_.copy()
    assert (mu[:, 0] > 0).tolist() == [True, False, True]
    with pytest.raises(DataError, match="too large"):
        selector.partial_fit([[1e100], [-1.0]], [0, 1])
    np.testing.assert_array_equal(selector.mu_, mu)


def test_a_refused_batch_leaves_no_trace_in_the_scale_of_the_target():
    batches = stream(0)
    selector, untouched = (FIRES(3, model="gaussian").partial_fit(*batches[0]) for _ in range(2))
    X, y = batches[1]
    with pytest.raises(DataError, match="infinity"):
        selector.partial_fit(np.where(X == 0, np.inf, X), 1e3 + 1e3 * y)
    np.testing.assert_array_equal(selector.partial_fit(X, y).mu_, untouched.partial_fit(X, y).mu_)


def test_sigma_stays_at_zero_where_a_step_passes_it():
    """The second row lies so far on the right side that a step of 20 would take sigma below 0."""
    options = {"scaling": None, "half_life": None, "class_weight": None, "learning_rate": 20.0}
    for kind in (np.array, sp.csr_matrix):
        selector = FIRES(1, **options).partial_fit(kind([[0.1, 0.0], [0.0, 1.0]]), [1, 0])
        selector.partial_fit(kind([[3.0, 0.0]]), [1])
        np.testing.assert_array_equal(selector.sigma_, [[0.0, 1.0]])
