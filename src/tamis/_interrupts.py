"""Ctrl-C, SIGTERM and SIGHUP wait until a step of a program is complete, so that its results are kept."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = [
    "ACTION_SIZE",
    "PRESSED_SIGNALS",
    "STOP_SIGNALS",
    "defer_interrupts",
    "ignore_os_errors",
    "is_asynchronous",
    "replaced_handlers",
    "sigaction",
    "stop_signals_as_interrupt",
]

# A closed terminal sends SIGHUP; `nohup` ignores it, and it stays ignored.
STOP_SIGNALS = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP"))
# A second one stops at once. Kernel and shell may both send SIGHUP when a terminal is closed.
PRESSED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], object]

# `signal.signal` overwrites a handler of C code (of faulthandler, for example) and flags such as SA_RESTART, which only
# this function of the C library reads and writes.
sigaction: Any = ctypes.PyDLL(None).sigaction if os.name == "posix" else lambda number, new, old: 0
ACTION_SIZE = 256  # bytes: more than the structure has on any system

# The modules whose exceptions may come from the code that is called; "builtins" is one of the standard library's.
_LIBRARIES = sys.stdlib_module_names | {"numba", "numpy", "scipy", "sklearn", "tamis"}


def is_asynchronous(error: Exception) -> bool:
    """Return whether an exception comes from a signal handler, or another thread, rather than from the code it hit.

    A handler may raise its own exception class, or TimeoutError, which has no error number unless a call failed.
    """
    if isinstance(error, OSError):
        return error.errno is None
    return type(error).__module__.partition(".")[0] not in _LIBRARIES


@contextlib.contextmanager
def ignore_os_errors() -> Iterator[None]:
    """Ignore the errors of system calls, but not the TimeoutError of a signal handler, which is an OSError too."""
    try:
        yield
    except OSError as error:
        if is_asynchronous(error):
            raise


@contextlib.contextmanager
def defer_interrupts(at_once: Callable[[], bool] = lambda: False) -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C, SIGTERM and SIGHUP until the current step is complete; a second signal takes effect at once.

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
        if at_once() or (asked and number in PRESSED_SIGNALS):
            raise KeyboardInterrupt
        asked = True

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    with replaced_handlers(ask, *STOP_SIGNALS):
        yield stop_if_asked


@contextlib.contextmanager
def stop_signals_as_interrupt() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that partially written files are removed."""
    with replaced_handlers(signal.default_int_handler, *STOP_SIGNALS):
        yield


@contextlib.contextmanager
def replaced_handlers(handler: Handler, *numbers: int) -> Iterator[None]:
    """Handle signals that have no handler, and Ctrl-C unless it has another one; only in the main thread."""
    before: dict[int, tuple[Any, Any]] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                earlier = signal.getsignal(number)
                if earlier in (signal.SIG_DFL, signal.default_int_handler) and earlier is not handler:
                    action = ctypes.create_string_buffer(ACTION_SIZE)
                    sigaction(number, None, action)
                    before[number] = earlier, action
                    signal.signal(number, handler)
        yield
    finally:
        for number, (earlier, action) in before.items():
            signal.signal(number, earlier)
            sigaction(number, action, None)
