"""Mean absolute error and R^2 with two baselines: over all rows, and over a sliding window.

With y_i the targets of n rows, p_i the predictions, and m the mean of these y_i:

    mae = sum_i |y_i - p_i| / n                                                           (1)
    R^2 = 1 - sum_i (y_i - p_i)^2 / sum_i (y_i - m)^2                                     (2)

R^2 is 1 if every prediction is exact, 0 for predictions as accurate as m (which is not known in advance), and unbounded
below. The baselines use only the targets; the mean absolute error (1) of each is reported:

    mean: predicts the mean of all targets before                                         (3)
    last: predicts the target of the row before                                           (4)

They are tested on the same rows as the learner, each row before they learn from it; with delayed targets, they too use
only the targets that have arrived.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, as_numbers, reject_masked
from tamis.evaluate.metrics.classification import Running, as_batch

ERRORS = ("mae", "r2", "mean_mae", "last_mae")
_N = len(ERRORS)

# State:
#   _totals  (6,)  absolute errors of the learner and of (3) and (4); squared ones of the learner; m; sum of (y - m)^2
#   _ring    (4, window)  of the last rows: y; the three absolute errors
#   _known   (3,)  mean and number of the targets that arrived, and the last one


@njit(strict=True)
def _learn(revealed: Any, known: Any) -> None:
    """Update the baselines with targets."""
    for y in revealed:
        known[1] += 1.0
        known[0] += (y - known[0]) / known[1]  # (3)
        known[2] = y  # (4)


@njit(strict=True)
def _count(
    actual: Any, predicted: Any, totals: Any, known: Any, ring: Any, n_seen: int, revealed: Any, upto: Any, out: Any
) -> None:  # fmt: skip
    """Count the rows, and write all measures."""
    window, n_rows, before, n_revealed = ring.shape[1], actual.shape[0], totals[0], 0
    for i in range(n_rows):
        y, slot = actual[i], (n_seen + i) % window
        ring[0, slot], ring[1, slot] = y, abs(y - predicted[i])
        ring[2, slot], ring[3, slot] = abs(y - known[0]), abs(y - known[2])
        for k in range(3):
            totals[k] += ring[1 + k, slot]
        totals[3] += ring[1, slot] * ring[1, slot]
        far = y - totals[4]
        totals[4] += far / (n_seen + i + 1)
        totals[5] += far * (y - totals[4])
        _learn(revealed[n_revealed : upto[i]], known)
        n_revealed = upto[i]
    _learn(revealed[n_revealed:], known)
    n_seen += n_rows
    out[0] = (totals[0] - before) / n_rows
    _measures(totals, n_seen, out[1:5])
    _measures(_window_totals(ring, min(n_seen, window)), min(n_seen, window), out[5:9])


@njit(strict=True)
def _window_totals(ring: Any, n: int) -> Any:
    """Return the totals of the rows in the window, recomputed to avoid the rounding errors of removed rows."""
    totals = np.zeros(6)
    for i in range(n):
        for k in range(3):
            totals[k] += ring[1 + k, i]
        totals[3] += ring[1, i] * ring[1, i]
        totals[4] += ring[0, i]
    totals[4] /= n
    for i in range(n):
        totals[5] += (ring[0, i] - totals[4]) ** 2
    return totals


@njit(strict=True)
def _measures(totals: Any, n: int, out: Any) -> None:
    out[0] = totals[0] / n  # (1)
    out[1] = 1.0 - totals[3] / totals[5] if totals[5] > 0.0 else np.nan  # (2)
    out[2], out[3] = totals[1] / n, totals[2] / n


class RunningErrors(Running):
    """Mean absolute error, R^2 and baselines over all rows so far and over the last `window` rows.

    A batch costs O(rows + window). Memory: 32 bytes per row of the window.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 1.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.

    Notes
    -----
    R^2 is NaN if all targets are equal. A baseline that has seen no target yet predicts 0.

    Examples
    --------
    A learner with the true slope of a line, and two without:

    >>> errors = RunningErrors(window=50)
    >>> y = np.arange(100.0)
    >>> errors.update(y, y + 0.25)
    >>> {name: round(value, 3) for name, value in errors.cumulative.items()}
    {'mae': 0.25, 'r2': 1.0, 'mean_mae': 25.245, 'last_mae': 0.99}
    >>> {name: round(value, 3) for name, value in errors.windowed.items()}
    {'mae': 0.25, 'r2': 1.0, 'mean_mae': 37.75, 'last_mae': 1.0}
    """

    _shapes = """
        window (=w)  _ring (4, w) finite  _totals (6) finite  _known (3) finite  _values (9) float in [-inf, inf] or nan
    """

    _measures = ERRORS
    bigger_is_better = False

    def __init__(self, window: int = 1000) -> None:
        super().__init__(window)
        self._totals, self._ring, self._known = np.zeros(6), np.zeros((4, self.window)), np.zeros(3)

    def learn(self, actual: Any) -> None:
        """Update the baselines with targets of rows that are not tested.

        Parameters
        ----------
        actual : array-like of float, shape (n_rows,)
        """
        _learn(_numbers("actual", actual), self._known)

    def update(self, actual: Any, predicted: Any, revealed: Any = None, upto: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        actual, predicted : array-like of float, shape (n_rows,)
        revealed : array-like of float, shape (n_revealed,), optional
            Delayed targets that arrived, from which the baselines learn; by default those of the rows.
        upto : array-like of int, shape (n_rows,), optional
            How many of `revealed` are known after each row.

        Raises
        ------
        ValueError
            If the two do not have one number each for at least one row, or one of them is NaN.
        """
        actual, predicted, revealed, upto = as_batch(_numbers, "number", actual, predicted, revealed, upto)
        _count(
            actual,
            predicted,
            self._totals,
            self._known,
            self._ring,
            self.n_seen,
            revealed,
            upto,
            self._values,
        )
        self.n_seen += actual.shape[0]


def _numbers(name: str, values: Any) -> Floats:
    reject_masked(name, values)
    numbers: Floats = np.ascontiguousarray(as_numbers(name, values), dtype=np.float64)
    if np.isnan(numbers).any():
        raise ValueError(f"{name} must not contain NaN.")
    return numbers
