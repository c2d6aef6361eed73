"""The search of GFSFS: which features of a group enter, and which selected groups it makes redundant.

Equations (2) to (4) are those of :mod:`tamis.columns.gfsfs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tamis.dependence.conditional_gain import conditional_gain, refine

__all__ = ["GroupSearch", "Member"]

Ints = NDArray[np.int64]
_EQUAL = 1e-12  # nats: how far two gains that are equal may differ by rounding
_DEVIATIONS = 3.0  # by which what enters must exceed its cost: beside many strata, gains of noise vary widely


@dataclass(frozen=True, eq=False)
class Member:
    """A feature: its place in the order of offers, and its values as codes, shape (n_rows,)."""

    place: int
    codes: Ints


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """The target, and what a group and a feature must add to the information about it.

    Attributes
    ----------
    target : ndarray of shape (n_rows,), int64
        Codes from 0.
    of_group, of_feature : float
        Penalties in nats.
    """

    target: Ints
    of_group: float
    of_feature: float

    def gain(self, members: Iterable[Member], given: Iterable[Member]) -> float:
        """Return (1): what the members add about the class to others."""
        return self._gain_and_deviation(members, given)[0]

    def _gain_and_deviation(self, members: Iterable[Member], given: Iterable[Member]) -> tuple[float, float]:
        strata: tuple[Ints, int] = np.zeros(len(self.target), dtype=np.int64), 1
        for member in given:
            strata = refine(strata, member.codes)
        fine = strata
        for member in members:
            fine = refine(fine, member.codes)
        return conditional_gain(fine, strata, self.target)

    def add(self, candidates: list[Member], groups: list[list[Member]]) -> list[list[Member]]:
        """Return the selected groups after these candidates arrived as a group."""
        selected = [*chain(*groups)]
        members = self.choose(candidates, selected)
        if self._is_worth_it(members, selected):  # (3)
            return self._without_redundant([*groups, members])
        return self._replace_best(candidates, groups)

    def choose(self, candidates: list[Member], selected: list[Member]) -> list[Member]:
        """Return the candidates that enter their group, given the selected features; all where none does."""
        members: list[Member] = []
        for candidate in candidates:
            if self._exceeds([candidate], [*selected, *members], self.of_feature):  # (2)
                members.append(candidate)
            else:
                members = self._with_better(candidate, members, selected)
        if not members and self._is_worth_it(candidates, selected):
            members = candidates
        return self._needed(members, selected)

    def _with_better(self, candidate: Member, members: list[Member], selected: list[Member]) -> list[Member]:
        """Return the members with the candidate in place of one of them, if it adds more beside the others."""
        best, chosen = _EQUAL, members
        for old in members:
            rest = [member for member in members if member is not old]
            given = [*selected, *rest]
            if self._exceeds([candidate], given, self.of_feature):
                more = self.gain([candidate], given) - self.gain([old], given)
                if more > best:
                    best, chosen = more, [*rest, candidate]
        return chosen

    def _needed(self, members: list[Member], selected: list[Member]) -> list[Member]:
        """Return the members without those that add too little to the others, in order of arrival."""
        needed = members
        for member in members if len(members) > 1 else ():
            rest = [other for other in needed if other is not member]
            if self.gain([member], [*selected, *rest]) <= self.of_feature:
                needed = rest
        return needed

    def _is_worth_it(self, members: list[Member], given: list[Member]) -> bool:
        return bool(members) and self._exceeds(members, given, self._cost(members))

    def _exceeds(self, members: list[Member], given: list[Member], cost: float) -> bool:
        """Return whether the gain of new members exceeds their cost by more than chance adds."""
        gain, deviation = self._gain_and_deviation(members, given)
        return gain > cost + _DEVIATIONS * deviation

    def _cost(self, members: list[Member]) -> float:
        return self.of_group + self.of_feature * len(members)

    def _replace_best(self, candidates: list[Member], groups: list[list[Member]]) -> list[list[Member]]:
        """Return the groups with the candidates in place of the one whose replacement adds most, if one does."""
        best, chosen = _EQUAL, groups
        for old in groups:
            rest = [group for group in groups if group is not old]
            given = [*chain(*rest)]
            members = self.choose(candidates, given)
            if not self._is_worth_it(members, given):
                continue
            saved = self.of_feature * (len(old) - len(members))
            more = self.gain(members, given) - self.gain(old, given) + saved
            if more > best:  # (4)
                best, chosen = more, [*rest, members]
        return chosen

    def _without_redundant(self, groups: list[list[Member]]) -> list[list[Member]]:
        """Return the groups without earlier features and groups that the last group makes redundant."""
        for old in groups[:-1]:
            others = [*chain(*(group for group in groups if group is not old))]
            needed = [*old]
            for member in old:
                rest = [other for other in needed if other is not member]
                if self.gain([member], [*others, *rest]) <= self.of_feature:
                    needed = rest
            kept = [needed] if needed and self.gain(needed, others) > self._cost(needed) else []
            place = next(i for i, group in enumerate(groups) if group is old)
            groups = [*groups[:place], *kept, *groups[place + 1 :]]
        return groups
