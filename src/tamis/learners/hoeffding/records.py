"""The nodes of a tree as records, for exports, plots and feature importances.

Validation of the arrays of a tree, so that no kernel reads out of bounds or follows a cycle.

Kernels follow links from node to node without a limit, so range checks are not sufficient: every node in use must be
reached exactly once from a root, every place must be either used or free, and the categories of a feature must form
a linked list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._validation import Floats, Indices
from tamis.drift.adwin import check_windows
from tamis.errors import StateError
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.nodes import Kind, Link, Number, Pools, State


@dataclass(frozen=True)
class Node:
    """A split or a leaf.

    Attributes
    ----------
    parent : int
        Position of the parent in the list of nodes; -1 at the root.
    depth : int
        Number of splits above it.
    feature : int or None
        Column of the split; None at a leaf.
    threshold : float or None
        Rows at or below it go to the first child; None where categories are split.
    category : float or None
        As a child of a split by categories: the category that leads here, None for all others.
    merit : float
        Information gain of the split when it was made, in bits; 0 at a leaf.
    weight : float
        Weight of the rows that reached it, plus its initial weight.
    class_weights : ndarray of shape (n_classes,), float64
        The weight of each class.
    place : int
        Its place in the arrays of the tree.
    """

    parent: int
    depth: int
    feature: int | None
    threshold: float | None
    category: float | None
    merit: float
    weight: float
    class_weights: Floats
    place: int = -1


def node_records(pools: Pools, categories: Categories, columns: Indices) -> list[Node]:
    """Return the nodes, each before its children; `columns` maps features of the arrays to input columns."""
    links, numbers = pools.links, pools.numbers
    nodes: list[Node] = []
    todo = [(int(pools.state[State.ROOT]), -1)]
    while todo:
        at, parent = todo.pop()
        leaf = links[at, Link.LEFT] < 0
        numeric = not leaf and links[at, Link.KIND] == Kind.NUMERIC
        has_category = parent >= 0 and nodes[parent].threshold is None and links[at, Link.CELL] >= 0
        nodes.append(
            Node(
                parent=parent,
                depth=0 if parent < 0 else nodes[parent].depth + 1,
                feature=None if leaf else int(columns[links[at, Link.FEATURE]]),
                threshold=float(numbers[at, Number.THRESHOLD]) if numeric else None,
                category=float(categories.values[links[at, Link.CELL]]) if has_category else None,
                merit=0.0 if leaf else float(numbers[at, Number.MERIT]),
                weight=float(numbers[at, Number.WEIGHT]),
                class_weights=pools.weights[at].copy(),
                place=at,
            )
        )
        children, child = [], int(links[at, Link.LEFT])
        while child >= 0:
            children.append((child, len(nodes) - 1))
            child = int(links[child, Link.NEXT])
        todo.extend(reversed(children))
    return nodes


def shares_of_gain(gains: Iterable[tuple[int, float]], n_features: int) -> Floats:
    """Return the gains of splits, given as (feature, gain), summed by feature; the sum is 1, or 0 without gains."""
    sums = np.zeros(n_features)
    for feature, gain in gains:
        sums[feature] += gain
    total = sums.sum()
    return sums / total if total > 0.0 else sums


def importances(nodes: Iterable[Node], n_features: int) -> Floats:
    """Return the merit times weight of the splits of a tree, as shares."""
    splits = ((one.feature, one.merit * one.weight) for one in nodes if one.feature is not None)
    return shares_of_gain(splits, n_features)


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
    require(state[State.PENDING] == 0 and 0 <= state[State.ROOT] < len(links), "state")
    alive = links[:, Link.ALIVE] == 1
    used = links[alive]
    n_nodes, n_slots, n_detectors = len(links), len(pools.gaussians), len(pools.detectors)
    stops = {Link.LEFT: n_nodes, Link.NEXT: n_nodes, Link.ALTERNATE: n_nodes, Link.SLOT: n_slots}
    stops |= {
        Link.DETECTOR: n_detectors,
        Link.FEATURE: n_numeric + pools.lists.shape[1],
        Link.KIND: len(Kind),
    }
    for column, stop in (stops | {Link.CELL: n_cells, Link.CUT_CELL: n_cells}).items():
        require(((used[:, column] >= -1) & (used[:, column] < stop)).all(), f"links[:, {column}]")
    for place, taken, size in (
        (State.FREE_NODES, np.flatnonzero(alive), n_nodes),
        (State.FREE_SLOTS, used[:, Link.SLOT], n_slots),
        (State.FREE_DETECTORS, used[:, Link.DETECTOR], n_detectors),
    ):
        require(0 <= state[place] <= size, "state")
        places = np.concatenate([pools.notes[place, : state[place]], taken[taken >= 0]])
        require(np.array_equal(np.sort(places), np.arange(size)), "notes")
    require(state[State.LIVE] == len(used), "state")
    _check_paths(links.tolist(), [int(root) for root in roots], len(used), n_numeric)
    _check_chains(pools)
    require(pools.edges.shape[1] in (0, pools.gaussians.shape[3]), "edges")
    total, weight = pools.weights[alive].sum(axis=1), pools.numbers[alive, Number.WEIGHT]
    require(np.allclose(weight, total, rtol=_ROUNDING, atol=_ROUNDING), "numbers")
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


def _check_paths(links: list[list[int]], roots: list[int], n_used: int, n_numeric: int) -> None:
    """Reject trees in which a node is reached twice or never, or a split lacks a feature or children."""
    todo, reached = [(root, -1) for root in roots], 0
    seen = bytearray(len(links))
    while todo:
        node, parent = todo.pop()
        require(0 <= node < len(links) and not seen[node], "links")
        own, seen[node], reached = links[node], 1, reached + 1
        require(own[Link.ALIVE] == 1 and own[Link.PARENT] == parent, "links")
        if own[Link.ALTERNATE] >= 0:
            todo.append((own[Link.ALTERNATE], node))
        child, n_children = own[Link.LEFT], 0
        require(own[Link.SLOT] >= 0 or child >= 0, "links")
        while child >= 0:
            n_children += 1
            require(n_children <= len(links), "links")
            todo.append((child, node))
            child = links[child][Link.NEXT]
        if n_children:
            require(own[Link.KIND] == Kind.MULTIWAY or (own[Link.KIND] >= 0 and n_children == 2), "links")
            of_numbers = 0 <= own[Link.FEATURE] < n_numeric
            require(own[Link.FEATURE] >= 0 and of_numbers == (own[Link.KIND] == Kind.NUMERIC), "links")
    require(reached == n_used, "links")


def _check_chains(pools: Pools) -> None:
    """Reject lists of categories that share an element or form a cycle."""
    follows, n_cells = pools.next_cell.tolist(), 0
    seen = bytearray(len(follows))
    for first, length in zip(*pools.lists.tolist(), strict=True):
        cell, n = first, 0
        while cell >= 0:
            require(not seen[cell], "next_cell")
            seen[cell], n = 1, n + 1
            cell = follows[cell]
        require(n == length and cell == -1, "lists")
        n_cells += n
    require(n_cells == sum(cell >= -1 for cell in follows), "next_cell")


def _check_categories(categories: Categories, n_features: int) -> None:
    """Reject a table that is too full to be searched, or whose cells are invalid."""
    table, n = categories._table, categories.n_cells
    taken = table[table[:, 0] >= 0]
    require(0 <= n <= len(categories.values) and len(taken) == n, "_table")
    require((taken[:, 0] < n_features).all(), "_table")
    require(np.array_equal(np.sort(taken[:, 2]), np.arange(n)), "_table")
    require(np.isfinite(categories.values).all(), "values")
