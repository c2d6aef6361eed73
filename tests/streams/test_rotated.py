"""Logs that are rotated while they are followed, or between two runs: each row once, or a clear message."""

import bz2
import functools
import gzip
import itertools
import os
import random
import shutil
import time
import warnings

import pytest

import tamis
from tamis.errors import StreamError
from tamis.streams import follow_files

HEADER = "heat,sound,state\n"
ROWS = [f"{i},{i % 5},{'on' if i % 7 > 3 else 'off'}\n" for i in range(900)]  # more than 4096 bytes


def write(path, rows):
    path.write_text(HEADER + "".join(rows))


def append(path, rows):
    with path.open("a") as file:
        file.write("".join(rows))


def follow(path, position=None):
    stream = follow_files(path, label="state", format="csv", idle=0)
    if position is not None:
        stream.seek(tamis.loads(tamis.dumps(position)))
    return stream


def taken(stream, size=10):
    return [int(value) for X, _ in stream.batches(size) for value in X[:, 0]]


def copied_and_cut(path, copy, rows):
    shutil.copy(path, copy)
    with path.open("r+") as file:
        file.truncate()
    write(path, rows)


class Steps:
    """Follows a pattern, in one pass for all steps or in one for each."""

    def __init__(self, path, *, is_one_pass):
        self.path, self.is_one_pass, self.found, self.events = path, is_one_pass, [], []
        self.stream, self.rows = follow(path), None

    def take(self, n):
        """Take rows up to the n-th."""
        if self.rows is None or not self.is_one_pass:
            self.stream = follow(self.path, self.stream.position())
            self.stream._idle = 5.0
            self.rows = self.stream.batches(10)
        while len(self.found) < n:
            self.found += [int(value) for value in next(self.rows)[0][:, 0]]
        self.events += [one["event"] for one in self.stream.pop_events()]


@pytest.mark.parametrize("is_one_pass", [True, False])
@pytest.mark.parametrize("n", [30, 600])  # fewer and more than are looked at to know a file again
@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_a_chain_of_logs_put_aside(tmp_path, how, n, is_one_pass):
    path = tmp_path / "log.csv"
    write(path, ROWS[:n])
    steps = Steps(tmp_path / "log.csv*", is_one_pass=is_one_pass)
    steps.take(n)
    at = n
    for _ in range(3):
        append(path, ROWS[at : at + 7])  # not read before it is put aside
        for k in (2, 1):
            if (tmp_path / f"log.csv.{k}").exists():
                os.replace(tmp_path / f"log.csv.{k}", tmp_path / f"log.csv.{k + 1}")
        if how == "renamed":
            os.replace(path, tmp_path / "log.csv.1")
            write(path, ROWS[at + 7 : at + 40])
        else:
            copied_and_cut(path, tmp_path / "log.csv.1", ROWS[at + 7 : at + 40])
        at += 40
        steps.take(at)
    assert sorted(steps.found) == list(range(at))
    assert "renamed" in steps.events


def test_a_copy_that_was_only_a_copy_is_read_once(tmp_path):
    path = tmp_path / "log.csv"
    write(path, ROWS[:40])
    steps = Steps(tmp_path / "log.csv*", is_one_pass=True)
    steps.take(40)
    append(path, ROWS[40:50])
    shutil.copy(path, tmp_path / "log.csv.bak")
    steps.take(50)
    append(path, ROWS[50:80])
    steps.take(80)
    assert steps.found == list(range(80))
    assert taken(follow(tmp_path / "log.csv*", steps.stream.position())) == []


def test_without_a_pattern_a_log_that_is_copied_and_cut_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    write(path, ROWS[:40])
    stream = follow(path)
    assert taken(stream) == list(range(40))
    position = stream.position()
    for rows, said in (
        (ROWS[40:43], r"was truncated: it has \d+ bytes, but \d+ were read; .* a pattern such as '.*log.csv\*'"),
        (ROWS[40:300], "is not the file from which 40 rows were read"),
    ):  # fmt: skip
        copied_and_cut(path, tmp_path / "log.csv.1", rows)
        with pytest.raises(StreamError, match=said):
            taken(follow(path, position))
        write(path, ROWS[:40])
        rest = follow_files(path, label="state", idle=5.0)
        pieces = rest.batches(10)
        for _ in range(4):
            next(pieces)
        copied_and_cut(path, tmp_path / "log.csv.1", rows)
        with pytest.raises(
            StreamError, match=r"was truncated: it has|was rewritten: it does not begin with the 40 rows"
        ):
            next(pieces)
        write(path, ROWS[:40])


def test_the_last_line_of_a_log_is_waited_for_though_an_older_log_is_there(tmp_path):
    write(tmp_path / "log.csv.1", ROWS[:20])
    write(tmp_path / "log.csv", [*ROWS[20:39], "39"])
    stream = follow(tmp_path / "log.csv*")
    assert taken(stream) == [*range(20, 39), *range(11)]
    append(tmp_path / "log.csv", ["9,1,on\n"])
    assert 399 in taken(follow(tmp_path / "log.csv*", stream.position()))


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".bz2", bz2.open)])
def test_a_log_that_is_compressed_when_it_is_put_aside(tmp_path, suffix, opener):
    path, aside = tmp_path / "log.csv", tmp_path / "log.csv.1"
    write(path, ROWS[:40])
    steps = Steps(tmp_path / "log.csv*", is_one_pass=True)
    steps.take(40)
    append(path, ROWS[40:50])
    os.replace(path, aside)
    write(path, ROWS[50:60])
    steps.take(60)
    position = steps.stream.position()
    with opener(f"{aside}{suffix}", "wb") as file:
        file.write(aside.read_bytes())
    aside.unlink()
    append(path, ROWS[60:70])
    steps.take(70)
    steps.stream._idle = 0.3
    said = rf"log.csv.1\{suffix}' was skipped because it is compressed: decompress it if it contains"
    with pytest.warns(UserWarning, match=said):
        assert list(steps.rows) == []
    assert sorted(steps.found) == list(range(70))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert taken(follow(tmp_path / "log.csv*", position)) == list(range(60, 70))
        with opener(f"{aside}{suffix}", "ab") as file:
            file.write("".join(ROWS[100:101]).encode())
        with pytest.raises(
            StreamError, match=rf"log.csv.1\{suffix}' has rows of '.*log.csv.1' that were not read"
        ):
            taken(follow(tmp_path / "log.csv*", position))


def test_a_clock_that_steps_back_makes_no_difference(tmp_path, monkeypatch):
    now = [2e9]

    def earlier():
        now[0] -= 3600.0
        return now[0]

    monkeypatch.setattr(time, "time", earlier)
    path = tmp_path / "log.csv"
    write(path, ROWS[:40])
    os.utime(path, (2e9, 2e9))
    steps = Steps(path, is_one_pass=True)
    steps.take(40)
    append(path, ROWS[40:80])
    os.utime(path, (1e9, 1e9))
    steps.take(80)
    assert steps.found == list(range(80))
    steps.stream._idle = 0.3
    began = time.monotonic()
    assert list(steps.rows) == []
    assert time.monotonic() - began < 30


# -- random histories ----------------------------------------------------------------------------------------

NARROW, WIDE = ["heat", "sound"], [f"sensor_{j:04d}_temperature" for j in range(200)]


class Log:
    """A log, and what an administrator does to it; each row has its own number in the first column."""

    def __init__(self, folder, columns, chance):
        self.path, self.columns, self.chance = folder / "log.csv", columns, chance
        self.n_rows = self.n_other = 0
        self.written = set()  # numbers of the rows that must be read
        self.unread = set()  # since the reader last looked
        self.is_lossy = (
            False  # an operation was done after which rows cannot be read, or cannot be distinguished
        )
        self.path.write_text(self.header())

    def header(self):
        return ",".join([*self.columns, "state"]) + "\n"

    def rows(self, n):
        first = self.n_rows
        self.n_rows += n
        self.written |= set(range(first, first + n))
        self.unread |= set(range(first, first + n))
        rest = ",7" * (len(self.columns) - 1)
        return [f"{i}{rest},{'on' if i % 7 > 3 else 'off'}\n" for i in range(first, first + n)]

    def shift(self):
        for k in range(9, 0, -1):
            if (self.path.parent / f"log.csv.{k}").exists():
                os.replace(self.path.parent / f"log.csv.{k}", self.path.parent / f"log.csv.{k + 1}")

    def append(self):
        append(self.path, self.rows(self.chance.randrange(1, 60)))

    def append_and_rotate(self):
        self.append()
        self.rotate()

    def rotate(self):
        self.shift()
        os.replace(self.path, self.path.parent / "log.csv.1")
        self.path.write_text(self.header() + "".join(self.rows(self.chance.choice([0, 1, 30, 90]))))

    def copytruncate(self):
        self.shift()
        shutil.copy(self.path, self.path.parent / "log.csv.1")
        copied_and_cut(self.path, self.path.parent / "log.csv.1", [])
        self.path.write_text(self.header() + "".join(self.rows(self.chance.choice([0, 1, 30, 90]))))

    def back_up(self):
        shutil.copy(self.path, self.path.parent / "log.csv.bak")

    def move_to_another_disk(self):
        shutil.copy(self.path, self.path.parent / "moved")
        append(self.path.parent / "moved", self.rows(5))
        os.replace(self.path.parent / "moved", self.path)

    def rewrite(self):
        """Write other rows in place, of the same or a greater length."""
        self.is_lossy = True
        lines = self.path.read_text().splitlines(keepends=True)[1:]
        others = [f"{line[:-3]}no\n" if self.chance.random() < 0.9 else line for line in lines]
        self.path.write_text(self.header() + "".join(others + self.rows(self.chance.choice([0, 40]))))

    def replace(self):
        """Move a file of other rows over the log; its first rows are the same."""
        self.is_lossy = True
        lines = self.path.read_text().splitlines(keepends=True)
        same = lines[: 1 + self.chance.choice([0, (len(lines) - 1) // 2])]
        (self.path.parent / "other").write_text("".join(same + self.rows(self.chance.choice([10, 200]))))
        os.replace(self.path.parent / "other", self.path)


SAFE = ["append", "append", "append_and_rotate", "rotate", "copytruncate", "back_up", "move_to_another_disk"]


def history(folder, columns, seed, *, is_pattern, is_one_pass, is_safe):
    """Follow a log during a random history; return it, the rows that were read, and an error, if any."""
    chance = random.Random(seed)
    log, found = Log(folder, columns, chance), []
    names = [
        way for way in SAFE if is_pattern or not ("copyt" in way or ("rotate" in way and not is_one_pass))
    ]
    names += [] if is_safe else ["copytruncate", "rotate", "rewrite", "replace"]
    ways = [chance.choice(names) for _ in range(12)]
    log.append()
    source = folder / "log.csv*" if is_pattern else log.path
    position, events = None, []

    def act():
        log.unread = set()
        for _ in range(chance.choice([1, 1, 2]) if is_pattern else 1):
            if ways:
                way = ways.pop()
                log.is_lossy |= not is_pattern and (
                    way == "copytruncate" or ("rotate" in way and not is_one_pass)
                )
                getattr(log, way)()
                if log.is_lossy:  # the reader has to find out by itself, but not what no file contains
                    log.written -= log.unread
                    ways.clear()

    def go_on(stream):
        if ways:
            act()
        elif next(quiet) > 2:
            stream._idle = 0.0

    quiet = itertools.count()
    try:
        for _ in range(20):
            stream = follow_files(source, label="state", format="csv", idle=None if is_one_pass else 0)
            if position is not None:
                stream.seek(tamis.loads(tamis.dumps(position)))
            if is_one_pass:
                stream.on_idle = functools.partial(go_on, stream)
            for X, _ in stream.batches(1):
                found.append(int(X[0, 0]))
                events += stream.pop_events()
            position = stream.position()
            events += stream.pop_events() + stream.events_after_batch()
            if is_one_pass or not ways:
                break
            act()
    except StreamError as error:
        return log, found, events, error
    return log, found, events, None


@pytest.mark.hypothesis
@pytest.mark.parametrize("is_one_pass", [True, False])
@pytest.mark.parametrize("is_pattern", [True, False])
@pytest.mark.parametrize("columns", [NARROW, WIDE])
def test_random_histories_of_a_log_lose_and_repeat_no_row(
    tmp_path, monkeypatch, columns, is_pattern, is_one_pass, is_search
):
    monkeypatch.setattr("tamis.streams.tail.stream._POLL", 0.001)
    n_histories = 30 if is_search else 4
    n_errors = 0
    for seed in range(n_histories):
        folder = tmp_path / str(seed)
        folder.mkdir()
        how = {"is_pattern": is_pattern, "is_one_pass": is_one_pass, "is_safe": seed % 2 == 0}
        log, found, events, error = history(folder, columns, seed, **how)
        assert len(found) == len(set(found)) or log.is_lossy, (seed, events)
        if error is not None:
            assert log.is_lossy, (seed, error)
            assert "was truncated" in str(error) or "rows" in str(error)
            n_errors += 1
        else:
            assert log.written <= set(found) or any(one["event"] == "removed" for one in events), (
                seed,
                events,
            )
    assert n_errors <= n_histories // 2


@pytest.mark.parametrize("is_pattern", [True, False])
@pytest.mark.parametrize("n_before", [0, 7])
@pytest.mark.parametrize("how", ["rotated", "rewritten", "moved"])
def test_a_log_that_has_another_header_before_its_first_batch(
    tmp_path, monkeypatch, how, n_before, is_pattern
):
    """The columns are those of the file that has rows; rows of both files are read, or an error says why not."""
    monkeypatch.setattr("tamis.streams.tail.stream._POLL", 0.01)
    path = tmp_path / "log.csv"
    write(path, ROWS[:n_before])
    swapped = [f"{sound},{heat},{state}" for heat, sound, state in (row.split(",") for row in ROWS[7:30])]
    content = "sound,heat,state\n" + "".join(swapped)
    stream = follow_files(
        tmp_path / "log.csv*" if is_pattern else path, label="state", format="csv", idle=0.5
    )
    quiet = itertools.count()

    def on_idle():
        if next(quiet) == 2:
            if how == "rotated":
                os.replace(path, tmp_path / "log.csv.1")
            other = path if how == "rewritten" else tmp_path / "other"
            other.write_text(content)
            os.replace(other, path)

    stream.on_idle = on_idle
    if how == "rewritten" and n_before:
        with pytest.raises(StreamError, match="was rewritten: it does not begin with the"):
            list(stream.batches(10))
        return
    heat = stream.begin(10) and stream.feature_names.index("heat")
    found = [int(value) for X, _ in stream.batches(1) for value in X[:, heat]]
    assert sorted(found) == list(range(7 - n_before, 30))


def test_a_single_log_that_was_rotated_at_the_end_of_a_batch_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.streams.tail.stream._POLL", 0.01)
    path = tmp_path / "log.csv"
    write(path, ROWS[:20])
    stream = follow_files(path, label="state", idle=0.5)
    pieces, quiet = stream.batches(10), itertools.count()
    assert len(next(pieces)[1]) == len(next(pieces)[1]) == 10

    def on_idle():
        if next(quiet) == 2:
            os.replace(path, tmp_path / "log.csv.1")
            write(path, ROWS[20:25])

    stream.on_idle = on_idle
    assert list(pieces) == []
    assert [one["event"] for one in stream.pop_events()] == ["rotated"]
    append(path, ROWS[25:40])
    assert taken(follow(path, stream.position())) == list(range(20, 40))
