"""LabelPast equals its definition, and unrelated series leave no evidence."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamis import MutualInformation, TScore
from tamis.summaries.label_past import LabelPast
from tests.twins import label_past as twin


def learned(X, y, n_classes, step):
    past = LabelPast(X.shape[1], n_classes)
    for start in range(0, len(y), step):
        past.update(X[start : start + step], y[start : start + step], y[max(0, start - 100) : start])
    return past


def rows(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.repeat(rng.integers(0, n_classes, n), 3)[:n]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("length", "k"), [(1.0, 1), (16.0, 1), (20.0, 2), (100.0, 8), (1e9, 64)])
def test_equals_its_definition(n_classes, length, k):
    X, y = rows(900, n_classes)
    found = learned(X, y, n_classes, 77).log_e(length)
    expected = [twin.log_e(X[:, j].tolist(), y.tolist(), n_classes, k) for j in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("step", [1, 50, 900])
def test_any_batching_is_the_same(step):
    X, y = rows(900, 2)
    one, other = learned(X, y, 2, 128), learned(X, y, 2, step)
    np.testing.assert_array_equal(one._counts, other._counts)
    sparse = learned(sp.csr_array(np.nan_to_num(X)), y, 2, step)
    np.testing.assert_array_equal(learned(np.nan_to_num(X), y, 2, 128)._counts, sparse._counts)


def test_parts_multiply():
    X, y = rows(900, 2)
    early, late = learned(X[:500], y[:500], 2, 50), learned(X[500:], y[500:], 2, 50)
    expected = early.log_e(1.0) + late.log_e(1.0)
    early.merge(late)
    np.testing.assert_allclose(early.log_e(1.0), expected)


def test_classes_and_columns_may_come_late():
    X, y = rows(600, 2)
    past = learned(X, y, 2, 60)
    before = past.log_e(1.0)
    past.grow(3)
    past.reorder(np.array([2, 0, 1]))
    past.widen(5)
    assert past.log_e(1.0)[3:].tolist() == [0.0, 0.0]
    past.reorder(np.array([1, 2, 0]))
    # a third class that never comes makes the bet a little worse
    assert (past.log_e(1.0)[:3] < before).all()


@pytest.mark.parametrize("kind", [TScore, MutualInformation])
@pytest.mark.parametrize("phi", [0.5, 0.9, 0.99])
def test_level_selects_no_unrelated_series(kind, phi):
    selected = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = np.empty((3000, 10)), twin.sign_of_series(rng, 3000, phi)
        X[0] = rng.normal(size=10)
        for t in range(1, 3000):
            X[t] = phi * X[t - 1] + np.sqrt(1 - phi**2) * rng.normal(size=10)
        screen = kind(None, level=0.05)
        for start in range(0, 3000, 500):
            screen.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1])
            selected += int(screen.get_support().sum()) if not screen.warming_up_ else 0
        assert screen.rows_dependent_
    assert selected == 0


def test_level_finds_what_adds_to_the_label_before():
    rng = np.random.default_rng(1)
    y = twin.sign_of_series(rng, 4000, 0.8)
    X = rng.normal(size=(4000, 12))
    X[:, 5] += 0.6 * y
    screen = TScore(None, level=0.05).fit(X, y)
    assert screen.get_support(indices=True).tolist() == [5]
    assert screen.evalues_[5] > 1e6
