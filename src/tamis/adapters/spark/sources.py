"""The Parquet files behind a DataFrame, if it is their rows and nothing else.

Spark's scan turns a file of more than 100 columns into rows at 250 ns a value, and plans 10,000 columns for 11 s each
time; pyarrow reads a value in 3 ns. So a DataFrame that is a plain scan is learned from its files, as a path is.

Where rows come from: a DataFrame of Spark, or files that the workers read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from tamis._validation import short_repr
from tamis.adapters.spark import arrow_rows
from tamis.errors import DataError

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"


def plain_files(df: Any, needed: list[str]) -> list[tuple[str, int]] | None:
    """Return the files and their sizes, in the order of their paths; None if the rows are not theirs.

    A filter, a join, a computed column, a table format such as Delta, columns that only the names of folders contain,
    a cached DataFrame and files on a remote store are left to Spark.
    """
    if not _is_scan(df) or df.is_cached:
        return None
    urls = [urlsplit(url) for url in df.inputFiles()]
    if not urls or any(url.scheme != "file" for url in urls):
        return None
    paths = sorted(unquote(url.path) for url in urls)
    try:
        sizes = [os.path.getsize(path) for path in paths]
    except OSError:  # the workers' disks are not the driver's
        return None
    return list(zip(paths, sizes, strict=True)) if _has_types(df, paths[0], needed) else None


def _is_scan(df: Any) -> bool:
    """Return whether the plan reads columns of Parquet files, and does nothing else."""
    try:
        plan = df._jdf.queryExecution().analyzed()
        # The list of expressions equals the list of columns, unless one of them is computed or renamed.
        while plan.nodeName() == "Project" and plan.projectList().equals(plan.output()):
            plan = plan.child()
        if plan.getClass().getSimpleName() != "LogicalRelation":
            return False
        relation = plan.relation()
        return bool(
            relation.getClass().getSimpleName() == "HadoopFsRelation"
            and relation.fileFormat().getClass().getName() == _PARQUET
            and relation.partitionSchema().length() == 0
        )
    except Exception:  # another kind of session, such as Spark Connect, has no plan here
        return False


def _has_types(df: Any, path: str, needed: list[str]) -> bool:
    """Return whether the needed columns have the types of the file."""
    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import from_arrow_type

    kinds = {field.name: field.dataType for field in df.schema.fields}
    own = {field.name: field.type for field in pq.read_schema(path)}
    try:
        return all(from_arrow_type(own[name]) == kinds[name] for name in needed if name in own)
    except Exception:  # a type that Spark does not have
        return False


_NUMBERS = {
    "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "halffloat", "bool",
}  # fmt: skip
_TEXTS = ("string", "large_string", "varchar", "char", "dictionary<values=string")
_MOST_SHOWN = 60  # characters of a type in a message


class FrameRows:
    """Rows of a DataFrame; Spark hands them over as Arrow batches."""

    def __init__(self, df: Any, label: str, features: Any, weight: str | None) -> None:
        # One pass over the schema: a frame may have 10,000 columns.
        kinds = {field.name: field.dataType for field in df.schema.fields}
        names = df.columns
        if len(kinds) < len(names):
            name, n = Counter(names).most_common(1)[0]
            raise DataError(f"df has {n} columns named {name!r}: rename all but one.")
        self.session, self._df = df.sparkSession, df
        said = {name: kind.simpleString() for name, kind in kinds.items()}
        vectors = {name for name, kind in kinds.items() if is_vector(kind)}
        self.columns = _columns("df", said, vectors, label, features, weight)

    @property
    def _rows(self) -> Any:
        needed = arrow_rows.needed_columns(self.columns)
        # `select` with Column objects takes seconds for 10,000 of them.
        return (
            self._df if set(needed) == set(self._df.columns) else self._df.selectExpr(*map(_quoted, needed))
        )

    def files(self) -> list[tuple[str, int]] | None:
        """Return the files, and their sizes, if the workers can read the same rows from them; None otherwise."""
        return (
            None if self.columns["vector"] else plain_files(self._df, arrow_rows.needed_columns(self.columns))
        )

    def first(self, n_rows: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield features, labels and weights of the first rows."""
        import pyarrow as pa

        frame = self._rows
        if rows := frame.head(n_rows):
            values: dict[str, Any] = dict(zip(frame.columns, map(list, zip(*rows, strict=True)), strict=True))
            if self.columns["vector"]:
                name = self.columns["features"][0]
                values[name] = arrow_rows.vectors_to_arrow(values[name])
            yield from arrow_rows.batches(
                pa.RecordBatch.from_pydict(values), {**self.columns, "single": False}
            )

    def map(self, function: Any, schema: str) -> Any:
        """Return the output of a function for `mapInArrow` for each partition."""
        return self._rows.mapInArrow(function, schema)


class FileRows:
    """Rows of files; a worker receives the number of its partition and reads the files."""

    def __init__(self, files: list[tuple[str, int]], columns: dict[str, Any], session: Any) -> None:
        self.columns, self.session = {**columns, "parts": arrow_rows.split_files(files)}, session

    @classmethod
    def of_paths(cls, source: Any, label: str, features: Any, weight: str | None) -> FileRows:
        """Return the rows of a path, or of a list of paths."""
        from pyspark.sql import SparkSession

        files = arrow_rows.list_files(source)
        kinds = arrow_rows.arrow_schema(files[0][0])
        said = {name: str(kind) for name, kind in kinds.items()}
        columns = _columns(repr(files[0][0]), said, set(), label, features, weight)
        return cls(files, columns, SparkSession.builder.getOrCreate())

    def first(self, n_rows: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield features, labels and weights of the first rows."""
        for batch in arrow_rows.first_rows(self.columns["parts"], self.columns, n_rows):
            yield from arrow_rows.batches(batch, self.columns)

    def map(self, function: Any, schema: str) -> Any:
        """Return the output of a function for `mapInArrow` for each partition."""
        n_parts = len(self.columns["parts"])
        return self.session.range(0, n_parts, 1, n_parts).mapInArrow(function, schema)


def open_rows(source: Any, label: str, features: Any, weight: str | None) -> FrameRows | FileRows:
    """Return the rows of a DataFrame, of a path, or of a list of paths, once label and features are validated."""
    if hasattr(source, "mapInArrow") and hasattr(source, "schema"):
        if source.isStreaming:
            raise ValueError(
                "df is a stream: give a StreamingScreen to df.writeStream.foreachBatch, which learns batch by batch."
            )
        rows = FrameRows(source, label, features, weight)
        files = rows.files()
        # A schema that the user gave may have columns that a file lacks: they are null.
        return rows if files is None else FileRows(files, {**rows.columns, "may_lack": True}, rows.session)
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        return FileRows.of_paths(source, label, features, weight)
    raise TypeError(
        f"df must be a DataFrame of Spark, a path or a list of paths, got {short_repr(source)}: pass any"
        " other source to selector.fit."
    )


def _columns(
    where: str, kinds: dict[str, str], vectors: set[str], label: str, features: Any, weight: str | None
) -> dict[str, Any]:
    """Return the names of the columns, and how the features are given."""
    kind = kind_of(where, kinds, label, "label")
    if label in vectors or not (_is_number(kind) or kind.startswith(_TEXTS)):
        raise DataError(f"Column {label!r}, the label, is of type {kind}: give text, numbers or booleans.")
    if weight is not None and not _is_number(kind := kind_of(where, kinds, weight, "weight")):
        raise DataError(f"Column {weight!r}, the weight, is of type {kind}, not numeric.")
    if features is None:
        features = [name for name in kinds if name not in (label, weight)]
    names = [features] if isinstance(features, str) else list(features)
    if not names:
        raise DataError("features is empty: name at least one column.")
    twice = Counter(map(str, names))
    for name in names:
        kind = kind_of(where, kinds, name, "features")
        if name in (label, weight) or twice[name] > 1:
            raise DataError(
                f"features names {name!r}, which is the label, the weight, or named twice: remove it."
            )
        if name in vectors:
            if len(names) > 1:
                raise DataError(
                    f"Column {name!r} contains vectors: name it alone in features=, without other columns."
                )
        elif not _is_number(kind):
            raise DataError(f"Column {name!r} is of type {kind}, not numeric: {_advice(kind)}.")
    single = all(kinds[name] == "float" for name in names)
    return {
        "label": label, "weight": weight, "features": names, "vector": names[0] in vectors, "single": single,
    }  # fmt: skip


def _advice(kind: str) -> str:
    if kind.startswith("array<") and kind[6:-1] in _NUMBERS:
        return "turn it into vectors by pyspark.ml.functions.array_to_vector"
    return "encode it, or name the columns to learn from in features="


def kind_of(where: str, kinds: dict[str, str], name: Any, role: str) -> str:
    """Return the type of a column as a message shows it."""
    if not isinstance(name, str) or name not in kinds:
        names = list(kinds)
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"{role} names {short_repr(name)}, which {where} does not have: its columns are {listed}."
        )
    said = kinds[name]
    return said if len(said) < _MOST_SHOWN else f"{said[:_MOST_SHOWN]}..."


def _is_number(kind: str) -> bool:
    return kind in _NUMBERS or kind.startswith("decimal")


def is_vector(kind: Any) -> bool:
    """Return whether a type of Spark is that of pyspark.ml's vectors."""
    from pyspark.ml.linalg import VectorUDT

    return isinstance(kind, VectorUDT)


def column_of(name: str) -> Any:
    """Return a column by its exact name, which may contain dots."""
    from pyspark.sql import functions

    return functions.col(_quoted(name))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
