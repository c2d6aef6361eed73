"""Spark: selectors learn from the rows of a cluster in place; only states are sent, not rows.

Each partition is learned from by a selector of its own, in its worker. The states are merged by a tree, on the workers
too, neighbours with neighbours; one state reaches the driver. Selectors that bin values receive the bin edges of the
first rows beforehand, so that all partitions use the same bins, and the merged state is as large as that of one.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import tamis
from tamis._validation import as_classes, short_repr
from tamis._validation.parameters import check_parameters
from tamis.base import RowSelector
from tamis.catalog import CATALOG
from tamis.errors import CheckpointError, DataError, StreamError, TamisError
from tamis.merging import merge_tree
from tamis.persistence import dumps, load, loads, save

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StreamingScreen", "screen", "transform"]

_SCHEMA = "part int, state binary, error string"
_MAX_VALUES = 4_000_000  # values that a worker holds as an array
_GROUP_BYTES = 256 << 20  # of states that a worker merges at once
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")


def screen(
    df: DataFrame,
    label: str,
    selector: Any,
    *,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    classes: Any = None,
    when: str | None = None,
) -> Any:
    """Learn from the rows of a Spark DataFrame on the workers that hold them, and merge the results.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    label : str
        Column of the labels: text, whole numbers or booleans; numbers for a regression. It must not contain null.
    selector : RowSelector
        A selector that can be merged (the catalogue says which can). It stays as it is: a clone learns.
    features : str or list of str, optional
        Columns of numbers (null and NaN are missing), or one vector column of pyspark.ml, dense, sparse or both. By
        default all columns but `label` and `weight`.
    weight : str, optional
        Column of the weights of the rows, not negative.
    classes : list, optional
        Labels known in advance, in the order that `classes_` should have.
    when : {"after"}, optional
        Needed where rows fade. It states that the partitions hold the rows in order, each after the one before.

    Returns
    -------
    RowSelector
        A selector that has learned from all rows. Columns have their names, entries of a vector column their positions.

    Raises
    ------
    DataError
        If a column is missing or of a type that cannot be learned from, a label or weight is null, df is empty, or
        the selector rejects rows.
    TypeError
        If `df` is not a DataFrame of Spark, or the selector cannot be merged.
    ValueError
        If a parameter has a value that cannot be used here.
    RuntimeError
        If the workers run another Python, or one that lacks a package.

    Notes
    -----
    The result equals that of one process up to the differences that :func:`tamis.merge_tree` describes: rounding for
    moments, the certified error of quantiles for bins. The same partitions with the same rows in the same order give
    the same bytes.

    Examples
    --------
    >>> def screen_clicks(spark):
    ...     clicks = spark.read.parquet("clicks")
    ...     return screen(clicks, "clicked", tamis.FisherScore(20)).get_feature_names_out()
    """
    columns = _columns(df, label, features, weight)
    if df.isStreaming:
        raise ValueError(
            "df is a stream: give a StreamingScreen to df.writeStream.foreachBatch, which learns batch by batch."
        )
    _check_selector(selector, classes, when)
    learned = _learn_partitions(df, columns, clone(selector), classes, when)
    if learned is None:
        raise DataError("df has no rows: there is nothing to learn from.")
    return learned


def transform(df: DataFrame, selector: Any, *, features: str | None = None) -> DataFrame:
    """Drop the columns, or the entries of a vector column, that are not selected.

    No data passes through Python: Spark does not even read columns that are left out, and slices vectors itself.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        It may be a streaming one. Columns that the selector does not know stay.
    selector : RowSelector
        The selector that `screen` returned.
    features : str, optional
        The vector column, where the selector learned from one; by default the only vector column.

    Returns
    -------
    pyspark.sql.DataFrame

    Raises
    ------
    DataError
        If a column is missing.
    """
    from pyspark.ml.feature import VectorSlicer

    kept = selector.get_support()
    if (names := vars(selector).get("feature_names_in_")) is not None:
        for name in names[kept]:
            _type_of(df, name, "features")
        return df.select(*(_column(c) for c in df.columns if c not in set(names[~kept])))
    vectors = [field.name for field in df.schema.fields if _is_vector(field.dataType)]
    if features is None and len(vectors) != 1:
        raise DataError(f"df has {len(vectors)} vector columns: name the one to slice in features=.")
    vector = vectors[0] if features is None else features
    if not _is_vector(_type_of(df, vector, "features")):
        raise DataError(f"Column {vector!r} is not a vector column, but the selector learned from one.")
    sliced = f"{vector}_selected"
    slicer = VectorSlicer(inputCol=vector, outputCol=sliced, indices=np.flatnonzero(kept).tolist())
    found = slicer.transform(df)
    return found.select(*(_column(sliced).alias(c) if c == vector else _column(c) for c in df.columns))


class StreamingScreen:
    """Learns from each batch of Structured Streaming once: the function to give to ``foreachBatch``.

    After each batch the state is written to a folder, as a file named by the batch, before Spark records that the batch
    is done. If the program is killed in between, Spark offers the batch again; its file exists, and the batch is
    skipped. If it is killed earlier, the file does not exist, and the batch is learned from.

    Parameters
    ----------
    selector : RowSelector
        A selector that can be merged. It stays as it is.
    label : str
        As for :func:`screen`.
    folder : path
        Folder for the states, one for each query, on a disk that the driver has again after a restart.
    features, weight, classes
        As for :func:`screen`.

    Attributes
    ----------
    selector_ : RowSelector
        The fitted selector.
    batch_id_ : int
        The last batch that it has learned from.

    Raises
    ------
    TypeError, ValueError
        If the selector does not merge, or a parameter cannot be used so.
    StreamError
        If the batches do not continue those of the folder: it belongs to another query, or files were deleted.
    CheckpointError
        If a state cannot be read or written.

    Notes
    -----
    The query needs a ``checkpointLocation``, and a source that can give the rows of a batch again (files, Kafka). Where
    rows fade, those of a batch come after those of the batches before; within a batch, partition after partition.

    Examples
    --------
    >>> def follow_clicks(clicks):
    ...     learn = StreamingScreen(tamis.TScore(20), "clicked", "states")
    ...     return clicks.writeStream.foreachBatch(learn).option("checkpointLocation", "query").start()
    """

    def __init__(
        self,
        selector: Any,
        label: str,
        folder: str | os.PathLike[str],
        *,
        features: str | Sequence[str] | None = None,
        weight: str | None = None,
        classes: Any = None,
    ) -> None:
        _check_selector(selector, classes, "after")
        self.selector, self.label, self.folder = selector, label, Path(folder)
        self.features, self.weight, self.classes = features, weight, classes
        self._last = self._load_last()

    @property
    def selector_(self) -> Any:
        """The fitted selector."""
        if self._last is None or self._last["selector"] is None:
            raise AttributeError("selector_ is there after the first batch with rows.")
        return self._last["selector"]

    @property
    def batch_id_(self) -> int:
        """The last batch that was learned from."""
        if self._last is None:
            raise AttributeError("batch_id_ is there after the first batch.")
        return int(self._last["batch"])

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Learn from a batch, unless its state is in the folder."""
        if not self._is_next_batch(batch_id, _query_of(df)):
            return
        before = None if self._last is None else self._last["selector"]
        columns = _columns(df, self.label, self.features, self.weight)
        learned = _learn_partitions(
            df, columns, clone(self.selector) if before is None else before, self.classes, "after"
        )
        if before is not None:
            learned = before if learned is None else merge_tree([before, learned], when="after")
        last = {"query": _query_of(df), "batch": batch_id, "selector": learned}
        save(last, self._file(batch_id))
        self._last = last
        for old in sorted(self.folder.glob("batch-*.tamis"))[:-2]:
            old.unlink()

    def _file(self, batch_id: int) -> Path:
        return self.folder / f"batch-{batch_id:015d}.tamis"

    def _load_last(self) -> dict[str, Any] | None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"Cannot make the folder {str(self.folder)!r} ({error.strerror})."
            ) from None
        for torn in self.folder.glob(".batch-*.tmp"):  # of a process that was killed while it wrote
            torn.unlink(missing_ok=True)
        files = sorted(self.folder.glob("batch-*.tamis"))
        return load(files[-1], classes=_foreign_class(self.selector)) if files else None

    def _is_next_batch(self, batch_id: int, query: str | None) -> bool:
        """Return whether a batch is the next one; False: it was learned from. Refuse any other."""
        at = f"The query offers batch {batch_id}, but {str(self.folder)!r}"
        if self._last is None:
            if batch_id:
                raise StreamError(
                    f"{at} holds no state: give the folder of the batches before, or begin a query with a new"
                    " checkpointLocation."
                )
            return True
        if None not in (query, self._last["query"]) and query != self._last["query"]:
            raise StreamError(f"{at} holds the state of another query: give each query a folder of its own.")
        if batch_id not in (self.batch_id_, self.batch_id_ + 1):
            raise StreamError(
                f"{at} holds the state after batch {self.batch_id_}: folder and checkpointLocation must be of one age."
            )
        return bool(batch_id > self.batch_id_)


def _query_of(df: DataFrame) -> str | None:
    """Return the id of the query; None if Spark does not provide it."""
    with contextlib.suppress(Exception):  # Spark Connect has no context
        found: str | None = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        return found
    return None


# -- checks before a job is started ----------------------------------------------------------------------


def _columns(df: Any, label: str, features: Any, weight: str | None) -> dict[str, Any]:
    """Return the names of the columns, and how the features are given."""
    if not (hasattr(df, "mapInArrow") and hasattr(df, "schema")):
        raise TypeError(
            f"df must be a DataFrame of Spark, got {short_repr(df)}: others are for selector.fit."
        )
    for name in df.columns:
        if df.columns.count(name) > 1:
            raise DataError(f"df has {df.columns.count(name)} columns named {name!r}: rename all but one.")
    kind = _type_of(df, label, "label").simpleString()
    if kind not in (*_NUMBERS, "string") and not kind.startswith(("decimal", "varchar", "char")):
        raise DataError(f"Column {label!r}, the label, is of type {kind}: give text, numbers or booleans.")
    if weight is not None and not _is_number(_type_of(df, weight, "weight")):
        raise DataError(f"Column {weight!r}, the weight, is of type {_type_name(df, weight)}, not numeric.")
    if features is None:
        features = [name for name in df.columns if name not in (label, weight)]
    names = [features] if isinstance(features, str) else list(features)
    if not names:
        raise DataError("features is empty: name at least one column.")
    for name in names:
        if name in (label, weight) or names.count(name) > 1:
            raise DataError(
                f"features names {name!r}, which is the label, the weight, or named twice: leave it out."
            )
        _check_feature(df, name, alone=len(names) == 1)
    single = all(_type_name(df, name) == "float" for name in names)
    vector = _is_vector(df.schema[names[0]].dataType)
    return {"label": label, "weight": weight, "features": names, "vector": vector, "single": single}


def _check_feature(df: Any, name: str, *, alone: bool) -> None:
    kind = _type_of(df, name, "features")
    if _is_vector(kind):
        if not alone:
            raise DataError(
                f"Column {name!r} holds vectors: name it alone in features=, without other columns."
            )
        return
    if not _is_number(kind):
        said = _type_name(df, name)
        advice = (
            "turn it into vectors by pyspark.ml.functions.array_to_vector"
            if said.startswith("array<") and said[6:-1] in _NUMBERS
            else "encode it, or name the columns to learn from in features="
        )
        raise DataError(f"Column {name!r} is of type {said}, not numeric: {advice}.")


def _type_of(df: Any, name: Any, role: str) -> Any:
    if name not in df.columns:
        shown = ", ".join(df.columns[:10]) + (", ..." if len(df.columns) > 10 else "")
        raise DataError(f"{role} names {short_repr(name)}, which df does not have: its columns are {shown}.")
    return df.schema[name].dataType


def _type_name(df: Any, name: str) -> str:
    said: str = df.schema[name].dataType.simpleString()
    return said if len(said) < 60 else f"{said[:60]}..."


def _is_number(kind: Any) -> bool:
    return kind.simpleString() in _NUMBERS or kind.simpleString().startswith("decimal")


def _is_vector(kind: Any) -> bool:
    from pyspark.ml.linalg import VectorUDT

    return isinstance(kind, VectorUDT)


def _column(name: str) -> Any:
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def _check_selector(selector: Any, classes: Any, when: str | None) -> None:
    if not isinstance(selector, RowSelector):
        raise TypeError(f"selector must be a row selector, got {short_repr(selector)}.")
    if not hasattr(selector, "merge"):
        kind = type(selector).__name__
        why = next(
            (entry.not_mergeable for entry in CATALOG if entry.name == kind), "It has no method merge."
        )
        raise TypeError(f"selector cannot be a {kind}, whose states do not merge. {why}")
    check_parameters(selector)
    if when not in (None, "after"):
        raise ValueError(
            f"when must be 'after' or None, got {short_repr(when)}: Spark's partitions follow one another."
        )
    if getattr(selector, "fade_per", "row") == "batch" and getattr(selector, "_factor", 1.0) != 1.0:
        raise ValueError(
            "fade_per='batch' counts calls, which depend on how Spark cuts the rows: let rows fade."
        )
    clone(selector).merge(clone(selector), **_merge_options(when))  # says what it needs
    if classes is not None:
        as_classes(classes)


def _merge_options(when: str | None) -> dict[str, str]:
    return {} if when is None else {"when": when}


# -- learning: a state for each partition, and the tree ---------------------------------------------------


def _learn_partitions(
    df: DataFrame, columns: dict[str, Any], start: Any, classes: Any, when: str | None
) -> Any:
    """Return the merged selectors of the partitions; None if df is empty."""
    from pyspark.sql import functions as F

    names = [columns["label"], *columns["features"], *([columns["weight"]] if columns["weight"] else [])]
    rows = df.select(*map(_column, names))
    own, classes = _foreign_class(start), None if classes is None else list(classes)
    blank = (
        start.clone_unfitted()
        if hasattr(start, "n_seen_")
        else _with_first_rows(rows, columns, start, classes)
    )
    if blank is None:
        return None
    task = dumps({**columns, "selector": blank, "classes": classes})
    states = rows.mapInArrow(_on_worker("_learn", task, own), _SCHEMA).persist()
    try:
        failed = F.min(F.when(F.col("error").isNotNull(), F.struct("part", "error")))
        found = _run_job(lambda: states.agg(F.max("part"), F.max(F.length("state")), failed).first())
        if found[2] is not None:
            _raise(found[2]["error"])
        if found[0] is None:
            return None
        fan_in = max(2, min(32, _GROUP_BYTES // found[1]))
        merged = _merge_states(
            states, found[0] + 1, fan_in, _on_worker("_merge", dumps(_merge_options(when)), own)
        )
        [last] = _run_job(lambda: merged.select("state", "error").collect())
    finally:
        states.unpersist()
    if last["error"] is not None:
        _raise(last["error"])
    return loads(last["state"], classes=own)


def _with_first_rows(rows: DataFrame, columns: dict[str, Any], selector: Any, classes: Any) -> Any:
    """Return an unfitted selector with the settings that the first rows determine; None if df is empty."""
    if not selector._n_first:
        return selector
    import pyarrow as pa

    first = _run_job(lambda: rows.head(selector._n_first))
    if not first:
        return None
    values: dict[str, Any] = {name: [row[name] for row in first] for name in rows.columns}
    if columns["vector"]:
        name = columns["features"][0]
        values[name] = _vectors_to_arrow(values[name])
    for X, y, weights in _batches(pa.RecordBatch.from_pydict(values), {**columns, "single": False}):
        selector.partial_fit(X, y, classes, weights)
    return selector.clone_unfitted()


def _vectors_to_arrow(vectors: list[Any]) -> Any:
    import pyarrow as pa
    from pyspark.ml.linalg import VectorUDT

    parts = {
        "type": pa.int8(),
        "size": pa.int32(),
        "indices": pa.list_(pa.int32()),
        "values": pa.list_(pa.float64()),
    }
    to_parts = VectorUDT().serialize
    rows = [None if v is None else dict(zip(parts, to_parts(v), strict=True)) for v in vectors]
    return pa.array(rows, pa.struct(list(parts.items())))


def _merge_states(states: DataFrame, n_parts: int, fan_in: int, merge: Any) -> DataFrame:
    """Merge neighbours, `fan_in` at a time, until one state is left."""
    from pyspark.sql import functions as F

    while n_parts > 1:
        n_parts = -(-n_parts // fan_in)
        states = states.select(F.expr(f"int(part div {fan_in})").alias("group"), "part", "state", "error")
        if hasattr(states, "repartitionById"):  # Spark 4.1: each group to a worker of its own
            states = states.repartitionById(n_parts, "group")
        else:
            states = states.repartition(n_parts, "group")
        states = states.mapInArrow(merge, _SCHEMA)
    return states


def _foreign_class(selector: Any) -> tuple[type, ...]:
    """Return the class of a selector from outside Tamis, which is sent with the job."""
    return () if type(selector).__module__.startswith("tamis.") else (type(selector),)


def _run_job(act: Callable[[], Any]) -> Any:
    """Run a job; if the Python of the workers makes it fail, raise an error that explains it."""
    try:
        return act()
    except Exception as error:  # Spark's own, or one of its Java
        if (why := _python_problem(str(error))) is None:
            raise
    raise RuntimeError(
        f"{why}: set PYSPARK_PYTHON to one that has the packages of this program, on every machine."
    )


def _python_problem(text: str) -> str | None:
    if "PYTHON_VERSION_MISMATCH" in text:
        return "The workers run another Python than this program, which is {}.{}".format(
            *sys.version_info[:2]
        )
    if (found := re.search(r"No module named '([\w.]+)'", text)) is not None:
        return f"The Python of a worker has no package {found[1]!r}"
    if (found := re.search(r'Cannot run program "([^"]+)"', text)) is not None:
        return f"A worker cannot start {found[1]!r} as its Python"
    return None


def _raise(error: str) -> NoReturn:
    kind, _, text = error.partition(": ")
    raise {"DataError": DataError, "TypeError": TypeError, "ValueError": ValueError}.get(kind, RuntimeError)(
        text
    )


# -- on the workers -----------------------------------------------------------------------------------------


def _on_worker(verb: str, task: bytes, own: tuple[type, ...]) -> Callable[[Any], Iterator[Any]]:
    """Return the function for the workers. It is sent by value, so that it can report a missing Tamis."""
    version = tamis.__version__

    def run(batches):  # type: ignore[no-untyped-def]  # a name of this module would be looked up there
        try:
            import tamis
            from tamis.adapters import spark

            if tamis.__version__ != version:
                raise ImportError(f"it has {tamis.__version__}, this program {version}")
        except ImportError as error:
            import sys

            import pyarrow as pa
            from pyspark import TaskContext

            said = (
                f"RuntimeError: A worker's Python, {sys.executable}, cannot use tamis ({error}): install it there, or"
                " set PYSPARK_PYTHON to one that has the packages of this program, on every machine."
            )
            part = pa.array([TaskContext.get().partitionId()], pa.int32())
            row = [part, pa.array([None], pa.binary()), pa.array([said])]
            yield pa.RecordBatch.from_arrays(row, ["part", "state", "error"])
        else:
            yield from getattr(spark, verb)(batches, task, own)

    return run


def _learn(batches: Iterator[Any], task: bytes, own: tuple[type, ...]) -> Iterator[Any]:
    """Learn from a partition; yield its number and its state, or the error."""
    from pyspark import TaskContext

    given = loads(task, classes=own)
    selector, part, some = given["selector"], TaskContext.get().partitionId(), False
    try:
        for batch in batches:
            for X, y, weights in _batches(batch, given):
                with _compiling():
                    selector.partial_fit(X, y, given["classes"], weights)
                some = True
    except (TamisError, ValueError, TypeError) as error:
        yield _row(part, None, f"{_kind(error)}: Partition {part}: {error}")
        return
    if some:
        yield _row(part, dumps(selector))


def _merge(batches: Iterator[Any], task: bytes, own: tuple[type, ...]) -> Iterator[Any]:
    """Merge the states of each group, in the order of their partitions; an error is handed on."""
    how = loads(task)
    groups: dict[int, list[tuple[int, bytes, str]]] = defaultdict(list)
    for batch in batches:
        for group, *state in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            groups[group].append(tuple(state))
    for group in sorted(groups):
        parts = sorted(groups.pop(group))
        errors = [error for _, _, error in parts if error is not None]
        try:
            if not errors:
                merged = merge_tree((loads(state, classes=own) for _, state, _ in parts), **how)
                yield _row(group, dumps(merged))
                continue
        except (TamisError, ValueError, TypeError) as error:
            errors = [f"{_kind(error)}: Partitions do not go together: {error}"]
        yield _row(group, None, errors[0])


def _kind(error: Exception) -> str:
    return next(
        kind.__name__ for kind in (DataError, ValueError, TypeError, Exception) if isinstance(error, kind)
    )


def _row(part: int, state: bytes | None, error: str | None = None) -> Any:
    import pyarrow as pa

    row = [pa.array([part], pa.int32()), pa.array([state], pa.binary()), pa.array([error], pa.string())]
    return pa.RecordBatch.from_arrays(row, ["part", "state", "error"])


_has_compiled = False


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Serialize the first compilation on a machine: later processes find the kernels in the cache."""
    global _has_compiled
    if _has_compiled or (folder := _cache_folder()) is None:
        yield
    else:
        import fcntl

        if not os.access(Path(tamis.__file__).parent, os.W_OK):  # so no cache can be written there
            os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    _has_compiled = True


def _cache_folder() -> Path | None:
    """Return a folder shared by this user's processes only, because cached code is executed."""
    if sys.platform == "win32":
        return None
    folder = Path(tempfile.gettempdir(), f"tamis-{tamis.__version__}-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    return (
        folder
        if stat.S_ISDIR(found.st_mode) and (found.st_uid, found.st_mode & 0o077) == (os.getuid(), 0)
        else None
    )


def _batches(batch: Any, columns: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Cut an Arrow batch into rows, labels and weights that selectors take."""
    if not batch.num_rows:
        return
    first = batch.column(columns["features"][0])
    n_values = (
        len(first.field("values").flatten()) if columns["vector"] else len(columns["features"]) * len(first)
    )
    n_rows = max(1, len(first) * _MAX_VALUES // max(n_values, 1))
    for start in range(0, batch.num_rows, n_rows):
        piece = batch.slice(start, n_rows)
        y = _non_null(piece, columns["label"], "label")
        weight = columns["weight"]
        weights = None if weight is None else _number(_non_null(piece, weight, "weight")).to_numpy()
        X = _vectors(piece.column(columns["features"][0])) if columns["vector"] else _frame(piece, columns)
        yield X, _labels(y), weights


def _non_null(batch: Any, name: str, role: str) -> Any:
    column = batch.column(name)
    if column.null_count:
        raise DataError(
            f"Column {name!r}, the {role}, is null in {column.null_count} of {len(column)} rows: leave these out"
            f" before, by df.dropna(subset=[{name!r}])."
        )
    return column


def _labels(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        column = _number(column)
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy(zero_copy_only=False) if plain else np.array(column.to_pylist())


def _number(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(column, pa.float64(), safe=False)


def _frame(batch: Any, columns: dict[str, Any]) -> Any:
    """Return columns of numbers as an Arrow table of one type; null becomes NaN when it is read."""
    import pyarrow as pa

    found = [batch.column(name) for name in columns["features"]]
    return pa.Table.from_arrays(
        found if columns["single"] else [_number(c) for c in found], columns["features"]
    )


def _vectors(column: Any) -> Any:
    """Return a vector column as an array, or as CSR rows if one of the vectors is sparse."""
    import pyarrow.compute as pc

    if column.null_count:
        raise DataError(
            f"The vector column is null in {column.null_count} of {len(column)} rows: leave these out before, or give"
            " vectors of NaN."
        )
    kind, size, indices, values = (column.field(part) for part in ("type", "size", "indices", "values"))
    stored = values.flatten().to_numpy()
    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    dense = kind.to_numpy() == 1
    sizes = np.where(dense, lengths, size.fill_null(0).to_numpy())
    width = int(sizes[0])
    if (sizes != width).any():
        other = int(sizes[sizes != width][0])
        raise DataError(
            f"The vector column holds vectors of {width} entries and of {other}: give all the same."
        )
    if dense.all():
        return stored.reshape(-1, width)
    at, of_dense = np.empty(len(stored), np.int32), np.repeat(dense, lengths)
    at[of_dense] = np.tile(np.arange(width, dtype=np.int32), int(dense.sum()))
    at[~of_dense] = indices.flatten().to_numpy()
    return sp.csr_matrix((stored, at, np.r_[0, np.cumsum(lengths)]), shape=(len(column), width))
