"""Tables as values: the cells that are more than text, for the macro ``table`` of ``macros.html.j2``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Cell", "Meter", "Names", "Score", "Table"]


@dataclass(frozen=True)
class Names:
    """Names of features, streams or methods; those beyond `at_most` are counted."""

    names: Sequence[str]
    at_most: int = 6


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


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    caption : str
    columns : sequence of (str, Cell)
        Style classes and heading of each column.
    rows : sequence of sequences of Cell
        The first cell of each is its heading.
    note : str
        A sentence below the table.
    """

    caption: str
    columns: Sequence[tuple[str, Cell]]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
