"""Numbers for the panels of a comparison: curves averaged over seeds, and selected and relevant features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.evaluate import ExperimentResult, PrequentialResult
from tamis.report.run.numbers import Numbers, SelectionMap, drift_rows, selection_map, steps_in

__all__ = ["Curve", "StreamMaps", "drifts_of", "mean_curves", "selection_maps"]

_MOST_LINES = 6  # of one figure: more colours cannot be distinguished


@dataclass(frozen=True, eq=False)
class Curve:
    """A column of the steps of one method on one stream.

    Attributes
    ----------
    method : str
    at : ndarray of shape (n_steps,)
        Rows seen.
    mean, low, high : ndarray of shape (n_steps,)
        Over seeds; from the mean less the deviation to the mean and the deviation.
    n_seeds : int
    """

    method: str
    at: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers
    n_seeds: int

    @property
    def level(self) -> float:
        """Mean over the steps."""
        return float(np.nanmean(self.mean))


def mean_curves(result: ExperimentResult, column: str) -> dict[str, list[Curve]]:
    """Return for each stream the curves of the methods that have values, the highest six; in the methods' order."""
    frame = result.curves(column)
    output: dict[str, list[Curve]] = {}
    for stream in result.streams:
        curves = []
        for method in result.methods:
            mine = (frame["stream"] == stream) & (frame["method"] == method)
            curve = _curve(method, {name: values[mine] for name, values in frame.items()}, column)
            if curve is not None:
                curves.append(curve)
        best = sorted(curves, key=lambda curve: -curve.level)[:_MOST_LINES]
        output[stream] = [curve for curve in curves if curve in best]
    return output


def _curve(method: str, frame: dict[str, Any], column: str) -> Curve | None:
    seeds = list(dict.fromkeys(frame["seed"].tolist()))
    values = [frame[column][frame["seed"] == seed] for seed in seeds]
    values = [one for one in values if np.isfinite(one).any()]
    if not values:
        return None
    n = min(len(one) for one in values)
    table = np.array([one[:n] for one in values], dtype=np.float64)
    mean = table.mean(axis=0)
    deviation = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(n, np.nan)
    at = np.asarray(frame["n_seen"][frame["seed"] == seeds[0]][:n], dtype=np.float64)
    return Curve(method, at, mean, mean - deviation, mean + deviation, len(table))


def drifts_of(result: ExperimentResult, stream: str) -> Numbers:
    """Return the rows at which a stream drifts, if known and reached by a run."""
    for method in result.methods:
        if len(result.finished(stream, method)):
            return drift_rows(result.run(stream, method))
    return np.empty(0)


@dataclass(frozen=True)
class StreamMaps:
    """The features that each method selected on a stream, and the relevant ones.

    Attributes
    ----------
    seed : int
        Of the runs: another seed may be another stream.
    runs : dict of str to PrequentialResult
        By method; those that selected something.
    maps : dict of str to SelectionMap
        By method, all of the same features.
    n_more : int
        Features that were kept by some method and are not shown.
    """

    seed: int
    runs: dict[str, PrequentialResult]
    maps: dict[str, SelectionMap]
    n_more: int


def selection_maps(
    result: ExperimentResult, stream: str, max_features: int = 24, max_buckets: int = 200
) -> StreamMaps | None:
    """Return the maps of a stream, of the first seed for which there is a run; None if nothing was selected."""
    seeds = result.cells["seed"]
    done = {method: result.finished(stream, method) for method in result.methods}
    seed = min((int(seeds[at].min()) for at in done.values() if len(at)), default=0)
    runs = {method: result.run(stream, method, seed) for method, at in done.items() if seed in seeds[at]}
    runs = {method: run for method, run in runs.items() if len(run.frames["changes"]["step"])}
    if not runs:
        return None
    shown, n_more = _choose_features(list(runs.values()), max_features)
    maps = {
        method: selection_map(run, max_buckets=max_buckets, features=shown) for method, run in runs.items()
    }
    return StreamMaps(seed, runs, maps, n_more)


def _choose_features(runs: list[PrequentialResult], at_most: int) -> tuple[NDArray[np.intp], int]:
    """Return the features to show, relevant ones first, in the order of time, and how many others were kept."""
    truth = runs[0].frames["truth"]
    relevant = list(dict.fromkeys(truth["feature"][truth["event"] == "enter"].tolist()))[:at_most]
    held = np.sum([steps_in(run, run.frames["changes"]) for run in runs], axis=0)
    longest = [int(j) for j in np.argsort(-held, kind="stable") if held[j] > 0 and j not in set(relevant)]
    others = longest[: max(at_most - len(relevant), 4)]
    return np.array([*relevant, *others], dtype=np.intp), len(longest) - len(others)
