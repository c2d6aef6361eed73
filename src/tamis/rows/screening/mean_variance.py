"""T-score and Fisher score of every feature from the moments of its classes.

With the (faded) count n_c, mean m_c, variance v_c and effective size e_c of a feature in class c, of C classes, and
n = sum_c n_c, m = sum_c n_c m_c / n::

    T      = |m_1 - m_2| / sqrt(v_1 / e_1 + v_2 / e_2)            (1)
    Fisher = sum_c n_c (m_c - m)^2 / sum_c n_c v_c                (2)
    F      = Fisher (n - C) / (C - 1)                             (3)

For a numeric target, the classes are its levels c = 0, 1, ..., and T is the trend of the means over the levels, a
contrast of all of them, which equals (1) for two::

    T      = |sum_c a_c m_c| / sqrt(sum_c a_c^2 v_c / e_c),   a_c = n_c (c - sum_c n_c c / n)        (4)

The paper, its errata and our deviations are in :mod:`tamis.rows.screening`.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from tamis._kernels import njit
from tamis._validation import Array, Floats
from tamis.dependence.autocorrelation import Inflation
from tamis.summaries.class_moments import ClassMoments

SMALLEST = 1e-146  # the square of a smaller difference loses digits
_MANY_CLASSES = 32  # more are compared with the rest by sums before and after each of them
_ROUNDING = 8.0 * np.finfo(np.float64).eps  # means that differ relatively by less are equal


def t_score(moments: ClassMoments, read: Array | None = None) -> Floats:
    """Return equation (1) of each feature; for three classes or more the largest of each class against the rest.

    Parameters
    ----------
    moments : ClassMoments
        With at least two classes.
    read : ndarray of shape (3, n_classes, n_features), optional
        The result of `moments.read()`, if already computed.

    Returns
    -------
    ndarray of shape (n_features,), float64
        0 if fewer than two classes have values, or for a constant feature.

    Examples
    --------
    Means 0 and 4, variances 1, two rows each:

    >>> moments = ClassMoments(n_features=1, n_classes=2)
    >>> moments.update(np.array([[-1.0], [1.0], [3.0], [5.0]]), np.array([0, 0, 1, 1]))
    True
    >>> t_score(moments), fisher_score(moments), f_statistic(moments)
    (array([4.]), array([4.]), array([8.]))
    """
    count, mean, variance = moments.read() if read is None else read
    scores = np.zeros(count.shape[1])
    _t(count, mean, variance, moments.effective_count(count), scores)
    return scores


def t_pvalues(moments: ClassMoments, read: Array | None = None, inflation: Inflation | None = None) -> Floats:
    """Return the probability of a larger difference of the class means, if they are equal.

    The test is Welch's, which allows different variances of the classes, with Student's t. The variance of a class is
    at least that of all rows: the few rows of a class may all be zeros, which is a poor estimate of its variance. For
    three classes or more it is the smallest of each class against the rest, times their number.

    Parameters
    ----------
    moments : ClassMoments
    read : ndarray of shape (3, n_classes, n_features), optional
        The result of `moments.read()`, if already computed.
    inflation : Inflation, optional
        Of the variances of dependent rows, for each test.

    Returns
    -------
    ndarray of shape (n_features,), float64
        1 if fewer than two classes have values, if these are two rows, or for a constant feature.

    Examples
    --------
    One of 300 rows is nonzero, and it is one of the three rows of class 1. That happens to one feature in 100:

    >>> moments = ClassMoments(n_features=1, n_classes=2)
    >>> moments.update(np.eye(300)[:, :1], (np.arange(300) < 3).astype(int))
    True
    >>> bool(t_pvalues(moments) > 0.01)
    True
    """
    count, mean, variance = moments.read() if read is None else read
    n_classes, effective = len(count), moments.effective_count(count)
    t, freedom = np.zeros((2, 1 if n_classes == 2 else n_classes, count.shape[1]))
    _t_tests(count, mean, variance, effective, t, freedom)
    if inflation is not None:
        t, freedom = t / np.sqrt(inflation.inflation), np.minimum(freedom, inflation.blocks)
        effective = effective / inflation.inflation.max(axis=0)
    first = effective[: len(t)]
    tail = np.where(
        np.isinf(t),
        _by_chance(first, effective.sum(axis=0) - first),
        2.0 * scipy.special.stdtr(np.maximum(freedom, 1.0), -t),
    )
    tail = np.where(np.isnan(t), 1.0, tail)  # undetermined
    return np.minimum(len(t) * tail.min(axis=0), 1.0)


def trend(
    moments: ClassMoments, read: Array | None = None, inflation: Inflation | None = None
) -> tuple[Floats, Floats]:
    """Return equation (4) of each feature, and the probability of a larger trend if all means are equal.

    The probability is that of Student's t, with Welch's degrees of freedom. The variance of a level is at least that of
    all rows, as in :func:`t_pvalues`.

    Parameters
    ----------
    moments : ClassMoments
        Of the levels, in order.
    read : ndarray of shape (3, n_classes, n_features), optional
        The result of `moments.read()`, if already computed.
    inflation : Inflation, optional
        Of the variances of dependent rows.

    Returns
    -------
    scores, pvalues : ndarray of shape (n_features,), float64
        0 and 1 if fewer than two levels have values, or for a constant feature.

    Examples
    --------
    >>> moments = ClassMoments(n_features=1, n_classes=3)
    >>> moments.update(np.array([[-1.0], [1.0], [1.0], [3.0], [3.0], [5.0]]), np.array([0, 0, 1, 1, 2, 2]))
    True
    >>> trend(moments)[0]
    array([4.])
    """
    count, mean, variance = moments.read() if read is None else read
    e = moments.effective_count(count)
    total = np.maximum(count.sum(axis=0), 1e-300)
    level = np.arange(float(len(count)))[:, None]
    a = count * (level - (count * level).sum(axis=0) / total) / total
    centre = (count * mean).sum(axis=0) / total
    # Rounding errors are not a trend: see `_gap`.
    moved = np.where(np.abs(mean - centre) > _ROUNDING * np.abs(mean), mean - centre, 0.0)
    gap = np.abs((a * moved).sum(axis=0))
    share = a**2 / np.maximum(e, 1e-300)
    score = _divide(gap, np.sqrt((share * variance).sum(axis=0)))

    pooled = (e * variance).sum(axis=0) / np.maximum(e.sum(axis=0) - (e > 0.0).sum(axis=0), 1.0)
    own = share * np.maximum(variance * e / np.maximum(e - 1.0, 1.0), pooled)
    # In units of a power of two, which changes no bit: squares of large numbers would overflow.
    unit = np.ldexp(own, -np.frexp(own.max(axis=0))[1])
    freedom = _divide(unit.sum(axis=0) ** 2, (unit**2 / np.maximum(e - 1.0, 1.0)).sum(axis=0))
    t = _divide(gap, np.sqrt(own.sum(axis=0)))
    if inflation is not None:
        t, freedom = t / np.sqrt(inflation.inflation[0]), np.minimum(freedom, inflation.blocks)
        e = e / inflation.inflation[0]
    tail = 2.0 * scipy.special.stdtr(np.clip(freedom, 1.0, 1e300), -t)
    tail = np.where(np.isinf(t), _by_chance(*e), np.where(np.isnan(t), 1.0, tail))
    return score, np.minimum(tail, 1.0)


def _divide(a: Array, b: Array) -> Floats:
    """Return a / b; if b is 0: 0 if a is 0, else infinite."""
    return np.divide(a, b, out=np.where(a > 0.0, np.inf, 0.0), where=b > 0.0)


def _by_chance(*sizes: Array) -> Floats:
    """Return the probability that randomly assigned classes of these sizes are in one given order."""
    n: Floats = np.sum(sizes, axis=0)
    ways = scipy.special.gammaln(n + 1.0) - sum(scipy.special.gammaln(size + 1.0) for size in sizes)
    return np.exp(-np.maximum(ways, 0.0))


def fisher_score(moments: ClassMoments, read: Array | None = None) -> Floats:
    """Return equation (2) of each feature.

    Parameters
    ----------
    moments : ClassMoments
    read : ndarray of shape (3, n_classes, n_features), optional
        The result of `moments.read()`, if already computed.

    Returns
    -------
    ndarray of shape (n_features,), float64
        Infinite if the classes differ without variance within them; 0 for a constant or missing feature.
    """
    count, mean, variance = moments.read() if read is None else read
    scores = np.zeros(count.shape[1])
    _fisher(count, mean, variance, scores)
    return scores


def too_small(read: Array) -> int:
    """Return the first feature whose classes differ, but by less than `SMALLEST`, so that its score is 0; -1: none.

    Parameters
    ----------
    read : ndarray of shape (3, n_classes, n_features)
        The result of `moments.read()`.
    """
    return int(_too_small(read[0], read[1]))


def f_statistic(moments: ClassMoments) -> Floats:
    """Return equation (3) of each feature: the F statistic of a one-way analysis of variance.

    If rows fade or have weights, n_c is the effective size e_c of the class, W^2 / W2 for weights with sum W and sum of
    squares W2; otherwise both are equal.

    Parameters
    ----------
    moments : ClassMoments

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    count, mean, variance = moments.read()
    effective, scores = moments.effective_count(count), np.zeros(moments.n_features)
    _fisher(effective, mean, variance, scores)
    n, n_classes = effective.sum(axis=0), (effective > 0.0).sum(axis=0)
    scores *= np.maximum(n - n_classes, 0.0) / np.maximum(n_classes - 1, 1)  # (3)
    return scores


def fisher_pvalues(moments: ClassMoments, inflation: Inflation | None = None) -> Floats:
    """Return the probability of a larger difference of the class means, if they are equal.

    It is the larger p-value of two tests: that of F, (3), and Welch's analysis of variance, with the variances of
    :func:`t_pvalues`.

    Parameters
    ----------
    moments : ClassMoments
    inflation : Inflation, optional
        Of the variances of dependent rows.

    Returns
    -------
    ndarray of shape (n_features,), float64
        1 for a feature that is constant, or missing in all classes but one.
    """
    count, mean, variance = moments.read()
    e = moments.effective_count(count)
    n, n_classes = e.sum(axis=0), (e > 0.0).sum(axis=0)
    between, within = np.maximum(n_classes - 1, 1), np.maximum(n - n_classes, 1.0)
    f, all_rows = f_statistic(moments), (e * variance).sum(axis=0) / within

    unit = np.where(all_rows > 0.0, all_rows, 1.0)
    own = np.maximum(variance / unit * e / np.maximum(e - 1.0, 1.0), 1.0)
    weight = e / own
    total = np.maximum(weight.sum(axis=0), 1e-300)
    centre = (weight * mean).sum(axis=0) / total
    apart = (weight * ((mean - centre) / np.sqrt(unit)) ** 2).sum(axis=0) / between
    rest = ((e > 0.0) * (1.0 - weight / total) ** 2 / np.maximum(e - 1.0, 1.0)).sum(axis=0)
    rest /= np.maximum(n_classes**2 - 1, 1)
    welch = apart / (1.0 + 2.0 * np.maximum(n_classes - 2, 0) * rest)
    tail = np.maximum(
        scipy.special.fdtrc(between, within, f),
        scipy.special.fdtrc(between, 1.0 / np.maximum(3.0 * rest, 1e-300), welch),
    )
    if inflation is not None:
        for statistic in (f, welch):
            tail = np.maximum(tail, inflation.pvalue(np.where(np.isinf(f), 0.0, statistic)))
        e = e / inflation.inflation[0]
    return np.where(np.isinf(f), np.nan_to_num(_by_chance(*e), nan=1.0), tail)


@njit(strict=True)
def _gap(a: float, b: float) -> float:
    """Return |a - b|; 0 if it is due to rounding, or too small to be squared."""
    gap = abs(a - b)
    return 0.0 if gap <= max(_ROUNDING * abs(a), SMALLEST) else gap


@njit(strict=True)
def _ratio(a: float, b: float) -> float:
    """Return a / b; if b is 0: 0 if a is 0, else infinite."""
    if b > 0.0:
        return a / b
    return np.inf if a > 0.0 else 0.0


@njit(strict=True)
def _t(count: Array, mean: Array, variance: Array, effective: Array, scores: Array) -> None:
    """Write (1); for three classes or more the largest of each class against the rest."""
    n_classes = mean.shape[0]
    rest = np.empty((3, n_classes))
    for j in range(mean.shape[1]):
        if n_classes > 2:
            _rests(count[:, j], mean[:, j], variance[:, j], effective[:, j], rest)
        for k in range(1 if n_classes == 2 else n_classes):
            centre = mean[n_classes - 1, j]
            spread = variance[n_classes - 1, j]
            e = effective[n_classes - 1, j]
            if n_classes > 2:
                centre, spread, e = rest[0, k], rest[1, k], rest[2, k]
            if effective[k, j] > 0.0 and e > 0.0:
                error = np.sqrt(variance[k, j] / effective[k, j] + spread / e)
                scores[j] = max(scores[j], _ratio(_gap(mean[k, j], centre), error))  # (1)


@njit(strict=True)
def _t_tests(count: Array, mean: Array, variance: Array, effective: Array, t: Array, freedom: Array) -> None:
    """Write t and its degrees of freedom of each class against the rest."""
    rest = np.empty((3, mean.shape[0]))
    for j in range(t.shape[1]):
        _rests(count[:, j], mean[:, j], variance[:, j], effective[:, j], rest)
        for k in range(t.shape[0]):
            centre, spread, e = rest[0, k], rest[1, k], rest[2, k]
            n = effective[k, j]
            if n <= 0.0 or e <= 0.0 or n + e <= 2.0:
                continue
            all_rows = (n * variance[k, j] + e * spread) / (n + e - 2.0)
            a = max(variance[k, j] / max(n - 1.0, 1.0), all_rows / n)
            b = max(spread / max(e - 1.0, 1.0), all_rows / e)
            share = _ratio(a, a + b)
            t[k, j] = _ratio(_gap(mean[k, j], centre), np.sqrt(a + b))
            freedom[k, j] = 1.0 / (share**2 / max(n - 1.0, 1.0) + (1.0 - share) ** 2 / max(e - 1.0, 1.0))


@njit(strict=True)
def _rest(k: int, count: Array, mean: Array, variance: Array, effective: Array) -> tuple[float, float, float]:
    """Return mean, variance and effective size of all classes except k together."""
    n, total, e, squares = 0.0, 0.0, 0.0, 0.0
    for c in range(len(count)):
        if c != k:
            n += count[c]
            total += count[c] * mean[c]
            e += effective[c]
    if n == 0.0:
        return 0.0, 0.0, 0.0
    centre = total / n
    for c in range(len(count)):
        if c != k:
            squares += count[c] * (variance[c] + (mean[c] - centre) ** 2)
    return centre, squares / n, e


@njit(strict=True)
def _rests(count: Array, mean: Array, variance: Array, effective: Array, rest: Array) -> None:
    """Write mean, variance and effective size of all classes except each one of them, in O(classes)."""
    n_classes = len(count)
    if n_classes <= _MANY_CLASSES:
        for k in range(n_classes):
            rest[0, k], rest[1, k], rest[2, k] = _rest(k, count, mean, variance, effective)
        return
    rows, total = 0.0, 0.0
    for c in range(n_classes):
        rows += count[c]
        total += count[c] * mean[c]
    middle = total / rows if rows > 0.0 else 0.0
    sums = np.zeros((n_classes, 4))  # rows, deviations from the middle, their squares, effective rows
    for first in (0, n_classes - 1):
        n, deviation, squares, e = 0.0, 0.0, 0.0, 0.0
        for i in range(n_classes):
            c = abs(first - i)
            sums[c, 0] += n
            sums[c, 1] += deviation
            sums[c, 2] += squares
            sums[c, 3] += e
            n += count[c]
            deviation += count[c] * (mean[c] - middle)
            squares += count[c] * (variance[c] + (mean[c] - middle) ** 2)
            e += effective[c]
    for c in range(n_classes):
        n = sums[c, 0]
        shift = sums[c, 1] / n if n > 0.0 else 0.0
        rest[0, c] = middle + shift if n > 0.0 else 0.0
        rest[1, c] = max(sums[c, 2] / n - shift * shift, 0.0) if n > 0.0 else 0.0
        rest[2, c] = sums[c, 3]


@njit(strict=True)
def _fisher(count: Array, mean: Array, variance: Array, scores: Array) -> None:
    """Write (2)."""
    for j in range(mean.shape[1]):
        n, total, between, within, lowest, highest = 0.0, 0.0, 0.0, 0.0, np.inf, -np.inf
        for c in range(mean.shape[0]):
            n += count[c, j]
            total += count[c, j] * mean[c, j]
            if count[c, j] > 0.0:
                lowest, highest = min(lowest, mean[c, j]), max(highest, mean[c, j])
        if n > 0.0 and _gap(highest, lowest) > 0.0:
            for c in range(mean.shape[0]):
                between += count[c, j] * (mean[c, j] - total / n) ** 2
                within += count[c, j] * variance[c, j]
            scores[j] = _ratio(between, within)  # (2)


@njit(strict=True)
def _too_small(count: Array, mean: Array) -> int:
    for j in range(mean.shape[1]):
        lowest, highest = np.inf, -np.inf
        for c in range(mean.shape[0]):
            if count[c, j] > 0.0:
                lowest, highest = min(lowest, mean[c, j]), max(highest, mean[c, j])
        if lowest < highest and max(highest - lowest, highest, -lowest) <= SMALLEST:
            return j
    return -1
