"""What goes wrong on the command line: one line, and an exit code."""

from __future__ import annotations

import re

from tamis.errors import TamisError, UnknownNameError

__all__ = ["FAILED", "INTERRUPTED", "MISUSED", "MisuseError", "explain"]

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
_SPELLING = {  # parameters that messages speak of -> the options that set them
    "n_features_to_select": "--select",
    "label": "--label",
    "format": "--format",
    "delimiter": "--delimiter",
    "missing": "--missing",
    "drop": "--drop",
    "drop_unlabelled": "--drop-unlabelled",
    "n_features": "--n-features",
    "protocol": "--protocol",
    "eps": "--eps",
    "half_life": "--half-life",
    "model": "--model",
    "target_fdr": "--target-fdr",
    "release": "--release",
    "initial_wealth": "--initial-wealth",
    "payout": "--payout",
    "max_seconds": "--max-seconds",
}


class MisuseError(Exception):
    """The command was used wrongly."""


def explain(error: BaseException, given: list[str]) -> tuple[str, int]:
    """Return one line that says what went wrong, and the exit code."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return "interrupted", INTERRUPTED
    if hasattr(error, "format_message"):  # typer found the command line wrong
        command = getattr(getattr(error, "ctx", None), "command_path", "tamis")
        message = _one_line(error.format_message()).rstrip(".")
        stop = "" if message.endswith("?") else "."
        return f"{message}{stop} See {command} --help." if message else "", MISUSED
    message = _one_line(str(error))
    if isinstance(error, MisuseError | UnknownNameError | ImportError):
        return message, MISUSED
    if isinstance(error, TamisError | ValueError | TypeError | OSError):
        spelled = _spell(message, given)
        return spelled, MISUSED if spelled.startswith("--") else FAILED
    return f"unexpected {type(error).__name__}: {message}. Run it again with --debug to see where.", FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _spell(message: str, given: list[str]) -> str:
    """Return the message with the options' spelling in place of the parameters'."""
    message = message.replace("choose one of csv", "say --format, one of csv")
    spelling = dict(_SPELLING)
    for text in given:  # --set name=value
        if (name := text.removeprefix("--set=").partition("=")[0]).isidentifier():
            spelling[name] = f"--set {name}"
    names = "|".join(sorted(spelling, key=len, reverse=True))

    def spelled(found: re.Match[str]) -> str:
        value = (found["value"] or "").strip("'")  # as in `name='value'`, `name=['value']` or `name=True`
        return " ".join(part for part in (spelling[found["name"]], "" if value == "True" else value) if part)

    return re.sub(
        rf"(?<![\w.'-])(?P<name>{names})(?:=\[?(?P<value>'[^']*'|\w+)\]?|(?= must ))", spelled, message
    )
