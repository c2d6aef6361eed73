"""Standardisation of features for a learner, by the mean and standard deviation of all rows before each batch.

    z_j = min(max((x_j - m_j) / s_j, -5), 5)      m_j, s_j: mean and standard deviation of all rows before       (1)

The steps of an online linear model are proportional to the feature values: without scaling, the feature with the
largest values dominates. CSR rows are divided by s_j and stay sparse. A feature that has been constant so far has
s_j = 1, and the limit of 5 prevents its first other value from undoing what was learned about all other features.

A linear model would treat the codes of categories as quantities. Before (1), a category is replaced by the mean target
of its rows before the batch, shrunk towards the mean of all rows with a prior weight of ten rows
(`tamis.base.row_encoder`). In the first batch no target is known, and every category gets the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._deferred import is_instance
from tamis._kernels import njit
from tamis._validation import Array, Floats, Rows
from tamis.base.row_encoder import PRIOR
from tamis.learners.reset import ResetOnDrift
from tamis.summaries.class_moments import ClassMoments

LIMIT = 5.0
_MOST_CATEGORIES = 1 << 16  # codes of a feature; larger ones get the mean of all rows
_LINEAR = (
    "Perceptron", "SGDClassifier", "PassiveAggressiveClassifier", "SGDRegressor", "PassiveAggressiveRegressor",
)  # fmt: skip


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

    NaN is ignored by `update` and kept by `transform`. Memory: 48 bytes per feature, 16 per category.

    Parameters
    ----------
    n_features : int
    categorical : sequence of int, optional
        Positions of the features whose values are category codes, in dense rows.

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

    _encoded: tuple[Rows, Rows] | None = None  # a batch, and its encoded rows, in a copy returned by `frozen`

    def __init__(self, n_features: int, categorical: Sequence[int] = ()) -> None:
        self.moments = ClassMoments(n_features, 1)
        self.shift: Floats = np.zeros(n_features)
        self.factor: Floats = np.ones(n_features)
        # For each categorical feature, (n_categories, 2): number of rows, sum of targets.
        self.tables: dict[int, Floats] = {int(j): np.zeros((0, 2)) for j in categorical}
        self.total: Floats = np.zeros(2)

    def learn_categories(self, X: Rows, target: Floats) -> None:
        """Learn the mean target of each category from labelled rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        target : ndarray of shape (n_rows,), float64
            Numbers, or :func:`tamis.base.row_encoder.class_targets` of class codes.
        """
        if not self.tables or sp.issparse(X):
            return
        self.total = self.total + np.array([len(target), target.sum()])
        tables = dict(self.tables)  # a frozen scale shares the current one
        for j, table in self.tables.items():
            known = (X[:, j] >= 0) & (X[:, j] < _MOST_CATEGORIES)
            codes = X[known, j].astype(np.intp)
            size = max(len(table), int(codes.max(initial=-1)) + 1)
            sums = np.bincount(codes, None, size), np.bincount(codes, target[known], size)
            grown: Floats = np.column_stack(sums).astype(np.float64)  # integers without any code
            grown[: len(table)] += table
            tables[j] = grown
        self.tables = tables

    def frozen(self, X: Rows) -> RunningScale:
        """Return a copy to predict a batch with: later updates do not change it, and it encodes the batch once.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
            The batch.
        """
        now = copy(self)
        now._encoded = (X, self.encode(X)) if self.tables else None
        return now

    def encode(self, X: Rows) -> Rows:
        """Return unscaled rows with mean targets in place of category codes."""
        if not self.tables or sp.issparse(X):
            return X
        if self._encoded is not None and self._encoded[0] is X:
            return self._encoded[1]
        encoded: Array = np.array(X, dtype=np.float64)
        mean = self.total[1] / max(self.total[0], 1.0)
        for j, (rows, sums) in ((j, table.T) for j, table in self.tables.items()):
            means = np.append((sums + PRIOR * mean) / (rows + PRIOR), mean)
            codes = encoded[:, j]
            known = (codes >= 0) & (codes < len(rows))
            values = means[np.where(known, codes, len(rows)).astype(np.intp)]
            encoded[:, j] = np.where(np.isnan(codes), np.nan, values)
        return encoded

    def update(self, X: Rows) -> None:
        """Update with a batch; a batch with infinite values is ignored."""
        X = self.encode(X)
        if self.tables and self.total[0] == 0.0 and isinstance(X, np.ndarray):
            X[:, list(self.tables)] = np.nan  # no target is known yet
        if self.moments.update(X, np.zeros(X.shape[0], dtype=np.int64)):
            deviation = np.sqrt(self.moments.variance()[0])
            self.shift = self.moments.mean()[0]
            self.factor = np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0.0)

    def widen(self, n_features: int) -> None:
        """Append features: they count as 0 in the CSR rows so far, and as missing in the dense ones."""
        more = n_features - len(self.shift)
        self.moments.widen(n_features, missing=True)
        self.shift = np.pad(self.shift, (0, more))
        self.factor = np.pad(self.factor, (0, more), constant_values=1.0)

    def forget(self, columns: NDArray[np.intp]) -> None:
        """Reset features; they count as in :meth:`widen`."""
        self.moments.forget(columns, missing=True)
        self.shift, self.factor = self.shift.copy(), self.factor.copy()
        self.shift[columns], self.factor[columns] = 0.0, 1.0

    def take(self, columns: NDArray[np.intp]) -> RunningScale:
        """Return the current scale of some features."""
        part = copy(self)
        part.shift, part.factor = self.shift[columns], self.factor[columns]
        part.tables = {at: self.tables[j] for at, j in enumerate(columns.tolist()) if j in self.tables}
        return part

    def transform(self, X: Rows) -> Rows:
        """Return the scaled rows (1).

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
        """
        X, shift, factor = self.encode(X), self.shift, self.factor
        if sp.issparse(X):
            scaled: Rows = X.astype(np.float64)
            cells = scaled.data * factor[scaled.indices]
            scaled.data = np.where(np.isfinite(cells), np.clip(cells, -LIMIT, LIMIT), cells)
            return scaled
        standardised: Array = np.empty(X.shape)
        _standardise(X, shift, factor, standardised)
        return standardised
