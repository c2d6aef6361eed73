"""CancelOut: a gate for each feature in front of a network, trained jointly on the stream.

Borisov, Haug, Kasneci: CancelOut: A Layer for Feature Selection in Deep Neural Networks, ICANN 2019. Covered: the
layer and its penalties, learned online.

===========  ===================  =================================================================================
paper        here                 meaning
===========  ===================  =================================================================================
w_j          ``_theta``           weight of the gate of feature j; the gate is open by sigmoid(w_j)
sigmoid(w)   ``scores_``          importance of the features
lambda_1     variance_reward      reward for the variance of the weights
lambda_2     weight_penalty       penalty on the size of the weights
===========  ===================  =================================================================================

A row passes the gates into a network with softplus layers and a softmax; the network, the gates and Adam's moment
estimates persist from batch to batch. Each step ascends the gradient of::

    mean_i log f_{y_i}(x_i * g) + lambda_1 Var(w / J) - lambda_2 sum_j |w_j / J| - lambda_3 sum_j g_j,    (1)
    g = sigmoid(w)

Adam (Kingma, Ba, ICLR 2015), with the gradient d of (1) and t steps so far::

    m <- .9 m + .1 d,  v <- .999 v + .001 d^2,  theta <- theta + a m' / (sqrt(v') + 1e-8),    (2)
    m' = m / (1 - .9^t),  v' = v / (1 - .999^t)

Errata of public versions, and our deviations, each with its reason:

* The versions in float-evaluation (until 2022) and in pystreamfs create a new network for each batch and train it for
  50 epochs on that batch only: earlier batches have no effect. Here the network continues to learn.
* The terms of lambda_1 and lambda_2 decrease with J^3 and J: from fifty features on they have no effect.
  float-evaluation penalises the gates themselves, which is the term of lambda_3; it closes the gates of irrelevant
  features.
* Adam moves a weight by its step size even if the gradient is small. So the gate of a constant feature, which only has
  the penalty, closes as fast as other gates open, and never ranks above them.
* No unit has an intercept. Features are scaled by their running moments, so that gates are comparable.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from tamis._validation import Array, Floats
from tamis._validation.parameters import number, parameter
from tamis.errors import DataError
from tamis.rows.fires.sampled_models import HIDDEN, Network
from tamis.rows.scaled_batches import ScaledBatches, ScaledRows

# State, for J features and K parameters, those of the gates first, then the matrices of the network:
#   _theta, _first, _second  (K,) float64   the parameters, m and v of (2)
#   _n_steps                 int            t

_KEEP_FIRST, _KEEP_SECOND, _LEAST = 0.9, 0.999, 1e-8


@dataclass(eq=False, repr=False)
class CancelOut(ScaledBatches):
    """Selects the features with the most open gates of a neural network that learns from the stream.

    Each feature is multiplied by a gate, the sigmoid of a weight, before it enters the network. An open gate has a
    small cost. The gates of features that help to separate the classes therefore open, and the others close. The
    network is nonlinear, so it can detect features that are relevant only in combination.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    hidden : tuple of int, default=(50, 50)
        Units of each hidden layer of the network, from 1 to 10000 each.
    n_steps : int in [1, 1000], default=5
        Steps on each batch.
    learning_rate : float in (0, 10], default=0.01
        Step of Adam (a).
    gate_penalty : float in [0, inf), default=0.001
        lambda_3: the cost of an open gate.
    variance_reward : float in [0, inf), default=0.2
        lambda_1: the reward for the variance of the gate weights.
    weight_penalty : float in [0, inf), default=0.1
        lambda_2: the penalty on the size of these weights.
    scaling : {"standard", None}, default="standard"
        Whether features are centred and scaled by their running mean and standard deviation.
    batch_size : int, default=100
        Rows per batch: larger batches are split into parts of this size.
    random_state : int, RandomState or None, default=0
        Seed of the network's first weights.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        How far each gate is open, from 0 to 1. All zero while `warming_up_`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If rows, labels or weights are invalid, or a step has no finite gradient; the model is left unchanged.

    Notes
    -----
    The method is defined per batch. Memory: 24 bytes for each of (n_features + 50) 50 parameters and a few more. A
    step costs about six operations per row and parameter.

    References
    ----------
    Borisov, Haug, Kasneci (2019). CancelOut: A Layer for Feature Selection in Deep Neural Networks. ICANN.
    Equations (1) and (2) of the source file's header.

    Examples
    --------
    The class is determined by whether features 3 and 7 have the same sign; neither is relevant by itself.

    >>> import numpy as np
    >>> from tamis import CancelOut
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 12))
    >>> y = np.where(X[:, 3] * X[:, 7] > 0, "same", "other")
    >>> CancelOut(n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    _shapes = """
        _size (=k)
        _theta (k) finite
        _first (k) finite
        _second (k) float in [0, inf)
        _n_steps in [0, 2**62)
    """

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    hidden: tuple[int, ...] = parameter(HIDDEN, default=(50, 50))
    n_steps: int = 5
    learning_rate: float = parameter(number("(0, 10]"), default=0.01)
    gate_penalty: float = parameter(number("[0, inf)"), default=0.001)
    variance_reward: float = parameter(number("[0, inf)"), default=0.2)
    weight_penalty: float = parameter(number("[0, inf)"), default=0.1)

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._n_steps = 0
        self._theta = self._first = self._second = np.zeros(0)
        self._make_room(self._most_outputs)

    def _layout(self, n_outputs: int) -> list[tuple[int, ...]]:
        """Return the shapes of the gates' weights and of the matrices."""
        network = Network(tuple(self.hidden))
        return [(self.n_features_in_,), *network.shapes(self.n_features_in_, n_outputs)]

    def _make_room(self, n_outputs: int) -> None:
        rng, shapes = np.random.default_rng((self._seed, n_outputs)), self._layout(n_outputs)
        drawn = [rng.uniform(-1.0, 1.0, size=shape) / math.sqrt(shape[0]) for shape in shapes[1:]]
        theta = self._copy_parameters(self._theta, [np.zeros(shapes[0]), *drawn])
        first, second = (
            self._copy_parameters(flat, [np.zeros(shape) for shape in shapes])
            for flat in (self._first, self._second)
        )
        self._theta, self._first, self._second = theta, first, second
        self._n_outputs, self._size = n_outputs, len(theta)

    def _learn_batch(self, rows: ScaledRows, y: Array, weight: Floats, total: float) -> None:
        with np.errstate(all="ignore"):
            for _ in range(self.n_steps):
                self._adam_step(self._gradient(rows, y, weight))

    def _gradient(self, rows: ScaledRows, y: Array, weight: Floats) -> Floats:
        """Return the gradient of (1)."""
        w, first, *rest = self._parts(self._theta)
        gates = 1.0 / (1.0 + np.exp(-w))
        gated = gates[:, None] * first  # x * gate, times the first matrix
        gradients = Network(tuple(self.hidden)).gradients(
            rows, [one[None] for one in (gated, *rest)], y, weight
        )
        of_gates = (first * gradients[0][0]).sum(axis=1) - float(self.gate_penalty)
        n = len(w)
        of_w = of_gates * gates * (1.0 - gates) - float(self.weight_penalty) * np.sign(w) / n
        of_w += float(self.variance_reward) * 2.0 * (w - w.mean()) / n**3
        return np.concatenate(
            [of_w, (gates[:, None] * gradients[0][0]).ravel(), *(one.ravel() for one in gradients[1:])]
        )

    def _adam_step(self, slopes: Floats) -> None:
        t = self._n_steps + 1
        first = _KEEP_FIRST * self._first + (1.0 - _KEEP_FIRST) * slopes  # (2)
        second = _KEEP_SECOND * self._second + (1.0 - _KEEP_SECOND) * slopes * slopes
        size = np.sqrt(second / (1.0 - _KEEP_SECOND**t)) + _LEAST
        theta = self._theta + float(self.learning_rate) * first / (1.0 - _KEEP_FIRST**t) / size
        if not np.isfinite(theta @ theta + second.sum()):
            raise DataError("A step has no finite gradient: rescale the features, or lower learning_rate.")
        self._theta, self._first, self._second, self._n_steps = theta, first, second, t

    def _relevance(self) -> Floats:
        return 1.0 / (1.0 + np.exp(-self._theta[: self.n_features_in_]))
