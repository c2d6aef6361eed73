"""The baselines of a selection: the same learner on random subsets of the same size, and on all features.

Each draw is a permutation of the columns, fixed for the whole run by its number: its subset of size k is the first k of
them. Each has a separate copy of the learner, tested and trained on the same batches in the same order. The copies
follow the size of the selection; they have no information about its drifts. The draws share one copy if the number of
columns varies and the learner predicts from some of the columns as if it had been trained with these alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import Array, Rows, encode_labels
from tamis.evaluate.metrics.auc import SlidingAUC
from tamis.learners.linear import are_alike, predict_and_train
from tamis.learners.reset import ResetOnDrift
from tamis.pipeline.masked_learner import MaskedLearner, View
from tamis.pipeline.scaling import RunningScale
from tamis.streams.stream import Batch

__all__ = ["Baseline", "error_of_mean", "make_baselines", "mean_and_spread", "test_and_train_together"]


class Baseline:
    """A copy of the learner on features that no selector chose, and its performance.

    Parameters
    ----------
    learner : MaskedLearner
        Unfitted.
    order : ndarray of shape (n_features,), int, or None
        The permutation; None: all features.
    is_fixed : bool
        Whether the size never changes: the copy then receives only its own features, which is faster.
    window : int
        Number of rows of the windowed scores.
    ranks : bool, default=False
        Whether its AUC is measured, too.
    """

    def __init__(
        self,
        learner: MaskedLearner,
        order: NDArray[np.intp] | None,
        is_fixed: bool,
        window: int,
        ranks: bool = False,
    ) -> None:
        self.learner = learner
        self.order, self.is_fixed = order, is_fixed and not _names_columns(learner.model)
        self.columns: NDArray[np.intp] | None = None  # its current subset; None: all
        self.n_seen, self.total = 0, 0.0
        self._ring = np.zeros(window)
        self.auc = SlidingAUC(max(2, window)) if ranks else None

    def follow(self, n_selected: int, n_features: int) -> None:
        """Use as many features as are currently selected."""
        before = self.columns
        if self.order is None or n_selected == n_features:
            self.columns = None
        elif before is None or len(before) != n_selected:
            self.columns = np.sort(self.order[:n_selected])
        if self.is_fixed and self.columns is not before and self.learner.n_known_classes:
            self.learner.reset()  # fitted before the first selection, on other columns

    def test_and_train(
        self,
        tested: Batch | None,
        due: Batch | None,
        classes: Array,
        scale: RunningScale | None,
        positive: Any = None,
    ) -> None:
        """Predict and score rows, then learn from those whose labels arrived with them.

        The AUC is that of the scores of the `positive` of two classes; None: the run has no scores of this batch.
        """
        view = None
        if tested is not None:
            view = self._view(tested[0], scale)
            self._test(view, tested[1], positive)
        if due is not None:
            if view is None or tested is None or due[0] is not tested[0]:
                view = self._view(due[0], scale)
            self.learner.learn(view, due[1], classes)

    def test(self, rows: Batch, scale: RunningScale | None, positive: Any = None) -> None:
        """Predict rows and count the correct predictions; see :meth:`test_and_train`."""
        self._test(self._view(rows[0], scale), rows[1], positive)

    def learn(self, due: Batch, classes: Array, scale: RunningScale | None) -> None:
        """Learn from rows whose labels arrived."""
        self.learner.learn(self._view(due[0], scale), due[1], classes)

    def _test(self, view: View, y: Array, positive: Any) -> None:
        if self.auc is None or positive is None or self.learner.n_known_classes != 2:
            self._count(self.learner.row_scores(self.learner.predict(view), y))
            return
        labels, scores = self.learner.predict_with_scores(view, positive)
        self._count(self.learner.row_scores(labels, y))
        self.auc.update(np.asarray(y == positive), scores)

    def count_margins(self, margins: Array, y: Array, positive: Any) -> None:
        """Evaluate the predictions of a linear learner by its decision function, and count the rows that it learned."""
        classes = self.learner.model.classes_
        codes = (margins > 0.0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        self._count(self.learner.row_scores(classes[codes], y))
        self.learner.count_rows(y)
        if self.auc is not None and positive is not None and margins.ndim == 1:
            self.auc.update(np.asarray(y == positive), margins if positive == classes[1] else -margins)

    def _view(self, X: Rows, scale: RunningScale | None) -> View:
        if self.columns is None:
            is_accepted = (
                scale is not None or self.learner.accepts_nan
            )  # scaling puts missing values at the mean
            return self.learner.view(X if is_accepted else whole(X), None, None, scale)
        if not self.is_fixed:
            mask = np.zeros(X.shape[1], dtype=bool)
            mask[self.columns] = True
            return self.learner.view(whole(X), mask, self.columns, scale)
        rows = X.take(self.columns, axis=1) if isinstance(X, np.ndarray) else X[:, self.columns]
        return self.learner.view(whole(rows), None, None, None if scale is None else scale.of(self.columns))

    def _count(self, scores: Array) -> None:
        window = len(self._ring)
        kept = scores[-window:]
        slots = (self.n_seen + len(scores) - len(kept) + np.arange(len(kept))) % window
        self._ring[slots] = kept
        self.total += float(scores.sum())
        self.n_seen += len(scores)

    def state(self) -> dict[str, Any]:
        """Return the state to be saved."""
        kept = {name: value for name, value in vars(self).items() if name not in ("learner", "is_fixed")}
        return kept | {"learner": self.learner.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.learner.restore(state.pop("learner"))
        self.__dict__.update(state)

    @property
    def score(self) -> tuple[float, float]:
        """Accuracy, or mean absolute error, of all rows and of the last `window`; NaN before the first."""
        if self.n_seen == 0:
            return math.nan, math.nan
        n_recent = min(self.n_seen, len(self._ring))
        return self.total / self.n_seen, float(self._ring[:n_recent].sum()) / n_recent

    @property
    def ranking(self) -> tuple[float, float]:
        """AUC, the mean over the run and of the last `window` rows; NaN where there is none."""
        return (math.nan, math.nan) if self.auc is None else (self.auc.mean, self.auc.windowed)


def _names_columns(model: Any) -> bool:
    """Return whether a parameter of the learner names categorical columns: then it must get all columns."""
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    named = (value for name, value in parameters.items() if name.rpartition("__")[2] == "categorical")
    return any(value is not None and not isinstance(value, str) for value in named)


def whole(X: Rows) -> Rows:
    """Return rows without NaN: random columns may be incomplete."""
    if not np.isnan(X.sum()):
        return X
    if isinstance(X, np.ndarray):
        return np.nan_to_num(X, nan=0.0)
    imputed = X.copy()
    imputed.data = np.nan_to_num(imputed.data, nan=0.0)
    return imputed


def test_and_train_together(
    draws: list[Baseline], tested: Batch | None, due: Batch | None, classes: Array, scale: RunningScale | None,
    positive: Any,
) -> bool:  # fmt: skip
    """Test and train the draws in one pass if they share a learner, or are linear; return whether that was done."""
    if len(draws) > 1 and draws[0].learner is draws[1].learner:
        for draw in draws:
            if tested is not None:
                draw.test(tested, scale, positive)
        if due is not None:
            draws[0].learn(due, classes, scale)
        return True
    if len(draws) < 2 or tested is None or due is None or due[0] is not tested[0] or sp.issparse(due[0]):
        return False
    (X, y), learners = due, [draw.learner for draw in draws]
    if any(one.n_known_classes != len(classes) or one.way != "zeros" for one in learners):
        return False
    models = [one.model for one in learners]
    if not are_alike(models):
        return False
    subsets = [np.arange(X.shape[1]) if draw.columns is None else draw.columns for draw in draws]
    rows = whole(X)
    rows = np.ascontiguousarray(rows, np.float64) if scale is None else scale.transform(rows)
    codes = encode_labels(y, models[0].classes_)[0]
    for draw, margins in zip(draws, predict_and_train(models, rows, np.stack(subsets), codes), strict=True):
        draw.count_margins(margins, y, positive)
    return True


def _can_be_shared(learner: MaskedLearner) -> bool:
    """Return whether the learner learns every column, regardless of the columns that it predicts from."""
    # ResetOnDrift resets by the errors of its own predictions.
    return (
        learner.way == "whole"
        and hasattr(learner.model, "restrict_columns")
        and not isinstance(learner.model, ResetOnDrift)
    )


def make_baselines(
    learner: MaskedLearner,
    n_features: int,
    *,
    n_draws: int,
    every: bool,
    is_fixed: bool,
    window: int,
    ranks: bool,
) -> tuple[list[Baseline], Baseline | None]:
    """Return the random draws, and the baseline with all columns if `every` is true."""
    orders = [np.random.default_rng([draw, n_features]).permutation(n_features) for draw in range(n_draws)]
    copies = [learner.another() for _ in orders]
    # With a fixed number of columns each copy learns these alone, which is as fast.
    if copies and not is_fixed and _can_be_shared(learner):
        copies = copies[:1] * n_draws
    draws = [Baseline(one, order, is_fixed, window, ranks) for one, order in zip(copies, orders, strict=True)]
    return draws, Baseline(learner.another(), None, True, window, ranks) if every else None


def error_of_mean(spread: Any, n_draws: int) -> Any:
    """Return the standard error of the mean of the draws: the margin by which a selection must exceed the mean.

    The error of a single draw is unknown, and counts as 0.
    """
    return np.nan_to_num(spread, nan=0.0) / math.sqrt(n_draws)


def mean_and_spread(values: list[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation (n - 1) over the draws; NaN where there are too few."""
    n = len(values)
    mean = sum(values) / n if n else math.nan
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1)) if n > 1 else math.nan
