"""Parameters and data are checked at the door; the message says the value, the place and the mend."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

import tamis
from tamis import _validation
from tamis.catalog import find, find_learner
from tamis.errors import DataError
from tamis.evaluate import significance

NAN, INF = math.nan, math.inf


# -- parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, 1, 2, np.float32(1.5), np.int64(2)])
def test_number_inside(value: Any) -> None:
    _validation.check_number("alpha", value, low=0, high=2, open_low=True)


@pytest.mark.parametrize("value", [0, 2.1, -1, NAN, INF, "1", None, True, np.True_, [1], 1j])
def test_number_outside(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^alpha must be a number in \(0, 2\], got ") as caught:
        _validation.check_number("alpha", value, low=0, high=2, open_low=True)
    assert _validation.short_repr(value) in str(caught.value)


def test_bounds_are_said_as_they_are() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"low": 0, "open_high": True, "high": 1}, "a number in [0, 1)"),
        ({"low": 1, "integer": True}, "an integer in [1, inf)"),
        ({"high": 3, "integer": True}, "an integer in (-inf, 3]"),
    ]
    for bounds, said in cases:
        with pytest.raises(ValueError, match="must be") as caught:
            _validation.check_number("n", "x", **bounds)
        assert str(caught.value) == f"n must be {said}, got 'x'."


def test_integer_refuses_fractions() -> None:
    _validation.check_number("n", np.int8(3), low=1, integer=True)
    for value in (2.0, 2.5, True):
        with pytest.raises(ValueError, match="n must be an integer"):
            _validation.check_number("n", value, low=1, integer=True)


def test_open_end_refuses_infinity() -> None:
    _validation.check_number("rate", 1e300, low=0, open_high=True)
    with pytest.raises(ValueError, match=r"rate must be a number in \[0, inf\), got inf"):
        _validation.check_number("rate", INF, low=0, open_high=True)


def test_choice() -> None:
    for value in ("a", None, 1):
        _validation.check_choice("kind", value, ("a", None, 1))
    for value in ("b", 1.0, True, np.array([1, 2])):
        with pytest.raises(ValueError, match=r"^kind must be one of 'a', None, 1, got "):
            _validation.check_choice("kind", value, ("a", None, 1))


def test_is_integer() -> None:
    assert [_validation.is_integer(v) for v in (3, np.uint8(3), 3.0, True, np.False_, "3")] == [
        True,
        True,
    ] + 4 * [False]


# -- rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ready_rows_are_not_copied(dtype: Any) -> None:
    X = np.ones((3, 2), dtype=dtype)
    assert _validation.as_rows(X)[0] is X
    matrix = sp.csr_matrix(X)
    assert np.shares_memory(_validation.as_rows(matrix)[0].data, matrix.data)


FRAMES = [
    pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}), pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
    pa.table({"a": [1, 2], "b": [0.5, 1.5]}), pd.DataFrame({"a": [True, True], "b": [0.5, 1.5]}).assign(a=[1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__module__)
def test_frames_give_numbers_and_names(frame: Any) -> None:
    X, names = _validation.as_rows(frame)
    assert names == ["a", "b"]
    assert X.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert X.flags.c_contiguous
    assert X.dtype == np.float64


def test_numbered_columns_are_no_names() -> None:
    assert _validation.as_rows(pd.DataFrame(np.eye(2)))[1] is None


def test_frame_gaps_become_nan() -> None:
    frames: list[Any] = [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pl.DataFrame({"a": [1, None]}),
        pa.table({"a": [1, None]}),
    ]
    for frame in frames:
        X, _ = _validation.as_rows(frame)
        assert X[0, 0] == 1.0
        assert np.isnan(X[1, 0])


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"a": [1.0], "town": ["Ulm"]}), "Column 'town'"),
        (pl.DataFrame({"a": [1.0], "town": ["Ulm"]}), "Column 'town'"),
        (pa.table({"a": [1.0], "town": ["Ulm"]}), "Column 'town'"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}), "Column 'when'"),
        (pd.DataFrame({"kind": pd.Categorical(["x"])}), "Column 'kind'"),
        (np.array([[1.0, "Ulm"]], dtype=object), "Column 1 contains 'Ulm', which is text"),
        (np.array([["1", "Ulm"]]), "Column 0 contains '1', which is text"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "convert times to numbers"),
        (np.array([[1j]]), "Complex data not supported"),
        (sp.csr_matrix([[1j]]), "Complex data not supported"),
        (np.zeros(3), "Expected 2D array, got 1D array of shape (3,) instead. Reshape your data"),
        (np.zeros((1, 1, 1)), "Expected 2D array, got 3D array"),
        (5.0, "Expected 2D array, got 0D array"),
        (np.zeros((0, 3)), "0 sample(s)"),
        (np.zeros((3, 0)), "0 feature(s)"),
        (sp.csr_matrix((0, 3)), "0 sample(s)"),
        (sp.coo_array(np.zeros(3)), "2 dimensions"),
    ],
    ids=range(17),
)  # fmt: skip
def test_rows_that_are_no_numbers(frame: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        _validation.as_rows(frame)
    assert said in str(caught.value)


def test_objects_that_are_numbers_are_taken() -> None:
    assert _validation.as_rows(np.array([[1, True, 2.5]], dtype=object))[0].tolist() == [[1.0, 1.0, 2.5]]


def test_the_cell_that_is_no_number_is_named() -> None:
    with pytest.raises(TypeError, match=r"Column 0 contains \{'a': 1\}"):
        _validation.as_rows(np.array([[1.0], [{"a": 1}]], dtype=object))


def test_csr_is_put_in_order_without_touching_the_callers() -> None:
    parts = np.array([2.0, 1.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3])
    matrix = sp.csr_matrix(parts, shape=(1, 2))
    X, _ = _validation.as_rows(matrix)
    assert (X.data.tolist(), X.indices.tolist()) == ([1.0, 3.0], [0, 1])
    assert (matrix.data.tolist(), matrix.indices.tolist()) == ([2.0, 1.0, 1.0], [1, 0, 1])
    assert _validation.as_rows(sp.csc_matrix(np.eye(2, dtype=int)))[0].dtype == np.float64


# -- NaN and infinity --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3), (3, 5000)], ids=["short", "long"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_nonfinite_is_found(kind: Any, dtype: Any, shape: tuple[int, int], value: float) -> None:
    X = np.ones(shape, dtype=dtype)
    X[2, 1] = value
    what = "NaN" if math.isnan(value) else "infinity"
    with pytest.raises(DataError, match=f"Input X contains {what} in column 1 of row 2 of the batch"):
        _validation.reject_nonfinite(kind(X))
    with pytest.raises(DataError, match="in column 'b' of row 2"):
        _validation.reject_nonfinite(kind(X), ["a", "b", "c"])


def test_finite_values_pass_however_large() -> None:
    for dtype in (np.float64, np.float32):
        huge = np.full((50, 3), np.finfo(dtype).max, dtype=dtype)
        with np.errstate(all="raise"):
            _validation.reject_nonfinite(huge)
            _validation.reject_nonfinite(-huge)
            _validation.reject_nonfinite(np.full((5, 3), np.finfo(dtype).tiny, dtype=dtype))
            _validation.reject_nonfinite(sp.csr_matrix(huge))
            _validation.reject_nonfinite(np.tile(huge, (1, 100)))


def test_opposite_infinities_do_not_hide_one_another() -> None:
    X = np.array([[0.0, INF], [-INF, 0.0]])
    with pytest.raises(DataError, match="infinity in column 1 of row 0"):
        _validation.reject_nonfinite(X)


def test_nan_can_be_allowed() -> None:
    X = np.array([[NAN, 1.0], [2.0, 3.0]])
    _validation.reject_nonfinite(X, allow_nan=True)
    X[1, 1] = INF
    with pytest.raises(DataError, match="infinity in column 1 of row 1"):
        _validation.reject_nonfinite(X, allow_nan=True)


# -- targets and weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y", [[1, 2], (1, 2), np.array([1, 2]), pd.Series([1, 2]), pl.Series([1, 2]), pa.chunked_array([[1, 2]])]
)
def test_target_of_any_kind(y: Any) -> None:
    column = _validation.as_column(y, 2, "X")
    assert column.tolist() == [1, 2]
    assert column.shape == (2,)


def test_target_of_one_column_is_flattened_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert _validation.as_column(np.array([[1], [2]]), 2, "X").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (None, "Pick requires y to be passed, but the target y is None"),
        ([1, 2, 3], "X has 2 rows, y has 3"),
        ([[1, 2], [3, 4]], "y should be a 1d array, got an array of shape (2, 2)"),
        ([1j, 2], "Complex data not supported"),
        ([1.0, NAN], "The label of row 1 of the batch is missing (nan"),
        ([INF, 1.0], "row 0"),
        (["a", None], "row 1 of the batch is missing (None"),
        (pd.Series(["a", pd.NA], dtype="string"), "row 1 of the batch is missing (<NA>"),
        (np.array(["2020", "NaT"], dtype="M8[Y]"), "row 1"),
        (pl.Series(["a", None]), "row 1"),
    ],
)
def test_impossible_targets(y: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        _validation.as_column(y, 2, "Pick")
    assert said in str(caught.value)


def test_weights() -> None:
    assert _validation.as_weights(None, 2) is None
    assert _validation.as_weights([1, 2], 2).tolist() == [1.0, 2.0]
    assert _validation.as_weights(3, 2).tolist() == [3.0, 3.0]
    for weights, said in [
        ([1, 2, 3], "sample_weight has shape (3,), but the batch has 2 rows"),
        ([1, -2], "sample_weight[1] is -2.0"),
        ([NAN, 1], "sample_weight[0] is nan"),
        ([INF, 1], "sample_weight[0] is inf"),
    ]:
        with pytest.raises(DataError) as caught:
            _validation.as_weights(weights, 2)
        assert said in str(caught.value)


# -- labels ------------------------------------------------------------------------------------------------


def objects(labels: list[Any]) -> np.ndarray:
    array = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):  # NumPy would take tuples for rows
        array[i] = label
    return array


LABEL_KINDS = [
    st.integers(-5, 5), st.text(max_size=2), st.booleans(), st.integers(-3, 3).map(float), st.binary(max_size=2),
    st.integers(0, 3) | st.text(max_size=1), st.tuples(st.integers(0, 1), st.text(max_size=1)),
]  # fmt: skip


@given(
    batches=st.one_of(
        [st.lists(st.lists(kind, min_size=1, max_size=8), min_size=1, max_size=5) for kind in LABEL_KINDS]
    )
)
@settings(max_examples=300, deadline=None)
def test_codes_keep_their_meaning(batches: list[list[Any]]) -> None:
    classes = np.array([])
    known: list[Any] = []
    for batch in batches:
        y = objects(batch)
        codes, classes = _validation.encode_labels(y, classes)
        labels = classes.tolist()
        assert [labels[code] for code in codes] == batch
        assert labels[: len(known)] == known
        assert set(labels) == {*known, *batch}
        assert codes.dtype == np.int64
        known = labels


def test_zero_characters_at_the_end_of_a_label_count() -> None:
    _, classes = _validation.encode_labels(objects([b"", b"\x00"]), np.array([]))
    assert _validation.encode_labels(objects([b""]), classes)[0].tolist() == [0]


def test_new_labels_come_sorted_after_the_old() -> None:
    codes, classes = _validation.encode_labels(np.array([5, 3, 5]), np.array([]))
    assert (codes.tolist(), classes.tolist()) == ([1, 0, 1], [3, 5])
    codes, classes = _validation.encode_labels(np.array([9, 1, 3]), classes)
    assert (codes.tolist(), classes.tolist()) == ([3, 2, 0], [3, 5, 1, 9])
    codes, classes = _validation.encode_labels(np.array(["x", "y"]), classes)
    assert (codes.tolist(), classes.tolist()) == ([4, 5], [3, 5, 1, 9, "x", "y"])


def test_types_of_labels_are_kept() -> None:
    for labels in (
        [True, False],
        ["b", "a"],
        [1.0, 2.0],
        [b"x"],
        [1, "a", (2, 3)],
        [("a",), ("b", "c")],
        ["a\0"],
    ):
        _, classes = _validation.encode_labels(objects(labels), np.array([]))
        assert set(classes.tolist()) == set(labels)
        assert {type(label) for label in classes.tolist()} == {type(label) for label in labels}


def test_two_known_labels_in_any_dtype() -> None:
    classes = np.array(["no", "yes"])
    for y in (
        np.array(["yes", "no"]),
        np.array(["yes", "no"], dtype=object),
        np.array(["yes", "no"], dtype="U9"),
    ):
        codes, after = _validation.encode_labels(y, classes)
        assert codes.tolist() == [1, 0]
        assert after is classes


def test_missing_labels_are_refused_also_among_known_ones() -> None:
    for y in (np.array([0.0, NAN]), np.array([0, None], dtype=object)):
        with pytest.raises(DataError, match="The label of row 1 of the batch is missing"):
            _validation.encode_labels(y, np.array([0, 1]))


def test_continuous_labels_are_refused() -> None:
    with pytest.raises(DataError, match=r"y contains 0\.5, but a classification needs labels"):
        _validation.encode_labels(np.array([1.0, 0.5]), np.array([]))


def test_declared_classes() -> None:
    assert _validation.as_classes(["b", "a"]).tolist() == ["b", "a"]
    assert _validation.as_classes([1, "one"]).tolist() == [1, "one"]
    assert _validation.as_classes(np.array([2, 1])).tolist() == [2, 1]
    for classes, said in [([], "non-empty"), ([1, 2, 1], "twice"), (3, "non-empty"), ([[1, 2]], "non-empty")]:
        with pytest.raises(ValueError, match=said):
            _validation.as_classes(classes)


@pytest.mark.parametrize("key", ["fires", "alpha-investing", "gram-investing", "ifc2f"])
def test_two_columns_of_one_name_are_refused_in_every_family(key: str) -> None:
    import tamis

    frames = [
        pd.DataFrame(np.arange(60.0).reshape(20, 3), columns=["a", "b", "a"]),
        pa.table([np.arange(20.0)] * 3, names=["a", "b", "a"]),
    ]
    model = tamis.GramInvesting() if key == "gram-investing" else find(key).load()()
    learn = model.partial_fit if key == "gram-investing" else model.fit
    for frame in frames:
        with pytest.raises(DataError, match=r"^The frame has 2 columns named 'a': rename all but one\.$"):
            learn(frame, np.arange(20) % 2)


# -- memory that must not be written to --------------------------------------------------------------------


def test_kernels_are_compiled_once_for_rows_that_may_be_written_to_or_not() -> None:
    from tamis.summaries import class_moments

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)

    def scores(rows: Any) -> Any:
        return find("t-score").load()(1).fit(rows, y).scores_

    def compiled() -> list[int]:
        kernels = class_moments._add_dense, class_moments._update_csr
        return [len(getattr(kernel, "signatures", ())) for kernel in kernels]

    plain = scores(X), scores(sp.csr_matrix(X))
    before = compiled()
    np.testing.assert_array_equal(scores(frozen), plain[0])
    np.testing.assert_array_equal(scores(wide), plain[1])
    assert compiled() == before
    assert not frozen.flags.writeable
    assert wide.indices.dtype == np.int64


def test_rows_outlive_the_array_that_lends_them() -> None:
    frozen = np.arange(6.0).reshape(2, 3)
    frozen.flags.writeable = False
    rows = _validation.as_rows(frozen)[0]
    assert np.shares_memory(rows, frozen)
    assert rows.flags.writeable
    del frozen
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("form", [str, int, lambda number: (number, "a")])
def test_labels_that_never_repeat_are_refused(form: Any) -> None:
    def labels(numbers: Any) -> Any:
        column = np.empty(len(numbers), dtype=object)
        column[:] = [form(number) for number in numbers]
        return column if form not in (str, int) else np.array(column.tolist())

    model = find("fisher").load()(2)
    X = np.random.default_rng(0).normal(size=(100, 4))
    for start in range(0, 1000, 100):
        model.partial_fit(X, labels(range(start, start + 100)))
    before = tamis.dumps(model)
    with pytest.raises(
        DataError, match=r"more than 1,000 different labels, such as .*bin the target.*classes=\.$"
    ):
        model.partial_fit(X, labels(range(1000, 1100)))
    assert tamis.dumps(model) == before
    declared = find("fisher").load()(2).partial_fit(X, labels(range(100)), classes=labels(range(1500)))
    assert len(declared.partial_fit(X, labels(range(1400, 1500))).classes_) == 1500


@pytest.mark.parametrize("key", ["auto", "discuss", "fcbf", "nb", "hoeffding-tree", "knn"])
def test_methods_refuse_labels_that_never_repeat(key: str) -> None:
    entry = find_learner(key) if key in ("nb", "hoeffding-tree", "knn") else find(key)
    model, X = entry.load()(), np.random.default_rng(0).normal(size=(1100, 3))
    with pytest.raises(DataError, match="more than 1,000 different labels"):
        model.partial_fit(X, np.arange(1100))


def test_a_text_is_no_list_of_names(rng):
    table, X, y = rng.normal(size=(6, 2)), rng.normal(size=(20, 2)), np.arange(20) % 2
    for call in (
        lambda: significance.friedman(table, "ab"),
        lambda: significance.wilcoxon(table, names="ab"),
        lambda: tamis.streams.ArrayStream(X, y, "ab"),
        lambda: tamis.streams.BatchStream([(X, y)], "ab"),
        lambda: tamis.Watch(feature_names="ab"),
        lambda: tamis.AlphaInvesting().fit(X[:, :1], y).offer_many(X, "ab"),
        lambda: tamis.loads(tamis.dumps(1), classes="ab"),
    ):
        with pytest.raises(TypeError, match=r"must be a list, got 'ab': pass \['ab'\]"):
            call()


def test_weights_beyond_the_limits_are_rejected_before_they_overflow(rng):
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 2
    for name in ("Auto", "ForwardPartialCorrelation", "GiniIndex", "AlphaInvesting"):
        model = getattr(tamis, name)()
        with pytest.raises(DataError, match=r"\[0\] is 1e\+100: weights must be 0 or from 1e-100 to 1e\+15"):
            model.fit(X, y, sample_weight=np.full(300, 1e100))
        assert np.isfinite(getattr(model.fit(X, y, sample_weight=np.full(300, 1e15)), "scores_", 0.0)).all()
