"""Warnings where a target has a shape for which the t test of a correlation is wrong.

The t test, and Fisher's z, hold for any columns if the errors are normal, and for any errors if the columns are. Where
neither is, a few rows decide: the only rows of a rare class, or those far out, meet the few ones of a sparse column.
"""

from __future__ import annotations

import warnings

import numpy as np

from tamis._check import Array

__all__ = ["warn_of_a_rare_class", "warn_of_heavy_tails"]

_RARE = 0.2  # share of the rows of a class, below which errors are too skewed for a t test
_HEAVY = 6.0  # kurtosis of a target, above which a few rows decide a t test; 3 is normal, 9 exponential


def warn_of_a_rare_class(y: Array, weight: Array, advice: str) -> None:
    """Warn if a target has two values, and few rows have one of them.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)
    advice : str
        What is wrong then, and what to choose.
    """
    values, counts = np.unique(y[weight > 0.0], return_counts=True)
    if len(values) == 2 and counts.min() < _RARE * counts.sum():
        warnings.warn(
            f"The target has two values, and {counts.min()} of {counts.sum()} rows have the value"
            f" {values[counts.argmin()]:g}: {advice}.",
            UserWarning,
            stacklevel=2,
        )


def warn_of_heavy_tails(y: Array, weight: Array) -> None:
    """Warn if few rows hold most of the spread of a target of more than two values.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,)
    """
    if len(np.unique(y[weight > 0.0])) <= 2:
        return
    share, scaled = weight / weight.sum(), y / np.abs(y).max()
    square = (scaled - share @ scaled) ** 2
    if square.max() == 0.0:
        return
    square /= square.max()
    kurtosis = float(share @ square**2) / float(share @ square) ** 2
    if kurtosis > _HEAVY:
        warnings.warn(
            f"A few rows hold most of the spread of the target (kurtosis {kurtosis:.0f}, a normal one has 3): the"
            " p-values of model='linear' are too small for columns that are rare or skewed, choose variance='robust',"
            " or take the ranks or the logarithm of the target.",
            UserWarning,
            stacklevel=2,
        )
