"""The dependency network of the cost-sensitive classifiers: a tree over the features, the class a parent of each.

Friedman, Geiger, Goldszmidt (1997) for the tree; Liyanage, Zois, Chelmis (2021), Section 4, for the order in which its
features are acquired and for the tables that link a feature to its nearest acquired ancestor.

A network of K0 features is `parent` (K0,), -1 for the root, and `tables` (K0, L, V, V): P(x_f = v | x_parent = u, c) at
[f, c, v, u], the same for every u at the root. Sums over v are 1.

A table has a count for each value of a column, each value of its parent and each class. With few rows such counts
differ by chance, and an irrelevant column seems relevant. So `smoothed_tables` are shrunk towards simpler ones: the
distribution given parent and class towards that given the class, and the latter towards the marginal distribution::

    P(v | c)    = (n_vc + 1 + a P(v)) / (n_c + V + a)                                     (1)
    P(v | u, c) = (n_vuc + 1 + b P(v | c)) / (n_uc + V + b)                               (2)

The strengths a and b are estimated for each column: they maximise the leave-one-out likelihood. For (2), that is the
sum of n_vuc log((n_vuc + b P(v | c)) / (n_uc + V - 1 + b)). One row is always added to each count, because the
estimates are too small for columns selected for their apparent relevance. Rows in which the parent is missing count in
(1).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator

import numpy as np

from tamis._validation import Array, Floats, Ints


def spanning_tree(weight: Array) -> Ints:
    """Return the parents in the maximum spanning tree of a complete graph, edges pointing away from node 0.

    >>> spanning_tree(np.array([[0., 3., 1.], [3., 0., 2.], [1., 2., 0.]]))
    array([-1,  0,  1])
    """
    n = len(weight)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    parent, best = np.full(n, -1), weight[0].astype(np.float64)
    nearest, inside = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    inside[0] = True
    for _ in range(n - 1):
        node = int(np.argmax(np.where(inside, -np.inf, best)))
        parent[node], inside[node] = nearest[node], True
        closer = ~inside & (weight[node] > best)
        best[closer], nearest[closer] = weight[node][closer], node
    return parent


def markov_blanket_order(parent: Array, priority: Array) -> Ints:
    """Return the order of evaluation: by priority, omitting the tree neighbours of the features selected so far.

    Given its neighbours, a feature is independent of all others, so new information must come from outside them.

    >>> markov_blanket_order(np.array([-1, 0, 0, 1, 3, 2]), np.arange(6, 0, -1))
    array([0, 3, 5])
    """
    left, order = np.ones(len(parent), dtype=bool), []
    for feature in np.argsort(-np.asarray(priority, dtype=np.float64), kind="stable"):
        if left[feature]:
            order.append(int(feature))
            left[parent == feature] = False
            if parent[feature] >= 0:
                left[parent[feature]] = False
    return np.array(order, dtype=np.int64)


class Network:
    """Joint counts of each feature, its parent and the class; rows can be added, with fading of earlier ones.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, K0), int
        Negative where missing; the row is then ignored.
    y : ndarray of shape (n_rows,), int
        Class codes.
    parent : ndarray of shape (K0,), int
    n_values, n_classes : int
    levels : ndarray of shape (K0,), int, optional
        Number of values that each feature can take; by default `n_values`.
    """

    def __init__(
        self,
        codes: Array,
        y: Array,
        parent: Array,
        n_values: int,
        n_classes: int,
        levels: Array | None = None,
    ) -> None:
        self.parent = parent
        self.levels = np.full(len(parent), n_values) if levels is None else levels
        self.counts = self._count(codes, y, n_values, n_classes)  # (K0, n_classes, n_values, n_values)
        self.of_class: Floats = np.bincount(y, minlength=n_classes).astype(np.float64)

    def _count(
        self, codes: Array, y: Array, n_values: int, n_classes: int, weight: Array | None = None
    ) -> Floats:
        n = codes.shape[1]
        above = np.where(self.parent < 0, 0, codes[:, self.parent])
        at = ((np.arange(n) * n_classes + y[:, None]) * n_values + codes) * n_values + above
        known = (codes >= 0) & (above >= 0)
        weights = None if weight is None else np.broadcast_to(weight[:, None], at.shape)[known]
        counts = np.bincount(at[known], weights, minlength=n * n_classes * n_values**2)
        return counts.reshape(n, n_classes, n_values, n_values).astype(np.float64)

    def with_rows(self, codes: Array, y: Array, fading: float) -> Network:
        """Return the network with more rows; each multiplies the weight of the earlier ones by `fading`."""
        network, n = copy.copy(self), len(y)
        weight = fading ** np.arange(n - 1, -1, -1.0)
        _, n_classes, n_values, _ = self.counts.shape
        network.counts = self.counts * fading**n + self._count(codes, y, n_values, n_classes, weight)
        network.of_class = self.of_class * fading**n + np.bincount(y, weight, minlength=n_classes)
        return network

    def prior(self) -> Floats:
        """Return the frequency of each class."""
        return self.of_class / self.of_class.sum()

    def tables(self) -> Floats:
        """Return P(x_f = v | x_parent = u, c) of each feature, with one row added to each count.

        Returns
        -------
        ndarray of shape (K0, n_classes, n_values, n_values)
            At [f, c, v, u]; the same for every u at the root.
        """
        counts, root = self.counts.copy(), self.parent < 0
        counts[root] = counts[root].sum(axis=3, keepdims=True)
        levels = self.levels[:, None, None, None]
        possible = np.arange(counts.shape[2])[:, None] < levels
        return (counts + possible) / (counts.sum(axis=2, keepdims=True) + levels)


class Chain:
    """The features in the order of acquisition, each linked to an earlier one.

    The link of a feature is its nearest ancestor in the tree that comes earlier in the order; the features between
    them are summed out. This is the exact posterior of the tree if every parent comes before its children, otherwise
    the approximation of the paper.

    Parameters
    ----------
    parent, tables
        The network.
    order : ndarray of shape (K,), int
        Features of the network.

    Attributes
    ----------
    link : ndarray of shape (K,), int
        Position in the order that each position is linked to; -1 if none.
    tables : list of ndarray of shape (n_classes, n_values, n_values or 1)
        P(value at the position | value at its link, class).
    """

    def __init__(self, parent: Array, tables: Floats, order: Array) -> None:
        position = {int(feature): k for k, feature in enumerate(order)}
        self.link = np.full(len(order), -1)
        self.tables: list[Floats] = []
        for k, feature in enumerate(order):
            table, above = tables[feature], int(parent[feature])
            while above >= 0 and position.get(above, k) >= k:
                table, above = table @ tables[above], int(parent[above])
            self.link[k] = position[above] if above >= 0 else -1
            self.tables.append(np.ascontiguousarray(table if above >= 0 else table[:, :, :1]))

    def __len__(self) -> int:
        return len(self.link)

    @functools.cached_property
    def _made(self) -> dict[tuple[int, int], Floats]:
        """The results of `_table`, by position and link."""
        return {}

    def _table(self, k: int, link: int) -> Floats:
        """Return P(value at k | value at link, class) as (u, v, class), u = 0 without a link.

        Everything between is summed out.
        """
        made = self._made
        if (k, link) not in made:
            table, above = self.tables[k], int(self.link[k])
            while above != link:
                table, above = table @ self.tables[above], int(self.link[above])
            made[k, link] = np.ascontiguousarray(table.transpose(2, 1, 0))
        return made[k, link]

    def likelihood(self, k: int, values: Array) -> Floats:
        """Return P(x_k = v | known values, class) for each row.

        Parameters
        ----------
        k : int
            Position in the order.
        values : ndarray of shape (n_rows, K), int
            Codes at each position; negative where unknown. Unknown links are summed out.

        Returns
        -------
        ndarray of shape (n_rows, n_values, n_classes)
        """
        likelihood = np.empty((len(values), self.tables[k].shape[1], self.tables[k].shape[0]))
        for rows, table, link in self.grouped_likelihood(k, values):
            likelihood[rows] = table[link]
        return likelihood

    def grouped_likelihood(self, k: int, values: Array) -> Iterator[tuple[Array | slice, Floats, Ints]]:
        """Return the likelihood as tables: groups of rows, P(v | u, class) as (u, v, class), and the u of each row."""
        link = int(self.link[k])
        if link < 0:
            yield slice(None), self._table(k, link), np.zeros(len(values), dtype=np.int64)
            return
        if (known := values[:, link]).min(initial=0) >= 0:
            yield slice(None), self._table(k, link), known.astype(np.int64)
            return
        links, every = np.full(len(values), link), np.arange(len(values))
        while (unknown := (links >= 0) & (values[every, links] < 0)).any():
            links[unknown] = self.link[links[unknown]]
        for at in np.unique(links):
            rows = np.flatnonzero(links == at)
            linked = values[rows, at] if at >= 0 else np.zeros(len(rows))
            yield rows, self._table(k, int(at)), linked.astype(np.int64)


# -- smoothed tables ---------------------------------------------------------------------------------------


_STRENGTHS = np.r_[0.0, 2.0 ** np.arange(13)]  # weight of the simpler table, in rows


def smoothed_tables(network: Network, codes: Array, y: Array) -> Floats:
    """Return P(x_f = v | x_parent = u, c) at [f, c, v, u], see :meth:`Network.tables`.

    A column whose counts do not depend on the class is irrelevant:

    >>> codes = np.tile([[0], [1]], (8, 1))
    >>> y = np.repeat([0, 1], 8)
    >>> smoothed_tables(Network(codes, y, np.array([-1]), 2, 2), codes, y)[0, :, :, 0]
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    counts = network.counts
    n, n_classes, n_values, _ = counts.shape
    of_class = np.zeros((n, n_classes, n_values))
    for c in range(n_classes):
        for v in range(n_values):
            of_class[:, c, v] = (codes[y == c] == v).sum(axis=0)
    possible = (np.arange(n_values) < network.levels[:, None]).astype(np.float64)
    share = of_class.sum(axis=1) + possible
    share /= share.sum(axis=1, keepdims=True)
    alone = _smooth(of_class[:, :, None], share[:, None, None], possible)[:, :, 0]
    tables = _smooth(counts.transpose(0, 1, 3, 2), alone[:, :, None], possible)
    tables[network.parent < 0] = alone[network.parent < 0][:, :, None]
    return np.ascontiguousarray(tables.transpose(0, 1, 3, 2))


def _smooth(counts: Floats, simple: Floats, possible: Floats) -> Floats:
    """Return the distributions along the last axis, shrunk towards simpler ones with the strength fitted per column.

    `possible` is 1 for each value that a column can take, shape (n, n_values).
    """
    possible = possible[:, None, None]
    total = counts.sum(axis=-1, keepdims=True) + possible.sum(axis=-1, keepdims=True)
    likely = []
    for strength in _STRENGTHS:
        others = (counts + strength * simple) / (total - 1.0 + strength)
        likely.append((counts * np.log(np.where(counts > 0.0, others, 1.0))).sum(axis=(1, 2, 3)))
    best = _STRENGTHS[np.argmax(likely, axis=0)][:, None, None, None]
    return (counts + possible + best * simple) / (total + best)
