"""The base of classifiers that acquire features in one order for all rows, with an individual stopping stage."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis._validation.parameters import parameters
from tamis.base import State
from tamis.base.cells import Purchases
from tamis.cells.any_order import AnyOrder
from tamis.cells.binned_classifier import BinnedClassifier
from tamis.cells.bins import Bins, dense
from tamis.cells.discriminant import EvidenceWeights
from tamis.cells.ensemble import (
    EvidenceModel,
    calibrate_evidence,
    concatenate_evidence,
    evidence_by_kind,
    posterior_path,
)
from tamis.cells.masked import check_classifier
from tamis.cells.policy_selection import (
    FOLDS,
    ROUNDING,
    Policy,
    Walks,
    best_policy,
    is_preferred,
    is_surely_cheaper,
    pad_steps,
    stratified_folds,
)
from tamis.cells.relevance import NoRelevantColumnError, mrmr
from tamis.cells.small_trees import SmallTrees
from tamis.cells.stopping import Likelihood, update_posterior

_WALKS = 5_000  # rows walked to choose a policy
_STEPS = 40  # largest number of values of a walk
_BELIEFS = {
    "discriminant": "a discriminant analysis",
    "ensemble": "a discriminant analysis and boosted trees",
    "classifier": "the classifier",
}
_SUBSETS = 3_000  # rows used for the model of random subsets


@dataclass
class _Fold:
    """Held-out rows, the remaining rows, and the counts of the latter."""

    rest: Ints
    held: Ints
    tables: Array


@dataclass
class _Calibration:
    """The results of the walks of held-out rows: the columns of each fold, candidate models, and their evidence.

    `cost` is the cost of each row by the policy chosen without it.
    """

    columns: list[Ints]
    walks: list[Walks]
    evidence_weight: EvidenceWeights
    evidence: Floats
    prior: Floats
    y: Array
    origin: Ints | None
    cost: Floats

    def weight_for(self, policy: Policy) -> EvidenceWeights:
        """Return the weights of the evidence at the step of the decision, if it is the same for all rows.

        Weights averaged over up to 40 values do not suit the first one.
        """
        if policy.max_values > 1 and (policy.rule, policy.max_risk) != ("risk", -np.inf):
            return self.evidence_weight
        return calibrate_evidence(self.evidence[:, [0, policy.max_values]], self.prior, self.y)[1]


class FixedOrder(BinnedClassifier):
    """Acquires features in the order of `candidates_`; a subclass defines when the next one is worth its price.

    Attributes
    ----------
    policy_ : Policy or None
        The probabilities used and when to stop, chosen on held-out walks; None without `calibrate`.
    decided_by_ : str
        The name of the method, or what the calibration chose in its place.
    """

    _shapes = """
        _chain?.link (c) in [-1, c)  _chain?.tables[] (k, a+1, *) float in [0, 2]
        stopping_?.prices (c) float in [0, inf)  stopping_?.context[] (*) in [0, c)
        stopping_?.n_values in [a+1, a+1]
        stopping_?.stages[].vectors (*, k) finite
        stopping_?.stages[].start (*) in [0, len(its.vectors)] increasing  policy_.max_values in [0, 2**62)
    """

    _allowed = parameters(calibrate=(False, True, "never"))

    # The candidates of order="auto": the published one first, that of the fixed subset last.
    _orders: tuple[str, ...]

    calibrate: bool | str
    order: str
    order_: str
    classifier: Any
    binning = "quantile"
    policy_: Policy | None
    _bins: Bins  # bins of the candidates
    _chain: Likelihood  # the likelihood of each value given the class
    _evidence_model: EvidenceModel | None  # the model that decides, unless it is the chain
    _any_order: AnyOrder | None  # decides instead for rows with values that were not requested

    _allow_trees = True
    _most: int | None = None  # largest number of columns in order, when rows are held out

    # -- hooks ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _learn_model(self, X: Rows, y: Array, bins: Bins, tables: Array) -> None:
        """Fit the model as published from rows and their counts; sets `candidates_`, `_bins` and `_chain`."""

    @abstractmethod
    def _should_continue(self, k: int, posterior: Floats, values: Array) -> Mask:
        """Return for which rows at stage k the k-th feature is worth its price by the model's own rule."""

    def _model_prior(self) -> Floats:
        """Return the prior of the model."""
        return self.prior_

    def _n_spares(self) -> int:
        """Return how many features after those of the policy may replace unavailable ones."""
        return 0

    def _within_budget(self, order: Ints) -> Ints:
        """Return the columns of an order whose total price is within the budget; more expensive ones are omitted.

        The first value is acquired for every row, so it must also be within the mean budget.
        """
        if self.mean_budget is not None:
            price = self._costs()[order]
            order = order[np.maximum.accumulate(price <= float(self.mean_budget) * ROUNDING)]
        if self.budget is None:
            return order
        left, kept, tariff = float(self.budget) * ROUNDING, [], self._whole_tariff().take(order)
        known = np.zeros((1, len(order)), dtype=bool)
        price = tariff.following(known)[0]
        for at, column in enumerate(order):
            if price[at] <= left:
                left -= price[at]
                kept.append(column)
                known[0, at] = True
                if tariff.varies:
                    price = tariff.following(known)[0]
        return np.array(kept, dtype=np.int64)

    def _order_by(self, worth: Floats, columns: Ints) -> Ints:
        """Return the order of the columns by worth per price after those before; same shape as `worth`."""
        tariff = self._whole_tariff().take(columns)
        known = np.zeros((1, len(columns)), dtype=bool)
        order: list[int] = []
        while True:
            price = tariff.following(known)[0]
            rate = np.divide(worth, price, out=np.where(worth > 0.0, np.inf, 0.0), where=price > 0.0)
            if not tariff.varies:
                return np.argsort(-rate, kind="stable")
            if len(order) == len(columns):
                return np.array(order, dtype=np.int64)
            order.append(int(np.argmax(np.where(known[0], -np.inf, rate))))
            known[0, order[-1]] = True

    def _stage_prices(self) -> Floats:
        """Return the price of each candidate after those before it."""
        return self._whole_tariff().take(self.candidates_).in_order()

    def _order_by_mrmr(self, X: Rows, y: Array, bins: Bins, tables: Array, kept: Ints) -> Ints:
        """Return the order of the kept columns, whose bins these are: of all, or of those that a walk can reach."""
        n_columns = min(len(kept), _STEPS) if self._is_calibrated else len(kept)
        return mrmr(X[:, kept], y, bins, tables[kept], self._whole_tariff().take(kept), n_columns)

    # -- fitting -------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array) -> None:
        check_classifier(self.classifier, self._is_calibrated, "calibrate=True")
        if not self._is_calibrated:
            for name, default in (("spend", "worth"), ("objective", "loss"), ("mean_budget", None)):
                if (value := getattr(self, name)) != default:
                    raise ValueError(
                        f"{name}={value!r} needs calibrate=True: as published, a row stops by its own rule."
                    )
        self.policy_, self._evidence_model, self._any_order = None, None, None
        bin_columns = Bins.quantile if self.binning == "quantile" else Bins.width
        bins = bin_columns(X, self.n_bins).with_categories(self._sizes)
        tables = bins.tables(X, y, len(self.classes_))
        orders = self._orders if self.order == "auto" else (self.order,)
        models = [copy.copy(self) for _ in (orders if self._is_calibrated else orders[:1])]
        for model, order in zip(models, orders, strict=False):
            model.order_ = order
        folds = self._folds(X, y, bins, tables) if self._is_calibrated else []
        walked = [model._calibrate(X, y, bins, folds) for model in models]
        best = self._best_order(walked)
        self.__dict__.update(vars(models[best]))
        self._learn_model(X, y, bins, tables)
        self._choose_model(X, y, folds, walked[best])
        if (folds or self._decides_otherwise) and len(self.candidates_):
            rows, columns = self._some_rows(X.shape[0], _SUBSETS), self.candidates_[:_STEPS]
            has_trees = self._decides_otherwise and self.classifier is None and self._allow_trees
            kind = "ensemble" if has_trees else self._default_model
            values = dense(X[rows][:, columns])
            self._any_order = self._fit_any_order(kind, values, y[rows], columns, self._origin_of(rows))
        if self.mean_budget is not None:
            self._keep_mean_budget(X, float(self.mean_budget))

    def _keep_mean_budget(self, X: Rows, mean_budget: float) -> None:
        """Reduce the largest number of values if the final model would exceed the mean budget on its rows."""
        self._tariff = self._whole_tariff().take(self.candidates_)
        if X.shape[0] > _WALKS:
            X = X[self._some_rows(X.shape[0], _WALKS)]
        if self.policy_ is None:  # no class has two rows, so none was held out
            self.policy_ = Policy("own", "own", len(self.candidates_), -np.inf)
        trace: Purchases = []
        self._walk(X, trace)
        vars(self._bill).clear()
        prices = self._paid(self._cells(X, np.arange(X.shape[0]))[1])
        paid = np.zeros(self.policy_.max_values)
        for rows, position, *_ in trace:
            np.add.at(paid, position, prices[rows, position])
        within = np.cumsum(paid) <= mean_budget * ROUNDING * X.shape[0]
        self.policy_.max_values = int(np.count_nonzero(within))

    @property
    def _is_calibrated(self) -> bool:
        return self.calibrate not in (False, "never")

    @property
    def decided_by_(self) -> str:
        """What decides: the name of the method, or the probabilities, stopping rule and order of the calibration."""
        check_is_fitted(self)
        policy, own = self.policy_, type(self).__name__
        if policy is None or not self._allow_trees:
            return own
        if policy.max_values == 0:
            return "calibration: no value is worth its price"
        chosen = [] if policy.belief == "own" else [f"probabilities of {_BELIEFS[policy.belief]}"]
        if policy.rule == "risk":
            stops = (
                f"after {policy.max_values:,}" if policy.max_risk == -np.inf else "at a threshold of the risk"
            )
            chosen.append(f"a stop {stops}{' values' if policy.max_risk == -np.inf else ''}")
        order = getattr(self, "order_", self._orders[0])
        if self.order == "auto" and order != self._orders[0]:
            chosen.append(f"the order {order!r}")
        return f"calibration: {', '.join(chosen)}" if chosen else own

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        is_own = not hasattr(self, "policy_") or self.decided_by_ == type(self).__name__
        return text if is_own else f"{text}  # decided by {self.decided_by_}"

    @property
    def _decides_otherwise(self) -> bool:
        """Whether a model other than the chain decides."""
        return self.policy_ is not None and (self.policy_.belief != "own" or self.policy_.max_values == 0)

    def _best_order(self, walked: list[_Calibration | None]) -> int:
        """Return the order with the lowest cost; the last (fixed subset) unless another is significantly better.

        On few rows the estimate of the best of several orders is biased. If no row could be held out, their costs are
        unknown, and the first is used.
        """
        known = [held.cost for held in walked if held is not None]
        if not known:
            return 0
        cheaper = [
            i
            for i, cost in enumerate(known)
            if is_surely_cheaper(cost, known[-1], self._goal.worst, n_tried=len(known))
        ]
        return min(cheaper, key=lambda i: known[i].mean(), default=len(known) - 1)

    def _folds(self, X: Rows, y: Array, bins: Bins, tables: Array) -> list[_Fold]:
        """Return the folds: the held-out rows, and the rows that a model is then fitted to.

        The bins are those of all rows, because they do not depend on the classes; the counts of the training rows are
        all counts minus those of the held-out rows.
        """
        rows = self._some_rows(X.shape[0], self._n_walks(_WALKS, min(_STEPS, X.shape[1])))
        if len(rows) < X.shape[0]:
            tables = bins.tables(X[rows], y[rows], len(self.classes_))
        fold, folds = stratified_folds(y[rows], origin=self._origin_of(rows)), []
        for f in range(FOLDS):
            held, rest = rows[fold == f], rows[fold != f]
            if len(held):
                counts = tables - bins.tables(X[held], y[held], len(self.classes_))
                folds.append(_Fold(rest, held, counts))
        return folds

    def _calibrate(self, X: Rows, y: Array, bins: Bins, folds: list[_Fold]) -> _Calibration | None:
        """Choose the policy by walks of held-out rows; the ensemble is not yet among the models."""
        if not folds:  # as published, or no class has two rows
            return None
        parts = [self._fold_walks(X, y, bins, fold) for fold in folds]
        n_steps = max(len(own.spent) for _, own, _, _ in parts)
        own = Walks(
            "own",
            *(
                np.concatenate([pad_steps(getattr(walk, name), n_steps) for _, walk, _, _ in parts], axis=1)
                for name in ("posterior", "spent", "stops")
            ),
        )
        evidence = concatenate_evidence([part for _, _, part, _ in parts])
        prior = np.concatenate([p for *_, p in parts])
        held = np.concatenate([fold.held for fold in folds])
        walked = y[held]
        posterior, weight = calibrate_evidence(evidence, prior, walked)
        walks = [Walks(self._default_model, posterior, own.spent)]
        if self.classifier is None:
            walks.append(own)
        origin = self._origin_of(held)
        self.policy_, cost = self._policy(walks, walked, origin)
        columns = [own for own, *_ in parts]
        return _Calibration(columns, walks, weight, evidence, prior, walked, origin, cost)

    def _policy(self, walks: list[Walks], y: Array, origin: Ints | None) -> tuple[Policy, Floats]:
        if self.spend == "all":
            return self._spending_policy(walks, y)
        return best_policy(walks, y, self._goal, mean_budget=self.mean_budget, origin=origin)

    def _spending_policy(self, walks: list[Walks], y: Array) -> tuple[Policy, Floats]:
        """Return the policy that never stops, with the probabilities that have the lowest cost at the end."""
        best, least = walks[0], self._goal.losses(walks[0].posterior[-1], y) + walks[0].spent[-1]
        for walk in walks[1:]:
            cost = self._goal.losses(walk.posterior[-1], y) + walk.spent[-1]
            if is_preferred(walk.belief, cost, least, self._goal.worst):
                best, least = walk, cost
        n_steps = len(best.posterior) - 1
        return Policy(best.belief, "risk", n_steps, -np.inf, float(least.mean())), least

    def _choose_model(self, X: Rows, y: Array, folds: list[_Fold], held: _Calibration | None) -> None:
        """Fit the decision model in the chosen order, unless it is this one; it may be an ensemble."""
        if held is None:
            return
        if self.classifier is None and self._allow_trees:
            evidence = np.concatenate([held.evidence, self._tree_evidence(X, y, folds, held)])
            posterior, weight = calibrate_evidence(evidence, held.prior, held.y)
            ensemble = Walks("ensemble", posterior, held.walks[0].spent)
            self.policy_, _ = self._policy([*held.walks, ensemble], held.y, held.origin)
            if self.policy_.belief == "ensemble":
                held.evidence, held.evidence_weight = evidence, weight
        assert self.policy_ is not None
        self.policy_.max_values = min(self.policy_.max_values, len(self.candidates_))
        if self.policy_.belief != "own" and self.policy_.max_values > 0:
            columns = self.candidates_[: self.policy_.max_values + self._n_spares()]
            self._evidence_model = self._fit_evidence_model(
                self.policy_.belief, dense(X[:, columns]), y, None, columns
            )
            self._evidence_model.evidence_weight = held.weight_for(self.policy_)

    def _tree_evidence(self, X: Rows, y: Array, folds: list[_Fold], held: _Calibration) -> Floats:
        """Return the evidence of boosted trees on the walks of held-out rows."""
        evidence = []
        for fold, columns in zip(folds, held.columns, strict=True):
            trees = SmallTrees(len(self.classes_))
            trees.fit(dense(X[fold.rest][:, columns]), y[fold.rest], sizes=self._sizes[columns], draft=True)
            evidence.append(trees.evidence(dense(X[fold.held][:, columns]))[None])
        return concatenate_evidence(evidence)

    def _update_evidence_model(self, X: Rows, y: Array, fading: float) -> None:
        """Update the decision model with more rows; the policy is unchanged."""
        for name in ("_evidence_model", "_any_order"):
            if (model := getattr(self, name)) is not None:
                values = dense(X[:, self.candidates_[: model.n_columns]])
                setattr(self, name, copy.deepcopy(model).partial_fit(values, y, fading))

    def _fold_walks(self, X: Rows, y: Array, bins: Bins, fold: _Fold) -> tuple[Ints, Walks, Floats, Floats]:
        """Return the acquired columns, the model's own walks of held-out rows, the alternative's evidence, and priors.

        The evidence is of shape (n_kinds, n_steps + 1, n_rows, n_classes), the priors of shape (n_rows, n_classes).
        """
        model: Self = copy.copy(self)
        model._most = _STEPS
        X_held, X, y = X[fold.held], X[fold.rest], y[fold.rest]
        model.prior_ = np.bincount(y, minlength=len(self.classes_)) / len(y)
        prior = np.tile(model.prior_, (X_held.shape[0], 1))
        try:
            model._learn_model(X, y, bins, fold.tables)
        except NoRelevantColumnError:  # nothing can be acquired
            n = (1, len(prior))
            walks = Walks("own", prior[None], np.zeros(n), np.ones(n, dtype=bool))
            return (
                np.empty(0, dtype=np.int64),
                walks,
                np.zeros((3 if self.classifier is None else 1, *prior[None].shape)),
                prior,
            )
        model._tariff = self._whole_tariff().take(model.candidates_)
        columns = model.candidates_[:_STEPS]
        evidence_model = model._fit_evidence_model(
            self._default_model, dense(X[:, columns]), y, None, columns
        )
        return (
            columns,
            model._model_walks(X_held),
            evidence_by_kind(evidence_model, dense(X_held[:, columns])),
            prior,
        )

    def _model_walks(self, X: Rows) -> Walks:
        """Walk rows to the end, or for the largest number of steps of a policy."""
        _, codes = self._cells(X, np.arange(X.shape[0]))
        n_steps = min(len(self.candidates_), _STEPS)
        posterior = np.tile(self._first_belief(), (len(codes), 1))
        spent = np.zeros((n_steps + 1, len(codes)))
        walked = [posterior]
        prices = self._paid(codes[:, :n_steps])
        stops = np.ones((n_steps + 1, len(codes)), dtype=bool)
        for k in range(n_steps):
            stops[k] = ~self._should_continue(k, posterior, codes)
            posterior = update_posterior(self._chain, k, posterior, codes, codes[:, k])
            spent[k + 1] = spent[k] + prices[:, k]
            walked.append(posterior)
        return Walks("own", np.stack(walked), spent, stops)

    def _paid(self, codes: Array) -> Floats:
        """Return the price of each value of rows for which the first columns are acquired in order; 0 if missing."""
        if not self._tariff.varies:
            return np.where(codes != -1, self._tariff.own[: codes.shape[1]], 0.0)
        known, paid = np.zeros((len(codes), len(self.candidates_)), dtype=bool), np.zeros(codes.shape)
        for k in range(codes.shape[1]):
            there = codes[:, k] != -1
            paid[there, k] = self._tariff.following(known[there])[:, k]
            known[:, k] = there
        return paid

    # -- walking -------------------------------------------------------------------------------------------

    @property
    def _numbers_count(self) -> bool:  # type: ignore[override]
        return self._evidence_model is not None or self._any_order is not None

    def _first_belief(self) -> Floats:
        return self._model_prior() if self.policy_ is None or self.policy_.belief == "own" else self.prior_

    def _is_acquired(
        self, k: int, posterior: Floats, values: Array, untouched: Mask, n_unavailable: Array
    ) -> Mask:
        """Return for which rows at stage k the k-th feature is acquired.

        For untouched rows, no value was requested. `n_unavailable` features before the k-th are unavailable: up to the
        number of spare features, they do not count towards the largest number of values.
        """
        policy = self.policy_
        if policy is None:
            return self._is_worth(k, posterior, values)
        within: Mask = k - np.minimum(n_unavailable, self._n_spares()) < policy.max_values
        if k == 0 or not within.any():  # at first, all rows are identical
            return within
        return within & (self._is_worth(k, posterior, values) | untouched)

    def _is_worth(self, k: int, posterior: Floats, values: Array) -> Mask:
        """Return for which rows the policy does not stop before the k-th feature."""
        policy = self.policy_
        if policy is None or policy.rule == "own":
            return self._should_continue(k, posterior, values)
        return self._goal.risk_of_rows(posterior) > policy.max_risk

    def _posterior_after(
        self, k: int, posterior: Floats, values: Array, code: Array, numbers: Floats
    ) -> Floats:
        """Return the posterior after the k-th value."""
        if self._evidence_model is None:
            return update_posterior(self._chain, k, posterior, values, code)  # (3)
        after = self._evidence_model.posterior(
            _mask_after(numbers[:, : self._evidence_model.n_columns], k + 1)
        )
        return np.where((code >= 0)[:, None], after, posterior)  # a missing value leaves every bit unchanged

    def _next(self, state: State) -> Ints:
        position = np.full(len(state.stage), -1)
        self._apply_known_values(state)
        untouched = state.n_asked() == 0
        for k in np.unique(state.stage[state.stage < len(self.candidates_)]):
            mine = state.stage == k
            posterior, values = state.posterior[mine], state.values[mine]
            refused = _n_unavailable(state.unavailable, mine, int(k))
            acquired = self._is_acquired(int(k), posterior, values, untouched[mine], refused)
            if k == 0 and state.volunteered.any():  # such rows are not identical
                acquired &= ~state.volunteered[mine] | self._is_worth(0, posterior, values)
            position[mine] = np.where(acquired, k, -1)
        return position

    def _walk_block(self, X: Rows, rows: Array, bill: Any, unavailable: Mask | None) -> State:
        """Walk rows at a common stage: one stage at a time, copying only the rows that continue."""
        values, codes = self._cells(X, rows)
        state = self._start(len(rows))
        if unavailable is not None:
            codes, values = np.where(unavailable, np.int16(-1), codes), np.where(unavailable, np.nan, values)
        alive, paid, prices, given = np.arange(len(rows)), codes, self._paid(codes), values
        if (codes < -1).any():  # paid for, but without evidence
            codes, values = np.maximum(codes, np.int16(-1)), np.where(codes >= 0, values, np.nan)
        prefetch = _PosteriorPrefetch(self._evidence_model, values)
        for k in range(len(self.candidates_)):
            known, posterior = codes[alive], state.posterior[alive]
            refused = _n_unavailable(unavailable, alive, k)
            acquired = self._is_acquired(k, posterior, known, refused == k, refused)
            if unavailable is not None:
                # These pass the stage, and decide at the next one.
                limit = np.inf if self.policy_ is None else self.policy_.max_values
                acquired |= unavailable[alive, k] & (k - np.minimum(refused, self._n_spares()) < limit)
            alive, known = alive[acquired], known[acquired]
            if not len(alive):
                break
            if self._evidence_model is None:
                after = update_posterior(self._chain, k, posterior[acquired], known, known[:, k])  # (3)
            else:
                after = np.where((known[:, k] >= 0)[:, None], prefetch.after(k, alive), posterior[acquired])
            state.posterior[alive], state.stage[alive] = after, k + 1
            at = np.full(len(alive), k)
            self._pay(rows[alive], at, paid[alive, k], prices[alive, k], given[alive, k], after, bill)
        return state

    def _apply_known_values(self, state: State) -> None:
        """Advance rows whose next value was provided before it was requested."""
        while True:
            rows = np.flatnonzero(state.stage < len(self.candidates_))
            rows = rows[state.asked[rows, state.stage[rows]]]
            if not len(rows):
                return
            part = state.take(rows)
            self._advance(part, part.values[np.arange(len(rows)), part.stage])
            state.put(rows, part)

    def _posterior_of_known(self, state: State) -> Floats:
        """Return the posterior given all known values, for any order in which they became known."""
        if self._any_order is not None:
            return self._any_order.posterior(state.numbers[:, : self._any_order.n_columns])
        posterior = np.tile(self._first_belief(), (len(state.stage), 1))
        for k in np.flatnonzero((state.values >= 0).any(axis=0)) if hasattr(self, "_chain") else ():
            posterior = update_posterior(self._chain, int(k), posterior, state.values, state.values[:, k])
        return posterior

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        state.record(position, code, value)
        known = np.flatnonzero(state.volunteered & (code >= 0))
        if len(known):
            state.posterior[known] = self._posterior_of_known(state.take(known))
        due = np.flatnonzero(position == state.stage)
        part = state.take(due)
        self._advance(part, code[due])
        state.put(due, part)

    def _advance(self, state: State, code: Array) -> None:
        """Update the posterior of each row with the value of its stage."""
        for k in np.unique(state.stage):
            mine = (state.stage == k) & ~state.volunteered  # the others are already included
            if not mine.any():
                continue
            before, known, numbers = state.posterior[mine], state.values[mine], state.numbers[mine]
            state.posterior[mine] = self._posterior_after(int(k), before, known, code[mine], numbers)
        state.stage += 1


class _PosteriorPrefetch:
    """Posteriors of rows after each of the next stages, so that no stage is recomputed from the first column.

    The number of stages computed ahead equals the number walked so far, so that rows that stop early cost little.
    """

    def __init__(self, evidence_model: EvidenceModel | None, values: Array) -> None:
        self._evidence_model, self._values = evidence_model, values
        self._until, self._place = 0, np.empty(0, dtype=np.int64)
        self._posterior: Floats = np.empty((0, 0, 0))

    def after(self, k: int, rows: Ints) -> Floats:
        """Return the posterior of rows after the k-th column; for the rows of the previous call, or some of them."""
        assert self._evidence_model is not None
        if k >= self._until:
            n_columns = self._evidence_model.n_columns
            self._until = min(2 * k + 2, n_columns)
            order = np.broadcast_to(np.arange(self._until), (len(rows), self._until))
            known = np.full((len(rows), n_columns), np.nan)
            known[:, : self._until] = self._values[rows, : self._until]
            self._posterior = posterior_path(self._evidence_model, known, order)
            self._place = np.zeros(len(self._values), dtype=np.int64)
            self._place[rows] = np.arange(len(rows))
        return self._posterior[k + 1, self._place[rows]]


def _n_unavailable(unavailable: Mask | None, rows: Array, k: int) -> Ints:
    """Return how many of the first k features are unavailable for each row; 0 if `unavailable` is None."""
    if unavailable is None or not unavailable.size:
        return np.zeros(np.count_nonzero(rows) if rows.dtype == bool else len(rows), dtype=np.int64)
    return unavailable[rows, :k].sum(axis=1)


def _mask_after(values: Floats, k: int) -> Floats:
    """Return the values with all columns after the first k set to NaN."""
    masked = np.full(values.shape, np.nan)
    masked[:, :k] = values[:, :k]
    return masked
