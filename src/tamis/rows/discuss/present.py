"""The current concept: the rows since the last drift, their statistics, and the tests for the next drift.

There are three tests for a drift; a change of the selected set is not evidence:

* the errors of naive Bayes on the selected features have risen (:mod:`tamis.rows.discuss.bayes_watch`), after each row;
* the relation of a feature to the class differs between the most recent and the other rows of the window
  (:mod:`tamis.rows.relation_change`), every 50 rows;
* or it differs between the window and all rows before it, whenever the window consists of new rows, to detect gradual
  changes.

The level alpha of the first test applies to a row, that of the others to a test. The first rows after a drift may come
from both concepts, so once, two windows later, all rows before the last window are discarded.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tamis._validation import Array, Floats, Indices, Mask
from tamis.rows.discuss.bayes_watch import BayesWatch, count, cuts, empty_watch, watch
from tamis.rows.relation_change import critical_values, find_changed_feature, find_changed_table
from tamis.summaries.entropy import WindowCounts

LOOK = 50  # rows between two tests of the relations
_YOUNG = 150  # recent rows that are compared with the rest of the window
_LEAST = 30  # minimum number of rows after a reset


class Present:
    """The statistics of the rows since the last drift.

    Parameters
    ----------
    counts : WindowCounts
        The window.
    exact : ndarray of shape (n_features,), bool
        Which features are categorical.
    alpha : float
        Level, in (0, 1).

    Attributes
    ----------
    began : int
        The first row.
    bayes : tuple
        A :class:`tamis.rows.discuss.bayes_watch.BayesWatch`, for kernels.
    """

    def __init__(self, counts: WindowCounts, exact: Mask, alpha: float) -> None:
        self.alpha, self._exact = alpha, exact
        self.began, self._found = 0, -1  # and the row of the detection, during a transition
        self._forget(counts)

    def _forget(self, counts: WindowCounts) -> None:
        self.bayes: tuple[Any, ...] = tuple(empty_watch(counts.n_classes))
        self._edges, self._tables = np.zeros((0, 0)), np.zeros((0, 0, 0))  # of all rows, window by window

    def age(self, counts: WindowCounts) -> int:
        """Return the number of rows since the last drift."""
        return counts.n_seen - self.began

    def grow(self, selected: list[int], counts: WindowCounts) -> None:
        """Make room for new classes."""
        self._forget(counts)
        self.watch(selected, counts)

    def recode(self, order: Indices) -> Present:
        """Return a copy with more classes, and these in another order: class c is what class ``order[c]`` was."""
        recoded, empty = copy.copy(self), empty_watch(len(order))
        more = len(order) - self.bayes[-1].shape[1]
        columns, edges, exact, tables, totals, tally, evidence, steps = self.bayes
        tables = np.pad(tables, ((0, 0), (0, 0), (0, more)), constant_values=0.5)
        totals, steps = (np.pad(part, ((0, 0), (0, more))) for part in (totals, steps))
        tally = np.hstack([tally, empty.tally[:, :more]])
        by_class = [np.ascontiguousarray(part[..., order]) for part in (tables, totals, tally, steps)]
        recoded.bayes = (columns, edges, exact, *by_class[:3], evidence, by_class[3])
        if len(self._edges):
            recoded._tables = np.pad(self._tables, ((0, 0), (0, 0), (0, more)))[..., order]
        return recoded

    def share_bins(self, other: Present, counts: WindowCounts) -> None:
        """Count in the bins of another selector with the same features; if it has none, in those of its rows.

        Parameters
        ----------
        other : Present
        counts : WindowCounts
            The window of the other one.
        """
        self._edges = other._edges if len(other._edges) else cuts(counts.rows()[0], self._exact)
        self._tables = self._empty_tables(counts.n_classes)

    def _empty_tables(self, n_classes: int) -> Floats:
        return np.zeros((len(self._edges), self._edges.shape[1] + 2, n_classes))

    @property
    def is_stationary(self) -> bool:
        """Whether all rows since the start belong to one concept."""
        return self.began <= 0 and not self.is_in_transition

    @property
    def is_in_transition(self) -> bool:
        """Whether the first rows since the last drift may be from both concepts."""
        return self._found >= 0

    def prepend(self, before: Present, age: int, X: Array, codes: Array, bars: Array, window: int) -> bool:
        """Add the counts of an earlier part, in new arrays, unless the relation changed between the parts.

        Parameters
        ----------
        before : Present
            With the same classes. Its counts are added if its bins are the same.
        age : int
            Number of rows since the last drift there.
        X, codes : ndarray
            Its last rows since then, at most a window. Those that its counts lack are counted; if it has other bins,
            all of them.
        bars : ndarray
            Critical values.
        window : int

        Returns
        -------
        bool
            Whether the parts are of one concept.
        """
        if not len(self._edges):
            self._edges = cuts(X, self._exact)
            self._tables = self._empty_tables(self.bayes[-1].shape[1])
        tables = np.zeros_like(self._tables)
        if np.array_equal(before._edges, self._edges):
            tables[..., : before._tables.shape[2]] = before._tables
            first_look = -before.began % LOOK  # age at which windows end there
            n_left = (age - first_look) % window if before._tables.any() else len(codes)
            X, codes = X[len(codes) - n_left :], codes[len(codes) - n_left :]
        count(np.ascontiguousarray(X), codes, self._edges, self._exact, tables)
        if find_changed_table(tables, self._tables, bars) >= 0:
            return False
        self._tables = self._tables + tables
        self.began -= age // window * window  # by windows, so that each row is counted once
        return True

    def widened(self, exact: Mask) -> Present:
        """Return a copy with additional features, which were 0 in all rows; `exact` covers all features."""
        wide, more = copy.copy(self), len(exact) - len(self._exact)
        wide._exact = exact
        if len(self._edges):
            wide._edges = np.pad(self._edges, ((0, more), (0, 0)))
            wide._tables = np.pad(self._tables, ((0, more), (0, 0), (0, 0)))
            wide._set_zero(np.arange(len(self._exact), len(exact)), self._tables[0].sum(axis=0))
        return wide

    def without(self, columns: Indices) -> Present:
        """Return a copy as if some features had been 0 in all rows."""
        cleared = copy.copy(self)
        if len(self._edges):
            cleared._edges, cleared._tables = self._edges.copy(), self._tables.copy()
            cleared._set_zero(columns, self._tables[0].sum(axis=0))
        return cleared

    def _set_zero(self, columns: Indices, rows: Array) -> None:
        """Set some features to 0 in all rows; `rows` is the number of rows of each class."""
        self._edges[columns], self._tables[columns] = np.inf, 0.0
        self._edges[columns[self._exact[columns]], 0] = 0.0
        self._tables[columns, 0] = rows

    def watch(self, selected: list[int], counts: WindowCounts) -> None:
        """Monitor the errors of naive Bayes on these features from now on."""
        if not selected:
            self.bayes = tuple(empty_watch(counts.n_classes))
            return
        rows, codes = counts.rows()
        n = min(self.age(counts), len(codes))
        before = BayesWatch(*self.bayes)
        self.bayes = tuple(watch(selected, rows[-n:], codes[-n:], self._exact, before))

    @property
    def rows_of_errors(self) -> int:
        """Number of recent rows that are the evidence for risen errors."""
        return int(BayesWatch(*self.bayes).evidence[1])

    def begin(self, n: int, counts: WindowCounts) -> None:
        """Reset to the last n rows."""
        self.began, self._found = counts.n_seen - min(max(n, _LEAST), counts.n_rows), counts.n_seen
        self._forget(counts)

    def is_past_transition(self, counts: WindowCounts) -> bool:
        """Whether the last drift has ended, even if it was gradual; true once."""
        return 0 <= self._found <= counts.n_seen - 2 * counts.window

    def leave_transition(self, selected: list[int], counts: WindowCounts) -> None:
        """Discard all rows before the last window."""
        self.began, self._found = counts.n_seen - counts.window, -1
        self._forget(counts)
        self.watch(selected, counts)

    def rows_of_another_relation(self, counts: WindowCounts, n_features: int, inflation: float = 1.0) -> int:
        """Return the number of recent rows in which the relation of a feature to the class has changed; 0: none.

        The level accounts for all `n_features`, including those that were always 0 and are not counted.
        """
        bars = inflation * critical_values(self.alpha, n_features, counts.n_classes)
        young = min(_YOUNG, counts.window // 2)
        if self.age(counts) % counts.window < LOOK and self._differs_from_before(bars, counts):
            return counts.window
        state = counts.with_bins(young)
        return young if find_changed_feature(young, state, counts.n_classes, bars) >= 0 else 0

    def _differs_from_before(self, bars: Array, counts: WindowCounts) -> bool:
        """Compare the window with all earlier rows, and then add it to these."""
        X, codes = counts.rows()
        if not len(self._edges):
            self._edges = cuts(X, self._exact)
            self._tables = self._empty_tables(counts.n_classes)
        tables = np.zeros_like(self._tables)
        count(X, codes, self._edges, self._exact, tables)
        changed = find_changed_table(self._tables, tables, bars) >= 0
        self._tables = self._tables + tables
        return bool(changed)
