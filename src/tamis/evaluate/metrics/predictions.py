"""Metrics of labels, probabilities and numbers, each from weighted sums over the rows.

With w_i the weight of row i and W their sum; a_k, b_k and h_k the weight of the rows of class k, of those predicted as
k and of those that are both; p_ik the predicted probability of class k:

    accuracy           sum_k h_k / W                                                                (1)
    balanced accuracy  mean over the classes with a_k > 0 of h_k / a_k                              (2)
    kappa              (accuracy - e) / (1 - e),  e = sum_k a_k b_k / W^2                           (3)
    precision, recall  h_k / b_k and h_k / a_k; 0 for a denominator of 0                            (4)
    F1                 2 h_k / (a_k + b_k)                                                          (5)
    log loss           -sum_i w_i log p_i,y_i / W,  p clipped to [eps, 1 - eps]                     (6)
    Brier score        sum_i w_i sum_k (p_ik - [y_i = k])^2 / W, half of it for two classes         (7)
    MAE, RMSE          sum_i w_i |y_i - p_i| / W, and the root of sum_i w_i (y_i - p_i)^2 / W       (8)
    R^2                1 - sum_i w_i (y_i - p_i)^2 / sum_i w_i (y_i - mean)^2                       (9)
    pinball loss       sum_i w_i max(alpha (y_i - p_i), (alpha - 1) (y_i - p_i)) / W                (10)

Each equals the function of scikit-learn with `sample_weight`, up to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._validation import Floats, check_number
from tamis.evaluate.metrics.metric import Metric, RowMetric


class _OfCounts(Metric):
    """A metric of the weights of the rows of each class, predicted as each class, and both."""

    _shapes = "classes (*) labels  _counts (3, c) float in [0, inf)"

    def __init__(self) -> None:
        super().__init__()
        self._counts = np.zeros((3, 0))  # a, b, h

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        codes, named = actual.astype(np.intp), predicted[:, 0].astype(np.intp)
        n, hits = len(self.classes), weights * (codes == named)
        new = [np.bincount(codes, weights, n), np.bincount(named, weights, n), np.bincount(codes, hits, n)]
        self._counts = np.pad(self._counts, ((0, 0), (0, n - self._counts.shape[1]))) + new

    def _scale(self, factor: float) -> None:
        self._counts = self._counts * factor

    def get(self) -> float:
        """Return the value over the rows so far; NaN before the first."""
        a, b, h = self._counts
        return float(self._value(a, b, h)) if a.any() else math.nan

    def _value(self, a: Floats, b: Floats, h: Floats) -> float:
        raise NotImplementedError


class Accuracy(_OfCounts):
    """The share of rows predicted correctly (1).

    Examples
    --------
    >>> metric = Accuracy()
    >>> metric.update(["a", "b", "b"], ["a", "b", "a"], w=[1, 1, 2])
    >>> metric.get()
    0.5
    """

    def _value(self, a: Floats, b: Floats, h: Floats) -> float:
        return float(h.sum() / a.sum())  # (1)


class BalancedAccuracy(_OfCounts):
    """The mean recall over the classes (2).

    Examples
    --------
    >>> metric = BalancedAccuracy()
    >>> metric.update([0, 0, 0, 1], [0, 0, 0, 0])
    >>> metric.get()
    0.5
    """

    def _value(self, a: Floats, b: Floats, h: Floats) -> float:
        return float((h[a > 0] / a[a > 0]).mean())  # (2)


class Kappa(_OfCounts):
    """Cohen's kappa: accuracy beyond chance agreement (3); NaN where that is certain.

    Examples
    --------
    >>> metric = Kappa()
    >>> metric.update([0, 0, 1, 0], [0, 0, 1, 1])
    >>> metric.get()
    0.5
    """

    def _value(self, a: Floats, b: Floats, h: Floats) -> float:
        expected = float((a / a.sum()) @ (b / b.sum()))  # (3)
        return (h.sum() / a.sum() - expected) / (1.0 - expected) if expected < 1.0 else math.nan


class _ByClass(_OfCounts):
    """A metric of each class, and its mean over the classes."""

    def __init__(self, label: Any = None) -> None:
        super().__init__()
        self.label = label

    def _value(self, a: Floats, b: Floats, h: Floats) -> float:
        values = self.by_class
        if self.label is None:
            return sum(values.values()) / len(values)
        named = (
            value for label, value in values.items() if label == self.label or str(label) == str(self.label)
        )
        return next(named, math.nan)

    @property
    def by_class(self) -> dict[Any, float]:
        """The value of each class that occurs, or was predicted."""
        a, b, h = self._counts
        with np.errstate(invalid="ignore"):
            values = np.nan_to_num(self._of_class(a, b, h), nan=0.0).tolist()
        return {label: values[k] for k, label in enumerate(self.classes.tolist()) if a[k] + b[k] > 0}

    def _of_class(self, a: Floats, b: Floats, h: Floats) -> Floats:
        raise NotImplementedError


class Precision(_ByClass):
    """Precision (4): the share of the rows predicted as a class that are of it.

    Parameters
    ----------
    label : label, optional
        The class; by default the mean over the classes (macro). `by_class` has all of them.

    Examples
    --------
    >>> metric = Precision()
    >>> metric.update(["ham", "spam", "ham"], ["spam", "spam", "ham"])
    >>> metric.get(), metric.by_class
    (0.75, {'ham': 1.0, 'spam': 0.5})
    """

    def _of_class(self, a: Floats, b: Floats, h: Floats) -> Floats:
        return h / b  # (4)


class Recall(_ByClass):
    """Recall (4): the share of the rows of a class that are predicted as it.

    Parameters
    ----------
    label : label, optional
        The class; by default the mean over the classes (macro). `by_class` has all of them.

    Examples
    --------
    >>> metric = Recall("ham")
    >>> metric.update(["ham", "spam", "ham"], ["spam", "spam", "ham"])
    >>> metric.get(), metric.by_class
    (0.5, {'ham': 0.5, 'spam': 1.0})
    """

    def _of_class(self, a: Floats, b: Floats, h: Floats) -> Floats:
        return h / a  # (4)


class F1(_ByClass):
    """The harmonic mean of precision and recall (5).

    Parameters
    ----------
    label : label, optional
        The class; by default the mean over the classes (macro). `by_class` has all of them.

    Examples
    --------
    >>> metric = F1("spam")
    >>> metric.update(["ham", "spam", "ham"], ["spam", "spam", "ham"])
    >>> round(metric.get(), 3)
    0.667
    """

    def _of_class(self, a: Floats, b: Floats, h: Floats) -> Floats:
        return 2.0 * h / (a + b)  # (5)


class _OfSums(Metric):
    """A metric of weighted sums: of the weights, and of others."""

    bigger_is_better = False
    _shapes = "classes (*) labels  _sums (*) finite"
    _n_sums = 2

    def __init__(self) -> None:
        super().__init__()
        self._sums = np.zeros(self._n_sums)

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        self._sums = self._sums + np.array([weights.sum(), weights @ self._losses(actual, predicted)])

    def _losses(self, actual: Floats, predicted: Floats) -> Floats:
        raise NotImplementedError

    def _scale(self, factor: float) -> None:
        self._sums = self._sums * factor

    def get(self) -> float:
        """Return the mean over the rows so far; NaN before the first."""
        return float(self._sums[1] / self._sums[0]) if self._sums[0] else math.nan


class LogLoss(_OfSums):
    """Log loss, or cross-entropy (6), of probabilities.

    Examples
    --------
    >>> metric = LogLoss()
    >>> metric.update([0, 1, 1], [0.2, 0.8, 0.5])
    >>> round(metric.get(), 4)
    0.3798
    """

    takes = "probabilities"

    def _losses(self, actual: Floats, predicted: Floats) -> Floats:
        eps = np.finfo(np.float64).eps
        own = predicted[np.arange(len(actual)), actual.astype(np.intp)]
        return np.asarray(-np.log(np.clip(own, eps, 1.0 - eps)))  # (6)


class BrierScore(_OfSums):
    """Brier score (7): the mean squared error of probabilities; as in scikit-learn, half of it for two classes.

    Examples
    --------
    >>> metric = BrierScore()
    >>> metric.update([0, 1, 1], [0.2, 0.8, 0.5])
    >>> round(metric.get(), 4)
    0.11
    """

    takes = "probabilities"

    def _losses(self, actual: Floats, predicted: Floats) -> Floats:
        own = predicted[np.arange(len(actual)), actual.astype(np.intp)]
        return np.asarray((predicted**2).sum(axis=1) - own**2 + (1.0 - own) ** 2)

    def get(self) -> float:
        """Return the mean over the rows so far; NaN before the first."""
        return super().get() * (0.5 if len(self.classes) <= 2 else 1.0)  # (7)


class MacroAUC(RowMetric):
    """One-vs-rest area under the ROC curve over the last rows, averaged over the classes among them.

    Scores before and after a drift are not comparable, so it is that of the last rows. For two classes it is the AUC.

    Parameters
    ----------
    window : int, default=1000
        Number of rows, at least 2.

    Examples
    --------
    >>> metric = MacroAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9])
    >>> metric.get()
    0.75
    """

    takes = "probabilities"

    def __init__(self, window: int = 1000) -> None:
        check_number("window", window, low=2, integer=True)
        super().__init__(window)

    def _measure(self, actual: Floats, predicted: Floats, weights: Floats) -> float:
        from sklearn.metrics import roc_auc_score

        counted = weights > 0
        classes = np.unique(actual[counted]).astype(np.intp)
        if len(classes) < 2:
            return math.nan
        values = [roc_auc_score(actual == k, predicted[:, k], sample_weight=weights) for k in classes]
        return float(np.mean(values))


class MAE(_OfSums):
    """Mean absolute error (8).

    Examples
    --------
    >>> metric = MAE()
    >>> metric.update([1.0, 2.0], [1.5, 4.0])
    >>> metric.get()
    1.25
    """

    takes = "numbers"

    def _losses(self, actual: Floats, predicted: Floats) -> Floats:
        return np.abs(actual - predicted[:, 0])


class RMSE(_OfSums):
    """Root mean squared error (8).

    Examples
    --------
    >>> metric = RMSE()
    >>> metric.update([1.0, 2.0], [4.0, 6.0])
    >>> round(metric.get(), 4)
    3.5355
    """

    takes = "numbers"

    def _losses(self, actual: Floats, predicted: Floats) -> Floats:
        return np.asarray((actual - predicted[:, 0]) ** 2)

    def get(self) -> float:
        """Return the root of the mean over the rows so far; NaN before the first."""
        return math.sqrt(super().get())  # (8)


class PinballLoss(_OfSums):
    """Pinball, or quantile loss (10): the smallest for predictions of the quantile `alpha`.

    Parameters
    ----------
    alpha : float in (0, 1), default=0.5
        The quantile.

    Examples
    --------
    >>> metric = PinballLoss(0.9)
    >>> metric.update([1.0, 2.0], [0.0, 3.0])
    >>> metric.get()
    0.5
    """

    takes = "numbers"

    def __init__(self, alpha: float = 0.5) -> None:
        check_number("alpha", alpha, low=0, high=1, open_low=True, open_high=True)
        super().__init__()
        self.alpha = float(alpha)

    def _losses(self, actual: Floats, predicted: Floats) -> Floats:
        far = actual - predicted[:, 0]
        return np.maximum(self.alpha * far, (self.alpha - 1.0) * far)  # (10)


class R2(_OfSums):
    """R^2, the coefficient of determination (9); NaN if all targets are equal.

    Examples
    --------
    >>> metric = R2()
    >>> metric.update([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> metric.get()
    0.5
    """

    bigger_is_better = True
    takes = "numbers"
    _n_sums = 4  # weights, squared errors, squared distances from the mean; the mean

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        total = float(weights.sum())
        if total == 0.0:
            return
        before, errors, squares, mean = self._sums.tolist()
        own = float(weights @ actual) / total
        errors += float(weights @ (actual - predicted[:, 0]) ** 2)
        squares += float(weights @ (actual - own) ** 2) + (own - mean) ** 2 * before * total / (
            before + total
        )
        self._sums = np.array(
            [before + total, errors, squares, mean + (own - mean) * total / (before + total)]
        )

    def _scale(self, factor: float) -> None:
        self._sums = self._sums * [factor, factor, factor, 1.0]

    def get(self) -> float:
        """Return the value over the rows so far; NaN before the second."""
        return float(1.0 - self._sums[1] / self._sums[2]) if self._sums[2] > 0.0 else math.nan  # (9)
