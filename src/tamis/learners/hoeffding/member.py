"""A tree of a forest: its leaves keep few of the features, its rows count at random, and its errors are watched.

A leaf draws m of the p features when its first row comes, and keeps, splits by and votes with these alone. With u_i a
number in [0, 1) that only the seed and the row's number decide, row i counts as often as

    k_i = the number of K = 0, 1, ... with P[Poisson(rate) <= K] <= u_i                                  (1)

says; a row that counts 0 times is not learned from. What the tree predicts of each row before it learns from it says
whether the row is an error, for the tree's share of right rows and for two ADWINs of different sensitivity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._jit import njit
from tamis._shapes import Shapes
from tamis.drift.adwin import STATE_SIZE, check_windows, watch
from tamis.learners.hoeffding.adaptive import uniform
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.learning import (
    admit,
    guess_of,
    has_room,
    is_due,
    note_new_category,
    try_to_split,
)
from tamis.learners.hoeffding.leaves import MAJORITY, vote
from tamis.learners.hoeffding.nodes import (
    BORN,
    BRANCH,
    FEATURE,
    LIVE,
    MISSING,
    NUMBER,
    PATH,
    PENDING,
    ROOT,
    SLOT,
    SPLIT,
    WEIGHT,
    WHAT,
    WHERE,
    Arrays,
    Pools,
    walk,
)
from tamis.learners.hoeffding.splits import Rules, add_branch, split
from tamis.learners.hoeffding.validation import check_trees, require

__all__ = ["DRIFTED", "WARNED", "Draws", "Member"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOTHING, WARNED, DRIFTED = range(3)  # what the last row has set off


class Draws(NamedTuple):
    """What is drawn at random, as the kernels are given it."""

    seed: int  # of the rows' counts: a tree and the one that grows behind it have the same
    key: int  # of the features: no two trees have the same
    by_leaf: bool  # whether each leaf draws features of its own, or all leaves of a tree have the same
    counts: Floats  # P[Poisson(rate) <= 0], <= 1, ...; (1,) with 0 where each row counts once
    warning: float  # the detectors' delta; 0: none
    drift: float


class Member:
    """A tree with the features that its leaves have drawn, how often it was right, and what watches its errors.

    Parameters
    ----------
    n_numeric, n_categorical, n_classes : int
    n_drawn : int
        Features that a leaf keeps.
    key : int
        Seed of the features that are drawn.

    Attributes
    ----------
    n_places : int
        Numeric features that a leaf may keep.
    pools : Pools
        The tree. Where a leaf keeps numeric features, the place is that in `drawn`.
    drawn : ndarray of shape (n_slots, n_drawn + 1), int64
        The features of a slot in ascending order, the numeric ones first; then the birth of the leaf that drew them.
    tally : ndarray of shape (2,), float64
        Rows predicted right, and all.
    detectors : ndarray of shape (2, STATE_SIZE), float64
        The ADWINs that warn and that find a drift.
    """

    _fit_together = Shapes("""
        n_drawn (=d)  n_places (=g)  drawn (s, d+1)  tally (2)  detectors (2, 629)  pools.links (n, 13)
        pools.numbers (n, 6)  pools.weights (n, k)  pools.gaussians (s, k, 5, g)  pools.counts (s, k, c)
        pools.totals (s, k, q)  pools.next_cell (c)  pools.state (11)  pools.notes (8, >n)  pools.lists (2, q)
        pools.detectors (*, 629)
    """)

    def __init__(self, n_numeric: int, n_categorical: int, n_classes: int, n_drawn: int, key: int) -> None:
        self.n_drawn, self.n_places = n_drawn, min(n_drawn, n_numeric)
        self.pools = Pools(self.n_places, n_categorical, n_classes)
        self.drawn: Ints = np.full((len(self.pools.gaussians), n_drawn + 1), -1)
        self.tally: Floats = np.zeros(2)
        self.detectors: Floats = np.zeros((2, STATE_SIZE))
        self.key = key

    def learn(
        self, X: Floats, cells: Ints, codes: Ints, first: int, rules: Rules, draws: Draws
    ) -> tuple[int, int]:
        """Learn rows, of which the first has a number, until a detector speaks; return how many, and what it says."""
        self._own_arrays()
        draws, at, event = draws._replace(key=self.key), 0, NOTHING
        while (at < len(codes) and not event) or self.pools.state[PENDING]:
            stop = at if event else len(codes)  # no further row, but what is pending
            at, event = _learn(
                self.pools.arrays(), self.drawn, self.tally, self.detectors, X[:stop], cells[:stop], codes[:stop],
                at, first, event, rules, draws,
            )  # fmt: skip
            if self.pools.state[PENDING]:
                self.pools.make_room()
                self._draw_more()
        return at, event

    def check(self, n_numeric: int, categories: Categories) -> None:
        """Reject a tree that no rows lead to.

        Raises
        ------
        StateError
            If so.
        """
        check_trees(self.pools, self.pools.state[[ROOT]], n_numeric, categories)
        check_windows(self.detectors)
        require(
            ((self.tally >= 0.0) & np.isfinite(self.tally)).all() and self.tally[0] <= self.tally[1], "tally"
        )
        features, n_features = self.drawn[:, :-1], n_numeric + self.pools.lists.shape[1]
        follows = (features[:, 1:] > features[:, :-1]) | (features[:, 1:] == -1)
        require(((features >= -1) & (features < n_features)).all() and follows.all(), "drawn")

    def vote(self, X: Floats, cells: Ints, mode: int, weight: float, votes: Floats) -> None:
        """Add the tree's probabilities of the classes, times a weight."""
        self._own_arrays()
        _add_votes(self.pools.arrays(), self.drawn, X, cells, mode, weight, votes)

    def _own_arrays(self) -> None:
        """Copy the arrays of a file mapped for reading before they are written."""
        if not self.tally.flags.writeable:
            self.drawn, self.tally, self.detectors = (
                self.drawn.copy(),
                self.tally.copy(),
                self.detectors.copy(),
            )

    def _draw_more(self) -> None:
        missing = len(self.pools.gaussians) - len(self.drawn)
        if missing:
            none = np.full((missing, self.drawn.shape[1]), -1)
            self.drawn = np.concatenate([self.drawn, none])


# -- drawing -----------------------------------------------------------------------------------------------


@njit(allocates=False)
def _count_of(draws: Draws, row: int) -> int:
    """Return how often a row counts, by (1)."""
    share, k = uniform(draws.seed, row, 0), 0
    while k < draws.counts.shape[0] and share >= draws.counts[k]:
        k += 1
    return k


@njit(allocates=False)
def _draw(drawn: Ints, born: int, n_features: int, draws: Draws) -> None:
    """Draw the features of a leaf, every set of them equally likely: one after another is taken or passed over."""
    left, birth = drawn.shape[0] - 1, born if draws.by_leaf else 0
    for f in range(n_features):
        if uniform(draws.key, f, birth) * (n_features - f) < left:
            drawn[drawn.shape[0] - 1 - left] = f
            left -= 1
    drawn[drawn.shape[0] - 1] = born


@njit(allocates=False)
def _keep(drawn: Ints, row: Floats, cells: Ints, part: Floats, part_cells: Ints) -> None:
    """Write the values of the drawn features; all others are missing."""
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
def _learn(
    tree: Arrays, drawn: Ints, tally: Floats, detectors: Floats, X: Floats, cells: Ints, codes: Ints, start: int,
    first: int, event: int, rules: Rules, draws: Draws,
) -> tuple[int, int]:  # fmt: skip
    """Learn the rows from `start`; return which is next, and what the last one has set off.

    It is earlier than the end where something needs room or a detector has spoken.
    """
    part, part_cells = np.empty(tree.gaussians.shape[3]), np.empty(cells.shape[1], np.int64)
    votes, no_guesses = np.empty(tree.weights.shape[1]), np.empty(0, np.int64)
    for i in range(start, len(codes) + 1):
        if tree.state[PENDING] > 0:
            if not has_room(tree):
                return i, event
            _carry_out(tree, drawn, X.shape[1], rules)
        if i == len(codes):
            break
        admit(tree, cells[i])
        count = float(_count_of(draws, first + i))
        right, length, due = _learn_row(
            tree, drawn, X[i], cells[i], codes[i], count, rules, draws, part, part_cells, no_guesses, votes
        )
        if due:
            try_to_split(tree, tree.notes[PATH, length - 1], rules)
        if count > 0.0:
            note_new_category(tree, length, X[i], cells[i])
        tally[0] += right
        tally[1] += 1.0
        event = _watch(detectors, 0.0 if right else 1.0, draws)
        if event != NOTHING:
            return i + 1, event
    return len(codes), event


@njit(allocates=False)
def _watch(detectors: Floats, error: float, draws: Draws) -> int:
    """Show an error to the detectors, and return which of them speaks."""
    event = NOTHING
    if draws.warning > 0.0 and watch(detectors[0], error, draws.warning, 32) > 0:
        event = WARNED
    if draws.drift > 0.0 and watch(detectors[1], error, draws.drift, 32) > 0:
        event = DRIFTED
    return event


@njit()
def _carry_out(tree: Arrays, drawn: Ints, n_numeric: int, rules: Rules) -> None:
    """Carry out what is pending. A split by a place in its leaf becomes one by the feature there."""
    n_places = tree.gaussians.shape[3]
    for k in range(tree.state[PENDING]):
        what, node, number = tree.notes[WHAT, k], tree.notes[WHERE, k], tree.notes[NUMBER, k]
        if rules.max_nodes >= 0 and tree.state[LIVE] + (number if what == SPLIT else 1) > rules.max_nodes:
            continue
        if what == BRANCH:
            add_branch(tree, node, number)
            continue
        slot, place = tree.links[node, SLOT], tree.links[node, FEATURE]
        split(tree, node)
        tree.links[node, FEATURE] = drawn[slot, place] if place < n_places else n_numeric + place - n_places
    tree.state[PENDING] = 0


@njit(allocates=False)
def _learn_row(
    tree: Arrays, drawn: Ints, row: Floats, cells: Ints, y: int, count: float, rules: Rules, draws: Draws,
    part: Floats, part_cells: Ints, no_guesses: Ints, votes: Floats,
) -> tuple[bool, int, bool]:  # fmt: skip
    """Learn a row as often as it counts; return whether the tree knew its class, its way, and if its leaf may split."""
    length = walk(tree, tree.state[ROOT], row, cells)
    leaf = tree.notes[PATH, length - 1]
    own = drawn[tree.links[leaf, SLOT]]
    if own[own.shape[0] - 1] != tree.links[leaf, BORN]:
        _draw(own, tree.links[leaf, BORN], row.shape[0] + cells.shape[0], draws)
    _keep(own, row, cells, part, part_cells)
    guess = guess_of(tree, leaf, part, part_cells, y, count, no_guesses, rules, votes)
    due = False
    if count > 0.0:
        for p in range(length):
            tree.weights[tree.notes[PATH, p], y] += count
            tree.numbers[tree.notes[PATH, p], WEIGHT] += count
        due = is_due(tree, leaf, part, part_cells, y, count, rules)
    return guess == y, length, due


# -- reading -----------------------------------------------------------------------------------------------


@njit()
def _add_votes(
    tree: Arrays, drawn: Ints, X: Floats, cells: Ints, mode: int, weight: float, votes: Floats
) -> None:
    """Add the probabilities of each row's classes, times a weight."""
    part, part_cells = np.empty(tree.gaussians.shape[3]), np.empty(cells.shape[1], np.int64)
    found = np.empty(votes.shape[1])
    for i in range(X.shape[0]):
        leaf = tree.notes[PATH, walk(tree, tree.state[ROOT], X[i], cells[i]) - 1]
        if mode != MAJORITY:
            own = drawn[tree.links[leaf, SLOT]]
            if own[own.shape[0] - 1] == tree.links[leaf, BORN]:
                _keep(own, X[i], cells[i], part, part_cells)
            else:  # no row has come to it
                part.fill(np.nan)
                part_cells.fill(MISSING)
        vote(tree, leaf, part, part_cells, mode, found)
        for c in range(found.shape[0]):
            votes[i, c] += weight * found[c]
