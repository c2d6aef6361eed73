"""What a user determines about columns: prices, prior weights, columns always selected, and columns that go together.

One place for every row selector: `RowSelector` reads the parameters `prices`, `keep`, `groups` and `prior`, and
completes each selection. A method that adds features one by one multiplies the relevance of each by its `worth`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamis._validation import Floats, Ints, Mask, short_repr
from tamis.base.prices import Column, PriceList, Tariff, check_groups, own_costs, tariff_of

# Of the smallest positive price: what a free column counts as. It ranks before one of that price unless the latter is
# 1000 times as relevant.
_FREE = 1e-3


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
        Mean price over the price of each column, or of its group, if acquired first; times `prior`.
    tariff : Tariff or None
        The prices.
    prior : ndarray of shape (n_features,), float, or None
        Prior weights, of mean 1.

    Examples
    --------
    >>> terms = ColumnTerms.of({"a": 1.0, "b": 4.0, "c": 4.0}, ["a"], [["b", "c"]], ["a", "b", "c"], is_named=True)
    >>> terms.complete(np.array([False, True, False])), terms.total(np.array([[True, True, True]]))
    (array([ True,  True,  True]), array([5.]))
    """

    keep: Mask
    group: Ints
    worth: Floats
    tariff: Tariff | None
    prior: Floats | None = None

    @classmethod
    def of(
        cls,
        prices: Any,
        keep: Any,
        groups: Any,
        columns: Sequence[Column],
        *,
        is_named: bool,
        prior: Any = None,
    ) -> ColumnTerms:
        """Return the terms of columns with these names, or numbers; raise ValueError if a column is unknown."""
        place = {name: at for at, name in enumerate(columns)}
        for parameter, names in (("keep", keep), ("prior", prior)):
            if unknown := [name for name in names or () if isinstance(name, bool) or name not in place]:
                raise ValueError(f"{parameter} names {short_repr(unknown[0])}, which is not a column of X.")
        check_groups(groups, columns)
        kept = np.zeros(len(place), bool)
        group = np.arange(len(place))
        worth = np.ones(len(place))
        tariff = None
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
        weight = None
        if prior is not None:
            weight = np.array([float(prior.get(name, 1.0)) for name in columns])
            weight /= weight.mean()
            worth = worth * weight
        return cls(kept, group, worth, tariff, weight)

    def per_price(self, scores: Floats) -> Floats:
        """Return how much more relevant each feature is than the least relevant one, per unit of its price."""
        return (scores - scores.min()) * self.worth

    def complete(self, masks: Mask) -> Mask:
        """Return selections with the kept columns, and all columns of each group that is selected in part."""
        masks = masks | self.keep
        selected = np.zeros_like(masks)  # in the place of the first column of each group
        np.logical_or.at(selected.T, self.group, masks.T)
        return selected[..., self.group]

    def total(self, masks: Mask) -> Floats:
        """Return the price of each selection, shape (n_selections,); their sizes without prices."""
        if self.tariff is None:
            return masks.sum(axis=1).astype(np.float64)
        return self.tariff.total(np.zeros(masks.shape[1], bool), masks)


def name_to_position(model: Any, names: Sequence[str] | None) -> None:
    """Replace names by positions in the parameters `prices`, `keep`, `exclude`, `groups` and `prior` of a model.

    A run passes rows without names. Unknown names remain, and are rejected when the model is fitted.
    """
    place: dict[Any, int] = {name: at for at, name in enumerate(names or ())}

    def at(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {place.get(name, name): at(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(at(part) for part in value)
        if isinstance(value, PriceList):
            parts = {one: at(getattr(value, one)) for one in ("prices", "fees", "if_known", "delays")}
            return replace(value, **parts)
        return place.get(value, value) if isinstance(value, str) else value

    params = model.get_params(deep=False) if place and hasattr(model, "get_params") else {}
    named = {
        name: at(params[name]) for name in ("prices", "keep", "exclude", "groups", "prior") if name in params
    }
    if changed := {name: value for name, value in named.items() if params[name] is not None}:
        model.set_params(**changed)
