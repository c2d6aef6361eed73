"""Rules for e-values that bound the false discovery rate if each is valid given the past, and reuse unspent budget.

Test t rejects if its e-value reaches 1 / a_t. It counts as the (R + 1)-th rejection at least, with R rejections before
it, so if C_t is at least a_t in the mean under the null hypothesis, given the past (a_t is chosen before e_t)::

    FDR <= E sum_t (false rejection at t) / (R_{t-1} + 1) <= E sum_t C_t / (R_{t-1} + 1) <= alpha             (1)

as long as the sum never exceeds alpha. The rules differ in the cost of a test::

    e-LORD      C_t = a_t                                                                                     (2)
    e-SAFFRON   C_t = a_t [e_t < 1 / lambda] / (1 - lambda),  as P(e_t >= 1 / lambda) <= lambda               (3)
    SCORE       C_t = max(a_t - (a_t e_t - 1)^+, 0),  as [a e >= 1] <= a e - (a e - 1)^+                      (4)

So e-SAFFRON does not charge tests that are promising, and SCORE refunds by how much a rejection exceeds what it
needed. With B what was left of alpha after the last rejection, h the tests charged until then, and k those until now,
the levels are, in all three::

    a_t = min((R + 1) (1 - lambda) B (G(k) - G(k + 1)) / G(h), c),    G(k) = log 10 / log(10 + k)             (5)

(lambda = 0 but for e-SAFFRON, and c = 1 or lambda). G(k) of the budget is left for the tests after the k-th one: a
third after 1,000 and a sixth after a million, so late features keep a chance.

The papers leave the allocation open: e-LORD spends a fraction w_t of what is left at each test, and w_t may depend on
the past only. (5) is the choice w_t = 1 - G(k + 1) / G(k). What was verified is (1), with tests that depend on the past
and with the least favourable e-values, and the power (docs/alpha_investing.md), not the figures of the papers.

Zhang, Wei, Ren, Zou: e-GAI: e-value-based generalized alpha-investing for online false discovery rate control, ICML
2025 (arXiv 2506.01452). Kuang, Gang, Xia: SCORE, overshoot refunds in online FDR control (arXiv 2601.20386).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tamis._validation import check_number
from tamis.columns.online_fdr.rule import ChargingRule

__all__ = ["ELORD", "ESAFFRON", "SCORE"]

Floats = NDArray[np.float64]
_SPREAD = 10.0  # tests over which the level falls little: 2 to 50 hardly differ in power over 1,000 tests


class ELORD(ChargingRule):
    """e-LORD: spends alpha on e-values, more per test after each rejection; tests may depend on the past.

    A p-value that is valid given the past gives the e-value kappa p^(kappa - 1).

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1). Smaller values favour tiny p-values over moderate ones.

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Zhang, Wei, Ren, Zou (2025). e-GAI: e-value-based generalized alpha-investing. ICML. Equations (2) and (5) of
    :mod:`tamis.columns.online_fdr.e_values`.

    Examples
    --------
    A rejection almost doubles the level of an e-value, and more than doubles that of a p-value:

    >>> rule = ELORD(0.05, kappa=0.5).start()
    >>> before = rule.level()
    >>> rule.update(True, -20.0)
    >>> bool(rule.level() > before + np.log(2))
    True
    """

    _cap = 1.0  # of a_t

    def __init__(self, alpha: float = 0.05, kappa: float = 0.1) -> None:
        self.alpha = alpha
        self.kappa = kappa

    def start(self) -> Self:
        """Validate the parameters and reset."""
        super().start()
        self.n_rejected_ = 0
        self.n_before_ = 0  # tests charged until the last rejection
        self.budget_ = float(self.alpha)  # budget left at the last rejection
        return self

    def _check(self) -> None:
        check_number("kappa", self.kappa, low=0, high=1, open_low=True, open_high=True)

    def _share(self) -> float:
        """Return 1 - lambda."""
        return 1.0

    def _log_e(self, log_p: Floats) -> Floats:
        result: Floats = math.log(self.kappa) + (self.kappa - 1.0) * log_p
        return result

    def _levels(self, log_p: Floats) -> Floats:
        """Return (5)."""
        k = self._clocks(log_p) + _SPREAD
        scale = (self.n_rejected_ + 1) * self.budget_ * self._share() * np.log(self.n_before_ + _SPREAD)
        # 1 / log k - 1 / log(k + 1), without the digits that cancel
        result: Floats = np.minimum(scale * np.log1p(1.0 / k) / (np.log(k) * np.log(k + 1.0)), self._cap)
        return result

    def levels(self, log_p: Floats) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        result: Floats = (math.log(self.kappa) + super().levels(log_p)) / (1.0 - self.kappa)
        return result

    def _costs(self, levels: Floats, log_p: Floats) -> Floats:
        # C_t / (R + 1)
        result: Floats = levels * self._ticks(log_p) / (self._share() * (self.n_rejected_ + 1))
        return result

    def _rejection_cost(self, a: float, log_e: float) -> float:
        """Return C_t of a test that rejects."""
        return a

    def _reject(self, log_p: float) -> None:
        one = np.array([log_p])
        cost = self._rejection_cost(float(self._levels(one)[0]), float(self._log_e(one)[0]))
        self.spent_ = min(self.spent_ + cost / (self.n_rejected_ + 1), float(self.alpha))
        self.clock_ += int(self._ticks(one)[0])
        self.budget_, self.n_before_, self.n_rejected_ = self.wealth_, self.clock_, self.n_rejected_ + 1


class ESAFFRON(ELORD):
    """e-SAFFRON: as e-LORD, but tests whose e-value is at least 1 / lambda cost nothing.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1), as in :class:`ELORD`.
    candidate : float, default=0.1
        lambda, in (0, 1).

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Zhang, Wei, Ren, Zou (2025). e-GAI: e-value-based generalized alpha-investing. ICML. Equations (3) and (5) of
    :mod:`tamis.columns.online_fdr.e_values`.

    Examples
    --------
    >>> rule = ESAFFRON(0.05).start()
    >>> rule.update(False, -6.0)  # a small p-value
    >>> rule.wealth_
    0.05
    """

    def __init__(self, alpha: float = 0.05, kappa: float = 0.1, candidate: float = 0.1) -> None:
        super().__init__(alpha, kappa)
        self.candidate = candidate

    def _check(self) -> None:
        super()._check()
        check_number("candidate", self.candidate, low=0, high=1, open_low=True, open_high=True)

    @property
    def _cap(self) -> float:  # type: ignore[override]
        return float(self.candidate)

    def _share(self) -> float:
        return 1.0 - self.candidate

    def _ticks(self, log_p: Floats) -> NDArray[np.bool_]:
        charged: NDArray[np.bool_] = self._log_e(log_p) < -math.log(self.candidate)
        return charged

    def _rejection_cost(self, a: float, log_e: float) -> float:
        return 0.0  # as a_t <= lambda


class SCORE(ELORD):
    """SCORE: as e-LORD, but a rejection gets back by how much its e-value exceeds the one it needed.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1), as in :class:`ELORD`.

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Kuang, Gang, Xia (2026). SCORE: overshoot refunds in online FDR control. arXiv 2601.20386. Equations (4) and (5) of
    :mod:`tamis.columns.online_fdr.e_values`.

    Examples
    --------
    >>> rule = SCORE(0.05).start()
    >>> rule.update(True, -50.0)  # far below its level
    >>> rule.wealth_
    0.05
    """

    def _rejection_cost(self, a: float, log_e: float) -> float:
        excess = math.exp(min(math.log(a) + log_e, 700.0)) - 1.0 if a > 0.0 else 0.0
        return max(a - max(excess, 0.0), 0.0)
