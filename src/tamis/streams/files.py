"""Rows from files of any size: CSV, Parquet, Arrow, ARFF, svmlight, plain or compressed, and standard input.

Files are read in blocks and never as a whole. Types of CSV columns are inferred from the first block; a column that
was a number there stays one. Text is encoded as :class:`tamis.streams.encode.ColumnEncoder` says.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import hashlib
import io
import lzma
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import scipy.sparse as sp

from tamis._check import Array, check_choice, check_number
from tamis.errors import StreamError
from tamis.streams.encode import ColumnEncoder
from tamis.streams.stream import Batch, Stream

__all__ = ["FORMATS", "FileStream", "open_file"]

FORMATS = ("csv", "parquet", "arrow", "arff", "svmlight")
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arff": "arff",
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".dat": "svmlight",
}  # fmt: skip
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BLOCK_BYTES = 1 << 20
_BLOCK_ROWS = 8192
_SVMLIGHT_LINES = 1024


def open_file(
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    categorical: tuple[str, ...] | list[str] = (),
    missing: str = "error",
    drop_unlabelled: bool = False,
    n_features: int | None = None,
) -> FileStream:
    """Open a file as a stream of rows.

    Parameters
    ----------
    path : path-like
        ``"-"`` is standard input, which can be read once. ``.gz``, ``.bz2`` and ``.xz`` are decompressed on the way
        (not Parquet and Arrow files, which compress inside).
    label : str or int
        Name or position of the label column; negative positions count from the end. Not for svmlight, whose lines
        begin with the label.
    format : {"csv", "parquet", "arrow", "arff", "svmlight"}, optional
        By default as the name of the file says; "csv" for standard input.
    delimiter : str, optional
        Of a CSV file; by default a comma, or a tab in ``.tsv`` files.
    header : bool, default=True
        Whether the first line of a CSV file names the columns; else they are x0, x1, ...
    categorical : list of str
        Columns to be encoded as categories although they look like numbers.
    missing : {"error", "mean"}, default="error"
        What happens to missing numbers: refused, or replaced by the mean of their column so far.
    drop_unlabelled : bool, default=False
        Whether rows without a label are passed over (and counted in ``n_dropped``) instead of refused.
    n_features : int, optional
        Number of columns of an svmlight file. Without it the file is read once beforehand to find out; standard
        input needs it.

    Returns
    -------
    FileStream

    Raises
    ------
    StreamError
        If there is no such file, its format is unknown or damaged, or it has no such label column. While reading:
        if a row cannot be read, or the file changes. Each message names the file and the row or column.
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "fruit.csv")
    >>> _ = path.write_text("weight,colour,kind\\n120,red,apple\\n10,blue,plum\\n150,red,apple\\n")
    >>> stream = open_file(path, label="kind")
    >>> X, y = stream.take(3)
    >>> X
    array([[120.,   0.],
           [ 10.,   1.],
           [150.,   0.]])
    >>> stream.feature_names, y.tolist()
    (['weight', 'colour'], ['apple', 'plum', 'apple'])
    """
    check_choice("missing", missing, ("error", "mean"))
    if n_features is not None:
        check_number("n_features", n_features, low=1, integer=True)
    kind = _format_of(str(path), format)
    source = _Source(path, seekable=kind in ("parquet", "arrow"))
    if kind == "svmlight":
        if label is not None:
            raise ValueError(
                f"label={label!r} cannot be chosen in an svmlight file, whose lines begin with it."
            )
        return SvmlightStream(source, n_features)
    if label is None:
        raise ValueError(f"label must name the label column of {source.name!r} (or give its position).")
    reader = {"csv": _CSV, "parquet": _Parquet, "arrow": _Arrow, "arff": _ARFF}[kind]
    options = {"delimiter": delimiter, "header": header} if kind == "csv" else {}
    return TableStream(reader(source, **options), label, tuple(categorical), missing, drop_unlabelled)


def _format_of(path: str, format: str | None) -> str:
    if format is not None:
        check_choice("format", format, FORMATS)
        return format
    if path == "-":
        return "csv"
    stem = re.sub(r"\.(gz|bz2|xz)$", "", path.lower())
    suffix = Path(stem).suffix
    if suffix not in _SUFFIXES:
        raise StreamError(
            f"The format of {path!r} cannot be told from its name: choose one of {', '.join(FORMATS)}."
        )
    return _SUFFIXES[suffix]


class _Source:
    """A file or standard input: opened anew for each pass, watched for changes, measured on the way."""

    def __init__(self, path: str | os.PathLike[str], seekable: bool) -> None:
        self.name = os.fspath(path)
        self.is_stdin = self.name == "-"
        self.seekable = seekable
        self.raw: BinaryIO | None = None
        self.spent = self.finished = False
        if self.is_stdin:
            if seekable:
                raise StreamError(
                    "Parquet and Arrow files cannot be read from standard input: name the file."
                )
            self.name, self.size = "<stdin>", 0
            return
        if seekable and Path(self.name).suffix in _OPENERS:
            raise StreamError(
                f"{self.name!r} is compressed as a whole: Parquet and Arrow compress inside; unpack it."
            )
        try:
            found = os.stat(self.name)
        except FileNotFoundError:
            raise StreamError(f"There is no file {self.name!r}: check the path.") from None
        except OSError as error:
            raise StreamError(
                f"{self.name!r} cannot be read ({error.strerror}): check its permissions."
            ) from None
        if os.path.isdir(self.name):
            raise StreamError(f"{self.name!r} is a folder: name a file in it.")
        self.size, self.stamp = found.st_size, (found.st_size, found.st_mtime_ns)
        if self.size == 0:
            raise StreamError(f"{self.name!r} is empty: it has no rows.")

    def open(self) -> BinaryIO:
        self.finished = False
        if self.is_stdin:
            if self.spent:
                raise StreamError("Standard input can be read only once: save it to a file first.")
            self.spent = True
            return sys.stdin.buffer
        self.check_unchanged()
        try:
            self.raw = open(self.name, "rb")  # noqa: SIM115  closed by whoever reads it
        except OSError as error:
            raise StreamError(
                f"{self.name!r} cannot be read ({error.strerror}): check its permissions."
            ) from None
        opener = _OPENERS.get(Path(self.name).suffix)
        return self.raw if opener is None else cast("BinaryIO", io.BufferedReader(opener(self.raw, "rb")))

    def finish(self) -> None:
        """End a pass: what was read must be what was opened."""
        self.check_unchanged()
        self.finished = True

    def check_unchanged(self) -> None:
        if self.is_stdin:
            return
        try:
            now = os.stat(self.name)
        except OSError:
            raise StreamError(
                f"{self.name!r} has disappeared while it was read: restore it and start again."
            ) from None
        if (now.st_size, now.st_mtime_ns) != self.stamp:
            raise StreamError(
                f"{self.name!r} has changed while it was read: let it be finished, then start again."
            )

    def progress(self) -> float | None:
        if self.finished:
            return 1.0
        if self.raw is None or not self.size or self.raw.closed:
            return None
        return min(self.raw.tell() / self.size, 1.0)

    def fingerprint(self) -> dict[str, Any]:
        if self.is_stdin:
            return {"path": "-"}
        with open(self.name, "rb") as file:
            head = hashlib.sha256(file.read(_BLOCK_BYTES)).hexdigest()[:16]
        return {"path": self.name, "bytes": self.size, "fingerprint": head}

    def fail(self, error: Exception) -> NoReturn:
        """Say in one sentence what a reader found wrong."""
        text = " ".join(str(error).split())
        if isinstance(error, EOFError | lzma.LZMAError | gzip.BadGzipFile | OSError):
            raise StreamError(f"{self.name!r} is truncated or damaged ({text}): copy it again.") from error
        if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            line, expected, got = ragged.groups()
            raise StreamError(
                f"{self.name!r} has {got} values in line {line}, the others have {expected}: mend that line."
            ) from error
        if "invalid UTF8" in text or "codec can't decode" in text:
            raise StreamError(f"{self.name!r} is not UTF-8 text ({text}): convert it to UTF-8.") from error
        if found := re.search(
            r"In CSV column #(\d+): .*conversion error to (\w+): invalid value '(.*?)'", text
        ):
            column, kind, value = found.groups()
            raise StreamError(
                f"{self.name!r} holds {value!r} in column {int(column)} (counted from 0), which began as {kind}:"
                " mend the value, or list the column as categorical."
            ) from error
        raise StreamError(
            f"{self.name!r} cannot be read ({text[:200]}): check that it is whole and of that format."
        ) from error


class FileStream(Stream):
    """Rows of a file, made by :func:`open_file`.

    Attributes
    ----------
    feature_names : list of str or None
    n_dropped : int
        Rows passed over in the current pass because they have no label.
    """

    n_dropped = 0

    def __init__(self, source: _Source) -> None:
        self._source = source

    def progress(self) -> float | None:
        """Return the fraction of the file read in the current pass; None for standard input."""
        return self._source.progress()


class TableStream(FileStream):
    """Rows of a file with named columns."""

    def __init__(
        self,
        table: _Table,
        label: str | int,
        categorical: tuple[str, ...],
        missing: str,
        drop_unlabelled: bool,
    ) -> None:
        super().__init__(table.source)
        self._table = table
        self._options = {
            "label": label, "categorical": list(categorical), "missing": missing, "drop_unlabelled": drop_unlabelled,
        }  # fmt: skip
        names = table.names()
        self._label = _column_at(label, names, table.source.name)
        self.feature_names = [name for i, name in enumerate(names) if i != self._label]
        self.n_features = len(self.feature_names)
        self.n_rows = table.n_rows
        if self.n_features == 0:
            raise StreamError(f"{table.source.name!r} has no column but the label {names[self._label]!r}.")
        for name in categorical:
            _column_at(name, names, table.source.name)
        self.classes = table.classes(names[self._label])
        table.text, table.label = {*categorical}, names[self._label]

    def describe(self) -> dict[str, Any]:
        """Return path, format, options and a fingerprint of the file."""
        return {"kind": "file", "format": self._table.format, **self._table.options, **self._options,
                **self._source.fingerprint()}  # fmt: skip

    def _blocks(self, start: int) -> Iterator[Batch]:
        options = self._options
        encoders = [
            ColumnEncoder(name, str(options["missing"]), name in self._table.text)
            for name in self.feature_names or []
        ]
        self.n_dropped, row = 0, 1  # rows are counted from 1, the header apart
        skipped = 0
        for columns, n_rows in self._table.blocks():
            X = np.empty((n_rows, len(encoders)))
            labels = columns[self._label]
            rest = [column for i, column in enumerate(columns) if i != self._label]
            for j, (encoder, column) in enumerate(zip(encoders, rest, strict=True)):
                X[:, j] = encoder.encode(column, row)
            X, y = self._labelled(X, labels, row)
            row += n_rows
            skip = min(start - skipped, len(y))
            skipped += skip
            if skip < len(y):
                yield X[skip:], y[skip:]
        if row == 1:
            raise StreamError(f"{self._source.name!r} has a header but no rows.")
        self._source.finish()

    def _labelled(self, X: Array, labels: Any, first_row: int) -> Batch:
        if labels.null_count:
            known = ~labels.is_null().to_numpy(zero_copy_only=False)
            if not self._options["drop_unlabelled"]:
                row = first_row + int(np.flatnonzero(~known)[0])
                raise StreamError(
                    f"{self._source.name!r} has no label in row {row}: mend it, or choose drop_unlabelled=True."
                )
            self.n_dropped += int(labels.null_count)
            X, labels = X[known], labels.drop_null()
        y = labels.to_numpy(zero_copy_only=False)
        return X, np.array(y.tolist()) if y.dtype == object and len(y) else y


def _column_at(label: str | int, names: list[str], path: str) -> int:
    if isinstance(label, int) and not isinstance(label, bool):
        if not -len(names) <= label < len(names):
            raise StreamError(f"{path!r} has {len(names)} columns, so there is none at position {label}.")
        return label % len(names)
    if names.count(label) > 1:
        raise StreamError(
            f"{path!r} has {names.count(label)} columns named {label!r}: give the position instead."
        )
    if label not in names:
        near = difflib.get_close_matches(label, names, n=3, cutoff=0.5)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"it has {', '.join(map(repr, names[:8]))}"
        )
        raise StreamError(f"{path!r} has no column {label!r}; {hint}")
    return names.index(label)


class _Table:
    """What the formats with columns have in common: names, and blocks of Arrow columns."""

    format = ""

    def __init__(self, source: _Source, **options: Any) -> None:
        self.source = source
        self.options = {name: value for name, value in options.items() if value is not None}
        self.text: set[str] = set()  # columns read as text whatever they look like
        self.label = ""
        self.n_rows: int | None = None

    def names(self) -> list[str]:
        raise NotImplementedError

    def classes(self, label: str) -> Array | None:
        return None

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        raise NotImplementedError


def _arrow(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError("Reading tables needs pyarrow: pip install 'tamis[cli]'.") from None


class _CSV(_Table):
    format = "csv"

    def __init__(self, source: _Source, **options: Any) -> None:
        super().__init__(source, **options)
        self._csv = _arrow("pyarrow.csv")
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


class _Parquet(_Table):
    format = "parquet"

    def __init__(self, source: _Source) -> None:
        super().__init__(source)
        self._parquet = _arrow("pyarrow.parquet")
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
        return self._names

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
        with self._file() as file:
            try:
                for block in file.iter_batches(batch_size=_BLOCK_ROWS, use_threads=False):
                    yield block.columns, block.num_rows
            except StreamError:
                raise
            except Exception as error:
                self.source.fail(error)


class _Arrow(_Table):
    format = "arrow"

    def __init__(self, source: _Source) -> None:
        super().__init__(source)
        self._ipc = _arrow("pyarrow.ipc")
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
        return self._names

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
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


_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.+?)\s*$", re.IGNORECASE)
_NUMERIC = ("numeric", "real", "integer")


class _ARFF(_Table):
    """Weka's format: a header that declares the columns, then rows, dense (CSV) or sparse ({index value, ...})."""

    format = "arff"

    def __init__(self, source: _Source) -> None:
        super().__init__(source)
        _arrow("pyarrow.csv")
        self._columns: list[tuple[str, list[str] | None]] = []  # name, categories (None: a number)
        self._head: Iterator[bytes] | None = None
        lines = self._lines()
        self._read_header(lines)
        if source.is_stdin:
            self._head = lines

    def _lines(self) -> Iterator[bytes]:
        try:
            with self.source.open() as file:
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
        return [name for name, _ in self._columns]

    def classes(self, label: str) -> Array | None:
        categories = dict(self._columns)[label]
        return np.array(categories) if categories else None

    def blocks(self) -> Iterator[tuple[list[Any], int]]:
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
                    f"{self.source.name!r} holds {values[at]!r} in row {before + at + 1} of the numeric column {name!r}."
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


class SvmlightStream(FileStream):
    """Rows of an svmlight file, as CSR: ``label index:value index:value ...``.

    Indices count from 1 unless the file has a 0 among them.
    """

    def __init__(self, source: _Source, n_features: int | None) -> None:
        super().__init__(source)
        if source.is_stdin and n_features is None:
            raise ValueError(
                "n_features must be given for svmlight rows from standard input: their width is not known."
            )
        self._given = n_features
        self._zero_based = False
        self.n_features = n_features
        if not source.is_stdin:
            low, high = self._index_range()
            self._zero_based = low == 0
            width = high + 1 if self._zero_based else high
            self.n_features = width if n_features is None else n_features
            if width > self.n_features:
                raise StreamError(
                    f"{source.name!r} has {width} columns, more than n_features={n_features}: give more."
                )

    def describe(self) -> dict[str, Any]:
        """Return path, format, options and a fingerprint of the file."""
        return {
            "kind": "file",
            "format": "svmlight",
            "n_features": self.n_features,
            **self._source.fingerprint(),
        }

    def _line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        block: list[bytes] = []
        first = 1
        number = 0
        try:
            with self._source.open() as file:
                for number, line in enumerate(file, start=1):
                    block.append(line)
                    if len(block) == _SVMLIGHT_LINES:
                        yield first, block
                        first, block = number + 1, []
        except (EOFError, lzma.LZMAError, OSError) as error:
            self._source.fail(error)
        if block:
            yield first, block

    def _index_range(self) -> tuple[int, int]:
        low, high, rows = 1, 0, 0
        for first, lines in self._line_blocks():
            X, y = self._parse(lines, first, zero_based=True, n_features=None)
            rows += len(y)
            if X.nnz:
                low, high = min(low, int(X.indices.min())), max(high, int(X.indices.max()))
        if rows == 0:
            raise StreamError(f"{self._source.name!r} has no rows.")
        self.n_rows = rows
        return low, max(high, 1)

    def _parse(self, lines: list[bytes], first: int, zero_based: bool, n_features: int | None) -> Batch:
        from sklearn.datasets import load_svmlight_file

        def parsed(some: list[bytes]) -> Any:
            text = io.BytesIO(b"".join(some))
            return load_svmlight_file(text, n_features=n_features, zero_based=zero_based, dtype=np.float64)

        try:
            X, y = parsed(lines)
        except ValueError:
            for number, line in enumerate(lines, start=first):
                try:
                    parsed([line])
                except ValueError as error:
                    raise StreamError(
                        f"{self._source.name!r} cannot be read in line {number} ({error}): mend that line."
                    ) from None
            raise
        return X, y.astype(np.int64) if len(y) and (y == np.floor(y)).all() else y

    def _blocks(self, start: int) -> Iterator[Batch]:
        skipped = 0
        for first, lines in self._line_blocks():
            X, y = self._parse(lines, first, self._zero_based, self.n_features)
            if not np.isfinite(X.data).all():
                at = (
                    int(np.searchsorted(X.indptr, int(np.flatnonzero(~np.isfinite(X.data))[0]), side="right"))
                    - 1
                )
                raise StreamError(
                    f"{self._source.name!r} holds a value that is not finite near line {first + at}."
                )
            skip = min(start - skipped, len(y))
            skipped += skip
            if skip < len(y):
                yield sp.csr_matrix(X[skip:]), y[skip:]
        self._source.finish()
