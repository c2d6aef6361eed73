"""Selectors learn from the rows of a cluster in place; only states are sent, not rows.

Each partition is learned from by a selector of its own, in its worker. The states are merged by a tree, on the workers
too, neighbours with neighbours; one state reaches the driver. Selectors that bin values receive the bin edges of the
first rows beforehand, so that all partitions use the same bins, and the merged state is as large as that of one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from tamis._validation import as_classes, short_repr
from tamis._validation.parameters import check_parameters
from tamis.adapters.spark.jobs import foreign_class, learn_partitions, merge_options
from tamis.adapters.spark.sources import FrameRows, column_of, is_vector, kind_of, open_rows
from tamis.base import RowSelector
from tamis.catalog import CATALOG
from tamis.errors import CheckpointError, DataError, StreamError
from tamis.merging import merge_tree
from tamis.persistence import load, save

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def screen(
    df: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    label: str,
    selector: Any,
    *,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    classes: Any = None,
    when: str | None = None,
) -> Any:
    """Learn from files, or from the rows of a DataFrame, on the workers of a cluster, and merge the results.

    Parameters
    ----------
    df : path, list of paths or pyspark.sql.DataFrame
        Parquet or CSV files, or a folder of them, which the workers read at less than half of the cost of a DataFrame.
        Remote stores are named by a URI (``s3://...``); every worker must be able to open the paths. The order of rows
        is that of the list, sorted by name within a folder.
    label : str
        Column of the labels: text, whole numbers or booleans; numbers for a regression. It must not contain null.
    selector : RowSelector
        A selector that can be merged (see the catalogue). It is not modified: a clone learns.
    features : str or list of str, optional
        Columns of numbers (null and NaN are missing), or one vector column of pyspark.ml, dense, sparse or both. By
        default all columns but `label` and `weight`.
    weight : str, optional
        Column of the weights of the rows, not negative.
    classes : list, optional
        Labels known in advance, in the order that `classes_` should have.
    when : {"after"}, optional
        Required if rows fade. It states that the partitions contain the rows in order.

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
    >>> def screen_clicks():
    ...     return screen("clicks", "clicked", tamis.FisherScore(20)).get_feature_names_out()
    """
    _check_selector(selector, classes, when)
    return learned_from(open_rows(df, label, features, weight), clone(selector), classes, when)


def learned_from(rows: Any, selector: Any, classes: Any, when: str | None = None) -> Any:
    """Return the selector that learned from all rows; raise if there are none."""
    learned = learn_partitions(rows, selector, classes, when)
    if learned is None:
        raise DataError("df has no rows: there is nothing to learn from.")
    return learned


def transform(df: DataFrame, selector: Any, *, features: str | None = None) -> DataFrame:
    """Drop the columns, or the entries of a vector column, that are not selected.

    No data passes through Python: Spark does not even read columns that are left out, and slices vectors itself.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        It may be a streaming one. Columns unknown to the selector are kept.
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
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    if (names := vars(selector).get("feature_names_in_")) is not None:
        for name in names[kept]:
            kind_of("df", kinds, name, "features")
        dropped = set(names[~kept])
        return df.select(*(column_of(c) for c in df.columns if c not in dropped))
    vectors = [field.name for field in df.schema.fields if is_vector(field.dataType)]
    if features is None and len(vectors) != 1:
        raise DataError(f"df has {len(vectors)} vector columns: name the one to slice in features=.")
    vector = vectors[0] if features is None else features
    kind_of("df", kinds, vector, "features")
    if not is_vector(df.schema[vector].dataType):
        raise DataError(f"Column {vector!r} is not a vector column, but the selector learned from one.")
    sliced = f"{vector}_selected"
    slicer = VectorSlicer(inputCol=vector, outputCol=sliced, indices=np.flatnonzero(kept).tolist())
    output = slicer.transform(df)
    return output.select(*(column_of(sliced).alias(c) if c == vector else column_of(c) for c in df.columns))


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
            raise AttributeError("selector_ is available after the first batch with rows.")
        return self._last["selector"]

    @property
    def batch_id_(self) -> int:
        """The last batch that was learned from."""
        if self._last is None:
            raise AttributeError("batch_id_ is available after the first batch.")
        return int(self._last["batch"])

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Learn from a batch, unless its state is in the folder."""
        if not self._is_next_batch(batch_id, _query_of(df)):
            return
        before = None if self._last is None else self._last["selector"]
        rows = FrameRows(df, self.label, self.features, self.weight)
        learned = learn_partitions(
            rows, clone(self.selector) if before is None else before, self.classes, "after"
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
                f"Cannot create the folder {str(self.folder)!r} ({error.strerror})."
            ) from None
        for torn in self.folder.glob(".batch-*.tmp"):  # of a process that was killed while it wrote
            torn.unlink(missing_ok=True)
        files = sorted(self.folder.glob("batch-*.tamis"))
        return load(files[-1], classes=foreign_class(self.selector)) if files else None

    def _is_next_batch(self, batch_id: int, query: str | None) -> bool:
        """Return whether a batch is the next one; False: it was learned from. Reject any other."""
        at = f"The query offers batch {batch_id}, but {str(self.folder)!r}"
        if self._last is None:
            if batch_id:
                raise StreamError(
                    f"{at} contains no state: pass the folder of the earlier batches, or start a query with a new"
                    " checkpointLocation."
                )
            return True
        if None not in (query, self._last["query"]) and query != self._last["query"]:
            raise StreamError(
                f"{at} contains the state of another query: use a separate folder for each query."
            )
        if batch_id not in (self.batch_id_, self.batch_id_ + 1):
            raise StreamError(
                f"{at} contains the state after batch {self.batch_id_}: use the folder and the"
                " checkpointLocation of the same run."
            )
        return bool(batch_id > self.batch_id_)


def _query_of(df: DataFrame) -> str | None:
    """Return the id of the query; None if Spark does not provide it."""
    with contextlib.suppress(Exception):  # Spark Connect has no context
        return df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    return None


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
            f"when must be 'after' or None, got {short_repr(when)}: Spark's partitions are consecutive."
        )
    if getattr(selector, "fade_per", "row") == "batch" and getattr(selector, "_factor", 1.0) != 1.0:
        raise ValueError(
            "fade_per='batch' counts calls, which depend on how Spark partitions the rows: choose fade_per='row'."
        )
    clone(selector).merge(clone(selector), **merge_options(when))  # says what it needs
    if classes is not None:
        as_classes(classes)
