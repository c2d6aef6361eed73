"""Numbers for each panel of a report: a run of any length, thinned to the resolution of a screen.

Nothing here grows with rows times features: the selected set is read from its changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.evaluate import PrequentialResult
from tamis.report.charts.thinning import bucket_starts, mean_per_bucket

__all__ = [
    "MAP_COLOURS",
    "Change",
    "Reason",
    "ScoreLine",
    "SelectionMap",
    "change_rates",
    "changes",
    "drift_rows",
    "is_known",
    "last",
    "last_selection",
    "map_pixels",
    "mean",
    "most_changes",
    "reasons",
    "score_lines",
    "selection_map",
    "steps_in",
]

# Seen on white and on near-black; red, green, blue, opacity.
MAP_COLOURS = {
    "relevant, kept": (47, 127, 193, 255),
    "relevant, not kept": (128, 138, 148, 130),
    "kept, not relevant": (213, 94, 0, 255),
}
_LEVELS = 32

Column: TypeAlias = NDArray[Any]
Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SelectionMap:
    """The selected features over time.

    Attributes
    ----------
    features : ndarray of shape (n_shown,), intp
        The features selected most often, the most frequent first. Features that were ever relevant, if known, come
        before them, in the order of how long they were relevant.
    names : list of str
    kept : ndarray of shape (n_shown,), float64
        Share of all steps at which the feature was selected, 0 to 1.
    shares : ndarray of shape (n_shown, n_buckets), float64
        The same within each bucket of time.
    relevant : ndarray of shape (n_shown, n_buckets), float64, or None
        Proportion of each section of the stream in which the feature was relevant, if known.
    n_ever : int
        Number of features that were ever selected.
    """

    features: NDArray[np.intp]
    names: list[str]
    kept: Numbers
    shares: Numbers
    relevant: Numbers | None
    n_ever: int


def selection_map(
    result: PrequentialResult,
    max_features: int = 40,
    max_buckets: int = 400,
    features: NDArray[np.intp] | None = None,
) -> SelectionMap:
    """Return the map of the features that were selected most often, or of the given ones."""
    steps, truth = result.frames["steps"]["step"], result.frames.get("truth", {})
    held, relevant = (steps_in(result, events) for events in (result.frames["changes"], truth))
    ever = np.flatnonzero(held + relevant)
    order = ever[np.lexsort((-held[ever], -relevant[ever]))][:max_features] if features is None else features
    starts = bucket_starts(len(steps), max_buckets)
    return SelectionMap(
        order,
        [str(result.feature_names[j]) for j in order],
        held[order] / max(len(steps), 1),
        _shares(result, result.frames["changes"], order, starts),
        _shares(result, truth, order, starts) if relevant.any() else None,
        int(np.count_nonzero(held)),
    )


def map_pixels(shown: SelectionMap) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the map as pixels, and their colours, each red, green, blue and opacity.

    The opacity of a colour is the share of steps at which the feature was selected. Where the relevant features are
    known, the second half of the colours is for buckets in which the feature was relevant.
    """
    both, missed, extra = (np.array(colour) for colour in MAP_COLOURS.values())
    levels = np.rint(shown.shares * (_LEVELS - 1)).astype(np.uint8)
    share = np.linspace(0, 1, _LEVELS)[:, None]
    plain = np.where(np.arange(4) < 3, both if shown.relevant is None else extra, np.rint(255 * share))
    if shown.relevant is None:
        return levels, plain.astype(np.uint8)
    relevant = np.rint((1 - share) * missed + share * both)
    pixels = levels + _LEVELS * (shown.relevant >= 0.5).astype(np.uint8)
    return pixels, np.vstack([plain, relevant]).astype(np.uint8)


def steps_in(result: PrequentialResult, events: dict[str, Column]) -> Numbers:
    """Return the number of steps at which each feature was in the set, from the changes of the set."""
    if not len(events.get("step", ())):
        return np.zeros(len(result.feature_names))
    steps = result.frames["steps"]["step"]
    left = len(steps) - np.searchsorted(steps, events["step"])
    sign = np.where(events["event"] == "enter", 1.0, -1.0)
    feature = np.asarray(events["feature"], np.intp)
    numbers: Numbers = np.bincount(feature, sign * left, len(result.feature_names)).astype(np.float64)
    return numbers


def _shares(
    result: PrequentialResult, events: dict[str, Column], shown: NDArray[np.intp], starts: NDArray[np.intp]
) -> Numbers:
    """Return the share of each time bucket in which each feature was in the set."""
    steps = result.frames["steps"]["step"]
    lengths = np.diff(np.append(starts, len(steps)))
    feature = np.asarray(events["feature"], np.intp)
    at = np.searchsorted(steps, events["step"])
    sign = np.where(events["event"] == "enter", 1, -1)
    row_of = np.full(len(result.feature_names), -1)
    row_of[shown] = np.arange(len(shown))
    shares = np.empty((len(shown), len(starts)))
    order = np.argsort(row_of[feature], kind="stable")
    first = np.searchsorted(row_of[feature][order], np.arange(len(shown) + 1))
    for row in range(len(shown)):
        mine = order[first[row] : first[row + 1]]
        turns = np.bincount(at[mine], weights=sign[mine], minlength=len(steps))[: len(steps)]
        shares[row] = np.add.reduceat(np.cumsum(turns), starts) / lengths
    return shares


def is_known(result: PrequentialResult, name: str) -> bool:
    """Return whether a column of the steps has a value."""
    return bool(np.isfinite(_step_values(result, name)).any())


def last(result: PrequentialResult, name: str) -> float:
    """Return the last value of a column of the steps; NaN if there is none."""
    finite = (values := _step_values(result, name))[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else math.nan


def mean(result: PrequentialResult, name: str) -> float:
    """Return the mean of a column of the steps; NaN if it has no value."""
    finite = (values := _step_values(result, name))[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _step_values(result: PrequentialResult, name: str) -> Numbers:
    return np.asarray(result.frames["steps"].get(name, np.empty(0)), np.float64)


def drift_rows(result: PrequentialResult) -> Numbers:
    """Return the rows at which the stream drifts, if known and reached by the run."""
    n_seen = result.frames["steps"]["n_seen"]
    drifts = np.asarray(result.settings.get("drifts", ()), np.float64)
    return drifts[drifts < (n_seen[-1] if len(n_seen) else 0)]


@dataclass(frozen=True)
class ScoreLine:
    """The recorded scores of one feature; NaN where it was not among the tracked ones."""

    name: str
    scores: Numbers

    @property
    def last(self) -> float:
        """The last finite score."""
        return float(self.scores[np.flatnonzero(~np.isnan(self.scores))[-1]])


def score_lines(result: PrequentialResult, n_lines: int = 6) -> tuple[Numbers, list[ScoreLine]]:
    """Return the scores of the features that ranked highest over the whole run, the last leader first.

    At each record of the scores, a feature earns a point for every tracked feature that does not exceed it.

    Returns
    -------
    at : ndarray of shape (n_records,), float64
        Rows seen when the scores were recorded.
    lines : list of ScoreLine
        Each with `n_records` scores.
    """
    frame, steps = result.frames.get("scores", {}), result.frames["steps"]
    feature = np.asarray(frame.get("feature", ()), np.intp)
    score = np.asarray(frame.get("score", ()), np.float64)
    if not np.isfinite(score).any():
        return np.empty(0), []
    recorded, record = np.unique(frame["step"], return_inverse=True)
    order = np.lexsort((score, record))
    first = np.searchsorted(record[order], np.arange(len(recorded)))
    rank = np.arange(len(order)) - first[record[order]] + 1
    points = np.bincount(feature[order], weights=rank)
    lines = []
    for j in np.argsort(-points, kind="stable")[:n_lines]:
        mine = (feature == j) & np.isfinite(score)
        scores = np.full(len(recorded), np.nan)
        scores[record[mine]] = score[mine]
        if mine.any():
            lines.append(ScoreLine(str(result.feature_names[j]), scores))
    at = np.asarray(steps["n_seen"], np.float64)[np.searchsorted(steps["step"], recorded)]
    return at, sorted(lines, key=lambda line: -line.last)


@dataclass(frozen=True)
class Reason:
    """The individual relevance of a feature, its gain given the selected ones, and the one it is redundant with."""

    name: str
    kept: bool
    alone: float
    added: float
    redundant_to: str


def reasons(result: PrequentialResult, at_most: int, *, kept: bool) -> list[Reason]:
    """Return the features selected at the end, or the unselected ones that are most relevant individually."""
    frame = result.frames.get("reasons")
    if frame is None:
        return []
    mine = np.flatnonzero((frame["selected"] == 1) == kept)
    order = mine[np.argsort(-frame["alone"][mine], kind="stable")][:at_most]
    return [
        Reason(
            str(frame["name"][j]), kept, float(frame["alone"][j]), float(frame["added"][j]),
            str(frame["redundant_to"][j]),
        )
        for j in order
    ]  # fmt: skip


@dataclass(frozen=True)
class Change:
    """Features that entered and left in one step."""

    step: int
    n_seen: int
    entered: list[str]
    left: list[str]

    @property
    def n_features(self) -> int:
        """Number of features that entered or left."""
        return len(self.entered) + len(self.left)


def changes(result: PrequentialResult, at_most: int, *, largest: bool = False) -> list[Change]:
    """Return the latest changes of the selected set, or the largest ones; the first selection is not a change.

    Parameters
    ----------
    result : PrequentialResult
    at_most : int
    largest : bool, default=False
        By the number of features that entered or left, rather than by time.

    Returns
    -------
    list of Change
        The latest, or the largest, first.
    """
    steps, events = result.frames["steps"], result.frames["changes"]
    when, sizes = np.unique(events["step"], return_counts=True)
    order = np.argsort(events["step"], kind="stable")
    ends = np.cumsum(sizes)
    candidates = np.arange(1, len(when))[::-1]
    if largest:
        candidates = candidates[np.argsort(-sizes[candidates], kind="stable")]
    return [_change(steps, events, order[ends[i] - sizes[i] : ends[i]]) for i in candidates[:at_most]]


def _change(steps: dict[str, Column], events: dict[str, Column], rows: NDArray[np.intp]) -> Change:
    step = int(events["step"][rows[0]])
    n_seen = int(steps["n_seen"][np.searchsorted(steps["step"], step)])
    return Change(step, n_seen, _names(events, rows, "enter"), _names(events, rows, "leave"))


def _names(events: dict[str, Column], rows: Sequence[int] | NDArray[np.intp], event: str) -> list[str]:
    return [str(events["name"][i]) for i in rows if events["event"][i] == event]


def last_selection(result: PrequentialResult) -> list[str]:
    """Return the names of the features selected at the end, in the order of the columns."""
    events = result.frames["changes"]
    held = np.bincount(np.asarray(events["feature"], np.intp), np.where(events["event"] == "enter", 1, -1))
    return [str(result.feature_names[j]) for j in np.flatnonzero(held > 0)]


def change_rates(result: PrequentialResult, at_most: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the number of features that entered and left per batch, in buckets of rows.

    The first selection is excluded: it would dwarf the changes.

    Returns
    -------
    entered, left : ndarray of shape (n_buckets,), float64
    edges : ndarray of shape (n_buckets + 1,), float64
        In rows seen.
    """
    steps = result.frames["steps"]
    later = steps["step"] != np.min(result.frames["changes"]["step"])
    starts = bucket_starts(len(later), at_most)
    before = np.asarray(steps["n_seen"] - steps["n_rows"], np.float64)
    entered, left = (
        mean_per_bucket(np.where(later, steps[name], 0.0), at_most) for name in ("n_entered", "n_left")
    )
    return entered, left, np.append(before[starts], float(steps["n_seen"][-1]))


def most_changes(entered: Numbers, left: Numbers) -> float:
    """Return the limit of the axis of changes: a single large change is cut off rather than flatten the others."""
    values = np.concatenate([entered, left])
    usual = 1.5 * float(np.percentile(values[values > 0], 98)) if (values > 0).any() else 1.0
    return min(usual, float(values.max())) or 1.0
