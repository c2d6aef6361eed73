"""One file of an unbounded stream: the position up to which it was read, and its identity.

A position is the name of a file, the number of bytes (Parquet: rows) read, and the identity of the file: its inode, and
the SHA-256 of its first (Parquet: last) 4096 bytes. Resuming takes one seek.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from tamis.errors import StreamError

__all__ = ["HEAD", "FollowedFile", "check_same_columns", "digest"]

HEAD = 4096  # bytes that identify a file


class FollowedFile(ABC):
    """A file that is opened when its rows are needed.

    Attributes
    ----------
    name : str
    at : int
        Number of bytes (Parquet: rows) read.
    row : int
        Number of rows read.
    inode : int
        0 until known.
    names : list of str or None
        Names of its columns, in order; None until read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = self.row = self.inode = 0
        self.names: list[str] | None = None
        self._file: Any = None

    @abstractmethod
    def look(self, table: Any) -> bool:
        """Read and validate the column names, which may be in another order; return whether they are available."""

    @abstractmethod
    def take(self, n: int, last: bool, table: Any) -> Any:
        """Return up to `n` complete unread rows; with `last`, the last one needs no newline."""

    @abstractmethod
    def has_more(self, size: int) -> bool:
        """Return whether a file of `size` bytes may have unread rows."""

    @abstractmethod
    def is_rewritten(self, size: int) -> bool:
        """Return whether a file of `size` bytes no longer begins with the rows that were read."""

    @abstractmethod
    def raise_rewritten(self) -> NoReturn:
        """Raise because the file was rewritten."""

    @abstractmethod
    def columns(self, rows: Any, table: Any, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and their number; `before` rows precede them."""

    @abstractmethod
    def row_text(self, rows: Any) -> str:
        """Return a single row as text."""

    @abstractmethod
    def identity(self) -> list[Any]:
        """Return the identity of the file."""

    @abstractmethod
    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Resume at a position, if it is the same file."""

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


def check_same_columns(name: str, known: list[str], new: list[str]) -> None:
    """Raise if the columns of a file differ from those of the first one."""
    if new == known or (sorted(new) == sorted(known) and len(set(known)) == len(known)):
        return
    lacks = [one for one in known if one not in new]
    adds = [one for one in new if one not in known]
    differences = [f"lacks {', '.join(map(repr, lacks[:3]))}"] if lacks else []
    differences += [f"adds {', '.join(map(repr, adds[:3]))}"] if adds else []
    difference = " and ".join(differences) or "repeats or reorders them"
    raise StreamError(
        f"{name!r} differs in its columns from the first rows ({difference}): write the same columns, or"
        " follow the new ones separately."
    )
