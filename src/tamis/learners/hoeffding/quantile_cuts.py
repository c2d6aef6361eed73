"""Class counts of a numeric feature in bins whose edges follow its quantiles, for the thresholds of a leaf.

The first distinct values of a feature are the edges, with their counts. A later value is counted in its bin: the values
above the edge before and at or below its own. A bin with more than twice its share of the weight is divided at a value
inside, half of each class on either side, and the two neighbours with the least weight are merged (Gibbons, Matias,
Poosala: Fast incremental maintenance of approximate histograms, VLDB 1997). The range of the values does not matter, so
thresholds fit heavy tails, and a monotone transformation of a feature changes only the thresholds of splits.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats
from tamis.dependence.split_gain import gain_of_two
from tamis.summaries.quantile_kernels import first_not_below

_LARGEST_SHARE = 2.0  # of the mean weight of a bin


@njit(strict=True, allocates=False)
def _insert(edges: Floats, bins: Floats, at: int, last: int, x: float) -> None:
    """Insert an edge and an empty bin at a position; those from there to before `last` move up."""
    for k in range(last, at, -1):
        edges[k] = edges[k - 1]
        for c in range(bins.shape[0]):
            bins[c, k] = bins[c, k - 1]
    edges[at] = x
    for c in range(bins.shape[0]):
        bins[c, at] = 0.0


@njit(strict=True, allocates=False)
def _lightest_pair(bins: Floats, excluded: int) -> tuple[int, float]:
    """Return the first of the two neighbouring bins with the least weight, and that weight; not one of `excluded`."""
    best, least, before = -1, np.inf, 0.0
    for k in range(bins.shape[1]):
        weight = 0.0
        for c in range(bins.shape[0]):
            weight += bins[c, k]
        if k > 0 and k != excluded and k - 1 != excluded and before + weight < least:
            best, least = k - 1, before + weight
        before = weight
    return best, least


@njit(strict=True, allocates=False)
def _divide(edges: Floats, bins: Floats, at: int, x: float, weight: float) -> None:
    """Divide a bin at a value inside, and merge the lightest neighbours, unless these have as much weight."""
    pair, least = _lightest_pair(bins, at)
    if pair < 0 or least >= weight:
        return
    for c in range(bins.shape[0]):  # the bin before the joint edge is added to the one after it
        bins[c, pair + 1] += bins[c, pair]
    if pair < at:
        for k in range(pair, at - 1):
            edges[k] = edges[k + 1]
            for c in range(bins.shape[0]):
                bins[c, k] = bins[c, k + 1]
        at -= 1
        edges[at] = x
    else:
        _insert(edges, bins, at, pair, x)
    for c in range(bins.shape[0]):
        half = 0.5 * bins[c, at + 1]
        bins[c, at], bins[c, at + 1] = half, half


@njit(strict=True, allocates=False)
def count_value(edges: Floats, bins: Floats, c: int, x: float, weight: float, total: float) -> None:
    """Count a value of a class.

    Parameters
    ----------
    edges : ndarray of shape (n_edges,)
        Ascending; infinite where fewer distinct values have occurred. Changed in place.
    bins : ndarray of shape (n_classes, n_edges + 1)
        Weight of each class at or below each edge and above the edge before, and above all. Changed in place.
    c : int
        The class.
    x, weight : float
    total : float
        Weight of all values, this one included.
    """
    n = edges.shape[0]
    at = first_not_below(edges, 0, n, x)
    if edges[n - 1] == np.inf:
        if edges[at] != x:
            _insert(edges, bins, at, n - 1, x)
        bins[c, at] += weight
        return
    bins[c, at] += weight
    if at < n and edges[at] == x:
        return
    here = 0.0
    for k in range(bins.shape[0]):
        here += bins[k, at]
    if here * (n + 1) > _LARGEST_SHARE * total:
        _divide(edges, bins, at, x, here)


@njit(strict=True, allocates=False)
def best_edge(edges: Floats, bins: Floats, total: Floats, part: Floats, rest: Floats) -> tuple[float, float]:
    """Return the gain and the edge of the best split at an edge; -1 if there is none.

    Parameters
    ----------
    edges, bins : ndarray
        See :func:`count_value`.
    total, part, rest : ndarray of shape (n_classes,)
        Overwritten.
    """
    best, threshold = -1.0, 0.0
    for c in range(bins.shape[0]):
        total[c], part[c] = bins[c].sum(), 0.0
    for k in range(edges.shape[0]):
        if edges[k] == np.inf:
            break
        for c in range(bins.shape[0]):
            part[c] += bins[c, k]
        gain = gain_of_two(total, part, rest)
        if gain > best:
            best, threshold = gain, edges[k]
    return best, threshold


@njit(strict=True, allocates=False)
def weight_up_to(edges: Floats, bins: Floats, c: int, edge: float) -> float:
    """Return the weight of a class at or below an edge."""
    weight = 0.0
    for k in range(edges.shape[0]):
        if edges[k] > edge:
            break
        weight += bins[c, k]
    return weight
