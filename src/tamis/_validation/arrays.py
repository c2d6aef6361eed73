"""Validation of columns, numbers and weights; every message names the value and what to pass."""

from __future__ import annotations

import contextlib
import datetime as dt
import numbers
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._validation.values import check_number, is_integer, is_missing, short_repr
from tamis.errors import DataError

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))  # in native byte order

_WEIGHTS = (1e-100, 1e15)  # squares and sums of weights in this range are finite
_MOST_REPEATED = 100_000_000  # rows
EXACT = 1 << 53  # float64 represents all integers up to it

Rows: TypeAlias = Any  # a C-contiguous float32 / float64 ndarray, or a canonical CSR matrix


def are_categories(categorical: Any) -> bool:
    """Return whether columns that arrive later are categorical; reject a mask, which has a fixed length."""
    if isinstance(categorical, str):
        return True
    if categorical is not None and np.asarray(categorical).dtype == bool:
        raise ValueError(
            "categorical is a mask of a fixed number of columns: name the columns, or choose 'all'."
        )
    return False


def check_width(n_features: Any, n_before: int, names: Any, what: str) -> int:
    """Return the number of features that a model is widened to; columns with names belong to :class:`tamis.ByName`."""
    if names is not None:
        raise ValueError(
            f"n_features cannot be changed to {n_features!r} when the columns have names: create a new {what}."
        )
    check_number("n_features", n_features, low=n_before, integer=True)
    return int(n_features)


def existing_columns(columns: Any, n_features: int) -> Ints:
    """Return the columns to reset, in order, each once; raise if one does not exist."""
    places: Ints = np.unique(np.asarray(columns, dtype=np.intp))
    if len(places) and not 0 <= places[0] <= places[-1] < n_features:
        raise ValueError(f"columns must be from 0 to {n_features - 1}, got {short_repr(columns)}.")
    return places


def columns_of(
    columns: Any, n_features: int, names: list[str] | None, parameter: str = "categorical"
) -> NDArray[np.intp]:
    """Return the positions of columns that a parameter names.

    Parameters
    ----------
    columns : None, "all", list of int or str, or bool mask of shape (n_features,)
    n_features : int
    names : list of str, optional
    parameter : str, default="categorical"
        Its name, for messages.

    Returns
    -------
    ndarray of int

    Raises
    ------
    ValueError
        If it is none of these, or names a column that does not exist.

    Examples
    --------
    >>> columns_of(["b", 2], 4, ["a", "b", "c", "d"])
    array([1, 2])
    """
    if columns is None:
        return np.empty(0, dtype=np.intp)
    if isinstance(columns, str) and columns == "all":
        return np.arange(n_features)
    is_named = isinstance(columns, list) and any(isinstance(column, tuple) for column in columns)
    if isinstance(columns, str) or not (is_named or np.ndim(columns) == 1):
        raise ValueError(f"{parameter} must be 'all', a list of columns or a mask, got {columns!r}.")
    columns = list(columns)
    if columns and all(isinstance(value, bool | np.bool_) for value in columns):
        if len(columns) != n_features:
            raise ValueError(f"{parameter} is a mask of {len(columns)} columns, but there are {n_features}.")
        return np.flatnonzero(columns)
    position = {name: j for j, name in enumerate(names or ())}
    items = [position.get(column, -1) if isinstance(column, str) else column for column in columns]
    for column, j in zip(columns, items, strict=True):
        if not (is_integer(j) and 0 <= j < n_features):
            known = f"0 to {n_features - 1}" + (f" or {', '.join(names)}" if names else ", without names")
            raise ValueError(f"{parameter} names the column {column!r}, but the columns are {known}.")
    return np.unique(np.array(items, dtype=np.intp))


class _Lent:
    """Exposes the memory of a read-only array as writeable."""

    def __init__(self, array: Array) -> None:
        place = array.__array_interface__
        self.__array_interface__ = {**place, "data": (place["data"][0], False)}
        self.lender = array  # keeps the memory alive


def as_if_writeable(array: Array) -> Array:
    """Return an array that kernels compiled for writeable arrays accept; none of them writes into it."""
    return array if array.flags.writeable else np.asarray(_Lent(array))


def fill_masked(values: Any) -> Any:
    """Return a masked array, or a list of masked rows, with NaN for masked values; anything else unchanged."""
    values = _stack_masked(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    kind = values.dtype if values.dtype in FLOATS else np.float64 if values.dtype.kind in "fiub" else object
    return np.ma.filled(values.astype(kind), np.nan)


def _stack_masked(values: Any) -> Any:
    """Return a list with masked parts as one masked array: NumPy would drop the masks."""
    masked = isinstance(values, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in values)
    return np.ma.stack(values) if masked else values


def reject_masked(name: str, values: Any) -> None:
    """Raise if a value is masked: NaN cannot represent a missing label, weight or score."""
    values = _stack_masked(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(values))[0].tolist()))
        raise DataError(f"{name}[{at}] is masked: drop the rows with masked values first.")


def as_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return values of any type as float64; `name` identifies them in the message."""
    reject_masked(name, values)
    array = as_array(name, values)
    if array.dtype.kind in "fiub":
        return np.asarray(array, dtype=np.float64)
    if array.dtype.kind not in "OUSV":
        raise DataError(f"{name} is of dtype {array.dtype}: convert it to real numbers first.")
    flat = array.ravel().tolist()
    if all(map(is_numeric, kinds := set(map(type, flat)))):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if not kinds <= {float, int, bool, type(None)}:  # NumPy reads None as NaN
                flat = [np.nan if is_missing(value) else value for value in flat]
            return np.array(flat, dtype=np.float64).reshape(array.shape)
    for value in flat:
        reject_non_number(name, value)
    raise DataError(f"{name} is of dtype {array.dtype}: convert it to real numbers first.")


def is_time(value: Any) -> bool:
    """Return whether a value is a date, a time or a duration of Python, NumPy or Arrow."""
    kinds = dt.date | dt.time | dt.timedelta | np.datetime64 | np.timedelta64
    return isinstance(value, kinds) or type(value).__name__ == "MonthDayNano"


class NotANumberError(DataError, TypeError):
    """A value of a type that is not a number; also a TypeError, as scikit-learn requires."""


def is_numeric(kind: type) -> bool:
    """Return whether values of a type are real numbers or missing values; arrays of one number are not."""
    if issubclass(kind, np.timedelta64):  # a subclass of the integers
        return False
    is_real = issubclass(kind, numbers.Real | Decimal | np.bool_ | None)
    return is_real or kind.__name__ in ("NAType", "NaTType")


def reject_non_number(name: str, value: Any) -> None:
    """Raise if a value is not a real number that float64 represents; `name` begins the message."""
    if is_time(value):
        raise DataError(
            f"{name} contains times: convert them to numbers, such as seconds since 1970, before learning."
        )
    if isinstance(value, str | bytes):
        raise DataError(
            f"{name} contains {short_repr(value)}, which is text: encode it, or convert it"
            " to a number, before learning."
        )
    try:
        float(np.nan if is_missing(value) else value)
        why = "" if is_numeric(type(value)) else f"it is of type {type(value).__name__}"
    except OverflowError:
        raise DataError(
            f"{name} contains {short_repr(value)}, which float64 cannot represent: scale or drop it."
        ) from None
    except (TypeError, ValueError) as error:
        why = str(error)
    if why:
        raise NotANumberError(
            f"{name} contains {short_repr(value)}, which is not a number ({why}): encode it before learning."
        )


def as_array(name: str, values: Any) -> Array:
    """Return the values as an array, without converting numbers among text to text."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(
            f"{name} must be an array, but its entries differ in length: give all of them the same number of values."
        ) from None
    if array.ndim == 1 and array.dtype.kind in "US" and len({type(value) for value in values}) > 1:
        return np.asarray(values, dtype=object)
    # NumPy rounds integers on both sides of 2**63.
    is_list = array.ndim == 1 and array.dtype.kind == "f" and isinstance(values, list | tuple) and len(array)
    if is_list and all(type(value) is int for value in values):
        return np.asarray(values, dtype=object)
    return array


def warn_of_rounding(values: Array, column: Callable[[int], Any]) -> bool:
    """Warn, and return True, if float64 changes an integer: ids that differ in their last digits become equal.

    Parameters
    ----------
    values : ndarray
        Values of any dtype; only 64-bit integers can be too large.
    column : callable
        The name or position of the column of entry i of the flattened values.
    """
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return False
    if int(values.min()) >= -EXACT and int(values.max()) <= EXACT:
        return False
    flat = values.reshape(-1)
    rounded = flat.astype(np.float64)
    fits = rounded < 2.0 ** (63 if values.dtype.kind == "i" else 64)  # rounding up may exceed the type
    at = np.flatnonzero(~fits | (np.where(fits, rounded, 0.0).astype(flat.dtype) != flat))
    if len(at):
        warnings.warn(
            f"Column {column(int(at[0]))!r} contains {flat[at[0]]}, and float64 rounds integers beyond 2**53 ="
            f" {EXACT}: values that differ may become equal; drop the column, or encode it as categories.",
            stacklevel=2,
        )
    return bool(len(at))


def as_weights(
    sample_weight: Any, n_rows: int, limits: tuple[float, float] = _WEIGHTS, *, some: bool = False
) -> Array | None:
    """Return the row weights as float64, 0 or within the limits, or None; with `some`, one must be positive."""
    if sample_weight is None:
        return None
    weights = as_if_writeable(as_numbers("sample_weight", sample_weight))
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(
            f"sample_weight has shape {weights.shape}, but the batch has {n_rows} rows: pass one weight per row."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        at = int(np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0])
        raise DataError(f"sample_weight[{at}] is {weights[at]}: weights must be finite and not negative.")
    least, most = weights.min(initial=1.0, where=weights > 0.0), weights.max(initial=1.0)
    if least < limits[0] or most > limits[1]:
        at = int(np.flatnonzero(weights == (most if most > limits[1] else least))[0])
        raise DataError(
            f"sample_weight[{at}] is {weights[at]}: weights must be 0 or from {limits[0]:g} to {limits[1]:g},"
            " so that their squares and sums are finite; rescale them."
        )
    if some and not weights.any():
        raise DataError("Every sample_weight is zero: give at least one row a weight.")
    return weights


def repeated_rows(sample_weight: Array) -> NDArray[np.intp]:
    """Return the indices of the rows, each repeated by its weight.

    Raises
    ------
    DataError
        If a weight is not an integer, or the weights sum to more than 100,000,000 rows.

    Examples
    --------
    >>> repeated_rows(np.array([1.0, 0.0, 2.0]))
    array([0, 2, 2])
    """
    if (part := sample_weight != np.floor(sample_weight)).any():
        at = int(np.flatnonzero(part)[0])
        raise DataError(
            f"sample_weight[{at}] is {sample_weight[at]:g}: this method counts rows, so weights must be whole numbers."
        )
    if (total := float(sample_weight.sum())) > _MOST_REPEATED:
        raise DataError(
            f"sample_weight sums to {total:g}: this method repeats a row by its weight, and accepts"
            f" {_MOST_REPEATED:,} rows at most; scale the weights."
        )
    return np.repeat(np.arange(len(sample_weight)), sample_weight.astype(np.int64))


def repeat_rows(X: Rows, y: Array, sample_weight: Array) -> tuple[Rows, Array]:
    """Return the rows, each repeated by its weight.

    Raises
    ------
    DataError
        If a weight is not an integer, or the repeated rows are too many.

    Examples
    --------
    >>> repeat_rows(np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0]), np.array([2.0, 0.0, 1.0]))
    (array([[1.],
           [1.],
           [3.]]), array([0, 0, 0]))
    """
    at = repeated_rows(sample_weight)
    return X[at], y[at]
