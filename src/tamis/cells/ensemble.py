"""An ensemble of discriminant analyses, class variances and boosted trees: additive evidence and interactions.

Each contributes its evidence E_m, weighted by its predictive value on held-out rows::

    log P(c | x_S) = log P(c) + sum_m b_m E_m(c, x_S) + const                                        (1)

The weights b_m, from 0 to 1.2, maximise the likelihood of the labels of held-out rows, averaged over the steps of their
walks, with a penalty of 1 per unit of weight on the log likelihood, as in Akaike's criterion: with few rows, the
weights are small.

There are two discriminant analyses: one of values and bins, and one of the values alone, which needs fewer rows. The
held-out rows thereby determine how much the bins are shrunk. In both, all classes share one covariance; the variance of
a class is a separate kind of evidence (:class:`Spread`).
"""

from __future__ import annotations

import copy
import functools
from typing import Any, TypeAlias

import numpy as np
import scipy.optimize

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Mask
from tamis.cells.bins import Bins, faded_classes, in_order, outer_quantiles
from tamis.cells.discriminant import Discriminant, EvidenceWeights, posterior_of
from tamis.cells.masked import Masked
from tamis.cells.network import Network, smoothed_tables, spanning_tree
from tamis.cells.policy_selection import pad_steps
from tamis.cells.small_trees import SmallTrees
from tamis.cells.tree import Tree
from tamis.dependence.information import conditional_mutual_information

# -- Evidence for the classes from a dependency network: pairs of columns, for any subset of the values

# The network is a tree of the columns, each conditioned on the class and on its parent (:mod:`tamis.cells.network`),
# with smoothed tables. Unknown values are summed out from the leaves to the root, so the evidence of a subset S is
# exact::
#
#     E(c) = log P(x_S | c)                                                                            (1)
#
# The sum includes only the known columns and those between them and the root.

_FARTHEST = 50.0  # bound on the absolute log probability


@njit(strict=True)
def _log_likelihoods(
    codes: Array, parent: Array, order: Array, tables: Array, log_likelihoods: Array
) -> None:
    """Fill in log P(known values | class) of each row and class."""
    L, K, V = tables.shape[:3]
    below, touched = np.empty((K, V)), np.empty(K, np.bool_)
    for i in range(len(codes)):
        for c in range(L):
            log_p, touched[:] = 0.0, False
            for at in range(K - 1, -1, -1):  # children before parents
                f = order[at]
                known = codes[i, f]
                if not touched[f] and known < 0:
                    continue
                of_known = below[f, known] if touched[f] else 1.0
                p, largest = parent[f], 0.0
                if p >= 0 and not touched[p]:
                    below[p], touched[p] = 1.0, True
                for u in range(V if p >= 0 else 1):
                    total = 0.0
                    if known >= 0:
                        total = tables[c, f, known, u] * of_known
                    else:
                        for v in range(V):
                            total += tables[c, f, v, u] * below[f, v]
                    if p >= 0:
                        below[p, u] *= total
                        largest = max(largest, below[p, u])
                    else:
                        log_p += np.log(max(total, 1e-300))
                if p >= 0 and largest > 0.0:  # long chains of evidence would underflow
                    for u in range(V):
                        below[p, u] /= largest
                    log_p += np.log(largest)
            log_likelihoods[i, c] = log_p


class NetworkEvidence:
    """Evidence for the classes from pairs of columns.

    Parameters
    ----------
    n_bins : int
    n_classes : int

    Examples
    --------
    Column 0 reverses what column 1 indicates:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (1000, 2)).astype(float)
    >>> model = NetworkEvidence(4, 2).fit(X, (X[:, 0] != X[:, 1]).astype(int))
    >>> likelihood = np.exp(model.evidence(np.array([[0.0, 1.0], [0.0, np.nan]]))[-1])
    >>> (likelihood / likelihood.sum(axis=1, keepdims=True)).round(1)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """

    _state_spec = Shapes(
        "_bins.edges (d, e) float in [-inf, inf]  _bins.sizes (d) in [0, e+1]  _bins.levels in [1, e+1]"
        "  _tree.parent (d) in [-1, d)  _tree._order (d) in [0, d)  _tree.prior (k) float in [0, 1]"
        "  _tree.tables (k, d, e+1, e+1) float in [0, 2]  n_classes in [k, k]"
    )

    def __init__(self, n_bins: int, n_classes: int) -> None:
        self.n_bins, self.n_classes = n_bins, n_classes
        self._bins = Bins(np.empty((0, n_bins - 1)))
        empty = np.empty((0, n_classes, n_bins, n_bins))
        self._tree = Tree(np.empty(0, dtype=np.int64), empty, np.full(n_classes, 1.0 / n_classes))

    def fit(self, values: Floats, y: Array, sizes: Ints | None = None) -> NetworkEvidence:
        """Fit to rows: `values` of shape (n_rows, K), NaN where missing, `y` of class codes.

        `sizes` is the number of categories of each column, 0 for numbers; by default all are numbers.
        """
        self._bins = Bins.quantile(values, self.n_bins).with_categories(sizes)
        codes, n_values = self._bins.codes(values), self._bins.n_bins
        parent = spanning_tree(conditional_mutual_information(codes, y, n_values, self.n_classes))
        network = Network(codes, y, parent, n_values, self.n_classes, self._bins.n_levels)
        self._tree = Tree(parent, smoothed_tables(network, codes, y), network.prior())
        return self

    def subset_evidence(self, values: Floats, subsets: Mask) -> Floats:
        """Return the evidence of the columns in each subset, shape (n_subsets, n_rows, n_classes), (1)."""
        codes = self._bins.codes(values)
        masked = np.where(subsets[:, None, :], codes, np.int16(-1)).reshape(
            len(subsets) * len(codes), codes.shape[1]
        )
        array = np.empty((len(masked), self.n_classes))
        _log_likelihoods(masked, self._tree.parent, self._tree._order, self._tree.tables, array)
        return np.maximum(array, -_FARTHEST).reshape(len(subsets), len(values), self.n_classes)

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class after each of its columns in order, (1).

        Parameters and return value as for :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        values = np.asarray(values, dtype=np.float64)
        if order is None:
            return np.concatenate(
                [np.zeros((values.shape[1], len(values), self.n_classes)), self.total_evidence(values)[None]]
            )
        known = np.full(values.shape, np.nan)
        items, rows = [np.zeros((len(values), self.n_classes))], np.arange(len(values))
        for column in order.T:
            there = column >= 0
            known[rows[there], column[there]] = values[rows[there], column[there]]
            items.append(self.total_evidence(known))
        return np.stack(items)

    def total_evidence(self, values: Floats) -> Floats:
        """Return the evidence of all known values of each row, shape (n_rows, n_classes)."""
        every = np.ones((1, values.shape[1]), dtype=bool)
        return self.subset_evidence(np.asarray(values, dtype=np.float64), every)[0]


# -- An ensemble of discriminant analyses, class variances and boosted trees: additive evidence and interactions

# -- Evidence for the class from the variance of a column, which a covariance common to all classes ignores

# Rows of a class are assumed normal about its mean, independently for each column. The evidence of the variance of the
# class, s_c^2, beyond the pooled one, s^2, is::
#
#     E(c, x) = -log(s_c / s) - (x - m_c)^2 / 2 (1 / s_c^2 - 1 / s^2),    summed over columns              (1)
#
# Variances of few rows differ by chance, so their logarithms are shrunk towards each other. With l_c = log s_c^2 of n_c
# rows, l their mean weighted by rows, k the kurtosis within the classes (at least 3) and L classes::
#
#     log s_c^2 := log s^2 + w (l_c - log s^2),    w = max(0, 1 - 2 (L - 1) / sum_c n_c (l_c - l)^2 / (k - 1))     (2)
#
# If the variances of the classes are equal, the sum is chi-squared with L - 1 degrees of freedom. It has an effect only
# beyond twice that number, as in Akaike's criterion. Ten rows with the pooled variance are added to each class. Values
# are clipped at the outer quantiles, as in :mod:`tamis.cells.discriminant`.

_ROWS = 10.0  # rows with the pooled variance, added to each class
_AT_ONCE = 128  # rows processed at a time


@njit(strict=True)
def _evidence(x: Array, order: Array, means: Array, level: Array, slope: Array, evidence: Array) -> None:
    """Fill in (1) of each row and class after each of the columns in order; -1 and missing values are skipped."""
    n, n_steps = order.shape
    for i in range(n):
        for c in range(len(means)):
            evidence[i, 0, c] = 0.0
        for s in range(n_steps):
            j = order[i, s]
            known = j >= 0 and not np.isnan(x[i, j])
            for c in range(len(means)):
                evidence[i, s + 1, c] = evidence[i, s, c]
                if known:
                    apart = x[i, j] - means[c, j]
                    evidence[i, s + 1, c] += level[c, j] - slope[c, j] * apart * apart


class Spread:
    """Evidence for the classes from the variances of any of the columns.

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    Both classes have the mean 0, and class 1 has twice the standard deviation:

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 1)) * (1 + y[:, None])
    >>> Spread(2).fit(X, y).evidence(np.array([[0.0], [3.0]]))[1].round(1)
    array([[ 0.4, -0.2],
           [-1.9,  0.4]])
    """

    _state_spec = Shapes(
        "n_classes (=k)  _low (d) finite  _high (d) float in [_low, inf)  _means (k, d) float in [-2, 2]"
        "  _level (k, d) float in [-1e50, 1e50]  _slope (k, d) float in [-1e50, 1e50]  _powers[:1] float in [0, 1e18]"
        "  _powers (5, k, d) float in [-1.000001 * _powers[0], 1.000001 * _powers[0]]"
    )

    # State after fit, for K columns, whose numbers are clipped and scaled to -1 to 1:
    #   _low, _high     (K,)                   bounds of the clipping
    #   _powers         (5, n_classes, K)      sums of their powers 0 to 4 over the known values of a class, with fading
    #   _means, _level, _slope (n_classes, K)  m_c, -log(s_c / s), (1 / s_c^2 - 1 / s^2) / 2

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self._reset(np.zeros(0), np.zeros(0))

    def _reset(self, low: Floats, high: Floats) -> None:
        self._low, self._high = low, high
        self._powers: Floats = np.zeros((5, self.n_classes, len(low)))
        self._means, self._level, self._slope = np.zeros((3, self.n_classes, len(low)))

    def fit(self, values: Array, y: Array, sizes: Ints | None = None) -> Spread:
        """Fit to rows: `values` of shape (n_rows, K), NaN where missing, `y` of class codes.

        Categorical columns, whose numbers of categories are in `sizes`, have no variance and are ignored.
        """
        values = np.asarray(values, dtype=np.float64)
        # All values of a categorical column are then the same number.
        numeric = np.ones(values.shape[1], dtype=bool) if sizes is None else sizes == 0
        self._reset(*outer_quantiles(values, numeric))
        return self.partial_fit(values, y, 1.0)

    def partial_fit(self, values: Array, y: Array, fading: float) -> Spread:
        """Update with more rows; each multiplies the weight of the earlier ones by `fading`."""
        x = self._clip_and_scale(values)
        hot = faded_classes(y, self.n_classes, fading)
        there, x = ~np.isnan(x), np.nan_to_num(x)
        self._powers = fading ** len(y) * self._powers
        # For few rows at a time, BLAS sums each product in the same order for any number of threads.
        for at in range(0, len(y), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            power = there[part].astype(np.float64)
            for sums in self._powers:
                sums += hot[part].T @ power
                power *= x[part]
        self._update_coefficients()
        return self

    def _update_coefficients(self) -> None:
        """Compare the variances of the classes, (2)."""
        n, first, second, third, fourth = self._powers
        m = first / np.maximum(n, 1e-300)
        within = np.maximum(second - n * m**2, 0.0)
        fourth = np.maximum(fourth - 4.0 * m * third + 6.0 * m**2 * second - 3.0 * n * m**4, 0.0)
        total = np.maximum(n.sum(axis=0), 1e-300)
        common = np.maximum(within.sum(axis=0) / total, 1e-12)
        variance = (within + _ROWS * common) / (n + _ROWS)
        kurtosis = (fourth / variance**2).sum(axis=0) / total
        logarithm = np.log(variance)
        share = n / total
        apart = logarithm - (share * logarithm).sum(axis=0)
        chi2 = (n * apart**2).sum(axis=0) / (np.maximum(kurtosis, 3.0) - 1.0)
        degrees = np.maximum((n > 0.0).sum(axis=0) - 1.0, 0.0)
        shrinkage = np.maximum(0.0, 1.0 - 2.0 * degrees / np.maximum(chi2, 1e-300))
        varies = (n > 0.0) & (within.sum(axis=0) > 0.0)
        beyond = np.where(varies, shrinkage * (logarithm - np.log(common)), 0.0)
        self._means, self._level = m, -0.5 * beyond
        self._slope = 0.5 * np.expm1(-beyond) / common

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return len(self._low)

    def evidence(self, values: Array, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class, cumulated over its columns, (1).

        Parameters and return value as for :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        order = in_order(values) if order is None else order
        array = np.empty((len(order), order.shape[1] + 1, self.n_classes))
        _evidence(self._clip_and_scale(values), order, self._means, self._level, self._slope, array)
        return array.transpose(1, 0, 2)

    def _clip_and_scale(self, values: Array) -> Floats:
        """Return the numbers, clipped and scaled to -1 to 1, NaN where missing."""
        middle, half = self._low / 2.0 + self._high / 2.0, self._high / 2.0 - self._low / 2.0
        cut = np.clip(np.asarray(values, dtype=np.float64), self._low, self._high)
        return (cut - middle) / np.where(half > 0.0, half, 1.0)


# -- An ensemble of discriminant analyses, class variances and boosted trees: additive evidence and interactions

_MOST = 1.2  # largest weight
_WEIGHTS = np.linspace(0.0, 1.2, 25)


class Ensemble:
    """Class probabilities from any of the columns: two discriminant analyses, class variances and optional trees.

    Parameters
    ----------
    n_bins : int
        Number of bins in the first discriminant analysis; the second uses the values only.
    n_classes : int
    trees : bool
    network : bool, default=False
        Whether to use pairs of columns (:mod:`tamis.cells.ensemble`); not updated by `partial_fit`.

    Examples
    --------
    The class is the sign of a product, which no additive model can predict:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> model = Ensemble(4, 2).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    >>> model.posterior(np.array([[1.0, 1.0], [1.0, -1.0]])).round(1)
    array([[0., 1.],
           [1., 0.]])
    """

    _state_spec = Shapes(
        "n_kinds (=m)  evidence_weight (m) float in [0, 2]  prior (k) float in [0, 1]"
        "  _sums[] (its own)  _spread (its own)  _trees[] (its own)  _network[] (its own)"
        "  _sums[].prior (k)  _spread._means (k, d)  _trees[].prior (k)  _sums[]._low (d)  _trees[]._bins.edges (d, *)"
    )

    # State, after fit:
    #   evidence_weight (3 to 5,) float64  b
    #   prior    (n_classes,)  float64
    #   _sums          two Discriminant
    #   _spread        Spread
    #   _trees         SmallTrees, if any
    #   _network       NetworkEvidence, if any

    def __init__(self, n_bins: int, n_classes: int, trees: bool = True, network: bool = False) -> None:
        self._sums = [Discriminant(n_bins, n_classes), Discriminant(1, n_classes)]
        self._spread = Spread(n_classes)
        self._trees: list[SmallTrees] = [SmallTrees(n_classes)] if trees else []
        self._network: list[NetworkEvidence] = [NetworkEvidence(n_bins, n_classes)] if network else []
        self.evidence_weight: EvidenceWeights = np.ones(self.n_kinds)
        self.prior: Floats = self._sums[0].prior

    def fit(
        self, values: Floats, y: Array, order: Array | None = None, sizes: Ints | None = None
    ) -> Ensemble:
        """Fit to rows, see :meth:`tamis.cells.small_trees.SmallTrees.fit`."""
        for part in self._sums:
            part.fit(values, y, sizes)
        self._spread.fit(values, y, sizes)
        for trees in self._trees:
            trees.fit(values, y, order, sizes)
        for network in self._network:
            network.fit(values, y, sizes)
        self.prior = self._sums[0].prior
        return self

    def partial_fit(self, values: Floats, y: Array, fading: float) -> Ensemble:
        """Update the additive parts with more rows; the trees are unchanged."""
        updated = copy.copy(self)
        updated._sums = [copy.copy(part).partial_fit(values, y, fading) for part in self._sums]
        updated._spread = copy.copy(self._spread).partial_fit(values, y, fading)
        updated.prior = updated._sums[0].prior
        return updated

    @property
    def n_kinds(self) -> int:
        """Number of kinds of evidence."""
        return len(self._sums) + 1 + len(self._trees) + len(self._network)

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return self._sums[0].n_columns

    def _interactions(self) -> list[SmallTrees | NetworkEvidence]:
        return [*self._trees, *self._network]

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each kind, shape (n_kinds, n_steps + 1, n_rows, n_classes).

        Parameters are those of :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        kinds = [part.evidence(values, order) for part in self._sums]
        kinds.append(self._spread.evidence(values, order))
        return np.stack([*kinds, *(part.evidence(values, order) for part in self._interactions())])

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (1)."""
        kinds = [part.evidence(values)[-1] for part in self._sums]
        kinds.append(self._spread.evidence(values)[-1])
        kinds += [part.total_evidence(values) for part in self._interactions()]
        return posterior_of(np.stack(kinds), self.prior, self.evidence_weight)


EvidenceModel: TypeAlias = Ensemble | Masked  # of the acquired values


def posterior_path(model: EvidenceModel, values: Array, order: Array | None = None) -> Floats:
    """Return P(class) before the first column and after each, shape (n_steps + 1, n_rows, n_classes), (1)."""
    return posterior_of(model.evidence(values, order), model.prior, model.evidence_weight)


def fit_evidence_model(
    kind: str, values: Floats, y: Array, order: Array | None, *, n_bins: int, n_classes: int, classifier: Any,
    sizes: Ints | None = None,
) -> EvidenceModel:  # fmt: skip
    """Return a decision model, fitted to rows whose values become known in the given order.

    Parameters
    ----------
    kind : {"ensemble", "discriminant", "network", "classifier"}
        "discriminant" is the ensemble without trees, "network" the ensemble with pairs of columns instead of trees.
    values : ndarray of shape (n_rows, K)
        NaN where missing.
    y : ndarray of shape (n_rows,), int
    order : ndarray of shape (n_rows, n_steps), int, or None
        Columns, -1 for none; None: in natural order.
    n_bins, n_classes : int
    classifier : scikit-learn classifier
        Fitted if `kind` is "classifier".
    sizes : ndarray of shape (K,), int, optional
        Number of categories of each column, whose values are codes; 0 for numeric columns (the default for all).
    """
    if kind == "classifier":
        return Masked(classifier, n_classes).fit(values, y, order, sizes)
    return Ensemble(n_bins, n_classes, trees=kind == "ensemble", network=kind == "network").fit(
        values, y, order, sizes
    )


def evidence_by_kind(model: EvidenceModel, values: Floats, order: Array | None = None) -> Floats:
    """Return the evidence of a model by kind, shape (n_kinds, n_steps + 1, n_rows, n_classes)."""
    evidence = model.evidence(values, order)
    return evidence if evidence.ndim == 4 else evidence[None]


def concatenate_evidence(parts: list[Floats]) -> Floats:
    """Return the evidence (n_kinds, n_steps, n_rows, ...) of all parts; shorter walks repeat their last step."""
    n_steps = max(part.shape[1] for part in parts)
    return np.concatenate([pad_steps(part, n_steps, axis=1) for part in parts], axis=2)


def calibrate_evidence(evidence: Floats, prior: Floats, y: Array) -> tuple[Floats, EvidenceWeights]:
    """Return the posteriors of a model, and the weights of its evidence.

    Parameters
    ----------
    evidence : ndarray of shape (n_kinds, n_steps + 1, n_rows, n_classes)
        Evidence on walks of held-out rows.
    prior : ndarray of shape (n_rows, n_classes)
    y : ndarray of shape (n_rows,), int
    """
    steps = evidence[:, 1:]
    if len(evidence) > 1:
        weights = fit_evidence_weights(steps, prior, y)
        return posterior_of(evidence, prior, weights), weights
    evidence_weight = fit_evidence_weight(steps[0], prior, y) if steps.shape[1] else 1.0
    return posterior_of(evidence[0], prior, evidence_weight), evidence_weight


def fit_evidence_weight(evidence: Floats, prior: Floats, y: Array) -> float:
    """Return the weight of the evidence that maximises the likelihood of the labels: 0 if it is uninformative.

    Parameters
    ----------
    evidence : ndarray of shape (..., n_rows, n_classes)
        For held-out rows.
    prior : ndarray of shape (n_rows, n_classes)
    y : ndarray of shape (n_rows,)
    """
    base = np.log(np.maximum(prior, 1e-300))
    steps = np.ascontiguousarray(evidence).reshape(1, -1, *prior.shape)

    @functools.cache
    def loss(i: int) -> float:
        return _label_loss(steps, base, y, _WEIGHTS[i : i + 1], np.zeros(1))

    # The loss is convex in the weight: descend from 1 until it first rises.
    at = int(np.argmin(np.abs(_WEIGHTS - 1.0)))
    down = -1 if loss(at - 1) <= loss(at) else 1
    while 0 <= at + down < len(_WEIGHTS):
        if loss(at + down) > loss(at) or (down > 0 and loss(at + down) == loss(at)):
            break
        at += down
    return float(_WEIGHTS[at])


def fit_evidence_weights(each: Floats, prior: Floats, y: Array) -> Floats:
    """Return the weights of several kinds of evidence that maximise the likelihood of the labels.

    `each` has the shape (m, n_steps, n_rows, n_classes).

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> signal = (2 * y - 1) + rng.normal(size=500)
    >>> each = np.zeros((2, 1, 500, 2))
    >>> each[0, 0, :, 1], each[1, 0, :, 1] = 2 * signal, rng.normal(size=500)
    >>> fit_evidence_weights(each, np.full((500, 2), 0.5), y).round(1)
    array([0.9, 0. ])
    """
    n_steps = max(each.shape[1], 1)
    base, each = np.log(np.maximum(prior, 1e-300)), np.ascontiguousarray(each)

    def loss(weights: Floats) -> tuple[float, Floats]:
        slope = np.zeros(len(weights))
        total = _label_loss(each, base, y, weights, slope)
        return total / n_steps + float(weights.sum()), slope / n_steps + 1.0

    start, bounds = np.full(len(each), 0.5), [(0.0, _MOST)] * len(each)
    return scipy.optimize.minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x


@njit(strict=True)
def _label_loss(each: Array, base: Array, y: Array, weights: Array, slope: Array) -> float:
    """Return the negative logarithm of the likelihood of the labels, over steps and rows, and fill in its gradient."""
    n_kinds, n_steps, n, n_classes = each.shape
    total, score, share = 0.0, np.empty(n_classes), np.empty(n_classes)
    for s in range(n_steps):
        for i in range(n):
            top = -np.inf
            for c in range(n_classes):
                score[c] = base[i, c]
                for m in range(n_kinds):
                    score[c] += weights[m] * each[m, s, i, c]
                top = max(top, score[c])
            norm = 0.0
            for c in range(n_classes):
                share[c] = np.exp(score[c] - top)
                norm += share[c]
            total += top + np.log(norm) - score[y[i]]
            for c in range(n_classes):
                error = share[c] / norm - (c == y[i])
                for m in range(n_kinds):
                    slope[m] += error * each[m, s, i, c]
    return total
