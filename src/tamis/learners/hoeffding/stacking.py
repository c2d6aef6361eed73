"""StreamingStacking: a tree for every pair of features, combined by perceptrons.

Bifet, Frank, Holmes, Pfahringer: Accurate ensembles for data streams: combining restricted Hoeffding trees using
stacking, ACML 2010.

=============  ==================  ====================================================================
paper          here                meaning
=============  ==================  ====================================================================
k              `size`              features of a tree; there is a tree for every subset of this size
a_ij           a                   log odds of class j by tree i, by (1)
alpha          r                   learning rate of the perceptrons, by (3)
=============  ==================  ====================================================================

With T trees whose probability of class c of K is p_tc, before they learn the row, and y_c = 1 for its class::

    a_tc = log((p_tc + e) / (1 - p_tc + (K - 1) e)),   e = 0.001; K at least 2                         (1)
    z_c = 1 / (1 + exp(-(b_c + sum_t w_tc a_tc))),     P[c] ~ z_c                                      (2)
    w_tc += r (y_c - z_c) z_c (1 - z_c) a_tc,          r = 2 / (n + T + 2)                             (3)

and b_c as a weight with a = 1. Weights are initialised to 1 / T, and n counts rows. An ADWIN monitors the errors of
each tree: when they rise, the tree is reset, its weights become 0, and n becomes 10, so that the perceptrons adapt
quickly.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis._validation.parameters import integer, number, parameter
from tamis.drift.adwin import STATE_SIZE, check_windows, update_window
from tamis.errors import DataError
from tamis.learners.hoeffding.classifier import LEAVES, TreeClassifier
from tamis.learners.hoeffding.learning import attempt_split, has_room, predict_and_score, update_leaf
from tamis.learners.hoeffding.leaves import vote
from tamis.learners.hoeffding.nodes import (
    Arrays,
    Change,
    Note,
    Number,
    Pools,
    State,
    drop_subtree,
    leaf_of,
    new_leaf,
    queue_change,
    shapes_of_pools,
    walk,
)
from tamis.learners.hoeffding.records import check_trees
from tamis.learners.hoeffding.splits import SplitOptions, split

_SMOOTHING = 0.001  # e
_CLOCK_AFTER_DRIFT = 10.0  # n
_SEEN, _DRIFTS = range(2)
_LEARNED, _DUE, _RESTARTED = range(3)  # outcome of a row: learned, split to be attempted, tree reset


class Stack(NamedTuple):
    """The arrays of the ensemble besides the trees, as passed to the kernels."""

    subsets: Array  # (T, m) int64
    roots: Array  # (T,)   int64: the node of each tree's root
    detectors: Array  # (T, STATE_SIZE)
    weights: Array  # (K, T) w
    bias: Array  # (K,)   b
    clock: Array  # (2,)   n, and the number of trees reset


@njit(allocates=False)
def _project(stack: Stack, t: int, row: Array, part: Array) -> None:
    """Write the values of a row that a tree uses."""
    for k in range(part.shape[0]):
        part[k] = row[stack.subsets[t, k]]


@njit(allocates=False)
def _combine(stack: Stack, votes: Array, c: int, a: Array) -> float:
    """Return z of a class by (2), and write its log odds into `a`."""
    n_trees, n_classes = votes.shape
    total, others = stack.bias[c], max(n_classes - 1, 1) * _SMOOTHING
    for t in range(n_trees):
        a[t] = np.log((votes[t, c] + _SMOOTHING) / (1.0 - votes[t, c] + others))  # (1)
        total += stack.weights[c, t] * a[t]
    z: float = 1.0 / (1.0 + np.exp(-total))  # (2)
    return z


@njit(allocates=False)
def _update_perceptron(stack: Stack, votes: Array, c: int, target: float, r: float, a: Array) -> None:
    """Update the perceptron of a class by (3)."""
    z = _combine(stack, votes, c, a)
    step = r * (target - z) * z * (1.0 - z)
    stack.bias[c] += step
    for t in range(a.shape[0]):
        stack.weights[c, t] += step * a[t]


@njit()
def _learn(
    pool: Arrays, stack: Stack, X: Array, codes: Array, start: int, drift: float, rules: SplitOptions
) -> int:
    """Learn the rows from `start`; return the next row, which is before the end if a pending change needs room."""
    n_classes, n_trees = stack.weights.shape
    part, a, work = np.empty(stack.subsets.shape[1]), np.empty(n_trees), np.empty(n_classes)
    votes, restarted = np.empty((n_trees, n_classes)), np.empty(n_trees, np.bool_)
    nothing = np.empty(0, np.int64)
    for i in range(start, len(codes) + 1):
        if pool.state[State.PENDING] > 0:
            if not has_room(pool):
                return i
            for k in range(pool.state[State.PENDING]):
                split(pool, pool.notes[Note.WHERE, k])
            pool.state[State.PENDING] = 0
        if i == len(codes):
            break
        for t in range(n_trees):
            _project(stack, t, X[i], part)
            length = walk(pool, stack.roots[t], part, nothing)
            vote(pool, pool.notes[Note.PATH, length - 1], part, nothing, rules.leaf, votes[t])
            outcome = _learn_tree(pool, stack, t, length, part, nothing, codes[i], drift, rules, work)
            restarted[t] = outcome == _RESTARTED
            if outcome == _DUE:
                attempt_split(pool, pool.notes[Note.PATH, length - 1], rules)
        r = 2.0 / (stack.clock[_SEEN] + n_trees + 2.0)
        for c in range(n_classes):
            _update_perceptron(stack, votes, c, 1.0 if codes[i] == c else 0.0, r, a)
        stack.clock[_SEEN] += 1.0
        for t in range(n_trees):
            if restarted[t]:
                stack.weights[:, t] = 0.0
                stack.clock[_SEEN] = _CLOCK_AFTER_DRIFT
                stack.clock[_DRIFTS] += 1.0
    return len(codes)


@njit(allocates=False)
def _learn_tree(
    pool: Arrays,
    stack: Stack,
    t: int,
    length: int,
    part: Array,
    nothing: Array,
    y: int,
    drift: float,
    rules: SplitOptions,
    work: Array,
) -> int:
    """Update a tree with a row, or reset the tree if its errors have risen; return the outcome."""
    leaf = pool.notes[Note.PATH, length - 1]
    error = 0.0 if predict_and_score(pool, leaf, part, nothing, y, 1.0, nothing, rules, work) == y else 1.0
    if drift > 0.0 and update_window(stack.detectors[t], error, drift, 32) > 0:
        drop_subtree(pool, stack.roots[t])
        stack.roots[t] = new_leaf(pool, -1, 0)
        stack.detectors[t].fill(0.0)
        return _RESTARTED
    for p in range(length):
        pool.weights[pool.notes[Note.PATH, p], y] += 1.0
        pool.numbers[pool.notes[Note.PATH, p], Number.WEIGHT] += 1.0
    return _DUE if update_leaf(pool, leaf, part, nothing, y, 1.0, rules) else _LEARNED


@njit()
def _predict_votes(pool: Arrays, stack: Stack, X: Array, mode: int, z: Array) -> None:
    """Write z of each row and class."""
    n_classes, n_trees = stack.weights.shape
    part, a, votes = np.empty(stack.subsets.shape[1]), np.empty(n_trees), np.empty((n_trees, n_classes))
    nothing = np.empty(0, np.int64)
    for i in range(X.shape[0]):
        for t in range(n_trees):
            _project(stack, t, X[i], part)
            vote(pool, leaf_of(pool, stack.roots[t], part, nothing), part, nothing, mode, votes[t])
        for c in range(n_classes):
            z[i, c] = _combine(stack, votes, c, a)


@dataclass(repr=False, eq=False)
class StreamingStacking(TreeClassifier):
    """Stacking of Hoeffding trees, one for every small subset of the features, by perceptrons (restricted trees).

    Parameters
    ----------
    size : int, at least 1, default=2
        Number of features of a tree. There is a tree for every subset of this size.
    drift : float in (0, 1) or None, default=0.002
        False-alarm rate of the ADWIN that resets a tree when its errors rise. None: never.
    grace_period, delta, tie_threshold, n_cuts, max_depth
        As in :class:`HoeffdingTree`, for each tree.
    leaf : {"majority", "nb", "nb-adaptive"}, default="nb-adaptive"
        What a leaf predicts, as in :class:`HoeffdingTree`.
    max_trees : int, at least 1, default=5000
        If more subsets than this are needed, rows are rejected: select features first.

    Attributes
    ----------
    subsets_ : ndarray of shape (n_trees, size), int64
        The features of each tree.
    weights_ : ndarray of shape (n_classes, n_trees), float64
        Weight of each tree in the perceptron of each class.
    n_drifts_ : int
        Number of trees reset so far.
    %(fitted)s
    DataError
        If there would be more than `max_trees` trees.

    Notes
    -----
    A row costs O(trees (depth + size times classes)): 1,225 trees for the pairs of 50 features. All columns are
    numeric. A batch leaves the same state as its rows one at a time. Missing values are treated as in a tree; sparse
    rows are rejected.

    References
    ----------
    Bifet, Frank, Holmes, Pfahringer (2010). Accurate ensembles for data streams: combining restricted Hoeffding trees
    using stacking. ACML.

    Examples
    --------
    The class is whether two of eight features have the same sign, so no feature is relevant by itself:

    >>> import numpy as np
    >>> from tamis import HoeffdingTree, StreamingStacking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(8000, 8))
    >>> y = (X[:, 2] * X[:, 5] > 0).astype(int)
    >>> model, tree = (one.fit(X[:7000], y[:7000]) for one in (StreamingStacking(), HoeffdingTree()))
    >>> model.subsets_[np.abs(model.weights_[1]).argmax()]
    array([2, 5])
    >>> bool(model.score(X[7000:], y[7000:]) > tree.score(X[7000:], y[7000:]) + 0.2)
    True
    """

    _shapes = f"""
        classes_ (c) labels  _categorical_ (0) int  subsets_ (t, p) in [0, n_features_in_)  _roots_ (t) int
        {shapes_of_pools("_pools_")}
        _detectors_ (t, 629)  weights_ (c, t) finite fill "1.0 / len(subsets_)"  _bias_ (c) finite fill 0
        _clock_ (2) float in [0, inf)
    """

    size: int = parameter(integer("[1, 10]"), default=2)
    _: KW_ONLY
    drift: float | None = parameter(number("(0, 1)"), None, default=0.002)
    max_trees: int = parameter(integer("[1, 1000000]"), default=5000)
    categorical: Any = field(default=None, init=False)
    binary_splits: bool = field(default=False, init=False)
    max_nodes: int | None = field(default=None, init=False)

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        size = min(self.size, n_features)
        n_trees = comb(n_features, size)
        if n_trees > self.max_trees:
            raise DataError(
                f"{n_features} features have {n_trees} subsets of {size}, more than max_trees ="
                f" {self.max_trees}: select features first, set size=1, or increase max_trees."
            )
        super()._initialize(n_features, names)
        n_classes = len(self.classes_)
        self.subsets_ = np.array(list(combinations(range(n_features), size)))
        self._pools_ = Pools(size, 0, n_classes)
        queue_change(self._pools_.arrays(), Change.SPLIT, 0, n_trees)
        self._pools_.make_room()
        self._pools_.state[State.PENDING] = 0
        pool = self._pools_.arrays()
        self._roots_ = np.array(
            [pool.state[State.ROOT], *(new_leaf(pool, -1, 0) for _ in range(n_trees - 1))]
        )
        self._detectors_ = np.zeros((n_trees, STATE_SIZE))
        self.weights_ = np.full((n_classes, n_trees), 1.0 / n_trees)
        self._bias_, self._clock_ = np.zeros(n_classes), np.zeros(2)

    def _stack(self) -> Stack:
        """Return the arrays for the kernels; memory-mapped arrays are copied first."""
        if not self._clock_.flags.writeable:
            for name in ("_roots_", "_detectors_", "weights_", "_bias_", "_clock_"):
                setattr(self, name, getattr(self, name).copy())
        return Stack(self.subsets_, self._roots_, self._detectors_, self.weights_, self._bias_, self._clock_)

    def _check_trees(self) -> None:
        check_windows(self._detectors_)
        check_trees(self._pools_, self._roots_, self.subsets_.shape[1], self._categories_)

    def _learn(self, rows: Floats, codes: Ints) -> None:
        stack, rules = self._stack(), self._split_options(watched=True)
        drift, at = float(self.drift or 0.0), 0
        while at < len(codes) or self._pools_.state[State.PENDING]:
            at = _learn(self._pools_.arrays(), stack, rows, codes, at, drift, rules)
            if self._pools_.state[State.PENDING]:
                self._pools_.make_room()

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        _predict_votes(self._pools_.arrays(), self._stack(), rows, LEAVES.index(self.leaf), votes)
        votes /= np.maximum(votes.sum(axis=1, keepdims=True), 1e-300)

    @property
    def n_drifts_(self) -> int:
        """Number of trees reset so far."""
        return int(self._clock_[_DRIFTS])
