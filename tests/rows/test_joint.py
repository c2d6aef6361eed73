"""JointScreening against its twin, on streams where nothing but pairs tells, after drifts, and with wrong input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from tamis import JointScreening, load_stream, prequential
from tamis.evaluate.metrics.selection import selection_accuracy
from tamis.rows.joint import pair_counts
from tamis.rows.joint.pair_counts import (
    Gains,
    count_pairs,
    count_row,
    cut,
    default_n_levels,
    measure,
    table,
    x_log_x,
    zeros,
)
from tests.twins.joint import JointScreening as Twin


def learned(model, X, y, size):
    for at in range(0, len(y), size):
        model.partial_fit(X[at : at + size], y[at : at + size], classes=np.unique(y))
    return model


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), [("SEA", "mixed"), ("BG3", "binary")])
def test_equals_the_twin(name, kind):
    stream = load_stream(name, seed=3, n_rows=1600, n_drifts=1, width=1)
    X, y = stream.take(1600)
    whole, X, y = X, X[:, :8].copy(), y.astype(int)
    for t, half in ((0, slice(0, 800)), (1599, slice(800, 1600))):
        relevant = stream.relevant_at(t)  # brought among the columns looked at
        X[half, : len(relevant)] = whole[half][:, relevant]
    if kind == "mixed":
        X[:, 5] = np.round(X[:, 5])
        X[:, 6] = 1.0
        X[:300, 7] = 0.5  # has levels after the first chunk, with rows of before
    fast, slow = learned(JointScreening(4), X, y, 97), Twin(4)
    slow.learn(X, y)
    assert fast.drifts_ == slow.drifts
    assert fast.selected_ == slow.set
    np.testing.assert_allclose(fast.scores_, slow.scores, rtol=1e-9, atol=1e-12)
    assert fast.partners_.tolist() == slow.partners.tolist()
    assert fast.selected_  # or nothing was compared


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 6), st.integers(1, 3), st.integers(1, 200)
)
@settings(max_examples=30, deadline=None)
def test_tables_are_those_of_counting(seed, n_levels, n_features, n_classes, n_rows):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 7, (n_rows, n_features)).astype(float), rng.integers(0, n_classes, n_rows)
    counts = zeros(X, np.arange(n_features), n_levels, n_classes)
    for row, code in zip(X, y, strict=True):
        count_row(row, code, counts)
        if counts.n[1] == 32:
            count_pairs(counts)
    count_pairs(counts)
    edges = cut(X, n_levels)
    levels = (X[:, :, None] > edges).sum(axis=2)
    cells = np.empty((n_levels, n_levels, n_classes), np.int64)
    totals = np.bincount(y, minlength=n_classes)
    for i in range(n_features):
        for j in range(i + 1, n_features):
            table(counts, i, j, totals, cells)
            expected = np.zeros_like(cells)
            np.add.at(expected, (levels[:, i], levels[:, j], y), 1)
            np.testing.assert_array_equal(cells, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BG3", "BG1", "BG2", "AN"])
def test_finds_the_relevant_features_again_after_a_drift(name):
    stream = load_stream(name, seed=1, n_rows=8000, n_drifts=1, width=1)
    model, found = JointScreening(), []
    for at, (X, y) in zip(range(0, 8000, 100), stream.batches(100), strict=True):
        model.partial_fit(X, y, classes=stream.classes)
        selected = np.flatnonzero(model.get_support())
        found.append(selection_accuracy(selected, stream.relevant_at(at), X.shape[1]).accuracy)
    assert np.mean(found[:40]) > 0.9
    assert np.mean(found[50:]) > 0.95  # from 1000 rows after the drift on
    assert any(4000 < drift < 4300 for drift in model.drifts_)


@pytest.mark.slow
def test_naive_bayes_told_by_it_is_near_one_told_the_truth():
    stream = load_stream("SEA", seed=0, n_rows=9000, n_drifts=2, width=1)
    told = prequential(stream, JointScreening(), GaussianNB(), batch_size=50, replay="always")
    plain = prequential(stream, None, GaussianNB(), batch_size=50)
    assert told.summary()["accuracy"] > 0.82 > plain.summary()["accuracy"] + 0.05
    assert told.settings["replays"] >= 2


@pytest.mark.slow
def test_parity_of_two_is_seen_and_of_three_is_not():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 10)).astype(float)
    two, three = X[:, 1] != X[:, 4], (X[:, 1] + X[:, 4] + X[:, 7]) % 2 > 0
    model = JointScreening().fit(X, two)
    assert (sorted(model.selected_), model.partners_[1], model.partners_[4]) == ([1, 4], 4, 1)
    assert JointScreening().fit(X, three).selected_ == []
    assert JointScreening().fit(X, three).get_support().all()


@pytest.mark.slow
def test_copies_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    X[:, 8:] = X[:, :4] + 0.3 * rng.normal(size=(3000, 4))
    assert sorted(JointScreening().fit(X, X[:, 0] + X[:, 1] > 0).selected_) == [0, 1]


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(0)
    found = [
        JointScreening().fit(rng.normal(size=(1000, 30)), rng.integers(0, 2, 1000)).selected_
        for _ in range(20)
    ]
    assert sum(map(len, found)) <= 4


@pytest.mark.slow
def test_a_trend_is_found_in_few_rows():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 10, (112, 50))
        y = (X[:, 3] + X[:, 8] > 10) != (rng.random(112) < 0.1)
        found.append(JointScreening().fit(X, y).selected_)
    assert sum({3, 8} <= set(one) for one in found) >= 7  # by G alone, 2
    assert sum(len(one) > 2 for one in found) <= 2


@pytest.mark.slow
def test_more_columns_than_can_be_paired():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 60))
    model = JointScreening(max_paired=10).fit(X, X[:, 37] > 0)
    assert model.selected_[0] == 37


@pytest.mark.slow
def test_of_more_than_max_paired_features_only_the_best_alone_are_paired(rng):
    X = rng.integers(0, 2, (1200, 12)).astype(float)
    y = (X[:, 3] != X[:, 8]) ^ (rng.random(1200) < 0.05)
    more = y[:, None] ^ (rng.random((1200, 4)) < 0.35)  # which tell more alone
    of_all = JointScreening(max_paired=16).fit(np.column_stack([X, more]), y)
    assert {3, 8} <= set(of_all.selected_)
    assert of_all.partners_[[3, 8]].tolist() == [8, 3]
    few = JointScreening(max_paired=4).fit(np.column_stack([X, more]), y)
    assert set(few.selected_) == {12, 13, 14, 15}
    assert few.partners_[:12].tolist() == [-1] * 12


@pytest.mark.slow
def test_a_class_that_comes_late():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = np.digitize(X[:, 2], [-0.5, 0.5])
    y[:600] = np.minimum(y[:600], 1)
    model = JointScreening()
    for at in range(0, 1500, 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100])
    assert (model.selected_, len(model.classes_)) == ([2], 3)


def test_weights_repeat_rows():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(300, 4)), rng.integers(0, 2, 300), rng.integers(0, 3, 300)
    X[:, 1] += y
    weighted = JointScreening().fit(X, y, sample_weight=weight)
    repeated = JointScreening().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.scores_, repeated.scores_)
    with pytest.raises(ValueError, match=r"sample_weight\[\d+\] is 0\.5"):
        weighted.partial_fit(X, y, sample_weight=np.full(300, 0.5))


def test_sparse_rows_are_the_same_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (500, 8)).astype(float)
    y = X[:, 2] != X[:, 5]
    np.testing.assert_array_equal(
        JointScreening().fit(sp.csr_matrix(X), y).scores_, JointScreening().fit(X, y).scores_
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_bins", 1), ("n_bins", 11), ("n_bins", 2.5), ("alpha", 0), ("alpha", 1), ("alpha_drift", 0), ("memory", 63),
     ("max_paired", 1)],
)  # fmt: skip
def test_refuses(name, value):
    with pytest.raises(ValueError, match=name):
        JointScreening(**{name: value}).fit(np.zeros((4, 2)), [0, 1, 0, 1])


@pytest.mark.parametrize("n_levels", [2, 5, 10])
def test_columns_are_cut_together_as_each_by_itself(n_levels, monkeypatch):
    """Between their values where these are few, else at different ones of their quantiles."""
    monkeypatch.setattr(pair_counts, "_CELLS", 400)  # some columns at a time
    rng = np.random.default_rng(0)
    X = np.hstack([np.round(rng.normal(size=(60, 10)), digits) for digits in (0, 1, 2, 9)])
    X *= np.exp(rng.normal(0.0, 5.0, 40))
    X[:, ::7] *= rng.random((60, 6)) < 0.2
    X[:, 5] = -3.0
    for j, found in enumerate(cut(X, n_levels)):
        values = np.unique(X[:, j])
        edges = np.unique(np.quantile(X[:, j], np.arange(1, n_levels) / n_levels))
        if len(values) <= n_levels:
            edges = values[:-1] + np.diff(values) / 2.0
        np.testing.assert_array_equal(
            found, np.pad(edges, (0, n_levels - 1 - len(edges)), constant_values=np.inf)
        )


@pytest.mark.slow
def test_levels_by_the_number_of_features():
    assert [default_n_levels(d, None) for d in (2, 20, 50, 100, 1000)] == [10, 9, 4, 2, 2]
    assert default_n_levels(1000, 5) == 5


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("copy", ["same", "mirrored", "noisy"])
def test_copies_of_few_columns_are_left_out_early(copy, n_classes):
    """Ten levels of few columns: that two columns are one is known long before all pairs of levels have rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    total = X[:, 0] + X[:, 1]
    y = np.digitize(total, np.quantile(total, np.arange(1, n_classes) / n_classes))
    again = {"same": X[:, :2], "mirrored": -X[:, :2], "noisy": X[:, :2] + 1e-9 * rng.normal(size=(1500, 2))}
    selected = JointScreening().fit(np.c_[X, again[copy]], y).selected_
    assert sorted(j % 6 for j in selected) == [0, 1]


@pytest.mark.slow
def test_errors_of_one_pair_are_no_evidence_against_the_next():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    model = JointScreening(alpha_drift=1e-9).fit(X, X[:, 0] > 0)
    model._evidence[:] = 3.0, 50.0
    model._renew(model._counts)  # the same pair is chosen
    assert model._evidence.tolist() == [3.0, 50.0]
    model._pair[:] = 2, 3
    model._renew(model._counts)
    assert model._pair.tolist() == [0, 0]
    assert model._evidence.tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "judged"), [(32, False), (64, True)])
def test_a_pair_is_judged_from_five_rows_a_cell_on(n, judged):
    """Two columns of two values and two classes have eight cells: 40 rows."""
    X = np.array([[i % 2, i // 2 % 2] for i in range(n)], dtype=float)
    y = (X[:, 0] != X[:, 1]).astype(int)
    counts = zeros(X, np.arange(2), 2, 2)
    for row, code in zip(X, y, strict=True):
        count_row(row, code, counts)
        if counts.n[1] == 32:
            count_pairs(counts)
    gains = Gains(*(np.full((2, 2), np.nan) for _ in Gains._fields))
    measure(counts, np.bincount(y), np.append(np.inf, np.full(20, 5.0)), x_log_x(), gains)
    assert gains.joint[0, 1] == (1.0 if judged else 0.0)
    assert (gains.given[0, 1] > 0.0) == judged


@pytest.mark.slow
def test_no_copy_of_three_columns_is_kept():
    """At level .01 a column of noise is kept now and then, but never one column twice."""
    noise = 0
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(1500, 3))
        again = X[:, :2] if seed % 2 else -X[:, :2]
        selected = JointScreening().fit(np.c_[X, again], X[:, 0] + X[:, 1] > 0).selected_
        assert len(selected) == len({j % 3 for j in selected}) >= 2
        noise += len(selected) - 2
    assert noise <= 2


@pytest.mark.slow
def test_a_set_that_grows_is_no_drift_and_class_shares_are_none():
    rng = np.random.default_rng(0)
    share = np.where(np.arange(8000) < 4000, 0.5, 0.85)
    y = (rng.random(8000) < share).astype(int)
    X = rng.normal(size=(8000, 20))
    X[:, :3] += np.array([1.5, 0.5, 0.3]) * y[:, None]
    model, sets, told = JointScreening(), set(), 0
    for at in range(0, 8000, 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100], classes=[0, 1])
        sets.add(tuple(sorted(model.selected_)))
        told += model.drift_detected_
    assert len(sets) >= 3
    assert (told, model.drifts_) == (0, [])


@pytest.mark.slow
def test_rows_of_before_the_drift_are_told_once_more_when_the_first_chunk_after_it_is_full():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 6))
    y = np.where(np.arange(8000) < 3000, X[:, 0] > 0, X[:, 3] > 0).astype(int)
    model, told = JointScreening(), []
    for start in range(0, 8000, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1])
        if model.drift_detected_:
            told.append(start)
    assert len(model.drifts_) == 1
    assert told[0] == 3000
    assert [4000 < start < 4500 for start in told[1:]] == [True]


@pytest.mark.slow  # in plain Python minutes
def test_a_drift_that_leaves_the_pair_that_tells_most_as_it_was_is_found(rng):
    """No error of that pair rises; but what the third feature of the majority told is told by another one."""
    n, start, width = 24_000, 10_000, 6_000
    X = rng.integers(0, 2, (n, 30)).astype(float)
    after = rng.random(n) < (np.arange(n) - start) / width
    y = (X[:, 0] + X[:, 1] + np.where(after, X[:, 3], X[:, 2]) > 1.5).astype(int)
    y ^= rng.random(n) < 0.1
    model = JointScreening().partial_fit(X[:start], y[:start], classes=[0, 1])
    assert model.drifts_ == []
    model.partial_fit(X[start:], y[start:])
    assert any(start < row <= start + width for row in model.drifts_)
    assert sorted(model.selected_) == [0, 1, 3]
    whole = JointScreening()
    for at in range(0, n, 37):
        whole.partial_fit(X[at : at + 37], y[at : at + 37], classes=[0, 1])
    assert whole.drifts_ == model.drifts_


def grown_and_wide(n_bins, widths, n_rows=1500, **options):
    """A selector that is widened before each of some batches, and one that knows all columns from the start."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, max(widths))).round(1), rng.integers(0, 3, n_rows)
    X[:, 2] += y == 1
    X[:, -1] += 2 * (y == 2)
    grown, wide = (JointScreening(n_bins, alpha_drift=1e-300, **options) for _ in range(2))
    for i, width in enumerate(widths):
        rows = slice(n_rows * i // len(widths), n_rows * (i + 1) // len(widths))
        X[rows, width:] = 0.0
        wide.partial_fit(X[rows], y[rows], classes=range(3))
        if i and width > widths[i - 1]:
            grown.widen(width)
        grown.partial_fit(X[rows, :width], y[rows], classes=range(3))
    return grown, wide


@pytest.mark.slow
@pytest.mark.parametrize("max_paired", [500, 3])
@pytest.mark.parametrize("widths", [[5, 5, 5, 8, 8, 11, 11, 11], [4, 9, 9, 9], [6, 6, 7]], ids=repr)
def test_columns_that_come_later_are_counted_as_if_they_had_been_zero(widths, max_paired):
    grown, wide = grown_and_wide(3, widths, max_paired=max_paired)
    for ours, theirs in zip(grown._arrays, wide._arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert grown.scores_.tobytes() == wide.scores_.tobytes()
    assert grown.selected_ == wide.selected_
    assert grown.partners_.tolist() == wide.partners_.tolist()
    assert {2, max(widths) - 1} <= set(grown.selected_)


@pytest.mark.slow
def test_levels_become_coarser_where_there_are_more_columns():
    grown, wide = grown_and_wide(None, [8, 8, 30, 60, 60, 60], 3000)
    assert grown._arrays[0].shape == wide._arrays[0].shape
    assert {2, 59} <= set(grown.selected_) & set(wide.selected_)


def test_classes_may_appear_while_the_first_rows_are_collected():
    rng = np.random.default_rng(0)
    X, y = (
        rng.normal(size=(600, 3)),
        np.r_[np.zeros(20, int), rng.integers(0, 2, 20), rng.integers(0, 3, 560)],
    )
    model = JointScreening()
    for start, stop in ((0, 20), (20, 40), (40, 600)):
        model.partial_fit(X[start:stop], y[start:stop])
    assert model._label_series.n_classes == 3
