"""Parquet files, which do not grow: the stream waits until they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tamis.errors import StreamError
from tamis.streams.encode import time_parts
from tamis.streams.tables import Table, pyarrow_module
from tamis.streams.tail.file import HEAD, FollowedFile, check_same_columns, digest

__all__ = ["FollowedParquet"]


class FollowedParquet(FollowedFile):
    """A Parquet file, which does not grow; the stream waits until it is complete."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._identity: list[Any] = []  # rows, hash of the last bytes
        self._blocks: Iterator[Any] = iter(())
        self._rest: Any = None  # remaining rows of a block

    def _open(self) -> bool:
        """Open the file; return whether it is complete."""
        if self._file is not None:
            return True
        pa = pyarrow_module("pyarrow")
        try:
            self._file = pyarrow_module("pyarrow.parquet").ParquetFile(self.name, pre_buffer=False)
        except (pa.ArrowInvalid, OSError):  # not complete yet
            return False
        with open(self.name, "rb") as file:
            self.inode, size = os.fstat(file.fileno()).st_ino, os.fstat(file.fileno()).st_size
            file.seek(max(0, size - HEAD))
            now = [self._file.metadata.num_rows, digest(file.read())]
        if self._identity and self._identity != now:
            self.raise_rewritten()
        self._identity, self._blocks, self._rest = now, self._blocks_from(self.at), None
        return True

    @property
    def schema(self) -> Any:
        """Its Arrow schema; None while it is incomplete."""
        return self._file.schema_arrow if self._open() else None

    def look(self, table: Table) -> bool:
        """Read and validate the column names, which may be in another order; return whether they are available."""
        if self.names is None and self.schema is not None:
            self._check_kinds(table)
            self.names = self.schema.names
        return self.names is not None

    def _check_kinds(self, table: Table) -> None:
        known, mapping = table.types(), dict(zip(self.schema.names, self.schema.types, strict=True))
        check_same_columns(self.name, list(known), self.schema.names)
        for name, kind in known.items():
            if _value_kind(kind) != _value_kind(mapping[name]):
                raise StreamError(
                    f"{self.name!r} has column {name!r} as {mapping[name]}, but the first file as {kind}:"
                    " write it as that type."
                )

    def has_more(self, size: int) -> bool:
        """Return whether a file of `size` bytes may have unread rows."""
        return not self._identity or self.at < self._identity[0]

    def is_rewritten(self, size: int) -> bool:
        """Return False: this is checked when the file is opened."""
        return False

    def raise_rewritten(self) -> NoReturn:
        """Raise because the file was rewritten."""
        raise StreamError(
            f"{self.name!r} was rewritten after {self.row:,} of its rows were read: write new rows to a separate file,"
            " or start without the checkpoint."
        )

    def take(self, n: int, last: bool, table: Any) -> Any:
        """Return up to `n` rows."""
        if not self._open() or self.at >= self._identity[0]:
            return None
        if self._rest is None or not self._rest.num_rows:
            try:
                self._rest = next(self._blocks)
            except Exception as error:
                raise StreamError(f"{self.name!r} is damaged ({error}): copy it again.") from error
        batch = self._rest.slice(0, n)
        self._rest = self._rest.slice(n)
        self.at = self.row = self.at + batch.num_rows
        return batch

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

    def columns(self, rows: Any, table: Any, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and their number; `before` rows precede them."""
        table.source.name = self.name
        return rows.select(table.names()).columns, rows.num_rows

    def row_text(self, rows: Any) -> str:
        """Return a single row as text."""
        return str(rows.to_pylist()[0])

    def identity(self) -> list[Any]:
        """Return inode, number of rows and a hash of the last bytes."""
        return [self.inode, *self._identity]

    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Resume at a position, if it is the same file."""
        self.at = self.row = at
        self.inode, *self._identity = identity


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
