"""Removal of redundancy among the features with the best scores: forward selection by partial correlation.

A univariate screen selects a dozen copies of one signal. With `redundancy`, the features with the best scores are
candidates: first the one with the largest correlation with the class is selected, then the one with the largest
correlation with the residual (Efroymson 1960). It uses only the last 1000 rows, which cost their memory, and hardly any
time while rows are learned.

With R the correlations of the candidates, the ridge (1 + sqrt(m / n))^2 - 1 added to its diagonal, b_c their
covariances with the indicator of class c over sqrt(p_c), v_j and r_c the residuals of R_jj and b_c given the selected
features::

    gain_j = sum_c r_cj^2 / v_j                                                      (1)
    l = (R_i - sum_h L_h L_hi) / sqrt(v_i);   r_c <- r_c - l r_ci / sqrt(v_i);   v <- v - l^2     (2)

Other scores are discounted: the next feature is that with the largest

    score_j min_i (1 - R_ij^2), i over the selected features; a negative score is unchanged           (3)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._shapes import Shapes, SizedState, state_error
from tamis._validation import Array, Floats, Rows
from tamis.summaries.batch import n_bytes

_KEPT = 1000


class LastRows(SizedState):
    """The last rows and their class codes, independent of batches and of the parts of a stream.

    Parameters
    ----------
    size : int, default=1000
        Number of rows.

    Examples
    --------
    >>> rows = LastRows()
    >>> rows.add(np.eye(2), np.array([0, 1]))
    >>> rows.columns(np.array([1]))[0].ravel()
    array([0., 1.])
    """

    _state_spec = Shapes("size in [1, 2**62)  blocks[][0] (N, j) fill 0  blocks[][1] (N) int64 in [0, 2**31)")

    def check_state(self) -> None:
        """Raise if the number of rows of a loaded object is wrong.

        Raises
        ------
        StateError
            If so.
        """
        if sum(len(codes) for _, codes in self.blocks) != self.n_rows:
            raise state_error(f"LastRows does not contain {self.n_rows} rows")

    def __init__(self, size: int = _KEPT) -> None:
        self.size = size
        self.blocks: tuple[tuple[Rows, Array], ...] = ()
        self.n_rows = 0

    def add(self, X: Rows, codes: Array) -> None:
        """Store a copy of a batch, and drop rows that are too old."""
        X, codes = X[-self.size :].copy(), codes[-self.size :].copy()
        blocks, self.n_rows = (*self.blocks, (X, codes)), self.n_rows + len(codes)
        while self.n_rows - len(blocks[0][1]) >= self.size:
            self.n_rows -= len(blocks[0][1])
            blocks = blocks[1:]
        self.blocks = blocks

    def merged(self, other: LastRows, codes: Array, *, first: bool) -> LastRows:
        """Return the last rows of both; those of the other, whose class c is `codes[c]` here, come first or last."""
        theirs = [(X, codes[y]) for X, y in other.blocks]
        rows = LastRows(self.size)
        for X, y in [*theirs, *self.blocks] if first else [*self.blocks, *theirs]:
            rows.add(X, y)
        return rows

    def columns(self, which: Array) -> tuple[Floats, Array]:
        """Return some columns of the rows, dense, and the codes."""
        parts = []
        for X, _ in self.blocks:
            if sp.issparse(X):
                parts.append(X[:, which].toarray())
            else:
                parts.append(X.take(which, axis=1))
        codes = np.concatenate([y for _, y in self.blocks])
        return np.concatenate(parts).astype(np.float64)[-self.size :], codes[-self.size :]

    nbytes = property(n_bytes)


def by_addition(X: Floats, codes: Array, n_selected: int) -> list[int]:
    """Return the columns in the order of their gains (1); then those without gain, in their order.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), float64
        NaN counts as the mean of its column.
    codes : ndarray of shape (n_rows,), int64
    n_selected : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signals = rng.normal(size=(500, 2))
    >>> X = signals[:, [0, 0, 0, 1]] + 0.1 * rng.normal(size=(500, 4))
    >>> sorted(by_addition(X, (2 * signals[:, 0] + signals[:, 1] > 0).astype(int), 2))[1]
    3
    """
    (n, m), classes = X.shape, np.unique(codes)
    Z = _standardise(X)
    Y = (codes[:, None] == classes).astype(np.float64)
    share = Y.mean(axis=0)
    r = Z.T @ (Y - share) / n / np.sqrt(share)
    ridge = (1.0 + np.sqrt(m / n)) ** 2 - 1.0
    v, L, order = np.full(m, 1.0 + ridge), np.zeros((m, 0)), list[int]()
    free = np.ones(m, dtype=bool)
    while len(order) < n_selected:
        gain: Any = np.where(free, (r**2).sum(axis=1) / v, -1.0)
        i = int(gain.argmax())
        if gain[i] <= 0.0:
            break
        order.append(i)
        free[i] = False
        row = Z.T @ Z[:, i] / n
        row[i] += ridge
        column = (row - L @ L[i]) / np.sqrt(v[i])  # (2)
        r = r - np.outer(column, r[i] / np.sqrt(v[i]))
        v = np.maximum(v - column**2, ridge)
        L = np.column_stack([L, column])
    return [*order, *np.flatnonzero(free)[: n_selected - len(order)].tolist()]


def by_discount(scores: Floats, X: Floats, n_selected: int) -> list[int]:
    """Return the columns in the order of their discounted scores (3).

    Parameters
    ----------
    scores : ndarray of shape (n_columns,), float64
    X : ndarray of shape (n_rows, n_columns), float64
        Finite; at least one row.
    n_selected : int

    Examples
    --------
    The second column is a copy of the first one, and as relevant; the third is less relevant, but not redundant:

    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    >>> by_discount(np.array([1.0, 0.9, 0.5, 0.0]), X, 2)
    [0, 2]
    """
    Z = np.ascontiguousarray(X.T)
    Z -= Z.mean(axis=1)[:, None]
    length = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    Z *= np.divide(1.0, length, out=np.zeros(len(length)), where=length > 0.0)[:, None]
    free, order = np.ones(len(scores)), list[int]()
    for _ in range(n_selected):
        worth = np.where(scores > 0.0, scores * free, scores)
        worth[order] = -np.inf
        order.append(int(worth.argmax()))
        correlation = Z @ Z[order[-1]]
        free = np.minimum(free, np.maximum(1.0 - correlation**2, 0.0))
    return order


def _standardise(X: Floats) -> Floats:
    """Return the columns with mean 0 and standard deviation 1; 0 for missing values and constant columns."""
    there = ~np.isnan(X)
    count = np.maximum(there.sum(axis=0), 1)
    top = np.abs(np.where(there, X, 0.0)).max(axis=0, initial=0.0)
    unit = np.where(top > 0.0, top, 1.0)  # prevents overflow of squares
    Z = np.where(there, X / unit, 0.0)
    Z = np.where(there, Z - Z.sum(axis=0) / count, 0.0)
    deviation = np.sqrt((Z**2).sum(axis=0) / len(Z))
    return np.divide(Z, deviation, out=np.zeros_like(Z), where=deviation > 1e-9)
