"""Output of a command: files, progress, and the handling of the terminal."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import reprlib
import shlex
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tamis._interrupts import PRESSED_SIGNALS, STOP_SIGNALS, os_errors_as, replaced_handlers
from tamis._json import null_nonfinite
from tamis.cli.failure import MisuseError, spell
from tamis.cli.sanitise import sanitise
from tamis.errors import StreamError

GIVEN: ContextVar[tuple[str, ...]] = ContextVar("GIVEN", default=())  # the words of the command line
_SILENT = ("--quiet", "-q", "--json", "--force", "--debug")


def given_command() -> str:
    """Return the command line that was given, for the page that shows its result; empty where there was none."""
    words = [word for word in GIVEN.get() if word not in _SILENT]
    return shlex.join(["tamis", *words]) if words else ""


Writers: TypeAlias = Mapping[str, tuple[str | None, Callable[[str], object]]]


@dataclass
class Output:
    """How a command shows its result, and the files that it writes; each is checked before the first row is read.

    Attributes
    ----------
    as_json, quiet : bool
    report : str or None
        File of the page.
    files, folders : dict of str to str or None
        Where each further option writes to.
    top : int
        Maximum number of rows of a table in the terminal.
    """

    as_json: bool
    quiet: bool
    report: str | None = None
    files: dict[str, str | None] = field(default_factory=dict)
    folders: dict[str, str | None] = field(default_factory=dict)
    top: int = 20

    def check(self, inputs: Iterable[str], force: bool) -> None:
        """Reject paths that cannot be written, or contain something else."""
        check_outputs(inputs, {**self.files, "--report": self.report}, self.folders, force=force)

    def finish(
        self,
        result: Any,
        writers: Writers | None = None,
        title: str | None = None,
        *,
        closing: str = "",
        **more: Any,
    ) -> None:
        """Print a result, write its files and print their paths, or print all as one JSON document.

        Parameters
        ----------
        result : tamis.report.Result
        writers : dict of str to (str or None, callable)
            For each kind of file its path, and what writes it.
        title : str, optional
            In place of the result's heading.
        closing : str
            Printed after the result.
        **more
            Further keys of the JSON document.
        """
        if not self.as_json:
            from tamis.terminal import show

            show(terminal(), result, title, top=self.top)
            print(f"\n{closing}" * bool(closing))
        written = self.write(result, writers or {}, title)
        if self.as_json:
            print_json({**result.to_dict(), **more, "written": written})
        else:
            for name, place in written.items():
                print(f"The {name}: {place}")

    def write(self, result: Any, writers: Writers, title: str | None = None) -> dict[str, str]:
        """Write the files of a result; return their paths."""
        page = (self.report, lambda place: result.report(place, title, command=given_command()))
        written = {}
        for name, (place, write) in {**writers, "report": page}.items():
            if place is not None:
                write(place)
                written[name] = place
        return written


class SanitisedConsole(Console):
    """A console whose texts contain no control characters; its own codes for colours and the cursor remain."""

    def __init__(self, *, stderr: bool) -> None:
        stream = sys.stderr if stderr else sys.stdout
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        super().__init__(file=stream, stderr=stderr, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the parts of a renderable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else sanitise(text), style, control)


def terminal(stderr: bool = False) -> Console:
    """Return the terminal, to print on."""
    return SanitisedConsole(stderr=stderr)


def note(text: str) -> None:
    """Print a note on standard error."""
    terminal(stderr=True).print(f"tamis: {text}", markup=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """Print one JSON document; numbers that JSON does not have become null."""
    print(json.dumps(null_nonfinite(document), indent=1, allow_nan=False, default=str))


def write_output(place: str, write: Callable[[BinaryIO], object]) -> None:
    """Write a file that the user asked for, completely or not at all.

    Raises
    ------
    StreamError
        If it cannot be written, naming the place and the cause.
    """
    from tamis.persistence import replace_file

    advice = "free some space there, or choose another path"
    with os_errors_as(StreamError, f"{place!r} cannot be written", advice):
        replace_file(place, write)


def write_csv(place: str, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write a table as CSV, its texts escaped for spreadsheets; see `write_output`."""
    from tamis.streams.dialect import escape_formula

    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([escape_formula(cell) if isinstance(cell, str) else cell for cell in row])
    write_output(place, lambda file: file.write(text.getvalue().encode()))


def check_outputs(
    inputs: Iterable[str], files: dict[str, str | None], folders: dict[str, str | None] | None = None, *,
    force: bool = False,
) -> None:  # fmt: skip
    """Reject paths that cannot be written, or that would overwrite files of others; before anything starts.

    Paths are resolved before they are compared, so a link to an input is that input. A file that Tamis wrote is
    overwritten: it carries a mark (see `is_ours`). Others are not, unless the user sets --force.

    Parameters
    ----------
    inputs : iterable of str
        Files that are read; never overwritten. - is standard input, which may be a file too.
    files, folders : dict of str to str or None
        Where each option writes to.
    force : bool, default=False
        Whether files of others may be overwritten.

    Raises
    ------
    MisuseError
        Naming the option and the place.
    """
    inputs, folders = list(inputs), folders or {}
    places = [(option, place) for option, place in {**files, **folders}.items() if place is not None]
    for option, place in places:
        if option == "--report":
            _check_report(place)
        check_place(option, place, is_folder=option in folders)
        for read in inputs:
            if _is_same(place, read):
                read_from = "the file redirected to standard input" if read == "-" else "the input file"
                raise MisuseError(f"{option} {place} is {read_from}: choose another path.")
            if (
                option in folders
                and read != "-"
                and Path(os.path.realpath(place)) in Path(os.path.realpath(read)).parents
            ):
                raise MisuseError(f"{option} {place} contains the input file: choose another folder.")
    for (option, place), (other, second) in itertools.combinations(places, 2):
        if _is_same(place, second):
            raise MisuseError(f"{option} and {other} are the same path, {second}: choose two different ones.")
        if other in folders and _is_part_of_a_result(place, second):
            raise MisuseError(f"{option} {place} is a file of {other} {second}: choose another path.")
    for option, place in places:
        if option not in folders and not force and os.path.lexists(place) and not is_ours(place):
            raise MisuseError(
                f"{option} {place} exists already, and is not from Tamis: choose another path, or add --force."
            )


@contextlib.contextmanager
def alone(*places: str | None) -> Iterator[None]:
    """Lock these files against other processes; raise before anything starts if one is locked already."""
    from tamis.persistence.lock import write_lock

    with contextlib.ExitStack() as held:
        for place in places:
            if place is not None:
                held.enter_context(write_lock(place))
        yield


def _check_report(place: str) -> None:
    from tamis.report import check_writable

    try:
        check_writable(place)
    except ValueError as error:
        raise MisuseError(str(error)) from error


def _is_same(place: str, other: str) -> bool:
    """Return whether two paths are the same file; `other` may be -, the file redirected to standard input."""
    if other == "-":
        return os.path.exists(place) and os.path.samestat(os.stat(place), os.fstat(0))
    first, second = os.path.realpath(place), os.path.realpath(other)
    if os.path.exists(first) and os.path.exists(second):
        return os.path.samefile(first, second)
    return first == second or (
        first.casefold() == second.casefold() and _ignores_case(os.path.dirname(first))
    )


def _ignores_case(folder: str) -> bool:
    other = folder.swapcase()
    return other != folder and os.path.exists(other) and os.path.samefile(folder, other)


def _is_part_of_a_result(place: str, folder: str) -> bool:
    """Return whether a file has a place and a name as those that are saved in a folder of results."""
    path = Path(os.path.realpath(place))
    return Path(os.path.realpath(folder)) in path.parents and path.suffix in (".json", ".parquet")


PICTURE_MARK = "Created with Tamis"
# The seal of tamis.persistence.
_MARKS = (b"<footer>Made by Tamis", b"tamis sha256 ", PICTURE_MARK.encode())
# Of tamis screen and acquire --out, the truth of tamis generate, events and rejected rows of tamis follow, alerts.
_BEGINNINGS = (
    b"rank,feature", b"record,decision", b'{\n "stream": ', b'{"event": "', b'{"source": ', b'{"row": ',
)  # fmt: skip
_LOOKED_AT = 1 << 16  # bytes at either end of a file


def is_ours(place: str) -> bool:
    """Return whether Tamis wrote a file, or there is nothing in it.

    Reports and pictures carry its name, models and checkpoints its seal; a table of `tamis screen` begins with the
    names of its columns, and a stream of `tamis generate` has its truth beside it.
    """
    path = Path(place)
    try:
        if not path.is_file():
            return False
        size = path.stat().st_size
        with open(path, "rb") as file:
            parts = file.read(_LOOKED_AT)
            file.seek(max(0, size - _LOOKED_AT))
            parts += file.read()
    except OSError:
        return False
    truth = path.with_name(f"{path.stem}.truth.json")
    made = truth != path and truth.is_file() and is_ours(str(truth))
    begins = any(parts.startswith(mark) for mark in _BEGINNINGS)
    return size == 0 or made or begins or any(mark in parts for mark in _MARKS)


def check_place(option: str, place: str, *, is_folder: bool) -> None:
    """Reject a place that cannot be written, before the run."""
    path = Path(place).absolute()
    problem = f"{option} {reprlib.repr(place)} cannot be written"
    with os_errors_as(MisuseError, problem, "choose another path"):
        _check_existing(option, path, place, is_folder=is_folder)
        nearest = next(parent for parent in path.parents if parent.exists())
        # Who may write there is not all: a file system may be full, read-only, or have no room for so long a name.
        tempfile.NamedTemporaryFile(dir=nearest, prefix=f".{path.name}.", suffix=".0123456789.tmp").close()


def _check_existing(option: str, path: Path, place: str, *, is_folder: bool) -> None:
    if is_folder and path.exists():
        from tamis.evaluate.experiment.cells import contains_other_files

        if not path.is_dir():
            raise MisuseError(f"{option} {place} is a file: choose a folder.")
        if not (path / "settings.json").is_file() and contains_other_files(path):
            raise MisuseError(f"{option} {place} contains other files: choose a new folder.")
    if not is_folder and path.is_dir():
        raise MisuseError(f"{option} {place} is a folder: add the name of a file.")
    if not is_folder and not path.parent.is_dir():
        raise MisuseError(
            f"{option} {place}: the folder {str(path.parent)!r} does not exist; create it first."
        )


_EVERY = 10.0  # seconds between two lines where nothing can be redrawn


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Callable[[float | None, str], None]]:
    """Yield a function that shows the progress on standard error, as a share and a short text.

    On a terminal a bar stays in its place and is gone afterwards; elsewhere a line is written every ten seconds.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = terminal(stderr=True)
    visible = console.is_terminal and not console.is_dumb_terminal and not quiet
    bar = BarColumn(complete_style="cyan", finished_style="cyan", pulse_style="cyan")
    parts = [bar, TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn()]
    last_line = time.monotonic()
    with Progress(*parts, console=console, transient=True, disable=not visible) as live:
        task = live.add_task("", total=None)

        def show(share: float | None, text: str) -> None:
            nonlocal last_line
            if visible:
                live.update(
                    task, description=text, total=None if share is None else 1.0, completed=share or 0
                )
            elif not quiet and time.monotonic() - last_line > _EVERY:
                last_line = time.monotonic()
                console.print(text if share is None else f"{share:4.0%}  {text}", markup=False)

        yield show


@contextlib.contextmanager
def warnings_in_one_line(console: Console) -> Iterator[None]:
    """Show each warning once, as a line above the live display."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest, **more: console.print(
            f"tamis: warning: {spell(' '.join(str(message).split()), [])}", markup=False, soft_wrap=True
        )
        yield


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C, SIGTERM and SIGHUP to the end of the current batch, but at most one second.

    Yields a function to be called between batches. A second signal stops at once.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not hasattr(signal, "setitimer"):
        yield lambda: None
        return
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and number in PRESSED_SIGNALS:
            raise KeyboardInterrupt
        asked = True
        signal.setitimer(signal.ITIMER_REAL, 1.0)

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def stop_if_asked() -> None:
        if asked:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    with replaced_handlers(ask, *STOP_SIGNALS), replaced_handlers(stop, signal.SIGALRM):
        try:
            yield stop_if_asked
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
