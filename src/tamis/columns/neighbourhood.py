"""The base of selectors by neighbourhood rough sets: features that increase the dependency of the class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from tamis._validation import Array, Floats
from tamis._validation.parameters import SEED, parameter
from tamis.base import ColumnSelector
from tamis.base.trace import ACCEPTED, COLLINEAR, CONSTANT, REJECTED, Verdicts
from tamis.dependence.rough_set import column_dependencies, set_dependency
from tamis.errors import DataError

_COPY = 1.0 - 1e-12  # absolute correlation from which a column is a shifted and scaled copy
_EQUAL = 1e-12  # largest difference of two equal dependencies by rounding


class Member:
    """A selected feature: its position in the order of offers, its values, and the dependency on it alone."""

    def __init__(self, place: int, unit: Floats, alone: float) -> None:
        self.place = place
        self.unit = unit  # values with mean 0 and sample standard deviation 1
        self.alone = alone


@dataclass(eq=False, repr=False, kw_only=True)
class NeighbourhoodSelector(ColumnSelector):
    """A selector with a set of features S, and the dependency gamma of the class on them.

    A subclass defines the neighbours of a row (`_rule`), the dependency that a feature must reach alone
    (`_is_relevant`), when a feature without gain may replace others (`_is_tied`), and how (`_replace_redundant`).
    """

    _counts_rows = True
    _shapes = '_codes (*) any "only compared"  _n_rows in [len(_codes), len(_codes)]'

    random_state: Any = parameter(*SEED, default=0)

    @property
    def dependency_(self) -> float:
        """The dependency of the class on the selected features."""
        return self._gamma

    @abstractmethod
    def _rule(self) -> str:
        """Return the rule by which rows are neighbours, see :mod:`tamis.dependence.rough_set`."""

    @abstractmethod
    def _is_relevant(self, alone: float) -> bool:
        """Return whether a feature is tested together with those selected."""

    @abstractmethod
    def _is_tied(self, gamma: float) -> bool:
        """Return whether the dependency with a feature counts as equal to that without it."""

    @abstractmethod
    def _replace_redundant(self, members: tuple[Member, ...], gamma: float) -> None:
        """Add the last member, which ties, and drop the members that it makes redundant."""

    # -- hooks ---------------------------------------------------------------------------------------------

    def _begin(self, y: Array, weight: Array) -> None:
        self._codes = y
        if len(self._codes) < 3 or (self._codes == self._codes[0]).all():
            raise DataError(
                f"y has {len(self._codes)} sample(s) of {len(np.unique(self._codes))} class(es), but neighbourhoods"
                " need 3 rows or more, of two classes or more."
            )
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._members: tuple[Member, ...] = ()
        self._gamma = 0.0
        self._threshold: float = 0.0  # dependency that a feature must reach alone

    def _consider_block(self, columns: Any) -> Verdicts:
        X = np.asarray(columns.toarray() if sp.issparse(columns) else columns)
        verdicts = Verdicts.empty(X.shape[1])
        alone = column_dependencies(X, self._codes, self._rule())
        alone[np.ptp(X, axis=0) == 0.0] = np.nan
        before = {member.place for member in self._members}
        for j in range(X.shape[1]):
            verdicts.statistic[j], verdicts.threshold[j] = alone[j], self._threshold
            verdicts.decision[j] = self._decide(X[:, j], float(alone[j]), self.n_offered_ + j)
        places = [member.place for member in self._members]
        verdicts.dropped = tuple(before - set(places))
        verdicts.entered = tuple(place - self.n_offered_ for place in places if place not in before)
        return verdicts

    def _decide(self, column: Floats, alone: float, place: int) -> int:
        """Decide on one column; return the decision code."""
        if np.isnan(alone):
            return CONSTANT
        if not self._is_relevant(alone):
            return REJECTED
        column = np.ldexp(column, -np.frexp(np.abs(column).max())[1])  # squares neither overflow nor vanish
        unit = (column - column.mean()) / column.std(ddof=1)
        units = np.stack([*(member.unit for member in self._members), unit])
        if (np.abs(units[:-1] @ unit) >= _COPY * (len(unit) - 1)).any():
            return COLLINEAR
        members = (*self._members, Member(place, unit, alone))
        gamma = self._dependency(units)
        if gamma > self._gamma + _EQUAL:
            self._set_members(members, gamma)
        elif self._members and self._is_tied(gamma):
            self._replace_redundant(members, gamma)
        else:
            return REJECTED
        return ACCEPTED

    # -- sets ----------------------------------------------------------------------------------------------

    def _dependency(self, units: Floats) -> float:
        if len(units) == 1:
            return float(column_dependencies(units.T, self._codes, self._rule())[0])
        return set_dependency(units, self._codes, self._rule())

    @staticmethod
    def _is_equal(one: float, other: float) -> bool:
        return abs(one - other) <= _EQUAL

    def _update_threshold(self) -> None:
        """Set the threshold for the next feature: the mean dependency on each selected feature alone."""
        self._threshold = sum(member.alone for member in self._members) / len(self._members)

    def _set_members(self, members: tuple[Member, ...], gamma: float) -> None:
        self._members, self._gamma = members, gamma
        self._update_threshold()

    def _remove_redundant(
        self, members: tuple[Member, ...], gamma: float, *, zero_only: bool
    ) -> tuple[tuple[Member, ...], float]:
        """Drop members (except the last) whose significance is 0, or is not positive, in random order.

        The significance of a member is the decrease of gamma without it.
        """
        new = members[-1]
        random = np.random.default_rng([self._seed, new.place])
        for old in random.permutation(np.array(members[:-1], dtype=object)).tolist():
            rest = tuple(member for member in members if member is not old)
            without = self._dependency(np.stack([member.unit for member in rest]))
            if self._is_equal(without, gamma) or (without > gamma and not zero_only):
                members, gamma = rest, without
        return members, gamma
