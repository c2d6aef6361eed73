"""Rows from files of any size: CSV, Parquet, Arrow, ARFF, svmlight, plain or compressed, and standard input.

Files are read in blocks and never as a whole. Types of CSV columns are inferred from the first block; a column that
was a number there stays one. Text is encoded as :class:`tamis.streams.encode.ColumnEncoder` says.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tamis._check import Array, check_choice, check_number
from tamis.errors import StreamError
from tamis.streams.arff import ARFFTable
from tamis.streams.encode import ColumnEncoder
from tamis.streams.source import FileStream, Source
from tamis.streams.stream import Batch
from tamis.streams.svmlight import SvmlightStream
from tamis.streams.tables import ArrowTable, CSVTable, ParquetTable, Table

__all__ = ["FORMATS", "TableStream", "open_file"]

FORMATS = ("csv", "parquet", "arrow", "arff", "svmlight")
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arff": "arff",
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".dat": "svmlight",
}  # fmt: skip


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
    r"""Open a file as a stream of rows.

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
    >>> _ = path.write_text("weight,colour,kind\n120,red,apple\n10,blue,plum\n150,red,apple\n")
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
    source = Source(path, seekable=kind in ("parquet", "arrow"))
    if kind == "svmlight":
        if label is not None:
            raise ValueError(
                f"label={label!r} cannot be chosen in an svmlight file, whose lines begin with it."
            )
        return SvmlightStream(source, n_features)
    if label is None:
        raise ValueError(f"label must name the label column of {source.name!r} (or give its position).")
    reader = {"csv": CSVTable, "parquet": ParquetTable, "arrow": ArrowTable, "arff": ARFFTable}[kind]
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


class TableStream(FileStream):
    """Rows of a file with named columns."""

    def __init__(
        self,
        table: Table,
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
    if isinstance(label, int):
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
