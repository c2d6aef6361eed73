"""OFS: online feature selection by truncating a linear classifier after each mistake.

Wang, Zhao, Hoi, Jin: Online Feature Selection and Its Applications, IEEE TKDE 26(3), 2014 (first at BigMine 2012).
Covered: sparse projection with full information, the truncated perceptron (`regularization=0, margin=0`), and
learning from partial information, where B cells of a row may be looked at. For two or more classes.

===========  ======================  ==========================================================================
paper        here                    meaning
===========  ======================  ==========================================================================
w            ``_weights * _scale``   weights of the classifier, at most B columns not zero
B            `n_features_to_select`  columns that survive a truncation
eta          `learning_rate`         step on a mistake
lambda       `regularization`        shrinkage
R            1 / sqrt(lambda)        radius of the ball that w is kept in; 10 by default, as in the paper
epsilon      `exploration`           share of rows of which B random cells are looked at (partial information)
===========  ======================  ==========================================================================

A row (x, y) with y = -1 or +1 is a mistake if y w.x <= margin. Then, and only then, (2) to (4)::

    w <- (1 - lambda eta) w                            (1)   after every row
    w <- w + eta y x                                   (2)
    w <- min(1, R / |w|) w                             (3)
    w <- w, but zero outside its B largest |w_j|       (4)

Partial information: the observed cells are, with probability epsilon, B random ones, else those where w is not zero;
w.x runs over observed cells, there is no (1), and (2) takes the unbiased estimate::

    x_j / (epsilon B / J + (1 - epsilon) [w_j is not zero]) if j is observed, else 0          (5)

Errata of public versions, and our deviations, each with its reason:

* MOA's OFS-P divides integers in (5) (B / J is 0), doubles the bias and projects with sqrt(R); a Python port keeps
  B - 1 entries and ranks the signed w; float-evaluation never truncates, never shrinks, and divides by zero at x = 0.
* Ports of the partial variant update where y w.x <= 0 (`margin=0`); `margin` is 1, the hinge, for both variants here.
* More than two classes: one w_c per class; y and its best rival r exchange a step, w_y + (eta/2) x and w_r - (eta/2) x,
  if (w_y - w_r).x <= margin, and |w_j| becomes sum_c |w_cj|. With two classes w_y - w_r is the published w, bit for
  bit, so a third class may come late: its w_c starts at zero, and the others go on from w / 2 and -w / 2.
* Equal |w_j| at the border of (4): the first columns stay. A sample weight scales eta; a row of weight 0 is skipped.
* (1) is kept as a factor and applied at the next mistake, so a row without a mistake costs O(B), or its stored cells.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._check import Array, Rows, check_choice, check_number
from tamis._jit import njit
from tamis.base import RowSelector, n_to_select

__all__ = ["OFS"]

# State, J columns, of which at most B are kept; K = 1 vector while two classes or fewer were seen, else one a class:
#   _weights  (K, J) float64   zero outside the support; w = _weights * _scale
#   _scale    float            the shrinkage since the last mistake
#   _support  (B,) int32       the kept columns, ascending, in its first _n_kept places
#   _order    (C,) int64       codes of the classes in order of appearance; the first is +1, the second -1
#   _random   (1,) uint64      state of the random numbers

_INFINITY = 0x7FF0000000000000  # magnitudes are ranked as integers: for floats >= 0 the order is the same


@njit(strict=True)
def _uniform(random: Array) -> float:
    """Draw from [0, 1): Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    return (z >> np.uint64(11)) * 2.0**-53


@njit(strict=True)
def _draw(random: Array, drawn: Array, n_features: int) -> None:
    """Fill `drawn` with different columns, each set of them equally likely, in ascending order."""
    n_drawn = 0
    for j in range(n_features):
        if _uniform(random) * (n_features - j) < drawn.shape[0] - n_drawn:
            drawn[n_drawn] = j
            n_drawn += 1


@njit(strict=True)
def _look(columns: Array, cells: Array, chosen: Array) -> Array:
    """Return the cells of the chosen columns of a row; a column that is not stored is 0."""
    found, k = np.zeros(chosen.shape[0], cells.dtype), 0
    for i in range(chosen.shape[0]):
        while k < columns.shape[0] and columns[k] < chosen[i]:
            k += 1
        if k < columns.shape[0] and columns[k] == chosen[i]:
            found[i] = cells[k]
    return found


@njit(strict=True)
def _merge(kept: Array, columns: Array, cells: Array, merged: Array, merged_cells: Array) -> int:
    """Add the kept columns to those of a row, both ascending, the cells being 0 there; return how many there are."""
    n, a, b = 0, 0, 0
    while a < kept.shape[0] or b < columns.shape[0]:
        left = kept[a] if a < kept.shape[0] else merged.shape[0]
        right = columns[b] if b < columns.shape[0] else merged.shape[0]
        merged[n] = min(left, right)
        merged_cells[n] = cells[b] if right <= left else 0.0
        n += 1
        a += left <= right
        b += right <= left
    return n


@njit(strict=True)
def _margin(weights: Array, columns: Array, cells: Array, slot: int) -> tuple[float, int, int, float]:
    """Return y w.x, the vector that takes the step, the one that takes its opposite (-1: none), and eta's factor."""
    ahead, best, rival = 0.0, -math.inf, -1
    for c in range(weights.shape[0]):
        score = 0.0
        for i in range(columns.shape[0]):
            score += weights[c, columns[i]] * cells[i]
        if c == slot or weights.shape[0] == 1:
            ahead = score
        elif score > best:
            best, rival = score, c
    if weights.shape[0] == 1:
        y = 1.0 if slot == 0 else -1.0
        return y * ahead, 0, -1, y
    return ahead - best, slot, rival, 0.5


@njit(strict=True)
def _border(bits: Array, n_kept: int, probe: int) -> tuple[int, int]:
    """Find t such that keeping all bits > t, and the first q of those equal to t, keeps `n_kept`; return t, q.

    Bisection by counting: a count is one SIMD pass, several times faster than a selection that moves numbers.
    """
    low, high = -1, _INFINITY  # at least n_kept lie above low, fewer above high
    n_low, n_high = bits.shape[0], 0
    reach = 1 << 50
    while n_low > n_kept and high - low > 1:
        n_above = 0
        for i in range(bits.shape[0]):  # by index: the compiler does not vectorise `for b in bits`
            n_above += bits[i] > probe
        gap = n_above == n_low or n_above == n_high
        if n_above >= n_kept:
            low, n_low = probe, n_above
        else:
            high, n_high = probe, n_above
        if gap:  # nothing between the old and the new bound: move the bounds to the values they enclose
            least, most = high, low
            for i in range(bits.shape[0]):
                inside = low < bits[i] <= high
                least = min(least, bits[i] if inside else high)
                most = max(most, bits[i] if inside else low)
            low, high = least - 1, most
        half = (high - low) >> 1
        if high == _INFINITY:  # gallop away from the first probe
            half = min(half, reach)
        elif low < 0:
            half = max(half, high - low - reach)
        reach = min(2 * reach, 1 << 60)
        probe = low + half
    if n_low <= n_kept:
        return max(low, 0), 0  # a zero is never kept
    return high, (n_kept - n_high if high > 0 else 0)


@njit(strict=True)
def _length(block: Array, columns: Array) -> float:
    """Return the Euclidean length, summed in eight lanes by column: an order that is fixed, and yet wide."""
    lanes = np.zeros(8)
    for c in range(block.shape[0]):
        for i in range(columns.shape[0]):
            lanes[columns[i] & 7] += block[c, i] * block[c, i]
    total = 0.0
    for lane in lanes:
        total += lane
    return math.sqrt(total)


@njit(strict=True)
def _step(
    block: Array, columns: Array, cells: Array, up: int, down: int, step: float, share: float, rest: float
) -> float:
    """Take the step (2) in `block`, the weights of `columns`; return the length of w."""
    for i in range(columns.shape[0]):
        shift = step * cells[i]
        if share > 0.0:  # (5)
            shift /= share + (rest if block[:, i].any() else 0.0)
        block[up, i] += shift
        if down >= 0:
            block[down, i] -= shift
    lanes = np.zeros(8)  # eight sums, by column: an order that dense and sparse rows share, yet fast
    for c in range(block.shape[0]):
        for i in range(columns.shape[0]):
            lanes[columns[i] & 7] += block[c, i] * block[c, i]
    total = 0.0
    for lane in lanes:
        total += lane
    return math.sqrt(total if down < 0 else 2.0 * total)  # (w / 2, -w / 2) is as long as w


@njit(strict=True)
def _truncate(
    block: Array, columns: Array, factor: float, guess: int, weights: Array, support: Array
) -> tuple[int, int]:
    """Keep the largest columns of `block`, times `factor`; return how many, and where the border was."""
    sizes = np.abs(block[0])
    for c in range(1, block.shape[0]):
        sizes += np.abs(block[c])
    bits = sizes.view(np.int64)
    border, n_equal = _border(bits, support.shape[0], guess)
    n_kept = 0
    for i in range(columns.shape[0]):
        equal = n_equal > 0 and bits[i] == border
        n_equal -= equal
        kept = equal or bits[i] > border
        for c in range(block.shape[0]):
            weights[c, columns[i]] = block[c, i] * factor if kept else 0.0
        if kept:
            support[n_kept] = columns[i]
            n_kept += 1
    return n_kept, border


@njit(strict=True)
def _learn_rows(
    data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, sample_weight: Array,
    weights: Array, scale: float, support: Array, n_kept: int, random: Array,
    eta: float, shrink: float, radius: float, margin: float, exploration: float,
) -> tuple[float, int]:  # fmt: skip
    """Learn from rows in order; exploration 0 means full information. Return the new scale and size of the support."""
    n_features = weights.shape[1]
    share, rest = exploration * support.shape[0] / n_features, 1.0 - exploration
    every, merged = np.arange(n_features, dtype=np.int32), np.empty(n_features, np.int32)
    merged_cells, drawn = np.empty(n_features, data.dtype), np.empty_like(support)
    border = _INFINITY >> 1
    for i in range(slots.shape[0]):
        if sample_weight[i] == 0.0:
            continue
        kept, cells = support[:n_kept], data[indptr[i] : indptr[i + 1]]
        columns = every if dense else indices[indptr[i] : indptr[i + 1]]
        if exploration > 0.0:
            chosen = kept
            if _uniform(random) < exploration:
                _draw(random, drawn, n_features)
                chosen = drawn
            cells = cells[chosen] if dense else _look(columns, cells, chosen)
            columns = chosen
        wide = columns.shape[0] == n_features
        seen, seen_cells = (kept, cells[kept]) if wide else (columns, cells)
        lead, up, down, sign = _margin(weights, seen, seen_cells, slots[i])
        mistake = lead * scale <= margin
        scale *= shrink  # (1)
        if mistake:
            block = weights
            if not wide:
                n = _merge(kept, columns, cells, merged, merged_cells)
                columns, cells = merged[:n], merged_cells[:n]
                block = weights[:, columns]
            block *= scale
            scale = 1.0
            length = _step(block, columns, cells, up, down, sign * eta * sample_weight[i], share, rest)
            factor = radius / length if length > radius else 1.0  # (3)
            n_kept, border = _truncate(block, columns, factor, border, weights, support)  # (4)
    return scale, n_kept


class OFS(RowSelector):
    """Online feature selection: a linear classifier, truncated to its largest weights after each mistake.

    A row costs as many operations as there are features kept (or cells stored, if sparse), a mistake as there are
    features (or features kept and cells stored). A batch is the same as its rows one at a time, bit for bit.
    There is no intercept and no scaling: bring the features to one scale, and sparse ones to a common one.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features the truncation keeps (B), or their fraction.
    learning_rate : float in (0, inf), default=0.2
        Step on a mistake (eta).
    regularization : float in [0, inf), default=0.01
        Shrinkage (lambda); the weights stay in a ball of radius ``1 / sqrt(regularization)``. 0 switches both off.
        With full information `learning_rate` times `regularization` must be below 1.
    margin : float, default=1.0
        A row counts as a mistake where ``y w.x <= margin``: 1 is the hinge loss, 0 the perceptron.
    information : {"full", "partial"}, default="full"
        "partial" looks at no more than B cells of each row: those of the features kept, or random ones.
    exploration : float in (0, 1], default=0.2
        Share of the rows of which random cells are looked at (epsilon); partial information only.
    random_state : int, RandomState or None, default=None
        Seed of the exploration.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Size of each feature's weight, summed over the classes from three on; 0 for features that are not kept.
        While fewer than B features have a weight, the first of the others fill the selection up.
    classes_ : ndarray of shape (n_classes,)
    n_seen_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str

    Raises
    ------
    ValueError
        If a parameter lies outside its range.
    DataError
        If the rows, labels or weights cannot be learned from; the model is then as it was.

    References
    ----------
    Wang, Zhao, Hoi, Jin (2014). Online Feature Selection and Its Applications. IEEE TKDE 26(3), 698-710.

    Examples
    --------
    Three of two hundred features make the label; the others are noise.

    >>> import numpy as np
    >>> from tamis.rows import OFS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 200))
    >>> y = np.where(X[:, 17] - X[:, 50] + X[:, 123] > 0, "spam", "ham")
    >>> selector = OFS(n_features_to_select=3)
    >>> for start in range(0, 1000, 100):
    ...     selector = selector.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> selector.get_support(indices=True)
    array([ 17,  50, 123])
    >>> float(np.mean(selector.predict(X[1000:]) == y[1000:])) > 0.9
    True
    """

    def __init__(
        self,
        n_features_to_select: int | float = 0.1,
        *,
        learning_rate: float = 0.2,
        regularization: float = 0.01,
        margin: float = 1.0,
        information: str = "full",
        exploration: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.margin = margin
        self.information = information
        self.exploration = exploration
        self.random_state = random_state

    def _start(self, n_features: int) -> None:
        check_number("learning_rate", self.learning_rate, low=0, open_low=True, high=math.inf, open_high=True)
        check_number("regularization", self.regularization, low=0, high=math.inf, open_high=True)
        check_number("margin", self.margin, low=-math.inf, high=math.inf, open_low=True, open_high=True)
        check_choice("information", self.information, ("full", "partial"))
        check_number("exploration", self.exploration, low=0, high=1, open_low=True)
        if self.information == "full" and self.learning_rate * self.regularization >= 1:
            raise ValueError(
                f"learning_rate times regularization must be below 1, got {self.learning_rate!r} and"
                f" {self.regularization!r}: each row would turn the weights round; lower one of them."
            )
        self._weights = np.zeros((1, n_features))
        self._scale, self._n_kept = 1.0, 0
        self._support = np.zeros(n_to_select(self.n_features_to_select, n_features), np.int32)
        self._order = np.zeros(0, np.int64)
        seed = check_random_state(self.random_state).randint(1, 2**63, size=1, dtype=np.uint64)
        self._random: NDArray[np.uint64] = seed

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        codes, first = np.unique(y, return_index=True)
        opened = np.sort(first[~np.isin(codes, self._order)])  # the rows where a class appears for the first time
        for start, stop in itertools.pairwise(dict.fromkeys([0, *opened.tolist(), X.shape[0]])):
            if start in opened:
                self._open_class(int(y[start]))
            self._learn_block(X, y, sample_weight, start, stop)

    def _open_class(self, code: int) -> None:
        self._order = np.append(self._order, code)
        if self._order.shape[0] == 3:
            self._weights = np.vstack((0.5 * self._weights, -0.5 * self._weights))
        if self._order.shape[0] >= 3:
            self._weights = np.vstack((self._weights, np.zeros_like(self._weights[:1])))

    def _learn_block(self, X: Rows, y: Array, sample_weight: Array | None, start: int, stop: int) -> None:
        n_rows, n_features = X.shape
        if sp.issparse(X):
            data, indptr, indices = X.data, X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False)
        else:
            data, indptr, indices = X.reshape(-1), np.arange(n_rows + 1) * n_features, np.empty(0, np.int32)
        slot_of = np.zeros(self.classes_.shape[0], np.int64)
        slot_of[self._order] = np.arange(self._order.shape[0])
        weights = np.ones(n_rows) if sample_weight is None else sample_weight
        partial, regularization = self.information == "partial", float(self.regularization)
        self._scale, self._n_kept = _learn_rows(
            data, indptr[start : stop + 1], indices, not sp.issparse(X), slot_of[y[start:stop]], weights[start:stop],
            self._weights, self._scale, self._support, self._n_kept, self._random,
            float(self.learning_rate), 1.0 if partial else 1.0 - regularization * self.learning_rate,
            1.0 / math.sqrt(regularization) if regularization else math.inf,
            float(self.margin), float(self.exploration) if partial else 0.0,
        )  # fmt: skip

    def _relevance(self) -> NDArray[np.float64]:
        sizes: NDArray[np.float64] = np.abs(self._weights[0])
        for row in self._weights[1:]:
            sizes += np.abs(row)
        return sizes * self._scale

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the truncated classifier.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Up to two classes: positive means ``classes_[1]``. From three on, one column per class, the largest
            wins; a class that was declared but never seen has -inf.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        scores = X @ (self._scale * self._weights).T
        n_classes = self.classes_.shape[0]
        if n_classes <= 2:
            return np.asarray(scores[:, 0] if self._order[0] == 1 else -scores[:, 0])
        if self._weights.shape[0] == 1:
            scores = np.hstack((0.5 * scores, -0.5 * scores))[:, : self._order.shape[0]]
        columns = np.full((X.shape[0], n_classes), -np.inf)
        columns[:, self._order] = scores
        return columns

    def predict(self, X: Any) -> Array:
        """Return the class with the largest score for each row, shape (n_rows,)."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            winner = scores.argmax(axis=1)
        else:
            winner = np.minimum(scores > 0, self.classes_.shape[0] - 1)
        labels: Array = self.classes_[winner]
        return labels
