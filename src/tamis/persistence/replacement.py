"""Atomic file replacement: an output file is written completely or not at all.

The bytes go to ``.NAME.HOST-PID-RANDOM.tmp`` next to the target, which replaces the target once it is on disk. Host and
process id show the next writer of the same name whether the owner of a leftover file is still running.
"""

from __future__ import annotations

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

from tamis._interrupts import ignore_os_errors, raise_asynchronous

_MAX_STEM_BYTES = 100  # of the target's name in the temporary name, which is limited to 255 bytes
_OWNER = re.compile(r"([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.tmp")
_active_temporaries: set[str] = set()  # temporary files of this process


def replace_file(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a temporary file, and move it to `path` once it is on disk; on an error nothing is left behind.

    The permissions of a replaced file are kept; a new file follows the umask. A symbolic link stays, and its target is
    replaced. Temporary files of the same name are removed if their process on this machine has ended.

    Parameters
    ----------
    path : path-like
    write : callable
        Called with the open file.

    Raises
    ------
    OSError
        If the file cannot be written; its ``filename`` is `path`. Other exceptions of `write` propagate.
    """
    target = Path(path)
    if target.is_symlink():  # `realpath` itself would swallow the TimeoutError of a signal handler
        target = Path(os.path.realpath(path))
    try:
        _replace(target, write)
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None  # not that of the temporary file
        raise


def _replace(target: Path, write: Callable[[BinaryIO], object]) -> None:
    mode = _file_mode(target)
    stem = f".{os.fsencode(target.name)[:_MAX_STEM_BYTES].decode(errors='ignore')}."
    _remove_leftovers(target.parent, stem)
    temporary = target.with_name(f"{stem}{_host_id()}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    _active_temporaries.add(temporary.name)
    try:
        # Created with the final permissions, so that others never gain read access temporarily.
        first = 0o666 if mode is None else mode
        with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, first)) as file:
            if mode is not None:
                os.chmod(temporary, mode)  # independent of the umask
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with ignore_os_errors():
            temporary.unlink(missing_ok=True)
        raise
    finally:
        _active_temporaries.discard(temporary.name)
    with ignore_os_errors():  # not every system can open a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _file_mode(target: Path) -> int | None:
    """Return the permissions of the file to replace, None if there is none; reject devices, pipes and folders."""
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
    """Remove temporary files of processes on this machine that ended before completing them."""
    with ignore_os_errors():  # a folder may be writable but not readable
        for name in os.listdir(folder):
            if name.startswith(stem) and (owner := _OWNER.fullmatch(name, len(stem))):
                host, pid = owner[1], int(owner[2])
                if host == _host_id() and not _may_be_in_use(name, pid):
                    (folder / name).unlink(missing_ok=True)


def _host_id() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _may_be_in_use(name: str, pid: int) -> bool:
    """Return whether the process that owns a temporary file may still be writing it."""
    if pid == os.getpid():  # a restarted container may reuse the id
        return name in _active_temporaries
    if os.name == "nt":  # open files cannot be removed, and a signal would end the process
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError) as error:  # owned by another user
        raise_asynchronous(error)
        return True
    return True
