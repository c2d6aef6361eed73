"""Files that appear: which are there, which have rows that were not taken, which stand under another name now."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.errors import StreamError
from tamis.streams.files import SUFFIXES
from tamis.streams.followed.part import Part
from tamis.streams.followed.row_groups import RowGroups
from tamis.streams.followed.text import Text
from tamis.streams.source import LONGEST_MAGIC, codec_of

__all__ = ["Files"]

_KINDS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


class Files:
    """The files that a path means, in the order of their names, and how much of each was taken.

    Parameters
    ----------
    path : str
        A file, a folder, or a pattern.
    format : {"csv", "parquet"} or None
        By default as the names say.
    header : bool
        Whether text begins with the names of the columns.
    """

    def __init__(self, path: str, format: str | None, header: bool) -> None:
        self.path, self.format, self.header = path, format, header
        self.is_pattern = glob.has_magic(path) and not os.path.exists(path)
        self.parts: dict[str, Text | RowGroups] = {}
        self.notes: list[dict[str, Any]] = []  # what happened to them
        self.changed: set[str] = set()  # names whose place is another one now
        if not self.is_pattern and not os.path.exists(path):
            raise StreamError(f"There is no file {path!r}: check the path, or name a folder or a pattern.")

    def names(self) -> list[str]:
        """Return the files that are there now."""
        if self.is_pattern:
            return sorted(name for name in glob.glob(self.path, recursive=True) if os.path.isfile(name))
        if not os.path.isdir(self.path):
            return [self.path] if os.path.exists(self.path) else []
        with os.scandir(self.path) as entries:
            return sorted(
                entry.path
                for entry in entries
                if _kind(entry.name) and entry.name[0] not in "._" and entry.is_file()
            )

    def part(self, name: str) -> Text | RowGroups:
        """Return a file; one that is new is begun."""
        if name not in self.parts:
            kind = self.format or _kind(name) or "csv"
            if name.lower().endswith(_PACKED) or _is_packed(name):
                raise StreamError(f"{name!r} is compressed: unpack what is to be followed.")
            if self.format is None and (found := SUFFIXES.get(Path(name).suffix.lower(), kind)) != kind:
                raise StreamError(f"{name!r} is {found}: only CSV and Parquet files can be followed.")
            if self.format is None:
                self.format = kind  # of all that come
            elif _kind(name) not in (None, self.format):
                raise StreamError(
                    f"{name!r} is {_kind(name)}, those before it are {self.format}: name files of one kind by a"
                    " pattern."
                )
            self.parts[name] = RowGroups(name) if kind == "parquet" else Text(name, self.header)
        return self.parts[name]

    def with_rows(self, open_part: Part | None) -> Iterator[tuple[Part, bool]]:
        """Yield the files that have rows to take, and whether a later one is there too, so that they are whole."""
        names = self.names()
        inodes = {name: os.stat(name).st_ino for name in names}
        self._rename(inodes)
        for name in [name for name in self.parts if name not in inodes]:  # removed, or about to be rewritten
            if self.parts[name].is_open:
                yield self.parts[name], True
                if not (len(names) == 0 and self.path == name):
                    self._drop(name)
            elif names:
                self._drop(name)
        for name in names:
            part = self.part(name)
            if part.inode and part.inode != inodes[name]:
                yield from self._replaced(name, inodes[name])
                part = self.part(name)
            if part.has_more(os.stat(name).st_size):
                yield part, name != names[-1]
                if part is not open_part and name != names[-1]:
                    part.close()

    def _rename(self, inodes: dict[str, int]) -> None:
        """Find files that were put aside under a new name."""
        new = {inode: name for name, inode in inodes.items() if name not in self.parts}
        for old in [
            name for name, part in self.parts.items() if part.inode and inodes.get(name) != part.inode
        ]:
            if (name := new.get(self.parts[old].inode)) is not None:
                part = self.parts[name] = self.parts.pop(old)
                part.name = name
                self.changed |= {old, name}
                self.notes.append({"event": "renamed", "from": old, "to": name})

    def _drop(self, name: str) -> None:
        self.parts.pop(name).close()
        self.changed.add(name)

    def _replaced(self, name: str, inode: int) -> Iterator[tuple[Part, bool]]:
        """Another file has the name: the same rows copied, or new ones after the old file was put aside."""
        part = self.parts[name]
        if isinstance(part, RowGroups) or not part.is_open or _begins(name, part.head):
            part.close()
            part.inode = inode  # whether it is the same is looked at when it is opened
            return
        yield part, True  # what is left of the old one
        self._drop(name)
        self.notes.append({"event": "rotated", "file": name})


def _is_packed(name: str) -> bool:
    try:
        with open(name, "rb") as file:
            return codec_of(file.read(LONGEST_MAGIC)) is not None
    except OSError:  # its reader says more
        return False


def _begins(name: str, head: bytes) -> bool:
    with open(name, "rb") as file:
        return file.read(len(head)) == head


def _kind(name: str) -> str | None:
    return _KINDS.get(Path(name).suffix.lower())
