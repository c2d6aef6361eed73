"""The next purchase of each row: the group of columns that is worth most for its price, within the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis.base import State
from tamis.cells.held_out import ROUNDING

__all__ = ["Offers"]

Floats = NDArray[np.float64]


@dataclass
class Offers:
    """Prices, and which columns come together.

    Attributes
    ----------
    prices : ndarray of shape (K,)
        Of each column's group.
    group : ndarray of shape (K,), int
        Columns of one group are paid once.
    budget : float
        The most that may be paid for one row.
    max_steps : int
        Columns bought for a row at most.
    """

    prices: Floats
    group: NDArray[np.int64]
    budget: float
    max_steps: int

    def price(self, state: State, position: Array) -> Floats:
        """Return what the column at that position costs each row; nothing if its group was opened."""
        opened = (state.asked & (self.group == self.group[position][:, None])).any(axis=1)
        return np.where(opened, 0.0, self.prices[position])

    def best(self, state: State, believed: Floats, information: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Return the position of most information per price for each row, -1 if there is none, and that rate."""
        if not state.asked.shape[1]:
            return np.full(len(state.asked), -1), np.zeros(len(state.asked))
        information = np.where(state.asked, 0.0, information)
        whole, price = information, np.broadcast_to(self.prices, information.shape)
        if len(np.unique(self.group)) < len(self.group):
            same = self.group[:, None] == self.group
            price = np.where(state.asked @ same, 0.0, self.prices)  # a group is paid once
            # Members of a group are taken to tell different things, up to all there is to tell.
            left = -np.sum(believed * np.log(np.maximum(believed, 1e-300)), axis=1)
            whole = np.minimum(information @ same, left[:, None])
        rate = np.divide(whole, price, out=np.full(price.shape, np.inf), where=price > 0.0)
        refused = state.asked | (whole <= 0.0) | (state.asked.sum(axis=1, keepdims=True) >= self.max_steps)
        if np.isfinite(self.budget):
            refused |= price > self.budget - state.spent[:, None] + ROUNDING
        rate[refused] = -1.0
        # Free values first, then the best rate; within a group, the most telling.
        reached = rate.max(axis=1)
        best = np.where(rate == reached[:, None], information, -1.0).argmax(axis=1)
        return np.where(reached >= 0.0, best, -1), np.maximum(reached, 0.0)
