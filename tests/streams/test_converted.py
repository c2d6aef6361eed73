"""Rows that are not delimited text: JSON, columns aligned by blanks, Excel sheets, archives of one file."""

import gzip
import json
import zipfile

import numpy as np
import pytest

from tamis.errors import StreamError
from tamis.streams import follow_files, open_file
from tamis.streams.converted import AlignedRows, JSONRows

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N = 120


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "heat": rng.normal(size=N).round(3), "count": rng.integers(0, 99, N),
        "city": rng.choice(["New York", "Rome"], N),
        "wet": rng.random(N) < 0.5, "hole": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N).round(2)),
        "state": rng.choice(["on", "off"], N),
    })  # fmt: skip


def rows_of(path, **how):
    stream = open_file(path, label="state", **how)
    X, y = stream.take(N)
    return stream.feature_names, X.tolist(), y.tolist(), stream.categories


def same(found, expected):
    assert found[0] == expected[0]
    np.testing.assert_array_equal(np.array(found[1]), np.array(expected[1]))
    assert found[2:] == expected[2:]


@pytest.fixture
def expected(frame, tmp_path):
    frame.to_csv(tmp_path / "expected.csv", index=False)
    return rows_of(tmp_path / "expected.csv")


WRITERS = {
    "lines.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "lines.ndjson": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "lines.json": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "array.json": lambda frame, path: frame.to_json(path, orient="records"),
    "indented.json": lambda frame, path: frame.to_json(path, orient="records", indent=2),
    "sheet.xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "table.txt": lambda frame, path: path.write_text(frame.to_string(index=False)),
    "table.dat": lambda frame, path: frame.to_csv(path, index=False),
    "table.csv.zip": lambda frame, path: frame.to_csv(path, index=False),
    "lines.jsonl.gz": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "trailing.csv": lambda frame, path: path.write_text(frame.to_csv(index=False).replace("\n", ",\n")),
    "trailing_rows.csv": lambda frame, path: path.write_text(
        frame.to_csv(index=False).replace("\n", ",\n").replace("state,\n", "state\n")
    ),
    "excel.csv": lambda frame, path: path.write_text(
        frame.to_csv(index=False, sep=";").replace("\n", ";;;\n")
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_table_in_any_format_gives_the_same_rows(frame, expected, tmp_path, name):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    WRITERS[name](frame, tmp_path / name)
    same(rows_of(tmp_path / name), expected)


@pytest.mark.parametrize("separator", [" ", "\t", ",", ";"])
def test_row_names_of_r_have_no_name(frame, expected, tmp_path, separator):
    """As ``write.table(frame, sep=separator)`` writes it: texts are quoted, and row names have no header."""
    lines = [separator.join(f'"{name}"' for name in frame)]
    for row, values in enumerate(frame.itertuples(index=False), start=1):
        cells = [
            "NA" if value != value else f'"{value}"' if isinstance(value, str) else str(value).upper()
            for value in values
        ]
        lines.append(separator.join([f'"{row}"', *cells]))
    (tmp_path / "r.txt").write_text("\n".join(lines) + "\n")
    names, X, y, categories = rows_of(tmp_path / "r.txt")
    assert (names[0], [row[0] for row in X]) == ("", [*range(1, N + 1)])
    same((names[1:], [row[1:] for row in X], y, categories), expected)


def test_a_printed_frame_has_an_index(frame, expected, tmp_path):
    (tmp_path / "t.txt").write_text(frame.to_string())
    names, X, y, categories = rows_of(tmp_path / "t.txt")
    assert (names[0], [row[0] for row in X]) == ("", [*range(N)])
    same((names[1:], [row[1:] for row in X], y, categories), expected)


def test_a_missing_name_is_no_row_name(tmp_path):
    (tmp_path / "t.csv").write_text("heat,state\n" + "0.5,3,on\n0.25,4,off\n" * 5)
    with pytest.raises(StreamError, match="has 3 values in line 2, the others have 2"):
        open_file(tmp_path / "t.csv", label="state")


BAD_JSON = {
    "[[1, 2], [3, 4]]": "contains no JSON objects: write one object with named values per line",
    "5\n": "contains no JSON objects",
    "\n\n": "contains no JSON objects",
    '{"a":' + "[" * 100_000: "is nested too deeply in row 1",
    '{"a": 1, "state": "on"}\n{"a": {"b": 1}, "state": "on"}\n': "has an object for 'a' in row 2: .*json_normalize",
    '{"a": [1, 2], "state": "on"}\n': "has a list for 'a' in row 1: .*json_normalize",
    '{"a": {"0": 1, "1": 2}, "state": {"0": "on", "1": "off"}}': "has an object for 'a' in row 1",
    '{"a": 1, "state": "on"}\n{"a": 2, "state": }\n{"a": 3, "state": "on"}\n': "is not valid JSON in row 2",
    '{"a": 1, "state": "on"}\n{"a": 2, "sta': "ends within row 2",
    '{"a": 1, "state": "on"}\n[1, 2]\n': 'has "1" in row 2, which is not an object|has 1 in row 2',
    '{"a": 1, "state": "on"}\n{"a": "red", "state": "on"}\n{"a": 2, "state": "on"}\n{"a": 3, "state": "on"}\n': (
        "contains 'red' in row 2 of column 'a', where most values are numbers"
    ),
}


@pytest.mark.parametrize("text", BAD_JSON)
def test_rows_of_json_that_are_no_rows_are_said_in_one_sentence(tmp_path, text):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(StreamError, match=BAD_JSON[text]):
        open_file(tmp_path / "a.jsonl", label="state").take(5)


@pytest.mark.parametrize("separator", ["\n", ",\n", ", "])
def test_json_may_be_cut_anywhere(separator):
    rows = ['{"a": -1.5e-07, "b": "x\\n\\u00e9, \\"}", "c": null}', '{"a": 12, "c": true, "b": ""}',
            '{"c": false, "a": -0.25E+3}']  # fmt: skip
    text = separator.join(rows)
    text = text + "\n" if separator == "\n" else f"[{text}]"
    expected = 'a,b,c\n-1.5e-07,"x\né, ""}",\n12,,true\n-0.25E+3,,false\n'
    for at in range(len(text) + 1):
        convert = JSONRows("a.jsonl", ["a", "b", "c"])
        assert convert(text[:at], last=False) + convert(text[at:], last=True) == expected, at


def test_aligned_text_may_be_cut_anywhere():
    text = '"x" "y z"\n"1" 2.5 "a ""b"""\n"2"  3 c\n'
    for at in range(len(text) + 1):
        convert = AlignedRows("a.txt", [])
        assert (
            convert(text[:at], last=False) + convert(text[at:], last=True)
            == 'x,y z\n1,2.5,"a ""b"""\n2,3,c\n'
        )


def test_late_rows_of_json_have_their_number(tmp_path):
    rows = [json.dumps({"a": i, "pad": "x" * 400, "state": i % 2}) for i in range(6000)]  # more than a block
    for late, message in (
        ('{"a": "red", "pad": "x", "state": 0}', "contains 'red' in line 5001 of column 'a'"),
        ('{"a": 1, "pad": "x", "state": [0]}', "has a list for 'state' in row 5,001"),
        ('{"a": 1, "pad": "x", "state: 0}', "is not valid JSON in row 5,001"),
    ):
        (tmp_path / "a.jsonl").write_text("\n".join([*rows[:5000], late, *rows[5001:]]))
        with pytest.raises(StreamError, match=message):
            list(open_file(tmp_path / "a.jsonl", label="state").batches(100))


def test_a_late_key_of_json_is_ignored_with_a_warning(tmp_path):
    rows = [json.dumps({"a": i, "pad": "x" * 400, "state": i % 2}) for i in range(6000)]
    rows[5000] = '{"new": 1, "state": 0, "a": 7}'
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    with pytest.warns(
        UserWarning, match=r"has a key 'new' in row 5,001 that is absent from the first rows"
    ) as found:
        X = np.concatenate([X for X, _ in open_file(tmp_path / "a.jsonl", label="state").batches(100)])
    assert (len(found), X.shape, X[5000, 0]) == (1, (6000, 2), 7.0)


def test_json_keeps_what_it_says(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1234567890123456789, "quote": "say \\"a,\\nb\\"", "é": 1.50, "state": 9007199254740993}\n'
        '{"state": 9007199254740992, "id": 1234567890123456788}\n'
    )
    stream = open_file(tmp_path / "a.jsonl", label="state", drop=["id"])
    X, y = stream.take(2)
    assert y.tolist() == [9007199254740993, 9007199254740992]
    assert stream.categories == {"quote": ['say "a,\nb"', None]}
    np.testing.assert_array_equal(X, [[0, 1.5], [1, np.nan]])
    assert stream.describe()["format"] == "json"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.log"])
def test_json_lines_are_followed_as_read(tmp_path, name):
    rows = [
        {"heat": i / 4, "city": "ab c,d"[i % 4 :], "took": f"{i % 3}:{i % 60:02}:30", "state": i % 2}
        for i in range(57)
    ]
    lines = [json.dumps(row) + "\n" for row in rows]
    (tmp_path / name).write_text("".join(lines[:21]) + lines[21][:9])
    stream = follow_files(tmp_path / name, label="state", idle=0)
    found = [(X.tolist(), y.tolist()) for X, y in stream.batches(10)]
    position = stream.position()
    (tmp_path / name).write_text("".join(lines))
    again = follow_files(tmp_path / name, label="state", idle=0)
    again.seek(position)
    found += [(X.tolist(), y.tolist()) for X, y in again.batches(10)]
    whole = open_file(tmp_path / name, label="state", format="json")
    assert found == [(X.tolist(), y.tolist()) for X, y in whole.batches(10)][:5]
    assert whole.feature_names == again.feature_names


def test_bad_lines_of_followed_json_are_put_aside(tmp_path):
    lines = [f'{{"heat": {i}, "state": "{"on" if i % 2 else "off"}"}}\n' for i in range(40)]
    lines[25:25] = [
        '{"heat": "x", "state": "on"}\n',
        '{"heat": 1, "state\n',
        '{"heat": {"a": 1}, "state": "on"}\n',
    ]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    stream = follow_files(tmp_path / "a.jsonl", label="state", idle=0, dead_letters=tmp_path / "bad.jsonl")
    assert [y.size for _, y in stream.batches(10)] == [10] * 4
    put = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(one["row"], one["line"]) for one in put] == [(26 + i, lines[25 + i].strip()) for i in range(3)]
    (tmp_path / "b.json").write_text("[" + ",\n".join(line.strip() for line in lines[:20]) + "]\n")
    with pytest.raises(StreamError, match="is a JSON array, which cannot grow: write one object per line"):
        list(follow_files(tmp_path / "b.json", label="state", idle=0).batches(10))


TIMES = "".join(f"03/{13 + i % 9}/2024 0{i % 9 + 1}:00 PM,0:{i:02}:00,1,2,{i % 2}\n" for i in range(30))
MARKED = "".join(f"{i if i % 5 else -999},{i if i % 9 else 'low'},{i % 2}\n" for i in range(30))


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("a b state\n" + "".join(f"{i} {i % 3}.5 {i % 2}\n" for i in range(30)), {}),
        ("a b state\n" + "".join(f"{i} {i * 2} {i % 3}.5 {i % 2}\n" for i in range(30)), {}),
        ("a;at;state\n" + "".join(f"1 {i:03},5 €;03/{13 + i % 15}/2024;x\n" for i in range(12)), {}),
        (f"at,took,x,x,state\n{TIMES}", {}),
        (f"at,took,x,x,state\n{TIMES}", {"times": "parts"}),
        ("a,b,state,\n" + "".join(f"{i},0x{i:02X},{i % 2},\n" for i in range(30)), {}),
        (f"a,b,state\n{MARKED}", {"na": ["a=-999", "b=*"]}),
    ],
)  # fmt: skip
def test_what_is_followed_is_read_as_in_files(tmp_path, text, how):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    read = open_file(tmp_path / "a.csv", label="state", missing="keep", **how)
    followed = follow_files(tmp_path / "a.csv", label="state", idle=0, missing="keep", **how)
    pairs = [(X.tolist(), y.tolist()) for X, y in read.batches(10)]
    assert repr([(X.tolist(), y.tolist()) for X, y in followed.batches(10)]) == repr(
        pairs[: len(text.splitlines()) // 10]
    )
    assert (followed.feature_names, followed.categories) == (read.feature_names, read.categories)


def test_files_of_other_programs_name_what_reads_them(tmp_path):
    for suffix, reader in (
        ("dta", "pandas.read_stata"), ("sas7bdat", "pandas.read_sas"), ("sav", "pandas.read_spss"),
        ("xls", "pandas.read_excel"), ("rds", "pyreadr.read_r"), ("mat", "scipy.io.loadmat"), ("npz", "numpy.load"),
    ):  # fmt: skip
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(b"x")
        with pytest.raises(StreamError) as found:
            open_file(path, label="state")
        assert f"{reader}({str(path)!r})" in str(found.value)
        assert len(str(found.value).splitlines()) == 1


def test_workbooks_without_openpyxl_name_the_extra(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    pd.DataFrame({"a": [1], "state": [2]}).to_excel(tmp_path / "a.xlsx", index=False)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'tamis\[excel\]'"):
        open_file(tmp_path / "a.xlsx", label="state")


def test_cells_of_workbooks(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({
        "day": pd.to_datetime(["2024-01-01", "2024-02-01"]),
        "at": pd.to_datetime(["2024-01-01 12:30", "2024-02-01 00:00"]),
        "x": [1.5, None], "flag": [True, False], "state": ["on", "off"],
    })  # fmt: skip
    frame.to_excel(tmp_path / "a.xlsx", index=False, startrow=2)
    stream = open_file(tmp_path / "a.xlsx", label="state", times="parts", missing="keep")
    X, _ = stream.take(2)
    assert stream.feature_names == [
        "day.year", "day.weekday", "at.year", "at.weekday", "at.hour", "x", "flag"
    ]  # fmt: skip
    assert X[:, 4:].tolist()[0] == [12.5, 1.5, 1.0]


def test_an_archive_has_one_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "x,state\n1,on\n2,off\n")
    assert open_file(tmp_path / "a.zip", label="state").take(2)[0].tolist() == [[1], [2]]
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as archive:
        archive.writestr("b.csv", "x,state\n1,on\n2,off\n")
    with pytest.raises(
        StreamError, match=r"a\.zip' contains 2 files \('a\.csv', 'b\.csv'\): extract the one to read"
    ):
        open_file(tmp_path / "a.zip", label="state")


def test_dat_is_what_it_contains(tmp_path):
    (tmp_path / "a.dat").write_text("1 1:0.5 3:2\n-1 2:1 # note\n")
    X, y = open_file(tmp_path / "a.dat").take(2)
    assert (X.toarray().tolist(), y.tolist()) == ([[0.5, 0, 2], [0, 1, 0]], [1, -1])
    (tmp_path / "b.dat.gz").write_bytes(gzip.compress(b"5.1 3.5 a\n4.9 3.0 b\n"))
    stream = open_file(tmp_path / "b.dat.gz", label=-1, header=False)
    assert (stream.take(2)[0].tolist(), stream.feature_names) == ([[5.1, 3.5], [4.9, 3.0]], ["x0", "x1"])
