"""Prediction of a leaf: the majority class, naive Bayes from its statistics, or the more accurate of the two.

With n_y the weight of class y at the leaf and the normal densities and counts of :mod:`.splits`::

    log P[y] = log n_y / n + sum_i log P[x_i|y],   P[x_i = v|y] = (n_yv + 1) / (n_yi + m_i) for m_i categories

A missing value is ignored. Where the rows of a class have no variance in a feature, its density is 1 at their value and
exp(-10^6) elsewhere, or without rows: the class with the fewest such values is the most likely one.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints
from tamis.learners.hoeffding.nodes import Arrays, Chain, Link, Moment, Number

MAJORITY, BAYES, BAYES_OR_MAJORITY, GIVEN = range(4)
_LOG_2_PI = float(np.log(2.0 * np.pi))
UNSEEN = 1e6  # subtracted from the log probability for a value that a class without variance has not had
SAME = 1e-9  # relative difference of equal values: removing rows rounds the mean of those that remain
_LITTLE, _MUCH = 1e-100, 1e100  # the product of two numbers in this range does not overflow or underflow


@njit(allocates=False)
def _log_normal(kept: Floats, row: Floats) -> float:
    """Return the sum of a class's log densities; variances are multiplied to save logarithms."""
    total, product, n, n_unseen = 0.0, 1.0, 0, 0
    for f in range(row.shape[0]):
        gap = row[f] - kept[Moment.MEAN, f]
        deviation, weight = kept[Moment.DEVIATION, f], kept[Moment.OBSERVED, f] - 1.0
        if gap != gap:
            continue
        if deviation <= 0.0 or weight <= 0.0:
            if abs(gap) > SAME * abs(row[f]) or kept[Moment.OBSERVED, f] <= 0.0:
                n_unseen += 1
            continue
        variance = deviation / weight
        total -= 0.5 * gap * gap / variance
        n += 1
        if _LITTLE < variance < _MUCH:
            product *= variance
            if not _LITTLE < product < _MUCH:
                total -= 0.5 * np.log(product)
                product = 1.0
        else:
            total -= 0.5 * np.log(variance)
    log_density: float = total - 0.5 * np.log(product) - 0.5 * n * _LOG_2_PI
    if n_unseen > 0:
        log_density -= n_unseen * UNSEEN
    return log_density


@njit(allocates=False)
def _log_counts(tree: Arrays, slot: int, y: int, cells: Ints) -> float:
    """Return the sum of the log frequencies of the row's categories in a class."""
    total, product = 0.0, 1.0
    for g in range(cells.shape[0]):
        cell = cells[g]
        if cell == -1:
            continue
        count = tree.counts[slot, y, cell] if cell >= 0 else 0.0
        product *= (count + 1.0) / (tree.totals[slot, y, g] + max(tree.lists[Chain.N_CELLS, g], 1))
        if product < _LITTLE:
            total += np.log(product)
            product = 1.0
    log_frequency: float = total + np.log(product)
    return log_frequency


@njit(allocates=False)
def bayes(tree: Arrays, node: int, row: Floats, cells: Ints, votes: Floats) -> int:
    """Write the log probabilities of naive Bayes, up to a constant, into `votes`, and return the most likely class."""
    slot, best = tree.links[node, Link.SLOT], -1
    for c in range(votes.shape[0]):
        votes[c] = -np.inf
        if tree.weights[node, c] > 0.0:
            prior = np.log(tree.weights[node, c] / tree.numbers[node, Number.WEIGHT])
            votes[c] = prior + _log_normal(tree.gaussians[slot, c], row) + _log_counts(tree, slot, c, cells)
            if best < 0 or votes[c] > votes[best]:
                best = c
    return best


@njit(allocates=False)
def uses_bayes(tree: Arrays, node: int, mode: int) -> bool:
    """Return whether a leaf predicts by naive Bayes."""
    if mode == BAYES_OR_MAJORITY:
        return bool(tree.numbers[node, Number.RIGHT_BY_BAYES] >= tree.numbers[node, Number.RIGHT_BY_MAJORITY])
    return mode == BAYES


@njit(allocates=False)
def vote(tree: Arrays, node: int, row: Floats, cells: Ints, mode: int, votes: Floats) -> None:
    """Write the probability of each class at a leaf; uniform if it has no rows."""
    if tree.numbers[node, Number.WEIGHT] <= 0.0:
        votes[:] = 1.0 / votes.shape[0]
        return
    if not uses_bayes(tree, node, mode):
        for c in range(votes.shape[0]):
            votes[c] = tree.weights[node, c] / tree.numbers[node, Number.WEIGHT]
        return
    best = bayes(tree, node, row, cells, votes)
    highest, total = votes[best], 0.0
    for c in range(votes.shape[0]):
        votes[c] = np.exp(votes[c] - highest)
        total += votes[c]
    for c in range(votes.shape[0]):
        votes[c] /= total
