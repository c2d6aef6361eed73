"""Arrow batches as rows, labels and weights that selectors accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import plain_numbers
from tamis.errors import DataError

MAX_VALUES = 4_000_000  # that a worker converts to an array at once


def batches(batch: Any, columns: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Cut an Arrow batch into rows, labels and weights that selectors take."""
    if not batch.num_rows:
        return
    first = batch.column(columns["features"][0])
    n_values = (
        len(first.field("values").flatten()) if columns["vector"] else len(columns["features"]) * len(first)
    )
    n_rows = max(1, len(first) * MAX_VALUES // max(n_values, 1))
    for start in range(0, batch.num_rows, n_rows):
        piece = batch.slice(start, n_rows)
        y = labels_of(piece, columns["label"])
        weight = columns["weight"]
        weights = None if weight is None else _number(_non_null(piece, weight, "weight")).to_numpy()
        X = _vectors(piece.column(columns["features"][0])) if columns["vector"] else _frame(piece, columns)
        yield X, y, weights


def _non_null(batch: Any, name: str, role: str) -> Any:
    column = batch.column(name)
    if column.null_count:
        raise DataError(
            f"Column {name!r}, the {role}, is null in {column.null_count} of {len(column)} rows: drop these"
            f" first with df.dropna(subset=[{name!r}])."
        )
    return column


def labels_of(batch: Any, name: str) -> Any:
    """Return the labels of an Arrow batch."""
    return _labels(_non_null(batch, name, "label"))


def _labels(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        return plain_numbers(column.to_pylist())
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy(zero_copy_only=False) if plain else np.array(column.to_pylist())


def _number(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(column, pa.float64(), safe=False)


def _frame(batch: Any, columns: dict[str, Any]) -> Any:
    """Return columns of numbers as an Arrow table of one type; null becomes NaN when it is read."""
    import pyarrow as pa

    items = [batch.column(name) for name in columns["features"]]
    return pa.Table.from_arrays(
        items if columns["single"] else [_number(c) for c in items], columns["features"]
    )


def _vectors(column: Any) -> Any:
    """Return a vector column as an array, or as CSR rows if one of the vectors is sparse."""
    import pyarrow.compute as pc

    if column.null_count:
        raise DataError(
            f"The vector column is null in {column.null_count} of {len(column)} rows: drop these first, or pass"
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
            f"The vector column contains vectors of {width} and of {other} entries: give all of them the same length."
        )
    if dense.all():
        return stored.reshape(-1, width)
    at, of_dense = np.empty(len(stored), np.int32), np.repeat(dense, lengths)
    at[of_dense] = np.tile(np.arange(width, dtype=np.int32), int(dense.sum()))
    at[~of_dense] = indices.flatten().to_numpy()
    return sp.csr_matrix((stored, at, np.r_[0, np.cumsum(lengths)]), shape=(len(column), width))


def vectors_to_arrow(vectors: list[Any]) -> Any:
    """Return vectors of pyspark.ml as the Arrow array in which Spark hands them over."""
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
