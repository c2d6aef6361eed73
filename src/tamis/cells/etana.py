"""ETANA: features that are independent given the class, acquired in the order of their variation between classes.

Liyanage, Zois, Chelmis: Dynamic Instance-Wise Joint Feature Selection and Classification, IEEE TAI 2(2), 2021
(preprint 2004.10245), as implemented in its authors' program. Covered: the method, on a grid of beliefs as published
and by vectors backed up at reachable beliefs.

===============  ==========================  ===================================================================
paper            here                        meaning
===============  ==========================  ===================================================================
e                `cost`, ``prices_``         acquisition cost of a feature
Q_ij             `misclassification_cost`    cost of predicting j if i is true
V                `n_bins`                    quantisation levels
eta              `resolution`                steps of the grid of beliefs along each axis
===============  ==========================  ===================================================================

The order is by decreasing sum_v Var_c P(x = v | c). On the grid, with [.] the nearest grid point of the same sum::

    A_k(w) = e_{k+1} + sum_v (P_v . w) J_{k+1}([P_v o w / (P_v . w)]),   J_k(w) = min(g(w), A_k(w)),   J_K = g     (1)

and a row stops at the first k with g([pi_k]) <= A_k([pi_k]).

Deviations, each with its reason; :meth:`ETANA.published` takes the published choices:

* The grid has C(eta + L - 1, L - 1) points, 184,756 for 11 classes: vectors at reachable beliefs replace it.
* The program computes the class frequencies but starts from 1 / L, so too few values are acquired for rare classes.
* The program rounds to one decimal, so only eta = 10 works; here the largest remainders are rounded up.
* Bins have about the same number of rows; see :mod:`tamis.cells.ifc2f`.
* Columns that are not significantly relevant are omitted; the program keeps all. See :mod:`tamis.cells.relevance`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis._validation.parameters import integer, parameter
from tamis.base import PriceList
from tamis.cells.binned_classifier import SHARED_DOCS
from tamis.cells.bins import Bins
from tamis.cells.fixed_order import FixedOrder
from tamis.cells.network import Chain
from tamis.cells.relevance import is_beyond_chance
from tamis.cells.stopping import PointBased, walk_beliefs

_MOST_POINTS = 20_000


@dataclass(eq=False, repr=False, kw_only=True)
class Independent(FixedOrder):
    """The model and order shared by ETANA and F-ETANA: a table P(x = v | c) for each column."""

    _orders = ("spread", "mrmr")

    binning: str = "quantile"
    prior: str = parameter("empirical", "uniform", default="empirical")
    threshold: str = parameter("chance", "all", default="chance")
    order: str = parameter("auto", "spread", "mrmr", default="auto")
    max_features: int | None = None
    calibrate: bool | str = True
    classifier: Any = None

    def _learn_tables(self, X: Rows, y: Array, bins: Bins, counts: Array) -> list[Floats]:
        """Set the candidates in their order, their bins and chain; return a table (n_classes, n_values, 1) of each."""
        levels = bins.n_levels[:, None, None]
        possible = np.arange(bins.n_bins)[:, None] < levels
        tables = (counts + possible) / (counts.sum(axis=1, keepdims=True) + levels)
        spread = tables.var(axis=2).sum(axis=1)
        order = self._order_by(spread, np.arange(len(spread)))
        if self.threshold == "chance":
            order = order[is_beyond_chance(counts)[order]]
        if self.order_ == "mrmr":
            kept = np.sort(order)
            order = kept[self._order_by_mrmr(X, y, bins.take(kept), counts, kept)]
        order = self._within_budget(order)[: self.max_features][: self._most]
        self.candidates_, self._bins = order, bins.take(order)
        network = np.ascontiguousarray(tables[order].transpose(0, 2, 1)[..., None])
        chain = Chain(np.full(len(order), -1), network, np.arange(len(order)))
        self._chain = chain
        return chain.tables

    def _model_prior(self) -> Floats:
        return (
            self.prior_ if self.prior == "empirical" else np.full(len(self.classes_), 1 / len(self.classes_))
        )


@fill_docstring(SHARED_DOCS)
@dataclass(eq=False, repr=False, kw_only=True)
class ETANA(Independent):
    """Acquires features in a fixed order, assumed independent given the class, until the next is not worth its price.

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
    method : {"points", "grid"}, default="points"
        How the stopping rule is computed. "points": at sampled class probabilities that rows can reach. "grid": on the
        published grid (few classes only).
    resolution : int, default=10
        eta: number of steps of the grid.
    threshold : {"chance", "all"}, default="chance"
        Which columns are used. "chance": those that are relevant to the class, at a false discovery rate of 0.1. "all":
        every column, as published.
    order : {"auto", "spread", "mrmr"}, default="auto"
        The order of the columns. "spread", as published: by their variation between the classes. "mrmr": minimum
        redundancy and maximum relevance, as :class:`tamis.FixedSubset`. "auto": "mrmr", unless the published one
        costs significantly less on held-out rows; without `calibrate`, as published.
    max_features : int, optional
        Use at most this many of the columns, the first in order.
    n_beliefs : int, default=100
        Number of simulated rows from which the stopping rule of "points" is computed.
    %(calibrate)s
    classifier : scikit-learn classifier with `predict_proba`, optional
        A classifier that decides instead, and whose probabilities determine whether the next value is worth its price;
        see :class:`tamis.cells.masked.Masked`. Gradient boosting accepts missing values; for other classifiers, they
        are replaced by means. Requires `calibrate`.
    %(categorical)s
    random_state : int, optional
        Seed of the simulated rows.

    Attributes
    ----------
    %(attributes)s
    order_ : {"spread", "mrmr"}
        The order used.
    decided_by_ : str
        The name of the method, or what the calibration chose in its place.
    stopping_ : PointBased or Grid

    Raises
    ------
    ValueError
        If a parameter is invalid, or the grid would have more than 20,000 points.

    Notes
    -----
    %(memory)s

    References
    ----------
    Liyanage, Zois, Chelmis (2021). Dynamic Instance-Wise Joint Feature Selection and Classification.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import ETANA
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1500)
    >>> X = rng.normal(size=(1500, 30))
    >>> X[:, :10] += 1.5 * (y[:, None] == 1) - 1.5 * (y[:, None] == 2)
    >>> model = ETANA(cost=0.01, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9), bool(model.n_features_used_.mean() < 7)
    (True, True)
    """

    method: str = parameter("points", "grid", default="points")
    resolution: int = parameter(integer("[1, 10000]"), default=10)
    n_beliefs: int = 100

    @classmethod
    def published(cls, cost: float | Array | Mapping[str, float] | PriceList = 0.01, **changes: Any) -> Self:
        """Return the published method; `changes` override its parameters."""
        settings = {
            "n_bins": 3, "binning": "width", "prior": "uniform", "threshold": "all", "order": "spread",
            "method": "grid", "calibrate": False,
        }  # fmt: skip
        return cls(cost, **{**settings, **changes})

    def _learn_model(self, X: Rows, y: Array, bins: Bins, tables: Array) -> None:
        own = self._learn_tables(X, y, bins, tables)
        price = self._stage_prices()
        if self.method == "grid":
            self.stopping_: Grid | PointBased = Grid(own, self._Q, price, self.resolution)
            return
        rng = np.random.default_rng(self.random_state)
        points = PointBased(self._chain, self._bins.n_bins, self._Q, price)
        points.train(
            *walk_beliefs(
                self._chain, self._model_prior(), self.n_beliefs, rng, class_order=self._class_order
            )
        )
        self.stopping_ = points

    def _should_continue(self, k: int, posterior: Floats, values: Array) -> Mask:
        return self.stopping_.should_continue(k, posterior, values)


class Grid:
    """The value of every stage at the beliefs n / resolution, with integers n that sum to `resolution`.

    Parameters
    ----------
    tables : list of ndarray of shape (n_classes, n_values, 1)
        P(x_k = v | c).
    Q : ndarray of shape (n_classes, n_classes)
    prices : ndarray of shape (K,)
    resolution : int
    """

    def __init__(self, tables: list[Floats], Q: Floats, prices: Floats, resolution: int) -> None:
        n_classes = len(Q)
        n_points = math.comb(resolution + n_classes - 1, n_classes - 1)
        if n_points > _MOST_POINTS:
            raise ValueError(
                f"A grid of resolution={resolution} has {n_points:,} points for {n_classes} classes, more than"
                f" {_MOST_POINTS:,}: choose method='points', or a smaller resolution."
            )
        self.resolution = resolution
        self.points = _compositions(resolution, n_classes)  # (n_points, n_classes)
        self._weight = (resolution + 1) ** np.arange(n_classes, dtype=np.int64)
        self._sorted = np.argsort(self.points @ self._weight)
        belief = self.points / resolution
        self.stop = (belief @ Q).min(axis=1)  # g at each point
        self.continue_cost = np.empty((len(tables), n_points))  # A_k at each point
        after = self.stop
        for k in range(len(tables) - 1, -1, -1):
            value = np.full(n_points, prices[k])
            for likelihood in tables[k][:, :, 0].T:
                joint = belief * likelihood
                total = joint.sum(axis=1)
                if total.any():  # a column may have fewer values than others
                    value += total * after[self.nearest(joint / total[:, None])]  # (1)
            self.continue_cost[k] = value
            after = np.minimum(self.stop, value)

    def nearest(self, belief: Floats) -> Ints:
        """Return the nearest point of each belief, largest remainders rounded up."""
        scaled = belief * self.resolution
        whole = np.floor(scaled + 1e-9).astype(np.int64)
        lacking = self.resolution - whole.sum(axis=1)
        rank = np.argsort(np.argsort(-(scaled - whole), axis=1, kind="stable"), axis=1)
        codes = (whole + (rank < lacking[:, None])) @ self._weight
        return self._sorted[np.searchsorted((self.points @ self._weight)[self._sorted], codes)]

    def should_continue(self, k: int, posterior: Floats, values: Array | None = None) -> Mask:
        """Return for which rows the k-th feature is worth its price; `values` are not used."""
        at = self.nearest(posterior)
        return self.continue_cost[k, at] < self.stop[at]


def _compositions(total: int, parts: int) -> Ints:
    """Return all compositions of a number into `parts` nonnegative integers.

    >>> _compositions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    n_places = total + parts - 1  # of bars between the units
    bars = np.array([*itertools.combinations(range(n_places), parts - 1)], dtype=np.int64)
    ends = np.ones((len(bars), 1), dtype=np.int64)
    return np.diff(np.concatenate([-ends, bars, n_places * ends], axis=1)) - 1
