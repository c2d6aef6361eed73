"""A file or standard input as bytes, opened anew for each pass, and the stream made of it."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from tamis.errors import StreamError
from tamis.streams.stream import Stream

__all__ = ["FileStream", "Source"]

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_HEAD_BYTES = 1 << 20


class Source:
    """A file or standard input: opened anew for each pass, watched for changes, measured on the way."""

    def __init__(self, path: str | os.PathLike[str], seekable: bool) -> None:
        self.name = os.fspath(path)
        self.is_stdin = self.name == "-"
        self.seekable = seekable
        self.raw: BinaryIO | None = None
        self.spent = self.finished = False
        if self.is_stdin:
            if seekable:
                raise StreamError(
                    "Parquet and Arrow files cannot be read from standard input: name the file."
                )
            self.name, self.size = "<stdin>", 0
            return
        if seekable and Path(self.name).suffix in _OPENERS:
            raise StreamError(
                f"{self.name!r} is compressed as a whole: Parquet and Arrow compress inside; unpack it."
            )
        try:
            found = os.stat(self.name)
        except FileNotFoundError:
            raise StreamError(f"There is no file {self.name!r}: check the path.") from None
        except OSError as error:
            raise StreamError(
                f"{self.name!r} cannot be read ({error.strerror}): check its permissions."
            ) from None
        if os.path.isdir(self.name):
            raise StreamError(f"{self.name!r} is a folder: name a file in it.")
        self.size, self.stamp = found.st_size, (found.st_size, found.st_mtime_ns)
        if self.size == 0:
            raise StreamError(f"{self.name!r} is empty: it has no rows.")

    def open(self) -> BinaryIO:
        """Open the source for a new pass, decompressing on the way."""
        self.finished = False
        if self.is_stdin:
            if self.spent:
                raise StreamError("Standard input can be read only once: save it to a file first.")
            self.spent = True
            return sys.stdin.buffer
        self.check_unchanged()
        try:
            self.raw = open(self.name, "rb")  # noqa: SIM115  closed by whoever reads it
        except OSError as error:
            raise StreamError(
                f"{self.name!r} cannot be read ({error.strerror}): check its permissions."
            ) from None
        opener = _OPENERS.get(Path(self.name).suffix)
        return self.raw if opener is None else cast("BinaryIO", io.BufferedReader(opener(self.raw, "rb")))

    def finish(self) -> None:
        """End a pass: what was read must be what was opened."""
        self.check_unchanged()
        self.finished = True

    def check_unchanged(self) -> None:
        """Raise if the file is not the one that was opened first."""
        if self.is_stdin:
            return
        try:
            now = os.stat(self.name)
        except OSError:
            raise StreamError(
                f"{self.name!r} has disappeared while it was read: restore it and start again."
            ) from None
        if (now.st_size, now.st_mtime_ns) != self.stamp:
            raise StreamError(
                f"{self.name!r} has changed while it was read: let it be finished, then start again."
            )

    def progress(self) -> float | None:
        """Return the fraction of the bytes read in the current pass."""
        if self.finished:
            return 1.0
        if self.raw is None or not self.size or self.raw.closed:
            return None
        return min(self.raw.tell() / self.size, 1.0)

    def fingerprint(self) -> dict[str, Any]:
        """Return the path, and what tells this file from another."""
        if self.is_stdin:
            return {"path": "-"}
        with open(self.name, "rb") as file:
            head = hashlib.sha256(file.read(_HEAD_BYTES)).hexdigest()[:16]
        return {"path": self.name, "bytes": self.size, "fingerprint": head}

    def fail(self, error: Exception) -> NoReturn:
        """Say in one sentence what a reader found wrong."""
        text = " ".join(str(error).split())
        if isinstance(error, EOFError | lzma.LZMAError | gzip.BadGzipFile | OSError):
            raise StreamError(f"{self.name!r} is truncated or damaged ({text}): copy it again.") from error
        if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            line, expected, got = ragged.groups()
            raise StreamError(
                f"{self.name!r} has {got} values in line {line}, the others have {expected}: mend that line."
            ) from error
        if "invalid UTF8" in text or "codec can't decode" in text:
            raise StreamError(f"{self.name!r} is not UTF-8 text ({text}): convert it to UTF-8.") from error
        if found := re.search(
            r"In CSV column #(\d+): .*conversion error to (\w+): invalid value '(.*?)'", text
        ):
            column, kind, value = found.groups()
            raise StreamError(
                f"{self.name!r} holds {value!r} in column {int(column)} (counted from 0), which began as {kind}:"
                " mend the value, or list the column as categorical."
            ) from error
        raise StreamError(
            f"{self.name!r} cannot be read ({text[:200]}): check that it is whole and of that format."
        ) from error


class FileStream(Stream):
    """Rows of a file, made by :func:`open_file`.

    Attributes
    ----------
    feature_names : list of str or None
    n_dropped : int
        Rows passed over in the current pass because they have no label.
    """

    n_dropped = 0

    def __init__(self, source: Source) -> None:
        self._source = source

    def progress(self) -> float | None:
        """Return the fraction of the file read in the current pass; None for standard input."""
        return self._source.progress()
