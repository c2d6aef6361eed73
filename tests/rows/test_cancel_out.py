"""CancelOut against differences of its objective, Adam by hand, and planted streams."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamis import CancelOut
from tamis.errors import DataError
from tests.twins import cancel_out as twin


def rows(n=12, n_features=3, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (1.0, 3.0, 0.2)[:n_features] + (0, 2, -1)[:n_features]
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, np.arange(n) % n_classes


PENALTIES = {"gate_penalty": 0.3, "variance_reward": 0.4, "weight_penalty": 0.5}


@pytest.mark.parametrize("scaling", ["standard", None])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_steps_follow_the_differences_of_the_objective(scaling, sparse):
    selector = CancelOut(1, hidden=(4, 3), n_steps=1, learning_rate=0.1, scaling=scaling, **PENALTIES)
    X, y = rows()
    selector.partial_fit(X, y)
    every, weights = X, np.ones(len(X))
    for seed in (1, 2):
        more, labels = rows(seed=seed)
        weight = np.linspace(0.2, 2, len(more))
        every, weights = np.vstack([every, more]), np.concatenate([weights, weight])
        Z = more
        if scaling:  # weighted moments of all rows so far
            mean = np.average(every, axis=0, weights=weights)
            Z = (more - mean) / np.sqrt(np.average((every - mean) ** 2, axis=0, weights=weights))
        gates, *matrices = (part.copy() for part in selector._parts(selector._theta))
        slopes = twin.gradient(gates, matrices, Z, labels, weight / weight.sum(), *PENALTIES.values())
        flat = np.concatenate([part.ravel() for part in slopes])
        given = sp.csr_matrix(more) if sparse else more
        found = selector._gradient(frame_of(Z), labels, weight / weight.sum())
        np.testing.assert_allclose(found, flat, atol=1e-8)
        expected = twin.adam(
            selector._theta, found, selector._first, selector._second, selector._n_steps + 1, 0.1
        )
        selector.partial_fit(given, labels, sample_weight=weight)
        for now, wanted in zip((selector._theta, selector._first, selector._second), expected, strict=True):
            np.testing.assert_allclose(now, wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(selector.scores_, 1 / (1 + np.exp(-selector._theta[:3])), rtol=1e-14)


def frame_of(Z):
    from tamis.rows.scaled_batches import ScaledRows

    return ScaledRows(Z, np.zeros(Z.shape[1]), np.ones(Z.shape[1]))


def test_golden_first_step_of_adam_is_the_sign_of_the_gradient():
    """Kingma and Ba, Section 2.1: the first step has the length of the rate wherever the gradient is not 0."""
    selector = CancelOut(1, n_steps=1, learning_rate=0.01).fit(*rows())
    moved = np.abs(selector._theta[:3])
    np.testing.assert_allclose(moved, 0.01, rtol=1e-3)
    X, y = rows()
    X[:, 1] = 5.0  # never changes: only the charge is left, and its gate closes
    selector = CancelOut(1, n_steps=1, learning_rate=0.01).fit(X, y)
    assert selector.scores_[1] == pytest.approx(1 / (1 + np.exp(0.01)), rel=1e-5)


def test_the_network_goes_on_from_batch_to_batch():
    """Batches in which a column tells of the class, then rows of noise: a new network would have forgotten it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    selector = CancelOut(1)
    selector.partial_fit(X, X[:, 2] > 0)
    before = selector._n_steps
    selector.partial_fit(X[:100], rng.integers(0, 2, 100).astype(bool))
    assert selector._n_steps == before + 5
    assert selector.get_support(indices=True).tolist() == [2]


def test_it_follows_when_another_column_tells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 10))
    y = np.where(np.arange(6000) < 3000, X[:, 1], X[:, 8]) > 0
    selector = CancelOut(1).partial_fit(X[:3000], y[:3000])
    first = selector.get_support(indices=True).tolist()
    assert (first, selector.partial_fit(X[3000:], y[3000:]).get_support(indices=True).tolist()) == ([1], [8])


def test_a_class_that_comes_late_keeps_what_is_known():
    X, y = rows(n=90)
    selector = CancelOut(1, hidden=(4, 3)).partial_fit(X[y < 2], y[y < 2])
    known = [part.copy() for part in selector._parts(selector._theta)]
    selector._make_room(3)
    now = selector._parts(selector._theta)
    for a, b in zip(known[:-1], now[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(now[-1][:, :2], known[-1])
    assert np.isfinite(selector.partial_fit(X, y).scores_).all()


def test_steps_without_a_finite_gradient_are_refused_and_nothing_is_learned():
    X, y = rows(n=60)
    selector = CancelOut(1, scaling=None).partial_fit(X, y)
    before = selector._theta.copy()
    with pytest.raises(DataError, match="lower learning_rate"):
        selector.partial_fit(np.where(X == 0, 1e300, X), y)
    np.testing.assert_array_equal(selector._theta, before)


def test_another_seed_begins_with_another_network():
    one, same, other = (CancelOut(1, random_state=s).fit(*rows(n=60)).scores_ for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_another_network_between_batches_is_refused_and_the_old_one_goes_on():
    X, y = rows(n=60)
    selector = CancelOut(1).partial_fit(X, y)
    with pytest.raises(DataError, match="hidden cannot change between batches"):
        selector.set_params(hidden=(7,)).partial_fit(X, y)
    selector.set_params(hidden=(50, 50)).partial_fit(X, y)
    selector.set_params(hidden=(7,)).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": (0,)}, r"hidden must be a tuple of integers in \[1, 10000\], got \(0,\)"),
        ({"learning_rate": 0}, r"learning_rate must be a number in \(0, 10\], got 0"),
        ({"gate_penalty": -1}, r"gate_penalty must be a number in \[0, inf\), got -1"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        CancelOut(1, **parameters).fit(*rows())
