"""CSV as people write it: separators, decimal commas, thousands, encodings and dates are found."""

import csv
import datetime as dt
import io

import numpy as np
import pytest

from tamis.errors import StreamError
from tamis.streams import open_file
from tamis.streams.dialect import detect_delimiter, detect_encoding, detect_time_format
from tamis.streams.files import open_table
from tamis.streams.named_streams import as_stream
from tamis.streams.profile import profile_table

pa = pytest.importorskip("pyarrow")

ROWS = [
    ("51,9", "ja, oft", "1.234,5", "0"),
    ("48", "nein", "12", "1"),
    ("-0,25", "ja; oft", "1.000.000", "0"),
]


def write(path, rows, delimiter, encoding="utf-8", header=("größe", "text", "preis", "y")):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows([header, *rows])
    path.write_bytes(buffer.getvalue().encode(encoding))
    return path


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_separator_and_encoding_gives_the_same_rows(tmp_path, delimiter, encoding):
    stream = open_file(write(tmp_path / "t.csv", ROWS, delimiter, encoding), label="y")
    X, y = stream.take(3)
    assert stream.feature_names == ["größe", "text", "preis"]
    assert X.tolist() == [[51.9, 0.0, 1234.5], [48.0, 1.0, 12.0], [-0.25, 2.0, 1e6]]
    assert y.tolist() == [0, 1, 0]
    assert stream.categories["text"] == ["ja, oft", "nein", "ja; oft"]


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_numbers_are_read_as_python_writes_them(tmp_path, rng, delimiter, mark):
    numbers = np.round(rng.normal(size=(200, 3)) * [1, 1000, 1e6], 2)
    rows = [
        [*(repr(v).replace(".", mark) for v in row), str(i % 2)] for i, row in enumerate(numbers.tolist())
    ]
    stream = open_file(write(tmp_path / "t.csv", rows, delimiter, header="abcy"), label="y")
    np.testing.assert_array_equal(stream.take(200)[0], numbers)


def test_quoted_thousands_of_a_comma_file(tmp_path):
    path = write(tmp_path / "t.csv", [("1,234", "2.5", "0"), ("12,345,678.5", "3.5", "1")], ",", header="aby")
    assert open_file(path, label="y").take(2)[0].tolist() == [[1234.0, 2.5], [12345678.5, 3.5]]


@pytest.mark.parametrize(
    "form", ["{sign}{x}", "{sign} {x}", "{x}{sign}", "{x} {sign}", "{x}\u00a0{sign}", "{x}\u202f{sign}"]
)
@pytest.mark.parametrize("sign", ["$", "€", "£", "%", "‰"])
@pytest.mark.parametrize("mark", [".", ","])
def test_a_sign_of_a_currency_or_of_per_cent_stands_beside_a_number(tmp_path, rng, form, sign, mark):
    numbers = np.round(rng.normal(size=100) * 10.0 ** rng.integers(0, 7, size=100), 2)
    swapped = str.maketrans(",.", ",." if mark == "." else ".,")
    spelled = [f"{abs(v):,.2f}".translate(swapped) for v in numbers]
    signed = [
        "-" * bool(v < 0) + form.format(sign=sign, x=text) for v, text in zip(numbers, spelled, strict=True)
    ]
    rows = [(text, "" if i == 7 else text, str(i % 2)) for i, text in enumerate(signed)]
    stream = open_file(write(tmp_path / "t.csv", rows, ";", header="aby"), label="y", missing="keep")
    X, _ = stream.take(100)
    np.testing.assert_array_equal(X[:, 0], numbers)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(X[:, 1])), [7])
    assert stream.categories == {}


def test_what_is_no_number_with_one_sign_stays_text(tmp_path):
    rows = [("$5", "5%", "a$", "$1,5$", "0"), ("€6", "$6", "5$", "$2", "1")]
    path = write(tmp_path / "t.csv", rows, ";", header="abcdy")
    assert list(open_file(path, label="y", categorical=["c", "d"]).take(2)[0][1]) == [1.0] * 4
    asked = open_file(
        write(tmp_path / "u.csv", [("$5", "0"), ("$6", "1")], ",", header="ay"), label="y", categorical=["a"]
    )
    assert asked.take(2)[0].tolist() == [[0.0], [1.0]]
    assert asked.categories == {"a": ["$5", "$6"]}


def test_a_late_word_among_prices_is_told_with_its_row(tmp_path):
    late = write(tmp_path / "t.csv", [("$1,234.5", "0")] * 120_000 + [("$oops", "1")], ";", header="ay")
    with pytest.raises(
        StreamError, match=r"contains 'oops' in row 120001 of column 'a', which began as numbers"
    ):
        list(open_file(late, label="y").batches(10_000))


def test_a_number_with_the_other_mark_is_never_a_category(tmp_path):
    rows = [("51.5", "3.25", "7,5", "0"), ("48.0", "1.75", "7,25", "1")]
    path = write(tmp_path / "t.csv", rows, ";", header="abcy")
    assert open_file(path, label="y").take(2)[0].tolist() == [[51.5, 3.25, 7.5], [48.0, 1.75, 7.25]]
    with pytest.raises(StreamError, match="'7,5' in row 1 of column 'c', but the other columns have a point"):
        open_file(path, label="y", decimal=".").take(2)
    assert open_file(path, label="y", categorical=["c"]).take(2)[0][:, 2].tolist() == [0.0, 1.0]
    with pytest.raises(
        StreamError, match=r"'51\.5' in row 1 of column 'a', but the other columns have a comma"
    ):
        open_file(path, label="y", decimal=",").take(2)


def test_numbers_that_begin_with_zero_have_no_thousands(tmp_path):
    path = write(tmp_path / "t.csv", [("0,164", "0"), ("-1,239", "1"), ("0,590", "0")], ";", header="ay")
    assert open_file(path, label="y").take(3)[0][:, 0].tolist() == [0.164, -1.239, 0.59]


def test_day_and_month_are_known_from_any_row_of_the_first_block(tmp_path):
    """Here the first two thousand values are of the first twelve days of a month."""
    times = [f"{1 + i // 170:02}/03/2024 {i % 24:02}:{i % 60:02}:{i % 59:02}" for i in range(2500)]
    path = write(tmp_path / "t.csv", [(at, str(i % 2)) for i, at in enumerate(times)], ",", header="ay")
    table = open_table(path)
    assert table.time_formats == {"a": "%d/%m/%Y %H:%M:%S"}


def test_what_is_said_is_not_judged(tmp_path):
    path = write(tmp_path / "t.csv", [("1,234", "0"), ("5,678", "1")], ";", header="ay")
    assert open_file(path, label="y").take(2)[0].tolist() == [[1.234], [5.678]]
    assert open_file(path, label="y", decimal=".").take(2)[0].tolist() == [[1234.0], [5678.0]]
    with pytest.raises(ValueError, match="encoding 'klingon' is not known"):
        open_file(path, label="y", encoding="klingon")
    with pytest.raises(ValueError, match="decimal must be one of"):
        open_file(path, label="y", decimal=";")


def test_a_late_thousand_and_a_late_word_are_told_with_their_row(tmp_path):
    late = write(tmp_path / "t.csv", [("1.234,5", "0")] * 150_000 + [("oops", "1")], ";", header="ay")
    with pytest.raises(
        StreamError, match="contains 'oops' in row 150001 of column 'a', which began as numbers"
    ):
        list(open_file(late, label="y").batches(10_000))


def test_a_late_letter_that_is_not_utf8_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\n" + b"red,0\n" * 400_000 + "weiß,1\n".encode("latin-1"))
    with pytest.raises(StreamError, match="not UTF-8"):
        list(open_file(path, label="y").batches(100_000))
    assert sum(len(y) for _, y in open_file(path, label="y", encoding="latin-1").batches(100_000)) == 400_001


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)
    with pytest.raises(StreamError, match="not text"):
        open_file(path, label="y")


def test_other_words_may_mean_missing(tmp_path):
    path = write(tmp_path / "t.csv", [("1,5", "0"), ("offline", "1"), ("2,5", "0")], ";", header="ay")
    with pytest.raises(StreamError, match="'offline' in row 2 of column 'a', where most values are numbers"):
        open_file(path, label="y").take(3)
    assert open_file(path, label="y", na=["offline"], missing="mean").take(3)[0].ravel().tolist() == [
        1.5,
        1.5,
        2.5,
    ]


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["31.01.2024", "01.02.2024"], "%d.%m.%Y"),
        (["31/01/2024 23:59", "01/02/2024 00:00"], "%d/%m/%Y %H:%M"),
        (["01/31/2024", "02/01/2024"], "%m/%d/%Y"),
        (["01/02/2024", "03/04/2024"], ""),
        (["1.4", "1.5.2"], None),
        (["red"], None),
        ([], None),
    ],
)
def test_how_dates_are_put(values, form):
    assert detect_time_format(values) == form


def test_times_become_their_parts(tmp_path):
    rows = [
        ("2024-07-01 12:30:00", "01.07.2024", "06:15:00", "0"),
        ("1969-12-31 23:00:00", "31.12.1969", "23:30:00", "1"),
    ]
    path = write(tmp_path / "t.csv", rows, ",", header=["at", "day", "clock", "y"])
    stream = open_file(path, label="y", times="parts")
    X, _ = stream.take(2)
    assert stream.feature_names == [
        "at.year",
        "at.weekday",
        "at.hour",
        "day.year",
        "day.weekday",
        "clock.hour",
    ]
    middle = 2024 + (182 + 12.5 / 24) / 366
    np.testing.assert_allclose(X[0], [middle, 1, 12.5, 2024 + 182 / 366, 1, 6.25], rtol=1e-12)
    np.testing.assert_allclose(X[1], [1970 - 1 / 24 / 365, 3, 23, 1969 + 364 / 365, 3, 23.5], rtol=1e-12)
    seconds, _ = open_file(path, label="y").take(2)
    assert seconds.tolist()[0] == [1719837000.0, 1719792000.0, 22500.0]


def test_american_dates_are_said_where_nobody_can_tell(tmp_path):
    path = write(tmp_path / "t.csv", [("03/04/2024", "0"), ("05/06/2024", "1")], ",", header="dy")
    X, _ = open_file(path, label="y", time_format="%m/%d/%Y", times="parts").take(2)
    assert X[:, 1].tolist() == [1.0, 1.0]  # the fourth of March and the sixth of May were Mondays
    X, _ = open_file(path, label="y", time_format="%d/%m/%Y", times="parts").take(2)
    assert X[:, 1].tolist() == [3.0, 3.0]  # the third of April and the fifth of June were Wednesdays


def test_a_missing_time_is_missing_in_each_part(tmp_path):
    path = write(tmp_path / "t.csv", [("2024-01-01", "0"), ("", "1")], ",", header="dy")
    assert np.isnan(open_file(path, label="y", times="parts", missing="keep").take(2)[0][1]).all()
    with pytest.raises(StreamError, match=r"'d\.year' is missing in row 2"):
        open_file(path, label="y", times="parts", missing="error").take(2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('a,"b;c",d\n1,"2;3;4",5\n', ","),
        ("1,5;2,5\n2,5;3,75\n", ";"),
        ("a b\n1 2\n", " "),
        ("red apple,blue plum\ndark red,light blue\n", ","),
        ("a b c\n1,5 2,5 3\n", " "),
        ("       city  n\n0  New York  1\n1      Rome  2\n", "  "),
        ("y\n1\n2\n", ","),
        ("a,b\n1,2\n3\n", ","),
        ("a;b\n1;2\n3\n", ";"),
        ("", ","),
    ],
)
def test_the_separator_that_cuts_all_lines_alike(text, found):
    assert detect_delimiter(text, whole=True) == found


def test_a_letter_cut_at_the_end_is_still_utf8():
    assert detect_encoding("weiß".encode()[:-1], whole=False) == "utf-8"


@pytest.mark.parametrize("drop", [["colour", "b?"], ["b?", "col*"], ["[bc]*"]])
def test_columns_are_dropped_by_pattern(tmp_path, drop):
    path = write(
        tmp_path / "t.csv", [("1", "2", "3", "red", "0")], ",", header=["a", "b1", "b2", "colour", "y"]
    )
    assert open_file(path, label="y", drop=drop).feature_names == ["a"]
    with pytest.raises(StreamError, match=r"has no column like 'z\*'"):
        open_file(path, label="y", drop=["z*"])


def test_a_frame_is_told_what_to_use():
    import pyarrow as pa

    for given in (pa.table({"a": [1]}), np.zeros((2, 2)), ([[1]], [0])):
        with pytest.raises(TypeError, match=r"rows in memory are a stream already.* \(X, y\)"):
            open_file(given, label="y")


# -- what stands above the names, blanks around them, and names that are none ------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("above", "delimiter"),
    [
        ("sep=;\r\n", ";"),
        ("SEP=|\n", "|"),
        ('"sep=;"\n', ";"),
        ("# von Hand, größe\n# one; two; three\n", ","),
    ],
)
def test_lines_above_the_names_are_passed_over(tmp_path, above, delimiter, encoding):
    plain = write(tmp_path / "plain.csv", ROWS, delimiter)
    path = tmp_path / "t.csv"
    path.write_bytes((above + plain.read_text(encoding="utf-8")).encode(encoding))
    stream, other = open_file(path, label="y"), open_file(plain, label="y")
    assert stream.feature_names == other.feature_names == ["größe", "text", "preis"]
    for _ in range(2):  # each pass begins below them
        np.testing.assert_array_equal(stream.take(3)[0], other.take(3)[0])
    n = above.count("\n")
    assert profile_table(open_table(path), "y").notes[0] == (
        f"{n} line{'s' * (n > 1)} above the header skipped, the first is {above.splitlines()[0]!r}"
    )


def test_lines_above_the_names_count_where_a_line_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("# one\n# two\na,y\n" + "1.5,0\n" * 50 + "1,2,3\n")
    with pytest.raises(StreamError, match=r"has 3 values in line 54, the others have 2: fix that line\."):
        open_file(path, label="y")


def test_names_that_begin_with_a_sign_of_notes_are_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("# made by hand\n#a,b,y\n1,2,0\n3,4,1\n")
    assert open_file(path, label="y").feature_names == ["#a", "b"]
    path.write_text("#a,b,y\n1,2,0\n3,4,1\n")
    assert open_file(path, label="y").feature_names == ["#a", "b"]


def test_names_below_other_lines_are_hinted_at(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("made by hand\n\na,b,y\n1,2,0\n3,4,1\n")
    with pytest.raises(
        StreamError, match=r"has 3 values in line .*, or delete the lines above it if it is the header"
    ):
        open_file(path, label="y")


def test_blanks_around_names_and_texts_are_none_of_theirs(tmp_path):
    rows = " outcome , a, kind ,b\n" + " no , 1.5, red ,n/a\n yes ,2.5 ,red, 3 \nno, NA , blue, 4\n" * 2
    path = tmp_path / "t.csv"
    path.write_text(rows)
    stream = open_file(path, label="outcome", missing="keep")
    X, y = stream.take(6)
    assert stream.feature_names == ["a", "kind", "b"]
    np.testing.assert_array_equal(X[:3], [[1.5, 0, np.nan], [2.5, 0, 3], [np.nan, 1, 4]])
    assert y.tolist() == ["no", "yes", "no"] * 2
    path.write_text("name,y\n a,0\na,1\n")  # without blanks around the names they are what the file says
    assert open_file(path, label="y", categorical=["name"]).take(2)[0].tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("first", "is_row"),
    [("5.1,3.5,1.4,0.2,setosa", True), ("0.1,-0.2,d,1e-3,leave", True), ("1.5,2.5,3.5,4.5,5.5", True),
     ("0.1,0.25,0.5,0.75,label", False), ("2019,2020,2021,2022,label", False), ("0,1,2,3,4", False),
     ("1,1,2,3,4", True), ("a,b,c,d,1.5", False)],
)  # fmt: skip
def test_a_first_row_of_values_is_not_taken_for_names(tmp_path, first, is_row):
    path = tmp_path / "t.csv"
    path.write_text(first + "\n" + "1.5,2.5,3.5,4.5,x\n2.5,1.5,0.5,3.5,z\n")
    if is_row:
        with pytest.raises(StreamError, match=r"begins with a line of numbers .* choose header=False"):
            open_file(path, label=-1)
        assert open_file(path, label=-1, header=False).feature_names == ["x0", "x1", "x2", "x3"]
    else:
        assert open_file(path, label=-1).feature_names == first.split(",")[:4]


def test_two_columns_of_one_name_are_numbered_as_in_pandas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("price;price;y\n" + "1,50 €;2,5;0\n2,50 €;1,5;1\n" * 20)
    profile = profile_table(open_table(path), "y")
    assert profile.problems == []
    assert "several columns are named price: the later ones are read as price.1" in profile.notes
    stream = open_file(path, label="y")
    assert (stream.feature_names, stream.take(1)[0].tolist()) == (["price", "price.1"], [[1.5, 2.5]])


WRITTEN = {
    "15345.58": ["15 345,58 €", "15\u00a0345,58 €", "15\u202f345,58\u202f€", "15'345.58", "15\u2019345.58 CHF",
                 "15345.58kg",
                 "€15,345.58", "15.345,58 EUR", "EUR 15,345.58", "15345.58 USD"],
    "-15345.58": ["(15,345.58)", "\u221215345.58", "-15 345,58 €", "(15.345,58 €)",
                  "15,345.58-"],
    "165": ["165cm", "165 cm", "165°"[:3] + " mm", "165%"],
}  # fmt: skip


@pytest.mark.parametrize("value", WRITTEN)
def test_amounts_and_units_are_numbers(tmp_path, value):
    for text in WRITTEN[value]:
        other = (
            text.replace("345", "678").replace("65", "67") if value != "165" else text.replace("165", "170")
        )
        lines = "".join(f'"{one}";{label}\n' for one, label in ((text, "a"), (other, "b")) for _ in range(3))
        (tmp_path / "t.csv").write_text(f"x;y\n{lines}", encoding="utf-8")
        stream = open_file(tmp_path / "t.csv", label="y")
        assert (stream.take(1)[0].tolist(), stream.categorical) == ([[float(value)]], []), text


def test_versions_codes_and_telephones_remain_text(tmp_path):
    for text in ("A12 B7 C3", "12cm 3in 4ft", "1/2 3-4-5 6", "10k 5M 3", "0x1F 0x2 0xFF"):
        values = text.split()
        lines = "".join(f"{value},{i % 2}\n" for i, value in enumerate(values * 30))
        (tmp_path / "t.csv").write_text(f"x,y\n{lines}")
        profile = profile_table(open_table(tmp_path / "t.csv"), "y")
        assert profile.columns[0].kind in ("category", "mixed"), values


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["03/30/2024 08:00 PM", "03/31/2024 08:30 AM"], dt.datetime(2024, 3, 30, 20)),
        (["30/03/2024 8:00:05 pm", "31/03/2024 8:30:00 am"], dt.datetime(2024, 3, 30, 20, 0, 5)),
        (["Jan 13 2000", "Feb 1 2000"], dt.datetime(2000, 1, 13)),
        (["Mar 30, 2024", "Apr 2, 2024"], dt.datetime(2024, 3, 30)),
        (["30-Mar-2024 20:00", "01-Apr-2024 21:00"], dt.datetime(2024, 3, 30, 20)),
        (["30 March 2024", "1 April 2024"], dt.datetime(2024, 3, 30)),
        (["12/31/24 8:05 PM", "12/30/24 9:15 AM"], dt.datetime(2024, 12, 31, 20, 5)),
        (["19-Sep-03", "20-Sep-03"], dt.datetime(2003, 9, 19)),
        (["08:05 PM", "12:30 AM"], dt.datetime(1970, 1, 1, 20, 5)),
        (["12:30 am", "12:30 pm"], dt.datetime(1970, 1, 1, 0, 30)),
    ],
)
def test_dates_with_names_and_halves_of_days(tmp_path, texts, first):
    (tmp_path / "t.csv").write_text(
        "at;y\n" + "".join(f"{text};{i % 2}\n" for i, text in enumerate(texts * 3))
    )
    X, _ = open_file(tmp_path / "t.csv", label="y").take(1)
    assert X.tolist() == [[first.replace(tzinfo=dt.UTC).timestamp()]]
    names = open_file(tmp_path / "t.csv", label="y", times="parts").feature_names
    has_hour, is_date = ":" in texts[0], first.year > 1970
    assert names == (["at.year", "at.weekday"] + ["at.hour"] * has_hour if is_date else ["at"])


def test_durations_are_seconds_in_any_container(tmp_path):
    pd = pytest.importorskip("pandas")
    texts = ["0:16:00", "1:00:30", "26:00:00", "0:00:01.5"]
    spans = [dt.timedelta(seconds=s) for s in (960, 3630, 93600, 1.5)]
    assert [str(span) for span in spans[:2]] == texts[:2]
    y = ["a", "b"] * 2
    (tmp_path / "a.csv").write_text("took,y\n" + "".join(f"{t},{c}\n" for t, c in zip(texts, y, strict=True)))
    pd.DataFrame({"took": spans, "y": y}).to_csv(tmp_path / "b.csv", index=False)  # 0 days 00:16:00
    (tmp_path / "c.csv").write_text(
        "took,y\n" + "".join(f'"{t}",{c}\n' for t, c in zip(spans, y, strict=True))
    )
    pq = pytest.importorskip("pyarrow.parquet")
    for unit in ("s", "ms", "us", "ns"):
        values = pa.array(spans[:3], pa.duration(unit))
        pq.write_table(pa.table({"took": values, "y": y[:3]}), tmp_path / f"{unit}.parquet")
    for times in ("seconds", "parts"):
        for name in ("a.csv", "b.csv", "c.csv", *(f"{unit}.parquet" for unit in ("s", "ms", "us", "ns"))):
            stream = open_file(tmp_path / name, label="y", times=times)
            X, _ = stream.take(4)
            assert (stream.feature_names, X[:3, 0].tolist()) == (["took"], [960, 3630, 93600]), name
            profile = profile_table(open_table(tmp_path / name), "y", times=times)
            assert (profile.columns[0].kind, profile.columns[0].note) == ("time", "becomes seconds")
    frame = pd.DataFrame({"took": spans, "y": y})
    assert as_stream(frame, "y").take(4)[0][:, 0].tolist() == [960, 3630, 93600, 1.5]


def test_a_late_value_that_is_no_duration_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("took,y\n" + "0:16:00,a\n1:10:00,b\n" * 60_000 + "soon,a\n")
    with pytest.raises(
        StreamError, match="contains 'soon' in row 120001 of column 'took', which began as durations"
    ):
        list(open_file(tmp_path / "t.csv", label="y").batches(1000))


def test_hexadecimal_numbers_are_text_beside_any_other_values(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    for values in (["0x1F", "0x2A"], ["0x1F", "12"], ["0x1234567890abcdef12", "0xFF"]):
        (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{v},{i % 2}\n" for i, v in enumerate(values * 5)))
        pq.write_table(pa.table({"x": values * 5, "y": [0, 1] * 5}), tmp_path / "t.parquet")
        streams = [
            open_file(tmp_path / f"t.{suffix}", label="y", categorical=["x"]) for suffix in ("csv", "parquet")
        ]
        assert streams[0].take(4)[0].tolist() == streams[1].take(4)[0].tolist()
        assert streams[0].categories == streams[1].categories == {"x": values}
    (tmp_path / "t.csv").write_text("x,y\n" + "0x1F,0\n12,1\n13,0\n" * 5)
    assert profile_table(open_table(tmp_path / "t.csv"), "y").problems[0].option == "na"


def test_names_of_aligned_columns_may_be_a_note(tmp_path):
    rows = "".join(f"{i / 7:7.3f} {i % 4:3d} {i % 2}\n" for i in range(30))
    (tmp_path / "t.dat").write_text(f"# heat   light y\n{rows}")
    stream = open_file(tmp_path / "t.dat", label="y")
    assert (stream.feature_names, stream.take(2)[0].tolist()) == (["heat", "light"], [[0, 0], [0.143, 1]])


def test_a_line_of_values_is_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("x,s,n,t,p\n" + "x,y,w,t,a\nb,s,w,t,l\nx,s,n,f,e\n" * 20)
    with pytest.raises(StreamError, match=r"begins with a line of values .*choose header=False"):
        open_table(tmp_path / "t.csv")
    assert open_file(tmp_path / "t.csv", label=-1, header=False).feature_names == ["x0", "x1", "x2", "x3"]
    (tmp_path / "t.csv").write_text(
        "city,state\n" + "Rome,on\nParis,off\n" * 20 + "city,state\n"
    )  # two files joined
    assert open_table(tmp_path / "t.csv").names() == ["city", "state"]
