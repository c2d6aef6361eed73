"""The checkpoint of `tamis watch`, from which the command resumes at the next row of a log."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import CheckpointError

if TYPE_CHECKING:
    from tamis.persistence.journal import Journal
    from tamis.streams import Stream

_SECONDS = 10.0  # between two savings


@dataclass
class SavedWatch:
    """The state in a checkpoint: the watch, pending labels, and alerts with their times."""

    place: str | None
    settings: dict[str, Any]
    watched: Any = None
    waiting: list[Any] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)  # the last of them
    mark: Any = None
    last: list[int] = field(default_factory=list)  # number of the last rows, and their checksum
    _journal: Journal | None = None
    _next: float = 0.0

    def journal(self, place: str | None) -> Journal | None:
        """Open the file of alerts; those after the checkpoint are removed."""
        from tamis.persistence.journal import Journal

        if place is None:
            return None
        if self.mark is None and Path(place).is_file():
            os.truncate(place, 0)
        self._journal = Journal(place)
        if self.mark is not None:
            self._journal.truncate(self.mark)
        return self._journal

    def note_rows(self, X: Any) -> None:
        """Note the last rows, by which the log is recognised."""
        from tamis._checksum import checksum

        self.last = [len(X), checksum(X)]

    def check_log(self, stream: Stream, name: str) -> None:
        """Raise if the rows before the next one are not those of the log.

        Raises
        ------
        CheckpointError
            If it is another log.
        """
        from tamis._checksum import checksum

        if not self.last:
            return
        n_rows, (n, expected) = self.watched.n_rows_, self.last
        X = next((X for X, _ in stream.batches(n, start=n_rows - n)), None)
        if X is None or checksum(X) != expected:
            raise CheckpointError(
                f"{name!r} is not the log of which {n_rows:,} rows were watched: if that one was rotated or rewritten,"
                f" remove {self.place!r} to start again."
            )

    def keep(self, *, at_once: bool = False) -> None:
        """Write the checkpoint if it is due."""
        import tamis

        if self.place is None or not (at_once or time.monotonic() >= self._next):
            return
        mark = None
        if self._journal is not None:
            self._journal.flush()
            mark = self._journal.mark()
        names = ("settings", "watched", "waiting", "alerts", "last")
        tamis.save({"watch": {name: getattr(self, name) for name in names} | {"mark": mark}}, self.place)
        self._next = time.monotonic() + _SECONDS


def saved_watch(place: str | None, settings: dict[str, Any]) -> SavedWatch:
    """Return the state that was saved, or a new one.

    Raises
    ------
    CheckpointError
        If the file is a checkpoint of another command.
    """
    if place is None or not os.path.exists(place):
        return SavedWatch(place, settings)
    import tamis

    content = tamis.load(place)
    if not isinstance(content, dict) or set(content) != {"watch"}:
        raise CheckpointError(
            f"{place!r} is not a checkpoint of tamis watch: choose another file, or remove it."
        )
    for name, value in settings.items():
        if content["watch"]["settings"][name] != value:
            raise CheckpointError(
                f"{place!r} is the checkpoint of a run whose {name} was {content['watch']['settings'][name]!r},"
                f" not {value!r}: choose another file, or remove it."
            )
    return SavedWatch(place, **content["watch"])
