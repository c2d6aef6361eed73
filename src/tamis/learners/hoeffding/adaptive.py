"""Adaptation of a tree to drift: detectors at its splits, and alternate trees that replace outdated subtrees.

Bifet, Gavalda: Adaptive learning from evolving data streams, IDA 2009. Each split has an ADWIN on the errors of the
rows that pass it. When the errors increase, an alternate tree is started at the split, and both learn. Once the windows
of both contain more than 300 rows, with error rates e and e' over n and n' rows::

    bound = sqrt(2 e (1 - e) ln(2 / 0.05) (1 / n + 1 / n'))                                      (1)
    the alternate tree replaces the split if e - e' > bound, and is dropped if e' - e > bound
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats, Ints
from tamis.learners.hoeffding.nodes import (
    Arrays,
    Change,
    Link,
    State,
    assign_detector,
    drop_subtree,
    new_leaf,
    queue_change,
)

_LEAST_WIDTH = 300.0
_TOTAL, _WIDTH = 2, 4  # in a detector's state
_LOG_SIGNIFICANCE = float(np.log(2.0 / 0.05))
_POISSON = np.cumsum(np.exp(-1.0) / np.array([1.0, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880]))


@njit(allocates=False)
def uniform(seed: int, row: int, born: int) -> float:
    """Return a pseudo-random number in [0, 1) that depends on the arguments only."""
    z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(row)
    for extra in (np.uint64(born), np.uint64(0)):  # splitmix64, twice
        z = (z + extra) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    share: float = np.float64(z >> np.uint64(11)) * 2.0**-53
    return share


@njit(allocates=False)
def draw_count(shares: Floats, seed: int, row: int, born: int) -> int:
    """Return a number of a distribution with these cumulative shares that depends on the arguments only."""
    share, k = uniform(seed, row, born), 0
    while k < shares.shape[0] and share >= shares[k]:
        k += 1
    return k


@njit(allocates=False)
def poisson(seed: int, row: int, born: int) -> float:
    """Return a Poisson(1) number that depends on the arguments only; 1 instead of 0, as in other adaptive trees."""
    return float(max(draw_count(_POISSON, seed, row, born), 1))


@njit(allocates=False)
def draw_features(drawn: Ints, n_features: int, seed: int, birth: int) -> None:
    """Sample features, all subsets equally likely: each feature in turn is selected or skipped."""
    left = drawn.shape[0]
    for f in range(n_features):
        if uniform(seed, f, birth) * (n_features - f) < left:
            drawn[drawn.shape[0] - left] = f
            left -= 1


@njit()
def start_alternate(tree: Arrays, node: int) -> None:
    """Start an alternate tree at a split; it learns from the next row on."""
    other = new_leaf(tree, node, tree.links[node, Link.DEPTH])
    assign_detector(tree, other)
    tree.links[node, Link.ALTERNATE] = other
    tree.state[State.STARTED] += 1


@njit()
def compare_alternate(tree: Arrays, node: int, risen: bool) -> bool:
    """Queue an alternate tree if errors have risen, drop it if it is worse; return whether it replaced the split."""
    other = tree.links[node, Link.ALTERNATE]
    if risen:
        if other >= 0:
            drop_alternate(tree, node)
        queue_change(tree, Change.START, node, 1)
        return False
    if other < 0:
        return False
    mine = tree.detectors[tree.links[node, Link.DETECTOR]]
    its = tree.detectors[tree.links[other, Link.DETECTOR]]
    if min(mine[_WIDTH], its[_WIDTH]) <= _LEAST_WIDTH:
        return False
    error, its_error = mine[_TOTAL] / mine[_WIDTH], its[_TOTAL] / its[_WIDTH]
    share = 1.0 / mine[_WIDTH] + 1.0 / its[_WIDTH]
    bound = np.sqrt(max(2.0 * error * (1.0 - error) * _LOG_SIGNIFICANCE * share, 0.0))  # (1)
    if error - its_error > bound:
        replace_split(tree, node, other)
        return True
    if its_error - error > bound:
        drop_alternate(tree, node)
    return False


@njit()
def drop_alternate(tree: Arrays, node: int) -> None:
    """Drop the alternate tree of a split."""
    drop_subtree(tree, tree.links[node, Link.ALTERNATE])
    tree.links[node, Link.ALTERNATE] = -1
    tree.state[State.DROPPED] += 1


@njit()
def replace_split(tree: Arrays, node: int, other: int) -> None:
    """Replace a split with its alternate tree, and drop the subtree of the split."""
    links, parent = tree.links, tree.links[node, Link.PARENT]
    links[other, Link.PARENT], links[other, Link.NEXT] = parent, links[node, Link.NEXT]
    links[other, Link.CELL] = links[node, Link.CELL]
    if parent < 0:
        tree.state[State.ROOT] = other
    elif links[parent, Link.ALTERNATE] == node:
        links[parent, Link.ALTERNATE] = other
    elif links[parent, Link.LEFT] == node:
        links[parent, Link.LEFT] = other
    else:
        child = links[parent, Link.LEFT]
        while links[child, Link.NEXT] != node:
            child = links[child, Link.NEXT]
        links[child, Link.NEXT] = other
    links[node, Link.ALTERNATE] = -1
    drop_subtree(tree, node)
    tree.state[State.REPLACED] += 1
