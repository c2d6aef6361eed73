"""Logarithms of two-sided tail probabilities, valid far beyond the underflow of the probabilities."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tamis._validation import Floats

_SMALL = float(np.finfo(np.float64).tiny)  # smaller probabilities lose digits before they underflow


def log_t_tail(t_squared: Floats, df: float | Floats) -> Floats:
    """Return ``log P(|T| > t)`` of Student's t with `df` degrees of freedom.

    Parameters
    ----------
    t_squared : ndarray of shape (m,), float64
        t^2, in [0, inf].
    df : float or ndarray of shape (m,), float64
        In (0, inf).

    Returns
    -------
    ndarray of shape (m,), float64
        In [-inf, 0].

    Examples
    --------
    >>> np.exp(log_t_tail(np.array([0.0, 4.0]), 10.0)).round(6)
    array([1.      , 0.073388])
    >>> log_t_tail(np.array([1e8]), 100.0).round(3)  # the probability itself is 0 in float64
    array([-693.306])
    """
    p = 2.0 * special.stdtr(df, -np.sqrt(t_squared))
    with np.errstate(divide="ignore"):
        log_p: Floats = np.log(np.minimum(p, 1.0))
    degrees = np.broadcast_to(df, p.shape)
    for i in np.flatnonzero((p < _SMALL) & np.isfinite(t_squared)).tolist():
        log_p.flat[i] = _log_far_t_tail(float(t_squared.flat[i]), float(degrees.flat[i]))
    return log_p


def log_f_tail(f: float, k: int, df: float) -> float:
    """Return ``log P(F > f)`` of the F distribution with `k` and `df` degrees of freedom, for f in [0, inf].

    Examples
    --------
    >>> round(log_f_tail(4.0, 3, 20.0), 4), round(log_f_tail(1e6, 3, 200.0), 1)
    (-3.8132, -959.2)
    """
    if k == 1:
        return float(log_t_tail(np.array([f]), df)[0])
    if not math.isfinite(f):
        return -math.inf
    p = float(special.betainc(df / 2.0, k / 2.0, df / (df + k * f)))
    return math.log(p) if p >= _SMALL else _log_far_beta(df / 2.0, k / 2.0, math.log1p(k * f / df))


def log_chi2_tail(x: Floats, df: int = 1) -> Floats:
    """Return log P(X > x) of chi-square with `df` degrees of freedom, for x of shape (m,) in [0, inf].

    Examples
    --------
    >>> log_chi2_tail(np.array([3.841459, 1e4])).round(4).tolist()
    [-2.9957, -5004.8311]
    >>> log_chi2_tail(np.array([7.814728, 1e4]), 3).round(4).tolist()
    [-2.9957, -4995.6205]
    """
    if df == 1:
        return math.log(2.0) + special.log_ndtr(-np.sqrt(x))
    a, half = df / 2.0, x / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log(special.gammaincc(a, half))
        # The asymptotic series, whose remainder is below 1e-8 where the tail underflows.
        terms = [np.ones_like(half)]
        for i in range(1, 6):
            terms.append(terms[-1] * (a - i) / half)
        far = (a - 1.0) * np.log(half) - half - special.gammaln(a) + np.log(np.sum(terms, axis=0))
    return np.where(near > math.log(_SMALL), near, np.where(np.isposinf(x), -np.inf, far))


def _log_far_t_tail(t_squared: float, df: float) -> float:
    """Return the tail as an incomplete beta function I_x(df/2, 1/2), x = df / (df + t^2)."""
    return _log_far_beta(df / 2.0, 0.5, math.log1p(t_squared / df))


def _log_far_beta(a: float, b: float, minus_log_x: float) -> float:
    """Return the log of the incomplete beta function I_x(a, b), -log x > 0 given, by its continued fraction."""
    x = math.exp(-minus_log_x)
    log_rest = math.log(-math.expm1(-minus_log_x))
    front = -a * minus_log_x + b * log_rest - math.log(a) - float(special.betaln(a, b))
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))  # Lentz's method, as for any incomplete beta function
    c, fraction = 1.0, d
    for k in range(1, 10_000):
        even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / (1.0 + term * d)
            c = 1.0 + term / c
            step = d * c
            fraction *= step
        if abs(step - 1.0) < 1e-15:
            break
    return front + math.log(fraction)
