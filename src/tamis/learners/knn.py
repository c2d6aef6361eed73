"""WeightedKNN (kNN-FW): nearest neighbours among the last rows, in distances with current feature weights.

Barddal's thesis, section 7.1. Covered: Eq. 7.3 (as an option), 7.4, and the distance, with MOA's missing values.

===========  ===================  ================================================================================
thesis       here                 meaning
===========  ===================  ================================================================================
k            `n_neighbors`        rows that vote
W            `window`             rows that are searched for neighbours
w            `score_window`       rows from which the weights are computed
w_i          `weights_`           weight of feature i
===========  ===================  ================================================================================

::

    d(a, b) = sqrt(sum_i w_i diff_i(a, b)^2)         diff_i: see :mod:`tamis.learners.neighbours`
    w_i = SU(X_i, Y)                                                                         (7.4)
    w_i = log2(classes) - H(Y|X_i)                                                           (7.3)

Errata and deviations, each with its reason:

* (7.3) gives an irrelevant feature the weight log2(classes) - H(Y), which is not 0 for unbalanced classes. The
  information gain H(Y) - H(Y|X_i), equal to (7.3) for balanced classes, is available as `weight="entropy"`.
* The thesis gives neither k nor W; here they are MOA's, 10 and 1000.
* If all weights are 0, all rows would be equally near: the weights then count as 1.
* The thesis does not define ties. Here, of rows at the same distance the most recent is nearest, and of classes with
  the same number of votes the first is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis._validation import Floats, Indices, Ints
from tamis._validation.parameters import integer, parameter
from tamis.learners.neighbours import Neighbours
from tamis.learners.weighting import WeightedClassifier


@dataclass(repr=False, eq=False)
class WeightedKNN(WeightedClassifier):
    """A feature-weighted nearest-neighbours classifier over a sliding window.

    Parameters
    ----------
    n_neighbors : int, at least 1, default=10
        Number of rows that vote. While the window contains fewer rows, all of them vote.
    window : int, at least 1, default=1000
        Number of last rows among which neighbours are searched.
    weight : {"su", "entropy", "entropy_thesis", None}, default="su"
        The weight of a feature. "su": its symmetrical uncertainty with the class. "entropy": its information gain.
        "entropy_thesis": Eq. 7.3 of the thesis. None: 1, plain nearest neighbours.
    score_window : int, at least 2, default=200
        Number of last rows from which the weights are computed.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features: any finite numbers. The others are scaled by their range in the window.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,), float64
        Current weight of each feature, not negative; all 1 if `unweighted_`.
    unweighted_ : bool
        Whether no weights are in use: `weight` is None, all would be 0, or half a `score_window` is not yet full.
    %(fitted)s

    Notes
    -----
    Learning costs O(features) per row, predicting O(window times features). Memory: the rows of both windows. A batch
    leaves the same state as its rows one at a time, and the prediction of a row does not depend on its batch. Sparse
    rows are rejected.

    A missing value (NaN) has the largest distance from another value that the range of the window allows: see
    :mod:`tamis.learners.neighbours`. A new label adds a class; a class without rows in the window gets no
    votes.

    References
    ----------
    Barddal: Feature drift in data streams, doctoral thesis, section 7.1.

    Examples
    --------
    One of fifty features determines the class, and a different one from row 3000 on:

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

    _shapes = """
        n_features_in_ (=j)  classes_ (k) labels  _weighting_.n_classes (=k)
        _weighting_.counts?._class_counts (k) int
        _neighbours_._columns (j, n) float in [-1e150, 1e150] or nan fill nan ring n[its._next]
        _neighbours_._row_codes (n) in [0, max(k, 1)) ring n[its._next]
        _neighbours_._is_number (j) bool fill True fixed
        _neighbours_._bounds (j, 2) float in [-inf, inf] fill "[inf, -inf]"
        _neighbours_._n_missing (j) in [0, n] fill its.n_rows
        _neighbours_.window in [n, 10000000]  _neighbours_.n_rows in [min(n, 1), n]
        _neighbours_._next in [0, max(its.n_rows, 1)]  _k_? in [1, 2**62]
    """

    n_neighbors: int = parameter(integer("[1, inf)"), default=10)
    window: int = 1000

    # Set in a view: the weights of its columns.
    _weights_now_: Floats | None = field(default=None, init=False)

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        columns = self._initialize_weighting(n_features, names)
        self._neighbours_ = Neighbours(n_features, self.window, columns)
        self._k_ = int(self.n_neighbors)

    def _learn(self, rows: Floats, codes: Ints) -> None:
        self._weighting_.update(rows, codes)
        self._neighbours_.update(rows, codes)

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """Current weight of each feature."""
        return self._fitted_weighting().weights()

    def predict_proba(self, X: Any) -> Floats:
        """Return the proportion of each class among the nearest rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        votes = self._votes(X)
        return votes / votes.sum(axis=1, keepdims=True)

    def restrict_columns(self, columns: Indices) -> WeightedKNN:
        """Return a view that computes distances from a subset of the columns.

        Parameters
        ----------
        columns : ndarray of int
            Ascending.

        Returns
        -------
        WeightedKNN
            A model for rows of these columns. It shares the fitted state and must not be trained.
        """
        view, weights = self._view_of(columns)
        view._neighbours_ = self._neighbours_.select(columns)
        view._weights_now_ = weights if weights.any() else np.ones_like(weights)
        return view

    def _votes(self, X: Any) -> Floats:
        weights = self._fitted_weighting().weights() if self._weights_now_ is None else self._weights_now_
        return self._neighbours_.votes(self._rows_to_predict(X), weights, self._k_, len(self.classes_))
