"""What it takes to repeat a run: the stream, the selector, the learner, the options, and the versions."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import sklearn

import tamis
from tamis.streams.stream import Stream

__all__ = ["plain", "settings_of"]


def settings_of(stream: Stream, selector: Any, learner: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return what it takes to repeat the run, and where the stream drifts if that is known."""
    known = {"drifts": _numbers(stream, "drifts"), "drift_widths": _numbers(stream, "drift_widths")}
    return {
        "stream": stream.describe(),
        **(known if hasattr(stream, "relevant_rows") else {}),
        "selector": _describe(selector),
        "learner": _describe(learner),
        "options": options,
        "versions": {
            "tamis": tamis.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def _numbers(stream: Stream, name: str) -> list[float]:
    return [float(value) for value in getattr(stream, name, ())]


def _describe(model: Any) -> dict[str, Any] | None:
    if model is None:
        return None
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    known = {name: plain(value) for name, value in params.items()}
    return {"class": f"{type(model).__module__}.{type(model).__qualname__}", "params": known}


def plain(value: Any) -> Any:
    """Return a value as a manifest can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
