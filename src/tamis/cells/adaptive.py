"""AdaptiveIFC2F: a different next feature for each row, chosen by its expected gain.

Beyond Liyanage, Zois, Chelmis (2021), who name it as future work: their network (:mod:`tamis.cells.ifc2f`), but exact
inference in it, so that any feature may come next. With everything known of a row written e::

    information of feature j:  I_j(e) = H(C | e) - sum_v P(x_j = v | e) H(C | e, x_j = v)           (1)
    buy argmax_j I_j(e) / e_j,  unless  g(pi) <= tau_risk  or  max_j I_j(e) / e_j <= tau_rate       (2)

g(pi) = min_j Q_j . pi is the risk of deciding now. A single step of expected cost, the textbook rule, stops too early:
most single values do not change the decision, so their value is 0 although two of them would. Hence the information
chooses, and the two thresholds are found on the rows of `fit`: each is walked to the end by a tree whose columns were
chosen and counted without it, and those are kept that make errors and prices together the smallest
(:mod:`tamis.cells.held_out`). Before the first value all rows are alike: all are asked for
it, or, with infinite thresholds, none.

What a tree cannot see, a parity of three features say, a richer classifier may. An ensemble of a discriminant analysis
and boosted trees (:mod:`tamis.cells.ensemble`) decides where that surely costs less on the walks, or always with
``decision="ensemble"``; then columns that tell only beside others are candidates, too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._parameters import Kind, integer, number, parameters
from tamis.base import CellClassifier, State
from tamis.cells.bins import Bins
from tamis.cells.discriminant import Judge, Worth, judged
from tamis.cells.ensemble import calibrated, joined, kinds_of, taught
from tamis.cells.held_out import (
    FOLDS,
    ROUNDING,
    Paths,
    best_thresholds,
    better,
    decided,
    folds_of,
    longer,
    pays,
    stops_at,
)
from tamis.cells.masked import check_classifier
from tamis.cells.network import Network, spanning_tree
from tamis.cells.offers import Offers
from tamis.cells.relevance import NothingTellsError, relevance
from tamis.cells.scikit_trees import most_gain
from tamis.cells.shrunken import shrunken_tables
from tamis.cells.small_trees import SmallTrees
from tamis.cells.tree import Tree
from tamis.dependence.information import conditional_mutual_information

__all__ = ["AdaptiveIFC2F"]

Floats = NDArray[np.float64]
_QUANTILES = np.linspace(
    0.0, 1.0, 25
)  # of the rates met: those that are tried where a mean budget is exceeded
_WALKS = 3_000  # rows walked to find the thresholds, and that trees learn from
_GROWN = 1_000  # columns that boosting chooses from
_NUMBERS = 1 << 20  # offers looked at at once


class AdaptiveIFC2F(CellClassifier):
    """Buys, for each row, the feature that is worth most for its price, and stops when no feature is worth its price.

    Parameters
    ----------
    cost : float, array of shape (n_features,) or mapping from column name to float, default=0.01
        e: the price of a feature, 0 or from 1e-100 to 1e100, in units of `misclassification_cost`.
    misclassification_cost : array of shape (n_classes, n_classes), optional
        Q: the cost of saying class j (column) where i (row) is true; by default 0 if right and 1 if wrong.
    groups : sequence of sequences of columns, optional
        Columns (names or numbers) that come together, like the values of one blood test. The price of a group is that
        of its dearest column, paid once.
    budget : float, optional
        The most to pay for one row.
    mean_budget : float, optional
        The most to pay per row on average, over rows like those of `fit`. `cost` then only gives the ratio of the
        prices.
    decision : {"auto", "tree", "discriminant", "ensemble"}, default="auto"
        The model that decides: the tree, a discriminant analysis of the values bought, or an ensemble of the latter and
        boosted trees. "auto": whichever costs least on held-out rows; the ensemble only if it is surely ahead.
    classifier : scikit-learn classifier with `predict_proba`, optional
        The classifier that decides, with ``decision="auto"``; see :class:`tamis.cells.masked.Masked`. Gradient boosting
        accepts missing values. For a classifier that does not, they are replaced by means.
    n_bins : int, default=4
        V: levels of each column, from 2 on (quantiles).
    max_features : int, default=64
        The most columns in the tree. Where there are more, it has the most relevant, or, with ``decision="ensemble"``,
        those with the largest gain in gradient boosting. If columns are relevant only together, choose a small
        number, so that all of them are bought.
    max_steps : int, default=30
        The most features to buy for a row.
    random_state : int, optional
        Seed of the rows walked, where there are many, and of gradient boosting.

    Attributes
    ----------
    classes_, prior_, candidates_, prices_, n_features_used_, cost_
        As in :class:`tamis.base.CellClassifier`.
    parent_ : ndarray of shape (K,), int
        The tree: the parent of each candidate.
    belief_ : {"tree", "discriminant", "ensemble", "classifier"}
        The model that decides.
    max_risk_, min_rate_ : float
        tau_risk and tau_rate of (2).

    Raises
    ------
    ValueError
        If a parameter is out of its range, or no column is relevant to the class.
    DataError
        If a value is infinite.

    Notes
    -----
    A step of a row costs O(K V**2 n_classes). Fitting follows every row of `fit` for `max_steps` steps.

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
    >>> model = AdaptiveIFC2F(cost=0.01).fit(X[:2000], y[:2000])
    >>> round(model.score(X[2000:], y[2000:]), 2)
    1.0
    >>> [trace.features for trace in model.acquire(X[2001:2004])]
    [[1, 2], [1, 2], [1, 0]]
    """

    _shapes = """
        _offers.prices (c) float in [0, inf)  _offers.group (c)  _tree.parent (c) in [-1, c)
        _tree.prior (k) float in [0, 1]  _tree._order (c) in [0, c)  _tree.tables (k, c, a+1, a+1) float in [0, 2]
    """

    _allowed = parameters(
        groups=(
            Kind(
                "a list of lists of columns",
                lambda value: all(isinstance(part, list | tuple) for part in (value, *value)),
            ),
            None,
        ),
        budget=(number("[0, inf]"), None),
        mean_budget=(number("[0, inf]"), None),
        decision=("auto", "tree", "discriminant", "ensemble"),
        max_features=integer("[1, inf)"),
        max_steps=integer("[1, inf)"),
    )

    def __init__(
        self,
        cost: float | Array | Mapping[str, float] = 0.01,
        *,
        misclassification_cost: Array | None = None,
        groups: Sequence[Sequence[str | int]] | None = None,
        budget: float | None = None,
        mean_budget: float | None = None,
        decision: str = "auto",
        classifier: Any = None,
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
        self.classifier = classifier
        self.n_bins = n_bins
        self.max_features = max_features
        self.max_steps = max_steps
        self.random_state = random_state

    _numbers_count = True
    _judge: Judge | None

    # -- fitting -------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array) -> None:
        check_classifier(self.classifier, self.decision == "auto", "decision='auto'")
        bins = Bins.quantile(X, self.n_bins)
        self._offer(self._candidates(X, y, bins.tables(X, y, len(self.classes_))), bins)
        rows = np.arange(X.shape[0])
        if len(rows) > _WALKS:
            rows = np.sort(np.random.default_rng(self.random_state).choice(rows, _WALKS, replace=False))
        worth = self._calibrate(X[rows], y[rows], bins)
        values, codes = self._cells(X, np.arange(X.shape[0]))
        self._plant(codes, y)
        if self.belief_ != "tree":
            order = None if self.belief_ == "discriminant" else self._walk_to_the_end(codes).order
            self._judge = self._taught(self.belief_, values, y, order)
            self._judge.worth = worth
        self.parent_ = self._tree.parent
        if self.mean_budget is not None:
            self._keep_within(float(self.mean_budget), *self._cells(X[rows], np.arange(len(rows))))

    def _offer(self, candidates: NDArray[np.int64], bins: Bins) -> None:
        """Take these columns for those that may be bought."""
        self.candidates_ = candidates
        self._bins = bins.of(self.candidates_)
        group, price = self._groups(), self._costs()[self.candidates_]
        self.prices_ = np.array([price[group == g].max() for g in group])
        budget = np.inf if self.budget is None else float(self.budget)
        self._offers = Offers(self.prices_, group, budget, self.max_steps)

    def _candidates(self, X: Rows, y: Array, tables: Array) -> NDArray[np.int64]:
        """Return the columns of the tree: all that vary if there is room, as some only tell beside others."""
        vary = np.flatnonzero(np.count_nonzero(tables.sum(axis=2), axis=1) > 1)
        if len(self.classes_) > 1 and len(vary) <= self.max_features:
            return vary
        together = self.decision == "ensemble"
        scores, least = relevance(tables, _GROWN if together else self.max_features)
        known = np.flatnonzero(scores > least)
        ranked = known[np.argsort(-scores[known], kind="stable")]
        if together:
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
        # An ensemble hears of columns that seem to tell nothing in pairs: they are to be asked for, too.
        plain = self.decision == "ensemble"
        tables = network.tables() if plain else shrunken_tables(network, codes, y)
        self._tree = Tree(network.parent, tables, network.prior())

    def _calibrate(self, X: Rows, y: Array, bins: Bins) -> Worth:
        """Walk rows through trees that have not seen them; find whom to believe, and the thresholds of (2).

        Returns what the evidence of who decides, if not the tree, is worth.
        """
        self._judge = None
        self.belief_, self.max_risk_, self.min_rate_ = "tree", np.inf, np.inf
        fold = folds_of(y)
        held = [np.flatnonzero(fold == f) for f in range(FOLDS) if (fold == f).any()]
        if not held:  # no class has two rows
            return 1.0
        walks = [self._held_out_walk(X, y, bins, rows) for rows in held]
        paths, rows = Paths.joined([path for _, path in walks]), np.concatenate(held)
        label = y[rows]
        prior = np.concatenate([np.tile(model._tree.prior, (len(path.order), 1)) for model, path in walks])
        beliefs: dict[str, tuple[Floats, Worth]] = {}
        if self.classifier is None and self.decision in ("tree", "auto"):
            beliefs["tree"] = paths.posterior, 1.0
        if self.decision != "tree":
            evidence = joined(list(self._evidence(self._decides, X, y, held, walks)))
            if self.decision != "ensemble":
                beliefs[self._decides] = calibrated(evidence, prior, label)
        if self.classifier is None and self.decision in ("auto", "ensemble"):
            trees = joined(list(self._evidence("trees", X, y, held, walks)))
            beliefs["ensemble"] = calibrated(np.concatenate([evidence, trees]), prior, label)
        limits = {name: self._limits(belief, paths, label) for name, (belief, _) in beliefs.items()}
        ensemble = limits.pop("ensemble", None)
        if limits:
            self.belief_ = min(limits, key=lambda name: limits[name][0].mean())  # of equals the first
        if ensemble and (not limits or better("ensemble", ensemble[0], limits[self.belief_][0], self._Q)):
            self.belief_, limits["ensemble"] = "ensemble", ensemble
        _, self.max_risk_, self.min_rate_ = limits[self.belief_]
        return beliefs[self.belief_][1]

    @property
    def _decides(self) -> str:
        """Who may decide besides the tree, without boosted trees."""
        return "discriminant" if self.classifier is None else "classifier"

    def _held_out_walk(self, X: Rows, y: Array, bins: Bins, rows: NDArray[np.int64]) -> tuple[Self, Paths]:
        """Return a model that has not seen these rows, and their walks by it."""
        others = np.setdiff1d(np.arange(len(y)), rows)
        model = self._learned_from(X[others], y[others], bins)
        return model, model._walk_to_the_end(model._cells(X[rows], np.arange(len(rows)))[1])

    def _evidence(
        self, kind: str, X: Rows, y: Array, held: list[NDArray[np.int64]], walks: list[tuple[Self, Paths]]
    ) -> Iterator[Floats]:
        """Return what the values of each fold's walks say, by who is taught by the walks of the other folds' rows."""
        n_steps = max(path.order.shape[1] for _, path in walks)
        asked = np.full((len(y), n_steps), -1)  # columns of X
        for rows, (model, path) in zip(held, walks, strict=True):
            steps = np.arange(path.order.shape[1])
            asked[rows[:, None], steps] = np.append(model.candidates_, -1)[path.order]
        for rows, (model, path) in zip(held, walks, strict=True):
            others = np.setdiff1d(np.arange(len(y)), rows)
            place = np.full(X.shape[1] + 1, -1)
            place[model.candidates_] = np.arange(len(model.candidates_))
            values, order = model._cells(X[others], np.arange(len(others)))[0], place[asked[others]]
            told = model._cells(X[rows], np.arange(len(rows)))[0]
            if kind == "trees":
                trees = SmallTrees(len(self.classes_)).fit(values, y[others], order)
                yield trees.evidence(told, path.order)[None]
            else:
                yield kinds_of(model._taught(kind, values, y[others], order), told, path.order)

    def _learned_from(self, X: Rows, y: Array, bins: Bins) -> Self:
        """Return a model whose columns and tree are chosen by these rows only."""
        model = copy.copy(self)
        if X.shape[1] > self.max_features:  # else all that vary
            try:
                model._offer(self._candidates(X, y, bins.tables(X, y, len(self.classes_))), bins)
            except NothingTellsError:
                model._offer(self.candidates_[:0], bins)
        model._plant(model._cells(X, np.arange(X.shape[0]))[1], y)
        return model

    def _taught(self, kind: str, values: Array, y: Array, order: Array | None) -> Judge:
        """Return who decides, if not the tree, taught by rows that come to know their values in this order."""
        settings = {"n_bins": self.n_bins, "n_classes": len(self.classes_), "classifier": self.classifier}
        return taught(kind, values, y, order, **settings)

    def _limits(self, posterior: Floats, paths: Paths, y: Array) -> tuple[Floats, float, float]:
        """Return what the best thresholds of (2) cost each row, and these; infinite where buying does not pay."""
        risk, rate = (posterior @ self._Q).min(axis=2), paths.rate.copy()
        rate[0] = np.inf  # before the first value all rows are alike: no threshold may tell the folds apart
        wrong = np.stack([decided(step, y, self._Q) for step in posterior])
        cost, highest, lowest = best_thresholds(risk, rate, paths.spent, wrong, y, self.mean_budget)
        if highest == np.inf or not pays(cost, wrong[0], self._Q):
            return wrong[0], np.inf, np.inf
        return cost, highest, lowest

    def _keep_within(self, mean_budget: float, values: Array, codes: Array) -> None:
        """Ask for a higher rate if the last tree would spend more than those that found the thresholds."""
        paths = self._walk_to_the_end(codes)
        believed = paths.posterior if self._judge is None else judged(self._judge, values, paths.order)
        risk = (believed @ self._Q).min(axis=2)
        rates, rate = paths.rate[np.isfinite(paths.rate)], paths.rate.copy()
        rate[0] = np.inf
        for lowest in np.unique(np.r_[self.min_rate_, np.quantile(rates, _QUANTILES)]):
            self.min_rate_ = max(self.min_rate_, float(lowest))
            at = stops_at(risk, rate, self.max_risk_, self.min_rate_)
            if paths.spent[at, np.arange(len(at))].mean() <= mean_budget + ROUNDING:
                return

    def _walk_to_the_end(self, codes: Array) -> Paths:
        """Walk rows by the tree until nothing is left to buy, and the decisions be the tree's."""
        state, rows = self._start(len(codes)), np.arange(len(codes))
        found: list[tuple[Floats, Floats, Floats]] = []
        most = min(self.max_steps, max(1, codes.shape[1]))  # no column is asked for twice
        order = np.full((len(codes), most), -1)
        for step in range(most + 1):
            position, rate, believed = self._best(state)
            found.append((believed, rate, state.spent.copy()))
            go_on = rows[position >= 0]
            if step == most or not len(go_on):
                break
            at = order[go_on, step] = position[go_on]
            code = codes[go_on, at]
            state.spent[go_on] += np.where(code >= 0, self._price(state.of(go_on), at), 0.0)
            state.values[go_on, at], state.asked[go_on, at] = code, True
        posterior, rate, spent = (longer(np.stack(part), most + 1) for part in zip(*found, strict=True))
        return Paths(posterior, rate, spent, order)

    # -- walking -------------------------------------------------------------------------------------------

    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        return self._bins.of(positions).codes(values)

    def _first_belief(self) -> Floats:
        return self._tree.prior

    def _price(self, state: State, position: Array) -> Floats:
        return self._offers.price(state, position)

    def _best(self, state: State) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return the best offer for each row, -1 if there is none, its rate, and what the tree believes."""
        n, K = state.asked.shape
        if K == 0 or len(self.classes_) == 1:
            return np.full(n, -1), np.zeros(n), np.tile(self._tree.prior, (n, 1))
        step, parts = max(1, _NUMBERS // K), []
        for at in range(0, n, step):
            part = state.of(np.arange(at, min(at + step, n)))
            believed, information = self._tree.inform(part.values)
            parts.append((*self._offers.best(part, believed, information), believed))
        if not parts:
            return np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, len(self.classes_)))
        position, rate, believed = (np.concatenate(part) for part in zip(*parts, strict=True))
        return position, rate, believed

    def _next(self, state: State) -> NDArray[np.int64]:
        position, rate, _ = self._best(state)
        risk = (state.posterior[:, :, None] * self._Q).sum(axis=1).min(axis=1)
        none = self.min_rate_ == np.inf  # all rows are asked for a first value, or none
        begun = state.asked.any(axis=1) | none
        stop = ((risk <= self.max_risk_) | (rate <= self.min_rate_)) & np.isfinite(rate) & begun
        return np.where(stop, -1, position)

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        rows = np.arange(len(position))
        state.values[rows, position], state.numbers[rows, position] = code, value
        state.asked[rows, position] = True
        if self._judge is None:
            state.posterior[:] = self._tree.inform(state.values)[0]
            return
        found = self._judge.posterior(state.numbers)
        state.posterior[:] = np.where((code >= 0)[:, None], found, state.posterior)
