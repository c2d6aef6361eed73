"""Cumulative and windowed measures of a run, with baselines and delayed labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._validation import check_number
from tamis.evaluate.metrics.metric import predicts_numbers

__all__ = ["Running", "arrivals"]


class Running(ThreadSafe):
    """Base class of the measures for classes and for numeric targets.

    Parameters
    ----------
    window : int
        Rows, at least 1.
    """

    _measures: tuple[str, ...] = ()
    bigger_is_better = True
    _shapes = "n_seen in [0, 2**62)"

    def __init__(self, window: int) -> None:
        check_number("window", window, low=1, integer=True)
        self.window, self.n_seen = int(window), 0
        self._values = np.full(1 + 2 * len(self._measures), math.nan)

    @property
    def values(self) -> NDArray[np.float64]:
        """The first measure of the last batch alone, then all of them cumulative, then windowed."""
        return self._values.copy()

    @property
    def cumulative(self) -> dict[str, float]:
        """The measures over all rows so far; NaN before the first."""
        return self._measures_from(1)

    @property
    def windowed(self) -> dict[str, float]:
        """The measures over the last `window` rows; NaN before the first."""
        return self._measures_from(1 + len(self._measures))

    def get(self) -> float:
        """Return the first measure over all rows so far; NaN before the first."""
        return float(self._values[1])

    def works_with(self, model: Any) -> bool:
        """Return whether the predictions of a model can be evaluated: of classes, or of numbers."""
        return predicts_numbers(model) != self.bigger_is_better

    def _measures_from(self, at: int) -> dict[str, float]:
        names = self._measures
        return dict(zip(names, self._values[at : at + len(names)].tolist(), strict=True))


def arrivals(actual: Any, revealed: Any, upto: Any) -> tuple[Any, Any]:
    """Return the labels that arrive with a batch, by default its own, and the number known after each row."""
    if revealed is None:
        return actual, np.arange(1, len(actual) + 1)
    upto = np.ascontiguousarray(upto, dtype=np.int64)
    falls = upto[0] < 0 or upto[-1] > len(revealed) or (upto[1:] < upto[:-1]).any() if len(upto) else False
    if upto.shape != actual.shape or falls:
        raise ValueError(
            f"upto must contain, for each of {len(actual)} rows, how many of {len(revealed)} labels are known."
        )
    return revealed, upto
