"""Peers of the classifiers that acquire values, and measures of their probabilities.

A CART acquires the columns on the path of a row. Its depth, from 0 on, has the smallest sum of misclassification
costs and prices in three folds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

__all__ = ["CART", "calibration_error", "log_loss", "roc_auc"]

Floats = NDArray[np.float64]


class CART:
    """A decision tree with the prices of the columns on each row's path.

    Parameters
    ----------
    cost : float or ndarray of shape (n_features,)
    misclassification_cost : ndarray of shape (n_classes, n_classes)
    max_depth : int
        Largest depth, and so number of values of a row.
    """

    def __init__(self, cost: Any, misclassification_cost: Floats, max_depth: int = 8) -> None:
        self.cost, self.Q, self.max_depth = cost, misclassification_cost, max_depth

    def fit(self, X: Floats, y: NDArray[np.int64]) -> CART:
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        losses = np.zeros(self.max_depth + 1)
        for train, test in folds.split(X, y):
            for depth in range(len(losses)):
                self._grow(X[train], y[train], depth)
                decided = (self.predict_proba(X[test]) @ self.Q).argmin(axis=1)
                losses[depth] += float((self.Q[y[test], decided] + self.cost_).sum())
        self._grow(X, y, int(losses.argmin()))
        return self

    def _grow(self, X: Floats, y: NDArray[np.int64], depth: int) -> None:
        self._prior = np.bincount(y, minlength=len(self.Q)) / len(y)
        self._tree = None
        if depth:
            self._tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=5, random_state=0).fit(X, y)

    def predict_proba(self, X: Floats) -> Floats:
        """Return P(class), and set `n_features_used_` and `cost_`; a missing value costs nothing."""
        if self._tree is None:
            self.n_features_used_, self.cost_ = np.zeros(len(X)), np.zeros(len(X))
            return np.tile(self._prior, (len(X), 1))
        asked = np.zeros(X.shape, dtype=bool)
        feature = self._tree.tree_.feature
        rows, nodes = self._tree.decision_path(X).nonzero()
        inside = feature[nodes] >= 0
        asked[rows[inside], feature[nodes[inside]]] = True
        asked &= ~np.isnan(X)
        self.n_features_used_ = asked.sum(axis=1)
        self.cost_ = asked @ np.broadcast_to(np.asarray(self.cost, dtype=np.float64), X.shape[1])
        posterior = np.zeros((len(X), len(self.Q)))
        posterior[:, self._tree.classes_] = self._tree.predict_proba(X)
        return posterior


def roc_auc(posterior: Floats, y: NDArray[np.int64]) -> float:
    """Return the area under the ROC curve of each class against the rest, weighted by its rows."""
    present = np.unique(y)
    if len(present) < 2:
        return float("nan")
    areas = [roc_auc_score(y == c, posterior[:, c]) for c in present]
    return float(np.average(areas, weights=np.bincount(y)[present]))


def log_loss(posterior: Floats, y: NDArray[np.int64]) -> float:
    """Return the mean negative logarithm of the probability of the class, at least 1e-6, in nats."""
    return float(-np.log(np.maximum(posterior[np.arange(len(y)), y], 1e-6)).mean())


def calibration_error(posterior: Floats, y: NDArray[np.int64], n_bins: int = 10) -> float:
    """Return the expected calibration error: the mean gap of confidence and accuracy in bins of equal width."""
    confidence, right = posterior.max(axis=1), posterior.argmax(axis=1) == y
    place = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(place, confidence - right, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(y))
