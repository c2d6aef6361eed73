"""Base class of classifiers for dense rows: a batch is validated, then learned atomically."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils import Tags, get_tags

from tamis._atomic import LARGEST_PART, atomically, parts
from tamis._docstrings import fill_docstring
from tamis._kernels import njit
from tamis._validation.arrays import Array, Floats, Ints
from tamis._validation.labels import as_classes, as_column, encode_labels
from tamis._validation.parameters import COLUMNS, check_parameters, integer, parameters
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite, validated
from tamis.base.changing_columns import ChangingColumns
from tamis.base.declarations import Claims
from tamis.errors import DataError

LARGEST = 1e150  # its square is finite

# Paragraphs of the docstrings of the classifiers.
SHARED_DOCS = {
    "fitted": """
    classes_ : ndarray of shape (n_classes,)
        Labels in the order in which they were declared or first seen.
    n_seen_ : int
        Number of rows learned.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    """
}


@njit()
def first_out_of_range(X: Array, limit: float) -> int:
    """Return the flat index of the first value whose magnitude exceeds the limit, or -1; NaN does not count."""
    flat = X.reshape(-1)
    beyond = 0
    for x in flat:
        beyond += abs(x) > limit
    if beyond == 0:
        return -1
    at = 0
    while not abs(flat[at]) > limit:
        at += 1
    return at


def is_third_party(model: Any) -> bool:
    """Return whether a model belongs to another library."""
    return not type(model).__module__.startswith("tamis.")


class FittedColumns:
    """The columns of an estimator that stores what it learns under names that end with an underscore."""

    n_features_in_: int
    n_seen_: int

    def _forget(self) -> None:
        """Delete all that was learned."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _set_columns(self, n_features: int, names: list[str] | None) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _names(self) -> list[str] | None:
        names = vars(self).get("feature_names_in_")
        return None if names is None else list(names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_seen_")


class Wrapper(FittedColumns):
    """A classifier or regressor, as the estimator that it trains."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, or for a regressor R^2, on held-out rows."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = r2_score if is_regressor(self) else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))  # type: ignore[attr-defined]

    def _tags_like(self, tags: Tags, estimator: Any) -> Tags:
        """Return tags with those of the estimator."""
        inner = get_tags(estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


class DenseRowClassifier(ChangingColumns, FittedColumns, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Learns from rows in order; NaN is a missing value, labels may be of any type, and new labels may appear.

    A subclass implements two hooks: `_initialize` checks parameters and allocates the state for the classes that were
    declared, `_learn` updates the state with rows and codes and cannot fail. State is stored under names that end with
    an underscore. It overrides `_grow` if new classes need more than arrays with a fill value.
    """

    _shared_docs = SHARED_DOCS  # paragraphs for the docstrings of subclasses

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fill_docstring(cls._shared_docs)(cls)

    _allowed = parameters(
        categorical=(COLUMNS, None),
        window=integer("[1, 10000000]"),
        score_window=integer("[2, 10000000]"),
        weight=("su", "entropy", "entropy_thesis", None),
    )

    # "exactly": a batch leaves the same state as its rows one at a time, so a large batch is learned in parts and
    # Ctrl-C does not wait long. "": `_learn` itself handles pending signals.
    # Whether it accepts sparse rows, and learns in time proportional to their stored values.
    claims = Claims(equals_rows="exactly")

    _noun = "learner"
    _shapes = "n_seen_ in [0, 2**62)  classes_ fixed  feature_names_in_? fixed"
    classes_: Array

    @property
    def _has_third_party_parts(self) -> bool:
        """Whether it contains classifiers of other libraries, which may reject rows that other parts have learned."""
        return False

    @abstractmethod
    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        """Check the parameters and allocate the state."""

    def _grow(self, n_classes: int) -> None:
        """Allocate space for new classes, in new arrays: those with a fill value in `_shapes`."""
        self._state_spec.extend(self, "c", n_classes)

    @abstractmethod
    def _learn(self, rows: Floats, codes: Ints) -> None:
        """Update the state with rows and the codes of their labels."""

    def _change_columns(self, how: str, columns: Any) -> None:
        """Append features ("extend", up to a number) or "reset" some: those with a fill value in `_shapes`."""
        if not self._state_spec.n_filled("j"):
            raise ValueError(f"{type(self).__name__} has a fixed number of columns: create a new one.")
        getattr(self._state_spec, how)(self, "j", columns)

    def _append_columns(self, n_features: int) -> None:
        self._change_columns("extend", n_features)

    def _reset_columns(self, columns: Ints) -> None:
        self._change_columns("reset", columns)

    def fit(self, X: Any, y: Any) -> Self:
        """Reset the model, then learn from the rows in order.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        return self._fit_atomic(X, y, None, forget=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from a batch of rows, oldest first. If it raises, the model is unchanged.

        Ctrl-C and other signals are delivered after the batch; a batch of more than a megabyte is learned in parts, and
        a signal between two parts undoes the call. After an unexpected error (out of memory) while updating a model
        whose state is too large to copy (more than half a megabyte and the batch, and than is copied in a tenth of an
        update), every method except `fit` raises :class:`tamis.errors.StateError`.

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
            If the rows or labels are invalid.
        """
        return self._fit_atomic(X, y, classes, forget=False) if has_rows(X) else self

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
        votes = self._votes(X)  # raises if not fitted
        return self.classes_[votes.argmax(axis=1)]

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes)."""

    def _votes(self, X: Any) -> Floats:
        """Return the score of each class, shape (n_rows, n_classes); the class with the largest score is predicted."""
        return self.predict_proba(X)

    def _fit_atomic(self, X: Any, y: Any, classes: Any, *, forget: bool) -> Self:
        check_parameters(self)
        if forget or not hasattr(self, "n_seen_"):
            atomically(self, self._begin, X, y, classes, from_scratch=True)
            return self
        rows = self._validate_rows(X)
        y = as_column(y, rows.shape[0], type(self).__name__, allow_missing=True)
        # Only a third party's model rejects rows that other parts have learned.
        in_parts = rows.nbytes > LARGEST_PART[self.claims.equals_rows] or self._has_third_party_parts
        atomically(
            self, self._partial_fit, rows, y,
            n_bytes=rows.nbytes, n_rows=len(y), in_parts=in_parts, before=self._snapshot(len(y)),
        )  # fmt: skip
        return self

    def _snapshot(self, n_rows: int) -> Any:
        """Return a snapshot that takes less time than :class:`tamis._atomic.Snapshot`, or None."""
        return None

    def _validate_rows(self, X: Any) -> Array:
        """Return the validated rows, or raise."""
        return self._check_range(self._rows(X, False))

    def _begin(self, X: Any, y: Any, classes: Any) -> None:
        """Reset the model, then learn from the first rows."""
        self._forget()
        rows = self._check_range(self._rows(X, True))
        y = as_column(y, rows.shape[0], type(self).__name__, allow_missing=True)
        self._start(rows.shape[1], classes)
        self._partial_fit(rows, y)

    def _start(self, n_features: int, classes: Any) -> None:
        self.classes_ = np.array([]) if classes is None else as_classes(classes)
        self.n_seen_ = 0
        self._initialize(n_features, self._names())

    def _partial_fit(self, rows: Array, y: Array) -> None:
        codes, known = encode_labels(y, self.classes_)
        if len(known) != len(self.classes_):
            self.classes_ = known
            self._grow(len(known))
        if rows.nbytes <= LARGEST_PART[self.claims.equals_rows]:
            self._learn(rows, codes)
            self.n_seen_ += rows.shape[0]
            return
        for part in parts(len(codes), rows.nbytes, self.claims.equals_rows):
            self._learn(rows[part], codes[part])
            self.n_seen_ += len(rows[part])

    def _rows(self, X: Any, first: bool) -> Array:
        """Return the rows as float64 after checking their columns."""
        is_array = type(X) is np.ndarray
        if not is_array and sp.issparse(X) and not self.claims.sparse_time:
            raise TypeError(
                f"Sparse data was passed, but {type(self).__name__} requires dense rows: pass X.toarray()."
            )
        plain = is_array and not first and "feature_names_in_" not in vars(self)
        is_checked = plain and X.shape[-1:] == (self.n_features_in_,)
        rows = as_rows(X)[0] if is_checked else validated(self, X, reset=first)
        return rows.astype(np.float64, copy=False)  # kernels are compiled once

    def _check_range(self, rows: Array) -> Array:
        """Return the rows; raise for infinity and for values whose squares overflow."""
        at = first_out_of_range(rows, LARGEST)
        if at < 0:
            return rows
        names = self._names()
        reject_nonfinite(rows, names, allow_nan=True)
        row, column = divmod(at, rows.shape[1])
        raise DataError(
            f"Column {names[column] if names else column!r} contains {rows[row, column]} in row {row} of the batch,"
            f" whose square overflows: scale it to less than {LARGEST:g}."
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
