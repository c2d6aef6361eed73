"""ResetOnDrift: a classifier that is replaced by a new one when a drift detector signals concept drift.

Gama, Medas, Castillo, Rodrigues: Learning with Drift Detection, SBIA 2004; Barddal's thesis, Chapter 5, whose
baselines combine a classifier with ADWIN or ECDD in this way. Each row is predicted before it is learned, and the
detector is updated with the error. From a warning on, a background classifier is trained; at the drift it replaces the
current one. With a detector without warnings, the new classifier is trained only with the rows from the drift on.
"""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomically, deliver_signals
from tamis._guard import ThreadSafe, locked_and_validated
from tamis._shapes import state_error
from tamis._validation.arrays import Array, Floats, Indices, Ints, Mask, Rows
from tamis._validation.labels import as_classes, as_column, encode_labels
from tamis._validation.parameters import check_parameters, name_or, parameter, with_methods
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis._validation.values import short_repr
from tamis.base.changing_columns import ChangingColumns
from tamis.base.rows import check_columns
from tamis.catalog import find_learner
from tamis.drift import DETECTOR, DriftDetector, new_detector
from tamis.errors import DataError
from tamis.learners.chunked import new_classifier
from tamis.learners.dense_rows import DenseRowClassifier, FittedColumns, is_third_party
from tamis.learners.traits import masking_strategy, restrict_columns

_MIN_ROWS = 30  # rows before the errors of a classifier are informative


@dataclass(repr=False, eq=False)
class ResetOnDrift(ChangingColumns, FittedColumns, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is replaced by a new one when a drift detector signals an increase of its errors.

    Parameters
    ----------
    estimator : str or classifier with partial_fit, default="naive-bayes"
        The classifier: a learner of the catalogue by its key, or a classifier, which is cloned.
    detector : str or DriftDetector, default="adwin"
        The drift detector by name ("adwin", "ddm", "ecdd", "hddm-a", "hddm-w"), or any object with that protocol, which
        is copied.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        The current classifier.
    drifts_ : list of int
        Rows, counted from 0, at which it was replaced.
    n_seen_ : int
        Number of rows learned.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.

    Notes
    -----
    The errors of a batch are those of the classifier before the batch, as in prequential evaluation. After a drift
    within the batch, its remaining rows are predicted again. The detector is not updated while the classifier has
    learned fewer than 30 rows. New labels may appear: a classifier of Tamis continues, one of another library is
    replaced by a new one, which knows all labels so far.

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
    ...     _ = model.partial_fit(X[at : at + 100], y[at : at + 100])
    >>> model.drifts_, round(model.score(X[2000:], y[2000:]), 2)
    ([2003], 0.99)
    """

    _shapes = "classes_ (*) labels"
    _noun = "learner"

    estimator: Any = parameter(
        name_or("a learner", find_learner, with_methods("a classifier with partial_fit", "partial_fit")),
        default="naive-bayes",
    )
    detector: str | DriftDetector = parameter(DETECTOR, default="adwin")
    classes_: Array = field(init=False)
    estimator_: BaseEstimator = field(init=False)
    background_: BaseEstimator | None = field(init=False)

    adapts_itself = True  # see `tamis.learners.traits`

    def fit(self, X: Any, y: Any) -> Self:
        """Reset the model, then learn from the rows in order."""
        check_parameters(self)
        X, names = self._rows(X, reset=True)
        labels = as_column(y, X.shape[0], type(self).__name__)
        atomically(self, self._refit, X, names, labels, from_scratch=True)
        return self

    def _refit(self, X: Rows, names: list[str] | None, labels: Array) -> None:
        self._forget()
        self._begin(encode_labels(labels, np.array([]))[1], X.shape[1], names)
        for at in range(0, X.shape[0], 100):
            deliver_signals()
            self._learn(X[at : at + 100], labels[at : at + 100])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, columns: Any = None) -> Self:
        """Predict the rows, update the drift detector with the errors, then learn from the rows.

        If it raises, the model is unchanged. Ctrl-C takes effect after the batch. For further failures
        during an update of a learner of Tamis, see its `partial_fit`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        classes : array-like of shape (n_classes,), optional
            Labels known in advance; labels not listed may still appear later.
        columns : ndarray of int, optional
            The drift detector is updated with the errors of predictions from these columns only, by
            :meth:`restrict_columns`; by default from all.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the rows or labels are invalid.
        """
        if not has_rows(X):
            return self
        check_parameters(self)
        is_first = not hasattr(self, "estimator_")
        X, names = self._rows(X, reset=is_first)
        labels = as_column(y, X.shape[0], type(self).__name__)
        if is_first:
            atomically(self, self._partial_fit, X, labels, classes, columns, names, from_scratch=True)
        elif isinstance(self.estimator_, DenseRowClassifier):
            self.estimator_._validate_rows(X)  # before the detector observes the errors
            atomically(self, self._partial_fit, X, labels, classes, columns, n_bytes=X.nbytes)
        else:  # it may reject rows after the detector has been updated with their errors
            atomically(self, self._partial_fit, X, labels, classes, columns, in_parts=True)
        return self

    def _partial_fit(
        self, X: Rows, labels: Array, classes: Any, columns: Any, names: list[str] | None = None
    ) -> None:
        is_first = not hasattr(self, "estimator_")
        known = np.array([]) if is_first else self.classes_
        if classes is not None:
            known = encode_labels(as_classes(classes), known)[1]
        known = encode_labels(labels, known)[1]
        if is_first:
            self._begin(known, X.shape[1], names)
        elif len(known) > len(self.classes_):
            self.classes_ = _in_order(known)
            if is_third_party(self.estimator_):  # it cannot add a class
                self.estimator_, self.background_, self._age = self.new_estimator(), None, 0
        self._learn(X, labels, columns)

    def _append_columns(self, n_features: int) -> None:
        self._change_columns("widen", n_features)

    def _reset_columns(self, columns: Ints) -> None:
        self._change_columns("forget_columns", columns)

    def _change_columns(self, method: str, columns: Any) -> None:
        if self._names() is not None or not hasattr(self.estimator_, method):
            raise ValueError(
                f"{type(self.estimator_).__name__} has a fixed number of columns: create a new one."
            )
        for model in (self.estimator_, self.background_):
            if model is not None:
                getattr(model, method)(columns)
        self.n_features_in_ = self.estimator_.n_features_in_

    def _learn(self, X: Rows, y: Array, columns: Any = None) -> None:
        start = 0
        while start < X.shape[0]:
            start = self._learn_until_drift(X, y, start, columns)
        self.n_seen_ += X.shape[0]

    def _begin(self, labels: Array, n_features: int, names: list[str] | None) -> None:
        self._set_columns(n_features, names)
        self.classes_ = _in_order(labels)
        self.estimator_ = self.new_estimator()
        self.detector_ = new_detector(self.detector)
        self.background_ = None
        self._age = self._background_age = 0  # rows learned by each
        self.drifts_: list[int] = []
        self.n_seen_ = 0

    def _rows(self, X: Any, reset: bool = False) -> tuple[Rows, list[str] | None]:
        """Return validated rows, and the names of their columns, which must be those of the first rows."""
        X, names = as_rows(X)
        if not reset:
            check_columns(type(self).__name__, X, names, self.n_features_in_, self._names())
        try:
            reject_nonfinite(X, names)
        except DataError:
            if not get_tags(self.new_estimator()).input_tags.allow_nan:
                raise
            reject_nonfinite(X, names, allow_nan=True)
        return X, names

    def new_estimator(self) -> Any:
        """Return a new, unfitted classifier."""
        check_parameters(self)
        return new_classifier(self.estimator)

    def _learn_until_drift(self, X: Rows, y: Array, start: int, columns: Any) -> int:
        """Learn from the rows from `start` to the first drift; return the index of the next row."""
        if self._age < _MIN_ROWS:
            self.estimator_.partial_fit(X[start:], y[start:], classes=self.classes_)
            self._age += len(y) - start
            return len(y)
        begin = start if self.background_ is not None else None  # first row of the background classifier
        drift = False
        errors = self._errors(X[start:], y[start:], columns).tolist()
        detector = self.detector_
        with locked_and_validated(detector) if isinstance(detector, ThreadSafe) else nullcontext():
            for at, error in enumerate(errors, start):
                drift = detector.update(error)
                if drift:
                    break
                if not detector.in_warning:
                    begin, self.background_ = None, None
                elif begin is None:
                    begin = at
        if drift:
            self.drifts_.append(self.n_seen_ + at)
            return self._replace(X, y, at if begin is None else begin, at + 1)
        if begin is not None:
            self._learn_background(X[begin:], y[begin:])
        self.estimator_.partial_fit(X[start:], y[start:], classes=self.classes_)
        self._age += len(y) - start
        return len(y)

    def _replace(self, X: Rows, y: Array, begin: int, stop: int) -> int:
        """Replace the classifier with the background classifier; return the index of the next row."""
        if self.background_ is None:  # it learns from the rows since the warning together with the next ones
            self.estimator_, self._age = self.new_estimator(), 0
            return begin
        self._learn_background(X[begin:stop], y[begin:stop])
        self.estimator_, self._age, self.background_ = self.background_, self._background_age, None
        return stop

    def _learn_background(self, X: Rows, y: Array) -> None:
        if self.background_ is None:
            self.background_, self._background_age = self.new_estimator(), 0
        self.background_.partial_fit(X, y, classes=self.classes_)
        self._background_age += X.shape[0]

    def _errors(self, X: Rows, y: Array, columns: Any) -> Floats:
        predicted = (
            self.predict(X) if columns is None else self.restrict_columns(columns).predict(X[:, columns])
        )
        wrong: Mask = predicted != y
        return wrong.astype(np.float64)

    @property
    def masking_strategy(self) -> str:
        """How unselected columns are ignored: that of the classifier, see :mod:`tamis.learners.traits`."""
        return masking_strategy(self.new_estimator())

    def restrict_columns(self, columns: Indices) -> ResetOnDrift:
        """Return a view that predicts from a subset of the columns, if the classifier learns from all columns.

        Parameters
        ----------
        columns : ndarray of int
            Ascending.

        Returns
        -------
        ResetOnDrift
            A model for rows of these columns. It shares the fitted state and must not be trained.
        """
        view = copy(self)
        if hasattr(self, "feature_names_in_"):
            view.feature_names_in_ = self.feature_names_in_[columns]
        view.n_features_in_, view.estimator_ = len(columns), restrict_columns(self.estimator_, columns)
        return view

    def predict(self, X: Any) -> Array:
        """Return the label of each row."""
        check_is_fitted(self)
        X, _ = self._rows(X)
        with np.errstate(divide="ignore", invalid="ignore"):  # a new classifier may know a single class
            labels: Array = self.estimator_.predict(X)
        return labels

    @available_if(lambda self: hasattr(self.new_estimator(), "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); only if the classifier supports it."""
        check_is_fitted(self)
        X, _ = self._rows(X)
        proba = np.zeros((X.shape[0], len(self.classes_)))
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.array(self.estimator_.predict_proba(X))
        # A Gaussian naive Bayes returns NaN if every column was constant.
        known[~np.isfinite(known).all(axis=1)] = 1.0 / known.shape[1]
        if known.shape[1] > proba.shape[1]:
            raise state_error("'classes_' of a ResetOnDrift lack some of its classifier's")
        proba[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = known
        return proba

    def check_state(self) -> None:
        """Reject classes in another order, or without those of the classifier.

        Raises
        ------
        StateError
            If so.
        """
        if not hasattr(self, "estimator_"):
            return
        known = getattr(self.estimator_, "classes_", self.classes_)
        if (
            not np.array_equal(self.classes_, np.unique(self.classes_))
            or not np.isin(known, self.classes_).all()
        ):
            raise state_error("'classes_' of a ResetOnDrift are not those of its classifier, in order")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.new_estimator()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _in_order(labels: Array) -> Array:
    """Return labels in ascending order, as classifiers of scikit-learn require."""
    if labels.dtype.kind not in "iubU" and not (labels.dtype.kind == "f" and (labels % 1 == 0).all()):
        raise DataError(
            f"The labels {short_repr(labels.tolist())} have mixed types, or a type that classifiers of scikit-learn"
            " do not support: convert all of them to integers, or all to text."
        )
    return np.sort(labels)
