"""LeverageScores: the twin, an exact decomposition, any batching, copies, columns that come and go, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import DataError
from tamis.rows.leverage import LeverageScores, pivots
from tests.rows.test_fsds import rows
from tests.twins.leverage import LeverageTwin


@pytest.mark.parametrize("half_life", [None, 150.0])
@pytest.mark.parametrize(
    ("n_features", "size", "k", "m"), [(40, 8, 3, 20), (40, 60, 10, 9), (5, 12, 2, 3), (400, None, 4, 50)]
)
def test_equals_the_twin(rng, half_life, n_features, size, k, m):
    X = rows(rng, 330, n_features) + rng.normal(size=n_features)
    X[150:] += 3
    weight = rng.integers(0, 3, 330).astype(float)
    for weights in (None, weight):
        selector = LeverageScores(m, n_components=k, sketch_size=size, half_life=half_life)
        twin = LeverageTwin(n_features, size or 20, k, half_life=half_life or np.inf)
        for start, stop in (
            (0, 70),
            (70, 230),
            (230, 330),
        ):  # before the first block, and between and after others
            w = None if weights is None else weights[start:stop]
            selector.partial_fit(X[start:stop], sample_weight=w)
            twin.learn(X[start:stop], w)
            np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-6, atol=1e-9)
            assert set(selector.get_support(indices=True)) == set(twin.selected(m))


def test_golden_leverage_scores_of_all_rows_at_once(rng):
    """While the sketch has room, the scores are those of the singular vectors of the centred matrix, whatever moved."""
    X = rng.normal(size=(250, 12)) * np.arange(1, 13) + np.linspace(0, 40, 250)[:, None]
    selector = LeverageScores(4, n_components=3, sketch_size=20, block_size=30).fit(X)
    centred = X - X.mean(axis=0)
    V = np.linalg.svd(centred, full_matrices=False)[2]
    np.testing.assert_allclose(selector.scores_, (V[:3] ** 2).sum(axis=0), rtol=1e-9)
    assert selector.scores_.sum() == pytest.approx(3)
    order = scipy.linalg.qr(centred, mode="r", pivoting=True)[1]
    assert set(selector.get_support(indices=True)) == set(order[:4])


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_batching_and_layout_gives_the_same_bits(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    n_features, n_rows = data.draw(st.integers(1, 9)), data.draw(st.integers(2, 60))
    X = rows(rng, n_rows, n_features)
    block = data.draw(st.integers(1, 25))
    whole = LeverageScores(1, block_size=block).fit(X)
    parts, start = LeverageScores(1, block_size=block), 0
    for size in [*data.draw(st.lists(st.integers(1, 20), max_size=6)), n_rows]:
        part = slice(start, start + size)
        if start < n_rows:
            parts.partial_fit(sp.csr_matrix(X[part]) if data.draw(st.booleans()) else X[part])
        start += size
    np.testing.assert_array_equal(parts.scores_, whole.scores_)
    np.testing.assert_array_equal(parts.get_support(), whole.get_support())


def test_one_of_each_group_of_copies_is_selected_where_leverage_scores_alone_take_copies(rng):
    X = np.repeat(rng.normal(size=(1000, 4)) * [9, 5, 3, 2], 10, axis=1) + 0.2 * rng.normal(size=(1000, 40))
    chosen = LeverageScores(4).fit(X).get_support(indices=True)
    assert (chosen // 10).tolist() == [0, 1, 2, 3]
    alone = LeverageScores(4, n_components=4, redundancy=None).fit(X).get_support(indices=True)
    assert len(set(alone // 10)) < 4


def test_more_features_than_directions_are_selected_in_rounds(rng):
    B = rng.normal(size=(3, 10))
    B[:, 4] = 0.0
    assert sorted(pivots(B, 10)) == list(range(10))
    assert pivots(B, 10)[-1] == 4
    first = scipy.linalg.qr(B, mode="r", pivoting=True)[1][:3]
    np.testing.assert_array_equal(pivots(B, 7)[:3], first)
    np.testing.assert_array_equal(pivots(np.zeros((3, 4)), 2), [0, 1])


def test_a_half_life_follows_what_has_changed(rng):
    before, after = rng.normal(size=(2, 3000, 30))
    before[:, 3] *= 10
    after[:, 7] *= 9
    steady, fading = (LeverageScores(1, half_life=h).fit(before) for h in (None, 200))
    for selector in (steady, fading):
        assert selector.get_support(indices=True).tolist() == [3]
        selector.partial_fit(after[:1500])
    assert steady.get_support(indices=True).tolist() == [3]
    assert fading.get_support(indices=True).tolist() == [7]


def test_a_shift_of_all_rows_changes_nothing_but_rounding(rng):
    X = rows(rng, 450, 20)
    one, other = (LeverageScores(5).fit(values) for values in (X, X + 1000.0))
    np.testing.assert_allclose(one.scores_, other.scores_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(one.get_support(), other.get_support())


def test_columns_come_and_are_forgotten(rng):
    X = rows(rng, 250, 20)
    late = np.where(np.arange(20) < 15, X, 0.0)
    whole = LeverageScores(5, sketch_size=25).fit(late).partial_fit(X)
    grown = (
        LeverageScores(5, sketch_size=25)
        .fit(sp.csr_matrix(late[:, :15]))
        .widen(20)
        .partial_fit(sp.csr_matrix(X))
    )
    np.testing.assert_allclose(grown.scores_, whole.scores_, rtol=1e-9)
    without = LeverageScores(5, sketch_size=25).fit(np.where(np.arange(20) == 4, 0.0, X))
    forgotten = LeverageScores(5, sketch_size=25).fit(X).forget_columns([4])
    np.testing.assert_allclose(forgotten.scores_, without.scores_, rtol=1e-7, atol=1e-9)


def test_what_does_not_fit_is_refused(rng):
    X = rng.normal(size=(30, 4))
    with pytest.raises(ValueError, match="sketch_size must be above n_components, got 5 and 5"):
        LeverageScores(2, sketch_size=5, n_components=5).fit(X)
    with pytest.raises(ValueError, match="redundancy must be one of 'pivot', None, got 'qr'"):
        LeverageScores(2, redundancy="qr").fit(X)
    selector = LeverageScores(2, sketch_size=5, n_components=2).fit(X)
    with pytest.raises(DataError, match="n_components must be below 5"):
        selector.set_params(n_components=7).scores_  # noqa: B018
    with pytest.raises(DataError, match="above 1e\\+140"):
        selector.set_params(n_components=2).partial_fit(X * 1e141)
