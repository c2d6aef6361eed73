"""The outputs of any model for a batch, and the loss of each output.

A model is an object with `predict_proba`, `decision_function` or `predict`, a River model (`predict_proba_one`,
`predict_one`), or a function of an array of shape (n_rows, n_features). Outputs are an array whose last axis has one
entry per class, or a single entry for a regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tamis._validation import Array, Floats, short_repr
from tamis.errors import DataError

LOSSES = ("auto", "log", "brier", "squared", "absolute")
CHANGE = "change"  # change of the predictions, instead of a loss
_LEAST = 1e-6  # a probability of 0 costs 13.8, so the variance of a log loss is finite


def is_numeric(name: str, model: Any) -> bool:
    """Return whether the loss compares numbers; "auto" does unless the model has probabilities or scores."""
    if name in ("auto", CHANGE):
        return not any(
            hasattr(model, verb)
            for verb in ("predict_proba", "decision_function", "predict_proba_one", "classes_")
        )
    return name in ("squared", "absolute")


def loss(name: str, values: Floats, y: Array) -> Floats:
    """Return the loss of each output.

    Parameters
    ----------
    name : {"log", "brier", "squared", "absolute"}
    values : ndarray of shape (..., n_outputs)
        Probabilities of the classes, or one number.
    y : ndarray that broadcasts to values.shape[:-1]
        The code of the true class, or the target.

    Examples
    --------
    >>> p = np.array([[0.8, 0.2], [0.4, 0.6]])
    >>> loss("log", p, np.array([0, 1])).round(2), loss("brier", p, np.array([0, 1])).round(2)
    (array([0.22, 0.51]), array([0.08, 0.32]))
    """
    if name == "squared":
        return np.asarray((values[..., 0] - y) ** 2)
    if name == "absolute":
        return np.asarray(np.abs(values[..., 0] - y))
    codes = np.broadcast_to(y, values.shape[:-1])
    p = np.take_along_axis(values, codes[..., None], axis=-1)[..., 0]
    if name == "log":
        return np.asarray(-np.log(np.clip(p, _LEAST, 1.0)))
    return np.asarray(np.sum(values**2, axis=-1) - 2.0 * p + 1.0)


def outputs(
    model: Any, X: Floats, names: list[str] | None, *, numeric: bool, any_width: bool = False
) -> tuple[Floats, Array | None]:
    """Return the outputs of shape (n_rows, n_outputs), and the class of each column; None for numbers.

    Several numbers per row are accepted with `any_width`.

    Raises
    ------
    DataError
        If the outputs are not finite numbers with one row per row of `X`.
    """
    # log 0: naive Bayes for a class without rows
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # The altered rows are an array, even for a model fitted on a frame.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        values, labels = _numbers(model, X, names) if numeric else _probabilities(model, X, names)
    if values.ndim == 1:
        values = values[:, None] if numeric else np.column_stack([1.0 - values, values])
    if values.ndim != 2 or len(values) != len(X) or (numeric and not any_width and values.shape[1] != 1):
        wanted = "one number" if numeric else "one probability per class"
        raise DataError(
            f"model returned an array of shape {values.shape} for {len(X)} rows: it must return {wanted} per row."
        )
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise DataError(f"model returned {bad}: pass a model with finite predictions.")
    if numeric:
        return values, None
    labels = np.arange(values.shape[1]) if labels is None else np.asarray(labels)
    if len(labels) != values.shape[1]:
        raise DataError(
            f"model returned {values.shape[1]} columns for its {len(labels)} classes: pass a"
            " model with one column per class."
        )
    return values, labels


def _function(model: Any, *verbs: str) -> Callable[[Any], Any]:
    function = next((getattr(model, verb) for verb in verbs if hasattr(model, verb)), model)
    if not callable(function):
        raise DataError(
            f"model must have one of {', '.join(verbs)}, or be a function of an array, got {short_repr(model)}."
        )
    return function


def _as_array(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _numbers(model: Any, X: Floats, names: list[str] | None) -> tuple[Floats, None]:
    if hasattr(model, "predict_one"):
        return _as_array([model.predict_one(row) for row in _as_dicts(X, names)]), None
    return _as_array(_function(model, "predict")(X)), None


def _probabilities(model: Any, X: Floats, names: list[str] | None) -> tuple[Floats, Array | None]:
    if hasattr(model, "predict_proba_one"):
        return _from_dicts([model.predict_proba_one(row) for row in _as_dicts(X, names)])
    labels = getattr(model, "classes_", None)
    if hasattr(model, "decision_function") and not hasattr(model, "predict_proba"):
        return from_scores(_as_array(model.decision_function(X))), labels
    output = _function(model, "predict_proba", "decision_function", "predict")(X)
    if labels is not None and not hasattr(model, "predict_proba"):  # it predicts labels
        return (np.asarray(output)[:, None] == np.asarray(labels)).astype(np.float64), labels
    return _as_array(output), labels


def from_scores(scores: Floats) -> Floats:
    """Return the logistic transform of the scores of two classes, or the softmax of those of several."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _as_dicts(X: Floats, names: list[str] | None) -> list[dict[Any, float]]:
    keys: Any = range(X.shape[1]) if names is None else names
    return [dict(zip(keys, row, strict=True)) for row in X.tolist()]


def _from_dicts(rows: list[dict[Any, float]]) -> tuple[Floats, Array]:
    labels = list(dict.fromkeys(label for row in rows for label in row))
    if not labels:
        raise DataError("model returned no class for any row: fit it before it is explained.")
    return _as_array([[row.get(label, 0.0) for label in labels] for row in rows]), np.array(labels)
