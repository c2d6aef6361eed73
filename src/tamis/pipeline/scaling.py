"""Standardisation of features for a learner, by the mean and standard deviation of all rows before each batch.

    z_j = min(max((x_j - m_j) / s_j, -5), 5)      m_j, s_j: mean and standard deviation of all rows before       (1)

The steps of an online linear model are proportional to the feature values: without scaling, the feature with the
largest values dominates. CSR rows are divided by s_j and stay sparse. A feature that has been constant so far has
s_j = 1, and the limit of 5 prevents its first other value from undoing what was learned about all other features.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._deferred import is_instance
from tamis._kernels import njit
from tamis._validation import Array, Rows
from tamis.learners.reset import ResetOnDrift
from tamis.summaries.class_moments import ClassMoments

__all__ = ["LIMIT", "RunningScale", "bounded", "wants_scale"]

LIMIT = 5.0
_LINEAR = (
    "Perceptron",
    "SGDClassifier",
    "PassiveAggressiveClassifier",
    "SGDRegressor",
    "PassiveAggressiveRegressor",
)


@njit(strict=True)
def bounded(z: float) -> float:
    """Return z within the limit; NaN and infinity are kept, for the learner to reject."""
    return min(max(z, -LIMIT), LIMIT) if abs(z) < np.inf else z


@njit(strict=True)
def _standardise(X: Any, shift: Any, factor: Any, scaled: Any) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            scaled[i, j] = bounded((X[i, j] - shift[j]) * factor[j])


def wants_scale(learner: Any) -> bool:
    """Return whether a learner depends on the scale of features: linear models, River's neighbours.

    A learner that is already fitted was trained on its own scale, and keeps it.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from sklearn.naive_bayes import GaussianNB
    >>> wants_scale(Perceptron()), wants_scale(GaussianNB())
    (True, False)
    """
    if hasattr(learner, "classes_") or hasattr(learner, "coef_"):
        return False
    if isinstance(learner, ResetOnDrift):
        return wants_scale(learner.new_estimator())
    stated = getattr(learner, "wants_scale", None)
    return is_instance(learner, "sklearn.linear_model", *_LINEAR) if stated is None else bool(stated)


class RunningScale:
    """Running mean and standard deviation of each feature, to scale the next batch.

    NaN is ignored by `update` and kept by `transform`. Memory: 48 bytes per feature.

    Parameters
    ----------
    n_features : int

    Attributes
    ----------
    shift, factor : ndarray of shape (n_features,), float64
        m and 1 / s of (1).

    Examples
    --------
    >>> scale = RunningScale(2)
    >>> scale.update(np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> scale.transform(np.array([[4.0, 8.0], [1e6, 7.0]]))
    array([[2., 1.],
           [5., 0.]])
    """

    def __init__(self, n_features: int) -> None:
        self.moments = ClassMoments(n_features, 1)
        self.shift, self.factor = np.zeros(n_features), np.ones(n_features)

    def update(self, X: Rows) -> None:
        """Update with a batch; a batch with infinite values is ignored."""
        if self.moments.update(X, np.zeros(X.shape[0], dtype=np.int64)):
            deviation = np.sqrt(self.moments.variance()[0])
            self.shift = self.moments.mean()[0]
            self.factor = np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0.0)

    def of(self, columns: NDArray[np.intp]) -> RunningScale:
        """Return the current scale of some features."""
        result = copy(self)
        result.shift, result.factor = self.shift[columns], self.factor[columns]
        return result

    def transform(self, X: Rows) -> Rows:
        """Return the scaled rows (1).

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
        """
        shift, factor = self.shift, self.factor
        if sp.issparse(X):
            scaled: Rows = X.astype(np.float64)
            cells = scaled.data * factor[scaled.indices]
            scaled.data = np.where(np.isfinite(cells), np.clip(cells, -LIMIT, LIMIT), cells)
            return scaled
        result: Array = np.empty(X.shape)
        _standardise(X, shift, factor, result)
        return result
