"""Smoothed conditional probability tables of a network.

A table has a count for each value of a column, each value of its parent and each class. With few rows such counts
differ by chance, and an irrelevant column seems relevant. So the tables are shrunk towards simpler ones: the
distribution given parent and class towards that given the class, and the latter towards the marginal distribution::

    P(v | c)    = (n_vc + 1 + a P(v)) / (n_c + V + a)                                     (1)
    P(v | u, c) = (n_vuc + 1 + b P(v | c)) / (n_uc + V + b)                               (2)

The strengths a and b are estimated for each column: they maximise the leave-one-out likelihood. For (2), that is the
sum of n_vuc log((n_vuc + b P(v | c)) / (n_uc + V - 1 + b)). One row is always added to each count, because the
estimates are too small for columns selected for their apparent relevance. Rows in which the parent is missing count in
(1).
"""

from __future__ import annotations

import numpy as np

from tamis._validation import Array, Floats
from tamis.cells.network import Network

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
