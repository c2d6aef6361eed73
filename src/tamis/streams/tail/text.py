"""Growing text files and standard input: complete rows as they arrive."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections import deque
from itertools import pairwise
from typing import Any, NoReturn

from tamis.errors import StreamError
from tamis.streams.csv_table import CSVTable
from tamis.streams.quotes import UnclosedQuote, row_ends
from tamis.streams.source import LONGEST_LINE
from tamis.streams.tail.file import HEAD, FollowedFile, check_same_columns, digest

__all__ = ["FollowedText", "StandardInput", "UnclosedLine"]

_BLOCK = 1 << 20
_WINDOW = 1 << 12  # bytes scanned at a time after an unclosed quote, since further ones may follow


class UnclosedLine(bytes):
    """A line that is not a row because it has an unclosed quote."""

    quote: UnclosedQuote


class FollowedText(FollowedFile):
    """Rows of a text file that grows, each ended by a newline outside of quotes.

    Parameters
    ----------
    name : str
    header : bool
        Whether the first row contains the column names.
    max_quoted_lines : int
        Maximum number of lines of a quoted value.
    """

    def __init__(self, name: str, header: bool, max_quoted_lines: int) -> None:
        super().__init__(name)
        self.header, self.most = header, max_quoted_lines
        self.n_read = 0  # bytes
        self.head = b""  # first bytes of the rows returned
        self._expected: list[Any] = [0, 0, ""]
        self._ready: deque[bytes] = deque()  # rows that were read but not returned yet
        self._held = bytearray()  # the bytes after them

    def look(self, table: CSVTable) -> bool:
        """Read and validate the column names, which may be in another order; return whether they are available."""
        if self.names is None and not self.header:
            self.names = table.read_names
        if self.names is None and (row := self.first_row()):
            names = table.names_in(_as_utf8(row, table.encoding))
            check_same_columns(self.name, table.read_names, names)
            self.names = names
        return self.names is not None

    # -- rows ----------------------------------------------------------------------------------------------

    def peek(self, n: int, last: bool = False) -> list[bytes]:
        """Return up to `n` rows, including the header, without consuming them."""
        self._fill(n, last, None)
        if self.header and self._ready and isinstance(first := self._ready[0], UnclosedLine):
            self._raise_unclosed(first.quote)
        return [*self._ready][:n]

    def take(self, n: int, last: bool, table: Any) -> list[bytes]:
        """Return up to `n` complete unread rows; with `last`, the last one needs no newline."""
        is_new = self.header and self.at == 0
        self._fill(n + is_new, last, table)
        if is_new and self._ready:
            self._count(self._ready.popleft())
        rows: list[bytes] = []
        while self._ready and len(rows) < n:
            row = self._ready.popleft()
            self._count(row)
            if row.strip(b"\r\n"):  # an empty line is not a row
                rows.append(row)
        self.row += len(rows)
        return rows

    def _count(self, row: bytes) -> None:
        if len(self.head) < HEAD:
            self.head = (self.head + row)[:HEAD]
        self.at += len(row)

    def _fill(self, n: int, last: bool, table: Any) -> None:
        """Read until `n` rows are ready or no more data is available."""
        tried = 0
        while len(self._ready) < n and (data := self._read()):
            self._held += data
            if len(self._held) >= 2 * tried:  # do not scan every part of a long row
                self._split(table)
                tried = len(self._held)
            if len(self._held) > LONGEST_LINE:
                raise StreamError(
                    f"{self.name!r} has a row of more than {LONGEST_LINE >> 20} MB: look"
                    " for a quote that is not closed."
                )
        if len(self._ready) < n and self._held:
            self._split(table, last)

    def _split(self, table: Any, last: bool = False) -> None:
        """Move complete rows to the ready rows."""
        block, start, size = bytes(self._held), 0, len(self._held)
        while start < len(block):
            is_rest = start + size >= len(block)
            piece = block[start : start + size]
            ends, unclosed = row_ends(piece, _delimiters(table), self.most, whole=last and is_rest)
            self._ready.extend(piece[i:j] for i, j in pairwise([0, *ends]))
            if unclosed is not None:
                line = self._ready[-1] = UnclosedLine(self._ready[-1])
                line.quote = unclosed
            start += ends[-1] if ends else 0
            if is_rest and unclosed is None:
                break
            size = _WINDOW if unclosed is not None else 2 * size
        del self._held[:start]

    def columns(self, rows: list[bytes], table: CSVTable, before: int) -> tuple[list[Any], int]:
        """Return rows as Arrow columns in the order of the table, and their number; `before` rows precede them."""
        table.source.name = self.name
        for row, line in enumerate(rows, start=before + 1):
            if isinstance(line, UnclosedLine):
                raise StreamError(line.quote.message(self.name, f"row {row}", self.most))
        try:
            block = _as_utf8(b"".join(rows), table.encoding)
            items = list(table.parts(block, self.names, before))
        except Exception as error:
            table.fail(error, before + self.header)
        if len(items) != 1 or items[0][1] != len(rows):
            raise StreamError(
                f"{self.name!r} has a line in row {before + 1} that is not a valid row: fix it."
            )
        return items[0]

    def row_text(self, rows: list[bytes]) -> str:
        """Return a single row as text."""
        return rows[0].decode("utf-8", errors="backslashreplace").rstrip("\r\n")

    def n_waiting(self) -> int:
        """Return the number of bytes of an incomplete row."""
        return len(self._held)

    def n_held_lines(self) -> int:
        """Return the number of complete lines held back until a quoted value ends."""
        return self._held.count(b"\n")

    def n_ready(self) -> int:
        """Return the number of rows before those held back."""
        return self.row + len(self._ready) - (self.header and self.at == 0)

    # -- the file ------------------------------------------------------------------------------------------

    def has_more(self, size: int) -> bool:
        """Return whether a file of `size` bytes may have unread rows."""
        return size > self.n_read or bool(self._ready or self._held)

    def is_rewritten(self, size: int) -> bool:
        """Return whether a file of `size` bytes no longer begins with the rows that were read."""
        if size == self.n_read:
            return False
        _, n, expected = self.identity()
        if size < self.n_read or not n:
            return size < self.n_read
        with open(self.name, "rb") as file:
            return bool(digest(file.read(n)) != expected)

    def begins_as(self, head: bytes) -> bool:
        """Return whether a file with these first bytes (at most 4096) may be a copy of this one, even in part."""
        _, n, expected = self.identity()
        if not self.head:
            with contextlib.suppress(OSError), open(self.name, "rb") as file:
                mine = file.read(n)
                self.head = mine if digest(mine) == expected else b""
        if not self.head:
            return bool(digest(head[:n]) == expected)
        k = min(len(head), len(self.head))
        return k > 0 and head[:k] == self.head[:k]

    def raise_rewritten(self) -> NoReturn:
        """Raise because the file was rewritten."""
        size = os.stat(self.name).st_size
        if size < self.n_read:
            raise StreamError(
                f"{self.name!r} was truncated: it has {size:,} bytes, but {self.n_read:,} were read; if it is copied"
                f" before that, follow the copies too by a pattern such as '{self.name}*'; else write new rows to a"
                " separate file, or start without the checkpoint."
            )
        if self.head:
            raise StreamError(
                f"{self.name!r} was rewritten: it does not begin with the {self.row:,} rows that were read; write"
                " new rows to a separate file, or start without the checkpoint."
            )
        raise StreamError(
            f"{self.name!r} is not the file from which {self.row:,} rows were read: if that one was renamed, follow"
            f" both by a pattern such as '{self.name}*', or start without the checkpoint."
        )

    def first_row(self) -> bytes:
        """Return the first row, b"" while it is not whole."""
        self._open()
        head: bytes = os.pread(self._file.fileno(), LONGEST_LINE if self.n_read > _BLOCK else _BLOCK, 0)
        row = head[: head.find(b"\n") + 1]
        if b'"' not in row and b"\r" not in row[:-2] and row:
            return row
        ends, unclosed = row_ends(head, _delimiters(None), self.most, whole=False)
        if unclosed is not None and len(ends) == 1:
            self._raise_unclosed(unclosed)
        return head[: ends[0]] if ends else b""

    def _raise_unclosed(self, quote: UnclosedQuote) -> NoReturn:
        raise StreamError(quote.message(self.name, "the names of its columns", self.most))

    def _read(self) -> bytes:
        self._open()
        if os.fstat(self._file.fileno()).st_size < self.n_read or not self._is_same():
            return b""  # truncated or rewritten: the other files determine how this is handled
        data: bytes = self._file.read(_BLOCK)
        self.n_read += len(data)
        return data

    def _is_same(self) -> bool:
        """Return whether the open file begins with the bytes read before."""
        return bool(os.pread(self._file.fileno(), len(self.head), 0) == self.head)

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
        _, n, expected = self.identity()
        if n:
            head = os.pread(self._file.fileno(), n, 0)
            if digest(head) != expected:
                self.close()
                self.raise_rewritten()
            self.head = head

    def identity(self) -> list[Any]:
        """Return its inode, and a hash of the first bytes of the rows returned."""
        if self.at and not self.head:
            return self._expected
        return [self.inode, len(self.head), digest(self.head)]

    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Resume at a position, if it is the same file."""
        self.at = self.n_read = at
        self.row, self._expected, self.inode = row, identity, identity[0]


def _delimiters(table: Any) -> str:
    """Return the delimiter, or all candidates while it is unknown."""
    delimiter: str = ",;\t|" if table is None else table.delimiter
    return delimiter


def _as_utf8(block: bytes, encoding: str) -> bytes:
    """Return text in UTF-8."""
    return block if encoding == "utf-8" else block.decode(encoding).encode()


class StandardInput(FollowedText):
    """Standard input: rows as they arrive, which cannot be read again."""

    def __init__(self, header: bool, max_quoted_lines: int) -> None:
        super().__init__("<stdin>", header, max_quoted_lines)
        self.ended = False

    def wait(self, seconds: float) -> bool:
        """Return whether data is available, waiting at most `seconds`."""
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
