"""Tables of a network that believe little of few rows.

A table has a number for each value of a column, each value of its parent and each class. Of few rows such counts differ
by chance, and a column that tells nothing seems to tell something. So the tables are drawn to simpler ones: what the
column says given parent and class to what it says given the class alone, and this to its shares in all rows::

    P(v | c)    = (n_vc + 1 + a P(v)) / (n_c + V + a)                                     (1)
    P(v | u, c) = (n_vuc + 1 + b P(v | c)) / (n_uc + V + b)                               (2)

How strongly, a and b, is estimated for each column: they are those by which each row is most likely given the others.
For (2), say, that is the sum of n_vuc log((n_vuc + b P(v | c)) / (n_uc + V - 1 + b)). One row is added to each count
whatever they are: a column that was chosen since it seems to tell would ask for too little. Rows in which the parent is
missing count in (1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis.cells.network import Network

__all__ = ["shrunken_tables"]

Floats = NDArray[np.float64]
_STRENGTHS = np.r_[0.0, 2.0 ** np.arange(13)]  # rows that the simpler table counts for


def shrunken_tables(network: Network, codes: Array, y: Array) -> Floats:
    """Return P(x_f = v | x_parent = u, c) at [f, c, v, u], see :meth:`Network.tables`.

    A column whose counts do not depend on the class tells nothing at all:

    >>> codes = np.tile([[0], [1]], (8, 1))
    >>> y = np.repeat([0, 1], 8)
    >>> shrunken_tables(Network(codes, y, np.array([-1]), 2, 2), codes, y)[0, :, :, 0]
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    counts = network.counts
    n, n_classes, n_values, _ = counts.shape
    of_class = np.zeros((n, n_classes, n_values))
    for c in range(n_classes):
        for v in range(n_values):
            of_class[:, c, v] = (codes[y == c] == v).sum(axis=0)
    share = of_class.sum(axis=1) + 1.0
    share /= share.sum(axis=1, keepdims=True)
    alone = _drawn(of_class[:, :, None], share[:, None, None])[:, :, 0]
    tables = _drawn(counts.transpose(0, 1, 3, 2), alone[:, :, None])
    tables[network.parent < 0] = alone[network.parent < 0][:, :, None]
    return np.ascontiguousarray(tables.transpose(0, 1, 3, 2))


def _drawn(counts: Floats, simple: Floats) -> Floats:
    """Return the shares of the last axis, drawn to simpler ones as strongly as each column's rows ask for."""
    n_values = counts.shape[-1]
    total = counts.sum(axis=-1, keepdims=True) + n_values
    likely = []
    for strength in _STRENGTHS:
        others = (counts + strength * simple) / (total - 1.0 + strength)
        likely.append((counts * np.log(np.where(counts > 0.0, others, 1.0))).sum(axis=(1, 2, 3)))
    best = _STRENGTHS[np.argmax(likely, axis=0)][:, None, None, None]
    found: Floats = (counts + 1.0 + best * simple) / (total + best)
    return found
