"""Spending rules: how small a p-value must be when hypotheses arrive one after the other and never end.

Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005 (Figure 1), and the rules of
online control of the false discovery rate that came after it. Test t is passed if p_t <= alpha_t; R_t says whether.

=====================  ==============================================================================================
rule                   level of test t (tau_j: place of the j-th rejection; g: a sequence that falls and sums to <= 1)
=====================  ==============================================================================================
`AlphaWealth`          w / (2 t);  w -= alpha_t, on a rejection w += payout      Zhou et al. (2005), Figure 1
`AlphaSpending`        alpha g(t)                                                Foster, Stine (2008)
`LOND`                 alpha g(t) (D + 1), D rejections so far                   Javanmard, Montanari (2015)
`LORDPlusPlus`         W0 g(t) + (alpha - W0) g(t - tau_1) + alpha sum_{j>1} g(t - tau_j)     Ramdas et al. (2017)
`LORD3`                g(t - tau_last) W(tau_last)                               Javanmard, Montanari (2018)
`SAFFRON`              as LORD++ times (1 - lambda), but time stands still while p <= lambda  Ramdas et al. (2018)
`SaffronInvesting`     as SAFFRON with lambda = alpha_t: a / (1 + a)             Ramdas et al. (2018), Section 2.4
`ADDIS`                as SAFFRON, and tests with p > tau are left out           Tian, Ramdas (2019)
`GeneralizedInvesting` phi / (1 + phi), phi = W / (1 + t - tau_last)             Aharoni, Rosset (2014)
=====================  ==============================================================================================

Guarantees hold for p-values that are valid given what happened before (independent ones, say): `AlphaSpending` keeps
the chance of any false rejection below alpha, the others the false discovery rate (`LORD3` and
`GeneralizedInvesting`: the rate as it stands after the last test). Correlated features break that assumption.

Errata and deviations, each with its reason:

* Figure 1 prints "w_i/2i" and adds a feature if its p-value is *greater*: it is w_i / (2 i), and *smaller*.
* Its bound is E(N) <= (payout E(M) + W0) / (1 - payout), N false and M true rejections. The paper's 0.5 and 0.5 thus
  allow as many false features as true ones, and one more. ``target_fdr`` sets both to half of the rate instead.
* The wealth w falls like W0 / sqrt(pi t) without rejections, not at the "slowest possible" rate.
* A p-value may be smaller than any float64, so the logarithms of p and alpha are compared.
* LORD3 earns alpha - W0 at the rejection itself, as published; a package in common use pays it two tests late.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._check import check_number

__all__ = [
    "ADDIS",
    "LOND",
    "LORD3",
    "RULES",
    "SAFFRON",
    "AlphaSpending",
    "AlphaWealth",
    "GeneralizedInvesting",
    "LORDPlusPlus",
    "SaffronInvesting",
    "SpendingRule",
    "make_rule",
]

Floats = NDArray[np.float64]
_PART = 1 << 18  # ages that are looked up together


class SpendingRule(BaseEstimator):  # type: ignore[misc]
    """How small the next p-value must be.

    A rule is started, then asked for the `level` of the next test and told its outcome by `update`, for ever.
    `levels` and `skip` do the same for many tests at once, as long as none of them rejects.

    Attributes
    ----------
    wealth_ : float
        What is left of the error budget.
    """

    wealth_: float

    @abstractmethod
    def start(self) -> Self:
        """Check the parameters and forget all tests."""

    @abstractmethod
    def levels(self, log_p: Floats) -> Floats:
        """Return the log levels of the next tests as long as none rejects, from their log p-values.

        Parameters
        ----------
        log_p : ndarray of shape (m,), float64
            The level of a test never depends on its own p-value or on later ones.

        Returns
        -------
        ndarray of shape (m,), float64
        """

    @abstractmethod
    def wealths(self, log_p: Floats) -> Floats:
        """Return what is left after each of these tests if none of them rejects, shape (m,)."""

    @abstractmethod
    def skip(self, log_p: Floats) -> None:
        """Note tests that did not reject."""

    @abstractmethod
    def _reject(self, log_p: float) -> None:
        """Note a test that did."""

    def level(self) -> float:
        """Return the log level of the next test."""
        return float(self.levels(np.zeros(1))[0])

    def update(self, rejected: bool, log_p: float) -> None:
        """Note the outcome of the next test.

        Parameters
        ----------
        rejected : bool
        log_p : float
            Its log p-value.
        """
        if rejected:
            self._reject(float(log_p))
        else:
            self.skip(np.array([float(log_p)]))

    def decide(self, log_p: Floats) -> NDArray[np.bool_]:
        """Test p-values in order.

        Parameters
        ----------
        log_p : ndarray of shape (m,), float64
            Their logarithms.

        Returns
        -------
        ndarray of shape (m,), bool
            Which are rejected (as hypotheses; selected, as features).

        Examples
        --------
        >>> p = np.array([1e-6, 0.4, 0.02, 0.3, 1e-4])
        >>> LOND(alpha=0.05).start().decide(np.log(p))
        array([ True, False, False, False,  True])
        """
        rejected = np.zeros(len(log_p), dtype=bool)
        start, width = 0, 64
        while start < len(log_p):
            part = log_p[start : start + width]
            hits = np.flatnonzero(part <= self.levels(part))
            n = int(hits[0]) if len(hits) else len(part)
            self.skip(part[:n])
            if len(hits):
                self._reject(float(part[n]))
                rejected[start + n] = True
            width = 64 if len(hits) else min(2 * width, _PART)
            start += n + 1 if len(hits) else n
        return rejected


class AlphaWealth(SpendingRule):
    """Alpha-investing as published: Figure 1 of Zhou et al. (2005), corrected.

    Parameters
    ----------
    initial_wealth : float, default=0.5
        W0, in (0, 1].
    payout : float, default=0.5
        alpha_delta, what a rejection earns, in [0, 1).

    Attributes
    ----------
    wealth_ : float
        w; always positive.

    References
    ----------
    Zhou, Foster, Stine, Ungar (2005). Streaming Feature Selection using Alpha-investing. KDD. Figure 1, Theorem 1.

    Examples
    --------
    >>> rule = AlphaWealth().start()
    >>> float(np.exp(rule.level()))
    0.25
    >>> rule.update(False, np.log(0.9))
    >>> rule.wealth_, float(np.exp(rule.level()).round(6))  # 0.5 - 0.25, and 0.25 / (2 * 2)
    (0.25, 0.0625)
    """

    def __init__(self, initial_wealth: float = 0.5, payout: float = 0.5) -> None:
        self.initial_wealth = initial_wealth
        self.payout = payout

    def start(self) -> Self:
        """Check the parameters and forget all tests."""
        check_number("initial_wealth", self.initial_wealth, low=0, high=1, open_low=True)
        check_number("payout", self.payout, low=0, high=1, open_high=True)
        self.wealth_ = float(self.initial_wealth)
        self.n_tests_ = 0
        return self

    def wealths(self, log_p: Floats) -> Floats:
        """Return w after each of these tests if none of them rejects."""
        places = np.arange(self.n_tests_ + 1, self.n_tests_ + len(log_p) + 1)
        # w - w / (2 i) for each, in this order, so that any batching gives the same bits
        factors = np.concatenate([[self.wealth_], 1.0 - 1.0 / (2.0 * places)])
        left: Floats = np.cumprod(factors)[1:]
        return left

    def levels(self, log_p: Floats) -> Floats:
        """Return log w_i / (2 i) for the next tests as long as none rejects."""
        places = np.arange(self.n_tests_ + 1, self.n_tests_ + len(log_p) + 1)
        before = np.concatenate([[self.wealth_], self.wealths(log_p)[:-1]])
        levels: Floats = np.log(before / (2.0 * places))
        return levels

    def skip(self, log_p: Floats) -> None:
        """Note tests that did not reject."""
        if len(log_p):
            self.wealth_ = float(self.wealths(log_p)[-1])
            self.n_tests_ += len(log_p)

    def _reject(self, log_p: float) -> None:
        self.skip(np.array([log_p]))
        self.wealth_ += float(self.payout)


class _Ageing(SpendingRule):
    """Rules that are a sum over the past rejections, each fading with the time since; one clock for all.

    The level is built from sum_j weight_j g(age_j), where age_j is 1 plus the ticks since rejection j (j = 0: since
    the start), and a test that does not reject ticks if `_ticks` says so.
    """

    alpha: float
    initial_wealth: float | None
    _default_wealth: ClassVar[float]  # as a fraction of alpha
    _rejection_ticks: ClassVar[bool] = False

    def start(self) -> Self:
        """Check the parameters and forget all tests."""
        check_number("alpha", self.alpha, low=0, high=1, open_low=True, open_high=True)
        if self.initial_wealth is not None:
            check_number("initial_wealth", self.initial_wealth, low=0, high=self.alpha, open_low=True)
        self._check()
        self.clock_ = 0
        self.births_: tuple[int, ...] = (0,)
        self.paid_ = 0.0
        return self

    def _check(self) -> None:
        """Check further parameters."""

    @property
    def _initial(self) -> float:
        given = self.initial_wealth
        return float(self.alpha) * self._default_wealth if given is None else float(given)

    @property
    def wealth_(self) -> float:  # type: ignore[override]
        """What the estimate of the false discoveries leaves of alpha max(rejections, 1)."""
        return float(self.alpha) * max(len(self.births_) - 1, 1) - self.paid_

    def _weights(self) -> Floats:
        """Return what each birth is worth: W0, alpha - W0, alpha, alpha, ..."""
        weights = np.full(len(self.births_), float(self.alpha))
        weights[0] = self._initial
        weights[1:2] -= self._initial
        return weights

    def _fade(self, ages: NDArray[np.int64]) -> Floats:
        """Return g of the ages, shape (m, births)."""
        return gamma_power(ages)

    def _ticks(self, log_p: Floats) -> NDArray[np.bool_]:
        return np.ones(len(log_p), dtype=bool)

    def _from_sum(self, total: Floats) -> Floats:
        return total

    def _prices(self, levels: Floats, log_p: Floats) -> Floats:
        """Return what each test that does not reject adds to the estimate of the false discoveries."""
        return levels

    def levels(self, log_p: Floats) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        levels: Floats = np.log(self._levels(log_p))
        return levels

    def _levels(self, log_p: Floats) -> Floats:
        clock = self.clock_ + np.cumsum(np.concatenate([[0], self._ticks(log_p)[:-1]]), dtype=np.int64)
        births, weights = np.array(self.births_), self._weights()
        total = np.empty(len(log_p))
        width = max(1, _PART // len(births))
        for start in range(0, len(total), width):
            part = slice(start, start + width)
            total[part] = self._fade(clock[part, None] + 1 - births) @ weights
        return self._from_sum(total)

    def wealths(self, log_p: Floats) -> Floats:
        """Return what is left after each of these tests if none of them rejects."""
        prices = self._prices(self._levels(log_p), log_p)
        left: Floats = self.wealth_ - np.cumsum(prices)
        return left

    def skip(self, log_p: Floats) -> None:
        """Note tests that did not reject."""
        self.paid_ += float(self._prices(self._levels(log_p), log_p).sum())
        self.clock_ += int(np.count_nonzero(self._ticks(log_p)))

    def _reject(self, log_p: float) -> None:
        one = np.array([log_p])
        self.paid_ += float(self._rejection_price(self._levels(one))[0])
        self.clock_ += self._rejection_ticks
        self.births_ = (*self.births_, self.clock_)

    def _rejection_price(self, levels: Floats) -> Floats:
        return levels


def gamma_lord(ages: NDArray[np.int64]) -> Floats:
    """Return 0.07720838 log(max(j, 2)) / (j exp(sqrt(log j))), the sequence of LORD; j >= 1.

    Examples
    --------
    >>> gamma_lord(np.array([1, 10])).round(6)
    array([0.053517, 0.003898])
    """
    logs = np.log(ages)
    g: Floats = 0.07720838 * np.maximum(logs, np.log(2.0)) / (ages * np.exp(np.sqrt(logs)))
    return g


def gamma_power(ages: NDArray[np.int64]) -> Floats:
    """Return 0.4374901658 j^-1.6, the sequence of SAFFRON and ADDIS; j >= 1.

    Examples
    --------
    >>> gamma_power(np.array([1, 10])).round(6)
    array([0.43749 , 0.010989])
    """
    g: Floats = 0.4374901658 * ages.astype(np.float64) ** -1.6
    return g


class AlphaSpending(_Ageing):
    """Spends alpha once: the chance of any false rejection stays below alpha.

    Parameters
    ----------
    alpha : float, default=0.05
        In (0, 1).

    Attributes
    ----------
    wealth_ : float
        What is left of alpha.

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

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def _weights(self) -> Floats:
        return np.array([float(self.alpha)])

    def _reject(self, log_p: float) -> None:
        self.skip(np.array([log_p]))
        self.n_rejected_ += 1

    def start(self) -> Self:
        """Check the parameters and forget all tests."""
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
        """What is left of alpha max(rejections, 1)."""
        return float(self.alpha) * max(self.n_rejected_, 1) - self.paid_

    def _weights(self) -> Floats:
        return np.array([float(self.alpha) * (self.n_rejected_ + 1)])


class LORDPlusPlus(_Ageing):
    """LORD++: every rejection starts a new budget that fades with time.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha]; None: alpha / 10.
    decay : float, default=1.0
        In (0, 1]: below 1, rejections are forgotten at this rate per test (mem-LORD++), for streams that change; what
        is controlled is then the rate among recent tests.

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

    def __init__(self, alpha: float = 0.05, initial_wealth: float | None = None, decay: float = 1.0) -> None:
        self.alpha = alpha
        self.initial_wealth = initial_wealth
        self.decay = decay

    def _check(self) -> None:
        check_number("decay", self.decay, low=0, high=1, open_low=True)

    def _fade(self, ages: NDArray[np.int64]) -> Floats:
        g = gamma_lord(ages)
        if self.decay < 1.0:
            weight = float(self.decay) ** ages.astype(np.float64)
            weight[:, 0] = weight[:, 1] if ages.shape[1] > 1 else 1.0  # d^(t - min(tau_1, t))
            g *= weight
        return g


class LORD3(SpendingRule):
    """LORD3: spends the wealth of the last rejection.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha); None: alpha / 10.

    Attributes
    ----------
    wealth_ : float
        W.

    References
    ----------
    Javanmard, Montanari (2018). Online rules for control of false discovery rate and false discovery exceedance.
    Annals of Statistics 46(2).

    Examples
    --------
    >>> rule = LORD3(0.05).start()
    >>> rule.update(True, -20.0)
    >>> round(rule.wealth_, 6)  # W0 - alpha_1 + alpha - W0
    0.049732
    """

    def __init__(self, alpha: float = 0.05, initial_wealth: float | None = None) -> None:
        self.alpha = alpha
        self.initial_wealth = initial_wealth

    def start(self) -> Self:
        """Check the parameters and forget all tests."""
        check_number("alpha", self.alpha, low=0, high=1, open_low=True, open_high=True)
        if self.initial_wealth is not None:
            check_number("initial_wealth", self.initial_wealth, low=0, high=self.alpha, open_low=True)
        initial = float(self.alpha) / 10.0 if self.initial_wealth is None else float(self.initial_wealth)
        self.wealth_ = self.wealth_then_ = initial
        self._bonus = float(self.alpha) - initial
        self.age_ = 0
        return self

    def _levels(self, log_p: Floats) -> Floats:
        ages = np.arange(self.age_ + 1, self.age_ + len(log_p) + 1)
        return gamma_lord(ages) * self.wealth_then_

    def levels(self, log_p: Floats) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        levels: Floats = np.log(self._levels(log_p))
        return levels

    def wealths(self, log_p: Floats) -> Floats:
        """Return W after each of these tests if none of them rejects."""
        left: Floats = self.wealth_ - np.cumsum(self._levels(log_p))
        return left

    def skip(self, log_p: Floats) -> None:
        """Note tests that did not reject."""
        if len(log_p):
            self.wealth_ = float(self.wealths(log_p)[-1])
            self.age_ += len(log_p)

    def _reject(self, log_p: float) -> None:
        self.skip(np.array([log_p]))
        self.wealth_ += self._bonus
        self.wealth_then_, self.age_ = self.wealth_, 0


class SAFFRON(_Ageing):
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

    def __init__(
        self, alpha: float = 0.05, initial_wealth: float | None = None, candidate: float = 0.5
    ) -> None:
        self.alpha = alpha
        self.initial_wealth = initial_wealth
        self.candidate = candidate

    def _check(self) -> None:
        check_number("candidate", self.candidate, low=0, high=1, open_low=True, open_high=True)

    def _ticks(self, log_p: Floats) -> NDArray[np.bool_]:
        ticks: NDArray[np.bool_] = log_p > np.log(self.candidate)
        return ticks

    def _from_sum(self, total: Floats) -> Floats:
        return np.minimum(self.candidate, (1.0 - self.candidate) * total)

    def _prices(self, levels: Floats, log_p: Floats) -> Floats:
        return np.where(self._ticks(log_p), levels / (1.0 - self.candidate), 0.0)

    def _rejection_price(self, levels: Floats) -> Floats:
        return np.zeros(1)


class SaffronInvesting(_Ageing):
    """Alpha-investing in the form of SAFFRON, with lambda equal to the level itself.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha]; None: alpha / 2.

    References
    ----------
    Ramdas, Zrnic, Wainwright, Jordan (2018). SAFFRON. ICML. Section 2.4.

    Examples
    --------
    >>> rule = SaffronInvesting(0.05).start()
    >>> a = 0.025 * 0.4374901658
    >>> bool(np.isclose(np.exp(rule.level()), a / (1 + a)))
    True
    """

    _default_wealth = 0.5

    def __init__(self, alpha: float = 0.05, initial_wealth: float | None = None) -> None:
        self.alpha = alpha
        self.initial_wealth = initial_wealth

    def _from_sum(self, total: Floats) -> Floats:
        return total / (1.0 + total)

    def _prices(self, levels: Floats, log_p: Floats) -> Floats:
        return levels / (1.0 - levels)

    def _rejection_price(self, levels: Floats) -> Floats:
        return np.zeros(1)


class ADDIS(_Ageing):
    """ADDIS: as SAFFRON, and tests with a large p-value (p > tau) are as if they had not been made.

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

    _default_wealth = 0.5

    def __init__(
        self,
        alpha: float = 0.05,
        initial_wealth: float | None = None,
        candidate: float = 0.25,
        discard: float = 0.5,
    ) -> None:
        self.alpha = alpha
        self.initial_wealth = initial_wealth
        self.candidate = candidate
        self.discard = discard

    def _check(self) -> None:
        check_number("discard", self.discard, low=0, high=1, open_low=True)
        check_number("candidate", self.candidate, low=0, high=self.discard, open_low=True, open_high=True)

    def _ticks(self, log_p: Floats) -> NDArray[np.bool_]:
        ticks: NDArray[np.bool_] = (log_p > np.log(self.candidate)) & (log_p <= np.log(self.discard))
        return ticks

    def _from_sum(self, total: Floats) -> Floats:
        return np.minimum(self.candidate, (self.discard - self.candidate) * total)

    def _prices(self, levels: Floats, log_p: Floats) -> Floats:
        return np.where(self._ticks(log_p), levels / (self.discard - self.candidate), 0.0)

    def _rejection_price(self, levels: Floats) -> Floats:
        return np.zeros(1)


class GeneralizedInvesting(SpendingRule):
    """Generalised alpha-investing: bets 1 / (1 + age) of the wealth, which grows with each rejection and may decay.

    Parameters
    ----------
    alpha : float, default=0.05
        In (0, 1).
    initial_wealth : float or None, default=None
        W0, in (0, alpha); None: alpha / 2. A rejection gives its stake back and alpha - W0.
    decay : float, default=1.0
        In (0, 1]: below 1, the wealth is forgotten at this rate per test and before the first rejection refilled
        to W0, so that a long silent stretch or an early run of luck does not rule for ever.

    Attributes
    ----------
    wealth_ : float
        W.

    References
    ----------
    Foster, Stine (2008). Alpha-investing. JRSS B 70(2). Aharoni, Rosset (2014). Generalized alpha-investing. JRSS B
    76(4). Decay: Ramdas et al. (2017), Section 5.

    Examples
    --------
    >>> rule = GeneralizedInvesting(0.05).start()
    >>> rule.update(True, -20.0)
    >>> round(rule.wealth_, 6)  # the stake is given back, and alpha - W0 earned
    0.05
    """

    def __init__(self, alpha: float = 0.05, initial_wealth: float | None = None, decay: float = 1.0) -> None:
        self.alpha = alpha
        self.initial_wealth = initial_wealth
        self.decay = decay

    def start(self) -> Self:
        """Check the parameters and forget all tests."""
        check_number("alpha", self.alpha, low=0, high=1, open_low=True, open_high=True)
        check_number("decay", self.decay, low=0, high=1, open_low=True)
        if self.initial_wealth is not None:
            check_number("initial_wealth", self.initial_wealth, low=0, high=self.alpha, open_low=True)
        initial = float(self.alpha) / 2.0 if self.initial_wealth is None else float(self.initial_wealth)
        self.wealth_ = self._initial = initial
        self.age_ = 0
        self.n_rejected_ = 0
        return self

    def _run(self, m: int) -> tuple[Floats, Floats]:
        """Return the stakes of the next tests as long as none rejects, and the wealth after each."""
        stakes, left = np.empty(m), np.empty(m)
        keep, refill = float(self.decay), (1.0 - float(self.decay)) * self._initial * (self.n_rejected_ == 0)
        wealth = self.wealth_
        for i in range(m):
            wealth = keep * wealth + refill
            stakes[i] = wealth / (2.0 + self.age_ + i)
            left[i] = wealth = wealth - stakes[i]
        return stakes, left

    def levels(self, log_p: Floats) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        stakes = self._run(len(log_p))[0]
        levels: Floats = np.log(stakes / (1.0 + stakes))
        return levels

    def wealths(self, log_p: Floats) -> Floats:
        """Return W after each of these tests if none of them rejects."""
        return self._run(len(log_p))[1]

    def skip(self, log_p: Floats) -> None:
        """Note tests that did not reject."""
        if len(log_p):
            self.wealth_ = float(self._run(len(log_p))[1][-1])
            self.age_ += len(log_p)

    def _reject(self, log_p: float) -> None:
        stakes, left = self._run(1)
        self.wealth_ = float(left[0] + stakes[0] + self.alpha - self._initial)
        self.age_, self.n_rejected_ = 0, self.n_rejected_ + 1


RULES: dict[str, type[Any]] = {
    "alpha-investing": AlphaWealth, "alpha-spending": AlphaSpending, "lond": LOND, "lord++": LORDPlusPlus,
    "lord3": LORD3, "saffron": SAFFRON, "saffron-investing": SaffronInvesting, "addis": ADDIS,
    "generalized-investing": GeneralizedInvesting,
}  # fmt: skip


def make_rule(name: str, target_fdr: float) -> SpendingRule:
    """Return the rule of a name that keeps to a false discovery rate.

    Parameters
    ----------
    name : str
        One of :data:`RULES`.
    target_fdr : float
        In (0, 1).

    Returns
    -------
    SpendingRule

    Raises
    ------
    ValueError
        If there is no such rule, or the rate is out of range.

    Examples
    --------
    >>> make_rule("alpha-investing", 0.05), make_rule("saffron", 0.1)
    (AlphaWealth(initial_wealth=0.025, payout=0.025), SAFFRON(alpha=0.1))
    """
    check_number("target_fdr", target_fdr, low=0, high=1, open_low=True, open_high=True)
    if name not in RULES:
        raise ValueError(
            f"rule must be one of {', '.join(map(repr, RULES))}, or a SpendingRule, got {name!r}."
        )
    if name == "alpha-investing":
        return AlphaWealth(target_fdr / 2.0, target_fdr / 2.0)
    rule: SpendingRule = RULES[name](target_fdr)
    return rule
