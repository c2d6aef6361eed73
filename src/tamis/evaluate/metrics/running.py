"""Measures of a run while rows arrive: over all rows, over the last ones, beside baselines whose labels come late."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._validation import check_number

__all__ = ["Running", "arrivals"]


class Running(ThreadSafe):
    """What measures of classes and of numbers have in common: how they are read.

    Parameters
    ----------
    window : int
        Rows, at least 1.
    """

    _measures: tuple[str, ...] = ()
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
        return self._named(1)

    @property
    def windowed(self) -> dict[str, float]:
        """The measures over the last `window` rows; NaN before the first."""
        return self._named(1 + len(self._measures))

    def _named(self, at: int) -> dict[str, float]:
        names = self._measures
        return dict(zip(names, self._values[at : at + len(names)].tolist(), strict=True))


def arrivals(actual: Any, revealed: Any, upto: Any) -> tuple[Any, Any]:
    """Return the labels that come with a batch, and how many of them are known after each row: by default its own."""
    if revealed is None:
        return actual, np.arange(1, len(actual) + 1)
    upto = np.ascontiguousarray(upto, dtype=np.int64)
    falls = upto[0] < 0 or upto[-1] > len(revealed) or (upto[1:] < upto[:-1]).any() if len(upto) else False
    if upto.shape != actual.shape or falls:
        raise ValueError(
            f"upto must contain, after each of {len(actual)} rows how many of {len(revealed)} labels have come."
        )
    return revealed, upto
