"""Lines that a run writes beside its checkpoint: whole, counted, and taken back to where the checkpoint stands."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from tamis.errors import CheckpointError
from tamis.persistence.journal import Journal


class Narrow(io.BytesIO):
    """Takes a few bytes at a time, as a pipe does, and no more than there is room."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        part = bytes(data[: min(5, self.room)])
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(part)
        return super().write(part)


def test_lines_are_appended_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "reported.jsonl"
    path.write_text("before\n")
    journal = Journal(path)
    assert journal.length == 7
    journal.write([])
    journal.write([{"a": 1.5, "b": [float("nan"), {"c": float("inf")}]}, {"a": None}])
    expected = 'before\n{"a": 1.5, "b": [null, {"c": null}]}\n{"a": null}\n'
    assert path.read_text() == expected
    assert (journal.length, journal.is_torn) == (len(expected), False)
    journal.close()
    assert Journal(path).length == len(expected)


def test_what_came_after_a_checkpoint_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "reported.jsonl"
    journal = Journal(path)
    journal.write([{"row": 1}])
    saved, head = journal.mark()
    journal.write([{"row": 2}])
    with pytest.warns(UserWarning, match=r"has 22 bytes, but 110 were written before the checkpoint"):
        journal.truncate([saved + 99, head])  # renamed meanwhile
    assert path.stat().st_size == journal.length == 2 * saved
    assert journal.mark(saved) == [saved, head]
    journal.truncate([saved, head])
    assert path.stat().st_size == journal.length == saved
    journal.write([{"row": 3}])
    assert path.read_text() == '{"row": 1}\n{"row": 3}\n'


@pytest.mark.parametrize("lines", [0, 1])
def test_another_file_is_not_cut(lines: int, tmp_path: Path) -> None:
    mine, other = Journal(tmp_path / "mine.jsonl"), Journal(tmp_path / "other.jsonl")
    mine.write([{"row": 1}] * lines)
    mark = mine.mark()
    other.write([{"row": 7}, {"row": 8}, {"row": 9}])
    with pytest.raises(
        CheckpointError, match=r"other.jsonl' is not the file that the run wrote before the checkpoint"
    ):
        other.truncate(mark)
    assert len((tmp_path / "other.jsonl").read_text().splitlines()) == 3
    mine.write([{"row": 2}])
    (tmp_path / "mine.jsonl").rename(tmp_path / "moved.jsonl")
    if lines:  # it is known by what is in it
        Journal(tmp_path / "moved.jsonl").truncate(mark)
        assert (tmp_path / "moved.jsonl").read_text() == '{"row": 1}\n'


@pytest.mark.parametrize("n", [100, 120])
def test_a_file_that_ends_otherwise_is_not_cut(n: int, tmp_path: Path) -> None:
    """Its first 4,096 bytes and its length are the same."""
    journal = Journal(tmp_path / "reported.jsonl")
    journal.write([{"row": i, "text": "x" * 100} for i in range(100)])
    mark = journal.mark()
    (tmp_path / "reported.jsonl").unlink()
    other = Journal(tmp_path / "reported.jsonl")
    other.write([{"row": i, "text": ("x" if i < 90 else "y") * 100} for i in range(n)])
    with pytest.raises(CheckpointError, match="is not the file that the run wrote"):
        other.truncate(mark)


@pytest.mark.parametrize(
    "mark", [None, [], [1], "12", [-1, "a"], [1.5, "a"], [True, "a"], [10, None], [None, "a"]]
)
def test_a_length_that_was_changed_is_rejected(mark: object, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"The saved length of .*reported.jsonl' is"):
        Journal(tmp_path / "reported.jsonl").truncate(mark)  # type: ignore[arg-type]


def test_standard_output_counts_what_was_told_only(capfd: pytest.CaptureFixture[str]) -> None:
    print("before", flush=True)
    journal = Journal("-")
    assert journal.length == 0
    journal.write([{"row": 1}])
    journal.truncate([0, ""])  # what was reported cannot be taken back
    journal.flush()
    assert journal.length == len('{"row": 1}\n')
    journal.close()
    print("after", flush=True)
    assert capfd.readouterr().out == 'before\n{"row": 1}\nafter\n'


@pytest.mark.parametrize("room", [11, 14])
def test_a_full_disk_tears_a_line_and_says_so(room: int, tmp_path: Path) -> None:
    path = tmp_path / "reported.jsonl"
    journal = Journal(path)
    journal._file = Narrow(room)  # type: ignore[assignment]
    journal.write([{"row": 1}])
    with pytest.raises(
        CheckpointError,
        match=r"^Cannot write '.*reported.jsonl' \(No space left on device\): free some space",
    ):
        journal.write([{"row": 2}])
    assert journal._file.getvalue() == b'{"row": 1}\n{"row": 2}'[:room]  # type: ignore[attr-defined]
    assert (journal.length, journal.is_torn) == (11, True)


def test_a_reader_who_has_seen_enough_is_no_error_of_the_disk() -> None:
    read, write_end = os.pipe()
    os.close(read)
    journal = Journal("-")
    journal._file = open(write_end, "wb", buffering=0)  # noqa: SIM115
    with pytest.raises(BrokenPipeError):
        journal.write([{"row": 1}])
    assert journal.length == 0
    journal._file.close()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"^Cannot write '.*no/reported' \(No such file or directory\): free some space"
    ):
        Journal(tmp_path / "no" / "reported")
