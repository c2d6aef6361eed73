"""Scores of methods over data sets, as an array, a frame, or two columns: the input of the tests of significance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from tamis._validation import Floats, as_list, as_numbers, short_repr


def as_table(table: Any, names: Sequence[str] | None, at_least: int = 2) -> tuple[list[str], Floats]:
    """Return the names of the methods and their scores, shape (n_datasets, n_methods), of two data sets for a test."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        numeric = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
        names = numeric if names is None else names
        table = frame.select(numeric).to_numpy()
    # Among objects, numbers beside a text remain numbers.
    cells = table if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    if cells.ndim != 2 or cells.shape[0] < at_least or cells.shape[1] < 2:
        raise ValueError(
            f"table must have a row for each of at least {at_least} data sets and a column for each of at least"
            f" 2 methods, got shape {cells.shape}."
        )
    n_methods = cells.shape[1]
    methods = (
        [f"method {j}" for j in range(n_methods)]
        if names is None
        else [str(name) for name in as_list("names", names)]
    )
    if len(methods) != n_methods or len(set(methods)) < len(methods):
        raise ValueError(f"names must be {n_methods} distinct names, got {methods!r}.")
    for (row, column), value in np.ndenumerate(cells) if cells.dtype.kind in "OUS" else ():
        if isinstance(value, str | bytes):
            raise ValueError(
                f"{methods[column]!r} has the text {short_repr(value)} in row {row}: pass a number, or drop the row."
            )
    scores = as_numbers("table", cells)
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, column = bad[0].tolist()
        value = scores[row, column]
        found = "no score" if np.isnan(value) else f"the score {value:g}, which is not finite,"
        raise ValueError(
            f"{methods[column]!r} has {found} in row {row}: drop the row, or enter the worst score."
        )
    return methods, scores


def as_pair(first: Any, second: Any, names: Sequence[str] | None) -> tuple[tuple[str, str], Floats]:
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
