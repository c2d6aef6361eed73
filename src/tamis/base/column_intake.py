"""Preparation of offered features: float64 columns without missing values, scaled so that squares stay finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import (
    Floats,
    Indices,
    as_array,
    as_rows,
    fill_masked,
    reject_non_array,
    warn_of_rounding,
)
from tamis.errors import DataError

Columns: TypeAlias = Any  # a float64 ndarray of shape (n_rows, m), or a CSC matrix
_ROWS = 512  # copied at a time
_VANISHING = 1e-120  # columns with a sum of squares below it, or above its inverse, are rescaled


def one_column(column: Any) -> Any:
    """Return a column as a block of one."""
    if sp.issparse(column):
        return block_of(column if column.ndim == 2 else column.reshape(-1, 1))[0]
    values = column
    if not isinstance(column, np.ndarray):
        values = nw.from_native(column, allow_series=True, eager_only=True, pass_through=True)
        if isinstance(values, nw.Series):
            values = values.to_numpy()
        else:
            reject_non_array("The column", values, "an array of shape (n_rows,) or a series")
            values = as_array("The column", values)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != 1:
        raise DataError(
            f"A column must have shape (n_rows,) or (n_rows, 1), got {np.shape(column)}: use offer_many for blocks."
        )
    return block_of(values)[0]


def block_of(block: Any) -> tuple[Any, list[str] | None]:
    """Return the columns as something that can be sliced cheaply, and their names if they have any."""
    block = fill_masked(block)
    if isinstance(block, np.ndarray) and block.ndim == 2 and block.dtype.kind in "fiub" and block.size:
        return block, None
    rows, names = as_rows(block)
    return (rows.tocsc() if sp.issparse(rows) else rows), names


def as_float64(columns: Any, label: Callable[[int], str]) -> Columns:
    """Return the columns as float64, dense or CSC unchanged; `label` returns the name of column j, for warnings."""
    if not sp.issparse(columns):
        warn_of_rounding(columns, lambda i: label(i % columns.shape[1]))
    return columns.astype(np.float64) if sp.issparse(columns) else np.asarray(columns, dtype=np.float64)


def by_column(columns: Columns) -> Columns:
    """Return the columns with contiguous values, copied if necessary."""
    if sp.issparse(columns) or columns.shape[1] == 1 or columns.strides[0] <= columns.strides[1]:
        return columns
    copied = np.empty(columns.shape[::-1])
    for start in range(0, len(columns), _ROWS):  # chunks that fit the cache
        copied[:, start : start + _ROWS] = columns[start : start + _ROWS].T
    return copied.T


def without_missing(
    columns: Columns, missing: str, label: Callable[[int], str], weight: Floats | None = None
) -> tuple[Columns, NDArray[np.int32]]:
    """Return imputed columns whose squares neither overflow nor vanish, and the number of missing values of each.

    Parameters
    ----------
    columns : ndarray or CSC matrix of shape (n_rows, m), float64
    missing : {"refuse", "mean"}
        What to do with NaN.
    label : callable
        Name of column j, for messages.
    weight : ndarray of shape (n_rows,), optional
        A row counts that many times in the mean, and in the number of missing values.
    """
    n_missing = np.zeros(columns.shape[1], dtype=np.int32)
    unusual = _unusual(columns)
    if not len(unusual):
        return columns, n_missing
    columns = columns.copy()
    for j in unusual.tolist():
        column = columns[:, [j]].toarray()[:, 0] if sp.issparse(columns) else columns[:, j]
        if not np.isfinite(column).all():
            columns = columns.toarray() if sp.issparse(columns) else columns
            column, n_missing[j] = _impute(column, missing, label(j), weight)
        _put(columns, j, _rescale(column))
    return columns, n_missing


def _impute(column: Floats, missing: str, name: str, weight: Floats | None) -> tuple[Floats, int]:
    bad = ~np.isfinite(column)
    row = int(np.flatnonzero(bad)[0])
    if np.isinf(column).any():
        row = int(np.flatnonzero(np.isinf(column))[0])
        raise DataError(f"Feature {name!r} contains infinity in row {row}: replace or drop it first.")
    if missing == "refuse":
        raise DataError(
            f"Feature {name!r} contains NaN in row {row} (Input X contains NaN): impute it first, or set"
            " missing='mean'."
        )
    there = ~bad if weight is None else ~bad & (weight > 0.0)
    if not there.any():
        raise DataError(f"Feature {name!r} contains only NaN: drop it.")
    column = _rescale(column)
    if weight is None:
        return np.where(bad, column[there].mean(), column), int(np.count_nonzero(bad))
    mean = float(np.average(column[there], weights=weight[there]))
    return np.where(bad, mean, column), round(float(weight @ bad))


def _unusual(columns: Columns) -> Indices:
    """Return the columns with non-finite values, or whose squares overflow or vanish."""
    with np.errstate(all="ignore"):  # a sum is finite only if all its terms are
        if sp.issparse(columns):
            at, values = columns.indptr, np.append(columns.data, 0.0)
            squares = np.where(np.diff(at) > 0, np.add.reduceat(values * values, at[:-1]), 0.0)
        else:
            squares = np.einsum("ij,ij->j", columns, columns)
    unusual = np.flatnonzero(~((squares > _VANISHING) & (squares < 1.0 / _VANISHING)))
    empty = unusual[squares[unusual] == 0.0]
    if len(empty):  # usually all zeros
        values = columns[:, empty]
        empty = empty[np.asarray((values != 0).sum(axis=0)).ravel() == 0]
    return np.setdiff1d(unusual, empty, assume_unique=True)


def _rescale(column: Floats) -> Floats:
    """Return the column times a power of two that brings its largest value near 1 if its squares are out of range."""
    largest = float(np.nanmax(np.abs(column), initial=0.0))
    if largest == 0.0 or _VANISHING < largest * largest < 1.0 / _VANISHING:
        return column
    return np.ldexp(column, -np.frexp(largest)[1])


def _put(columns: Columns, j: int, column: Floats) -> None:
    """Write a column with the same zeros as before."""
    if sp.issparse(columns):
        at = slice(columns.indptr[j], columns.indptr[j + 1])
        columns.data[at] = column[columns.indices[at]]
    else:
        columns[:, j] = column
