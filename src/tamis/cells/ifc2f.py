"""IFC2F: one order of features for all rows, and an individual stopping time for each row.

Liyanage, Zois, Chelmis: Dynamic Instance-Wise Classification in Correlated Feature Spaces, IEEE TAI 2(6), 2021
(preprint 2106.04668). Covered: the whole system; every published step is available as an option.

===============  ==========================  ===================================================================
paper            here                        meaning
===============  ==========================  ===================================================================
e_k              `cost`, ``prices_``         acquisition cost of a feature, in units of a misclassification
Q_ij             `misclassification_cost`    cost of predicting j if i is true
V                `n_bins`                    quantisation levels
tau              ``threshold_``              lowest relevance of a kept feature
pi_k             `predict_proba`             posterior after k features
sigma(1..K)      ``candidates_``             columns in the order of evaluation
Gamma_k          ``stopping_``               vectors of stage k, :mod:`tamis.cells.stopping`
===============  ==========================  ===================================================================

With Delta_k(v) = P(x_k = v | x_1 .. x_{k-1}, c) over the classes and g(pi) = min_j Q_j . pi::

    J(R) = E[sum_{k <= R} e_k + g(pi_R)]                                 (7)
    pi_k = Delta_k(x_k) o pi_{k-1} / (Delta_k(x_k) . pi_{k-1})           (3)
    stop at the first k with g(pi_k) <= expected cost of continuing      (8)

Deviations, each with its reason; :meth:`IFC2F.published` takes the published choices:

* Bins have about the same number of rows. Equal widths lose 0.11 accuracy on Spambase (because of outliers).
* Relevance is that of the quantised column. The authors' program scores the raw one, in which every distinct number
  is a separate cluster: on continuous data it selects noise.
* Relevance must be significant (`threshold`). The program halves the threshold until 15 columns pass.
* A row may stop before the first feature. The program always acquires one.
* Vectors are used in the context of their backup, and all beliefs are backed up: :mod:`tamis.cells.stopping`.
* Before a feature is acquired, the stage is backed up once more at the row's own posterior (`lookahead`).
* The largest value of a column, if it is an integer, is missing from the program's tables; here it is in the last bin.
* With unequal costs, features are ordered by relevance per cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis._validation.parameters import integer, parameter
from tamis.base import PriceList
from tamis.cells.binned_classifier import SHARED_DOCS
from tamis.cells.bins import Bins
from tamis.cells.fixed_order import FixedOrder
from tamis.cells.network import Chain, Network, markov_blanket_order, spanning_tree
from tamis.cells.relevance import relevance
from tamis.cells.stopping import Likelihood, PointBased, walk_beliefs
from tamis.cells.tree import ExactChain, Tree
from tamis.dependence.information import conditional_mutual_information


@fill_docstring(SHARED_DOCS)
@dataclass(eq=False, repr=False, kw_only=True)
class IFC2F(FixedOrder):
    """Acquires features in the order of a dependency network until the next one is not worth its price.

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
    score_on : {"bins", "raw"}, default="bins"
        Whether relevance is measured on the binned column or, as published, on its distinct values.
    threshold : {"chance", "count", "half", "any"} or int, default="chance"
        Which features pass the filter. "chance": those relevant to the class at a false discovery rate of 0.1, at most
        100 columns; see :mod:`tamis.cells.relevance`. "count": halve the threshold from 0.8 until 15 features pass.
        "half": likewise until half of the features pass, if that is fewer than 15 (as in the authors' program). An int:
        likewise until this number passes. "any": from 1 until one passes (as in the paper's text). Relevance must
        always be above 0. Text data needs more than 15, because most words are absent from most rows.
    max_features : int, optional
        Keep at most this many of the features that pass.
    structure : {"tree", "line", "random", "clique"}, default="tree"
        The dependencies between features. "tree": the maximum spanning tree of mutual information. "line": each feature
        on the next more relevant one. "random": at random. "clique": each on all features before it, of which a table
        includes only the last. All features of a clique are neighbours, so ``order="markov_blanket"`` acquires at most
        one.
    order : {"auto", "markov_blanket", "relevance", "mrmr"}, default="auto"
        "markov_blanket", as published: omit the neighbours of the features already acquired. "relevance": keep all
        features, which is more accurate and acquires more. "mrmr": minimum redundancy and maximum relevance, as
        :class:`tamis.FixedSubset`. "auto": "mrmr", unless another costs significantly less on held-out rows;
        without `calibrate`, as published.
    inference : {"links", "exact"}, default="links"
        What the probability of a value is conditioned on. "links": the nearest acquired ancestor, as published.
        "exact": all known values.
    context : {"local", "exact", "pooled"}, default="local"
        The context of the stopping rule; see :mod:`tamis.cells.stopping`.
    sampling : {"model", "train", "uniform"}, default="model"
        The source of the rows from which the stopping rule is computed.
    n_beliefs : int, default=100
        beta: number of these rows.
    lookahead : bool, default=True
        Whether the value of the next stage is computed at the row's own class probabilities.
    always_first : bool, default=False
        Whether the first feature is always acquired, as in the authors' program.
    %(calibrate)s
    classifier : scikit-learn classifier with `predict_proba`, optional
        A classifier that decides instead, and whose probabilities determine whether the next value is worth its price;
        see :class:`tamis.cells.masked.Masked`. Gradient boosting accepts missing values; for other classifiers, they
        are replaced by means. Requires `calibrate`.
    %(categorical)s
    random_state : int, optional
        Seed of the sampled rows (and of a random structure).

    Attributes
    ----------
    %(attributes)s
    kept_ : ndarray of shape (K0,), int
        Columns that pass the filter, most relevant first.
    scores_ : ndarray of shape (n_features,)
        Adjusted mutual information with the class; NaN if its upper bound is already below the threshold.
    threshold_ : float
        Lowest relevance of a kept feature.
    order_ : {"markov_blanket", "relevance", "mrmr"}
        The order used.
    decided_by_ : str
        The name of the method, or what the calibration chose in its place.
    parent_ : ndarray of shape (K0,), int
        Parent of each kept feature; -1 at the root.
    stopping_ : PointBased

    Raises
    ------
    ValueError
        If a parameter is invalid. If no column is relevant to the class, unless `threshold` is "chance": then
        nothing is acquired.
    DataError
        If a value is infinite.

    Notes
    -----
    Fitting costs O(n d) to score, O(n K0^2) for the tree, and O(K n_beliefs^2 V) for the stopping rule. CSR rows are
    never converted to dense, except for the kept columns.

    %(memory)s

    References
    ----------
    Liyanage, Zois, Chelmis (2021). Dynamic Instance-Wise Classification in Correlated Feature Spaces.

    Examples
    --------
    Column 3 predicts the class; column 7 is acquired for uncertain rows:

    >>> import numpy as np
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 20))
    >>> X[:, 3] += 2 * y
    >>> X[:, 7] += 2 * y
    >>> model = IFC2F(cost=0.02, order="relevance", random_state=0).fit(X[:1000], y[:1000])
    >>> model.candidates_[:2].tolist(), round(model.score(X[1000:], y[1000:]), 2)
    ([7, 3], 0.92)
    >>> bool(1.0 < model.n_features_used_.mean() < 2.0)
    True
    """

    _shapes = """
        scores_ (*)  kept_ (n) in [0, n_features_in_)  _kept_bins.edges (n, b) float in [-inf, inf]
        _kept_bins.sizes (n) in [0, b+1]  _kept_bins.levels in [1, b+1]  _network.levels (n) in [1, b+1]
        parent_ (n) in [-1, n)  _network.parent (n) in [-1, n)  _network.counts (n, k, b+1, b+1) float in [0, inf)
        _network.of_class (k) float in [0, inf)  _order (c) in [0, n)
    """

    _orders = ("markov_blanket", "relevance", "mrmr")

    binning: str = "quantile"
    score_on: str = parameter("bins", "raw", default="bins")
    threshold: str | int = parameter(integer("[1, inf)"), "chance", "count", "half", "any", default="chance")
    max_features: int | None = None
    structure: str = parameter("tree", "line", "random", "clique", default="tree")
    order: str = parameter("auto", "markov_blanket", "relevance", "mrmr", default="auto")
    inference: str = parameter("links", "exact", default="links")
    context: str = parameter("local", "exact", "pooled", default="local")
    sampling: str = parameter("model", "train", "uniform", default="model")
    n_beliefs: int = 100
    lookahead: bool = parameter(True, False, default=True)
    always_first: bool = parameter(False, True, default=False)
    calibrate: bool | str = True
    classifier: Any = None

    threshold_: float = field(init=False)

    @classmethod
    def published(cls, cost: float | Array | Mapping[str, float] | PriceList = 0.01, **changes: Any) -> Self:
        """Return the published method; `changes` override its parameters."""
        settings = {
            "binning": "width", "score_on": "raw", "threshold": "half", "order": "markov_blanket",
            "context": "pooled", "sampling": "uniform", "lookahead": False, "always_first": True, "calibrate": False,
        }  # fmt: skip
        return cls(cost, **{**settings, **changes})

    def _learn_model(self, X: Rows, y: Array, bins: Bins, tables: Array) -> None:
        rng = np.random.default_rng(self.random_state)
        raw = X if self.score_on == "raw" else None
        self.scores_, self.threshold_ = relevance(tables, self.threshold, raw, y)
        passed = np.flatnonzero(self.scores_ > self.threshold_)
        ranked = passed[np.argsort(-self.scores_[passed], kind="stable")]
        self.kept_ = ranked[: self.max_features]
        kept = X[:, self.kept_]
        self._kept_bins: Bins = bins.take(self.kept_)
        codes = self._kept_bins.codes(kept.toarray() if sp.issparse(kept) else kept)
        self.parent_ = self._parents(codes, y, rng)
        self._order = self._rank(X, y, tables)
        if self.structure == "clique":
            self._order, self.parent_ = self._in_clique(self._order)
        levels, n_values = self._kept_bins.n_levels, bins.n_bins
        self._network = Network(codes, y, self.parent_, n_values, len(self.classes_), levels)
        if self.budget is not None or self.mean_budget is not None:
            within = self._within_budget(self.kept_[self._order])
            self._order = self._order[np.isin(self.kept_[self._order], within)]
        self._order = self._order[: self._most]
        self.candidates_ = self.kept_[self._order]
        self._bins = bins.take(self.candidates_)
        self._back_up(codes[:, self._order], rng)

    def _back_up(self, codes: Array, rng: np.random.Generator) -> None:
        """Build the chain and the vectors of the current network."""
        self._chain: Likelihood = Chain(self.parent_, self._network.tables(), self._order)
        if self.inference == "exact":
            self._chain = ExactChain(
                Tree(self.parent_, self._network.tables(), self.prior_), self._order, self._chain.link
            )
        self.stopping_ = PointBased(
            self._chain, self._kept_bins.n_bins, self._Q, self._stage_prices(), self.context
        )
        self.stopping_.train(*self._walks(codes, rng))

    def _update(self, X: Rows, label: Array) -> None:
        """Add rows to the tables and recompute the stopping rule; bins, tree and order are unchanged."""
        kept = X[:, self.kept_]
        codes = self._kept_bins.codes(np.asarray(kept.toarray() if sp.issparse(kept) else kept))
        self._network = self._network.with_rows(codes, label, self.fading)
        self.prior_ = self._network.prior()
        self._back_up(codes[:, self._order], np.random.default_rng(self.random_state))
        self._update_evidence_model(X, label, self.fading)

    def _parents(self, codes: Array, y: Array, rng: np.random.Generator) -> Ints:
        n = codes.shape[1]
        if self.structure in ("line", "clique"):
            return np.arange(n) - 1  # each feature depends on the previous one
        if self.structure == "random":
            return np.array([-1, *(int(rng.integers(0, f)) for f in range(1, n))])
        return spanning_tree(
            conditional_mutual_information(codes, y, self._kept_bins.n_bins, len(self.classes_))
        )

    def _in_clique(self, order: Ints) -> tuple[Ints, Ints]:
        """Return the order of evaluation in a clique and the parents, each the previous feature in the order.

        All features are neighbours, so an order that omits neighbours contains only the first.
        """
        rest = np.setdiff1d(np.arange(len(self.kept_)), order)
        whole = np.concatenate([order, rest]).astype(np.int64)
        parent = np.full(len(whole), -1)
        parent[whole[1:]] = whole[:-1]
        return order[:1] if self.order_ == "markov_blanket" else order, parent

    def _rank(self, X: Rows, y: Array, tables: Array) -> Ints:
        kept = self.kept_
        if self.order_ == "mrmr":
            return self._order_by_mrmr(X, y, self._kept_bins, tables, kept)
        if self.order_ == "markov_blanket":
            price = self._costs()[kept]
            priority = np.divide(
                self.scores_[kept], price, out=np.full(len(price), np.inf), where=price > 0.0
            )
            return markov_blanket_order(self.parent_, priority)
        return self._order_by(self.scores_[kept], kept)

    def _walks(self, codes: Array, rng: np.random.Generator) -> tuple[list[Floats], Array]:
        values = None
        if self.sampling == "train":
            values = codes[rng.integers(0, len(codes), self.n_beliefs)]
        uniform = self.sampling == "uniform"
        return walk_beliefs(
            self._chain,
            self.prior_,
            self.n_beliefs,
            rng,
            values,
            uniform=uniform,
            class_order=self._class_order,
        )

    def _should_continue(self, k: int, posterior: Floats, values: Array) -> Mask:
        if k == 0 and self.always_first:
            return np.ones(len(posterior), dtype=bool)
        return self.stopping_.should_continue(k, posterior, values, lookahead=self.lookahead)  # (8)
