"""Evidence from the spread of columns: against its definition, what it must not mind, and what it is for."""

import numpy as np
import pytest

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.cells.ensemble import Spread
from tests.twins.spread import evidence


def rows(rng, n=300, K=4, n_classes=3):
    """Columns of which two differ in spread."""
    y = rng.integers(0, n_classes, n)
    X = rng.integers(-3, 4, size=(n, K)).astype(float)
    X[:, :2] *= (1.0 + y)[:, None]
    return X, y


def test_is_the_definition(rng):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = Spread(4).fit(X, y)  # a class has no rows
    cut = np.clip(X, model._low, model._high)
    some = X[:20]
    found = model.evidence(some)[-1]
    np.testing.assert_allclose(found, [evidence(row, cut, y, 4) for row in cut[:20]], rtol=1e-6, atol=1e-9)
    assert np.ptp(found, axis=1).max() > 1.0


def test_step_by_step_in_any_order(rng):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = Spread(3).fit(X, y)
    order = np.array([rng.permutation(4) for _ in X])
    order[:5, 2] = -1
    steps = model.evidence(X, order)
    for k in range(5):
        known = np.full(X.shape, np.nan)
        for i, columns in enumerate(order[:, :k]):
            known[i, columns[columns >= 0]] = X[i, columns[columns >= 0]]
        np.testing.assert_allclose(steps[k], model.evidence(known)[-1], atol=1e-12)


def test_columns_of_one_spread_say_nothing(rng):
    """Most columns of noise are drawn to one spread altogether, few rows or many."""
    for n in (20, 200, 2000):
        y = rng.integers(0, 3, n)
        X = np.column_stack([rng.normal(size=(n, 100)), rng.standard_t(3, size=(n, 100))]) + y[:, None]
        level = Spread(3).fit(X, y)._level
        assert np.mean(level == 0.0) > 0.75  # .86 by chi-squared, and heavy tails
        assert np.abs(level).mean() < 0.05


def test_more_rows_are_as_all_at_once(rng):
    X, y = rows(rng)
    whole, parts = Spread(3).fit(X, y), Spread(3).fit(X, y)
    parts._powers = np.zeros_like(parts._powers)  # cut as all rows are, the sums of none
    for part in (slice(0, 130), slice(130, 131), slice(131, 300)):
        parts.partial_fit(X[part], y[part], 1.0)
    np.testing.assert_allclose(parts.evidence(X), whole.evidence(X), rtol=1e-9, atol=1e-9)
    faded = Spread(3).fit(X, y).partial_fit(X, y, 0.5)
    np.testing.assert_allclose(faded._powers[0].sum(axis=0), (1 - 0.5**300) / 0.5 + 300 * 0.5**300)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_numbers_of_any_size(rng, scale):
    X, y = rows(rng)
    plain = Spread(3).fit(X, y).evidence(X)
    np.testing.assert_allclose(Spread(3).fit(X * scale, y).evidence(X * scale), plain, rtol=1e-6, atol=1e-9)


def test_constant_and_absent_columns_a_lonely_row_and_a_class_of_one_value(rng):
    X, y = rows(rng)
    y[0], X[y == 1, 0] = 3, 2.0
    wide = np.column_stack([X, np.ones(len(X)), np.full(len(X), np.nan), rng.integers(0, 2, len(X))])
    found = Spread(5).fit(wide, y).evidence(wide)
    assert np.isfinite(found).all()
    assert not found[-1][:, 4].any()


@pytest.mark.parametrize(
    "make", [IFC2F, ETANA, FETANA, AdaptiveIFC2F, FixedSubset], ids=lambda make: make.__name__
)
def test_classes_that_differ_in_spread_only_are_told_apart(rng, make):
    """Accuracy .80 before, as one covariance for all classes and four bins say little of it."""
    y = rng.integers(0, 2, 1400)
    X = rng.normal(size=(1400, 8))
    X[:, :4] *= np.where(y, 2.5, 1.0)[:, None]
    assert make(cost=0.002).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.85
