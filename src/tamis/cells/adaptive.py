"""AdaptiveIFC2F: for each row its own next feature, chosen by what it is expected to tell.

Beyond Liyanage, Zois, Chelmis (2021), who name it as future work: their network (:mod:`tamis.cells.ifc2f`), but exact
inference in it, so that any feature may come next. With everything known of a row written e::

    information of feature j:  I_j(e) = H(C | e) - sum_v P(x_j = v | e) H(C | e, x_j = v)           (1)
    buy argmax_j I_j(e) / e_j,  unless  g(pi) <= tau_risk  or  max_j I_j(e) / e_j <= tau_rate       (2)

g(pi) = min_j Q_j . pi is the risk of deciding now. A single step of expected cost, the textbook rule, stops too early:
most single values do not change the decision, so their value is 0 although two of them would. Hence the information
chooses, and the two thresholds are found on the rows of `fit` themselves: each is walked to the end, and the pair is
kept that makes errors and prices together the smallest.

What a tree cannot see, a parity of three features say, a richer classifier may: with ``decision="boosting"`` the label
and the risk come from gradient boosting over the values bought, trained on what the walks had seen at each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array, Rows, check_choice, check_number
from tamis._jit import njit
from tamis.base import CellClassifier, State
from tamis.cells.bins import Bins
from tamis.cells.booster import Booster, most_gain
from tamis.cells.discriminant import Discriminant, best_worth, posterior_of
from tamis.cells.held_out import pays
from tamis.cells.network import Network, spanning_tree
from tamis.cells.relevance import relevance
from tamis.cells.tree import Tree
from tamis.dependence.information import conditional_mutual_information

__all__ = ["AdaptiveIFC2F"]

Floats = NDArray[np.float64]
_QUANTILES = np.linspace(0.0, 1.0, 25)  # of the walks: the thresholds that are tried
_FOLDS = 3
_WALKS = 5_000  # rows walked to find the thresholds, and that boosting learns from
_GROWN = 1_000  # columns that boosting chooses from
_NUMBERS = 1 << 22  # expectations held at once
_ROUNDING = 1e-9


@njit()
def _information(posterior: Array, given: Array, found: Array) -> None:
    """Fill in (1) of every row and feature."""
    n, K, V, L = given.shape
    for i in range(n):
        before = 0.0
        for c in range(L):
            if posterior[i, c] > 0.0:
                before -= posterior[i, c] * np.log(posterior[i, c])
        for f in range(K):
            after = 0.0
            for v in range(V):
                p = 0.0
                for c in range(L):
                    p += given[i, f, v, c] * posterior[i, c]
                for c in range(L):
                    joint = given[i, f, v, c] * posterior[i, c]
                    if joint > 0.0:
                        after -= joint * np.log(joint / p)
            found[i, f] = max(before - after, 0.0)


class AdaptiveIFC2F(CellClassifier):
    """Buys, for each row, the feature that tells most for its price, and stops when nothing tells enough.

    Parameters
    ----------
    cost : float, array of shape (n_features,) or mapping from column name to float, default=0.01
        e: what a feature costs, in [0, inf), in units of `misclassification_cost`.
    misclassification_cost : array of shape (n_classes, n_classes), optional
        Q: what it costs to say class j (column) where i (row) is true; by default 0 if right and 1 if wrong.
    groups : sequence of sequences of columns, optional
        Columns (names or numbers) that come together, as the values of one blood test: the price of a group is that
        of its dearest column, paid once.
    budget : float, optional
        The most that may be paid for one row.
    mean_budget : float, optional
        The most that may be paid per row on average, over rows like those of `fit`; `cost` then only says how the
        prices compare.
    decision : {"auto", "tree", "discriminant", "boosting"}, default="auto"
        Whether the tree decides, a discriminant analysis of the values bought, or gradient boosting over them; "auto":
        the tree or the discriminant, whichever costs less on rows that were not learned from.
    n_bins : int, default=4
        V: levels of each column, from 2 on (quantiles).
    max_features : int, default=64
        Columns of the tree: all, if they are no more, else the most relevant, or, with boosting as the decision, those
        that it gains most from. If only several columns together tell, few of them must be kept for all to be asked.
    max_steps : int, default=30
        Features bought for a row at most.
    random_state : int, optional
        Seed of the boosting.

    Attributes
    ----------
    classes_, prior_, candidates_, prices_, n_features_used_, cost_
        As in :class:`tamis.base.CellClassifier`.
    parent_ : ndarray of shape (K,), int
        The tree.
    belief_ : {"tree", "discriminant", "boosting"}
        What decides.
    max_risk_, min_rate_ : float
        tau_risk and tau_rate of (2).

    Raises
    ------
    ValueError
        If a parameter is out of its range, or no column tells anything about the class.
    DataError
        If a value is infinite.

    Notes
    -----
    A step of a row costs O(K V**2 n_classes); fitting walks every row of `fit` for `max_steps` steps.

    References
    ----------
    Liyanage, Zois, Chelmis (2021). Dynamic Instance-Wise Classification in Correlated Feature Spaces, Section 7.

    Examples
    --------
    Column 0 says which of the two others holds the class; rows that the first leaves in doubt ask on.

    >>> import numpy as np
    >>> from tamis import AdaptiveIFC2F
    >>> rng = np.random.default_rng(0)
    >>> y, which = rng.integers(0, 2, (2, 3000))
    >>> X = rng.normal(size=(3000, 3))
    >>> X[:, 0] = which
    >>> X[:, 1:] += 3 * (2 * y[:, None] - 1) * (which[:, None] == [0, 1])
    >>> model = AdaptiveIFC2F(cost=0.02).fit(X[:2000], y[:2000])
    >>> round(model.score(X[2000:], y[2000:]), 2)
    1.0
    >>> [trace.features for trace in model.acquire(X[2001:2004])]
    [[1, 2, 0], [1, 2], [1, 0]]
    """

    def __init__(
        self,
        cost: float | Array | Mapping[str, float] = 0.01,
        *,
        misclassification_cost: Array | None = None,
        groups: Sequence[Sequence[str | int]] | None = None,
        budget: float | None = None,
        mean_budget: float | None = None,
        decision: str = "auto",
        n_bins: int = 4,
        max_features: int = 64,
        max_steps: int = 30,
        random_state: int | None = None,
    ) -> None:
        self.cost = cost
        self.misclassification_cost = misclassification_cost
        self.groups = groups
        self.budget = budget
        self.mean_budget = mean_budget
        self.decision = decision
        self.n_bins = n_bins
        self.max_features = max_features
        self.max_steps = max_steps
        self.random_state = random_state

    _numbers_count = True
    _booster: Booster | None
    _discriminant: Discriminant | None

    # -- fitting -------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array) -> None:
        self._check()
        bins = Bins.quantile(X, self.n_bins)
        self.candidates_ = self._candidates(X, y, bins.tables(X, y, len(self.classes_)))
        self._bins = bins.of(self.candidates_)
        self._group = self._groups()
        price = self._costs()[self.candidates_]
        self.prices_ = np.array([price[self._group == g].max() for g in self._group])
        rows = np.arange(X.shape[0])
        if len(rows) > _WALKS:
            rows = np.random.default_rng(self.random_state).choice(rows, _WALKS, replace=False)
        values, codes = self._cells(X[np.sort(rows)], np.arange(len(rows)))
        self._calibrate(values, codes, y[np.sort(rows)])
        self._plant(self._cells(X, np.arange(X.shape[0]))[1], y)
        self.parent_ = self._tree.parent
        if self.mean_budget is not None:
            self._keep_within(self.mean_budget, values, codes)

    def _check(self) -> None:
        check_number("n_bins", self.n_bins, low=2, integer=True)
        check_number("max_features", self.max_features, low=1, integer=True)
        check_number("max_steps", self.max_steps, low=1, integer=True)
        check_choice("decision", self.decision, ("auto", "tree", "discriminant", "boosting"))
        for name in ("budget", "mean_budget"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value, low=0)

    def _candidates(self, X: Rows, y: Array, tables: Array) -> NDArray[np.int64]:
        """Return the columns of the tree: all that vary if there is room, as some only tell beside others."""
        vary = np.flatnonzero(np.count_nonzero(tables.sum(axis=2), axis=1) > 1)
        if len(self.classes_) > 1 and len(vary) <= self.max_features:
            return vary
        boosting = self.decision == "boosting"
        scores, least = relevance(tables, _GROWN if boosting else self.max_features)
        known = np.flatnonzero(scores > least)
        ranked = known[np.argsort(-scores[known], kind="stable")]
        if boosting:
            grown = vary if len(vary) <= _GROWN else ranked[:_GROWN]
            gained = most_gain(X[:, grown], y, self.random_state)
            ranked = np.concatenate([grown[gained], np.setdiff1d(ranked, grown[gained], assume_unique=True)])
        return ranked[: self.max_features]

    def _groups(self) -> NDArray[np.int64]:
        """Return the group of each candidate; one of its own where none was given."""
        names = [self.name_of(k) for k in range(len(self.candidates_))]
        columns = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        found, seen = np.arange(len(names)), set()
        for g, members in enumerate(self.groups or ()):
            for member in members:
                if member not in columns:
                    raise ValueError(f"groups names {member!r}, which is no column of X.")
                if member in seen:
                    raise ValueError(f"groups names {member!r} twice: a column belongs to one group.")
                seen.add(member)
                if member in names:
                    found[names.index(member)] = len(names) + g
        return found

    def _plant(self, codes: Array, y: Array) -> None:
        """Make the tree from these rows."""
        shared = conditional_mutual_information(codes, y, self.n_bins, len(self.classes_))
        network = Network(codes, y, spanning_tree(shared), self.n_bins, len(self.classes_))
        self._tree = Tree(network.parent, network.tables(), network.prior())

    def _calibrate(self, values: Array, codes: Array, y: Array) -> None:
        """Walk rows through models that have not seen them; find whom to believe, and the thresholds of (2)."""
        fold = _folds(y, len(self.classes_))
        self.max_risk_, self.min_rate_, self._booster, self._discriminant = -np.inf, 0.0, None, None
        walks, evidence, priors = [], [], []
        for held in np.unique(fold):
            others, here = fold != held if fold.any() else fold == held, fold == held
            self._plant(codes[others], y[others])
            walks.append(self._walk_to_the_end(values[here], codes[here]))
            if self.decision in ("auto", "discriminant"):
                evidence.append(
                    self._discriminate(values[others], y[others]).evidence(values[here], walks[-1][-1])
                )
                priors.append(np.tile(self._tree.prior, (int(here.sum()), 1)))
        at = np.concatenate([np.flatnonzero(fold == held) for held in np.unique(fold)])
        steps = [np.concatenate(part, axis=1) for part in list(zip(*walks, strict=True))[:-1]]
        posterior, numbers, rate, spent = steps
        beliefs = {"tree": posterior}
        if evidence:
            said, prior = np.concatenate(evidence, axis=1), np.concatenate(priors)
            worth = best_worth(said[1:], prior, y[at])
            beliefs["discriminant"] = posterior_of(said, prior, worth)
        if self.decision == "boosting":
            beliefs["boosting"] = self._boost(posterior, numbers, y[at], fold[at])
        wanted = ("tree", "discriminant") if self.decision == "auto" else (self.decision,)
        choices = [self._limits(beliefs[name], rate, spent, y[at]) for name in wanted]
        best = int(np.argmin([cost for cost, *_ in choices]))
        self.belief_, (_, self.max_risk_, self.min_rate_) = wanted[best], choices[best]
        if self.belief_ == "discriminant":
            self._discriminant = self._discriminate(values, y)
            self._discriminant.worth = worth

    def _discriminate(self, values: Array, y: Array) -> Discriminant:
        return Discriminant(self.n_bins, len(self.classes_)).fit(values, y)

    def _limits(self, posterior: Floats, rate: Floats, spent: Floats, y: Array) -> tuple[float, float, float]:
        """Return the mean cost of the best thresholds of (2), and these; none is reached where buying does not pay."""
        expected = posterior @ self._Q
        risk, wrong = expected.min(axis=2), self._Q[y, expected.argmin(axis=2)]
        highest, lowest = thresholds(risk, rate, spent, wrong, self.mean_budget)
        at, rows = _stops(risk, rate, highest, lowest), np.arange(len(y))
        cost = wrong[at, rows] + (0.0 if self.mean_budget is not None else spent[at, rows])
        if not pays(cost, wrong[0]):
            return float(wrong[0].mean()), np.inf, np.inf
        return float(cost.mean()), highest, lowest

    def _keep_within(self, mean_budget: float, values: Array, codes: Array) -> None:
        """Ask for a higher rate if the last tree would spend more than those that found the thresholds."""
        posterior, numbers, rate, spent, _ = self._walk_to_the_end(values, codes)
        if self._booster is not None:
            posterior = self._booster.posterior(_flat(numbers), _flat(posterior)).reshape(posterior.shape)
        if self._discriminant is not None:
            posterior = self._discriminant.posterior(_flat(numbers)).reshape(posterior.shape)
        risk = (posterior @ self._Q).min(axis=2)
        for lowest in np.unique(np.r_[self.min_rate_, np.quantile(rate[np.isfinite(rate)], _QUANTILES)]):
            self.min_rate_ = max(self.min_rate_, float(lowest))
            at = _stops(risk, rate, self.max_risk_, self.min_rate_)
            if spent[at, np.arange(len(at))].mean() <= mean_budget + _ROUNDING:
                return

    def _walk_to_the_end(self, values: Array, codes: Array) -> tuple[Floats, Floats, Floats, Floats, Array]:
        """Return posteriors, values bought, best rates and money spent of each step and row, and what was bought."""
        state, rows = self._start(len(codes)), np.arange(len(codes))
        found: list[tuple[Floats, Floats, Floats, Floats]] = []
        order = np.full((len(codes), self.max_steps), -1)
        for step in range(self.max_steps + 1):
            position, rate = self._best(state)
            found.append((state.posterior.copy(), state.numbers.copy(), rate, state.spent.copy()))
            go_on = rows[position >= 0]
            if step == self.max_steps or not len(go_on):
                continue
            part = state.of(go_on)
            at = order[go_on, step] = position[go_on]
            part.spent += np.where(codes[go_on, at] >= 0, self._price(part, at), 0.0)
            self._observe(part, at, codes[go_on, at], values[go_on, at])
            state.put(go_on, part)
        posterior, numbers, rate, spent = (np.stack(part) for part in zip(*found, strict=True))
        return posterior, numbers, rate, spent, order

    def _boost(self, posterior: Floats, numbers: Floats, y: Array, fold: Array) -> Floats:
        """Return the posteriors of boosting at each step, each row's by a model that has not seen it."""
        n_steps, n = posterior.shape[:2]
        seen = np.arange(n_steps * n).reshape(n_steps, n)
        found = posterior.copy()
        for held in np.unique(fold):
            others = seen[:, fold != held].ravel() if fold.any() else seen.ravel()
            booster = Booster(len(self.classes_), self.random_state)
            booster.fit(_flat(numbers)[others], _flat(posterior)[others], np.tile(y, n_steps)[others])
            rows = seen[:, fold == held].ravel()
            _flat(found)[rows] = booster.posterior(_flat(numbers)[rows], _flat(posterior)[rows])
        booster = Booster(len(self.classes_), self.random_state)
        booster.fit(_flat(numbers), _flat(posterior), np.tile(y, n_steps))
        self._booster = booster
        return found

    # -- walking -------------------------------------------------------------------------------------------

    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        return self._bins.of(positions).codes(values)

    def _first_belief(self) -> Floats:
        return self._tree.prior

    def _price(self, state: State, position: Array) -> Floats:
        opened = (state.asked & (self._group == self._group[position][:, None])).any(axis=1)
        return np.where(opened, 0.0, self.prices_[position])

    def _best(self, state: State) -> tuple[NDArray[np.int64], Floats]:
        """Return the position of most information per price for each row, -1 if there is none, and that rate."""
        n, K = state.asked.shape
        position, rate = np.full(n, -1), np.zeros(n)
        if K == 0 or len(self.classes_) == 1:
            return position, rate
        step = max(1, _NUMBERS // (K * self.n_bins * len(self.classes_)))
        for at in range(0, n, step):
            part = state.of(np.arange(at, min(at + step, n)))
            position[at : at + step], rate[at : at + step] = self._best_of(part)
        return position, rate

    def _best_of(self, state: State) -> tuple[NDArray[np.int64], Floats]:
        believed, given = self._tree.infer(state.values)
        information = np.empty(state.asked.shape)
        _information(believed, given, information)
        information[state.asked] = 0.0
        same = self._group[:, None] == self._group
        price = np.where(state.asked @ same, 0.0, self.prices_)  # a group is paid once
        # Members of a group are taken to tell different things, up to all there is to tell.
        left = -np.sum(believed * np.log(np.maximum(believed, 1e-300)), axis=1)
        whole = np.minimum(information @ same, left[:, None])
        rate = np.divide(whole, price, out=np.full(price.shape, np.inf), where=price > 0.0)
        spare = np.inf if self.budget is None else self.budget - state.spent[:, None] + _ROUNDING
        full = state.asked.sum(axis=1, keepdims=True) >= self.max_steps
        rate[state.asked | (price > spare) | (whole <= 0.0) | full] = -1.0
        # Free values first, then the best rate; within a group, the most telling.
        best = np.lexsort((-information, -rate), axis=1)[:, 0] if len(rate) else np.empty(0, dtype=np.int64)
        reached = rate[np.arange(len(rate)), best]
        return np.where(reached >= 0.0, best, -1), np.maximum(reached, 0.0)

    def _next(self, state: State) -> NDArray[np.int64]:
        position, rate = self._best(state)
        risk = (state.posterior @ self._Q).min(axis=1)
        stop = ((risk <= self.max_risk_) | (rate <= self.min_rate_)) & np.isfinite(rate)
        return np.where(stop, -1, position)

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        rows = np.arange(len(position))
        state.values[rows, position], state.numbers[rows, position] = code, value
        state.asked[rows, position] = True
        believed = self._believe(state.values)
        if self._booster is not None:
            believed = self._booster.posterior(state.numbers, believed)
        if self._discriminant is not None:
            found = self._discriminant.posterior(state.numbers)
            believed = np.where((code >= 0)[:, None], found, state.posterior)
        state.posterior[:] = believed

    def _believe(self, values: Array) -> Floats:
        step = max(1, _NUMBERS // max(values.shape[1] * self.n_bins * len(self.classes_), 1))
        parts = [self._tree.infer(values[at : at + step])[0] for at in range(0, len(values), step)]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes_)))


def thresholds(
    risk: Floats, rate: Floats, spent: Floats, wrong: Floats, mean_budget: float | None = None
) -> tuple[float, float]:
    """Return the pair of thresholds of (2) that costs least on these walks.

    Parameters
    ----------
    risk, rate, spent, wrong : ndarray of shape (n_steps, n_rows)
        Risk of deciding, best rate, money spent and what the decision then costs, at each step of each walk.
    mean_budget : float, optional
        Keep the mean of what is spent within it, and count errors only.
    """
    rows = np.arange(risk.shape[1])
    best, found = (np.inf, np.inf), (np.inf, np.inf)
    for highest in np.unique(np.r_[-np.inf, np.quantile(risk, _QUANTILES)]):
        for lowest in np.unique(np.quantile(rate[np.isfinite(rate)], _QUANTILES)):
            at = _stops(risk, rate, highest, lowest)
            paid, errors = spent[at, rows].mean(), wrong[at, rows].mean()
            if mean_budget is None:
                cost = (errors + paid, paid)
            else:
                cost = (errors, paid) if paid <= mean_budget + _ROUNDING else (np.inf, paid)
            if cost < best:
                best, found = cost, (float(highest), float(lowest))
    return found


def _stops(risk: Floats, rate: Floats, max_risk: float, min_rate: float) -> NDArray[np.int64]:
    """Return the step at which (2) stops each walk."""
    stop = ((risk <= max_risk) | (rate <= min_rate)) & np.isfinite(rate)
    stop[-1] = True
    found: NDArray[np.int64] = stop.argmax(axis=0)
    return found


def _flat(steps: Floats) -> Floats:
    """Return the steps of all rows under one another; a view."""
    return steps.reshape(-1, steps.shape[2])


def _folds(y: Array, n_classes: int) -> NDArray[np.int64]:
    """Return the fold of each row, the classes spread over all; one fold if a class is too small."""
    found = np.zeros(len(y), dtype=np.int64)
    if np.bincount(y, minlength=n_classes).min() < 2 * _FOLDS:
        return found
    for c in range(n_classes):
        found[y == c] = np.arange(np.count_nonzero(y == c)) % _FOLDS
    return found
