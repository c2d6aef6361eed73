"""The nodes of a tree as records, for exports, plots and feature importances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.nodes import (
    CELL,
    FEATURE,
    KIND,
    LEFT,
    MERIT,
    NEXT,
    NUMERIC,
    ROOT,
    THRESHOLD,
    WEIGHT,
    Pools,
)

__all__ = ["Node", "importances", "node_records"]


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
    """

    parent: int
    depth: int
    feature: int | None
    threshold: float | None
    category: float | None
    merit: float
    weight: float
    class_weights: NDArray[np.float64]


def node_records(pools: Pools, categories: Categories, columns: NDArray[np.intp]) -> list[Node]:
    """Return the nodes, each before its children; `columns` maps features of the arrays to input columns."""
    links, numbers = pools.links, pools.numbers
    nodes: list[Node] = []
    todo = [(int(pools.state[ROOT]), -1)]
    while todo:
        at, parent = todo.pop()
        leaf = links[at, LEFT] < 0
        numeric = not leaf and links[at, KIND] == NUMERIC
        has_category = parent >= 0 and nodes[parent].threshold is None and links[at, CELL] >= 0
        nodes.append(
            Node(
                parent=parent,
                depth=0 if parent < 0 else nodes[parent].depth + 1,
                feature=None if leaf else int(columns[links[at, FEATURE]]),
                threshold=float(numbers[at, THRESHOLD]) if numeric else None,
                category=float(categories.values[links[at, CELL]]) if has_category else None,
                merit=0.0 if leaf else float(numbers[at, MERIT]),
                weight=float(numbers[at, WEIGHT]),
                class_weights=pools.weights[at].copy(),
            )
        )
        children, child = [], int(links[at, LEFT])
        while child >= 0:
            children.append((child, len(nodes) - 1))
            child = int(links[child, NEXT])
        todo.extend(reversed(children))
    return nodes


def importances(nodes: Iterable[Node], n_features: int) -> NDArray[np.float64]:
    """Return merit times weight of the splits, summed by feature and normalised to 1; zeros without splits."""
    gains = np.zeros(n_features)
    for node in nodes:
        if node.feature is not None:
            gains[node.feature] += node.merit * node.weight
    total = gains.sum()
    return gains / total if total > 0.0 else gains
