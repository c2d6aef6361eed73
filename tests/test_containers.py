"""The same table through every container: the same bits, or the same sentence that names the column."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import json
import re
import warnings
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.linear_model import SGDClassifier

import tamis
from tamis.errors import TamisError
from tamis.streams import as_stream, open_file
from tamis.watch import InputDrift, Watch

N = 6
HOURS = [dt.datetime(2024, 10, 27, hour, 30) for hour in range(N)]  # Berlin: 02:30 occurs twice
ZONED = [hour.replace(tzinfo=dt.UTC) for hour in HOURS]
SECONDS = [hour.timestamp() for hour in ZONED]
NUMBERS = [0.5, -1.0, 2.0, 0.25, -3.0, 1.5]
LABELS = ["u", "v", "u", "v", "u", "v"]
NAN = float("nan")

# The values of a column, and what a stream makes of them.
COLUMNS: dict[str, tuple[list[Any], list[float]]] = {
    "numbers": ([1.5, None, 2.0, 0.0, -1.0, 3.0], [1.5, NAN, 2.0, 0.0, -1.0, 3.0]),
    "integers": ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
    "integers and missing": ([None, 2, 3, 4, 5, 6], [NAN, 2, 3, 4, 5, 6]),
    "large integers": ([2**53 + 2, 2, 3, 4, 5, 6], [2.0**53 + 2, 2, 3, 4, 5, 6]),
    "rounded integers": ([2**53 + 1, 2, 3, 4, 5, 6], [2.0**53, 2, 3, 4, 5, 6]),
    "booleans": ([True, False, True, True, False, True], [1, 0, 1, 1, 0, 1]),
    "booleans and missing": ([True, None, True, True, False, True], [1, NAN, 1, 1, 0, 1]),
    "decimals": ([decimal.Decimal("1.5"), None, *[decimal.Decimal("2.25")] * 4], [1.5, NAN, *[2.25] * 4]),
    "text": (["b", None, "a", "b", "c", "a"], [0, 1, 2, 0, 3, 2]),
    "text after a missing one": ([None, "b", "a", "b", "c", "a"], [0, 1, 2, 1, 3, 2]),
    "text of digits": (["1", "2", "3", "1", "2", "3"], [0, 1, 2, 0, 1, 2]),
    "times": ([None, *HOURS[1:]], [NAN, *SECONDS[1:]]),
    "times of UTC": (ZONED, SECONDS),
    "times of Berlin": ([hour.astimezone(ZoneInfo("Europe/Berlin")) for hour in ZONED], SECONDS),
    "dates": ([None, *[hour.date() for hour in HOURS[1:]]], [NAN, *[SECONDS[0] - 1800] * 5]),
    "times of day": ([hour.time() for hour in HOURS], [1800.0 + 3600 * i for i in range(N)]),
    "durations": ([None, *[dt.timedelta(hours=i, microseconds=3) for i in range(1, N)]],
                  [NAN, *[3600 * i + 3e-6 for i in range(1, N)]]),
    "nothing": ([None] * N, [NAN] * N),
}  # fmt: skip
NEITHER = ", which is neither a number, text nor a time: drop or convert it."
REJECTED: dict[str, tuple[list[Any], str]] = {
    "lists of one": ([[1.0]] * N, f"Column 'c' contains [1.0]{NEITHER}"),
    "lists": ([[1.0, 2.0]] * N, f"Column 'c' contains [1.0, 2.0]{NEITHER}"),
    "lists of text": ([["a"]] * N, f"Column 'c' contains ['a']{NEITHER}"),
    "empty lists": ([None, *[[]] * 5], f"Column 'c' contains []{NEITHER}"),
    "dicts": ([{"p": 1}] * N, f"Column 'c' contains {{'p': 1}}{NEITHER}"),
    "text among numbers": ([1, "a", 2, 3, 4, 5], "Row 2 has 'a' for 'c', which began as numbers: convert it to a"
                           " number, or every value of the column to text."),
    "zones in some": ([HOURS[0], *ZONED[1:]], f"Row 2 has {ZONED[1]!r} for 'c', which began as times without a zone:"
                      " convert it to these, or every value of the column to text."),
}  # fmt: skip


def columns_of(values: list[Any]) -> dict[str, list[Any]]:
    return {"z": NUMBERS, "c": values, "y": LABELS}


def rows_of(values: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip("zcy", row, strict=True)) for row in zip(NUMBERS, values, LABELS, strict=True)]


def pandas_frame(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns_of(values))


def pandas_of_objects(values: list[Any]) -> pd.DataFrame:
    return pandas_frame(values).assign(c=pd.Series(values, dtype=object))


def pandas_nullable(values: list[Any]) -> pd.DataFrame:
    return pandas_frame(values).convert_dtypes()


def pandas_of_arrow(values: list[Any]) -> pd.DataFrame:
    return arrow_table(values).to_pandas(types_mapper=pd.ArrowDtype)


def polars_frame(values: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(columns_of(values))


def polars_lazy(values: list[Any]) -> pl.LazyFrame:
    return polars_frame(values).lazy()


def arrow_table(values: list[Any]) -> pa.Table:
    return pa.table(columns_of(values))


def arrow_chunks(values: list[Any]) -> pa.Table:
    table = arrow_table(values)
    return pa.concat_tables([table[:2], table[2:]])


def record_batch(values: list[Any]) -> pa.RecordBatch:
    return arrow_table(values).to_batches()[0]


def batch_reader(values: list[Any]) -> pa.RecordBatchReader:
    return arrow_table(values).to_reader(max_chunksize=4)


def relation(values: list[Any]) -> Any:
    return duckdb.from_arrow(arrow_table(values))


def pandas_parts(values: list[Any]) -> Any:
    frame = pandas_of_objects(values)
    return iter([frame[:4], frame[:0], frame[4:]])


def polars_parts(values: list[Any]) -> list[Any]:
    frame = polars_frame(values)
    return [frame[:4], frame[4:].select("y", "c", "z")]


def pair(values: list[Any]) -> Any:
    return polars_frame(values).select("z", "c"), LABELS


def pairs_of_frames(values: list[Any]) -> Any:
    frame = pandas_frame(values)[["z", "c"]]
    return [(frame[:3], LABELS[:3]), (frame[3:], LABELS[3:])]


def pairs_of_dicts(values: list[Any]) -> Any:
    return [({"z": row["z"], "c": row["c"]}, row["y"]) for row in rows_of(values)]


def iterator_of_dicts(values: list[Any]) -> Any:
    return iter(rows_of(values))


def parquet(values: list[Any], path: Any) -> Any:
    pa.parquet.write_table(arrow_table(values), path / "t.parquet")
    return open_file(path / "t.parquet", label="y", missing="keep")


def feather(values: list[Any], path: Any) -> Any:
    pa.feather.write_feather(arrow_table(values), path / "t.arrow", compression="uncompressed")
    return open_file(path / "t.arrow", label="y", missing="keep")


def csv_file(values: list[Any], path: Any) -> Any:
    with open(path / "t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["z", "c", "y"], *zip(NUMBERS, values, LABELS, strict=True)])
    return open_file(path / "t.csv", label="y", missing="keep")


def json_lines(values: list[Any], path: Any) -> Any:
    lines = [json.dumps(row, default=str) + "\n" for row in rows_of(values)]
    (path / "t.jsonl").write_text("".join(lines))
    return open_file(path / "t.jsonl", label="y", missing="keep")


FRAMES = [
    pandas_frame, pandas_of_objects, pandas_nullable, pandas_of_arrow, polars_frame, arrow_table, arrow_chunks,
    record_batch,
]  # fmt: skip
STREAMS = [
    *FRAMES, polars_lazy, batch_reader, relation, pandas_parts, polars_parts, rows_of, iterator_of_dicts, pair,
    pairs_of_frames, pairs_of_dicts, parquet, feather,
]  # fmt: skip
FILES = (parquet, feather, csv_file, json_lines)
LABELLED = (pair, pairs_of_frames, pairs_of_dicts, *FILES)


def made(container: Any, values: list[Any], path: Any) -> Any:
    """Return the container, if it can have such values."""
    try:
        return container(values, path) if container in FILES else container(values)
    except (pa.ArrowException, TypeError, pl.exceptions.PolarsError, duckdb.Error):
        pytest.skip("this container cannot have such values")


def read(container: Any, source: Any) -> Any:
    stream = as_stream(source, None if container in LABELLED else "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of integers that float64 rounds
        return stream, *stream.take(N)


@pytest.mark.parametrize("what", COLUMNS)
@pytest.mark.parametrize("container", [*STREAMS, csv_file, json_lines], ids=lambda make: make.__name__)
def test_a_table_has_the_same_bits_through_every_container(container: Any, what: str, tmp_path: Any) -> None:
    values, expected = COLUMNS[what]
    if what == "text of digits" and container in (csv_file, json_lines):
        pytest.skip("a file of text has no types")
    stream, X, y = read(container, made(container, values, tmp_path))
    np.testing.assert_array_equal(X, np.column_stack([NUMBERS, expected]))
    assert (y.tolist(), list(stream.feature_names or "zc")) == (LABELS, ["z", "c"])
    if "text" in what:
        assert stream.categories == {"c": list(dict.fromkeys(values))}
        assert list(stream.categorical) == [1]


@pytest.mark.parametrize("what", REJECTED)
@pytest.mark.parametrize("container", STREAMS, ids=lambda make: make.__name__)
def test_a_wrong_cell_has_the_same_sentence_through_every_container(
    container: Any, what: str, tmp_path: Any
) -> None:
    values, sentence = REJECTED[what]
    if (
        what == "zones in some"
        and container is not pandas_of_objects
        and container not in (rows_of, pairs_of_dicts)
    ):
        pytest.skip("this container converts such values itself")
    source = made(container, values, tmp_path)
    if what == "text among numbers" and container in (parquet, feather):
        pytest.skip("a column of a file has one type")
    with pytest.raises(TamisError) as caught:
        read(container, source)
    assert re.sub(r"Timestamp\('([^']*)'.*?\)|datetime.datetime\(.*?\)\)?", "", str(caught.value)).endswith(
        re.sub(r"datetime.datetime\(.*?\)\)?", "", sentence)
    )


TIMES = ("times", "times of UTC", "times of Berlin", "dates", "times of day", "durations")


def river_selector(X: Any) -> Any:
    from tamis.adapters.river import RiverSelector

    model = RiverSelector(tamis.FisherScore(1), every=N)
    model.learn_many(X, LABELS)
    return model._model


DOORS = {
    "fit": lambda X: tamis.FisherScore(1).fit(X, LABELS),
    "fit of categories": lambda X: tamis.FIRES(1).fit(X, LABELS),
    "a learner": lambda X: tamis.HoeffdingTree().fit(X, LABELS),
    "a pipeline": lambda X: tamis.StreamPipeline().fit(X, LABELS),
    "columns": lambda X: tamis.AlphaInvesting().fit(X, np.arange(N) % 2),
    "a refitted learner": lambda X: tamis.Refit(SGDClassifier(random_state=0)).fit(X, LABELS),
    "sparse models": lambda X: tamis.SparseFSA(1).fit(X, LABELS),
    "cells": lambda X: tamis.ETANA().fit(X, LABELS),
    "names": lambda X: tamis.ByName(tamis.FisherScore(1)).fit(X, LABELS),
    "weighted columns": lambda X: tamis.GramInvesting().partial_fit(X, np.arange(N) % 4.0),
    "a watch": lambda X: Watch().update(X, predictions=LABELS, y=LABELS) or "no alert",
    "input drift": lambda X: InputDrift().update(X) or "no drift",
    "rows of River": river_selector,
    "batches": lambda X: as_stream(iter([(X, LABELS)])).take(N),
}


def outcome(door: Any, X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = door(X)
        except (TamisError, TypeError, ValueError) as error:
            return str(error)
    if isinstance(model, tuple):
        return [str(value) for value in model[0].ravel()]
    if isinstance(model, str | list):
        return str(model)
    found = [str(value) for value in model.predict(X)] if hasattr(model, "predict") else []
    return found + [str(value) for value in getattr(model, "scores_", ())]


@pytest.mark.parametrize("what", [*COLUMNS, *REJECTED])
@pytest.mark.parametrize("name", DOORS)
def test_frames_of_all_libraries_pass_a_door_or_none_does(name: str, what: str) -> None:
    door = DOORS[name]
    values = {**COLUMNS, **REJECTED}[what][0]
    outcomes: dict[str, list[str]] = {}
    for container in FRAMES:
        try:
            frame = container(values)
        except (pa.ArrowException, TypeError, pl.exceptions.PolarsError):
            continue
        X = frame.select(["z", "c"]) if hasattr(frame, "select") else frame[["z", "c"]]
        if what == "zones in some" and container is not pandas_of_objects:
            continue  # converted to one zone
        outcomes.setdefault(str(outcome(door, X)), []).append(container.__name__)
    assert len(outcomes) == 1, outcomes
    message = next(iter(outcomes))
    if name == "batches" and what in REJECTED:
        assert "DictStream" in message
        return
    if name not in ("batches", "a pipeline") and what in TIMES:
        assert "times" in message
    if what in REJECTED:
        assert "'c'" in message


def test_frames_may_be_read_in_parts_from_a_csv_file(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(500, 4)), columns=list("abcd"))
    frame["colour"] = np.array(["red", "blue"])[(frame["a"] > 0).astype(int)]
    frame["label"] = np.where(frame["b"] + (frame["colour"] == "red") > 0, "on", "off")
    frame.to_csv(tmp_path / "t.csv", index=False)
    whole = tamis.prequential(frame, tamis.FIRES(2), label="label")
    parts = tamis.prequential(pd.read_csv(tmp_path / "t.csv", chunksize=130), tamis.FIRES(2), label="label")
    assert parts.summary()["accuracy"] == whole.summary()["accuracy"]
    assert parts.selected() == whole.selected()
    with pytest.raises(TamisError, match=r'pass label="\.\.\."'):
        tamis.prequential(pd.read_csv(tmp_path / "t.csv", chunksize=130), tamis.FIRES(2))


def test_the_pipeline_of_a_run_takes_the_frames_of_the_run() -> None:
    rng = np.random.default_rng(0)
    at = pd.date_range("2024-01-01", periods=600, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"at": at, "heat": rng.normal(size=600), "room": rng.choice(["hall", "loft"], 600)})
    y = np.where(frame["heat"] + (frame["room"] == "hall") > 0.5, "on", "off")
    run = tamis.prequential(frame.assign(state=y), tamis.FIRES(2), tamis.HoeffdingTree(), label="state")
    model = run.pipeline()
    expected = model.predict(as_stream(frame.assign(state=y), "state").take(600)[0])
    for rows in (
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame, preserve_index=False),
        frame.astype(object),
    ):
        assert model.predict(rows).tolist() == expected.tolist()
    whole = tamis.StreamPipeline(tamis.FIRES(2), tamis.HoeffdingTree()).fit(frame, y)
    assert whole.predict(frame).tolist() == expected.tolist()
    assert tamis.StreamPipeline().fit(frame[["at"]], y).predict(frame[["at"]]).shape == (600,)


def test_parts_have_the_same_columns() -> None:
    frame = pandas_frame(NUMBERS)
    with pytest.raises(TamisError, match="frame that begins with row 7 has no column 'c'"):
        as_stream([frame, frame[["z", "y"]]], "y").take(12)
    with pytest.raises(TamisError, match="Row 7 has a key 'more' that is absent"):
        as_stream([frame, frame.assign(more=1)], "y").take(12)
    with pytest.raises(TamisError, match="A row must be a frame, as the first one, got a dict"):
        as_stream([frame, {"z": 1}], "y").take(12)
    with pytest.raises(TamisError, match="Row 7 has 'red' for 'c', which began as numbers"):
        as_stream([frame, frame.assign(c="red")], "y").take(12)


NAMES: dict[str, list[Any]] = {
    "numbers": [0, 1, 2, 3],
    "floats": [0.5, 1.5, 2.5, 3.5],
    "anything": [None, "state", 2, ("u", "e")],
    "tuples": pd.MultiIndex.from_product([["u", "v"], ["d", "e"]]).tolist(),
}


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("given", ["name", "text", "position", "negative"])
def test_a_label_is_named_by_its_name_its_text_or_its_position(what: str, given: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 2] = X[:, 1] > 0
    frame = pd.DataFrame(X)
    frame.columns = pd.MultiIndex.from_tuples(NAMES[what]) if what == "tuples" else NAMES[what]
    name = NAMES[what][2]
    label = {"name": name, "text": str(name), "position": 2, "negative": -2}[given]
    expected = tamis.prequential((np.delete(X, 2, axis=1), X[:, 2]), tamis.FisherScore(1)).summary()
    for source in (frame, [frame[:150], frame[150:]], frame.astype(object)):
        run = tamis.prequential(source, tamis.FisherScore(1), label=label)
        assert run.summary()["accuracy"] == expected["accuracy"]
        assert run.feature_names == [str(own) for own in NAMES[what] if own != name]


LABEL_KINDS: dict[str, list[Any]] = {
    "integers": [1, 2, 1, 2, 1, 2],
    "large integers": [2**60 + 1, 2**60 + 2, 2**60 + 1, 2**60 + 2, 2**60 + 1, 2**60 + 2],
    "booleans": [True, False, True, False, True, False],
    "text": LABELS,
    "fractions": [0.5, 1.5, 0.5, 1.5, 0.5, 1.5],
}


@pytest.mark.parametrize("what", LABEL_KINDS)
@pytest.mark.parametrize("container", STREAMS, ids=lambda make: make.__name__)
def test_labels_are_exact_through_every_container(container: Any, what: str, tmp_path: Any) -> None:
    if container in (pair, pairs_of_frames, pairs_of_dicts):
        pytest.skip("the labels are beside the rows")
    source = made(container, LABEL_KINDS[what], tmp_path)
    if container in (parquet, feather):
        source = open_file(source.describe()["path"], label="c", missing="keep")
    _, y = as_stream(source, None if container in LABELLED else "c").take(N)
    assert y.tolist() == LABEL_KINDS[what]
    assert {type(label) for label in y.tolist()} == {type(label) for label in LABEL_KINDS[what]}


@pytest.mark.parametrize("values", [["M", "S", "L", "M", None, "S"], [20, 10, 30, 20, None, 10]])
def test_declared_categories_keep_their_order_in_every_container_that_has_them(
    values: Any, tmp_path: Any
) -> None:
    declared = ["S", "M", "L", "XL"] if values[0] == "M" else [10, 20, 30, 40]
    frame = pandas_frame(values).assign(c=pd.Categorical(values, categories=declared))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed")
    sources = [frame, table, table.to_batches()[0], table.to_reader(), [frame[:3], frame[3:]]]
    sources.append(open_file(tmp_path / "t.arrow", label="y", missing="keep"))
    if values[0] == "M":  # Parquet declares text only
        sources.append(open_file(tmp_path / "t.parquet", label="y", missing="keep"))
        sources += [pl.from_arrow(table).with_columns(pl.col("c").cast(pl.Enum(declared)))]
    for source in sources:
        stream = as_stream(source, None if hasattr(source, "batches") else "y")
        assert list(stream.categorical) == [1]
        assert stream.take(N)[0][:, 1].tolist() == [1, 0, 2, 1, 4, 0]
        assert stream.categories == {"c": [*declared, None]}


def test_a_categorical_column_of_polars_does_not_depend_on_other_frames() -> None:
    pl.Series(["x", "b", "a"], dtype=pl.Categorical)
    frame = pl.DataFrame({"c": pl.Series(["a", "b", "a"], dtype=pl.Categorical), "y": [0, 1, 0]})
    stream = as_stream(frame, "y")
    assert (stream.categories, stream.take(3)[0].ravel().tolist()) == ({"c": ["a", "b"]}, [0, 1, 0])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "Int16", "boolean", "float64[pyarrow]"])
def test_a_transformed_frame_is_that_of_its_array(dtype: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, size=(80, 5)), columns=list("abcde")).astype(dtype)
    y = (rng.random(80) < 0.2 + 0.5 * frame["b"].to_numpy(dtype=float)).astype(int)
    expected = frame[["b"]].to_numpy(dtype=float)
    for model in (tamis.FisherScore(1), tamis.FIRES(1), tamis.OFS(1)):
        model.fit(frame, y)
        if model.get_feature_names_out().tolist() == ["b"]:
            np.testing.assert_array_equal(model.transform(frame), expected)
            if dtype in ("float64", "int64", "float32"):
                assert model.transform(frame).dtype == dtype
        np.testing.assert_array_equal(
            model.set_output(transform="pandas").transform(frame), frame[model.get_feature_names_out()]
        )
    assert tamis.FisherScore(1).fit(frame, y).get_feature_names_out().tolist() == ["b"]
