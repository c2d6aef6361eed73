"""The selector and the learner of a command, by their names on the command line.

`tamis list` and `tamis datasets`: the available methods and data sets.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from tamis.catalog import CATALOG, LEARNERS, Entry, find, find_learner
from tamis.cli.failure import MisuseError
from tamis.cli.options import EVALUATION, AsJSON, Quiet, check_word, command, parameter_texts, sections
from tamis.cli.output import print_json, terminal
from tamis.errors import did_you_mean
from tamis.options import model_parameters, read_value

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


def keys(entries: tuple[Entry, ...]) -> Callable[[], list[str]]:
    """Return the function that completes the name of an entry."""
    return lambda: [entry.key for entry in entries]


@dataclass
class Models:
    """The selector and the learner of a run, as named on the command line.

    Parameters
    ----------
    selector : NAME
        The selector: see `tamis list`; none keeps all features, auto compares several and uses the best. [default:
        auto; none with --features few]
    select : N
        Number of features to keep (5), or fraction (0.1). [default: a tenth, or chosen by the method]
    assign : KEY=VALUE
        A parameter of the selector (see `tamis list NAME`); may be repeated.
    seed : N
        Seed of selector and learner.
    task : WHAT
        Kind of label: classification (classes) or regression (a number). [default: that of the learner, or
        classification]
    learner : NAME
        The learner: see `tamis list`. [default: with auto, chosen on the first rows from logistic, perceptron,
        naive-bayes, adaptive-random-forest and lightgbm (hist-boosting if it is not installed); else logistic;
        sgd-regressor for numbers]

    Other Parameters
    ----------------
    features : all|few
        Which features a refitted learner uses: all that are selected, or few that it chooses at each fit. With few,
        the selector is none by default. [default: few if lightgbm is chosen on the first rows, else all]
    refit_every : N
        Rows between two fits of a learner without incremental updates: lightgbm, random-forest. [default: 1000]
    refit_window : N
        Largest number of recent rows that such a learner is fitted on. [default: 10000]
    """

    panel: ClassVar[str] = "Selection"

    selector: Annotated[str | None, typer.Option(autocompletion=keys(selectors()))] = None
    select: str | None = None
    assign: Annotated[list[str] | None, typer.Option("--set")] = None
    seed: Annotated[int, typer.Option(min=0)] = 0
    task: Annotated[str | None, EVALUATION] = None
    learner: Annotated[str | None, typer.Option(autocompletion=keys(LEARNERS)), EVALUATION] = None

    features: str | None = None
    refit_every: Annotated[int | None, typer.Option(min=1)] = None
    refit_window: Annotated[int | None, typer.Option(min=2)] = None

    def __post_init__(self) -> None:
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
        name = self.selector or ("none" if self.features == "few" else "auto")
        if name.lower() == "none":
            return None, learner
        entry = find(name, "rows")
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
        options = {"features": self.features, "every": self.refit_every, "window": self.refit_window}
        given = {name: value for name, value in options.items() if value is not None}
        if given and self.entry.name != "Refit":
            option = {"features": "--features"}.get(name := next(iter(given)), f"--refit-{name}")
            known = ", ".join(entry.key for entry in LEARNERS if entry.name == "Refit")
            raise MisuseError(
                f"{option} is for learners that are refitted, {known}, but the learner is {self.entry.key}."
            )
        if self.features is not None:
            check_word("--features", self.features, ("all", "few"))
        return given


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
        hint = did_you_mean(name, known)
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


_TITLES = {
    "selectors": "Selectors, for --selector",
    "learners": "Learners, for --learner",
    "cells": "Classifiers that acquire values one by one, for tamis train --method",
    "from_python": "From Python",
}


@command("list")
def list_(
    name: Annotated[str | None, typer.Argument()] = None, as_json: AsJSON = False, quiet: Quiet = False
) -> None:
    """Show the available methods, or the parameters of one.

    Parameters
    ----------
    name : NAME
        A method, to see its parameters.

    Examples
    --------
    `tamis list fires` shows what --set can change
    """
    from tamis.terminal import show_entries, show_parameters

    if name is not None:
        entry = find(name)
        texts = parameter_texts(sections(entry.load()).get("Parameters", ""))
        rows = [
            {"name": name, "default": default, "text": texts.get(name, ("", ""))[1].replace("`", "")}
            for name, default in parameters(entry).items()
        ]
        if as_json:
            print_json({**entry.as_dict(), "parameters": rows})
        else:
            show_parameters(terminal(), entry, rows)
        return
    parts = {"selectors": selectors(), "learners": LEARNERS, "cells": cells(), "from_python": others()}
    if as_json:
        print_json({key: [entry.as_dict() for entry in entries] for key, entries in parts.items()})
        return
    console = terminal()
    for key, entries in parts.items():
        show_entries(console, _TITLES[key], entries)


@command()
def datasets(as_json: AsJSON = False, quiet: Quiet = False) -> None:
    """Show the data sets, and the streams with known relevant features.

    Of each data set, the size, licence and location.

    Examples
    --------
    `TAMIS_DATA=folder tamis datasets` for another data folder
    """
    from tamis.streams import list_datasets, list_streams
    from tamis.streams.datasets import data_folder
    from tamis.terminal import show_datasets, show_streams

    rows, streams = list_datasets(), list_streams()
    if as_json:
        print_json({"folder": str(data_folder()), "datasets": rows, "streams": streams})
    else:
        show_datasets(terminal(), rows, str(data_folder()))
        show_streams(terminal(), streams)
