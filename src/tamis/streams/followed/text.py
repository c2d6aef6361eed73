"""Text that grows, and standard input: complete rows, as they come."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from typing import Any

import numpy as np

from tamis._check import Array
from tamis.errors import StreamError
from tamis.streams.csv_table import CSVTable, quoted, refuse_unclosed
from tamis.streams.followed.part import HEAD, Part, digest, refuse_others
from tamis.streams.source import LONGEST_LINE

__all__ = ["Pipe", "Text"]

_BLOCK = 1 << 20


class Text(Part):
    """Rows of a text file that grows, each ended by a newline outside of quotes.

    Parameters
    ----------
    name : str
    header : bool
        Whether the first row has the names of the columns.
    """

    def __init__(self, name: str, header: bool) -> None:
        super().__init__(name)
        self.header = header
        self.n_read = 0  # bytes
        self.head = b""  # the first bytes that were taken
        self._expected: list[Any] = [0, 0, ""]
        self._is_dry = False
        self._ready: deque[bytes] = deque()  # rows that were read and not taken
        self._held = bytearray()  # what comes after them

    def look(self, table: CSVTable) -> bool:
        """Look at the names of its columns, which may be in another order; return whether they are there."""
        if self.names is None and not self.header:
            self.names = table.read_names
        if self.names is None and (row := self.first_row()):
            found = table.names_in(_as_utf8(row, table.encoding))
            refuse_others(self.name, table.read_names, found)
            self.names = found
        return self.names is not None

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
        if len(self.head) < HEAD:
            self.head = (self.head + row)[:HEAD]
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
            delimiter = ",;\t|" if table is None else table.delimiter
            refuse_unclosed(bytes(self._held), delimiter, self.name, "row", self.row + len(self._ready))
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
            block = _as_utf8(b"".join(rows), table.encoding)
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
                f"{self.name!r} was rewritten: it does not begin with the {self.row:,} rows that were taken; give"
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
            if digest(self.head) != told:
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
        return [self.inode, len(self.head), digest(self.head)]

    def go_to(self, at: int, row: int, identity: list[Any]) -> None:
        """Go on there, if it is that file."""
        self.at = self.n_read = at
        self.row, self._expected, self.inode = row, identity, identity[0]


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


def _as_utf8(block: bytes, encoding: str) -> bytes:
    """Return text in UTF-8."""
    return block if encoding == "utf-8" else block.decode(encoding).encode()


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
