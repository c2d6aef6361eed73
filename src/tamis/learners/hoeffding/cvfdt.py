"""CVFDT: a Hoeffding tree over a sliding window.

Hulten, Spencer, Domingos: Mining time-changing data streams, KDD 2001 (concept-adapting very fast decision tree). The
update with a row is documented in `forgetting.py`, splitting in `splits.py`, and the prediction of a leaf in
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

import numpy as np

from tamis._validation import Array, Ints
from tamis._validation.parameters import integer, parameter, parameters
from tamis.learners.hoeffding.classifier import LEAVES
from tamis.learners.hoeffding.forgetting import CheckSchedule, RowWindow, learn, predict_votes
from tamis.learners.hoeffding.nodes import State
from tamis.learners.hoeffding.tree import AlternateTreeBase


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
