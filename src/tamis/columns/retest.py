"""Tests of each selected feature given all the others, by which features that became redundant can be dropped.

With D the selected features (and the intercept) in the weights of the fit, and P = D (D'D)^-1::

    b = P'a,  |z_i|^2 = 1 / |P_i|^2,  c_i = b_i |z_i|^2                                        (1)

a is the target, or the linear predictor of a generalised linear model. b_i^2 / |P_i|^2 is the increase of the residual
sum of squares without feature i, which is tested in the same way as a candidate (a Wald test in a generalised linear
model).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tamis._validation import Floats
from tamis.columns.block_test import series_log_p
from tamis.columns.sandwich import robust_log_p


def retest(
    features: Floats,
    root: Floats,
    intercept: bool,
    aim: Floats,
    model_log_p: Callable[[Floats], Floats],
    sandwich: tuple[Floats, Floats, float] | None = None,
    series: Floats | None = None,
) -> Floats:
    """Return the log p-value of each feature given the others.

    Parameters
    ----------
    features : ndarray of shape (n_rows, q), float64
        Linearly independent.
    root : ndarray of shape (n_rows,), float64
        Square root of the weight that each row has in the fit.
    intercept : bool
    aim : ndarray of shape (n_rows,), float64
        Target, or linear predictor.
    model_log_p : callable
        Log p-values from ``b^2 / |P|^2`` of shape (q,), under the model's own variance.
    sandwich : tuple of residual, weight, df, optional
        For a robust test, see :func:`tamis.columns.sandwich.robust_log_p`.
    series : ndarray of shape (n_rows,), optional
        The target, if the robust test is that of :mod:`tamis.columns.block_test`.

    Returns
    -------
    ndarray of shape (q,), float64

    Examples
    --------
    The second feature is a proxy of the third:

    >>> from tamis.columns.tails import log_chi2_tail
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> X[:, 1] += X[:, 2]
    >>> y = X[:, 0] + X[:, 2] + rng.normal(size=100)
    >>> np.exp(retest(X, np.ones(100), True, y, log_chi2_tail)).round(3)  # the variance of the noise is 1
    array([0.   , 0.186, 0.   ])
    """
    centred = features - features.mean(axis=0) if intercept else features
    design = centred / np.abs(centred).max(axis=0)
    if intercept:
        design = np.column_stack([design, np.ones(len(design))])
    q, r = np.linalg.qr(design * root[:, None])
    P = (q @ np.linalg.inv(r).T)[:, : features.shape[1]]
    b, length = P.T @ (root * aim), np.einsum("ij,ij->j", P, P)
    own = model_log_p(b * b / length)
    if sandwich is None:
        return own
    residual, weight, df = sandwich
    if series is not None:
        return series_log_p(P / length, b, residual, q, own, series, weight)
    leverage = np.einsum("ij,ij->i", q, q)
    return np.maximum(robust_log_p(P / length, b, residual, leverage, weight, df), own)
