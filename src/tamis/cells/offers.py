"""The next acquisition of each row: the group of columns with the most information per price, within the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array
from tamis.base import State
from tamis.cells.policy_selection import ROUNDING

__all__ = ["Offers"]

Floats = NDArray[np.float64]


@dataclass
class Offers:
    """Prices, and groups of columns that are acquired together.

    Attributes
    ----------
    prices : ndarray of shape (K,)
        Price of each column's group.
    group : ndarray of shape (K,), int
        Columns of one group are paid once.
    budget : float
        Largest total price of a row.
    max_steps : int
        Largest number of columns acquired for a row.
    """

    prices: Floats
    group: NDArray[np.int64]
    budget: float
    max_steps: int

    def price(self, state: State, position: Array) -> Floats:
        """Return the price of the column at a position for each row; 0 if its group is already paid."""
        paid = (state.asked & (self.group == self.group[position][:, None])).any(axis=1)
        return np.where(paid, 0.0, self.prices[position])

    def best(self, state: State, posterior: Floats, information: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Return the position of most information per price for each row, -1 if there is none, and that rate."""
        if not state.asked.shape[1]:
            return np.full(len(state.asked), -1), np.zeros(len(state.asked))
        information = np.where(state.asked, 0.0, information)
        whole, price = information, np.broadcast_to(self.prices, information.shape)
        if len(np.unique(self.group)) < len(self.group):
            same = self.group[:, None] == self.group
            price = np.where(state.asked @ same, 0.0, self.prices)  # a group is paid once
            # The information of the members of a group is assumed additive, up to the entropy of the class.
            left = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)), axis=1)
            whole = np.minimum(information @ same, left[:, None])
        rate = np.divide(whole, price, out=np.full(price.shape, np.inf), where=price > 0.0)
        refused = state.asked | (whole <= 0.0) | (state.asked.sum(axis=1, keepdims=True) >= self.max_steps)
        if np.isfinite(self.budget):
            refused |= price > self.budget - state.spent[:, None] + ROUNDING
        rate[refused] = -1.0
        # Free values first, then the best rate; within a group, the most informative.
        reached = rate.max(axis=1)
        best = np.where(rate == reached[:, None], information, -1.0).argmax(axis=1)
        return np.where(reached >= 0.0, best, -1), np.maximum(reached, 0.0)
