"""Streams without an end: files that grow, files that appear, standard input; each row once, also after kill -9."""

import errno
import gzip
import json
import os
import random
import resource
import signal
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis import FIRES, FisherScore, open_file, prequential
from tamis.errors import CheckpointError, StreamError
from tamis.evaluate.prequential.result import STEP_COLUMNS
from tamis.persistence.journal import Journal
from tamis.streams import follow_files

HEADER = "heat,sound,colour,pressure,state\n"


def lines(n, seed=0, start=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(3)
    colours = rng.choice(["red", "green, pale", "blue"], size=n)
    made = []
    for i, (row, colour) in enumerate(zip(X.tolist(), colours.tolist(), strict=True)):
        state = "on" if row[2 if i < n // 2 else 0] > 0 else "off"
        colour = f'"{colour}"' if "," in colour else colour
        made.append(f"{row[0]},{row[1]},{colour},{row[2]},{state}\n")
    return made


def write(path, rows, header=HEADER):
    path.write_text(header + "".join(rows))
    return path


def batches(stream, size=10):
    return [(X.tolist(), y.tolist()) for X, y in stream.batches(size)]


def all_rows(found):
    return [(*row, label) for X, y in found for row, label in zip(X, y, strict=True)]


def follow(path, **how):
    return follow_files(path, label="state", **{"idle": 0, **how})


def test_a_whole_file_is_what_open_file_reads(tmp_path):
    path = write(tmp_path / "a.csv", lines(95))
    whole = batches(open_file(path, label="state"))
    assert batches(follow(path)) == whole[:9]  # the last five wait for a full batch
    stream = follow(path)
    batches(stream)
    assert stream.n_waiting == 5
    assert (stream.feature_names, stream.categories) == (
        ["heat", "sound", "colour", "pressure"],
        {"colour": open_file(path, label="state").take(95) and list(stream.categories["colour"])},
    )


@pytest.mark.parametrize("cut", [1, 7, 40, 99, 100, 101, 555])
def test_positions_lose_and_repeat_no_row_wherever_the_file_ends(tmp_path, cut):
    made = lines(60)
    path = write(tmp_path / "a.csv", [])
    text = "".join(made).encode()
    expected = batches(follow(write(tmp_path / "whole.csv", made)))
    found, position = [], None
    for start in range(0, len(text), cut * 10):
        with path.open("ab") as file:
            file.write(text[start : start + cut * 10])
        stream = follow(path, missing="mean")
        if position is not None:
            stream.seek(tamis.loads(tamis.dumps(position)))
        found += batches(stream)
        position = stream.position()
    assert found == expected
    assert position["rows"] == 60


def test_rows_that_come_while_it_waits(tmp_path):
    made = lines(50)
    path = write(tmp_path / "a.csv", made[:25])

    def grow():
        for row in made[25:]:
            with path.open("a") as file:
                file.write(row[:3])
                file.flush()
                time.sleep(0.002)
                file.write(row[3:])

    writer = threading.Thread(target=grow)
    stream = follow(path, idle=1.0)
    rows = stream.batches(10)
    found = [next(rows)]
    writer.start()
    found += rows
    writer.join()
    assert [len(y) for _, y in found] == [10] * 5
    assert all_rows([(X.tolist(), y.tolist()) for X, y in found]) == all_rows(
        batches(open_file(write(tmp_path / "b.csv", made), label="state"))
    )


def test_a_quoted_newline_is_part_of_a_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,note,state\n1,"two\nlines",on\n2,"a ""word""\n",off\n3,plain,on\n4,"never closed')
    assert all_rows(batches(follow(path), 3)) == [(1.0, 0.0, "on"), (2.0, 1.0, "off"), (3.0, 2.0, "on")]


def test_parts_that_appear_are_read_in_order_and_grow(tmp_path):
    made = lines(100)
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder / "b.csv", made[30:60])
    write(folder / "a.csv", made[:30])
    (folder / "_temporary.csv").write_text("half")
    (folder / "notes.md").write_text("no rows")
    stream = follow(folder)
    found = batches(stream, 20)
    assert len(found) == 3
    write(folder / "c.csv", made[60:90])
    with (folder / "c.csv").open("a") as file:
        file.write("".join(made[90:]).rstrip("\n"))
    again = follow(folder)
    again.seek(tamis.loads(tamis.dumps(stream.position())))
    found += batches(again, 20)
    expected = batches(open_file(write(tmp_path / "whole.csv", made), label="state"), 20)
    assert found == expected[:4]  # the last row has no newline
    write(folder / "d.csv", [])  # now the file before it is whole
    last = follow(folder)
    last.seek(again.position())
    assert batches(last, 20) == expected[4:]


def test_columns_in_another_order_are_found_by_name_and_others_are_refused(tmp_path):
    (tmp_path / "1.csv").write_text("x,z,state\n1,2,on\n3,4,off\n")
    (tmp_path / "2.csv").write_text("state,z,x\non,6,5\noff,8,7\n")
    stream = follow(tmp_path / "*.csv")
    assert all_rows(batches(stream, 2)) == [
        (1.0, 2.0, "on"), (3.0, 4.0, "off"), (5.0, 6.0, "on"), (7.0, 8.0, "off"),
    ]  # fmt: skip
    (tmp_path / "3.csv").write_text("x,w,state\n1,2,on\n3,4,off\n")
    position = stream.position()
    again = follow(tmp_path / "*.csv")
    again.seek(position)
    with pytest.raises(StreamError, match=r"3.csv' differs in its columns .*lacks 'z' and adds 'w'"):
        batches(again, 2)
    assert again.position() == position


def table_of(made):
    rows = [line.strip().replace('"green, pale"', "green pale").split(",") for line in made]
    heat, sound, colour, pressure, state = zip(*rows, strict=True)
    numbers = {"heat": heat, "sound": sound, "pressure": pressure}
    return pa.table({**{k: np.array(v, float) for k, v in numbers.items()}, "colour": colour, "state": state})


def test_parquet_parts_are_taken_up_inside_a_row_group(tmp_path):
    made = lines(300)
    expected = batches(open_file(_parquet(tmp_path / "whole.parquet", made), label="state"), 70)
    folder = tmp_path / "parts"
    folder.mkdir()
    _parquet(folder / "1.parquet", made[:130], 40)
    (folder / "2.parquet").write_bytes(b"PAR1 half")
    stream, found, position = follow(folder), [], None
    found += batches(stream, 70)
    assert len(found) == 1  # the second is not whole yet
    _parquet(folder / "2.parquet", made[130:], 50)
    for _ in range(5):
        position = stream.position()
        stream = follow(folder)
        stream.seek(tamis.loads(tamis.dumps(position)))
        one = stream.batches(70)
        found += [
            (X.tolist(), y.tolist()) for X, y in [batch for _, batch in zip(range(1), one, strict=False)]
        ]
    assert found == expected[:4]
    pq.write_table(table_of(made).rename_columns([*"abcd", "state"]), folder / "3.parquet")
    stream = follow(folder)
    stream.seek(position)
    with pytest.raises(StreamError, match=r"3.parquet' differs in its columns"):
        batches(stream, 100)


def _parquet(path, made, group=1000):
    pq.write_table(table_of(made), path, row_group_size=group)
    return path


# -- what happens to files -----------------------------------------------------------------------------------


def stopped(tmp_path, n=40):
    """Return a file, its rows, and a position after `n` of them."""
    made = lines(2 * n)
    path = write(tmp_path / "log.csv", made[:n])
    stream = follow(path)
    batches(stream, 10)
    return path, made, stream.position()


def gone_on(path, position, **how):
    stream = follow(path, **how)
    stream.seek(position)
    return batches(stream, 10)


def test_a_file_that_was_cut_is_refused(tmp_path):
    path, made, position = stopped(tmp_path)
    write(path, made[:7])
    with pytest.raises(StreamError, match=r"was truncated: it has \d+ bytes, but [\d,]+ were read"):
        gone_on(path, position)


def test_another_file_of_the_same_name_is_refused(tmp_path):
    path, _, position = stopped(tmp_path)
    write(path, lines(200, seed=5))
    with pytest.raises(StreamError, match="is not the file from which 40 rows were read"):
        gone_on(path, position)


def test_a_copy_of_the_file_goes_on(tmp_path):
    path, made, position = stopped(tmp_path)
    write(tmp_path / "copy.csv", made)
    os.replace(tmp_path / "copy.csv", path)
    assert len(gone_on(path, position)) == 4


def test_a_file_put_aside_under_another_name_is_known_by_a_pattern(tmp_path):
    made = lines(80)
    path = write(tmp_path / "log.csv", made[:40])
    stream = follow(tmp_path / "log.csv*", format="csv")
    found = batches(stream, 10)
    position = stream.position()
    with path.open("a") as file:
        file.write("".join(made[40:50]))
    os.replace(path, tmp_path / "log.csv.1")
    write(path, made[50:])
    again = follow(tmp_path / "log.csv*", format="csv")
    again.seek(position)
    found += batches(again, 10)
    expected = batches(open_file(write(tmp_path / "whole.csv", made), label="state"))
    assert sorted(all_rows(found)) == sorted(all_rows(expected))
    assert any(one["event"] == "renamed" for one in again.pop_events())


def test_a_log_that_is_rotated_while_it_is_followed(tmp_path):
    made = lines(80)
    path = write(tmp_path / "log.csv", made[:40])
    stream = follow(path, idle=2.0)
    rows = stream.batches(10)
    found = [next(rows) for _ in range(4)]
    with path.open("a") as file:
        file.write("".join(made[40:43]))
    os.replace(path, tmp_path / "log.csv.1")
    write(path, made[43:])
    found += [next(rows) for _ in range(4)]
    assert all_rows([(X.tolist(), y.tolist()) for X, y in found]) == all_rows(
        batches(open_file(write(tmp_path / "whole.csv", made), label="state"))
    )
    assert [one["event"] for one in stream.pop_events()] == ["rotated"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "a.csv",
            HEADER.encode("utf-16") + "1,2,red,3,on\n".encode("utf-16-le") * 30,
            "only text in UTF-8 or Latin-1",
        ),
        ("a.arff", b"@relation x\n", "is arff: only CSV, JSON lines and Parquet files can be followed"),
        ("a.csv", b"sep=;\na;y\n" + b"1;0\n2;1\n" * 200, "begins with 'sep=;' above its header"),
        ("a.csv.gz", b"\x1f\x8b", "is compressed"),
        ("a.csv", gzip.compress(b"x,state\n1,on\n", mtime=0), "is compressed"),
    ],
)
def test_what_cannot_be_followed_is_said(tmp_path, name, text, told):
    (tmp_path / name).write_bytes(text)
    with pytest.raises(StreamError, match=told):
        batches(follow(tmp_path / name))


@pytest.mark.parametrize(
    "text",
    [
        b"x,state\r\n1,on\r\n2,off\r\n3,on\r\n4,off\r\n",
        b"\xef\xbb\xbfx,state\n1,on\n2,off\n3,on\n4,off\n",
        b"x;state\n1,0;on\n2,0;off\n\n3,0;on\n\n\n4,0;off\n",
    ],
)
def test_text_as_others_write_it(tmp_path, text):
    (tmp_path / "a.csv").write_bytes(text)
    assert all_rows(batches(follow(tmp_path / "a.csv"), 2)) == [
        (1.0, "on"), (2.0, "off"), (3.0, "on"), (4.0, "off"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [b"", b"x,state\n", b"x,sta", b"x,state\n1,on"])
def test_a_file_that_has_no_rows_yet_is_waited_for(tmp_path, text):
    (tmp_path / "a.csv").write_bytes(text)
    stream = follow(tmp_path / "a.csv")
    assert batches(stream, 1) == []
    with (tmp_path / "a.csv").open("ab") as file:
        file.write(b"x,state\n1,on\n2,off\n"[len(text) :])
    assert all_rows(batches(stream, 1)) == [(1.0, "on"), (2.0, "off")]


# -- rows that cannot be read --------------------------------------------------------------------------------


def test_bad_rows_are_put_aside_with_their_reasons(tmp_path):
    good = lines(40)
    bad = {5: "1,2\n", 13: "x,1,red,2,on\n", 14: "1,,red,2,on\n", 22: "1,2,red,3,\n", 31: "1,inf,red,2,on\n"}
    made = list(good)
    for at, row in sorted(bad.items()):
        made.insert(at, row)
    path = write(tmp_path / "a.csv", made[:5] + made[6:])  # the first batch is whole
    path = write(tmp_path / "b.csv", good[:10] + list(bad.values()) + good[10:])
    letters = tmp_path / "bad.jsonl"
    stream = follow(path, dead_letters=letters)
    assert batches(stream) == batches(follow(write(tmp_path / "c.csv", good)))
    put = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [one["row"] for one in put] == [11, 12, 13, 14, 15]
    assert [one["line"] + "\n" for one in put] == list(bad.values())
    for word, one in zip(("'x'", "missing", "label", "infinite"), put[1:], strict=True):
        assert word in one["reason"]
    assert stream.counts == {"bad": 5, "unlabelled": 0, "repeated": 0}
    assert sum(stream.reasons.values()) == 5
    with pytest.raises(StreamError):
        batches(follow(path))


def test_what_was_put_aside_after_the_position_is_put_aside_once(tmp_path):
    good = lines(35)
    path = write(tmp_path / "a.csv", [*good[:10], "1,2\n", *good[10:25], "3,4\n"])
    letters = tmp_path / "bad.jsonl"
    stream = follow(path, dead_letters=letters)
    batches(stream)
    assert len(letters.read_text().splitlines()) == 2  # the second is of no batch yet
    with path.open("a") as file:
        file.write("".join(good[25:]))
    again = follow(path, dead_letters=letters)
    again.seek(stream.position())
    batches(again)
    assert [json.loads(line)["line"] for line in letters.read_text().splitlines()] == ["1,2", "3,4"]
    assert again.counts["bad"] == 2


# -- standard input ------------------------------------------------------------------------------------------


@pytest.fixture
def feed(monkeypatch):
    """Let standard input be a pipe that is fed by a thread."""
    opened = []

    def feed(text, pause=0.0, close=True):
        read, write_to = os.pipe()
        file = os.fdopen(read)
        opened.append(file)
        monkeypatch.setattr(sys, "stdin", file)

        def run():
            for piece in text if isinstance(text, list) else [text]:
                os.write(write_to, piece.encode())
                time.sleep(pause)
            if close:
                os.close(write_to)

        threading.Thread(target=run, daemon=True).start()

    yield feed
    for file in opened:
        file.close()


def numbered(made, numbers):
    return ["serial," + HEADER, *(f"{n},{row}" for n, row in zip(numbers, made, strict=True))]


def test_standard_input_that_ends_within_a_quote_is_refused(feed):
    feed([HEADER, *lines(25), '"1,2\n'])
    with pytest.raises(
        StreamError, match="'<stdin>' ends within a quoted value that begins in row 26: close"
    ):
        list(follow("-").batches(10))


def test_standard_input_ends_with_a_shorter_batch(feed, tmp_path):
    made = lines(25)
    feed([HEADER, *made])
    found = batches(follow("-"))
    assert found == batches(open_file(write(tmp_path / "a.csv", made), label="state"))


def test_the_first_batch_of_standard_input_is_not_kept_waiting(feed):
    feed([HEADER, *lines(10)], close=False)
    began = time.monotonic()
    X, _ = next(follow("-").batches(10))
    assert X.shape == (10, 4)
    assert time.monotonic() - began < 30  # there is no more to come: a reader that waits for it hangs


def test_rows_with_numbers_are_taken_once_and_gaps_are_told(feed, tmp_path):
    made = lines(60)
    expected = batches(open_file(write(tmp_path / "a.csv", made[:20] + made[30:60]), label="state"))
    feed(numbered(made[:20], range(1, 21)))
    stream = follow("-", number="serial")
    found = batches(stream)
    assert stream.feature_names == ["heat", "sound", "colour", "pressure"]
    position = tamis.loads(tamis.dumps(stream.position()))
    feed(
        numbered([*made[12:20], *made[30:60]], [*range(13, 21), *range(31, 61)])
    )  # sends some again, lost ten
    stream = follow("-", number="serial")
    stream.seek(position)
    found += batches(stream)
    assert found == expected
    assert stream.counts["repeated"] == 8
    assert stream.position()["notes"] == [{"event": "gap", "after": 20, "before": 31}]


def test_numbers_of_rows_are_compared_exactly(feed):
    since = 1_763_800_000_000_000_000  # nanoseconds: float64 has one number for 256 of them
    feed(numbered(lines(40), [*range(since, since + 20), *range(since + 10, since + 30)]))
    stream = follow("-", number="serial")
    assert sum(len(y) for _, y in stream.batches(10)) == 30
    assert stream.counts["repeated"] == 10
    assert stream.position()["last"] == since + 29


@pytest.mark.parametrize("number", ["a7", "2.5", "1e400", "99999999999999999999"])
def test_what_is_no_number_of_a_row_is_refused(feed, number):
    feed(numbered(lines(20), [*range(12), number, *range(13, 20)]))
    with pytest.raises(StreamError, match="'serial' is not a whole number in row 13"):
        batches(follow("-", number="serial"))


def test_standard_input_without_numbers_has_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="standard input, which can be read only once"):
        prequential(follow("-"), FIRES(1), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="for standard input"):
        follow(write(tmp_path / "a.csv", lines(3)), number="serial")


def test_a_disk_that_fails_is_told_and_a_pipe_is_no_failure(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "log.jsonl")

    def fail(number):
        def fsync(descriptor):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)

    fail(errno.EINVAL)  # what a pipe says
    journal.flush()
    fail(errno.EIO)
    with pytest.raises(CheckpointError, match=r"Cannot write .*log\.jsonl' \(Input/output error\)"):
        journal.flush()


# -- a run that is killed ------------------------------------------------------------------------------------


def settled(path):
    """Return what a checkpoint holds as bytes, but for the times."""
    state = tamis.load(path)
    steps = state["run"]["records"]["steps"]
    for j, name in enumerate(STEP_COLUMNS):
        if name.startswith("seconds") or name in ("memory_bytes", "model_bytes"):
            steps[:, j] = 0.0
    state["run"]["model_bytes"] = 0
    state["run"]["position"]["letters"][1] = ""  # tells the place of a file that is empty
    parts = {name: tamis.dumps(part) for name, part in state["run"].items()}
    return parts | {"settings": tamis.dumps(state["settings"])}


KEYED = f"id,{HEADER}"


def late(n, seed=0, longest=60):
    """Rows without labels, and their labels some rows later, each in a row of its own that has nothing else."""
    rng, events = np.random.default_rng(seed), []
    for i, line in enumerate(lines(n, seed)):
        values, _, label = line.rpartition(",")
        events += [
            (i, f"{10**17 + i},{values},\n"),
            (i + rng.integers(1, longest), f"{10**17 + i},,,,,{label}"),
        ]
    return [text for _, text in sorted(events, key=lambda event: event[0])]


def matched(made, most=10**9):
    """The same by its definition."""
    waiting, found = {}, []
    for line in made:
        key, _, values = line.rstrip("\n").partition(",")
        values, _, label = values.rpartition(",")
        if not label:
            waiting.setdefault(key, values)
            if len(waiting) > most:
                del waiting[next(iter(waiting))]
        elif key in waiting:
            found.append(f"{waiting.pop(key)},{label}\n")
        elif values.strip(","):
            found.append(f"{values},{label}\n")
    return found, waiting


def rounded(found):
    """Categories have codes in the order in which rows came, with or without label."""
    return [(*row[:2], *row[3:]) for row in all_rows(found)]


@pytest.mark.parametrize("most", [10**9, 20])
def test_labels_find_their_rows_by_key(tmp_path, most):
    made = late(200)
    path = write(tmp_path / "a.csv", made, KEYED)
    expected, waiting = matched(made, most)
    stream = follow(path, label_key="id", max_waiting=most)
    found = batches(stream)
    assert stream.feature_names == ["heat", "sound", "colour", "pressure"]
    plain = batches(open_file(write(tmp_path / "b.csv", expected), label="state"))
    assert rounded(found) == rounded(plain)[: len(expected) // 10 * 10]
    assert stream.counts["pending"] == len(waiting)
    assert stream.counts["given_up"] == stream.counts["unmatched"] == 200 - len(expected) - len(waiting)
    assert (stream.counts["given_up"] > 0) == (most == 20)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [70, 333, 1000])
def test_rows_that_wait_for_their_label_belong_to_the_position(tmp_path, cut):
    made = late(120)
    whole = batches(follow(write(tmp_path / "whole.csv", made, KEYED), label_key="id"))
    path, text, found, position = write(tmp_path / "a.csv", [], KEYED), "".join(made).encode(), [], None
    for start in range(0, len(text), cut):
        with path.open("ab") as file:
            file.write(text[start : start + cut])
        stream = follow(path, label_key="id")
        if position is not None:
            stream.seek(tamis.loads(tamis.dumps(position)))
        found += batches(stream)
        position = stream.position() or position
    assert found == whole


def test_what_becomes_of_odd_keys(tmp_path):
    made = [
        "1,1,1,red,1,\n", "2,2,2,red,2,\n",
        "1,9,9,blue,9,\n",  # waits already: the first one counts
        "1,8,8,blue,8,on\n",  # its label; what else it says is not read
        "7,,,,,off\n",  # nobody waits for it
        "3,3,3,red,3,off\n",  # a row with its label
        "2,,,,,off\n", "2,,,,,on\n",  # the second label comes too late
        "4,4,4,red,4,\n",  # is never labelled
    ]  # fmt: skip
    path = write(tmp_path / "a.csv", made, KEYED)
    stream = follow(path, label_key="id")
    assert rounded(batches(stream, 3)) == [(1, 1, 1, "on"), (3, 3, 3, "off"), (2, 2, 2, "off")]
    assert stream.counts == {
        "bad": 0, "unlabelled": 0, "repeated": 0, "pending": 1, "given_up": 0, "unmatched": 2, "twice": 1,
    }  # fmt: skip
    with path.open("a") as file:
        file.write(",5,5,red,5,\n6,five,5,red,5,\n")
    bad = follow(path, label_key="id", dead_letters=tmp_path / "bad.jsonl")
    batches(bad, 3)
    assert [json.loads(line)["row"] for line in (tmp_path / "bad.jsonl").read_text().splitlines()] == [10, 11]
    with pytest.raises(StreamError, match="has no 'id' in row 10, which matches labels to rows"):
        batches(follow(path, label_key="id"), 3)
    with pytest.raises(StreamError, match="'serial'"):
        batches(follow(path, label_key="serial"), 3)


def test_labels_that_are_numbers_find_their_rows(tmp_path):
    made = ["a,1,\n", "b,2,\n", "a,,1\n", "c,3,0\n", "b,,0\n"]
    stream = follow(write(tmp_path / "a.csv", made, "id,heat,state\n"), label_key="id")
    assert batches(stream, 3) == [([[1.0], [3.0], [2.0]], [1, 0, 0])]


class Recorder:
    """Writes a line for each step."""

    def __init__(self, path, stream):
        self.journal, self.stream = Journal(path), stream

    def __call__(self, step):
        self.journal.write(
            [*self.stream.pop_events(), {"n": step.n_seen, "accuracy": step.accuracy_windowed}]
        )

    def state(self):
        return self.journal.mark()

    def restore(self, mark):
        self.journal.truncate(mark)


def run_on(source, folder, **how):
    keyed = {"label_key": "id", "max_waiting": 50} if source.name == "late.csv" else {}
    stream = follow(source, dead_letters=folder / "bad.jsonl", **keyed, **how)
    return prequential(
        stream, FIRES(1), batch_size=10, baselines="none", auc=False, keep_steps=40,
        checkpoint=folder / "run.tamis", checkpoint_every=3, on_step=Recorder(folder / "steps.jsonl", stream),
    )  # fmt: skip


def in_a_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            work()
        finally:
            os._exit(0)
    return pid


def run_killed(work, turns, checkpoint, chance):
    """Run `work` in a child for each turn of arriving rows, and kill it; return how often, and the rows reached."""
    killed, reached = 0, set()
    for turn, _ in enumerate(turns):
        before = checkpoint.read_bytes() if checkpoint.exists() else b""
        pid = in_a_child(work)
        time.sleep(chance.uniform(0.02, 0.3))
        since = time.monotonic()  # every other child saves once, however slow the machine is
        while turn % 2 and time.monotonic() - since < 30:
            if checkpoint.exists() and checkpoint.read_bytes() != before:
                break
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        if checkpoint.exists():
            reached.add(tamis.load(checkpoint)["run"]["n_seen"])
    return killed, reached


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["csv", "late", "parts", "parquet"])
def test_killed_at_any_moment_nothing_is_lost_and_nothing_twice(tmp_path, kind, is_search):
    n_kills = 67 if is_search else 4
    chance = random.Random(n_kills)
    made = (late if kind == "late" else lines)(400 + 200 * n_kills)
    if kind != "parquet":
        for at in range(95, len(made), 83):
            made.insert(at, "not,a,row\n")
    grows = kind in ("csv", "late")
    source = tmp_path / {"csv": "a.csv", "late": "late.csv"}.get(kind, "parts")
    for folder in ("killed", "whole"):
        (tmp_path / folder).mkdir()
    if not grows:
        source.mkdir()
    write(tmp_path / "warm.csv", lines(100))
    run_on(tmp_path / "warm.csv", tmp_path / "whole")  # compiles before anything is forked
    for file in (tmp_path / "whole").iterdir():
        file.unlink()

    def turns():
        given = n_parts = 0
        while given < len(made):
            more = made[given : given + chance.randrange(40, 180)]
            given += len(more)
            n_parts += 1
            if grows:
                text = "".join([KEYED if kind == "late" else HEADER] * (n_parts == 1) + more)
                held = chance.randrange(1, 9)
                with source.open("a") as file:
                    file.write(text[:-held])
            elif kind == "parts":
                write(source / f"{n_parts:04d}.csv", more)
            else:
                _parquet(source / f"{n_parts:04d}.parquet", more, 30)
            yield
            if grows:
                with source.open("a") as file:
                    file.write(text[-held:])

    killed, reached = run_killed(
        lambda: run_on(source, tmp_path / "killed", idle=0.3),
        turns(),
        tmp_path / "killed" / "run.tamis",
        chance,
    )
    run_on(source, tmp_path / "killed")
    run_on(source, tmp_path / "whole")
    assert killed >= n_kills
    assert len(reached) > 1  # it went on from checkpoints, not from the beginning
    for name in ("steps.jsonl", "bad.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    found, expected = (settled(tmp_path / folder / "run.tamis") for folder in ("killed", "whole"))
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


def test_a_full_disk_is_told_and_the_checkpoint_stays(tmp_path):
    path = write(tmp_path / "a.csv", lines(400))

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
        stream = follow(path)
        try:
            prequential(
                stream, FisherScore(1), batch_size=10, on_step=Recorder(tmp_path / "steps.jsonl", stream)
            )
        except CheckpointError as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            (tmp_path / "error").write_text(str(error))

    os.waitpid(in_a_child(fill), 0)
    assert "Cannot write" in (tmp_path / "error").read_text()
    assert "free some space" in (tmp_path / "error").read_text()


@pytest.mark.slow
def test_memory_of_the_records_is_bounded(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6_000, 6)), rng.integers(0, 2, 6_000)
    whole = prequential((X, y), FIRES(1), batch_size=10, baselines="none", auc=False)
    thin = prequential((X, y), FIRES(1), batch_size=10, baselines="none", auc=False, keep_steps=64)
    steps = thin.frames["steps"]
    assert 16 <= len(steps["step"]) <= 64
    assert len(thin.frames["changes"]["step"]) < len(whole.frames["changes"]["step"])
    assert set(thin.frames["changes"]["step"]) | set(thin.frames["scores"]["step"]) <= set(
        steps["step"].tolist()
    )
    at = np.isin(whole.frames["steps"]["step"], steps["step"])
    assert (whole.selection_map()[at] == thin.selection_map()).all()
    assert thin.selected() == whole.selected()
    a, b = whole.summary(), thin.summary()
    for name in ("n_rows", "accuracy", "kappa", "n_selected"):
        assert a[name] == b[name]
    for name in ("n_rows", "n_entered", "n_left"):
        assert steps[name].sum() == whole.frames["steps"][name].sum()
    weighted = (steps["accuracy"] * steps["n_rows"]).sum() / steps["n_rows"].sum()
    assert weighted == pytest.approx(a["accuracy"])


# -- files that cannot be read -------------------------------------------------------------------------------


def damaged_footer(whole):
    n = int.from_bytes(whole[-8:-4], "little")
    return whole[: -8 - n] + bytes(n) + whole[-8:]


def damaged_page(whole):
    return whole[:4] + bytes(len(whole) // 4) + whole[4 + len(whole) // 4 :]


UNREADABLE = {
    "page": (damaged_page, r"is damaged after row 0", True),
    "garbage": (lambda whole: b"PAR1" + bytes(range(256)) * 8 + b"PAR1", "is damaged", True),
    "text": (lambda whole: b"heat,state\n1,on\n", "is not a Parquet file", True),
    "footer": (damaged_footer, "is damaged", True),
    "footer length": (lambda whole: whole[:-8] + b"\xff\xff\xff\x7fPAR1", "is damaged", True),
    "being written": (lambda whole: whole[:-10], "is incomplete", False),
    "one byte": (lambda whole: b"P", "is incomplete", False),
    "empty": (lambda whole: b"", "is empty", False),
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("at", [1, 2])
def test_a_parquet_part_that_cannot_be_read_is_reported(tmp_path, kind, at):
    make, reason, is_damaged = UNREADABLE[kind]
    made = lines(60)
    for k in range(3):
        _parquet(tmp_path / f"{k + 1}.parquet", made[20 * k : 20 * k + 20])
    part = tmp_path / f"{at}.parquet"
    whole = part.read_bytes()
    part.write_bytes(make(whole))
    stream = follow(tmp_path)
    with pytest.warns(UserWarning, match=rf"{at}.parquet' was not read: it {reason}"):
        found = batches(stream)
    assert len(found) == 4
    [event] = stream.events_after_batch()
    assert (event["event"], event["file"]) == ("unreadable", str(part))
    assert reason in event["reason"]
    assert (stream.counts["unreadable"], list(stream.unreadable)) == (1, [str(part)])
    assert stream.has_damaged_files == is_damaged
    part.write_bytes(whole)
    again = follow(tmp_path)
    again.seek(tamis.loads(tamis.dumps(stream.position())))
    found += batches(again)
    assert again.unreadable == {}
    assert "unreadable" not in again.counts
    expected = batches(open_file(write(tmp_path / "whole.csv", made), label="state"))
    assert sorted(row[0] for row in all_rows(found)) == sorted(row[0] for row in all_rows(expected))


def test_a_part_is_reported_while_the_stream_waits(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.streams.tail.files._PATIENCE", 0.3)
    for k in (1, 3, 4):
        _parquet(tmp_path / f"{k}.parquet", lines(20, k))
    (tmp_path / "2.parquet").write_bytes(b"PAR1")
    stream = follow(tmp_path, idle=30)
    rows = stream.batches(10)
    for _ in range(6):
        next(rows)
    threading.Timer(1.0, _parquet, [tmp_path / "2.parquet", lines(20, 2)]).start()
    with pytest.warns(UserWarning, match="2.parquet' was not read: it is incomplete"):
        next(rows)
    assert len(next(rows)[1]) == 10
    assert stream.unreadable == {}
    assert [one["event"] for one in stream.pop_events()] == ["unreadable"]


@pytest.mark.parametrize("source", ["", "*.parquet", "*"])
def test_a_folder_named_as_a_part_is_reported(tmp_path, source):
    _parquet(tmp_path / "1.parquet", lines(20))
    (tmp_path / "2.parquet").mkdir()
    _parquet(tmp_path / "2.parquet" / "part-0.parquet", lines(20, 1))
    os.symlink(tmp_path / "nowhere", tmp_path / "3.parquet")
    (tmp_path / "notes").mkdir()
    stream = follow(tmp_path / source)
    with pytest.warns(UserWarning, match="was not read"):
        assert len(batches(stream)) == 2
    reasons = {os.path.basename(name): reason for name, reason in stream.unreadable.items()}
    assert set(reasons) == {"2.parquet", "3.parquet"}
    assert "2.parquet/*.parquet" in reasons["2.parquet"]


@pytest.mark.parametrize("group", [5, 1000])
def test_a_parquet_part_of_the_same_shape_is_another_file(tmp_path, group):
    """The last bytes of a footer have only the names of its columns."""
    rng = np.random.default_rng(0)

    def part(path):
        X = {f"sensor_{j:04d}_temperature": rng.integers(0, 9, 40).astype(float) for j in range(200)}
        pq.write_table(pa.table({**X, "state": ["on", "off"] * 20}), path, row_group_size=group)

    part(tmp_path / "1.parquet")
    stream = follow(tmp_path)
    assert len(batches(stream)) == 4
    part(tmp_path / "1.parquet")
    again = follow(tmp_path)
    again.seek(stream.position())
    with pytest.raises(StreamError, match="was rewritten after 40 of its rows were read"):
        batches(again)


def test_parts_that_vanish_are_reported(tmp_path):
    for k in range(3):
        write(tmp_path / f"{k}.csv", lines(20, k))
    stream = follow(tmp_path)
    assert len(batches(stream)) == 6
    os.remove(tmp_path / "1.csv")
    write(tmp_path / "3.csv", lines(20, 3))
    again = follow(tmp_path)
    again.seek(stream.position())
    assert len(batches(again)) == 2
    assert again.pop_events() == [{"event": "removed", "file": str(tmp_path / "1.csv"), "rows": 20}]


# -- lines that are too long ---------------------------------------------------------------------------------


@pytest.fixture
def short_lines(monkeypatch):
    """Let lines of more than 4 MB be too long; blocks of 1 MB are read."""
    for module in ("tail.text", "dialect"):
        monkeypatch.setattr(f"tamis.streams.{module}.LONGEST_LINE", 4 << 20)


@pytest.mark.parametrize("start", [b"", b'1,"', b'1,"a\nb", "'])
@pytest.mark.parametrize("n", [(4 << 20) + 1, 9 << 20])
def test_a_line_that_is_too_long_is_a_bad_row(tmp_path, short_lines, start, n):
    made = lines(40)
    path = write(tmp_path / "a.csv", made[:20])
    with path.open("ab") as file:
        file.write(start + b"x" * n + b"\n")
        file.write("".join(made[20:]).encode())
    stream = follow(path, dead_letters=tmp_path / "bad.jsonl")
    assert batches(stream) == batches(follow(write(tmp_path / "b.csv", made)))
    put = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    long = put[-1]
    assert "has more than 4 MB in row" in long["reason"]
    assert len(long["line"]) < 1100
    shortest = n + 1 + len(start.rpartition(b"\n")[2])  # without the lines of an open quote before it
    assert any(f"({shortest + k:,} bytes)" in long["line"] for k in (0, start.find(b"\n") + 1))
    position = stream.position()
    with path.open("a") as file:
        file.write("".join(lines(20, 1)))
    again = follow(path, dead_letters=tmp_path / "bad.jsonl")
    again.seek(tamis.loads(tamis.dumps(position)))
    assert len(batches(again)) == 2
    with pytest.raises(StreamError, match="has more than 4 MB in row 2"):
        batches(follow(path))


def test_the_end_of_a_line_that_is_too_long_is_awaited_in_bounded_memory(tmp_path, short_lines):
    path = write(tmp_path / "a.csv", lines(20))
    stream = follow(path, dead_letters=tmp_path / "bad.jsonl")
    assert len(batches(stream)) == 2
    with path.open("ab") as file:
        for _ in range(10):
            file.write(bytes(1 << 20))
    again = follow(path, dead_letters=tmp_path / "bad.jsonl")
    again.seek(stream.position())
    with pytest.warns(
        UserWarning, match=r"has a line of 10,485,760 bytes in row 21, whose end has not arrived"
    ):
        assert batches(again) == []
    [part] = again._files.parts.values()
    assert len(part._held) == 0
    with path.open("ab") as file:
        file.write(b"\n" + "".join(lines(20, 1)).encode())
    assert len(batches(again)) == 2
    assert again.counts["bad"] == 1


def test_a_long_line_of_standard_input_is_a_bad_row(feed, tmp_path, short_lines):
    feed([HEADER, *lines(20), "x" * (5 << 20) + "\n", *lines(20, 1)])
    stream = follow("-", dead_letters=tmp_path / "bad.jsonl")
    assert len(batches(stream)) == 4
    assert stream.counts["bad"] == 1


def test_a_header_of_several_megabytes_is_read(tmp_path):
    names = [f"sensor_{j:06d}_{'x' * 1000}" for j in range(1500)]
    for k in (1, 2):
        rows = [f"{','.join(['1'] * 1500)},on\n", f"{','.join(['2'] * 1500)},off\n"] * 5
        (tmp_path / f"{k}.csv").write_text(",".join([*names, "state"]) + "\n" + "".join(rows))
    assert len(batches(follow(tmp_path))) == 2


# -- positions changed from outside --------------------------------------------------------------------------

WRONG = [-1, 0.5, 2.0, 1 << 70, "12", None, True, [], {}, float("nan")]


def changed(position, path, value):
    """Return a copy of a position in which the part at a path of keys is replaced, or removed."""
    copy = tamis.loads(tamis.dumps(position))
    *way, last = path
    place = copy
    for key in way:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy


def error_of(position, stream):
    """Return the message of the error, if any, when a stream resumes at a position."""
    try:
        stream.seek(position)
        batches(stream)
    except (CheckpointError, StreamError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_position_that_was_changed_is_rejected_in_a_sentence(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        write(path, late(60), KEYED)
    else:
        _parquet(path, lines(60))
    how = {"dead_letters": tmp_path / "bad.jsonl", **({"label_key": "id"} if suffix == "csv" else {})}
    stream = follow(path, **how)
    batches(stream)
    position, name = stream.position(), str(path)
    at, _, identity = position["places"][name]
    ways = [(key,) for key in position]
    ways += [("places", name), ("places", name, 0), ("places", name, 1), ("places", name, 2)]
    ways += [("places", name, 2, k) for k in range(len(identity))]
    ways += [("places", name, 2, -1, k, j) for k in range(2) for j in range(3)]
    ways += [("letters", 0), ("letters", 1), ("table", "format"), ("table", "names"), ("how", "missing")]
    n_errors = 0
    for way in ways:
        for value in [*WRONG, ...]:
            given = changed(position, way, value)
            if tamis.dumps(given) == tamis.dumps(position):
                continue
            said = error_of(given, follow(path, **how))
            n_errors += bool(said)
            assert said.endswith("." * bool(said))
            assert "\n" not in said
    assert n_errors > 0.8 * len(ways) * len(WRONG)
    for value in (at - 1, at + 1, 7):
        again = follow(path, **how)
        with pytest.raises(CheckpointError, match="The position has the place"):
            again.seek(changed(position, ("places", name, 0), value))


def test_a_position_that_names_no_known_file_is_reported(tmp_path):
    path = write(tmp_path / "a.csv", lines(20))
    stream = follow(path)
    batches(stream)
    position = stream.position()
    for places in ({}, {"b.csv": position["places"][str(path)]}):
        with pytest.raises(
            CheckpointError, match=r"The position is in ('b.csv'|no file), not in '.*a.csv': follow"
        ):
            follow(path).seek({**position, "places": places})
    other = write(tmp_path / "b.csv", lines(30, 5))
    stream = follow(other)
    batches(stream)
    os.remove(other)
    gone = stream.position()["places"]
    for places in ({}, gone):
        again = follow(tmp_path / "*.csv")
        again.seek({**position, "places": places})
        with pytest.warns(UserWarning, match=f"None of the {len(places)} files of the checkpoint exists"):
            assert len(batches(again)) == 2
        events = [one["event"] for one in again.pop_events()]
        assert events == [*["removed"] * len(places), "no_known_file"]
    os.rename(path, tmp_path / "c.csv")
    again = follow(tmp_path / "*.csv")
    again.seek(position)
    assert batches(again) == []
    assert [one["event"] for one in again.pop_events()] == ["renamed"]


def test_parquet_files_with_columns_of_one_name_are_followed(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    for k in (1, 2):
        columns = [pa.array([k, 2.0] * 10), pa.array([3.0, 4.0] * 10), pa.array(["on", "off"] * 10)]
        pq.write_table(pa.Table.from_arrays(columns, names=["x", "x", "state"]), tmp_path / f"{k}.parquet")
    stream = follow_files(tmp_path, label="state", idle=0)
    assert [X[0].tolist() for X, _ in stream.batches(20)] == [[1, 3], [2, 3]]
    assert stream.feature_names == ["x", "x.1"]
