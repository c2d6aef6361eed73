"""The file format: an uncompressed zip archive with a checksum, read from and written to files and streams."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from tamis.errors import CheckpointError

Array: TypeAlias = np.ndarray[Any, Any]

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
