"""A file of JSON lines that grows, and whose length is part of a checkpoint: after a kill it is cut back to it."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
from typing import Any

from tamis.errors import CheckpointError

__all__ = ["Journal", "finite"]

_HEAD = 4096  # bytes that tell a file from another


class Journal:
    r"""A file that lines of JSON are appended to.

    Parameters
    ----------
    path : path-like
        A file that is there is written on at its end. ``"-"`` is standard output, which cannot be cut.

    Attributes
    ----------
    length : int
        Bytes of all lines that are whole.

    Raises
    ------
    CheckpointError
        If it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.jsonl")
    >>> journal = Journal(path)
    >>> journal.write([{"row": 1}])
    >>> saved = journal.mark()
    >>> journal.write([{"row": 2}, {"row": 3}])
    >>> journal.cut(saved)
    >>> path.read_text()
    '{"row": 1}\n'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.is_torn = False  # in the middle of a line
        try:
            place = 1 if self.path == "-" else self.path
            self._file = open(place, "ab", buffering=0, closefd=place != 1)  # noqa: SIM115  open as long as the run
        except OSError as error:
            raise self._unwritten(error) from error
        status = os.fstat(self._file.fileno())
        self._is_file = place != 1 and stat.S_ISREG(status.st_mode)
        self.length = status.st_size if self._is_file else 0

    def _unwritten(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"Cannot write {self.path!r} ({error.strerror or error}): make room, or choose another place."
        )

    def write(self, records: list[dict[str, Any]]) -> None:
        """Append a line for each record; numbers that JSON does not have become null."""
        if not records:
            return
        data = memoryview("".join(f"{json.dumps(finite(one))}\n" for one in records).encode())
        self.is_torn = True
        try:
            done = 0
            while done < len(data):
                done += self._file.write(data[done:])
        except BrokenPipeError:  # who reads it has seen enough
            raise
        except OSError as error:
            raise self._unwritten(error) from error
        self.length += len(data)
        self.is_torn = False

    def flush(self) -> None:
        """Wait until all of it is on the disk, as far as it is a file there."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as pipes and terminals say
                raise self._unwritten(error) from error

    def mark(self, length: int | None = None) -> list[Any]:
        """Return what `cut` needs to come back to now, or to when there were so many bytes.

        Returns
        -------
        list
            How many bytes, and what tells this file from another: a hash of the first 4096 of them; of its place, if
            there are none.
        """
        length = self.length if length is None else length
        return [length, self._head(length)]

    def _head(self, length: int) -> str:
        if not self._is_file:
            return ""
        try:
            with open(self.path, "rb") as file:
                first = file.read(min(length, _HEAD)) or os.path.realpath(self.path).encode()
        except OSError as error:
            raise self._unwritten(error) from error
        return hashlib.sha256(first).hexdigest()[:16]

    def cut(self, mark: list[Any]) -> None:
        """Take back what was written after a mark; a shorter file, put aside meanwhile, is left as it is.

        Raises
        ------
        CheckpointError
            If it is another file than the one that was marked; nothing is cut.
        """
        length, head = mark
        if not self._is_file or self.length <= length:
            return
        if self._head(length) != head:
            raise CheckpointError(
                f"{self.path!r} does not begin as it did at the checkpoint: name the file that the run wrote then, or a"
                " new one."
            )
        try:
            self._file.truncate(length)
        except OSError as error:
            raise self._unwritten(error) from error
        self.length = length

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def finite(value: Any) -> Any:
    """Return a value with None for the numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
