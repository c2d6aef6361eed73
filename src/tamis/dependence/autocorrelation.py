"""Autocorrelation of the rows of a stream: its detection, its range, and the effective number of rows.

**Detection: the blocking method.** The rows form B blocks of L = 2, 4, 8, ... rows. The variance of the sums of the
blocks is compared with that of independent rows. For a centred column x::

    R(L) = sum_b (sum of x over block b)^2 / (B L mean of x^2)                                                (1)

and for the N_bc rows of class c in block b, with q_c the proportion of the class, and C classes::

    D_c(L) = sum_b (N_bc - mean)^2 / ((B - 1) L q_c)                                                          (2)
    R_c(L) = D_c(L) / (1 - q_c),     R(L) = sum_c D_c(L) / (C - 1)                                            (3)

R is 1 for independent rows, with a standard error of sqrt(2 / nu), where nu is B - 1, or (B - 1) (C - 1). Rows are
autocorrelated if R exceeds 1 by more than three standard errors at some length::

    (R(L) - 1) sqrt(nu / 2) > 3                                                                               (4)

R then grows with L towards the variance inflation of the sums, 1 plus twice the sum of the autocorrelations: n rows
count as n / R independent ones. The products of two unrelated series decorrelate at least as fast as each of them, so
the smaller of the two inflations bounds that of their covariance. A row of weight w takes w places in a row, so it
counts in two blocks where a border falls within it.

**Memory.** Noise reduces R, but not the number of rows over which rows remain dependent: a lot of 200 rows whose effect
is a tenth of the variance has an R of 21. Blocks are independent from the length on at which R(L) is flat, so the
memory is the smallest length that no greater one exceeds significantly. With B and B' blocks of the lengths L < L'::

    R(L') / R(L) - 1 > 1.5 sqrt(2 / B' - 2 / B),    B' >= 8                                                    (4a)

The right side is 1.5 standard errors of the ratio of two such variances if blocks are independent. An estimate of a
variance needs blocks of twice the memory, and several of them; with fewer rows it is undetermined. The two numbers were
chosen on unrelated AR(.9), AR(.99), ARFIMA, lots and regimes of 3,000 and 12,000 rows: 1.65 detects slow states too
late, 1.3 is often exceeded by chance, and twice as long blocks have little power on AR(.9) rows.

**Values whose mean may change.** The squared differences of neighbouring blocks (Allan 1966) are affected little by a
shift of the mean. With s_k the sum of the k-th block of m = 2^l values, l = 0, 1, ..., 9, and P pairs of blocks::

    V(l) = sum_k (s_2k+1 - s_2k)^2 / (2 m P)                                                                  (5)
    v = sum_(l < top) V(l) / 2^(l + 1) + V(top - 1) / 2^top,    R(l) = V(l) / v                               (6)

v is the variance of one value, since (5) are the squared Haar coefficients of the values. A shift of the mean by d
alters one difference of each length, and adds at most m d^2 / (2 P v) to R(l). The levels read have at least 8 pairs
and m / 2, so this is at most d^2 / v. The levels tested by (4), with nu = P, have 4 m pairs: at most d^2 / (8 v).

This is a separate estimator because detectors keep no values, and the mean that (1) and (10) subtract would not be that
of the rows before a change. (1) and (10) use stored values or sums, whose mean is known; (11) both series whole, so it
needs neither a memory nor enough blocks, and is preferred where the rows are stored.

**Correction of a statistic.** With M the long-run covariance of the class means (:mod:`tamis.summaries.block_sums`),
v_c / e_c the variance of the mean of e_c independent rows of class c, and l_c the contrast of class c with the rest (1
for c, minus their shares for the others)::

    inflation of T, class c       l_c' M l_c / sum_d l_cd^2 v_d / e_d                                         (7)

For a statistic that sums squares of d correlated terms, with V their covariance (the identity, projected to d
dimensions, if rows are independent), the Rao-Scott correction with Satterthwaite's degrees of freedom is::

    inflation = tr V / d,    freedom = (tr V)^2 / tr V^2                                                      (8)

The Fisher score has the terms (m_c - m) sqrt(n_c) over the spread within classes. Chi-square and 2 n MI have the terms
(observed - expected) / sqrt(expected), whose sum over a block k of rows is, for bin b and class c::

    (T_kbc - p_b n_kc - q_c r_kb + p_b q_c n_k) / sqrt(n p_b q_c)                                             (9)

V is estimated from blocks with nu degrees of freedom, and the statistic divided by d and by the inflation is compared
with F(freedom, nu freedom). The bias of tr V^2 is left in it, since it offsets that of a ratio where the eigenvalues
of V differ, as those of dependent rows do: without it, too many p-values are small (`--only eigenvalues` of
experiments/dependent_rows.py). No inflation is taken to be below 1.

**Standard error of a mean.** With d_k the sum of the N_k values of part k, N their number, and the parts joined in
pairs until there are b blocks::

    mean = D / N,    error^2 = b / (b - 1) sum_k (d_k - mean N_k)^2 / N^2                                     (10)

If no joined blocks have a larger error than the parts by more than two standard errors, parts are independent.
Otherwise they are joined until blocks have four times the memory, since no second series shortens it. With fewer than
six blocks the error is undetermined. Its 95 % confidence interval is that of Student's t with b - 1 degrees of freedom.

**Growth.** If R grows by the factor 2^s with each doubling of the blocks, as under long memory with d = s / 2, it does
so beyond the longest blocks, and the deviation from the mean of few blocks is too small. For blocks whose sums have the
variance L^(1 + s), the variance of the sum of all of them, from b blocks, is multiplied by::

    b^s / ((1 - b^(s - 1)) b / (b - 1))                                                                     (10a)

s is the slope of log2 R over the last four lengths, weighted by the number of blocks, since the variance of a logarithm
is inversely proportional to it. If it exceeds .5, the error of a mean is undetermined. The limit and the range were
chosen on AR(.9), AR(.99), ARFIMA(0, d, 0) with d of .3 and .4, lots and regimes, 200 streams each.

**Covariance of two stored series.** Let A_f and F_f be the squared Fourier coefficients of a and b at f = 1, 2, ...
cycles per n rows, f < n / 2, and C their number. If the series are unrelated, so are their phases, and the variance of
a.b is 2 / n^2 sum_f A_f F_f, whatever they have in common: noise, slow states, long memory, cycles. Its inflation, and
the number of frequencies on which it rests, which is half of its degrees of freedom, are::

    C sum_f A_f F_f / (sum_f A_f sum_f F_f),    nu = (sum_f A_f F_f)^2 / sum_f (A_f F_f)^2                   (11)

Half of them are used, because neighbouring coefficients of cycles and trends are not independent. In a file sorted by
class, F has only a few frequencies. Whatever F is, the variance is at most that of the largest power of a. So if the
class is in runs of 50 rows in the mean or in 8 runs, and a itself rests on 16 or C / 8 frequencies, this bound is used.
With S_f the mean of A over .7 to 1.4 f::

    inflation  max_f S_f / mean A,    if (sum_f A_f)^2 / sum_f A_f^2 >= min(16, C / 8)                      (12)

Flyvbjerg, Petersen: Error estimates on averages of correlated data, Journal of Chemical Physics 91, 1989.
Allan: Statistics of atomic frequency standards, Proceedings of the IEEE 54(2), 1966.
Rao, Scott: The analysis of categorical data from complex sample surveys, JASA 76, 1981; On simple adjustments to
chi-square tests with sample survey data, Annals of Statistics 15, 1987 (F reference: Thomas, Rao, JASA 82, 1987).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.special
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._validation import Array

Floats = NDArray[np.float64]
SIGNIFICANT = 3.0  # standard errors, (4)
_FEWEST_BLOCKS = 4
_LONG_RUN, _FEW_RUNS, _STEADY = 50, 8, 16.0  # rows, runs, frequencies
_RISE = 1.5  # standard errors by which a longer block must exceed a shorter one, (4a)
# Blocks of an error: four times the memory, and at least six of them.
_LEVELS_ABOVE, _FEWEST_OF_ERROR = 2, 6.0
# Standard errors at which parts are dependent; s at which an error is undetermined; s at which the memory is unknown.
DEPENDENT, GROWTH, _NO_MEMORY, _LEVELS_OF_GROWTH = 2.0, 0.5, 0.65, 4
_MOST_BLOCKS = 1 << 22  # of weighted rows, whose weights may sum to any number
FEWEST_LAGS = 4  # whose variance is informative about a cycle
_LEVELS = 10  # block lengths of values: 1, 2, ..., 512
_FEWEST_PAIRS = 8  # smallest number of pairs of a level that is used
# Layout of a series: the number of values, the first value, the last inflation; then for each level the sum of the
# first block of an incomplete pair, the sum of squared differences, and the number of pairs.
_HEAD = 3
SERIES_SIZE = _HEAD + 3 * _LEVELS


def _ratio(actual: Array, expected: Array, otherwise: float = 1.0) -> Floats:
    """Return the ratio of two variances; `otherwise` where the expected one is 0."""
    return np.divide(actual, expected, out=np.full_like(actual, otherwise), where=expected > 0.0)


# -- stored rows ------------------------------------------------------------------------------------------------


def block_sums(values: Floats, size: int, weight: Floats | None = None) -> Floats:
    """Return the sums over blocks of consecutive rows; the last block may be shorter.

    Parameters
    ----------
    values : ndarray of shape (n_rows, m), float64
        Already multiplied by the weights.
    size : int
        Weight of a block.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default. A row that spans several blocks is divided between them.

    Returns
    -------
    ndarray of shape (n_blocks, m), float64

    Examples
    --------
    >>> block_sums(np.array([[6.0], [1.0], [4.0]]), 2, np.array([3.0, 1.0, 1.0])).T
    array([[4., 3., 4.]])
    """
    if weight is None:
        return np.add.reduceat(values, np.arange(0, len(values), size))
    ends, total = np.cumsum(weight), np.cumsum(values, axis=0)
    borders = np.arange(size, ends[-1], size)
    row = np.searchsorted(ends, borders)
    rest = ((ends[row] - borders) / weight[row])[:, None] * values[row]
    return np.diff(total[row] - rest, axis=0, prepend=0.0, append=total[-1:])


def block_ratios(columns: Floats, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """Return (1) at each block length, and its excess over 1 in standard errors.

    Parameters
    ----------
    columns : ndarray of shape (m, n_rows), float64
        Centred columns, each of them a row of the array.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default.

    Returns
    -------
    ratio, excess : ndarray of shape (n_lengths, m), float64
        `n_lengths` is 0 with fewer than 8 rows.
    """
    weighted = columns if weight is None else columns * weight
    n = columns.shape[1] if weight is None else float(weight.sum())
    square = np.array([x @ z for x, z in zip(columns, weighted, strict=True)]) / max(n, 1e-300)
    ratio, excess = [], []
    size = 2 if weight is None else max(2, 1 << int(n / _MOST_BLOCKS).bit_length())
    while n // size >= _FEWEST_BLOCKS:
        n_blocks = int(n // size)
        if weight is None:
            sums = columns[:, : n_blocks * size].reshape(len(columns), n_blocks, size).sum(axis=2)
        else:
            sums = block_sums(weighted.T, size, weight)[:n_blocks].T
        ratio.append(np.array([s @ s for s in sums]) / np.maximum(n_blocks * size * square, 1e-300))
        excess.append((ratio[-1] - 1.0) * np.sqrt((n_blocks - 1) / 2.0))
        size *= 2
    return np.array(ratio).reshape(-1, len(columns)), np.array(excess).reshape(-1, len(columns))


def variance_inflation(
    columns: Floats, *, always: bool = False, weight: Floats | None = None, bar: float = SIGNIFICANT
) -> Floats:
    """Return the largest ratio (1) of each column, at least 1.

    Parameters
    ----------
    columns : ndarray of shape (m, n_rows), float64
        Centred columns, each of them a row of the array.
    always : bool, default=False
        Whether to use ratios that are not significantly above 1 at any length.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default.
    bar : float, default=3
        Standard errors by which a ratio must exceed 1.

    Returns
    -------
    ndarray of shape (m,), float64

    Examples
    --------
    Independent rows, and values that are repeated for 5 rows:

    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> held = np.repeat(noise[:200], 5)
    >>> variance_inflation(np.array([noise - noise.mean(), held - held.mean()])).round(1)
    array([1. , 5.8])
    """
    ratio, excess = block_ratios(columns, weight)
    counts = always | (excess.max(axis=0, initial=0.0) > bar)
    return np.where(counts, ratio.max(axis=0, initial=1.0), 1.0)


def flat_level(ratio: Array, blocks: Array) -> NDArray[np.intp]:
    """Return the first level from which each blocking curve is flat: no later one exceeds it significantly, (4a).

    Parameters
    ----------
    ratio : ndarray of shape (n_levels, m), float64
        R or any multiple of it, at lengths that double.
    blocks : ndarray of shape (n_levels,), float64
        B.

    Returns
    -------
    ndarray of shape (m,), int

    Examples
    --------
    >>> flat_level(np.array([[1.0, 4.0], [1.05, 8.0], [1.0, 15.0], [1.1, 16.0]]), np.array([512.0, 256.0, 128.0, 64.0]))
    array([0, 2])
    """
    flat = np.zeros(ratio.shape[1], np.intp)
    n_levels = int(np.count_nonzero(blocks >= 2 * _FEWEST_BLOCKS))
    for level in range(n_levels):
        for later in range(level + 1, n_levels):
            error = np.sqrt(2.0 / blocks[later] - 2.0 / blocks[level])
            flat[ratio[later] > (1.0 + _RISE * error) * ratio[level]] = level + 1
    return flat


def growth(curve: Array, blocks: Array) -> Floats:
    """Return s, the doublings of each blocking curve per doubling of the length, over its last four lengths.

    Parameters
    ----------
    curve : ndarray of shape (n_levels, m), float64
        R or any multiple of it, at lengths that double.
    blocks : ndarray of shape (n_levels,), float64
        B.

    Returns
    -------
    ndarray of shape (m,), float64

    Examples
    --------
    >>> growth(np.array([[1.0, 4.0], [1.0, 8.0], [1.0, 16.0]]), np.array([64.0, 32.0, 16.0])).round(6)
    array([0., 1.])
    """
    R, B = curve[-_LEVELS_OF_GROWTH:], blocks[-_LEVELS_OF_GROWTH:]
    place = np.arange(len(B)) - np.average(np.arange(len(B)), weights=B)
    return np.asarray((B * place) @ np.log2(np.maximum(R, 1e-300)) / max(float(B @ place**2), 1e-300))


def memory_level(curve: Array, blocks: Array) -> float:
    """Return the level from which one blocking curve is flat, (4a); infinite if it rises up to the last level.

    Parameters
    ----------
    curve, blocks : ndarray of shape (n_levels,), float64
        As in :func:`flat_level`.

    Returns
    -------
    float
        Infinite if no later level can be compared and the growth s exceeds .65.

    Examples
    --------
    >>> blocks = np.array([64.0, 32.0, 16.0, 8.0])
    >>> memory_level(np.array([1.0, 3.0, 3.0, 3.0]), blocks), memory_level(np.array([1.0, 2.0, 4.0, 8.0]), blocks)
    (1.0, inf)
    """
    level = float(flat_level(curve[:, None], blocks)[0])
    last = np.count_nonzero(blocks >= 2 * _FEWEST_BLOCKS) - 1
    return math.inf if 0.0 < level == last and growth(curve[:, None], blocks)[0] > _NO_MEMORY else level


def extrapolation(s: Array, b: Array | float) -> Floats:
    """Return (10a): the factor of a variance from b blocks that grows by 2^s with each doubling, 1 or more.

    Examples
    --------
    >>> extrapolation(np.array([-0.1, 0.2, 0.5, 1.0]), np.array(16.0)).round(2)
    array([1.  , 1.83, 5.  ,  inf])
    """
    with np.errstate(divide="ignore"):
        return np.where(s > 0.0, b**s * (b - 1.0) / (b * np.maximum(1.0 - b ** (s - 1.0), 0.0)), 1.0)


def memory_length(columns: Floats, weight: Floats | None = None) -> Floats:
    """Return the memory of each column in rows, (4a); 1 if it is not autocorrelated.

    Parameters
    ----------
    columns : ndarray of shape (m, n_rows), float64
        Centred columns, each of them a row of the array.
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default.

    Returns
    -------
    ndarray of shape (m,), float64

    Examples
    --------
    Lots of 50 rows, whose effect is as large as the noise:

    >>> rng = np.random.default_rng(1)
    >>> lots = np.repeat(rng.normal(size=200), 50) + rng.normal(size=10_000)
    >>> lots -= lots.mean()
    >>> memory_length(lots[None]), memory_length(rng.permutation(lots)[None])
    (array([64.]), array([1.]))
    """
    ratio, excess = block_ratios(columns, weight)
    n = columns.shape[1] if weight is None else float(weight.sum())
    first = 2.0 if weight is None else max(2.0, float(1 << int(n / _MOST_BLOCKS).bit_length()))
    length = first * 2.0 ** np.arange(len(ratio))
    counts = excess.max(axis=0, initial=0.0) > SIGNIFICANT
    return (
        np.where(counts, length[flat_level(ratio, n // length)], 1.0) if len(ratio) else np.ones(len(columns))
    )


def bounded_inflation(columns: Floats, bar: float = SIGNIFICANT) -> Floats:
    """Return the variance inflation of each column, or the number of rows if it rises up to the longest blocks, (4a).

    Parameters
    ----------
    columns, bar
        As in :func:`variance_inflation`.

    Returns
    -------
    ndarray of shape (m,), float64

    Examples
    --------
    A random walk of 500 rows counts as one row:

    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=500))
    >>> bounded_inflation((walk - walk.mean())[None])
    array([500.])
    """
    n = columns.shape[1]
    inflation = variance_inflation(columns, bar=bar)
    is_long = (inflation > 1.0) & (memory_length(columns) * (4 * _FEWEST_BLOCKS) > n)
    return np.where(is_long, float(n), inflation)


def power_spectrum(coefficients: NDArray[np.complex128]) -> Floats:
    """Return the squares of Fourier coefficients."""
    return coefficients.real**2 + coefficients.imag**2


def fourier(rows: Floats) -> NDArray[np.complex128]:
    """Return the Fourier coefficients of each row at 1, 2, ... cycles, fewer than half the number of values."""
    return scipy.fft.rfft(rows)[:, 1 : (rows.shape[1] + 1) // 2]


def local_mean(power: Floats) -> Floats:
    """Return the means over .7 to 1.4 f, f - 4 to f + 4 at least, of powers (m, n_frequencies) at f = 1, 2, ..."""
    f = np.arange(1, power.shape[1] + 1)
    low = np.maximum(np.minimum(0.7 * f, f - 4.0).astype(np.intp), 1)
    high = np.minimum(np.maximum(1.4 * f, f + 4.0).astype(np.intp), len(f))
    sums = np.concatenate([np.zeros((len(power), 1)), np.cumsum(power, axis=1)], axis=1)
    return (sums[:, high] - sums[:, low - 1]) / (high - low + 1)


def is_steady(power: Floats) -> NDArray[np.bool_]:
    """Return which powers, shape (m, n_frequencies), rest on 16 frequencies or an eighth of them, (12)."""
    least = min(_STEADY, power.shape[1] / 8.0)
    return np.asarray(power.sum(axis=1) ** 2 >= least * (power**2).sum(axis=1))


def lasts_long(target: Array) -> bool:
    """Whether a target, shape (n_rows,), is in runs of 50 rows in the mean or in 8, as in a file sorted by class."""
    return bool(np.count_nonzero(np.diff(target)) < max(len(target) / _LONG_RUN, _FEW_RUNS))


def cross_inflation(A: Floats, F: Floats, in_runs: bool = False) -> tuple[Floats, Floats]:
    """Return the inflation of the variance of the covariance of two series, and its degrees of freedom, (11).

    Parameters
    ----------
    A, F : ndarray of shape (m, n_frequencies) or (1, n_frequencies), float64
        Squared Fourier coefficients, or sums of them.
    in_runs : bool, default=False
        Whether (12) is used, because the target lasts for many rows.

    Returns
    -------
    inflation, freedom : ndarray of shape (m,), float64

    Examples
    --------
    Two unrelated AR(.9) series, whose products have the autocorrelations .81^k, and two cycles of 24 rows:

    >>> from scipy.signal import lfilter
    >>> rng = np.random.default_rng(0)
    >>> a, b = (power_spectrum(fourier(lfilter([1], [1, -0.9], rng.normal(size=(1, 5000))))) for _ in range(2))
    >>> inflation, freedom = cross_inflation(a, b)
    >>> bool(6.0 < inflation[0] < 12.0), bool(freedom[0] > 20.0)
    (True, True)
    >>> sines = np.sin(2 * np.pi * (np.arange(5000) / 24 + np.array([[0.0], [0.3]]))) + rng.normal(size=(2, 5000))
    >>> a, b = power_spectrum(fourier(sines))[:, None]
    >>> bool(cross_inflation(a, b)[1][0] < 2.0)
    True
    """
    product, of_a, of_f = A * F, A.sum(axis=1), F.sum(axis=1)
    total, n_f = product.sum(axis=1), max(product.shape[1], 1)
    inflation = n_f * total / np.maximum(of_a * of_f, 1e-300)
    nu = total**2 / np.maximum((product**2).sum(axis=1), 1e-300)
    if in_runs:
        steady = is_steady(A)
        largest = n_f * local_mean(A).max(axis=1, initial=0.0) / np.maximum(of_a, 1e-300)
        inflation, nu = np.where(steady, largest, inflation), np.where(steady, np.inf, nu)
    return inflation, nu


def is_series(residual: Floats, weight: Floats | None = None) -> bool:
    """Whether a residual is autocorrelated, by more than three standard errors.

    Parameters
    ----------
    residual : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64, optional
        Positive; 1 by default.

    Returns
    -------
    bool

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> is_series(noise), is_series(np.repeat(noise[:100], 5))
    (False, True)
    """
    return bool(variance_inflation(residual[None], weight=weight)[0] > 1.0)


def correlation_length(residual: Floats, weight: Floats | None = None) -> float:
    """Return the correlation length of a residual in rows: its largest inflation, at least 1."""
    return float(variance_inflation(residual[None], always=True, weight=weight)[0])


class MeanError(NamedTuple):
    """Standard error of a mean over dependent values, (10).

    Attributes
    ----------
    error : float
        NaN if it is undetermined.
    freedom : float
        Its degrees of freedom.
    missing : float
        How many more values are needed about, if it is undetermined; otherwise 0.
    """

    error: float
    freedom: float
    missing: float = 0.0

    @property
    def bound(self) -> float:
        """Half of the 95 % confidence interval; infinite without degrees of freedom, NaN if undetermined."""
        return self.error * _quantile(self.freedom) if self.freedom > 0.0 else self.error + math.inf

    def plus(self, error: float, freedom: float) -> MeanError:
        """Return the error of a sum with an independent one, with Satterthwaite's degrees of freedom."""
        mine, other = self.error**2, error**2
        total = mine + other
        if total == 0.0 or math.isnan(total):
            return self._replace(error=math.sqrt(total), freedom=min(self.freedom, freedom))
        parts = [(one, df) for one, df in ((mine, self.freedom), (other, freedom)) if one]
        share = sum(one**2 / df if df > 0.0 else math.inf for one, df in parts)
        return self._replace(error=math.sqrt(total), freedom=total**2 / share if share else math.inf)


def _quantile(freedom: float) -> float:
    return float(scipy.special.stdtrit(max(freedom, 1e-3), 0.975))


def mean_error(sums: Floats, weight: Floats) -> MeanError:
    """Return the standard error of a mean from the sums of consecutive parts, (10).

    Parameters
    ----------
    sums : ndarray of shape (n_parts,), float64
        d_k.
    weight : ndarray of shape (n_parts,), float64
        N_k.

    Returns
    -------
    MeanError

    Examples
    --------
    Ten values each in 200 parts, whose state lasts for five parts:

    >>> rng = np.random.default_rng(1)
    >>> state = 10.0 * np.repeat(rng.normal(size=40), 5)
    >>> ten = np.full(200, 10.0)
    >>> mean_error(rng.permutation(state), ten).freedom, mean_error(state, ten).freedom
    (199.0, 6.0)
    >>> mean_error(state[:60], ten[:60])
    MeanError(error=nan, freedom=0.0, missing=360.0)
    """
    total = float(weight.sum())
    rest, variance, blocks = sums - sums.sum() / max(total, 1e-300) * weight, [], []
    while len(rest) >= 2:
        n = len(rest)
        variance.append(n / (n - 1.0) * float(rest @ rest))
        blocks.append(float(n))
        rest = join_pairs(rest)
    if not blocks:
        return MeanError(math.nan, 0.0)
    curve, n_blocks = np.array(variance), np.array(blocks)
    flat, at = int(flat_level(curve[:, None], n_blocks)[0]), slice(1, int(np.count_nonzero(n_blocks >= 8.0)))
    if not (curve[at] > (1.0 + DEPENDENT * np.sqrt(2.0 / n_blocks[at] - 2.0 / n_blocks[0])) * curve[0]).any():
        flat = 0
    level = flat + _LEVELS_ABOVE if flat else 0
    needed = _FEWEST_OF_ERROR * 2.0**level * total / len(sums)
    if level and (level >= len(blocks) or blocks[level] < _FEWEST_OF_ERROR):
        return MeanError(math.nan, 0.0, needed - total)
    square, b = max(variance[level], variance[flat]), blocks[level]
    s = growth(curve[: level + 1, None], n_blocks[: level + 1]) if level else np.zeros(1)
    if s[0] > GROWTH:
        return MeanError(math.nan, 0.0, max(2.0 * needed - total, total))
    return MeanError(math.sqrt(square * extrapolation(s, b)[0]) / max(total, 1e-300), b - 1.0)


# -- sums over blocks ------------------------------------------------------------------------------------------


def join_pairs(sums: Floats) -> Floats:
    """Return the sums over pairs of adjacent blocks; the last block may be unpaired."""
    return np.add.reduceat(sums, np.arange(0, len(sums), 2), axis=0)


def join_blocks(n_blocks: int, length: int, effective: float, most: int) -> tuple[NDArray[np.intp], int]:
    """Return which blocks to join if there are too many, and the length of the next blocks.

    Adjacent blocks are joined in pairs, so that the length doubles, unless half as many blocks as allowed contain the
    effective number of rows, because older rows lose weight. Then the two oldest blocks are joined.

    Parameters
    ----------
    n_blocks, length : int
    effective : float
        Effective number of rows in all blocks, (sum w)^2 / sum w^2.
    most : int
        Number of blocks allowed.

    Returns
    -------
    starts : ndarray of int
        First block of each new one.
    length : int

    Examples
    --------
    >>> join_blocks(4, 10, 40.0, 4), join_blocks(4, 10, 15.0, 4)
    ((array([0, 2]), 20), (array([0, 2, 3]), 10))
    """
    if effective < 0.5 * most * length:
        return np.delete(np.arange(n_blocks), 1), length
    return np.arange(0, n_blocks, 2), 2 * length


def blocked_length(sums: Floats, share: Floats, variance: float) -> tuple[float, float]:
    """Return the correlation length in rows, the largest (1), from the sums over blocks, and the level of its memory.

    Parameters
    ----------
    sums, share : ndarray of shape (n_blocks,), float64
        Sums of the centred column, and share of the squared weights of the rows in each block.
    variance : float
        Variance of the sum over all rows under independence.

    Returns
    -------
    length : float
        At least 1.
    level : float
        Number of times that blocks are joined in pairs until they have the memory, :func:`memory_level`.
    """
    ratio, blocks = [], []
    while len(sums) >= _FEWEST_BLOCKS and variance > 0.0:
        ratio.append(float(sums @ sums) / (float(share.sum()) * variance))
        blocks.append(float(len(sums)))
        sums, share = join_pairs(sums), join_pairs(share)
    if not ratio:
        return 1.0, 0
    return max(1.0, *ratio), memory_level(np.array(ratio), np.array(blocks))


@njit(strict=True)
def count_ratios(
    total: Array, squares: Array, blocks: Floats, length: Array
) -> tuple[Floats, Floats, Floats]:
    """Return (3) of the labels at each block length, from the counts of the classes in its blocks.

    Parameters
    ----------
    total, squares : ndarray of shape (n_lengths, n_classes)
        Sums over the blocks of N_bc and of its square.
    blocks, length : ndarray of shape (n_lengths,), float64
        B and L.

    Returns
    -------
    ratio, excess : ndarray of shape (n_lengths,), float64
        R, and its excess over 1 in standard errors.
    by_class : ndarray of shape (n_lengths, n_classes), float64
        R_c; 0 for a class that is in all blocks or in none.
    """
    ratio, excess = np.ones(len(blocks)), np.empty(len(blocks))
    by_class = np.zeros(total.shape)
    for level in range(len(blocks)):
        n, size, dispersion, varying = blocks[level], length[level], 0.0, 0.0
        for c in range(total.shape[1]):
            rows, share = total[level, c], total[level, c] / max(n * size, 1.0)
            if not 0.0 < share < 1.0:
                continue
            spread = (squares[level, c] - rows * (rows / max(n, 1.0))) / ((max(n, 2.0) - 1.0) * size)
            varying += 1.0
            dispersion += spread / share  # (2)
            by_class[level, c] = spread / share / (1.0 - share)
        freedom = max(varying - 1.0, 0.0)
        if freedom > 0.0:
            ratio[level] = dispersion / freedom  # (3)
        excess[level] = (ratio[level] - 1.0) * math.sqrt(max((n - 1.0) * freedom / 2.0, 0.0))
    return ratio, excess, by_class


# -- values whose mean may change -----------------------------------------------------------------------------


@njit(allocates=False)
def _mean_square(series: Floats, level: int) -> float:
    """Return V(l), (5)."""
    at = _HEAD + 3 * level
    return series[at + 1] / (2.0 ** (level + 1) * series[at + 2])


@njit(allocates=False)
def _read(series: Floats) -> float:
    """Return the largest R(l) of (6) if the values are dependent, (4), else 1."""
    variance, top, mean_square = 0.0, 0, 0.0
    while top < _LEVELS and series[_HEAD + 3 * top + 2] >= max(_FEWEST_PAIRS, 2.0**top / 2.0):
        mean_square = _mean_square(series, top)
        variance += mean_square / 2.0 ** (top + 1)
        top += 1
    variance += mean_square / 2.0**top  # (6)
    largest, dependent = 1.0, False
    if variance > 0.0:
        for level in range(top):
            pairs, ratio = series[_HEAD + 3 * level + 2], _mean_square(series, level) / variance
            largest = max(largest, ratio)
            tested = pairs >= 4.0 * 2.0**level
            dependent |= tested and (ratio - 1.0) * np.sqrt(pairs / 2.0) > SIGNIFICANT  # (4)
    return largest if dependent else 1.0


@njit(allocates=False)
def add_values(values: Floats, series: Floats, every: int) -> None:
    """Add values to the blocks, and read the inflation after each multiple of `every` values.

    Parameters
    ----------
    values : ndarray of shape (n,), float64
    series : ndarray of shape (SERIES_SIZE,), float64
        Updated; zeros before the first value.
    every : int

    Examples
    --------
    Each value is repeated eight times, and the mean of the values rises in between. ``series[2]`` is the inflation:

    >>> rng = np.random.default_rng(0)
    >>> values = np.repeat(rng.normal(size=500), 8) + np.repeat([0.0, 3.0], 2000)
    >>> series, shuffled = np.zeros(SERIES_SIZE), np.zeros(SERIES_SIZE)
    >>> add_values(values, series, 32)
    >>> add_values(rng.permutation(values), shuffled, 32)
    >>> bool(7.0 < series[2] < 11.0), float(shuffled[2])
    (True, 1.0)
    """
    for i in range(len(values)):
        _add_value(values[i], series, every)


@njit(allocates=False)
def add_rows(values: Floats, series: Floats, every: int) -> None:
    """Add values to several series of any number of levels, as `add_values`; with `every` = 0, read no inflation.

    Parameters
    ----------
    values : ndarray of shape (n_rows, m), float64
    series : ndarray of shape (m, 3 + 3 * n_levels), float64
    every : int
    """
    for k in range(series.shape[0]):
        for i in range(values.shape[0]):
            _add_value(values[i, k], series[k], every)


def mean_squares(series: Floats) -> tuple[Floats, Floats]:
    """Return V(l), (5), of series of equal length, (n_levels, m), and P, (n_levels,)."""
    squares, pairs = series[:, _HEAD + 1 :: 3].T, series[0, _HEAD + 2 :: 3]
    return squares / (2.0 ** np.arange(1, len(pairs) + 1) * np.maximum(pairs, 1.0))[:, None], pairs


@njit(allocates=False)
def _add_value(value: float, series: Floats, every: int) -> None:
    if series[0] == 0.0:
        series[1] = value
    block, at = value - series[1], int(series[0])
    for level in range((series.shape[0] - _HEAD) // 3):
        place = _HEAD + 3 * level
        if (at >> level) & 1 == 0:
            series[place] = block
            break
        difference = block - series[place]
        series[place + 1] += difference * difference
        series[place + 2] += 1.0
        block += series[place]
    series[0] += 1.0
    if every > 0 and series[0] % every == 0.0:
        series[2] = _read(series)


@njit(allocates=False)
def inflation_before(value: float, series: Floats, every: int) -> float:
    """Return the inflation of the values so far, then add a value; 1 without a series, an empty array.

    Examples
    --------
    Each value is repeated eight times:

    >>> values, series = np.repeat(np.random.default_rng(0).normal(size=500), 8), np.zeros(SERIES_SIZE)
    >>> round([inflation_before(value, series, 32) for value in values][-1], 1)
    9.2
    """
    if series.shape[0] == 0:
        return 1.0
    inflation = max(series[2], 1.0)
    _add_value(value, series, every)
    return inflation


# -- correction of a statistic ----------------------------------------------------------------------------------


class Inflation(NamedTuple):
    """Inflation of a statistic's variance; nan where it is undetermined.

    Examples
    --------
    >>> inflation = Inflation(np.array([[2.0]]), np.array([1.0]), np.array([31.0]))
    >>> inflation.pvalue(np.array([8.0])).round(3)
    array([0.054])
    """

    inflation: Floats  # (n_tests, n_features), one test except for T
    freedom: Floats  # degrees of freedom of the statistic, (n_features,)
    blocks: Floats  # degrees of freedom of the estimate, nu, (n_features,)

    def take(self, columns: Array) -> Inflation:
        """Return the inflation for some features."""
        return Inflation(self.inflation[:, columns], self.freedom[columns], self.blocks[columns])

    def pvalue(self, statistic: Array, freedom: Array | None = None) -> Floats:
        """Return the p-value of the first test under the F distribution described in the module docstring.

        Parameters
        ----------
        statistic : ndarray of shape (n_features,)
            The statistic divided by its dimension d.
        freedom : ndarray of shape (n_features,), optional
            Other degrees of freedom of the statistic.

        Returns
        -------
        ndarray of shape (n_features,), float64
            1 where the inflation is NaN (undetermined).
        """
        left, by = self.freedom if freedom is None else freedom, self.inflation[0]
        tail = scipy.special.fdtrc(left, np.maximum(self.blocks, 1.0) * left, statistic / by)
        return np.where(np.isnan(by), 1.0, tail)


def contrast_inflation(
    covariance: Array, count: Array, variance: Array, effective: Array, lagged: Array | None = None,
    contrasts: Array | None = None,
) -> Floats:  # fmt: skip
    """Return the inflation (7) of the variance of the difference between each class mean and the rest, at least 1.

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
    iid = _ratio(variance, effective, 0.0)
    items = []
    for contrast in _contrasts(count) if contrasts is None else contrasts:
        actual = _variance(contrast, covariance)
        if lagged is not None and len(lagged) >= FEWEST_LAGS:
            actual = np.maximum(actual, _over_lags(contrast, lagged))
        items.append(_ratio(actual, (contrast**2 * iid).sum(axis=0)))
    return np.maximum(items, 1.0)


def cycle_inflation(covariance: Array, count: Array, lagged: Array, least: float = 1.0) -> Floats:
    """Return the factor by which a common cycle exceeds the long-run variance of the contrast of any class.

    Parameters
    ----------
    covariance, count, lagged
        As in :func:`contrast_inflation`.
    least : float, default=1
        Lower bound of the factor, which is returned with fewer than four lags.

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    if len(lagged) < FEWEST_LAGS:
        return np.full(count.shape[1], least)
    over = [_ratio(_over_lags(item, lagged), _variance(item, covariance)) for item in _contrasts(count)]
    return np.maximum(over, least).max(axis=0)


def _contrasts(count: Array) -> list[Floats]:
    """Return the contrast of each class with the rest, (n_classes, n_features); of two classes one."""
    contrasts = []
    for c in range(1 if len(count) == 2 else len(count)):
        rest = count.copy()
        rest[c] = 0.0
        contrast = -rest / np.maximum(rest.sum(axis=0), 1e-300)
        contrast[c] = 1.0
        contrasts.append(contrast)
    return contrasts


def _variance(contrast: Array, covariance: Array) -> Any:
    return np.einsum("cj,dj,cdj->j", contrast, contrast, covariance)


def _over_lags(contrast: Array, lagged: Array) -> Floats:
    return (lagged * contrast).sum(axis=1).var(axis=0, ddof=1)


def anova_inflation(
    covariance: Array, variance: Array, effective: Array, lagged: Array | None = None
) -> tuple[Floats, Floats]:
    """Return the inflation (8) of the Fisher score, and its degrees of freedom.

    Parameters
    ----------
    covariance, variance, effective, lagged
        As in :func:`contrast_inflation`.

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
    left = _freedom(trace, square, dimensions)
    if lagged is not None and len(lagged) >= FEWEST_LAGS:
        centre = (lagged * effective).sum(axis=1, keepdims=True) / total
        trace = np.maximum(trace, (effective * (lagged - centre).var(axis=0, ddof=1)).sum(axis=0))
    return np.maximum(_ratio(trace, within), 1.0), left


def table_inflation(
    counts: Array, weight: Array, weight2: Array, spread: Array | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return the inflation (8) of chi-square and 2 n MI, its degrees of freedom, and that of the bins' own shares.

    Parameters
    ----------
    counts : ndarray of shape (n_blocks, n_classes, n_bins, n_features), float64
        Weights of the values in each bin.
    weight, weight2 : ndarray of shape (n_blocks, n_classes), float64
        Sums of the weights of the rows and of their squares, those with missing values included.
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
    >>> inflation, freedom, own = table_inflation(counts, *[counts.sum(axis=(2, 3))] * 2)
    >>> bool(7 < inflation[0] < 13), freedom, bool(own[0] > 7)
    (True, array([1.]), True)
    """
    n = np.maximum(counts.sum(axis=(0, 1, 2)), 1e-300)
    p = counts.sum(axis=(0, 1)) / n  # (bins, features)
    q = counts.sum(axis=(0, 2)) / n  # (classes, features)
    of_class, of_bin = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    of_block, squares = counts.sum(axis=(1, 2), keepdims=True), weight2.sum()
    expected = p * q[:, None]
    score = counts - p * of_class - q[:, None] * of_bin + expected * of_block  # (9)
    share = weight2.sum(axis=1) / max(float(squares), 1e-300)
    score = score - share[:, None, None, None] * score.sum(axis=0)
    rows = squares * (n / max(float(weight.sum()), 1e-300))  # fewer where values are missing
    score *= np.sqrt(_ratio(np.ones_like(expected), rows * expected, 0.0))
    scale = np.sqrt(max(1.0 - float((share**2).sum()), 1e-300))
    flat = score.reshape(len(counts), -1, counts.shape[3]) / scale
    gram = np.einsum("kxj,lxj->klj", flat, flat)
    trace, square = np.einsum("kkj->j", gram), (gram**2).sum(axis=(0, 1))
    dimensions = np.maximum((p > 0.0).sum(axis=0) - 1.0, 0.0) * np.maximum((q > 0.0).sum(axis=0) - 1.0, 0.0)
    left = _freedom(trace, square, np.maximum(dimensions, 1.0))
    # Share of each bin within each class.
    within = counts.sum(axis=0) / np.maximum(of_class.sum(axis=0), 1e-300)
    here = np.ones(counts.shape[1], dtype=bool) if spread is None else spread
    gap = (counts - within * of_class)[:, here].sum(axis=1) / scale
    iid = (weight2.sum(axis=0)[:, None, None] * within * (1.0 - within))[here].sum(axis=0) * (rows / squares)
    own = _ratio((gap**2).sum(axis=0), iid).max(axis=0)
    return np.maximum(_ratio(trace, dimensions), 1.0), left, np.maximum(own, 1.0)


def _freedom(trace: Array, square: Array, dimensions: Array) -> Floats:
    """Return (tr V)^2 / tr V^2 in [1, d]."""
    return np.clip(_ratio(trace**2, square), 1.0, dimensions)


def uncertainty(blocks: Array, alpha: float) -> Floats:
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
    return (t / scipy.special.ndtri(alpha / 2.0)) ** 2
