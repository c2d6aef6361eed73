"""CVFDT: a Hoeffding tree that stays up to date with a window of rows.

Hulten, Spencer, Domingos: Mining time-changing data streams, KDD 2001 (concept-adapting very fast decision tree). What
it does with a row stands in `forgetting.py`, when a leaf splits in `splits.py`, what one predicts in `leaves.py`.

===============  ==================  ====================================================================
paper            here                meaning
===============  ==================  ====================================================================
w                `window`            rows that the tree knows
f                `check_every`       rows between two looks at whether splits are still the best ones
                 `test_every`        rows between two comparisons of alternate trees with their splits
                 `test_rows`         rows by which they are compared
n_min            `grace_period`      rows of a leaf between two tries to split
delta, tau       `delta`,            the bound, and where it is so small that the best two are as good as
                 `tie_threshold`     each other
===============  ==================  ====================================================================

Deviations, each with its reason:

* Numbers are kept as a normal distribution of each class and split at thresholds, as in the other trees of this
  library; the paper has categories. Which rows a feature tells best of is asked of the feature, not of its threshold.
* A row without the value that a split asks for is counted there, and the split predicts it: whatever the tree becomes,
  it is known which nodes have to forget the row.
* A leaf is born empty, and until it has rows its parent predicts. Elsewhere leaves begin with what their parent would
  give them, which could never be forgotten.
* A split has one alternate tree; the paper allows several. All rows are learned, those of a test too, after they have
  been predicted.
* An alternate tree that comes no nearer to its split from one test to the next is given up; in the paper it has to gain
  a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis._parameters import integer, parameters
from tamis.learners.hoeffding.classifier import LEAVES
from tamis.learners.hoeffding.forgetting import Course, Past, learn, votes_of
from tamis.learners.hoeffding.nodes import PENDING
from tamis.learners.hoeffding.tree import TreeOfAlternates

__all__ = ["CVFDT"]


class CVFDT(TreeOfAlternates):
    """A Hoeffding tree of the last rows, whose splits give way where another feature is better by now (CVFDT).

    Parameters
    ----------
    window : int, at least 1, default=5000
        Rows that the tree knows. Older ones are taken out of its counts.
    check_every : int, at least 1, default=500
        Rows between two looks at the splits. One whose feature is no longer the best one gets an alternate tree.
    test_every : int, at least 1, default=1000
        Rows between two comparisons of alternate trees with their splits.
    test_rows : int, at least 1, default=200
        Rows by which they are compared: the last ones before it.
    delta : float in (0, 1), default=0.01
        Chance that the feature of a split is not the best one. A node never knows more rows than the window has, so a
        smaller one leaves trees small.
    grace_period, tie_threshold, n_cuts, categorical, binary_splits, max_depth, max_nodes
        As in :class:`HoeffdingTree`.
    leaf : {"majority", "nb", "nb-adaptive"}, default="nb-adaptive"
        What a leaf predicts, as in :class:`HoeffdingTree`.

    Attributes
    ----------
    n_alternates_started_, n_alternates_replaced_, n_alternates_dropped_ : int
        Number of alternate trees started, put in place, and given up.
    n_nodes_, n_leaves_, depth_, nodes_, feature_importances_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`HoeffdingTree`; weights are those of the rows of the window that a node has seen.

    Raises
    ------
    ValueError
        If a parameter is not as above, when the first rows are learned from.

    Notes
    -----
    A row costs O(depth times features times classes) when it comes and again when it leaves, a look at all splits
    O(nodes features classes cuts). Memory: the rows of the window, and 5 float64 per node, class and numeric feature. A
    batch leaves the same state as its rows one at a time. Sparse rows are refused.

    A row with a missing value (NaN), or a category that has no branch, stays at the split that asks for it, which
    predicts it.

    References
    ----------
    Hulten, Spencer, Domingos (2001). Mining time-changing data streams. KDD.

    Examples
    --------
    Feature 0 tells the class, and feature 1 from row 6000 on:

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

    _shapes = f"""{TreeOfAlternates._shapes}
        _window_ (=w)  _rows_ (w, p) float in [-1e150, 1e150] or nan  _cells_ (w, q) in [-1, _categories_.n_cells)
        _codes_ (w) in [0, max(k, 1))  _births_ (w)  _trials_ (n, 3) float in [-inf, inf]
    """

    _allowed = parameters(
        leaf=LEAVES,
        check_every=integer("[1, inf)"),
        test_every=integer("[1, inf)"),
        test_rows=integer("[1, inf)"),
    )

    def __init__(
        self,
        window: int = 5000,
        check_every: int = 500,
        test_every: int = 1000,
        test_rows: int = 200,
        *,
        grace_period: int = 200,
        delta: float = 0.01,
        tie_threshold: float = 0.05,
        leaf: str = "nb-adaptive",
        n_cuts: int = 10,
        categorical: Any = None,
        binary_splits: bool = False,
        max_depth: int | None = None,
        max_nodes: int | None = None,
    ) -> None:
        super().__init__(
            grace_period, delta, tie_threshold, leaf=leaf, n_cuts=n_cuts, categorical=categorical,
            binary_splits=binary_splits, max_depth=max_depth, max_nodes=max_nodes,
        )  # fmt: skip
        self.window = window
        self.check_every = check_every
        self.test_every = test_every
        self.test_rows = test_rows

    # State beside the tree's:
    #   _rows_, _cells_, _codes_   (window, p), (window, q), (window,)  the last rows, at their number modulo the size
    #   _births_                   (window,)   how many nodes had been born when the row came
    #   _trials_                   (nodes, 3)  errors of a split and of its alternate tree, and the latter's lead so far

    # -- learning ------------------------------------------------------------------------------------------

    def _open(self, n_features: int, names: list[str] | None, classes: Any) -> None:
        if self.test_rows > self.test_every:
            raise ValueError(
                f"test_rows={self.test_rows} is more than test_every={self.test_every}: choose at most as many."
            )
        super()._open(n_features, names, classes)
        self._window_ = size = int(self.window)
        self._rows_ = np.zeros((size, len(self._numeric_)))
        self._cells_ = np.zeros((size, len(self._categorical_)), dtype=np.int64)
        self._codes_, self._births_ = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self._trials_ = np.zeros((len(self._pools_.links), 3))

    def _past(self) -> Past:
        """Return the window as the kernels take it: arrays of a file mapped for reading are copied first."""
        if not self._codes_.flags.writeable:
            for name in ("_rows_", "_cells_", "_codes_", "_births_", "_trials_"):
                setattr(self, name, getattr(self, name).copy())
        return Past(self._rows_, self._cells_, self._codes_, self._births_, self._trials_)

    def _learn_encoded(self, rows: Array, numbers: Array, cells: Array, codes: Array) -> None:
        pools, rules, at = self._pools_, self._rules(watched=True), 0
        course = Course(self._window_, int(self.check_every), int(self.test_every), int(self.test_rows))
        while at < len(codes) or pools.state[PENDING]:
            at = learn(pools.arrays(), self._past(), numbers, cells, codes, at, rules, course)
            if pools.state[PENDING]:
                pools.make_room()
                self._trials_ = np.pad(self._trials_, ((0, len(pools.links) - len(self._trials_)), (0, 0)))

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: NDArray[np.int64], votes: Array) -> None:
        votes_of(self._pools_.arrays(), numbers, cells, LEAVES.index(self.leaf), votes)
