"""Heteroscedasticity-robust tests of a coefficient, valid even if few rows carry the evidence for the candidate.

MacKinnon, White (1985), Journal of Econometrics 29(3), HC2; Bell, McCaffrey (2002), Survey Methodology 28(2), and
Imbens, Kolesar (2016), Review of Economics and Statistics 98(4), its degrees of freedom. With z the part of the
candidate outside the span of the selected features, r the residual of the model without it, and the leverages h of the
model with it::

    c = z.r,  e = r - (c / |z|^2) z,  t^2 = c^2 / sum_i z_i^2 e_i^2 / (1 - h_i)                          (1)
    p_robust from Student's t with min(|z|^4 / sum_i z_i^4 - 1, n - q - 2) degrees of freedom          (2)
    p = max(p_robust, p_model), p_model from the variance of the model                                (3)

In a generalised linear model, z and r are those of the weighted least squares at the fit without the candidate.

(2): |z|^4 / sum z_i^4 is the effective number of rows behind the variance in (1): n / 3 for a normal column, about the
number of ones for a rare binary one. It is the limit of Bell and McCaffrey's degrees of freedom for homoscedastic noise
and n much larger than q. (3): if the rows are few and identical, for example five ones that all had an event, the
variance in (1) is 0, but that of the model is not. The robust test is never less strict than the model-based test.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats
from tamis.columns.block_test import series_log_p
from tamis.columns.projection import Evidence, evidence_outside
from tamis.columns.tails import log_t_tail

_LEAST = 1e-9  # lower bound on 1 - h_i, which is 0 if the model with the candidate fits row i for any noise


@njit()
def _sums(
    z: Floats, inverse: Floats, slope: Floats, residual: Floats, leverage: Floats, share: Floats
) -> tuple[Floats, Floats]:
    m = z.shape[1]
    meat, fourth = np.zeros(m), np.zeros(m)  # the sum in (1), and sum_i z_i^4
    for i in range(z.shape[0]):
        row, r, w = z[i], residual[i], share[i]
        unpulled = 1.0 - leverage[i] * w
        for j in range(m):
            square = row[j] * row[j]
            e = r - slope[j] * row[j]
            left = unpulled - square * inverse[j] * w
            left = left if left > _LEAST else _LEAST  # max() would not be vectorised
            meat[j] += square * e * e * w / left
            fourth[j] += square * square * w
    return meat, fourth


def robust_log_p(
    z: Floats, slope: Floats, residual: Floats, leverage: Floats, weight: Floats, df: float
) -> Floats:
    """Return the logarithms of (2) for features of the model; all shapes as in :func:`robust_evidence`.

    Parameters
    ----------
    z : ndarray of shape (n_rows, q), float64
        The part of each feature outside the span of the others.
    slope : ndarray of shape (q,), float64
        Coefficients.
    residual, leverage : ndarray of shape (n_rows,), float64
        Residual and leverages of the model with all features.
    weight : ndarray of shape (n_rows,), float64
    df : float

    Returns
    -------
    ndarray of shape (q,), float64
    """
    nothing, zz = np.zeros(z.shape[1]), np.einsum("ij,ij->j", z, z)
    share = np.divide(1.0, weight, out=np.zeros(len(weight)), where=weight > 0)
    meat, fourth = _sums(np.ascontiguousarray(z), nothing, nothing, residual, leverage, share)
    t2 = (slope * zz) ** 2 / np.maximum(meat, 1e-300)
    return log_t_tail(t2, np.clip(zz * zz / np.maximum(fourth, 1e-300) - 1.0, 1e-3, df))


def robust_evidence(
    X: Floats,
    basis: Floats,
    residual: Floats,
    weight: Floats,
    centred: bool,
    df: float,
    model_log_p: Callable[[Floats], Floats],
    light_tails: float = 0.0,
) -> Evidence:
    """Return the test of each column of X without assumptions about the variance of the rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, m), float64
    basis : ndarray of shape (n_rows, k), float64
        Orthonormal, of the intercept and the selected features; if `centred`, the intercept's column is the first.
    residual : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64
        Number of repetitions of each row; X, `basis` and `residual` are multiplied by the square root of it.
    centred : bool
    df : float
        n - q - 2, in [1, inf).
    model_log_p : callable
        Log p-values under the model's own variance, from ``c^2 / |z|^2`` of shape (m,).
    light_tails : float, default=0
        Kurtosis of z below which the p-value is that of the model: the t test is valid for any errors if z is normal.

    Returns
    -------
    Evidence
        ``statistic`` is t^2 of (1), ``log_p`` the logarithm of (3).

    Examples
    --------
    Two outlying rows without noise account for all the evidence for the column:

    >>> x, noise = np.zeros((20, 1)), np.tile([1.0, -1.0], 10)
    >>> x[:2, 0], noise[:2] = 1.0, [3.0, 3.0]
    >>> basis = np.full((20, 1), 20**-0.5)
    >>> evidence = robust_evidence(x, basis, noise - noise.mean(), np.ones(20), True, 18.0, lambda drop: -drop)
    >>> evidence.statistic.round(0), np.exp(evidence.log_p).round(2)
    (array([153.]), array([0.02]))
    """
    share = np.divide(1.0, weight, out=np.zeros(len(weight)), where=weight > 0)
    leverage = np.einsum("ij,ij->i", basis, basis)

    def test(z: Floats, zz: Floats, c: Floats) -> tuple[Floats, Floats]:
        meat, fourth = _sums(np.ascontiguousarray(z), 1.0 / zz, c / zz, residual, leverage, share)
        t2 = c * c / zz / np.maximum(meat / zz, 1e-300)  # (1)
        concentration = fourth / zz**2
        degrees = np.clip(1.0 / np.maximum(concentration, 1e-300) - 1.0, 1e-3, df)  # (2)
        is_light = float(weight.sum()) * concentration < light_tails
        return t2, np.where(is_light, -np.inf, log_t_tail(t2, degrees))

    return evidence_outside(X, basis, residual, centred, test, model_log_p)  # (3)


# -- Tests of each selected feature given all the others, by which features that became redundant can be dropped

# With D the selected features (and the intercept) in the weights of the fit, and P = D (D'D)^-1::
#
#     b = P'a,  |z_i|^2 = 1 / |P_i|^2,  c_i = b_i |z_i|^2                                        (1)
#
# a is the target, or the linear predictor of a generalised linear model. b_i^2 / |P_i|^2 is the increase of the
# residual sum of squares without feature i, which is tested in the same way as a candidate (a Wald test in a
# generalised linear model).


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
