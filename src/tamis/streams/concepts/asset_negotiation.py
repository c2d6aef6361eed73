"""Asset Negotiation: which of five rules makes an agent interested in an offer (Enembreck et al. 2007).

Class 1: interested. The rules, with the natural share of class 1:

=  ===============================================================================================  ======
f  interested if                                                                                    share
=  ===============================================================================================  ======
1  price=normal and amount=high; or color=brown and price=veryLow and delay=high                    0.0188
2  price=high and amount=veryHigh and delay=high                                                    0.0031
3  price=veryLow and payment=0 and amount=high; or color=red and price=low and payment=30           0.0035
4  color=black and payment=90 and delay=veryLow; or color=magenta and price=high and delay=veryLow  0.0059
5  color=blue and payment=60 and amount=low and delay=normal; or color=cyan and amount=low and      0.0035
   delay=normal
=  ===============================================================================================  ======

A row that must be of class 1 but is not gets the attributes of one of the clauses, each equally likely. Defects of
other implementations, not reproduced here: the released generator sets delay=veryHigh where clause 2 of rule 1 has
high; MOA swaps the classes and then changes the wrong rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._validation import Array
from tamis.streams.concepts.concept import Concept, Feature
from tamis.streams.draws import Draws

_COLOR, _PRICE, _PAYMENT, _AMOUNT, _DELAY = range(5)
_FEATURES = tuple(
    Feature.nominal(name, n)
    for name, n in (("color", 8), ("price", 8), ("payment", 9), ("amount", 8), ("deliveryDelay", 5))
)
# color: black, blue, cyan, brown, red, green, yellow, magenta. payment: 0, 30, 60, 90, ...
# price, amount, deliveryDelay: veryLow, low, normal, high, veryHigh, ...
_RULES: tuple[tuple[dict[int, int], ...], ...] = (
    ({_PRICE: 2, _AMOUNT: 3}, {_COLOR: 3, _PRICE: 0, _DELAY: 3}),
    ({_PRICE: 3, _AMOUNT: 4, _DELAY: 3},),
    ({_PRICE: 0, _PAYMENT: 0, _AMOUNT: 3}, {_COLOR: 4, _PRICE: 1, _PAYMENT: 1}),
    ({_COLOR: 0, _PAYMENT: 3, _DELAY: 0}, {_COLOR: 7, _PRICE: 3, _DELAY: 0}),
    ({_COLOR: 1, _PAYMENT: 2, _AMOUNT: 1, _DELAY: 2}, {_COLOR: 2, _AMOUNT: 1, _DELAY: 2}),
)


@dataclass(frozen=True)
class AssetNegotiation(Concept):
    """Class 1 if one of five rules about an offer is satisfied.

    Parameters
    ----------
    function : int in [1, 5], default=1
        Number of the rule.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one, below 0.02.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Enembreck, Avila, Scalabrin, Barthes (2007). Learning drifting negotiations. Applied Artificial Intelligence 21(9).

    Examples
    --------
    >>> concept = AssetNegotiation(function=2)
    >>> [concept.features[j].name for j in concept.relevant]
    ['price', 'amount', 'deliveryDelay']
    """

    function: int = 1
    positive_share: float | None = 0.5

    _limits: ClassVar = {"function": "[1, 5]"}
    features: ClassVar = _FEATURES
    tied: ClassVar = tuple(range(5))  # all columns

    @property
    def relevant(self) -> tuple[int, ...]:  # type: ignore[override]
        """The columns that the rule depends on."""
        return tuple(sorted({j for clause in self._clauses for j in clause}))

    @property
    def _clauses(self) -> tuple[dict[int, int], ...]:
        return _RULES[self.function - 1]

    def label(self, values: Array) -> Array:
        """Return 1 if one of the clauses is satisfied, else 0."""
        interested = np.zeros(len(values), dtype=np.intp)
        for clause in self._clauses:
            interested |= (values[:, list(clause)] == list(clause.values())).all(axis=1)
        return interested

    def sample_given_class(self, draws: Draws, rows: Array, values: Array, y: Array) -> None:
        """Change rows of class 1 that satisfy no clause so that they satisfy one; redraw rows of class 0 that do."""
        forced = np.flatnonzero((y == 1) & (self.label(values) == 0))
        which = (draws.child("clause").one(rows[forced]) * len(self._clauses)).astype(np.intp)
        for k, clause in enumerate(self._clauses):
            for j, code in clause.items():
                values[forced[which == k], j] = code
        super().sample_given_class(draws, rows, values, y)
