"""Binning of numeric columns into a few ordered codes; each category is a separate bin.

The code of a value is the number of edges below it, so a value equal to an edge, such as the zeros of a sparse column,
belongs to the bin below. Quantile edges give bins with about the same number of rows; equal widths are those of
Liyanage et al. (2021), which begin and end at integers.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import Array, Floats, Ints, Rows

_OUTER = 0.005  # numbers are clipped at these quantiles
_CELLS = 1 << 24  # codes in memory while counting


class Bins:
    """Edges of the bins of each column.

    Parameters
    ----------
    edges : ndarray of shape (n_features, n_bins - 1), float64
        Ascending; +inf where a column has fewer.
    sizes : ndarray of shape (n_features,), int, optional
        Number of categories of each column, whose values are codes from 0; 0 for a numeric column.
    levels : int, optional
        Number of bins of a numeric column; by default `n_bins`.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [3.0]])
    >>> bins = Bins.quantile(X, 3)
    >>> bins.codes(X).ravel(), bins.edges
    (array([0, 0, 0, 1, 2, 2], dtype=int16), array([[0.        , 1.33333333]]))
    """

    def __init__(self, edges: Floats, sizes: Ints | None = None, levels: int | None = None) -> None:
        self.edges = edges
        self.sizes = np.zeros(len(edges), dtype=np.int64) if sizes is None else sizes
        self.levels: int = edges.shape[1] + 1 if levels is None else levels

    @property
    def n_bins(self) -> int:
        """Largest number of bins of a column."""
        return int(self.edges.shape[1]) + 1

    @property
    def n_levels(self) -> Ints:
        """Number of values that a code of each column can take, shape (n_features,)."""
        return np.where(self.sizes > 0, self.sizes, self.levels)

    def with_categories(self, sizes: Ints | None) -> Bins:
        """Return these bins, with one bin per category for the categorical columns."""
        if sizes is None or not sizes.any():
            return self
        edges = np.full((len(self.edges), max(self.n_bins, int(sizes.max())) - 1), np.inf)
        edges[:, : self.n_bins - 1] = self.edges
        border = np.arange(edges.shape[1]) + 0.5
        edges[sizes > 0] = np.where(border < sizes[sizes > 0, None] - 1, border, np.inf)
        return Bins(edges, sizes, self.levels)

    @classmethod
    def quantile(cls, X: Rows, n_bins: int) -> Bins:
        """Return bins with about the same number of rows each; NaN is ignored."""
        at = np.arange(1, n_bins) / n_bins
        if sp.issparse(X):
            edges = _sparse_quantiles(X, at)
        elif np.isnan(X).any():
            known = ~np.isnan(X).all(axis=0)
            edges = np.full((X.shape[1], len(at)), np.inf)
            if known.any():
                edges[known] = np.nanquantile(X[:, known], at, axis=0).T
        else:
            edges = np.quantile(np.asarray(X, dtype=np.float64), at, axis=0).T
        edges = np.ascontiguousarray(edges)
        idle = edges >= _largest(X)[:, None]  # no value lies above: later values belong to the bin below
        idle[:, 1:] |= edges[:, 1:] == edges[:, :-1]
        edges[idle] = np.inf
        edges.sort(axis=1)
        return cls(edges)

    @classmethod
    def width(cls, X: Rows, n_bins: int) -> Bins:
        """Return bins of equal width between integers; a value on an edge belongs to the bin above."""
        low, high = -_largest(-X), _largest(X)
        low = np.floor(np.where(np.isfinite(low), low, 0.0))
        high = np.ceil(np.where(np.isfinite(high), high, 0.0))
        width = np.where(high > low, high - low, 1.0) / n_bins
        edges = low[:, None] + width[:, None] * np.arange(1, n_bins)
        return cls(np.nextafter(edges, -np.inf))  # "at or above the edge" is "above the number before it"

    def take(self, features: Array | slice) -> Bins:
        """Return the bins of some of the columns."""
        return Bins(self.edges[features], self.sizes[features], self.levels)

    def codes(self, X: Array) -> NDArray[np.int16]:
        """Return the code of each value of dense rows with these columns; -1 for NaN."""
        codes = np.zeros(X.shape, dtype=np.int16)
        for edge in self.edges.T:
            codes += edge < X
        codes[np.isnan(X)] = -1
        return codes

    def tables(self, X: Rows, y: Array, n_classes: int) -> Ints:
        """Count the rows of each column, bin and class.

        Returns
        -------
        ndarray of shape (n_features, n_bins, n_classes)
        """
        count = self._sparse_tables if sp.issparse(X) else self._dense_tables
        step = max(1, _CELLS // max(X.shape[0], self.n_bins * n_classes))
        if sp.issparse(X):
            X = sp.csc_array(X)
            step = max(1, _CELLS // (self.n_bins * n_classes))
        blocks = [
            count(X, slice(at, min(at + step, X.shape[1])), y, n_classes) for at in range(0, X.shape[1], step)
        ]
        return np.concatenate(blocks)

    def _dense_tables(self, X: Array, block: slice, y: Array, n_classes: int) -> Ints:
        codes = self.take(block).codes(X[:, block])
        n = codes.shape[1]
        at = (np.arange(n) * self.n_bins + codes) * n_classes + y[:, None]
        return np.bincount(at[codes >= 0], minlength=n * self.n_bins * n_classes).reshape(n, self.n_bins, -1)

    def _sparse_tables(self, X: sp.csc_array, block: slice, y: Array, n_classes: int) -> Ints:
        start, stop = X.indptr[block.start], X.indptr[block.stop]
        values, rows = X.data[start:stop], X.indices[start:stop]
        n, edges = block.stop - block.start, self.edges[block]
        column = np.repeat(np.arange(n), np.diff(X.indptr[block.start : block.stop + 1]))
        code = np.zeros(len(values), dtype=np.int64)
        for edge in edges.T:
            code += edge[column] < values
        known = ~np.isnan(values)
        at = ((column * self.n_bins + code) * n_classes + y[rows])[known]
        tables = np.bincount(at, minlength=n * self.n_bins * n_classes).reshape(n, self.n_bins, n_classes)
        stored = np.bincount(column * n_classes + y[rows], minlength=n * n_classes).reshape(n, n_classes)
        zero = (edges < 0.0).sum(axis=1)
        tables[np.arange(n), zero] += np.bincount(y, minlength=n_classes) - stored
        return tables


def indicators(values: Array, sizes: Ints) -> Floats:
    """Return the values with codes of categories replaced by one indicator per category; NaN where missing.

    >>> indicators(np.array([[1.0, 5.0], [np.nan, 7.0]]), np.array([2, 0]))
    array([[ 0.,  1.,  5.],
           [nan, nan,  7.]])
    """
    values = np.asarray(values, dtype=np.float64)
    if not sizes.any():
        return values
    parts = []
    for column, size in zip(values.T, sizes, strict=True):
        hot = (np.minimum(column, size - 1)[:, None] == np.arange(size)).astype(np.float64)
        hot[np.isnan(column)] = np.nan
        parts.append(hot if size else column[:, None])
    return np.concatenate(parts, axis=1)


def in_order(values: Array) -> Array:
    """Return the natural order of the columns for each row."""
    return np.broadcast_to(np.arange(values.shape[1]), values.shape)


def outer_quantiles(values: Array, some: Array) -> Floats:
    """Return the bounds at which the numbers of some columns are clipped, shape (2, n_columns); 0 for the others."""
    ends, there = np.zeros((2, values.shape[1])), some & ~np.isnan(values).all(axis=0)
    if there.any():
        numbers = values[:, there]
        quantile = np.nanquantile if np.isnan(numbers).any() else np.quantile  # the former takes much longer
        ends[:, there] = quantile(numbers, [_OUTER, 1.0 - _OUTER], axis=0)
    return ends


def faded_classes(y: Array, n_classes: int, fading: float) -> Floats:
    """Return the weight of each row in the column of its class; each row fades the earlier ones."""
    weights = np.zeros((len(y), n_classes))
    weights[np.arange(len(y)), y] = fading ** np.arange(len(y) - 1, -1, -1.0)
    return weights


def dense(X: Rows) -> Floats:
    """Return rows as an array of float64."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _largest(X: Rows) -> Floats:
    """Return the largest value of each column, ignoring NaN; -inf where all are NaN."""
    largest: Floats
    if sp.issparse(X):
        largest = X.nanmax(axis=0).toarray().ravel().astype(np.float64)
        largest[np.isnan(largest)] = -np.inf
    else:
        largest = np.max(X, axis=0, initial=-np.inf, where=~np.isnan(X)).astype(np.float64)
    return largest


def _sparse_quantiles(X: Rows, at: Array) -> Floats:
    """Return np.quantile of each column of a sparse matrix, O(stored log stored)."""
    X = sp.csc_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    n_rows, n_columns = X.shape
    column = np.repeat(np.arange(n_columns), np.diff(X.indptr))
    missing = np.bincount(column[np.isnan(X.data)], minlength=n_columns)
    values = X.data[np.lexsort((X.data, column))]  # NaN last
    stored = np.diff(X.indptr) - missing
    negative = np.bincount(column[X.data < 0], minlength=n_columns)
    zeros = n_rows - missing - stored

    def sorted_value(rank: Array) -> Array:
        """Return the value of the given rank in each column, including zeros."""
        place = np.where(rank < negative, rank, rank - zeros) + X.indptr[:-1]
        is_zero = (rank >= negative) & (rank < negative + zeros)
        place = np.where(is_zero | (stored == 0), 0, place)
        of_rank = values[place] if len(values) else np.zeros(n_columns)
        return np.where(is_zero, 0.0, of_rank).astype(np.float64)

    edges = np.empty((n_columns, len(at)))
    last = n_rows - missing - 1
    for i, share in enumerate(at):
        below = np.floor(share * last).astype(np.int64)
        part = share * last - below
        low = sorted_value(np.maximum(below, 0))
        high = sorted_value(np.minimum(below + 1, np.maximum(last, 0)))
        edges[:, i] = np.where(last >= 0, low + part * (high - low), np.inf)
    return edges
