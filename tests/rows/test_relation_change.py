"""Has a relation changed: the statistic is that of the log-linear model without its three-way term."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.rows.relation_change import critical_values, find_changed_feature, find_changed_table
from tamis.summaries.entropy import WindowCounts


def fitted(n, rounds=20_000):
    """Scale a table of ones until its three margins of two are those of n."""
    m = (n > -1).astype(float)
    for _ in range(rounds):
        before = m.copy()
        for axis in range(3):
            margin = m.sum(axis=axis, keepdims=True)
            m *= n.sum(axis=axis, keepdims=True) / np.where(margin > 0, margin, 1.0)
        if np.abs(m - before).max() < 1e-12:
            break
    return m


def statistic(old, young):
    """Return 2 sum n ln(n / m), and the rank that the three-way term adds, from the design of the model."""
    n = np.stack([old, young], axis=2).astype(float)
    n[(n.sum(axis=1) < 5).any(axis=1)] = 0.0
    cells = np.argwhere(n.sum(axis=2, keepdims=True).repeat(2, axis=2) > 0)
    pairs = [(0, 1), (0, 2), (1, 2)]
    columns = [
        (cells[:, i] == a) & (cells[:, j] == b)
        for i, j in pairs
        for a in range(n.shape[i])
        for b in range(n.shape[j])
    ]
    freedom = len(cells) - np.linalg.matrix_rank(np.column_stack(columns).astype(float))
    m = fitted(n)
    some = n > 0
    return 2 * (n[some] * np.log(n[some] / m[some])).sum(), freedom


def tables(seed, n_values, n_classes, changed, empty=False):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 3.0), n_values)
    other = rng.dirichlet(np.full(n_classes, 3.0), n_values) if changed else shares
    old, young = (
        np.array(
            [rng.multinomial(rows, p) for rows, p in zip(rng.integers(40, 200, n_values), of, strict=True)]
        )
        for of in (shares, other)
    )
    if empty:  # a class that two values do not have, a value of few rows
        old[:2, 0] = young[:2, 0] = 0
        old[2], young[2] = 0, 0
        old[2, 0] = young[2, 0] = 3
    return old, young


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize(("n_values", "n_classes"), [(6, 2), (5, 3), (7, 4)])
def test_the_bar_is_that_of_the_degrees_of_freedom_and_the_statistic_that_of_the_model(
    n_values, n_classes, empty
):
    for seed in range(6):
        old, young = tables(seed, n_values, n_classes, changed=seed % 2 == 1, empty=empty)
        g, freedom = statistic(old, young)
        assert freedom > 0
        for bar, expected in ((g * 0.999, 0), (g * 1.001 + 1e-3, -1)):
            bars = np.full(n_values * n_classes, np.inf if expected == 0 else 0.0)
            bars[freedom] = bar  # no other one is looked at
            assert find_changed_table(old[None].astype(float), young[None].astype(float), bars) == expected


def test_the_first_feature_that_changed_is_named_by_both():
    rng = np.random.default_rng(0)
    X, codes = rng.integers(0, 3, (600, 4)).astype(float), rng.integers(0, 2, 600)
    X[300:, 2] = codes[300:]
    counts = WindowCounts(4, 2, window=600, categorical=range(4))
    counts.update(X, codes)
    parts = [np.zeros((4, 3, 2)), np.zeros((4, 3, 2))]
    for i in range(600):
        for j in range(4):
            parts[i >= 300][j, int(X[i, j]), codes[i]] += 1
    bars = critical_values(1e-5, 4, 2)
    assert find_changed_feature(300, counts.with_bins(300), 2, bars) == find_changed_table(*parts, bars) == 2
    after = WindowCounts(
        4, 2, window=250, categorical=range(4)
    )  # all rows that it has are from after the change
    after.update(X, codes)
    assert find_changed_feature(100, after.with_bins(100), 2, bars) == -1


def test_bars_hold_their_level():
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(2000):
        n = rng.multinomial(400, np.full(16, 1 / 16)).reshape(4, 2, 2).astype(float)
        alarms += find_changed_table(n[None, :, :, 0], n[None, :, :, 1], critical_values(0.05, 1, 2)) == 0
    assert alarms <= 100
