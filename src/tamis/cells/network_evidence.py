"""Evidence for the classes from a dependency network: pairs of columns, for any subset of the values.

The network is a tree of the columns, each conditioned on the class and on its parent (:mod:`tamis.cells.network`), with
smoothed tables. Unknown values are summed out from the leaves to the root, so the evidence of a subset S is exact::

    E(c) = log P(x_S | c)                                                                            (1)

The sum includes only the known columns and those between them and the root.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Mask
from tamis.cells.bins import Bins
from tamis.cells.network import Network, smoothed_tables, spanning_tree
from tamis.cells.tree import Tree
from tamis.dependence.information import conditional_mutual_information

_FARTHEST = 50.0  # bound on the absolute log probability


@njit(strict=True)
def _log_likelihoods(
    codes: Array, parent: Array, order: Array, tables: Array, log_likelihoods: Array
) -> None:
    """Fill in log P(known values | class) of each row and class."""
    L, K, V = tables.shape[:3]
    below, touched = np.empty((K, V)), np.empty(K, np.bool_)
    for i in range(len(codes)):
        for c in range(L):
            log_p, touched[:] = 0.0, False
            for at in range(K - 1, -1, -1):  # children before parents
                f = order[at]
                known = codes[i, f]
                if not touched[f] and known < 0:
                    continue
                of_known = below[f, known] if touched[f] else 1.0
                p, largest = parent[f], 0.0
                if p >= 0 and not touched[p]:
                    below[p], touched[p] = 1.0, True
                for u in range(V if p >= 0 else 1):
                    total = 0.0
                    if known >= 0:
                        total = tables[c, f, known, u] * of_known
                    else:
                        for v in range(V):
                            total += tables[c, f, v, u] * below[f, v]
                    if p >= 0:
                        below[p, u] *= total
                        largest = max(largest, below[p, u])
                    else:
                        log_p += np.log(max(total, 1e-300))
                if p >= 0 and largest > 0.0:  # long chains of evidence would underflow
                    for u in range(V):
                        below[p, u] /= largest
                    log_p += np.log(largest)
            log_likelihoods[i, c] = log_p


class NetworkEvidence:
    """Evidence for the classes from pairs of columns.

    Parameters
    ----------
    n_bins : int
    n_classes : int

    Examples
    --------
    Column 0 reverses what column 1 indicates:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (1000, 2)).astype(float)
    >>> model = NetworkEvidence(4, 2).fit(X, (X[:, 0] != X[:, 1]).astype(int))
    >>> likelihood = np.exp(model.evidence(np.array([[0.0, 1.0], [0.0, np.nan]]))[-1])
    >>> (likelihood / likelihood.sum(axis=1, keepdims=True)).round(1)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """

    _state_spec = Shapes(
        "_bins.edges (d, e) float in [-inf, inf]  _bins.sizes (d) in [0, e+1]  _bins.levels in [1, e+1]"
        "  _tree.parent (d) in [-1, d)  _tree._order (d) in [0, d)  _tree.prior (k) float in [0, 1]"
        "  _tree.tables (k, d, e+1, e+1) float in [0, 2]  n_classes in [k, k]"
    )

    def __init__(self, n_bins: int, n_classes: int) -> None:
        self.n_bins, self.n_classes = n_bins, n_classes
        self._bins = Bins(np.empty((0, n_bins - 1)))
        empty = np.empty((0, n_classes, n_bins, n_bins))
        self._tree = Tree(np.empty(0, dtype=np.int64), empty, np.full(n_classes, 1.0 / n_classes))

    def fit(self, values: Floats, y: Array, sizes: Ints | None = None) -> NetworkEvidence:
        """Fit to rows: `values` of shape (n_rows, K), NaN where missing, `y` of class codes.

        `sizes` is the number of categories of each column, 0 for numbers; by default all are numbers.
        """
        self._bins = Bins.quantile(values, self.n_bins).with_categories(sizes)
        codes, n_values = self._bins.codes(values), self._bins.n_bins
        parent = spanning_tree(conditional_mutual_information(codes, y, n_values, self.n_classes))
        network = Network(codes, y, parent, n_values, self.n_classes, self._bins.n_levels)
        self._tree = Tree(parent, smoothed_tables(network, codes, y), network.prior())
        return self

    def subset_evidence(self, values: Floats, subsets: Mask) -> Floats:
        """Return the evidence of the columns in each subset, shape (n_subsets, n_rows, n_classes), (1)."""
        codes = self._bins.codes(values)
        masked = np.where(subsets[:, None, :], codes, np.int16(-1)).reshape(
            len(subsets) * len(codes), codes.shape[1]
        )
        array = np.empty((len(masked), self.n_classes))
        _log_likelihoods(masked, self._tree.parent, self._tree._order, self._tree.tables, array)
        return np.maximum(array, -_FARTHEST).reshape(len(subsets), len(values), self.n_classes)

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class after each of its columns in order, (1).

        Parameters and return value as for :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        values = np.asarray(values, dtype=np.float64)
        if order is None:
            return np.concatenate(
                [np.zeros((values.shape[1], len(values), self.n_classes)), self.total_evidence(values)[None]]
            )
        known = np.full(values.shape, np.nan)
        items, rows = [np.zeros((len(values), self.n_classes))], np.arange(len(values))
        for column in order.T:
            there = column >= 0
            known[rows[there], column[there]] = values[rows[there], column[there]]
            items.append(self.total_evidence(known))
        return np.stack(items)

    def total_evidence(self, values: Floats) -> Floats:
        """Return the evidence of all known values of each row, shape (n_rows, n_classes)."""
        every = np.ones((1, values.shape[1]), dtype=bool)
        return self.subset_evidence(np.asarray(values, dtype=np.float64), every)[0]
