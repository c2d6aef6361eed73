"""Validation of the arrays of a tree, so that no kernel reads out of bounds or follows a cycle.

Kernels follow links from node to node without a limit, so range checks are not sufficient: every node in use must be
reached exactly once from a root, every place must be either used or free, and the categories of a feature must form
a linked list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.drift.adwin import check_windows
from tamis.errors import StateError
from tamis.learners.dense_rows import LARGEST
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.nodes import (
    ALIVE,
    ALTERNATE,
    CELL,
    CUT_CELL,
    DETECTOR,
    FEATURE,
    FREE_DETECTORS,
    FREE_NODES,
    FREE_SLOTS,
    HIGHEST,
    KIND,
    LEFT,
    LIVE,
    LOWEST,
    MEAN,
    MULTIWAY,
    NEXT,
    NUMERIC,
    OBSERVED,
    PARENT,
    PENDING,
    ROOT,
    SLOT,
    WEIGHT,
    Pools,
)

__all__ = ["check_trees", "require"]

Ints = NDArray[np.int64]
_ROUNDING = 1e-6  # relative: the weight of a node is the sum of those of its classes


def check_trees(pools: Pools, roots: Any, n_numeric: int, categories: Categories) -> None:
    """Reject trees whose links are out of bounds or form a cycle.

    Parameters
    ----------
    pools : Pools
        The arrays of all the trees.
    roots : sequence of int
        The root nodes of the trees.
    n_numeric : int
        Number of numeric features of a row.
    categories : Categories
        The categories that the cells index.

    Raises
    ------
    StateError
        If the arrays are inconsistent.
    """
    links, state, n_cells = pools.links, pools.state, categories.n_cells
    _check_categories(categories, pools.lists.shape[1])
    require(n_cells <= len(pools.next_cell), "next_cell")
    require(state[PENDING] == 0 and 0 <= state[ROOT] < len(links), "state")
    alive = links[:, ALIVE] == 1
    used = links[alive]
    for column, stop in (
        (LEFT, len(links)), (NEXT, len(links)), (ALTERNATE, len(links)), (FEATURE, n_numeric + pools.lists.shape[1]),
        (KIND, MULTIWAY + 1), (CELL, n_cells), (CUT_CELL, n_cells), (SLOT, len(pools.gaussians)),
        (DETECTOR, len(pools.detectors)),
    ):  # fmt: skip
        require(((used[:, column] >= -1) & (used[:, column] < stop)).all(), f"links[:, {column}]")
    _check_places(pools.notes[FREE_NODES], state[FREE_NODES], np.flatnonzero(alive), len(links), "nodes")
    _check_places(pools.notes[FREE_SLOTS], state[FREE_SLOTS], used[:, SLOT], len(pools.gaussians), "slots")
    _check_places(
        pools.notes[FREE_DETECTORS],
        state[FREE_DETECTORS],
        used[:, DETECTOR],
        len(pools.detectors),
        "detectors",
    )
    require(state[LIVE] == len(used), "state")
    _check_paths(links.tolist(), [int(root) for root in roots], len(used), n_numeric)
    _check_chains(pools)
    _check_sums(pools, alive)
    check_windows(pools.detectors)


def require(condition: Any, name: str) -> None:
    """Reject a tree unless a condition on one of its arrays holds.

    Raises
    ------
    StateError
        If the condition is false.
    """
    if not condition:
        raise StateError(
            f"{name!r} of a tree has inconsistent values: the model was changed from outside, so fit it again or load"
            " it from where it was saved."
        )


def _check_places(stack: Ints, n_free: Any, used: Ints, n_places: int, name: str) -> None:
    """Reject places that are both free and used, or neither, or used twice."""
    require(0 <= n_free <= n_places, f"free {name}")
    places = np.concatenate([stack[:n_free], used[used >= 0]])
    require(np.array_equal(np.sort(places), np.arange(n_places)), f"free {name}")


def _check_paths(links: list[list[int]], roots: list[int], n_used: int, n_numeric: int) -> None:
    """Reject trees in which a node is reached twice or never, or a split lacks a feature or children."""
    todo, reached = [(root, -1) for root in roots], 0
    seen = bytearray(len(links))
    while todo:
        node, parent = todo.pop()
        require(0 <= node < len(links) and not seen[node], "links")
        own, seen[node], reached = links[node], 1, reached + 1
        require(own[ALIVE] == 1 and own[PARENT] == parent, "links")
        if own[ALTERNATE] >= 0:
            todo.append((own[ALTERNATE], node))
        child, n_children = own[LEFT], 0
        require(own[SLOT] >= 0 or child >= 0, "links")
        while child >= 0:
            n_children += 1
            require(n_children <= len(links), "links")
            todo.append((child, node))
            child = links[child][NEXT]
        if n_children:
            require(own[KIND] == MULTIWAY or (own[KIND] >= 0 and n_children == 2), "links")
            of_numbers = 0 <= own[FEATURE] < n_numeric
            require(own[FEATURE] >= 0 and of_numbers == (own[KIND] == NUMERIC), "links")
    require(reached == n_used, "links")


def _check_chains(pools: Pools) -> None:
    """Reject lists of categories that share an element or form a cycle."""
    follows, n_cells = pools.next_cell.tolist(), 0
    require(all(-2 <= cell < len(follows) for cell in follows), "next_cell")
    seen = bytearray(len(follows))
    for first, length in zip(*pools.lists.tolist(), strict=True):
        require(-1 <= first < len(follows), "lists")
        cell, n = first, 0
        while cell >= 0:
            require(not seen[cell], "next_cell")
            seen[cell], n = 1, n + 1
            cell = follows[cell]
        require(n == length and cell == -1, "lists")
        n_cells += n
    require(n_cells == sum(cell >= -1 for cell in follows), "next_cell")


def _check_sums(pools: Pools, alive: NDArray[np.bool_]) -> None:
    """Reject impossible statistics: negative weights, or values whose squares overflow."""
    kept = pools.gaussians
    for name in ("weights", "counts", "totals"):
        require(_all_in(getattr(pools, name), 0.0, np.inf), name)
    require(_all_in(kept[:, :, OBSERVED], 0.0, np.inf) and np.isfinite(kept).all(), "gaussians")
    require(_all_in(kept[:, :, [MEAN, LOWEST, HIGHEST]], -LARGEST, LARGEST), "gaussians")
    require(pools.edges.shape[1] in (0, kept.shape[3]), "edges")
    ascending = pools.edges[..., 1:] >= pools.edges[..., :-1]
    require(ascending.all() and (pools.edges >= -LARGEST).all(), "edges")
    require(_all_in(pools.bins, 0.0, np.inf), "bins")
    require(np.isfinite(pools.numbers).all(), "numbers")
    total, weight = pools.weights[alive].sum(axis=1), pools.numbers[alive, WEIGHT]
    require(np.allclose(weight, total, rtol=_ROUNDING, atol=_ROUNDING), "numbers")


def _all_in(array: NDArray[Any], low: float, high: float) -> bool:
    return bool(((array >= low) & (array <= high) & np.isfinite(array)).all())


def _check_categories(categories: Categories, n_features: int) -> None:
    """Reject a table that is too full to be searched, or whose cells are invalid."""
    table, n = categories._table, categories.n_cells
    taken = table[table[:, 0] >= 0]
    require(0 <= n <= len(categories.values) and len(taken) == n, "_table")
    require((taken[:, 0] < n_features).all(), "_table")
    require(np.array_equal(np.sort(taken[:, 2]), np.arange(n)), "_table")
    require(np.isfinite(categories.values).all(), "values")
