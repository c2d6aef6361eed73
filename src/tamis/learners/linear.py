"""Linear classifiers by stochastic gradient descent: the Perceptron, logistic regression, a support vector machine.

Rosenblatt: The perceptron, Psychological Review 65(6), 1958; Bottou: Stochastic gradient descent tricks, 2012, for (3)
and (4). Steps, learning rates and the order of the rows are those of scikit-learn 1.9's ``SGDClassifier.partial_fit``.

=========  ================  ====================================================
paper      here              meaning
=========  ================  ====================================================
w, b       `coef_`           weights and intercept of each model
lambda     `alpha`           strength of the L2 penalty
gamma_t    `eta`             step size at row t = 1, 2, ...
=========  ================  ====================================================

With p = w.x + b, y = -1 or +1, a row of weight v and the penalty lambda (0 without one)::

    L(y, p) = max(0, -y p)                           Perceptron                              (1a)
    L(y, p) = max(0, 1 - y p)                        support vector machine                  (1b)
    L(y, p) = ln(1 + exp(-y p))                      logistic regression                     (1c)
    w <- max(0, 1 - gamma_t lambda) w - gamma_t v L'(y, p) x,  b <- b - gamma_t v L'(y, p)   (2)
    gamma_t = eta0;  eta0 / t^power_t;  1 / (lambda (t0 + t - 1)), t0 = lambda^(-3/4)        (3)
    mean of w after row t >= a: m <- m + (w - m) / (t - a + 1)                               (4)

Deviations, each with its reason:

* Three classes or more: one model for each class against the rest.
* scikit-learn averages within one call: its next `partial_fit` starts with an intercept of 0 (two classes), or with the
  averaged one (more). Here both are kept between calls.
* w is stored as scale times an array, and its mean (4) as an array plus a multiple of w, so that the time per row is
  proportional to its stored values. Sparse rows change the intercept by 0.01 of a step (2), as in scikit-learn: its
  column is not sparse.
* L' is limited to 1e12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import scipy.special
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomically
from tamis._kernels import njit
from tamis._validation.arrays import Array, Floats, Indices, Ints, Rows, as_weights
from tamis._validation.labels import as_column, encode_labels
from tamis._validation.parameters import check_parameters, integer, number, parameter, parameters
from tamis._validation.rows import has_rows, reject_nonfinite
from tamis.base.declarations import Claims
from tamis.errors import DataError
from tamis.learners.dense_rows import LARGEST, SHARED_DOCS, DenseRowClassifier

_PERCEPTRON, _HINGE, _LOGISTIC = 0, 1, 2
_RATES = {"constant": 0, "invscaling": 1, "optimal": 2}
_STEEPEST = 1e12
_SMALLEST_SCALE = 1e-9
_SPARSE_INTERCEPT = 0.01
_LARGEST_SEED = 2**31 - 1
_OVERFLOW = "The weights overflow: scale the columns, for example to a standard deviation of 1."

_SHARED_DOCS = SHARED_DOCS | {
    "steps": """
    penalty : {"l2", None}, default="l2"
        Whether the weights shrink with each row (2).
    alpha : float, default=1e-4
        lambda, in (0, inf): strength of the penalty, and of the step size "optimal".
    learning_rate : {"constant", "invscaling", "optimal"}, default="optimal"
        Schedule of the step size (3). A decreasing one does not follow concept drift.
    eta0 : float, default=0.01
        Step size, or that of the first row, in (0, inf); not used by "optimal".
    power_t : float, default=0.5
        Exponent of "invscaling".
    """,
    "order": """
    average : bool or int, default=False
        Whether `coef_` is the mean of the weights after each row (4): of all rows, or from this row on, counted from 1.
    fit_intercept : bool, default=True
    shuffle : bool, default=True
        Whether a batch is learned in a random order, as in scikit-learn. False: in the order of its rows; then a batch
        equals its rows one at a time, if the classes are declared.
    random_state : int, default=0
        Seed of this order, which is the same for all batches of one size.
    """,
    "coefficients": """
    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features), float64
        Weights; one model for two classes, else one per class against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    """,
    "notes": """
    DataError
        If a batch is invalid; the model is left unchanged.

    Notes
    -----
    A row costs O(stored values times models). Memory: 8 bytes per feature and model, 16 with averages, and a copy
    during an update. A missing value (NaN) is rejected.
    """,
}

# State:
#   _coef_, _intercept_    (M, J) and (M,) float64   w and b of each model
#   _mean_, _mean_of_b_    (M, J) and (M,) float64   m of each, or no rows without averages


@njit(strict=True)
def _slope(y: float, p: float, loss: int) -> float:
    """Return L'(y, p)."""
    if loss == 2:  # (1c)
        if p <= -37.0:
            return math.exp(p) - (y > 0.0)
        lost = math.exp(-p)
        return -lost / (1.0 + lost) if y > 0.0 else 1.0 / (1.0 + lost)
    return -y if y * p <= loss else 0.0  # (1a), (1b)


@njit(strict=True)
def _dot(w: Array, x: Array, columns: Array) -> float:
    """Return w.x of a row; without `columns` it is dense."""
    total = 0.0
    if columns.shape[0] > 0:
        for k in range(x.shape[0]):
            total += w[columns[k]] * x[k]
    else:
        for k in range(x.shape[0]):
            total += w[k] * x[k]
    return total


@njit(strict=True)
def _add(w: Array, x: Array, columns: Array, factor: float) -> None:
    """Add a multiple of a row to w."""
    if columns.shape[0] > 0:
        for k in range(x.shape[0]):
            w[columns[k]] += x[k] * factor
    else:
        for k in range(x.shape[0]):
            w[k] += x[k] * factor


@njit(strict=True)
def _multiply_out(w: Array, mean: Array, scale: float, share: float, divisor: float) -> bool:
    """Apply the factors of w and of its mean, if there is one; return whether all are finite."""
    zero = 0.0
    for j in range(mean.shape[0]):
        mean[j] = (mean[j] + share * w[j]) / divisor
        zero += 0.0 * mean[j]
    for j in range(w.shape[0]):
        w[j] *= scale
        zero += 0.0 * w[j]
    return zero == 0.0


@njit(strict=True)
def _eta(t: float, rate: int, eta0: float, power_t: float, alpha: float) -> float:
    """Return gamma_t (3)."""
    if rate == 0:
        return eta0
    if rate == 1:
        return eta0 / math.pow(t, power_t)
    first = 1.0 / (math.sqrt(1.0 / math.sqrt(alpha)) * alpha)
    place = first + t - 1.0
    return 1.0 / (alpha * (place if place > 0.0 else first))  # a large lambda's t0 is lost in the sum


@njit(strict=True)
def _train(
    values: Array, columns: Array, starts: Array, orders: Array, codes: Array, weight: Array, loss: int, rate: int,
    eta0: float, power_t: float, alpha: float, penalty: float, step_of_b: float, average: int, first: float,
    coef: Array, intercept: Array, mean: Array, mean_of_b: Array,
) -> bool:  # fmt: skip
    """Learn from the rows once; return whether all weights are finite.

    The weights are ``scale * w``, and their mean is ``(m + share * w) / divisor``.
    """
    is_finite = True
    for m in range(coef.shape[0]):
        w, b, scale, share, divisor = coef[m], intercept[m], 1.0, 0.0, 1.0
        mean_of_w = mean[m] if average > 0 else w[:0]
        positive = m if coef.shape[0] > 1 else 1
        for r in range(codes.shape[0]):
            i, t = orders[m, r], first + r
            x, js = values[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]
            p = _dot(w, x, js) * scale + b
            eta = _eta(t, rate, eta0, power_t, alpha)
            slope = _slope(1.0 if codes[i] == positive else -1.0, p, loss)
            step = -eta * min(max(slope, -_STEEPEST), _STEEPEST) * weight[i]
            if penalty > 0.0:
                scale *= max(0.0, 1.0 - eta * penalty)
                if scale < _SMALLEST_SCALE:
                    _multiply_out(w, mean_of_w, scale, share, divisor)
                    scale, share, divisor = 1.0, 0.0, 1.0
            if step != 0.0:
                _add(w, x, js, step / scale)  # (2)
                b += step * step_of_b
            if 0 < average <= t:
                if step != 0.0:
                    _add(mean_of_w, x, js, share * (-step / scale))
                n_averaged = t - average + 1.0
                if n_averaged > 1.0:
                    divisor /= 1.0 - 1.0 / n_averaged
                share += divisor * scale / n_averaged  # (4)
                mean_of_b[m] += (b - mean_of_b[m]) / n_averaged
        intercept[m] = b
        is_finite &= _multiply_out(w, mean_of_w, scale, share, divisor) and 0.0 * b == 0.0
    return is_finite


@njit(strict=True)
def _predict_and_train(
    rows: Array, subsets: Array, is_narrow: bool, codes: Array, orders: Array, loss: int, rate: int, eta0: float,
    power_t: float, alpha: float, penalty: float, step_of_b: float, first: float, coef: Array, intercept: Array,
    margins: Array,
) -> bool:  # fmt: skip
    """Predict and train with several classifiers, each on a subset of the columns."""
    n_rows, size = rows.shape[0], subsets.shape[1]
    is_finite, nothing = True, np.empty((0, 0))
    x, columns = np.empty(n_rows * size), np.empty(0 if is_narrow else n_rows * size, np.int64)
    weight, starts = np.ones(n_rows), np.arange(n_rows + 1) * size
    for d in range(subsets.shape[0]):
        for i in range(n_rows):
            begin = i * size
            for k in range(size):
                x[begin + k] = rows[i, subsets[d, k]]
                if not is_narrow:
                    columns[begin + k] = subsets[d, k]
            for m in range(coef.shape[1]):
                p = _dot(coef[d, m], x[begin : begin + size], columns[begin : begin + size])
                margins[d, i, m] = p + intercept[d, m]
        is_finite &= _train(
            x, columns, starts, orders, codes, weight, loss, rate, eta0, power_t, alpha, penalty, step_of_b, 0, first,
            coef[d], intercept[d], nothing, weight,
        )  # fmt: skip
    return is_finite


@lru_cache(maxsize=16)
def _orders(seed: int | None, n_models: int, n_rows: int) -> Ints:
    """Return the order in which each model learns the rows, as scikit-learn shuffles them; None: that of the rows."""
    orders = np.tile(np.arange(n_rows), (n_models, 1))
    if seed is None or n_rows == 1:
        return orders
    seeds = [seed]
    if n_models > 1:
        seeds = np.random.RandomState(seed).randint(_LARGEST_SEED, size=n_models).tolist()
    for order, own in zip(orders, seeds, strict=True):
        random = np.random.RandomState(own)
        random.randint(1, _LARGEST_SEED)  # drawn and not used by scikit-learn's data set
        _shuffle(order, random.randint(_LARGEST_SEED))
    return orders


@njit(strict=True)
def _shuffle(order: Array, seed: int) -> None:
    """Shuffle in place (Fisher, Yates), with a 32-bit xorshift."""
    state = seed if seed > 0 else 1
    for i in range(order.shape[0] - 1):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        j = i + (state & 0x7FFFFFFF) % (order.shape[0] - i)
        order[i], order[j] = order[j], order[i]


def codes_of_margins(margins: Floats) -> Indices:
    """Return the class of each row from its margin, or from those of each class; among equal ones the first."""
    return (margins > 0.0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)


def shares_of_margins(margins: Floats) -> Floats:
    """Return the probability of each class; of three or more those against the rest, divided by their sum."""
    inside = scipy.special.expit(margins)
    if inside.ndim == 1:
        return np.column_stack([1.0 - inside, inside])
    inside = np.maximum(inside, np.finfo(np.float64).tiny)
    return inside / inside.sum(axis=1, keepdims=True)


@dataclass(repr=False, eq=False, kw_only=True)
class _LinearClassifier(DenseRowClassifier):
    """Base class of the losses: validation, the state, and one pass over each batch."""

    adapts_itself = False
    wants_scale = True
    # a batch is shuffled
    claims = Claims(sparse_time=True, copies_differ="the step of the gradient")
    _loss = _PERCEPTRON
    _shared_docs = _SHARED_DOCS

    _shapes = """
        n_features_in_ (=j)  classes_ (c) labels  _coef_ (c-(c==2), j) float in [-1e300, 1e300] fill 0
        _intercept_ (c-(c==2)) float in [-1e300, 1e300]  _mean_ (a, j) float in [-1e300, 1e300] fill 0
        _mean_of_b_ (a) float in [-1e300, 1e300]
    """

    _allowed = parameters(learning_rate=tuple(_RATES), power_t=number("(-inf, inf)"))

    penalty: str | None = parameter("l2", None, default=None)
    alpha: float = parameter(number("(0, inf)"), default=1e-4)
    eta0: float = parameter(number("(0, inf)"), default=1.0)
    average: bool | int = parameter(bool, integer("[0, inf)"), default=False)
    fit_intercept: bool = parameter(bool, default=True)
    shuffle: bool = parameter(bool, default=True)
    random_state: int = parameter(integer("[0, inf)"), default=0)

    learning_rate, power_t = "constant", 0.5  # no parameters of a perceptron

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from the rows once.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Finite.
        y : array-like of shape (n_rows,)
            Labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative: factors of the steps.

        Returns
        -------
        self
        """
        return self._fit_weighted(X, y, None, sample_weight, forget=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a batch of rows. If it raises, the model is unchanged.

        Until two classes are known, rows are counted, but the weights remain 0. A new label adds a class; when a third
        class is added, the first two start with the weights of the model that separated them.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Finite.
        y : array-like of shape (n_rows,)
            Labels of any type.
        classes : array-like, optional
            Labels known in advance.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative: factors of the steps.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the rows, labels or weights are invalid, or the weights of the model would overflow.
        """
        return self._fit_weighted(X, y, classes, sample_weight, forget=False) if has_rows(X) else self

    def _fit_weighted(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, forget: bool) -> Self:
        check_parameters(self)
        begins = forget or not hasattr(self, "n_seen_")
        # Arrays of the state are replaced, never modified.
        atomically(self, self._update, X, y, classes, sample_weight, begins, from_scratch=True)
        return self

    def _update(self, X: Any, y: Any, classes: Any, sample_weight: Any, begins: bool) -> None:
        if begins:
            self._forget()
        rows = self._check_range(self._rows(X, begins))
        y = as_column(y, rows.shape[0], type(self).__name__)
        weight = as_weights(sample_weight, rows.shape[0], some=True)
        if weight is not None and not weight.all():
            rows, y, weight = rows[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
        if begins:
            self._start(rows.shape[1], classes)
        codes, known = encode_labels(y, self.classes_)
        if len(known) != len(self.classes_):
            self._grow(len(known))
            self.classes_ = known
        if len(known) > 1:
            self._learn(rows, codes, weight)
        self.n_seen_ += len(codes)

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        n_models = len(self.classes_) - (len(self.classes_) == 2)
        self._coef_, self._intercept_ = np.zeros((n_models, n_features)), np.zeros(n_models)
        self._mean_, self._mean_of_b_ = np.zeros((0, n_features)), np.zeros(0)

    def _grow(self, n_classes: int) -> None:
        n_before = len(self.classes_)

        def append_models(array: Array) -> Array:
            if n_before == 2 and n_classes > 2 and len(array):
                array = np.concatenate([-array, array])
            n_new = n_classes - (n_classes == 2) - len(array)
            return np.concatenate([array, np.zeros((n_new, *array.shape[1:]))])

        self._coef_, self._intercept_ = append_models(self._coef_), append_models(self._intercept_)
        if len(self._mean_):
            self._mean_, self._mean_of_b_ = append_models(self._mean_), append_models(self._mean_of_b_)

    def _learn(self, rows: Rows, codes: Ints, weight: Array | None = None) -> None:
        n_rows, n_features = rows.shape
        is_sparse = sp.issparse(rows)
        weight = np.ones(n_rows) if weight is None else weight
        coef, intercept, average = self._coef_.copy(), self._intercept_.copy(), int(self.average)
        mean, mean_of_b = self._mean_.copy(), self._mean_of_b_.copy()
        if average and len(mean) != len(coef):  # the first batch with averages
            mean, mean_of_b = np.zeros_like(coef), np.zeros_like(intercept)
        values, columns = (
            (rows.data, rows.indices) if is_sparse else (rows.reshape(-1), np.empty(0, np.int32))
        )
        starts = rows.indptr if is_sparse else np.arange(0, rows.size + 1, n_features, dtype=np.int32)
        step_of_b = _SPARSE_INTERCEPT if is_sparse else 1.0
        is_finite = _train(
            values, columns, starts, self._order(n_rows), codes, weight, *self._options(step_of_b), average,
            self.n_seen_ + 1.0, coef, intercept, mean, mean_of_b,
        )  # fmt: skip
        if not is_finite:
            raise DataError(_OVERFLOW)
        self._coef_, self._intercept_, self._mean_, self._mean_of_b_ = coef, intercept, mean, mean_of_b

    def _order(self, n_rows: int) -> Ints:
        return _orders(int(self.random_state) if self.shuffle else None, len(self._coef_), n_rows)

    def _options(self, step_of_b: float) -> tuple[int, int, float, float, float, float, float]:
        """Return the parameters in the order of the kernels."""
        alpha = float(self.alpha)
        return (
            self._loss, _RATES[self.learning_rate], float(self.eta0), float(self.power_t), alpha,
            alpha if self.penalty == "l2" else 0.0, step_of_b if self.fit_intercept else 0.0,
        )  # fmt: skip

    def _check_range(self, rows: Any) -> Any:
        """Return the rows; raise for NaN, infinity and values whose squares overflow."""
        values = rows.data if sp.issparse(rows) else rows
        if np.abs(values).max(initial=0.0) <= LARGEST:
            return rows
        reject_nonfinite(rows, self._names())
        return super()._check_range(rows.toarray() if sp.issparse(rows) else rows)

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def _is_averaged(self) -> bool:
        return bool(self.average) and len(self._mean_) > 0 and int(self.average) <= self.n_seen_

    @property
    def coef_(self) -> Floats:
        """Weights of the features, one model for two classes, else one per class against the rest."""
        check_is_fitted(self)
        return self._mean_ if self._is_averaged else self._coef_

    @property
    def intercept_(self) -> Floats:
        """Intercept of each model."""
        check_is_fitted(self)
        return self._mean_of_b_ if self._is_averaged else self._intercept_

    def decision_function(self, X: Any) -> Floats:
        """Return p of each row: (n_rows,) for two classes, else (n_rows, n_classes).

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Finite.
        """
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        rows = self._check_range(self._rows(X, False))
        values: Floats = rows @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_with_scores(self, X: Any) -> tuple[Array, Floats]:
        """Return the label of each row, and p as in :meth:`decision_function`.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Finite.
        """
        scores = self.decision_function(X)
        return self.classes_[codes_of_margins(scores)], scores

    def predict(self, X: Any) -> Array:
        """Return the label of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Finite.

        Returns
        -------
        ndarray of shape (n_rows,)
            Among classes of equal p the first.
        """
        codes = codes_of_margins(self.decision_function(X))  # raises if not fitted
        return np.asarray(self.classes_[codes])

    @available_if(lambda self: self._loss == _LOGISTIC)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); logistic regression only.

        With three classes or more, the probabilities of each class against the rest, divided by their sum.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Finite.
        """
        return shares_of_margins(self.decision_function(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = True
        return tags


class Perceptron(_LinearClassifier):
    """A Perceptron: a linear classifier that updates its weights after each error.

    Its coefficients are those of scikit-learn's ``Perceptron`` after the same calls of `partial_fit`.

    Parameters
    ----------
    penalty : {"l2", None}, default=None
        Whether the weights shrink with each row (2).
    alpha : float, default=1e-4
        lambda, in (0, inf): strength of the penalty.
    eta0 : float, default=1.0
        Step size, in (0, inf).
    %(order)s

    %(coefficients)s
    %(fitted)s
    %(notes)s

    References
    ----------
    Rosenblatt: The perceptron, Psychological Review 65(6), 1958.
    Bottou: Stochastic gradient descent tricks, 2012. Equations (1) to (4) of the source file's header.

    Examples
    --------
    The sum of two of five features determines the class:

    >>> import numpy as np
    >>> from tamis import Perceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = np.where(X[:, 1] + X[:, 3] > 0, "high", "low")
    >>> model = Perceptron(average=True)
    >>> for batch in range(0, 1000, 100):
    ...     model = model.partial_fit(X[batch : batch + 100], y[batch : batch + 100], classes=["low", "high"])
    >>> model.score(X[1000:], y[1000:]) > 0.93, sorted(np.abs(model.coef_[0]).argsort()[-2:].tolist())
    (True, [1, 3])
    """


@dataclass(repr=False, eq=False, kw_only=True)
class _SGDClassifier(_LinearClassifier):
    """Base class of logistic regression and the support vector machine: their parameters."""

    penalty: str | None = "l2"
    learning_rate: str = "optimal"
    eta0: float = 0.01
    power_t: float = 0.5


class SGDLogisticRegression(_SGDClassifier):
    """Logistic regression by stochastic gradient descent.

    Its coefficients are those of scikit-learn's ``SGDClassifier("log_loss")`` after the same calls of `partial_fit`.

    Parameters
    ----------
    %(steps)s
    %(order)s

    %(coefficients)s
    %(fitted)s
    %(notes)s

    References
    ----------
    Cox: The regression analysis of binary sequences, Journal of the Royal Statistical Society B 20(2), 1958.
    Bottou: Stochastic gradient descent tricks, 2012. Equations (1) to (4) of the source file's header.

    Examples
    --------
    The sum of two of five features determines the class:

    >>> import numpy as np
    >>> from tamis import SGDLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = np.where(X[:, 1] + X[:, 3] > 0, "high", "low")
    >>> model = SGDLogisticRegression()
    >>> for batch in range(0, 1000, 100):
    ...     model = model.partial_fit(X[batch : batch + 100], y[batch : batch + 100], classes=["low", "high"])
    >>> model.score(X[1000:], y[1000:]) > 0.93, sorted(np.abs(model.coef_[0]).argsort()[-2:].tolist())
    (True, [1, 3])
    """

    _loss = _LOGISTIC


class SGDLinearSVM(_SGDClassifier):
    """A linear support vector machine by stochastic gradient descent.

    Its coefficients are those of scikit-learn's ``SGDClassifier("hinge")`` after the same calls of `partial_fit`.

    Parameters
    ----------
    %(steps)s
    %(order)s

    %(coefficients)s
    %(fitted)s
    %(notes)s

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Cotter: Pegasos, Mathematical Programming 127(1), 2011.
    Bottou: Stochastic gradient descent tricks, 2012. Equations (1) to (4) of the source file's header.

    Examples
    --------
    The sum of two of five features determines the class:

    >>> import numpy as np
    >>> from tamis import SGDLinearSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = np.where(X[:, 1] + X[:, 3] > 0, "high", "low")
    >>> model = SGDLinearSVM()
    >>> for batch in range(0, 1000, 100):
    ...     model = model.partial_fit(X[batch : batch + 100], y[batch : batch + 100], classes=["low", "high"])
    >>> model.score(X[1000:], y[1000:]) > 0.93, sorted(np.abs(model.coef_[0]).argsort()[-2:].tolist())
    (True, [1, 3])
    """

    _loss = _HINGE


def are_alike(models: list[Any]) -> bool:
    """Return whether models are linear classifiers in the same state except for their weights, and not averaged."""
    first = models[0]
    return isinstance(first, _LinearClassifier) and all(
        type(model) is type(first)
        and model.n_seen_ == first.n_seen_
        and model._coef_.shape == first._coef_.shape
        and not model.average
        for model in models
    )


def predict_and_train(models: list[Any], rows: Array, subsets: Indices, codes: Ints) -> list[Floats]:
    """Test several classifiers on a batch, then train them with it, each on its own subset of the columns.

    The batch is validated once, and processed by one kernel. The result is that of calls of `decision_function` and
    `partial_fit`, up to rounding.

    Parameters
    ----------
    models : list of Perceptron, SGDLogisticRegression or SGDLinearSVM
        Clones for which :func:`are_alike` is true, fitted to their subset of the columns or to all of them.
    rows : ndarray of shape (n_rows, n_features), float64, C-contiguous
    subsets : ndarray of shape (n_models, size), int
        Columns of each model; the others count as 0.
    codes : ndarray of shape (n_rows,), int64
        Positions of the labels in `classes_`.

    Returns
    -------
    list of ndarray of shape (n_rows,) or (n_rows, n_classes)
        p of each model before it learned.

    Raises
    ------
    DataError
        If the rows cannot be learned from; the models are left unchanged.

    Examples
    --------
    >>> X, codes = np.array([[1.0, 9.0], [-1.0, 9.0]]), np.array([1, 0])
    >>> models = [Perceptron().partial_fit(X[:, [j]], codes) for j in (0, 1)]
    >>> expected = [models[j].decision_function(X[:, [j]]).tolist() for j in (0, 1)]
    >>> [one.tolist() for one in predict_and_train(models, X, np.array([[0], [1]]), codes)] == expected
    True
    """
    first: _LinearClassifier = models[0]
    first._check_range(rows)
    coef = np.stack([model._coef_ for model in models])
    intercept = np.stack([model._intercept_ for model in models])
    margins = np.empty((len(models), len(rows), coef.shape[1]))
    is_finite = _predict_and_train(
        rows, subsets, coef.shape[2] < rows.shape[1], codes, first._order(len(rows)), *first._options(1.0),
        first.n_seen_ + 1.0, coef, intercept, margins,
    )  # fmt: skip
    if not is_finite:
        raise DataError(_OVERFLOW)
    for model, weights, b in zip(models, coef, intercept, strict=True):
        model._coef_, model._intercept_ = weights, b
        model.n_seen_ += len(rows)
    return [one[:, 0] if coef.shape[1] == 1 else one for one in margins]
