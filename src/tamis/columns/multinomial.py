"""Multinomial regression that grows by one feature at a time: score tests, refined by likelihood ratios.

Let y_c be 1 in the rows of class c, and mu_c its mean at the fit of the selected features, c = 1 .. K - 1 beside the
reference class 0; D the intercept and the selected features. With z the part of a candidate outside the span of D, and
w_cd = mu_c (1 - mu_c) if c = d, else -mu_c mu_d::

    U_c = z.(y_c - mu_c),  B = (D'w_cd z)_cd,  H = (D'w_cd D)_cd,  V = (z'w_cd z)_cd - B'H^-1 B            (1)
    U'V^-1 U ~ chi-square with K - 1 degrees of freedom                                                    (2)

A candidate that may pass its threshold is fitted: twice the gain in log likelihood replaces (2). With K = 2 this is
:class:`tamis.columns.glm.LogisticModel`.

Robust tests, and tests for autocorrelated rows, are one-vs-rest at the joint fit: U_c divided by its empirical standard
deviation (:mod:`tamis.columns.sandwich`, :mod:`tamis.columns.block_test`). The p-value is the smallest of them times K.
A selected feature is tested again as a candidate beside all others.

Begg, Gray: Calculation of polychotomous logistic regression parameters using individualized regressions, Biometrika
71(1), 1984; Rao: Large sample tests of statistical hypotheses, 1948 (the score test).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import special

from tamis._shapes import Shapes
from tamis._validation import Floats
from tamis.base.trace import REJECTED
from tamis.columns.glm import LikelihoodModel
from tamis.columns.projection import Evidence, independent_directions, residuals_outside
from tamis.columns.tails import log_chi2_tail

_CAP = 30.0  # largest difference of two linear predictors
_RIDGE = 1e-10
_GAIN = 1e-10  # gain in log likelihood below which the fit has converged
_STEPS = 50
_SEPARATED = 1e-4  # largest |y_c - mu_c| at which the classes count as separated


@dataclass(frozen=True)
class _Fit:
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

    def _newton(self, design: Floats, beta: Floats) -> _Fit:
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
        return _Fit(beta, mean, best)
