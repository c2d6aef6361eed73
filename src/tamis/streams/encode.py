"""Columns of a table as numbers, online: the same codes whenever the same rows are read in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import StreamError

__all__ = ["ColumnEncoder"]


class ColumnEncoder:
    """Turns one column into float64, block by block.

    Numbers stay as they are, false and true become 0 and 1, dates and times seconds since 1970. Text becomes codes
    0, 1, 2, ... in the order in which its values first appear; a missing text is a value of its own.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    missing : {"error", "mean"}
        What happens to missing numbers: refused, or replaced by the mean of the column so far (0 before any).
    categorical : bool
        Whether the column holds categories even if they look like numbers.

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

    def __init__(self, name: str, missing: str, categorical: bool = False) -> None:
        self.name = name
        self.missing = missing
        self.categorical = categorical
        self._codes: dict[Any, int] = {}
        self._sum, self._count = 0.0, 0

    @property
    def categories(self) -> list[Any]:
        """The texts seen so far; the code of each is its position."""
        return list(self._codes)

    def encode(self, column: Any, first_row: int) -> NDArray[np.float64]:
        """Return a block of the column as numbers.

        Parameters
        ----------
        column : pyarrow.Array
        first_row : int
            Number of its first row in the source, for messages.

        Raises
        ------
        StreamError
            If a number is missing (and `missing` is "error") or infinite, or the type is none of the above.
        """
        import pyarrow as pa
        import pyarrow.types as kinds

        kind = column.type
        if kinds.is_dictionary(kind):
            column, kind = column.dictionary_decode(), kind.value_type
        if self.categorical or kinds.is_string(kind) or kinds.is_large_string(kind):
            return self._encode_categories(column)
        if kinds.is_temporal(kind) and not kinds.is_time(kind) and not kinds.is_duration(kind):
            seconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            return self._fill(_to_float(seconds) / 1e6, first_row)
        if kinds.is_null(kind) or kinds.is_boolean(kind) or kinds.is_decimal(kind):
            column = column.cast(pa.float64())
        elif kinds.is_binary(kind):
            raise StreamError(
                f"Column {self.name!r} holds bytes that are not UTF-8 text: convert the file to UTF-8."
            )
        elif not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            raise StreamError(
                f"Column {self.name!r} is of type {kind}, which is no number and no text: drop it first."
            )
        return self._fill(_to_float(column), first_row)

    def _encode_categories(self, column: Any) -> NDArray[np.float64]:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = [self._codes.setdefault(value, len(self._codes)) for value in encoded.dictionary.to_pylist()]
        found: NDArray[np.float64] = np.array(codes, dtype=np.float64)[encoded.indices.to_numpy()]
        return found

    def _fill(self, values: NDArray[np.float64], first_row: int) -> NDArray[np.float64]:
        finite = np.isfinite(values)
        if finite.all():
            if self.missing == "mean":
                self._sum, self._count = self._sum + float(values.sum()), self._count + len(values)
            return values
        at = int(np.flatnonzero(~finite)[0])
        if self.missing == "error" or np.isinf(values[at]):
            what = "infinite" if np.isinf(values[at]) else "missing"
            advice = "" if np.isinf(values[at]) else ", or choose missing='mean'"
            raise StreamError(
                f"Column {self.name!r} is {what} in row {first_row + at}: mend or drop the row{advice}."
            )
        if np.isinf(values).any():
            at = int(np.flatnonzero(np.isinf(values))[0])
            raise StreamError(
                f"Column {self.name!r} is infinite in row {first_row + at}: mend or drop the row."
            )
        self._sum += float(values[finite].sum())
        self._count += int(finite.sum())
        return np.where(finite, values, self._sum / self._count if self._count else 0.0)


def _to_float(column: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=True)
    return values
