"""Grafting against its twin, scikit-learn's lasso, and planted columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression

from tamis import Grafting
from tamis.errors import DataError
from tests.twins.grafting import graft


def planted(seed, n=150, m=40, logistic=False):
    """Columns of several scales, three of which decide the target; two others are noisy copies of those."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    latent = X[:, 10] - X[:, 20] + 0.7 * X[:, 30]
    X[:, 2] = X[:, 20] + 0.4 * rng.normal(size=n)
    X[:, 35] = X[:, 10] + 0.4 * rng.normal(size=n)
    y = latent + 0.7 * rng.normal(size=n)
    X *= np.exp(rng.normal(size=m) * 2)
    X += rng.normal(size=m)
    return X, (y > 0).astype(int) if logistic else 3 + 5 * y


@pytest.mark.parametrize("logistic", [False, True], ids=["linear", "logistic"])
@pytest.mark.parametrize("penalty", [0.02, 0.06, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_its_twin(logistic, penalty, weighted):
    for seed in range(3):
        X, y = planted(seed, logistic=logistic)
        weight = np.random.default_rng(seed).integers(0, 4, len(y)).astype(float) if weighted else None
        selector = Grafting(penalty, model="logistic" if logistic else "linear").fit(X, y, weight)
        places, weights = graft(X, y, penalty, logistic, weight)
        assert [int(name[1:]) for name in selector.selected_] == places
        np.testing.assert_allclose(selector.weights_, weights, atol=1e-6)


def test_golden_weights_are_those_of_scikit_learns_lasso_on_the_selected_columns():
    X, y = planted(0)
    selector = Grafting(0.1).fit(X, y)
    Z = selector.transform(X)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    theirs = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(Z, (y - y.mean()) / y.std())
    in_order = np.argsort([int(name[1:]) for name in selector.selected_])
    np.testing.assert_allclose(selector.weights_[in_order], theirs.coef_, atol=1e-7)


def test_golden_weights_are_those_of_scikit_learns_logistic_lasso():
    X, y = planted(1, logistic=True)
    selector = Grafting(0.05, model="logistic").fit(X, y)
    Z = selector.transform(X)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    theirs = LogisticRegression(
        penalty="l1", C=1 / (0.05 * len(y)), solver="saga", tol=1e-10, max_iter=200_000
    ).fit(Z, y)
    in_order = np.argsort([int(name[1:]) for name in selector.selected_])
    np.testing.assert_allclose(selector.weights_[in_order], theirs.coef_[0], atol=1e-5)


@pytest.mark.slow
def test_alpha_is_the_share_of_useless_features_that_enter_first():
    """2,000 columns of noise, each offered to a model without features; a linear and a logistic one."""
    rng = np.random.default_rng(0)
    y, n = rng.normal(size=200), 2000
    for model, target in (("linear", y), ("logistic", (y > 0.5).astype(int))):
        accepted = [
            Grafting(alpha=0.05, model=model).start(target).offer(column)
            for column in rng.normal(size=(n, 200))
        ]
        assert np.mean(accepted) == pytest.approx(0.05, abs=0.014)


def test_a_noisy_copy_leaves_when_the_original_comes_and_a_copy_never_enters():
    X, y = planted(0, n=400)
    order = [2, 20, 10, 35, 30, 20]
    selector = Grafting(0.05).start(y)
    accepted = [selector.offer(X[:, j], f"x{j}" if at < 5 else "copy") for at, j in enumerate(order)]
    assert accepted == [True, True, True, False, True, False]
    assert selector.selected_ == ["x20", "x10", "x30"]


def test_few_columns_of_noise_are_accepted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2000)), rng.normal(size=300)
    assert len(Grafting(alpha=0.001).fit(X, y).selected_) <= 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": 0}, r"penalty must be a number in \(0, inf\) or None, got 0"),
        ({"alpha": 1}, r"alpha must be a number in \(0, 1\), got 1"),
        ({"model": "poisson"}, "model must be one of 'linear', 'logistic', got 'poisson'"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        Grafting(**parameters).start([0.0, 1.0, 2.0])


def test_targets_that_cannot_be_explained_are_refused():
    with pytest.raises(DataError, match="model='logistic' needs two"):
        Grafting(model="logistic").start([0, 1, 2])
    with pytest.raises(DataError, match="y is constant"):
        Grafting().start([1.0, 1.0, 1.0, 2.0], sample_weight=[1, 1, 1, 0])
    with pytest.raises(DataError, match=r"y has 2 sample\(s\) of a weight above 0"):
        Grafting().start([1.0, 1.5, 2.0], sample_weight=[1, 1, 0])
