"""Scores of methods over data sets, as an array, a frame, or two columns: the input of the tests of significance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tamis._validation import as_numbers

__all__ = ["as_pair", "as_table"]

Numbers = NDArray[np.float64]


def as_table(table: Any, names: Sequence[str] | None, at_least: int = 1) -> tuple[list[str], Numbers]:
    """Return the names of the methods and their scores, shape (n_datasets, n_methods)."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        numeric = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
        names = numeric if names is None else names
        table = frame.select(numeric).to_numpy()
    scores = as_numbers("table", table)
    if scores.ndim != 2 or scores.shape[0] < at_least or scores.shape[1] < 2:
        raise ValueError(
            f"table must have a row for each of at least {at_least} data sets and a column for each of at least"
            f" 2 methods, got shape {scores.shape}."
        )
    methods = (
        [f"method {j}" for j in range(scores.shape[1])] if names is None else [str(name) for name in names]
    )
    if len(methods) != scores.shape[1] or len(set(methods)) < len(methods):
        raise ValueError(f"names must be {scores.shape[1]} distinct names, got {methods!r}.")
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, column = bad[0].tolist()
        raise ValueError(
            f"{methods[column]!r} has no score in row {row}: drop the row, or enter the worst score."
        )
    return methods, scores


def as_pair(first: Any, second: Any, names: Sequence[str] | None) -> tuple[tuple[str, str], Numbers]:
    """Return two names and their scores, shape (n_datasets, 2)."""
    table = first
    if second is not None:
        columns = [as_numbers("first", first), as_numbers("second", second)]
        if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
            raise ValueError(
                "first and second must be two columns of the same length,"
                f" got shapes {columns[0].shape} and {columns[1].shape}."
            )
        table = np.column_stack(columns)
    methods, scores = as_table(table, names)
    if len(methods) != 2:
        raise ValueError(f"Exactly two methods can be compared, got {len(methods)}: choose two columns.")
    return (methods[0], methods[1]), scores
