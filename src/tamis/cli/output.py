"""What comes out of a command: where it goes, and how the terminal is treated meanwhile."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from tamis.cli.failure import MisuseError

__all__ = [
    "check_place",
    "print_json",
    "terminal",
    "unhurried_interrupt",
    "warnings_in_one_line",
]


def terminal(stderr: bool = False) -> Console:
    """Return the terminal, to print on."""
    return Console(stderr=stderr, highlight=False)


def print_json(document: Any) -> None:
    """Print one JSON document; numbers that JSON does not have become null."""
    print(json.dumps(_finite(document), indent=1, allow_nan=False, default=str))


def _finite(value: Any) -> Any:
    """Return the value with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_place(option: str, place: str, *, is_folder: bool) -> None:
    """Refuse a place that cannot be written, before the run."""
    path = Path(place).absolute()
    if is_folder and path.exists() and not (path / "settings.json").is_file():
        if not path.is_dir():
            raise MisuseError(f"{option} {place} is a file: choose a folder.")
        if any(path.iterdir()):
            raise MisuseError(f"{option} {place} holds something else: choose a new folder.")
    if not is_folder and path.is_dir():
        raise MisuseError(f"{option} {place} is a folder: add the name of a file.")
    if not is_folder and not path.parent.is_dir():
        raise MisuseError(f"{option} {place}: the folder {str(path.parent)!r} does not exist; make it first.")
    nearest = next(parent for parent in path.parents if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise MisuseError(
            f"{option} {place} cannot be written: {str(nearest)!r} does not allow it; choose another."
        )


@contextlib.contextmanager
def warnings_in_one_line(console: Console) -> Iterator[None]:
    """Show each warning once, as a line above the live display."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest, **more: console.print(
            f"tamis: warning: {' '.join(str(message).split())}", markup=False, soft_wrap=True
        )
        yield


@contextlib.contextmanager
def unhurried_interrupt() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM wait for the batch in work, so that a checkpoint is whole, but no longer than a second.

    Yields a function to be called between batches. A second one stops at once.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not hasattr(signal, "setitimer"):
        yield lambda: None
        return
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        signal.setitimer(signal.ITIMER_REAL, 1.0)

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def stop_if_asked() -> None:
        if asked:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    handlers = {signal.SIGINT: ask, signal.SIGTERM: ask, signal.SIGALRM: stop}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield stop_if_asked
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
