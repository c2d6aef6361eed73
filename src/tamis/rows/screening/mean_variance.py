"""T-score and Fisher score of every feature from the moments of its classes.

With the (faded) count n_c, mean m_c, variance v_c and effective size e_c of a feature in class c, of C classes, and
n = sum_c n_c, m = sum_c n_c m_c / n::

    T      = |m_1 - m_2| / sqrt(v_1 / e_1 + v_2 / e_2)            (1)
    Fisher = sum_c n_c (m_c - m)^2 / sum_c n_c v_c                (2)
    F      = Fisher (n - C) / (C - 1)                             (3)

The paper, its errata and our deviations are in :mod:`tamis.rows.screening`.
"""

from __future__ import annotations

import numpy as np
import scipy.special
from numpy.typing import NDArray

from tamis._check import Array
from tamis.summaries.class_moments import ClassMoments

__all__ = ["SMALLEST", "f_statistic", "fisher_pvalues", "fisher_score", "t_pvalues", "t_score", "too_small"]

SMALLEST = 1e-146  # a smaller difference has a square without all its digits
_ROUNDING = 8.0 * np.finfo(np.float64).eps  # means that differ relatively by less are equal


def t_score(moments: ClassMoments) -> NDArray[np.float64]:
    """Return equation (1) of each feature; of three classes or more the largest of each class against the rest.

    Parameters
    ----------
    moments : ClassMoments
        Of two classes at least.

    Returns
    -------
    ndarray of shape (n_features,), float64
        0 where fewer than two classes have values, or for a constant feature.

    Examples
    --------
    Means 0 and 4, variances 1, two rows each:

    >>> moments = ClassMoments(n_features=1, n_classes=2)
    >>> moments.update(np.array([[-1.0], [1.0], [3.0], [5.0]]), np.array([0, 0, 1, 1]))
    True
    >>> t_score(moments), fisher_score(moments), f_statistic(moments)
    (array([4.]), array([4.]), array([8.]))
    """
    count, mean, variance = moments.count(), moments.mean(), moments.variance()
    effective = _effective(moments)
    if len(count) == 2:
        return _t(mean, variance, effective)
    scores = [_t(*_against_rest(k, count, mean, variance, effective)) for k in range(len(count))]
    found: NDArray[np.float64] = np.max(scores, axis=0)
    return found


def t_pvalues(scores: Array, n_classes: int) -> NDArray[np.float64]:
    """Return the probability of a larger T between classes of equal means (large samples), corrected for the tests.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)
        As :func:`t_score` returns them.
    n_classes : int
        Three or more: as many tests, so the probability is multiplied by it.

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    tests = n_classes if n_classes > 2 else 1
    found: NDArray[np.float64] = np.minimum(2.0 * tests * scipy.special.ndtr(-scores), 1.0)
    return found


def fisher_score(moments: ClassMoments) -> NDArray[np.float64]:
    """Return equation (2) of each feature.

    Parameters
    ----------
    moments : ClassMoments

    Returns
    -------
    ndarray of shape (n_features,), float64
        Infinite where the classes differ and nothing varies within them; 0 for a constant or missing feature.
    """
    return _ratio(*_between_and_within(moments.count(), moments.mean(), moments.variance()))  # (2)


def too_small(moments: ClassMoments) -> NDArray[np.bool_]:
    """Return which features differ between the classes, but by less than `SMALLEST`: they score 0."""
    count, mean = moments.count(), moments.mean()
    gap = np.where(count > 0.0, mean, -np.inf).max(axis=0) - np.where(count > 0.0, mean, np.inf).min(axis=0)
    found: NDArray[np.bool_] = (gap > 0.0) & (gap <= SMALLEST) & (np.abs(mean).max(axis=0) <= SMALLEST)
    return found


def f_statistic(moments: ClassMoments) -> NDArray[np.float64]:
    """Return equation (3) of each feature: the F statistic of a one-way analysis of variance.

    Where rows fade or have weights, n_c is the effective size e_c of the class, W^2 / W2 for weights of sum W and sum
    of squares W2; without, the two are equal.

    Parameters
    ----------
    moments : ClassMoments

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    effective = _effective(moments)
    between, within = _between_and_within(effective, moments.mean(), moments.variance())
    n, n_classes = effective.sum(axis=0), (effective > 0.0).sum(axis=0)
    found: NDArray[np.float64] = _ratio(between, within) * (
        np.maximum(n - n_classes, 0.0) / np.maximum(n_classes - 1, 1)  # (3)
    )
    return found


def fisher_pvalues(moments: ClassMoments) -> NDArray[np.float64]:
    """Return the probability of a larger F if the class means are equal (normal features, or many rows).

    Parameters
    ----------
    moments : ClassMoments

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    effective = _effective(moments)
    n, n_classes = effective.sum(axis=0), (effective > 0.0).sum(axis=0)
    found: NDArray[np.float64] = scipy.special.fdtrc(
        np.maximum(n_classes - 1, 1), np.maximum(n - n_classes, 1.0), f_statistic(moments)
    )
    return found


def _effective(moments: ClassMoments) -> NDArray[np.float64]:
    """Return the effective number of values of each class and feature."""
    count, rows = moments.count(), moments.weight()[:, None]
    found: NDArray[np.float64] = moments.effective()[:, None] * _ratio(
        count, np.broadcast_to(rows, count.shape)
    )
    return found


def _between_and_within(
    count: Array, mean: Array, variance: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numerator and the denominator of equation (2)."""
    grand = _ratio((count * mean).sum(axis=0), count.sum(axis=0))
    between = (count * (mean - grand) ** 2).sum(axis=0)
    lowest = np.where(count > 0.0, mean, np.inf).min(axis=0)
    highest = np.where(count > 0.0, mean, -np.inf).max(axis=0)
    between[highest - lowest <= np.maximum(_ROUNDING * np.abs(highest), SMALLEST)] = 0.0
    return between, (count * variance).sum(axis=0)


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a / b; where b is 0: 0 if a is 0, else infinite."""
    found: NDArray[np.float64] = np.divide(a, b, out=np.where(a > 0.0, np.inf, 0.0), where=b > 0.0)
    return found


def _t(mean: Array, variance: Array, effective: Array) -> NDArray[np.float64]:
    """Equation (1) of two classes, the rows of each array; 0 where a class has no value of the feature."""
    known = (effective > 0.0).all(axis=0)
    error = np.divide(variance, effective, out=np.zeros_like(variance), where=effective > 0.0).sum(axis=0)
    gap = np.abs(mean[0] - mean[1])
    gap[gap <= np.maximum(_ROUNDING * np.abs(mean[0]), SMALLEST)] = 0.0
    return np.where(known, _ratio(gap, np.sqrt(error)), 0.0)  # (1)


def _against_rest(
    k: int, count: Array, mean: Array, variance: Array, effective: Array
) -> tuple[Array, Array, Array]:
    """Return mean, variance and effective size of class k and of all the others together."""
    rest = np.arange(len(count)) != k
    n = count[rest].sum(axis=0)
    centre = np.divide((count * mean)[rest].sum(axis=0), n, out=np.zeros_like(n), where=n > 0.0)
    squares = (count * (variance + (mean - centre) ** 2))[rest].sum(axis=0)
    spread = np.divide(squares, n, out=np.zeros_like(n), where=n > 0.0)
    return (
        np.array([mean[k], centre]),
        np.array([variance[k], spread]),
        np.array([effective[k], effective[rest].sum(axis=0)]),
    )
