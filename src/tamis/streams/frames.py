"""Rows of frames and rows as dicts: columns by name, categories as codes, the label among the columns.

Text and categories become codes 0, 1, 2, ... in order of first appearance (or as declared), as in files; a missing
category is a separate one. Dates and times become seconds since 1970 (in UTC, if they have no time zone), times of day
seconds since midnight, durations seconds, false and true 0 and 1, missing numbers NaN. The kind of a column is that of
its first value.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from tamis._validation import Array, Table, as_array, as_table, is_integer, is_missing
from tamis.errors import DataError, StreamError
from tamis.streams.encode import TableEncoder
from tamis.streams.stream import ArrayStream, Batch, Stream

_BLOCK = 1000  # rows


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame, in memory or lazy, of a library supported by narwhals."""
    return as_table(value) is not None or isinstance(nw.from_native(value, pass_through=True), nw.LazyFrame)


def table_of(value: Any) -> Table | None:
    """Return a frame of any library, in memory or lazy, as a table; None for anything else."""
    if (table := as_table(value)) is None:
        lazy = nw.from_native(value, pass_through=True)
        table = as_table(lazy.collect().to_native()) if isinstance(lazy, nw.LazyFrame) else None
    return table


class FrameStream(ArrayStream):
    """Rows of a pandas, Polars or Arrow frame, a LazyFrame or a DuckDB relation.

    Parameters
    ----------
    frame : frame of shape (n_rows, n_features)
        A lazy frame is computed, so its rows must fit in memory.
    label : str, int or tuple, optional
        Name of the label column, or its position if no column has that name; negative positions count from the end. A
        column whose name is not a string, such as 4 or a tuple, is also found by the string.
    y : array-like of shape (n_rows,), optional
        The labels, if they are not a column.

    Raises
    ------
    DataError
        If the label column does not exist, or a column contains neither numbers, text nor times; the message names it.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.5, None], "colour": ["red", "blue", "red"], "sold": [0, 1, 1]})
    >>> stream = FrameStream(frame, "sold")
    >>> stream.take(3)[0].tolist(), stream.categories
    ([[1.0, 0.0], [2.5, 1.0], [nan, 0.0]], {'colour': ['red', 'blue']})
    """

    def __init__(
        self, frame: Any, label: str | int | tuple[Any, ...] | None = None, *, y: Any = None
    ) -> None:
        table = table_of(frame)
        assert table is not None
        names, at = table.own_names, -1
        if label is not None:
            at = _find_label(label, names)
            y, label = table.column(at).to_numpy(), table.texts[at]
        if len(names) == (label is not None):
            raise DataError(f"The frame has no column besides the label {label!r}: add the features.")
        self._label, table = label, table.take(j for j in range(len(names)) if j != at)
        encoder = TableEncoder()
        super().__init__(encoder.encode(table, 1), y, table.texts)
        self.categories: dict[str, list[Any]] = encoder.categories
        self.categorical = [j for j, name in enumerate(table.texts) if name in self.categories]

    def describe(self) -> dict[str, Any]:
        """Return the label, the shape of the rows and a checksum of all of them."""
        return super().describe() | {"kind": "frame", "label": self._label}


class DictStream(Stream):
    """Rows that are dicts, or pairs of a dict and its label, like the data sets of River; or frames of some rows each.

    Parameters
    ----------
    source : iterable of dict, of (dict, label), or of frames with the same columns
        Read again for each pass; an iterator, such as the chunks of ``pandas.read_csv(chunksize=)``, can be read only
        once.
    label : str, int or tuple, optional
        Key or column of the label, unless it is passed separately; found as for :class:`FrameStream`.

    Attributes
    ----------
    feature_names : list of str
        The keys of the first row, or the columns. A key that is absent from a later row is a missing value.
    categories : dict of str to list
        The categories of the columns whose first value is text, in the order of their codes.

    Notes
    -----
    Memory: a block of 1,000 rows, or a frame. The first row is read immediately, and further ones until each of its
    keys has a value, up to a block.

    Examples
    --------
    >>> rows = [{"size": 1.5, "colour": "red", "sold": 1}, {"size": 2.0, "colour": "blue", "sold": 0}]
    >>> stream = DictStream(rows, "sold")
    >>> X, y = stream.take(2)
    >>> X.tolist(), y.tolist(), stream.feature_names, stream.categorical
    ([[1.5, 0.0], [2.0, 1.0]], [1, 0], ['size', 'colour'], [1])
    """

    def __init__(self, source: Iterable[Any], label: str | int | tuple[Any, ...] | None = None) -> None:
        self._source, self._label = source, label
        self._once, self._spent = iter(source) is source, False
        rows = iter(source)
        head = [*itertools.islice(rows, 1)]
        if not head:
            raise StreamError("The stream has no rows: check its source.")
        first = head[0][0] if isinstance(head[0], tuple) and head[0] else head[0]
        self._in_frames = not isinstance(first, dict) and table_of(first) is not None
        if label is not None and first is head[0]:
            self._label = _label_name(label, first if isinstance(first, dict) else table_of(first))
        x, _ = self._split(head[0])
        self._keys = lacking = list(x.own_names if self._in_frames else x)
        # What a column contains is unknown until it has a value.
        while not self._in_frames and len(head) <= _BLOCK:
            lacking = [key for key in lacking if is_missing(self._split(head[-1])[0].get(key))]
            if not lacking or not (more := [*itertools.islice(rows, 1)]):
                break
            head += more
        if not self._keys:
            raise StreamError("The first row has no value besides its label: give rows with features.")
        self._rows = itertools.chain(head, rows) if self._once else None
        table, _ = next(self._tables(head))
        self.feature_names, self.n_features = table.texts, len(table.texts)
        self.n_rows = getattr(source, "n_samples", None)  # defined by River's data sets
        self.categorical = table.categorical
        self.categories: dict[str, list[Any]] = {self.feature_names[j]: [] for j in self.categorical}

    def describe(self) -> dict[str, Any]:
        """Return the kind of the source; its contents are not known in advance."""
        label = None if self._label is None else str(self._label)
        return {"kind": "dicts", "source": type(self._source).__name__, "label": label}

    def _split(self, item: Any) -> tuple[Any, Any]:
        """Return the features of a row and its label, or the table of a frame and its labels."""
        is_pair = isinstance(item, tuple) and len(item) == 2
        features = item[0] if is_pair else item
        x: Any = features if isinstance(features, dict) else table_of(features)
        if x is None or isinstance(x, dict) is self._in_frames:
            wanted = "frame, as the first one" if self._in_frames else "dict or a pair (dict, label)"
            raise StreamError(f"A row must be a {wanted}, got a {type(features).__name__}.")
        if is_pair:
            return x, item[1]
        if self._label is None:
            kind = "frames" if self._in_frames else "dicts"
            raise StreamError(f"The rows are {kind} without labels: name the key of the label with label=.")
        if self._label not in (x.own_names if self._in_frames else x):
            raise StreamError(f"A row has no key {self._label!r} for its label: drop it, or add the label.")
        if not self._in_frames:
            return {key: value for key, value in x.items() if key != self._label}, x[self._label]
        at = x.own_names.index(self._label)
        return x.take(j for j in range(len(x.own_names)) if j != at), x.column(at).to_numpy()

    def _tables(self, rows: Iterable[Any]) -> Iterator[tuple[Table, Array]]:
        """Yield the features of a block of rows, or of a frame, and their labels."""
        rows, row, known = iter(rows), 1, set(self._keys)
        while part := [
            self._split(item) for item in itertools.islice(rows, 1 if self._in_frames else _BLOCK)
        ]:
            for i, (x, _) in enumerate(part, row):
                names = dict.fromkeys(x.own_names) if self._in_frames else x
                if not names.keys() <= known:
                    new = next(name for name in names if name not in known)
                    raise StreamError(
                        f"Row {i} has a key {new!r} that is absent from the first row: give all keys in the first row,"
                        " or use tamis.ByName for features that appear and disappear."
                    )
                if self._in_frames and (lost := known.difference(names)):
                    raise StreamError(
                        f"The frame that begins with row {i} has no column {min(lost, key=str)!r}: pass frames of the"
                        " same columns."
                    )
            if self._in_frames:
                table, y = part[0]
                table, labels = table.take(map(table.own_names.index, self._keys)), as_array("The labels", y)
            else:
                columns = map(list, zip(*[[*map(x.get, self._keys)] for x, _ in part], strict=True))
                table = Table(dict(zip(self._keys, columns, strict=True)))
                labels = _labels([label for _, label in part])
            if len(table):
                yield table, labels
            row += len(table)

    def _all_blocks(self) -> Iterator[Batch]:
        if self._once and self._spent:
            raise StreamError("These rows have been read already: give a list of them, or a new iterator.")
        self._spent = True
        encoder, n_rows = TableEncoder(), 0
        for table, y in self._tables(self._source if self._rows is None else self._rows):
            X = encoder.encode(table, n_rows + 1)
            n_rows += len(X)
            self.categories = encoder.categories
            self.categorical = sorted({*self.categorical, *map(table.texts.index, self.categories)})
            yield X, y


def _labels(values: list[Any]) -> Array:
    """Return labels as an array that keeps labels of different types, and large integers, distinct."""
    kinds = {type(value) for value in values}
    if len(kinds) > 1 and not (kinds <= {int, float} and all(abs(value) <= 1 << 53 for value in values)):
        return np.fromiter(values, dtype=object, count=len(values))
    return as_array("The labels", values)


def _label_name(label: Any, row: Any) -> Any:
    names = list(row) if isinstance(row, dict) else row.own_names
    return names[_find_label(label, names)]


def _find_label(label: Any, names: list[Any]) -> int:
    """Return the position of the label column, given by its name, the string of its name, or its position."""
    texts = [str(name) for name in names]
    if label in names:
        return names.index(label)
    if label in texts:
        return texts.index(label)
    if is_integer(label) and -len(names) <= label < len(names):
        return int(label) % len(names)
    near = difflib.get_close_matches(str(label), texts, n=1)
    shown = [names[texts.index(near[0])]] if near else names[:20]
    hint = f"did you mean {shown[0]!r}?" if near else f"choose one of {', '.join(map(repr, shown))}."
    raise DataError(f"label={label!r} is not a column: {hint}")
