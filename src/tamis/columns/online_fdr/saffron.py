"""Adaptive rules, which only pay for some tests: they estimate the number of null hypotheses from the p-values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis._validation import Floats, Mask, check_number
from tamis.columns.online_fdr.lord import DecayingSumRule


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
