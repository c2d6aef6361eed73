"""Rows with delayed labels, stored by key in bounded memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._shapes import state_error
from tamis._validation import Floats


class PendingRows(ThreadSafe):
    """Rows and their predictions; beyond `max_rows` rows the oldest are dropped.

    A batch takes time in proportion to its own rows, however many are pending. For that, snapshots do not contain the
    pending rows: `add` and `remove` must be the last step of an update.

    Examples
    --------
    >>> rows = PendingRows(max_rows=2)
    >>> rows.add(["a", "b", "c"], np.arange(3.0)[:, None], np.zeros((3, 1)))
    1
    >>> known, X, _ = rows.rows_of(["c", "a"])
    >>> known, X.tolist()
    ([0], [[2.0]])
    >>> rows.remove(["c"])
    >>> rows.rows_of(["c"])[0]
    []
    """

    _shapes = """_slots fixed  _free fixed  _X (s, j) float in (-inf, inf) or nan fixed
        _predictions (s, c) float in (-inf, inf) fixed"""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self._slots: dict[Any, int] = {}  # by key, in the order of arrival
        self._free: list[int] = []  # slots whose content is of no use
        self._X: Floats = np.empty((0, 0))
        self._predictions: Floats = np.empty((0, 0))

    def is_repeated(self, keys: list[Any]) -> bool:
        """Return whether a key occurs twice or is already pending."""
        return len(set(keys)) != len(keys) or not self._slots.keys().isdisjoint(keys)

    def add(self, keys: list[Any], X: Floats, predictions: Floats) -> int:
        """Add rows; return how many were dropped."""
        surplus = max(0, len(self._slots) + len(keys) - self.max_rows)
        oldest = list(itertools.islice(self._slots, surplus))
        if surplus > len(oldest):  # of the batch itself
            keys, X, predictions = keys[-self.max_rows :], X[-self.max_rows :], predictions[-self.max_rows :]
        at = self._slots_for(len(keys), X, predictions)
        self._X[at], self._predictions[at] = X, predictions
        self._slots.update(zip(keys, at, strict=True))
        del self._free[len(self._free) - len(at) :]
        self.remove(oldest)
        return surplus

    def _slots_for(self, n: int, X: Floats, predictions: Floats) -> list[int]:
        """Return free slots; the arrays become larger if there are too few."""
        if not len(self._X):
            self._X, self._predictions = X[:0], predictions[:0]
        size = len(self._X)
        if n > len(self._free):
            more = max(n, size)
            self._X, self._predictions = (
                np.concatenate([array, np.zeros((more, array.shape[1]))])
                for array in (self._X, self._predictions)
            )
            self._free = [*range(size + more - 1, size - 1, -1), *self._free]
        return self._free[len(self._free) - n :]

    def rows_of(self, keys: list[Any]) -> tuple[list[int], Floats, Floats]:
        """Return the indices of the pending keys, and their rows and predictions."""
        known = [i for i, key in enumerate(keys) if key in self._slots]
        if not known:
            return [], np.empty((0, 0)), np.empty((0, 0))
        at = [self._slots[keys[i]] for i in known]
        return known, self._X[at], self._predictions[at]

    def fits(self, n_features: int, low: float, high: float) -> bool:
        """Return whether loaded rows have that many features, and predictions in a range."""
        if not len(self._X):
            return True
        values, width = self._predictions, self._predictions.shape[1]
        return (
            self._X.shape[1] == n_features and width > 0 and bool(((values >= low) & (values <= high)).all())
        )

    def remove(self, keys: list[Any]) -> None:
        """Remove pending rows."""
        self._free += [self._slots.pop(key) for key in keys]

    def check_state(self) -> None:
        """Validate that each loaded key has a row of its own.

        Raises
        ------
        StateError
            If one has none.
        """
        n = len(self._X)
        if sorted([*self._slots.values(), *self._free]) != [*range(n)]:
            raise state_error("The keys of the pending rows do not match the rows")
