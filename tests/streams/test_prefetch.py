"""The next block of a file is read in a thread: in order, one block at most, and no longer than its reader lives."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from tamis.errors import StreamError
from tamis.streams import files, open_file
from tamis.streams.files import prefetch


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tamis-read-ahead")]


@pytest.fixture
def long_file(tmp_path):
    """Four blocks of a megabyte."""
    path = tmp_path / "long.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},{i / 7:.12f},{i % 2}\n" for i in range(180_000)))
    return path


def test_order_and_no_further_than_one_block():
    made = []

    def blocks():
        for i in range(5):
            made.append(i)
            yield i

    ahead = prefetch(blocks())
    assert next(ahead) == 0
    assert made == [0]  # one who takes a first look reads no more
    assert not readers()
    assert next(ahead) == 1
    assert len(readers()) == 1
    assert next(ahead) == 2
    assert made[-1] <= 3
    assert list(ahead) == [3, 4]
    assert not readers()
    assert list(prefetch(iter(()))) == []


def test_an_error_comes_where_its_block_would_have_come():
    def blocks():
        yield 1
        yield 2
        raise StreamError("row 3 is bad")

    ahead = prefetch(blocks())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(StreamError, match="row 3 is bad"):
        next(ahead)
    assert not readers()


def test_one_who_leaves_early_waits_for_the_block_in_work_alone(long_file):
    stream = open_file(long_file, label="y")
    for n in (0, 1, 2):
        batches = stream.batches(60_000)
        for _ in range(n):
            next(batches)
        batches.close()
        assert not readers()
    for _ in stream.batches(50_000):
        if stream.progress() > 0.4:
            break
    assert not readers()


def test_rows_and_progress_are_those_of_reading_in_turn(long_file, monkeypatch):
    found = []
    for read in (prefetch, lambda blocks: blocks):
        monkeypatch.setattr(files, "prefetch", read)
        stream = open_file(long_file, label="y")
        assert stream.progress() is None
        found.append([(X, y, stream.progress()) for X, y in stream.batches(7000)])
        assert stream.progress() == 1.0
    for (X, y, share), (X2, y2, share2) in zip(*found, strict=True):
        np.testing.assert_array_equal(X, X2)
        np.testing.assert_array_equal(y, y2)
        assert share == share2


@pytest.mark.slow
@pytest.mark.parametrize(
    "left", ["next(batches)", "next(batches); sys.exit(3)", "next(batches); raise KeyboardInterrupt"]
)
def test_a_process_may_end_in_the_midst_of_a_file(long_file, left):
    """A thread that is at a file when Python ends aborts the process, unless it has been waited for."""
    code = f"""
import sys
from tamis.streams import open_file
batches = open_file({str(long_file)!r}, label="y").batches(60_000)
next(batches)
{left}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 3, 130, -2), done.stderr
    assert "Exception ignored" not in done.stderr
    assert "terminate" not in done.stderr
