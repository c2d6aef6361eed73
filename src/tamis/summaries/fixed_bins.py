"""Exact counts of the bins of each feature by class, with edges that are determined early and then fixed.

The edges of a bin score are quantiles of all values, and its counts have the rank error of a quantile summary. This
error is at most `eps`, but a test on n rows detects differences of 1 / sqrt(n), so for large n it mistakes the error
for a signal. Here the first rows are buffered, and the edges are the quantiles of their values, regardless of class.
From then on every row is counted exactly: given the edges, and if feature and class are independent, the counts
have the distribution that a chi-square test assumes, for any number of rows.

With counts T[b, c] at one set of edges, and W_c and W2_c the sums of w f and w f^2 over the rows of class c, for
weights w that fade by f, the test uses T[b, c] W_c / W2_c, the effective number of rows of each class.

Each set of edges (after merging, or renewed as rows fade) has its own part; the statistics and degrees of freedom of
the parts with at least half as many rows as the largest are added.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._atomic import atomic
from tamis._kernels import njit
from tamis._shapes import Shapes, state_error
from tamis._validation import Array, Floats, Indices, Ints, Rows
from tamis.summaries.batch import FadingState, check_waiting, n_bytes
from tamis.summaries.quantiles import QuantileSummary

FIRST = 256  # rows buffered to determine the edges
_CHUNK = 512  # features whose counts fit in the cache


@njit(strict=True)
def _count(X: Array, codes: Array, weight: Array, edges: Array, table: Array) -> None:
    for first in range(0, X.shape[1], _CHUNK):
        last = min(first + _CHUNK, X.shape[1])
        for i in range(X.shape[0]):
            c, w = codes[i], weight[i]
            for j in range(first, last):
                x = X[i, j]
                if x == x:
                    b = 0
                    for h in range(edges.shape[1]):
                        b += x > edges[j, h]
                    table[j, b, c] += w


@njit(strict=True)
def _count_csr(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array, edges: Array, table: Array, stored: Array
) -> None:  # fmt: skip
    """Count CSR rows; a stored NaN is neither counted nor zero."""
    for i in range(codes.shape[0]):
        c, w = codes[i], weight[i]
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], data[at]
            stored[j, c] += w
            if x == x:
                b = 0
                for h in range(edges.shape[1]):
                    b += x > edges[j, h]
                table[j, b, c] += w


@dataclass(frozen=True)
class Part:
    """Counts at one set of edges."""

    _state_spec = Shapes("""
        edges (j, e) finite fill 0
        table (j, e+1, c) float in [0, inf) fill 0
        stored (j?, c) float in [0, inf) fill 0
        sparse_weight (c) float in [0, inf) fill 0
        weight (c) float in [0, inf) fill 0
        weight2 (c) float in [0, inf) fill 0
    """)

    edges: Floats  # (n_features, n_bins - 1), ascending
    # (n_features, n_bins, n_classes), weight of the values, without zeros not stored.
    table: Floats
    # (n_features, n_classes), weight of the stored cells; no features before CSR rows.
    stored: Floats
    sparse_weight: Floats  # (n_classes,), of the CSR rows
    weight: Floats  # (n_classes,), of the rows
    weight2: Floats  # (n_classes,), W2

    @classmethod
    def empty(cls, edges: Array, n_classes: int) -> Part:
        """Return a part without rows."""
        none = np.zeros(n_classes)
        table = np.zeros((len(edges), edges.shape[1] + 1, n_classes))
        return cls(edges, table, np.zeros((0, n_classes)), none, none, none)

    def classes(self, change: Callable[[Array], Array]) -> Part:
        """Return the part with `change` applied to the last axis, that of the classes, of all counts."""
        names = ("table", "stored", "sparse_weight", "weight", "weight2")
        return replace(self, **{name: change(getattr(self, name)) for name in names})

    def scaled(self, by: Array) -> Part:
        """Return the part with the weights of each class multiplied."""
        return replace(self.classes(lambda counts: counts * by), weight2=self.weight2 * by**2)

    def plus(self, other: Part) -> Part:
        """Return the sum of two parts with the same edges."""
        a, b = self.stored, other.stored
        stored = a + b if len(a) and len(b) else a if len(a) else b
        names = ("table", "sparse_weight", "weight", "weight2")
        return replace(self, stored=stored, **{n: getattr(self, n) + getattr(other, n) for n in names})

    def rows(self) -> Floats:
        """Return the counts as effective numbers of rows."""
        table = self.table
        if len(self.stored):
            table = table.copy()
            zero = (self.edges < 0.0).sum(axis=1)
            table[np.arange(len(table)), zero] += np.maximum(self.sparse_weight - self.stored, 0.0)
        worth = np.divide(self.weight, self.weight2, out=np.zeros_like(self.weight), where=self.weight2 > 0.0)
        return table * worth


class FixedBins(FadingState):
    """Weights of each feature's values in bins with fixed edges, by class; mergeable.

    Parameters
    ----------
    n_features, n_classes : int
    n_bins : int, at least 2
    cut_every : float, default=inf
        Number of rows (or calls, with `per_call`) after which the edges are renewed, for fading rows.
    per_call : bool, default=False

    Notes
    -----
    Memory: the first 256 rows are buffered; then 8 bytes per feature and edge, and per feature, bin and class.

    Examples
    --------
    >>> from tamis.summaries.contingency import chi_square
    >>> rng = np.random.default_rng(0)
    >>> bins = FixedBins(n_features=2, n_classes=2, n_bins=5)
    >>> X, y = rng.normal(size=(9000, 2)), rng.integers(0, 2, 9000)
    >>> X[:, 1] += 0.1 * y
    >>> bins.update(X, y)
    >>> statistic, freedom = bins.test(chi_square)
    >>> statistic.round(0), freedom
    (array([ 5., 23.]), array([4, 4]))
    """

    _shapes = """
        n_features (=j)
        _gain (c) float in (0, inf) fill 1
        _parts[] (its own) fill own
        _parts[].table (j, *, c)
        _waiting[][0] (N, j) float in (-inf, inf) or nan fill 0
        _waiting[][1] (N) int64 in [0, c)
        _waiting[][2] float in [0, inf)
        _waiting[][3] float in [0, inf)
        _first? (j, b, c) finite fill 0
    """

    # (n_features, n_bins, n_classes), of the rows that determined the edges.
    _first: Floats | None = None
    # Whether float32 distinguishes fewer than 2**17 values within the spread of a feature in these rows.
    coarse = False

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_bins: int,
        *,
        cut_every: float = np.inf,
        per_call: bool = False,
    ) -> None:
        self.n_features, self.n_bins, self.cut_every, self.per_call = n_features, n_bins, cut_every, per_call
        self._gain = np.ones(n_classes)  # weight of a new row of each class
        self._parts: list[Part] = []  # new rows are counted in the last one
        # Rows, codes, w f and w f^2, on the same scale as the parts.
        self._waiting: list[tuple[Rows, Array, Array, Array]] = []
        self._open = True  # whether rows are buffered for edges
        self._since = 0  # rows or calls since the edges were due

    def check_state(self) -> None:
        """Validate loaded pending rows (columns, classes, weights) and the edges of the parts.

        Raises
        ------
        StateError
            If any of them is inconsistent.
        """
        check_waiting(self._waiting, self.n_features)
        shape = (self.n_features, self.n_bins, self.n_classes)
        if any(part.table.shape != shape for part in self._parts) or self.n_bins < 2:
            raise state_error(f"The counts of a FixedBins do not have the shape {shape}")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._gain)

    nbytes = property(n_bytes)

    @property
    def edges(self) -> Floats | None:
        """The current edges, (n_features, n_bins - 1); None while the first rows are buffered."""
        return self._parts[-1].edges if self._parts else None

    @property
    def rows_until_cut(self) -> int:
        """Number of rows until the next edges are determined; 0 while rows are counted."""
        return self._room() if self._open else 0

    # -- classes and columns ---------------------------------------------------------------------------------

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        super().reorder(order)
        new = np.argsort(order)
        self._waiting = [(X, new[codes], *weights) for X, codes, *weights in self._waiting]

    def widen(self, n_features: int) -> None:
        """Add features, which were 0 in all (CSR) rows so far."""
        n = self.n_features
        super().widen(n_features)
        if self._first is not None:
            self._first = zeros_in_first_bin(self._first, slice(n, None))

    def forget(self, columns: Indices) -> None:
        """Forget some features: they then count as 0 in all (CSR) rows so far."""
        super().forget(columns)
        if self._first is not None:
            self._first = zeros_in_first_bin(self._first, columns)

    def cut_at(self, edges: Array) -> None:
        """Fix the edges, (n_features, n_bins - 1), before the first row."""
        self._parts, self._open = [Part.empty(edges, self.n_classes)], False
        self._first = np.zeros((self.n_features, self.n_bins, self.n_classes))

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self,
        X: Rows,
        codes: Array,
        sample_weight: Array | None = None,
        keep: float | Array = 1.0,
        fade: Array | None = None,
        *,
        whole: bool = True,
    ) -> None:
        """Add a validated batch of rows, or (not `whole`) the first part of one.

        The other parameters are those of :meth:`ClassMoments.update`.
        """
        self.fade(keep)
        gain = self._gain[codes] if fade is None else self._gain[codes] * fade
        weight = gain if sample_weight is None else gain * sample_weight
        self._add(X, codes, weight, weight * gain)
        if self.per_call and whole:
            self._since += 1
            self._cut_if_due()

    def _add(self, X: Rows, codes: Array, weight: Array, square: Array) -> None:
        start, n = 0, len(codes)
        while start < n:
            stop = min(n, start + self._room())
            part = slice(start, stop)
            rows = X if stop - start == n else X[part]
            if self._open:
                self._waiting = [*self._waiting, (rows.copy(), codes[part], weight[part], square[part])]
            else:
                self._parts = [
                    *self._parts[:-1],
                    _count_part(self._parts[-1], rows, codes[part], weight[part], square[part]),
                ]
            self._since += 0 if self.per_call else stop - start
            self._cut_if_due()
            start = stop

    def _room(self) -> int:
        """Return how many rows may be added before edges are determined or due."""
        if self._open:
            waiting: int = sum(codes.shape[0] for _, codes, *_ in self._waiting)
            return FIRST - waiting
        left: float = 1e12 if self.per_call else min(max(self.cut_every - self._since, 1.0), 1e12)
        return math.ceil(left)

    def _cut_if_due(self) -> None:
        if self._open and self._room() == 0:
            self._parts = [part for part in self._parts if _share(part, self._parts) > 0.01]
            self._parts.append(Part.empty(self._new_edges(), self.n_classes))
            self._count_waiting()
            self._first = self._parts[-1].rows()
        elif not self._open and self._since >= self.cut_every:
            self._open, self._since = True, 0

    def _new_edges(self) -> Floats:
        values = QuantileSummary(self.n_features, 1, 0.5 / FIRST, np.float64)  # exact for so few rows
        for X, codes, weight, _ in self._waiting:
            values.update(X, np.zeros_like(codes), weight)
        self.coarse = self.coarse or _is_coarse(values.quantile(np.arange(1, 16) / 16))
        edges = values.quantile(np.arange(1, self.n_bins) / self.n_bins)
        return np.where(np.isnan(edges), 0.0, edges)

    def _count_waiting(self) -> None:
        waiting, self._waiting, self._open = self._waiting, [], False
        for rows in waiting:
            self._parts[-1] = _count_part(self._parts[-1], *rows)

    def _rescale(self) -> None:
        self._parts = [part.scaled(1.0 / self._gain) for part in self._parts]
        self._waiting = [
            (X, codes, weight / self._gain[codes], square / self._gain[codes] ** 2)
            for X, codes, weight, square in self._waiting
        ]
        self._gain = np.ones_like(self._gain)

    @atomic
    def merge(self, other: FixedBins) -> None:
        """Add counts of the same features, classes and bins, each with its weights as of its last row."""
        other = copy.copy(other)
        other._rescale()
        self._rescale()
        self.coarse = self.coarse or other.coarse
        parts = list(self._parts)
        for theirs in other._parts:
            same = [i for i, mine in enumerate(parts) if np.array_equal(mine.edges, theirs.edges)]
            if same:
                parts[same[0]] = parts[same[0]].plus(theirs)
            else:
                parts.insert(0, theirs)  # new rows are counted in the last part
        began = bool(self._parts)
        if not began:
            self._first = other._first
        elif self.edges is not None and other.edges is not None and np.array_equal(self.edges, other.edges):
            self._first = None if self._first is None or other._first is None else self._first + other._first
        if math.isfinite(self.cut_every):  # edges differ in age; drop faded parts
            parts = [*(part for part in parts[:-1] if _share(part, parts) > 0.01), *parts[-1:]]
        self._parts = parts
        if parts and not began:
            self._count_waiting()
        for rows in other._waiting:
            self._add(*rows)

    # -- results -------------------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether all rows are counted at the same edges."""
        return len(self._parts) == 1

    def counts(self) -> Floats:
        """Return the rows in each current bin, (n_features, n_bins, n_classes); 0 without edges."""
        if not self._parts:
            return np.zeros((self.n_features, self.n_bins, self.n_classes))
        return self._parts[-1].rows()

    def counts_since_cut(self) -> Floats | None:
        """Return :meth:`counts` without the rows that determined the edges; None if rows fade."""
        if not self._parts:
            return self.counts()
        part = self._parts[-1]
        if self._first is None or not np.array_equal(part.weight, part.weight2):
            return None
        return part.rows() - self._first

    def test(self, statistic_of: Callable[[Array], tuple[Array, Array]]) -> tuple[Floats, Ints] | None:
        """Return a test statistic and its degrees of freedom for each feature; None while rows are buffered.

        Parameters
        ----------
        statistic_of : callable
            Function of counts of shape (n_features, n_bins, n_classes) that returns statistic and degrees of freedom.
        """
        large = [part for part in self._parts if _share(part, self._parts) >= 0.5]
        if not large:
            return None
        statistics, freedoms = zip(*(statistic_of(part.rows()) for part in large), strict=True)
        return np.sum(statistics, axis=0), np.sum(freedoms, axis=0)


def _is_coarse(quantiles: Array) -> bool:
    """Return whether float32 is too coarse for the values of a feature, whose quantiles are ascending."""
    low, high = quantiles[:, 0], quantiles[:, -1]
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = quantiles.astype(np.float32)
        step = np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(np.float32))
    inexact = (narrow != quantiles).any(axis=1)
    few = inexact & (high > low) & (step * 2.0**17 > high - low)
    ties = (quantiles[:, 1:] > quantiles[:, :-1]) & (narrow[:, 1:] == narrow[:, :-1])
    return bool(few.any() or ties.any())


def zeros_in_first_bin(first: Array, columns: Any) -> Floats:
    """Return counts in which some features are 0 in all rows; the number of rows is that of the fullest feature."""
    counts: Floats = first.copy()
    counts[columns] = 0.0
    counts[columns, 0] = first.sum(axis=1).max(axis=0, initial=0.0)
    return counts


def _share(part: Part, parts: list[Part]) -> float:
    """Return the weight of a part relative to the heaviest one."""
    heaviest = max(float(p.weight.sum()) for p in parts)
    return float(part.weight.sum()) / heaviest if heaviest > 0.0 else 1.0


def _count_part(part: Part, X: Rows, codes: Array, weight: Array, square: Array) -> Part:
    """Count rows in the part's tables; return the part with updated weights."""
    n_classes = len(part.weight)
    arrived = np.bincount(codes, weight, minlength=n_classes)
    table, stored, sparse_weight = part.table, part.stored, part.sparse_weight
    if sp.issparse(X):
        stored = stored if len(stored) else np.zeros((len(table), n_classes))
        _count_csr(X.data, X.indices, X.indptr, codes, weight, part.edges, table, stored)
        sparse_weight = sparse_weight + arrived
    else:
        _count(X, codes, weight, part.edges, table)
    weight2 = part.weight2 + np.bincount(codes, square, minlength=n_classes)
    return Part(part.edges, table, stored, sparse_weight, part.weight + arrived, weight2)
