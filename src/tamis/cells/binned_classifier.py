"""The base of classifiers that acquire binned values within budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array
from tamis._validation.parameters import number, parameters
from tamis.base import CellClassifier, PriceList
from tamis.cells.any_order import AnyOrder
from tamis.cells.bins import Bins
from tamis.cells.ensemble import EvidenceModel, fit_evidence_model
from tamis.cells.objectives import OBJECTIVES, Objective

__all__ = ["BinnedClassifier"]

Floats = NDArray[np.float64]
# Class probabilities of held-out rows at all steps of their walks: about 20 arrays of this size, 160 MB, are in memory.
_PROBABILITIES = 1 << 20
_FEWEST = 200  # rows walked at least


@dataclass(eq=False, repr=False)
class BinnedClassifier(CellClassifier):
    """The parameters that all classifiers share, and the models that decide for them."""

    _allowed = parameters(
        budget=(number("[0, inf]"), None),
        mean_budget=(number("[0, inf]"), None),
        objective=OBJECTIVES,
        spend=("worth", "all"),
    )

    cost: float | Array | Mapping[str, float] | PriceList = 0.01
    _: KW_ONLY
    misclassification_cost: Array | float | None = None
    groups: Any = None
    budget: float | None = None
    mean_budget: float | None = None
    objective: str = "loss"
    spend: str = "worth"
    n_bins: int = 4
    categorical: Any = None
    missingness: str = "uninformative"
    random_state: int | None = None

    classifier = None  # of classes without this parameter

    def _n_walks(self, most: int, n_steps: int) -> int:
        """Return the number of held-out rows to walk: at most `most`, and as their probabilities fit in memory."""
        return min(most, max(_FEWEST, _PROBABILITIES // ((n_steps + 1) * len(self.classes_))))

    @property
    def _goal(self) -> Objective:
        return Objective(self.objective, self._Q, self._unit_loss)

    @property
    def _default_model(self) -> str:
        """The alternative to the model, without boosted trees."""
        return "discriminant" if self.classifier is None else "classifier"

    def _some_rows(self, n: int, most: int) -> NDArray[np.int64]:
        """Return `most` of n rows in order, or all if there are fewer."""
        if n <= most:
            return np.arange(n)
        return np.sort(np.random.default_rng(self.random_state).choice(n, most, replace=False))

    def _fit_evidence_model(
        self, kind: str, values: Floats, y: Array, order: Array | None, columns: Array
    ) -> EvidenceModel:
        """Return a model of these columns that decides, fitted to rows whose values become known in this order."""
        return fit_evidence_model(
            kind, values, y, order, n_bins=self.n_bins, n_classes=len(self.classes_), classifier=self.classifier,
            sizes=self._sizes[columns],
        )  # fmt: skip

    def _fit_any_order(
        self, kind: str, values: Floats, y: Array, columns: Array, origin: NDArray[np.int64] | None
    ) -> AnyOrder:
        """Return a model of these columns that decides for any subset of the values."""
        return AnyOrder.fit(
            kind, values, y, n_bins=self.n_bins, n_classes=len(self.classes_), classifier=self.classifier,
            sizes=self._sizes[columns], random_state=self.random_state, origin=origin,
        )  # fmt: skip

    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        bins: Bins = self._bins.take(positions)
        return bins.codes(values)
