"""The task of a run, the columns of its records, and the settings that reproduce it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn

import tamis
from tamis.evaluate.metrics.classification import MEASURES
from tamis.evaluate.metrics.regression import ERRORS
from tamis.options import RunOptions
from tamis.pipeline.selective_learner import is_regression_learner
from tamis.streams.stream import Stream

# -- the task of a run, and the columns of its records -----------------------------------------------------


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


def settings_of(stream: Stream, selector: Any, learner: Any, options: RunOptions) -> dict[str, Any]:
    """Return the settings that reproduce the run, and the drifts of the stream if known."""
    known = {"drifts": _numbers(stream, "drifts"), "drift_widths": _numbers(stream, "drift_widths")}
    return {
        "stream": stream.describe()
        | ({"delayed_features": dict(delayed)} if (delayed := stream.delayed_features) else {})
        | ({"missing": stream.missing} if stream.missing != "keep" else {}),
        **(known if hasattr(stream, "relevant_rows") else {}),
        # Before any row is read, as `tamis run` sees it.
        "categorical": features_of(stream, options)[1],
        "selector": _describe(selector),
        "learner": _describe(learner),
        "options": options.describe(),
        "versions": {
            "tamis": tamis.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def features_of(stream: Stream, options: RunOptions) -> tuple[list[str] | None, list[int]]:
    """Return the names of the features, and which of them are categories; time columns are not features."""
    names, categorical = stream.feature_names, [int(j) for j in stream.categorical]
    if names is None or not options.clock:
        return names, categorical
    kept = [j for j, name in enumerate(names) if name not in options.clock]
    return [names[j] for j in kept], [at for at, j in enumerate(kept) if j in categorical]


def _numbers(stream: Stream, name: str) -> list[float]:
    return [float(value) for value in getattr(stream, name, ())]


def _describe(model: Any) -> dict[str, Any] | None:
    if model is None:
        return None
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    known = {name: plain(value) for name, value in params.items()}
    return {"class": f"{type(model).__module__}.{type(model).__qualname__}", "params": known}


def plain(value: Any) -> Any:
    """Return a value as JSON: an estimator as its class and parameters, any other object as its repr."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: plain(one) for name, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    is_estimator = hasattr(value, "get_params") and not isinstance(value, type)
    return _describe(value) if is_estimator else {"repr": repr(value)}
