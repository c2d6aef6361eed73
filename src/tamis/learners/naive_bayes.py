"""WeightedNaiveBayes (NB-FW): naive Bayes over a sliding window, whose features count as much as they tell now.

Barddal's thesis, section 7.2. Covered: Eq. 7.6 as an option, and the form that does what the thesis means.

===========  ===================  ================================================================================
thesis       here                 meaning
===========  ===================  ================================================================================
W            `window`             rows that the likelihoods are counted from
w            `score_window`       rows that the weights are counted from
w_i          `weights_`           weight of feature i, here relative to the largest
===========  ===================  ================================================================================

With P[x_i|y] from :mod:`tamis.learners.class_likelihoods`::

    argmax_y  P[y] prod_i (w_i + 1e-4) P[x_i|y]          printed (7.6)
    argmax_y  log P[y] + sum_i w_i log P[x_i|y]          exponents (Hall 2007)
    argmax_y  log P[y] + sum_i sqrt(w_i) log P[x_i|y]    roots

Errata and deviations, each with its reason:

* The factor prod_i (w_i + 1e-4) of (7.6) is the same for each class, so (7.6) predicts what naive Bayes without weights
  does, row by row. Table 7.1 of the thesis shows other figures for the two, so something else was run. As exponents,
  weights matter: 0 leaves a feature out, 1 counts it in full.
* Symmetrical uncertainty grows with the square of a correlation, and among features that matter alike it differs by
  half from window to window. Its root differs less; it is offered because it predicts better (see the page).
* Weights are divided by the largest. Symmetrical uncertainties of 0.1 as exponents would leave hardly more than P[y].
* The likelihoods are counted over a window too. A feature that has become relevant gets a large weight, but likelihoods
  of all rows still describe the time when it was not: with them, weights do harm.
* Everything is a sum of logarithms. Products of raw probabilities vanish with some hundred features.
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
from tamis.learners.class_likelihoods import LARGEST, ClassLikelihoods
from tamis.learners.weighting import WindowWeights

__all__ = ["WeightedNaiveBayes"]


class WeightedNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes over the last rows, with weights for the features.

    Parameters
    ----------
    window : int, at least 1, or None, default=1000
        Rows that the likelihoods are counted from; None counts all rows ever learned from.
    weight : {"su", "entropy", "entropy_thesis", None}, default="su"
        What a feature's weight is: its symmetrical uncertainty with the class, its information gain, Eq. 7.3 of the
        thesis, or nothing: plain naive Bayes.
    score_window : int, at least 2, default=200
        Rows that the weights are counted from.
    formulation : {"exponents", "roots", "printed"}, default="exponents"
        What the likelihoods are raised to: the weights, or their square roots. "printed" is Eq. 7.6 of the thesis,
        whose weights cancel: it predicts as `weight=None` does.
    categorical : None, "all", list of int or str, or bool mask, default=None
        The columns whose values are categories: any finite numbers. The others are normally distributed.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,), float64
        Weight of each feature now, in [0, 1], the largest 1.
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
    Learning costs O(features) a row, predicting O(features times classes). Memory: the rows of both windows, and 3
    float64 per class and feature. A batch leaves the same state as its rows one at a time. Sparse rows are refused.

    A missing value (NaN) is left out, both of what is learned and of what is predicted. A category never seen has
    count 0, a class without rows in the window probability 0. A label not seen before makes a new class.

    References
    ----------
    Barddal: Feature drift in data streams, doctoral thesis, section 7.2. Hall: A decision tree-based attribute
    weighting filter for naive Bayes, Knowledge-Based Systems 20(2), 2007.

    Examples
    --------
    Fifty features of which one tells the class, another one after row 3000:

    >>> import numpy as np
    >>> from tamis import WeightedNaiveBayes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 50))
    >>> y = np.where(np.arange(6000) < 3000, X[:, 7] > 0, X[:, 31] > 0).astype(int)
    >>> model = WeightedNaiveBayes().fit(X[:3000], y[:3000])
    >>> model.weights_.argmax(), model.score(X[2000:3000], y[2000:3000]) > 0.95
    (np.int64(7), True)
    >>> model = model.partial_fit(X[3000:5000], y[3000:5000])
    >>> model.weights_.argmax(), model.score(X[5000:], y[5000:]) > 0.95
    (np.int64(31), True)
    """

    def __init__(
        self,
        window: int | None = 1000,
        *,
        weight: str | None = "su",
        score_window: int = 200,
        formulation: str = "exponents",
        categorical: Any = None,
    ) -> None:
        self.window = window
        self.weight = weight
        self.score_window = score_window
        self.formulation = formulation
        self.categorical = categorical

    classes_: Array
    n_seen_: int
    _likelihoods_: ClassLikelihoods
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
            self._likelihoods_.grow(len(known))
            self._weighting_.grow(len(known))
        self._weighting_.update(rows, codes)
        self._likelihoods_.update(rows, codes)
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
        if self.window is not None:
            check_number("window", self.window, low=1, integer=True)
        check_number("score_window", self.score_window, low=2, integer=True)
        check_choice("weight", self.weight, ("su", "entropy", "entropy_thesis", None))
        check_choice("formulation", self.formulation, ("exponents", "roots", "printed"))
        columns = columns_of(self.categorical, n_features, names)
        self.classes_ = np.array([]) if classes is None else as_classes(classes)
        n_classes = len(self.classes_)
        self._likelihoods_ = ClassLikelihoods(n_features, n_classes, self.window, columns)
        self._weighting_ = WindowWeights(n_features, n_classes, self.weight, self.score_window, columns)
        self.n_seen_ = 0

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> NDArray[np.float64]:
        """Weight of each feature now, the largest 1."""
        weights = self._weighting().weights()
        found: NDArray[np.float64] = weights / weights.max()
        return found

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
            Among equally probable classes the first.
        """
        joint = self._joint(X)
        found: Array = self.classes_[joint.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        joint = self._joint(X)
        share = np.exp(joint - joint.max(axis=1, keepdims=True))
        found: NDArray[np.float64] = share / share.sum(axis=1, keepdims=True)
        return found

    def _joint(self, X: Any) -> NDArray[np.float64]:
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        rows = self._rows(X, False)
        if first_beyond(rows, LARGEST) >= 0:
            refuse_nonfinite(rows, allow_nan=True)
        if not self._likelihoods_.ready:
            power = {"exponents": 1.0, "roots": 0.5, "printed": 0.0}[self.formulation]
            self._likelihoods_.prepare(self.weights_**power)
        return self._likelihoods_.joint(rows)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_seen_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
