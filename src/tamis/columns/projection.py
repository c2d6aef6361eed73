"""Projection of candidates: their residuals outside the span of the selected features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import Floats
from tamis.base.trace import COLLINEAR, CONSTANT, REJECTED

_WIDTH = 512  # columns whose z fits in the cache
_LOSSY = 1e-4  # residual, relative to |x|^2, below which the difference of two sums has lost digits
_CONSTANT = 1e-28  # residual of a centred constant column due to rounding, relative to |x|^2
_COLLINEAR = 1e-12  # residual relative to |x - mean|^2: an angle of 1e-6 to the span of the selected features


@dataclass(frozen=True)
class Evidence:
    """The tests of several candidates, shape (m,) each.

    Attributes
    ----------
    statistic : float64
        2 (log likelihood with the candidate - without it), or an equivalent statistic.
    log_p : float64
        Log of its p-value.
    status : int8
        REJECTED if it can be tested, else CONSTANT or COLLINEAR (see :mod:`tamis.base.trace`).
    """

    statistic: Floats
    log_p: Floats
    status: NDArray[np.int8]


@dataclass(frozen=True)
class GroupEvidence:
    """The test of columns that are added together.

    Attributes
    ----------
    statistic, log_p : float
        As in :class:`Evidence`, for all testable columns together; NaN if there are too many for the rows.
    status : ndarray of shape (m,), int8
        Status of each column, given the selected features and the columns before it.
    """

    statistic: float
    log_p: float
    status: NDArray[np.int8]


@dataclass(frozen=True)
class Proposal:
    """One candidate, tested exactly, and the data needed to accept it."""

    statistic: float
    log_p: float
    column: Floats  # new basis vector, of length 1
    fitted: Any  # the model with the candidate, in the form of the model that made the proposal


def project(
    X: Any, basis: Floats, residual: Floats, centred: bool
) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Return ``|z|^2``, z . residual and the status of each column, z being the part outside the span of the basis.

    Parameters
    ----------
    X : ndarray of shape (n_rows, m), float64, or CSC matrix
    basis : ndarray of shape (n_rows, k), float64
        Orthonormal columns; if `centred`, the first is the intercept's.
    residual : ndarray of shape (n_rows,), float64
        Orthogonal to the basis.
    centred : bool
        Whether there is an intercept.

    Returns
    -------
    zz, c : ndarray of shape (m,), float64
    status : ndarray of shape (m,), int8

    Examples
    --------
    >>> basis, residual = np.array([[1.0], [0.0], [0.0]]), np.array([0.0, 1.0, 0.0])
    >>> zz, c, status = project(np.array([[3.0, 2.0], [4.0, 0.0], [0.0, 0.0]]), basis, residual, False)
    >>> zz, c, status  # the second column is in the span
    (array([16.,  0.]), array([4., 0.]), array([0, 3], dtype=int8))
    """
    if sp.issparse(X):
        inside = np.asarray((X.T @ basis).T)
        c = np.asarray(X.T @ residual)
        xx = np.asarray(X.multiply(X).sum(axis=0)).ravel()
    else:
        inside = basis.T @ X
        c = residual @ X
        xx = np.einsum("ij,ij->j", X, X)
    zz: Floats = xx - np.einsum("ij,ij->j", inside, inside)
    status = np.full(len(xx), REJECTED, dtype=np.int8)
    lossy = np.flatnonzero(~(zz > _LOSSY * xx))
    if len(lossy):
        columns = X[:, lossy].toarray() if sp.issparse(X) else X[:, lossy]
        z, zz[lossy], status[lossy] = project_twice(columns, basis, centred)
        c[lossy] = residual @ z
    return zz, c, status


def residuals_outside(X: Floats, basis: Floats, centred: bool) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Return z, ``|z|^2`` and the status of each column, projected twice where the residual is small.

    Examples
    --------
    >>> z, zz, status = residuals_outside(np.array([[3.0, 2.0], [4.0, 0.0]]), np.array([[1.0], [0.0]]), False)
    >>> z.tolist(), zz, status  # the second column is in the span
    ([[0.0, 0.0], [4.0, 0.0]], array([16.,  0.]), array([0, 3], dtype=int8))
    """
    z = X - basis @ (basis.T @ X)
    zz: Floats = np.einsum("ij,ij->j", z, z)
    status = np.full(X.shape[1], REJECTED, dtype=np.int8)
    lossy = np.flatnonzero(~(zz > _LOSSY * np.einsum("ij,ij->j", X, X)))
    if len(lossy):
        z[:, lossy], zz[lossy], status[lossy] = project_twice(X[:, lossy], basis, centred)
    return z, zz, status


def evidence_outside(
    X: Floats,
    basis: Floats,
    residual: Floats,
    centred: bool,
    test: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]],
    model_log_p: Callable[[Floats], Floats],
) -> Evidence:
    """Return a test of each column of X that is never less strict than that of the model.

    Parameters
    ----------
    X : ndarray of shape (n_rows, m), float64
    basis : ndarray of shape (n_rows, k), float64
        Orthonormal, of the intercept and the selected features; if `centred`, the intercept's column is the first.
    residual : ndarray of shape (n_rows,), float64
    centred : bool
    test : callable
        Statistics and log p-values from z, ``|z|^2`` and ``c = z . residual`` of some columns.
    model_log_p : callable
        Log p-values under the model's own variance, from ``c^2 / |z|^2`` of shape (m,).

    Returns
    -------
    Evidence
        ``log_p`` is the larger of the two.
    """
    m = X.shape[1]
    drop, statistic, log_p, status = np.empty(m), np.empty(m), np.empty(m), np.empty(m, dtype=np.int8)
    for start in range(0, m, _WIDTH):
        part = slice(start, start + _WIDTH)
        z, zz, status[part] = residuals_outside(X[:, part], basis, centred)
        fit = status[part] == REJECTED
        zz, c = np.where(fit, zz, 1.0), np.where(fit, residual @ z, 0.0)
        statistic[part], log_p[part] = test(z, zz, c)
        drop[part] = c * c / zz
    return Evidence(statistic, np.maximum(log_p, model_log_p(drop)), status)


def project_twice(X: Floats, basis: Floats, centred: bool) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Return z, ``|z|^2`` and the status of each column, by projecting twice; X is unchanged."""
    xx = np.einsum("ij,ij->j", X, X)
    z, status = X, np.full(X.shape[1], REJECTED, dtype=np.int8)
    if centred:
        first = basis[:, :1]
        for _ in range(2):
            z = z - first * (first.T @ z)
        centred_xx = np.einsum("ij,ij->j", z, z)
        status[centred_xx <= _CONSTANT * xx] = CONSTANT
        xx = centred_xx
    status[xx == 0.0] = CONSTANT
    for _ in range(2):
        z = z - basis @ (basis.T @ z)
    zz: Floats = np.einsum("ij,ij->j", z, z)
    status[(zz <= _COLLINEAR * xx) & (status == REJECTED)] = COLLINEAR
    return z, zz, status


def smallest_p_value(evidence: Evidence, status: NDArray[np.int8]) -> GroupEvidence:
    """Return the test of a group by the smallest p-value of its columns, times their number (Bonferroni).

    Examples
    --------
    >>> evidence = Evidence(np.array([1.0, 9.0]), np.log([0.3, 0.01]), np.zeros(2, dtype=np.int8))
    >>> group = smallest_p_value(evidence, evidence.status)
    >>> group.statistic, round(float(np.exp(group.log_p)), 6)
    (9.0, 0.02)
    """
    best = int(np.argmin(evidence.log_p))
    log_p = min(float(evidence.log_p[best]) + float(np.log(len(evidence.log_p))), 0.0)
    return GroupEvidence(float(evidence.statistic[best]), log_p, status)


def independent_directions(X: Floats, basis: Floats, centred: bool) -> tuple[Floats, NDArray[np.int8]]:
    """Return an orthonormal basis of the part of X outside the span of a basis, and the status of each column.

    Examples
    --------
    >>> basis, X = np.array([[1.0], [0.0], [0.0]]), np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> independent_directions(X, basis, False)  # the second column is in the span of the first and the basis
    (array([[0., 0.],
           [1., 0.],
           [0., 1.]]), array([0, 3, 0], dtype=int8))
    """
    status = np.empty(X.shape[1], dtype=np.int8)
    k = basis.shape[1]
    for j in range(X.shape[1]):
        z, zz, status[j : j + 1] = project_twice(X[:, [j]], basis, centred)
        if status[j] == REJECTED:
            basis = np.column_stack([basis, z[:, 0] / np.sqrt(zz[0])])
    return basis[:, k:], status


def append_column(buffer: Floats, k: int, column: Floats) -> Floats:
    """Return a buffer whose first `k` columns are those of `buffer`, and the next is `column`.

    The columns after the k-th are unused, so a model that still refers to the first `k` is not affected.
    """
    if k == buffer.shape[1]:
        wider = np.zeros((buffer.shape[0], max(8, 2 * k)), order="F")
        wider[:, :k] = buffer
        buffer = wider
    buffer[:, k] = column
    return buffer
