"""Frames of any library as tables: their names, the kinds of their columns, and their values as an array.

Columns are taken by position, since names may be numbers, tuples or None. The kind of a column is a type of narwhals,
determined once for each type of a library: converting the type of every column of a wide frame takes longer than its
values.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from tamis._validation.arrays import Array, as_numbers, reject_non_number
from tamis._validation.values import is_missing
from tamis.errors import DataError

_TEXTS = (nw.String, nw.Categorical, nw.Enum)
_INTEGERS = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_PLAIN = {kind() for kind in (*_INTEGERS, nw.Float32, nw.Float64)}  # NumPy has the same types
_kinds: dict[tuple[str, Any], Any] = {}  # of the types seen so far


class Table:
    """A frame in memory, of any library.

    Parameters
    ----------
    native : pandas or Polars frame, Arrow table, other frame with `iloc`, or mapping of names to lists of equal length

    Attributes
    ----------
    own_names : list
        The names that the caller gave: strings, numbers, tuples or None.
    """

    def __init__(self, native: Any) -> None:
        self.native = native
        self._types: list[Any]
        if isinstance(native, dict):
            self._library, self.own_names = "lists", list(native)
            self._types = [nw.Object] * len(native)
        elif hasattr(native, "iloc"):
            self._library, self.own_names = "pandas", native.columns.tolist()
            self._types = native.dtypes.tolist()
        elif hasattr(type(native), "column_names"):
            self._library, self.own_names, self._types = "arrow", native.schema.names, native.schema.types
        else:
            self._library, self.own_names, self._types = "polars", native.columns, native.dtypes
        if len(set(self.own_names)) < len(self.own_names):
            names = [*map(str, self.own_names)]
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(
                f"The frame has {names.count(twice)} columns named {twice!r}: rename all but one."
            )

    def __len__(self) -> int:
        if self._library == "lists":
            return len(next(iter(self.native.values()), ()))
        return len(self.native)

    @functools.cached_property
    def names(self) -> list[str] | None:
        """The names; None unless all are strings."""
        return self.own_names if all(isinstance(name, str) for name in self.own_names) else None

    @functools.cached_property
    def texts(self) -> list[str]:
        """The names as distinct strings."""
        texts = [*map(str, self.own_names)]
        return texts if len(set(texts)) == len(texts) else [*map(repr, self.own_names)]

    @functools.cached_property
    def kinds(self) -> dict[Any, list[int]]:
        """The positions of the columns of each kind, in the order of their first columns."""
        alike: dict[Any, list[int]] = {}
        last: Any = None
        at: list[int] = []
        for j, own in enumerate(self._types):
            if not at or (own is not last and own != last):  # the hash of a type of Polars takes 1 us
                last, at = own, alike.setdefault(own, [])
            at.append(j)
        kinds: dict[Any, list[int]] = {}
        for own, at in alike.items():
            kinds.setdefault(self._kind(own, at[0]), []).extend(at)
        return kinds

    def _kind(self, own: Any, j: int) -> Any:
        if self._library == "lists" or getattr(own, "hasobject", False):
            return nw.Object()  # what objects are depends on their values
        key = self._library, own
        if key not in _kinds:
            kind = self.column(j).dtype
            if len(_kinds) > 1000 or kind in (nw.Categorical, nw.Enum):  # a type of their own for each column
                return kind
            _kinds[key] = kind
        return _kinds[key]

    @functools.cached_property
    def numeric(self) -> list[int]:
        """The positions of the columns of numbers and booleans, and of those that have no value."""
        found = [j for kind, at in self.kinds.items() if kind.is_numeric() or kind == nw.Boolean for j in at]
        found += [j for j in self.kinds.get(nw.Unknown(), ()) if self.column(j).is_null().all()]
        return sorted(found)

    @property
    def is_numeric(self) -> bool:
        """Whether all columns have numbers, or objects that may be numbers."""
        n_objects = len(self.kinds.get(nw.Object(), ()))
        return len(self.numeric) + n_objects == len(self.own_names) and not (n_objects and self.categorical)

    @property
    def categorical(self) -> list[int]:
        """The positions of the columns of text and categories; objects are what the first one is."""
        found = [j for kind, at in self.kinds.items() if kind in _TEXTS for j in at]
        found += [j for j in self.kinds.get(nw.Object(), ()) if isinstance(first_value(self.values(j)), str)]
        return sorted(found)

    def column(self, j: int) -> nw.Series[Any]:
        """Return a column by its position; raise for a Sparse column of pandas."""
        if str(self._types[j]).startswith("Sparse"):
            raise DataError(
                f"Column {self.own_names[j]!r} of X is a pandas Sparse column: pass a CSR matrix,"
                " X.sparse.to_coo().tocsr(), or dense columns, X.astype(float)."
            )
        if self._library == "pandas":
            own = self.native.iloc[:, j]
        else:
            own = self.native.to_series(j) if self._library == "polars" else self.native.column(j)
        return nw.from_native(own, series_only=True)

    def values(self, j: int) -> list[Any]:
        """Return the values of a column."""
        return self.native[self.own_names[j]] if self._library == "lists" else self.column(j).to_list()

    def take(self, at: Iterable[int]) -> Table:
        """Return the columns at these positions."""
        table, at = copy.copy(self), list(at)
        table.own_names, table._types = [self.own_names[j] for j in at], [self._types[j] for j in at]
        if self._library == "lists":
            table.native = {name: self.native[name] for name in table.own_names}
        elif self._library == "pandas":
            table.native = self.native.iloc[:, at]
        else:
            is_polars = self._library == "polars"
            table.native = self.native[:, table.own_names] if is_polars else self.native.select(at)
        for name in ("names", "texts", "kinds", "numeric", "array"):
            vars(table).pop(name, None)
        return table

    @functools.cached_property
    def array(self) -> Array:
        """The values, in their own type if all columns have the same numeric one, otherwise as float64.

        Raises
        ------
        DataError
            If a column is not numeric; the first one is named.
        """
        n_columns = len(self._types)
        if len(self.numeric) == n_columns and (values := self._one_type()) is not None:
            return values
        mixed = np.full((len(self), n_columns), np.nan)
        for j in sorted({*range(n_columns)}.difference(self.numeric)):
            name, found = f"Column {self.own_names[j]!r}", self.values(j)
            if any(j in at for kind, at in self.kinds.items() if kind in _TEXTS):
                _reject_text(name, first_value(found))
            mixed[:, j] = as_numbers(name, np.fromiter(found, dtype=object, count=len(found)))
        for kind, at in self.kinds.items():
            if kind.is_numeric() or kind == nw.Boolean:
                mixed[:, at] = self.take(at)._one_type()
        return mixed

    def _one_type(self) -> Array | None:
        """Return the values of numeric columns of one type, or of types that NumPy converts to float64; else None."""
        native, kinds = self.native, self.kinds
        is_plain = all(kind in _PLAIN for kind in kinds)
        if self._library == "pandas" and all(isinstance(own, np.dtype) for own in set(self._types)):
            return native.to_numpy() if len(kinds) == 1 else native.to_numpy(dtype=np.float64)
        if len(kinds) > 1 and not (is_plain and nw.Float64() in kinds):
            return None
        values: Array
        wanted = np.float32 if [*kinds] == [nw.Float32()] else np.float64
        if self._library == "pandas":
            values = native.to_numpy(dtype=wanted, na_value=np.nan)
        elif self._library == "arrow":
            values = _from_arrow(native, is_plain)
        elif is_plain:
            values = native.to_numpy()
        else:
            values = nw.from_native(native, eager_only=True).select(nw.all().cast(nw.Float64)).to_numpy()
        return values if values.dtype.kind in "iu" else values.astype(wanted, copy=False)


def _reject_text(name: str, value: Any) -> NoReturn:
    reject_non_number(name, value)
    kind = "text without any value" if value is None else f"categories, such as {value!r}"
    raise DataError(f"{name} contains {kind}: encode it, or convert it to numbers, before learning.")


def _from_arrow(native: Any, is_plain: bool) -> Array:
    import pyarrow as pa

    if not is_plain:
        kind = pa.schema([(str(j), pa.float64()) for j in range(native.num_columns)])
        native = native.rename_columns(kind.names).cast(kind, safe=False)
    parts = [part.to_tensor(null_to_nan=True).to_numpy() for part in native.to_batches() if part.num_rows]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty((0, native.num_columns))


def first_value(values: list[Any]) -> Any:
    """Return the first value that is not missing; None if all are."""
    return next((value for value in values if not is_missing(value)), None)


def as_table(X: Any) -> Table | None:
    """Return a frame of any library in memory as a table; None for anything else."""
    if isinstance(X, Table) or type(X) is np.ndarray:
        return X if isinstance(X, Table) else None
    known = nw.dependencies
    if known.is_pandas_dataframe(X) or known.is_pyarrow_table(X) or known.is_polars_dataframe(X):
        return Table(X)
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if (pa := known.get_pyarrow()) is not None and isinstance(X, pa.RecordBatch):
        return Table(pa.Table.from_batches([X]))
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return Table(frame.to_native()) if isinstance(frame, nw.DataFrame) else None
