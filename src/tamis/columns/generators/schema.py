"""Tables and the foreign keys between them: paths from a table, and the types of columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.columns.generators.queries import Database, sql_identifier
from tamis.errors import DataError

__all__ = ["Condition", "Link", "Schema"]

NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\([0-9,]*\))$")
TIMES = re.compile(r"(DATE|TIMESTAMP[^\[]*)$")
CATEGORIES = re.compile(r"(VARCHAR|BOOLEAN|ENUM\(.*\))$")
Condition = tuple[str, str, Any]  # table, column, value


@dataclass(frozen=True)
class Link:
    """A link from a table to another: to its child rows, or to the referenced row.

    Attributes
    ----------
    near, near_column, far, far_column : str
    to_children : bool
    """

    near: str
    near_column: str
    far: str
    far_column: str
    to_children: bool


Path = tuple[Link, ...]


class Schema:
    """The tables of a database from which features are generated.

    Parameters
    ----------
    database : Database
    links : sequence of pairs of str
        ``("orders.customer", "customers.id")``: the referencing and the referenced column.
    exclude : collection of str
        Excluded columns, as ``table.column``.

    Examples
    --------
    >>> import pandas as pd
    >>> from tamis.columns.generators.queries import Database
    >>> from tamis.columns.generators.schema import Schema
    >>> tables = {"a": pd.DataFrame({"id": [1]}), "b": pd.DataFrame({"a": [1], "x": [0.5]})}
    >>> schema = Schema(Database(tables), [("b.a", "a.id")], exclude=())
    >>> [[link.far for link in path] for path in schema.paths("a", depth=2)], schema.numbers("b")
    ([['b']], ['x'])
    """

    def __init__(
        self, database: Database, links: Sequence[tuple[str, str]], exclude: Collection[str]
    ) -> None:
        self.database, self.exclude = database, frozenset(exclude)
        self._types: dict[str, dict[str, str]] = {}
        self._values: dict[tuple[str, str, int], list[Any]] = {}
        for place in sorted(self.exclude):
            self.check_column(place)
        self.links = [(*self.check_column(child), *self.check_column(parent)) for child, parent in links]

    def types(self, table: str) -> dict[str, str]:
        """Return the types of a table's columns.

        Parameters
        ----------
        table : str

        Returns
        -------
        dict of str to str
        """
        if table not in self._types:
            columns = self.database.columns(f"DESCRIBE SELECT * FROM {sql_identifier(table)}")
            self._types[table] = dict(zip(map(str, columns[0]), map(str, columns[1]), strict=True))
        return self._types[table]

    def check_column(self, place: str) -> tuple[str, str]:
        """Return table and column of ``table.column``.

        Parameters
        ----------
        place : str

        Returns
        -------
        (str, str)

        Raises
        ------
        DataError
            If the column is not in the database.
        """
        table, _, column = str(place).rpartition(".")
        if not table or column not in self.types(table):
            raise DataError(f"There is no column {place!r} in the database: name it as table.column.")
        return table, column

    def steps(self, table: str) -> list[Link]:
        """Return the steps from a table.

        Parameters
        ----------
        table : str

        Returns
        -------
        list of Link
        """
        steps = []
        for child, child_column, parent, parent_column in self.links:
            if parent == table:
                steps.append(Link(table, parent_column, child, child_column, True))
            if child == table:
                steps.append(Link(table, child_column, parent, parent_column, False))
        return steps

    def step_name(self, link: Link) -> str:
        """Return the table that a step leads to, with the foreign key if two lead there.

        Parameters
        ----------
        link : Link

        Returns
        -------
        str
        """
        if len([other for other in self.steps(link.near) if other.far == link.far]) == 1:
            return link.far
        return f"{link.far}[{link.far_column if link.to_children else link.near_column}]"

    def paths(self, target: str, depth: int) -> list[Path]:
        """Return the paths from a table, short ones first; each visits a table at most once.

        Parameters
        ----------
        target : str
        depth : int
            Largest number of links.

        Returns
        -------
        list of tuple of Link
        """
        paths: list[Path] = []
        last: list[Path] = [()]
        for _ in range(depth):
            longer: list[Path] = []
            for path in last:
                been = {target, *(link.far for link in path)}
                steps = self.steps(path[-1].far if path else target)
                longer += [(*path, link) for link in steps if link.far not in been]
            paths += longer
            last = longer
        return paths

    def numbers(self, table: str) -> list[str]:
        """Return the numeric columns, without keys.

        Parameters
        ----------
        table : str

        Returns
        -------
        list of str
        """
        return self._columns_of_type(table, NUMBERS)

    def times(self, table: str) -> list[str]:
        """Return the columns of dates or times.

        Parameters
        ----------
        table : str

        Returns
        -------
        list of str
        """
        return self._columns_of_type(table, TIMES)

    def categories(self, table: str) -> list[str]:
        """Return the columns of text, Booleans or enumerations, without keys.

        Parameters
        ----------
        table : str

        Returns
        -------
        list of str
        """
        return self._columns_of_type(table, CATEGORIES)

    def _columns_of_type(self, table: str, kind: re.Pattern[str]) -> list[str]:
        keys = {pair for a, b, c, d in self.links for pair in ((a, b), (c, d))}
        return [
            column for column, type_ in self.types(table).items()
            if kind.match(type_) and (table, column) not in keys and f"{table}.{column}" not in self.exclude
        ]  # fmt: skip

    def conditions(self, path: Path, max_values: int) -> list[Condition]:
        """Return conditions on the tables of a path, the last table's first, frequent values first.

        Parameters
        ----------
        path : tuple of Link
        max_values : int
            Largest number per column; a column with a single value has no conditions.

        Returns
        -------
        list of (table, column, value)
        """
        conditions: list[Condition] = []
        for table in reversed([link.far for link in path]):
            for column in self.categories(table):
                values = self._frequent_values(table, column, max_values)
                conditions += [(table, column, value) for value in values if len(values) > 1]
        return conditions

    def _frequent_values(self, table: str, column: str, max_values: int) -> list[Any]:
        """Return the most frequent values of a column."""
        place = (table, column, max_values)
        if place not in self._values:
            name = sql_identifier(column)
            frequent = self.database.columns(
                f"SELECT {name} FROM {sql_identifier(table)} WHERE {name} IS NOT NULL GROUP BY 1"
                f" ORDER BY count(*) DESC, 1 LIMIT {max_values}"
            )[0]
            self._values[place] = np.asarray(frequent).tolist()
        return self._values[place]
