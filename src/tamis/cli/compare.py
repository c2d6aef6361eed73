"""`tamis compare`: selectors and learners over several streams and seeds, resumable; tables and a report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.catalog import LEARNERS
from tamis.cli.failure import FAILED, INTERRUPTED, MisuseError
from tamis.cli.methods import amount, keys, part, selectors
from tamis.cli.options import OUTPUT, AsJSON, Force, HelpPanel, Quiet, check_whole, command
from tamis.cli.output import Output, progress, terminal, warnings_in_one_line
from tamis.cli.reading import ReadingOptions, TargetOptions
from tamis.options import RunOptions

if TYPE_CHECKING:
    from tamis.evaluate import ExperimentResult
    from tamis.streams import Stream

_STREAMS = ("SEA:n_rows=20000,n_drifts=3", "electricity")
_SELECTORS = ("fires", "mi", "mi:half_life=2000", "none", "oracle")
_LEARNER = "logistic"


@command(panel="Comparison")
def compare(
    *,
    files: Annotated[list[str] | None, typer.Argument()] = None,
    stream: list[str] | None = None,
    selector: Annotated[list[str] | None, typer.Option(autocompletion=keys(selectors()))] = None,
    learner: Annotated[list[str] | None, typer.Option(autocompletion=keys(LEARNERS))] = None,
    select: str | None = None,
    seeds: Annotated[int, typer.Option(min=1)] = 3,
    options: Annotated[
        RunOptions, HelpPanel("Comparison", without=("stability_window", "n_draws", "metrics"))
    ],
    reading: TargetOptions,
    jobs: Annotated[int, typer.Option("--jobs", "-j"), OUTPUT] = 1,
    out: Annotated[str | None, OUTPUT] = None,
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Compare methods over streams and seeds, test-then-train.

    Parameters are given as NAME:KEY=VALUE,KEY=VALUE.

    Parameters
    ----------
    files : [FILE]...
        CSV, Parquet, ARFF, svmlight ...
    stream : NAME
        A stream with known relevant features, or a data set: see `tamis datasets`; may be repeated.
    selector : NAME
        A method (see `tamis list`), none (all features) or oracle (the true features); may be repeated.
    learner : NAME
        A classifier; may be repeated.
    select : N
        Number of features to keep, or fraction. [default: the number of relevant features; if unknown, a tenth, at
        least 3]
    seeds : N
        Number of seeds.
    jobs : N
        Number of runs at a time; -1: one per core.
    out : FOLDER
        Save every finished run in this folder; finished runs are not repeated.
    report : FILE
        Write an HTML report.

    Examples
    --------
    `tamis compare --report compare.html`

    `tamis compare --stream SEA --stream electricity --selector fires --selector mi:half_life=2000 --selector none \
--learner naive-bayes --seeds 5 --jobs 2 --out results --report compare.html`

    `tamis compare sensors.csv machines.parquet --label state --select 5`

    `tamis compare posts.csv --label python --label sql`
    """
    from tamis.evaluate import run_experiment

    if jobs != -1:
        check_whole("--jobs", jobs, 1)
    output = Output(as_json, quiet, report, folders={"--out": out})
    output.check(files or [], force)
    for name in stream or []:
        if os.path.isfile(name):
            raise MisuseError(
                f"--stream {name} is a file: give it without --stream, and its label with --label."
            )
    streams = _parts_by_name([*(stream or ([] if files else _STREAMS))])
    for file in files or []:
        names: dict[str, str | None] = {f"{file} {label}": label for label in reading.targets()} or {
            file: None
        }
        for name, label in names.items():
            streams[name] = _file_stream(file, reading.of(label), quiet, options.clock)
    opened = _open_streams(streams) if select is None or not selector else {}
    chosen = _parts_by_name(selector or _default_selectors(opened))
    console = terminal(stderr=True)
    with warnings_in_one_line(console), progress(quiet) as show:
        result = run_experiment(
            streams,
            chosen,
            _parts_by_name(learner or [_LEARNER]),
            seeds,
            out,
            n_features_to_select=_amounts(opened) if select is None else amount(select),
            n_jobs=jobs,
            on_progress=lambda done: show(done.n_done / done.n_cells, str(done)),
            **options.changed(),
        )
    return _finish(result, output, reading.targets())


def _file_stream(
    file: str, reading: ReadingOptions, quiet: bool, clock: tuple[str, ...]
) -> tuple[str, dict[str, Any]]:
    """Profile a file, and return it as a stream of the grid."""
    table = reading.table(file)
    how: dict[str, Any] = {}
    if table is not None:
        if reading.profile(table, clock, classes=False).has_numeric_label:
            raise MisuseError(
                f"--label {reading.label} contains numbers, but compare evaluates classifiers: for numbers, use"
                " recommend or run."
            )
        how = reading.column_options(table, quiet=quiet, clock=clock)
    opts = {"label": reading.label_column(), "format": reading.format, **reading.dialect(), **how}
    if table is None:
        opts |= {"n_features": reading.n_features, "zero_based": reading.zero_based}
    elif not reading.header:
        opts["header"] = False
    usual = {"missing": "keep", "times": "seconds", "categorical": [], "drop": [], "drop_unlabelled": False}
    return file, {n: value for n, value in opts.items() if value is not None and value != usual.get(n, ...)}


def _parts_by_name(texts: list[str]) -> dict[str, Any]:
    """Return the parts by name: the key, if it is unique."""
    parts = {text: part(text) for text in dict.fromkeys(texts)}
    heads = [key for key, _ in parts.values()]
    return {
        key if heads.count(key) == 1 or text == key else text: (key, params)
        for text, (key, params) in parts.items()
    }


def _default_selectors(opened: dict[str, Stream]) -> list[str]:
    is_known = any(hasattr(stream, "relevant_at") for stream in opened.values())
    return [name for name in _SELECTORS if name != "oracle" or is_known]


def _open_streams(streams: dict[str, Any]) -> dict[str, Stream]:
    from tamis.evaluate.experiment.grid import open_stream, parts_of

    return {item.name: open_stream(item, 0) for item in parts_of("stream", streams)}


def _amounts(opened: dict[str, Stream]) -> dict[str, int | float]:
    """Return the default number of features for each stream."""
    result: dict[str, int | float] = {}
    for name, stream in opened.items():
        if hasattr(stream, "relevant_at"):
            result[name] = max(1, len(stream.relevant_at(0)))
        else:
            result[name] = (
                0.1 if stream.n_features is None else min(stream.n_features, max(3, stream.n_features // 10))
            )
    return result


def _finish(result: ExperimentResult, output: Output, labels: list[str]) -> int:
    """Show the result, with the mean over several labels, and write it; return the exit code."""
    out = output.folders["--out"]
    if output.as_json or (result.cells["status"] == "done").any():
        means = result.table(result.measure).means() if labels and result.measure in result.metrics else {}
        said = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        mean: dict[str, Any] = {"mean": {result.measure: means}} if means else {}
        closing = f"Mean over {len(labels)} labels ({result.measure}): {said}" if means else ""
        output.finish(result, {"results": (out, lambda place: None)}, closing=closing, **mean)
        if out is None and not result.interrupted and not output.as_json:
            print("Not saved: --out FOLDER saves every run, and resumes after an interruption.")
    for error in dict.fromkeys(result.failed.values()):
        cells = [cell for cell, why in result.failed.items() if why == error]
        more = f" (and {len(cells) - 1:,} more runs)" if len(cells) > 1 else ""
        print(f"tamis: failed: {cells[0]}{more}: {error}", file=sys.stderr)
    if result.interrupted:
        if out is not None:
            print("tamis: the same command resumes here", file=sys.stderr)
        return INTERRUPTED
    return FAILED if result.failed else 0
