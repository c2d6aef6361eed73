"""Groups of columns that are treated as one feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tamis._validation import Ints, columns_of, short_repr


def group_columns(
    groups: Mapping[str, list[Any]] | None, n_columns: int, names: list[str] | None
) -> tuple[Ints, list[Any]]:
    """Return the feature of each column, and the names of the features: the groups, then the other columns.

    Raises
    ------
    ValueError
        If a group is empty, or shares a column with another one.

    Examples
    --------
    >>> group_columns({"colour": ["red", "blue"]}, 3, ["red", "size", "blue"])
    (array([0, 1, 0]), ['colour', 'size'])
    """
    group_of = np.full(n_columns, -1, dtype=np.int64)
    for g, (name, columns) in enumerate((groups or {}).items()):
        members = columns_of(columns, n_columns, names, f"groups[{name!r}]")
        if not len(members) or (group_of[members] >= 0).any():
            raise ValueError(
                f"groups[{name!r}] must be columns that are in no other group, got {short_repr(columns)}."
            )
        group_of[members] = g
    alone, first = np.flatnonzero(group_of < 0), len(groups or {})
    group_of[alone] = np.arange(first, first + len(alone))
    return group_of, [*(groups or {}), *(int(j) if names is None else names[j] for j in alone)]
