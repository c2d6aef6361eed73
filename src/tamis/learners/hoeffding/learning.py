"""Row-by-row learning and prediction: the kernels of a tree."""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints, Mask
from tamis.drift.adwin import update_window
from tamis.learners.hoeffding.adaptive import compare_alternate, poisson, start_alternate
from tamis.learners.hoeffding.leaves import BAYES_OR_MAJORITY, GIVEN, MAJORITY, bayes, uses_bayes, vote
from tamis.learners.hoeffding.nodes import (
    Arrays,
    Chain,
    Change,
    Kind,
    Link,
    Note,
    Number,
    State,
    assign_detector,
    child_of,
    leaf_of,
    queue_change,
    required_room,
    walk,
)
from tamis.learners.hoeffding.splits import (
    SplitOptions,
    add_branch,
    best_split,
    features_in_use,
    split,
    update_statistics,
)


@njit()
def learn(
    tree: Arrays,
    X: Floats,
    cells: Ints,
    codes: Ints,
    start: int,
    guesses: Ints,
    births: Ints,
    rules: SplitOptions,
) -> int:
    """Learn the rows from `start`; return the next row, which is before the end if a pending change needs room.

    If leaves have classifiers, `guesses` contains the prediction of each node's classifier for the row. The birth
    number of the leaf that each row reached is written into `births`.
    """
    votes = np.empty(tree.weights.shape[1])
    for i in range(start, len(codes) + 1):
        if tree.state[State.PENDING] > 0:
            if not has_room(tree):
                return i
            _apply_pending(tree, rules)
            if rules.step:
                return i
        if i < len(codes):
            register_categories(tree, cells[i])
            births[i] = _learn_row(tree, X[i], cells[i], codes[i], guesses, rules, votes)
            tree.state[State.ROWS] += 1
    return len(codes)


@njit(allocates=False)
def has_room(tree: Arrays) -> bool:
    """Return whether the pending changes fit in the pools."""
    nodes, slots, detectors = required_room(tree)
    has_nodes = tree.state[State.FREE_NODES] >= nodes and tree.state[State.FREE_SLOTS] >= slots
    return bool(has_nodes and tree.state[State.FREE_DETECTORS] >= detectors)


@njit()
def _apply_pending(tree: Arrays, rules: SplitOptions) -> None:
    for k in range(tree.state[State.PENDING]):
        kind, node, number = tree.notes[Note.WHAT, k], tree.notes[Note.WHERE, k], tree.notes[Note.NUMBER, k]
        n = number if kind == Change.SPLIT else 1
        if rules.max_nodes >= 0 and tree.state[State.LIVE] + n > rules.max_nodes:
            continue
        if kind == Change.START:
            start_alternate(tree, node)
        elif kind == Change.BRANCH:
            add_branch(tree, node, number)
        else:
            split(tree, node)
            if rules.watched:
                assign_detector(tree, node)
    tree.state[State.PENDING] = 0


@njit(allocates=False)
def register_categories(tree: Arrays, cells: Ints) -> None:
    """Append categories seen for the first time to the lists of their features."""
    for g in range(cells.shape[0]):
        cell = cells[g]
        if cell >= 0 and tree.next_cell[cell] == -2:
            tree.next_cell[cell] = -1
            tree.lists[Chain.N_CELLS, g] += 1
            last = tree.lists[Chain.FIRST, g]
            if last < 0:
                tree.lists[Chain.FIRST, g] = cell
            else:
                while tree.next_cell[last] >= 0:
                    last = tree.next_cell[last]
                tree.next_cell[last] = cell


@njit()
def _learn_row(
    tree: Arrays, row: Floats, cells: Ints, y: int, guesses: Ints, rules: SplitOptions, votes: Floats
) -> int:
    """Learn a row in the tree and in the alternate trees on its path; return the birth number of the tree's leaf."""
    tree.notes[Note.STACK, 0], n, birth = tree.state[State.ROOT], 1, -1
    while n > 0:
        n -= 1
        top = tree.notes[Note.STACK, n]
        length = walk(tree, top, row, cells)
        leaf = tree.notes[Note.PATH, length - 1]
        birth = tree.links[leaf, Link.BORN] if birth < 0 else birth
        born = tree.links[top, Link.BORN]
        weight = poisson(rules.seed, tree.state[State.ROWS], born) if rules.seed >= 0 else 1.0
        guess = predict_and_score(tree, leaf, row, cells, y, weight, guesses, rules, votes)
        replaced = False
        for p in range(length):
            node = tree.notes[Note.PATH, p]
            tree.weights[node, y] += weight
            tree.numbers[node, Number.WEIGHT] += weight
            if not rules.watched or tree.links[node, Link.DETECTOR] < 0:
                continue
            error = 1.0 if guess != y else 0.0
            risen = update_window(tree.detectors[tree.links[node, Link.DETECTOR]], error, 0.002, 32) > 0
            if tree.links[node, Link.LEFT] < 0:
                continue
            other = tree.links[node, Link.ALTERNATE]
            replaced = compare_alternate(tree, node, risen)
            if other >= 0 and (replaced or tree.links[node, Link.ALTERNATE] == other):
                tree.notes[Note.STACK, n] = other
                n += 1
            if replaced:
                break
        if not replaced:
            learn_at_leaf(tree, leaf, row, cells, y, weight, rules)
            queue_branches(tree, length, row, cells)
    return birth


@njit(allocates=False)
def predict_and_score(
    tree: Arrays, leaf: int, row: Floats, cells: Ints, y: int, weight: float, guesses: Ints, rules: SplitOptions,
    votes: Floats,
) -> int:  # fmt: skip
    """Return the prediction of the leaf before it learns the row, and count which of its votes is correct."""
    if rules.leaf == GIVEN:
        return int(guesses[leaf])
    if tree.numbers[leaf, Number.WEIGHT] <= 0.0 or not (rules.watched or rules.leaf == BAYES_OR_MAJORITY):
        return -1
    majority = int(np.argmax(tree.weights[leaf]))
    if rules.leaf == MAJORITY:
        return majority
    best = bayes(tree, leaf, row, cells, votes)
    guess = best if uses_bayes(tree, leaf, rules.leaf) else majority
    if majority == y:
        tree.numbers[leaf, Number.RIGHT_BY_MAJORITY] += weight
    if best == y:
        tree.numbers[leaf, Number.RIGHT_BY_BAYES] += weight
    return guess


@njit(allocates=False)
def update_leaf(
    tree: Arrays, leaf: int, row: Floats, cells: Ints, y: int, weight: float, rules: SplitOptions
) -> bool:
    """Update the statistics of a leaf with a row; return whether a split should be attempted."""
    update_statistics(tree, tree.links[leaf, Link.SLOT], row, cells, y, weight)
    tree.numbers[leaf, Number.SINCE_TRY] += weight
    if tree.numbers[leaf, Number.SINCE_TRY] < rules.grace_period:
        return False
    if rules.max_depth >= 0 and tree.links[leaf, Link.DEPTH] >= rules.max_depth:
        return False
    tree.numbers[leaf, Number.SINCE_TRY] = 0.0
    return True


@njit()
def attempt_split(tree: Arrays, leaf: int, rules: SplitOptions) -> None:
    """Queue a split of a leaf if the best one satisfies the Hoeffding bound."""
    n_features = tree.gaussians.shape[3] + tree.totals.shape[2] if rules.new_feature_penalty > 0.0 else 0
    attempt_split_of(
        tree, leaf, rules, features_in_use(tree, n_features) if n_features else np.zeros(0, np.bool_)
    )


@njit()
def attempt_split_of(tree: Arrays, leaf: int, rules: SplitOptions, used: Mask) -> None:
    """Queue a split of a leaf whose places contain features in use or others."""
    branches = best_split(tree, leaf, tree.numbers[leaf, Number.WEIGHT], rules, used)
    if branches > 0:
        queue_change(tree, Change.SPLIT, leaf, branches)


@njit()
def learn_at_leaf(
    tree: Arrays, leaf: int, row: Floats, cells: Ints, y: int, weight: float, rules: SplitOptions
) -> None:
    """Update the statistics of a leaf with a row, and attempt a split every `grace_period` rows."""
    if update_leaf(tree, leaf, row, cells, y, weight, rules):
        attempt_split(tree, leaf, rules)


@njit(allocates=False)
def queue_branches(tree: Arrays, length: int, row: Floats, cells: Ints) -> None:
    """Queue a branch for each category of the row that a multiway split on its path has no branch for."""
    for p in range(length - 1):
        node = tree.notes[Note.PATH, p]
        if tree.links[node, Link.KIND] == Kind.MULTIWAY and child_of(tree, node, row, cells) < 0:
            cell = cells[tree.links[node, Link.FEATURE] - row.shape[0]]
            if cell >= 0:
                queue_change(tree, Change.BRANCH, node, cell)


# -- reading -----------------------------------------------------------------------------------------------


@njit()
def predict_votes(tree: Arrays, X: Floats, cells: Ints, mode: int, votes: Floats) -> None:
    """Write the class probabilities of each row."""
    for i in range(X.shape[0]):
        vote(tree, leaf_of(tree, tree.state[State.ROOT], X[i], cells[i]), X[i], cells[i], mode, votes[i])


@njit()
def find_leaves(tree: Arrays, X: Floats, cells: Ints, alternates: bool, leaves: Ints) -> int:
    """Write the leaf of each row, or those of one row in the tree and its alternate trees; return their number."""
    if not alternates:
        for i in range(X.shape[0]):
            leaves[i] = leaf_of(tree, tree.state[State.ROOT], X[i], cells[i])
        return len(X)
    tree.notes[Note.STACK, 0], n, n_leaves = tree.state[State.ROOT], 1, 0
    while n > 0:
        n -= 1
        length = walk(tree, tree.notes[Note.STACK, n], X[0], cells[0])
        leaves[n_leaves] = tree.notes[Note.PATH, length - 1]
        n_leaves += 1
        for p in range(length):
            if tree.links[tree.notes[Note.PATH, p], Link.ALTERNATE] >= 0:
                tree.notes[Note.STACK, n] = tree.links[tree.notes[Note.PATH, p], Link.ALTERNATE]
                n += 1
    return n_leaves
