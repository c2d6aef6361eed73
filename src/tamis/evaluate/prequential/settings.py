"""The settings that reproduce a run: the stream, the selector, the learner, the options, and the versions."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import sklearn

import tamis
from tamis.options import RunOptions
from tamis.streams.stream import Stream


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
    return (
        _describe(value)
        if hasattr(value, "get_params") and not isinstance(value, type)
        else {"repr": repr(value)}
    )
