"""Spending rules: significance levels for an unbounded sequence of hypothesis tests.

Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005 (Figure 1), and later rules for
online control of the false discovery rate. Test t rejects if p_t <= alpha_t.

======================  ==================================================================  ============================
rule                    level of test t                                                     paper
======================  ==================================================================  ============================
`AlphaWealth`           w / (2 t); then w -= alpha_t, on a rejection w += payout            Zhou et al. (2005), Figure 1
`InformationInvesting`  chi-square tail of the gain that saves payout bits; w -= bid        Ungar et al. (2005)
`AlphaSpending`         alpha g(t)                                                          Foster, Stine (2008)
`LOND`                  alpha g(t) (D + 1), D rejections so far                             Javanmard, Montanari (2015)
`ELOND`                 (kappa a)^(1 / (1 - kappa)), a the level of LOND                    Xu, Ramdas (2024)
`ClosedELOND`           as e-LOND, with the evidence of all earlier tests (e-closure)        Xu, Fischer, Ramdas (2026)
`ELORD`                 levels for e-values; a rejection reallocates the remainder          Zhang et al. (2025)
`ESAFFRON`              as ELORD; promising tests cost nothing                              Zhang et al. (2025)
`SCORE`                 as ELORD; a rejection is refunded its overshoot                     Kuang et al. (2026)
`LORDPlusPlus`          W0 g(t) + (alpha - W0) g(t - tau_1) + alpha sum_{j>1} g(t - tau_j)  Ramdas et al. (2017)
`SAFFRON`               as LORD++ times (1 - lambda); the clock stops while p <= lambda     Ramdas et al. (2018)
`ADDIS`                 as SAFFRON; tests with p > tau are discarded                        Tian, Ramdas (2019)
======================  ==================================================================  ============================

tau_j is the time of the j-th rejection, and g a decreasing sequence with a sum of at most 1.

Guarantees at level alpha, for p-values that are valid given the past:

* `AlphaSpending` bounds the probability of any false rejection, and `ELOND` the false discovery rate (FDR), under any
  dependence between the tests; `ClosedELOND` bounds the FDR at any stopping time, and rejects all that `ELOND` rejects;
* `LOND` bounds the FDR if the tests are positively dependent;
* `ELORD`, `ESAFFRON` and `SCORE` bound the FDR even if tests depend on the past;
* `LORDPlusPlus`, `SAFFRON` and `ADDIS` bound the FDR if the tests are independent;
* the latter three, `AlphaWealth` and `InformationInvesting` bound the expected number of false rejections divided by
  the expected number of rejections plus one, under any dependence on the past.

`ADDIS` also requires p-values that are uniform below tau under the null hypothesis. Those of columns with one or two
ones and a rare class are not (measurements: docs/alpha_investing.md).

`AlphaSpending`, `ELOND` and `ClosedELOND` require only marginally valid p-values. A false rejection is a column that is
irrelevant given those selected before it. A correlated column may be relevant in this sense although its true
coefficient is 0; none of the rules bounds the proportion of such columns (measurements: docs/alpha_investing.md).

Tests may have weights, for those who expect more of some columns: a test of weight w is tested at, and costs, the level
of w tests of weight 1 in a row. For the sums over g that is the sum over w places (linear between integers), on a clock
that ticks w times; for a wealth, the part that w tests would spend. Each budget is thus spent at most once, for any
weights and any number of tests: their mean need not be 1. The guarantees hold if weights do not depend on the p-values.

Errata and deviations, each with its reason:

* Figure 1 prints "w_i/2i" and adds a feature if its p-value is *greater*; correct is w_i / (2 i), and *smaller*.
* Its bound is E(N) <= (payout E(M) + W0) / (1 - payout), N false and M true rejections. The paper's 0.5 and 0.5 thus
  allow as many false features as true ones, and one more. ``target_fdr`` sets both to half of the rate instead.
* The wealth w falls like W0 / sqrt(pi t) without rejections, not at the "slowest possible" rate.
* The paper states only that information-investing bids bits where alpha-investing bids error probabilities. The cost of
  a coefficient is a parameter; `target_fdr` sets it.
* A p-value may be smaller than any float64, so the logarithms of p and alpha are compared.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from tamis._validation import check_number
from tamis.columns.online_fdr.e_values import ELORD, ESAFFRON, SCORE
from tamis.columns.online_fdr.lord import (
    ADDIS,
    ELOND,
    LOND,
    SAFFRON,
    AlphaSpending,
    ClosedELOND,
    LORDPlusPlus,
)
from tamis.columns.online_fdr.rule import SpendingRule
from tamis.columns.online_fdr.wealth import AlphaWealth, InformationInvesting

__all__ = [
    "ADDIS", "ELOND", "ELORD", "ESAFFRON", "LOND", "RULES", "SAFFRON", "SCORE", "AlphaSpending", "AlphaWealth",
    "ClosedELOND", "InformationInvesting", "LORDPlusPlus", "SpendingRule", "make_rule",
]  # fmt: skip

RULES: dict[str, type[Any]] = {
    "alpha-investing": AlphaWealth, "information-investing": InformationInvesting, "alpha-spending": AlphaSpending,
    "lond": LOND, "e-lond": ELOND, "closed-e-lond": ClosedELOND, "e-lord": ELORD, "e-saffron": ESAFFRON,
    "score": SCORE, "lord++": LORDPlusPlus, "saffron": SAFFRON, "addis": ADDIS,
}  # fmt: skip


def make_rule(
    name: str | SpendingRule, target_fdr: float | None, initial_wealth: float = 0.5, payout: float = 0.5
) -> SpendingRule:
    """Return the named rule, set up to control a false discovery rate.

    Parameters
    ----------
    name : str or SpendingRule
        One of :data:`RULES`; of a rule, a copy is returned.
    target_fdr : float or None
        In (0, 1). None: 0.05, except for the rules of a wealth, which take the two parameters below.
    initial_wealth, payout : float, default=0.5
        As for :class:`AlphaWealth`.

    Returns
    -------
    SpendingRule

    Raises
    ------
    ValueError
        If the rule is unknown, or the rate is out of range.

    Examples
    --------
    >>> make_rule("alpha-investing", 0.05), make_rule("saffron", 0.1)
    (AlphaWealth(initial_wealth=0.025, payout=0.025), SAFFRON(alpha=0.1))
    """
    if isinstance(name, SpendingRule):
        return clone(name)
    if target_fdr is None and isinstance(name, str) and issubclass(RULES.get(name, object), AlphaWealth):
        return RULES[name](initial_wealth, payout)
    target_fdr = 0.05 if target_fdr is None else target_fdr
    check_number("target_fdr", target_fdr, low=0, high=1, open_low=True, open_high=True)
    if not (isinstance(name, str) and name in RULES):
        raise ValueError(
            f"rule must be one of {', '.join(map(repr, RULES))}, or a SpendingRule, got {name!r}."
        )
    if name == "alpha-investing":
        return AlphaWealth(target_fdr / 2.0, target_fdr / 2.0)
    if name == "information-investing":
        return InformationInvesting.for_target(target_fdr)
    return RULES[name](target_fdr)
