"""Selection of a policy on held-out rows: which probabilities to use, and when to stop.

A model with tables from few rows is overconfident: it acquires irrelevant features, at a higher cost than without any
acquisition. Every row is therefore walked to the end by a model fitted without it, and the cost of stopping is recorded
at each step: the price of the values acquired so far plus the cost of the decision. The policy with the lowest mean
cost over these walks is selected. Families of policies differ in:

* the probabilities: those of the model, of discriminant analyses, or of an :class:`~tamis.cells.ensemble.Ensemble` of
  these and boosted trees;
* the stopping rule: after `max_values` values, the same for every row; or earlier, when the expected misclassification
  cost is at most `max_risk`; or by the model's own rule.

The estimated cost of the best of many policies is biased on the walks that selected it. Rows are therefore divided into
groups, and each group evaluates the policy of a family that is best on the other groups. The family with the lowest
cost is selected, with its best policy on all rows. No feature is acquired unless that family beats the policy without
acquisition by more than 1.28 standard errors, after one row with the largest misclassification cost is added. An
ensemble must beat all others in the same way, with three such rows, because the best of three kinds is selected.

Before the first value all rows are identical, so it is acquired for all of them or for none.

Objectives of acquisition: the loss of a posterior on a labelled row, and its risk without the label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask

FOLDS = 5
GROUPS = 10  # groups of rows; a policy is chosen on all but one
_LEVELS = np.linspace(0.0, 1.0, 26)[:-1]  # quantiles of the observed risks
_EARLY = 4  # number of early steps; later, nearly all risks are small
_QUANTILES = np.linspace(0.0, 1.0, 25)  # quantiles of observed risks and rates: the candidate thresholds
ROUNDING = 1.0 + 1e-9  # of a sum of prices, against a budget
_NO_BUDGET = 1e300  # larger budgets are unlimited
_SURE = 1.28  # standard errors by which a policy must beat no acquisition: one-sided 10 % level


@dataclass
class Policy:
    """The probabilities used, and when to stop.

    Attributes
    ----------
    belief : {"own", "discriminant", "ensemble", "classifier"}
    rule : {"own", "risk"}
        Stop by the model's own rule, or when the expected misclassification cost (or, for other objectives, the entropy
        of the class) is at most `max_risk`.
    max_values : int
        Largest number of values. 0: none is acquired; otherwise the first is acquired for every row.
    max_risk : float
    cost : float
        Mean cost per row, on rows that did not select the policy; NaN without selection.
    """

    belief: str
    rule: str
    max_values: int
    max_risk: float
    cost: float = np.nan


@dataclass
class Walks:
    """Rows walked to the end by a model fitted without them.

    Attributes
    ----------
    belief : {"own", "discriminant", "ensemble", "classifier"}
    posterior : ndarray of shape (n_steps + 1, n_rows, n_classes)
        Before the first value, and after each.
    spent : ndarray of shape (n_steps + 1, n_rows)
    stops : ndarray of shape (n_steps + 1, n_rows), bool, or None
        Steps at which the model's own rule stops; None if it has no rule.
    """

    belief: str
    posterior: Floats
    spent: Floats
    stops: Mask | None = None


@dataclass
class Paths:
    """Rows walked to the end, each in its own order, by a model fitted without them.

    Attributes
    ----------
    posterior : ndarray of shape (n_steps + 1, n_rows, n_classes)
    rate : ndarray of shape (n_steps + 1, n_rows)
        Information per price of the best offer.
    spent : ndarray of shape (n_steps + 1, n_rows)
    order : ndarray of shape (n_rows, n_steps), int
        Acquired features; -1 where none.
    """

    posterior: Floats
    rate: Floats
    spent: Floats
    order: Ints

    @classmethod
    def concatenate(cls, parts: list[Paths]) -> Paths:
        """Return the paths of all parts; shorter ones repeat their last step."""
        n_steps = max(part.order.shape[1] for part in parts)
        steps = {
            name: np.concatenate([pad_steps(getattr(part, name), n_steps + 1) for part in parts], axis=1)
            for name in ("posterior", "rate", "spent")
        }
        order = np.concatenate(
            [
                np.pad(part.order, ((0, 0), (0, n_steps - part.order.shape[1])), constant_values=-1)
                for part in parts
            ]
        )
        return cls(**steps, order=order)


def pad_steps(steps: Array, n: int, axis: int = 0) -> Array:
    """Return the steps, padded to `n` along an axis by repeating the last one."""
    return np.take(steps, np.minimum(np.arange(n), steps.shape[axis] - 1), axis=axis)


def stratified_folds(y: Array, n_folds: int = FOLDS, origin: Ints | None = None) -> Ints:
    """Return the fold of each row, stratified by class; -1 for the only row of a class.

    Rows of the same `origin` are copies of one row, and share its fold.

    >>> stratified_folds(np.array([0, 0, 0, 1, 0, 2, 1]), 2)
    array([ 0,  1,  0,  0,  1, -1,  1])
    >>> stratified_folds(np.array([0, 0, 0, 1, 1]), 2, np.array([3, 3, 7, 8, 9]))
    array([0, 0, 1, 0, 1])
    """
    if origin is not None:
        _, first, back = np.unique(origin, return_index=True, return_inverse=True)
        order = np.argsort(first)  # rows in the order given
        fold = np.empty(len(first), dtype=np.int64)
        fold[order] = stratified_folds(y[first[order]], n_folds)
        return fold[back]
    folds = np.full(len(y), -1)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        if len(rows) > 1:
            folds[rows] = np.arange(len(rows)) % n_folds
    return folds


def best_policy(
    walks: list[Walks],
    y: Array,
    objective: Objective,
    *,
    mean_budget: float | None = None,
    same_for_all_rows: bool = False,
    origin: Ints | None = None,
) -> tuple[Policy, Floats]:
    """Return the best policy on these walks, of the family with the lowest cross-validated cost.

    No feature is acquired unless the policy is significantly cheaper. The second return value is the cross-validated
    cost of each row, shape (n_rows,).

    Parameters
    ----------
    walks : list of Walks
        Walks of the same rows; ties are broken in favour of the first.
    y : ndarray of shape (n_rows,), int
    objective : Objective
    mean_budget : float, optional
        Bound on the mean price paid; only losses are then minimised.
    same_for_all_rows : bool
        Consider only policies that acquire the same values for every row.
    origin : ndarray of shape (n_rows,), int, optional
        As for :func:`stratified_folds`.
    """
    nothing, group = objective.losses(walks[0].posterior[0], y), selection_groups(y, origin)
    none = Policy(walks[0].belief, "risk", 0, np.inf, float(nothing.mean()))
    best, least = none, nothing
    for walk in walks:
        for policy, per_row in _best_per_family(walk, y, group, objective, mean_budget, same_for_all_rows):
            if is_preferred(walk.belief, per_row, least, objective.worst):
                best, least = policy, per_row
    return (best, least) if is_surely_cheaper(least, nothing, objective.worst) else (none, nothing)


def _best_per_family(
    walk: Walks,
    y: Array,
    group: Array,
    objective: Objective,
    mean_budget: float | None,
    same_for_all_rows: bool,
) -> Iterator[tuple[Policy, Floats]]:
    """Return the best policy of each family, and the cost of each row under the policy best on the other groups."""
    risk = np.ascontiguousarray(objective.risk(walk.posterior).T)
    risk[:, 0] = np.inf  # class frequencies differ slightly between folds: no rule may separate the folds
    cost = np.stack([objective.losses(step, y) for step in walk.posterior], axis=1)
    if mean_budget is None:
        cost = cost + walk.spent.T
    levels = np.array([-np.inf]) if same_for_all_rows else _levels(risk)
    stops = np.empty((0, 0), dtype=bool)
    if walk.stops is not None and not same_for_all_rows:
        stops = np.ascontiguousarray(walk.stops.T)
        stops[:, 0] = False
    totals, paid = np.zeros((2, GROUPS, risk.shape[1], len(levels) + (len(stops) > 0)))
    _add_costs(risk, cost, levels, stops, group, totals)
    bounds = np.zeros(GROUPS + 1)
    if mean_budget is not None:
        _add_costs(risk, np.ascontiguousarray(walk.spent.T), levels, stops, group, paid)
        bounds[:] = len(y)
        bounds[:GROUPS] -= np.bincount(group, minlength=GROUPS)
        bounds = bounds * min(mean_budget, _NO_BUDGET) * ROUNDING
    for rule, columns in _policy_families(len(levels), totals.shape[2]):
        at = [
            _argmin_cost(totals.sum(axis=0) - part, columns, paid.sum(axis=0) - own, bound)
            for part, own, bound in zip(totals, paid, bounds, strict=False)
        ]
        per_row = np.empty(len(y))
        for g, (most, level) in enumerate(at):
            mine = group == g
            stop = stops[mine] if rule == "own" else risk[mine] <= levels[level]
            per_row[mine] = cost[mine, _first_stop(stop[:, :most])]
        most, level = _argmin_cost(totals.sum(axis=0), columns, paid.sum(axis=0), bounds[-1])
        max_risk = -np.inf if rule == "own" else levels[level]
        yield Policy(walk.belief, rule, most, float(max_risk), float(per_row.mean())), per_row


def selection_groups(y: Array, origin: Ints | None = None) -> Ints:
    """Return the group of each row; policies are chosen on all groups but one, and evaluated on that one."""
    return np.maximum(stratified_folds(y, GROUPS, origin), 0)


def _policy_families(n_levels: int, n_columns: int) -> list[tuple[str, range]]:
    """Return the families of policies and their columns: same for every row, by a level of risk, the model's rule."""
    families = [("risk", range(1)), ("risk", range(n_levels)), ("own", range(n_levels, n_columns))]
    return [(rule, columns) for rule, columns in families if len(columns)]


def _argmin_cost(totals: Floats, columns: range, paid: Floats, bound: float) -> tuple[int, int]:
    """Return the argmin (`most`, column) of the total cost, within a bound on the price paid."""
    at_hand = slice(columns.start, columns.stop)
    part = np.where(paid[:, at_hand] <= bound, totals[:, at_hand], np.inf)
    most, at = np.unravel_index(np.argmin(part), part.shape)
    return int(most), columns.start + int(at)


def is_surely_cheaper(cost: Floats, nothing: Floats, worst: Floats, n_tried: int = 1) -> bool:
    """Return whether a policy is significantly cheaper than another, from the cost of each row.

    `n_tried` rows with the largest misclassification cost are added, because few rows may not contain the most
    expensive error; one for each kind of policy tried, because the best of several kinds is selected.

    >>> nothing = np.array([1.0, 0.0, 1.0] * 20)
    >>> Q = 1.0 - np.eye(2)
    >>> is_surely_cheaper(nothing - 0.3, nothing, Q), is_surely_cheaper(nothing - 0.01, nothing, Q)
    (True, False)
    """
    gain = np.append(nothing - cost, np.full(n_tried, -worst.max()))
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))


def is_preferred(belief: str, cost: Floats, least: Floats, worst: Floats) -> bool:
    """Return whether a policy beats the best one so far; an ensemble must be significantly cheaper."""
    if belief == "ensemble":
        return is_surely_cheaper(cost, least, worst, n_tried=3)
    return bool(cost.mean() < least.mean())


def _levels(risk: Floats) -> Floats:
    """Return the candidates for `max_risk`: quantiles of all observed risks, and of those of early steps."""
    if risk.shape[1] == 1:
        return np.array([-np.inf])
    quantiles = [np.quantile(risk[:, 1:n_steps], _LEVELS) for n_steps in (_EARLY, risk.shape[1])]
    return np.unique(np.r_[-np.inf, *quantiles])


@njit(strict=True)
def _add_costs(risk: Array, cost: Array, levels: Array, stops: Array, group: Array, totals: Array) -> None:
    """Add the cost of each row to totals[group, most, level], for stopping at a level of risk, or by the model's rule.

    risk, cost and stops are (n_rows, n_steps); stops is empty if the model has no rule.
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


def _first_stop(stops: Mask) -> Ints:
    """Return the first step at which each row stops, or the number of steps if it does not."""
    last = np.ones((len(stops), 1), dtype=bool)
    return np.concatenate([stops, last], axis=1).argmax(axis=1)


def best_thresholds(
    risk: Floats,
    rate: Floats,
    spent: Floats,
    wrong: Floats,
    y: Array,
    mean_budget: float | None = None,
    origin: Ints | None = None,
) -> tuple[Floats, float, float]:
    """Return the cost of each row and the best thresholds of risk and rate, at or below which walks stop.

    One or both thresholds are used, depending on the cross-validated cost, which is returned.

    Parameters
    ----------
    risk, rate, spent, wrong : ndarray of shape (n_steps, n_rows)
        Risk of the decision, best rate, price paid and cost of the decision, at each step of each walk. A walk does not
        stop while its best rate is infinite, as for a free value.
    y : ndarray of shape (n_rows,), int
    mean_budget : float, optional
        Bound on the mean price paid; only misclassification costs are then minimised.
    origin : ndarray of shape (n_rows,), int, optional
        As for :func:`stratified_folds`.
    """
    highest = np.unique(np.r_[-np.inf, np.quantile(risk, _QUANTILES)])
    lowest = np.unique(np.r_[-np.inf, np.quantile(rate[np.isfinite(rate)], _QUANTILES)])
    group, rows = selection_groups(y, origin), np.arange(len(y))
    paid, errors = np.zeros((2, GROUPS, len(highest), len(lowest)))
    by_row = [np.ascontiguousarray(part.T) for part in (risk, rate, spent, wrong)]
    _add_walks(by_row[0], by_row[1], by_row[2], by_row[3], highest, lowest, group, paid, errors)
    size = np.bincount(group, minlength=GROUPS)
    best = np.full(len(y), np.inf), np.inf, np.inf
    for of_risk, of_rate in ((len(highest), 1), (1, len(lowest)), (len(highest), len(lowest))):
        p, e = paid[:, :of_risk, :of_rate], errors[:, :of_risk, :of_rate]
        all_p, all_e = p.sum(axis=0), e.sum(axis=0)
        at = [
            _argmin_thresholds(all_p - p[g], all_e - e[g], len(y) - size[g], mean_budget)
            for g in range(GROUPS)
        ]
        h, low = np.array(at)[group].T
        step = stopping_steps(risk, rate, highest[h], lowest[low])
        cost = wrong[step, rows] + (0.0 if mean_budget is not None else spent[step, rows])
        i, j = _argmin_thresholds(all_p, all_e, len(y), mean_budget)
        within = mean_budget is None or all_p[i, j] / len(y) <= mean_budget * ROUNDING
        if within and cost.mean() < best[0].mean():
            best = cost, float(highest[i]), float(lowest[j])
    return best


def _argmin_thresholds(
    paid: Floats, errors: Floats, n_rows: int, mean_budget: float | None
) -> tuple[int, int]:
    """Return the argmin of the sum of both, or of the errors subject to the mean budget."""
    cost = errors + paid
    if mean_budget is not None:
        cost = np.where(paid / n_rows <= mean_budget * ROUNDING, errors, np.inf)
    at = np.lexsort((paid.ravel(), cost.ravel()))[0]  # ties: the cheaper one, even beyond the budget
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
    """Add the price and misclassification cost of each walk, (n_rows, n_steps), to its group's pairs of thresholds."""
    n, n_steps = risk.shape
    for i in range(n):
        for h in range(len(highest)):
            last = n_steps - 1  # the stop by risk only; a rate threshold stops it there or before
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


def stopping_steps(risk: Floats, rate: Floats, max_risk: float | Floats, min_rate: float | Floats) -> Ints:
    """Return the step at which each walk stops, shape (n_rows,)."""
    stop = ((risk <= max_risk) | (rate <= min_rate)) & np.isfinite(rate)
    stop[-1] = True
    return stop.argmax(axis=0)


OBJECTIVES = ("loss", "log-loss", "auc", "squared-error")
_LEAST = 1e-6  # lower bound on a probability before its logarithm is taken


@dataclass(frozen=True)
class Objective:
    """The loss that acquisitions reduce, in units of the prices.

    Attributes
    ----------
    name : {"loss", "log-loss", "auc", "squared-error"}
        The misclassification cost of the decision; the negative logarithm of the probability of the class, in nats; one
        minus the area under the ROC curve of each class against the rest; or, for the levels of a number, the squared
        error of the posterior mean relative to the variance.
    Q : ndarray of shape (n_classes, n_classes)
        Misclassification costs, or squared distances of levels.
    unit : float
        The loss of a squared error of one variance.
    """

    name: str
    Q: Floats
    unit: float = 1.0

    def losses(self, posterior: Floats, y: Array) -> Floats:
        """Return the loss of each row, from posteriors of shape (..., n_rows, n_classes)."""
        if self.name == "loss":
            return decision_cost(posterior, y, self.Q)
        if self.name == "auc":
            parts = posterior.reshape(-1, *posterior.shape[-2:])
            return np.stack([ranking_losses(part, y) for part in parts]).reshape(posterior.shape[:-1])
        if self.name == "squared-error":
            # (p.m - m_y)^2 is the mean of (m - m_y)^2 minus the variance.
            apart: Floats = (posterior * self.Q[y]).sum(axis=-1) - self.risk(posterior)
            return np.maximum(apart, 0.0)
        return -np.log(np.maximum(posterior[..., np.arange(len(y)), y], _LEAST))

    def risk(self, posterior: Floats) -> Floats:
        """Return the expected misclassification cost, entropy or variance of posteriors along the last axis."""
        if self.name == "loss":
            return (posterior @ self.Q).min(axis=-1)
        # Summed class by class, so that a single row has the same bits as in a batch.
        risk = np.zeros(posterior.shape[:-1])
        for c in range(posterior.shape[-1]):
            p = posterior[..., c]
            if self.name == "squared-error":
                for other in range(c):  # of each pair of levels
                    risk += p * posterior[..., other] * self.Q[c, other]
                continue
            risk -= p * np.log(np.maximum(p, _LEAST))
        return risk

    def risk_of_rows(self, posterior: Floats) -> Floats:
        """Return the risk of posteriors of shape (n_rows, n_classes); a single row has the same bits as in a batch."""
        if self.name == "loss":
            return (posterior[:, :, None] * self.Q).sum(axis=1).min(axis=1)
        return self.risk(posterior)

    @property
    def worst(self) -> Floats:
        """The largest loss of a row, as a table of the same shape as misclassification costs."""
        return self.Q if self.name == "loss" else np.full((1, 1), self.unit)


def decision_cost(posterior: Floats, y: Array, Q: Floats) -> Floats:
    """Return the misclassification cost of the decision for each row."""
    return Q[y, (posterior @ Q).argmin(axis=-1)]


def ranking_losses(posterior: Floats, y: Array) -> Floats:
    """Return, per row, the proportion of rows of other classes with a higher probability of its class (ties: 1/2).

    The mean over the rows of a class is one minus its area under the ROC curve against the rest.

    >>> ranking_losses(np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]]), np.array([0, 1, 1, 0]))
    array([0. , 0. , 0.5, 0.5])
    """
    losses = np.zeros(len(y))
    for c in np.unique(y):
        mine = y == c
        others = np.sort(posterior[~mine, c])
        own = posterior[mine, c]
        above = len(others) - np.searchsorted(others, own, side="right")
        ties = len(others) - above - np.searchsorted(others, own, side="left")
        losses[mine] = (above + 0.5 * ties) / max(len(others), 1)
    return losses
