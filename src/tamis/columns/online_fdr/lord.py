"""Rules whose level is a sum over past rejections, each decaying with the number of tests since."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask, check_number
from tamis.columns.online_fdr.rule import ChargingRule

Gamma = Callable[[Ints], Floats]
_PART = 1 << 18  # ages processed together


def gamma_lord(ages: Ints) -> Floats:
    """Return 0.07720838 log(max(j, 2)) / (j exp(sqrt(log j))), the sequence of LORD; j >= 1.

    Examples
    --------
    >>> gamma_lord(np.array([1, 10])).round(6)
    array([0.053517, 0.003898])
    """
    logs = np.log(ages)
    return 0.07720838 * np.maximum(logs, np.log(2.0)) / (ages * np.exp(np.sqrt(logs)))


def gamma_power(ages: Ints) -> Floats:
    """Return 0.4374901658 j^-1.6, the sequence of SAFFRON and ADDIS; j >= 1.

    Examples
    --------
    >>> gamma_power(np.array([1, 10])).round(6)
    array([0.43749 , 0.010989])
    """
    return 0.4374901658 * ages.astype(np.float64) ** -1.6


@functools.lru_cache(maxsize=8)
def _sums(gamma: Gamma, n: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(gamma(np.arange(1, n + 1)))])


def share(gamma: Gamma, before: Floats, weight: Floats) -> Floats:
    """Return the sum of a sequence from `before` to `before + weight`, linear between integers.

    Examples
    --------
    >>> share(gamma_power, np.array([0.0, 0.5]), np.array([1.0, 1.0])).round(6)
    array([0.43749 , 0.290904])
    """
    after = before + weight
    sums = _sums(gamma, 1 << int(after.max(initial=1.0)).bit_length())
    places = np.arange(len(sums))
    return np.interp(after, places, sums) - np.interp(before, places, sums)


class DecayingSumRule(ChargingRule):
    """Rules whose level is a sum over past rejections, each decaying with the time since, on a common clock.

    The level is built from sum_j weight_j g(age_j), where age_j is 1 plus the ticks since rejection j (j = 0: since
    the start), and a test that does not reject ticks where `_ticks` is True. A test of weight w has the sum of g over w
    places, and ticks w times.
    """

    initial_wealth: float | None
    _default_wealth: ClassVar[float]  # as a fraction of alpha
    _rejection_ticks: ClassVar[bool] = False

    def start(self) -> Self:
        """Validate the parameters and reset."""
        super().start()
        if self.initial_wealth is not None:
            check_number("initial_wealth", self.initial_wealth, low=0, high=self.alpha, open_low=True)
        self.rejection_times_: tuple[int | float, ...] = (0,)
        return self

    @property
    def _initial_wealth(self) -> float:
        wealth = self.initial_wealth
        return float(self.alpha) * self._default_wealth if wealth is None else float(wealth)

    @property
    def wealth_(self) -> float:  # type: ignore[override]
        """The part of alpha max(rejections, 1) that is not spent on estimated false discoveries."""
        return float(self.alpha) * max(len(self.rejection_times_) - 1, 1) - self.spent_

    def _weights(self) -> Floats:
        """Return the weight of each rejection time: W0, alpha - W0, alpha, alpha, ..."""
        weights = np.full(len(self.rejection_times_), float(self.alpha))
        weights[0] = self._initial_wealth
        weights[1:2] -= self._initial_wealth
        return weights

    _gamma: ClassVar[Any] = staticmethod(gamma_power)

    def _fade(self, ages: Array, weight: Floats | None) -> Floats:
        """Return g of the ages, shape (m, n_times)."""
        return self._gamma(ages) if weight is None else share(self._gamma, ages - 1.0, weight[:, None])

    def _from_sum(self, total: Floats) -> Floats:
        return total

    def _levels(self, log_p: Floats, weight: Floats | None) -> Floats:
        clock, times = self._clocks(log_p, weight), np.array(self.rejection_times_)
        weights = self._weights()
        total = np.empty(len(log_p))
        width = max(1, _PART // len(times))
        for start in range(0, len(total), width):
            part = slice(start, start + width)
            own = None if weight is None else weight[part]
            total[part] = self._fade(clock[part, None] + 1 - times, own) @ weights
        return self._from_sum(total)

    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        self.spent_ += float(self._rejection_cost(self._levels(log_p, weight))[0])
        if self._rejection_ticks:
            self.clock_ += 1 if weight is None else float(weight[0])
        self.rejection_times_ = (*self.rejection_times_, self.clock_)

    def _rejection_cost(self, levels: Floats) -> Floats:
        return levels


@dataclass(eq=False, repr=False)
class AlphaSpending(DecayingSumRule):
    """Spends alpha once: the probability of any false rejection stays below alpha.

    Parameters
    ----------
    alpha : float, default=0.05
        In (0, 1).

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Foster, Stine (2008). Alpha-investing: sequential control of expected false discoveries. JRSS B 70(2).

    Examples
    --------
    >>> float(np.exp(AlphaSpending(0.05).start().level()).round(6))
    0.021875
    """

    initial_wealth = None
    _rejection_ticks = True

    alpha: float = 0.05

    def _weights(self) -> Floats:
        return np.array([float(self.alpha)])

    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        self.skip(log_p, weight)
        self.n_rejected_ += 1

    def start(self) -> Self:
        """Validate the parameters and reset."""
        self.n_rejected_ = 0
        return super().start()


class LOND(AlphaSpending):
    """Levels by the number of discoveries: alpha g(t) (D + 1).

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).

    References
    ----------
    Javanmard, Montanari (2015). On online control of false discovery rate. arXiv 1502.06197.

    Examples
    --------
    >>> rule = LOND(0.05).start()
    >>> rule.update(True, -20.0)
    >>> bool(np.isclose(np.exp(rule.level()), 0.05 * 0.4374901658 * 2**-1.6 * 2))
    True
    """

    @property
    def wealth_(self) -> float:  # type: ignore[override]
        """The remaining part of alpha max(rejections, 1)."""
        return float(self.alpha) * max(self.n_rejected_, 1) - self.spent_

    def _weights(self) -> Floats:
        return np.array([float(self.alpha) * (self.n_rejected_ + 1)])


@dataclass(eq=False, repr=False)
class ELOND(LOND):
    """e-LOND: LOND for e-values, here computed from p-values; valid under any dependence between the tests.

    A valid p-value gives the e-value kappa p^(kappa - 1). A test rejects if that is at least 1 / level of LOND, that
    is, if p is at most (kappa level)^(1 / (1 - kappa)).

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1). Smaller values favour tiny p-values over moderate ones.

    References
    ----------
    Xu, Ramdas (2024). Online multiple testing with e-values. AISTATS. Calibrator: Vovk, Wang (2021). E-values. Annals
    of Statistics 49(3).

    Examples
    --------
    >>> level = 0.05 * 0.4374901658
    >>> bool(np.isclose(np.exp(ELOND(0.05, kappa=0.5).start().level()), (level / 2) ** 2))
    True
    """

    alpha: float = 0.05
    kappa: float = 0.1

    def _check(self) -> None:
        check_number("kappa", self.kappa, low=0, high=1, open_low=True, open_high=True)

    def _from_sum(self, total: Floats) -> Floats:
        return (self.kappa * total) ** (1.0 / (1.0 - self.kappa))


@dataclass(eq=False, repr=False)
class LORDPlusPlus(DecayingSumRule):
    """LORD++: every rejection starts a new budget that decays with time.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha]; None: alpha / 10.
    decay : float, default=1.0
        In (0, 1]. Below 1, rejections are forgotten at this rate per test (mem-LORD++), for non-stationary streams.
        The controlled rate is then that among recent tests.

    References
    ----------
    Ramdas, Yang, Wainwright, Jordan (2017). Online control of the false discovery rate with decaying memory. NeurIPS.

    Examples
    --------
    >>> rule = LORDPlusPlus(0.05).start()
    >>> p = np.array([2.90e-08, 0.06743, 0.01514, 0.08174, 0.00171, 3.60e-05, 0.79149, 0.27201, 0.28295, 7.59e-08])
    >>> (np.flatnonzero(rule.decide(np.log(p))) + 1).tolist()
    [1, 6, 10]
    """

    _default_wealth = 0.1
    _rejection_ticks = True

    alpha: float = 0.05
    initial_wealth: float | None = None
    decay: float = 1.0

    def _check(self) -> None:
        check_number("decay", self.decay, low=0, high=1, open_low=True)

    _gamma = staticmethod(gamma_lord)

    def _fade(self, ages: Array, weight: Floats | None) -> Floats:
        g = super()._fade(ages, weight)
        if self.decay < 1.0:
            weight = float(self.decay) ** ages.astype(np.float64)
            weight[:, 0] = weight[:, 1] if ages.shape[1] > 1 else 1.0  # d^(t - min(tau_1, t))
            g *= weight
        return g


# -- Adaptive rules, which only pay for some tests: they estimate the number of null hypotheses from the p-values


@dataclass(eq=False, repr=False)
class SAFFRON(DecayingSumRule):
    """SAFFRON: tests that could become discoveries (p <= lambda) cost nothing.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha]; None: alpha / 2.
    candidate : float, default=0.5
        lambda, in (0, 1).

    References
    ----------
    Ramdas, Zrnic, Wainwright, Jordan (2018). SAFFRON: an adaptive algorithm for online control of the false discovery
    rate. ICML.

    Examples
    --------
    >>> rule = SAFFRON(0.05).start()
    >>> before = rule.level()
    >>> rule.update(False, np.log(0.4))  # a candidate: the level stays
    >>> rule.level() == before
    True
    """

    _default_wealth = 0.5
    discard = 1.0  # tau of ADDIS: no test is discarded

    alpha: float = 0.05
    initial_wealth: float | None = None
    candidate: float = 0.5

    def _check(self) -> None:
        check_number("discard", self.discard, low=0, high=1, open_low=True)
        check_number("candidate", self.candidate, low=0, high=self.discard, open_low=True, open_high=True)

    def _ticks(self, log_p: Floats) -> Mask:
        return (log_p > np.log(self.candidate)) & (log_p <= np.log(self.discard))

    def _from_sum(self, total: Floats) -> Floats:
        return np.minimum(self.candidate, (self.discard - self.candidate) * total)

    def _costs(self, levels: Floats, log_p: Floats) -> Floats:
        return np.where(self._ticks(log_p), levels / (self.discard - self.candidate), 0.0)

    def _rejection_cost(self, levels: Floats) -> Floats:
        return np.zeros(1)


@dataclass(eq=False, repr=False)
class ADDIS(SAFFRON):
    """ADDIS: as SAFFRON, but tests with a large p-value (p > tau) are discarded.

    It needs p-values that are uniform below tau under the null hypothesis. Those of columns of few ones and a rare
    class are not; use SAFFRON for them.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha]; None: alpha / 2.
    candidate : float, default=0.25
        lambda, in (0, discard).
    discard : float, default=0.5
        tau, in (0, 1].

    References
    ----------
    Tian, Ramdas (2019). ADDIS: an adaptive discarding algorithm for online FDR control with conservative nulls.
    NeurIPS.

    Examples
    --------
    >>> rule = ADDIS(0.05).start()
    >>> before = rule.level()
    >>> rule.update(False, np.log(0.9))  # discarded: the level stays
    >>> rule.level() == before
    True
    """

    candidate: float = 0.25
    discard: float = 0.5


# -- Closed e-LOND: the online e-closure of e-LOND, which rejects all that e-LOND rejects, and more

# For any set S of tests, let E_S be the sum of their e-values, the i-th one of S (in order) times g(i). For the set
# of the true null hypotheses, E_S only grows with time, and its mean is at most sum_i g(i) <= 1, however the tests
# depend on each other. Suppose that the rejections R_t satisfy, at all times t and for all sets S::
#
#     |R_t n S| / |R_t| <= alpha E_S                                                                            (1)
#
# The false discovery proportion is then never above alpha E_S for the true null hypotheses, so the mean of its
# largest value in the entire stream is at most alpha: the bound holds at any stopping time, also one that depends on
# the results.
#
# A test that does not reject leaves (1) valid, since E_S grows. Test t may reject if (1) then holds for every S of
# earlier tests and t itself. With R rejections so far, its e-value must be at least 1 / a_t::
#
#     a_t = min_S alpha (R + 1) g(|S| + 1) / D(S),   D(S) = 1 + |R n S| - alpha (R + 1) E_S,   over D(S) > 0    (2)
#
# By (1), D(S) <= 1, and |S| < t, so a_t is at least the level of e-LOND, alpha (R + 1) g(t). Let v(k) be the largest
# D(S) - 1 of k tests. A further test of e-value e changes it to the larger one of v(k) and v(k - 1) + [rejected]
# - alpha (R + 1) g(k) e, so (2) takes O(t) per test, and O(t^2) after a rejection.
#
# Deviations, each with its reason:
#
# * The e-value of a test that does not reject counts as 0 if it is below t / 2000. Such a test only moves the others to
#   later places, so the S of (2) contains all of them, and only the other tests are stored: few, because a null e-value
#   is rarely that large. (1) and the comparison with e-LOND remain valid; the first 2000 tests are exact.
# * a_t is at most 1, so that no test rejects with an e-value below 1.
#
# Xu, Fischer, Ramdas: Improving online FDR procedures via online analogs of e-closure and compound e-values, 2026
# (arXiv 2603.24792). The principle is that of Xu, Solari, Fischer, de Heide, Ramdas, Goeman: Bringing closure to
# false discovery rate control, 2025 (arXiv 2509.02517).

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
    arXiv 2603.24792. Equation (2) above the class in the source file.

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
