"""The records of a run: a row per step, per change of the selection, and per high score, as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis._validation import Array, Floats
from tamis.errors import StateError
from tamis.evaluate.prequential.result import WHOLE_NUMBERS, Frame
from tamis.evaluate.prequential.settings import CLASSIFICATION, Task, result_columns

_LARGEST = 2.0**53  # exact integer


class Table:
    """Rows of numbers in one array whose capacity doubles when it is full.

    Examples
    --------
    >>> table = Table(2)
    >>> table.more(1)[:] = 1, 2
    >>> table.rows
    array([[1., 2.]])
    """

    def __init__(self, n_columns: int) -> None:
        self._array, self._n = np.empty((64, n_columns)), 0

    @property
    def rows(self) -> Floats:
        """The rows so far, shape (n, n_columns)."""
        return self._array[: self._n]

    @rows.setter
    def rows(self, rows: Floats) -> None:
        self._array, self._n = rows, len(rows)

    def more(self, n: int) -> Floats:
        """Append `n` rows and return them to be filled."""
        start, self._n = self._n, self._n + n
        if self._n > len(self._array):
            longer = np.empty((max(self._n, 2 * len(self._array)), self._array.shape[1]))
            longer[:start] = self._array[:start]
            self._array = longer
        return self._array[start : self._n]


class RunLog:
    """The tables of a run.

    Parameters
    ----------
    max_steps : int, optional
        Maximum number of steps, at which they are thinned. One step then represents 2, 4, 8 or more: counts and
        durations are summed, the accuracy (or error) of the batches is averaged, and a feature that entered and left
        within it is not recorded.
    task : Task, default=CLASSIFICATION
        The prediction task.
    metrics : sequence of str, default=()
        Names of further metrics.

    Examples
    --------
    >>> log = RunLog(max_steps=8)
    >>> for step in range(8):
    ...     log.add_step((step, 10 * step, 10, *[0.0] * (len(CLASSIFICATION.columns) - 3)))
    >>> log.steps.rows[:, :3].tolist()
    [[3.0, 30.0, 40.0], [7.0, 70.0, 40.0]]
    """

    def __init__(
        self, max_steps: int | None = None, task: Task = CLASSIFICATION, metrics: Sequence[str] = ()
    ) -> None:
        self.max_steps, self.columns, self.measure = max_steps, result_columns(task, metrics), task.measure
        self.at_total = self.columns.index("seconds_total")
        self.steps = Table(len(self.columns))
        self.changes = Table(3)  # step, feature, 1 for enter or 0 for leave
        self.scores = Table(3)  # step, feature, score
        self.truth = Table(3)  # as `changes`, of the relevant features where they are known

    def add_step(self, values: tuple[float, ...]) -> None:
        """Write the values of a step, in the order of the columns of the task."""
        self.steps.more(1)[0] = values
        if self.max_steps is not None and len(self.steps.rows) >= self.max_steps:
            self._thin(self.max_steps // 2)

    def add_changes(self, step: int, features: Array, entered: Array) -> None:
        """Record which features entered and left the selection."""
        _fill(self.changes, step, features, entered)

    def add_truth(self, step: int, features: Array, entered: Array) -> None:
        """Record which features became relevant or irrelevant."""
        if len(features):
            _fill(self.truth, step, features, entered)

    def add_scores(self, step: int, features: Array, scores: Array) -> None:
        """Record the scores of some features."""
        _fill(self.scores, step, features, scores)

    def _thin(self, max_steps: int) -> None:
        """Keep at most `max_steps` steps, evenly spaced, and their records."""
        steps = self.steps.rows
        first, last = steps[0, 0], steps[-1, 0]
        stride = 1
        while (last - first) // stride + 2 > max_steps:
            stride *= 2
        groups = steps[:, 0] // stride
        ends = np.append(np.flatnonzero(np.diff(groups)), len(groups) - 1)
        starts = np.append(0, ends[:-1] + 1)
        kept = steps[ends]
        summed = [j for j, name in enumerate(self.columns) if name in _COUNTS or name.startswith("seconds_")]
        kept[:, summed] = np.add.reduceat(steps[:, summed], starts, axis=0)
        score, rows = self.columns.index(self.measure), self.columns.index("n_rows")
        whole = np.add.reduceat(steps[:, score] * steps[:, rows], starts)
        kept[:, score] = whole / np.maximum(kept[:, rows], 1.0)
        self.steps.rows = kept
        for table in (self.changes, self.truth):
            table.rows = _net(table.rows, kept[:, 0])
        self.scores.rows = _last_scores(self.scores.rows, kept[:, 0])

    def frames(self, names: list[str]) -> dict[str, Frame]:
        """Return the tables by column, with the names of the features."""
        labels = np.array(names, dtype=object)
        columns = zip(self.columns, self.steps.rows.T, strict=True)
        at, scored, score = self.scores.rows.T
        return {
            "steps": {
                name: column.astype(np.int64 if name in WHOLE_NUMBERS else float) for name, column in columns
            },
            "changes": _events(self.changes, labels),
            "truth": _events(self.truth, labels),
            "scores": {**_place(at, scored, labels), "score": score.copy()},
        }

    def state(self) -> dict[str, Floats]:
        """Return the state to be saved."""
        return {kind: getattr(self, kind).rows for kind in ("steps", "changes", "scores", "truth")}

    def restore(self, state: dict[str, Floats]) -> None:
        """Restore a saved state."""
        for kind, rows in state.items():
            getattr(self, kind).rows = rows

    def check_state(self, n_features: int, n_steps: int) -> None:
        """Reject tables whose features or steps do not match those of the run.

        Raises
        ------
        StateError
            If there is one.
        """
        whole = [j for j, name in enumerate(self.columns) if name in WHOLE_NUMBERS]
        steps, others = self.steps.rows, (self.changes, self.scores, self.truth)
        fits = bool(
            steps.shape[1:] == (len(self.columns),)
            and ((steps[:, whole] >= 0) & (steps[:, whole] < _LARGEST)).all()
            and (np.diff(steps[:, 0]) > 0).all()
            and (steps[:, 0] < n_steps).all()
        )
        for table in others:
            fits = fits and bool(
                table.rows.shape[1:] == (3,)
                and ((table.rows[:, :2] >= 0) & (table.rows[:, :2] < [n_steps + 1, n_features])).all()
                and (table.rows[:, 1] % 1 == 0).all()
            )
        if not fits:
            raise StateError(
                "A table of a saved run has rows of other features or steps: the checkpoint was changed from outside,"
                " so choose another file, or remove it."
            )


_COUNTS = ("n_rows", "n_entered", "n_left")


def _net(events: Floats, steps: Floats) -> Floats:
    """Return the net changes from one kept step to the next."""
    if not len(events):
        return events
    at = np.searchsorted(steps, events[:, 0])
    order = np.lexsort((np.arange(len(events)), events[:, 1], at))
    step, feature = at[order], events[order, 1]
    is_last = np.append((np.diff(step) != 0) | (np.diff(feature) != 0), True)
    n_events = np.diff(np.append(-1, np.flatnonzero(is_last)))
    kept: Floats = events[order[is_last][n_events % 2 == 1]]
    kept[:, 0] = steps[np.searchsorted(steps, kept[:, 0])]
    return kept


def _last_scores(scores: Floats, steps: Floats) -> Floats:
    """Return the last scores until each kept step, and those of later steps, which have no record yet."""
    at = np.searchsorted(steps, scores[:, 0])
    latest = np.zeros(len(steps) + 1)
    np.maximum.at(latest, at, scores[:, 0])
    is_kept = (scores[:, 0] == latest[at]) | (at == len(steps))
    at = at[is_kept]
    kept: Floats = scores[is_kept]
    kept[:, 0] = np.where(at < len(steps), steps[np.minimum(at, len(steps) - 1)], kept[:, 0])
    return kept


def _fill(table: Table, step: int, features: Array, last: Array) -> None:
    rows = table.more(len(features))
    rows[:, 0], rows[:, 1], rows[:, 2] = step, features, last


def _events(table: Table, labels: Array) -> Frame:
    step, feature, event = table.rows.T
    return {**_place(step, feature, labels), "event": np.where(event == 1, "enter", "leave").astype(object)}


def _place(step: Array, feature: Array, labels: Array) -> Frame:
    features = feature.astype(np.int64)
    return {"step": step.astype(np.int64), "feature": features, "name": labels[features]}
