"""F-ETANA: ETANA's model, with a half-space per class and stage instead of dynamic programming.

Liyanage, Zois, Chelmis: Dynamic Instance-Wise Joint Feature Selection and Classification, IEEE TAI 2(2), 2021
(preprint 2004.10245), as implemented in its authors' program. The region of beliefs in which class i is declared is
convex; a vector theta_ik per class and stage approximates it: stop as soon as theta_ik . pi_k < 0 for some i.

================  ===========================  =====================================================================
paper             here                         meaning
================  ===========================  =====================================================================
theta_ik          ``thresholds_``              half-space of class i at stage k
T                 `n_iterations`               steps of the stochastic approximation of each class
mu, nu            `perturbation`, 0.2          b_t = mu / (t + 1)^nu, perturbation of theta that estimates the slope
eps, zeta, kappa  `learning_rate`, 0.5, 0.602  a_t = eps / (t + 1 + zeta)^kappa, the step
================  ===========================  =====================================================================

For each class, a row of that class is drawn and walked twice (simultaneous perturbation, d of random signs)::

    g = [S(theta + b_t d) - S(theta - b_t d)] / (2 b_t) d,    theta <- theta - a_t g                  (1)

where S is the cost of the walk: the features up to the first k with theta_k . pi_k < 0, and Q_i . pi_k there.

Deviations, each with its reason; :meth:`FETANA.published` takes the published choices:

* From theta = 1 the first test fails for every belief and the slope is 0 in most draws: the program usually ends in
  "never stop". The start here is "stop when pi_i > 0.85", stricter for frequent classes, with matching step sizes.
* The program ends at the first slope below 1e-5, that is, when both walks first stop at the same stage.
* If no test fires, the program draws a random label; here the label always has the lowest expected cost.
* Stages that neither walk reaches have no slope and are unchanged, rather than moved at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tamis._docstrings import fill_docstring
from tamis._kernels import njit
from tamis._validation import Array, Floats, Mask, Rows
from tamis._validation.parameters import integer, number, parameter
from tamis.base import PriceList
from tamis.cells.binned_classifier import SHARED_DOCS
from tamis.cells.bins import Bins
from tamis.cells.etana import Independent

_SPARE = 1 << 16  # random signs beyond those of one walk


@njit(strict=True)
def _walk(
    theta: Array, move: float, signs: Array, likelihood: Array, row: Array, belief: Array, price: Array,
    Q_i: Array,
) -> tuple[float, int]:  # fmt: skip
    """Return the cost of a row under theta + move * signs, and the number of stages tested."""
    K, L = theta.shape
    pi, cost, tested = belief.copy(), 0.0, 0
    for k in range(K):
        tested = k + 1
        dot = 0.0
        for c in range(L):
            dot += (theta[k, c] + move * signs[k, c]) * pi[c]
        if dot < 0.0:
            break
        cost += price[k]
        if row[k] >= 0:
            total = 0.0
            for c in range(L):
                pi[c] *= likelihood[k, row[k], c]
                total += pi[c]
            for c in range(L):
                pi[c] /= total
    for c in range(L):
        cost += Q_i[c] * pi[c]
    return cost, tested


@njit(strict=True)
def _approximate(
    theta: Array, rows: Array, drawn: Array, draws: Array, offset: Array, likelihood: Array, belief: Array,
    price: Array, Q_i: Array, perturbation: float, learning_rate: float, patience: int,
) -> int:  # fmt: skip
    """Update theta by gradient descent; return the number of steps."""
    flat = 0
    for t in range(len(drawn)):
        step = learning_rate / (t + 1.5) ** 0.602
        reach = perturbation / (t + 1.0) ** 0.2
        signs = draws[offset[t] : offset[t] + len(theta)]
        row = rows[drawn[t]]
        up, n_up = _walk(theta, reach, signs, likelihood, row, belief, price, Q_i)
        down, n_down = _walk(theta, -reach, signs, likelihood, row, belief, price, Q_i)
        slope = (up - down) / (2.0 * reach)
        for k in range(max(n_up, n_down)):
            for c in range(theta.shape[1]):
                theta[k, c] -= step * slope * signs[k, c]  # (1)
        flat = flat + 1 if slope == 0.0 else 0
        if patience > 0 and flat >= patience:
            return t + 1
    return len(drawn)


@fill_docstring(SHARED_DOCS)
@dataclass(eq=False, repr=False, kw_only=True)
class FETANA(Independent):
    """Acquires features in a fixed order, as ETANA does, and stops by half-spaces learned from the rows.

    Parameters
    ----------
    %(costs)s
    %(calibrated_budgets)s
    spend : {"worth", "all"}, default="worth"
        "all": acquire every column within `budget`, up to 40, for every row. Requires `calibrate`.
    n_bins : int, default=4
        V: number of bins of each column, at least 2.
    binning : {"quantile", "width"}, default="quantile"
        Bins of equal numbers of rows, or of equal width as published.
    prior : {"empirical", "uniform"}, default="empirical"
        The class probabilities before any value is acquired: the class frequencies, or uniform.
    confidence : float or None, default=0.85
        Training starts from the rule "stop when the probability of class i exceeds this", in (0, 1), or the midpoint
        between the class frequency and 1 if that is larger. None: from theta = 1, as published.
    perturbation : float, default=0.2
        mu, the size of a perturbation of theta, in [1e-12, inf).
    learning_rate : float, default=0.0167
        eps, the step of the training, in (0, inf).
    n_iterations : int, default=4000
        T: number of rows drawn for each class.
    patience : int, default=0
        Stop training after this many slopes of 0 in a row. 0: never. The authors' program uses 1.
    threshold : {"chance", "all"}, default="chance"
        Which columns are used. "chance": those that are relevant to the class, at a false discovery rate of 0.1. "all":
        every column, as published.
    order : {"auto", "spread", "mrmr"}, default="auto"
        The order of the columns. "spread", as published: by their variation between the classes. "mrmr": minimum
        redundancy and maximum relevance, as :class:`tamis.FixedSubset`. "auto": "mrmr", unless the published one
        costs significantly less on held-out rows; without `calibrate`, as published.
    max_features : int, optional
        Use at most this many of the columns, the first in order.
    %(calibrate)s
    classifier : scikit-learn classifier with `predict_proba`, optional
        A classifier that decides instead, and whose probabilities determine whether the next value is worth its price;
        see :class:`tamis.cells.masked.Masked`. Gradient boosting accepts missing values; for other classifiers, they
        are replaced by means. Requires `calibrate`.
    %(categorical)s
    random_state : int, optional
        Seed of the sampled rows and signs.

    Attributes
    ----------
    %(attributes)s
    order_ : {"spread", "mrmr"}
        The order used.
    decided_by_ : str
        The name of the method, or what the calibration chose in its place.
    thresholds_ : ndarray of shape (n_classes, K, n_classes)
        theta.
    n_iter_ : ndarray of shape (n_classes,), int
        Number of steps for each class.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    Training takes O(n_iterations K n_classes) for each class, independent of the number of bins.

    %(memory)s

    References
    ----------
    Liyanage, Zois, Chelmis (2021). Dynamic Instance-Wise Joint Feature Selection and Classification.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FETANA
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1500)
    >>> X = rng.normal(size=(1500, 30))
    >>> X[:, :10] += 1.5 * y[:, None]
    >>> model = FETANA(cost=0.01, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9), bool(model.n_features_used_.mean() < 6)
    (True, True)
    """

    _shapes = 'thresholds_ (*, c, k) finite  n_iter_ (k) any "only reported"'

    confidence: float | None = parameter(number("(0, 1)"), None, default=0.85)
    perturbation: float = parameter(number("[1e-12, inf)"), default=0.2)
    learning_rate: float = parameter(number("(0, inf)"), default=0.0167)
    n_iterations: int = parameter(integer("[1, 10000000]"), default=4000)
    patience: int = parameter(integer("[0, inf)"), default=0)

    @classmethod
    def published(cls, cost: float | Array | Mapping[str, float] | PriceList = 0.01, **changes: Any) -> Self:
        """Return the published method; `changes` override its parameters."""
        settings = {
            "n_bins": 3, "binning": "width", "prior": "uniform", "threshold": "all", "order": "spread",
            "confidence": None, "perturbation": 2.0, "learning_rate": 0.1667, "n_iterations": 100_000, "patience": 1,
            "calibrate": False,
        }  # fmt: skip
        return cls(cost, **{**settings, **changes})

    def _learn_model(self, X: Rows, y: Array, bins: Bins, tables: Array) -> None:
        own = self._learn_tables(X, y, bins, tables)
        K, L = len(self.candidates_), len(self.classes_)
        if not K:  # nothing can be acquired
            self.thresholds_, self.n_iter_ = np.empty((L, 0, L)), np.zeros(L, dtype=np.int64)
            return
        likelihood = np.ascontiguousarray(np.stack([table[:, :, 0].T for table in own]))
        price = self._stage_prices()
        rng = np.random.default_rng(self.random_state)
        self.thresholds_ = np.empty((L, K, L))
        self.n_iter_ = np.empty(L, dtype=np.int64)
        values = X[:, self.candidates_]
        codes = self._bins.codes(np.asarray(values.toarray() if hasattr(values, "toarray") else values))
        # One long array of random signs, read at a different offset in each step, since K signs are rarely needed.
        draws = np.empty((K + _SPARE, L))
        draws[:, self._class_order] = rng.choice([-1.0, 1.0], (K + _SPARE, L))
        for i in self._class_order:
            self.thresholds_[i] = self._initial_theta(i)
            mine = np.flatnonzero(y == i)
            self.n_iter_[i] = _approximate(
                self.thresholds_[i], codes[mine], rng.integers(0, len(mine), self.n_iterations), draws,
                rng.integers(0, _SPARE, self.n_iterations), likelihood, self._model_prior(), price, self._Q[i],
                float(self.perturbation), float(self.learning_rate), self.patience,
            )  # fmt: skip

    def _initial_theta(self, i: int) -> Floats:
        """Return theta of class i before the first step: stricter for a frequent class."""
        L = len(self.classes_)
        if self.confidence is None:
            return np.ones(L)
        return max(self.confidence, (1.0 + self._model_prior()[i]) / 2.0) - np.eye(L)[i]

    def _should_continue(self, k: int, posterior: Floats, values: Array) -> Mask:
        return np.all(posterior @ self.thresholds_[:, k].T >= 0.0, axis=1)
