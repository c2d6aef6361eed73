"""Forward selection on a scatter matrix: sequentially selects the features with the largest gains.

The equations (1) to (5) are those of :mod:`tamis.rows.forward.forward`, which maintains the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._kernels import njit, overwrite
from tamis._validation import Array

ERRORS = 3.5  # standard errors of a significant difference
# Factor of the gain, and standard errors, by which a selected feature is favoured (4).
ADVANTAGE = (2.0, ERRORS)
ADVANTAGE_AFTER_DRIFT = (1.0, 1.0)  # the same after a drift


@njit()
def _gains(r: Array, v: Array, gain: Array) -> None:
    """Write (1) for all features."""
    gain[:] = 0.0
    for c in range(r.shape[0]):
        for j in range(r.shape[1]):
            gain[j] += r[c, j] * r[c, j]
    for j in range(r.shape[1]):
        gain[j] /= v[j]


@njit()
def favour(gain: Any, share: Any, ridge: float, n: float, advantage: tuple[float, float]) -> Any:
    """Return the gain with which a selected feature competes (4); `share` is (v - ridge) / v."""
    error = np.sqrt(share / (n * (1.0 + ridge)))
    return np.maximum(advantage[0] * gain, (np.sqrt(gain) + advantage[1] * error) ** 2)


@njit()
def _best(
    gain: Array, v: Array, ridge: float, n: float, taken: Array, place: Array, end: int,
    advantage: tuple[float, float], worth: Array,
) -> int:  # fmt: skip
    """Return the feature of the largest gain for its price; those among the previous first `end` are favoured."""
    best, at = 0.0, -1
    for j in range(gain.shape[0]):
        if not taken[j] and gain[j] > 0.0:
            g = gain[j]
            if place[j] < end:  # (4)
                g = favour(g, max(v[j] - ridge, 0.0) / v[j], ridge, n, advantage)
            if g * worth[j] > best:
                best, at = g * worth[j], j
    return at


@njit()
def _correlations(S: Array, j: int, inverse: Array, known: Array, weight: float, row: Array) -> None:
    """Write row j of R from the upper triangle of S; for late columns, from the rows since both are known.

    A correlation of m of n rows has an error of 1 / sqrt(m), and the ridge (3) covers errors of 1 / sqrt(n). It is
    therefore multiplied by sqrt(m / n); S, where the other rows are missing, contains m / n of it.
    """
    for a in range(j + 1):
        row[a] = S[a, j]
    for a in range(j + 1, inverse.shape[0]):
        row[a] = S[j, a]
    for a in range(inverse.shape[0]):
        row[a] *= inverse[a] * inverse[j] * np.sqrt(weight / min(known[a], known[j]))
        row[a] = min(max(row[a], -1.0), 1.0)


@njit()
def choose(
    S: Array, inverse: Array, known: Array, weight: float, b: Array, ridge: float, n_most: int, place: Array,
    ends: Array, n: float, bar: Array, total: float, advantage: tuple[float, float], worth: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:  # fmt: skip
    """Select up to `n_most` features, as long as gain / unexplained share is above the bar of the feature (5).

    `place` is the position of each feature in the previous order (`ends[-1]` if none). The order is used up to each of
    the ascending `ends`, so a feature is favoured in the part of the order it was in, which makes each part stable.
    Gains are compared times the `worth` of the features.

    Return the order, the gain of each on entry, what all features would add alone and now, the selected feature that
    accounts for most of each, and the factor of R and the projection of b: the model of the target.
    """
    q, p = b.shape
    r, v, L, u = b.copy(), np.full(p, 1.0 + ridge), np.zeros((n_most, p)), np.zeros((n_most, q))
    gain, after, most = np.zeros(p), np.zeros(p), np.zeros(p)
    order, entered, blame = np.zeros(n_most, np.int64), np.zeros(n_most), np.full(p, -1)
    taken, chosen, explained, part = np.zeros(p, np.bool_), 0, 0.0, 0
    _gains(r, v, gain)
    alone = gain.copy()
    for i in range(n_most):
        part += i == ends[part]
        j = _best(gain, v, ridge, n, taken, place, ends[part], advantage, worth)
        if j < 0 or gain[j] <= bar[j] * max(1.0 - explained / total, 1e-12):
            break
        taken[j], order[i], entered[i], chosen = True, j, gain[j], i + 1
        explained += gain[j]
        row, root = L[i], np.sqrt(v[j])
        _correlations(S, j, inverse, known, weight, row)
        row[j] += ridge
        for h in range(i):
            f, other = L[h, j], L[h]
            for a in range(p):
                row[a] -= f * other[a]
        for a in range(p):  # R of columns that entered at different times is not exactly a correlation matrix
            most_left = root if a == j else np.sqrt(max(v[a] - ridge, 0.0))
            row[a] = min(max(row[a] / root, -most_left), most_left)
        for c in range(q):  # (2)
            u[i, c] = r[c, j] / root
            for a in range(p):
                r[c, a] -= row[a] * u[i, c]
        for a in range(p):
            v[a] = max(v[a] - row[a] * row[a], ridge)
        _gains(r, v, after)
        for a in range(p):
            if not taken[a] and gain[a] - after[a] > most[a]:
                most[a], blame[a] = gain[a] - after[a], j
        overwrite(gain, after)
    return order[:chosen], entered[:chosen], alone, gain, blame, L[:chosen], u[:chosen]
