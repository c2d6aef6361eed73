"""Validation of rows, columns, numbers and weights; every message names the value and what to pass."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import operator
import warnings
from collections.abc import Callable, Sized
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation.values import is_integer, is_missing, short_repr
from tamis.errors import DataError

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))  # in native byte order

_WEIGHTS = (1e-100, 1e15)  # squares and sums of weights in this range are finite
_TEXTS = (nw.String, nw.Categorical, nw.Enum)
_MOST_REPEATED = 100_000_000  # rows
_EXACT = 1 << 53  # float64 represents all integers up to it

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


def columns_of(categorical: Any, n_features: int, names: list[str] | None) -> NDArray[np.intp]:
    """Return the positions of the categorical columns.

    Parameters
    ----------
    categorical : None, "all", list of int or str, or bool mask of shape (n_features,)
    n_features : int
    names : list of str, optional

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
    if categorical is None:
        return np.empty(0, dtype=np.intp)
    if isinstance(categorical, str) and categorical == "all":
        return np.arange(n_features)
    is_named = isinstance(categorical, list) and any(isinstance(column, tuple) for column in categorical)
    if isinstance(categorical, str) or not (is_named or np.ndim(categorical) == 1):
        raise ValueError(f"categorical must be 'all', a list of columns or a mask, got {categorical!r}.")
    columns = list(categorical)
    if columns and all(isinstance(value, bool | np.bool_) for value in columns):
        if len(columns) != n_features:
            raise ValueError(f"categorical is a mask of {len(columns)} columns, but there are {n_features}.")
        return np.flatnonzero(columns)
    position = {name: j for j, name in enumerate(names or ())}
    items = [position.get(column, -1) if isinstance(column, str) else column for column in columns]
    for column, j in zip(columns, items, strict=True):
        if not (is_integer(j) and 0 <= j < n_features):
            known = f"0 to {n_features - 1}" + (f" or {', '.join(names)}" if names else ", without names")
            raise ValueError(f"categorical names the column {column!r}, but the columns are {known}.")
    return np.unique(np.array(items, dtype=np.intp))


def as_rows(X: Any) -> tuple[Rows, list[str] | None]:
    """Return the batch in the format of the kernels, and its column names if it has any.

    Dense data becomes a C-contiguous float32 or float64 array (a view of the caller's array if possible), sparse
    data a CSR matrix with sorted, summed indices. Masked values become NaN. Read-only arrays are exposed as writeable
    ones, because kernels are compiled once, and never write into rows.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous and X.dtype in _FLOATS:
        names = None  # the fast path: nothing to convert
    elif sp.issparse(X):
        X, names = _csr(X), None
    else:
        X, names = _dense(fill_masked(X))
    if isinstance(X, np.ndarray):
        X = _as_if_writeable(X)
    if X.shape[0] == 0:
        raise DataError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] == 0:
        raise DataError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X, names


def has_rows(X: Any) -> bool:
    """Return whether a batch has rows: an empty one, as a poll of a queue may return, changes no model.

    >>> has_rows(np.empty((0, 3))), has_rows([]), has_rows([[1.0]])
    (False, False, True)
    """
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape:
        return bool(shape[0])
    return not isinstance(X, Sized) or len(X) > 0


def _csr(X: Any) -> Rows:
    if X.ndim != 2:
        raise DataError(f"X must have 2 dimensions, got a sparse array of shape {X.shape}; reshape it.")
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported: X must contain real numbers.")
    caller, X = X, sp.csr_matrix(_validate_sparse(X))
    if X.dtype not in _FLOATS:
        warn_of_rounding(X.data, lambda i: int(X.indices[i]))
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy() if X is caller or np.shares_memory(X.data, getattr(caller, "data", X.data)) else X
        X.sum_duplicates()
    parts = X.data, X.indices, X.indptr
    if all(part.flags.writeable for part in parts) and X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    kind = np.int32 if max(X.nnz, *X.shape) < 2**31 else np.int64
    alike = sp.csr_matrix(X.shape, dtype=X.dtype)  # the constructor would convert the indices again
    alike.data, alike.indices, alike.indptr = (
        _as_if_writeable(part if part is X.data else part.astype(kind, copy=False)) for part in parts
    )
    alike.has_canonical_format = True
    return alike


def _validate_sparse(X: Any) -> Any:
    """Return the sparse matrix if its indices are in range; code that converts or reads it does not check."""
    kind, sound = X.format, True
    if kind == "coo":
        sound = len(X.row) == len(X.col) == len(X.data) and all(map(_all_in_range, (X.row, X.col), X.shape))
    elif kind in ("csr", "csc", "bsr"):
        height, width = X.blocksize if kind == "bsr" else (1, 1)
        n, m = (X.shape[1], X.shape[0]) if kind == "csc" else (X.shape[0] // height, X.shape[1] // width)
        start, at = X.indptr, X.indices
        sound = len(start) == n + 1 and start[0] == 0 and bool((start[1:] >= start[:-1]).all())
        sound = sound and start[-1] <= len(at) == len(X.data) and _all_in_range(at[: start[-1]], m)
    if not sound:
        raise DataError(
            f"X is a {kind.upper()} matrix whose indices do not match its shape {X.shape}: rebuild it."
        )
    return X


def _all_in_range(indices: Array, n: int) -> bool:
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < n)


class _Lent:
    """Exposes the memory of a read-only array as writeable."""

    def __init__(self, array: Array) -> None:
        place = array.__array_interface__
        self.__array_interface__ = {**place, "data": (place["data"][0], False)}
        self.lender = array  # keeps the memory alive


def _as_if_writeable(array: Array) -> Array:
    return array if array.flags.writeable else np.asarray(_Lent(array))


@dataclass(frozen=True)
class Table:
    """A frame of any library, whose columns are taken by position.

    Attributes
    ----------
    frame : narwhals.DataFrame
        Its names are distinct strings.
    own_names : list
        The names that the caller gave: strings, numbers, tuples or None.
    """

    frame: Any
    own_names: list[Any]

    @property
    def names(self) -> list[str] | None:
        """The names; None unless all are strings."""
        return self.own_names if all(isinstance(name, str) for name in self.own_names) else None

    @functools.cached_property
    def kinds(self) -> dict[Any, list[int]]:
        """The positions of the columns of each type, in the order of their first columns."""
        native = self.frame.to_native()
        own = native.dtypes if hasattr(native, "dtypes") else native.schema.types
        alike: dict[Any, list[int]] = {}
        for j, kind in enumerate(own):
            # What objects are depends on their values.
            alike.setdefault((kind, j if getattr(kind, "kind", "") == "O" else None), []).append(j)
        # Converting the type of every column of a wide frame takes longer than its values.
        first = self.frame[:, [at[0] for at in alike.values()]].schema.values()
        kinds: dict[Any, list[int]] = {}
        for kind, at in zip(first, alike.values(), strict=True):
            kinds.setdefault(kind, []).extend(at)
        return kinds

    @property
    def texts(self) -> list[int]:
        """The positions of the columns of text or categories."""
        mine = [at for kind, at in self.kinds.items() if kind in (*_TEXTS, nw.Object)]
        return [j for at in mine for j in at if is_text(self.column(j))]

    def column(self, j: int) -> Any:
        """Return a column by its position."""
        return self.frame[self.frame.columns[j]]


def as_table(X: Any) -> Table | None:
    """Return a frame of any library in memory as a table; None for anything else."""
    if isinstance(X, Table):
        return X
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return None
        X = frame.to_native()
        names = X.columns.tolist() if frame.implementation.is_pandas_like() else frame.columns
        if not all(isinstance(name, str) for name in names):
            texts = [*map(str, names)]
            distinct = texts if len(set(texts)) == len(set(names)) else [*map(repr, names)]
            frame = nw.from_native(X.set_axis(distinct, axis=1), eager_only=True)
        return Table(frame, names)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(X, "column_names", None) or X.columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"The frame has {names.count(twice)} columns named {twice!r}: rename all but one."
        ) from None


def as_frame(X: Any) -> Any:
    """Return a frame of any library as a narwhals frame whose names are strings, anything else unchanged."""
    table = as_table(X)
    return X if table is None else table.frame


def with_accepted_names(X: Any) -> Any:
    """Return a frame without names if only some are strings, which scikit-learn rejects; anything else unchanged."""
    names = list(X.columns) if hasattr(X, "set_axis") and hasattr(X, "columns") else []
    is_text = [isinstance(name, str) for name in names]
    return X.set_axis(range(len(names)), axis=1) if any(is_text) and not all(is_text) else X


def fill_masked(values: Any) -> Any:
    """Return a masked array, or a list of masked rows, with NaN for masked values; anything else unchanged."""
    values = _stack_masked(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    kind = values.dtype if values.dtype in _FLOATS else np.float64 if values.dtype.kind in "fiub" else object
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
    if all(map(is_numeric, set(map(type, flat)))):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            numbers = [np.nan if is_missing(value) else value for value in flat]
            return np.array(numbers, dtype=np.float64).reshape(array.shape)
    for value in flat:
        reject_non_number(name, value)
    raise DataError(f"{name} is of dtype {array.dtype}: convert it to real numbers first.")


def is_text(column: Any) -> bool:
    """Return whether a column of a frame has text or categories."""
    if column.dtype == nw.Object:
        return any(isinstance(value, str) for value in column.to_list())
    return column.dtype in _TEXTS


def is_null(column: Any) -> bool:
    """Return whether a column has the type of Polars or Arrow for columns without any value."""
    return bool(column.dtype == nw.Unknown and column.is_null().all())


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


def _dense(X: Any) -> tuple[Array, list[str] | None]:
    names, table = None, as_table(X)
    if table is not None:
        names, X = table.names, _numbers_of(table)
    reject_non_array("X", X, "an array, a CSR matrix or a frame of shape (n_rows, n_features)")
    array = as_array("X", X)
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: X must contain real numbers.")
    if array.ndim != 2:
        advice = "Reshape your data: array.reshape(1, -1) for one row, array.reshape(-1, 1) for one feature."
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array of shape {array.shape} instead. {advice}"
        )
    if array.dtype.kind in "mM":
        raise DataError(f"X is of dtype {array.dtype}: convert times to numbers before learning from them.")
    if array.dtype.kind not in "fiub":
        columns = [
            as_numbers(f"Column {(names[j] if names else j)!r}", array[:, j]) for j in range(array.shape[1])
        ]
        array = np.column_stack(columns) if columns else array.astype(np.float64)
    rows = np.ascontiguousarray(array, dtype=array.dtype if array.dtype in _FLOATS else np.float64)
    if table is not None and array.dtype.kind not in "iu":  # integers mixed with other numbers
        integers = sorted(table.kinds.get(nw.Int64(), []) + table.kinds.get(nw.UInt64(), []))
        large = (np.abs(rows[:, integers]) >= _EXACT).any(axis=0) if integers else ()
        for j in [j for j, is_large in zip(integers, large, strict=True) if is_large]:
            values = table.column(j).drop_nulls().to_numpy()
            warn_of_rounding(values, lambda _, name=table.frame.columns[j]: name)  # type: ignore[misc]
    else:
        warn_of_rounding(array, lambda i: (names or range(array.shape[1]))[i % array.shape[1]])
    return rows, names


def _numbers_of(table: Table) -> Array:
    """Return the values of a frame; raise for the first column that is not numeric."""
    wrong = [
        (j, kind)
        for kind, at in table.kinds.items()
        if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object))
        for j in at
        if not is_null(table.column(j))
    ]
    for j, kind in sorted(wrong, key=operator.itemgetter(0)):
        name = table.frame.columns[j]
        if kind == nw.Unknown and "Sparse" in str(getattr(table.frame.to_native(), "dtypes", {}).get(name)):
            raise DataError(
                f"Column {name!r} of X is a pandas Sparse column: pass a CSR matrix, X.sparse.to_coo().tocsr(), or"
                " dense columns, X.astype(float)."
            )
        raise DataError(f"Column {name!r} is of type {kind}, not numeric: encode it before learning from it.")
    values: Array = table.frame.to_numpy()
    return values


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
    if int(values.min()) >= -_EXACT and int(values.max()) <= _EXACT:
        return False
    flat = values.reshape(-1)
    rounded = flat.astype(np.float64)
    fits = rounded < 2.0 ** (63 if values.dtype.kind == "i" else 64)  # rounding up may exceed the type
    at = np.flatnonzero(~fits | (np.where(fits, rounded, 0.0).astype(flat.dtype) != flat))
    if len(at):
        warnings.warn(
            f"Column {column(int(at[0]))!r} contains {flat[at[0]]}, and float64 rounds integers beyond 2**53 ="
            f" {_EXACT}: values that differ may become equal; drop the column, or encode it as categories.",
            stacklevel=2,
        )
    return bool(len(at))


def reject_non_array(name: str, values: Any, wanted: str) -> None:
    """Raise if NumPy would make an array without rows of the values; the message states what to pass instead.

    Parameters
    ----------
    name : str
        What the values should be; the message begins with it.
    values : object
        The values; a lazy frame is not computed.
    wanted : str
        What to pass.
    """
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        return
    kind = type(values).__name__
    if values is None:
        what, instead = "None", wanted
    elif isinstance(values, str | bytes):
        what, instead = f"the text {short_repr(values)}", f"{wanted}; a file is read by tamis.open_file"
    elif isinstance(values, dict):
        what, instead = "a dict", f"{wanted}, such as pandas.DataFrame of it"
    elif isinstance(values, list | tuple):
        if not (values and isinstance(values[0], dict)):
            return
        what, instead = f"a {kind} of dicts", f"{wanted}, such as pandas.DataFrame of it"
    elif isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame):
        methods = [method for method in ("collect", "to_arrow_table") if hasattr(values, method)]
        what = f"a {kind}, which has no rows yet"
        instead = f"what its {methods[0]}() returns" if methods else wanted
    elif hasattr(values, "__getitem__") or isinstance(values, numbers.Number):
        return
    else:
        what, instead = f"a {kind}", wanted
    raise DataError(f"{name} is {what}: pass {instead}.")


def reject_nonfinite(X: Rows, names: list[str] | None = None, *, allow_nan: bool = False) -> None:
    """Raise if a value of the batch is infinite (or NaN, unless allowed); the message locates it."""
    values = X.data if sp.issparse(X) else X
    flat = values.reshape(-1)
    # One pass; a sum is finite only if all its terms are.
    if flat.shape[0] <= 10_000:  # BLAS splits longer products between threads
        total = np.vdot(flat, flat)  # unlike `dot` it does not warn of overflow, and `errstate` takes 5 us
    else:
        with np.errstate(all="ignore"):
            total = flat.sum(dtype=np.float64)
    if math.isfinite(total):
        return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(X):
        at = int(np.flatnonzero(bad)[0])
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        value = values[at]
    else:
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = values[row, column]
    kind = "NaN" if np.isnan(value) else "infinity"
    where = f"column {names[column]!r}" if names else f"column {column}"
    raise DataError(f"Input X contains {kind} in {where} of row {row} of the batch: impute or drop it first.")


def checked(X: Any, *, allow_nan: bool = False) -> Any:
    """Return validated rows, unchanged, for third-party code; masked values become NaN.

    Raises
    ------
    DataError
        For input that such code would reject with an unclear message or not at all, such as a damaged sparse matrix.
    """
    X = fill_masked(X)
    reject_nonfinite(*as_rows(X), allow_nan=allow_nan)
    return with_accepted_names(X)


def as_weights(
    sample_weight: Any, n_rows: int, limits: tuple[float, float] = _WEIGHTS, *, some: bool = False
) -> Array | None:
    """Return the row weights as float64, 0 or within the limits, or None; with `some`, one must be positive."""
    if sample_weight is None:
        return None
    weights = _as_if_writeable(as_numbers("sample_weight", sample_weight))
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
