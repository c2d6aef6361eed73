"""Selectors that train one weight vector for two classes, and one per class for more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._kernels import njit
from tamis._validation import Array, checked
from tamis.rows.incremental_classes import IncrementalClasses

__all__ = ["LinearClasses", "row_margin"]


@njit(strict=True)
def row_margin(
    weights: Array, columns: Array, cells: Array, wide: bool, slot: int
) -> tuple[float, int, int, float]:
    """Return y w.x, the vector that takes the step, that of the opposite step (-1: none), and the scale of the step.

    The cells of a wide row are indexed by column, those of other rows are aligned with `columns`.
    """
    ahead, best, rival = 0.0, -math.inf, -1
    for c in range(weights.shape[0]):
        score = 0.0
        for i in range(columns.shape[0]):
            score += weights[c, columns[i]] * cells[columns[i] if wide else i]
        if c == slot or weights.shape[0] == 1:
            ahead = score
        elif score > best:
            best, rival = score, c
    if weights.shape[0] == 1:
        y = 1.0 if slot == 0 else -1.0
        return y * ahead, 0, -1, y
    return ahead - best, slot, rival, 0.5


class LinearClasses(IncrementalClasses):
    """A selector with a linear classifier: w for two classes; from the third on w / 2, -w / 2 and one from 0.

    `_weights` of shape (1, n_features) or (n_classes, n_features) are in the order in which the classes appeared.
    """

    _weights: Array

    def _add_class(self, code: int) -> None:
        self._order = np.append(self._order, code)
        if self._order.shape[0] == 3:
            self._weights = np.vstack((0.5 * self._weights, -0.5 * self._weights))
        if self._order.shape[0] >= 3:
            self._weights = np.vstack((self._weights, np.zeros_like(self._weights[:1])))

    def _coefficients(self) -> Array:
        """Return the weights in the form used for predictions."""
        return self._weights

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the classifier, which uses the selected features only.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            With up to two classes, positive means ``classes_[1]``. With three or more there is one column per class,
            and the largest wins; a class that was declared but never seen gets -inf.
        """
        check_is_fitted(self)
        X = validate_data(self, checked(X), reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        scores = X @ self._coefficients().T
        n_classes = self.classes_.shape[0]
        if n_classes <= 2:
            return np.asarray(scores[:, 0] if self._order[0] == 1 else -scores[:, 0])
        if self._weights.shape[0] == 1:
            scores = np.hstack((0.5 * scores, -0.5 * scores))[:, : self._order.shape[0]]
        columns = np.full((X.shape[0], n_classes), -np.inf)
        columns[:, self._order] = scores
        return columns

    def predict(self, X: Any) -> Array:
        """Return the class with the largest score for each row, shape (n_rows,)."""
        scores = self.decision_function(X)
        last = self.classes_.shape[0] - 1
        winner = scores.argmax(axis=1) if scores.ndim == 2 else np.minimum(scores > 0, last)
        labels: Array = self.classes_[winner]
        return labels
