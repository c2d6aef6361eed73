"""A selector that knows the truth: what is selected when nothing is left to find out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array, Rows

__all__ = ["Oracle"]


class Oracle:
    """Selects the relevant features of the next row, which the stream tells it.

    It is a yardstick, no upper bound: a learner may do better with copies of a relevant feature as well. The learner
    is not started anew when the relevant features change.

    Parameters
    ----------
    stream : Stream
        One that knows its relevant features (`relevant_at`).
    """

    def __init__(self, stream: Any) -> None:
        self.stream, self.n_seen_ = stream, 0

    def partial_fit(self, X: Rows, y: Array) -> Oracle:
        """Count the rows."""
        self.n_features_in_ = X.shape[1]
        self.n_seen_ += X.shape[0]
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """Return which features are relevant in the next row, shape (n_features,)."""
        mask = np.zeros(self.n_features_in_, dtype=bool)
        end = self.stream.n_rows  # after the last row nothing is relevant any more: keep what was
        mask[self.stream.relevant_at(self.n_seen_ if end is None else min(self.n_seen_, end - 1))] = True
        return mask
