"""Concepts of logical rules.

STAGGER: three concepts about the size, colour and shape of an object (Schlimmer, Granger, Machine Learning 1, 1986).

Size small, medium, large; colour red, blue, green; shape circle, square, triangle. The relevant
features differ between concepts, so the stream has feature drift.

Asset Negotiation: which of five rules makes an agent interested in an offer (Enembreck et al. 2007).

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

BG1-FD, BG2-FD, BG3-FD: three Boolean functions of a few bits among many (Barddal et al.; his thesis, section 4.2).

=====  ==========================================================  ==========
name   class 1 if                                                  relevant
=====  ==========================================================  ==========
BG1    all relevant bits are 1                                     any number
BG2    at least two of the three are 1                             3
BG3    the three are equal                                         3
=====  ==========================================================  ==========

Irrelevant bits are 0 or 1 with probability 1/2. Given the class, ``sampler="uniform"`` draws the relevant bits
uniformly among the combinations of that class. ``sampler="reference"`` reproduces the released generators, with which
the published tables were computed:

- BG1: class 1 sets all to 1; class 0 clears each bit with probability 1/2, until one is 0.
- BG2: class 1 sets one of the three pairs where fewer than two are 1; class 0 sets one and clears the other two.
- BG3: class 1 is 111 with probability 1/3 and 000 with 2/3; class 0 flips one bit where the three are equal.

With the reference sampler, each bit of BG3 alone is weakly relevant (naive Bayes reaches 56.5 % accuracy instead of
50 %, with 10 % of the labels flipped); the argument of the thesis that each is independent of the class is true only
for the uniform sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._validation import Array, Mask, check_choice
from tamis.streams.concepts.concept import Concept, Feature
from tamis.streams.draws import Draws, Ranges

_RED, _GREEN = 0, 2


@dataclass(frozen=True)
class STAGGER(Concept):
    """Class 1 for objects that are small and red (1), green or round (2), medium or large (3).

    Parameters
    ----------
    function : int in [1, 3], default=1
        Number of the rule.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural ones: 1/9, 5/9, 2/3.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Schlimmer, Granger (1986). Incremental Learning from Noisy Data. Machine Learning 1.

    Examples
    --------
    >>> [STAGGER(function).relevant for function in (1, 2, 3)]
    [(0, 1), (1, 2), (0,)]
    """

    function: int = 1
    positive_share: float | None = 0.5

    _limits: ClassVar = {"function": "[1, 3]"}
    features: ClassVar = tuple(Feature.nominal(name, 3) for name in ("size", "color", "shape"))
    tied: ClassVar = (0, 1, 2)  # all columns

    @property
    def relevant(self) -> tuple[int, ...]:  # type: ignore[override]
        """The columns that the rule depends on."""
        return ((0, 1), (1, 2), (0,))[self.function - 1]

    def label(self, values: Array) -> Array:
        """Return 1 for the objects that the rule describes, else 0."""
        size, color, shape = list[Array](values.T)
        if self.function == 1:
            wanted = (size == 0) & (color == _RED)
        elif self.function == 2:
            wanted = (color == _GREEN) | (shape == 0)
        else:
            wanted = size > 0
        return np.asarray(wanted, dtype=np.intp)


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


@dataclass(frozen=True)
class _Bits(Concept):
    """A Boolean function of a few bits."""

    relevant: tuple[int, ...] = (0, 1, 2)
    n_features: int = 10
    sampler: str = "uniform"
    positive_share: float | None = 0.5
    _each: ClassVar = (0.0, 1.0, 2)
    _n_relevant: ClassVar[int | None] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, ("uniform", "reference"))

    def sample_given_class(self, draws: Draws, rows: Array, values: Array, y: Array) -> None:
        """Draw the relevant bits given the class."""
        if self.sampler == "uniform":
            super().sample_given_class(draws, rows, values, y)
        else:
            self._sample_reference(draws, rows, values, y == 1)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        """Change fair bits to match the class, as the released generator does."""
        raise NotImplementedError


@dataclass(frozen=True)
class BG1(_Bits):
    """Class 1 if all relevant bits are 1.

    Parameters
    ----------
    relevant : tuple of int, default=(0, 1, 2)
        The relevant columns, ascending.
    n_features : int, default=10
        Number of bits in a row.
    sampler : {"uniform", "reference"}, default="uniform"
        How the relevant bits are drawn given the class; see the module.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> BG1(relevant=(1, 4)).label(np.array([[1, 1], [1, 0]])).tolist()
    [1, 0]
    """

    _n_relevant: ClassVar[int | None] = None

    def label(self, values: Array) -> Array:
        """Return 1 where all bits are 1."""
        return np.asarray(values.all(axis=1), dtype=np.intp)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        values[one] = 1.0
        zero, round_ = np.flatnonzero(~one), 0
        while len(zero):
            values[zero] *= draws.child(round_).uniform(rows[zero], values.shape[1]) < 0.5
            zero, round_ = zero[values[zero].all(axis=1)], round_ + 1


@dataclass(frozen=True)
class BG2(_Bits):
    """Class 1 if at least two of three bits are 1.

    Parameters
    ----------
    relevant : tuple of three int, default=(0, 1, 2)
        The relevant columns, ascending.
    n_features : int, default=10
        Number of bits in a row.
    sampler : {"uniform", "reference"}, default="uniform"
        How the relevant bits are drawn given the class; see the module.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one, 1/2.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> BG2().label(np.array([[1, 0, 1], [0, 0, 1]])).tolist()
    [1, 0]
    """

    def label(self, values: Array) -> Array:
        """Return 1 where at least two bits are 1."""
        return np.asarray(values.sum(axis=1) >= 2, dtype=np.intp)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        chosen = np.arange(3) == np.floor(3 * draws.uniform(rows, 1))
        few = one & (values.sum(axis=1) < 2)
        values[few] = np.maximum(values[few], ~chosen[few])
        values[~one] = chosen[~one]


@dataclass(frozen=True)
class BG3(_Bits):
    """Class 1 if three bits are equal: no single bit, and with a fair sampler no pair, is informative about the class.

    Parameters
    ----------
    relevant : tuple of three int, default=(0, 1, 2)
        The relevant columns, ascending.
    n_features : int, default=10
        Number of bits in a row.
    sampler : {"uniform", "reference"}, default="uniform"
        How the relevant bits are drawn given the class; see the module.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one, 1/4.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> BG3().label(np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1]])).tolist()
    [1, 0, 1]
    """

    def label(self, values: Array) -> Array:
        """Return 1 where the three bits are equal."""
        return np.asarray(values.sum(axis=1) % 3 == 0, dtype=np.intp)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        third = np.floor(3 * draws.uniform(rows, 1))
        values[one] = third[one] == 0
        equal = ~one & (values.sum(axis=1) % 3 == 0)
        values[equal] = np.abs(values[equal] - (np.arange(3) == third[equal]))


# -- AGRAWAL: ten rules that grant a loan from nine facts about a person (Agrawal, Imielinski, Swami, TKDE 1993)

# Class 0 ("group A") if the rule is satisfied, otherwise class 1. Age bands: below 40, 40 to 59, and 60 or older;
# ``[a, b]`` is closed.
#
# ==  =============================================================================================  ==================
# f   rule                                                                                           relevant
# ==  =============================================================================================  ==================
# 1   the first or the last age band                                                                 age
# 2   salary in [50k, 100k], [75k, 125k], [25k, 75k] by band                                         age, salary
# 3   elevel in {0, 1}, {1, 2, 3}, {2, 3, 4} by band                                                 age, elevel
# 4   as 2 with [25k, 75k], [50k, 100k], [50k, 100k] where 3 holds, else the intervals of 2          age, elevel, salary
#     with the second one [75k, 125k] and the third [25k, 75k]
# 5   loan in [100k, 300k], [200k, 400k], [300k, 500k] where 2 holds, else in                        age, salary, loan
#     [200k, 400k], [300k, 500k], [100k, 300k]
# 6   as 2 with salary + commission                                                                  + commission
# 7   2/3 (salary + commission) - loan/5 - 20k > 0                                                   three of them
# 8   2/3 (salary + commission) - 5k elevel - 20k > 0                                                three of them
# 9   2/3 (salary + commission) - 5k elevel - loan/5 - 10k > 0                                       four of them
# 10  2/3 (salary + commission) - 5k elevel + equity/5 - 10k > 0, equity = hvalue (hyears - 20)/10   five of them
#     from 20 years on, else 0
# ==  =============================================================================================  ==================
#
# The values are perturbed after the class is determined, which gives a fuzzy boundary as in the paper, not label
# noise. Defects of other implementations, not reproduced here: MOA perturbs hvalue within [0, 135k], where nearly all
# values are then clipped (also with `moa_compat`); River inverts the classes of rules 1 to 6, tests salary instead of
# loan in rule 5, draws commissions up to 85k and computes house values from 8 - zipcode.

_LOAN_FEATURES = (
    Feature("salary", 20e3, 150e3), Feature("commission", 0.0, 75e3), Feature("age", 20.0, 80.0),
    Feature.nominal("elevel", 5), Feature.nominal("car", 20), Feature.nominal("zipcode", 9),
    Feature("hvalue", 50e3, 1350e3), Feature("hyears", 1.0, 30.0), Feature("loan", 0.0, 500e3),
)  # fmt: skip
_RELEVANT = (
    (2,), (0, 2), (2, 3), (0, 2, 3), (0, 2, 8), (0, 1, 2), (0, 1, 8), (0, 1, 3), (0, 1, 3, 8), (0, 1, 3, 6, 7),
)  # fmt: skip
# House values are represented by a factor in [0.5, 1.5).
_RANGES = Ranges(
    np.array([20e3, 10e3, 20, 0, 0, 0, 0.5, 1, 0]),
    np.array([130e3, 65e3, 61, 5, 20, 9, 1, 30, 500e3]),
    np.array([False, False, True, True, True, True, False, True, False]),
)

# Rules 8 and 10 are satisfied except for 1.9 % and 0.2 % of rows, whose salary and commission are below these bounds.
_RARE = {8: (50e3, 40e3), 10: (35e3, 25e3)}


def _within(values: Array, kind: Array, *intervals: tuple[float, float]) -> Mask:
    """Return whether each value lies in the closed interval of its kind."""
    low, high = np.array(intervals, dtype=np.float64).T
    return (low[kind] <= values) & (values <= high[kind])


def _rule(f: int, values: Array) -> Mask:
    """Return where a rule is satisfied."""
    columns: list[Array] = list(values.T)
    salary, commission, age, elevel, _, _, hvalue, hyears, loan = columns
    band: Array = (age >= 40).astype(np.intp) + (age >= 60)
    if f == 1:
        return np.asarray(band != 1)
    if f in (2, 6):
        income = salary if f == 2 else salary + commission
        return _within(income, band, (50e3, 100e3), (75e3, 125e3), (25e3, 75e3))
    if f in (3, 4):
        fits = _within(elevel, band, (0, 1), (1, 3), (2, 4))
        low, mid, high = (25e3, 75e3), (50e3, 100e3), (75e3, 125e3)
        return fits if f == 3 else _within(salary, band + 3 * fits, mid, high, low, low, mid, mid)
    if f == 5:
        fits = _within(salary, band, (50e3, 100e3), (75e3, 125e3), (25e3, 75e3))
        low, mid, high = (100e3, 300e3), (200e3, 400e3), (300e3, 500e3)
        return _within(loan, band + 3 * fits, mid, high, low, low, mid, high)
    left = 2 / 3 * (salary + commission) - (20e3 if f in (7, 8) else 10e3)
    if f != 7:
        left -= 5e3 * elevel
    if f in (7, 9):
        left -= loan / 5
    if f == 10:
        left += hvalue * np.maximum(hyears - 20, 0) / 10 / 5
    return left > 0


@dataclass(frozen=True)
class Agrawal(Concept):
    """Class 0 if the chosen one of ten rules about a person is satisfied, otherwise class 1.

    Parameters
    ----------
    function : int in [1, 10], default=1
        Number of the rule.
    perturbation : float in [0, 1], default=0.05
        Largest perturbation of numeric values, relative to their range, after the class has been determined.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one.
    moa_compat : bool, default=False
        Perturb house values as MOA does: within [0, 135,000], regardless of the zipcode.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Agrawal, Imielinski, Swami (1993). Database Mining: A Performance Perspective. IEEE TKDE 5(6).

    Examples
    --------
    >>> concept = Agrawal(function=3)
    >>> [concept.features[j].name for j in concept.relevant]
    ['age', 'elevel']
    """

    function: int = 1
    perturbation: float = 0.05
    positive_share: float | None = 0.5
    moa_compat: bool = False

    _limits: ClassVar = {"function": "[1, 10]", "perturbation": "[0, 1]"}
    _ranges: ClassVar = _RANGES
    features: ClassVar = _LOAN_FEATURES
    # All columns: commission depends on salary, and the value of a house on its zipcode.
    tied: ClassVar = tuple(range(9))

    @property
    def relevant(self) -> tuple[int, ...]:  # type: ignore[override]
        """The columns that the rule depends on."""
        return _RELEVANT[self.function - 1]

    def shape(self, values: Array) -> Array:
        """Return rows with no commission for salaries of 75,000 or more, and house values by zipcode."""
        values[values[:, 0] >= 75e3, 1] = 0.0
        values[:, 6] *= (9 - values[:, 5]) * 100e3
        return values

    def label(self, values: Array) -> Array:
        """Return 0 if the rule is satisfied, else 1."""
        return (~_rule(self.function, values)).astype(np.intp)

    def sample_given_class(self, draws: Draws, rows: Array, values: Array, y: Array) -> None:
        """Redraw rows until they have the required class; for a rare class, only from the range where it occurs."""
        if self.function in _RARE:
            span = _RANGES.span.copy()
            span[:2] = np.array(_RARE[self.function]) - _RANGES.low[:2]
            one = np.flatnonzero(y == 1)
            poor = values[one]
            self._redraw(
                draws.child("rare"), rows[one], poor, y[one], Ranges(_RANGES.low, span, _RANGES.whole)
            )
            values[one] = poor
        super().sample_given_class(draws, rows, values, y)

    def perturb(self, draws: Draws, rows: Array, values: Array) -> Array:
        """Return the numbers with a small perturbation, within their ranges."""
        if not self.perturbation:
            return values
        move = self.perturbation * (2 * draws.uniform(rows, 6) - 1)
        worth = (9 - values[:, 5]) * 100e3
        house = (0.0, 135e3) if self.moa_compat else (worth / 2, worth * 1.5)
        commission = values[:, 1]
        earns = commission > 0
        columns = ((0, 20e3, 150e3), (1, 10e3, 75e3), (2, 20, 80), (6, *house), (7, 1, 30), (8, 0, 500e3))
        for i, (j, low, high) in enumerate(columns):
            span = worth if j == 6 else high - low
            moved = np.clip(values[:, j] + span * move[:, i], low, high)
            values[:, j] = np.where(earns, moved, 0.0) if j == 1 else np.rint(moved) if j in (2, 7) else moved
        return values
