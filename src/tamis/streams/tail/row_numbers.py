"""Rows numbered by their producer: detection of new rows and of missing numbers."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from tamis._validation import Array
from tamis.errors import StreamError

_NONE = -(1 << 63)  # below all numbers


def new_rows(
    column: Any, name: str, last: int | None, before: int
) -> tuple[Any, int | None, list[dict[str, Any]]]:
    """Return which rows have a number that exceeds all earlier ones, the last number, and the missing ranges.

    Parameters
    ----------
    column : pyarrow.Array
        The row numbers.
    name : str
        Name of that column.
    last : int or None
        The last number read.
    before : int
        Number of preceding rows.

    Raises
    ------
    StreamError
        If a number is missing or is not a 64-bit integer.
    """
    import pyarrow as pa

    numbers = _whole(column, name, before)
    floor = _NONE if last is None else last
    highest = np.maximum.accumulate(np.concatenate([[floor], numbers]))
    new = numbers > highest[:-1]
    taken = numbers[new].tolist()
    pairs = itertools.pairwise([floor, *taken])
    gaps = [{"event": "gap", "after": a, "before": b} for a, b in pairs if a > _NONE and b > a + 1]
    return pa.array(new), taken[-1] if taken else last, gaps


def _whole(column: Any, name: str, before: int) -> Array:
    """Return the numbers in a text column, exactly, since a time in nanoseconds exceeds float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(column.cast(pa.string())), r"\.0*$", "")
    try:
        if not texts.null_count:
            return np.asarray(texts.cast(pa.int64()))
    except pa.ArrowInvalid:
        pass
    row = next(i for i, text in enumerate(texts.to_pylist()) if not _is_whole(text))
    raise StreamError(f"Column {name!r} is not a whole number in row {before + row + 1}: number the rows.")


def _is_whole(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"-?\d+", text) is not None and abs(int(text)) < 1 << 63
