"""Grafting: a feature enters a lasso if it lowers the loss faster than the penalty rises; it leaves at a weight of 0.

Perkins, Theiler: Online Feature Selection using Grafting, ICML 2003; Perkins, Lacker, Theiler: Grafting: Fast,
Incremental Feature Selection by Gradient Descent in Function Space, JMLR 3, 2003. Covered: the online algorithm,
where each feature comes once, for the binomial negative log likelihood and for squared errors.

==========  ===============  ======================================================================================
paper       here             meaning
==========  ===============  ======================================================================================
lambda      ``threshold_``   penalty per unit of weight; `penalty`, or chosen by `alpha`
w_j         ``weights_``     weight of a feature, per standard deviation of it
p(x)        ``_eta``         the model's output for each row
==========  ===============  ======================================================================================

With z_j a feature with mean 0 and variance 1 over the rows, the model minimises over b and w::

    C = mean_i loss(y_i, b + sum_j w_j z_ij) + lambda sum_j |w_j|                                      (1)
    loss = log(1 + exp(-y eta)), y = -1 or +1;   or   (y - eta)^2 / 2, y in standard deviations

A new feature has a weight of 0. It lowers C if the slope of the mean loss is steeper than the penalty::

    | mean_i d loss_i / d eta_i  z_ij | > lambda                                                       (2)

It then enters, C is minimised over all selected features, and those whose weight becomes 0 are removed for good. C is
minimised by coordinate descent (Friedman, Hastie, Tibshirani, J. Stat. Softw. 33, 2010), started at the last minimum.
With g_j the slope in (2), and c the bound on the curvature of the loss (1, or 1 / 4 for classes)::

    w_j <- S(w_j - g_j / c, lambda / c),   S(a, t) = sign(a) max(|a| - t, 0)                           (3)

Errata and deviations, each with its reason:

* Features are scaled to variance 1, since with a common lambda a feature of larger scale would enter more easily.
* The papers choose lambda by cross-validation, which requires held-out rows. By default, `penalty` is the slope that an
  irrelevant feature exceeds with probability `alpha` before any feature is selected.
* The intercept is not penalised, and the l0 and l2 terms are omitted.
* The slope of a copy of a selected feature is exactly lambda; (2) therefore requires a slope larger by 1 in 100,000.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Array, Floats
from tamis._validation.parameters import number, parameter
from tamis.base import ColumnSelector, Inputs
from tamis.base.trace import ACCEPTED, CONSTANT, Verdicts
from tamis.columns.glm import check_not_constant
from tamis.columns.sequential import check_two_classes
from tamis.errors import DataError

# State, for n rows and q features selected:
#   _target, _share  (n,) float64     the target: in standard deviations, or 0 and 1; the rows' shares of the weight
#   _eta             (n,) float64     output of the model
#   _negative_gradient  (n,) float64  minus the slope of each row's loss, times its share
#   _columns         (q, n) float64   the features, mean 0 and variance 1
#   _weights         (q,) float64     w
#   _places          tuple of int     their offers

_SLACK = 1e-5
_EXACT = 1e-7  # tolerance of the slopes at the minimum, as a fraction of lambda
_SWEEPS = 20_000


@njit(strict=True)
def _standardize(x: Array, share: Array, z: Array) -> bool:
    """Write x with mean 0 and variance 1 over the rows of positive weight into z; False if it is constant there."""
    top, low, high = 0.0, math.inf, -math.inf
    for i in range(x.shape[0]):
        if share[i] > 0.0:
            top, low, high = max(top, abs(x[i])), min(low, x[i]), max(high, x[i])
    if not low < high:
        return False
    mean, variance = 0.0, 0.0
    for i in range(x.shape[0]):
        z[i] = x[i] / top if share[i] > 0.0 else 0.0  # squares neither overflow nor vanish
        mean += share[i] * z[i]
    for i in range(x.shape[0]):
        variance += share[i] * (z[i] - mean) ** 2
    if variance < 1e-26:  # differences are rounding errors
        return False
    for i in range(x.shape[0]):
        z[i] = (z[i] - mean) / math.sqrt(variance)
    return True


@njit(strict=True)
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(strict=True)
def _fill_negative_gradient(target: Array, share: Array, eta: Array, logistic: bool, gradient: Array) -> None:
    for i in range(eta.shape[0]):
        at = eta[i]
        if logistic:
            small = math.exp(-abs(at))
            at = 1.0 / (1.0 + small) if at > 0.0 else small / (1.0 + small)
        gradient[i] = share[i] * (target[i] - at)


@njit(strict=True)
def _minimise(
    columns: Array, target: Array, share: Array, logistic: bool, cost: float,
    weights: Array, eta: Array, gradient: Array,
) -> bool:  # fmt: skip
    """Minimise (1) from the current weights and eta; return False if the largest number of sweeps is reached."""
    curve = 0.25 if logistic else 1.0
    for _ in range(_SWEEPS):
        worst = 0.0
        if logistic:
            slope = 0.0
            for i in range(eta.shape[0]):
                slope += gradient[i]
            worst = abs(slope)
            for i in range(eta.shape[0]):
                eta[i] += slope / curve
            _fill_negative_gradient(target, share, eta, logistic, gradient)
        for j in range(columns.shape[0]):
            slope = _dot(columns[j], gradient)
            aim = weights[j] + slope / curve
            new = math.copysign(max(abs(aim) - cost / curve, 0.0), aim)  # (3)
            step = new - weights[j]
            if step != 0.0:
                worst, weights[j] = max(worst, curve * abs(step)), new
                for i in range(eta.shape[0]):
                    eta[i] += step * columns[j, i]
                _fill_negative_gradient(target, share, eta, logistic, gradient)
        if worst <= _EXACT * cost:
            return True
    return False


@njit(strict=True)
def _scan(
    block: Array,
    first: int,
    share: Array,
    gradient: Array,
    threshold: float,
    z: Array,
    statistic: Array,
    decision: Array,
) -> int:
    """Return the first column from `first` with a slope above the threshold, written to z; or the number of columns."""
    for j in range(first, block.shape[1]):
        if not _standardize(block[:, j], share, z):
            decision[j] = CONSTANT
            continue
        statistic[j] = abs(_dot(z, gradient))
        if statistic[j] > threshold:
            return j
    return int(block.shape[1])


@dataclass(eq=False, repr=False)
class Grafting(ColumnSelector):
    """Accepts a feature that lowers the loss of a lasso faster than the lasso penalty rises.

    An accepted feature may be removed later: after each acceptance, the lasso is refitted to the selected features. A
    rejection costs one pass over the column.

    Parameters
    ----------
    penalty : float in (0, inf), optional
        lambda: the penalty on a weight of 1, for features of variance 1 (and a numeric target of variance 1). By
        default it follows from `alpha`.
    alpha : float in (0, 1), default=0.01
        Without `penalty`: the probability that an irrelevant feature is accepted while none is selected. The rate of
        false acceptances decreases as the model explains more of the target.
    model : {"linear", "logistic"}, default="linear"
        A numeric target, or two classes.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to record each offer, or only accepted ones. ``statistic`` is the slope, ``threshold`` is lambda.

    Attributes
    ----------
    weights_ : ndarray of shape (n_selected,), float64
        Weights of the selected features in the order of `selected_`, per standard deviation.
    threshold_ : float
        lambda.
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`. An accepted feature may be removed later.

    Raises
    ------
    ValueError
        If a parameter is invalid; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    Notes
    -----
    Time O(n) for a feature that is rejected; O(n q) for each sweep over q selected features, after one is accepted.
    Memory O(n q).

    References
    ----------
    Perkins, Theiler (2003). Online Feature Selection using Grafting. ICML. Equations (1) to (3) of the source
    file's header.

    Examples
    --------
    x50 and x150 are relevant. x3 is a noisy copy of x150, and is removed soon after x150 arrives:

    >>> import numpy as np
    >>> from tamis import Grafting
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 200))
    >>> y = X[:, 50] - X[:, 150] + 0.5 * rng.normal(size=300)
    >>> X[:, 3] = X[:, 150] + 0.3 * rng.normal(size=300)
    >>> selector = Grafting(alpha=0.001).fit(X, y)
    >>> selector.selected_, selector.trace_["decision"].tolist()[3]
    (['x50', 'x150'], 'accepted')
    >>> selector.weights_.round(2)
    array([ 0.44, -0.49])
    """

    _shapes = "_target (n)  _share (n)  _eta (n)  _negative_gradient (n)  _columns (q, n)  _weights (q)"

    _statistic = "slope"
    accepts = Inputs(targets=("binary", "regression"))

    penalty: float | None = parameter(number("(0, inf)"), None, default=None)
    _: KW_ONLY
    alpha: float = parameter(number("(0, 1)"), default=0.01)
    model: str = parameter("linear", "logistic", default="linear")

    def _is_regression(self) -> bool:
        return self.model != "logistic"

    def _begin(self, y: Array, weight: Array) -> None:
        if self.model == "logistic":
            check_two_classes(self.classes_)
        total, n_counting = float(weight.sum()), np.count_nonzero(weight)
        if n_counting < 3:
            raise DataError(
                f"y has {n_counting} sample(s) of a weight above 0, too few for this model: give 3 or more."
            )
        self._share, self._target = weight / total, y.astype(np.float64)
        check_not_constant(y, weight)
        spread = 1.0
        if self.model == "linear":
            _standardize(y.astype(np.float64), self._share, self._target)
            self._eta = np.zeros(len(y))
        else:
            mean = float(self._share @ self._target)
            spread = math.sqrt(mean * (1.0 - mean))
            self._eta = np.full(len(y), math.log(mean / (1.0 - mean)))
        self.threshold_ = float(self.penalty or spread * ndtri(1.0 - self.alpha / 2.0) / math.sqrt(total))
        self._negative_gradient = np.empty(len(y))
        logistic = self.model == "logistic"
        _fill_negative_gradient(self._target, self._share, self._eta, logistic, self._negative_gradient)
        self._columns, self._weights = np.empty((0, len(y))), np.empty(0)
        self._places: tuple[int, ...] = ()

    def _consider_block(self, columns: Any) -> Verdicts:
        block = columns.toarray() if sp.issparse(columns) else columns
        verdicts, z, before = Verdicts.empty(block.shape[1]), np.empty(len(self._target)), self._places
        verdicts.threshold[:] = self.threshold_
        threshold, j = self.threshold_ * (1.0 + _SLACK), 0
        while j < block.shape[1]:
            j = _scan(
                block,
                j,
                self._share,
                self._negative_gradient,
                threshold,
                z,
                verdicts.statistic,
                verdicts.decision,
            )
            if j < block.shape[1]:
                verdicts.decision[j] = ACCEPTED
                self._graft(z, self.n_offered_ + j)
                j += 1
        verdicts.dropped = tuple(place for place in before if place not in self._places)
        verdicts.entered = tuple(place - self.n_offered_ for place in self._places if place not in before)
        return verdicts

    def _graft(self, z: Floats, place: int) -> None:
        """Add a feature, minimise (1), and remove the features whose weight is 0."""
        columns, weights = np.vstack((self._columns, z)), np.append(self._weights, 0.0)
        eta, gradient, places = self._eta.copy(), self._negative_gradient.copy(), (*self._places, place)
        logistic, cost = self.model == "logistic", self.threshold_
        if not _minimise(columns, self._target, self._share, logistic, cost, weights, eta, gradient):
            raise DataError(f"penalty={self.threshold_:g} is so small that the weights diverge: raise it.")
        stays = weights != 0.0
        self._columns, self._weights = columns[stays], weights[stays]
        self._eta, self._negative_gradient = eta, gradient
        self._places = tuple(place for place, kept in zip(places, stays, strict=True) if kept)

    @property
    def weights_(self) -> Floats:
        """Weights of the selected features, per standard deviation."""
        check_is_fitted(self)
        return self._weights.copy()
