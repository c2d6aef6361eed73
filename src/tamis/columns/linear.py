"""A linear model that grows by one feature at a time; testing a candidate and accepting one cost O(n q) each.

The state is Q, an orthonormal basis of the intercept and the q selected features, and the residual r of y on it. For
a candidate x::

    z = x - Q Q'x,  c = z.r,  RSS' = RSS - c^2 / |z|^2                                     (1)
    t^2 = (c^2 / |z|^2) / (RSS' / (n - q - 2)),  p from Student's t with n - q - 2 degrees     (2)
    2 (change of log likelihood) = n log(RSS / RSS')                                          (3)

which are exactly the statistics of a regression of y on the intercept, the selected features and x. Weighted rows are
multiplied by the square root of their weight, and n is the sum of the weights. For heteroscedastic noise, the test is
that of :mod:`tamis.columns.sandwich`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._shapes import Shapes
from tamis._validation import Floats
from tamis.base.trace import REJECTED
from tamis.columns.block_test import series_evidence
from tamis.columns.projection import (
    Evidence,
    GroupEvidence,
    Proposal,
    append_column,
    independent_directions,
    project,
    project_twice,
    smallest_p_value,
)
from tamis.columns.sandwich import retest, robust_evidence
from tamis.columns.tails import log_f_tail, log_t_tail
from tamis.errors import DataError

_EXACT = 1e-22  # share of the variance of y that remains after a perfect fit, due to rounding


class LinearModel:
    """Least squares on the features accepted so far.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,), float64
    intercept : bool
    robust : bool
        Whether to use the test of :mod:`tamis.columns.sandwich`.
    exp_tail : bool
        Whether to use p = exp(-(RSS - RSS') / (2 RSS / n)), as in public implementations of alpha-investing.

    Raises
    ------
    DataError
        If `y` is constant or there are too few rows.

    Examples
    --------
    >>> x, y = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 3, 2, 5, 4])
    >>> model = LinearModel(y, np.ones(5), True, False, False)
    >>> proposal = model.propose(x)
    >>> round(float(np.exp(proposal.log_p)), 6)
    0.104088
    """

    _state_spec = Shapes(
        "weight (r) float in [0, inf)  residual (r) float in [-1e140, 1e140]  target (r) float in [-1e140, 1e140]"
        "  buffer (r, b) float in [-1.001, 1.001] fortran  k in [intercept, b]  total float in [0.999*rss, 1e300]"
        "  rss float in [0.999*(residual@residual), 1.001*(residual@residual)]"
        "  n float in [0.999*weight.sum(), 1.001*weight.sum()]"
    )

    series = False  # whether a robust test is that of `tamis.columns.block_test`
    light_tails = 0.0  # kurtosis of a candidate below which its test is not robust
    slack = 1e-6  # largest difference between the log p of a candidate tested in bulk and on its own

    def __init__(self, y: Floats, weight: Floats, intercept: bool, robust: bool, exp_tail: bool) -> None:
        self.intercept, self.robust, self.exp_tail = intercept, robust and not exp_tail, exp_tail
        self.weight = weight
        self.n = float(weight.sum())
        self.root: Floats | None = None if (weight == 1.0).all() else np.sqrt(weight)
        self.k = 0
        self.buffer = np.zeros((len(y), 8), order="F")
        y = y if 1e-60 < np.abs(y).max() < 1e60 else np.ldexp(y, -np.frexp(np.abs(y).max())[1])
        self.residual = self.target = y if self.root is None else self.root * y
        check_enough_rows(self.n, len(y), intercept)
        total = float(self.residual @ self.residual)
        if intercept:
            first = np.ones(len(y)) if self.root is None else self.root
            self._extend(first / np.linalg.norm(first))
            self.residual = self.residual - self.basis[:, 0] * float(self.basis[:, 0] @ self.residual)
        self.rss = self.total = float(self.residual @ self.residual)
        if self.rss <= 1e-28 * total:
            raise DataError(f"y is constant ({y[0]:g}), so no feature can explain it: check the target.")

    @property
    def basis(self) -> Floats:
        """Q, of shape (n_rows, k)."""
        return self.buffer[:, : self.k]

    @property
    def df(self) -> float:
        """Degrees of freedom of a candidate's test: n - q - 2 with an intercept."""
        return self.n - self.k - 1

    def stop_reason(self) -> str | None:
        """Return the reason why no further feature can be tested, or None."""
        q = self.k - self.intercept
        if self.df < 1:
            return f"{q} features for {self.n:g} rows leave no degrees of freedom"
        if self.rss <= _EXACT * self.total:
            return f"{q} features explain y exactly"
        return None

    def evidence(self, X: Any) -> Evidence:
        """Return the test of each column of X, given the features accepted so far."""
        X = scale_rows(X, self.root)
        if self.robust:
            return self._robust_evidence(X.toarray() if sp.issparse(X) else X)
        zz, c, status = project(X, self.basis, self.residual, self.intercept)
        fit = status == REJECTED
        drop = np.minimum(np.where(fit, c * c, 0.0) / np.where(fit, zz, 1.0), self.rss)
        return Evidence(*self._statistics(drop, self.rss - drop), status)

    def evidence_of_group(self, X: Floats) -> GroupEvidence:
        """Return the F test of the columns of X, shape (n_rows, m), added together; robust tests one by one."""
        X = scale_rows(X, self.root)
        directions, status = independent_directions(X, self.basis, self.intercept)
        k, df = directions.shape[1], self.df + 1 - directions.shape[1]
        if k == 0 or df < 1:
            return GroupEvidence(math.nan, math.nan, status)
        if self.robust:
            return smallest_p_value(self._robust_evidence(X[:, status == REJECTED]), status)
        scores = directions.T @ self.residual
        drop = min(float(scores @ scores), self.rss)
        left = self.rss - drop
        statistic = self.n * math.log(self.rss / left) if left > 0.0 else math.inf
        if self.exp_tail:
            return GroupEvidence(statistic, -0.5 * self.n * drop / self.rss, status)
        f = drop / k / (left / df) if left > 0.0 else math.inf
        return GroupEvidence(statistic, log_f_tail(f, k, df), status)

    def propose(self, x: Floats) -> Proposal:
        """Return one candidate, tested in full precision."""
        x = scale_rows(x[:, None], self.root)
        z, zz, _ = project_twice(x, self.basis, self.intercept)
        c, column = self.residual @ z, z[:, 0] / math.sqrt(zz[0])
        residual = self.residual - column * float(column @ self.residual)
        rss = np.array([residual @ residual])
        statistic, log_p = self._statistics(c * c / zz, rss)
        if self.robust:
            evidence = self._robust_evidence(x)
            statistic, log_p = evidence.statistic, evidence.log_p
        return Proposal(float(statistic[0]), float(log_p[0]), column, (residual, float(rss[0])))

    def accept(self, proposal: Proposal) -> None:
        """Add a candidate to the model."""
        self._extend(proposal.column)
        self.residual, self.rss = proposal.fitted

    def retest(self, features: Floats) -> Floats:
        """Return the log p-value of each accepted feature, shape (n_rows, q), given the others."""
        df = self.df + 1  # no candidate uses one
        root = np.ones(len(self.residual)) if self.root is None else self.root

        def by_t(drop: Floats) -> Floats:
            with np.errstate(divide="ignore", invalid="ignore"):
                return log_t_tail(np.where(drop > 0, drop * df / self.rss, 0.0), df)

        sandwich = (self.residual, self.weight, df) if self.robust else None
        target = self._plain_target()
        series = target if self.series else None
        return retest(features, root, bool(self.intercept), target, by_t, sandwich, series)

    def _plain_target(self) -> Floats:
        """Return the target without weights."""
        if self.root is None:
            return self.target
        return np.divide(self.target, self.root, out=np.zeros(len(self.root)), where=self.root > 0)

    def restart(self, features: Floats) -> None:
        """Replace the accepted features with these, shape (n_rows, q)."""
        X = scale_rows(features, self.root)
        first = self.basis[:, : int(self.intercept)]
        self.buffer, self.k = np.zeros((len(X), max(8, 2 * X.shape[1])), order="F"), 0
        for column in first.T:
            self._extend(column)
        for j in range(X.shape[1]):
            z, zz, _ = project_twice(X[:, [j]], self.basis, self.intercept)
            self._extend(z[:, 0] / math.sqrt(zz[0]))
        self.residual = self.target - self.basis @ (self.basis.T @ self.target)
        self.rss = float(self.residual @ self.residual)

    def clear_room(self) -> None:
        """Clear the unused columns after the basis."""
        self.buffer[:, self.k :] = 0.0

    def _extend(self, column: Floats) -> None:
        self.buffer = append_column(self.buffer, self.k, column)
        self.k += 1

    def _statistics(self, drop: Floats, rss: Floats) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):  # a perfect fit: infinite evidence
            statistic = self.n * np.log(self.rss / rss)  # (3)
            t2 = drop * self.df / rss  # (2)
        if self.exp_tail:
            return statistic, -0.5 * self.n * drop / self.rss
        return statistic, log_t_tail(t2, self.df)

    def _robust_evidence(self, X: Floats) -> Evidence:
        def by_t(drop: Floats) -> Floats:
            drop = np.minimum(drop, self.rss)
            return self._statistics(drop, self.rss - drop)[1]

        if self.series:
            return series_evidence(
                X, self.basis, self.residual, bool(self.intercept), by_t, self._plain_target(), self.weight
            )
        return robust_evidence(
            X, self.basis, self.residual, self.weight, self.intercept, self.df, by_t, self.light_tails
        )


def check_enough_rows(n: float, n_rows: int, intercept: bool) -> None:
    """Raise a DataError if rows of total weight `n` leave no degree of freedom for a feature."""
    if n - intercept - 1 <= 0:
        raise DataError(
            f"y has {n_rows} sample(s) of total weight {n:g}, too few for this model: give"
            f" {2 + intercept} rows or more."
        )


def scale_rows(X: Any, root: Floats | None) -> Any:
    """Return X with each row multiplied by its factor; X itself is unchanged."""
    if root is None:
        return X
    return sp.csc_matrix(X.multiply(root[:, None])) if sp.issparse(X) else X * root[:, None]
