"""The command line, one module per command.

Exit codes: 0 success, 1 the data cannot be used, 2 the command was used wrongly, 130 interrupted.
Results go to standard output; progress and errors go to standard error. A command imports what it needs when it runs,
so that help and usage errors appear at once.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import tamis
from tamis._interrupts import stop_signals_as_interrupt
from tamis.cli.failure import FAILED, INTERRUPTED, explain, spell
from tamis.cli.sanitise import sanitised_output

if TYPE_CHECKING:
    import typer

__all__ = ["app", "main"]

# Commands in the order in which help shows them, and their modules.
_COMMANDS = {
    **dict.fromkeys(
        ("demo", "look", "recommend", "run", "follow", "watch", "retire", "compare", "generate", "screen", "columns",
         "train", "acquire", "freeze", "warm-up")
    ),
    "list": "methods",
    "datasets": "methods",
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Examples
    --------
    >>> main(["run", "--selector", "firse", "--dataset", "electricity"])
    2
    """
    _replace_closed_streams()
    with sanitised_output(), warnings.catch_warnings():
        warnings.showwarning = _print_warning
        return _run(list(sys.argv[1:] if arguments is None else arguments))


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one sentence, without the line of source."""
    print(f"tamis: warning: {spell(' '.join(str(message).split()), [])}", file=sys.stderr)


def _run(given: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show becomes a question mark, not an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        command = _command()  # raises if typer or rich is missing
        from tamis.cli.output import GIVEN

        GIVEN.set(tuple(given))
        with stop_signals_as_interrupt():
            code = command(args=given, prog_name="tamis", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:
            hint = "; the same command resumes from the checkpoint" if _has_checkpoint(given) else ""
            print(f"tamis: interrupted{hint}", file=sys.stderr)
        return code if isinstance(code, int) else 0
    except (BrokenPipeError, SystemExit):  # the reader closed the pipe; rich then exits
        _discard_output()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            _discard_output()
            print(
                f"tamis: cannot write to standard output ({error.strerror}): free some space there.",
                file=sys.stderr,
            )
            return FAILED
        if "--debug" in given:
            traceback.print_exc()
        if isinstance(error, KeyboardInterrupt):
            # CPython remembers an interrupt that left an exec, as where a kernel is compiled, and python -m would kill
            # itself at exit regardless of the exit code; another exec clears it.
            exec("")
        message, code = explain(error, given)
        if message:
            print(f"tamis: {message}", file=sys.stderr)
        return code


def _replace_closed_streams() -> None:
    """Give a process that was started without standard input, output or errors empty ones in their places."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process


def _has_checkpoint(given: Sequence[str]) -> bool:
    """Return whether the file that --checkpoint names was written; an interruption may come before the first time."""
    named = [
        text.partition("=")[2] or following
        for text, following in zip(given, [*given[1:], ""], strict=True)
        if text.partition("=")[0] == "--checkpoint"
    ]
    return any(map(os.path.isfile, named))


def _discard_output() -> None:
    """Discard further output, so that the process does not fail on it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@functools.cache  # reading the signatures of all commands takes longer than refusing a wrong one
def _command() -> Callable[..., object]:
    root = app()
    from typer.main import get_command

    return get_command(root)


def app() -> typer.Typer:
    """Return the typer application."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError:
        raise ImportError("The command line needs typer and rich: pip install 'tamis[cli]'") from None
    from tamis.cli.options import root

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"tamis {tamis.__version__}")
            raise typer.Exit

    @root.callback(epilog="Begin with tamis demo, then try your own file: tamis run FILE --label NAME")
    def start(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        """Sift features from data streams: which columns matter now?"""

    for command, module in _COMMANDS.items():
        importlib.import_module(f"tamis.cli.{module or command.replace('-', '_')}")
    root.registered_commands.sort(key=lambda one: [*_COMMANDS].index(str(one.name)))
    return root
