"""The selected features of a run over time, thinned to the resolution of a screen, read from the changes of the set.

Nothing here grows with rows times features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array, Floats, Indices
from tamis.report.charts.chart import Axis, Chart, HeatStrip, VerticalLines, bucket_starts
from tamis.report.text import shorten

# Seen on white and on near-black; red, green, blue, opacity.
MAP_COLOURS = {
    "relevant, kept": (47, 127, 193, 255),
    "relevant, not kept": (128, 138, 148, 130),
    "kept, not relevant": (213, 94, 0, 255),
}
_LEVELS = 32

Frame: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class SelectionMap:
    """The selected features over time.

    Attributes
    ----------
    names : list of str
        The features selected most often, the most frequent first. Features that were ever relevant, if known, come
        before them, in the order of how long they were relevant.
    kept : ndarray of shape (n_shown,), float64
        Share of all steps at which the feature was selected, 0 to 1.
    shares : ndarray of shape (n_shown, n_buckets), float64
        The same within each bucket of time.
    relevant : ndarray of shape (n_shown, n_buckets), float64, or None
        Proportion of each section of the stream in which the feature was relevant, if known.
    n_ever : int
        Number of features that were ever selected.
    """

    names: list[str]
    kept: Floats
    shares: Floats
    relevant: Floats | None
    n_ever: int

    def chart(
        self,
        x: Axis,
        marks: Sequence[VerticalLines],
        chosen: Sequence[str],
        key: str,
        title: str,
        begin: float = 0.0,
    ) -> Chart:
        """Return the chart: a row of pixels for each feature, with the truth where known."""
        pixels, palette = self._pixels()
        colours = {} if self.relevant is None else MAP_COLOURS
        longest = np.argsort(-self.kept, kind="stable")[:10]
        said = ", ".join(f"{shorten(self.names[j], 40)} {self.kept[j]:.0%}" for j in longest)
        strip = HeatStrip(pixels, palette, begin, x.high, colours, self.shares)
        ends = set(chosen)
        return Chart(
            key, title, "by rows seen", f"Selected longest: {said}.", x, None, [*marks, strip], rows=self.names,
            shares=[_percent(share) for share in self.kept], chosen=[name in ends for name in self.names],
            row_height=26 if len(self.names) <= 12 else 17,
        )  # fmt: skip

    def _pixels(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return the map as pixels, and their colours, each red, green, blue and opacity.

        The opacity of a colour is the share of steps at which the feature was selected. Where the relevant features are
        known, the second half of the colours is for buckets in which the feature was relevant.
        """
        both, missed, extra = (np.array(colour) for colour in MAP_COLOURS.values())
        levels = np.rint(self.shares * (_LEVELS - 1)).astype(np.uint8)
        share = np.linspace(0, 1, _LEVELS)[:, None]
        plain = np.where(np.arange(4) < 3, both if self.relevant is None else extra, np.rint(255 * share))
        if self.relevant is None:
            return levels, plain.astype(np.uint8)
        relevant = np.rint((1 - share) * missed + share * both)
        pixels = levels + _LEVELS * (self.relevant >= 0.5).astype(np.uint8)
        return pixels, np.vstack([plain, relevant]).astype(np.uint8)


@dataclass(frozen=True)
class Change:
    """Features that entered and left in one step."""

    n_seen: int
    entered: list[str]
    left: list[str]

    @property
    def n_features(self) -> int:
        """Number of features that entered or left."""
        return len(self.entered) + len(self.left)


class SelectionHistory:
    """The changes of the selection of a run, and of the relevant features where they are known.

    Parameters
    ----------
    frames : dict of str to dict of str to ndarray
        Of a :class:`~tamis.evaluate.PrequentialResult`.
    names : list of str
        Names of the features.
    """

    def __init__(self, frames: Mapping[str, Frame], names: list[str]) -> None:
        self.steps, self.changes, self.names = frames["steps"], frames["changes"], names
        self.truth = frames.get("truth", {})

    def steps_in(self, events: Frame) -> Floats:
        """Return the number of steps at which each feature was in the set, from the changes of the set."""
        if not len(events.get("step", ())):
            return np.zeros(len(self.names))
        steps = self.steps["step"]
        left = len(steps) - np.searchsorted(steps, events["step"])
        sign = np.where(events["event"] == "enter", 1.0, -1.0)
        feature = np.asarray(events["feature"], np.intp)
        return np.bincount(feature, sign * left, len(self.names)).astype(np.float64)

    def map(
        self, max_features: int = 40, max_buckets: int = 400, features: Indices | None = None
    ) -> SelectionMap:
        """Return the map of the features that were selected most often, or of the given ones."""
        held, relevant = self.steps_in(self.changes), self.steps_in(self.truth)
        ever = np.flatnonzero(held + relevant)
        by_time = ever[np.lexsort((-held[ever], -relevant[ever]))][:max_features]
        order = by_time if features is None else features
        starts = bucket_starts(len(self.steps["step"]), max_buckets)
        return SelectionMap(
            [str(self.names[j]) for j in order],
            held[order] / max(len(self.steps["step"]), 1),
            self._shares(self.changes, order, starts),
            self._shares(self.truth, order, starts) if relevant.any() else None,
            int(np.count_nonzero(held)),
        )

    def _shares(self, events: Frame, shown: Indices, starts: Indices) -> Floats:
        """Return the share of each time bucket in which each feature was in the set."""
        steps = self.steps["step"]
        lengths = np.diff(np.append(starts, len(steps)))
        feature = np.asarray(events["feature"], np.intp)
        at = np.searchsorted(steps, events["step"])
        sign = np.where(events["event"] == "enter", 1, -1)
        row_of = np.full(len(self.names), -1)
        row_of[shown] = np.arange(len(shown))
        shares = np.empty((len(shown), len(starts)))
        order = np.argsort(row_of[feature], kind="stable")
        first = np.searchsorted(row_of[feature][order], np.arange(len(shown) + 1))
        for row in range(len(shown)):
            mine = order[first[row] : first[row + 1]]
            turns = np.bincount(at[mine], weights=sign[mine], minlength=len(steps))[: len(steps)]
            shares[row] = np.add.reduceat(np.cumsum(turns), starts) / lengths
        return shares

    def largest_changes(self, at_most: int, *, by_size: bool = False) -> list[Change]:
        """Return the latest changes of the set, or the largest; the first selection is not a change."""
        events = self.changes
        when, sizes = np.unique(events["step"], return_counts=True)
        order, ends = np.argsort(events["step"], kind="stable"), np.cumsum(sizes)
        candidates = np.arange(1, len(when))[::-1]
        if by_size:
            candidates = candidates[np.argsort(-sizes[candidates], kind="stable")]
        return [self._change(order[ends[i] - sizes[i] : ends[i]]) for i in candidates[:at_most]]

    def _change(self, rows: Indices) -> Change:
        at = np.searchsorted(self.steps["step"], self.changes["step"][rows[0]])
        names, events = self.changes["name"][rows], self.changes["event"][rows]
        return Change(
            int(self.steps["n_seen"][at]),
            *([str(name) for name in names[events == event]] for event in ("enter", "leave")),
        )

    def change_counts(self, at_most: int) -> tuple[Floats, Floats, Floats]:
        """Return the numbers of features that entered and left in buckets of batches, and the edges of these in rows.

        The first selection is excluded: it would dwarf the changes.
        """
        steps = self.steps
        later = steps["step"] != np.min(self.changes["step"])
        starts = bucket_starts(len(later), at_most)
        before = np.asarray(steps["n_seen"] - steps["n_rows"], np.float64)
        entered, left = (
            np.add.reduceat(np.where(later, steps[name], 0.0), starts) for name in ("n_entered", "n_left")
        )
        return entered, left, np.append(before[starts], float(steps["n_seen"][-1]))


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"
