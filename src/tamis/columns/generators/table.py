"""A table of columns of any kind, read a few columns at a time: dense, sparse, memory-mapped, or a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from tamis._checksum import checksum
from tamis._validation import Floats, as_list, as_rows, fill_masked
from tamis.errors import DataError

Block: TypeAlias = Any  # a float64 ndarray of shape (n_rows, m), or a CSC matrix
_CELLS = 1 << 20  # of a part for the fingerprint


class Columns:
    """A table with column names; a generator reads a few columns at a time, never the entire table.

    Parameters
    ----------
    X : array-like, memory-mapped array, SciPy sparse matrix or frame of shape (n_rows, n_columns)
        An array, a memory map or a CSC matrix is not copied and must not be changed. Anything else is converted once.
    names : sequence of str, optional
        By default the columns of the frame, or ``x0``, ``x1``, ...

    Attributes
    ----------
    names : list of str
    labels : list of str
        The names as written in a formula.
    n_rows, n_columns : int
    formulas : bool
        Whether a name might be parsed as a formula.

    Raises
    ------
    DataError
        If a column is not numeric, or two columns have the same name.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.columns.generators import Columns
    >>> table = Columns(np.arange(6.0).reshape(3, 2), names=["red", "blue"])
    >>> table.column("blue"), table.block([1, 0]).shape
    (array([1., 3., 5.]), (3, 2))
    """

    def __init__(self, X: Any, names: Sequence[str] | None = None) -> None:
        own, X = None, fill_masked(X)
        if sp.issparse(X):
            if X.ndim != 2 or X.dtype.kind not in "fiub":
                raise DataError(f"X must be a sparse matrix of real numbers, got {X.shape} of {X.dtype}.")
            X = X.tocsc()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
        elif not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub" and X.size):
            X, own = as_rows(X)
        self.X = X
        self.n_rows, self.n_columns = (int(n) for n in X.shape)
        own_names = own if names is None else [str(name) for name in as_list("names", names)]
        self.has_names = own_names is not None
        self.names = [f"x{j}" for j in range(self.n_columns)] if own_names is None else own_names
        if len(self.names) != self.n_columns:
            raise DataError(
                f"names has {len(self.names)} entries, but X has {self.n_columns} columns: give one for each."
            )
        self.labels = [label(name) for name in self.names]  # as written in a formula
        self.formulas = self.labels != self.names or any("(" in name for name in self.names)
        self.index = {name: j for j, name in enumerate(self.names)}
        if len(self.index) < self.n_columns:
            twice = next(name for j, name in enumerate(self.names) if self.index[name] != j)
            raise DataError(f"Column {twice!r} occurs twice in X: give each column its own name.")

    def __repr__(self) -> str:
        return f"Columns({self.n_rows:,} rows, {self.n_columns:,} columns)"

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSC matrices."""
        return bool(sp.issparse(self.X))

    def block(self, places: Any) -> Block:
        """Return some of the columns as float64; read-only, since it may be a view of the caller's data.

        Parameters
        ----------
        places : sequence of int, or slice

        Returns
        -------
        ndarray of shape (n_rows, m), or CSC matrix
        """
        if not isinstance(places, slice):
            places = np.asarray(places, dtype=np.int64)
            if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
                places = slice(int(places[0]), int(places[-1]) + 1)
        block = self.X[:, places]
        return block.astype(np.float64) if sp.issparse(block) else np.asarray(block, dtype=np.float64)

    def column(self, name: str) -> Floats:
        """Return one column by its name, dense.

        Parameters
        ----------
        name : str

        Returns
        -------
        ndarray of shape (n_rows,), float64
        """
        if name not in self.index:
            raise DataError(f"The rows have no column {name!r}: the columns are {_short_list(self.names)}.")
        block = self.block([self.index[name]])
        return block.toarray()[:, 0] if sp.issparse(block) else block[:, 0]

    def parts(self, cells: int) -> Iterator[tuple[slice, Block]]:
        """Yield all columns, in parts of about `cells` cells.

        Parameters
        ----------
        cells : int
        """
        width = max(1, cells // self.n_rows)
        for start in range(0, self.n_columns, width):
            part = slice(start, min(start + width, self.n_columns))
            yield part, self.block(part)

    def digest(self) -> str:
        """Return a fingerprint of the names, the shape, and all columns."""
        value = checksum(np.array(self.names, dtype=object))
        width = max(1, _CELLS // self.n_rows)
        for start in range(0, self.n_columns, width):
            value = checksum(self.X[:, start : start + width], value)
        return f"{self.n_rows} x {self.n_columns}, {value:08x}"


def as_columns(X: Any) -> Columns:
    """Return the table itself, or make one.

    Parameters
    ----------
    X : Columns, or an argument of `Columns`

    Returns
    -------
    Columns
    """
    return X if isinstance(X, Columns) else Columns(X)


def dense(block: Block) -> Floats:
    """Return a block as an array."""
    return block.toarray() if sp.issparse(block) else block


def label(name: str) -> str:
    """Return a name as written in a formula: in brackets if it might be parsed as one."""
    return f"({name})" if any(sign in name for sign in "*/^") else name


def _short_list(names: list[str]) -> str:
    first = ", ".join(map(repr, names[:5]))
    return first if len(names) <= 5 else f"{first} and {len(names) - 5} more"
