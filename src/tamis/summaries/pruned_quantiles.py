"""The weighted quantile summary of Wang and Barbu: blocks of rows are merged and pruned like a binary counter.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, 2021, Section 2.2, after Zhang and Wang: A
Fast Algorithm for Approximate Quantiles in High Speed Data Streams, SSDBM 2007. The default of the screens is
:class:`tamis.summaries.quantiles.QuantileSummary`; `docs/evidence/screening.md` compares them.

===========  =================  ============================================================================
paper        here               meaning
===========  =================  ============================================================================
eps          `eps`              largest error of a cumulative weight, as a fraction of all
B_i          (a sub-stream)     2^i / eps rows; earlier ones are in ``_finished``
b            ``_block``         rows of a block, L / (eps / 2): the summary of a sub-stream has half the error
s_0          ``_staged``        the rows since the last complete block
s_l          ``_levels``        the summary of 2^(l-1) blocks, or None
===========  =================  ============================================================================

A summary is a set of values, each with a weight for each class. MERGE joins two and adds the weights of equal values.
PRUNE to g values: with C_i the weight before the i-th value of n, and W that of all::

    group of value i = floor(g C_i / W),   i = 1, ..., n                 (1)

A group is replaced by its largest value, with the sum of the weights (the exact weight update of Section 2.2.3). The
values of a group before its largest weigh less than W / g in total, which bounds the error of a cumulative weight.

Errata and deviations, each with its reason:

* Algorithm 1 stores a pruned summary back at its level (line 14) and never uses a second one, so the error is
  unbounded. Here the level is emptied and the summary carried to the next, as in Zhang and Wang.
* The tuples of Section 2.2.2 also contain rank bounds, r- and r+. After an exact weight update they are no longer
  bounds, and bin counts need only the weights.
* Rows fade by forward decay, which is equivalent to the printed multiplication of each level without a pass over all.
* Zeros of CSR rows are ordinary values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, Ints, Rows, check_number
from tamis.summaries.batch import FadingState, check_batch, n_bytes

# State, for J features and K classes:
#   _staged    buffered rows, their codes and weights, in the units of new rows when they arrived
#   _levels, _finished   SubSummary: values (J, V) ascending, weights (J, V, K), error (J,)

Staged = tuple[Array, Ints, Floats]

_AT_ONCE = 1 << 21  # values read at a time


@njit(strict=True)
def _prune(
    values: Array, weights: Array, scale: Array, g: int, out: Array, out_weights: Array, lost: Array
) -> None:
    """Merge equal values of each feature and prune by (1) if more than g remain; unused entries have weight 0."""
    n_features, n, n_classes = weights.shape
    for j in range(n_features):
        total, distinct, last = 0.0, 0, 0.0
        for i in range(n):
            weight = 0.0
            for c in range(n_classes):
                weight += weights[j, i, c] * scale[c]
            if weight > 0.0:
                distinct += distinct == 0 or values[j, i] != last
                last = values[j, i]
                total += weight
        before, at, group, fresh = 0.0, -1, -1, 0
        for i in range(n):
            weight = 0.0
            for c in range(n_classes):
                weight += weights[j, i, c] * scale[c]
            if weight <= 0.0:
                continue
            x = values[j, i]
            if at < 0 or x != out[j, at]:
                fresh = group + 1 if distinct <= g else min(int(g * (before / total)), g - 1)
            if fresh != group:
                at, group = at + 1, fresh
            out[j, at] = x
            for c in range(n_classes):
                out_weights[j, at, c] += weights[j, i, c]
            before += weight
        largest = out[j, at] if at >= 0 else 0.0
        for i in range(at + 1, out.shape[1]):
            out[j, i] = largest
        lost[j] += total / g if distinct > g else 0.0


@njit(strict=True)
def _count(values: Array, weights: Array, n_bins: int, counts: Array) -> None:
    """Add the weights of sorted values to bins; value i belongs to bin #{h : weight of smaller values >= h W / K}."""
    n_features, n, n_classes = weights.shape
    for j in range(n_features):
        total = weights[j].sum()
        below, upto, last, h = 0.0, 0.0, 0.0, 0
        for i in range(n):
            weight = weights[j, i].sum()
            if weight <= 0.0:
                continue
            if upto == 0.0 or values[j, i] != last:
                below, last = upto, values[j, i]
                while h < n_bins - 1 and below > 0.0 and below >= (h + 1) * total / n_bins * (1.0 - 1e-12):
                    h += 1
            upto += weight
            for c in range(n_classes):
                counts[j, h, c] += weights[j, i, c]


@dataclass(frozen=True)
class SubSummary:
    """Values of each feature with a weight for each class, and the bound of the error of their cumulative weights.

    Parameters
    ----------
    values : ndarray of shape (n_features, n), float32 or float64
        Ascending. Entries without weight are at the end.
    weights : ndarray of shape (n_features, n, n_classes), float64
    error : ndarray of shape (n_features,), float64
        In units of the weights.
    """

    values: Array
    weights: Floats
    error: Floats


def _sort_values(parts: Sequence[tuple[Array, Floats]]) -> tuple[Array, Floats]:
    values, weights = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(weights, order[:, :, None], axis=1)


def _merge_and_prune(
    parts: Sequence[tuple[Array, Floats]], g: int, scale: Floats, error: Floats
) -> SubSummary:
    """Return the parts after MERGE and PRUNE."""
    values, weights = _sort_values(parts)
    kept = np.zeros_like(values[:, :g])
    pruned = SubSummary(kept, np.zeros((*kept.shape, weights.shape[2])), error.copy())
    _prune(values, weights, scale, g, pruned.values, pruned.weights, pruned.error)
    return pruned


class PrunedQuantiles(FadingState):
    """Weights of the values of each feature by class, with MERGE and PRUNE as published by Wang and Barbu.

    Parameters
    ----------
    n_features, n_classes : int
    eps : float in (0, 0.5), default=0.01
        Error of a cumulative weight, as a fraction of all; `rank_error` returns the certified bound, which is up to
        twice as large.
    dtype : {"float32", "float64"}, default="float32"
        Data type of the stored values.

    Notes
    -----
    Memory per feature: about ``log2(eps n) (2 / eps)`` values for the finished sub-streams and ``L**2 / eps`` for the
    current one, each with a weight per class. Features with at most ``1 / eps`` distinct values are exact. A batch is
    equivalent to its rows one at a time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20_000, 2)), rng.integers(0, 2, 20_000)
    >>> summary = PrunedQuantiles(2, 2, eps=0.01)
    >>> summary.update(X, y)
    True
    >>> counts = summary.counts(5)
    >>> np.abs(counts.sum(axis=2) - 4000).max() < 200, counts.sum() == 40_000
    (np.True_, np.True_)
    """

    _shapes = """
        n_features (=j)
        _gain (k) float in (0, inf)
        _n_staged in [0, 2**62)
        _n_blocks in [0, 2**62)
        _staged[][0] (N, j) dtype in (-inf, inf) or nan
        _staged[][1] (N) int64 in [0, len(_gain))
        _staged[][2] (N) float in [0, inf)
        _levels[].values (j, V) dtype finite  _levels[].weights (j, V, k) float in [0, inf)
        _levels[].error (j) float in [0, inf)
        _finished[].values (j, F) dtype finite  _finished[].weights (j, F, k) float in [0, inf)
        _finished[].error (j) float in [0, inf)
    """

    def __init__(self, n_features: int, n_classes: int, eps: float = 0.01, dtype: str = "float32") -> None:
        check_number("eps", eps, low=0.0, high=0.5, open_low=True, open_high=True)
        self.n_features, self.eps, self.dtype = n_features, float(eps), str(np.dtype(dtype))
        self._gain = np.ones(n_classes)  # weight of a new row of each class
        self._staged: tuple[Staged, ...] = ()
        self._n_staged = 0
        self._levels: tuple[SubSummary | None, ...] = ()
        self._finished: tuple[SubSummary, ...] = ()
        self._n_blocks = 0  # blocks of the current sub-stream

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._gain)

    @property
    def _sub_stream(self) -> tuple[int, int]:
        """Rows per block and number of blocks of the current sub-stream, for the fewest levels that suffice."""
        n_rows, levels = 2.0 ** len(self._finished) / self.eps, 1
        while math.ceil(2 * levels / self.eps) * 2.0**levels < n_rows:
            levels += 1
        block = math.ceil(2 * levels / self.eps)
        return block, max(math.ceil(n_rows / block), 1)

    def check_state(self) -> None:
        """Validate the number of staged rows of a loaded object.

        Raises
        ------
        StateError
            If it differs from `_n_staged` or exceeds a block.
        """
        n_staged = sum(len(codes) for _, codes, _ in self._staged)
        if self._n_staged != n_staged or n_staged >= self._sub_stream[0]:
            raise state_error("'_n_staged' of PrunedQuantiles is not the number of staged rows")

    # -- classes and features ------------------------------------------------------------------------------

    def grow(self, n_classes: int) -> None:
        """Add classes, with codes after the existing ones."""
        self._reorder(np.arange(self.n_classes), n_classes)

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        self._reorder(order, len(order))

    def _reorder(self, order: Array, n_classes: int) -> None:
        place, more = np.argsort(order), n_classes - len(order)
        self._gain = np.concatenate([self._gain[order], np.ones(more)])
        self._staged = tuple((rows, place[codes], weight) for rows, codes, weight in self._staged)
        new = ((0, 0), (0, 0), (0, more))
        self._change(lambda part: replace(part, weights=np.pad(part.weights[:, :, order], new)))

    def _change(self, change: Callable[[SubSummary], SubSummary]) -> None:
        """Replace each part by the function of it."""
        self._levels = tuple(part and change(part) for part in self._levels)
        self._finished = tuple(map(change, self._finished))

    def widen(self, n_features: int) -> None:
        """Raise ValueError: the published summary has a fixed number of features."""
        raise ValueError(
            f"summary='pruned' cannot grow from {self.n_features} columns to {n_features}: choose 'thinned'."
        )

    def forget(self, columns: Indices) -> None:
        """Raise ValueError: the published summary cannot forget single features."""
        raise ValueError("summary='pruned' cannot forget single columns: choose 'thinned'.")

    def merge(self, other: PrunedQuantiles) -> None:
        """Raise ValueError: the published summary cannot be merged."""
        raise ValueError("summary='pruned' cannot be merged: choose 'thinned'.")

    def stored_as(self, dtype: str) -> PrunedQuantiles:
        """Return the summary with its values stored as "float32" or "float64"."""
        if dtype == self.dtype:
            return self
        summary = copy.copy(self)
        summary.dtype = dtype
        summary._staged = tuple((rows.astype(dtype), codes, weight) for rows, codes, weight in self._staged)
        summary._change(lambda part: replace(part, values=part.values.astype(dtype)))
        return summary

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self, X: Rows, codes: Array, sample_weight: Array | None = None, keep: float | Array = 1.0
    ) -> bool:
        """Add a batch of rows; return False, with the state unchanged, if a value is infinite or too large.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
            NaN is skipped, feature by feature.
        codes : ndarray of shape (n_rows,), int64
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float or ndarray of shape (n_classes,), in [0, 1]
            Factor for the weight of all earlier rows (per class, if an array), applied first.

        Returns
        -------
        bool

        Raises
        ------
        DataError
            If shapes, classes, weights or `keep` are invalid; the state is unchanged.
        """
        check_batch(X, codes, sample_weight, keep, self.n_features, self.n_classes)
        with np.errstate(over="ignore"):
            rows = np.array(X.toarray() if sp.issparse(X) else X, dtype=self.dtype)
        if np.isinf(rows).any():
            return False
        self.fade(keep)
        weight = self._gain[codes] if sample_weight is None else self._gain[codes] * sample_weight
        codes, start = codes.astype(np.int64), 0
        while start < len(codes):
            part = slice(start, start + self._sub_stream[0] - self._n_staged)
            self._stage(rows[part], codes[part], weight[part])
            start = part.stop
        return True

    def _stage(self, rows: Array, codes: Ints, weight: Floats) -> None:
        """Buffer rows; prune each complete block and carry it to the first empty level."""
        self._staged = (*self._staged, (rows, codes, weight))
        self._n_staged += len(codes)
        block, n_blocks = self._sub_stream
        if self._n_staged < block:
            return
        scale, none = 1.0 / self._gain, np.zeros(self.n_features)
        carried = _merge_and_prune([self._points()], block // 2, scale, none)
        self._staged, self._n_staged = (), 0
        levels, at = list(self._levels), 0
        while at < len(levels) and (level := levels[at]) is not None:
            both = [(part.values, part.weights) for part in (level, carried)]
            carried = _merge_and_prune(both, block // 2, scale, level.error + carried.error)
            levels[at], at = None, at + 1
        levels[at : at + 1] = [carried]
        self._levels, self._n_blocks = tuple(levels), self._n_blocks + 1
        if self._n_blocks >= n_blocks:
            parts = [level for level in levels if level is not None]
            error = np.sum([part.error for part in parts], axis=0)
            whole = [(part.values, part.weights) for part in parts]
            self._finished = (*self._finished, _merge_and_prune(whole, math.ceil(2 / self.eps), scale, error))
            self._levels, self._n_blocks = (), 0

    @property
    def _parts(self) -> list[SubSummary]:
        return [part for part in (*self._levels, *self._finished) if part is not None]

    def _points(self, features: slice = slice(None)) -> tuple[Array, Floats]:
        """Return the buffered rows as values and weights of some features; missing values have weight 0."""
        all_rows, all_codes, all_weights = zip(*self._staged, strict=True)
        values = np.concatenate([rows[:, features] for rows in all_rows]).T.copy()
        codes, weight = np.concatenate(all_codes), np.concatenate(all_weights)
        weights = np.zeros((*values.shape, self.n_classes))
        weights[:, np.arange(len(codes)), codes] = weight
        missing = np.isnan(values)
        values[missing], weights[missing] = 0.0, 0.0
        return values, weights

    def _rescale(self) -> None:
        factor = 1.0 / self._gain
        self._staged = tuple((rows, codes, weight * factor[codes]) for rows, codes, weight in self._staged)
        most = factor.max(initial=0.0)
        self._change(lambda part: SubSummary(part.values, part.weights * factor, part.error * most))
        self._gain = np.ones_like(self._gain)

    # -- results -------------------------------------------------------------------------------------------

    def counts(self, n_bins: int) -> Floats:
        """Return the weight of each class in each of `n_bins` bins of about equal weight.

        Returns
        -------
        ndarray of shape (n_features, n_bins, n_classes)
            Bins as in :meth:`tamis.summaries.quantiles.QuantileSummary.counts`. The sum over the bins is exact up to
            rounding.
        """
        check_number("n_bins", n_bins, low=1, integer=True)
        counts = np.zeros((self.n_features, n_bins, self.n_classes))
        width = sum(part.values.shape[1] for part in self._parts) + self._n_staged
        step = max(_AT_ONCE // max(width, 1), 1)
        for start in range(0, self.n_features if width else 0, step):
            some = slice(start, start + step)
            points = [(part.values[some], part.weights[some]) for part in self._parts]
            values, weights = _sort_values([*points, *([self._points(some)] if self._staged else [])])
            _count(values, weights / self._gain, n_bins, counts[some])
        return counts

    def rank_error(self) -> Floats:
        """Return the certified bound of the error of a cumulative weight of each feature, as a fraction of all."""
        error = sum((part.error for part in self._parts), np.zeros(self.n_features))
        weight = self.counts(1).sum(axis=(1, 2))
        return np.divide(error, weight, out=np.zeros(self.n_features), where=weight > 0.0)

    nbytes = property(n_bytes)
