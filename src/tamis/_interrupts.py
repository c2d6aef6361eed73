"""Ctrl-C and SIGTERM wait until a step of a program is complete, so that its results are kept."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from signal import SIG_DFL, SIGINT, SIGTERM, Signals, default_int_handler, getsignal, signal
from types import FrameType
from typing import Any

__all__ = ["defer_interrupts", "sigterm_as_interrupt"]


@contextlib.contextmanager
def defer_interrupts(at_once: Callable[[], bool] = lambda: False) -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C and SIGTERM until the current step is complete; a second signal takes effect at once.

    Handlers set by the caller are unchanged.

    Parameters
    ----------
    at_once : callable
        Whether no step is running, so that the signal takes effect at once.

    Yields
    ------
    callable
        To be called after each step: raises KeyboardInterrupt if a signal was received.
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

    with _set_handlers(ask, SIGINT, SIGTERM):
        yield stop_if_asked


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt, so that partially written files are removed."""
    with _set_handlers(default_int_handler, SIGTERM):
        yield


@contextlib.contextmanager
def _set_handlers(handler: Callable[[int, FrameType | None], object], *numbers: Signals) -> Iterator[None]:
    """Handle signals without another handler; possible only in the main thread."""
    before: dict[Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if (earlier := getsignal(number)) in (SIG_DFL, default_int_handler):
                before[number] = earlier
                signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal(number, earlier)
