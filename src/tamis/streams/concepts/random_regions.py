"""Concepts of random regions.

Random RBF: classes are clouds around random centres (Kirkby 2007, as in MOA), in a few of many features.

Deviation from MOA: all classes are equally likely, and each has at least one centre.

RTG-FD: a random decision tree over a few of many features (Domingos, Hulten, KDD 2000; feature drift: Barddal).

Deviations from the released generator, whose tree may omit a relevant feature: a nominal feature is not tested twice on
one path, a threshold lies in the remaining range, branches with equal leaves are pruned, and a tree is redrawn until it
tests every relevant feature and both classes have a probability of at least `least_share`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tamis._validation import Array, Floats, check_number
from tamis.streams.concepts.concept import Concept, Feature
from tamis.streams.draws import Draws, Ranges


@dataclass(frozen=True)
class RandomRBF(Concept):
    """Classes are clouds around random centres in the relevant features; the others are uniform in [0, 1].

    A row lies in a random direction from its centre, at a normally distributed distance whose standard deviation is
    drawn per centre, uniform in [0, 1). Values may lie outside [0, 1].

    Parameters
    ----------
    relevant : tuple of int, default=(0, 1, 2)
        Columns that depend on the class, ascending.
    n_features : int, default=10
        Number of columns.
    n_classes : int, default=2
        At least 2.
    n_centres : int, default=50
        At least n_classes; the classes are assigned to the centres in turn.
    seed : int, default=0
        Seed of the centres; at least 0.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Bifet, Holmes, Kirkby, Pfahringer (2010). MOA: Massive Online Analysis. JMLR 11.

    Examples
    --------
    >>> RandomRBF(relevant=(1, 4), n_centres=7, seed=1).centres.shape
    (7, 2)
    """

    relevant: tuple[int, ...] = (0, 1, 2)
    n_features: int = 10
    n_classes: int = 2
    n_centres: int = 50
    seed: int = 0
    positive_share = None

    _limits: ClassVar = {"n_classes": "[2, inf)"}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("n_centres", self.n_centres, low=self.n_classes, integer=True)

    @cached_property
    def centres(self) -> Floats:
        """Positions of the centres, shape (n_centres, n_relevant)."""
        return np.random.default_rng(self.seed).random((self.n_centres, len(self.relevant)))

    @cached_property
    def _clouds(self) -> tuple[Floats, Floats]:
        """Standard deviation of each cloud, and the cumulative probabilities."""
        rng = np.random.default_rng((self.seed, 1))
        deviation, weight = rng.random(self.n_centres), rng.random(self.n_centres) + 1e-9
        classes = np.arange(self.n_centres) % self.n_classes
        weight /= np.bincount(classes, weight)[classes] * self.n_classes
        return deviation, np.cumsum(weight)

    def label(self, values: Array) -> Array:
        """Return the class of the nearest centre; approximate, because clouds overlap."""
        gaps = ((values[:, None, :] - self.centres) ** 2).sum(axis=2)
        return np.asarray(gaps.argmin(axis=1) % self.n_classes)

    def draw(self, draws: Draws, rows: Array, out: Array) -> Array:
        """Draw some rows of the stream; see :class:`Concept`."""
        draws.child("features").fill(rows, out, Ranges.same(self.n_features))
        deviation, chances = self._clouds
        which: Array = np.searchsorted(chances[:-1], draws.child("class").one(rows), side="right")
        direction = draws.child("direction").normal(rows, len(self.relevant))
        reach = draws.child("distance").normal(rows, 1) * deviation[which, None]
        reach /= np.sqrt((direction**2).sum(axis=1, keepdims=True))
        out[:, list(self.relevant)] = self.centres[which] + reach * direction
        return which % self.n_classes


_MOST_TREES = 2000


@dataclass
class _Node:
    """A leaf with its class, or a test with its branches."""

    label: int = 0
    at: int = -1  # which of the relevant features; -1 in a leaf
    threshold: float = np.nan  # of a numeric feature: below goes left
    branches: tuple[_Node, ...] = ()

    def leaves(self) -> set[int]:
        """Return the classes of the leaves below."""
        return {self.label} if self.at < 0 else set().union(*(node.leaves() for node in self.branches))

    def tested_features(self) -> set[int]:
        """Return the features tested below."""
        return set() if self.at < 0 else {self.at}.union(*(node.tested_features() for node in self.branches))

    def share(self, box: dict[int, tuple[float, float]]) -> float:
        """Return the probability of class 1 for numbers uniform in the box."""
        if self.at < 0:
            return float(self.label)
        if np.isnan(self.threshold):
            return sum(node.share(box) for node in self.branches) / len(self.branches)
        low, high = box[self.at]
        left = (self.threshold - low) / (high - low)
        parts = (low, self.threshold), (self.threshold, high)
        shares = [node.share({**box, self.at: part}) for node, part in zip(self.branches, parts, strict=True)]
        return left * shares[0] + (1 - left) * shares[1]


@dataclass(frozen=True)
class RandomTree(Concept):
    """The class is determined by a random decision tree that tests some of the features.

    Nominal features come first, then numbers uniform in [0, 1].

    Parameters
    ----------
    relevant : tuple of int, default=(0, 1, 5, 6)
        Columns that the tree tests, ascending.
    n_nominal, n_numeric : int, default=5, 5
        Number of features of each kind, at least 0.
    n_values : int, default=5
        Number of values of a nominal feature, at least 2.
    max_depth : int, default=5
        Tests on the longest path, at least 1.
    first_leaf_level : int, default=3
        Tests before a path may end early, at least 0.
    leaf_fraction : float in [0, 1], default=0.15
        Probability of an early end at each further level.
    least_share : float in [0, 0.5), default=0.2
        Smallest natural probability of either class.
    positive_share : float in (0, 1) or None, default=None
        Probability of class 1; None for the natural one.
    seed : int, default=0
        Seed of the tree; at least 0.

    Raises
    ------
    ValueError
        If a parameter is invalid, or no tree is found that tests all the relevant features.

    References
    ----------
    Domingos, Hulten (2000). Mining High-Speed Data Streams. KDD.

    Examples
    --------
    >>> tree = RandomTree(relevant=(0, 3), n_nominal=2, n_numeric=3, seed=1)
    >>> [feature.name for feature in tree.features]
    ['nominal0', 'nominal1', 'numeric0', 'numeric1', 'numeric2']
    """

    relevant: tuple[int, ...] = (0, 1, 5, 6)
    n_nominal: int = 5
    n_numeric: int = 5
    n_values: int = 5
    max_depth: int = 5
    first_leaf_level: int = 3
    leaf_fraction: float = 0.15
    least_share: float = 0.2
    positive_share: float | None = None
    seed: int = 0

    _limits: ClassVar = {
        "n_nominal": "[0, inf)", "n_numeric": "[0, inf)", "n_values": "[2, inf)", "max_depth": "[1, inf)",
        "first_leaf_level": "[0, inf)", "leaf_fraction": "[0, 1]", "least_share": "[0, 0.5)",
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tree  # noqa: B018  # raise now if no tree exists

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Categories, then numbers."""
        nominal = [Feature.nominal(f"nominal{j}", self.n_values) for j in range(self.n_nominal)]
        return (*nominal, *(Feature(f"numeric{j}") for j in range(self.n_numeric)))

    @cached_property
    def _tree(self) -> tuple[Array, Array, Array, Array]:
        """Feature, threshold, first branch and class of each node; a leaf's branch is itself."""
        rng, every = np.random.default_rng(self.seed), set(range(len(self.relevant)))
        box = dict.fromkeys(every, (0.0, 1.0))
        for _ in range(_MOST_TREES):
            root = self._grow(rng, 0, dict(box))
            if (
                root.tested_features() == every
                and self.least_share <= root.share(box) <= 1 - self.least_share
            ):
                return _table(root)
        raise ValueError(
            f"No tree of {self.max_depth} levels tests all of the relevant features {self.relevant} and gives both"
            f" classes a share of {self.least_share}: choose fewer, a larger max_depth or a smaller least_share."
        )

    def _grow(self, rng: np.random.Generator, depth: int, box: dict[int, tuple[float, float]]) -> _Node:
        ends = depth >= self.first_leaf_level and rng.random() < self.leaf_fraction
        if ends or depth >= self.max_depth or not box:
            return _Node(label=int(rng.integers(2)))
        at = sorted(box)[int(rng.integers(len(box)))]
        rest = {other: part for other, part in box.items() if other != at}
        if self.relevant[at] < self.n_nominal:
            node = _Node(0, at, np.nan, tuple(self._grow(rng, depth + 1, rest) for _ in range(self.n_values)))
        else:
            low, high = box[at]
            threshold = float(rng.uniform(low, high))
            parts = (low, threshold), (threshold, high)
            children = tuple(self._grow(rng, depth + 1, {**rest, at: part}) for part in parts)
            node = _Node(0, at, threshold, children)
        leaves = node.leaves()
        return node if len(leaves) > 1 else _Node(label=leaves.pop())

    def label(self, values: Array) -> Array:
        """Return the class of the leaf that each row reaches."""
        at, threshold, branch, label = self._tree
        node, rows = np.zeros(len(values), dtype=np.intp), np.arange(len(values))
        for _ in range(self.max_depth):
            tested = at[node]
            x, cut = values[rows, tested], threshold[node]
            step = np.where(np.isnan(cut), x, x >= cut)
            node = branch[node] + (step * (label[node] < 0)).astype(np.intp)
        return label[node]


def _table(root: _Node) -> tuple[Array, Array, Array, Array]:
    """Return the nodes level by level, the branches of one node side by side."""
    nodes, branch = [root], []
    for i, node in enumerate(nodes):  # the list grows during the loop
        branch.append(len(nodes) if node.branches else i)
        nodes += node.branches
    return (
        np.array([max(node.at, 0) for node in nodes]),
        np.array([node.threshold for node in nodes]),
        np.array(branch),
        np.array([node.label if node.at < 0 else -1 for node in nodes]),
    )
