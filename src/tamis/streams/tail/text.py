"""Growing text files and standard input: complete rows as they arrive."""

from __future__ import annotations

import os
import re
import select
import sys
from collections import deque
from itertools import pairwise
from typing import Any, NoReturn

from tamis._validation import Mask
from tamis.errors import StreamError
from tamis.streams.csv_table import CSVTable
from tamis.streams.dialect import LONGEST_LINE, UnclosedQuote, row_ends
from tamis.streams.tail.file import WINDOW, FollowedFile, digest, has_windows, names_of_columns, unreadable

_BLOCK = 1 << 20
_SCANNED = 1 << 12  # bytes scanned at a time after an unclosed quote, since further ones may follow
_KEPT = 1000  # bytes of a line that is too long


class BadLine(bytes):
    """A line that is not a row: it has an unclosed quote, or is too long and then contains its first bytes only."""

    quote: UnclosedQuote | None = None
    n_bytes = 0  # length of a line that is too long
    end = b""  # its last bytes

    def message(self, name: str, row: str, max_lines: int) -> str:
        """Return the error message; `row` is its place."""
        if self.quote is not None:
            return self.quote.message(name, row, max_lines)
        return (
            f"{name!r} has more than {LONGEST_LINE >> 20} MB in {row}: look for a quote that is not closed, or a"
            " newline that is missing."
        )


class FollowedText(FollowedFile):
    """Rows of a text file that grows, each ended by a newline outside of quotes.

    Parameters
    ----------
    name : str
    header : bool
        Whether the first row contains the column names.
    max_quoted_lines : int
        Maximum number of lines of a quoted value.
    skips_long_lines : bool
        Whether a line of more than 64 MB is returned as a bad line; by default, it raises an error.
    """

    def __init__(
        self, name: str, header: bool, max_quoted_lines: int, *, skips_long_lines: bool = False
    ) -> None:
        super().__init__(name)
        self.header, self.max_lines, self.skips_long_lines = header, max_quoted_lines, skips_long_lines
        self.is_json = False  # one object per line, without a header
        self._start_at(0)

    def _start_at(self, at: int) -> None:
        """Read from this byte on, with nothing read before."""
        self.n_read = at  # bytes
        self._head = b""  # the first bytes read
        self._tail = b""  # the last bytes read
        self._taken = b""  # the last bytes of the rows returned
        self._ready: deque[bytes] = deque()  # rows that were read but not returned yet
        self._held = bytearray()  # the bytes after them
        self._long: BadLine | None = None  # a line that is too long, while its end is awaited

    def look(self, table: CSVTable) -> bool:
        """Read and validate the column names, which may be in another order; return whether they are available."""
        self._set_json(table.format == "json")
        if self.names is None and not self.header:
            self.names = list(table.all_names)
        if self.names is None and (row := self.first_row()):
            self.names = names_of_columns(self.name, table.header(row), list(table.all_names), table)
            self.windows = self.windows or [[0, len(row), digest(row)]]
        return self.names is not None

    # -- rows ----------------------------------------------------------------------------------------------

    def peek(self, n: int, last: bool = False) -> list[bytes]:
        """Return up to `n` rows, including the header, without consuming them."""
        self._fill(n, last, None)
        if self.header and self._ready and isinstance(first := self._ready[0], BadLine):
            self._raise_bad_header(first)
        return [*self._ready][:n]

    def take(self, n: int, last: bool, table: Any) -> list[bytes]:
        """Return up to `n` complete unread rows; with `last`, the last one needs no newline."""
        is_new = self.header and self.at == 0
        self._fill(n + is_new, last, table)
        passed: list[bytes] = [self._ready.popleft()] if is_new and self._ready else []
        rows: list[bytes] = []
        while self._ready and len(rows) < n:
            row = self._ready.popleft()
            passed.append(row)
            if row.strip(b"\r\n"):  # an empty line is not a row
                rows.append(row)
        self.row += len(rows)
        end = b""
        for row in reversed(passed):
            end = (row.end if isinstance(row, BadLine) and row.n_bytes else row) + end
            if len(end) >= WINDOW:
                break
        self._taken = (self._taken + end)[-WINDOW:]
        self.at += sum(_length(row) for row in passed)
        return rows

    def _fill(self, n: int, last: bool, table: Any) -> None:
        """Read until `n` rows are ready or no more data is available."""
        tried = 0
        while len(self._ready) < n and (data := self._read()):
            self._held += data if self._long is None else self._after_long_line(self._long, data)
            if len(self._held) >= 2 * tried:  # do not scan every part of a long row
                self._split(table)
                tried = len(self._held)
            if len(self._held) > LONGEST_LINE:
                self._split(table)
                self._begin_long_line()
        if len(self._ready) < n and self._held:
            self._split(table, last)
        if len(self._ready) < n and self._long is not None and last:
            self._ready.append(self._long)
            self._long = None

    def _begin_long_line(self) -> None:
        """Drop a line that is longer than any row, up to its newline, without storing it."""
        if len(self._held) <= LONGEST_LINE:
            return
        if not self.skips_long_lines:
            raise StreamError(BadLine().message(self.name, f"row {self.n_ready() + 1}", self.max_lines))
        held = bytes(self._held)
        self._held.clear()
        self._long = BadLine(held[: held.find(b"\n", 0, _KEPT) + 1 or _KEPT])
        self._held += self._after_long_line(self._long, held)

    def _after_long_line(self, line: BadLine, data: bytes) -> bytes:
        """Add data to a line that is too long; return the data after its newline."""
        n = data.find(b"\n") + 1
        part = data[:n] if n else data
        line.n_bytes += len(part)
        line.end = (line.end + part[-WINDOW:])[-WINDOW:]
        if not n:
            return b""
        self._ready.append(line)
        self._long = None
        return data[n:]

    def _split(self, table: Any, last: bool = False) -> None:
        """Move complete rows to the ready rows."""
        block, start, size = bytes(self._held), 0, len(self._held)
        self._set_json(self.is_json or (self.n_ready() <= 0 and block.startswith(b"{")))
        while start < len(block):
            is_rest = start + size >= len(block)
            piece = block[start : start + size]
            ends, unclosed = row_ends(piece, self._delimiters(table), self.max_lines, whole=last and is_rest)
            self._ready.extend(piece[i:j] for i, j in pairwise([0, *ends]))
            if unclosed is not None:
                line = self._ready[-1] = BadLine(self._ready[-1])
                line.quote = unclosed
            start += ends[-1] if ends else 0
            if is_rest and unclosed is None:
                break
            size = _SCANNED if unclosed is not None else 2 * size
        del self._held[:start]
        if start > LONGEST_LINE:
            self._ready = deque(map(_shortened, self._ready))

    def _set_json(self, is_json: bool) -> None:
        self.is_json, self.header = is_json, self.header and not is_json

    def _delimiters(self, table: CSVTable | None) -> str:
        """Return the delimiter, or all candidates while it is unknown; none for JSON, one object per line."""
        if self.is_json:
            return ""
        return ",;\t|" if table is None else table.delimiter

    def columns(self, rows: list[bytes], table: CSVTable, before: int) -> tuple[list[Any], dict[str, Mask]]:
        """Return rows as Arrow columns in the order of the table, and which lack one; `before` rows precede them."""
        table.source.name = self.name
        for row, line in enumerate(rows, start=before + 1):
            if isinstance(line, BadLine):
                raise StreamError(line.message(self.name, f"row {row}", self.max_lines))
        try:
            block = table.converter(before)(b"".join(rows), True)
            if self.is_json:
                table.append_keys()
            items = list(table.parts(block, list(table.all_names) if self.is_json else self.names, before))
        except Exception as error:
            table.fail(error, before + self.header)
        if len(items) != 1 or items[0][1] != len(rows):
            raise StreamError(
                f"{self.name!r} has a line in row {before + 1} that is not a valid row: fix it."
            )
        return items[0][0], table.absent_rows(len(rows), self.names or ())

    def row_text(self, rows: list[bytes]) -> str:
        """Return a single row as text."""
        text = rows[0].decode("utf-8", errors="backslashreplace").rstrip("\r\n")
        n = rows[0].n_bytes if isinstance(rows[0], BadLine) else 0
        return f"{text}... ({n:,} bytes)" if n else text

    def n_waiting(self) -> int:
        """Return the number of bytes of an incomplete row."""
        return len(self._held) if self._long is None else self._long.n_bytes

    @property
    def is_in_long_line(self) -> bool:
        """Whether the end of a line that is too long has not arrived."""
        return self._long is not None

    def n_held_lines(self) -> int:
        """Return the number of complete lines held back until a quoted value ends."""
        return self._held.count(b"\n")

    def n_ready(self) -> int:
        """Return the number of rows before those held back."""
        return self.row + len(self._ready) - (self.header and self.at == 0)

    # -- the file ------------------------------------------------------------------------------------------

    def has_more(self, size: int) -> bool:
        """Return whether a file of `size` bytes may have unread rows."""
        return size > self.n_read or bool(self._ready or self.n_waiting())

    def holds_rows(self) -> bool:
        """Return whether rows were read, even if they were not returned yet."""
        return self.n_ready() > 0

    def is_moved(self) -> bool:
        """Return whether the open file is known to have another name now."""
        return self._file is not None and os.fstat(self._file.fileno()).st_nlink > 0

    def continues_in(self, name: str) -> bool:
        """Return whether a file contains all that is in the open one, and possibly more."""
        if not self.matches(name):
            return False
        if self._file is None:
            return True
        with open(name, "rb") as file:
            return is_beginning(self._file.fileno(), file.fileno())

    def raise_rewritten(self) -> NoReturn:
        """Raise because the file was rewritten."""
        size = os.stat(self.name).st_size
        if size < self.n_read:
            raise StreamError(
                f"{self.name!r} was truncated: it has {size:,} bytes, but {self.n_read:,} were read; if it is copied"
                f" before that, follow the copies too by a pattern such as '{self.name}*'; else write new rows to a"
                " separate file, or start without the checkpoint."
            )
        if self._head:
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
        self.open()
        for size in (_BLOCK, LONGEST_LINE + 1):
            head: bytes = os.pread(self._file.fileno(), size, 0)
            row = head[: head.find(b"\n") + 1]
            if b'"' not in row and b"\r" not in row[:-2] and row:
                return row
            ends, unclosed = row_ends(head, self._delimiters(None), self.max_lines, whole=False)
            if unclosed is not None and len(ends) == 1:
                raise StreamError(unclosed.message(self.name, "the names of its columns", self.max_lines))
            if ends or len(head) < size:
                return head[: ends[0]] if ends else b""
        self._raise_bad_header(BadLine())

    def _raise_bad_header(self, line: BadLine) -> NoReturn:
        raise StreamError(line.message(self.name, "the names of its columns", self.max_lines))

    def _read(self) -> bytes:
        self.open()
        data = os.pread(self._file.fileno(), _BLOCK, self.n_read)
        # Compared after reading. A file that was truncated or rewritten is handled together with the other files.
        if not data or not has_windows(self._file.fileno(), self.windows):
            return b""
        if len(self._head) == self.n_read and (room := _head_length(self._head + data) - self.n_read) > 0:
            self._head += data[:room]
        self.n_read += len(data)
        self._tail = (self._tail + data[-WINDOW:])[-WINDOW:]
        self.windows = self._windows(self.n_read, self._tail)
        return data

    def _windows(self, n: int, tail: bytes) -> list[list[Any]]:
        """Return the byte ranges that identify the first `n` bytes, which end with `tail`."""
        head = self._head[:n]
        return [[0, len(head), digest(head)], [n - len(tail), len(tail), digest(tail)]]

    def open(self) -> bool:
        """Open the file, if it is the one that was read."""
        if self._file is not None:
            return True
        try:
            self._file = open(self.name, "rb", buffering=0)  # noqa: SIM115  closed by close
        except OSError as error:
            raise unreadable(self.name, error) from None
        self.inode = os.fstat(self._file.fileno()).st_ino
        if not has_windows(self._file.fileno(), self.windows):
            self.close()
            self.raise_rewritten()
        if self.n_read and not self._head:
            head, tail = (os.pread(self._file.fileno(), n, start) for start, n, _ in self.windows)
            self._head, self._tail = head, tail
            self._taken = tail  # without rows that were read but not returned
        return True

    def close(self) -> None:
        """Close the file until it is read again, and drop the bytes that identify it if all of its rows were read."""
        super().close()
        if self.n_read == self.at:
            self._start_at(self.at)

    def identity(self) -> list[Any]:
        """Return its inode, and the byte ranges before the position."""
        return [self.inode, self._windows(self.at, self._taken) if self._head else self.windows]

    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Resume at a position, if it is the same file."""
        self.at, self.row = at, row
        self.inode, self.windows = identity or (0, [])
        self._start_at(at)

    def restart_at_position(self) -> None:
        """Drop the rows that were read but not returned."""
        identity = self.identity()
        super().close()
        self.seek(self.at, self.row, identity)


def is_beginning(short: int, long: int) -> bool:
    """Return whether an open file begins like another one, by the first and last bytes of the shorter one."""
    n = os.fstat(short).st_size
    ranges = [(min(n, 2 * WINDOW), 0), (min(n, WINDOW), max(0, n - WINDOW))]
    return n <= os.fstat(long).st_size and all(
        os.pread(short, *one) == os.pread(long, *one) for one in ranges
    )


def _head_length(data: bytes) -> int:
    """Return how many of the first bytes identify a file: the first line, and as many as a window behind it."""
    line = re.search(rb"[\r\n]", data[:_BLOCK])
    return (line.end() if line else min(len(data), _BLOCK)) + WINDOW


def _shortened(row: bytes) -> bytes:
    """Return a row, or the beginning of one that is too long."""
    if len(row) <= LONGEST_LINE:
        return row
    line = BadLine(row[:_KEPT])
    line.n_bytes, line.end = len(row), row[-WINDOW:]
    return line


def _length(row: bytes) -> int:
    """Return the number of bytes of a line in its file."""
    return row.n_bytes or len(row) if isinstance(row, BadLine) else len(row)


class StandardInput(FollowedText):
    """Standard input: rows as they arrive, which cannot be read again."""

    def __init__(self, header: bool, max_quoted_lines: int, *, skips_long_lines: bool) -> None:
        super().__init__("<stdin>", header, max_quoted_lines, skips_long_lines=skips_long_lines)
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
