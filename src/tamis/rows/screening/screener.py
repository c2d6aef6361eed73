"""The base class of screening: the clock, one pass over the rows for all scores, and merging.

A score is one of five; each class stores only the statistics that its scores need: the moments of each class
(:class:`ClassMoments`) for T and Fisher, the bin counts (:class:`BinCounts`) for the other three.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from tamis._atomic import atomic, atomically
from tamis._docstrings import fill_docstring
from tamis._validation.arrays import Array, Floats, Indices, Mask, Rows, columns_of
from tamis._validation.parameters import integer, number, parameter, parameters
from tamis._validation.rows import reject_nonfinite
from tamis._validation.values import check_choice, check_number
from tamis.base import Claims, Inputs, RowSelector, n_to_select, top_mask
from tamis.base.rows import check_mergeable, feature_names, joint_classes
from tamis.dependence.autocorrelation import Inflation, uncertainty
from tamis.dependence.e_values import e_bh, restart_level
from tamis.dependence.mean_band import mean_band
from tamis.errors import DataError
from tamis.merging import MERGE_DOCS
from tamis.rows.relation_change import LOOK, RelationWatch
from tamis.rows.screening.bin_counts import BinCounts, gini_of_categories, gini_statistic
from tamis.rows.screening.mean_variance import (
    SMALLEST,
    fisher_pvalues,
    fisher_score,
    t_pvalues,
    t_score,
    too_small,
    trend,
)
from tamis.rows.screening.redundancy import LastRows, by_addition
from tamis.rows.screening.row_dependence import RowDependence
from tamis.summaries.batch import change_parts, n_bytes
from tamis.summaries.class_moments import ClassMoments, sharing_sums
from tamis.summaries.contingency import (
    chi_square,
    chi_square_pvalue,
    gini_decrease,
    independence_statistic,
    mutual_information,
)
from tamis.summaries.evidence import Evidence
from tamis.summaries.fixed_bins import FIRST

SCORES = ("t", "fisher", "mi", "chi2", "gini")
# The parts of the state, the first without features if no score needs moments.
_PARTS = ("_moments", "_bins", "_evidence", "_watch", "_last_rows", "_dependence")
_OF_MOMENTS = {"t", "fisher"}


class Readout(NamedTuple):
    """A score of every feature, and its p-value under independence of the feature and the class."""

    scores: Floats
    pvalues: Floats | None  # None: not requested, or the score has none


@dataclass(eq=False, repr=False)
class Screener(RowSelector):
    """Selects by a univariate score; a subclass declares its scores, and its docstring quotes this one.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=0.1
        How many features to keep, or which fraction of them, in (0, 1]. None: as many as `level` allows.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. A numeric target is discretized into five levels of about equal frequency
        (:mod:`tamis.base.numeric_target`). Parts that learned numbers cannot be merged.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which the weight of a row is halved, in [0.01, inf]. By default nothing
        fades.
    fading : float, optional
        The same as a factor per row (or call) in [1e-6, 1]; pass only one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether fading counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every later row, or only with later rows of its own class.
    level : float in (0, 1), optional
        Bound on the false discovery rate, with ``n_features_to_select=None``. At any time, for any number of reads, the
        expected proportion of irrelevant features among the selected ones is at most this. Weights are ignored, and
        rows must not fade; see `restarts`.
    redundancy : int, at least 1, optional
        Number of candidates, the features with the best scores. Of these, the selector keeps the ones with the largest
        partial correlations in the last 1000 rows, and thus few copies of one signal. `scores_` still rates each
        feature by itself.
    restarts : "drift" or int, at least 1, optional
        When to discard all rows and restart. "drift": when the relation of some feature to the class in the last 512
        rows differs from that in all rows before. A number: after this many rows. With `level`, each start gets a
        fraction of the level (see `restart`), so the bound holds over the entire stream. Parts of a stream then cannot
        be merged. By default, never.
    dependence : {"auto", "independent", "series"}, default="auto"
        Assumption of p-values and bands about the rows. "independent": rows are independent. "series": rows may be
        dependent, so variances are estimated from blocks of rows. "auto": as "series", once the labels depend on
        earlier ones; otherwise, tests for independent rows are valid for any series of features. With `level`, the
        evidence of dependent rows is that between blocks of 32 rows (:mod:`tamis.summaries.evidence`).

    Attributes
    ----------
    evalues_, n_observed_, n_effective_, rows_dependent_, rows_missing_, nbytes_
        As in :class:`tamis.rows.Screening`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If a value is infinite. NaN is allowed: it is skipped, feature by feature. The model is unchanged.

    Notes
    -----
    A batch is equivalent to its rows one at a time up to rounding. Memory is 24 bytes per feature and class, for any
    number of rows. CSR rows cost O(stored values).

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift.
    """

    claims = Claims(equals_rows="up to rounding", sparse_time=True)
    _shapes = """
        _last_rows.blocks[][1] in [0, c)  _ticks (c?)  _moments._weight (c)
        _evidence._sum? (s, j, e, b)  _evidence._spread? (s, j, e, b, b)  _evidence._squares? (s, j, e, b, b)
        _evidence._start? (s, j, e)
        _dependence (its own)  _dependence?.n_features (=j)  _dependence?.labels._total (48, c) int
    """

    accepts = Inputs(
        targets=("binary", "multiclass", "regression"), nan=True, levels=True, checked_in_kernel=True
    )
    _n_restarts = 0
    _n_since = 0  # rows since the last start
    drift_detected_ = False
    n_replay = 0

    _allowed = parameters(
        n_bins=integer("[2, 10000]"), eps=(number("[1e-6, 0.5)"), None), dtype=("float32", "float64")
    )

    n_features_to_select: int | float | None = parameter(number("(0, inf)"), None, default=0.1)  # type: ignore[assignment]
    _: KW_ONLY
    task: str = "classification"
    half_life: float | None = parameter(number("[0.01, inf]"), None, default=None)
    fading: float | None = parameter(number("[1e-6, 1]"), None, default=None)
    fade_per: str = parameter("row", "batch", default="row")
    clock: str = parameter("global", "class", default="global")
    level: float | None = parameter(number("(0, 1)"), None, default=None)
    redundancy: int | None = parameter(integer("[1, inf)"), None, default=None)
    restarts: str | int | None = parameter("drift", integer("[1, inf)"), None, default=None)
    dependence: str = parameter("auto", "independent", "series", default="auto")

    @abstractmethod
    def _score_names(self) -> tuple[str, ...]:
        """Return the requested `SCORES`; the first one selects."""

    # -- learning ------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        if self.fading is not None and self.half_life is not None:
            raise ValueError(
                f"half_life={self.half_life!r} and fading={self.fading!r} have the same meaning: pass only one."
            )
        if self.level is not None:
            self._check_level(self.level)
        if self.redundancy is not None:
            self._check_redundancy(self.redundancy, n_features)
        if self.restarts is not None and self._factor != 1.0:
            raise ValueError(
                f"restarts={self.restarts!r} discards all rows at once, and half_life or fading discounts them"
                " gradually: pass one of them."
            )
        self._last_rows: LastRows | None = None if self.redundancy is None else LastRows()
        # Even without features, the moments track the effective number of rows, which p-values need.
        self._moments = ClassMoments(n_features if _OF_MOMENTS.intersection(self._score_names()) else 0, 0)
        self._bins = self._new_bins(n_features)
        self._ticks: Array = np.empty(0)  # ticks of the clock of each class
        self._n_restarts = 0
        self.restarts_: list[int] = []
        self._evidence: Evidence | None = self._new_evidence(n_features)
        self._dependence: RowDependence | None = self._new_dependence(n_features)
        self._n_since = 0
        self._watch: RelationWatch | None = None
        if self.restarts == "drift":
            self._watch = RelationWatch(n_features, 0)

    def _check_level(self, level: float) -> None:
        if self.n_features_to_select is not None:
            raise ValueError(
                f"level={level!r} decides how many features are kept: set n_features_to_select=None, which is"
                f" {self.n_features_to_select!r}."
            )
        if self._factor != 1.0:
            raise ValueError(
                f"level={level!r} needs rows that do not fade: omit half_life and fading, and pass restarts, or"
                " call restart() to discard earlier rows."
            )

    def _check_redundancy(self, redundancy: int, n_features: int) -> None:
        if self.n_features_to_select is None:
            raise ValueError(f"redundancy={redundancy!r} needs n_features_to_select: a count or a fraction.")
        n_to_select(self.n_features_to_select, n_features)

    @property
    def _chooses_count(self) -> bool:  # type: ignore[override]
        by_level = self.n_features_to_select is None and self.level is not None
        return by_level or vars(self).get("redundancy") is not None

    def _new_evidence(self, n_features: int) -> Evidence | None:
        if self.level is None:
            return None
        by_moments = self._score_names()[0] in _OF_MOMENTS
        return Evidence(n_features, 0, 1 if by_moments or self._bins is None else self._bins.n_bins)

    def _new_dependence(self, n_features: int) -> RowDependence | None:
        if self.dependence == "independent":
            return None
        of_values = bool(_OF_MOMENTS.intersection(self._score_names()))
        always, fades = self.dependence == "series", self._factor != 1.0
        lags = not fades or self.clock == "global"
        return RowDependence(
            n_features,
            0,
            of_values=of_values,
            always=always,
            fades=fades,
            lags=lags,
            evidence=self.level is not None,
        )

    def _new_bins(self, n_features: int) -> BinCounts | None:
        return None

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if self.restarts is None:
            self._learn_rows(X, y, sample_weight)
        elif self._n_since % self._rows_between_looks + len(y) <= self._rows_between_looks:
            self._learn_and_restart(X, y, sample_weight)
        else:  # a part may be rejected after earlier ones were learned
            atomically(self, self._learn_and_restart, X, y, sample_weight, in_parts=True)

    def _learn_and_restart(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        """Learn rows, and restart according to `restarts`, independently of the batches."""
        self.drift_detected_, start, n = False, 0, len(y)
        every = self._rows_between_looks
        while start < n:
            part = slice(start, min(n, start + every - self._n_since % every))
            weight = None if sample_weight is None else sample_weight[part]
            self._learn_rows(X[part], y[part], weight)
            self._n_since += part.stop - start
            due = self._n_since == every
            if self._watch is not None:
                due = self._watch.has_changed(X[part], y[part])
            start = part.stop
            if due:
                self.restart()
                self.restarts_ = [*self.restarts_[:-1], self.n_seen_ + start]
                self.drift_detected_ = True

    @property
    def _rows_between_looks(self) -> int:
        return LOOK if isinstance(self.restarts, str) else int(self.restarts or 0)

    def _learn_rows(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        self._make_room(len(self.classes_))
        fade, ticks, factor = *self._clock(y), self._factor
        keep = 1.0 if factor == 1.0 else factor**ticks
        # The moments are updated first. If they contain features, the bins cannot reject the batch afterwards; if they
        # only count rows, they are a copy until the bins are updated. So no batch is partially learned.
        if self._bins is not None:
            self._bins.check_categories(X, feature_names(self))
        uncut = 0 if self._bins is None else self._bins.rows_until_cut
        moments = self._moments if self._bins is None else copy.copy(self._moments)
        rows = X if self._bins is None or moments.n_features else np.empty((len(y), 0))
        if not moments.update(rows, y, sample_weight, keep, fade):
            self._refuse(X)
        if self._bins is not None and not self._bins.update(X, y, sample_weight, keep, fade):
            self._refuse(X)
        if self._last_rows is not None:
            self._last_rows = copy.copy(self._last_rows)
            self._last_rows.add(X, y)
        before = None
        if self._dependence is not None:
            edges = None if self._bins is None else self._bins.edges()
            before = self._dependence.update(X, y, sample_weight, keep, fade, edges, uncut)
        if self._evidence is not None:
            self._evidence.wait(X, y, before)
            self._evidence.weigh(self._cells_of(self._evidence))
        self._moments = moments
        self._ticks = self._ticks_with(len(ticks)) + ticks

    def _make_room(self, n_classes: int) -> None:
        """Grow copies: if the batch is rejected, the state before the call must be unchanged."""
        if self._moments.n_classes < n_classes:
            change_parts(self, _PARTS, lambda part: part.grow(n_classes))

    def _cells_of(self, evidence: Evidence) -> Callable[[Array, Array], Array] | None:
        """Return a function that determines the bins of values, once the first rows have defined the bins."""
        if evidence.n_bins == 1 or self._bins is None:
            return None
        if not self._bins.has_cells:
            if evidence.n_waiting < FIRST:
                return None
            self._bins.name_common(evidence.first_waiting(FIRST))
        return self._bins.cells

    def _ticks_with(self, n_classes: int) -> Array:
        """Return the ticks with those of new classes: the global clock, or their own, which starts at 0."""
        if n_classes == len(self._ticks):
            return self._ticks
        begun = self._ticks[:1].sum() if self.clock == "global" else 0.0
        return np.concatenate([self._ticks, np.full(n_classes - len(self._ticks), begun)])

    def _refuse(self, X: Rows) -> NoReturn:
        reject_nonfinite(X, feature_names(self), allow_nan=True)
        raise DataError("X contains values whose squares are too large to sum: rescale the features.")

    def _column(self, at: int) -> str:
        names = feature_names(self)
        return repr(names[at]) if names else str(at)

    @property
    def _factor(self) -> float:
        """Factor of the weight of a row per tick."""
        factor = 1.0 if self.fading is None else float(self.fading)
        return factor if self.half_life is None else float(0.5 ** (1.0 / self.half_life))

    def _clock(self, y: Array) -> tuple[Array | None, Array]:
        """Return the weights of the rows at the end of the batch, and the number of ticks of each class's clock."""
        n_classes, factor = len(self.classes_), self._factor
        if self.clock == "global":
            ticks = np.full(n_classes, 1.0 if self.fade_per == "batch" else float(len(y)))
        else:
            counts = np.bincount(y, minlength=n_classes)
            ticks = np.minimum(counts, 1.0) if self.fade_per == "batch" else counts.astype(np.float64)
        if self.fade_per == "batch" or factor == 1.0:
            return None, ticks
        if self.clock == "global":
            return factor ** np.arange(len(y) - 1, -1, -1.0), ticks
        age = np.empty(len(y))  # number of later rows of the same class
        for c in np.flatnonzero(counts):
            age[y == c] = np.arange(counts[c] - 1, -1, -1.0)
        return factor**age, ticks

    def _sharing(self, X: Array, codes: list[Array]) -> AbstractContextManager[Any]:
        """Return a context in which the selectors of several targets share the sums of these dense rows."""
        return sharing_sums(X, [one for one in codes if one.dtype == np.int64])

    def _widen(self, n_features: int) -> None:
        super()._widen(n_features)
        change_parts(self, self._parts_of_features, lambda part: part.widen(n_features))

    def _claims(self) -> Claims:
        # With `level`, the guarantee covers all features ever seen, including those that return.
        alone = self.level is None and self.restarts is None
        return replace(self.claims, forgets_columns=alone and vars(self).get("categorical") is None)

    def _forget_columns(self, columns: Indices) -> None:
        super()._forget_columns(columns)
        change_parts(self, self._parts_of_features, lambda part: part.forget(columns))

    @property
    def _parts_of_features(self) -> tuple[str, ...]:
        return _PARTS if self._moments.n_features else _PARTS[1:]

    def restart(self) -> Self:
        """Reset the statistics of the rows, but not the classes and columns, after a change of the data.

        With `level`, the bound still holds: the k-th start gets the fraction 6 / (pi k)^2 of the level, the first one
        61 %, and these fractions sum to 1 (:func:`tamis.dependence.e_values.restart_level`). With the parameter
        `restarts`, the selector calls this itself.

        Returns
        -------
        self
        """
        _ = self.warming_up_  # raises if not fitted
        n_restarts, n_classes, before = self._n_restarts + 1, len(self.classes_), self.restarts_
        self._start(self.n_features_in_)
        self._make_room(n_classes)
        self._n_restarts, self.restarts_ = n_restarts, [*before, self.n_seen_]
        return self

    # -- merging -------------------------------------------------------------------------------------------

    def clone_unfitted(self) -> Self:
        """Return an unfitted selector with the bin edges of this one; see `RowSelector.clone_unfitted`."""
        _ = self.warming_up_  # raises if not fitted
        fresh = copy.copy(self)
        fresh._start(self.n_features_in_)
        fresh._make_room(len(self.classes_))
        fresh._ticks = np.zeros(len(self.classes_))
        fresh._unseen, fresh.n_seen_ = np.arange(len(self.classes_)), 0
        if fresh._bins is not None and self._bins is not None:
            fresh._bins.cut_as(self._bins)
        return fresh

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(
        self, other: Self, when: str | None = None, age: float | dict[Any, float] | None = None
    ) -> Self:
        """Add what another selector has learned from other rows of the same stream.

        Parameters
        ----------
        other : the same kind of selector
            A selector with the same columns. Classes that only one of the two has seen are kept.
        when : {"before", "after", "together"}, optional
            How the rows of `other` relate to those of this selector in time; required if rows fade. "before" and
            "after": all of them precede, or follow. The earlier part then ages by the ticks of the later one.
            "together": both parts end now. If they divided the rows of one stream between them, the clock of each has
            ticked only with its own rows, so two halves with a half-life of 500 rows each equal one selector with
            1,000.
        age : float or dict, optional
            Number of ticks of the clock (rows, or batches with ``fade_per="batch"``) by which the earlier part ages.
            Pass it if other rows lie between the end of the earlier part and the end of the later one; by default, the
            ticks of the later part. The earlier part is this selector, unless ``when="before"``. For ``clock="class"``,
            a dict may contain the ticks of each class.

        %(returns_and_raises)s
        ValueError
            If its columns or parameters (except the number of selected features) differ; the message names both. If
            rows fade and neither `when` nor `age` is passed, or `age` is negative.

        Examples
        --------
        Rows 0 to 99 and 300 to 399 of a fading stream; those in between were lost:

        >>> import numpy as np
        >>> from tamis import FisherScore
        >>> X, y = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400) % 2
        >>> early, late = (FisherScore(1, half_life=50).fit(X[i : i + 100], y[i : i + 100]) for i in (0, 300))
        >>> float(early.merge(late, age=300).n_observed_[0].round(2)), float(late.n_observed_[0].round(2))
        (55.33, 54.48)
        """
        if self.restarts is not None:
            raise ValueError(
                f"restarts={self.restarts!r}: when it restarts depends on the order of all rows, so parts of a"
                " stream cannot be merged."
            )
        if self._n_restarts or getattr(other, "_n_restarts", 0):
            raise ValueError("A selector that was restarted cannot be merged: merge first, then restart.")
        when, age = self._age(when, age)
        if check_mergeable(self, other, self._may_differ()):
            self._merge(other, when, age)
        return self

    def _age(self, when: str | None, age: Any) -> tuple[str, Any]:
        """Return which part is the earlier one, and by how much it ages; None: by the ticks of the later one."""
        if when is not None:
            check_choice("when", when, ("before", "after", "together"))
        elif age is None and self._factor != 1.0:
            raise ValueError(
                "when is None, but rows fade: state whether the rows of the other part came 'before' or 'after' those"
                " of this one, or 'together' with them; or give the age of this one."
            )
        if isinstance(age, dict) and self.clock != "class":
            raise ValueError(
                f"age={age!r} has a clock for each class, but clock={self.clock!r}: give one number."
            )
        if age is not None and when == "together":
            raise ValueError(f"age={age!r}, but parts that end together do not age: omit it.")
        for ticks in age.values() if isinstance(age, dict) else [] if age is None else [age]:
            check_number("age", ticks, low=0.0, open_high=True)
        return when or "after", 0.0 if when == "together" else age

    def _may_differ(self) -> tuple[str, ...]:
        """Parameters that do not affect the state."""
        return ("n_features_to_select", "select_by") if self.level is None else ("n_features_to_select",)

    def _merge(self, other: Self, when: str, age: Any) -> None:
        codes, joint = joint_classes(self, other)
        n_classes = len(joint["classes_"])
        order = np.argsort(np.r_[codes, np.setdiff1d(np.arange(n_classes), codes)])
        my_ticks, their_ticks = self._ticks_with(n_classes), other._ticks_with(n_classes)[order]
        early, late = (their_ticks, my_ticks) if when == "before" else (my_ticks, their_ticks)
        if isinstance(age, dict):
            age = np.array([float(age.get(label, 0.0)) for label in joint["classes_"].tolist()])
        ticks = late if age is None else np.full(n_classes, age)
        parts: dict[str, Any] = {}
        for name in ("_moments", "_bins", "_dependence", "_evidence"):
            mine, theirs = copy.deepcopy(getattr(self, name)), copy.deepcopy(getattr(other, name))
            if mine is not None:
                mine.grow(n_classes)
                theirs.grow(n_classes)
                theirs.reorder(order)
                if self._factor != 1.0:
                    (theirs if when == "before" else mine).fade(self._factor**ticks)
                how: dict[str, Any] = {"first": when == "before"} if name == "_dependence" else {}
                if name == "_evidence" and mine.n_bins > 1 and (bins := parts["_bins"]).has_cells:
                    how = {"cells_of": bins.cells}
                mine.merge(theirs, **how)
            parts[name] = mine
        if self._last_rows is not None and other._last_rows is not None:
            parts["_last_rows"] = self._last_rows.merged(other._last_rows, codes, first=when == "before")
        since = np.maximum(early + ticks, late)  # first row of either part
        self.__dict__.update(parts, **joint, _ticks=since, n_seen_=self.n_seen_ + other.n_seen_)

    # -- read-outs -----------------------------------------------------------------------------------------

    def _relevance(self) -> Floats:
        return self._read(self._score_names()[:1])[0].scores

    @property
    def pvalues_(self) -> Floats | None:
        """Probability of a larger score if the feature is irrelevant to the class; None if the score has none."""
        return self._read(self._score_names()[:1], pvalues=True)[0].pvalues

    def _log_e(self) -> Floats:
        """Return the evidence, for dependent rows once labels are found to be autocorrelated, or to have a cycle."""
        assert self._evidence is not None
        cyclic = self._dependence is not None and self._dependence.labels.period > 0
        return self._evidence.log_e(dependent=self.rows_dependent_, cyclic=cyclic)

    @property
    def evalues_(self) -> Floats:
        """Evidence of each feature against "it is irrelevant to the class", valid at any time; needs a `level`."""
        _ = self.warming_up_  # raises if not fitted
        if self._evidence is None:
            raise AttributeError(
                "evalues_ needs level: pass, for example, n_features_to_select=None, level=0.05."
            )
        with np.errstate(over="ignore"):
            evalues: Floats = np.exp(self._log_e())
        return evalues

    def effect_band(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return a lower and an upper bound of each feature's effect on the class; both hold at all times.

        For T and Fisher, the effect is the distance of the class means (:mod:`tamis.dependence.mean_band`, valid for
        many rows). For the bin scores, it is the mutual information in nats of the class and the bins of the p-values,
        exact for any number of rows (:mod:`tamis.dependence.information_band`).

        Parameters
        ----------
        alpha : float, default=0.05
            In (0, 1): the probability that the band of a feature is ever wrong since the last start. For simultaneous
            bands of all features pass ``alpha / n_features_in_``.

        Returns
        -------
        low, high : ndarray of shape (n_features,), float64
            From 0 to infinity (means) or to the logarithm of the number of classes (bins) if nothing is known yet, and
            for the bins of categorical features.

        Raises
        ------
        ValueError
            If rows fade: a bound for old rows may not hold for later ones.
        """
        check_number("alpha", alpha, low=0.0, high=1.0, open_low=True, open_high=True)
        _ = self.warming_up_  # raises if not fitted
        if self._factor != 1.0:
            raise ValueError(
                "effect_band needs rows that do not fade: omit half_life and fading, or pass restarts."
            )
        if self._score_names()[0] not in _OF_MOMENTS and self._bins is not None:
            inflation = self._inflation(self._score_names()[0])
            return self._bins.information_band(
                alpha, None if inflation is None else self._largest(inflation, alpha)
            )
        count, mean, variance = self._moments.read()
        effective = self._moments.effective_count(count)
        if (inflation := self._inflation(self._score_names()[0])) is not None:
            effective = effective / np.nan_to_num(self._largest(inflation, alpha), nan=np.inf)
        return mean_band(effective, mean, variance, alpha)

    # -- dependent rows ------------------------------------------------------------------------------------

    @property
    def rows_dependent_(self) -> bool:
        """Whether p-values and bands account for dependent rows; see `dependence`."""
        _ = self.warming_up_  # raises if not fitted
        return self._dependence is not None and self._dependence.dependent

    @property
    def n_effective_(self) -> Floats:
        """Effective number of independent values of each feature; nan if it is undetermined.

        Without dependence and fading, it is `n_observed_`.
        """
        rows, effective = self._moments.weight().sum(), self._moments.effective().sum()
        n: Floats = self.n_observed_ * (effective / rows if rows > 0.0 else 1.0)
        if (inflation := self._inflation(self._score_names()[0])) is not None:
            n /= inflation.inflation.max(axis=0)
        return n

    @property
    def rows_missing_(self) -> int:
        """About how many more rows are needed, at least, where p-values are undetermined; 0 if none is."""
        undetermined = self.rows_dependent_ and bool(np.isnan(self.n_effective_).any())
        return self._dependence.rows_missing() if undetermined and self._dependence is not None else 0

    def _inflation(self, name: str) -> Inflation | None:
        """Return the factor by which dependent rows inflate the variance of a score; None if rows are independent."""
        if self.warming_up_ or self._dependence is None or not self._dependence.dependent:
            return None
        if name not in _OF_MOMENTS:
            return self._tables_inflation()
        score = "trend" if name == "t" and self._is_regression() else name
        return self._dependence.moments(score, self._moments)

    def _tables_inflation(self, *, cuts: bool = False) -> Inflation:
        assert self._dependence is not None
        table = None if self._bins is None else self._bins.counts_at_edges()
        return self._dependence.tables(self._moments, table, cuts=cuts)

    def _largest(self, inflation: Inflation, alpha: float) -> Floats:
        """Return the inflation for a band, which is determined by the direction of the largest variance."""
        by = inflation.inflation.max(axis=0)
        if self._score_names()[0] != "t":
            n_bins = 2 if self._score_names()[0] in _OF_MOMENTS or self._bins is None else self._bins.n_bins
            by = by * np.maximum((len(self.classes_) - 1) * (n_bins - 1) / inflation.freedom, 1.0)
        return by * uncertainty(inflation.blocks, alpha)

    def _selection(self) -> Mask:
        if self.redundancy is not None:
            return self._without_redundancy(self.redundancy)
        assert self._evidence is not None
        assert self.level is not None
        return e_bh(self._log_e(), restart_level(self.level, self._n_restarts + 1))

    def _without_redundancy(self, n_candidates: int) -> Mask:
        """Return the features with the best scores that are not redundant with each other, by the last rows."""
        assert self._last_rows is not None
        assert self.n_features_to_select is not None
        scores, n_selected = self._relevance(), n_to_select(self.n_features_to_select, self.n_features_in_)
        candidates = np.flatnonzero(top_mask(scores, max(n_candidates, n_selected)))
        candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
        X, codes = self._last_rows.columns(candidates)
        kept = np.zeros(self.n_features_in_, dtype=bool)
        kept[candidates[by_addition(X, codes, n_selected)]] = True
        return kept

    @property
    def n_observed_(self) -> Floats:
        """(Faded) number of non-missing values of each feature; 0 if all are missing, and every score is 0."""
        _ = self.warming_up_  # raises if not fitted
        if self._moments.n_features:
            return self._moments.count().sum(axis=0)
        assert self._bins is not None
        count = np.empty(self.n_features_in_)
        for columns, table, _ordered in self._bins.tables():
            count[columns] = table.sum(axis=(1, 2))
        return count

    @property
    def nbytes_(self) -> int:
        """Size of the state in bytes."""
        _ = self.warming_up_
        return n_bytes([getattr(self, name) for name in _PARTS])

    def _read(self, names: tuple[str, ...], *, pvalues: bool = False) -> list[Readout]:
        """Return the requested scores; the bins are counted once, and p-values cost more than the scores."""
        if self.warming_up_:
            nothing = np.zeros(self.n_features_in_)
            return [Readout(nothing, nothing + 1.0) for _ in names]
        tables = None if self._bins is None or _OF_MOMENTS.issuperset(names) else self._bins.tables()
        return [
            self._read_moments(n, pvalues) if n in _OF_MOMENTS else self._read_bins(n, tables or [], pvalues)
            for n in names
        ]

    def _read_moments(self, name: str, pvalues: bool) -> Readout:
        read = self._moments.read()
        if (lost := too_small(read)) >= 0:
            warnings.warn(
                f"Column {self._column(lost)} differs between the classes by less than {SMALLEST:g},"
                " whose square float64 cannot represent, and scores 0: rescale it.",
                UserWarning,
                stacklevel=2,
            )
        if name == "t" and self._is_regression():
            return Readout(*trend(self._moments, read, self._inflation(name)))
        if name == "t":
            scores = t_score(self._moments, read)
            return Readout(scores, t_pvalues(self._moments, read, self._inflation(name)) if pvalues else None)
        scores = fisher_score(self._moments, read)
        return Readout(scores, fisher_pvalues(self._moments, self._inflation(name)) if pvalues else None)

    def _read_bins(self, name: str, tables: list[tuple[Array, Array, bool]], pvalues: bool) -> Readout:
        scores = np.zeros(self.n_features_in_)
        for columns, table, in_order in tables:
            if name == "gini":
                scores[columns] = gini_decrease(table) if in_order else gini_of_categories(table)
            else:
                scores[columns] = mutual_information(table) if name == "mi" else chi_square(table)[0]
        return Readout(scores, self._pvalues_of_bins(name, tables) if pvalues else None)

    def _statistic_of(
        self, name: str, columns: Array, in_order: bool
    ) -> Callable[[Array], tuple[Array, Array]]:
        """Return a function that computes a statistic and its degrees of freedom from tables of these features."""
        if name != "gini":
            return partial(independence_statistic, log=name == "mi")
        inflation = None
        if self._inflation(name) is not None:
            inflation = self._tables_inflation(cuts=in_order).take(columns)
        return partial(gini_statistic, in_order=in_order, inflation=inflation)

    def _pvalues_of_bins(self, name: str, tables: list[tuple[Array, Array, bool]]) -> Floats:
        """Test exact counts: those of categories, and of numbers in bins cut early or (for few rows) now."""
        assert self._bins is not None
        pvalues = np.ones(self.n_features_in_)
        inflation = None if name == "gini" else self._inflation(name)
        weight, effective = self._moments.weight(), self._moments.effective()
        worth = np.divide(effective, weight, out=np.zeros_like(weight), where=weight > 0.0)
        for columns, table, in_order in tables:
            statistic_of = self._statistic_of(name, columns, in_order)
            refined = self._bins.test(statistic_of) if in_order else None
            if in_order and refined is None and self._bins.rank_error * np.sqrt(effective.sum()) > 0.1:
                warnings.warn(
                    f"pvalues_ use bins with a rank error of {self._bins.rank_error:g}, which can appear significant in"
                    f" {effective.sum():.0f} effective rows: fit again, or choose a smaller eps.",
                    UserWarning,
                    stacklevel=2,
                )
            statistic, freedom = statistic_of(table * worth) if refined is None else refined
            pvalues[columns] = chi_square_pvalue(statistic, freedom)
            if inflation is not None:
                by_blocks = inflation.take(columns).pvalue(statistic / np.maximum(freedom, 1))
                pvalues[columns] = np.maximum(pvalues[columns], by_blocks)
        return pvalues


@dataclass(eq=False, repr=False)
class BinScreener(Screener):
    """A screener whose scores are computed from bin counts.

    Parameters
    ----------
    n_bins : int, default=5
        Number of bins of about equal weight for a numeric feature, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Categorical features (positions, or names of a frame), coded as whole numbers from 0 to 65,535. Each value is a
        bin. By default all features are numeric.
    eps : float, optional
        Largest error of a cumulative count, as a fraction of all counts, in [1e-6, 0.5). A feature of at most 1 / eps
        distinct values in each class has no error. By default 2e-6 times the number of features, within 0.001 and 0.01,
        which takes about 150 MB after ten million rows.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are stored. "float32" becomes float64 if the values of a feature, such as times in seconds since
        1970, are too close to each other for it.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If a value is infinite, too large for `dtype`, or not a category in a categorical column. NaN is allowed: it is
        skipped, feature by feature. The model is unchanged.

    Notes
    -----
    A batch is equivalent to its rows one at a time up to rounding. Memory is bounded, also per class: after the first
    eight classes, one with up to 32 rows takes these rows; see :class:`tamis.summaries.quantiles.QuantileSummary`. CSR
    rows cost O(stored values), except that their categorical columns cost as much as dense ones.
    """

    def _claims(self) -> Claims:
        return replace(super()._claims(), first_rows=FIRST)

    _shapes = """
        _bins.numeric (p) int64 in [0, j) increasing
        _bins.categorical (j-p) int64 in [0, j) increasing
        _bins._last? (p) float in (-inf, inf) or nan  _bins._ties? (p) int64 in [0, 2**62)
        _bins.n_features in [j, j]  _bins._exact?.n_bins in [self._bins.n_bins, self._bins.n_bins]
        _bins._exact (its own)  _bins._exact?.n_features (=p)  _bins._exact?._gain (c)
    """

    _: KW_ONLY
    n_bins: int = 5
    categorical: Any = None
    eps: float | None = None
    dtype: str = "float32"

    summary = "thinned"  # no parameter of screens of one score

    def _new_bins(self, n_features: int) -> BinCounts | None:
        categorical = columns_of(self.categorical, n_features, feature_names(self))
        eps = float(np.clip(2e-6 * n_features, 0.001, 0.01)) if self.eps is None else self.eps
        cut_every = np.inf if self._factor == 1.0 else max(256.0, 8.0 * np.log(0.5) / np.log(self._factor))
        per_call = self.fade_per == "batch"
        return BinCounts(
            n_features, categorical, self.n_bins, eps, self.dtype, cut_every, per_call, self.summary
        )
