"""FIRES: feature importance from the uncertainty of a Bayesian linear model.

Haug, Pawelczyk, Broelemann, Kasneci: Leveraging Model Inherent Variable Importance for Stable Online Feature
Selection, KDD 2020. Covered: the framework (Section 4), the probit model (Section 4.3), and, in the same
framework, one-vs-rest classes, a Gaussian model for regression, and a diagonal assumed-density update.

================  ==================  ======================================================================
paper             here                meaning
================  ==================  ======================================================================
mu_j, sigma_j     ``mu``, ``sigma``   mean and standard deviation of the parameter of feature j
alpha             `learning_rate`     step of the stochastic gradient ascent on the log marginal likelihood
lambda_s          uncertainty_penalty how much an uncertain parameter counts against its feature
lambda_r          (none)              only scales all weights, so it never changes a ranking
w_j               ``scores_``         2 lambda_r w_j = mu_j^2 - lambda_s sigma_j^2
M                 n_features_to_select
================  ==================  ======================================================================

With d = sum_j mu_j x_j, rho^2 = 1 + sum_j sigma_j^2 x_j^2, m = y d / rho and r(m) = phi(m) / Phi(m)::

    P(y | x) = Phi(m)                                                (1)
    d log P / d mu_j    = a x_j,            a = r y / rho            (2)
    d log P / d sigma_j = b sigma_j x_j^2,  b = -a d / rho^2         (3)
    - d^2 log P / d mu_j^2 ~ h x_j^2,       h = r (r + m) / rho^2    (4)
    Gaussian, v = s^2 + sum_j sigma_j^2 x_j^2:  a = (y - d) / v,  b = a^2 - 1 / v,  h = 1 / v   (5)

Errata and deviations, each with its reason:

* The quotient phi / Phi is 0 / 0 from m = -39 on and would poison mu for ever: r(m) is a continued fraction there.
* "Variance sqrt(1 + a^2 s^2)" in Lemma A.1 is a standard deviation.
* The published code clips sigma at 0, where it stays, since its gradient carries the factor sigma; so do we.
* As published, mu is per unit of x and all features share the direction of their common mean: features of another
  scale or sign lose. Hence running centring and scaling (`scaling`), exact by algebra, X itself is never copied.
* As published, a rare class hardly moves mu: `class_weight="balanced"` lets the classes of each one-vs-rest model
  pull equally.
* The consistency proof assumes that gradient ascent converges, which a constant step does not: with a `half_life`
  the scores are read from the running average of mu (Polyak and Ruppert), and old evidence fades.
* :meth:`FIRES.paper` switches all of this off.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._check import Array, Rows, check_choice, check_number, refuse_nonfinite
from tamis._jit import njit
from tamis.base import RowSelector
from tamis.errors import DataError
from tamis.summaries.moments import RunningMoments

__all__ = ["FIRES"]

# State of one model (one of K: one for two classes or a regression, else one per class):
#   mu       (K, J) float64   mean of each parameter
#   sigma    (K, J) float64   its standard deviation
#   average  (K, J) float64   running average of mu over the steps (the same array as mu without a half-life)
#   bias     (K, 2) float64   mean and variance of the intercept

_MAX_BALANCE = 10.0  # a row of a rare class weighs at most this much


@njit()
def _mills(m: float) -> float:
    """Return phi(m) / Phi(m) for any m."""
    if m > -8.0:
        return math.exp(-0.5 * m * m) * 0.3989422804014327 / (0.5 * math.erfc(-m * 0.7071067811865476))
    fraction = -m  # Laplace's continued fraction
    for k in range(25, 0, -1):
        fraction = -m + k / fraction
    return fraction


@njit()
def _slopes(y: float, d: float, v: float, probit: bool) -> tuple[float, float, float]:
    """Return a, b and h of one row."""
    if probit:
        rho = math.sqrt(v)
        m = y * d / rho
        r = _mills(m)
        a = r * y / rho  # (2)
        return a, -a * d / v, r * (r + m) / v  # (3), (4)
    a = (y - d) / v  # (5)
    return a, a * a - 1.0 / v, 1.0 / v


@njit()
def _margins(X: Array, i: int, centre: Array, theta: Array, var: Array, d: Array, q: Array) -> None:
    """d, q of the four rows from i on (the last row stands in for missing ones): one pass over theta and var."""
    last = X.shape[0] - 1
    x0, x1, x2, x3 = X[i], X[min(i + 1, last)], X[min(i + 2, last)], X[min(i + 3, last)]
    d0, d1, d2, d3, q0, q1, q2, q3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(X.shape[1]):
        c, t, v = centre[j], theta[j], var[j]
        z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
        d0 += z0 * t
        d1 += z1 * t
        d2 += z2 * t
        d3 += z3 * t
        q0 += z0 * z0 * v
        q1 += z1 * z1 * v
        q2 += z2 * z2 * v
        q3 += z3 * z3 * v
    d[0], d[1], d[2], d[3] = d0, d1, d2, d3
    q[0], q[1], q[2], q[3] = q0, q1, q2, q3


@njit()
def _pull(X: Array, i: int, centre: Array, a: Array, b: Array, g1: Array, g2: Array) -> None:
    """g1 += sum a z, g2 += sum b z^2 over the four rows from i on: one pass over g1 and g2."""
    last = X.shape[0] - 1
    x0, x1, x2, x3 = X[i], X[min(i + 1, last)], X[min(i + 2, last)], X[min(i + 3, last)]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for j in range(X.shape[1]):
        c = centre[j]
        z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
        g1[j] += a0 * z0 + a1 * z1 + a2 * z2 + a3 * z3
        g2[j] += b0 * z0 * z0 + b1 * z1 * z1 + b2 * z2 * z2 + b3 * z3 * z3


@njit()
def _targets(codes: Array, k: int, balance: Array, sample_weight: Array, y: Array, w: Array) -> float:
    """Fill in y: +-1 for class k against the rest (k < 0: the target itself), and the weights w of the rows."""
    total = 0.0
    for i in range(codes.shape[0]):
        inside = codes[i] == k
        given = sample_weight[i] if sample_weight.shape[0] else 1.0
        y[i] = codes[i] if k < 0 else (1.0 if inside else -1.0)
        w[i] = given * (balance[1] if inside else balance[0])
        total += given
    return total


@njit()
def _gradients(
    X: Array, y: Array, w: Array, probit: bool, noise: float, second: bool,
    bias: Array, centre: Array, theta: Array, var: Array, g1: Array, g2: Array, curve: Array,
) -> tuple[float, float]:  # fmt: skip
    """Sum a z and b z^2 (or h z^2) over the rows into g1, g2; return the sums of a and b (or h)."""
    n = X.shape[0]
    d, q, a, b = np.empty(4), np.empty(4), np.empty(4), np.empty(4)
    sum_a, sum_b = 0.0, 0.0
    for i in range(0, n, 4):
        _margins(X, i, centre, theta, var, d, q)
        a[:], b[:] = 0.0, 0.0
        for r in range(min(4, n - i)):
            slope, bend, h = _slopes(y[i + r], bias[0] + d[r], noise + bias[1] + q[r], probit)
            a[r], b[r], curve[i + r] = w[i + r] * slope, w[i + r] * (h if second else bend), w[i + r] * h
            sum_a += a[r]
            sum_b += b[r]
        _pull(X, i, centre, a, b, g1, g2)
    return sum_a, sum_b


@njit()
def _gradients_csr(
    data: Array, indices: Array, indptr: Array, y: Array, w: Array, probit: bool, noise: float, second: bool,
    bias: Array, centre: Array, theta: Array, var: Array, g1: Array, g2: Array, curve: Array,
) -> tuple[float, float]:  # fmt: skip
    """As `_gradients`: rows of zeros first, which only centring moves, then what the stored values change."""
    zero_d, zero_q = bias[0], noise + bias[1]
    for j in range(centre.shape[0]):
        zero_d -= centre[j] * theta[j]
        zero_q += centre[j] * centre[j] * var[j]
    sum_a, sum_b = 0.0, 0.0
    for i in range(indptr.shape[0] - 1):
        d, q = zero_d, zero_q
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            d += x * theta[j]
            q += x * (x - 2.0 * centre[j]) * var[j]
        slope, bend, h = _slopes(y[i], d, q, probit)
        a, b, curve[i] = w[i] * slope, w[i] * (h if second else bend), w[i] * h
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            g1[j] += a * x
            g2[j] += b * x * (x - 2.0 * centre[j])
        sum_a += a
        sum_b += b
    for j in range(centre.shape[0]):
        g1[j] -= sum_a * centre[j]
        g2[j] += sum_b * centre[j] * centre[j]
    return sum_a, sum_b


@njit()
def _ascend(
    g1: Array, g2: Array, rate: float, keep: float, prior: float, inverse: Array, mu: Array, sigma: Array
) -> None:
    """Let old evidence fade, then take one step along the gradients (2) and (3)."""
    for j in range(mu.shape[0]):
        s = inverse[j]
        deviation = prior + keep * (sigma[j] - prior)
        mu[j] = keep * mu[j] + rate * s * g1[j]
        sigma[j] = max(deviation + rate * deviation * s * s * g2[j], 0.0)


@njit()
def _direction(
    g1: Array, g2: Array, keep: float, prior: float, inverse: Array, sigma: Array, v: Array, step: Array
) -> tuple[float, float]:
    """Newton's step for each parameter on its own; return its slope and the curvature the prior gives it."""
    slope, bend = 0.0, 0.0
    for j in range(sigma.shape[0]):
        s = inverse[j]
        v[j] = min(sigma[j] * sigma[j] / keep, prior * prior)
        step[j] = v[j] / (1.0 + v[j] * s * s * g2[j]) * s * g1[j]
        slope += s * g1[j] * step[j]
        bend += step[j] * step[j] / v[j] if v[j] > 0.0 else 0.0
    return slope, bend


@njit()
def _assume(
    g2: Array, damping: float, keep: float, inverse: Array, v: Array, step: Array, mu: Array, sigma: Array
) -> None:
    """Take the damped step; precision grows by as much of the curvature (4) as was used."""
    for j in range(mu.shape[0]):
        mu[j] = keep * mu[j] + damping * step[j]
        sigma[j] = math.sqrt(v[j] / (1.0 + damping * v[j] * inverse[j] * inverse[j] * g2[j]))


@njit()
def _finite(g1: Array, g2: Array) -> bool:
    total = 0.0
    for j in range(g1.shape[0]):
        total += g1[j] * 0.0 + g2[j] * 0.0
    return total == 0.0


@njit()
def _shift_bias(bias: Array, sum_a: float, sum_b: float, rate: float, second: bool) -> None:
    """Move the intercept, a parameter whose feature is always 1."""
    if second:
        bias[1] = bias[1] / (1.0 + bias[1] * sum_b)
        bias[0] += bias[1] * sum_a
    else:
        bias[0] += rate * sum_a
        bias[1] = (math.sqrt(bias[1]) * max(1.0 + rate * sum_b, 0.0)) ** 2


@njit()
def _fold(keep: float, prior: float, inverse: Array, mu: Array, sigma: Array, theta: Array, var: Array) -> None:
    """The parameters per unit of x instead of per standard deviation, after fading."""
    for j in range(mu.shape[0]):
        deviation = (prior + keep * (sigma[j] - prior)) * inverse[j]
        theta[j] = keep * mu[j] * inverse[j]
        var[j] = deviation * deviation


@njit()
def _step(
    X: Array, codes: Array, k: int, balance: Array, sample_weight: Array, probit: bool, noise: float, second: bool,
    intercept: bool, rate: float, keep: float, prior: float, centre: Array, inverse: Array,
    mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """One step of one model on a dense batch; False, and nothing changed, if a gradient is not finite."""
    n, J = X.shape
    y, w, curve = np.empty(n), np.empty(n), np.empty(n)
    theta, var, g1, g2 = np.empty(J), np.empty(J), np.zeros(J), np.zeros(J)
    total = _targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    _fold(keep, prior, inverse, mu, sigma, theta, var)
    sum_a, sum_b = _gradients(X, y, w, probit, noise, second, bias, centre, theta, var, g1, g2, curve)
    if not _finite(g1, g2):
        return False
    if second:
        v, step, d, q = np.empty(J), np.empty(J), np.empty(4), np.empty(4)
        slope, bend = _direction(g1, g2, keep, prior, inverse, sigma, v, step)
        theta[:], var[:] = step * inverse, 0.0
        for i in range(0, n, 4):  # features move together: see how far this step really is
            _margins(X, i, centre, theta, var, d, q)
            for r in range(min(4, n - i)):
                bend += curve[i + r] * d[r] * d[r]
        _assume(g2, min(1.0, slope / bend) if bend > 0.0 else 0.0, keep, inverse, v, step, mu, sigma)
    else:
        _ascend(g1, g2, rate / total, keep, prior, inverse, mu, sigma)
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, second)
    return True


@njit()
def _step_csr(
    data: Array, indices: Array, indptr: Array, codes: Array, k: int, balance: Array, sample_weight: Array,
    probit: bool, noise: float, second: bool, intercept: bool, rate: float, keep: float, prior: float,
    centre: Array, inverse: Array, mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """As `_step` on CSR rows: O(stored values), and O(J) once a batch."""
    n, J = codes.shape[0], mu.shape[0]
    y, w, curve = np.empty(n), np.empty(n), np.empty(n)
    theta, var, g1, g2 = np.empty(J), np.empty(J), np.zeros(J), np.zeros(J)
    total = _targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    _fold(keep, prior, inverse, mu, sigma, theta, var)
    sum_a, sum_b = _gradients_csr(
        data, indices, indptr, y, w, probit, noise, second, bias, centre, theta, var, g1, g2, curve
    )
    if not _finite(g1, g2):
        return False
    if second:
        v, step = np.empty(J), np.empty(J)
        slope, bend = _direction(g1, g2, keep, prior, inverse, sigma, v, step)
        zero = -(centre * inverse * step).sum()
        for i in range(n):
            d = zero
            for at in range(indptr[i], indptr[i + 1]):
                d += data[at] * inverse[indices[at]] * step[indices[at]]
            bend += curve[i] * d * d
        _assume(g2, min(1.0, slope / bend) if bend > 0.0 else 0.0, keep, inverse, v, step, mu, sigma)
    else:
        _ascend(g1, g2, rate / total, keep, prior, inverse, mu, sigma)
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, second)
    return True


@njit()
def _step_stored(
    data: Array, indices: Array, indptr: Array, codes: Array, k: int, balance: Array, sample_weight: Array,
    probit: bool, noise: float, intercept: bool, rate: float, mu: Array, sigma: Array, bias: Array,
) -> bool:  # fmt: skip
    """As `_step_csr` where zeros pull at nothing (no centring, no fading): O(stored values) altogether."""
    n, J = codes.shape[0], mu.shape[0]
    y, w, g1, g2 = np.empty(n), np.empty(n), np.empty(J), np.empty(J)
    total = _targets(codes, k, balance, sample_weight, y, w)
    if total == 0.0:
        return True
    for j in indices:
        g1[j], g2[j] = 0.0, 0.0
    sum_a, sum_b = 0.0, 0.0
    for i in range(n):
        d, q = bias[0], noise + bias[1]
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            d += x * mu[j]
            q += (x * sigma[j]) ** 2
        slope, bend, _ = _slopes(y[i], d, q, probit)
        a, b = w[i] * slope, w[i] * bend
        sum_a += a
        sum_b += b
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            g1[j] += a * x
            g2[j] += b * x * x
    check = 0.0
    for j in indices:
        check += g1[j] * 0.0 + g2[j] * 0.0
    if check != 0.0:
        return False
    for j in indices:
        mu[j] += rate / total * g1[j]
        sigma[j] = max(sigma[j] + rate / total * sigma[j] * g2[j], 0.0)
        g1[j], g2[j] = 0.0, 0.0  # a feature stored in several rows moves once
    if intercept:
        _shift_bias(bias, sum_a, sum_b, rate / total, False)
    return True


@njit()
def _blend(share: float, mu: Array, average: Array) -> None:
    """Move the running average towards mu."""
    for k in range(mu.shape[0]):
        for j in range(mu.shape[1]):
            average[k, j] += share * (mu[k, j] - average[k, j])


class FIRES(RowSelector):
    """Selects the features whose parameters are large and certain in a Bayesian linear model of the label.

    The parameters of a probit model (or of a Gaussian one, for a regression) are normal random variables. Each
    batch moves their means and standard deviations one step up the log marginal likelihood; a feature scores
    ``mu**2 - uncertainty_penalty * sigma**2``. With three classes or more there is a model for each class against
    the rest, and a feature scores as in the model that needs it most.

    The defaults are the recommended preset: running centring and scaling, classes that pull equally, old evidence
    fading with a half-life. :meth:`paper` gives the published method.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        M: how many features to keep, or which fraction of them, in (0, 1].
    model : {"probit", "gaussian"}, default="probit"
        ``"probit"`` for classes, ``"gaussian"`` for a numeric target.
    update : {"gradient", "assumed-density"}, default="gradient"
        One gradient step per batch as published, or Newton's step for each parameter on its own, damped where
        features move together; then `sigma` shrinks with the evidence and there is no `learning_rate`.
    scaling : {"standard", "center", None}, default="standard"
        Learn from features centred and scaled by their running mean and standard deviation, only centred, or as
        they are. CSR rows are never made dense; see Notes.
    importance : {"parameter", "signal"}, default="parameter"
        Score the parameter itself, or times the feature's running variance (what it contributes to the margin);
        with ``scaling="standard"`` the two are the same.
    learning_rate : float, default=1.0
        alpha, in (0, inf): step of the gradient update.
    half_life : float or None, default=2000
        Rows after which evidence counts half, in (0, inf]; scores are then read from the running average of mu.
        None: nothing fades and the scores are those of the last mu, as published.
    class_weight : {"balanced", None}, default="balanced"
        Whether a class and its rest pull equally however rare it is (a row weighs at most 10).
    intercept : bool, default=False
        Whether the models have an intercept (never scored).
    sigma : float, default=1.0
        Standard deviation of each parameter before anything is seen, in (0, inf).
    uncertainty_penalty : float, default=0.01
        lambda_s, in [0, inf).
    class_reduce : {"max", "mean"}, default="max"
        How the one-vs-rest scores of a feature become one.
    batch_size : int, default=100
        Rows per step: larger batches are taken in consecutive steps of this many rows.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Relevance now; larger is more relevant. All zero while `waiting_`.
    mu_, sigma_ : ndarray of shape (n_models, n_features), float64
        One model for two classes or a regression, else one per class.
    waiting_ : bool
        True until two classes were seen; then `get_support` keeps every feature.
    classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If rows, labels or weights cannot be learned from; the model is left as it was.

    Notes
    -----
    The method is defined per batch: 100 rows at once are one step, one at a time they are 100 steps.
    Memory: 3 float64 per model and feature, and 2 per feature for the scaling. Time per batch: O(rows x features)
    per model; for CSR rows O(stored values), plus O(features) once a batch if anything is scaled or fades.

    References
    ----------
    Haug, Pawelczyk, Broelemann, Kasneci (2020). Leveraging Model Inherent Variable Importance for Stable Online
    Feature Selection. KDD. Equations (1) to (4) of the source file's header.

    Examples
    --------
    Columns 3 and 7 of twenty decide the class; the first has ten times the scale of the others.

    >>> import numpy as np
    >>> from tamis import FIRES
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 20)) * np.r_[10, np.ones(19)]
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, "up", "down")
    >>> selector = FIRES(n_features_to_select=2)
    >>> for start in range(0, 2000, 100):
    ...     _ = selector.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> selector.get_support(indices=True)
    array([3, 7])
    """

    _finite_in_kernel = True

    def __init__(
        self,
        n_features_to_select: int | float = 0.1,
        *,
        model: str = "probit",
        update: str = "gradient",
        scaling: str | None = "standard",
        importance: str = "parameter",
        learning_rate: float = 1.0,
        half_life: float | None = 2000,
        class_weight: str | None = "balanced",
        intercept: bool = False,
        sigma: float = 1.0,
        uncertainty_penalty: float = 0.01,
        class_reduce: str = "max",
        batch_size: int = 100,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.model = model
        self.update = update
        self.scaling = scaling
        self.importance = importance
        self.learning_rate = learning_rate
        self.half_life = half_life
        self.class_weight = class_weight
        self.intercept = intercept
        self.sigma = sigma
        self.uncertainty_penalty = uncertainty_penalty
        self.class_reduce = class_reduce
        self.batch_size = batch_size

    @classmethod
    def paper(cls, n_features_to_select: int | float = 0.1, **parameters: Any) -> Self:
        """Return the published method: no scaling, no balance, nothing fades, steps of 0.01.

        Parameters
        ----------
        n_features_to_select : int or float, default=0.1
        **parameters
            Any other parameter of the class.

        Examples
        --------
        >>> FIRES.paper(10)
        FIRES(class_weight=None, half_life=None, learning_rate=0.01,
              n_features_to_select=10, scaling=None)
        """
        published: dict[str, Any] = {
            "scaling": None, "class_weight": None, "half_life": None, "learning_rate": 0.01,
        }  # fmt: skip
        return cls(n_features_to_select, **{**published, **parameters})

    def _is_regression(self) -> bool:
        return self.model == "gaussian"

    def _start(self, n_features: int) -> None:
        check_choice("model", self.model, ("probit", "gaussian"))
        check_choice("update", self.update, ("gradient", "assumed-density"))
        check_choice("scaling", self.scaling, ("standard", "center", None))
        check_choice("importance", self.importance, ("parameter", "signal"))
        check_choice("class_weight", self.class_weight, ("balanced", None))
        check_choice("class_reduce", self.class_reduce, ("max", "mean"))
        check_choice("intercept", self.intercept, (True, False))
        check_number("learning_rate", self.learning_rate, low=0, open_low=True, high=math.inf, open_high=True)
        check_number("sigma", self.sigma, low=0, open_low=True, high=math.inf, open_high=True)
        check_number("uncertainty_penalty", self.uncertainty_penalty, low=0, high=math.inf, open_high=True)
        check_number("batch_size", self.batch_size, low=1, integer=True)
        if self.half_life is not None:
            check_number("half_life", self.half_life, low=0, open_low=True)
        self.mu_ = np.zeros((1, n_features))
        self.sigma_ = np.full((1, n_features), float(self.sigma))
        self._average = self.mu_ if self.half_life is None else np.zeros((1, n_features))
        self._averaged = 0.0
        self._bias = self._new_bias(1)
        self._counts = np.zeros(1)
        self._moments = RunningMoments(n_features)
        self._target = RunningMoments(1)  # of the numeric target of a regression
        self._residual = np.array([0.0, 0.0])  # faded sum of squared errors and of weights

    def _new_bias(self, n_models: int) -> NDArray[np.float64]:
        return np.tile([0.0, float(self.sigma) ** 2 if self.intercept else 0.0], (n_models, 1))

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        n_rows, size = X.shape[0], self.batch_size
        if not self._is_regression():
            self._grow(len(self.classes_) if len(self.classes_) > 2 else 1)
        if n_rows > size or len(self.mu_) > 1:  # several steps: a failure in a later one must undo the earlier
            refuse_nonfinite(X, self._names())
            self._keep_old_state()
        weight = _NO_WEIGHT if sample_weight is None else sample_weight
        for start in range(0, n_rows, size):
            part = slice(start, start + size)
            self._learn_step(X if n_rows <= size else X[part], y[part], weight[part])

    def _learn_step(self, X: Rows, y: Array, weight: Array) -> None:
        rows = float(weight.sum()) if len(weight) else float(len(y))
        keep = 1.0 if self.half_life is None else 0.5 ** (rows / self.half_life)
        if self.scaling is not None or self.importance == "signal":
            if not self._moments.update(X, weight if len(weight) else None, keep):
                self._refuse(X)
        centre, inverse = self._frame()
        noise, first = 1.0, 1 if len(self.mu_) == 1 else 0
        if self._is_regression():
            noise, y = self._standard_target(X, y, weight, keep, centre, inverse)
            first = -1
        else:
            arrived = np.bincount(y, weight if len(weight) else None, minlength=len(self.classes_))
            self._counts = arrived + keep * np.pad(self._counts, (0, len(arrived) - len(self._counts)))
        for k in range(len(self.mu_)):
            balance = self._balance(first + k)
            shared = (y, first + k, balance, weight, not self._is_regression(), noise)
            if not self._step(X, k, shared, keep, centre, inverse):
                self._refuse(X)
        if self._average is not self.mu_:
            self._averaged = keep * self._averaged + rows
            if rows > 0.0:
                _blend(rows / self._averaged, self.mu_, self._average)

    def _step(self, X: Rows, k: int, shared: tuple[Any, ...], keep: float, centre: Array, inverse: Array) -> bool:
        mu, sigma, bias = self.mu_[k], self.sigma_[k], self._bias[k]
        second, rate, prior = self.update == "assumed-density", float(self.learning_rate), float(self.sigma)
        if not sp.issparse(X):
            return _step(
                X, *shared, second, self.intercept, rate, keep, prior, centre, inverse, mu, sigma, bias
            )
        stored = (X.data, X.indices, X.indptr)
        if self.scaling is None and self.half_life is None and not second:
            return _step_stored(*stored, *shared, self.intercept, rate, mu, sigma, bias)
        return _step_csr(
            *stored, *shared, second, self.intercept, rate, keep, prior, centre, inverse, mu, sigma, bias
        )

    def _frame(self) -> tuple[Array, Array]:
        """Return what is subtracted from each feature and what it is then multiplied by."""
        zeros, ones = np.zeros(self.n_features_in_), np.ones(self.n_features_in_)
        centre = zeros if self.scaling is None else self._moments.mean
        return centre, self._moments.inverse_scale() if self.scaling == "standard" else ones

    def _balance(self, k: int) -> NDArray[np.float64]:
        """Return the weights of the rows outside and inside class k."""
        if self.class_weight is None or k < 0:
            return _EQUAL
        total = float(self._counts.sum())
        inside = float(self._counts[k]) if k < len(self._counts) else 0.0
        least = total / (2.0 * _MAX_BALANCE)
        return np.array([total / (2.0 * max(part, least)) for part in (total - inside, inside)]) if total else _EQUAL

    def _standard_target(
        self, X: Rows, y: Array, weight: Array, keep: float, centre: Array, inverse: Array
    ) -> tuple[float, Array]:
        """Return the noise variance and the target, both in standard deviations of the target so far."""
        w = weight if len(weight) else np.ones(len(y))
        if not self._target.update(y[:, None], w, keep):
            raise DataError("The target y is too large to be squared: rescale it.")
        y = (y - self._target.mean[0]) * self._target.inverse_scale()[0]
        theta = self.mu_[0] * inverse
        error = y - (X @ theta - centre @ theta + self._bias[0, 0])
        self._residual = keep * self._residual + np.array([w @ (error * error), w.sum()])
        return max(self._residual[0] / max(self._residual[1], 1e-300), _LEAST_NOISE), y

    def _grow(self, n_models: int) -> None:
        """Give every class its model; the one model of two classes is that of the second, mirrored the first's."""
        if (new := n_models - len(self.mu_)) == 0:
            return
        n_features = self.n_features_in_
        mirror = len(self.mu_) == 1
        old = [np.vstack([-a, a]) if mirror else a for a in (self.mu_, self._average)]
        new -= mirror
        mu, average = (np.vstack([a, np.zeros((new, n_features))]) for a in old)
        self._average = mu if self._average is self.mu_ else average
        self.mu_ = mu
        sigma, bias = (np.vstack([a, a]) if mirror else a for a in (self.sigma_, self._bias))
        self.sigma_ = np.vstack([sigma, np.full((new, n_features), float(self.sigma))])
        self._bias = np.vstack([bias * [[-1.0, 1.0], [1.0, 1.0]] if mirror else bias, self._new_bias(new)])

    def _keep_old_state(self) -> None:
        """Go on with copies, so that the arrays of before the call are there to return to."""
        linked = self._average is self.mu_
        self.mu_, self.sigma_, self._bias = self.mu_.copy(), self.sigma_.copy(), self._bias.copy()
        self._average = self.mu_ if linked else self._average.copy()
        self._moments, self._target = copy.deepcopy(self._moments), copy.deepcopy(self._target)

    def _refuse(self, X: Rows) -> NoReturn:
        refuse_nonfinite(X, self._names())
        largest = np.abs(X.data if sp.issparse(X) else X).max()
        raise DataError(f"X holds values up to {largest:g}, whose squares are too large to sum: rescale the features.")

    def _relevance(self) -> NDArray[np.float64]:
        weights = self._average**2 - self.uncertainty_penalty * self.sigma_**2
        if self.importance == "signal":
            weights = weights * self._moments.variance()
        reduced: NDArray[np.float64] = weights.max(axis=0) if self.class_reduce == "max" else weights.mean(axis=0)
        return reduced


_NO_WEIGHT = np.empty(0)
_EQUAL = np.ones(2)
_LEAST_NOISE = 1e-6  # of the target's variance; a noise of 0 would make the first exact row infinitely certain
