"""The information gain of a binary split, for stumps and the leaves of trees.

The gain of a split of rows of weight N into branches of weights N_b, where H is the entropy of the class in bits::

    (1)  H(all) - sum_b N_b / N H(b)

For a numeric feature each class has a normal distribution and a range, which determine its share below a cut.
"""

from __future__ import annotations

import math

import numpy as np

from tamis._kernels import njit
from tamis._validation import Floats

LEAST_SHARE = 0.01  # each branch must have a larger share of the weight
_ROOT_2 = math.sqrt(2.0)


@njit(strict=True, allocates=False)
def entropy_times_weight(weights: Floats) -> float:
    """Return the entropy of the class, in bits, times the weight.

    Parameters
    ----------
    weights : ndarray of shape (n_classes,)
        Weight of the rows of each class.

    Returns
    -------
    float

    Examples
    --------
    >>> entropy_times_weight(np.array([4.0, 4.0])), entropy_times_weight(np.array([8.0, 0.0]))
    (8.0, 0.0)
    """
    n, inner = 0.0, 0.0
    for c in range(weights.shape[0]):
        n += weights[c]
        if weights[c] > 0.0:
            inner += weights[c] * np.log2(weights[c])
    return max(n * np.log2(n) - inner, 0.0) if n > 0.0 else 0.0


@njit(strict=True, allocates=False)
def gain_of_two(total: Floats, part: Floats, rest: Floats) -> float:
    """Return (1) of a binary split, or -1 if either branch has too few rows.

    Parameters
    ----------
    total, part : ndarray of shape (n_classes,)
        Weight of the rows of each class, and of those in one branch.
    rest : ndarray of shape (n_classes,)
        Overwritten with the weights of the other branch.

    Returns
    -------
    float

    Examples
    --------
    >>> gain_of_two(np.array([4.0, 4.0]), np.array([4.0, 0.0]), np.empty(2))
    1.0
    """
    n, inside = total.sum(), part.sum()
    if min(inside, n - inside) <= LEAST_SHARE * n:
        return -1.0
    for c in range(total.shape[0]):
        rest[c] = max(total[c] - part[c], 0.0)
    return (entropy_times_weight(total) - entropy_times_weight(part) - entropy_times_weight(rest)) / n


@njit(strict=True, allocates=False)
def share_below(cut: float, mean: float, deviation: float, low: float, high: float) -> float:
    """Return the share of a class at or below a cut, from its normal distribution and its range.

    Parameters
    ----------
    cut, mean, deviation, low, high : float
        A deviation of 0 means that all values equal the mean, up to underflow of the squared differences.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> [share_below(cut, 0.0, 1.0, -3.0, 3.0) for cut in (-4.0, 0.0, 3.0)]
    [0.0, 0.5, 1.0]
    """
    if cut < low:
        return 0.0
    if cut >= high:
        return 1.0
    if deviation <= 0.0:
        return 1.0 if cut >= mean else 0.0
    return 0.5 * (1.0 + math.erf((cut - mean) / (deviation * _ROOT_2)))
