"""Classifiers that buy in one order for all rows: each row is at a stage, and either continues or stops."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._parameters import parameters
from tamis.base import CellClassifier, State
from tamis.base.cells import Purchases
from tamis.cells.bins import Bins, dense
from tamis.cells.discriminant import Judge, Worth, judged
from tamis.cells.ensemble import calibrated, joined, kinds_of, taught
from tamis.cells.held_out import FOLDS, Policy, Walks, best_policy, folds_of, longer, pays
from tamis.cells.masked import check_classifier
from tamis.cells.network import Chain
from tamis.cells.relevance import NothingTellsError
from tamis.cells.small_trees import SmallTrees
from tamis.cells.stopping import updated
from tamis.cells.tree import ExactChain

__all__ = ["FixedOrder"]

Floats = NDArray[np.float64]

_WALKS = 5_000  # rows walked to choose a policy
_STEPS = 40  # values after which a walk is not followed further


@dataclass
class _Fold:
    """Rows that are held out, those that are learned from then, and the counts of the latter."""

    rest: NDArray[np.int64]
    held: NDArray[np.int64]
    tables: Array


@dataclass
class _HeldOut:
    """What was learned from the walks of rows held out: the columns of each fold, who may decide, and its evidence.

    `cost` is what each row costs by the policy, where that was not chosen on.
    """

    columns: list[NDArray[np.int64]]
    walks: list[Walks]
    worth: Worth
    evidence: Floats
    prior: Floats
    y: Array
    cost: Floats

    def worth_for(self, policy: Policy) -> Worth:
        """Return what the evidence is worth where rows decide: after as many values, if that is the same for all rows.

        A mean over up to 40 values is not what the first one is worth.
        """
        if policy.most > 1 and (policy.rule, policy.max_risk) != ("risk", -np.inf):
            return self.worth
        return calibrated(self.evidence[:, [0, policy.most]], self.prior, self.y)[1]


class FixedOrder(CellClassifier):
    """Asks for the features in the order of `candidates_`; a subclass says for which rows the next one pays.

    Attributes
    ----------
    policy_ : Policy or None
        Whose probabilities are believed and when to stop, chosen on held-out walks; None if `calibrate` is False.
    """

    _shapes = """
        _chain.link (c) in [-1, c)  _chain.tables[] (k, a+1, *) float in [0, 2]
        _chain._linked[] (a+1, a+1, k) float in [0, 2]  _chain._alone[] (1, a+1, k) float in [0, 2]
        stopping_.prices (c) float in [0, inf)  stopping_.context[] (*) in [0, c)  stopping_.n_values in [a+1, a+1]
        stopping_.stages[].vectors (*, k) finite
        stopping_.stages[].start (*) in [0, len(its.vectors)] increasing  policy_.most in [0, 2**62)
    """

    _allowed = parameters(
        calibrate=(False, True),
    )

    # Those that order="auto" chooses from: the published one first, that of the fixed subset last.
    _orders: tuple[str, ...]

    calibrate: bool
    order: str
    order_: str
    classifier: Any
    random_state: int | None
    n_bins: int
    policy_: Policy | None
    _bins: Bins  # of the candidates
    _chain: Chain | ExactChain  # what each value says of the class
    _judge: Judge | None  # who decides, if not the chain

    _may_have_trees = True
    _most: int | None = None  # columns in order that are looked at, where rows are held out

    _learned_by: tuple[str, ...] = ("_fit", "_learn_own", "order_")  # of the best copy

    # -- hooks ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _bin(self, X: Rows) -> Bins:
        """Check the parameters; return the bins of every column."""

    @abstractmethod
    def _learn_own(self, X: Rows, y: Array, bins: Bins, tables: Array) -> None:
        """Fit the model as published from rows and their counts; sets `candidates_`, `_bins` and `_chain`."""

    @abstractmethod
    def _goes_on(self, k: int, posterior: Floats, values: Array) -> NDArray[np.bool_]:
        """Return for which rows at stage k the k-th feature pays by the model's own rule."""

    def _own_belief(self) -> Floats:
        """Return what the model itself believes before the first value."""
        return self.prior_

    def _n_ordered(self, kept: NDArray[np.int64]) -> int:
        """Return how many columns are put in an order that is dear to find: those that a walk may come to."""
        return min(len(kept), _STEPS) if self.calibrate else len(kept)

    # -- fitting -------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array) -> None:
        check_classifier(self.classifier, self.calibrate, "calibrate=True")
        self.policy_, self._judge = None, None
        bins = self._bin(X)
        tables = bins.tables(X, y, len(self.classes_))
        orders = self._orders if self.order == "auto" else (self.order,)
        models = [copy.copy(self) for _ in (orders if self.calibrate else orders[:1])]
        for model, order in zip(models, orders, strict=False):
            model.order_ = order
        folds = self._folds(X, y, bins, tables) if self.calibrate else []
        walked = [model._calibrate(X, y, bins, folds) for model in models]
        best = self._best_order(walked)
        self.__dict__.update(vars(models[best]))
        self._learn_own(X, y, bins, tables)
        self._appoint(X, y, folds, walked[best])

    def _best_order(self, walked: list[_HeldOut | None]) -> int:
        """Return which order costs least; that of the fixed subset, the last, unless another is surely ahead of it.

        On few rows the best of several orders looks better than it is. Where no row could be held out, nothing is known
        of their costs, and the first is taken.
        """
        known = [held.cost for held in walked if held is not None]
        if not known:
            return 0
        ahead = [i for i, cost in enumerate(known) if pays(cost, known[-1], self._Q, n_tried=len(known))]
        return min(ahead, key=lambda i: known[i].mean(), default=len(known) - 1)

    def _folds(self, X: Rows, y: Array, bins: Bins, tables: Array) -> list[_Fold]:
        """Return the rows that are held out in turn, and those that a model then learns from.

        The bins are those of all rows, as they do not depend on the classes; the counts of those that a model learns
        from are all counts less those of the rows held out.
        """
        rows = np.arange(X.shape[0])
        if len(rows) > _WALKS:
            rng = np.random.default_rng(self.random_state)
            rows = np.sort(rng.choice(rows, _WALKS, replace=False))
            tables = bins.tables(X[rows], y[rows], len(self.classes_))
        fold, found = folds_of(y[rows]), []
        for f in range(FOLDS):
            held, rest = rows[fold == f], rows[fold != f]
            if len(held):
                counts = tables - bins.tables(X[held], y[held], len(self.classes_))
                found.append(_Fold(rest, held, counts))
        return found

    def _calibrate(self, X: Rows, y: Array, bins: Bins, folds: list[_Fold]) -> _HeldOut | None:
        """Choose the policy by walks of rows that were not learned from; an ensemble is not among who may decide."""
        if not folds:  # as published, or no class has two rows
            return None
        parts = [self._fold_walks(X, y, bins, fold) for fold in folds]
        n_steps = max(len(own.spent) for _, own, _, _ in parts)
        own = Walks("own", *(np.concatenate([longer(getattr(walk, name), n_steps) for _, walk, _, _ in parts], axis=1)
                             for name in ("posterior", "spent", "stops")))  # fmt: skip
        evidence, prior = joined([said for _, _, said, _ in parts]), np.concatenate([p for *_, p in parts])
        walked = y[np.concatenate([fold.held for fold in folds])]
        believed, worth = calibrated(evidence, prior, walked)
        walks = [Walks(self._decides, believed, own.spent)]
        if self.classifier is None:
            walks.append(own)
        self.policy_, cost = self._policy(walks, walked)
        return _HeldOut([columns for columns, *_ in parts], walks, worth, evidence, prior, walked, cost)

    def _policy(self, walks: list[Walks], y: Array) -> tuple[Policy, Floats]:
        return best_policy(walks, y, self._Q)

    @property
    def _decides(self) -> str:
        """Who may decide besides the model itself."""
        return "discriminant" if self.classifier is None else "classifier"

    def _appoint(self, X: Rows, y: Array, folds: list[_Fold], held: _HeldOut | None) -> None:
        """Teach who decides, if not the model itself; it may be an ensemble, in the order that was chosen."""
        if held is None:
            return
        if self.classifier is None and self._may_have_trees:
            evidence = np.concatenate([held.evidence, self._said_by_trees(X, y, folds, held)])
            believed, worth = calibrated(evidence, held.prior, held.y)
            decided = Walks("ensemble", believed, held.walks[0].spent)
            self.policy_, _ = self._policy([*held.walks, decided], held.y)
            if self.policy_.belief == "ensemble":
                held.evidence, held.worth = evidence, worth
        assert self.policy_ is not None
        self.policy_.most = min(self.policy_.most, len(self.candidates_))
        if self.policy_.belief != "own" and self.policy_.most > 0:
            self._judge = self._taught(self.policy_.belief, X, y, self.policy_.most)
            self._judge.worth = held.worth_for(self.policy_)

    def _said_by_trees(self, X: Rows, y: Array, folds: list[_Fold], held: _HeldOut) -> Floats:
        """Return the evidence of boosted trees on the walks of rows held out."""
        said = []
        for fold, columns in zip(folds, held.columns, strict=True):
            trees = SmallTrees(len(self.classes_)).fit(dense(X[fold.rest][:, columns]), y[fold.rest])
            said.append(trees.evidence(dense(X[fold.held][:, columns]))[None])
        return joined(said)

    def _taught(self, kind: str, X: Rows, y: Array, n_columns: int) -> Judge:
        """Return who decides, if not the chain, taught by these rows."""
        values = dense(X[:, self.candidates_[:n_columns]])
        settings = {"n_bins": self.n_bins, "n_classes": len(self.classes_), "classifier": self.classifier}
        return taught(kind, values, y, None, **settings)

    def _take_in(self, X: Rows, y: Array, fading: float) -> None:
        """Let who decides learn from more rows; the policy stays."""
        if self._judge is not None:
            values = dense(X[:, self.candidates_[: self._judge.n_columns]])
            self._judge = copy.deepcopy(self._judge).updated(values, y, fading)

    def _fold_walks(
        self, X: Rows, y: Array, bins: Bins, fold: _Fold
    ) -> tuple[NDArray[np.int64], Walks, Floats, Floats]:
        """Return the columns asked for, the model's own walks of rows held out, who else's evidence, and priors.

        The evidence is of shape (n_kinds, n_steps + 1, n_rows, n_classes), the priors of shape (n_rows, n_classes).
        """
        model: Self = copy.copy(self)
        model._most = _STEPS
        X_held, X, y = X[fold.held], X[fold.rest], y[fold.rest]
        model.prior_ = np.bincount(y, minlength=len(self.classes_)) / len(y)
        prior = np.tile(model.prior_, (X_held.shape[0], 1))
        try:
            model._learn_own(X, y, bins, fold.tables)
        except NothingTellsError:  # then nothing can be bought
            n = (1, len(prior))
            walks = Walks("own", prior[None], np.zeros(n), np.ones(n, dtype=bool))
            return (
                np.empty(0, dtype=np.int64),
                walks,
                np.zeros((3 if self.classifier is None else 1, *prior[None].shape)),
                prior,
            )
        model.prices_ = self._costs()[model.candidates_]
        columns = model.candidates_[:_STEPS]
        judge = model._taught(self._decides, X, y, _STEPS)
        return columns, model._own_walks(X_held), kinds_of(judge, dense(X_held[:, columns])), prior

    def _own_walks(self, X: Rows) -> Walks:
        """Walk rows to the end, or for so many steps as may be chosen from."""
        _, codes = self._cells(X, np.arange(X.shape[0]))
        n_steps = min(len(self.candidates_), _STEPS)
        posterior = np.tile(self._first_belief(), (len(codes), 1))
        spent, walked = np.zeros((n_steps + 1, len(codes))), [posterior]
        stops = np.ones((n_steps + 1, len(codes)), dtype=bool)
        for k in range(n_steps):
            stops[k] = ~self._goes_on(k, posterior, codes)
            posterior = updated(self._chain, k, posterior, codes, codes[:, k])
            spent[k + 1] = spent[k] + np.where(codes[:, k] >= 0, self.prices_[k], 0.0)
            walked.append(posterior)
        return Walks("own", np.stack(walked), spent, stops)

    # -- walking -------------------------------------------------------------------------------------------

    @property
    def _numbers_count(self) -> bool:  # type: ignore[override]
        return self._judge is not None

    def _first_belief(self) -> Floats:
        return self._own_belief() if self.policy_ is None or self.policy_.belief == "own" else self.prior_

    def _pays(self, k: int, posterior: Floats, values: Array) -> NDArray[np.bool_]:
        """Return for which rows at stage k the k-th feature is bought."""
        policy = self.policy_
        if policy is not None and k >= policy.most:
            return np.zeros(len(posterior), dtype=bool)
        if policy is not None and k == 0:  # all rows are alike
            return np.ones(len(posterior), dtype=bool)
        if policy is None or policy.rule == "own":
            return self._goes_on(k, posterior, values)
        # Added up class by class, so that a row alone has the same bits as among others.
        risk = (posterior[:, :, None] * self._Q).sum(axis=1).min(axis=1)
        found: NDArray[np.bool_] = risk > policy.max_risk
        return found

    def _believe(self, k: int, posterior: Floats, values: Array, code: Array, numbers: Floats) -> Floats:
        """Return the posterior after the k-th value."""
        if self._judge is None:
            return updated(self._chain, k, posterior, values, code)  # (3)
        found = self._judge.posterior(_first_columns(numbers[:, : self._judge.n_columns], k + 1))
        return np.where((code >= 0)[:, None], found, posterior)  # a missing value changes nothing, not a bit

    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        return self._bins.of(positions).codes(values)

    def _next(self, state: State) -> NDArray[np.int64]:
        found = np.full(len(state.stage), -1)
        self._take_what_is_known(state)
        for k in np.unique(state.stage[state.stage < len(self.candidates_)]):
            mine = state.stage == k
            found[mine] = np.where(self._pays(int(k), state.posterior[mine], state.values[mine]), k, -1)
        return found

    def _walk_block(self, X: Rows, rows: Array, trace: Purchases | None) -> State:
        """The same walk for rows that are all at one stage: a stage at a time, nothing copied but what goes on."""
        values, codes = self._cells(X, rows)
        state = self._start(len(rows))
        alive = np.arange(len(rows))
        ahead = _Ahead(self._judge, values)
        for k in range(len(self.candidates_)):
            known, posterior = codes[alive], state.posterior[alive]
            pays = self._pays(k, posterior, known)
            alive, known = alive[pays], known[pays]
            if not len(alive):
                break
            if self._judge is None:
                after = updated(self._chain, k, posterior[pays], known, known[:, k])  # (3)
            else:
                after = np.where((known[:, k] >= 0)[:, None], ahead.after(k, alive), posterior[pays])
            state.posterior[alive], state.stage[alive] = after, k + 1
            at = np.full(len(alive), k)
            price = np.full(len(alive), self.prices_[k])
            self._pay(rows[alive], at, known[:, k], price, values[alive, k], after, trace)
        return state

    def _take_what_is_known(self, state: State) -> None:
        """Move rows on whose next value was given before it was asked for."""
        while True:
            rows = np.flatnonzero(state.stage < len(self.candidates_))
            rows = rows[state.asked[rows, state.stage[rows]]]
            if not len(rows):
                return
            part = state.of(rows)
            self._advance(part, part.values[np.arange(len(rows)), part.stage])
            state.put(rows, part)

    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        rows = np.arange(len(position))
        state.values[rows, position] = code
        if self._judge is not None:
            state.numbers[rows, position] = value
        state.asked[rows, position] = True
        due = np.flatnonzero(position == state.stage)
        part = state.of(due)
        self._advance(part, code[due])
        state.put(due, part)

    def _advance(self, state: State, code: Array) -> None:
        """Take the value of each row's own stage into its posterior."""
        for k in np.unique(state.stage):
            mine = state.stage == k
            before, known, numbers = state.posterior[mine], state.values[mine], state.numbers[mine]
            state.posterior[mine] = self._believe(int(k), before, known, code[mine], numbers)
        state.stage += 1


class _Ahead:
    """What a judge believes of rows after each of the next stages: so that no stage begins at the first column again.

    As many stages are looked ahead as were walked, so that rows that stop early cost little.
    """

    def __init__(self, judge: Judge | None, values: Array) -> None:
        self._judge, self._values = judge, values
        self._until, self._place = 0, np.empty(0, dtype=np.int64)
        self._believed: Floats = np.empty((0, 0, 0))

    def after(self, k: int, rows: NDArray[np.int64]) -> Floats:
        """Return the posterior of rows after the k-th column; the same rows, or some of them, as for the one before."""
        assert self._judge is not None
        if k >= self._until:
            n_columns = self._judge.n_columns
            self._until = min(2 * k + 2, n_columns)
            order = np.broadcast_to(np.arange(self._until), (len(rows), self._until))
            known = np.full((len(rows), n_columns), np.nan)
            known[:, : self._until] = self._values[rows, : self._until]
            self._believed = judged(self._judge, known, order)
            self._place = np.zeros(len(self._values), dtype=np.int64)
            self._place[rows] = np.arange(len(rows))
        found: Floats = self._believed[k + 1, self._place[rows]]
        return found


def _first_columns(values: Floats, k: int) -> Floats:
    """Return the values with all but the first k columns unknown."""
    found = np.full(values.shape, np.nan)
    found[:, :k] = values[:, :k]
    return found
