"""Classifiers that buy in one order for all rows: each row is at a stage, and either goes on or stops."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis.base import CellClassifier, State
from tamis.base.cells import Purchases
from tamis.cells.bins import Bins
from tamis.cells.network import Chain
from tamis.cells.stopping import updated
from tamis.cells.tree import ExactChain

__all__ = ["FixedOrder"]


class FixedOrder(CellClassifier):
    """Asks for the features in the order of `candidates_`; a subclass says for which rows the next one pays."""

    _bins: Bins  # of the candidates
    _chain: Chain | ExactChain  # what each value says of the class

    @abstractmethod
    def _goes_on(self, k: int, posterior: NDArray[np.float64], values: Array) -> NDArray[np.bool_]:
        """Return for which rows at stage k the k-th feature pays."""

    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        return self._bins.of(positions).codes(values)

    def _next(self, state: State) -> NDArray[np.int64]:
        found = np.full(len(state.stage), -1)
        self._take_what_is_known(state)
        for k in np.unique(state.stage[state.stage < len(self._chain)]):
            mine = state.stage == k
            found[mine] = np.where(self._goes_on(int(k), state.posterior[mine], state.values[mine]), k, -1)
        return found

    def _walk_block(self, X: Rows, rows: Array, trace: Purchases | None) -> State:
        """The same walk for rows that are all at one stage: a stage at a time, nothing copied but what goes on."""
        values, codes = self._cells(X, rows)
        state = self._start(len(rows))
        alive = np.arange(len(rows))
        for k in range(len(self._chain)):
            known, posterior = codes[alive], state.posterior[alive]
            pays = self._goes_on(k, posterior, known)
            alive, known = alive[pays], known[pays]
            if not len(alive):
                break
            after = updated(self._chain, k, posterior[pays], known, known[:, k])
            state.posterior[alive], state.stage[alive] = after, k + 1
            at = np.full(len(alive), k)
            price = np.full(len(alive), self.prices_[k])
            self._pay(rows[alive], at, known[:, k], price, values[alive, k], after, trace)
        return state

    def _take_what_is_known(self, state: State) -> None:
        """Move rows on whose next value was given before it was asked for."""
        while True:
            rows = np.flatnonzero(state.stage < len(self._chain))
            rows = rows[state.asked[rows, state.stage[rows]]]
            if not len(rows):
                return
            part = state.of(rows)
            self._advance(part, part.values[np.arange(len(rows)), part.stage])
            state.put(rows, part)

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        rows = np.arange(len(position))
        state.values[rows, position] = code
        state.asked[rows, position] = True
        due = np.flatnonzero(position == state.stage)
        part = state.of(due)
        self._advance(part, code[due])
        state.put(due, part)

    def _advance(self, state: State, code: Array) -> None:
        """Take the value of each row's own stage into its posterior."""
        for k in np.unique(state.stage):
            mine = state.stage == k
            before, known = state.posterior[mine], state.values[mine]
            state.posterior[mine] = updated(self._chain, int(k), before, known, code[mine])  # (3)
        state.stage += 1
