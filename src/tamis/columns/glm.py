"""Logistic and Poisson regression that grow by one feature at a time: score tests, refined by likelihood ratios.

At the fit of the selected features let mu be the mean of y, w its variance (mu (1 - mu), or mu). The score test of a
candidate x is::

    U = x.(y - mu),  V = | sqrt(w) x - Q Q' sqrt(w) x |^2,  U^2 / V ~ chi-square with one degree of freedom   (1)

Q is an orthonormal basis of sqrt(w) times the intercept and the selected features, so a candidate costs O(n q). A
candidate that may pass its threshold is fitted: twice the gain in log likelihood replaces (1).

Robust tests are those of :mod:`tamis.columns.sandwich`, and are not refined by a fit. The variance of a binary target
is always mu (1 - mu), so (1) is then the model-based test. Counts are overdispersed until all relevant features are
selected, so their model-based test estimates the dispersion together with the candidate::

    (U^2 / V) / ((sum_i (y_i - mu_i)^2 / w_i - U^2 / V) / (n - q - 2)) ~ F(1, n - q - 2)                      (2)

If the selected features separate the classes, the likelihood has no maximum: the linear predictor is capped at 30 in
absolute value, and no further feature can be tested.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import special

from tamis._shapes import Shapes
from tamis._validation import Floats
from tamis.base.trace import REJECTED
from tamis.columns.block_test import series_evidence
from tamis.columns.linear import check_enough_rows, scale_rows
from tamis.columns.projection import (
    Evidence,
    GroupEvidence,
    Proposal,
    append_column,
    independent_directions,
    project,
    project_twice,
    residuals_outside,
    smallest_p_value,
)
from tamis.columns.sandwich import retest, robust_evidence
from tamis.columns.tails import log_chi2_tail, log_t_tail
from tamis.errors import DataError

_CAP = 30.0  # largest absolute linear predictor, or difference of two
_RIDGE = 1e-10
_GAIN = 1e-10  # gain in log likelihood below which the fit has converged
_STEPS = 50
_SEPARATED = 1e-4  # largest |y - mu| of a class at which the classes count as separated


def check_not_constant(y: Floats, weight: Floats) -> None:
    """Raise a DataError if the target is constant over the rows of positive weight."""
    if np.ptp(y[weight > 0]) == 0:
        raise DataError(
            f"y is constant ({y[weight > 0][0]:g}), so no feature can explain it: check the target."
        )


@dataclass(frozen=True)
class _Fit:
    beta: Floats  # on the orthonormal design
    eta: Floats
    log_likelihood: float


class LikelihoodModel:
    """A model of the features accepted so far, fitted by Newton's method on an orthonormal design.

    A subclass defines `evidence`, `_zeros`, `_newton`, `retest` and `restart`.
    """

    series = False  # whether a robust test is that of `tamis.columns.block_test`

    def __init__(self, y: Floats, weight: Floats, intercept: bool, robust: bool, exp_tail: bool) -> None:
        self.y, self.weight, self.intercept = y, weight, intercept
        self.robust, self.exp_tail = robust and not exp_tail, exp_tail
        # The likelihood ratio follows a score test if its p is within a factor of 100; it never follows a robust test.
        self.slack = 1e-6 if self.robust else math.log(100.0)
        self.n = float(weight.sum())
        check_enough_rows(self.n, len(y), intercept)
        check_not_constant(y, weight)
        self._check_target()
        self.k = int(intercept)
        self.design = np.zeros((len(y), 8), order="F")
        self.design[:, 0] = 1.0 / math.sqrt(len(y))
        self._set_fit(self._newton(self.design[:, : self.k], self._zeros(self.k)))

    def _check_target(self) -> None:
        """Reject a target that this model cannot fit."""

    def evidence(self, X: Any) -> Evidence:
        """Return the test of each column of X, given the features accepted so far."""
        raise NotImplementedError

    def _status(self, X: Floats) -> NDArray[np.int8]:
        """Return the status of each column of a group, given the features accepted so far."""
        return independent_directions(X, self.design[:, : self.k], bool(self.intercept))[1]

    def _zeros(self, n_features: int) -> Floats:
        """Return coefficients of features that have no effect."""
        raise NotImplementedError

    def _newton(self, design: Floats, beta: Floats) -> Any:
        """Return the fit to a design, from the coefficients `beta`."""
        raise NotImplementedError

    def _set_fit(self, fit: Any) -> None:
        """Set the fit of the design."""
        self.fit = fit

    @property
    def df(self) -> float:
        """Residual degrees of freedom with one more feature: n - q - 2 with an intercept."""
        return self.n - self.k - 1

    def stop_reason(self) -> str | None:
        """Return the reason why no further feature can be tested, or None."""
        q = self.k - self.intercept
        if self.df < 1:
            return f"{q} features for {self.n:g} rows leave no degrees of freedom"
        return self._separation_reason(q)

    def _separation_reason(self, q: int) -> str | None:
        return None

    def _robust_evidence(
        self, X: Floats, basis: Floats, residual: Floats, model_log_p: Callable[[Floats], Floats]
    ) -> Evidence:
        """Return the test of each column without assumptions about the variance of the rows; all in weighted rows."""
        if self.series:
            return series_evidence(X, basis, residual, bool(self.intercept), model_log_p, self.y, self.weight)
        return robust_evidence(X, basis, residual, self.weight, bool(self.intercept), self.df, model_log_p)

    def evidence_of_group(self, X: Floats) -> GroupEvidence:
        """Return the likelihood ratio of the columns of X, shape (n_rows, m), added together; robust: one by one."""
        status = self._status(X)
        testable = X[:, status == REJECTED]
        k = testable.shape[1]
        if k == 0 or self.df + 1 - k < 1:
            return GroupEvidence(math.nan, math.nan, status)
        if self.robust:
            return smallest_p_value(self.evidence(testable), status)
        directions = independent_directions(testable, self.design[:, : self.k], bool(self.intercept))[0]
        return GroupEvidence(*self._likelihood_ratio(directions, k)[:2], status)

    def _likelihood_ratio(self, columns: Floats, n_features: int = 1) -> tuple[float, float, Any]:
        """Return the statistic of orthonormal columns added to the design, its log p-value and the fit."""
        wider = np.column_stack([self.design[:, : self.k], columns])
        fit = self._newton(wider, np.concatenate([self.fit.beta, self._zeros(columns.shape[1])]))
        statistic = max(2.0 * (fit.log_likelihood - self.fit.log_likelihood), 0.0)
        return statistic, float(self._log_p(np.array([statistic]), n_features)[0]), fit

    def _log_p(self, statistic: Floats, n_features: int = 1) -> Floats:
        if self.exp_tail:
            return -0.5 * statistic
        return log_chi2_tail(statistic, n_features * self._zeros(1).size)

    def propose(self, x: Floats) -> Proposal:
        """Return one candidate, fitted."""
        z, zz, _ = project_twice(x[:, None], self.design[:, : self.k], self.intercept)
        column = z[:, 0] / math.sqrt(zz[0])
        statistic, log_p, fit = self._likelihood_ratio(column[:, None])
        if self.robust:
            evidence = self.evidence(x[:, None])
            statistic, log_p = float(evidence.statistic[0]), float(evidence.log_p[0])
        return Proposal(statistic, log_p, column, fit)

    def accept(self, proposal: Proposal) -> None:
        """Add a candidate to the model."""
        self.design = append_column(self.design, self.k, proposal.column)
        self.k += 1
        self._set_fit(proposal.fitted)

    def clear_room(self) -> None:
        """Clear the unused columns after the basis."""
        self.design[:, self.k :] = 0.0


class _GrowingModel(LikelihoodModel):
    """A generalised linear model with canonical link on the features accepted so far."""

    _state_spec = Shapes(
        "y (r) float in [-1e140, 1e140]  weight (r) float in [0, 1e140]  residual (r) float in [-1e140, 1e140]"
        "  root (r) float in [0, 1e140]  design (r, b) float in [-1.001, 1.001] fortran  k in [intercept, b]  k (=q)"
        f"  basis (r, q) float in [-1.001, 1.001]  fit.eta (r) float in [-{_CAP}, {_CAP}]"
        "  fit.beta (q) float in [-1e140, 1e140]  fit.log_likelihood finite"
        "  n float in [0.999*weight.sum(), 1.001*weight.sum()]"
    )

    in_likelihood = False  # whether a robust test is reported as the likelihood ratio of the same p-value

    def _zeros(self, n_features: int) -> Floats:
        return np.zeros(n_features)

    def _mean_and_variance(self, eta: Floats) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def _log_likelihood(self, eta: Floats) -> float:
        raise NotImplementedError

    def evidence(self, X: Any) -> Evidence:
        """Return the test of each column of X, given the features accepted so far."""
        X = scale_rows(X, self.root)
        if self.robust:
            X = X.toarray() if sp.issparse(X) else X
            evidence = self._robust_evidence(X, self.basis, self.residual, self._model_log_p)
            if self.series or not self.in_likelihood:
                return evidence
            ratio = special.ndtri_exp(np.minimum(evidence.log_p, 0.0) - math.log(2.0)) ** 2
            return Evidence(ratio, evidence.log_p, evidence.status)
        zz, c, status = project(X, self.basis, self.residual, self.intercept)
        statistic = c * c / np.where(status == REJECTED, zz, np.inf)  # (1)
        return Evidence(statistic, self._log_p(statistic), status)

    def _status(self, X: Floats) -> NDArray[np.int8]:
        return independent_directions(scale_rows(X, self.root), self.basis, bool(self.intercept))[1]

    def _model_log_p(self, statistic: Floats) -> Floats:
        """Return the model-based log p-values, the lower bounds of a robust test of a candidate."""
        return self._log_p(statistic)

    def _model_log_p_of_accepted(self, statistic: Floats) -> Floats:
        """Return the model-based log p-values of features of the model."""
        return self._log_p(statistic)

    def retest(self, features: Floats) -> Floats:
        """Return the log p-value of each accepted feature, shape (n_rows, q), given the others."""
        sandwich = (self.residual, self.weight, self.df + 1) if self.robust else None
        return retest(
            features, self.root, bool(self.intercept), self.fit.eta, self._model_log_p_of_accepted, sandwich,
            self.y if self.series else None,
        )  # fmt: skip

    def restart(self, features: Floats) -> None:
        """Replace the accepted features with these, shape (n_rows, q)."""
        first = self.design[:, : int(self.intercept)]
        self.design = np.zeros((len(features), max(8, 2 * features.shape[1])), order="F")
        self.design[:, : int(self.intercept)] = first
        self.k = int(self.intercept)
        for j in range(features.shape[1]):
            z, zz, _ = project_twice(features[:, [j]], self.design[:, : self.k], self.intercept)
            self.design[:, self.k] = z[:, 0] / math.sqrt(zz[0])
            self.k += 1
        self._set_fit(self._newton(self.design[:, : self.k], np.zeros(self.k)))

    def _set_fit(self, fit: _Fit) -> None:
        """Set the fit, and the basis and residual of (1) for it."""
        self.fit: _Fit = fit
        mean, variance = self._mean_and_variance(fit.eta)
        self.root = np.sqrt(self.weight * variance)
        self.basis = np.linalg.qr(self.design[:, : self.k] * self.root[:, None])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.weight * (self.y - mean) / self.root
        self.residual = np.where(self.root > 0, scaled, 0.0)

    def _newton(self, design: Floats, beta: Floats) -> _Fit:
        """Newton's method from `beta`; a step is halved until the likelihood does not decrease."""
        eta = np.clip(design @ beta, -_CAP, _CAP)
        best, settled = self._log_likelihood(eta), False
        for _ in range(_STEPS):
            mean, variance = self._mean_and_variance(eta)
            hessian = (design * (self.weight * variance)[:, None]).T @ design
            hessian[np.diag_indices_from(hessian)] += _RIDGE
            step = np.linalg.solve(hessian, design.T @ (self.weight * (self.y - mean)))
            if settled:  # a step below the resolution of the likelihood, for the last digits of score tests
                beta = beta + step
                eta = np.clip(design @ beta, -_CAP, _CAP)
                best = self._log_likelihood(eta)
                break
            gain, before = -1.0, best
            for _ in range(20):
                eta = np.clip(design @ (beta + step), -_CAP, _CAP)
                gain = self._log_likelihood(eta) - before
                if gain >= 0.0:
                    break
                step = step / 2.0
            if gain < 0.0:
                eta = np.clip(design @ beta, -_CAP, _CAP)
                break
            beta, best = beta + step, before + gain
            settled = gain < _GAIN
        return _Fit(beta, eta, best)


class LogisticModel(_GrowingModel):
    """Logistic regression of two classes, coded 0 and 1.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,), float64
    intercept, robust, exp_tail : bool
        As for :class:`tamis.columns.linear.LinearModel`.

    Examples
    --------
    >>> x = np.arange(8.0)
    >>> model = LogisticModel(np.array([0.0, 0, 1, 0, 1, 0, 1, 1]), np.ones(8), True, False, False)
    >>> model.evidence(x[:, None]).statistic.round(3), round(model.propose(x).statistic, 3)
    (array([2.381]), 2.641)
    """

    def _mean_and_variance(self, eta: Floats) -> tuple[Floats, Floats]:
        mean: Floats = special.expit(eta)
        return mean, mean * special.expit(-eta)

    def _log_likelihood(self, eta: Floats) -> float:
        return float(self.weight @ (self.y * eta - np.logaddexp(0.0, eta)))

    def _separation_reason(self, q: int) -> str | None:
        wrong = np.abs(self.y - special.expit(self.fit.eta))[self.weight > 0]
        return f"{q} features separate the two classes perfectly" if wrong.max() < _SEPARATED else None


class PoissonModel(_GrowingModel):
    """Poisson regression of counts.

    Parameters
    ----------
    y, weight : ndarray of shape (n_rows,), float64
    intercept, robust, exp_tail : bool
        As for :class:`tamis.columns.linear.LinearModel`.

    Raises
    ------
    DataError
        If `y` has a negative value or is constant.

    Examples
    --------
    >>> x = np.arange(8.0)
    >>> model = PoissonModel(np.array([0.0, 1, 1, 3, 2, 5, 4, 9]), np.ones(8), True, False, False)
    >>> model.evidence(x[:, None]).statistic.round(3), round(model.propose(x).statistic, 3)
    (array([15.088]), 16.177)
    """

    def _check_target(self) -> None:
        if (self.y < 0).any():
            raise DataError(
                f"y contains {self.y.min():g}, but model='poisson' needs counts: use model='linear'."
            )

    def _mean_and_variance(self, eta: Floats) -> tuple[Floats, Floats]:
        mean: Floats = np.exp(eta)
        return mean, mean

    def _log_likelihood(self, eta: Floats) -> float:
        return float(self.weight @ (self.y * eta - np.exp(eta)))

    def _model_log_p(self, statistic: Floats) -> Floats:
        total = float(self.residual @ self.residual)
        left = np.maximum(total - statistic, 1e-300)
        return log_t_tail(statistic * self.df / left, self.df)  # (2)

    def _model_log_p_of_accepted(self, statistic: Floats) -> Floats:
        if not self.robust:
            return self._log_p(statistic)
        df = self.df + 1  # no candidate uses one
        return log_t_tail(statistic * df / float(self.residual @ self.residual), df)


# -- Multinomial regression that grows by one feature at a time: score tests, refined by likelihood ratios

# Let y_c be 1 in the rows of class c, and mu_c its mean at the fit of the selected features, c = 1 .. K - 1 beside
# the reference class 0; D the intercept and the selected features. With z the part of a candidate outside the span of
# D, and w_cd = mu_c (1 - mu_c) if c = d, else -mu_c mu_d::
#
#     U_c = z.(y_c - mu_c),  B = (D'w_cd z)_cd,  H = (D'w_cd D)_cd,  V = (z'w_cd z)_cd - B'H^-1 B            (1)
#     U'V^-1 U ~ chi-square with K - 1 degrees of freedom                                                    (2)
#
# A candidate that may pass its threshold is fitted: twice the gain in log likelihood replaces (2). With K = 2 this is
# :class:`LogisticModel`.
#
# Robust tests, and tests for autocorrelated rows, are one-vs-rest at the joint fit: U_c divided by its empirical
# standard deviation (:mod:`tamis.columns.sandwich`, :mod:`tamis.columns.block_test`). The p-value is the smallest of
# them times K. A selected feature is tested again as a candidate beside all others.
#
# Begg, Gray: Calculation of polychotomous logistic regression parameters using individualized regressions, Biometrika
# 71(1), 1984; Rao: Large sample tests of statistical hypotheses, 1948 (the score test).


@dataclass(frozen=True)
class _JointFit:
    beta: Floats  # (k, K - 1), on the orthonormal design
    mean: Floats  # (n_rows, K), mu
    log_likelihood: float


class MultinomialModel(LikelihoodModel):
    """Multinomial logistic regression of two or more classes on the features accepted so far.

    Parameters
    ----------
    y : ndarray of shape (n_rows,), float64
        Codes of the classes, from 0.
    weight : ndarray of shape (n_rows,), float64
    intercept, robust, exp_tail : bool
        As for :class:`tamis.columns.linear.LinearModel`.

    Raises
    ------
    DataError
        If `y` is constant or there are too few rows.

    Examples
    --------
    >>> x, y = np.arange(9.0), np.array([0.0, 0, 1, 0, 1, 2, 1, 2, 2])
    >>> model = MultinomialModel(y, np.ones(9), True, False, False)
    >>> model.evidence(x[:, None]).statistic.round(3), round(model.propose(x).statistic, 3)
    (array([6.4]), 9.955)
    """

    _state_spec = Shapes(
        "y (r) in [0, fit.mean.shape[1])  weight (r) float in [0, 1e140]  design (r, b) float in [-1.001, 1.001]"
        " fortran  k in [intercept, b]  fit.mean (r, K) float in [0, 1]  fit.beta (*, *) float in [-1e140, 1e140]"
        "  fit.log_likelihood finite  n float in [0.999*weight.sum(), 1.001*weight.sum()]"
    )

    def __init__(self, y: Floats, weight: Floats, intercept: bool, robust: bool, exp_tail: bool) -> None:
        super().__init__(y.astype(np.int64), weight, intercept, robust, exp_tail)

    def _zeros(self, n_features: int) -> Floats:
        return np.zeros((n_features, self._n_classes - 1))

    @property
    def _n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def residual(self) -> Floats:
        """y_c - mu_c over its standard deviation, of shape (n_rows, n_classes)."""
        return np.column_stack([self._working(c)[1] for c in range(self._n_classes)])

    def _separation_reason(self, q: int) -> str | None:
        wrong = 1.0 - self.fit.mean[np.arange(len(self.y)), self.y][self.weight > 0]
        return f"{q} features separate the classes perfectly" if wrong.max() < _SEPARATED else None

    # -- candidates ----------------------------------------------------------------------------------------

    def evidence(self, X: Any) -> Evidence:
        """Return the test of each column of X, given the features accepted so far."""
        X = X.toarray() if sp.issparse(X) else X
        if self.robust:
            return self._evidence_by_class(X)
        z, zz, status = residuals_outside(X, self.design[:, : self.k], self.intercept)
        z = z / np.sqrt(np.where(status == REJECTED, zz, 1.0))
        statistic = np.where(status == REJECTED, self._score_statistics(z), 0.0)
        return Evidence(statistic, self._log_p(statistic), status)

    def _score_statistics(self, z: Floats) -> Floats:
        """Return (2) of columns z of shape (n_rows, m)."""
        design, mean, m, free = self.design[:, : self.k], self.fit.mean, z.shape[1], self._n_classes - 1
        scores = np.empty((m, free))
        information = np.empty((m, free, free))
        crossed = np.empty((free, self.k, free, m))
        square = z * z
        for c in range(free):
            scores[:, c] = (self.weight * ((self.y == c + 1) - mean[:, c + 1])) @ z
            for d in range(c, free):
                w = self._covariance(mean, c, d)
                information[:, c, d] = information[:, d, c] = w @ square
                crossed[c, :, d] = crossed[d, :, c] = (design * w[:, None]).T @ z
        by_parameter = crossed.reshape(free * self.k, free * m)
        solved = np.linalg.solve(self._hessian(design, mean), by_parameter)
        pairs = by_parameter.reshape(-1, free, m), solved.reshape(-1, free, m)
        explained = np.einsum("pcm,pdm->mcd", *pairs)
        left = information - explained
        diagonal = np.einsum("mcc->mc", left)
        diagonal += _RIDGE * np.maximum(diagonal.max(axis=1, keepdims=True), _RIDGE)
        directions = np.linalg.solve(left, scores[..., None])[..., 0]
        return np.maximum(np.einsum("mc,mc->m", scores, directions), 0.0)

    def _evidence_by_class(self, X: Floats) -> Evidence:
        """Return the smallest p-value of the robust tests of each class against all others, times their number."""
        parts = []
        for c in range(self._n_classes):
            root, residual = self._working(c)
            basis = np.linalg.qr(self.design[:, : self.k] * root[:, None])[0]
            parts.append(self._robust_evidence(X * root[:, None], basis, residual, log_chi2_tail))
        log_p = np.min([part.log_p for part in parts], axis=0) + math.log(len(parts))
        statistic = np.max([part.statistic for part in parts], axis=0)
        return Evidence(statistic, np.minimum(log_p, 0.0), np.max([part.status for part in parts], axis=0))

    def _working(self, c: int) -> tuple[Floats, Floats]:
        """Return the square roots of the weights of the fit for one class against all others, and its residual."""
        mean = self.fit.mean[:, c]
        root = np.sqrt(self.weight * mean * (1.0 - mean))
        raw = self.weight * ((self.y == c) - mean)
        return root, np.divide(raw, root, out=np.zeros(len(root)), where=root > 0)

    # -- the model -----------------------------------------------------------------------------------------

    def retest(self, features: Floats) -> Floats:
        """Return the log p-value of each accepted feature, shape (n_rows, q), given the others."""
        log_p = np.empty(features.shape[1])
        for j in range(len(log_p)):
            others = copy.copy(self)
            others.restart(np.delete(features, j, axis=1))
            log_p[j] = others.propose(features[:, j]).log_p
        return log_p

    def restart(self, features: Floats) -> None:
        """Replace the accepted features with these, shape (n_rows, q)."""
        first = self.design[:, : int(self.intercept)]
        directions = independent_directions(features, first, bool(self.intercept))[0]
        self.design = np.zeros((len(features), max(8, 2 * features.shape[1])), order="F")
        self.k = first.shape[1] + directions.shape[1]
        self.design[:, : self.k] = np.column_stack([first, directions])
        self.fit = self._newton(self.design[:, : self.k], self._zeros(self.k))

    def _covariance(self, mean: Floats, c: int, d: int) -> Floats:
        """Return the weights of the rows times w_cd; `c` and `d` count from the first class after the reference."""
        of_c, of_d = mean[:, c + 1], mean[:, d + 1]
        return self.weight * of_c * ((1.0 - of_c) if c == d else -of_d)

    def _hessian(self, design: Floats, mean: Floats) -> Floats:
        free, k = self._n_classes - 1, design.shape[1]
        blocks = np.empty((free, k, free, k))
        for c in range(free):
            for d in range(c, free):
                block = (design * self._covariance(mean, c, d)[:, None]).T @ design
                blocks[c, :, d] = block
                blocks[d, :, c] = block
        hessian = blocks.reshape(free * k, free * k)
        hessian[np.diag_indices_from(hessian)] += _RIDGE
        return hessian

    def _evaluate(self, design: Floats, beta: Floats) -> tuple[Floats, float]:
        eta = np.column_stack([np.zeros(len(design)), design @ beta])
        eta = np.maximum(eta - eta.max(axis=1, keepdims=True), -_CAP)
        log_mean = eta - special.logsumexp(eta, axis=1, keepdims=True)
        return np.exp(log_mean), float(self.weight @ log_mean[np.arange(len(self.y)), self.y])

    def _newton(self, design: Floats, beta: Floats) -> _JointFit:
        """Newton's method from `beta`; a step is halved until the likelihood does not decrease."""
        mean, best = self._evaluate(design, beta)
        of_class = self.y[:, None] == np.arange(1, self._n_classes)
        for _ in range(_STEPS):
            slope = design.T @ (self.weight[:, None] * (of_class - mean[:, 1:]))
            step = np.linalg.solve(self._hessian(design, mean), slope.T.ravel()).reshape(slope.T.shape).T
            gain = -1.0
            for _ in range(20):
                tried, value = self._evaluate(design, beta + step)
                gain = value - best
                if gain >= 0.0:
                    break
                step = step / 2.0
            if gain < 0.0:
                break
            beta, mean, best = beta + step, tried, value
            if gain < _GAIN:
                break
        return _JointFit(beta, mean, best)
