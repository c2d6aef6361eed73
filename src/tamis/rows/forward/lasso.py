"""Lasso from the scatter matrix: the weights of an L1-regularised linear model, without another pass over the rows.

With R the correlations of the features and r_c theirs with the indicator of class c (or the numeric target),
coordinate descent (Friedman et al. 2007, Annals of Applied Statistics 1(2)) minimises::

    w' R w / 2 - w' r_c + penalty |w|_1,     w_j <- soft(r_cj - sum_{i != j} R_ji w_i, penalty)      (1)
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats
from tamis.rows.forward.linear_model import inverse_root
from tamis.rows.forward.scatter import Scatter

_SWEEPS = 50  # at most
_PRECISION = 1e-3  # largest change of a weight in the last sweep


@njit()
def _descend(R: Array, r: Array, penalty: float, w: Array) -> None:
    """Minimise (1) for one target; writes `w`, and turns `r` into the residual correlations."""
    for _ in range(_SWEEPS):
        largest = 0.0
        for j in range(len(w)):
            if R[j, j] == 0.0:
                continue
            pull = r[j] + w[j]
            new = max(abs(pull) - penalty, 0.0) * np.sign(pull)
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for i in range(len(w)):
                    r[i] -= step * R[j, i]
                largest = max(largest, abs(step))
        if largest < _PRECISION:
            return


def lasso_scores(scatter: Scatter, n: int, penalty: float) -> tuple[Floats, Floats]:
    """Return the largest weight (1) of each feature over the targets, and its largest correlation with one.

    The `n` features come first in the matrix, then the targets; of two classes, one is sufficient.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> scatter = Scatter(4)
    >>> scatter.update(np.column_stack([X, X[:, 0] - X[:, 2]]), np.ones(500), 1.0)
    >>> lasso_scores(scatter, 3, 0.02)[0].round(1)
    array([0.7, 0. , 0.7])
    """
    one_over = inverse_root(np.diag(scatter.S))
    upper = np.triu(scatter.S[:n, :n], 1) * one_over[:n, None] * one_over[:n]
    R = np.ascontiguousarray(upper + upper.T)
    R[np.diag_indices(n)] = one_over[:n] > 0.0
    n_targets = len(one_over) - n
    of_target = (scatter.S[:n, n:] * one_over[:n, None] * one_over[n:]).T[
        : 1 if n_targets == 2 else n_targets
    ]
    weights, correlation = np.zeros((len(of_target), n)), np.abs(of_target).max(axis=0)
    for w, r in zip(weights, np.ascontiguousarray(of_target), strict=True):
        _descend(R, r, penalty, w)
    return np.abs(weights).max(axis=0), correlation
