"""The factor by which dependence between rows inflates the variance of a statistic, and its degrees of freedom.

With M the long-run covariance of the class means (:mod:`tamis.summaries.block_sums`), v_c / e_c the variance of the
mean of e_c independent rows of class c, and l_c the contrast of class c with the rest (1 for c, minus their shares for
the others)::

    inflation of T, class c       l_c' M l_c / sum_d l_cd^2 v_d / e_d                                          (1)

For a statistic that sums squares of d correlated terms, with V their covariance (the identity, projected to d
dimensions, if rows are independent), the Rao-Scott correction with Satterthwaite's degrees of freedom is::

    inflation = tr V / d,    freedom = (tr V)^2 / tr V^2                                                       (2)

The Fisher score has the terms (m_c - m) sqrt(n_c) over the spread within classes. Chi-square and 2 n MI have the terms
(observed - expected) / sqrt(expected), whose sum over a block k of rows is, for bin b and class c::

    (T_kbc - p_b n_kc - q_c r_kb + p_b q_c n_k) / sqrt(n p_b q_c)                                              (3)

V is estimated from blocks with nu degrees of freedom, so tr V^2 is reduced by its bias, and the statistic
divided by d and by the inflation is compared with F(freedom, nu freedom). No inflation is taken to be below 1.

Rao, Scott: The analysis of categorical data from complex sample surveys, JASA 76, 1981; On simple adjustments to
chi-square tests with sample survey data, Annals of Statistics 15, 1987 (F reference: Thomas, Rao, JASA 82, 1987).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.special
from numpy.typing import NDArray

from tamis._validation import Array

__all__ = [
    "Inflation",
    "anova_inflation",
    "contrast_inflation",
    "cycle_inflation",
    "feature_inflation",
    "inflated_pvalue",
    "table_inflation",
    "uncertainty",
]

_FEWEST_LAGS = 4  # whose variance is informative about a cycle


class Inflation(NamedTuple):
    """Inflation of a statistic's variance; nan where it is undetermined."""

    inflation: NDArray[np.float64]  # (n_features,), or (n_tests, n_features) for T
    freedom: NDArray[np.float64]  # degrees of freedom of the statistic, (n_features,)
    blocks: NDArray[np.float64]  # degrees of freedom of the estimate, (n_features,)


def contrast_inflation(
    covariance: Array, count: Array, variance: Array, effective: Array, lagged: Array | None = None,
    contrasts: Array | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the inflation (1) of the variance of the difference between each class mean and the rest, at least 1.

    Parameters
    ----------
    covariance : ndarray of shape (n_classes, n_classes, n_features), float64
        M.
    count, variance, effective : ndarray of shape (n_classes, n_features), float64
        Weight of the values, their variance within the class, and the effective number of rows.
    lagged : ndarray of shape (n_lags, n_classes, n_features), optional
        Class means by the labels of earlier rows. With four or more lags, the variance of the contrast over the lags is
        used if it is larger, so that a cycle shared by feature and label is not significant.
    contrasts : ndarray of shape (n_contrasts, n_classes, n_features), optional
        Other contrasts of the class means.

    Returns
    -------
    ndarray of shape (1 or n_classes, n_features), float64, or of as many rows as contrasts
        One test for two classes.

    Examples
    --------
    Means of 100 rows of each class whose variance is four times that of independent rows:

    >>> M = np.array([[0.04, 0.0], [0.0, 0.04]])[:, :, None]
    >>> hundred = np.full((2, 1), 100.0)
    >>> contrast_inflation(M, hundred, np.ones((2, 1)), hundred).round(6)
    array([[4.]])
    """
    iid = np.divide(variance, effective, out=np.zeros_like(count), where=effective > 0.0)
    items = []
    for contrast in _contrasts(count) if contrasts is None else contrasts:
        actual = np.einsum("cj,dj,cdj->j", contrast, contrast, covariance)
        if lagged is not None and len(lagged) >= _FEWEST_LAGS:
            actual = np.maximum(actual, _over_lags(contrast, lagged))
        expected = (contrast**2 * iid).sum(axis=0)
        items.append(np.divide(actual, expected, out=np.ones_like(actual), where=expected > 0.0))
    return np.maximum(items, 1.0)


def cycle_inflation(covariance: Array, count: Array, lagged: Array) -> NDArray[np.float64]:
    """Return the factor by which a common cycle exceeds the long-run variance of the contrast of any class, at least 1.

    Parameters
    ----------
    covariance, count, lagged
        As in :func:`contrast_inflation`.

    Returns
    -------
    ndarray of shape (n_features,), float64
        1 with fewer than four lags.
    """
    inflation = np.ones(count.shape[1])
    if len(lagged) < _FEWEST_LAGS:
        return inflation
    for contrast in _contrasts(count):
        own = np.einsum("cj,dj,cdj->j", contrast, contrast, covariance)
        over = np.divide(_over_lags(contrast, lagged), own, out=np.ones_like(own), where=own > 0.0)
        inflation = np.maximum(inflation, over)
    return inflation


def feature_inflation(
    covariance: Array, count: Array, variance: Array, effective: Array
) -> NDArray[np.float64]:
    """Return the factor by which dependence inflates the variance of a feature's mean within classes, at least 1.

    Parameters
    ----------
    covariance, count, variance, effective
        As in :func:`contrast_inflation`.

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    iid = np.divide(variance, effective, out=np.zeros_like(count), where=effective > 0.0)
    actual, expected = np.einsum("cj,dj,cdj->j", count, count, covariance), (count**2 * iid).sum(axis=0)
    values: NDArray[np.float64] = np.divide(actual, expected, out=np.ones_like(actual), where=expected > 0.0)
    return np.maximum(values, 1.0)


def _contrasts(count: Array) -> list[NDArray[np.float64]]:
    """Return the contrast of each class with the rest, (n_classes, n_features); of two classes one."""
    contrasts = []
    for c in range(1 if len(count) == 2 else len(count)):
        rest = count.copy()
        rest[c] = 0.0
        contrast = -rest / np.maximum(rest.sum(axis=0), 1e-300)
        contrast[c] = 1.0
        contrasts.append(contrast)
    return contrasts


def _over_lags(contrast: Array, lagged: Array) -> NDArray[np.float64]:
    variance: NDArray[np.float64] = (lagged * contrast).sum(axis=1).var(axis=0, ddof=1)
    return variance


def anova_inflation(
    covariance: Array, variance: Array, effective: Array, freedom: float, lagged: Array | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the inflation (2) of the Fisher score, and its degrees of freedom.

    Parameters
    ----------
    covariance, variance, effective, lagged
        As in :func:`contrast_inflation`.
    freedom : float
        Degrees of freedom of the estimate M.

    Returns
    -------
    inflation, freedom : ndarray of shape (n_features,), float64
        At least 1.
    """
    total = np.maximum(effective.sum(axis=0), 1e-300)
    within = ((1.0 - effective / total) * variance).sum(axis=0)
    centred = covariance - np.einsum("cj,cdj->dj", effective, covariance)[None] / total
    product = effective[:, None] * centred  # A M
    trace = np.einsum("ccj->j", product)
    square = np.einsum("cdj,dcj->j", product, product)
    dimensions = np.maximum((effective > 0.0).sum(axis=0) - 1.0, 1.0)
    left = _satterthwaite(trace, square, dimensions, freedom)
    if lagged is not None and len(lagged) >= _FEWEST_LAGS:
        centre = (lagged * effective).sum(axis=1, keepdims=True) / total
        trace = np.maximum(trace, (effective * (lagged - centre).var(axis=0, ddof=1)).sum(axis=0))
    inflation = np.divide(trace, within, out=np.ones_like(trace), where=within > 0.0)
    return np.maximum(inflation, 1.0), left


def table_inflation(
    counts: Array, weight2: Array, freedom: float, spread: Array | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the inflation (2) of chi-square and 2 n MI, its degrees of freedom, and that of the bins' own shares.

    Parameters
    ----------
    counts : ndarray of shape (n_blocks, n_classes, n_bins, n_features), float64
        Weights of the values in each bin.
    weight2 : ndarray of shape (n_blocks, n_classes), float64
        Sums of the squared weights of the rows.
    freedom : float
        Degrees of freedom of the blocks.
    spread : ndarray of shape (n_classes,), bool, optional
        Classes over which `own` is computed; by default all.

    Returns
    -------
    inflation, freedom : ndarray of shape (n_features,), float64
        1 for a feature in one bin.
    own : ndarray of shape (n_features,), float64
        The largest inflation of the share of a bin within the classes, at least 1.

    Examples
    --------
    Ten blocks, each consisting of one row repeated ten times:

    >>> rng = np.random.default_rng(0)
    >>> bins, classes = rng.integers(0, 2, (2, 600))
    >>> counts = np.zeros((60, 2, 2, 1))
    >>> np.add.at(counts, (np.arange(600) // 10, classes, bins, 0), 10.0)
    >>> inflation, freedom, own = table_inflation(counts, counts.sum(axis=(2, 3)), 59.0)
    >>> bool(7 < inflation[0] < 13), freedom, bool(own[0] > 7)
    (True, array([1.]), True)
    """
    n = np.maximum(counts.sum(axis=(0, 1, 2)), 1e-300)
    p = counts.sum(axis=(0, 1)) / n  # (bins, features)
    q = counts.sum(axis=(0, 2)) / n  # (classes, features)
    of_class, of_bin = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    of_block = counts.sum(axis=(1, 2), keepdims=True)
    expected = p * q[:, None]
    score = counts - p * of_class - q[:, None] * of_bin + expected * of_block  # (3)
    share = weight2.sum(axis=1) / max(float(weight2.sum()), 1e-300)
    score = score - share[:, None, None, None] * score.sum(axis=0)
    rows = weight2.sum() * (n / max(float(n.max(initial=0.0)), 1e-300))  # fewer where values are missing
    score *= np.sqrt(np.divide(1.0, rows * expected, out=np.zeros_like(expected), where=expected > 0.0))
    flat = score.reshape(len(counts), -1, counts.shape[3]) / np.sqrt(
        max(1.0 - float((share**2).sum()), 1e-300)
    )
    gram = np.einsum("kxj,lxj->klj", flat, flat)
    trace, square = np.einsum("kkj->j", gram), (gram**2).sum(axis=(0, 1))
    dimensions = np.maximum((p > 0.0).sum(axis=0) - 1.0, 0.0) * np.maximum((q > 0.0).sum(axis=0) - 1.0, 0.0)
    left = _satterthwaite(trace, square, np.maximum(dimensions, 1.0), freedom)
    inflation = np.divide(trace, dimensions, out=np.ones_like(trace), where=dimensions > 0.0)
    of_all = np.maximum(of_class.sum(axis=0), 1e-300)
    within = counts.sum(axis=0) / of_all  # share of each bin within each class
    here = np.ones(counts.shape[1], dtype=bool) if spread is None else spread
    gap = (counts - within * of_class)[:, here].sum(axis=1) / np.sqrt(
        max(1.0 - float((share**2).sum()), 1e-300)
    )
    iid = (weight2.sum(axis=0)[:, None, None] * within * (1.0 - within))[here].sum(axis=0) * (
        rows / weight2.sum()
    )
    own = np.divide((gap**2).sum(axis=0), iid, out=np.ones_like(iid), where=iid > 0.0).max(axis=0)
    return np.maximum(inflation, 1.0), left, np.maximum(own, 1.0)


def _satterthwaite(trace: Array, square: Array, dimensions: Array, freedom: float) -> NDArray[np.float64]:
    """Return (tr V)^2 / tr V^2 in [1, d], with tr V^2 corrected for its bias with `freedom` degrees of freedom."""
    nu = max(freedom, 1.0)
    less = (square - trace**2 / nu) / (1.0 + 1.0 / nu)
    values = np.divide(trace**2, less, out=dimensions.astype(np.float64), where=less > 0.0)
    clipped: NDArray[np.float64] = np.clip(values, 1.0, dimensions)
    return clipped


def uncertainty(blocks: Array, alpha: float) -> NDArray[np.float64]:
    """Return the squared ratio of Student's t to the normal quantile, since the variance of a band is estimated.

    Parameters
    ----------
    blocks : ndarray of shape (n_features,)
        nu.
    alpha : float
        In (0, 1).

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    t = scipy.special.stdtrit(np.maximum(blocks, 1.0), alpha / 2.0)
    ratio: NDArray[np.float64] = (t / scipy.special.ndtri(alpha / 2.0)) ** 2
    return ratio


def inflated_pvalue(statistic: Array, inflation: Array, freedom: Array, blocks: Array) -> NDArray[np.float64]:
    """Return the p-value of a statistic under the F distribution described in the module docstring.

    Parameters
    ----------
    statistic : ndarray of shape (n_features,)
        The statistic divided by its dimension d.
    inflation, freedom : ndarray of shape (n_features,)
        (2).
    blocks : ndarray of shape (n_features,)
        nu, the degrees of freedom of the estimate.

    Returns
    -------
    ndarray of shape (n_features,), float64
        1 where the inflation is NaN (undetermined).

    Examples
    --------
    >>> inflated_pvalue(np.array([8.0]), np.array([2.0]), np.array([1.0]), np.array([31.0])).round(3)
    array([0.054])
    """
    tail = scipy.special.fdtrc(freedom, np.maximum(blocks, 1.0) * freedom, statistic / inflation)
    p_values: NDArray[np.float64] = np.where(np.isnan(inflation), 1.0, tail)
    return p_values
