"""Rows that their producer numbers: which of them are new, and where some are lacking."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.errors import StreamError

__all__ = ["new_rows"]


def new_rows(
    columns: list[Any], column: int, name: str, last: int | None
) -> tuple[list[Any], int, int | None, list[dict[str, Any]]]:
    """Return the rows whose number is above all before it, how many they are, the last number, and the gaps.

    Parameters
    ----------
    columns : list of pyarrow.Array
    column : int
        Place of the column that has the numbers.
    name : str
        Its name.
    last : int or None
        The last number that was taken.

    Raises
    ------
    StreamError
        If a number is no whole one, or is missing.
    """
    import pyarrow as pa

    numbers = columns[column].to_numpy(zero_copy_only=False).astype(np.float64)
    if (bad := np.flatnonzero(numbers != np.floor(numbers))).size or np.isnan(numbers).any():
        at = int(bad[0]) if bad.size else 0
        raise StreamError(f"Column {name!r} is no whole number in row {at + 1}: number the rows.")
    floor = -np.inf if last is None else float(last)
    highest = np.maximum.accumulate(np.concatenate([[floor], numbers]))
    new = numbers > highest[:-1]
    taken = numbers[new]
    before = np.concatenate([[floor], taken])[: len(taken)]
    gaps = [
        {"event": "gap", "after": int(a), "before": int(b)}
        for a, b in zip(before.tolist(), taken.tolist(), strict=True)
        if a > -np.inf and b > a + 1
    ]
    kept = pa.array(new)
    return [one.filter(kept) for one in columns], len(taken), int(taken[-1]) if len(taken) else last, gaps
