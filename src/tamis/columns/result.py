"""The decisions of a feature selector about each candidate, as a result that shows itself.

The evidence and the threshold of each offer, the wealth, the accepted features, and the near misses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._validation import Array, Floats, Indices, Ints, Mask
from tamis.base.trace import DECISIONS
from tamis.columns.sequential import RegressionSelector
from tamis.report.charts.chart import (
    Axis,
    Chart,
    Line,
    Mark,
    Points,
    VerticalLines,
    axis,
    bucket_starts,
    row_count_axis,
    whole_number,
)
from tamis.report.content import Cell, Figure, Names, Remark, Reproduction, Section, Table
from tamis.report.result import Result
from tamis.report.text import (
    MISSING,
    count,
    duration,
    listed,
    plural,
    power_of_ten,
    rate,
    scientific,
    shorten,
)

Stages = Sequence[tuple[int, str]]
_MOST_ROWS, _NEAR = 1000, 10
_UNTESTED = {"constant": "constant", "collinear": "collinear", "full": "untested"}


@dataclass(frozen=True)
class Scale:
    """How evidence is measured.

    Attributes
    ----------
    evidence, bar : str
        Names of the evidence and of its threshold.
    sign : {-1, 1}
        -1 if smaller is better; :class:`ColumnsResult` then stores the negative, so that larger is always better.
    logarithmic : bool
        Whether :class:`ColumnsResult` stores logarithms to base ten.
    """

    evidence: str
    bar: str
    sign: int
    logarithmic: bool

    def label(self, value: float) -> str:
        """Return the label of a tick of the axis."""
        if not self.logarithmic:
            return f"{value:g}"
        return power_of_ten(round(self.sign * value)) if float(value).is_integer() else ""

    def written(self, value: float) -> str:
        """Return a value as text, on its original scale."""
        if not math.isfinite(value):
            return MISSING
        return log_probability(self.sign * value * math.log(10.0)) if self.logarithmic else scientific(value)


_SCALES = {
    "p": Scale("p-value", "threshold", -1, True),
    "gain": Scale("gain", "threshold", 1, True),
    "dependency": Scale("dependency", "threshold", 1, False),
    "slope": Scale("slope", "threshold", 1, False),
}


class ColumnsResult(Result):
    """The decisions of a selector about all candidates that were offered to it, in order.

    Parameters
    ----------
    selector : ColumnSelector
        Fitted with ``trace="all"``; otherwise only the accepted features are known.
    title, about : str, optional
        Heading, and a sentence on the data.
    remarks : sequence of str
    coefficients : dict of str to float, optional
        Coefficients of the accepted features, by name.
    coefficient_note : str
        The meaning of a positive coefficient.
    stages : list of (int, str)
        The first candidate of each kind of feature, counted from 1, and the name of the kind.
    seconds : float
        Duration of the selection.
    reproduction : Reproduction, optional
        By default the selector with its parameters.

    Attributes
    ----------
    scale : Scale
    records : ndarray of shape (n_records,), structured
        The trace.
    offer : ndarray of shape (n_records,), int64
        From 1.
    evidence, bar, wealth : ndarray of shape (n_records,), float64
        NaN if there is none; `evidence` and the threshold `bar` are in the units of `scale`.
    accepted : ndarray of shape (n_records,), bool
    kept : ndarray of shape (n_selected,), int
        Records of the features that are selected at the end, in the order in which they entered.
    n_offered : int

    Examples
    --------
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 51))
    >>> y = X[:, 3] + X[:, 30] + 0.3 * X[:, 50]
    >>> result = ColumnsResult(AlphaInvesting(target_fdr=0.05).fit(X[:, :50], y))
    >>> result.counts(), result.scale.written(result.bar[0])
    ({'rejected': 48, 'accepted': 2}, '0.0125')
    >>> result.verdict()
    '2 of 50 candidates are accepted: x3, x30; the false discovery rate is controlled at 0.05.'
    """

    def __init__(
        self,
        selector: Any,
        title: str | None = None,
        about: str = "",
        *,
        remarks: Sequence[str] = (),
        coefficients: Mapping[str, float] | None = None,
        coefficient_note: str = "",
        stages: Stages = (),
        seconds: float = math.nan,
        reproduction: Reproduction | None = None,
    ) -> None:
        self.selector, self._title, self._about, self._remarks = selector, title, about, remarks
        self.coefficients, self.coefficient_note = coefficients, coefficient_note
        self.stages, self.seconds, self._reproduction = stages, seconds, reproduction
        records = self.records = selector.trace_
        self.accepted: Mask = records["decision"] == "accepted"
        at = np.flatnonzero(self.accepted)
        places = dict(zip(records["name"][at].tolist(), at.tolist(), strict=True))
        self.scale, self.evidence, self.bar = _evidence(selector, records)
        self.offer: Ints = records["offer"] + 1
        self.wealth: Floats = records["wealth"]
        self.kept = np.array([places[name] for name in selector.selected_], dtype=np.intp)
        self.n_offered = int(selector.n_offered_)

    def counts(self) -> dict[str, int]:
        """Return the number of offers by decision, without decisions that never occurred."""
        mapping = {name: int(np.count_nonzero(self.records["decision"] == name)) for name in DECISIONS}
        return {name: n for name, n in mapping.items() if n}

    def entered(self) -> Indices:
        """Return which records were accepted, in the order in which they were offered."""
        return np.flatnonzero(self.accepted)

    def dropped(self) -> Indices:
        """Return which records were accepted and dropped later, in the order in which they were offered."""
        return np.setdiff1d(self.entered(), self.kept)

    def best_refused(self, at_most: int) -> Indices:
        """Return the rejected offer with the largest evidence in each of at most `at_most` intervals."""
        refused = np.flatnonzero(~self.accepted & np.isfinite(self.evidence))
        if not len(refused):
            return refused
        starts = bucket_starts(len(refused), at_most)
        worth = self.evidence[refused]
        ends = np.append(starts[1:], len(refused))
        best = [a + int(np.argmax(worth[a:b])) for a, b in zip(starts, ends, strict=True)]
        return refused[best]

    def redundant(self) -> Mask:
        """Return which records were rejected as redundant although they passed their threshold."""
        return (self.records["decision"] == "rejected") & (self.evidence > self.bar)

    def near_misses(self, at_most: int) -> Indices:
        """Return the rejected records closest to their threshold, the closest first."""
        refused = np.flatnonzero((self.records["decision"] == "rejected") & (self.evidence <= self.bar))
        short = self.bar[refused] - self.evidence[refused]
        return refused[np.argsort(short, kind="stable")[:at_most]]

    def standing(self, values: Floats) -> Floats:
        """Return the values, with missing ones filled forward."""
        known = np.isfinite(values)
        last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
        return np.where(last >= 0, values[np.maximum(last, 0)], np.nan)

    # -- presentation --------------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the title, or the name of the selector."""
        return self._title or type(self.selector).__name__

    def about(self) -> str:
        """Return the sentence on the data."""
        return self._about

    def verdict(self) -> str:
        """Return how many candidates are accepted, which, and what is guaranteed about them."""
        names, n = [str(name) for name in self.selector.selected_], self.n_offered
        verb = "is" if len(names) == 1 else "are"
        said = f"{len(names):,} of {plural(n, 'candidate', 'candidates')} {verb} accepted"
        if not names:
            return f"None of {plural(n, 'candidate', 'candidates')} is accepted{self._guarantee()}."
        return f"{said}: {listed(names)}{self._guarantee()}."

    def _guarantee(self) -> str:
        rate_ = getattr(self.selector, "target_fdr", None)
        return "" if rate_ is None else f"; the false discovery rate is controlled at {rate_:g}"

    def remarks(self) -> Sequence[str]:
        """Return the remarks, and how missing values were treated."""
        n = int((self.records["n_missing"] > 0).sum())
        said = (
            f"{plural(n, 'candidate', 'candidates')} had missing values, replaced by the mean of the others."
        )
        return [*self._remarks, *([Remark(said, "note")] if n else [])]

    def headline(self) -> list[Figure]:
        """Return the numbers of candidates by decision, the wealth left, and the duration."""
        counts, n_kept = self.counts(), len(self.kept)
        left, redundant = counts.get("accepted", 0) - n_kept, int(self.redundant().sum())
        unknown = self.n_offered - len(self.records)  # of a trace that has the accepted ones only
        why = (
            f"{count(redundant)} of them redundant given others" if redundant else "for insufficient evidence"
        )
        share = f"{100 * n_kept / max(self.n_offered, 1):.2g} % of the candidates"
        skipped = {said: counts.get(name, 0) for name, said in _UNTESTED.items()}
        stopped = f"stopped: {shorten(self.selector.stopped_, 300)}" if self.selector.stopped_ else ""
        shown = [
            Figure("Candidates", count(self.n_offered), stopped),
            Figure("Accepted", count(n_kept), f"{count(left)} more dropped later" if left else share),
            Figure("Rejected", count(counts.get("rejected", 0) + unknown), "reasons not recorded" if unknown else why),
            Figure("Skipped", count(sum(skipped.values())),
                   ", ".join(f"{count(n)} {said}" for said, n in skipped.items() if n or said != "untested")),
        ]  # fmt: skip
        known = self.wealth[np.isfinite(self.wealth)]
        if len(known):
            lowest = f"min {scientific(float(known.min()))}"
            shown.append(Figure("Wealth left", scientific(float(known[-1])), lowest))
        if math.isfinite(self.seconds):
            pace = rate(self.n_offered / self.seconds) if self.seconds > 0 else "–"
            shown.append(Figure("Time", duration(self.seconds), f"{pace} candidates a second"))
        return shown

    def sections(self) -> list[Section]:
        """Return evidence and wealth over the candidates, the accepted features, and the near misses."""
        if not len(self.offer):
            return [Section("course", "Evidence and wealth", [Remark("No candidate was offered.", "note")])]
        charts = [self._evidence_chart(), self._wealth_chart(), self._accepted_chart()]
        items: list[Any] = [chart for chart in charts if chart is not None]
        if len(self.stages) > 1:
            begun = "; ".join(f"{kind} from {count(first)} on" for first, kind in self.stages)
            items.append(
                Remark(f"Dotted lines: start of another kind of feature ({shorten(begun, 300)}).", "note")
            )
        sections = [Section("course", "Evidence and wealth", items)]
        kept: list[Any] = [Remark("Nothing was accepted.", "note")]
        if len(self.kept):
            note = self.coefficient_note if self.coefficients else ""
            kept = [self._table("In order of acceptance", self.kept, note, is_main=True)]
        if len(dropped := self.dropped()):
            kept.append(self._table("Accepted, then dropped for a better one", dropped, is_folded=True))
        sections.append(Section("accepted", "Accepted features", kept))
        if len(near := self.near_misses(_NEAR)):
            said = (
                "Each was tested once, given the features accepted before it. In another order, it might have been"
                " accepted."
            )
            sections.append(
                Section("near", "Near misses", [said, self._table("Closest to their threshold", near)])
            )
        return sections

    def _table(self, title: str, which: Indices, note: str = "", **how: bool) -> Table:
        """Return a table of some records."""
        scale, is_kept = self.scale, which is self.kept
        columns: dict[str, Any] = {
            scale.evidence: lambda i: scale.written(float(self.evidence[i])),
            scale.bar: lambda i: scale.written(float(self.bar[i])),
        }
        if np.isfinite(self.wealth[which]).any() and title != "Closest to their threshold":
            columns["wealth after"] = lambda i: scientific(float(self.wealth[i]))
        if is_kept and self.coefficients is not None:
            own = self.coefficients
            columns["coefficient"] = lambda i: scientific(
                float(own.get(str(self.records["name"][i]), math.nan))
            )
        columns["candidate"] = lambda i: count(int(self.offer[i]))
        rows: list[list[Cell]] = [
            [
                count(place),
                Names([str(self.records["name"][i])]),
                *(written(i) for written in columns.values()),
            ]
            for place, i in enumerate(which[:_MOST_ROWS].tolist(), start=1)
        ]
        more = f"And {len(which) - len(rows):,} more. " if len(which) > len(rows) else ""
        head = [("n", ""), ("long", "feature"), *(("n", name) for name in columns)]
        return Table(title, head, rows, f"{more}{note}".strip(), **how)

    def reproduce(self) -> Reproduction:
        """Return the lines that repeat the selection."""
        made = re.sub(r"\s+", " ", repr(self.selector))
        return self._reproduction or Reproduction(python=f"selector = {made}")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        records, coefficients = self.records, self.coefficients or {}
        numbers = ("p_value", "statistic", "threshold", "wealth")
        features = [
            {
                "name": str(records["name"][i]),
                "candidate": int(self.offer[i]),
                **{name: float(records[name][i]) for name in numbers},
                "coefficient": coefficients.get(str(records["name"][i])),
            }
            for i in self.kept.tolist()
        ]
        return {
            "verdict": self.verdict(), "remarks": [str(remark) for remark in self.remarks()],
            "selector": repr(self.selector), "n_offered": self.n_offered, "decisions": self.counts(),
            "selected": self.selector.selected_, "features": features,
            "wealth": getattr(self.selector, "wealth_", None),
            "classes": self.selector.classes_.tolist() if hasattr(self.selector, "classes_") else None,
            "seconds": self.seconds,
        }  # fmt: skip

    # -- charts --------------------------------------------------------------------------------------------

    def _x(self) -> Axis:
        return row_count_axis(float(self.offer[-1]), unit="candidates offered")

    def _borders(self) -> VerticalLines:
        return VerticalLines(np.array([first - 0.5 for first, _ in self.stages[1:]]))

    def _wealth_chart(self) -> Chart | None:
        if not np.isfinite(self.wealth).any():
            return None
        return self._line_chart(
            "wea", "Wealth after each candidate", Line(self.offer, self.standing(self.wealth))
        )

    def _accepted_chart(self) -> Chart:
        line = Line(self.offer, np.cumsum(self.accepted).astype(np.float64), style=3, is_stepped=True)
        return self._line_chart("acc", "Features accepted", line)

    def _line_chart(self, key: str, title: str, line: Line) -> Chart:
        highest = float(np.nanmax(line.y))
        y = axis(0.0, max(highest, 1e-12) * 1.06, 5, whole_number if line.is_stepped else None)
        said = f"{scientific(highest)} at most, {scientific(float(line.y[-1]))} at the end."
        return Chart(key, title, "by candidates offered", said, self._x(), y, [line, self._borders()])

    def _evidence_chart(self, max_points: int = 500) -> Chart | None:
        """Return the chart of the evidence for each candidate and its threshold; None without evidence."""
        scale = self.scale
        if not np.isfinite(self.evidence).any():
            return None
        low, high, is_cut = self.evidence_limits()
        n_refused = int(np.count_nonzero(~self.accepted & np.isfinite(self.evidence)))
        n_shown = n_refused if n_refused <= 2 * max_points else max_points
        best, entered = self.best_refused(n_shown), self.entered()
        of = "" if n_shown == n_refused else f", the best of every {count(n_refused / n_shown)}"
        marks: list[Mark] = [
            Points(self.offer[entered], self.evidence[entered], f"accepted ({count(len(entered))})"),
            Line(self.offer, self.standing(self.bar), f"the {scale.bar}", 2),
            Points(self.offer[best], self.evidence[best], f"rejected{of}", 6, is_small=True),
            self._borders(),
        ]
        evidence = self.evidence[entered] if len(entered) else self.evidence
        highest = scale.written(float(np.nanmax(evidence)))
        up = "smaller values higher" if scale.sign < 0 else "larger values higher"
        edge = " Values beyond the axis are drawn at its edge." if is_cut else ""
        return Chart(
            "evi", f"{scale.evidence[0].upper()}{scale.evidence[1:]} of each candidate",
            f"and its {scale.bar}, {up}.{edge}",
            f"{count(len(entered))} accepted, best {scale.evidence} {highest}.",
            self._x(), axis(low, high, 6, scale.label), marks, "wide",
        )  # fmt: skip

    def evidence_limits(self) -> tuple[float, float, bool]:
        """Return the limits of the axis of the evidence, and whether values are cut off.

        The threshold must be visible; evidence of many times its height is cut off.
        """
        evidence = self.evidence[np.isfinite(self.evidence)]
        bars = self.bar[np.isfinite(self.bar)]
        if not self.scale.logarithmic:
            return 0.0, max(1.05 * float(evidence.max(initial=0.1)), 0.1), False
        highest = float(bars.max(initial=1.0))
        low = 0.0 if self.scale.sign < 0 else min(-1.0, float(bars.min(initial=0.0)))
        high = min(float(evidence.max()), max(3.0 * highest, highest + 2.0))
        high = max(high, highest + 0.5)
        return low, high * 1.04, bool((evidence > high * 1.04).any() or (evidence < low).any())


def _evidence(selector: Any, records: Array) -> tuple[Scale, Floats, Floats]:
    """Return the scale of the evidence, the evidence and the thresholds."""
    statistic, log_p = records["statistic"], records["log_p"]
    if hasattr(selector, "criterion"):
        return _SCALES["gain"], _log10(statistic), _log10(records["threshold"])
    if not np.isfinite(log_p).any() and np.isfinite(statistic).any():
        return _SCALES[selector._statistic], statistic, records["threshold"]
    return _SCALES["p"], -log_p / math.log(10.0), -_log10(records["threshold"])


def _log10(values: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log10(np.maximum(values, 1e-300))
    return logs


def log_probability(log_p: float) -> str:
    """Return a number, given by its natural logarithm, as text, however small.

    >>> log_probability(-4.4), log_probability(-2000.0)
    ('0.0123', '2.58 × 10⁻⁸⁶⁹')
    """
    if log_p > -600.0 or not math.isfinite(log_p):
        return scientific(math.exp(log_p))
    power = log_p / math.log(10.0)
    exponent = math.floor(power)
    return f"{10.0 ** (power - exponent):.2f} × {power_of_ten(exponent)}"


# -- Coefficients of the model of a selector, in the units of the features -------------------------------

_SEPARATED = 9.0  # smallest absolute linear predictor at which the classes count as separated


def coefficients(selector: Any, features: Floats, y: Any) -> Floats | None:
    """Return the coefficients of the selected features in the model that the last candidate was tested against.

    A growing model stores orthonormal columns instead of the features; the coefficients returned reproduce its linear
    predictor.

    Parameters
    ----------
    selector : ColumnSelector
    features : ndarray of shape (n_rows, n_selected), float64
        The selected features in the order in which they were offered, as ``Exploration.transform`` makes them.
    y : array-like of shape (n_rows,)
        The target.

    Returns
    -------
    ndarray of shape (n_selected,), float64, or None
        In a logistic model, coefficients of the log odds of ``selector.classes_[1]``. NaN if the classes are separated,
        so that no finite coefficients exist; None if the selector fits no regression, or one of several classes.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = 2 * X[:, 0] - 5 * X[:, 2] + 7
    >>> selector = AlphaInvesting().fit(X, y)
    >>> coefficients(selector, selector.transform(X), y).round(6)
    array([ 2., -5.])
    """
    if not isinstance(selector, RegressionSelector) or selector.model == "multinomial":
        return None
    model = selector._model
    if hasattr(model, "fit"):  # a generalised linear model: its linear predictor
        target = model.design[:, : model.k] @ model.fit.beta  # type: ignore[union-attr]
        if np.abs(target).min() >= _SEPARATED:
            return np.full(features.shape[1], np.nan)
    else:
        target = np.asarray(y, dtype=np.float64)
    centre = features.mean(axis=0) if selector.intercept else 0.0
    design = features - centre
    spread = np.abs(design).max(axis=0, initial=0.0)  # its square may overflow
    spread = np.where(spread > 0, spread, 1.0)
    design = design / spread
    if selector.intercept:
        design = np.column_stack([design, np.ones(len(design))])
    return np.linalg.lstsq(design, target, rcond=None)[0][: features.shape[1]] / spread
