"""FIRES: feature importance from the uncertainty of a Bayesian linear model.

Haug, Pawelczyk, Broelemann, Kasneci: Leveraging Model Inherent Variable Importance for Stable Online Feature
Selection, KDD 2020. Covered: the framework (Section 4), the probit model (Section 4.3), and, in the same
framework, logit, Gaussian and Poisson links, one-vs-rest classes, and a diagonal assumed-density update. Networks and
soft trees are in :mod:`tamis.rows.fires.monte_carlo`.

================  ==================  ======================================================================
paper             here                meaning
================  ==================  ======================================================================
mu_j, sigma_j     ``mu``, ``sigma``   mean and standard deviation of the parameter of feature j
alpha             `learning_rate`     step of the stochastic gradient ascent on the log marginal likelihood
lambda_s          uncertainty_penalty weight of the uncertainty in the score
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
    logit, Poisson, v = sum_j sigma_j^2 x_j^2:  a = E[l' | y],  b = E[l'^2 + l'' | y],  h = a^2 - b   (6)

In (6), l(eta) is the log likelihood of y given eta = sum_j theta_j x_j, and the expectation is that of eta given y
(:mod:`tamis.rows.fires.quadrature`).

Errata and deviations, each with its reason:

* The quotient phi / Phi is 0 / 0 from m = -39 on, and mu becomes NaN: r(m) is computed by a continued fraction there.
* "Variance sqrt(1 + a^2 s^2)" in Lemma A.1 is a standard deviation.
* The published code clips sigma at 0, where it stays, since its gradient carries the factor sigma; so do we.
* As published, mu is per unit of x and all features share the direction of their common mean: features of another
  scale or sign are ranked too low. Hence running centring and scaling (`scaling`), algebraically exact, without
  copying X.
* As published, a rare class hardly changes mu: ``class_weight="balanced"`` gives a class and its rest equal influence.
  With three classes or more each class is rare in its own model, and by default the root of these weights is used.
* With three classes or more, the maximum score over the models is dominated by the noise of one of them; the default
  is the mean.
* Correlated features are all certain and all kept: with three classes or more, by default, a score is discounted by the
  squared correlation with features selected before (:mod:`tamis.rows.screening.redundancy`, (3)).
* The consistency proof assumes that gradient ascent converges, which a constant step does not: with a `half_life`
  the scores are read from the running average of mu (Polyak and Ruppert), and old evidence fades.
* With the published step of 0.01 learning is very slow: rho^2 is initially about 1 + J, so the step grows with J, from
  1 to 10. Heavy rows of a rare class make the gradient noisier by their mean squared weight, by which the step is
  divided.
* The curvature of (5) is 1 / v, which is unbounded: with little noise, any constant step overshoots, and the relevant
  features are lost for thousands of rows. So the step of a regression is bounded by the one that maximises the
  likelihood of the batch along the gradient, unless `learning_rate` is given.
* Counts are modelled relative to their running mean: its logarithm is added to every margin.
* :meth:`FIRES.paper` disables all of these.
"""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomic, atomically
from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Mask, Rows, check_choice, reject_nonfinite
from tamis._validation.parameters import integer, number, parameter
from tamis.base import RowSelector, n_to_select, top_mask
from tamis.base.declarations import Claims, Inputs
from tamis.base.rows import check_mergeable, feature_names, joint_classes
from tamis.errors import DataError
from tamis.merging import MERGE_DOCS
from tamis.rows.fires.normal_linear import NormalLinear, learn_batch
from tamis.rows.fires.quadrature import GAUSSIAN, LOGIT, POISSON, PROBIT
from tamis.rows.screening.redundancy import LastRows, by_discount
from tamis.summaries.moments import RunningMoments, inverse_scale

# Relative to the variance of the target; with a noise of 0, the first exact row would have infinite precision.
_LEAST_NOISE = 1e-6
_ROWS_KEPT = 300  # independent features correlate at most .2 in them, a discount of 4 %
_CANDIDATES = 1000  # minimum number of candidates if scores are discounted
_MOST_COUNTED = 1e15  # larger counts are not exact in float64
_LINKS = {"gaussian": GAUSSIAN, "probit": PROBIT, "logit": LOGIT, "poisson": POISSON}
_SCALINGS = {None: 0, "center": 1, "standard": 2}
_NOTHING = np.empty(0)
_WIDE = 8  # columns per stored value above which columns without any are skipped


def _check_counts(y: Array) -> None:
    wrong = np.flatnonzero((y < 0.0) | (y > _MOST_COUNTED))
    if len(wrong):
        raise DataError(
            f"model='poisson' is for numbers from 0 to {_MOST_COUNTED:g}, and y is {y[wrong[0]]:g} in row {wrong[0]}: "
            "choose model='gaussian'."
        )


@dataclass(eq=False, repr=False)
class FIRES(RowSelector):
    """Selects features with large and certain coefficients in a Bayesian probit or linear model.

    The coefficients of a linear model of the label, number or count are independent normal random variables. Each batch
    moves their means and standard deviations one step up the gradient of the log marginal likelihood. The score of a
    feature is ``mu**2 - uncertainty_penalty * sigma**2``. With three classes or more there is a model for each class
    against the rest, and the scores of a feature are averaged. Features are then selected sequentially, and the score
    of a feature is discounted by its correlation with those selected before.

    The defaults are the recommended preset: running centring and scaling, balanced classes, and evidence that fades
    with a half-life. :meth:`paper` gives the published method.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        M: how many features to keep, or which fraction of them, in (0, 1].
    model : {"probit", "logit", "gaussian", "poisson"}, default="probit"
        ``"probit"`` or ``"logit"`` for classes; in a logit, a row far on the wrong side has less influence.
        ``"gaussian"`` for a numeric target, ``"poisson"`` for counts or other numbers from 0 to 1e15.
    update : {"gradient", "assumed-density"}, default="gradient"
        ``"gradient"``: one gradient step per batch, as published. ``"assumed-density"``: a Newton step for each
        coefficient separately, damped for correlated features. `sigma` then decreases with the evidence, and
        `learning_rate` is not used.
    scaling : {"standard", "center", None}, default="standard"
        ``"standard"``: features are centred and scaled by their running mean and standard deviation. ``"center"``: only
        centred. None: unscaled. CSR rows are never made dense; see Notes.
    importance : {"parameter", "signal"}, default="parameter"
        ``"parameter"`` scores the coefficient itself. ``"signal"`` multiplies it by the feature's running variance
        (its contribution to the margin). With ``scaling="standard"`` both are equal.
    learning_rate : float or None, default=None
        alpha, in (0, 1e6]: step of the gradient update. None: a tenth of the number of features, but at least 1 and at
        most 10, divided by the mean squared weight of a row after balancing, which is 1 for two classes of equal size,
        and larger if a class is rare. For regression, the step is at most the best step of the batch.
    half_life : float or None, default=2000
        Rows after which the weight of evidence is halved, in (0, inf]. Scores are then read from the running average of
        mu. None: nothing fades, and the scores are those of the last mu, as published.
    class_weight : {"auto", "balanced", None}, default="auto"
        "balanced": a class and its rest have equal influence, however rare the class is (a row weighs at most 10).
        "auto": "balanced" with two classes; with more, the root of these weights. None: all rows have equal weight.
    intercept : bool, default=False
        Whether the models have an intercept (never scored).
    sigma : float, default=1.0
        Standard deviation of each coefficient before the first row, in (0, inf).
    uncertainty_penalty : float, default=0.01
        lambda_s, in [0, inf).
    class_reduce : {"max", "mean"}, default="mean"
        How the one-vs-rest scores of a feature are combined into one, with three classes or more.
    redundancy : {"auto", "discount", None}, default="auto"
        "discount": features are selected sequentially, by their score times 1 minus the largest squared correlation
        with a feature selected before, over the last 300 rows. `scores_` still rates each feature by itself. "auto":
        "discount" with three classes or more. None: the features with the largest scores are selected.
    batch_size : int, default=100
        Rows per step: larger batches are split into parts of this size.
    categorical : "all", list of int or str, or bool mask, optional
        Categorical features. Text columns and categorical columns of a frame are always included. They are encoded by
        their mean target, and missing values by the mean of the feature (:mod:`tamis.base.row_encoder`).
    prices : float, array, mapping of column to float, or PriceList, optional
        Price of each feature, in [0, 1e100]: features are ranked
        by their score above the least relevant one, per unit of price. A group is paid once.
    keep : list of int or str, optional
        Features that are always selected, in addition.
    groups : list of lists of int or str, optional
        Features that are selected together, such as the one-hot columns of a category: all, as soon as one is.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Current relevance; larger is more relevant. All zero while `warming_up_`.
    mu_, sigma_ : ndarray of shape (n_models, n_features), float64
        One model for two classes or a regression, otherwise one per class.
    warming_up_ : bool
        True until two classes were seen; `get_support` then keeps every feature.
    classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If rows, labels or weights are invalid; the model is left unchanged.

    Notes
    -----
    The method is defined per batch: 100 rows per call are one step, one row per call is 100 steps. Memory: 3 float64
    per model and feature, and 2 per feature for the scaling; the last 300 to 400 rows if scores are discounted. Time
    per batch and model: O(rows x features). With CSR rows it is O(stored values), plus O(features) once per batch if
    anything is scaled or fades: a centred zero is not 0, so every feature contributes to the margin of every row.

    References
    ----------
    Haug, Pawelczyk, Broelemann, Kasneci (2020). Leveraging Model Inherent Variable Importance for Stable Online
    Feature Selection. KDD. Equations (1) to (6) of the source file's header.

    Examples
    --------
    Features 3 and 7 of 20 determine the class; feature 3 has ten times the scale of the others:

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

    _shapes = """
        _counts? (c) float in [0, inf) fixed  _target fixed
        _moments.mean (j) fill 0  _moments.m2 (j) fill 0  _target.mean (1)  _target.m2 (1)
        _error? (2) float in [0, inf) fixed
        _models.averaged (=a)
        _models.prior float in (0, inf)
        _models.evidence float in [0, inf)
        _models.mu (m, j) float in [-1e150, 1e150] fill 0
        _models.sigma (m, j) float in [0, 1e150] fill its.prior
        _models.bias (m, 2) finite
        _models.bias[:, 1:] float in [0, inf)
        _models._average (a*m, j) float in [-1e150, 1e150] fill 0
        _last_rows? fixed  _last_rows.blocks[][0] (R, j) finite fill 0  _last_rows.blocks[][1] (R) int in [0, 1)
    """

    claims = Claims(
        sparse_time=True,
        merges_exactly=False,
        copies_differ="with three classes or more, redundancy is measured in the last 300 rows",
    )
    accepts = Inputs(
        targets=("binary", "multiclass", "regression"), nan=True, categories=True, checked_in_kernel=True
    )

    def _claims(self) -> Claims:
        is_scaled = self.scaling is not None
        return replace(
            self.claims,
            invariant_to_shifts=is_scaled,
            ignores_constants=is_scaled,
            # The step depends on the number of features.
            counts_columns=self.learning_rate is None,
        )

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    model: str = parameter("probit", "logit", "gaussian", "poisson", default="probit")
    update: str = parameter("gradient", "assumed-density", default="gradient")
    scaling: str | None = parameter("standard", "center", None, default="standard")
    importance: str = parameter("parameter", "signal", default="parameter")
    learning_rate: float | None = parameter(number("(0, 1e6]"), None, default=None)
    half_life: float | None = parameter(number("(0, inf]"), None, default=2000)
    class_weight: str | None = parameter("auto", "balanced", None, default="auto")
    intercept: bool = parameter(True, False, default=False)
    sigma: float = parameter(number("(0, inf)"), default=1.0)
    uncertainty_penalty: float = parameter(number("[0, inf)"), default=0.01)
    class_reduce: str = parameter("max", "mean", default="mean")
    redundancy: str | None = parameter("auto", "discount", None, default="auto")
    batch_size: int = parameter(integer("[1, inf)"), default=100)
    categorical: Any = None
    prices: Any = None
    keep: Any = None
    groups: Any = None

    @classmethod
    def paper(cls, n_features_to_select: int | float = 0.1, **parameters: Any) -> Self:
        """Return the published method: no scaling, no balancing, no fading, no discount, steps of 0.01.

        Parameters
        ----------
        n_features_to_select : int or float, default=0.1
        **parameters
            Any other parameter of the class.

        Examples
        --------
        >>> FIRES.paper(10)
        FIRES(class_reduce='max', class_weight=None, half_life=None, learning_rate=0.01,
              n_features_to_select=10, redundancy=None, scaling=None)
        """
        published: dict[str, Any] = {
            "scaling": None, "class_weight": None, "half_life": None, "learning_rate": 0.01, "class_reduce": "max",
            "redundancy": None,
        }  # fmt: skip
        return cls(n_features_to_select, **{**published, **parameters})

    def _is_regression(self) -> bool:
        return self.model in ("gaussian", "poisson")

    def _start(self, n_features: int) -> None:
        self._models = NormalLinear(n_features, float(self.sigma), self.intercept, self.half_life is not None)
        self._counts = np.zeros(0)  # faded number of rows per class
        self._moments = RunningMoments(n_features)
        self._target = RunningMoments(1)  # of the target of a regression
        self._error = np.zeros(2)  # faded sum of its squared errors, and of their weights
        self._last_rows = LastRows(_ROWS_KEPT)  # for discounted scores

    @property
    def _chooses_count(self) -> bool:  # type: ignore[override]
        """Whether `_selection` selects, although the number is fixed."""
        return hasattr(self, "n_seen_") and (self._discounts or self._terms is not None)

    @property
    def _discounts(self) -> bool:
        """Whether the scores of redundant features are discounted."""
        return self.redundancy == "discount" or (self.redundancy == "auto" and len(self._models.mu) > 1)

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if self.model == "poisson":
            _check_counts(y)
        n_rows, size = X.shape[0], self.batch_size
        if not self._is_regression() and len(self.classes_) > 2 and len(self.classes_) > len(self._models.mu):
            self._models.grow(len(self.classes_))
        if n_rows > size:  # an error in a part would give the wrong row number
            reject_nonfinite(X, feature_names(self))
        weight = _NOTHING if sample_weight is None else sample_weight
        if n_rows <= size and len(self._models.mu) == 1:
            self._learn_step(X, y, weight)
        else:  # a part, or the model of a class, may be rejected after earlier ones were updated
            atomically(self, self._learn_steps, X, y, weight, in_parts=True)
        if self._chooses_count:
            self._last_rows = copy.copy(self._last_rows)
            self._last_rows.add(X, np.zeros(n_rows, np.int64))

    def _learn_steps(self, X: Rows, y: Array, weight: Array) -> None:
        for start in range(0, X.shape[0], self.batch_size):
            part = slice(start, start + self.batch_size)
            self._learn_step(X[part], y[part], weight[part])

    def _learn_step(self, X: Rows, y: Array, weight: Array) -> None:
        rows = float(weight.sum()) if len(weight) else float(len(y))
        keep = 1.0 if self.half_life is None else 0.5 ** (rows / self.half_life)
        near, columns = self._stored_columns(X, keep)
        learns_moments, sums = self._needs_moments, None
        if learns_moments and self._moments.weight == 0.0:  # the first batch is scaled by itself
            if not self._moments.update(X, weight if len(weight) else None):
                self._refuse(X)
            learns_moments = False
        # Others by the rows before: one pass of dense rows then gives the step and the moments.
        dense = isinstance(X, np.ndarray)
        in_step = learns_moments and dense and self.scaling is not None
        if learns_moments and not in_step:
            sums = np.zeros(near.shape[1]), np.zeros(near.shape[1])
            if not self._moments.add(near, weight, *sums, columns):
                self._refuse(X)
        noise, offset, n_classes = 0.0 if self.model == "logit" else 1.0, 0.0, 0
        if self.model == "gaussian":
            y, noise = self._standard_target(X, y, weight, keep)
        elif self.model == "poisson":
            offset, noise = self._log_mean(y, weight, keep), 0.0
        else:
            n_classes = len(self.classes_)
        models, moments = self._models, self._moments
        evidence = keep * models.evidence + rows if models.averaged else 0.0
        later = keep * moments.weight + rows if in_step else 0.0
        batch: tuple[Any, Any, Any, Any] = (X, None, None, None)
        if not dense:
            batch = None, near.data, near.indices, near.indptr
        done, self._counts = learn_batch(
            *batch, columns, y, n_classes, self._counts, self._balance_power, self.learning_rate or 0.0, weight,
            _LINKS[self.model], noise, offset, self.update == "assumed-density", models.intercept,
            n_classes == 0 and self.learning_rate is None, keep, models.prior, _SCALINGS[self.scaling], moments.mean,
            moments.m2, moments.weight, later, models.mu, models.sigma, models.bias, models._average,
            rows / evidence if evidence > 0.0 else 0.0,
        )  # fmt: skip
        if not done:
            self._refuse(X)
        models.evidence = evidence
        if in_step:
            moments.weight = later
        elif sums is not None:
            moments.absorb(*sums, rows, keep, columns)

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str = "after") -> Self:
        """Average the coefficients with those of a selector of other rows, weighted by rows times precision.

        Exact for ``update="assumed-density"`` if nothing fades or is scaled (a product of normal posteriors); an
        approximation otherwise, since a gradient step depends on the coefficients after the previous batch (measured in
        docs/persistence.md). Moments, counts and the last rows are merged exactly.

        Parameters
        ----------
        other : FIRES
            With the same columns and parameters (except the number of selected features).
        when : {"after", "before"}, default="after"
            Whether the rows of `other` follow or precede those of this selector. With a `half_life`, the evidence of
            the earlier part fades by the rows of the later one.

        %(returns_and_raises)s
        ValueError
            If its columns or parameters differ.

        Examples
        --------
        >>> import numpy as np
        >>> from tamis import FIRES
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 20))
        >>> y = X[:, 3] - X[:, 7] > 0
        >>> parts = FIRES(2).fit(X[:1000], y[:1000]), FIRES(2).fit(X[1000:], y[1000:])
        >>> parts[0].merge(parts[1]).get_support(indices=True)
        array([3, 7])
        """
        check_choice("when", when, ("after", "before"))
        if not check_mergeable(self, other, ("n_features_to_select", "uncertainty_penalty", "class_reduce")):
            return self
        earlier, later = (self, other) if when == "after" else (other, self)
        merged = copy.deepcopy(earlier)
        merged._append(copy.deepcopy(later))
        self.__dict__.update({**vars(merged), **self.get_params(deep=False)})
        return self

    def _append(self, later: Self) -> None:
        keep = 1.0 if self.half_life is None else 0.5 ** (later.n_seen_ / self.half_life)
        if not self._is_regression():
            codes, joint = joint_classes(self, later)
            n_classes = len(joint["classes_"])
            for part, at in ((self, np.arange(len(self.classes_))), (later, codes)):
                counts = np.zeros(n_classes)
                counts[at[: len(part._counts)]] = part._counts
                part._counts = counts
                part._models.reorder(at, n_classes)
            self.__dict__.update(joint)
        rows = keep * self._faded_rows(), later._faded_rows()
        units = self._units(), later._units()
        self._counts = keep * self._counts + later._counts
        for moments, theirs in ((self._moments, later._moments), (self._target, later._target)):
            moments.fade(keep)
            moments.merge(theirs)
        unit = self._units()
        for part, old in ((self, units[0]), (later, units[1])):
            part._models.scale(np.divide(unit, old, out=np.ones_like(unit), where=(old > 0.0) & (unit > 0.0)))
        self._models.merge(later._models, rows, keep, exact=self.update == "assumed-density")
        self._error = keep * self._error + later._error
        self._last_rows = self._last_rows.merged(later._last_rows, np.zeros(1, np.int64), first=False)
        self.n_seen_ += later.n_seen_

    def _faded_rows(self) -> float:
        return float(self._target.weight if self._is_regression() else self._counts.sum())

    def _units(self) -> Array:
        """Return the factor that converts a coefficient from units of the data to those of the models: 1 / slope."""
        unit = np.ones(self.n_features_in_)
        if self.scaling == "standard":
            inverse = inverse_scale(self._moments.m2, self._moments.weight)
            unit = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=inverse > 0.0)
        return unit * (self._target.inverse_scale()[0] if self.model == "gaussian" else 1.0)

    def _stored_columns(self, X: Rows, keep: float) -> tuple[Rows, Array | None]:
        """Return the rows and the columns they contain: for wide CSR rows only those with a stored value.

        None: all. A regression and Newton's step use all too; and if zeros have no effect, no other coefficient
        changes.
        """
        if (
            isinstance(X, np.ndarray)
            or X.shape[1] < _WIDE * X.nnz
            or (keep == 1.0 and not self._needs_moments)
        ):
            return X, None
        if self._is_regression() or self.update != "gradient":
            return X, None
        columns = np.sort(X.indices)
        columns = columns[np.diff(columns, prepend=-1) > 0]
        place = np.empty(X.shape[1], X.indices.dtype)
        place[columns] = np.arange(len(columns))
        return sp.csr_matrix((X.data, place[X.indices], X.indptr), (X.shape[0], len(columns))), columns

    @property
    def _needs_moments(self) -> bool:
        return self.scaling is not None or self.importance != "parameter"

    @property
    def _balance_power(self) -> float:
        """Power of the weights that give a class and its rest equal influence."""
        if self.class_weight is None:
            return 0.0
        return 0.5 if self.class_weight == "auto" and len(self._models.mu) > 1 else 1.0

    def _standard_target(self, X: Rows, y: Array, weight: Array, keep: float) -> tuple[Array, float]:
        """Return the target, and the variance of its noise, in units of its running standard deviation."""
        w = weight if len(weight) else np.ones(len(y))
        self._target = copy.copy(self._target)
        if not self._target.update(y[:, None], w, keep):
            raise DataError("The target y is too large to be squared: rescale it.")
        y = (y - self._target.mean[0]) * self._target.inverse_scale()[0]
        centre, inverse = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.scaling is not None:
            centre = self._moments.mean
        if self.scaling == "standard":
            inverse = self._moments.inverse_scale()
        theta = self._models.mu[0] * inverse
        error = y - (X @ theta - centre @ theta + self._models.bias[0, 0])
        self._error = keep * self._error + np.array([w @ (error * error), w.sum()])
        return y, max(self._error[0] / max(self._error[1], 1e-300), _LEAST_NOISE)

    def _log_mean(self, y: Array, weight: Array, keep: float) -> float:
        """Return the logarithm of the running mean count; before any count, that of half a count."""
        self._target = copy.copy(self._target)
        self._target.update(y[:, None], weight if len(weight) else None, keep)
        total = self._target.weight
        return math.log(max(self._target.mean[0], 0.5 / total)) if total > 0.0 else 0.0

    def _refuse(self, X: Rows) -> NoReturn:
        reject_nonfinite(X, feature_names(self))
        largest = np.abs(X.data if sp.issparse(X) else X).max()
        raise DataError(
            f"X contains values up to {largest:g}, whose squares are too large to sum: rescale the features."
        )

    def _relevance(self) -> Floats:
        mu, sigma = self._models.average, self._models.sigma
        # This is w_j up to the factor 1 / (2 lambda_r).
        weights = mu * mu - float(self.uncertainty_penalty) * sigma * sigma
        if self.importance == "signal":
            weights *= self._moments.variance()
        scores: Floats
        if len(weights) == 1:
            scores = weights[0]
        else:
            scores = weights.max(axis=0) if self.class_reduce == "max" else weights.mean(axis=0)
        return scores

    def _selection(self) -> Mask:
        n = self.n_features_in_
        return self._best_of_first(n, n_to_select(self.n_features_to_select, n))

    def _best_of_first(self, n_columns: int, n: int) -> Mask:
        """Return which n of the first columns are selected; the others may not be assigned to a feature yet."""
        scores = self._relevance()
        scores = (scores if self._terms is None else self._terms.per_price(scores))[:n_columns]
        if not self._discounts:
            return top_mask(scores, n)
        candidates = np.flatnonzero(top_mask(scores, max(n, min(_CANDIDATES, n_columns))))
        if n >= len(candidates) or not self._last_rows.n_rows:
            return top_mask(scores, n)
        X, _ = self._last_rows.columns(candidates)
        kept = np.zeros(n_columns, dtype=bool)
        kept[candidates[by_discount(scores[candidates], X, n)]] = True
        return kept

    @property
    def mu_(self) -> Floats:
        """Mean of each parameter."""
        check_is_fitted(self)
        return self._models.mu

    @property
    def sigma_(self) -> Floats:
        """Standard deviation of each parameter."""
        check_is_fitted(self)
        return self._models.sigma
