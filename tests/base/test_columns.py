"""What the base of column selectors keeps for its methods: names, drops, order of entry, the trace."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tamis import AlphaInvesting, ForwardStepwise
from tamis.base import ColumnSelector, FeatureStream
from tamis.base.column_intake import _unusual
from tamis.base.trace import ACCEPTED, Trace, Verdicts
from tamis.errors import DataError


class KeepsTheLastTwo(ColumnSelector):
    """Accepts every column that is not constant; a third makes the oldest leave."""

    def __init__(self, missing: str = "refuse", trace: str = "all") -> None:
        self.missing = missing
        self.trace = trace

    def _is_regression(self) -> bool:
        return True

    def _begin(self, y: Any, weight: Any) -> None:
        self._places: tuple[int, ...] = ()

    def _consider(self, column: Any) -> Verdicts:
        verdict = Verdicts.empty(1)
        if np.ptp(column) > 0:
            verdict.decision[:] = ACCEPTED
            self._places = (*self._places, self.n_offered_)
            verdict.dropped, self._places = self._places[:-2], self._places[-2:]
        return verdict


def test_features_may_leave_again_and_their_names_are_free(rng):
    X = rng.normal(size=(20, 6))
    X[:, 3] = 1.0
    selector = KeepsTheLastTwo().start(rng.normal(size=20))
    assert selector.offer_many(X, list("abcdef")).tolist() == [True, True, True, False, True, True]
    assert selector.selected_ == ["e", "f"]
    assert selector.get_support().tolist() == [False] * 4 + [True, True]
    assert selector.trace_["decision"].tolist() == ["accepted"] * 3 + ["rejected"] + ["accepted"] * 2
    assert selector.offer(X[:, 0], "a")
    assert selector.selected_ == ["f", "a"]


def test_order_of_entry_is_that_of_the_method(rng):
    X = rng.normal(size=(50, 4))
    y = X @ [1.0, 0.0, 3.0, 0.0] + 0.1 * rng.normal(size=50)
    selector = ForwardStepwise("ric").fit(X, y)
    assert selector.selected_ == ["x2", "x0"]
    assert selector.get_feature_names_out().tolist() == ["x0", "x2"]


@pytest.mark.parametrize("block", [False, True])
def test_a_default_name_must_be_free_too(block, rng):
    X = rng.normal(size=(20, 3))
    selector = KeepsTheLastTwo().start(rng.normal(size=20))
    selector.offer(X[:, 0], "x2")
    selector.offer(X[:, 1])
    with pytest.raises(DataError, match="Feature 'x2' is selected already: give the new column another name"):
        selector.offer_many(X) if block else selector.offer(X[:, 2])
    assert selector.selected_ == ["x2", "x1"]


def test_a_selector_must_say_how_it_decides():
    class Undecided(KeepsTheLastTwo):
        _consider = ColumnSelector._consider

    with pytest.raises(NotImplementedError, match="Undecided must define _consider or _consider_block"):
        Undecided().start(np.arange(3.0)).offer(np.arange(3.0))


def test_a_stream_that_fails_leaves_what_it_brought(rng):
    def features():
        yield "good", rng.normal(size=20)
        yield "short", rng.normal(size=19)

    selector = KeepsTheLastTwo().start(rng.normal(size=20))
    with pytest.raises(DataError, match="Feature 'short' has 19 values, but y has 20 rows"):
        selector.offer_stream(features())
    assert selector.selected_ == ["good"]
    assert selector.offer_stream([("next", rng.normal(size=20))]).selected_ == ["good", "next"]
    assert not isinstance(features(), FeatureStream)


def test_a_copy_of_the_trace_is_a_snapshot():
    trace = Trace()
    for i in range(100):
        trace.append(i, [f"name {i}"], Verdicts.empty(1), np.zeros(1, dtype=np.int32))
    snapshot = copy.copy(trace)
    trace.append(100, None, Verdicts.empty(200), np.zeros(200, dtype=np.int32))
    assert len(snapshot.records()) == 100
    assert trace.records()["name"][[99, 100, 299]].tolist() == ["name 99", "x100", "x299"]


def test_sklearn_names_of_a_frame_are_forgotten_once_more_is_offered(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    selector = KeepsTheLastTwo().fit(frame, rng.normal(size=20))
    assert selector.feature_names_in_.tolist() == ["a", "b"]
    selector.offer(rng.normal(size=20), "c")
    assert not hasattr(selector, "feature_names_in_")
    wide = frame.assign(c=1.0, d=2.0)
    assert selector.transform(wide).tolist() == wide[["b", "c"]].to_numpy().tolist()


def test_the_trace_of_the_accepted_holds_nothing_else():
    trace, verdicts = Trace(accepted_only=True), Verdicts.empty(5)
    verdicts.decision[:] = np.arange(5)  # one of each
    trace.append(10, list("abcde"), verdicts, np.zeros(5, dtype=np.int32))
    assert trace.records()["name"].tolist() == ["b"]
    assert trace.records()["offer"].tolist() == [11]
    assert trace.records()["decision"].tolist() == ["accepted"]


def test_a_block_that_fails_in_its_last_part_leaves_no_record(rng, monkeypatch):
    monkeypatch.setattr("tamis.base.columns._CELLS", 20)  # a column at a time
    X = rng.normal(size=(20, 4))
    X[3, 3] = np.inf
    selector = KeepsTheLastTwo().start(rng.normal(size=20))
    selector.offer(X[:, 0], "first")
    with pytest.raises(DataError, match="infinity in row 3"):
        selector.offer_many(X, list("abcd"))
    assert selector.trace_["name"].tolist() == ["first"]
    assert (selector.n_offered_, selector.selected_) == (1, ["first"])


def test_a_name_that_only_ends_like_a_place_is_not_one(rng):
    X = rng.normal(size=(20, 5))
    selector = KeepsTheLastTwo().start(rng.normal(size=20))
    selector.offer(X[:, 0], "3")
    assert selector.offer_many(X).all()  # x1 to x5
    assert selector.selected_ == ["x4", "x5"]


@pytest.mark.parametrize("kind", [np.array, sp.csc_matrix], ids=["dense", "sparse"])
def test_columns_of_any_size_come_to_a_method_in_one_whose_squares_exist(kind):
    """Times a power of two, so nothing else of them changes; gaps are filled first, zeros and usual ones are left."""
    seen = []

    class Looks(KeepsTheLastTwo):
        def _consider(self, column: Any) -> Verdicts:
            seen.append(column.copy())
            return super()._consider(column)

    X = np.array([[1.0, 2.0, 0.0, 3.0, 5.0], [2.0, 0.0, 0.0, 1.0, np.nan], [3.0, 5.0, 0.0, 0.0, 7.0]])
    given = X * [1.0, 1e-200, 1.0, 1e160, 1.0]
    before = given.copy()
    selector = Looks(missing="mean").start([1.0, 2.0, 4.0])
    selector.offer_many(kind(given))
    np.testing.assert_array_equal(given, before)
    filled = np.where(np.isnan(X), 6.0, X)
    for j, column in enumerate(seen):
        factor = np.median(column[column != 0] / filled[column != 0, j]) if column.any() else 1.0
        np.testing.assert_allclose(column, filled[:, j] * factor, rtol=1e-15)
        assert (factor == 1.0) == (j in (0, 2, 4))
        assert 0.0 <= np.abs(column).max() < 10.0
    assert selector.trace_["n_missing"].tolist() == [0, 0, 0, 0, 1]
    huge = np.array([1.7e308, np.nan, 1.6e308])
    selector.offer(huge, "huge")
    assert seen[-1][1] == pytest.approx((seen[-1][0] + seen[-1][2]) / 2)


def test_a_target_of_any_size_is_explained(rng):
    X = rng.normal(size=(60, 10))
    y = X[:, 4] + 0.5 * rng.normal(size=60)
    for size in (1e-200, 1e200):
        assert (
            ForwardStepwise("ric").fit(X, y * size).selected_
            == ForwardStepwise("ric").fit(X, y).selected_
            == ["x4"]
        )


def test_masked_values_are_gaps(rng):
    values = rng.normal(size=(20, 3))
    masked = np.ma.masked_array(values, mask=np.zeros((20, 3), dtype=bool))
    masked[4, 1] = np.ma.masked
    with pytest.raises(DataError, match="'x1' contains NaN in row 4"):
        KeepsTheLastTwo().start(rng.normal(size=20)).offer_many(masked)
    with pytest.raises(DataError, match="'b' contains NaN in row 4"):
        KeepsTheLastTwo().start(rng.normal(size=20)).offer(masked[:, 1], "b")
    selector = KeepsTheLastTwo(missing="mean").start(rng.normal(size=20))
    selector.offer_many(masked)
    assert selector.trace_["n_missing"].tolist() == [0, 1, 0]


def test_the_label_that_is_no_number_is_named():
    with pytest.raises(DataError, match="y contains 'a', which is text"):
        KeepsTheLastTwo().start(np.array([1, 2, "a", 3], dtype=object))


def test_a_sparse_column_of_tiny_values_is_scaled_as_a_dense_one_is() -> None:
    """Their squares vanish: the sum of squares of stored values decides, as that of all values does."""
    columns = np.array([[1e-200, 1.0, 0.0, 1e200], [2e-200, 2.0, 0.0, 0.0], [0.0, 0.5, 0.0, 1.0]])
    assert _unusual(columns).tolist() == _unusual(sp.csc_matrix(columns)).tolist() == [0, 3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_tall_columns_decide_the_same_in_any_order(dtype, rng):
    X = (10 * rng.normal(size=(20_000, 40))).astype(dtype)
    y, before = X[:, 3] + X[:, 30] + 9 * rng.normal(size=20_000), X.copy()
    by_rows, by_columns, single = (AlphaInvesting().start(y) for _ in range(3))
    accepted = by_rows.offer_many(X)
    assert accepted[[3, 30]].all()
    assert np.array_equal(X, before)
    assert np.array_equal(by_columns.offer_many(np.asfortranarray(X)), accepted)
    assert by_columns.trace_.tolist() == by_rows.trace_.tolist()  # the same sums, to the bit
    assert [single.offer(x) for x in X.T] == accepted.tolist()
