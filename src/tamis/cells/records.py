"""A policy replayed on historical records: what it would have acquired, and its cost and error, estimated off-policy.

A record contains the values that were acquired under another policy. It can be followed as long as it contains each
value that the policy acquires, and ends at the first one that it lacks. So the records that can be followed further are
a selection, and each stands for those of its class that ended before. With R_c(f) the share of the records of class c
that contain f, among those followed to its acquisition, f_1, f_2, ... the features acquired for a record, p_t their
prices, y its class, and l_t the loss of deciding after t values::

    w_t = prod_{s <= t} 1 / R_y(f_s)                                                                             (1)
    C   = mean of  sum_t w_{t-1} p_t            over all records, as far as each can be followed                 (2)
    L   = mean of  l_0 + sum_t w_t (l_t - l_{t-1})                                                               (3)

estimate the mean cost and the mean loss (per-decision weights; Precup et al. 2000). They assume that, given the class
and the values before, whether a value was recorded does not depend on the value itself. Where no record of a class
contains the value, what follows is unknown, and the intervals of cost and error include the best and the worst.

References
----------
Precup, Sutton & Singh (2000). Eligibility Traces for Off-Policy Policy Evaluation. ICML 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Mask, as_column, check_number, reject_missing
from tamis.base import PriceList
from tamis.base.session import add_values, next_within
from tamis.report.content import Cell, Figure, Names, Remark, Section, Table
from tamis.report.result import Result
from tamis.report.text import fraction, plural, scientific

if TYPE_CHECKING:
    from tamis.cells import CellClassifier

_CELLS = 1 << 22  # of the records that are followed at a time
_SHOWN = 50  # records on a page


@dataclass(frozen=True)
class Estimate:
    """An estimate of a mean over all records, with a 95 % confidence interval; NaN where it is undetermined."""

    value: float
    low: float
    high: float


def replay_records(
    model: CellClassifier, X: Any, y: Any = None, *, budget: float | None = None, unavailable: Any = None,
    title: str = "records",
) -> RecordsResult:  # fmt: skip
    """Follow the policy of a fitted model through records, each up to its first missing value.

    Parameters
    ----------
    model : CellClassifier
        Fitted.
    X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        NaN is a value that was not recorded.
    y : array-like of shape (n_rows,), optional
        The outcomes. Without them the policy is described, and nothing is estimated.
    budget : float, optional
        Largest cost of a record, in the unit of the prices: a value that exceeds the rest of it is not acquired.
    unavailable : sequence of str or int, or bool array of shape (n_rows, n_features), optional
        Features that cannot be acquired, as in :meth:`CellClassifier.acquire`: the policy does without them.
    title : str
        The data, for the heading.

    Returns
    -------
    RecordsResult

    Raises
    ------
    DataError
        If the columns are not those of the model, or a label is missing.
    ValueError
        If `budget` is negative or not finite, or `unavailable` names an unknown feature.

    Examples
    --------
    A third of the values were not recorded, and records without a value that the policy acquires end there:

    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 4)) + 2 * y[:, None]
    >>> model = IFC2F(random_state=0).fit(X[:1000], y[:1000])
    >>> records = np.where(rng.random((1000, 4)) < 1 / 3, np.nan, X[1000:])
    >>> replayed = replay_records(model, records, y[1000:])
    >>> bool(0.1 < replayed.is_complete.mean() < 0.5)
    True
    >>> truth = np.mean(model.predict(X[1000:]) != y[1000:])
    >>> bool(replayed.error.low < truth < replayed.error.high)
    True
    """
    check_is_fitted(model)
    if budget is not None:
        check_number("budget", budget, low=0.0)
    rows = model._rows(X)
    labels = None
    if y is not None:
        labels = as_column(y, rows.shape[0], type(model).__name__)
        reject_missing(labels)
    limit = np.inf if budget is None else float(budget)
    barred = model._unavailable(unavailable, rows.shape[0])
    return RecordsResult(model, rows, labels, limit, barred, title)


class RecordsResult(Result):
    """What a policy would have acquired for records, and estimates of its cost and error.

    Attributes
    ----------
    decision : ndarray of shape (n_rows,)
        With the values until the record ended.
    certainty : ndarray of shape (n_rows,)
        Probability of the decision, or the standard deviation of a predicted number.
    cost : ndarray of shape (n_rows,)
        Of the values followed.
    acquired : list of n_rows lists
        The features followed, in order.
    next_feature : list of n_rows names, numbers or None
        The value that the policy acquires next, which the record lacks; None if it decides.
    next_cost : ndarray of shape (n_rows,)
    is_complete : ndarray of shape (n_rows,), bool
        Whether the record contains every value up to the decision.
    """

    def __init__(
        self, model: CellClassifier, rows: Any, labels: Array | None, budget: float,
        unavailable: Mask | None, title: str,
    ) -> None:  # fmt: skip
        self.model, self.labels, self.budget, self._title = model, labels, budget, title
        self._unavailable = unavailable
        n = rows.shape[0]
        self.cost, self.next_cost = np.zeros(n), np.zeros(n)
        self._next, self._recorded = np.full(n, -1), np.zeros(n)
        self._first = model._decide(model._start(n).posterior)
        self._steps: list[_Step] = []
        size = max(1, _CELLS // max(rows.shape[1], 1))
        parts = [self._follow(rows, np.arange(at, min(at + size, n))) for at in range(0, n, size)]
        posterior = np.concatenate([np.zeros((0, len(model.classes_))), *parts])
        self.decision, deviation = model._decide(posterior), model._deviation(posterior)
        self.certainty = self._probability(posterior) if deviation is None else deviation
        self.is_complete = self._next < 0

    def _follow(self, rows: Any, at: Array) -> Floats:
        """Follow the policy through some records; return their last posteriors."""
        model = self.model
        values, codes = model._cells(rows, at)
        none = np.zeros(codes.shape[1], dtype=bool)
        self._recorded[at] = model._tariff.total(none, codes != -1)
        barred = None if self._unavailable is None else self._unavailable[at]
        state, alive = model._start(len(at), barred), np.arange(len(at))
        while len(alive):
            part = state.take(alive)
            position, price = next_within(model, part, self.budget)
            state.put(alive, part)
            asks = position >= 0
            alive, position, price = alive[asks], position[asks], price[asks]
            code = codes[alive, position]
            lacks = code == -1
            self._next[at[alive[lacks]]], self.next_cost[at[alive[lacks]]] = position[lacks], price[lacks]
            alive, position, price, code = (one[~lacks] for one in (alive, position, price, code))
            part = state.take(alive)
            add_values(model, part, position, code, values[alive, position], price)
            state.put(alive, part)
            self._steps.append(_Step(at[alive], position, price, model._decide(part.posterior)))
        self.cost[at] = state.spent
        return state.posterior

    # -- per record ----------------------------------------------------------------------------------------

    @cached_property
    def acquired(self) -> list[list[Any]]:
        """The features followed of each record, in order."""
        names, result = self.model._names(), list[list[Any]]([] for _ in self.cost)
        for step in self._steps:
            for row, at in zip(step.rows.tolist(), step.position.tolist(), strict=True):
                result[row].append(names[at])
        return result

    @cached_property
    def next_feature(self) -> list[Any]:
        """The value that the policy acquires next, which the record lacks, or None."""
        names = self.model._names()
        return [None if at < 0 else names[at] for at in self._next.tolist()]

    def records(self) -> dict[str, list[Any]]:
        """Return a column of plain values for each fact about a record, by name."""
        number = self.model._is_regression
        columns: dict[str, list[Any]] = {
            "record": list(range(1, len(self.cost) + 1)), "decision": self.decision.tolist(),
            "deviation" if number else "probability": self.certainty.tolist(), "cost": self.cost.tolist(),
            "acquired": self.acquired, "next": self.next_feature, "next_cost": self.next_cost.tolist(),
        }  # fmt: skip
        return columns if self.labels is None else columns | {"label": self.labels.tolist()}

    def _probability(self, posterior: Floats) -> Floats:
        decided = np.searchsorted(self.model.classes_, self.decision)
        return posterior[np.arange(len(posterior)), decided]

    # -- estimates -----------------------------------------------------------------------------------------

    def _loss_of(self, decided: Array, rows: Array) -> tuple[Floats, Floats]:
        """Return the error of decisions (of a number, as a share of the variance), and their loss."""
        labels = np.asarray(self.labels)[rows]
        losses = self.model._losses(labels, decided)
        error = (
            losses / self.model._unit_loss if self.model._is_regression else (decided != labels).astype(float)
        )
        return error, losses

    @cached_property
    def _terms(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Of each record: its weighted cost, error and loss, and the weight and the error where it ends for good."""
        target, n = self.model._target, len(self.cost)
        labels = np.asarray(self.labels)
        own = np.unique(labels, return_inverse=True)[1] if target is None else target.codes(labels)
        followed = np.zeros((own.max(initial=0) + 1, len(self.model.candidates_)))
        for step in self._steps:
            np.add.at(followed, (own[step.rows], step.position), 1.0)
        due, ended = followed.copy(), np.flatnonzero(~self.is_complete)
        np.add.at(due, (own[ended], self._next[ended]), 1.0)
        factor = np.divide(due, followed, out=np.ones_like(due), where=followed > 0)
        weight, cost = np.ones(n), np.zeros(n)
        error, loss = self._loss_of(self._first, np.arange(n))
        last_error, last_loss = error.copy(), loss.copy()
        for step in self._steps:
            rows = step.rows
            cost[rows] += weight[rows] * step.price
            weight[rows] *= factor[own[rows], step.position]
            now = self._loss_of(step.decided, rows)
            error[rows] += weight[rows] * (now[0] - last_error[rows])
            loss[rows] += weight[rows] * (now[1] - last_loss[rows])
            last_error[rows], last_loss[rows] = now
        cost += weight * self.next_cost
        lost = np.zeros(n)
        lost[ended] = np.where(followed[own[ended], self._next[ended]] > 0, 0.0, weight[ended])
        return cost, error, loss + cost, lost, last_error

    @cached_property
    def cost_estimate(self) -> Estimate:
        """Mean cost of a record under the policy, by (2)."""
        cost, _, _, lost, _ = self._terms
        rest = min(float(self.model.prices_.sum()), self.budget)
        return _mean(cost, 0.0, float(lost @ np.maximum(rest - self.cost - self.next_cost, 0.0)))

    @cached_property
    def error(self) -> Estimate:
        """Error rate under the policy, by (3), or the mean squared error as a share of the variance."""
        _, error, _, lost, last = self._terms
        worst = float(lost @ np.maximum(1.0 - last, 0.0))
        return _mean(error, -float(lost @ last), worst, is_share=not self.model._is_regression)

    @cached_property
    def loss(self) -> Estimate:
        """Mean loss and cost together."""
        return _mean(self._terms[2])

    # -- presentation --------------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the method and the data."""
        return f"{type(self.model).__name__} replayed on {self._title}"

    def verdict(self) -> str:
        """Return what the policy would cost and how often it would be wrong, or what the records lack."""
        n, complete = len(self.cost), int(self.is_complete.sum())
        if self.labels is None:
            said = f"{complete:,} of {n:,} records contain every value that the policy acquires"
            most = next(iter(self.missing), None)
            return f"{said}." if most is None else f"{said}; most often, {most} is acquired next."
        what = (
            "a squared error, as a share of the variance, of"
            if self.model._is_regression
            else "an error rate of"
        )
        return (
            f"The policy would cost {self._amount(self.cost_estimate)} per record, with {what}"
            f" {_text(self.error, fraction)}; all recorded values cost {self._price(float(self._recorded.mean()))}."
        )

    def about(self) -> str:
        """Return the numbers of records, and how many of them could be followed."""
        n = len(self.cost)
        complete = int(self.is_complete.sum())
        said = f"{plural(n, 'record', 'records')}; {complete:,} contain every value that the policy acquires."
        if self.labels is None:
            said = "Without labels, cost and error are not estimated."
        return said if np.isinf(self.budget) else f"{said} At most {self._price(self.budget)} per record."

    def remarks(self) -> list[str]:
        """Return what the estimates assume."""
        if self.labels is None or self.is_complete.all():
            return []
        said = "The estimates assume that, given the class, whether a value was recorded does not depend on the value."
        remarks = [Remark(said, "note")]
        if (lost := float(self._terms[3].sum()) / len(self.cost)) > 0.0:
            said = (
                f"For {lost:.1%} of the records, no record of the class contains the value acquired next: the"
            )
            remarks.append(
                Remark(f"{said} intervals of cost and error include the best and the worst that may follow.")
            )
        return list(remarks)

    def headline(self) -> list[Figure]:
        """Return the share of records that could be followed, and the estimates."""
        figures = [Figure("Followed", f"{self.is_complete.mean():.0%}", "of the records", is_main=False)]
        if self.labels is None:
            return figures
        name = "Squared error" if self.model._is_regression else "Error rate"
        for title, own, form in (
            ("Cost per record", self.cost_estimate, self._price), (name, self.error, fraction),
            ("Errors and prices", self.loss, scientific),
        ):  # fmt: skip
            figures.append(
                Figure(title, form(own.value), f"{form(own.low)} to {form(own.high)}", is_main=False)
            )
        return figures

    @cached_property
    def missing(self) -> dict[Any, int]:
        """How many records end at each feature, most first."""
        at, n = np.unique(self._next[self._next >= 0], return_counts=True)
        names = self.model._names()
        return {names[at[i]]: int(n[i]) for i in np.argsort(-n, kind="stable")}

    def sections(self) -> list[Section]:
        """Return the records, and the values they lack."""
        tables = [self._records_table()]
        if self.missing:
            rows: list[list[Cell]] = [[Names([str(name)]), f"{n:,}"] for name, n in self.missing.items()]
            tables.insert(0, Table("Acquired next, not recorded", [("", "feature"), ("n", "records")], rows))
        return [Section("records", "Records", tables)]

    def _records_table(self) -> Table:
        form = (lambda value: f"{value:.5g}") if self.model._is_regression else str
        rows: list[list[Cell]] = []
        for i in range(min(len(self.cost), _SHOWN)):
            ahead = (
                ""
                if self.is_complete[i]
                else f"{self.next_feature[i]}, {self._price(float(self.next_cost[i]))}"
            )
            row: list[Cell] = [
                str(i + 1), Names([str(name) for name in self.acquired[i]]), self._price(float(self.cost[i])), ahead,
                form(self.decision[i]), fraction(float(self.certainty[i])),
            ]  # fmt: skip
            rows.append(row if self.labels is None else [*row, form(self.labels[i])])
        head = [("n", "record"), ("", "acquired"), ("n", "paid"), ("", "next"), ("", "decision")]
        head.append(("n", "deviation" if self.model._is_regression else "probability"))
        of = f", the first {_SHOWN}" * (len(self.cost) > _SHOWN)
        return Table(
            f"Policy per record{of}", head + [("", "label")] * (self.labels is not None), rows, is_main=True
        )

    def _amount(self, estimate: Estimate) -> str:
        return _text(estimate, self._price)

    def _price(self, price: float) -> str:
        return price_text(self.model, price)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        columns = self.records()
        result: dict[str, Any] = {
            "verdict": self.verdict(), "remarks": [str(remark) for remark in self.remarks()],
            "method": type(self.model).__name__, "data": self._title, "n_rows": len(self.cost),
            "n_complete": int(self.is_complete.sum()),
        }  # fmt: skip
        if self.labels is not None:
            estimates = {"cost": self.cost_estimate, "error": self.error, "loss": self.loss}
            result |= {name: vars(own) for name, own in estimates.items()}
            result["cost_recorded"] = float(self._recorded.mean()) if len(self._recorded) else None
        rows = zip(*columns.values(), strict=True)
        return result | {"records": [dict(zip(columns, row, strict=True)) for row in rows]}


@dataclass(frozen=True)
class _Step:
    """An acquisition of some records: their numbers, the positions, the prices, and the decisions after it."""

    rows: Array
    position: Array
    price: Floats
    decided: Array


def _mean(terms: Floats, best: float = 0.0, worst: float = 0.0, *, is_share: bool = False) -> Estimate:
    """Return the mean of terms with its interval, which is extended by what unknown terms add at best and at worst."""
    if len(terms) < 2:
        return Estimate(np.nan, np.nan, np.nan)
    best, worst = best / len(terms), worst / len(terms)
    value, variance = float(terms.mean()), float(terms.var(ddof=1) / len(terms))
    t = float(stats.t.ppf(0.975, len(terms) - 1))
    if not is_share:
        half = t * np.sqrt(variance)
        return Estimate(value, max(value - half + best, 0.0), value + half + worst)
    # Wilson (1927), with the number of plain observations of that variance: it does not collapse without errors.
    value = min(max(value, 0.0), 1.0)
    m = value * (1.0 - value) / variance if variance > 0.0 and 0.0 < value < 1.0 else float(len(terms))
    middle, spread = value + t**2 / (2.0 * m), value * (1.0 - value) / m + (t / (2.0 * m)) ** 2
    low, high = ((middle + side * t * np.sqrt(spread)) / (1.0 + t**2 / m) for side in (-1.0, 1.0))
    return Estimate(value, float(max(low + best, 0.0)), float(min(high + worst, 1.0)))


def price_text(model: CellClassifier, price: float) -> str:
    """Return a price in the currency of the model, if it has one."""
    return model.cost.amount(price) if isinstance(model.cost, PriceList) else scientific(price)


def _text(estimate: Estimate, form: Callable[[float], str]) -> str:
    """Return an estimate with its interval."""
    return f"{form(estimate.value)} (95 % interval {form(estimate.low)} to {form(estimate.high)})"
