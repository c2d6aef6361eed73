"""Reproduction of a run: a few lines of Python, and a shell command if it can express the run."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import PurePath
from typing import Any, TypeAlias

import tamis
from tamis.catalog import CATALOG, LEARNERS, Entry
from tamis.options import RunOptions, model_parameters, read_value

Settings: TypeAlias = dict[str, Any]

_FILE_OPTIONS = (
    "label", "format", "delimiter", "decimal", "encoding", "missing", "time_format", "n_features",
    "max_quoted_lines",
)  # fmt: skip


def subject(settings: Settings) -> str:
    """Return the subject of a run and its data, in a few words.

    >>> subject({"selector": {"class": "tamis.rows.fires.FIRES"}, "stream": {"kind": "file", "path": "a/b.csv"}})
    'FIRES on b.csv'
    """
    selector, stream = settings.get("selector"), settings.get("stream", {})
    chooses = ((settings.get("learner") or {}).get("params") or {}).get("features") == "few"
    name = _split(selector)[1] if selector else "Few features" if chooses else "Every feature"
    where = stream.get("name") or PurePath(str(stream.get("path", ""))).name
    if not where:
        return f"{name}, test-then-train"
    return f"{name} on {'standard input' if where == '-' else where}"


def snippet(settings: Settings) -> str:
    """Return the lines of Python that reproduce the run.

    Rows from memory have to be supplied by the reader; known properties are included.
    """
    models = [settings.get("selector"), settings.get("learner")]
    opener, stream = _opening_line(settings.get("stream", {}))
    if delayed := settings.get("stream", {}).get("delayed_features"):
        stream = f"({stream}).with_delayed_features({delayed!r})" if opener else stream
    if opener and (missing := settings["stream"].get("missing")) and settings["stream"].get("kind") != "file":
        stream = f"({stream}).with_missing({missing!r})"
    classes = {_split(model) for model in _every_model(models)} | {
        ("tamis", name) for name in ("prequential", *opener)
    }
    modules = sorted({module for module, _ in classes}, key=lambda module: (module == "tamis", module))
    imports = [
        f"from {at} import {', '.join(sorted(name for m, name in classes if m == at))}" for at in modules
    ]
    options = _keywords(RunOptions.from_settings(settings).changed())
    selector, learner = (_call(model) if model else "None" for model in models)
    return "\n".join(
        [
            *imports, "", f"stream = {stream}", f"selector = {selector}", f"learner = {learner}",
            f"result = prequential({', '.join(['stream', 'selector', 'learner', *options])})",
            'result.report("report.html")',
        ]
    )  # fmt: skip


def _opening_line(stream: dict[str, Any]) -> tuple[list[str], str]:
    """Return the function that opens a stream (if one does), and the call."""
    known = {
        "file": ("open_file", "path"),
        "dataset": ("load_dataset", "name"),
        "generated": ("load_stream", "name"),
    }
    if stream.get("kind") not in known:
        return [], "...  # the same rows: " + ", ".join(f"{name} {value}" for name, value in stream.items())
    opener, source = known[stream["kind"]]
    options = _file_options(stream) if opener == "open_file" else _unusual(getattr(tamis, opener), stream)
    return [opener], f"{opener}({', '.join([repr(options.pop(source)), *_keywords(options)])})"


def _file_options(stream: dict[str, Any]) -> dict[str, Any]:
    """Return how a file was opened: its path, and options that differ from the default or from its name."""
    options = _unusual(tamis.open_file, stream)
    if f".{options.get('format')}" in PurePath(options["path"]).suffixes:
        del options["format"]
    return options


def _split(model: dict[str, Any]) -> tuple[str, str]:
    """Return where a class is imported from, and its name."""
    module, _, name = model["class"].rpartition(".")
    if module.startswith("tamis.") and name in tamis.__all__:
        return "tamis", name
    if module.startswith("sklearn."):  # its modules with an underscore are private
        module = ".".join(part for part in module.split(".") if not part.startswith("_"))
    return module, name


def _every_model(models: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the estimators, and those that are parameters of them."""
    for model in models:
        if isinstance(model, list):
            yield from _every_model(model)
        elif _is_model(model):
            yield model
            yield from _every_model([*model["params"].values()])


def _is_model(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"class", "params"}


def _call(model: dict[str, Any]) -> str:
    module, name = _split(model)
    params = model["params"]
    # Settings read from a file must not import just anything.
    if module.split(".")[0] in ("sklearn", "tamis"):
        params = _unusual(getattr(import_module(module), name), params)
    return f"{name}({', '.join(_keywords(params))})"


def _literal(value: Any) -> str:
    """Return a value of the settings as Python; `...` for an object that only its creator can make."""
    if _is_model(value):
        return _call(value)
    if isinstance(value, dict):
        is_unknown = set(value) == {"repr"}
        return "..." if is_unknown else f"{{{', '.join(f'{k!r}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        items = ", ".join(map(_literal, value)) + "," * (isinstance(value, tuple) and len(value) == 1)
        return f"[{items}]" if isinstance(value, list) else f"({items})"
    return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _unusual(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return those of `values` that are parameters of a function and not their defaults."""
    parameters = inspect.signature(function).parameters
    return {
        name: values[name]
        for name, parameter in parameters.items()
        if name in values and not _is_same(values[name], parameter.default)
    }


def _keywords(values: dict[str, Any]) -> list[str]:
    return [f"{name}={_literal(value)}" for name, value in values.items()]


class _UnsayableError(Exception):
    """Raised if the command line cannot express a setting."""


def command_line(settings: Settings) -> str | None:
    """Return the command line, or None if it cannot express the whole run."""
    options = RunOptions.from_settings(settings)
    try:
        if (of_run := options.words()) is None:
            raise _UnsayableError
        stream = dict(settings.get("stream", {}))
        delayed = [f"--delayed={name}={rows}" for name, rows in stream.pop("delayed_features", {}).items()]
        words = [*_stream_words(stream, options.clock), *_model_words(settings), *of_run, *delayed]
    except _UnsayableError:
        return None
    return shlex.join(["tamis", "run", *words, "--report", "report.html"])


def file_words(stream: dict[str, Any]) -> list[str] | None:
    """Return the words that name a stream on the command line, or None where it has none for it.

    Parameters
    ----------
    stream : dict
        What its `describe` returns.

    Examples
    --------
    >>> file_words({"kind": "file", "path": "a.csv", "format": "csv", "label": "y", "missing": "keep"})
    ['a.csv', '--keep', '*', '--times', 'seconds', '--label', 'y']
    """
    try:
        return _stream_words(stream)
    except _UnsayableError:
        return None


def _stream_words(stream: dict[str, Any], clock: tuple[str, ...] = ()) -> list[str]:
    if stream.get("kind") != "file" and "missing" in stream:
        raise _UnsayableError
    if stream.get("kind") == "dataset" and stream["shuffle"] is None:
        return ["--dataset", stream["name"]]
    if stream.get("kind") == "generated" and set(_unusual(tamis.load_stream, stream)) == {"name"}:
        return ["--dataset", stream["name"]]
    if stream.get("kind") != "file":
        raise _UnsayableError
    options = _file_options(stream)
    path, label = options.pop("path"), options.get("label")
    if isinstance(label, str) and re.fullmatch(r"-?\d+", label):  # it would be read as a position
        raise _UnsayableError
    if clock and tuple(options.get("clock", ())) == clock:  # --delay names them
        del options["clock"]
    words = [path if path == "-" or not path.startswith("-") else f"./{path}"]
    words += ["--no-header"] * (options.pop("header", True) is False)
    words += ["--drop-unlabelled"] * options.pop("drop_unlabelled", False)
    for repeated in ("na", "categorical", "drop"):
        names = list(options.pop(repeated, ()))
        if any("," in name for name in names) and repeated != "na":  # it would be read as several
            raise _UnsayableError
        words += [word for name in names for word in (f"--{repeated}", name)]
    if stream.get("format") != "svmlight":  # the look omits nothing more, and times are as they were
        words += ["--keep", "*"]
        words += [] if options.pop("times", None) == "parts" else ["--times", "seconds"]
    if (zero_based := options.pop("zero_based", None)) is not None:
        words.append("--zero-based" if zero_based else "--one-based")
    return words + _option_words(options, _FILE_OPTIONS)


def _model_words(settings: Settings) -> list[str]:
    """Return the arguments for selector, learner and seed that differ from the defaults of `tamis run`."""
    selector, learner = settings.get("selector"), settings.get("learner")
    if learner is None:
        raise _UnsayableError
    seed = _seed(selector, learner)
    common: dict[str, Any] = {"seed": seed, "categorical": settings.get("categorical", ())}
    entry = _learner_entry(learner, common)
    words = ["--selector", "none"]
    if selector is not None:
        words = _selector_words(
            selector, common | {"learner": entry, "is_regression": "regression" in entry.targets}
        )
    refit = _refit_words(entry, learner["params"])
    return [*words, "--learner", entry.key, *refit, *(["--seed", str(seed)] if seed else [])]


_REFIT_OPTIONS = {"features": "--features", "every": "--refit-every", "window": "--refit-window"}


def _refit_words(entry: Entry, params: dict[str, Any]) -> list[str]:
    """Return the refit options of a learner that differ from the defaults."""
    usual = inspect.signature(entry.load()).parameters
    return [
        word
        for name, option in (_REFIT_OPTIONS.items() if entry.name == "Refit" else ())
        if params[name] != usual[name].default
        for word in (option, str(params[name]))
    ]


def _selector_words(selector: dict[str, Any], common: dict[str, Any]) -> list[str]:
    entry = _entry(selector, CATALOG)
    usual = _parameters(entry, common)
    words, assigned = ["--selector", entry.key], []
    for name, value in selector["params"].items():
        if _is_same(value, usual[name]):
            continue
        if name == "random_state" or not _is_same(read_value(str(value)), value):
            raise _UnsayableError
        if name != "n_features_to_select":
            assigned += ["--set", f"{name}={value}"]
        elif value is None:
            raise _UnsayableError
        else:
            words += ["--select", str(value)]
    return words + assigned


def _learner_entry(learner: dict[str, Any], common: dict[str, Any]) -> Entry:
    """Return the catalogue entry of exactly this learner."""
    kind = _entry(learner, LEARNERS).load()
    params = dict(learner["params"])
    if kind.__name__ == "Refit":  # of which the command line has options
        usual = inspect.signature(kind).parameters
        if params["every"] is None:
            raise _UnsayableError
        params |= {name: usual[name].default for name in _REFIT_OPTIONS}
    for entry in LEARNERS:
        if entry.load() is kind and _is_same(_parameters(entry, common), params):
            return entry
    raise _UnsayableError


def _parameters(entry: Entry, common: dict[str, Any]) -> dict[str, Any]:
    """Return every parameter that an estimator of the catalogue has in a run of the command line."""
    defaults = {name: one.default for name, one in inspect.signature(entry.load()).parameters.items()}
    return defaults | model_parameters(entry, **common)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON, where a tuple is a list."""
    return json.dumps(one, default=repr, sort_keys=True) == json.dumps(other, default=repr, sort_keys=True)


def _seed(*models: dict[str, Any] | None) -> int:
    """Return the one seed of both, 0 if neither takes one."""
    params = [model["params"] for model in models if model]
    seeds = {str(values["random_state"]) for values in params if "random_state" in values}
    if len(seeds) > 1 or not all(seed.isdecimal() for seed in seeds):
        raise _UnsayableError
    return int(seeds.pop()) if seeds else 0


def _option_words(values: dict[str, Any], known: tuple[str, ...]) -> list[str]:
    if not set(values) <= set(known) or any(isinstance(value, list) for value in values.values()):
        raise _UnsayableError
    return [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def _entry(model: dict[str, Any], entries: tuple[Entry, ...]) -> Entry:
    """Return the catalogue entry of exactly this class."""
    module, name = _split(model)
    for entry in entries:
        if entry.name == name and module in ("tamis", entry.module):
            return entry
    raise _UnsayableError
