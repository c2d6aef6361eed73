"""CSV, read in blocks of complete rows.

Each block is parsed by pyarrow in the thread that read it. Arrow's streaming reader reads ahead in a thread that cannot
be joined: a process that ends while this thread reads a Python file (standard input, ``.xz``, Latin-1) is aborted.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np

from tamis._validation import Mask, short_repr, warn_of_rounding
from tamis.errors import StreamError
from tamis.streams import dialect
from tamis.streams.arrow import csv, kinds, pa, pc
from tamis.streams.converted import AlignedRows, JSONRows, is_json
from tamis.streams.dialect import LONGEST_LINE, MAX_LINES, first_unclosed, quoted_spans, row_ends
from tamis.streams.source import BytesSource, Source
from tamis.streams.tables import Head, Table, schema_types, split_markers

_BLOCK_BYTES = 1 << 20
_PADDED = ("{}", " {}", "{} ", " {} ")
_MISSING = ("?", "None", "NaT")  # in addition to the empty string, NA, NaN, null and similar markers
_MAX_DISTINCT = 1000  # values of a column from which its format is detected
_FLAGS = ("true", "True", "TRUE", "false", "False", "FALSE")
_HEX = r"^[+-]?0[xX]"
_NUMBER = r"(?i)^(?:[+-]?(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?|nan)$"
_UNLIKE_NUMBER = r"^-?(?:0[0-9]+|[0-9]{20,})$"  # a label that a number would not represent


class CSVTable(Table):
    """Delimited text in the dialect that :mod:`tamis.streams.dialect` detects; types are inferred from the first block.

    Numbers are read as float64. Unless set by an option, delimiter, decimal mark (the other one may group thousands),
    encoding and date format are detected in the first block. Notes above the header are skipped. Lines whose values are
    separated by blanks, and JSON objects, are converted to CSV while reading.
    """

    format = "csv"
    _facts = (
        "options", "format", "_header", "_na", "_numeric", "grouped", "decimals", "time_formats", "durations",
        "encoding", "delimiter", "decimal", "newline", "_aligned", "all_names", "read_names", "_is_padded", "text",
        "label",
        "labels", "whole_labels",
    )  # fmt: skip
    above = ""  # lines above the names
    _aligned: Sequence[list[int]] = ()  # start and end of each column that is aligned by blanks
    all_names: list[str] = []  # noqa: RUF012  replaced, never changed: of all columns of the file, unique
    read_names: list[str]  # without those that are empty and have no name
    _json: JSONRows | None = None  # the last conversion of JSON

    def __init__(self, source: Source, **options: Any) -> None:
        super().__init__(source, **options)
        self._header = bool(options["header"])
        given, markers = split_markers(options.get("na") or ())
        words = [*csv.ConvertOptions().null_values, *_MISSING, *given]
        self._na = [form.format(word) for form in _PADDED for word in words]
        # Columns in which any text is a missing value.
        self._numeric = [pattern for pattern, value in markers if value == "*"]
        # Sign (currency or percent) of numeric columns that have one, or have grouped thousands.
        self.grouped: dict[str, str] = {}
        self.decimals: dict[str, str] = {}  # columns with another decimal mark than the rest
        self.time_formats: dict[str, str] = {}  # formats of date columns; "" if ambiguous
        self._is_padded = False  # whether blanks surround names, and so texts
        self.durations: set[str] = set()  # columns of hours, minutes and seconds
        self._first: Any = None
        self._block = self._read_head()
        try:
            self._read_first(self._block)
        except Exception as error:
            self.fail(error)
        if self._header:
            self._check_names()

    def _read_head(self) -> bytes:
        """Detect encoding and delimiter; return the first block of complete rows."""
        size = _BLOCK_BYTES
        while True:
            head = self.source.peek(size)
            self._is_whole = len(head) < size
            self._find_dialect(head)
            try:
                text = self.converter()(head, self._is_whole)
            except UnicodeDecodeError as error:
                self.source.fail(error)
            end = self._end_of_rows(text, 0, whole=self._is_whole)
            block = text if self._is_whole else text[:end]
            if self._is_whole or block.count(self.newline) > 1:  # more than the header
                return block
            self._check_row_length(head)
            size *= 2

    @classmethod
    def from_state(cls, source: Source, facts: dict[str, Any]) -> CSVTable:
        """Return a table from such a state."""
        table = cls.__new__(cls)
        Table.__init__(table, source)
        table.__dict__.update({name: facts[name] for name in cls._facts})
        table._types = schema_types(facts["types"])
        table._first, table._block = None, b""
        return table

    # -- columns that later rows name ----------------------------------------------------------------------

    def append(self, names: Sequence[str], other: Table) -> None:
        """Append columns of another table, which later rows name."""
        super().append(names, other)
        assert isinstance(other, CSVTable)
        for known, found in (
            (self.grouped, other.grouped), (self.decimals, other.decimals), (self.time_formats, other.time_formats),
        ):  # fmt: skip
            known |= {name: found[name] for name in names if name in found}
        self.durations |= other.durations.intersection(names)
        self.__dict__.pop("_integers", None)

    def append_keys(self) -> None:
        """Append the keys that were first named by the objects converted last, with the kinds of their first values."""
        assert self._json is not None
        if first := self._json.pop_new():
            text = json.dumps(first, default=str).encode() + b"\n"
            options = {**self.options, "encoding": "utf-8", "header": True}
            other = CSVTable(BytesSource(self.source.name, text), **options)
            other.text = set(self.matching(first))
            other.check_mixed()
            self.append(list(first), other)

    def absent_rows(self, n_rows: int, names: Sequence[str]) -> dict[str, Mask]:
        """Return which of the rows parsed last lack a column, of a file with these columns or of JSON objects."""
        if self._json is None:
            return super().absent_rows(n_rows, names)
        masks = {name: np.zeros(n_rows, dtype=bool) for name in self._json.absent}
        for name, rows in self._json.absent.items():
            masks[name][rows] = True
        return masks

    def _add_names(self, names: list[str]) -> None:
        self.all_names, self.read_names = [*self.all_names, *names], [*self.read_names, *names]

    def forget_appended(self) -> None:
        """Drop the appended columns, to read the rows again from the first one."""
        if (n := self.n_first) is not None:
            self.all_names = self.all_names[: len(self.all_names) - (len(self.read_names) - n)]
            self.read_names = self.read_names[:n]
            self.__dict__.pop("_integers", None)
        super().forget_appended()

    # -- dialect -------------------------------------------------------------------------------------------

    def _find_dialect(self, head: bytes) -> None:
        """Detect encoding and delimiter; the decimal mark is detected later, from the values."""
        self.encoding = self.options.get("encoding") or dialect.detect_encoding(head, self._is_whole)
        try:
            text = head[: 1 << 16].decode(self.encoding, errors="ignore")
        except LookupError:
            raise ValueError(
                f"encoding {self.encoding!r} is not known: choose utf-8, utf-16 or latin-1."
            ) from None
        if "\0" in text:
            raise StreamError(
                f"{self.source.name!r} contains bytes that are not text: check that it is a CSV file (for UTF-16, set"
                " encoding='utf-16')."
            )
        self.newline = b"\r" if "\r" in text and "\n" not in text else b"\n"
        self.decimal = self.options.get("decimal") or "."
        if is_json(text):
            self.format, self.delimiter, self._header, self.newline = "json", ",", True, b"\n"
            return
        if self.options.get("layout") == "json":
            raise StreamError(
                f"{self.source.name!r} contains no JSON objects: write one object with named values per line, such as"
                ' {"heat": 1.5, "state": "on"}.'
            )
        self.above, said = dialect.split_preamble(text)
        tab = ".tsv" in Path(self.source.name).suffixes
        self.delimiter = (
            self.options.get("delimiter")
            or said
            or dialect.detect_delimiter(text[len(self.above) :], len(head) <= 1 << 16, "\t" if tab else ",")
        )
        if self.delimiter == dialect.ALIGNED:
            lines = text[len(self.above) :].splitlines()[: None if len(head) <= 1 << 16 else -1]
            self._aligned = [[column.start, column.stop] for column in dialect.aligned_columns(lines)]

    @property
    def separator(self) -> str:
        """The delimiter of the rows as CSV."""
        return "," if self.delimiter in (" ", dialect.ALIGNED) else self.delimiter

    def _read_first(self, head: bytes) -> None:
        """Read the first block, twice if it has decimal commas or unusual date formats."""
        texts = self._texts(head)
        marks = {name: dialect.NumberFormat(values) for name, values in texts.items()}
        if self.options.get("decimal") is None:
            n_points = sum(map(pa.types.is_floating, self._types))
            self.decimal = dialect.detect_decimal(marks.values(), n_points, self.delimiter)
        known = self.options.get("time_format")
        formats = {name: dialect.detect_time_format(values, known) for name, values in texts.items()}
        for name, form in formats.items():
            if form == "":  # the first values may cover only a few days
                formats[name] = dialect.detect_time_format(self._one_of_each_day(name), known)
                if not formats[name] and isinstance(self.later, CSVTable):
                    formats[name] = self.later.time_formats.get(name, "")
        self.time_formats = {name: form for name, form in formats.items() if form is not None}
        if self.decimal != "." or any(self.time_formats.values()):
            texts = self._texts(head)
            marks = {name: dialect.NumberFormat(values) for name, values in texts.items()}
        self.durations = {name for name, values in texts.items() if _are_durations(values)}
        self.grouped = {name: marks[name].sign for name in texts if marks[name].grouped[self.decimal]}
        if self.options.get("decimal") is None:
            other = "." if self.decimal == "," else ","
            foreign = {name for name in texts if marks[name].grouped[other]} - set(self.grouped)
            self.decimals = dict.fromkeys(foreign, other)
            self.grouped |= {name: marks[name].sign for name in texts if name in foreign}
        self.grouped |= {name: marks[name].sign for name in texts if self._is_numeric(name)}
        # The sample may lack a word that occurs late.
        self.grouped = {
            name: sign
            for name, sign in self.grouped.items()
            if self._plain(self._first_of(name), name)[1] is None
        }
        self.durations = {name for name in self.durations if _durations(self._first_of(name))[1] is None}

    def read_on(self, later: CSVTable) -> None:
        """Decide by more rows what the first ones leave open: the format of dates, and which texts are categories."""
        self.later = later
        if "" in self.time_formats.values():
            self._read_first(self._block)

    def _is_numeric(self, name: str) -> bool:
        return any(name == pattern or fnmatchcase(name, pattern) for pattern in self._numeric)

    def _first_of(self, name: str) -> Any:
        """Return a column of the first block."""
        return self._first.columns[self.names().index(name)]

    def _one_of_each_day(self, name: str) -> list[str]:
        """Return one value of a column for each distinct start of its dates (day and month, or month and day)."""
        values = _distinct(self._first_of(name), None)
        return list({value[:5]: value for value in values}.values())

    def _texts(self, head: bytes) -> dict[str, list[str]]:
        """Read the first block, and return some distinct values of each text column."""
        if not self.all_names:
            self._set_names(self._names_above(head))
            self.all_names = self.read_names = self._names
        table = self._parse(head)
        if b"0x" in head or b"0X" in head:  # Arrow would read some of these texts as integers
            integers = [one.name for one in table.schema if pa.types.is_integer(one.type)]
            written = self._parse(head, dict.fromkeys(integers, pa.string()), only=integers)
            for name in integers:
                if pc.any(pc.match_substring_regex(written[name], _HEX)).as_py():
                    table = table.set_column(self.read_names.index(name), name, written[name])
        # Spreadsheets end with columns that are empty and have no name.
        nameless = ("",) if self._header else self.read_names[-1:]
        used = [
            j for j, name in enumerate(self.read_names)
            if self.renamed.get(name, name) not in nameless or table[j].null_count < len(table)
        ]  # fmt: skip
        if len(table) and used:
            table = table.select(used)
        self.read_names, self._types = list(table.schema.names), list(table.schema.types)
        self._first = next(iter(table.combine_chunks().to_batches()), None) if self.read_names else None
        if self._first is not None:
            self._first = pa.RecordBatch.from_arrays(self._trim(self._first.columns), self.read_names)
        return {
            name: _distinct(column)
            for name, kind, column in zip(self.names(), self._types, self._first or (), strict=False)
            if pa.types.is_string(kind)
        }

    def _names_above(self, block: bytes) -> list[str]:
        """Return the names of the columns, as many as the rows below the header have values."""
        most = self.options.get("max_quoted_lines") or MAX_LINES
        ends, _ = row_ends(block, self.separator, most, whole=True)
        names = self.names_in(block[: ends[0]] if ends else block)
        rows = [block[i:j].decode(errors="replace") for i, j in pairwise(ends[:100])]
        return dialect.pad_header(names, dialect.split_rows(rows, self.separator)) if self._header else names

    def _check_names(self) -> None:
        names, columns = self.read_names, zip(self.read_names, self._first or (), strict=False)
        same = [pc.fill_null(pc.equal(one, name), False) for name, one in columns if one.type == "string"]
        # In files joined with their headers, all columns are texts.
        n_headers = functools.reduce(pc.and_, same).true_count if len(same) == len(names) else 0
        repeated = [one for one in same if one.true_count > n_headers]
        if dialect.names_are_values(names, self.decimal) or (
            len(repeated) > 1 and 2 * len(repeated) >= len(same)
        ):
            raise StreamError(
                f"{self.source.name!r} begins with a line of {'values' if repeated else 'numbers'}"
                f" ({', '.join(names[:4])} ...) where column names are expected: choose header=False."
            )

    # -- contents ------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self.read_names

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column in the first block."""
        kinds = dict(zip(self.names(), self._types, strict=True))
        durations = dict.fromkeys(self.durations, pa.duration("us"))
        return kinds | dict.fromkeys(self.grouped, pa.float64()) | durations

    def times(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of times and the parts that each of them provides; dates have no hour."""
        days = {name for name, form in self.time_formats.items() if not re.search("%[HI]", form)}
        return {name: parts[:2] if name in days else parts for name, parts in super().times().items()}

    def head(self) -> Head | None:
        """Return the first rows, numbers as numbers."""
        if self._first is None:
            return None
        columns = self._parse_texts(self._unquote(self._first.columns), 1)
        self.begin()
        if self.labels and self.label in self.names():
            columns[self.names().index(self.label)] = self._parse_labels(self._first_labels(), 1)
        return Head(columns, self._first.num_rows, self._is_whole)

    def _parse(
        self,
        block: bytes,
        types: dict[str, Any] | None = None,
        names: list[str] | None = None,
        only: list[str] | None = None,
    ) -> Any:
        """Return a block, or `only` some columns; without `names`, it begins with the header, if there is one."""
        parsers = [form for form in dict.fromkeys(self.time_formats.values()) if form]
        return csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(
                block_size=len(block) + 1,
                use_threads=False,
                column_names=names or list(self.all_names),
                skip_rows_after_names=int(names is None and self._header),
            ),
            parse_options=csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                include_columns=only or self.read_names,
                include_missing_columns=True,
                column_types=types,
                strings_can_be_null=True,
                null_values=self._na,
                decimal_point=self.decimal,
                timestamp_parsers=[csv.ISO8601, *parsers],
            ),
        )

    # -- blocks of complete rows ---------------------------------------------------------------------------

    def converter(self, row: int | None = None) -> Callable[[bytes, bool], bytes]:
        """Return the incremental conversion of the bytes of the file, or of those after `row` rows, to CSV in UTF-8."""
        above = "" if row is not None else self.above
        convert: Callable[[str, bool], str] = lambda text, last: text  # noqa: E731
        if self.format == "json":
            had_warned = bool(row and self._json is not None and self._json.has_warned)
            room = self.room if self.gains_columns else None
            self._json = convert = JSONRows(self.source.name, self.all_names, row, room=room)
            self._json.has_warned = had_warned
        elif self.delimiter in (" ", dialect.ALIGNED):
            convert = AlignedRows(self.source.name, [slice(*pair) for pair in self._aligned])
        elif codecs.lookup(self.encoding).name == "utf-8" and not above:
            return lambda piece, last: piece
        decoder = codecs.getincrementaldecoder(self.encoding)()
        left = len(above)

        def converted(piece: bytes, last: bool) -> bytes:
            nonlocal left
            text = decoder.decode(piece, last)
            passed = min(left, len(text))
            left -= passed
            return convert(text[passed:], last).encode(errors="replace")

        return converted

    def _rows(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield an opened file in blocks of complete rows, as UTF-8."""
        # From standard input, read what is available: the next rows may arrive much later.
        read = cast("BufferedReader", file).read1 if self.source.is_stdin else file.read
        as_csv, held, tried, lines = self.converter(), bytearray(), 0, 0
        while data := read(_BLOCK_BYTES):
            held += as_csv(data, False)
            if len(held) < 2 * tried:
                continue
            if end := self._end_of_rows(held, lines):
                block = bytes(held[:end])
                lines += block.count(self.newline)
                yield block
                del held[:end]
                tried = 0
            else:
                self._check_row_length(held)
                tried = len(held)
        held += as_csv(b"", True)
        if held and not held.isspace():
            self._end_of_rows(held, lines, whole=True)
            yield bytes(held)

    def _end_of_rows(self, block: bytes | bytearray, before: int, *, whole: bool = False) -> int:
        """Return the end of the last complete row of a block, 0 if there is none.

        Parameters
        ----------
        block : bytes
        before : int
            Number of preceding lines.
        whole : bool, default=False
            Whether the file ends with the block.

        Raises
        ------
        StreamError
            If a quote is not closed.
        """
        end = block.rfind(self.newline) + 1
        if b'"' in block:
            data, max_lines = bytes(block), self.options.get("max_quoted_lines") or MAX_LINES
            starts, ends = spans = quoted_spans(data, self.separator)
            if unclosed := first_unclosed(data, spans, self.separator, max_lines, self.newline, whole=whole):
                line = before + self.above.count("\n") + 1 + data.count(self.newline, 0, unclosed.at)
                raise StreamError(unclosed.message(self.source.name, f"line {line}", max_lines))
            while end and (i := int(np.searchsorted(starts, end)) - 1) >= 0 and end <= ends[i]:
                end = block.rfind(self.newline, 0, int(starts[i])) + 1
        return end

    def _check_row_length(self, held: bytes | bytearray) -> None:
        if len(held) > LONGEST_LINE:
            raise StreamError(
                f"{self.source.name!r} has a row of more than {LONGEST_LINE >> 20} MB: look"
                " for a quote that is not closed."
            )

    def _column_types(self) -> dict[str, Any]:
        """Return the column types: integers are read as float64 and labels as text, since decimals may appear late."""
        types = dict(zip(self.read_names, self._types, strict=True))
        for name, kind in types.items():
            if name in self.text or (name == self.label and self.labels):
                types[name] = pa.string()
            elif pa.types.is_integer(kind) or pa.types.is_null(kind):
                types[name] = pa.float64()
            elif pa.types.is_timestamp(kind) and kind.unit == "s":  # fractions of seconds may appear late
                types[name] = pa.timestamp("us", kind.tz)
        return types

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of each block of rows, and its number of rows."""
        self.check_mixed()
        row, known = 0, None if self._header else list(self.all_names)
        self.begin()
        with self.source.open() as file:
            try:
                for block in self._rows(file):
                    if self._json is not None:
                        self.append_keys()
                        known = known and list(self.all_names)
                    for columns, n_rows in self.parts(block, known, row):
                        row += n_rows
                        yield columns, n_rows
                    known = list(self.all_names)
            except Exception as error:  # a row of JSON has no line of names above it
                self.fail(error, (row + self._header if known else 0) - (self.format == "json"))

    def check_mixed(self) -> None:
        """Raise if a column mixes numbers and other values, or day and month of its dates are ambiguous."""
        for one in self.mixed_columns():
            raise StreamError(one.message(self.source.name))
        for name in [name for name, form in self.time_formats.items() if form == ""]:
            if name in self.text | {self.label} or self._first is None:
                continue
            values = _distinct(self._first_of(name))
            first, second, *_ = dialect.fitting_time_formats(values, self.options.get("time_format"))
            raise StreamError(
                f"{self.source.name!r} contains dates such as {short_repr(values[0])} in column {short_repr(name)},"
                f" whose day and month are ambiguous: choose time_format={first!r} or {second!r}, or"
                f" categorical=[{name!r}]."
            )

    def begin(self) -> None:
        """Reset to the first row: the first block determines what labels are; integers only until one is not."""
        self.labels, self.whole_labels = self._detect_labels()

    def header(self, row: bytes) -> list[str]:
        """Return the names of the columns of another file, from its first row."""
        names, known = self.names_in(self.converter(0)(row, True)), self.all_names
        if len(names) + 1 == len(known) and "" in (known[0], known[-1]):
            names = [*names, ""] if known[0] else ["", *names]
        return names

    def names_in(self, row: bytes) -> list[str]:
        """Return the names in a header row; x0, x1, ... if rows have no header."""
        read = csv.read_csv(
            pa.BufferReader(row),
            csv.ReadOptions(block_size=len(row) + 1, autogenerate_column_names=not self._header),
            csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
        ).column_names  # fmt: skip
        if not self._header:
            return [f"x{i}" for i in range(len(read))]
        names = read if self.format == "json" else [name.strip(dialect.BLANKS) for name in read]
        self._is_padded = names != read
        return names

    def parts(self, block: bytes, known: list[str] | None, row: int) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of complete rows, as UTF-8.

        Parameters
        ----------
        block : bytes
        known : list of str or None
            Names of its columns, in order; None: the block begins with them.
        row : int
            Number of preceding rows.
        """
        if (at := block.find(b"\0")) >= 0:
            line = (row + self._header if known else 0) + 1 + block.count(self.newline, 0, at)
            raise StreamError(
                f"{self.source.name!r} has a NUL byte in line {line}, which is not text: delete the"
                " line, or copy the file again."
            )
        if block.startswith(codecs.BOM_UTF8) and (row or (known and self._header)):
            # Within a file it is part of the value, even at the start of a block.
            block = codecs.BOM_UTF8 + block
        label = self.read_names.index(self.label) if self.labels else 0
        for part in self._parse(block, self._column_types(), known).to_batches():
            columns = self._unquote(self._trim(part.columns))
            self._warn_of_rounding(columns, block, known)
            columns = self._parse_texts(columns, row + 1)
            columns[label] = self._parse_labels(columns[label], row + 1)
            row += part.num_rows
            yield columns, part.num_rows

    @functools.cached_property
    def _integers(self) -> list[int]:
        """Positions of the columns that began as integers, except those already warned about."""
        texts = self.text | {self.label}
        kinds = zip(self.names(), self._types, strict=True)
        return [j for j, (name, kind) in enumerate(kinds) if pa.types.is_integer(kind) and name not in texts]

    def _warn_of_rounding(self, columns: list[Any], block: bytes, known: list[str] | None) -> None:
        """Warn once for each integer column that float64 rounds; only such columns are parsed a second time."""
        for j in list(self._integers):
            if columns[j].type != pa.float64():
                continue
            limits = pc.min_max(columns[j]).as_py()
            if max(-(limits["min"] or 0), limits["max"] or 0) < 1 << 53:
                continue
            name = self.read_names[j]
            try:
                exact = self._parse(block, {**self._column_types(), name: pa.int64()}, known)[name]
            except pa.ArrowInvalid:  # not integers, or more than 64 bits
                continue
            if warn_of_rounding(exact.drop_null().to_numpy(), lambda _, name=name: name):  # type: ignore[misc]
                self._integers.remove(j)

    def _trim(self, columns: list[Any]) -> list[Any]:
        """Return columns without the blanks around texts, if there are blanks around the names."""
        if not self._is_padded:
            return columns
        return [pc.utf8_trim(one, dialect.BLANKS) if one.type == "string" else one for one in columns]

    def _unquote(self, columns: list[Any]) -> list[Any]:
        """Return columns without the apostrophes by which tables of Tamis prevent evaluation in spreadsheets."""
        if tuple(self.read_names[:2]) != dialect.RANKING:
            return columns
        how = f"^'({dialect.FORMULA})", r"\1"
        return [pc.replace_substring_regex(one, *how) if one.type == "string" else one for one in columns]

    def _plain(self, column: Any, name: str) -> tuple[Any, int | None]:
        """Return numbers as text that Arrow converts, and the position of the first value that is none."""
        sign, decimal = self.grouped.get(name, ""), self.decimals.get(name, self.decimal)
        mark, group = re.escape(decimal), dialect.GROUPS[decimal]
        is_grouped = name in self.grouped
        digits = rf"(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|[0-9]+)" if is_grouped else "[0-9]+"
        plain = pc.utf8_trim(column, dialect.BLANKS)
        if is_grouped:
            plain = pc.replace_substring_regex(plain, r"^\((.*)\)$|^(.*[0-9])-$", r"-\1\2")
            plain = pc.replace_substring(plain, "\u2212", "-")
        if sign:
            blanks, escaped = f"[{dialect.BLANKS}]*", re.escape(sign)
            for at in (rf"^{blanks}([+-]?){blanks}{escaped}{blanks}", rf"()(?:{blanks}{escaped}{blanks})$"):
                plain = pc.replace_substring_regex(plain, at, r"\1", max_replacements=1)
        is_plain = pc.match_substring_regex(plain, _NUMBER.format(digits=digits, mark=mark))
        if self._is_numeric(name):
            plain = pc.if_else(is_plain, plain, None)
        elif is_plain.true_count < len(plain) - plain.null_count:
            return plain, pc.index(is_plain, False).as_py()
        plain = pc.replace_substring_regex(plain, rf"^\+|{group}" if is_grouped else r"^\+", "")
        return pc.replace_substring(plain, ",", "."), None

    def _parse_texts(self, columns: list[Any], row: int) -> list[Any]:
        """Return columns, which begin with row `row`, with the numbers and durations of text columns."""
        apart = self.text | {self.label}
        for j, name in enumerate(self.read_names):
            if name in apart or not {name} & (self.durations | self.grouped.keys()):
                continue
            values, at = _durations(columns[j]) if name in self.durations else self._plain(columns[j], name)
            if at is not None:
                kind = "durations" if name in self.durations else "numbers"
                self._raise_unlike(columns[j], at, name, row, kind)
            columns[j] = values if name in self.durations else values.cast("double")
        return columns

    def _raise_unlike(self, column: Any, at: int, name: str, row: int, kind: str) -> NoReturn:
        sign, value = self.grouped.get(name, ""), column[at].as_py()
        raise StreamError(
            f"{self.source.name!r} contains {short_repr(dialect.strip_sign(value, sign) if sign else value)} in row"
            f" {row + at} of column"
            f" {short_repr(name)}, which began as {kind}: fix it, or choose categorical=[{short_repr(name)}]."
        )

    # -- labels --------------------------------------------------------------------------------------------

    def _first_labels(self) -> Any:
        """Return the labels of the first block as text."""
        if self._first is None:
            return pa.array([], pa.string())
        column = self._parse(self._block, {self.label: pa.string()}, only=[self.label]).column(0)
        return self._unquote(self._trim([column.combine_chunks()]))[0]

    def _detect_labels(self) -> tuple[str, bool]:
        """Return how labels are read, an attribute of :class:`Table`, and whether all are whole numbers."""
        kind = self.types().get(self.label, pa.string())
        if not self.label:
            return "", False
        if self.label in self.text or not (_is_number(kind) or pa.types.is_boolean(kind)):
            return "text", False
        texts = self._first_labels().unique()
        if pa.types.is_boolean(kind):
            return "flags" if set(texts.drop_null().to_pylist()) <= set(_FLAGS) else "text", False
        plain, at = self._plain(texts, self.label)
        if at is not None:
            return "text", False
        numbers = plain.cast(pa.float64())
        whole = bool(pc.all(pc.equal(numbers, pc.floor(numbers))).as_py())
        if whole and pc.any(pc.match_substring_regex(plain, _UNLIKE_NUMBER)).as_py():
            return "text", False
        has_digits_only = pc.all(pc.match_substring_regex(plain, "^-?[0-9]+$")).as_py()
        return "integers" if has_digits_only else "numbers", whole

    def _parse_labels(self, column: Any, row: int) -> Any:
        """Return labels in their kind: integers of up to 19 digits exactly, other numbers as float64."""
        if self.labels in ("", "text"):
            return column
        if self.labels == "flags":
            is_flag = pc.match_substring_regex(column, f"^(?:{'|'.join(_FLAGS)})$")
            if is_flag.true_count < len(column) - column.null_count:
                at = pc.index(is_flag, False).as_py()
                self._raise_unlike(column, at, self.label, row, "false and true")
            return pc.equal(pc.utf8_lower(column), "true")
        plain, found = self._plain(column, self.label)
        if found is not None:
            self._raise_unlike(column, found, self.label, row, "numbers")
        is_unlike = pc.match_substring_regex(plain, _UNLIKE_NUMBER)
        if self.whole_labels and is_unlike.true_count:
            kind, at = "integers of up to 19 digits without leading zeros", pc.index(is_unlike, True).as_py()
            self._raise_unlike(column, at, self.label, row, kind)
        whole = _whole_numbers(plain) if self.whole_labels else None
        self.whole_labels = whole is not None
        numbers = plain.cast(pa.float64())
        is_large = (pc.max(pc.abs(numbers)).as_py() or 0.0) >= 1 << 53
        if whole is None and is_large:
            whole = _whole_numbers(plain)
        return whole if whole is not None and (is_large or self.labels == "integers") else numbers

    def mixed_columns(self) -> list[MixedColumn]:
        """Return the text columns whose values are mostly numbers or times, which must not be read as categories."""
        columns = []
        for name, kind, column in zip(self.names(), self._types, self._first or (), strict=False):
            if {name} & (self.text | self.durations | {self.label, *self.grouped}) or not pa.types.is_string(
                kind
            ):
                continue
            values = _distinct(column, None)
            sign = dialect.NumberFormat(values).sign
            plain = {value: dialect.strip_sign(value, sign) if sign else value for value in values}
            words = [value for value in values if not dialect.is_number(plain[value], self.decimal)]
            other = "." if self.decimal == "," else ","
            foreign = [value for value in words if dialect.is_number(plain[value], other)]
            decimal = time = ""
            if 2 * len(foreign) >= len(values) > 0:
                words, decimal = foreign, other
            elif 2 * len(words) >= len(values):
                is_date = self.time_formats.get(name) == ""
                known = self.options.get("time_format")
                words, time = ([], "") if is_date else dialect.odd_times(values, known)
            if words:
                row = column.to_pylist().index(words[0]) + 1
                columns.append(MixedColumn(name, tuple(words), row, decimal, time, len(values) - len(words)))
        return columns

    def fail(self, error: Exception, before: int = 0) -> None:
        """Raise the error of a block that begins after `before` lines, with the position in the file."""
        before += self.above.count("\n")
        text = re.sub(r"Row #(\d+)", lambda row: f"Row #{int(row[1]) + before}", " ".join(str(error).split()))
        match = re.search(
            r"CSV column #(\d+): (?:Row #(\d+): )?.*conversion error to ([^:]+): [\w ]+ '(.*?)'", text
        )
        if match is None or not hasattr(self, "read_names"):
            self.source.fail(error, text)
        column, line, kind, value = match.groups()
        name = self.names()[int(column)]
        kind = "times" if kind.startswith(("timestamp", "date", "time")) else kind
        kind = {"double": "numbers", "bool": "false and true"}.get(kind, kind)
        place = f"line {line} of " if line else ""
        raise StreamError(
            f"{self.source.name!r} contains {short_repr(value)} in {place}column {short_repr(name)}, which"
            f" began as {kind}: fix it, or choose categorical=[{short_repr(name)}]."
        ) from error


@dataclass(frozen=True)
class MixedColumn:
    """A column that contains both numbers, or times, and other values.

    Attributes
    ----------
    name : str
    words : tuple of str
        Values that are not numbers, or not times in the format of most values.
    row : int
        Row of the first such value, counted from 1.
    decimal : str
        Decimal mark with which they are numbers, or "".
    time : str
        A time in the format of most values; "" if these are numbers.
    n_numbers : int
        Number of distinct other values.
    """

    name: str
    words: tuple[str, ...]
    row: int
    decimal: str
    time: str = ""
    n_numbers: int = 0

    def message(self, path: str) -> str:
        """Return the error message, with the fix."""
        where = f"{path!r} contains {short_repr(self.words[0])} in row {self.row} of column {short_repr(self.name)}"
        why = ", where most values are numbers: fix it"
        if self.decimal:
            other = "a point" if self.decimal == "," else "a comma"
            why = f", but the other columns have {other} as decimal mark: fix it"
        elif self.time:
            why = (
                f", where most values are times such as {self.time!r}: write it in that form (hours 00 to 23, seconds"
                " 00 to 59)"
            )
        return f"{where}{why}, or choose categorical=[{self.name!r}]."


def _is_number(kind: Any) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind))


def _are_durations(values: list[str]) -> bool:
    """Return whether texts are durations such as 0:16:00, or times of day whose hours have one digit."""
    if not values or not all(re.match(dialect.DURATION, value) for value in values):
        return False
    is_signed = any(re.match(r"[+-]|\d:|\d+ day|.*[Mm]$", value) for value in values)
    return is_signed or not dialect.odd_times(values)[0]


def _durations(column: Any) -> tuple[Any, int | None]:
    """Return durations of a text column, and the position of the first value that is none."""
    parts = pc.extract_regex(column, dialect.DURATION)
    if parts.null_count > column.null_count:
        return column, pc.index(pc.and_(parts.is_null(), column.is_valid()), True).as_py()
    total = None
    for name, seconds in (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        part = parts.field(name)
        part = pc.multiply(pc.if_else(pc.equal(part, ""), "0", part).cast("double"), float(seconds) * 1e6)
        total = part if total is None else pc.add(total, part)
    total = pc.if_else(pc.equal(parts.field("sign"), "-"), pc.negate(total), total)
    half, noon = pc.utf8_lower(parts.field("half")), 12 * 3600e6  # 12:30 AM is half an hour after midnight
    total = pc.if_else(
        pc.and_(pc.not_equal(half, ""), pc.greater_equal(total, noon)), pc.subtract(total, noon), total
    )
    total = pc.if_else(pc.equal(half, "p"), pc.add(total, noon), total)
    return pc.round(pc.if_else(column.is_valid(), total, None)).cast("int64").cast(pa.duration("us")), None


def _whole_numbers(plain: Any) -> Any:
    """Return numbers as int64, or as decimals if they are larger; None if one is not whole."""
    for kind in (pa.int64(), pa.decimal128(38)):
        with contextlib.suppress(pa.ArrowInvalid):
            return plain.cast(kind)
    return None


def _distinct(column: Any, max_texts: int | None = _MAX_DISTINCT) -> list[str]:
    """Return distinct values of a text column."""
    return [value for value in column.unique()[:max_texts].to_pylist() if value is not None]
