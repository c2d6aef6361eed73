"""Variance inflation of sums over consecutive rows of a series, by the blocking method.

With B blocks of L = 2, 4, 8, ... rows of a centred column x, at least 4 of them::

    R(L) = sum_b (sum of x over block b)^2 / (B L mean of x^2)                                                (1)

A row of weight w takes w places in a row, so it counts in two blocks where a border falls within it. R is 1 for
independent rows, with a standard error of sqrt(2 / (B - 1)); for a series it grows with L towards its variance
inflation, 1 plus twice the sum of its autocorrelations. The products of two unrelated series decorrelate at least as
fast as each of them, so the smaller of the two inflations bounds that of their covariance.

Flyvbjerg, Petersen: Error estimates on averages of correlated data, Journal of Chemical Physics 91, 1989.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["block_ratios", "block_sums", "is_grouped_by_class", "variance_inflation"]

Floats = NDArray[np.float64]
_FEWEST_BLOCKS = 4
_SIGNIFICANT = 3.0  # standard errors
_MOST_BLOCKS = 1 << 22  # of weighted rows, whose weights may sum to any number
_MOST_RUNS = 5  # largest number of runs of each class; a series with so few runs is too short for any test


def is_grouped_by_class(codes: NDArray[np.int64]) -> bool:
    """Return whether rows form at most five runs of each class, as in a table sorted by class.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), int64

    Examples
    --------
    >>> is_grouped_by_class(np.repeat([0, 1, 0, 1], 50)), is_grouped_by_class(np.arange(200) // 10 % 2)
    (True, False)
    """
    return bool(np.count_nonzero(np.diff(codes)) < _MOST_RUNS * len(np.unique(codes)))


def block_sums(values: Floats, size: int, weight: Floats | None = None) -> Floats:
    """Return the sums over blocks of consecutive rows; the last block may be shorter.

    Parameters
    ----------
    values : ndarray of shape (n_rows, m), float64
        Already multiplied by the weights.
    size : int
        Weight of a block.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default. A row that spans several blocks is divided between them.

    Returns
    -------
    ndarray of shape (n_blocks, m), float64

    Examples
    --------
    >>> block_sums(np.array([[6.0], [1.0], [4.0]]), 2, np.array([3.0, 1.0, 1.0])).T
    array([[4., 3., 4.]])
    """
    if weight is None:
        sums: Floats = np.add.reduceat(values, np.arange(0, len(values), size))
        return sums
    ends, total = np.cumsum(weight), np.cumsum(values, axis=0)
    borders = np.arange(size, ends[-1], size)
    row = np.searchsorted(ends, borders)
    rest = ((ends[row] - borders) / weight[row])[:, None] * values[row]
    return np.diff(total[row] - rest, axis=0, prepend=0.0, append=total[-1:])


def block_ratios(columns: Floats, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """Return (1) at each block length, and its excess over 1 in standard errors.

    Parameters
    ----------
    columns : ndarray of shape (m, n_rows), float64
        Centred columns, each of them a row of the array.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default.

    Returns
    -------
    ratio, excess : ndarray of shape (n_lengths, m), float64
        `n_lengths` is 0 with fewer than 8 rows.
    """
    weighted = columns if weight is None else columns * weight
    n = columns.shape[1] if weight is None else float(weight.sum())
    square = np.array([x @ z for x, z in zip(columns, weighted, strict=True)]) / max(n, 1e-300)
    ratio, excess = [], []
    size = 2 if weight is None else max(2, 1 << int(n / _MOST_BLOCKS).bit_length())
    while n // size >= _FEWEST_BLOCKS:
        n_blocks = int(n // size)
        if weight is None:
            sums = columns[:, : n_blocks * size].reshape(len(columns), n_blocks, size).sum(axis=2)
        else:
            sums = block_sums(weighted.T, size, weight)[:n_blocks].T
        ratio.append(np.array([s @ s for s in sums]) / np.maximum(n_blocks * size * square, 1e-300))
        excess.append((ratio[-1] - 1.0) * np.sqrt((n_blocks - 1) / 2.0))
        size *= 2
    return np.array(ratio).reshape(-1, len(columns)), np.array(excess).reshape(-1, len(columns))


def variance_inflation(columns: Floats, *, always: bool = False, weight: Floats | None = None) -> Floats:
    """Return the largest ratio (1) of each column, at least 1.

    Parameters
    ----------
    columns : ndarray of shape (m, n_rows), float64
        Centred columns, each of them a row of the array.
    always : bool, default=False
        Whether to use ratios that are within three standard errors of 1 at every length.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default.

    Returns
    -------
    ndarray of shape (m,), float64

    Examples
    --------
    Independent rows, and values that are repeated for 5 rows:

    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> held = np.repeat(noise[:200], 5)
    >>> variance_inflation(np.array([noise - noise.mean(), held - held.mean()])).round(1)
    array([1. , 5.8])
    """
    ratio, excess = block_ratios(columns, weight)
    counts = always | (excess.max(axis=0, initial=0.0) > _SIGNIFICANT)
    return np.where(counts, ratio.max(axis=0, initial=1.0), 1.0)
