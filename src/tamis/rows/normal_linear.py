"""The base models of FIRES: linear models whose parameters are independent normal random variables.

Equations (1) to (5) are those of :mod:`tamis.rows.fires`. One step of one model: the margins d and variances q of
the rows, their slopes a, b and curvatures h, the gradients g1 = sum a z and g2 = sum b z^2 (or h z^2) over the rows,
and the move of mu and sigma. z = (x - centre) * inverse is never stored: `inverse` is folded into the parameters,
`centre` is subtracted on the way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows
from tamis._jit import njit
from tamis.summaries.moments import add_deviations

__all__ = ["NormalLinear"]


@njit()
def _mills(m: float) -> float:
    """Return phi(m) / Phi(m) for any m."""
    if m > -8.0:
        return math.exp(-0.5 * m * m) * 0.3989422804014327 / (0.5 * math.erfc(-m * 0.7071067811865476))
    fraction = -m  # Laplace's continued fraction
    for k in range(25, 0, -1):
        fraction = -m + k / fraction
    return fraction


@njit()
def _slopes(y: float, d: float, v: float, probit: bool) -> tuple[float, float, float]:
    """Return a, b and h of one row."""
    if probit:
        rho = math.sqrt(v)
        m = y * d / rho
        r = _mills(m)
        a = r * y / rho  # (2)
        return a, -a * d / v, r * (r + m) / v  # (3), (4)
    a = (y - d) / v  # (5)
    return a, a * a - 1.0 / v, 1.0 / v


@njit()
def _margins(X: Array, i: int, centre: Array, theta: Array, var: Array, d: Array, q: Array) -> None:
    """d, q of the four rows from i on (the last row stands in for missing ones): one pass over theta and var."""
    last = X.shape[0] - 1
    x0, x1, x2, x3 = X[i], X[min(i + 1, last)], X[min(i + 2, last)], X[min(i + 3, last)]
    d0, d1, d2, d3, q0, q1, q2, q3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(X.shape[1]):
        c, t, v = centre[j], theta[j], var[j]
        z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
        d0 += z0 * t
        d1 += z1 * t
        d2 += z2 * t
        d3 += z3 * t
        q0 += z0 * z0 * v
        q1 += z1 * z1 * v
        q2 += z2 * z2 * v
        q3 += z3 * z3 * v
    d[0], d[1], d[2], d[3] = d0, d1, d2, d3
    q[0], q[1], q[2], q[3] = q0, q1, q2, q3


@njit()
def _pull(X: Array, i: int, centre: Array, a: Array, b: Array, g1: Array, g2: Array) -> None:
    """g1 += sum a z, g2 += sum b z^2 over the four rows from i on: one pass over g1 and g2."""
    last = X.shape[0] - 1
    x0, x1, x2, x3 = X[i], X[min(i + 1, last)], X[min(i + 2, last)], X[min(i + 3, last)]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for j in range(X.shape[1]):
        c = centre[j]
        z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
        g1[j] += a0 * z0 + a1 * z1 + a2 * z2 + a3 * z3
        g2[j] += b0 * z0 * z0 + b1 * z1 * z1 + b2 * z2 * z2 + b3 * z3 * z3


@njit()
def _targets(codes: Array, k: int, balance: Array, sample_weight: Array, y: Array, w: Array) -> float:
    """Fill in y: +-1 for class k against the rest (k < 0: the target itself), and the weights w of the rows."""
    total = 0.0
    for i in range(codes.shape[0]):
        inside = codes[i] == k
        given = sample_weight[i] if sample_weight.shape[0] else 1.0
        y[i] = codes[i] if k < 0 else (1.0 if inside else -1.0)
        w[i] = given * (balance[1] if inside else balance[0])
        total += given
    return total


@njit()
def _gradients(
    X: Array, y: Array, w: Array, probit: bool, noise: float, newton: bool,
    bias: Array, centre: Array, theta: Array, var: Array, g1: Array, g2: Array, curve: Array,
    given: Array, s1: Array, s2: Array,
) -> tuple[float, float]:  # fmt: skip
    """Sum a z and b z^2 (or h z^2) over the rows into g1, g2; return the sums of a and b (or h).

    While the rows are at hand, their moments are summed into s1, s2 (unless those are empty).
    """
    n = X.shape[0]
    d, q, a, b, u = np.empty(4), np.empty(4), np.empty(4), np.empty(4), np.empty(4)
    rows = np.empty(4, np.int64)
    sum_a, sum_b = 0.0, 0.0
    for i in range(0, n, 4):
        _margins(X, i, centre, theta, var, d, q)
        a[:], b[:], u[:] = 0.0, 0.0, 0.0
        for r in range(min(4, n - i)):
            u[r] = given[i + r] if given.shape[0] else 1.0
            slope, bend, h = _slopes(y[i + r], bias[0] + d[r], noise + bias[1] + q[r], probit)
            a[r], b[r], curve[i + r] = w[i + r] * slope, w[i + r] * (h if newton else bend), w[i + r] * h
            sum_a += a[r]
            sum_b += b[r] + q[r] * 0.0  # NaN if the variance of a row is not finite
        _pull(X, i, centre, a, b, g1, g2)
        if s1.shape[0]:
            for r in range(4):
                rows[r] = min(i + r, n - 1)
            add_deviations(X, rows, u, centre, s1, s2)
    return sum_a, sum_b


@njit()
def _gradients_csr(
    data: Array, indices: Array, indptr: Array, y: Array, w: Array, probit: bool, noise: float, newton: bool,
    bias: Array, centre: Array, theta: Array, var: Array, g1: Array, g2: Array, curve: Array,
) -> tuple[float, float]:  # fmt: skip
    """As `_gradients`: rows of zeros first, which only centring moves, then what the stored values change."""
    zero_d, zero_q = bias[0], noise + bias[1]
    for j in range(centre.shape[0]):
        zero_d -= centre[j] * theta[j]
        zero_q += centre[j] * centre[j] * var[j]
    sum_a, sum_b = 0.0, 0.0
    for i in range(indptr.shape[0] - 1):
        d, q = zero_d, zero_q
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            d += x * theta[j]
            q += x * (x - 2.0 * centre[j]) * var[j]
        slope, bend, h = _slopes(y[i], d, q, probit)
        a, b, curve[i] = w[i] * slope, w[i] * (h if newton else bend), w[i] * h
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            g1[j] += a * x
            g2[j] += b * x * (x - 2.0 * centre[j])
        sum_a += a
        sum_b += b + q * 0.0  # NaN if the variance of a row is not finite
    for j in range(centre.shape[0]):
        g1[j] -= sum_a * centre[j]
        g2[j] += sum_b * centre[j] * centre[j]
    return sum_a, sum_b


@njit()
def _ascend(
    g1: Array, g2: Array, rate: float, keep: float, prior: float, inverse: Array, mu: Array, sigma: Array
) -> None:
    """Let old evidence fade, then take one step along the gradients (2) and (3)."""
    for j in range(mu.shape[0]):
        s = inverse[j]
        deviation = prior + keep * (sigma[j] - prior)
        mu[j] = keep * mu[j] + rate * s * g1[j]
        sigma[j] = max(deviation + rate * deviation * s * s * g2[j], 0.0)


@njit()
def _direction(
    g1: Array, g2: Array, keep: float, prior: float, inverse: Array, sigma: Array, v: Array, step: Array
) -> tuple[float, float]:
    """Newton's step for each parameter on its own; return its slope and the curvature the prior gives it."""
    slope, bend = 0.0, 0.0
    for j in range(sigma.shape[0]):
        s = inverse[j]
        v[j] = min(sigma[j] * sigma[j] / keep, prior * prior)
        step[j] = v[j] / (1.0 + v[j] * s * s * g2[j]) * s * g1[j]
        slope += s * g1[j] * step[j]
        bend += step[j] * step[j] / v[j] if v[j] > 0.0 else 0.0
    return slope, bend


@njit()
def _bend(X: Array, curve: Array, centre: Array, theta: Array) -> float:
    """Curvature (4) along a step of all parameters at once: features that move together bend more."""
    d, q, none = np.empty(4), np.empty(4), np.zeros(theta.shape[0])
    bend = 0.0
    for i in range(0, X.shape[0], 4):
        _margins(X, i, centre, theta, none, d, q)
        for r in range(min(4, X.shape[0] - i)):
            bend += curve[i + r] * d[r] * d[r]
    return bend


@njit()
def _bend_csr(data: Array, indices: Array, indptr: Array, curve: Array, centre: Array, theta: Array) -> float:
    bend, zero = 0.0, -(centre * theta).sum()
    for i in range(curve.shape[0]):
        d = zero
        for at in range(indptr[i], indptr[i + 1]):
            d += data[at] * theta[indices[at]]
        bend += curve[i] * d * d
    return bend


@njit()
def _assume(
    g2: Array, damping: float, keep: float, inverse: Array, v: Array, step: Array, mu: Array, sigma: Array
) -> None:
    """Take the damped step; precision grows by as much of the curvature (4) as was used."""
    for j in range(mu.shape[0]):
        mu[j] = keep * mu[j] + damping * step[j]
        sigma[j] = math.sqrt(v[j] / (1.0 + damping * v[j] * inverse[j] * inverse[j] * g2[j]))


@njit()
def _finite(g1: Array, g2: Array) -> bool:
    total = 0.0
    for j in range(g1.shape[0]):
        total += g1[j] * 0.0 + g2[j] * 0.0
    return total == 0.0


@njit()
def _shift_bias(bias: Array, sum_a: float, sum_b: float, rate: float, newton: bool) -> None:
    """Move the intercept, a parameter whose feature is always 1."""
    if newton:
        bias[1] = bias[1] / (1.0 + bias[1] * sum_b)
        bias[0] += bias[1] * sum_a
    else:
        bias[0] += rate * sum_a
        bias[1] = (math.sqrt(bias[1]) * max(1.0 + rate * sum_b, 0.0)) ** 2


@njit()
def _fold(
    keep: float, prior: float, inverse: Array, mu: Array, sigma: Array, theta: Array, var: Array
) -> None:
    """The parameters per unit of x instead of per standard deviation, after fading."""
    for j in range(mu.shape[0]):
        deviation = (prior + keep * (sigma[j] - prior)) * inverse[j]
        theta[j] = keep * mu[j] * inverse[j]
        var[j] = deviation * deviation


@njit()
def _step(
    X: Array, codes: Array, k: int, balance: Array, sample_weight: Array, probit: bool, noise: float, newton: bool,
    intercept: bool, rate: float, keep: float, prior: float, centre: Array, inverse: Array,
    mu: Array, sigma: Array, bias: Array, s1: Array, s2: Array,
) -> bool:  # fmt: skip
    """One step of one model on a dense batch; False, and nothing changed, if a sum is not finite.

    The rows' deviations from the centre are summed into s1 and s2, unless those are empty.
    """
    n, J = X.shape
    y, w, curve = np.empty(n), np.empty(n), np.empty(n)
    theta, var, g1, g2 = np.empty(J), np.empty(J), np.zeros(J), np.zeros(J)
    total = _targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    _fold(keep, prior, inverse, mu, sigma, theta, var)
    sum_a, sum_b = _gradients(
        X, y, w, probit, noise, newton, bias, centre, theta, var, g1, g2, curve, sample_weight, s1, s2
    )
    if not (np.isfinite(sum_b) and _finite(g1, g2) and _finite(s1, s2)):
        return False
    if newton:
        v, step = np.empty(J), np.empty(J)
        slope, bend = _direction(g1, g2, keep, prior, inverse, sigma, v, step)
        bend += _bend(X, curve, centre, step * inverse)
        _assume(g2, min(1.0, slope / bend) if bend > 0.0 else 0.0, keep, inverse, v, step, mu, sigma)
    else:
        _ascend(g1, g2, rate / total, keep, prior, inverse, mu, sigma)
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, newton)
    return True


@njit()
def _step_csr(
    data: Array, indices: Array, indptr: Array, codes: Array, k: int, balance: Array, sample_weight: Array,
    probit: bool, noise: float, newton: bool, intercept: bool, rate: float, keep: float, prior: float,
    centre: Array, inverse: Array, mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """As `_step` on CSR rows: O(stored values), and O(J) once a batch."""
    n, J = codes.shape[0], mu.shape[0]
    y, w, curve = np.empty(n), np.empty(n), np.empty(n)
    theta, var, g1, g2 = np.empty(J), np.empty(J), np.zeros(J), np.zeros(J)
    total = _targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    _fold(keep, prior, inverse, mu, sigma, theta, var)
    sum_a, sum_b = _gradients_csr(
        data, indices, indptr, y, w, probit, noise, newton, bias, centre, theta, var, g1, g2, curve
    )
    if not (np.isfinite(sum_b) and _finite(g1, g2)):
        return False
    if newton:
        v, step = np.empty(J), np.empty(J)
        slope, bend = _direction(g1, g2, keep, prior, inverse, sigma, v, step)
        bend += _bend_csr(data, indices, indptr, curve, centre, step * inverse)
        _assume(g2, min(1.0, slope / bend) if bend > 0.0 else 0.0, keep, inverse, v, step, mu, sigma)
    else:
        _ascend(g1, g2, rate / total, keep, prior, inverse, mu, sigma)
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, newton)
    return True


@njit()
def _step_stored(
    data: Array, indices: Array, indptr: Array, codes: Array, k: int, balance: Array, sample_weight: Array,
    probit: bool, noise: float, intercept: bool, rate: float, mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """As `_step_csr` where zeros pull at nothing (no centring, no fading): O(stored values) altogether."""
    n, J = codes.shape[0], mu.shape[0]
    y, w, g1, g2 = np.empty(n), np.empty(n), np.empty(J), np.empty(J)
    total = _targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    for j in indices:
        g1[j], g2[j] = 0.0, 0.0
    sum_a, sum_b = 0.0, 0.0
    for i in range(n):
        d, q = bias[0], noise + bias[1]
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            d += x * mu[j]
            q += (x * sigma[j]) ** 2
        slope, bend, _ = _slopes(y[i], d, q, probit)
        a, b = w[i] * slope, w[i] * bend
        sum_a += a
        sum_b += b + q * 0.0
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            g1[j] += a * x
            g2[j] += b * x * x
    check = sum_b * 0.0
    for j in indices:
        check += g1[j] * 0.0 + g2[j] * 0.0
    if check != 0.0:
        return False
    for j in indices:
        mu[j] += rate / total * g1[j]
        sigma[j] = max(sigma[j] + rate / total * sigma[j] * g2[j], 0.0)
        g1[j], g2[j] = 0.0, 0.0  # a feature stored in several rows moves once
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, False)
    return True


@njit()
def _blend(share: float, mu: Array, average: Array) -> None:
    """Move the running average towards mu."""
    for k in range(mu.shape[0]):
        for j in range(mu.shape[1]):
            average[k, j] += share * (mu[k, j] - average[k, j])


class NormalLinear:
    """State of K linear models over J features: one for two classes or a regression, else one per class.

    Parameters
    ----------
    n_features : int
    prior : float
        Standard deviation of each parameter before anything is seen.
    intercept, averaged : bool
        Whether there is an intercept; whether the running average of `mu` is kept.

    Attributes
    ----------
    mu, sigma : ndarray of shape (n_models, n_features), float64
        Mean and standard deviation of each parameter, per standard deviation of its feature if that is scaled.
    average : ndarray of shape (n_models, n_features), float64
        Running average of `mu` over the rows; `mu` itself if it is not averaged.
    bias : ndarray of shape (n_models, 2), float64
        Mean and variance of the intercept.
    """

    def __init__(self, n_features: int, prior: float, intercept: bool, averaged: bool) -> None:
        self.prior = prior
        self.intercept = intercept
        self.mu = np.zeros((1, n_features))
        self.sigma = np.full((1, n_features), prior)
        self.bias = self._new_bias(1)
        self.averaged = averaged
        self.evidence = 0.0  # faded number of rows behind the average
        self._average = np.zeros((1 if averaged else 0, n_features))

    @property
    def average(self) -> NDArray[np.float64]:
        """Running average of mu, or mu itself."""
        return self._average if self.averaged else self.mu

    def _new_bias(self, n_models: int) -> NDArray[np.float64]:
        return np.tile([0.0, self.prior**2 if self.intercept else 0.0], (n_models, 1))

    def grow(self, n_models: int) -> None:
        """Give every class its model; the one model of two classes is the second's, its mirror image the first's."""
        mirror = len(self.mu) == 1
        new = n_models - (2 if mirror else len(self.mu))
        zeros = np.zeros((new, self.mu.shape[1]))
        self.mu = np.vstack([-self.mu, self.mu, zeros] if mirror else [self.mu, zeros])
        if self.averaged:
            self._average = np.vstack(
                [-self._average, self._average, zeros] if mirror else [self._average, zeros]
            )
        self.sigma = np.vstack([self.sigma] * (1 + mirror) + [zeros + self.prior])
        flipped = self.bias * np.array([-1.0, 1.0])
        self.bias = np.vstack([*([flipped] if mirror else []), self.bias, self._new_bias(new)])

    def step(
        self,
        X: Rows,
        y: Array,
        k: int,
        code: int,
        balance: NDArray[np.float64],
        weight: Array,
        *,
        noise: float,
        newton: bool,
        rate: float,
        keep: float,
        frame: tuple[Array, Array] | None,
        sums: tuple[Array, Array],
    ) -> bool:
        """Move model k one step; False, and nothing changed, if a sum over the rows is not finite.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
            Class codes, or the numeric target.
        k, code : int
            Which model, and which class it tells from the rest; a negative code: a Gaussian model of the target.
        balance : ndarray of shape (2,)
            Weight of a row outside and inside the class.
        weight : ndarray of shape (n_rows,) or (0,)
            Row weights; empty if all are 1.
        noise : float
            Variance of the target given the margin (1 for a probit).
        newton : bool
            True for the assumed-density update, False for a gradient step.
        rate : float
            Step of the gradient.
        keep : float in (0, 1]
            What is left of all earlier evidence.
        frame : pair of ndarrays of shape (n_features,), or None
            What is subtracted from each feature, and what it is then multiplied by.
        sums : pair of ndarrays of shape (n_features,) or (0,)
            Where the deviations of dense rows from the centre, and their squares, are added.
        """
        rows: tuple[Any, ...] = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        shared: tuple[Any, ...] = (*rows, y, code, balance, weight, code >= 0, noise)
        model: tuple[Any, ...] = (self.mu[k], self.sigma[k], self.bias[k])
        if sp.issparse(X) and frame is None and keep == 1.0 and not newton:
            shared = (*shared, self.intercept, rate, *model)
            return bool(_step_stored(*shared))
        options = (newton, self.intercept, rate, keep, self.prior, *(frame or self._no_frame()))
        shared = (*shared, *options, *model, *(() if sp.issparse(X) else sums))
        return bool(_step_csr(*shared) if sp.issparse(X) else _step(*shared))

    def _no_frame(self) -> tuple[Array, Array]:
        return np.zeros(self.mu.shape[1]), np.ones(self.mu.shape[1])

    def settle(self, rows: float, keep: float) -> None:
        """Take mu into the running average with the weight of the rows just learned from."""
        if not self.averaged or rows <= 0.0:
            return
        self.evidence = keep * self.evidence + rows
        _blend(rows / self.evidence, self.mu, self._average)
