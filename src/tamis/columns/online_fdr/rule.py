"""The base of spending rules: the level of the next test, given the outcomes of the previous tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from tamis._validation import Array, Floats, Mask, check_number

_PART = 1 << 16  # tests processed together


class SpendingRule(BaseEstimator, ABC):  # type: ignore[misc]
    """Sets the level that each next p-value must not exceed.

    After `start`, each test reads `level` and passes its outcome to `update`. `levels` and `skip` do the same for many
    tests at once, as long as none of them rejects. State is replaced, never changed in place, so a shallow copy is a
    snapshot.

    Tests may have weights, positive numbers that do not depend on their p-values: a test of weight w gets, and costs,
    the budget of w tests of weight 1 in a row.

    Attributes
    ----------
    wealth_ : float
        The remaining error budget.
    """

    wealth_: float
    weighted = False  # whether the methods take weights

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.requires_fit = False, False  # it has no `fit`: parameters alone
        return tags

    @abstractmethod
    def start(self) -> Self:
        """Validate the parameters and reset."""

    @abstractmethod
    def levels(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return the log levels of the next tests as long as none rejects, from their log p-values.

        Parameters
        ----------
        log_p : ndarray of shape (m,), float64
            The level of a test never depends on its own p-value or on later ones.
        weight : ndarray of shape (m,), float64, optional
            Weights of the tests; pass them for all tests or for none.

        Returns
        -------
        ndarray of shape (m,), float64
        """

    @abstractmethod
    def wealths(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return the wealth after each of these tests if none of them rejects, shape (m,)."""

    @abstractmethod
    def skip(self, log_p: Floats, weight: Floats | None = None) -> None:
        """Record tests that did not reject."""

    @abstractmethod
    def _reject(self, log_p: Floats, weight: Floats | None) -> None:
        """Record a test that rejected; arrays of one element."""

    def level(self, weight: float | None = None) -> float:
        """Return the log level of the next test.

        Parameters
        ----------
        weight : float, optional
            Its weight.

        Returns
        -------
        float
        """
        with np.errstate(divide="ignore"):  # a wealth near 0 gives a level near 0
            return float(self.levels(np.zeros(1), *_array(weight))[0])

    def update(self, rejected: bool, log_p: float, weight: float | None = None) -> None:
        """Record the outcome of the next test.

        Parameters
        ----------
        rejected : bool
        log_p : float
            Its log p-value.
        weight : float, optional
            Its weight.
        """
        one = np.array([float(log_p)])
        if rejected:
            self._reject(one, *(_array(weight) or (None,)))
        else:
            self.skip(one, *_array(weight))

    def decide(self, log_p: Floats, weight: Floats | None = None) -> Mask:
        """Test p-values in order.

        Parameters
        ----------
        log_p : ndarray of shape (m,), float64
            Their logarithms.
        weight : ndarray of shape (m,), float64, optional
            Their weights.

        Returns
        -------
        ndarray of shape (m,), bool
            Which hypotheses are rejected, that is, which features are selected.

        Examples
        --------
        >>> from tamis.columns.online_fdr import LOND
        >>> p = np.array([1e-6, 0.4, 0.02, 0.3, 1e-4])
        >>> LOND(alpha=0.05).start().decide(np.log(p))
        array([ True, False, False, False,  True])
        """
        rejected = np.zeros(len(log_p), dtype=bool)
        start, width = 0, 64
        while start < len(log_p):
            part = log_p[start : start + width]
            own = () if weight is None else (weight[start : start + width],)
            with np.errstate(divide="ignore"):
                hits = np.flatnonzero(part <= self.levels(part, *own))
            n = int(hits[0]) if len(hits) else len(part)
            self.skip(part[:n], *(one[:n] for one in own))
            if len(hits):
                self.update(True, part[n], *(one[n] for one in own))
                rejected[start + n] = True
            width = 64 if len(hits) else min(2 * width, _PART)
            start += n + 1 if len(hits) else n
        return rejected


def _array(weight: float | None) -> tuple[Floats, ...]:
    return () if weight is None else (np.array([float(weight)]),)


class ChargingRule(SpendingRule):
    """A rule that charges tests to alpha, on a clock that only some of them advance, by their weight."""

    alpha: float
    weighted = True
    clock_: int | float

    def start(self) -> Self:
        """Validate the parameters and reset."""
        check_number("alpha", self.alpha, low=0, high=1, open_low=True, open_high=True)
        self._check()
        self.clock_ = 0
        self.spent_ = 0.0
        return self

    def _check(self) -> None:
        """Validate further parameters."""

    @property
    def wealth_(self) -> float:  # type: ignore[override]
        """The part of alpha that is not spent."""
        return float(self.alpha) - self.spent_

    @abstractmethod
    def _levels(self, log_p: Floats, weight: Floats | None) -> Floats:
        """Return the levels of the next tests as long as none rejects."""

    def _ticks(self, log_p: Floats) -> Mask:
        """Return which tests without rejection advance the clock."""
        return np.ones(len(log_p), dtype=bool)

    def _costs(self, levels: Floats, log_p: Floats) -> Floats:
        """Return the contribution of each test without rejection to the estimate of the false discoveries."""
        return levels

    def _clocks(self, log_p: Floats, weight: Floats | None) -> Array:
        """Return the clock at each of the next tests."""
        ticks = self._ticks(log_p)[:-1]
        if weight is None:
            return self.clock_ + np.cumsum(np.concatenate([[0], ticks]), dtype=np.int64)
        # Summed in this order, so that any batching gives the same bits.
        return np.cumsum(np.concatenate([[self.clock_], ticks * weight[:-1]]))

    def _advance(self, log_p: Floats, weight: Floats | None) -> None:
        last = self._ticks(log_p)[-1:] * (1 if weight is None else weight[-1:])
        self.clock_ = (self._clocks(log_p, weight)[-1:] + last).sum().item() if len(log_p) else self.clock_

    def levels(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return the log levels of the next tests as long as none rejects."""
        return np.log(self._levels(log_p, weight))

    def wealths(self, log_p: Floats, weight: Floats | None = None) -> Floats:
        """Return the wealth after each of these tests if none of them rejects."""
        costs = self._costs(self._levels(log_p, weight), log_p)
        return self.wealth_ - np.cumsum(costs)

    def skip(self, log_p: Floats, weight: Floats | None = None) -> None:
        """Record tests that did not reject."""
        self.spent_ += float(self._costs(self._levels(log_p, weight), log_p).sum())
        self._advance(log_p, weight)
