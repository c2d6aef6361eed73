"""What runs on the workers: learning from a partition, and merging the states of partitions."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import tamis
from tamis.adapters.spark.arrow_rows import batches, labels_of, read_part
from tamis.errors import DataError, TamisError
from tamis.merging import merge_tree
from tamis.persistence import dumps, loads

SCHEMA = "part int, state binary, error string"


def on_worker(verb: str, task: bytes, own: tuple[type, ...]) -> Callable[[Any], Iterator[Any]]:
    """Return the function for the workers. It is sent by value, so that it can report a missing Tamis."""
    version = tamis.__version__

    def run(arrow):  # type: ignore[no-untyped-def]  # a name of this module would be looked up there
        try:
            import tamis
            from tamis.adapters.spark import workers

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
            yield from getattr(workers, verb)(arrow, task, own)

    return run


def _output(make: Callable[[Any, int, dict[str, Any]], Any]) -> Callable[..., Iterator[Any]]:
    """Return the function for a partition that yields its number and what `make` returns, or the error."""

    @functools.wraps(make)
    def run(arrow: Iterator[Any], task: bytes, own: tuple[type, ...]) -> Iterator[Any]:
        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        try:
            output = make(arrow, part, loads(task, classes=own))
        except (TamisError, ValueError, TypeError) as error:
            yield state_row(part, None, f"{_kind(error)}: Partition {part}: {error}")
        else:
            if output is not None:
                yield state_row(part, dumps(output))

    return run


@_output
def learn(arrow: Iterator[Any], part: int, spec: dict[str, Any]) -> Any:
    """Return the selector after learning from a partition; None without rows."""
    selector, some = spec["selector"], False
    for X, y, weights in rows_of(arrow, part, spec):
        with _compiling():
            selector.partial_fit(X, y, spec["classes"], weights)
        some = True
    return selector if some else None


@_output
def count(arrow: Iterator[Any], part: int, spec: dict[str, Any]) -> Any:
    """Return the number of rows of each label in a partition."""
    counts = Counter[Any]()
    for batch in arrow_of(arrow, part, {**spec, "features": [], "weight": None}):
        counts.update(labels_of(batch, spec["label"]).tolist())
    return list(counts.items()) or None


@_output
def sample(arrow: Iterator[Any], part: int, spec: dict[str, Any]) -> Any:
    """Return the sampled rows of a partition: of each class every k-th, counted over all partitions."""
    total, wanted, rank = dict(spec["total"]), dict(spec["wanted"]), dict(spec["before"].get(part, ()))
    Xs, ys = [], []
    for X, y, _ in rows_of(arrow, part, spec):
        keep = np.zeros(len(y), np.bool_)
        for label in np.unique(y).tolist():
            at = np.flatnonzero(y == label)
            first, n, m = rank.get(label, 0), total[label], wanted[label]
            ranks = np.arange(first, first + len(at))
            keep[at] = (ranks + 1) * m // n > ranks * m // n
            rank[label] = first + len(at)
        if keep.any():
            rows = X.to_pandas().to_numpy() if hasattr(X, "to_pandas") else X
            rows = rows[keep]
            Xs.append(np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64))
            ys.append(y[keep])
    return (np.concatenate(Xs), np.concatenate(ys)) if Xs else None


def arrow_of(arrow: Iterator[Any], part: int, columns: dict[str, Any]) -> Iterator[Any]:
    """Return the Arrow batches of a partition: those received, or those of its files."""
    if "parts" not in columns:
        return arrow
    for _ in arrow:  # Spark sends the number of the partition
        pass
    return read_part(columns["parts"][part], columns)


def rows_of(arrow: Iterator[Any], part: int, columns: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield features, labels and weights of a partition."""
    for batch in arrow_of(arrow, part, columns):
        yield from batches(batch, columns)


def merge(arrow: Iterator[Any], task: bytes, own: tuple[type, ...]) -> Iterator[Any]:
    """Merge the states of each group, in the order of their partitions; an error is handed on."""
    how = loads(task)
    groups: dict[int, list[tuple[int, bytes, str]]] = defaultdict(list)
    for batch in arrow:
        for group, *state in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            groups[group].append(tuple(state))
    for group in sorted(groups):
        parts = sorted(groups.pop(group))
        errors = [error for _, _, error in parts if error is not None]
        try:
            if not errors:
                merged = merge_tree((loads(state, classes=own) for _, state, _ in parts), **how)
                yield state_row(group, dumps(merged))
                continue
        except (TamisError, ValueError, TypeError) as error:
            errors = [f"{_kind(error)}: Partitions do not go together: {error}"]
        yield state_row(group, None, errors[0])


def _kind(error: Exception) -> str:
    return next(
        kind.__name__ for kind in (DataError, ValueError, TypeError, Exception) if isinstance(error, kind)
    )


def state_row(part: int, state: bytes | None, error: str | None = None) -> Any:
    """Return a row of `SCHEMA` as an Arrow batch."""
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
        status = folder.lstat()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode) and (status.st_uid, status.st_mode & 0o077) == (os.getuid(), 0):
        return folder
    return None
