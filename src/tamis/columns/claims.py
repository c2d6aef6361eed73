"""Claims about clusters of correlated columns: at least one column of the cluster is relevant.

A test cannot distinguish between two nearly identical columns. A valid claim is therefore about a cluster: the selected
column and all columns whose correlation with it reaches a bound. It is false if every column of the cluster has a true
coefficient of 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Floats, as_rows, check_number
from tamis.base.columns import ColumnSelector
from tamis.errors import DataError

_WIDTH = 1024  # columns processed together


def claims(selector: ColumnSelector, X: Any, correlation: float = 0.5) -> dict[str, list[str]]:
    """Return, for each selected feature, a group of correlated columns of which at least one is claimed to be relevant.

    Parameters
    ----------
    selector : ColumnSelector
        Fitted on the columns of `X`, or offered these columns in their order.
    X : array-like, sparse matrix or frame of shape (n_rows, n_features)
    correlation : float, default=0.5
        Smallest absolute correlation of a column with the selected feature, in (0, 1].

    Returns
    -------
    dict of str to list of str
        By selected feature, in the order of `X`: the feature itself, and the columns that correlate with it.

    Raises
    ------
    DataError
        If the number of columns of `X` differs from the number offered.

    Examples
    --------
    The first column is a noisy copy of the third:

    >>> from tamis import AlphaInvesting
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> X[:, 0] = X[:, 2] + 0.3 * rng.normal(size=200)
    >>> selector = AlphaInvesting(target_fdr=0.1).fit(X, X[:, 2] + rng.normal(size=200))
    >>> claims(selector, X)
    {'x0': ['x0', 'x2']}
    """
    check_number("correlation", correlation, low=0, high=1, open_low=True)
    rows, names = as_rows(X)
    columns = rows.tocsc() if sp.issparse(rows) else rows
    if columns.shape[1] != selector.n_features_in_:
        raise DataError(
            f"X has {columns.shape[1]} columns, but {type(selector).__name__} was offered {selector.n_features_in_}:"
            " give the columns that were offered."
        )
    kept = np.flatnonzero(selector.get_support())
    labels = [f"x{j}" for j in range(columns.shape[1])] if names is None else list(names)
    chosen = _unit(columns[:, kept])
    near = np.concatenate(
        [np.abs(chosen.T @ _unit(columns[:, start : start + _WIDTH])) for start in range(0, columns.shape[1], _WIDTH)],
        axis=1,
    )  # fmt: skip
    near[np.arange(len(kept)), kept] = 1.0
    selected = selector.get_feature_names_out().tolist()
    for j, name in zip(kept, selected, strict=True):
        labels[j] = name
    return {
        name: [labels[j] for j in np.flatnonzero(row >= correlation)]
        for name, row in zip(selected, near, strict=True)
    }


def _unit(columns: Any) -> Floats:
    """Return the columns with mean 0 and length 1; constant columns and missing values become 0."""
    dense = np.asarray(columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64)
    largest = np.nanmax(np.abs(dense), axis=0, initial=0.0)
    dense = dense / np.where(largest > 0, largest, 1.0)  # squares neither overflow nor vanish
    centred = dense - np.nanmean(dense, axis=0)
    centred[np.isnan(centred)] = 0.0
    length = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    return centred / np.where(length > 0, length, 1.0)
