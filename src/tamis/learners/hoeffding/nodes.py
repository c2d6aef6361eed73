"""Trees in flat arrays: nodes, the statistics of their leaves, and detectors, each allocated from a growing pool.

A node is a row of `links` (integers), of `numbers` and of `weights` (one per class). The children of a node are a
linked list: `LEFT` is the first, `NEXT` the next sibling, so multiway splits need no special treatment. A leaf has a
slot in the pool of statistics, which is released when the leaf splits or its subtree is dropped. Kernels do not
allocate: a change that needs room is queued, and applied once the pools have grown.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis.drift.adwin import STATE_SIZE

# Columns of `links`; LEFT is -1 at a leaf, ALTERNATE and DETECTOR are -1 where there is none.
Link = IntEnum(
    "Link", "LEFT NEXT PARENT DEPTH FEATURE KIND CELL CUT_CELL SLOT DETECTOR ALTERNATE BORN ALIVE", start=0
)
# Columns of `numbers`; RIGHT_BY_*: weight of the rows that the majority vote, and naive Bayes, predicted correctly.
Number = IntEnum("Number", "THRESHOLD WEIGHT MERIT SINCE_TRY RIGHT_BY_MAJORITY RIGHT_BY_BAYES", start=0)
# Kinds of splits.
Kind = IntEnum("Kind", "NUMERIC ONE_AGAINST_REST MULTIWAY", start=0)
# Entries of `state`: number of free places, number of pending changes, and counters of events.
State = IntEnum(
    "State",
    "FREE_NODES FREE_SLOTS FREE_DETECTORS ROOT PENDING BIRTHS LIVE ROWS STARTED REPLACED DROPPED",
    start=0,
)
# Rows of `notes`: the stacks of free nodes, slots and detectors have the same index as their entry in `state`.
Note = IntEnum("Note", "FREE_NODES FREE_SLOTS FREE_DETECTORS WHAT WHERE NUMBER PATH STACK", start=0)
# Rows of `lists`.
Chain = IntEnum("Chain", "FIRST N_CELLS", start=0)
# Kinds of pending changes: (kind, node, number of new nodes or category).
Change = IntEnum("Change", "SPLIT START BRANCH", start=0)
# Statistics of a class and a numeric feature at a leaf.
Moment = IntEnum("Moment", "OBSERVED MEAN DEVIATION LOWEST HIGHEST", start=0)
# Instead of a category.
MISSING, UNKNOWN = -1, -2


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
    edges: Floats  # (slots, numeric features or 0, edges): see `splits.py`
    bins: Floats  # (slots, numeric features or 0, classes, edges + 1)


def shapes_of_pools(path: str) -> str:
    """Return the declarations of pools: n nodes, s slots, c classes, p numeric and q categorical features."""
    return f"""
        {path}.links (n, 13) int  {path}.numbers (n, 6) finite  {path}.weights (n, c) float in [0, inf) fill 0
        {path}.gaussians (s, c, 5, p) finite fill 0  {path}.gaussians[:, :, 0] float in [0, inf)
        {path}.gaussians[:, :, 1] float in [-1e150, 1e150]  {path}.gaussians[:, :, 3:] float in [-1e150, 1e150]
        {path}.counts (s, c, m) float in [0, inf) fill 0  {path}.totals (s, c, q) float in [0, inf) fill 0
        {path}.next_cell (m) in [-2, m)  {path}.detectors (*, 629)  {path}.state (11) int  {path}.notes (8, >n) int
        {path}.lists (2, q) int  {path}.lists[:1] in [-1, m)
        {path}.edges (s, p?, e) float in [-1e150, inf] increasing fill inf
        {path}.bins (s, p?, c, e+1) float in [0, inf) fill 0
    """


class Pools:
    """The growing arrays of one tree; with `n_edges`, leaves count numeric features between so many edges."""

    def __init__(self, n_numeric: int, n_categorical: int, n_classes: int, n_edges: int = 0) -> None:
        nodes, slots = 8, 4
        self.links: Ints = np.full((nodes, len(Link)), -1)
        self.numbers: Floats = np.zeros((nodes, len(Number)))
        self.weights: Floats = np.zeros((nodes, n_classes))
        self.gaussians: Floats = np.zeros((slots, n_classes, len(Moment), n_numeric))
        self.counts: Floats = np.zeros((slots, n_classes, 2 * n_categorical))
        self.totals: Floats = np.zeros((slots, n_classes, n_categorical))
        self.detectors: Floats = np.zeros((1, STATE_SIZE))
        self.state: Ints = np.zeros(len(State), dtype=np.int64)
        self.notes: Ints = np.zeros((len(Note), nodes), dtype=np.int64)
        self.lists: Ints = np.repeat([[-1], [0]], n_categorical, axis=1)
        self.next_cell: Ints = np.full(2 * n_categorical, -2)
        n_counted = n_numeric if n_edges else 0
        self.edges: Floats = np.zeros((slots, n_counted, n_edges))
        self.bins: Floats = np.zeros((slots, n_counted, n_classes, n_edges + 1))
        for stack, size in ((State.FREE_NODES, nodes), (State.FREE_SLOTS, slots), (State.FREE_DETECTORS, 1)):
            self._add_free(stack, 0, size)
        self.state[State.ROOT] = new_leaf(self.arrays(), -1, 0)

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
        for stack, required, names in (
            (State.FREE_NODES, nodes, ("links", "numbers", "weights")),
            (State.FREE_SLOTS, slots, ("gaussians", "counts", "totals", "edges", "bins")),
            (State.FREE_DETECTORS, detectors, ("detectors",)),
        ):
            while self.state[stack] < required:
                size = len(getattr(self, names[0]))
                for name in names:
                    setattr(self, name, _enlarge(getattr(self, name), 0, 2 * size))
                self._add_free(stack, size, 2 * size)

    def _add_free(self, stack: int, start: int, stop: int) -> None:
        """Add new places below those still free; the lowest is allocated first."""
        left = self.notes[stack, : self.state[stack]].copy()
        self.notes = _enlarge(self.notes, 1, max(stop, self.notes.shape[1]))
        self.state[stack] += stop - start
        self.notes[stack, : self.state[stack]] = np.r_[np.arange(start, stop)[::-1], left]

    def grow_cells(self, n_cells: int) -> None:
        """Allocate space for new categories."""
        if n_cells > len(self.next_cell):
            size = max(n_cells, 2 * len(self.next_cell))
            self.counts = _enlarge(self.counts, 2, size)
            grown = np.full(size, -2)
            grown[: len(self.next_cell)] = self.next_cell
            self.next_cell = grown


def _enlarge(array: Array, axis: int, size: int) -> Array:
    shape = list(array.shape)
    shape[axis] = size
    grown = np.zeros(shape, dtype=array.dtype)
    grown[tuple(slice(n) for n in array.shape)] = array
    return grown


# -- allocation ------------------------------------------------------------------------------------------------


@njit(allocates=False)
def new_leaf(tree: Arrays, parent: int, depth: int) -> int:
    """Allocate a node and a slot from their pools, and return the node."""
    tree.state[State.FREE_NODES] -= 1
    node: int = tree.notes[Note.FREE_NODES, tree.state[State.FREE_NODES]]
    tree.state[State.FREE_SLOTS] -= 1
    slot = tree.notes[Note.FREE_SLOTS, tree.state[State.FREE_SLOTS]]
    links = tree.links[node]
    links.fill(-1)
    tree.numbers[node].fill(0.0)
    tree.weights[node].fill(0.0)
    tree.gaussians[slot].fill(0.0)
    tree.counts[slot].fill(0.0)
    tree.totals[slot].fill(0.0)
    tree.edges[slot].fill(np.inf)
    tree.bins[slot].fill(0.0)
    links[Link.PARENT], links[Link.DEPTH], links[Link.SLOT] = parent, depth, slot
    links[Link.BORN], links[Link.ALIVE] = tree.state[State.BIRTHS], 1
    tree.state[State.BIRTHS] += 1
    tree.state[State.LIVE] += 1
    return node


@njit(allocates=False)
def release(tree: Arrays, node: int, slot: bool, detector: bool) -> None:
    """Return the slot or the detector of a node to the pool, if it has one."""
    links = tree.links[node]
    if slot and links[Link.SLOT] >= 0:
        tree.notes[Note.FREE_SLOTS, tree.state[State.FREE_SLOTS]] = links[Link.SLOT]
        tree.state[State.FREE_SLOTS] += 1
        links[Link.SLOT] = -1
    if detector and links[Link.DETECTOR] >= 0:
        tree.notes[Note.FREE_DETECTORS, tree.state[State.FREE_DETECTORS]] = links[Link.DETECTOR]
        tree.state[State.FREE_DETECTORS] += 1
        links[Link.DETECTOR] = -1


@njit(allocates=False)
def drop_subtree(tree: Arrays, top: int) -> None:
    """Return a subtree to the pools. PARENT links the nodes that remain to be processed."""
    links = tree.links
    links[top, Link.PARENT] = -1
    node = top
    while node >= 0:
        last = links[node, Link.PARENT]
        child = links[node, Link.LEFT]
        while child >= 0:
            links[child, Link.PARENT] = last
            last = child
            child = links[child, Link.NEXT]
        if links[node, Link.ALTERNATE] >= 0:
            links[links[node, Link.ALTERNATE], Link.PARENT] = last
            last = links[node, Link.ALTERNATE]
        release(tree, node, True, True)
        links[node, Link.ALIVE] = -1
        tree.notes[Note.FREE_NODES, tree.state[State.FREE_NODES]] = node
        tree.state[State.FREE_NODES] += 1
        tree.state[State.LIVE] -= 1
        node = last


@njit(allocates=False)
def assign_detector(tree: Arrays, node: int) -> None:
    """Assign a reset detector to a node."""
    if tree.links[node, Link.DETECTOR] < 0:
        tree.state[State.FREE_DETECTORS] -= 1
        tree.links[node, Link.DETECTOR] = tree.notes[Note.FREE_DETECTORS, tree.state[State.FREE_DETECTORS]]
    tree.detectors[tree.links[node, Link.DETECTOR]].fill(0.0)


@njit(allocates=False)
def queue_change(tree: Arrays, what: int, node: int, number: int) -> None:
    """Queue a change that is applied once the pools have room."""
    at = tree.state[State.PENDING]
    tree.notes[Note.WHAT, at], tree.notes[Note.WHERE, at], tree.notes[Note.NUMBER, at] = what, node, number
    tree.state[State.PENDING] += 1


@njit(allocates=False)
def required_room(tree: Arrays) -> tuple[int, int, int]:
    """Return the numbers of nodes, slots and detectors that the pending changes need."""
    nodes, detectors = 0, 0
    for k in range(tree.state[State.PENDING]):
        nodes += tree.notes[Note.NUMBER, k] if tree.notes[Note.WHAT, k] != Change.BRANCH else 1
        detectors += 1
    return nodes, nodes, detectors


# -- paths --------------------------------------------------------------------------------------------------


@njit(allocates=False)
def heaviest_child(tree: Arrays, node: int) -> int:
    """Return the child with the largest weight; the first of those with equal weight."""
    best: int = tree.links[node, Link.LEFT]
    child = tree.links[best, Link.NEXT]
    while child >= 0:
        if tree.numbers[child, Number.WEIGHT] > tree.numbers[best, Number.WEIGHT]:
            best = child
        child = tree.links[child, Link.NEXT]
    return best


@njit(allocates=False)
def child_of(tree: Arrays, node: int, row: Floats, cells: Ints) -> int:
    """Return the child for a row, or -1 if its value is missing or its category has no branch."""
    links = tree.links[node]
    feature, first = links[Link.FEATURE], links[Link.LEFT]
    child: int = first
    if links[Link.KIND] == Kind.NUMERIC:
        value = row[feature]
        if value != value:
            return -1
        child = first if value <= tree.numbers[node, Number.THRESHOLD] else tree.links[first, Link.NEXT]
        return child
    cell = cells[feature - row.shape[0]]
    if cell == MISSING:
        return -1
    if links[Link.KIND] == Kind.ONE_AGAINST_REST:
        child = first if cell == links[Link.CUT_CELL] else tree.links[first, Link.NEXT]
        return child
    while child >= 0 and tree.links[child, Link.CELL] != cell:
        child = tree.links[child, Link.NEXT]
    return child


@njit(allocates=False)
def leaf_of(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Return the row's leaf below `top`; nothing is written."""
    node = top
    while tree.links[node, Link.LEFT] >= 0:
        child = child_of(tree, node, row, cells)
        node = child if child >= 0 else heaviest_child(tree, node)
    return node


@njit(allocates=False)
def walk(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Write the nodes from `top` to the row's leaf into row PATH of `notes`, and return their number."""
    node, n = top, 0
    while True:
        tree.notes[Note.PATH, n] = node
        n += 1
        if tree.links[node, Link.LEFT] < 0:
            return n
        child = child_of(tree, node, row, cells)
        node = child if child >= 0 else heaviest_child(tree, node)
