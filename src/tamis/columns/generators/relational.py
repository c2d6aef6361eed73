"""Features from a relational database: aggregates of the related rows of other tables for each row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array, as_list, check_number
from tamis.base import ColumnSelector
from tamis.columns.generators.aggregate import Aggregate, Scope, joint_query
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator
from tamis.columns.generators.queries import Database, Keys, as_database, numbers, sql_identifier, sql_literal
from tamis.columns.generators.schema import Condition, Path, Schema
from tamis.columns.generators.sources import check_seed, seed_of
from tamis.errors import DataError

__all__ = ["Relational"]

AGGREGATES = ("count", "sum", "mean", "min", "max", "distinct")


_Named = tuple[str, Aggregate]  # a feature's name and recipe


class Relational(FeatureGenerator):
    """Aggregates over tables that are linked to a table by foreign keys.

    The first features are simple aggregates for each path of links: the number of rows, the sum, mean, smallest and
    largest value of each numeric column (times as seconds), and the number of distinct values of each categorical
    column. They are followed by the same aggregates over the rows in which a categorical column has one of its frequent
    values. A condition with an accepted feature is refined by a second one, and so on. Each scope is one query, run
    lazily; the recipe of a feature is a separate query.

    Parameters
    ----------
    database : DuckDB connection, path, dict of tables, or Database
    target : str
        The table whose rows are to be predicted.
    key : str
        The primary key of that table.
    links : sequence of pairs of str
        Foreign keys, as in ``("orders.customer", "customers.id")``: the referencing and the referenced column.
    keys : array-like of shape (n_rows,), optional
        Keys of the rows of the target, in the order of `y`; by default all rows in the order of the table.
    depth : int, default=2
        The largest number of links in a path. A path visits each table at most once.
    aggregates : sequence of str, default=("count", "sum", "mean", "min", "max", "distinct")
    max_values : int, default=10
        The largest number of values of a categorical column that become conditions, most frequent first.
    max_conditions : int, default=2
        The largest number of conditions in one query; 0: none.
    exclude : sequence of str, default=()
        Columns to exclude, such as ``"orders.refunded_later"``.
    random_state : int or None, default=None
        Seed for shuffling scopes of equal complexity.

    Raises
    ------
    DataError
        If a table or column is not in the database, or the key is missing or not unique.

    Notes
    -----
    Without related rows, counts and sums are 0; means, extremes and values are NaN, which requires a selector with
    ``missing="mean"``. The generator cannot determine when a value became known: exclude data recorded after the event
    to predict, by `exclude` or by views.

    Examples
    --------
    The target depends only on late orders:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Relational
    >>> rng = np.random.default_rng(0)
    >>> orders = pd.DataFrame({"customer": rng.integers(0, 100, 2000), "price": rng.exponential(size=2000),
    ...                        "status": rng.choice(["early", "late", "lost"], 2000)})
    >>> late = orders[orders.status == "late"].groupby("customer").price.sum().reindex(range(100), fill_value=0)
    >>> stream = Relational({"customers": pd.DataFrame({"id": range(100)}), "orders": orders},
    ...                     target="customers", key="id", links=[("orders.customer", "customers.id")])
    >>> y = late + 0.1 * rng.normal(size=100)
    >>> selector = AlphaInvesting(target_fdr=0.05, missing="mean").fit_stream(stream, y)
    >>> name = selector.selected_[-1]
    >>> name
    "sum(orders.price | status = 'late')"
    >>> print(stream.recipes(selector)[name])
    SELECT "orders"."customer", CAST(sum("orders"."price") AS DOUBLE) FROM "orders"
    WHERE "orders"."status" = 'late' GROUP BY 1
    """

    def __init__(
        self,
        database: Any,
        target: str,
        key: str,
        links: Sequence[tuple[str, str]],
        *,
        keys: Any = None,
        depth: int = 2,
        aggregates: Sequence[str] = AGGREGATES,
        max_values: int = 10,
        max_conditions: int = 2,
        exclude: Sequence[str] = (),
        random_state: int | None = None,
    ) -> None:
        super().__init__()
        check_number("depth", depth, low=1, integer=True)
        check_number("max_values", max_values, low=1, integer=True)
        check_number("max_conditions", max_conditions, low=0, integer=True)
        if unknown := set(as_list("aggregates", aggregates)) - set(AGGREGATES):
            raise ValueError(
                f"aggregates must be of {', '.join(map(repr, AGGREGATES))}, got {min(unknown)!r}."
            )
        self.database: Database = as_database(database)
        self.target, self.key, self.depth = target, key, int(depth)
        self.aggregates = tuple(aggregates)
        self.max_values, self.max_conditions = int(max_values), int(max_conditions)
        self.random_state = check_seed(random_state)
        self.schema = Schema(self.database, as_list("links", links), as_list("exclude", exclude))
        self.schema.check_column(f"{target}.{key}")
        table_keys = self.database.columns(f"SELECT {sql_identifier(key)} FROM {sql_identifier(target)}")[0]
        Keys(table_keys, key).check_unique()
        self.keys = Keys(table_keys if keys is None else keys, key)
        self._scopes: list[Scope] | None = None
        self._known_scopes: set[Scope] = set()
        self._at = self._next = 0
        self._loaded: tuple[int, list[_Named], list[NDArray[np.float64]]] | None = None

    def column(self, name: str) -> Array:
        """Return a column of the target table in the order of the keys, such as `y`.

        Parameters
        ----------
        name : str

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        self.schema.check_column(f"{self.target}.{name}")
        query = (
            f"SELECT {sql_identifier(self.key)}, {sql_identifier(name)} FROM {sql_identifier(self.target)}"
        )
        keys, values = self.database.columns(query)
        as_numbers = numbers(values)
        if as_numbers is not None:
            return self.keys.align(keys, [as_numbers], [np.nan], query)[0]
        places = self.keys.align(keys, [np.arange(len(keys), dtype=np.float64)], [np.nan], query)[0]
        if np.isnan(places).any():
            raise DataError(f"A row's key is not in {self.target!r}: use keys of the table.")
        return np.asarray(values)[places.astype(np.int64)]

    # -- scopes --------------------------------------------------------------------------------------------

    def _scope(self, path: Path, *where: Condition) -> Scope:
        return Scope(self.target, self.key, path, where)

    def _first_scopes(self) -> list[Scope]:
        items = []
        for path in self.schema.paths(self.target, self.depth):
            conditions = self.schema.conditions(path, self.max_values) if self.max_conditions else []
            items += [self._scope(path), *(self._scope(path, condition) for condition in conditions)]
        if self.random_state is not None:
            seed = seed_of(self.random_state, self.place)
            mixed = np.random.default_rng(seed).permutation(len(items))
            items = [items[j] for j in mixed.tolist()]
        return sorted(items, key=lambda scope: len(scope.path) + len(scope.where))

    # -- features of a scope -------------------------------------------------------------------------------

    def _features(self, scope: Scope) -> list[_Named]:
        path, last = scope.path, scope.path[-1].far
        lookup = not any(link.to_children for link in path)  # at most one row for each row of the target
        limited = any(table == last for table, _, _ in scope.where)
        features = []
        if "count" in self.aggregates and (limited or path[-1].to_children):
            features.append(self._aggregate(scope, "count"))
        tables = [last]
        if limited:  # earlier tables whose rows are not repeated by the last steps
            tables += [
                a.far for i, a in enumerate(path[:-1]) if not any(b.to_children for b in path[i + 1 :])
            ]
        for table in tables:
            for column in [*self.schema.numbers(table), *self.schema.times(table)]:
                features += self._column_aggregates(scope, table, column, lookup)
        if "distinct" in self.aggregates and not lookup:
            fixed = {(table, column) for table, column, _ in scope.where}
            features += [self._aggregate(scope, "distinct", last, column)
                      for column in self.schema.categories(last) if (last, column) not in fixed]  # fmt: skip
        return features

    def _column_aggregates(self, scope: Scope, table: str, column: str, lookup: bool) -> list[_Named]:
        is_time = column in self.schema.times(table)
        if lookup and scope.where:
            return []  # the value itself, if not missing
        if lookup:
            return [self._aggregate(scope, "value", table, column, is_time)]
        return [self._aggregate(scope, kind, table, column, is_time) for kind in self.aggregates
                if kind not in ("count", "distinct") and not (is_time and kind == "sum")]  # fmt: skip

    def _aggregate(
        self,
        scope: Scope,
        kind: str,
        table: str | None = None,
        column: str | None = None,
        is_time: bool = False,
    ) -> _Named:
        steps = [self.schema.step_name(link) for link in scope.path]
        last = scope.path[-1].far
        inside = ".".join(steps) + (f".{column}" if column is not None else "")
        if table is not None and table != last:
            inside = f"{'.'.join(steps)}:{table}.{column}"
        tests = [f"{tested if place == last else f'{place}.{tested}'} = {sql_literal(value)}"
                 for place, tested, value in scope.where]  # fmt: skip
        inside += f" | {' and '.join(tests)}" if tests else ""
        return f"{kind}({inside})", Aggregate(kind, scope, table, column, is_time)

    # -- the stream ----------------------------------------------------------------------------------------

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        scopes = self._all_scopes()
        while self._at < len(scopes):
            scope = scopes[self._at]
            aggregates, values = self._load(scope)
            part = slice(self._next, min(self._next + width, len(aggregates)))
            if part.start < part.stop:
                self._next = part.stop
                names, recipes = zip(*aggregates[part], strict=True)
                return CandidateBlock(list(names), np.column_stack(values[part]), recipes.__getitem__)
            self._at, self._next = self._at + 1, 0
        return None

    def _all_scopes(self) -> list[Scope]:
        if self._scopes is None:
            scopes = self._first_scopes()
            self._known_scopes, self._scopes = set(scopes), scopes
        return self._scopes

    def _load(self, scope: Scope) -> tuple[list[_Named], list[NDArray[np.float64]]]:
        """Return the features of the current scope and their values, without those missing in all rows."""
        if self._loaded is None or self._loaded[0] != self._at:
            aggregates = self._features(scope)
            values: list[NDArray[np.float64]] = []
            if aggregates:
                text = joint_query([recipe for _, recipe in aggregates])
                keys, *columns = self.database.columns(text)
                items = [column for values in columns if (column := numbers(values)) is not None]
                values = self.keys.align(keys, items, [recipe.empty for _, recipe in aggregates], text)
            some = [i for i, column in enumerate(values) if not np.isnan(column).all()]
            self._loaded = self._at, [aggregates[i] for i in some], [values[i] for i in some]
        return self._loaded[1], self._loaded[2]

    def _on_accept(self, name: str, i: int) -> None:
        """Refine the conditions of an accepted feature immediately, since the level is highest after a discovery."""
        scopes = self._all_scopes()
        scope = scopes[self._at]
        if not 1 <= len(scope.where) < self.max_conditions:
            return
        fixed = {(table, column) for table, column, _ in scope.where}
        finer = []
        for condition in self.schema.conditions(scope.path, self.max_values):
            both = sorted((*scope.where, condition), key=lambda one: (*one[:2], sql_literal(one[2])))
            new = self._scope(scope.path, *both)
            if condition[:2] not in fixed and new not in self._known_scopes:
                self._known_scopes.add(new)
                finer.append(new)
        scopes[self._at + 1 : self._at + 1] = finer

    def position(self) -> Any:
        """Return the scopes, the index of the current one, and the number of its features offered.

        Returns
        -------
        dict
        """
        scopes = None
        if self._scopes is not None:
            paths = {path: i for i, path in enumerate(self.schema.paths(self.target, self.depth))}
            scopes = [(paths[scope.path], scope.where) for scope in self._scopes]
        return {"scopes": scopes, "at": self._at, "next": self._next}

    def seek(self, position: Any) -> None:
        """Return to an earlier position.

        Parameters
        ----------
        position : dict
        """
        self._at, self._next = int(position["at"]), int(position["next"])
        if position["scopes"] is None:
            self._scopes = self._loaded = None
            return
        paths = self.schema.paths(self.target, self.depth)
        scopes = [
            self._scope(paths[i], *(tuple(condition) for condition in where))
            for i, where in position["scopes"]
        ]
        if scopes != self._scopes:
            self._scopes, self._known_scopes, self._loaded = scopes, set(scopes), None

    def _tables(self) -> set[str]:
        """Return the tables that may be read."""
        paths = self.schema.paths(self.target, self.depth)
        return {self.target, *(link.far for path in paths for link in path)}

    def _settings(self) -> dict[str, Any]:
        return {"target": self.target, "key": self.key, "links": self.schema.links, "depth": self.depth,
                "aggregates": self.aggregates, "max_values": self.max_values,
                "max_conditions": self.max_conditions, "exclude": sorted(self.schema.exclude),
                "random_state": self.random_state, "keys": self.keys.digest(),
                "tables": self.database.digest(self._tables())}  # fmt: skip
