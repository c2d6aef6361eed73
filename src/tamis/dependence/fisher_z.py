"""Fisher's z test of a partial correlation: is the correlation of two columns 0, given others?

Fisher (1924): The distribution of the partial correlation coefficient. Metron 3. With the correlations C of the columns
i, j and S, and n rows::

    r = C'_ij / sqrt(C'_ii C'_jj),  C' = C_(ij)(ij) - C_(ij)S C_SS^-1 C_S(ij)      (1)
    W = sqrt(n - |S| - 3) atanh(r)                                                 (2)
    independent if and only if |W| < Phi^-1(1 - alpha / 2)                         (3)

Exact for normal variables; only linear dependence is detected. The class is used as a number, 0, 1, ...: with more
than two classes their order matters, and :class:`tamis.dependence.g_square.GSquare` is the better test.

(1) is computed recursively: given a, C'_uv = C_uv - C_ua C_va / C_aa. A conditioning set that shares its first members
with another one is thus tested in a dozen operations, without a matrix inverse.

Deviations, each with its reason:

* A set S with n - |S| - 3 < 1 is not tested, so it separates no column. Other implementations then set W = 0, which
  separates every column.
* A column that is determined by the other one or by S has no further information and is independent.
* For autocorrelated rows, W is divided by the square root of the variance inflation of the covariance of column and
  class ((11) of :mod:`tamis.dependence.autocorrelation`); that of a column is measured within the classes. Between two
  kept columns it is the smaller of their inflations; if both rise with the length of the blocks up to the longest, all
  rows count as one.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import scipy.special

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Mask
from tamis.dependence.criterion import KEPT, Candidate, DependenceTest, Screening
from tamis.errors import DataError

_CONSTANT = 1e-28  # residual of a centred constant column due to rounding, relative to |x|^2
_LOSSY = 1e-8  # residual, relative to |x|^2, below which the difference of two sums has lost digits
_NOTHING = 1e-12  # residual of a column determined by others, due to rounding, relative to the variance
_MARGIN = 1e-6  # relative tolerance of the screening


class FisherZ(DependenceTest):
    """Correlation, and Fisher's z test of partial correlation.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level, in (0, 1).
    dependence : {"auto", "independent", "series"}, default="auto"
        Whether tests are corrected for autocorrelated rows, in the order given. "auto": if the classes are
        autocorrelated.

    Attributes
    ----------
    n_kept_, strength_
        As in :class:`tamis.dependence.criterion.DependenceTest`; the strength is the absolute correlation.

    References
    ----------
    Fisher (1924). The distribution of the partial correlation coefficient. Metron 3.

    Examples
    --------
    x1 causes the class, and x0 is a noisy copy of x1, conditionally independent of the class:

    >>> import numpy as np
    >>> from tamis.dependence.fisher_z import FisherZ
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=500)
    >>> x1 = y + 0.4 * rng.normal(size=500)
    >>> x0 = x1 + 0.6 * rng.normal(size=500)
    >>> test = FisherZ().start(y)
    >>> for column in (x0, x1):
    ...     test.keep(test.candidate(column))
    >>> test.strength_.round(2), test.is_separated(0, [1], 3), test.is_separated(1, [0], 3)
    (array([0.56, 0.76]), True, False)
    """

    _state_spec = Shapes(
        f"{KEPT}  _target (n) float in [-1.001, 1.001]  _correlations (k+1, k+1) float in [-1.001, 1.001]"
        "  _kept float in [-1.001, 1.001]  _critical_value float in [0, inf)"
    )

    def start(self, codes: Ints) -> Self:
        """Validate the parameters, remove all columns and set the classes of the rows.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,), int
            0, 1, ...

        Returns
        -------
        self

        Raises
        ------
        DataError
            If there is only one class, or fewer than 4 rows.
        ValueError
            If `alpha` is out of its range.
        """
        self._check_alpha()
        if len(codes) < 4:
            raise DataError(f"y has {len(codes)} sample(s), and Fisher's z test needs 4 rows or more.")
        target = _unit(codes.astype(np.float64))
        if target is None:
            raise DataError("y is constant, so no feature can be relevant to it: give rows of two classes.")
        self._measure_target(codes)
        self._target = target
        self._critical_value = -float(scipy.special.ndtri(0.5 * self.alpha))
        self._reset_kept(len(codes), np.float64)  # each of length 1 and mean 0
        self._correlations = np.ones((1, 1))  # correlations of the target and the kept columns
        return self

    # -- against the target --------------------------------------------------------------------------------

    def screen(self, columns: Any) -> Screening:
        """Test the columns of an array or CSC matrix of shape (n_rows, m), float64, approximately."""
        if sp.issparse(columns):
            sums = np.asarray(columns.T @ np.ones(self._n))
            squares = np.asarray(columns.multiply(columns).T @ np.ones(self._n))
            shared = np.asarray(columns.T @ self._target)
        else:
            sums = np.ones(self._n) @ columns
            squares = np.einsum("ij,ij->j", columns, columns)
            shared = self._target @ columns
        with np.errstate(over="ignore", invalid="ignore"):  # unsafe columns are tested again
            spread = squares - sums * sums / self._n
            safe = (spread > _LOSSY * squares) & (squares < np.inf)
        strength = np.abs(shared) / np.sqrt(np.where(safe, spread, 1.0))
        strength = np.where(safe, np.minimum(strength, 1.0), np.nan)
        z = self._z(strength)
        return Screening(strength, _log_p(z), ~(z < self._critical_value * (1.0 - _MARGIN)))

    def candidate(self, column: Floats) -> Candidate:
        """Test one column of shape (n_rows,) in full precision."""
        values = _unit(column)
        if values is None:
            return Candidate(column, True, math.nan, math.nan, False)
        strength = min(abs(float(values @ self._target)), 1.0)
        inflation, with_target = self._inflations(values[None])
        z = float(self._z(np.array([strength]), with_target)[0])
        log_p = float(_log_p(np.array([z]))[0])
        return Candidate(values, False, strength, log_p, z >= self._critical_value, inflation, with_target)

    def _z(self, strength: Floats, inflation: float | Floats = 1.0) -> Floats:
        """Return |W| of (2) without conditions."""
        with np.errstate(divide="ignore"):
            z: Floats = np.sqrt((self._n - 3) / inflation) * np.arctanh(strength)
        return z

    # -- among the kept columns ----------------------------------------------------------------------------

    def dependence_on_kept(self, candidate: Candidate) -> tuple[Floats, Mask]:
        """Return the correlation of the candidate with each kept column, and where it is significant."""
        strength = np.minimum(np.abs(self._kept[: self.n_kept_] @ candidate.values), 1.0)
        inflation = np.minimum(self._own_inflation, candidate.inflation)
        return strength, self._z(strength, inflation) >= self._critical_value

    def _on_keep(self, candidate: Candidate) -> None:
        k = self.n_kept_
        correlations = np.empty((k + 2, k + 2))
        correlations[:-1, :-1] = self._correlations
        correlations[-1, 0] = self._target @ candidate.values
        correlations[-1, 1:-1] = self._kept[:k] @ candidate.values
        correlations[-1, -1] = 1.0
        correlations[:, -1] = correlations[-1]
        self._correlations = correlations

    def _on_drop(self, left: Ints) -> None:
        with_target = np.append(0, left + 1)
        self._correlations = self._correlations[np.ix_(with_target, with_target)]

    def is_separated(self, place: int, others: list[int], most: int, always: int | None = None) -> bool:
        """Return whether the target is independent of a kept column given some other kept columns."""
        pool = others if always is None else [always, *others]
        most = min(most, len(pool), self._n - 4)
        if most < 1:
            return False
        n_effective = (self._n - 3.0 - np.arange(1, most + 1)) / self._with_target[place]
        bars = np.tanh(self._critical_value / np.sqrt(n_effective)) ** 2
        return bool(
            _has_separating_set(self._correlations, place + 1, np.array(pool) + 1, always is not None, bars)
        )


def _unit(column: Floats) -> Floats | None:
    """Return the column with mean 0 and length 1, contiguous; None if it is constant."""
    column = np.ldexp(column, -np.frexp(np.abs(column).max())[1])  # squares neither overflow nor vanish
    centred = column - column.mean()
    length = float(centred @ centred)
    if length <= _CONSTANT * float(column @ column) or (column == column[0]).all():
        return None
    return np.asarray(centred / math.sqrt(length))


def _log_p(z: Floats) -> Floats:
    return scipy.special.log_ndtr(-z) + math.log(2.0)


@njit()
def _any_separates(ci: Array, ct: Array, cc: Array, pair: Array, first: int, stop: int, bar: float) -> bool:
    """Whether one more condition, of those from `first` on, makes the pair independent."""
    ii, tt, it = pair[0], pair[1], pair[2]
    for c in range(first, stop):
        if cc[c] > _NOTHING:
            rest_i, rest_t = ii - ci[c] * ci[c] / cc[c], tt - ct[c] * ct[c] / cc[c]
            shared = it - ci[c] * ct[c] / cc[c]
            if rest_i <= _NOTHING or rest_t <= _NOTHING or shared * shared < bar * rest_i * rest_t:  # (3)
                return True
    return False


@njit()
def _has_separating_set(R: Array, i: int, pool: Array, only_first: bool, bars: Array) -> bool:
    """Whether a set of up to len(bars) conditions from the pool separates i from the target, row 0 of R.

    Depth d of the search has d conditions; `g[d]` is the scaled covariance of the next one with the rest of the pool.
    """
    m, most = len(pool), len(bars)
    ci, ct, cc = np.empty((most, m)), np.empty((most, m)), np.ones((most, m))
    g, pair = np.empty((most, m)), np.empty((most, 3))
    for c in range(m):
        ci[0, c], ct[0, c] = R[i, pool[c]], R[0, pool[c]]
    pair[0, 0], pair[0, 1], pair[0, 2] = 1.0, 1.0, R[i, 0]
    last = 1 if only_first else m
    if _any_separates(ci[0], ct[0], cc[0], pair[0], 0, last, bars[0]):
        return True
    upcoming = np.zeros(most, np.int64)
    d = 0
    while d >= 0:
        c = upcoming[d]
        if d == most - 1 or c >= (last if d == 0 else m):
            d -= 1
            continue
        upcoming[d] = c + 1
        if cc[d, c] <= _NOTHING:
            continue
        scale = 1.0 / np.sqrt(cc[d, c])
        gi, gt = ci[d, c] * scale, ct[d, c] * scale
        pair[d + 1, 0], pair[d + 1, 1] = pair[d, 0] - gi * gi, pair[d, 1] - gt * gt
        pair[d + 1, 2] = pair[d, 2] - gi * gt
        for j in range(c + 1, m):
            shared = R[pool[c], pool[j]]
            for e in range(d):
                shared -= g[e, c] * g[e, j]
            g[d, j] = shared * scale  # (1), recursively
            ci[d + 1, j], ct[d + 1, j] = ci[d, j] - gi * g[d, j], ct[d, j] - gt * g[d, j]
            cc[d + 1, j] = cc[d, j] - g[d, j] * g[d, j]
        d += 1
        upcoming[d] = c + 1
        if _any_separates(ci[d], ct[d], cc[d], pair[d], c + 1, m, bars[d]):
            return True
    return False
