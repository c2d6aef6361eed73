"""What RowSelector does for every selector: take in, refuse, undo, select, and fit into scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from tamis.base import RowSelector, n_to_select, top_mask
from tamis.errors import DataError


class Recorder(RowSelector):
    """Remembers what it is given; scores a feature by its sum."""

    def __init__(self, n_features_to_select: Any = 2, regression: bool = False, fail_at: int = -1) -> None:
        self.n_features_to_select = n_features_to_select
        self.regression = regression
        self.fail_at = fail_at

    def _is_regression(self) -> bool:
        return self.regression

    def _start(self, n_features: int) -> None:
        self._seen: list[tuple[Any, Any, Any]] = []
        self._sum = np.zeros(n_features)

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.n_seen_ == self.fail_at:
            raise KeyboardInterrupt
        self._seen = [*self._seen, (X, y, sample_weight)]
        self._sum = self._sum + np.asarray(X.sum(axis=0)).ravel()

    def _relevance(self) -> Any:
        return self._sum.copy()


X = np.array([[1.0, 5.0, 3.0], [1.0, 0.0, 3.0]])
Y = ["no", "yes"]


# -- how many, and which -----------------------------------------------------------------------------------


@given(
    scores=st.lists(
        st.integers(-3, 3).map(float) | st.just(-np.inf) | st.just(np.inf), min_size=1, max_size=30
    ),
    data=st.data(),
)
def test_top_mask_is_a_stable_sort(scores: list[float], data: Any) -> None:
    n_selected = data.draw(st.integers(1, len(scores)))
    best = sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:n_selected]
    assert np.flatnonzero(top_mask(np.array(scores), n_selected)).tolist() == sorted(best)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [(1, 1), (7, 7), (np.int32(3), 3), (0.001, 1), (0.5, 4), (1.0, 7), (np.float32(0.3), 2)],
)
def test_number_to_select(asked: Any, kept: int) -> None:
    assert n_to_select(asked, 7) == kept


@pytest.mark.parametrize("asked", [0, -1, 8, 0.0, 1.01, np.nan, "3", None, True])
def test_impossible_number_to_select(asked: Any) -> None:
    with pytest.raises(ValueError, match="n_features_to_select must be a") as caught:
        n_to_select(asked, 7)
    assert repr(asked) in str(caught.value)


# -- taking in ---------------------------------------------------------------------------------------------


def test_hooks_get_codes_and_contiguous_rows() -> None:
    selector = (
        Recorder()
        .partial_fit(np.asfortranarray(X, dtype=np.float32), Y)
        .partial_fit(sp.csc_matrix(X), ["yes", "no"])
    )
    (rows, codes, weight), (matrix, other, _) = selector._seen
    assert rows.flags.c_contiguous
    assert rows.dtype == np.float32
    assert (codes.tolist(), other.tolist(), codes.dtype) == ([0, 1], [1, 0], np.int64)
    assert weight is None
    assert isinstance(matrix, sp.csr_matrix)
    assert (selector.n_seen_, selector.n_features_in_, selector.classes_.tolist()) == (4, 3, Y)


def test_regression_gets_numbers() -> None:
    selector = Recorder(regression=True).partial_fit(X, [1, 2], sample_weight=[1, 2])
    _, target, weight = selector._seen[0]
    assert (target.dtype, weight.tolist()) == (np.float64, [1.0, 2.0])
    assert not selector.warming_up_
    assert not hasattr(selector, "classes_")
    for y, said in [
        (["a", "b"], "y contains 'a', which is text"),
        ([1.0, np.nan], "row 1"),
    ]:
        with pytest.raises(DataError, match=said):
            selector.partial_fit(X, y)


def test_waits_for_a_second_class() -> None:
    selector = Recorder(n_features_to_select=1).partial_fit(X, ["a", "a"])
    assert selector.warming_up_
    assert selector.scores_.tolist() == [0.0, 0.0, 0.0]
    assert selector.get_support().all()
    selector.partial_fit(X, ["b", "a"])
    assert not selector.warming_up_
    assert selector.get_support(indices=True).tolist() == [2]


def test_a_class_that_was_only_declared_was_not_seen() -> None:
    selector = Recorder().partial_fit(X, ["a", "a"], classes=["b", "a", "c"])
    assert selector.warming_up_
    selector.partial_fit(X, ["a", "b"], sample_weight=[1, 0])
    assert selector.warming_up_  # a row of weight 0 is no row
    assert selector.partial_fit(X, ["a", "d"], sample_weight=[1, 0]).warming_up_
    assert not selector.partial_fit(X, ["d", "a"]).warming_up_
    assert selector.classes_.tolist() == ["b", "a", "c", "d"]


def test_declared_classes_come_first() -> None:
    selector = Recorder().partial_fit(X, ["b", "c"], classes=["c", "a"])
    assert selector.classes_.tolist() == ["c", "a", "b"]
    with pytest.raises(ValueError, match="classes names a label twice"):
        Recorder().partial_fit(X, Y, classes=["a", "a"])


# -- refusing and undoing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    ("rows", "y", "weight"),
    [
        (X * np.nan, Y, None), (X, ["no", None], None), (X, ["no"], None), (X[:0], [], None), (X, None, None),
        ("text", Y, None), (X, Y, [1, -1]), (X, Y, ["heavy", "light"]), (X[:, :1], Y, None),
    ],
    ids=["nan", "label", "short", "empty", "no y", "text", "negative", "words", "columns"],
)  # fmt: skip
def test_refused_batch_leaves_no_trace(verb: str, learned: bool, rows: Any, y: Any, weight: Any) -> None:
    selector = Recorder()
    if learned:
        selector.partial_fit(X, Y)
    before = dict(vars(selector))
    if verb == "partial_fit" and not len(rows):
        selector.partial_fit(rows, y)  # a poll of a queue may return nothing
    else:
        with pytest.raises(ValueError, match=r"\w+"):
            getattr(selector, verb)(rows, y, sample_weight=weight)
    assert list(vars(selector)) == list(before)
    assert all(vars(selector)[name] is value for name, value in before.items())


@pytest.mark.parametrize(("verb", "fail_at"), [("fit", 0), ("partial_fit", 2)])
def test_interrupt_leaves_no_trace(verb: str, fail_at: int) -> None:
    selector = Recorder().partial_fit(X, Y).set_params(fail_at=fail_at)
    before = dict(vars(selector))
    with pytest.raises(KeyboardInterrupt):
        getattr(selector, verb)(X + 1, ["new", "labels"])
    assert vars(selector).keys() == before.keys()
    assert all(vars(selector)[name] is value for name, value in before.items())


def test_fit_forgets_what_was_learned_and_nothing_else() -> None:
    selector = Recorder().set_output(transform="pandas")
    selector._attached = "by someone else"
    selector.fit(pd.DataFrame(X, columns=list("abc")), Y).fit(X[:, :2], [1, 2])
    assert selector.n_seen_ == 2
    assert selector.classes_.tolist() == [1, 2]
    assert not hasattr(selector, "feature_names_in_")
    assert selector._attached == "by someone else"
    assert isinstance(selector.transform(X[:, :2]), pd.DataFrame)


def test_fit_needs_some_weight() -> None:
    with pytest.raises(DataError, match="Every sample_weight is zero"):
        Recorder().fit(X, Y, sample_weight=[0, 0])
    assert not hasattr(Recorder().partial_fit(X, Y, sample_weight=[0, 0]), "n_seen_")
    selector = Recorder().partial_fit(X, Y).partial_fit(X, [5, 6], sample_weight=[0, 0])
    assert (selector.n_seen_, selector.classes_.tolist()) == (2, np.unique(Y).tolist())
    for rows, labels, said in (
        (X, [0, None], "row 1"),
        (np.array([[1.0, 1, 1], [1, np.nan, 1]]), Y, "row 1"),
    ):
        with pytest.raises(DataError, match=said):
            selector.partial_fit(rows, labels, sample_weight=[1, 0])


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, lambda d: pl.DataFrame(d), lambda d: pa.table(d)],
    ids=["pandas", "polars", "arrow"],
)
def test_what_differs_in_the_columns_is_said(make: Any) -> None:
    columns = {"a": [1.0, 2.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}
    selector = Recorder().partial_fit(make(columns), Y)
    cases = [
        (["b", "a", "c"], "Column 0 is 'b', was 'a': Feature names must be in the same order."),
        (["a", "b"], "Feature names seen at fit time, yet now missing: 'c'."),
        (["a", "b", "c", "d"], "Feature names unseen at fit time: 'd'."),
        (["a", "B", "c"], "unseen at fit time: 'B'; Feature names seen at fit time, yet now missing: 'b'."),
        ([f"n{i}" for i in range(9)], "unseen at fit time: 'n0', 'n1', 'n2', 'n3', 'n4' ...; "),
    ]
    for names, said in cases:
        with pytest.raises(DataError) as caught:
            selector.partial_fit(make({name: [0.0, 1.0] for name in names}), Y)
        assert said in str(caught.value)
    assert selector.partial_fit(make(columns), Y).n_seen_ == 4


def test_both_numbers_of_features_are_said() -> None:
    with pytest.raises(DataError, match=r"X has 2 features, but Recorder is expecting 3 features"):
        Recorder().partial_fit(X, Y).partial_fit(X[:, :2], Y)


# -- in scikit-learn ---------------------------------------------------------------------------------------


def test_read_outs_need_rows_first() -> None:
    for read in (
        lambda s: s.scores_,
        lambda s: s.warming_up_,
        lambda s: s.get_support(),
        lambda s: s.transform(X),
    ):
        with pytest.raises(NotFittedError):
            read(Recorder())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transform_keeps_names(library: str) -> None:
    frame = (
        pd.DataFrame(X, columns=list("abc")) if library == "pandas" else pl.DataFrame(X, schema=list("abc"))
    )
    selector = Recorder().set_output(transform=library).fit(frame, Y)
    out = selector.transform(frame)
    assert type(out) is type(frame)
    assert list(out.columns) == ["b", "c"] == selector.get_feature_names_out().tolist()


def test_works_in_a_pipeline_and_in_cross_validation(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(200, 6))
    rows[:, 2] += 5.0
    y = rows[:, 2] > 5.0
    pipeline = make_pipeline(Recorder(1), StandardScaler(), LogisticRegression())
    assert cross_val_score(pipeline, rows, y).mean() > 0.95
    assert pipeline.fit(rows, y)[:-1].get_feature_names_out().tolist() == ["x2"]


def test_weights_can_be_routed() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        selector = Recorder().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(selector, LogisticRegression().set_fit_request(sample_weight=True))
        pipeline.fit(np.tile(X, (5, 1)), np.tile(Y, 5), sample_weight=np.ones(10))
        assert pipeline[0]._seen[0][2].tolist() == [1.0] * 10


def test_tags() -> None:
    tags = get_tags(Recorder())
    assert tags.input_tags.sparse
    assert tags.target_tags.required
    assert not tags.input_tags.allow_nan
