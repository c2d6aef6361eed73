"""Prequential evaluation for several targets of the same rows: one run for each, and the union of their selections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis._validation import Mask, as_table, short_repr
from tamis.base.per_target import columns_of_targets, is_numeric_target
from tamis.evaluate.prequential.loop import prequential
from tamis.evaluate.prequential.presentation import MEASURES
from tamis.evaluate.prequential.result import PrequentialResult
from tamis.report import Chart, Result, Section, Table
from tamis.report.charts.chart import Line, axis, limits, row_count_axis, trend

_MOST_LINES = 6  # of a chart


class TargetsResult(Result):
    """The results of runs for several targets.

    Parameters
    ----------
    results : dict of str to PrequentialResult
        The run of each target, on the same features.

    Attributes
    ----------
    results : dict of str to PrequentialResult
    targets : list of str
    feature_names : list of str
    support_by_target : ndarray of shape (n_targets, n_features), bool
        The features selected for each target at the end.
    """

    def __init__(self, results: Mapping[str, PrequentialResult]) -> None:
        self.results, self.targets = dict(results), list(results)
        self.feature_names = list(
            dict.fromkeys(name for one in results.values() for name in one.feature_names)
        )
        kept = [one.selected() or one.feature_names for one in results.values()]  # no selector: all
        self.support_by_target: Mask = np.array([np.isin(self.feature_names, some) for some in kept])

    def heading(self) -> str:
        """Return the heading of the page."""
        return f"{len(self.targets)} targets"

    def selected(self) -> list[str]:
        """Return the features that are selected for any target at the end."""
        return [self.feature_names[j] for j in np.flatnonzero(self.support_by_target.any(axis=0))]

    def verdict(self) -> str:
        """Return how many features all targets need."""
        sizes = self.support_by_target.sum(axis=1)
        each = f"{sizes.min()} to {sizes.max()}" if sizes.min() < sizes.max() else f"{sizes.max()}"
        return (
            f"{len(self.selected())} of {len(self.feature_names)} features serve {len(self.targets)} targets, which"
            f" need {each} each, {sizes.sum()} in all."
        )

    def tables(self) -> list[Table]:
        """Return a table of the targets, and one of the shared selection."""
        rows = []
        for name, result in self.results.items():
            total, measure = result.summary(), result.task.measure
            value = total[f"{measure}_cumulative" if f"{measure}_cumulative" in total else measure]
            gains = [total.get(f"{kind}_gain", np.nan) for kind in ("all", "frozen")]
            values = [value, *gains, total["n_selected"]]
            cells = ["-" if np.isnan(one) else f"{round(one, 4) + 0.0:.4g}" for one in values]
            rows.append([name, measure, *cells])
        heads = [
            ("", "target"), ("", "measure"), ("n", "value"), ("n", "gain over all"), ("n", "over frozen"),
            ("n", "features"),
        ]  # fmt: skip
        return [Table("Targets", heads, rows, is_main=True), self.shared_table()]

    def shared_table(self) -> Table:
        """Return a table of the shared selection: for which targets each feature is selected."""
        by_use = np.argsort(-self.support_by_target.sum(axis=0), kind="stable").tolist()
        shared = [
            [self.feature_names[j], ", ".join(np.array(self.targets)[self.support_by_target[:, j]].tolist())]
            for j in by_use
            if self.support_by_target[:, j].any()
        ]
        return Table("Shared selection", [("", "feature"), ("long", "selected for")], shared, is_main=True)

    def charts(self) -> list[Chart]:
        """Return the course of each measure, with a line for each of six targets at most, those with the worst end."""
        charts, worst_first = [], {"mae": -1.0}
        for measure in dict.fromkeys(one.task.measure for one in self.results.values()):
            lines = [
                Line(steps["n_seen"], steps[f"{measure}_windowed"], name, 1)
                for name, one in self.results.items()
                if one.task.measure == measure
                for steps in [one.frames["steps"]]
            ]
            lines.sort(key=lambda line: worst_first.get(measure, 1.0) * float(line.y[-1]))
            shown = [replace(line, style=at + 1) for at, line in enumerate(lines[:_MOST_LINES])]
            rows = max(float(line.x[-1]) for line in shown)
            said = "; ".join(f"{line.name}: {trend(line.y)}" for line in shown)
            kept = f", the {len(shown)} worst of {len(lines)} targets" if len(lines) > len(shown) else ""
            within = (0.0, np.inf if measure == "mae" else 1.0)
            charts.append(
                Chart(
                    f"targets-{measure}", MEASURES[measure], f"by rows seen{kept}", f"{said}. Horizontal: rows seen.",
                    row_count_axis(rows), axis(*limits(*(line.y for line in shown), within=within)), shown,
                    is_main=True,
                )
            )  # fmt: skip
        return charts

    def sections(self) -> list[Section]:
        """Return the course of the measures, and the tables."""
        return [Section("targets", "Targets", [*self.charts(), *self.tables()])]

    def remarks(self) -> list[str]:
        """Return the verdict of each target."""
        return [f"{name}: {result.verdict()}" for name, result in self.results.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return the result in plain values: the targets, the shared selection, and the result of each target."""
        return {
            "verdict": self.verdict(),
            "remarks": self.remarks(),
            "targets": self.targets,
            "selected": self.selected(),
            "by_target": {name: result.to_dict() for name, result in self.results.items()},
        }

    def save(self, folder: Any) -> None:
        """Save the result of each target into a folder of its name.

        Parameters
        ----------
        folder : path-like
        """
        for name, result in self.results.items():
            result.save(Path(folder) / name)


def prequential_by_target(
    data: Any,
    selector: Any = None,
    learner: Any = None,
    *,
    labels: Sequence[str] | None = None,
    **options: Any,
) -> TargetsResult:
    """Evaluate a selector and a learner for each of several targets, and return the runs and their shared selection.

    Parameters
    ----------
    data : frame, or pair (X, Y)
        A frame with the columns `labels`, or rows and targets of shape (n_rows, n_targets).
    selector, learner : estimator, optional
        As for :func:`prequential`; each target gets clones. A target of numbers that are not whole is a regression.
    labels : list of str, optional
        Columns of the frame that are targets; none of them is a feature.
    **options
        Of :func:`prequential`.

    Returns
    -------
    TargetsResult

    Raises
    ------
    ValueError
        If a label is not a column of the frame, or `labels` is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from tamis import TScore
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(1000, 8)), columns=list("abcdefgh"))
    >>> frame["hot"], frame["dry"] = frame.a + frame.b > 0, frame.b - frame.c > 0
    >>> result = prequential_by_target(frame, TScore(2), labels=["hot", "dry"])
    >>> result.selected(), result.support_by_target.sum(axis=1)
    (['a', 'b', 'c'], array([2, 2]))
    """
    results = {}
    for name, stream, own in streams_of_targets(data, labels):
        one, model = (None if given is None else clone(given) for given in (selector, learner))
        results[name] = prequential(stream, one, model, **{**own, **options})
    return TargetsResult(results)


def streams_of_targets(
    data: Any, labels: Sequence[str] | None = None
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the name of each target, a stream of the features with this target alone, and its keywords.

    Parameters
    ----------
    data : frame, or pair (X, Y)
    labels : list of str, optional
        Columns of the frame that are targets.

    Raises
    ------
    ValueError
        If a label is not a column of the frame, or `labels` is missing.
    """
    if isinstance(data, tuple):
        columns, names = columns_of_targets(data[1], len(data[1]))
        names = names or [f"y{at}" for at in range(len(columns))]
        parts: list[tuple[Any, dict[str, Any]]] = [((data[0], column), {}) for column in columns]
    else:
        table = as_table(data)
        if table is None or not labels:
            raise ValueError(
                f"Pass a frame and labels, the names of its target columns, or (X, Y); got {short_repr(data)}."
            )
        if unknown := [name for name in labels if name not in table.texts]:
            raise ValueError(
                f"labels names {unknown[0]!r}, which is not a column: {short_repr(table.texts)}."
            )
        names, features = list(labels), [j for j, name in enumerate(table.texts) if name not in labels]
        places = [table.texts.index(name) for name in names]
        columns = [table.column(place).to_numpy() for place in places]
        parts = [
            (table.take(sorted([*features, place])).native, {"label": name})
            for name, place in zip(names, places, strict=True)
        ]
    for name, column, (stream, own) in zip(names, columns, parts, strict=True):
        yield name, stream, own | ({"task": "regression"} if is_numeric_target(column) else {})
