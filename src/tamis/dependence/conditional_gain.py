"""The conditional information gain of a variable about a class, corrected for chance.

With n_uc the rows of value u of the variable and class c, in the stratum s of rows that agree in all conditions, and
the margins a_u of the value, b_sc of the class in the stratum, N_s of the stratum::

    n I(X; C | S) = sum n_uc log n_uc - sum a_u log a_u - sum b_sc log b_sc + sum N_s log N_s      (1)
    n (I - E[I]) = sum_s sum_uc (n_uc log n_uc - E[t log t]), t hypergeometric (N_s, a_u, b_sc)     (2)

E is over the permutations of the classes within each stratum, so the mean of (2) is exactly 0 for a variable that is
independent of the class given the conditions, for any number of rows per stratum; a stratum of one row contributes 0.
2 n I is then nearly chi-square, whose variance is twice its mean, so the standard deviation of I is sqrt(E[I] / n)  (3)
"""

from __future__ import annotations

import math

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Ints
from tamis.dependence.information import log_factorials

_SPREAD = 12.0  # standard deviations of t beyond which (2) has no terms


@njit()
def _refine(strata: Array, values: Array, n_strata: int, n_values: int) -> tuple[Array, int]:
    label_of, labels, n = np.full(n_strata * n_values, -1, np.int64), np.empty(len(strata), np.int64), 0
    for i in range(len(strata)):
        cell = strata[i] * n_values + values[i]
        if label_of[cell] < 0:
            label_of[cell] = n
            n += 1
        labels[i] = label_of[cell]
    return labels, n


def refine(strata: tuple[Ints, int], values: Ints) -> tuple[Ints, int]:
    """Return the strata of rows that agree in the conditions and in one more variable, and their number.

    Parameters
    ----------
    strata : tuple of ndarray of shape (n_rows,), int64, and int
        The stratum of each row, from 0, and the number of strata.
    values : ndarray of shape (n_rows,), int64
        Codes from 0.

    Examples
    --------
    >>> refine((np.array([0, 0, 1]), 2), np.array([1, 0, 1]))
    (array([0, 1, 2]), 3)
    """
    labels, n = _refine(strata[0], values, strata[1], int(values.max(initial=0)) + 1)
    return labels, int(n)


@njit(strict=True)
def _mean(total: int, a: int, b: int, log_factorial: Array) -> float:
    """E[t log t] of a hypergeometric t, by the ratio of neighbouring probabilities."""
    low, high = max(0, a + b - total), min(a, b)
    centre = a * b / total
    reach = _SPREAD * np.sqrt(centre * (total - a) * (total - b) / (total * max(total - 1.0, 1.0))) + _SPREAD
    t, last = max(low, int(centre - reach)), min(high, int(centre + reach) + 1)
    p = np.exp(
        log_factorial[a] + log_factorial[b] + log_factorial[total - a] + log_factorial[total - b]
        - log_factorial[total] - log_factorial[t] - log_factorial[a - t] - log_factorial[b - t]
        - log_factorial[total - a - b + t]
    )  # fmt: skip
    mean = 0.0
    while t <= last:
        if t > 1:
            mean += p * t * np.log(t)
        p *= (a - t) * (b - t) / ((t + 1.0) * (total - a - b + t + 1.0))
        t += 1
    return mean


@njit(strict=True)
def _gain(
    fine: Array, n_fine: int, coarse: Array, n_coarse: int, target: Array, n_classes: int, log_factorial: Array
) -> tuple[float, float]:  # fmt: skip
    of_fine, of_coarse = np.zeros((n_fine, n_classes), np.int64), np.zeros((n_coarse, n_classes), np.int64)
    parent = np.zeros(n_fine, np.int64)
    for i in range(len(target)):
        of_fine[fine[i], target[i]] += 1
        of_coarse[coarse[i], target[i]] += 1
        parent[fine[i]] = coarse[i]
    gain, chance = 0.0, 0.0
    for u in range(n_fine):
        a, around = of_fine[u].sum(), of_coarse[parent[u]]
        size = around.sum()
        if a == size:  # the stratum is not divided
            continue
        for c in range(n_classes):
            b = around[c]
            if 0 < b < size:
                mean, t = _mean(size, a, b, log_factorial), of_fine[u, c]
                gain += (t * np.log(t) if t > 1 else 0.0) - mean  # (2)
                # Summed over values and classes, the marginal terms of (1).
                chance += mean - a * b / size * np.log(a * b / size)
    return gain / len(target), max(chance, 0.0) / len(target)


def conditional_gain(fine: tuple[Ints, int], coarse: tuple[Ints, int], target: Ints) -> tuple[float, float]:
    """Return the information gain of refining the strata, corrected for chance, and its standard deviation.

    Parameters
    ----------
    fine, coarse : tuple of ndarray of shape (n_rows,), int64, and int
        Strata with and without the variable, as :func:`refine` returns them.
    target : ndarray of shape (n_rows,), int64
        Codes of the classes, from 0.

    Returns
    -------
    gain, deviation : float
        (2) per row, and (3), the standard deviation for an irrelevant variable, in nats.

    Examples
    --------
    A variable that equals the class, and one with a different value in every row:

    >>> target, all_rows = np.tile([0, 1], 50), (np.zeros(100, dtype=np.int64), 1)
    >>> same, unique = refine(all_rows, target), (np.arange(100), 100)
    >>> [round(value, 3) for value in conditional_gain(same, all_rows, target)]
    [0.688, 0.007]
    >>> conditional_gain(unique, all_rows, target)[0]
    0.0
    """
    n_classes = int(target.max(initial=0)) + 1
    gain, chance = _gain(*fine, *coarse, target, n_classes, log_factorials(len(target)))
    return float(gain), math.sqrt(float(chance) / len(target))
