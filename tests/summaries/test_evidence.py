"""Evidence whose classes and features become more: what was said stays, and what is new begins where it must."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.summaries.evidence import Evidence
from tests.twins import evidence as twin


def cells_of(values, columns):
    """Three bins that do not depend on which columns are looked at."""
    return np.where(np.isnan(values), -1, np.digitize(values, [-0.4, 0.4]))


def rows(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + 0.4 * codes[:, None] * [1, 0, 2], codes


@pytest.mark.parametrize(("n_bins", "cells"), [(1, None), (3, cells_of)])
def test_new_classes_begin_with_the_mean_of_the_old_and_learn_as_they_do(n_bins, cells):
    (X, two), (more, four) = rows(128, 2, 0), rows(160, 4, 1)
    grown = Evidence(3, 2, n_bins)
    grown.update(X, two, cells)
    before = grown.log_e()
    grown.grow(4)
    assert grown.n_classes == 4
    np.testing.assert_allclose(grown.log_e(), before, rtol=1e-12)
    grown.update(more, four, cells)

    def of_one_class(c):  # a class and the rest tell the same
        found = Evidence(3, 2, n_bins)
        found.update(np.concatenate([X, more]), (np.r_[two, four] == c).astype(int), cells)
        return found.log_e()

    old, new = ([of_one_class(c) for c in classes] for classes in ((0, 1), (2, 3)))
    expected = np.log(np.mean([*np.exp(old), *np.exp(before + new)], axis=0))
    np.testing.assert_allclose(grown.log_e(), expected, rtol=1e-9)


@pytest.mark.parametrize(("n_bins", "cells"), [(1, None), (3, cells_of)])
@pytest.mark.parametrize("n", [96, 110])
def test_new_features_are_as_if_known_from_the_start(n_bins, cells, n):
    (X, codes), (more, others) = rows(n, 2, 0), rows(100, 2, 1)
    X[:, 2] = 0.0
    known, widened = Evidence(3, 2, n_bins), Evidence(2, 2, n_bins)
    known.update(sp.csr_array(X), codes, cells)
    widened.update(sp.csr_array(X[:, :2]), codes, cells)
    widened.widen(3)
    assert widened.log_e().shape == (3,)
    assert widened.n_waiting == known.n_waiting == n % 32
    assert widened.log_e()[2] == 0.0
    for one in (known, widened):
        one.update(sp.csr_array(more), others, cells)
    np.testing.assert_array_equal(widened.log_e(), known.log_e())
    assert widened.log_e()[2] > 1


@pytest.mark.parametrize(("n_bins", "cells"), [(1, None), (3, cells_of)])
def test_evidence_of_dependent_rows_is_compared_between_blocks(n_bins, cells):
    X, codes = rows(64 * 32, 2, 0)
    held = np.arange(len(codes)) // 8 * 8
    evidence = Evidence(3, 2, n_bins)
    evidence.update(X[held], codes[held], cells)
    plain, between = evidence.log_e(), evidence.log_e(dependent=True)
    assert (between <= plain + 1e-12).all()
    assert between.max() < plain.max() / 2

    def expected(j, c):
        """(3) with (4), block by block."""
        S, V, Q = 0.0, 0.0, 0.0
        for start in range(0, len(codes), 32):
            x, z = X[held[start : start + 32], j], (codes[held[start : start + 32]] == c).astype(float)
            phi = (x / x.std(ddof=1))[:, None]
            if n_bins > 1:
                phi = np.sqrt(3.0) * (cells_of(x[:, None], None) == np.arange(3))
            phi = phi - phi.mean(axis=0)
            D, R, Y = phi.T @ z, phi.T @ phi, z.sum() - z.sum() ** 2 / 32
            S, Q, V = S + D, Q + np.outer(D, D), V + np.outer(D, D) / 3 + 2 * R * Y / 93
        value, vector = np.linalg.eigh(Q - V)
        V = V + (vector * np.maximum(value, 0.0)) @ vector.T
        inner = np.linalg.inv(V + np.eye(n_bins) / 0.02)
        return S @ inner @ S / 2 - np.linalg.slogdet(np.eye(n_bins) + 0.02 * V)[1] / 2

    of_classes = [[expected(j, c) for c in range(2)] for j in range(3)]
    np.testing.assert_allclose(between, np.log(np.exp(of_classes).mean(axis=1)), rtol=1e-8)


@pytest.mark.parametrize(("n_bins", "cells"), [(1, None), (3, cells_of)])
@pytest.mark.parametrize("step", [1, 50, 500])
def test_evidence_while_labels_have_a_cycle_is_at_most_that_of_differences_of_labels(n_bins, cells, step):
    X, codes = rows(500, 3, 0)
    X[7::9, 2] = np.nan
    before = np.r_[np.full(130, -1), codes[:370]]
    evidence = Evidence(3, 3, n_bins)
    for start in range(0, 500, step):
        part = slice(start, start + step)
        evidence.update(X[part], codes[part], cells, before[part])
    whole = codes[:480]
    for j in range(3):
        phi = twin.of_values(X[:, j]) if n_bins == 1 else twin.of_bins(cells_of(X[:, j], None), 3)
        alone, lagged = twin.log_e(phi, whole, 3), twin.log_e(phi, whole, 3, before=before)
        assert evidence.log_e()[j] == pytest.approx(alone, abs=1e-9)
        assert evidence.log_e(cyclic=True)[j] == pytest.approx(min(alone, lagged), abs=1e-9)
    assert evidence.log_e(cyclic=True)[2] > 3.0  # a relation remains
    one, without = Evidence(3, 3, n_bins), Evidence(3, 3, n_bins)
    one.update(X[:480], whole, cells, before[:480])
    without.update(X[:480], whole, cells)
    assert (without.log_e(cyclic=True) <= 0.0).all()
    without.merge(one, cells)  # its differences are those of one part
    np.testing.assert_array_equal(without._sum[1], one._sum[1])
    np.testing.assert_array_equal(without._sum[0], 2.0 * one._sum[0])


def test_new_and_reordered_classes_keep_the_differences():
    X, codes = rows(320, 3, 0)
    before = np.roll(codes, 5)
    one, other = Evidence(3, 2), Evidence(3, 3)
    one.update(X[:50], codes[:50] % 2, None, before[:50] % 2)
    one.grow(3)
    one.reorder(np.array([2, 0, 1]))
    other.update(X[:50], codes[:50] % 2 + 1, None, before[:50] % 2 + 1)
    for evidence in (one, other):
        evidence.update(X[50:], codes[50:], None, before[50:])
    np.testing.assert_allclose(one._sum, other._sum, atol=1e-12)
