"""Acquisition costs: shared fees, conditional prices and delays.

Blood is drawn and paid for once, and each further test on the sample costs less (Turney 1995, Journal of Artificial
Intelligence Research 2, Section 2). With o the known features of a row, the cost of acquiring feature j next is::

    price(j | o) = min(p_j, min_{k in o} p_{j|k}) + r d_j + sum of the fees of its groups without a member in o      (1)

=========  ============  ============================================================
symbol     here          meaning
=========  ============  ============================================================
p_j        ``prices``    own price of a feature
p_{j|k}    ``if_known``  its price once feature k is known
d_j        ``delays``    time until the value is known
r          ``delay_price``  price of a unit of time
=========  ============  ============================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tamis._validation import Array, Floats, Ints, Mask, as_numbers, short_repr
from tamis._validation.parameters import Kind, number

Column = str | int
_KEYS = ("prices", "fees", "if_known", "delays", "delay_price", "currency", "panels", "units", "ranges")


@dataclass(frozen=True)
class Panel:
    """Features whose values arrive together, for one price and after one delay, such as those of a blood count.

    Parameters
    ----------
    columns : sequence of columns
        They have no prices of their own.
    price : float
    delay : float, default=0.0
    """

    columns: Sequence[Column]
    price: float
    delay: float = 0.0


@dataclass(frozen=True)
class PriceList:
    """Acquisition costs of features, with shared fees, discounts and delays; pass it as `cost`.

    Parameters
    ----------
    prices : float, or mapping from column to float
        Own price of each feature, in [0, 1e100], in the unit of the misclassification costs.
    fees : sequence of (columns, float), optional
        A fee paid with the first acquired value of these features, such as that of a blood draw.
    if_known : mapping from column to mapping from column to float, optional
        ``{"biopsy": {"scan": 30.0}}``: a biopsy costs 30 once the scan is known, if that is below its own price.
    delays : mapping from column to float, optional
        Time until a value is known, in [0, 1e100].
    delay_price : float, default=1.0
        Cost of a unit of time.
    currency : str, default=""
        Appended to amounts.
    panels : mapping from str to Panel, optional
        Features that are acquired together.
    units : mapping from column to str, or to mapping from str to float or (float, float), optional
        The unit of a feature; or its units, its own first, each with the factor (and offset) to the own unit:
        ``{"temperature": {"°C": 1.0, "°F": (5 / 9, -160 / 9)}}``.
    ranges : mapping from column to (float, float), optional
        The range of a feature, beyond which a session asks for the unit; by default that of the rows of `fit`.

    Raises
    ------
    ValueError
        If a price is negative or not finite, or a unit or range has another form.

    References
    ----------
    Turney (1995). Cost-Sensitive Classification. Journal of Artificial Intelligence Research 2.

    Examples
    --------
    Sodium and potassium share a blood draw, so the second costs 1 after the first cost 5 + 1:

    >>> import numpy as np
    >>> from tamis import AdaptiveIFC2F
    >>> from tamis.base import PriceList
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 2)) + y[:, None]
    >>> prices = PriceList(1.0, fees=[([0, 1], 5.0)], currency="EUR")
    >>> model = AdaptiveIFC2F(prices, misclassification_cost=100 * (1 - np.eye(2))).fit(X, y)
    >>> session = model.open()
    >>> session.next_cost
    6.0
    >>> session.observe(0.5)
    >>> session.next_cost, prices.amount(session.cost + session.next_cost)
    (1.0, '7 EUR')
    """

    prices: float | Mapping[Column, float]
    fees: Sequence[tuple[Sequence[Column], float]] = ()
    if_known: Mapping[Column, Mapping[Column, float]] = field(default_factory=dict)
    delays: Mapping[Column, float] = field(default_factory=dict)
    delay_price: float = 1.0
    currency: str = ""
    panels: Mapping[str, Panel] = field(default_factory=dict)
    units: Mapping[Column, str | Mapping[str, Any]] = field(default_factory=dict)
    ranges: Mapping[Column, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = self.prices if isinstance(self.prices, Mapping) else {"every column": self.prices}
        named: list[tuple[str, Any]] = [
            (f"the price of {short_repr(name)}", price) for name, price in table.items()
        ]
        named += [(f"the fee of {short_repr(list(columns))}", fee) for columns, fee in self.fees]
        for name, terms in self.if_known.items():
            named += [
                (f"the price of {short_repr(name)} if {short_repr(k)} is known", p) for k, p in terms.items()
            ]
        named += [(f"the delay of {short_repr(name)}", delay) for name, delay in self.delays.items()]
        for name, panel in self.panels.items():
            named += [
                (f"the price of panel {name}", panel.price),
                (f"the delay of panel {name}", panel.delay),
            ]
        for label, price in [*named, ("delay_price", self.delay_price)]:
            if isinstance(price, bool) or not isinstance(price, int | float) or not 0.0 <= price <= 1e100:
                raise ValueError(f"{label} is {short_repr(price)}: it must be a number in [0, 1e100].")
        for name, limits in self.ranges.items():
            if not _are_numbers(limits, 2) or not limits[0] < limits[1]:
                raise ValueError(
                    f"the range of {short_repr(name)} is {short_repr(limits)}: it must be two numbers, the lower first."
                )
        for name in self.units:
            self.factors(name)
        members = [column for panel in self.panels.values() for column in panel.columns]
        priced = {*self.delays, *(self.prices if isinstance(self.prices, Mapping) else ())}
        for column in members:
            if column in priced or members.count(column) > 1:
                what = (
                    "is in two panels"
                    if members.count(column) > 1
                    else "is in a panel and has a price or a delay of its own"
                )
                raise ValueError(f"{short_repr(column)} {what}: give it one of them.")

    def panel_of(self, column: Column) -> str | None:
        """Return the name of the panel of a feature, if it has one."""
        return next((name for name, panel in self.panels.items() if column in panel.columns), None)

    def all_fees(self) -> list[tuple[Sequence[Column], float]]:
        """Return the fees that are paid with the first of some features, those of panels among them."""
        return [
            *self.fees,
            *((one.columns, one.price + self.delay_price * one.delay) for one in self.panels.values()),
        ]

    def factors(self, column: Column) -> dict[str, tuple[float, float]]:
        """Return the factor and the offset of each unit of a feature, its own unit first.

        >>> PriceList(1.0, units={"weight": {"kg": 1, "lb": 0.4536}}).factors("weight")
        {'kg': (1.0, 0.0), 'lb': (0.4536, 0.0)}
        """
        declared = self.units.get(column, {})
        factors = {}
        for unit, terms in ({declared: 1.0} if isinstance(declared, str) else dict(declared)).items():
            pair = [terms, 0.0] if isinstance(terms, int | float) else terms
            if not isinstance(unit, str) or not _are_numbers(pair, 2) or not pair[0]:
                raise ValueError(
                    f"the unit {short_repr(unit)} of {short_repr(column)} has {short_repr(terms)}: give a factor other"
                    " than 0, or a factor and an offset."
                )
            factors[unit] = float(pair[0]), float(pair[1])
        return factors

    @classmethod
    def from_dict(cls, content: Mapping[Any, Any]) -> PriceList:
        """Return the price list of a JSON object: prices by feature, or an object with these keys.

        Each fee is an object with "columns" and "fee".

        Raises
        ------
        ValueError
            If a key is unknown, or a part has an invalid form.
        """
        if "prices" not in content:
            return cls(dict(content))
        if unknown := [key for key in content if key not in _KEYS]:
            raise ValueError(f"A price list has no part {short_repr(unknown[0])}: use {', '.join(_KEYS)}.")
        parts = dict(content)
        try:
            parts["fees"] = [([*one["columns"]], one["fee"]) for one in content.get("fees", ())]
            parts["panels"] = {name: Panel(**terms) for name, terms in content.get("panels", {}).items()}
            parts["if_known"] = {name: dict(terms) for name, terms in content.get("if_known", {}).items()}
            parts |= {key: dict(content.get(key, {})) for key in ("delays", "units", "ranges")}
        except (TypeError, KeyError, AttributeError, ValueError):
            raise ValueError(
                'A price list must look like {"prices": {"age": 0, "sodium": 1}, "fees": [{"columns": ["sodium"],'
                ' "fee": 5}], "if_known": {"biopsy": {"scan": 30}}, "delays": {"culture": 48}}.'
            ) from None
        return cls(**parts)

    def amount(self, price: float) -> str:
        """Return an amount with its currency."""
        return (
            f"{price:.4g} {self.currency}".strip() if price < 1e4 else f"{price:,.0f} {self.currency}".strip()
        )

    def scaled(self, factor: float) -> PriceList:
        """Return the list with all prices and fees multiplied by a factor.

        >>> PriceList({"age": 0.0, "scan": 2.0}, fees=[(["scan"], 5.0)]).scaled(0.5).fees
        [(['scan'], 2.5)]
        """
        prices = self.prices
        return replace(
            self,
            prices={name: factor * price for name, price in prices.items()}
            if isinstance(prices, Mapping)
            else factor * prices,
            fees=[(columns, factor * fee) for columns, fee in self.fees],
            if_known={
                name: {k: factor * price for k, price in terms.items()}
                for name, terms in self.if_known.items()
            },
            delay_price=factor * self.delay_price,
            panels={name: replace(one, price=factor * one.price) for name, one in self.panels.items()},
        )

    def own_prices(self, columns: Sequence[Column], parameter: str = "cost") -> dict[Column, float]:
        """Return the own price of each feature, including its delay.

        Raises
        ------
        ValueError
            If the list names an unknown feature, or has no price for one.
        """
        known, named = set(columns), {*self.delays, *self.units, *self.ranges}
        for members, _ in self.all_fees():
            named |= set(members)
        for name, terms in self.if_known.items():
            named |= {name, *terms}
        if isinstance(self.prices, Mapping):
            named |= set(self.prices)
        if unknown := sorted(named - known, key=str):
            raise ValueError(f"{parameter} names {unknown[0]!r}, which is not a column of X.")
        price = (
            dict.fromkeys(columns, self.prices) if not isinstance(self.prices, Mapping) else dict(self.prices)
        )
        price |= {name: 0.0 for panel in self.panels.values() for name in panel.columns}
        if lacking := [name for name in columns if name not in price]:
            raise ValueError(f"{parameter} has no entry for column {lacking[0]!r}.")
        return {
            name: float(price[name]) + self.delay_price * float(self.delays.get(name, 0.0))
            for name in columns
        }


def _are_numbers(values: Any, n: int) -> bool:
    is_pair = isinstance(values, Sequence) and not isinstance(values, str) and len(values) == n
    return is_pair and all(
        isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
        for value in values
    )


PRICES = (
    number("[0, 1e100]"),
    Kind("an array of numbers", lambda value: np.shape(value) != ()),
    Kind("a mapping of names to numbers", lambda value: isinstance(value, Mapping)),
    Kind("a PriceList", lambda value: isinstance(value, PriceList)),
)


@dataclass
class Tariff:
    """The next cost of each feature of a model, given the known features of a row, by (1).

    Attributes
    ----------
    own : ndarray of shape (K,)
    member : ndarray of shape (G, K), bool
    fee : ndarray of shape (G,)
        Fee of each group, paid with its first known member.
    pairs : ndarray of shape (P, 2), int
        A feature, and the one that makes it cheaper.
    given : ndarray of shape (P,)
        Its price once the other one is known.

    Examples
    --------
    >>> tariff = Tariff(np.array([1.0, 1.0]), np.array([[True, True]]), np.array([5.0]))
    >>> tariff.following(np.array([[False, False], [True, False]]))
    array([[6., 6.],
           [1., 1.]])
    >>> tariff.total(np.array([False, False]), np.array([[True, True], [False, True]]))
    array([7., 6.])
    """

    own: Floats
    member: Mask
    fee: Floats
    pairs: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    given: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def varies(self) -> bool:
        """Whether a price depends on the known features."""
        return len(self.fee) > 0 or len(self.pairs) > 0

    def following(self, known: Array) -> Floats:
        """Return the cost of acquiring each feature next, shape (n_rows, K), given the known features."""
        price = np.array(self._own(known))
        # In a fixed order: a row gives the same bits in any batch.
        for fee, member in zip(self.fee, self.member, strict=True):
            price += np.where(known[:, member].any(axis=1), 0.0, fee)[:, None] * member
        return price

    def total(self, known: Array, subsets: Array) -> Floats:
        """Return the total cost of each subset of features, shape (n_subsets, K), for one row."""
        own = self._own(known[None])[0]
        due = self.fee * ~(self.member & known).any(axis=1)
        paid = subsets & ~known
        totals: Floats = np.where(paid, own, 0.0).sum(axis=1)
        for fee, member in zip(due, self.member, strict=True):
            totals += np.where((paid & member).any(axis=1), fee, 0.0)
        return totals

    def take(self, columns: Array) -> Tariff:
        """Return the tariff of some features."""
        place = np.full(len(self.own), -1)
        place[columns] = np.arange(len(columns))
        pairs = place[self.pairs]
        mine, some = (pairs >= 0).all(axis=1), self.member[:, columns].any(axis=1)
        return Tariff(
            self.own[columns], self.member[:, columns][some], self.fee[some], pairs[mine], self.given[mine]
        )

    def in_order(self) -> Floats:
        """Return the cost of each feature after all those before it."""
        K = len(self.own)
        return np.diagonal(self.following(np.tri(K, K, -1, dtype=bool))).copy() if self.varies else self.own

    def _own(self, known: Array) -> Floats:
        own = np.broadcast_to(self.own, known.shape)
        if not len(self.pairs):
            return own
        own = own.copy()
        for (column, other), price in zip(self.pairs, self.given, strict=True):
            own[:, column] = np.where(known[:, other], np.minimum(own[:, column], price), own[:, column])
        return own


def own_costs(cost: Any, columns: Sequence[Column], *, is_named: bool, parameter: str = "cost") -> Floats:
    """Return the price of each feature without fees, from a parameter of that name.

    Raises
    ------
    ValueError
        If a column is unknown or has no price, or a price is invalid.
    """
    n = len(columns)
    if isinstance(cost, PriceList):
        costs = np.array(list(cost.own_prices(columns, parameter).values()))
    elif isinstance(cost, Mapping):
        if not is_named and any(isinstance(name, str) for name in cost):
            raise ValueError(f"{parameter} names its features, but X has no column names: pass a frame.")
        names = list(columns)
        if unknown := sorted(set(cost) - set(names), key=str):
            raise ValueError(f"{parameter} names {unknown[0]!r}, which is not a column of X.")
        if lacking := [name for name in names if name not in cost]:
            raise ValueError(f"{parameter} has no entry for column {lacking[0]!r}.")
        costs = as_numbers(parameter, [cost[name] for name in names])
    else:
        costs = as_numbers(parameter, cost)
        if costs.ndim == 0:
            costs = np.full(n, float(costs))
    if costs.shape != (n,):
        raise ValueError(
            f"{parameter} has {costs.size} entries for {n} features: give one per feature, or a single number."
        )
    possible = (costs == 0.0) | ((costs >= 1e-100) & (costs <= 1e100))  # divisors of the gains
    if not possible.all():
        at = int(np.argmin(possible))
        raise ValueError(f"{parameter} of column {at} is {costs[at]}: it must be 0, or from 1e-100 to 1e100.")
    return costs


def tariff_of(cost: PriceList | None, own: Floats, groups: Any, columns: Sequence[Column]) -> Tariff:
    """Return the tariff of some features.

    Parameters
    ----------
    cost : PriceList or None
    own : ndarray of shape (K,)
        Prices without fees.
    groups : sequence of sequences of columns, or None
        Each is paid once, at the price of its most expensive member.
    columns : sequence of K names or numbers
    """
    place = {name: at for at, name in enumerate(columns)}
    own, member, fee = own.copy(), [], []
    for members, price in cost.all_fees() if cost is not None else ():
        member.append(np.isin(np.arange(len(columns)), [place[name] for name in members if name in place]))
        fee.append(float(price))
    for members in groups or ():
        inside = np.isin(np.arange(len(columns)), [place[name] for name in members if name in place])
        if inside.any():
            member.append(inside)
            fee.append(float(own[inside].max()))
            own[inside] = 0.0
    pairs, discounted = [], []
    for name, others in (cost.if_known if cost is not None else {}).items():
        for other, price in others.items():
            if name in place and other in place:
                delay = cost.delay_price * float(cost.delays.get(name, 0.0)) if cost is not None else 0.0
                pairs.append((place[name], place[other]))
                discounted.append(float(price) + delay)
    return Tariff(
        own, np.array(member, dtype=bool).reshape(-1, len(columns)), np.array(fee, dtype=np.float64),
        np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(discounted, dtype=np.float64),
    )  # fmt: skip


def check_groups(groups: Any, columns: Sequence[Column]) -> None:
    """Raise if groups contain an unknown feature, or one twice."""
    known, seen = set(columns), set()
    for members in groups or ():
        for member in members:
            if member not in known:
                raise ValueError(f"groups names {member!r}, which is not a column of X.")
            if member in seen:
                raise ValueError(f"groups names {member!r} twice: a column belongs to one group.")
            seen.add(member)
