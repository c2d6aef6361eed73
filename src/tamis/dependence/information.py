"""Mutual information of discrete variables, in nats, from tables of counts.

With a table n_uw of two variables, its margins a_u and b_w, and N = sum n_uw::

    H(U)    = -sum_u a_u / N log(a_u / N)                                                       (1)
    I(U; W) = sum_uw n_uw / N log(N n_uw / (a_u b_w))                                           (2)
    E[I]    = sum_uw sum_t t / N log(N t / (a_u b_w)) P(t),  P hypergeometric (N, a_u, b_w)     (3)
    AMI     = (I - E[I]) / ((H(U) + H(W)) / 2 - E[I])                                           (4)
    I(i; j | C) = sum_c N_c / N sum_uv p(u, v | c) log(p(u, v | c) / (p(u | c) p(v | c)))       (5)

(3) is the expected information of independent variables with these margins, so the mean of (4) is 0 for an irrelevant
variable with any number of values (Vinh, Epps, Bailey 2010). Since E[I] >= 0 and I <= (H(U) + H(W)) / 2, (4) never
exceeds I / ((H(U) + H(W)) / 2), which is cheap: E[I] is only needed where this bound is large enough.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.special

from tamis._kernels import njit
from tamis._validation import Array, Floats

_BLOCK = 1 << 24  # joint counts in memory for (5)


def entropy(counts: Array) -> Floats:
    """Return (1) of the counts along the last axis; 0 where there are none.

    >>> entropy(np.array([[2, 2], [4, 0]]))
    array([0.69314718, 0.        ])
    """
    n = counts.sum(axis=-1)
    share = np.divide(counts, n[..., None], out=np.zeros(counts.shape), where=n[..., None] > 0)
    return scipy.special.entr(share).sum(axis=-1)


def _information(tables: Array) -> tuple[Floats, Floats]:
    """Return (2) and the mean of the two entropies."""
    n_values, n_classes = tables.shape[-2:]
    of_value, of_class = entropy(tables.sum(axis=-1)), entropy(tables.sum(axis=-2))
    joint = entropy(tables.reshape(*tables.shape[:-2], n_values * n_classes))
    return np.maximum(of_value + of_class - joint, 0.0), (of_value + of_class) / 2.0


def mutual_information(tables: Array) -> Floats:
    """Return (2) of each table of counts, shape (..., n_values, n_classes).

    >>> mutual_information(np.array([[[2, 0], [0, 2]], [[1, 1], [1, 1]]])).round(4)
    array([0.6931, 0.    ])
    """
    return _information(tables)[0]


def mutual_information_ratio(tables: Array) -> Floats:
    """Return I / ((H(U) + H(W)) / 2) of each table, the bound of (4); 0 for constant variables.

    Parameters
    ----------
    tables : ndarray of shape (..., n_values, n_classes)
        Counts.
    """
    shared, mean = _information(tables)
    return np.divide(shared, mean, out=np.zeros_like(shared), where=mean > 0.0)


@njit()
def _expected_information(a: Array, b: Array, log_factorial: Array) -> float:
    n, expected = a.sum(), 0.0
    for u in range(len(a)):
        for w in range(len(b)):
            margins = (
                log_factorial[a[u]] + log_factorial[b[w]] + log_factorial[n - a[u]] + log_factorial[n - b[w]]
            )
            for t in range(max(1, a[u] + b[w] - n), min(a[u], b[w]) + 1):
                log_p = (
                    margins - log_factorial[n] - log_factorial[t] - log_factorial[a[u] - t]
                    - log_factorial[b[w] - t] - log_factorial[n - a[u] - b[w] + t]
                )  # fmt: skip
                expected += t / n * np.log(n * t / (a[u] * b[w])) * np.exp(log_p)  # (3)
    return expected


@lru_cache(maxsize=4)
def log_factorials(n: int) -> Floats:
    """Return log(0!) to log(n!)."""
    logs: Floats = scipy.special.gammaln(np.arange(n + 1) + 1.0)
    logs.setflags(write=False)
    return logs


def expected_mutual_information(a: Array, b: Array) -> float:
    """Return (3), the expected information of independent variables with these counts.

    Parameters
    ----------
    a, b : ndarray of int
        Rows with each value of the two variables, with equal sums.

    Examples
    --------
    >>> round(expected_mutual_information(np.array([2, 2]), np.array([2, 2])), 4)
    0.231
    """
    a, b = (np.asarray(part, dtype=np.int64) for part in (a, b))
    return _cached_expected_information(a[a > 0].tobytes(), b[b > 0].tobytes())


# Columns binned at their quantiles have the same counts.
@lru_cache(maxsize=1024)
def _cached_expected_information(a: bytes, b: bytes) -> float:
    counts = np.frombuffer(a, dtype=np.int64), np.frombuffer(b, dtype=np.int64)
    return float(_expected_information(*counts, log_factorials(int(counts[0].sum()))))


def adjusted_mutual_information(tables: Array) -> Floats:
    """Return (4) of each table of counts; 0 for constant variables.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, n_values, n_classes), int

    Examples
    --------
    A variable that equals the class, and one with a different value in every row:

    >>> labels = np.array([0, 0, 1, 1])
    >>> same, unique = np.zeros((2, 4, 2))
    >>> same[labels, labels] += [2, 2, 2, 2]
    >>> unique[range(4), labels] += 1
    >>> adjusted_mutual_information(np.stack([same, unique])).round(12) + 0.0
    array([1., 0.])
    """
    counts = np.asarray(tables, dtype=np.int64)
    shared, mean = _information(counts)
    adjusted = np.zeros(len(counts))
    for i, table in enumerate(counts):
        chance = expected_mutual_information(np.sort(table.sum(axis=1)), np.sort(table.sum(axis=0)))
        room = mean[i] - chance
        if room > 1e-15 * max(mean[i], 1.0):
            adjusted[i] = (shared[i] - chance) / room  # (4)
    return adjusted


def conditional_mutual_information(codes: Array, y: Array, n_values: int, n_classes: int) -> Floats:
    """Return (5) of each pair of columns.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_features), int
        Values 0, ..., n_values - 1; a negative one is missing and the row is ignored for its pairs.
    y : ndarray of shape (n_rows,), int
        Class codes.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Symmetric, nonnegative.

    Notes
    -----
    O(n_rows n_features**2 n_values**2) multiplications in blocks; memory of a block is bounded.
    """
    (n_rows, d), n_values = codes.shape, int(n_values)  # squares of a NumPy int8 overflow
    values = np.zeros((d, d))
    step = max(1, _BLOCK // max(d * n_values * n_values, 1))
    for c in range(n_classes):
        of_class = codes[y == c]
        ones = np.zeros((len(of_class), d * n_values), dtype=np.float32)  # counts are exact up to 2**24 rows
        row, column = np.nonzero(of_class >= 0)
        ones[row, column * n_values + of_class[row, column]] = 1.0
        for at in range(0, d, step):
            joint = (ones[:, at * n_values : (at + step) * n_values].T @ ones).astype(np.float64)
            joint = joint.reshape(-1, n_values, d, n_values).transpose(0, 2, 1, 3)
            total = joint.sum(axis=(2, 3))
            shared, _ = _information(joint)
            values[at : at + step] += total / n_rows * shared
    return (values + values.T) / 2.0
