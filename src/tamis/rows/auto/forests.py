"""A small forest for each of many feature sets, refitted on the last rows: a proxy for forests and boosted trees.

A tree of depth 6 is grown on a bootstrap sample of the window (Breiman 2001). A node splits at the cut with the largest
gain among 2 sqrt(|S|) features drawn from the set S; cuts are 31 quantiles of the window::

    gain = sum_c L_c^2 / n_L + sum_c R_c^2 / n_R - sum_c N_c^2 / n_N                                     (1)

where L, R and N count the classes left, right and in the node, so (1) is the decrease of the Gini impurity times n; for
a numeric target, L, R and N are sums of the target and (1) is the decrease of the squared error. The forest predicts
the mean of its leaves. The importance of a feature is the sum of (1) over all its nodes.

Trees are complete binary trees in arrays: the children of node i are 2i + 1 and 2i + 2, so links are always valid.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array

__all__ = ["Forests"]

N_TREES = 5
_DEPTH = 6
_N_CUTS = 31
_LEAST = 5  # rows on either side of a split
_INNER, _NODES = 2**_DEPTH - 1, 2 ** (_DEPTH + 1) - 1


@njit()
def _uniform(state: Array) -> float:
    """Return a draw from [0, 1), and advance the state (SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return float(z >> np.uint64(11)) / 9007199254740992.0


@njit()
def _grow(
    codes: Array, cuts: Array, classes: Array, target: Array, weight: Array, columns: Array, n_tried: int, state: Array,
    feature: Array, cut: Array, value: Array, importance: Array,
) -> None:  # fmt: skip
    """Grow a tree on binned features; writes `feature` (-1: leaf), `cut` and `value` of its nodes.

    Row i adds ``target[i]`` to the sum of class ``classes[i]``.
    """
    n, n_outputs, n_bins = codes.shape[1], value.shape[1], cuts.shape[1] + 1
    times = np.zeros(n)
    for _ in range(n):
        i = int(_uniform(state) * n)
        times[i] += weight[i]
    order = np.flatnonzero(times > 0.0)
    swap = np.empty_like(order)
    start, stop = np.zeros(len(feature), np.int64), np.zeros(len(feature), np.int64)
    stop[0] = len(order)
    drawn, sums, counts = columns.copy(), np.zeros(n_bins * n_outputs), np.zeros(n_bins)
    total, left = np.zeros(n_outputs), np.zeros(n_outputs)
    for node in range(len(feature)):
        feature[node] = -1
        rows = order[start[node] : stop[node]]
        if len(rows) == 0:
            value[node] = value[(node - 1) // 2]
            continue
        total[:], n_total = 0.0, 0.0
        for i in rows:
            n_total += times[i]
            total[classes[i]] += times[i] * target[i]
        value[node] = total / n_total
        whole = 0.0
        for c in range(n_outputs):
            whole += total[c] * total[c] / n_total
        if node >= _INNER or len(rows) < 2 * _LEAST:
            continue
        best, best_column, best_bin = 1e-9 * n_total, np.int64(-1), np.int64(-1)
        for trial in range(n_tried):
            at = trial + int(_uniform(state) * (len(drawn) - trial))
            drawn[trial], drawn[at] = drawn[at], drawn[trial]
            binned = codes[drawn[trial]]
            sums[:] = 0.0
            counts[:] = 0.0
            for i in rows:
                cell = binned[i]
                counts[cell] += times[i]
                sums[cell * n_outputs + classes[i]] += times[i] * target[i]
            left[:], n_left = 0.0, 0.0
            for b in range(n_bins - 1):
                if counts[b] == 0.0:
                    continue
                n_left += counts[b]
                for c in range(n_outputs):
                    left[c] += sums[b * n_outputs + c]
                n_right = n_total - n_left
                if n_left < _LEAST or n_right < _LEAST:
                    continue
                on_left, on_right = 0.0, 0.0
                for c in range(n_outputs):
                    on_left += left[c] * left[c]
                    on_right += (total[c] - left[c]) * (total[c] - left[c])
                gain = (on_left * n_right + on_right * n_left) / (n_left * n_right) - whole
                if gain > best:
                    best, best_column, best_bin = gain, drawn[trial], np.int64(b)
        if best_column < 0:
            continue
        feature[node], cut[node] = best_column, cuts[best_column, best_bin]
        importance[best_column] += best
        n_left_rows = 0
        for i in rows:
            n_left_rows += codes[best_column, i] <= best_bin
        to_left, to_right = 0, n_left_rows
        for i in rows:
            if codes[best_column, i] <= best_bin:
                swap[to_left] = i
                to_left += 1
            else:
                swap[to_right] = i
                to_right += 1
        rows[:] = swap[: len(rows)]
        start[2 * node + 1], stop[2 * node + 1] = start[node], start[node] + n_left_rows
        start[2 * node + 2], stop[2 * node + 2] = start[node] + n_left_rows, stop[node]


@njit()
def _predict(X: Array, feature: Array, cut: Array, value: Array, scores: Array) -> None:
    """Add the mean over the leaves of every set's trees to `scores` (n, sets, outputs)."""
    n_sets, n_trees, _ = feature.shape
    for i in range(len(X)):
        for a in range(n_sets):
            for t in range(n_trees):
                node = 0
                while feature[a, t, node] >= 0:
                    node = 2 * node + 1 + (X[i, feature[a, t, node]] > cut[a, t, node])
                for c in range(scores.shape[2]):
                    scores[i, a, c] += value[a, t, node, c] / n_trees


class Forests(SizedState):
    """A forest for each feature set, with the importance of each feature in a forest of all of them.

    Parameters
    ----------
    n_sets, n_features, n_outputs : int
        The number of classes if there are more than two, else 1.

    Attributes
    ----------
    feature : ndarray of shape (n_sets, 5, 127), int32
        Feature of each node, -1 for a leaf.
    cut : ndarray of shape (n_sets, 5, 127), float64
        Rows with a value of at most this go left.
    value : ndarray of shape (n_sets, 5, 127, n_outputs), float64
        Proportions of the classes; for two classes that of the second one; the mean of a numeric target.
    importance : ndarray of shape (n_features,), float64
        Decrease of impurity in a forest of all features (1).
    is_fitted : bool

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4))
    >>> y = (X[:, 1] * X[:, 2] > 0).astype(np.int64)
    >>> sets = np.array([[True, True, True, True], [False, True, True, False], [True, False, False, True]])
    >>> forests = Forests(3, 4, 1).fit(X[:800], y[:800], np.ones(800), sets, np.random.default_rng(0))
    >>> [round(float(((scores[:, 0] > 0.5) == y[800:]).mean()), 1) for scores in forests.scores(X[800:]).swapaxes(0, 1)]
    [1.0, 1.0, 0.5]
    >>> np.argsort(forests.importance)[-2:].tolist() in ([1, 2], [2, 1])
    True
    """

    _state_spec = Shapes(f"""
        feature (a, {N_TREES}, {_NODES}) int32 in [-1, len(importance)) fixed
        feature[:, :, {_INNER}:] int32 in [-1, -1]  cut (a, {N_TREES}, {_NODES}) finite fixed
        value (a, {N_TREES}, {_NODES}, k) finite fixed  importance (j) float in [0, inf) fill 0 fixed
    """)

    def __init__(self, n_sets: int, n_features: int, n_outputs: int) -> None:
        shape = n_sets, N_TREES, _NODES
        self.feature, self.cut = np.full(shape, -1, np.int32), np.zeros(shape)
        self.value = np.zeros((*shape, n_outputs))
        self.importance = np.zeros(n_features)
        self.is_fitted = False

    def fit(
        self, X: Array, target: Array, weight: Array, masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> Forests:
        """Return forests fitted on these rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64
        target : ndarray of shape (n_rows,)
            int64 class codes, or float64 numbers.
        weight : ndarray of shape (n_rows,), float64
        masks : ndarray of shape (n_sets, n_features), bool
        rng : numpy.random.Generator
        """
        n_sets, n_features = masks.shape
        forests = Forests(n_sets, n_features, self.value.shape[3])
        cuts = np.quantile(X, np.linspace(0, 1, _N_CUTS + 2)[1:-1], axis=0, method="lower").T.copy()
        codes = np.empty(X.T.shape, np.uint8)
        for j in range(n_features):
            codes[j] = np.searchsorted(cuts[j], X[:, j], side="left")
        state, weight = np.empty(1, np.uint64), weight / weight.mean()
        centre, unit = 0.0, 1.0
        if target.dtype.kind == "f":  # independent of offset and unit of the target
            centre, unit = float(target.mean()), max(float(target.std()), 1e-300)
            target = (target - centre) / unit
        # For two classes the proportions sum to 1: that of the second one serves as a numeric target.
        many = target.dtype.kind == "i" and forests.value.shape[3] > 1
        classes = target if many else np.zeros(len(target), np.int64)
        target = np.ones(len(target)) if many else target.astype(np.float64)
        sets = [np.flatnonzero(mask) for mask in masks]
        # The last forest uses all features, and only ranks them.
        unused = Forests(1, n_features, forests.value.shape[3])
        for a, columns in enumerate([*sets, np.arange(n_features)]):
            n_tried = min(len(columns), math.ceil(2.0 * math.sqrt(len(columns))))
            of, at, gains = (forests, a, unused.importance) if a < n_sets else (unused, 0, forests.importance)
            for t in range(N_TREES):
                state[0] = rng.integers(2**63)
                _grow(
                    codes, cuts, classes, target, weight, columns, n_tried, state, of.feature[at, t], of.cut[at, t],
                    of.value[at, t], gains,
                )  # fmt: skip
        forests.value = centre + unit * forests.value
        forests.is_fitted = True
        return forests

    def forget(self, columns: Array) -> None:
        """Turn nodes that split on some features into leaves, and reset the importance of these."""
        super().forget(columns)
        self.feature = np.where(np.isin(self.feature, columns), -1, self.feature).astype(np.int32)

    def select(self, sets: Array) -> Forests:
        """Return a copy of some sets, which may be repeated."""
        forests = copy.copy(self)
        forests.feature, forests.cut, forests.value = self.feature[sets], self.cut[sets], self.value[sets]
        return forests

    def scores(self, X: Array) -> NDArray[np.float64]:
        """Return the prediction of each set for each row, shape (n_rows, n_sets, n_outputs)."""
        scores = np.zeros((len(X), len(self.feature), self.value.shape[3]))
        _predict(np.ascontiguousarray(X, np.float64), self.feature, self.cut, self.value, scores)
        return scores
