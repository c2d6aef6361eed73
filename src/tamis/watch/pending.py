"""Rows with delayed labels, stored by key in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._shapes import state_error

__all__ = ["PendingRows"]

Floats = NDArray[np.float64]


class PendingRows(ThreadSafe):
    """Rows and their predictions; beyond `most` rows the oldest are dropped.

    Examples
    --------
    >>> rows = PendingRows(most=2)
    >>> rows.add(["a", "b", "c"], np.arange(3.0)[:, None], np.zeros((3, 1)))
    1
    >>> result, X, _ = rows.take(["c", "a"])
    >>> result, X.tolist()
    ([0], [[2.0]])
    """

    _shapes = "_X? (m, j) float  _predictions? (m, c) float"

    def __init__(self, most: int) -> None:
        self.most = most
        self._keys: list[Any] = []
        self._X: Floats | None = None
        self._predictions: Floats | None = None

    def is_repeated(self, keys: list[Any]) -> bool:
        """Return whether a key occurs twice or is already pending."""
        return len({*keys, *self._keys}) != len(keys) + len(self._keys)

    def add(self, keys: list[Any], X: Floats, predictions: Floats) -> int:
        """Add rows; return how many were dropped."""
        if self._X is None or self._predictions is None:
            self._X, self._predictions = X.copy(), predictions.copy()
        else:
            self._X = np.concatenate([self._X, X])
            self._predictions = np.concatenate([self._predictions, predictions])
        self._keys = self._keys + keys
        surplus = max(0, len(self._keys) - self.most)
        if surplus:
            self._keep(np.arange(len(self._keys)) >= surplus)
        return surplus

    def take(self, keys: list[Any]) -> tuple[list[int], Floats, Floats]:
        """Remove the rows of keys; return the indices of the pending keys, and their rows and predictions."""
        position = {key: i for i, key in enumerate(self._keys)}
        known = [i for i, key in enumerate(keys) if key in position]
        if not known or self._X is None or self._predictions is None:
            return [], np.empty((0, 0)), np.empty((0, 0))
        at = np.array([position[keys[i]] for i in known])
        X, predictions = self._X[at], self._predictions[at]
        stay = np.ones(len(self._keys), dtype=bool)
        stay[at] = False
        self._keep(stay)
        return known, X, predictions

    def _keep(self, stay: NDArray[np.bool_]) -> None:
        assert self._X is not None
        assert self._predictions is not None
        self._X, self._predictions = self._X[stay], self._predictions[stay]
        self._keys = [key for key, stays in zip(self._keys, stay.tolist(), strict=True) if stays]

    def check_state(self) -> None:
        """Validate that the numbers of loaded keys and rows are equal.

        Raises
        ------
        StateError
            If they differ.
        """
        if len(self._keys) != (0 if self._X is None else len(self._X)) or self.is_repeated([]):
            raise state_error("The keys of the pending rows do not match the rows")
