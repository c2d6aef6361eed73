"""Faded means of the contributions of each feature, their variance and confidence bands.

The estimate for a feature is the mean of its contributions v_1, v_2, ..., weighted by w_i = 2^(-age / half_life). Its
variance is that of a contribution times sum w_i^2 / (sum w_i)^2, which tends to alpha / (2 - alpha) for exponential
smoothing with the rate alpha of the papers. The papers' band follows from Chebyshev's inequality: for independent rows,
the mean deviates from its expectation by more than sqrt(variance / (1 - level)) with a probability of at most 1 - level
(Fumagalli et al. 2023).

The rows of `sums`, of shape (4, g), are sum w, sum w^2, the mean, and the weighted sum of squared deviations.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from tamis._kernels import njit
from tamis._validation import Array, Floats, check_choice, check_number

__all__ = ["add_contributions", "bands", "means", "merged_sums", "variances"]


@njit(strict=True)
def add_contributions(features: Array, values: Array, keep: float, sums: Array) -> None:
    """Fade by one row, then add its contributions; the rows of `sums` are sum w, sum w^2, mean and m2."""
    for i in range(features.shape[0]):
        if keep < 1.0:
            for j in range(sums.shape[1]):
                sums[0, j] *= keep
                sums[1, j] *= keep * keep
                sums[3, j] *= keep
        for c in range(features.shape[1]):
            j, v = features[i, c], values[i, c]
            sums[0, j] += 1.0
            sums[1, j] += 1.0
            delta = v - sums[2, j]
            sums[2, j] += delta / sums[0, j]
            sums[3, j] += delta * (v - sums[2, j])


def merged_sums(earlier: Floats, later: Floats, keep: float) -> Floats:
    """Return the sums of two parts of a stream; `keep` is the factor of the earlier weights.

    >>> one = np.array([[2.0], [2.0], [1.0], [0.0]])  # two contributions of 1
    >>> merged_sums(one, np.array([[2.0], [2.0], [3.0], [0.0]]), 1.0)[:, 0]
    array([4., 4., 2., 4.])
    """
    faded = earlier * np.array([[keep], [keep * keep], [1.0], [keep]])
    total = faded[0] + later[0]
    share = np.divide(later[0], total, out=np.zeros_like(total), where=total > 0.0)
    gap = later[2] - faded[2]
    values = faded + later
    values[2] = faded[2] + share * gap
    values[3] += share * faded[0] * gap * gap
    return np.asarray(values)


def means(sums: Floats) -> Floats:
    """Return the mean of each feature; NaN before its first measurement."""
    return np.where(sums[0] > 0.0, sums[2], np.nan)


def variances(sums: Floats) -> Floats:
    """Return the unbiased variance of the contributions; NaN before two were measured."""
    weight, squared, _, m2 = sums
    freedom = weight - squared / np.where(weight > 0.0, weight, 1.0)
    return np.asarray(np.divide(m2, freedom, out=np.full_like(m2, np.nan), where=freedom > 1e-9 * weight))


def bands(sums: Floats, level: float, method: str) -> Floats:
    """Return the lower and upper ends, shape (g, 2).

    >>> sums = np.array([[100.0], [100.0], [0.5], [99.0]])  # 100 contributions of mean 0.5 and variance 1
    >>> bands(sums, 0.95, "normal").round(2)
    array([[0.3, 0.7]])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("method", method, ("chebyshev", "normal"))
    factor = 1.0 / np.sqrt(1.0 - level) if method == "chebyshev" else ndtri(0.5 + level / 2.0)
    weight, squared = sums[:2]
    half = factor * np.sqrt(variances(sums)) * np.sqrt(squared) / np.where(weight > 0.0, weight, 1.0)
    return np.column_stack([means(sums) - half, means(sums) + half])
