"""The files of an unbounded stream: existing files, files with unread rows, and renamed files."""

from __future__ import annotations

import contextlib
import glob
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from tamis._interrupts import raise_asynchronous
from tamis.errors import StreamError
from tamis.streams.files import SUFFIXES
from tamis.streams.source import CODECS, LONGEST_MAGIC, codec_of
from tamis.streams.tail.file import unreadable
from tamis.streams.tail.parquet import FollowedParquet
from tamis.streams.tail.text import FollowedText, is_beginning

Part: TypeAlias = FollowedText | FollowedParquet
_AT_ONCE = 1 << 20  # bytes
_SETTLED = 2.5  # seconds after which the status of a file changes with any later change of its bytes
_PATIENCE = 5.0  # seconds without a change after which a file that cannot be read is reported

_KINDS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet",
    ".pq": "parquet",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


class FollowedFiles:
    """The files that match a path, in the order of their names, with the position in each.

    Parameters
    ----------
    path : str
        A file, a folder, or a pattern.
    format : {"csv", "json", "parquet"} or None
        By default inferred from the names.
    header : bool
        Whether text files begin with the column names.
    max_quoted_lines : int
    skips_long_lines : bool
        Whether lines of more than 64 MB are returned as bad lines.
    """

    def __init__(
        self, path: str, format: str | None, header: bool, max_quoted_lines: int, *, skips_long_lines: bool
    ) -> None:
        self.path, self.format = path, format
        self._how: dict[str, Any] = {"header": header, "max_quoted_lines": max_quoted_lines}
        self._how["skips_long_lines"] = skips_long_lines
        self.is_pattern = glob.has_magic(path) and not os.path.exists(path)
        literal = glob.escape(path).partition("[")[0]
        # Without the rest of a pattern.
        self._stem = [literal] if self.is_pattern and os.path.basename(literal) else []
        self.is_pipe = path == "-"  # standard input, which has no files
        self.is_single = not (self.is_pattern or self.is_pipe or os.path.isdir(path))
        self.parts: dict[str, Part] = {}
        self.notes: list[dict[str, Any]] = []  # events of the files
        self.n_resumed: int | None = None  # files of a position, until they are found
        self._passed: set[str] = set()  # compressed files, and copies
        self._reported: dict[str, str] = {}  # files that cannot be read, and the reported reason
        self._unusable: dict[str, str] = {}  # names of folders and others, and why they cannot be read
        self.changed: set[str] = set()  # names of files that were replaced
        if self.is_single and not os.path.exists(path):
            raise StreamError(f"There is no file {path!r}: check the path, or name a folder or a pattern.")

    def names(self) -> list[str]:
        """Return the existing files."""
        if self.is_pipe:
            return []
        if self.is_pattern:
            items = self._files_among(sorted(glob.glob(self.path, recursive=True)))
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
            return self._files_among(
                sorted(entry.path for entry in entries if _kind(entry.name) and entry.name[0] not in "._")
            )

    def _files_among(self, names: list[str]) -> list[str]:
        """Return the names of files; others are noted if they have the suffix of a file of rows."""
        files = [name for name in names if os.path.isfile(name)]
        self._unusable = {
            name: (
                f"it is a folder: follow the files in it by a pattern such as '{name}/*{Path(name).suffix}'"
                if os.path.isdir(name)
                else "it is not a file"
            )
            for name in set(names).difference(files)
            if _kind(name) and not any(file.startswith(f"{name}{os.sep}") for file in files)
        }
        return files

    def part(self, name: str) -> Part:
        """Return a file; a new one is added."""
        if name not in self.parts:
            kind = self.format or _kind(name) or "csv"
            if name.lower().endswith(_PACKED) or _is_packed(name):
                raise StreamError(f"{name!r} is compressed and cannot be followed: decompress it.")
            if self.format is None and (value := SUFFIXES.get(Path(name).suffix.lower(), kind)) != kind:
                raise StreamError(
                    f"{name!r} is {value}: only CSV, JSON lines and Parquet files can be followed."
                )
            if self.format is None:
                self.format = kind  # for all later files
            elif _kind(name) not in (None, self.format):
                raise StreamError(
                    f"{name!r} is {_kind(name)}, but earlier files are {self.format}: select"
                    " files of one format by a pattern."
                )
            self.parts[name] = FollowedParquet(name) if kind == "parquet" else FollowedText(name, **self._how)
        return self.parts[name]

    def is_whole(self, name: str, names: list[str]) -> bool:
        """Return whether a later file exists; ``log.csv.1`` is a rotated file, not one later than ``log.csv``."""
        return not _is_name_of_copy(names[-1], name)

    def with_rows(self, open_part: Part | None) -> Iterator[tuple[Part, bool]]:
        """Yield the files with unread rows, and whether a later file exists, so that they are complete."""
        try:
            yield from self._with_rows(open_part)
        except FileNotFoundError:
            return  # a file was renamed or removed meanwhile
        except PermissionError as error:
            raise unreadable(str(error.filename), error) from None

    def _with_rows(self, open_part: Part | None) -> Iterator[tuple[Part, bool]]:
        found = self._found()
        names = list(found)
        yield from self.to_finish(found)
        self._check_resumed()
        for name, status in found.items():
            if name not in self.parts and self._is_copy(name, status.st_size, found):
                continue  # its rows are read from the original file
            part = self.part(name)
            if part.has_more(status.st_size):
                is_whole = self.is_whole(name, names)
                yield part, is_whole
                if part is not open_part and is_whole:
                    part.close()
        self.report_unreadable(_PATIENCE)

    def _found(self) -> dict[str, os.stat_result]:
        """Return the existing files, and the status of each."""
        found = {}
        for name in self.names():
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                found[name] = os.stat(name)
        return found

    # -- files that cannot be read -------------------------------------------------------------------------

    def unreadable(self) -> dict[str, str]:
        """Return the files that cannot be read now, and why."""
        problems = {name: part.problem for name, part in self.parts.items() if part.problem is not None}
        return dict(sorted({**problems, **self._unusable}.items()))

    def has_damaged(self) -> bool:
        """Return whether a file cannot be read, and is not just incomplete."""
        return bool(self._unusable) or any(
            part.problem is not None and isinstance(part, FollowedParquet) and part.is_damaged
            for part in self.parts.values()
        )

    def report_unreadable(self, patience: float = 0.0) -> None:
        """Report, once, the files that cannot be read and have not changed for so many seconds."""
        now = time.monotonic()
        for name, reason in self.unreadable().items():
            is_recent = name in self.parts and now - self.parts[name].since < patience
            if not is_recent and self._reported.get(name) != reason:
                self._reported[name] = reason
                self.notes.append({"event": "unreadable", "file": name, "reason": reason})
                warnings.warn(f"{name!r} was not read: {reason}.", stacklevel=2)

    def _check_resumed(self) -> None:
        """Report if none of the files of a position was found."""
        n, self.n_resumed = self.n_resumed, None
        if n is not None and not any(part.at for part in self.parts.values()):
            self.notes.append({"event": "no_known_file", "files": n})
            warnings.warn(
                f"None of the {n:,} files of the checkpoint exists in {self.path!r}, so all files are read from their"
                " first row: if they are the same ones, restore their names, or remove the checkpoint to start again.",
                stacklevel=2,
            )

    # -- files that were renamed, copied, replaced or removed ----------------------------------------------

    def to_finish(self, found: dict[str, os.stat_result] | None = None) -> Iterator[tuple[Part, bool]]:
        """Find the known files again, and yield those to be finished before others are read, as in `with_rows`."""
        found = self._found() if found is None else found
        lost = [part for name, part in self.parts.items() if not self._is_there(part, found.get(name))]
        free = [name for name in found if name not in self.parts or self.parts[name] in lost]
        moved: dict[str, Part] = {}
        for part in lost:
            name = self._new_name(part, free, found)
            if name is not None:
                free.remove(name)
                moved[name] = part
        left = [part for part in lost if part not in moved.values()]
        for part in left:
            if part.name in moved:  # its name belongs to another known file now
                if part.is_open:
                    yield part, True
                self._drop(part, "removed")
        for part in moved.values():
            del self.parts[part.name]
        are_copies = [found[name].st_ino != part.inode for name, part in moved.items()]
        for name, part in moved.items():
            self._move(part, name, found[name])
        yield from zip(moved.values(), are_copies, strict=True)
        for part in left:
            if self.parts.get(part.name) is part:
                yield from self._finish(part, found)

    def _is_there(self, part: Part, status: os.stat_result | None) -> bool:
        """Return whether the name of a file still belongs to it; its bytes are compared when its status has changed."""
        if status is None:
            return False
        now, stamp = time.monotonic(), (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if stamp != part.stamp:
            part.stamp, part.since = stamp, now
        elif now - part.since > _SETTLED:
            return True
        if part.inode in (0, status.st_ino):
            is_there = part.matches(part.name)
        elif is_there := not part.is_moved() and part.continues_in(part.name):
            part.close()  # a copy replaces it, and is read from the same position on
            part.inode = status.st_ino
            self.changed.add(part.name)
        if is_there and self.is_single:
            part.open()  # its rest can be read after it is renamed
        return is_there

    def _new_name(self, part: Part, free: list[str], found: dict[str, os.stat_result]) -> str | None:
        """Return the new name of a file, or the name of a copy made before it was truncated or rewritten."""
        names = sorted(free, key=lambda name: (found[name].st_ino != part.inode, -found[name].st_size))
        names = [name for name in names if found[name].st_ino == part.inode or part.holds_rows()]
        names = [name for name in names if part.matches(name)]
        if not names and isinstance(part, FollowedText) and part.at < part.n_read:
            before = FollowedText(part.name, **self._how)  # a copy may end before the last bytes read
            before.seek(part.at, part.row, part.identity())
            names = [name for name in free if part.row and before.matches(name)]
            if names:
                part.restart_at_position()
        return names[0] if names else None

    def _move(self, part: Part, name: str, status: os.stat_result) -> None:
        """Record the new name of a file."""
        self.notes.append({"event": "renamed", "from": part.name, "to": name})
        self.changed |= {part.name, name}
        self.parts[name] = part
        part.name, part.stamp = name, ()
        if part.inode != status.st_ino:
            part.close()
            part.inode = status.st_ino

    def _finish(self, part: Part, found: dict[str, os.stat_result]) -> Iterator[tuple[Part, bool]]:
        """Yield a file whose name belongs to another one now, or to none, while its rows can be read; then drop it."""
        status = found.get(part.name)
        is_replaced = status is not None and status.st_ino != part.inode
        if status is None and part.stamp:
            part.stamp, part.since = (), time.monotonic()  # when it was missed first
        if status is not None and not (part.is_open and is_replaced and isinstance(part, FollowedText)):
            if part.holds_rows():
                part.raise_rewritten()
            self._drop(part, None)
        elif part.is_open:
            # Its writer may still write to it, until it writes to the new file.
            is_missed = not self.is_single and time.monotonic() - part.since > _PATIENCE
            is_over = is_missed if status is None else status.st_size > 0
            yield part, is_over
            if is_over:
                self._drop(part, "rotated" if is_replaced else "removed")
        elif found or not self.is_single:
            _reject_compressed_rest(part)
            self._drop(part, "removed")

    def _drop(self, part: Part, event: str | None) -> None:
        """Forget a file, and report the event."""
        del self.parts[part.name]
        part.close()
        self.changed.add(part.name)
        if event == "rotated":
            self.notes.append({"event": event, "file": part.name})
        elif event is not None and part.row:
            self.notes.append({"event": event, "file": part.name, "rows": part.row})

    def _is_copy(self, name: str, size: int, found: Iterable[str]) -> bool:
        """Return whether a new file is a copy of a known one, even an incomplete one.

        Copies are only expected where a name has a suffix, such as ``log.csv.1``: different files may have equal rows.
        """
        known = *self.parts, *found, *self._stem
        bases = [base for base in known if base != name and _is_name_of_copy(name, base)]
        for part in self.parts.values() if bases else ():
            if not part.row or isinstance(part, FollowedParquet):
                continue
            if not any(_is_name_of_copy(part.name, base) for base in bases):
                continue
            if part.matches(name) or (size < part.n_read and _is_beginning(name, part.name)):
                if name not in self._passed and _has_rows(name):
                    self._passed.add(name)
                    self.notes.append({"event": "copy", "file": name, "of": part.name})
                return True
        return False


def _is_packed(name: str) -> bool:
    try:
        with open(name, "rb") as file:
            return codec_of(file.read(LONGEST_MAGIC)) is not None
    except OSError as error:  # its reader reports the error
        raise_asynchronous(error)
        return False


def _is_name_of_copy(name: str, original: str) -> bool:
    """Return whether a name is that of another file with a suffix, such as ``log.csv.1`` or ``log.csv-2026``."""
    return name.startswith(original) and not name[len(original) :][:1].isalnum()


def _is_beginning(name: str, original: str) -> bool:
    """Return whether a file is the beginning of another one, such as a copy that is being written."""
    with open(name, "rb") as file, open(original, "rb") as other:
        return is_beginning(file.fileno(), other.fileno())


def _has_rows(name: str) -> bool:
    """Return whether a text file has more than its first line."""
    with open(name, "rb") as file:
        return bool(file.readline() and file.read(1))


def _reject_compressed_rest(part: Part) -> None:
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


def _kind(name: str) -> str | None:
    return _KINDS.get(Path(name).suffix.lower())
