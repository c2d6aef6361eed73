"""Contexts: columns that determine which others are relevant are found, requested first and saved."""

import numpy as np
import pytest

from tamis import AdaptiveIFC2F, FixedSubset, load, save
from tamis.cells.bins import Bins
from tamis.cells.contexts import _information, find_contexts
from tamis.dependence.information import mutual_information
from tamis.errors import StateError


def wards(n, seed, n_wards=4, width=5, n_classes=3):
    """Return rows whose ward determines which block of columns differs between the classes."""
    rng = np.random.default_rng(seed)
    ward, y = rng.integers(0, n_wards, n), rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, n_wards, width))
    X[np.arange(n), ward] += 1.5 * np.random.default_rng(9).normal(size=(n_wards, n_classes, width))[ward, y]
    return np.c_[ward.astype(float), X.reshape(n, -1)], y, ward


def contexts_of(X, y, sizes=None):
    sizes = np.zeros(X.shape[1], dtype=np.int64) if sizes is None else sizes
    codes = Bins.quantile(X, 4).with_categories(sizes).codes(X)
    return find_contexts(X, codes, y, int(y.max()) + 1, sizes)


@pytest.mark.parametrize("is_category", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_each_ward_is_a_context(seed, is_category):
    X, y, ward = wards(900, seed)
    found = contexts_of(X, y, np.r_[4 * is_category, np.zeros(X.shape[1] - 1, dtype=np.int64)])
    assert set(found.column) == {0}
    context, pending = found.route(X)
    assert (pending == -1).all()
    assert found.n_contexts == 4
    assert len(set(zip(context.tolist(), ward.tolist(), strict=True))) == 4
    X[:5, 0] = np.nan
    context, pending = found.route(X[:9])
    assert context[:5].tolist() == [-1] * 5
    assert pending.tolist() == [0] * 5 + [-1] * 4


@pytest.mark.parametrize("seed", range(10))
def test_independent_or_additive_columns_have_no_contexts(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 30))
    assert contexts_of(X, y) is None
    X[:, :6] += 0.7 * rng.normal(size=(3, 6))[y]
    assert contexts_of(X, y) is None


def test_the_score_is_the_information(rng):
    table = rng.integers(0, 9, (2, 4))
    m = np.arange(table.sum() + 1.0)
    expected = table.sum() * mutual_information(table[None])[0]
    assert _information(table, m * np.log(np.maximum(m, 1))) == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = wards(900, 0)
    return AdaptiveIFC2F(1.0, budget=3.0, spend="all", random_state=0).fit(X, y)


def test_the_ward_is_requested_first_and_then_its_own_block(fitted):
    X, y, ward = wards(1500, 5)
    assert fitted.belief_ == "contexts"
    assert (
        fitted.score(X, y)
        > FixedSubset(1.0, budget=3.0, spend="all").fit(*wards(900, 0)[:2]).score(X, y) + 0.15
    )
    for row, own in zip(fitted.acquire(X[:40]), ward, strict=False):
        assert row.features[0] == 0
        assert all((column - 1) // 5 == own for column in row.features[1:])


def test_a_session_asks_and_decides_as_a_batch(fitted):
    X, _, _ = wards(12, 6)
    X[3, 0] = np.nan
    for x, row in zip(X, fitted.acquire(X), strict=True):
        session = fitted.open()
        while (column := session.next_feature) is not None:
            session.observe(None if np.isnan(x[column]) else x[column], column)
        assert session.decision == row.label
        np.testing.assert_array_equal(list(session.posterior.values()), row.posteriors[-1])


def test_a_row_without_its_ward_is_decided_by_the_model_of_all_rows(fitted):
    X, y, _ = wards(600, 7)
    X[:, 0] = np.nan
    used = fitted.acquire(X[:5])
    assert all(0 not in row.features and len(row.features) == 3 for row in used)
    assert fitted.score(X, y) > 0.4


def test_saved_and_loaded(fitted, tmp_path):
    X, _, _ = wards(50, 8)
    save(fitted, tmp_path / "model.tamis")
    again = load(tmp_path / "model.tamis")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    again._evidence_model.trees.pop()
    with pytest.raises(StateError, match="contexts of a model do not match"):
        again._evidence_model.check_state()


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e6])
def test_a_budget_is_in_units_of_the_prices(scale):
    """A tolerance of 1e-9 once let four values of 1e-9 into a budget of three."""
    X, y, _ = wards(300, 0)
    for model in (
        FixedSubset(scale, budget=3 * scale, spend="all"),
        AdaptiveIFC2F(scale, budget=3 * scale, spend="all", random_state=0),
    ):
        model.fit(X, y).predict(X)
        assert model.n_features_used_.max() == 3
