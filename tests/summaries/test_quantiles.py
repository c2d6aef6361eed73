"""Quantile summaries against sorted data: certificates, exactness, batching, merging, fading, NaN and sparse rows."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.summaries import quantiles
from tamis.summaries.quantile_kernels import Runs, halve, read_even
from tamis.summaries.quantiles import QuantileSummary
from tests.twins.quantiles import QuantileTwin, orders

pytestmark = pytest.mark.slow  # many lengths and orders


def feed(summary, X, codes, size=173, **options):
    for start in range(0, X.shape[0], size):
        part = slice(start, start + size)
        assert summary.update(X[part], codes[part], **options)
    return summary


def within_the_certificate(summary, twin, eps):
    overall, by_class = twin.rank_error(summary)
    assert (overall <= summary.rank_error() + 1e-9).all()
    assert (by_class <= summary.rank_error(by_class=True) + 1e-9).all()
    assert (summary.rank_error() <= eps).all()
    assert (summary.rank_error(by_class=True) <= eps).all()
    np.testing.assert_allclose(summary.count(), twin.count(), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.05, 0.01, 0.002])
@pytest.mark.parametrize("n", [777, 20_000, 60_000])
def test_the_certificate_holds_in_the_nine_orders(eps, n, rng):
    X = np.column_stack(list(orders(n, rng).values()))
    codes = rng.integers(0, 2, n)
    summary, twin = QuantileSummary(9, 2, eps, np.float64), QuantileTwin(9, 2)
    feed(summary, X, codes)
    twin.update(X, codes)
    within_the_certificate(summary, twin, eps)
    assert np.array_equal(summary.count(), twin.count())  # whole numbers: to the last bit


@given(
    pieces=st.lists(
        st.tuples(
            st.sampled_from(["up", "down", "same", "outside", "inside", "coarse"]), st.integers(1, 2000)
        ),
        min_size=1,
        max_size=12,
    ),
    eps=st.sampled_from([0.3, 0.1, 0.03]),
    seed=st.integers(0, 9),
)
@settings(max_examples=60)
def test_the_certificate_holds_in_any_order(pieces, eps, seed):
    rng = np.random.default_rng(seed)
    make = {
        "up": lambda n: np.arange(n, dtype=float),
        "down": lambda n: -np.arange(n, dtype=float),
        "same": lambda n: np.full(n, 3.5),
        "outside": lambda n: np.where(np.arange(n) % 2, 1.0, -1.0) * np.arange(n) * 10,
        "inside": lambda n: np.where(np.arange(n) % 2, 1.0, -1.0) / (1.0 + np.arange(n)),
        "coarse": lambda n: np.floor(rng.exponential(40, n)),
    }
    x = np.concatenate([make[kind](n) for kind, n in pieces])[:, None]
    codes = rng.integers(0, 2, len(x))
    summary, twin = QuantileSummary(1, 2, eps, np.float64), QuantileTwin(1, 2)
    feed(summary, x, codes, size=501)
    twin.update(x, codes)
    within_the_certificate(summary, twin, eps)


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.4, 0.1, 0.01])
@pytest.mark.parametrize("unlike", [False, True])
def test_the_bound_stays_below_eps_at_every_length(eps, unlike, rng):
    summary = QuantileSummary(1, 1, eps)
    for _ in range(400):
        x = rng.random((997, 1))
        summary.update(x, np.zeros(len(x), np.int64), rng.random(len(x)) if unlike else None)
        assert summary.rank_error()[0] <= eps


def test_few_distinct_values_are_exact_and_more_become_points(rng):
    X = np.column_stack([rng.integers(0, 20, 30_000), np.arange(30_000) // 40, rng.random(30_000) < 0.1])
    X = X.astype(float)
    codes = rng.integers(0, 3, len(X))
    summary, twin = QuantileSummary(3, 3, 0.05), QuantileTwin(3, 3)
    feed(summary, X, codes)
    twin.update(X, codes)
    assert (summary.rank_error() > 0).tolist() == [False, True, False]
    assert np.array_equal(summary.counts(5)[[0, 2]], twin.counts(5)[[0, 2]])
    within_the_certificate(summary, twin, 0.05)


@pytest.mark.parametrize("n", [1, 7, 100, 999])
def test_short_streams_are_exact_with_the_offline_bins(n, rng):
    X, codes = np.round(rng.normal(size=(n, 4)), 1), rng.integers(0, 2, n)
    X[:, 3] = np.where(rng.random(n) < 0.6, 0.0, X[:, 3])
    summary, twin = QuantileSummary(4, 2, 0.001, np.float64), QuantileTwin(4, 2)
    feed(summary, X, codes)
    twin.update(X, codes)
    for n_bins in (1, 2, 5, 7):
        assert np.array_equal(summary.counts(n_bins), twin.counts(n_bins))
    for q in (0.0, 0.2, 0.5, 1.0):
        assert summary.quantile(q).tolist() == [twin.quantile(j, q) for j in range(4)]
    assert summary.quantile([0.7, 0.1]).tolist() == [
        [twin.quantile(j, 0.7), twin.quantile(j, 0.1)] for j in range(4)
    ]


@given(cuts=st.lists(st.integers(1, 2999), max_size=6), sparse=st.booleans(), faded=st.booleans())
@settings(max_examples=30)
def test_any_batching_gives_the_same_bits(cuts, sparse, faded):
    rng = np.random.default_rng(3)
    X, codes = np.round(rng.normal(size=(3000, 4)), 2), rng.integers(0, 2, 3000)
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < 0.05] = np.nan
    weight = rng.random(3000) if faded else None
    X = sp.csr_matrix(X) if sparse else X
    whole = QuantileSummary(4, 2, 0.05)
    whole.update(X, codes, weight)
    parts = QuantileSummary(4, 2, 0.05)
    bounds = [0, *sorted(set(cuts)), 3000]
    for a, b in itertools.pairwise(bounds):
        parts.update(X[a:b], codes[a:b], None if weight is None else weight[a:b])
    np.testing.assert_allclose(parts.counts(5), whole.counts(5), rtol=1e-9, atol=1e-9)
    assert np.array_equal(parts.quantile([0.1, 0.5, 0.9]), whole.quantile([0.1, 0.5, 0.9]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
@pytest.mark.parametrize("keep", [1.0, 0.9, 1e-9])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_fading_nan_and_sparse_rows_keep_the_certificate(dtype, kind, keep, weighted, rng):
    n = 12_000
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n), np.round(rng.normal(size=n)), np.zeros(n)])
    X[rng.random(n) < 0.7, 1] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X = X.astype(np.float32).astype(float)
    codes = rng.integers(0, 3, n)
    weight = rng.integers(0, 4, n) / 2 if weighted else None
    summary, twin = QuantileSummary(4, 3, 0.05, dtype), QuantileTwin(4, 3)
    for i, start in enumerate(range(0, n, 500)):
        part = slice(start, start + 500)
        csr = kind == "sparse" or (kind == "mixed" and i % 2)
        w = None if weight is None else weight[part]
        assert summary.update(sp.csr_matrix(X[part]) if csr else X[part], codes[part], w, keep)
        twin.update(X[part], codes[part], w, keep)
    within_the_certificate(summary, twin, 0.05)
    counts = summary.counts(5)
    np.testing.assert_allclose(counts.sum(axis=1), twin.count().T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(counts[3], twin.counts(5)[3], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kinds", ["dd", "ss", "ds", "sd"])
def test_merging_is_learning_from_both(kinds, rng):
    n = 8000
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 300, n), np.round(rng.normal(size=n))])
    X[: n // 2, 1] = np.floor(X[: n // 2, 1] / 100)  # few values in one half
    X = X.astype(np.float32).astype(float)
    codes = rng.integers(0, 2, n)
    twin = QuantileTwin(3, 2)
    twin.update(X, codes)
    halves = []
    for kind, part in zip(kinds, (slice(0, n // 3), slice(n // 3, n)), strict=True):
        rows = sp.csr_matrix(X[part]) if kind == "s" else X[part]
        halves.append(feed(QuantileSummary(3, 2, 0.05), rows, codes[part]))
    second = copy.deepcopy(halves[1])
    halves[0].merge(halves[1])
    within_the_certificate(halves[0], twin, 0.05)
    assert np.array_equal(halves[0].count(), twin.count())
    assert np.array_equal(halves[0].counts(5)[2], twin.counts(5)[2])
    assert np.array_equal(halves[1].counts(5), second.counts(5))  # the other is left as it was


def test_merging_many_parts_keeps_the_bound(rng):
    X, codes = rng.normal(size=(40_000, 2)).astype(np.float32), rng.integers(0, 2, 40_000)
    parts = [
        feed(QuantileSummary(2, 2, 0.02), X[start : start + 1250], codes[start : start + 1250])
        for start in range(0, 40_000, 1250)
    ]
    twin = QuantileTwin(2, 2)
    twin.update(X.astype(float), codes)
    while len(parts) > 1:
        for a, b in zip(parts[::2], parts[1::2], strict=True):
            a.merge(b)
        parts = parts[::2]
    within_the_certificate(parts[0], twin, 0.02)


def test_fading_merges_at_the_same_now(rng):
    X, codes = rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000)
    a, b = QuantileSummary(2, 2, 0.05), QuantileSummary(2, 2, 0.05)
    twins = QuantileTwin(2, 2), QuantileTwin(2, 2)
    for start in range(0, 4000, 100):
        part = slice(start, start + 100)
        first = start < 1500
        (a if first else b).update(X[part], codes[part], keep=0.8)
        twins[0 if first else 1].update(X[part].astype(np.float32), codes[part], keep=0.8)
    a.merge(b)
    twins[0].merge(twins[1])
    within_the_certificate(a, twins[0], 0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_features": 3}, "3 features"),
        ({"n_classes": 4}, "4 classes"),
        ({"eps": 0.2}, "eps=0.2"),
        ({"dtype": np.float64}, "float64"),
    ],
)
def test_unlike_summaries_do_not_merge(change, words):
    mine = {"n_features": 2, "n_classes": 2, "eps": 0.1, "dtype": np.float32}
    summary = QuantileSummary(**mine)
    with pytest.raises(
        ValueError, match=f"Cannot merge quantiles of .*{words}.* into quantiles of 2 features"
    ):
        summary.merge(QuantileSummary(**{**mine, **change}))


def test_new_classes_and_other_codes(rng):
    X, codes = rng.normal(size=(5000, 2)), rng.integers(0, 2, 5000)
    summary = feed(QuantileSummary(2, 2, 0.05), X, codes)
    before = summary.counts(5)
    summary.grow(4)
    assert np.array_equal(summary.counts(5), np.concatenate([before, np.zeros((2, 5, 2))], axis=2))
    summary.reorder(np.array([3, 1, 0, 2]))
    assert np.array_equal(summary.counts(5)[..., [2, 1]], before)
    assert summary.update(X, np.full(len(X), 3))
    assert summary.weight().tolist() == [0, *np.bincount(codes).tolist()[::-1], 5000]


@pytest.mark.parametrize("how", ["plain", "missing", "weighted", "faded", "sparse", "merged"])
def test_rows_of_rare_classes_are_counted_as_those_of_any_other(how, rng):
    """Of 300 classes most occur a few times, and some often; classes arrive in any order."""
    n_classes, parts = 300, []
    for _ in range(2):
        summary, twin = QuantileSummary(3, 0, 0.01, np.float64), QuantileTwin(3, n_classes)
        for k in range(40):
            X, codes = rng.normal(size=(50, 3)).round(2), rng.geometric(0.02, 50) % (8 * (k + 1)) % n_classes
            if how == "missing":
                X[rng.random(X.shape) < 0.1] = np.nan
            weight = rng.integers(0, 4, 50).astype(float) if how == "weighted" else None
            summary.grow(max(summary.n_classes, int(codes.max()) + 1))
            keep, is_sparse = 0.97 if how == "faded" else 1.0, how == "sparse" and k % 4 == 3
            assert summary.update(sp.csr_array(X) if is_sparse else X, codes, weight, keep)
            twin.update(X, codes, weight, keep)
        summary.grow(n_classes)
        parts.append((summary, twin))
    (summary, twin), (other, other_twin) = parts
    if how == "merged":
        summary.merge(other)
        twin.merge(other_twin)
    assert 0 < summary._n_rare <= 32 * n_classes
    assert len(summary._points) < n_classes / 2
    cuts = np.array([[-0.5, 0.3]] * 3)
    for _ in range(2):
        np.testing.assert_allclose(summary.counts(5), twin.counts(5), atol=1e-9)
        np.testing.assert_allclose(summary.weight_below(cuts), twin.weight_below(cuts), atol=1e-9)
        assert summary.quantile(0.3).tolist() == [twin.quantile(j, 0.3) for j in range(3)]
        assert not summary.rank_error().any()
        order = rng.permutation(n_classes)
        summary.reorder(order)
        twin.codes = np.argsort(order)[twin.codes]
    loaded = tamis.loads(tamis.dumps(summary)) if hasattr(tamis, "loads") else copy.deepcopy(summary)
    assert np.array_equal(loaded.counts(4), summary.counts(4))


def test_labels_that_never_repeat_share_one_place(rng):
    summary, X = QuantileSummary(20, 0), rng.normal(size=(900, 20))
    for k in range(900):
        summary.grow(k + 1)
        summary.update(X[k : k + 1], np.array([k]))
    assert len(summary._points) == 8
    assert summary.nbytes < 900 * 20 * 4 * 2 + 8 * 40_000


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_an_infinite_value_changes_nothing(bad, kind, rng):
    X, codes = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000)
    summary = feed(QuantileSummary(2, 2, 0.05), X, codes)
    before = summary.counts(5)
    X[1, 0], X[5, 1] = np.nan, bad
    assert not summary.update(kind(X), codes)
    assert np.array_equal(summary.counts(5), before)
    assert summary.count().sum() == 6000


def test_nothing_seen_all_missing_and_one_row():
    summary = QuantileSummary(2, 2)
    assert np.isnan(summary.quantile(0.5)).all()
    assert not summary.counts(5).any()
    assert not summary.rank_error().any()
    summary.update(np.array([[np.nan, 2.0]]), np.array([1]))
    assert np.isnan(summary.quantile(0.5)[0])
    assert summary.quantile(0.5)[1] == 2.0
    assert summary.count().tolist() == [[0, 0], [0, 1]]


def test_the_rows_are_not_kept_nor_written_to(rng):
    X, codes = rng.normal(size=(700, 2)), rng.integers(0, 2, 700)
    kept, summary = X.copy(), QuantileSummary(2, 2, dtype=np.float64)
    summary.update(X, codes)
    assert np.array_equal(X, kept)
    before = summary.counts(5)
    X[:] = 0.0
    assert np.array_equal(summary.counts(5), before)


def test_memory_does_not_grow_with_the_rows(rng):
    summary = QuantileSummary(3, 2, 0.02)
    X, codes = rng.normal(size=(20_000, 3)), rng.integers(0, 2, 20_000)
    sizes = []
    for _ in range(40):
        summary.update(X, codes)
        sizes.append(summary.nbytes)
    assert max(sizes[20:]) < 1.8 * max(sizes[:5])
    assert max(sizes) < X.nbytes / 10


def test_reading_changes_nothing(rng):
    X, codes = rng.normal(size=(5000, 2)), rng.integers(0, 2, 5000)
    read, unread = QuantileSummary(2, 2), QuantileSummary(2, 2)
    for rows in (X, sp.csr_matrix(X)):
        for start in range(0, 5000, 700):
            part = slice(start, start + 700)
            read.update(rows[part], codes[part], keep=0.9)
            unread.update(rows[part], codes[part], keep=0.9)
            read.counts(5), read.quantile(0.5), read.rank_error()
    assert np.array_equal(read.counts(5), unread.counts(5))
    assert np.array_equal(read.rank_error(), unread.rank_error())


def test_a_saved_summary_goes_on_as_if_nothing_had_happened(tmp_path, rng):
    X, codes = rng.normal(size=(5000, 3)), rng.integers(0, 2, 5000)
    X[:, 2] = np.round(X[:, 2])
    summary = feed(QuantileSummary(3, 2), X, codes)
    summary.update(sp.csr_matrix(X), codes)
    loaded = tamis.load(tamis.save(summary, tmp_path / "summary"))
    for one in (summary, loaded):
        feed(one, X, codes)
    assert np.array_equal(loaded.counts(7), summary.counts(7))


@pytest.mark.parametrize("eps", [0.0, 0.5, -1, float("nan"), "0.1"])
def test_eps_must_lie_between_0_and_one_half(eps):
    with pytest.raises(ValueError, match="eps must be"):
        QuantileSummary(1, 1, eps)


def test_other_parameters_are_checked():
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        QuantileSummary(1, 1, dtype=np.int32)
    with pytest.raises(ValueError, match="n_bins must be"):
        QuantileSummary(1, 1).counts(0)
    with pytest.raises(ValueError, match="q must lie in"):
        QuantileSummary(1, 1).quantile(1.5)


def test_sparse_rows_cost_their_stored_values_and_few_bytes(rng):
    n_features = 200_000
    X = sp.random(
        2000, n_features, density=1e-4, format="csr", rng=np.random.default_rng(0), dtype=np.float64
    )
    codes = rng.integers(0, 2, 2000)
    summary, whole = QuantileSummary(n_features, 2, 0.1), QuantileTwin(20, 2)
    feed(summary, X, codes)
    busiest = np.argsort(-np.diff(X.tocsc().indptr))[:20]
    whole.update(X[:, busiest].toarray().astype(np.float32), codes)
    assert np.array_equal(summary.counts(3)[busiest], whole.counts(3))
    assert summary.nbytes < 100 * n_features


def test_points_that_are_nan_come_last_and_are_not_read():
    points = np.array([[1.0, 2.0, np.nan], [np.nan, np.nan, np.nan], [3.0, 4.0, 5.0]])
    start, stop, unit = np.array([[0], [3], [6]]), np.zeros((3, 1), np.int64), np.zeros((3, 1))
    values = np.full(9, -1.0)
    read_even(points, np.ones(3), np.arange(3), 0, Runs(values, np.zeros(9), start, stop, unit))
    assert stop.ravel().tolist() == [2, 3, 9]
    assert values.tolist() == [1.0, 2.0, -1.0, -1.0, -1.0, -1.0, 3.0, 4.0, 5.0]


def test_more_stored_cells_than_can_wait_are_sorted_in_and_others_follow(rng):
    rows = [sp.random(3000, 40, density=0.3, format="csr", random_state=seed) for seed in range(3)]
    summary = feed(QuantileSummary(40, 1, 0.05), sp.vstack(rows).tocsr(), np.zeros(9000, np.int64), size=3000)
    values = sp.vstack(rows).toarray()
    below = (values <= summary.quantile(0.9).reshape(-1)).mean(axis=0)
    assert (np.abs(below - 0.9) <= 0.05 + 1e-9).all()


def test_a_gap_is_no_point_when_points_are_thinned():
    kept, weight, low, high = np.zeros((1, 2)), np.zeros(1), np.zeros(1), np.zeros(1)
    points = np.array([[1.0, 2.0, 3.0, 4.0, np.nan, np.nan]])
    halve(points, np.ones(1), np.zeros(1, np.int64), kept, weight, low, high)
    assert (kept.tolist(), weight.tolist()) == ([[1.0, 3.0]], [2.0])


def streams_to_read(rng, n):
    """Columns whose edges stay, move, have ties, few or missing values."""
    normal = rng.normal(size=(n, 8))
    normal[:, 1] = np.round(normal[:, 1], 1)
    normal[:, 2] = normal[:, 2] > 1.0
    normal[:, 3] = np.arange(n)
    normal[:, 4] = -np.sqrt(np.arange(n))
    normal[rng.random(n) < 0.3, 5] = np.nan
    normal[:, 6] = np.where(rng.random(n) < 0.9, 0.0, normal[:, 6])
    normal[: n // 2, 7] = np.nan
    return normal


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [2, 5, 12])
@pytest.mark.parametrize(("n_classes", "weight"), [(1, None), (2, None), (4, "whole"), (3, "any")])
def test_counts_that_follow_the_rows_equal_those_of_all_points(n_classes, weight, n_bins, dtype, rng):
    X, codes = streams_to_read(rng, 9000), rng.integers(0, n_classes, 9000) ** 2 % n_classes
    summary, followed = QuantileSummary(8, n_classes, 0.004, dtype), 0
    for size in [20] * 250 + [1, 7, 100, 1100] * 3:
        rows, X, codes, its = X[:size], X[size:], codes[size:], codes[:size]
        weights = None if weight is None else np.full(size, 2.0) if weight == "whole" else rng.random(size)
        summary.update(rows, its, weights)
        assert np.array_equal(summary.counts(n_bins), copy.copy(summary).counts(n_bins))
        _, windows = quantiles._readings[summary]
        followed += windows is not None and (windows.of.size >= 0).mean() > 0.5
    assert followed > 150 or weight == "any"


@pytest.mark.slow
def test_windows_are_opened_again_after_any_other_change(rng):
    X, codes = streams_to_read(rng, 4000), rng.integers(0, 2, 4000)
    summary, other = QuantileSummary(8, 2, 0.002), feed(QuantileSummary(8, 2, 0.002), X[3000:], codes[3000:])
    changes = [
        lambda: summary.merge(other),
        lambda: summary.fade(0.5),
        lambda: summary.reorder(np.array([1, 0])),
        lambda: summary.grow(3),
        lambda: summary.update(sp.csr_matrix(np.nan_to_num(X[:30])), codes[:30]),
    ]
    for k in range(100):
        part = slice(30 * k, 30 * k + 30)
        summary.update(X[part], codes[part])
        if k % 20 == 19:
            changes[k // 20]()
        assert np.array_equal(summary.counts(4), copy.copy(summary).counts(4))


def test_a_block_without_values_invalidates_windows(rng):
    summary = QuantileSummary(1, 1, 0.05)
    size = summary._points[0].size
    X = np.r_[np.full(2 * size - 3, np.nan), rng.normal(size=4 * size)][:, None]
    for i in range(len(X)):
        summary.update(X[i : i + 1], np.zeros(1, int))
        if i >= 2 * size or i % 9 == 0:
            assert np.array_equal(summary.counts(3), copy.copy(summary).counts(3))


@pytest.mark.parametrize("half_life", [20, 100])
def test_memory_of_faded_rows_is_bounded_and_the_bound_of_the_error_holds(half_life):
    """Without dropping what has faded, the summary keeps a buffer for each doubling of the number of rows."""
    rng = np.random.default_rng(0)
    n, keep = 1000 * half_life, 0.5 ** (1.0 / half_life)
    X, codes = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    summary, sizes = QuantileSummary(2, 2, dtype=np.float64), []
    fades = keep ** np.arange(99, -1, -1.0)
    for i in range(0, n, 100):
        summary.update(X[i : i + 100], codes[i : i + 100], fades, keep=keep**100)
        sizes.append(summary.nbytes)
    tenth = len(sizes) // 10
    assert max(sizes[5 * tenth :]) <= 1.4 * max(sizes[tenth : 2 * tenth])
    weight = np.where(codes == 0, keep ** np.arange(n - 1, -1, -1.0), 0.0)
    cuts = np.linspace(-1.5, 1.5, 7)
    found = summary.weight_below(np.tile(cuts, (2, 1)))[:, :, 0]
    bound = summary.rank_error(by_class=True)[:, 0]
    for j in range(2):
        below = (weight[:, None] * (X[:, j][:, None] <= cuts)).sum(axis=0)
        assert (np.abs(found[j] - below) <= (bound[j] + 1e-9) * weight.sum()).all()
