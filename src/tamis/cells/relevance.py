"""Which columns say enough of the class to be worth a place in the network.

Liyanage, Zois, Chelmis (2021), Section 4.1: the adjusted mutual information of each column with the class, and a least
one that is halved until enough columns pass.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis.dependence.information import adjusted_mutual_information, mutual_information_ratio

__all__ = ["NothingTellsError", "relevance"]

Floats = NDArray[np.float64]


class NothingTellsError(ValueError):
    """No column tells anything about the class."""


def relevance(
    tables: Array, threshold: str | int, raw: Rows | None = None, y: Array | None = None
) -> tuple[Floats, float]:
    """Return the adjusted mutual information of each column with the class, and the least that is kept.

    Parameters
    ----------
    tables : ndarray of shape (n_features, n_bins, n_classes), int
    threshold : {"count", "half", "any"} or int
        What halving the threshold waits for: 15 columns, half of them if these are fewer, one, or so many.
    raw : rows, optional
        Score their distinct values instead.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        NaN where the bound is not above the threshold: expected information is the dear part, and not needed there.
    threshold : float
    """
    n = len(tables)
    if tables.shape[2] == 1:
        return np.zeros(n), 0.0  # one class: nothing to learn, nothing to buy
    least = 1.0 if threshold == "any" else 0.8
    rules = {"count": 15, "half": min(n // 2, 15), "any": 1}
    wanted = max(min(n, rules[threshold] if isinstance(threshold, str) else threshold), 1)
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
        if np.count_nonzero(scores > least) >= wanted:
            return scores, least
        if least < 1e-9:
            break
        least /= 2.0
    if not (scores > 0.0).any():
        raise NothingTellsError(
            "No column tells anything about the class: check the labels, or choose other bins."
        )
    return scores, 0.0


def _raw_scores(X: Rows, y: Array, columns: Array) -> Floats:
    """Return the adjusted mutual information of the distinct values of columns."""
    found = np.zeros(len(columns))
    y = np.asarray(y)
    n_classes = int(y.max()) + 1
    whole = sp.csc_array(X) if sp.issparse(X) else X
    tables: dict[int, list[tuple[int, Array]]] = {}  # by number of values, to be scored together
    for i, j in enumerate(columns):
        column = _column(whole, j)
        known = ~np.isnan(column)
        values, code = np.unique(column[known], return_inverse=True)
        at = code * n_classes + y[known]
        table = np.bincount(at, minlength=len(values) * n_classes).reshape(-1, n_classes)
        tables.setdefault(len(values), []).append((i, table))
    for same in tables.values():
        found[[i for i, _ in same]] = adjusted_mutual_information(np.stack([table for _, table in same]))
    return found


def _column(X: Rows, j: int) -> Array:
    """Return a column of dense rows, or of a CSC matrix."""
    if not sp.issparse(X):
        return np.asarray(X[:, j])
    found = np.zeros(X.shape[0])
    stored = slice(X.indptr[j], X.indptr[j + 1])
    np.add.at(found, X.indices[stored], X.data[stored])
    return found
