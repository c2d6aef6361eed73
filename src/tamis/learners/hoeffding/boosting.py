"""OzaBoost: online boosting of Hoeffding trees.

Oza, Russell: Online bagging and boosting, AISTATS 2001 (Oza's thesis, 2001, has the proofs).

Each row passes the trees in order with a weight lambda, initially 1. Tree t learns it Poisson(lambda) times. R_t and
W_t sum the lambda of the rows that tree t predicted correctly and wrongly::

    right:  R_t += lambda,  lambda <- lambda (R_t + W_t) / (2 R_t)               (1)
    wrong:  W_t += lambda,  lambda <- lambda (R_t + W_t) / (2 W_t)               (2)
    prediction: the class of the largest sum of a_t over the trees that predict it,  a_t = log(R_t / W_t)    (3)

So half of the weight that tree t + 1 receives is on rows that tree t misclassified.

Deviations, each with its reason:

* A tree is evaluated before it learns the row, not afterwards: the error is that on new rows.
* a_t = log((R_t + 1) / (W_t + 1)), at least 0: a tree without errors does not dominate, and one that is worse than
  chance in two classes does not vote.
* lambda is limited to [1e-100, 100], so that a rare error of a good tree cannot block the stream for thousands of
  updates, and a thousand wrong trees do not cause a division by 0.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis._validation.parameters import SEED, integer, parameter
from tamis.learners.hoeffding.adaptive import uniform
from tamis.learners.hoeffding.classifier import LEAVES
from tamis.learners.hoeffding.forest import TreeEnsemble
from tamis.learners.hoeffding.learning import attempt_split, has_room, queue_branches, register_categories
from tamis.learners.hoeffding.member import Sampling, apply_pending, learn_row
from tamis.learners.hoeffding.nodes import Arrays, Note, State
from tamis.learners.hoeffding.splits import SplitOptions

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
