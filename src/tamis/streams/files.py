"""Rows from files of any size: CSV, Parquet, Arrow, ARFF, svmlight, plain or compressed, and standard input.

Files are read in blocks, never as a whole. Types of CSV columns are inferred from the first block: a column that is
numeric there must remain numeric. Text and times are encoded by :class:`tamis.streams.encode.ColumnEncoder`.
"""

from __future__ import annotations

import copy
import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np

from tamis._validation.arrays import Array, Mask
from tamis._validation.labels import plain_numbers
from tamis._validation.values import as_list, check_choice, check_number, is_integer, short_repr
from tamis.errors import StreamError
from tamis.streams.arff import ARFFTable
from tamis.streams.arrow import kinds
from tamis.streams.csv_table import CSVTable
from tamis.streams.dialect import MAX_LINES, check_max_quoted_lines
from tamis.streams.encode import ColumnEncoder, is_text
from tamis.streams.source import FileStream, Source
from tamis.streams.stream import Batch
from tamis.streams.svmlight import SvmlightStream
from tamis.streams.tables import ArrowTable, ParquetTable, Table, split_markers, without_markers

# -- reading ahead -----------------------------------------------------------------------------------------


T = TypeVar("T")


def prefetch(blocks: Iterator[T]) -> Iterator[T]:
    """Yield the items of an iterator in order; a thread computes the next one meanwhile.

    An error is raised in place of its block. The thread waits only for the current block, and has ended when this
    iterator is closed, an interrupt passes through it or the process ends. The second block is read only on request, so
    reading the first rows uses no thread.

    Parameters
    ----------
    blocks : iterator
        Items must not be None. Prefetching is effective if the iterator releases the GIL.

    Examples
    --------
    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    block = next(blocks, None)
    if block is None:
        return
    yield block
    with ThreadPoolExecutor(1, "tamis-read-ahead") as thread:
        coming = thread.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = thread.submit(next, blocks, None)
            yield block


FORMATS = ("csv", "json", "xlsx", "parquet", "arrow", "arff", "svmlight")
TIMES = ("seconds", "parts")
SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv", ".dat": "csv", ".zip": "csv", ".jsonl": "json",
    ".ndjson": "json", ".json": "json", ".xlsx": "xlsx", ".xlsm": "xlsx", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arff": "arff",
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
_ELSEWHERE = {
    ".dta": "pandas.read_stata",
    ".sas7bdat": "pandas.read_sas",
    ".xpt": "pandas.read_sas",
    ".sav": "pandas.read_spss",
    ".zsav": "pandas.read_spss",
    ".xls": "pandas.read_excel",
    ".xlsb": "pandas.read_excel",
    ".ods": "pandas.read_excel",
    ".orc": "pandas.read_orc",
    ".xml": "pandas.read_xml",
    ".h5": "pandas.read_hdf",
    ".hdf5": "pandas.read_hdf",
    ".pkl": "pandas.read_pickle",
    ".pickle": "pandas.read_pickle",
    ".rds": "pyreadr.read_r",
    ".rdata": "pyreadr.read_r",
    ".rda": "pyreadr.read_r",
    ".npy": "numpy.load",
    ".npz": "numpy.load",
    ".mat": "scipy.io.loadmat",
}  # fmt: skip  what reads other formats
_SVMLIGHT = re.compile(rb"[ \t]*[-+.0-9eE]+(?:[ \t]+(?:qid|[0-9]+):[-+.0-9eE]+)+[ \t]*(?:#.*)?\r?\n?")


def open_file(
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    na: Sequence[str] = (),
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "keep",
    times: str = "seconds",
    time_format: str | None = None,
    max_quoted_lines: int = MAX_LINES,
    drop_unlabelled: bool = False,
    clock: Sequence[str] = (),
    n_features: int | str | None = None,
    zero_based: bool | None = None,
) -> FileStream:
    r"""Open a file as a stream of rows.

    Parameters
    ----------
    path : path-like
        ``"-"`` is standard input, which can be read once. Files compressed with gzip, bzip2, xz or zstd are
        decompressed while reading, regardless of their name (except Parquet and Arrow files, which are compressed
        internally).
    label : str or int
        Name or position of the label column; negative positions count from the end. Not for svmlight, whose lines
        begin with the label. Whole numbers are read as integers, exactly; numbers with decimals as float64; any other
        labels, and numbers with leading zeros such as ``007``, as text.
    format : {"csv", "json", "xlsx", "parquet", "arrow", "arff", "svmlight"}, optional
        By default inferred from the file name; "csv" for standard input.
    delimiter : str, optional
        Delimiter of a CSV file; by default detected among comma, semicolon, tab and bar in the first lines.
    decimal : {".", ","}, optional
        Decimal mark of a CSV file; by default detected in the first block. The other one may group thousands, and a
        column of numbers may have a currency or percent sign, which is dropped.
    encoding : str, optional
        Encoding of a CSV file; by default UTF-8, UTF-16 or Latin-1 (as Windows writes it), detected in the first block.
    header : bool, default=True
        Whether the first line of a CSV file contains the column names; otherwise they are x0, x1, ...
    na : list of str
        Further markers of a missing value in a CSV file, besides the empty string, ``?``, ``NA``, ``NaN`` and similar.
        Of one column or pattern, in any format: a number (``"days=-999"``), or in CSV all texts (``"height=*"``).
    categorical : list of str
        Columns (names or positions) to encode as categories although their values are numeric; if the label is one of
        them, it is read as text. Patterns such as ``"code_*"`` select all matching columns.
    drop : list of str
        Columns to exclude, such as names and serial numbers, or patterns.
    missing : {"keep", "mean", "error"}, default="keep"
        How missing numbers are treated: kept as NaN, replaced by the mean of the column in earlier rows, or an error.
    times : {"seconds", "parts"}, default="seconds"
        How a column of dates or times is encoded. "seconds": the seconds since 1970, or since midnight for times of
        day. "parts": up to three columns, ``NAME.year`` (2024.5 is the middle of 2024), ``NAME.weekday`` (1 is Monday)
        and ``NAME.hour`` (13.5 is 13:30).
    time_format : str, optional
        Format of dates and times in a CSV file, as for ``strptime``, such as ``"%d/%m/%Y"``; by default ISO 8601, or
        detected in the first block.
    max_quoted_lines : int, default=100
        Maximum number of lines of a quoted value in a CSV file, at least 1. Beyond it, the quote is treated as
        unclosed, which is an error.
    drop_unlabelled : bool, default=False
        Whether to skip rows without a label (counted in ``n_dropped``) instead of raising an error.
    clock : pair of str
        Two columns for ``prequential(delay=)``: the time of a row, and the time of its label. Dates and times in them
        become seconds, regardless of `times`. Missing values are kept.
    n_features : int or "any", optional
        Number of columns of an svmlight file, required for standard input. By default, the file is read once beforehand
        to determine it. "any": one pass, in which each batch is as wide as the widest row so far.
    zero_based : bool, optional
        Whether the columns of an svmlight file are numbered from 0. By default from 1, unless an index 0 is found while
        reading it beforehand.

    Returns
    -------
    FileStream

    Raises
    ------
    StreamError
        If the file does not exist, its format is unknown or damaged, or the label column is missing. While reading:
        if a row cannot be read, or the file changes. Each message names the file and the row or column.
    ValueError
        If an option is out of range or does not apply to this format.

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
    check_choice("missing", missing, ("error", "mean", "keep"))
    check_choice("times", times, TIMES)
    if n_features is not None and n_features != "any":
        check_number("n_features", n_features, low=1, integer=True)
    dialect = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "na": as_list("na", na),
             "time_format": time_format, "max_quoted_lines": max_quoted_lines}  # fmt: skip
    table = open_table(path, format=format, header=header, **dialect)
    if isinstance(table, Source):
        if label is not None:
            raise ValueError(
                f"label={label!r} does not apply to an svmlight file, whose lines begin with the label."
            )
        return SvmlightStream(table, n_features, zero_based)
    if label is None:
        raise ValueError(f"label must name the label column of {table.source.name!r} (or give its position).")
    if not isinstance(label, str | int | np.integer):
        raise _not_a_column(label, table.source.name)
    return TableStream(
        table, label, categorical, drop, missing, drop_unlabelled, times, clock, as_list("na", na)
    )


def open_table(
    path: str | os.PathLike[str], *, format: str | None = None, header: bool = True, **written: Any
) -> Table | Source:
    """Open a file with named columns as a table rather than a stream; a file without names is returned as its source.

    Parameters
    ----------
    path, format, header
        As for :func:`open_file`.
    **written
        The dialect of a CSV file: `delimiter`, `decimal`, `encoding`, `na`, `time_format`, `max_quoted_lines`.
    """
    _check_path(path)
    if (delimiter := written.get("delimiter")) is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter must be a single character, got {delimiter!r}.")
    if written.get("decimal") is not None:
        check_choice("decimal", written["decimal"], (".", ","))
    if (max_lines := check_max_quoted_lines(written.pop("max_quoted_lines", None))) is not None:
        written["max_quoted_lines"] = max_lines
    kind = _detect_format(os.fspath(path), format)
    source = Source(path, seekable=kind in ("parquet", "arrow"))
    if Path(source.name).suffix.lower() == ".dat" and format is None:
        lines = [
            line for line in source.peek(1 << 14).splitlines()[:20] if line and not line.startswith(b"#")
        ]
        kind = "svmlight" if lines and all(map(_SVMLIGHT.fullmatch, lines[:-1] or lines)) else kind
    if kind in ("csv", "json", "xlsx"):
        written["layout"] = "json" if kind == "json" else None
        return CSVTable(source, header=header, **{name: value or None for name, value in written.items()})
    readers = {"parquet": ParquetTable, "arrow": ArrowTable, "arff": ARFFTable}
    return readers[kind](source) if kind in readers else source


def _check_path(path: Any) -> None:
    if isinstance(path, str | os.PathLike):
        return
    is_rows = hasattr(path, "shape") or hasattr(path, "columns") or isinstance(path, tuple | list)
    instead = (
        ": rows in memory are a stream already, so pass the pair (X, y) wherever a stream is accepted, or make"
        " ArrayStream(X, y)"
    )
    raise TypeError(f"open_file expects the path of a file, got a {type(path).__name__}{instead * is_rows}.")


def _detect_format(path: str, format: str | None) -> str:
    if format is not None:
        check_choice("format", format, FORMATS)
        return format
    if path == "-":
        return "csv"
    suffix = Path(re.sub(r"(?<=.)\.(gz|bz2|xz|zst)$", "", path.lower())).suffix
    if (reader := _ELSEWHERE.get(suffix)) is not None:
        then = f".to_parquet({Path(path).stem + '.parquet'!r})" if reader.startswith("pandas") else ""
        raise StreamError(
            f"{path!r} is read by another library: call {reader}({path!r}){then} and pass the frame or arrays to"
            f" Python{', or that Parquet file here' if then else ', or save them as CSV or Parquet'}."
        )
    if suffix not in SUFFIXES:
        raise StreamError(
            f"The format of {path!r} cannot be inferred from its name: choose one of {', '.join(FORMATS)}."
        )
    return SUFFIXES[suffix]


class TableStream(FileStream):
    """Rows of a file with named columns; without a label column, every label is 0.

    If `label` is a list of columns, `y` has a column of objects for each, and None where a label is missing.
    """

    _share_read: float | None = None

    def __init__(
        self,
        table: Table,
        label: str | int | Sequence[str] | None,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        missing: str = "keep",
        drop_unlabelled: bool = False,
        times: str = "seconds",
        clock: Sequence[str] = (),
        na: Sequence[str] = (),
    ) -> None:
        super().__init__(table.source)
        self.categorical: list[int] = []  # text columns, and those in `categorical`
        self.categories: dict[str, list[Any]] = {}  # their values, in the order of the codes
        self._table, self.may_gain_columns = table, table.format == "json"
        if label is not None and is_integer(label):
            label = int(label)  # type: ignore[arg-type]
        categorical, drop = as_list("categorical", categorical), as_list("drop", drop)
        clock = as_list("clock", clock)
        self._options = {
            "label": label, "categorical": categorical, "drop": drop, "missing": missing,
            "drop_unlabelled": drop_unlabelled, "times": times, **({"clock": clock} if clock else {}),
            **({"na": list(na)} if split_markers(na)[1] else {}),
        }  # fmt: skip
        names, path = table.names(), table.source.name
        self._clock = [names[find_column(name, names, path)] for name in clock]
        several = list(label) if isinstance(label, list | tuple) else []
        self._targets = [find_column(one, names, path) for one in several]
        self._label = -1 if label is None or several else find_column(label, names, path)  # type: ignore[arg-type]
        self._names = list(names)  # of the columns that it has features of
        self._na, self._drop = list(na), list(map(str, drop))
        table.text_patterns = tuple(one for one in [*categorical, *drop] if isinstance(one, str))
        text = {name for one in categorical for name in match_columns(one, names, path)}
        dropped = {name for one in drop for name in match_columns(one, names, path)}
        self._check_columns(names, text, dropped)
        self._markers = markers_of(na, names, path)
        self._features = self._features_of(names, text, dropped)
        self.feature_names = [_feature_name(names[i], part) for i, part in self._features]
        self.n_features = len(self._features)
        self.n_rows = None if drop_unlabelled else table.n_rows
        if self.n_features == 0:
            rest = "of the model" if label is None else f"besides the label {label!r}"
            raise StreamError(f"{path!r} has no column {rest}.")
        table.text = text | dropped
        table.label = names[self._label] if self._label >= 0 else ""
        if table.label:
            declared = table.categories(table.label)
            self.classes = np.array(declared) if declared else None
        kinds = table.types()
        text = text | {
            name for name in names if table.categories(name) or (name in kinds and is_text(kinds[name]))
        }
        self.categorical = [j for j, name in enumerate(self.feature_names) if name in text]

    def _check_columns(self, names: list[str], text: set[str], dropped: set[str]) -> None:
        """Raise if the options contradict each other."""
        labels = [names[at] for at in (*self._targets, self._label) if at >= 0]
        for label in dropped.intersection(labels):
            raise ValueError(f"drop must not contain the label {label!r}: remove it from the list.")
        for name in {*labels, *text, *dropped}.intersection(self._clock):
            raise ValueError(
                f"clock names {name!r}, which is the label, dropped or a category: choose another column."
            )

    def _features_of(
        self, names: list[str], text: set[str], dropped: set[str]
    ) -> list[tuple[int, str | None]]:
        """Return the column of each feature, and the part of a time that it uses."""
        times = self._table.times() if self._options["times"] == "parts" else {}
        encoded_as_parts = {
            name: parts for name, parts in times.items() if name not in self._clock and name not in text
        }
        labels = {self._label, *self._targets}
        kept = [i for i, name in enumerate(names) if i not in labels and name not in dropped]
        n_first = self._table.n_first or len(names)
        # The clock columns are last, so that the positions of the others are unchanged; then those of later rows.
        kept.sort(key=lambda i: (i >= n_first, names[i] in self._clock))
        return [(i, part) for i in kept for part in encoded_as_parts.get(names[i], (None,))]

    def _append_features(self, encoders: list[ColumnEncoder], n_columns: int) -> None:
        """Append the features of columns that later rows have named."""
        n_before, known = self.n_features or 0, len(self._names)
        self._names = names = self._table.names()[:n_columns]
        dropped = {name for name in names[known:] for one in self._drop if fnmatchcase(name, one)}
        new = [one for one in self._features_of(names, self._table.text, dropped) if one[0] >= known]
        self._features = [*self._features, *new]
        self._markers = markers_of(self._na, names, self._source.name)
        own = [_feature_name(names[i], part) for i, part in new]
        self.feature_names = [*(self.feature_names or ()), *own]
        self.n_features = len(self._features)
        kinds, text = self._table.types(), self._table.text
        coded = {name for name in names[known:] if name in text or is_text(kinds[name])}
        more = [j for j, (i, _) in enumerate(new, start=n_before) if names[i] in coded]
        self.categorical = [*self.categorical, *more]
        encoders += self.encoders(n_before)

    def forget_appended(self) -> None:
        """Drop the columns that later rows have named, to read from the first row again."""
        if (n := self._table.n_first) is not None:
            self.categorical = self.categorical_of(n)
            self._names, self._features = self._names[:n], [one for one in self._features if one[0] < n]
            self.n_features = len(self._features)
            self.feature_names = (self.feature_names or [])[: self.n_features]
            self._table.forget_appended()

    def n_excluded(self, n_columns: int) -> int:
        """Return how many of the first columns are not features."""
        return n_columns - len({i for i, _ in self._features if i < n_columns})

    def categorical_of(self, n_columns: int | None) -> list[int]:
        """Return the categorical features of the first columns."""
        n = len(self._names) if n_columns is None else n_columns
        return [j for j in self.categorical if self._features[j][0] < n]

    def with_missing(self, missing: str) -> Self:
        """Return the stream with another treatment of missing numbers; see :meth:`Stream.with_missing`."""
        other = copy.copy(self)
        check_choice("missing", missing, ("keep", "mean", "error"))
        other._options = {**self._options, "missing": missing}
        return other

    def _facts(self) -> list[str]:
        return [*super()._facts(), f"label {self._options['label']!r}"]

    def describe(self) -> dict[str, Any]:
        """Return path, format, options and a fingerprint of the file."""
        return {"kind": "file", "format": self._table.format, **self._table.options, **self._options,
                **self._source.fingerprint()}  # fmt: skip

    def _all_blocks(self) -> Iterator[Batch]:
        self.forget_appended()
        self._table.gains_columns = self.gains_columns
        encoders = self.encoders()
        self.n_dropped, first_row = 0, 1  # rows are counted from 1, without the header
        self._share_read, blocks = None, self._measured_blocks()
        # Only CSV files are prefetched: other formats are fast to read, and with standard input, an interrupt would
        # have to wait for the next rows.
        if isinstance(self._table, CSVTable) and not self._source.is_stdin:
            blocks = prefetch(blocks)
        for columns, n_rows, share in blocks:
            self._share_read = share
            yield self.as_batch(encoders, columns, n_rows, first_row)
            first_row += n_rows
        if first_row == 1:
            raise StreamError(
                f"{self._source.name!r} has a header but no rows: add rows below it, or name another file."
            )
        self._source.finish()

    def _measured_blocks(self) -> Iterator[tuple[list[Any], int, float | None]]:
        """Yield the blocks of the table, and the fraction of the file read after each."""
        for columns, n_rows in self._table.blocks():
            yield columns, n_rows, self._source.progress()

    def progress(self) -> float | None:
        """Return the fraction of the file in the blocks returned so far, excluding what was prefetched."""
        return 1.0 if self._source.finished else self._share_read

    def as_batch(
        self, encoders: list[ColumnEncoder], columns: list[Any], n_rows: int, first_row: int,
        absent: Mapping[str, Mask] = MappingProxyType({}),
    ) -> Batch:  # fmt: skip
        """Return the Arrow columns of some rows as numbers and labels; some rows may lack a column."""
        X = self.as_numbers(encoders, columns, n_rows, first_row, absent)
        if self._targets:
            return self._with_targets(X, columns, first_row)
        if self._label < 0:
            return (X, np.zeros(n_rows))
        return self._with_labels(X, columns[self._label], first_row)

    def as_numbers(
        self, encoders: list[ColumnEncoder], columns: list[Any], n_rows: int, first_row: int,
        absent: Mapping[str, Mask] = MappingProxyType({}),
    ) -> Array:  # fmt: skip
        """Return the features of some rows as numbers; some rows may lack a column."""
        if len(columns) > len(self._names):
            self._append_features(encoders, len(columns))
        names = self._names
        features = [without_markers(columns[i], self._markers.get(names[i], [])) for i, _ in self._features]
        X = np.empty((n_rows, len(features)), dtype=self._dtype(features))
        try:
            for j, (encoder, column) in enumerate(zip(encoders, features, strict=True)):
                X[:, j] = encoder.encode(column, first_row, absent.get(names[self._features[j][0]]))
        except StreamError as error:
            raise StreamError(f"{self._source.name!r}: {error}") from None
        categories = {j: encoder.categories for j, encoder in enumerate(encoders) if encoder.categories}
        self.categorical = sorted({*self.categorical, *categories})
        for j in categories:
            if encoders[j].name in self._clock:
                raise StreamError(
                    f"{self._source.name!r}: column {encoders[j].name!r} must contain times, but contains text such as"
                    f" {short_repr(encoders[j].categories[0])}: write numbers or dates, or set time_format."
                )
        self.categories = {encoders[j].name: values for j, values in categories.items()}
        return X

    def split(self, columns: list[Any]) -> tuple[Any, list[Any]]:
        """Return the column of the labels, and the columns of the features."""
        return columns[self._label], [columns[i] for i in dict.fromkeys(i for i, _ in self._features)]

    def encoders(self, start: int = 0) -> list[ColumnEncoder]:
        """Return a new encoder for each feature from `start` on."""
        missing, table, names = str(self._options["missing"]), self._table, self._table.names()
        n_first = len(names) if table.n_first is None else table.n_first
        return [
            ColumnEncoder(
                name,
                # A column that later rows name is missing in all others.
                "keep" if name in self._clock or (missing == "error" and i >= n_first) else missing,
                names[i] in table.text,
                table.categories(names[i]),
                part,
            )
            for name, (i, part) in [*zip(self.feature_names or (), self._features, strict=True)][start:]
        ]

    def _dtype(self, features: list[Any]) -> type[np.floating[Any]]:
        single = all(str(column.type) in ("float", "halffloat") for column in features)
        return np.float32 if single and not self._options["categorical"] else np.float64

    def _with_labels(self, X: Array, labels: Any, first_row: int) -> Batch:
        unknown = labels.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if unknown.any():
            if not self._options["drop_unlabelled"]:
                row = first_row + int(np.argmax(unknown))
                raise StreamError(
                    f"{self._source.name!r} has no label in row {row}: fix it, or choose drop_unlabelled=True."
                )
            self.n_dropped += int(unknown.sum())
            X, labels = X[~unknown], labels.filter(~unknown)
        return X, self.label_values(labels)

    def _with_targets(self, X: Array, columns: list[Any], first_row: int) -> Batch:
        """Return the rows that have a label, and the labels of several columns as objects."""
        y = np.full((len(X), len(self._targets)), None, dtype=object)
        has_label = np.zeros(len(X), dtype=bool)
        for target, at in enumerate(self._targets):
            known = ~columns[at].is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
            if not (known.all() or self._options["drop_unlabelled"]):
                raise StreamError(
                    f"{self._source.name!r} has no {self._names[at]!r} in row {first_row + int(np.argmin(known))}: fix"
                    " it, or choose drop_unlabelled=True."
                )
            values = self.label_values(columns[at].filter(known), self._names[at])
            # Numbers are read as float64, as decimals may appear late.
            is_whole = values.dtype.kind == "f" and bool((values % 1.0 == 0.0).all())
            y[known, target] = (values.astype(np.int64) if is_whole else values).tolist()
            has_label |= known
        self.n_dropped += int((~has_label).sum())
        return X[has_label], y[has_label]

    def label_values(self, labels: Any, name: str = "") -> Array:
        """Return labels without missing values as an array; `name` is the column if there are several."""
        name = name or self._table.label
        kind = labels.type
        if kinds.is_dictionary(kind):
            labels, kind = labels.dictionary_decode(), kind.value_type
        if name in self._table.text or is_text(kind):
            return np.array([str(value) for value in labels.to_pylist()], dtype=np.str_)
        if kinds.is_decimal(kind):
            return plain_numbers(labels.to_pylist())
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise StreamError(
                f"{self._source.name!r} has labels of type {kind} in column {name!r}: make them text,"
                " numbers or booleans, or name another column as the label."
            )
        return labels.to_numpy(zero_copy_only=False)


def _feature_name(column: str, part: str | None) -> str:
    return f"{column}.{part}" if part else column


def markers_of(na: Sequence[str], names: list[str], path: str) -> dict[str, list[float]]:
    """Return the numbers that are missing values in single columns."""
    markers = dict[str, list[float]]()
    for one, value in split_markers(na)[1]:
        for name in match_columns(one, names, path):
            markers.setdefault(name, []).extend([float(value)] if value != "*" else [])
    return markers


def match_columns(text: str | int, names: list[str], path: str) -> list[str]:
    """Return the columns that match a name, a position or a pattern; a column name is never treated as a pattern.

    Examples
    --------
    >>> match_columns("x*", ["x1", "y", "x2"], "a.csv"), match_columns("x*", ["x*", "x1"], "a.csv")
    (['x1', 'x2'], ['x*'])
    """
    if is_integer(text):
        return [names[find_column(text, names, path)]]
    if isinstance(text, str) and text not in names and any(letter in text for letter in "*?["):
        matches = [name for name in names if fnmatchcase(name, text)]
        if not matches:
            raise StreamError(f"{path!r} has no column like {text!r}: check the pattern.")
        return matches
    return [names[find_column(text, names, path)]]


def _not_a_column(label: object, path: str) -> StreamError:
    return StreamError(f"{path!r} has no column {label!r}: pass the name of a column, or its position.")


def find_column(label: str | int, names: list[str], path: str) -> int:
    """Return the position of a column given by name or position; the error lists the columns."""
    if is_integer(label):
        label = int(label)
        if not -len(names) <= label < len(names):
            raise StreamError(f"{path!r} has {len(names)} columns, so there is none at position {label}.")
        return label % len(names)
    if not isinstance(label, str):
        raise _not_a_column(label, path)
    if label in names:
        return names.index(label)
    if len(names) == 1 and (match := re.search("[;\t|]", names[0])):
        raise StreamError(
            f"{path!r} has no column {label!r}, but a single one: choose delimiter={match[0]!r} to split it."
        )
    near = difflib.get_close_matches(label, names, n=3, cutoff=0.5)
    some = f"{', '.join(map(short_repr, names[:8]))}{' ...' if len(names) > 8 else ''}"
    hint = f"did you mean {' or '.join(map(short_repr, near))}?" if near else f"it has {some}."
    raise StreamError(f"{path!r} has no column {label!r}; {hint}")
