"""Any scikit-learn classifier as the decision model, trained on rows in which only the acquired values are known.

A row is used at several steps of its walk, for example with one and with three known values, the others NaN (or the
mean, for a classifier that does not accept missing values). One classifier thus provides probabilities at every step::

    log P(c | x_S) = log P(c) + b log(P'(c | x_S) / P(c)) + const                                    (1)

P' is the classifier's probability, S the acquired columns, and b the weight of its evidence, fitted to held-out rows as
in :mod:`tamis.cells.discriminant`: an overconfident classifier gets a smaller weight.

The default boosted trees are those of :mod:`tamis.cells.small_trees`. The trees of scikit-learn are used, as plain
arrays, if the user passes ``HistGradientBoostingClassifier`` as the classifier, and to find columns that are only
jointly relevant. The nodes of all fitted trees are concatenated; a leaf is its own child. A row goes left if its value
is at most the threshold; missing values follow the default direction of the node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import get_tags

from tamis._guard import limited_threads
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Rows
from tamis.cells.bins import in_order, indicators
from tamis.cells.discriminant import posterior_of

# -- gradient boosting of scikit-learn as arrays -----------------------------------------------------------


@njit(strict=True)
def _add_trees(
    X: Array, root: Array, output: Array, feature: Array, threshold: Array, missing_left: Array, left: Array,
    right: Array, value: Array, raw: Array,
) -> None:  # fmt: skip
    """Add the leaf value of each row in each tree to that tree's output."""
    for i in range(len(X)):
        for t in range(len(root)):
            at = root[t]
            while left[at] != at:
                x = X[i, feature[at]]
                goes_left = missing_left[at] if np.isnan(x) else x <= threshold[at]
                at = left[at] if goes_left else right[at]
            raw[i, output[t]] += value[at]


class Trees:
    """Fitted trees of scikit-learn's gradient boosting as plain arrays, with reproducible bits for a single row.

    Parameters
    ----------
    model : fitted HistGradientBoostingClassifier
    """

    # State:
    #   _start      (n_outputs,) float64 raw prediction before the first tree
    #   _root, _output (T,)     int64    first node of each tree, and its output
    #   _feature, _threshold, _missing_left, _left, _right, _value (N,)  the nodes

    def __init__(self, model: Any) -> None:
        trees = [tree.nodes for trees in model._predictors for tree in trees]
        first = np.cumsum([0, *map(len, trees)])
        nodes = np.concatenate(trees)
        own, leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
        shift = np.repeat(first[:-1], np.diff(first))
        self._start = model._baseline_prediction.ravel()
        self._root, self._output = first[:-1], np.arange(len(trees)) % len(self._start)
        self._feature, self._threshold = nodes["feature_idx"].astype(np.int64), nodes["num_threshold"].copy()
        self._missing_left = nodes["missing_go_to_left"].astype(bool)
        self._left = np.where(leaf, own, nodes["left"].astype(np.int64) + shift)
        self._right = np.where(leaf, own, nodes["right"].astype(np.int64) + shift)
        self._value = nodes["value"].copy()

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probabilities of the classes of the model."""
        raw = np.tile(self._start, (len(X), 1))
        _add_trees(
            X, self._root, self._output, self._feature, self._threshold, self._missing_left, self._left,
            self._right, self._value, raw,
        )  # fmt: skip
        if raw.shape[1] == 1:  # two classes share one output
            raw = np.column_stack([np.zeros(len(raw)), raw])
        p: Floats = np.exp(raw - raw.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return p


def columns_by_gain(X: Rows, y: Array, random_state: int | None) -> Ints:
    """Return the columns that trees split on, largest gain first, including columns that are only jointly relevant."""
    rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    there = np.flatnonzero(~np.isnan(rows).all(axis=0))
    with limited_threads(rows.size):
        model = HistGradientBoostingClassifier(random_state=random_state).fit(rows[:, there], y)
    nodes = np.concatenate([tree.nodes for trees in model._predictors for tree in trees])
    nodes = nodes[nodes["is_leaf"] == 0]
    gain = np.bincount(nodes["feature_idx"], np.maximum(nodes["gain"], 0.0), len(there))
    return there[np.argsort(-gain, kind="stable")[: np.count_nonzero(gain)]]


_SNAPSHOTS = 5  # snapshots of each row: more would overweight single rows of small data
_FEW = 20  # a column known in fewer rows is omitted
_LEAST = 1e-12  # lower bound on the probability of a class


class Masked:
    """Probabilities of the classes by a classifier, from any of the columns.

    Parameters
    ----------
    classifier : scikit-learn classifier with `predict_proba`
    n_classes : int

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 2))
    >>> X[:, 1] += 3 * y
    >>> model = Masked(LogisticRegression(), 2).fit(X, y)
    >>> np.exp(model.evidence(np.array([[0.0, 3.0]]))[:, 0, 1]).round(1)  # times its prior odds
    array([1. , 1. , 1.8])
    """

    # State after fit:
    #   _known   (K,)   bool     columns known in enough rows; only these are used
    #   _sizes   (K,)   int64    number of categories of each column, 0 for numbers
    #   _means   (K',)  float64  of each number and indicator, replace missing ones; NaN if the classifier accepts these
    #   _classes (L',)  int64    classes observed
    #   _fitted                  Trees, or the classifier

    def __init__(self, classifier: Any, n_classes: int) -> None:
        self.classifier, self.n_classes, self.evidence_weight = classifier, n_classes, 1.0
        self.prior: Floats = np.full(n_classes, 1.0 / n_classes)
        self._known, self._means = np.zeros(0, dtype=bool), np.zeros(0)
        self._sizes = np.zeros(0, dtype=np.int64)
        self._classes = np.zeros(0, dtype=np.int64)
        self._fitted: Any = None

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return len(self._known)

    def fit(
        self, values: Floats, y: Array, order: Array | None = None, sizes: Ints | None = None,
        *, complete: bool = False,
    ) -> Masked:  # fmt: skip
        """Fit to rows.

        Parameters
        ----------
        values : ndarray of shape (n_rows, K)
            NaN where missing.
        y : ndarray of shape (n_rows,), int
        order : ndarray of shape (n_rows, n_steps), int, optional
            The columns in the order in which they become known in each row, -1 for none; by default all in order.
        sizes : ndarray of shape (K,), int, optional
            Number of categories of each column, encoded as one indicator each; 0 for numeric columns (the default).
        complete : bool
            Whether to fit to complete rows, for a classifier that predicts complete rows only.
        """
        n, K = values.shape
        self._sizes = np.zeros(K, dtype=np.int64) if sizes is None else sizes
        self.prior = np.bincount(y, minlength=self.n_classes) / len(y)
        rows, snapshots = np.arange(n), np.asarray(values, dtype=np.float64)
        if not complete:
            rows, snapshots = walk_snapshots(snapshots, order)
        # Boosting holds out rows for validation, so a column known in few rows may be missing in all others.
        enough = max(1, min(_FEW, len(snapshots) // 100))
        self._known = np.asarray((~np.isnan(snapshots)).sum(axis=0) >= enough)
        model = clone(self.classifier)
        expanded = indicators(values, self._sizes)
        self._means = np.full(expanded.shape[1], np.nan)
        if not get_tags(model).input_tags.allow_nan:
            there = ~np.isnan(expanded)
            self._means = np.where(there, expanded, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        if not self._known.any() or len(np.unique(y)) < 2:
            self._known[:] = False
            return self
        imputed = self._impute(snapshots)
        with limited_threads(imputed.size):
            model.fit(imputed, y[rows])
        self._classes = np.asarray(model.classes_, dtype=np.int64)
        self._fitted = Trees(model) if type(model) is HistGradientBoostingClassifier else model
        return self

    def partial_fit(self, values: Floats, y: Array, fading: float) -> Masked:
        """Return the model unchanged, since a classifier is fitted once."""
        return self

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class, cumulated over its columns, unweighted.

        Parameters and return value as for :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        values = np.asarray(values, dtype=np.float64)
        order = in_order(values) if order is None else order
        evidence = np.zeros((order.shape[1] + 1, len(values), self.n_classes))
        seen, rows = np.full(values.shape, np.nan), np.arange(len(values))
        for s in range(order.shape[1]):
            new = rows[order[:, s] >= 0]
            seen[new, order[new, s]] = values[new, order[new, s]]
            evidence[s + 1] = evidence[s]
            new = new[~np.isnan(values[new, order[new, s]])]
            if len(new) and self._known.any():
                evidence[s + 1, new] = np.log(self._probability(seen[new])) - self._base()
        return evidence

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (1)."""
        known = ~np.isnan(values[:, self._known]).all(axis=1)
        evidence = np.zeros((len(values), self.n_classes))
        if known.any():
            evidence[known] = np.log(self._probability(values[known])) - self._base()
        return posterior_of(evidence, self.prior, self.evidence_weight)

    def _base(self) -> Floats:
        return np.log(np.maximum(self.prior, _LEAST))

    def _probability(self, seen: Floats) -> Floats:
        probability = np.full((len(seen), self.n_classes), _LEAST)
        probability[:, self._classes] = np.maximum(self._fitted.predict_proba(self._impute(seen)), _LEAST)
        return probability

    def _impute(self, seen: Floats) -> Floats:
        rows = indicators(seen, self._sizes)
        known = np.repeat(self._known, np.maximum(self._sizes, 1))
        return np.where(np.isnan(rows), self._means, rows)[:, known]


def check_classifier(classifier: Any, may_decide: bool, needed: str) -> None:
    """Reject a classifier that cannot decide, or that would not be used."""
    if classifier is None:
        return
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"classifier={classifier!r} has no predict_proba: give a classifier with probabilities."
        )
    if not may_decide:
        raise ValueError(f"classifier={classifier!r} would not be used: it needs {needed}.")


def walk_snapshots(values: Floats, order: Array | None, most: int = _SNAPSHOTS) -> tuple[Ints, Floats]:
    """Return rows at several steps of their walks: the row index, and the values known then (otherwise NaN)."""
    n, K = values.shape
    order = in_order(values) if order is None else order
    n_steps = order.shape[1]
    n_snapshots = min(n_steps, most, _SNAPSHOTS)
    rows = np.repeat(np.arange(n), n_snapshots)
    turn = np.tile(np.arange(n_snapshots), n)  # different steps for each row, all equally often
    n_known = (rows + turn * n_steps // max(n_snapshots, 1)) % n_steps + 1 if n_steps else rows
    known = (np.arange(n_steps) < n_known[:, None]) & (order[rows] >= 0)
    taken, steps = np.nonzero(known)
    at = order[rows[taken], steps]
    snapshots = np.full((len(rows), K), np.nan)
    snapshots[taken, at] = values[rows[taken], at]
    return rows, snapshots
