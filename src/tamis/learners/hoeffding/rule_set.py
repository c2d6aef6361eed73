"""Rules in flat arrays: coverage, growth and voting of rules.

A rule is a leaf of the pools of :mod:`.nodes` outside any tree, with literals instead of a path from a root. It covers
a row if all of its literals hold; no literal holds for a missing value::

    x <= v    x > v    for numbers,      x == v    x != v    for categories

The default rule, at ROOT, has no literals: it learns the rows that no other rule covers. A rule grows by the binary
split that (2) of :mod:`.splits` chooses for a leaf, where n is the number of rows covered since its last literal. It
keeps the side with less entropy; when the default rule grows, a new rule gets the literal, and the default rule the
other side. The vote of a set is the mean of the rules that cover a row::

    P[y] = 1 / R sum_r P_r[y],   r = 1 .. R the rules that cover the row; the default rule alone where R = 0     (1)

In an ordered set, only the first covering rule learns and votes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints
from tamis.dependence.split_gain import entropy_times_weight
from tamis.drift.adwin import STATE_SIZE, check_windows, update_window
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.learning import has_room, predict_and_score, register_categories
from tamis.learners.hoeffding.leaves import vote
from tamis.learners.hoeffding.nodes import (
    MISSING,
    Arrays,
    Change,
    Kind,
    Link,
    Note,
    Number,
    Pools,
    State,
    drop_subtree,
    new_leaf,
    queue_change,
)
from tamis.learners.hoeffding.records import check_trees, require
from tamis.learners.hoeffding.splits import SplitOptions, best_split, split_weights, update_statistics

OPERATORS = ("<=", ">", "==", "!=")
AT_MOST, ABOVE, EQUAL, NOT_EQUAL = range(4)
NOTHING = -1  # the feature of a place without a literal
RIGHT, SEEN = range(2)  # columns of `tally`


class RuleOptions(NamedTuple):
    """Options of a rule set in addition to those of a tree."""

    ordered: bool
    drift: float  # the detectors' delta; 0: none
    max_rules: int  # -1: no limit


class RuleArrays(NamedTuple):
    """The arrays of a rule set, as passed to the kernels. The literals of a rule are in its first places."""

    pool: Arrays
    features: Ints  # (nodes, places)
    operators: Ints  # (nodes, places)
    values: Floats  # (nodes, places): threshold, or cell of the category
    gains: Floats  # (nodes, places): merit times the weight of the rule at that time
    order: Ints  # (nodes,): the rules, the oldest first
    tally: Floats  # (nodes, 2): rows predicted correctly, and all rows, since the last literal
    detectors: Floats  # (nodes, STATE_SIZE), or (0, STATE_SIZE) without drift detection


class RuleSet:
    """The growing arrays of a rule set."""

    def __init__(self, n_numeric: int, n_categorical: int, n_classes: int) -> None:
        self.pools = Pools(n_numeric, n_categorical, n_classes)
        shape = len(self.pools.links), 4
        self.features: Ints = np.full(shape, NOTHING)
        self.operators: Ints = np.zeros(shape, dtype=np.int64)
        self.values: Floats = np.zeros(shape)
        self.gains: Floats = np.zeros(shape)
        self.order: Ints = np.zeros(shape[0], dtype=np.int64)
        self.tally: Floats = np.zeros((shape[0], SEEN + 1))
        self.detectors: Floats = np.zeros((0, STATE_SIZE))

    def watch(self) -> None:
        """Create a detector for each rule that has none."""
        if not len(self.detectors):
            self.detectors = np.zeros((len(self.tally), STATE_SIZE))

    def arrays(self) -> RuleArrays:
        """Return the arrays for the kernels; memory-mapped arrays are copied first."""
        if not self.tally.flags.writeable:
            own = {name: array.copy() for name, array in vars(self).items() if name != "pools"}
            self.__dict__.update(own)
        return RuleArrays(
            self.pools.arrays(), self.features, self.operators, self.values, self.gains, self.order, self.tally,
            self.detectors,
        )  # fmt: skip

    def check(self, n_numeric: int, categories: Categories) -> None:
        """Reject rules with unreachable or invalid nodes.

        Raises
        ------
        StateError
            If so.
        """
        pools = self.pools
        n_rules = pools.state[State.LIVE] - 1
        require(0 <= n_rules < len(self.order), "state")
        rules = np.append(self.order[:n_rules], pools.state[State.ROOT])
        check_trees(pools, rules, n_numeric, categories)
        require((pools.links[rules, Link.LEFT] < 0).all(), "links")
        check_windows(self.detectors)
        features, operators, values = self.features, self.operators, self.values
        of_numbers = operators <= ABOVE
        is_literal = features != NOTHING
        # A dropped rule leaves its literals behind.
        is_literal[np.flatnonzero(pools.links[:, Link.ALIVE] != 1)] = False
        require((of_numbers == (features < n_numeric))[is_literal].all(), "operators")
        cells = values[is_literal & ~of_numbers]
        require(np.isin(cells, np.arange(categories.n_cells)).all(), "values")

    def make_room(self) -> None:
        """Allocate space for the pending changes: another rule, or another literal of the longest one."""
        self.pools.make_room()
        nodes, places = self.features.shape
        more = len(self.pools.links) - nodes, places * bool((self.features[:, -1] != NOTHING).any())
        wider = (0, more[0]), (0, more[1])
        self.features = np.pad(self.features, wider, constant_values=NOTHING)
        for name in ("operators", "values", "gains"):
            setattr(self, name, np.pad(getattr(self, name), wider))
        self.order = np.pad(self.order, (0, more[0]))
        self.tally = np.pad(self.tally, ((0, more[0]), (0, 0)))
        self.detectors = np.pad(self.detectors, ((0, more[0] * bool(len(self.detectors))), (0, 0)))


# -- coverage ----------------------------------------------------------------------------------------------


@njit(allocates=False)
def _literal_holds(operator: int, value: float, f: int, row: Floats, cells: Ints) -> bool:
    if operator == AT_MOST:
        return bool(row[f] <= value)
    if operator == ABOVE:
        return bool(row[f] > value)
    cell = cells[f - row.shape[0]]
    return bool(cell != MISSING and (cell == value) == (operator == EQUAL))


@njit(allocates=False)
def _covers(rules: RuleArrays, rule: int, row: Floats, cells: Ints) -> bool:
    for place in range(rules.features.shape[1]):
        f = rules.features[rule, place]
        if f == NOTHING:
            return True
        if not _literal_holds(rules.operators[rule, place], rules.values[rule, place], f, row, cells):
            return False
    return True


# -- learning ----------------------------------------------------------------------------------------------


@njit()
def learn(
    rules: RuleArrays,
    X: Floats,
    cells: Ints,
    codes: Ints,
    start: int,
    growth: SplitOptions,
    options: RuleOptions,
) -> int:
    """Learn the rows from `start`; return the next row, which is before the end if a pending change needs room."""
    pool = rules.pool
    votes, no_guesses = np.empty(pool.weights.shape[1]), np.empty(0, np.int64)
    for i in range(start, len(codes) + 1):
        if pool.state[State.PENDING] > 0:
            if not _has_room(rules):
                return i
            for k in range(pool.state[State.PENDING]):
                _grow(rules, pool.notes[Note.WHERE, k], options)
            pool.state[State.PENDING] = 0
        if i < len(codes):
            register_categories(pool, cells[i])
            _learn_row(rules, X[i], cells[i], codes[i], growth, options, no_guesses, votes)
            pool.state[State.ROWS] += 1
    return len(codes)


@njit()
def _has_room(rules: RuleArrays) -> bool:
    """Return whether the pending changes fit in the arrays."""
    pool, last = rules.pool, rules.features.shape[1] - 1
    for k in range(pool.state[State.PENDING]):
        if rules.features[pool.notes[Note.WHERE, k], last] != NOTHING:
            return False
    return has_room(pool)


@njit()
def _learn_row(
    rules: RuleArrays,
    row: Floats,
    cells: Ints,
    y: int,
    growth: SplitOptions,
    options: RuleOptions,
    no_guesses: Ints,
    votes: Floats,
) -> None:
    """Update the rules that cover a row, or the first of them, or the default rule."""
    pool = rules.pool
    covered, k = False, 0
    while k < pool.state[State.LIVE] - 1:
        rule = rules.order[k]
        if _covers(rules, rule, row, cells):
            if _errors_rise(rules, rule, row, cells, y, growth, options, no_guesses, votes):
                _drop(rules, k)
                continue
            _learn_rule(rules, rule, row, cells, y, growth)
            covered = True
            if options.ordered:
                return
        k += 1
    if not covered:
        default = pool.state[State.ROOT]
        if _errors_rise(rules, default, row, cells, y, growth, options, no_guesses, votes):
            _restart(rules, default, np.zeros(votes.shape[0]))
            pool.state[State.DROPPED] += 1
        _learn_rule(rules, default, row, cells, y, growth)


@njit()
def _errors_rise(
    rules: RuleArrays, rule: int, row: Floats, cells: Ints, y: int, growth: SplitOptions, options: RuleOptions,
    no_guesses: Ints, votes: Floats,
) -> bool:  # fmt: skip
    """Count whether a rule predicts a covered row correctly, and return whether its errors have risen."""
    pool = rules.pool
    right = predict_and_score(pool, rule, row, cells, y, 1.0, no_guesses, growth, votes) == y
    rules.tally[rule, RIGHT] += right
    rules.tally[rule, SEEN] += 1.0
    if options.drift <= 0.0:
        return False
    return bool(update_window(rules.detectors[rule], 0.0 if right else 1.0, options.drift, 32) > 0)


@njit()
def _learn_rule(rules: RuleArrays, rule: int, row: Floats, cells: Ints, y: int, growth: SplitOptions) -> None:
    """Update the statistics of a rule with a row, and attempt to add a literal every `grace_period` rows."""
    pool = rules.pool
    numbers, n = pool.numbers[rule], rules.tally[rule, SEEN]
    pool.weights[rule, y] += 1.0
    numbers[Number.WEIGHT] += 1.0
    update_statistics(pool, pool.links[rule, Link.SLOT], row, cells, y, 1.0)
    numbers[Number.SINCE_TRY] += 1.0
    if numbers[Number.SINCE_TRY] < growth.grace_period:
        return
    numbers[Number.SINCE_TRY] = 0.0
    if best_split(pool, rule, n, growth, np.zeros(0, np.bool_)) > 0:
        queue_change(pool, Change.SPLIT, rule, 1 if rule == pool.state[State.ROOT] else 0)


# -- growing -----------------------------------------------------------------------------------------------


@njit()
def _grow(rules: RuleArrays, rule: int, options: RuleOptions) -> None:
    """Add the literal that was written into a rule; for the default rule, add it to a new rule."""
    pool = rules.pool
    if rule == pool.state[State.ROOT] and pool.state[State.LIVE] - 1 == options.max_rules:
        return
    first, second = np.empty(pool.weights.shape[1]), np.empty(pool.weights.shape[1])
    for c in range(first.shape[0]):
        first[c], second[c] = split_weights(pool, rule, c)
    in_first = _is_purer(first, second)
    kept, rest = (first, second) if in_first else (second, first)
    links, numbers, grown = pool.links[rule], pool.numbers[rule], rule
    gain, feature = numbers[Number.MERIT] * numbers[Number.WEIGHT], links[Link.FEATURE]
    if links[Link.KIND] == Kind.NUMERIC:
        operator, value = (AT_MOST if in_first else ABOVE), numbers[Number.THRESHOLD]
    else:
        operator, value = (EQUAL if in_first else NOT_EQUAL), float(links[Link.CUT_CELL])
    if rule == pool.state[State.ROOT]:
        grown = new_leaf(pool, -1, 0)
        rules.features[grown].fill(NOTHING)
        rules.gains[grown].fill(0.0)
        rules.order[pool.state[State.LIVE] - 2] = grown
        _restart(rules, rule, rest)
    _add_literal(rules, grown, feature, operator, value, gain)
    _restart(rules, grown, kept)


@njit()
def _is_purer(one: Floats, other: Floats) -> bool:
    """Return whether the first side has less entropy than the other, or as many rows or more if both are equal."""
    n, m = one.sum(), other.sum()
    h, g = entropy_times_weight(one) / n, entropy_times_weight(other) / m
    return bool(h < g or (h == g and n >= m))


@njit()
def _add_literal(rules: RuleArrays, rule: int, f: int, operator: int, value: float, gain: float) -> None:
    """Add a literal; a threshold replaces an older one on the same side, which it implies."""
    place = 0
    while rules.features[rule, place] != NOTHING:
        same = rules.features[rule, place] == f and rules.operators[rule, place] == operator
        if same and operator <= ABOVE:
            break
        place += 1
    rules.features[rule, place], rules.operators[rule, place] = f, operator
    rules.values[rule, place] = value
    rules.gains[rule, place] += gain


@njit()
def _restart(rules: RuleArrays, rule: int, weights: Floats) -> None:
    """Reset the statistics of a rule, except for its initial class weights."""
    pool, slot = rules.pool, rules.pool.links[rule, Link.SLOT]
    pool.gaussians[slot].fill(0.0)
    pool.counts[slot].fill(0.0)
    pool.totals[slot].fill(0.0)
    for c in range(weights.shape[0]):
        pool.weights[rule, c] = weights[c]
    numbers = pool.numbers[rule]
    numbers[Number.WEIGHT] = weights.sum()
    numbers[Number.SINCE_TRY] = numbers[Number.RIGHT_BY_MAJORITY] = numbers[Number.RIGHT_BY_BAYES] = 0.0
    rules.tally[rule].fill(0.0)
    if rules.detectors.shape[0] > 0:
        rules.detectors[rule].fill(0.0)


@njit()
def _drop(rules: RuleArrays, k: int) -> None:
    """Drop the k-th rule; later rules move up."""
    pool = rules.pool
    drop_subtree(pool, rules.order[k])
    for at in range(k, pool.state[State.LIVE] - 1):
        rules.order[at] = rules.order[at + 1]
    pool.state[State.DROPPED] += 1


# -- reading -----------------------------------------------------------------------------------------------


@njit()
def predict_votes(rules: RuleArrays, X: Floats, cells: Ints, mode: int, ordered: bool, votes: Floats) -> None:
    """Write the class probabilities of each row, by (2)."""
    pool, one = rules.pool, np.empty(votes.shape[1])
    for i in range(X.shape[0]):
        votes[i], n = 0.0, 0
        for k in range(pool.state[State.LIVE] - 1):
            rule = rules.order[k]
            if not _covers(rules, rule, X[i], cells[i]):
                continue
            vote(pool, rule, X[i], cells[i], mode, one)
            for c in range(one.shape[0]):
                votes[i, c] += one[c]
            n += 1
            if ordered:
                break
        for c in range(one.shape[0]):
            votes[i, c] /= max(n, 1)
        if n == 0:
            vote(pool, pool.state[State.ROOT], X[i], cells[i], mode, votes[i])
