"""Links of FIRES without a closed-form marginal likelihood: the logit of a class and the logarithm of a rate.

With eta = x . theta ~ N(d, v) and l(eta) = log P(y | eta), the marginal P = E[exp l(eta)] has the derivatives::

    d log P / d d = E[l' | y],    2 d log P / d v = E[l'^2 + l'' | y]

under the posterior of eta given y, whose density is proportional to exp(l(eta)) N(eta; d, v). It is log-concave
with one mode. Gauss-Legendre quadrature is applied piecewise: the pieces end where the density has decreased by e^-30,
at the mode, and around the bend of the likelihood. A wide prior thus costs no accuracy; Gauss-Hermite quadrature would
miss the bend, and the steep side of a Poisson likelihood.
"""

from __future__ import annotations

import math

import numpy as np

from tamis._kernels import njit

GAUSSIAN, PROBIT, LOGIT, POISSON = 0, 1, 2, 3

_NODES, _WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(20))
_NODES += 0.5  # between 0 and 1
# Where both likelihoods bend; beyond, they are straight.
_BENDS = np.array([-32.0, -6.0, -2.0, 2.0, 6.0, 32.0])
_CERTAIN = 1e-16  # smaller variances have no effect, and the posterior is as narrow as rounding errors
_LARGEST = 1e30  # larger values have no finite slope: the row is rejected
_FAR = 1e12  # squared deviations between margin and bend beyond which rounding dominates
_HIGHEST = 150.0  # logarithm of the largest rate: its square is finite


@njit()
def _log_likelihood(y: float, eta: float, link: int) -> tuple[float, float, float]:
    """Return l, l' and l'' up to a constant."""
    if link == POISSON:
        eta = min(eta, _HIGHEST)
        rate = math.exp(eta)
        return y * eta - rate, y - rate, -rate
    m = y * eta
    small = math.exp(-abs(m))
    wrong = small / (1.0 + small) if m > 0.0 else 1.0 / (1.0 + small)  # 1 - P(y)
    return min(m, 0.0) - math.log1p(small), y * wrong, -wrong * (1.0 - wrong)


@njit()
def _mode(y: float, d: float, v: float, link: int) -> float:
    """Return the approximate mode of the posterior: Newton steps, and every third time a bisection."""
    low, high = d - v, d + v
    if link == POISSON:
        low, high = min(d, 0.0) - v, max(d, 0.0)
        if y > 0.0:
            low, high = min(d, math.log(y)), max(d, math.log(y))
    eta = min(max(d, low), high)
    for n in range(1000):
        _, slope, bend = _log_likelihood(y, eta, link)
        uphill, curve = slope - (eta - d) / v, 1.0 / v - bend
        if uphill > 0.0:
            low = eta
        else:
            high = eta
        step = uphill / curve
        if abs(step) * math.sqrt(curve) < 1e-3:
            break
        eta += step
        if n % 3 == 2 or not low < eta < high:
            eta = 0.5 * (low + high)
    return eta


@njit()
def _reach(y: float, d: float, v: float, link: int, mode: float, top: float, side: float) -> float:
    """Return the distance from the mode at which the posterior has decreased by e^-30, or slightly more."""
    _, _, bend = _log_likelihood(y, mode, link)
    near, far, reach = 0.0, math.inf, 8.0 / math.sqrt(1.0 / v - bend)
    for _ in range(100):
        eta = mode + side * reach
        value, _, _ = _log_likelihood(y, eta, link)
        drop = top - value + 0.5 * (eta - d) ** 2 / v
        if drop < 30.0:
            near = reach
        elif drop > 40.0:
            far = reach
        else:
            break
        reach = 2.0 * reach if far == math.inf else 0.5 * (near + far)
    return reach


@njit()
def expected_slopes(y: float, d: float, v: float, link: int) -> tuple[float, float]:
    """Return the derivative of log P with respect to d, and twice that with respect to v."""
    if not (v >= _CERTAIN and v < _LARGEST and d * d < _FAR * v):
        _, slope, bend = _log_likelihood(y, d, link)
        if not (abs(v) < _LARGEST and abs(d) < _LARGEST):
            return math.nan, math.nan
        return slope, slope * slope + bend
    mode = _mode(y, d, v, link)
    value, _, _ = _log_likelihood(y, mode, link)
    top = value - 0.5 * (mode - d) ** 2 / v
    start = mode - _reach(y, d, v, link, mode, top, -1.0)
    stop = mode + _reach(y, d, v, link, mode, top, 1.0)
    mass, first, second = 0.0, 0.0, 0.0
    bend = math.log(max(y, 1.0)) if link == POISSON else 0.0
    low = start
    while low < stop:
        high = min(stop, mode) if low < mode else stop
        for away in _BENDS:
            if low < bend + away < high:
                high = bend + away
                break
        for k in range(_NODES.shape[0]):
            eta = low + (high - low) * _NODES[k]
            value, slope, curve = _log_likelihood(y, eta, link)
            density = (high - low) * _WEIGHTS[k] * math.exp(value - 0.5 * (eta - d) ** 2 / v - top)
            mass += density
            first += density * slope
            second += density * (slope * slope + curve)
        low = high
    if mass > 0.0:
        return first / mass, second / mass
    _, slope, curve = _log_likelihood(y, mode, link)  # narrower than rounding errors
    return slope, slope * slope + curve
