"""What it takes to run the same again: a few lines of Python, and one for the shell where that is enough."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath
from typing import Any, TypeAlias

import tamis

__all__ = ["command_line", "option", "snippet", "subject"]

Settings: TypeAlias = dict[str, Any]


def option(settings: Settings, name: str, default: Any = None) -> Any:
    """Return one option of the run."""
    return settings.get("options", {}).get(name, settings.get(name, default))


def subject(settings: Settings) -> str:
    """Return what was run on which data, in a few words.

    >>> subject({"selector": {"class": "tamis.rows.fires.FIRES"}, "stream": {"kind": "file", "path": "a/b.csv"}})
    'FIRES on b.csv'
    """
    selector, stream = settings.get("selector"), settings.get("stream", {})
    what = _split(selector)[1] if selector else "Every feature"
    where = str(stream.get("name") or PurePath(str(stream.get("path", "-"))).name)
    return f"{what} on {where}" if where != "-" else f"{what}, test-then-train"


def snippet(settings: Settings) -> str:
    """Return the lines of Python that run the same again.

    Rows that came from memory are left to the reader, with what is known of them.
    """
    models = [settings.get("selector"), settings.get("learner")]
    opener, stream = _opened(settings.get("stream", {}))
    classes = {_split(model) for model in models if model} | {
        ("tamis", name) for name in ("prequential", *opener)
    }
    modules = sorted({module for module, _ in classes}, key=lambda module: (module == "tamis", module))
    imports = [
        f"from {at} import {', '.join(sorted(name for m, name in classes if m == at))}" for at in modules
    ]
    given = ["stream", *(_call(model) if model else "None" for model in models)]
    options = _keywords(_unusual(tamis.prequential, settings.get("options", {})))
    return "\n".join(
        [
            *imports,
            "",
            f"stream = {stream}",
            f"result = prequential({', '.join(given + options)})",
            'result.report("report.html")',
        ]
    )


def _opened(stream: dict[str, Any]) -> tuple[list[str], str]:
    """Return the function that opens a stream (if one does), and the call."""
    known = {"file": ("open_file", "path"), "dataset": ("load_dataset", "name")}
    if stream.get("kind") not in known:
        return [], "...  # the same rows: " + ", ".join(f"{name} {value}" for name, value in stream.items())
    opener, source = known[stream["kind"]]
    options = _unusual(getattr(tamis, opener), stream)
    return [opener], f"{opener}({', '.join([repr(options.pop(source)), *_keywords(options)])})"


def _split(model: dict[str, Any]) -> tuple[str, str]:
    """Return where a class is imported from, and its name."""
    module, _, name = model["class"].rpartition(".")
    if module.startswith("tamis.") and name in tamis.__all__:
        return "tamis", name
    if module.startswith("sklearn."):  # its modules with an underscore are private
        module = ".".join(part for part in module.split(".") if not part.startswith("_"))
    return module, name


def _call(model: dict[str, Any]) -> str:
    module, name = _split(model)
    params = model["params"]
    if module.split(".")[0] in (
        "sklearn",
        "tamis",
    ):  # settings read from a file must not import just anything
        params = _unusual(getattr(import_module(module), name), params)
    return f"{name}({', '.join(_keywords(params))})"


def _unusual(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return those of `values` that are parameters of a function and not their defaults."""
    parameters = inspect.signature(function).parameters
    return {
        name: values[name]
        for name, parameter in parameters.items()
        if name in values and json.dumps(values[name]) != json.dumps(parameter.default, default=repr)
    }


def _keywords(values: dict[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in values.items()]


def command_line(settings: Settings) -> str | None:
    """Return the line for the shell, or None where the command line cannot say all of it."""
    return None
