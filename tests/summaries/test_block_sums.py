"""BlockSums equals its definition: weights, missing values, sparse rows, fading, any batching, merging."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.summaries.block_sums import BlockSums
from tamis.summaries.label_series import LAGS
from tests.twins import dependent_rows as twin


def rows(n, n_classes=2, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(n, 3)), axis=0) + rng.normal(size=(n, 3))
    X[rng.random(X.shape) < missing] = np.nan
    y = np.repeat(rng.integers(0, n_classes, n), 4)[:n]
    return X, y, rng.random(n)


def learned(X, y, w, n_classes, step, edges=None, factor=1.0):
    blocks = BlockSums(X.shape[1], n_classes, edges, fades=factor < 1.0)
    for start in range(0, len(y), step):
        part = slice(start, min(start + step, len(y)))
        n = part.stop - start
        before = y[max(0, start - max(LAGS)) : start]
        fade = factor ** np.arange(n - 1, -1, -1.0)
        blocks.update(X[part], y[part], w[part], factor**n, before, fade)
    return blocks


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n", [50, 300, 1030])
def test_equals_its_definition(n, missing, n_classes):
    X, y, w = rows(n, n_classes, missing)
    blocks = learned(X, y, w, n_classes, 37)
    found, freedom = blocks.covariance()
    listed = twin.blocks_of(n)
    for j in range(3):
        expected, left = twin.covariance(X[:, j].tolist(), y, w, n_classes, listed)
        np.testing.assert_allclose(found[:, :, j], expected, rtol=1e-8, atol=1e-12 * np.abs(expected).max())
    assert freedom == pytest.approx(left)
    if n > 2 * LAGS[1]:
        means = blocks.lagged_means()[0]
        for at, lag in enumerate(LAGS[:2]):
            expected = twin.lagged_means(X[:, 1].tolist(), y, w, n_classes, lag)
            np.testing.assert_allclose(means[at, :, 1], expected, rtol=1e-9)


@pytest.mark.parametrize("step", [1, 16, 1000])
@pytest.mark.parametrize("factor", [1.0, 0.99])
@pytest.mark.parametrize("counts", [False, True])
def test_any_batching_is_the_same_up_to_rounding(counts, factor, step):
    X, y, w = rows(1000)
    edges = np.array([[-5.0, 0.0, 5.0]] * 3) if counts else None
    one, other = (learned(X, y, w, 2, at, edges, factor) for at in (123, step))
    np.testing.assert_allclose(one.covariance()[0], other.covariance()[0], rtol=1e-8)
    np.testing.assert_allclose(one.lagged_means()[0], other.lagged_means()[0], rtol=1e-8, atol=1e-12)
    for a, b in zip(one.by_block(), other.by_block(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("counts", [False, True])
def test_sparse_rows_equal_dense_ones(counts):
    X, y, w = rows(500)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    edges = np.array([[-5.0, 0.0, 5.0]] * 3) if counts else None
    dense, sparse = (learned(Z, y, w, 2, 60, edges) for Z in (X, sp.csr_array(X)))
    for a, b in zip(dense.by_block(), sparse.by_block(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense.covariance()[0], sparse.covariance()[0], rtol=1e-9)
    sparse.widen(5)
    assert sparse.covariance()[0].shape == (2, 2, 5)
    sparse.forget(np.array([0]))
    assert not sparse.covariance()[0][:, :, [0, 3, 4]].any()


def test_fading_counts_the_last_rows_and_keeps_blocks_short():
    X, y, _ = rows(20_000, missing=0.0)
    blocks = learned(X, y, np.ones(len(y)), 2, 500, factor=0.5 ** (1 / 500))
    assert blocks.length < 200  # of 1,443 effective rows
    expected = learned(X[-8000:], y[-8000:], np.ones(8000), 2, 500, factor=0.5 ** (1 / 500))
    np.testing.assert_allclose(blocks.covariance()[0], expected.covariance()[0], rtol=0.5)
    assert blocks.covariance()[1] > 4


def test_merged_parts_list_the_blocks_of_both():
    X, y, w = rows(1024)
    cut = 700
    early, late = learned(X[:cut], y[:cut], w[:cut], 2, 50), learned(X[cut:], y[cut:], w[cut:], 2, 50)
    expected = twin.blocks_of(cut)
    shorter = twin.blocks_of(1024 - cut)
    while len(shorter[0]) < len(expected[0]):
        shorter = [[i for b in shorter[k : k + 2] for i in b] for k in range(0, len(shorter), 2)]
    listed = [*expected, *[[i + cut for i in block] for block in shorter]]
    while len(listed) > 32:
        listed = [[i for b in listed[k : k + 2] for i in b] for k in range(0, len(listed), 2)]
    early.merge(late)
    for j in range(3):
        found = twin.covariance(X[:, j].tolist(), y, w, 2, listed)[0]
        np.testing.assert_allclose(early.covariance()[0][:, :, j], found, rtol=1e-8)
    early.update(X[:100], y[:100], w[:100])
    assert early.n_rows == 1124


def test_memory_is_bounded():
    X, y, w = rows(5000, missing=0.0)
    blocks = learned(X, y, w, 2, 500)
    assert (
        blocks.nbytes / 3 < 32 * 2 * 8 + 8 * 2 * 8 + 400
    )  # a feature's share of all that is per block included
    many = learned(X, y % 2 + np.arange(5000) % 8 * 2, w, 16, 500)
    assert len(many.by_block()[0]) <= 8


@pytest.mark.parametrize("counts", [False, True])
def test_without_lags_the_blocks_are_the_same(counts):
    X, y, w = rows(1000)
    edges = np.array([[-5.0, 0.0, 5.0]] * 3) if counts else None
    one, other = learned(X, y, w, 2, 123, edges), BlockSums(3, 2, edges)
    for start in range(0, 1000, 71):
        part = slice(start, start + 71)
        if start == 71 * 3:
            other.lags = False
        other.update(X[part], y[part], w[part], 1.0, y[:start])
    np.testing.assert_allclose(one.covariance()[0], other.covariance()[0], rtol=1e-8)
    for a, b in zip(one.by_block(), other.by_block(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    assert len(one.lagged_means()[0]) == 5
    assert len(other.lagged_means()[0]) == 0
    other.lags = True
    for _ in range(2):
        other.update(X, y, w, 1.0, y)
    assert len(other.lagged_means()[0]) > 0
