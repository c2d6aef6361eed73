"""Rows that cannot be read: written to a file with their reasons, and counted."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

from tamis.persistence.journal import Journal

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
