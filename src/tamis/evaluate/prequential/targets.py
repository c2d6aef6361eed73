"""Prequential evaluation for several targets of the same rows: one run for each, and the union of their selections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tamis._shapes import state_error
from tamis._validation import as_table, is_integer, short_repr
from tamis.base.per_target import columns_of_targets, is_numeric_target, of_target
from tamis.evaluate.prequential.loop import make_run, prequential
from tamis.evaluate.prequential.presentation import MEASURES
from tamis.evaluate.prequential.result import PrequentialResult, Step
from tamis.evaluate.prequential.run import batches_of
from tamis.options import RunOptions
from tamis.report import Chart, Section, Table
from tamis.report.charts.chart import Line, axis, limits, row_count_axis, trend
from tamis.report.shared_selection import SharedSelection

_MOST_LINES = 6  # of a chart


class TargetsResult(SharedSelection):
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
        self.results = dict(results)
        names = dict.fromkeys(name for one in results.values() for name in one.feature_names)
        # Without a selector, all are needed.
        super().__init__(
            {target: one.selected() or one.feature_names for target, one in results.items()}, list(names)
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
        return super().to_dict() | {"by_target": {name: one.to_dict() for name, one in self.results.items()}}

    def save(self, folder: Any) -> None:
        """Save the result of each target into a folder of its name.

        Parameters
        ----------
        folder : path-like
        """
        for name, result in self.results.items():
            result.save(Path(folder) / name)


class TargetSteps(NamedTuple):
    """The steps of the targets that were tested in one batch.

    Attributes
    ----------
    n_seen : int
        Number of rows with any target.
    of_target : dict of str to Step
    """

    n_seen: int
    of_target: dict[str, Step]


class _TargetStream:
    """A stream of several targets, as the run of one of them sees it."""

    def __init__(self, stream: Any, target: str) -> None:
        self._stream, self._target = stream, target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def describe(self) -> dict[str, Any]:
        """Return path and options, with the target as the label."""
        return self._stream.describe() | {"label": self._target}

    def position(self) -> None:
        """Return no position: that of the stream is saved once."""


class TargetRuns:
    """The runs of several targets on one pass of a stream; each uses the rows that have its target.

    Parameters
    ----------
    stream : Stream
        Its `y` has a column for each target, None where a target is missing.
    models : dict of str to (selector, learner)
        For each target, in the order of the columns.
    options : RunOptions
    """

    def __init__(self, stream: Any, models: Mapping[str, tuple[Any, Any]], options: RunOptions) -> None:
        self.stream, self.options, self.n_seen, self.n_steps = stream, options, 0, 0
        self.runs = {
            name: make_run(_TargetStream(stream, name), *pair, options, None) for name, pair in models.items()
        }
        self.is_consistent = True
        self._tested: list[str] = []  # in the last batch
        of_each = {name: run.settings for name, run in self.runs.items()}
        keys = next(iter(of_each.values()))
        self.settings = {key: {name: one[key] for name, one in of_each.items()} for key in keys}
        self.settings["stream"] = stream.describe()

    @property
    def takes_missing(self) -> bool:
        """Whether the models of all targets take missing values."""
        return all(run.takes_missing for run in self.runs.values())

    @property
    def interrupted(self) -> bool:
        """Whether the runs were interrupted."""
        return any(run.interrupted for run in self.runs.values())

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        for run in self.runs.values():
            run.interrupted = value

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Defer interrupts within this context."""
        self.is_consistent = False
        try:
            yield
        finally:
            self.is_consistent = True

    def batches(self) -> Iterator[Any]:
        """Yield the batches up to the last row to read."""
        return batches_of(self.stream, self.options, self.n_seen)

    def process_batch(self, X: Any, y: Any) -> None:
        """Test and train the models of each target on the rows that have it."""
        self.is_consistent, self._tested = False, []
        for labels, (name, run) in zip(y.T, self.runs.items(), strict=True):
            known = np.array([label is not None for label in labels])
            if known.any():
                run.start_clock()
                process = run.process_block if self.options.batch_size == "auto" else run.process_batch
                with of_target(name):
                    process(X[known], np.array(labels[known].tolist()))
                self._tested += [name] if run.n_steps else []
        self.n_seen += len(y)
        self.n_steps += any(run.n_steps for run in self.runs.values())
        self.is_consistent = True

    process_block = process_batch

    def step(self) -> TargetSteps:
        """Return the steps of the last batch for a callback."""
        return TargetSteps(self.n_seen, {name: self.runs[name].step() for name in self._tested})

    def result(self) -> TargetsResult:
        """Return the results so far, of the targets that were tested."""
        return TargetsResult({name: run.result() for name, run in self.runs.items() if run.n_steps})

    def state(self) -> dict[str, Any]:
        """Return the state needed to resume from here."""
        return {
            "runs": {name: run.state() for name, run in self.runs.items()}, "n_seen": self.n_seen,
            "n_steps": self.n_steps, "position": self.stream.position(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state.

        Raises
        ------
        StateError
            If no run can reach this state.
        """
        runs: Any = state.get("runs")
        counts = [state.get(name, -1) for name in ("n_seen", "n_steps")]
        is_valid = isinstance(runs, dict) and set(runs) == set(self.runs)
        if not (is_valid and all(is_integer(n) and n >= 0 for n in counts)):
            raise state_error("The saved runs are not those of these targets")
        if (position := state.get("position")) is not None:
            self.stream.seek(position)
        for name, run in self.runs.items():
            run.restore(runs[name])
        self.n_seen, self.n_steps = counts

    def user_classes(self) -> list[type]:
        """Return the user-defined classes that a checkpoint may contain."""
        return [one for run in self.runs.values() for one in run.user_classes()]


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
