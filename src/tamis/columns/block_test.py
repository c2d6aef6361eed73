"""Tests of a coefficient that are valid for autocorrelated rows.

With z the part of the candidate outside the span of the selected features, r the residual of the model without it, n
rows, c = z.r, and a = z - (c / |r|^2) r, the variance V of c and its degrees of freedom nu are those of two unrelated
series, from the spectra of a and r ((11) of :mod:`tamis.dependence.autocorrelation`). The rows are also divided into at
most 32 blocks, of which block k has the share f_k of the rows and the sum c_k of z_i r_i::

    W = sum_k (c_k - f_k c)^2 / (1 - sum_k f_k^2)                                                            (1)
    t^2 = c^2 / max(V, W),    degrees of freedom  min(nu, 1 / sum_k f_k^2 - 1)                               (2)

The t statistic of symmetric sums has at most its nominal rate, at levels below .08, however much their variances differ
(Bakirov, Szekely), so neither a volatility that z and r share nor heavy tails make (2) too large. With fewer than four
degrees of freedom the test is undetermined, p = 1.

Slow rows contain few independent values, but their changes contain many. The test is therefore repeated after the
coefficients of z, r and the selected features at f cycles per n rows are divided by the root of the mean power of r at
.7 to 1.4 f, without f < 3: generalised least squares with the autocorrelation of r (Hannan). The p-value is the smaller
of both, times the number of them that are determined; the first is at least that of the model.

Models that store no rows have the sums of blocks alone. With e = r - (c / |z|^2) z, L the length of the blocks, l the
correlation length of r and m its memory (4a of :mod:`tamis.dependence.autocorrelation`)::

    t^2 = c^2 (1 - sum_k f_k^2) / (sum_k (sum of z_i e_i over block k)^2 (1 + max(5 l / 3, m / 2) / L))     (3)

The blocks are the shortest of lengths 2.5 l and 2 m; or of eight times the excess of a itself, if that does not rise
with the length, since z_i e_i decorrelates with either of them. The variance between blocks is underestimated by a
share of about l / L, hence the factor, and in lots of m rows by m / 3 L.

Where few regimes were seen, blocks of any length may look alike by chance. So the memory is unknown if the blocking
curve of r rises up to the longest blocks with a growth s above .65, and a does not count if its blocks are dependent
and its s exceeds .5. If m is unknown and s of a is smaller, the variance is multiplied by (10a).

A row of weight w counts as w consecutive rows.

Bakirov, Szekely: Student's t-test for Gaussian scale mixtures, Journal of Mathematical Sciences 139(3), 2006.
Ibragimov, Mueller: t-statistic based correlation and heterogeneity robust inference, JBES 28(4), 2010 (few blocks).
Hannan: Regression for time series, in Rosenblatt (ed.), Time Series Analysis, 1963.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from tamis._validation import Floats
from tamis.columns.projection import Evidence, evidence_outside
from tamis.columns.tails import log_t_tail
from tamis.dependence.autocorrelation import (
    DEPENDENT,
    GROWTH,
    block_sums,
    cross_inflation,
    extrapolation,
    flat_level,
    fourier,
    growth,
    join_pairs,
    lasts_long,
    local_mean,
    power_spectrum,
)

Complex = NDArray[np.complex128]
_MOST = 32
_FEWEST_DF = 4.0
_LENGTHS, _MEMORIES, _OWN_LENGTHS = 2.5, 2.0, 8.0
_SHORTFALL = 1.0 / (1.0 - 1.0 / _LENGTHS)  # the chord of 1 / (1 - l / L) between l / L = 0 and 1 / 2.5
_CELLS = 1 << 20  # values transformed together: 8 MB
_LOWEST = 3  # cycles
_RANGE = 1e-15  # smallest share of the power at one frequency
_NULL = 1e-12  # length of a feature that is constant, once whitened, relative to the largest factor


# -- sums over blocks ------------------------------------------------------------------------------------------


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
) -> Floats:
    """Return the log p-values from sums over blocks, (3), joined until they are long enough.

    Parameters
    ----------
    own, scores : ndarray of shape (n_blocks, m), float64
        Sums of a and of z e over the rows of each block.
    share : ndarray of shape (n_blocks,), float64
        f.
    size : float
        L, in rows.
    square, c : ndarray of shape (m,), float64
        ``|a|^2`` and c.
    length, memory : float
        l and m, in rows.

    Returns
    -------
    ndarray of shape (m,), float64
        0 (undetermined) where fewer than five blocks are long enough.
    """
    log_p, missing = np.zeros(len(c)), np.ones(len(c), dtype=bool)
    s = growth(*_curve(own, 4))
    while missing.any() and len(share) > 1:
        spare = 1.0 - float(share @ share)
        if (df := 1.0 / (1.0 - spare) - 1.0) < _FEWEST_DF:
            break
        excess = (own**2).sum(axis=0) / np.maximum(spare * square, 1e-300)
        slow = excess > 1.0 + DEPENDENT * math.sqrt(2.0 / (df + 1.0))
        rises = flat_level(*_curve(own, 8)) > 0
        flat = (size >= _OWN_LENGTHS * excess) & ~rises & ~(slow & (s > GROWTH))
        here = missing & (flat | (size >= max(_LENGTHS * length, _MEMORIES * memory)))
        most = max(_SHORTFALL * length, memory / 2.0)
        factor = 1.0 + np.where(here, np.where(flat, np.minimum(_SHORTFALL * excess, most), most), 0.0) / size
        if math.isinf(memory):
            factor *= extrapolation(np.where(slow & flat, s, 0.0), df + 1.0)
        meat = (scores**2).sum(axis=0) / spare * factor
        log_p[here] = log_t_tail(c * c / np.maximum(meat, 1e-300), df)[here]
        missing &= ~here
        own, scores, share, size = join_pairs(own), join_pairs(scores), join_pairs(share), 2 * size
    return log_p


def _curve(sums: Floats, fewest: int) -> tuple[Floats, Floats]:
    """Return the sums of squares over blocks of this length and its doubles, and their number."""
    square, blocks = [], []
    while len(sums) >= fewest:
        square.append((sums**2).sum(axis=0))
        blocks.append(float(len(sums)))
        sums = join_pairs(sums)
    return np.array(square).reshape(len(blocks), sums.shape[1]), np.array(blocks)


# -- rows ------------------------------------------------------------------------------------------------------


def _test(z: Floats, r: Floats, of_z: Complex, of_r: Complex, in_runs: bool = False) -> tuple[Floats, Floats]:
    """Return t^2 and its degrees of freedom, (2).

    Parameters
    ----------
    z, of_z : ndarray of shape (m, n_rows) and (m, n_frequencies)
        Columns and their Fourier coefficients.
    r, of_r : ndarray of shape (1 or m, n_rows) and (1 or m, n_frequencies)
        Residuals and their Fourier coefficients.
    in_runs : bool, default=False
        Whether the target lasts for many rows.
    """
    of_z, of_r, z, r = of_z / _length(z), of_r / _length(r), z / _length(z), r / _length(r)
    n, size = z.shape[1], math.ceil(z.shape[1] / _MOST)
    by_row = z * r
    c = by_row.sum(axis=1)
    A, F = power_spectrum(of_z - c[:, None] * of_r), power_spectrum(of_r)
    inflation, nu = cross_inflation(A, F, in_runs)
    V = 2.0 / n**2 / max(A.shape[1], 1) * inflation * A.sum(axis=1) * F.sum(axis=1)
    share = block_sums(np.ones((n, 1)), size)[:, 0] / n
    spare = max(1.0 - float(share @ share), 1e-300)
    sums = block_sums(by_row.T, size)
    W = ((sums - share[:, None] * c) ** 2).sum(axis=0) / spare  # (1)
    t2 = c * c / np.maximum(np.maximum(V, W), 1e-300)
    return t2, np.minimum(nu, 1.0 / (1.0 - spare) - 1.0)


def _length(rows: Floats) -> Floats:
    """Return the lengths of rows, shape (m, 1)."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-300)
    return np.maximum(largest * np.linalg.norm(rows / largest, axis=1, keepdims=True), 1e-300)


class _Series:
    """A residual and the selected features as consecutive rows of weight 1, and whitened by the residual's spectrum.

    Parameters
    ----------
    residual : ndarray of shape (n_rows,), float64
    basis : ndarray of shape (n_rows, k), float64
        Both are multiplied by the square root of the weights, the target is not.
    target : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64
        Positive.
    """

    def __init__(self, residual: Floats, basis: Floats, target: Floats, weight: Floats) -> None:
        self.in_runs = lasts_long(target)
        self._at: Any = slice(None)
        self._root = np.sqrt(weight)[:, None]
        if not (weight == 1.0).all():
            n, ends = len(weight), np.cumsum(weight)
            n_places = int(np.clip(round(ends[-1]), n / 2 + 1, 4 * n))  # weights may sum to any number
            self._at = np.searchsorted(ends, (np.arange(n_places) + 0.5) * (ends[-1] / n_places))
        self.residual, self.of_residual = self.rows(residual[:, None])
        mean = local_mean(power_spectrum(self.of_residual / _length(self.residual)))[0]
        f = np.arange(1, len(mean) + 1)
        self._factor = np.where(f >= _LOWEST, np.maximum(mean, _RANGE * mean.sum() + 1e-300) ** -0.5, 0.0)
        left, singular, axes = np.linalg.svd(self._whitened(self.rows(basis)[1])[0].T, full_matrices=False)
        kept = singular > _NULL * self._factor.max(initial=1e-300)
        self._left, self._singular, self._axes = left[:, kept], singular[kept], axes[kept]
        self._of_left = fourier(np.ascontiguousarray(self._left.T))
        self.white, self.of_white = self.outside(self.of_residual)

    def rows(self, values: Floats) -> tuple[Floats, Complex]:
        """Return columns, shape (n_rows, k), as rows, each value repeated by its weight, and their coefficients."""
        rows = np.ascontiguousarray((values / self._root)[self._at].T)
        return rows, fourier(rows)

    def _whitened(self, of_rows: Complex) -> tuple[Floats, Complex]:
        """Return rows whose Fourier coefficients are divided by the root of the spectrum of the residual."""
        n = self.residual.shape[1]
        padded = np.zeros((len(of_rows), n // 2 + 1), dtype=np.complex128)
        padded[:, 1 : 1 + of_rows.shape[1]] = of_rows * self._factor
        return scipy.fft.irfft(padded, n), padded[:, 1 : 1 + of_rows.shape[1]]

    def outside(self, of_rows: Complex) -> tuple[Floats, Complex]:
        """Return the part of whitened rows outside the span of the whitened basis, and its coefficients."""
        white, of_white = self._whitened(of_rows)
        inside = white @ self._left
        return white - inside @ self._left.T, of_white - inside @ self._of_left

    def features_outside(self, coordinates: Floats) -> tuple[Floats, Complex]:
        """Return each feature's whitened part outside the others, from its coordinates (k, q) in the basis."""
        inside = ((self._axes @ coordinates) / self._singular[:, None]).T
        square = np.maximum(np.einsum("ij,ij->i", inside, inside), 1e-300)
        inside *= (np.einsum("ij,ij->j", coordinates, coordinates) / square)[:, None]
        return inside @ self._left.T, inside @ self._of_left

    def slopes(self, outside: Floats) -> Floats:
        """Return the coefficients of the whitened residual of features' whitened parts."""
        square = np.maximum(np.einsum("ij,ij->i", outside, outside), 1e-300)
        return outside @ self._whitened(self.of_residual)[0][0] / square


def _combined(
    level: tuple[Floats, Floats], white: tuple[Floats, Floats], bound: Floats
) -> tuple[Floats, Floats]:
    """Return t^2 and the log p-value of the two tests; `bound` is the log p-value of the model."""
    tests = np.array([level, white])
    determined = tests[:, 1] >= _FEWEST_DF
    log_p = log_t_tail(tests[:, 0], np.maximum(tests[:, 1], 1.0))
    log_p[0] = np.maximum(log_p[0], bound)
    log_p = np.where(determined, log_p, 0.0)
    best = log_p.argmin(axis=0)
    some = np.maximum(determined.sum(axis=0), 1)
    statistic = np.where(determined, tests[:, 0], 0.0)
    at = (best, np.arange(len(best)))
    return statistic[at], np.minimum(log_p[at] + np.log(some), 0.0)


def series_log_p(
    z: Floats,
    slope: Floats,
    residual: Floats,
    basis: Floats,
    model_log_p: Floats,
    target: Floats,
    weight: Floats,
) -> Floats:
    """Return the log p-values of features of the model.

    Parameters
    ----------
    z : ndarray of shape (n_rows, q), float64
        The part of each feature outside the span of the others.
    slope : ndarray of shape (q,), float64
        Coefficients.
    residual : ndarray of shape (n_rows,), float64
        Residual of the model with all features.
    basis : ndarray of shape (n_rows, k), float64
        Orthonormal, of the intercept and all features.
    model_log_p : ndarray of shape (q,), float64
        Log p-values under the model's own variance.
    target : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64
        Positive; the square roots are factors of the rows of the other arrays but `target`.

    Returns
    -------
    ndarray of shape (q,), float64
    """
    series = _Series(residual, basis, target, weight)
    (rows, of_rows), (outside, of_outside) = series.rows(z), series.features_outside(basis.T @ z)
    slopes, of_white = slope + series.slopes(outside), series.of_white
    with_rows = series.residual + slope[:, None] * rows
    of_with = series.of_residual + slope[:, None] * of_rows
    level = _test(rows, with_rows, of_rows, of_with, series.in_runs)
    with_outside = series.white + slopes[:, None] * outside
    white = _test(outside, with_outside, of_outside, of_white + slopes[:, None] * of_outside)
    return _combined(level, white, model_log_p)[1]


def series_evidence(
    X: Floats,
    basis: Floats,
    residual: Floats,
    centred: bool,
    model_log_p: Callable[[Floats], Floats],
    target: Floats,
    weight: Floats,
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
    target : ndarray of shape (n_rows,), float64
        Without weights.
    weight : ndarray of shape (n_rows,), float64
        Positive: a row counts as that many consecutive rows.

    Returns
    -------
    Evidence
        ``statistic`` is t^2 of (2), ``log_p`` the logarithm of the combined p-value.

    Examples
    --------
    20 unrelated columns and a residual of 1000 rows, in which each value is repeated for 5 rows:

    >>> from tamis.columns.tails import log_chi2_tail
    >>> rng = np.random.default_rng(0)
    >>> X, r = np.repeat(rng.normal(size=(200, 20)), 5, axis=0), np.repeat(rng.normal(size=200), 5)
    >>> X, r = X - X.mean(axis=0), r - r.mean()
    >>> plain = log_chi2_tail((r @ X) ** 2 / (X**2).sum(axis=0))
    >>> series = series_evidence(X, np.full((1000, 1), 1000**-0.5), r, True, log_chi2_tail, r, np.ones(1000)).log_p
    >>> int((plain < np.log(0.01)).sum()), int((series < np.log(0.01)).sum())
    (4, 0)
    """
    series = _Series(residual, basis, target, weight)

    def test(z: Floats, zz: Floats, c: Floats) -> tuple[Floats, Floats]:
        bound = model_log_p(c * c / zz)
        statistic, log_p = np.empty(len(c)), np.empty(len(c))
        step = max(1, _CELLS // len(z))
        for part in (slice(start, start + step) for start in range(0, len(c), step)):
            rows, of_rows = series.rows(z[:, part])
            level = _test(rows, series.residual, of_rows, series.of_residual, series.in_runs)
            white, of_white = series.outside(of_rows)
            tests = level, _test(white, series.white, of_white, series.of_white)
            statistic[part], log_p[part] = _combined(*tests, bound[part])
        return statistic, log_p

    return evidence_outside(X, basis, residual, centred, test, lambda drop: np.full(len(drop), -np.inf))
