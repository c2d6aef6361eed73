"""Selection of the columns of the network by their relevance to the class.

Liyanage, Zois, Chelmis (2021), Section 4.1: the adjusted mutual information of each column with the class, and a
threshold that is halved until enough columns pass. If no column is relevant, it is halved until irrelevant columns
pass. Alternatively, the information I of a column must be significant. With N rows, df = (values - 1) (classes - 1) of
its table, and E[I] the exact expectation of I over all permutations of the labels::

    p = P(chi2_df > df I / E[I])                                                                     (1)

which is the likelihood ratio test with a Bartlett correction (Bartlett 1937), because 2 N E[I] = df holds only
asymptotically. At most 100 discoveries of the Benjamini-Hochberg procedure at a false discovery rate of 0.1 are kept.

Their order (`mrmr`) has minimum redundancy and maximum relevance: relevant to the class, not redundant with earlier
columns. Peng, Long, Ding: Feature Selection Based on Mutual Information, IEEE TPAMI 27(8), 2005, equation (7)::

    next column = argmax_j  [ I(x_j; c) - mean over chosen k of I(x_j; x_k) ] / price_j                  (2)

Deviations, each with its reason: information is adjusted for chance, otherwise columns with many values rank first; a
negative difference is multiplied by the price rather than divided, so that a high price is never an advantage.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.special
import scipy.stats

from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis.base.prices import Tariff
from tamis.cells.bins import Bins, dense
from tamis.dependence.information import (
    adjusted_mutual_information,
    expected_mutual_information,
    mutual_information,
    mutual_information_ratio,
)

_RATE = 0.1  # false discovery rate
_MOST = 100  # largest number of columns that pass
_HOPELESS = 0.2  # p-value of the uncorrected test above which the correction is skipped


class NoRelevantColumnError(ValueError):
    """No column is relevant to the class."""


def relevance(
    tables: Array, threshold: str | int, raw: Rows | None = None, y: Array | None = None
) -> tuple[Floats, float]:
    """Return the adjusted mutual information of each column with the class, and the threshold.

    Parameters
    ----------
    tables : ndarray of shape (n_features, n_bins, n_classes), int
    threshold : {"chance", "count", "half", "any"} or int
        Significance by (1); or the number of columns at which halving the threshold stops: 15, half of the columns if
        that is fewer, one, or the given number.
    raw : rows, optional
        Rows whose distinct values are scored instead.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        NaN if the bound is not above the threshold, or the column is not significant: the expected information, which
        dominates the computation time, is then skipped.
    threshold : float
    """
    n = len(tables)
    if tables.shape[2] == 1:
        return np.zeros(n), 0.0  # one class: nothing to learn or acquire
    if threshold == "chance":
        return _relevance_beyond_chance(tables)
    least = 1.0 if threshold == "any" else 0.8
    rules = {"count": 15, "half": min(n // 2, 15), "any": 1}
    n_wanted = max(min(n, rules[threshold] if isinstance(threshold, str) else threshold), 1)
    bound = mutual_information_ratio(tables) if raw is None else np.ones(n)
    scores = np.full(n, np.nan)
    while True:
        due = np.flatnonzero((bound > least) & np.isnan(scores))
        if len(due):
            scores[due] = (
                adjusted_mutual_information(tables[due])
                if raw is None or y is None
                else _raw_scores(raw, y, due)
            )
        if np.count_nonzero(scores > least) >= n_wanted:
            return scores, least
        if least < 1e-9:
            break
        least /= 2.0
    if not (scores > 0.0).any():
        raise NoRelevantColumnError(
            "No column is relevant to the class: check the labels, or choose other bins."
        )
    return scores, 0.0


def _relevance_beyond_chance(tables: Array) -> tuple[Floats, float]:
    """Return the scores of the columns that pass (1), NaN for the others, and the threshold."""
    passed = np.flatnonzero(is_beyond_chance(tables))
    scores = np.full(len(tables), np.nan)
    scores[passed] = adjusted_mutual_information(tables[passed])
    if len(passed) <= _MOST:
        return scores, 0.0
    return scores, float(np.partition(scores[passed], -_MOST - 1)[-_MOST - 1])


def is_beyond_chance(tables: Array) -> Mask:
    """Return which columns are relevant to the class, at a false discovery rate of 0.1."""
    return benjamini_hochberg(chance_p_values(tables), _RATE)


def chance_p_values(tables: Array) -> Floats:
    """Return (1) of each table: the probability of at least as much information under permuted labels.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, n_values, n_classes), int

    Returns
    -------
    ndarray of shape (n_tables,)
        1 for constant columns, and where the uncorrected p-value is above 0.2.

    Examples
    --------
    >>> chance_p_values(np.array([[[9, 1], [1, 9]], [[6, 4], [4, 6]]])).round(4)
    array([2.e-04, 1.e+00])
    """
    of_value, of_class = tables.sum(axis=2), tables.sum(axis=1)
    df = np.maximum((of_value > 0).sum(axis=1) - 1, 0) * np.maximum((of_class > 0).sum(axis=1) - 1, 0)
    information, rows = mutual_information(tables), of_class.sum(axis=1)
    p_values = np.ones(len(tables))
    due = np.flatnonzero(df > 0)
    due = due[scipy.stats.chi2.sf(2.0 * rows[due] * information[due], df[due]) < _HOPELESS]
    for j in due:
        expected = expected_mutual_information(np.sort(of_value[j]), np.sort(of_class[j]))
        p_values[j] = scipy.special.chdtrc(df[j], df[j] * information[j] / expected)  # (1)
    return p_values


def benjamini_hochberg(p: Floats, rate: float) -> Mask:
    """Return which tests are discoveries at a false discovery rate.

    Benjamini, Hochberg: Controlling the False Discovery Rate, JRSS B 57(1), 1995.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.9]), 0.06)
    array([ True,  True,  True, False])
    """
    ranked = np.sort(p)
    passed = np.flatnonzero(ranked <= rate * np.arange(1, len(p) + 1) / len(p))
    return p <= (ranked[passed[-1]] if len(passed) else -1.0)


def _raw_scores(X: Rows, y: Array, columns: Array) -> Floats:
    """Return the adjusted mutual information of the distinct values of columns."""
    scores = np.zeros(len(columns))
    y = np.asarray(y)
    n_classes = int(y.max()) + 1
    whole = sp.csc_array(X) if sp.issparse(X) else X
    tables: dict[int, list[tuple[int, Array]]] = {}  # by number of values, scored together
    for i, j in enumerate(columns):
        column = dense(whole[:, [j]])[:, 0]
        known = ~np.isnan(column)
        values, code = np.unique(column[known], return_inverse=True)
        at = code * n_classes + y[known]
        table = np.bincount(at, minlength=len(values) * n_classes).reshape(-1, n_classes)
        tables.setdefault(len(values), []).append((i, table))
    for same in tables.values():
        scores[[i for i, _ in same]] = adjusted_mutual_information(np.stack([table for _, table in same]))
    return scores


# -- order -------------------------------------------------------------------------------------------------


_POOL = 200  # number of most relevant columns that are compared with each other


def mrmr(X: Rows, y: Array, bins: Bins, tables: Array, price: Tariff, n_columns: int) -> Ints:
    """Return at most `n_columns` columns in the order of (2); constant columns are omitted.

    Parameters
    ----------
    X : rows of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,), int
    bins : Bins
        Bins of every column.
    tables : ndarray of shape (n_features, n_bins, n_classes), int
        Counts of the bins.
    price : Tariff
    n_columns : int
    """
    vary = np.count_nonzero(tables.sum(axis=2), axis=1) > 1
    relevance = np.where(vary, adjusted_mutual_information(tables), -np.inf)
    pool = np.argsort(-relevance, kind="stable")[: min(_POOL, int(vary.sum()))]
    codes = bins.take(pool).codes(dense(X[:, pool]))
    tariff = price.take(pool)
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
