"""Tables that believe little of few rows: against their definition, and what they say of noise."""

import numpy as np

from tamis import AdaptiveIFC2F
from tamis.cells.network import Network, smoothed_tables
from tamis.cells.tree import Tree

STRENGTHS = [0.0, *(2.0**power for power in range(13))]


def drawn(counts, simple):
    """The shares of each group of counts, by the strength at which each row is most likely given the others."""

    def likely(strength):
        return sum(
            n * np.log((n + strength * share) / (group.sum() + len(group) - 1 + strength))
            for group, shares in zip(counts, simple, strict=True)
            for n, share in zip(group, shares, strict=True)
            if n > 0
        )

    best = max(STRENGTHS, key=likely)
    return [
        (group + 1 + best * share) / (group.sum() + len(group) + best)
        for group, share in zip(counts, simple, strict=True)
    ]


def test_tables_are_the_definition(rng):
    V, L, n = 3, 2, 60
    codes, y = rng.integers(-1, V, (n, 3)), rng.integers(0, L, n)
    codes[:, 1] = np.where(codes[:, 0] < 0, -1, (codes[:, 0] + (rng.random(n) < 0.2)) % V)
    parent = np.array([-1, 0, 1])
    found = smoothed_tables(Network(codes, y, parent, V, L), codes, y)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)
    for f in range(3):
        of_class = np.array([[((codes[:, f] == v) & (y == c)).sum() for v in range(V)] for c in range(L)])
        share = (of_class.sum(axis=0) + 1.0) / (of_class.sum() + V)
        alone = drawn(of_class, [share] * L)
        if parent[f] < 0:
            for u in range(V):
                np.testing.assert_allclose(found[f, :, :, u], alone)
            continue
        above = codes[:, parent[f]]
        pairs = [(c, u) for c in range(L) for u in range(V)]
        counts = [
            np.array([((codes[:, f] == v) & (above == u) & (y == c)).sum() for v in range(V)])
            for c, u in pairs
        ]
        for (c, u), want in zip(pairs, drawn(counts, [alone[c] for c, _ in pairs]), strict=True):
            np.testing.assert_allclose(found[f, c, :, u], want)


def test_noise_seems_to_tell_less_and_what_tells_keeps_telling(rng):
    n, K = 100, 12
    y = rng.integers(0, 2, n)
    codes = rng.integers(0, 4, (n, K))
    codes[:, 0] = 2 * y + rng.integers(0, 2, n)
    network = Network(codes, y, np.arange(K) - 1, 4, 2)
    tables = network.tables(), smoothed_tables(network, codes, y)
    before, after = (
        Tree(network.parent, table, network.prior()).expected_information(np.full((1, K), -1))[1][0]
        for table in tables
    )
    assert after[1:].sum() < 0.4 * before[1:].sum()
    assert np.median(after[1:]) < 0.01 * np.median(before[1:])
    assert after[0] > 0.9 * before[0]


def test_a_column_and_a_class_without_values_are_taken(rng):
    codes, y = rng.integers(0, 4, (20, 3)), rng.integers(0, 2, 20)
    codes[:, 1] = -1
    found = smoothed_tables(Network(codes, y, np.array([-1, 0, 1]), 4, 3), codes, y)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)
    np.testing.assert_allclose(found[1], 0.25)


def test_a_pair_that_tells_only_together_is_bought_without_noise():
    """Of ten columns two tell; six were bought for a loss of .26, before tables were drawn to simpler ones."""
    lost, bought = [], []
    for seed in range(4):
        rng = np.random.default_rng([seed, 15])
        X = rng.normal(size=(1400, 10))
        y = (X[:, 2] * X[:, 7] > 0) ^ (rng.random(1400) < 0.1)
        model = AdaptiveIFC2F(cost=0.01, random_state=0).fit(X[:400], y[:400])
        lost.append(np.mean(model.predict(X[400:]) != y[400:]) + model.cost_.mean())
        bought.append(model.n_features_used_.mean())
    assert np.mean(lost) < 0.19
    assert np.mean(bought) < 4.0
