"""The order of minimum redundancy and maximum relevance: relevant to the class, not redundant with earlier columns.

Peng, Long, Ding: Feature Selection Based on Mutual Information, IEEE TPAMI 27(8), 2005, equation (7)::

    next column = argmax_j  [ I(x_j; c) - mean over chosen k of I(x_j; x_k) ] / price_j                  (1)

Deviations, each with its reason: information is adjusted for chance, otherwise columns with many values rank first; a
negative difference is multiplied by the price rather than divided, so that a high price is never an advantage.
"""

from __future__ import annotations

import numpy as np

from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis.base.prices import Tariff
from tamis.cells.bins import Bins, dense
from tamis.dependence.information import adjusted_mutual_information

_POOL = 200  # number of most relevant columns that are compared with each other


def mrmr(X: Rows, y: Array, bins: Bins, tables: Array, price: Floats | Tariff, n_columns: int) -> Ints:
    """Return at most `n_columns` columns in the order of (1); constant columns are omitted.

    Parameters
    ----------
    X : rows of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,), int
    bins : Bins
        Bins of every column.
    tables : ndarray of shape (n_features, n_bins, n_classes), int
        Counts of the bins.
    price : ndarray of shape (n_features,), or Tariff
    n_columns : int
    """
    vary = np.count_nonzero(tables.sum(axis=2), axis=1) > 1
    relevance = np.where(vary, adjusted_mutual_information(tables), -np.inf)
    pool = np.argsort(-relevance, kind="stable")[: min(_POOL, int(vary.sum()))]
    codes = bins.take(pool).codes(dense(X[:, pool]))
    tariff = (
        price.take(pool)
        if isinstance(price, Tariff)
        else Tariff(price[pool], np.zeros((0, len(pool)), bool), np.zeros(0))
    )
    cost = tariff.following(np.zeros((1, len(pool)), dtype=bool))[0]
    chosen: list[int] = []
    shared, left = np.zeros(len(pool)), np.ones(len(pool), dtype=bool)
    while len(chosen) < min(n_columns, len(pool)):
        gain = relevance[pool] - shared / max(len(chosen), 1)
        free = np.where(gain > 0.0, np.inf, gain)
        priority = np.divide(gain, cost, out=free, where=(cost > 0.0) & (gain > 0.0))
        priority = np.where(gain <= 0.0, gain * np.maximum(cost, 1e-300), priority)
        best = int(np.argmax(np.where(left, priority, -np.inf)))
        chosen.append(best)
        left[best] = False
        if tariff.varies:
            cost = tariff.following(~left[None])[0]
        shared[left] += adjusted_mutual_information(_pairs(codes, left, best, bins.n_bins))
    return pool[np.array(chosen, dtype=np.int64)]


def _pairs(codes: Array, columns: Mask, other: int, n_bins: int) -> Ints:
    """Return the joint counts of some columns with another one; rows with a missing value are ignored."""
    mine, codes = codes[:, [other]].astype(np.int64), codes[:, columns]
    K = codes.shape[1]
    known = (codes >= 0) & (mine >= 0)
    at = (np.arange(K) * n_bins + codes) * n_bins + mine
    return np.bincount(at[known], minlength=K * n_bins * n_bins).reshape(K, n_bins, n_bins)
