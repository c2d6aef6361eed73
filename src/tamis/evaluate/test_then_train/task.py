"""What a run predicts, classes or numbers, and so what is recorded of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import is_regressor

from tamis.base import RowSelector
from tamis.catalog import CATALOG
from tamis.evaluate.metrics.classification import MEASURES
from tamis.evaluate.metrics.regression import ERRORS

__all__ = ["CLASSIFICATION", "REGRESSION", "Task", "task_named", "task_of"]


@dataclass(frozen=True)
class Task:
    """What a run predicts.

    Attributes
    ----------
    name : {"classification", "regression"}
    measure : str
        What each batch, and the baselines that learn, are judged by.
    recovers_by : str
        The column by which a run is back after a drift: more is better.
    measures : tuple of str
        Told of all rows and of the last ones.
    columns : tuple of str
        Of the frame of the steps.

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
            *(f"{name}_{scope}" for scope in scopes for name in (f"random_{self.measure}", "random_spread")),
            *(f"all_{self.measure}_{scope}" for scope in scopes),
            "selection_accuracy", "rsr", "cucp", "stability", "stability_low", "stability_high",
            "n_selected", "n_entered", "n_left", "seconds_select", "seconds_predict", "seconds_learn",
            "seconds_baselines", "seconds_total", "memory_bytes", "model_bytes",
        )  # fmt: skip

    @property
    def totals(self) -> tuple[str, ...]:
        """What is told of the whole run: names of columns that have a ``_cumulative``."""
        return (*self.measures, *self.ranks, f"random_{self.measure}", "random_spread", f"all_{self.measure}")


CLASSIFICATION = Task(
    "classification", "accuracy", "accuracy_windowed", MEASURES,
    ("auc", "average_precision", "recall_at_precision"),
)  # fmt: skip
REGRESSION = Task("regression", "mae", "r2_windowed", ERRORS)


def task_named(name: str) -> Task:
    """Return the task of a name."""
    return REGRESSION if name == REGRESSION.name else CLASSIFICATION


def task_of(selector: Any, learner: Any) -> Task:
    """Return what is predicted: as the learner says, or without one the selector; what y looks like says nothing.

    Raises
    ------
    ValueError
        If the two do not go together.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron, SGDRegressor
    >>> task_of(None, SGDRegressor()).name, task_of(None, None).name
    ('regression', 'classification')
    >>> from tamis import FIRES
    >>> task_of(FIRES(), SGDRegressor())
    Traceback (most recent call last):
    ...
    ValueError: SGDRegressor predicts numbers, but FIRES is set to learn classes: choose FIRES(model='gaussian').
    """
    is_own = isinstance(selector, RowSelector)
    if learner is None:
        return REGRESSION if is_own and selector._is_regression() else CLASSIFICATION
    task = REGRESSION if _predicts_numbers(learner) else CLASSIFICATION
    if is_own and selector._is_regression() != (task is REGRESSION):
        given, kind = type(learner).__name__, type(selector).__name__
        says = ("numbers", "classes") if task is REGRESSION else ("classes", "numbers")
        raise ValueError(
            f"{given} predicts {says[0]}, but {kind} is set to learn {says[1]}: choose {_advice(kind, task)}."
        )
    return task


def _predicts_numbers(learner: Any) -> bool:
    try:
        return bool(is_regressor(learner))
    except (AttributeError, TypeError):  # somebody else's, without scikit-learn's tags
        return False


def _advice(kind: str, task: Task) -> str:
    if task is CLASSIFICATION:
        return "a regressor"
    told = next((dict(entry.regression) for entry in CATALOG if entry.name == kind), {})
    if told:
        return f"{kind}({', '.join(f'{name}={value!r}' for name, value in told.items())})"
    known = [entry.name for entry in CATALOG if entry.family == "rows" and "regression" in entry.targets]
    return f"one of {', '.join(known)}"
