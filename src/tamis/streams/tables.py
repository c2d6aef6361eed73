"""Files with named columns, read by pyarrow in blocks: CSV, Parquet and Arrow."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.errors import StreamError
from tamis.streams.dialect import (
    FORMULA,
    RANKING,
    Marks,
    decimal_of,
    delimiter_of,
    encoding_of,
    is_number,
    time_format_of,
)
from tamis.streams.encode import time_parts
from tamis.streams.source import Source

__all__ = ["ArrowTable", "CSVTable", "Head", "Mixed", "ParquetTable", "Table"]

_BLOCK_BYTES = 1 << 20
_BLOCK_CELLS = 1 << 19  # 4 MB as float64
_MISSING = ("?", " ?", "None")  # beside the empty text, NA, NaN, null and their like
_HEAD_ROWS = 10_000
_DIFFERENT = 1000  # values of a column that are looked at to see how it is written


@dataclass(frozen=True)
class Head:
    """The first rows of a table.

    Attributes
    ----------
    columns : list of pyarrow.Array
    n_rows : int
    whole : bool
        Whether they are all rows.
    """

    columns: list[Any]
    n_rows: int
    whole: bool


class Table:
    """What the formats with columns have in common: names, and blocks of Arrow columns.

    Attributes
    ----------
    label : str
        Name of the label column, set before the first block is read.
    text : set of str
        Columns that are read as text whatever they look like, set before the first block is read.
    """

    format = ""

    def __init__(self, source: Source, **options: Any) -> None:
        self.source = source
        self.options = {name: value for name, value in options.items() if value is not None}
        self.text: set[str] = set()
        self.label = ""
        self.n_rows: int | None = None

    def names(self) -> list[str]:
        """Return the names of all columns."""
        raise NotImplementedError

    def categories(self, name: str) -> list[str] | None:
        """Return the values that the file declares for a column, if it does."""
        return None

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column, as far as it is known before reading."""
        return {}

    def times(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of times, and which parts of a time each of them tells."""
        return {name: parts for name, kind in self.types().items() if (parts := time_parts(kind))}

    def head(self) -> Head | None:
        """Return the first rows, or None where they could not be read again after."""
        if self.source.is_stdin:
            return None
        blocks, n_rows, whole = [], 0, False
        for columns, n in self.blocks():
            blocks.append(columns)
            n_rows += n
            if n_rows >= _HEAD_ROWS:
                break
        else:
            whole = True
        self.source.finished = False
        if not blocks:
            return None
        import pyarrow as pa

        columns = [pa.chunked_array(parts).combine_chunks() for parts in zip(*blocks, strict=True)]
        return Head(columns, n_rows, whole)

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        raise NotImplementedError

    def _block_rows(self) -> int:
        return max(16, min(8192, _BLOCK_CELLS // max(1, len(self.names()))))


def pyarrow_module(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError("Reading tables needs pyarrow: pip install 'tamis[cli]'.") from None


class CSVTable(Table):
    """Separated text, as :mod:`tamis.streams.dialect` finds it written; types are inferred from the first block.

    Numbers are read as float64. What the options do not say is judged by the first block: separator, decimal mark (the
    other one may set thousands apart), encoding, and how dates are put.
    """

    format = "csv"

    def __init__(self, source: Source, **options: Any) -> None:
        super().__init__(source, **options)
        self._csv = pyarrow_module("pyarrow.csv")
        self._header = bool(options["header"])
        self._na = [*self._csv.ConvertOptions().null_values, *_MISSING, *(options.get("na") or ())]
        self.grouped: set[str] = set()  # columns whose thousands are set apart
        self.time_formats: dict[
            str, str
        ] = {}  # of the columns that hold dates; "" if day and month may be either
        self._first: Any = None
        self._block_bytes, head = self._probe()
        self._find_dialect(head)
        try:
            self._read_first(head)
        except Exception as error:
            self._fail(error)
        if self._header:
            self._refuse_numbers_for_names()

    def _probe(self) -> tuple[int, bytes]:
        """Return a block size that holds a few lines, and the first two blocks."""
        size = _BLOCK_BYTES
        while True:
            head = self.source.peek(2 * size)
            longest = max(map(len, head.split(b"\n")))
            if 2 * longest <= size or len(head) < 2 * size:
                self._is_whole = len(head) <= size
                return max(size, 2 * longest), head
            size *= 2

    # -- how it is written ---------------------------------------------------------------------------------

    def _find_dialect(self, head: bytes) -> None:
        """Find encoding and separator; the decimal mark takes a look at the values."""
        self.encoding = self.options.get("encoding") or encoding_of(head, self._is_whole)
        try:
            text = head[: 1 << 16].decode(self.encoding, errors="ignore")
        except LookupError:
            raise ValueError(
                f"encoding {self.encoding!r} is not known: choose utf-8, utf-16 or latin-1."
            ) from None
        if "\0" in text:
            raise StreamError(
                f"{self.source.name!r} holds bytes that are no text: check that it is a CSV file (utf-16 is said with"
                " encoding='utf-16')."
            )
        tab = ".tsv" in Path(self.source.name).suffixes
        self.delimiter = self.options.get("delimiter") or delimiter_of(
            text, len(head) <= 1 << 16, "\t" if tab else ","
        )
        self.decimal = self.options.get("decimal") or "."

    def _read_first(self, head: bytes) -> None:
        """Read the first block, once more if it turns out to be written with decimal commas or unusual dates."""
        import pyarrow as pa

        texts = self._texts(head)
        marks = {name: Marks(values) for name, values in texts.items()}
        if self.options.get("decimal") is None:
            n_points = sum(map(pa.types.is_floating, self._types))
            self.decimal = decimal_of(marks.values(), n_points, self.delimiter)
        known = self.options.get("time_format")
        formats = {name: time_format_of(values, known) for name, values in texts.items()}
        self.time_formats = {name: form for name, form in formats.items() if form is not None}
        if self.decimal != "." or any(self.time_formats.values()):
            texts = self._texts(head)
            marks = {name: Marks(values) for name, values in texts.items()}
        self.grouped = {name for name in texts if marks[name].grouped[self.decimal]}

    def _texts(self, head: bytes) -> dict[str, list[str]]:
        """Read the first block, and return some different values of each column of text."""
        import pyarrow as pa

        with self._reader(io.BytesIO(head), None) as reader:
            self._read_names, self._types = list(reader.schema.names), list(reader.schema.types)
            try:
                self._first = reader.read_next_batch() if reader.schema.names else None
            except StopIteration:
                self._first = None
        return {
            name: _different(column)
            for name, kind, column in zip(self.names(), self._types, self._first or (), strict=False)
            if pa.types.is_string(kind)
        }

    def _refuse_numbers_for_names(self) -> None:
        names = self._read_names
        labels = all(name.isdigit() for name in names) and len(set(names)) == len(names)
        if all(is_number(name, self.decimal) for name in names) and not labels:
            raise StreamError(
                f"{self.source.name!r} begins with a line of numbers ({', '.join(names[:4])} ...) where the columns'"
                " names should be: choose header=False."
            )

    # -- what is in it -------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._read_names if self._header else [f"x{i}" for i in range(len(self._read_names))]

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column, as the first block has it."""
        import pyarrow as pa

        kinds = dict(zip(self.names(), self._types, strict=True))
        return kinds | dict.fromkeys(self.grouped, pa.float64())

    def times(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of times, and what of a time each of them tells; dates alone have no hour."""
        days = {name for name, form in self.time_formats.items() if "%H" not in form}
        return {name: parts[:2] if name in days else parts for name, parts in super().times().items()}

    def head(self) -> Head | None:
        """Return the first rows, numbers as numbers."""
        if self._first is None:
            return None
        columns = [
            _ungrouped(column, self.decimal) if name in self.grouped else column
            for name, column in zip(self.names(), self._unquoted(self._first.columns), strict=True)
        ]
        return Head(columns, self._first.num_rows, self._is_whole)

    def _reader(self, file: Any, types: dict[str, Any] | None) -> Any:
        csv = self._csv
        parsers = [form for form in dict.fromkeys(self.time_formats.values()) if form]
        return csv.open_csv(
            file,
            read_options=csv.ReadOptions(
                block_size=self._block_bytes,
                use_threads=False,
                autogenerate_column_names=not self._header,
                encoding=self.encoding,
            ),
            parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                strings_can_be_null=True,
                null_values=self._na,
                decimal_point=self.decimal,
                timestamp_parsers=[csv.ISO8601, *parsers],
            ),
        )

    def _column_types(self) -> dict[str, Any]:
        """Whole numbers are read as float64, so that a first decimal late in the file is no surprise."""
        import pyarrow as pa

        types = {}
        for name, shown, kind in zip(self._read_names, self.names(), self._types, strict=True):
            if shown in self.text or (shown == self.label and pa.types.is_null(kind)):
                types[name] = pa.string()
            elif pa.types.is_integer(kind) or pa.types.is_null(kind):
                types[name] = pa.float64()
        return types

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        import pyarrow as pa

        for one in self.mixed():
            raise StreamError(one.told(self.source.name))
        names = self.names()
        label = names.index(self.label)
        whole = pa.types.is_integer(self._types[label]) and self.label not in self.text
        grouped = [j for j, name in enumerate(names) if name in self.grouped - self.text]
        row = 1
        with self.source.opened() as file:
            try:
                with closing(self._reader(file, self._column_types())) as reader:
                    for block in reader:
                        columns = self._unquoted(block.columns)
                        for j in grouped:
                            columns[j] = self._number(columns[j], names[j], row)
                        if whole:  # labels that are whole numbers so far
                            whole, columns[label] = _as_whole(columns[label])
                        row += block.num_rows
                        if block.num_rows:
                            yield columns, block.num_rows
            except Exception as error:
                self._fail(error)

    def _unquoted(self, columns: list[Any]) -> list[Any]:
        """Return columns without the apostrophes that keep spreadsheets from computing texts of our tables."""
        import pyarrow.compute as pc

        if tuple(self._read_names[:2]) != RANKING:
            return columns
        return [
            pc.replace_substring_regex(column, f"^'({FORMULA})", r"\1") if column.type == "string" else column
            for column in columns
        ]

    def _number(self, column: Any, name: str, row: int) -> Any:
        """Return a column of numbers whose thousands are set apart."""
        import pyarrow as pa

        try:
            return _ungrouped(column, self.decimal)
        except pa.ArrowInvalid:
            values = column.to_pylist()
            at = next(i for i, value in enumerate(values) if value and not is_number(value, self.decimal))
            raise StreamError(
                f"{self.source.name!r} holds {values[at]!r} in row {row + at} of column {name!r}, which began as"
                f" numbers: mend it, or choose categorical=[{name!r}]."
            ) from None

    def mixed(self) -> list[Mixed]:
        """Return the columns of words that are mostly numbers: they must not pass for categories."""
        import pyarrow as pa

        found = []
        for name, kind, column in zip(self.names(), self._types, self._first or (), strict=False):
            if name in self.text | self.grouped or name == self.label or not pa.types.is_string(kind):
                continue
            values = _different(column, None)
            words = [value for value in values if not is_number(value, self.decimal)]
            other = "." if self.decimal == "," else ","
            foreign = [value for value in words if is_number(value, other)]
            if 2 * len(foreign) >= len(values) > 0:
                found.append(Mixed(name, tuple(foreign), column.to_pylist().index(foreign[0]) + 1, other))
            elif 2 * len(words) < len(values):
                found.append(Mixed(name, tuple(words), column.to_pylist().index(words[0]) + 1, ""))
        return found

    def _fail(self, error: Exception) -> None:
        found = re.search(
            r"CSV column #(\d+): (?:Row #(\d+): )?.*conversion error to ([\w\[\]]+): invalid value '(.*?)'",
            " ".join(str(error).split()),
        )
        if found is None or not hasattr(self, "_read_names"):
            self.source.fail(error)
        column, line, kind, value = found.groups()
        name = self.names()[int(column)]
        kind = "times" if kind.startswith(("timestamp", "date", "time")) else kind
        kind = {"double": "numbers", "bool": "false and true"}.get(kind, kind)
        raise StreamError(
            f"{self.source.name!r} holds {value!r} in {f'line {line} of ' if line else ''}column {name!r}, which began"
            f" as {kind}: mend it, or choose categorical=[{name!r}]."
        ) from error


@dataclass(frozen=True)
class Mixed:
    """A column that holds numbers and other values.

    Attributes
    ----------
    name : str
    words : tuple of str
        The values that are no numbers.
    row : int
        Where the first of them is, from 1 on.
    decimal : str
        The decimal mark with which they are numbers, if they are.
    """

    name: str
    words: tuple[str, ...]
    row: int
    decimal: str

    def told(self, path: str) -> str:
        """Return what is wrong and what to do."""
        where = f"{path!r} holds {self.words[0]!r} in row {self.row} of column {self.name!r}"
        if self.decimal:
            other = "a point" if self.decimal == "," else "a comma"
            return (
                f"{where}, but the other columns have {other} as decimal mark: mend it, or choose"
                f" categorical=[{self.name!r}]."
            )
        return f"{where}, where most values are numbers: mend it, or choose categorical=[{self.name!r}]."


class ParquetTable(Table):
    """Parquet, a few rows of a row group at a time."""

    format = "parquet"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._parquet = pyarrow_module("pyarrow.parquet")
        with source.opened() as raw:
            try:
                with self._file(raw) as file:
                    self._names, self._types = list(file.schema_arrow.names), list(file.schema_arrow.types)
                    self.n_rows = file.metadata.num_rows
            except Exception as error:
                source.fail(error)

    def _file(self, raw: Any) -> Any:
        # Buffered: else a whole row group of each column is read at once, whatever its size.
        return self._parquet.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 16)

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        return dict(zip(self._names, self._types, strict=True))

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        with self.source.opened() as raw:
            try:
                with self._file(raw) as file:
                    for block in file.iter_batches(batch_size=self._block_rows(), use_threads=False):
                        yield block.columns, block.num_rows
            except Exception as error:
                self.source.fail(error)


class ArrowTable(Table):
    """Arrow's own file and stream formats."""

    format = "arrow"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._ipc = pyarrow_module("pyarrow.ipc")
        with source.opened() as file:
            try:
                schema = self._reader(file).schema
                self._names, self._types = list(schema.names), list(schema.types)
            except Exception as error:
                source.fail(error)

    def _reader(self, file: Any) -> Any:
        in_file = file.read(6) == b"ARROW1"  # else a stream, which has no such mark
        file.seek(0)
        return self._ipc.open_file(file) if in_file else self._ipc.open_stream(file)

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column."""
        return dict(zip(self._names, self._types, strict=True))

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        with self.source.opened() as file:
            try:
                reader = self._reader(file)
                count = getattr(reader, "num_record_batches", None)
                blocks = reader if count is None else map(reader.get_batch, range(count))
                for block in blocks:
                    for at in range(0, block.num_rows, self._block_rows()):
                        piece = block.slice(at, self._block_rows())
                        yield piece.columns, piece.num_rows
            except Exception as error:
                self.source.fail(error)


def _as_whole(column: Any) -> tuple[bool, Any]:
    """Return whether every number of a column is whole, and the column, as int64 if so."""
    import pyarrow as pa

    try:
        return True, column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False, column


def _different(column: Any, most: int | None = _DIFFERENT) -> list[str]:
    """Return different values of a column of text."""
    return [value for value in column.unique()[:most].to_pylist() if value is not None]


def _ungrouped(column: Any, decimal: str) -> Any:
    """Return numbers whose thousands are set apart, as float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring(column, "," if decimal == "." else ".", "")
    if decimal == ",":
        plain = pc.replace_substring(plain, ",", ".")
    return pc.utf8_trim_whitespace(plain).cast(pa.float64())
