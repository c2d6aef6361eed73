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
    if n_classes == 2 and k == 1:
        expected = [twin.log_e_of_orders(X[:, j].tolist(), y.tolist())[0] for j in range(3)]
    else:
        expected = [twin.log_e(X[:, j].tolist(), y.tolist(), n_classes, k) for j in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("step", [1, 50, 900])
def test_any_batching_is_the_same(step):
    X, y = rows(900, 2)
    one, other = learned(X, y, 2, 128), learned(X, y, 2, step)
    np.testing.assert_array_equal(one._counts, other._counts)
    sparse = learned(sp.csr_array(np.nan_to_num(X)), y, 2, step)
    np.testing.assert_array_equal(learned(np.nan_to_num(X), y, 2, 128)._counts, sparse._counts)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_the_order_is_that_of_the_labels(lag):
    """Labels that repeat the one `lag` rows before, and a series of the same cycle that is unrelated to them."""
    rng, n = np.random.default_rng(lag), 2500
    y, x = rng.integers(0, 2, n), rng.normal(size=(n, 8))
    for t in range(lag, n):
        y[t] = y[t - lag] if rng.random() < 0.9 else y[t]
        x[t] = 0.95 * x[t - lag] + 0.3 * x[t]
    past = learned(x, y, 2, 500)
    assert twin.log_e_of_orders(x[:, 0].tolist(), y.tolist())[1] == lag
    assert past.log_e(1.0).max() < np.log(8 / 0.05)
    flipped = learned(x, 1 - y, 2, 500)
    flipped.reorder(np.array([1, 0]))
    np.testing.assert_allclose(flipped.log_e(1.0), past.log_e(1.0), rtol=1e-9)
    if lag > 1:  # a chain of order 1 would take the cycle for evidence
        assert max(twin.log_e(x[:, j].tolist(), y.tolist(), 2, 1) for j in range(8)) > np.log(8 / 0.05)


def test_parts_multiply():
    X, y = rows(900, 2)
    early, late = learned(X[:500], y[:500], 2, 50), learned(X[500:], y[500:], 2, 50)
    expected = early.log_e(1.0) + late.log_e(1.0)
    early.merge(late)
    np.testing.assert_allclose(early.log_e(1.0), expected)


def test_classes_and_columns_may_come_late():
    X, y = rows(600, 2)
    past = learned(X, y, 2, 60)
    before = past.log_e(20.0)  # every second row, for which no order is chosen
    past.grow(3)
    past.reorder(np.array([2, 0, 1]))
    past.widen(5)
    assert past.log_e(1.0)[3:].tolist() == [0.0, 0.0]
    past.reorder(np.array([1, 2, 0]))
    # a third class that never comes makes the bet a little worse
    assert (past.log_e(20.0)[:3] < before).all()


@pytest.mark.slow
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
