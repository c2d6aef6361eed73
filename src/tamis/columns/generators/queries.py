"""Features as queries against a database, evaluated lazily."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array
from tamis.base import ColumnSelector
from tamis.columns.generators.formulas import NewRows, Recipe
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator
from tamis.errors import DataError

__all__ = ["Database", "Query", "SQLFeatures"]

Floats = NDArray[np.float64]
_CLOSED: dict[str, Any] = {"python_enable_replacements": "false", "autoload_known_extensions": "false"}


class Database:
    """Tables against which queries are run.

    Parameters
    ----------
    source : DuckDB connection, path, or dict
        An open connection; the path of a DuckDB file, which is opened for reading; or a dict from table names to frames
        (pandas, Polars, Arrow) and paths of CSV and Parquet files.

    Raises
    ------
    ImportError
        If DuckDB is not installed.
    DataError
        If the source cannot be opened.

    Notes
    -----
    A path or dict is opened with one thread, so that sums are bitwise reproducible. Queries can then access only
    the given files; a pattern such as ``"2024/*.parquet"`` gives access to its whole folder. An open connection is used
    with its own settings. A query is one SELECT.

    Examples
    --------
    >>> from tamis.columns.generators import Database
    >>> import pandas as pd
    >>> Database({"t": pd.DataFrame({"id": [1, 2]})}).columns("SELECT sum(id) FROM t")
    [array([3.])]
    """

    def __init__(self, source: Any) -> None:
        try:
            import duckdb
        except ImportError:
            raise ImportError("Features as queries need DuckDB: pip install 'tamis[sql]'.") from None
        self._error: type[Exception] = duckdb.Error
        if isinstance(source, duckdb.DuckDBPyConnection):
            self._connection = source
            return
        if not isinstance(source, dict | str | os.PathLike):
            raise TypeError(
                f"database must be a DuckDB connection, a path or a dict of tables, got {source!r:.60}."
            )
        try:
            if isinstance(source, dict):
                self._connection = duckdb.connect(config={"threads": 1, **_CLOSED})
                for name, table in source.items():
                    self._add(str(name), table)
                self._restrict_access([os.fspath(table) for table in source.values() if _is_path(table)])
            else:
                config = {"threads": 1, **_CLOSED}
                self._connection = duckdb.connect(os.fspath(source), read_only=True, config=config)
                self._restrict_access([])
        except duckdb.Error as error:
            raise DataError(f"The database cannot be opened: {_first_line(error)}") from error

    def _add(self, name: str, table: Any) -> None:
        if _is_path(table):
            place = sql_literal(os.path.abspath(table))
            self._connection.execute(f"CREATE VIEW {sql_identifier(name)} AS SELECT * FROM {place}")
        else:
            self._connection.register(name, table)

    def _restrict_access(self, paths: list[str]) -> None:
        """Permanently deny access to all files except these."""
        files = [os.path.abspath(path) for path in paths if not glob.has_magic(path)]
        folders = [os.path.abspath(_folder(path)) for path in paths if glob.has_magic(path)]
        for kind, allowed in (("paths", files), ("directories", folders)):
            if allowed:
                self._connection.execute(f"SET allowed_{kind} = [{', '.join(map(sql_literal, allowed))}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def check_tables(self, tables: Iterable[str]) -> None:
        """Validate that tables are in the database, since DuckDB might interpret another name as a file.

        Parameters
        ----------
        tables : iterable of str

        Raises
        ------
        DataError
            If a table is not in the database.
        """
        names = self.columns("SELECT table_name FROM information_schema.tables")[0]
        known = {str(name).lower() for name in names.tolist()}
        for table in tables:
            if table.lower() not in known:
                raise DataError(f"There is no table {table!r} in the database: pass the one with all tables.")

    def tables_in(self, queries: Iterable[str]) -> set[str]:
        """Return the tables and views whose names occur in queries.

        Parameters
        ----------
        queries : iterable of str

        Returns
        -------
        set of str
        """
        text = "\n".join(queries).lower()
        names = self.columns("SELECT table_name FROM information_schema.tables")[0]
        return {str(name) for name in names.tolist() if str(name).lower() in text}

    def digest(self, tables: Iterable[str]) -> dict[str, str]:
        """Return a fingerprint of the columns and rows of each table; independent of the order of the rows.

        Parameters
        ----------
        tables : iterable of str

        Returns
        -------
        dict of str to str
        """
        digests = {}
        for table in sorted(tables):
            rows = f"(SELECT * FROM {sql_identifier(table)})"
            kinds = [column.tolist() for column in self.columns(f"DESCRIBE {rows[1:-1]}")[:2]]
            count = f"SELECT count(*)::VARCHAR, sum(hash(r)::HUGEINT)::VARCHAR FROM {rows} AS r"
            values = [str(column[0]) for column in self.columns(count)]
            digests[table] = hashlib.sha256(repr((kinds, values)).encode()).hexdigest()[:32]
        return digests

    def columns(self, query: str) -> list[Any]:
        """Run a query and return its columns, masked where they are NULL.

        Parameters
        ----------
        query : str
            One SELECT statement.

        Returns
        -------
        list of ndarray

        Raises
        ------
        DataError
            If the statement is not a SELECT, or fails.
        """
        try:
            kinds = [statement.type.name for statement in self._connection.extract_statements(query)]
            if kinds != ["SELECT"]:
                raise DataError(
                    f"The query {query!r} is not one SELECT but"
                    f" {' and '.join(kinds) or 'nothing'}: write a single SELECT."
                )
            return list(self._connection.execute(query).fetchnumpy().values())
        except self._error as error:
            raise DataError(f"The query {query!r} fails: {_first_line(error)}") from error
        except RuntimeError as error:
            if "nterrupt" in str(error):  # DuckDB's answer to Ctrl-C
                raise KeyboardInterrupt from error
            raise


def _is_path(table: Any) -> bool:
    return isinstance(table, str | os.PathLike)


def _folder(pattern: str) -> str:
    """Return the folder that a pattern of paths searches."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def as_database(source: Any) -> Database:
    """Return the database itself, or open it."""
    return source if isinstance(source, Database) else Database(source)


def numbers(values: Any) -> Floats | None:
    """Return a column as float64 with NaN for NULL, or None if it is not numeric."""
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        return None
    return np.where(np.ma.getmaskarray(values), np.nan, array.astype(np.float64))


def _comparable(keys: Any) -> tuple[Array, Array]:
    """Return a mask of the keys that are not missing, and those keys as int64, float64 or text."""
    array = np.asarray(keys)
    known = ~np.ma.getmaskarray(keys)
    if array.dtype.kind == "O":
        known &= np.array([key is not None and key == key for key in array.tolist()], dtype=bool)
    elif array.dtype.kind == "f":
        known &= ~np.isnan(array)
    kind: Any = {"i": np.int64, "u": np.int64, "b": np.int64, "f": np.float64}.get(array.dtype.kind, str)
    return known, array[known].astype(kind)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def sql_identifier(name: str) -> str:
    """Return a name of a table or column as SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_literal(value: Any) -> str:
    """Return a value as SQL."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | np.number):
        return repr(float(value))
    return "'" + str(value).replace("'", "''") + "'"


class Keys:
    """The keys of the rows, used to align the rows of a query."""

    def __init__(self, keys: Any, name: str = "key") -> None:
        known, self.values = _comparable(keys if isinstance(keys, np.ma.MaskedArray) else np.asarray(keys))
        self.name = name
        if not known.all():
            raise DataError(f"The key {name!r} of row {int(np.flatnonzero(~known)[0])} is missing.")
        self._order = np.argsort(self.values, kind="stable")
        self._sorted = self.values[self._order]

    def digest(self) -> str:
        """Return a fingerprint of the keys."""
        return hashlib.sha256(repr(self.values.tolist()).encode()).hexdigest()

    def check_unique(self) -> None:
        """Raise if two rows have the same key."""
        if (twice := _first_duplicate(self._sorted)) is not None:
            raise DataError(f"The key {self.name!r} is {twice!r} in two rows: keys must be unique.")

    def align(self, keys_of_rows: Any, values: list[Floats], empty: list[float], query: str) -> list[Floats]:
        """Return columns in the order of the rows; `empty` for rows that the query does not return."""
        known, keys = _comparable(keys_of_rows)
        if not len(keys):
            return [np.full(len(self.values), nothing) for nothing in empty]
        if (keys.dtype.kind == "U") != (self.values.dtype.kind == "U"):
            raise DataError(
                f"The query {query!r} returns keys like {keys.tolist()[0]!r}, but the rows have keys like"
                f" {self.values.tolist()[0]!r}: cast one to the other's type."
            )
        by_key = np.argsort(keys, kind="stable")
        ordered = keys[by_key]
        if (twice := _first_duplicate(ordered)) is not None:
            raise DataError(
                f"The query {query!r} returns two values for the key {twice!r}: group by the key."
            )
        places = np.minimum(np.searchsorted(ordered, self._sorted), len(ordered) - 1)
        matched = ordered[places] == self._sorted
        columns = []
        for column, nothing in zip(values, empty, strict=True):
            aligned = np.full(len(self.values), nothing)
            aligned[self._order[matched]] = column[known][by_key][places[matched]]
            columns.append(aligned)
        return columns


def _first_duplicate(ordered: Array) -> Any:
    """Return a value that occurs twice in a sorted array, or None."""
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return ordered[same[0]].item() if len(same) else None


@dataclass(frozen=True)
class Query(Recipe):
    """A feature from a query with two columns: the key of a row, and the value of the feature.

    The query is run unchanged. A file with such a feature can be loaded only if the class is allowed explicitly:
    ``tamis.load(path, classes=[Query])``.

    Attributes
    ----------
    text : str
        The query.
    key : str
        The column of the rows that contains the key.
    empty : float
        The value of a row that the query does not return.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tamis.columns.generators import NewRows, Query
    >>> orders = pd.DataFrame({"customer": [7, 7, 5], "price": [1.0, 2.0, 4.0]})
    >>> query = Query("SELECT customer, sum(price) FROM orders GROUP BY customer", "id", 0.0)
    >>> query.values(NewRows(None, {"id": np.array([5, 6, 7])}, {"orders": orders}))
    array([4., 0., 3.])
    """

    text: str
    key: str
    empty: float
    is_atom = True
    loaded_if_named = True  # the text of an untrusted file could be any query

    def values(self, rows: NewRows) -> Floats:
        """Run the query."""
        if rows.database is None:
            raise DataError(f"A feature is the query {self.text!r}: give the database that it runs against.")
        return run_query(
            as_database(rows.database), self.text, Keys(rows.keys[self.key], self.key), self.empty
        )

    def needs(self) -> set[str]:
        """Return no columns: the key is taken from the rows."""
        return set()

    def __str__(self) -> str:
        return self.text


def query_texts(recipes: Iterable[Recipe]) -> set[str]:
    """Return the texts of all queries in recipes and in their components."""
    texts, seen, left = set(), set(), list[Any](recipes)
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Query):
            texts.add(one.text)
        left += one if isinstance(one, tuple) else vars(one).values() if isinstance(one, Recipe) else []
    return texts


def run_query(database: Database, text: str, keys: Keys, empty: float) -> Floats:
    """Return one feature, in the order of the keys."""
    columns = database.columns(text)
    values = numbers(columns[1]) if len(columns) == 2 else None
    if values is None:
        raise DataError(f"The query {text!r} must return two columns, the key of a row and a number.")
    return keys.align(columns[0], [values], [empty], text)[0]


class SQLFeatures(FeatureGenerator):
    """Features from your own queries, which run lazily.

    Parameters
    ----------
    database : DuckDB connection, path, dict of tables, or Database
    queries : iterable of str, or of pairs (name, query)
        Each query returns two columns: the key of a row, and the value of the feature. By default, the text of the
        query is the name of the feature.
    keys : array-like of shape (n_rows,)
        The key of each row of the target.
    key : str, default="key"
        The column that contains the keys in new rows.
    empty : float, default=nan
        The value of rows that a query does not return.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import SQLFeatures
    >>> rng = np.random.default_rng(0)
    >>> visits = pd.DataFrame({"patient": rng.integers(0, 80, 900), "days": rng.exponential(size=900)})
    >>> y = np.bincount(visits["patient"], minlength=80) + 0.1 * rng.normal(size=80)
    >>> queries = [(f"{f} of {c}", f"SELECT patient, {f}({c}) FROM visits GROUP BY patient")
    ...            for f, c in [("avg", "days"), ("median", "days"), ("count", "*")]]
    >>> stream = SQLFeatures({"visits": visits}, queries, np.arange(80), empty=0)
    >>> selector = AlphaInvesting(target_fdr=0.05).fit_stream(stream, y)
    >>> selector.selected_, str(stream.recipes(selector)["count of *"])
    (['count of *'], 'SELECT patient, count(*) FROM visits GROUP BY patient')
    """

    def __init__(
        self, database: Any, queries: Iterable[Any], keys: Any, *, key: str = "key", empty: float = np.nan
    ) -> None:
        super().__init__()
        self.database, self.keys, self.empty = as_database(database), Keys(keys, key), float(empty)
        pairs = [(query, query) if isinstance(query, str) else tuple(query) for query in queries]
        self.queries = [(str(name), str(text)) for name, text in pairs]
        self._next = 0

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        if self._next == len(self.queries):
            return None
        name, text = self.queries[self._next]
        try:
            values = run_query(self.database, text, self.keys, self.empty)
        except DataError as error:
            raise DataError(f"Feature {name!r}: {error}") from error
        self._next += 1
        return CandidateBlock([name], values[:, None], lambda i: Query(text, self.keys.name, self.empty))

    def position(self) -> Any:
        """Return the number of queries run.

        Returns
        -------
        int
        """
        return self._next

    def seek(self, position: Any) -> None:
        """Go to the query at a position.

        Parameters
        ----------
        position : int
        """
        self._next = int(position)

    def own_queries(self) -> set[str]:
        """Return the texts of the queries.

        Returns
        -------
        set of str
        """
        return {text for _, text in self.queries}

    def _settings(self) -> dict[str, Any]:
        tables = self.database.tables_in(self.own_queries())
        return {"queries": self.queries, "key": self.keys.name, "empty": self.empty,
                "keys": self.keys.digest(), "tables": self.database.digest(tables)}  # fmt: skip
