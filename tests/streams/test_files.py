"""Files of every format: the same rows, and one clear sentence for whatever is wrong with them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import tamis
from tamis.errors import StreamError
from tamis.streams import arff, open_file
from tamis.streams.files import open_table

pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
N = 3000
X = np.column_stack([RNG.normal(size=N), RNG.integers(0, 9, N), RNG.random(N)])
KIND = np.array(["ham", "spam"])[RNG.integers(0, 2, N)]
COLOUR = np.array(["red", "blue", "green"])[RNG.integers(0, 3, N)]
SEEN = list(dict.fromkeys(COLOUR))
CODES = np.array([SEEN.index(c) for c in COLOUR], dtype=float)
EXPECTED = np.column_stack([X, CODES])


def table():
    return pa.table({"a": X[:, 0], "b": X[:, 1].astype(int), "c": X[:, 2], "colour": COLOUR, "kind": KIND})


def write(folder, name):
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.ipc
    import pyarrow.parquet

    path = folder / name
    if ".parquet" in name:
        pyarrow.parquet.write_table(table(), path, row_group_size=700)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(table(), path)
    elif name.endswith(".arrow"):
        with pyarrow.ipc.new_stream(path, table().schema) as writer:
            writer.write_table(table(), max_chunksize=500)
    elif ".arff" in name:
        head = "@RELATION r % x\n@attribute a numeric\n@ATTRIBUTE 'b' integer\n@attribute \"c\" real\n"
        head += "% a remark\n\n@attribute colour string\n@attribute kind {ham, 'spam'}\n@data\n"
        rows = zip(*[table()[n].to_pylist() for n in table().column_names], strict=True)
        path.write_text(head + "".join(", ".join(map(str, row)) + "\n% between\n" for row in rows))
    else:
        buffer = io.BytesIO()
        pyarrow.csv.write_csv(table(), buffer)
        path.write_bytes(PACKED.get(path.suffix, bytes)(buffer.getvalue()))
    return path


def zstd(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.csv.gz",
        "t.csv.bz2",
        "t.csv.xz",
        "t.csv.zst",
        "t.parquet",
        "t.feather",
        "t.arrow",
        "t.arff",
    ],
)
def test_every_format_gives_the_same_rows(tmp_path, name):
    stream = open_file(write(tmp_path, name), label="kind")
    assert stream.feature_names == ["a", "b", "c", "colour"]
    for size, start in ((777, 0), (100, 0), (64, 2500)):
        batches = list(stream.batches(size, start=start))
        np.testing.assert_allclose(np.vstack([x for x, _ in batches]), EXPECTED[start:], rtol=1e-12)
        assert np.concatenate([y for _, y in batches]).tolist() == KIND[start:].tolist()
        assert {len(y) for _, y in batches[:-1]} == {size}
    assert stream.progress() == 1.0
    assert stream.describe()["fingerprint"]


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz", "t.csv.zst", "t.arff"])
def test_a_compressed_file_is_recognised_whatever_its_name(tmp_path, name, packed):
    plain = write(tmp_path, name.removesuffix(Path(name).suffix) if name.count(".") == 2 else name)
    data = plain.read_bytes()
    path = tmp_path / name
    path.write_bytes(PACKED[packed](data))
    X, y = open_file(path, label="kind").take(3000)
    np.testing.assert_allclose(X, EXPECTED, rtol=1e-12)
    assert y.tolist() == KIND.tolist()
    assert open_table(path).names()[-1] == "kind"


@pytest.mark.parametrize("packed", PACKED)
def test_a_compressed_table_that_compresses_inside_is_refused(tmp_path, packed):
    path = write(tmp_path, "t.parquet")
    path.write_bytes(PACKED[packed](path.read_bytes()))
    with pytest.raises(StreamError, match="compressed as a whole"):
        open_file(path, label="kind")


def test_a_header_like_a_codec_is_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("BZh,y\n1,0\n2,1\n")
    assert open_file(path, label="y").take(2)[0].tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("packed", PACKED)
def test_compressed_standard_input_is_refused(monkeypatch, packed):
    data = PACKED[packed](b"a,y\n1,0\n" * 500)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(StreamError, match="Standard input is compressed"):
        open_file("-", label="y")


def test_a_codec_that_is_not_there_is_said(tmp_path, monkeypatch):
    path = tmp_path / "t.svm"
    path.write_bytes(zstd(b"1 1:2\n0 2:1\n"))
    monkeypatch.setattr(pa, "Codec", SimpleNamespace(is_available=lambda name: False))
    with pytest.raises(ImportError, match="built without zstd: decompress the file first"):
        open_file(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Reading zstd needs pyarrow: pip install 'tamis\[cli\]'"):
        open_file(path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("zero_based", [False, True])
def test_svmlight_rows_stay_sparse(tmp_path, suffix, zero_based):
    rows = sp.random(2500, 40, density=0.1, format="csr", random_state=1)
    rows = sp.vstack([sp.eye(40), rows[40:]], format="csr")
    buffer = io.BytesIO()
    dump_svmlight_file(rows, np.where(KIND[:2500] == "spam", 1, -1), buffer, zero_based=zero_based)
    path = tmp_path / f"t.svm{suffix}"
    path.write_bytes(gzip.compress(buffer.getvalue()) if suffix else buffer.getvalue())
    stream = open_file(path)
    assert (stream.n_rows, stream.n_features) == (2500, 40)
    batches = list(stream.batches(999))
    assert all(sp.issparse(x) for x, _ in batches)
    np.testing.assert_allclose(sp.vstack([x for x, _ in batches]).toarray(), rows.toarray(), rtol=1e-12)
    assert set(np.concatenate([y for _, y in batches]).tolist()) == {-1, 1}
    wide = open_file(path, n_features=100, zero_based=zero_based)
    assert wide.take(3)[0].shape == (3, 100)


def test_sparse_arff_rows(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(
        "@relation r\n@attribute a numeric\n@attribute b {no,yes}\n@attribute y {0,1}\n"
        "@data\n{0 2.5, 2 1}\n{1 yes}\n{}\n"
    )
    X, y = open_file(path, label="y").take(3)
    assert X.tolist() == [[2.5, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert y.tolist() == ["1", "0", "0"]


def test_label_by_position_and_without_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,x,5\n2,y,6\n")
    stream = open_file(path, label=1, header=False)
    assert stream.feature_names == ["x0", "x2"]
    X, y = stream.take(5)
    assert (X.tolist(), y.tolist()) == ([[1.0, 5.0], [2.0, 6.0]], ["x", "y"])
    assert open_file(path, label=-1, header=False).take(5)[1].tolist() == [5, 6]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_text_is_categorical_before_a_row_is_read(tmp_path, format):
    path, rng = tmp_path / f"t.{format}", np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    city = np.where(
        rng.random(600) < 0.8, np.array(["Bern", "Oslo"])[y], rng.choice(["Kyiv", "Rome", "Bonn"], 600)
    )
    frame = pd.DataFrame({"a": rng.normal(size=600), "city": city, "b": rng.normal(size=600), "y": y})
    frame.to_csv(path, index=False) if format == "csv" else frame.to_parquet(path)
    stream = open_file(path, label="y")
    assert stream.categorical == [1]
    selector = tamis.FIRES(1)
    tamis.prequential(stream, selector)
    assert selector.categorical == [1]
    assert selector.get_support().tolist() == [False, True, False]


def test_booleans_dates_and_declared_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("flag,day,zip,y\ntrue,1970-01-02,100,1\nfalse,1970-01-01,200,0\n")
    X, y = open_file(path, label="y", categorical=["zip"]).take(2)
    assert X.tolist() == [[1.0, 86400.0, 0.0], [0.0, 0.0, 1.0]]
    assert y.dtype.kind == "i"


def test_a_decimal_late_in_an_integer_column_is_no_surprise(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "7,0\n" * 400_000 + "7.5,1\n")
    *_, (X, _) = open_file(path, label="y").batches(100_000)
    assert X[-1, 0] == 7.5


def test_missing_numbers_become_the_mean_so_far(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,u,0\n,,1\n3,v,0\n")
    X, _ = open_file(path, label="y", missing="mean").take(3)
    assert X.tolist() == [[1.0, 0.0], [1.0, 1.0], [3.0, 2.0]]


def test_unlabelled_rows_can_be_dropped_and_are_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,\n3,1\n")
    stream = open_file(path, label="y", drop_unlabelled=True)
    X, y = stream.take(5)
    assert (X.ravel().tolist(), y.tolist(), stream.n_dropped) == ([1.0, 3.0], [0, 1], 1)


BAD = {
    "empty.csv": (b"", {}, "is empty"),
    "header.csv": (b"a,y\n", {}, "has a header but no rows"),
    "ragged.csv": (b"a,y\n1,0\n2\n", {}, "has 1 values in line 3, the others have 2"),
    "nolabel.csv": (
        b"a,target\n1,0\n",
        {"label": "tarket"},
        "has no column 'tarket'; did you mean 'target'?",
    ),
    "position.csv": (b"a,y\n1,0\n", {"label": 2}, "has 2 columns, so there is none at position 2"),
    "onlylabel.csv": (b"y\n1\n", {}, "has no column besides the label 'y'"),
    "missing.csv": (b"a,y\n1,0\n,1\n", {"missing": "error"}, "Column 'a' is missing in row 2"),
    "infinite.csv": (b"a,y\n1,0\ninf,1\n", {}, "Column 'a' is infinite in row 2"),
    "unlabelled.csv": (b"a,y\n1,0\n1,\n", {}, "has no label in row 2"),
    "junk.csv": (
        b"a,y\n" + b"1,0\n" * 500_000 + b"oops,1\n",
        {},
        "contains 'oops' in line 500002 of column 'a', which began as numbers",
    ),
    "latin1.csv": ("a,y\n\xe9,0\n".encode("latin1"), {"encoding": "utf-8"}, "not UTF-8"),
    "t.gz.csv.gz": (gzip.compress(os.urandom(99_999).hex().encode())[:5000], {}, "truncated or damaged"),
    "nozip.csv.gz": (b"a,y\n1,0\n", {}, "truncated or damaged"),
    "t.csv.zst": (zstd(os.urandom(99_999).hex().encode())[:5000], {}, "truncated or damaged"),
    "text.parquet": (b"a,y\n1,0\n", {}, "cannot be read"),
    "junk.arrow": (b"a,y\n1,0\n" * 9, {}, "cannot be read"),
    "nodata.arff": (b"@relation r\n@attribute y numeric\n", {}, "ends before its @data"),
    "csv.arff": (b"a,y\n1,0\n", {}, "is not an ARFF file"),
    "number.arff": (b"@attribute a real\n@attribute y {0}\n@data\n1,0\nq,0\n", {}, "contains 'q' in row 2"),
    "undeclared.arff": (
        b"@attribute a {u,v}\n@attribute y {0}\n@data\nu,0\nw,0\n",
        {},
        "contains 'w' in row 2 of column 'a', which declares other values",
    ),
    "kind.arff": (b"@attribute a matrix\n@attribute y {0}\n@data\n", {}, "a column of type 'matrix'"),
    "brace.arff": (
        b"@attribute a {u,v\n@attribute y {0}\n@data\nu,0\n",
        {},
        "'{u,v' without a brace at their end",
    ),
    "empty_item.arff": (b"@attribute a real\n@attribute y {0}\n@data\n{0 1,,1 0}\n", {}, "has no column ''"),
    "index_text.arff": (
        b"@attribute a real\n@attribute y {0}\n@data\n{\xc2\xb2 1}\n",
        {},
        "has no column '\xb2'",
    ),
    "long.arff": (
        b"@attribute a real\n@attribute y {0}\n@data\n" + b"9" * 5000 + b"x,0\n",
        {},
        "9x' in row 1 of real",
    ),
    "words.csv": (
        b"a,y\n1,0\n2,1\noops,1\n3,0\n",
        {},
        "contains 'oops' in row 3 of column 'a', where most values",
    ),
    "names.csv": (b"1.5,0\n2.5,1\n", {"label": -1}, "choose header=False"),
    "blank.csv": (b"\n\n\n", {}, "has no rows"),
    "list.svm": (b"# nothing\n", {"label": None}, "has no rows"),
    "huge.svm": (b"1 1:1\n0 2000000000:1\n", {"label": None}, "names column 2,000,000,000 in 21 bytes"),
    "far.svm": (b"1 4294967296:1\n", {"label": None}, "cannot be read in line 1"),
    "zero.svm": (b"1 1:1\n0 0:1\n", {"label": None, "n_features": 2}, "choose zero_based=True"),
    "short.arff": (
        b"@attribute a real\n@attribute y {0}\n@data\n1\n",
        {},
        "has 1 values in row 1, but declares 2",
    ),
    "index.arff": (b"@attribute a real\n@attribute y {0}\n@data\n{7 1}\n", {}, "has no column '7'"),
    "junk.svm": (b"1 1:2\n0 2:x\n", {"label": None}, "cannot be read in line 2"),
    "nan.svm": (b"1 1:2\n0 2:nan\n", {"label": None}, "missing or infinite in line 2"),
    "wide.svm": (
        b"1 1:2 9:1\n",
        {"label": None, "n_features": 3},
        "has more than 3 columns): give more n_features",
    ),
    "what.xyz": (b"a,y\n1,0\n", {}, "cannot be inferred from its name"),
    "whole.parquet.gz": (b"x", {}, "compressed as a whole"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence(tmp_path, name):
    content, options, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StreamError) as caught:
        list(open_file(path, **{"label": "y", **options}).batches(1000))
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    assert str(path) in text or "Column 'a'" in text


def test_truncated_parquet(tmp_path):
    path = write(tmp_path, "t.parquet")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(StreamError, match="cannot be read"):
        open_file(path, label="kind")


def test_no_such_file_and_folders(tmp_path):
    with pytest.raises(StreamError, match="There is no file"):
        open_file(tmp_path / "nothing.csv", label="y")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(StreamError, match="is a folder"):
        open_file(tmp_path / "folder.csv", label="y")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arff"])
def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path, name):
    path = write(tmp_path, name)
    stream = open_file(path, label="kind")
    batches = stream.batches(100)
    next(batches)
    os.utime(path, ns=(1, 1))
    with pytest.raises(StreamError, match="was modified while it was read"):
        list(batches)
    with pytest.raises(StreamError, match="was modified while it was read"):
        list(stream.batches(100))


def test_wrong_options_are_named(tmp_path):
    path = write(tmp_path, "t.csv")
    for options, message in (
        ({"label": "kind", "format": "xls"}, "format must be one of 'csv'"),
        ({"label": "kind", "missing": "drop"}, "missing must be one of"),
        ({}, "label must name the label column"),
        ({"label": "kind", "n_features": 0}, "n_features must be an integer"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            open_file(path, **options)


def test_labels_stay_whole_until_one_is_not(tmp_path):
    csv, svm = tmp_path / "t.csv", tmp_path / "t.svm"
    csv.write_text("a,y\n" + "7,3\n" * 400_000 + "7,0.5\n")
    svm.write_text("3 1:1\n" * 1500 + "0.5 1:1\n")
    for stream in (open_file(csv, label="y"), open_file(svm)):
        (first, *_, last) = (y for _, y in stream.batches(200))
        assert (first.dtype.kind, set(first.tolist()), last[-1]) == ("i", {3}, 0.5)


def test_numbers_of_single_precision_stay_so(tmp_path):
    import pyarrow.parquet

    path = tmp_path / "t.parquet"
    values = RNG.normal(size=(50, 2)).astype(np.float32)
    pyarrow.parquet.write_table(pa.table({"a": values[:, 0], "b": values[:, 1], "y": KIND[:50]}), path)
    found, _ = open_file(path, label="y").take(50)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values)


def test_labels_of_a_pandas_categorical(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": [1.0, 2.0, 3.0], "y": pandas.Categorical(["u", "v", "u"])}).to_parquet(path)
    assert open_file(path, label="y").take(3)[1].tolist() == ["u", "v", "u"]


def test_lines_longer_than_a_block_and_values_of_several_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.streams.csv_table._BLOCK_BYTES", 1 << 12)
    wide, quoted = tmp_path / "wide.csv", tmp_path / "quoted.csv"
    names = [f"c{i}" for i in range(1000)]
    row = ",".join(["0.123456789"] * 1000)  # 12 kB
    wide.write_text(",".join(names) + ",y\n" + f"{row},0\n{row},1\n")
    found, y = open_file(wide, label="y").take(2)
    assert (found.shape, y.tolist()) == ((2, 1000), [0, 1])
    quoted.write_text("a,t,y\n" + '1,"two\nlines",0\n' * 5000)
    assert sum(len(y) for _, y in open_file(quoted, label="y").batches(1000)) == 5000


def test_question_marks_are_missing_and_times_are_seconds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,at,y\n2,10:30:00,0\n?,00:00:01,1\n")
    found, _ = open_file(path, label="y", missing="mean").take(2)
    assert found.tolist() == [[2.0, 37800.0], [2.0, 1.0]]


def test_arff_dates_and_declared_order(tmp_path):
    path = tmp_path / "t.arff"
    head = "@relation r\n@attribute d date 'yyyy-MM-dd'\n@attribute s {low, mid, high}\n@attribute y {0,1}\n@data\n"
    path.write_text(head + "1970-01-02,high,1\n1970-01-01,low,0\n{0\t1970-01-03, 2\t1}\n")
    found, y = open_file(path, label="y").take(3)
    assert found.tolist() == [[86400.0, 2.0], [0.0, 0.0], [172800.0, 0.0]]
    assert y.tolist() == ["1", "0", "1"]


CELLS = [
    "1",
    "2.5",
    "",
    '"a"',
    '"a,b"',
    '"two\nlines"',
    '"""both"", she said"',
    '""',
    '5" pipe',
    'x"y"z',
    '"a" b',
    "\u00e9",
]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_are_cut_between_rows(tmp_path, monkeypatch, encoding, end):
    import pyarrow.csv

    rng, path = np.random.default_rng(len(end)), tmp_path / "t.csv"
    lines = [",".join(("t", rng.choice(CELLS), rng.choice(CELLS), str(i % 2))) for i in range(3000)]
    text = end.join(["p,q,r,y", *lines]).replace("two\nlines", f"two{end}lines")
    path.write_bytes(text.encode(encoding))
    whole = pyarrow.csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True),
    )
    for size in (257, 4096, 1 << 20):
        monkeypatch.setattr("tamis.streams.csv_table._BLOCK_BYTES", size)
        table = open_table(path, encoding=encoding)
        table.label, table.text = "y", {"p", "q", "r"}
        blocks = [columns for columns, _ in table.blocks()]
        assert (len(blocks) > 10) == (size < 1 << 20)
        for j, column in enumerate(whole.columns[1:3], start=1):
            assert [value for columns in blocks for value in columns[j].to_pylist()] == column.to_pylist()


def test_a_quote_that_is_not_closed_is_refused_before_all_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.streams.csv_table.LONGEST_LINE", 1 << 20)
    path = tmp_path / "t.csv"
    path.write_text("a,t,y\n" + "1,x,0\n" * 300_000 + '1,"x,0\n' + "1,x,0\n" * 600_000)
    with pytest.raises(StreamError, match="has a quote in line 300002 that is not closed where a value ends"):
        list(open_file(path, label="y", categorical=["t"]).batches(1000))
    path.write_text("a,t,y\n" + "1,x,0\n" * 300_000 + '1,"x,0' + "1,x,0" * 600_000)
    with pytest.raises(StreamError, match="has a row of more than 1 MB: look for a quote that is not closed"):
        list(open_file(path, label="y", categorical=["t"]).batches(1000))


@pytest.mark.parametrize("size", [50, 1 << 20])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("end", "line"),
    [('1,"x', 403), ('1,"x\n1,y\n', 403), ('1,"', 403), ('1,"x""', 403), ('1,x\n1,"a\nb"\n"1,x\n1,x', 406)],
)
def test_a_file_that_ends_within_a_quote_is_refused(tmp_path, monkeypatch, size, newline, end, line):
    monkeypatch.setattr("tamis.streams.csv_table._BLOCK_BYTES", size)
    path = tmp_path / "t.csv"
    above = "" if newline == "\r" else "# about\n"
    line -= newline == "\r"
    path.write_text((above + "a,y\n" + '1,x\n2,"y"\n' * 200 + end).replace("\n", newline), newline="")
    said = f"'.*t.csv' ends within a quoted value that begins in line {line}: close the quote there"
    with pytest.raises(StreamError, match=said):
        list(open_file(path, label="y").batches(100))


def test_a_quote_may_be_the_last_byte(tmp_path):
    for i, end in enumerate(('"x"', '"x""y"', 'x"', 'x""', '""')):
        (tmp_path / f"{i}.csv").write_text("a,y\n" + "1,x\n2,y\n" * 20 + f"1,{end}\n1,{end}")
        stream = open_file(tmp_path / f"{i}.csv", label="y", drop_unlabelled=True)
        assert sum(len(y) for _, y in stream.batches(100)) == (40 if end == '""' else 42)


def test_rows_are_numbered_over_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.streams.csv_table._BLOCK_BYTES", 1000)
    path = tmp_path / "t.csv"
    for bad, said in (
        ("1,oops,0", "'oops' in line 5002 of column 'b'"),
        ("1,2,0,4", "4 values in line 5002"),
    ):
        path.write_text("a,b,y\n" + "1,2,0\n" * 5000 + bad + "\n" + "1,2,0\n" * 500)
        with pytest.raises(StreamError, match=said):
            list(open_file(path, label="y").batches(1000))


ABANDONED = """
import sys
from tamis.streams import open_file
batches = open_file(sys.argv[1], label="y", encoding=sys.argv[2]).batches(100)
X, y = next(batches)
raise SystemExit(int(X.sum()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "encoding"), [("t.csv.xz", "utf-8"), ("t.csv", "latin-1"), ("-", "utf-8")])
def test_a_process_may_end_in_the_middle_of_a_file(tmp_path, name, encoding):
    data, path = b"a,b,y\n" + b"1,0,0\n" * 3_000_000, tmp_path / name
    if name.endswith(".xz"):
        path.write_bytes(lzma.compress(data, preset=0))
    elif name != "-":
        path.write_bytes(data)
    argument = name if name == "-" else str(path)
    program = [sys.executable, "-c", ABANDONED, argument, encoding]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if name == "-":
            with suppress(BrokenPipeError):
                process.stdin.write(data[: 6 << 20])
        _, err = process.communicate()
    assert (process.returncode, err) == (100, b"")


def test_an_arrow_file_that_points_outside_itself_is_refused(tmp_path):
    import pyarrow.feather

    path = tmp_path / "t.arrow"
    table = pa.table({"word": ["ab"] * 50, "y": [0, 1] * 25})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    data = path.read_bytes()
    places = np.arange(0, 102, 2, dtype="<i4").tobytes()
    assert data.count(places) == 1
    wrong = np.arange(0, 102, 2, dtype="<i4")
    wrong[20:] += 1 << 30
    path.write_bytes(data.replace(places, wrong.tobytes()))
    with pytest.raises(StreamError, match="check that it is complete"):
        list(open_file(path, label="y").batches(10))


STDIN = """
import sys
from tamis.streams import open_file
options = dict(label="y") if sys.argv[1] != "svmlight" else dict(n_features=3)
stream = open_file("-", format=sys.argv[1], **options)
X, y = next(stream.batches(10))
print((X.toarray() if sys.argv[1] == "svmlight" else X).tolist(), y.tolist(), stream.progress())
try:
    next(stream.batches(10))
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_standard_input_may_be_longer_than_its_first_block():
    text = "a,b,y\n" + "1,2,0\n" * 500_000 + "1.5,2,1\n"
    program = """
from tamis.streams import open_file
rows = total = 0
for X, y in open_file("-", label="y").batches(1000):
    rows, total = rows + len(y), total + X[:, 0].sum()
print(rows, total)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["500001", "500001.5"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "a,b,y\n1,2,0\n3,4,1\n"),
        (
            "arff",
            "@relation r\n@attribute a real\n@attribute b real\n@attribute y real\n@data\n1,2,0\n3,4,1\n",
        ),
        ("svmlight", "0 1:1 2:2\n1 1:3 2:4\n"),
    ],
)
def test_standard_input_is_read_once(format, text):
    done = subprocess.run(
        [sys.executable, "-c", STDIN, format], input=text, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("[[1.0, 2.0")
    assert "[3.0, 4.0" in first
    assert first.endswith("1.0")
    assert second == "Standard input can be read only once: save it to a file first."


def test_columns_can_be_dropped(tmp_path):
    stream = open_file(write(tmp_path, "t.csv"), label="kind", drop=["colour", "b"])
    assert stream.feature_names == ["a", "c"]
    with pytest.raises(ValueError, match="drop must not contain the label 'kind'"):
        open_file(tmp_path / "t.csv", label="kind", drop=["kind"])


def test_another_delimiter_is_suggested(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;y\n1;0\n2;1\n")
    with pytest.raises(StreamError, match="choose delimiter=';' to split it"):
        open_file(path, label="y", delimiter="|")
    X, y = open_file(path, label="y").take(2)
    assert (X.ravel().tolist(), y.tolist()) == ([1.0, 2.0], [0, 1])


def test_a_column_of_free_text_does_not_fill_the_memory(monkeypatch):
    from tamis.streams import encode

    monkeypatch.setattr(encode, "MAX_CATEGORIES", 3)
    encoder = encode.ColumnEncoder("note", "error")
    codes = encoder.encode(pa.array(["a", "b", "c", "d", "e", "a"]), first_row=1)
    assert codes.tolist() == [0, 1, 2, 3, 3, 0]
    assert encoder.categories == ["a", "b", "c"]


def test_the_page_shows_what_happens(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs" / "streams.md"
    if not page.is_file():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, str(page), "exec"), {})
        shown = re.findall(r"print\(.*\)  # (.*)", code)
        assert capsys.readouterr().out.splitlines() == shown


@pytest.mark.parametrize("sign", ["\\'", "'", '"', "'\\", "',", '",', " ", "''", "{", "a'"])
def test_a_line_of_arff_takes_time_in_proportion_to_its_length(sign):
    """Repetitions of any sign: a minute is far beyond what they take, and far below what trying all readings would."""
    text = sign * 200_000
    assert ",".join(arff._split(text)).replace(" ", "") == text.replace(" ", "")
    assert arff._ATTRIBUTE.match(f"@attribute {text}") is None or sign in "{a'"
    assert arff._ATTRIBUTE.match(f"@attribute x {text}y") is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense.arff", "sparse.arff", "t.svm"])
def test_twice_the_rows_are_twice_the_work(tmp_path, name):
    """The work is counted in calls of Python functions, since a clock knows of other programs too."""
    row = {"dense.arff": "1.5,'a, b',0", "sparse.arff": "{0 1.5, 1 'a, b'}", "t.svm": "1 3:0.5 7:2"}[name]
    head = (
        "" if name == "t.svm" else "@attribute x real\n@attribute s {c,'a, b'}\n@attribute y {0,1}\n@data\n"
    )
    calls = []
    for n in (1024, 1024, 2048, 4096):  # the first time, modules are imported
        path = tmp_path / name
        path.write_text(head + f"{row}\n" * n)
        stream = open_file(path, label=None if name == "t.svm" else "y")
        counted = [0]
        sys.setprofile(lambda frame, event, argument, counted=counted: counted.__setitem__(0, counted[0] + 1))
        try:
            assert sum(len(y) for _, y in stream.batches(500)) == n
        finally:
            sys.setprofile(None)
        calls.append(counted[0])
    assert calls[3] - calls[2] <= 2.2 * (calls[2] - calls[1])


def test_arff_values_are_split_at_commas_outside_quotes():
    cases = {
        "a, 'b,c' ,\"d,e\",f": ["a", "'b,c'", '"d,e"', "f"],
        "'it\\'s',1": ["'it\\'s'", "1"],
        "it's,2": ["it's", "2"],
        "'a',,b": ["'a'", "", "b"],
        "\"x,'y'": ['"x', "'y'"],
        "'x',": ["'x'", ""],
        "'": ["'"],
    }
    assert {text: arff._split(text) for text in cases} == cases


@pytest.mark.parametrize(
    ("name", "head"), [("t.arff", b"@attribute a real\n@attribute y {0}\n@data\n"), ("t.svm", b"1 1:1\n")]
)
def test_an_endless_line_is_refused_before_it_is_read(tmp_path, monkeypatch, name, head):
    monkeypatch.setattr("tamis.streams.source.LONGEST_LINE", 1 << 20)
    path = tmp_path / name
    path.write_bytes(head + b"1" * (2 << 20))
    with pytest.raises(StreamError, match="has more than 1 MB in line"):
        list(open_file(path, label=None if name.endswith("svm") else "y"))


@pytest.mark.slow
def test_rows_of_standard_input_are_used_as_they_come():
    program = """
from tamis.streams import open_file
for X, y in open_file("-", label="y").batches(100):
    if X[-1, 0] > 0:
        print(int(X[-1, 0]), flush=True)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"a,y\n" + b"0,0\n" * 300_000)
        for i in (1, 2):
            process.stdin.write(f"{i},0\n".encode() * 100)
            process.stdin.flush()
            assert process.stdout.readline() == f"{i}\n".encode()
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_reader_that_is_interrupted_is_not_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Pyarrow says it by an error of its own, even where somebody's handler lets the work go on for a while."""
    path = tmp_path / "table.csv"
    path.write_text("a,y\n" + "1,0\n2,1\n" * 500)

    def interrupted(*_: object, **__: object) -> None:
        raise pa.ArrowCancelled("Operation cancelled", number)

    for name in ("open_csv", "read_csv"):
        monkeypatch.setattr(f"pyarrow.csv.{name}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_file(path, label="y")


@pytest.mark.parametrize("name", ["categorical", "drop", "na", "clock"])
@pytest.mark.parametrize("value", ["state", b"state", 3])
def test_a_text_is_no_list_of_columns(tmp_path, name, value):
    path = tmp_path / "t.csv"
    path.write_text("s,t,a,e,y\n1,2,3,4,0\n5,6,7,8,1\n")
    with pytest.raises(TypeError, match=rf"^{name} must be a list, got b?'?\w+'?: pass \["):
        open_file(path, label="y", **{name: value})


@pytest.mark.parametrize("dates", [["03/04/2024"] * 8, [f"0{day}/04/2024 10:30" for day in range(1, 9)]])
def test_dates_with_ambiguous_day_and_month_are_named(tmp_path, dates):
    path = tmp_path / "t.csv"
    path.write_text("when,a,y\n" + "".join(f"{date},{i},{i % 2}\n" for i, date in enumerate(dates)))
    stream = open_file(path, label="y")
    with pytest.raises(
        StreamError, match=r"'when', whose day and month are ambiguous: choose time_format='%d/%m/%Y"
    ):
        stream.take(8)
    form = "%d/%m/%Y" + " %H:%M" * (" " in dates[0])
    assert open_file(path, label="y", time_format=form).take(1)[0][0, 0] > 1.7e9
    assert open_file(path, label="y", categorical=["when"]).categories == {}
    assert open_file(path, label="y", drop=["when"]).take(1)[0].tolist() == [[0.0]]


@pytest.mark.parametrize(
    "labels", [["2024-01-01", "2024-01-02"], ["12:00", "13:00"], ["1" * 20, "1" * 19 + "2"]]
)
def test_labels_that_are_no_numbers_of_64_bits_are_text(tmp_path, labels):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i},{labels[i % 2]}\n" for i in range(40)))
    _, y = open_file(path, label="y").take(40)
    assert y.tolist() == labels * 20
