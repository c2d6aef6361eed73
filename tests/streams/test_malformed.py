"""Malformed text: what `open_file` refuses, `follow_files` puts into the dead letters, and it reads all other rows."""

import json
import random
import warnings

import numpy as np
import pytest

from tamis.cli import main
from tamis.errors import StreamError
from tamis.streams import follow_files, open_file

HEADER = b"heat,sound,colour,state\n"
HOW = {"label": "state", "encoding": "utf-8", "categorical": ["colour"], "missing": "error"}
SIZE = 20


def lines(n):
    rng = np.random.default_rng(n)
    colours = ["red", '"green, pale"', '"two\nlines"', '"a ""word"""', "blue"]
    return [
        f"{a:.3f},{b:.3f},{colours[i % 5]},{'on' if a > 0 else 'off'}\n".encode()
        for i, (a, b) in enumerate(rng.normal(size=(n, 2)))
    ]


def run(path, **how):
    """Return the rows that `open_file` reads, or its error."""
    try:
        return [
            (*row, label)
            for X, y in open_file(path, **HOW, **how).batches(SIZE)
            for row, label in zip(X.tolist(), y, strict=True)
        ]
    except StreamError as error:
        return str(error)


def follow(path, letters, **how):
    """Return the rows that `follow_files` reads, and what it puts aside."""
    letters.unlink(missing_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = follow_files(path, **HOW, idle=0, dead_letters=letters, **how)
        found = [
            (*row, label) for X, y in stream.batches(SIZE) for row, label in zip(X.tolist(), y, strict=True)
        ]
    put = [json.loads(line) for line in letters.read_text().splitlines()]
    assert stream.counts["bad"] == len(put)
    return found, put


# Lines that are bad, good ones after them, and what `open_file` says of the first bad one.
MALFORMED = {
    "too few values": (b"1,2,on\n", b"", "has 3 values in line"),
    "too many values": (b"1,2,red,3,on\n", b"", "has 5 values in line"),
    "no number": (b"1,x,red,on\n", b"", "contains 'x' in"),
    "a missing number": (b",2,red,on\n", b"", "is missing in row"),
    "no label": (b"1,2,red,\n", b"", "has no label in row"),
    "a quote that closes in a later value": (b'1,2,"red,on\n', b'3,4,"blue",on\n', "has a quote in line"),
    "a quote in the first value": (b'"1,2,red,on\n', b"", "has a quote in line"),
    "two of them": (b'1,2,"red,on\n1,"2,red,on\n', b"", "has a quote in line"),
    "one in the last value": (b'1,2,red,"on\n', b"", "has a quote in line"),
    "a quote in the middle of a number": (b'1,2"3,red,on\n', b"", "contains '2\"3' in"),
    "a NUL byte in a number": (b"1,2\0,red,on\n", b"", "bytes that are not text"),
    "a NUL byte in a text": (b"1,2,re\0d,on\n", b"", "bytes that are not text"),
    "a text that is not UTF-8": (b"1,2,r\xffd,on\n", b"", "not UTF-8"),
    "a number that is not UTF-8": (b"1,2\xff,red,on\n", b"", "not UTF-8"),
    "the header again": (HEADER, b"", "in row 31 of column"),
    "a byte order mark": (b"\xef\xbb\xbf1,2,red,on\n", b"", "in row 31 of column"),
    "a line of blanks": (b"   \n", b"", "has 1 values in line"),
}
READ = {
    "an empty line": b"\n\r\n\n",
    "another line end": b"1,2,red,on\r\n3,4,blue,off\r\n",
    "a lone carriage return": b"1,2,red,on\r3,4,blue,off\n",
    "a quoted carriage return": b'1,2,"r\red",on\n1,2,"r\r\ned",on\n',
    "a quote within a text": b'1,2,r"ed,on\n',
    "a quoted text of 100 lines": b'1,2,"' + b"\n" * 99 + b'",on\n',
    "quotes without a text": b'1,2,"",on\n',
}


def between(bad, newline=b"\n"):
    good = lines(180)
    return (HEADER + b"".join([*good[:30], *bad, *good[30:]])).replace(b"\n", newline)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", MALFORMED)
def test_the_same_lines_are_bad(tmp_path, name, newline):
    bad, after, message = MALFORMED[name]
    (tmp_path / "a.csv").write_bytes(between([bad, after], newline))
    said = run(tmp_path / "a.csv")
    assert message in said
    with pytest.raises(StreamError):
        list(follow_files(tmp_path / "a.csv", **HOW, idle=0).batches(SIZE))
    found, put = follow(tmp_path / "a.csv", tmp_path / "bad.jsonl")
    assert [one["line"] for one in put] == bad.decode(errors="backslashreplace").split("\n")[:-1]
    assert put[0]["row"] == 31
    (tmp_path / "rest.csv").write_bytes(between([after], newline))
    rest = run(tmp_path / "rest.csv")
    assert found == rest[: len(found)]
    assert len(rest) - len(found) < SIZE


@pytest.mark.parametrize("name", READ)
def test_the_same_unusual_lines_are_read(tmp_path, name):
    (tmp_path / "a.csv").write_bytes(between([READ[name]]))
    expected = run(tmp_path / "a.csv")
    found, put = follow(tmp_path / "a.csv", tmp_path / "bad.jsonl")
    assert put == []
    assert found == expected[: len(found)]
    assert len(expected) - len(found) < SIZE


@pytest.mark.parametrize(
    "end", [b'1,"2,red,on\n3,4,red,on\n', b'1,2,red,"on', b'1,"2\n', b'"', b'1,2,"red""']
)
def test_the_end_of_a_finished_file_closes_no_quote(tmp_path, end):
    good = lines(50)
    (tmp_path / "a.csv").write_bytes(HEADER + b"".join(good) + end)
    (tmp_path / "b.csv").write_bytes(HEADER)  # so that the first one is finished
    assert "a.csv' ends within a quoted value that begins in line 62: close the quote" in run(
        tmp_path / "a.csv"
    )
    found, put = follow(tmp_path / "?.csv", tmp_path / "bad.jsonl")
    assert [one["line"] for one in put] == [end.split(b"\n")[0].decode()]
    assert (put[0]["row"], put[0]["source"]) == (51, str(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_bytes(HEADER + b"".join(good) + b"".join(end.splitlines(keepends=True)[1:]))
    assert found == run(tmp_path / "a.csv")[: len(found)]


@pytest.mark.parametrize(
    ("data", "refused", "names"),
    [
        (b"", "is empty", None),
        (b"heat,sta", "has no rows", None),
        (HEADER, "has a header but no rows", None),
        (HEADER + b"\n\n", "has a header but no rows", None),
        (HEADER.replace(b"sound", b'"sou\nnd"'), None, ["heat", "sou\nnd", "colour"]),
        (b"\xef\xbb\xbf" + HEADER.replace(b"heat", b'"he\nat"'), None, ["he\nat", "sound", "colour"]),
        (b"\xef\xbb\xbf" + HEADER, None, ["heat", "sound", "colour"]),
        (HEADER.replace(b"\n", b"\r\n"), None, ["heat", "sound", "colour"]),
        (HEADER.replace(b"sound", b'"sound'), "has a quote in", None),
        (HEADER.replace(b"sound", b"so\0und"), "bytes that are not text", None),
        (HEADER.replace(b"sound,", b""), "has 4 values in line 2", None),
    ],
)
def test_the_same_beginnings_are_read(tmp_path, data, refused, names):
    rows = b"".join(lines(205)) if data.startswith((b"heat,so", b"heat,co", b'heat,"', b"\xef")) else b""
    (tmp_path / "a.csv").write_bytes(data + (rows if refused is None or "rows" not in refused else b""))
    found = []
    for reader in (open_file, follow_files):
        try:
            stream = reader(tmp_path / "a.csv", **HOW, **({"idle": 0} if reader is follow_files else {}))
            found.append(sum(len(y) for _, y in stream.batches(SIZE)) // SIZE)
        except StreamError as error:
            found.append(str(error))
            continue
        if names is not None:
            assert stream.feature_names == names
    if refused is None:
        assert found == [10, 10]
    else:
        assert refused in found[0]
        assert (
            found[1] == 0 if not rows or "no rows" in refused else refused in found[1]
        )  # what may come is waited for


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_same_damage_is_found_anywhere(tmp_path, seed):
    chance = random.Random(seed)
    for _ in range(25):
        good = lines(100)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(25, 100)
            line = good[at].decode()
            cut = chance.randrange(len(line) + 1)
            good[at] = (line[:cut] + chance.choice('",\n\r\0x"') + line[cut + chance.randrange(2) :]).encode()
        (tmp_path / "a.csv").write_bytes(HEADER + b"".join(good))
        (tmp_path / "b.csv").write_bytes(b"")
        found, put = follow(tmp_path / "?.csv", tmp_path / "bad.jsonl")
        said = run(tmp_path / "a.csv")
        assert isinstance(said, str) == bool(put), (good, put, said)
        if not put:
            assert found == said[: len(found)]


def test_how_many_lines_a_quoted_value_spans_can_be_chosen(tmp_path):
    long = b'1,2,"' + b"\n" * 120 + b'",on\n'
    (tmp_path / "a.csv").write_bytes(between([long]))
    assert "has a quote in line 38 that is not closed where a value ends within 100 lines" in run(
        tmp_path / "a.csv"
    )
    assert [one["line"] for one in follow(tmp_path / "a.csv", tmp_path / "bad.jsonl")[1]] == ['1,2,"', '",on']
    expected = run(tmp_path / "a.csv", max_quoted_lines=121)
    found, put = follow(tmp_path / "a.csv", tmp_path / "bad.jsonl", max_quoted_lines=121)
    assert (found, put) == (expected[: len(found)], [])
    for reader in (open_file, follow_files):
        for wrong in (0, 1.5, True, "7"):
            with pytest.raises((ValueError, TypeError), match="max_quoted_lines must be"):
                reader(tmp_path / "a.csv", **HOW, max_quoted_lines=wrong)


@pytest.mark.parametrize("cut", [1, 50, 1000])
def test_it_makes_no_difference_when_lines_come(tmp_path, cut):
    data = between([b'1,2,"red,on\n'])
    (tmp_path / "whole.csv").write_bytes(data)
    expected, put = follow(tmp_path / "whole.csv", tmp_path / "bad.jsonl")
    path, letters, found, position = tmp_path / "a.csv", tmp_path / "b.jsonl", [], None
    path.write_bytes(data[:1500])
    for start in range(1500, len(data) + cut * 20, cut * 20):
        stream = follow_files(path, **HOW, idle=0, dead_letters=letters)
        if position is not None:
            stream.seek(position)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for X, y in stream.batches(SIZE):
                found += [(*row, label) for row, label in zip(X.tolist(), y, strict=True)]
        position = stream.position() or position
        with path.open("ab") as file:
            file.write(data[start : start + cut * 20])
    assert found == expected
    written = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [one | {"source": ""} for one in written] == [one | {"source": ""} for one in put]


# -- the commands --------------------------------------------------------------------------------------------

WORDS = [
    "--label",
    "state",
    "--selector",
    "fisher",
    "--select",
    "1",
    "--batch-size",
    "50",
    "--baselines",
    "none",
    "-q",
]


def table(n):
    return [f"{i % 7},{i % 5},{'on' if i % 7 > 3 else 'off'}\n" for i in range(n)]


def test_no_row_is_lost_silently_after_a_quote(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = table(1001)
    rows[500] = '1,"2,on\n'
    (tmp_path / "a.csv").write_text("a,b,state\n" + "".join(rows))
    assert main(["follow", "a.csv", *WORDS, "--idle", "0", "--dead-letters", "bad.jsonl"]) == 0
    out, err = capfd.readouterr()
    end = json.loads(out.splitlines()[-1])
    assert (end["n_seen"], end["bad"]) == (1000, 1)
    put = json.loads((tmp_path / "bad.jsonl").read_text())
    assert (put["row"], put["line"]) == (501, '1,"2,on')
    assert "tamis: warning: 'a.csv' has a quote in row 501 that is not closed" in err
    assert "This line was skipped" in err
    assert err.count("\n") == 1
    for words, place in ((["follow", "a.csv", "--idle", "0"], "row 501"), (["run", "a.csv"], "line 502")):
        assert main([*words, *WORDS]) == 1
        assert f"has a quote in {place} that is not closed where a value ends" in capfd.readouterr().err
    assert main(["run", "a.csv", *WORDS, "--max-quoted-lines", "0"]) == 2
    assert "--max-quoted-lines must be" in capfd.readouterr().err


def test_a_quote_that_may_still_be_closed_is_told(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = table(540)
    rows[500] = '1,"2,on\n'
    (tmp_path / "a.csv").write_text("a,b,state\n" + "".join(rows))
    assert main(["follow", "a.csv", *WORDS, "--idle", "0", "--dead-letters", "bad.jsonl"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out.splitlines()[-1])["bad"] == 0
    assert "warning: 'a.csv' has an unclosed quote in row 501: 40 lines wait for its end." in err
    monkeypatch.setattr("tamis.streams.tail.stream._STALLED", 0.1)
    with pytest.warns(UserWarning, match="has an unclosed quote in row 501") as told:
        list(follow_files("a.csv", label="state", idle=0.5).batches(50))
    assert len([one for one in told if one.category is UserWarning]) == 1
