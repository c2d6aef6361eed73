"""The errors of naive Bayes that DISCUSS watches: every row counts once, where its value lies."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.rows.discuss.bayes_watch import _cut, count, cuts, empty_watch, expect, judge, watch
from tamis.rows.discuss.discuss import DISCUSS


def test_every_row_is_counted_where_its_value_lies(rng):
    X = np.column_stack(
        [rng.normal(size=60), rng.integers(0, 4, 60), np.where(rng.random(60) < 0.3, np.nan, 1.0)]
    )
    codes, exact = rng.integers(0, 3, 60), np.array([False, True, False])
    edges, tables = cuts(X, exact), np.zeros((3, 11, 3))
    count(X, codes, edges, exact, tables)
    assert tables.sum(axis=(1, 2)).tolist() == [60, 60, 60]
    np.testing.assert_array_equal(tables.sum(axis=1), np.tile(np.bincount(codes, minlength=3), (3, 1)))
    for value in range(4):
        at = X[:, 1] == value
        np.testing.assert_array_equal(tables[1, value], np.bincount(codes[at], minlength=3))
    np.testing.assert_array_equal(tables[2, -1], np.bincount(codes[np.isnan(X[:, 2])], minlength=3))
    np.testing.assert_array_equal(tables[0, 0], np.bincount(codes[X[:, 0] <= edges[0, 0]], minlength=3))


@pytest.mark.parametrize("n", [1, 8, 60, 700])
def test_edges_of_all_features_are_those_of_each_alone(rng, n):
    X = rng.normal(size=(n, 40))
    X[:, :10] = rng.integers(0, rng.integers(1, 14, 10), (n, 10))
    X[:, 10:20] = X[:, 10:20].round(1)
    X[rng.random((n, 40)) < 0.01] = np.nan
    X[:, 20] = np.nan
    exact = rng.random(40) < 0.5
    alone = np.full((40, 9), np.inf)
    for j in range(40):
        _cut(X[:, j], bool(exact[j]), alone[j])
    np.testing.assert_array_equal(cuts(X, exact), alone)


def test_evidence_rises_when_the_class_turns(rng):
    X = rng.normal(size=(400, 2))
    codes = (X[:, 0] > 0).astype(int)
    state = watch([0], X[:200], codes[:200], np.zeros(2, bool), empty_watch(2))
    expect(state)
    same = [judge(row, code, state) for row, code in zip(X[200:300], codes[200:300], strict=True)]
    expect(state)
    turned = [judge(row, 1 - code, state) for row, code in zip(X[300:330], codes[300:330], strict=True)]
    assert max(same) < 3.0 < 11.5 < max(turned)


def test_looks_do_not_depend_on_the_batches(rng):
    X = rng.normal(size=(900, 5))
    y = np.where(np.arange(900) < 450, X[:, 1] > 0, X[:, 3] > 0)
    whole, parts = (DISCUSS(half_life=None).partial_fit(X[:70], y[:70], classes=[False, True]) for _ in "ab")
    whole.partial_fit(X[70:], y[70:])
    found = False
    for at in range(70, 900, 7):
        found |= parts.partial_fit(X[at : at + 7], y[at : at + 7]).drift_detected_
    assert found
    assert parts.n_replay == whole.n_replay
    np.testing.assert_array_equal(parts.scores_, whole.scores_)
    np.testing.assert_array_equal(parts.get_support(), whole.get_support())
