"""Errors of the command line: one line, and an exit code."""

from __future__ import annotations

import re
import shlex

from tamis.errors import TamisError, UnknownNameError

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
# Parameters named in messages -> the options that set them.
_SPELLING = {
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "label", "format", "delimiter", "decimal", "encoding", "categorical", "times", "time_format",
            "max_quoted_lines", "missing", "drop", "drop_unlabelled", "n_features", "protocol", "delay", "replay",
            "scale", "baselines", "idle", "eps", "half_life", "model", "target_fdr", "release", "level",
            "initial_wealth", "payout", "max_seconds",
        )
    },
    "n_features_to_select": "--select",
    "delayed_features": "--delayed",
}  # fmt: skip


_SWITCHES = {
    "header=False": "--no-header",
    "zero_based=True": "--zero-based",
    "zero_based=False": "--one-based",
    "variance='robust'": "--robust",
}


class MisuseError(Exception):
    """The command was used wrongly."""


class ProblemsError(Exception):
    """Raised with all problems of a file that prevent reading it.

    Parameters
    ----------
    path : str
    problems : list of (str, list of str)
        The problem, and the words of the command line that fix it.
    """

    def __init__(self, path: str, problems: list[tuple[str, list[str]]]) -> None:
        super().__init__(path, problems)
        self.path, self.problems = path, problems

    def message(self, given: list[str]) -> str:
        """Return one sentence, or a line for each problem and the corrected command line."""
        if len(self.problems) == 1:
            [(text, words)] = self.problems
            return f"{self.path!r}: {text}" + (f"; add {shlex.join(words)}." if words else ".")
        lines = [f"{self.path!r} cannot be used as it is:"]
        for text, words in self.problems:
            lines.append(f"  {text}" + (f": {shlex.join(words)}" if words else ""))
        corrected = [word for _, words in self.problems for word in words]
        if corrected and all(words and words[-1] != "NAME" for _, words in self.problems):
            lines.append(
                f"Corrected: {shlex.join(['tamis', *_without_decimal(given, corrected), *corrected])}"
            )
        return "\n".join(lines)

    @property
    def is_misuse(self) -> bool:
        """Whether the label option is missing, which is not a problem of the file."""
        return any(words[:1] == ["--label"] for _, words in self.problems)


def _without_decimal(given: list[str], corrected: list[str]) -> list[str]:
    """Return the given words without a decimal mark that is corrected; all other corrections are additions."""
    if "--decimal" not in corrected or "--decimal" not in given:
        return given
    at = given.index("--decimal")
    return given[:at] + given[at + 2 :]


def explain(error: BaseException, given: list[str]) -> tuple[str, int]:
    """Return a one-line error message, and the exit code."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return "interrupted", INTERRUPTED
    if hasattr(error, "format_message"):  # typer found the command line wrong
        command = getattr(getattr(error, "ctx", None), "command_path", "tamis")
        message = _one_line(error.format_message()).rstrip(".")
        stop = "" if message.endswith("?") else "."
        return f"{message}{stop} See {command} --help." if message else "", MISUSED
    if isinstance(error, ProblemsError):
        return error.message(given), MISUSED if error.is_misuse else FAILED
    message = _one_line(str(error))
    if message.startswith("Sparse data was passed"):  # scikit-learn's words, and ours
        from tamis.catalog import LEARNERS

        able = ", ".join(entry.key for entry in LEARNERS if entry.sparse)
        return (
            f"The rows are sparse, and this learner keeps dense rows: choose another --learner ({able}).",
            FAILED,
        )
    if match := re.match(r"y contains (.+), which is text:", message):
        return (
            f"The label contains {match[1]}, which is text: name a numeric label, or choose --task classification.",
            FAILED,
        )
    if message.startswith("Input X contains NaN"):
        return message.replace("impute or drop it first", "choose --missing mean"), FAILED
    if isinstance(error, MisuseError | UnknownNameError | ImportError):
        return message, MISUSED
    if isinstance(error, TamisError | ValueError | TypeError | OSError):
        spelled = spell(message, given)
        return spelled, MISUSED if spelled.startswith("--") or _is_unknown_column(message, given) else FAILED
    return f"unexpected {type(error).__name__}: {message}. Run it again with --debug to see where.", FAILED


def _is_unknown_column(message: str, given: list[str]) -> bool:
    """Return whether the error is an unknown column named on the command line."""
    words = {part for word in given for one in (word, word.partition("=")[2]) for part in one.split(",")}
    return any(
        f" has no column {word!r}" in message
        or f" has no column like {word!r}" in message
        or message.endswith(f"there is none at position {word}.")
        for word in words
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def spell(message: str, given: list[str]) -> str:
    """Return the message with the options' spelling in place of the parameters'."""
    message = message.replace("choose one of csv", "add --format, one of csv")
    for python, shell in _SWITCHES.items():
        message = message.replace(python, shell)
    spelling = dict(_SPELLING)
    for text in given:  # --set name=value
        if (name := text.removeprefix("--set=").partition("=")[0]).isidentifier():
            spelling[name] = f"--set {name}"
    names = "|".join(sorted(spelling, key=len, reverse=True))

    def spelled(match: re.Match[str]) -> str:
        value = (match["value"] or "").strip("'")  # as in `name='value'`, `name=['value']` or `name=True`
        return " ".join(part for part in (spelling[match["name"]], "" if value == "True" else value) if part)

    return re.sub(
        rf"(?<![\w.'-])(?P<name>{names})(?:=\[?(?P<value>'[^']*'|\w+)\]?|(?= must ))", spelled, message
    )
