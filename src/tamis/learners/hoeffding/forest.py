"""AdaptiveRandomForest and StreamingRandomPatches: ensembles of randomised trees, each replaced when its errors rise.

Gomes et al.: Adaptive random forests for evolving data stream classification, Machine Learning 106, 2017 (ARF); Gomes,
Read, Bifet: Streaming random patches for evolving data stream classification, ICDM 2019 (SRP).

Both train Hoeffding trees by online bagging: a row counts Poisson(6) times in each. They differ in how features are
sampled: in a forest at each leaf, in random patches once for each tree. An ADWIN on the errors of a tree issues a
warning and starts a background tree; a stricter ADWIN detects the drift and replaces the tree with it::

    P[y] ~ sum_t a_t P_t[y],   a_t = (rows that tree t predicted right + 1) / (rows it has seen + classes)      (1)

Errata and deviations, each with its reason:

* The errors of a tree are those before it learns the row, including rows that count 0 times. MOA predicts after
  learning, when a tree is more often correct, and ignores rows that count 0 times.
* A new tree votes with the weight of random guessing. MOA and River ignore its accuracy while it is 0, so that it has
  the weight of a perfect tree until its first correct prediction.
* The accuracy of a background tree is measured from its first row on; in other implementations from the replacement on.
* The random numbers of a tree depend only on the seed, the tree and the row: neither the batch size nor other trees
  change them.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._guard import record_of
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis._validation.parameters import SEED, integer, number, parameter
from tamis.learners.hoeffding import members as tables
from tamis.learners.hoeffding.adaptive import uniform
from tamis.learners.hoeffding.classifier import LEAVES, TreeClassifier
from tamis.learners.hoeffding.learning import attempt_split, has_room, queue_branches, register_categories
from tamis.learners.hoeffding.member import NOTHING, WARNING, Member, Sampling, apply_pending, learn_row
from tamis.learners.hoeffding.nodes import Arrays, Note, Pools, State
from tamis.learners.hoeffding.records import Node, importances, node_records, require
from tamis.learners.hoeffding.splits import SplitOptions
from tamis.learners.subsets import COUNT_OR_FRACTION, resolve_max_features


class TreeEnsemble(TreeClassifier):
    """Base class of ensembles: the trees, and what is read from them. A subclass creates the trees."""

    _shapes = """
        classes_ (c) labels  _numeric_ (p) int  _categorical_ (q) int  _trees_[] (its own)
        _trees_[].pools.weights (*, c)  _trees_[].pools.lists (2, q) int  _categories_.values (v)
        _categories_._table (2*v, 3) int
    """

    _n_drawn_: int
    _trees_: list[Member]

    def _create_tree(self, key: int) -> Member:
        shape = len(self._numeric_), len(self._categorical_), len(self.classes_)
        tree = Member(*shape, self._n_drawn_, key)
        tree.pools.grow_cells(self._categories_.n_cells)
        return tree

    def _all(self) -> list[Member]:
        return self._trees_

    def _check_trees(self) -> None:
        for tree in self._all():
            tree.check(len(self._numeric_), self._categories_)

    def _grow(self, n_classes: int) -> None:
        for tree in self._all():
            tree.grow(n_classes)

    def _every_pool(self) -> list[Pools]:
        return [tree.pools for tree in self._all()]

    @property
    def n_nodes_(self) -> Ints:
        """Number of nodes of each tree that votes."""
        check_is_fitted(self)
        return np.array([tree.pools.state[State.LIVE] for tree in self._trees_])

    @property
    def feature_importances_(self) -> Floats:
        """Merit times weight of all splits, summed by feature; the sum is 1, or 0 before the first split."""
        check_is_fitted(self)
        return importances(chain.from_iterable(self._nodes()), self.n_features_in_)

    def _nodes(self) -> list[list[Node]]:
        columns = np.concatenate([self._numeric_, self._categorical_])
        return [node_records(tree.pools, self._categories_, columns) for tree in self._trees_]


@dataclass(repr=False, eq=False)
class AdaptiveRandomForest(TreeEnsemble):
    """A forest of Hoeffding trees that sample features at each leaf and are replaced when their errors rise (ARF).

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        Number of trees.
    max_features : "sqrt", int, float in (0, 1] or None, default=None
        Number of features sampled at each leaf. "sqrt": sqrt(n_features) + 1, as in the paper. An integer: this many.
        A float: this fraction of them; MOA uses 0.6. None: all, which is more accurate if most features are
        irrelevant.
    bagging : float in (0, 100] or None, default=6
        Mean of the Poisson number of times that a row counts in a tree. None: every row counts once in each tree.
    warning : float in (0, 1) or None, default=0.01
        False-alarm rate of the ADWIN that starts a background tree. None: never.
    drift : float in (0, 1) or None, default=0.001
        False-alarm rate of the ADWIN that replaces a tree with its background tree, or with a new tree if it has none.
        None: never.
    grace_period, delta, tie_threshold, n_cuts, categorical, binary_splits, max_depth
        As in :class:`HoeffdingTree`, for each tree; with the defaults of the published programs for forests.
    leaf : {"majority", "nb", "nb-adaptive"}, default="nb-adaptive"
        What a leaf predicts, as in :class:`HoeffdingTree`.
    max_nodes : int, at least 1, or None, default=None
        Maximum number of nodes of each tree. This bounds the memory.
    new_feature_penalty : float in [0, 1), default=0
        Fraction of its merit that a feature loses if no split of the same tree uses it yet.
    random_state : int, at least 0, default=0
        Seed of the feature sampling and of the bagging counts.
    n_jobs : int or None, default=None
        Number of threads; -1: one for each core. The result is the same. More threads are faster from a few hundred
        rows per call on.

    Attributes
    ----------
    n_warnings_, n_drifts_ : int
        Number of background trees started, and of drifts detected, so far.
    n_nodes_ : ndarray of shape (n_estimators,), int64
        Number of nodes of each tree.
    feature_importances_ : ndarray of shape (n_features,), float64
        Gain of the splits in all trees: merit times weight, summed by feature and divided by the sum of all.
    %(fitted)s

    Notes
    -----
    A row costs O(n_estimators (depth + m classes)) with m features for each leaf; a background tree costs as much as a
    tree. Memory: 5 float64 per leaf, class and numeric feature of the m, and 10 kB per tree for its ADWINs. A batch
    leaves the same state as its rows one at a time. Missing values are treated as in a tree; sparse rows are rejected.

    References
    ----------
    Gomes, Bifet, Read, et al. (2017). Adaptive random forests for evolving data stream classification. Machine
    Learning 106. Algorithms 1 and 2.

    Examples
    --------
    Feature 0 determines the class, and feature 1 from row 6000 on; the other eight are irrelevant:

    >>> import numpy as np
    >>> from tamis import AdaptiveRandomForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(12000, 10))
    >>> y = np.where(np.arange(12000) < 6000, X[:, 0] > 0.5, X[:, 1] > 0.5).astype(int)
    >>> forest = AdaptiveRandomForest().fit(X[:6000], y[:6000])
    >>> forest.feature_importances_.argmax()
    np.int64(0)
    >>> forest = forest.partial_fit(X[6000:9000], y[6000:9000])
    >>> forest.feature_importances_.argmax(), forest.n_drifts_ >= 10
    (np.int64(1), True)
    >>> bool(forest.score(X[9000:], y[9000:]) > 0.95)
    True
    """

    _shapes = """
        _events_ (2, t) in [0, inf)  _background_[] (its own)  _background_[].pools.weights (*, c)
        _background_[].pools.lists (2, q) int
    """

    _by_leaf = True

    n_estimators: int = parameter(integer("[1, 1000]"), default=10)
    max_features: Any = parameter("sqrt", COUNT_OR_FRACTION, None, default=None)
    _: KW_ONLY
    bagging: float | None = parameter(number("(0, 100]"), None, default=6)
    warning: float | None = parameter(number("(0, 1)"), None, default=0.01)
    drift: float | None = parameter(number("(0, 1)"), None, default=0.001)
    grace_period: int = 50
    delta: float = 0.01
    new_feature_penalty: float = 0.0
    random_state: int = parameter(SEED[0], default=0)
    n_jobs: int | None = parameter(integer("[1, 1000]"), -1, None, default=None)

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        super()._initialize(n_features, names)
        self._n_drawn_ = resolve_max_features(self.max_features, n_features)
        self._events_ = np.zeros((2, self.n_estimators), dtype=np.int64)  # warnings and drifts of each tree
        self._trees_ = [self._new_tree(t) for t in range(self.n_estimators)]
        self._background_: list[Member | None] = [None] * self.n_estimators

    def _new_tree(self, t: int) -> Member:
        born = int(self._events_[:, t].sum()) * self.n_estimators + t
        return self._create_tree((int(self.random_state) << 24) + born)

    def _all(self) -> list[Member]:
        return self._trees_ + [tree for tree in self._background_ if tree is not None]

    def _check_trees(self) -> None:
        n_trees = self._events_.shape[1]
        require(len(self._trees_) == len(self._background_) == n_trees, "_trees_")
        super()._check_trees()

    def _learn(self, rows: Floats, codes: Ints) -> None:
        numbers, cells = self._encode(rows, learn=True)
        rules, sampling = self._split_options(watched=True), self._sampling()
        if not self._events_.flags.writeable:  # memory-mapped from a file
            self._events_ = self._events_.copy()

        table = self._table()
        undo = table.take_undo()
        progress = tables.new_progress(len(self._trees_), undo is not None)

        def learn(some: slice) -> None:
            own, reached = table.rows[some], progress[some]
            memory = table.entries, table.words, table.used
            while not tables.learn_members(
                own, reached, numbers, cells, codes, self.n_seen_, rules, sampling, *memory
            ):
                for t in range(*some.indices(len(progress))):
                    if progress[t, tables.STATUS] != tables.COMPLETE:
                        self._unblock(t, progress[t], table, undo)

        for _ in self._each(learn):
            pass

    def _each(self, work: Callable[[slice], Any]) -> Iterator[Any]:
        """Yield the result of `work` for slices of the trees, in order: all, or one for each call in a thread."""
        n_jobs = os.cpu_count() if self.n_jobs == -1 else self.n_jobs
        if n_jobs in (None, 1):
            yield work(slice(0, len(self._trees_)))
            return
        with ThreadPoolExecutor(n_jobs) as pool:
            yield from pool.map(work, [slice(t, t + 1) for t in range(len(self._trees_))])

    def _table(self) -> tables.MemberTable:
        """Return the addresses of the current trees."""
        record = record_of(self)
        if record.addresses is None or len(record.addresses.rows) != len(self._trees_):
            record.addresses = tables.MemberTable(len(self._trees_))
        return record.addresses.update(self._trees_, self._background_)

    def _snapshot(self, n_rows: int) -> tables.RowUndo | None:
        if n_rows != 1 or len(self._categorical_) or self.n_jobs not in (None, 1):
            return None
        table, members = self._table(), self._trees_ + self._background_
        table.undo = tables.RowUndo(self, table, members, (self._trees_, self._background_, self._events_))
        return table.undo

    def _grow(self, n_classes: int) -> None:
        addresses = record_of(self).addresses
        for tree in self._all() if addresses is not None and addresses.undo is not None else ():
            addresses.undo.save(tree)
        super()._grow(n_classes)

    def _sampling(self) -> Sampling:
        counts = np.zeros(1) if self.bagging is None else _poisson_shares(float(self.bagging))
        seed = (int(self.random_state) << 24) + (1 << 23)
        return Sampling(seed, 0, self._by_leaf, counts, float(self.warning or 0.0), float(self.drift or 0.0))

    def _unblock(
        self, t: int, progress: Ints, table: tables.MemberTable, undo: tables.RowUndo | None
    ) -> None:
        """Give a tree room for its pending changes, or replace it after an event."""
        background, status = self._background_[t], progress[tables.STATUS]
        if status != tables.SIGNAL:
            kind = int(status) - 1
            tree = (self._trees_[t], background)[kind]
            assert tree is not None
            if progress[tables.HELD + kind] and undo is not None:
                undo.save(tree)
            progress[tables.HELD + kind] = False
            tree.make_room()
            table.write(kind, t, tree)
            return
        event, progress[tables.EVENT] = progress[tables.EVENT], NOTHING
        if event == WARNING:
            self._events_[0, t] += 1
            self._trees_[t].detectors[0] = 0.0
            self._background_[t] = self._new_tree(t)
        else:
            self._events_[1, t] += 1
            self._trees_[t] = self._new_tree(t) if background is None else background
            self._background_[t] = None
        progress[tables.ROW + 1] = progress[tables.ROW]
        table.write(0, t, self._trees_[t])
        table.write(1, t, self._background_[t])

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        mode = LEAVES.index(self.leaf)

        table = self._table()

        def vote(some: slice) -> Array:
            proba = np.zeros_like(votes)
            tables.vote_members(table.rows[some], numbers, cells, mode, proba)
            return proba

        votes[:] = 0.0
        for proba in self._each(vote):
            votes += proba
        votes /= votes.sum(axis=1, keepdims=True)

    @property
    def n_warnings_(self) -> int:
        """Number of background trees started so far."""
        check_is_fitted(self)
        return int(self._events_[0].sum())

    @property
    def n_drifts_(self) -> int:
        """Number of drifts detected so far."""
        check_is_fitted(self)
        return int(self._events_[1].sum())


@dataclass(repr=False, eq=False)
class StreamingRandomPatches(AdaptiveRandomForest):
    """An ensemble of trees, each on a random subset of the features and rows, replaced when errors rise (SRP).

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        Number of trees.
    max_features : "sqrt", int, float in (0, 1] or None, default=0.6
        Number of features sampled for each tree: this fraction of them, this many, sqrt(n_features) + 1, or all.
    bagging, warning, drift, random_state, n_jobs
        As in :class:`AdaptiveRandomForest`.
    grace_period, delta, tie_threshold, leaf, n_cuts, categorical, binary_splits, max_depth, max_nodes
        As in :class:`AdaptiveRandomForest`.
    new_feature_penalty : float in [0, 1), default=0
        As in :class:`AdaptiveRandomForest`.

    Attributes
    ----------
    n_warnings_, n_drifts_, n_nodes_, feature_importances_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`AdaptiveRandomForest`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.

    Notes
    -----
    As for :class:`AdaptiveRandomForest`, with m features for each tree. A new tree samples its features again.

    References
    ----------
    Gomes, Read, Bifet (2019). Streaming random patches for evolving data stream classification. ICDM.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import StreamingRandomPatches
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 10))
    >>> y = ((X[:, 0] > 0.5) & (X[:, 1] > 0.3)).astype(int)
    >>> patches = StreamingRandomPatches(max_features=0.8).fit(X[:4000], y[:4000])
    >>> patches.feature_importances_.argsort()[-2:]
    array([1, 0])
    >>> bool(patches.score(X[4000:], y[4000:]) > 0.9)
    True
    """

    _by_leaf = False

    max_features: Any = 0.6


@functools.cache
def _poisson_shares(rate: float) -> Floats:
    """Return P[K <= 0], P[K <= 1], ... until the remaining probability is negligible."""
    from scipy.stats import poisson

    last = int(poisson.isf(1e-15, rate))
    return poisson.cdf(np.arange(last + 1), rate)


# -- OzaBoost: online boosting of Hoeffding trees --------------------------------------------------------

# Oza, Russell: Online bagging and boosting, AISTATS 2001 (Oza's thesis, 2001, has the proofs).
#
# Each row passes the trees in order with a weight lambda, initially 1. Tree t learns it Poisson(lambda) times. R_t and
# W_t sum the lambda of the rows that tree t predicted correctly and wrongly::
#
#     right:  R_t += lambda,  lambda <- lambda (R_t + W_t) / (2 R_t)               (1)
#     wrong:  W_t += lambda,  lambda <- lambda (R_t + W_t) / (2 W_t)               (2)
#     prediction: the class of the largest sum of a_t over the trees that predict it,  a_t = log(R_t / W_t)    (3)
#
# So half of the weight that tree t + 1 receives is on rows that tree t misclassified.
#
# Deviations, each with its reason:
#
# * A tree is evaluated before it learns the row, not afterwards: the error is that on new rows.
# * a_t = log((R_t + 1) / (W_t + 1)), at least 0: a tree without errors does not dominate, and one that is worse than
#   chance in two classes does not vote.
# * lambda is limited to [1e-100, 100], so that a rare error of a good tree cannot block the stream for thousands of
#   updates, and a thousand wrong trees do not cause a division by 0.

_LEAST_OFTEN, _MOST_OFTEN = 1e-100, 100.0  # lambda; e^-lambda is finite and positive


@njit(allocates=False)
def _count(share: float, rate: float) -> float:
    """Return the Poisson(rate) number at a quantile in [0, 1)."""
    k, term = 0, math.exp(-rate)
    total = term
    while total <= share and term > 1e-17 * total:
        k += 1
        term *= rate / k
        total += term
    return float(k)


@njit()
def _learn(
    tree: Arrays, drawn: Array, tally: Array, X: Array, cells: Array, codes: Array, rates: Array, start: int,
    first: int, rules: SplitOptions, sampling: Sampling,
) -> int:  # fmt: skip
    """Learn the rows from `start` at these rates, which become those of the next tree; return the next row.

    The next row is before the end if a pending change needs room.
    """
    part, part_cells = np.empty(tree.gaussians.shape[3]), np.empty(cells.shape[1], np.int64)
    votes, no_guesses = np.empty(tree.weights.shape[1]), np.empty(0, np.int64)
    for i in range(start, len(codes) + 1):
        if tree.state[State.PENDING] > 0:
            if not has_room(tree):
                return i
            apply_pending(tree, drawn, X.shape[1], rules)
        if i == len(codes):
            break
        register_categories(tree, cells[i])
        count = _count(uniform(sampling.seed, first + i, 0), rates[i])
        right, length, due = learn_row(
            tree, drawn, X[i], cells[i], codes[i], count, rules, sampling, part, part_cells, no_guesses, votes
        )
        if due:
            attempt_split(tree, tree.notes[Note.PATH, length - 1], rules)
        if count > 0.0:
            queue_branches(tree, length, X[i], cells[i])
        tally[1] += rates[i]
        if right:
            tally[0] += rates[i]
        same = tally[0] if right else tally[1] - tally[0]
        rates[i] = max(min(rates[i] * tally[1] / (2.0 * same), _MOST_OFTEN), _LEAST_OFTEN)  # (1), (2)
    return len(codes)


@dataclass(repr=False, eq=False)
class OzaBoost(TreeEnsemble):
    """Online boosting: each Hoeffding tree concentrates on the rows misclassified by the trees before it.

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        Number of trees.
    grace_period, delta, tie_threshold, leaf, n_cuts, categorical, binary_splits, max_depth
        As in :class:`HoeffdingTree`, for each tree.
    max_nodes : int, at least 1, or None, default=None
        Maximum number of nodes of each tree. This bounds the memory.
    random_state : int, at least 0, default=0
        Seed of the Poisson numbers.

    Attributes
    ----------
    tree_errors_ : ndarray of shape (n_estimators,), float64
        Weighted error rate of each tree, from 0 to 1, on rows that it had not learned.
    n_nodes_ : ndarray of shape (n_estimators,), int64
        Number of nodes of each tree.
    feature_importances_ : ndarray of shape (n_features,), float64
        Gain of the splits in all trees: merit times weight, summed by feature and divided by the sum of all.
    classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`HoeffdingTree`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.

    Notes
    -----
    A row costs as much as in `n_estimators` trees. Trees are never replaced, so boosting does not recover from a drift.
    A batch leaves the same state as its rows one at a time.

    References
    ----------
    Oza, Russell (2001). Online bagging and boosting. AISTATS. Equations (1) to (3) of the source file's header.

    Examples
    --------
    The sum of three features determines the class, which a tree of one split approximates poorly; boosting adds splits:

    >>> import numpy as np
    >>> from tamis import HoeffdingTree, OzaBoost
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(10000, 5))
    >>> y = (X[:, :3].sum(axis=1) > 1.5).astype(int)
    >>> stump = HoeffdingTree(max_depth=1, leaf="majority").fit(X[:8000], y[:8000])
    >>> boosted = OzaBoost(10, max_depth=1, leaf="majority").fit(X[:8000], y[:8000])
    >>> bool(boosted.score(X[8000:], y[8000:]) > stump.score(X[8000:], y[8000:]) + 0.1)
    True
    """

    n_estimators: int = parameter(integer("[1, 1000]"), default=10)
    _: KW_ONLY
    random_state: int = parameter(SEED[0], default=0)

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        super()._initialize(n_features, names)
        self._n_drawn_ = n_features
        self._trees_ = [self._create_tree(t) for t in range(self.n_estimators)]

    def _learn(self, rows: Floats, codes: Ints) -> None:
        numbers, cells = self._encode(rows, learn=True)
        rules, rates = self._split_options(watched=True), np.ones(len(codes))
        for t, tree in enumerate(self._trees_):
            seed = (int(self.random_state) << 24) + (1 << 23) + t
            sampling, at = Sampling(seed, tree.key, False, np.zeros(1), 0.0, 0.0), 0
            tree.make_writable()
            while at < len(codes) or tree.pools.state[State.PENDING]:
                at = _learn(
                    tree.pools.arrays(), tree.drawn, tree.tally, numbers, cells, codes, rates, at, self.n_seen_,
                    rules, sampling,
                )  # fmt: skip
                tree.make_room()

    def _weights(self) -> Floats:
        """Return the votes of the trees (3), 1 each while none is better than chance."""
        right, total = np.array([tree.tally for tree in self._trees_]).T
        weights: Floats = np.maximum(np.log((right + 1.0) / (total - right + 1.0)), 0.0)
        return weights if weights.any() else np.ones_like(weights)

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        mode, each = LEAVES.index(self.leaf), np.arange(len(votes))
        votes[:] = 0.0
        weights = self._weights()
        for tree, weight in zip(self._trees_, weights, strict=True):
            proba = np.zeros_like(votes)
            tree.vote(numbers, cells, mode, 1.0, proba)
            votes[each, proba.argmax(axis=1)] += weight
        votes /= weights.sum()

    @property
    def tree_errors_(self) -> Floats:
        """Weighted error rate of each tree, on rows that it had not learned; 0 before the first row."""
        right, total = np.array([tree.tally for tree in self._trees_]).T
        return (total - right) / np.maximum(total, 1e-300)
