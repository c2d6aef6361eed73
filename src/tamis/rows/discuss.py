"""DISCUSS: the features that tell most about the class in the last rows, chosen anew when that changes.

Barddal's thesis, chapter 8 (Algorithms 3 to 6). The symmetrical uncertainty (SU) of every feature and the class is kept
over a sliding window, exactly and after every row, by :mod:`tamis.summaries.entropy`. A *selection* takes the features
in order of SU, passes by those redundant to one taken before, and stops after n of them, or below a threshold.

=============== ======================== =============================================================================
thesis          here                     meaning
=============== ======================== =============================================================================
n               `n_features_to_select`   most features
theta           `threshold`              SU below which nothing is taken
w               `window`                 rows that count
epsilon         ``threshold="auto"``     sqrt(ln(1 / delta) / (2 w)), the Hoeffding heuristic, (1)
baseline        bar                      theta, or the SU of the last feature taken if there were n
=============== ======================== =============================================================================

With f degrees of freedom, (values - 1) (classes - 1), the information gain of a feature that tells nothing, times
2 n ln 2, is nearly chi square; its mean, f, is the bias that `bias_correction` subtracts. The default threshold is what
one of d such features exceeds with probability delta::

    SU_i > 2 (chi2(f_i, delta / d) - f_i) / (2 n ln 2) / (H(X_i) + H(Y))                              (2)

Redundancy of a candidate c to a selected s::

    "predominance"   SU(s, c) > SU(c, Y)                                     Algorithms 4, 5
    "hoeffding"      the same, only where |SU(s, Y) - SU(c, Y)| < epsilon    Algorithm 6
    "conditional"    I(c; Y | s) < share I(c; Y), both less their bias                                (3)

Defects of the printed algorithms, and what was done:

* Algorithm 3 selects anew while a feature above the baseline is not selected. One that was rejected as redundant stays
  above it: 86 to 100 % of all rows select anew, and each time the classifier begins anew. The prose speaks of features
  that *cross* the baseline; so does ``trigger="crossing"``, with a `margin` for the noise, and a renewal only if the
  set is another one. ``trigger="literal"`` is what is printed.
* The baseline moves with the SU of its feature, whose own fall nobody sees. Here the bar is frozen at the selection.
* The first selection leaves the classifier trained on all features. Here it is a renewal, too.
* n best of fewer than n features that tell something fill up with noise. (2) bounds the n best, too.
* Where nothing is above the threshold, the best `min_features` are taken. The list of candidates may be exhausted.
* Algorithm 6 sets phi to the SU of the candidate, so that its difference is 0; SU(X_s, Y) is meant. The bound is one
  for means of bounded variables, which SU is not: a heuristic. delta is not stated: 0.05.
* Predominance compares SU of different kinds: relevant features depend on each other where classes are balanced, and
  the SU of two features of ten values has a large bias. (3) asks what the candidate adds.

What goes beyond the thesis, all off in :meth:`DISCUSS.paper`: (2) and (3); sets with inertia; the younger half of the
window looked at by itself (`early`), from whose beginning on the rows are of one kind; an order by SU averaged over
more rows than the window holds (`half_life`), which tells an original from its copies.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import chdtri
from sklearn.utils import Tags

from tamis._check import Array, Rows, check_choice, check_number, columns_of, is_integer, refuse_nonfinite
from tamis._jit import njit
from tamis.base import RowSelector, n_to_select
from tamis.errors import DataError
from tamis.rows.recent_gain import measure, measure_given
from tamis.summaries.entropy import WindowCounts, update_row

__all__ = ["DISCUSS"]

Floats = NDArray[np.float64]
_LN4 = 2.0 * np.log(2.0)
_STAYS = 0.2  # of what a new feature needs, a selected one needs this share
_NEW, _OWN = 0.3, 0.1  # share of (3) for a new feature, and for a selected one
_INERTIA = 1.05  # advantage of the selected features in the order
_LOOKS = 6  # at the younger half, while the window is filled once
_RARELY = 0.01  # of delta: there are many of these looks


@njit(strict=True)
def _watch(
    X: Array, codes: Array, state: Any, corrected: bool, fading: float, wait: int, base: int,
    low: Array, high: Array, su: Array, mean: Array,
) -> tuple[int, bool]:  # fmt: skip
    """Take in rows until the trigger fires, not before `wait` of them; return how many, and whether it did."""
    for i in range(len(X)):
        update_row(X[i], codes[i], state, su, corrected)
        level, fired = su[base] if base >= 0 else 0.0, False
        for j in range(len(su)):
            mean[j] += fading * (su[j] - mean[j])
            fired |= (su[j] - level > high[j]) | (su[j] - level < low[j])
        if fired and i + 1 >= wait:
            return i + 1, True
    return len(X), False


class _View(NamedTuple):
    """What the last n rows tell of each feature, shape (n_features,) each."""

    n: int
    su: Floats
    gain: Floats  # less its bias, if that is corrected
    spread: Floats  # H(X) + H(Y)
    free: Floats  # degrees of freedom


class DISCUSS(RowSelector):
    """Selects the features that tell most about the class in a sliding window, and follows them when they change.

    Symmetrical uncertainties are kept after every row. When one crosses the bar of the last selection, there is a new
    one. If the set has changed, `drift_detected_` is True and a learner should begin anew from the last `n_replay`
    rows; :func:`tamis.prequential` and the River adapter do so.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        n: most features that are selected, or which fraction of them, in (0, 1]; None: as many as tell something.
    threshold : float, "auto" or None, default=None
        theta in [0, 1]: symmetrical uncertainty below which a feature is not selected. "auto": the Hoeffding heuristic
        (1). None: what one of all features, if none told anything, would exceed with probability `delta` (2).
    window : int, at least 8, default=300
        w: rows that count.
    trigger : {"crossing", "literal"}, default="crossing"
        When to select anew: when a feature crosses the bar, or, as printed, whenever a feature above it is not selected
        or one below it is; then each selection is a drift.
    margin : float in [0, 1], default=0.02
        How far beyond the bar a crossing begins (below it, at most 80 % of the bar).
    redundancy : {"conditional", "predominance", "hoeffding", None}, default="conditional"
        Which features are passed by as redundant to a selected one: see the head of the module; None: none.
    early : bool, default=True
        Look at the younger half of the window by itself, six times while the window is filled once: a feature that is
        new and tells much there dates a drift.
    half_life : float or None, default=1000
        Rows after which SU counts half in the order of the selection, at least 1; then there is a selection as often,
        whatever the trigger says. None: the order is that of the window's SU.
    bias_correction : bool, default=True
        Whether to subtract from information gains what they are on average of features that tell nothing.
    min_features : int, default=1
        The best so many are selected, even if they are below the threshold; 0: if none is above it, all are kept.
    min_interval : int or None, at least 1, default=None
        Rows between two selections by the trigger; None: w / 4 (literal: 1).
    delta : float in (0, 1), default=0.05
        Probability in (1) and (2).
    categorical : None, "all", list of int or str, or bool mask, default=None
        Columns whose values are categories: any finite numbers. The others are numbers.
    n_bins : int, at least 2, default=5
        Bins of a number.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Symmetrical uncertainty over the window now, in [0, 1]; all zero while `waiting_`.
    selected_ : ndarray of int
        The selected features in order of selection; empty until the window is full, when all features are kept.
    drift_detected_ : bool
        Whether the set was renewed in the last `partial_fit`: the first selection, and each that differs.
    n_replay : int
        Of how many last rows a learner should begin anew: those since the last drift that was dated, at most `window`.
    waiting_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If rows or labels cannot be learned from; the model is left as it was.

    Notes
    -----
    A batch is its rows one at a time, bit for bit. A row costs O(n_features), a selection O(n_features window) and
    O(window) for each candidate and selected feature. Missing values (NaN) are a category of their own. Weights are
    whole numbers: a row counts so many times. CSR rows are made dense.

    What tells nothing by itself is not seen: of an exclusive or, no part is selected.

    References
    ----------
    Barddal (2018). Feature Drift Detection in Data Streams. Doctoral thesis, chapter 8.

    Examples
    --------
    The class is decided by columns 2 and 5; from row 3000 on, by 0 and 7.

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

    n_features_to_select: int | float | None  # type: ignore[assignment]
    _finite_in_kernel = True
    _decides_how_many = True

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        threshold: float | str | None = None,
        window: int = 300,
        trigger: str = "crossing",
        margin: float = 0.02,
        redundancy: str | None = "conditional",
        early: bool = True,
        half_life: float | None = 1000,
        bias_correction: bool = True,
        min_features: int = 1,
        min_interval: int | None = None,
        delta: float = 0.05,
        categorical: Any = None,
        n_bins: int = 5,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.window = window
        self.trigger = trigger
        self.margin = margin
        self.redundancy = redundancy
        self.early = early
        self.half_life = half_life
        self.bias_correction = bias_correction
        self.min_features = min_features
        self.min_interval = min_interval
        self.delta = delta
        self.categorical = categorical
        self.n_bins = n_bins

    @classmethod
    def paper(cls, n_features_to_select: int | float | None = 5, **parameters: Any) -> Self:
        """Return the printed algorithm: literal trigger, predominance, raw SU in ten bins; five best of 300 rows.

        Parameters
        ----------
        n_features_to_select : int, float or None, default=5
        **parameters
            Any other parameter of the class; with a limit None and ``threshold=0.03, window=200`` the other mode.

        Examples
        --------
        >>> DISCUSS.paper(trigger="crossing").redundancy
        'predominance'
        """
        published: dict[str, Any] = {
            "threshold": 0.0, "trigger": "literal", "redundancy": "predominance", "early": False, "half_life": None,
            "bias_correction": False, "n_bins": 10,
        }  # fmt: skip
        return cls(n_features_to_select, **{**published, **parameters})

    # -- learning ------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        self._check_parameters(n_features)
        columns = columns_of(self.categorical, n_features, self._names())
        self._counts = WindowCounts(
            n_features, len(self.classes_), self.window, categorical=columns, n_bins=self.n_bins
        )
        self._su, self._mean = np.zeros(n_features), np.zeros(n_features)
        self._selected: list[int] = []
        self._base = -1  # the feature whose SU is the bar, where it moves
        # How far above or below the bar SU of each feature fires the trigger; now at once
        self._low, self._high = np.full(n_features, np.inf), np.full(n_features, np.inf)
        self._next = int(self.window)  # row before which the trigger does not fire
        self._began = 0  # from this row on the rows are of one kind, as far as is known
        self.drift_detected_ = False

    def _check_parameters(self, n_features: int) -> None:
        self._most(n_features)
        if self.threshold not in (None, "auto"):
            check_number("threshold (if not 'auto' or None)", self.threshold, low=0, high=1)
        check_number("window", self.window, low=8, integer=True)
        check_choice("trigger", self.trigger, ("crossing", "literal"))
        check_number("margin", self.margin, low=0, high=1)
        check_choice("redundancy", self.redundancy, ("conditional", "predominance", "hoeffding", None))
        check_choice("early", self.early, (True, False))
        check_choice("bias_correction", self.bias_correction, (True, False))
        if self.half_life is not None:
            check_number("half_life", self.half_life, low=1, open_high=True)
        check_number("min_features", self.min_features, low=0, integer=True)
        if self.min_interval is not None:
            check_number("min_interval", self.min_interval, low=1, integer=True)
        check_number("delta", self.delta, low=0, high=1, open_low=True, open_high=True)

    def _most(self, n_features: int) -> int:
        """Return how many features may be selected; more than there are if that does not matter."""
        n = self.n_features_to_select
        if n is None:
            return n_features + 1
        if is_integer(n):
            check_number("n_features_to_select", n, low=1, integer=True)
            return int(n)
        return n_to_select(n, n_features)

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        refuse_nonfinite(X, self._names(), allow_nan=True)
        X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float64)
        if sample_weight is not None:
            X, y = _repeat(X, y, sample_weight)
        if len(self.classes_) > self._counts.n_classes:
            self._counts.grow(len(self.classes_))
        self.drift_detected_ = False
        fading = 0.0 if self.half_life is None else 1.0 - 0.5 ** (1.0 / self.half_life)
        counts = self._counts
        while len(X):
            n = counts.prepare(X, y)
            self._take_rows(X[:n], y[:n], fading)
            X, y = X[n:], y[n:]

    def _take_rows(self, X: Array, y: Array, fading: float) -> None:
        counts = self._counts
        while len(X):
            n = self._rows_until_look()
            taken, fired = _watch(
                X[:n], y[:n], counts.state, self.bias_correction, fading, self._next - counts.n_seen, self._base,
                self._low, self._high, self._su, self._mean,
            )  # fmt: skip
            X, y = X[taken:], y[taken:]
            if fired:
                self._renew(int(self.window))
            elif self._selected and self.trigger == "crossing":
                self._look()

    # -- when to select ------------------------------------------------------------------------------------

    def _rows_until_look(self) -> int:
        t, rounds = self._counts.n_seen, [1 << 40]
        if self.trigger == "crossing" and self.early:
            rounds.append(max(self.window // _LOOKS, 1))
        if self.trigger == "crossing" and self.half_life is not None:
            rounds.append(int(self.half_life))
        return min(size - t % size for size in rounds)

    def _look(self) -> None:
        """Select anew where it is time to, or where the younger half of the window shows a drift."""
        t, half = self._counts.n_seen, self.window // 2
        age = t - self._began
        if self.half_life is not None and t % int(self.half_life) == 0:
            self._renew(min(age, self.window))
        elif self.early and t % max(self.window // _LOOKS, 1) == 0:
            if age >= self.window and self._has_news(half):
                self._began, age = t - half, half
            if age < self.window:
                self._renew(age)

    def _has_news(self, n: int) -> bool:
        """Whether a feature that was below the bar tells much in the last n rows."""
        gain, _, free = self._measured(n)
        bar = _chi_square(free, _RARELY * self.delta / len(free)) / (n * _LN4)
        return bool(((gain > bar) & (self._high < np.inf)).any())

    # -- how to select -------------------------------------------------------------------------------------

    def _measured(self, n: int) -> Floats:
        found = np.empty((3, len(self._su)))
        measure(n, self._counts.state, self._counts.n_classes, found)
        return found

    def _view(self, n: int) -> _View:
        gain, spread, free = self._measured(n)
        if self.bias_correction:
            gain -= free / (n * _LN4)
        su = np.clip(np.divide(2.0 * gain, spread, out=np.zeros(len(gain)), where=spread > 0.0), 0.0, 1.0)
        return _View(n, self._su.copy() if n == self.window else su, gain, spread, free)

    def _epsilon(self) -> float:
        return float(np.sqrt(np.log(1.0 / self.delta) / (2.0 * self.window)))  # (1)

    def _thresholds(self, view: _View) -> Floats:
        d = len(view.su)
        if self.threshold is not None:
            return np.full(d, self._epsilon() if isinstance(self.threshold, str) else float(self.threshold))
        bias = view.free if self.bias_correction else 0.0
        gain = (_chi_square(view.free, self.delta / d) - bias) / (view.n * _LN4)  # (2)
        told = (view.spread > 0.0) & (view.free > 0.0)
        bar: Floats = np.divide(2.0 * gain, view.spread, out=np.full(d, np.inf), where=told)
        return bar

    def _renew(self, n: int) -> None:
        """Select by the last n rows."""
        t = self._counts.n_seen
        if np.count_nonzero(self._counts.class_counts) < 2:
            self._next = t + 1
            return
        view, literal = self._view(n), self.trigger == "literal"
        thresholds = self._thresholds(view)
        selected, full = self._walk(view, thresholds)
        if literal:
            self._arm_literally(selected, full, thresholds)
        else:
            bar = np.full(len(view.su), view.su[selected].min()) if full else thresholds
            above = view.su >= bar
            self._low = np.where(above, bar - self._slack(bar), -np.inf)
            self._high = np.where(above, np.inf, bar + float(self.margin))
        self.drift_detected_ |= literal or set(selected) != set(self._selected)
        self._selected = selected
        interval = self.min_interval or (1 if literal else self.window // 4)
        self._next = max(t + interval, self._began + self.window)

    def _slack(self, bar: Floats) -> Floats:
        """How far below the bar a feature may fall that was above it."""
        slack: Floats = np.minimum(float(self.margin), (1.0 - _STAYS) * bar)
        return slack

    def _arm_literally(self, selected: list[int], full: bool, thresholds: Floats) -> None:
        inside = np.zeros(len(thresholds), bool)
        inside[selected] = True
        bar = np.zeros(len(thresholds)) if full else thresholds
        self._low, self._high = np.where(inside, bar, -np.inf), np.where(inside, np.inf, bar)
        self._base = selected[-1] if full else -1
        if full:
            self._low[self._base], self._high[self._base] = -np.inf, np.inf

    def _walk(self, view: _View, thresholds: Floats) -> tuple[list[int], bool]:
        """Return the features taken in order, and whether there were as many as there may be."""
        d, bar, rank = len(view.su), thresholds.copy(), view.su
        most = self._most(d)
        if self.trigger == "crossing":
            bar[self._selected] -= self._slack(bar[self._selected])
            if self.half_life is not None:
                rank = self._mean.copy()
                rank[self._selected] *= _INERTIA
        order = np.argsort(-rank, kind="stable")
        taken: list[int] = []
        for c in order[view.su[order] > bar[order]].tolist():
            if not self._is_redundant(c, taken, view):
                taken.append(c)
            if len(taken) == most:
                return taken, True
        rest = [c for c in order.tolist() if c not in taken]
        return taken + rest[: max(self.min_features - len(taken), 0)], False

    def _is_redundant(self, c: int, taken: list[int], view: _View) -> bool:
        if self.redundancy is None or not taken:
            return False
        others, counts = np.array(taken), self._counts
        if self.redundancy == "conditional":
            gain = np.empty(len(others))
            measure_given(c, others, view.n, counts.state, counts.n_classes, gain)
            share = _OWN if c in self._selected else _NEW
            return bool((gain < share * view.gain[c]).any())  # (3)
        rivals = self._pair_uncertainty(c, others) > view.su[c]
        if self.redundancy == "hoeffding":
            rivals &= np.abs(view.su[others] - view.su[c]) < self._epsilon()
        return bool(rivals.any())

    def _pair_uncertainty(self, c: int, others: Array) -> Floats:
        su: Floats = self._counts.pair_symmetrical_uncertainty(c, others)
        if not self.bias_correction:
            return su
        entropy, n = self._counts.entropy(), self._counts.n_rows
        classes = int(np.count_nonzero(self._counts.class_counts))
        values = self._view(n).free / (classes - 1)  # less 1
        total = np.maximum(entropy[c] + entropy[others], 1e-300)
        corrected: Floats = np.maximum(su - 2.0 * values[c] * values[others] / (n * _LN4 * total), 0.0)
        return corrected

    # -- read-outs -----------------------------------------------------------------------------------------

    def _relevance(self) -> Floats:
        return self._su.copy()

    def _selection(self) -> NDArray[np.bool_]:
        mask = np.full(len(self._su), not self._selected)
        mask[self._selected] = True
        return mask

    @property
    def selected_(self) -> NDArray[np.intp]:
        """The selected features in order of selection."""
        self.waiting_  # noqa: B018 - says so if nothing was learned
        return np.array(self._selected, dtype=np.intp)

    @property
    def n_replay(self) -> int:
        """Of how many last rows a learner should begin anew."""
        age = self._counts.n_seen - self._began if hasattr(self, "n_seen_") else self.window
        return int(min(age, self.window))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _chi_square(free: Floats, p: float) -> Floats:
    """Return what chi square exceeds with probability p, for each of the degrees of freedom (1 for 0)."""
    degrees, which = np.unique(free, return_inverse=True)
    found: Floats = chdtri(np.maximum(degrees, 1.0), p)[which]
    return found


def _repeat(X: Array, y: Array, sample_weight: Array) -> tuple[Array, Array]:
    """Return each row as often as its weight says."""
    times = np.rint(sample_weight).astype(np.intp)
    if (times != sample_weight).any():
        weight = sample_weight[times != sample_weight][0]
        raise DataError(f"sample_weight holds {weight}, but a window counts whole rows: give whole numbers.")
    return np.repeat(X, times, axis=0), np.repeat(y, times)
