"""The likelihood of a batch of rows under a linear model whose parameters are independent normal variables.

Equations (1) to (6) are those of :mod:`tamis.rows.fires.fires`: the margins d and variances q of the rows, their slopes
a, b and curvatures h, and the gradients g1 = sum a z and g2 = sum b z^2 (or h z^2) over the rows.
z = (x - centre) * inverse is never stored: the parameters absorb `inverse`, and `centre` is subtracted in the loops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array
from tamis.rows.fires.quadrature import GAUSSIAN, PROBIT, expected_slopes
from tamis.summaries.moments import add_deviations


@njit()
def mills(m: float) -> float:
    """Return phi(m) / Phi(m) for any m."""
    if m > -8.0:
        return math.exp(-0.5 * m * m) * 0.3989422804014327 / (0.5 * math.erfc(-m * 0.7071067811865476))
    fraction = -m  # Laplace's continued fraction
    for k in range(25, 0, -1):
        fraction = -m + k / fraction
    return fraction


@njit()
def slopes(y: float, d: float, v: float, link: int) -> tuple[float, float, float]:
    """Return a, b and h of one row."""
    if link == PROBIT:
        rho = math.sqrt(v)
        m = y * d / rho
        r = mills(m)
        a = r * y / rho  # (2)
        return a, -a * d / v, r * (r + m) / v  # (3), (4)
    if link == GAUSSIAN:
        a = (y - d) / v  # (5)
        return a, a * a - 1.0 / v, 1.0 / v
    a, b = expected_slopes(y, d, v, link)  # (6)
    return a, b, max(a * a - b, 0.0)


@njit()
def _margins(X: Array, i: int, centre: Array, theta: Array, var: Array, d: Array, q: Array) -> None:
    """Write d and q of the four rows from i on (repeating the last row if needed): one pass over theta and var."""
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
def _add_gradients(X: Array, i: int, centre: Array, a: Array, b: Array, g1: Array, g2: Array) -> None:
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
def targets(codes: Array, k: int, balance: Array, sample_weight: Array, y: Array, w: Array) -> float:
    """Write y, +-1 for class k against the rest (k < 0: the target itself), and the row weights w; return their sum."""
    total = 0.0
    for i in range(codes.shape[0]):
        inside = codes[i] == k
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        y[i] = codes[i] if k < 0 else (1.0 if inside else -1.0)
        w[i] = weight * (balance[1] if inside else balance[0])
        total += weight
    return total


@njit()
def gradients(
    X: Array, y: Array, w: Array, link: int, noise: float, newton: bool,
    bias: Array, centre: Array, theta: Array, var: Array, g1: Array, g2: Array, curve: Array,
    sample_weight: Array, s1: Array, s2: Array,
) -> tuple[float, float]:  # fmt: skip
    """Sum a z and b z^2 (or h z^2) over the rows into g1, g2; return the sums of a and b (or h).

    The same pass adds the moments of the rows to s1, s2 (unless these are empty).
    """
    n = X.shape[0]
    d, q, a, b, u = np.empty(4), np.empty(4), np.empty(4), np.empty(4), np.empty(4)
    rows = np.empty(4, np.int64)
    sum_a, sum_b = 0.0, 0.0
    for i in range(0, n, 4):
        _margins(X, i, centre, theta, var, d, q)
        a[:], b[:], u[:] = 0.0, 0.0, 0.0
        for r in range(min(4, n - i)):
            u[r] = sample_weight[i + r] if sample_weight.shape[0] else 1.0
            slope, bend, h = slopes(y[i + r], bias[0] + d[r], noise + bias[1] + q[r], link)
            a[r], b[r], curve[i + r] = w[i + r] * slope, w[i + r] * (h if newton else bend), w[i + r] * h
            sum_a += a[r]
            sum_b += b[r] + q[r] * 0.0  # NaN if the variance of a row is not finite
        _add_gradients(X, i, centre, a, b, g1, g2)
        if s1.shape[0]:
            for r in range(4):
                rows[r] = min(i + r, n - 1)
            add_deviations(X, rows, u, centre, s1, s2)
    return sum_a, sum_b


@njit()
def gradients_csr(
    data: Array, indices: Array, indptr: Array, y: Array, w: Array, link: int, noise: float, newton: bool,
    bias: Array, centre: Array, theta: Array, var: Array, g1: Array, g2: Array, curve: Array,
) -> tuple[float, float]:  # fmt: skip
    """As `gradients`: first the contribution of centred zeros, then the corrections for stored values."""
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
        slope, bend, h = slopes(y[i], d, q, link)
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
def curvature(
    X: Any, data: Any, indices: Any, indptr: Any, curve: Array, centre: Array, theta: Array
) -> float:
    """Return the curvature (4) along a joint step of all parameters: correlated features increase it.

    Of dense rows X, or of CSR rows, in O(stored values); the other arguments are None.
    """
    bend = 0.0
    if X is not None:
        margin, q, none = np.empty(4), np.empty(4), np.zeros(theta.shape[0])
        for i in range(0, X.shape[0], 4):
            _margins(X, i, centre, theta, none, margin, q)
            for r in range(min(4, X.shape[0] - i)):
                bend += curve[i + r] * margin[r] * margin[r]
    if indptr is not None:
        zero = -(centre * theta).sum()
        for i in range(curve.shape[0]):
            d = zero
            for at in range(indptr[i], indptr[i + 1]):
                d += data[at] * theta[indices[at]]
            bend += curve[i] * d * d
    return bend
