"""Warnings about targets whose distribution invalidates the t test of a correlation, also between blocks of rows.

The t test and Fisher's z are valid for any columns if the errors are normal, and for any errors if the columns are
normal. Otherwise a few rows dominate the test, for example if rows of a rare class, or outliers, coincide with the few
ones of a sparse column.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tamis._validation import Array

_RARE = 0.2  # share of the smaller class below which errors are too skewed for a t test
HEAVY = 6.0  # kurtosis of a target above which a few rows dominate a t test; normal: 3, exponential: 9


def warn_rare_class(y: Array, weight: Array, advice: str) -> None:
    """Warn if a target has two values, one of which is rare.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)
    advice : str
        The consequence, and the remedy.
    """
    if (rare := _rare(y, weight)) is not None:
        count, value = rare
        warnings.warn(
            f"The target has two values, and {count:g} of {weight.sum():g} rows have the value {value:g}: {advice}.",
            UserWarning,
            stacklevel=2,
        )


def rests_on_few_rows(y: Array, weight: Array) -> bool:
    """Return whether a few rows account for most of the variance of a target: a rare class, or outliers.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)

    Returns
    -------
    bool

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rests_on_few_rows(rng.normal(size=100), np.ones(100)), rests_on_few_rows(np.arange(100) < 5, np.ones(100))
    (False, True)
    """
    return _rare(y, weight) is not None or _kurtosis(y, weight) > HEAVY


def _rare(y: Array, weight: Array) -> tuple[float, Any] | None:
    """Return the weight and the value of the smaller of two classes if it is rare."""
    values, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weight)
    rare = len(values) == 2 and counts.min() < _RARE * counts.sum()
    return (float(counts.min()), values[counts.argmin()]) if rare else None


def _kurtosis(y: Array, weight: Array) -> float:
    """Return the kurtosis of a target of many values; 0 of a constant or of two values."""
    if len(np.unique(y)) <= 2:
        return 0.0
    share, scaled = weight / weight.sum(), y / np.abs(y).max()
    square = (scaled - share @ scaled) ** 2
    if square.max() == 0.0:
        return 0.0
    square /= square.max()
    return float(share @ square**2) / float(share @ square) ** 2


def warn_heavy_tails(y: Array, weight: Array, is_volatile: bool) -> None:
    """Warn if a few rows, or a few parts of the stream, account for most of the variance of a target of many values.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)
    is_volatile : bool
        Whether the squares of the target are autocorrelated.
    """
    kurtosis = _kurtosis(y, weight)
    if kurtosis > HEAVY or (is_volatile and kurtosis):
        cause = (
            f"A few rows account for most of the variance of the target (kurtosis {kurtosis:.0f}, 3 if normal): the"
            " p-values of model='linear' are too small for sparse or skewed columns, choose variance='robust'"
            if kurtosis > HEAVY
            else "The variance of the target changes over the rows (its squares are autocorrelated): the p-values of"
            " model='linear' are too small for columns whose variance changes with it, choose variance='series'"
        )
        warnings.warn(f"{cause}, or use the ranks or the logarithm of the target.", UserWarning, stacklevel=2)
