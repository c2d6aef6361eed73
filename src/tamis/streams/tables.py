"""Files with named columns, read by pyarrow in blocks: common code of Parquet and Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from tamis._validation import Mask
from tamis.streams.arrow import ipc, pa, parquet, pc
from tamis.streams.dialect import unique_names
from tamis.streams.encode import time_parts
from tamis.streams.source import Source

_BLOCK_CELLS = 1 << 19  # 4 MB as float64
_HEAD_ROWS = 10_000


@dataclass(frozen=True)
class Head:
    """The first rows of a table.

    Attributes
    ----------
    columns : list of pyarrow.Array
    n_rows : int
    whole : bool
        Whether these are all rows.
    """

    columns: list[Any]
    n_rows: int
    whole: bool


class Table:
    """Base of the formats with columns: names, and blocks of Arrow columns.

    Attributes
    ----------
    label : str
        Name of the label column, set before the first block is read.
    text : set of str
        Columns read as text regardless of their values, set before the first block is read.
    labels : str
        How the labels of a CSV file are read: "text", "flags", "integers" or "numbers"; "" as the file declares.
    whole_labels : bool
        Whether the labels of a CSV file have been integers so far.
    """

    format = ""
    later: Table | None = None  # more rows, by which texts are identifiers or categories
    gains_columns = False  # whether columns that later rows name are appended,
    room = 1 << 31  # and how many
    required: tuple[str, ...] = ()  # columns that each file has
    n_first: int | None = None  # columns of the first rows, if some were appended since
    text_patterns: tuple[str, ...] = ()  # patterns of names of columns whose values are read as text
    _facts: tuple[str, ...] = ()  # attributes that are its state

    def __init__(self, source: Source, **options: Any) -> None:
        self.source = source
        self.options = {name: value for name, value in options.items() if value is not None}
        self.text: set[str] = set()
        self.label = ""
        self.labels, self.whole_labels = "", False
        self.n_rows: int | None = None
        self.renamed: dict[str, str] = {}  # columns with the name of an earlier one, and that name
        self._names: list[str] = []
        self._types: list[Any] = []

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

    def _set_names(self, names: Iterable[str]) -> None:
        """Set the names of the columns, unique."""
        given = list(names)
        self._names = unique_names(given)
        self.renamed = {new: old for new, old in zip(self._names, given, strict=True) if new != old}

    def append(self, names: Sequence[str], other: Table) -> None:
        """Append columns of another table, which later rows name."""
        self.n_first = len(self.names()) if self.n_first is None else self.n_first
        kinds = dict(zip(other.names(), other._types, strict=True))
        self._add_names(list(names))
        self.room -= len(names)
        self._types = [*self._types, *(kinds[name] for name in names)]
        self.text |= set(self.matching(names))

    def absent_rows(self, n_rows: int, names: Sequence[str]) -> dict[str, Mask]:
        """Return the rows that lack a column, in a file with these columns: all or none."""
        return {name: np.ones(n_rows, dtype=bool) for name in self.names() if name not in names}

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return the names of appended columns whose values are read as text."""
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.text_patterns)]

    def _add_names(self, names: list[str]) -> None:
        self._names = [*self._names, *names]

    def forget_appended(self) -> None:
        """Drop the appended columns, to read the rows again from the first one."""
        if self.n_first is not None:
            self._types, self.n_first = self._types[: self.n_first], None

    def categories(self, name: str) -> list[str] | None:
        """Return the values declared for a column in the file, if any."""
        return None

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column, if known before reading."""
        return dict(zip(self._names, self._types, strict=True)) if self._types else {}

    def times(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of times, and the parts of a time that each of them provides."""
        return {name: parts for name, kind in self.types().items() if (parts := time_parts(kind))}

    def facts(self) -> dict[str, Any]:
        """Return the state of the table as plain values, from which later rows can be read without the first ones."""
        schema = pa.schema([(str(j), kind) for j, kind in enumerate(self._types)])
        kept = {name: getattr(self, name) for name in self._facts}
        return kept | {"types": schema.serialize().to_pybytes()}

    def head(self) -> Head | None:
        """Return the first rows; None if they cannot be read again afterwards."""
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
        columns = [pa.chunked_array(parts).combine_chunks() for parts in zip(*blocks, strict=True)]
        return Head(columns, n_rows, whole)

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        raise NotImplementedError

    def _block_rows(self) -> int:
        return max(16, min(8192, _BLOCK_CELLS // max(1, len(self.names()))))


def split_markers(words: Iterable[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the markers of missing values of all columns, and those of single columns with their column or pattern.

    >>> split_markers(["n/a", "days=-999", "height=*"])
    (['n/a'], [('days', '-999'), ('height', '*')])
    """
    pairs = [(word, re.fullmatch(r"(.+)=(\*|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)", word)) for word in words]
    return [word for word, match in pairs if not match], [(match[1], match[2]) for _, match in pairs if match]


def without_markers(column: Any, markers: list[float]) -> Any:
    """Return a column of numbers in which some of them are missing values; other columns are unchanged."""
    kind = column.type
    if not markers or not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return column
    is_marker = pc.is_in(column.cast(pa.float64(), safe=False), pa.array(markers, pa.float64()))
    return pc.if_else(is_marker, pa.scalar(None, kind), column)


def schema_types(schema: bytes) -> list[Any]:
    """Return the types of a serialized Arrow schema."""
    return list(ipc.read_schema(pa.py_buffer(schema)).types)


class SchemaTable(Table):
    """A table with known names and types, from which no rows are read.

    Parameters
    ----------
    source : Source
    format : str
    names : list of str
    types : list of pyarrow.DataType
    """

    def __init__(self, source: Source, format: str, names: list[str], types: list[Any]) -> None:
        super().__init__(source)
        self.format, self._names, self._types = format, names, types


class ParquetTable(Table):
    """Parquet, a few rows of a row group at a time."""

    format = "parquet"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        with source.reading() as raw, self._file(raw) as file:
            self._set_names(file.schema_arrow.names)
            self._types = list(file.schema_arrow.types)
            self.n_rows = file.metadata.num_rows

    def _file(self, raw: Any) -> Any:
        # Buffered; otherwise a whole row group of each column is read at once, regardless of its size.
        return parquet.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 16)

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        with self.source.reading() as raw, self._file(raw) as file:
            for block in file.iter_batches(batch_size=self._block_rows(), use_threads=False):
                yield block.columns, block.num_rows


class _BoundedFile:
    """A file whose reads are limited to its size, since a damaged file may request gigabytes."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._size = file, size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._file.tell(), 0)
        return self._file.read(left if size < 0 else min(size, left))


class ArrowTable(Table):
    """Arrow's own file and stream formats."""

    format = "arrow"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._ipc = ipc
        with source.reading() as file:
            schema = self._reader(file).schema
            self._set_names(schema.names)
            self._types = list(schema.types)

    def _reader(self, file: Any) -> Any:
        in_file = file.read(6) == b"ARROW1"  # otherwise a stream, which has no such magic
        file.seek(0)
        bounded = _BoundedFile(file, self.source.size)
        return ipc.open_file(bounded) if in_file else ipc.open_stream(bounded)

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        with self.source.reading() as file:
            reader = self._reader(file)
            count = getattr(reader, "num_record_batches", None)
            for block in reader if count is None else map(reader.get_batch, range(count)):
                block.validate(full=True)  # Arrow itself trusts the offsets in a file
                for at in range(0, block.num_rows, self._block_rows()):
                    piece = block.slice(at, self._block_rows())
                    yield piece.columns, piece.num_rows
