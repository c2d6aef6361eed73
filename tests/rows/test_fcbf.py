from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.errors import DataError
from tamis.rows.fcbf import FCBF
from tests.twins.fcbf import fcbf


def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three signals, noisy copies of two of them, and noise."""
    X = rng.normal(size=(n, 14))
    X[:, 3:6] = X[:, [0]] + rng.normal(size=(n, 3)) * [0.2, 0.5, 1.0]
    X[:, 6:8] = X[:, [1]] + rng.normal(size=(n, 2)) * [0.3, 0.6]
    score = X[:, 0] + 0.8 * X[:, 1] + 0.5 * X[:, 2]
    return X, (score > 0).astype(int) + (score > 1.5)


def same_as_twin(selector: FCBF, bins: Any, codes: Any, **parameters: Any) -> int:
    kept, su = fcbf(bins.tolist(), codes.tolist(), **parameters)
    assert selector.selected_.tolist() == kept
    np.testing.assert_array_equal(np.flatnonzero(selector.get_support()), sorted(kept))
    np.testing.assert_allclose(selector.scores_, su, atol=1e-12)
    return len(kept)


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("threshold", ["chance", 0.0, 0.05])
@pytest.mark.parametrize("n_rows", [30, 200, 700])  # 300 count
def test_equals_the_twin_in_its_bins(rng, corrected, threshold, n_rows):
    X, y = rows(rng, n_rows)
    X[::9, 2] = np.nan
    selector = FCBF(window=300, threshold=threshold, bias_correction=corrected).fit(X, y)
    bins, codes = selector._counts.binned()
    assert len(bins) == min(n_rows, 300)
    same_as_twin(selector, bins, codes, threshold=threshold, corrected=corrected)


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_equals_the_twin_on_categories_of_the_last_rows(rng, corrected, n_classes):
    y = rng.integers(0, n_classes, 500)
    y[:200] = rng.integers(0, 2, 200)  # a third class comes late
    X = rng.integers(0, 4, size=(500, 12))
    for j in range(6):
        told = rng.random(500) < 0.6 - 0.08 * j
        X[told, j] = y[told] % 4
    X[:, 7], X[:, 8] = X[:, 0], X[:, 1] * 2
    selector, n_kept = FCBF(window=250, categorical="all", bias_correction=corrected), []
    for stop in (60, 230, 500):
        start = getattr(selector, "n_seen_", 0)
        selector.partial_fit(X[start:stop], y[start:stop])
        seen = slice(max(stop - 250, 0), stop)
        # equal codes: classes are numbered by appearance, which entropies do not see
        n_kept.append(same_as_twin(selector, X[seen], y[seen], corrected=corrected))
    assert max(n_kept) > 2


@pytest.mark.parametrize("name", ["spambase", "splice", "coil20"])
def test_equals_the_twin_on_real_data(load_shared: Callable[[str], Any], name):
    X, y, _ = load_shared(name)
    order = np.random.default_rng(0).permutation(X.shape[0])[:150]
    X, y = (X.toarray() if sp.issparse(X) else X)[order, :40], y[order]
    for parameters in ({"threshold": 0.0, "corrected": False}, {}):
        selector = FCBF.paper(window=100) if parameters else FCBF(window=100)
        selector.fit(X, y)
        bins, codes = selector._counts.binned()
        same_as_twin(selector, bins, codes, **parameters)


def test_any_batching_and_layout_gives_the_same_bits(rng):
    X, y = rows(rng, 600)
    whole = FCBF(window=200).fit(X, y)
    for size in (1, 7, 250):
        parts = FCBF(window=200)
        for start in range(0, 600, size):
            part = X[start : start + size]
            parts.partial_fit(sp.csr_matrix(part) if start % 2 else part, y[start : start + size])
        np.testing.assert_array_equal(parts.scores_, whole.scores_)
        np.testing.assert_array_equal(parts.selected_, whole.selected_)


@pytest.mark.slow
def test_keeps_one_of_many_copies_and_no_noise(rng):
    X, y = rows(rng, 1000)
    assert sorted(FCBF().fit(X, y).selected_) == [0, 1, 2]
    n_kept = []
    for _ in range(20):
        noise = FCBF().fit(rng.normal(size=(1000, 50)), rng.integers(0, 2, 1000))
        n_kept.append(int((noise.scores_ > noise._thresholds()).sum()))
        assert noise.get_support().sum() == 1  # the first, as a selection of nothing cannot be learned from
    assert sum(n_kept) <= 4  # one in twenty is expected


def test_follows_the_window(rng):
    X = rng.normal(size=(3000, 10))
    y = np.r_[X[:1500, 2] > 0, X[1500:, 7] > 0]
    selector = FCBF(window=400).partial_fit(X[:1500], y[:1500])
    assert selector.selected_.tolist() == [2]
    selector.partial_fit(X[1500:1900], y[1500:1900])
    assert selector.selected_.tolist() == [7]


def test_most_features(rng):
    X, y = rows(rng, 800)
    every = FCBF(threshold=0.0).fit(X, y).selected_
    assert len(every) >= 3
    for most in (1, 2, 2 / 14):
        n = most if isinstance(most, int) else 2
        np.testing.assert_array_equal(FCBF(most, threshold=0.0).fit(X, y).selected_, every[:n])
    with pytest.raises(ValueError, match="n_features_to_select"):
        FCBF(15).fit(X, y)


def test_a_weight_is_a_number_of_rows(rng):
    X, y = rows(rng, 300)
    weight = rng.integers(0, 3, 300)
    selector = FCBF(window=200).fit(X, y, sample_weight=weight)
    rows_of = np.repeat(np.arange(300), weight)
    np.testing.assert_array_equal(selector.scores_, FCBF(window=200).fit(X[rows_of], y[rows_of]).scores_)
    with pytest.raises(
        DataError,
        match=r"sample_weight\[\d+\] is 0\.5: this method counts rows, so weights must be whole numbers",
    ):
        selector.partial_fit(X[:2], y[:2], sample_weight=[1.0, 0.5])


def test_raw_gains_drop_a_weak_signal_that_corrected_ones_keep():
    """Feature 2 tells nothing of feature 0, but the bias of their 100 cells is more than it tells of the class."""
    rng = np.random.default_rng(2003)
    X, y = rows(rng, 500)
    raw = FCBF.paper(window=500, n_bins=10).fit(X, y)
    assert raw.selected_.tolist() == [0, 1]
    assert float(raw.scores_.sum()).hex() == "0x1.e3661730adca5p-1"
    assert sorted(FCBF(window=500, n_bins=10).fit(X, y).selected_) == [0, 1, 2]
