"""Rows with delayed labels, which arrive in another row of the same key."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any

import numpy as np

from tamis._validation import Array
from tamis.errors import StreamError


class PendingRows:
    """Rows that wait for their delayed labels, by key, in bounded memory.

    Parameters
    ----------
    max_rows : int
        Maximum number of waiting rows; beyond that, the oldest are dropped.
    absent : float, default=NaN
        The value, in waiting rows, of columns that were appended since.

    Attributes
    ----------
    counts : Counter
        ``given_up``: rows dropped before their label arrived. ``unmatched``: labels without a pending row. ``twice``:
        rows without a label whose key is already pending; the first one is kept.

    Examples
    --------
    >>> rows = PendingRows(10)
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> rows.match(["a", "b", "c"], [X[0], X[1], X[2]], [None, None, "fraud"])
    ([array([3.])], ['fraud'])
    >>> rows.match(["b", "z"], [None, None], ["fine", "fine"])
    ([array([2.])], ['fine'])
    >>> list(rows.waiting), rows.counts["unmatched"]
    (['a'], 1)
    """

    def __init__(self, max_rows: int, absent: float = np.nan) -> None:
        self.max_rows, self.absent = max_rows, absent
        self.waiting: dict[str, tuple[int, Array]] = {}  # position of arrival, and the values
        self.counts: Counter[str] = Counter()
        self._n_came = 0
        self._since: list[
            tuple[str, tuple[int, Array], bool]
        ] = []  # added (True) and removed since the last batch

    def match(
        self, keys: list[str], rows: list[Array | None], labels: list[Any]
    ) -> tuple[list[Array], list[Any]]:
        """Add rows in order; return those whose label has arrived, and the labels.

        Parameters
        ----------
        keys : list of str
        rows : list of (ndarray of shape (n_features,) or None)
            None: the row contains only a key and a label.
        labels : list of (label or None)
        """
        items: list[Array] = []
        found_labels: list[Any] = []
        for key, row, label in zip(keys, rows, labels, strict=True):
            if label is None:
                self._wait(key, row)
                continue
            known = self._release(key) if key in self.waiting else row
            if known is None:
                self.counts["unmatched"] += 1
            else:
                items.append(known)
                found_labels.append(label)
        return items, found_labels

    def _wait(self, key: str, row: Array | None) -> None:
        if key in self.waiting:
            self.counts["twice"] += 1
            return
        assert row is not None
        self.waiting[key] = self._n_came, row.copy()
        self._n_came += 1
        self._since.append((key, self.waiting[key], True))
        if len(self.waiting) > self.max_rows:
            self._release(next(iter(self.waiting)))
            self.counts["given_up"] += 1

    def _release(self, key: str) -> Array:
        self._since.append((key, self.waiting[key], False))
        return self.waiting.pop(key)[1]

    # -- state of a position -------------------------------------------------------------------------------

    def settle(self) -> None:
        """Mark the end of a batch."""
        self._since.clear()

    def as_array(self, rows: list[Array], n_columns: int) -> Array:
        """Return rows as an array; earlier ones may have fewer columns."""
        if any(len(row) < n_columns for row in rows):
            rows = [np.pad(row, (0, n_columns - len(row)), constant_values=self.absent) for row in rows]
        return np.array(rows).reshape(len(rows), n_columns)

    def state(self, n_columns: int) -> dict[str, Any]:
        """Return the rows pending at the end of the last batch, oldest first."""
        then = dict(self.waiting)
        for key, row, has_arrived in reversed(self._since):
            if has_arrived:
                del then[key]
            else:
                then[key] = row
        ordered = sorted(then.items(), key=lambda one: one[1][0])
        rows = self.as_array([row for _, (_, row) in ordered], n_columns)
        return {"keys": [key for key, _ in ordered], "rows": rows}

    def restore(self, state: dict[str, Any], counts: dict[str, int]) -> None:
        """Restore the pending rows."""
        self.waiting = {
            key: (i, row) for i, (key, row) in enumerate(zip(state["keys"], state["rows"], strict=True))
        }
        self._n_came, self.counts = len(self.waiting), Counter(counts)
        self.settle()


def keys_of(column: Any, name: str, path: str, row: int) -> list[str]:
    """Return the keys of rows; `row` is the number of the first one.

    Raises
    ------
    StreamError
        If a key is missing.
    """
    import pyarrow as pa

    keys: list[Any] = column.cast(pa.string()).to_pylist()
    if None in keys:
        raise StreamError(
            f"{path!r} has no {name!r} in row {row + keys.index(None)}, which matches labels to rows: add it."
        )
    return keys


def all_missing(columns: list[Any], n: int) -> Array:
    """Return the rows in which all of these columns are missing."""
    missing = np.ones(n, dtype=bool)
    for column in columns:
        missing &= column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing


# -- Rows numbered by their producer: detection of new rows and of missing numbers -----------------------

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
