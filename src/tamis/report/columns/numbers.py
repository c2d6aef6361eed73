"""The numbers of a feature selector's trace: evidence and threshold of each offer, wealth, decisions, near misses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array
from tamis.base.trace import DECISIONS
from tamis.report.charts.thinning import bucket_starts
from tamis.report.page.number_format import MISSING, power_of_ten, scientific

__all__ = ["Course", "Floats", "Scale", "course_of", "evidence_limits", "log_probability"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """How evidence is measured.

    Attributes
    ----------
    evidence, bar : str
        Names of the evidence and of its threshold.
    sign : {-1, 1}
        -1 if smaller is better; :class:`Course` then stores the negative, so that larger is always better.
    logarithmic : bool
        Whether :class:`Course` stores logarithms to base ten.
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


@dataclass(frozen=True)
class Course:
    """All offers to a selector, in order.

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
    """

    scale: Scale
    records: Array
    offer: NDArray[np.int64]
    evidence: Floats
    bar: Floats
    wealth: Floats
    accepted: NDArray[np.bool_]
    kept: NDArray[np.intp]
    n_offered: int

    def counts(self) -> dict[str, int]:
        """Return the number of offers by decision, without decisions that never occurred."""
        mapping = {name: int(np.count_nonzero(self.records["decision"] == name)) for name in DECISIONS}
        return {name: n for name, n in mapping.items() if n}

    def entered(self) -> NDArray[np.intp]:
        """Return which records were accepted, in the order in which they were offered."""
        return np.flatnonzero(self.accepted)

    def dropped(self) -> NDArray[np.intp]:
        """Return which records were accepted and dropped later, in the order in which they were offered."""
        return np.setdiff1d(self.entered(), self.kept)

    def n_accepted(self) -> Floats:
        """Return the number of accepted features after each record."""
        return np.cumsum(self.accepted).astype(np.float64)

    def best_refused(self, at_most: int) -> NDArray[np.intp]:
        """Return the rejected offer with the largest evidence in each of at most `at_most` intervals."""
        refused = np.flatnonzero(~self.accepted & np.isfinite(self.evidence))
        if not len(refused):
            return refused
        starts = bucket_starts(len(refused), at_most)
        worth = self.evidence[refused]
        ends = np.append(starts[1:], len(refused))
        best = [a + int(np.argmax(worth[a:b])) for a, b in zip(starts, ends, strict=True)]
        result: NDArray[np.intp] = refused[best]
        return result

    def redundant(self) -> NDArray[np.bool_]:
        """Return which records were rejected as redundant although they passed their threshold."""
        result: NDArray[np.bool_] = (self.records["decision"] == "rejected") & (self.evidence > self.bar)
        return result

    def near_misses(self, at_most: int) -> NDArray[np.intp]:
        """Return the rejected records closest to their threshold, the closest first."""
        refused = np.flatnonzero((self.records["decision"] == "rejected") & (self.evidence <= self.bar))
        short = self.bar[refused] - self.evidence[refused]
        result: NDArray[np.intp] = refused[np.argsort(short, kind="stable")[:at_most]]
        return result

    def standing(self, values: Floats) -> Floats:
        """Return the values, with missing ones filled forward."""
        known = np.isfinite(values)
        last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
        result: Floats = np.where(last >= 0, values[np.maximum(last, 0)], np.nan)
        return result


def course_of(selector: Any) -> Course:
    """Return the numbers of a selector's trace.

    Parameters
    ----------
    selector : ColumnSelector
        Fitted with ``trace="all"``; otherwise only the accepted features are known.

    Returns
    -------
    Course

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 51))
    >>> y = X[:, 3] + X[:, 30] + 0.3 * X[:, 50]
    >>> course = course_of(AlphaInvesting(target_fdr=0.05).fit(X[:, :50], y))
    >>> course.counts(), course.scale.written(course.bar[0])
    ({'rejected': 48, 'accepted': 2}, '0.0125')
    """
    records = selector.trace_
    accepted = records["decision"] == "accepted"
    places = dict(zip(records["name"][accepted].tolist(), np.flatnonzero(accepted).tolist(), strict=True))
    scale, evidence, bar = _evidence(selector, records)
    return Course(
        scale=scale,
        records=records,
        offer=records["offer"] + 1,
        evidence=evidence,
        bar=bar,
        wealth=records["wealth"],
        accepted=accepted,
        kept=np.array([places[name] for name in selector.selected_], dtype=np.intp),
        n_offered=int(selector.n_offered_),
    )


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


def evidence_limits(course: Course) -> tuple[float, float, bool]:
    """Return the limits of the axis of the evidence, and whether values are cut off.

    The threshold must be visible; evidence of many times its height is cut off.
    """
    evidence = course.evidence[np.isfinite(course.evidence)]
    bars = course.bar[np.isfinite(course.bar)]
    if not course.scale.logarithmic:
        return 0.0, max(1.05 * float(evidence.max(initial=0.1)), 0.1), False
    highest = float(bars.max(initial=1.0))
    low = 0.0 if course.scale.sign < 0 else min(-1.0, float(bars.min(initial=0.0)))
    high = min(float(evidence.max()), max(3.0 * highest, highest + 2.0))
    high = max(high, highest + 0.5)
    return low, high * 1.04, bool((evidence > high * 1.04).any() or (evidence < low).any())


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
