"""`tamis screen`: the relevance of each column to the label, univariate, in one pass over a file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.catalog import SCORE_TITLES
from tamis.cli.failure import INTERRUPTED, MisuseError
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, check_word, command
from tamis.cli.output import (
    PICTURE_MARK,
    Output,
    deferred_interrupt,
    progress,
    terminal,
    warnings_in_one_line,
    write_csv,
    write_output,
)
from tamis.cli.reading import TargetReading
from tamis.errors import DataError, TamisError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.rows.screening import Screening
    from tamis.rows.screening.ranking import ColumnRanking
    from tamis.streams import Stream

# -- ranking -----------------------------------------------------------------------------------------------


class Ranking:
    """The columns of a stream, ranked by the scores of a screening.

    Parameters
    ----------
    stream : Stream
    screening : Screening
        Not fitted yet.

    Attributes
    ----------
    n_rows : int
        Number of rows learned.
    interrupted : bool
        Whether the run was interrupted.
    seconds : float
    """

    def __init__(self, stream: Stream, screening: Screening) -> None:
        self.stream, self.screening = stream, screening
        self.n_rows, self.interrupted, self.seconds = 0, False, 0.0
        self._slots = _ColumnSlots() if stream.n_features is None else None

    def read(self, batch_size: int, max_rows: int | None, quiet: bool) -> None:
        """Learn from all rows, or until Ctrl-C, after which the model is consistent."""
        began = time.perf_counter()
        total = min((n for n in (max_rows, self.stream.n_rows) if n is not None), default=None)
        console = terminal(stderr=True)
        with warnings_in_one_line(console), deferred_interrupt() as stop_if_asked, progress(quiet) as show:
            try:
                for X, y in self.stream.batches(min(batch_size, max_rows or batch_size)):
                    n = len(y) if max_rows is None else min(len(y), max_rows - self.n_rows)
                    self._learn(X[:n], y[:n])
                    self.n_rows += n
                    share = self.n_rows / total if total else self.stream.progress()
                    show(share, f"{self.n_rows:,} rows")
                    stop_if_asked()
                    if self.n_rows == max_rows:
                        break
            except KeyboardInterrupt:
                self.interrupted = True
            finally:
                self.seconds = time.perf_counter() - began

    def _learn(self, X: Any, y: Any) -> None:
        import scipy.sparse as sp

        if self.n_rows == 0:
            self.screening.set_params(categorical=getattr(self.stream, "categorical", None) or None)
        if self._slots is not None:
            places = self._slots.assign(X.indices)
            room = self.screening.n_features_in_ if self.n_rows else 1
            if len(self._slots.columns) > room:  # by halves, so that making room costs little in all
                room = max(len(self._slots.columns), room + room // 2)
                if self.n_rows:
                    self.screening.widen(room)
            X = sp.csr_matrix((X.data, places, X.indptr), (X.shape[0], room))
        self.screening.partial_fit(X, y)

    def empty_reason(self) -> str:
        """Return why nothing can be ranked, or "" if it can."""
        if self.n_rows == 0:
            return "No rows were read: pass a file with rows."
        if self.screening.warming_up_:
            label = self.screening.classes_[0]
            return f"The only label is {label!s}: a score needs rows of two classes."
        if self._slots is not None and len(self._slots.columns) == 0:
            return f"None of the {self.n_rows:,} rows has a value: there is nothing to rank."
        return ""

    @property
    def scores(self) -> list[str]:
        """The requested scores; the first one determines the ranks."""
        return list(self.screening.scores)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return rank, name and scores of all columns, the best first; ties keep their order."""
        import numpy as np

        table = self.screening.table_
        at = np.arange(len(table["feature"]))
        if self._slots is not None:
            at = self._slots.columns + getattr(self.stream, "first_index", 0)
            table = {name: column[: len(at)] for name, column in table.items()}
        names = self.stream.feature_names or [f"x{j}" for j in at]
        table["feature"] = np.array(names, dtype=object)
        order = np.lexsort((at, -table[self.scores[0]]))
        if self.screening.redundancy is not None:  # those that are kept come first
            order = order[np.argsort(~table["selected"][order], kind="stable")]
        ranked = {name: column[order] for name, column in table.items()}
        return {"rank": np.arange(1, len(order) + 1), **ranked}

    @property
    def title(self) -> str:
        """The subject and the criterion of the ranking."""
        described = self.stream.describe()
        where = described.get("name") or Path(str(described.get("path", "a stream"))).name
        return f"{SCORE_TITLES[self.scores[0]]} on {'standard input' if where == '-' else where}"

    def result(self, top: int, error: str | None = None) -> ColumnRanking:
        """Return the ranking as a result."""
        from tamis.report import Remark
        from tamis.rows.screening.ranking import ColumnRanking

        note = self.dependence_note()
        remarks: list[str] = [Remark(f"{note[0].upper()}{note[1:]}.", "note")] if note else []
        if error or self.interrupted:
            stopped = "This run was interrupted: only the rows until then count."
            why = f"Interrupted by: {error}" if error else stopped
            remarks.insert(0, why)
        return ColumnRanking(
            self.screening, self.columns(), self.title, self.detail, remarks=remarks, n_rows=self.n_rows, top=top,
            seconds=self.seconds,
        )  # fmt: skip

    def dependence_note(self) -> str:
        """Return a note with the effective number of autocorrelated rows; empty if rows are independent."""
        import numpy as np

        if self.screening.warming_up_ or not self.screening.rows_dependent_:
            return ""
        worth = self.screening.n_effective_
        missing = float(f"{self.screening.rows_missing_:.1g}")
        if np.isnan(worth).mean() > 0.5:
            return (
                f"rows are autocorrelated over so many rows that p-values are undetermined: about {missing:,.0f} more"
                f" rows than {self.n_rows:,} are needed"
            )
        return f"rows are autocorrelated: {self.n_rows:,} rows count as {np.nanmedian(worth):,.0f}"

    @property
    def detail(self) -> str:
        """Number of columns, rows and classes, and further facts."""
        n_columns = len(self.screening.table_["feature"]) if self._slots is None else len(self._slots.columns)
        is_number = self.screening.task == "regression"
        label = "numeric label" if is_number else f"{len(self.screening.classes_):,} classes"
        parts = [f"{n_columns:,} columns, {self.n_rows:,} rows", label]
        if self.screening.half_life is not None:
            parts.append(f"half-life {self.screening.half_life:,g} rows")
        if self.screening.level is not None:
            n_selected = int(self.screening.get_support().sum())
            parts.append(f"{n_selected:,} selected at level {self.screening.level:g}")
        if self.screening.restarts is not None:
            at = self.screening.restarts_
            last = f", last after row {at[-1]:,}" if at else ""
            parts.append(f"restarted {len(at):,} time{'s' * (len(at) != 1)}{last}")
        if self.screening.redundancy is not None:
            parts.append(f"the best {self.screening.redundancy:,} ordered by relevance minus redundancy")
        return ", ".join([*parts, *["interrupted"] * self.interrupted, f"{self.seconds:.1f} s"])


class _ColumnSlots:
    """Slots of the columns of rows of unknown width, in the order in which their values first appear."""

    def __init__(self) -> None:
        import numpy as np

        self.columns: NDArray[Any] = np.empty(0, np.int64)  # which column is in each place
        self._known: NDArray[Any] = self.columns  # the same in ascending order, and where each of them is
        self._slots: NDArray[Any] = self.columns

    def assign(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the place of each of these columns; new ones get the next places."""
        import numpy as np

        arrived = np.unique(columns)
        at = np.searchsorted(self._known, arrived)
        is_new = ~np.isin(arrived, self._known[at[at < len(self._known)]])
        new = arrived[is_new]
        places = len(self.columns) + np.arange(len(new))
        self.columns = np.concatenate([self.columns, new])
        self._slots = np.insert(self._slots, at[is_new], places)
        self._known = np.insert(self._known, at[is_new], new)
        return self._slots[np.searchsorted(self._known, columns)]


_DEPENDENCE = ("auto", "independent", "series")


@command(panel="Scores")
def screen(
    *,
    score: Annotated[list[str] | None, typer.Option(autocompletion=lambda: list(SCORE_TITLES))] = None,
    level: float | None = None,
    task: str | None = None,
    top: Annotated[int, typer.Option(min=1)] = 20,
    redundancy: Annotated[int | None, typer.Option(min=1)] = None,
    half_life: float | None = None,
    dependence: str = "auto",
    restarts: str | None = None,
    n_bins: Annotated[int, typer.Option(min=2)] = 5,
    eps: float | None = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 1000,
    max_rows: Annotated[int | None, typer.Option(min=1)] = None,
    reading: TargetReading,
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
    task : WHAT
        Kind of label: classification (classes) or regression (a number). [default: classification; of several labels,
        that of each]
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

    `tamis screen posts.csv --label python --label sql`

    `zcat log.csv.gz | tamis screen - --label -1 --score t --half-life 10000 --json`
    """
    from tamis._validation import check_number
    from tamis.base.per_target import of_target
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
    if task is not None:
        check_word("--task", task, ("classification", "regression"))
    labels: list[Any] = reading.targets()
    if labels and plot is not None:
        raise MisuseError("--plot draws the ranking for one label: give --report FILE, which shows all.")
    numbers_of = reading.numbers_of(labels, {"task": task}, numbers=task == "regression")
    rankings: dict[Any, Ranking] = {}
    for label in labels or [None]:
        numbers = numbers_of.get(label, task == "regression")
        stream = reading.of(label).open(width="any", classes=not numbers, quiet=quiet)
        if redundancy is not None and stream.n_features is None:
            raise MisuseError("--redundancy needs the number of columns: give --n-features.")
        n_kept = 1.0 if redundancy is None else min(top, stream.n_features or top)
        screening = Screening(
            n_kept if level is None else None,
            task="regression" if numbers else "classification",
            scores=names,
            half_life=half_life,
            n_bins=n_bins,
            # An unknown number of columns may be large.
            eps=0.01 if eps is None and stream.n_features is None else eps,
            level=level,
            redundancy=redundancy,
            restarts=when,
            dependence=dependence,
        )
        rankings[label] = Ranking(stream, screening)
    for label, ranking in rankings.items():
        with of_target(label) if labels else nullcontext():
            try:
                ranking.read(batch_size, max_rows, output.quiet)
            except TamisError as error:
                if not (labels or ranking.empty_reason()):
                    _finish(rankings, output, str(error))
                raise
            if (why := ranking.empty_reason()) and not ranking.interrupted:
                raise DataError(why)
        if ranking.interrupted:
            break
    done = {label: one for label, one in rankings.items() if one.n_rows and not one.empty_reason()}
    if done:
        _finish(done, output)
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
    hint = did_you_mean(name.lower(), [*SCORE_TITLES])
    raise MisuseError(f"--score {name} is not a score{hint} Known: {', '.join(SCORE_TITLES)}.")


def _restarts(text: str | None) -> str | int | None:
    if text is None or text == "drift":
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise MisuseError(f"--restarts {text} is neither drift nor a number of rows.")
    return int(text)


def _check_picture(place: str) -> None:
    from tamis.report.charts.axes import check_picture

    try:
        check_picture(place)
    except ValueError as error:
        raise MisuseError(str(error)) from error


def _finish(rankings: dict[Any, Ranking], output: Output, error: str | None = None) -> None:
    """Show the rankings, and write them to the requested files."""
    from tamis.rows.screening.ranking import TargetsRanking

    results = {label: one.result(output.top, error) for label, one in rankings.items()}
    (first, *rest), (ranking, *_) = results.values(), rankings.values()
    tables = {label: one.columns for label, one in results.items()}
    writers = {
        "table": (output.files["--out"], lambda place: _write_table(tables, place)),
        "plot": (output.files["--plot"], lambda place: _draw(first, place)),
    }
    options = ("half_life", "dependence", "n_bins", "eps", "level", "redundancy", "restarts")
    output.finish(
        TargetsRanking(results, f"{first.heading()} for {len(results)} labels") if rest else first, writers,
        stream=ranking.stream.describe(), interrupted=any(one.interrupted for one in rankings.values()),
        options={name: getattr(ranking.screening, name) for name in options},
        rows_dependent=any(one.screening.rows_dependent_ for one in rankings.values()), error=error,
    )  # fmt: skip


def _draw(result: ColumnRanking, place: str) -> None:
    from tamis.report.charts.axes import plot_ranking

    scores = {SCORE_TITLES[name]: result.columns[name][: result.top] for name in result.scores}
    title = f"{result.heading().partition(' on ')[2]}: {result.about()}"
    figure = plot_ranking(result.columns["feature"][: result.top].tolist(), scores, title)
    kind = Path(place).suffix[1:].lower()
    signed = {"Software" if kind == "png" else "Creator": PICTURE_MARK}
    write_output(place, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=signed))


def _write_table(tables: Mapping[str | None, Mapping[str, NDArray[Any]]], place: str) -> None:
    """Write the rankings one below another, those of several labels with the label."""
    keys = dict.fromkeys(key for columns in tables.values() for key in columns)
    lists: dict[str, list[Any]] = {"label": []} if len(tables) > 1 else {}
    lists |= {key: [] for key in keys}
    for label, columns in tables.items():
        n = len(columns["rank"])
        for key, values in lists.items():
            one = columns[key].tolist() if key in columns else [label if key == "label" else ""] * n
            values += map(str, one) if key == "feature" else one
    write_csv(place, lists)
