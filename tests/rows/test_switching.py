"""The switching rule equals its twin, keeps its probabilities, and its regret stays below the bound."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.rows.auto.switching import follow, lead, regret_bound, reweigh
from tests.twins.auto import best_sequence, fixed_share


def adversaries(n_blocks: int = 120, n_arms: int = 5) -> dict[str, np.ndarray]:
    """Errors of 100 rows by arm that are hard to follow."""
    rng = np.random.default_rng(0)
    turns = np.full((n_blocks, n_arms), 40.0)
    turns[np.arange(n_blocks), np.arange(n_blocks) // 30 % n_arms] = 10.0
    teasing = np.tile([20.0, 30.0], (n_blocks, 3))[:, :n_arms]
    teasing[1::2] = 50.0 - teasing[1::2]
    return {
        "noise": rng.binomial(100, 0.3, (n_blocks, n_arms)).astype(float),
        "turns": turns,
        "teasing": teasing,
        "extremes": 100.0 * rng.integers(0, 2, (n_blocks, n_arms)),
    }


def course(blocks: np.ndarray, rate: float, share: float) -> tuple[np.ndarray, float]:
    weights, gaps = [np.eye(blocks.shape[1])[0]], 0.0
    for losses in blocks:
        new, gap = reweigh(weights[-1], losses, rate, share)
        weights.append(new)
        gaps += gap
    return np.array(weights), gaps


@pytest.mark.parametrize("kind", list(adversaries()))
@pytest.mark.parametrize(("rate", "share"), [(0.01, 0.01), (0.2, 0.01), (0.4, 0.1)])
def test_equals_its_twin_and_keeps_its_bound(kind, rate, share):
    blocks = adversaries()[kind]
    weights, gaps = course(blocks, rate, share)
    twin = fixed_share(blocks.tolist(), rate, share, weights[0].tolist())
    np.testing.assert_allclose(weights, twin, rtol=1e-9)
    expected = float((weights[:-1] * blocks).sum())
    for n_switches in (0, 1, 3, 6):
        best = best_sequence(blocks.tolist(), n_switches)
        bound = regret_bound(blocks.shape[1], len(blocks), gaps, rate, share, n_switches + 1)
        assert expected - best <= bound + 1e-9
    assert gaps <= rate * float((np.ptp(blocks, axis=1) ** 2).sum()) / 8.0 + 1e-9  # (5)


def test_the_bound_is_not_an_empty_one():
    blocks = adversaries()["turns"]
    weights, gaps = course(blocks, 0.2, 0.01)
    bound = regret_bound(5, len(blocks), gaps, 0.2, 0.01, 3)  # it begins with the arm that begins
    alone = blocks.sum(axis=0).min()
    assert best_sequence(blocks.tolist(), 3) + bound < 0.7 * alone
    assert (weights[:-1] * blocks).sum() < 0.5 * alone


def test_an_arm_is_followed_with_the_probability_of_its_weight():
    rng = np.random.default_rng(1)
    chances = (np.arange(4000) + 0.5) / 4000
    for _ in range(5):
        before, after = rng.dirichlet(np.ones(6), 2)
        arrives, stays = np.zeros(6), 0.0
        for arm in range(6):
            to = np.bincount([follow(arm, before, after, chance) for chance in chances], minlength=6) / 4000
            arrives += before[arm] * to
            stays += before[arm] * to[arm]
        np.testing.assert_allclose(arrives, after, atol=1e-3)
        assert stays == pytest.approx(np.minimum(before, after).sum(), abs=1e-3)  # it cannot leave less often


def test_the_leader_changes_by_its_margin_only():
    rng = np.random.default_rng(2)
    leader = 0
    for errors in rng.random((200, 4)):
        new = lead(leader, errors, 0.1)
        assert errors[new] == errors.min() or errors[leader] - errors.min() <= 0.1
        assert new == leader or errors[new] < errors[leader] - 0.1
        leader = new
