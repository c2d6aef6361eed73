"""Weka's ARFF: a header that declares the columns, then rows, dense (CSV) or sparse ({index value, ...}).

No library is suitable: scipy reads the whole file at once and does not support sparse rows, strings or escaped quotes;
liac-arff streams rows, but only dense or only sparse ones as configured, without dates, and hangs on an unclosed brace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from tamis._validation import short_repr
from tamis.errors import StreamError
from tamis.streams.arrow import pa
from tamis.streams.source import Source
from tamis.streams.tables import Table

Row: TypeAlias = "list[str | None] | dict[int, str | None]"  # a sparse row contains only its explicit values

# Each character can be matched in one way only, so that matching is linear in the length of a line.
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s'\"]\S*)\s+(?=\S)", re.IGNORECASE)
_SIGN = re.compile(r"[,'\"]")
_QUOTED = {"'": re.compile(r"'(?:[^'\\]|\\.)*'"), '"': re.compile(r'"[^"]*"')}
# How a column is parsed, by its declared type; nominal values are validated against the declared ones.
_PARSERS: dict[str, Callable[[str], Any]] = {
    "numeric": float, "real": float, "integer": float, "string": str, "date": datetime.fromisoformat,
}  # fmt: skip


class ARFFTable(Table):
    """Weka's format: a header that declares the columns, then rows, dense (CSV) or sparse ({index value, ...})."""

    format = "arff"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._columns: list[tuple[str, str | list[str]]] = []  # name, and type or declared values
        self._head: Iterator[bytes] | None = None
        lines = self._lines()
        self._read_header(lines)
        if source.is_stdin:
            self._head = lines

    def _lines(self) -> Iterator[bytes]:
        with self.source.reading() as file:
            for line in self.source.lines(file):
                if (text := line.strip()) and not text.startswith(b"%"):
                    yield text

    def _decode(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self.source.fail(error)

    def _read_header(self, lines: Iterator[bytes]) -> None:
        columns: list[tuple[str, str | list[str]]] = []
        for number, raw in enumerate(lines, start=1):
            line = self._decode(raw)
            if line.lower().startswith("@data"):
                self._columns = columns
                return
            if line.lower().startswith("@attribute"):
                match = _ATTRIBUTE.match(line)
                if match is None:
                    raise StreamError(
                        f"{self.source.name!r} declares a column without a name: {line[:80]!r}."
                    )
                columns.append((_unquote(match[1]), self._parse_type(line[match.end() :])))
            elif not line.lower().startswith("@relation"):
                raise StreamError(
                    f"{self.source.name!r} is not an ARFF file: its statement {number} is {line[:40]!r}."
                )
        raise StreamError(f"{self.source.name!r} ends before its @data: copy it again.")

    def _parse_type(self, text: str) -> str | list[str]:
        if text.startswith("{"):
            if not text.endswith("}"):
                raise StreamError(
                    f"{self.source.name!r} declares the values {short_repr(text)} without a brace"
                    f" at their end: fix it."
                )
            return [_unquote(value) for value in _split(text.strip("{} \t"))]
        kind = text.lower().split()[0]
        if kind not in _PARSERS:
            raise StreamError(
                f"{self.source.name!r} declares a column of type {short_repr(text)}, which is not supported: write"
                " numeric, string, date or {values}."
            )
        return kind

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return [name for name, _ in self._columns]

    def categories(self, name: str) -> list[str] | None:
        """Return the declared values of a nominal column, in order."""
        declared = dict(self._columns)[name]
        return None if isinstance(declared, str) else declared

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of each block of rows, and its number of rows."""
        lines, self._head = self._head, None
        if lines is None:
            lines = self._lines()
            self._read_header(lines)
        block: list[bytes] = []
        number = 0
        for line in lines:
            block.append(line)
            if len(block) == self._block_rows():
                yield self._parse_block(block, number), len(block)
                number, block = number + len(block), []
        if block:
            yield self._parse_block(block, number), len(block)

    def _parse_block(self, block: list[bytes], before: int) -> list[Any]:
        rows = [self._parse_row(line, before + i + 1) for i, line in enumerate(block)]
        types = {float: pa.float64(), datetime.fromisoformat: pa.timestamp("us"), Decimal: None}
        columns = []
        for (name, declared), (places, values) in zip(self._columns, self._cells(rows), strict=True):
            parse = _PARSERS[declared] if isinstance(declared, str) else _category_parser(declared)
            try:
                typed = [None if value is None else parse(value) for value in values]
            except ValueError:
                at = next(i for i, one in enumerate(values) if one is not None and not _fits(parse, one))
                kind = f"{declared} column" if isinstance(declared, str) else "column"
                raise StreamError(
                    f"{self.source.name!r} contains {short_repr(values[at])} in row {before + places[at] + 1} of {kind}"
                    f" {name!r}, which declares other values: fix it."
                ) from None
            if name in self.text:
                parse, typed = str, list(values)
            elif parse is float and name == self.label and _is_large(typed):
                # float64 may have rounded a label.
                parse, typed = Decimal, [None if value is None else Decimal(value) for value in values]
            if len(typed) < len(rows):
                absent = _sparse_default(declared)
                whole = [None if absent is None else parse(absent)] * len(rows)
                for place, value in zip(places, typed, strict=True):
                    whole[place] = value
                typed = whole
            columns.append(pa.array(typed, type=types.get(parse, pa.string())))
        return columns

    def _cells(self, rows: list[Row]) -> Iterator[tuple[Sequence[int], list[str | None]]]:
        """Yield the rows with an explicit value, and the values, for each column."""
        if not any(isinstance(row, dict) for row in rows):
            for j in range(len(self._columns)):
                yield range(len(rows)), [row[j] for row in rows]
            return
        cells: list[tuple[list[int], list[str | None]]] = [([], []) for _ in self._columns]
        for place, row in enumerate(rows):
            for j, value in row.items() if isinstance(row, dict) else enumerate(row):
                cells[j][0].append(place)
                cells[j][1].append(value)
        yield from cells

    def _parse_row(self, line: bytes, number: int) -> Row:
        text = self._decode(line)
        if text.startswith("{"):
            return self._parse_sparse_row(text, number)
        values = [None if v == "?" else _unquote(v) for v in _split(text)]
        if len(values) != len(self._columns):
            raise StreamError(
                f"{self.source.name!r} has {len(values)} values in row {number}, but declares {len(self._columns)}"
                " columns: fix that row."
            )
        return values

    def _parse_sparse_row(self, text: str, number: int) -> Row:
        values: dict[int, str | None] = {}
        for item in _split(text.strip("{} \t")):
            index, value = (*item.split(None, 1), "", "")[:2]
            known = index.isascii() and index.isdigit() and len(index) < 10
            if not known or int(index) >= len(self._columns):
                raise StreamError(
                    f"{self.source.name!r} has no column {short_repr(index)}, which row {number} fills: fix that row."
                )
            values[int(index)] = None if value == "?" else _unquote(value)
        return values


def _split(text: str) -> list[str]:
    """Split at commas outside quotes."""
    if "'" not in text and '"' not in text:
        return [part.strip() for part in text.split(",")] if text else []
    parts: list[str] = []
    begin = at = 0
    unclosed: set[str] = set()  # quote characters without a closing one: literal characters
    while (match := _SIGN.search(text, at)) is not None:
        sign, at = match[0], match.end()
        if sign == ",":
            parts.append(text[begin : match.start()].strip())
            begin = at
        elif sign not in unclosed and (quoted := _QUOTED[sign].match(text, match.start())) is not None:
            at = quoted.end()
        else:
            unclosed.add(sign)
    return [*parts, text[begin:].strip()]


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _sparse_default(declared: str | list[str]) -> str | None:
    """Return the implicit value of a sparse row: 0, the first declared value, an empty string, or no date."""
    if not isinstance(declared, str):
        return declared[0]
    return {"string": "", "date": None}.get(declared, "0")


def _category_parser(declared: list[str]) -> Callable[[str], str]:
    known = set(declared)

    def parse(value: str) -> str:
        if value not in known:
            raise ValueError(value)
        return value

    return parse


def _is_large(numbers: list[Any]) -> bool:
    """Return whether integers are beyond 2**53, but not beyond an Arrow decimal."""
    return bool(1 << 53 <= max(map(abs, filter(None, numbers)), default=0.0) < 1e38)


def _fits(parse: Callable[[str], Any], value: str) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True
