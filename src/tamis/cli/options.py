"""Options that several commands share, and how a command takes them: as one argument that is a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from tamis.catalog import Entry
from tamis.cli.failure import MisuseError

__all__ = [
    "BASELINES",
    "SCALES",
    "AsJSON",
    "Debug",
    "Force",
    "Quiet",
    "argument",
    "check_whole",
    "check_word",
    "clock_of",
    "grouped",
    "keys",
    "lateness",
    "option",
]


SCALES, BASELINES = ("auto", "standard", "none"), ("random", "all", "both", "none")


def option(panel: str | None, metavar: str | None, help: str, *names: str, **more: Any) -> Any:
    """Return an option of that panel of the help page."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


def argument(metavar: str, help: str) -> Any:
    """Return an argument that may be left out."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def lateness(text: str) -> int | tuple[str, str]:
    """Return how late labels come: so many rows, or as the columns of two times tell.

    >>> lateness("500"), lateness("sold,returned")
    (500, ('sold', 'returned'))
    """
    if text.isdecimal():
        return int(text)
    names = text.split(",")
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise MisuseError(
            f"--delay must be a number of rows, 0 or more, or two columns, the time of a row and of its label, as in"
            f" sold,returned; got {text}."
        )
    return names[0], names[1]


def clock_of(delay: int | tuple[str, str]) -> tuple[str, ...]:
    """Return the columns that tell when labels come; none where rows are counted."""
    return () if isinstance(delay, int) else delay


def keys(entries: tuple[Entry, ...]) -> Callable[[], list[str]]:
    """Return what completes the name of an entry."""
    return lambda: [entry.key for entry in entries]


AsJSON = Annotated[bool, option("Output", None, "Print one JSON document.", "--json")]
Force = Annotated[bool, option("Output", None, "Overwrite files that are not from Tamis.", "--force")]
Quiet = Annotated[bool, option("Output", None, "Show no progress.", "--quiet", "-q")]
Debug = Annotated[bool, option("Output", None, "Show the traceback of an error.", "--debug")]


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take dataclasses: each field becomes an option of its own.

    The command's own parameters keep their order; the fields stand where the dataclass stood.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def parameters() -> Iterator[inspect.Parameter]:
        for parameter in inspect.signature(command).parameters.values():
            if (group := groups.get(parameter.name)) is None:
                yield parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY)
                continue
            types = get_type_hints(group, include_extras=True)
            for field in fields(group):
                yield inspect.Parameter(
                    field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name]
                )

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        taken = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **taken)

    found = list(parameters())
    call.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in found}
    del call.__wrapped__
    return call


def check_word(option: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that the option does not know."""
    if value not in known:
        raise MisuseError(f"{option} {value} is not known: write {', '.join(known[:-1])} or {known[-1]}.")


def check_whole(option: str, value: int | None, least: int) -> None:
    """Refuse a number below the least that makes sense."""
    if value is not None and value < least:
        raise MisuseError(f"{option} must be {least} or more, got {value}.")
