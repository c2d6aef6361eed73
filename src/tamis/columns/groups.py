"""Columns that arrive in groups: divides a block of offers into the groups that are decided on together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tamis._validation import is_integer
from tamis._validation.parameters import Kind, parameter
from tamis.base import ColumnSelector
from tamis.errors import DataError


def _is_grouping(groups: Any) -> bool:
    """Whether this is a dict of nonempty, disjoint lists of columns."""
    if not isinstance(groups, Mapping) or not groups:
        return False
    if not all(isinstance(columns, list | tuple | range) and columns for columns in groups.values()):
        return False
    columns = [column for group in groups.values() for column in group]
    return all(isinstance(column, str) or is_integer(column) for column in columns) and len(
        set(columns)
    ) == len(columns)


@dataclass(eq=False, repr=False, kw_only=True)
class GroupedOffers(ColumnSelector):
    """A selector that decides on groups of columns, by its parameter `groups`.

    A subclass defines `_consider_group` for the columns of a group, and `_consider_block` for the others.
    """

    groups: Any = parameter(
        None, "blocks", Kind("a dict of lists of columns without repetitions", _is_grouping), default=None
    )

    def _parts_of_block(self, names: list[str] | None, m: int) -> Iterator[tuple[slice, bool]]:
        if isinstance(self.groups, str):
            yield slice(0, m), True
        elif not self.groups:
            yield from super()._parts_of_block(names, m)
        else:
            yield from self._runs_of_groups(names, m)

    def _runs_of_groups(self, names: list[str] | None, m: int) -> Iterator[tuple[slice, bool]]:
        """Yield each group of `groups`, and the columns between two groups."""
        group_of = {column: group for group, columns in self.groups.items() for column in columns}
        labels = [self._label(names, j) for j in range(m)]
        places = range(self.n_offered_, self.n_offered_ + m)
        owner = [group_of.get(label, group_of.get(j)) for label, j in zip(labels, places, strict=True)]
        runs = [(group, len(list(members))) for group, members in groupby(owner)]
        named = [group for group, _ in runs if group is not None]
        if len(set(named)) < len(named):
            split = next(group for group in named if named.count(group) > 1)
            raise DataError(
                f"The columns of group {split!r} are not adjacent in the block: put them next to each other."
            )
        start = 0
        for group, width in runs:
            if group is not None:
                yield slice(start, start + width), True
            else:
                parts = super()._parts_of_block(None, width)
                yield from ((slice(start + part.start, start + part.stop), False) for part, _ in parts)
            start += width
