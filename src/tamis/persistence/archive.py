"""The file format: an uncompressed zip archive with a checksum, read from and written to files and streams.

An output file is written completely or not at all (`replace_file`). The bytes go to ``.NAME.HOST-PID-RANDOM.tmp`` next
to the target, which replaces the target once it is on disk. Host and process id show the next writer of the same name
whether the owner of a leftover file is still running.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import re
import secrets
import socket
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tamis._interrupts import ignore_os_errors, raise_asynchronous
from tamis._validation import Array
from tamis.errors import CheckpointError

_MARK = b"tamis sha256 "
_FOOTER_SIZE = len(_MARK) + 64
_FIRST_MEMBER_NAME, _HEADER_SIZE = b"manifest.json", 64  # within the first bytes of every file
_CHUNK_SIZE = 1 << 20
_ADVICE = "pass the path, file object or bytes of a saved object."


class _Archive(zipfile.ZipFile):
    """An archive that is written to its end by `close` only.

    After an exception, the end of a `with` and `__del__` would complete it, and raise an exception of their own.
    """

    # Implemented in C: an exception of a signal handler in a finalizer would be lost.
    __del__ = object.__hash__  # type: ignore[assignment]


def write(file: BinaryIO, manifest: bytes, arrays: list[Array]) -> None:
    """Write the archive and its checksum."""
    archive = _Archive(file, "w")
    archive.comment = _MARK.ljust(_FOOTER_SIZE)
    archive.writestr(zipfile.ZipInfo("manifest.json"), manifest)  # no time of day: same state, same bytes
    for i, array in enumerate(arrays):
        info = zipfile.ZipInfo(f"{i}.npy")
        info.file_size = array.nbytes + 1024  # zipfile chooses ZIP64 by it
        member = archive.open(info, "w")
        np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        member.close()
    archive.close()
    size = file.seek(0, os.SEEK_END) - _FOOTER_SIZE
    digest = _digest(file, size)
    file.seek(size)
    file.write(_MARK + digest)


def _digest(file: BinaryIO, size: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (chunk := file.read(min(size, 1 << 20))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest().encode("ascii")


@contextlib.contextmanager
def open_verified(path: str | os.PathLike[str]) -> Iterator[tuple[zipfile.ZipFile, int]]:
    """Open the archive and yield it with the file's size.

    Raises
    ------
    CheckpointError
        If any byte was changed, or if it unpacks to more than it contains.
    """
    name = repr(os.fspath(path))
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder raises a clearer error
        raise CheckpointError(f"{name} is not a regular file: pass the path of a file that tamis.save wrote.")
    with open(path, "rb") as file, _open_zip(file, name) as opened:
        yield opened


@contextlib.contextmanager
def open_bytes(data: bytes | bytearray | memoryview, name: str) -> Iterator[tuple[zipfile.ZipFile, int]]:
    """Open an archive given as bytes, like `open_verified` for a file; `name` denotes the bytes in messages."""
    with _open_zip(io.BytesIO(data), name) as opened:
        yield opened


@contextlib.contextmanager
def _open_zip(file: BinaryIO, name: str) -> Iterator[tuple[zipfile.ZipFile, int]]:
    _verify(file, name)
    size = file.seek(0, os.SEEK_END)
    with _Archive(file) as archive:
        members = archive.infolist()
        # Members that share their bytes would be read again and again.
        is_plain = all(
            m.compress_type == zipfile.ZIP_STORED and m.file_size == m.compress_size for m in members
        )
        if not is_plain or sum(m.file_size for m in members) > size:
            raise CheckpointError(
                f"{name} declares more data than it contains: it was not written by tamis.save."
            )
        yield archive, size


# -- file objects of any kind: a pipe, an upload, a raw file ---------------------------------------------


def write_stream(file: BinaryIO, data: memoryview) -> None:
    """Write bytes to a file object; a raw one may accept fewer than it is given."""
    while len(data):
        written = file.write(data)
        if written is None:
            raise BlockingIOError("it would block")
        data = data[written:]


def read_stream(file: BinaryIO, name: str) -> bytes:
    """Read a file object from its position to its end, if it starts like a file of `tamis.save`.

    Raises
    ------
    CheckpointError
        If it does not; so an endless source, such as a device, is not read further.
    """
    head = b""
    while len(head) < _HEADER_SIZE and (chunk := _read_chunk(file, _HEADER_SIZE - len(head), name)):
        head += chunk
    if _FIRST_MEMBER_NAME not in head:
        raise CheckpointError(f"{name} was not written by tamis.save: {_ADVICE}")
    parts = [head]
    while chunk := _read_chunk(file, _CHUNK_SIZE, name):
        parts.append(chunk)
    return b"".join(parts)


def _read_chunk(file: BinaryIO, size: int, name: str) -> bytes:
    chunk: Any = file.read(size)
    if chunk is None:
        raise BlockingIOError("it would block")
    if not isinstance(chunk, bytes):
        raise TypeError(f"{name} returns {type(chunk).__name__}, not bytes: open it in binary mode.")
    return chunk


def _verify(file: BinaryIO, name: str) -> None:
    """Reject a file in which any byte was changed."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _FOOTER_SIZE, 0))
    end = file.read()
    if end == _MARK + _digest(file, size - _FOOTER_SIZE):
        return
    file.seek(0)
    if _FIRST_MEMBER_NAME in file.read(_HEADER_SIZE):
        raise CheckpointError(
            f"{name} is truncated or was altered: use another copy, or save the object again."
        )
    raise CheckpointError(f"{name} was not written by tamis.save: {_ADVICE}")


# -- atomic replacement of a file --------------------------------------------------------------------------


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
