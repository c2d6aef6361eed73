"""Warnings about targets whose distribution invalidates the t test of a correlation, also between blocks of rows.

The t test and Fisher's z are valid for any columns if the errors are normal, and for any errors if the columns are
normal. Otherwise a few rows dominate the test, for example if rows of a rare class, or outliers, coincide with the few
ones of a sparse column.
"""

from __future__ import annotations

import warnings

import numpy as np

from tamis._validation import Array

__all__ = ["warn_heavy_tails", "warn_rare_class"]

_RARE = 0.2  # share of the smaller class below which errors are too skewed for a t test
_HEAVY = 6.0  # kurtosis of a target above which a few rows dominate a t test; normal: 3, exponential: 9


def warn_rare_class(y: Array, weight: Array, advice: str) -> None:
    """Warn if a target has two values, one of which is rare.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)
    advice : str
        The consequence, and the remedy.
    """
    values, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weight)
    if len(values) == 2 and counts.min() < _RARE * counts.sum():
        warnings.warn(
            f"The target has two values, and {counts.min():g} of {counts.sum():g} rows have the value"
            f" {values[counts.argmin()]:g}: {advice}.",
            UserWarning,
            stacklevel=2,
        )


def warn_heavy_tails(y: Array, weight: Array, is_volatile: bool) -> None:
    """Warn if a few rows, or a few parts of the stream, account for most of the variance of a target of many values.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)
    is_volatile : bool
        Whether the squares of the target are autocorrelated.
    """
    if len(np.unique(y)) <= 2:
        return
    share, scaled = weight / weight.sum(), y / np.abs(y).max()
    square = (scaled - share @ scaled) ** 2
    if square.max() == 0.0:
        return
    square /= square.max()
    kurtosis = float(share @ square**2) / float(share @ square) ** 2
    if kurtosis > _HEAVY or is_volatile:
        cause = (
            f"A few rows account for most of the variance of the target (kurtosis {kurtosis:.0f}, 3 if normal): the"
            " p-values of model='linear' are too small for sparse or skewed columns"
            if kurtosis > _HEAVY
            else "The variance of the target changes over the rows (its squares are autocorrelated): the p-values of"
            " model='linear' are too small for columns whose variance changes with it"
        )
        warnings.warn(
            f"{cause}, choose variance='robust', or use the ranks or the logarithm of the target.",
            UserWarning,
            stacklevel=2,
        )
