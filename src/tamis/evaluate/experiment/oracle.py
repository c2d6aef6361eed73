"""A selector that knows the relevant features: a standard of comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array, Rows

__all__ = ["Oracle"]


class Oracle:
    """Selects the relevant features of the next row, which the stream tells it.

    It is a reference, not an upper bound: a learner may do better with copies of a relevant feature as well. When the
    relevant features change it signals a drift, and the learner resets with the rows since then (Barddal's thesis,
    Chapter 9, whose oracle compares consecutive rows and so resets hundreds of times in a gradual drift; here once).

    Parameters
    ----------
    stream : Stream
        One that knows its relevant features (`relevant_at`).

    Attributes
    ----------
    drift_detected_ : bool
        Whether other features are relevant to the next row than before the last batch.
    n_replay : int
        How many rows of the last batch came since then.
    """

    def __init__(self, stream: Any) -> None:
        self.stream, self.n_seen_, self.drift_detected_, self.n_replay = stream, 0, False, 0

    def partial_fit(self, X: Rows, y: Array) -> Oracle:
        """Count the rows."""
        self.n_features_in_ = X.shape[1]
        before = self.get_support() if self.n_seen_ else None
        self.n_seen_ += X.shape[0]
        now = self.get_support()
        self.drift_detected_ = before is None or bool((before != now).any())
        self.n_replay = 0
        while (
            self.drift_detected_
            and self.n_replay < X.shape[0]
            and self._is_at(self.n_seen_ - 1 - self.n_replay, now)
        ):
            self.n_replay += 1
        return self

    def _is_at(self, t: int, mask: NDArray[np.bool_]) -> bool:
        return np.array_equal(np.sort(self.stream.relevant_at(t)), np.flatnonzero(mask))

    def get_support(self) -> NDArray[np.bool_]:
        """Return which features are relevant in the next row, shape (n_features,)."""
        mask = np.zeros(self.n_features_in_, dtype=bool)
        end = self.stream.n_rows  # after the last row nothing is relevant any more: keep what was
        mask[self.stream.relevant_at(self.n_seen_ if end is None else min(self.n_seen_, end - 1))] = True
        return mask
