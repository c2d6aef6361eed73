"""Any result in a terminal: its verdict first, then remarks, headline numbers, and the main tables and charts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tamis.report.charts.chart import Chart, Floats, HeatStrip, Line, VerticalLines
from tamis.report.content import Cell, Figure, Meter, Score, Table, cell_text, flat, present
from tamis.report.text import scientific
from tamis.terminal.characters import MARKS, WIDEST, bar, printable, shades, spark, width_of

_BAR, _LEAST = 24, 8  # columns of a bar, and of the narrowest text
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_SIGNS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "●": "*",
        "∞": "inf",
        "±": "+-",
        "…": "...",
        "’": "'",
        "µ": "u",
        "²": "2",
        "×": "x",
        "→": "->",
    }
)  # of a terminal without Unicode


def show(console: Console, result: Any, title: str | None = None, *, top: int = 20) -> None:
    """Print any result.

    Parameters
    ----------
    console : rich.console.Console
    result : object
        With the methods of :class:`tamis.report.Result`, of which only ``verdict`` is required.
    title : str, optional
        In place of the result's heading.
    top : int, default=20
        Maximum number of rows of a table or a chart.
    """
    shown, width = present(result, title, is_brief=True), min(console.width, WIDEST)
    ascii_only = console.options.ascii_only
    heading = Text(_plain(shown.heading, ascii_only), style="bold", no_wrap=True, overflow="ellipsis")
    console.print(heading)
    console.print(Text(_plain(shown.verdict, ascii_only)), width=width)
    if shown.about:
        console.print(Text(_plain(shown.about, ascii_only), style="dim"), width=width)
    for remark in shown.remarks:
        style = "yellow" if remark.level == "warning" else "dim"
        console.print(Text(_plain(remark, ascii_only), style=style), width=width)
    figures = [one for one in shown.headline if one.is_main]
    for part in [
        *([_figures(figures, ascii_only)] if figures else []),
        *_main_parts(console, shown.sections, top, width),
    ]:
        console.print()
        console.print(part)


def _main_parts(console: Console, sections: Sequence[Any], top: int, width: int) -> Iterator[RenderableType]:
    """Yield the main tables, the strips, and the first of the main charts of lines."""
    items = [item for section in sections for item in flat(section.items) if getattr(item, "is_main", False)]
    charts = [item for item in items if isinstance(item, Chart)]
    for item in items:
        if isinstance(item, Table):
            yield _table(console, item, top, width)
    for chart in charts:
        if chart.y is None:
            yield _strips(console, chart, top, width)
    for chart in [chart for chart in charts if chart.y][:1] if not console.options.ascii_only else []:
        yield _lines(chart, width)


def _figures(figures: Sequence[Figure], ascii_only: bool) -> RenderableType:
    grid = Grid.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=19)
    grid.add_column(justify="right", style="bold", no_wrap=True)
    grid.add_column(style="dim")
    for one in figures:
        value = Text(_plain(one.value, ascii_only))
        grid.add_row(f"  {one.name}", value, _text(one.note, ascii_only=ascii_only))
    return grid


def _table(console: Console, of: Table, top: int, width: int) -> RenderableType:
    """Return the first rows of a table; names, texts and bars are cut or wrapped to the width."""
    of = _fitting(of, of.rows[:top], width)
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    is_ascii = console.options.ascii_only
    widths = _widths(of, of.rows[:top], width)
    for (style, head), size in zip(of.columns, widths, strict=True):
        is_number, is_name = "n" in style.split(), "long" in style.split()
        overflow: Any = "ellipsis" if is_name else "fold"
        justify: Any = "right" if is_number else "left"
        grid.add_column(
            _text(head, ascii_only=is_ascii), justify=justify, width=size, no_wrap=is_name, overflow=overflow
        )
    for row in of.rows[:top]:
        grid.add_row(*(_text(cell, size, is_ascii) for cell, size in zip(row, widths, strict=True)))
    parts: list[RenderableType] = [Text(_plain(of.title, is_ascii), style="bold"), grid]
    if (more := len(of.rows) - top) > 0:
        parts.append(Text(f"and {more:,} more", style="dim"))
    if of.note:
        parts.append(Text(_plain(of.note, is_ascii), style="dim"))
    return Group(*parts)


def _fitting(of: Table, rows: Sequence[Sequence[Cell]], width: int) -> Table:
    """Return the table without the columns that do not fit: dispensable ones go first, then those on the right."""
    kept = list(range(len(of.columns)))
    while len(kept) > 2:
        part = replace(
            of, columns=[of.columns[j] for j in kept], rows=[[row[j] for j in kept] for row in of.rows]
        )
        if sum(_widths(part, part.rows[: len(rows)], width)) + 2 * len(kept) <= width + 2:
            return part
        kept.remove(next((j for j in kept if "extra" in of.columns[j][0]), kept[-1]))
    return of


def _widths(of: Table, rows: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """Return the widths of the columns: in a narrow terminal headings wrap, then the widest texts are shortened."""
    sizes, least = [], []
    for j, (style, head) in enumerate(of.columns):
        heading, longest = _text(head).plain, max((_text(row[j]).cell_len for row in rows), default=0)
        sizes.append(max(len(heading), longest))
        least.append(
            max([longest, *map(len, heading.split())]) if "n" in style.split() else min(sizes[-1], _LEAST)
        )
    bars = [any(isinstance(row[j], Meter) for row in rows) for j in range(len(sizes))]
    numbers = ["n" in style.split() for style, _ in of.columns]
    for gives in (numbers, bars, [True] * len(sizes)):
        while sum(sizes) + 2 * len(sizes) > width + 2:
            able = [j for j in range(len(sizes)) if gives[j] and sizes[j] > least[j]]
            if not able:
                break
            sizes[max(able, key=sizes.__getitem__)] -= 1
    return sizes


def _text(of: Cell, width: int = _BAR, ascii_only: bool = False) -> Text:
    """Return a cell of a table."""
    if isinstance(of, Meter):
        label = f" {of.label}" if of.label else ""
        length = max(width - len(label), 1)
        return Text.assemble((f"{bar(of.share / 100, length, ascii_only):<{length}}", "cyan"), label)
    if isinstance(of, Score):
        text = Text(
            _plain(of.value, ascii_only), style="bold" if of.is_best else "dim" if of.is_aside else ""
        )
        apart = _plain(f" ±{of.deviation}", ascii_only)
        return text.append(apart, style="not bold dim") if of.deviation else text
    return Text(_plain(cell_text(of), ascii_only))


def _plain(text: str, ascii_only: bool = False) -> str:
    """Return a text with powers of ten as a keyboard has them; without Unicode, other signs too.

    >>> _plain("< 2.50 × 10⁻⁹"), _plain("−0.5 to ∞", ascii_only=True)
    ('< 2.50e-9', '-0.5 to inf')
    """
    powers = re.sub(
        r"(?: × |(?<![\d.]))10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)",
        lambda at: f"{'e' if at[0][0] == ' ' else '1e'}{at[1].translate(_DIGITS)}",
        text,
    )
    return printable(powers.translate(_SIGNS) if ascii_only else powers)


def _strips(console: Console, of: Chart, top: int, width: int) -> RenderableType:
    """Return a line for each row of a chart, darker where its value is larger; an event divides the shares."""
    strip = next(mark for mark in of.marks if isinstance(mark, HeatStrip) and mark.shares is not None)
    events = [
        mark for mark in of.marks if isinstance(mark, VerticalLines) and mark.name and len(mark.at) == 1
    ]
    assert strip.shares is not None
    ascii_only, n = console.options.ascii_only, strip.shares.shape[1]
    dot, ring = MARKS[ascii_only]
    # Those that are selected at the end first.
    order = sorted(range(len(of.rows)), key=lambda i: not of.chosen[i] if of.chosen else 0)[:top]
    names = [printable(of.rows[i]) for i in order]
    widest = width_of(names, max(width - 50, 10))
    split = round(float((events[0].at[0] - strip.low) / (strip.high - strip.low)) * n) if events else None
    shares = ["chosen"] if split is None else ["before", "after"]
    length = max(width - widest - 7 - 9 * len(shares), 8)
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column("", width=3, justify="right", no_wrap=True)
    grid.add_column("", width=widest, no_wrap=True, overflow="ellipsis")
    heading = "over time" if split is None else _heading(length, split / max(n, 1), events[0].name)
    grid.add_column(heading, width=length, no_wrap=True)
    for share in shares:
        grid.add_column(share, width=6, justify="right", no_wrap=True)
    for i, name in zip(order, names, strict=True):
        is_chosen, own = bool(of.chosen and of.chosen[i]), strip.shares[i]
        parts = [of.shares[i]] if split is None else [_percent(own[:split]), _percent(own[split:])]
        grid.add_row(
            Text(dot if is_chosen else ring, style="green" if is_chosen else "dim"),
            Text(name, style="" if is_chosen else "dim"),
            Text(shades(own, length, ascii_only), style="cyan" if is_chosen else "dim"),
            *(Text(part.replace(" %", "%"), style="dim") for part in parts),
        )
    more = Text(f"  and {len(of.rows) - top:,} more", style="dim")
    return Group(grid, more) if len(of.rows) > top else grid


def _percent(shares: Floats) -> str:
    return f"{shares.mean():.0%}" if shares.size else "-"


def _heading(width: int, share: float, words: str) -> str:
    """Return the name of an event at its place, to the left of it if it does not fit on the right."""
    at = -int(-width * share // 1)  # the first cell not before it
    left = f"{words} |".rjust(at + 1)
    return (" " * at + f"| {words}") if at + len(words) + 2 <= width or len(left) > width else left


def _lines(of: Chart, width: int) -> RenderableType:
    """Return a sparkline for each line of a chart, with its range."""
    lines = [mark for mark in of.marks if isinstance(mark, Line) and np.isfinite(mark.y).any()]
    widest = width_of((line.name for line in lines), 24)
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_row(Text(printable(of.title), style="bold"), "", "")
    for line in lines:
        low, high = (scientific(float(end(line.y))) for end in (np.nanmin, np.nanmax))
        drawn = spark(line.y.tolist(), min(width - widest - 26, 48))
        grid.add_row(
            f"  {printable(line.name)[:widest]}",
            Text(drawn, style="cyan"),
            Text(f"{low} to {high}", style="dim"),
        )
    return grid
