"""One writer at a time: a lock file next to the output, held while a process writes.

The operating system owns the lock (`flock`, on Windows a locked byte) and releases it when the process ends for any
reason. The content of a lock file, its owner, only serves messages: a file left by a dead process is taken over.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import get_ident
from typing import Any

from tamis._interrupts import ignore_os_errors, os_errors_as, raise_asynchronous
from tamis.errors import CheckpointError

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LOCKED_ERRNOS = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_LOCKED_BYTE = 1 << 30  # locked on Windows: far beyond the content, which stays readable
# Lock file, process and thread of each holder: an inherited lock belongs to the parent process.
_holders: set[tuple[Path, int, int]] = set()


@contextlib.contextmanager
def write_lock(
    place: str | os.PathLike[str], lock: str | os.PathLike[str] | None = None, *, again: bool = False
) -> Iterator[None]:
    """Hold the lock of an output.

    Parameters
    ----------
    place : path-like
        File or folder to write to. A device or a pipe has no lock.
    lock : path-like, optional
        The lock file, which is removed at the end; by default ``.NAME.lock`` next to `place`.
    again : bool, default=False
        Whether this thread may already hold it (a reentrant lock).

    Raises
    ------
    CheckpointError
        If it is already held, with the id and start time of the process; or if the lock file cannot be created.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with write_lock(folder / "run.tamis"):
    ...     print([path.name for path in folder.iterdir()])
    ['.run.tamis.lock']
    >>> list(folder.iterdir())
    []
    """
    real = Path(os.path.realpath(place))
    if real.exists() and not (real.is_file() or real.is_dir()):
        yield
        return
    path = real.with_name(f".{real.name}.lock") if lock is None else Path(os.path.realpath(lock))
    holder = path, os.getpid(), get_ident()
    if again and holder in _holders:  # an outer caller holds it for longer
        yield
        return
    descriptor = -1
    try:
        descriptor = _open_locked(path, os.fspath(place))
        _holders.add(holder)
        yield
    finally:
        if descriptor >= 0 and holder[1] == os.getpid():
            _holders.discard(holder)
            _release(path, descriptor)


def _release(path: Path, descriptor: int) -> None:
    if os.name == "nt":  # an open file cannot be removed there
        os.close(descriptor)
        descriptor = -1
    try:
        with ignore_os_errors():
            path.unlink()
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _open_locked(path: Path, place: str) -> int:
    """Lock a lock file and return its descriptor."""
    while True:
        problem = f"Cannot create a lock file next to {place!r}"
        with os_errors_as(CheckpointError, problem, "choose a writable folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, _FLAGS, 0o666)
        try:
            if not _try_lock(descriptor):
                raise CheckpointError(
                    f"{place!r} is being written by {_read_owner(descriptor)}: wait, or choose another location."
                )
            if _is_same_file(descriptor, path):  # else its owner has just removed it
                _write_owner(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    """Lock a file; return False if another process holds it. Without file-system support, locking always succeeds."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            getattr(msvcrt, "locking")(descriptor, getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009  unavailable on this system
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise_asynchronous(error)
        return error.errno not in _LOCKED_ERRNOS
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError as error:
        raise_asynchronous(error)
        return False


def _write_owner(descriptor: int) -> None:
    """Write the owner into a lock file; a full disk only affects the message that others see."""
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    with ignore_os_errors():
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(owner).encode())


def _read_owner(descriptor: int) -> str:
    """Return the owner named in a lock file, for messages."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        owner: dict[str, Any] = json.loads(os.read(descriptor, 4096))
        host = "" if owner["host"] == socket.gethostname() else f" on {owner['host']}"
        return f"process {owner['pid']}{host}, started at {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError) as error:  # not written yet
        raise_asynchronous(error)
        return "another process"
