"""Accuracy, Cohen's kappa and balanced accuracy while rows arrive: over all of them, and over the last ones.

With n rows, a_k those of class k, b_k those predicted as k and h_k those that are both:

    accuracy = sum_k h_k / n                                                              (1)
    kappa    = (accuracy - e) / (1 - e),  e = sum_k (a_k / n) (b_k / n)                   (2)
    balanced = mean over the classes present (a_k > 0) of h_k / a_k                       (3)

So three counts per class do; the table of all pairs of classes is not needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import check_number
from tamis._jit import njit

__all__ = ["RunningMetrics"]


@njit(strict=True)
def _ratios(counts: Any, n_rows: int, out: Any) -> None:
    hits, expected, recall, present, certain = 0, 0.0, 0.0, 0, False
    for k in range(counts.shape[1]):
        actual, predicted, hit = counts[0, k], counts[1, k], counts[2, k]
        hits += hit
        expected += (actual / n_rows) * (predicted / n_rows)
        certain = certain or (actual == n_rows and predicted == n_rows)
        if actual > 0:
            recall += hit / actual
            present += 1
    accuracy = hits / n_rows
    out[0] = accuracy  # (1)
    out[1] = np.nan if certain else (accuracy - expected) / (1.0 - expected)  # (2)
    out[2] = recall / present  # (3)


@njit(strict=True)
def _count(actual: Any, predicted: Any, counts: Any, ring: Any, n_seen: int, out: Any) -> None:
    """Count the rows, drop those that leave the window, and read out the seven numbers."""
    window, hits = ring.shape[1], 0
    slot = n_seen % window
    for i in range(actual.shape[0]):
        a, b = actual[i], predicted[i]
        if n_seen + i >= window:
            old_a, old_b = ring[0, slot], ring[1, slot]
            counts[1, 0, old_a] -= 1
            counts[1, 1, old_b] -= 1
            if old_a == old_b:
                counts[1, 2, old_a] -= 1
        ring[0, slot], ring[1, slot] = a, b
        for scope in range(2):
            counts[scope, 0, a] += 1
            counts[scope, 1, b] += 1
            if a == b:
                counts[scope, 2, a] += 1
        if a == b:
            hits += 1
        slot += 1
        if slot == window:
            slot = 0
    n_seen += actual.shape[0]
    out[0] = hits / actual.shape[0]
    _ratios(counts[0], n_seen, out[1:4])
    _ratios(counts[1], min(n_seen, window), out[4:7])


class RunningMetrics:
    """Accuracy, kappa and balanced accuracy over all rows so far and over the last `window` rows.

    A batch costs O(rows + classes). Memory: 8 bytes per row of the window, 48 per class. Classes may appear at any
    time.

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
    Balanced accuracy is the mean recall over the classes that occur among the rows in question. Kappa is NaN where
    chance agreement is certain: one class only, and nothing else was predicted.

    Examples
    --------
    >>> metrics = RunningMetrics(window=2)
    >>> metrics.update([0, 0, 1, 0], [0, 0, 1, 1])
    >>> metrics.cumulative
    {'accuracy': 0.75, 'kappa': 0.5, 'balanced_accuracy': 0.8333333333333333}
    >>> metrics.windowed
    {'accuracy': 0.5, 'kappa': 0.0, 'balanced_accuracy': 0.5}
    """

    def __init__(self, window: int = 1000) -> None:
        check_number("window", window, low=1, integer=True)
        self.window, self.n_seen = int(window), 0
        self._counts = np.zeros((2, 3, 2), np.int64)  # cumulative, windowed; a, b, h; class
        self._ring = np.zeros((2, self.window), np.int32)  # codes of the last rows: actual, predicted
        self._values = np.full(7, math.nan)

    def update(self, actual: Any, predicted: Any, n_classes: int | None = None) -> None:
        """Count a batch.

        Parameters
        ----------
        actual, predicted : array-like of int, shape (n_rows,)
            Class codes from 0 on.
        n_classes : int, optional
            An upper bound of the codes, which the caller vouches for; by default they are looked through.

        Raises
        ------
        ValueError
            If the two do not have one code each for at least one row, or a code is negative.
        """
        actual = np.ascontiguousarray(actual, dtype=np.int64)
        predicted = np.ascontiguousarray(predicted, dtype=np.int64)
        if actual.ndim != 1 or actual.shape != predicted.shape or actual.shape[0] == 0:
            raise ValueError(
                "actual and predicted must hold one code for each row,"
                f" got shapes {actual.shape} and {predicted.shape}."
            )
        if n_classes is None:
            low = int(min(actual.min(), predicted.min()))
            if low < 0:
                raise ValueError(f"actual and predicted must hold codes from 0 on, got {low}.")
            n_classes = int(max(actual.max(), predicted.max())) + 1
        if n_classes > self._counts.shape[2]:
            missing = max(n_classes, 2 * self._counts.shape[2]) - self._counts.shape[2]
            self._counts = np.pad(self._counts, ((0, 0), (0, 0), (0, missing)))
        _count(actual, predicted, self._counts, self._ring, self.n_seen, self._values)
        self.n_seen += actual.shape[0]

    @property
    def values(self) -> NDArray[np.float64]:
        """Accuracy of the last batch, then accuracy, kappa, balanced accuracy: cumulative, windowed; shape (7,)."""
        return self._values.copy()

    @property
    def cumulative(self) -> dict[str, float]:
        """The three measures over all rows so far; NaN before the first."""
        return self._named(1)

    @property
    def windowed(self) -> dict[str, float]:
        """The three measures over the last `window` rows; NaN before the first."""
        return self._named(4)

    def _named(self, at: int) -> dict[str, float]:
        names = ("accuracy", "kappa", "balanced_accuracy")
        return dict(zip(names, self._values[at : at + 3].tolist(), strict=True))
