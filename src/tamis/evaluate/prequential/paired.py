"""The gain of a run over a baseline on the same rows, and its standard error from paired differences.

Both predict the same rows, so the difference is paired. Differences are autocorrelated on a stream: their standard
error is that of a mean over dependent values, (10) of :mod:`tamis.dependence.autocorrelation`. The gain over random
subsets also has the error of the mean of the draws, whose degrees of freedom are one less than the draws.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis.dependence.autocorrelation import MeanError, mean_error


def paired_gain(steps: dict[str, Any], measure: str, baseline: str = "frozen") -> tuple[float, MeanError]:
    """Return the gain per row over a baseline since it was first scored, and its standard error.

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
    >>> round(gain, 3), round(error.error, 3), error.freedom
    (0.083, 0.117, 2.0)
    """
    theirs = np.asarray(steps[f"{baseline}_{measure}_cumulative"])
    known = np.flatnonzero(np.isfinite(theirs))
    if len(known) < 3:
        return math.nan, MeanError(math.nan, 0.0)
    seen = np.cumsum(steps["n_rows"]).astype(np.float64)
    ahead = (np.asarray(steps[f"{measure}_cumulative"]) - theirs) * seen
    if measure == "mae":
        ahead = -ahead
    sums, n_rows = np.diff(ahead[known]), np.diff(seen[known])
    return float(sums.sum() / n_rows.sum()), mean_error(sums, n_rows)


def auc_gain(steps: dict[str, Any], window: int, baseline: str = "frozen") -> tuple[float, MeanError]:
    """Return the gain in AUC over a baseline since it was first scored, and its standard error.

    The mean over non-overlapping windows of the run; NaN if the run has no AUC at its end. The error is NaN for a
    single window.
    """
    theirs = np.asarray(steps[f"{baseline}_auc_windowed"])
    known = np.flatnonzero(np.isfinite(theirs))
    nothing = math.nan, MeanError(math.nan, 0.0)
    if len(known) < 2 or not math.isfinite(steps["auc_cumulative"][-1]):
        return nothing
    seen = np.cumsum(steps["n_rows"])
    start, end = int(seen[known[0]]), int(seen[known[-1]])
    at = np.unique(np.searchsorted(seen, np.arange(end, start, -window)))
    at = at[np.isfinite(theirs[at]) & (seen[at] - start >= min(window, end - start))]
    apart = np.asarray(steps["auc_windowed"])[at] - theirs[at]
    if not len(apart):
        return nothing
    error = mean_error(apart, np.ones(len(apart)))
    return float(apart.mean()), error._replace(missing=error.missing * window)


def with_draws(error: MeanError, spread: float, n_draws: int) -> MeanError:
    """Return an error with that of the mean of random draws, whose standard deviation is the spread.

    The error of a single draw is unknown, so nothing is significant.
    """
    return error.plus(np.nan_to_num(spread) / math.sqrt(n_draws), n_draws - 1.0)._replace(
        **({} if n_draws > 1 else {"freedom": 0.0})
    )
