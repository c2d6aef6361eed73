"""What pays on rows that were not learned from: which probabilities to trust, and when to stop.

A model that learned its tables from few rows promises itself too much: it buys noise, and ends below buying nothing.
Here every row is walked to the end by a model that has not seen it, and what stopping would have cost is added up at
each step: the price of the values bought so far, and the cost of the decision. A policy is then chosen by its mean cost
over these walks. There are families of policies:

* whose probabilities are believed: the model's own, or those of discriminant analyses, or of an
  :class:`~tamis.cells.ensemble.Ensemble` of them and boosted trees;
* when a row stops: after `most` values, as every other row; or before that, below an expected cost of deciding,
  `max_risk`; or when the model's own rule says so.

The best of many policies looks better on the walks it was chosen on than it is. So the rows are divided into groups,
and in each group the policy of a family is judged that is best on the other groups. The family that costs least so is
taken, and its best policy on all rows. Nothing is bought unless that family is ahead of buying nothing by more than
1.28 standard errors, one more row counted as erring at its dearest. An ensemble must be ahead of all others in the same
way, with three such rows: the best of three kinds looks better than it is.

Before the first value all rows are alike, so all are asked for it, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis._jit import njit

__all__ = [
    "FOLDS",
    "GROUPS",
    "ROUNDING",
    "Paths",
    "Policy",
    "Walks",
    "best_policy",
    "best_thresholds",
    "better",
    "decided",
    "folds_of",
    "groups_of",
    "longer",
    "pays",
    "stops_at",
]

Floats = NDArray[np.float64]

FOLDS = 5
GROUPS = 10  # of rows, all but one of which a policy is chosen on
_LEVELS = np.linspace(0.0, 1.0, 26)[:-1]  # quantiles of the risks met
_EARLY = 4  # steps: later most rows are sure, and nearly all risks small
_QUANTILES = np.linspace(0.0, 1.0, 25)  # of risks and rates met: the thresholds that are tried
ROUNDING = 1e-9  # of money
_SURE = 1.28  # standard errors by which a policy must be ahead of buying nothing: 10 % of one side


@dataclass
class Policy:
    """Whose probabilities are believed, and when to stop.

    Attributes
    ----------
    belief : {"own", "discriminant", "ensemble", "classifier"}
    rule : {"own", "risk"}
        Stop when the model says so, or when deciding costs at most `max_risk`.
    most : int
        Values after which to stop at the latest; 0: none is bought, otherwise the first is bought for every row.
    max_risk : float
    cost : float
        What a row costs on average where the policy was not chosen on; NaN where none was chosen.
    """

    belief: str
    rule: str
    most: int
    max_risk: float
    cost: float = np.nan


@dataclass
class Walks:
    """Rows walked to the end by a model that has not seen them.

    Attributes
    ----------
    belief : {"own", "discriminant", "ensemble", "classifier"}
    posterior : ndarray of shape (n_steps + 1, n_rows, n_classes)
        Before the first value, and after each.
    spent : ndarray of shape (n_steps + 1, n_rows)
    stops : ndarray of shape (n_steps + 1, n_rows), bool, or None
        Where the model's own rule stops; None if it has none.
    """

    belief: str
    posterior: Floats
    spent: Floats
    stops: NDArray[np.bool_] | None = None


@dataclass
class Paths:
    """Rows walked to the end, each in its own order, by a model that has not seen them.

    Attributes
    ----------
    posterior : ndarray of shape (n_steps + 1, n_rows, n_classes)
    rate : ndarray of shape (n_steps + 1, n_rows)
        What the best offer tells per price.
    spent : ndarray of shape (n_steps + 1, n_rows)
    order : ndarray of shape (n_rows, n_steps), int
        What was bought; -1 where nothing was.
    """

    posterior: Floats
    rate: Floats
    spent: Floats
    order: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: list[Paths]) -> Paths:
        """Return the paths of all rows, one part after another; shorter ones stay at their end."""
        n_steps = max(part.order.shape[1] for part in parts)
        steps = {
            name: np.concatenate([longer(getattr(part, name), n_steps + 1) for part in parts], axis=1)
            for name in ("posterior", "rate", "spent")
        }
        order = np.concatenate(
            [
                np.pad(part.order, ((0, 0), (0, n_steps - part.order.shape[1])), constant_values=-1)
                for part in parts
            ]
        )
        return cls(**steps, order=order)


def longer(steps: Array, n: int, axis: int = 0) -> Array:
    """Return steps, of which the axis has n_steps, with the last one repeated, so that there are n."""
    found: Array = np.take(steps, np.minimum(np.arange(n), steps.shape[axis] - 1), axis=axis)
    return found


def folds_of(y: Array, n_folds: int = FOLDS) -> NDArray[np.int64]:
    """Return the fold of each row, the rows of each class spread evenly; -1 where a class has a single row.

    >>> folds_of(np.array([0, 0, 0, 1, 0, 2, 1]), 2)
    array([ 0,  1,  0,  0,  1, -1,  1])
    """
    found = np.full(len(y), -1)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        if len(rows) > 1:
            found[rows] = np.arange(len(rows)) % n_folds
    return found


def best_policy(
    walks: list[Walks], y: Array, Q: Floats, *, every_row_alike: bool = False
) -> tuple[Policy, Floats]:
    """Return the policy that cost least on these walks, of the family that costs least where it was not chosen on.

    Nothing is bought unless that is surely dearer. The second result is what each row costs where the policy was not
    chosen on, shape (n_rows,).

    Parameters
    ----------
    walks : list of Walks
        Of the same rows; the first come first among equals.
    y : ndarray of shape (n_rows,), int
    Q : ndarray of shape (n_classes, n_classes)
    every_row_alike : bool
        Consider only policies that buy the same values for every row.
    """
    nothing = decided(walks[0].posterior[0], y, Q)
    none = Policy(walks[0].belief, "risk", 0, np.inf, float(nothing.mean()))
    best, least = none, nothing
    for walk in walks:
        for policy, per_row in _families(walk, y, Q, every_row_alike):
            if better(walk.belief, per_row, least, Q):
                best, least = policy, per_row
    return (best, least) if pays(least, nothing, Q) else (none, nothing)


def _families(
    walk: Walks, y: Array, Q: Floats, every_row_alike: bool = False
) -> Iterator[tuple[Policy, Floats]]:
    """Return the best policy of each family, and what each row costs by the one that is best on the other groups."""
    group = groups_of(y)
    risk = np.ascontiguousarray((walk.posterior @ Q).min(axis=2).T)
    risk[:, 0] = np.inf  # the folds' shares of the classes differ a little: no rule may tell the folds apart
    cost = np.stack([decided(step, y, Q) for step in walk.posterior], axis=1) + walk.spent.T
    levels = np.array([-np.inf]) if every_row_alike else _levels(risk)
    stops = np.empty((0, 0), dtype=bool)
    if walk.stops is not None and not every_row_alike:
        stops = np.ascontiguousarray(walk.stops.T)
        stops[:, 0] = False
    totals = np.zeros((GROUPS, risk.shape[1], len(levels) + (len(stops) > 0)))
    _add_costs(risk, cost, levels, stops, group, totals)
    for rule, columns in _rules(len(levels), totals.shape[2]):
        at = [_cheapest(totals.sum(axis=0) - part, columns) for part in totals]
        per_row = np.empty(len(y))
        for g, (most, level) in enumerate(at):
            mine = group == g
            stop = stops[mine] if rule == "own" else risk[mine] <= levels[level]
            per_row[mine] = cost[mine, _first(stop[:, :most])]
        most, level = _cheapest(totals.sum(axis=0), columns)
        max_risk = -np.inf if rule == "own" else levels[level]
        yield Policy(walk.belief, rule, most, float(max_risk), float(per_row.mean())), per_row


def groups_of(y: Array) -> NDArray[np.int64]:
    """Return the group of each row: policies are chosen on all groups but one, and judged on that one."""
    return np.maximum(folds_of(y, GROUPS), 0)


def _rules(n_levels: int, n_columns: int) -> list[tuple[str, range]]:
    """Return the families of policies and their columns: every row alike, a level of risk, the model's own word."""
    found = [("risk", range(1)), ("risk", range(n_levels)), ("own", range(n_levels, n_columns))]
    return [(rule, columns) for rule, columns in found if len(columns)]


def _cheapest(totals: Floats, columns: range) -> tuple[int, int]:
    """Return where the total is least: `most`, and the column."""
    part = totals[:, columns.start : columns.stop]
    most, at = np.unravel_index(np.argmin(part), part.shape)
    return int(most), columns.start + int(at)


def pays(cost: Floats, nothing: Floats, Q: Floats, n_tried: int = 1) -> bool:
    """Return whether a policy is surely ahead of buying nothing, or of a simpler one, from what each row costs.

    One more row is counted that errs at its dearest: of few rows, none may have made the error that costs most. The
    third kind of policy that is tried, `n_tried`, has three such rows, as the best of three looks better than it is.

    >>> nothing = np.array([1.0, 0.0, 1.0] * 20)
    >>> pays(nothing - 0.3, nothing, 1.0 - np.eye(2)), pays(nothing - 0.01, nothing, 1.0 - np.eye(2))
    (True, False)
    """
    gain = np.append(nothing - cost, np.full(n_tried, -Q.max()))
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))


def better(belief: str, cost: Floats, least: Floats, Q: Floats) -> bool:
    """Return whether a policy is to be preferred to the best one before: an ensemble only if it is surely ahead."""
    if belief == "ensemble":
        return pays(cost, least, Q, n_tried=3)
    return bool(cost.mean() < least.mean())


def decided(posterior: Floats, y: Array, Q: Floats) -> Floats:
    """Return what the decision costs each row."""
    found: Floats = Q[y, (posterior @ Q).argmin(axis=-1)]
    return found


def _levels(risk: Floats) -> Floats:
    """Return the values of `max_risk` that are tried: of all risks met, and of those met early."""
    if risk.shape[1] == 1:
        return np.array([-np.inf])
    met = [np.quantile(risk[:, 1:n_steps], _LEVELS) for n_steps in (_EARLY, risk.shape[1])]
    return np.unique(np.r_[-np.inf, *met])


@njit(strict=True)
def _add_costs(risk: Array, cost: Array, levels: Array, stops: Array, group: Array, totals: Array) -> None:
    """Add what each row costs to totals[group, most, level], of stopping at a level of risk, or at the model's word.

    risk, cost and stops are (n_rows, n_steps); stops is empty where the model has no rule.
    """
    n, n_steps = risk.shape
    for i in range(n):
        for level in range(totals.shape[2]):
            at = 0
            for most in range(n_steps):
                if at == most - 1:  # not stopped before
                    goes_on = not stops[i, at] if level == len(levels) else risk[i, at] > levels[level]
                    at += goes_on
                totals[group[i], most, level] += cost[i, at]


def _first(stops: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first step at which each row stops; the one after the last where it does not."""
    last = np.ones((len(stops), 1), dtype=bool)
    found: NDArray[np.int64] = np.concatenate([stops, last], axis=1).argmax(axis=1)
    return found


def best_thresholds(
    risk: Floats, rate: Floats, spent: Floats, wrong: Floats, y: Array, mean_budget: float | None = None
) -> tuple[Floats, float, float]:
    """Return the risk and the rate, at or below which walks stop, that cost least; and what that costs each row.

    One threshold, or both, whichever costs least where it was not chosen on; that is also the cost that is returned.

    Parameters
    ----------
    risk, rate, spent, wrong : ndarray of shape (n_steps, n_rows)
        Risk of deciding, best rate, money spent and what the decision then costs, at each step of each walk. A walk
        does not stop where its best rate is infinite, as a free value is.
    y : ndarray of shape (n_rows,), int
    mean_budget : float, optional
        Keep the mean of what is spent within it, and count errors only.
    """
    highest = np.unique(np.r_[-np.inf, np.quantile(risk, _QUANTILES)])
    lowest = np.unique(np.r_[-np.inf, np.quantile(rate[np.isfinite(rate)], _QUANTILES)])
    group, rows = groups_of(y), np.arange(len(y))
    paid, errors = np.zeros((2, GROUPS, len(highest), len(lowest)))
    by_row = [np.ascontiguousarray(part.T) for part in (risk, rate, spent, wrong)]
    _add_walks(by_row[0], by_row[1], by_row[2], by_row[3], highest, lowest, group, paid, errors)
    size = np.bincount(group, minlength=GROUPS)
    found = np.full(len(y), np.inf), np.inf, np.inf
    for of_risk, of_rate in ((len(highest), 1), (1, len(lowest)), (len(highest), len(lowest))):
        p, e = paid[:, :of_risk, :of_rate], errors[:, :of_risk, :of_rate]
        all_p, all_e = p.sum(axis=0), e.sum(axis=0)
        at = [_least(all_p - p[g], all_e - e[g], len(y) - size[g], mean_budget) for g in range(GROUPS)]
        h, low = np.array(at)[group].T
        step = stops_at(risk, rate, highest[h], lowest[low])
        cost = wrong[step, rows] + (0.0 if mean_budget is not None else spent[step, rows])
        i, j = _least(all_p, all_e, len(y), mean_budget)
        within = mean_budget is None or all_p[i, j] / len(y) <= mean_budget + ROUNDING
        if within and cost.mean() < found[0].mean():
            found = cost, float(highest[i]), float(lowest[j])
    return found


def _least(paid: Floats, errors: Floats, n_rows: int, mean_budget: float | None) -> tuple[int, int]:
    """Return where the sum of both is least, or the errors where the mean of what is paid stays within a budget."""
    cost = errors + paid
    if mean_budget is not None:
        cost = np.where(paid / n_rows <= mean_budget + ROUNDING, errors, np.inf)
    at = np.lexsort((paid.ravel(), cost.ravel()))[0]  # the cheaper of equals, also of those beyond the budget
    return int(at // paid.shape[1]), int(at % paid.shape[1])


@njit(strict=True)
def _add_walks(
    risk: Array,
    rate: Array,
    spent: Array,
    wrong: Array,
    highest: Array,
    lowest: Array,
    group: Array,
    paid: Array,
    errors: Array,
) -> None:
    """Add what each walk pays and errs, of shape (n_rows, n_steps), to its group's pairs of thresholds."""
    n, n_steps = risk.shape
    for i in range(n):
        for h in range(len(highest)):
            last = n_steps - 1  # where the risk alone stops it; a higher rate stops it there or before
            for k in range(n_steps):
                if risk[i, k] <= highest[h] and rate[i, k] < np.inf:
                    last = k
                    break
            for low in range(len(lowest)):
                at = last
                for k in range(last):
                    if rate[i, k] <= lowest[low] and rate[i, k] < np.inf:
                        at = k
                        break
                paid[group[i], h, low] += spent[i, at]
                errors[group[i], h, low] += wrong[i, at]


def stops_at(
    risk: Floats, rate: Floats, max_risk: float | Floats, min_rate: float | Floats
) -> NDArray[np.int64]:
    """Return the step at which each walk stops."""
    stop = ((risk <= max_risk) | (rate <= min_rate)) & np.isfinite(rate)
    stop[-1] = True
    found: NDArray[np.int64] = stop.argmax(axis=0)
    return found
