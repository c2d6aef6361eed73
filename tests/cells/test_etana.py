"""ETANA: the grid against its recursion, and against dynamic programming."""

import numpy as np
import pytest

from tamis import ETANA
from tamis.cells.etana import Grid
from tests.twins import etana as twin
from tests.twins import ifc2f as exact


def problem(rng, K=5, L=3, V=3):
    tables = [rng.dirichlet(np.full(V, 0.6), L) for _ in range(K)]
    return tables, 1.0 - np.eye(L), np.full(K, 0.03), np.full(L, 1 / L)


@pytest.mark.parametrize("resolution", [3, 10])
def test_grid_is_the_recursion(rng, resolution):
    tables, Q, prices, _ = problem(rng)
    grid = Grid([t[..., None] for t in tables], Q, prices, resolution)
    stop, continue_cost = twin.train([t.T for t in tables], Q, prices, resolution)
    for at, point in enumerate(map(tuple, grid.points.tolist())):
        assert grid.stop[at] == pytest.approx(stop[point], abs=1e-12)
        np.testing.assert_allclose(
            grid.continue_cost[:, at], [stage[point] for stage in continue_cost], rtol=1e-12
        )
    belief = rng.dirichlet(np.ones(3), 200)
    found = grid.points[grid.nearest(belief)]
    assert [tuple(row) for row in found.tolist()] == [twin.rounded(b, resolution) for b in belief]


def test_finer_grids_approach_the_best_policy(rng):
    tables, Q, prices, start = problem(rng)

    def likelihood(history):
        return tables[len(history)].T

    best = exact.bellman(likelihood, start, Q, prices)
    costs = []
    for resolution in (2, 10, 60):
        grid = Grid([t[..., None] for t in tables], Q, prices, resolution)
        costs.append(
            exact.policy_cost(
                lambda k, b, h, grid=grid: grid.should_continue(k, b[None])[0], likelihood, start, Q, prices
            )
        )
    assert costs[-1] == pytest.approx(best, abs=2e-3)
    assert costs[0] >= costs[-1] >= best - 1e-12


@pytest.mark.slow
def test_order_is_by_how_much_the_classes_differ(rng):
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 5)) + y[:, None] * np.array([0.0, 1.0, 3.0, 0.5, 2.0])
    assert ETANA(threshold="all", random_state=0).fit(X, y).candidates_.tolist() == [2, 4, 1, 3, 0]
    assert ETANA(random_state=0).fit(X, y).candidates_.tolist() == [2, 4, 1, 3]
    assert ETANA(max_features=2, random_state=0).fit(X, y).candidates_.tolist() == [2, 4]


@pytest.mark.slow
def test_vectors_and_fine_grid_buy_alike(rng):
    y = rng.integers(0, 3, 2000)
    X = rng.normal(size=(2000, 8)) + (y[:, None] == np.arange(8) % 3)
    points = ETANA(cost=0.02, random_state=0).fit(X, y)
    grid = ETANA(cost=0.02, method="grid", resolution=60).fit(X, y)
    costs = []
    for model in (points, grid):
        error = 1.0 - model.score(X, y)
        costs.append(error + model.cost_.mean())
    assert costs[0] == pytest.approx(costs[1], abs=0.01)


def test_published_settings(rng):
    y = np.r_[np.zeros(300, int), np.ones(60, int)]
    X = rng.normal(size=(360, 4)) + 2 * y[:, None]
    model = ETANA.published(cost=0.02).fit(X, y)
    assert (model.n_bins, model.binning, model.method) == (3, "width", "grid")
    np.testing.assert_array_equal(model.open().posterior.values().__iter__().__next__(), 0.5)
    assert model.score(X, y) > 0.9


def test_grid_of_many_classes_is_refused(rng):
    X, y = rng.normal(size=(110, 3)), np.arange(110) % 11
    with pytest.raises(ValueError, match=r"has 184,756 points for 11 classes, .* choose method='points'"):
        ETANA(method="grid").fit(X, y)
    assert ETANA(random_state=0).fit(X, y).predict(X).shape == (110,)


def test_columns_that_tell_equally_much_keep_their_order(rng):
    y = rng.integers(0, 2, 200)
    most, some, less = (y + noise * rng.normal(size=200) for noise in (0.5, 1.0, 2.0))
    model = ETANA(cost=0.01, order="spread").fit(np.tile(np.column_stack([most, less, some]), 20), y)
    kinds = model.candidates_.reshape(3, 20)
    np.testing.assert_array_equal(kinds, [np.arange(first, 60, 3) for first in (0, 2, 1)])


def test_a_value_that_is_not_to_be_had_costs_nothing(rng):
    y = rng.integers(0, 2, 300)
    X = y[:, None] + rng.normal(size=(300, 4))
    model = ETANA(cost=0.01).fit(X, y)
    first = int(model.candidates_[0])
    X[:, first] = np.nan
    model.predict(X)
    np.testing.assert_allclose(model.cost_, 0.01 * model.n_features_used_)
    walk = model.acquire(X[0])
    assert first not in walk.features
    assert walk.cost == pytest.approx(0.01 * len(walk.features))
