"""The selection of DISCUSS: features in order of symmetrical uncertainty, down to a threshold, without redundant ones.

Formulas (1), (2) and (3) are in the docstring of :mod:`tamis.rows.discuss.discuss`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from tamis._validation import Floats, Ints
from tamis.rows.discuss.recent_gain import measure, measure_gain
from tamis.summaries.entropy import WindowCounts

_LN4 = 2.0 * np.log(2.0)
_STAYS = 0.2  # fraction of the threshold that a selected feature needs to stay
_NEW, _OWN = 0.3, 0.1  # `share` of (3) for a new feature, and for a selected one


class WindowStatistics(NamedTuple):
    """Statistics of each feature over the last n rows, shape (n_features,) each."""

    n: int
    su: Floats
    gain: Floats  # minus its bias, if that is corrected
    spread: Floats  # H(X) + H(Y)
    free: Floats  # degrees of freedom, corrected for values with few rows
    classic: Floats  # the same, (values - 1) (classes - 1)


def view(n: int, counts: WindowCounts, corrected: bool) -> WindowStatistics:
    """Return the statistics of the last n rows of the window."""
    gain, spread, free, classic = values = np.empty((4, counts.n_features))
    measure(n, counts.with_bins(n), counts.n_classes, values)
    if corrected:
        gain -= free / (n * _LN4)
    su = np.clip(np.divide(2.0 * gain, spread, out=np.zeros(len(gain)), where=spread > 0.0), 0.0, 1.0)
    return WindowStatistics(n, su, gain, spread, free, classic)


class SelectionRules(NamedTuple):
    """The parameters of :class:`tamis.DISCUSS` for a selection."""

    most: int  # features
    fewest: int
    threshold: float | None
    redundancy: str | None
    corrected: bool
    delta: float
    epsilon: float  # (1)
    margin: float
    n_features: int  # of the rows, including those without statistics, which were always 0
    ranks: Ints | None  # order of equal features; None: the earlier one first

    def thresholds(self, view: WindowStatistics) -> Floats:
        """Return the threshold of the symmetrical uncertainty of each feature."""
        d = len(view.su)
        if self.threshold is not None:
            return np.full(d, self.threshold)
        bias = view.free if self.corrected else 0.0
        gain = (_chi_square(view.free, self.delta / self.n_features) - bias) / (view.n * _LN4)  # (2)
        is_defined = (view.spread > 0.0) & (view.free > 0.0)
        return np.divide(2.0 * gain, view.spread, out=np.full(d, np.inf), where=is_defined)

    def slack(self, bar: Floats) -> Floats:
        """Return how far a feature above the threshold may fall below it."""
        return np.minimum(self.margin, (1.0 - _STAYS) * bar)

    def walk(
        self, view: WindowStatistics, bar: Floats, rank: Floats, kept: list[int], counts: WindowCounts
    ) -> tuple[list[int], bool]:
        """Return the selected features in order, and whether their maximum number was reached.

        Parameters
        ----------
        view : View
        bar, rank : ndarray of shape (n_features,)
            Threshold of each feature, and the values that determine the order.
        kept : list of int
            Features to which the weaker redundancy criterion of selected ones applies.
        counts : WindowCounts
        """
        order = np.argsort(-rank, kind="stable") if self.ranks is None else np.lexsort((self.ranks, -rank))
        taken: list[int] = []
        for c in order[view.su[order] > bar[order]].tolist():
            if not self._is_redundant(c, taken, view, kept, counts):
                taken.append(c)
            if len(taken) == self.most:
                return taken, True
        rest = [c for c in order.tolist() if c not in taken]
        return taken + rest[: max(self.fewest - len(taken), 0)], False

    def _is_redundant(
        self, c: int, taken: list[int], view: WindowStatistics, kept: list[int], counts: WindowCounts
    ) -> bool:
        if self.redundancy is None or not taken:
            return False
        others = np.array(taken)
        if self.redundancy == "conditional":
            gain = np.empty(len(others))
            measure_gain(c, others, view.n, counts.with_bins(view.n), counts.n_classes, gain)
            share = _OWN if c in kept else _NEW
            return bool((gain < share * view.gain[c]).any())  # (3)
        is_redundant = counts.pair_symmetrical_uncertainty(c, others, self.corrected) > view.su[c]
        if self.redundancy == "hoeffding":
            is_redundant &= np.abs(view.su[others] - view.su[c]) < self.epsilon
        return bool(is_redundant.any())


def _chi_square(free: Floats, p: float) -> Floats:
    """Return the upper p quantile of chi-square for each of the degrees of freedom (at least 1)."""
    degrees, which = np.unique(free, return_inverse=True)
    return chdtri(np.maximum(degrees, 1.0), p)[which]
