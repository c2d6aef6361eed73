"""Ctrl-C, SIGTERM and SIGHUP wait until a step of a program is complete, so that its results are kept."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

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
_LIBRARIES = sys.stdlib_module_names | {
    "_duckdb", "duckdb", "llvmlite", "narwhals", "numba", "numpy", "pandas", "polars", "py4j", "pyarrow", "pyspark",
    "scipy", "sklearn", "tamis",
}  # fmt: skip


def raise_asynchronous(error: Exception) -> None:
    """Raise an exception again if it comes from a signal handler, or another thread, rather than from the code it hit.

    A handler is in the traceback, with the frame that it received. Another thread leaves no trace: its exception is
    recognized as one of another program's classes that no code of this program raised.
    """
    cause: BaseException | None = error
    while cause is not None:  # closing what it interrupted may have failed
        if _is_asynchronous(cause):
            raise cause
        cause = cause.__context__


def _is_asynchronous(error: BaseException) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for value in itertools.chain.from_iterable(frame.f_locals.values() for frame in frames):
        if any(isinstance(item, FrameType) for item in (value if type(value) is tuple else (value,))):
            return True
    raised_by = str(frames[-1].f_globals.get("__name__")) if frames else ""
    return _is_of_library(raised_by) and not _is_of_library(type(error).__module__)


def _is_of_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


@contextlib.contextmanager
def ignore_os_errors() -> Iterator[None]:
    """Ignore the errors of system calls, but not the TimeoutError of a signal handler, which is an OSError too."""
    try:
        yield
    except OSError as error:
        raise_asynchronous(error)


@contextlib.contextmanager
def os_errors_as(kind: type[Exception], problem: str, advice: str) -> Iterator[None]:
    """Raise the errors of system calls, except for those of signal handlers and closed pipes, as another exception.

    >>> with os_errors_as(ValueError, "The rules cannot be read", "name another file"):
    ...     open("missing.toml")
    Traceback (most recent call last):
    ...
    ValueError: The rules cannot be read (No such file or directory): name another file.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise_asynchronous(error)
        reason = error.strerror or next(iter(error.args), None) or type(error).__name__
        raise kind(f"{problem} ({reason}): {advice}.") from error


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
