"""Streaming regression trees on gradients and hessians, all trees of an ensemble in the same arrays.

A leaf sums the gradients g and the hessians h of its rows, in total and by bins of each feature that its tree uses. Its
value and the gain of a split into L and R are those of a second-order step::

    value = -G / (H + l2)                                                              (1)
    gain  = G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + l2)                   (2)

Every `grace_period` rows the leaf is split by its best feature if the second best one is clearly worse, or if n is
large enough to call it a tie; the new leaves start at 0, as the gradients of early rows are outdated::

    gain_2 / gain_1 < 1 - eps  or  eps < tie_threshold,   eps = sqrt(ln(1 / delta) / (2 n))     (3)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints
from tamis.drift.adwin import update_window
from tamis.learners.hoeffding.adaptive import draw_features
from tamis.summaries.quantile_kernels import first_not_below

FREE_NODES, FREE_SLOTS = 0, 1
_G, _H, _ROWS, _SINCE, _GAIN = range(5)
_LEAST_HESSIAN, _LEAST_CHILD = 1e-6, 1.0  # the second as in XGBoost: the smallest H of a child


class Trees(NamedTuple):
    """The arrays of n nodes, s slots with the statistics of a leaf, and t trees with m of the features each."""

    feature: Ints  # (n,), -1: a leaf
    left: Ints  # (n,)
    right: Ints  # (n,)
    slot: Ints  # (n,), of a leaf
    cut: Floats  # (n,), rows up to this value go to the left
    sums: Floats  # (n, 5): G, H, rows since birth, rows since the last attempt to split, gain of the split
    histograms: Floats  # (s, m, n_bins, 2): G and H
    owner: Ints  # (s,), the tree
    cuts: Floats  # (p, n_bins - 1), upper ends of the bins
    roots: Ints  # (t,)
    drawn: Ints  # (t, m), ascending
    leaves: Ints  # (t,), number of leaves
    events: Ints  # (t,), number of replacements
    detectors: Floats  # (t, STATE_SIZE)
    free_nodes: Ints  # (n,), a stack
    free_slots: Ints  # (s,), a stack
    counts: Ints  # (2,), sizes of the stacks


class Options(NamedTuple):
    """Parameters of the learner, as passed to the kernels."""

    learning_rate: float
    l2: float
    grace_period: float
    delta: float
    tie_threshold: float
    max_leaves: int
    drift: float  # false-alarm rate of the detectors, 0: none
    seed: int


# -- structure ---------------------------------------------------------------------------------------------


@njit(allocates=False)
def _create_leaf(trees: Trees, slot: int) -> int:
    trees.counts[FREE_NODES] -= 1
    node = trees.free_nodes[trees.counts[FREE_NODES]]
    trees.feature[node], trees.slot[node], trees.cut[node] = -1, slot, 0.0
    trees.left[node] = trees.right[node] = 0
    for k in range(5):
        trees.sums[node, k] = 0.0
    histogram = trees.histograms[slot]
    for m in range(histogram.shape[0]):
        for b in range(histogram.shape[1]):
            histogram[m, b, 0] = histogram[m, b, 1] = 0.0
    return int(node)


@njit(allocates=False)
def _take_slot(trees: Trees, t: int) -> int:
    trees.counts[FREE_SLOTS] -= 1
    slot = trees.free_slots[trees.counts[FREE_SLOTS]]
    trees.owner[slot] = t
    return int(slot)


@njit(allocates=False)
def create_tree(trees: Trees, t: int, n_features: int, seed: int) -> None:
    """Create a tree of one leaf with a random subset of the features, all subsets equally likely."""
    trees.roots[t] = _create_leaf(trees, _take_slot(trees, t))
    trees.leaves[t] = 1
    draw_features(trees.drawn[t], n_features, seed + t, trees.events[t])


@njit(allocates=False)
def _drop_tree(trees: Trees, t: int) -> None:
    """Return the nodes and slots of a tree to the stacks."""
    at = trees.counts[FREE_NODES]
    trees.free_nodes[at], end = trees.roots[t], at + 1
    while at < end:
        node = trees.free_nodes[at]
        at += 1
        if trees.feature[node] >= 0:
            trees.free_nodes[end], trees.free_nodes[end + 1] = trees.left[node], trees.right[node]
            end += 2
        else:
            trees.free_slots[trees.counts[FREE_SLOTS]] = trees.slot[node]
            trees.counts[FREE_SLOTS] += 1
    trees.counts[FREE_NODES] = end


# -- learning ----------------------------------------------------------------------------------------------


@njit(allocates=False)
def bin_rows(X: Floats, cuts: Floats, bins: Ints) -> None:
    """Write the bin of each value, the number of cuts below it; -1 for a missing value."""
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            x = X[i, f]
            bins[i, f] = first_not_below(cuts[f], 0, cuts.shape[1], x) if x == x else -1


@njit(allocates=False)
def _leaf_of(trees: Trees, t: int, row: Floats) -> int:
    """Return the leaf of a row; a missing value follows the branch with the larger sum of hessians."""
    node = trees.roots[t]
    while trees.feature[node] >= 0:
        x, left, right = row[trees.feature[node]], trees.left[node], trees.right[node]
        if x <= trees.cut[node]:
            node = left
        elif x > trees.cut[node]:
            node = right
        else:
            node = left if trees.sums[left, _H] >= trees.sums[right, _H] else right
    return int(node)


@njit(allocates=False)
def _value(trees: Trees, leaf: int, l2: float) -> float:
    value: float = -trees.sums[leaf, _G] / (trees.sums[leaf, _H] + l2)  # (1)
    return value


@njit(allocates=False)
def _best_cut(histogram: Floats, l2: float) -> tuple[float, int]:
    """Return the largest gain (2) of one feature and the last bin on its left."""
    G = H = 0.0
    for b in range(histogram.shape[0]):
        G += histogram[b, 0]
        H += histogram[b, 1]
    best, at, g, h = 0.0, -1, 0.0, 0.0
    for b in range(histogram.shape[0] - 1):
        g += histogram[b, 0]
        h += histogram[b, 1]
        if h < _LEAST_CHILD or H - h < _LEAST_CHILD:
            continue
        gain = g * g / (h + l2) + (G - g) * (G - g) / (H - h + l2) - G * G / (H + l2)
        if gain > best:
            best, at = gain, b
    return best, at


@njit(allocates=False)
def _try_split(trees: Trees, t: int, leaf: int, options: Options) -> None:
    slot = trees.slot[leaf]
    first = second = 0.0
    place = bin_ = -1
    for m in range(trees.drawn.shape[1]):
        gain, b = _best_cut(trees.histograms[slot, m], options.l2)
        if gain > first:
            first, second, place, bin_ = gain, first, m, b
        elif gain > second:
            second = gain
    if place < 0:
        return
    bound = math.sqrt(math.log(1.0 / options.delta) / (2.0 * trees.sums[leaf, _ROWS]))
    if not (second < first * (1.0 - bound) or bound < options.tie_threshold):  # (3)
        return
    feature = trees.drawn[t, place]
    left, right = _create_leaf(trees, slot), _create_leaf(trees, _take_slot(trees, t))
    trees.feature[leaf], trees.cut[leaf] = feature, trees.cuts[feature, bin_]
    trees.left[leaf], trees.right[leaf], trees.slot[leaf] = left, right, 0
    trees.sums[leaf, _GAIN] = first
    trees.leaves[t] += 1


@njit(allocates=False)
def _learn_in_tree(trees: Trees, t: int, leaf: int, bins: Ints, g: float, h: float, options: Options) -> None:
    sums, histogram, own = trees.sums[leaf], trees.histograms[trees.slot[leaf]], trees.drawn[t]
    sums[_G] += g
    sums[_H] += h
    sums[_ROWS] += 1.0
    sums[_SINCE] += 1.0
    for m in range(own.shape[0]):
        b = bins[own[m]]
        if b >= 0:
            histogram[m, b, 0] += g
            histogram[m, b, 1] += h
    if sums[_SINCE] >= options.grace_period:
        sums[_SINCE] = 0.0
        if trees.leaves[t] < options.max_leaves:
            _try_split(trees, t, leaf, options)


@njit(allocates=False)
def _probabilities(scores: Floats, proba: Floats) -> None:
    """Write the probability of each output: logistic for one output, else softmax."""
    if scores.shape[0] == 1:
        proba[0] = 1.0 / (1.0 + math.exp(-scores[0]))
        return
    highest, total = scores[0], 0.0
    for k in range(1, scores.shape[0]):
        highest = max(highest, scores[k])
    for k in range(scores.shape[0]):
        proba[k] = math.exp(scores[k] - highest)
        total += proba[k]
    for k in range(scores.shape[0]):
        proba[k] /= total


@njit()
def learn(
    trees: Trees, X: Floats, bins: Ints, codes: Ints, start: int, n_outputs: int, options: Options
) -> int:
    """Learn the rows from `start`; return the next row, which is before the end if the pools need room."""
    n_trees = trees.roots.shape[0]
    n_steps = n_trees // n_outputs
    scores, proba = np.zeros(n_outputs), np.zeros(n_outputs)
    for i in range(start, len(codes)):
        if trees.counts[FREE_NODES] < 2 * n_trees or trees.counts[FREE_SLOTS] < n_trees:
            return i
        scores[:] = 0.0
        for s in range(n_steps):
            _probabilities(scores, proba)
            for k in range(n_outputs):
                t = k * n_steps + s
                g = proba[k] - (1.0 if codes[i] == (1 if n_outputs == 1 else k) else 0.0)
                h = max(proba[k] * (1.0 - proba[k]), _LEAST_HESSIAN)
                leaf = _leaf_of(trees, t, X[i])
                value = _value(trees, leaf, options.l2)
                _learn_in_tree(trees, t, leaf, bins[i], g, h, options)
                scores[k] += options.learning_rate * value
                error = min(abs(g + h * value), 1.0)  # the gradient remaining after a full step
                if options.drift > 0.0 and update_window(trees.detectors[t], error, options.drift, 32) > 0:
                    _drop_tree(trees, t)
                    trees.events[t] += 1
                    trees.detectors[t] = 0.0
                    create_tree(trees, t, X.shape[1], options.seed)
    return len(codes)


@njit()
def score_rows(trees: Trees, X: Floats, learning_rate: float, l2: float, scores: Floats) -> None:
    """Add the values of all trees to the scores, shape (n_rows, n_outputs)."""
    n_steps = trees.roots.shape[0] // scores.shape[1]
    for k in range(scores.shape[1]):
        for t in range(k * n_steps, (k + 1) * n_steps):
            for i in range(X.shape[0]):
                scores[i, k] += learning_rate * _value(trees, _leaf_of(trees, t, X[i]), l2)
