"""Performance of the predictions as labels arrive, beside the majority-class and no-change baselines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._validation import Array, Floats, Ints, as_target, encode_labels, short_repr
from tamis.errors import DataError
from tamis.evaluate.metrics.classification import RunningMetrics
from tamis.evaluate.metrics.ranking import SlidingAUC, SlidingMacroAUC
from tamis.evaluate.metrics.regression import RunningErrors


class Performance(ThreadSafe):
    """Measures over the last `window` labelled rows; for scores, from the batch on in which two classes are known.

    Parameters
    ----------
    task : {"classification", "regression"}
    window : int
    classes : ndarray
        Classes known before the first label, in the order of the columns of probabilities.

    Attributes
    ----------
    first : dict of str to float
        The measures at the end of the first complete window; empty before.
    """

    def __init__(self, task: str, window: int, classes: Array) -> None:
        self.task, self.window, self.classes = task, window, classes
        self._running: Any = RunningMetrics(window) if task == "classification" else RunningErrors(window)
        self._auc, self._macro_auc = SlidingAUC(window), SlidingMacroAUC(window)
        self.first: dict[str, float] = {}

    def codes(self, y: Array) -> Array:
        """Return the target as numbers; for a classification, the codes of the labels."""
        if self.task == "regression":
            return as_target(y)
        codes, self.classes = encode_labels(y, self.classes)
        return codes

    def update(self, y: Array, predictions: Floats, kind: str) -> None:
        """Count rows of coded targets and predictions of a kind: "score", "probabilities", "label" or "number"."""
        if kind == "number":
            self._running.update(y, predictions[:, 0])
        else:
            order = order_by_label(self.classes)
            if kind == "score" and len(order) > 2:
                raise DataError(
                    f"predictions are scores for two classes, but the labels are {short_repr(self.classes.tolist())}:"
                    " pass probabilities of shape (n_rows, n_classes)."
                )
            if kind == "score" and len(order) < 2:
                return  # the positive class is determined once there are two
            predicted = predicted_classes(predictions, kind)
            positive = order[-1]
            if kind == "score":
                predicted = np.where(predicted == 1, positive, order[0])
                self._auc.update(y == positive, predictions[:, 0])
            elif kind == "probabilities" and len(self.classes) == 2:
                self._auc.update(y == 1, predictions[:, 1])
            elif kind == "probabilities":
                n_without = len(self.classes) - predictions.shape[1]  # classes that have no column
                self._macro_auc.update(y, np.pad(predictions, ((0, 0), (0, n_without))))
            self._running.update(y, predicted)
        if not self.first and self._running.n_seen >= self.window:
            self.first = self.measures()

    def measures(self) -> dict[str, float]:
        """Return the measures over the last rows: "auc" is of scores of two classes, "macro_auc" of more; else NaN."""
        mapping: dict[str, float] = dict(self._running.windowed)
        if self.task == "classification":
            auc = math.nan if len(self.classes) > 2 else self._auc.windowed
            mapping |= {"auc": auc, "macro_auc": self._macro_auc.windowed}
        return mapping


def order_by_label(classes: Array) -> list[int]:
    """Return the codes of the classes in the order of their labels; the larger label is the positive class."""
    labels = classes.tolist()
    try:
        return sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # labels of several types
        return list(range(len(labels)))


def predicted_classes(predictions: Floats, kind: str) -> Ints:
    """Return the predicted class; for a score, 1 above one half."""
    if kind == "probabilities":
        return np.asarray(predictions.argmax(axis=1), dtype=np.int64)
    if kind == "score":
        return (predictions[:, 0] > 0.5).astype(np.int64)
    return predictions[:, 0].astype(np.int64)
