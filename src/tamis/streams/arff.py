"""Weka's ARFF: a header that declares the columns, then rows, dense (CSV) or sparse ({index value, ...})."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from typing import Any

from tamis.errors import StreamError
from tamis.streams.source import Source
from tamis.streams.tables import Table, pyarrow_module

__all__ = ["ARFFTable"]

_BLOCK_ROWS = 8192
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.+?)\s*$", re.IGNORECASE)
_NUMERIC = ("numeric", "real", "integer")


class ARFFTable(Table):
    """Weka's format: a header that declares the columns, then rows, dense (CSV) or sparse ({index value, ...})."""

    format = "arff"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        pyarrow_module("pyarrow.csv")
        self._columns: list[tuple[str, list[str] | None]] = []  # name, categories (None: a number)
        self._head: Iterator[bytes] | None = None
        lines = self._lines()
        self._read_header(lines)
        if source.is_stdin:
            self._head = lines

    def _lines(self) -> Iterator[bytes]:
        try:
            with self.source.opened() as file:
                for line in file:
                    if (text := line.strip()) and not text.startswith(b"%"):
                        yield text
        except (EOFError, lzma.LZMAError, OSError) as error:
            self.source.fail(error)

    def _read_header(self, lines: Iterator[bytes]) -> None:
        columns: list[tuple[str, list[str] | None]] = []
        for number, raw in enumerate(lines, start=1):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                self.source.fail(error)
            if line.lower().startswith("@data"):
                self._columns = columns
                return
            if line.lower().startswith("@attribute"):
                found = _ATTRIBUTE.match(line)
                if found is None:
                    raise StreamError(
                        f"{self.source.name!r} declares a column it does not name: {line[:80]!r}."
                    )
                columns.append((_unquote(found[1]), _categories(found[2])))
            elif not line.lower().startswith("@relation"):
                raise StreamError(
                    f"{self.source.name!r} is no ARFF file: its statement {number} is {line[:40]!r}."
                )
        raise StreamError(f"{self.source.name!r} ends before its @data: copy it again.")

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return [name for name, _ in self._columns]

    def categories(self, name: str) -> list[str] | None:
        """Return the values that a nominal column is declared to have, in that order."""
        return dict(self._columns)[name] or None

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        lines, self._head = self._head, None
        if lines is None:
            lines = self._lines()
            self._read_header(lines)
        block: list[bytes] = []
        number = 0
        for line in lines:
            block.append(line)
            if len(block) == _BLOCK_ROWS:
                yield self._table_of(block, number), len(block)
                number, block = number + len(block), []
        if block:
            yield self._table_of(block, number), len(block)

    def _table_of(self, block: list[bytes], before: int) -> list[Any]:
        import pyarrow as pa

        rows = [self._row(line, before + i + 1) for i, line in enumerate(block)]
        columns = []
        for j, (name, categories) in enumerate(self._columns):
            values = [row[j] for row in rows]
            try:
                typed = [v if v is None else float(v) for v in values] if categories is None else values
            except ValueError:
                at = next(i for i, v in enumerate(values) if v is not None and not _is_number(v))
                raise StreamError(
                    f"{self.source.name!r} holds {values[at]!r} in row {before + at + 1} of numeric column {name!r}."
                ) from None
            columns.append(pa.array(typed, type=pa.float64() if categories is None else pa.string()))
        return columns

    def _row(self, line: bytes, number: int) -> list[str | None]:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            self.source.fail(error)
        if text.startswith("{"):
            return self._sparse_row(text, number)
        values = [None if v == "?" else _unquote(v) for v in _split(text)]
        if len(values) != len(self._columns):
            raise StreamError(
                f"{self.source.name!r} has {len(values)} values in row {number}, but declares {len(self._columns)}"
                " columns: mend that row."
            )
        return values

    def _sparse_row(self, text: str, number: int) -> list[str | None]:
        values: list[str | None] = [
            "0" if not categories else categories[0] for _, categories in self._columns
        ]
        for item in _split(text.strip("{} \t")):
            index, _, value = item.partition(" ")
            if not index.isdigit() or int(index) >= len(values):
                raise StreamError(f"{self.source.name!r} has no column {index!r}, which row {number} fills.")
            values[int(index)] = None if value.strip() == "?" else _unquote(value.strip())
        return values


def _split(text: str) -> list[str]:
    """Split at commas outside quotes."""
    if "'" not in text and '"' not in text:
        return [part.strip() for part in text.split(",")] if text else []
    return [part.strip() for part in re.findall(r"""((?:'(?:[^'\\]|\\.)*'|"[^"]*"|[^,])+)(?:,|$)""", text)]


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _categories(declared: str) -> list[str] | None:
    """Return the values of a nominal column; an empty list for text and dates, None for numbers."""
    if declared.startswith("{"):
        return [_unquote(value) for value in _split(declared.strip("{} \t"))]
    return None if declared.lower().split()[0] in _NUMERIC else []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
