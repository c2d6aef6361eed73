"""Parts of DISCUSS merge: the window of one pass, and the counts of all parts of the present concept."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import DISCUSS
from tests.twins.discuss import counted_in_bins


def _rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)) * np.r_[1000.0, np.ones(11)]
    X[rng.random(n) < 0.1, 4] = np.nan
    return X, np.array(["no", "yes"])[(X[:, 2] > X[:, 5]).astype(int)]


def test_counts_of_parts_of_one_origin_are_sums():
    """All rows but those of the first window of each part, which none counts, and of the last, which is not due yet."""
    X, y = _rows(4400)
    first = DISCUSS().fit(X[:500], y[:500])
    bounds = [0, 1700, 3200, 4400]
    parts = [first.clone_unfitted().partial_fit(X[a:b], y[a:b]) for a, b in pairwise(bounds)]
    before = [tamis.dumps(part) for part in parts]
    merged = tamis.merge_tree(parts)
    assert [tamis.dumps(part) for part in parts] == before
    counted = np.r_[500:1700, 2200:3200, 3700:4200]
    rows = first._scaler(X[counted])
    codes = (y[counted] == "yes").astype(int)
    tables = counted_in_bins(rows.tolist(), codes.tolist(), parts[0]._present._edges.tolist(), 2)
    np.testing.assert_array_equal(merged._present._tables, tables)
    assert merged._present.age(merged._counts) == 1200 + 1500 + 1500
    assert (merged.n_seen_, merged.drift_detected_, merged.n_replay) == (4400, False, 500)
    assert sorted(merged.selected_) == [2, 5]


def test_parts_with_a_large_window_need_a_thousand_first_rows():
    X, y = _rows(6000)
    first = DISCUSS(window=2000).fit(X[:999], y[:999])
    assert not hasattr(first.clone_unfitted(), "n_seen_")
    first.partial_fit(X[999:1000], y[999:1000])
    parts = [first.clone_unfitted().partial_fit(X[i : i + 3000], y[i : i + 3000]) for i in (0, 3000)]
    assert parts[0]._scaler.equals(parts[1]._scaler)
    merged = parts[0].merge(parts[1])
    assert merged.n_seen_ == 6000
    assert sorted(merged.selected_) == [2, 5]


def test_window_and_scores_are_those_of_one_pass():
    X, y = _rows()
    X = np.round(np.nan_to_num(X / X.std(axis=0)))  # few values: no bins to choose
    options = {"categorical": "all"}
    whole = DISCUSS(**options).fit(X, y)
    merged = tamis.merge_tree(
        DISCUSS(**options).fit(X[i : i + 1000], y[i : i + 1000]) for i in range(0, 4000, 1000)
    )
    np.testing.assert_array_equal(merged.scores_, whole.scores_)
    for mine, theirs in zip(merged._counts.rows(), whole._counts.rows(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(merged.selected_, whole.selected_)
    np.testing.assert_allclose(merged._mean, whole._mean, atol=0.01)
    assert np.abs(merged._mean - whole._mean).max() < 0.5 * np.abs(merged.scores_ - whole._mean).max()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_of_numbers_the_bins_are_those_of_the_later_part(kind):
    X, y = _rows()
    X = np.where(np.abs(X) > 0.5, np.nan_to_num(X), 0.0)
    late = DISCUSS().fit(kind(X[2000:]), y[2000:])
    merged = DISCUSS().fit(kind(X[:2000]), y[:2000]).merge(late)
    np.testing.assert_array_equal(merged.scores_, late.scores_)
    assert set(merged.selected_) == {2, 5}
    assert merged._present._tables[0].sum() == late._present._tables[0].sum() + 500


def test_a_short_part_is_learned_row_by_row():
    X, y = _rows(1400)
    first = DISCUSS().fit(X[:500], y[:500])
    one = first.clone_unfitted().partial_fit(X[:1000], y[:1000])
    other = first.clone_unfitted().partial_fit(X[1000:], y[1000:])
    whole = first.clone_unfitted().partial_fit(X, y)
    merged = tamis.loads(tamis.dumps(one)).merge(other)
    assert tamis.dumps(merged) == tamis.dumps(whole)
    assert tamis.dumps(other.merge(one, when="before")) == tamis.dumps(whole)


@pytest.mark.parametrize("kinds", [(np.asarray, sp.csr_matrix), (sp.csr_matrix, np.asarray)])
@pytest.mark.parametrize("cut", [3700, 2000])
def test_sparse_and_dense_parts(kinds, cut):
    X, y = _rows()
    X = np.where(np.abs(X) > 0.5, np.nan_to_num(X), 0.0)
    early, late = DISCUSS().fit(kinds[0](X[:cut]), y[:cut]), DISCUSS().fit(kinds[1](X[cut:]), y[cut:])
    merged = early.merge(late)
    assert set(merged.selected_) == {2, 5}
    assert not merged.drift_detected_
    again = tamis.loads(tamis.dumps(merged)).partial_fit(kinds[0](X[:600]), y[:600])
    assert (again.n_seen_, set(again.selected_)) == (4600, {2, 5})


def test_a_drift_between_the_parts_discards_the_earlier_one():
    X, y = _rows()
    y[2000:] = np.array(["no", "yes"])[(X[2000:, 1] > X[2000:, 8]).astype(int)]
    late = DISCUSS().fit(X[2000:], y[2000:])
    merged = DISCUSS().fit(X[:2000], y[:2000]).merge(late)
    assert merged.drift_detected_
    assert set(merged.selected_) == {1, 8}
    np.testing.assert_array_equal(merged._present._tables, late._present._tables)
    np.testing.assert_array_equal(merged._mean, late._mean)


def test_a_drift_in_the_later_part_discards_the_earlier_one():
    X, y = _rows()
    y[3000:] = np.array(["no", "yes"])[(X[3000:, 1] > X[3000:, 8]).astype(int)]
    late = DISCUSS().fit(X[2000:], y[2000:])
    merged = DISCUSS().fit(X[:2000], y[:2000]).merge(late)
    np.testing.assert_array_equal(merged._mean, late._mean)
    assert merged._present.began == late._present.began > 0
    assert set(merged.selected_) == {1, 8}


def test_classes_in_another_order_and_new_ones():
    X, y = _rows()
    y = y.astype("U4")
    y[(X[:, 2] > X[:, 5] + 2) & (np.arange(4000) >= 2000)] = "very"
    parts = [
        DISCUSS().partial_fit(X[:2000], y[:2000], classes=["no", "yes"]),
        DISCUSS().partial_fit(X[2000:], y[2000:], classes=["very", "yes", "no"]),
        DISCUSS().partial_fit(X[2000:], y[2000:], classes=["no", "yes", "very"]),
    ]
    one, other = (tamis.loads(tamis.dumps(parts[0])).merge(part) for part in parts[1:])
    assert one.classes_.tolist() == other.classes_.tolist() == ["no", "yes", "very"]
    np.testing.assert_array_equal(one.scores_, other.scores_)
    np.testing.assert_array_equal(one._present._tables, other._present._tables)
    np.testing.assert_array_equal(one._counts._counts, other._counts._counts)
    for mine, theirs in zip(one._present.bayes, other._present.bayes, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    more = [selector.partial_fit(X[2000:2700], y[2000:2700]) for selector in (one, other)]
    np.testing.assert_array_equal(more[0].scores_, more[1].scores_)


@pytest.mark.parametrize(
    "options",
    [{"half_life": None}, {"alpha_drift": None}, {"trigger": "literal"}, {"cuts": "range"}, {"window": 130}],
    ids=str,
)
def test_every_mode_merges(options):
    X, y = _rows(2400)
    parts = [DISCUSS(2, **options).fit(X[i : i + 800], y[i : i + 800]) for i in range(0, 2400, 800)]
    merged = tamis.merge_tree(parts)
    assert set(merged.selected_) == {2, 5}
    assert merged.n_seen_ == 2400
    assert set(merged.partial_fit(X[:200], y[:200]).selected_) == {2, 5}


def test_refuses_what_does_not_merge():
    X, y = _rows(600)
    with pytest.raises(ValueError, match="discretises the target by the rows of each part"):
        DISCUSS(task="regression").fit(X, X[:, 2]).merge(DISCUSS(task="regression").fit(X, X[:, 2]))
    with pytest.raises(ValueError, match="window is 500 here and 300 there"):
        DISCUSS().fit(X, y).merge(DISCUSS(window=300).fit(X, y))
