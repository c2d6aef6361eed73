"""`tamis screen`: the relevance of each column to the label, univariate, in one pass over a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.catalog import SCORE_TITLES
from tamis.cli.failure import INTERRUPTED, MisuseError, suggestion
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.output import PICTURE_MARK, Output, write_csv, write_output
from tamis.cli.ranking import Ranking
from tamis.cli.reading import Reading
from tamis.errors import DataError, TamisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.rows.screening.ranking import ColumnRanking

_DEPENDENCE = ("auto", "independent", "series")


@command(panel="Scores")
def screen(
    *,
    score: Annotated[list[str] | None, typer.Option(autocompletion=lambda: list(SCORE_TITLES))] = None,
    level: float | None = None,
    top: Annotated[int, typer.Option(min=1)] = 20,
    redundancy: Annotated[int | None, typer.Option(min=1)] = None,
    half_life: float | None = None,
    dependence: str = "auto",
    restarts: str | None = None,
    n_bins: Annotated[int, typer.Option(min=2)] = 5,
    eps: float | None = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 1000,
    max_rows: Annotated[int | None, typer.Option(min=1)] = None,
    reading: Reading,
    out: Annotated[str | None, OUTPUT] = None,
    plot: Annotated[str | None, OUTPUT] = None,
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Rank columns by their relevance to the label, in one pass.

    Each column is scored by itself.

    Parameters
    ----------
    score : NAME
        t, fisher, mi, chi2 or gini; may be repeated; the first one ranks the columns. [default: mi]
    level : SHARE
        Mark the relevant columns; at most this share of them are false discoveries at any time.
    top : N
        Number of columns to show.
    redundancy : M
        Rank the M best columns by relevance minus redundancy, so that copies of one signal rank low.
    half_life : ROWS
        Number of rows after which the weight of a row is halved.
    dependence : HOW
        Dependence of rows: auto (corrects for autocorrelated labels), independent, or series (a time series).
    restarts : WHEN
        When to discard all earlier rows (--level remains valid): drift, or a number of rows.
    n_bins : K
        Number of bins of a numeric column, for mi, chi2 and gini.
    eps : SHARE
        Rank error of the quantile sketch. [default: 0.001 to 0.01, by the number of columns]
    batch_size : N
        Rows read at a time; scores do not depend on it.
    max_rows : N
        Stop after this many rows.
    out : FILE
        Write all columns, ranked, as CSV.
    plot : FILE
        Draw the top columns (.png, .svg or .pdf).
    report : FILE
        Write an HTML report.

    Examples
    --------
    `tamis screen sensors.csv --label state`

    `tamis screen words.svm --score chi2 --score gini --top 50 --out scores.csv`

    `tamis screen sensors.csv --label state --level 0.05 --report screen.html`

    `zcat log.csv.gz | tamis screen - --label -1 --score t --half-life 10000 --json`
    """
    from tamis._validation import check_number
    from tamis.rows.screening import Screening

    names = list(dict.fromkeys(_score_name(name) for name in score or ["mi"]))
    if eps is not None:
        check_number("eps", eps, low=0.0, high=0.5, open_low=True, open_high=True)
    if dependence not in _DEPENDENCE:
        raise MisuseError(f"--dependence {dependence} must be one of {', '.join(_DEPENDENCE)}.")
    when = _restarts(restarts)
    _check_combination(level, redundancy, half_life, when)
    output = Output(as_json, quiet, report, {"--out": out, "--plot": plot}, top=top)
    output.check(reading.inputs, force)
    if plot is not None:
        _check_picture(plot)
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
            _finish(ranking, output, str(error))
        raise
    if not (why := ranking.empty_reason()):
        _finish(ranking, output)
    elif not ranking.interrupted:
        raise DataError(why)
    return INTERRUPTED if ranking.interrupted else 0


def _check_combination(
    level: float | None, redundancy: int | None, half_life: float | None, restarts: str | int | None
) -> None:
    """Raise if an option is out of range, or options exclude each other."""
    from tamis._validation import check_number

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
    hint = suggestion(name.lower(), SCORE_TITLES)
    raise MisuseError(f"--score {name} is not a score{hint} Known: {', '.join(SCORE_TITLES)}.")


def _restarts(text: str | None) -> str | int | None:
    if text is None or text == "drift":
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise MisuseError(f"--restarts {text} is neither drift nor a number of rows.")
    return int(text)


def _check_picture(place: str) -> None:
    from tamis.report.charts.bars import check_picture

    try:
        check_picture(place)
    except ValueError as error:
        raise MisuseError(str(error)) from error


def _finish(ranking: Ranking, output: Output, error: str | None = None) -> None:
    """Show the ranking, and write it to the requested files."""
    result = ranking.result(output.top, error)
    writers = {
        "table": (output.files["--out"], lambda place: _write_table(result.columns, place)),
        "plot": (output.files["--plot"], lambda place: _draw(result, place)),
    }
    options = ("half_life", "dependence", "n_bins", "eps", "level", "redundancy", "restarts")
    output.finish(
        result, writers, stream=ranking.stream.describe(), interrupted=ranking.interrupted,
        options={name: getattr(ranking.screening, name) for name in options},
        rows_dependent=ranking.screening.rows_dependent_, error=error,
    )  # fmt: skip


def _draw(result: ColumnRanking, place: str) -> None:
    from tamis.report.charts.bars import plot_ranking

    scores = {SCORE_TITLES[name]: result.columns[name][: result.top] for name in result.scores}
    title = f"{result.heading().partition(' on ')[2]}: {result.about()}"
    figure = plot_ranking(result.columns["feature"][: result.top].tolist(), scores, title)
    kind = Path(place).suffix[1:].lower()
    signed = {"Software" if kind == "png" else "Creator": PICTURE_MARK}
    write_output(place, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=signed))


def _write_table(columns: Mapping[str, NDArray[Any]], place: str) -> None:
    write_csv(
        place,
        {
            name: map(str, column) if name == "feature" else column.tolist()
            for name, column in columns.items()
        },
    )
