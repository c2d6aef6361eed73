"""FIRES for models that are not linear: networks, soft decision trees, and any module of PyTorch.

Haug, Pawelczyk, Broelemann, Kasneci: Leveraging Model Inherent Variable Importance for Stable Online Feature
Selection, KDD 2020, Section 4.4. The linear models are :class:`tamis.rows.fires.FIRES`.

================  ==================  ======================================================================
paper             here                meaning
================  ==================  ======================================================================
mu_k, sigma_k     ``_mu``, ``_sigma`` mean and standard deviation of parameter k
L                 n_samples           samples of the parameters for each step
alpha             learning_rate       step of the stochastic gradient ascent on the log marginal likelihood
lambda_s          uncertainty_penalty weight of the uncertainty in the score
================  ==================  ======================================================================

Each step draws theta^(l) = mu + sigma r^(l), r^(l) ~ N(0, 1), l = 1, ..., L, the same for all rows of the batch. With
f_i^(l) the probability that the model with theta^(l) gives the label of row i::

    log P_i = log 1/L sum_l f_i^(l)                                                        (1)
    s_il = f_i^(l) / sum_m f_i^(m)                                                         (2)
    d/d mu_k    mean_i log P_i = mean_i sum_l s_il d log f_i^(l) / d theta_k^(l)           (3)
    d/d sigma_k mean_i log P_i = mean_i sum_l s_il d log f_i^(l) / d theta_k^(l) r_k^(l)   (4)

The likelihood of a number is normal about the one output, f_i^(l) = exp(-(y_i - o_i^(l))^2 / 2 v) (7); y is in standard
deviations of the target so far, v is the faded mean squared error of the model at mu, and the step is alpha v.

A feature j has a parameter for each of H units, from which its score is computed::

    "rms"    mean_h mu_hj^2 - lambda_s mean_h sigma_hj^2                                   (5)
    "paper"  (mean_h mu_hj + c)^2 - lambda_s (mean_h sigma_hj + d)^2                       (6)

c and d are sums of the means of the later layers of a network, 0 for a tree.

Errata and deviations, each with its reason:

* The authors' code draws r from N(0, 2 / (J + C)), sums the gradients over 25 steps of another optimiser, and
  divides the gradient of a logarithm by P once more. Here (3) and (4) are the gradients of (1).
* In (6) units of opposite sign cancel, and c, equal for all features, changes the ranking once it is squared. (5) has
  neither; it is the default.
* With sigma = 1, as published, the noise of a sampled hidden layer is ten times its initial mean, and the signs of the
  gradients of the preceding layer change from step to step. The default is a smaller initial sigma.
* Without intercepts and with softplus, a network's outputs grow from layer to layer, and long steps diverge: by
  default, gradients are clipped to the norm `longest_gradient`.
* Means of parameters linked to features are initialised to 0, so that constant features never rank above others; those
  of later layers with small random numbers, to break the symmetry of the units.
* The paper covers classification only. The curvature of (7), 1 / v, is unbounded: its step is in units of v, so that a
  constant step does not overshoot once the model fits well.
* The noise r of a feature does not depend on the number of features after it, so a feature that appears late is
  equivalent to one that was 0 in all rows before: its gradient is 0.
* :meth:`MonteCarloFIRES.paper` restores the published defaults.
"""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats
from tamis._validation.parameters import integer, number, parameter, with_methods
from tamis.base.declarations import Claims, Inputs
from tamis.errors import DataError
from tamis.rows.fires.sampled_models import HIDDEN, Network, SampledModel, SoftTree
from tamis.rows.scaled_batches import ScaledBatches, ScaledRows
from tamis.summaries.moments import RunningMoments

# Rows after which a squared error counts half: errors shrink while the model learns.
_ERROR_HALF_LIFE = 2000.0
# Relative to the variance of the target; with a noise of 0, one sample would have all of the weight.
_LEAST_NOISE = 1e-6

# State, for K parameters, those of a network or a tree that are linked to the J features first:
#   _mu, _sigma              (K,) float64
#   _moments                 of the features, for scaling
#   _n_outputs, _n_drawn     classes that the model distinguishes; steps so far, which number the samples
#   _target, _error (2,)     of a numeric target: its moments; faded sum of squared errors at mu, and of their weights


@dataclass(eq=False, repr=False)
class MonteCarloFIRES(ScaledBatches):
    """Selects features with large and certain parameters in a Bayesian network, soft tree or PyTorch module.

    The parameters of the model are independent normal random variables. Each batch moves their means and standard
    deviations a step up the log marginal likelihood of its labels, which is estimated from a few samples of all
    parameters. The score of a feature combines the parameters linked to it, one for each unit of the first layer or
    each node of the tree. Unlike a linear model, this can detect features that are relevant only in combination.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        M: how many features to keep, or which fraction of them, in (0, 1].
    model : {"network", "tree"} or torch.nn.Module, default="network"
        A network with softplus layers, a soft decision tree, or a module that takes rows of shape (n_rows,
        n_features) and returns logits of shape (n_rows, n_classes), or numbers of shape (n_rows, 1). The features of a
        module are linked to its first parameter of shape (n_units, n_features).
    hidden : tuple of int, default=(100, 100, 100)
        Units of each hidden layer of the network, from 1 to 10000 each.
    depth : int in [1, 10], default=3
        Depth of the tree: it has ``2**depth - 1`` nodes.
    node_penalty : float in [0, inf), default=0.01
        Penalty on a node of the tree that does not send half of the rows to each side.
    n_samples : int in [1, 100], default=5
        L: samples of all parameters for each step.
    n_steps : int in [1, 1000], default=1
        Steps on each batch, each with new samples.
    aggregation : {"rms", "paper"}, default="rms"
        How the parameters of a feature are combined into its score: mean of squares, or squared mean as published.
    scaling : {"standard", None}, default="standard"
        Whether features are centred and scaled by their running mean and standard deviation. CSR rows stay sparse.
    learning_rate : float in (0, 1e6], optional
        alpha: step of the gradient ascent. By default 0.3, and 1 for a tree.
    longest_gradient : float in (0, inf) or None, default=1.0
        Gradients are clipped to this norm; None: no clipping.
    sigma : float in (0, inf), default=0.03
        Standard deviation of each parameter before the first row.
    uncertainty_penalty : float in [0, inf), default=0.01
        lambda_s.
    task : {"classification", "regression"}, default="classification"
        Whether the target is a class or a number.
    batch_size : int, default=100
        Rows per batch: larger batches are split into parts of this size.
    random_state : int, RandomState or None, default=0
        Seed of the samples.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Current relevance; larger is more relevant. All zero while `warming_up_`.
    mu_, sigma_ : ndarray of shape (n_features, n_units), float64
        Mean and standard deviation of the parameters that are linked to features.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If rows, labels or weights are invalid, or a step has no finite gradient; the model is left unchanged.

    Notes
    -----
    The method is defined per batch. Memory: 16 bytes per parameter (a network has at least 100 n_features + 20,000),
    and for each step 32 bytes per parameter and sample. A step costs about 6 n_samples n_rows operations per parameter.
    `tamis.save` rejects a model with a PyTorch module, because a module is code.

    References
    ----------
    Haug, Pawelczyk, Broelemann, Kasneci (2020). Leveraging Model Inherent Variable Importance for Stable Online
    Feature Selection. KDD. Equations (1) to (6) of the source file's header.
    Frosst, Hinton (2017). Distilling a Neural Network Into a Soft Decision Tree. arXiv:1711.09784.

    Examples
    --------
    The class is determined by whether features 3 and 7 have the same sign; neither is relevant by itself.

    >>> import numpy as np
    >>> from tamis import FIRES, MonteCarloFIRES
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 12))
    >>> y = np.where(X[:, 3] * X[:, 7] > 0, "same", "other")
    >>> MonteCarloFIRES(2, model="tree", learning_rate=3, n_steps=5).fit(X, y).get_support(indices=True)
    array([3, 7])
    >>> FIRES(2).fit(X, y).get_support(indices=True)  # a linear model sees neither
    array([ 9, 11])
    """

    accepts = Inputs(targets=("binary", "multiclass", "regression"))

    _shapes = """
        _size (=k)
        _mu (k) float in [-1e150, 1e150]
        _sigma (k) float in [0, 1e150]
        _n_drawn in [0, 2**62)
        _moments (its own) fill own  _target?.mean (1)  _target?.m2 (1)
        _error? (2) float in [0, inf)
    """

    def _claims(self) -> Claims:
        is_scaled = self.scaling is not None
        can_grow = isinstance(self.model, str)
        return replace(
            self.claims, invariant_to_shifts=is_scaled, ignores_constants=is_scaled, widens=can_grow
        )

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    model: Any = parameter(
        with_methods("a torch.nn.Module", "named_parameters", "forward"), "network", "tree", default="network"
    )
    hidden: tuple[int, ...] = parameter(HIDDEN, default=(100, 100, 100))
    depth: int = parameter(integer("[1, 10]"), default=3)
    node_penalty: float = parameter(number("[0, inf)"), default=0.01)
    n_samples: int = parameter(integer("[1, 100]"), default=5)
    n_steps: int = 1
    aggregation: str = parameter("rms", "paper", default="rms")
    learning_rate: float | None = parameter(number("(0, 1e6]"), None, default=None)
    longest_gradient: float | None = parameter(number("(0, inf)"), None, default=1.0)
    sigma: float = parameter(number("(0, inf)"), default=0.03)
    uncertainty_penalty: float = parameter(number("[0, inf)"), default=0.01)
    task: str = "classification"

    @classmethod
    def paper(cls, n_features_to_select: int | float = 0.1, **parameters: Any) -> Self:
        """Return the published method: unscaled features, an initial sigma of 1, steps of 0.01, squared means.

        Parameters
        ----------
        n_features_to_select : int or float, default=0.1
        **parameters
            Any other parameter of the class.

        Examples
        --------
        >>> MonteCarloFIRES.paper(10, model="tree")
        MonteCarloFIRES(aggregation='paper', learning_rate=0.01, longest_gradient=None,
                        model='tree', n_features_to_select=10, scaling=None, sigma=1.0)
        """
        published: dict[str, Any] = {
            "scaling": None, "sigma": 1.0, "learning_rate": 0.01, "longest_gradient": None, "aggregation": "paper",
        }  # fmt: skip
        return cls(n_features_to_select, **{**published, **parameters})

    def _base(self) -> SampledModel:
        if isinstance(self.model, str):
            is_tree = self.model == "tree"
            return SoftTree(self.depth, float(self.node_penalty)) if is_tree else Network(tuple(self.hidden))
        from tamis.rows.fires.torch_model import TorchModel

        return TorchModel(self.model, self.n_features_in_)

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._n_drawn = 0
        self._mu = self._sigma = np.zeros(0)
        if self._is_regression():
            self._target, self._error = RunningMoments(1), np.zeros(2)
        self._make_room(self._most_outputs)

    def _widen(self, n_features: int) -> None:
        new = n_features - self.n_features_in_
        self._mu, self._sigma = (
            np.concatenate(
                [
                    np.pad(parts[0], ((0, new), (0, 0)), constant_values=fill).ravel(),
                    *map(np.ravel, parts[1:]),
                ]
            )
            for parts, fill in ((self._parts(self._mu), 0.0), (self._parts(self._sigma), float(self.sigma)))
        )
        self._size = len(self._mu)
        super()._widen(n_features)

    def _forget_columns(self, columns: NDArray[np.intp]) -> None:
        self._mu, self._sigma = self._mu.copy(), self._sigma.copy()
        model = self._base()
        model.units(self._parts(self._mu))[columns] = 0.0
        model.units(self._parts(self._sigma))[columns] = float(self.sigma)
        super()._forget_columns(columns)

    def _layout(self, n_outputs: int) -> list[tuple[int, ...]]:
        return self._base().shapes(self.n_features_in_, n_outputs)

    def _make_room(self, n_outputs: int) -> None:
        rng = np.random.default_rng((self._seed, n_outputs))
        means = self._base().means(self.n_features_in_, n_outputs, rng)
        deviations = [np.full(part.shape, float(self.sigma)) for part in means]
        self._mu, self._sigma = (
            self._copy_parameters(self._mu, means),
            self._copy_parameters(self._sigma, deviations),
        )
        self._n_outputs, self._size = n_outputs, len(self._mu)

    def _learn_batch(self, rows: ScaledRows, y: Array, weight: Floats, total: float) -> None:
        model, noise = self._base(), None
        with np.errstate(all="ignore"):
            if self._is_regression():
                y, noise = self._standard_target(model, rows, y, weight, total)
            for _ in range(self.n_steps):
                self._step(model, rows, y, weight, noise)

    def _standard_target(
        self, model: SampledModel, rows: ScaledRows, y: Array, weight: Floats, total: float
    ) -> tuple[Array, float]:
        """Return the target in standard deviations of the target so far, and the variance of its errors, in those."""
        self._target = copy.copy(self._target)
        if not self._target.update(y[:, None], weight * total):
            raise DataError("The target y is too large to be squared: rescale it.")
        y = (y - self._target.mean[0]) * self._target.inverse_scale()[0]
        errors = y - model.outputs(rows, self._parts(self._mu[None]))[0, :, 0]
        keep = 0.5 ** (total / _ERROR_HALF_LIFE)
        self._error = keep * self._error + total * np.array([weight @ (errors * errors), 1.0])
        return y, max(float(self._error[0] / self._error[1]), _LEAST_NOISE)

    def _draw(self) -> Floats:
        """Return the noise of each parameter, (n_samples, K); that of a feature does not depend on later features."""
        rng = np.random.default_rng((self._seed, self._n_outputs, self._n_drawn))
        if not isinstance(self.model, str):
            return rng.standard_normal((self.n_samples, self._size))
        n_linked = self._parts(self._mu)[0].size
        of_rest = rng.standard_normal((self.n_samples, self._size - n_linked))
        of_features = rng.standard_normal(
            (self.n_features_in_, self.n_samples, n_linked // self.n_features_in_)
        )
        return np.hstack([of_features.transpose(1, 0, 2).reshape(self.n_samples, n_linked), of_rest])

    def _step(
        self, model: SampledModel, rows: ScaledRows, y: Array, weight: Floats, noise: float | None
    ) -> None:
        """Move mu and sigma one step along (3) and (4)."""
        r = self._draw()
        gradients = model.gradients(rows, self._parts(self._mu + self._sigma * r), y, weight, noise)
        slopes = np.concatenate([part.reshape(self.n_samples, -1) for part in gradients], axis=1)
        of_mu, of_sigma = slopes.sum(axis=0), (slopes * r).sum(axis=0)
        length = math.sqrt(of_mu @ of_mu + of_sigma @ of_sigma)
        rate = float(self.learning_rate or (1.0 if isinstance(model, SoftTree) else 0.3))
        if self.longest_gradient is not None:
            rate /= max(1.0, length / self.longest_gradient)
        mu, sigma = self._mu + rate * of_mu, np.maximum(self._sigma + rate * of_sigma, 0.0)
        if not np.isfinite(length + mu @ mu + sigma @ sigma):
            raise DataError("A step has no finite gradient: rescale the features, or lower learning_rate.")
        self._mu, self._sigma = mu, sigma
        self._n_drawn += 1

    def _relevance(self) -> Floats:
        penalty, model = float(self.uncertainty_penalty), self._base()
        if self.aggregation == "rms":  # (5)
            return (self.mu_**2).mean(axis=1) - penalty * (self.sigma_**2).mean(axis=1)
        mu, sigma = (
            model.units(parts).mean(axis=1) + model.shift(parts)
            for parts in (self._parts(self._mu), self._parts(self._sigma))
        )
        return np.asarray(mu**2 - penalty * sigma**2, dtype=np.float64)  # (6)

    @property
    def mu_(self) -> Floats:
        """Mean of the parameters that are linked to features."""
        check_is_fitted(self)
        return self._base().units(self._parts(self._mu)).copy()

    @property
    def sigma_(self) -> Floats:
        """Standard deviation of the parameters that are linked to features."""
        check_is_fitted(self)
        return self._base().units(self._parts(self._sigma)).copy()
