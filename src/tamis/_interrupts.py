"""Ctrl-C and SIGTERM wait until a step is whole, so that what is done so far can be kept."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["interrupts_wait", "sigterm_as_interrupt"]


@contextlib.contextmanager
def interrupts_wait(at_once: Callable[[], bool] = lambda: False) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM wait for the step in work; a second one stops at once.

    Handlers that somebody else has set stay as they are.

    Parameters
    ----------
    at_once : callable
        Whether nothing is in work just now, so that there is nothing to wait for.

    Yields
    ------
    callable
        To be called after each step: raises KeyboardInterrupt if one of the two came.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked or at_once():
            raise KeyboardInterrupt
        asked = True

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    with _handled(ask, signal.SIGINT, signal.SIGTERM):
        yield stop_if_asked


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, so that files that are half written are removed."""
    with _handled(signal.default_int_handler, signal.SIGTERM):
        yield


@contextlib.contextmanager
def _handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals that nobody else handles; only the main thread may."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if (found := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = found
                signal.signal(number, handler)
    try:
        yield
    finally:
        for number, found in before.items():
            signal.signal(number, found)
