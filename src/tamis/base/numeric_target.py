"""A numeric target as ordered levels, so that classifiers that acquire values predict numbers.

The target is cut at quantiles of the rows of the fit into levels h with means m_h and variances s_h^2. From the
posterior p over the levels, the prediction is sum_h p_h m_h, its variance sum_h p_h (m_h^2 + s_h^2) minus the square of
the prediction. Acquisition reduces the squared error as a share of the variance of the target, times the cost of an
error of one variance: by default the cost of predicting the mean is 1.
"""

from __future__ import annotations

from typing import Any

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
