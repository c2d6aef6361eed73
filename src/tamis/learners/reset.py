"""ResetOnDrift: any classifier, begun anew when its errors say that the world has changed.

Gama, Medas, Castillo, Rodrigues: Learning with Drift Detection, SBIA 2004; Barddal's thesis, Chapter 5, whose
baselines are a classifier with ADWIN or ECDD in this way. Each row is predicted before it is learned from, and the
error goes to a drift detector. From a warning on, a second classifier learns beside the first; at the drift it takes
its place. A detector without warnings leaves a classifier that has learned nothing but the rows after the drift.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from tamis._check import Array, Rows, as_column, as_rows, encode_labels
from tamis.catalog import find_learner
from tamis.drift import DriftDetector, make
from tamis.errors import DataError

__all__ = ["ResetOnDrift"]


class ResetOnDrift(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with a drift detector on its errors.

    Parameters
    ----------
    estimator : str or classifier with partial_fit, default="naive-bayes"
        What learns: a learner of the catalogue by its key, or a classifier, which is copied before it learns.
    detector : str or DriftDetector, default="adwin"
        By name ("adwin", "ecdd", "hddm-a", "hddm-w"), or any object with that protocol, which is used as it is.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        The one that predicts now.
    drifts_ : list of int
        Rows, counted from 0, at which it was replaced.
    n_seen_ : int
        Rows learned from.

    Notes
    -----
    The errors of a batch are those of the classifier as it was before the batch, as in a prequential run; after a
    drift within the batch, the rest of it is predicted anew.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tamis.learners import ResetOnDrift
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = np.where(np.arange(4000) < 2000, X[:, 0] > 0, X[:, 0] < 0).astype(int)
    >>> model = ResetOnDrift(GaussianNB(), "hddm-a")
    >>> for at in range(0, 4000, 100):
    ...     _ = model.partial_fit(X[at : at + 100], y[at : at + 100], classes=[0, 1])
    >>> model.drifts_, round(model.score(X[2000:], y[2000:]), 2)
    ([2003], 0.99)
    """

    def __init__(self, estimator: Any = "naive-bayes", detector: str | DriftDetector = "adwin") -> None:
        self.estimator = estimator
        self.detector = detector

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, then learn from the rows in order."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        X, _ = as_rows(X)
        labels = as_column(y, X.shape[0], type(self).__name__)
        for at in range(0, X.shape[0], 100):
            self.partial_fit(X[at : at + 100], labels[at : at + 100], classes=np.unique(labels))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Predict the rows, watch the errors, then learn from the rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        classes : array-like of shape (n_classes,)
            Needed the first time.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no classes are given the first time.
        DataError
            If the rows or labels cannot be learned from.
        """
        X, _ = as_rows(X)
        labels = as_column(y, X.shape[0], type(self).__name__)
        if not hasattr(self, "estimator_"):
            if classes is None:
                raise ValueError("classes must be given at the first call of partial_fit.")
            self._begin(np.unique(np.asarray(classes)), X.shape[1])
        _, known = encode_labels(labels, self.classes_)
        if len(known) > len(self.classes_):
            raise DataError(f"Label {known[len(self.classes_)]} is not among the classes given at first.")
        start = 0
        while start < X.shape[0]:
            start = self._learn_until_drift(X, labels, start)
        self.n_seen_ += X.shape[0]
        return self

    def _begin(self, classes: Array, n_features: int) -> None:
        self.classes_, self.n_features_in_ = classes, n_features
        self.estimator_ = self._fresh()
        self.detector_: DriftDetector = (
            make(self.detector) if isinstance(self.detector, str) else self.detector
        )
        self.background_: Any = None
        self.drifts_: list[int] = []
        self.n_seen_ = 0

    def _fresh(self) -> Any:
        if isinstance(self.estimator, str):
            entry = find_learner(self.estimator)
            return entry.load()(**dict(entry.parameters))
        return clone(self.estimator)

    def _learn_until_drift(self, X: Rows, y: Array, start: int) -> int:
        """Learn from the rows from `start` to the first drift; return where the next rows begin."""
        warned = (
            0 if self.background_ is not None else None
        )  # where the second classifier begins, from `start`
        drift = False
        for i, error in enumerate(self._errors(X[start:], y[start:]).tolist()):
            drift = self.detector_.update(error)
            if drift:
                break
            if not self.detector_.in_warning:
                warned, self.background_ = None, None
            elif warned is None:
                warned = i
        stop = start + i + 1
        if warned is not None:
            self.background_ = self._fresh() if self.background_ is None else self.background_
            self._learn(self.background_, X[start + warned : stop], y[start + warned : stop])
        if drift:
            self.estimator_ = self._fresh() if self.background_ is None else self.background_
            self.background_ = None
            self.drifts_.append(self.n_seen_ + stop - 1)
        else:
            self._learn(self.estimator_, X[start:stop], y[start:stop])
        return stop

    def _errors(self, X: Rows, y: Array) -> NDArray[np.float64]:
        wrong: NDArray[np.bool_] = self.predict(X) != y
        return wrong.astype(np.float64)

    def _learn(self, estimator: Any, X: Rows, y: Array) -> None:
        estimator.partial_fit(X, y, classes=self.classes_)

    def predict(self, X: Any) -> Array:
        """Return the label of each row."""
        check_is_fitted(self)
        X, _ = as_rows(X)
        if not hasattr(self.estimator_, "classes_"):  # it has learned nothing: any label is as good
            return np.repeat(self.classes_[:1], X.shape[0])
        found: Array = self.estimator_.predict(X)
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (n_rows, n_classes), where the classifier gives it."""
        check_is_fitted(self)
        X, _ = as_rows(X)
        if not hasattr(self.estimator_, "classes_"):
            return np.full((X.shape[0], len(self.classes_)), 1.0 / len(self.classes_))
        found: NDArray[np.float64] = self.estimator_.predict_proba(X)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._fresh()).input_tags.sparse
        return tags
