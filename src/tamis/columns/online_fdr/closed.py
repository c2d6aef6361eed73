"""Closed e-LOND: the online e-closure of e-LOND, which rejects all that e-LOND rejects, and more.

For any set S of tests, let E_S be the sum of their e-values, the i-th one of S (in order) times g(i). For the set of
the true null hypotheses, E_S only grows with time, and its mean is at most sum_i g(i) <= 1, however the tests depend on
each other. Suppose that the rejections R_t satisfy, at all times t and for all sets S::

    |R_t n S| / |R_t| <= alpha E_S                                                                            (1)

The false discovery proportion is then never above alpha E_S for the true null hypotheses, so the mean of its largest
value in the entire stream is at most alpha: the bound holds at any stopping time, also one that depends on the results.

A test that does not reject leaves (1) valid, since E_S grows. Test t may reject if (1) then holds for every S of
earlier tests and t itself. With R rejections so far, its e-value must be at least 1 / a_t::

    a_t = min_S alpha (R + 1) g(|S| + 1) / D(S),   D(S) = 1 + |R n S| - alpha (R + 1) E_S,   over D(S) > 0    (2)

By (1), D(S) <= 1, and |S| < t, so a_t is at least the level of e-LOND, alpha (R + 1) g(t). Let v(k) be the largest
D(S) - 1 of k tests. A further test of e-value e changes it to the larger one of v(k) and v(k - 1) + [rejected]
- alpha (R + 1) g(k) e, so (2) takes O(t) per test, and O(t^2) after a rejection.

Deviations, each with its reason:

* The e-value of a test that does not reject counts as 0 if it is below t / 2000. Such a test only moves the others to
  later places, so the S of (2) contains all of them, and only the other tests are stored: few, because a null e-value
  is rarely that large. (1) and the comparison with e-LOND remain valid; the first 2000 tests are exact.
* a_t is at most 1, so that no test rejects with an e-value below 1.

Xu, Fischer, Ramdas: Improving online FDR procedures via online analogs of e-closure and compound e-values, 2026 (arXiv
2603.24792). The principle is that of Xu, Solari, Fischer, de Heide, Ramdas, Goeman: Bringing closure to false discovery
rate control, 2025 (arXiv 2509.02517).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats
from tamis.columns.online_fdr.lord import ELOND, gamma_power

_EXACT = 2000.0  # tests whose e-values all count
_LARGEST = 700.0  # log of an e-value, so that products are finite


@njit(strict=True)
def _level(v: Array, n: int, gamma: Array) -> float:
    """Return (2) over alpha (R + 1), from v(0) to v(n) and g of these places."""
    lowest = np.inf
    for k in range(n + 1):
        if 1.0 + v[k] > 0.0:
            lowest = min(lowest, gamma[k] / (1.0 + v[k]))
    return lowest


@njit(strict=True)
def _include(v: Array, n: int, gamma: Array, rejected: float, evidence: float) -> None:
    """Add a test to v(0) to v(n)."""
    v[n + 1] = -np.inf
    for k in range(n, -1, -1):
        v[k + 1] = max(v[k + 1], v[k] + rejected - evidence * gamma[k])


@njit(strict=True)
def _rebuild(gamma: Array, zeros: Array, rejected: Array, evidence: Array, v: Array) -> None:
    """Compute v from tests, with the number of tests of value 0 before each."""
    v[0] = 0.0
    for i in range(len(zeros)):
        _include(v, i, gamma[zeros[i] :], rejected[i], evidence[i])


@njit(strict=True)
def _pass(v: Array, n: int, gamma: Array, evidence: Array, levels: Array) -> int:
    """Compute the levels of tests that do not reject; include them, and return the number of those of value 0."""
    n_zero = 0
    for i in range(len(evidence)):
        levels[i] = _level(v, n, gamma[n_zero:])
        if evidence[i] > 0.0:
            _include(v, n, gamma[n_zero:], 0.0, evidence[i])
            n += 1
        else:
            n_zero += 1
    return n_zero


class ClosedELOND(ELOND):
    """Closed e-LOND: as e-LOND, but the evidence of all earlier tests counts; valid under any dependence.

    It rejects all that :class:`ELOND` rejects, and more. The bound holds for the mean of the largest false discovery
    proportion of the stream, so at any time at which the results are read.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1), as in :class:`ELOND`.

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha max(rejections, 1), at the levels of e-LOND.

    Notes
    -----
    A test takes O(m) and a rejection O(m^2), where m is the number of stored tests, at most about 2000 if few
    hypotheses are false: 0.3 s for 2000 tests of which 400 reject, 0.8 s for 100,000 tests of which none does.

    References
    ----------
    Xu, Fischer, Ramdas (2026). Improving online FDR procedures via online analogs of e-closure and compound e-values.
    arXiv 2603.24792. Equation (2) of :mod:`tamis.columns.online_fdr.closed`.

    Examples
    --------
    >>> p = np.array([1e-6, 1e-8, 1e-7, 0.9, 0.8, 0.7, 0.0006])
    >>> [rule.start().decide(np.log(p))[-1] for rule in (ELOND(0.1), ClosedELOND(0.1))]
    [np.False_, np.True_]
    """

    weighted = False  # the sets of (2) have one place for each test

    def start(self) -> Self:
        """Validate the parameters and reset."""
        # E-values of the tests that count, how many of value 0 were before each, and rejections
        self._e = np.empty(0)
        self._zeros = np.empty(0, np.int64)
        self._rejected = np.empty(0)
        self._v = np.zeros(1)
        return super().start()

    def _e_values(self, log_p: Floats) -> Floats:
        return np.exp(np.minimum(math.log(self.kappa) + (self.kappa - 1.0) * log_p, _LARGEST))

    def _after(self, log_p: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the levels of the next tests, the e-values that count, and v after them, as long as none rejects."""
        n, levels, e = len(self._e), np.empty(len(log_p)), self._e_values(log_p)
        e = np.where(e >= self._clocks(log_p, None) / _EXACT, e, 0.0)
        scale = float(self.alpha) * (self.n_rejected_ + 1)
        n_zero = int(self.clock_) - n
        gamma = gamma_power(np.arange(n_zero + 1, n_zero + n + len(log_p) + 2))
        v = np.concatenate([self._v, np.empty(len(log_p))])
        n_zero = _pass(v, n, gamma, scale * e, levels)
        levels = np.minimum(scale * levels, 1.0)
        return self._from_sum(levels), e, v[: n + len(log_p) - n_zero + 1]

    def _levels(self, log_p: Floats, weight: Floats | None) -> Floats:
        return self._after(log_p)[0]

    def _costs(self, levels: Floats, log_p: Floats) -> Floats:
        return super()._levels(log_p, None)

    def _add(self, e: Floats, rejected: float) -> None:
        counts = np.flatnonzero(e)
        zeros = self.clock_ + counts - len(self._e) - np.arange(len(counts))
        self._e, self._zeros = np.concatenate([self._e, e[counts]]), np.concatenate([self._zeros, zeros])
        self._rejected = np.concatenate([self._rejected, np.full(len(counts), rejected)])

    def skip(self, log_p: Floats, weight: Floats | None = None) -> None:
        """Record tests that did not reject."""
        _, e, v = self._after(log_p)
        self.spent_ += float(self._costs(log_p, log_p).sum())
        self._add(e, 0.0)
        self._v, self.clock_ = v, self.clock_ + len(log_p)

    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        self.spent_ += float(self._costs(log_p, log_p)[0])
        self._add(self._e_values(log_p), 1.0)
        self.clock_ += 1
        self.n_rejected_ += 1
        n = len(self._e)
        gamma = gamma_power(np.arange(1, int(self.clock_) + 2))
        self._v = np.empty(n + 1)
        scale = float(self.alpha) * (self.n_rejected_ + 1)
        _rebuild(gamma, self._zeros, self._rejected, scale * self._e, self._v)
