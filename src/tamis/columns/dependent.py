"""The base of selectors that test columns for dependence on the class, given the selected columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from tamis._validation import Array
from tamis._validation.parameters import integer, number, parameter, parameters
from tamis.base import Claims, ColumnSelector
from tamis.base.trace import ACCEPTED, CONSTANT, Verdicts
from tamis.columns.target_shape import warn_rare_class
from tamis.dependence.criterion import Candidate, DependenceTest
from tamis.dependence.fisher_z import FisherZ
from tamis.dependence.g_square import GSquare

_TESTS: dict[str, type[Any]] = {"fisher-z": FisherZ, "g-square": GSquare}


@dataclass(eq=False, repr=False)
class DependenceSelector(ColumnSelector):
    """A selector that tests columns for dependence on the class, given the selected columns.

    Columns that do not depend on the class are rejected in bulk; `_decide` is called for each of the others.
    """

    claims = Claims(equals_rows="exactly", sparse_time=True)
    _counts_rows = True

    _allowed = parameters(max_conditions=integer("[1, inf)"))

    test: str | DependenceTest = parameter(*_TESTS, DependenceTest, default="fisher-z")
    _: KW_ONLY
    alpha: float = parameter(number("(0, 1)"), default=0.01)

    _parts = ("_memory",)

    @property
    def rows_dependent_(self) -> bool:
        """Whether tests are corrected for autocorrelated rows; see :mod:`tamis.dependence.autocorrelation`."""
        return self._memory.rows_dependent_

    @abstractmethod
    def _decide(self, candidate: Candidate) -> tuple[bool, list[int]]:
        """Decide on a column that depends on the class: keep it and drop others, or change nothing.

        Returns
        -------
        accepted : bool
        dropped : list of int
            Indices of the previously kept columns to remove.
        """

    def _begin(self, y: Array, weight: Array) -> None:
        self._memory: DependenceTest = self._make_test().start(y)
        if isinstance(self._memory, FisherZ):
            warn_rare_class(
                y, weight, "too many sparse columns then pass test='fisher-z', choose test='g-square'"
            )
        self._places: tuple[int, ...] = ()  # the offers of the columns kept

    def _make_test(self) -> DependenceTest:
        if isinstance(self.test, DependenceTest):
            return clone(self.test)
        return _TESTS[self.test](self.alpha)

    def _consider_block(self, columns: Any) -> Verdicts:
        verdicts = Verdicts.empty(columns.shape[1])
        screening = self._memory.screen(columns)
        verdicts.statistic[:], verdicts.log_p[:] = screening.strength, screening.log_p
        verdicts.threshold[:] = self._memory.alpha
        before = self._places
        for j in np.flatnonzero(screening.near).tolist():
            column = columns[:, [j]].toarray()[:, 0] if sp.issparse(columns) else columns[:, j]
            candidate = self._memory.candidate(np.ascontiguousarray(column))
            verdicts.statistic[j], verdicts.log_p[j] = candidate.strength, candidate.log_p
            if candidate.constant:
                verdicts.decision[j] = CONSTANT
            elif candidate.dependent and self._add_if_accepted(candidate, self.n_offered_ + j):
                verdicts.decision[j] = ACCEPTED
        verdicts.dropped = tuple(place for place in before if place not in self._places)
        verdicts.entered = tuple(place - self.n_offered_ for place in self._places if place not in before)
        return verdicts

    def _add_if_accepted(self, candidate: Candidate, place: int) -> bool:
        accepted, dropped = self._decide(candidate)
        left = tuple(kept for i, kept in enumerate(self._places) if i not in dropped)
        self._places = (*left, place) if accepted else left
        return accepted
