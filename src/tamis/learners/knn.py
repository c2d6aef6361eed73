"""WeightedKNN (kNN-FW): nearest neighbours among the last rows, in distances where features count as they tell now.

Barddal's thesis, section 7.1. Covered: Eq. 7.3 (as an option), 7.4, and the distance, with MOA's missing values.

===========  ===================  ================================================================================
thesis       here                 meaning
===========  ===================  ================================================================================
k            `n_neighbors`        rows that vote
W            `window`             rows among which the nearest are looked for
w            `score_window`       rows that the weights are counted from
w_i          `weights_`           weight of feature i
===========  ===================  ================================================================================

::

    d(a, b) = sqrt(sum_i w_i diff_i(a, b)^2)         diff_i: see :mod:`tamis.learners.neighbours`
    w_i = SU(X_i, Y)                                                                         (7.4)
    w_i = log2(classes) - H(Y|X_i)                                                           (7.3)

Errata and deviations, each with its reason:

* (7.3) gives a feature that tells nothing the weight log2(classes) - H(Y), not 0 where classes are not balanced. The
  information gain H(Y) - H(Y|X_i), which is the same where they are, is there as `weight="entropy"`.
* The thesis gives neither k nor W; here they are MOA's, 10 and 1000.
* Where all weights are 0, every row would be as near as any other: then they count as 1.
* Nothing is said of rows at the same distance: here the most recent is nearest. Of classes with as many votes the first
  is predicted.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._check import (
    Array,
    as_classes,
    as_column,
    as_rows,
    check_choice,
    check_number,
    columns_of,
    encode_labels,
    refuse_nonfinite,
)
from tamis.errors import DataError
from tamis.learners.class_counts import first_beyond
from tamis.learners.class_likelihoods import LARGEST
from tamis.learners.neighbours import Neighbours
from tamis.learners.weighting import WindowWeights

__all__ = ["WeightedKNN"]


class WeightedKNN(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Nearest neighbours among the last rows, with weights for the features.

    Parameters
    ----------
    n_neighbors : int, at least 1, default=10
        Rows that vote. As long as fewer are kept, all of them do.
    window : int, at least 1, default=1000
        Rows among which the nearest are looked for: the last.
    weight : {"su", "entropy", "entropy_thesis", None}, default="su"
        What a feature's weight is: its symmetrical uncertainty with the class, its information gain, Eq. 7.3 of the
        thesis, or 1: plain nearest neighbours.
    score_window : int, at least 2, default=200
        Rows that the weights are counted from.
    categorical : None, "all", list of int or str, or bool mask, default=None
        The columns whose values are categories: any finite numbers. The others are scaled by their range in the window.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,), float64
        Weight of each feature now, not negative; all 1 where `unweighted_`.
    unweighted_ : bool
        Whether no weights are in use: none are wanted, all would be 0, or half a `score_window` is not yet full.
    classes_ : ndarray of shape (n_classes,)
        Labels in the order in which they were declared or first seen.
    n_seen_ : int
        Rows learned from.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the rows came as a frame with column names.

    Raises
    ------
    ValueError
        If a parameter is not as above, when the first rows are learned from.

    Notes
    -----
    Learning costs O(features) a row, predicting O(window times features). Memory: the rows of both windows. A batch
    leaves the same state as its rows one at a time, and a row is predicted alike alone and in a batch. Sparse rows are
    refused.

    A missing value (NaN) is as far from another value as the window allows: see :mod:`tamis.learners.neighbours`. A
    label not seen before makes a new class; one that has left the window gets no votes.

    References
    ----------
    Barddal: Feature drift in data streams, doctoral thesis, section 7.1.

    Examples
    --------
    Fifty features of which one tells the class, another one after row 3000:

    >>> import numpy as np
    >>> from tamis import WeightedKNN
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 50))
    >>> y = np.where(np.arange(6000) < 3000, X[:, 7] > 0, X[:, 31] > 0).astype(int)
    >>> model = WeightedKNN().fit(X[:2000], y[:2000])
    >>> plain = WeightedKNN(weight=None).fit(X[:2000], y[:2000])
    >>> model.score(X[2000:3000], y[2000:3000]) > 0.9 > 0.75 > plain.score(X[2000:3000], y[2000:3000])
    True
    >>> model = model.partial_fit(X[2000:5000], y[2000:5000])
    >>> model.weights_.argmax(), model.score(X[5000:], y[5000:]) > 0.9
    (np.int64(31), True)
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        window: int = 1000,
        *,
        weight: str | None = "su",
        score_window: int = 200,
        categorical: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.window = window
        self.weight = weight
        self.score_window = score_window
        self.categorical = categorical

    classes_: Array
    n_seen_: int
    _neighbours_: Neighbours
    _weighting_: WindowWeights

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, then learn from the rows in order.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        return self._in_one_piece(X, y, None, forget=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from a batch of rows, oldest first. If it raises, the model is as it was before the call.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.
        y : array-like of shape (n_rows,)
            Labels of any type.
        classes : array-like, optional
            Labels known in advance; labels not listed may still appear later.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the rows or labels cannot be learned from.
        """
        return self._in_one_piece(X, y, classes, forget=False)

    def _in_one_piece(self, X: Any, y: Any, classes: Any, *, forget: bool) -> Self:
        before = dict(vars(self))
        try:
            if forget:
                for name in [name for name in before if name.endswith("_")]:
                    delattr(self, name)
            self._take_in(X, y, classes)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _take_in(self, X: Any, y: Any, classes: Any) -> None:
        first = not hasattr(self, "n_seen_")
        rows = self._rows(X, first)
        names = list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        at = first_beyond(rows, LARGEST)
        if at >= 0:
            refuse_nonfinite(rows, names, allow_nan=True)
            row, column = divmod(at, rows.shape[1])
            raise DataError(
                f"Column {names[column] if names else column!r} holds {rows[row, column]} in row {row} of the batch,"
                f" whose square is no number: scale it to less than {LARGEST:g}."
            )
        y = as_column(y, rows.shape[0], type(self).__name__, allow_missing=True)
        if first:
            self._open(rows.shape[1], names, classes)
        codes, known = encode_labels(y, self.classes_)
        if len(known) != len(self.classes_):
            self.classes_ = known
            self._weighting_.grow(len(known))
        self._weighting_.update(rows, codes)
        self._neighbours_.update(rows, codes)
        self.n_seen_ += rows.shape[0]

    def _rows(self, X: Any, first: bool) -> Array:
        """Return the rows as float64, their columns compared with those known."""
        if sp.issparse(X):
            raise TypeError(
                f"Sparse data was passed, but {type(self).__name__} keeps dense rows: X.toarray() makes them dense."
            )
        rows: Array = as_rows(X, type(self).__name__)[0]
        plain = type(X) is np.ndarray and not hasattr(self, "feature_names_in_")
        if first or not plain or X.shape[1] != self.n_features_in_:
            validate_data(self, X if hasattr(X, "columns") else rows, reset=first, skip_check_array=True)
        # Kernels are compiled once, for arrays of one kind.
        return rows if rows.dtype.char == "d" and rows.flags.writeable else np.array(rows, dtype=np.float64)

    def _open(self, n_features: int, names: list[str] | None, classes: Any) -> None:
        check_number("n_neighbors", self.n_neighbors, low=1, integer=True)
        check_number("window", self.window, low=1, integer=True)
        check_number("score_window", self.score_window, low=2, integer=True)
        check_choice("weight", self.weight, ("su", "entropy", "entropy_thesis", None))
        columns = columns_of(self.categorical, n_features, names)
        self.classes_ = np.array([]) if classes is None else as_classes(classes)
        n_classes = len(self.classes_)
        self._neighbours_ = Neighbours(n_features, self.window, columns)
        self._weighting_ = WindowWeights(n_features, n_classes, self.weight, self.score_window, columns)
        self._k_ = int(self.n_neighbors)
        self.n_seen_ = 0

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> NDArray[np.float64]:
        """Weight of each feature now."""
        return self._weighting().weights()

    @property
    def unweighted_(self) -> bool:
        """Whether no weights are in use."""
        return self._weighting().neutral

    def _weighting(self) -> WindowWeights:
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        return self._weighting_

    def predict(self, X: Any) -> Array:
        """Return the label of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows,)
            Among classes with as many votes the first.
        """
        votes = self._votes(X)
        found: Array = self.classes_[votes.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the share of each class among the nearest rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        votes = self._votes(X)
        found: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return found

    def _votes(self, X: Any) -> NDArray[np.float64]:
        weights = self._weighting().weights()
        rows = self._rows(X, False)
        if first_beyond(rows, LARGEST) >= 0:
            refuse_nonfinite(rows, allow_nan=True)
        return self._neighbours_.votes(rows, weights, self._k_, len(self.classes_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_seen_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
