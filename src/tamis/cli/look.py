"""`tamis look`: profile the columns of a file, with excluded columns and all problems."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.options import OUTPUT, AsJSON, Quiet, command
from tamis.cli.output import print_json, terminal
from tamis.cli.reading import Reading, dialect_text, keep, option_words, stream_name

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tamis.streams.profile import ColumnProfile, TableProfile

_WIDEST = 100


@command()
def look(
    *,
    reading: Reading,
    top: Annotated[int, typer.Option(min=1), OUTPUT] = 40,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Profile a file: its columns, and the options to read it.

    The first rows are read; the result is a command to copy.

    Parameters
    ----------
    top : N
        Number of columns to show.

    Examples
    --------
    `tamis look sensors.csv`

    `tamis look sensors.csv --label state --missing mean`

    `zcat log.csv.gz | tamis look - --json`
    """
    from tamis.streams.profile import profile_stream

    reading.check()
    table = None if reading.file is None else reading.table(reading.file)
    profile = profile_stream(reading.open(width="any")) if table is None else reading.profile(table)
    if profile.n_rows == 0:
        from tamis.errors import DataError

        raise DataError(
            f"{profile.path!r} has a header but no rows: add rows below it, or name another file."
        )
    command = _command(profile, reading)
    if as_json:
        print_json(_document(profile, command))
    else:
        _show(terminal(), profile, top, command)


def _command(profile: TableProfile, reading: Reading) -> str | None:
    """Return the command line that runs on the file; None if a problem has no option that fixes it."""
    if any(not problem.option or problem.value is None for problem in profile.problems):
        return None
    words = ["tamis", "run", *reading.words()]
    words += [word for one in (*profile.problems, *profile.suggestions) for word in option_words(one)]
    return shlex.join(words)


def _document(profile: TableProfile, command: str | None) -> dict[str, Any]:
    lists = {
        name: [
            {"text": one.text, "option": shlex.join(option_words(one)) or None}
            for one in getattr(profile, name)
        ]
        for name in ("problems", "suggestions")
    }
    return {**asdict(profile), **lists, "command": command}


def _show(console: Console, profile: TableProfile, top: int, command: str | None) -> None:
    from rich.text import Text

    from tamis.terminal import printable

    width = min(console.width, _WIDEST)
    console.print(Text(stream_name(profile.path), style="bold", no_wrap=True, overflow="ellipsis"))
    rows = f"{profile.n_rows:,} rows" if profile.whole else f"the first {profile.n_rows:,} rows"
    about = [rows, f"{profile.n_columns:,} columns", *([dialect_text(profile)] if profile.written else [])]
    console.print(Text(", ".join(about), style="dim"), width=width)
    if profile.columns:
        console.print(Text(_kinds(profile), style="dim"), width=width)
    if profile.classes:
        console.print(Text(_balance(profile), style="dim"), width=width)
    if profile.columns:
        console.print()
        console.print(_grid(profile, profile.columns[:top], width))
    if (more := len(profile.columns) - top) > 0:
        console.print(Text(f"  and {more:,} more columns", style="dim"))
    parts = {
        "Excluded": [
            f"{name or '(no name)'}: {why}{keep(profile, name, ' (--keep {})')}"
            for name, why in profile.excluded.items()
        ],
        "To fix": [": ".join(filter(None, (p.text, shlex.join(option_words(p))))) for p in profile.problems],
        "Suggested": [f"{one.text}: {shlex.join(option_words(one))}" for one in profile.suggestions],
        "To check": profile.warnings,
        "Notes": profile.notes,
    }
    for heading, lines in parts.items():
        if lines:
            console.print()
            console.print(Text(heading, style="bold"))
        for line in lines[:top]:
            console.print(Text(f"  {printable(line)}"), width=width, soft_wrap=False)
        if len(lines) > top:
            console.print(Text(f"  and {len(lines) - top:,} more", style="dim"))
    if command is not None:
        console.print()
        console.print(f"Next: {command}", markup=False, soft_wrap=True)


def _kinds(profile: TableProfile) -> str:
    """Return the number of columns of each kind, the most frequent kind first."""
    kinds = Counter(column.kind for column in profile.columns if column.kind != "label")
    plurals = {"number": "numbers", "flag": "flags", "category": "categories", "text": "free text", "time": "times",
               "identifier": "identifiers"}  # fmt: skip
    return "columns: " + ", ".join(
        f"{n:,} {plurals.get(kind, kind) if n > 1 else kind}" for kind, n in kinds.most_common()
    )


def _balance(profile: TableProfile) -> str:
    from tamis.terminal import printable

    n, most = sum(profile.classes.values()), 8
    shares = [f"{printable(label)} {k / n:.1%}" for label, k in list(profile.classes.items())[:most]]
    more = f" and {len(profile.classes) - most:,} more" if len(profile.classes) > most else ""
    return f"{profile.label}: {', '.join(shares)}{more}"


def _grid(profile: TableProfile, columns: list[ColumnProfile], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    from tamis.terminal import printable

    longest = max(len(column.name) for column in columns)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=2)
    grid.add_column(width=max(6, min(longest, width // 3)), no_wrap=True, overflow="ellipsis")
    grid.add_column(width=10, no_wrap=True)
    grid.add_column(width=7, justify="right", no_wrap=True)
    grid.add_column(width=9, justify="right", no_wrap=True)
    grid.add_column(
        no_wrap=True, overflow="ellipsis", max_width=max(8, width - min(longest, width // 3) - 40)
    )
    grid.add_row(
        *(Text(head, style="dim") for head in ("", "column", "type", "missing", "distinct", "examples"))
    )
    for column in columns:
        style = "dim" if column.name in profile.excluded else ""
        missing = f"{column.n_missing / max(profile.n_rows, 1):.1%}" if column.n_missing else "-"
        cells = (column.name, column.kind, missing, f"{column.n_unique:,}", _examples(column))
        grid.add_row("", *(Text(printable(cell), style=style) for cell in cells))
    return grid


def _examples(column: ColumnProfile) -> str:
    return column.note if column.note.startswith("becomes") else ", ".join(column.examples)
