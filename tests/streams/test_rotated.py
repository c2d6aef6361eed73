"""Logs that are rotated while they are followed, or between two runs: each row once, or a clear message."""

import bz2
import gzip
import os
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
