"""Listings: the catalogue, the parameters of a selector, data sets and streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.terminal.characters import printable, width_of

if TYPE_CHECKING:
    from tamis.catalog import Entry


def show_entries(console: Console, heading: str, entries: Iterable[Entry]) -> None:
    """Print rows of the catalogue: name, summary, targets and inputs, publication."""
    console.print(Text(heading, style="bold"))
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column()
    for entry in entries:
        can = [
            *entry.targets,
            *(["sparse rows"] if entry.sparse else []),
            *(["mergeable"] if entry.mergeable else []),
        ]
        grid.add_row(f"  {entry.key}", Text(entry.title))
        grid.add_row("", Text(f"{entry.paper}; {', '.join(can)}", style="dim"))
        grid.add_row("", "")
    console.print(grid)


def show_parameters(console: Console, entry: Entry, parameters: Iterable[dict[str, Any]]) -> None:
    """Print a description of a selector, and its parameters with their defaults."""
    console.print(Text(f"{entry.name} ({entry.key})", style="bold"))
    console.print(Text(f"{entry.title} {entry.paper}."))
    console.print()
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for row in parameters:
        name = "--select" if row["name"] == "n_features_to_select" else row["name"]
        grid.add_row(f"  {name}", str(row["default"]), Text(row["text"], style="dim"))
    console.print(grid)


def show_datasets(console: Console, rows: Iterable[dict[str, Any]], folder: str) -> None:
    """Print the named data sets."""
    items = list(rows)
    widest = width_of((row["name"] for row in items), 24)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("name", style="cyan", no_wrap=True, overflow="ellipsis", width=widest)
    table.add_column("rows", justify="right", no_wrap=True, width=10)
    table.add_column("features", justify="right", no_wrap=True, width=10)
    table.add_column("where", no_wrap=True, width=10)
    table.add_column(
        "licence", style="dim", no_wrap=True, overflow="ellipsis", width=console.width - widest - 38
    )
    for row in items:
        size = [f"{row[key]:,}" if row[key] is not None else "-" for key in ("rows", "features")]
        table.add_row(printable(row["name"]), *size, _WHERE[row["where"]], Text(row["licence"] or "-"))
    console.print(table)
    console.print(
        Text(f"\nData folder: {folder}; to change it: TAMIS_DATA=folder", style="dim"), soft_wrap=True
    )


def show_streams(console: Console, rows: Iterable[dict[str, Any]]) -> None:
    """Print the streams with known relevant features."""
    items = list(rows)
    widest = width_of((row["name"] for row in items), 24)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    numbers = [[f"{row[key]:,}" for key in ("n_rows", "n_features", "drifts")] for row in items]
    heads = ("rows", "features", "drifts")
    sizes = [max(map(len, column)) for column in zip(heads, *numbers, strict=True)]
    widest = max(min(widest, console.width // 3), 12)
    table.add_column("generated", style="cyan", no_wrap=True, overflow="ellipsis", width=widest)
    for name, size in zip(heads, sizes, strict=True):
        table.add_column(name, justify="right", no_wrap=True, width=size)
    rest = console.width - widest - sum(sizes) - 8  # two between columns
    table.add_column("concept", style="dim", no_wrap=True, overflow="ellipsis", width=max(rest, 8))
    for row, cells in zip(items, numbers, strict=True):
        table.add_row(printable(row["name"]), *cells, Text(row["text"]))
    console.print()
    console.print(table)
    console.print(
        Text("\nFor tamis generate and compare; relevant features are known", style="dim"), soft_wrap=True
    )


_WHERE = {"bundled": "with Tamis", "folder": "folder", "OpenML": "OpenML"}
