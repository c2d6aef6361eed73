"""What comes in at the door: every estimator of the catalogue takes it, or refuses it in one sentence of ours."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import tamis
from tamis import FIRES, AdaptiveIFC2F, Auto, Perceptron, StreamPipeline, evaluate, prequential
from tamis._validation.parameters import allowed, check_parameters
from tamis.base import Inputs
from tamis.catalog import CATALOG, LEARNERS
from tamis.drift import DETECTORS
from tamis.errors import DataError, TamisError
from tamis.streams import ArrayStream

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 4)), 2)
Y = (X[:, 1] > 0).astype(int)
AT = np.arange(240).reshape(60, 4) == 13
OWN = {entry.key: entry for entry in (*CATALOG, *LEARNERS) if entry.module.startswith("tamis.")}
KEYS = list({entry.name: key for key, entry in reversed(OWN.items())}.values())  # one of each class


def make(key: str) -> Any:
    if key == "gram-investing":
        return tamis.GramInvesting()
    model = OWN[key].load()(**dict(OWN[key].parameters))
    return model.set_params(random_state=0) if "random_state" in model.get_params(deep=False) else model


def learn(key: str, X: Any, y: Any) -> Any:
    """Return a model that has learned from the rows in one call."""
    model = make(key)
    if key == "gram-investing":
        X = X if hasattr(X, "columns") else {f"c{j}": X[:, j] for j in range(4)}
        return model.partial_fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def said(model: Any, X: Any) -> Any:
    for name in ("scores_", "selected_", "predict"):
        if hasattr(model, name):
            found = model.predict(X) if name == "predict" else getattr(model, name)
            return [str(value) for value in found]  # NaN as well
    raise AssertionError(model)


def refusal(call: Callable[..., Any], *arguments: Any) -> str:
    """Return the one sentence with which something is refused."""
    with pytest.raises((TamisError, TypeError, ValueError)) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    assert len(message) < 400
    assert caught.traceback[-1].path.is_relative_to(tamis.__path__[0]), caught.traceback[-1].path
    return message


ALL = [*KEYS, "gram-investing"]


@pytest.mark.parametrize("key", ALL)
def test_what_is_masked_is_nan(key: str) -> None:
    holes = np.zeros(X.shape, dtype=bool)
    holes[[3, 30], [0, 2]] = True
    masked, gaps = np.ma.masked_array(X, holes), np.where(holes, np.nan, X)
    assert said(learn(key, np.ma.masked_array(X, False), Y), X) == said(learn(key, X, Y), X)
    try:
        model = learn(key, gaps, Y)
    except ValueError:
        assert refusal(learn, key, masked, Y) == refusal(learn, key, gaps, Y)
        return
    assert said(learn(key, masked, Y), masked) == said(model, gaps)
    if key != "gram-investing":
        assert said(learn(key, list(masked), Y), list(masked)) == said(model, gaps)


FRAME = pd.DataFrame(X, columns=list("abcd"))
CELLS = [entry.key for entry in CATALOG if entry.family == "cells"]
TAKE_TEXT = [*CELLS, "auto", "forward", "fires", "joint"]  # of a frame, as categories
NO_ROWS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "None": (None, ("X is None: pass an array",)),
    "a name": ("rows.csv", ("X is the text 'rows.csv'", "a file is read by tamis.open_file")),
    "a dictionary": (FRAME.to_dict("list"), ("X is a dict", "pandas.DataFrame")),
    "dictionaries": (FRAME.to_dict("records"), ("X is a list of dicts", "pandas.DataFrame")),
    "a lazy frame": (pl.from_pandas(FRAME).lazy(), ("X is a LazyFrame", "its collect()")),
    "a generator": ((row for row in X), ("X is a generator: pass an array",)),
    "a sparse frame": (
        FRAME.astype(pd.SparseDtype("float", 0.0)),
        ("Column 'a' of X is a pandas Sparse column", "X.sparse.to_coo().tocsr()", "X.astype(float)"),
    ),
}


@pytest.mark.parametrize("key", KEYS)
def test_what_has_no_rows_is_named_with_what_to_pass(key: str) -> None:
    model = learn(key, X, Y)
    again = [getattr(model, verb) for verb in ("predict", "transform", "offer_many") if hasattr(model, verb)]
    for rows, words in NO_ROWS.values():
        # Of a frame, a column selector takes the selected columns, whatever the others are.
        is_picked = hasattr(model, "offer") and isinstance(rows, pd.DataFrame)
        calls = [call for call in again if not (is_picked and call.__name__ == "transform")]
        for message in (refusal(learn, key, rows, Y), *(refusal(call, rows) for call in calls)):
            assert all(word in message for word in words), message
    for call in (make(key).start(Y).offer,) if hasattr(model, "offer") else ():
        assert refusal(call, None) == "The column is None: pass an array of shape (n_rows,) or a series."
        assert "The column is a dict" in refusal(call, {"a": 1})
        assert "The column is the text 'heat'" in refusal(call, "heat")


def test_what_is_no_stream_is_named_with_what_to_pass() -> None:
    for source, kind in (
        (None, "None"),
        ({"a": 1}, "a dict"),
        (X, "a ndarray"),
        (sp.csr_matrix(X), "a csr_matrix"),
    ):
        message = refusal(evaluate.prequential, source, tamis.FisherScore(1))
        assert f"got {kind}: pass the pair (X, y), or open a file with tamis.open_file" in message
    for frame in (FRAME, pl.from_pandas(FRAME).lazy()):
        message = refusal(evaluate.prequential, frame, tamis.FisherScore(1))
        assert message == 'The frame needs the name of its label column: pass label="...".'
    message = refusal(evaluate.prequential, "rows.csv", tamis.FisherScore(1))
    assert (
        "'rows.csv' is neither a file nor the name of a data set: give the path of a file to tamis.open"
        in message
    )
    for rows, words in NO_ROWS.values():
        message = refusal(evaluate.prequential, (rows, Y), tamis.FisherScore(1))
        assert all(word in message for word in words), message


@pytest.mark.parametrize("key", ALL)
def test_a_label_that_is_masked_is_refused(key: str) -> None:
    y = np.ma.masked_array(Y, np.arange(60) == 7)
    if not getattr(make(key), "accepts", Inputs()).labels:
        assert said(learn(key, X, y), X) == said(learn(key, X, Y), X)  # no label is used
        return
    assert "y[7] is masked: drop the rows" in refusal(learn, key, X, y)
    assert said(learn(key, X, np.ma.masked_array(Y, False)), X) == said(learn(key, X, Y), X)


ROWS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a large integer": (10**400, ("integer of 1329 bits", "cannot represent")),
    "text": ("7", ("contains '7', which is text",)),
    "bytes": (b"7", ("contains b'7', which is text",)),
    "a dictionary": ({"a": 1}, ("contains {'a': 1}, which is not a number",)),
    "a list": ([1.0], ("contains [1.0]",)),
    "a large fraction": (Fraction(10**400), ("cannot represent",)),
    "a complex number": (1j, ("contains 1j, which is not a number",)),
}


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("key", ALL)
def test_values_that_are_no_numbers_are_named_with_their_column(key: str, what: str) -> None:
    value, words = ROWS[what]
    table = X.astype(object)
    table[5, 2] = value
    names = ["c0", "c1", "c2", "c3"]
    frames = [] if what == "text" and key in TAKE_TEXT else [pd.DataFrame(table, columns=names)]
    for rows in (table, *frames):
        message = refusal(learn, key, rows, Y)
        assert all(word in message for word in words), message
        assert ("'c2'" if hasattr(rows, "columns") or key == "gram-investing" else "Column 2") in message


@pytest.mark.parametrize("key", ALL)
def test_text_bytes_and_doubled_columns_are_refused(key: str) -> None:
    names = ["c0", "c1", "c2", "c3"]
    for kind in ("U9", "S9"):
        assert "which is text" in refusal(learn, key, X.astype(kind), Y)
    assert "2 columns named 'c0'" in refusal(learn, key, pd.DataFrame(X, columns=["c0", "c1", "c0", "c3"]), Y)
    if key not in TAKE_TEXT:
        assert "'c2'" in refusal(learn, key, pd.DataFrame(X, columns=names).assign(c2="7"), Y)


LABELS: dict[str, Any] = {
    "mixed": [1, "one"], "huge": [10**400, -(10**400)], "bytes": [b"a", b"b"], "tuples": [(1, 2), ("a",)],
    "lists": [[1], [2]], "dictionaries": [{}, {1: 2}], "true and text": [True, "yes"], "fractions": [0.25, 0.75],
    "none": [None, 1], "infinite": [np.inf, 1.0], "complex": [1j, 2j], "arrays": [np.zeros(2), np.ones(2)],
    "times": [np.datetime64("2020"), np.datetime64("NaT", "D")],
}  # fmt: skip


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("key", ALL)
def test_labels_of_any_kind_are_learned_or_refused_in_one_sentence(key: str, kind: str) -> None:
    y = np.empty(60, dtype=object)
    for i, at in enumerate(Y.tolist()):
        y[i] = LABELS[kind][at]
    try:
        model = learn(key, X, y)
    except Exception:
        refusal(learn, key, X, y)
        return
    if hasattr(model, "predict") and key != "gram-investing":
        assert {type(label) for label in model.predict(X).tolist()} <= {type(v) for v in LABELS[kind]}


ODD_ROWS: dict[str, Any] = {
    "of different lengths": [[1.0], [1.0, 2.0]] * 30, "a set": {1.0, 2.0}, "text": "rows", "none": None, "empty": [],
    "3-D": np.zeros((60, 2, 2)), "complex": X * 1j, "times": X.astype("M8[s]"), "a record": np.zeros((60, 4), "f8,i4"),
    "sparse text": [["a", "b"]] * 60, "a generator": (row for row in X), "no columns": np.zeros((60, 0)),
    "infinite": np.where(AT, np.inf, X), "long doubles": X.astype(np.longdouble) * np.longdouble("1e400"),
    "sparse infinity": sp.csr_matrix(np.where(AT, -np.inf, X)), "a number": 5,
    "nothing but None": [[None] * 4] * 60,
}  # fmt: skip


@pytest.mark.parametrize("what", ODD_ROWS)
@pytest.mark.parametrize("key", KEYS)
def test_rows_of_no_kind_are_refused_in_one_sentence(key: str, what: str) -> None:
    try:
        learn(key, ODD_ROWS[what], Y)
    except Exception:
        refusal(learn, key, ODD_ROWS[what], Y)
    else:
        assert what in ("nothing but None", "infinite", "sparse infinity", "long doubles", "empty")
        assert what in ("nothing but None", "empty") or key == "random"


# -- streams, detectors, measures ------------------------------------------------------------------------------


COLUMN_NAMES: dict[str, Any] = {
    "a number and a text": [0, 1, 2, "state"],
    "anything": [None, 1.5, ("a", 0), "x"],
    "a number and its text": [0, "0", 1, "1"],
    "levels": pd.MultiIndex.from_tuples([("a", 0), ("a", 1), ("b", 0), ("c", "")]),
}


@pytest.mark.parametrize("what", COLUMN_NAMES)
@pytest.mark.parametrize("key", KEYS)
def test_columns_may_have_names_of_any_type(key: str, what: str) -> None:
    frame = pd.DataFrame(X, columns=COLUMN_NAMES[what])
    target = X[:, 0] - X[:, 1] if "regression" in OWN[key].targets and len(OWN[key].targets) == 1 else Y
    model, plain = learn(key, frame, target), learn(key, X, target)
    assert said(model, frame) == said(plain, X)
    if hasattr(plain, "transform"):
        np.testing.assert_array_equal(model.transform(frame), plain.transform(X))
    if hasattr(plain, "partial_fit"):
        assert said(model.partial_fit(frame, target), frame) == said(plain.partial_fit(X, target), X)


def test_a_frame_whose_label_alone_has_a_text_for_a_name_runs_like_the_array() -> None:
    rows = RNG.normal(size=(600, 4))
    y = (rows[:, 1] > 0).astype(int)
    frame = pd.DataFrame(rows).assign(state=y)
    of_frame = evaluate.prequential(frame, tamis.FIRES(2), label="state").summary()
    of_array = evaluate.prequential((rows, y), tamis.FIRES(2)).summary()
    assert [of_frame[name] for name in ("accuracy", "kappa")] == [
        of_array[name] for name in ("accuracy", "kappa")
    ]
    assert "--select" in str(evaluate.recommend(frame, label="state", max_rows=600))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("selector", [tamis.FIRES(2), tamis.FisherScore(2)], ids=["FIRES", "FisherScore"])
def test_the_types_of_a_wide_frame_are_read_once(selector: Any, library: str, monkeypatch: Any) -> None:
    """The time of a batch is linear in its columns: reading all types for each column is quadratic."""
    import narwhals.stable.v2 as nw

    read: list[int] = []
    schema = nw.DataFrame.schema.fget
    monkeypatch.setattr(
        nw.DataFrame, "schema", property(lambda frame: read.append(len(frame.columns)) or schema(frame))
    )
    frame = pd.DataFrame(RNG.normal(size=(60, 500))).rename(columns=str)
    clone(selector).partial_fit(frame if library == "pandas" else pl.from_pandas(frame), Y)
    assert sum(read) <= 500


def damaged(what: str, kind: str = "csr") -> Any:
    """Return a sparse matrix of which an index or a number of stored values is wrong."""
    found = sp.csr_array(X).asformat(kind)
    if kind == "coo":
        found.row[7] = {"beyond": 60, "negative": -1}[what]
    elif what in ("beyond", "negative"):
        found.indices[7] = {"beyond": 60, "negative": -1}[what]
    elif what == "descending":
        found.indptr[3] = found.indptr[4] + 2
    elif what == "too long":
        found.indptr[-1] += 5
    else:
        found.data = found.data[:-1]
    return found


DAMAGED = [("csr", what) for what in ("beyond", "negative", "descending", "too long", "values missing")]
DAMAGED += [(kind, what) for kind in ("csc", "bsr", "coo") for what in ("beyond", "negative")]


@pytest.mark.parametrize(("kind", "what"), DAMAGED)
def test_a_damaged_sparse_matrix_is_refused_before_it_is_read(kind: str, what: str) -> None:
    for key in ("fires", "t-score", "mi", "etana", "osfs", "sparse-fsa", "river-naive-bayes"):
        message = refusal(learn, key, damaged(what, kind), Y)
        assert f"X is a {kind.upper()} matrix whose indices do not match its shape (60, 4)" in message
    for key in ("t-score", "osfs", "sparse-fsa"):
        assert "do not match" in refusal(learn(key, X, Y).transform, damaged(what, kind))
    for key in ("ofs", "etana", "sparse-fsa"):
        assert "do not match" in refusal(learn(key, X, Y).predict, damaged(what, kind))


WEIGHTS = {"tiny": 1e-320, "huge": 1e300, "infinite": np.inf, "negative": -1.0}


@pytest.mark.parametrize("what", WEIGHTS)
@pytest.mark.parametrize("key", [key for key in ALL if key != "gram-investing"])
def test_weights_that_cannot_be_summed_are_refused(key: str, what: str) -> None:
    weight = np.ones(60)
    weight[11] = WEIGHTS[what]
    model = make(key)
    if "sample_weight" in inspect.signature(model.fit).parameters:
        assert "sample_weight[11] is" in refusal(lambda: model.fit(X, Y, sample_weight=weight))


@pytest.mark.parametrize("key", ["discuss", "joint", "fcbf", "osfs", "ofs-density"])
def test_weights_that_repeat_rows_are_whole_and_few(key: str) -> None:
    weight = np.ones(60)
    weight[11] = 0.5
    assert "sample_weight[11] is 0.5: this method counts rows" in refusal(
        lambda: make(key).fit(X, Y, sample_weight=weight)
    )
    weight[11] = 1e12
    assert "100,000,000 rows at most" in refusal(lambda: make(key).fit(X, Y, sample_weight=weight))


ODD_TO_TRANSFORM = {"a number": 3.0, "nothing": None, "a column": X[:, 0], "infinity": X + np.inf}


@pytest.mark.parametrize("what", ODD_TO_TRANSFORM)
@pytest.mark.parametrize(
    "key", [key for key in KEYS if OWN[key].family in ("rows", "columns") or key == "sparse-fsa"]
)
def test_what_cannot_be_transformed_is_refused_in_one_sentence(key: str, what: str) -> None:
    model = learn(key, X, Y)
    refusal(model.transform, ODD_TO_TRANSFORM[what])


def test_streams_and_runs_refuse_masked_labels() -> None:
    y = np.ma.masked_array(Y, np.arange(60) == 7)
    assert "y[7] is masked" in refusal(ArrayStream, X, y)
    assert "y[7] is masked" in refusal(evaluate.prequential, (X, y), tamis.FIRES(2))
    assert "y[7] is masked" in refusal(evaluate.prequential, [(X, y)], tamis.FIRES(2))
    assert "sample_weight[7] is masked" in refusal(
        tamis.FIRES(2).fit, X, Y, np.ma.masked_array(Y + 1.0, y.mask)
    )


M = np.ma.masked_array([0, 1, 1], [False, False, True])
P = [0, 1, 1]
MASKED: dict[str, Callable[[], Any]] = {
    "RunningMetrics": lambda: evaluate.RunningMetrics().update(M, P),
    "RunningMetrics predicted": lambda: evaluate.RunningMetrics().update(P, M),
    "RunningErrors": lambda: evaluate.RunningErrors().update(M, P),
    "RunningErrors predicted": lambda: evaluate.RunningErrors().update(P, M),
    "SlidingAUC": lambda: evaluate.SlidingAUC().update(M, P),
    "SlidingAUC scores": lambda: evaluate.SlidingAUC().update(P, M),
    "SlidingPrecisionRecall": lambda: evaluate.SlidingPrecisionRecall().update(M, P),
    "SlidingPrecisionRecall scores": lambda: evaluate.SlidingPrecisionRecall().update(P, M),
    "SlidingStability": lambda: evaluate.SlidingStability(3).add(M),
    "selection_accuracy": lambda: evaluate.selection_accuracy(M, P, 3),
    "selection_accuracy relevant": lambda: evaluate.selection_accuracy([1], M, 3),
    "detection_rate": lambda: evaluate.detection_rate(M, [1]),
    "nogueira": lambda: evaluate.nogueira([M, M]),
    "jaccard_similarity": lambda: evaluate.jaccard_similarity(np.ma.stack([M, M])),
    "recovery": lambda: evaluate.recovery([1, 2, 3], M, drifts=[1]),
    "detections": lambda: evaluate.detections([1], M),
    "detector": lambda: DETECTORS["adwin"]().update_many(M),
}  # fmt: skip


@pytest.mark.parametrize("key", DETECTORS)
@pytest.mark.parametrize("value", [np.zeros(3), "x", None, np.nan, [1.0]], ids=str)
def test_a_detector_takes_one_number_at_a_time(key: str, value: Any) -> None:
    detector = DETECTORS[key]()
    detector.update(0.0)
    assert "was given" in refusal(detector.update, value)
    assert "is masked: drop the rows" in refusal(detector.update, np.ma.masked)
    assert detector.n_seen == 1


@pytest.mark.parametrize("selector", [tamis.TScore(1), tamis.DISCUSS(1)])
@pytest.mark.parametrize("nothing", [np.ma.masked, np.ma.masked_array(7.0, True)], ids=["constant", "value"])
def test_a_masked_value_of_a_row_with_names_is_nan(selector: Any, nothing: Any) -> None:
    def scores(value: Any) -> list[float]:
        rows = [{"a": float(i), "b": value if i == 2 else i % 2} for i in range(6)]
        return tamis.ByName(clone(selector)).fit(rows, [i % 2 for i in range(6)]).scores_.tolist()

    assert scores(nothing) == scores(np.nan)
    with pytest.raises(TamisError, match="contains NaN in column 'b' of row 2"):
        tamis.ByName(tamis.OFS(1)).fit([{"b": 1.0}, {"b": 0.0}, {"b": nothing}], [0, 1, 0])


@pytest.mark.parametrize("what", MASKED)
def test_measures_and_detectors_refuse_masked_values(what: str) -> None:
    assert "is masked: drop the rows" in refusal(MASKED[what])


# -- parameters --------------------------------------------------------------------------------------------

NONSENSE: list[Any] = [
    "nonsense", "", b"x", "x" * 10**6, {}, [], [1], [[1], [1, 2]], (), set(), object(), int, lambda: None, range(3),
    -1, 2.5, -1e300, 10**30, 10**400, -(10**400), 1j, Fraction(1, 3), np.nan, np.inf, -np.inf, np.float64("nan"),
    True, False, np.True_, None, np.zeros(3), np.zeros((2, 2)), pd.DataFrame({"a": [1]}), np.ma.masked,
    np.datetime64("2020"),
]  # fmt: skip
PARAMETERS = [(key, name) for key in ALL for name in make(key).get_params(deep=False)]


@pytest.mark.parametrize(("key", "name"), PARAMETERS)
def test_every_parameter_is_declared_and_refuses_nonsense(key: str, name: str) -> None:
    assert name in allowed(type(make(key))), f"{name} has no entry in _allowed of {type(make(key)).__name__}"
    refused = 0
    for value in NONSENSE:
        model = make(key).set_params(**{name: value})
        try:
            check_parameters(model)
        except (TypeError, ValueError, TamisError) as error:
            assert not [left for left in vars(model) if left.endswith("_")]
            message = str(error)
            assert name in message
            assert "\n" not in message
            assert message.endswith(".")
            assert len(message) < 900, message
            refused += 1
            learn_refuses(model, key, message)
    assert refused > 15


def rows_for(key: str) -> Any:
    return {f"c{j}": X[:, j] for j in range(4)} if key == "gram-investing" else X


def learn_refuses(model: Any, key: str, message: str) -> None:
    rows = rows_for(key)
    for verb in ("fit", "partial_fit", "start"):
        if not hasattr(type(model), verb):
            continue
        with pytest.raises(Exception) as caught:  # noqa: PT011
            getattr(model, verb)(*([Y] if verb == "start" else [rows, Y]))
        assert str(caught.value) == message


@pytest.mark.parametrize("key", ALL)
def test_a_parameter_that_is_changed_is_looked_at_again(key: str) -> None:
    model = learn(key, X, Y)
    name = next(iter(allowed(type(model))))
    model.set_params(**{name: "nonsense"})
    rows = rows_for(key)
    with pytest.raises((ValueError, TamisError), match=name):
        getattr(model, "partial_fit" if hasattr(model, "partial_fit") else "fit")(rows, Y)


# -- numbers that are written as text ------------------------------------------------------------------------


DOORS = {
    "selector": lambda X, y: FIRES(2).fit(X, y),
    "Auto": lambda X, y: Auto().fit(X, y),
    "pipeline": lambda X, y: StreamPipeline(FIRES(2), Perceptron()).fit(X, y),
    "prequential": lambda X, y: prequential((X, y), FIRES(2), batch_size=20),
    "acquisition": lambda X, y: AdaptiveIFC2F(0.01).fit(X, y),
}


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("form", ["{:.3f}", "-{:.0f},25 ", "1.{:03.0f},5"])
@pytest.mark.parametrize("door", DOORS)
def test_numbers_written_as_text_are_no_categories(door, form, library):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) * 100, np.arange(60) % 2
    frame = pd.DataFrame(X, columns=["heat", "sound", "light"])
    frame["sound"] = [form.format(abs(value)) for value in X[:, 1]]
    rows = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pa.Table.from_pandas(frame),
    }
    with pytest.raises(
        DataError, match=r"Column 'sound' contains '[^']*' and other numbers written as text: convert"
    ):
        DOORS[door](rows[library](), y)


@pytest.mark.parametrize("door", DOORS)
def test_names_that_look_like_numbers_may_be_categories(door):
    y = np.arange(60) % 2
    versions = pd.DataFrame({"version": [f"{1 + v}.0" for v in y], "heat": np.arange(60.0)})
    DOORS[door](versions, y)  # few of them
    parts = [f"{10 + i}.{i}" for i in range(60)]
    DOORS[door](pd.DataFrame({"part": pd.Categorical(parts), "heat": np.arange(60.0)}), y)  # declared


@pytest.mark.slow
def test_no_call_of_a_newcomer_ends_in_a_crash():
    walk = [sys.executable, Path(__file__).parents[1] / "experiments" / "first_contact.py", "calls"]
    done = subprocess.run(walk, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
