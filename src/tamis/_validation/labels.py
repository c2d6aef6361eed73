"""Validation of targets and labels, and their int64 codes; every message names the value and what to pass."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tamis._validation.arrays import Array, Mask, as_array, as_numbers, reject_masked
from tamis._validation.values import is_missing, short_repr
from tamis.errors import DataError

MAX_CLASSES = 1000  # that were not declared, so that labels that hardly repeat cannot exhaust the memory


def as_column(y: Any, n_rows: int, estimator: str, *, allow_missing: bool = False) -> Array:
    """Return the target as a one-dimensional array of the batch's length, without missing entries unless allowed."""
    if y is None:
        raise DataError(
            f"{estimator} requires y to be passed, but the target y is None: pass the labels of the rows."
        )
    if type(y) is not np.ndarray:
        reject_masked("y", y)
        series = nw.from_native(y, allow_series=True, eager_only=True, pass_through=True)
        y = series.to_numpy() if isinstance(series, nw.Series | nw.DataFrame) else as_array("y", y)
    if y.ndim == 2 and y.shape[1] == 1:
        import warnings

        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it was flattened.",
            DataConversionWarning,
            stacklevel=3,
        )
        y = y[:, 0]
    if y.ndim != 1:
        raise DataError(
            f"y should be a 1d array, got an array of shape {y.shape} instead: for several targets of a row selector,"
            " wrap it in tamis.PerTarget."
        )
    if y.shape[0] != n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {y.shape[0]}."
        )
    if y.dtype.kind in "cV":
        raise DataError(f"Complex data not supported: y must contain labels or real numbers, not {y.dtype}.")
    column: Array = y
    if y.dtype.kind == "O" and {Decimal} <= set(map(type, values := y.tolist())) <= {Decimal, int}:
        column = plain_numbers(values)
    if not allow_missing:
        reject_missing(column)
    return column


def check_label(y: Any, estimator: str, *, numbers: bool = False) -> None:
    """Raise if the label of one row, or with `numbers` its target, is invalid."""
    if type(y) in (bool, int, str) and not numbers:
        return
    labels: Any = [y]
    if np.ndim(y):
        labels = np.empty(1, dtype=object)
        labels[0] = y
    column = as_column(labels, 1, estimator)
    if numbers:
        as_target(column)
    else:
        encode_labels(column, column[:0])


def plain_numbers(values: list[Any]) -> Array:
    """Return decimals and integers exactly as integers if all are whole, otherwise as float64.

    >>> plain_numbers([Decimal("9007199254740993"), Decimal("1.00")])
    array([9007199254740993,                1])
    """
    if not all(math.isfinite(value) and value == int(value) for value in values):
        return np.array(values, dtype=np.float64)
    whole = [int(value) for value in values]
    return np.array(
        whole, dtype=np.int64 if all(-(1 << 63) <= value < 1 << 63 for value in whole) else object
    )


def as_target(y: Array) -> NDArray[np.float64]:
    """Return a copy of the target of a regression; reject missing values, text and infinity."""
    reject_missing(y)
    return np.array(as_numbers("y", y))


def reject_missing(y: Array) -> None:
    """Raise if a label or target is NaN, infinite or None, naming its row."""
    missing = _first_missing(y)
    if missing is None:
        return
    value = y[missing]
    if isinstance(value, float) and math.isinf(value):
        raise DataError(
            f"The label of row {missing} of the batch is {short_repr(value)} (Input y contains infinity): drop this"
            " row before learning."
        )
    raise DataError(
        f"The label of row {missing} of the batch is missing ({short_repr(value)}; Input y contains NaN or None):"
        " drop unlabelled rows before learning."
    )


def missing_labels(y: Array) -> Mask:
    """Return which labels are None, NaN or NaT.

    >>> missing_labels(np.array([1.0, np.nan, np.inf]))
    array([False,  True, False])
    """
    if y.dtype.kind == "O":
        return np.array([is_missing(value) for value in y.tolist()], dtype=bool)
    return np.isnan(y) if y.dtype.kind in "fmM" else np.zeros(len(y), dtype=bool)


def _first_missing(y: Array) -> int | None:
    bad = missing_labels(y)
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
    elif y.dtype.kind == "O":
        bad |= np.array([isinstance(value, float) and math.isinf(value) for value in y.tolist()], dtype=bool)
    return int(np.flatnonzero(bad)[0]) if bad.any() else None


def encode_labels(y: Array, classes: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the codes of the labels and the classes, grown by the labels not seen before.

    New labels are appended, in sorted order among themselves, so codes never change their meaning. They are rejected if
    there would be more than `MAX_CLASSES`, unless the classes were declared.
    """
    if len(y) == 1 and y.dtype == classes.dtype and y.dtype.kind in "biufUS":  # one row of a known class
        known, label = classes.tolist(), y.item()
        if label in known:
            return np.array([known.index(label)], dtype=np.int64), classes
    if y.dtype.kind == "O":
        _reject_non_label(y)
    # NumPy compares tuples and null characters differently.
    if classes.shape[0] == 2 and classes.dtype.kind != "O":
        second = y == classes[1]
        if isinstance(second, np.ndarray) and np.count_nonzero(second | (y == classes[0])) == len(y):
            return second.astype(np.int64), classes  # the common case; nothing is missing then
    reject_missing(y)
    _reject_continuous(y)
    seen = {label: code for code, label in enumerate(classes.tolist())}
    labels, inverse = _unique(y)
    new = [label for label in labels if label not in seen]
    if new:
        if len(seen) + len(new) > MAX_CLASSES:
            raise DataError(
                f"y contains more than {MAX_CLASSES:,} different labels, such as {short_repr(new[-1])}: identifiers and"
                " numeric targets have no classes, so choose another label, bin the target, or choose task='regression'"
                " (for FIRES model='gaussian'); declare more classes than that in the first call, with classes=."
            )
        seen.update({label: code for code, label in enumerate(new, start=len(seen))})
        classes = _as_labels(list(seen))
    return np.array([seen[label] for label in labels], dtype=np.int64)[inverse], classes


def _reject_non_label(y: Array) -> None:
    for value in y.tolist():
        try:
            hash(value)
        except TypeError:
            raise DataError(
                f"y contains {short_repr(value)}, which cannot be a label: give numbers or text."
            ) from None


def _reject_continuous(y: Array) -> None:
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        value = y[np.flatnonzero(y != np.floor(y))[0]]
        raise DataError(
            f"Unknown label type: continuous. y contains {value}, but a classification needs labels:"
            " bin the target, or choose task='regression' (for FIRES model='gaussian', for a learner a regressor)."
        )


def as_classes(classes: Any) -> Array:
    """Return the declared classes as a one-dimensional array without repeats, in the order given."""
    reject_masked("classes", classes)
    labels = as_array("classes", classes)
    if labels.ndim != 1 or labels.shape[0] == 0:
        raise ValueError(f"classes must be a non-empty list of labels, got {short_repr(classes)}.")
    if labels.dtype.kind == "O":
        _reject_non_label(labels)
    unique = list(dict.fromkeys(labels.tolist()))
    if len(unique) != labels.shape[0]:
        raise ValueError(f"classes names a label twice: {short_repr(classes)}.")
    return _as_labels(unique)


def _unique(y: Array) -> tuple[list[Any], NDArray[np.intp]]:
    if y.dtype.kind != "O":
        labels, inverse = np.unique(y, return_inverse=True)
        return labels.tolist(), inverse
    values = y.tolist()
    unique = list(dict.fromkeys(values))
    try:
        unique.sort()
    except TypeError:  # labels of several types: numbers before text, by name
        unique.sort(key=lambda label: (str(type(label)), str(label)))
    position = {label: i for i, label in enumerate(unique)}
    return unique, np.array([position[value] for value in values], dtype=np.intp)


def _as_labels(labels: list[Any]) -> Array:
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and issubclass(kinds.pop(), (int, float, str, bytes, np.generic)):
        array = np.array(labels)
        # NumPy strips trailing null characters, and rounds integers beyond 64 bits.
        if array.tolist() == labels and isinstance(array.item(0), type(labels[0])):
            return array
    array = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        array[i] = label
    return array
