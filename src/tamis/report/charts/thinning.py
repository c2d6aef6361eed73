"""A line of any length, thinned to the resolution of a screen."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Floats

Column: TypeAlias = NDArray[Any]


def bucket_starts(n: int, at_most: int) -> NDArray[np.intp]:
    """Return where each of at most `at_most` buckets of nearly equal size begins among `n` items.

    >>> bucket_starts(10, 4)
    array([0, 2, 5, 7])
    """
    n_buckets = min(n, at_most)
    return np.arange(n_buckets, dtype=np.intp) * n // max(n_buckets, 1)


def thin(x: Column, y: Column, at_most: int = 400) -> tuple[Floats, Floats]:
    """Return at most `at_most` points of a line: the lowest and the highest of each bucket, in their order.

    A bucket of only NaN remains NaN, so a visible interruption is preserved.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
    at_most : int, default=400

    Returns
    -------
    x, y : ndarray of shape (n or fewer,), float64

    Examples
    --------
    A spike of one in ten thousand survives:

    >>> y = np.zeros(10_000)
    >>> y[1234] = 7.0
    >>> x, thinned = thin(np.arange(10_000), y)
    >>> len(thinned), float(x[thinned.argmax()])
    (400, 1234.0)
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(y) <= at_most:
        return x, y
    starts = bucket_starts(len(y), at_most // 2)
    kept = np.zeros(2 * len(starts), np.intp)
    for i, (start, stop) in enumerate(zip(starts, [*starts[1:], len(y)], strict=True)):
        part = y[start:stop]
        ends = (
            (0, len(part) - 1) if np.isnan(part).all() else sorted((np.nanargmin(part), np.nanargmax(part)))
        )
        kept[2 * i : 2 * i + 2] = [start + int(end) for end in ends]
    return x[kept], y[kept]


def thin_band(x: Column, low: Column, high: Column, at_most: int = 200) -> tuple[Floats, Floats, Floats]:
    """Return at most `at_most` points of a band: the lowest low and the highest high of each bucket."""
    if not len(x):
        return (np.empty(0),) * 3
    starts = bucket_starts(len(x), at_most)
    ends = np.append(starts[1:], len(x)) - 1
    middle = (np.asarray(x, np.float64)[starts] + np.asarray(x, np.float64)[ends]) / 2
    return (
        middle,
        np.fmin.reduceat(np.asarray(low, np.float64), starts),
        np.fmax.reduceat(np.asarray(high, np.float64), starts),
    )


def mean_per_bucket(values: Column, at_most: int) -> Floats:
    """Return the mean of each bucket, of the values that are there."""
    starts = bucket_starts(len(values), at_most)
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.add.reduceat(np.where(there, values, 0.0), starts) / np.add.reduceat(
            there.astype(np.float64), starts
        )
    return mean
