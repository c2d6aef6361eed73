"""Conversion of rows and labels (a pair, a frame, dicts, batches) to a stream."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tamis._validation import as_table
from tamis.errors import DataError
from tamis.streams.datasets import list_datasets
from tamis.streams.frames import DictStream, FrameStream, is_frame
from tamis.streams.named_streams import list_streams
from tamis.streams.stream import ArrayStream, BatchStream, Stream


def as_stream(source: Any, label: str | int | tuple[Any, ...] | None = None) -> Stream:
    """Return a stream for any supported source of rows and labels.

    Parameters
    ----------
    source : Stream, pair (X, y), frame, or iterable
        A stream is returned unchanged. A frame (pandas, Polars, Arrow, LazyFrame, DuckDB relation) and an iterable of
        dicts or frames need `label`. Other iterables yield pairs (dict, label), like the data sets of River, or batches
        (X, y), like the DataLoader of PyTorch.
    label : str, int or tuple, optional
        Name of the label column, or its position if no column has that name; negative positions count from the end.

    Raises
    ------
    TypeError
        If the argument is none of these; for a path or a name, the message names the function that opens it.
    DataError
        If `label` is missing, is not a column, or is passed although the source contains labels.

    Examples
    --------
    >>> import numpy as np
    >>> as_stream((np.eye(3), [0, 1, 0])).n_rows
    3
    >>> as_stream([({"heat": 1.5}, "on"), ({"heat": 0.5}, "off")]).feature_names
    ['heat']
    """
    is_pair = isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], tuple)
    # A pair of dicts, or of (dict, label) pairs, is two rows.
    is_pair = is_pair and not all(isinstance(part, dict) for part in source)
    if label is not None and (isinstance(source, Stream) or is_pair):
        raise DataError(f"label={label!r} is for a frame or dicts, but these rows have labels: omit it.")
    if isinstance(source, Stream):
        return source
    if is_pair:
        X, y = source
        table = as_table(X)
        if table is None or len(table.numeric) == len(table.own_names):
            return ArrayStream(X if table is None else table, y)
        return FrameStream(table, y=y)
    if isinstance(source, str | bytes | Path):
        raise TypeError(_opened_by(source))
    table = as_table(source)
    if table is not None or is_frame(source):
        if label is None:
            raise DataError('The frame needs the name of its label column: pass label="...".')
        return FrameStream(source if table is None else table, label)
    # Iterating over an unsupported table would yield its names or rows.
    is_table = hasattr(source, "shape") or hasattr(type(source), "columns")
    if isinstance(source, Iterable) and not is_table and not isinstance(source, dict):
        return DictStream(source, label) if label is not None or _has_names(source) else BatchStream(source)
    kind = "None" if source is None else f"a {type(source).__name__}"
    raise TypeError(
        f"A stream is a Stream, a pair (X, y), a frame with label=, or an iterable, got {kind}: pass the pair (X, y),"
        " or open a file with tamis.open_file."
    )


def _has_names(source: Iterable[Any]) -> bool:
    """Return whether rows are dicts or in frames, without consuming one from an iterator."""
    if type(source).__module__.startswith("river."):
        return True
    first = source[0] if isinstance(source, list | tuple) and source else None
    first = first[0] if isinstance(first, tuple) and first else first
    return isinstance(first, dict) or is_frame(first)


def _opened_by(name: Any) -> str:
    """Return the call to use instead of a name."""
    if isinstance(name, str):
        for function, rows in (("load_dataset", list_datasets()), ("load_stream", list_streams())):
            if any(str(row["name"]).lower() == name.lower() for row in rows):
                return f"{name!r} is a name, not rows: pass tamis.{function}({name!r})."
    if Path(name if not isinstance(name, bytes) else name.decode()).exists():
        return f"{str(name)!r} is a file: pass tamis.open_file({str(name)!r}, label=...)."
    return (
        f"{str(name)!r} is neither a file nor the name of a data set: give the path of a file to tamis.open_file, or a"
        " name of tamis.streams.list_datasets() to tamis.load_dataset."
    )
