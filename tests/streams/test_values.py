"""The same rows through every door (array, frame, file, dicts): the same numbers, labels, names and missing values."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import zoneinfo
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tamis
from tamis import FIRES, FisherScore, prequential
from tamis.errors import DataError, StreamError, TamisError
from tamis.streams import FrameStream, as_stream, follow_files, open_file
from tamis.streams.files import open_table
from tamis.streams.profile import profile_table
from tests.test_intake import KEYS, learn, said

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
N = 40
START = dt.datetime(2024, 3, 30, 12)  # daylight saving time begins at 2:00 on the next day
HOURS = [START + dt.timedelta(hours=i, microseconds=i) for i in range(N)]
COLUMNS: dict[str, list[Any]] = {
    "floats": [i / 7 for i in range(N)],
    "holes": [None if i == 3 else i / 8 for i in range(N)],
    "integers": [None if i == 5 else i - 9 for i in range(N)],
    "flags": [None if i == 7 else i % 3 == 0 for i in range(N)],
    "text": [None if i == 9 else "xyz"[i % 3] for i in range(N)],
    "local": [None if i == 2 else at for i, at in enumerate(HOURS)],
    "zoned": [at.replace(tzinfo=dt.UTC).astimezone(BERLIN) for at in HOURS],
    "days": [at.date() for at in HOURS],
    "clocks": [(dt.datetime(2024, 1, 1) + dt.timedelta(minutes=7 * i)).time() for i in range(N)],
    "decimals": [Decimal(i) / 4 for i in range(N)],
}
LABELS = [i % 2 + 9007199254740992 for i in range(N)]
ROWS = {**COLUMNS, "y": LABELS}


def seconds(at: dt.datetime | None) -> float:
    return np.nan if at is None else (at.replace(tzinfo=at.tzinfo or dt.UTC)).timestamp()


EXPECTED = np.column_stack([
    COLUMNS["floats"],
    *(
        [np.nan if value is None else float(value) for value in COLUMNS[name]]
        for name in ("holes", "integers", "flags")
    ),
    [{"x": 0, "y": 1, "z": 2, None: 3}[value] for value in COLUMNS["text"]],
    *([seconds(value) for value in COLUMNS[name]] for name in ("local", "zoned")),
    [seconds(dt.datetime.combine(day, dt.time())) for day in COLUMNS["days"]],
    [60 * (60 * at.hour + at.minute) for at in COLUMNS["clocks"]],
    [float(value) for value in COLUMNS["decimals"]],
])  # fmt: skip


def pandas_objects(rows: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()})


def arrow_table(rows: dict[str, list[Any]]) -> pa.Table:
    return pa.table(rows)


def cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def write_csv(path: Path, rows: dict[str, list[Any]]) -> Path:
    lines = [",".join(rows), *(",".join(map(cell, row)) for row in zip(*rows.values(), strict=True))]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def from_file(name: str, tmp_path: Path, rows: dict[str, list[Any]]) -> Any:
    path, table = tmp_path / name, arrow_table(rows)
    if ".csv" in name:
        write_csv(path, rows)
    elif name.endswith("parquet"):
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    return open_file(path, label="y", missing="keep")


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas of objects": pandas_objects,
    "pandas nullable": lambda rows: pandas_objects(rows).convert_dtypes(),
    "pandas of Arrow": lambda rows: arrow_table(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda rows: pl.DataFrame(rows, strict=False),
    "polars of Arrow": lambda rows: pl.from_arrow(arrow_table(rows)),
    "lazy": lambda rows: pl.DataFrame(rows, strict=False).lazy(),
    "arrow": arrow_table,
}
FILES = ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.arrow"]


def as_dicts(rows: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


@pytest.mark.parametrize("door", [*FRAMES, *FILES, "dicts"])
def test_the_same_rows_through_every_door(door, tmp_path):
    if door in FILES:
        stream = from_file(door, tmp_path, ROWS)
    else:
        stream = as_stream(as_dicts(ROWS) if door == "dicts" else FRAMES[door](ROWS), "y")
    X, y = stream.take(N)
    np.testing.assert_array_equal(X, EXPECTED)
    assert y.tolist() == LABELS
    assert (stream.feature_names, stream.categories) == ([*COLUMNS], {"text": ["x", "y", "z", None]})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_units_and_zones_do_not_change_the_seconds(unit, zone, tmp_path):
    whole = [None, *(at.replace(microsecond=0) for at in HOURS[1:]), dt.datetime(1969, 12, 31, 23, 59, 58)]
    instants = pd.Series(pd.to_datetime(whole), dtype=f"datetime64[{unit}]")
    if zone is not None:
        instants = instants.dt.tz_localize("UTC").dt.tz_convert(zone)
    expected = [[seconds(at)] for at in whole]
    frame = pd.DataFrame({"at": instants, "y": np.arange(len(whole)) % 2})
    table = pa.table({"at": pa.array(whole, pa.timestamp(unit, zone)), "y": frame["y"]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    csv = write_csv(
        tmp_path / "rows.csv", {"at": [None if at is pd.NaT else at for at in instants], "y": frame["y"]}
    )
    objects = frame.assign(at=pd.Series([*instants], dtype=object))
    for source in (frame, objects, table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
        np.testing.assert_array_equal(FrameStream(source, "y").take(100)[0], expected)
    for path in (tmp_path / "rows.parquet", csv):
        np.testing.assert_array_equal(open_file(path, label="y", missing="keep").take(100)[0], expected)


# -- labels ------------------------------------------------------------------------------------------------

SPELLINGS = st.one_of(
    st.integers(-(10**40), 10**40).map(str),
    st.integers(2**53 - 2, 2**53 + 3).map(str),
    st.integers(2**63 - 2, 2**64 + 2).map(str),
    st.sampled_from(
        ["007", "07", "7", "+7", "-0", "7.0", "7.5", "7e0", "true", "TRUE", "1", "0", "0x7", "a", " 7", "-7."]
    ),
)


def meaning(text: str) -> Any:
    """Return what a label must be equal to, among labels that are numbers."""
    return int(number) if (number := Decimal(text.strip())) == int(number) else float(number)


@settings(deadline=None, max_examples=60)
@given(st.lists(SPELLINGS, min_size=2, max_size=6), st.booleans())
@example(["9007199254740993", "9007199254740992"], False)
@example(["1234567890123456789.0", "1234567890123456788"], False)
@example(["007", "7", "07"], False)
@example(["true", "1"], False)
@example(["7", "x"], True)
def test_no_two_labels_of_a_csv_file_become_one(tmp_path_factory, labels, late):
    """Labels are the texts, or the numbers that they denote exactly; another kind later is an error."""
    path = tmp_path_factory.mktemp("labels") / "rows.csv"
    first = labels[:1] * 30_000 if late else labels  # 1.2 MB of spellings that the first block has
    filler = "0.123456789012345678901234567890123456789"
    path.write_text("a,y\n" + "".join(f"{filler},{label}\n" for label in [*first, *labels]))
    try:
        y = [label for _, part in open_file(path, label="y").batches(1000) for label in part.tolist()]
    except StreamError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert late
        assert "rows.csv" in message
        assert "column 'y'" in message
        assert any(repr(label) in message for label in labels)
        return
    got = y[len(first) :]
    if all(isinstance(label, str) for label in y):
        assert got == labels
    elif all(isinstance(label, bool) for label in y):
        assert got == [{"true": True, "false": False}[label.lower()] for label in labels]
    else:
        assert got == [meaning(label) for label in labels]
        fractions = [label for label in labels if not isinstance(meaning(label), int)]
        assert fractions or not any(label.strip().lstrip("+-").startswith("00") for label in labels)
    if not late:
        classes = profile_table(open_table(path), "y").classes
        assert sorted(classes.values()) == sorted(Counter(y).values())


@pytest.mark.parametrize("task", ["run", "look", "recommend", "follow"])
def test_every_command_sees_the_same_classes(task, tmp_path):
    labels = ["007", "7"] * 200
    path = write_csv(tmp_path / "rows.csv", {"a": [i % 7 / 7 for i in range(400)], "y": labels})
    if task == "look":
        profile = profile_table(open_table(path), "y")
        assert profile.classes == {"007": 200, "7": 200}
        assert "the label y has leading zeros, as in 007: it is read as text" in profile.notes
    elif task == "follow":
        stream = follow_files(path, label="y", idle=0)
        _, y = next(stream.batches(100))
        other = follow_files(path, label="y", idle=0)
        other.seek(stream.position())
        assert {*y.tolist(), *next(other.batches(300))[1].tolist()} == {"007", "7"}
    elif task == "recommend":
        assert tamis.recommend(open_file(path, label="y")) is not None
    else:
        selector = FisherScore(1)
        prequential(open_file(path, label="y"), selector)
        assert selector.classes_.tolist() == ["007", "7"]


def test_large_labels_of_every_format_and_of_any_later_kind(tmp_path):
    large = [9007199254740993, 9007199254740992]
    (tmp_path / "rows.svm").write_text("".join(f"{label} 1:0.5 # {label}\n" for label in large))
    assert open_file(tmp_path / "rows.svm").take(2)[1].tolist() == large
    attributes = "@relation r\n@attribute a numeric\n@attribute y numeric\n@data\n"
    (tmp_path / "rows.arff").write_text(attributes + "".join(f"1,{label}\n" for label in large))
    assert open_file(tmp_path / "rows.arff", label="y").take(2)[1].tolist() == large
    (tmp_path / "text.arff").write_text(attributes + "1,007\n2,7\n")
    text = open_file(tmp_path / "text.arff", label="y", categorical=["y"])
    assert text.take(2)[1].tolist() == ["007", "7"]
    for kind in (pa.uint64(), pa.decimal128(20, 0), pa.decimal128(22, 2)):
        table = pa.table({"a": [0.5, 1.5], "y": pa.array(large, pa.int64()).cast(kind)})
        pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
        assert open_file(tmp_path / "rows.parquet", label="y").take(2)[1].tolist() == large
        for frame in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
            assert FrameStream(frame, "y").take(2)[1].tolist() == large
    prices = pa.table({"a": [1, 2], "y": pa.array([Decimal("1.50"), Decimal("2.25")])})
    assert FrameStream(prices, "y").take(2)[1].dtype == np.float64


def test_labels_of_a_model_may_exceed_64_bits(tmp_path):
    labels = [2**63, -1, 2**63 + 1] * 20
    rng = np.random.default_rng(0)
    selector = FisherScore(1).fit(rng.normal(size=(60, 2)), labels)
    assert sorted(selector.classes_.tolist()) == [-1, 2**63, 2**63 + 1]
    tamis.save(selector, tmp_path / "model.tamis")
    assert tamis.load(tmp_path / "model.tamis").classes_.tolist() == selector.classes_.tolist()


def test_a_target_of_a_regression_stays_a_float(tmp_path):
    targets = [*range(200_000), 0.5, 3]
    path = write_csv(tmp_path / "rows.csv", {"a": [1] * len(targets), "y": targets})
    batches = [y for _, y in open_file(path, label="y").batches(50_000)]
    assert np.concatenate(batches).tolist() == [float(target) for target in targets]
    assert batches[-1].dtype == np.float64


# -- one odd cell ------------------------------------------------------------------------------------------

PLAIN = {
    "numbers": [f"{i / 7:.5f}" for i in range(1200)],
    "prices": [f"${1 + i % 999},{100 + i % 900}.5" for i in range(1200)],
    "times": [(START + dt.timedelta(hours=i)).isoformat() for i in range(1200)],
    "zoned times": [(START + dt.timedelta(hours=i)).isoformat() + "Z" for i in range(1200)],
    "dates": [(START + dt.timedelta(days=i)).strftime("%d.%m.%Y") for i in range(1200)],
    "clocks": [f"{i % 24:02}:{i % 60:02}:{i % 59:02}" for i in range(1200)],
}
ODD = [
    "bad", "Total", "24:00:00", "2024-03-31T02:30:00", "2024-03-31T02:30:00+02:00", "2016-12-31T23:59:60", "1.5.2",
    "2016-12-31T24:00:00", "2016-12-31T24:00:00Z", "31.12.2016", "12/31/2016", "2023-02-30", "1_000",
]  # fmt: skip


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize(
    ("place", "odd"), [*itertools.product([20, 1100], ODD), *(("late", odd) for odd in ODD[:4])]
)
def test_an_odd_cell_is_read_or_named(kind, odd, place, tmp_path):
    """A column of numbers or times never becomes one of categories because of one cell."""
    values = PLAIN[kind] * (90 if place == "late" else 1)
    at = len(values) if place == "late" else int(place)
    values = [*values[:at], odd, *values[at:]]
    path = tmp_path / "rows.csv"
    path.write_text("z;y\n" + "".join(f"{value};{i % 2}\n" for i, value in enumerate(values)))
    stream = open_file(path, label="y", delimiter=";", missing="keep")
    try:
        X = np.concatenate([X for X, _ in stream.batches(10_000)])
    except StreamError as error:
        message = str(error)
    else:
        assert not stream.categories
        assert np.isfinite(X).all()
        return
    for part in ("rows.csv", repr(odd), "'z'", "categorical=['z']"):
        assert part in message
    assert f"row {at + 1} " in message or f"line {at + 2} " in message
    if place != "late":  # the profile finds it too
        problems = profile_table(open_table(path, delimiter=";"), "y").problems
        assert any(odd in problem.text for problem in problems)


@pytest.mark.parametrize("at", [5, 1100, 200_000])
@pytest.mark.parametrize(
    ("begin", "odd"), [("true", "maybe"), ("3", "bad"), ("3,5", "1.5.2"), ("2024-01-02", "24:00")]
)
def test_a_late_word_names_its_column(begin, odd, at, tmp_path):
    """In a feature, the label and a column of times; a word in the first rows makes a label or a flag text."""
    path = tmp_path / "rows.csv"
    path.write_text("a;z;y\n" + f"1;{begin};0\n" * at + f"1;{odd};0\n")
    for label in ("y", "z") if odd != "24:00" else ("y",):  # a time cannot be a label
        stream, message = open_file(path, label=label, delimiter=";"), ""
        try:
            for _ in stream.batches(50_000):
                pass
        except StreamError as error:
            message = str(error)
        assert message or at < 200_000
        assert not message or (repr(odd) in message and "column 'z'" in message)


def test_versions_and_ranges_remain_text(tmp_path):
    for values in (["1.2.13", "1.10.12", "1.13.14", "2.40.1"], ["10-12", "13-15", "a", "b"], ["1:2", "3:4"]):
        path = write_csv(
            tmp_path / "rows.csv", {"z": values * 50, "a": [1] * 50 * len(values), "y": values * 50}
        )
        assert open_file(path, label="y").take(len(values))[0][:, 0].tolist() == [*range(len(values))]


# -- cells that are not numbers ----------------------------------------------------------------------------

OBJECTS = {
    "a list": [1.0], "an array": np.array([1.0]), "a 0-d array": np.array(1.0), "a dict": {"a": 1}, "a set": {1},
    "complex": 1j, "bytes": b"1", "a tuple": (1.0,), "an object": object(), "a type": float, "a huge number": 10**400,
}  # fmt: skip
NUMBERS = {"a decimal": Decimal("0.5"), "a fraction": Fraction(1, 2), "a float32": np.float32(0.5)}
RNG = np.random.default_rng(0)
S = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"])
S["state"] = (S["a"] > 0).astype(int)


def with_cell(value: Any, everywhere: bool, beside: Any = 0.5) -> pd.DataFrame:
    cells = np.full(60, beside, dtype=object)
    for i in range(60) if everywhere else (7,):
        cells[i] = value
    return S.assign(z=pd.Series(cells, dtype=object))


def learn_from(frame: pd.DataFrame, door: str) -> Any:
    X, y = frame.drop(columns="state"), frame["state"]
    if door == "prequential":
        return prequential(frame, FisherScore(1), label="state", batch_size=20)
    if door == "dicts":
        return prequential(frame.to_dict("records"), FisherScore(1), label="state", batch_size=20)
    if door == "columns":
        return tamis.AlphaInvesting().fit(X, y)
    if door == "an array":
        return FisherScore(1).fit(X.to_numpy(), y)
    return FisherScore(1).fit(X, y)


@pytest.mark.parametrize("door", ["fit", "prequential", "columns", "dicts", "an array"])
@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("kind", [*OBJECTS, *NUMBERS])
def test_objects_that_are_no_numbers_are_named(kind, everywhere, door):
    if kind in NUMBERS:
        learn_from(with_cell(NUMBERS[kind], everywhere), door)
        return
    name = r"3" if door == "an array" else "'z'"
    with pytest.raises((DataError, StreamError), match=name):
        learn_from(with_cell(OBJECTS[kind], everywhere), door)


@pytest.mark.parametrize("nested", [[[1.0]] * 60, [{"p": 1.0}] * 60])
def test_nested_columns_are_rejected_in_every_library(nested, tmp_path):
    table = pa.table({"a": S["a"], "z": nested, "y": S["state"]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    for frame in (
        table,
        pl.from_arrow(table),
        table.to_pandas(),
        table.to_pandas(types_mapper=pd.ArrowDtype),
    ):
        with pytest.raises(DataError, match="'z'"):
            prequential(frame, FisherScore(1), label="y")
        with pytest.raises(DataError, match="'z'"):
            FisherScore(1).fit(
                frame.drop(columns="y") if isinstance(frame, pd.DataFrame) else frame, S["state"]
            )
    with pytest.raises(StreamError, match="'z'"):
        open_file(tmp_path / "rows.parquet", label="y").take(1)


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.array([1])])
def test_a_category_that_is_no_category_is_named(value):
    frame = with_cell(value, False, beside="red")
    for learn_it in (
        lambda: prequential(frame, FIRES(1), label="state"),
        lambda: FIRES(1, categorical=["z"]).fit(frame.drop(columns="state"), S["state"]),
        lambda: as_stream(frame.to_dict("records"), "state").take(60),
    ):
        with pytest.raises((DataError, StreamError), match="'z'"):
            learn_it()


def test_times_with_and_without_a_zone_are_not_mixed():
    at = [START, START.replace(tzinfo=dt.UTC)] * 30
    for kind in (at, [START, 1.5] * 30, [START.time(), START] * 30):
        frame = S.assign(z=pd.Series(kind, dtype=object))
        with pytest.raises(DataError, match="'z'"):
            FrameStream(frame, "state")
        with pytest.raises(StreamError, match="'z'"):
            as_stream(frame.to_dict("records"), "state").take(60)


# -- missing values of nullable types ----------------------------------------------------------------------

NULLABLE = [
    "boolean",
    "bool[pyarrow]",
    "Int8",
    "Int64",
    "UInt64",
    "Float32",
    "Float64",
    "int8[pyarrow]",
    "double[pyarrow]",
]


@pytest.mark.parametrize("key", KEYS)
def test_every_estimator_treats_na_as_missing(key):
    """A frame with pandas.NA leads to the result, or the error, of an array with NaN."""
    flags = (S["b"] > 0).to_numpy().astype(float)
    flags[::9] = np.nan
    X = np.column_stack([S["a"], flags, S["c"]])
    names = ["a", "z", "c"]
    plain = outcome(key, pd.DataFrame(X, columns=names))
    for dtype in NULLABLE:
        column = pd.Series([None if np.isnan(flag) else flag == 1 for flag in flags], dtype=object)
        numbers = column if "bool" in dtype else column.map(lambda flag: None if flag is None else int(flag))
        frame = pd.DataFrame({"a": S["a"], "z": numbers.astype(dtype), "c": S["c"]})
        assert outcome(key, frame) == plain


def outcome(key: str, frame: pd.DataFrame) -> Any:
    y = S["state"].to_numpy()
    try:
        model = learn(key, frame, y)
        return said(model, frame)
    except TamisError as error:
        return type(error), str(error)


@pytest.mark.parametrize("text", ["string", "category", "string[pyarrow]", object])
def test_missing_texts_are_a_category(text):
    values = pd.Series(["red", None, "blue"] * 20)
    frame = S.assign(z=values.astype(text))
    stream = FrameStream(frame, "state")
    assert set(stream.categories["z"]) == {"red", "blue", None}
    selector = FIRES(1, categorical=["z"]).partial_fit(frame.drop(columns="state"), S["state"])
    selector.transform(frame.drop(columns="state"))


# -- names of columns --------------------------------------------------------------------------------------


def test_a_label_is_found_by_its_name_its_text_or_its_position():
    X = np.c_[S[["a", "b"]], S["state"]]
    numbered = pd.DataFrame(X)
    nested = S[["a", "b", "state"]].set_axis(
        pd.MultiIndex.from_tuples([("u", "a"), ("u", "b"), ("v", "e")]), axis=1
    )
    shuffled = pd.DataFrame(X, columns=[10, 2, 0])  # a name goes before a position
    dicts = numbered.to_dict("records")
    for source, labels in (
        (numbered, [2, "2", -1, np.int64(2)]),
        (nested, [("v", "e"), "('v', 'e')", 2, -1]),
        (shuffled, [0, "0", -1]),
        (dicts, [2, "2", -1]),
        (S[["a", "b", "state"]], ["state", 2, -1]),
    ):
        for label in labels:
            stream = as_stream(source, label)
            Xs, y = stream.take(60)
            np.testing.assert_array_equal(Xs, X[:, :2])
            np.testing.assert_array_equal(y, X[:, 2])
            assert all(isinstance(name, str) for name in stream.feature_names)
            prequential(source, FisherScore(1), label=label, batch_size=20)
    for source, label, hint in ((numbered, 7, 2), (nested, ("v", "f"), ("v", "e")), (S, "stat", "state")):
        with pytest.raises(DataError, match="is not a column") as caught:
            as_stream(source, label)
        assert repr(hint) in str(caught.value)
        as_stream(source, hint)


@pytest.mark.parametrize("categorical", [[0], "all", [True, False, False]])
def test_columns_without_text_names_may_be_categorical(categorical):
    frame = S[["a", "b", "c"]].round().astype(int)
    for names in ([4, 5, 6], pd.MultiIndex.from_tuples([("u", "a"), ("u", "b"), ("v", "e")])):
        selector = FIRES(1, categorical=categorical).fit(frame.set_axis(names, axis=1), S["state"])
        assert not hasattr(selector, "feature_names_in_")
        with pytest.raises(ValueError, match=r"the columns are 0 to 2, without names"):
            FIRES(1, categorical=[names[0] if isinstance(names[0], tuple) else "4"]).fit(
                frame.set_axis(names, axis=1), S["state"]
            )


def test_columns_of_a_file_are_found_by_position_too(tmp_path):
    path = write_csv(tmp_path / "rows.csv", {"a": [1, 2] * 9, "b": [3, 4] * 9, "y": [0, 1] * 9})
    assert open_file(path, label=np.int64(-1), categorical=[0], drop=[1]).feature_names == ["a"]
    for wrong in (2.5, ("a",), True, ["y"]):
        with pytest.raises(StreamError, match="pass the name of a column, or its position"):
            open_file(path, label=wrong)
