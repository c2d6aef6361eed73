"""The learner of a run: it gets the selected columns alone, scaled if needed, and restarts when it must."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._check import Array, Rows
from tamis.learners.column_masking import accepts_nan, masking_strategy, restrict_columns
from tamis.learners.reset import ResetOnDrift
from tamis.pipeline.masking import Masker
from tamis.pipeline.scaling import RunningScale

__all__ = ["MaskedLearner", "MaskedRegressor", "View", "in_order"]


class View(NamedTuple):
    """A batch as a learner is given it; dense rows may be overwritten by the next one."""

    learned: Rows  # what it learns from
    asked: Rows  # what it predicts from
    predictor: Any  # who predicts
    support: NDArray[np.intp] | None  # the columns selected; None: all


class MaskedLearner:
    """A learner that knows nothing but the columns that are selected.

    Parameters
    ----------
    model : classifier with `partial_fit`
        It is fitted itself; unless it is fitted already, with the classes it is told of.
    classes : ndarray of shape (n_classes,)
        Labels known in advance.
    masking : {"auto", "zeros"}, default="auto"
        How columns are left out: as suits the learner, or as zeros.

    Attributes
    ----------
    way : {"whole", "missing", "zeros"}
        How columns are left out: see :mod:`tamis.learners.column_masking`.
    n_told : int
        Classes that the model was told of; 0: it cannot predict yet.
    restarts : int
        How often it restarted because of a label that it was not told of.
    """

    def __init__(self, model: Any, classes: Array, masking: str = "auto") -> None:
        self.model, self.classes, self.masking = model, classes, masking
        self.way = masking_strategy(model) if masking == "auto" else masking
        self._accepts_nan = accepts_nan(model)  # scikit-learn takes as long to say so as to count a batch
        self.n_told = len(getattr(model, "classes_", ()))  # it may have learned elsewhere
        self.restarts = 0
        self._rows_of_class: Array = np.zeros(len(classes), np.int64)
        self._masker = Masker(np.nan if self.way == "missing" else 0.0)

    def another(self) -> Self:
        """Return a new one, whose model is a copy that has learned nothing."""
        return type(self)(clone(self.model), self.classes, self.masking)

    def view(
        self,
        X: Rows,
        mask: NDArray[np.bool_] | None,
        support: NDArray[np.intp] | None,
        scale: RunningScale | None,
    ) -> View:
        """Return what the learner is given of a batch; without a mask all of it."""
        if mask is None or support is None:
            rows = X if scale is None else scale.transform(X)
            return View(rows, rows, self.model, None)
        if self.way != "whole":
            rows = self._masker.mask(X, mask, support, scale)
            return View(rows, rows, self.model, support)
        rows = X if scale is None else scale.transform(X)
        asked = rows[:, support] if sp.issparse(rows) else rows.take(support, axis=1)
        predictor = restrict_columns(self.model, support) if self.n_told and len(support) else self.model
        learned = rows if self._accepts_nan else self._filled(rows, mask)
        return View(learned, asked, predictor, support)

    def _filled(self, rows: Rows, mask: NDArray[np.bool_]) -> Rows:
        """Return the rows with the mean so far (0 where none is kept) for what is missing outside the selection."""
        if sp.issparse(rows) or not np.isnan(rows.sum()):
            return rows
        mean: Any = 0.0
        if self.n_told and hasattr(self.model, "theta_"):
            mean = np.average(self.model.theta_, axis=0, weights=self.model.class_count_)
        return np.where(np.isnan(rows) & ~mask, mean, rows)

    def predict(self, view: View) -> Array:
        """Return the labels that the learner predicts; the first class while it knows nothing."""
        if self.n_told == 0:
            return np.repeat(self.classes[:1], view.asked.shape[0])
        if view.asked.shape[1] == 0:  # nothing is selected: the commonest class
            return np.repeat(self.classes[self._rows_of_class.argmax()], view.asked.shape[0])
        return np.array(view.predictor.predict(view.asked))  # a copy: it is counted later

    def scores(self, view: View) -> Array:
        """Return a score of the second of two classes for each row."""
        if view.asked.shape[1] == 0:
            return np.zeros(view.asked.shape[0])
        if hasattr(self.model, "decision_function"):
            return np.array(view.predictor.decision_function(view.asked), dtype=np.float64).reshape(-1)
        return np.array(view.predictor.predict_proba(view.asked), dtype=np.float64)[:, 1]

    def scores_of(self, positive: Any, view: View) -> Array:
        """Return a score of one of two classes for each row."""
        scores = self.scores(view)
        return scores if positive == self.model.classes_[1] else -scores

    def learn(self, view: View, y: Array, classes: Array) -> None:
        """Learn from a batch, whose labels are among the classes."""
        if len(classes) < 2:
            self.classes = classes
            return
        told: dict[str, Any] = {}
        if self.way == "whole" and view.support is not None and isinstance(self.model, ResetOnDrift):
            told["columns"] = view.support  # it watches its own errors
        if self.n_told != len(classes):
            if self.n_told:  # a label it was not told of: it restarts with all of them
                self.forget()
                self.restarts += 1
            told["classes"] = in_order(classes)
        self.model.partial_fit(view.learned, y, **told)
        self.classes, self.n_told = classes, len(classes)
        if new := len(classes) - len(self._rows_of_class):
            self._rows_of_class = np.pad(self._rows_of_class, (0, new))
        self._rows_of_class = self._rows_of_class + [np.count_nonzero(y == label) for label in classes]

    def judge(self, predicted: Array, y: Array) -> Array:
        """Return of each prediction whether it is right."""
        found: Array = predicted == y
        return found

    def state(self) -> dict[str, Any]:
        """Return all there is to save."""
        return {name: getattr(self, name) for name in self._kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what was saved; the model becomes the saved one and stays the same object."""
        self.model.__dict__ = state.pop("model").__dict__
        self.__dict__.update(state)

    def forget(self) -> None:
        """Restart; the model stays the same object."""
        self.model.__dict__ = clone(self.model).__dict__
        self.n_told = 0
        self._rows_of_class = np.zeros_like(self._rows_of_class)

    def rest(self) -> None:
        """Give back the memory of the last batch that was masked."""
        self._masker = Masker(self._masker.blank)

    _kept: tuple[str, ...] = ("model", "classes", "n_told", "restarts", "_rows_of_class")


class MaskedRegressor(MaskedLearner):
    """A learner of numbers that knows nothing but the columns that are selected.

    Where the columns are standardised for it, the target is too, by the mean and the standard deviation of all targets
    that came until then. A linear model would take long to find a mean that is far from 0.

    Parameters
    ----------
    model : regressor with `partial_fit`
        It is fitted itself.
    classes : ndarray
        Of no use here.
    masking : {"auto", "zeros"}, default="auto"
        As for :class:`MaskedLearner`.
    is_scaled : bool, default=False
        Whether the target is standardised.

    Attributes
    ----------
    target : RunningScale
        Of the targets that came.
    """

    _kept = (*MaskedLearner._kept, "target")

    def __init__(self, model: Any, classes: Array, masking: str = "auto", is_scaled: bool = False) -> None:
        super().__init__(model, classes, masking)
        self.is_scaled, self.target = is_scaled, RunningScale(1)
        self.n_told = int(hasattr(model, "n_features_in_"))  # it may have learned elsewhere

    def another(self) -> Self:
        """Return a new one, whose model is a copy that has learned nothing."""
        return type(self)(clone(self.model), self.classes, self.masking, self.is_scaled)

    def predict(self, view: View) -> Array:
        """Return the numbers that the learner predicts; the mean so far while it knows nothing."""
        if self.n_told == 0:
            return np.repeat(self.target.shift, view.asked.shape[0])
        found = np.array(view.predictor.predict(view.asked), dtype=np.float64).reshape(-1)
        return found / self.target.factor + self.target.shift if self.is_scaled else found

    def judge(self, predicted: Array, y: Array) -> Array:
        """Return how far each prediction is from the target."""
        found: Array = np.abs(predicted - y)
        return found

    def learn(self, view: View, y: Array, classes: Array) -> None:
        """Learn from a batch."""
        self.target.update(y[:, None])
        given = (y - self.target.shift) * self.target.factor if self.is_scaled else y
        self.model.partial_fit(view.learned, given)
        self.n_told = 1


def in_order(labels: Array) -> Array:
    """Return labels as a learner is told of them: sorted, unless they are of several types."""
    sortable = labels.dtype != object or len({type(label) for label in labels.tolist()}) == 1
    return np.sort(labels) if sortable else labels
