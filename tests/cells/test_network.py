"""Trees, tables, orders and links against enumeration."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from tamis.cells.network import (
    Chain,
    Network,
    markov_blanket_order,
    spanning_tree,
)
from tamis.dependence.information import (
    adjusted_mutual_information,
    conditional_mutual_information,
    entropy,
    mutual_information_ratio,
)
from tests.twins import ifc2f as twin


def random_network(rng, K=5, L=3, V=3):
    parent = np.array([-1, *(int(rng.integers(0, f)) for f in range(1, K))])
    tables = np.moveaxis(rng.dirichlet(np.full(V, 0.6), (K, L, V)), 3, 2)
    tables[parent < 0] = tables[parent < 0][..., :1]
    return parent, tables, rng.dirichlet(np.ones(L))


def test_adjusted_information_is_scikit_learns(rng):
    for n_values in (2, 3, 9, 40):
        a, b = rng.integers(0, n_values, 80), rng.integers(0, 3, 80)
        table = np.zeros((1, n_values, 3), dtype=int)
        np.add.at(table[0], (a, b), 1)
        assert adjusted_mutual_information(table)[0] == pytest.approx(
            adjusted_mutual_info_score(a, b), abs=1e-12
        )
        assert adjusted_mutual_information(table)[0] <= mutual_information_ratio(table)[0] + 1e-12


def test_constant_column_tells_nothing():
    table = np.zeros((1, 4, 2), dtype=int)
    table[0, 1] = [5, 7]
    assert adjusted_mutual_information(table)[0] == mutual_information_ratio(table)[0] == 0.0


def test_conditional_information_is_the_definition(rng):
    codes, y = rng.integers(-1, 3, (200, 4)), rng.integers(0, 2, 200)
    found = conditional_mutual_information(codes, y, 3, 2)
    for i, j in itertools.combinations(range(4), 2):
        want = 0.0
        for c in range(2):
            rows = (y == c) & (codes[:, i] >= 0) & (codes[:, j] >= 0)
            table = np.zeros((3, 3))
            np.add.at(table, (codes[rows, i], codes[rows, j]), 1)
            shared = entropy(table.sum(0)) + entropy(table.sum(1)) - entropy(table.ravel())
            want += rows.sum() / 200 * shared
        assert found[i, j] == found[j, i] == pytest.approx(want, abs=1e-12)


def test_spanning_tree_is_the_heaviest_of_all(rng):
    weight = rng.random((5, 5))
    weight = weight + weight.T

    def total(parent):
        return sum(weight[f, p] for f, p in enumerate(parent) if p >= 0)

    every = (p for p in itertools.product(range(5), repeat=4) if _is_tree((-1, *p)))
    best = max(total((-1, *p)) for p in every)
    assert total(spanning_tree(weight)) == pytest.approx(best)
    assert spanning_tree(np.zeros((4, 4))).tolist()[0] == -1  # no information at all still gives a tree
    assert _is_tree(spanning_tree(np.zeros((4, 4))))


def _is_tree(parent):
    for f in range(len(parent)):
        seen = set()
        while f >= 0 and f not in seen:
            seen.add(f)
            f = parent[f]
        if f >= 0:
            return False
    return True


def test_tables_are_smoothed_counts(rng):
    codes, y = rng.integers(-1, 3, (60, 3)), rng.integers(0, 2, 60)
    tables = Network(codes, y, np.array([-1, 0, 0]), 3, 2).tables()
    assert tables.sum(axis=2) == pytest.approx(1.0)
    n = ((y == 1) & (codes[:, 2] == 1) & (codes[:, 0] == 2)).sum()
    d = ((y == 1) & (codes[:, 2] >= 0) & (codes[:, 0] == 2)).sum()
    assert tables[2, 1, 1, 2] == pytest.approx((n + 1) / (d + 3))
    root = ((y == 0) & (codes[:, 0] == 1)).sum() + 1, ((y == 0) & (codes[:, 0] >= 0)).sum() + 3
    assert tables[0, 0, 1] == pytest.approx(root[0] / root[1])


def test_published_order_leaves_out_the_neighbours():
    assert markov_blanket_order(np.array([-1, 0, 0, 1, 3, 2]), np.arange(6, 0, -1)).tolist() == [0, 3, 5]


def test_parents_first_is_the_tree_itself(rng):
    for _ in range(5):
        parent, tables, prior = random_network(rng)
        chain, P = Chain(parent, tables, np.arange(5)), twin.joint(parent, tables, prior)
        for x in itertools.islice(itertools.product(range(3), repeat=5), 0, None, 7):
            belief = prior
            for k in range(5):
                belief = belief * twin.chain_likelihood(chain, k, x)[x[k]]
                belief = belief / belief.sum()
                assert belief == pytest.approx(
                    twin.posterior(P, dict(enumerate(x[: k + 1]))), rel=1e-9, abs=1e-14
                )


def test_a_link_sums_out_what_lies_between(rng):
    parent, (K, L, V) = np.array([-1, 0, 1, 2]), (4, 2, 3)
    tables = np.moveaxis(rng.dirichlet(np.ones(V), (K, L, V)), 3, 2)
    tables[0] = tables[0][..., :1]
    chain = Chain(parent, tables, np.array([0, 3]))
    assert chain.link.tolist() == [-1, 0]
    P = twin.joint(parent, tables, np.array([0.4, 0.6])).sum(axis=(2, 3))  # class, x0, x3
    np.testing.assert_allclose(chain.tables[1], (P / P.sum(2, keepdims=True)).transpose(0, 2, 1))
    late = Chain(parent, tables, np.array([3, 0]))  # the root comes last: no link at all
    assert late.link.tolist() == [-1, -1]


def test_missing_link_is_summed_out(rng):
    parent = np.array([-1, 0, 1])
    tables = np.moveaxis(rng.dirichlet(np.ones(3), (3, 2, 3)), 3, 2)
    tables[0] = tables[0][..., :1]
    chain = Chain(parent, tables, np.arange(3))
    found = chain.likelihood(2, np.array([[1, -1, -1], [-1, -1, -1], [0, 2, -1]]))
    np.testing.assert_allclose(found[0], (tables[2] @ tables[1])[:, :, 1].T)
    np.testing.assert_allclose(found[1], (tables[2] @ tables[1] @ tables[0])[:, :, 0].T)
    np.testing.assert_allclose(found[2], tables[2][:, :, 2].T)
