"""GDFS and DIME of the experiments: they acquire the value that indicates which other one is informative, then that."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="the networks of GDFS and DIME need PyTorch, pip install 'tamis[torch]'")

from experiments.cells_networks import DIME, GDFS


def guide(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Column 0 has the class with 70 % and indicates which of columns 1 and 2 has it with 95 %; 3 to 5 are noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.integers(0, 2, (n, 6)).astype(np.float64)
    X[:, 0] = np.where(rng.random(n) < 0.7, y, 1 - y)
    X[np.arange(n), 1 + X[:, 0].astype(int)] = np.where(rng.random(n) < 0.95, y, 1 - y)
    return X, y


def entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


@pytest.mark.slow
@pytest.mark.parametrize("method", [GDFS, DIME])
def test_asks_for_the_guide_and_then_for_what_it_indicates(method) -> None:
    X, y = guide(1, 1000)
    model = method(3, hidden=32, epochs=12, patience=2).fit(*guide(0, 3000))
    walk = model.walk(X)
    assert np.mean(walk.order[:, 0] == 0) > 0.99
    assert np.mean(walk.order[:, 1] == 1 + X[:, 0]) > 0.95
    assert all(len(set(row)) == 3 for row in walk.order.tolist())
    accuracy = (walk.posterior.argmax(axis=2) == y).mean(axis=1)
    assert accuracy[2] > 0.92  # any two columns that are the same for every row have at most .85
    assert abs(accuracy[1] - 0.7) < 0.05
    np.testing.assert_allclose(walk.posterior.sum(axis=2), 1.0, rtol=1e-5)
    if method is DIME:  # its scores are estimates of the conditional mutual information
        after = 0.68 * entropy(0.665 / 0.68) + 0.32 * entropy(0.035 / 0.32)
        assert abs(walk.value[0].mean() - (np.log(2) - entropy(0.7))) < 0.02
        assert abs(walk.value[1].mean() - (entropy(0.7) - after)) < 0.05


def test_a_penalty_stops_a_row_at_the_first_value_that_gives_no_more() -> None:
    value = np.array([[0.4, 0.1, 0.3], [0.2, 0.3, 0.3], [0.1, 0.1, 0.3]])  # (steps, rows)
    assert DIME.steps_within(value, 0.15).tolist() == [2, 0, 3]
    assert DIME.steps_within(value, 0.0).tolist() == [3, 3, 3]
    penalty = DIME.penalty_for(value, 1.7)
    assert DIME.steps_within(value, penalty).mean() <= 1.7
    assert DIME.steps_within(value, penalty - 0.01).mean() > 1.7


@pytest.mark.parametrize("method", [GDFS, DIME])
def test_the_same_seed_gives_the_same_networks(method) -> None:
    X, y = guide(2, 200)
    first, second = (method(2, hidden=8, epochs=1, seed=3).fit(X, y).walk(X[:50]) for _ in range(2))
    assert np.array_equal(first.posterior, second.posterior)
    other = method(2, hidden=8, epochs=1, seed=4).fit(X, y).walk(X[:50])
    assert not np.array_equal(first.posterior, other.posterior)
