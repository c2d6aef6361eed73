"""Rows in the format of the kernels: dense arrays and CSR matrices of any origin."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sized
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from tamis._validation import arrays
from tamis._validation.table import Table, as_table
from tamis._validation.values import short_repr
from tamis.errors import DataError

_FEW_VALUES = 10_000
_MODERATE = 1e150  # a sum of squares, whose square is finite


def as_rows(X: Any) -> tuple[arrays.Rows, list[str] | None]:
    """Return the batch in the format of the kernels, and its column names if it has any.

    Dense data becomes a C-contiguous float32 or float64 array (a view of the caller's array if possible), sparse
    data a CSR matrix with sorted, summed indices. Masked values become NaN. Read-only arrays are exposed as writeable
    ones, because kernels are compiled once, and never write into rows.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous and X.dtype in arrays.FLOATS:
        names = None  # the fast path: nothing to convert
    elif sp.issparse(X):
        X, names = _csr(X), None
    else:
        X, names = _dense(arrays.fill_masked(X))
    if isinstance(X, np.ndarray):
        X = arrays.as_if_writeable(X)
    if X.shape[0] == 0:
        raise DataError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] == 0:
        raise DataError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X, names


def is_plain(X: Any, n_features: int) -> bool:
    """Return whether rows are an array with so many columns of moderate numbers: nothing to convert or to refuse.

    >>> is_plain(np.ones((1, 2)), 2), is_plain(np.full((1, 2), np.nan), 2), is_plain([[1.0, 2.0]], 2)
    (True, False, False)
    """
    # NaN is not moderate either.
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == n_features
        and X.dtype == np.float64
        and X.flags.carray
        and 0 < X.size <= _FEW_VALUES
        and bool(np.vdot(X, X) < _MODERATE)
    )


def has_rows(X: Any) -> bool:
    """Return whether a batch has rows: an empty one, as a poll of a queue may return, changes no model.

    >>> has_rows(np.empty((0, 3))), has_rows([]), has_rows([[1.0]])
    (False, False, True)
    """
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape:
        return bool(shape[0])
    return not isinstance(X, Sized) or len(X) > 0


def _csr(X: Any) -> arrays.Rows:
    if X.ndim != 2:
        raise DataError(f"X must have 2 dimensions, got a sparse array of shape {X.shape}; reshape it.")
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported: X must contain real numbers.")
    caller, X = X, sp.csr_matrix(_validate_sparse(X))
    if X.dtype not in arrays.FLOATS:
        arrays.warn_of_rounding(X.data, lambda i: int(X.indices[i]))
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
        arrays.as_if_writeable(part if part is X.data else part.astype(kind, copy=False)) for part in parts
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


def _all_in_range(indices: arrays.Array, n: int) -> bool:
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < n)


def _dense(X: Any) -> tuple[arrays.Array, list[str] | None]:
    table = as_table(X)
    if table is not None:
        return _rows_of(table), table.names
    reject_non_array("X", X, "an array, a CSR matrix or a frame of shape (n_rows, n_features)")
    array = arrays.as_array("X", X)
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
        columns = [arrays.as_numbers(f"Column {j}", array[:, j]) for j in range(array.shape[1])]
        array = np.column_stack(columns) if columns else array.astype(np.float64)
    arrays.warn_of_rounding(array, lambda i: i % array.shape[1])
    return _as_floats(array), None


def _as_floats(array: arrays.Array) -> arrays.Array:
    return np.ascontiguousarray(array, dtype=array.dtype if array.dtype in arrays.FLOATS else np.float64)


def _rows_of(table: Table) -> arrays.Array:
    """Return the values of a frame, all of them numbers, as floats."""
    array, names = table.array, table.own_names
    rows = _as_floats(array)
    if array.dtype.kind in "iu":
        arrays.warn_of_rounding(array, lambda i: names[i % len(names)])
        return rows
    integers = sorted(table.kinds.get(nw.Int64(), []) + table.kinds.get(nw.UInt64(), []))
    large = (np.abs(rows[:, integers]) >= arrays.EXACT).any(axis=0) if integers else np.empty(0, dtype=bool)
    for j in np.array(integers)[large].tolist():
        arrays.warn_of_rounding(table.column(j).drop_nulls().to_numpy(), lambda _, j=j: names[j])  # type: ignore[misc]
    return rows


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
    elif hasattr(values, "read_all"):
        what, instead = f"a {kind}, which has no rows yet", "what its read_all() returns"
    elif hasattr(values, "__getitem__") or isinstance(values, numbers.Number):
        return
    else:
        what, instead = f"a {kind}", wanted
    raise DataError(f"{name} is {what}: pass {instead}.")


def reject_nonfinite(X: arrays.Rows, names: list[str] | None = None, *, allow_nan: bool = False) -> None:
    """Raise if a value of the batch is infinite (or NaN, unless allowed); the message locates it."""
    values = X if type(X) is np.ndarray else X.data if sp.issparse(X) else X
    flat = values.reshape(-1)
    # One pass; a sum is finite only if all its terms are.
    if flat.shape[0] <= _FEW_VALUES:  # BLAS splits longer products between threads
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
    X = arrays.fill_masked(X)
    reject_nonfinite(*as_rows(X), allow_nan=allow_nan)
    return with_accepted_names(X)


def validated(estimator: Any, X: Any, *, reset: bool = False) -> arrays.Rows:
    """Return the rows after setting (`reset`) or checking the number and the names of an estimator's columns."""
    rows, names = as_rows(X)
    known = vars(estimator).get("feature_names_in_")
    if reset and names is not None:
        estimator.n_features_in_, estimator.feature_names_in_ = len(names), np.array(names, dtype=object)
    elif reset or names is None or known is None or names != known.tolist():
        from sklearn.utils.validation import validate_data

        validate_data(
            estimator, rows if names is None else with_accepted_names(X), reset=reset, skip_check_array=True
        )
    return rows


def with_accepted_names(X: Any) -> Any:
    """Return a frame without names if only some are strings, which scikit-learn rejects; anything else unchanged."""
    names = list(X.columns) if hasattr(X, "set_axis") and hasattr(X, "columns") else []
    is_text = [isinstance(name, str) for name in names]
    return X.set_axis(range(len(names)), axis=1) if any(is_text) and not all(is_text) else X
