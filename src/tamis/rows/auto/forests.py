"""A small forest for each of many feature sets, refitted on the last rows: a proxy for forests and boosted trees.

A tree of depth 6 is grown on a bootstrap sample of the window (Breiman 2001). A node splits at the cut with the largest
gain among 2 sqrt(|S|) features drawn from the set S; cuts are 31 quantiles of the window::

    gain = sum_c L_c^2 / n_L + sum_c R_c^2 / n_R - sum_c N_c^2 / n_N                                     (1)

where L, R and N count the classes left, right and in the node, so (1) is the decrease of the Gini impurity times n; for
a numeric target, L, R and N are sums of the target and (1) is the decrease of the squared error. The forest predicts
the mean of its leaves. The importance of a feature is the sum of (1) over all its nodes.

The boosted ranking is that of boosted trees in which a feature pays to be used (Peter et al. 2017, Cost efficient
gradient boosting): from (1) a penalty is subtracted unless the feature was used before. Trees of depth 4 are fitted one
after another to the residuals of those before, with a penalty of 20, 10, 5 and 2 for six trees each. Relative to the
variance of the residuals, the gain of an irrelevant feature is approximately chi-square distributed with one degree of
freedom, so a penalty means the same on every stream. A feature that begins to be used at a larger penalty ranks before
one that does so later, and among these the one with the larger gain.

Trees are complete binary trees in arrays: the children of node i are 2i + 1 and 2i + 2, so links are always valid.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Floats, Mask

N_TREES = 5
_DEPTH = 6
_N_CUTS = 31
_LEAST = 5  # rows on either side of a split
_INNER, _NODES = 2**_DEPTH - 1, 2 ** (_DEPTH + 1) - 1
_PENALTIES = (20.0, 10.0, 5.0, 2.0)
# Trees of each penalty and output, their nodes, and their weight
_ROUNDS, _BOOSTED_NODES, _RATE = 6, 2**5 - 1, 0.3
_MOST_BOOSTED = 128  # features, those with the largest importance


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
def _bootstrap(weight: Array, state: Array) -> Array:
    """Return how often each row counts in a bootstrap sample."""
    times = np.zeros(len(weight))
    for _ in range(len(weight)):
        i = int(_uniform(state) * len(weight))
        times[i] += weight[i]
    return times


@njit()
def _grow(
    codes: Array, cuts: Array, classes: Array, target: Array, times: Array, columns: Array, n_tried: int, state: Array,
    feature: Array, cut: Array, value: Array, importance: Array, penalty: Array,
) -> None:  # fmt: skip
    """Grow a tree on binned features; writes `feature` (-1: leaf), `cut` and `value` of its nodes.

    Row i counts ``times[i]`` and adds ``target[i]`` to the sum of class ``classes[i]``. A feature that is used has no
    penalty from then on.
    """
    n_outputs, n_bins = value.shape[1], cuts.shape[1] + 1
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
        if 2 * node + 2 >= len(feature) or len(rows) < 2 * _LEAST:
            continue
        best, best_column, best_bin = 1e-9 * n_total, np.int64(-1), np.int64(-1)
        for trial in range(n_tried):
            at = trial + int(_uniform(state) * (len(drawn) - trial))
            drawn[trial], drawn[at] = drawn[at], drawn[trial]
            binned = codes[drawn[trial]]
            sums[:] = 0.0
            counts[:] = 0.0
            charge = penalty[drawn[trial]]
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
                gain = (on_left * n_right + on_right * n_left) / (n_left * n_right) - whole - charge
                if gain > best:
                    best, best_column, best_bin = gain, drawn[trial], np.int64(b)
        if best_column < 0:
            continue
        feature[node], cut[node] = best_column, cuts[best_column, best_bin]
        importance[best_column] += best + penalty[best_column]
        penalty[best_column] = 0.0
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


class Sample:
    """The rows that forests are fitted on, in bins.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    target : ndarray of shape (n_rows,)
        int64 class codes, or float64 numbers.
    weight : ndarray of shape (n_rows,), float64
    n_outputs : int
        The number of classes if there are more than two, else 1.
    """

    def __init__(self, X: Array, target: Array, weight: Array, n_outputs: int) -> None:
        self.X, self.weight = np.ascontiguousarray(X, np.float64), weight / weight.mean()
        self.cuts = np.quantile(X, np.linspace(0, 1, _N_CUTS + 2)[1:-1], axis=0, method="lower").T.copy()
        self.codes = np.empty(X.T.shape, np.uint8)
        for j in range(X.shape[1]):
            self.codes[j] = np.searchsorted(self.cuts[j], X[:, j], side="left")
        self.centre, self.unit = 0.0, 1.0
        if target.dtype.kind == "f":  # independent of offset and unit of the target
            self.centre, self.unit = float(target.mean()), max(float(target.std()), 1e-300)
            target = (target - self.centre) / self.unit
        # For two classes the proportions sum to 1: that of the second one serves as a numeric target.
        many = target.dtype.kind == "i" and n_outputs > 1
        self.classes = target if many else np.zeros(len(target), np.int64)
        self.target = np.ones(len(target)) if many else target.astype(np.float64)

    def grow(
        self, columns: Array, rng: np.random.Generator, nodes: tuple[Array, Array, Array], gains: Array
    ) -> None:
        """Grow the trees of a forest; writes `nodes` (feature, cut, value), and adds to the gain of each feature."""
        n_tried = min(len(columns), math.ceil(2.0 * math.sqrt(len(columns))))
        state, free = np.empty(1, np.uint64), np.zeros(len(self.codes))
        for tree in zip(*nodes, strict=True):
            state[0] = rng.integers(2**63)
            times = _bootstrap(self.weight, state)
            _grow(
                self.codes, self.cuts, self.classes, self.target, times, columns, n_tried, state, *tree, gains, free
            )  # fmt: skip

    def boosted(self, importance: Array, n_outputs: int) -> Floats:
        """Return the score of each feature in penalised boosted trees, from 0 to 5."""
        columns = np.sort(np.argsort(-importance, kind="stable")[:_MOST_BOOSTED])
        columns = columns[importance[columns] > 0.0]
        is_many = n_outputs > 1
        residuals = [(self.classes == c) * 1.0 if is_many else self.target for c in range(n_outputs)]
        residuals = [one - np.average(one, weights=self.weight) for one in residuals]
        zeros, state = np.zeros(len(self.X), np.int64), np.zeros(1, np.uint64)
        scores = importance / max(importance.sum(), 1e-300)
        gains = np.zeros(len(importance))
        is_free = importance < 0.0
        for level, penalty in enumerate(_PENALTIES):
            for residual in residuals * max(1, _ROUNDS // n_outputs):
                noise = float(np.average(residual**2, weights=self.weight))
                if noise < 1e-12 or not len(columns):
                    continue
                charge, gain = np.where(is_free, 0.0, penalty * noise), np.zeros(len(importance))
                size = _BOOSTED_NODES
                tree = np.full(size, -1, np.int32), np.zeros(size), np.zeros((size, 1))
                _grow(
                    self.codes, self.cuts, zeros, residual, self.weight, columns, len(columns), state, *tree, gain,
                    charge,
                )  # fmt: skip
                fitted = np.zeros((len(residual), 1, 1))
                _predict(self.X, tree[0][None, None], tree[1][None, None], tree[2][None, None], fitted)
                residual -= _RATE * fitted[:, 0, 0]
                gains += gain / noise
                is_free |= charge == 0.0
            scores[is_free & (scores < 1.0)] = len(_PENALTIES) - level
        return np.asarray(scores + is_free * gains / (gains.sum() + 1.0))


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
        Values up to it go left.
    value : ndarray of shape (n_sets, 5, 127, n_outputs), float64
        Proportions of the classes (or that of the second one), or the mean target.
    importance, boosted : ndarray of shape (n_features,), float64
        The importance of each feature, and its score in penalised boosted trees.
    is_fitted : bool

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4))
    >>> y = (X[:, 1] * X[:, 2] > 0).astype(np.int64)
    >>> sets = np.array([[True, True, True, True], [False, True, True, False], [True, False, False, True]])
    >>> sample = Sample(X[:800], y[:800], np.ones(800), 1)
    >>> forests = Forests(3, 4, 1).ranked(sample, rng).fit(sample, sets, rng)
    >>> [round(float(((scores[:, 0] > 0.5) == y[800:]).mean()), 1) for scores in forests.scores(X[800:]).swapaxes(0, 1)]
    [1.0, 1.0, 0.5]
    >>> sorted(np.argsort(forests.importance)[-2:].tolist()), sorted(np.argsort(forests.boosted)[-2:].tolist())
    ([1, 2], [1, 2])
    """

    _state_spec = Shapes(f"""
        feature (a, {N_TREES}, {_NODES}) int32 in [-1, len(importance)) fixed
        feature[:, :, {_INNER}:] int32 in [-1, -1]  cut (a, {N_TREES}, {_NODES}) finite fixed
        value (a, {N_TREES}, {_NODES}, k) finite fixed  importance (j) float in [0, inf) fill 0 fixed
        boosted (j) float in [0, inf) fill 0 fixed
    """)

    def __init__(self, n_sets: int, n_features: int, n_outputs: int) -> None:
        shape = n_sets, N_TREES, _NODES
        self.feature, self.cut = np.full(shape, -1, np.int32), np.zeros(shape)
        self.value = np.zeros((*shape, n_outputs))
        self.importance, self.boosted = np.zeros(n_features), np.zeros(n_features)
        self.is_fitted = False

    def ranked(self, sample: Sample, rng: np.random.Generator) -> Forests:
        """Return a copy with the importance of each feature, and its score in penalised boosted trees."""
        n_features, n_outputs = len(self.importance), self.value.shape[3]
        forests, unused = copy.copy(self), Forests(1, n_features, n_outputs)
        forests.importance = np.zeros(n_features)
        nodes = unused.feature[0], unused.cut[0], unused.value[0]
        sample.grow(np.arange(n_features), rng, nodes, forests.importance)
        forests.boosted = sample.boosted(forests.importance, n_outputs)
        return forests

    def fit(self, sample: Sample, masks: Mask, rng: np.random.Generator) -> Forests:
        """Return a copy with a forest of each set."""
        forests, new = copy.copy(self), Forests(len(masks), masks.shape[1], self.value.shape[3])
        for nodes, mask in zip(zip(new.feature, new.cut, new.value, strict=True), masks, strict=True):
            sample.grow(np.flatnonzero(mask), rng, nodes, np.zeros(masks.shape[1]))
        forests.feature = new.feature
        forests.cut = new.cut
        forests.value = sample.centre + sample.unit * new.value
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

    def scores(self, X: Array) -> Floats:
        """Return the prediction of each set for each row, shape (n_rows, n_sets, n_outputs)."""
        scores = np.zeros((len(X), len(self.feature), self.value.shape[3]))
        _predict(np.ascontiguousarray(X, np.float64), self.feature, self.cut, self.value, scores)
        return scores
