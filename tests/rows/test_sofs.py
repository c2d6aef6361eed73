from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import StateError
from tamis.rows.sofs import SOFS
from tests.twins.sofs import SofsTwin


def rows(rng: np.random.Generator, n: int, n_features: int, kind: str) -> np.ndarray:
    if kind == "words":  # many ties, many zeros
        return (rng.random((n, n_features)) < 0.2).astype(float)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    return X.astype(np.float32) if kind == "float32" else X


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_equals_the_twin_bit_for_bit(data):
    """For any batches, dense or sparse rows, weights, numbers of classes, and sizes of the heap."""
    n_features, n_rows = data.draw(st.integers(1, 14)), data.draw(st.integers(1, 40))
    n_kept, n_classes = data.draw(st.integers(1, n_features)), data.draw(st.integers(1, 4))
    r = data.draw(st.sampled_from([1.0, 0.01, 30.0]))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    X = rows(rng, n_rows, n_features, data.draw(st.sampled_from(["float64", "float32", "words"])))
    y, weight = rng.integers(0, n_classes, n_rows), rng.integers(1, 4, n_rows) / 2
    learned = sp.csr_matrix(X) if data.draw(st.booleans()) else X
    selector, start = SOFS(n_kept, smoothing=r), 0
    for size in [*data.draw(st.lists(st.integers(1, 10), max_size=8)), n_rows]:
        if start < n_rows:
            part = slice(start, start + size)
            selector.partial_fit(learned[part], y[part], sample_weight=weight[part])
        start += size
    twin = SofsTwin(n_features, n_kept, r).learn(X, y, weight)
    np.testing.assert_array_equal(selector._information, twin.certainty)
    np.testing.assert_array_equal(selector._weights, twin.w)
    assert sorted(selector._heap[: selector._n_kept]) == sorted(twin.kept())
    selector.check_state()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spambase", "pcmac"])
def test_equals_the_twin_on_real_data(load_shared: Callable[[str], Any], name):
    X, y, _ = load_shared(name)
    order = np.random.default_rng(0).permutation(X.shape[0])[:60]
    X, y = X[order], y[order]
    n_kept = X.shape[1] // 10
    twin = SofsTwin(X.shape[1], n_kept).learn(X.toarray() if sp.issparse(X) else X, y)
    assert twin.mistakes > 10
    np.testing.assert_array_equal(SOFS(n_kept).fit(X, y).scores_, twin.certainty)


def test_the_weights_of_arow_without_a_budget(rng):
    """The classifier of all features is AROW: its first two steps by hand."""
    X, y = np.array([[2.0, 0.0, 1.0], [1.0, 3.0, 0.0]]), [1, 0]
    selector = SOFS(1.0, smoothing=2.0).fit(X, y)
    first = np.array([2.0, 0.0, 1.0]) / (5.0 + 2.0)
    sigma = 1 / (1 + X[0] ** 2 / 2.0)
    loss = 1 + first @ X[1]
    second = first - loss / (sigma @ X[1] ** 2 + 2.0) * sigma * X[1]
    np.testing.assert_allclose(selector._weights[0], second, rtol=1e-14)
    np.testing.assert_allclose(selector.scores_, (X**2).sum(axis=0) / 2.0, rtol=1e-14)


def test_predicts_with_the_selected_features_alone(rng):
    X, y = sp.random(500, 200, 0.05, "csr", rng=rng), rng.integers(0, 3, 500)
    selector = SOFS(7).fit(X, y)
    kept = selector.get_support()
    assert kept.sum() == 7
    assert (selector._weights.any(axis=0) <= kept).all()
    masked = X.toarray() * kept
    np.testing.assert_array_equal(selector.predict(masked), selector.predict(X))
    assert selector.decision_function(X).shape == (500, 3)


@pytest.mark.parametrize("scale", [1e-200, 1e80, 1e150, 1e308])
def test_extreme_values_leave_finite_weights(rng, scale):
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    X[::2] *= min(scale, 1e307)
    X[1::7, 2] = scale
    weight = rng.choice([1e-100, 1.0, 1e15], 60)
    selector = SOFS(2).fit(X, y, sample_weight=weight)
    assert np.isfinite(selector.scores_).all()
    assert np.isfinite(selector._weights).all()


def test_new_columns_and_forgotten_ones_start_afresh(rng):
    X, y = sp.csr_matrix(rows(rng, 120, 12, "words")), rng.integers(0, 3, 120)
    later = SOFS(3).partial_fit(X[:50, :7], y[:50]).widen(12)
    early = X[:50].toarray()
    early[:, 7:] = 0.0
    known = SOFS(3).partial_fit(sp.csr_matrix(early), y[:50])
    for selector in (later, known):
        selector.partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(later._weights, known._weights)
    np.testing.assert_array_equal(later.scores_, known.scores_)
    gone = np.flatnonzero(later.get_support())[:1]
    later.forget_columns(gone)
    assert later._n_kept == 3
    assert later.scores_[gone] == 0.0
    later.check_state()


@pytest.mark.parametrize("broken", ["heap", "place"])
def test_a_broken_heap_is_rejected(rng, broken):
    selector = SOFS(4).fit(rows(rng, 60, 9, "float64"), rng.integers(0, 2, 60))
    if broken == "heap":
        selector._heap[:4] = selector._heap[:4][::-1].copy()
        selector._place[selector._heap[:4]] = np.arange(4)
    else:
        selector._place[selector._heap[1]] = -1
    with pytest.raises(StateError, match=f"_{broken}"):
        selector.check_state()


def test_smoothing_out_of_range():
    with pytest.raises(ValueError, match=r"smoothing must be a number in \[1e-9, 1e9\], got 0"):
        SOFS(smoothing=0).fit(np.eye(4), [0, 1, 0, 1])


def test_golden():
    """The numbers were computed by the twin, once; they hold it and the kernel to what they were."""
    rng = np.random.default_rng(2017)
    X = (rng.random((400, 50)) < np.linspace(0.02, 0.3, 50)).astype(float)
    y = rng.integers(0, 3, 400)
    y[X[:, 47] + X[:, 31] > 0] = 1
    selector, twin = SOFS(5).fit(X, y), SofsTwin(50, 5).learn(X, y)
    assert selector.get_support(indices=True).tolist() == sorted(twin.kept()) == [39, 44, 45, 47, 48]
    for certainty, weights in ((selector.scores_, selector._weights), (twin.certainty, twin.w)):
        assert sum(certainty) == 3138.0
        assert float(np.abs(weights).sum()) == pytest.approx(0.5886732964899463, rel=1e-12)
