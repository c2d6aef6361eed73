"""Groups of columns for `tamis columns`: by text column, by prefix of the names, or from a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.failure import MisuseError
from tamis.errors import DataError

if TYPE_CHECKING:
    from tamis.columns.generators import Columns

_WIDEST = 256  # columns outside of groups that are offered at once


def read_groups(what: str, columns: list[str], texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the columns of each group of two or more.

    Parameters
    ----------
    what : str
        "text": each text column is a group. "prefix" or "prefix:SEPARATOR": columns whose names agree up to the first
        separator, "_" if omitted. Or a path: a JSON object of lists of columns, or a CSV file whose lines are a column
        and its group, without a header.
    columns : list of str
        The numeric columns that are offered.
    texts : dict of str to list of str
        The text columns, and the columns encoded from each, which count as one in a file and for a prefix.

    Raises
    ------
    MisuseError
        If a file does not describe groups of these columns.
    """
    made = {name for names in texts.values() for name in names}
    given = {name: texts.get(name, [name]) for name in dict.fromkeys([*columns, *texts]) if name not in made}
    if what == "text":
        wanted: dict[str, list[str]] = {}
    elif what.split(":", 1)[0] == "prefix":
        separator = what.partition(":")[2] or "_"
        wanted = {}
        for name in given:
            if separator in name:
                wanted.setdefault(name.split(separator, 1)[0], []).append(name)
    else:
        wanted = _read_file(Path(what), given)
    grouped = {name for names in wanted.values() for name in names}
    wanted |= {name: [name] for name in texts if name not in grouped and name not in wanted}
    expanded = {group: [made for name in names for made in given[name]] for group, names in wanted.items()}
    return {group: names for group, names in expanded.items() if len(names) > 1}


def _read_file(path: Path, given: dict[str, list[str]]) -> dict[str, list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(
            f"--groups {path}: cannot be read ({error.__class__.__name__}): write text, prefix, prefix:SEPARATOR, or"
            " the path of a JSON or CSV file."
        ) from None
    groups = _parse_json(path, text) if path.suffix.lower() == ".json" else _parse_csv(path, text)
    seen: set[str] = set()
    for group, names in groups.items():
        for name in names:
            if name not in given:
                raise DataError(
                    f"--groups {path}: group {group!r} names {name!r}, which is not a column of the file."
                )
            if name in seen:
                raise DataError(f"--groups {path}: column {name!r} is in two groups: name it once.")
            seen.add(name)
    return groups


def _parse_json(path: Path, text: str) -> dict[str, list[str]]:
    try:
        groups = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"--groups {path}: line {error.lineno} is not JSON: {error.msg}.") from None
    if not isinstance(groups, dict) or not all(isinstance(names, list) for names in groups.values()):
        raise DataError(f'--groups {path}: write an object of lists, such as {{"sensor 1": ["x0", "x1"]}}.')
    return {group: [str(name) for name in names] for group, names in groups.items()}


def _parse_csv(path: Path, text: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for number, fields in enumerate(csv.reader(text.splitlines()), start=1):
        if not fields:
            continue
        if len(fields) != 2:
            raise DataError(
                f"--groups {path}: line {number} has {len(fields)} field{'s' * (len(fields) != 1)}: write a column"
                " and its group."
            )
        groups.setdefault(fields[1].strip(), []).append(fields[0].strip())
    return groups


def blocks_of_groups(columns: Columns, groups: dict[str, list[str]]) -> Iterator[tuple[list[str], Any]]:
    """Yield names and values: each group at the position of its first column, and other columns in blocks."""
    group_of = {name: group for group, names in groups.items() for name in names}
    waiting: list[str] = []
    offered: set[str] = set()

    def block(names: list[str]) -> tuple[list[str], Any]:
        return names, columns.block([columns.index[name] for name in names])

    for name in columns.names:
        group = group_of.get(name)
        if group is None:
            waiting.append(name)
        if waiting and (group is not None or len(waiting) == _WIDEST):
            yield block(waiting)
            waiting = []
        if group is not None and group not in offered:
            offered.add(group)
            yield block(groups[group])
    if waiting:
        yield block(waiting)
