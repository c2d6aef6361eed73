"""A decision threshold chosen on past rows, and its precision and recall on later rows.

For a rare class, a learner rarely predicts a probability above .5, so its default decisions have a recall near zero.
Here rows are classified with the threshold t that maximises the F1 score on earlier labelled rows:

    F1(t) = 2 #{positive, score >= t} / (#{score >= t} + #{positive})                                (1)

It is updated every 1,000 labelled rows, as the largest score that maximises (1) on the last 10,000.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._validation import Array, as_numbers, check_number

__all__ = ["PastThreshold", "best_threshold"]

_LEAST = 10  # positive rows: with fewer, the best threshold is that of single rows


class PastThreshold(ThreadSafe):
    """Decision threshold with the largest F1 on past rows; its precision and recall on the rows after.

    Memory: 9 bytes per row of the window. The threshold is chosen by sorting the window, 1 ms for 10,000 rows.

    Parameters
    ----------
    window : int, default=10_000
        Number of labelled rows that it is chosen on, at least 1.
    every : int, default=1000
        Number of labelled rows between two updates, at least 1.

    Attributes
    ----------
    value : float
        Rows with at least this score are predicted as positive; infinity until 10 positive rows and `every` rows have
        been seen.
    n_tested, n_positive : int
        Rows that a threshold was tested on, and how many of them are positive.

    Examples
    --------
    Every fourth row is positive, with a score of .3 instead of .1; a threshold of .5 detects none of them:

    >>> threshold = PastThreshold(every=100)
    >>> positive = np.arange(100) % 4 == 0
    >>> for _ in range(2):
    ...     threshold.update(positive, np.where(positive, 0.3, 0.1), np.zeros(100, dtype=bool))
    >>> threshold.value, threshold.scores(), threshold.own_scores()
    (0.3, (1.0, 1.0, 1.0), (nan, 0.0, 0.0))
    """

    _shapes = """
        window in [1, 2**62)  every in [1, 2**62)  value float in [-inf, inf]  n_tested in [0, 2**62)
        n_positive in [0, n_tested]  _since in [0, 2**62)  _scores (n) float in [-inf, inf]  _positive (n) bool
        _hits (2) int64 in [0, n_positive]  _decided (2) int64 in [0, n_tested]
    """

    def __init__(self, window: int = 10_000, every: int = 1000) -> None:
        check_number("window", window, low=1, integer=True)
        check_number("every", every, low=1, integer=True)
        self.window, self.every, self.value = int(window), int(every), math.inf
        self.n_tested = self.n_positive = self._since = 0
        self._scores, self._positive = np.zeros(0), np.zeros(0, dtype=bool)
        # By the threshold, and by the learner itself.
        self._hits, self._decided = np.zeros(2, np.int64), np.zeros(2, np.int64)

    def update(
        self, positive: Any, scores: Any, decided: Any, labelled: tuple[Any, Any] | None = None
    ) -> None:
        """Test the current threshold on a batch; then update it with rows whose labels arrived.

        Parameters
        ----------
        positive : array-like of bool, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            Larger scores mean that the positive class is more likely.
        decided : array-like of bool, shape (n_rows,)
            Which rows the learner itself predicts as positive.
        labelled : (positive, scores), optional
            Rows to learn from, where labels are delayed. By default those of the batch.

        Raises
        ------
        ValueError
            If the arrays do not have one value for each row, or a score is NaN.
        """
        positive, scores = _pair(positive, scores)
        decided = np.asarray(decided, dtype=bool)
        if decided.shape != positive.shape:
            raise ValueError(f"decided must contain one value for each row, got shape {decided.shape}.")
        learned = (positive, scores) if labelled is None else _pair(*labelled)
        if math.isfinite(self.value):
            both = np.stack([scores >= self.value, decided])
            self.n_tested += len(scores)
            self.n_positive += int(np.count_nonzero(positive))
            self._decided = self._decided + np.count_nonzero(both, axis=1)
            self._hits = self._hits + np.count_nonzero(both & positive, axis=1)
        self._learn(*learned)

    def _learn(self, positive: Array, scores: Array) -> None:
        self._positive = np.concatenate([self._positive, positive])[-self.window :]
        self._scores = np.concatenate([self._scores, scores])[-self.window :]
        self._since += len(scores)
        if self._since >= self.every and np.count_nonzero(self._positive) >= _LEAST:
            self._since, self.value = 0, best_threshold(self._positive, self._scores)

    def scores(self) -> tuple[float, float, float]:
        """Return precision, recall and F1 of the threshold on the rows it was tested on; NaN where undefined."""
        return self._scores_of(0)

    def own_scores(self) -> tuple[float, float, float]:
        """Return the same scores for the learner's own decisions, on the same rows."""
        return self._scores_of(1)

    def _scores_of(self, which: int) -> tuple[float, float, float]:
        hits, decided = float(self._hits[which]), float(self._decided[which])
        either = decided + self.n_positive
        return (
            hits / decided if decided else math.nan,
            hits / self.n_positive if self.n_positive else math.nan,
            2.0 * hits / either if either else math.nan,
        )


def best_threshold(positive: Array, scores: Array) -> float:
    """Return the largest score that maximises F1 (1) if rows with at least this score are positive.

    Examples
    --------
    >>> best_threshold(np.array([True, False, True, False]), np.array([0.9, 0.2, 0.4, 0.1]))
    0.4
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # Rows of one score are accepted together or not at all.
    is_last = np.append(ranked[1:] != ranked[:-1], True)
    hits = np.cumsum(positive[order])[is_last]
    n_accepted = np.arange(1, len(ranked) + 1)[is_last]
    return float(ranked[is_last][np.argmax(2.0 * hits / (n_accepted + hits[-1]))])


def _pair(positive: Any, scores: Any) -> tuple[Array, Array]:
    """Return which rows are positive, and their scores."""
    positive, scores = as_numbers("positive", positive).astype(bool), as_numbers("scores", scores)
    if positive.ndim != 1 or positive.shape != scores.shape:
        raise ValueError(
            f"positive and scores must contain one value for each row, got shapes {positive.shape} and {scores.shape}."
        )
    if np.isnan(scores).any():
        raise ValueError("scores must not contain NaN.")
    return positive, scores
