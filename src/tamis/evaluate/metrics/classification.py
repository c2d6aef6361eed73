"""Accuracy, kappas and balanced accuracy with two baselines: over all rows, and over a sliding window.

With n rows, a_k those of class k, b_k those predicted as k and h_k those that are both:

    accuracy = sum_k h_k / n                                                              (1)
    kappa    = (accuracy - e) / (1 - e),  e = sum_k (a_k / n) (b_k / n)                   (2)
    balanced = mean over the classes present (a_k > 0) of h_k / a_k                       (3)

So three counts per class suffice instead of the confusion matrix. The baselines use the labels only:

    majority:  predicts the class that was most frequent in all rows before (4); among ties, the one that led longest
    no change: predicts the label of the row before                         (5)
    kappa_m  = (accuracy - majority) / (1 - majority)                                     (6)
    kappa_t  = (accuracy - no change) / (1 - no change)                                   (7)

They are tested on the same rows as the learner, each row before they learn from it; with delayed labels, they too use
only the labels that have arrived. A learner with a kappa_m (kappa_t) below 0 is less accurate than the majority-class
(no-change) baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Floats, Ints, as_array, check_number, reject_masked, short_repr
from tamis.evaluate.metrics.metric import predicts_numbers

MEASURES = (
    "accuracy", "kappa", "balanced_accuracy", "kappa_m", "kappa_t", "majority_accuracy", "no_change_accuracy",
)  # fmt: skip
_N = len(MEASURES)
_MOST = 1 << 20  # classes that are counted: memory grows with the largest code


class Running(ThreadSafe):
    """Base class of the measures for classes and for numeric targets.

    Parameters
    ----------
    window : int
        Rows, at least 1.
    """

    _measures: tuple[str, ...] = ()
    bigger_is_better = True
    _shapes = "n_seen in [0, 2**62)"

    def __init__(self, window: int) -> None:
        check_number("window", window, low=1, integer=True)
        self.window, self.n_seen = int(window), 0
        self._values = np.full(1 + 2 * len(self._measures), math.nan)

    @property
    def values(self) -> Floats:
        """The first measure of the last batch alone, then all of them cumulative, then windowed."""
        return self._values.copy()

    @property
    def cumulative(self) -> dict[str, float]:
        """The measures over all rows so far; NaN before the first."""
        return self._measures_from(1)

    @property
    def windowed(self) -> dict[str, float]:
        """The measures over the last `window` rows; NaN before the first."""
        return self._measures_from(1 + len(self._measures))

    def get(self) -> float:
        """Return the first measure over all rows so far; NaN before the first."""
        return float(self._values[1])

    def works_with(self, model: Any) -> bool:
        """Return whether the predictions of a model can be evaluated: of classes, or of numbers."""
        return predicts_numbers(model) != self.bigger_is_better

    def _measures_from(self, at: int) -> dict[str, float]:
        names = self._measures
        return dict(zip(names, self._values[at : at + len(names)].tolist(), strict=True))


def as_batch(
    convert: Callable[[str, Any], Any], what: str, actual: Any, predicted: Any, revealed: Any, upto: Any
) -> tuple[Any, Any, Any, Any]:
    """Return a batch, the labels that arrive with it, by default its own, and the number known after each row."""
    actual, predicted = convert("actual", actual), convert("predicted", predicted)
    if actual.ndim != 1 or actual.shape != predicted.shape or actual.shape[0] == 0:
        raise ValueError(
            f"actual and predicted must contain one {what} for each row,"
            f" got shapes {actual.shape} and {predicted.shape}."
        )
    if revealed is None:
        return actual, predicted, actual, np.arange(1, len(actual) + 1)
    revealed, upto = convert("revealed", revealed), np.ascontiguousarray(upto, dtype=np.int64)
    falls = upto[0] < 0 or upto[-1] > len(revealed) or (upto[1:] < upto[:-1]).any() if len(upto) else False
    if upto.shape != actual.shape or falls:
        raise ValueError(
            f"upto must contain, for each of {len(actual)} rows, how many of {len(revealed)} labels are known."
        )
    return actual, predicted, revealed, upto


@njit(strict=True)
def _ratios(counts: Any, baselines: Any, n_rows: int, out: Any) -> None:
    hits, expected, recall, present, certain = 0, 0.0, 0.0, 0, False
    for k in range(counts.shape[1]):
        actual, predicted, hit = counts[0, k], counts[1, k], counts[2, k]
        hits += hit
        expected += (actual / n_rows) * (predicted / n_rows)
        certain = certain or (actual == n_rows and predicted == n_rows)
        if actual > 0:
            recall += hit / actual
            present += 1
    accuracy = hits / n_rows
    out[0] = accuracy  # (1)
    out[1] = np.nan if certain else (accuracy - expected) / (1.0 - expected)  # (2)
    out[2] = recall / present  # (3)
    for i in range(2):
        right = baselines[i]
        out[3 + i] = (hits - right) / (n_rows - right) if right < n_rows else np.nan  # (6), (7)
        out[5 + i] = right / n_rows


@njit(strict=True)
def _learn(actual: Any, frequency: Any, known: Any) -> None:
    """Update the baselines: `known` contains the majority and the last label."""
    for a in actual:
        frequency[a] += 1
        if known[0] < 0 or frequency[a] > frequency[known[0]]:
            known[0] = a  # (4)
        known[1] = a  # (5)


@njit(strict=True)
def _count(
    actual: Any,
    predicted: Any,
    counts: Any,
    baselines: Any,
    frequency: Any,
    known: Any,
    ring: Any,
    n_seen: int,
    revealed: Any,
    upto: Any,
    out: Any,
) -> None:
    """Count the rows, drop those that leave the window, and write all measures."""
    window, hits, n_revealed = ring.shape[1], 0, 0
    slot = n_seen % window
    for i in range(actual.shape[0]):
        a, b = actual[i], predicted[i]
        if n_seen + i >= window:
            old_a, old_b, old = ring[0, slot], ring[1, slot], ring[2, slot]
            counts[1, 0, old_a] -= 1
            counts[1, 1, old_b] -= 1
            if old_a == old_b:
                counts[1, 2, old_a] -= 1
            baselines[1, 0] -= old & 1
            baselines[1, 1] -= old >> 1
        majority, same = int(a == known[0]), int(a == known[1])
        ring[0, slot], ring[1, slot], ring[2, slot] = a, b, majority + 2 * same
        for scope in range(2):
            counts[scope, 0, a] += 1
            counts[scope, 1, b] += 1
            if a == b:
                counts[scope, 2, a] += 1
            baselines[scope, 0] += majority
            baselines[scope, 1] += same
        if a == b:
            hits += 1
        _learn(revealed[n_revealed : upto[i]], frequency, known)
        n_revealed = upto[i]
        slot += 1
        if slot == window:
            slot = 0
    _learn(revealed[n_revealed:], frequency, known)
    n_seen += actual.shape[0]
    half = (out.shape[0] - 1) // 2
    out[0] = hits / actual.shape[0]
    _ratios(counts[0], baselines[0], n_seen, out[1 : 1 + half])
    _ratios(counts[1], baselines[1], min(n_seen, window), out[1 + half :])


class RunningMetrics(Running):
    """Accuracy, kappas, balanced accuracy and baselines over all rows so far and over the last `window` rows.

    A batch costs O(rows + classes). Memory: 12 bytes per row of the window, 56 per class.
    Classes may appear at any time.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 1.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.

    Notes
    -----
    Balanced accuracy is the mean recall over the classes that occur in these rows. Kappa is NaN where chance
    agreement is certain, because there is only one class and no other was predicted. kappa_m and kappa_t are NaN if
    their baseline is always correct. A baseline that has seen no label yet counts as wrong.

    References
    ----------
    Bifet et al. (2015). Efficient Online Evaluation of Big Data Stream Classifiers. KDD (kappa_m). Zliobaite et al.
    (2015). Evaluation methods and decision theory for classification of streaming data with temporal dependence.
    Machine Learning 98 (kappa_t).

    Examples
    --------
    >>> metrics = RunningMetrics(window=2)
    >>> metrics.update([0, 0, 1, 0], [0, 0, 1, 1])
    >>> metrics.cumulative["accuracy"], metrics.cumulative["kappa"], metrics.cumulative["balanced_accuracy"]
    (0.75, 0.5, 0.8333333333333333)
    >>> metrics.windowed["accuracy"], metrics.windowed["majority_accuracy"], metrics.windowed["kappa_m"]
    (0.5, 0.5, 0.0)

    For labels in long runs, the no-change baseline is hard to beat.

    >>> runs = RunningMetrics()
    >>> runs.update([0] * 50 + [1] * 50, [0] * 45 + [1] * 55)
    >>> {name: round(runs.cumulative[name], 2) for name in ("accuracy", "kappa", "no_change_accuracy", "kappa_t")}
    {'accuracy': 0.95, 'kappa': 0.9, 'no_change_accuracy': 0.98, 'kappa_t': -1.5}
    """

    _measures = MEASURES
    _shapes = """
        window (=w)  _counts (2, 3, c) in [0, n_seen]  _baselines (2, 2) in [0, n_seen]  _frequency (c) in [0, 2**62)
        _known (2) in [-1, c)  _ring (3, w) int32 in [0, max(c, 4))  _ring[:2] int32 in [0, c)
        _values (15) float in [-inf, 1] or nan
    """

    def __init__(self, window: int = 1000) -> None:
        super().__init__(window)
        self._counts = np.zeros((2, 3, 2), np.int64)  # cumulative, windowed; a, b, h; class
        # Cumulative, windowed; majority, no change: number of correct predictions.
        self._baselines = np.zeros((2, 2), np.int64)
        self._frequency = np.zeros(2, np.int64)  # rows of each class, including those that were not tested
        self._known = np.full(2, -1)  # majority class, last label
        # Of the last rows: actual, predicted, and which baselines were correct.
        self._ring = np.zeros((3, self.window), np.int32)

    def learn(self, actual: Any) -> None:
        """Update the baselines with labels of rows that are not tested.

        Parameters
        ----------
        actual : array-like of int, shape (n_rows,)
            Class codes from 0 on.
        """
        actual = np.ascontiguousarray(actual, dtype=np.int64)
        self._make_room(int(actual.max(initial=0)) + 1)
        _learn(actual, self._frequency, self._known)

    def update(
        self,
        actual: Any,
        predicted: Any,
        n_classes: int | None = None,
        revealed: Any = None,
        upto: Any = None,
    ) -> None:
        """Count a batch.

        Parameters
        ----------
        actual, predicted : array-like of int, shape (n_rows,)
            Class codes from 0 on.
        n_classes : int, optional
            An upper bound of the codes, which is not checked. By default it is computed from the codes.
        revealed : array-like of int, shape (n_revealed,), optional
            Delayed labels that arrived, from which the baselines learn; by default those of the rows.
        upto : array-like of int, shape (n_rows,), optional
            How many of `revealed` are known after each row.

        Raises
        ------
        ValueError
            If the two do not have one code each for at least one row, or a code is negative.
        """
        actual, predicted, revealed, upto = as_batch(_codes, "code", actual, predicted, revealed, upto)
        if n_classes is None:
            low, high = int(min(actual.min(), predicted.min())), int(max(actual.max(), predicted.max()))
            if low < 0 or high >= _MOST:
                bad = low if low < 0 else high
                raise ValueError(f"actual and predicted must contain codes from 0 to {_MOST - 1}, got {bad}.")
            n_classes = high + 1
        self._make_room(n_classes if revealed is actual else max(n_classes, int(revealed.max(initial=0)) + 1))
        _count(
            actual, predicted, self._counts, self._baselines, self._frequency, self._known, self._ring,
            self.n_seen, revealed, upto, self._values,
        )  # fmt: skip
        self.n_seen += actual.shape[0]

    def frequency(self, code: int) -> int:
        """Return the number of rows of a class learned from so far, including those that were not tested."""
        return int(self._frequency[code]) if code < len(self._frequency) else 0

    def _make_room(self, n_classes: int) -> None:
        there = self._frequency.shape[0]
        if n_classes > there:
            missing = max(n_classes, 2 * there) - there
            self._counts = np.pad(self._counts, ((0, 0), (0, 0), (0, missing)))
            self._frequency = np.pad(self._frequency, (0, missing))


def _codes(name: str, values: Any) -> Ints:
    reject_masked(name, values)
    codes = as_array(name, values)
    if codes.dtype.kind not in "iub":
        raise ValueError(
            f"{name} must contain the code of a class for each row, an integer, got {short_repr(values)}."
        )
    return np.ascontiguousarray(codes, dtype=np.int64)
