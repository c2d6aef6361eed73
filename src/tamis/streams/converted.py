"""Rows that are not delimited text, as CSV: JSON objects, text aligned by blanks, Excel sheets, archives of one file.

The rows are converted as text, so that names, kinds, missing values and labels follow the rules of CSV files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO

from tamis.errors import StreamError, import_extra
from tamis.streams.dialect import LONGEST_LINE, split_rows

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)  # numbers as they are written, so exactly
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
_JSON = re.compile(r"\ufeff?\s*(?:\[\s*)?\{\s*(?:\"|\}|$)")


def is_json(text: str) -> bool:
    """Return whether a text begins like JSON objects, one per line or in one array.

    >>> is_json('{"heat": 1.5}'), is_json('[{"heat": 1.5}]'), is_json("{a},b")
    (True, True, False)
    """
    return _JSON.match(text) is not None


class JSONRows:
    r"""Conversion of JSON objects, one per line or in one array, to CSV.

    Parameters
    ----------
    path : str
        For error messages.
    names : sequence of str, optional
        Keys of the columns, in order; by default those of the objects of the first text converted.
    row : int, optional
        Number of preceding rows; by default the first row is preceded by the names.
    room : int, optional
        How many keys that are absent from `names` are appended to them; further ones, those without a plain value, and
        by default all, are ignored with a warning.

    Attributes
    ----------
    absent : dict of str to list of int
        The rows of the last text, counted from 0, that lack a key.
    has_warned : bool
        Whether a key was ignored with a warning, of which further ones have none.

    Examples
    --------
    >>> JSONRows("log.jsonl")('{"heat": 1.50, "on": true}\n{"heat": null, "on": fal', last=False)
    'heat,on\n1.50,true\n'
    """

    def __init__(
        self, path: str, names: Sequence[str] = (), row: int | None = None, *, room: int | None = None
    ) -> None:
        self.path, self.names, self._row, self._held = path, names, row or 0, ""
        self._has_names, self.has_warned = row is not None, False
        self.room = room
        self._new: dict[str, Any] = {}  # keys that were appended, and the first value of each
        self.absent: dict[str, list[int]] = {}

    def __call__(self, text: str, last: bool) -> str:
        """Return the rows of the objects that are complete; before the first one, the names."""
        objects = list(self._objects(self._held + text, last))
        names = self.names or list(dict.fromkeys(key for one in objects for key in one))
        rows = [] if self._has_names or not names else [names]
        if self.room:
            names = [*names, *self._appended(objects, set(names))]
        self.names, self._has_names = names, self._has_names or bool(names)
        known, self.absent = set(names), {}
        for at, one in enumerate(objects):
            self._row += 1
            if one.keys() != known:
                for name in known.difference(one):
                    self.absent.setdefault(name, []).append(at)
                if not self.has_warned and not one.keys() <= known:
                    self._warn_of_ignored(one, known)
            cells = map(one.get, names)
            rows.append(
                [x if type(x) is str else self._cell(x, name) for name, x in zip(names, cells, strict=True)]
            )
        return csv_text(rows)

    def _appended(self, objects: list[dict[str, Any]], known: set[str]) -> list[str]:
        """Return further keys of objects that have a plain value, in the order of appearance."""
        names: list[str] = []
        for one in objects:
            for key, value in () if one.keys() <= known else one.items():
                if key not in known and _is_plain(value) and len(names) < (self.room or 0):
                    names.append(key)
                    known.add(key)
                    self._new[key] = value
        return names

    def _warn_of_ignored(self, one: dict[str, Any], known: set[str]) -> None:
        """Warn once of a key that is ignored; one without a value is absent."""
        ignored = [key for key in one if key not in known and (self.room is None or one[key] is not None)]
        if ignored:
            self.has_warned = True
            why, fix = "is absent from the first rows", "add it to the first row"
            if self.room is not None:
                is_full = _is_plain(one[ignored[0]])
                why = "is beyond the largest number of columns" if is_full else "has no plain value"
                fix = "raise max_columns" if is_full else "write plain values"
            warnings.warn(
                f"{self.path!r} has a key {ignored[0]!r} in row {self._row:,} that {why}, so it is ignored:"
                f" {fix} to read it.",
                stacklevel=3,
            )

    def pop_new(self) -> dict[str, Any]:
        """Return the keys that were appended since the last call, and the first value of each."""
        new, self._new = self._new, {}
        return new

    def _objects(self, text: str, last: bool) -> Iterator[dict[str, Any]]:
        at, n = 0, 0
        while (at := _BETWEEN.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            try:
                value, at = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError as error:
                # A number or a word may be cut too.
                is_cut = error.msg.startswith("Unterminated") or not re.search(
                    r"[\s,:\]}]", text[error.pos :].rstrip()
                )
                if is_cut and not last and len(text) - at <= LONGEST_LINE:
                    break
                raise StreamError(
                    f"{self.path!r} {'ends within' if is_cut else 'is not valid JSON in'} row {self._row + n + 1:,}"
                    f" ({error.msg}): fix that row, or copy the file again."
                ) from None
            except RecursionError:
                raise StreamError(
                    f"{self.path!r} is nested too deeply in row {self._row + n + 1:,}: write plain values."
                ) from None
            n += 1
            if not isinstance(value, dict):
                raise StreamError(
                    f"{self.path!r} has {json.dumps(value)[:40]} in row {self._row + n:,}, which is not an object:"
                    ' write one object with named values per line, such as {"heat": 1.5, "state": "on"}.'
                )
            yield value
        self._held = text[at:]

    def _cell(self, value: Any, name: str) -> str:
        if isinstance(value, dict | list):
            kind = "an object" if isinstance(value, dict) else "a list"
            raise StreamError(
                f"{self.path!r} has {kind} for {name!r} in row {self._row:,}: write one object with plain values per"
                " line, as pandas.json_normalize(rows).to_json(path, orient='records', lines=True) does."
            )
        return "" if value is None else str(value).lower()  # true, false, nan, inf


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


class AlignedRows:
    """Conversion of lines whose values are separated by blanks to CSV.

    Parameters
    ----------
    path : str
        For error messages.
    columns : list of slice
        Where the values are in each line, which is as long as the last one ends; none: between blanks.
    """

    def __init__(self, path: str, columns: list[slice]) -> None:
        self._path, self._columns, self._held = path, columns, ""

    def __call__(self, text: str, last: bool) -> str:
        """Return the rows of the lines that are complete."""
        lines = (self._held + text).splitlines(keepends=True)
        self._held = "" if last or not lines or lines[-1].endswith("\n") else lines.pop()
        if not self._columns:
            return csv_text(split_rows(lines, " "))
        lines = [line for line in map(str.rstrip, lines) if line]
        for line in lines:
            if len(line) != self._columns[-1].stop:
                raise StreamError(
                    f"{self._path!r} has the line {line[:60]!r}, which is not aligned with the lines above it: write"
                    " the file with commas between values."
                )
        return csv_text([line[column].strip() for column in self._columns] for line in lines)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


# -- archives ----------------------------------------------------------------------------------------------


def open_archive(raw: BinaryIO, mode: str = "rb") -> Any:
    """Open the first sheet of an Excel workbook as CSV, or the only file of another zip archive."""
    archive = zipfile.ZipFile(raw)
    names = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
    if "xl/workbook.xml" in names:
        return _Lines(_sheet_rows(raw))
    if len(names) != 1:
        shown = ", ".join(map(repr, names[:3])) + " ..." * (len(names) > 3)
        raise StreamError(f"{raw.name!r} contains {len(names):,} files ({shown}): extract the one to read.")
    return archive.open(names[0])


def _sheet_rows(raw: BinaryIO) -> Iterator[bytes]:
    """Yield the rows of the first sheet that are not empty, as lines of CSV."""
    openpyxl = import_extra("openpyxl", "Reading Excel workbooks needs openpyxl", "excel")
    width = 0
    for row in (
        openpyxl.load_workbook(raw, read_only=True, data_only=True).worksheets[0].iter_rows(values_only=True)
    ):
        cells = [_excel_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            width = width or len(cells)
            yield csv_text([cells + [""] * (width - len(cells))]).encode()


def _excel_cell(value: Any) -> str:
    if isinstance(value, str):
        is_error = re.fullmatch(r"#(?:N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!)", value)
        return "" if is_error else value
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date().isoformat()
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class _Lines(io.RawIOBase):
    """Lines as a file, produced as they are read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._rest = lines, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or next(self._lines, b"")
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n
