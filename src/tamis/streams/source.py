"""A file or standard input as bytes, reopened for each pass, and the base class of file streams."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from tamis._checksum import file_checksum
from tamis._interrupts import os_errors_as, raise_asynchronous
from tamis.errors import StreamError, import_extra
from tamis.streams.converted import open_archive
from tamis.streams.dialect import LONGEST_LINE
from tamis.streams.stream import Stream


def _open_zstd(raw: BinaryIO, mode: str) -> Any:
    pyarrow = import_extra("pyarrow", "Reading zstd needs pyarrow", "cli")
    if not pyarrow.Codec.is_available("zstd"):
        raise ImportError("This pyarrow was built without zstd: decompress the file first.")
    return pyarrow.CompressedInputStream(raw, "zstd")


@dataclass(frozen=True)
class Codec:
    """Compression of a file, detected from its first bytes, regardless of the file name."""

    name: str
    suffix: str
    magic: bytes
    open: Callable[[BinaryIO, str], Any]


CODECS = (
    Codec("gzip", ".gz", b"\x1f\x8b\x08", gzip.open),
    Codec("bzip2", ".bz2", b"BZh", bz2.open),
    Codec("xz", ".xz", b"\xfd7zXZ\x00", lzma.open),
    Codec("zstd", ".zst", b"\x28\xb5\x2f\xfd", _open_zstd),
    # Also Excel workbooks.
    Codec("zip", ".zip", b"PK\x03\x04", open_archive),
)
LONGEST_MAGIC = 10  # bytes
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")  # a name in a header may begin with BZh


def codec_of(head: bytes) -> Codec | None:
    """Return the compression of a file that begins with these bytes, or None if it is not compressed.

    >>> codec_of(b"BZh91AY&SY").name, codec_of(b"BZh,state")
    ('bzip2', None)
    """
    value = next((codec for codec in CODECS if head.startswith(codec.magic)), None)
    return None if value is not None and value.name == "bzip2" and not _BZIP2.match(head) else value


_DAMAGED = (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, OSError)
_FIRST_LINES = 20  # lines in which the header may occur


class Source:
    """A file or standard input that is reopened for each pass, with checks for changes and a measure of progress."""

    def __init__(self, path: str | os.PathLike[str], seekable: bool) -> None:
        self.name = os.fspath(path)
        self.is_stdin = self.name == "-"
        self.raw: BinaryIO | None = None
        self.spent = self.finished = False
        self._head = b""  # bytes of standard input read by `peek`
        self._digest = ""  # of a file
        if self.is_stdin:
            if seekable:
                raise StreamError(
                    "Parquet and Arrow files cannot be read from standard input: name the file."
                )
            self.name = "<stdin>"
            return
        with self._read_errors():
            try:
                status = os.stat(self.name)
            except FileNotFoundError:
                raise StreamError(f"There is no file {self.name!r}: check the path.") from None
        if stat.S_ISDIR(status.st_mode):
            raise StreamError(f"{self.name!r} is a folder: name a file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise StreamError(f"{self.name!r} is a pipe or a device: redirect it, and name '-' as the path.")
        self.size, self.stamp = status.st_size, (status.st_size, status.st_mtime_ns)
        if self.size == 0:
            raise StreamError(f"{self.name!r} is empty: name a file that has a header and rows.")
        self._codec = self._compression()
        if seekable and self._codec is not None:
            raise StreamError(
                f"{self.name!r} is compressed as a whole, but Parquet and Arrow files are"
                " compressed internally: decompress it."
            )

    def _compression(self) -> Codec | None:
        """Return the codec by the first bytes, or else by the file name, so that its reader reports damage."""
        with self._read_errors(), open(self.name, "rb") as file:
            head = file.read(LONGEST_MAGIC)
        suffix = Path(self.name).suffix.lower()
        return codec_of(head) or next((codec for codec in CODECS if codec.suffix == suffix), None)

    def _read_errors(self) -> AbstractContextManager[None]:
        return os_errors_as(StreamError, f"{self.name!r} cannot be read", "check its permissions")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the source for a new pass, decompressing while reading, and close it afterwards."""
        self.finished = False
        if self.is_stdin:
            if self.spent:
                raise StreamError("Standard input can be read only once: save it to a file first.")
            self.spent = True
            yield cast("BinaryIO", io.BufferedReader(_Joined(self._head, sys.stdin.buffer)))
            return
        self.check_unchanged()
        with self._read_errors():
            raw = open(self.name, "rb")  # noqa: SIM115  closed below
        with raw:
            self.raw = raw
            if self._codec is None:
                yield raw
            else:
                with io.BufferedReader(self._codec.open(raw, "rb")) as file:
                    yield cast("BinaryIO", file)

    @contextmanager
    def reading(self) -> Iterator[BinaryIO]:
        """Open the source for a new pass, and explain what a reader raises in one sentence."""
        with self.open() as file:
            try:
                yield file
            except Exception as error:
                self.fail(error)

    def peek(self, size: int) -> bytes:
        """Return the first `size` bytes (or all, if fewer); the next pass still begins with them."""
        try:
            if not self.is_stdin:
                with self.open() as file:
                    return file.read(size)
            self._head += sys.stdin.buffer.read(size - len(self._head))
        except ImportError:
            raise
        except Exception as error:  # of many types in a damaged workbook
            self.fail(error)
        if not self._head:
            raise StreamError("Standard input is empty: write a header and rows to it.")
        if (codec := codec_of(self._head)) is not None:
            raise StreamError(f"Standard input is compressed ({codec.name}): decompress it in the pipe.")
        return self._head

    def lines(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the lines of an opened file; a line longer than any row is rejected without being read."""
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise StreamError(
                    f"{self.name!r} has more than {LONGEST_LINE >> 20} MB in line {number}: split it into rows."
                )
            yield line

    def finish(self) -> None:
        """End a pass and check that the file has not changed."""
        self.check_unchanged()
        self.finished = True

    def check_unchanged(self) -> None:
        """Raise if the file has changed since it was first opened."""
        if self.is_stdin:
            return
        try:
            now = os.stat(self.name)
        except OSError as error:
            raise_asynchronous(error)
            raise StreamError(
                f"{self.name!r} has disappeared while it was read: restore it and start again."
            ) from None
        if (now.st_size, now.st_mtime_ns) != self.stamp:
            raise StreamError(
                f"{self.name!r} was modified while it was read: wait until it is complete, then run again."
            )

    def progress(self) -> float | None:
        """Return the fraction of the bytes read in the current pass."""
        if self.finished:
            return 1.0
        if self.raw is None or self.raw.closed:
            return None
        return min(self.raw.tell() / self.size, 1.0)

    def fingerprint(self) -> dict[str, Any]:
        """Return the path, and a fingerprint of all of the contents, which is computed once."""
        if self.is_stdin:
            return {"path": "-"}
        if not self._digest:
            with self._read_errors(), open(self.name, "rb") as file:
                self._digest = f"{file_checksum(file):08x}"
        return {"path": self.name, "bytes": self.size, "fingerprint": self._digest}

    def fail(self, error: Exception, message: str | None = None) -> NoReturn:
        """Raise a StreamError that explains a reader's error in one sentence, by default its own message."""
        if isinstance(error, StreamError):
            raise error
        raise_asynchronous(error)
        if getattr(error, "signum", None):  # pyarrow's own exception for an interrupt
            raise KeyboardInterrupt from error
        self.check_unchanged()  # a partly written new file looks damaged
        text = message or " ".join(str(error).split())
        if isinstance(error, _DAMAGED):
            raise StreamError(f"{self.name!r} is truncated or damaged ({text}): copy it again.") from error
        if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            line, expected, got = ragged.groups()
            names_below = int(line) <= _FIRST_LINES and int(got) > int(expected)
            also = ", or delete the lines above it if it is the header" if names_below else ""
            raise StreamError(
                f"{self.name!r} has {got} values in line {line}, the others have {expected}: fix that line{also}."
            ) from error
        if "invalid UTF8" in text or "codec can't decode" in text:
            raise StreamError(
                f"{self.name!r} is not UTF-8 text ({text}): choose encoding='latin-1', or convert it."
            ) from error
        if "Empty CSV file" in text:
            raise StreamError(f"{self.name!r} has no rows: check that it is the right file.") from error
        raise StreamError(
            f"{self.name!r} cannot be read ({text[:200]}): check that it is complete and in that format."
        ) from error


class BytesSource(Source):
    """Bytes that were already read elsewhere, with the name of their source."""

    def __init__(self, name: str, head: bytes = b"") -> None:
        self.name, self._head = name, head
        self.is_stdin = self.spent = self.finished = False
        self.raw = None

    def peek(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        return self._head[:size]

    def check_unchanged(self) -> None:
        """Do nothing, since bytes in memory cannot change."""

    def fingerprint(self) -> dict[str, Any]:
        """Return the name."""
        return {"path": self.name}


class _Joined(io.RawIOBase):
    """Bytes that have already been read, followed by the rest of their stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._parts: list[Any] = [io.BytesIO(head), rest]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # Read once, since filling the buffer may take long.
        return next((n for part in self._parts if (n := part.readinto1(buffer))), 0)


class FileStream(Stream):
    """Rows of a file, as opened by :func:`open_file`.

    Attributes
    ----------
    feature_names : list of str or None
    n_dropped : int
        Rows skipped in the current pass because they have no label.
    """

    n_dropped = 0

    def __init__(self, source: Source) -> None:
        self._source = source

    def _title(self) -> str:
        return self._source.name

    @property
    def is_resumable(self) -> bool:
        """Whether another pass can resume where one stopped: not for standard input."""
        return not self._source.is_stdin

    def progress(self) -> float | None:
        """Return the fraction of the file read in the current pass; None for standard input."""
        return self._source.progress()
