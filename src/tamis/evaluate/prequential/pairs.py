"""The pairs beside a run: a selector that ignores the stream's drifts, and a copy of the learner.

| name | selector |
| --- | --- |
| random | a permutation of the columns, fixed by its number: its subset of size k is the first k of them |
| all | every column |
| frozen | the columns that an L1-regularised model of the first rows ranks highest (`frozen.py`) |

Each is tested and trained on the same batches in the same order, with as many columns as are selected. The random draws
share one copy of the learner if the number of columns varies and the learner predicts from some of the columns as if it
had been trained with these alone. The majority class and the previous label need no learner: `RunningMetrics` has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import Array, Rows, encode_labels
from tamis.evaluate.metrics.ranking import SlidingAUC
from tamis.evaluate.prequential.frozen import FirstRows
from tamis.learners.linear import are_alike, predict_and_train
from tamis.learners.reset import ResetOnDrift
from tamis.options import RunOptions
from tamis.pipeline.masked_learner import MaskedLearner, View
from tamis.pipeline.scaling import RunningScale
from tamis.streams.stream import Batch

__all__ = ["Ordered", "Pair", "make_pairs", "scores_of", "test_and_train"]


class Ordered:
    """A selector with a fixed order of the columns; None: it keeps all of them."""

    is_frozen = False

    def __init__(self, order: NDArray[np.intp] | None = None) -> None:
        self.order = order
        self.first: list[Batch] = []  # it needs none


class Pair:
    """A selector and a copy of the learner, and their performance.

    Parameters
    ----------
    name : {"random", "all", "frozen"}
    selector : Ordered or FirstRows
    learner : MaskedLearner
        Unfitted.
    is_fixed : bool
        Whether the number of columns never changes: the learner then receives only its own, which is faster.
    window : int
        Number of rows of the windowed scores.
    ranks : bool, default=False
        Whether its AUC is measured, too.
    """

    def __init__(
        self, name: str, selector: Ordered | FirstRows, learner: MaskedLearner, is_fixed: bool, window: int,
        ranks: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.selector, self.learner = name, selector, learner
        self.is_fixed = is_fixed and not _names_columns(learner.model)
        self.columns: NDArray[np.intp] | None = None  # its current selection; None: all
        self.n_seen, self.total, self.has_score = 0, 0.0, False
        self._ring = np.zeros(window)
        self.auc = SlidingAUC(max(2, window)) if ranks else None

    def follow(self, n_selected: int, n_features: int) -> None:
        """Select as many features as are currently selected."""
        before, order = self.columns, self.selector.order
        if order is None or n_selected == n_features:
            self.columns = None
        elif before is None or len(before) != n_selected:
            self.columns = np.sort(order[:n_selected])
        if self.is_fixed and self.columns is not before and self.learner.n_known_classes:
            self.learner.reset()  # fitted before the first selection, on other columns

    def test_and_train(
        self, tested: Batch | None, due: Batch | None, classes: Array, scale: RunningScale | None, positive: Any = None
    ) -> None:  # fmt: skip
        """Predict and score rows, then learn from those whose labels arrived with them.

        The AUC is that of the scores of the `positive` of two classes; None: the run has no scores of this batch.
        """
        if self.selector.first and self.columns is not None:  # selected since the batch before
            for X, y in self.selector.first if self.is_fixed else ():
                self.learner.learn(self._view(X, scale), y, self.learner.classes)
            self.selector.first = []
        view = None
        if tested is not None:
            view = self._view(tested[0], scale)
            self._test(view, tested[1], positive)
        if due is not None:
            if view is None or tested is None or due[0] is not tested[0]:
                view = self._view(due[0], scale)
            self.learner.learn(view, due[1], classes)
            if isinstance(self.selector, FirstRows) and self.selector.order is None:
                self.selector.learn(whole(due[0]), due[1])

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
            rows = X if is_accepted and not self.selector.is_frozen else whole(X)
            return self.learner.view(rows, None, None, scale)
        if not self.is_fixed:
            mask = np.zeros(X.shape[1], dtype=bool)
            mask[self.columns] = True
            return self.learner.view(whole(X), mask, self.columns, scale)
        if self.selector.is_frozen:
            X = whole(X)
        rows = X.take(self.columns, axis=1) if isinstance(X, np.ndarray) else X[:, self.columns]
        return self.learner.view(whole(rows), None, None, None if scale is None else scale.take(self.columns))

    def _count(self, scores: Array) -> None:
        window = len(self._ring)
        kept = scores[-window:]
        slots = (self.n_seen + len(scores) - len(kept) + np.arange(len(kept))) % window
        self._ring[slots] = kept
        self.total += float(scores.sum())
        self.n_seen += len(scores)
        self.has_score |= not self.selector.is_frozen or self.selector.order is not None

    def state(self) -> dict[str, Any]:
        """Return the state to be saved."""
        kept = {
            name: value for name, value in vars(self).items() if name not in ("learner", "is_fixed", "name")
        }
        return kept | {"learner": self.learner.state(), "selector": dict(vars(self.selector))}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.learner.restore(state.pop("learner"))
        self.selector.__dict__.update(state.pop("selector"))
        self.__dict__.update(state)

    @property
    def score(self) -> tuple[float, float]:
        """Accuracy, or mean absolute error, of all rows and of the last `window`; NaN until it has selected."""
        if not self.has_score:
            return math.nan, math.nan
        n_recent = min(self.n_seen, len(self._ring))
        return self.total / self.n_seen, float(self._ring[:n_recent].sum()) / n_recent

    @property
    def ranking(self) -> tuple[float, float]:
        """AUC, the mean over the run and of the last `window` rows; NaN where there is none."""
        return (
            (self.auc.mean, self.auc.windowed)
            if self.auc is not None and self.has_score
            else (math.nan, math.nan)
        )


def make_pairs(
    learner: MaskedLearner, n_features: int, options: RunOptions, *, is_fixed: bool, ranks: bool, is_regression: bool,
    categorical: Sequence[int],
) -> list[Pair]:  # fmt: skip
    """Return the pairs that the options request: the random draws, all columns, and the frozen selection."""
    if options.baselines == "none":
        return []
    n_draws = 0 if options.baselines == "all" else options.n_draws
    orders = [np.random.default_rng([draw, n_features]).permutation(n_features) for draw in range(n_draws)]
    selectors: list[tuple[str, Ordered | FirstRows]] = [("random", Ordered(order)) for order in orders]
    copies = [learner.another() for _ in selectors]
    # With a fixed number of columns each copy learns these alone, which is as fast.
    if copies and not is_fixed and _can_be_shared(learner):
        copies = copies[:1] * n_draws
    selectors.append(("all", Ordered()))
    if options.frozen_after:
        selectors.append(("frozen", FirstRows(options.frozen_after, is_regression, categorical)))
    copies += [learner.another() for _ in selectors[n_draws:]]
    return [
        Pair(name, selector, copy, is_fixed or name == "all", options.window, ranks)
        for (name, selector), copy in zip(selectors, copies, strict=True)
    ]


def test_and_train(
    pairs: list[Pair], tested: Batch | None, due: Batch | None, classes: Array, scale: RunningScale | None,
    positive: Any, n_selected: int, n_features: int,
) -> None:  # fmt: skip
    """Test and train each pair on a batch; see :meth:`Pair.test_and_train`."""
    for pair in pairs:
        pair.follow(n_selected, n_features)
    draws = [pair for pair in pairs if pair.name == "random"]
    together = test_and_train_together(draws, tested, due, classes, scale, positive)
    for pair in pairs[len(draws) :] if together else pairs:
        pair.test_and_train(tested, due, classes, scale, positive)


def test_and_train_together(
    draws: list[Pair], tested: Batch | None, due: Batch | None, classes: Array, scale: RunningScale | None,
    positive: Any,
) -> bool:  # fmt: skip
    """Test and train the draws in one pass if they share a learner, or are linear; return whether that was done."""
    if len(draws) > 1 and draws[0].learner is draws[1].learner:
        for draw in draws:
            if tested is not None:
                draw.test_and_train(tested, None, classes, scale, positive)
        if due is not None:
            draws[0].test_and_train(None, due, classes, scale)
        return True
    models: list[Any] = [draw.learner.model for draw in draws]
    if len(draws) < 2 or not hasattr(models[0], "_coef_") or tested is None or due is None:
        return False
    (X, y), learners = due, [draw.learner for draw in draws]
    if X is not tested[0] or sp.issparse(X) or not are_alike(models):
        return False
    if any(one.n_known_classes != len(classes) or one.way != "zeros" for one in learners):
        return False
    subsets = [np.arange(X.shape[1]) if draw.columns is None else draw.columns for draw in draws]
    rows = whole(X)
    rows = np.ascontiguousarray(rows, np.float64) if scale is None else scale.transform(rows)
    codes = encode_labels(y, models[0].classes_)[0]
    for draw, margins in zip(draws, predict_and_train(models, rows, np.stack(subsets), codes), strict=True):
        draw.count_margins(margins, y, positive)
    return True


def scores_of(pairs: list[Pair], has_ranks: bool) -> tuple[float, ...]:
    """Return the scores in the measure of the task, then in AUC where the task has it.

    Each is the mean of the random draws and its standard deviation over the run, then over the window; then those of
    all columns and of the frozen selection, over both.
    """
    items: list[float] = []
    for name in ("score", "ranking")[: 1 + has_ranks]:
        found: dict[str, list[tuple[float, float]]] = {"random": [], "all": [], "frozen": []}
        for pair in pairs:
            found[pair.name].append(getattr(pair, name))
        for scope in range(2):
            items += mean_and_spread([scores[scope] for scores in found["random"]])
        for one in ("all", "frozen"):
            items += found[one][0] if found[one] else (math.nan, math.nan)
    return tuple(items)


def mean_and_spread(values: list[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation (n - 1) over the draws; NaN where there are too few."""
    n = len(values)
    mean = sum(values) / n if n else math.nan
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1)) if n > 1 else math.nan


def _names_columns(model: Any) -> bool:
    """Return whether a parameter of the learner names categorical columns: then it must get all columns."""
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    named = (value for name, value in parameters.items() if name.rpartition("__")[2] == "categorical")
    return any(value is not None and not isinstance(value, str) for value in named)


def _can_be_shared(learner: MaskedLearner) -> bool:
    """Return whether the learner learns every column, regardless of the columns that it predicts from."""
    # ResetOnDrift resets by the errors of its own predictions.
    return (
        learner.way == "whole"
        and hasattr(learner.model, "restrict_columns")
        and not isinstance(learner.model, ResetOnDrift)
    )


def whole(X: Rows) -> Rows:
    """Return rows without NaN: columns that no selector chose may be incomplete."""
    if not np.isnan(X.sum()):
        return X
    if isinstance(X, np.ndarray):
        return np.nan_to_num(X, nan=0.0)
    imputed = X.copy()
    imputed.data = np.nan_to_num(imputed.data, nan=0.0)
    return imputed
