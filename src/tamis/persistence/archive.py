"""The file: a zip archive without compression, its checksum, and how it is written, to the disk or elsewhere."""

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

__all__ = ["from_memory", "open_verified", "read_all", "write", "write_all"]

Array: TypeAlias = np.ndarray[Any, Any]

_MARK = b"tamis sha256 "
_END = len(_MARK) + 64
_FIRST_MEMBER, _HEAD = b"manifest.json", 64  # within the first bytes of each file
_AT_ONCE = 1 << 20
_GIVE = "give the path, file object or bytes of one that was."


def write(file: BinaryIO, manifest: bytes, arrays: list[Array]) -> None:
    """Write the archive and its checksum."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = _MARK.ljust(_END)
        archive.writestr(zipfile.ZipInfo("manifest.json"), manifest)  # no time of day: same state, same bytes
        for i, array in enumerate(arrays):
            info = zipfile.ZipInfo(f"{i}.npy")
            info.file_size = array.nbytes + 1024  # tells zipfile whether the member is large
            with archive.open(info, "w") as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
    size = file.seek(0, os.SEEK_END) - _END
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
        If it is not, byte for byte, as it was written, or unpacks to more than it holds.
    """
    name = repr(os.fspath(path))
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder's own error says it better
        raise CheckpointError(f"{name} is no regular file: give the path of one that tamis.save wrote.")
    with open(path, "rb") as file, _verified(file, name) as found:
        yield found


@contextlib.contextmanager
def from_memory(data: bytes | bytearray | memoryview, name: str) -> Iterator[tuple[zipfile.ZipFile, int]]:
    """Open the archive that bytes are, as `open_verified` does a file; `name` says in messages what they are."""
    with _verified(io.BytesIO(data), name) as found:
        yield found


@contextlib.contextmanager
def _verified(file: BinaryIO, name: str) -> Iterator[tuple[zipfile.ZipFile, int]]:
    _verify(file, name)
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        # Members that share their bytes would be read again and again.
        is_plain = all(
            m.compress_type == zipfile.ZIP_STORED and m.file_size == m.compress_size for m in members
        )
        if not is_plain or sum(m.file_size for m in members) > size:
            raise CheckpointError(f"{name} declares more than it holds: it was not written by tamis.save.")
        yield archive, size


# -- file objects of any kind: a pipe, an upload, a raw file ---------------------------------------------


def write_all(file: BinaryIO, data: memoryview) -> None:
    """Write bytes to a file object; a raw one may take fewer than it is given."""
    while len(data):
        written = file.write(data)
        if written is None:
            raise BlockingIOError("it would block")
        data = data[written:]


def read_all(file: BinaryIO, name: str) -> bytes:
    """Read a file object from where it stands to its end, if it begins as a file of `tamis.save` does.

    Raises
    ------
    CheckpointError
        If it does not: what has no end, such as a device, is not read on.
    """
    head = b""
    while len(head) < _HEAD and (chunk := _chunk(file, _HEAD - len(head), name)):
        head += chunk
    if _FIRST_MEMBER not in head:
        raise CheckpointError(f"{name} was not written by tamis.save: {_GIVE}")
    parts = [head]
    while chunk := _chunk(file, _AT_ONCE, name):
        parts.append(chunk)
    return b"".join(parts)


def _chunk(file: BinaryIO, size: int, name: str) -> bytes:
    chunk: Any = file.read(size)
    if chunk is None:
        raise BlockingIOError("it would block")
    if not isinstance(chunk, bytes):
        raise TypeError(f"{name} gives {type(chunk).__name__}, not bytes: open it in binary mode.")
    return chunk


def _verify(file: BinaryIO, name: str) -> None:
    """Refuse a file that is not, byte for byte, as it was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _END, 0))
    end = file.read()
    if end == _MARK + _digest(file, size - _END):
        return
    file.seek(0)
    if _FIRST_MEMBER in file.read(_HEAD):
        raise CheckpointError(f"{name} is truncated or was altered: use another copy of it, or save again.")
    raise CheckpointError(f"{name} was not written by tamis.save: {_GIVE}")
