"""CVFDT: a Hoeffding tree over a sliding window.

Hulten, Spencer, Domingos: Mining time-changing data streams, KDD 2001 (concept-adapting very fast decision tree). The
update with a row is documented below, splitting in `splits.py`, and the prediction of a leaf in
`leaves.py`.

===============  ==================  ====================================================================
paper            here                meaning
===============  ==================  ====================================================================
w                `window`            rows that the tree represents
f                `check_every`       rows between two checks whether splits are still the best ones
                 `test_every`        rows between two comparisons of alternate trees with their splits
                 `test_rows`         rows used for the comparison
n_min            `grace_period`      rows of a leaf between two attempts to split
delta, tau       `delta`,            confidence of the bound, and the bound below which the best two
                 `tie_threshold`     features count as tied
===============  ==================  ====================================================================

Deviations, each with its reason:

* Numeric features are summarised by a normal distribution for each class and split at thresholds, as in the other trees
  of this library; the paper has categorical features. A check compares features, regardless of their thresholds.
* A row whose value for a split is missing is counted at the split, which predicts it: regardless of later changes of
  the tree, the nodes from which the row must be removed are known.
* A new leaf is empty, and its parent predicts until it has rows. In other trees, leaves start with weights from their
  parent, which could never be removed.
* A split has one alternate tree; the paper allows several. All rows are learned after they have been predicted,
  including those of a test.
* An alternate tree whose lead does not improve from one test to the next is dropped; in the paper it has to gain one
  percentage point.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints
from tamis._validation.parameters import integer, parameter, parameters
from tamis.learners.hoeffding.adaptive import drop_alternate, replace_split
from tamis.learners.hoeffding.classifier import LEAVES
from tamis.learners.hoeffding.learning import (
    has_room,
    learn_at_leaf,
    predict_and_score,
    queue_branches,
    register_categories,
)
from tamis.learners.hoeffding.leaves import vote
from tamis.learners.hoeffding.nodes import (
    Arrays,
    Change,
    Link,
    Moment,
    Note,
    Number,
    State,
    child_of,
    new_leaf,
    queue_change,
)
from tamis.learners.hoeffding.splits import (
    SplitOptions,
    add_branch,
    add_children,
    hoeffding_bound,
    split_merit,
    update_statistics,
    write_split,
)
from tamis.learners.hoeffding.tree import AlternateTreeBase

# -- A tree over a sliding window: every node stores statistics, and rows that leave the window are removed from them

# Hulten, Spencer, Domingos: Mining time-changing data streams, KDD 2001. A row is counted in every node on its path; a
# row that leaves the window is removed from the nodes that existed when it arrived. A split whose feature is no longer
# the best gets an alternate tree that starts with the better split. With the merits and eps of `splits.py`::
#
#     an alternate is started if  best - merit(feature of the split) > eps,  or > tie / 2 where eps < tie        (1)
#
# Both learn all rows that pass the split. Periodically, their errors are counted on rows that they have not learned
# yet: an alternate with fewer errors replaces the split, and one whose lead does not improve is dropped.

# Columns of `trials`: errors of both, and the largest lead of the alternate so far.
OF_SPLIT, OF_ALTERNATE, LEAD = range(3)
_RECOUNT_BELOW = 1e-9  # a smaller fraction of a sum of squares, after removing a row, is rounding error
_ROUNDING = 1e-12  # a mean that is a smaller fraction of a removed value is rounding error


class CheckSchedule(NamedTuple):
    """When the splits of a tree are checked; all are numbers of rows."""

    window: int
    check_every: int
    test_every: int
    test_rows: int


class RowWindow(NamedTuple):
    """The rows of the window, at row number modulo its size."""

    rows: Floats  # (window, numeric features)
    cells: Ints  # (window, categorical features)
    codes: Ints  # (window,)
    births: Ints  # (window,): number of nodes created before the row arrived
    trials: Floats  # (nodes, 3)


@njit()
def learn(
    tree: Arrays,
    window: RowWindow,
    X: Floats,
    cells: Ints,
    codes: Ints,
    start: int,
    rules: SplitOptions,
    schedule: CheckSchedule,
) -> int:
    """Learn the rows from `start`; return the next row, which is before the end if a pending change needs room."""
    votes = np.empty(tree.weights.shape[1])
    for i in range(start, len(codes) + 1):
        if tree.state[State.PENDING] > 0:
            if not has_room(tree):
                return i
            _apply_pending(tree, window, rules)
        if i == len(codes):
            break
        at = tree.state[State.ROWS] % schedule.window
        if tree.state[State.ROWS] >= schedule.window:
            _visit_nodes(tree, window.rows[at], window.cells[at], window.codes[at], window.births[at], True)
        register_categories(tree, cells[i])
        window.rows[at], window.cells[at], window.codes[at] = X[i], cells[i], codes[i]
        window.births[at] = tree.state[State.BIRTHS]
        is_test = tree.state[State.ROWS] % schedule.test_every >= schedule.test_every - schedule.test_rows
        _learn_row(tree, window.trials, X[i], cells[i], codes[i], is_test, rules, votes)
        tree.state[State.ROWS] += 1
        if tree.state[State.ROWS] > schedule.window and tree.state[State.ROWS] % schedule.window == 0:
            _recount(tree, window)
        if tree.state[State.ROWS] % schedule.test_every == 0:
            _compare_alternates(tree, window.trials)
        if tree.state[State.ROWS] % schedule.check_every == 0:
            _check_splits(tree, rules)
    return len(codes)


# -- rows enter and leave --------------------------------------------------------------------------------------


@njit(allocates=False)
def _path(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Write the path of a row into PATH; it ends at a split for which the row has no value or no branch."""
    node, n = top, 0
    while node >= 0:
        tree.notes[Note.PATH, n] = node
        n += 1
        node = child_of(tree, node, row, cells) if tree.links[node, Link.LEFT] >= 0 else -1
    return n


@njit(allocates=False)
def _voting_node(tree: Arrays, top: int, row: Floats, cells: Ints) -> int:
    """Return the last node on the path of a row that has rows; nothing is written."""
    node, voting = top, top
    while node >= 0:
        if tree.numbers[node, Number.WEIGHT] > 0.0:
            voting = node
        node = child_of(tree, node, row, cells) if tree.links[node, Link.LEFT] >= 0 else -1
    return voting


@njit()
def _learn_row(
    tree: Arrays,
    trials: Floats,
    row: Floats,
    cells: Ints,
    y: int,
    is_test: bool,
    rules: SplitOptions,
    votes: Floats,
) -> None:
    """Count a row in the tree and in the alternate trees on its path, and attempt to split its leaves."""
    no_guesses = np.empty(0, np.int64)
    tree.notes[Note.STACK, 0], n = tree.state[State.ROOT], 1
    while n > 0:
        n -= 1
        top = tree.notes[Note.STACK, n]
        length = _path(tree, top, row, cells)
        voting = _voting_node(tree, top, row, cells)
        guess = predict_and_score(tree, voting, row, cells, y, 1.0, no_guesses, rules, votes)
        if is_test and guess != y and top != tree.state[State.ROOT]:
            trials[tree.links[top, Link.PARENT], OF_ALTERNATE] += 1.0
        for p in range(length):
            node = tree.notes[Note.PATH, p]
            tree.weights[node, y] += 1.0
            tree.numbers[node, Number.WEIGHT] += 1.0
            if tree.links[node, Link.LEFT] >= 0:
                update_statistics(tree, tree.links[node, Link.SLOT], row, cells, y, 1.0)
            if tree.links[node, Link.ALTERNATE] >= 0:
                tree.notes[Note.STACK, n] = tree.links[node, Link.ALTERNATE]
                n += 1
                if is_test and guess != y:
                    trials[node, OF_SPLIT] += 1.0
        last = tree.notes[Note.PATH, length - 1]
        if tree.links[last, Link.LEFT] < 0:
            learn_at_leaf(tree, last, row, cells, y, 1.0, rules)
            queue_branches(tree, length, row, cells)
        else:
            queue_branches(tree, length + 1, row, cells)


@njit(allocates=False)
def _visit_nodes(tree: Arrays, row: Floats, cells: Ints, y: int, births: int, is_removed: bool) -> None:
    """Remove a row from the nodes on its path that existed when it arrived, or count its numbers there again."""
    tree.notes[Note.STACK, 0], n = tree.state[State.ROOT], 1
    while n > 0:
        n -= 1
        node = tree.notes[Note.STACK, n]
        while node >= 0 and tree.links[node, Link.BORN] < births:
            if is_removed:
                tree.weights[node, y] -= 1.0
                tree.numbers[node, Number.WEIGHT] -= 1.0
                _remove_from_statistics(tree, tree.links[node, Link.SLOT], row, cells, y)
            else:
                update_statistics(tree, tree.links[node, Link.SLOT], row, cells[:0], y, 1.0)
            if tree.links[node, Link.ALTERNATE] >= 0:
                tree.notes[Note.STACK, n] = tree.links[node, Link.ALTERNATE]
                n += 1
            node = child_of(tree, node, row, cells) if tree.links[node, Link.LEFT] >= 0 else -1


@njit(allocates=False)
def _remove_from_statistics(tree: Arrays, slot: int, row: Floats, cells: Ints, y: int) -> None:
    """Remove a row from the statistics of a node; ranges of features stay until the statistics are recomputed."""
    kept = tree.gaussians[slot, y]
    observed, mean, deviation = kept[Moment.OBSERVED], kept[Moment.MEAN], kept[Moment.DEVIATION]
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
        deviation[f] = left if left > _RECOUNT_BELOW * deviation[f] else 0.0
        if deviation[f] == 0.0:
            mean[f] = 0.0 if abs(mean[f]) < _ROUNDING * abs(x) else mean[f]
            kept[Moment.LOWEST, f] = kept[Moment.HIGHEST, f] = mean[f]
    for g in range(cells.shape[0]):
        if cells[g] >= 0:
            tree.counts[slot, y, cells[g]] -= 1.0
            tree.totals[slot, y, g] -= 1.0


@njit()
def _recount(tree: Arrays, window: RowWindow) -> None:
    """Recompute means, deviations and ranges from the window: rounding does not accumulate, and ranges can shrink."""
    for node in range(len(tree.links)):
        if tree.links[node, Link.ALIVE] == 1:
            tree.gaussians[tree.links[node, Link.SLOT]].fill(0.0)
    for i in range(len(window.codes)):
        _visit_nodes(tree, window.rows[i], window.cells[i], window.codes[i], window.births[i], False)


@njit()
def _apply_pending(tree: Arrays, window: RowWindow, rules: SplitOptions) -> None:
    for k in range(tree.state[State.PENDING]):
        kind, node, number = tree.notes[Note.WHAT, k], tree.notes[Note.WHERE, k], tree.notes[Note.NUMBER, k]
        n = 1 if kind == Change.BRANCH else number
        if tree.links[node, Link.ALIVE] != 1 or (
            rules.max_nodes >= 0 and tree.state[State.LIVE] + n > rules.max_nodes
        ):
            continue
        if kind == Change.BRANCH:
            add_branch(tree, node, number)
        elif kind == Change.SPLIT:
            _add_empty_children(tree, node)
        else:
            _start_alternate(tree, window.trials, node, rules)
    tree.state[State.PENDING] = 0


@njit()
def _add_empty_children(tree: Arrays, node: int) -> None:
    """Add the children of the split written into a node; they start without rows."""
    add_children(tree, node)
    child = tree.links[node, Link.LEFT]
    while child >= 0:
        tree.weights[child].fill(0.0)
        tree.numbers[child, Number.WEIGHT] = 0.0
        child = tree.links[child, Link.NEXT]


@njit()
def _best_split(tree: Arrays, node: int, rules: SplitOptions) -> tuple[int, float, int, int, float]:
    """Return feature, threshold, category, branches and merit of the split chosen by (1); feature -1: none."""
    slot, own = tree.links[node, Link.SLOT], tree.links[node, Link.FEATURE]
    n_classes = np.count_nonzero(tree.weights[node])
    none = (-1, 0.0, -1, 0, 0.0)
    if n_classes < 2:
        return none
    work = np.empty((4, tree.gaussians.shape[1]))
    present = max(split_merit(tree, slot, own, -1.0, rules, work)[0], 0.0)
    eps = hoeffding_bound(n_classes, tree.numbers[node, Number.WEIGHT], rules)
    required = present + (min(eps, 0.5 * rules.tie_threshold) if eps < rules.tie_threshold else eps)
    best, candidate = required, none
    for f in range(tree.gaussians.shape[3] + tree.totals.shape[2]):
        if f != own:
            merit, at, cell, branches = split_merit(tree, slot, f, best, rules, work)
            if merit > best:
                best, candidate = merit, (f, at, cell, branches, merit)
    return candidate


@njit()
def _check_splits(tree: Arrays, rules: SplitOptions) -> None:
    """Queue an alternate tree for each split whose feature is no longer the best one."""
    for node in range(len(tree.links)):
        links = tree.links[node]
        if links[Link.ALIVE] == 1 and links[Link.LEFT] >= 0 and links[Link.ALTERNATE] < 0:
            branches = _best_split(tree, node, rules)[3]
            if branches > 0:
                queue_change(tree, Change.START, node, branches + 1)


@njit()
def _start_alternate(tree: Arrays, trials: Floats, node: int, rules: SplitOptions) -> None:
    """Add an alternate node with the statistics of the split, split by the better feature."""
    feature, threshold, category, _, merit = _best_split(tree, node, rules)
    other = new_leaf(tree, node, tree.links[node, Link.DEPTH])
    mine, its = tree.links[node, Link.SLOT], tree.links[other, Link.SLOT]
    tree.gaussians[its], tree.counts[its] = tree.gaussians[mine], tree.counts[mine]
    tree.totals[its] = tree.totals[mine]
    tree.weights[other] = tree.weights[node]
    tree.numbers[other, Number.WEIGHT] = tree.numbers[node, Number.WEIGHT]
    tree.links[other, Link.BORN] = tree.links[node, Link.BORN]
    write_split(tree, other, feature, threshold, category, merit)
    _add_empty_children(tree, other)
    tree.links[node, Link.ALTERNATE] = other
    tree.state[State.STARTED] += 1
    trials[node, OF_SPLIT], trials[node, OF_ALTERNATE], trials[node, LEAD] = 0.0, 0.0, -np.inf


@njit()
def _compare_alternates(tree: Arrays, trials: Floats) -> None:
    """Promote alternate trees with fewer errors than their split, and drop those whose lead does not improve."""
    for node in range(len(tree.links)):
        other = tree.links[node, Link.ALTERNATE]
        if tree.links[node, Link.ALIVE] != 1 or other < 0:
            continue
        lead = trials[node, OF_SPLIT] - trials[node, OF_ALTERNATE]
        if lead > 0.0:
            replace_split(tree, node, other)
        elif lead <= trials[node, LEAD]:
            drop_alternate(tree, node)
        else:
            trials[node, OF_SPLIT], trials[node, OF_ALTERNATE], trials[node, LEAD] = 0.0, 0.0, lead


# -- reading -----------------------------------------------------------------------------------------------


@njit()
def predict_votes(tree: Arrays, X: Floats, cells: Ints, mode: int, votes: Floats) -> None:
    """Write the class probabilities of each row."""
    for i in range(X.shape[0]):
        node = _voting_node(tree, tree.state[State.ROOT], X[i], cells[i])
        vote(tree, node, X[i], cells[i], mode, votes[i])


# -- CVFDT: a Hoeffding tree over a sliding window -------------------------------------------------------


@dataclass(repr=False, eq=False)
class CVFDT(AlternateTreeBase):
    """A Hoeffding tree over a sliding window that replaces splits when another feature becomes better (CVFDT).

    Parameters
    ----------
    window : int, at least 1, default=5000
        Number of most recent rows that the tree represents. Older rows are removed from its statistics.
    check_every : int, at least 1, default=500
        Rows between two checks of the splits. A split whose feature is no longer the best gets an alternate tree.
    test_every : int, at least 1, default=1000
        Rows between two comparisons of alternate trees with their splits.
    test_rows : int, at least 1, default=200
        Number of rows used for a comparison: the last ones before it.
    delta : float in (0, 1), default=0.01
        Probability that the feature of a split is not the best one. The statistics of a node cover at most `window`
        rows, so a smaller value limits the size of the tree.
    grace_period, tie_threshold, n_cuts, categorical, binary_splits, max_depth, max_nodes
        As in :class:`HoeffdingTree`.
    leaf : {"majority", "nb", "nb-adaptive"}, default="nb-adaptive"
        What a leaf predicts, as in :class:`HoeffdingTree`.

    Attributes
    ----------
    n_alternates_started_, n_alternates_replaced_, n_alternates_dropped_ : int
        Number of alternate trees started, promoted to replace a split, and dropped.
    n_nodes_, n_leaves_, depth_, nodes_, feature_importances_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`HoeffdingTree`; weights are those of the rows of the window that a node has seen.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.

    Notes
    -----
    A row costs O(depth times features times classes) when it enters and when it leaves the window, a check of all
    splits O(nodes features classes cuts). Memory: the rows of the window, and 5 float64 per node, class and numeric
    feature. A batch leaves the same state as its rows one at a time. Sparse rows are rejected.

    A row with a missing value (NaN), or a category without a branch, stays at the split on that feature, which predicts
    it.

    References
    ----------
    Hulten, Spencer, Domingos (2001). Mining time-changing data streams. KDD.

    Examples
    --------
    Feature 0 determines the class, and feature 1 from row 6000 on:

    >>> import numpy as np
    >>> from tamis import CVFDT
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(12000, 3))
    >>> y = np.where(np.arange(12000) < 6000, X[:, 0] > 0.5, X[:, 1] > 0.5).astype(int)
    >>> tree = CVFDT(window=2000).fit(X[:6000], y[:6000])
    >>> tree.feature_importances_.argmax()
    np.int64(0)
    >>> tree = tree.partial_fit(X[6000:], y[6000:])
    >>> tree.feature_importances_.argmax(), tree.nodes_[0].weight
    (np.int64(1), 2000.0)
    """

    _shapes = f"""{AlternateTreeBase._shapes}
        _window_ (=w)  _rows_ (w, p) float in [-1e150, 1e150] or nan fill nan
        _cells_ (w, q) in [-2, _categories_.n_cells)
        _codes_ (w) in [0, max(c, 1))  _births_ (w) any "only compared"
        _trials_ (n, 3) float in [-inf, inf]
    """

    _allowed = parameters(leaf=LEAVES)

    window: int = 5000
    check_every: int = parameter(integer("[1, inf)"), default=500)
    test_every: int = parameter(integer("[1, inf)"), default=1000)
    test_rows: int = parameter(integer("[1, inf)"), default=200)
    _: KW_ONLY
    grace_period: int = 200
    delta: float = 0.01
    tie_threshold: float = 0.05
    splitter: str = field(default="normal", init=False)
    new_feature_penalty: float = field(default=0.0, init=False)

    # State in addition to that of the tree:
    #   _rows_, _cells_, _codes_   (window, p), (window, q), (window,)  the last rows, at row number modulo the size
    #   _births_                   (window,)   number of nodes created before the row arrived
    #   _trials_                   (nodes, 3)  errors of a split and of its alternate tree, and the best lead of the
    #   latter

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        if self.test_rows > self.test_every:
            raise ValueError(
                f"test_rows={self.test_rows} exceeds test_every={self.test_every}: choose a smaller test_rows."
            )
        super()._initialize(n_features, names)
        self._window_ = size = int(self.window)
        self._rows_ = np.zeros((size, len(self._numeric_)))
        self._cells_ = np.zeros((size, len(self._categorical_)), dtype=np.int64)
        self._codes_, self._births_ = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self._trials_ = np.zeros((len(self._pools_.links), 3))

    def _row_window(self) -> RowWindow:
        """Return the window for the kernels; memory-mapped arrays are copied first."""
        if not self._codes_.flags.writeable:
            for name in ("_rows_", "_cells_", "_codes_", "_births_", "_trials_"):
                setattr(self, name, getattr(self, name).copy())
        return RowWindow(self._rows_, self._cells_, self._codes_, self._births_, self._trials_)

    def _learn_encoded(self, rows: Array, numbers: Array, cells: Array, codes: Array) -> None:
        pools, rules, at = self._pools_, self._split_options(watched=True), 0
        schedule = CheckSchedule(
            self._window_, int(self.check_every), int(self.test_every), int(self.test_rows)
        )
        while at < len(codes) or pools.state[State.PENDING]:
            at = learn(pools.arrays(), self._row_window(), numbers, cells, codes, at, rules, schedule)
            if pools.state[State.PENDING]:
                pools.make_room()
                self._trials_ = np.pad(self._trials_, ((0, len(pools.links) - len(self._trials_)), (0, 0)))

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        predict_votes(self._pools_.arrays(), numbers, cells, LEAVES.index(self.leaf), votes)
