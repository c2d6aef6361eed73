"""What a result shows, as values: headline numbers, tables, paragraphs, remarks, and the lines that reproduce it.

Charts are described in :mod:`tamis.report.charts.chart`. Nothing here draws, and nothing knows a kind of result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias


@dataclass(frozen=True)
class Names:
    """Names of features, streams or methods; those beyond `at_most` are counted."""

    names: Sequence[str]
    at_most: int = 6
    title: str = ""


@dataclass(frozen=True)
class Meter:
    """A bar of a share of the cell in percent, and its label."""

    share: float
    label: str = ""
    colour: int = 1
    is_block: bool = False


@dataclass(frozen=True)
class Score:
    """A number, its standard deviation, and whether it is the best of its row, or not compared (italic)."""

    value: str
    deviation: str = ""
    is_best: bool = False
    is_aside: bool = False


Cell: TypeAlias = str | Names | Meter | Score


def cell_text(cell: Cell) -> str:
    """Return a cell as text.

    >>> cell_text(Names(["heat", "light", "sound"], 2)), cell_text(Score("0.812", "0.010"))
    ('heat, light and 1 more', '0.812 ± 0.010')
    """
    if isinstance(cell, Names):
        more = f" and {len(cell.names) - cell.at_most:,} more" * (len(cell.names) > cell.at_most)
        return ", ".join(cell.names[: cell.at_most]) + more
    if isinstance(cell, Meter):
        return cell.label
    if isinstance(cell, Score):
        return f"{cell.value} ± {cell.deviation}" if cell.deviation else cell.value
    return cell


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    title : str
    columns : sequence of (str, Cell)
        Style classes and heading of each column: "n" is a number, "long" a name, "extra" is omitted on a phone.
    rows : sequence of sequences of Cell
        The first cell of each is its heading.
    note : str
        A sentence below the table.
    is_main : bool
        Whether a terminal shows it too.
    is_folded : bool
        Whether a page shows only its title at first.
    """

    title: str
    columns: Sequence[tuple[str, Cell]]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    is_main: bool = False
    is_folded: bool = False


@dataclass(frozen=True)
class Figure:
    """A headline number: what it is, its value, a note, and whether a terminal shows it too."""

    name: str
    value: str
    note: Cell = ""
    is_main: bool = True


class Remark(str):
    """A sentence that the reader of a result should know.

    Parameters
    ----------
    text : str
    level : {"warning", "note"}
        A warning restricts the result; a note explains it.
    """

    level: str

    def __new__(cls, text: str, level: str = "warning") -> Self:
        """Return the text with its level."""
        self = super().__new__(cls, text)
        self.level = level
        return self


class Code(str):
    """Lines to copy."""


@dataclass(frozen=True)
class Reproduction:
    """What repeats a result: a shell command, lines of Python, and all settings; empty where there is none."""

    command: str = ""
    python: str = ""
    settings: dict[str, Any] | None = None

    def lines(self) -> dict[str, str]:
        """Return the lines, by where they are typed."""
        return {
            where: line for where, line in (("In a shell", self.command), ("In Python", self.python)) if line
        }


@dataclass(frozen=True)
class Group:
    """A chart or a table and what belongs below it; groups stand side by side."""

    items: Sequence[Any]


@dataclass(frozen=True)
class Section:
    """A part of a page: its anchor, its heading, and paragraphs, names, tables, charts and groups in their order."""

    key: str
    title: str
    items: Sequence[Any] = ()


@dataclass(frozen=True)
class Presentation:
    """All that a result shows, as the renderers read it."""

    heading: str
    verdict: str
    about: str
    headline: Sequence[Figure]
    remarks: Sequence[Remark]
    sections: Sequence[Section]
    reproduction: Reproduction


def present(
    result: Any, title: str | None = None, command: str = "", *, is_brief: bool = False
) -> Presentation:
    """Return all that a result shows.

    Parameters
    ----------
    result : object
        With the methods of :class:`tamis.report.Result`, of which only ``verdict`` is required.
    title : str, optional
        In place of the heading.
    command : str
        The command line that repeats the result, unless the result has one.
    is_brief : bool
        Whether only the main tables and charts are needed.
    """

    def read(name: str, otherwise: Any) -> Any:
        method = getattr(result, name, None)
        return otherwise if method is None else method()

    reproduction = read("reproduce", Reproduction())
    return Presentation(
        title or read("heading", type(result).__name__),
        result.verdict(),
        read("about", ""),
        read("headline", ()),
        [one if isinstance(one, Remark) else Remark(one) for one in read("remarks", ())],
        (is_brief and read("main_sections", ()))
        or read("sections", ())
        or _one_section([*read("charts", ()), *read("tables", ())]),
        replace(reproduction, command=reproduction.command or command),
    )


def flat(items: Sequence[Any]) -> list[Any]:
    """Return the items of a section, without their groups."""
    return [part for item in items for part in (item.items if isinstance(item, Group) else [item])]


def _one_section(items: Sequence[Any]) -> list[Section]:
    return [Section("results", "Results", items)] if items else []
