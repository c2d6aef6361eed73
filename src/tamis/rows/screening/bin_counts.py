"""Counts of the bins of every feature per class: quantile bins of numeric features, and single categories.

Numeric features are counted by a :class:`QuantileSummary`, categorical ones by a :class:`Contingency`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._shapes import SizedState
from tamis._validation import Array, Floats, Indices, Ints, Rows
from tamis.dependence.autocorrelation import Inflation
from tamis.dependence.information_band import information_band
from tamis.errors import DataError
from tamis.summaries.batch import change_parts, faded
from tamis.summaries.contingency import (
    Contingency,
    chi_square,
    chi_square_pvalue,
    gini_decrease,
    independence_statistic,
)
from tamis.summaries.fixed_bins import FixedBins
from tamis.summaries.pruned_quantiles import PrunedQuantiles
from tamis.summaries.quantiles import QuantileSummary, rows_until_lost

Statistic = Callable[[Array], tuple[Array, Array]]
Counts = tuple[Indices, Floats, bool]
_MOST_CATEGORIES = 1 << 16
_FEW_CATEGORIES = 32  # a feature of fewer is scored by its raw counts
_RARE = 5.0  # rows; Cochran's rule for the chi-square approximation


class BinCounts(SizedState):
    """The counts from which the bin scores are computed; mergeable.

    Parameters
    ----------
    n_features : int
    categorical : ndarray of int
        Categorical features, in order: integers from 0 to 65,535.
    n_bins : int, at least 2
        Bins of about equal weight for each of the other features.
    eps : float in (0, 0.5)
        Largest error of a cumulative count, as a fraction of all.
    dtype : {"float32", "float64"}
        Type of the stored numbers. "float32" is float64 for the first rows, and later if float32 would make many
        distinct numbers of a feature equal: those of a small spread around a large value.
    cut_every : float
        Number of rows (or calls, with `per_call`) after which the bins of the tests are updated: infinite unless rows
        fade.
    per_call : bool
    summary : {"thinned", "pruned"}, default="thinned"
        How the values of numeric features are summarised: :class:`QuantileSummary` or :class:`PrunedQuantiles`.

    Examples
    --------
    >>> bins = BinCounts(2, np.array([1]), n_bins=2, eps=0.01, dtype="float32")
    >>> bins.grow(n_classes=2)
    >>> bins.update(np.array([[0.1, 7], [0.2, 7], [0.8, 0], [0.9, 0]]), np.array([0, 0, 1, 1]), None, 1.0, None)
    True
    >>> [table[0, [0, -1]].tolist() for _, table, _ in bins.tables()]
    [[[2.0, 0.0], [0.0, 2.0]], [[0.0, 2.0], [2.0, 0.0]]]
    """

    _common = np.empty((0, 0))  # (n_categorical, n_bins - 1), the categories with a separate bin
    # For dtype="float32": the last row, and the number of values of each feature that float32 may confuse with the
    # value before. None for "float64".
    _last: Array | None = None
    _ties: Ints | None = None
    _coarse = False  # whether float32 is too coarse for a feature

    def __init__(
        self,
        n_features: int,
        categorical: Indices,
        n_bins: int,
        eps: float,
        dtype: str,
        cut_every: float = np.inf,
        per_call: bool = False,
        summary: str = "thinned",
    ) -> None:
        self.n_features = n_features
        self.n_bins = n_bins
        self.categorical = categorical
        self.numeric: Indices = np.setdiff1d(np.arange(n_features), categorical)
        kind = PrunedQuantiles if summary == "pruned" else QuantileSummary
        # Validates `eps`.
        self._quantiles: QuantileSummary | PrunedQuantiles = kind(len(self.numeric), 0, eps, "float64")
        if dtype == "float32":
            self._last, self._ties = np.full(len(self.numeric), np.nan), np.zeros(len(self.numeric), np.int64)
        self._categories = Contingency(len(categorical), 1, 0) if len(categorical) else None
        self._exact: FixedBins | None = FixedBins(
            len(self.numeric), 0, n_bins, cut_every=cut_every, per_call=per_call
        )

    @functools.cached_property
    def _tables(self) -> list[Counts] | None:
        """What `tables` returns until the next change, for several scores."""
        return None

    def _change(
        self, change: Callable[[Any], None], names: tuple[str, ...] = ("_quantiles", "_exact", "_categories")
    ) -> None:
        """Change copies of the summaries, which earlier shallow copies of this object share."""
        self._tables = None
        change_parts(self, names, change)

    def grow(self, n_classes: int) -> None:
        """Add new classes, in new arrays: earlier shallow copies are unchanged."""
        self._change(lambda part: part.grow(n_classes))

    def widen(self, n_features: int) -> None:
        """Add numeric features, which were 0 in all (CSR) rows so far."""
        self._change(lambda part: part.widen(n_features - len(self.categorical)), ("_quantiles", "_exact"))
        if self._ties is not None and self._last is not None:
            more = (0, n_features - self.n_features)
            self._last, self._ties = np.pad(self._last, more), np.pad(self._ties, more)
        self.numeric = np.concatenate([self.numeric, np.arange(self.n_features, n_features)])
        self.n_features = n_features

    def forget(self, columns: Indices) -> None:
        """Reset some features; they then count as 0 in all (CSR) rows so far. There must be no categories."""
        self._change(lambda part: part.forget(columns))
        if self._ties is not None:
            self._ties = self._ties.copy()
            self._ties[columns] = 0

    def cut_as(self, other: BinCounts) -> None:
        """Use the bins of an object for the same features, if it has any, before anything is counted."""
        if self._exact is not None and other._exact is not None and other._exact.edges is not None:
            self._exact.cut_at(other._exact.edges)
            self._coarse = other._coarse
            self._choose_type()
        self._common = other._common

    def reorder(self, order: Array) -> None:
        """Change the code of each class: class c becomes what class `order[c]` was."""
        self._change(lambda part: part.reorder(order))

    # -- learning ------------------------------------------------------------------------------------------

    def check_categories(self, X: Rows, names: list[str] | None) -> None:
        """Raise DataError if a value of a categorical column is not a category, naming its column and row."""
        if not len(self.categorical):
            return
        values = self._part(X, self.categorical)
        fit = (values >= 0) & (values < _MOST_CATEGORIES) & (values == np.floor(values))
        if (fit | np.isnan(values)).all():
            return
        row, at = np.argwhere(~(fit | np.isnan(values)))[0]
        column = int(self.categorical[at])
        raise DataError(
            f"Column {names[column] if names else column!r} is categorical, but contains {values[row, at]} in row {row}"
            f" of the batch: encode its values as 0, 1, ..., {_MOST_CATEGORIES - 1} at most."
        )

    def update(
        self, X: Rows, codes: Array, sample_weight: Array | None, keep: float | Array, fade: Array | None
    ) -> bool:
        """Update with a batch of validated categories; False, without any change, if a number is infinite."""
        self._tables = None
        if len(self.numeric):
            numbers = self._part(X, self.numeric, dense=False)
            if not self._update_numbers(numbers, codes, sample_weight, keep, fade):
                return False
        if self._categories is None:
            return True
        values = self._part(X, self.categorical)
        largest = np.fmax.reduce(values, axis=None, initial=0.0)
        if largest >= self._categories.n_bins:
            self._categories.grow(self._categories.n_classes, int(largest) + 1)
        self._categories.update(values, codes, faded(sample_weight, fade), keep)
        return True

    def _choose_type(self) -> None:
        """Store numbers as float32 once the first rows have determined the bins, unless it is too coarse."""
        if self._ties is not None and (self._exact is None or self._exact.edges is not None):
            self._coarse = self._coarse or (self._exact is not None and self._exact.coarse)
            self._quantiles = self._quantiles.stored_as("float64" if self._coarse else "float32")

    def _update_numbers(
        self, X: Rows, codes: Array, sample_weight: Array | None, keep: float | Array, fade: Array | None
    ) -> bool:
        """Update the quantiles and fixed bins, in two parts if the type of stored numbers changes in between."""
        n = stop = len(codes)
        changes = False
        if self._ties is not None and self._last is not None and not self._coarse:
            if self._quantiles.dtype == "float64" and self._exact is not None:
                changes, stop = True, min(n, self._exact.rows_until_cut)
                if np.isinf(X.data if sp.issparse(X) else X).any():
                    return False
            fits = rows_until_lost(X if stop == n else X[:stop], self._last, self._ties)
            if fits < 0:
                return False
            if fits < stop:
                changes, self._coarse = True, True
                stop = stop if self._quantiles.dtype == "float64" else fits
        head = (
            X if stop == n else X[:stop],
            codes[:stop],
            None if sample_weight is None else sample_weight[:stop],
            None if fade is None else fade[:stop],
        )
        if not self._quantiles.update(*head[:2], faded(*head[2:]), keep):
            return False
        if self._exact is not None:
            self._exact.update(*head[:3], keep, head[3], whole=stop == n)
        if changes:
            self._choose_type()
        if stop == n:
            return True
        weight = None if sample_weight is None else sample_weight[stop:]
        return self._update_numbers(
            X[stop:], codes[stop:], weight, 1.0, None if fade is None else fade[stop:]
        )

    def _part(self, X: Rows, columns: Indices, *, dense: bool = True) -> Any:
        part = X if len(columns) == self.n_features else X[:, columns]
        return part.toarray() if dense and sp.issparse(part) else part

    def fade(self, keep: float | Array) -> None:
        """Multiply the weight of all rows (of each class) by `keep`, in [0, 1]."""
        self._change(lambda part: part.fade(keep))

    def merge(self, other: BinCounts) -> None:
        """Add the counts of an object with the same parameters and classes."""
        self._tables = None
        if len(self.numeric):
            if self._exact is not None and other._exact is not None:
                self._exact.merge(other._exact)
            else:
                self._exact = None
            if self._ties is not None and other._ties is not None:
                self._ties = np.maximum(self._ties, other._ties)
                self._coarse = self._coarse or other._coarse
            self._choose_type()
            self._quantiles.merge(other._quantiles.stored_as(self._quantiles.dtype))  # type: ignore[arg-type]
        if not len(self._common):
            self._common = other._common
        if self._categories is not None and other._categories is not None:
            theirs = copy.copy(other._categories)
            n_bins = max(self._categories.n_bins, theirs.n_bins)
            self._categories.grow(self._categories.n_classes, n_bins)
            theirs.grow(theirs.n_classes, n_bins)
            self._categories.merge(theirs)

    # -- read-outs -----------------------------------------------------------------------------------------

    def tables(self) -> list[Counts]:
        """Return the features, their counts of shape (features, bins, classes), and whether the bins are ordered."""
        if self._tables is None:
            tables: list[Counts] = []
            if len(self.numeric):
                tables.append((self.numeric, self._quantiles.counts(self.n_bins), True))
            if self._categories is not None:
                tables.append((self.categorical, pool_rare_categories(self._categories.table()), False))
            self._tables = tables
        return self._tables

    @property
    def has_cells(self) -> bool:
        """Whether `cells` can determine the bin of a value."""
        numbers = not len(self.numeric) or (self._exact is not None and self._exact.edges is not None)
        return numbers and (not len(self.categorical) or len(self._common) > 0)

    def name_common(self, X: Rows) -> None:
        """Assign a bin to each of the most frequent categories of these rows, of any class; the others share one."""
        values = self._part(X, self.categorical)
        self._common = np.full((len(self.categorical), self.n_bins - 1), -1.0)
        for j in range(len(self.categorical)):
            codes, counts = np.unique(values[~np.isnan(values[:, j]), j], return_counts=True)
            most = codes[np.argsort(-counts, kind="stable")][: self.n_bins - 1]
            self._common[j, : len(most)] = most

    def cells(self, X: Array, columns: Array) -> NDArray[np.int16]:
        """Return the bin of each value of some features, -1 for missing values."""
        bins = np.empty(X.shape, np.int16)
        numeric = np.isin(columns, self.numeric)
        if numeric.any():
            assert self._exact is not None
            assert self._exact.edges is not None
            places = np.searchsorted(self.numeric, columns[numeric])
            bins[:, numeric] = (X[:, numeric, None] > self._exact.edges[places]).sum(axis=2)
        if not numeric.all():
            places = np.searchsorted(self.categorical, columns[~numeric])
            same = X[:, ~numeric, None] == self._common[places]
            bins[:, ~numeric] = np.where(same.any(axis=2), same.argmax(axis=2), self.n_bins - 1)
        bins[np.isnan(X)] = -1
        return bins

    def test(self, statistic_of: Statistic) -> tuple[Floats, Ints] | None:
        """Return a statistic of exact counts of the numbers and its degrees of freedom; None if there are none yet."""
        return None if self._exact is None else self._exact.test(statistic_of)

    @property
    def rows_until_cut(self) -> int:
        """Number of rows before the edges of numeric features are determined; 0 afterwards."""
        if self._exact is None or not len(self.numeric) or self._exact.edges is not None:
            return 0
        return self._exact.rows_until_cut

    def edges(self) -> Floats | None:
        """Return the bin edges of all features, (n_features, n_bins - 1); None before those of numbers are determined.

        For categories, the first codes have a separate bin, and the others share one.
        """
        edges = np.empty((self.n_features, self.n_bins - 1))
        edges[self.categorical] = np.arange(self.n_bins - 1) + 0.5
        if len(self.numeric):
            if self._exact is None or self._exact.edges is None:
                return None
            edges[self.numeric] = self._exact.edges
        return edges

    def counts_at_edges(self) -> Floats | None:
        """Return the weights of the values in the bins of :meth:`edges`, (n_classes, n_bins, n_features), of all rows.

        None if they are unknown, because the edges were determined more than once.
        """
        n_classes = self._quantiles.n_classes
        counts = np.zeros((n_classes, self.n_bins, self.n_features))
        if len(self.numeric):
            if self._exact is None or not self._exact.is_whole:
                return None
            counts[:, :, self.numeric] = self._exact.counts().T
        if self._categories is not None:
            table = self._categories.table().T
            counts[:, : table.shape[1], self.categorical] = table[:, : self.n_bins]
            counts[:, -1, self.categorical] += table[:, self.n_bins :].sum(axis=1)
        return counts

    def information_band(self, alpha: float, inflation: Array | None = None) -> tuple[Floats, Floats]:
        """Return a band of the mutual information of each feature: 0 to the maximum for categories.

        The `inflation` of each feature divides the number of rows; nan: no rows.
        """
        n_classes = self._quantiles.n_classes
        low, high = np.zeros(self.n_features), np.full(self.n_features, np.log(max(n_classes, 1)))
        table = None if self._exact is None else self._exact.counts_since_cut()
        if table is not None and inflation is not None:
            table = table / np.nan_to_num(inflation[self.numeric], nan=np.inf)[:, None, None]
        if table is not None:
            low[self.numeric], high[self.numeric] = information_band(table, alpha)
        return low, high

    @property
    def rank_error(self) -> float:
        """Largest certified error of a cumulative count, as a fraction of all."""
        return float(self._quantiles.rank_error().max(initial=0.0))


def pool_rare_categories(table: Floats) -> Floats:
    """Return counts in which the rare categories of features with many categories share a bin.

    A category of one row predicts the label of that row, so the scores of an identifier would be the largest possible.
    In a feature of more than 32 categories, those with a weight below 5 rows are counted together.

    Parameters
    ----------
    table : ndarray of shape (n_features, n_categories, n_classes), float64

    Returns
    -------
    ndarray of shape (n_features, n_categories, n_classes), float64
        `table` itself if nothing is pooled.

    Examples
    --------
    An identifier of 40 rows, and a feature of two categories:

    >>> labels = np.arange(40) % 2
    >>> table = np.zeros((2, 40, 2))
    >>> table[0, np.arange(40), labels] = 1.0
    >>> np.add.at(table[1], (labels, labels), 1.0)
    >>> pooled = pool_rare_categories(table)
    >>> pooled[0].any(axis=1).sum(), pooled[0, 0], (pooled[1] == table[1]).all()
    (np.int64(1), array([20., 20.]), np.True_)
    """
    weight = table.sum(axis=2)
    rare = (weight > 0.0) & (weight < _RARE)
    rare &= ((weight > 0.0).sum(axis=1) > _FEW_CATEGORIES)[:, None]
    if not rare.any():
        return table
    pooled = np.where(rare[:, :, None], 0.0, table)
    pooled[np.arange(len(table)), rare.argmax(axis=1)] += np.where(rare[:, :, None], table, 0.0).sum(axis=1)
    return pooled


def gini_of_categories(table: Floats) -> Floats:
    """Return the largest decrease of the Gini impurity by splitting the categories in two.

    For each class, the categories are ordered by their proportion of the class, and all cuts are evaluated. For two
    classes, one of these splits is optimal (Breiman, Friedman, Olshen, Stone 1984, Theorem 4.5).

    Parameters
    ----------
    table : ndarray of shape (n_features, n_categories, n_classes), float64

    Returns
    -------
    ndarray of shape (n_features,), float64
        In [0, 1).

    Examples
    --------
    Categories 0 and 2 belong to one class, category 1 to the other:

    >>> gini_of_categories(np.array([[[20.0, 0.0], [0.0, 40.0], [20.0, 0.0]]]))
    array([0.5])
    """
    n_classes = table.shape[2]
    of_category = table.sum(axis=2, keepdims=True)
    share = np.divide(table, of_category, out=np.zeros_like(table), where=of_category > 0.0)
    best = np.zeros(len(table))
    for c in range(n_classes if n_classes > 2 else 1):
        order = np.argsort(share[:, :, c], axis=1)
        best = np.maximum(best, gini_decrease(np.take_along_axis(table, order[:, :, None], axis=1)))
    return best


def gini_statistic(
    table: Floats, in_order: bool = True, inflation: Inflation | None = None
) -> tuple[Floats, Ints]:
    """Return minus twice the log of the p-value of the Gini index, as a statistic, and its degrees of freedom.

    With q the class proportions of n rows that are independent of the class, n times the decrease by one cut is
    distributed like a weighted sum of squares, with the eigenvalues of diag(q) - qq' as weights, for any cut (Light,
    Margolin 1971)::

        mean 1 - sum q^2,    freedom (1 - sum q^2)^2 / (sum q^2 - 2 sum q^3 + (sum q^2)^2)    (Satterthwaite)

    The p-value is that of the best cut times the number of cuts (Bonferroni). The best split of k categories is bounded
    by the decrease of a split into all k, which has k - 1 times this mean and these degrees of freedom.

    Parameters
    ----------
    table : ndarray of shape (n_features, n_bins, n_classes), float64
        Numbers of rows.
    in_order : bool, default=True
        Whether bins are ordered.
    inflation : Inflation, optional
        Of these features, for dependent rows.

    Returns
    -------
    statistic : ndarray of shape (n_features,), float64
    freedom : ndarray of shape (n_features,), int64
        2, since statistics of disjoint rows add (Fisher).

    Examples
    --------
    >>> table = np.array([[[60.0, 40.0], [50.0, 50.0], [40.0, 60.0]]])
    >>> np.exp(-0.5 * gini_statistic(table)[0]).round(3)
    array([0.029])
    """
    n, of_class = table.sum(axis=(1, 2)), table.sum(axis=1)
    q = of_class / np.maximum(n, 1e-300)[:, None]
    mean, square = np.maximum(1.0 - (q**2).sum(axis=1), 0.0), (q**2).sum(axis=1)
    fourth = square - 2.0 * (q**3).sum(axis=1) + square**2
    freedom = np.divide(mean**2, fourth, out=np.ones_like(mean), where=fourth > 0.0)
    dimensions = (table.sum(axis=2) > 0.0).sum(axis=1) - 1.0
    share, times = np.zeros(len(table)), np.ones(len(table))

    def standardise(of: Array, decrease: Array) -> Floats:
        """Return a decrease in units of its mean, corrected for small counts."""
        chi, ratio = chi_square(of)[0], np.ones(len(of))
        np.divide(independence_statistic(of, log=False)[0], chi, out=ratio, where=chi > 0.0)
        return np.divide(n * decrease * ratio, mean, out=np.zeros_like(n), where=mean > 0.0)

    if in_order:
        below, times = table.cumsum(axis=1), dimensions
        for h in range(table.shape[1] - 1):
            two = np.stack([below[:, h], of_class - below[:, h]], axis=1)
            share = np.maximum(share, standardise(two, gini_decrease(two)))
    else:
        of_bin = np.maximum(table.sum(axis=2, keepdims=True), 1e-300)
        decrease = ((table - q[:, None] * of_bin) ** 2 / of_bin).sum(axis=(1, 2)) / np.maximum(n, 1e-300)
        share = standardise(table, decrease) / np.maximum(dimensions, 1.0)
        freedom = freedom * np.maximum(dimensions, 1.0)
    tail = chi_square_pvalue(freedom * share, freedom)
    if inflation is not None:
        tail = np.maximum(tail, inflation.pvalue(share, np.minimum(freedom, inflation.freedom)))
    pvalue = np.where(dimensions > 0.0, np.minimum(times * tail, 1.0), 1.0)
    return -2.0 * np.log(np.maximum(pvalue, 1e-300)), np.full(len(table), 2)
