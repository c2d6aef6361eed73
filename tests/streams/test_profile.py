"""A first look at a file: what it finds in columns, and everything that stands in the way at once."""

import datetime as dt
import tracemalloc

import numpy as np
import pytest

from tamis.errors import StreamError
from tamis.streams import load_dataset, open_file
from tamis.streams.files import TableStream, open_table
from tamis.streams.profile import profile_stream, profile_table

pa = pytest.importorskip("pyarrow")

N = 200
DAY = dt.datetime(2024, 3, 1)
COLUMNS = {
    "serial": [str(1000 + i) for i in range(N)],
    "countdown": [str(-i) for i in range(N)],
    "order_id": [str(7 * (i * 37 % N) + 3) for i in range(N)],
    "distance": [str(7 * (i * 37 % N) + 3) for i in range(N)],  # different, but no name of an identifier
    "person": [f"Person {i}" for i in range(N)],
    "remark": [f"note {i % 150}" for i in range(N)],
    "town": [f"town {i % 90}" for i in range(N)],
    "at": [(DAY + dt.timedelta(hours=i)).strftime("%d.%m.%Y %H:%M") for i in range(N)],
    "us": [f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(N)],
    "flag": ["true", "false"] * (N // 2),
    "holes": ["" if i % 10 == 0 else f"{i / 8}" for i in range(N)],
    "hot": ["inf" if i == 3 else f"{i / 4}" for i in range(N)],
    "state": ["offline" if i == 5 else f"{i / 16}" for i in range(N)],
    "level": ["abcdefghij"[i // 20] if i % 20 == 0 else f"{i / 16}" for i in range(N)],
    "still": ["7"] * N,
    "void": [""] * N,
    "y": ["yes" if i < 4 else "no" for i in range(N)],
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.csv"
    rows = zip(*COLUMNS.values(), strict=True)
    path.write_text("\n".join(map(";".join, [COLUMNS, *rows])) + "\n")
    return path


def look(path, label="y", **options):
    return profile_table(open_table(path), label, **options)


def test_what_columns_hold(file):
    kinds = {column.name: column.kind for column in look(file).columns}
    assert kinds == {
        "serial": "identifier", "countdown": "identifier", "order_id": "identifier", "distance": "number",
        "person": "identifier", "remark": "text", "town": "category", "at": "time", "us": "category", "flag": "flag",
        "holes": "number", "hot": "number", "state": "mixed", "level": "mixed", "still": "constant",
        "void": "empty", "y": "label",
    }  # fmt: skip


def test_identifiers_and_dates_nobody_can_read_are_left_out_unless_kept(file):
    found = look(file)
    assert set(found.excluded) == {
        "serial", "countdown", "order_id", "person", "remark", "us", "still", "void",
    }  # fmt: skip
    assert (found.excluded["still"], found.excluded["void"]) == ("it is 7 in every row", "it is empty")
    assert {"still", "void"}.isdisjoint(look(file, grows=True).excluded)
    assert "'%d/%m/%Y'" not in found.excluded["us"]
    assert "--time-format %d/%m/%Y)" in found.excluded["us"]
    assert found.excluded["person"] == "an identifier, 200 distinct texts in 200 rows"
    assert set(look(file, keep=["serial", "p*", "still", "void"]).excluded) == {
        "countdown",
        "order_id",
        "remark",
        "us",
    }
    rest = look(file, drop=["*d*", "still"], categorical=["serial"])
    assert set(rest.excluded) == {"person", "remark", "us"}
    assert "town" in look(file, max_texts=50).excluded


def test_columns_of_the_same_values_are_noted(tmp_path):
    rows = ["a,b,c,d,e,y"] + [f"{i % 7},w{i % 3},{i % 7},w{i % 3},{i % 7 + 1},{i % 2}" for i in range(N)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    notes = look(tmp_path / "t.csv").notes
    assert "c has the values of a in every row (--drop c)" in notes
    assert "d has the values of b in every row (--drop d)" in notes
    assert not any("e has" in note for note in notes)


def test_all_problems_are_told_at_once_with_what_mends_each(file):
    assert [(p.option, p.value) for p in look(file).problems] == [
        ("na", "offline"),
        ("na", "level=*"),
        ("na", "inf"),
    ]
    assert [p.option for p in look(file, missing="error").problems] == ["na", "na", "missing", "na"]
    assert "holes (10.0 %)" in look(file, missing="error").problems[2].text
    assert any("holes (10.0 %)" in note and "--missing mean" in note for note in look(file).notes)
    assert "void (100.0 %)" in look(file, keep=["void"], missing="error").problems[2].text
    assert look(file, missing="mean", drop=["state", "level", "hot"]).problems == []
    assert look(file, None).problems[0].option == "label"


def test_what_mends_each_problem_does_mend_them(file):
    table = open_table(file, na=["offline", "inf", "level=*"])
    found = profile_table(table, "y", missing="mean")
    assert found.problems == []
    X, _ = TableStream(table, "y", [], list(found.excluded), "mean", times="parts").take(N)
    assert X.shape == (N, len(COLUMNS) - 1 - len(found.excluded) + 2)
    assert np.isfinite(X).all()


def test_labels(file, tmp_path):
    found = look(file)
    assert found.classes == {"no": 196, "yes": 4}
    assert any("rare class: yes (2.0 %)" in note for note in found.notes)
    assert "not classes" in look(file, "distance").problems[0].text
    assert look(file, "distance", classes=False).classes == {}
    assert "distinct texts" in look(file, "person").problems[0].text
    holes = tmp_path / "holes.csv"
    holes.write_text("a,y\n1,0\n2,\n3,1\n")
    assert [p.option for p in look(holes).problems] == ["drop_unlabelled"]
    with pytest.raises(StreamError, match="did you mean 'state'"):
        look(file, "stat")


def test_prices_and_per_cents_are_numbers_and_said_to_be(tmp_path):
    lines = [f'"${i * 37.5:,.2f}";{i / 3:.1f}%;{"n/a?" if i == 30 else f"€{i}.5"};{i % 2}' for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("price;share;fee;y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    found = look(path)
    assert [(c.kind, c.examples[:2]) for c in found.columns[:2]] == [
        ("number", ("0", "37.5")),
        ("number", ("0", "0.3")),
    ]
    assert [note.split(",")[0] for note in found.notes] == [
        "price contains numbers written with $",
        "share contains numbers written with %",
    ]
    assert [(one.option, one.value) for one in found.problems] == [("na", "n/a?")]
    asked = look(path, categorical=["price"], drop=["fee"])
    assert (asked.columns[0].kind, len(asked.notes)) == ("category", 1)


def test_few_rows_make_no_identifier(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},n{i},{i % 2}\n" for i in range(19)))
    assert look(path).excluded == {}


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_other_formats_tell_the_same(tmp_path, suffix):
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table(
        {"who": [f"p{i}" for i in range(50)], "at": [DAY] * 25 + [DAY + dt.timedelta(1)] * 25, "many": [[1, 2]] * 50,
         "x": [None, *np.arange(49.0) ** 2], "y": [i % 2 for i in range(50)]}
    )  # fmt: skip
    path = tmp_path / f"t.{suffix}"
    (pyarrow.parquet.write_table if suffix == "parquet" else pyarrow.feather.write_feather)(table, path)
    found = look(path)
    assert [column.kind for column in found.columns] == [
        "identifier",
        "time",
        "unreadable",
        "number",
        "label",
    ]
    assert set(found.excluded) == {"who", "many"}
    assert (found.n_rows, found.whole, found.classes) == (50, True, {"0": 25, "1": 25})
    stream = TableStream(open_table(path), "y", drop=list(found.excluded), missing="mean", times="parts")
    assert stream.take(50)[0].shape == (50, 4)


def test_a_look_reads_little_of_a_long_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "1.25,red,0\n" * 2_000_000)
    tracemalloc.start()
    found = look(path)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert not found.whole
    assert 10_000 < found.n_rows < 200_000


def test_rows_without_columns_of_a_table(tmp_path):
    found = profile_stream(load_dataset("electricity"))
    assert [column.name for column in found.columns][:3] == ["date", "day", "period"]
    assert (found.n_rows, found.whole) == (10_000, False)
    path = tmp_path / "t.svm"
    path.write_text("1 3:2.0 17:1.0\n-1 5:1.0\n")
    found = profile_stream(open_file(path))
    assert (found.columns, found.classes) == ([], {"-1": 1, "1": 1})


def test_streams_tell_what_they_are(file):
    stream = open_file(file, label="y")
    assert repr(stream) == f"TableStream({file}, 16 features, label 'y')"
    assert "<b>TableStream</b>" in stream._repr_html_()
    assert repr(load_dataset("electricity")).startswith("DatasetStream(electricity, 45,312 rows, 8 features")


def test_numbers_in_several_units_are_named_and_codes_are_not(tmp_path):
    heights = [f"{160 + i % 30}cm" if i % 3 else f"{5 + i % 2}'{i % 12}\"" for i in range(90)]
    codes = [f"{i % 9}{'ABCDEFGH'[i % 8]}" for i in range(90)]
    rows = [
        "height,seat,y",
        *(
            f'"{h.replace(chr(34), chr(34) * 2)}",{c},{i % 2}'
            for i, (h, c) in enumerate(zip(heights, codes, strict=True))
        ),
    ]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    found = [text for text in look(tmp_path / "t.csv", label="y").warnings if "units" in text]
    assert len(found) == 1
    assert found[0].startswith("height contains numbers in several units, such as ")
