"""`tamis list` and `tamis datasets`: the available methods and data sets."""

from __future__ import annotations

import inspect
import re
from typing import Annotated

import typer

from tamis.catalog import LEARNERS, Entry, find
from tamis.cli.methods import cells, others, parameters, selectors
from tamis.cli.options import AsJSON, Debug, Quiet, argument
from tamis.cli.output import print_json, terminal

__all__ = ["add"]


def add(root: typer.Typer) -> None:
    """Add the commands."""
    root.command("list", epilog="Example: [bold]tamis list fires[/] shows what --set can change")(list_)
    root.command(epilog="With another data folder: [bold]TAMIS_DATA=folder tamis datasets[/]")(datasets)


def list_(
    name: Annotated[str | None, argument("NAME", "A method, to see its parameters.")] = None,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show the catalogue of methods, or the parameters of one method."""
    if name is None:
        _show_catalogue(as_json)
    else:
        _show_parameters(find(name), as_json)


def datasets(as_json: AsJSON = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Show the data sets (size, licence, location), and the streams with known relevant features."""
    _show_datasets(as_json)


def _show_catalogue(as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "selectors": [e.as_dict() for e in selectors()],
                "learners": [e.as_dict() for e in LEARNERS],
                "cells": [e.as_dict() for e in cells()],
                "from_python": [e.as_dict() for e in others()],
            }
        )
        return
    from tamis.terminal import show_entries

    console = terminal()
    show_entries(console, "Selectors, for --selector", selectors())
    show_entries(console, "Learners, for --learner", LEARNERS)
    show_entries(console, "Classifiers that acquire values one by one, for tamis train --method", cells())
    show_entries(console, "From Python", others())


def _show_parameters(entry: Entry, as_json: bool) -> None:
    rows = [
        {"name": name, "default": default, "text": text}
        for name, default, text in zip(
            parameters(entry), parameters(entry).values(), _parameter_texts(entry), strict=True
        )
    ]
    if as_json:
        print_json({**entry.as_dict(), "parameters": rows})
        return
    from tamis.terminal import show_parameters

    show_parameters(terminal(), entry, rows)


def _parameter_texts(entry: Entry) -> list[str]:
    """Return the description of each parameter from the class's docstring."""
    section = re.search(r"Parameters\n-+\n(.*?)\n\n", inspect.getdoc(entry.load()) or "", flags=re.DOTALL)
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    for line in section.group(1).splitlines() if section else []:
        if not line.startswith(" "):
            names = [name.strip() for name in line.partition(" :")[0].split(",")]
            texts.update({name: [] for name in names})
        else:
            for name in names:
                texts[name].append(line.strip())
    return [re.sub(r"`+", "", " ".join(texts.get(name, []))) for name in parameters(entry)]


def _show_datasets(as_json: bool) -> None:
    from tamis.streams import list_datasets, list_streams
    from tamis.streams.datasets import data_folder

    rows, streams = list_datasets(), list_streams()
    if as_json:
        print_json({"folder": str(data_folder()), "datasets": rows, "streams": streams})
        return
    from tamis.terminal import show_datasets, show_streams

    show_datasets(terminal(), rows, str(data_folder()))
    show_streams(terminal(), streams)
