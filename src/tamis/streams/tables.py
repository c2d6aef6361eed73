"""Files with named columns, read by pyarrow in blocks: CSV, Parquet and Arrow."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tamis.errors import StreamError
from tamis.streams.source import Source

__all__ = ["ArrowTable", "CSVTable", "ParquetTable", "Table"]

_BLOCK_BYTES = 1 << 20
_BLOCK_CELLS = 1 << 19  # 4 MB as float64
_MISSING = ("?", " ?", "None")  # beside the empty text, NA, NaN, null and their like


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
    """Comma-separated text; types are inferred from the first block, numbers are read as float64."""

    format = "csv"

    def __init__(self, source: Source, **options: Any) -> None:
        super().__init__(source, **options)
        self._csv = pyarrow_module("pyarrow.csv")
        tab = ".tsv" in Path(source.name).suffixes
        self._delimiter = options["delimiter"] or ("\t" if tab else ",")
        self._header = bool(options["header"])
        self._block_bytes, head = self._probe()
        try:
            with self._reader(io.BytesIO(head), None) as reader:
                self._read_names, self._types = list(reader.schema.names), reader.schema.types
                self._first = reader.read_next_batch() if reader.schema.names else None
        except StopIteration:
            self._first = None
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
                return max(size, 2 * longest), head
            size *= 2

    def _refuse_numbers_for_names(self) -> None:
        names = self._read_names
        labels = all(name.isdigit() for name in names) and len(set(names)) == len(names)
        if all(map(_is_number, names)) and not labels:
            raise StreamError(
                f"{self.source.name!r} begins with a line of numbers ({', '.join(names[:4])} ...) where the columns'"
                " names should be: choose header=False."
            )

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._read_names if self._header else [f"x{i}" for i in range(len(self._read_names))]

    def _reader(self, file: Any, types: dict[str, Any] | None) -> Any:
        csv = self._csv
        return csv.open_csv(
            file,
            read_options=csv.ReadOptions(
                block_size=self._block_bytes, use_threads=False, autogenerate_column_names=not self._header
            ),
            parse_options=csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                strings_can_be_null=True,
                null_values=[*csv.ConvertOptions().null_values, *_MISSING],
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

        self._refuse_text_among_numbers()
        label = self.names().index(self.label)
        whole = pa.types.is_integer(self._types[label]) and self.label not in self.text
        with self.source.opened() as file:
            try:
                with closing(self._reader(file, self._column_types())) as reader:
                    for block in reader:
                        columns = block.columns
                        if whole:  # labels that are whole numbers so far
                            whole, columns[label] = _as_whole(columns[label])
                        if block.num_rows:
                            yield columns, block.num_rows
            except Exception as error:
                self._fail(error)

    def _refuse_text_among_numbers(self) -> None:
        """A column of numbers with a few words in it must not pass for a column of words."""
        import pyarrow as pa

        for name, kind, column in zip(self.names(), self._types, self._first or (), strict=False):
            if name in self.text or name == self.label or not pa.types.is_string(kind):
                continue
            values = [value for value in column.unique().to_pylist() if value is not None]
            words = [value for value in values if not _is_number(value)]
            if 2 * len(words) < len(values):
                row = column.to_pylist().index(words[0]) + 1
                raise StreamError(
                    f"{self.source.name!r} holds {words[0]!r} in row {row} of column {name!r}, where most values are"
                    f" numbers: mend it, or choose categorical=[{name!r}]."
                )

    def _fail(self, error: Exception) -> None:
        found = re.search(
            r"CSV column #(\d+): (?:Row #(\d+): )?.*conversion error to (\w+): invalid value '(.*?)'",
            " ".join(str(error).split()),
        )
        if found is None or not hasattr(self, "_read_names"):
            self.source.fail(error)
        column, line, kind, value = found.groups()
        name = self.names()[int(column)]
        kind = {"double": "numbers", "bool": "false and true"}.get(kind, kind)
        raise StreamError(
            f"{self.source.name!r} holds {value!r} in {f'line {line} of ' if line else ''}column {name!r}, which began"
            f" as {kind}: mend it, or choose categorical=[{name!r}]."
        ) from error


class ParquetTable(Table):
    """Parquet, a few rows of a row group at a time."""

    format = "parquet"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._parquet = pyarrow_module("pyarrow.parquet")
        with source.opened() as raw:
            try:
                with self._file(raw) as file:
                    self._names = list(file.schema_arrow.names)
                    self.n_rows = file.metadata.num_rows
            except Exception as error:
                source.fail(error)

    def _file(self, raw: Any) -> Any:
        # Buffered: else a whole row group of each column is read at once, whatever its size.
        return self._parquet.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 16)

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

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
                self._names = list(self._reader(file).schema.names)
            except Exception as error:
                source.fail(error)

    def _reader(self, file: Any) -> Any:
        in_file = file.read(6) == b"ARROW1"  # else a stream, which has no such mark
        file.seek(0)
        return self._ipc.open_file(file) if in_file else self._ipc.open_stream(file)

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
