"""DISCUSS: dynamic feature selection by symmetrical uncertainty in a sliding window, repeated when relevance changes.

Barddal's thesis, chapter 8 (Algorithms 3 to 6). The symmetrical uncertainty (SU) of every feature and the class is
maintained exactly over a sliding window after every row, by :mod:`tamis.summaries.entropy`. A *selection* processes the
features in order of SU, skips those redundant with a selected one, and stops after n of them or below a threshold.

=============== ======================== =============================================================================
thesis          here                     meaning
=============== ======================== =============================================================================
n               `n_features_to_select`   maximum number of features
theta           `threshold`              SU below which no feature is selected
w               `window`                 rows of the window
epsilon         ``threshold="auto"``     sqrt(ln(1 / delta) / (2 w)), the Hoeffding heuristic, (1)
baseline        bar                      theta, or the SU of the last feature taken if there were n
=============== ======================== =============================================================================

The information gain of an irrelevant feature, times 2 n ln 2, is approximately chi-square distributed with f degrees of
freedom; its mean, f, is the bias that `bias_correction` subtracts. f is (values - 1) (classes - 1), corrected for
values with few rows (:mod:`tamis.dependence.expected_g`). The default threshold is exceeded by one of d irrelevant
features with probability delta::

    SU_i > 2 (chi2(f_i, delta / d) - f_i) / (2 n ln 2) / (H(X_i) + H(Y))                              (2)

Redundancy of a candidate c with a selected feature s::

    "predominance"   SU(s, c) > SU(c, Y)                                     Algorithms 4, 5
    "hoeffding"      the same, only where |SU(s, Y) - SU(c, Y)| < epsilon    Algorithm 6
    "conditional"    I(c; Y | s) < share I(c; Y), both minus their bias                               (3)

Defects of the printed algorithms, and how they are corrected:

* Algorithm 3 selects again while a feature above the baseline is not selected. A feature rejected as redundant stays
  above it: 86 to 100 % of all rows trigger a selection, and each time the classifier is reset. The text describes
  features that *cross* the baseline, as ``trigger="crossing"`` does, with a `margin` for noise, and a reset only if the
  set changes. ``trigger="literal"`` is the printed algorithm.
* The baseline follows the SU of its feature, so a decrease of that feature is not detected. Here it is fixed at the
  selection.
* The first selection leaves the classifier trained on all features. Here it also signals a drift.
* With fewer than n relevant features, the n best include noise. (2) applies to the n best, too.
* A window with few rows of a rare class rejects relevant features: there, the next best ones complete the n.
* If no feature is above the threshold, the best `min_features` are selected. The list of candidates may be exhausted.
* Algorithm 6 sets phi to the SU of the candidate, so that its difference is 0; SU(X_s, Y) is meant. The bound holds for
  means of bounded variables, not for SU: it is a heuristic. delta is not stated: 0.05.
* Predominance compares SU of different kinds: relevant features depend on each other if classes are balanced, and the
  SU of two features of ten values has a large bias. (3) measures the additional information of the candidate.

Extensions of the thesis, all disabled in :meth:`DISCUSS.paper`: (2) and (3); inertia of the selected set; an order by
SU averaged over more rows than the window contains (`half_life`), which distinguishes an original from its copies; and
drift detection separate from changes of the set. The printed algorithm resets the classifier with every new set. If
many features are nearly equivalent, the set changes with the noise; a drift therefore needs separate evidence, see
:mod:`tamis.rows.discuss.present`. Rows before a drift are ignored by later selections.

The parts: statistics of the last rows (:mod:`tamis.rows.discuss.uncertainty_walk`), the selection
(:mod:`tamis.rows.discuss.uncertainty_walk`), drift detection (:mod:`tamis.rows.discuss.present`), and here the trigger.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._atomic import atomic
from tamis._docstrings import fill_docstring
from tamis._guard import locked_and_validated
from tamis._kernels import njit
from tamis._validation.arrays import (
    Array,
    Floats,
    Indices,
    Ints,
    Mask,
    Rows,
    are_categories,
    columns_of,
    repeat_rows,
)
from tamis._validation.parameters import integer, number, parameter
from tamis._validation.values import check_choice, check_number, is_integer
from tamis.base import Claims, Inputs, RowSelector, n_to_select
from tamis.base.rows import check_mergeable, feature_names, joint_classes
from tamis.merging import MERGE_DOCS
from tamis.rows.discuss.bayes_watch import empty_watch, expect, judge
from tamis.rows.discuss.present import LOOK, Present
from tamis.rows.discuss.uncertainty_walk import SelectionRules, WindowStatistics, view
from tamis.rows.relation_change import critical_values
from tamis.rows.softsign_scaler import N_SCALING_ROWS, SoftsignScaler
from tamis.summaries.entropy import WindowCounts, update_row
from tamis.summaries.label_series import LabelSeries

# Share of the rows outside the most frequent class, and their number for each bin, below which the tests of relevance
# reject relevant features; see `experiments/discuss_rare.py`.
_RARE, _ROWS_PER_BIN = 0.1, 10
_INERTIA = 1.05  # advantage of the selected features in the order
_ROUND = 16  # rows between two updates of the expected errors
_CROSSED, _DRIFT = 1, 2
_RESERVE, _MORE = 1 << 61, 64  # marks a place without a feature; fewest new places
_FIRST = 1000  # rows that determine the scale and the bins of parts, at most
_CELLS = 1 << 19  # values of sparse rows that are dense at once


@njit(strict=True)
def _watch(
    X: Array, codes: Array, state: Any, corrected: bool, fading: float, wait: int, base: int,
    low: Array, high: Array, su: Array, mean: Array, began: int,
    bayes: Any, limit: float,
) -> tuple[int, int]:  # fmt: skip
    """Learn rows until a drift or, after `wait` of them, until the trigger fires; return their number and the event."""
    for i in range(len(X)):
        update_row(X[i], codes[i], state, su, corrected)
        level, fired = su[base] if base >= 0 else 0.0, False
        rate = max(fading, 1.0 / max(state[0][3][0] - began, 1)) if fading > 0.0 else 0.0
        for j in range(len(su)):
            mean[j] += rate * (su[j] - mean[j])
            fired |= (su[j] - level > high[j]) | (su[j] - level < low[j])
        if len(bayes[0]):
            if judge(X[i], codes[i], bayes) > limit:
                return i + 1, _DRIFT
            if state[0][3][0] % _ROUND == 0:
                expect(bayes)
        if fired and i + 1 >= wait:
            return i + 1, _CROSSED
    return len(X), 0


@dataclass(eq=False, repr=False)
class DISCUSS(RowSelector):
    """Selects the most relevant features in a sliding window, and adapts the selection to feature drift.

    After every row, DISCUSS updates the symmetrical uncertainty (SU) of each feature with the class. It selects again
    when the SU of a feature crosses the threshold of the last selection. If the relation between features and class has
    changed, `drift_detected_` is True, and a learner should be reset and trained with the last `n_replay` rows.
    :func:`tamis.prequential` and the River adapter do so.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        n: maximum number of features to select, or the fraction of all features, in (0, 1]. None: all relevant ones.
    threshold : float, "auto" or None, default=None
        theta: a feature with a smaller symmetrical uncertainty is not selected; in [0, 1]. "auto": the Hoeffding
        heuristic (1). None: the SU that, if no feature is relevant, one of all features exceeds with probability
        `delta` (2).
    window : int, from 8 to 5,000,000, default=500
        w: number of rows in the sliding window; after a drift, only the rows since the drift count.
    trigger : {"crossing", "literal"}, default="crossing"
        When to select again. "crossing": when a feature crosses the bar. "literal", as printed: whenever a feature
        above the bar is not selected, or a selected one is below it. Each selection then counts as a drift, as printed.
    margin : float in [0, 1], default=0.02
        How far beyond the bar a crossing begins (below it, at most 80 % of the bar).
    redundancy : {"conditional", "predominance", "hoeffding", None}, default="conditional"
        Criterion of redundancy with a selected feature; see the module docstring. None: no redundancy test.
    alpha_drift : float in (0, 1) or None, default=1e-5
        Level of the tests for a drift, per row or per test. It is about the rate of false alarms. None: there are no
        tests, and each new set counts as a drift.
    half_life : float or None, default=1000
        Half-life in rows, at least 1, of the running mean of SU that orders the selection. A selection also takes place
        after this number of rows, regardless of the trigger. None: the SU of the window determines the order.
    bias_correction : bool, default=True
        Whether to subtract the mean information gain of an irrelevant feature from each gain.
    min_features : int or None, default=None
        Select at least this many features, the best ones, even below the threshold. With 0, all are kept if none is
        above it. None: 1; but `n_features_to_select` (if given) while a class is rare, since the tests then reject
        relevant features too. That is so if less than a tenth of the rows of a window, and fewer than 10 for each of
        the `n_bins` bins, are outside the most frequent class: 50 of 500 rows by default.
    min_interval : int or None, at least 1, default=None
        Fewest rows between two selections by the trigger. None: w / 4 (literal: 1).
    delta : float in (0, 1), default=0.05
        Probability in (1) and (2).
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features (any finite numbers). The others are numeric.
    n_bins : int, at least 2, default=5
        Number of bins for a numeric column.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. A numeric target is discretized into five levels of about equal frequency
        (:mod:`tamis.base.numeric_target`).
    cuts : {"robust", "range"}, default="robust"
        How numbers are scaled. "robust": by the interquartile range of the first 32 rows, then mapped to (-1, 1), so
        that neither the scale nor outliers matter. "range": unscaled, as published.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Symmetrical uncertainty over the window now, in [0, 1]; all zero while `warming_up_`.
    selected_ : ndarray of int
        The selected features in order of selection. Empty until the window is full; until then all features are kept.
    drift_detected_ : bool
        Whether a drift was detected in the last `partial_fit`. Two windows after a drift it is True once more, because
        the first rows after a gradual drift come from both concepts. A new set of features alone does not signal a
        drift.
    why_fewer_ : str
        Why fewer features are selected than `n_features_to_select` allows; empty otherwise.
    n_replay : int
        Number of recent rows from which a learner should be refitted: those since the last drift, at most `window`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If rows or labels are invalid; the model is left unchanged.

    Notes
    -----
    A batch leaves the same state as its rows one at a time, bit for bit. A row costs O(n_features), a selection
    O(n_features window) and O(window) for each candidate and selected feature. Missing values (NaN) are a separate
    category. Weights must be integers: a row of weight k counts k times.

    Memory is about 12 bytes per feature and row of the window. If the first rows are CSR and no feature is categorical,
    only features that had another value than 0 have a state, and cost time; up to a quarter more are in reserve.

    Features that are relevant only in combination (XOR) are not detected.

    References
    ----------
    Barddal (2018). Feature Drift Detection in Data Streams. Doctoral thesis, chapter 8.

    Examples
    --------
    The class is determined by features 2 and 5; from row 3000 on, by 0 and 7.

    >>> import numpy as np
    >>> from tamis import DISCUSS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 20))
    >>> y = np.r_[X[:3000, 2] > X[:3000, 5], X[3000:, 0] > X[3000:, 7]]
    >>> selector = DISCUSS().partial_fit(X[:3000], y[:3000])
    >>> selector.get_support(indices=True)
    array([2, 5])
    >>> _ = selector.partial_fit(X[3000:3300], y[3000:3300])
    >>> selector.drift_detected_, selector.get_support(indices=True)
    (True, array([0, 7]))
    """

    claims = Claims(equals_rows="exactly", merges_exactly=False)
    _shapes = """
        _counts (its own)  _counts._class_counts (c) int  _counts._numeric (a) int
        _places? (j) int32 in [-1, a)
        _known? (a) int64 in [0, 2**62)
        _columns (v) int64 in [0, a)
        _numeric (a-v) int64 in [0, a)
        _su (a) fill 0  _mean (a) fill 0  _low (a+1) fill self._low[-1]  _high (a+1) fill self._high[-1]
        _scaler._middle? (a-v)  _scaler._unit? (a-v)
        _present._exact (a) bool  _present._edges (a?, 9?)  _present._tables (a?, 11?, c?)
        _base in [-1, a)
        _selected[] in [0, a)
        _present.bayes[0] (g) int64 in [0, a)
        _present.bayes[1] (g, 9)  _present.bayes[2] (g) bool  _present.bayes[3] (g, 11, c)
        _present.bayes[4] (g, c)  _present.bayes[5] (3, c)  _present.bayes[6] (2)  _present.bayes[7] (2, c)
        _label_series._total? (48, c) int  _label_series (its own)
    """
    # With sparse rows, features have a place in the state from their first value on: the places of all features, and
    # the features of all places. A place in reserve has `_RESERVE`, and the state of a feature that was always 0.

    accepts = Inputs(targets=("binary", "multiclass", "regression"), nan=True, levels=True)
    _chooses_count = True

    n_features_to_select: int | float | None = parameter(number("(0, inf)"), None, default=None)  # type: ignore[assignment]
    _: KW_ONLY
    threshold: float | str | None = parameter(number("[0, 1]"), "auto", None, default=None)
    window: int = parameter(integer("[8, 5000000]"), default=500)
    trigger: str = parameter("crossing", "literal", default="crossing")
    margin: float = parameter(number("[0, 1]"), default=0.02)
    redundancy: str | None = parameter(
        "conditional", "predominance", "hoeffding", None, default="conditional"
    )
    alpha_drift: float | None = parameter(number("(0, 1)"), None, default=1e-5)
    half_life: float | None = parameter(number("[1, inf)"), None, default=1000)
    bias_correction: bool = parameter(True, False, default=True)
    min_features: int | None = parameter(integer("[0, inf)"), None, default=None)
    min_interval: int | None = parameter(integer("[1, inf)"), None, default=None)
    delta: float = parameter(number("(0, 1)"), default=0.05)
    categorical: Any = None
    n_bins: int = parameter(integer("[2, 10000]"), default=5)
    task: str = "classification"
    cuts: str = parameter("robust", "range", default="robust")

    @classmethod
    def paper(cls, n_features_to_select: int | float | None = 5, **parameters: Any) -> Self:
        """Return the algorithm as printed: literal trigger, predominance, raw SU in ten bins; five best of 300 rows.

        Parameters
        ----------
        n_features_to_select : int, float or None, default=5
        **parameters
            Any other parameter of the class. The other printed mode is a limit of None with ``threshold=0.03,
            window=200``.

        Examples
        --------
        >>> DISCUSS.paper(trigger="crossing").redundancy
        'predominance'
        """
        published: dict[str, Any] = {
            "window": 300, "threshold": 0.0, "trigger": "literal", "redundancy": "predominance", "alpha_drift": None,
            "half_life": None, "bias_correction": False, "n_bins": 10, "cuts": "range", "min_features": 1,
        }  # fmt: skip
        return cls(n_features_to_select, **{**published, **parameters})

    # -- learning ------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        self._most(n_features)
        self._places: NDArray[np.int32] | None = None
        self._known: Ints | None = None
        self._start_places(n_features, columns_of(self.categorical, n_features, feature_names(self)))

    def _start_places(self, n_features: int, columns: Indices) -> None:
        """Allocate the state of some features; `columns` are the categorical ones."""
        self._columns = columns
        self._counts = self._new_counts(n_features)
        self._numeric = np.setdiff1d(np.arange(n_features), columns)
        self._scaler: SoftsignScaler | None = None  # for numeric features, after the first rows
        is_scaled = self.cuts == "robust" and len(self._numeric)
        self._early: int = min(N_SCALING_ROWS, self.window) if is_scaled else 0
        exact = np.zeros(n_features, bool)
        exact[columns] = True
        self._present = Present(self._counts, exact, self.alpha_drift or 1.0)
        self._label_series = LabelSeries(len(self.classes_))
        self._inflation = 1.0  # factor on the evidence required for a drift, for dependent labels
        self._su, self._mean = np.zeros(n_features), np.zeros(n_features)
        self._selected: list[int] = []
        self._n_relevant = 0  # features above their thresholds at the last selection
        self._age_then = 0  # rows since the last drift at the last selection
        self._base = -1  # the feature whose SU is the bar, if it moves
        # Distance from the bar at which the SU of each feature fires the trigger; the last: of a feature that is always
        # 0
        self._low, self._high = np.full(n_features + 1, np.inf), np.full(n_features + 1, np.inf)
        self._next = int(self.window)  # row before which the trigger does not fire
        self.drift_detected_ = False

    def _new_counts(self, n_features: int) -> WindowCounts:
        return WindowCounts(
            n_features, len(self.classes_), self.window, categorical=self._columns, n_bins=self.n_bins
        )

    def _most(self, n_features: int) -> int:
        """Return the maximum number of features to select; more than exist if unlimited."""
        n = self.n_features_to_select
        if n is None:
            return n_features + 1
        if is_integer(n):
            check_number("n_features_to_select", n, low=1, integer=True)
            return int(n)
        return n_to_select(n, n_features)

    def _claims(self) -> Claims:
        by_chance = self.threshold is None or self._watches  # the levels of the tests
        return replace(self.claims, counts_columns=by_chance, first_rows=min(int(self.window), _FIRST))

    def _widen(self, n_features: int) -> None:
        if self._places is not None:
            new = n_features - self.n_features_in_
            self._places = np.pad(self._places, (0, new), constant_values=-1)
        else:
            self._widen_places(n_features)

    def _widen_places(self, n_features: int) -> None:
        """Append features, in new arrays, that were 0 in all rows so far."""
        new = np.arange(len(self._su), n_features)
        self._counts = copy.copy(self._counts)
        if are_categories(self.categorical):
            self._counts.widen(n_features, categorical=True)
            self._columns = np.append(self._columns, new)
        else:
            self._counts.widen(n_features)
            self._extend_scaler(new)
        exact = np.zeros(n_features, bool)
        exact[self._columns] = True
        self._present = self._present.widened(exact)
        self._state_spec.extend(self, "a", n_features)

    def _forget_columns(self, columns: Indices) -> None:
        if self._places is not None:
            columns = self._places[columns].astype(np.intp)
            columns = columns[columns >= 0]
        self._counts = copy.copy(self._counts)
        self._counts.forget(columns)
        if self._scaler is not None:
            numbers = np.flatnonzero(np.isin(self._numeric, columns))
            self._scaler = self._scaler.without(numbers)
        self._present = self._present.without(columns)
        self._state_spec.reset(self, "a", columns)
        if np.isin(self._selected, columns).any():
            self._base = -1 if self._base in columns else self._base
            self._selected = [j for j in self._selected if j not in columns]
            self._present.watch(self._selected if self._watches else [], self._counts)

    def _extend_scaler(self, new: Array) -> None:
        if self._scaler is not None:
            self._scaler = self._scaler.widened(len(self._numeric) + len(new))
        elif not len(self._numeric) and self.cuts == "robust":  # the first numeric features
            self._early = min(N_SCALING_ROWS, self.window)
            if self._counts.n_seen >= self._early:
                self._scaler = SoftsignScaler(np.zeros((1, len(new))))
        self._numeric = np.append(self._numeric, new)

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if sample_weight is not None:
            X, y = repeat_rows(X, y, sample_weight)
        if self._counts.n_seen == 0 and self._scaler is None and sp.issparse(X) and not len(self._columns):
            self._places = np.full(self.n_features_in_, -1, np.int32)
            self._known = np.zeros(0, np.int64)
        rows: Iterator[Array]
        if self._places is None:
            rows = iter([np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float64)])
        else:
            X = sp.csr_matrix(X, dtype=np.float64)
            self._place_columns(X)
            size = max(1, _CELLS // len(self._su))
            rows = (self._placed_rows(X[first : first + size]) for first in range(0, len(y), size))
        with locked_and_validated(self._counts):  # once, not at each of many short calls
            self._prepare_batch()
            for part in rows:
                self._learn_rows(part, y[: len(part)])
                y = y[len(part) :]

    def _place_columns(self, X: Rows) -> None:
        """Assign a place to each feature with its first value, in the order of occurrence."""
        places, known = self._places, self._known
        assert places is not None
        assert known is not None
        first = np.arange(min(self._most_fewest(), len(places)))  # the next ones, if too few are relevant
        features, at = np.unique(X.indices[X.data != 0.0], return_index=True)
        features = np.concatenate([first, features[np.argsort(at)]])
        features = features[places[features] < 0]
        features = features[np.sort(np.unique(features, return_index=True)[1])]
        n_known = int(np.count_nonzero(known < _RESERVE))
        n_places, needed = len(known), n_known + len(features)
        while n_places < needed:
            n_places += n_places // 4 + _MORE
        n_places = min(n_places, len(places))
        if n_places > len(known):
            if len(known):
                self._widen_places(n_places)
            else:
                self._start_places(n_places, np.zeros(0, np.intp))
            known = np.pad(known, (0, n_places - len(known)), constant_values=_RESERVE)
        if len(features):
            self._places, self._known = places.copy(), known.copy()
            self._places[features] = np.arange(n_known, needed)
            self._known[n_known:needed] = features

    def _placed_rows(self, X: Rows) -> Array:
        """Return sparse rows as dense ones, each feature at its place."""
        assert self._places is not None
        dense = np.zeros((X.shape[0], len(self._su)))
        rows, filled = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data != 0.0
        dense[rows[filled], self._places[X.indices[filled]]] = X.data[filled]
        return dense

    def _prepare_batch(self) -> None:
        if len(self.classes_) > self._counts.n_classes:
            self._counts.grow(len(self.classes_))
            self._present.grow(self._selected if self._watches else [], self._counts)
            self._label_series.grow(len(self.classes_))
        self.drift_detected_ = False

    def _learn_rows(self, X: Array, y: Array) -> None:
        if self._early and self._scaler is None:
            first = self._early - self._counts.n_seen
            self._take_in_parts(X[:first], y[:first])
            if self._counts.n_seen < self._early:
                return
            self._rescale_counted_rows()
            X, y = X[first:], y[first:]
        self._take_in_parts(self._scaled_rows(X), y)

    @property
    def _fading(self) -> float:
        return 0.0 if self.half_life is None else 1.0 - 0.5 ** (1.0 / self.half_life)

    def _take_in_parts(self, X: Array, y: Array) -> None:
        while len(X):
            n = self._counts.prepare(X, y)
            self._take_rows(X[:n], y[:n])
            X, y = X[n:], y[n:]

    def _scaled_rows(self, X: Array) -> Array:
        """Return the scaled rows."""
        if self._scaler is None or not len(X):
            return X
        if len(self._numeric) == X.shape[1]:
            return self._scaler(X)
        seen = X.copy()
        seen[:, self._numeric] = self._scaler(X[:, self._numeric])
        return seen

    def _rescale_counted_rows(self) -> None:
        """Recount the first rows with the scaler that applies to all later rows."""
        rows, codes = self._counts.rows()
        self._scaler = SoftsignScaler(rows[:, self._numeric])
        self._counts = self._new_counts(rows.shape[1])
        X, none = np.ascontiguousarray(self._scaled_rows(rows)), np.zeros(len(self._su))
        never, watch = np.full(len(self._low), np.inf), tuple(empty_watch(self._counts.n_classes))
        while len(X):  # a kernel that only counts would take seconds to compile
            n = self._counts.prepare(X, codes)
            state = self._counts.state
            _watch(X[:n], codes[:n], state, False, 0.0, n, -1, -never, never, none, none, 0, watch, np.inf)
            X, codes = X[n:], codes[n:]

    def _take_rows(self, X: Array, y: Array) -> None:
        counts, fading = self._counts, self._fading
        while len(X):
            n, limit = self._rows_until_test(), -np.log(self._present.alpha) * self._inflation
            taken, event = _watch(
                X[:n], y[:n], counts.state, self.bias_correction, fading, self._next - counts.n_seen, self._base,
                self._low, self._high, self._su, self._mean, self._present.began, self._present.bayes, limit,
            )  # fmt: skip
            if self._watches:
                self._label_series.update(y[:taken])
                if counts.n_seen % LOOK == 0:
                    self._inflation = self._label_series.variance_inflation()
            X, y = X[taken:], y[taken:]
            if event == _DRIFT:
                self._restart(self._present.rows_of_errors)
            elif event == _CROSSED:
                self._renew(int(self.window))
            elif self._selected and self.trigger == "crossing":
                self._test_and_select()

    # -- merging -------------------------------------------------------------------------------------------

    def clone_unfitted(self) -> Self:
        """Return an unfitted selector that scales and bins as this one; see `RowSelector.clone_unfitted`.

        Parts of the same origin add all of their counts. (Not of sparse rows, whose features differ by part.)
        """
        fresh = super().clone_unfitted()
        if self._places is not None or self._counts.n_rows < self._claims().first_rows:
            return fresh
        part, scaler = copy.copy(self), self._scaler
        part._unseen, part.n_seen_ = np.arange(len(self.classes_)), 0
        part._start_places(self.n_features_in_, self._columns)
        part._scaler = scaler
        part._present.share_bins(self._present, self._counts)
        return part

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str = "after") -> Self:
        """Add the rows of another selector, which precede or follow those of this one.

        If the later part has at most `window` rows, the earlier one learns them, as in one pass. Otherwise the window,
        the selection and its drift detection are those of the later part. If no drift was detected in it, or between
        the parts, the counts of both since the last drift are added. Between the parts, the relation of each feature
        to the class is tested, as in one pass.

        Parameters
        ----------
        other : DISCUSS
            With the same columns and parameters.
        %(when)s

        %(returns_and_raises)s
        ValueError
            If its columns or parameters differ, or for regression: the parts cut the target differently.

        Notes
        -----
        The window has the rows of one pass. Numbers are stored as scaled by the first 32 rows of their part, so they
        are restored up to rounding, and are binned by the rows of their part. Parts that :meth:`clone_unfitted` of one
        selector returned have the same scale and the same bins: their counts are added exactly, except those of the
        first `window` rows of each part, which no part counts. Of parts with other bins, the last `window` rows of the
        earlier one are counted. The running mean of SU is weighted as in one pass.

        Examples
        --------
        >>> import numpy as np, tamis
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 20))
        >>> y = X[:, 2] > X[:, 5]
        >>> first = tamis.DISCUSS().fit(X[:500], y[:500])
        >>> parts = [first.clone_unfitted().partial_fit(X[i : i + 1000], y[i : i + 1000]) for i in range(0, 4000, 1000)]
        >>> merged = tamis.merge_tree(parts)
        >>> merged.n_seen_, merged.drift_detected_, merged.get_support(indices=True)
        (4000, False, array([2, 5]))
        """
        check_choice("when", when, ("after", "before"))
        if not check_mergeable(self, other, ()):
            return self
        earlier, later = (self, other) if when == "after" else (other, self)
        merged = copy.deepcopy(earlier)
        merged._append(later)
        self.__dict__.update({**vars(merged), **self.get_params(deep=False)})
        return self

    def _append(self, later: Self) -> None:
        codes, classes = joint_classes(self, later)
        joint = {**classes, "n_seen_": self.n_seen_ + later.n_seen_}
        if 0 < later._counts.n_seen <= self.window and self._counts.n_seen:
            self.__dict__.update(joint)
            self._learn_window(later, codes)
        elif later._counts.n_seen:
            whole = copy.deepcopy(later)
            whole.__dict__.update(joint)
            whole._recode(codes)
            if self._counts.n_seen:
                whole._prepend(self)
            self.__dict__.update(vars(whole))
        self.__dict__.update(joint)

    def _learn_window(self, later: Self, codes: Indices) -> None:
        """Learn the rows of the window of a later part, whose classes have these codes here."""
        if self._places is None and self._scaler is not None and self._scaler.equals(later._scaler):
            X, y = later._counts.rows()
            with locked_and_validated(self._counts):
                self._prepare_batch()
                self._take_in_parts(np.array(X, order="C"), codes[y])
        else:
            X, y = later._window_rows(later._counts.n_rows)
            self._learn(X, codes[y], None)

    def _window_rows(self, n: int) -> tuple[Rows, Array]:
        """Return the last n rows of the window before they were scaled, and their classes."""
        X, codes = self._counts.rows()
        first = len(codes) - n
        X, codes = np.array(X[first:], order="C"), codes[first:]
        if self._scaler is not None:
            X[:, self._numeric] = self._scaler.inverse(X[:, self._numeric])
        if self._places is None:
            return X, codes
        assert self._known is not None
        n_known = int(np.count_nonzero(self._known < _RESERVE))
        rows, at = np.nonzero(X[:, :n_known])
        shape = (len(X), self.n_features_in_)
        return sp.csr_matrix((X[rows, at], (rows, self._known[at])), shape=shape), codes

    def _recode(self, codes: Indices) -> None:
        """Recode the classes to the codes of an earlier part."""
        n_classes = len(self.classes_)
        order = np.full(n_classes, -1)
        order[codes] = np.arange(len(codes))
        order[order < 0] = np.arange(len(codes), n_classes)
        self._counts.grow(n_classes)
        self._counts.reorder(order)
        self._present = self._present.recode(order)
        self._label_series.grow(n_classes)
        self._label_series.reorder(order)

    def _prepend(self, earlier: Self) -> None:
        """Add the counts of an earlier part since its last drift, if they are of the present concept."""
        present, theirs = self._present, earlier._present
        if not present.is_stationary or theirs.is_in_transition:
            return
        age, later_age = theirs.age(earlier._counts), present.age(self._counts)
        if self._watches:
            X, codes = earlier._window_rows(min(age, earlier._counts.n_rows))
            bars = critical_values(present.alpha, self.n_features_in_, len(self.classes_))
            rows = self._scaled_rows(self._in_state_order(X))
            present = self._present  # `_in_state_order` may have replaced it
            if not present.prepend(theirs, age, rows, codes, self._inflation * bars, int(self.window)):
                self.drift_detected_ = True
                return
            series = copy.deepcopy(earlier._label_series)
            series.grow(len(self.classes_))
            self._label_series.merge(series, first=True)
            self._inflation = self._label_series.variance_inflation()
        else:
            present.began -= age
        self._mean_after(earlier, age, later_age)

    def _in_state_order(self, X: Rows) -> Array:
        """Return rows of another selector in the order of the state."""
        if self._places is None:
            return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)
        X = sp.csr_matrix(X)
        self._place_columns(X)
        return self._placed_rows(X)

    def _mean_after(self, earlier: Self, age: int, later_age: int) -> None:
        """Average the running means of both parts, of these numbers of rows, weighted as after one pass."""
        fading = self._fading
        if fading == 0.0:
            return
        mean = earlier._mean if earlier._places is None else np.append(earlier._mean, 0.0)[earlier._places]
        if self._known is not None:
            mean = np.append(mean, 0.0)[np.minimum(self._known, self.n_features_in_)]
        kept = (1.0 - fading) ** later_age
        weight = kept * (1.0 - (1.0 - fading) ** age)
        self._mean = self._mean + weight / (weight + 1.0 - kept) * (mean - self._mean)

    # -- when to select ------------------------------------------------------------------------------------

    @property
    def _watches(self) -> bool:
        return self.trigger == "crossing" and self.alpha_drift is not None

    def _restart(self, n: int) -> None:
        """Reset the state to the last n rows, which are the evidence for a drift."""
        self._present.begin(n, self._counts)
        self.drift_detected_, self._selected = True, []
        self._low[:] = self._high[:] = np.inf
        self._renew(self._present.age(self._counts))

    def _rows_until_test(self) -> int:
        t, rounds = self._counts.n_seen, [1 << 40]
        if self._watches:
            rounds.append(LOOK)
        if self.trigger == "crossing" and self.half_life is not None:
            rounds.append(int(self.half_life))
        return min(size - t % size for size in rounds)

    def _test_and_select(self) -> None:
        """Test for a drift, and select again if due."""
        present, counts = self._present, self._counts
        due = self._watches and counts.n_seen % LOOK == 0
        is_young = self._age_then < self.window
        if due and not is_young:
            if n := present.rows_of_another_relation(counts, self.n_features_in_, self._inflation):
                self._restart(n)
                return
            if present.is_past_transition(counts):
                present.leave_transition(self._selected, counts)
                self.drift_detected_ = True
        if (due and is_young) or (self.half_life is not None and counts.n_seen % int(self.half_life) == 0):
            self._renew(min(present.age(counts), self.window))

    # -- how to select -------------------------------------------------------------------------------------

    def _rules(self) -> SelectionRules:
        epsilon = float(np.sqrt(np.log(1.0 / self.delta) / (2.0 * self.window)))  # (1)
        threshold = epsilon if isinstance(self.threshold, str) else self.threshold
        return SelectionRules(
            self._most(self.n_features_in_), self._fewest(), threshold, self.redundancy, self.bias_correction,
            self.delta, epsilon, float(self.margin), self.n_features_in_, self._known,
        )  # fmt: skip

    def _fewest(self) -> int:
        """Return the minimum number of features to select."""
        if self.min_features is not None:
            return int(self.min_features)
        return self._most_fewest() if self._class_is_rare else 1

    def _most_fewest(self) -> int:
        """Return the minimum number of features to select while a class is rare."""
        if self.min_features is not None:
            return max(int(self.min_features), 1)
        return 1 if self.n_features_to_select is None else self._most(self.n_features_in_)

    @property
    def _class_is_rare(self) -> bool:
        """Whether a full window has too few rows outside the most frequent class for a test of relevance."""
        counts = self._counts.class_counts
        least = min(_RARE * self.window, _ROWS_PER_BIN * self.n_bins)
        return bool((counts.sum() - counts.max()) * self.window < least * counts.sum())

    def _renew(self, n: int) -> None:
        """Select by the last n rows."""
        counts, literal = self._counts, self.trigger == "literal"
        if np.count_nonzero(counts.class_counts) < 2:
            self._next = counts.n_seen + 1
            return
        seen, rules = view(n, counts, self.bias_correction), self._rules()
        shift = np.zeros(len(seen.su))
        if n == counts.window:  # the SU per row is computed from integers, but ignores values with few rows
            dense = literal | (seen.free == seen.classic)
            seen = seen._replace(su=np.where(dense, self._su, seen.su))
            shift = self._su - seen.su
        thresholds = np.append(rules.thresholds(seen), np.inf if rules.threshold is None else rules.threshold)
        selected, full = self._walk(seen, rules, thresholds[:-1])
        if literal:
            self._set_literal_triggers(selected, full, thresholds)
        else:
            bar = np.full(len(thresholds), seen.su[selected].min()) if full else thresholds
            self._set_triggers(bar, np.append(seen.su, 0.0) >= bar, np.append(shift, 0.0), rules)
        others = set(selected) != set(self._selected)
        self.drift_detected_ |= literal or (others and not self._watches)
        if selected != self._selected:
            self._selected = selected
            self._present.watch(selected if self._watches else [], counts)
        self._age_then = self._present.age(counts)
        interval = self.min_interval or (1 if literal else self.window // 4)
        self._next = max(counts.n_seen + interval, self._present.began + self.window)

    def _walk(
        self, seen: WindowStatistics, rules: SelectionRules, thresholds: Floats
    ) -> tuple[list[int], bool]:
        bar, rank, kept = thresholds.copy(), seen.su, list[int]()
        if self.trigger == "crossing":
            if self._age_then >= self.window:  # otherwise they were selected from few rows
                kept = self._selected
            bar[kept] -= rules.slack(bar[kept])
            if self.half_life is not None:
                rank = self._mean.copy()
                rank[kept] *= _INERTIA
        self._n_relevant = int(np.count_nonzero(seen.su > bar))
        return rules.walk(seen, bar, rank, kept, self._counts)

    def _set_triggers(self, bar: Floats, above: Mask, shift: Floats, rules: SelectionRules) -> None:
        """Set the SU values at which the trigger fires because a feature crosses its threshold."""
        self._low = np.where(above, bar - rules.slack(bar) + shift, -np.inf)
        self._high = np.where(above, np.inf, bar + rules.margin + shift)

    def _set_literal_triggers(self, selected: list[int], full: bool, thresholds: Floats) -> None:
        inside = np.zeros(len(thresholds), bool)
        inside[selected] = True
        bar = np.zeros(len(thresholds)) if full else thresholds
        self._low, self._high = np.where(inside, bar, -np.inf), np.where(inside, np.inf, bar)
        self._base = selected[-1] if full else -1
        if full:
            self._low[self._base], self._high[self._base] = -np.inf, np.inf

    # -- read-outs -----------------------------------------------------------------------------------------

    def _relevance(self) -> Floats:
        if self._places is None:
            return self._su.copy()
        return np.append(self._su, 0.0)[self._places]

    def _selection(self) -> Mask:
        mask = np.full(self.n_features_in_, not self._selected)
        mask[self.selected_] = True
        return mask

    @property
    def selected_(self) -> Indices:
        """The selected features in order of selection."""
        self.warming_up_  # noqa: B018 - raises NotFittedError if nothing was learned
        places = np.array(self._selected, dtype=np.intp)
        return places if self._known is None else self._known[places]

    @property
    def why_fewer_(self) -> str:
        """Why fewer features are selected than allowed, and how to select more; empty otherwise."""
        n, n_selected = self.n_features_in_, len(self.selected_)
        most = min(self._most(n), n)
        if self.n_features_to_select is None or not 0 < n_selected < most:
            return ""
        redundant = max(self._n_relevant - n_selected, 0)
        weak = n - n_selected - redundant
        by_chance = "an irrelevant feature may be by chance"
        bar = by_chance if self.threshold is None else f"threshold={self.threshold!r} requires"
        reasons, cures = [], []
        if weak:
            reasons.append(
                f"{weak:,} {'is' if weak == 1 else 'are'} no more informative about the class in the last"
                f" {self.n_replay:,} rows than {bar}"
            )
            cures.append(f"min_features={most}")
        if redundant:
            reasons.append(f"{redundant:,} {'is' if redundant == 1 else 'are'} redundant with a selected one")
            cures.append("redundancy=None")
        return (
            f"{n_selected:,} of at most {most:,} features are selected: of the others, {', and '.join(reasons)};"
            f" {' or '.join(cures)} selects more."
        )

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted."""
        age = self._present.age(self._counts) if hasattr(self, "n_seen_") else self.window
        return int(min(age, self.window))
