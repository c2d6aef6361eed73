"""HoeffdingTree and HoeffdingAdaptiveTree: incremental decision trees.

Domingos, Hulten: Mining high-speed data streams, KDD 2000 (VFDT); Bifet, Gavalda: Adaptive learning from evolving data
streams, IDA 2009 (HAT); Barddal's thesis, section 7.3: leaves that own a classifier with feature weights.

===============  ==================  ====================================================================
papers           here                meaning
===============  ==================  ====================================================================
n_min            `grace_period`      weight between two attempts to split a leaf
delta            `delta`             probability that a split is not the best one
tau              `tie_threshold`     the bound below which the best two features count as tied
===============  ==================  ====================================================================

The formulas are next to their code: splits in `splits.py`, votes in `leaves.py`, alternate trees in `adaptive.py`; the
arrays in `nodes.py`.

Errata and deviations, each with its reason:

* n of the Hoeffding bound includes the initial weight of a leaf, as in all published programs.
* Not splitting has merit 0, not minus infinity: even a single relevant feature must exceed it by the bound.
* An almost pure leaf still attempts to split; in other programs it does not, and rare classes are not learned.
* Errors have risen if the mean of the ADWIN's window has increased, not if the last row was misclassified.
* Alternate trees start with the row after the drift, and do not vote until they replace the split.
* A class without rows at a leaf gets no vote from its naive Bayes; nor, unless all are such, does a class without
  variance in a feature whose value it has not had.
* `delta` is 1e-3, as in CapyMOA; 1e-7, as in the paper, is less accurate on most streams (docs/hoeffding.md).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Ints
from tamis._validation.parameters import SEED, parameter, parameters, with_methods
from tamis.learners.dense_rows import is_third_party
from tamis.learners.hoeffding.classifier import LEAVES, TreeClassifier
from tamis.learners.hoeffding.learning import find_leaves, learn, predict_votes
from tamis.learners.hoeffding.leaves import MAJORITY
from tamis.learners.hoeffding.nodes import Link, Pools, State, shapes_of_pools
from tamis.learners.hoeffding.records import Node, check_trees, importances, node_records
from tamis.learners.hoeffding.splits import SplitOptions

_NO_GUESSES = np.zeros(0, dtype=np.int64)


class LeafClassifiers:
    """The classifiers of the leaves, by the birth number of the leaf; a leaf without rows has none yet.

    Parameters
    ----------
    prototype : classifier with partial_fit and predict_proba
        Cloned for a leaf without a parent.
    """

    def __init__(self, prototype: Any) -> None:
        self._prototype = prototype
        self._by_birth: dict[int, Any] = {}
        self._births = 0  # leaves born earlier have inherited already

    def train(self, births: Ints, X: Floats, codes: Ints, n_classes: int) -> None:
        """Train each leaf's classifier with the rows that reached it, in order."""
        for birth in dict.fromkeys(births.tolist()):
            rows = births == birth
            known = self._by_birth.get(birth)
            if known is None:
                fresh = clone(self._prototype)
                self._by_birth[birth] = fresh.partial_fit(X[rows], codes[rows], classes=np.arange(n_classes))
            else:
                known.partial_fit(X[rows], codes[rows])

    def guess(self, births: Ints, X: Floats, weights: Floats) -> Ints:
        """Return the prediction of each leaf for one row: the majority class without a classifier, -1 if empty."""
        guesses = np.where(weights.any(axis=1), weights.argmax(axis=1), -1)
        for k, birth in enumerate(births.tolist()):
            known = self._by_birth.get(birth)
            if known is not None:
                guesses[k] = known.predict(X)[0]
        return guesses

    def inherit(self, pools: Pools) -> None:
        """Copy the parent's classifier to leaves created by a split, and drop those of leaves that no longer exist."""
        links = pools.links
        leaves = np.flatnonzero((links[:, Link.ALIVE] == 1) & (links[:, Link.LEFT] < 0))
        for leaf in leaves[links[leaves, Link.BORN] >= self._births]:
            parent = links[leaf, Link.PARENT]
            if parent >= 0 and int(links[parent, Link.BORN]) in self._by_birth:
                self._by_birth[int(links[leaf, Link.BORN])] = deepcopy(
                    self._by_birth[int(links[parent, Link.BORN])]
                )
        kept = set(links[leaves, Link.BORN].tolist())
        self._by_birth = {birth: known for birth, known in self._by_birth.items() if birth in kept}
        self._births = int(pools.state[State.BIRTHS])

    def votes(self, births: Ints, X: Floats, votes: Floats) -> None:
        """Overwrite the votes of rows whose leaf has a classifier with the probabilities of that classifier."""
        for birth in dict.fromkeys(births.tolist()):
            known = self._by_birth.get(birth)
            if known is not None:
                rows = np.flatnonzero(births == birth)
                votes[rows] = 0.0
                votes[rows[:, None], known.classes_.astype(np.int64)] = known.predict_proba(X[rows])

    def classifier_of(self, birth: int) -> Any:
        """Return the classifier of a leaf, or None if it has none yet."""
        return self._by_birth.get(birth)


@dataclass(repr=False, eq=False)
class HoeffdingTree(TreeClassifier):
    """An incremental decision tree that splits a leaf once the Hoeffding bound identifies the best feature (VFDT).

    Parameters
    ----------
    grace_period : int, at least 1, default=200
        Weight of the rows between two attempts of a leaf to split.
    delta : float in (0, 1), default=1e-3
        Probability that the feature of a split is not the best one.
    tie_threshold : float, at least 0, default=0.05
        If the Hoeffding bound is below this, the best feature is used even if the second best is equally good.
    leaf : {"majority", "nb", "nb-adaptive"} or classifier, default="nb-adaptive"
        What a leaf predicts. "majority": its most frequent class. "nb": naive Bayes from its statistics. "nb-adaptive":
        the more accurate of these two at the leaf. Or a classifier with `partial_fit` and `predict_proba`, such as
        :class:`~tamis.learners.WeightedNaiveBayes`: each leaf trains a separate copy. New leaves start with a copy of
        their parent's classifier.
    n_cuts : int, at least 1, default=10
        Number of candidate thresholds of a numeric feature.
    splitter : {"normal", "quantiles"}, default="normal"
        How thresholds of a numeric feature are compared. "normal": equally spaced over its range, with a normal
        distribution for each class. "quantiles": at quantiles, with counts for each class; for heavy tails and several
        modes.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features: any finite numbers.
    binary_splits : bool, default=False
        Whether a categorical feature splits one category from the rest; otherwise each category has a branch.
    max_depth : int, at least 0, or None, default=None
        Maximum number of splits between the root and a leaf.
    max_nodes : int, at least 1, or None, default=None
        Maximum number of nodes of the tree, including alternate trees. This bounds the memory.
    new_feature_penalty : float in [0, 1), default=0
        Fraction of its merit that a feature loses if no split of the tree uses it yet: regularised trees use fewer
        features.

    Attributes
    ----------
    n_nodes_, n_leaves_, depth_ : int
        Current size of the tree.
    nodes_ : list of Node
        The nodes, each before its children.
    feature_importances_ : ndarray of shape (n_features,), float64
        Gain of the splits in the tree: merit times weight, summed by feature and divided by the sum of all.
    %(fitted)s

    Notes
    -----
    A row costs O(depth + features times classes), an attempt to split O(features times classes times cuts). Memory: 5
    float64 per leaf, class and numeric feature, and one per leaf, class and category; with `splitter="quantiles"` also
    `n_cuts` + 1 per leaf, class and numeric feature. A batch leaves the same state as its
    rows one at a time. Sparse rows are rejected.

    A missing value (NaN) is ignored by the statistics; at a split on its feature, the row follows the branch with the
    largest weight. So does a category without a branch; it gets one as soon as a row with it has been learned,
    if it is one of the first 1,000 categories of its feature.

    References
    ----------
    Domingos, Hulten (2000). Mining high-speed data streams. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import HoeffdingTree
    >>> from tamis.learners import export_text
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 3))
    >>> y = np.where(X[:, 0] > 0.5, np.where(X[:, 2] > 0.3, "b", "a"), "a")
    >>> tree = HoeffdingTree(max_depth=2).fit(X, y)
    >>> print(export_text(tree, ["height", "width", "age"]))
    |--- height <= 0.46
    |   |--- class: a
    |--- height >  0.46
    |   |--- age <= 0.27
    |   |   |--- class: a
    |   |--- age >  0.27
    |   |   |--- class: b
    >>> tree.feature_importances_.argsort()[::-1]
    array([0, 2, 1])
    """

    _shapes = f"""
        classes_ (c) labels  _numeric_ (p) int fill -1  _categorical_ (q) int  {shapes_of_pools("_pools_")}
        _categories_.values (v)  _categories_._table (2*v, 3) int
    """

    _allowed = parameters(
        leaf=(
            *LEAVES,
            with_methods("a classifier with partial_fit and predict_proba", "partial_fit", "predict_proba"),
        )
    )

    grace_period: int = 200
    delta: float = 1e-3
    tie_threshold: float = 0.05
    _: KW_ONLY
    splitter: str = "normal"
    new_feature_penalty: float = 0.0

    # -- learning ------------------------------------------------------------------------------------------

    @property
    def _has_third_party_parts(self) -> bool:
        return self._own_ is not None and is_third_party(self.leaf)

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        super()._initialize(n_features, names)
        n_edges = int(self.n_cuts) if self.splitter == "quantiles" else 0
        self._pools_ = Pools(len(self._numeric_), len(self._categorical_), len(self.classes_), n_edges)
        self._own_: LeafClassifiers | None = (
            None if isinstance(self.leaf, str) else LeafClassifiers(self.leaf)
        )

    def _columns_in_use(self) -> Ints:
        links = self._pools_.links
        return links[(links[:, Link.ALIVE] == 1) & (links[:, Link.LEFT] >= 0), Link.FEATURE]

    def _check_trees(self) -> None:
        check_trees(self._pools_, self._pools_.state[[State.ROOT]], len(self._numeric_), self._categories_)

    def _learn(self, rows: Floats, codes: Ints) -> None:
        numbers, cells = self._encode(rows, learn=True)
        self._learn_encoded(rows, numbers, cells, codes)

    def _learn_encoded(self, rows: Array, numbers: Array, cells: Array, codes: Array) -> None:
        pools, own, rules, at = self._pools_, self._own_, self._split_options(), 0
        births = np.empty(len(codes), dtype=np.int64)
        while at < len(codes) or pools.state[State.PENDING]:
            start = at
            at = learn(pools.arrays(), numbers, cells, codes, start, _NO_GUESSES, births, rules)
            if own is not None:
                own.train(births[start:at], rows[start:at], codes[start:at], len(self.classes_))
            if pools.state[State.PENDING]:
                pools.make_room()
            elif own is not None:
                own.inherit(pools)

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        mode = MAJORITY if self._own_ is not None else LEAVES.index(self.leaf)
        predict_votes(self._pools_.arrays(), numbers, cells, mode, votes)
        if self._own_ is not None:
            self._own_.votes(self._births(numbers, cells), rows, votes)

    def _births(self, numbers: Array, cells: Array) -> Ints:
        leaves = np.empty(len(numbers), dtype=np.int64)
        find_leaves(self._pools_.arrays(), numbers, cells, False, leaves)
        return self._pools_.links[leaves, Link.BORN]

    def leaf_of(self, row: Any) -> Any:
        """Return the classifier of the leaf that a row reaches, if leaves have classifiers.

        Parameters
        ----------
        row : array-like of shape (n_features,)

        Returns
        -------
        classifier or None
            None if leaves have no classifiers, or if no row has reached the leaf yet. It was trained with the positions
            of the labels in `classes_`.
        """
        check_is_fitted(self)
        rows = self._check_range(self._rows(np.asarray(row, dtype=np.float64)[None, :], False))
        if self._own_ is None:
            return None
        return self._own_.classifier_of(int(self._births(*self._encode(rows, learn=False))[0]))

    @property
    def nodes_(self) -> list[Node]:
        """The nodes of the tree, each before its children, without alternate trees."""
        check_is_fitted(self)
        return node_records(
            self._pools_, self._categories_, np.concatenate([self._numeric_, self._categorical_])
        )

    @property
    def n_nodes_(self) -> int:
        """Number of nodes, without alternate trees."""
        return len(self.nodes_)

    @property
    def n_leaves_(self) -> int:
        """Number of leaves, without alternate trees."""
        return sum(node.feature is None for node in self.nodes_)

    @property
    def depth_(self) -> int:
        """Number of splits above the deepest leaf."""
        return max(node.depth for node in self.nodes_)

    @property
    def feature_importances_(self) -> Floats:
        """Merit times weight of the splits, summed by feature; the sum is 1, or 0 while there is no split."""
        return importances(self.nodes_, self.n_features_in_)


class AlternateTreeBase(HoeffdingTree):
    """Base class of trees whose splits may be replaced with alternate trees."""

    adapts_itself = True  # see `tamis.learners.traits`

    @property
    def n_alternates_started_(self) -> int:
        """Number of alternate trees started so far."""
        return int(self._pools_.state[State.STARTED])

    @property
    def n_alternates_replaced_(self) -> int:
        """Number of alternate trees that have replaced a split so far."""
        return int(self._pools_.state[State.REPLACED])

    @property
    def n_alternates_dropped_(self) -> int:
        """Number of alternate trees dropped so far, because they were worse or outdated."""
        return int(self._pools_.state[State.DROPPED])


@dataclass(repr=False, eq=False, kw_only=True)
class HoeffdingAdaptiveTree(AlternateTreeBase):
    """A Hoeffding tree that detects and replaces outdated subtrees by their errors (HAT).

    Each split has an ADWIN on the errors of the rows that pass it. When these errors rise, an alternate tree is
    started. It replaces the split once its error rate is significantly lower.

    Parameters
    ----------
    grace_period, delta, tie_threshold, leaf, n_cuts, splitter, categorical, binary_splits, max_depth, max_nodes
        As in :class:`HoeffdingTree`. A `leaf` classifier starts unfitted in alternate trees.
    new_feature_penalty : float in [0, 1), default=0
        As in :class:`HoeffdingTree`. The splits of alternate trees count as well.
    bootstrap : bool, default=True
        Whether a row counts a Poisson(1) number of times, at least once, as in the published programs. This is 1.37
        times on average, so trees grow, and recover from drifts, faster.
    random_state : int, at least 0, default=0
        Seed of `bootstrap`.

    Attributes
    ----------
    n_alternates_started_, n_alternates_replaced_, n_alternates_dropped_ : int
        Number of alternate trees started, promoted to replace a split, and dropped.
    n_nodes_, n_leaves_, depth_, nodes_, feature_importances_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`HoeffdingTree`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.

    Notes
    -----
    As for :class:`HoeffdingTree`. A split needs 5 kB more for its ADWIN, and a row some 50 ns for each split it passes.
    Leaves with classifiers learn row by row in Python, because each row is predicted before it is learned.

    References
    ----------
    Bifet, Gavalda (2009). Adaptive learning from evolving data streams. IDA. Equation (1) of `adaptive.py`.

    Examples
    --------
    Feature 0 determines the class, and feature 1 from row 6000 on:

    >>> import numpy as np
    >>> from tamis import HoeffdingAdaptiveTree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(12000, 3))
    >>> y = np.where(np.arange(12000) < 6000, X[:, 0] > 0.5, X[:, 1] > 0.5).astype(int)
    >>> tree = HoeffdingAdaptiveTree().fit(X[:6000], y[:6000])
    >>> tree.feature_importances_.argmax()
    np.int64(0)
    >>> tree = tree.partial_fit(X[6000:], y[6000:])
    >>> tree.feature_importances_.argmax(), tree.n_alternates_replaced_ > 0
    (np.int64(1), True)
    """

    bootstrap: bool = parameter(True, False, default=True)
    random_state: int = parameter(SEED[0], default=0)

    def _split_options(self, **_: Any) -> SplitOptions:
        return super()._split_options(watched=True, seed=int(self.random_state) if self.bootstrap else -1)

    def _learn_encoded(self, rows: Array, numbers: Array, cells: Array, codes: Array) -> None:
        if self._own_ is None:
            super()._learn_encoded(rows, numbers, cells, codes)
            return
        for i in range(len(codes)):
            part = slice(i, i + 1)
            self._learn_row(self._own_, rows[part], numbers[part], cells[part], codes[part])

    def _learn_row(
        self, own: LeafClassifiers, rows: Array, numbers: Array, cells: Array, codes: Array
    ) -> None:
        """Predict a row with the classifiers of its leaves, then learn it."""
        pools, at = self._pools_, 0
        leaves = np.empty(len(pools.links), dtype=np.int64)
        leaves = leaves[: find_leaves(pools.arrays(), numbers, cells, True, leaves)]
        births = pools.links[leaves, Link.BORN]
        guesses = np.full(len(pools.links), -1)
        guesses[leaves] = own.guess(births, rows, pools.weights[leaves])
        before = pools.state[[State.BIRTHS, State.LIVE]]
        while at < 1 or pools.state[State.PENDING]:
            at = learn(
                pools.arrays(),
                numbers,
                cells,
                codes,
                at,
                guesses,
                np.empty_like(codes),
                self._split_options(),
            )
            if pools.state[State.PENDING]:
                pools.make_room()
        for birth in births:
            own.train(births[births == birth], rows, codes, len(self.classes_))
        if (pools.state[[State.BIRTHS, State.LIVE]] != before).any():
            own.inherit(pools)
