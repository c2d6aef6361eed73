"""Commands and their options: types from the signature, help from the docstring.

A command is a function. Its docstring is the help page: the paragraphs before "Parameters" describe the command, the
type of a parameter is the placeholder of its value, and "Notes" or "Examples" end the page. A parameter that is a
dataclass stands for an option of each field, which several commands share.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo, ParameterInfo

from tamis.cli.failure import MisuseError
from tamis.options import RunOptions

_Function = TypeVar("_Function", bound=Callable[..., Any])
_RARE = "Rarely needed"  # the panel of the options under "Other Parameters"
_RARE_OF_RUN = (
    "protocol", "stability_window", "n_draws", "frozen_after", "replay", "scale", "window",
)  # fmt: skip


@dataclass(frozen=True)
class HelpPanel:
    """The panel of an option on the help page, as in ``Annotated[int, HelpPanel("Output")]``, or of those of a run."""

    title: str | None
    without: tuple[str, ...] = ()


EVALUATION, OUTPUT = HelpPanel("Evaluation"), HelpPanel("Output")
AsJSON = Annotated[bool, typer.Option("--json", help="Print one JSON document."), OUTPUT]
Force = Annotated[bool, typer.Option(help="Overwrite files that are not from Tamis."), OUTPUT]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress."), OUTPUT]
_Debug = Annotated[bool, typer.Option(help="Show the traceback of an error."), HelpPanel(_RARE)]


class _Root(TyperGroup):
    """The list of commands, on one screen of 24 lines."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.format_usage(ctx, formatter)
        formatter.write(f"{self.help}\n\n")
        formatter.write_dl([(name, one.get_short_help_str(68)) for name, one in self.commands.items()])
        names = [" or ".join(reversed(one.opts)) for one in self.get_params(ctx)]
        formatter.write(f"\nOptions: {', '.join(names)}\n{self.epilog}\n")


class _Command(TyperCommand):
    """A command, whose page omits what is rarely needed unless all is asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = [one for one in self.make_parser(ctx).parse_args(args=list(args))[2] if one.name == "label"]
        if len(given) > 1 and not getattr(given[0], "multiple", False):
            raise MisuseError(
                f"--label is given {len(given)} times: give it once to {ctx.info_name}; run, recommend, screen, compare"
                " and follow take several labels."
            )
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        rare: list[Any] = [one for one in self.params if getattr(one, "rich_help_panel", None) == _RARE]
        for one in rare:
            one.hidden = not ctx.meta.get(_RARE)
        super().format_help(ctx, formatter)
        for one in rare:
            one.hidden = False


def _show_all(ctx: typer.Context, value: bool) -> None:
    if value:
        ctx.meta[_RARE] = True
        ctx.get_help()
        raise typer.Exit


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", help="Show rarely needed options too, and exit.", is_eager=True, callback=_show_all
    ),
]

root = typer.Typer(
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def sections(thing: object) -> dict[str, str]:
    """Return the sections of a docstring by their titles; the text before the first one has the title ""."""
    parts = re.split(r"\n\n([A-Z][\w ]*)\n-+\n", inspect.getdoc(thing) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def parameter_texts(section: str) -> dict[str, tuple[str, str]]:
    """Return the type and the description of each parameter in a section of a docstring."""
    result = {}
    for head, text in re.findall(r"^(\S.*)\n?((?:(?: .*)?\n|  .*)*)", section, re.MULTILINE):
        names, _, kind = head.partition(" : ")
        result.update(dict.fromkeys(names.split(", "), (kind, " ".join(text.split()))))
    return result


def _markup(text: str) -> str:
    """Return help with the markup of rich: code in bold, and a default in words as typer shows others."""
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)  # the terminal wraps paragraphs
    text = re.sub(r" \[default: (.*)\]$", r"  [dim]\\[default: \1][/]", text)
    return re.sub(r"`([^`]+)`", r"[bold]\1[/]", text)


def _options(
    thing: Any, parameters: Sequence[tuple[str, Any, Any]], panel: str | None
) -> Iterator[inspect.Parameter]:
    """Yield the options for the parameters of a function, or for the fields of a class."""
    texts: dict[str, tuple[str, str, str | None]] = {}
    for one in reversed(thing.__mro__) if isinstance(thing, type) else [thing]:
        for title, where in (("Parameters", panel), ("Other Parameters", _RARE)):
            entries = parameter_texts(sections(one).get(title, "")) if one is not object else {}
            texts.update({name: (*entry, where) for name, entry in entries.items()})
    for name, hint, default in parameters:
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        info = copy.copy(next((mark for mark in marks if isinstance(mark, ParameterInfo)), typer.Option()))
        metavar, text, where = texts.get(name, ("", "", panel))
        info.help = info.help or _markup(text)
        if isinstance(info, OptionInfo):
            info.rich_help_panel = next((mark.title for mark in marks if isinstance(mark, HelpPanel)), where)
        if kind is bool and not isinstance(info.default, str):  # a flag without its opposite
            info.param_decls = [_spelled(name)]
        elif metavar not in ("", "bool"):
            info.metavar = metavar
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
        )


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _run_options(panel: HelpPanel) -> tuple[list[inspect.Parameter], Callable[..., RunOptions]]:
    """Return the options of a run, and the function that makes `RunOptions` of their values."""
    known = {
        name: one
        for name, one in RunOptions.known().items()
        if one.help and one.is_setting and name not in panel.without
    }
    types = get_type_hints(RunOptions)
    parameters = []
    for name, one in known.items():
        default, where = getattr(RunOptions, name), _RARE if name in _RARE_OF_RUN else panel.title
        flags = [one.flag] if one.flag else []
        info = typer.Option(*flags, metavar=one.metavar, help=one.help, rich_help_panel=where)
        kind = list[str] if one.flag else str if one.read else types[name]
        default = str(default) if one.read else default
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
            )
        )

    def make(**values: Any) -> RunOptions:
        for name, one in known.items():
            if one.read is not None:
                values[name] = one.read(values[name])
            if one.least is not None and not isinstance(values[name], str):
                check_whole(_spelled(name), values[name], int(one.least))
        return RunOptions(**values)

    return parameters, make


def command(name: str | None = None, panel: str | None = None) -> Callable[[_Function], _Function]:
    """Add a function to the commands; `panel` is that of the options which name no other."""

    def add(function: _Function) -> _Function:
        hints = get_type_hints(function, include_extras=True)
        groups: dict[str, tuple[list[str], Callable[..., Any]]] = {}
        items: list[inspect.Parameter] = []
        for one in inspect.signature(function).parameters.values():
            kind: Any = hints[one.name]
            make: Callable[..., Any]
            if getattr(kind, "__origin__", None) is RunOptions:
                made, make = _run_options(kind.__metadata__[0])
            elif isinstance(kind, type) and is_dataclass(kind):
                made, make = _fields(kind), kind
            else:
                items += _options(function, [(one.name, kind, one.default)], panel)
                continue
            groups[one.name] = [option.name for option in made], make
            items += made

        least: dict[str, int] = {}
        for item in items:
            info = item.annotation.__metadata__[0]
            if info.min is not None:  # checked here, for a message like all others
                least[item.name], info.min = int(info.min), None

        def call(**given: Any) -> Any:
            given.pop("help_all", None)
            del given["debug"]  # which `main` reads
            for name, smallest in least.items():
                check_whole(_spelled(name), given[name], smallest)
            made = {
                group: make(**{option: given.pop(option) for option in names})
                for group, (names, make) in groups.items()
            }
            return function(**given, **made)

        items += _options(call, [("debug", _Debug, False)], panel)
        if any(item.annotation.__metadata__[0].rich_help_panel == _RARE for item in items[:-1]):
            items += _options(call, [("help_all", _HelpAll, False)], None)
        # The panels of a page have the order of their first options.
        items.sort(key=lambda item: item.annotation.__metadata__[0].rich_help_panel == _RARE)
        call.__signature__ = inspect.Signature(items)  # type: ignore[attr-defined]
        call.__annotations__ = {item.name: item.annotation for item in items}
        page = sections(function)
        help_, end = (_markup(page.get(title, "")) for title in ("", "Notes"))
        if examples := _markup(page.get("Examples", "")):
            end = f"Examples:\n\n{examples}" if "\n\n" in examples else f"Example: {examples}"
        root.command(name or function.__name__, cls=_Command, help=help_, epilog=end)(call)
        return function

    return add


def _fields(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    entries = [(one.name, hints[one.name], one.default) for one in dataclasses.fields(kind)]
    return list(_options(kind, entries, kind.panel))


def check_word(option: str, value: str, known: tuple[str, ...]) -> None:
    """Reject an unknown value of the option."""
    if value not in known:
        raise MisuseError(f"{option} must be {', '.join(known[:-1])} or {known[-1]}, got {value}.")


def check_whole(option: str, value: int | None, least: int) -> None:
    """Reject a number below `least`."""
    if value is not None and value < least:
        raise MisuseError(f"{option} must be {least} or more, got {value}.")
