"""Rows that cannot be read: put aside with their reasons, and counted."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

from tamis.persistence.journal import Journal

__all__ = ["BadRows"]

_REASONS = 50  # that are counted apart


class BadRows:
    """A file of bad rows, a line of JSON each.

    Parameters
    ----------
    place : path-like or None
        None: there is no place for them, and a bad row is refused.

    Attributes
    ----------
    reasons : Counter
        Why rows could not be read, and how many.
    """

    def __init__(self, place: str | os.PathLike[str] | None) -> None:
        self._journal = None if place is None else Journal(place)
        self.reasons: Counter[str] = Counter()

    @property
    def is_enabled(self) -> bool:
        """Whether there is a place for them."""
        return self._journal is not None

    def put(self, source: str, row: int, why: str, line: str) -> None:
        """Put a row aside."""
        assert self._journal is not None
        why = why.removeprefix(f"{source!r}").removeprefix(":").strip()
        self._journal.write([{"source": source, "row": row, "reason": why, "line": line}])
        kind = re.sub(r"'[^']*' in (row|line) \d+", r"... in a \1", why)
        kind = re.sub(r"\b(row|line) \d+", r"a \1", kind)
        self.reasons[kind if kind in self.reasons or len(self.reasons) < _REASONS else "other reasons"] += 1

    @property
    def length(self) -> int:
        """How many bytes were put aside."""
        return 0 if self._journal is None else self._journal.length

    def mark(self, length: int) -> list[Any] | None:
        """Return what `rollback` needs to come back to when so many bytes were put aside."""
        return None if self._journal is None else self._journal.mark(length)

    def rollback(self, mark: list[Any] | None, reasons: dict[str, int]) -> None:
        """Cut what was put aside after a mark, when these were the reasons; None: there was no file then."""
        self.reasons = Counter(reasons)
        if self._journal is not None and mark is not None:
            self._journal.truncate(mark)

    def flush(self) -> None:
        """Wait until all of it is on the disk."""
        if self._journal is not None:
            self._journal.flush()
