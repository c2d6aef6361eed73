"""Arrow batches as rows, labels and weights that selectors accept.

Files that the workers read themselves: Parquet by row groups, CSV file by file.

A partition is a list of shares (path, i, k): the i-th of k equal runs of the row groups of a file. It depends on the
files alone, not on the cluster, so the same files give the same bytes everywhere. The driver reads no row but those
of the first file that are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import plain_numbers, short_repr
from tamis.errors import DataError
from tamis.streams.files import SUFFIXES, open_table
from tamis.streams.tables import Table

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


Share = tuple[str, int, int]

_PART_BYTES = 32 << 20  # of files, in a partition
_MOST_PARTS = 1000  # more states cost more to merge than they save in balance


def list_files(source: Any) -> list[tuple[str, int]]:
    """Return the data files of a path or of a list of paths, and their sizes, sorted within each folder.

    Local files have absolute paths, since workers have another working directory.
    """
    from pyarrow import fs

    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    result: list[tuple[str, int]] = []
    for path in (os.fspath(one) for one in paths):
        system, inner = _file_system(path)
        start = path.removesuffix(inner) if "://" in path else ""
        info = system.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise DataError(f"No file or folder {path!r}: check the path.")
        infos = [info]
        if info.type == fs.FileType.Directory:
            infos = system.get_file_info(fs.FileSelector(inner, recursive=True))
            if any(one.base_name == "_delta_log" for one in infos):
                raise DataError(
                    f"{path!r} is a Delta table, whose folder also contains files of earlier versions: give the list"
                    " that DeltaTable(path).file_uris() returns."
                )
        kept = [one for one in infos if one.type == fs.FileType.File and not _is_hidden(one.path, inner)]
        result += sorted((start + one.path, one.size) for one in kept if one.size)
    if not result:
        raise DataError(f"{short_repr(source)} contains no data files: name a folder or files of rows.")
    kinds = {_kind(path) for path, _ in result}
    if len(kinds) > 1:
        raise DataError(
            f"The files have several formats ({', '.join(sorted(kinds))}): pass files of one format."
        )
    return result


def _file_system(path: str) -> tuple[Any, str]:
    from pyarrow import fs

    if "://" in path:
        return fs.FileSystem.from_uri(path)
    return fs.LocalFileSystem(), os.path.abspath(path)


def _is_hidden(path: str, folder: str) -> bool:
    """Return whether a name below the folder begins as those of Spark's own files do."""
    return any(name.startswith(("_", ".")) for name in path.removeprefix(folder).split("/"))


def _kind(path: str) -> str:
    stem, suffix = os.path.splitext(path)
    if suffix in (".gz", ".bz2", ".xz", ".zst"):
        suffix = os.path.splitext(stem)[1]
    if (kind := SUFFIXES.get(suffix.lower())) not in ("parquet", "csv"):
        raise DataError(
            f"{path!r} is neither Parquet nor CSV by its name: convert it, or give a DataFrame of Spark."
        )
    return kind


def split_files(files: Sequence[tuple[str, int]]) -> list[list[Share]]:
    """Return the shares of each partition: runs of neighbouring files, and of row groups of large ones."""
    total = sum(size for _, size in files)
    most = max(_PART_BYTES, total / _MOST_PARTS)
    parts: list[list[Share]] = [[]]
    room = most
    for path, size in files:
        n_shares = max(1, round(size / most)) if _kind(path) == "parquet" else 1
        for share in range(n_shares):
            if parts[-1] and size / n_shares > room:
                parts.append([])
                room = most
            parts[-1].append((path, share, n_shares))
            room -= size / n_shares
    return parts


def arrow_schema(path: str) -> dict[str, Any]:
    """Return the Arrow type of each column of a file; of a CSV file, those of its first block."""
    if _kind(path) == "csv":
        return _csv(path).types()
    with _parquet(path) as file:
        schema = file.schema_arrow
        return dict(zip(schema.names, schema.types, strict=True))


def needed_columns(columns: dict[str, Any]) -> list[str]:
    """Return the names of label, features and weight."""
    return [columns["label"], *columns["features"], *([columns["weight"]] if columns["weight"] else [])]


def read_part(part: Sequence[Share], columns: dict[str, Any]) -> Iterator[Any]:
    """Yield the needed columns of the rows of a partition as Arrow batches."""
    names, may_lack = needed_columns(columns), columns.get("may_lack", False)
    for path, share, n_shares in part:
        if _kind(path) == "csv":
            yield from _read_csv(path, names)
        else:
            yield from _read_parquet(path, names, share, n_shares, may_lack=may_lack)


def first_rows(parts: Sequence[Sequence[Share]], columns: dict[str, Any], n_rows: int) -> Iterator[Any]:
    """Yield Arrow batches of the first rows."""
    for part in parts:
        for batch in read_part(part, columns):
            yield batch.slice(0, n_rows)
            n_rows -= batch.num_rows
            if n_rows <= 0:
                return


def _parquet(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    system, inner = _file_system(path)
    try:
        return pq.ParquetFile(system.open_input_file(inner))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path!r} cannot be read as Parquet ({error}).") from None


def _read_parquet(path: str, names: list[str], share: int, n_shares: int, *, may_lack: bool) -> Iterator[Any]:
    n_rows = max(16, MAX_VALUES // len(names))
    with _parquet(path) as file:
        own = set(file.schema_arrow.names)
        if not may_lack:
            _check_names(path, names, own)
        n = file.num_row_groups
        groups = list(range(n * share // n_shares, n * (share + 1) // n_shares))
        columns = [name for name in names if name in own]
        if groups:
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=columns, use_threads=False):
                yield batch if len(columns) == len(names) else _with_nulls(batch, names)


def _with_nulls(batch: Any, names: list[str]) -> Any:
    """Return the batch with null in the columns that it lacks."""
    import pyarrow as pa

    nulls = pa.nulls(batch.num_rows, pa.float32())
    own = set(batch.schema.names)
    return pa.RecordBatch.from_arrays([batch.column(n) if n in own else nulls for n in names], names)


def _read_csv(path: str, names: list[str]) -> Iterator[Any]:
    import pyarrow as pa

    table = _csv(path)
    result = table.names()
    _check_names(path, names, result)
    table.label, at = names[0], [result.index(name) for name in names]
    for columns, _ in table.blocks():
        needed = [columns[i] for i in at]
        for name, column in zip(names[1:], needed[1:], strict=True):
            kind = column.type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
                raise DataError(f"{path!r} has {kind} values in column {name!r}, not numbers: encode them.")
        yield pa.RecordBatch.from_arrays(needed, names)


def _csv(path: str) -> Table:
    if "://" in path and not path.startswith("file://"):
        raise DataError(
            f"{path!r} is a CSV file on a remote store: convert it to Parquet, or mount the store."
        )
    table = open_table(path.removeprefix("file://"))
    assert isinstance(table, Table)  # svmlight alone is none
    return table


def _check_names(path: str, names: list[str], own: Iterable[str]) -> None:
    known = set(own)
    if lacking := [name for name in names if name not in known]:
        raise DataError(f"{path!r} has no column {lacking[0]!r}, which the first file has.")
