"""The slow twin of :class:`tamis.ByName`: a wide array of all names, in which absent ones are explicit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

__all__ = ["WideColumns"]


class WideColumns:
    """An estimator that learns, from its first row on, a column for each name that a stream will ever have."""

    def __init__(self, estimator: Any, names: Sequence[Hashable], absent: float) -> None:
        self.estimator, self.names, self.absent = estimator, list(names), absent

    def array(self, rows: list[dict[Any, float]]) -> Any:
        """Return the value of each name in each row."""
        X = np.empty((len(rows), len(self.names)))
        for i, row in enumerate(rows):
            for j, name in enumerate(self.names):
                X[i, j] = row.get(name, self.absent)
        return X

    def partial_fit(self, rows: list[dict[Any, float]], y: Any) -> None:
        """Learn from rows."""
        self.estimator.partial_fit(self.array(rows), y)

    def predict_proba(self, rows: list[dict[Any, float]]) -> Any:
        """Return the probability of each class."""
        return self.estimator.predict_proba(self.array(rows))
