"""The learner of a run: it receives only the selected features, scaled if needed, and resets when required."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from tamis._guard import lock_of
from tamis._kernels import njit
from tamis._shapes import Shapes, without_columns
from tamis._validation import Array, Mask, Rows, encode_labels
from tamis.learners.reset import ResetOnDrift
from tamis.learners.traits import (
    accepts_nan,
    accepts_new_classes,
    accepts_sparse,
    masking_strategy,
    restrict_columns,
)
from tamis.pipeline.scaling import RunningScale, bounded

_NOTHING = np.empty(0, np.intp)
_LARGEST_DENSE = 1 << 24  # values of a batch of sparse rows that is converted


@njit(strict=True)
def _fill(X: Any, mask: Any, left: Any, selected: Any, blank: float, masked: Any) -> None:
    # Touching only the selected columns is then faster than copying rows.
    few = 20 * selected.shape[0] < X.shape[1]
    for i in range(X.shape[0]):
        if few:
            for j in left:
                masked[i, j] = blank
            for j in selected:
                masked[i, j] = X[i, j]
        else:
            for j in range(X.shape[1]):
                masked[i, j] = X[i, j] if mask[j] else blank  # not a product, which would keep NaN


@njit(strict=True)
def _fill_scaled(
    X: Any, left: Any, selected: Any, shift: Any, factor: Any, blank: float, masked: Any
) -> None:
    for i in range(X.shape[0]):
        for j in left:
            masked[i, j] = blank
        for j in selected:
            masked[i, j] = bounded((X[i, j] - shift[j]) * factor[j])


class Masker:
    """Masks batches; dense ones share one buffer.

    Parameters
    ----------
    blank : float, default=0.0
        Value of unselected features in dense rows. In sparse rows they are not stored.

    Examples
    --------
    >>> mask = np.array([False, True])
    >>> Masker().mask(np.array([[1.0, 2.0], [3.0, 4.0]]), mask, np.flatnonzero(mask))
    array([[0., 2.],
           [0., 4.]])
    """

    _state_spec = Shapes("_masked (n, f)  _selected (s) in [0, max(f, 1))")

    def __init__(self, blank: float = 0.0) -> None:
        self.blank = blank
        self._masked: Array = np.empty((0, 0))  # the last batch, with zeros outside `_selected`
        self._selected = _NOTHING

    def __deepcopy__(self, memo: dict[int, Any]) -> Masker:
        return Masker(self.blank)  # the last batch is not needed

    def mask(
        self, X: Rows, mask: Mask, selected: NDArray[np.intp], scale: RunningScale | None = None
    ) -> Rows:
        """Return the rows with unselected features blank; dense rows are valid only until the next call.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
        mask : ndarray of shape (n_features,), bool
        selected : ndarray of shape (n_selected,), int
            Where the mask is true. Pass the same array as long as the mask does not change.
        scale : RunningScale, optional
            Applied to the selected features.
        """
        if sp.issparse(X):
            kept = _drop_stored(X, mask)
            return kept if scale is None else scale.transform(kept)
        X = X if scale is None else scale.encode(X)
        dtype = X.dtype if scale is None else np.dtype(np.float64)
        if self._masked.shape != X.shape or self._masked.dtype != dtype:
            self._masked, self._selected = np.full(X.shape, self.blank, dtype), selected
        left = _NOTHING if selected is self._selected else self._selected
        if scale is None:
            _fill(X, mask, left, selected, self.blank, self._masked)
        else:
            _fill_scaled(X, left, selected, scale.shift, scale.factor, self.blank, self._masked)
        self._selected = selected
        return self._masked


def _drop_stored(X: Rows, mask: Mask) -> Rows:
    kept = mask[X.indices]
    before = np.zeros(len(kept) + 1, dtype=X.indptr.dtype)  # number of kept values before each
    np.cumsum(kept, out=before[1:])
    return type(X)((X.data[kept], X.indices[kept], before[X.indptr]), shape=X.shape)


class View(NamedTuple):
    """The learner's view of a batch; the next view may overwrite its dense rows."""

    learned: Rows  # rows to learn from
    asked: Rows  # rows to predict
    predictor: Any  # the model that predicts
    support: NDArray[np.intp] | None  # the columns selected; None: all


class ColumnChange(NamedTuple):
    """A change of the columns of a model: some are appended, or reset, so that they can be reused."""

    n_features: int  # after the change
    forgotten: NDArray[np.intp] | None = None  # the columns to reset
    absent: float = np.nan  # value in the dense rows so far

    def apply(self, model: Any) -> bool:
        """Change a model; return False, with the model unchanged, if it does not support that."""
        method = getattr(model, "widen" if self.forgotten is None else "forget_columns", None)
        if method is None:
            return False
        try:
            method(self.n_features if self.forgotten is None else self.forgotten)
        except ValueError:
            return False
        return True

    def of_rows(self, X: Rows) -> Rows:
        """Return rows with the changed columns: appended or reset ones are absent, in dense rows `absent`."""
        if self.forgotten is not None:
            return without_columns(X, self.forgotten, self.absent)
        shape = X.shape[0], self.n_features
        if sp.issparse(X):
            return type(X)((X.data, X.indices, X.indptr), shape=shape)
        wide = np.full(shape, self.absent, X.dtype)
        wide[:, : X.shape[1]] = X
        return wide


class MaskedLearner:
    """A learner that uses only the selected features.

    Parameters
    ----------
    model : classifier with `partial_fit`
        It is fitted in place. If it is already fitted, its classes are kept.
    classes : ndarray of shape (n_classes,)
        Labels known in advance.
    masking : {"auto", "zeros"}, default="auto"
        How unselected features are removed: in the way that suits the learner, or by zeros.

    Attributes
    ----------
    way : {"whole", "columns", "missing", "zeros"}
        How unselected features are removed: see :mod:`tamis.learners.traits`.
    n_known_classes : int
        Number of classes known to the model; 0: not fitted yet.
    restarts : int
        Number of resets caused by a label unknown to the model.
    """

    _state_spec = Shapes(
        "classes (*) labels fixed  n_known_classes in [0, 2**31)  restarts in [0, 2**53)"
        "  _rows_of_class (*) in [0, 2**53) fixed"
    )

    def __init__(self, model: BaseEstimator, classes: Array, masking: str = "auto") -> None:
        self.model, self.classes, self.masking = model, classes, masking
        self.way = masking_strategy(model) if masking == "auto" else masking
        # Cached: scikit-learn's tags are slow.
        self.accepts_nan, self.accepts_sparse = accepts_nan(model), accepts_sparse(model)
        self.n_known_classes = len(getattr(model, "classes_", ()))  # it may be fitted already
        self.restarts = 0
        self._rows_of_class: Array = np.zeros(len(classes), np.int64)
        self._masker = Masker(np.nan if self.way == "missing" else 0.0)

    def another(self) -> Self:
        """Return a new learner with an unfitted clone of the model."""
        return type(self)(clone(self.model), self.classes, self.masking)

    def view(
        self,
        X: Rows,
        mask: Mask | None,
        support: NDArray[np.intp] | None,
        scale: RunningScale | None,
        *,
        predicts: bool = True,
    ) -> View:
        """Return the learner's view of a batch; without a mask, all columns. It `predicts`, or is only learned.

        Sparse rows are converted for a learner that requires dense ones, up to 128 MB.
        """
        if not self.accepts_sparse and sp.issparse(X) and X.shape[0] * X.shape[1] <= _LARGEST_DENSE:
            X = X.toarray()
        if mask is not None and support is not None and self.way in ("missing", "zeros"):
            rows = self._masker.mask(X, mask, support, scale)
            rows = rows if scale is None else self._at_mean(rows)
            return View(rows, rows, self.model, support)
        rows = X if scale is None else self._at_mean(scale.transform(X))
        if mask is None or support is None or self.way == "columns":
            return View(rows, rows, self.model, None if mask is None else support)
        learned = rows if self.accepts_nan else self._impute_unselected(rows, mask)
        if not predicts:
            return View(learned, learned, self.model, support)
        asked = rows[:, support] if sp.issparse(rows) else rows.take(support, axis=1)
        predictor = (
            restrict_columns(self.model, support) if self.n_known_classes and len(support) else self.model
        )
        return View(learned, asked, predictor, support)

    def _at_mean(self, rows: Rows) -> Rows:
        """Return standardised rows with missing values at the mean, 0, for a learner that does not accept NaN."""
        if self.accepts_nan or not np.isnan((rows.data if sp.issparse(rows) else rows).sum()):
            return rows
        imputed = rows.copy()
        stored = imputed.data if sp.issparse(imputed) else imputed
        stored[np.isnan(stored)] = 0.0
        return imputed

    def _impute_unselected(self, rows: Rows, mask: Mask) -> Rows:
        """Return the rows with missing values of unselected features replaced by their mean so far (0 if unknown)."""
        if sp.issparse(rows) or not np.isnan(rows.sum()):
            return rows
        mean: Any = 0.0
        if self.n_known_classes and hasattr(self.model, "theta_"):
            mean = np.average(self.model.theta_, axis=0, weights=self.model.class_count_)
        return np.where(np.isnan(rows) & ~mask, mean, rows)

    @np.errstate(divide="ignore", invalid="ignore")  # log 0: naive Bayes for a class without rows
    def predict(self, view: View) -> Array:
        """Return the labels that the learner predicts; the first class before it is fitted."""
        if self.n_known_classes == 0:
            return np.repeat(self.classes[:1], view.asked.shape[0])
        if view.asked.shape[1] == 0:  # nothing is selected: the majority class
            return np.repeat(self.classes[self._rows_of_class.argmax()], view.asked.shape[0])
        return np.array(view.predictor.predict(view.asked))  # a copy: it is evaluated later

    @np.errstate(divide="ignore", invalid="ignore")  # log 0: naive Bayes for a class without rows
    def scores(self, view: View) -> Array:
        """Return a score of the second of two classes for each row."""
        if view.asked.shape[1] == 0:
            return np.zeros(view.asked.shape[0])
        if hasattr(self.model, "decision_function"):
            return np.array(view.predictor.decision_function(view.asked), dtype=np.float64).reshape(-1)
        return np.array(view.predictor.predict_proba(view.asked), dtype=np.float64)[:, 1]

    def predict_with_scores(self, view: View, positive: Any) -> tuple[Array, Array]:
        """Return the labels that the learner predicts, and a score of one of two classes; from one call if possible."""
        if view.asked.shape[1] == 0 or not hasattr(view.predictor, "predict_with_scores"):
            return self.predict(view), self.scores_of(positive, view)
        labels, scores = view.predictor.predict_with_scores(view.asked)
        scores = scores if scores.ndim == 1 else scores[:, 1]
        return labels, scores if positive == self.model.classes_[1] else -scores

    @np.errstate(divide="ignore", invalid="ignore")  # log 0: naive Bayes for a class without rows
    def predict_with_class_scores(self, view: View, classes: Array) -> tuple[Array, Array]:
        """Return the labels that the learner predicts, and a score of each of these classes, shape (n_rows, n_classes).

        A class that the learner does not know, or a score that is NaN, has the lowest score.
        """
        model, predictor, known = self.model, view.predictor, self.model.classes_
        if view.asked.shape[1] == 0:
            labels, found = self.predict(view), np.zeros((view.asked.shape[0], len(known)))
        elif hasattr(predictor, "predict_with_scores"):
            labels, found = predictor.predict_with_scores(view.asked)
        else:
            method = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
            labels, found = self.predict(view), getattr(predictor, method)(view.asked)
        found = np.asarray(found, dtype=np.float64)
        if found.ndim == 1:
            found = np.column_stack([-found, found])
        scores = np.full((len(labels), len(classes)), -np.inf)
        if found.shape[1] == len(known):  # otherwise they are not of the classes, but of pairs of them
            scores[:, encode_labels(known, classes)[0]] = np.where(np.isnan(found), -np.inf, found)
        return labels, scores

    def probabilities(self, view: View) -> tuple[Array, Array]:
        """Return the probability of each class, shape (n_rows, n_classes), and the classes."""
        n_rows = view.asked.shape[0]
        if self.n_known_classes == 0:
            return np.ones((n_rows, 1)), self.classes[:1]
        if view.asked.shape[1] == 0:  # nothing is selected: the share of each class
            return np.tile(self._rows_of_class / self._rows_of_class.sum(), (n_rows, 1)), self.classes
        with np.errstate(divide="ignore", invalid="ignore"):  # as in `predict`
            found = np.asarray(view.predictor.predict_proba(view.asked), dtype=np.float64)
        return np.clip(np.nan_to_num(found, nan=1.0 / found.shape[1]), 0.0, 1.0), self.model.classes_

    def scores_of(self, positive: Any, view: View) -> Array:
        """Return a score of one of two classes for each row."""
        scores = self.scores(view)
        return scores if positive == self.model.classes_[1] else -scores

    def learn(self, view: View, y: Array, classes: Array) -> None:
        """Update the model with a batch whose labels are among the classes."""
        if len(classes) < 2:
            self.classes = classes
            return
        options = self._columns_argument(view)
        if self.n_known_classes != len(classes):
            if self.n_known_classes and not accepts_new_classes(self.model):  # reset with all classes
                self.reset()
                self.restarts += 1
            options["classes"] = in_order(classes)
        self.model.partial_fit(view.learned, y, **options)
        self.classes, self.n_known_classes = classes, len(classes)
        if new := len(classes) - len(self._rows_of_class):
            self._rows_of_class = np.pad(self._rows_of_class, (0, new))
        self.count_rows(y)

    def count_rows(self, y: Array) -> None:
        """Count the rows of each class that the model was trained on."""
        self._rows_of_class = self._rows_of_class + np.bincount(
            encode_labels(y, self.classes)[0], minlength=len(self.classes)
        )

    def learn_row(self, X: Array, codes: Array) -> None:
        """Update a :class:`DenseRowClassifier` with a row of all columns and the code of a class that it knows."""
        model: Any = self.model
        with lock_of(model):
            model._reject_invalid_state()
            model._learn(X, codes)
            model.n_seen_ += 1
        self._rows_of_class = self._rows_of_class.copy()
        self._rows_of_class[codes] += 1

    def _columns_argument(self, view: View) -> dict[str, Any]:
        """Return the selected columns as a keyword argument, for a learner whose `partial_fit` accepts it."""
        monitors = self.way == "whole" and isinstance(self.model, ResetOnDrift)  # its own errors
        is_passed = view.support is not None and (monitors or self.way == "columns")
        return {"columns": view.support} if is_passed else {}

    def change_columns(self, change: ColumnChange) -> bool:
        """Change the columns of the model; return whether it was possible, or unnecessary before the first batch."""
        self.release_buffers()
        return self.n_known_classes == 0 or change.apply(self.model)

    def row_scores(self, predicted: Array, y: Array) -> Array:
        """Return whether each prediction is correct."""
        return predicted == y

    def losses(self, predicted: Array, y: Array) -> Array:
        """Return the loss of each prediction: 0 or 1 for a class, the absolute error for a number."""
        return 1.0 - self.row_scores(predicted, y)

    def swap(self, other: MaskedLearner) -> None:
        """Exchange the state with another learner of the same kind; the models stay the same objects."""
        mine, its = vars(self.model).copy(), vars(other.model).copy()
        _set_attributes(self.model, its)
        _set_attributes(other.model, mine)
        for name in self._kept:
            if name not in ("model", "restarts"):
                ours, theirs = getattr(self, name), getattr(other, name)
                setattr(self, name, theirs)
                setattr(other, name, ours)

    def state(self) -> dict[str, Any]:
        """Return the state to save."""
        return {name: getattr(self, name) for name in self._kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the model gets the saved state and stays the same object."""
        self.model.__dict__ = state.pop("model").__dict__
        self.__dict__.update(state)

    def reset(self) -> None:
        """Reset the model to its unfitted state; it stays the same object."""
        _set_attributes(self.model, vars(clone(self.model)))
        self.n_known_classes = 0
        self._rows_of_class = np.zeros_like(self._rows_of_class)

    def release_buffers(self) -> None:
        """Release the memory of the last masked batch."""
        if self._masker._masked.size:
            self._masker = Masker(self._masker.blank)

    _kept: tuple[str, ...] = ("model", "classes", "n_known_classes", "restarts", "_rows_of_class")


def _set_attributes(model: Any, attributes: dict[str, Any]) -> None:
    """Replace the attributes of a model in its own dict, which a snapshot restores."""
    vars(model).clear()
    vars(model).update(attributes)


class MaskedRegressor(MaskedLearner):
    """A regressor that uses only the selected features.

    If the features are standardised for it, so is the target, by the running mean and standard deviation: a linear
    model would need many rows to learn a mean far from 0.

    Parameters
    ----------
    model : regressor with `partial_fit`
        It is fitted in place.
    classes : ndarray
        Ignored.
    masking : {"auto", "zeros"}, default="auto"
        As for :class:`MaskedLearner`.
    is_scaled : bool, default=False
        Whether the target is standardised.

    Attributes
    ----------
    target : RunningScale
        Running scale of the target.
    """

    _kept = (*MaskedLearner._kept, "target")

    def __init__(self, model: Any, classes: Array, masking: str = "auto", is_scaled: bool = False) -> None:
        super().__init__(model, classes, masking)
        self.is_scaled, self.target = is_scaled, RunningScale(1)
        self.n_known_classes = int(hasattr(model, "n_features_in_"))  # it may be fitted already

    def another(self) -> Self:
        """Return a new learner with an unfitted clone of the model."""
        return type(self)(clone(self.model), self.classes, self.masking, self.is_scaled)

    def predict(self, view: View) -> Array:
        """Return the numbers that the learner predicts; the mean so far before it is fitted."""
        if self.n_known_classes == 0:
            return np.repeat(self.target.shift, view.asked.shape[0])
        predicted = np.array(view.predictor.predict(view.asked), dtype=np.float64).reshape(-1)
        return predicted / self.target.factor + self.target.shift if self.is_scaled else predicted

    def row_scores(self, predicted: Array, y: Array) -> Array:
        """Return the absolute error of each prediction."""
        return np.abs(predicted - y)

    losses = row_scores

    def learn(self, view: View, y: Array, classes: Array) -> None:
        """Learn from a batch."""
        self.target.update(y[:, None])
        target = (y - self.target.shift) * self.target.factor if self.is_scaled else y
        self.model.partial_fit(view.learned, target, **self._columns_argument(view))
        self.n_known_classes = 1


def in_order(labels: Array) -> Array:
    """Return labels in the order passed to a learner: sorted, unless they have several types."""
    sortable = labels.dtype != object or len({type(label) for label in labels.tolist()}) == 1
    return np.sort(labels) if sortable else labels
