"""Parquet files, which do not grow: the stream waits until they are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tamis._interrupts import raise_asynchronous
from tamis._validation import Mask
from tamis.errors import StreamError
from tamis.streams.arrow import pa, parquet
from tamis.streams.encode import time_parts
from tamis.streams.tables import Table
from tamis.streams.tail.file import WINDOW, FollowedFile, digest, names_of_columns

_MAGIC = b"PAR1"  # at both ends of a file


class FollowedParquet(FollowedFile):
    """A Parquet file, which does not grow; the stream waits until it is complete."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.n_rows: int | None = None  # None until it is complete
        self.is_damaged = False  # and not only incomplete
        self._blocks: Iterator[Any] = iter(())
        self._rest: Any = None  # remaining rows of a block

    def open(self) -> bool:
        """Open the file, if it is the one that was read; return whether it is complete."""
        if self._file is not None:
            return True
        try:
            with open(self.name, "rb") as file:
                opened = parquet.ParquetFile(self.name, pre_buffer=False)
                inode, windows = os.fstat(file.fileno()).st_ino, _windows(file.fileno())
                if os.stat(self.name).st_ino != inode:  # replaced meanwhile
                    return False
        except Exception as error:  # of many types if the footer is damaged
            raise_asynchronous(error)
            self.problem, self.is_damaged = _problem(self.name, error)
            return False
        self._file, self.problem = opened, None
        if self.windows and self.windows != windows:
            self.close()
            self.raise_rewritten()
        self.n_rows, self.inode, self.windows = self._file.metadata.num_rows, inode, windows
        self._blocks, self._rest = self._blocks_from(self.at), None
        return True

    @property
    def schema(self) -> Any:
        """Its Arrow schema; None while it is incomplete."""
        return self._file.schema_arrow if self.open() else None

    def look(self, table: Table) -> bool:
        """Read and validate the column names, which may be in another order; return whether they are available."""
        if self.names is None and self.schema is not None:
            self.names = self._checked_names(table)
        return self.names is not None

    def _checked_names(self, table: Table) -> list[str]:
        """Return the names of its columns; raise if they cannot be read as those of the table."""
        known = table.types()
        names = names_of_columns(self.name, self.schema.names, list(known), table)
        mapping = dict(zip(names, self.schema.types, strict=True))
        for name, kind in known.items():
            if name in mapping and _value_kind(kind) != _value_kind(mapping[name]):
                raise StreamError(
                    f"{self.name!r} has column {name!r} as {mapping[name]}, but the first file as {kind}:"
                    " write it as that type."
                )
        return names

    def has_more(self, size: int) -> bool:
        """Return whether a file of `size` bytes may have unread rows."""
        return self.n_rows is None or self.at < self.n_rows

    def continues_in(self, name: str) -> bool:
        """Return whether a file is a copy of this one."""
        return self.matches(name)

    def raise_rewritten(self) -> NoReturn:
        """Raise because the file was rewritten."""
        raise StreamError(
            f"{self.name!r} was rewritten after {self.row:,} of its rows were read: write new rows to a separate file,"
            " or start without the checkpoint."
        )

    def has_rows(self) -> bool:
        """Read the next block, if there is one; return whether there are rows. A damaged one is a problem."""
        if not self.open() or self.at >= (self.n_rows or 0):
            return False
        if self._rest is None or not self._rest.num_rows:
            try:
                self._rest = next(self._blocks)
            except Exception as error:
                raise_asynchronous(error)
                self._check_unchanged()
                reason = " ".join(str(error).split())
                self.problem, self.is_damaged = (
                    f"it is damaged after row {self.row:,} ({reason}): copy it again",
                    True,
                )
                self.close()
                return False
            self._check_unchanged()
        return True

    def take(self, n: int, last: bool, table: Any) -> Any:
        """Return up to `n` rows."""
        if not self.has_rows():
            return None
        batch = self._rest.slice(0, n)
        self._rest = self._rest.slice(n)
        self.at = self.row = self.at + batch.num_rows
        return batch

    def _check_unchanged(self) -> None:
        """Raise if the file was rewritten in place; an open file that was replaced by another one is still valid."""
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self.name).st_ino == self.inode and not self.matches(self.name):
                self.raise_rewritten()

    def _blocks_from(self, row: int) -> Iterator[Any]:
        """Yield blocks from a row on, without reading earlier row groups."""
        groups = range(self._file.num_row_groups)
        ends = np.cumsum([self._file.metadata.row_group(k).num_rows for k in groups])
        first = int(np.searchsorted(ends, row, side="right"))
        skip = row - (int(ends[first - 1]) if first else 0)
        for block in self._file.iter_batches(8192, row_groups=groups[first:], use_threads=False):
            if skip < block.num_rows:
                yield block.slice(skip)
            skip = max(0, skip - block.num_rows)

    def columns(self, rows: Any, table: Table, before: int) -> tuple[list[Any], dict[str, Mask]]:
        """Return rows as Arrow columns in the order of the table, and which lack one; `before` rows precede them."""
        table.source.name, n = self.name, rows.num_rows
        own = dict(zip(self.names or (), rows.columns, strict=True))
        columns = [own[name] if name in own else pa.nulls(n, kind) for name, kind in table.types().items()]
        return columns, table.absent_rows(n, self.names or ())

    def row_text(self, rows: Any) -> str:
        """Return a single row as text."""
        return str(rows.to_pylist()[0])

    def identity(self) -> list[Any]:
        """Return inode, number of rows, and the byte ranges at both ends."""
        return [self.inode, self.n_rows, self.windows]

    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Resume at a position, if it is the same file."""
        self.at = self.row = at
        self.inode, self.n_rows, self.windows = identity or (0, None, [])


def _windows(descriptor: int) -> list[list[Any]]:
    """Return the byte ranges that identify a file: its first bytes, and its footer with the bytes before it.

    The footer has the sizes and statistics of the columns; its end alone has only their names.
    """
    size = os.fstat(descriptor).st_size
    footer = int.from_bytes(os.pread(descriptor, 4, max(0, size - 8)), "little")
    n = min(size, footer + 8 + WINDOW)
    head = os.pread(descriptor, min(size, WINDOW), 0)
    # One byte more than the file has, so that a longer file differs.
    return [[0, len(head), digest(head)], [size - n, n + 1, digest(os.pread(descriptor, n + 1, size - n))]]


def _problem(name: str, error: Exception) -> tuple[str, bool]:
    """Return why a file cannot be opened, and whether it is damaged; otherwise it may still be written."""
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head, tail = os.pread(file.fileno(), 4, 0), os.pread(file.fileno(), 4, max(0, size - 4))
    except OSError as reason:
        raise_asynchronous(reason)
        return f"it cannot be read ({reason.strerror}): check its permissions", False
    if size == 0:
        return "it is empty", False
    if head != _MAGIC[: len(head)]:
        return "it is not a Parquet file: write it again, or remove it", True
    if size < 12 or tail != _MAGIC:
        return "it is incomplete, as its footer is missing: finish writing it, or copy it again", False
    return f"it is damaged ({' '.join(str(error).split())}): copy it again", True


def _value_kind(kind: Any) -> str:
    """Return the kind of values of a column, as far as it affects their encoding."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind) or kinds.is_decimal(kind):
        return "number"
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return "text"
    return str(time_parts(kind) or kind)
