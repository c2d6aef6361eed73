"""`tamis list` and `tamis datasets`: the available methods and data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.catalog import LEARNERS, find
from tamis.cli.methods import cells, others, parameters, selectors
from tamis.cli.options import AsJSON, Quiet, command, parameter_texts, sections
from tamis.cli.output import print_json, terminal

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
