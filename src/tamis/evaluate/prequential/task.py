"""The task of a run, classification or regression, and the columns of its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis.evaluate.metrics.classification import MEASURES
from tamis.evaluate.metrics.regression import ERRORS
from tamis.pipeline.selective_learner import is_regression_learner


@dataclass(frozen=True)
class Task:
    """The prediction task of a run.

    Attributes
    ----------
    name : {"classification", "regression"}
    measure : str
        The measure of each batch and of the baselines.
    recovers_by : str
        The column that defines recovery from a drift; larger is better.
    measures : tuple of str
        Measures reported over all rows and over the window.
    columns : tuple of str
        Columns of the frame of the steps.

    Examples
    --------
    >>> CLASSIFICATION.columns[3:5], REGRESSION.columns[3:5]
    (('accuracy', 'accuracy_cumulative'), ('mae', 'mae_cumulative'))
    """

    name: str
    measure: str
    recovers_by: str
    measures: tuple[str, ...]
    ranks: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the frame of the steps."""
        scopes = ("cumulative", "windowed")
        return (
            "step", "n_seen", "n_rows", self.measure,
            *(f"{name}_{scope}" for scope in scopes for name in self.measures),
            *(f"{name}_{scope}" for name in self.ranks for scope in scopes),
            *(
                column
                for measure, spread in self.baselines
                for column in (
                    *(f"{name}_{scope}" for scope in scopes for name in (f"random_{measure}", spread)),
                    *(f"all_{measure}_{scope}" for scope in scopes),
                    *(f"frozen_{measure}_{scope}" for scope in scopes),
                )
            ),
            "selection_accuracy", "rsr", "cucp", "stability",
            "n_selected", "n_entered", "n_left", "seconds_select", "seconds_predict", "seconds_learn",
            "seconds_baselines", "seconds_total", "seconds_read", "seconds_compile", "seconds_run",
            "memory_bytes", "model_bytes",
        )  # fmt: skip

    @property
    def baselines(self) -> tuple[tuple[str, str], ...]:
        """The measures of the baselines, and the name of their spread over the random draws."""
        return ((self.measure, "random_spread"), *((("auc", "random_auc_spread"),) if self.ranks else ()))

    @property
    def totals(self) -> tuple[str, ...]:
        """Measures over the whole run: names of columns with a ``_cumulative`` counterpart."""
        beside = (
            (f"random_{measure}", spread, f"all_{measure}", f"frozen_{measure}")
            for measure, spread in self.baselines
        )
        return (*self.measures, *self.ranks, *(name for names in beside for name in names))


CLASSIFICATION = Task(
    "classification", "accuracy", "accuracy_windowed", MEASURES,
    ("auc", "average_precision", "recall_at_precision", "macro_auc"),
)  # fmt: skip
REGRESSION = Task("regression", "mae", "r2_windowed", ERRORS)


def result_columns(task: Task, metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the frame of the steps, with those of further metrics; a name may stand for a measure."""
    further = (f"{name}_{scope}" for name in metrics for scope in ("cumulative", "windowed"))
    return tuple(dict.fromkeys((*task.columns, *further)))


def find_task(name: str) -> Task:
    """Return the task of a name."""
    return REGRESSION if name == REGRESSION.name else CLASSIFICATION


def task_of(selector: Any, learner: Any) -> Task:
    """Return the task, determined by the learner, or without one by the selector, never by y.

    Raises
    ------
    ValueError
        If the two disagree.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron, SGDRegressor
    >>> task_of(None, SGDRegressor()).name, task_of(None, None).name
    ('regression', 'classification')
    """
    return REGRESSION if is_regression_learner(selector, learner) else CLASSIFICATION
