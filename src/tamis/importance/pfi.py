"""Incremental permutation feature importance of any model.

Fumagalli, F., Muschalik, M., Hullermeier, E., Hammer, B.: Incremental permutation feature importance (iPFI): towards
online explanations on data streams. Machine Learning 112, 2023.

At row t, the values of feature j are replaced by those of a row from the reservoir. The contribution is the increase of
the loss, lambda_j = loss(h(x with x_j replaced), y) - loss(h(x), y), and the importance its exponentially
smoothed mean, phi_j <- (1 - alpha) phi_j + alpha lambda_j.

===========  ==================  ==================================================
symbol       name                meaning
===========  ==================  ==================================================
h            `model`             the model, which may change at any row
alpha        `half_life`         alpha = 1 - 2^(-1 / half_life)
L            `reservoir_size`    rows in the geometric reservoir
phi_j        `importances_`      the importance
===========  ==================  ==================================================

Deviations: the mean is divided by the sum of its weights, so the first values are not biased towards 0 (the paper's
term (1 - alpha)^t). With a budget, each row measures only some features, and all features fade with every row.
"""

from __future__ import annotations

import numpy as np

from tamis._validation import Array, Floats, Ints
from tamis._validation.parameters import parameters
from tamis.importance.incremental import IncrementalImportance, Plan
from tamis.importance.predictions import CHANGE, LOSSES


class IncrementalPFI(IncrementalImportance):
    """Permutation importance of the features of any model, over a stream.

    The importance of a feature is the increase of the loss when its value is replaced by that of another recent row. An
    unused feature has the importance 0.

    Parameters
    ----------
    loss : {"auto", "log", "brier", "squared", "absolute", "change"}, default="auto"
        "log" and "brier" compare probabilities with labels (in nats, and as the sum of squared differences over the
        classes); "squared" and "absolute" compare numbers. "auto" is "log" for a model with probabilities, scores or
        classes, otherwise "squared". Scores are converted to probabilities by the logistic function or softmax;
        predicted labels are treated as probabilities of 0 and 1, for which "brier" is the better choice. "change" needs
        no labels: the importance is the mean squared change of the predictions, summed over the classes. It remains
        high for a feature that the model relies on although it is no longer relevant.
    %(groups_and_half_life)s
    max_calls_per_row : int or None, default=3
        Largest number of predictions per row, including that of the row itself. If there are more features, those to
        measure are drawn at random. With None, each row measures all features. All predictions of a batch are made in
        a single call of the model.
    sampling : {"marginal", "conditional"}, default="marginal"
        Whether replacement values come from any row of the reservoir, or from one of the rows nearest in the other
        columns. The latter measures the contribution of a feature beyond the others, and does not evaluate the model at
        impossible rows.
    n_samples : int, default=1
        Number of replacement rows drawn per measurement; their losses are averaged.
    %(reservoir_and_seed)s

    Attributes
    ----------
    importances_ : ndarray of shape (n_features,)
        Increase of the loss, in units of the loss.
    variances_ : ndarray of shape (n_features,)
        Variance of the increase at single rows.
    feature_names_ : list
        The groups, then the columns that are in no group.

    Notes
    -----
    Memory: `reservoir_size` rows and 4 numbers per feature. The model is not part of the state.

    References
    ----------
    Fumagalli, F., Muschalik, M., Hullermeier, E., Hammer, B.: Incremental permutation feature importance (iPFI):
    towards online explanations on data streams. Machine Learning 112, 2023.

    Examples
    --------
    The model uses the first two of four features, the first one more strongly:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> pfi = IncrementalPFI(max_calls_per_row=None, random_state=0)
    >>> pfi.update(lambda A: 2 * A[:, 0] + A[:, 1], X, 2 * X[:, 0] + X[:, 1])
    >>> pfi.importances_.round(1)
    array([8.1, 1.9, 0. , 0. ])
    >>> low, high = pfi.bands()[0]
    >>> bool(low < 8 < high)
    True
    """

    _allowed = parameters(loss=(*LOSSES, CHANGE))

    def _n_evaluations(self, n_features: int) -> int:
        if self.max_calls_per_row is None:
            return n_features
        return min(n_features, max(1, (self.max_calls_per_row - 1) // self.n_samples))

    def _n_draws(self, n_features: int) -> int:
        k = self._n_evaluations(n_features)
        return k if k < n_features else 0

    def _plan(self, u: Floats) -> Plan:
        n_features = self._sums.shape[1]
        features = draw_subsets(u, n_features) if u.shape[1] else np.tile(np.arange(n_features), (len(u), 1))
        return Plan(
            features,
            np.asarray(self._group_of)[None, None, :] == features[:, :, None],
            np.zeros_like(features),
        )

    def _contributions(self, plan: Plan, base: Floats, altered: Floats, y: Array) -> Floats:
        if self.loss == CHANGE:
            return np.asarray(((altered - base[:, None, None]) ** 2).sum(axis=3).mean(axis=2))
        losses = self._losses(altered, y[:, None, None]).mean(axis=2)
        return np.asarray(losses - self._losses(base, y)[:, None])


def draw_subsets(u: Floats, n: int) -> Ints:
    """Return for each row distinct numbers in [0, n), drawn uniformly (Floyd's method).

    >>> draw_subsets(np.array([[0.0, 0.0], [0.99, 0.99]]), 3)
    array([[0, 2],
           [1, 2]])
    """
    n_rows, k = u.shape
    subsets = np.empty((n_rows, k), dtype=np.int64)
    for c in range(k):
        top = n - k + c
        draw = np.minimum((u[:, c] * (top + 1)).astype(np.int64), top)
        taken = (subsets[:, :c] == draw[:, None]).any(axis=1)
        subsets[:, c] = np.where(taken, top, draw)
    return subsets
