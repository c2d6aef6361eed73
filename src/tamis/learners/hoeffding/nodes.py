"""Trees in flat arrays: nodes, the statistics of their leaves, and detectors, each allocated from a growing pool.

A node is a row of `links` (integers), of `numbers` and of `weights` (one per class). The children of a node are a
linked list: `LEFT` is the first, `NEXT` the next sibling, so multiway splits need no special treatment. A leaf has a
slot in the pool of statistics, which is released when the leaf splits or its subtree is dropped. Kernels do not
allocate: a change that needs room is queued, and applied once the pools have grown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis.drift.adwin import STATE_SIZE

__all__ = ["Arrays", "Pools"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Columns of `links`; LEFT is -1 at a leaf, ALTERNATE and DETECTOR are -1 where there is none.
LEFT, NEXT, PARENT, DEPTH, FEATURE, KIND, CELL, CUT_CELL, SLOT, DETECTOR, ALTERNATE, BORN, ALIVE = range(13)
# Columns of `numbers`; RIGHT_BY_*: weight of the rows that the majority vote, and naive Bayes, predicted correctly.
THRESHOLD, WEIGHT, MERIT, SINCE_TRY, RIGHT_BY_MAJORITY, RIGHT_BY_BAYES = range(6)
NUMERIC, ONE_AGAINST_REST, MULTIWAY = range(3)  # kinds of splits
# Entries of `state`: number of free places, number of pending changes, and counters of events.
FREE_NODES, FREE_SLOTS, FREE_DETECTORS, ROOT, PENDING, BIRTHS = range(6)
LIVE, ROWS, STARTED, REPLACED, DROPPED = range(6, 11)
# Rows of `notes`: the stacks of free nodes, slots and detectors have the same index as their entry in `state`.
WHAT, WHERE, NUMBER, PATH, STACK = range(3, 8)
FIRST, N_CELLS = range(2)  # rows of `lists`
SPLIT, START, BRANCH = range(3)  # kinds of pending changes: (kind, node, number of new nodes or category)
MISSING, UNKNOWN = -1, -2  # instead of a category
OBSERVED, MEAN, DEVIATION, LOWEST, HIGHEST = range(5)  # statistics of a class and a numeric feature at a leaf


class Arrays(NamedTuple):
    """The arrays of a tree, as passed to the kernels."""

    links: Ints
    numbers: Floats
    weights: Floats  # (nodes, classes)
    gaussians: Floats  # (slots, classes, 5, numeric features)
    counts: Floats  # (slots, classes, categories)
    totals: Floats  # (slots, classes, categorical features)
    detectors: Floats  # (detectors, STATE_SIZE)
    state: Ints
    notes: Ints  # (8, places): stacks of free places, pending changes, and the path of a row
    lists: Ints  # (2, categorical features): first category of each, and number of its categories
    next_cell: Ints  # of each category: -2 until a row with it was learned, -1 at the last
    edges: Floats  # (slots, numeric features or 0, edges): see `quantile_cuts.py`
    bins: Floats  # (slots, numeric features or 0, classes, edges + 1)


class Pools:
    """The growing arrays of one tree; with `n_edges`, leaves count numeric features between so many edges."""

    def __init__(self, n_numeric: int, n_categorical: int, n_classes: int, n_edges: int = 0) -> None:
        nodes, slots = 8, 4
        self.links: Ints = np.full((nodes, ALIVE + 1), -1)
        self.numbers: Floats = np.zeros((nodes, RIGHT_BY_BAYES + 1))
        self.weights: Floats = np.zeros((nodes, n_classes))
        self.gaussians: Floats = np.zeros((slots, n_classes, HIGHEST + 1, n_numeric))
        self.counts: Floats = np.zeros((slots, n_classes, 2 * n_categorical))
        self.totals: Floats = np.zeros((slots, n_classes, n_categorical))
        self.detectors: Floats = np.zeros((1, STATE_SIZE))
        self.state: Ints = np.zeros(DROPPED + 1, dtype=np.int64)
        self.notes: Ints = np.zeros((STACK + 1, nodes), dtype=np.int64)
        self.lists: Ints = np.repeat([[-1], [0]], n_categorical, axis=1)
        self.next_cell: Ints = np.full(2 * n_categorical, -2)
        n_counted = n_numeric if n_edges else 0
        self.edges: Floats = np.zeros((slots, n_counted, n_edges))
        self.bins: Floats = np.zeros((slots, n_counted, n_classes, n_edges + 1))
        for stack, size in ((FREE_NODES, nodes), (FREE_SLOTS, slots), (FREE_DETECTORS, 1)):
            self._add_free(stack, 0, size)
        self.state[ROOT] = new_leaf(self.arrays(), -1, 0)

    def arrays(self) -> Arrays:
        """Return the arrays for the kernels; memory-mapped arrays are copied first."""
        if not self.state.flags.writeable:
            self.__dict__.update({name: array.copy() for name, array in vars(self).items()})
        return Arrays(
            self.links, self.numbers, self.weights, self.gaussians, self.counts, self.totals, self.detectors,
            self.state, self.notes, self.lists, self.next_cell, self.edges, self.bins,
        )  # fmt: skip

    def make_room(self) -> None:
        """Double the pools until the pending changes fit."""
        nodes, slots, detectors = (int(n) for n in required_room(self.arrays()))
        while self.state[FREE_NODES] < nodes:
            size = len(self.links)
            self.links = _enlarge(self.links, 0, 2 * size)
            self.numbers, self.weights = (
                _enlarge(self.numbers, 0, 2 * size),
                _enlarge(self.weights, 0, 2 * size),
            )
            self._add_free(FREE_NODES, size, 2 * size)
        while self.state[FREE_SLOTS] < slots:
            size = len(self.gaussians)
            self.gaussians = _enlarge(self.gaussians, 0, 2 * size)
            self.counts, self.totals = _enlarge(self.counts, 0, 2 * size), _enlarge(self.totals, 0, 2 * size)
            self.edges, self.bins = _enlarge(self.edges, 0, 2 * size), _enlarge(self.bins, 0, 2 * size)
            self._add_free(FREE_SLOTS, size, 2 * size)
        while self.state[FREE_DETECTORS] < detectors:
            size = len(self.detectors)
            self.detectors = _enlarge(self.detectors, 0, 2 * size)
            self._add_free(FREE_DETECTORS, size, 2 * size)

    def _add_free(self, stack: int, start: int, stop: int) -> None:
        """Add new places below those still free; the lowest is allocated first."""
        left = self.notes[stack, : self.state[stack]].copy()
        self.notes = _enlarge(self.notes, 1, max(stop, self.notes.shape[1]))
        self.state[stack] += stop - start
        self.notes[stack, : self.state[stack]] = np.r_[np.arange(start, stop)[::-1], left]

    def grow_classes(self, n_classes: int) -> None:
        """Allocate space for new classes."""
        self.weights = _enlarge(self.weights, 1, n_classes)
        self.gaussians = _enlarge(self.gaussians, 1, n_classes)
        self.counts = _enlarge(self.counts, 1, n_classes)
        self.totals = _enlarge(self.totals, 1, n_classes)
        self.bins = _enlarge(self.bins, 2, n_classes)

    def grow_cells(self, n_cells: int) -> None:
        """Allocate space for new categories."""
        if n_cells > len(self.next_cell):
            size = max(n_cells, 2 * len(self.next_cell))
            self.counts = _enlarge(self.counts, 2, size)
            grown = np.full(size, -2)
            grown[: len(self.next_cell)] = self.next_cell
            self.next_cell = grown


def _enlarge(array: NDArray[Any], axis: int, size: int) -> NDArray[Any]:
    shape = list(array.shape)
    shape[axis] = size
    grown = np.zeros(shape, dtype=array.dtype)
    grown[tuple(slice(n) for n in array.shape)] = array
    return grown


# -- allocation ------------------------------------------------------------------------------------------------


@njit(allocates=False)
def new_leaf(tree: Arrays, parent: int, depth: int) -> int:
    """Allocate a node and a slot from their pools, and return the node."""
    tree.state[FREE_NODES] -= 1
    node: int = tree.notes[FREE_NODES, tree.state[FREE_NODES]]
    tree.state[FREE_SLOTS] -= 1
    slot = tree.notes[FREE_SLOTS, tree.state[FREE_SLOTS]]
    links = tree.links[node]
    links.fill(-1)
    tree.numbers[node].fill(0.0)
    tree.weights[node].fill(0.0)
    tree.gaussians[slot].fill(0.0)
    tree.counts[slot].fill(0.0)
    tree.totals[slot].fill(0.0)
    tree.edges[slot].fill(np.inf)
    tree.bins[slot].fill(0.0)
    links[PARENT], links[DEPTH], links[SLOT], links[BORN] = parent, depth, slot, tree.state[BIRTHS]
    links[ALIVE] = 1
    tree.state[BIRTHS] += 1
    tree.state[LIVE] += 1
    return node


@njit(allocates=False)
def release(tree: Arrays, node: int, slot: bool, detector: bool) -> None:
    """Return the slot or the detector of a node to the pool, if it has one."""
    links = tree.links[node]
    if slot and links[SLOT] >= 0:
        tree.notes[FREE_SLOTS, tree.state[FREE_SLOTS]] = links[SLOT]
        tree.state[FREE_SLOTS] += 1
        links[SLOT] = -1
    if detector and links[DETECTOR] >= 0:
        tree.notes[FREE_DETECTORS, tree.state[FREE_DETECTORS]] = links[DETECTOR]
        tree.state[FREE_DETECTORS] += 1
        links[DETECTOR] = -1


@njit(allocates=False)
def drop_subtree(tree: Arrays, top: int) -> None:
    """Return a subtree to the pools. PARENT links the nodes that remain to be processed."""
    links = tree.links
    links[top, PARENT] = -1
    node = top
    while node >= 0:
        last = links[node, PARENT]
        child = links[node, LEFT]
        while child >= 0:
            links[child, PARENT] = last
            last = child
            child = links[child, NEXT]
        if links[node, ALTERNATE] >= 0:
            links[links[node, ALTERNATE], PARENT] = last
            last = links[node, ALTERNATE]
        release(tree, node, True, True)
        links[node, ALIVE] = -1
        tree.notes[FREE_NODES, tree.state[FREE_NODES]] = node
        tree.state[FREE_NODES] += 1
        tree.state[LIVE] -= 1
        node = last


@njit(allocates=False)
def assign_detector(tree: Arrays, node: int) -> None:
    """Assign a reset detector to a node."""
    if tree.links[node, DETECTOR] < 0:
        tree.state[FREE_DETECTORS] -= 1
        tree.links[node, DETECTOR] = tree.notes[FREE_DETECTORS, tree.state[FREE_DETECTORS]]
    tree.detectors[tree.links[node, DETECTOR]].fill(0.0)


@njit(allocates=False)
def queue_change(tree: Arrays, what: int, node: int, number: int) -> None:
    """Queue a change that is applied once the pools have room."""
    at = tree.state[PENDING]
    tree.notes[WHAT, at], tree.notes[WHERE, at], tree.notes[NUMBER, at] = what, node, number
    tree.state[PENDING] += 1


@njit(allocates=False)
def required_room(tree: Arrays) -> tuple[int, int, int]:
    """Return the numbers of nodes, slots and detectors that the pending changes need."""
    nodes, detectors = 0, 0
    for k in range(tree.state[PENDING]):
        nodes += tree.notes[NUMBER, k] if tree.notes[WHAT, k] != BRANCH else 1
        detectors += 1
    return nodes, nodes, detectors


# -- paths --------------------------------------------------------------------------------------------------


@njit(allocates=False)
def heaviest_child(tree: Arrays, node: int) -> int:
    """Return the child with the largest weight; the first of those with equal weight."""
    best: int = tree.links[node, LEFT]
    child = tree.links[best, NEXT]
    while child >= 0:
        if tree.numbers[child, WEIGHT] > tree.numbers[best, WEIGHT]:
            best = child
        child = tree.links[child, NEXT]
    return best


@njit(allocates=False)
def child_of(tree: Arrays, node: int, row: Floats, cells: Ints) -> int:
    """Return the child for a row, or -1 if its value is missing or its category has no branch."""
    links = tree.links[node]
    feature, first = links[FEATURE], links[LEFT]
    child: int = first
    if links[KIND] == NUMERIC:
        value = row[feature]
        if value != value:
            return -1
        child = first if value <= tree.numbers[node, THRESHOLD] else tree.links[first, NEXT]
        return child
    cell = cells[feature - row.shape[0]]
    if cell == MISSING:
        return -1
    if links[KIND] == ONE_AGAINST_REST:
        child = first if cell == links[CUT_CELL] else tree.links[first, NEXT]
        return child
    while child >= 0 and tree.links[child, CELL] != cell:
        child = tree.links[child, NEXT]
    return child


@njit(allocates=False)
def leaf_of(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Return the row's leaf below `top`; nothing is written."""
    node = top
    while tree.links[node, LEFT] >= 0:
        child = child_of(tree, node, row, cells)
        node = child if child >= 0 else heaviest_child(tree, node)
    return node


@njit(allocates=False)
def walk(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Write the nodes from `top` to the row's leaf into row PATH of `notes`, and return their number."""
    node, n = top, 0
    while True:
        tree.notes[PATH, n] = node
        n += 1
        if tree.links[node, LEFT] < 0:
            return n
        child = child_of(tree, node, row, cells)
        node = child if child >= 0 else heaviest_child(tree, node)
