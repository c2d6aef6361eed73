"""SparseFSA: feature selection with annealing, a linear classifier that drops its smallest weights during training.

Barbu, She, Ding, Gramajo: Feature Selection with Annealing for Computer Vision and Big Data Learning, IEEE TPAMI
39(2), 2017; on sparse rows as Wang, Barbu (2021) use it after online screening. Covered: the annealing schedule, the
logistic, Lorenz and Huber losses, the ridge prior, mini-batches; two classes and more.

===========  ======================  =============================================================================
paper        here                    meaning
===========  ======================  =============================================================================
beta         ``weights``             weights of the scaled features, (remaining features, models)
k            `n_features_to_select`  number of features selected at the end
N^iter       `n_epochs`              number of epochs; features are dropped after each
mu           `annealing`             rate at which features are dropped
eta          `learning_rate`         step size, here relative to the curvature of the loss
s            `ridge`                 ridge penalty of the weights
===========  ======================  =============================================================================

With u = y (beta.x + b), y = -1 or +1, and a pass e = 1 .. N over the rows in mini-batches B::

    L(u) = ln(1 + exp(-u))                                                      logistic    (1)
    L(u) = ln(1 + (1 - u)^2) if u < 1, else 0                                   Lorenz      (2)
    L(u) = 1 - u if u < 1 - h, 0 if u > 1 + h, else (1 + h - u)^2 / (4 h)       Huber       (3)
    beta <- beta / (1 + 2 eta s) - eta mean_B w L'(u) y x                                     (4)
    M_e = k + (M - k) max(0, (N - 2 e) / (2 e mu + N)): keep the M_e largest |beta_j|       (5)

Errata and deviations, each with its reason:

* The printed eta = 20 (1 or 0.01 in other programs of the authors) fits their data. Here each feature is centred and
  divided by its largest deviation from the mean, and eta is divided by the curvature of the loss over these rows, so
  that 1 is a suitable step for any data. Sparse rows stay sparse: centring adds the same multiple of the centre to all
  weights in a step (4), so it is stored as one number for each model.
* The ridge is one factor for all weights: a step only updates the weights of stored values.
* The authors' program uses momentum, which would update all weights in each step; it is omitted here.
* Dropped columns are skipped, and removed from the rows once half of them have been dropped.
* Three classes or more: one model for each class against the rest. Features are ranked by the norm of their weights, so
  that all models select the same features.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation.arrays import Array, Floats, Mask, Rows, as_weights
from tamis._validation.labels import as_column, encode_labels
from tamis._validation.parameters import SEED, check_parameters, integer, number, parameter
from tamis._validation.rows import as_rows, checked, reject_nonfinite, validated
from tamis.base import Claims, n_to_select, top_mask
from tamis.base.rows import feature_names
from tamis.base.selector_mixin import SelectorMixin
from tamis.errors import DataError
from tamis.learners.linear import codes_of_margins, shares_of_margins

_LOSSES = {"logistic": 0, "lorenz": 1, "huber": 2}
# Largest second derivative of each loss; Huber's is nonzero in a narrow zone only, so it counts less.
_CURVATURE = (0.25, 2.0, 1.0)
_HUBER_WIDTH = 0.1
_ROUNDING = 1e-10  # a feature with a smaller relative variation is constant
_POWER_ITERATIONS = 10


@njit(strict=True)
def _slope(u: float, loss: int) -> float:
    """Return L'(u)."""
    if loss == 0:
        return -1.0 / (1.0 + math.exp(u)) if u < 700.0 else 0.0  # (1)
    if loss == 1:
        return 2.0 * (u - 1.0) / (1.0 + (u - 1.0) * (u - 1.0)) if u < 1.0 else 0.0  # (2)
    if u < 1.0 - _HUBER_WIDTH:  # (3)
        return -1.0
    return 0.0 if u > 1.0 + _HUBER_WIDTH else (u - 1.0 - _HUBER_WIDTH) / (2.0 * _HUBER_WIDTH)


@njit(strict=True)
def _epoch(
    values: Array, columns: Array, starts: Array, order: Array, batch_size: int,
    inside: Array, model_weights: Array, loss: int, step: float, shrink: float,
    alive: Array, centre: Array, weights: Array, bias: Array,
) -> None:  # fmt: skip
    """Train for one epoch. The weights beta are ``scale * (weights - common * centre)``, also at the end."""
    n_models = weights.shape[1]
    scale, common, offset, length = 1.0, np.zeros(n_models), np.zeros(n_models), 0.0
    for j in range(centre.shape[0]):  # offset = weights . centre
        if alive[j]:
            length += centre[j] * centre[j]
            for c in range(n_models):
                offset[c] += weights[j, c] * centre[j]
    slopes, dots = np.empty((batch_size, n_models)), np.empty(batch_size)
    for first in range(0, order.shape[0], batch_size):
        rows = order[first : first + batch_size]
        for r in range(rows.shape[0]):  # the slopes of all rows of the batch, before any update
            margin, dot = np.zeros(n_models), 0.0
            for i in range(starts[rows[r]], starts[rows[r] + 1]):
                j = columns[i]
                if alive[j]:
                    dot += values[i] * centre[j]
                    for c in range(n_models):
                        margin[c] += values[i] * weights[j, c]
            for c in range(n_models):
                y = 1.0 if inside[rows[r], c] else -1.0
                score = scale * (margin[c] - offset[c] - common[c] * (dot - length)) + bias[c]
                slopes[r, c] = model_weights[rows[r], c] * y * _slope(y * score, loss)
            dots[r] = dot
        scale *= shrink  # (4)
        for r in range(rows.shape[0]):
            for c in range(n_models):
                bias[c] -= step * slopes[r, c]
                slopes[r, c] *= step / scale
                common[c] -= slopes[r, c]
                offset[c] -= slopes[r, c] * dots[r]
            for i in range(starts[rows[r]], starts[rows[r] + 1]):
                j = columns[i]
                if alive[j]:
                    for c in range(n_models):
                        weights[j, c] -= values[i] * slopes[r, c]
        if scale < 1e-9:
            weights *= scale
            common *= scale
            offset *= scale
            scale = 1.0
    for j in range(centre.shape[0]):
        for c in range(n_models):
            weights[j, c] = scale * (weights[j, c] - common[c] * centre[j]) if alive[j] else 0.0


@dataclass(repr=False, eq=False)
class SparseFSA(ThreadSafe, ClassifierMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier that starts with all features and drops those with the smallest weights during training.

    After each epoch, the features with the smallest weights are dropped permanently: many at first, few later. After
    half of the epochs, `n_features_to_select` features remain; the second half only updates their weights. The rows may
    be sparse: an epoch takes time proportional to the number of stored values of the remaining features.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.5
        k: number of features selected at the end, or the fraction of all features, in (0, 1].
    loss : {"logistic", "lorenz", "huber"}, default="logistic"
        Equation (1), (2) or (3). In Lorenz's loss, rows far on the wrong side of the margin have little influence.
    n_epochs : int, default=30
        N: number of epochs (passes over the rows), in [1, 1000000].
    annealing : float, default=10
        mu, in [0, inf): the larger, the more features are dropped after the first epochs.
    learning_rate : float, default=1.0
        eta in units of the inverse curvature of the loss, in (0, inf).
    ridge : float, default=1e-5
        s, in [0, inf): the penalty that shrinks the weights towards zero.
    batch_size : int, default=100
        Number of rows per step.
    scaling : {"max", None}, default="max"
        Divide each feature by its largest deviation from its mean, or use it unscaled. Features are ranked by the
        weights of the scaled features; `coef_` applies to unscaled rows.
    class_weight : {"balanced", None} or dict, default="balanced"
        Whether a class and the rest have equal influence, regardless of the class frequencies; or the weight of a row
        of each class.
    random_state : int, RandomState or None, default=None
        Seed of the order of the rows in each epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features), float64
        Weights, 0 where a feature was dropped; one model for two classes, else one per class against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If rows, labels or weights are invalid; the model is unchanged.

    Notes
    -----
    Memory: a copy of the rows as CSR, and 1 float64 per feature and model.

    References
    ----------
    Barbu, She, Ding, Gramajo (2017). Feature Selection with Annealing for Computer Vision and Big Data Learning. IEEE
    TPAMI 39(2). Equations (1) to (5) of the source file's header.

    Examples
    --------
    Three words of two thousand determine the class:

    >>> import numpy as np, scipy.sparse as sp
    >>> from tamis import SparseFSA
    >>> rng = np.random.default_rng(0)
    >>> X = sp.random_array((1000, 2000), density=0.2, format="csr", rng=rng)
    >>> y = np.where(X[:, [5, 70, 900]] @ [2.0, -2.0, 1.0] > 0.1, "ham", "spam")
    >>> model = SparseFSA(n_features_to_select=3, random_state=0).fit(X, y)
    >>> model.get_support(indices=True)
    array([  5,  70, 900])
    >>> model.score(X, y) > 0.95
    True
    """

    claims = Claims(sparse_time=True, copies_differ="the step of the gradient; batches count rows")
    _shapes = """
        n_features_in_ (=j)  classes_ (c) labels  coef_ (c-(c==2), j) float in [-1e150, 1e150]
        intercept_ (c-(c==2)) float in [-1e150, 1e150]  _support (j) bool
    """

    n_features_to_select: int | float = parameter(number("(0, inf)"), default=0.5)
    _: KW_ONLY
    loss: str = parameter(*_LOSSES, default="logistic")
    n_epochs: int = parameter(integer("[1, 1000000]"), default=30)
    annealing: float = parameter(number("[0, inf)"), default=10.0)
    learning_rate: float = parameter(number("(0, inf)"), default=1.0)
    ridge: float = parameter(number("[0, inf)"), default=1e-5)
    batch_size: int = parameter(integer("[1, inf)"), default=100)
    scaling: str | None = parameter("max", None, default="max")
    class_weight: str | dict[Any, float] | None = parameter(dict, "balanced", None, default="balanced")
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    classes_: Array = field(init=False)
    _support: Mask = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Reset the model, then fit it to the rows. If it raises, the model is unchanged.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels of any type, two or more.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, names = as_rows(X)
        y = as_column(y, X.shape[0], type(self).__name__)
        weight = as_weights(sample_weight, X.shape[0], some=True)
        reject_nonfinite(X, names)
        n_features = X.shape[1]
        n_kept = n_to_select(self.n_features_to_select, n_features)
        if weight is None:
            weight = np.ones(X.shape[0])
        elif not weight.all():
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        codes, classes = encode_labels(y, np.array([]))
        if len(classes) < 2:
            raise DataError(
                f"SparseFSA needs two classes or more, but y contains one class, {classes.tolist()[0]!r}:"
                " pass more rows."
            )
        if isinstance(self.class_weight, dict):
            weight = weight * compute_class_weight(self.class_weight, classes=classes, y=y)[codes]
        weight = weight / weight.mean()
        rows, centre, mean, scale = _scale_rows(X, weight, self.scaling == "max")
        left, weights, bias = self._anneal(
            rows, centre, _class_indicators(codes, len(classes)), weight, n_kept
        )
        coef = np.zeros((weights.shape[1], n_features))
        coef[:, left] = (weights / scale[left, None]).T
        learned = {
            "classes_": classes, "n_features_in_": n_features, "coef_": coef, "intercept_": bias - coef @ mean,
            "_support": np.isin(np.arange(n_features), left),
        }  # fmt: skip
        if names is not None:
            learned["feature_names_in_"] = np.array(names, dtype=object)
        atomically(self, self._set_fitted_state, learned, from_scratch=True)
        return self

    def _set_fitted_state(self, learned: dict[str, Any]) -> None:
        """Replace the fitted attributes."""
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(learned)

    def _anneal(
        self, rows: Rows, centre: Array, inside: Array, row_weight: Array, n_kept: int
    ) -> tuple[Array, Array, Array]:
        """Return the remaining features, their weights (n_left, n_models) and the models' intercepts."""
        random, loss = check_random_state(self.random_state), _LOSSES[self.loss]
        model_weights = _model_row_weights(inside, row_weight, self.class_weight == "balanced")
        variance = _means(rows.multiply(rows), row_weight) - centre * centre
        top = _largest_eigenvalue(rows, centre, row_weight)
        n_features, n_models = rows.shape[1], inside.shape[1]
        left, alive = np.arange(n_features), np.ones(n_features, dtype=bool)
        weights, bias = np.zeros((n_features, n_models)), np.zeros(n_models)
        for epoch in range(1, self.n_epochs + 1):
            spread = float(variance[alive].sum())
            step = self.learning_rate / _CURVATURE[loss] / (1.0 + min(top, spread) + spread / self.batch_size)
            size, shrink = min(self.batch_size, rows.shape[0]), 1.0 / (1.0 + 2.0 * step * self.ridge)
            if shrink < 1e-300:
                name = max("learning_rate", "ridge", key=lambda name: getattr(self, name))
                raise DataError(f"The weights overflow at {name}={getattr(self, name)}: choose a lower one.")
            _epoch(
                rows.data, rows.indices, rows.indptr, random.permutation(rows.shape[0]), size, inside, model_weights,
                loss, step / size, shrink, alive, centre, weights, bias,
            )  # fmt: skip
            if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
                raise DataError(
                    f"The weights overflow at learning_rate={self.learning_rate}: choose a lower one."
                )
            n_left = _schedule(epoch, self.n_epochs, float(self.annealing), n_kept, n_features)
            sizes = np.where(alive, np.linalg.norm(weights, axis=1), -1.0)
            alive = top_mask(sizes, n_left)
            weights[~alive] = 0.0
            if 2 * np.count_nonzero(alive) < len(alive):
                rows, left, centre, variance = rows[:, alive], left[alive], centre[alive], variance[alive]
                weights, alive = weights[alive], np.ones(np.count_nonzero(alive), dtype=bool)
        return left[alive], weights[alive], bias

    def decision_function(self, X: Any) -> Floats:
        """Return the margin of each row: (n_rows,) for two classes, else (n_rows, n_classes).

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        X = validated(self, X)
        reject_nonfinite(X, feature_names(self))
        margins: Floats = X @ self.coef_.T + self.intercept_
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def transform(self, X: Any) -> Any:
        """Return the selected columns.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        """
        return super().transform(checked(X))

    def predict(self, X: Any) -> Array:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        """
        codes = codes_of_margins(self.decision_function(X))  # raises if not fitted
        return np.asarray(self.classes_[codes])

    @available_if(lambda self: self.loss == "logistic")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); for the logistic loss only.

        With the default `class_weight="balanced"`, the probabilities are those of a population in which all classes
        are equally frequent.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        """
        return shares_of_margins(self.decision_function(X))

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self._support

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # half of two columns is not enough for three classes
        return tags


def _scale_rows(X: Rows, row_weight: Array, scaled: bool) -> tuple[Rows, Array, Array, Array]:
    """Return the scaled rows as CSR, the remaining offset, and the mean and scale of each feature.

    Dense rows are centred here; sparse rows are not, and their offset is handled algebraically.
    """
    mean = _means(X, row_weight)
    if sp.issparse(X):
        high, low = (end.toarray().ravel() for end in (X.max(axis=0), X.min(axis=0)))
        rows = sp.csr_matrix((X.data.astype(np.float64), X.indices, X.indptr), X.shape)
    else:
        high, low = X.max(axis=0), X.min(axis=0)
        rows = sp.csr_matrix(X - mean)
    scale = np.maximum(high - mean, mean - low) if scaled else np.ones(len(mean))
    # A constant feature, or one whose coefficient would overflow.
    scale[scale <= np.maximum(_ROUNDING * np.maximum(np.abs(high), np.abs(low)), 1e-300)] = 1.0
    scale[high == low] = np.inf  # the rounded mean of a constant is not exactly its value
    rows.data /= scale[rows.indices]
    return rows, mean / scale if sp.issparse(X) else np.zeros(len(mean)), mean, scale


def _means(X: Rows, row_weight: Array) -> Floats:
    """Return the weighted mean of each column; the weights have mean 1."""
    return np.asarray(X.T @ row_weight).ravel() / len(row_weight)


def _class_indicators(codes: Array, n_classes: int) -> Mask:
    """Return whether each row is in the class of each model, shape (n_rows, n_models); for two classes, the second."""
    return codes[:, None] == (np.arange(n_classes) if n_classes > 2 else [1])


def _model_row_weights(inside: Array, row_weight: Array, balanced: bool) -> Floats:
    """Return the weight of each row in each model, shape (n_rows, n_models)."""
    model_weights = np.repeat(row_weight[:, None], inside.shape[1], axis=1)
    if balanced:
        for c in range(inside.shape[1]):
            for part in (inside[:, c], ~inside[:, c]):
                model_weights[part, c] *= len(row_weight) / (2.0 * row_weight[part].sum())
    return model_weights


def _largest_eigenvalue(rows: Rows, centre: Array, row_weight: Array) -> float:
    """Return (a little less than) the largest eigenvalue of the rows' covariance, by the power method."""
    # A generic starting vector, unlikely to be orthogonal to the eigenvector.
    direction = np.cos(np.arange(1.0, rows.shape[1] + 1.0))
    length = 0.0
    for _ in range(_POWER_ITERATIONS):
        direction /= np.linalg.norm(direction)
        along = row_weight * (rows @ direction - centre @ direction)
        direction = (rows.T @ along - centre * along.sum()) / rows.shape[0]
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            break
    return length


def _schedule(epoch: int, n_epochs: int, annealing: float, n_kept: int, n_features: int) -> int:
    """Return the number of features that remain after an epoch: equation (5).

    >>> [_schedule(e, 10, 2.0, 100, 1000) for e in range(1, 7)]
    [614, 400, 264, 169, 100, 100]
    """
    share = max(0.0, (n_epochs - 2 * epoch) / (2 * epoch * annealing + n_epochs))
    return n_kept + round((n_features - n_kept) * share)
