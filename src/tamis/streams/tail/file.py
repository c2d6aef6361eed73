"""One file of an unbounded stream: the position up to which it was read, and its identity.

A position is the name of a file, the number of bytes (Parquet: rows) read, and the identity of the file: its inode, and
the SHA-256 of byte ranges. For text these are the first line with the rows behind it, and the last bytes before the
position; for Parquet the first bytes, and the footer with the bytes before it. Resuming takes one seek.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any

from tamis._interrupts import raise_asynchronous
from tamis.errors import StreamError
from tamis.streams.dialect import unique_names
from tamis.streams.tables import Table

WINDOW = 1 << 14  # bytes of data at either end that identify a file


class FollowedFile:
    """A file that is opened when its rows are needed; text and Parquet have the same further methods.

    Attributes
    ----------
    name : str
    at : int
        Number of bytes (Parquet: rows) read.
    row : int
        Number of rows read.
    inode : int
        0 until known.
    windows : list of [int, int, str]
        Start, length and hash of the byte ranges that identify what was read.
    stamp : tuple of int
        Inode, size and times when the byte ranges were last compared.
    since : float
        When the stamp was first seen, in seconds of the monotonic clock.
    names : list of str or None
        Names of its columns, in order; None until read.
    problem : str or None
        Why the file cannot be read now.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = self.row = self.inode = 0
        self.windows: list[list[Any]] = []
        self.stamp: tuple[int, ...] = ()
        self.since = time.monotonic()
        self.names: list[str] | None = None
        self.problem: str | None = None
        self._file: Any = None

    def matches(self, name: str) -> bool:
        """Return whether a file contains the bytes that identify this one."""
        with open(name, "rb") as file:
            return has_windows(file.fileno(), self.windows)

    def holds_rows(self) -> bool:
        """Return whether rows were read, even if they were not returned yet."""
        return self.row > 0

    def is_moved(self) -> bool:
        """Return whether the open file is known to have another name now."""
        return False

    def place(self, rows: Any) -> str:
        """Return where a single row is, apart from its number."""
        return self.name

    def n_waiting(self) -> int:
        """Return the number of bytes of an incomplete row."""
        return 0

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._file is not None

    def close(self) -> None:
        """Close the file until it is read again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def digest(data: bytes) -> str:
    """Return a hash of some bytes of a file."""
    return hashlib.sha256(data).hexdigest()[:16]


def has_windows(descriptor: int, windows: list[list[Any]]) -> bool:
    """Return whether an open file has these bytes: lists of start, length and hash."""
    return all(digest(os.pread(descriptor, n, start)) == expected for start, n, expected in windows)


def unreadable(name: str, error: OSError) -> StreamError:
    """Return the error of a file that cannot be opened."""
    raise_asynchronous(error)
    return StreamError(f"{name!r} cannot be read ({error.strerror}): check its permissions.")


def names_of_columns(name: str, given: list[str], known: list[str], table: Table) -> list[str]:
    """Return the unique names of the columns of a further file.

    Raises
    ------
    StreamError
        If they differ from those of the first file, and the table cannot gain columns; or if a required column is
        missing or a name is repeated.
    """
    new = unique_names(given)
    if new == known or (sorted(new) == sorted(known) and len(set(known)) == len(known)):
        return new
    if table.gains_columns:
        repeated = [one for one, renamed in zip(given, new, strict=True) if renamed not in (one, *known)]
        if repeated:
            raise StreamError(f"{name!r} names the column {repeated[0]!r} twice: rename one of them.")
        lost = [one for one in table.required if one in known and one not in new]
        if lost:
            raise StreamError(
                f"{name!r} has no column {lost[0]!r}, which earlier files have and each row needs: add it."
            )
        return new
    lacks = [one for one in known if one not in new]
    adds = [one for one in new if one not in known]
    differences = [f"lacks {', '.join(map(repr, lacks[:3]))}"] if lacks else []
    differences += [f"adds {', '.join(map(repr, adds[:3]))}"] if adds else []
    difference = " and ".join(differences) or "repeats or reorders them"
    raise StreamError(
        f"{name!r} differs in its columns from the first rows ({difference}): write the same columns, or"
        " follow the new ones separately."
    )
