"""Standardisation of the columns for a learner, by the mean and the deviation of the rows before each batch.

    z_j = min(max((x_j - m_j) / s_j, -5), 5)      m_j, s_j: mean and standard deviation of all rows before       (1)

A linear model that learns row by row takes steps in proportion to the values: raw columns of unlike sizes leave it with
the largest one alone. CSR rows are divided by s_j and stay sparse. A column that has been constant so far has s_j = 1,
and 5 is the limit, lest the first other value of such a column undo what was learned of all others.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import (
    PassiveAggressiveClassifier,
    PassiveAggressiveRegressor,
    Perceptron,
    SGDClassifier,
    SGDRegressor,
)

from tamis._kernels import njit
from tamis._validation import Array, Rows
from tamis.learners.reset import ResetOnDrift
from tamis.summaries.class_moments import ClassMoments

__all__ = ["LIMIT", "RunningScale", "bounded", "wants_scale"]

LIMIT = 5.0
_LINEAR = (Perceptron, SGDClassifier, PassiveAggressiveClassifier, SGDRegressor, PassiveAggressiveRegressor)


@njit(strict=True)
def bounded(z: float) -> float:
    """Return z within the limit; NaN and infinity stay, for the learner to refuse."""
    return min(max(z, -LIMIT), LIMIT) if abs(z) < np.inf else z


@njit(strict=True)
def _standardise(X: Any, shift: Any, factor: Any, scaled: Any) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            scaled[i, j] = bounded((X[i, j] - shift[j]) * factor[j])


def wants_scale(learner: Any) -> bool:
    """Return whether the scale of a column decides what a learner makes of it: linear models, River's neighbours.

    One that was fitted before has its own idea of the scale, and keeps it.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> wants_scale(Perceptron()), wants_scale(GaussianNB())
    (True, False)
    """
    if hasattr(learner, "classes_") or hasattr(learner, "coef_"):
        return False
    if isinstance(learner, ResetOnDrift):
        return wants_scale(learner.new_estimator())
    stated = getattr(learner, "wants_scale", None)
    return isinstance(learner, _LINEAR) if stated is None else bool(stated)


class RunningScale:
    """Mean and standard deviation of each column of the rows so far, to scale the next ones by.

    NaN is passed over in what is learned, and stays NaN. Memory: 48 bytes per column.

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
        """Learn from rows; infinite ones change nothing."""
        if self.moments.update(X, np.zeros(X.shape[0], dtype=np.int64)):
            deviation = np.sqrt(self.moments.variance()[0])
            self.shift = self.moments.mean()[0]
            self.factor = np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0.0)

    def of(self, columns: NDArray[np.intp]) -> RunningScale:
        """Return the scale of some columns as it is now."""
        result = copy(self)
        result.shift, result.factor = self.shift[columns], self.factor[columns]
        return result

    def transform(self, X: Rows) -> Rows:
        """Return rows scaled (1).

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
