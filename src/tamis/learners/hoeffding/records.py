"""The nodes of a tree as records, for exports, plots and feature importances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Floats
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


def node_records(pools: Pools, categories: Categories, columns: NDArray[np.intp]) -> list[Node]:
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
