"""The input of a command, and its profile: excluded columns, and a list of all problems."""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import typer

from tamis.cli.failure import MisuseError, ProblemsError
from tamis.cli.options import HelpPanel
from tamis.cli.output import note
from tamis.errors import StreamError

if TYPE_CHECKING:
    from tamis.streams import Stream
    from tamis.streams.profile import Problem, TableProfile
    from tamis.streams.tables import Table


@dataclass
class ReadingOptions:
    """How a file is read.

    Parameters
    ----------
    label : NAME
        The label column: its name, or position (-1 is the last).
    format : NAME
        csv, json, xlsx, parquet, arrow, arff or svmlight; by default from the file name.
    na : WORD
        Another word for a missing value in CSV, or COLUMN=NUMBER (COLUMN=*: all texts); may be repeated.
    categorical : NAMES
        Numeric columns that are categories: a,b or patterns.
    drop : NAMES
        Columns to exclude: a,b or patterns such as 'note_*'.
    missing : HOW
        Missing numbers: keep (for models that accept them), mean of the column so far, or error.

    Other Parameters
    ----------------
    header : bool
        Whether a CSV file begins with column names.
    keep : NAMES
        Columns to keep although they look like identifiers; '*' keeps all.
    times : HOW
        Dates and times: parts (year, weekday, hour) or seconds since 1970.
    drop_unlabelled : bool
        Skip rows without a label.
    delimiter : CHAR
        Separator in CSV; by default detected in the first lines.
    decimal : CHAR
        Decimal mark in CSV (. or ,); by default detected in the first lines.
    encoding : NAME
        CSV encoding: utf-8, utf-16, latin-1; by default detected in the first lines.
    time_format : FORMAT
        Format of dates in CSV, such as %d/%m/%Y.
    max_quoted_lines : N
        Largest number of lines in a quoted CSV value; a longer one is reported as an unclosed quote. [default: 100]
    n_features : N
        Number of columns of an svmlight file.
    zero_based : bool
        Whether svmlight columns count from 0 or 1.
    """

    panel: ClassVar[str] = "Reading the file"

    label: str | None = None
    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: Annotated[bool, typer.Option("--header/--no-header")] = True
    na: list[str] | None = None
    categorical: list[str] | None = None
    drop: list[str] | None = None
    keep: list[str] | None = None
    missing: str = "keep"
    times: str = "parts"
    time_format: str | None = None
    max_quoted_lines: Annotated[int | None, typer.Option(min=1)] = None
    drop_unlabelled: bool = False
    n_features: Annotated[int | None, typer.Option(min=1)] = None
    zero_based: Annotated[bool | None, typer.Option("--zero-based/--one-based")] = None

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise MisuseError(
                f"--encoding {self.encoding} is unknown: choose utf-8, utf-16 or latin-1."
            ) from None
        if self.time_format is not None and "%" not in self.time_format:
            raise MisuseError(
                f"--time-format {self.time_format} contains no date field: write it as in %d/%m/%Y %H:%M."
            )

    def look(self, file: str, **how: Any) -> tuple[Table | None, dict[str, Any]]:
        """Profile a file, and return its table and the options to read it; None if its columns have no names.

        Parameters
        ----------
        file : str
        **how
            As for `column_options`.

        Raises
        ------
        ProblemsError
            With all problems of the file.
        """
        table = self.table(file)
        return table, {} if table is None else self.column_options(table, **how)

    def column_options(
        self, table: Table, *, quiet: bool = False, ignored: Sequence[str] = (), clock: Sequence[str] = (), **how: Any
    ) -> dict[str, Any]:  # fmt: skip
        """Return the options to read a table.

        Parameters
        ----------
        table : Table
        quiet : bool, default=False
            Whether to print no notes.
        ignored : sequence of str
            Options whose problems are ignored.
        clock : sequence of str
            Columns of times that are not features.
        **how
            Of :func:`~tamis.streams.profile.profile_table`: `classes`, `max_texts`, `grows`, `predictions`.
        """
        profile = self.profile(table, clock, **how)
        if profile.whole and profile.n_rows == 0:
            raise StreamError(
                f"{profile.path!r} has a header but no rows: add rows below it, or name another file."
            )
        problems = [one for one in profile.problems if one.option not in ignored]
        if problems:
            raise ProblemsError(profile.path, [(one.text, option_words(one)) for one in problems])
        if not quiet:
            for line in _notes(profile, self.times):
                note(line)
        options = self.user_options()
        excluded = [name for name in profile.excluded if name not in clock]
        return {**options, "drop": [*options["drop"], *excluded], **({"clock": list(clock)} if clock else {})}

    def user_options(self) -> dict[str, Any]:
        """Return the column options that the user gave."""
        return {
            "categorical": _split(self.categorical), "drop": _split(self.drop), "missing": self.missing,
            "drop_unlabelled": self.drop_unlabelled, "times": self.times, "na": list(self.na or ()),
        }  # fmt: skip

    def table(self, file: str) -> Table | None:
        """Open a file with named columns."""
        from tamis._validation import check_choice
        from tamis.streams.files import TIMES, open_table
        from tamis.streams.source import Source

        check_choice("missing", self.missing, ("error", "mean", "keep"))
        check_choice("times", self.times, TIMES)
        table = open_table(file, format=self.format, header=self.header, **self.dialect())
        if isinstance(table, Source):
            return None
        self.reject_width()
        return table

    def reject_width(self) -> None:
        """Raise if a number of columns is given for a file that has names."""
        if self.n_features is not None:
            raise MisuseError(
                f"--n-features is the number of columns of an svmlight file: to select {self.n_features} features, use"
                f" --select {self.n_features}."
            )

    def profile(self, table: Table, clock: Sequence[str] = (), **how: Any) -> TableProfile:
        """Return the profile of a table."""
        from tamis.streams.profile import profile_table

        options = self.user_options()
        options["drop"] += clock
        return profile_table(table, self.label_column(), keep=_split(self.keep), **options, **how)

    def dialect(self) -> dict[str, Any]:
        """Return the dialect options of a CSV file that the user gave."""
        names = ("delimiter", "decimal", "encoding", "na", "time_format", "max_quoted_lines")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def label_column(self) -> str | int | None:
        """Return the label column: its position if it was given as a number."""
        is_position = self.label is not None and re.fullmatch(r"-?\d+", self.label)
        return int(self.label) if self.label and is_position else self.label


@dataclass
class TargetOptions(ReadingOptions):
    """How a file with one or several labels is read.

    Parameters
    ----------
    label : NAME
        The label column: its name, or position (-1 is the last). Repeated: several targets.
    """

    one: ClassVar[type[ReadingOptions]] = ReadingOptions

    label: list[str] | None = None  # type: ignore[assignment]

    def targets(self) -> list[str]:
        """Return the labels, if there are several; otherwise none.

        Raises
        ------
        MisuseError
            If several labels include a position.
        """
        names = [*dict.fromkeys(self.label or ())]
        if len(names) < 2:
            return []
        if positions := [label for label in names if re.fullmatch(r"-?\d+", label)]:
            raise MisuseError(
                f"--label {positions[0]} is a position: several labels are given by their names."
            )
        for label in set(names).intersection(_split(self.drop)):
            raise MisuseError(f"--drop must not contain the label {label!r}: remove it from the list.")
        return names

    def of(self, label: str | None = None) -> Any:
        """Return how to read the rows of one label, by default the first; the other labels are not features."""
        label = next(iter(self.label or ()), None) if label is None else label
        return self.one(**vars(self.of_labels([label] if label else [])) | {"label": label})

    def of_labels(self, names: list[str]) -> Self:
        """Return how to read the rows of some labels; the other labels are not features."""
        drop = [*(self.drop or []), *(one for one in self.label or () if one not in names)]
        return replace(self, label=names, drop=drop or None)

    def predicts_numbers(
        self, label: str, table: Table | None, given: dict[str, str | None], *, numbers: bool
    ) -> bool:
        """Return whether a model of one of several labels predicts numbers, from an option if given, or the label.

        Parameters
        ----------
        label : str
        table : Table or None
        given : dict of str to (str or None)
            The options that determine what is predicted, and their values.
        numbers : bool
            What they determine.

        Raises
        ------
        MisuseError
            If an option does not suit the label.
        """
        from tamis.streams.dialect import is_number

        if table is None:
            return numbers
        profile = self.of(label).profile(table, classes=False)
        option = next((f"--{name} {value}" for name, value in given.items() if value is not None), None)
        if option is None:
            return profile.has_numeric_label
        is_text = not all(is_number(name, self.decimal or ".") for name in profile.classes)
        if is_text if numbers else profile.has_numeric_label:
            what, fits = ("text", "numbers") if numbers else ("numbers", "classes")
            raise MisuseError(
                f"--label {label} contains {what}, but {option} is for {fits}: omit {option.split()[0]}, which is then"
                " chosen for each label."
            )
        return numbers


@dataclass
class Reading(ReadingOptions):
    """The file or data set that a command reads, and how.

    Parameters
    ----------
    file : FILE
        CSV, JSON lines, Parquet, ARFF, svmlight, Excel ...; - is standard input.
    dataset : NAME
        A data set instead of a file: see `tamis datasets`.
    """

    file: Annotated[str | None, typer.Argument()] = None
    dataset: Annotated[str | None, HelpPanel(None)] = None

    @property
    def inputs(self) -> list[str]:
        """The files that are read; - is standard input."""
        return [] if self.file is None else [self.file]

    def words(self) -> list[str]:
        """Return the command-line arguments that read the same input in the same way."""
        words = [self.file] if self.file else ["--dataset", str(self.dataset)]
        for name, value in vars(self).items():
            usual = type(self).__dataclass_fields__[name].default
            if name in ("file", "dataset", "header", "zero_based") or value in (None, False, usual):
                continue
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", *([] if one is True else [str(one)])]
        words += ["--no-header"] * (not self.header)
        if self.zero_based is not None:
            words.append("--zero-based" if self.zero_based else "--one-based")
        return words

    def open(self, width: str | None = None, **how: Any) -> Stream:
        """Open the file or data set, as in `look`; `width` is that of an svmlight file where the user gives none."""
        from tamis.streams import open_file
        from tamis.streams.files import TableStream

        self.check()
        if self.dataset is not None:
            return self._dataset()
        assert self.file is not None
        table, how = self.look(self.file, **how)
        if table is None:
            return open_file(
                self.file, label=self.label_column(), format=self.format, zero_based=self.zero_based,
                n_features=width if self.n_features is None else self.n_features,
            )  # fmt: skip
        label = self.label_column()
        assert label is not None
        return TableStream(table, label, **how)

    def check(self) -> None:
        """Raise if the input cannot be read."""
        from tamis.streams import list_datasets

        if (self.file is None) == (self.dataset is None):
            raise MisuseError("Give either a FILE (- is standard input) or --dataset NAME.")
        if self.dataset is not None:
            if self.label is not None or self.format is not None:
                raise MisuseError("--label and --format are for files; the label of a data set is fixed.")
            return
        assert self.file is not None
        if not Path(self.file).exists() and any(row["name"] == self.file for row in list_datasets()):
            raise StreamError(
                f"There is no file {self.file!r}: for the data set of that name use --dataset {self.file}."
            )
        if self.file != "-" and not Path(self.file).exists():
            raise StreamError(f"There is no file {self.file!r}: check the path.")

    def _dataset(self) -> Stream:
        from tamis.streams import list_streams, load_dataset, load_stream

        assert self.dataset is not None
        generated = {row["name"].lower() for row in list_streams()}
        return (load_stream if self.dataset.lower() in generated else load_dataset)(self.dataset)


@dataclass
class TargetReading(TargetOptions, Reading):
    """The file that a command reads, with one or several labels."""

    one: ClassVar[type[ReadingOptions]] = Reading

    def targets(self) -> list[str]:
        """Return the labels, if there are several; otherwise none.

        Raises
        ------
        MisuseError
            If several labels include a position, or the input can be read only once.
        """
        names = super().targets()
        if names and self.file == "-":
            raise MisuseError(
                "Several --label need several passes, but standard input can be read only once: save it to a file."
            )
        self.of(next(iter(names), None)).check()
        return names

    def numbers_of(
        self, labels: list[str], given: dict[str, str | None], *, numbers: bool
    ) -> dict[str, bool]:
        """Return for each of several labels whether a model of it predicts numbers; see `predicts_numbers`."""
        table = self.of().table(str(self.file)) if labels else None
        return {one: self.predicts_numbers(one, table, given, numbers=numbers) for one in labels}


def _split(given: list[str] | None) -> list[str]:
    # An empty word is the column without a name.
    return [name for one in given or () for name in one.split(",") if name or not one]


def option_words(problem: Problem) -> list[str]:
    """Return the command-line options that fix a problem, if any."""
    if not problem.option:
        return []
    words = [f"--{problem.option.replace('_', '-')}"]
    if problem.value is not True:
        words.append("NAME" if problem.value is None else str(problem.value))
    return words


def _notes(profile: TableProfile, times: str) -> list[str]:
    """Return notes on how a file is read."""
    lines = []
    if profile.written and (profile.written["decimal"], profile.written["encoding"]) != (".", "utf-8"):
        lines.append(f"{stream_name(profile.path)} is read as {dialect_text(profile)}.")
    for c in profile.columns:
        if c.kind == "number" and c.note:
            lines.append(
                f"{c.name} is read as {c.note}; --categorical {shlex.quote(c.name)} treats them as categories."
            )
    notes = [f"{c.name} {c.note}" for c in profile.columns if c.kind == "time" and c.note]
    if times == "parts" and notes:
        lines.append(f"{'; '.join(notes)}; --times seconds converts it to one number.")
    lines += [
        f"{name or '(no name)'} is excluded: {why}{keep(profile, name, '; --keep {} keeps it')}."
        for name, why in profile.excluded.items()
    ]
    lines += [f"{one.text}: {shlex.join(option_words(one))}." for one in profile.suggestions]
    return lines + [f"{line}." for line in profile.warnings]


def keep(profile: TableProfile, name: str, form: str) -> str:
    """Return how to keep an excluded column, if it can be read."""
    kinds = {column.name: column.kind for column in profile.columns}
    return "" if kinds.get(name) == "unreadable" else form.format(shlex.quote(name))


def dialect_text(profile: TableProfile) -> str:
    """Return a description of a CSV dialect."""
    separators = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks", "  ": "blanks"}
    encodings = {"utf-8": "UTF-8", "cp1252": "Latin-1", "latin-1": "Latin-1", "utf-16": "UTF-16"}
    written = profile.written
    between = separators.get(written["delimiter"], repr(written["delimiter"]))
    mark = "commas" if written["decimal"] == "," else "points"
    coded = encodings.get(written["encoding"], written["encoding"])
    if written["format"] == "json":
        return f"JSON, {coded}"
    if Path(profile.path).suffix.lower() in (".xlsx", ".xlsm"):
        return "the first sheet of a workbook"
    return f"CSV with {between} between values, decimal {mark}, {coded}"


def stream_name(path: str) -> str:
    """Return the name of a source for display."""
    return "standard input" if path in ("-", "<stdin>") else Path(path).name
