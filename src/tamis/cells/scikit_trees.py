"""Gradient boosting of scikit-learn: the fitted trees as plain arrays, and the columns that they split on.

The default boosted trees are those of :mod:`tamis.cells.small_trees`. The trees of scikit-learn are used if the user
passes ``HistGradientBoostingClassifier`` as the classifier, and to find columns that are only jointly relevant. The
nodes of all fitted trees are concatenated; a leaf is its own child. A row goes left if its value is at most the
threshold; missing values follow the default direction of the node.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array, Rows

__all__ = ["Trees", "columns_by_gain", "limited_threads"]

Floats = NDArray[np.float64]
_SMALL = 500_000  # cells up to which boosting uses one thread


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


def limited_threads(rows: Array) -> AbstractContextManager[object]:
    """Return a context in which boosting uses one thread for small data, where several threads would be slower."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1 if rows.size < _SMALL else None, "openmp")


def columns_by_gain(X: Rows, y: Array, random_state: int | None) -> NDArray[np.int64]:
    """Return the columns that trees split on, largest gain first, including columns that are only jointly relevant."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    there = np.flatnonzero(~np.isnan(rows).all(axis=0))
    with limited_threads(rows):
        model = HistGradientBoostingClassifier(random_state=random_state).fit(rows[:, there], y)
    nodes = np.concatenate([tree.nodes for trees in model._predictors for tree in trees])
    nodes = nodes[nodes["is_leaf"] == 0]
    gain = np.bincount(nodes["feature_idx"], np.maximum(nodes["gain"], 0.0), len(there))
    return there[np.argsort(-gain, kind="stable")[: np.count_nonzero(gain)]]
