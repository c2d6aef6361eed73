"""What pays on rows that were not learned from: which probabilities to trust, and when to stop.

A model that learned its tables from few rows promises itself too much: it buys noise, and ends below buying nothing.
Here every row is walked to the end by a model that has not seen it, and what stopping would have cost is added up at
each step: the price of the values bought so far, and the cost of the decision. A policy is then chosen by its mean cost
over these walks:

* whose probabilities are believed: the model's own, or those of a :class:`~tamis.cells.discriminant.Discriminant`;
* after how many values it stops at the latest, `most`; 0 buys nothing;
* below which expected cost of deciding it stops at once, `max_risk`; or when the model's own rule says so.

Before the first value all rows are alike, so all are asked for it, or none. Buying nothing and buying the same values
for every row are among the policies, so that neither is ahead of the chosen one on these rows. The mean cost of each
policy grows with the prices, and so does the least of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis._jit import njit

__all__ = [
    "FOLDS",
    "ROUNDING",
    "Paths",
    "Policy",
    "Walks",
    "best_policy",
    "best_thresholds",
    "decided",
    "folds_of",
    "pays",
    "stops_at",
]

Floats = NDArray[np.float64]

FOLDS = 5
_LEVELS = np.linspace(0.0, 1.0, 26)[:-1]  # quantiles of the risks met
_EARLY = 4  # steps: later most rows are sure, and nearly all risks small
_QUANTILES = np.linspace(0.0, 1.0, 25)  # of risks and rates met: the thresholds that are tried
ROUNDING = 1e-9  # of money
_SURE = 1.5  # standard errors by which a policy must be ahead of buying nothing; at 1, errors of 10 cost by chance


@dataclass
class Policy:
    """Whose probabilities are believed, and when to stop.

    Attributes
    ----------
    belief : {"own", "discriminant"}
    rule : {"own", "risk"}
        Stop when the model says so, or when deciding costs at most `max_risk`.
    most : int
        Values after which to stop at the latest; 0: none is bought, otherwise the first is bought for every row.
    max_risk : float
    """

    belief: str
    rule: str
    most: int
    max_risk: float


@dataclass
class Walks:
    """Rows walked to the end by a model that has not seen them.

    Attributes
    ----------
    belief : {"own", "discriminant"}
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
    numbers : ndarray of shape (n_steps + 1, n_rows, K)
        Values bought so far, NaN where unknown.
    rate : ndarray of shape (n_steps + 1, n_rows)
        What the best offer tells per price.
    spent : ndarray of shape (n_steps + 1, n_rows)
    order : ndarray of shape (n_rows, n_steps), int
        What was bought; -1 where nothing was.
    """

    posterior: Floats
    numbers: Floats
    rate: Floats
    spent: Floats
    order: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: list[Paths]) -> Paths:
        """Return the paths of all rows, those of one part after those of another."""
        steps = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1)
            for name in ("posterior", "numbers", "rate", "spent")
        }
        return cls(**steps, order=np.concatenate([part.order for part in parts]))


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


def best_policy(walks: list[Walks], y: Array, Q: Floats, *, every_row_alike: bool = False) -> Policy:
    """Return the policy of least mean cost on these walks; nothing is bought unless that is surely dearer.

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
    best, least, per_row = Policy(walks[0].belief, "risk", 0, np.inf), nothing.sum(), nothing
    for walk in walks:
        risk = np.ascontiguousarray((walk.posterior @ Q).min(axis=2).T)
        risk[:, 0] = (
            np.inf
        )  # the folds' shares of the classes differ a little: no rule may tell the folds apart
        cost = np.stack([decided(step, y, Q) for step in walk.posterior], axis=1) + walk.spent.T
        levels = np.array([-np.inf]) if every_row_alike else _levels(risk)
        stops = None if every_row_alike or walk.stops is None else np.ascontiguousarray(walk.stops.T)
        if stops is not None:
            stops[:, 0] = False
        totals = np.zeros((risk.shape[1], len(levels) + (stops is not None)))
        _add_costs(risk, cost, levels, np.empty((0, 0), dtype=bool) if stops is None else stops, totals)
        most, level = np.unravel_index(np.argmin(totals), totals.shape)
        if totals[most, level] < least:
            least, own = totals[most, level], level == len(levels)
            best = Policy(
                walk.belief, "own" if own else "risk", int(most), float(-np.inf if own else levels[level])
            )
            stop = stops if own and stops is not None else risk <= best.max_risk
            per_row = cost[np.arange(len(y)), _first(stop[:, :most])]
    return best if pays(per_row, nothing) else Policy(walks[0].belief, "risk", 0, np.inf)


def pays(cost: Floats, nothing: Floats) -> bool:
    """Return whether a policy is ahead of buying nothing by more than 1.5 standard errors, from what each row costs.

    >>> pays(np.array([0.1, 0.2, 0.1]), np.array([1.0, 0.0, 1.0])), pays(np.ones(3), np.ones(3))
    (True, False)
    """
    gain = nothing - cost
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))


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


@njit()
def _add_costs(risk: Array, cost: Array, levels: Array, stops: Array, totals: Array) -> None:
    """Add what each row costs to totals[most, level], of stopping at a level of risk, or last at the model's word.

    risk, cost and stops are (n_rows, n_steps); stops is empty where the model has no rule.
    """
    n, n_steps = risk.shape
    for i in range(n):
        for level in range(totals.shape[1]):
            at = 0
            for most in range(n_steps):
                if at == most - 1:  # not stopped before
                    goes_on = not stops[i, at] if level == len(levels) else risk[i, at] > levels[level]
                    at += goes_on
                totals[most, level] += cost[i, at]


def _first(stops: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first step at which each row stops; the one after the last where it does not."""
    last = np.ones((len(stops), 1), dtype=bool)
    found: NDArray[np.int64] = np.concatenate([stops, last], axis=1).argmax(axis=1)
    return found


def best_thresholds(
    risk: Floats, rate: Floats, spent: Floats, wrong: Floats, mean_budget: float | None = None
) -> tuple[float, float]:
    """Return the risk and the rate, at or below which walks stop, that cost least.

    Parameters
    ----------
    risk, rate, spent, wrong : ndarray of shape (n_steps, n_rows)
        Risk of deciding, best rate, money spent and what the decision then costs, at each step of each walk. A walk
        does not stop where its best rate is infinite, as a free value is.
    mean_budget : float, optional
        Keep the mean of what is spent within it, and count errors only.
    """
    highest = np.unique(np.r_[-np.inf, np.quantile(risk, _QUANTILES)])
    lowest = np.unique(np.quantile(rate[np.isfinite(rate)], _QUANTILES))
    paid, errors = np.zeros((2, len(highest), len(lowest)))
    by_row = [np.ascontiguousarray(part.T) for part in (risk, rate, spent, wrong)]
    _add_walks(by_row[0], by_row[1], by_row[2], by_row[3], highest, lowest, paid, errors)
    paid, errors = paid / risk.shape[1], errors / risk.shape[1]
    cost = errors + paid
    if mean_budget is not None:
        cost = np.where(paid <= mean_budget + ROUNDING, errors, np.inf)
    if not np.isfinite(cost).any():
        return np.inf, np.inf
    at = np.lexsort((paid.ravel(), cost.ravel()))[0]  # the cheaper of equals
    return float(highest[at // len(lowest)]), float(lowest[at % len(lowest)])


@njit()
def _add_walks(
    risk: Array,
    rate: Array,
    spent: Array,
    wrong: Array,
    highest: Array,
    lowest: Array,
    paid: Array,
    errors: Array,
) -> None:
    """Add what each walk pays and errs, of shape (n_rows, n_steps), to each pair of thresholds."""
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
                paid[h, low] += spent[i, at]
                errors[h, low] += wrong[i, at]


def stops_at(risk: Floats, rate: Floats, max_risk: float, min_rate: float) -> NDArray[np.int64]:
    """Return the step at which each walk stops."""
    stop = ((risk <= max_risk) | (rate <= min_rate)) & np.isfinite(rate)
    stop[-1] = True
    found: NDArray[np.int64] = stop.argmax(axis=0)
    return found
