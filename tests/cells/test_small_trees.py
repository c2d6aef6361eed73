"""Small trees over any of the values: a tree against its twin, what a sum cannot see, missing values, single rows."""

import numpy as np
import pytest

from tamis.cells.small_trees import _LEAST, SmallTrees, _add_leaves, _grow, _leaf
from tests.twins import small_trees as twin


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    n, K, n_codes = 60, 3, 5
    codes = rng.integers(seed % 2, n_codes, (n, K))  # 0 is unknown
    codes[:, 0] = np.minimum(codes[:, 0], 2)  # cuts beyond the last code are not tried
    used = codes.max(axis=0) + 1
    g, h = rng.normal(size=n) + (codes[:, 1] > 2), rng.random(n)
    weight = np.full(n, 0.7)
    tree = np.empty(7, np.int64), np.empty(7, np.int64), np.empty(7, bool), np.empty(8)
    rows = np.flatnonzero(rng.random(n) < 0.8)
    score = np.zeros(n)
    _grow(codes, used, rows, g, h, _LEAST / 0.7, *np.empty((2, 4, K, n_codes, 3)), *tree, 0.5, score)
    expected = twin.leaves(codes.tolist(), rows.tolist(), g, h, weight, n_codes, 3, _LEAST)
    assert len(set(expected.values())) > 2
    for i in rows:
        assert _leaf(codes[i], *tree) == pytest.approx(0.5 * expected[i], rel=1e-9)
    others = np.setdiff1d(np.arange(n), rows)
    assert not score[others].any()
    _add_leaves(codes, others, *tree, np.empty(n, np.int64), score)
    np.testing.assert_array_equal(score, [_leaf(code, *tree) for code in codes])


def product(rng, n=1500):
    X = rng.normal(size=(n, 4))
    return X, (X[:, 1] * X[:, 3] > 0).astype(int)


def test_sees_what_several_values_say_together(rng):
    X, y = product(rng)
    found = SmallTrees(2).fit(X[:1000], y[:1000]).posterior(X[1000:])
    assert (found.argmax(axis=1) == y[1000:]).mean() > 0.9


def test_what_is_not_known_tells_nothing(rng):
    X, y = product(rng)
    model = SmallTrees(2).fit(X, y)
    nothing = model.posterior(np.full((2, 4), np.nan))
    np.testing.assert_allclose(nothing, np.tile(model.prior, (2, 1)))
    half = X[:200].copy()
    half[:, 3] = np.nan
    assert np.abs(model.posterior(half)[:, 1] - 0.5).mean() < 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_step_of_a_walk_is_the_row_as_known_then(rng, n_classes):
    y = rng.integers(0, n_classes, 300)
    X = rng.normal(size=(300, 5)) + y[:, None]
    X[rng.random(X.shape) < 0.2] = np.nan
    model = SmallTrees(n_classes).fit(X, y)
    order = np.array([rng.permutation(5) for _ in X])
    order[::3, 3:] = -1
    steps = model.evidence(X, order)
    for s in range(6):
        known = np.full(X.shape, np.nan)
        for i, columns in enumerate(order[:, :s]):
            columns = columns[columns >= 0]
            known[i, columns] = X[i, columns]
        np.testing.assert_array_equal(steps[s], model.total_evidence(known))
    alone = np.concatenate([model.posterior(x[None]) for x in X[:50]])
    np.testing.assert_array_equal(alone, model.posterior(X)[:50])


@pytest.mark.parametrize("shape", [(30, 0), (1, 3), (12, 2)])
def test_few_rows_or_columns(rng, shape):
    X, y = rng.normal(size=shape), np.arange(shape[0]) % 2
    model = SmallTrees(2).fit(X, y)
    found = model.posterior(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_columns_that_are_all_unknown_or_constant(rng):
    X, y = product(rng, 200)
    X[:, 0], X[:, 2] = np.nan, 1.0
    assert np.isfinite(SmallTrees(2).fit(X, y).posterior(X)).all()
