"""One file of a stream without an end: how much of it was taken, and what tells it from another of its name.

A position is the name of a file, how many bytes (of Parquet, rows) of it were taken, and what tells this file from
another of that name: its inode, and the SHA-256 of its first (of Parquet, last) 4096 bytes. To go on is one seek.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from tamis.errors import StreamError

__all__ = ["HEAD", "FollowedFile", "check_same_columns", "digest"]

HEAD = 4096  # bytes that tell a file from another


class FollowedFile(ABC):
    """A file that is opened when rows of it are wanted.

    Attributes
    ----------
    name : str
    at : int
        Bytes (of Parquet, rows) that were taken.
    row : int
        Rows that were taken.
    inode : int
        0: not known yet.
    names : list of str or None
        Of its columns, in their order; None: not looked at yet.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = self.row = self.inode = 0
        self.names: list[str] | None = None
        self._file: Any = None

    @abstractmethod
    def look(self, table: Any) -> bool:
        """Look at the names of its columns, which may be in another order; return whether they are there."""

    @abstractmethod
    def take(self, n: int, last: bool, table: Any) -> Any:
        """Return up to `n` whole rows that are there and were not taken; `last`: the last one needs no newline."""

    @abstractmethod
    def has_more(self, size: int) -> bool:
        """Return whether a file of so many bytes may have rows that were not taken."""

    @abstractmethod
    def is_rewritten(self, size: int) -> bool:
        """Return whether a file of so many bytes, under its name now, does not begin with what was taken."""

    @abstractmethod
    def refuse(self) -> NoReturn:
        """Refuse a file that was rewritten."""

    @abstractmethod
    def columns(self, rows: Any, table: Any, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and how many they are; so many came before."""

    @abstractmethod
    def row_text(self, rows: Any) -> str:
        """Return a single row as text."""

    @abstractmethod
    def identity(self) -> list[Any]:
        """Return what tells this file from another."""

    @abstractmethod
    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Go on there, if it is that file."""

    def n_waiting(self) -> int:
        """Return how many bytes of a row without its newline wait."""
        return 0

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._file is not None

    def close(self) -> None:
        """Close the file, until rows are taken again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def digest(data: bytes) -> str:
    """Return a hash of some bytes of a file."""
    return hashlib.sha256(data).hexdigest()[:16]


def check_same_columns(name: str, known: list[str], found: list[str]) -> None:
    """Refuse a file whose columns are not those of the first one."""
    if found == known or (sorted(found) == sorted(known) and len(set(known)) == len(known)):
        return
    lacks = [one for one in known if one not in found]
    adds = [one for one in found if one not in known]
    told = [f"lacks {', '.join(map(repr, lacks[:3]))}"] if lacks else []
    told += [f"has {', '.join(map(repr, adds[:3]))} more"] if adds else []
    what = " and ".join(told) or "has them twice or in another order"
    raise StreamError(
        f"{name!r} has other columns than the first rows ({what}): write the columns of before, or follow the new ones"
        " on their own."
    )
