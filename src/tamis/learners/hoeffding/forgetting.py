"""A tree that knows its last rows only: every node keeps statistics, and what leaves the window is taken out of them.

Hulten, Spencer, Domingos: Mining time-changing data streams, KDD 2001. A row goes down the tree and is counted in each
node by its way; so is the row that leaves, in the nodes that were there when it came. A split whose feature is no
longer the best one gets an alternate tree, which begins with the better split. With the merits and eps of `splits.py`::

    an alternate is begun if  best - merit(feature of the split) > eps,  or > tie / 2 where eps < tie        (1)

Both learn all rows that pass the split. From time to time their errors are counted on rows that they have not seen:
the alternate that has fewer takes the split's place, and one that gains nothing is given up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._jit import njit
from tamis.learners.hoeffding.adaptive import drop_alternate, put_in_place
from tamis.learners.hoeffding.learning import admit, guess_of, has_room, learn_at_leaf, note_new_category
from tamis.learners.hoeffding.leaves import vote
from tamis.learners.hoeffding.nodes import (
    ALIVE,
    ALTERNATE,
    BIRTHS,
    BORN,
    BRANCH,
    DEPTH,
    DEVIATION,
    FEATURE,
    HIGHEST,
    LEFT,
    LIVE,
    LOWEST,
    MEAN,
    NEXT,
    NUMBER,
    OBSERVED,
    PARENT,
    PATH,
    PENDING,
    ROOT,
    ROWS,
    SLOT,
    SPLIT,
    STACK,
    START,
    STARTED,
    WEIGHT,
    WHAT,
    WHERE,
    Arrays,
    child_of,
    new_leaf,
    note,
)
from tamis.learners.hoeffding.splits import (
    Rules,
    add_branch,
    bound_of,
    branch,
    merit_of,
    observe,
    write_split,
)

__all__ = ["Course", "Past", "learn", "votes_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Columns of `trials`: errors of both, and the most that the latter had fewer.
OF_SPLIT, OF_ALTERNATE, LEAD = range(3)
_LOST = 1e-9  # of a sum of squares: when one row leaves no more of it, what is left is rounding


class Course(NamedTuple):
    """When a tree looks at its splits; all are numbers of rows."""

    window: int
    check_every: int
    test_every: int
    test_rows: int


class Past(NamedTuple):
    """The rows of the window, at their number modulo its size."""

    rows: Floats  # (window, numeric features)
    cells: Ints  # (window, categorical features)
    codes: Ints  # (window,)
    births: Ints  # (window,): nodes that had been born when the row came
    trials: Floats  # (nodes, 3)


@njit()
def learn(
    tree: Arrays, past: Past, X: Floats, cells: Ints, codes: Ints, start: int, rules: Rules, course: Course
) -> int:
    """Learn the rows from `start`; return which row is next: earlier than the end where something needs room."""
    votes = np.empty(tree.weights.shape[1])
    for i in range(start, len(codes) + 1):
        if tree.state[PENDING] > 0:
            if not has_room(tree):
                return i
            _carry_out(tree, past, rules)
        if i == len(codes):
            break
        at = tree.state[ROWS] % course.window
        if tree.state[ROWS] >= course.window:
            _forget(tree, past.rows[at], past.cells[at], past.codes[at], past.births[at])
        admit(tree, cells[i])
        past.rows[at], past.cells[at], past.codes[at] = X[i], cells[i], codes[i]
        past.births[at] = tree.state[BIRTHS]
        is_test = tree.state[ROWS] % course.test_every >= course.test_every - course.test_rows
        _learn_row(tree, past.trials, X[i], cells[i], codes[i], is_test, rules, votes)
        tree.state[ROWS] += 1
        if tree.state[ROWS] > course.window and tree.state[ROWS] % course.window == 0:
            _count_again(tree, past)
        if tree.state[ROWS] % course.test_every == 0:
            _judge(tree, past.trials)
        if tree.state[ROWS] % course.check_every == 0:
            _check(tree, rules)
    return len(codes)


# -- rows come and go --------------------------------------------------------------------------------------


@njit(allocates=False)
def _way(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Write the nodes that a row comes by; it stays at a split that it has no value or no branch for."""
    node, n = top, 0
    while node >= 0:
        tree.notes[PATH, n] = node
        n += 1
        node = child_of(tree, node, row, cells) if tree.links[node, LEFT] >= 0 else -1
    return n


@njit(allocates=False)
def _who_votes(tree: Arrays, length: int) -> int:
    """Return the last node by the way that has rows."""
    p = length - 1
    while p > 0 and tree.numbers[tree.notes[PATH, p], WEIGHT] <= 0.0:
        p -= 1
    node: int = tree.notes[PATH, p]
    return node


@njit()
def _learn_row(
    tree: Arrays, trials: Floats, row: Floats, cells: Ints, y: int, is_test: bool, rules: Rules, votes: Floats
) -> None:
    """Count a row in the tree and in the alternate trees that it comes by, and look whether leaves should split."""
    no_guesses = np.empty(0, np.int64)
    tree.notes[STACK, 0], n = tree.state[ROOT], 1
    while n > 0:
        n -= 1
        top = tree.notes[STACK, n]
        length = _way(tree, top, row, cells)
        guess = guess_of(tree, _who_votes(tree, length), row, cells, y, 1.0, no_guesses, rules, votes)
        if is_test and guess != y and top != tree.state[ROOT]:
            trials[tree.links[top, PARENT], OF_ALTERNATE] += 1.0
        for p in range(length):
            node = tree.notes[PATH, p]
            tree.weights[node, y] += 1.0
            tree.numbers[node, WEIGHT] += 1.0
            if tree.links[node, LEFT] >= 0:
                observe(tree, tree.links[node, SLOT], row, cells, y, 1.0)
            if tree.links[node, ALTERNATE] >= 0:
                tree.notes[STACK, n] = tree.links[node, ALTERNATE]
                n += 1
                if is_test and guess != y:
                    trials[node, OF_SPLIT] += 1.0
        last = tree.notes[PATH, length - 1]
        if tree.links[last, LEFT] < 0:
            learn_at_leaf(tree, last, row, cells, y, 1.0, rules)
            note_new_category(tree, length, row, cells)
        else:
            note_new_category(tree, length + 1, row, cells)


@njit(allocates=False)
def _forget(tree: Arrays, row: Floats, cells: Ints, y: int, births: int) -> None:
    """Take a row out of the nodes that it was counted in: those by its way that had been born."""
    tree.notes[STACK, 0], n = tree.state[ROOT], 1
    while n > 0:
        n -= 1
        node = tree.notes[STACK, n]
        while node >= 0 and tree.links[node, BORN] < births:
            tree.weights[node, y] -= 1.0
            tree.numbers[node, WEIGHT] -= 1.0
            _take_out(tree, tree.links[node, SLOT], row, cells, y)
            if tree.links[node, ALTERNATE] >= 0:
                tree.notes[STACK, n] = tree.links[node, ALTERNATE]
                n += 1
            node = child_of(tree, node, row, cells) if tree.links[node, LEFT] >= 0 else -1


@njit(allocates=False)
def _take_out(tree: Arrays, slot: int, row: Floats, cells: Ints, y: int) -> None:
    """Take a row out of the statistics of a node; the range of a feature stays until the window is counted again."""
    kept = tree.gaussians[slot, y]
    observed, mean, deviation = kept[OBSERVED], kept[MEAN], kept[DEVIATION]
    for f in range(row.shape[0]):
        x = row[f]
        if x != x:
            continue
        observed[f] -= 1.0
        if observed[f] <= 0.0:
            mean[f], deviation[f] = 0.0, 0.0
            continue
        gap = x - mean[f]
        mean[f] -= gap / observed[f]
        left = deviation[f] - gap * (x - mean[f])
        deviation[f] = left if left > _LOST * deviation[f] else 0.0
        if deviation[f] == 0.0:
            kept[LOWEST, f] = kept[HIGHEST, f] = mean[f]
    for g in range(cells.shape[0]):
        if cells[g] >= 0:
            tree.counts[slot, y, cells[g]] -= 1.0
            tree.totals[slot, y, g] -= 1.0


@njit()
def _count_again(tree: Arrays, past: Past) -> None:
    """Count means, deviations and ranges again from the window, so that no rounding piles up and ranges shrink."""
    for node in range(len(tree.links)):
        if tree.links[node, ALIVE] == 1:
            tree.gaussians[tree.links[node, SLOT]].fill(0.0)
    no_cells = np.empty(0, np.int64)
    for i in range(len(past.codes)):
        tree.notes[STACK, 0], n = tree.state[ROOT], 1
        while n > 0:
            n -= 1
            node = tree.notes[STACK, n]
            while node >= 0 and tree.links[node, BORN] < past.births[i]:
                observe(tree, tree.links[node, SLOT], past.rows[i], no_cells, past.codes[i], 1.0)
                if tree.links[node, ALTERNATE] >= 0:
                    tree.notes[STACK, n] = tree.links[node, ALTERNATE]
                    n += 1
                more = tree.links[node, LEFT] >= 0
                node = child_of(tree, node, past.rows[i], past.cells[i]) if more else -1


# -- splits come and go ------------------------------------------------------------------------------------


@njit()
def _carry_out(tree: Arrays, past: Past, rules: Rules) -> None:
    for k in range(tree.state[PENDING]):
        what, node, number = tree.notes[WHAT, k], tree.notes[WHERE, k], tree.notes[NUMBER, k]
        n = 1 if what == BRANCH else number
        if tree.links[node, ALIVE] != 1 or (rules.max_nodes >= 0 and tree.state[LIVE] + n > rules.max_nodes):
            continue
        if what == BRANCH:
            add_branch(tree, node, number)
        elif what == SPLIT:
            _branch_empty(tree, node)
        else:
            _begin_alternate(tree, past.trials, node, rules)
    tree.state[PENDING] = 0


@njit()
def _branch_empty(tree: Arrays, node: int) -> None:
    """Give a node the children that were written into it; none of the rows that came before is in them."""
    branch(tree, node)
    child = tree.links[node, LEFT]
    while child >= 0:
        tree.weights[child].fill(0.0)
        tree.numbers[child, WEIGHT] = 0.0
        child = tree.links[child, NEXT]


@njit()
def _challenger(tree: Arrays, node: int, rules: Rules) -> tuple[int, float, int, int, float]:
    """Return feature, threshold, category, branches and merit of the split that (1) wants; feature -1: none."""
    slot, own, n_classes = (
        tree.links[node, SLOT],
        tree.links[node, FEATURE],
        np.count_nonzero(tree.weights[node]),
    )
    none = (-1, 0.0, -1, 0, 0.0)
    if n_classes < 2:
        return none
    work = np.empty((4, tree.gaussians.shape[1]))
    present = max(merit_of(tree, slot, own, -1.0, rules, work)[0], 0.0)
    eps = bound_of(n_classes, tree.numbers[node, WEIGHT], rules)
    wanted = present + (min(eps, 0.5 * rules.tie_threshold) if eps < rules.tie_threshold else eps)
    best, found = wanted, none
    for f in range(tree.gaussians.shape[3] + tree.totals.shape[2]):
        if f != own:
            merit, at, cell, branches = merit_of(tree, slot, f, best, rules, work)
            if merit > best:
                best, found = merit, (f, at, cell, branches, merit)
    return found


@njit()
def _check(tree: Arrays, rules: Rules) -> None:
    """Note an alternate tree for each split whose feature is no longer the best one."""
    for node in range(len(tree.links)):
        links = tree.links[node]
        if links[ALIVE] == 1 and links[LEFT] >= 0 and links[ALTERNATE] < 0:
            branches = _challenger(tree, node, rules)[3]
            if branches > 0:
                note(tree, START, node, branches + 1)


@njit()
def _begin_alternate(tree: Arrays, trials: Floats, node: int, rules: Rules) -> None:
    """Put a node beside a split that has counted the same rows, and splits them by the better feature."""
    feature, threshold, category, _, merit = _challenger(tree, node, rules)
    other = new_leaf(tree, node, tree.links[node, DEPTH])
    mine, its = tree.links[node, SLOT], tree.links[other, SLOT]
    tree.gaussians[its], tree.counts[its], tree.totals[its] = (
        tree.gaussians[mine],
        tree.counts[mine],
        tree.totals[mine],
    )
    tree.weights[other] = tree.weights[node]
    tree.numbers[other, WEIGHT] = tree.numbers[node, WEIGHT]
    tree.links[other, BORN] = tree.links[node, BORN]
    write_split(tree, other, feature, threshold, category, merit)
    _branch_empty(tree, other)
    tree.links[node, ALTERNATE] = other
    tree.state[STARTED] += 1
    trials[node, OF_SPLIT], trials[node, OF_ALTERNATE], trials[node, LEAD] = 0.0, 0.0, -np.inf


@njit()
def _judge(tree: Arrays, trials: Floats) -> None:
    """Put alternate trees in place that made fewer errors, and give up those that come no nearer to it."""
    for node in range(len(tree.links)):
        other = tree.links[node, ALTERNATE]
        if tree.links[node, ALIVE] != 1 or other < 0:
            continue
        lead = trials[node, OF_SPLIT] - trials[node, OF_ALTERNATE]
        if lead > 0.0:
            put_in_place(tree, node, other)
        elif lead <= trials[node, LEAD]:
            drop_alternate(tree, node)
        else:
            trials[node, OF_SPLIT], trials[node, OF_ALTERNATE], trials[node, LEAD] = 0.0, 0.0, lead


# -- reading -----------------------------------------------------------------------------------------------


@njit()
def votes_of(tree: Arrays, X: Floats, cells: Ints, mode: int, votes: Floats) -> None:
    """Write the class probabilities of each row."""
    for i in range(X.shape[0]):
        node = _who_votes(tree, _way(tree, tree.state[ROOT], X[i], cells[i]))
        vote(tree, node, X[i], cells[i], mode, votes[i])
