"""An append-only file of JSON lines; its length is part of a checkpoint, and after a kill it is truncated to it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import warnings
from contextlib import AbstractContextManager
from typing import Any

from tamis._interrupts import os_errors_as
from tamis._json import null_nonfinite
from tamis._validation import is_integer, short_repr
from tamis.errors import CheckpointError

_WINDOW = 4096  # bytes at either end that identify a file


class Journal:
    r"""A file to which JSON lines are appended.

    Parameters
    ----------
    path : path-like
        Lines are appended to an existing file. ``"-"`` is standard output, which cannot be truncated.

    Attributes
    ----------
    length : int
        Number of bytes of the complete lines.

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
    >>> journal.truncate(saved)
    >>> path.read_text()
    '{"row": 1}\n'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.is_torn = False  # the last line is incomplete
        place = 1 if self.path == "-" else self.path
        with self._write_errors():
            self._file = open(place, "ab", buffering=0, closefd=place != 1)  # noqa: SIM115  stays open for the whole run
        status = os.fstat(self._file.fileno())
        self._is_file = place != 1 and stat.S_ISREG(status.st_mode)
        self.length = status.st_size if self._is_file else 0

    def _write_errors(self) -> AbstractContextManager[None]:
        advice = "free some space, or choose another location"
        return os_errors_as(CheckpointError, f"Cannot write {self.path!r}", advice)

    def write(self, records: list[dict[str, Any]]) -> None:
        """Append a line for each record; NaN and infinity become null."""
        if not records:
            return
        data = memoryview("".join(f"{json.dumps(null_nonfinite(one))}\n" for one in records).encode())
        self.is_torn = True
        with self._write_errors():
            done = 0
            while done < len(data):
                done += self._file.write(data[done:])
        self.length += len(data)
        self.is_torn = False

    def flush(self) -> None:
        """Wait until the content of a regular file is on disk."""
        with self._write_errors():
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # raised by pipes and terminals
                    raise

    def mark(self, length: int | None = None) -> list[Any]:
        """Return the mark from which `truncate` restores the current length, or the given one.

        Returns
        -------
        list
            The number of bytes, and a fingerprint of the file: a hash of its first and last 4096 bytes, or of the
            path if it is empty.
        """
        length = self.length if length is None else length
        return [length, self._fingerprint(length)]

    def _fingerprint(self, length: int) -> str:
        if not self._is_file:
            return ""
        with self._write_errors(), open(self.path, "rb") as file:
            first = file.read(min(length, _WINDOW)) or os.path.realpath(self.path).encode()
            file.seek(max(0, length - _WINDOW))
            last = file.read(min(length, _WINDOW))
        return hashlib.sha256(first + last).hexdigest()[:16]

    def truncate(self, mark: Any) -> None:
        """Remove everything written after a mark; a file that has become shorter is unchanged, with a warning.

        Raises
        ------
        CheckpointError
            If it is not the marked file; nothing is removed.
        """
        if (
            not (isinstance(mark, list) and len(mark) == 2 and isinstance(mark[1], str))
            or not is_integer(mark[0])
            or mark[0] < 0
        ):
            raise CheckpointError(
                f"The saved length of {self.path!r} is {short_repr(mark)}, so the checkpoint was changed from outside:"
                " choose another checkpoint, or remove it to start again."
            )
        length, head = mark
        if not self._is_file or self.length == length == 0:
            return
        if self.length < length:
            warnings.warn(
                f"{self.path!r} has {self.length:,} bytes, but {length:,} were written before the checkpoint: its"
                " earlier lines are missing, and the next ones are appended.",
                stacklevel=2,
            )
            return
        if self._fingerprint(length) != head:
            raise CheckpointError(
                f"{self.path!r} is not the file that the run wrote before the checkpoint: pass that file, or a"
                " new one."
            )
        with self._write_errors():
            self._file.truncate(length)
        self.length = length

    def close(self) -> None:
        """Close the file."""
        self._file.close()
