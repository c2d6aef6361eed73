"""The search of GFSFS: selects the features of a group, and removes the groups that it makes redundant.

Equations (2) to (4) are those of :mod:`tamis.columns.gfsfs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from tamis._validation import Ints
from tamis.dependence.conditional_gain import conditional_gain, refine

_EQUAL = 1e-12  # nats: largest difference of two equal gains by rounding
_DEVIATIONS = 3.0  # margin of a gain over its penalty: with many strata, gains by chance vary widely


@dataclass(frozen=True, eq=False)
class Member:
    """A feature: its position in the order of offers, and its values as codes, shape (n_rows,)."""

    place: int
    codes: Ints


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """The target and the penalties of groups and features.

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

    def gain(self, members: Iterable[Member], others: Iterable[Member]) -> float:
        """Return (1), the gain of the members given others."""
        return self._gain_and_deviation(members, others)[0]

    def _gain_and_deviation(self, members: Iterable[Member], others: Iterable[Member]) -> tuple[float, float]:
        strata: tuple[Ints, int] = np.zeros(len(self.target), dtype=np.int64), 1
        for member in others:
            strata = refine(strata, member.codes)
        fine = strata
        for member in members:
            fine = refine(fine, member.codes)
        return conditional_gain(fine, strata, self.target)

    def add(self, candidates: list[Member], groups: list[list[Member]]) -> list[list[Member]]:
        """Return the selected groups after the candidates arrive as a group."""
        selected = [*chain(*groups)]
        members = self.choose(candidates, selected)
        if self._is_worth_it(members, selected):  # (3)
            return self._without_redundant([*groups, members])
        return self._replace_best(candidates, groups)

    def choose(self, candidates: list[Member], selected: list[Member]) -> list[Member]:
        """Return the candidates that enter their group, given the selected features; all candidates if none enters."""
        members: list[Member] = []
        for candidate in candidates:
            if self._exceeds([candidate], [*selected, *members], self.of_feature):  # (2)
                members.append(candidate)
            else:
                members = self._with_better(candidate, members, selected)
        if not members and self._is_worth_it(candidates, selected):
            members = candidates
        return self._drop_weak(members, selected)

    def _with_better(self, candidate: Member, members: list[Member], selected: list[Member]) -> list[Member]:
        """Return the members with one of them replaced by the candidate, if its gain given the others is larger."""
        best, chosen = _EQUAL, members
        for old in members:
            rest = [member for member in members if member is not old]
            others = [*selected, *rest]
            if self._exceeds([candidate], others, self.of_feature):
                more = self.gain([candidate], others) - self.gain([old], others)
                if more > best:
                    best, chosen = more, [*rest, candidate]
        return chosen

    def _drop_weak(self, members: list[Member], selected: list[Member]) -> list[Member]:
        """Return the members without those whose gain given the others is too small, in order of arrival."""
        needed = members
        for member in members if len(members) > 1 else ():
            rest = [other for other in needed if other is not member]
            if self.gain([member], [*selected, *rest]) <= self.of_feature:
                needed = rest
        return needed

    def _is_worth_it(self, members: list[Member], others: list[Member]) -> bool:
        return bool(members) and self._exceeds(members, others, self._cost(members))

    def _exceeds(self, members: list[Member], others: list[Member], cost: float) -> bool:
        """Return whether the gain of new members significantly exceeds their cost."""
        gain, deviation = self._gain_and_deviation(members, others)
        return gain > cost + _DEVIATIONS * deviation

    def _cost(self, members: list[Member]) -> float:
        return self.of_group + self.of_feature * len(members)

    def _replace_best(self, candidates: list[Member], groups: list[list[Member]]) -> list[list[Member]]:
        """Return the groups with the one replaced by the candidates for which the gain is largest, if any."""
        best, chosen = _EQUAL, groups
        for old in groups:
            rest = [group for group in groups if group is not old]
            others = [*chain(*rest)]
            members = self.choose(candidates, others)
            if not self._is_worth_it(members, others):
                continue
            saved = self.of_feature * (len(old) - len(members))
            more = self.gain(members, others) - self.gain(old, others) + saved
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
