"""Columns of a table as numbers, online: the same codes whenever the same rows are read in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import StreamError

__all__ = ["MAX_CATEGORIES", "ColumnEncoder"]

MAX_CATEGORIES = 10_000  # known ones of a column; a column of free text must not fill the memory


class ColumnEncoder:
    """Turns one column into float64, block by block; how the rows are cut into blocks makes no difference.

    Numbers stay as they are, false and true become 0 and 1, dates and times seconds since 1970, times of day seconds
    since midnight. Text becomes codes 0, 1, 2, ... in the order in which its values first appear (or are declared); a
    missing text is a value of its own. After `MAX_CATEGORIES` values, those never seen before share one more code.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    missing : {"error", "mean", "keep"}
        What happens to missing numbers: refused, replaced by the mean of the rows before (0 before any), or left NaN.
    categorical : bool
        Whether the column holds categories even if they look like numbers.
    declared : list of str, optional
        Categories known in advance, in the order of their codes.

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
        self, name: str, missing: str, categorical: bool = False, declared: list[str] | None = None
    ) -> None:
        self.name = name
        self.missing = missing
        self.categorical = categorical
        self._codes: dict[Any, int] = {value: code for code, value in enumerate(declared or ())}
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
        if kinds.is_temporal(kind):
            return self._fill(_seconds(column), first_row)
        if kinds.is_null(kind) or kinds.is_boolean(kind) or kinds.is_decimal(kind):
            column = column.cast(pa.float64())
        elif kinds.is_binary(kind) or kinds.is_large_binary(kind):
            raise StreamError(
                f"Column {self.name!r} holds bytes that are not UTF-8 text: convert the file to UTF-8."
            )
        elif not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            raise StreamError(
                f"Column {self.name!r} is of type {kind}, which is no number and no text: choose"
                f" drop=[{self.name!r}]."
            )
        return self._fill(_to_float(column), first_row)

    def _encode_categories(self, column: Any) -> NDArray[np.float64]:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = [self._code(value) for value in encoded.dictionary.to_pylist()]
        found: NDArray[np.float64] = np.array(codes, dtype=np.float64)[encoded.indices.to_numpy()]
        return found

    def _code(self, value: Any) -> int:
        if value != value:  # NaN, which equals no key, not even itself
            value = None
        if value not in self._codes and len(self._codes) < MAX_CATEGORIES:
            self._codes[value] = len(self._codes)
        return self._codes.get(value, len(self._codes))

    def _fill(self, values: NDArray[np.float64], first_row: int) -> NDArray[np.float64]:
        finite = np.isfinite(values)
        if not finite.all():
            self._refuse(values, first_row)
        if self.missing != "mean":
            return values
        # Sums run row by row, so a mean depends neither on later rows nor on where blocks begin.
        sums = np.cumsum(np.concatenate([[self._sum], np.where(finite, values, 0.0)]))
        counts = self._count + np.concatenate([[0], np.cumsum(finite)])
        self._sum, self._count = float(sums[-1]), int(counts[-1])
        return np.where(finite, values, sums[:-1] / np.maximum(counts[:-1], 1))

    def _refuse(self, values: NDArray[np.float64], first_row: int) -> None:
        for what, found, advice in (
            ("infinite", np.isinf(values), ""),
            ("missing", np.isnan(values), ", or choose missing='mean'"),
        ):
            if found.any() and not (what == "missing" and self.missing != "error"):
                row = first_row + int(np.argmax(found))
                raise StreamError(
                    f"Column {self.name!r} is {what} in row {row}: mend or drop the row{advice}."
                )


def _seconds(column: Any) -> NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.types as kinds

    to = pa.time64("us") if kinds.is_time(column.type) else pa.timestamp("us")
    to = pa.duration("us") if kinds.is_duration(column.type) else to
    return _to_float(column.cast(to, safe=False).cast(pa.int64())) / 1e6


def _to_float(column: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)
