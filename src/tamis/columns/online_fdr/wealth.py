"""Rules with a wealth: each test spends part of it, each rejection earns some.

Zhou, Foster, Stine, Ungar (2005), Figure 1; Ungar, Zhou, Foster, Stine (2005), information-investing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from tamis._validation import Floats, check_number
from tamis.columns.online_fdr.rule import SpendingRule
from tamis.columns.tails import log_chi2_tail


@dataclass(eq=False, repr=False)
class AlphaWealth(SpendingRule):
    """Alpha-investing as published: Figure 1 of Zhou et al. (2005), corrected.

    Parameters
    ----------
    initial_wealth : float, default=0.5
        W0, in (0, 1].
    payout : float, default=0.5
        alpha_delta, the wealth that a rejection earns, in [0, 1).

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

    weighted = True

    initial_wealth: float = 0.5
    payout: float = 0.5

    def start(self) -> Self:
        """Validate the parameters and reset."""
        check_number("initial_wealth", self.initial_wealth, low=0, high=1, open_low=True)
        check_number("payout", self.payout, low=0, high=1, open_high=True)
        self.wealth_ = float(self.initial_wealth)
        self.n_tests_: int | float = 0
        return self

    def _kept(self, n: int, weight: Floats | None) -> Floats:
        """Return the part of w that each of the next tests leaves: 1 - 1 / (2 i), of w tests at their mean place."""
        if weight is None:
            return 1.0 - 1.0 / (2.0 * np.arange(self.n_tests_ + 1, self.n_tests_ + n + 1))
        before = np.cumsum(np.concatenate([[self.n_tests_], weight[:-1]]))
        return np.exp(weight * np.log1p(-0.5 / (before + 0.5 * (1.0 + weight))))

    def wealths(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return w after each of these tests if none of them rejects."""
        # Multiplied in this order, so that any batching gives the same bits.
        return np.cumprod(np.concatenate([[self.wealth_], self._kept(len(log_p), weight)]))[1:]

    def levels(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return log w_i / (2 i) for the next tests as long as none rejects."""
        before = np.concatenate([[self.wealth_], self.wealths(log_p, weight)[:-1]])
        if weight is None:
            return np.log(before / (2.0 * np.arange(self.n_tests_ + 1, self.n_tests_ + len(log_p) + 1)))
        return np.log(before * (1.0 - self._kept(len(log_p), weight)))

    def skip(self, log_p: Floats, weight: Floats | None = None) -> None:
        """Record tests that did not reject."""
        if len(log_p):
            self.wealth_ = float(self.wealths(log_p, weight)[-1])
            self._count(len(log_p), weight)

    def _count(self, n: int, weight: Floats | None) -> None:
        self.n_tests_ += n if weight is None else float(weight.sum())

    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        self.skip(log_p, weight)
        self.wealth_ += float(self.payout)


@dataclass(eq=False, repr=False)
class InformationInvesting(AlphaWealth):
    """Information-investing (IIC): a feature must shorten the message that encodes the model and the target.

    The wealth is in bits, and the bid is e = w / (2 i). Coding that feature i is not in the model costs e bits if its
    prior probability is q = 1 - 2^-e; coding that it is costs log2(1 / q) bits, plus `coefficient_bits`. It is accepted
    if its information on the target, half of the gain in 2 log likelihood over log 2, exceeds that cost by `payout`
    bits, which the wealth earns. The gain is the one whose test with one degree of freedom has the p-value.

    Parameters
    ----------
    initial_wealth : float, default=0.5
        W0, in bits, in (0, 1].
    payout : float, default=0.5
        Bits that a feature must save, and that the wealth earns, in [0, 1).
    coefficient_bits : float, default=3.0
        Bits that encode a coefficient, in [0, 1000]. BIC uses half of log2 n: 3.3 for 100 rows.

    Attributes
    ----------
    wealth_ : float
        w; always positive.

    Notes
    -----
    The message is never more than W0 bits longer than one without features: the wealth is spent on rejected features,
    and earns no more than accepted features save.

    A test costs e and its error probability is at most 2^-(b + c) q, with b = payout and c = coefficient_bits. So, of N
    false and M true rejections, E(N) <= (b E(M) + W0) / k, where k = 2^(b + c) / log 2 - 1.5 max(b, W0). At the
    defaults that is a thirtieth of E(M) + 1.

    References
    ----------
    Ungar, Zhou, Foster, Stine (2005). Streaming Feature Selection using IIC. AISTATS. Zhou et al. (2005) mention it as
    the counterpart of alpha-investing, Section 2.

    Examples
    --------
    The first bid is 0.25 bits, so q = 0.159. A feature must carry 2.65 + 3 + 0.5 bits, which occurs by chance
    once in 286:

    >>> rule = InformationInvesting().start()
    >>> round(1 / float(np.exp(rule.level())))
    286
    >>> rule.update(True, -20.0)
    >>> rule.wealth_
    1.0
    """

    coefficient_bits: float = 3.0

    @classmethod
    def for_target(cls, target_fdr: float) -> Self:
        """Return the rule whose coefficients cost enough that E(N) <= target_fdr (E(N) + E(M) + 1)."""
        bits = 0.5
        required = bits * ((1.0 - target_fdr) / target_fdr + 1.5)
        return cls(bits, bits, max(math.log2(required * math.log(2.0)) - bits, 0.0))

    def start(self) -> Self:
        """Validate the parameters and reset."""
        check_number("coefficient_bits", self.coefficient_bits, low=0, high=1000)
        return super().start()

    def levels(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        bids = np.exp(super().levels(log_p, weight))
        entry = -np.log(-np.expm1(-bids * math.log(2.0)))  # log2(1 / q), in nats as the gain is
        required = entry + (float(self.payout) + float(self.coefficient_bits)) * math.log(2.0)
        return log_chi2_tail(2.0 * required)

    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        self.wealth_ += float(self.payout)
        self._count(1, weight)
