"""A numeric target as ordered levels, so that classifiers that acquire values predict numbers.

The target is cut at quantiles of the rows of the fit into levels h with means m_h and variances s_h^2. From the
posterior p over the levels, the prediction is sum_h p_h m_h, its variance sum_h p_h (m_h^2 + s_h^2) minus the square of
the prediction. Acquisition reduces the squared error as a share of the variance of the target, times the cost of an
error of one variance: by default the cost of predicting the mean is 1.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from tamis._shapes import Shapes
from tamis._validation import Floats, Ints, as_target

_MOST = 8  # levels: a normal target then keeps 97 % of its variance
_ROWS = 25  # at least, per level


class NumericTarget:
    """Levels of a target; immutable.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Finite numbers.
    error_cost : float, default=1.0
        Cost of a squared error of one variance, in units of the prices.

    Attributes
    ----------
    cuts : ndarray of shape (n_levels - 1,), float64
        Level h contains the targets in (cuts[h - 1], cuts[h]].
    means, variances : ndarray of shape (n_levels,), float64
    error_cost : float
    unit : float
        The squared error that costs 1: the variance of the target (1 if it is constant) divided by `error_cost`.

    Examples
    --------
    >>> target = NumericTarget(np.arange(100.0))
    >>> target.cuts, target.means, target.codes([0.5, 1e9])
    (array([24., 49., 74.]), array([12., 37., 62., 87.]), array([0, 3]))
    >>> posterior = np.array([[0.5, 0.5, 0.0, 0.0]])
    >>> target.predict(posterior), target.deviation(posterior).round(1)
    (array([24.5]), array([14.4]))
    """

    _state_spec = Shapes(
        "cuts (l-1) finite increasing  means (l) finite  variances (l) float in [0, inf)  unit float in [0, inf)"
        "  error_cost float in [0, inf)"
    )

    def __init__(self, y: Any, error_cost: float = 1.0) -> None:
        y = as_target(np.asarray(y))
        n_levels = int(np.clip(len(y) // _ROWS, 2, _MOST))
        cuts = np.unique(np.quantile(y, np.arange(1, n_levels) / n_levels, method="inverted_cdf"))
        self.cuts = cuts[cuts < y.max()]
        codes = self.codes(y)
        n = np.bincount(codes)
        self.means = np.bincount(codes, weights=y) / n
        self.variances = np.bincount(codes, weights=(y - self.means[codes]) ** 2) / n
        self.error_cost = error_cost
        self.unit = (float(y.var()) or 1.0) / error_cost

    def codes(self, y: Any) -> Ints:
        """Return the level of each target."""
        return np.searchsorted(self.cuts, as_target(np.asarray(y)), side="left")

    def distances(self) -> Floats:
        """Return the cost of the squared distance of each pair of levels."""
        return (self.means[:, None] - self.means) ** 2 / self.unit

    def losses(self, y: Any, predicted: Floats) -> Floats:
        """Return the cost of the squared error of each prediction."""
        return (np.asarray(y, dtype=np.float64) - predicted) ** 2 / self.unit

    def predict(self, posterior: Floats) -> Floats:
        """Return the prediction from posteriors of shape (n_rows, n_levels)."""
        return (posterior * self.means).sum(axis=1)

    def deviation(self, posterior: Floats) -> Floats:
        """Return the standard deviation of the target given posteriors of shape (n_rows, n_levels)."""
        apart = self.means - self.predict(posterior)[:, None]
        return np.sqrt((posterior * (apart**2 + self.variances)).sum(axis=1))


# -- Discretization of a numeric target into levels, for classification methods --------------------------

# The target is cut at the quantiles of its last 1000 values into five levels of about equal frequency. The level of a
# row is determined by the cuts at that time and never changes. The cuts are updated after an eighth more rows, later
# every 125 rows, so the levels follow a drifting target.
#
# Level h contains the targets in (q_h, q_(h+1)], ties included. If several quantiles are equal, as for counts with many
# zeros, some levels stay empty; a mode that is also the maximum has a separate level.

N_LEVELS = 5
_LAST = 1000  # values of the target
_GROWTH = 8  # cuts are updated after an eighth more rows


class TargetLevels:
    """Cuts of a numeric target; immutable.

    Attributes
    ----------
    recent : ndarray of shape (n_recent,), float64
        The last values, at most 1000.
    cuts : ndarray of shape (4,), float64
    n_seen, due : int
        Number of values, and the number at which the cuts are updated next.

    Examples
    --------
    >>> codes, levels = TargetLevels().with_rows(np.arange(100.0))
    >>> codes[:9], codes[-1], levels.cuts
    (array([0, 4, 4, 4, 4, 4, 4, 4, 4]), np.int64(4), array([18., 36., 54., 72.]))
    """

    _state_spec = Shapes(f"""
        recent (w) finite  cuts ({N_LEVELS - 1}) finite  n_seen in [0, 2**62)  due in [0, 2**62)
    """)

    def __init__(self) -> None:
        self.recent, self.cuts = np.empty(0), np.zeros(N_LEVELS - 1)
        self.n_seen = self.due = 0

    @property
    def warming_up(self) -> bool:
        """Whether there are so few values that each level may contain only one, without any variation."""
        return self.n_seen < 2 * N_LEVELS

    def with_rows(self, target: Floats) -> tuple[Ints, Self]:
        """Return the levels of further rows, 0 to 4, and the updated cuts.

        Parameters
        ----------
        target : ndarray of shape (n_rows,), float64
            Finite.
        """
        later, start, n = copy.copy(self), 0, len(target)
        values = np.concatenate([self.recent, target])
        codes, before = np.empty(n, np.int64), len(self.recent)
        while start < n:
            if later.n_seen == later.due:  # this row contributes to the new cuts
                end = before + start + 1
                later.cuts = _quantiles(values[max(end - _LAST, 0) : end])
                later.due += max(min(later.n_seen + 1, _LAST) // _GROWTH, 1)
            stop = min(n, start + later.due - later.n_seen)
            codes[start:stop] = np.searchsorted(later.cuts, target[start:stop], side="left")
            later.n_seen, start = later.n_seen + stop - start, stop
        later.recent = values[-_LAST:].copy()
        return codes, later


def _quantiles(values: Floats) -> Floats:
    """Return values that cut into levels: the largest one is above each of them."""
    ordered = np.sort(values)
    at = np.ceil(np.arange(1, N_LEVELS) / N_LEVELS * len(ordered)).astype(int) - 1
    below = ordered[ordered < ordered[-1]]
    return np.minimum(ordered[at], below[-1] if len(below) else ordered[-1])
