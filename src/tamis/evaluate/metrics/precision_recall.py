"""Average precision, and recall at a precision, over the last rows: more informative than AUC for a rare class.

The rows of the window are ranked by their score, highest first. With the n_+ positive ones, and cut after each
*distinct* score t (rows of one score are accepted together or not at all):

    P(t) = #{positive, score >= t} / #{score >= t},    R(t) = #{positive, score >= t} / n_+
    average precision = sum over t, descending, of (R(t) - R(t before)) P(t)                   (1)
    recall at p       = the largest R(t) of those t with P(t) >= p; 0 if there is none         (2)

An uninformative ranking has an average precision near the share of the positive rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import as_numbers, check_number
from tamis.evaluate.metrics.auc import Ranked

__all__ = ["SlidingPrecisionRecall"]

_FEW = 50  # inserting one row in so many of the window takes as long as sorting the window


@njit(strict=True)
def _slide(
    scores: Any, positive: Any, n_seen: int, ring: Any, is_positive: Any, ranked: Any, is_ranked_positive: Any
) -> None:
    """Insert rows into the window and the ranking; the oldest are removed from both."""
    window = ring.shape[0]
    for i in range(scores.shape[0]):
        slot, n = n_seen % window, min(n_seen, window)
        hole = n  # the free place
        if n == window:
            hole = np.searchsorted(ranked, ring[slot])
            while hole < n - 1 and is_ranked_positive[hole] != is_positive[slot]:
                hole += 1  # among equal scores, any of its class
        ring[slot], is_positive[slot] = scores[i], positive[i]
        while hole > 0 and ranked[hole - 1] > scores[i]:
            ranked[hole], is_ranked_positive[hole] = ranked[hole - 1], is_ranked_positive[hole - 1]
            hole -= 1
        while hole + 1 < min(n + 1, window) and ranked[hole + 1] < scores[i]:
            ranked[hole], is_ranked_positive[hole] = ranked[hole + 1], is_ranked_positive[hole + 1]
            hole += 1
        ranked[hole], is_ranked_positive[hole] = scores[i], positive[i]
        n_seen += 1


@njit(strict=True)
def _walk(scores: Any, positive: Any, n_positive: int, precision: float) -> tuple[float, float]:
    """Return (1) and (2) of rows whose scores ascend."""
    hits, total, before, recall, n = 0, 0.0, 0, 0.0, scores.shape[0]
    for i in range(n):
        at = n - 1 - i
        hits += positive[at]
        if at > 0 and scores[at - 1] == scores[at]:
            continue
        share = hits / (i + 1)
        total += (hits - before) * share
        before = hits
        if share >= precision:
            recall = hits / n_positive
    return total / n_positive, recall


class SlidingPrecisionRecall(Ranked):
    """Average precision and recall at a precision over the last `window` rows, and their means over the run.

    The window is kept sorted: few rows are inserted, many are sorted in. Memory: 18 bytes per row of the window.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 1.
    precision : float in (0, 1], default=0.9
        The precision at which the recall is measured.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.
    mean : tuple of (float, float)
        Average precision and recall of the window, averaged over all rows at which they are defined; NaN before.

    Examples
    --------
    Three of the four highest-ranked rows are positive, the first two of them without error:

    >>> sliding = SlidingPrecisionRecall(window=6)
    >>> sliding.update([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.2, 0.1])
    >>> average_precision, recall = sliding.windowed
    >>> round(average_precision, 3), round(recall, 3)
    (0.917, 0.667)
    """

    _shapes = """
        window (=w)  n_seen in [0, 2**62)  precision float in [0, 1]  _positive (2, w) bool
        _scores (2, w) float in [-inf, inf]  _totals (3) float in [0, inf)
    """

    def __init__(self, window: int = 1000, precision: float = 0.9) -> None:
        check_number("window", window, low=1, integer=True)
        check_number("precision", precision, low=0, high=1, open_low=True)
        self.window, self.precision, self.n_seen = int(window), float(precision), 0
        # In the order of arrival, and ranked by the score, lowest first.
        self._positive, self._scores = np.zeros((2, self.window), dtype=bool), np.zeros((2, self.window))
        self._totals = np.zeros(3)  # average precision and recall, each times its rows; these rows
        self.windowed = (math.nan, math.nan)

    def update(self, positive: Any, scores: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        positive : array-like of bool, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            Larger scores mean that the positive class is more likely.

        Raises
        ------
        ValueError
            If the two do not have one value for each row, or a score is NaN.
        """
        positive, scores = as_numbers("positive", positive).astype(bool), as_numbers("scores", scores)
        if positive.ndim != 1 or positive.shape != scores.shape:
            raise ValueError(
                "positive and scores must contain one value for each row,"
                f" got shapes {positive.shape} and {scores.shape}."
            )
        if np.isnan(scores).any():
            raise ValueError("scores must not contain NaN.")
        n_new, (ring, ranked), (is_positive, is_ranked_positive) = len(scores), self._scores, self._positive
        if _FEW * n_new <= self.window:
            _slide(scores, positive, self.n_seen, ring, is_positive, ranked, is_ranked_positive)
        else:
            kept = min(n_new, self.window)
            slots = (self.n_seen + n_new - kept + np.arange(kept)) % self.window
            ring[slots], is_positive[slots] = scores[n_new - kept :], positive[n_new - kept :]
            n = min(self.n_seen + n_new, self.window)
            order = np.argsort(ring[:n])
            ranked[:n], is_ranked_positive[:n] = ring[order], is_positive[order]
        self.n_seen += n_new
        self.windowed = self._read()
        if not math.isnan(self.windowed[0]):
            self._totals += n_new * np.array([*self.windowed, 1.0])

    def _read(self) -> tuple[float, float]:
        n = min(self.n_seen, self.window)
        scores, positive = self._scores[1, :n], self._positive[1, :n]
        n_positive = int(np.count_nonzero(positive))
        if n_positive == 0:
            return math.nan, math.nan
        measures: tuple[float, float] = _walk(scores, positive, n_positive, self.precision)
        return measures

    @property
    def mean(self) -> tuple[float, float]:
        """Average precision and recall, averaged over the run."""
        rows = float(self._totals[2])
        return (self._totals[0] / rows, self._totals[1] / rows) if rows else (math.nan, math.nan)

    @property
    def values(self) -> tuple[float, ...]:
        """Average precision of the run and of the window, then recall of both."""
        return self.mean[0], self.windowed[0], self.mean[1], self.windowed[1]
