"""Options that several commands share, and how a command takes them: as one argument that is a dataclass."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tamis.catalog import Entry
from tamis.cli.failure import MisuseError
from tamis.errors import StreamError

if TYPE_CHECKING:
    from tamis.streams import Stream

__all__ = [
    "BASELINES",
    "SCALES",
    "AsJSON",
    "Debug",
    "Quiet",
    "Reading",
    "argument",
    "check_whole",
    "check_word",
    "grouped",
    "keys",
    "option",
]


SCALES, BASELINES = ("auto", "standard", "none"), ("random", "all", "both", "none")


def option(panel: str | None, metavar: str | None, help: str, *names: str, **more: Any) -> Any:
    """Return an option of that panel of the help page."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


def argument(metavar: str, help: str) -> Any:
    """Return an argument that may be left out."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def keys(entries: tuple[Entry, ...]) -> Callable[[], list[str]]:
    """Return what completes the name of an entry."""
    return lambda: [entry.key for entry in entries]


AsJSON = Annotated[bool, option("Output", None, "Print one JSON document.", "--json")]
Quiet = Annotated[bool, option("Output", None, "Show no progress.", "--quiet", "-q")]
Debug = Annotated[bool, option("Output", None, "Show the traceback of an error.", "--debug")]

_FILE = "Reading the file"


@dataclass
class Reading:
    """The file or data set that a command reads, and how."""

    file: Annotated[
        str | None, argument("FILE", "CSV, Parquet, ARFF, svmlight ...; - is standard input.")
    ] = None
    dataset: Annotated[
        str | None, option(None, "NAME", "Run on a data set instead: see [bold]tamis datasets[/].")
    ] = None
    label: Annotated[
        str | None, option(_FILE, "NAME", "The label column: name, or position (-1 is the last).")
    ] = None
    format: Annotated[
        str | None, option(_FILE, "NAME", "csv, parquet, arrow, arff or svmlight, if the name does not tell.")
    ] = None
    delimiter: Annotated[str | None, option(_FILE, "CHAR", "What separates values in CSV.")] = None
    header: Annotated[
        bool, option(_FILE, None, "Whether a CSV file begins with names.", "--header/--no-header")
    ] = True
    categorical: Annotated[
        list[str] | None,
        option(_FILE, "NAME", "A column of categories that look like numbers; may be repeated."),
    ] = None
    drop: Annotated[list[str] | None, option(_FILE, "NAME", "A column to leave out; may be repeated.")] = None
    missing: Annotated[
        str, option(_FILE, "HOW", "Missing numbers: error, mean of the column so far, or keep.")
    ] = "error"
    drop_unlabelled: Annotated[
        bool, option(_FILE, None, "Pass over rows without label.", "--drop-unlabelled")
    ] = False
    n_features: Annotated[int | None, option(_FILE, "N", "Columns of an svmlight file.")] = None
    zero_based: Annotated[
        bool | None, option(_FILE, None, "Where the columns of an svmlight file begin.", "--zero-based/--one-based")
    ] = None  # fmt: skip

    def open(self, width: str | None = None) -> Stream:
        """Open the file or data set; `width` is that of an svmlight file where the user gives none."""
        from tamis.streams import list_datasets, list_streams, load_dataset, load_stream, open_file

        check_whole("--n-features", self.n_features, 1)
        if (self.file is None) == (self.dataset is None):
            raise MisuseError(
                "Say what to run on: a FILE (- is standard input) or --dataset NAME, one of them."
            )
        if self.dataset is not None:
            if self.label is not None or self.format is not None:
                raise MisuseError("--label and --format are for files; a data set brings its own label.")
            generated = {row["name"].lower() for row in list_streams()}
            return (load_stream if self.dataset.lower() in generated else load_dataset)(self.dataset)
        assert self.file is not None
        if not Path(self.file).exists() and any(row["name"] == self.file for row in list_datasets()):
            raise StreamError(
                f"There is no file {self.file!r}: for the data set of that name say --dataset {self.file}."
            )
        position = self.label is not None and re.fullmatch(r"-?\d+", self.label)
        return open_file(
            self.file,
            label=int(self.label) if self.label and position else self.label,
            format=self.format,
            delimiter=self.delimiter,
            header=self.header,
            categorical=self.categorical or (),
            drop=self.drop or (),
            missing=self.missing,
            drop_unlabelled=self.drop_unlabelled,
            n_features=width if self.n_features is None else self.n_features,
            zero_based=self.zero_based,
        )


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
