"""Rows of frames and rows as dicts: columns by name, categories as codes, the label among the columns.

Text and categories become codes 0, 1, 2, ... in order of first appearance (or as declared), as in files; a missing
category is a separate one. Dates and times become seconds since 1970 (in UTC, if they have no time zone), times of day
seconds since midnight, durations seconds, false and true 0 and 1, missing numbers NaN.
"""

from __future__ import annotations

import datetime as dt
import difflib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tamis._validation import (
    Array,
    as_array,
    as_numbers,
    as_table,
    is_integer,
    is_missing,
    short_repr,
    warn_of_rounding,
)
from tamis._validation.arrays import is_null, is_numeric, is_text, reject_non_number
from tamis.base.categories import CategoryCodes, check_categories
from tamis.errors import DataError, StreamError
from tamis.streams.stream import ArrayStream, Batch, Stream

__all__ = ["DictStream", "FrameStream", "is_frame"]

_BLOCK = 1000  # rows


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame, in memory or lazy, of a library supported by narwhals."""
    frame = nw.from_native(value, pass_through=True)
    return isinstance(frame, nw.DataFrame | nw.LazyFrame)


class FrameStream(ArrayStream):
    """Rows of a pandas, Polars or Arrow frame, a LazyFrame or a DuckDB relation.

    Parameters
    ----------
    frame : frame of shape (n_rows, n_features)
        A lazy frame is computed, so its rows must fit in memory.
    label : str, int or tuple, optional
        Name of the label column, or its position if no column has that name; negative positions count from the end. A
        column whose name is not a string, such as 4 or a tuple, is also found by the string.
    y : array-like of shape (n_rows,), optional
        The labels, if they are not a column.

    Raises
    ------
    DataError
        If the label column does not exist, or a column contains neither numbers, text nor times; the message names it.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.5, None], "colour": ["red", "blue", "red"], "sold": [0, 1, 1]})
    >>> stream = FrameStream(frame, "sold")
    >>> stream.take(3)[0].tolist(), stream.categories
    ([[1.0, 0.0], [2.5, 1.0], [nan, 0.0]], {'colour': ['red', 'blue']})
    """

    def __init__(
        self, frame: Any, label: str | int | tuple[Any, ...] | None = None, *, y: Any = None
    ) -> None:
        lazy = nw.from_native(frame, pass_through=True)
        table = as_table(lazy.collect() if isinstance(lazy, nw.LazyFrame) else frame)
        assert table is not None
        names = table.frame.columns
        if label is not None:
            at = _find_label(label, table.own_names)
            label, y = names[at], table.column(at).to_numpy()
        kept = [name for name in names if name != label]
        if not kept:
            raise DataError(f"The frame has no column besides the label {label!r}: add the features.")
        self._label = label
        self.categories: dict[str, list[Any]] = {}
        columns = [self._numbers(name, table.frame[name]) for name in kept]
        super().__init__(np.column_stack(columns), y, kept)
        self.categorical = [j for j, name in enumerate(self.feature_names or ()) if name in self.categories]

    def describe(self) -> dict[str, Any]:
        """Return the label, the shape of the rows and a checksum of all of them."""
        return super().describe() | {"kind": "frame", "label": self._label}

    def _numbers(self, name: str, column: Any) -> NDArray[np.float64]:
        dtype = column.dtype
        if dtype.is_numeric() or dtype == nw.Boolean or is_null(column):
            if dtype in (nw.Int64, nw.UInt64):
                warn_of_rounding(column.drop_nulls().to_numpy(), lambda _: name)
            numbers: NDArray[np.float64] = np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
            return numbers
        if dtype in (nw.Datetime, nw.Date):
            times = column if dtype == nw.Datetime else column.cast(nw.Datetime("us"))
            return np.asarray(times.dt.timestamp("us").cast(nw.Float64).to_numpy(), dtype=np.float64) / 1e6
        values = column.to_list()
        if not is_text(column):
            if dtype in (nw.Object, nw.Time, nw.Duration):
                return _numbers_of(name, values)
            raise DataError(
                f"Column {name!r} is of type {dtype}, which is neither numbers, text nor times: drop or convert it."
            )
        check_categories(name, values)
        declared = column.cat.get_categories().to_list() if dtype in (nw.Categorical, nw.Enum) else []
        coder = CategoryCodes(declared)
        codes = np.array([coder.add(value) for value in values], dtype=np.float64)
        self.categories[name] = coder.values
        return codes


class DictStream(Stream):
    """Rows that are dicts, or pairs of a dict and its label, like the data sets of River.

    Parameters
    ----------
    source : iterable of dict or of (dict, label)
        Read again for each pass; an iterator can be read only once.
    label : str, int or tuple, optional
        Key of the label, if rows are dicts without a separate label; found as for :class:`FrameStream`.

    Attributes
    ----------
    feature_names : list of str
        The keys of the first row. A key that is absent from a later row is a missing value.
    categories : dict of str to list
        The categories of the columns whose first value is text, in the order of their codes.

    Notes
    -----
    Memory: a block of 1,000 rows. The first row is read immediately.

    Examples
    --------
    >>> rows = [{"size": 1.5, "colour": "red", "sold": 1}, {"size": 2.0, "colour": "blue", "sold": 0}]
    >>> stream = DictStream(rows, "sold")
    >>> X, y = stream.take(2)
    >>> X.tolist(), y.tolist(), stream.feature_names, stream.categorical
    ([[1.5, 0.0], [2.0, 1.0]], [1, 0], ['size', 'colour'], [1])
    """

    def __init__(self, source: Iterable[Any], label: str | int | tuple[Any, ...] | None = None) -> None:
        self._source, self._label = source, label
        self._once = iter(source) is source
        self._spent = False
        rows = iter(source)
        first = next(rows, None)
        if first is None:
            raise StreamError("The stream has no rows: check its source.")
        self._rows = itertools.chain([first], rows) if self._once else None
        if label is not None and isinstance(first, dict):
            self._label = [*first][_find_label(label, [*first])]
        x, _ = self._split(first)
        if not x:
            raise StreamError("The first row has no value besides its label: give rows with features.")
        self._keys = list(x)
        self.feature_names = [str(key) for key in self._keys]
        self.n_features = len(self._keys)
        self.n_rows = getattr(source, "n_samples", None)  # defined by River's data sets
        self.categorical = [j for j, value in enumerate(x.values()) if isinstance(value, str)]
        self.categories: dict[str, list[Any]] = {self.feature_names[j]: [] for j in self.categorical}

    def describe(self) -> dict[str, Any]:
        """Return the kind of the source; its contents are not known in advance."""
        return {
            "kind": "dicts",
            "source": type(self._source).__name__,
            "label": None if self._label is None else str(self._label),
        }

    def _split(self, row: Any) -> tuple[dict[Any, Any], Any]:
        """Return the features and the label of a row."""
        if isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], dict):
            return row
        if not isinstance(row, dict):
            raise StreamError(f"A row must be a dict or a pair (dict, label), got a {type(row).__name__}.")
        if self._label is None:
            raise StreamError("The rows are dicts without labels: name the key of the label with label=.")
        if self._label not in row:
            raise StreamError(f"A row has no key {self._label!r} for its label: drop it, or add the label.")
        return {key: value for key, value in row.items() if key != self._label}, row[self._label]

    def _all_blocks(self) -> Iterator[Batch]:
        if self._once and self._spent:
            raise StreamError("These rows have been read already: give a list of them, or a new iterator.")
        self._spent = True
        coders = {self._keys[j]: CategoryCodes() for j in self.categorical}
        kinds: dict[Any, str] = {}
        self.categories = {str(key): coder.values for key, coder in coders.items()}
        rows = iter(self._source) if self._rows is None else self._rows
        n_rows = 0
        while part := list(itertools.islice(rows, _BLOCK)):
            pairs = [self._split(row) for row in part]
            X = np.array([self._encode(x, coders, kinds, n_rows + i) for i, (x, _) in enumerate(pairs)])
            n_rows += len(part)
            yield X, _labels([label for _, label in pairs])

    def _encode(
        self, x: dict[Any, Any], coders: dict[Any, CategoryCodes], kinds: dict[Any, str], row: int
    ) -> list[float]:
        values: list[float] = []
        for key in self._keys:
            value = x.get(key)
            if (coder := coders.get(key)) is not None:
                check_categories(key, [value])
                values.append(coder.add(value))
                continue
            if type(value) is float and kinds.get(key) == "numbers":
                values.append(value)
                continue
            try:
                kind, number = _measure(key, value)
            except DataError:
                kind, number = "other", np.nan
            if kind and kinds.setdefault(key, "numbers" if kind == "other" else kind) != kind:
                began = kinds[key]
                raise StreamError(
                    f"Row {row + 1} has {short_repr(value)} for {key!r}, which began as {began}: convert it to"
                    f" {'a number' if began == 'numbers' else 'these'}, or every value of the column to text."
                )
            values.append(number)
        if len(x) > len(self._keys) or not x.keys() <= set(self._keys):
            new = next(key for key in x if key not in self._keys)
            raise StreamError(
                f"Row {row + 1} has a key {new!r} that is absent from the first row: give all keys in the first row, or"
                " use tamis.ByName for features that appear and disappear."
            )
        return values


def _measure(name: str, value: Any) -> tuple[str, float]:
    """Return the kind of a value ("" if it is missing) and its number: seconds for dates, times and durations.

    >>> _measure("at", dt.date(1970, 1, 2)), _measure("at", dt.time(1)), _measure("at", True)
    (('times without a zone', 86400.0), ('times of day', 3600.0), ('numbers', 1.0))
    """
    if is_missing(value):
        return "", np.nan
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.str[:3]}[us]").item()
    micro = dt.timedelta(microseconds=1)
    if isinstance(value, dt.datetime):
        since = value - dt.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else dt.UTC)
        return f"times with{'out' * (value.tzinfo is None)} a zone", since // micro / 1e6
    if isinstance(value, dt.date):
        return "times without a zone", (value - dt.date(1970, 1, 1)) // micro / 1e6
    if isinstance(value, dt.time):
        clock = dt.timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)
        return "times of day", clock // micro / 1e6
    if isinstance(value, dt.timedelta):
        return "durations", value // micro / 1e6
    reject_non_number(name, value)
    return "numbers", float(value)


def _numbers_of(name: str, values: list[Any]) -> NDArray[np.float64]:
    """Return the values of a column of objects, all numbers or all of one kind of times."""
    if all(map(is_numeric, set(map(type, values)))):
        return as_numbers(f"Column {name!r}", np.fromiter(values, dtype=object, count=len(values)))
    numbers, began = np.empty(len(values)), ""
    for i, value in enumerate(values):
        kind, numbers[i] = _measure(f"Column {name!r}", value)
        began = began or kind
        if kind not in ("", began):
            raise DataError(
                f"Column {name!r} contains {short_repr(value)} in row {i}, but began as {began}: convert it."
            )
    return numbers


def _labels(values: list[Any]) -> Array:
    """Return labels as an array that keeps labels of different types, and large integers, distinct."""
    kinds = {type(value) for value in values}
    if len(kinds) > 1 and not (kinds <= {int, float} and all(abs(value) <= 1 << 53 for value in values)):
        return np.fromiter(values, dtype=object, count=len(values))
    return as_array("The labels", values)


def _find_label(label: Any, names: list[Any]) -> int:
    """Return the position of the label column, given by its name, the string of its name, or its position."""
    texts = [str(name) for name in names]
    if label in names:
        return names.index(label)
    if label in texts:
        return texts.index(label)
    if is_integer(label) and -len(names) <= label < len(names):
        return int(label) % len(names)
    near = difflib.get_close_matches(str(label), texts, n=1)
    shown = [names[texts.index(near[0])]] if near else names[:20]
    hint = f"did you mean {shown[0]!r}?" if near else f"choose one of {', '.join(map(repr, shown))}."
    raise DataError(f"label={label!r} is not a column: {hint}")
