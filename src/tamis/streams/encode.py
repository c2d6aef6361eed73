"""Online encoding of table columns as numbers: the same rows in the same order always have the same codes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from tamis._validation import Table, as_rows, first_value, is_missing, short_repr
from tamis._validation.arrays import Array, Floats, Mask, as_numbers, is_numeric, warn_of_rounding
from tamis.base.categories import MAX_CATEGORIES, CategoryCodes, check_categories, reject_written_numbers
from tamis.errors import DataError, StreamError
from tamis.streams.arrow import kinds, pa

_EPOCH = dt.datetime(1970, 1, 1)


class ColumnError(StreamError, DataError):
    """A column of a stream that cannot be encoded, or rows that cannot be learned: the caller may expect either."""


class ColumnEncoder:
    """Encodes one column as float64, block by block; the result does not depend on how rows are split into blocks.

    Numbers are unchanged, false and true become 0 and 1. Dates and times become seconds since 1970, times of day
    seconds since midnight, or the `part` of the time. Text values become codes 0, 1, 2, ... in order of first
    appearance (or as declared); a missing text is a separate value. After `MAX_CATEGORIES` values, all new values share
    one more code.

    Parameters
    ----------
    name : str
        Name of the column, for error messages.
    missing : {"error", "mean", "keep"}
        Treatment of missing numbers: rejected, replaced by the mean of earlier rows (0 before any), or kept as NaN.
    categorical : bool
        Whether the column is categorical even if its values are numeric.
    declared : list of str, optional
        Categories known in advance, in the order of their codes.
    part : {"year", "weekday", "hour"}, optional
        Part of a time to return: the year including its elapsed fraction, the day of the week from 1 (Monday) to 7, or
        the hours since midnight.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encoder = ColumnEncoder("colour", "error")
    >>> encoder.encode(pa.array(["red", "blue", "red"]), first_row=1)
    array([0., 1., 0.])
    >>> encoder.encode(pa.array(["green", "blue"]), first_row=4)
    array([2., 1.])
    >>> encoder.categories
    ['red', 'blue', 'green']
    """

    def __init__(
        self, name: str, missing: str, categorical: bool = False, declared: list[str] | None = None,
        part: str | None = None,
    ) -> None:  # fmt: skip
        self.name, self.part, self.missing, self.categorical = name, part, missing, categorical
        self._codes = CategoryCodes(declared or (), MAX_CATEGORIES)
        self._sum, self._count = 0.0, 0
        self._began = ""  # what the values outside of files are: "text", "numbers" or a kind of times
        self._warned = False  # whether a warning about integers rounded by float64 was issued

    @property
    def categories(self) -> list[Any]:
        """The texts seen so far; the code of each is its position."""
        return list(self._codes.values)

    def mark(self) -> tuple[int, float, int]:
        """Return a mark of the current state, for `rollback`."""
        return len(self._codes.values), self._sum, self._count

    def rollback(self, mark: tuple[int, float, int]) -> None:
        """Restore the state at a mark."""
        self.restore(self.state(mark))

    def state(self, mark: tuple[int, float, int]) -> list[Any]:
        """Return the state at a mark, to be saved."""
        return [self.categories[: mark[0]], *mark[1:]]

    def restore(self, state: list[Any]) -> None:
        """Restore a saved state."""
        values, self._sum, self._count = state
        self._codes = CategoryCodes(values, MAX_CATEGORIES)

    def encode(self, column: Any, first_row: int, absent: Mask | None = None) -> Floats:
        """Return a block of the column as numbers.

        Parameters
        ----------
        column : pyarrow.Array
        first_row : int
            Number of its first row in the source, for messages.
        absent : ndarray of shape (n_rows,), bool, optional
            The rows that do not name the column: their values are missing.

        Raises
        ------
        StreamError
            If a number is missing (and `missing` is "error") or infinite, or the type is none of the above.
        """
        kind = column.type
        if is_text(kind) and kinds.is_dictionary(kind):
            self._codes.encode(column.dictionary.to_pylist())  # the order of the declaration
            column = column.dictionary_decode()
        if self.categorical or is_text(kind):
            if absent is None or not absent.any():
                return self._encode_categories(column)
            codes = np.full(len(absent), np.nan)
            codes[~absent] = self._encode_categories(column.filter(pa.array(~absent)))
            return codes
        if kinds.is_temporal(kind):
            values = _seconds(column) if self.part is None else _part(column, self.part)
            return self._impute(values, first_row, absent)
        if kinds.is_decimal(kind):
            try:
                column = column.cast(pa.int64())
            except pa.ArrowInvalid:  # fractions, or beyond 64 bits
                column = column.cast(pa.float64())
            kind = column.type
        elif kinds.is_null(kind) or kinds.is_boolean(kind):
            column = column.cast(pa.float64())
        elif kinds.is_binary(kind) or kinds.is_large_binary(kind):
            raise StreamError(
                f"Column {self.name!r} contains bytes that are not UTF-8 text: choose encoding='latin-1', or convert"
                " the file."
            )
        elif not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            return self._impute(self.encode_values(column.to_pylist(), first_row), first_row, absent)
        if kinds.is_integer(kind) and kind.bit_width == 64 and not self._warned:
            self._warned = warn_of_rounding(column.drop_null().to_numpy(), lambda _: self.name)
        return self._impute(_to_float(column), first_row, absent)

    def encode_values(self, column: Any, first_row: int) -> Floats:
        """Return a block of the column of a frame, or of a list of Python values, as numbers.

        Raises
        ------
        ColumnError
            If a value is neither a number, text nor a time, or of another kind than the first one.
        """
        is_list = isinstance(column, list)
        kind = nw.Object() if is_list else column.dtype
        if kind in (nw.Date, nw.Datetime) and self._began in (
            "",
            began := _clock(getattr(kind, "time_zone", None)),
        ):
            self._began = began
            micro = (column if kind == nw.Datetime else column.cast(nw.Datetime("us"))).dt.timestamp("us")
            return np.asarray(micro.cast(nw.Float64).to_numpy(), dtype=np.float64) / 1e6
        if kind in (nw.Categorical, nw.Enum):
            self._began = self._began or "text"
            # These are shared by all frames of Polars.
            if not (column.implementation.is_polars() and kind == nw.Categorical):
                self._codes.encode(column.cat.get_categories().to_list())
        values = column if is_list else column.to_list()
        if not self._began:
            first = first_value(values)
            self._began = "text" if kind == nw.String or isinstance(first, str) else self._measure(first)[0]
        if self._began == "text":
            check_categories(self.name, values)
            return self._codes.encode(values).astype(np.float64)
        if self._began in ("", "numbers") and all(map(is_numeric, set(map(type, values)))):
            return as_numbers(f"Column {self.name!r}", np.fromiter(values, dtype=object, count=len(values)))
        numbers = np.empty(len(values))
        for i, value in enumerate(values):
            kind, numbers[i] = self._measure(value)
            if kind not in ("", self._began):
                raise ColumnError(
                    f"Row {first_row + i} has {short_repr(value)} for {self.name!r}, which began as {self._began}:"
                    f" convert it to {'a number' if self._began == 'numbers' else 'these'}, or every value of the"
                    " column to text."
                )
        return numbers

    def _measure(self, value: Any) -> tuple[str, float]:
        """Return the kind of a value ("" if it is missing) and its number: seconds for dates, times and durations.

        >>> encoder = ColumnEncoder("at", "keep")
        >>> [encoder._measure(value) for value in (dt.date(1970, 1, 2), dt.time(1), True)]
        [('times without a zone', 86400.0), ('times of day', 3600.0), ('numbers', 1.0)]
        """
        if is_missing(value):
            return "", np.nan
        if isinstance(value, np.datetime64 | np.timedelta64):
            value = value.astype(f"{value.dtype.str[:3]}[us]").item()
        micro, zone = dt.timedelta(microseconds=1), getattr(value, "tzinfo", None)
        if isinstance(value, dt.datetime):
            epoch = _EPOCH if zone is None else _EPOCH.replace(tzinfo=dt.UTC)
            return _clock(zone), (value - epoch) // micro / 1e6
        if isinstance(value, dt.date):
            return _clock(None), (value - _EPOCH.date()) // micro / 1e6
        if isinstance(value, dt.time):
            clock = dt.timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)
            return "times of day", clock // micro / 1e6
        if isinstance(value, dt.timedelta):
            return "durations", value // micro / 1e6
        if type(value).__name__ == "MonthDayNano" and not value.months:  # an interval of DuckDB
            return "durations", (value.days * 86_400_000_000 + value.nanoseconds // 1000) / 1e6
        if isinstance(value, str):
            return "text", np.nan
        if not is_numeric(type(value)):
            raise ColumnError(
                f"Column {self.name!r} contains {short_repr(value)}, which is neither a number, text nor a time: drop"
                " or convert it."
            )
        return "numbers", float(as_numbers(f"Column {self.name!r}", value))

    def _encode_categories(self, column: Any) -> Floats:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = self._codes.encode(encoded.dictionary.to_pylist())
        return codes.astype(np.float64)[encoded.indices.to_numpy()]

    def _impute(self, values: Floats, first_row: int, absent: Mask | None) -> Floats:
        finite = np.isfinite(values)
        if not finite.all():
            self._raise_nonfinite(values if absent is None else np.where(absent, 0.0, values), first_row)
        if self.missing != "mean":
            return values
        # Sums are cumulative by row, so a mean depends neither on later rows nor on the division into blocks.
        sums = np.cumsum(np.concatenate([[self._sum], np.where(finite, values, 0.0)]))
        counts = self._count + np.concatenate([[0], np.cumsum(finite)])
        self._sum, self._count = float(sums[-1]), int(counts[-1])
        return np.where(finite, values, sums[:-1] / np.maximum(counts[:-1], 1))

    def _raise_nonfinite(self, values: Floats, first_row: int) -> None:
        for kind, item, advice in (
            ("infinite", np.isinf(values), ""),
            ("missing", np.isnan(values), ", or choose missing='mean'"),
        ):
            if item.any() and not (kind == "missing" and self.missing != "error"):
                row = first_row + int(np.argmax(item))
                raise StreamError(
                    f"Column {self.name!r} is {kind} in row {row}: fix or drop the row{advice}."
                )


class TableEncoder:
    """Encodes the columns of tables that arrive one after another; the text columns are in `categories`.

    Examples
    --------
    >>> encoder = TableEncoder()
    >>> encoder.encode(Table({"size": [1.5, 2.0], "colour": ["red", "blue"]}), first_row=1).tolist()
    [[1.5, 0.0], [2.0, 1.0]]
    >>> encoder.encode(Table({"size": [None], "colour": ["green"]}), first_row=3).tolist(), encoder.categories
    ([[nan, 2.0]], {'colour': ['red', 'blue', 'green']})
    """

    def __init__(self) -> None:
        self._encoders: dict[int, ColumnEncoder] = {}  # of the columns that were not all numbers
        self._is_numeric: set[int] = set()  # columns with numbers in earlier tables

    def encode(self, table: Table, first_row: int) -> Array:
        """Return a table as numbers, NaN where they are missing."""
        plain = [j for j in table.numeric if j not in self._encoders]
        rest = sorted({*range(len(table.own_names))}.difference(plain))
        numbers = as_rows(table.take(plain) if rest else table)[0] if plain else np.empty((len(table), 0))
        self._is_numeric.update(np.array(plain)[~np.isnan(numbers).all(axis=0)].tolist())
        if not rest:
            return numbers
        X = np.empty((len(table), len(table.own_names)))
        X[:, plain], objects = numbers, table.kinds.get(nw.Object(), ())
        for j in rest:
            if j not in self._encoders:
                self._encoders[j] = ColumnEncoder(table.texts[j], "keep")
                self._encoders[j]._began = "numbers" if j in self._is_numeric else ""
                if j not in table.kinds.get(nw.Categorical(), ()) and j not in table.kinds.get(nw.Enum, ()):
                    reject_written_numbers(table.texts[j], table.values(j))
            column = table.values(j) if j in objects else table.column(j)
            X[:, j] = self._encoders[j].encode_values(column, first_row)
        return X

    @property
    def categories(self) -> dict[str, list[Any]]:
        """The categories of each text column, in the order of their codes."""
        return {one.name: one.categories for one in self._encoders.values() if one._began == "text"}


def _clock(zone: Any) -> str:
    return f"times with{'out' * (zone is None)} a zone"


def _seconds(column: Any) -> Floats:
    to = pa.time64("us") if kinds.is_time(column.type) else pa.timestamp("us")
    to = pa.duration("us") if kinds.is_duration(column.type) else to
    return _to_float(column.cast(to, safe=False).cast(pa.int64())) / 1e6


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text or categories.

    >>> import pyarrow as pa
    >>> is_text(pa.string()), is_text(pa.dictionary(pa.int32(), pa.int64())), is_text(pa.float64())
    (True, True, False)
    """
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_dictionary(kind))


def time_parts(kind: Any) -> tuple[str, ...]:
    """Return the parts of a time that a column of that Arrow type provides; () if it has no times.

    >>> import pyarrow as pa
    >>> time_parts(pa.timestamp("s")), time_parts(pa.date32()), time_parts(pa.float64())
    (('year', 'weekday', 'hour'), ('year', 'weekday'), ())
    """
    if kinds.is_timestamp(kind):
        return ("year", "weekday", "hour")
    if kinds.is_date(kind):
        return ("year", "weekday")
    return ("hour",) if kinds.is_time(kind) else ()


def _part(column: Any, part: str) -> Floats:
    """Return one part of a time; NaN where it is missing."""
    seconds = _seconds(column)
    if part == "hour":
        return seconds % 86400 / 3600
    days = np.floor(seconds / 86400)
    if part == "weekday":
        return (days + 3) % 7 + 1  # 1970 began on a Thursday
    with np.errstate(invalid="ignore"):
        times = np.where(np.isnan(seconds), np.nan, seconds * 1e6).astype("datetime64[us]")
    year = times.astype("datetime64[Y]")
    length = (year + np.timedelta64(1, "Y")).astype("datetime64[D]") - year.astype("datetime64[D]")
    passed = (times - year.astype("datetime64[us]")) / length.astype("timedelta64[us]")
    values: Floats = 1970.0 + year.astype(np.float64) + passed
    return np.where(np.isnan(seconds), np.nan, values)


def _to_float(column: Any) -> Floats:
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)
