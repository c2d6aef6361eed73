"""The expected G statistic of a table of counts under independence, value by value.

For a value with k rows, n_c of which are of class c, and class probabilities p_c that do not depend on it,

    G = 2 sum_c n_c ln(n_c / (k p_c))     E[G] = 2 sum_c (E[n_c ln n_c] - k p_c ln(k p_c))                  (1)

The sum over the values, minus (classes - 1) for the estimated class probabilities, is the mean of 2 n ln 2 times the
information gain, that is, its effective degrees of freedom. For many rows, (1) is (classes - 1), as for chi-square; for
few rows and two classes it is between 0 and 1.39 times as large, and with one row it is exactly 2 H(class). Categorical
features with many rare values therefore need (1).
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array

MANY = 32  # rows from which on the chi-square value is used


@njit(strict=True)
def fill_expected_g(rows: Array, table: Array) -> None:
    """Write (1) for k from 0 to `MANY`; the last is (classes - 1).

    Parameters
    ----------
    rows : ndarray of shape (n_classes,)
        Rows of each class, up to a factor.
    table : ndarray of shape (MANY + 1,), float64

    Examples
    --------
    >>> table = np.empty(MANY + 1)
    >>> fill_expected_g(np.array([5.0, 5.0]), table)
    >>> table[[0, 1, 2, 10, 32]].round(2)
    array([0.  , 1.39, 1.39, 1.06, 1.  ])
    """
    whole, classes = rows.sum(), 0
    table[:] = 0.0
    for c in range(len(rows)):
        p = rows[c] / whole if whole > 0.0 else 0.0
        classes += p > 0.0
        if p == 0.0 or p == 1.0:
            continue
        for k in range(1, MANY):
            chance, mean = (1.0 - p) ** k, 0.0  # probability that n of the k rows are of the class
            for n in range(1, k + 1):
                chance *= (k - n + 1) / n * p / (1.0 - p)
                mean += chance * n * np.log(n)
            table[k] += 2.0 * (mean - k * p * np.log(k * p))
    table[MANY] = max(classes - 1, 0)


@njit(strict=True)
def expected_g(k: float, table: Array) -> float:
    """Return (1) of a value with k rows, interpolated between integers.

    >>> table = np.empty(MANY + 1)
    >>> fill_expected_g(np.array([1.0, 1.0]), table)
    >>> round(expected_g(2.5, table), 2), expected_g(100.0, table)
    (1.34, 1.0)
    """
    below = int(min(k, MANY - 1.0))
    part = min(k - below, 1.0)
    return float(table[below] + part * (table[below + 1] - table[below]))
