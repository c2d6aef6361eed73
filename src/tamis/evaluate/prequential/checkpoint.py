"""Checkpoints of a run: when they are saved, and whether a checkpoint belongs to the same run."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tamis.errors import CheckpointError
from tamis.options import RunOptions
from tamis.persistence import load, save
from tamis.persistence.lock import write_lock

_SHARE = 0.05  # largest fraction of the run time spent on saving
_COMPARED = ("stream", "selector", "learner", "options")


class Checkpoint:
    """The file that a run is saved in; as a context manager it prevents other processes from writing it.

    Parameters
    ----------
    options : RunOptions
        Its `checkpoint` is the path; None disables saving. Saves every `checkpoint_every` steps are skipped if they
        would take more than 5 % of the time.

    Raises
    ------
    CheckpointError
        If the file cannot be created.
    """

    def __init__(self, options: RunOptions) -> None:
        path, seconds = options.checkpoint, options.checkpoint_seconds
        self.path, self.every = None if path is None else Path(path), options.checkpoint_every
        self.seconds = math.inf if seconds is None else seconds
        self._saved, self._cost = time.perf_counter(), 0.0
        self._step = -1  # the last saved step
        self._lock = contextlib.ExitStack()
        if self.path is None:
            return
        folder = self.path.absolute().parent
        if self.path.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise CheckpointError(
                f"Cannot write the checkpoint {str(path)!r}: choose a file in a folder that exists and can be written."
            )

    def __enter__(self) -> Checkpoint:
        if self.path is not None:
            self._lock.enter_context(write_lock(self.path, again=True))
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def load(self, settings: dict[str, Any], classes: list[type]) -> Any:
        """Return the state of the run that was saved, or None if there is none.

        Raises
        ------
        CheckpointError
            If the file is damaged, or belongs to a run with other settings.
        """
        if self.path is None or not self.path.exists():
            return None
        content = load(self.path, classes=classes)
        is_run = isinstance(content, dict) and set(content) == {"settings", "run"}
        if not is_run or not isinstance(content["settings"], dict) or not isinstance(content["run"], dict):
            raise CheckpointError(
                f"{str(self.path)!r} is not a checkpoint of a run: choose another file, or remove it."
            )
        for name in _COMPARED:
            differs = _difference(settings[name], content["settings"].get(name), name)
            if differs is not None:
                setting, now, then = differs
                raise CheckpointError(
                    f"{str(self.path)!r} is the checkpoint of another run, whose {setting} is {then!r}, not {now!r}:"
                    " choose another file, or remove it."
                )
        return content["run"]

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Name the file in the message of an error in its content."""
        try:
            yield
        except CheckpointError as error:
            raise CheckpointError(f"{str(self.path)!r} cannot be resumed. {error}") from error

    def keep(self, step: int, settings: dict[str, Any], state: Callable[[], dict[str, Any]]) -> None:
        """Save the run if a checkpoint is due and the run has changed."""
        if self.path is None or step == self._step:
            return
        since = time.perf_counter() - self._saved
        if (step % self.every == 0 or since >= self.seconds) and since >= self._cost / _SHARE:
            self.write(settings, state)
            self._step = step

    def write(self, settings: dict[str, Any], state: Callable[[], dict[str, Any]]) -> None:
        """Save the run."""
        if self.path is not None:
            begin = time.perf_counter()
            save({"settings": settings, "run": state()}, self.path)
            self._saved = time.perf_counter()
            self._cost = self._saved - begin


def _difference(now: Any, then: Any, where: str) -> tuple[str, Any, Any] | None:
    """Return the first difference of two JSON values; None if they are equal."""
    if isinstance(now, dict) and isinstance(then, dict):
        for key in [*now, *(key for key in then if key not in now)]:
            if (first := _difference(now.get(key), then.get(key), f"{where}.{key}")) is not None:
                return first
        return None
    same = json.dumps(now) == json.dumps(then, default=repr)  # NaN equals itself here
    return None if same else (where, now, then)
