"""The gain of a run over a baseline on the same rows, and its standard error from paired differences.

Both predict the same rows, so the difference is paired. Errors are autocorrelated on a stream, so the standard error is
that of batch means, with about as many batches as the square root of the number of rows::

    gain = D / N,     error^2 = b / (b - 1) sum_k (D_k - gain N_k)^2 / N^2                           (1)

with D_k the sum of the differences over the N_k rows of batch k, of b batches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["auc_gain", "error_of_mean", "paired_gain"]

Numbers = NDArray[np.float64]


def paired_gain(steps: dict[str, Any], measure: str, baseline: str = "frozen") -> tuple[float, float]:
    """Return the gain per row over a baseline since it was first scored, and its standard error (1).

    Parameters
    ----------
    steps : dict of str to ndarray
        The frame of the steps.
    measure : {"accuracy", "mae"}
        A positive difference is a higher accuracy, or a lower error.
    baseline : {"frozen", "random", "all"}, default="frozen"
        Prefix of its columns.

    Examples
    --------
    >>> steps = {
    ...     "n_rows": np.full(5, 100), "accuracy_cumulative": np.array([0.5, 0.6, 0.6, 0.6, 0.6]),
    ...     "frozen_accuracy_cumulative": np.array([np.nan, 0.6, 0.5, 0.55, 0.55]),
    ... }
    >>> gain, error = paired_gain(steps, "accuracy")
    >>> round(gain, 3), round(error, 3)
    (0.083, 0.117)
    """
    theirs = np.asarray(steps[f"{baseline}_{measure}_cumulative"])
    known = np.flatnonzero(np.isfinite(theirs))
    if len(known) < 3:
        return math.nan, math.nan
    seen = np.cumsum(steps["n_rows"]).astype(np.float64)
    ahead = (np.asarray(steps[f"{measure}_cumulative"]) - theirs) * seen
    if measure == "mae":
        ahead = -ahead
    sums, n_rows = np.diff(ahead[known]), np.diff(seen[known])
    total, n_blocks = float(n_rows.sum()), min(len(sums), math.isqrt(int(n_rows.sum())))
    block = np.minimum((np.cumsum(n_rows) - n_rows / 2) * n_blocks / total, n_blocks - 1).astype(np.intp)
    block = np.unique(block, return_inverse=True)[1]
    of_block, rows = np.bincount(block, sums), np.bincount(block, n_rows)
    b, gain = len(rows), float(sums.sum()) / total
    if b < 2:
        return gain, math.nan
    return gain, math.sqrt(b / (b - 1) * float(((of_block - gain * rows) ** 2).sum())) / total


def auc_gain(steps: dict[str, Any], window: int, baseline: str = "frozen") -> tuple[float, float]:
    """Return the gain in AUC over a baseline since it was first scored, and its standard error.

    The mean over non-overlapping windows of the run; NaN if the run has no AUC at its end. The error is NaN for a
    single window.
    """
    theirs = np.asarray(steps[f"{baseline}_auc_windowed"])
    known = np.flatnonzero(np.isfinite(theirs))
    if len(known) < 2 or not math.isfinite(steps["auc_cumulative"][-1]):
        return math.nan, math.nan
    seen = np.cumsum(steps["n_rows"])
    start, end = int(seen[known[0]]), int(seen[known[-1]])
    at = np.unique(np.searchsorted(seen, np.arange(end, start, -window)))
    at = at[np.isfinite(theirs[at]) & (seen[at] - start >= min(window, end - start))]
    apart = np.asarray(steps["auc_windowed"])[at] - theirs[at]
    n = len(apart)
    if n == 0:
        return math.nan, math.nan
    return float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan


def error_of_mean(spread: Any, n_draws: int) -> Any:
    """Return the standard error of the mean of the draws: the margin by which a selection must exceed the mean.

    The error of a single draw is unknown, and counts as 0.
    """
    return np.nan_to_num(spread, nan=0.0) / math.sqrt(n_draws)
