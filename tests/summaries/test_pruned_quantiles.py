"""The published summary: the twin, the certificate, few values, fading, any batching, what it refuses, and a screen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import Screening
from tamis.summaries.pruned_quantiles import PrunedQuantiles
from tests.twins.pruned_quantiles import PrunedTwin
from tests.twins.quantiles import QuantileTwin


def rows(rng, n):
    """Numbers in no order, in falling order, few values, and one that is often missing."""
    X = np.column_stack([rng.normal(size=n), -np.arange(n), rng.integers(0, 4, n), rng.normal(size=n)])
    X[rng.random(n) < 0.2, 3] = np.nan
    return X, rng.integers(0, 3, n)


@pytest.mark.parametrize(("eps", "n"), [(0.2, 900), (0.05, 1500)])
@pytest.mark.parametrize("keep", [1.0, 0.995])
def test_equals_the_twin(rng, eps, n, keep):
    X, y = rows(rng, n)
    weight = rng.integers(0, 3, n).astype(float)
    summary, twins = PrunedQuantiles(4, 3, eps, "float64"), [PrunedTwin(3, eps) for _ in range(4)]
    for i in range(n):
        summary.update(X[i : i + 1], y[i : i + 1], weight[i : i + 1], keep)
        for j, twin in enumerate(twins):
            twin.add(X[i, j], y[i], weight[i], keep)
        if i % 211 == 0 or i == n - 1:
            np.testing.assert_allclose(
                summary.counts(5), [twin.counts(5) for twin in twins], rtol=1e-9, atol=1e-9
            )
    assert len(summary._finished) >= 3


@pytest.mark.parametrize("eps", [0.1, 0.02])
def test_a_cumulative_weight_is_off_by_no_more_than_the_certificate(rng, eps):
    X, y = rows(rng, 8000)
    summary, exact = PrunedQuantiles(4, 3, eps, "float64"), QuantileTwin(4, 3)
    summary.update(X, y)
    exact.update(X, y)
    certified = summary.rank_error()
    assert certified[2] == 0.0
    assert (certified <= 2 * eps).all()
    points = [(part.values, part.weights) for part in summary._parts]
    for j in range(4):
        staged = (
            np.concatenate([r[:, j] for r, _, _ in summary._staged]) if summary._n_staged else np.zeros(0)
        )
        values = np.concatenate([v[j] for v, _ in points] + [staged])
        weights = np.concatenate([w[j].sum(axis=1) for _, w in points] + [(~np.isnan(staged)).astype(float)])
        known = X[~np.isnan(X[:, j]), j]
        for cut in np.quantile(known, np.linspace(0, 1, 50)):
            error = abs(weights[values <= cut].sum() - (known <= cut).sum()) / len(known)
            assert error <= certified[j] + 1e-12


def test_few_values_are_counted_exactly_and_all_bins_sum_to_all_rows(rng):
    X, y = rng.integers(0, 8, size=(5000, 3)).astype(float), rng.integers(0, 2, 5000)
    summary, exact = PrunedQuantiles(3, 2, 0.1), QuantileTwin(3, 2)
    for start in range(0, 5000, 130):
        summary.update(X[start : start + 130], y[start : start + 130])
    exact.update(X, y)
    np.testing.assert_array_equal(summary.counts(5), exact.counts(5))
    assert summary.counts(4).sum() == 15_000


def test_any_batching_gives_the_same_bits_and_csr_rows_are_dense_rows(rng):
    X, y = rows(rng, 1200)
    whole, parts = PrunedQuantiles(4, 3, 0.1), PrunedQuantiles(4, 3, 0.1)
    whole.update(X, y)
    start = 0
    for size in [1, 5, 300, 17, 400, 477]:
        part = slice(start, start + size)
        parts.update(sp.csr_matrix(X[part]), y[part])
        start += size
    np.testing.assert_array_equal(parts.counts(5), whole.counts(5))
    np.testing.assert_array_equal(parts.rank_error(), whole.rank_error())


def test_weights_stay_finite_under_strong_fading(rng):
    X, y = rows(rng, 3000)
    summary = PrunedQuantiles(4, 3, 0.1)
    for start in range(0, 3000, 10):
        summary.update(X[start : start + 10], y[start : start + 10], keep=np.array([1e-3, 1.0, 0.5]))
    counts = summary.counts(5)
    assert np.isfinite(counts).all()
    assert 0 < counts[0, :, 0].sum() < 20 < counts[0, :, 1].sum()


def test_what_it_cannot_do_is_refused(rng):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    screening = Screening(1, scores=["mi"], summary="pruned").fit(sp.csr_matrix(X), y)
    with pytest.raises(
        ValueError, match="summary='pruned' cannot grow from 3 columns to 5: choose 'thinned'"
    ):
        screening.widen(5)
    with pytest.raises(ValueError, match="cannot forget single columns: choose 'thinned'"):
        screening.forget_columns([1])
    with pytest.raises(ValueError, match="cannot be merged: choose 'thinned'"):
        screening.merge(Screening(1, scores=["mi"], summary="pruned").fit(sp.csr_matrix(X), y))
    assert not PrunedQuantiles(3, 2).update(np.full((1, 3), np.inf), np.array([0]))


def test_a_screen_with_the_published_summary_has_the_scores_of_the_default(rng):
    X, y = rng.normal(size=(6000, 20)), rng.integers(0, 3, 6000)
    X[:, 4] += 0.4 * y
    X[:, 9] *= 1 + y
    ours, theirs = Screening(2, scores=["mi"], eps=0.001), Screening.paper(2, scores=["mi"])
    for start in range(0, 6000, 250):
        for screening in (ours, theirs):
            screening.partial_fit(X[start : start + 250], y[start : start + 250])
    np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=2e-4)
    assert theirs.get_support(indices=True).tolist() == [4, 9]
    again = tamis.loads(tamis.dumps(theirs)).partial_fit(X[:500], y[:500])
    np.testing.assert_array_equal(again.scores_, theirs.partial_fit(X[:500], y[:500]).scores_)
