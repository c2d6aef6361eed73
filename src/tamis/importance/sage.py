"""Incremental SAGE: how much of the loss of a model each feature explains.

Muschalik, M., Fumagalli, F., Hammer, B., Hullermeier, E.: iSAGE: an incremental version of SAGE for online explanation
on data streams. ECML PKDD 2023, arXiv 2303.01181; SAGE is by Covert, Lundberg and Lee, NeurIPS 2020.

At row t, features are added in a random order to the empty set. The contribution of feature j, added to the set S, is
the decrease of the loss, lambda_j = loss(h_S(x), y) - loss(h_(S + j)(x), y), where h_S(x) is the mean prediction with
the features outside S replaced by those of rows from the reservoir; for the empty set, it is the smoothed mean of the
predictions. The SAGE value is the exponentially smoothed mean of the contributions.

===========  ==================  ==================================================
symbol       name                meaning
===========  ==================  ==================================================
h            `model`             the model, which may change at any row
alpha        `half_life`         alpha = 1 - 2^(-1 / half_life)
m            `n_samples`         rows over which h_S is averaged
L            `reservoir_size`    rows in the geometric reservoir
===========  ==================  ==================================================

Deviations: means are divided by the sum of their weights (no bias towards 0 at the start). The sets of a row share
their replacement rows, so a feature that the model does not use contributes exactly 0 with marginal sampling. The empty
set is sampled like the others unless ``empty_set="mean"``. If the budget does not suffice for all features, a row
measures a window of its random order, whose start is drawn uniformly and which wraps around. Each position is then
equally likely, so the expected contribution is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, encode_labels
from tamis._validation.parameters import parameter
from tamis.importance.incremental import IncrementalImportance, Plan


@njit(strict=True)
def _faded_means(values: Array, keep: float, weight: float, sums: Array, means: Array) -> float:
    """Write the faded mean up to each row, update the faded sums, and return their weight."""
    for i in range(values.shape[0]):
        weight = keep * weight + 1.0
        for c in range(values.shape[1]):
            sums[c] = keep * sums[c] + values[i, c]
            means[i, c] = sums[c] / weight
    return weight


@dataclass(repr=False, eq=False, kw_only=True)
class IncrementalSAGE(IncrementalImportance):
    """Shapley values of the loss that the features of any model explain, over a stream.

    The values of all features sum to the loss of the mean prediction minus the loss of the model. Redundant features
    share their value, whereas permutation importance can be small for each of them.

    Parameters
    ----------
    loss : {"auto", "log", "brier", "squared", "absolute"}, default="auto"
        "log" and "brier" compare probabilities with labels (in nats, and as the sum of squared differences over the
        classes); "squared" and "absolute" compare numbers. "auto" is "log" for a model with probabilities, scores or
        classes, otherwise "squared".
    %(groups_and_half_life)s
    max_calls_per_row : int or None, default=3
        Largest number of predictions per row, including that of the row itself. All features take 1 + n_features *
        n_samples, a window of k features 1 + (k + 1) * n_samples. With None, each row measures all features. All
        predictions of a batch are made in a single call of the model.
    sampling : {"marginal", "conditional"}, default="marginal"
        Whether replacement values come from any row of the reservoir, or from one of the rows nearest in the features
        of S. With the latter, an unused feature receives a share of the value of a dependent feature.
    n_samples : int, default=1
        Number of replacement rows drawn per row; their predictions are averaged. With few samples, the values are
        inflated: for the squared loss of an additive model, by the factor 1 + 1 / n_samples.
    empty_set : {"sampled", "mean"}, default="sampled"
        The prediction without any feature: from `n_samples` replacement rows as for the other sets, or, as in the
        paper, the smoothed mean of all predictions. With the latter and few samples, an unused feature has a negative
        value.
    %(reservoir_and_seed)s

    Attributes
    ----------
    importances_ : ndarray of shape (n_features,)
        SAGE values, in units of the loss.
    variances_ : ndarray of shape (n_features,)
        Variance of the contributions at single rows.
    feature_names_ : list
        The groups, then the columns that are in no group.

    Notes
    -----
    Memory: `reservoir_size` rows, 4 numbers per feature and 1 per class. The model is not part of the state.

    References
    ----------
    Muschalik, M., Fumagalli, F., Hammer, B., Hullermeier, E.: iSAGE: an incremental version of SAGE for online
    explanation on data streams. ECML PKDD 2023, arXiv 2303.01181.

    Examples
    --------
    The model predicts the target exactly, so the values sum to its variance, 5:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 4))
    >>> sage = IncrementalSAGE(max_calls_per_row=None, n_samples=10, random_state=0)
    >>> sage.update(lambda A: 2 * A[:, 0] + A[:, 1], X, 2 * X[:, 0] + X[:, 1])
    >>> sage.importances_.round(0) + 0.0
    array([4., 1., 0., 0.])
    """

    _shares_donors = True

    _shapes = "_marginal (c) float in (-inf, inf)  _marginal_weight float in [0, inf)"

    empty_set: str = parameter("sampled", "mean", default="sampled")

    def _restart(self, n_features: int) -> None:
        super()._restart(n_features)
        self._marginal = np.zeros(0)  # faded sum of the predictions
        self._marginal_weight = 0.0

    def _merge_estimates(self, other: Self, keep: float) -> None:
        super()._merge_estimates(other, keep)
        self._marginal_weight = keep * self._marginal_weight + other._marginal_weight
        if not len(other._marginal):
            return
        # The columns are the classes in the order in which each part first observed them.
        codes, classes = np.arange(len(other._marginal)), self._classes
        if len(other._classes):
            codes, classes = encode_labels(other._classes, self._classes)
        total = np.zeros(max(len(classes), len(other._marginal)))
        total[: len(self._marginal)] = keep * self._marginal
        total[codes[: len(other._marginal)]] += other._marginal
        self._marginal = total

    def _length(self, n_features: int) -> int:
        """Return how many features a row measures."""
        budget = self.max_calls_per_row
        if budget is None or 1 + self._n_sets(n_features) * self.n_samples <= budget:
            return n_features
        return min(n_features - 1, max(1, (budget - 1) // self.n_samples - 1))

    def _n_sets(self, n_features: int) -> int:
        """Return how many sets a full order evaluates; the outputs for all features, and for "mean", are known."""
        return n_features if self.empty_set == "sampled" else n_features - 1

    def _n_evaluations(self, n_features: int) -> int:
        k = self._length(n_features)
        return self._n_sets(n_features) if k == n_features else k + 1

    def _n_draws(self, n_features: int) -> int:
        return n_features + 1

    def _plan(self, u: Floats) -> Plan:
        n, n_features = len(u), self._sums.shape[1]
        order = np.argsort(u[:, :-1], axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(n_features)[None, :], axis=1)
        k = self._length(n_features)
        if k == n_features:
            steps = np.tile(np.arange(n_features), (n, 1))
            sizes = steps[:, n_features - self._n_sets(n_features) :]
        else:
            start = np.minimum((u[:, -1] * n_features).astype(np.int64), n_features - 1)
            steps = (start[:, None] + np.arange(k)) % n_features
            # The empty set follows all features: the loss with all is known, and the next step starts with none.
            sizes = np.column_stack([steps[:, 0], (steps + 1) % n_features])
        features = np.take_along_axis(order, steps, axis=1)
        replaced = rank[:, self._group_of][:, None, :] >= sizes[:, :, None]
        return Plan(features, replaced, steps)

    def _contributions(self, plan: Plan, base: Floats, altered: Floats, y: Array) -> Floats:
        n_features = self._sums.shape[1]
        full = self._losses(base, y)[:, None]
        losses = self._losses(altered.mean(axis=2), y[:, None])
        is_mean = self.empty_set == "mean"
        empty = self._losses(self._mean_predictions(base), y)[:, None] if is_mean else losses[:, :1]
        if plan.steps.shape[1] == n_features:
            losses = np.concatenate([*[empty] * is_mean, losses, full], axis=1)
            return np.asarray(losses[:, :-1] - losses[:, 1:])
        before, after = losses[:, :-1], losses[:, 1:]
        if is_mean:
            before = np.where(plan.steps == 0, empty, before)
        return np.asarray(before - np.where(plan.steps == n_features - 1, full, after))

    def _mean_predictions(self, base: Floats) -> Floats:
        """Return the smoothed mean of the predictions up to each row, and store the last one."""
        past = np.zeros(base.shape[1])
        past[: len(self._marginal)] = self._marginal
        means = np.empty_like(base)
        self._marginal_weight = _faded_means(base, self._keep, self._marginal_weight, past, means)
        self._marginal = past
        return means
