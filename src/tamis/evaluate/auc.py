"""Prequential AUC: the area under the ROC curve of the last rows (Brzezinski, Stefanowski 2017).

With the scores of the positive and of the negative rows of the window, each kept in order,

    AUC = #{(p, q): score p > score q} + 1/2 #{(p, q): score p = score q}, over all pairs, divided by their number   (1)

A row that enters or leaves changes the number of pairs won by what two binary searches tell, so (1) is exact and never
counted anew. The pairs won are counted twice, as whole numbers: a tie is one half.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._check import check_number
from tamis._jit import njit

__all__ = ["SlidingAUC"]


@njit(strict=True)
def _places(ordered: Any, n: int, score: float, ends: Any) -> None:
    """Write how many of the first `n` are below the score, and how many not above it."""
    for side in range(2):
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] < score or (side == 1 and ordered[middle] == score):
                low = middle + 1
            else:
                high = middle
        ends[side] = low


@njit(strict=True)
def _move(ordered: Any, sizes: Any, positive: int, score: float, enters: bool, ends: Any) -> Any:
    """Let a score enter or leave; return twice the pairs that it wins."""
    n_others = sizes[1 - positive]
    _places(ordered[1 - positive], n_others, score, ends)
    won = ends[0] + ends[1] if positive == 1 else 2 * n_others - ends[0] - ends[1]
    _places(ordered[positive], sizes[positive], score, ends)
    at, n, mine = ends[0], sizes[positive], ordered[positive]
    if enters:
        for i in range(n, at, -1):
            mine[i] = mine[i - 1]
        mine[at] = score
        sizes[positive] = n + 1
        return won
    for i in range(at, n - 1):
        mine[i] = mine[i + 1]
    sizes[positive] = n - 1
    return -won


@njit(strict=True)
def _slide(
    positive: Any, scores: Any, n_seen: int, ring: Any, labels: Any, ordered: Any, totals: Any
) -> float:
    """Take the rows in; return the sum of the AUC after each of them that has one."""
    window, ends, total = ring.shape[0], np.zeros(2, np.int64), 0.0
    sizes = totals[:2]
    slot = n_seen % window
    for i in range(scores.shape[0]):
        if n_seen + i >= window:
            totals[2] += _move(ordered, sizes, labels[slot], ring[slot], False, ends)
        totals[2] += _move(ordered, sizes, positive[i], scores[i], True, ends)
        ring[slot], labels[slot] = scores[i], positive[i]
        if sizes[0] > 0 and sizes[1] > 0:
            total += 0.5 * totals[2] / (sizes[0] * sizes[1])  # (1)
            totals[3] += 1
        slot += 1
        if slot == window:
            slot = 0
    return total


class SlidingAUC:
    """Area under the ROC curve over the last `window` rows, and its mean over the run.

    A row costs four binary searches and moves at most 8 x `window` bytes twice. Memory: 25 bytes per row of the window.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 2.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.

    References
    ----------
    Brzezinski, Stefanowski (2017). Prequential AUC: properties of the area under the ROC curve for data streams with
    concept drift. Knowledge and Information Systems 52.

    Examples
    --------
    Three of the four pairs are in the right order:

    >>> auc = SlidingAUC(window=4)
    >>> auc.update([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9])
    >>> auc.windowed
    0.75
    """

    def __init__(self, window: int = 1000) -> None:
        check_number("window", window, low=2, integer=True)
        self.window, self.n_seen = int(window), 0
        self._ring = np.zeros(self.window)  # scores of the last rows
        self._labels = np.zeros(self.window, np.int8)
        self._ordered = np.zeros((2, self.window))  # the same in order, negative and positive rows
        self._totals = np.zeros(
            4, np.int64
        )  # negative rows, positive ones, twice the pairs won, rows with an AUC
        self._sum = 0.0

    def update(self, positive: Any, scores: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        positive : array-like of bool or 0/1, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            The larger, the likelier positive.

        Raises
        ------
        ValueError
            If there is not one label and one score that is a number for each row; nothing is counted then.
        """
        labels, values = np.asarray(positive), np.ascontiguousarray(scores, dtype=np.float64)
        if labels.ndim != 1 or labels.shape != values.shape:
            raise ValueError(
                "positive and scores must hold one value for each row,"
                f" got shapes {labels.shape} and {values.shape}."
            )
        if np.isnan(values).any():
            raise ValueError("scores must be numbers, got NaN.")
        if not np.isin(labels, (0, 1)).all():
            raise ValueError(f"positive must hold zeros and ones, got {positive!r}.")
        codes = np.ascontiguousarray(labels, dtype=np.int8)
        self._sum += _slide(codes, values, self.n_seen, self._ring, self._labels, self._ordered, self._totals)
        self.n_seen += len(values)

    @property
    def windowed(self) -> float:
        """AUC of the last `window` rows; NaN unless both classes are among them."""
        n_negative, n_positive, won, _ = self._totals.tolist()
        return 0.5 * won / (n_negative * n_positive) if n_negative and n_positive else math.nan

    @property
    def mean(self) -> float:
        """Mean of `windowed` over all rows that had one; NaN if there was none.

        Scores of a model before and after a drift are not to be compared, so there is no AUC of the whole run.
        """
        n_rows = int(self._totals[3])
        return self._sum / n_rows if n_rows else math.nan
