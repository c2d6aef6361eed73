"""What a user determines about columns: prices, columns that are always selected, and columns that go together.

One place for every row selector: `RowSelector` reads the parameters `prices`, `keep` and `groups`, and completes each
selection. A method that adds features one by one multiplies the relevance of each by its `worth`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import short_repr
from tamis.base.prices import Column, PriceList, Tariff, check_groups, own_costs, tariff_of

__all__ = ["ColumnTerms"]

_FREE = 1e-3  # of the smallest positive price: what a free column counts as


@dataclass(frozen=True)
class ColumnTerms:
    """Prices, kept columns and groups of the columns of a selector.

    Attributes
    ----------
    keep : ndarray of shape (n_features,), bool
        Columns that are always selected.
    group : ndarray of shape (n_features,), int
        Columns of one number are selected together.
    worth : ndarray of shape (n_features,), float
        Mean price over the price of each column, or of its group, if acquired first.
    tariff : Tariff or None
        The prices.

    Examples
    --------
    >>> terms = ColumnTerms.of({"a": 1.0, "b": 4.0, "c": 4.0}, ["a"], [["b", "c"]], ["a", "b", "c"], is_named=True)
    >>> terms.complete(np.array([False, True, False])), terms.total(np.array([[True, True, True]]))
    (array([ True,  True,  True]), array([5.]))
    """

    keep: NDArray[np.bool_]
    group: NDArray[np.int64]
    worth: NDArray[np.float64]
    tariff: Tariff | None

    @classmethod
    def of(
        cls, prices: Any, keep: Any, groups: Any, columns: Sequence[Column], *, is_named: bool
    ) -> ColumnTerms:
        """Return the terms of columns with these names, or numbers; raise ValueError if a column is unknown."""
        place = {name: at for at, name in enumerate(columns)}
        if unknown := [name for name in keep or () if isinstance(name, bool) or name not in place]:
            raise ValueError(f"keep names {short_repr(unknown[0])}, which is not a column of X.")
        check_groups(groups, columns)
        kept, group, worth, tariff = (
            np.zeros(len(place), bool),
            np.arange(len(place)),
            np.ones(len(place)),
            None,
        )
        kept[[place[name] for name in keep or ()]] = True
        for members in groups or ():
            inside = [place[name] for name in members]
            group[inside] = min(inside, default=0)
        if prices is not None:
            own = own_costs(prices, columns, is_named=is_named, parameter="prices")
            tariff = tariff_of(prices if isinstance(prices, PriceList) else None, own, groups, columns)
            first = tariff.following(np.zeros((1, len(place)), bool))[0]
            if first.any():
                floor = _FREE * first[first > 0.0].min()
                worth = first.mean() / np.maximum(first, floor)
        return cls(kept, group, worth, tariff)

    def complete(self, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return selections with the kept columns, and all columns of each group that is selected in part."""
        masks = masks | self.keep
        _, number = np.unique(self.group, return_inverse=True)
        selected = np.zeros((*masks.shape[:-1], number.max() + 1), bool)
        for at in np.argwhere(masks):
            selected[(*at[:-1], number[at[-1]])] = True
        completed: NDArray[np.bool_] = selected[..., number]
        return completed

    def total(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the price of each selection, shape (n_selections,); their sizes without prices."""
        if self.tariff is None:
            return masks.sum(axis=1).astype(np.float64)
        return self.tariff.total(np.zeros(masks.shape[1], bool), masks)
