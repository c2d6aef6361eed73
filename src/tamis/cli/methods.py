"""The selector and the learner of a command, by their names on the command line."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from tamis.catalog import CATALOG, LEARNERS, Entry, find, find_learner
from tamis.cli.failure import MisuseError
from tamis.cli.options import check_whole, check_word, keys, option
from tamis.options import model_parameters, read_value

__all__ = [
    "Models", "amount", "assignment", "cells", "find_selector", "others", "parameters", "part", "selectors"
]  # fmt: skip

_USUAL = {"classification": "logistic", "regression": "sgd-regressor"}


def selectors() -> tuple[Entry, ...]:
    """Return the selectors that learn from rows."""
    return tuple(entry for entry in CATALOG if entry.family == "rows")


def others() -> tuple[Entry, ...]:
    """Return the methods that are available from Python only."""
    return tuple(entry for entry in CATALOG if entry.family not in ("rows", "cells"))


def cells() -> tuple[Entry, ...]:
    """Return the classifiers that acquire values one by one."""
    return tuple(entry for entry in CATALOG if entry.family == "cells")


def find_selector(name: str) -> Entry:
    """Return the catalogue entry with a name."""
    return find(name, "rows")


@dataclass
class Models:
    """The selector and the learner of a run, as named on the command line."""

    selector: Annotated[
        str | None,
        option(
            "Selection",
            "NAME",
            "The selector: see [bold]tamis list[/]; none keeps all features, auto compares several and uses the best."
            "  [dim]\\[default: auto][/]",
            show_default=False,
            autocompletion=keys(selectors()),
        ),
    ] = None
    select: Annotated[
        str | None,
        option(
            "Selection",
            "N",
            "Number of features to keep (5), or fraction (0.1).  [dim]\\[default: a tenth, or chosen"
            " by the method][/]",
            show_default=False,
        ),
    ] = None
    assign: Annotated[
        list[str] | None,
        option(
            "Selection",
            "KEY=VALUE",
            "A parameter of the selector (see [bold]tamis list NAME[/]); may be repeated.",
            "--set",
        ),
    ] = None
    seed: Annotated[int, option("Selection", "N", "Seed of selector and learner.")] = 0
    task: Annotated[
        str | None,
        option(
            "Evaluation",
            "WHAT",
            "Kind of label: classification (classes) or regression (a number).  [dim]\\[default: that of the learner,"
            " or classification][/]",
            show_default=False,
        ),
    ] = None
    learner: Annotated[
        str | None,
        option(
            "Evaluation",
            "NAME",
            "The learner: see [bold]tamis list[/].  [dim]\\[default: with auto, chosen on the first rows from"
            " logistic, perceptron, naive-bayes and adaptive-random-forest; else logistic; sgd-regressor for"
            " numbers][/]",
            show_default=False,
            autocompletion=keys(LEARNERS),
        ),
    ] = None

    refit_every: Annotated[
        int | None,
        option(
            "Evaluation",
            "N",
            "Rows between two fits of a learner without incremental updates: lightgbm, random-forest."
            "  [dim]\\[default: 1000][/]",
            show_default=False,
        ),
    ] = None
    refit_window: Annotated[
        int | None,
        option(
            "Evaluation",
            "N",
            "Largest number of recent rows that such a learner is fitted on.  [dim]\\[default: 10000][/]",
            show_default=False,
        ),
    ] = None

    def __post_init__(self) -> None:
        check_whole("--seed", self.seed, 0)
        check_whole("--refit-every", self.refit_every, 1)
        check_whole("--refit-window", self.refit_window, 2)
        self.make()  # wrong words are reported before a file is opened

    @functools.cached_property
    def entry(self) -> Entry:
        """The learner in the catalogue."""
        if self.task is not None:
            check_word("--task", self.task, tuple(_USUAL))
        entry = find_learner(self.learner or _USUAL[self.task or "classification"])
        if self.task not in (None, "regression" if "regression" in entry.targets else "classification"):
            predicted = "numbers" if "regression" in entry.targets else "classes"
            raise MisuseError(
                f"--learner {self.learner} predicts {predicted}: choose another one for --task {self.task}."
            )
        return entry

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted."""
        return "regression" in self.entry.targets

    def make(self, categorical: Sequence[int] = ()) -> tuple[Any, Any]:
        """Return the selector, or None if every feature is kept, and the learner; both new."""
        usual = model_parameters(self.entry, seed=self.seed, categorical=categorical)
        learner = self.entry.load()(**usual | self._refit_parameters())
        name = self.selector or "auto"
        if name.lower() == "none":
            return None, learner
        entry = find_selector(name)
        if self.is_regression and "regression" not in entry.targets:
            known = ", ".join(one.key for one in selectors() if "regression" in one.targets)
            raise MisuseError(
                f"--selector {name} learns from classes, not from numbers: choose one of {known}."
            )
        assigned = dict(assignment(entry, text) for text in self.assign or [])
        if self.select is not None:
            if "n_features_to_select" not in parameters(entry):
                raise MisuseError(f"{entry.name} determines the number of features: omit --select.")
            assigned["n_features_to_select"] = amount(self.select)
        usual = model_parameters(
            entry,
            seed=self.seed,
            categorical=categorical,
            learner=self.entry,
            is_regression=self.is_regression,
        )
        return entry.load()(**usual | assigned), learner

    def _refit_parameters(self) -> dict[str, Any]:
        """Return the refit options of the learner that were given."""
        result: dict[str, Any] = {}
        for name in ("every", "window"):
            if (value := getattr(self, f"refit_{name}")) is None:
                continue
            if self.entry.name != "Refit":
                known = ", ".join(entry.key for entry in LEARNERS if entry.name == "Refit")
                raise MisuseError(
                    f"--refit-{name} is for learners that are refitted, {known}, but the learner is {self.entry.key}."
                )
            result[name] = value
        return result


def parameters(entry: Entry) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults."""
    return {name: p.default for name, p in inspect.signature(entry.load()).parameters.items()}


def assignment(entry: Entry, text: str) -> tuple[str, Any]:
    """Return the name and value of `name=value`, a parameter of the method."""
    name, equals, value = (part.strip() for part in text.partition("="))
    known = [parameter for parameter in parameters(entry) if parameter != "n_features_to_select"]
    if not equals:
        raise MisuseError(f"--set {text} is not an assignment: write --set NAME=VALUE.")
    if name == "n_features_to_select":
        raise MisuseError("The number of features is set with --select, not with --set.")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise MisuseError(f"{entry.name} has no parameter {name!r}{hint} It has: {', '.join(known)}.")
    return name, read_value(value)


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


def amount(text: str) -> int | float:
    """Return the number or the fraction of features to select."""
    try:
        given = int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise MisuseError(f"--select {text} is not a number: give a count (5) or a fraction (0.1).") from None
    if not (given >= 1 if isinstance(given, int) else 0 < given <= 1):
        raise MisuseError(
            f"--select {text} is out of range: give a count of at least 1, or a fraction in (0, 1]."
        )
    return given
