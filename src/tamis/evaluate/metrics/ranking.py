"""Metrics of scores of two classes, over the last rows: AUC, average precision, recall, and a decision threshold.

**Prequential AUC** (Brzezinski, Stefanowski 2017). For the positive rows p and the negative rows q of the window,

    AUC = #{(p, q): score p > score q} + 1/2 #{(p, q): score p = score q}, over all pairs, divided by their number   (1)

A row that enters or leaves changes the number of pairs won by its rank among the rows of the other class, so (1) is
exact and never recomputed. Pairs won are counted as integers, doubled because a tie is one half.

For three or more classes, each is compared with the others, and (1) is averaged over the classes (macro, one-vs-rest).

The scores of each class are kept in order. Rows are processed in blocks: a rank is a binary search in the scores of
before the block, corrected by the rows of the block; after the block they are merged in one pass.

**Average precision and recall.** The rows are ranked by their score, highest first. With the n_+ positive ones, and cut
after each *distinct* score t (rows of one score are accepted together or not at all):

    P(t) = #{positive, score >= t} / #{score >= t},    R(t) = #{positive, score >= t} / n_+
    average precision = sum over t, descending, of (R(t) - R(t before)) P(t)                   (2)
    recall at p       = the largest R(t) of those t with P(t) >= p; 0 if there is none         (3)

An uninformative ranking has an average precision near the share of the positive rows.

**Decision threshold.** For a rare class, a learner rarely predicts a probability above .5, so its default decisions
have a recall near zero. Here rows are classified with the threshold t that maximises the F1 score on earlier labelled
rows:

    F1(t) = 2 #{positive, score >= t} / (#{score >= t} + #{positive})                                (4)

It is updated every 1,000 labelled rows, as the largest score that maximises (4) on the last 10,000.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, as_numbers, check_number
from tamis.errors import StateError
from tamis.evaluate.metrics.metric import predicts_numbers

_BLOCK = 64  # rows whose scores are merged together
_MOST_CLASSES = 100  # that are ranked: memory and time grow with their number
_FEW = 50  # inserting one row in so many of the window takes as long as sorting the window
_LEAST = 10  # positive rows: with fewer, the best threshold is that of single rows


@njit(strict=True)
def _rank(score: float, ordered: Any, n: int) -> int:
    """Return the number of the first n values below the score, plus the number of those not above it."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < score:
            low = middle + 1
        else:
            high = middle
    below = low
    if low == n or ordered[low] > score:
        return 2 * below
    high = n
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return below + low


@njit(strict=True)
def _rank_of_class(score: float, label: int, scores: Any, labels: Any, begin: int, end: int) -> int:
    """Return the same number for the scores of a class in a range of rows."""
    rank = 0
    for p in range(begin, end):
        rank += (labels[p] == label) * ((scores[p] < score) + (scores[p] <= score))
    return rank


@njit(strict=True)
def _sort_class(label: int, scores: Any, labels: Any, begin: int, end: int, ordered: Any) -> int:
    """Write the scores of a class in a range of rows in ascending order; return their number."""
    n = 0
    for p in range(begin, end):
        if labels[p] == label:
            at = n
            while at > 0 and ordered[at - 1] > scores[p]:
                ordered[at] = ordered[at - 1]
                at -= 1
            ordered[at] = scores[p]
            n += 1
    return n


@njit(strict=True)
def _replace(ordered: Any, n: int, old: Any, n_old: int, new: Any, n_new: int) -> None:
    """Remove the old values from the first n, and insert the new ones; all are in ascending order."""
    if n_old > 0:
        at = 0
        for i in range(np.searchsorted(ordered[:n], old[0]), n):
            if at < n_old and ordered[i] == old[at]:
                at += 1
            else:
                ordered[i - at] = ordered[i]
    i, at = n - n_old - 1, n_new - 1
    while at >= 0:
        if i >= 0 and ordered[i] > new[at]:
            ordered[i + at + 1] = ordered[i]
            i -= 1
        else:
            ordered[i + at + 1] = new[at]
            at -= 1


@njit(strict=True)
def _slide_auc(
    positive: Any, values: Any, n_seen: int, labels: Any, scores: Any, ordered: Any, counts: Any, totals: Any
) -> float:
    """Count the rows; return the sum of the AUC over those at which it is defined."""
    window, total, begin = labels.shape[0], 0.0, 0
    slot = n_seen % window
    old, old_labels = np.empty(_BLOCK), np.empty(_BLOCK, np.int64)  # the rows of the block that left
    left, entered = np.empty(_BLOCK), np.empty(_BLOCK)
    now = counts.copy()
    while begin < values.shape[0]:
        # No row enters and leaves in the same block.
        end, n_old = min(begin + _BLOCK, begin + window, values.shape[0]), 0
        for i in range(begin, end):
            for enters in range(n_seen + i < window, 2):
                label = positive[i] if enters else labels[slot]
                score = values[i] if enters else scores[slot]
                if not enters:
                    old[n_old], old_labels[n_old] = score, label
                    n_old += 1
                    now[label] -= 1
                other = 1 - label
                rank = _rank(score, ordered[other], counts[other])
                rank += _rank_of_class(score, other, values, positive, begin, i)
                rank -= _rank_of_class(score, other, old, old_labels, 0, n_old)
                won = rank if label else 2 * now[other] - rank
                totals[0] += won if enters else -won
            labels[slot], scores[slot] = positive[i], values[i]
            now[positive[i]] += 1
            if now[0] > 0 and now[1] > 0:
                total += 0.5 * totals[0] / (now[0] * now[1])  # (1)
                totals[1] += 1
            slot += 1
            if slot == window:
                slot = 0
        for k in range(2):
            n_left = _sort_class(k, old, old_labels, 0, n_old, left)
            n_entered = _sort_class(k, values, positive, begin, end, entered)
            _replace(ordered[k], counts[k], left, n_left, entered, n_entered)
            counts[k] = now[k]
        begin = end
    return total


def _as_ranked(positive: Any, scores: Any) -> tuple[Array, Array]:
    """Return which rows are positive, and their scores; reject scores that are not numbers."""
    is_bool = type(positive) is np.ndarray and positive.dtype == bool
    labels = positive if is_bool else as_numbers("positive", positive)
    values = np.ascontiguousarray(as_numbers("scores", scores))
    if labels.ndim != 1 or labels.shape != values.shape:
        raise ValueError(
            f"positive and scores must contain one value for each row, got shapes {labels.shape} and {values.shape}."
        )
    if np.isnan(values).any():
        raise ValueError("scores must not contain NaN.")
    if not is_bool and not np.isin(labels, (0, 1)).all():
        raise ValueError(f"positive must contain zeros and ones, got {positive!r}.")
    return labels.astype(bool, copy=False), values


class Ranked(ThreadSafe):
    """A metric of scores over the last rows, and its mean over the run."""

    bigger_is_better = True

    def get(self) -> float:
        """Return the value over the last `window` rows; NaN where it is not defined."""
        windowed: Any = self.windowed  # type: ignore[attr-defined]
        return float(windowed[0] if isinstance(windowed, tuple) else windowed)

    def works_with(self, model: Any) -> bool:
        """Return whether a model has scores of classes."""
        names = ("decision_function", "predict_proba", "predict_proba_one")
        return not predicts_numbers(model) and any(hasattr(model, name) for name in names)


class SlidingAUC(Ranked):
    """Area under the ROC curve over the last `window` rows, and its mean over the run.

    A row costs O(log window), and each 64 rows or each call O(window). Memory: 32 bytes per row of the window.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 2.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.

    References
    ----------
    Brzezinski, Stefanowski (2017). Prequential AUC: properties of the area under the ROC curve for data streams with
    concept drift. Knowledge and Information Systems 52.

    Examples
    --------
    Three of the four pairs are in the right order:

    >>> auc = SlidingAUC(window=4)
    >>> auc.update([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9])
    >>> auc.windowed
    0.75
    """

    _shapes = """
        window (=w)  n_seen in [0, 2**62)  _labels (w) in [0, 1]  _scores (w) float in [-inf, inf]
        _ordered (2, w) float in [-inf, inf]  _counts (2) in [0, w]  _totals (2) in [0, 2**62)  _sum float in [0, inf)
    """

    def __init__(self, window: int = 1000) -> None:
        check_number("window", window, low=2, integer=True)
        self.window, self.n_seen = int(window), 0
        self._labels = np.zeros(self.window, np.int64)  # of the last rows
        self._scores = np.zeros(self.window)
        # Scores of the negative and of the positive rows, ascending.
        self._ordered = np.zeros((2, self.window))
        self._counts = np.zeros(2, np.int64)
        self._totals = np.zeros(2, np.int64)  # twice the pairs won, rows with an AUC
        self._sum = 0.0

    def check_state(self) -> None:
        """Reject ordered scores that are not those of the window.

        Raises
        ------
        StateError
            If so.
        """
        n = min(self.n_seen, self.window)
        for k, ordered in enumerate(self._ordered):
            own = np.sort(self._scores[:n][self._labels[:n] == k])
            if len(own) != self._counts[k] or not np.array_equal(own, ordered[: len(own)]):
                raise StateError(
                    "A SlidingAUC does not contain the ordered scores of the rows of its window: the model was changed"
                    " from outside, so count again or load it from where it was saved."
                )

    def update(self, positive: Any, scores: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        positive : array-like of bool or 0/1, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            Larger scores mean that the positive class is more likely.

        Raises
        ------
        ValueError
            If there is not one label and one score that is a number for each row. Nothing is then counted.
        """
        positive, scores = _as_ranked(positive, scores)
        self._count(positive.astype(np.int64), scores)

    def _count(self, codes: Any, values: Any) -> None:
        self._sum += _slide_auc(
            codes, values, self.n_seen, self._labels, self._scores, self._ordered, self._counts, self._totals
        )
        self.n_seen += len(values)

    @property
    def windowed(self) -> float:
        """AUC of the last `window` rows; NaN unless both classes are among them."""
        n_pairs = math.prod(self._counts.tolist())
        return 0.5 * int(self._totals[0]) / n_pairs if n_pairs else math.nan

    @property
    def mean(self) -> float:
        """Mean of `windowed` over all rows at which it is defined; NaN if there are none.

        Scores before and after a drift are not comparable, so an AUC of the entire run is not defined.
        """
        n_rows = int(self._totals[1])
        return self._sum / n_rows if n_rows else math.nan


class SlidingMacroAUC(Ranked):
    """One-vs-rest AUC over the last `window` rows, averaged over the classes, and its mean over the run.

    Each class is ranked against all others by its own score. The average is unweighted (macro), over the classes that
    have rows in the window, provided that there are two. Memory: 32 bytes per class and row of the window. NaN
    for more than 100 classes.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 2.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.

    Examples
    --------
    Classes 0 and 2 are separated from the others; class 1 wins two of its three pairs:

    >>> auc = SlidingMacroAUC(window=4)
    >>> auc.update([0, 0, 1, 2], [[0.8, 0.1, 0.1], [0.6, 0.4, 0.0], [0.5, 0.3, 0.2], [0.0, 0.2, 0.8]])
    >>> round(auc.windowed, 3)
    0.889
    """

    _shapes = """
        window in [2, 2**62)  n_seen in [0, 2**62)  _of_class[].window in [window, window]
        _of_class[].n_seen in [n_seen, n_seen]
    """

    def __init__(self, window: int = 1000) -> None:
        check_number("window", window, low=2, integer=True)
        self.window, self.n_seen = int(window), 0
        self._of_class: list[SlidingAUC] = []

    def update(self, actual: Any, scores: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        actual : array-like of int, shape (n_rows,)
            Class codes from 0 on.
        scores : array-like of float, shape (n_rows, n_classes)
            One column per class: larger scores mean that it is more likely. The number of classes may grow; earlier
            rows then have the lowest score of a new class.

        Raises
        ------
        ValueError
            If there is not one code and one row of scores that are numbers for each row, or a code has no column.
            Nothing is then counted.
        """
        codes, values = as_numbers("actual", actual), as_numbers("scores", scores)
        if values.ndim != 2 or codes.shape != values.shape[:1] or values.shape[1] < len(self._of_class):
            raise ValueError(
                "actual must contain one code for each row, and scores a row with a column for each class so far,"
                f" got shapes {codes.shape} and {values.shape}."
            )
        n_classes = values.shape[1]
        if not np.isin(codes, np.arange(n_classes)).all():
            raise ValueError(f"actual must contain codes from 0 to {n_classes - 1}, got {actual!r}.")
        if np.isnan(values).any():
            raise ValueError("scores must not contain NaN.")
        ranked = range(n_classes) if n_classes <= _MOST_CLASSES else ()
        if len(self._of_class) > len(ranked):
            self._of_class = []
        self._of_class += [self._of_new_class() for _ in ranked[len(self._of_class) :]]
        for k, auc in enumerate(self._of_class):
            auc._count((codes == k).astype(np.int64), np.ascontiguousarray(values[:, k]))
        self.n_seen += len(codes)

    @property
    def n_classes(self) -> int:
        """Number of classes so far; 0 for more than 100."""
        return len(self._of_class)

    def _of_new_class(self) -> SlidingAUC:
        """Return the AUC of a class that no earlier row has."""
        auc, n = SlidingAUC(self.window), min(self.n_seen, self.window)
        auc._count(np.zeros(n, np.int64), np.full(n, -math.inf))
        auc.n_seen = self.n_seen
        return auc

    @property
    def windowed(self) -> float:
        """Mean AUC of the classes in the last `window` rows; NaN unless there are two."""
        return _mean([auc.windowed for auc in self._of_class])

    @property
    def mean(self) -> float:
        """Mean over the classes of :attr:`SlidingAUC.mean`; NaN if no window had two classes."""
        return _mean([auc.mean for auc in self._of_class])


def _mean(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


@njit(strict=True)
def _slide_ranking(
    scores: Any, positive: Any, n_seen: int, ring: Any, is_positive: Any, ranked: Any, is_ranked_positive: Any
) -> None:
    """Insert rows into the window and the ranking; the oldest are removed from both."""
    window = ring.shape[0]
    for i in range(scores.shape[0]):
        slot, n = n_seen % window, min(n_seen, window)
        hole = n  # the free place
        if n == window:
            hole = np.searchsorted(ranked, ring[slot])
            while hole < n - 1 and is_ranked_positive[hole] != is_positive[slot]:
                hole += 1  # among equal scores, any of its class
        ring[slot], is_positive[slot] = scores[i], positive[i]
        while hole > 0 and ranked[hole - 1] > scores[i]:
            ranked[hole], is_ranked_positive[hole] = ranked[hole - 1], is_ranked_positive[hole - 1]
            hole -= 1
        while hole + 1 < min(n + 1, window) and ranked[hole + 1] < scores[i]:
            ranked[hole], is_ranked_positive[hole] = ranked[hole + 1], is_ranked_positive[hole + 1]
            hole += 1
        ranked[hole], is_ranked_positive[hole] = scores[i], positive[i]
        n_seen += 1


@njit(strict=True)
def _walk(scores: Any, positive: Any, n_positive: int, precision: float) -> tuple[float, float]:
    """Return (2) and (3) of rows whose scores ascend."""
    hits, total, before, recall, n = 0, 0.0, 0, 0.0, scores.shape[0]
    for i in range(n):
        at = n - 1 - i
        hits += positive[at]
        if at > 0 and scores[at - 1] == scores[at]:
            continue
        share = hits / (i + 1)
        total += (hits - before) * share
        before = hits
        if share >= precision:
            recall = hits / n_positive
    return total / n_positive, recall


class SlidingPrecisionRecall(Ranked):
    """Average precision and recall at a precision over the last `window` rows, and their means over the run.

    The window is kept sorted: few rows are inserted, many are sorted in. Memory: 18 bytes per row of the window.

    Parameters
    ----------
    window : int, default=1000
        Rows, at least 1.
    precision : float in (0, 1], default=0.9
        The precision at which the recall is measured.

    Attributes
    ----------
    n_seen : int
        Rows counted so far.
    mean : tuple of (float, float)
        Average precision and recall of the window, averaged over all rows at which they are defined; NaN before.

    Examples
    --------
    Three of the four highest-ranked rows are positive, the first two of them without error:

    >>> sliding = SlidingPrecisionRecall(window=6)
    >>> sliding.update([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.2, 0.1])
    >>> average_precision, recall = sliding.windowed
    >>> round(average_precision, 3), round(recall, 3)
    (0.917, 0.667)
    """

    _shapes = """
        window (=w)  n_seen in [0, 2**62)  precision float in [0, 1]  _positive (2, w) bool
        _scores (2, w) float in [-inf, inf]  _totals (3) float in [0, inf)
    """

    def __init__(self, window: int = 1000, precision: float = 0.9) -> None:
        check_number("window", window, low=1, integer=True)
        check_number("precision", precision, low=0, high=1, open_low=True)
        self.window, self.precision, self.n_seen = int(window), float(precision), 0
        # In the order of arrival, and ranked by the score, lowest first.
        self._positive, self._scores = np.zeros((2, self.window), dtype=bool), np.zeros((2, self.window))
        self._totals = np.zeros(3)  # average precision and recall, each times its rows; these rows
        self.windowed = (math.nan, math.nan)

    def update(self, positive: Any, scores: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        positive : array-like of bool, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            Larger scores mean that the positive class is more likely.

        Raises
        ------
        ValueError
            If the two do not have one value for each row, or a score is NaN.
        """
        positive, scores = _as_ranked(positive, scores)
        n_new, (ring, ranked), (is_positive, is_ranked_positive) = len(scores), self._scores, self._positive
        if _FEW * n_new <= self.window:
            _slide_ranking(scores, positive, self.n_seen, ring, is_positive, ranked, is_ranked_positive)
        else:
            kept = min(n_new, self.window)
            slots = (self.n_seen + n_new - kept + np.arange(kept)) % self.window
            ring[slots], is_positive[slots] = scores[n_new - kept :], positive[n_new - kept :]
            n = min(self.n_seen + n_new, self.window)
            order = np.argsort(ring[:n])
            ranked[:n], is_ranked_positive[:n] = ring[order], is_positive[order]
        self.n_seen += n_new
        self.windowed = self._read()
        if not math.isnan(self.windowed[0]):
            self._totals += n_new * np.array([*self.windowed, 1.0])

    def _read(self) -> tuple[float, float]:
        n = min(self.n_seen, self.window)
        scores, positive = self._scores[1, :n], self._positive[1, :n]
        n_positive = int(np.count_nonzero(positive))
        if n_positive == 0:
            return math.nan, math.nan
        return _walk(scores, positive, n_positive, self.precision)

    @property
    def mean(self) -> tuple[float, float]:
        """Average precision and recall, averaged over the run."""
        rows = float(self._totals[2])
        return (self._totals[0] / rows, self._totals[1] / rows) if rows else (math.nan, math.nan)

    @property
    def values(self) -> tuple[float, ...]:
        """Average precision of the run and of the window, then recall of both."""
        return self.mean[0], self.windowed[0], self.mean[1], self.windowed[1]


class PastThreshold(ThreadSafe):
    """Decision threshold with the largest F1 on past rows; its precision and recall on the rows after.

    Memory: 9 bytes per row of the window. The threshold is chosen by sorting the window, 1 ms for 10,000 rows.

    Parameters
    ----------
    window : int, default=10_000
        Number of labelled rows that it is chosen on, at least 1.
    every : int, default=1000
        Number of labelled rows between two updates, at least 1.

    Attributes
    ----------
    value : float
        Rows with at least this score are predicted as positive; infinity until 10 positive rows and `every` rows have
        been seen.
    n_tested, n_positive : int
        Rows that a threshold was tested on, and how many of them are positive.

    Examples
    --------
    Every fourth row is positive, with a score of .3 instead of .1; a threshold of .5 detects none of them:

    >>> threshold = PastThreshold(every=100)
    >>> positive = np.arange(100) % 4 == 0
    >>> for _ in range(2):
    ...     threshold.update(positive, np.where(positive, 0.3, 0.1), np.zeros(100, dtype=bool))
    >>> threshold.value, threshold.scores(), threshold.own_scores()
    (0.3, (1.0, 1.0, 1.0), (nan, 0.0, 0.0))
    """

    _shapes = """
        window in [1, 2**62)  every in [1, 2**62)  value float in [-inf, inf]  n_tested in [0, 2**62)
        n_positive in [0, n_tested]  _since in [0, 2**62)  _scores (n) float in [-inf, inf]  _positive (n) bool
        _hits (2) int64 in [0, n_positive]  _decided (2) int64 in [0, n_tested]
    """

    def __init__(self, window: int = 10_000, every: int = 1000) -> None:
        check_number("window", window, low=1, integer=True)
        check_number("every", every, low=1, integer=True)
        self.window, self.every, self.value = int(window), int(every), math.inf
        self.n_tested = self.n_positive = self._since = 0
        self._scores, self._positive = np.zeros(0), np.zeros(0, dtype=bool)
        # By the threshold, and by the learner itself.
        self._hits, self._decided = np.zeros(2, np.int64), np.zeros(2, np.int64)

    def update(
        self, positive: Any, scores: Any, decided: Any, labelled: tuple[Any, Any] | None = None
    ) -> None:
        """Test the current threshold on a batch; then update it with rows whose labels arrived.

        Parameters
        ----------
        positive : array-like of bool, shape (n_rows,)
        scores : array-like of float, shape (n_rows,)
            Larger scores mean that the positive class is more likely.
        decided : array-like of bool, shape (n_rows,)
            Which rows the learner itself predicts as positive.
        labelled : (positive, scores), optional
            Rows to learn from, where labels are delayed. By default those of the batch.

        Raises
        ------
        ValueError
            If the arrays do not have one value for each row, or a score is NaN.
        """
        positive, scores = _as_ranked(positive, scores)
        decided = np.asarray(decided, dtype=bool)
        if decided.shape != positive.shape:
            raise ValueError(f"decided must contain one value for each row, got shape {decided.shape}.")
        learned = (positive, scores) if labelled is None else _as_ranked(*labelled)
        if math.isfinite(self.value):
            both = np.stack([scores >= self.value, decided])
            self.n_tested += len(scores)
            self.n_positive += int(np.count_nonzero(positive))
            self._decided = self._decided + np.count_nonzero(both, axis=1)
            self._hits = self._hits + np.count_nonzero(both & positive, axis=1)
        self._learn(*learned)

    def _learn(self, positive: Array, scores: Array) -> None:
        self._positive = np.concatenate([self._positive, positive])[-self.window :]
        self._scores = np.concatenate([self._scores, scores])[-self.window :]
        self._since += len(scores)
        if self._since >= self.every and np.count_nonzero(self._positive) >= _LEAST:
            self._since, self.value = 0, best_threshold(self._positive, self._scores)

    def scores(self) -> tuple[float, float, float]:
        """Return precision, recall and F1 of the threshold on the rows it was tested on; NaN where undefined."""
        return self._scores_of(0)

    def own_scores(self) -> tuple[float, float, float]:
        """Return the same scores for the learner's own decisions, on the same rows."""
        return self._scores_of(1)

    def _scores_of(self, which: int) -> tuple[float, float, float]:
        hits, decided = float(self._hits[which]), float(self._decided[which])
        either = decided + self.n_positive
        return (
            hits / decided if decided else math.nan,
            hits / self.n_positive if self.n_positive else math.nan,
            2.0 * hits / either if either else math.nan,
        )


def best_threshold(positive: Array, scores: Array) -> float:
    """Return the largest score that maximises F1 (4) if rows with at least this score are positive.

    Examples
    --------
    >>> best_threshold(np.array([True, False, True, False]), np.array([0.9, 0.2, 0.4, 0.1]))
    0.4
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # Rows of one score are accepted together or not at all.
    is_last = np.append(ranked[1:] != ranked[:-1], True)
    hits = np.cumsum(positive[order])[is_last]
    n_accepted = np.arange(1, len(ranked) + 1)[is_last]
    return float(ranked[is_last][np.argmax(2.0 * hits / (n_accepted + hits[-1]))])
