"""ABFS: adaptive boosting for feature selection, one decision stump with a drift detector per selected feature.

Barddal, Enembreck, Gomes, Bifet, Pfahringer: Boosting decision stumps for dynamic feature selection on data streams,
Information Systems 83, 2019; Barddal's thesis, Chapter 9 (Algorithm 7).

=================  ==================  =========================================================================
thesis             here                meaning
=================  ==================  =========================================================================
lambda             ``weight``          of a row; each unit in turn increases or decreases it
lambda_c, lambda_e ``right``, ``wrong``  weight of the rows that a unit classified correctly and wrongly
gp                 `grace_period`      weight of the rows between two attempts to select a feature
theta              `threshold`         bits that the best feature must gain at least
F'                 ``selected_``       features of the units, in order of entry
=================  ==================  =========================================================================

A row passes through the units. A correct unit decreases its weight and a wrong one increases it, so that each unit
focuses on the errors of those before it (Equation 1); its detector is updated with 0 or 1::

    right:  lambda_c += lambda,  lambda *= (lambda_c + lambda_e) / (2 lambda_c)
    wrong:  lambda_e += lambda,  lambda *= (lambda_c + lambda_e) / (2 lambda_e)                            (1)

If a detector signals a drift, its unit and all later ones are removed, and the candidate is reset. Otherwise the
candidate learns the row with the remaining weight; every `grace_period` units of weight, if the best unselected feature
gains more than `threshold`, its stump is frozen as the next unit, and the candidate is reset.

Errata and deviations, each with its reason:

* The text requires that the best gain exceed the second by the Hoeffding bound: two relevant features with equal gain
  then exclude each other permanently. The released program has no such test, nor does ours; ``hoeffding=True`` adds it,
  and treats a bound below 0.1 as a tie.
* The text's "while size(U) > i_drift" leaves the drifting unit in place; its prose, the program and we remove it.
* The grace period counts weight, as in the program, not rows.
* Nothing bounds lambda: a long run of errors lets one row outweigh the stream. It stays below `weight_cap`.
* The stated cost, O(features) per grace period, is that of every row, to update the statistics.
* A category of many values gains by chance: with 50 values and 500 rows 0.07 bits, more than the threshold. The
  expected gain by chance (:mod:`tamis.dependence.expected_g`) is subtracted unless ``bias_correction=False``.
* With an outlier, ten equally spaced cuts between the minimum and the maximum do not separate the other values, and
  squares of 1e-200 underflow. Numbers are scaled by the interquartile range of the candidate's first 32 rows and
  mapped to (-1, 1); ``cuts="range"`` uses them unscaled.
* Without a selected feature, every feature counts as selected; the program may report an outdated selection.
"""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, Ints, Mask, Rows, are_categories, columns_of
from tamis._validation.parameters import number, parameter
from tamis.base import Claims, RowSelector
from tamis.base.rows import feature_names
from tamis.drift import DETECTOR, Detector, DriftDetector, new_detector
from tamis.rows.abfs.stumps import Observers, Stump, Values

_TIE = 0.1  # a Hoeffding bound below it counts as a tie
_BLOCK = 1024  # rows processed at once


@njit(strict=True)
def _weigh(
    hits: Array, right: Array, wrong: Array, weight: Array, cap: float, candidate: float, due: float, out: Array
) -> tuple[int, float]:  # fmt: skip
    """Pass rows through the units until a grace period is complete; return their number and the candidate's weight."""
    for i in range(len(weight)):
        w = min(weight[i], cap)
        for u in range(len(right)):
            if hits[u, i]:
                right[u] += w
                w *= (right[u] + wrong[u]) / (2.0 * right[u])  # (1)
            else:
                wrong[u] += w
                w *= (right[u] + wrong[u]) / (2.0 * wrong[u])
            w = min(w, cap)
        out[i] = w
        candidate += w
        if candidate >= due:
            return i + 1, candidate
    return len(weight), candidate


@dataclass
class _Unit:
    """A selected feature: its stump and its drift detector."""

    stump: Stump
    detector: DriftDetector


@dataclass(eq=False, repr=False)
class ABFS(RowSelector):
    """Selects features sequentially, each by a decision stump boosted on the errors of the others.

    ABFS determines the number of features itself. When the errors of a stump rise, its feature and those selected after
    it are dropped, and the search restarts. Then `drift_detected_` is true: a learner should be reset too, and trained
    on the last `n_replay` rows (see :mod:`tamis.replay`). A new feature alone does not count as a drift.

    Parameters
    ----------
    grace_period : float, default=500
        Total weight of the rows between two attempts to select a feature, in [1, inf). Each row weighs 1 until the
        first feature is selected.
    threshold : float, default=0.05
        Information gain that a feature must exceed, in bits, in [0, inf). At 0.01, the value of the thesis, irrelevant
        features are selected by chance; see the page on ABFS.
    detector : {"adwin", "ddm", "ecdd", "hddm-a", "hddm-w"} or DriftDetector, default="adwin"
        The drift detector that monitors the errors of each stump. An object is copied and reset first.
    hoeffding : bool, default=False
        Whether the best gain must also exceed the second best by the Hoeffding bound, or the bound be below 0.1.
    delta : float, default=1e-7
        Probability that the bound fails, in (0, 1); used only with `hoeffding`.
    weight_cap : float, default=1e6
        Largest weight of a row, in [1, 1e15].
    renewal : {"drift", "change"}, default="drift"
        When `drift_detected_` is true. "drift": only when features were dropped. "change": whenever the set has
        changed.
    cuts : {"robust", "range"}, default="robust"
        How numbers are scaled. "robust": by the interquartile range of the first rows, then mapped to (-1, 1), so that
        neither the scale nor outliers matter. "range": unscaled, as published.
    bias_correction : bool, default=True
        Whether to subtract the expected gain by chance of a categorical feature.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features (any finite numbers). The others are numeric and split at a cut.

    Attributes
    ----------
    selected_ : ndarray of int
        Selected features, in order of entry; empty while `get_support` keeps every feature.
    scores_ : ndarray of shape (n_features,), float64
        Of an unselected feature: the current gain of its stump in bits, on rows weighted by the errors of the selected
        stumps (0 right after the set changed). Of the i-th of m selected features: the gain at its selection, plus
        (m - i + 1) times the largest possible gain. So selected features rank first, by entry, and the others by gain.
    drift_detected_ : bool
        Whether the set was replaced in the last batch; see `renewal`.
    n_replay : int
        Number of recent rows from which a learner should then be refitted: the grace period.
    drifts_ : list of int
        Rows, counted from 0, at which features were dropped.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If rows, labels or weights are invalid.

    Notes
    -----
    A batch leaves the same bits as its rows one at a time. There is no `merge`: each stump depends on all rows since
    the stump before it was frozen.

    A numeric feature is cut at the best of 10 points between its minimum and maximum. The proportion of each class
    below a cut is estimated by a Gaussian. A category has a branch for each value, or one for a value and one for
    the rest. Two branches must contain more than 1 % of the weight each. A value without a branch counts as an error.

    Time per row: O(features) to update the statistics, O(selected) to boost and to monitor; O(features) at each
    attempt. Memory: 4 float64 per class and numeric feature, about 2 per class and value of a category;
    values after the first 10,000 count as one. Sparse rows are
    converted to dense arrays, one batch at a time.

    References
    ----------
    Barddal, Enembreck, Gomes, Bifet, Pfahringer (2019). Boosting decision stumps for dynamic feature selection on data
    streams. Information Systems 83. Equation (1) of the source file's header.

    Examples
    --------
    Of 100 binary features, 3 and 70 determine the class; after row 5000, 20 and 8 do.

    >>> import numpy as np
    >>> from tamis import ABFS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(10000, 100)).astype(float)
    >>> y = np.r_[X[:5000, 3] + X[:5000, 70], X[5000:, 20] + X[5000:, 8]] == 2
    >>> selector = ABFS(categorical="all").partial_fit(X[:5000], y[:5000])
    >>> sorted(selector.selected_.tolist())
    [3, 70]
    >>> _ = selector.partial_fit(X[5000:], y[5000:])
    >>> sorted(selector.selected_.tolist()), selector.drifts_
    ([8, 20], [5139])
    """

    claims = Claims(equals_rows="exactly", copies_differ="the weight at which a row enters the first unit")
    _shapes = """
        _numeric (p) int64 in [0, j) distinct
        _values.columns (j-p) int64 in [0, j) distinct
        _values.used (j-p) int  _values.start (j-p+1) int  _values._keys (m)  _values._ids (m) int
        _codes (c) int64 in [-1, k)
        _right (u) float in [0, inf)
        _wrong (u) float in [0, inf)
        _units[].stump.feature in [0, j)
        _units[].stump.gain float in [0, inf)
        _units[].stump.cut float in [-inf, inf] or nan
        _units[].stump.classes (*) int64 in [-1, k)
        _units[].stump.other in [-1, k)
        _observers.total (k) float in [0, 1e150]
        _observers.numeric in [_numeric, _numeric]
        _observers.values.columns in [_values.columns, _values.columns]
        _observers.values.start in [_values.start, _values.start]
        _observers._start in [_values.start, _values.start]
        _observers._squares float in [0, 1e300]
        _observers._normal (4, k, p) float in [-inf, inf]
        _observers._normal[:2] finite
        _observers._normal[1:2] float in [0, inf)
        _observers._counts (k, m) float in [0, 1e150]
        _observers._early[0] (n, p) finite
        _observers._early[1] (n) int64 in [0, k)
        _observers._early[2] (n) float in [0, inf)
        _observers._scaler._middle? (p) finite
        _observers._scaler._unit? (p) float in (0, inf)
        _weight float in [0, inf)
        _tried float in [0, inf)
        drifts_[] in [0, 2**62)
    """

    _chooses_count = True

    grace_period: float = parameter(number("[1, inf)"), default=500)
    threshold: float = parameter(number("[0, inf)"), default=0.05)
    _: KW_ONLY
    detector: str | DriftDetector = parameter(DETECTOR, default="adwin")
    hoeffding: bool = parameter(False, True, default=False)
    delta: float = parameter(number("(0, 1)"), default=1e-7)
    weight_cap: float = parameter(number("[1, 1e15]"), default=1e6)
    renewal: str = parameter("change", "drift", default="drift")
    cuts: str = parameter("robust", "range", default="robust")
    bias_correction: bool = parameter(False, True, default=True)
    categorical: Any = None

    def _start(self, n_features: int) -> None:
        new_detector(self.detector)  # an unknown name is rejected before any row
        columns = columns_of(self.categorical, n_features, feature_names(self))
        self._values = Values(columns)
        self._numeric = np.setdiff1d(np.arange(n_features), columns)
        self._units: list[_Unit] = []
        self._right, self._wrong = np.zeros(0), np.zeros(0)
        self._codes = np.zeros(0, np.int64)  # of each class, in order of appearance
        self._begin_candidate()
        self.drift_detected_ = False
        self.drifts_: list[int] = []

    def _begin_candidate(self) -> None:
        n_classes = int(self._codes.max(initial=-1)) + 1
        robust = self.cuts == "robust"
        self._observers = Observers(self._numeric, self._values, n_classes, self.bias_correction, robust)
        self._weight = self._tried = 0.0  # the candidate's weight, now and when it was last tried

    def _widen(self, n_features: int) -> None:
        new = np.arange(self.n_features_in_, n_features)
        if are_categories(self.categorical):
            values, numeric = self._values.widened(np.append(self._values.columns, new)), self._numeric
        else:
            values, numeric = copy.copy(self._values), np.append(self._numeric, new)
        self._observers = self._observers.widened(numeric, values)
        self._values, self._numeric = values, numeric

    def _claims(self) -> Claims:
        # Values are numbered in the order of all rows.
        return replace(self.claims, forgets_columns=self.categorical is None)

    def _forget_columns(self, columns: Indices) -> None:
        if not self._claims().forgets_columns:
            super()._forget_columns(columns)
        self._observers = self._observers.without(columns)
        units = np.flatnonzero(np.isin(self.selected_, columns))
        if len(units):
            self._drop(int(units[0]), np.zeros((int(units[0]), 0), np.bool_), np.zeros(0))

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float64)
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        # A third-party detector may raise after half of the rows.
        if not isinstance(self.detector, str):
            self._units, self._values, self._observers, self._right, self._wrong = copy.deepcopy(
                (self._units, self._values, self._observers, self._right, self._wrong)
            )
        y = self._in_order_of_appearance(y)
        ids = self._values.number(X)
        X = X if len(self._numeric) == X.shape[1] else np.ascontiguousarray(X[:, self._numeric])
        before, drifts, at = self._units, list(self.drifts_), 0
        while at < len(y):
            part = slice(at, at + _BLOCK)
            taken, dropped = self._advance(X[part], ids[part], y[part], weight[part])
            at += taken
            if dropped:
                drifts.append(self.n_seen_ + at - 1)
        changed = len(drifts) > len(self.drifts_) or (
            self.renewal == "change" and len(self._units) > len(before)
        )
        self.drift_detected_, self.drifts_ = changed, drifts

    def check_state(self) -> None:
        """Raise if the stumps of a loaded selector refer to nonexistent columns, or its classes are not in order.

        Raises
        ------
        StateError
            If so.
        """
        super().check_state()
        if not hasattr(self, "n_features_in_"):
            return
        fits = int(self._codes.max(initial=-1)) + 1 == len(self._observers.total)
        for unit in self._units:
            stump, is_number = unit.stump, not math.isnan(unit.stump.cut)
            columns, n_branches = (self._numeric, 2) if is_number else (self._values.columns, 1)
            fits &= len(stump.classes) >= n_branches
            fits &= 0 <= stump.column < len(columns) and columns[stump.column] == stump.feature
        if not fits:
            raise state_error("The stumps and classes of an ABFS do not match its columns")

    def _in_order_of_appearance(self, y: Array) -> Array:
        """Return codes that do not depend on how the labels were declared: ties go to the class that came first."""
        more = len(self.classes_) - len(self._codes)
        if more or (self._codes < 0).any():
            self._codes = np.r_[self._codes, np.full(more, -1)]
            codes, first = np.unique(y, return_index=True)
            new = codes[np.argsort(first)]
            new = new[self._codes[new] < 0]
            n_known = int(self._codes.max(initial=-1)) + 1
            self._codes[new] = np.arange(n_known, n_known + len(new))
            self._observers.grow(n_known + len(new))
        return self._codes[y]

    def _advance(self, X: Array, ids: Array, y: Array, weight: Array) -> tuple[int, bool]:
        """Learn rows up to the first that changes the units; return their number, and whether a unit was dropped."""
        hits = np.empty((len(self._units), len(y)), np.bool_)
        for u, unit in enumerate(self._units):
            np.equal(unit.stump.predict(X, ids), y, out=hits[u])
        right, wrong = self._right.copy(), self._wrong.copy()
        due, left = self._tried + self.grace_period, np.empty(len(y))
        n, candidate = _weigh(hits, right, wrong, weight, self.weight_cap, self._weight, due, left)
        drifting, row = self._watch(hits[:, :n])
        if drifting >= 0:
            self._drop(drifting, hits[:drifting, : row + 1], weight[: row + 1])
            return row + 1, True
        self._right, self._wrong = right, wrong
        self._observers.add(X[:n], ids[:n], y[:n], left[:n])
        self._weight = candidate
        if self._weight >= due:
            self._try()
        return n, False

    def _watch(self, hits: Array) -> tuple[int, int]:
        """Update the detectors with the units' errors; return the first with a drift, and its row, or -1 and -1."""
        errors = 1.0 - hits
        before = [copy.deepcopy(unit.detector) for unit in self._units] if errors.shape[1] > 1 else []
        values = row = -1
        end = errors.shape[1]
        for u, unit in enumerate(self._units):
            at = _update(unit.detector, errors[u, :end])
            if at >= 0:  # later units are not updated with this row
                values, row, end = u, at, at
        for u in range(values if before else 0):  # updated with rows after the drift
            self._units[u].detector = before[u]
            _update(before[u], errors[u, : row + 1])
        return values, row

    def _drop(self, first: int, hits: Array, weight: Array) -> None:
        """Remove a unit and all after it; the other units learn the rows up to its drift."""
        self._right, self._wrong, self._units = self._right[:first], self._wrong[:first], self._units[:first]
        _weigh(hits, self._right, self._wrong, weight, self.weight_cap, 0.0, math.inf, np.empty(len(weight)))
        self._begin_candidate()

    def _try(self) -> None:
        """Select the best feature, if its gain exceeds the threshold."""
        self._tried = self._weight
        gains, splits = self._observers.gains()
        gains[self.selected_] = -np.inf
        best = int(gains.argmax())
        if gains[best] > self.threshold and not (self.hoeffding and self._is_undecided(gains)):
            stump = self._observers.stump(best, float(gains[best]), float(splits[best]))
            self._units = [*self._units, _Unit(stump, new_detector(self.detector))]
            self._right, self._wrong = np.r_[self._right, 0.0], np.r_[self._wrong, 0.0]
            self._begin_candidate()

    def _is_undecided(self, gains: Floats) -> bool:
        second, first = np.sort(np.r_[0.0, gains])[-2:]
        spread = math.log2(max(2, int(np.count_nonzero(self._observers.total))))
        bound = spread * math.sqrt(math.log(1.0 / self.delta) / (2.0 * self._weight))
        return bool(first - second <= bound and bound >= _TIE)

    @property
    def selected_(self) -> Ints:
        """Selected features, in order of entry."""
        check_is_fitted(self)
        return np.array([unit.stump.feature for unit in self._units], dtype=np.int64)

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted after a drift."""
        return int(self.grace_period)

    def _relevance(self) -> Floats:
        scores, _ = self._observers.gains()
        most = math.log2(len(self.classes_))
        for place, unit in enumerate(reversed(self._units), start=1):
            scores[unit.stump.feature] = place * most + unit.stump.gain
        return scores

    def _selection(self) -> Mask:
        mask = np.full(self.n_features_in_, not self._units)
        mask[self.selected_] = True
        return mask


def _update(detector: DriftDetector, errors: Floats) -> int:
    """Update a detector with errors up to the first drift; return its row, or -1."""
    if isinstance(detector, Detector) and len(errors) > 1:
        return detector.update_many(errors)
    return next((i for i, error in enumerate(errors.tolist()) if detector.update(error)), -1)
