"""An inexpensive learner for each of many feature sets, all of them trained and evaluated in one pass.

For a set S and standardised values z, a linear learner is a logistic regression, one against the rest, by stochastic
gradient descent. The curvature of the loss is at most 1/4, so the step is bounded for any number of features::

    predict  argmax_k  m_k = b_k + sum_{j in S} w_kj z_j                                          (1)
    learn    g = [y = k] - 1 / (1 + exp(-m_k)),   r = eta / (1 + eta (1 + |z|^2) / 4)             (2)
             b_k <- b_k + r g,   w_kj <- w_kj + r g z_j

For a numeric target, it is a linear regression by the steps of scikit-learn's SGDRegressor: that of the learner that
will use the features, or else of the default learner of a run (the loss of Huber 1964). As in a run, the target y is
standardised by its moments so far. With L the loss, t the number of the row and the parameters eta_0, p and alpha::

    w <- (1 - eta alpha) w - eta L'(y - b - w z) z,   b <- b - eta L'(y - b - w z),   eta = eta_0 / t^p   (4)

and naive Bayes sums the log-likelihoods of the values of S, with the class means mu and variances v shared by all
sets::

    predict  argmax_k  log P[k] + sum_{j in S} (-z_j^2 / (2 v_kj) + z_j mu_kj / v_kj + t_kj)      (3)
    t_kj = -(mu_kj^2 / v_kj + log v_kj) / 2

Both are one product of the rows with a matrix that has a row for each set and class.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Floats, Indices, Mask, Rows
from tamis.summaries.class_moments import ClassMoments

_LIMIT = 5.0  # standard deviations at which values are clipped
_LOGISTIC_RATE = 0.01  # eta of (2), the rate of the default learner
_LARGEST_MARGIN = 30.0  # of (2); its exponential is finite
_SMOOTHING = 1e-9  # of the largest variance, as in scikit-learn's GaussianNB


@njit()
def _logistic_step(margin: float, square: float, is_class: bool, weight: float) -> float:
    """Return r g of (2); square is 1 + |z|^2."""
    bounded = min(max(margin, -_LARGEST_MARGIN), _LARGEST_MARGIN)
    rate = _LOGISTIC_RATE * weight
    return (
        rate / (1.0 + 0.25 * rate * square) * ((1.0 if is_class else 0.0) - 1.0 / (1.0 + math.exp(-bounded)))
    )


@njit()
def _within(X: Array, mask: Array) -> tuple[Array, Array]:
    """Return the rows within a set, and 1 + |z|^2 of each."""
    inside = np.flatnonzero(mask)
    Z, square = np.empty((len(X), len(inside))), np.ones(len(X))
    for i in range(len(X)):
        for j in range(len(inside)):
            Z[i, j] = X[i, inside[j]]
            square[i] += Z[i, j] * Z[i, j]
    return Z, square


@njit()
def _train(X: Array, codes: Array, times: Array, orders: Array, masks: Array, W: Array, b: Array) -> None:
    """Apply (2) to the rows, for every set, with the features of the set alone."""
    n_sets, n_outputs, _ = W.shape
    for a in range(n_sets):
        Z, square = _within(X, masks[a])
        inside = np.flatnonzero(masks[a])
        for k in range(n_outputs):
            w = W[a, k][inside]
            for i in orders[k]:
                margin, x = b[a, k], Z[i]
                for j in range(len(w)):
                    margin += w[j] * x[j]
                step = _logistic_step(margin, square[i], codes[i] == k + (n_outputs == 1), times[i])
                b[a, k] += step
                for j in range(len(w)):
                    w[j] += step * x[j]
            W[a, k][inside] = w


@njit()
def _train_csr(
    data: Array, indices: Array, indptr: Array, codes: Array, times: Array, orders: Array, masks: Array, W: Array,
    b: Array,
) -> None:  # fmt: skip
    """Apply (2) to the stored values of the rows."""
    n_sets, n_outputs, _ = W.shape
    for a in range(n_sets):
        for k in range(n_outputs):
            for i in orders[k]:
                margin, square = b[a, k], 1.0
                for at in range(indptr[i], indptr[i + 1]):
                    value = masks[a, indices[at]] * data[at]
                    margin += W[a, k, indices[at]] * value
                    square += value * value
                step = _logistic_step(margin, square, codes[i] == k + (n_outputs == 1), times[i])
                b[a, k] += step
                for at in range(indptr[i], indptr[i + 1]):
                    W[a, k, indices[at]] += step * masks[a, indices[at]] * data[at]


@njit()
def _descend(
    X: Array, y: Array, times: Array, masks: Array, W: Array, b: Array, first: float,
    rule: tuple[int, float, float, float, float],
) -> None:  # fmt: skip
    """Apply (4) to the rows, for every set; `first` is the number of the first row, from 1."""
    loss, eta0, power, epsilon, alpha = rule
    for a in range(len(W)):
        Z, _ = _within(X, masks[a])
        inside = np.flatnonzero(masks[a])
        w = W[a, 0][inside]
        for i in range(len(y)):
            error, x = y[i] - b[a, 0], Z[i]
            for j in range(len(w)):
                error -= w[j] * x[j]
            if loss == 1:
                slope = min(max(error, -epsilon), epsilon)
            else:
                far = error - min(max(error, -epsilon), epsilon)
                slope = error if loss == 0 else np.sign(far) if loss == 2 else 2.0 * far
            eta = eta0 / (first + i) ** power
            step, keep = eta * times[i] * min(max(slope, -_STEEPEST), _STEEPEST), max(1.0 - eta * alpha, 0.0)
            b[a, 0] += step
            for j in range(len(w)):
                w[j] = keep * w[j] + step * x[j]
        if not np.isfinite(w.sum() + b[a, 0]):  # it diverges
            w[:], b[a, 0] = 0.0, 0.0
        W[a, 0][inside] = w


# Numbers in `_descend`
_LOSSES = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")
_DEFAULT_RULE = 1, 0.01, 0.25, 1.0, 1e-4
_STEEPEST = 1e12  # largest slope, as in scikit-learn


def sgd_rule(learner: Any) -> tuple[int, float, float, float, float]:
    """Return the loss and the steps of a linear regression by stochastic gradient descent.

    They are the number of the loss, the first step, the power of the row number by which steps decrease, epsilon and
    the L2 penalty; for any other learner, those of the default learner of a run.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge, SGDRegressor
    >>> sgd_rule(SGDRegressor(loss="huber")), sgd_rule(BayesianRidge())
    ((1, 0.01, 0.25, 0.1, 0.0001), (1, 0.01, 0.25, 1.0, 0.0001))
    """
    if hasattr(learner, "steps"):
        learner = learner.steps[-1][1] if learner.steps else None
    names = ("loss", "learning_rate", "eta0", "power_t", "epsilon", "alpha", "penalty")
    if not all(hasattr(learner, name) for name in names):
        return _DEFAULT_RULE
    loss, rate, eta0, power, epsilon, alpha, penalty = (getattr(learner, name) for name in names)
    if loss not in _LOSSES or rate not in ("constant", "invscaling"):
        return _DEFAULT_RULE
    power, alpha = power if rate == "invscaling" else 0.0, alpha if penalty == "l2" else 0.0
    return _LOSSES.index(loss), float(eta0), float(power), float(epsilon), float(alpha)


class Scale:
    """Mean and standard deviation of each feature, read from the moments of the classes.

    Parameters
    ----------
    moments : ClassMoments
    """

    def __init__(self, moments: ClassMoments) -> None:
        count, mean = moments.count(), moments.mean()
        total = np.maximum(count.sum(axis=0), 1e-300)
        self.shift = (count * mean).sum(axis=0) / total
        square = (count * (moments.variance() + (mean - self.shift) ** 2)).sum(axis=0) / total
        self.factor = np.divide(1.0, np.sqrt(square), out=np.ones_like(square), where=square > 0.0)

    def standardise(self, X: Rows) -> Rows:
        """Return the rows standardised, clipped at five deviations; sparse rows are only divided."""
        if sp.issparse(X):
            scaled = X.astype(np.float64)
            scaled.data = np.clip(scaled.data * self.factor[scaled.indices], -_LIMIT, _LIMIT)
            return scaled
        return np.clip((X - self.shift) * self.factor, -_LIMIT, _LIMIT)


class LogisticRegressions(SizedState):
    """A logistic regression for each feature set.

    Parameters
    ----------
    n_sets, n_classes, n_features : int

    Attributes
    ----------
    W : ndarray of shape (n_sets, n_outputs, n_features), float64
        Weights, including those of features that have left their set. Two classes have one output.
    b : ndarray of shape (n_sets, n_outputs), float64
    """

    _declared = "n_classes (=c)  W (a, o, j) finite fill 0  b (a, c*(c>2)+(c<3)) finite  b (a, o)"
    _state_spec = Shapes(_declared)

    def __init__(self, n_sets: int, n_classes: int, n_features: int) -> None:
        n_outputs = 1 if n_classes <= 2 else n_classes
        self.n_classes = n_classes
        self.W, self.b = np.zeros((n_sets, n_outputs, n_features)), np.zeros((n_sets, n_outputs))

    def average_with(self, other: LogisticRegressions, share: float) -> LogisticRegressions:
        """Return the weighted mean with learners of the same sets and classes, whose share is in [0, 1]."""
        learners = copy.copy(self)
        learners.W, learners.b = self.W + share * (other.W - self.W), self.b + share * (other.b - self.b)
        return learners

    def select(self, sets: Array) -> LogisticRegressions:
        """Return a copy of some sets, which may be repeated."""
        learners = copy.copy(self)
        learners.W, learners.b = self.W[sets], self.b[sets]
        return learners

    def scores(self, Z: Rows, masks: Mask) -> Floats:
        """Return the scores (1) of each row for each set, shape (n_rows, n_sets, n_outputs)."""
        inside = (self.W * masks[:, None, :]).reshape(-1, masks.shape[1])
        return np.asarray(Z @ inside.T).reshape(Z.shape[0], *self.b.shape) + self.b

    def learn(
        self, Z: Rows, codes: Array, weight: Array, masks: Mask, rng: np.random.Generator | None = None
    ) -> None:  # fmt: skip
        """Learn from the rows (2), in order; with `rng`, each of several outputs learns in its own random order.

        scikit-learn's linear models shuffle likewise. If all outputs learn the same rows last, accuracy is lower, above
        all with every feature (isolet: .47 instead of .52).
        """
        n, n_outputs = len(codes), self.b.shape[1]
        orders = np.tile(np.arange(n), (n_outputs, 1))
        if rng is not None and n_outputs > 1:
            orders = rng.permuted(orders, axis=1)
        self.W, self.b = self.W.copy(), self.b.copy()
        if sp.issparse(Z):
            inside = masks.astype(np.float64)
            _train_csr(Z.data, Z.indices, Z.indptr, codes, weight, orders, inside, self.W, self.b)
        else:
            _train(Z, codes, weight, orders, masks, self.W, self.b)


class LinearRegressions(LogisticRegressions):
    """A linear regression for each feature set.

    Parameters
    ----------
    n_sets, n_features : int

    Attributes
    ----------
    moments : ndarray of shape (3,), float64
        Weight, mean and variance of the target, which is standardised by them.
    """

    _state_spec = Shapes(f"{LogisticRegressions._declared} moments (3) finite")

    def __init__(self, n_sets: int, n_features: int) -> None:
        super().__init__(n_sets, 2, n_features)
        self.moments = np.zeros(3)

    def scores(self, Z: Rows, masks: Mask) -> Floats:
        """Return the predicted target of each row for each set, shape (n_rows, n_sets, 1)."""
        scores = super().scores(Z, masks)
        _, mean, variance = self.moments
        return mean + (variance**0.5 or 1.0) * scores

    def fit_step(self, Z: Rows, y: Array, weight: Array, masks: Mask, learner: Any, n_before: int) -> None:
        """Learn from the rows (4), in order.

        Parameters
        ----------
        Z, y, weight
            Rows (dense or sparse), targets and weights.
        masks : ndarray of shape (n_sets, n_features), bool
        learner : str or estimator
            Whose steps are taken, if it is an SGDRegressor.
        n_before : int
            Number of rows learned before.
        """
        total, (seen, mean, variance) = float(weight.sum()), self.moments
        share, centre = total / (seen + total), float(np.average(y, weights=weight))
        spread = float(np.average((y - centre) ** 2, weights=weight)) + (1.0 - share) * (centre - mean) ** 2
        mean, variance = mean + share * (centre - mean), variance + share * (spread - variance)
        self.moments = np.array([seen + total, mean, variance])
        rows = np.ascontiguousarray(Z.toarray() if sp.issparse(Z) else Z)
        targets = (y - mean) / (variance**0.5 or 1.0)
        self.W, self.b = self.W.copy(), self.b.copy()
        _descend(rows, targets, weight, masks, self.W, self.b, n_before + 1.0, sgd_rule(learner))


def bayes_scores(X: Array, moments: ClassMoments, masks: Mask) -> Floats:
    """Return the log-likelihood of each class under naive Bayes with each feature set, for each row, by (3).

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    moments : ClassMoments
        Moments of the training rows.
    masks : ndarray of shape (n_sets, n_features), bool

    Returns
    -------
    ndarray of shape (n_rows, n_sets, n_classes), float64
        Up to a constant per row.

    Examples
    --------
    >>> moments = ClassMoments(2, 2)
    >>> X = np.array([[0.0, 5.0], [1.0, 6.0], [5.0, 0.0], [6.0, 1.0]])
    >>> moments.update(X, np.array([0, 0, 1, 1]))
    True
    >>> predictions(bayes_scores(np.array([[0.0, 0.0]]), moments, np.array([[True, False], [False, True]])))
    array([[0],
           [1]])
    """
    scale = Scale(moments)
    variance = moments.variance()
    varies = scale.factor**2 * variance.max(axis=0) > 0.0
    v = (variance + _SMOOTHING * variance.max()) * scale.factor**2 + 1e-300
    mu = (moments.mean() - scale.shift) * scale.factor
    pull, lean = np.where(varies, -0.5 / v, 0.0), np.where(varies, mu / v, 0.0)
    level = np.where(varies, -0.5 * (mu * lean + np.log(v)), 0.0)
    with np.errstate(divide="ignore"):
        prior = np.log(moments.weight() / moments.weight().sum())
    Z, (n_sets, p), n_classes = (X - scale.shift) * scale.factor, masks.shape, len(prior)
    inside = masks[:, None, :].astype(np.float64)
    values: Any = (Z * Z) @ (pull * inside).reshape(-1, p).T + Z @ (lean * inside).reshape(-1, p).T
    return values.reshape(len(Z), n_sets, n_classes) + inside[:, 0] @ level.T + prior


def predictions(scores: Floats) -> Indices:
    """Return the class predicted by each set for each row, shape (n_sets, n_rows); two classes have one output."""
    if scores.shape[2] == 1:
        return (scores[:, :, 0] > 0.0).T.astype(np.intp)
    return scores.argmax(axis=2).T


def logistic_shares(scores: Floats) -> Floats:
    """Return probabilities from the scores (1): one output for two classes; of more, divided by their sum."""
    shares = 1.0 / (1.0 + np.exp(-np.clip(scores, -_LARGEST_MARGIN, _LARGEST_MARGIN)))
    return shares if scores.shape[2] == 1 else shares / shares.sum(axis=2, keepdims=True)


def softmax_shares(scores: Floats) -> Floats:
    """Return probabilities from log-likelihoods (3)."""
    shares: Floats = np.exp(scores - scores.max(axis=2, keepdims=True))
    return shares / shares.sum(axis=2, keepdims=True)


def brier_loss(shares: Floats, codes: Array, weight: Array) -> Floats:
    """Return the Brier score of each row, by each set, relative to that of the proportions of the classes.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_sets, n_outputs)
        Probabilities of the classes; of two, that of the second one is sufficient.
    codes : ndarray of shape (n_rows,), int64
    weight : ndarray of shape (n_classes,)
        Weight of the rows of each class.

    Returns
    -------
    ndarray of shape (n_sets, n_rows)

    Examples
    --------
    A coin has a score of 1, for equal classes, and 0.9 for the true class one of 0.04:

    >>> brier_loss(np.array([[[0.5], [0.9]]]), np.array([1]), np.array([10.0, 10.0])).round(2)
    array([[1.  ],
           [0.04]])
    """
    proportion = weight / weight.sum()
    base = max(float(proportion @ (1.0 - proportion)), 1e-300)
    if shares.shape[2] == 1:
        return np.asarray(2.0 * (shares[:, :, 0] - codes[:, None]).T ** 2 / base)
    own = np.take_along_axis(shares, codes[:, None, None], axis=2)[:, :, 0]
    return np.asarray(((shares**2).sum(axis=2) - 2.0 * own + 1.0).T / base)


def auc_loss(scores: Floats, is_positive: Mask) -> Floats:
    """Return, for each set and positive row, the proportion of other rows ranked above it; ties count one half.

    The mean of a set is 1 - AUC. The scores are those of two classes, and the second one is the positive one.

    Examples
    --------
    >>> auc_loss(np.array([[[0.9]], [[0.1]], [[0.4]], [[0.7]]]), np.array([True, False, False, True]))
    array([[0., 0.]])
    >>> auc_loss(np.array([[[0.2]], [[0.1]], [[0.4]]]), np.array([True, False, False]))
    array([[0.5]])
    """
    margin = (scores[:, :, -1] if scores.shape[2] == 1 else scores[:, :, 1] - scores[:, :, 0]).T
    own, others = margin[:, is_positive, None], margin[:, None, ~is_positive]
    return (others > own).mean(axis=2) + 0.5 * (others == own).mean(axis=2)
