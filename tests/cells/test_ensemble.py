"""What several kinds of evidence are worth, and models that decide by an ensemble."""

import numpy as np
import pytest
import scipy.optimize

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset, load, save
from tamis.cells.discriminant import posterior_of
from tamis.cells.ensemble import Ensemble, fit_evidence_weights

ALL = [
    IFC2F(0.005, random_state=0),
    ETANA(0.005, random_state=0),
    FETANA(0.005, n_iterations=300, random_state=0),
    AdaptiveIFC2F(0.005, random_state=0),
]
names = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


def loss(worths, evidence, prior, y):
    found = posterior_of(evidence, prior, np.asarray(worths))
    return -np.log(found[:, np.arange(len(y)), y]).sum() / len(found) + np.sum(worths)


def test_worths_make_labels_most_likely(rng):
    y, n_steps = rng.integers(0, 3, 200), 4
    prior = np.tile([0.2, 0.3, 0.5], (200, 1))
    evidence = rng.normal(size=(3, n_steps, 200, 3))
    evidence[0, :, np.arange(200), y] += 1.0
    evidence[1, :, np.arange(200), y] += 0.2
    found = fit_evidence_weights(evidence, prior, y)
    best = scipy.optimize.minimize(
        loss, np.full(3, 0.3), (evidence, prior, y), bounds=[(0.0, 1.2)] * 3, method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-9},
    )  # fmt: skip
    np.testing.assert_allclose(found, best.x, atol=0.01)
    assert found[0] > 0.5 > found[2]


def test_evidence_of_noise_is_worth_nothing(rng):
    y = rng.integers(0, 2, 60)
    assert fit_evidence_weights(rng.normal(size=(2, 3, 60, 2)), np.full((60, 2), 0.5), y).max() < 0.15


def together(rng, n):
    """Column 0 tells a little; the sign of a product of two others tells much."""
    X = rng.normal(size=(n, 5))
    y = ((X[:, 1] * X[:, 2] > 0) ^ (rng.random(n) < 0.05)).astype(int)
    X[:, 0] += 1.5 * y
    X[:, 1] += 0.4 * y
    X[:, 2] += 0.4 * y
    return X, y


@pytest.mark.slow
@names
def test_decides_by_what_several_values_say_together(rng, model):
    """Behind a fixed subset with boosting before: a sum over columns cannot see a product."""
    X, y = together(rng, 2400)
    model = type(model)(**model.get_params()).fit(X[:1200], y[:1200])
    loss = 1.0 - model.score(X[1200:], y[1200:]) + model.cost_.mean()
    fixed = FixedSubset(0.005).fit(X[:1200], y[:1200])
    assert loss < 1.0 - fixed.score(X[1200:], y[1200:]) + fixed.cost_.mean()
    belief = model.belief_ if isinstance(model, AdaptiveIFC2F) else model.policy_.belief
    if belief != "ensemble":  # a tree of columns sees pairs
        assert isinstance(model, AdaptiveIFC2F | IFC2F)
    assert loss < 0.22


@pytest.mark.slow
@names
def test_walks_sessions_and_files_have_the_same_bits(rng, model, tmp_path):
    X, y = together(rng, 700)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = type(model)(**model.get_params()).fit(X, y)
    beliefs, used = model.predict_proba(X[:30]), model.n_features_used_
    for x, belief, n in zip(X[:30], beliefs, used, strict=True):
        session, bought = model.open(), 0
        while session.next_feature is not None:
            value = x[session.next_feature]
            session.observe(value)
            bought += not np.isnan(value)
        assert [*session.posterior.values()] == belief.tolist()
        assert bought == n
    save(model, tmp_path / "model.tamis")
    np.testing.assert_array_equal(load(tmp_path / "model.tamis").predict_proba(X), model.predict_proba(X))


def test_more_rows_are_taken_into_the_discriminant_analysis(rng):
    X, y = together(rng, 1000)
    model = Ensemble(4, 2).fit(X[:500], y[:500])
    before = model.posterior(X[:20])
    more = model.partial_fit(X[500:], y[500:], 1.0)
    assert more.prior[1] == pytest.approx(y.mean())
    assert not np.array_equal(more.posterior(X[:20]), before)
