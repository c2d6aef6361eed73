"""Options that several commands share; a command receives them as one dataclass argument."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from tamis.catalog import Entry
from tamis.cli.failure import MisuseError
from tamis.options import Option, RunOptions

__all__ = [
    "AsJSON", "Debug", "Force", "Panel", "Quiet", "argument", "check_whole", "check_word", "grouped", "keys", "option",
]  # fmt: skip


def option(panel: str | None, metavar: str | None, help: str, *names: str, **more: Any) -> Any:
    """Return an option of that panel of the help page."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


def argument(metavar: str, help: str) -> Any:
    """Return an optional argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def keys(entries: tuple[Entry, ...]) -> Callable[[], list[str]]:
    """Return the function that completes the name of an entry."""
    return lambda: [entry.key for entry in entries]


AsJSON = Annotated[bool, option("Output", None, "Print one JSON document.", "--json")]
Force = Annotated[bool, option("Output", None, "Overwrite files that are not from Tamis.", "--force")]
Quiet = Annotated[bool, option("Output", None, "Show no progress.", "--quiet", "-q")]
Debug = Annotated[bool, option("Output", None, "Show the traceback of an error.", "--debug")]


@dataclass(frozen=True)
class Panel:
    """The panel of a help page for the options of a run, as in ``Annotated[RunOptions, Panel("Evaluation")]``."""

    title: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class _RunOptionsGroup:
    """Turns the options of a run into options of the command line, and their values into `RunOptions`."""

    panel: Panel

    @functools.cached_property
    def known(self) -> dict[str, Option]:
        every = RunOptions.known().items()
        return {
            name: one for name, one in every if one.help and one.is_setting and name not in self.panel.without
        }

    def parameters(self) -> Iterator[inspect.Parameter]:
        types = get_type_hints(RunOptions)
        for name, one in self.known.items():
            default = getattr(RunOptions, name)
            flags = [one.flag] if one.flag else []
            kind = list[str] if one.flag else types[name] if one.read is None else str
            yield inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default if one.read is None else str(default),
                annotation=Annotated[kind, option(self.panel.title, one.metavar, one.help, *flags)],
            )

    def take(self, given: dict[str, Any]) -> RunOptions:
        values = {name: given.pop(name) for name in self.known}
        for name, one in self.known.items():
            if one.read is not None:
                values[name] = one.read(values[name])
            if one.least is not None and not isinstance(values[name], str):
                check_whole(f"--{name.replace('_', '-')}", values[name], int(one.least))
        return RunOptions(**values)


@dataclass(frozen=True)
class _Group:
    """Turns the fields of a dataclass into options of the command line."""

    kind: type[Any]

    def parameters(self) -> Iterator[inspect.Parameter]:
        types = get_type_hints(self.kind, include_extras=True)
        for field in fields(self.kind):
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )

    def take(self, given: dict[str, Any]) -> Any:
        return self.kind(**{field.name: given.pop(field.name) for field in fields(self.kind)})


def _group_of(hint: Any) -> _Group | _RunOptionsGroup | None:
    if getattr(hint, "__origin__", None) is RunOptions:
        return _RunOptionsGroup(hint.__metadata__[0])
    return _Group(hint) if is_dataclass(hint) and isinstance(hint, type) else None


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command accept dataclasses: each field becomes a separate option.

    The command's own parameters keep their order; the fields replace the dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: group for name, hint in hints.items() if (group := _group_of(hint)) is not None}

    def parameters() -> Iterator[inspect.Parameter]:
        for parameter in inspect.signature(command).parameters.values():
            if (group := groups.get(parameter.name)) is not None:
                yield from group.parameters()
            else:
                yield parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY)

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        taken = {name: group.take(given) for name, group in groups.items()}
        return command(**given, **taken)

    items = list(parameters())
    call.__signature__ = inspect.Signature(items)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in items}
    del call.__wrapped__
    return call


def check_word(option: str, value: str, known: tuple[str, ...]) -> None:
    """Reject an unknown value of the option."""
    if value not in known:
        raise MisuseError(f"{option} must be {', '.join(known[:-1])} or {known[-1]}, got {value}.")


def check_whole(option: str, value: int | None, least: int) -> None:
    """Reject a number below `least`."""
    if value is not None and value < least:
        raise MisuseError(f"{option} must be {least} or more, got {value}.")
