"""Class probabilities from any subset of the values: linear discriminant analysis of any columns.

Each numeric column is represented by its value and its bins, so that a relation need be neither linear nor monotone; a
categorical column by one indicator per category, so that the order of categories is irrelevant. Rows of a class are
assumed to be normal about the class mean, with one covariance for all classes. The evidence of a set S of columns then
requires only the means and covariance of S (Fisher 1936; regularised as in Friedman 1989, Journal of the American
Statistical Association 84)::

    log P(c | x_S) = log P(c) + b (m_c' W^-1 x - m_c' W^-1 m_c / 2) + const,    all of S               (1)

with W the covariance within the classes plus a ridge, and b >= 0 the weight of the evidence, fitted to held-out rows:
uninformative evidence has the weight 0, and the posterior is then the prior.

======  ===================  =================================================================
symbol  here                 meaning
======  ===================  =================================================================
x       ``_features``        values and bins of a row, standardised; V for each numeric column
m_c     ``_means``           mean of class c
W       ``_covariance``      within the classes, with the ridge
b       ``evidence_weight``  weight of the evidence
======  ===================  =================================================================
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints
from tamis.cells.bins import Bins, faded_classes, in_order, outer_quantiles
from tamis.errors import StateError

EvidenceWeights = float | Floats  # one weight, or one for each kind of evidence

_RIDGE, _ROWS = 0.1, 100.0  # ridge of each standardised feature; doubled at this number of rows
_AT_ONCE = 128  # rows processed at a time
_BLOCK = 32 * _AT_ONCE  # rows whose features are in memory at a time
_LARGEST, _ROUNDING = 1e50, 1e-6  # bounds for the standardised features of a loaded state


@njit(strict=True)
def _evidence(
    x: Array, start: Array, order: Array, covariance: Array, factor: Array, means: Array, white_means: Array,
    evidence: Array,
) -> None:  # fmt: skip
    """Fill in m_c' W^-1 x - m_c' W^-1 m_c / 2 of each row and class after each of the columns in order, (1).

    The Cholesky factor of W grows by the rows of one column at a time; as long as the columns are in their natural
    order, it is that of all columns. Columns of -1 are skipped. Column j has the features start[j] to start[j + 1].
    """
    n, n_steps = order.shape
    L, D = means.shape
    own, at = np.empty((D, D)), np.empty(D, np.int64)
    white, centre = np.empty(D), np.empty((L, D))  # features and means after whitening
    for i in range(n):
        d, in_order = 0, True
        for c in range(L):
            evidence[i, 0, c] = 0.0
        for s in range(n_steps):
            j = order[i, s]
            for c in range(L):
                evidence[i, s + 1, c] = evidence[i, s, c]
            if j < 0:
                continue
            in_order = in_order and start[j] == d
            for feature in range(start[j], start[j + 1]):
                at[d] = feature
                for e in range(d + 1):
                    if in_order:
                        own[d, e] = factor[d, e]
                        continue
                    total = covariance[at[d], at[e]]
                    for f in range(e):
                        total -= own[d, f] * own[e, f]
                    own[d, e] = np.sqrt(total) if d == e else total / own[e, e]
                total = x[i, feature]
                for f in range(d):
                    total -= own[d, f] * white[f]
                white[d] = total / own[d, d]
                for c in range(L):
                    if in_order:
                        centre[c, d] = white_means[c, d]
                    else:
                        total = means[c, at[d]]
                        for f in range(d):
                            total -= own[d, f] * centre[c, f]
                        centre[c, d] = total / own[d, d]
                    evidence[i, s + 1, c] += centre[c, d] * (white[d] - 0.5 * centre[c, d])
                d += 1


@njit(strict=True)
def _whiten(covariance: Array, means: Array, factor: Array, white_means: Array) -> None:
    """Fill in the Cholesky factor and the whitened means, with the summation order of `_evidence`.

    LAPACK is not used because its last bits depend on the number of threads.
    """
    D = len(covariance)
    for d in range(D):
        for e in range(d + 1):
            total = covariance[d, e]
            for f in range(e):
                total -= factor[d, f] * factor[e, f]
            factor[d, e] = np.sqrt(total) if d == e else total / factor[e, e]
        for c in range(len(means)):
            total = means[c, d]
            for f in range(d):
                total -= factor[d, f] * white_means[c, f]
            white_means[c, d] = total / factor[d, d]


class Discriminant:
    """Probabilities of the classes from any of the columns.

    Parameters
    ----------
    n_bins : int
        Number of bins of each column.
    n_classes : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 2))
    >>> X[:, 1] += 3 * y
    >>> model = Discriminant(n_bins=4, n_classes=2).fit(X, y)
    >>> model.posterior(np.array([[0.0, np.nan], [0.0, 3.0]])).round(1)
    array([[0.4, 0.6],
           [0. , 1. ]])
    """

    _state_spec = Shapes(
        "_count (k) float in [0, 1e50]  _bins.edges (d, e) float in [-inf, inf]  _n_edges (=e)"
        "  _bins.sizes (d) in [0, e+1]  _bins.levels in [1, e+1]  _start (d+1) in [0, f] increasing  _low (d) finite"
        "  _high (d) float in [_low, inf)  _middle (f) float in [-1e150, 1e150]  _scale (f) float in [1e-300, inf)"
        "  _sum (k, f) float in [-1e50, 1e50]  _products (f, f) float in [-1e50, 1e50]"
        "  _covariance (f, f) float in [-1e50, 1e50]  _factor (f, f) float in [-1e50, 1e50]"
        "  _means (k, f) float in [-1e50, 1e50]  _white_means (k, f) float in [-1e50, 1e50]"
        "  prior (k) float in [0, 1]  n_bins in [1, e+1]  n_classes in [k, k]  evidence_weight float in [0, 2]"
    )

    # State after fit, for K columns with D features together:
    #   _bins                         edges of the columns, and numbers of categories
    #   _start          (K + 1,)      first feature of each column
    #   _low, _high     (K,)          bounds at which numbers are clipped
    #   _count          (n_classes,)  rows of each class, with fading
    #   _sum            (n_classes, D) of their features
    #   _products       (D, D)        of their features
    #   _middle, _scale (D,)          centre and scale of the features
    #   _covariance, _factor (D, D), _means, _white_means (n_classes, D), prior (n_classes,)
    #   evidence_weight float

    def __init__(self, n_bins: int, n_classes: int) -> None:
        self.n_bins, self.n_classes, self.evidence_weight = n_bins, n_classes, 1.0
        self._bins, self._start = Bins(np.empty((0, n_bins - 1))), np.zeros(1, dtype=np.int64)
        self._low, self._high = np.zeros(0), np.zeros(0)
        self._middle, self._scale = np.zeros(0), np.ones(0)
        self._count, self._sum = np.zeros(n_classes), np.zeros((n_classes, 0))
        self._products = np.zeros((0, 0))
        self._covariance: Floats = np.zeros((0, 0))
        self._factor: Floats = np.zeros((0, 0))
        self._means: Floats = np.zeros((n_classes, 0))
        self._white_means: Floats = np.zeros((n_classes, 0))
        self.prior: Floats = np.full(n_classes, 1.0 / n_classes)

    def fit(self, values: Array, y: Array, sizes: Ints | None = None) -> Discriminant:
        """Fit to rows: `values` of shape (n_rows, K), NaN where missing, `y` of class codes.

        `sizes` is the number of categories of each column, 0 for numbers; by default all are numbers.
        """
        values = np.asarray(values, dtype=np.float64)
        self._bins = Bins.quantile(values, self.n_bins).with_categories(sizes)
        self._n_edges = self._bins.edges.shape[1]
        self._start = np.r_[0, np.cumsum(self._bins.n_levels)]
        self._low, self._high = outer_quantiles(values, np.ones(values.shape[1], dtype=bool))
        D = int(self._start[-1])
        known = np.repeat((~np.isnan(values)).sum(axis=0), np.diff(self._start))
        count = np.maximum(known, 1)
        self._middle, low, high = np.zeros(D), np.full(D, np.inf), np.full(D, -np.inf)
        for raw in self._raw_blocks(values):
            low, high = np.fmin(low, np.fmin.reduce(raw)), np.fmax(high, np.fmax.reduce(raw))
            self._middle += (np.where(np.isnan(raw), 0.0, raw) / count).sum(axis=0)
        largest = np.where(known > 0, np.maximum(self._middle - low, high - self._middle), 0.0)
        # Constant features; values are squared in units of the largest, to avoid overflow.
        largest[largest == 0.0] = 1.0
        squares = np.zeros(D)
        for raw in self._raw_blocks(values):
            apart = np.where(np.isnan(raw), 0.0, raw - self._middle)
            squares += ((apart / largest) ** 2).sum(axis=0)
        spread = largest * np.sqrt(squares / count)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        self._count, self._sum = np.zeros(self.n_classes), np.zeros((self.n_classes, D))
        self._products = np.zeros((D, D))
        return self.partial_fit(values, y, 1.0)

    def partial_fit(self, values: Array, y: Array, fading: float) -> Discriminant:
        """Update with more rows; each multiplies the weight of the earlier ones by `fading`."""
        hot, kept = faded_classes(y, self.n_classes, fading), fading ** len(y)
        weight = hot[np.arange(len(y)), y]
        self._count = kept * self._count + hot.sum(axis=0)
        self._sum, self._products = kept * self._sum, kept * self._products
        # For few rows at a time, BLAS sums each product in the same order for any number of threads.
        for block in range(0, len(y), _BLOCK):
            x = self._features(values[block : block + _BLOCK])
            for at in range(0, len(x), _AT_ONCE):
                part, rows = x[at : at + _AT_ONCE], slice(block + at, min(block + at + _AT_ONCE, len(y)))
                self._sum += hot[rows].T @ part
                self._products += (part * weight[rows, None]).T @ part
        self._solve()
        return self

    def _solve(self) -> None:
        n = self._count.sum()
        self.prior = self._count / n
        self._means = self._sum / np.maximum(self._count, 1e-300)[:, None]
        self._means[self._count == 0.0] = 0.0
        within = (self._products - (self._means.T * self._count) @ self._means) / max(n - self.n_classes, 1.0)
        ridge = _RIDGE * (1.0 + _ROWS / n)
        self._covariance = within + ridge * np.eye(len(within))
        self._factor, self._white_means = np.zeros_like(self._covariance), np.empty_like(self._means)
        _whiten(self._covariance, self._means, self._factor, self._white_means)

    def check_state(self) -> None:
        """Validate that means and covariance are consistent: kernels take roots of it and divide by its factor.

        Raises
        ------
        StateError
            If they are not.
        """
        ends = np.stack([self._low, self._high])
        with np.errstate(over="ignore", invalid="ignore"):
            first = self._start[:-1]
            x = (ends - self._middle[first]) / self._scale[first]
        factor, tolerance = self._factor, _ROUNDING * max(np.abs(self._covariance).max(initial=0.0), 1.0)
        fits = (
            (np.abs(x) <= _LARGEST).all()
            and (np.diagonal(factor) > 0.0).all()
            and np.allclose(factor @ factor.T, self._covariance, rtol=0.0, atol=tolerance)
            and np.allclose(self._white_means @ factor.T, self._means, rtol=_ROUNDING, atol=tolerance)
            and abs(self.prior.sum() - 1.0) <= _ROUNDING
        )
        if not fits:
            raise StateError(
                "The means and the covariance of a discriminant analysis fit no rows: the model was changed from"
                " outside, so fit it again or load it from where it was saved."
            )

    @property
    def n_columns(self) -> int:
        """Number of columns of the model."""
        return len(self._low)

    def evidence(self, values: Array, order: Array | None = None) -> Floats:
        """Return the evidence of each row for each class, cumulated over its columns, unweighted.

        Parameters
        ----------
        values : ndarray of shape (n_rows, K)
        order : ndarray of shape (n_rows, n_steps), int, optional
            The columns in the order in which they become known in each row, -1 for none; by default all in order.

        Returns
        -------
        ndarray of shape (n_steps + 1, n_rows, n_classes)
            Before the first column, and after each.
        """
        order = in_order(values) if order is None else order
        if self.n_columns == 0:
            return np.zeros((order.shape[1] + 1, len(values), self.n_classes))
        there = ~np.isnan(
            np.take_along_axis(np.asarray(values, dtype=np.float64), np.maximum(order, 0), axis=1)
        )
        order = np.where(there, order, -1)
        array = np.empty((len(order), order.shape[1] + 1, self.n_classes))
        _evidence(
            self._features(values),
            self._start,
            order,
            self._covariance,
            self._factor,
            self._means,
            self._white_means,
            array,
        )
        return array.transpose(1, 0, 2)

    def posterior(self, values: Array) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (1)."""
        return posterior_of(self.evidence(values)[-1], self.prior, self.evidence_weight)

    def _raw_blocks(self, values: Array) -> Iterator[Floats]:
        """Return the features of a block of rows at a time, to bound the memory."""
        return (self._raw(values[at : at + _BLOCK]) for at in range(0, len(values), _BLOCK))

    def _raw(self, values: Array) -> Floats:
        """Return the features of each value, shape (n_rows, D); NaN where missing."""
        codes = self._bins.codes(values)
        column = np.repeat(np.arange(self.n_columns), np.diff(self._start))
        level = np.arange(len(column)) - self._start[column]
        code = codes[:, column]
        features = np.where(self._bins.sizes[column] > 0, code == level, code >= level).astype(np.float64)
        features[code < 0] = np.nan
        number = np.flatnonzero(self._bins.sizes == 0)
        features[:, self._start[number]] = np.clip(values[:, number], self._low[number], self._high[number])
        return features

    def _features(self, values: Array) -> Floats:
        """Return x, shape (n_rows, D): 0, the mean, where missing."""
        values = np.asarray(values, dtype=np.float64)
        x: Floats = (self._raw(values) - self._middle) / self._scale
        x[np.isnan(x)] = 0.0
        return x


def posterior_of(evidence: Floats, prior: Floats, weight: EvidenceWeights) -> Floats:
    """Return P(class) from the evidence for each class, the last axis, (1); several kinds of it are summed."""
    several = isinstance(weight, np.ndarray)
    score = np.log(np.maximum(prior, 1e-300))
    # Summed in a fixed order, so that a single row has the same bits as in a batch.
    for b, kind in zip(np.atleast_1d(weight), evidence if several else [evidence], strict=True):
        score = score + b * kind
    posterior: Floats = np.exp(score - score.max(axis=-1, keepdims=True))
    posterior[..., prior == 0.0] = 0.0
    posterior /= posterior.sum(axis=-1, keepdims=True)
    return posterior
