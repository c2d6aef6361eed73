"""Atomic file replacement: a file that a user asked for is written completely or not at all.

The bytes go to ``.NAME.HOST-PID-RANDOM.tmp`` beside the target, which replaces the target once it is on the disk. From
host and process the next writer of the same name knows whether the owner of a leftover is still alive.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

__all__ = ["replace_file"]

_LONGEST = 100  # bytes of the target's name in a temporary's, which must fit into 255
_OWNER = re.compile(r"([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.tmp")
_being_written: set[str] = set()  # names of this process's temporaries


def replace_file(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside `path`, and move it to `path` once all of it is on the disk; on an error nothing is left.

    The permissions of a replaced file are kept; a new file follows the umask. A symbolic link stays, and its target is
    replaced. Temporary files of the same name are removed if their process on this machine has ended.

    Parameters
    ----------
    path : path-like
    write : callable
        Takes the open file.

    Raises
    ------
    OSError
        If the file cannot be written; its ``filename`` is `path`. Whatever else `write` raises is raised too.
    """
    target = Path(os.path.realpath(path))
    try:
        _replace(target, write)
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None  # not that of the temporary file
        raise


def _replace(target: Path, write: Callable[[BinaryIO], object]) -> None:
    mode = _mode_of(target)
    stem = f".{os.fsencode(target.name)[:_LONGEST].decode(errors='ignore')}."
    _remove_leftovers(target.parent, stem)
    temporary = target.with_name(f"{stem}{_host()}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    _being_written.add(temporary.name)
    try:
        # Created with these permissions: at no time may others read what they could not read before.
        first = 0o666 if mode is None else mode
        with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, first)) as file:
            if mode is not None:
                os.chmod(temporary, mode)  # whatever the umask took away
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        _being_written.discard(temporary.name)
    with contextlib.suppress(OSError):  # not every system can open a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mode_of(target: Path) -> int | None:
    """Return the permissions of the file that is replaced, None if there is none; refuse devices, pipes and folders."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    return stat.S_IMODE(mode) & 0o777


def _remove_leftovers(folder: Path, stem: str) -> None:
    """Remove the temporary files of processes of this machine that ended before they had written them."""
    with contextlib.suppress(OSError):  # a folder may be writable and not readable
        for name in os.listdir(folder):
            if name.startswith(stem) and (owner := _OWNER.fullmatch(name, len(stem))):
                host, pid = owner[1], int(owner[2])
                if host == _host() and not _is_written(name, pid):
                    (folder / name).unlink(missing_ok=True)


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _is_written(name: str, pid: int) -> bool:
    """Return whether the process that owns a temporary file may still write it."""
    if pid == os.getpid():  # a container that was started again has the same numbers
        return name in _being_written
    if os.name == "nt":  # where an open file cannot be removed, and a signal would end the process
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user
        return True
    return True
