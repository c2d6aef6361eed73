"""The files of an unbounded stream: existing files, files with unread rows, and renamed files."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.errors import StreamError
from tamis.streams.files import SUFFIXES
from tamis.streams.source import CODECS, LONGEST_MAGIC, codec_of
from tamis.streams.tail.file import HEAD, FollowedFile
from tamis.streams.tail.parquet import FollowedParquet
from tamis.streams.tail.text import FollowedText

__all__ = ["FollowedFiles"]

_AT_ONCE = 1 << 20  # bytes

_KINDS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


class FollowedFiles:
    """The files that match a path, in the order of their names, with the position in each.

    Parameters
    ----------
    path : str
        A file, a folder, or a pattern.
    format : {"csv", "parquet"} or None
        By default inferred from the names.
    header : bool
        Whether text files begin with the column names.
    max_quoted_lines : int
    """

    def __init__(self, path: str, format: str | None, header: bool, max_quoted_lines: int) -> None:
        self.path, self.format, self.header, self._most = path, format, header, max_quoted_lines
        self.is_pattern = glob.has_magic(path) and not os.path.exists(path)
        self.parts: dict[str, FollowedText | FollowedParquet] = {}
        self.notes: list[dict[str, Any]] = []  # events of the files
        self._passed: set[str] = set()  # compressed files
        self.changed: set[str] = set()  # names of files that were replaced
        if not self.is_pattern and not os.path.exists(path):
            raise StreamError(f"There is no file {path!r}: check the path, or name a folder or a pattern.")

    def names(self) -> list[str]:
        """Return the existing files."""
        if self.is_pattern:
            items = sorted(name for name in glob.glob(self.path, recursive=True) if os.path.isfile(name))
            plain = [name for name in items if not name.lower().endswith(_PACKED)]
            for name in set(items).difference(plain, self._passed) if plain else ():
                self._passed.add(name)
                warnings.warn(
                    f"{name!r} was skipped because it is compressed: decompress it if it contains new rows.",
                    stacklevel=2,
                )
            return plain or items
        if not os.path.isdir(self.path):
            return [self.path] if os.path.exists(self.path) else []
        with os.scandir(self.path) as entries:
            return sorted(
                entry.path
                for entry in entries
                if _kind(entry.name) and entry.name[0] not in "._" and entry.is_file()
            )

    def part(self, name: str) -> FollowedText | FollowedParquet:
        """Return a file; a new one is added."""
        if name not in self.parts:
            kind = self.format or _kind(name) or "csv"
            if name.lower().endswith(_PACKED) or _is_packed(name):
                raise StreamError(f"{name!r} is compressed and cannot be followed: decompress it.")
            if self.format is None and (value := SUFFIXES.get(Path(name).suffix.lower(), kind)) != kind:
                raise StreamError(f"{name!r} is {value}: only CSV and Parquet files can be followed.")
            if self.format is None:
                self.format = kind  # for all later files
            elif _kind(name) not in (None, self.format):
                raise StreamError(
                    f"{name!r} is {_kind(name)}, but earlier files are {self.format}: select"
                    " files of one format by a pattern."
                )
            self.parts[name] = (
                FollowedParquet(name) if kind == "parquet" else FollowedText(name, self.header, self._most)
            )
        return self.parts[name]

    def is_whole(self, name: str, names: list[str]) -> bool:
        """Return whether a later file exists; ``log.csv.1`` is a rotated file, not one later than ``log.csv``."""
        return not names[-1].startswith(name)

    def with_rows(self, open_part: FollowedFile | None) -> Iterator[tuple[FollowedFile, bool]]:
        """Yield the files with unread rows, and whether a later file exists, so that they are complete."""
        names = self.names()
        inodes = {name: os.stat(name).st_ino for name in names}
        self._rename(inodes)
        for name in [name for name in self.parts if name not in inodes]:  # removed, or about to be rewritten
            if self.parts[name].is_open:
                yield self.parts[name], True
                if not (len(names) == 0 and self.path == name):
                    self._drop(name)
            elif names:
                _reject_compressed_rest(self.parts[name])
                self._drop(name)
        for name in names:
            if name not in self.parts and any(_is_copy(name, part) for part in self.parts.values()):
                continue  # its rows are read from the original file
            part = self.part(name)
            if part.inode and part.inode != inodes[name]:
                yield from self._after_replacement(name, inodes[name])
                part = self.part(name)
            size = os.stat(name).st_size
            if part.is_rewritten(size):
                yield self._after_copy(part, names), True  # the remaining rows
                part = self.part(name)
            if part.has_more(size):
                is_whole = self.is_whole(name, names)
                yield part, is_whole
                if part is not open_part and is_whole:
                    part.close()

    def _rename(self, inodes: dict[str, int]) -> None:
        """Find files renamed by rotation; the new name may be the old name of another file."""
        moved = [old for old, part in self.parts.items() if part.inode and inodes.get(old) != part.inode]
        free = {inode: name for name, inode in inodes.items() if name not in self.parts or name in moved}
        renamed = {old: free[self.parts[old].inode] for old in moved if self.parts[old].inode in free}
        parts = {old: self.parts.pop(old) for old in renamed}
        for old, name in renamed.items():
            self._move(parts[old], name)

    def _move(self, part: FollowedText | FollowedParquet, name: str) -> None:
        """Record that a file was renamed."""
        self.notes.append({"event": "renamed", "from": part.name, "to": name})
        self.changed |= {part.name, name}
        self.parts[name] = part
        part.name = name

    def _after_copy(self, part: FollowedText | FollowedParquet, names: list[str]) -> FollowedFile:
        """Return the copy of a file that was truncated or rewritten after copying; the copy contains its rows."""
        copies = [name for name in names if name not in self.parts and _is_copy(name, part)]
        copies = [name for name in copies if os.path.getsize(name) >= part.at]
        if not copies:
            part.raise_rewritten()
        copy = max(copies, key=os.path.getsize)
        del self.parts[part.name]
        part.close()
        self._move(part, copy)
        part.inode = os.stat(copy).st_ino
        return part

    def _drop(self, name: str) -> None:
        self.parts.pop(name).close()
        self.changed.add(name)

    def _after_replacement(self, name: str, inode: int) -> Iterator[tuple[FollowedFile, bool]]:
        """Yield the file to finish first, if its name now belongs to a copy of its rows or to new rows (rotation)."""
        part = self.parts[name]
        if isinstance(part, FollowedParquet) or not part.is_open or _begins(name, part.head):
            part.close()
            part.inode = inode  # whether it is the same file is checked when it is opened
            return
        yield part, True  # the remaining rows of the old file
        self._drop(name)
        self.notes.append({"event": "rotated", "file": name})


def _is_packed(name: str) -> bool:
    try:
        with open(name, "rb") as file:
            return codec_of(file.read(LONGEST_MAGIC)) is not None
    except OSError:  # its reader reports the error
        return False


def _is_copy(name: str, part: FollowedText | FollowedParquet) -> bool:
    """Return whether a file with a longer name begins like a file that was read."""
    if not name.startswith(part.name) or not part.row or isinstance(part, FollowedParquet):
        return False
    with open(name, "rb") as file:
        return part.begins_as(file.read(HEAD))


def _reject_compressed_rest(part: FollowedFile) -> None:
    """Raise if a file was compressed before all of its rows were read."""
    for codec in CODECS:
        packed = f"{part.name}{codec.suffix}"
        if os.path.exists(packed):
            with open(packed, "rb") as raw, codec.open(raw, "rb") as file:
                left = part.at
                while left and (skipped := len(file.read(min(left, _AT_ONCE)))):
                    left -= skipped
                if file.read(1):
                    raise StreamError(
                        f"{packed!r} has rows of {part.name!r} that were not read before it"
                        " was compressed: decompress it."
                    )


def _begins(name: str, head: bytes) -> bool:
    with open(name, "rb") as file:
        return file.read(len(head)) == head


def _kind(name: str) -> str | None:
    return _KINDS.get(Path(name).suffix.lower())
