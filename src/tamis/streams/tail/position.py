"""Validation of saved positions, which may have been changed from outside."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

import numpy as np

from tamis._validation import is_integer, short_repr
from tamis.errors import CheckpointError
from tamis.persistence.journal import Journal

_KEYS = ("table", "how", "encoders", "rows", "counts", "reasons", "last", "letters", "notes", "places")
_DELAYED_KEYS = ("delayed", "delayed_counts")


def check_position(position: Any, *, has_delayed: bool) -> None:
    """Validate a position of a followed stream, except for the state of its columns.

    Parameters
    ----------
    position : object
    has_delayed : bool
        Whether rows wait for their labels.

    Raises
    ------
    CheckpointError
        If no stream can have this position.
    """
    if not isinstance(position, dict):
        raise invalid_position(f"must be a dict, got {short_repr(position)}")
    for key in _KEYS + _DELAYED_KEYS * has_delayed:
        if key not in position:
            raise invalid_position(f"has no {key!r}")
    last, letters, notes, places = (position[key] for key in ("last", "letters", "notes", "places"))
    counts = ("counts", "reasons", "delayed_counts")
    valid = {
        "rows": _is_count(position["rows"]),
        "last": last is None or is_integer(last),
        "letters": letters is None
        or (_is_list(letters, 2) and _is_count(letters[0]) and isinstance(letters[1], str)),
        "notes": isinstance(notes, list) and all(isinstance(note, dict) for note in notes),
        **{key: _are_counts(position[key]) for key in counts if key in position},
        "places": isinstance(places, dict),
        "delayed": not has_delayed or _are_delayed(position["delayed"]),
    }
    for key, is_valid in valid.items():
        if not is_valid:
            raise invalid_position(f"has {key!r} {short_repr(position[key])}")
    for name, place in places.items():
        if not isinstance(name, str) or not _is_place(place):
            raise invalid_position(f"has the place {short_repr(place)} in {short_repr(name)}")


def invalid_position(problem: str) -> CheckpointError:
    """Return the error of an invalid position."""
    return CheckpointError(
        f"The position {problem}, so the checkpoint was changed from outside: choose another file, or remove it to"
        " start again."
    )


def _is_place(place: Any) -> bool:
    """Return whether a place in a file is valid: bytes or rows, rows, and identity."""
    if not _is_list(place, 3) or not _is_count(place[0]) or not _is_count(place[1]):
        return False
    at, row, identity = place
    if not isinstance(identity, list) or not identity:
        return identity == [] and at == row == 0
    windows = identity[-1]
    return (
        len(identity) in (2, 3)
        and all(map(_is_count, identity[:-1]))
        and _is_list(windows, 2)
        and all(
            _is_list(one, 3) and all(map(_is_count, one[:2])) and isinstance(one[2], str) for one in windows
        )
        # The bytes of text before the position; the rows of Parquet.
        and (windows[1][0] + windows[1][1] == at >= row if len(identity) == 2 else identity[1] >= at == row)
    )


def _are_delayed(delayed: Any) -> bool:
    """Return whether the state of the rows without labels is valid: a key for each row."""
    if not isinstance(delayed, dict) or set(delayed) != {"keys", "rows"}:
        return False
    keys, rows = delayed["keys"], delayed["rows"]
    return (
        isinstance(keys, list)
        and all(isinstance(key, str) for key in keys)
        and isinstance(rows, np.ndarray)
        and len(rows) == len(keys)
        and (rows.ndim == 2 or not keys)
        and rows.dtype == np.float64
    )


def _is_list(value: Any, n: int) -> bool:
    return isinstance(value, list) and len(value) == n


def _is_count(value: Any) -> bool:
    return is_integer(value) and 0 <= value < 1 << 62


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) and _is_count(n) for key, n in value.items())


# -- Rows that cannot be read: written to a file with their reasons, and counted -------------------------

_REASONS = 50  # reasons that are counted separately


class BadRows:
    """A file of bad rows, one line of JSON each.

    Parameters
    ----------
    place : path-like or None
        None: bad rows raise an error.

    Attributes
    ----------
    reasons : Counter
        Number of rows that could not be read, by reason.
    """

    def __init__(self, place: str | os.PathLike[str] | None) -> None:
        self._journal = None if place is None else Journal(place)
        self.reasons: Counter[str] = Counter()

    @property
    def is_enabled(self) -> bool:
        """Whether bad rows are written to a file."""
        return self._journal is not None

    def put(self, source: str, row: int, why: str, line: str) -> None:
        """Write a row and count its reason."""
        assert self._journal is not None
        why = why.removeprefix(f"{source!r}").removeprefix(":").strip()
        self._journal.write([{"source": source, "row": row, "reason": why, "line": line}])
        kind = re.sub(r"'[^']*' in (row|line) \d+", r"... in a \1", why)
        kind = re.sub(r"\b(row|line) \d+", r"a \1", kind)
        self.reasons[kind if kind in self.reasons or len(self.reasons) < _REASONS else "other reasons"] += 1

    @property
    def length(self) -> int:
        """Number of bytes written."""
        return 0 if self._journal is None else self._journal.length

    def mark(self, length: int) -> list[Any] | None:
        """Return a mark at that length of the file, for `rollback`."""
        return None if self._journal is None else self._journal.mark(length)

    def rollback(self, mark: list[Any] | None, reasons: dict[str, int]) -> None:
        """Truncate the file to a mark and restore the reasons; None: the file did not exist."""
        self.reasons = Counter(reasons)
        if self._journal is not None and mark is not None:
            self._journal.truncate(mark)

    def flush(self) -> None:
        """Flush the file to disk."""
        if self._journal is not None:
            self._journal.flush()
