"""Dependence of the rows of a screen on one another: measured during learning, and used by p-values and bands.

The labels are always monitored (:class:`LabelSeries`). Only once they depend on earlier ones, or while they are all
equal, features are summed in blocks (:class:`BlockSums`), from that row on: until then tests for independent rows are
valid for any autocorrelation of the features, and no time or memory is spent. Labels are tested after 64, 96, 128, 192,
... rows.

The sums by earlier labels, which show whether feature and label have a cycle in common, are most of the cost: each row
is added at eight lags. A common cycle needs a cycle of the label, so rows are added, and the sums used, only while the
label is cyclic. Until four lags are known, the variance is then undetermined.

A block must be longer than the dependence of the score contributions, and thus than the memory of the label or that of
the feature: at least twice that of the labels, or eight times the variance inflation of the feature within the classes,
where it no longer grows with the length of the blocks. A file sorted by class thus has valid p-values unless its
features are autocorrelated. With fewer than six such blocks, the variance of a feature is undetermined. The rows before
the dependence was found count as one more block: if they are most of the rows, nothing is known of their variance. Its
sums, those of all rows minus the others, count for the variance inflation of the feature.

Where few states were seen, blocks of any length may look alike by chance. So the memory of labels is unknown if their
blocking curve rises up to the longest blocks and its growth s exceeds .65, and that of a feature if its blocks are
dependent by two standard errors and s exceeds .5. If that of the labels is unknown and s of the feature is smaller, its
inflation is multiplied by (10a) of :mod:`tamis.dependence.autocorrelation`. The limit of labels is higher than that of
a mean, since contributions decorrelate at least as fast as either series. It was chosen on regimes of exponential
lengths (means of 300, 1,000 and 3,000 rows), AR(.9), AR(.99), ARFIMA(0, .4, 0) and lots of random lengths: .8 leaves up
to .035 of the p-values of these lots below .01.

A row of weight w is w consecutive rows of the series, except with `evidence`, which counts each row once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Floats, Ints, Mask, Rows
from tamis.dependence.autocorrelation import (
    DEPENDENT,
    FEWEST_LAGS,
    GROWTH,
    Inflation,
    anova_inflation,
    contrast_inflation,
    cycle_inflation,
    extrapolation,
    table_inflation,
)
from tamis.summaries.batch import change_parts, n_bytes
from tamis.summaries.block_sums import BlockSums, take_places
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.label_series import LabelSeries

_FEWEST = 4.5  # degrees of freedom; with fewer, the long-run variance is undetermined
# Block length in memory lengths of the labels (4a), or in the variance inflation of the feature, which noise reduces.
_LENGTHS = 2.0
_OWN_LENGTHS = 8.0
# Upper 70 % limit of a variance over eight lags in multiples of it: below, a cycle is less than the variance of blocks.
_CYCLE_BOUND = 1.5
_MOST_PLACES = 1 << 16  # of a row in the series, which bounds the time that its weight can cost


class RowDependence(SizedState):
    """The labels of a stream as a series and, if they are dependent, block sums of the features; mergeable.

    Parameters
    ----------
    n_features, n_classes : int
    of_values : bool
        Whether scores are computed from values, not only from bins.
    always : bool
        Whether features are summed in blocks even while labels seem independent.
    fades : bool
        Whether older rows lose weight.
    lags : bool, default=True
        Whether to detect cycles; not if each class fades with its own clock.
    evidence : bool, default=False
        Whether to collect evidence given the past labels, if labels are dependent.
    """

    _state_spec = Shapes("""
        n_features (=j)
        labels._total (48, c) int  labels (its own) fill own
        values._sums? (b, c, m, j)  values (its own) fill own
        cells._sums? (d, c, k, j)  cells (its own) fill own
        _place float in [-0.5, 0.5]
    """)

    cyclic = False  # whether the labels have a cycle
    _place = 0.0  # part of a place that the weights of the rows so far have left over

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        of_values: bool,
        always: bool,
        fades: bool,
        lags: bool = True,
        evidence: bool = False,
    ) -> None:
        self.n_features = n_features
        self.of_values = of_values
        self.always = always
        self.fades = fades
        self.lags = lags
        self.labels = LabelSeries(n_classes, cycles=evidence and lags)
        self.values: BlockSums | None = None
        self.cells: BlockSums | None = None
        self.evidence = evidence
        self.found = always  # whether features are summed in blocks

    @property
    def shape(self) -> tuple[int, int]:
        """Number of features and of classes."""
        return self.n_features, self.labels.n_classes

    nbytes = property(n_bytes)

    @property
    def dependent(self) -> bool:
        """Whether a correction is needed: always, or because the labels depend on earlier ones."""
        return self.always or self.labels.dependent or (self.found and self.cyclic)

    def forget(self, columns: NDArray[np.intp]) -> None:
        """Reset some features; they then count as 0 in all (CSR) rows so far."""
        change_parts(self, ("values", "cells"), lambda part: part.forget(columns))

    def fade(self, keep: float | Array) -> None:
        """Multiply the weight of all rows (of each class) by `keep`, in [0, 1]."""
        change_parts(self, ("values", "cells"), lambda part: part.fade(keep))

    def merge(self, other: Self, *, first: bool) -> None:
        """Add the statistics of other rows of the same features and classes."""
        self.labels.merge(other.labels, first=first)
        self.found = self.found or other.found or self.labels.dependent
        self.cyclic = self.cyclic or other.cyclic
        for name in ("values", "cells"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None:
                mine.merge(theirs, first=first)
            setattr(self, name, theirs if mine is None else mine)

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self,
        X: Rows,
        codes: Array,
        sample_weight: Array | None,
        keep: float | Array,
        fade: Array | None,
        edges: Array | None,
        uncut: int,
    ) -> Ints:
        """Update with a batch that has been learned; return the class one period earlier of each place in the series.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
        codes : ndarray of shape (n_rows,), int64
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float or ndarray of shape (n_classes,)
            Factor of the weight of all earlier rows.
        fade : ndarray of shape (n_rows,), optional
            Factor of the weight of each of these rows at the end of the batch.
        edges : ndarray of shape (n_features, n_bins - 1), optional
            Edges of the bins, once there are any.
        uncut : int
            Number of these rows that preceded the cut of the edges.
        """
        if not (isinstance(keep, float) and keep == 1.0):
            self.fade(keep)
        left = None if sample_weight is None else np.array([self._places(sample_weight), sample_weight])
        start, n, before = 0, len(codes), []
        while start < n:
            room = self._until_test()
            if left is None:
                rows, own, start = slice(start, min(n, start + room)), None, min(n, start + room)
            else:
                rows, own, start = take_places(left, start, room)
            series = codes[rows] if own is None else np.repeat(codes[rows], own[0].astype(np.int64))
            if self.found:
                self._add(X, codes, own, fade, edges, rows, uncut)
            before.append(self.labels.update(series))
            if len(series) == room:
                self._test()
        return np.concatenate(before)

    def _places(self, sample_weight: Array) -> Array:
        """Return the number of places of each row in the series: its weight, fractions carried over to the next row."""
        if self.evidence:
            return np.ones(len(sample_weight))
        total = np.cumsum(np.minimum(sample_weight, _MOST_PLACES)) + self._place
        ends = np.floor(total + 0.5)
        self._place = float(total[-1] - ends[-1]) if len(ends) else self._place
        return np.diff(ends, prepend=0.0)

    def _test(self) -> None:
        """Test the labels: whether they are dependent, and cyclic."""
        if not self.always:
            self.found = self.labels.dependent or self.labels.constant or self.labels.period > 0
            if not self.found:  # a false alarm
                self.values = self.cells = None
        labels, is_tested = self.labels, self.lags and self.found
        self.cyclic = labels.period > 0 if labels.cycles else is_tested and labels.find_period() > 0
        for part in (self.values, self.cells):
            if part is not None:
                part.lags = self.cyclic

    def _until_test(self) -> int:
        """Return the rows until the next test of the labels: after 64, 96, 128, 192, ... rows."""
        n = self.labels.n_rows
        step = 1 << max(n.bit_length() - 1, 6)  # the largest power of two up to n, at least 64
        return (step if n < step else step * 3 // 2 if n < step * 3 // 2 else step * 2) - n

    def _add(
        self, X: Rows, codes: Array, own: Array | None, fade: Array | None, edges: Array | None, rows: slice,
        uncut: int,
    ) -> None:  # fmt: skip
        def part(start: int) -> tuple[Any, ...]:
            some, after = slice(start, rows.stop), start - rows.start
            before: Any = self.labels.ring
            weight, places = None, None
            if own is not None:
                all_places = own[0].astype(np.int64)
                weight, places = own[1, after:], all_places[after:]
            if after:
                passed = codes[rows.start : start]
                passed = passed if own is None else np.repeat(passed, all_places[:after])
                before = np.concatenate([self.labels.last, passed])
            if after or some != slice(0, len(codes)):
                return X[some], codes[some], weight, 1.0, before, None if fade is None else fade[some], places
            return X, codes, weight, 1.0, before, fade, places

        n_classes = self.labels.n_classes
        of_values = rows.start if self.of_values else rows.stop
        of_cells = rows.stop if edges is None else max(rows.start, uncut)
        for name, start, cuts in (("values", of_values, None), ("cells", of_cells, edges)):
            if start < rows.stop:
                if getattr(self, name) is None:
                    new = BlockSums(self.n_features, n_classes, cuts, fades=self.fades, lags=self.cyclic)
                    # 16 to 32 blocks soon.
                    new.length = 1 << max((self.labels.n_rows // 16).bit_length() - 1, 0)
                    setattr(self, name, new)
                getattr(self, name).update(*part(start))

    # -- results -------------------------------------------------------------------------------------------

    def moments(self, score: str, moments: ClassMoments) -> Inflation:
        """Return the inflation of a score of the class means, given the moments of all rows.

        The score is "t", "fisher", or "trend" over the levels of a numeric target; only "t" has a test per class.
        """
        count, mean, variance = moments.read()

        def read(at: _Means) -> tuple[Array, Array, Array]:
            own = contrast_inflation(
                at.covariance, at.count, variance, at.effective, contrasts=(at.count * at.spread)[None]
            )[0]
            if score == "fisher":
                factor, left = anova_inflation(at.covariance, variance, at.effective, at.lagged)
                return factor[None], left, own
            contrasts = None
            if score == "trend":
                level = np.arange(float(len(variance)))[:, None]
                centre = (at.count * level).sum(axis=0) / np.maximum(at.count.sum(axis=0), 1e-300)
                contrasts = (at.count * (level - centre))[None]
            factor = contrast_inflation(at.covariance, at.count, variance, at.effective, at.lagged, contrasts)
            return factor, np.ones(self.n_features), own

        n_tests = len(variance) if score == "t" and len(variance) > 2 else 1
        return self._by_length(self.values, moments, (count * mean)[:, None], count, read, n_tests)

    def tables(self, moments: ClassMoments, table: Array | None, *, cuts: bool = False) -> Inflation:
        """Return the inflation of the bin scores; with `cuts`, the largest of any cut of the bins in two.

        The weights of the classes are those of `moments`. The table, of shape (n_classes, n_bins, n_features), has the
        bins of the blocks, of all rows; None if it is unknown.
        """

        def read(at: _Means) -> tuple[Array, Array, Array]:
            counts, _, weight, weight2 = at.blocks.by_block(at.shortest)
            below, total = counts.cumsum(axis=2), counts.sum(axis=2)
            parts = [counts]
            if cuts:
                parts = [
                    np.stack([below[:, :, h], total - below[:, :, h]], axis=2)
                    for h in range(counts.shape[2] - 1)
                ]
            reads = [table_inflation(part, weight, weight2, at.spread[:, 0]) for part in parts]
            factor, left, own = reads[0]
            for one, freedom, of_feature in reads[1:]:
                left = np.where(one > factor, freedom, left)
                factor, own = np.maximum(factor, one), np.maximum(own, of_feature)
            return (factor * cycle_inflation(at.covariance, at.count, at.lagged))[None], left, own

        count = None if table is None else table.sum(axis=1)
        return self._by_length(self.cells, moments, table, count, read, 1)

    def _by_length(
        self, blocks: BlockSums | None, moments: ClassMoments, sums: Array | None, present: Array | None,
        read: Callable[[_Means], tuple[Array, Array, Array]], n_tests: int,
    ) -> Inflation:  # fmt: skip
        """Return the result of `read` for each feature, with the shortest blocks that are long enough for it."""
        array = np.full((n_tests, self.n_features), np.nan)
        left, freedom = np.ones(self.n_features), np.zeros(self.n_features)
        if blocks is None or not blocks.n_rows:
            return Inflation(array, left, freedom)
        n, enough, shortest = (
            self.labels.n_counted,
            _LENGTHS * self.labels.memory_length(),
            float(blocks.length),
        )
        # Earlier rows, whose labels seemed independent, count as one more block, whose variance is unknown.
        n_before = 0 if self.fades else max(n - blocks.n_rows, 0)
        before, whole = n_before / max(n, 1), None
        if n_before and sums is not None and present is not None:
            whole = blocks.preceded(n_before, sums, present, moments)
        lagged, missing = blocks.lagged_means(enough)[0], np.ones(self.n_features, dtype=bool)
        if not self.cyclic:
            lagged = lagged[:0]
        elif len(lagged) < FEWEST_LAGS:
            return Inflation(array, left, freedom)
        s = blocks.growth()
        while missing.any():
            at = _Means.of(blocks, shortest, before, lagged)
            nu, is_spread = at.freedom, bool(at.spread.all())
            if nu < _FEWEST:
                break
            values, of_statistic, own = read(at)
            if whole is not None:
                own = np.maximum(own, read(_Means.of(whole, shortest, 0.0, lagged))[2])
            # A file sorted by class: each class is a contiguous part of the feature's series.
            if not is_spread:
                values[:], of_statistic = own, np.ones(self.n_features)
            slow = own > 1.0 + DEPENDENT * math.sqrt(2.0 / (nu + 1.0))
            flat = (
                (shortest >= _OWN_LENGTHS * own)
                & ~blocks.rises(shortest)
                & (blocks.n_occupied(shortest) > _FEWEST)
                & ~(slow & (s > GROWTH))
                & ((whole is not None) | (n_before <= blocks.length))
            )
            if not (by_labels := is_spread and shortest >= enough):
                values = values * extrapolation(np.where(slow & flat & math.isinf(enough), s, 0.0), nu + 1.0)
            here = missing & (flat | by_labels)
            array[:, here], left[here] = values[:, here], of_statistic[here]
            cycle = cycle_inflation(at.covariance, at.count, lagged, least=0.0)
            freedom[here] = np.where(cycle * _CYCLE_BOUND > 1.0, min(nu, len(lagged) - 1.0), nu)[here]
            missing &= ~here
            shortest *= 2.0
        return Inflation(array, left, freedom)

    def rows_missing(self) -> int:
        """Return about how many more rows are needed until there are enough blocks; as many as so far if unknown."""
        n = self.labels.n_counted
        needed = (_FEWEST + 1.0) * _LENGTHS * self.labels.memory_length()
        return math.ceil(needed) - n if n < needed < math.inf else n


@dataclass(frozen=True)
class _Means:
    blocks: BlockSums
    shortest: float  # rows of a block
    covariance: Floats  # of the class means, long-run
    freedom: float  # of the covariance
    count: Floats
    effective: Floats
    lagged: Floats
    spread: Mask  # classes with rows in several blocks, (n_classes, 1)

    @classmethod
    def of(cls, blocks: BlockSums, shortest: float, before: float, lagged: Floats) -> _Means:
        """Return the means in blocks of these rows, if a part of the rows before them is one more block."""
        covariance, nu = blocks.covariance(shortest)
        nu = 1.0 / (before**2 + (1.0 - before) ** 2 / (nu + 1.0)) - 1.0
        _, present, weight, weight2 = blocks.by_block()
        count = np.broadcast_to(present.sum(axis=0), (blocks.n_classes, blocks.n_features))
        effective = count * (weight.sum(axis=0) / np.maximum(weight2.sum(axis=0), 1e-300))[:, None]
        return cls(
            blocks, shortest, covariance, nu, count, effective, lagged, blocks.spread_out(shortest)[:, None]
        )
