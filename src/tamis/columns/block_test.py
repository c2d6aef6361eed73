"""Tests of a coefficient that are valid for autocorrelated rows: variance of its score between blocks of rows.

With z the part of the candidate outside the span of the selected features, r the residual of the model without it, and
consecutive blocks of L rows, at most 32 of them, where a row of weight w counts as w consecutive rows::

    c = z.r,  e = r - (c / |z|^2) z,  B_k = sum of z_i e_i over block k,  f_k = rows of block k / n           (1)
    t^2 = c^2 (1 - sum_k f_k^2) / (sum_k B_k^2 (1 + max(5 l / 3, m / 2) / L))                                 (2)
    p = max(p_series, p_model), p_model from the variance of the model                                        (3)

The p-value is that of Student's t with 1 / sum_k f_k^2 - 1 degrees of freedom.

The residual of a generalised linear model combines the long memory of its target with independent noise, so l is
underestimated from few blocks. With r_k the correlation of s_i = z_i e_i at lag k, the denominator in (2) is therefore
bounded from below by the long-run variance of an ARMA(1, 1) series::

    |s|^2 (1 + 2 r_1 / (1 - min(r_2 / r_1, .95)))  and  |s|^2 (1 + r_1) / (1 - r_1)                          (4)

l is the correlation length of r: the largest ratio of the variance of block sums to that of independent rows, over all
block lengths with four or more blocks. The variance between blocks is underestimated by a share of at most about l / L,
hence the factor in (2): it is at least 1 / (1 - l / L), with equality for the shortest blocks. Noise reduces l, but not
the memory m of r (4a of :mod:`tamis.dependence.autocorrelation`); in lots of m rows, the share is m / 3 L. For a
candidate that is tested because of its own excess, 5 / 3 of that is used if it is smaller. A candidate
is tested on the shortest blocks of lengths 2.5 l and 2 m; or of eight times the excess of z itself, if that does not
rise with the length, since z_i e_i decorrelates with either of them. The excess is that of z - (c / |r|^2) r: in a file
sorted by class, the difference of the classes does not count as dependence. If fewer than five such blocks exist, the
test is undetermined, and p = 1. The multiples were chosen on unrelated AR(0.9) columns with 300 rows, the smallest with
which a linear model accepts fewer than 0.1 of 200 columns, and on lots of 50 rows.

Flyvbjerg, Petersen: Error estimates on averages of correlated data, Journal of Chemical Physics 91, 1989.
Ibragimov, Mueller: t-statistic based correlation and heterogeneity robust inference, JBES 28(4), 2010 (few blocks).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tamis.columns.projection import Evidence, evidence_outside
from tamis.columns.tails import log_t_tail
from tamis.dependence.autocorrelation import (
    block_sums,
    correlation_length,
    flat_level,
    join_pairs,
    memory_length,
)

__all__ = ["blocked_log_p", "is_determined", "series_evidence", "series_log_p"]

Floats = NDArray[np.float64]
_MOST = 32
_FEWEST_DF = 4.0
_LENGTHS, _MEMORIES, _OWN_LENGTHS = 2.5, 2.0, 8.0
_SHORTFALL = 1.0 / (1.0 - 1.0 / _LENGTHS)  # the chord of 1 / (1 - l / L) between l / L = 0 and 1 / 2.5
_LARGEST_RATIO = 0.95


def is_determined(share: Floats, size: float, length: float, memory: float) -> bool:
    """Whether there are enough blocks of sufficient length for a residual of this correlation length and memory."""
    enough = max(_LENGTHS * length, _MEMORIES * memory)
    while size < enough and len(share) > 1:
        share, size = join_pairs(share), 2 * size
    return bool(size >= enough and 1.0 / float(share @ share) - 1.0 >= _FEWEST_DF)


def blocked_log_p(
    own: Floats,
    scores: Floats,
    share: Floats,
    size: float,
    square: Floats,
    c: Floats,
    length: float,
    memory: float,
    least: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Return t^2 of (2) and its log p-value from sums over blocks, joined until they are long enough.

    Parameters
    ----------
    own, scores : ndarray of shape (n_blocks, m), float64
        Sums of z - (c / |r|^2) r and of z e over the rows of each block.
    share : ndarray of shape (n_blocks,), float64
        f.
    size : float
        L, in rows.
    square, c : ndarray of shape (m,), float64
        ``|z - (c / |r|^2) r|^2`` and c.
    length, memory : float
        l and m, in rows.
    least : ndarray of shape (m,) or float, default=0
        Lower bound on the denominator of (2).

    Returns
    -------
    t2, log_p : ndarray of shape (m,), float64
        0 (undetermined) where fewer than five blocks are long enough.
    """
    t2, log_p, missing = np.zeros(len(c)), np.zeros(len(c)), np.ones(len(c), dtype=bool)
    while missing.any() and len(share) > 1:
        spare = 1.0 - float(share @ share)
        if (df := 1.0 / (1.0 - spare) - 1.0) < _FEWEST_DF:
            break
        excess = (own**2).sum(axis=0) / np.maximum(spare * square, 1e-300)
        meat = (scores**2).sum(axis=0) / spare
        flat = (size >= _OWN_LENGTHS * excess) & ~_rises(own)
        here = missing & (flat | (size >= max(_LENGTHS * length, _MEMORIES * memory)))
        most = max(_SHORTFALL * length, memory / 2.0)
        short = np.where(flat, np.minimum(_SHORTFALL * excess, most), most)
        meat = np.maximum(meat * (1.0 + short / size), least)
        statistic = c * c / np.maximum(meat, 1e-300)
        t2[here], log_p[here] = statistic[here], log_t_tail(statistic[here], df)
        missing &= ~here
        own, scores, share, size = join_pairs(own), join_pairs(scores), join_pairs(share), 2 * size
    return t2, log_p


def _rises(sums: Floats) -> NDArray[np.bool_]:
    """Return whether the variance of the sums over blocks rises with the length of the blocks."""
    square, blocks = [], []
    while len(sums) >= 8:
        square.append((sums**2).sum(axis=0))
        blocks.append(float(len(sums)))
        sums = join_pairs(sums)
    return flat_level(np.array(square).reshape(len(blocks), sums.shape[1]), np.array(blocks)) > 0


def _lagged(s: Floats, k: int, weight: Floats | None) -> Floats:
    """Return the sum of s_i s_(i+k) over the rows, each repeated by its weight."""
    if weight is None:
        return np.einsum("ij,ij->j", s[k:], s[:-k])
    ends = np.cumsum(weight)
    borders = np.unique(np.concatenate([[0.0], ends, ends - k]))
    borders = borders[(borders >= 0.0) & (borders <= ends[-1] - k)]
    middle = (borders[1:] + borders[:-1]) / 2.0
    one, other = (s[np.searchsorted(ends, at)] for at in (middle, middle + k))
    return np.einsum("i,ij,ij->j", np.diff(borders), one, other)


def _long_run(scores: Floats, weight: Floats | None) -> Floats:
    """Return the larger value of (4) for each column of s, which is multiplied by the weights."""
    s = scores if weight is None else scores / weight[:, None]
    n = len(scores) if weight is None else float(weight.sum())
    square = np.maximum(np.einsum("ij,ij->j", scores, s), 1e-300)
    r1, r2 = (_lagged(s, k, weight) * (n / (n - k) / square) if k < n else square * 0.0 for k in (1, 2))
    first = np.clip(r1, 0.0, _LARGEST_RATIO)
    ratio = np.divide(r2, r1, out=np.zeros_like(r1), where=first > 0.0)
    decay = np.maximum(np.clip(ratio, 0.0, _LARGEST_RATIO), first)
    return square * (1.0 + 2.0 * first / (1.0 - decay))


def _log_p(
    z: Floats, slope: Floats, residual: Floats, c: Floats, weight: Floats | None, by_lags: bool = False
) -> tuple[Floats, Floats]:
    """Return t^2 of (2) and its log p-value for columns z, with e = residual - slope z."""
    root = None if weight is None else np.sqrt(weight)
    plain = residual if root is None else residual / root
    length, memory = correlation_length(plain, weight), float(memory_length(plain[None], weight)[0])
    n = len(z) if weight is None else float(weight.sum())
    size = math.ceil(n / _MOST)
    by_row = z * (residual[:, None] - z * slope)
    shared = residual @ z
    apart = z - np.outer(residual / max(float(residual @ residual), 1e-300), shared)
    square = np.einsum("ij,ij->j", apart, apart)
    own, scores = (
        block_sums(values, size, weight)
        for values in (apart if root is None else apart * root[:, None], by_row)
    )
    ones = np.ones(len(z)) if weight is None else weight
    share = block_sums(ones[:, None], size, weight)[:, 0] / n
    least = _long_run(by_row, weight) if by_lags else 0.0
    return blocked_log_p(own, scores, share, size, square, c, length, memory, least)


def series_log_p(z: Floats, slope: Floats, residual: Floats, weight: Floats) -> Floats:
    """Return the logarithms of (2) for features of the model.

    Parameters
    ----------
    z : ndarray of shape (n_rows, q), float64
        The part of each feature outside the span of the others.
    slope : ndarray of shape (q,), float64
        Coefficients.
    residual : ndarray of shape (n_rows,), float64
        Residual of the model with all features.
    weight : ndarray of shape (n_rows,), float64
        Positive.

    Returns
    -------
    ndarray of shape (q,), float64
    """
    c = slope * np.einsum("ij,ij->j", z, z)
    return _log_p(z, np.zeros(len(c)), residual, c, _unless_one(weight))[1]


def series_evidence(
    X: Floats,
    basis: Floats,
    residual: Floats,
    centred: bool,
    model_log_p: Callable[[Floats], Floats],
    weight: Floats,
    *,
    by_lags: bool = False,
) -> Evidence:
    """Return the test of each column of X, valid for autocorrelated rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, m), float64
    basis : ndarray of shape (n_rows, k), float64
        Orthonormal, of the intercept and the selected features; if `centred`, the intercept's column is the first.
    residual : ndarray of shape (n_rows,), float64
        X, `basis` and `residual` are multiplied by the square root of the weights of the rows.
    centred : bool
    model_log_p : callable
        Log p-values under the model's own variance, from ``c^2 / |z|^2`` of shape (m,).
    weight : ndarray of shape (n_rows,), float64
        Positive: a row counts as that many consecutive rows.
    by_lags : bool, default=False
        Whether (4) bounds the variance from below.

    Returns
    -------
    Evidence
        ``statistic`` is t^2 of (2), ``log_p`` the logarithm of (3).

    Examples
    --------
    20 unrelated columns and a residual of 1000 rows, in which each value is repeated for 5 rows:

    >>> from tamis.columns.tails import log_chi2_tail
    >>> rng = np.random.default_rng(0)
    >>> X, r = np.repeat(rng.normal(size=(200, 20)), 5, axis=0), np.repeat(rng.normal(size=200), 5)
    >>> X, r = X - X.mean(axis=0), r - r.mean()
    >>> plain = log_chi2_tail((r @ X) ** 2 / (X**2).sum(axis=0))
    >>> series = series_evidence(X, np.full((1000, 1), 1000**-0.5), r, True, log_chi2_tail, np.ones(1000)).log_p
    >>> int((plain < np.log(0.05)).sum()), int((series < np.log(0.05)).sum())
    (6, 1)
    """
    own_weight = _unless_one(weight)

    def test(z: Floats, zz: Floats, c: Floats) -> tuple[Floats, Floats]:
        return _log_p(z, c / zz, residual, c, own_weight, by_lags)

    return evidence_outside(X, basis, residual, centred, test, model_log_p)  # (3)


def _unless_one(weight: Floats) -> Floats | None:
    return None if (weight == 1.0).all() else weight
