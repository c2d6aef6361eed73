"""The model that decides for rows with values that were known without being requested.

A model trained on walks has seen only the sets of values that result from its own order. For any other set, boosted
trees extrapolate: with one value of the segment data known out of order, their log loss exceeds that of the class
frequencies. A second model therefore decides for such rows. It is trained on random subsets of the columns: each row
has a random order, which for half of the rows starts in the order of acquisition. Rows with only requested values are
decided by the first model, so their decisions do not change.

The weights of the evidence depend on the number of known values, because a weight that suits eight values is too large
or too small for one. They maximise the likelihood of held-out rows with 1, 2, 4 and 8 known values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints
from tamis.cells.discriminant import posterior_of
from tamis.cells.ensemble import EvidenceModel, calibrate_evidence, evidence_by_kind, fit_evidence_model
from tamis.cells.policy_selection import stratified_folds

_COLUMNS = 64  # largest number of columns: a discriminant analysis has four features for each
_SPARSE = 4  # half of the rows add a column in every step, half in every fourth, for frequent small subsets
_HELD = 5  # number of folds, one of which is held out for the weights


class AnyOrder:
    """Class probabilities from any subset of the values.

    Parameters
    ----------
    model : EvidenceModel
        Fitted to random subsets of the columns.
    weights : ndarray of shape (n_levels, n_kinds), float64
        Weights of its evidence, for 1, 2 to 3, 4 to 7 and so on known values.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 3)) + [0, 1, 2] * y[:, None]
    >>> model = AnyOrder.fit("ensemble", X, y, n_bins=4, n_classes=2, classifier=None, random_state=0)
    >>> model.posterior(np.array([[0.0, np.nan, np.nan], [np.nan, np.nan, 3.0]])).round(1)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    _state_spec = Shapes(
        "n_levels (=l)  model.n_kinds? (=m)  weights (l, m) float in [0, 2]  model (its own)"
    )

    def __init__(self, model: EvidenceModel, weights: Floats) -> None:
        self.model, self.weights = model, weights

    @classmethod
    def fit(
        cls, kind: str, values: Floats, y: Array, *, n_bins: int, n_classes: int, classifier: Any,
        sizes: Ints | None = None, random_state: int | None = None,
        origin: Ints | None = None,
    ) -> AnyOrder:  # fmt: skip
        """Return the model of the first 64 columns.

        Parameters
        ----------
        kind, n_bins, n_classes, classifier, sizes
            As for :func:`tamis.cells.ensemble.fit_evidence_model`.
        values : ndarray of shape (n_rows, K)
            In the order of acquisition; NaN where missing.
        y : ndarray of shape (n_rows,), int
        random_state : int, optional
            Seed of the subsets.
        origin : ndarray of shape (n_rows,), int, optional
            The original row of each copy.
        """
        values = values[:, :_COLUMNS]
        sizes = None if sizes is None else sizes[:_COLUMNS]
        orders = subset_orders(len(values), values.shape[1], np.random.default_rng(random_state))
        held = stratified_folds(y, _HELD, origin) == 0
        learned = np.ones(len(y), dtype=bool) if held.all() else ~held
        settings: dict[str, Any] = {"n_bins": n_bins, "n_classes": n_classes, "classifier": classifier}
        model = fit_evidence_model(
            kind, values[learned], y[learned], orders[learned], sizes=sizes, **settings
        )
        n_kinds = len(evidence_by_kind(model, values[:1]))
        steps = [2**level for level in range(_n_levels(values.shape[1]))]
        weights = np.zeros((len(steps), n_kinds))
        if held.any() and not held.all() and values.shape[1]:
            dense = np.argsort(np.random.default_rng(random_state).random(values[held].shape), axis=1)[
                :, : steps[-1]
            ]
            evidence = evidence_by_kind(model, values[held], dense)
            prior = np.tile(model.prior, (int(held.sum()), 1))
            for level, step in enumerate(steps):
                weights[level] = calibrate_evidence(evidence[:, [0, step]], prior, y[held])[1]
        return cls(model, weights)

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return self.model.n_columns

    @property
    def n_levels(self) -> int:
        """Number of levels of known values with separate weights."""
        return _n_levels(self.n_columns)

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown."""
        return self.weighted(evidence_by_kind(self.model, values)[:, -1], (~np.isnan(values)).sum(axis=1))

    def weighted(self, evidence: Floats, n_known: Array) -> Floats:
        """Return P(class) from the evidence of n_known values, shape (n_kinds, n, ..., n_classes)."""
        known = np.maximum(n_known, 1)
        level = np.minimum(np.log2(known).astype(np.int64), len(self.weights) - 1)
        posteriors = np.empty(evidence.shape[1:])
        for at in np.unique(level):
            mine = level == at
            posteriors[mine] = posterior_of(evidence[:, mine], self.model.prior, self.weights[at])
        return posteriors

    def partial_fit(self, values: Floats, y: Array, fading: float) -> AnyOrder:
        """Return the model updated with more rows; the weights are unchanged."""
        return AnyOrder(self.model.partial_fit(values, y, fading), self.weights)


def _n_levels(n_columns: int) -> int:
    return min(int(np.log2(max(n_columns, 1))) + 1, 4)


def subset_orders(n: int, K: int, rng: np.random.Generator) -> Ints:
    """Return a random order of the columns for each row, shape (n, K); -1 where a step adds none.

    Half of the rows begin with some of the first columns in order, like a row for which these were requested.

    >>> subset_orders(4, 4, np.random.default_rng(0))
    array([[ 0,  1,  2,  3],
           [ 0, -1, -1, -1],
           [ 3,  0,  2,  1],
           [ 1, -1, -1, -1]])
    """
    rank = rng.random((n, K))
    asked = rng.geometric(1.0 / _SPARSE, n) * (rng.random(n) < 0.5)
    rank = np.where(np.arange(K) < asked[:, None], np.arange(K) - float(K), rank)
    order: Ints = np.argsort(rank, axis=1)
    seldom = np.arange(n) % 2 == 1
    spread = np.full((int(seldom.sum()), K), -1)
    spread[:, ::_SPARSE] = order[seldom, : -(-K // _SPARSE)]
    order[seldom] = spread
    return order
