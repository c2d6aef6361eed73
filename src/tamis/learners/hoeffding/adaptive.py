"""What makes a tree adaptive: detectors at its splits, and alternate trees that take the place of those gone stale.

Bifet, Gavalda: Adaptive learning from evolving data streams, IDA 2009. Each split has an ADWIN on the errors of the
rows that pass it. Where they rise, a new tree is started beside it, and both learn. Once the windows of both have more
than 300 rows, with errors e and e' over n and n' rows::

    bound = sqrt(2 e (1 - e) ln(2 / 0.05) (1 / n + 1 / n'))                                      (1)
    the alternate takes the split's place if e - e' > bound, and is dropped if e' - e > bound
"""

from __future__ import annotations

import numpy as np

from tamis._jit import njit
from tamis.learners.hoeffding.nodes import (
    ALTERNATE,
    CELL,
    DEPTH,
    DETECTOR,
    DROPPED,
    LEFT,
    NEXT,
    PARENT,
    REPLACED,
    ROOT,
    START,
    STARTED,
    Arrays,
    drop_subtree,
    give_detector,
    new_leaf,
    note,
)

__all__ = ["begin_alternate", "compare_alternate", "drop_alternate", "poisson", "put_in_place", "uniform"]

_LEAST_WIDTH = 300.0
_TOTAL, _WIDTH = 2, 4  # in a detector's state
_LOG_SIGNIFICANCE = float(np.log(2.0 / 0.05))
_POISSON = np.cumsum(np.exp(-1.0) / np.array([1.0, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880]))


@njit(allocates=False)
def uniform(seed: int, row: int, born: int) -> float:
    """Return a number in [0, 1) that only the arguments decide."""
    z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(row)
    for extra in (np.uint64(born), np.uint64(0)):  # splitmix64, twice
        z = (z + extra) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    share: float = np.float64(z >> np.uint64(11)) * 2.0**-53
    return share


@njit(allocates=False)
def poisson(seed: int, row: int, born: int) -> float:
    """Return a Poisson(1) number that only the arguments decide; 1 instead of 0, as in other adaptive trees."""
    share, k = uniform(seed, row, born), 0
    while k < _POISSON.shape[0] and share >= _POISSON[k]:
        k += 1
    return float(max(k, 1))


@njit()
def begin_alternate(tree: Arrays, node: int) -> None:
    """Begin an alternate tree beside a split; it learns from the next row on."""
    other = new_leaf(tree, node, tree.links[node, DEPTH])
    give_detector(tree, other)
    tree.links[node, ALTERNATE] = other
    tree.state[STARTED] += 1


@njit()
def compare_alternate(tree: Arrays, node: int, risen: bool) -> bool:
    """Begin an alternate where errors rise, drop it if it is worse; return whether it has taken the split's place."""
    other = tree.links[node, ALTERNATE]
    if risen:
        if other >= 0:
            drop_alternate(tree, node)
        note(tree, START, node, 1)
        return False
    if other < 0:
        return False
    mine, its = tree.detectors[tree.links[node, DETECTOR]], tree.detectors[tree.links[other, DETECTOR]]
    if min(mine[_WIDTH], its[_WIDTH]) <= _LEAST_WIDTH:
        return False
    error, its_error = mine[_TOTAL] / mine[_WIDTH], its[_TOTAL] / its[_WIDTH]
    share = 1.0 / mine[_WIDTH] + 1.0 / its[_WIDTH]
    bound = np.sqrt(max(2.0 * error * (1.0 - error) * _LOG_SIGNIFICANCE * share, 0.0))  # (1)
    if error - its_error > bound:
        put_in_place(tree, node, other)
        return True
    if its_error - error > bound:
        drop_alternate(tree, node)
    return False


@njit()
def drop_alternate(tree: Arrays, node: int) -> None:
    """Give up the alternate tree of a split."""
    drop_subtree(tree, tree.links[node, ALTERNATE])
    tree.links[node, ALTERNATE] = -1
    tree.state[DROPPED] += 1


@njit()
def put_in_place(tree: Arrays, node: int, other: int) -> None:
    """Put an alternate tree in the place of its split, and drop what was there."""
    links, parent = tree.links, tree.links[node, PARENT]
    links[other, PARENT], links[other, NEXT], links[other, CELL] = (
        parent,
        links[node, NEXT],
        links[node, CELL],
    )
    if parent < 0:
        tree.state[ROOT] = other
    elif links[parent, ALTERNATE] == node:
        links[parent, ALTERNATE] = other
    elif links[parent, LEFT] == node:
        links[parent, LEFT] = other
    else:
        child = links[parent, LEFT]
        while links[child, NEXT] != node:
            child = links[child, NEXT]
        links[child, NEXT] = other
    links[node, ALTERNATE] = -1
    drop_subtree(tree, node)
    tree.state[REPLACED] += 1
