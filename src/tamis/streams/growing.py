"""Files that grow, and files that appear: rows from where one stands, and what says where that is.

A position is the name of a file, how many bytes (of Parquet, rows) of it were taken, and what tells this file from
another of that name: its inode, and the SHA-256 of its first (of Parquet, last) 4096 bytes. To go on is one seek.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from tamis._check import Array
from tamis.errors import StreamError
from tamis.streams.csv_table import CSVTable, quoted
from tamis.streams.source import LONGEST_LINE
from tamis.streams.tables import pyarrow_module

__all__ = ["Part", "Pipe", "RowGroups", "Text"]

_BLOCK = 1 << 20
_HEAD = 4096  # bytes that tell a file from another


class Part(Protocol):
    """One file of a stream without an end.

    Attributes
    ----------
    name : str
    at : int
        Bytes (of Parquet, rows) that were taken.
    row : int
        Rows that were taken.
    inode : int
        0: not known yet.
    """

    name: str
    at: int
    row: int
    inode: int

    def take(self, n: int, last: bool, table: Any) -> Any:
        """Return up to `n` whole rows that are there and were not taken; `last`: the last one needs no newline."""

    def has_more(self, size: int) -> bool:
        """Return whether a file of so many bytes may have rows that were not taken."""

    def columns(self, rows: Any, table: Any, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and how many they are; so many came before."""

    def told(self, rows: Any) -> str:
        """Return a single row as text."""

    def identity(self) -> list[Any]:
        """Return what tells this file from another."""

    def go_to(self, at: int, row: int, identity: list[Any]) -> None:
        """Go on there, if it is that file."""

    def n_waiting(self) -> int:
        """Return how many bytes of a row without its newline wait."""

    def close(self) -> None:
        """Close the file, until rows are taken again."""


class Text:
    """Rows of a text file that grows, each ended by a newline outside of quotes.

    Parameters
    ----------
    name : str
    header : bool
        Whether the first row has the names of the columns.
    """

    def __init__(self, name: str, header: bool) -> None:
        self.name, self.header = name, header
        self.at = self.row = self.inode = 0
        self.names: list[str] | None = None  # of its columns, in their order
        self.n_read = 0  # bytes
        self.head = b""  # the first bytes that were taken
        self._expected: list[Any] = [0, 0, ""]
        self._file: Any = None
        self._is_dry = False
        self._ready: deque[bytes] = deque()  # rows that were read and not taken
        self._held = bytearray()  # what comes after them

    # -- rows ----------------------------------------------------------------------------------------------

    def peek(self, n: int, last: bool = False) -> list[bytes]:
        """Return up to `n` rows, that of the names included, without taking them."""
        self._fill(n, last, None)
        return [*self._ready][:n]

    def take(self, n: int, last: bool, table: Any) -> list[bytes]:
        """Return up to `n` whole rows that are there and were not taken; `last`: the last one needs no newline."""
        is_new = self.header and self.at == 0
        self._fill(n + is_new, last, table)
        if is_new and self._ready:
            self._count(self._ready.popleft())
        rows: list[bytes] = []
        while self._ready and len(rows) < n:
            row = self._ready.popleft()
            self._count(row)
            if row.strip(b"\r\n"):  # an empty line is no row
                rows.append(row)
        self.row += len(rows)
        return rows

    def _count(self, row: bytes) -> None:
        if len(self.head) < _HEAD:
            self.head = (self.head + row)[:_HEAD]
        self.at += len(row)

    def _fill(self, n: int, last: bool, table: Any) -> None:
        """Read until `n` rows are ready, or there is no more."""
        tried = 0
        while len(self._ready) < n and (data := self._read()):
            self._held += data
            if len(self._held) >= 2 * tried:  # not every piece of a long row is looked through
                self._cut(table)
                tried = len(self._held)
            if len(self._held) > LONGEST_LINE:
                raise StreamError(
                    f"{self.name!r} has a row of more than {LONGEST_LINE >> 20} MB: look for a quote that is not"
                    " closed."
                )
        if len(self._ready) < n and self._held:
            self._cut(table)
        if len(self._ready) < n and self._held and last:
            self._ready.append(bytes(self._held))
            self._held.clear()

    def _cut(self, table: Any) -> None:
        """Move what are whole rows to those that are ready."""
        block, start = bytes(self._held), 0
        for end in _ends(block, table):
            self._ready.append(block[start:end])
            start = end
        del self._held[:start]

    def columns(self, rows: list[bytes], table: CSVTable, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and how many they are; so many came before."""
        table.source.name = self.name
        try:
            block = as_utf8(b"".join(rows), table.encoding)
            found = list(table.parts(block, self.names, before))
        except Exception as error:
            table.fail(error, before + self.header)
        if len(found) != 1 or found[0][1] != len(rows):
            raise StreamError(f"{self.name!r} has a line in row {before + 1} that is no row: mend it.")
        return found[0]

    def told(self, rows: list[bytes]) -> str:
        """Return a single row as text."""
        return rows[0].decode("utf-8", errors="backslashreplace").rstrip("\r\n")

    def n_waiting(self) -> int:
        """Return how many bytes of a row without its newline wait."""
        return len(self._held)

    # -- the file ------------------------------------------------------------------------------------------

    def has_more(self, size: int) -> bool:
        """Return whether a file of so many bytes may have rows that were not taken."""
        if size < self.n_read:
            raise StreamError(
                f"{self.name!r} was cut: it has {size:,} bytes, and {self.n_read:,} were read; give new rows in a file"
                " of their own, or begin without the checkpoint."
            )
        return size > self.n_read or bool(self._ready or self._held)

    def first_row(self) -> bytes:
        """Return the first row, b"" while it is not whole."""
        self._open()
        row: bytes = os.pread(self._file.fileno(), LONGEST_LINE if self.n_read > _BLOCK else _BLOCK, 0)
        return row[: row.find(b"\n") + 1]

    def _read(self) -> bytes:
        self._open()
        data: bytes = self._file.read(_BLOCK)
        if not data:
            self._is_dry = True
            self.has_more(os.fstat(self._file.fileno()).st_size)
        elif self._is_dry:  # it has grown: is it still the same?
            self._is_dry = False
            self.check()
        self.n_read += len(data)
        return data

    def check(self) -> None:
        """Raise if the file does not begin with what was taken."""
        self._open()
        if os.pread(self._file.fileno(), len(self.head), 0) != self.head:
            raise StreamError(
                f"{self.name!r} was written anew: it does not begin with the {self.row:,} rows that were taken; give"
                " new rows in a file of their own, or begin without the checkpoint."
            )

    def _open(self) -> None:
        if self._file is not None:
            return
        try:
            self._file = open(self.name, "rb", buffering=0)  # noqa: SIM115  closed by close
        except OSError as error:
            raise StreamError(
                f"{self.name!r} cannot be read ({error.strerror}): check its permissions."
            ) from None
        self._file.seek(self.n_read)
        self.inode = os.fstat(self._file.fileno()).st_ino
        _, n, told = self._expected
        if n and not self.head:
            self.head = os.pread(self._file.fileno(), n, 0)
            if _digest(self.head) != told:
                self.close()
                raise StreamError(
                    f"{self.name!r} is another file than the one of which {self.row:,} rows were taken: if that was put"
                    f" aside under a new name, follow both by a pattern such as '{self.name}*'; or begin without the"
                    " checkpoint."
                )
        elif self.head:
            self.check()

    def identity(self) -> list[Any]:
        """Return its inode, and a hash of the first bytes that were taken."""
        if self.at and not self.head:
            return self._expected
        return [self.inode, len(self.head), _digest(self.head)]

    def go_to(self, at: int, row: int, identity: list[Any]) -> None:
        """Go on there, if it is that file."""
        self.at = self.n_read = at
        self.row, self._expected, self.inode = row, identity, identity[0]

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._file is not None

    def close(self) -> None:
        """Close the file, until rows are taken again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _ends(block: bytes, table: Any) -> list[int]:
    """Return where the rows of a block end."""
    ends: Array = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
    if b'"' in block and len(ends):
        starts, stops = quoted(block, ",;\t|" if table is None else table.delimiter)
        if len(starts):
            at = np.searchsorted(starts, ends) - 1
            ends = ends[(at < 0) | (ends > stops[np.maximum(at, 0)])]
    found: list[int] = (ends + 1).tolist()
    return found


def as_utf8(block: bytes, encoding: str) -> bytes:
    """Return text in UTF-8."""
    return block if encoding == "utf-8" else block.decode(encoding).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class Pipe(Text):
    """Standard input: rows as they come, which cannot be read again."""

    def __init__(self, header: bool) -> None:
        super().__init__("<stdin>", header)
        self.ended = False

    def wait(self, seconds: float) -> bool:
        """Return whether there is something to read, after so many seconds at most."""
        return bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])

    def _read(self) -> bytes:
        if self.ended or not self.wait(0.0):
            return b""
        data = os.read(sys.stdin.fileno(), _BLOCK)
        self.ended = not data
        return data

    def first_row(self) -> bytes:
        """Return the first row, b"" while it is not whole."""
        return b"".join(self.peek(1, self.ended))


class RowGroups:
    """A Parquet file, which does not grow; it is waited for until it is whole."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = self.row = self.inode = 0
        self.names: list[str] | None = None  # looked at
        self._told: list[Any] = []  # rows, hash of the last bytes
        self._file: Any = None
        self._blocks: Iterator[Any] = iter(())
        self._rest: Any = None  # of a block

    def _open(self) -> bool:
        """Open the file; return whether it is a whole one."""
        if self._file is not None:
            return True
        pa = pyarrow_module("pyarrow")
        try:
            self._file = pyarrow_module("pyarrow.parquet").ParquetFile(self.name, pre_buffer=False)
        except (pa.ArrowInvalid, OSError):  # not whole yet
            return False
        with open(self.name, "rb") as file:
            self.inode, size = os.fstat(file.fileno()).st_ino, os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _HEAD))
            now = [self._file.metadata.num_rows, _digest(file.read())]
        if self._told and self._told != now:
            raise StreamError(
                f"{self.name!r} was written anew since {self.row:,} rows of it were taken: give new rows in a file of"
                " their own, or begin without the checkpoint."
            )
        self._told, self._blocks, self._rest = now, self._from(self.at), None
        return True

    @property
    def schema(self) -> Any:
        """Its Arrow schema; None while it is not whole."""
        return self._file.schema_arrow if self._open() else None

    def has_more(self, size: int) -> bool:
        """Return whether a file of so many bytes may have rows that were not taken."""
        return not self._told or self.at < self._told[0]

    def take(self, n: int, last: bool, table: Any) -> Any:
        """Return up to `n` rows."""
        if not self._open() or self.at >= self._told[0]:
            return None
        if self._rest is None or not self._rest.num_rows:
            try:
                self._rest = next(self._blocks)
            except Exception as error:
                raise StreamError(f"{self.name!r} is damaged ({error}): copy it again.") from error
        found = self._rest.slice(0, n)
        self._rest = self._rest.slice(n)
        self.at = self.row = self.at + found.num_rows
        return found

    def _from(self, row: int) -> Iterator[Any]:
        """Yield blocks from a row on; the row groups before it are not read."""
        groups = range(self._file.num_row_groups)
        ends = np.cumsum([self._file.metadata.row_group(k).num_rows for k in groups])
        first = int(np.searchsorted(ends, row, side="right"))
        skip = row - (int(ends[first - 1]) if first else 0)
        for block in self._file.iter_batches(8192, row_groups=groups[first:], use_threads=False):
            if skip < block.num_rows:
                yield block.slice(skip)
            skip = max(0, skip - block.num_rows)

    def columns(self, rows: Any, table: Any, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and how many they are; so many came before."""
        table.source.name = self.name
        return rows.select(table.names()).columns, rows.num_rows

    def told(self, rows: Any) -> str:
        """Return a single row as text."""
        return str(rows.to_pylist()[0])

    def n_waiting(self) -> int:
        """Return 0: all its rows are whole."""
        return 0

    def identity(self) -> list[Any]:
        """Return inode, number of rows and a hash of the last bytes."""
        return [self.inode, *self._told]

    def go_to(self, at: int, row: int, identity: list[Any]) -> None:
        """Go on there, if it is that file."""
        self.at = self.row = at
        self.inode, *self._told = identity

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._file is not None

    def close(self) -> None:
        """Close the file, until rows are taken again."""
        if self._file is not None:
            self._file.close()
            self._file = None
