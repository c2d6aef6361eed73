from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import DataError
from tamis.rows.fsds import FSDS
from tests.twins.fsds import FsdsTwin


def rows(rng: np.random.Generator, n: int, n_features: int) -> np.ndarray:
    """Return rows of a few directions of unlike length, and noise."""
    directions = rng.normal(size=(3, n_features)) * [[9.0], [5.0], [2.0]]
    return rng.normal(size=(n, 3)) @ directions + 0.5 * rng.normal(size=(n, n_features))


@pytest.mark.parametrize("half_life", [None, 150.0])
@pytest.mark.parametrize(("n_features", "size", "k"), [(40, 8, 3), (40, 60, 2), (5, 12, 1), (400, None, 4)])
def test_equals_the_twin(rng, half_life, n_features, size, k):
    X, y = rows(rng, 330, n_features), rng.integers(0, 2, 330)
    weight = rng.integers(0, 3, 330).astype(float)
    for weights in (None, weight):
        selector = FSDS(3, n_components=k, sketch_size=size, half_life=half_life)
        twin = FsdsTwin(n_features, size or 20, k, half_life=half_life or np.inf)
        for stop in (70, 230, 330):  # before the first block, and between and after others
            part = slice(int(selector.n_seen_) if hasattr(selector, "n_seen_") else 0, stop)
            selector.partial_fit(X[part], y[part], sample_weight=None if weights is None else weights[part])
            twin.learn(X[part], None if weights is None else weights[part])
            np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-7, atol=1e-9)


def test_equals_float_evaluation():
    """Scores of its class FSDS (0.0.2) after three batches of 20 rows, more than the sketch has."""
    rng = np.random.default_rng(2015)
    X = rng.normal(size=(60, 9)) * np.arange(1, 10)
    selector = FSDS(2, block_size=20, sketch_size=3)
    for start in (0, 20, 40):
        selector.partial_fit(X[start : start + 20], np.arange(20) % 2)
    np.testing.assert_allclose(selector.scores_, PUBLISHED, rtol=1e-9)


PUBLISHED = [
    0.0006361436097623906,
    0.00023795237545631563,
    0.002921701335595094,
    0.0008021461268027636,
    0.00271699795876251,
    0.012050180016673847,
    0.004865723486924703,
    0.017964433214166114,
    0.027181620285229153,
]


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_batching_and_layout_gives_the_same_bits(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    n_features, n_rows = data.draw(st.integers(1, 9)), data.draw(st.integers(2, 60))
    X, y = rows(rng, n_rows, n_features), np.arange(n_rows) % 2
    block = data.draw(st.integers(1, 25))
    whole = FSDS(1, block_size=block).fit(X, y)
    parts, start = FSDS(1, block_size=block), 0
    for size in [*data.draw(st.lists(st.integers(1, 20), max_size=6)), n_rows]:
        part = slice(start, start + size)
        if start < n_rows:
            parts.partial_fit(sp.csr_matrix(X[part]) if data.draw(st.booleans()) else X[part], y[part])
        start += size
    np.testing.assert_array_equal(parts.scores_, whole.scores_)


def test_the_sketch_never_overstates_a_direction_and_loses_what_it_says(rng):
    """Frequent Directions: 0 <= |Xv|^2 - |Bv|^2 <= sum of delta <= |X|_F^2 / l, for every unit vector v."""
    X = rows(rng, 1000, 30)
    selector = FSDS(3, sketch_size=10).fit(X, np.arange(1000) % 2)
    twin = FsdsTwin(30, 10).learn(X)
    gap = np.linalg.eigvalsh(X.T @ X - selector._sketch.T @ selector._sketch)
    assert gap[0] >= -1e-9 * gap[-1]
    assert gap[-1] <= twin.lost * (1 + 1e-9)
    assert 10 * twin.lost <= np.square(X).sum()
    np.testing.assert_allclose(selector._sketch @ selector._sketch.T, np.diag(selector._squares), atol=1e-8)


def test_rows_stay_orthogonal_after_a_thousand_blocks(rng):
    selector = FSDS(3, sketch_size=6, block_size=10, half_life=500)
    selector.fit(rows(rng, 10_000, 20), np.arange(10_000) % 2)
    products = selector._sketch @ selector._sketch.T
    np.testing.assert_allclose(products, np.diag(selector._squares), atol=1e-9 * products.max())


def test_nothing_is_forgotten_while_there_is_room(rng):
    X = rng.normal(size=(40, 12))
    selector = FSDS(3, sketch_size=20, block_size=5).fit(X, np.arange(40) % 2)
    np.testing.assert_allclose(selector._sketch.T @ selector._sketch, X.T @ X, rtol=1e-9, atol=1e-9)


def test_a_half_life_follows_what_has_changed(rng):
    before, after = rng.normal(size=(2, 3000, 20))
    before[:, 3] *= 10
    after[:, 7] *= 10
    y = np.arange(3000) % 2
    steady, fading = (FSDS(1, half_life=h, n_components=1).fit(before, y) for h in (None, 200))
    for selector in (steady, fading):
        assert selector.get_support(indices=True).tolist() == [3]
        selector.partial_fit(after[:1500], y[:1500])
    assert steady.get_support(indices=True).tolist() == [3]
    assert fading.get_support(indices=True).tolist() == [7]


def test_labels_are_not_looked_at(rng):
    X = rows(rng, 150, 10)
    one = FSDS(3).fit(X, np.arange(150) % 2)
    other = FSDS(3).fit(X, np.arange(150) % 7 == 3)
    numbers = FSDS(3, task="regression").fit(X, rng.normal(size=150))
    for selector in (other, numbers):
        np.testing.assert_array_equal(selector.scores_, one.scores_)


def test_widened_columns_were_zero(rng):
    X, y = sp.csr_matrix(rows(rng, 250, 12)), np.arange(250) % 2
    early = X[:130].toarray()
    early[:, 7:] = 0.0
    later = FSDS(3, sketch_size=5).partial_fit(X[:130, :7], y[:130]).widen(12).partial_fit(X[130:], y[130:])
    known = FSDS(3, sketch_size=5).partial_fit(early, y[:130]).partial_fit(X[130:], y[130:])
    np.testing.assert_allclose(later.scores_, known.scores_, rtol=1e-9)
    grown = FSDS(3).partial_fit(X[:, :4], y).widen(12)
    assert grown._sketch.shape == (3, 12)
    assert FSDS(3).partial_fit(X[:, :4], y).widen(100)._sketch.shape == (10, 100)


def test_refusals(rng):
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 2
    with pytest.raises(ValueError, match="sketch_size must be above n_components, got 2 and 2"):
        FSDS(sketch_size=2).fit(X, y)
    selector = FSDS(1).fit(X, y)
    scores = selector.scores_
    with pytest.raises(
        DataError, match=r"X contains values up to 2e\+200, above 1e\+140: rescale the features"
    ):
        selector.partial_fit(np.full((3, 4), -2e200), [0, 1, 0])
    np.testing.assert_array_equal(selector.scores_, scores)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, r"n_components must be an integer in \[1, 100\], got 0"),
        ({"sketch_size": 1}, r"sketch_size must be an integer in \[2, 2000\] or None, got 1"),
        ({"block_size": 0}, "block_size must be an integer"),
        ({"half_life": 0}, "half_life must be a number"),
        ({"task": "clustering"}, "task must be one of 'classification', 'regression', got 'clustering'"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        FSDS(**parameters).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("name", ["spambase", "coil20"])
def test_equals_the_twin_on_real_data(load_shared: Callable[[str], Any], name):
    X = load_shared(name)[0][:250]
    size = int(np.sqrt(X.shape[1]))
    selector, twin = FSDS(0.1).fit(X, np.arange(250) % 2), FsdsTwin(X.shape[1], size).learn(X)
    np.testing.assert_allclose(selector.scores_, twin.scores, rtol=1e-6, atol=1e-9 * twin.scores.max())


def test_labels_may_be_left_out_and_come_later(rng, tmp_path):
    X, y = rng.normal(size=(300, 8)), rng.integers(0, 2, 300)
    without = FSDS(3).partial_fit(X[:150], sample_weight=np.arange(1.0, 151.0))
    assert not without.warming_up_
    tamis.save(without, tmp_path / "selector.tamis")
    resumed = tamis.load(tmp_path / "selector.tamis")
    assert not resumed.warming_up_
    for one in (without, resumed):
        one.partial_fit(X[150:], y[150:])
    np.testing.assert_array_equal(resumed.scores_, without.scores_)
    assert without.classes_.tolist() == []  # labels are ignored
    with pytest.raises(DataError):
        without.partial_fit(np.full((2, 8), np.nan))
    assert without.n_seen_ == 300
    assert not FSDS(3).fit(X, rng.normal(size=(300, 2))).warming_up_
    with pytest.raises(ValueError, match="y"):
        tamis.OFS().partial_fit(X)
