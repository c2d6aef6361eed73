"""What a run writes down: a row per step, per change of the selection, and per high score, as plain numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array
from tamis.evaluate.test_then_train.result import STEP_COLUMNS, WHOLE_NUMBERS, Frame

__all__ = ["RunLog"]

Numbers = NDArray[np.float64]


class Table:
    """Rows of numbers in one array that doubles when it is full.

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
    def rows(self) -> Numbers:
        """The rows so far, shape (n, n_columns)."""
        return self._array[: self._n]

    @rows.setter
    def rows(self, rows: Numbers) -> None:
        self._array, self._n = rows, len(rows)

    def more(self, n: int) -> Numbers:
        """Return `n` new rows, to be filled."""
        start, self._n = self._n, self._n + n
        if self._n > len(self._array):
            longer = np.empty((max(self._n, 2 * len(self._array)), self._array.shape[1]))
            longer[:start] = self._array[:start]
            self._array = longer
        return self._array[start : self._n]


class RunLog:
    """The tables of a run."""

    def __init__(self) -> None:
        self.steps = Table(len(STEP_COLUMNS))
        self.changes = Table(3)  # step, feature, 1 for enter or 0 for leave
        self.scores = Table(3)  # step, feature, score
        self.truth = Table(3)  # as `changes`, of the relevant features where they are known

    def add_step(self, values: tuple[float, ...]) -> None:
        """Write the values of a step, in the order of `STEP_COLUMNS`."""
        self.steps.more(1)[0] = values

    def add_changes(self, step: int, features: Array, entered: Array) -> None:
        """Write which columns changed, and whether each entered the selection or left it."""
        _fill(self.changes, step, features, entered)

    def add_truth(self, step: int, features: Array, entered: Array) -> None:
        """Write which columns became relevant or ceased to be."""
        if len(features):
            _fill(self.truth, step, features, entered)

    def add_scores(self, step: int, features: Array, scores: Array) -> None:
        """Write the scores of some columns."""
        _fill(self.scores, step, features, scores)

    def frames(self, names: list[str]) -> dict[str, Frame]:
        """Return the tables by column, with the names of the features."""
        labels = np.array(names, dtype=object)
        columns = zip(STEP_COLUMNS, self.steps.rows.T, strict=True)
        at, scored, score = self.scores.rows.T
        return {
            "steps": {
                name: column.astype(np.int64 if name in WHOLE_NUMBERS else float) for name, column in columns
            },
            "changes": _events(self.changes, labels),
            "truth": _events(self.truth, labels),
            "scores": {**_place(at, scored, labels), "score": score.copy()},
        }

    def state(self) -> dict[str, Numbers]:
        """Return all there is to save."""
        return {kind: table.rows for kind, table in vars(self).items()}

    def restore(self, state: dict[str, Numbers]) -> None:
        """Take back what was saved."""
        for kind, rows in state.items():
            getattr(self, kind).rows = rows


def _fill(table: Table, step: int, features: Array, last: Array) -> None:
    rows = table.more(len(features))
    rows[:, 0], rows[:, 1], rows[:, 2] = step, features, last


def _events(table: Table, labels: Array) -> Frame:
    step, feature, event = table.rows.T
    return {
        **_place(step, feature, labels),
        "event": np.where(event == 1, "enter", "leave").astype(object),
    }


def _place(step: Array, feature: Array, labels: Array) -> Frame:
    features = feature.astype(np.int64)
    return {"step": step.astype(np.int64), "feature": features, "name": labels[features]}
