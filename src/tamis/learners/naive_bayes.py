"""WeightedNaiveBayes (NB-FW): naive Bayes over a sliding window, with current feature weights.

Barddal's thesis, section 7.2. Covered: Eq. 7.6 as an option, and the formulation that the thesis intends.

===========  ===================  ================================================================================
thesis       here                 meaning
===========  ===================  ================================================================================
W            `window`             rows from which the likelihoods are computed
w            `score_window`       rows from which the weights are computed
w_i          `weights_`           weight of feature i, here relative to the largest
===========  ===================  ================================================================================

With P[x_i|y] from :mod:`tamis.learners.class_likelihoods`::

    argmax_y  P[y] prod_i (w_i + 1e-4) P[x_i|y]          printed (7.6)
    argmax_y  log P[y] + sum_i w_i log P[x_i|y]          exponents (Hall 2007)
    argmax_y  log P[y] + sum_i sqrt(w_i) log P[x_i|y]    roots

Errata and deviations, each with its reason:

* The factor prod_i (w_i + 1e-4) of (7.6) is the same for each class, so (7.6) gives the predictions of naive Bayes
  without weights. Table 7.1 of the thesis reports different figures for the two, so the experiments used another
  formula. As exponents, the weights have an effect: 0 ignores a feature, 1 counts it in full.
* Symmetrical uncertainty grows with the square of a correlation, and among equally relevant features it varies by 50 %
  from window to window. Its square root varies less; it is available because it is more accurate (see the page).
* Weights are divided by the largest. Symmetrical uncertainties of 0.1 as exponents would leave little more than P[y].
* The likelihoods are computed over a window too. A feature that has become relevant gets a large weight, but
  likelihoods over all rows still describe the time before: with them, weights reduce the accuracy.
* All products are computed as sums of logarithms. Products of raw probabilities underflow with a few hundred features.
"""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Ints, reject_nonfinite
from tamis._validation.parameters import integer, parameter
from tamis.learners.class_likelihoods import ClassLikelihoods
from tamis.learners.dense_rows import LARGEST, first_out_of_range
from tamis.learners.weighting import WeightedClassifier


@dataclass(repr=False, eq=False)
class WeightedNaiveBayes(WeightedClassifier):
    """A feature-weighted naive Bayes classifier over a sliding window.

    Parameters
    ----------
    window : int, at least 1, or None, default=1000
        Number of last rows from which the likelihoods are computed. None: all rows.
    weight : {"su", "entropy", "entropy_thesis", None}, default="su"
        The weight of a feature. "su": its symmetrical uncertainty with the class. "entropy": its information gain.
        "entropy_thesis": Eq. 7.3 of the thesis. None: no weights, plain naive Bayes.
    score_window : int, at least 2, default=200
        Number of last rows from which the weights are computed.
    formulation : {"exponents", "roots", "printed"}, default="exponents"
        The exponents of the likelihoods: the weights, or their square roots. "printed" is Eq. 7.6 of the thesis, whose
        weights cancel: its predictions are those of `weight=None`.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features: any finite numbers. The others are modelled by a normal distribution.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,), float64
        Current weight of each feature, in [0, 1], the largest 1.
    unweighted_ : bool
        Whether no weights are in use: `weight` is None, all would be 0, or half a `score_window` is not yet full.
    %(fitted)s

    Notes
    -----
    Learning costs O(features) per row, predicting O(features times classes). Memory: the rows of both windows, and 3
    float64 per class and feature. A batch leaves the same state as its rows one at a time. Sparse rows are rejected.

    A missing value (NaN) is ignored in learning and in prediction. An unknown category has count 0, a class without
    rows in the window probability 0. A new label adds a class.

    References
    ----------
    Barddal: Feature drift in data streams, doctoral thesis, section 7.2. Hall: A decision tree-based attribute
    weighting filter for naive Bayes, Knowledge-Based Systems 20(2), 2007.

    Examples
    --------
    One of fifty features determines the class, and a different one from row 3000 on:

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

    _shapes = """
        classes_ (c) labels  _weighting_.n_classes (=c)
        _weighting_.counts?._class_counts (c) int
        _likelihoods_.n_rows (c) float in [0, inf) fill 0  _likelihoods_.n (c, j) float in [0, inf) fill 0
        _likelihoods_.mean (c, j) float in [-1e150, 1e150] fill 0  _likelihoods_.m2 (c, j) float in [0, inf) fill 0
        _likelihoods_._rows (w, j) float in [-1e150, 1e150] or nan fill nan ring w[its._clock[0]]
        _likelihoods_._row_codes (w) in [-1, max(c, 1)) ring w[its._clock[0]]  _likelihoods_._constants fixed
        _likelihoods_._clock (1) in [0, 2**62)  _likelihoods_._n_categorical (=v)
        _likelihoods_._columns (v) in [0, j) fixed  _likelihoods_._is_number (j) bool fill True fixed
        _likelihoods_._start (j+1) int fill its._start[-1]
        _likelihoods_._used (j) in [0, its._start[1:] - its._start[:-1]] fill 0  _likelihoods_._keys (m)
        _likelihoods_._counts (m, c) float in [0, inf) fill 0  n_features_in_ (=j)  _restricted? fixed
    """

    window: int | None = parameter(integer("[1, 10000000]"), None, default=1000)
    _: KW_ONLY
    formulation: str = parameter("exponents", "roots", "printed", default="exponents")

    @functools.cached_property
    def _restricted(self) -> tuple[NDArray[np.intp], WeightedNaiveBayes] | None:
        """Columns, and the model restricted to them, until the next update."""
        return None

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        columns = self._initialize_weighting(n_features, names)
        self._likelihoods_ = ClassLikelihoods(n_features, len(self.classes_), self.window, columns)

    def _grow(self, n_classes: int) -> None:
        super()._grow(n_classes)
        self._likelihoods_._constants = None

    def _change_columns(self, change: str, columns: Any) -> None:
        super()._change_columns(change, columns)
        self._likelihoods_._constants = self._restricted = None

    def _learn(self, rows: Floats, codes: Ints) -> None:
        self._weighting_.update(rows, codes)
        self._likelihoods_.update(rows, codes)
        self._restricted = None

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """Current weight of each feature, the largest 1."""
        weights = self._fitted_weighting().weights()
        return weights / weights.max()

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        return _shares(self._votes(X))

    def predict_with_scores(self, X: Any) -> tuple[Array, Floats]:
        """Return the label of each row, and the probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.
        """
        joint = self._votes(X)
        return self.classes_[joint.argmax(axis=1)], _shares(joint)

    def _votes(self, X: Any) -> Floats:
        """Return the logarithm of the joint density of each row and class."""
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        rows = self._rows(X, False)
        if first_out_of_range(rows, LARGEST) >= 0:
            reject_nonfinite(rows, allow_nan=True)
        if not self._likelihoods_.ready:
            self._likelihoods_.prepare(self._exponents(self._fitted_weighting().weights()))
        return self._likelihoods_.joint(rows)

    def _exponents(self, weights: Floats) -> Floats:
        """Return the exponents of weights relative to the largest; 1 if none of the features is informative."""
        largest = weights.max()
        if largest == 0.0:
            return np.ones_like(weights)
        power = {"exponents": 1.0, "roots": 0.5, "printed": 0.0}[self.formulation]
        return (weights / largest) ** power

    def restrict_columns(self, columns: NDArray[np.intp]) -> WeightedNaiveBayes:
        """Return a view that predicts from a subset of the columns, with weights relative to the largest of these.

        Parameters
        ----------
        columns : ndarray of int
            Ascending.

        Returns
        -------
        WeightedNaiveBayes
            A model for rows of these columns. It shares the fitted state and must not be trained.
        """
        known = self._restricted
        if known is not None and (known[0] is columns or np.array_equal(known[0], columns)):
            return known[1]
        view, weights = self._view_of(columns)
        view._likelihoods_ = self._likelihoods_.select(columns)
        view._likelihoods_.prepare(self._exponents(weights))
        view._restricted = None
        self._restricted = columns, view
        return view


def _shares(joint: Floats) -> Floats:
    """Return probabilities from the logarithms of joint densities."""
    share = np.exp(joint - joint.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)
