"""FixedSubset: the same values for every row, the baseline for instance-wise acquisition.

The columns are ordered once, by minimum redundancy and maximum relevance (Peng, Long, Ding 2005, see
:mod:`tamis.cells.relevance`), and the first m of them are acquired for every row. On held-out rows, m
minimises the sum of misclassification and acquisition costs (:mod:`tamis.cells.policy_selection`).

========  ====================  ===================================================
paper     here                  meaning
========  ====================  ===================================================
I         adjusted              mutual information of binned columns
m         `n_features`          number of columns acquired
========  ====================  ===================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis._validation.parameters import integer, parameter, with_methods
from tamis.cells.binned_classifier import SHARED_DOCS
from tamis.cells.bins import Bins, dense
from tamis.cells.fixed_order import FixedOrder
from tamis.cells.masked import Masked
from tamis.cells.policy_selection import Policy, Walks, best_policy
from tamis.cells.relevance import is_beyond_chance, mrmr

_STEPS = 40  # columns to order
_SPARES = 8  # columns after the m-th that may replace unavailable ones


@fill_docstring(SHARED_DOCS)
@dataclass(eq=False, repr=False, kw_only=True)
class FixedSubset(FixedOrder):
    """Acquires the same features for every row, as many as are worth their price.

    Parameters
    ----------
    %(costs)s
    n_features : int, optional
        m: number of columns to acquire. By default as many as are worth their price on held-out rows, at most 40. Up to
        8 columns declared unavailable for a row are replaced by the next ones of the order, unless a `classifier`
        decides.
    %(order_budgets)s
    spend : {"worth", "all"}, default="worth"
        "all": acquire every column within `budget`, up to 40.
    classifier : scikit-learn classifier with `predict_proba`, optional
        The classifier that decides from the acquired values. If it does not accept missing values, they are replaced by
        means. By default, a discriminant analysis of the values and their bins.
    n_bins : int, default=4
        Number of bins of a column for estimating its information, at least 2.
    %(categorical)s
    random_state : int, optional
        Seed of the rows on which `n_features` is chosen, if there are more than 5,000.

    Attributes
    ----------
    classes_, prior_, candidates_, prices_, n_features_used_, cost_
        As in :class:`tamis.base.CellClassifier`; `candidates_` in the order of acquisition.
    policy_ : Policy
        ``policy_.max_values`` is m.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If a value is infinite.

    Notes
    -----
    %(memory)s

    References
    ----------
    Peng, Long, Ding (2005). Feature Selection Based on Mutual Information. IEEE TPAMI 27(8).

    Examples
    --------
    Column 4 is a copy of column 3, so it is not acquired:

    >>> import numpy as np
    >>> from tamis import FixedSubset
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 10))
    >>> X[:, 3] += 2 * y
    >>> X[:, 4] = X[:, 3]
    >>> X[:, 7] += 2 * y
    >>> model = FixedSubset(cost=0.02).fit(X[:500], y[:500])
    >>> model.acquire(X[500]).features, bool(model.score(X[500:], y[500:]) > 0.88)
    ([7, 3], True)
    """

    calibrate = True  # without a published stopping rule
    order = "mrmr"
    _allow_trees = False  # a plain baseline

    n_features: int | None = parameter(integer("[0, inf)"), None, default=None)
    classifier: Any = parameter(
        with_methods("a classifier with predict_proba", "predict_proba"), None, default=None
    )

    def _learn_model(self, X: Rows, y: Array, bins: Bins, tables: Array) -> None:
        order = mrmr(X, y, bins, tables, self._whole_tariff(), self._n_steps())
        if self.n_features is None and self.spend == "worth":
            # A free column has an unlimited rate, even without any relevance.
            is_paid = self._whole_tariff().own[order] > 0.0
            order = order[is_paid | is_beyond_chance(tables[order])] if is_paid.any() else order
        self.candidates_ = self._within_budget(order)
        self._bins = bins.take(self.candidates_)

    def _n_steps(self) -> int:
        return _STEPS if self.n_features is None else max(self.n_features, 1) + self._n_spares()

    def _n_spares(self) -> int:
        # A classifier is fitted to its own columns only.
        return _SPARES if self.classifier is None and self.n_features != 0 else 0

    def _calibrate(self, X: Rows, y: Array, bins: Bins, folds: list[Any]) -> Any:
        if self.classifier is not None and self.n_features is not None:
            self.policy_ = Policy("classifier", "risk", self.n_features, -np.inf)
            return None
        calibration = super()._calibrate(X, y, bins, folds)
        if self.policy_ is None:  # no class has two rows, so none can be held out
            self.policy_ = Policy("discriminant", "risk", 0, -np.inf)
        return calibration

    def _choose_model(self, X: Rows, y: Array, folds: list[Any], held: Any) -> None:
        if self.classifier is None:
            super()._choose_model(X, y, folds, held)
            return
        assert self.policy_ is not None
        self.policy_.max_values = min(self.policy_.max_values, len(self.candidates_))
        if self.policy_.max_values > 0:
            # The same values are acquired for every row, so the classifier is fitted to rows with all of them known.
            columns = self.candidates_[: self.policy_.max_values]
            self._evidence_model = Masked(self.classifier, len(self.classes_)).fit(
                dense(X[:, columns]), y, sizes=self._sizes[columns], complete=True
            )
            self._evidence_model.evidence_weight = 1.0 if held is None else held.weight_for(self.policy_)

    def _policy(self, walks: list[Walks], y: Array, origin: Ints | None) -> tuple[Policy, Floats]:
        if self.n_features is None and self.spend == "all":
            return self._spending_policy(walks[:1], y)
        if self.n_features is None:
            return best_policy(
                walks[:1], y, self._goal, mean_budget=self.mean_budget, same_for_all_rows=True, origin=origin
            )
        return Policy("discriminant", "risk", self.n_features, -np.inf), np.zeros(len(y))

    def _model_walks(self, X: Rows) -> Walks:
        """Return walks whose posterior is the prior, since the model has no probabilities."""
        _, codes = self._cells(X, np.arange(X.shape[0]))
        price = self._paid(codes).T
        spent = np.concatenate([np.zeros((1, len(codes))), np.cumsum(price, axis=0)])
        posterior = np.tile(self.prior_, (*spent.shape, 1))
        return Walks("own", posterior, spent, np.ones(spent.shape, dtype=bool))

    def _posterior_after(
        self, k: int, posterior: Floats, values: Array, code: Array, numbers: Floats
    ) -> Floats:
        if self._evidence_model is None:  # nothing is acquired, and values known anyway are ignored
            return posterior
        return super()._posterior_after(k, posterior, values, code, numbers)

    def _should_continue(self, k: int, posterior: Floats, values: Array) -> Mask:
        return np.ones(len(posterior), dtype=bool)
