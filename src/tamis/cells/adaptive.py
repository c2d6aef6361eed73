"""AdaptiveIFC2F: a different next feature for each row, chosen by its expected gain.

An extension that Liyanage, Zois, Chelmis (2021) propose as future work: their network (:mod:`tamis.cells.ifc2f`) with
exact inference, so that any feature can be acquired next. With e the known values of a row::

    information of feature j:  I_j(e) = H(C | e) - sum_v P(x_j = v | e) H(C | e, x_j = v)           (1)
    acquire argmax_j I_j(e) / e_j,  unless  g(pi) <= tau_risk  or  max_j I_j(e) / e_j <= tau_rate       (2)

For a numeric target, H is the variance. g(pi) = min_j Q_j . pi is the risk of an immediate decision. The textbook
rule, one-step expected cost, stops too early: most single values do not change the decision, so their value is 0 even
if two of them together would change it. Information selects the feature, and the two thresholds are chosen on the rows
of `fit`: each row is walked to the end by a tree fitted without it, and the thresholds minimise the sum of
misclassification and acquisition costs (:mod:`tamis.cells.policy_selection`). Before the first value all rows are
identical, so it is acquired for all of them or, with infinite thresholds, for none.

A column that only indicates which other column to acquire has little information itself. With two steps, the
information of the best column after each of its values is included::

    max{ I_j(e) / e_j,  (I_j(e) + sum_v P(x_j = v | e) I_k(v)(e, x_j = v)) / (e_j + sum_v P(x_j = v | e) e_k(v)) }  (3)

with k(v) the column of the best rate if x_j = v.

A richer classifier can represent interactions that a tree cannot, such as the parity of three features. An ensemble of
a discriminant analysis and boosted trees (:mod:`tamis.cells.ensemble`) decides if its cost on the walks is
significantly lower, or always with ``decision="ensemble"``; candidates then include columns that are only jointly
relevant.

If some columns determine which others are relevant, rows are divided into contexts with models of their own
(:mod:`tamis.cells.contexts`), if that is significantly better on held-out rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Ints, Rows
from tamis._validation.parameters import integer, parameter
from tamis.base import State
from tamis.base.prices import Tariff
from tamis.cells.any_order import AnyOrder
from tamis.cells.binned_classifier import SHARED_DOCS, BinnedClassifier, needless_columns
from tamis.cells.bins import Bins
from tamis.cells.contexts import ContextModel, Contexts, find_contexts
from tamis.cells.discriminant import EvidenceWeights, posterior_of
from tamis.cells.ensemble import (
    Ensemble,
    EvidenceModel,
    calibrate_evidence,
    concatenate_evidence,
    evidence_by_kind,
)
from tamis.cells.masked import check_classifier, columns_by_gain
from tamis.cells.network import Network, smoothed_tables, spanning_tree
from tamis.cells.policy_selection import (
    FOLDS,
    ROUNDING,
    Objective,
    Paths,
    best_thresholds,
    is_preferred,
    is_surely_cheaper,
    pad_steps,
    stopping_steps,
    stratified_folds,
)
from tamis.cells.relevance import NoRelevantColumnError, relevance
from tamis.cells.small_trees import SmallTrees
from tamis.cells.tree import Tree
from tamis.dependence.information import adjusted_mutual_information, conditional_mutual_information

# Quantiles of the observed rates: candidates for the threshold if a mean budget is exceeded.
_QUANTILES = np.linspace(0.0, 1.0, 25)
_WALKS = 3_000  # rows walked to choose the thresholds, and to fit trees
_GROWN = 1_000  # columns that boosting selects from
_NUMBERS = 1 << 20  # offers evaluated at a time


@dataclass
class Offers:
    """The features that can be acquired next, and their prices.

    Attributes
    ----------
    tariff : Tariff
    budget : float
        Largest total price of a row.
    max_steps : int
        Largest number of columns acquired for a row.
    distances : ndarray of shape (n_classes, n_classes) or (0, 0)
        As for :class:`tamis.cells.tree.Tree`.
    """

    tariff: Tariff
    budget: float
    max_steps: int
    distances: Floats

    def best(self, state: State, posterior: Floats, information: Floats) -> tuple[Ints, Floats]:
        """Return the position with the most information per price for each row, -1 if there is none, and its rate."""
        if not state.asked.shape[1]:
            return np.full(len(state.asked), -1), np.zeros(len(state.asked))
        information, rate = self.rates(state, posterior, information)
        # Free values first, then the best rate; within a group, the most informative.
        reached = rate.max(axis=1)
        best = np.where(rate == reached[:, None], information, -1.0).argmax(axis=1)
        return np.where(reached >= 0.0, best, -1), np.maximum(reached, 0.0)

    def rates(self, state: State, posterior: Floats, information: Floats) -> tuple[Floats, Floats]:
        """Return the information of each column (0 if already requested), and that per price (-1 if unavailable)."""
        information = np.where(state.asked, 0.0, information)
        price = np.broadcast_to(self.tariff.own, information.shape)
        if self.tariff.varies:
            price = self.tariff.following(state.paid_or_known)
        rate = np.divide(information, price, out=np.full(price.shape, np.inf), where=price > 0.0)
        refused = state.asked | (information <= 0.0) | (state.n_asked()[:, None] >= self.max_steps)
        if len(self.tariff.fee):
            left = Objective("squared-error" if len(self.distances) else "log-loss", self.distances).risk(
                posterior
            )
            rate = np.maximum(rate, self._shared_rates(state, information, left))
        if np.isfinite(self.budget):
            refused |= price > self.budget * ROUNDING - state.spent[:, None]
        rate[refused] = -1.0
        return information, rate

    def _shared_rates(self, state: State, information: Floats, left: Floats) -> Floats:
        """Return the largest rate of jointly acquired members of a column's group, if the fee is not yet paid.

        The information of the members is assumed additive, up to the entropy or variance of the class, `left`.
        """
        shared = np.zeros(information.shape)
        known = state.paid_or_known
        for fee, of_group in zip(self.tariff.fee, self.tariff.member, strict=True):
            member = np.flatnonzero(of_group)
            due = ~known[:, member].any(axis=1)
            info = information[:, member]
            own = np.where(state.asked[:, member], np.inf, self.tariff.own[member])
            alone = np.divide(info, own, out=np.full(own.shape, np.inf), where=own > 0.0)
            order = np.argsort(-alone, axis=1, kind="stable")  # the best set is a prefix of this order
            together = np.cumsum(np.take_along_axis(info, order, axis=1), axis=1)
            price = fee + np.cumsum(np.take_along_axis(own, order, axis=1), axis=1)
            rates = np.minimum(together, left[:, None]) / np.where(price > 0.0, price, 1.0)
            rates[(price <= 0.0) & (together > 0.0)] = np.inf
            rates[~due] = 0.0
            size = rates.argmax(axis=1)
            inside = np.zeros(info.shape, dtype=bool)
            np.put_along_axis(inside, order, np.arange(len(member)) <= size[:, None], axis=1)
            shared[:, member] = np.maximum(
                shared[:, member], np.where(inside, rates.max(axis=1)[:, None], 0.0)
            )
        return shared


@fill_docstring(SHARED_DOCS)
@dataclass(eq=False, repr=False, kw_only=True)
class AdaptiveIFC2F(BinnedClassifier):
    """Acquires the most informative feature per price for each row, and stops when no feature is worth its price.

    Parameters
    ----------
    %(costs)s
    %(row_budgets)s
    spend : {"worth", "all"}, default="worth"
        "all": a row stops only when no informative value is within `budget`, or after `max_steps` values.
    lookahead : {1, 2}, default=1
        Number of steps considered in choosing the next value. 2: including the best value after it, (3), which finds
        columns that only indicate which value to acquire next. Fitting then takes several times as long.
    decision : {"auto", "tree", "discriminant", "ensemble"}, default="auto"
        The model that decides: the tree, a discriminant analysis of the acquired values, or an ensemble of the latter
        and boosted trees. "auto": the one with the lowest cost on held-out rows; the ensemble, or separate models of
        contexts, only if it is significantly better.
    classifier : scikit-learn classifier with `predict_proba`, optional
        The classifier that decides, with ``decision="auto"``; see :class:`tamis.cells.masked.Masked`. Gradient boosting
        accepts missing values. For a classifier that does not, they are replaced by means.
    n_bins : int, default=4
        V: number of levels (quantile bins) of each column, at least 2.
    max_features : int, default=64
        The largest number of columns in the tree. If there are more, the most relevant are used or, with
        ``decision="ensemble"``, those with the largest gain in gradient boosting. If columns are only jointly relevant,
        choose a small number, so that all of them are acquired.
    max_steps : int, default=30
        The largest number of features acquired per row.
    %(categorical)s
    random_state : int, optional
        Seed of the subsample of rows walked, and of gradient boosting.

    Attributes
    ----------
    %(attributes)s
    parent_ : ndarray of shape (K,), int
        The tree: the parent of each candidate.
    belief_ : {"tree", "discriminant", "ensemble", "contexts", "classifier"}
        The model that decides.
    max_risk_, min_rate_ : float
        tau_risk and tau_rate of (2).

    Raises
    ------
    ValueError
        If a parameter is invalid, or no column is relevant to the class.
    DataError
        If a value is infinite.

    Notes
    -----
    A step of a row costs O(K V**2 n_classes). Fitting follows every row of `fit` for `max_steps` steps.

    %(memory)s

    References
    ----------
    Liyanage, Zois, Chelmis (2021). Dynamic Instance-Wise Classification in Correlated Feature Spaces, Section 7.

    Examples
    --------
    Column 0 indicates which of the two others determines the class, so it is acquired first.

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
    [[0, 2], [0, 2], [0, 1]]
    """

    _shapes = """
        _offers.tariff.own (c) float in [0, inf)  _offers.tariff.member (g, c) bool
        _offers.tariff.fee (g) float in [0, inf)
        _offers.tariff.pairs (p, 2) in [0, c)  _offers.tariff.given (p) float in [0, inf)
        _tree.parent (c) in [-1, c)  _tree.distances (k?, k?) float in [0, inf)
        _offers.distances (k?, k?) float in [0, inf)
        _tree.prior (k) float in [0, 1]  _tree._order (c) in [0, c)  _tree.tables (k, c, a+1, a+1) float in [0, 2]
    """

    lookahead: int = parameter(1, 2, default=1)
    decision: str = parameter("auto", "tree", "discriminant", "ensemble", default="auto")
    classifier: Any = None
    max_features: int = parameter(integer("[1, inf)"), default=64)
    max_steps: int = parameter(integer("[1, inf)"), default=30)

    _numbers_count = True
    _evidence_model: EvidenceModel | ContextModel | None = field(init=False)
    # Decides instead for rows with values that were not requested
    _any_order: AnyOrder | None = field(init=False)

    # -- fitting -------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array) -> None:
        check_classifier(self.classifier, self.decision == "auto", "decision='auto'")
        bins = Bins.quantile(X, self.n_bins).with_categories(self._sizes)
        columns = self._candidates(X, y, bins.tables(X, y, len(self.classes_)))
        prices = self._costs()[columns]
        if self.objective == "loss" and self.spend == "worth" and 0 < np.count_nonzero(prices) < len(prices):
            trial, is_held = copy.copy(self), stratified_folds(y, 2, self._origin) == 1
            trial._origin = None if self._origin is None else self._origin[~is_held]
            trial._learn_columns(X[~is_held], y[~is_held], bins, columns)
            columns = columns[~np.isin(columns, needless_columns(trial, X[is_held], y[is_held]))]
        self._learn_columns(X, y, bins, columns)

    def _learn_columns(self, X: Rows, y: Array, bins: Bins, columns: Ints) -> None:
        self._set_candidates(columns, bins)
        rows = self._some_rows(X.shape[0], self._n_walks(_WALKS, min(self.max_steps, len(self.candidates_))))
        origin = self._origin_of(rows)
        evidence_weight = self._calibrate(X[rows], y[rows], bins, origin)
        values, codes = self._cells(X, np.arange(X.shape[0]))
        self._build_tree(codes, y)
        self._any_order = None
        if self.belief_ != "tree":
            kind = "ensemble" if self.classifier is None else "classifier"
            self._any_order = self._fit_any_order(kind, values[rows], y[rows], self.candidates_, origin)
            if self.belief_ == "contexts":
                contexts = self._contexts_of(values[rows], codes[rows], y[rows])
                assert contexts is not None  # as in _calibrate
                self._evidence_model = self._fit_contexts(contexts, values, codes, y)
            else:
                order = None if self.belief_ == "discriminant" else self._walk_orders(codes)
                self._evidence_model = self._fit_evidence_model(
                    self.belief_, values, y, order, self.candidates_
                )
            assert self._evidence_model is not None
            self._evidence_model.evidence_weight = evidence_weight
        self.parent_: Ints = self._tree.parent
        if self.mean_budget is not None:
            self._fit_mean_budget(float(self.mean_budget), *self._cells(X[rows], np.arange(len(rows))))

    def _set_candidates(self, candidates: Ints, bins: Bins) -> None:
        """Set the columns that can be acquired."""
        self.candidates_ = candidates
        self._bins: Bins = bins.take(self.candidates_)
        self.prices_ = self._costs()[self.candidates_]
        budget = np.inf if self.budget is None else float(self.budget)
        self._tariff = self._whole_tariff().take(self.candidates_)
        self._offers = Offers(self._tariff, budget, self.max_steps, self._distances)

    def _candidates(self, X: Rows, y: Array, tables: Array) -> Ints:
        """Return the columns of the tree: all non-constant ones if they fit, as some may be only jointly relevant."""
        vary = np.flatnonzero(np.count_nonzero(tables.sum(axis=2), axis=1) > 1)
        if len(self.classes_) > 1 and len(vary) <= self.max_features:
            # The most relevant column is the root of the tree, for any order of the columns.
            relevant = adjusted_mutual_information(tables[vary])
            return vary[np.argsort(-relevant, kind="stable")]
        together = self.decision == "ensemble"
        scores, least = relevance(tables, _GROWN if together else self.max_features)
        known = np.flatnonzero(scores > least)
        ranked = known[np.argsort(-scores[known], kind="stable")]
        if together:
            grown = vary if len(vary) <= _GROWN else ranked[:_GROWN]
            gained = columns_by_gain(X[:, grown], y, self.random_state)
            ranked = np.concatenate([grown[gained], np.setdiff1d(ranked, grown[gained], assume_unique=True)])
        return ranked[: self.max_features]

    def _build_tree(self, codes: Array, y: Array) -> None:
        """Build the tree from these rows."""
        n_values, levels = self._bins.n_bins, self._bins.n_levels
        shared = conditional_mutual_information(codes, y, n_values, len(self.classes_))
        network = Network(codes, y, spanning_tree(shared), n_values, len(self.classes_), levels)
        # The ensemble also uses columns without pairwise information, so tables are not smoothed for it.
        plain = self.decision == "ensemble"
        tables = network.tables() if plain else smoothed_tables(network, codes, y)
        self._tree = Tree(network.parent, tables, network.prior(), self._distances)

    def _calibrate(self, X: Rows, y: Array, bins: Bins, origin: Ints | None) -> EvidenceWeights:
        """Walk rows through trees fitted without them; choose the model that decides, and the thresholds of (2).

        Returns the weights of the evidence of the model that decides, unless it is the tree.
        """
        self._evidence_model = None
        self.belief_, self.max_risk_, self.min_rate_ = "tree", np.inf, np.inf
        fold = stratified_folds(y, origin=origin)
        held = [np.flatnonzero(fold == f) for f in range(FOLDS) if (fold == f).any()]
        if not held:  # no class has two rows
            return 1.0
        walks = [self._fold_walk(X, y, bins, rows) for rows in held]
        paths, rows = Paths.concatenate([path for _, path in walks]), np.concatenate(held)
        label, origin = y[rows], None if origin is None else origin[rows]
        prior = np.concatenate([np.tile(model._tree.prior, (len(path.order), 1)) for model, path in walks])
        beliefs: dict[str, tuple[Floats, EvidenceWeights]] = {}
        if self.classifier is None and self.decision in ("tree", "auto"):
            beliefs["tree"] = paths.posterior, 1.0
        if self.decision != "tree":
            evidence = concatenate_evidence(list(self._evidence(self._default_model, X, y, held, walks)))
            if self.decision != "ensemble":
                beliefs[self._default_model] = calibrate_evidence(evidence, prior, label)
        if self.classifier is None and self.decision in ("auto", "ensemble"):
            trees = concatenate_evidence(list(self._evidence("trees", X, y, held, walks)))
            beliefs["ensemble"] = calibrate_evidence(np.concatenate([evidence, trees]), prior, label)
        limits = {
            name: self._choose_thresholds(belief, paths, label, origin)
            for name, (belief, _) in beliefs.items()
        }
        ensemble = limits.pop("ensemble", None)
        if limits:
            self.belief_ = min(limits, key=lambda name: limits[name][0].mean())  # the first on ties
        if ensemble and (
            not limits or is_preferred("ensemble", ensemble[0], limits[self.belief_][0], self._goal.worst)
        ):
            self.belief_, limits["ensemble"] = "ensemble", ensemble
        if self.classifier is None and self.decision == "auto":
            found = self._calibrate_contexts(X, y, held, walks, prior, label, origin)
            if found and is_preferred("ensemble", found[0][0], limits[self.belief_][0], self._goal.worst):
                self.belief_, limits["contexts"], beliefs["contexts"] = "contexts", *found
        _, self.max_risk_, self.min_rate_ = limits[self.belief_]
        return beliefs[self.belief_][1]

    def _calibrate_contexts(
        self, X: Rows, y: Array, held: list[Ints], walks: list[tuple[Self, Paths]], prior: Floats,
        label: Array, origin: Ints | None,
    ) -> tuple[tuple[Floats, float, float], tuple[Floats, EvidenceWeights]] | None:  # fmt: skip
        """Return the cost of each row, thresholds, probabilities and weights of a policy by contexts, None if none."""
        if self._contexts_of(*self._cells(X, np.arange(len(y))), y) is None:
            return None
        evidence, paths = [], []
        for rows, (model, _) in zip(held, walks, strict=True):
            others = np.setdiff1d(np.arange(len(y)), rows)
            values, codes = model._cells(X[others], np.arange(len(others)))
            contexts = model._contexts_of(values, codes, y[others])
            if contexts is None:
                return None
            model._evidence_model = fitted = model._fit_contexts(contexts, values, codes, y[others])
            values, codes = model._cells(X[rows], np.arange(len(rows)))
            paths.append(model._full_walk(codes, values))
            evidence.append(fitted.evidence(values, paths[-1].order))
            model._evidence_model = None
        posterior, weight = calibrate_evidence(concatenate_evidence(evidence), prior, label)
        thresholds = self._choose_thresholds(posterior, Paths.concatenate(paths), label, origin)
        return thresholds, (posterior, weight)

    def _contexts_of(self, values: Floats, codes: Array, y: Array) -> Contexts | None:
        """Return the contexts of these rows, None if there is only one."""
        return find_contexts(values, codes, y, len(self.classes_), self._sizes[self.candidates_])

    def _fit_contexts(self, contexts: Contexts, values: Floats, codes: Array, y: Array) -> ContextModel:
        """Return models of the contexts, fitted to these rows."""
        context, sizes = contexts.route(values)[0], self._sizes[self.candidates_]
        trees, models = (
            [],
            [Ensemble(self.n_bins, len(self.classes_), trees=False).fit(values, y, None, sizes)],
        )
        for c in range(contexts.n_contexts):
            own, part = copy.copy(self), context == c
            own._build_tree(codes[part], y[part])
            trees.append(own._tree)
            model = Ensemble(self.n_bins, len(self.classes_), trees=False)
            models.append(model.fit(values[part], y[part], None, sizes))
        return ContextModel(contexts, trees, models)

    def _fold_walk(self, X: Rows, y: Array, bins: Bins, rows: Ints) -> tuple[Self, Paths]:
        """Return a model fitted without these rows, and their walks by it."""
        others = np.setdiff1d(np.arange(len(y)), rows)
        model = self._fit_copy(X[others], y[others], bins)
        return model, model._full_walk(model._cells(X[rows], np.arange(len(rows)))[1])

    def _evidence(
        self, kind: str, X: Rows, y: Array, held: list[Ints], walks: list[tuple[Self, Paths]]
    ) -> Iterator[Floats]:
        """Return the evidence on the walks of each fold, from a model fitted to the walks of the other folds."""
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
            held_values = model._cells(X[rows], np.arange(len(rows)))[0]
            if kind == "trees":
                sizes = self._sizes[model.candidates_]
                trees = SmallTrees(len(self.classes_)).fit(values, y[others], order, sizes, draft=True)
                yield trees.evidence(held_values, path.order)[None]
            else:
                fitted = model._fit_evidence_model(kind, values, y[others], order, model.candidates_)
                yield evidence_by_kind(fitted, held_values, path.order)

    def _fit_copy(self, X: Rows, y: Array, bins: Bins) -> Self:
        """Return a copy whose columns and tree are fitted to these rows only."""
        model = copy.copy(self)
        if X.shape[1] > self.max_features:  # otherwise, all non-constant columns
            try:
                model._set_candidates(self._candidates(X, y, bins.tables(X, y, len(self.classes_))), bins)
            except NoRelevantColumnError:
                model._set_candidates(self.candidates_[:0], bins)
        model._build_tree(model._cells(X, np.arange(X.shape[0]))[1], y)
        return model

    def _choose_thresholds(
        self, posterior: Floats, paths: Paths, y: Array, origin: Ints | None
    ) -> tuple[Floats, float, float]:
        """Return the cost of each row under the best thresholds of (2), and these; inf if nothing is acquired."""
        wrong = np.stack([self._goal.losses(step, y) for step in posterior])
        if self.spend == "all":
            return wrong[-1], -np.inf, -np.inf
        risk, rate = self._goal.risk(posterior), paths.rate.copy()
        rate[0] = np.inf  # before the first value all rows are identical: no threshold may separate the folds
        cost, highest, lowest = best_thresholds(risk, rate, paths.spent, wrong, y, self.mean_budget, origin)
        if highest == np.inf or not is_surely_cheaper(cost, wrong[0], self._goal.worst):
            return wrong[0], np.inf, np.inf
        return cost, highest, lowest

    @property
    def _distances(self) -> Floats:
        """Squared distances between the levels of a numeric target; empty for classes."""
        return self._Q if self._is_regression else np.zeros((0, 0))

    def _fit_mean_budget(self, mean_budget: float, values: Array, codes: Array) -> None:
        """Raise the rate threshold if the final tree would exceed the mean budget."""
        paths = self._full_walk(codes, values)
        posterior = paths.posterior
        if self._evidence_model is not None:
            model = self._evidence_model
            posterior = posterior_of(model.evidence(values, paths.order), model.prior, model.evidence_weight)
        risk = self._goal.risk(posterior)
        rates, rate = paths.rate[np.isfinite(paths.rate)], paths.rate.copy()
        rate[0] = np.inf
        for lowest in np.unique(np.r_[self.min_rate_, np.quantile(rates, _QUANTILES)]):
            self.min_rate_ = max(self.min_rate_, float(lowest))
            at = stopping_steps(risk, rate, self.max_risk_, self.min_rate_)
            if paths.spent[at, np.arange(len(at))].mean() <= mean_budget * ROUNDING:
                return

    def _full_walk(self, codes: Array, values: Floats | None = None) -> Paths:
        """Walk rows by the tree until no feature is left, with the posteriors of the tree; contexts need the values."""
        state, rows = self._start(len(codes)), np.arange(len(codes))
        steps: list[tuple[Floats, Floats, Floats]] = []
        most = min(self.max_steps, max(1, codes.shape[1]))  # no column is acquired twice
        order = np.full((len(codes), most), -1)
        for step in range(most + 1):
            position, rate, posterior = self._best(state)
            steps.append((posterior, rate, state.spent.copy()))
            active = rows[position >= 0]
            if step == most or not len(active):
                break
            at = order[active, step] = position[active]
            code = codes[active, at]
            state.spent[active] += np.where(code >= 0, self._price(state.take(active), at), 0.0)
            state.values[active, at], state.asked[active, at] = code, True
            if values is not None:
                state.numbers[active, at] = values[active, at]
        posterior, rate, spent = (pad_steps(np.stack(part), most + 1) for part in zip(*steps, strict=True))
        return Paths(posterior, rate, spent, order)

    def _walk_orders(self, codes: Array) -> Ints:
        """Return the order of acquisition of each row, for a block of rows at a time."""
        n_steps = min(self.max_steps, max(1, codes.shape[1]))
        order = np.full((len(codes), n_steps), -1)
        for at in range(0, len(codes), _WALKS):
            order[at : at + _WALKS] = self._full_walk(codes[at : at + _WALKS]).order
        return order

    # -- acquisition ------------------------------------------------------------------------------------------

    def _first_belief(self) -> Floats:
        return self._tree.prior

    def _best(self, state: State) -> tuple[Ints, Floats, Floats]:
        """Return the best offer for each row, -1 if there is none, its rate, and the posterior of the tree."""
        n, K = state.asked.shape
        if K == 0 or len(self.classes_) == 1:
            return np.full(n, -1), np.zeros(n), np.tile(self._tree.prior, (n, 1))
        step, parts = max(1, _NUMBERS // K), []
        for at in range(0, n, step):
            part = state.take(np.arange(at, min(at + step, n)))
            parts.append(self._best_two(part) if self.lookahead == 2 else self._best_one(part))
        if not parts:
            return np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, len(self.classes_)))
        position, rate, posterior = (np.concatenate(part) for part in zip(*parts, strict=True))
        return position, rate, posterior

    def _best_one(self, state: State) -> tuple[Ints, Floats, Floats]:
        posterior, information = self._tree.expected_information(state.values)
        if isinstance(self._evidence_model, ContextModel):
            return self._best_in_context(self._evidence_model, state, posterior, information)
        return (*self._offers.best(state, posterior, information), posterior)

    def _best_in_context(
        self, model: ContextModel, state: State, posterior: Floats, information: Floats
    ) -> tuple[Ints, Floats, Floats]:
        """Return the next column on the way to the context of each row, or the best one in the context."""
        context, pending = model.contexts.route(state.numbers)
        for c in np.unique(context[context >= 0]):
            mine = np.flatnonzero(context == c)
            posterior[mine], information[mine] = model.trees[c].expected_information(state.values[mine])
        position, rate = self._offers.best(state, posterior, information)
        # The context is worth more than its own information; a row without it continues with the tree of all rows.
        due = np.flatnonzero((context < 0) & (pending >= 0))
        _, rates = self._offers.rates(
            state.take(due), posterior[due], np.ones((len(due), state.asked.shape[1]))
        )
        open_ = rates[np.arange(len(due)), pending[due]] >= 0.0
        position[due[open_]], rate[due[open_]] = pending[due[open_]], np.inf
        return position, rate, posterior

    def _best_two(self, state: State) -> tuple[Ints, Floats, Floats]:
        """Return the best first of two offers, its rate by (3), and the posterior; equal rows are evaluated once."""
        parts = state.values, state.asked, state.unavailable, state.without_result, state.spent[:, None]
        key = np.concatenate([part.astype(np.float64) for part in parts], axis=1)
        _, first, back = np.unique(key, axis=0, return_index=True, return_inverse=True)
        own = state.take(first)
        posterior, table = self._tree.infer(own.values)
        information = self._tree.expected_information(own.values)[1]
        one, rate = self._offers.rates(own, posterior, information)
        pair = np.full(rate.shape, -1.0)
        price = self._offers.tariff.following(own.paid_or_known)
        for j in range(rate.shape[1]):
            mine = np.flatnonzero((rate[:, j] >= 0.0) & np.isfinite(rate[:, j]))
            if len(mine):
                share = (posterior[mine, None, :] * table[mine, j]).sum(axis=2)
                pair[mine, j] = self._pair_rate(
                    own.take(mine), j, information[mine, j], price[mine, j], share
                )
        rate = np.maximum(rate, pair)
        reached = rate.max(axis=1)
        best = np.where(rate == reached[:, None], one, -1.0).argmax(axis=1)
        offers = np.where(reached >= 0.0, best, -1), np.maximum(reached, 0.0), posterior
        return tuple(part[back.ravel()] for part in offers)  # type: ignore[return-value]

    def _pair_rate(self, state: State, j: int, information: Floats, price: Floats, share: Floats) -> Floats:
        """Return the information per price of column j and of the best column after each of its values, (3)."""
        rows = np.arange(len(state.asked))
        total, paid = information.copy(), price.copy()
        state.asked[:, j] = True
        state.spent += price
        for v in range(share.shape[1]):
            state.values[:, j] = v
            posterior, after = self._tree.expected_information(state.values)
            k, rate = self._offers.best(state, posterior, after)
            there = (k >= 0) & (rate > 0.0) & (share[:, v] > 0.0)
            following = self._offers.tariff.following(state.paid_or_known)
            total += np.where(there, share[:, v] * after[rows, k], 0.0)
            paid += np.where(there, share[:, v] * following[rows, k], 0.0)
        return np.divide(total, paid, out=np.full(len(total), np.inf), where=paid > 0.0)

    def _next(self, state: State) -> Ints:
        position, rate, _ = self._best(state)
        risk = self._goal.risk_of_rows(state.posterior)
        none = self.min_rate_ == np.inf  # the first value is acquired for all rows, or for none
        untouched = state.n_asked() == 0
        stop = ((risk <= self.max_risk_) | (rate <= self.min_rate_)) & np.isfinite(rate) & (~untouched | none)
        if (other := untouched & state.unavailable.any(axis=1)).any():
            # If the usual first value is unavailable, its replacement must be worth its price.
            usual = self._best(self._start(1))[0][0]
            stop |= other & (position != usual) & (rate <= self.min_rate_)
        return np.where(stop, -1, position)

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        state.record(position, code, value)
        if self._evidence_model is None:
            state.posterior[:] = self._tree.expected_information(state.values)[0]
            return
        posterior = self._evidence_model.posterior(state.numbers)
        if state.volunteered.any() and self._any_order is not None:
            mine = state.volunteered
            posterior[mine] = self._any_order.posterior(state.numbers[mine][:, : self._any_order.n_columns])
        state.posterior[:] = np.where((code >= 0)[:, None], posterior, state.posterior)
