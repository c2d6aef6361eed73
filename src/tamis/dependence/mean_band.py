"""An asymptotic, time-uniform confidence band of the distance between two class means, for any distribution.

With m_c, v_c and e_c the mean, the sample variance and the (effective) number of the values of class c::

    D = m_1 - m_2,    s^2 = max(v_1, v) / e_1 + max(v_2, v) / e_2,    n = e_1 + e_2                       (1)

where v is the pooled variance, because the variance of few values (for example, all 0) is unreliable.

D is approximately the mean of n independent terms of variance n s^2. Robbins' mixture of normal martingales bounds such
a mean uniformly over n; by strong approximation the bound also applies here, except in the first rows (asymptotic
confidence sequences, Theorem 2.2 of the paper)::

    |D - difference| <= s sqrt((1 + 1 / (n rho^2)) log((1 + n rho^2) / alpha^2))    at all n               (2)

rho^2 = 0.02 makes the band tightest at about 400 rows; later it is wider than a fixed-time interval by sqrt(log n).
Without a bound on the values, no band of a mean is exact at finite n (Bahadur, Savage 1956), so the first rows have no
band.

Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas: Time-uniform central limit theory and asymptotic confidence sequences,
Annals of Statistics 52(6), 2024.
"""

from __future__ import annotations

import numpy as np

from tamis._validation import Array, Floats

FEWEST = 32  # values of each class; with fewer, the band is infinite
_RHO2 = 0.02


def mean_band(count: Array, mean: Array, variance: Array, alpha: float) -> tuple[Floats, Floats]:
    """Return a lower and an upper bound of the distance between the class means of each feature.

    With three classes or more it is the largest difference between a class and the rest.

    Parameters
    ----------
    count, mean, variance : ndarray of shape (n_classes, n_features), float64
        (Effective) number of the values of each class, their means, and variances (divided by the number).
    alpha : float
        In (0, 1): the probability that the band of a feature is ever wrong, asymptotically.

    Returns
    -------
    low, high : ndarray of shape (n_features,), float64
        0 and infinity where a class has fewer than 32 values.

    Examples
    --------
    For 500 rows of each class, means that differ by 1, and variances of 1:

    >>> low, high = mean_band(np.full((2, 1), 500.0), np.array([[0.0], [1.0]]), np.ones((2, 1)), 0.05)
    >>> low.round(2), high.round(2)
    (array([0.8]), array([1.2]))
    """
    n_classes, n_features = mean.shape
    low, high = np.zeros(n_features), np.zeros(n_features)
    pairs = 1 if n_classes == 2 else n_classes
    for c in range(pairs):
        rest = np.arange(n_classes) != c
        one, other = (_pool(count[of], mean[of], variance[of]) for of in (~rest, rest))
        gap = np.abs(one[1] - other[1])  # (1)
        n, few = one[0] + other[0], np.minimum(one[0], other[0]) < FEWEST
        within = (one[0] * one[2] + other[0] * other[2]) / np.maximum(n - 2.0, 1.0)
        s2 = sum(
            np.maximum(v * e / np.maximum(e - 1.0, 1.0), within) / np.maximum(e, 1.0)
            for e, _, v in (one, other)
        )
        room = n * _RHO2
        half = np.sqrt(
            s2 * (1.0 + 1.0 / np.maximum(room, 1e-9)) * np.log((1.0 + room) * (pairs / alpha) ** 2)
        )
        low = np.maximum(low, np.where(few, 0.0, gap - half))  # (2)
        high = np.maximum(high, np.where(few, np.inf, gap + half))
    return low, high


def _pool(count: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Return the pooled count, mean and variance of some classes."""
    n = count.sum(axis=0)
    safe = np.maximum(n, 1e-300)
    centre = (count * mean).sum(axis=0) / safe
    return n, centre, (count * (variance + (mean - centre) ** 2)).sum(axis=0) / safe
