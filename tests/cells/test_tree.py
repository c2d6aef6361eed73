"""Exact inference against whole joint tables."""

import numpy as np
import pytest

from tamis import IFC2F
from tamis.cells.network import Chain
from tamis.cells.tree import ExactChain, Tree
from tests.cells.test_ifc2f import rows
from tests.cells.test_network import random_network
from tests.twins import ifc2f as twin


@pytest.mark.parametrize("seed", range(5))
def test_posteriors_and_expectations_are_those_of_the_joint(seed):
    rng = np.random.default_rng(seed)
    parent, tables, prior = random_network(rng)
    P, tree = twin.joint(parent, tables, prior), Tree(parent, tables, prior)
    values = np.where(rng.random((12, 5)) < 0.5, rng.integers(0, 3, (12, 5)), -1)
    posterior, given = tree.infer(values)
    for i, row in enumerate(values):
        known = {f: v for f, v in enumerate(row) if v >= 0}
        np.testing.assert_allclose(posterior[i], twin.posterior(P, known), rtol=1e-10)
        for f in range(5):
            for v in range(3):
                both = 0.0 if known.get(f, v) != v else twin_mass(P, {**known, f: v})
                np.testing.assert_allclose(given[i, f, v], both / twin_mass(P, known), rtol=1e-9, atol=1e-15)


def twin_mass(P, known):
    """P(known | class), up to the prior."""
    return (
        P[(slice(None), *(known.get(f, slice(None)) for f in range(P.ndim - 1)))]
        .reshape(len(P), -1)
        .sum(axis=1)
    )


def test_long_evidence_does_not_underflow(rng):
    K = 3000
    tables = np.moveaxis(rng.dirichlet(np.ones(4), (K, 2, 4)), 3, 2)
    tree = Tree(np.arange(K) - 1, tables, np.array([0.5, 0.5]))
    posterior, given = tree.infer(rng.integers(0, 4, (2, K)))
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(given.sum(axis=2), 1.0)


def test_parents_first_links_are_exact(rng):
    parent, tables, prior = random_network(rng)
    chain = Chain(parent, tables, np.arange(5))
    exact = ExactChain(Tree(parent, tables, prior), np.arange(5), chain.link)
    values = rng.integers(0, 3, (20, 5))
    for k in range(5):
        np.testing.assert_allclose(exact.likelihood(k, values), chain.likelihood(k, values), rtol=1e-10)


def test_exact_inference_in_ifc2f(rng, monkeypatch):
    X, y = rows(rng)
    model = IFC2F(inference="exact", calibrate=False, random_state=0).fit(X[:300], y[:300])
    whole = model.predict_proba(X[300:])
    tree = Tree(model.parent_, model._network.tables(), model.prior_)
    codes = model._codes(X[300:, model.candidates_], np.arange(len(model.candidates_)))
    known = np.full((100, len(model.kept_)), -1)
    bought = np.arange(len(model.candidates_)) < model.n_features_used_[:, None]
    known[:, model._order] = np.where(bought, codes, -1)
    np.testing.assert_allclose(whole, tree.infer(known)[0], rtol=1e-9)
    monkeypatch.setattr("tamis.cells.tree._NUMBERS", 500)
    np.testing.assert_array_equal(model.predict_proba(X[300:]), whole)
