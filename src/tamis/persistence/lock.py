"""One writer at a time: a locked file beside what a process writes, for as long as it does.

The operating system owns the lock (`flock`, on Windows a locked byte) and releases it when the process dies, however it
dies. So the content of a lock file, its owner, only serves messages: what a dead process left behind is taken over.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.errors import CheckpointError

__all__ = ["only_writer"]

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_BYTE = 1 << 30  # that Windows locks: far behind the content, which others may read
_held: dict[Path, tuple[int, int, int]] = {}  # lock file: process, descriptor, number of holders in it
_changing = threading.Lock()


@contextlib.contextmanager
def only_writer(
    place: str | os.PathLike[str], lock: str | os.PathLike[str] | None = None, *, again: bool = False
) -> Iterator[None]:
    """Hold the lock of a place.

    Parameters
    ----------
    place : path-like
        File or folder that is written to. A device or a pipe has no lock.
    lock : path-like, optional
        The lock file, which is removed at the end; by default ``.NAME.lock`` beside the place.
    again : bool, default=False
        Whether this process may hold it already.

    Raises
    ------
    CheckpointError
        If it is held already, with the id and start time of the process; or if there can be no lock file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with only_writer(folder / "run.tamis"):
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
    _take(path, os.fspath(place), again=again)
    try:
        yield
    finally:
        _release(path)


def _take(path: Path, place: str, *, again: bool) -> None:
    with _changing:
        process, descriptor, n = _held.get(path, (0, -1, 0))
        if process != os.getpid() or not again:  # what a fork inherited is its parent's
            descriptor, n = _locked(path, place), 0
        _held[path] = os.getpid(), descriptor, n + 1


def _release(path: Path) -> None:
    with _changing:
        process, descriptor, n = _held[path]
        if process != os.getpid():
            return
        if n > 1:
            _held[path] = process, descriptor, n - 1
            return
        del _held[path]
        if os.name == "nt":  # where an open file cannot be removed
            os.close(descriptor)
        with contextlib.suppress(OSError):
            path.unlink()
        if os.name != "nt":
            os.close(descriptor)


def _locked(path: Path, place: str) -> int:
    """Return the descriptor of a lock file that this process has locked."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, _FLAGS, 0o666)
        except OSError as error:
            raise CheckpointError(
                f"Cannot write beside {place!r} ({error.strerror or error}): choose a folder that can be written."
            ) from error
        try:
            if not _lock(descriptor):
                raise CheckpointError(
                    f"{place!r} is being written by {_owner(descriptor)}: wait for its end, or choose another place."
                )
            if _is_at(descriptor, path):  # else its owner has just removed it
                _sign(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file; return whether nobody else has. Where the file system knows no locks, everybody may."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, _BYTE, os.SEEK_SET)
            getattr(msvcrt, "locking")(descriptor, getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009  not on this system
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _TAKEN
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _sign(descriptor: int) -> None:
    """Write the owner into a lock file; on a full disk only the message to others suffers."""
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(owner).encode())


def _owner(descriptor: int) -> str:
    """Return the owner that a lock file names."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        owner: dict[str, Any] = json.loads(os.read(descriptor, 4096))
        host = "" if owner["host"] == socket.gethostname() else f" on {owner['host']}"
        return f"process {owner['pid']}{host}, started at {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # not signed yet
        return "another process"
