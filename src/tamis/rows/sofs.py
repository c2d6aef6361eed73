"""SOFS: second-order online feature selection keeps the features with the most certain weights.

Wu, Hoi, Mei, Yu: Large-scale Online Feature Selection for Ultra-high Dimensional Sparse Data, ACM TKDD 11(4), 2017.
Covered: the algorithm with a diagonal covariance and its heap of B features, for two and for more classes.

===========  ======================  =========================================================================
paper        here                    meaning
===========  ======================  =========================================================================
w            _weights                weights of the classifier, at most B of them nonzero
1 / Sigma    1 + _information        certainty of the weights: Sigma is the diagonal of their covariance, initially 1
B            `n_features_to_select`  number of selected features
r            `smoothing`             regularisation of AROW: the larger, the smaller are the steps
===========  ======================  =========================================================================

A row (x, y), y = -1 or +1, with y w.x < 1 is a mistake of the hinge loss and is learned as in AROW::

    beta  = 1 / (sum_j Sigma_j x_j^2 + r),   alpha = (1 - y w.x) beta           (1)
    w_j  <- w_j + alpha y Sigma_j x_j                                           (2)
    1 / Sigma_j <- 1 / Sigma_j + x_j^2 / r                                      (3)
    w_j  <- 0 outside the B features of the smallest Sigma_j                    (4)

Sigma only decreases, and only in columns where the row is nonzero. So a heap of the B features with the least certain
one on top determines (4): a row costs O(log B) for each of its nonzero values, for any number of features.

Our deviations, each with its reason:

* Three classes or more: one w_c for each, and one Sigma for all. If (w_y - w_r).x < 1 for the highest-scoring other
  class r, w_y takes half of (2) and w_r the opposite half, so that two classes are the published method, bit for bit.
* (4) takes effect after all of (2) and (3). Ties of Sigma: the first columns stay.
* A sample weight s replaces r with r / s; a row of weight 0 is skipped.
* From the second row on, a feature that was the same in all rows counts as 0 until it varies: the certainty (3) of a
  large constant would exceed that of any relevant feature.
* Values are clipped at 1e100, and 1 / Sigma at 1e300, so that every result is finite.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, is_integer
from tamis._validation.parameters import number, parameter
from tamis.base import Claims, n_to_select
from tamis.rows.linear_classes import LinearClasses, row_margin

# State, for J columns; K = 1 vector until a third class is seen, then one per class, in order of appearance:
#   _weights      (K, J) float64   0 outside the heap
#   _information  (J,) float64     1 / Sigma - 1
#   _heap         (J,) int32       the selected columns, a binary heap in its first _n_kept positions
#   _place        (J,) int32       position of a column in the heap, -1 outside
#   _order        (C,) int64       codes of the classes in order of appearance; the first is y = +1, the second -1

_MOST_VALUE, _MOST_WEIGHT, _MOST_INFORMATION = 1e100, 1e150, 1e300


@njit(strict=True)
def _less_certain(information: Array, a: int, b: int) -> bool:
    return information[a] < information[b] or (information[a] == information[b] and a > b)


@njit(strict=True)
def _sift_down(heap: Array, place: Array, n_kept: int, i: int, information: Array) -> None:
    """Move the column at position i of the heap down until those below it are more certain."""
    column = heap[i]
    while 2 * i + 1 < n_kept:
        child = 2 * i + 1
        if child + 1 < n_kept and _less_certain(information, heap[child + 1], heap[child]):
            child += 1
        if not _less_certain(information, heap[child], column):
            break
        heap[i], place[heap[child]] = heap[child], i
        i = child
    heap[i], place[column] = column, i


@njit(strict=True)
def _sift_up(heap: Array, place: Array, i: int, information: Array) -> None:
    column = heap[i]
    while i > 0 and _less_certain(information, column, heap[(i - 1) // 2]):
        heap[i], place[heap[(i - 1) // 2]] = heap[(i - 1) // 2], i
        i = (i - 1) // 2
    heap[i], place[column] = column, i


@njit(strict=True)
def _offer(
    heap: Array, place: Array, n_kept: int, n_most: int, j: int, information: Array
) -> tuple[int, int]:
    """Offer a column whose information has increased; return the size of the heap and the dropped column, or -1."""
    if place[j] >= 0:
        _sift_down(heap, place, n_kept, place[j], information)
    elif n_kept < n_most and information[j] > 0.0:
        heap[n_kept] = j
        n_kept += 1
        _sift_up(heap, place, n_kept - 1, information)
    elif n_kept > 0 and _less_certain(information, heap[0], j):
        out = heap[0]
        place[out], heap[0] = -1, j
        _sift_down(heap, place, n_kept, 0, information)
        return n_kept, out
    return n_kept, -1


@njit(strict=True)
def _learn_rows(
    data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, sample_weight: Array, weights: Array,
    information: Array, heap: Array, place: Array, n_kept: int, n_most: int, smoothing: float,
) -> int:  # fmt: skip
    """Learn from rows in order; return the number of columns in the heap."""
    n_features = weights.shape[1]
    every = np.arange(n_features if dense else 0, dtype=np.int32)
    dropped = np.empty(n_features, np.int32)
    for i in range(slots.shape[0]):
        if sample_weight[i] == 0.0:
            continue
        cells = data[indptr[i] : indptr[i + 1]]
        columns = every if dense else indices[indptr[i] : indptr[i + 1]]
        lead, up, down, half = row_margin(weights, columns, cells, False, slots[i])
        if lead >= 1.0:
            continue
        r = smoothing / sample_weight[i]
        spread = 0.0
        for m in range(columns.shape[0]):
            spread += 1.0 / (1.0 + information[columns[m]]) * cells[m] * cells[m]
        alpha = min((1.0 - lead) / max(spread + r, 1.0 / _MOST_WEIGHT), _MOST_WEIGHT)  # (1)
        n_dropped = 0
        for m in range(columns.shape[0]):
            j, x = columns[m], cells[m]
            if x == 0.0:
                continue
            step = half * alpha * (1.0 / (1.0 + information[j])) * x  # (2)
            weights[up, j] = min(max(weights[up, j] + step, -_MOST_WEIGHT), _MOST_WEIGHT)
            if down >= 0:
                weights[down, j] = min(max(weights[down, j] - step, -_MOST_WEIGHT), _MOST_WEIGHT)
            information[j] = min(information[j] + x * x / r, _MOST_INFORMATION)  # (3)
            n_kept, out = _offer(heap, place, n_kept, n_most, j, information)
            if out >= 0:
                dropped[n_dropped] = out
                n_dropped += 1
        for m in range(columns.shape[0] + n_dropped):  # (4)
            j = columns[m] if m < columns.shape[0] else dropped[m - columns.shape[0]]
            if place[j] < 0:
                for c in range(weights.shape[0]):
                    weights[c, j] = 0.0
    return n_kept


@dataclass(eq=False, repr=False)
class SOFS(LinearClasses):
    """Second-order online feature selection: an AROW classifier of the features with the most certain weights.

    A row costs O(log B) for each nonzero value, for any number of features. A batch is equivalent to its rows one at a
    time, bit for bit. SOFS has no intercept, and ignores features that are constant so far. The certainty of a weight
    grows with the squares of its feature in the learned rows, so SOFS keeps features that are often nonzero near the
    decision boundary: words of texts, but not standardised features, which all become equally certain.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep (B), or which fraction of them, in (0, 1].
    smoothing : float in [1e-9, 1e9], default=1.0
        Regularisation of AROW (r): the larger, the smaller are the steps.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Certainty of each feature's weight, ``1 / Sigma - 1``: from 0, if it was never present in a row that was
        learned, to 1e300. All zero while `warming_up_`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If the rows, labels or weights are invalid; the model is left unchanged.

    Notes
    -----
    Memory: 24 bytes per feature; with three classes or more, 8 more per feature and class. Certainty only grows, so old
    rows are never discounted.

    References
    ----------
    Wu, Hoi, Mei, Yu (2017). Large-scale Online Feature Selection for Ultra-high Dimensional Sparse Data. ACM TKDD
    11(4), article 48. Equations (1) to (4) of the source file's header.

    Examples
    --------
    Texts with some of 500 words: one of three frequent words makes a text spam.

    >>> import numpy as np
    >>> from tamis import SOFS
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random(size=(3000, 500)) < 0.04).astype(float)
    >>> X[:, [17, 50, 123]] = rng.random(size=(3000, 3)) < 0.2
    >>> y = np.where(X[:, [17, 50, 123]].any(axis=1), "spam", "ham")
    >>> selector = SOFS(n_features_to_select=3).fit(X[:2000], y[:2000])
    >>> selector.get_support(indices=True)
    array([ 17,  50, 123])
    >>> float(np.mean(selector.predict(X[2000:]) == y[2000:])) > 0.95
    True
    """

    _shapes = """
        _weights (o-(o==2)+(o==0), j) float in [-1e150, 1e150] fill 0
        _information (j) float in [0, 1e300] fill 0
        _heap (j) int32 in [0, j)
        _place (j) int32 in [-1, j)
        _n_kept in [0, j]
        _n_most in [1, j]
    """

    # but how often a feature is nonzero near the decision boundary
    claims = Claims(
        equals_rows="exactly",
        sparse_time=True,
        ranks_relevance=False,
        copies_differ="the confidence of an update, one for each mistake",
        invariant_to_shifts=False,
    )

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    smoothing: float = parameter(number("[1e-9, 1e9]"), default=1.0)

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._weights = np.zeros((1, n_features))
        self._information = np.zeros(n_features)
        self._order = np.zeros(0, np.int64)
        self._build_heap()

    def _build_heap(self) -> None:
        """Keep the most certain columns, in ascending order of certainty, which is a heap."""
        n_features = self._information.shape[0]
        self._n_most = n_to_select(self.n_features_to_select, n_features)
        ranked = np.argsort(-self._information, kind="stable")[: self._n_most]
        kept = ranked[self._information[ranked] > 0.0][::-1]
        self._n_kept = len(kept)
        self._heap = np.zeros(n_features, np.int32)
        self._heap[: self._n_kept] = kept
        self._place = np.full(n_features, -1, np.int32)
        self._place[kept] = np.arange(self._n_kept)

    def check_state(self) -> None:
        """Raise if heap and positions of a loaded selector are inconsistent.

        Raises
        ------
        StateError
            If so.
        """
        super().check_state()
        if not hasattr(self, "n_features_in_"):
            return
        heap, places = self._heap[: self._n_kept], np.arange(self._n_kept)
        certain, above = self._information[heap], self._information[heap[(places - 1) // 2]]
        if (
            not np.array_equal(self._place[heap], places)
            or np.count_nonzero(self._place >= 0) != self._n_kept
        ):
            raise state_error("'_place' of a SOFS does not match its heap")
        if self._n_kept > self._n_most or (certain[1:] < above[1:]).any():
            raise state_error("'_heap' of a SOFS is not a heap")

    def _claims(self) -> Claims:
        return replace(self.claims, counts_columns=not is_integer(self.n_features_to_select))

    def _widen(self, n_features: int) -> None:
        super()._widen(n_features)
        self._build_heap()

    def _forget_columns(self, columns: Indices) -> None:
        super()._forget_columns(columns)
        self._build_heap()

    def _learn_known_classes(
        self, data: Array, indptr: Array, indices: Array, dense: bool, slots: Array, weights: Array
    ) -> None:
        cells = np.clip(data.astype(np.float64, copy=False), -_MOST_VALUE, _MOST_VALUE)
        self._n_kept = _learn_rows(
            cells, indptr, indices, dense, slots, weights, self._weights, self._information, self._heap, self._place,
            self._n_kept, self._n_most, float(self.smoothing),
        )  # fmt: skip

    def _relevance(self) -> Floats:
        return self._information.copy()
