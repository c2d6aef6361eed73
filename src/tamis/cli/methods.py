"""What a command runs on: the selector and the learner that its words name."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Sequence
from typing import Any

from tamis.catalog import CATALOG, Entry, find
from tamis.cli.failure import MisuseError

__all__ = [
    "amount",
    "assignment",
    "cells",
    "find_selector",
    "make",
    "make_selector",
    "others",
    "parameters",
    "part",
    "read_value",
    "replaying",
    "selectors",
]


def selectors() -> tuple[Entry, ...]:
    """Return the methods that rows can be given to."""
    return tuple(entry for entry in CATALOG if entry.family == "rows")


def others() -> tuple[Entry, ...]:
    """Return the methods that only Python can use."""
    return tuple(entry for entry in CATALOG if entry.family not in ("rows", "cells"))


def cells() -> tuple[Entry, ...]:
    """Return the classifiers that buy values one by one."""
    return tuple(entry for entry in CATALOG if entry.family == "cells")


def find_selector(name: str) -> Entry:
    """Return the row of the catalogue that a name means."""
    return find(name, "rows")


def make_selector(
    name: str,
    select: str | None,
    assignments: list[str],
    seed: int,
    categorical: Sequence[int] = (),
    learner: str = "linear",
    task: str = "classification",
) -> Any:
    """Return the selector with its parameters, or None if every feature is kept; `learner` is for those that race."""
    if name.lower() == "none":
        return None
    entry = find_selector(name)
    if task == "regression" and "regression" not in entry.targets:
        known = ", ".join(one.key for one in selectors() if "regression" in one.targets)
        raise MisuseError(f"--selector {name} learns from classes, not from numbers: choose one of {known}.")
    values: dict[str, Any] = {
        "random_state": seed,
        "categorical": list(categorical) or None,
        "learner": learner,
        **(dict(entry.regression) if task == "regression" else {}),
    }
    values |= dict(assignment(entry, text) for text in assignments)
    if select is not None:
        if "n_features_to_select" not in parameters(entry):
            raise MisuseError(f"{entry.name} decides itself how many features to keep: leave --select out.")
        values["n_features_to_select"] = amount(select)
    return make(entry, values)


def make(entry: Entry, values: dict[str, Any]) -> Any:
    """Return an instance; a seed is given where one is taken."""
    known = parameters(entry)
    return entry.load()(
        **{**dict(entry.parameters), **{n: value for n, value in values.items() if n in known}}
    )


def parameters(entry: Entry) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults."""
    return {name: p.default for name, p in inspect.signature(entry.load()).parameters.items()}


def assignment(entry: Entry, text: str) -> tuple[str, Any]:
    """Return the name and value of `name=value`, a parameter of the method."""
    name, equals, value = (part.strip() for part in text.partition("="))
    known = [parameter for parameter in parameters(entry) if parameter != "n_features_to_select"]
    if not equals:
        raise MisuseError(f"--set {text} is no assignment: write --set NAME=VALUE.")
    if name == "n_features_to_select":
        raise MisuseError("How many features to select is said with --select.")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise MisuseError(f"{entry.name} has no parameter {name!r}{hint} It has: {', '.join(known)}.")
    return name, read_value(value)


def read_value(text: str) -> Any:
    """Return what a value says: a number, True, False or None, else the text."""
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    if text.lower() in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def part(text: str) -> tuple[str, dict[str, Any]]:
    """Return the key and the parameters of `KEY:NAME=VALUE,NAME=VALUE`.

    >>> part("SEA:n_rows=5000,width=1"), part("river:hat")
    (('SEA', {'n_rows': 5000, 'width': 1}), ('river:hat', {}))
    """
    key, colon, assignments = text.rpartition(":")
    if not colon or "=" not in assignments:
        return text, {}
    pairs = [one.partition("=") for one in assignments.split(",")]
    for name, equals, _ in pairs:
        if not equals or not name.strip().isidentifier():
            raise MisuseError(f"{text}: write parameters as {key}:NAME=VALUE,NAME=VALUE.")
    return key, {name.strip(): read_value(value.strip()) for name, _, value in pairs}


def replaying(text: str) -> str | int:
    """Return when a learner restarts."""
    if text in ("auto", "never") or text.isdecimal():
        return int(text) if text.isdecimal() else text
    raise MisuseError(f"--replay {text} is not known: write auto, never or a number of rows.")


def amount(text: str) -> int | float:
    """Return how many features, or which fraction of them."""
    try:
        given = int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise MisuseError(f"--select {text} is no number: give a count (5) or a fraction (0.1).") from None
    if not (given >= 1 if isinstance(given, int) else 0 < given <= 1):
        raise MisuseError(
            f"--select {text} selects nothing sensible: give a count from 1 on, or a fraction in (0, 1]."
        )
    return given
