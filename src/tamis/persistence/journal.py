"""A file of JSON lines that grows, and whose length is part of a checkpoint: after a kill it is cut back to it."""

from __future__ import annotations

import errno
import json
import math
import os
from typing import Any

from tamis.errors import CheckpointError

__all__ = ["Journal", "finite"]


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
    >>> saved = journal.length
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
        self.length = 0 if place == 1 else os.fstat(self._file.fileno()).st_size

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

    def cut(self, length: int) -> None:
        """Take back what was written after a checkpoint; a shorter file, put aside meanwhile, is left as it is."""
        if self.path != "-" and self.length > length:
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
