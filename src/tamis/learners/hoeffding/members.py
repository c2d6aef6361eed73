"""All members of a forest in one call: a kernel reads their arrays from a table of addresses.

A call for each tree would take longer than a row. If the forest learns one row, each tree first copies what the row
will overwrite: the counts on its path, the statistics of its leaf, and its detectors, some ten kilobytes. This replaces
the snapshot of the whole forest, some megabytes, that restores the state after an error. A change of structure waits
until the tree has been copied as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, is_
from typing import Any

import numpy as np

from tamis._kernels import carray, njit, pointer
from tamis._validation import Array, Floats, Ints
from tamis.drift.adwin import STATE_SIZE
from tamis.errors import StateError
from tamis.learners.hoeffding.member import NOTHING, Member, Sampling, add_votes, learn_member
from tamis.learners.hoeffding.nodes import Arrays, Link, Note, State, child_of, heaviest_child
from tamis.learners.hoeffding.splits import SplitOptions

_NAMES = ("drawn", "tally", "detectors", *(f"pools.{name}" for name in Arrays._fields))
_arrays_of = attrgetter(*_NAMES)
_TYPES = dict.fromkeys(
    ("drawn", "pools.links", "pools.state", "pools.notes", "pools.lists", "pools.next_cell"), np.int64
)

# Columns of the table: the addresses of the arrays in the order of `_NAMES`, sizes, and the seed of the features.
DRAWN, TALLY, DETECTORS, LINKS, NUMBERS, WEIGHTS, GAUSSIANS, COUNTS, TOTALS = range(9)
TREE_DETECTORS, STATE, NOTES, LISTS, NEXT_CELL, EDGES, BINS = range(9, 16)
N_NODES, N_CLASSES, N_SLOTS, N_PLACES, N_CELLS, N_CATEGORICAL, N_DETECTORS = range(16, 23)
N_NOTES, N_COUNTED, N_EDGES, N_DRAWN, KEY = range(23, 28)

# Columns of the progress, for each tree: what is left to do, and the last event; for the tree and its background tree,
# the next row, and whether changes of structure wait; and the number of the tree.
STATUS, EVENT, ROW, HELD, TREE_NUMBER = 0, 1, 2, 4, 6
# Of the status. TREE and BACKGROUND: this one needs room or a copy; SIGNAL: an event.
COMPLETE, TREE, BACKGROUND, SIGNAL = range(4)


class MemberTable:
    """The addresses of the arrays of trees and background trees, and the memory for what a row overwrites.

    Parameters
    ----------
    n_members : int

    Attributes
    ----------
    rows : ndarray of shape (n_members, 2, 28), int64
        A row for each tree and each background tree, 0 where there is none.
    undo : RowUndo or None
        Of the update that is about to begin.
    """

    def __init__(self, n_members: int) -> None:
        self.rows: Ints = np.zeros((n_members, 2, KEY + 1), np.int64)
        self._known: list[list[tuple[Any, ...]]] = [[()] * n_members, [()] * n_members]
        self.undo: RowUndo | None = None
        self.entries: Ints = np.empty((0, 2), np.int64)
        self.words: Ints = np.empty(0, np.int64)
        self.used: Ints = np.zeros(2, np.int64)

    def update(self, trees: Sequence[Member | None], backgrounds: Sequence[Member | None]) -> MemberTable:
        """Write the addresses of arrays that are others than before, and return the table."""
        for kind, members in enumerate((trees, backgrounds)):
            known = self._known[kind]
            for t, member in enumerate(members):
                if member is None:
                    if known[t]:
                        self.rows[t, kind], known[t] = 0, ()
                elif len(known[t]) == 0 or not all(map(is_, _arrays_of(member), known[t])):
                    self.write(kind, t, member)
        return self

    def write(self, kind: int, t: int, member: Member | None) -> None:
        """Write the addresses of one tree (0) or background tree (1)."""
        if member is None:
            self.rows[t, kind], self._known[kind][t] = 0, ()
            return
        member.make_writable()
        member.pools.arrays()  # copies memory-mapped arrays
        arrays, pools = _arrays_of(member), member.pools
        # A kernel sees neither the type nor the order of what is at an address.
        for name, array in zip(_NAMES, arrays, strict=True):
            if array.dtype != _TYPES.get(name, np.float64) or not array.flags.c_contiguous:
                raise StateError(
                    f"{name} of a tree is not a C-contiguous array of its type: fit the model again."
                )
        sizes = (
            *pools.weights.shape, *pools.gaussians.shape[::3], pools.counts.shape[2], pools.totals.shape[2],
            len(pools.detectors), pools.notes.shape[1], *pools.edges.shape[1:], member.drawn.shape[1],
        )  # fmt: skip
        self.rows[t, kind] = (*(array.ctypes.data for array in arrays), *sizes, member.key)
        self._known[kind][t] = arrays

    def take_undo(self) -> RowUndo | None:
        """Return the undo of this update, once."""
        undo, self.undo = self.undo, None
        return undo

    def arrays(self) -> list[tuple[Any, ...]]:
        """Return the arrays of all members, in order; an empty tuple where there is none."""
        return self._known[0] + self._known[1]

    def make_room(self) -> None:
        """Allocate the memory for what a row overwrites in trees of 32 levels."""
        largest = self.rows.max(axis=(0, 1))
        slot = largest[N_CLASSES] * (5 * largest[N_PLACES] + largest[N_CELLS] + largest[N_CATEGORICAL])
        slot += largest[N_COUNTED] * (largest[N_CLASSES] + 1) * (largest[N_EDGES] + 1)
        size = 2 * STATE_SIZE + 64 + 32 * (largest[N_CLASSES] + 7) + slot + largest[N_DRAWN]
        if len(self.words) < 2 * len(self.rows) * size:
            self.words = np.empty(2 * len(self.rows) * size, np.int64)
            self.entries = np.empty((2 * len(self.rows) * 96, 2), np.int64)
        self.used[:] = 0


class RowUndo:
    """Restores a forest that has learned one row; see :class:`tamis._atomic.Snapshot`.

    Parameters
    ----------
    forest : AdaptiveRandomForest
    table : MemberTable
        Up to date.
    parts : sequence of list or ndarray
        Lists and arrays of the forest that a row changes.
    """

    is_complete = True

    def __init__(self, forest: Any, table: MemberTable, members: Sequence[Any], parts: Iterable[Any]) -> None:
        self._attributes = vars(forest)
        self._before = self._attributes.copy()
        self._parts = [(part, part.copy()) for part in parts]
        self._members = [*zip(members, table.arrays(), strict=True)]
        self._copies: list[tuple[Array, Array]] = []
        self._table = table
        table.make_room()

    def save(self, member: Member) -> None:
        """Copy a tree before its structure changes."""
        self._copies += [(array, array.copy()) for array in _arrays_of(member)]

    def restore(self) -> None:
        """Restore the forest in place."""
        self._attributes.clear()
        self._attributes.update(self._before)
        for part, before in self._parts:
            part[:] = before
        for member, arrays in self._members:
            for name, array in zip(_NAMES, arrays, strict=False):
                owner = member.pools if name.startswith("pools.") else member
                setattr(owner, name.removeprefix("pools."), array)
        for array, before in reversed(self._copies):
            array[...] = before
        _write_back(self._table.entries, self._table.words, self._table.used)
        self._table.used[:] = 0


def new_progress(n_members: int, is_held: bool) -> Ints:
    """Return the progress before the first row, shape (n_members, 7)."""
    progress = np.zeros((n_members, TREE_NUMBER + 1), np.int64)
    progress[:, STATUS] = TREE
    progress[:, HELD:TREE_NUMBER] = is_held
    progress[:, TREE_NUMBER] = np.arange(n_members)
    return progress


# -- arrays by their addresses ------------------------------------------------------------------------------


@njit()
def _tree_at(at: Ints) -> Arrays:
    n, k, s, g = at[N_NODES], at[N_CLASSES], at[N_SLOTS], at[N_PLACES]
    c, q, r, e = at[N_CELLS], at[N_CATEGORICAL], at[N_COUNTED], at[N_EDGES]
    return Arrays(
        carray(pointer(at[LINKS]), (n, 13), np.int64),
        carray(pointer(at[NUMBERS]), (n, 6), np.float64),
        carray(pointer(at[WEIGHTS]), (n, k), np.float64),
        carray(pointer(at[GAUSSIANS]), (s, k, 5, g), np.float64),
        carray(pointer(at[COUNTS]), (s, k, c), np.float64),
        carray(pointer(at[TOTALS]), (s, k, q), np.float64),
        carray(pointer(at[TREE_DETECTORS]), (at[N_DETECTORS], STATE_SIZE), np.float64),
        carray(pointer(at[STATE]), (11,), np.int64),
        carray(pointer(at[NOTES]), (8, at[N_NOTES]), np.int64),
        carray(pointer(at[LISTS]), (2, q), np.int64),
        carray(pointer(at[NEXT_CELL]), (c,), np.int64),
        carray(pointer(at[EDGES]), (s, r, e), np.float64),
        carray(pointer(at[BINS]), (s, r, k, e + 1), np.float64),
    )


@njit()
def _drawn_at(at: Ints) -> Ints:
    drawn: Ints = carray(pointer(at[DRAWN]), (at[N_SLOTS], at[N_DRAWN]), np.int64)
    return drawn


@njit()
def _copy_words(address: int, n: int, entries: Ints, words: Ints, used: Ints) -> bool:
    """Append a copy of 8-byte words at an address; return whether there was room."""
    if used[0] == len(entries) or used[1] + n > len(words):
        return False
    entries[used[0], 0], entries[used[0], 1] = address, used[1]
    own = carray(pointer(address), (n,), np.int64)
    for i in range(n):
        words[used[1] + i] = own[i]
    used[0] += 1
    used[1] += n
    return True


@njit()
def _write_back(entries: Ints, words: Ints, used: Ints) -> None:
    """Restore the words that were copied, the last first."""
    end = used[1]
    for k in range(used[0] - 1, -1, -1):
        start = entries[k, 1]
        own = carray(pointer(entries[k, 0]), (end - start,), np.int64)
        for i in range(end - start):
            own[i] = words[start + i]
        end = start


@njit()
def _copy_before_row(
    at: Ints, row: Floats, cells: Ints, is_watched: bool, entries: Ints, words: Ints, used: Ints
) -> bool:
    """Copy what a row without a change of structure overwrites; return whether there was room."""
    tree, start_entry, start_word = _tree_at(at), used[0], used[1]
    n_classes, n_places, n_notes = at[N_CLASSES], at[N_PLACES], at[N_NOTES]
    fits = _copy_words(at[TALLY], 2, entries, words, used)
    fits = fits and _copy_words(at[STATE], tree.state.shape[0], entries, words, used)
    if is_watched:
        fits = fits and _copy_words(at[DETECTORS], 2 * STATE_SIZE, entries, words, used)
    for kind in (Note.WHAT, Note.WHERE, Note.NUMBER):
        fits = fits and _copy_words(at[NOTES] + 8 * kind * n_notes, 1, entries, words, used)
    node, length = tree.state[State.ROOT], 1
    while True:
        fits = fits and _copy_words(at[NUMBERS] + 8 * 6 * node, 6, entries, words, used)
        fits = fits and _copy_words(at[WEIGHTS] + 8 * n_classes * node, n_classes, entries, words, used)
        if tree.links[node, Link.LEFT] < 0:
            break
        child = child_of(tree, node, row, cells)
        node = child if child >= 0 else heaviest_child(tree, node)
        length += 1
    slot = tree.links[node, Link.SLOT]
    fits = fits and _copy_words(at[NOTES] + 8 * Note.PATH * n_notes, length, entries, words, used)
    fits = fits and _copy_words(at[LINKS] + 8 * 13 * node, 13, entries, words, used)
    size = n_classes * 5 * n_places
    fits = fits and _copy_words(at[GAUSSIANS] + 8 * slot * size, size, entries, words, used)
    size = at[N_COUNTED] * at[N_EDGES]
    fits = fits and _copy_words(at[EDGES] + 8 * slot * size, size, entries, words, used)
    size = at[N_COUNTED] * n_classes * (at[N_EDGES] + 1)
    fits = fits and _copy_words(at[BINS] + 8 * slot * size, size, entries, words, used)
    size = at[N_DRAWN]
    fits = fits and _copy_words(at[DRAWN] + 8 * slot * size, size, entries, words, used)
    if not fits:
        used[0], used[1] = start_entry, start_word
    return fits


# -- learning and voting ------------------------------------------------------------------------------------


@njit()
def learn_members(
    table: Ints, progress: Ints, X: Floats, cells: Ints, codes: Ints, first: int, rules: SplitOptions,
    sampling: Sampling, entries: Ints, words: Ints, used: Ints,
) -> bool:  # fmt: skip
    """Train trees and their background trees as far as possible; return whether all have learned all rows.

    Parameters
    ----------
    table, progress : ndarray
        See :class:`MemberTable` and :func:`new_progress`; the progress is updated.
    X, cells, codes : ndarray
        The rows.
    first : int
        Number of the first row.
    rules, sampling : NamedTuple
        The seed of the bagging counts is that of the first tree of the table.
    entries, words, used : ndarray
        What is written back after an error.
    """
    is_complete = True
    for t in range(table.shape[0]):
        if progress[t, STATUS] == COMPLETE:
            continue
        status = COMPLETE
        for kind in range(2):
            at = table[t, kind]
            if at[STATE] == 0 or status != COMPLETE:
                continue
            start, event, is_held = progress[t, ROW + kind], progress[t, EVENT], progress[t, HELD + kind] == 1
            stop = progress[t, ROW] if kind == 1 or event != NOTHING else len(codes)
            if start == 0 and stop > 0 and is_held:
                is_copied = _copy_before_row(at, X[0], cells[0], kind == 0, entries, words, used)
                if not is_copied:
                    status = TREE + kind
                    continue
            own = Sampling(
                sampling.seed + progress[t, TREE_NUMBER], at[KEY], sampling.by_leaf, sampling.counts,
                sampling.warning if kind == 0 else 0.0, sampling.drift if kind == 0 else 0.0,
            )  # fmt: skip
            tree, tally = _tree_at(at), carray(pointer(at[TALLY]), (2,), np.float64)
            detectors = carray(pointer(at[DETECTORS]), (2, STATE_SIZE), np.float64)
            end, last = learn_member(
                tree, _drawn_at(at), tally, detectors, X, cells, codes[:stop], start, first,
                event if kind == 0 else NOTHING, rules, own, is_held,
            )  # fmt: skip
            progress[t, ROW + kind] = end
            if kind == 0:
                progress[t, EVENT] = last
            if tree.state[State.PENDING] > 0:
                status = TREE + kind
        if status == COMPLETE and progress[t, EVENT] != NOTHING:
            status = SIGNAL
        progress[t, STATUS] = status
        is_complete = is_complete and status == COMPLETE
    return is_complete


@njit(strict=True)
def vote_members(table: Ints, X: Floats, cells: Ints, mode: int, votes: Floats) -> None:
    """Add the class probabilities of all trees, weighted by their accuracy, equation (1) of `forest.py`."""
    shares = np.empty(votes.shape)
    for t in range(table.shape[0]):
        at = table[t, 0]
        tally = carray(pointer(at[TALLY]), (2,), np.float64)
        weight = (tally[0] + 1.0) / (tally[1] + votes.shape[1])
        shares.fill(0.0)
        add_votes(_tree_at(at), _drawn_at(at), X, cells, mode, weight, shares)
        for i in range(votes.shape[0]):
            for c in range(votes.shape[1]):
                votes[i, c] += shares[i, c]
