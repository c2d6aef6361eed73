"""Gradient boosting over the values bought so far, whichever they are; its trees are plain arrays, so it is saved.

scikit-learn grows the trees. What it learned is copied out of it: the nodes of all trees under one another, a leaf
being its own child. A row goes left where its value is at most the threshold, a missing one where the node says.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._jit import njit

__all__ = ["Booster", "Trees", "boosted", "few_threads", "most_gain"]

Floats = NDArray[np.float64]
_RECORDS = 60_000  # rows that it learns from
_LEAF = 40  # rows
_SMALL = 500_000  # cells up to which boosting has one thread


@njit()
def _add_trees(
    X: Array, root: Array, output: Array, feature: Array, threshold: Array, missing_left: Array, left: Array,
    right: Array, value: Array, raw: Array,
) -> None:  # fmt: skip
    """Add the leaf that each row comes to in each tree to that tree's output."""
    for i in range(len(X)):
        for t in range(len(root)):
            at = root[t]
            while left[at] != at:
                x = X[i, feature[at]]
                goes_left = missing_left[at] if np.isnan(x) else x <= threshold[at]
                at = left[at] if goes_left else right[at]
            raw[i, output[t]] += value[at]


class Trees:
    """What scikit-learn's gradient boosting learned, as plain arrays: to be saved, with the same bits for a row alone.

    Parameters
    ----------
    model : fitted HistGradientBoostingClassifier
    """

    # State:
    #   _start      (n_outputs,) float64 raw prediction before the first tree
    #   _root, _output (T,)     int64    first node of each tree, and what it adds to
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
        """Return the probabilities of the classes that it knows."""
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


class Booster:
    """Gradient boosting over the values bought and what the tree of features makes of them.

    Parameters
    ----------
    n_classes : int
    random_state : int, optional
    """

    # State, after fit:
    #   _known      (K,)        bool     columns bought in enough rows; only these are looked at
    #   _classes    (L',)       int64    classes met
    #   _trees                  Trees

    def __init__(self, n_classes: int, random_state: int | None) -> None:
        self.n_classes, self.random_state = n_classes, random_state

    def fit(self, numbers: Floats, believed: Floats, y: Array) -> None:
        """Learn from walks, each step a row; values not bought are NaN."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        if len(y) > _RECORDS:
            rows = np.linspace(0, len(y) - 1, _RECORDS).astype(np.int64)
            numbers, believed, y = numbers[rows], believed[rows], y[rows]
        # A column known in fewer rows than a leaf has cannot be split; one never bought has nothing to be binned by.
        self._known = (~np.isnan(numbers)).sum(axis=0) >= _LEAF
        model = HistGradientBoostingClassifier(
            max_iter=150, min_samples_leaf=_LEAF, l2_regularization=1.0, random_state=self.random_state
        )
        given = self._rows(numbers, believed)
        with few_threads(given):
            model.fit(given, y)
        self._classes, self._trees = model.classes_.astype(np.int64), Trees(model)

    def posterior(self, numbers: Floats, believed: Floats) -> Floats:
        """Return P(class) of each row; the tree's where nothing was bought."""
        found = believed.copy()
        bought = np.flatnonzero(~np.isnan(numbers).all(axis=1))
        found[bought] = 0.0
        given = self._rows(numbers[bought], believed[bought])
        found[bought[:, None], self._classes] = self._trees.predict_proba(given)
        return found

    def _rows(self, numbers: Floats, believed: Floats) -> Floats:
        return np.column_stack([numbers[:, self._known], np.log(np.maximum(believed, 1e-9))])


def boosted(
    posterior: Floats, numbers: Floats, y: Array, fold: Array, random_state: int | None
) -> tuple[Floats, Booster]:
    """Return the posteriors of boosting at each step, each row's by a model that has not seen it, and one of all rows.

    Parameters
    ----------
    posterior, numbers : ndarray of shape (n_steps, n_rows, n_classes) and (n_steps, n_rows, K)
        What the tree of features believed at each step of each walk, and the values bought so far.
    y, fold : ndarray of shape (n_rows,), int
    """
    n_steps, n, n_classes = posterior.shape
    seen = np.arange(n_steps * n).reshape(n_steps, n)
    believed, known, label = (
        posterior.reshape(-1, n_classes),
        numbers.reshape(n_steps * n, -1),
        np.tile(y, n_steps),
    )
    found = believed.copy()
    for held in np.unique(fold):
        others, rows = seen[:, fold != held].ravel(), seen[:, fold == held].ravel()
        booster = Booster(n_classes, random_state)
        booster.fit(known[others], believed[others], label[others])
        found[rows] = booster.posterior(known[rows], believed[rows])
    booster = Booster(n_classes, random_state)
    booster.fit(known, believed, label)
    return found.reshape(posterior.shape), booster


def few_threads(rows: Array) -> AbstractContextManager[object]:
    """Return a context in which boosting has one thread if there are few cells: more would wait for each other only."""
    from threadpoolctl import threadpool_limits

    limit: AbstractContextManager[object] = threadpool_limits(1 if rows.size < _SMALL else None, "openmp")
    return limit


def most_gain(X: Rows, y: Array, random_state: int | None) -> NDArray[np.int64]:
    """Return the columns that trees split on, those of most gain first: also such as tell only beside others."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    there = np.flatnonzero(~np.isnan(rows).all(axis=0))
    with few_threads(rows):
        model = HistGradientBoostingClassifier(random_state=random_state).fit(rows[:, there], y)
    nodes = np.concatenate([tree.nodes for trees in model._predictors for tree in trees])
    nodes = nodes[nodes["is_leaf"] == 0]
    gain = np.bincount(nodes["feature_idx"], np.maximum(nodes["gain"], 0.0), len(there))
    found: NDArray[np.int64] = there[np.argsort(-gain, kind="stable")[: np.count_nonzero(gain)]]
    return found
