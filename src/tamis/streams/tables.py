"""Files with named columns, read by pyarrow in blocks: CSV, Parquet and Arrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis._check import Array
from tamis.errors import StreamError
from tamis.streams.source import Source

__all__ = ["ArrowTable", "CSVTable", "ParquetTable", "Table"]

_BLOCK_BYTES = 1 << 20
_BLOCK_ROWS = 8192


class Table:
    """What the formats with columns have in common: names, and blocks of Arrow columns."""

    format = ""

    def __init__(self, source: Source, **options: Any) -> None:
        self.source = source
        self.options = {name: value for name, value in options.items() if value is not None}
        self.text: set[str] = set()  # columns read as text whatever they look like
        self.label = ""
        self.n_rows: int | None = None

    def names(self) -> list[str]:
        """Return the names of all columns."""
        raise NotImplementedError

    def classes(self, label: str) -> Array | None:
        """Return the labels that the file declares, if it does."""
        return None

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        raise NotImplementedError


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
        self._open_reader: Any = None
        if source.is_stdin:  # its head can be read only once: keep the reader that has read it
            self._open_reader = self._reader(None)
            self._names = list(self._open_reader.schema.names)
        else:
            reader = self._reader(None)
            self._names, self._types = list(reader.schema.names), reader.schema.types
            reader.close()

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names if self._header else [f"x{i}" for i in range(len(self._names))]

    def _reader(self, types: dict[str, Any] | None) -> Any:
        csv = self._csv
        try:
            return csv.open_csv(
                self.source.open(),
                read_options=csv.ReadOptions(
                    block_size=_BLOCK_BYTES, use_threads=False, autogenerate_column_names=not self._header
                ),
                parse_options=csv.ParseOptions(delimiter=self._delimiter),
                convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True),
            )
        except StreamError:
            raise
        except Exception as error:
            self.source.fail(error)

    def _column_types(self) -> dict[str, Any]:
        """Numbers are read as float64, so that a first decimal late in the file is no surprise."""
        import pyarrow as pa

        types = {}
        for name, shown, kind in zip(self._names, self.names(), self._types, strict=True):
            if shown in self.text:
                types[name] = pa.string()
            elif shown != self.label and (pa.types.is_integer(kind) or pa.types.is_null(kind)):
                types[name] = pa.float64()
        return types

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        import pyarrow as pa

        reader, self._open_reader = self._open_reader, None
        if reader is None:
            reader = self._reader(self._column_types() if not self.source.is_stdin else None)
        try:
            for block in reader:
                columns = [
                    column.cast(pa.string()) if name in self.text else column
                    for name, column in zip(self.names(), block.columns, strict=True)
                ]
                if block.num_rows:
                    yield columns, block.num_rows
        except StreamError:
            raise
        except Exception as error:
            self.source.fail(error)
        finally:
            reader.close()


class ParquetTable(Table):
    """Parquet, row group by row group."""

    format = "parquet"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._parquet = pyarrow_module("pyarrow.parquet")
        with self._file() as file:
            self._names = list(file.schema_arrow.names)
            self.n_rows = file.metadata.num_rows

    def _file(self) -> Any:
        try:
            return self._parquet.ParquetFile(self.source.open(), pre_buffer=False)
        except StreamError:
            raise
        except Exception as error:
            self.source.fail(error)

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        with self._file() as file:
            try:
                for block in file.iter_batches(batch_size=_BLOCK_ROWS, use_threads=False):
                    yield block.columns, block.num_rows
            except StreamError:
                raise
            except Exception as error:
                self.source.fail(error)


class ArrowTable(Table):
    """Arrow's own file and stream formats."""

    format = "arrow"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._ipc = pyarrow_module("pyarrow.ipc")
        reader = self._reader()
        self._names = list(reader.schema.names)

    def _reader(self) -> Any:
        file = self.source.open()
        try:
            return self._ipc.open_file(file)
        except Exception:
            file.seek(0)
        try:
            return self._ipc.open_stream(file)
        except Exception as error:
            self.source.fail(error)

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield the columns of a block of rows, and how many rows it has."""
        reader = self._reader()
        in_file = hasattr(reader, "num_record_batches")
        try:
            blocks = (reader.get_batch(i) for i in range(reader.num_record_batches)) if in_file else reader
            for block in blocks:
                if block.num_rows:
                    yield block.columns, block.num_rows
        except StreamError:
            raise
        except Exception as error:
            self.source.fail(error)
