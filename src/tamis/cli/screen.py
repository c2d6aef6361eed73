"""`tamis screen`: the relevance of each column to the label, univariate, in one pass over a file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.catalog import SCORE_TITLES
from tamis.cli.failure import INTERRUPTED, MisuseError
from tamis.cli.options import AsJSON, Debug, Force, Quiet, check_whole, grouped, option
from tamis.cli.ranking import Ranking
from tamis.cli.reading import Reading
from tamis.cli.screen_output import Output
from tamis.errors import DataError, TamisError

if TYPE_CHECKING:
    pass

__all__ = ["add", "screen"]

_EXAMPLES = """\
Examples:

[bold]tamis screen sensors.csv --label state[/]

[bold]tamis screen words.svm --score chi2 --score gini --top 50 --out scores.csv[/]

[bold]tamis screen sensors.csv --label state --level 0.05 --report screen.html[/]

[bold]zcat log.csv.gz | tamis screen - --label -1 --score t --half-life 10000 --json[/]"""

_SCORING = "Scores"
_DEPENDENCE = ("auto", "independent", "series")


@dataclass
class _Reading(Reading):
    missing: Annotated[
        str, option("Reading the file", "HOW", "Missing numbers: keep (they are skipped), mean, or error.")
    ] = "keep"


def add(root: typer.Typer) -> None:
    """Add the command."""
    root.command(epilog=_EXAMPLES)(grouped(screen))


def screen(
    *,
    score: Annotated[
        list[str] | None,
        option(
            _SCORING,
            "NAME",
            "t, fisher, mi, chi2 or gini; may be repeated; the first one ranks the columns.  [dim]\\[default: mi][/]",
            autocompletion=lambda: list(SCORE_TITLES),
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        float | None,
        option(
            _SCORING,
            "SHARE",
            "Mark the relevant columns; at most this share of them are false discoveries at any time.",
        ),
    ] = None,
    top: Annotated[int, option(_SCORING, "N", "Number of columns to show.")] = 20,
    redundancy: Annotated[
        int | None,
        option(
            _SCORING,
            "M",
            "Rank the M best columns by relevance minus redundancy, so that copies of one signal rank low.",
        ),
    ] = None,
    half_life: Annotated[
        float | None, option(_SCORING, "ROWS", "Number of rows after which the weight of a row is halved.")
    ] = None,
    dependence: Annotated[
        str,
        option(
            _SCORING,
            "HOW",
            "Dependence of rows: auto (corrects for autocorrelated labels), independent, or series (a time series).",
        ),
    ] = "auto",
    restarts: Annotated[
        str | None,
        option(
            _SCORING,
            "WHEN",
            "When to discard all earlier rows (--level remains valid): drift, or a number of rows.",
        ),
    ] = None,
    n_bins: Annotated[
        int, option(_SCORING, "K", "Number of bins of a numeric column, for mi, chi2 and gini.")
    ] = 5,
    eps: Annotated[
        float | None,
        option(
            _SCORING,
            "SHARE",
            "Rank error of the quantile sketch.  [dim]\\[default: 0.001 to 0.01, by the number of columns][/]",
            show_default=False,
        ),
    ] = None,
    batch_size: Annotated[
        int, option(_SCORING, "N", "Rows read at a time; scores do not depend on it.")
    ] = 1000,
    max_rows: Annotated[int | None, option(_SCORING, "N", "Stop after this many rows.")] = None,
    reading: _Reading,
    out: Annotated[str | None, option("Output", "FILE", "Write all columns, ranked, as CSV.")] = None,
    plot: Annotated[
        str | None, option("Output", "FILE", "Draw the top columns (.png, .svg or .pdf).")
    ] = None,
    report: Annotated[str | None, option("Output", "FILE", "Write an HTML report.")] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Rank the columns by their relevance to the label, each by itself, in one pass."""
    from tamis._validation import check_number
    from tamis.rows.screening import Screening

    names = list(dict.fromkeys(_score_name(name) for name in score or ["mi"]))
    check_whole("--top", top, 1)
    check_whole("--n-bins", n_bins, 2)
    check_whole("--batch-size", batch_size, 1)
    check_whole("--max-rows", max_rows, 1)
    if eps is not None:
        check_number("eps", eps, low=0.0, high=0.5, open_low=True, open_high=True)
    if dependence not in _DEPENDENCE:
        raise MisuseError(f"--dependence {dependence} must be one of {', '.join(_DEPENDENCE)}.")
    when = _restarts(restarts)
    _check_combination(level, redundancy, half_life, when)
    output = Output(out, plot, report, top, as_json, quiet)
    output.check(reading.inputs, force)
    stream = reading.open(width="any", quiet=quiet)
    if eps is None and stream.n_features is None:
        eps = 0.01  # the number of columns is unknown and may be large
    if redundancy is not None and stream.n_features is None:
        raise MisuseError("--redundancy needs the number of columns: give --n-features.")
    n_kept = 1.0 if redundancy is None else min(top, stream.n_features or top)
    screening = Screening(
        n_kept if level is None else None,
        scores=names,
        half_life=half_life,
        n_bins=n_bins,
        eps=eps,
        level=level,
        redundancy=redundancy,
        restarts=when,
        dependence=dependence,
    )
    ranking = Ranking(stream, screening)
    try:
        ranking.read(batch_size, max_rows, output.quiet)
    except TamisError as error:
        if not ranking.empty_reason():
            output.finish(ranking, str(error))
        raise
    if not (why := ranking.empty_reason()):
        output.finish(ranking)
    elif not ranking.interrupted:
        raise DataError(why)
    return INTERRUPTED if ranking.interrupted else 0


def _check_combination(
    level: float | None, redundancy: int | None, half_life: float | None, restarts: str | int | None
) -> None:
    """Raise if an option is out of range, or options exclude each other."""
    from tamis._validation import check_number

    check_whole("--redundancy", redundancy, 1)
    if redundancy is not None and level is not None:
        raise MisuseError("--level and --redundancy both select columns: omit one.")
    if half_life is not None:
        check_number("half_life", half_life, low=0.0, open_low=True)
    if level is not None:
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        if half_life is not None:
            raise MisuseError("--level needs rows of equal weight: give --restarts instead of --half-life.")
    if restarts is not None and half_life is not None:
        raise MisuseError("--restarts and --half-life both discard old rows: omit one.")


def _score_name(name: str) -> str:
    if name.lower() in SCORE_TITLES:
        return name.lower()
    near = difflib.get_close_matches(name.lower(), SCORE_TITLES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise MisuseError(f"--score {name} is not a score{hint} Known: {', '.join(SCORE_TITLES)}.")


def _restarts(text: str | None) -> str | int | None:
    if text is None or text == "drift":
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise MisuseError(f"--restarts {text} is neither drift nor a number of rows.")
    return int(text)
