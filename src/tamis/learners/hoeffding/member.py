"""A tree of a forest: feature sampling at the leaves, online bagging, and drift detectors on its errors.

A leaf samples m of the p features when its first row arrives, and stores, splits by and votes with these only. With a
pseudo-random number u_i in [0, 1) that depends only on the seed and the row number, row i counts

    k_i = the number of K = 0, 1, ... with P[Poisson(rate) <= K] <= u_i                                  (1)

times; a row that counts 0 times is not learned. The tree predicts each row before it learns it; the errors update the
accuracy of the tree and two ADWINs of different sensitivity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Floats, Ints, Mask
from tamis.drift.adwin import STATE_SIZE, check_windows, update_window
from tamis.learners.hoeffding.adaptive import draw_count, draw_features
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.learning import (
    attempt_split,
    attempt_split_of,
    has_room,
    predict_and_score,
    queue_branches,
    register_categories,
    update_leaf,
)
from tamis.learners.hoeffding.leaves import MAJORITY, vote
from tamis.learners.hoeffding.nodes import (
    MISSING,
    Arrays,
    Change,
    Link,
    Note,
    Number,
    Pools,
    State,
    leaf_of,
    shapes_of_pools,
    walk,
)
from tamis.learners.hoeffding.records import check_trees, require
from tamis.learners.hoeffding.splits import SplitOptions, add_branch, features_in_use, split

NOTHING, WARNING, DRIFT = range(3)  # event after the last row


class Sampling(NamedTuple):
    """Random sampling of features and rows, as passed to the kernels."""

    seed: int  # of the bagging counts: the same for a tree and its background tree
    key: int  # of the features: different for all trees
    by_leaf: bool  # whether features are sampled for each leaf, or once for the tree
    counts: Floats  # P[Poisson(rate) <= 0], <= 1, ...; (1,) with 0 where each row counts once
    warning: float  # the detectors' delta; 0: none
    drift: float


class Member(SizedState):
    """A tree with the sampled features of its leaves, its accuracy, and its drift detectors.

    Parameters
    ----------
    n_numeric, n_categorical, n_classes : int
    n_drawn : int
        Number of features of a leaf.
    key : int
        Seed of the feature sampling.

    Attributes
    ----------
    n_places : int
        Largest number of numeric features of a leaf.
    pools : Pools
        The tree. Numeric features are stored at their position in `drawn`.
    drawn : ndarray of shape (n_slots, n_drawn + 1), int64
        The features of a slot in ascending order, numeric ones first; then the birth number of the leaf that sampled
        them.
    tally : ndarray of shape (2,), float64
        Number of rows predicted correctly, and of all rows.
    detectors : ndarray of shape (2, STATE_SIZE), float64
        The ADWINs for warnings and for drifts.
    """

    _state_spec = Shapes(f"""
        n_drawn (=d)  n_places (=p)  drawn (s, d+1) int  tally (2) float in [0, inf)
        tally[:1] float in [0, its.tally[1]]  detectors (2, 629)  {shapes_of_pools("pools")}
    """)

    def __init__(self, n_numeric: int, n_categorical: int, n_classes: int, n_drawn: int, key: int) -> None:
        self.n_drawn, self.n_places = n_drawn, min(n_drawn, n_numeric)
        self.pools = Pools(self.n_places, n_categorical, n_classes)
        self.drawn: Ints = np.full((len(self.pools.gaussians), n_drawn + 1), -1)
        self.tally: Floats = np.zeros(2)
        self.detectors: Floats = np.zeros((2, STATE_SIZE))
        self.key = key

    def check(self, n_numeric: int, categories: Categories) -> None:
        """Reject a tree with unreachable or invalid nodes.

        Raises
        ------
        StateError
            If so.
        """
        check_trees(self.pools, self.pools.state[[State.ROOT]], n_numeric, categories)
        check_windows(self.detectors)
        features, n_features = self.drawn[:, :-1], n_numeric + self.pools.lists.shape[1]
        follows = (features[:, 1:] > features[:, :-1]) | (features[:, 1:] == -1)
        require(((features >= -1) & (features < n_features)).all() and follows.all(), "drawn")

    def vote(self, X: Floats, cells: Ints, mode: int, weight: float, votes: Floats) -> None:
        """Add the tree's class probabilities, times a weight."""
        self.make_writable()
        add_votes(self.pools.arrays(), self.drawn, X, cells, mode, weight, votes)

    def make_writable(self) -> None:
        """Copy memory-mapped arrays before they are written."""
        if not self.tally.flags.writeable:
            self.drawn, self.tally = self.drawn.copy(), self.tally.copy()
            self.detectors = self.detectors.copy()

    def make_room(self) -> None:
        """Allocate space for pending changes."""
        if not self.pools.state[State.PENDING]:
            return
        self.pools.make_room()
        missing = len(self.pools.gaussians) - len(self.drawn)
        if missing:
            none = np.full((missing, self.drawn.shape[1]), -1)
            self.drawn = np.concatenate([self.drawn, none])


# -- sampling -----------------------------------------------------------------------------------------------


@njit(allocates=False)
def _draw_features(drawn: Ints, born: int, n_features: int, sampling: Sampling) -> None:
    """Sample the features of a leaf."""
    draw_features(drawn[: drawn.shape[0] - 1], n_features, sampling.key, born if sampling.by_leaf else 0)
    drawn[drawn.shape[0] - 1] = born


@njit(allocates=False)
def _project(drawn: Ints, row: Floats, cells: Ints, part: Floats, part_cells: Ints) -> None:
    """Write the values of the sampled features; all others are missing."""
    part.fill(np.nan)
    part_cells.fill(MISSING)
    for place in range(drawn.shape[0] - 1):
        f = drawn[place]
        if f < 0:
            return
        if f < row.shape[0]:
            part[place] = row[f]
        else:
            part_cells[f - row.shape[0]] = cells[f - row.shape[0]]


# -- learning ----------------------------------------------------------------------------------------------


@njit()
def learn_member(
    tree: Arrays, drawn: Ints, tally: Floats, detectors: Floats, X: Floats, cells: Ints, codes: Ints, start: int,
    first: int, event: int, rules: SplitOptions, sampling: Sampling, is_held: bool,
) -> tuple[int, int]:  # fmt: skip
    """Learn the rows from `start`; return the next row and the last event.

    The next row is before the end if a detector has signalled, or if a pending change needs room or `is_held`.
    """
    part, part_cells = np.empty(tree.gaussians.shape[3]), np.empty(cells.shape[1], np.int64)
    votes, no_guesses = np.empty(tree.weights.shape[1]), np.empty(0, np.int64)
    for i in range(start, len(codes) + 1):
        if tree.state[State.PENDING] > 0:
            if is_held or not has_room(tree):
                return i, event
            apply_pending(tree, drawn, X.shape[1], rules)
        if i == len(codes):
            break
        register_categories(tree, cells[i])
        count = float(draw_count(sampling.counts, sampling.seed, first + i, 0))  # (1)
        right, length, due = learn_row(
            tree, drawn, X[i], cells[i], codes[i], count, rules, sampling, part, part_cells, no_guesses, votes
        )
        if due and rules.new_feature_penalty > 0.0:
            leaf = tree.notes[Note.PATH, length - 1]
            attempt_split_of(
                tree, leaf, rules, _places_in_use(tree, drawn[tree.links[leaf, Link.SLOT]], X.shape[1])
            )
        elif due:
            attempt_split(tree, tree.notes[Note.PATH, length - 1], rules)
        if count > 0.0:
            queue_branches(tree, length, X[i], cells[i])
        tally[0] += right
        tally[1] += 1.0
        event = _update_detectors(detectors, 0.0 if right else 1.0, sampling)
        if event != NOTHING:
            return i + 1, event
    return len(codes), event


@njit()
def _places_in_use(tree: Arrays, drawn: Ints, n_numeric: int) -> Mask:
    """Return whether splits of the tree use the feature at each place of a leaf."""
    n_places, n_categorical = tree.gaussians.shape[3], tree.totals.shape[2]
    of_tree = features_in_use(tree, n_numeric + n_categorical)
    used = np.ones(n_places + n_categorical, np.bool_)
    for place in range(n_places):
        if 0 <= drawn[place] < n_numeric:
            used[place] = of_tree[drawn[place]]
    for g in range(n_categorical):
        used[n_places + g] = of_tree[n_numeric + g]
    return used


@njit(allocates=False)
def _update_detectors(detectors: Floats, error: float, sampling: Sampling) -> int:
    """Update the detectors with an error, and return the event."""
    event = NOTHING
    if sampling.warning > 0.0 and update_window(detectors[0], error, sampling.warning, 32) > 0:
        event = WARNING
    if sampling.drift > 0.0 and update_window(detectors[1], error, sampling.drift, 32) > 0:
        event = DRIFT
    return event


@njit()
def apply_pending(tree: Arrays, drawn: Ints, n_numeric: int, rules: SplitOptions) -> None:
    """Apply the pending changes. The feature of a split is translated from its position in the leaf."""
    n_places = tree.gaussians.shape[3]
    for k in range(tree.state[State.PENDING]):
        kind, node, number = tree.notes[Note.WHAT, k], tree.notes[Note.WHERE, k], tree.notes[Note.NUMBER, k]
        if (
            rules.max_nodes >= 0
            and tree.state[State.LIVE] + (number if kind == Change.SPLIT else 1) > rules.max_nodes
        ):
            continue
        if kind == Change.BRANCH:
            add_branch(tree, node, number)
            continue
        slot, place = tree.links[node, Link.SLOT], tree.links[node, Link.FEATURE]
        split(tree, node)
        feature = drawn[slot, place] if place < n_places else n_numeric + place - n_places
        tree.links[node, Link.FEATURE] = feature
    tree.state[State.PENDING] = 0


@njit(allocates=False)
def learn_row(
    tree: Arrays, drawn: Ints, row: Floats, cells: Ints, y: int, count: float, rules: SplitOptions, sampling: Sampling,
    part: Floats, part_cells: Ints, no_guesses: Ints, votes: Floats,
) -> tuple[bool, int, bool]:  # fmt: skip
    """Learn a row; return whether its prediction was correct, the path length, and whether to attempt a split."""
    length = walk(tree, tree.state[State.ROOT], row, cells)
    leaf = tree.notes[Note.PATH, length - 1]
    own = drawn[tree.links[leaf, Link.SLOT]]
    if own[own.shape[0] - 1] != tree.links[leaf, Link.BORN]:
        _draw_features(own, tree.links[leaf, Link.BORN], row.shape[0] + cells.shape[0], sampling)
    _project(own, row, cells, part, part_cells)
    guess = predict_and_score(tree, leaf, part, part_cells, y, count, no_guesses, rules, votes)
    due = False
    if count > 0.0:
        for p in range(length):
            tree.weights[tree.notes[Note.PATH, p], y] += count
            tree.numbers[tree.notes[Note.PATH, p], Number.WEIGHT] += count
        due = update_leaf(tree, leaf, part, part_cells, y, count, rules)
    return guess == y, length, due


# -- reading -----------------------------------------------------------------------------------------------


@njit()
def add_votes(
    tree: Arrays, drawn: Ints, X: Floats, cells: Ints, mode: int, weight: float, votes: Floats
) -> None:
    """Add the class probabilities of each row, times a weight."""
    part, part_cells = np.empty(tree.gaussians.shape[3]), np.empty(cells.shape[1], np.int64)
    proba = np.empty(votes.shape[1])
    for i in range(X.shape[0]):
        leaf = leaf_of(tree, tree.state[State.ROOT], X[i], cells[i])
        if mode != MAJORITY:
            own = drawn[tree.links[leaf, Link.SLOT]]
            if own[own.shape[0] - 1] == tree.links[leaf, Link.BORN]:
                _project(own, X[i], cells[i], part, part_cells)
            else:  # no row has reached it
                part.fill(np.nan)
                part_cells.fill(MISSING)
        vote(tree, leaf, part, part_cells, mode, proba)
        for c in range(proba.shape[0]):
            votes[i, c] += weight * proba[c]
