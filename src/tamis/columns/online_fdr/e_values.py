"""Rules for e-values that bound the false discovery rate if each is valid given the past, and reuse unspent budget.

Test t rejects if its e-value reaches 1 / a_t. With R rejections before it, it is at least the (R + 1)-th one. If the
mean of C_t under the null hypothesis, given the past, is at least a_t (which is chosen before e_t)::

    FDR <= E sum_t (false rejection at t) / (R_{t-1} + 1) <= E sum_t C_t / (R_{t-1} + 1) <= alpha             (1)

as long as the sum never exceeds alpha. The rules differ in the cost of a test::

    e-LORD      C_t = a_t                                                                                     (2)
    e-SAFFRON   C_t = a_t [e_t < 1 / lambda] / (1 - lambda),  as P(e_t >= 1 / lambda) <= lambda               (3)
    SCORE       C_t = max(a_t - (a_t e_t - 1)^+, 0),  as [a e >= 1] <= a e - (a e - 1)^+                      (4)

e-SAFFRON does not charge promising tests, and SCORE refunds the overshoot of a rejection. With B the budget left after
the last rejection, h the number of tests charged until then, and k that until now, the levels of all three are::

    a_t = min((R + 1) (1 - lambda) B (G(k) - G(k + 1)) / G(h), c),    G(k) = log 10 / log(10 + k)             (5)

(lambda = 0 except for e-SAFFRON, and c = 1 or lambda). The share G(k) of the budget remains for the tests after the
k-th one: a third after 1,000 and a sixth after a million, so late features retain power.

If the number of tests n is known, the levels are those of the papers, which spend a fraction w_t of the remaining
budget on test t. The fraction is larger after tests that did not reject, and smaller after rejections::

    a_t = min((R + 1) (1 - lambda) B_t w_t, c),    B_t = B prod_{charged s < t} (1 - w_s),                    (6)
    w_t = 2.5 / max(n, t) (1 + 2^-R - 2^-(t - 1 - R))

In Zhang et al. (2025), Equation (9), the first factor is a parameter (0.005 for 500 tests), and phi = psi = 1/2 give
the bracket. Beyond n tests, their fraction is constant, so the levels decrease exponentially; here the fraction
decreases with t, and the levels polynomially. Both choices of w_t depend only on the past, as (1) requires.

Zhang, Wei, Ren, Zou: e-GAI: e-value-based generalized alpha-investing for online false discovery rate control, ICML
2025 (arXiv 2506.01452). Kuang, Gang, Xia: SCORE, overshoot refunds in online FDR control (arXiv 2601.20386).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from tamis._validation import Floats, Mask, check_number
from tamis.columns.online_fdr.rule import ChargingRule

_SPREAD = 10.0  # tests over which the level decreases little: 2 to 50 hardly differ in power over 1,000 tests


@dataclass(eq=False, repr=False)
class ELORD(ChargingRule):
    """e-LORD: spends alpha on e-values, more per test after each rejection; tests may depend on the past.

    A p-value that is valid given the past gives the e-value kappa p^(kappa - 1).

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1). Smaller values favour tiny p-values over moderate ones.
    n_tests : int or None, default=None
        Expected number of features, at least 1: the budget is spent on that many tests, Equation (6). None: on an
        unbounded sequence, Equation (5). If in doubt, choose a larger number: with a third of the actual number, (6)
        has no more power than (5).

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Zhang, Wei, Ren, Zou (2025). e-GAI: e-value-based generalized alpha-investing. ICML. Equations (2), (5), (6) of
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

    _cap = 1.0  # largest a_t

    alpha: float = 0.05
    kappa: float = 0.1
    n_tests: int | None = None

    def start(self) -> Self:
        """Validate the parameters and reset."""
        super().start()
        self.n_rejected_ = 0
        self.n_before_: int | float = 0  # tests charged until the last rejection
        self.budget_ = float(self.alpha)  # budget left at the last rejection
        self.n_tested_ = 0
        self.left_ = float(self.alpha)  # B_t of (6)
        return self

    def _check(self) -> None:
        check_number("kappa", self.kappa, low=0, high=1, open_low=True, open_high=True)
        if self.n_tests is not None:
            check_number("n_tests", self.n_tests, low=1, integer=True)

    def _share(self) -> float:
        """Return 1 - lambda."""
        return 1.0

    def _log_e(self, log_p: Floats) -> Floats:
        return math.log(self.kappa) + (self.kappa - 1.0) * log_p

    def _parts(self, m: int, weight: Floats | None) -> Floats:
        """Return w_t of (6) for the next m tests as long as none rejects, in (0, 1)."""
        n_tests = 1 if self.n_tests is None else int(self.n_tests)
        places = np.arange(self.n_tested_ + 1, self.n_tested_ + m + 1)
        accepted = (places - 1 - self.n_rejected_).astype(np.float64)
        first = np.minimum(2.5 / np.maximum(n_tests, places), 0.5)
        parts: Floats = first * (1.0 + 0.5**self.n_rejected_ - np.exp2(-accepted))
        return parts if weight is None else -np.expm1(weight * np.log1p(-parts))

    def _remaining_budget(self, log_p: Floats, weight: Floats | None) -> Floats:
        """Return B_t of (6) at each of the next tests and after the last."""
        # Multiplied in this order, so that any batching gives the same bits.
        factors = 1.0 - self._parts(len(log_p), weight) * self._ticks(log_p)
        return np.cumprod(np.concatenate([[self.left_], factors]))

    def _levels(self, log_p: Floats, weight: Floats | None) -> Floats:
        """Return (5), or (6) for a known number of tests."""
        if self.n_tests is not None:
            scale = (self.n_rejected_ + 1) * self._share()
            left = self._remaining_budget(log_p, weight)[:-1]
            return np.minimum(scale * self._parts(len(log_p), weight) * left, self._cap)
        k, w = self._clocks(log_p, weight) + _SPREAD, 1.0 if weight is None else weight
        scale = (self.n_rejected_ + 1) * self.budget_ * self._share() * np.log(self.n_before_ + _SPREAD)
        # 1 / log k - 1 / log(k + w), without cancellation
        return np.minimum(scale * np.log1p(w / k) / (np.log(k) * np.log(k + w)), self._cap)

    def skip(self, log_p: Floats, weight: Floats | None = None) -> None:
        """Record tests that did not reject."""
        left = float(self._remaining_budget(log_p, weight)[-1])
        super().skip(log_p, weight)
        self.left_ = left
        self.n_tested_ += len(log_p)

    def levels(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        return (math.log(self.kappa) + super().levels(log_p, weight)) / (1.0 - self.kappa)

    def _costs(self, levels: Floats, log_p: Floats) -> Floats:
        # C_t / (R + 1)
        return levels * self._ticks(log_p) / (self._share() * (self.n_rejected_ + 1))

    def _rejection_cost(self, a: float, log_e: float) -> float:
        """Return C_t of a test that rejects."""
        return a

    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        cost = self._rejection_cost(float(self._levels(log_p, weight)[0]), float(self._log_e(log_p)[0]))
        self.spent_ = min(self.spent_ + cost / (self.n_rejected_ + 1), float(self.alpha))
        self._advance(log_p, weight)
        self.budget_, self.n_before_, self.n_rejected_ = self.wealth_, self.clock_, self.n_rejected_ + 1
        self.left_ = self.wealth_
        self.n_tested_ += 1


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
    n_tests : int or None, default=None
        As in :class:`ELORD`.

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Zhang, Wei, Ren, Zou (2025). e-GAI: e-value-based generalized alpha-investing. ICML. Equations (3), (5), (6) of
    :mod:`tamis.columns.online_fdr.e_values`.

    Examples
    --------
    >>> rule = ESAFFRON(0.05).start()
    >>> rule.update(False, -6.0)  # a small p-value
    >>> rule.wealth_
    0.05
    """

    def __init__(
        self, alpha: float = 0.05, kappa: float = 0.1, candidate: float = 0.1, n_tests: int | None = None
    ) -> None:
        super().__init__(alpha, kappa, n_tests)
        self.candidate = candidate

    def _check(self) -> None:
        super()._check()
        check_number("candidate", self.candidate, low=0, high=1, open_low=True, open_high=True)

    @property
    def _cap(self) -> float:  # type: ignore[override]
        return float(self.candidate)

    def _share(self) -> float:
        return 1.0 - self.candidate

    def _ticks(self, log_p: Floats) -> Mask:
        return self._log_e(log_p) < -math.log(self.candidate)

    def _rejection_cost(self, a: float, log_e: float) -> float:
        return 0.0  # as a_t <= lambda


class SCORE(ELORD):
    """SCORE: as e-LORD, but the overshoot of a rejection (e-value beyond its threshold) is refunded.

    Parameters
    ----------
    alpha : float, default=0.05
        False discovery rate, in (0, 1).
    kappa : float, default=0.1
        In (0, 1), as in :class:`ELORD`.
    n_tests : int or None, default=None
        As in :class:`ELORD`.

    Attributes
    ----------
    wealth_ : float
        The remaining part of alpha.

    References
    ----------
    Kuang, Gang, Xia (2026). SCORE: overshoot refunds in online FDR control. arXiv 2601.20386. Equations (4) to (6) of
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
