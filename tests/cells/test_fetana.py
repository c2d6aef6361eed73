"""F-ETANA: the steps of its approximation, and the policy that comes out."""

import numpy as np
import pytest

from tamis import ETANA, FETANA
from tamis.cells.fetana import _approximate
from tests.cells.test_etana import problem
from tests.twins import fetana as twin


def test_steps_are_the_recursion(rng):
    tables, Q, prices, start = problem(rng)
    rows = np.array([[rng.choice(3, p=t[0]) for t in tables] for _ in range(30)], dtype=np.int16)
    rows[::7, 2] = -1
    likelihood = np.ascontiguousarray(np.stack([t.T for t in tables]))
    draws, offset = rng.choice([-1.0, 1.0], (100, 3)), rng.integers(0, 90, 30)
    theta = np.tile(0.7 - np.eye(3)[0], (5, 1))
    want = twin.train(
        theta, rows, [draws[o : o + 5] for o in offset], likelihood, start, prices, Q[0], 0.2, 0.3
    )
    found = theta.copy()
    steps = _approximate(
        found, rows, np.arange(30), draws, offset, likelihood, start, prices, Q[0], 0.2, 0.3, 0
    )
    assert steps == 30
    assert np.abs(want - theta).max() > 1e-3
    np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-13)


def sampled(tables, rng, n=1500):
    y = rng.integers(0, 3, n)
    X = np.array([[rng.choice(3, p=t[c]) for t in tables] for c in y], dtype=float)
    return X, y


@pytest.mark.slow
def test_start_that_stops_comes_near_dynamic_programming():
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = sampled(problem(rng)[0], rng)
        paid = []
        for kind in (ETANA, FETANA):
            model = kind(cost=0.03, n_bins=3, prior="uniform", random_state=0).fit(X, y)
            paid.append(1.0 - model.score(X, y) + model.cost_.mean())
        ratios.append(paid[1] / paid[0])
        assert model.n_features_used_.mean() < 4.5  # of 5
    assert 0.95 < np.mean(ratios) < 1.1


def test_published_start_never_stops(rng):
    """From theta = 1 both walks cost the same until a draw stops one of them; the program ends at the first such."""
    tables, _, _, _ = problem(rng)
    X, y = sampled(tables, rng, 600)
    model = FETANA.published(cost=0.03, n_bins=3, random_state=0).fit(X, y)
    assert (model.n_iter_ < 100).all()
    model.predict(X)
    assert model.n_features_used_.mean() > 3.0


def test_a_frequent_class_is_not_declared_unasked(rng):
    """Nine of ten rows are of one class, more than the confidence that stopping begins with."""
    y = (rng.random(2000) < 0.08).astype(int)
    X = rng.normal(size=(2000, 4)) + 2.5 * y[:, None]
    model = FETANA(cost=0.001, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.n_features_used_.min() >= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"confidence": 1.0}, "confidence"), ({"perturbation": 0.0}, "perturbation"),
     ({"n_iterations": 0}, "n_iterations"), ({"patience": -1}, "patience"), ({"prior": "flat"}, "prior")],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(rng, settings, message):
    with pytest.raises(ValueError, match=message):
        FETANA(**settings).fit(rng.normal(size=(20, 2)), np.arange(20) % 2)
