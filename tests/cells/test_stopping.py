"""Vectors of beliefs against dynamic programming over every history."""

import itertools

import numpy as np
import pytest

from tamis.cells.network import Chain, markov_blanket_order
from tamis.cells.stopping import PointBased, update_posterior, walk_beliefs
from tests.cells.test_network import random_network
from tests.twins import ifc2f as twin


def problem(rng, *, K=4, L=3, V=2):
    """A small network in the published order, or root first, with random costs."""
    parent, tables, prior = random_network(rng, K + 1, L, V)
    order = markov_blanket_order(parent, rng.random(K + 1))
    order = np.r_[0, order[order != 0]][:K]
    Q = rng.uniform(0.3, 1.0, (L, L)) * (1 - np.eye(L))
    chain = Chain(parent, tables, order)
    return chain, prior, Q, rng.uniform(0.005, 0.05, len(order))


def every_walk(chain, prior, V):
    """Each history once."""
    values = np.array(list(itertools.product(range(V), repeat=len(chain))), dtype=np.int16)
    return walk_beliefs(chain, prior, len(values), np.random.default_rng(0), values)


@pytest.mark.parametrize("seed", range(6))
def test_exact_contexts_are_dynamic_programming(seed):
    chain, prior, Q, prices = problem(np.random.default_rng(seed))
    best = twin.bellman(lambda h: twin.chain_likelihood(chain, len(h), h), prior, Q, prices)
    vectors = PointBased(chain, 2, Q, prices, "exact")
    vectors.train(*every_walk(chain, prior, 2))
    first = np.full((1, len(chain)), -1, dtype=np.int16)
    found = min((prior @ Q).min(), vectors.continuation_value(0, prior[None], first, lookahead=False)[0])
    assert found == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_few_walks_bound_the_cost_of_their_own_policy(seed):
    rng = np.random.default_rng(seed)
    chain, prior, Q, prices = problem(rng)

    def likelihood(history):
        return twin.chain_likelihood(chain, len(history), history)

    best = twin.bellman(likelihood, prior, Q, prices)
    vectors = PointBased(chain, 2, Q, prices, "exact")
    vectors.train(*walk_beliefs(chain, prior, 6, rng))

    def value(k, belief, history):
        known = np.array([[*history, *[-1] * (len(chain) - k)]], dtype=np.int16)
        return vectors.continuation_value(k, belief[None], known, lookahead=False)[0]

    promised = min((prior @ Q).min(), value(0, prior, ()))
    paid = twin.policy_cost(lambda k, b, h: value(k, b, h) < (b @ Q).min(), likelihood, prior, Q, prices)
    assert best - 1e-12 <= paid <= promised + 1e-12


def test_useless_feature_before_a_perfect_one_is_not_paid_for():
    """Each costs 0.3: stopping at once costs 0.5, buying both 0.6; the published Perseus promises 0.3."""
    tables = np.array([[[[0.5], [0.5]], [[0.5], [0.5]]], [[[1.0], [0.0]], [[0.0], [1.0]]]])
    chain, prior = Chain(np.array([-1, -1]), tables, np.array([0, 1])), np.array([0.5, 0.5])
    vectors = PointBased(chain, 2, 1 - np.eye(2), np.array([0.3, 0.3]))
    vectors.train(*walk_beliefs(chain, prior, 20, np.random.default_rng(0)))
    assert [len(stage.vectors) for stage in vectors.stages] == [0, 1, 0]
    assert not np.isfinite(
        vectors.continuation_value(0, prior[None], np.full((1, 2), -1), lookahead=False)
    ).any()


def test_pooled_contexts_are_a_bound_from_below():
    below = []
    for seed in range(12):
        chain, prior, Q, prices = problem(np.random.default_rng(seed), V=3)
        best = twin.bellman(lambda h, c=chain: twin.chain_likelihood(c, len(h), h), prior, Q, prices)
        vectors = PointBased(chain, 3, Q, prices, "pooled")
        vectors.train(*every_walk(chain, prior, 3))
        value = vectors.continuation_value(0, prior[None], np.full((1, len(chain)), -1), lookahead=False)[0]
        below.append(best - min((prior @ Q).min(), value))
    assert min(below) >= -1e-12
    assert max(below) > 1e-4


def test_too_many_contexts_are_refused():
    parent = np.array([-1, *range(6), *range(7)])  # the last seven hang on the first seven
    chain = Chain(parent, np.full((14, 2, 8, 8), 1 / 8), np.arange(14))
    with pytest.raises(
        ValueError, match=r"context='exact' needs 8\*\*5 contexts at stage 5, .* choose context='local'"
    ):
        PointBased(chain, 8, 1 - np.eye(2), np.full(14, 0.1), "exact")


def test_walks_follow_the_model(rng):
    chain, prior, _, _ = problem(rng, K=3)
    beliefs, values = walk_beliefs(chain, prior, 40_000, rng)
    share = np.bincount(values[:, 0], minlength=2) / len(values)
    np.testing.assert_allclose(share, twin.chain_likelihood(chain, 0, ()) @ prior, atol=0.01)
    np.testing.assert_allclose(beliefs[-1].mean(axis=0), prior, atol=0.01)  # posteriors are a martingale
    uniform = walk_beliefs(chain, prior, 40_000, rng, uniform=True)[1]
    np.testing.assert_allclose(np.bincount(uniform[:, 0]) / 40_000, 0.5, atol=0.01)


def test_missing_value_changes_nothing(rng):
    chain, _prior, _, _ = problem(rng)
    before = rng.dirichlet(np.ones(3), 4)
    known = np.full((4, len(chain)), -1, dtype=np.int16)
    after = update_posterior(chain, 0, before, known, np.array([-1, 0, 1, -1]))
    np.testing.assert_array_equal(after[[0, 3]], before[[0, 3]])
    want = before[1] * twin.chain_likelihood(chain, 0, ())[0]
    np.testing.assert_allclose(after[1], want / want.sum())
