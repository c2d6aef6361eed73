"""Aggregates of related tables: defined by plain values, from which the query is built."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tamis._validation import safe_repr
from tamis.columns.generators.formulas import NewRows, Recipe
from tamis.columns.generators.queries import Keys, as_database, run_query, sql_identifier, sql_literal
from tamis.columns.generators.schema import Condition, Link
from tamis.errors import DataError

__all__ = ["Aggregate", "Scope", "joint_query"]

_SQL = {
    "count": "count(*)", "sum": "sum({})", "mean": "avg({})", "min": "min({})", "max": "max({})",
    "distinct": "count(DISTINCT {})", "value": "any_value({})",
}  # fmt: skip
_LONGEST = 64
_ZERO = ("count", "sum", "distinct")  # aggregates that are 0 without rows


@dataclass(frozen=True)
class Scope:
    """The rows that a feature aggregates: those at the end of a path from a table, under conditions.

    Attributes
    ----------
    target, key : str
        The table whose rows the feature describes, and its key.
    path : tuple of Link
    where : tuple of (table, column, value)
    """

    target: str
    key: str
    path: tuple[Link, ...]
    where: tuple[Condition, ...]

    @property
    def tables(self) -> list[str]:
        """The tables on the path."""
        return [link.far for link in self.path]

    def query(self, values: Sequence[str]) -> str:
        """Return the query for the key of each row and some values.

        Parameters
        ----------
        values : sequence of str
            As SQL.

        Returns
        -------
        str
        """
        first = self.path[0]
        if first.to_children and first.near_column == self.key:  # the child table contains the key
            key, source, rest = (first.far, first.far_column), first.far, self.path[1:]
        else:
            key, source, rest = (self.target, self.key), self.target, self.path
        cast = ", ".join(f"CAST({value} AS DOUBLE)" for value in values)
        text = (
            f"SELECT {sql_identifier(key[0])}.{sql_identifier(key[1])}, {cast} FROM {sql_identifier(source)}"
        )
        for link in rest:
            near, far = sql_identifier(link.near), sql_identifier(link.far)
            near_column, far_column = sql_identifier(link.near_column), sql_identifier(link.far_column)
            text += f" JOIN {far} ON {near}.{near_column} = {far}.{far_column}"
        if self.where:
            tests = [
                f"{sql_identifier(t)}.{sql_identifier(column)} = {sql_literal(value)}"
                for t, column, value in self.where
            ]
            text += f"\nWHERE {' AND '.join(tests)}"
        return text + " GROUP BY 1"

    def check_state(self) -> None:
        """Validate the path from the target, and the names and values of the query.

        Raises
        ------
        DataError
            If any of them is invalid.
        """
        if (
            type(self.path) is not tuple
            or type(self.where) is not tuple
            or len(self.path) + len(self.where) > _LONGEST
        ):
            raise DataError(f"An aggregate must have at most {_LONGEST} links and conditions, as tuples.")
        names = [self.target, self.key]
        been = [self.target]
        for link in self.path:
            names += [link.near, link.near_column, link.far, link.far_column]
            if link.near != been[-1] or link.far in been:
                raise DataError(
                    f"The path of an aggregate is broken between {safe_repr(link.near)} and {safe_repr(link.far)}."
                )
            been.append(link.far)
        for table, column, value in self.where:
            names += [table, column]
            if table not in been[1:] or not _is_plain(value):
                place = f"{safe_repr(table)}.{safe_repr(column)}"
                raise DataError(f"An aggregate has the invalid condition {place} = {safe_repr(value)}.")
        if len(been) == 1 or not all(type(name) is str and name and "\0" not in name for name in names):
            raise DataError(f"An aggregate from {safe_repr(self.target)} must name tables and columns.")


@dataclass(frozen=True)
class Aggregate(Recipe):
    """A feature that aggregates, for each row, the related rows of another table.

    It contains names and values rather than SQL; its query is built when it is run, and reads only tables of the
    database.

    Attributes
    ----------
    kind : {"count", "sum", "mean", "min", "max", "distinct", "value"}
    scope : Scope
        The rows to aggregate.
    table, column : str or None
        The table and column to aggregate; no column for a count.
    is_time : bool
        Whether the column contains times; they are converted to seconds.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tamis.columns.generators import Aggregate, NewRows
    >>> from tamis.columns.generators.aggregate import Scope
    >>> from tamis.columns.generators.schema import Link
    >>> orders = pd.DataFrame({"customer": [7, 7, 5], "price": [1.0, 2.0, 4.0]})
    >>> path = (Link("customers", "id", "orders", "customer", to_children=True),)
    >>> total = Aggregate("sum", Scope("customers", "id", path, ()), "orders", "price")
    >>> print(total)
    SELECT "orders"."customer", CAST(sum("orders"."price") AS DOUBLE) FROM "orders" GROUP BY 1
    >>> total.values(NewRows(None, {"id": np.array([5, 6, 7])}, {"orders": orders}))
    array([4., 0., 3.])
    """

    kind: str
    scope: Scope
    table: str | None = None
    column: str | None = None
    is_time: bool = False
    is_atom = True

    @property
    def key(self) -> str:
        """The column of the rows that contains the key."""
        return self.scope.key

    @property
    def empty(self) -> float:
        """The value for a row without related rows."""
        return 0.0 if self.kind in _ZERO else math.nan

    @property
    def value(self) -> str:
        """The value as SQL."""
        if self.column is None or self.table is None:
            return _SQL[self.kind]
        place = f"{sql_identifier(self.table)}.{sql_identifier(self.column)}"
        return _SQL[self.kind].format(f"epoch({place})" if self.is_time else place)

    def values(self, rows: NewRows) -> NDArray[Any]:
        """Run the query."""
        if rows.database is None:
            raise DataError(f"A feature is the query {str(self)!r}: give the database that it runs against.")
        self.check_state()
        database = as_database(rows.database)
        database.check_tables([self.scope.target, *self.scope.tables][self._starts_at_child() :])
        return run_query(database, str(self), Keys(rows.keys[self.key], self.key), self.empty)

    def _starts_at_child(self) -> bool:
        first = self.scope.path[0]
        return first.to_children and first.near_column == self.key

    def needs(self) -> set[str]:
        """Return no columns: the key is taken from the rows."""
        return set()

    def check_state(self) -> None:
        """Validate the values that define the query.

        Raises
        ------
        DataError
            If any of them is invalid.
        """
        if self.kind not in _SQL or (self.kind == "count") != (self.column is None):
            raise DataError(
                f"Unknown aggregate {safe_repr(self.kind)} of the column {safe_repr(self.column)}."
            )
        self.scope.check_state()
        if self.column is not None:
            names = type(self.column) is str and self.column and "\0" not in self.column
            if self.table not in self.scope.tables or not names:
                raise DataError(
                    f"An aggregate of {safe_repr(self.table)}.{safe_repr(self.column)} must name a column of its path."
                )

    def __str__(self) -> str:
        return self.scope.query([self.value])


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int) or (type(value) is str and "\0" not in value)


def joint_query(aggregates: Sequence[Aggregate]) -> str:
    """Return one query for several features of one scope."""
    return aggregates[0].scope.query([aggregate.value for aggregate in aggregates])
