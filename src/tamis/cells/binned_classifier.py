"""Paragraphs shared by the docstrings of the classifiers, by the name of their placeholder, such as ``%(costs)s``.

The base of classifiers that acquire binned values within budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array, Floats, Ints, Rows
from tamis._validation.parameters import number, parameter
from tamis.base import CellClassifier, PriceList
from tamis.cells.any_order import AnyOrder
from tamis.cells.bins import Bins
from tamis.cells.ensemble import EvidenceModel, fit_evidence_model
from tamis.cells.policy_selection import OBJECTIVES, Objective
from tamis.cells.relevance import is_beyond_chance

_IN_ORDER = """
    budget : float, optional
        Largest total price per row; columns whose price exceeds the remaining budget are omitted from the order.
    """
_PER_ROW = """
    budget : float, optional
        Largest total price per row.
    """
_GOALS = """
    mean_budget : float, optional
        Largest mean total price per row, over rows like those of `fit`. `cost` then determines only the relative
        prices.{needs}
    objective : {{"loss", "log-loss", "auc", "squared-error"}}, default="loss"
        The loss that acquisitions reduce on held-out rows, and the unit of prices. "loss": the misclassification cost.
        "log-loss": the negative logarithm of the probability of the class, in nats. "auc": one minus the area under the
        ROC curve, of each class against the rest, weighted by its rows. "squared-error": the target is a number,
        predicted by its mean; a squared error of its variance costs 1, or `misclassification_cost`.{needs}
    """

SHARED_DOCS = {
    "costs": """
    cost : float, array of shape (n_features,), mapping from column name to float or PriceList, default=0.01
        The price of a feature, 0 or from 1e-100 to 1e100, in units of `misclassification_cost`.
    misclassification_cost : array of shape (n_classes, n_classes) or float, optional
        The cost of predicting class j (column) if i (row) is true; by default 0 if right and 1 if wrong. With
        ``objective="squared-error"``, the cost of a squared error of one variance, 1 by default.
    groups : sequence of sequences of columns, optional
        Columns (names or numbers) that are acquired together, like the values of one blood test. The price of a group
        is that of its most expensive column, paid once.
    """,
    "calibrate": """
    calibrate : bool or "never", default=True
        Whether to calibrate on held-out rows (cross-validation). Two choices then minimise the cost: which
        probabilities are used (those of the method, of a discriminant analysis of the same values, or of an ensemble of
        it and boosted trees) and when to stop. No feature is acquired unless this reduces the cost. `decided_by_` names
        what was chosen, often the same for IFC2F, ETANA and F-ETANA. "never" or False: the method itself decides.
    """,
    "row_budgets": _PER_ROW.rstrip() + _GOALS.format(needs=""),
    "order_budgets": _IN_ORDER.rstrip() + _GOALS.format(needs=""),
    "calibrated_budgets": _IN_ORDER.rstrip() + _GOALS.format(needs=" Requires `calibrate`."),
    "categorical": """
    categorical : None, "all", list of int or str, or bool mask, optional
        Categorical features; each category has its own bin. Text columns and categorical columns of a frame are
        always included.
    fading : float, default=1.0
        Factor of the weight of earlier rows for each new row of `partial_fit`, in (0, 1]: after a drift, a model of
        about 1 / (1 - fading) recent rows replaces the old one.
    missingness : {"uninformative", "informative"}, default="uninformative"
        Whether a value that was recorded in the rows of `fit` is evidence because it was. If the class depends on which
        values were recorded, "uninformative" fits the model to completed rows
        (:mod:`tamis.base.missingness`), as if all values were available. "informative": values are recorded for the
        same reason in the rows to predict.
    """,
    "memory": """
    Fitting takes at most 250 MB and six times the memory of the columns that it considers; with many classes, fewer
    rows are held out. Predicting takes at most 150 MB, independent of the number of rows.
    """,
    "attributes": """
    classes_, prior_, candidates_, prices_, n_features_used_, cost_
        As in :class:`tamis.base.CellClassifier`.
    """,
}


_SURE = 2.0  # standard errors by which decisions without a free column must be worse
_COMPARED = 2_000  # rows on which decisions with and without a free column are compared
# Class probabilities of held-out rows at all steps of their walks: about 20 arrays of this size, 160 MB, are in memory.
_PROBABILITIES = 1 << 20
_FEWEST = 200  # rows walked at least


@dataclass(eq=False, repr=False)
class BinnedClassifier(CellClassifier):
    """The parameters that all classifiers share, and the models that decide for them."""

    cost: float | Array | Mapping[str, float] | PriceList = 0.01
    _: KW_ONLY
    misclassification_cost: Array | float | None = None
    groups: Any = None
    budget: float | None = parameter(number("[0, inf]"), None, default=None)
    mean_budget: float | None = parameter(number("[0, inf]"), None, default=None)
    objective: str = parameter(*OBJECTIVES, default="loss")
    spend: str = parameter("worth", "all", default="worth")
    n_bins: int = 4
    categorical: Any = None
    fading: float = parameter(number("(0, 1]"), default=1.0)
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

    def _some_rows(self, n: int, most: int) -> Ints:
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
        self, kind: str, values: Floats, y: Array, columns: Array, origin: Ints | None
    ) -> AnyOrder:
        """Return a model of these columns that decides for any subset of the values."""
        return AnyOrder.fit(
            kind, values, y, n_bins=self.n_bins, n_classes=len(self.classes_), classifier=self.classifier,
            sizes=self._sizes[columns], random_state=self.random_state, origin=origin,
        )  # fmt: skip

    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        bins: Bins = self._bins.take(positions)
        return bins.codes(values)


def needless_columns(model: BinnedClassifier, X: Rows, y: Array) -> Ints:
    """Return free columns without which a model decides as well on held-out rows, from the least relevant one.

    A column that is relevant to the class by itself is needless only if it changes no decision, any other one if the
    decisions are not significantly worse without it.
    """
    price = model._tariff.following(np.zeros((1, len(model.candidates_)), dtype=bool))[0]
    free = np.flatnonzero(price == 0.0)
    if not len(free) or not len(y):
        return model.candidates_[:0]
    rows = model._some_rows(X.shape[0], _COMPARED)
    X, y = X[rows], y[rows]
    tables = model._bins.take(free).tables(X[:, model.candidates_[free]], y, len(model.classes_))
    relevant = set(free[is_beyond_chance(tables)].tolist())
    needless = np.zeros((len(rows), len(price)), dtype=bool)

    def outcome() -> tuple[Floats, Floats]:
        decision = np.argmin(model._walk(X, None, needless.copy()).posterior @ model._Q, axis=1)
        return decision, model._Q[y, decision] + model._bill.cost

    decision, cost = outcome()
    for position in free[::-1]:
        needless[:, position] = True
        other, more = outcome()
        loss = more - cost
        is_worse = loss.mean() > _SURE * loss.std() / np.sqrt(len(loss))
        if (other != decision).any() if position in relevant else is_worse:
            needless[:, position] = False
        else:
            decision, cost = other, more
    vars(model._bill).clear()
    return model.candidates_[needless[0]]
