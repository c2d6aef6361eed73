"""WeightedKNN (kNN-FW): nearest neighbours among the last rows, in distances with current feature weights.

Barddal's thesis, section 7.1. Covered: Eq. 7.3 (as an option), 7.4, and the distance, with MOA's missing values.

===========  ===================  ================================================================================
thesis       here                 meaning
===========  ===================  ================================================================================
k            `n_neighbors`        rows that vote
W            `window`             rows that are searched for neighbours
w            `score_window`       rows from which the weights are computed
w_i          `weights_`           weight of feature i
===========  ===================  ================================================================================

::

    d(a, b) = sqrt(sum_i w_i diff_i(a, b)^2)         diff_i: see below
    w_i = SU(X_i, Y)                                                                         (7.4)
    w_i = log2(classes) - H(Y|X_i)                                                           (7.3)

Errata and deviations, each with its reason:

* (7.3) gives an irrelevant feature the weight log2(classes) - H(Y), which is not 0 for unbalanced classes. The
  information gain H(Y) - H(Y|X_i), equal to (7.3) for balanced classes, is available as `weight="entropy"`.
* The thesis gives neither k nor W; here they are MOA's, 10 and 1000.
* If all weights are 0, all rows would be equally near: the weights then count as 1.
* The thesis does not define ties. Here, of rows at the same distance the most recent is nearest, and of classes with
  the same number of votes the first is predicted.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Ints
from tamis._validation.parameters import integer, parameter
from tamis.learners.weighting import WeightedClassifier

# -- Nearest neighbours in a sliding window: weighted Euclidean distances over numeric and categorical columns

# For rows a and b, with the weight w_j of feature j, and its minimum lo_j and maximum hi_j in the window::
#
#     d(a, b)^2 = sum_j w_j diff_j(a, b)^2                                                     (1)
#     diff_j = |a_j - b_j| / (hi_j - lo_j)                 numbers                             (2)
#     diff_j = [a_j != b_j]                                categories                          (3)
#     diff_j = max(v, 1 - v), v = (x - lo_j) / (hi_j - lo_j)    one of two numbers is missing, x is the other   (4)
#     diff_j = 1                                           both are missing, or one of two categories is        (5)
#
# If all numbers of a feature in the window are equal, (2) is 0, and v = 0 in (4). A query row may lie outside the range
# of the window: (2) and (4) then exceed 1.
#
# The window is stored by columns, so that one pass over four columns adds to the distances of all rows, in a fixed
# order: a row has the same distances, bit for bit, alone and in any batch. |a|^2 + |b|^2 - 2ab by a matrix product
# takes half the time for 200 columns or more, but suffers from cancellation where a and b are close: it would need a
# check.

_MIN_RANGE = 1e-300  # lower bound of a range, so that its inverse is finite
_TILE = 8  # rows compared in one pass
_BLOCK = 256  # rows of the window compared in one pass: with a tile of distances they fit into the L1 cache


# -- learning ----------------------------------------------------------------------------------------------


@njit(strict=True)
def _bounds(values: Array, low: float, high: float) -> tuple[float, float]:
    """Return the minimum and the maximum; stop early once they reach `low` and `high`."""
    least, most = np.inf, -np.inf
    for x in values:
        least = x if x < least else least
        most = x if x > most else most
        if least == low and most == high:
            break
    return least, most


@njit(strict=True)
def _store(
    X: Array,
    codes: Array,
    start: int,
    n: int,
    columns: Array,
    row_codes: Array,
    bounds: Array,
    n_missing: Array,
) -> None:
    """Overwrite the oldest of n rows. A range is recomputed where its minimum or maximum leaves the window."""
    size = row_codes.shape[0]
    for i in range(X.shape[0]):
        row_codes[(start + i) % size] = codes[i]
    for j in range(X.shape[1]):
        column = columns[j]
        low, high, lost, p = bounds[j, 0], bounds[j, 1], False, start
        for i in range(X.shape[0]):
            x = X[i, j]
            if n + i >= size:
                old = column[p]
                n_missing[j] -= old != old
                lost |= old in (low, high)
            column[p] = x
            n_missing[j] += x != x
            low = x if x < low else low
            high = x if x > high else high
            p = p + 1 if p + 1 < size else 0
        if lost:
            low, high = _bounds(column[: min(n + X.shape[0], size)], low, high)
        bounds[j, 0], bounds[j, 1] = low, high


# -- comparing ---------------------------------------------------------------------------------------------


@njit(strict=True)
def _add_column(
    x: float, column: Array, low: float, scale: float, root: float, is_number: bool, square: Array
) -> None:
    """Add one feature's share of (1), root^2 diff^2, to the squared distances: (2) to (5)."""
    if not is_number:
        for p in range(column.shape[0]):
            square[p] += 0.0 if x == column[p] else root * root
    elif x == x:
        alone = max((x - low) * scale, root - (x - low) * scale)
        for p in range(column.shape[0]):
            step = (x - column[p]) * scale if column[p] == column[p] else alone
            square[p] += step * step
    else:
        for p in range(column.shape[0]):
            v = (column[p] - low) * scale
            step = max(v, root - v) if column[p] == column[p] else root
            square[p] += step * step


@njit(strict=True)
def _add_four(x: Array, four: Array, at: int, scale: Array, columns: Array, n: int, square: Array) -> None:
    """Add four numeric features without missing values."""
    a, b, c, d = four[0], four[1], four[2], four[3]
    xa, xb, xc, xd = x[a], x[b], x[c], x[d]
    ra, rb, rc, rd = scale[a], scale[b], scale[c], scale[d]
    ca, cb, cc, cd = columns[a, at:], columns[b, at:], columns[c, at:], columns[d, at:]
    for p in range(n):
        sa, sb, sc, sd = (xa - ca[p]) * ra, (xb - cb[p]) * rb, (xc - cc[p]) * rc, (xd - cd[p]) * rd
        square[p] = square[p] + sa * sa + sb * sb + sc * sc + sd * sd


@njit(strict=True)
def _compare(
    X: Array, columns: Array, bounds: Array, n_missing: Array, is_number: Array, weights: Array, square: Array
) -> None:
    """Write the squared distances (1) of the rows of X to those of the window."""
    n, n_features = square.shape[1], X.shape[1]
    scale, low, root = np.zeros(n_features), np.zeros(n_features), np.sqrt(weights)
    plain, others = np.empty(n_features, np.int64), np.empty(n_features, np.int64)
    n_plain, n_others = 0, 0
    for j in range(n_features):
        if is_number[j] and bounds[j, 0] < bounds[j, 1]:
            scale[j] = root[j] / max(bounds[j, 1] - bounds[j, 0], _MIN_RANGE)
        if is_number[j] and bounds[j, 0] <= bounds[j, 1]:
            low[j] = bounds[j, 0]
        if is_number[j] and n_missing[j] == 0:
            plain[n_plain] = j
            n_plain += int(scale[j] > 0.0)  # a constant contributes 0 unless the value is missing
        elif weights[j] > 0.0:
            others[n_others] = j
            n_others += 1
    while n_plain % 4:
        n_plain -= 1
        others[n_others] = plain[n_plain]
        n_others += 1
    every = np.flatnonzero(weights)
    whole = np.empty(X.shape[0], np.bool_)
    for i in range(X.shape[0]):
        whole[i] = not np.isnan(X[i]).any()
    square[:] = 0.0
    for at in range(0, n, _BLOCK):
        end = min(at + _BLOCK, n)
        for f in range(0, n_plain, 4):
            for i in range(X.shape[0]):
                if whole[i]:
                    _add_four(X[i], plain[f : f + 4], at, scale, columns, end - at, square[i, at:end])
        for i in range(X.shape[0]):
            for j in others[:n_others] if whole[i] else every:
                _add_column(
                    X[i, j], columns[j, at:end], low[j], scale[j], root[j], is_number[j], square[i, at:end]
                )


@njit(strict=True)
def _count_nearest(square: Array, row_codes: Array, newest: int, k: int, votes: Array) -> None:
    """Count the classes of the k nearest; among equal distances the most recent row comes first."""
    n = square.shape[0]
    best, who = np.empty(k), np.empty(k, np.int64)
    n_nearest, p = 0, newest
    for _ in range(n):
        distance = square[p]
        if n_nearest < k or distance < best[k - 1]:
            n_nearest = min(n_nearest + 1, k)
            at = n_nearest - 1
            while at > 0 and distance < best[at - 1]:
                best[at], who[at] = best[at - 1], who[at - 1]
                at -= 1
            best[at], who[at] = distance, p
        p = p - 1 if p > 0 else n - 1
    for at in range(n_nearest):
        votes[row_codes[who[at]]] += 1.0


@njit(strict=True)
def _vote(
    X: Array, columns: Array, bounds: Array, n_missing: Array, is_number: Array, weights: Array,
    row_codes: Array, n: int, newest: int, k: int, votes: Array,
) -> None:  # fmt: skip
    squares = np.empty((min(_TILE, X.shape[0]), n))
    for first in range(0, X.shape[0], _TILE):
        tile = X[first : first + _TILE]
        _compare(tile, columns, bounds, n_missing, is_number, weights, squares)
        for i in range(tile.shape[0]):
            _count_nearest(squares[i], row_codes, newest, k, votes[first + i])


class Neighbours:
    """The most recent rows with their classes, and the votes of the nearest of them.

    Parameters
    ----------
    n_features : int
    window : int, at least 1
        Number of rows stored. Memory grows with them, up to 8 bytes per value.
    categorical : sequence of int, default=()
        Columns whose values are categories: any finite numbers.

    Attributes
    ----------
    n_rows : int
        Number of rows currently stored.

    Examples
    --------
    Of the three stored rows, two are at the same distance from (5, 1). The more recent one comes first:

    >>> import numpy as np
    >>> neighbours = Neighbours(2, window=3, categorical=[1])
    >>> X = np.array([[50.0, 0], [0, 1], [10, 1], [4, 0]])
    >>> neighbours.update(X, np.array([0, 0, 1, 0]))
    >>> row, ones = np.array([[5.0, 1.0]]), np.ones(2)
    >>> neighbours.distances(row, ones).round(2)                     # newest first
    array([[1. , 0.5, 0.5]])
    >>> neighbours.votes(row, ones, k=1, n_classes=2)
    array([[0., 1.]])
    """

    def __init__(self, n_features: int, window: int, categorical: Any = ()) -> None:
        self.window = int(window)
        self._columns, self._row_codes = np.empty((n_features, 0)), np.empty(0, np.int64)
        self._is_number = np.ones(n_features, dtype=bool)
        self._is_number[np.asarray(categorical, dtype=np.int64)] = False
        self._empty()

    def _empty(self) -> None:
        # `_next` is the position of the next row: that of the oldest row, once the window is full.
        self.n_rows = self._next = 0
        self._bounds: Floats = np.tile([np.inf, -np.inf], (len(self._columns), 1))
        self._n_missing = np.zeros(len(self._columns), np.int64)

    def update(self, X: Array, codes: Ints) -> None:
        """Update with rows, oldest first; the results do not depend on the batch size.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
            NaN is missing; absolute values are at most 1e150.
        codes : ndarray of shape (n_rows,), int64
        """
        if len(X) >= self.window:
            self._empty()
            X, codes = X[-self.window :], codes[-self.window :]
        n_rows = min(self.n_rows + len(X), self.window)
        if n_rows > len(self._row_codes):
            self._make_room(min(max(2 * len(self._row_codes), n_rows, 16), self.window))
        _store(
            X, codes, self._next, self.n_rows, self._columns, self._row_codes, self._bounds, self._n_missing
        )
        self.n_rows, self._next = n_rows, (self._next + len(X)) % self.window

    def _make_room(self, size: int) -> None:
        n, columns, row_codes = self.n_rows, self._columns, self._row_codes
        self._columns, self._row_codes = np.zeros((len(columns), size)), np.zeros(size, np.int64)
        self._columns[:, :n], self._row_codes[:n] = columns[:, :n], row_codes[:n]

    def select(self, columns: Indices) -> Neighbours:
        """Return the same rows with a subset of their columns; the result must not be updated."""
        view = copy(self)
        view._columns, view._bounds = self._columns[columns], self._bounds[columns]
        view._n_missing, view._is_number = self._n_missing[columns], self._is_number[columns]
        return view

    def distances(self, X: Array, weights: Floats) -> Floats:
        """Return the distances (1) of the rows of X to the stored rows, the most recent first.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
        weights : ndarray of shape (n_features,), float64, not negative

        Returns
        -------
        ndarray of shape (n_rows of X, n_rows stored)
        """
        return np.sqrt(self._squares(X, weights))

    def _squares(self, X: Array, weights: Floats) -> Floats:
        """Return the squared distances, which determine the order: the roots of two different squares may be equal."""
        squares = np.empty((len(X), self.n_rows))
        _compare(X, self._columns, self._bounds, self._n_missing, self._is_number, weights, squares)
        order = (self._next - 1 - np.arange(self.n_rows)) % self.n_rows
        return squares[:, order]

    def votes(self, X: Array, weights: Floats, k: int, n_classes: int) -> Floats:
        """Return the number of the k nearest rows in each class; of all rows, if k or fewer are stored.

        Parameters
        ----------
        X, weights
            As for :meth:`distances`.
        k : int, at least 1
            Among rows at the same distance, the most recent ones count.
        n_classes : int

        Returns
        -------
        ndarray of shape (n_rows of X, n_classes), float64
        """
        votes = np.zeros((len(X), n_classes))
        _vote(
            X, self._columns, self._bounds, self._n_missing, self._is_number, weights, self._row_codes,
            self.n_rows, (self._next - 1) % self.n_rows, min(k, self.n_rows), votes,
        )  # fmt: skip
        return votes


# -- WeightedKNN (kNN-FW): nearest neighbours among the last rows, in distances with current feature weights


@dataclass(repr=False, eq=False)
class WeightedKNN(WeightedClassifier):
    """A feature-weighted nearest-neighbours classifier over a sliding window.

    Parameters
    ----------
    n_neighbors : int, at least 1, default=10
        Number of rows that vote. While the window contains fewer rows, all of them vote.
    window : int, at least 1, default=1000
        Number of last rows among which neighbours are searched.
    weight : {"su", "entropy", "entropy_thesis", None}, default="su"
        The weight of a feature. "su": its symmetrical uncertainty with the class. "entropy": its information gain.
        "entropy_thesis": Eq. 7.3 of the thesis. None: 1, plain nearest neighbours.
    score_window : int, at least 2, default=200
        Number of last rows from which the weights are computed.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features: any finite numbers. The others are scaled by their range in the window.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,), float64
        Current weight of each feature, not negative; all 1 if `unweighted_`.
    unweighted_ : bool
        Whether no weights are in use: `weight` is None, all would be 0, or half a `score_window` is not yet full.
    %(fitted)s

    Notes
    -----
    Learning costs O(features) per row, predicting O(window times features). Memory: the rows of both windows. A batch
    leaves the same state as its rows one at a time, and the prediction of a row does not depend on its batch. Sparse
    rows are rejected.

    A missing value (NaN) has the largest distance from another value that the range of the window allows: see
    the head of :mod:`tamis.learners.knn`. A new label adds a class; a class without rows in the window gets no
    votes.

    References
    ----------
    Barddal: Feature drift in data streams, doctoral thesis, section 7.1.

    Examples
    --------
    One of fifty features determines the class, and a different one from row 3000 on:

    >>> import numpy as np
    >>> from tamis import WeightedKNN
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 50))
    >>> y = np.where(np.arange(6000) < 3000, X[:, 7] > 0, X[:, 31] > 0).astype(int)
    >>> model = WeightedKNN().fit(X[:2000], y[:2000])
    >>> plain = WeightedKNN(weight=None).fit(X[:2000], y[:2000])
    >>> model.score(X[2000:3000], y[2000:3000]) > 0.9 > 0.75 > plain.score(X[2000:3000], y[2000:3000])
    True
    >>> model = model.partial_fit(X[2000:5000], y[2000:5000])
    >>> model.weights_.argmax(), model.score(X[5000:], y[5000:]) > 0.9
    (np.int64(31), True)
    """

    _shapes = """
        n_features_in_ (=j)  classes_ (k) labels  _weighting_.n_classes (=k)
        _weighting_.counts?._class_counts (k) int
        _neighbours_._columns (j, n) float in [-1e150, 1e150] or nan fill nan ring n[its._next]
        _neighbours_._row_codes (n) in [0, max(k, 1)) ring n[its._next]
        _neighbours_._is_number (j) bool fill True fixed
        _neighbours_._bounds (j, 2) float in [-inf, inf] fill "[inf, -inf]"
        _neighbours_._n_missing (j) in [0, n] fill its.n_rows
        _neighbours_.window in [n, 10000000]  _neighbours_.n_rows in [min(n, 1), n]
        _neighbours_._next in [0, max(its.n_rows, 1)]  _k_? in [1, 2**62]
    """

    n_neighbors: int = parameter(integer("[1, inf)"), default=10)
    window: int = 1000

    # Set in a view: the weights of its columns.
    _weights_now_: Floats | None = field(default=None, init=False)

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        columns = self._initialize_weighting(n_features, names)
        self._neighbours_ = Neighbours(n_features, self.window, columns)
        self._k_ = int(self.n_neighbors)

    def _learn(self, rows: Floats, codes: Ints) -> None:
        self._weighting_.update(rows, codes)
        self._neighbours_.update(rows, codes)

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """Current weight of each feature."""
        return self._fitted_weighting().weights()

    def predict_proba(self, X: Any) -> Floats:
        """Return the proportion of each class among the nearest rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        votes = self._votes(X)
        return votes / votes.sum(axis=1, keepdims=True)

    def restrict_columns(self, columns: Indices) -> WeightedKNN:
        """Return a view that computes distances from a subset of the columns.

        Parameters
        ----------
        columns : ndarray of int
            Ascending.

        Returns
        -------
        WeightedKNN
            A model for rows of these columns. It shares the fitted state and must not be trained.
        """
        view, weights = self._view_of(columns)
        view._neighbours_ = self._neighbours_.select(columns)
        view._weights_now_ = weights if weights.any() else np.ones_like(weights)
        return view

    def _votes(self, X: Any) -> Floats:
        weights = self._fitted_weighting().weights() if self._weights_now_ is None else self._weights_now_
        return self._neighbours_.votes(self._rows_to_predict(X), weights, self._k_, len(self.classes_))
