"""`tamis run`: prequential evaluation of a selector and a learner on a stream; common output of such runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.failure import INTERRUPTED, MisuseError
from tamis.cli.methods import Models
from tamis.cli.options import OUTPUT, AsJSON, Force, HelpPanel, Quiet, command
from tamis.cli.output import (
    Output,
    alone,
    deferred_interrupt,
    terminal,
    warnings_in_one_line,
    write_csv,
    write_output,
)
from tamis.cli.reading import Reading, TargetReading
from tamis.cli.warm_up import compile_missing
from tamis.errors import DataError, TamisError
from tamis.options import RunOptions

if TYPE_CHECKING:
    from tamis.evaluate import PrequentialResult, Step
    from tamis.streams import Stream
    from tamis.terminal import Watch

_PROTOCOLS = {"honest": "test-then-train", "paper": "select, test, train"}


@command(panel="Evaluation")
def run(
    *,
    models: Models,
    options: Annotated[RunOptions, HelpPanel("Evaluation")],
    reading: TargetReading,
    delayed: list[str] | None = None,
    report: Annotated[str | None, OUTPUT] = None,
    out: Annotated[str | None, OUTPUT] = None,
    checkpoint: Annotated[str | None, OUTPUT] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1)] = RunOptions.checkpoint_every,
    save: Annotated[str | None, OUTPUT] = None,
    columns: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Select features over a stream, evaluated test-then-train.

    Shows accuracy, stability, and the selection over time.

    Parameters
    ----------
    delayed : FEATURE=ROWS
        A feature whose values arrive this many rows after their row; may be repeated.
    report : FILE
        Write an HTML report.
    out : FOLDER
        Save the result as Parquet and JSON.
    checkpoint : FILE
        Save the run periodically to this file; if it exists, resume from it.
    save : FILE
        Save selector and learner at the end, and both as one pipeline for new rows.
    columns : FILE
        Write the names of the finally selected features, one per line (.csv: a table).

    Other Parameters
    ----------------
    checkpoint_every : N
        Number of steps between checkpoints.

    Examples
    --------
    `tamis run sensors.csv --label state --report sensors.html`

    `tamis run clicks.parquet --label clicked --select 20 --out results`

    `tamis run --dataset electricity --selector ofs --set learning_rate=0.5`

    `tamis run houses.csv --label price --task regression`

    `tamis run posts.csv --label python --label sql --report tags.html`

    `zcat big.csv.gz | tamis run - --label -1 --json > result.json`
    """
    if len(labels := reading.targets()):
        kept_out = {"--checkpoint": checkpoint, "--save": save, "--delayed": delayed}
        if named := [name for name, value in kept_out.items() if value]:
            raise MisuseError(
                f"{named[0]} needs a run of one target, but --label names {len(labels)}: run each alone."
            )
        output = RunOutput(as_json, quiet, report, {"--columns": columns}, {"--out": out})
        return _run_targets(labels, models, options, reading, output, force=force)
    one = reading.of()
    if one.file == "-" and checkpoint is not None:
        raise MisuseError(
            "--checkpoint cannot resume standard input, which can be read only once: save the rows to a file first."
        )
    files = {"--checkpoint": checkpoint, "--save": save, "--columns": columns}
    output = RunOutput(as_json, quiet, report, files, {"--out": out})
    output.check(one.inputs, force)
    waits = _parse_delayed(delayed or [])
    with alone(checkpoint, out):
        stream = one.open(
            classes=not models.is_regression, quiet=quiet, clock=options.clock
        ).with_delayed_features(waits)
        if models.selector in (None, "auto") and models.learner is None and not models.is_regression:
            compile_missing("run", quiet=quiet)
        from tamis.evaluate.prequential.settings import features_of

        models = _with_learner(models, one, options, waits, quiet=quiet)
        selector, learner = models.make(features_of(stream, options)[1])
        kept = replace(options, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
        return output.finish_run(evaluate(stream, selector, learner, output, kept))


def _run_targets(
    labels: list[str],
    models: Models,
    options: RunOptions,
    reading: TargetReading,
    output: RunOutput,
    *,
    force: bool,
) -> int:
    """Run once for each label, and show all with the union of their selections."""
    from tamis.evaluate.prequential.settings import features_of
    from tamis.evaluate.prequential.targets import TargetsResult

    output.check(reading.inputs, force)
    given = {"learner": models.learner, "task": models.task}
    numbers_of = reading.numbers_of(labels, given, numbers=models.is_regression)
    kinds = [replace(models, task="regression") if numbers else models for numbers in numbers_of.values()]
    results = {}
    with alone(*output.folders.values()):
        streams = [
            reading.of(label).open(classes=not kind.is_regression, quiet=output.quiet, clock=options.clock)
            for label, kind in zip(labels, kinds, strict=True)
        ]
        for label, kind, stream in zip(labels, kinds, streams, strict=True):
            chosen = _with_learner(kind, reading.of(label), options, {}, quiet=output.quiet, of=f"{label}: ")
            selector, learner = chosen.make(features_of(stream, options)[1])
            results[label] = evaluate(stream, selector, learner, replace(output), options)
            if results[label].settings["interrupted"]:
                return INTERRUPTED
            _check_steps(results[label])
        result = TargetsResult(results)
        writers: dict[str, tuple[str | None, Callable[[str], object]]] = {
            "results": (output.folders.get("--out"), result.save),
            "columns": (output.files.get("--columns"), lambda place: _write_names(result.selected(), place)),
        }
        output.finish(result, writers)
    return 0


def _parse_delayed(given: list[str]) -> dict[str, int]:
    """Return the number of rows after which the values of each delayed feature arrive."""
    waits = {}
    for text in given:
        name, _, rows = text.rpartition("=")
        if not name or not rows.isdecimal():
            raise MisuseError(f"--delayed must be FEATURE=ROWS, as in price=48, got {text!r}.")
        waits[name] = int(rows)
    return waits


def _with_learner(
    models: Models, reading: Reading, options: RunOptions, waits: dict[str, int], *, quiet: bool, of: str = ""
) -> Models:
    """Choose a learner on the first rows if neither learner nor selector is named; standard input is read once."""
    if models.learner or models.is_regression or reading.file == "-" or models.selector not in (None, "auto"):
        return models
    from tamis.evaluate.candidates import choose_learner

    console = terminal(stderr=True)
    try:
        with warnings_in_one_line(console):
            choice = choose_learner(
                reading.open(quiet=True, clock=options.clock).with_delayed_features(waits),
                random_state=models.seed,
                max_rows=None,
            )
    except DataError:  # too few rows to choose by
        return models
    if not quiet:
        console.print(of + choice.sentence(), style="dim", markup=False)
    # LightGBM selects better than `auto` does for it (docs/retrained_models.md).
    selects = choice.name == "lightgbm" and not (models.selector or models.select or models.assign)
    return replace(models, learner=choice.name, features="few" if selects else models.features)


def evaluate(
    stream: Stream, selector: Any, learner: Any, output: RunOutput, options: RunOptions
) -> PrequentialResult:
    """Run test-then-train with a live display; results before an error are kept and shown."""
    from tamis.evaluate import prequential
    from tamis.evaluate.prequential.settings import features_of

    console = terminal(stderr=True)
    output.models = {
        "selector": selector, "learner": learner, "feature_names": features_of(stream, options)[0],
        "categories": getattr(stream, "categories", {}),
    }  # fmt: skip
    watch = watch_of(console, stream, selector, learner, options, quiet=output.quiet)
    with warnings_in_one_line(console), deferred_interrupt() as stop_if_asked, watch:
        try:
            result = prequential(
                stream,
                selector,
                learner,
                on_step=_Listener(watch, stop_if_asked),
                on_interrupt="return",
                **options.keywords(),
            )
            with contextlib.suppress(KeyboardInterrupt):
                stop_if_asked()
                return result
            # The stream has ended because its producer was interrupted too.
            result.settings["interrupted"] = True
            return result
        except TamisError as error:
            error.__cause__ = error.__cause__ or error.__context__
            partial = getattr(error, "result", None)
            failure = error
    if partial is not None and len(partial.frames["steps"]["step"]):
        output.finish_run(partial, str(failure))
    raise failure


@dataclass(frozen=True)
class _Listener:
    """Passes steps to the display, and stops the run between two batches after Ctrl-C."""

    watch: Watch
    stop_if_asked: Callable[[], None]

    def is_due(self) -> bool:
        """Return whether the display needs the step; called after each batch."""
        self.stop_if_asked()
        return self.watch.is_due()

    def __call__(self, step: Step) -> None:
        self.watch(step)


def watch_of(
    console: Any, stream: Stream, selector: Any, learner: Any, options: RunOptions, *, quiet: bool
) -> Watch:
    """Return the display of a running evaluation."""
    from tamis.evaluate.prequential.settings import features_of
    from tamis.terminal import Watch

    return Watch(
        console,
        title_of(stream.describe(), None if selector is None else type(selector).__name__),
        f"{type(learner).__name__}, {options.batches}, {_PROTOCOLS[options.protocol]}",
        window=options.window,
        stability_window=options.stability_window,
        names=features_of(stream, options)[0],
        n_rows=min((n for n in (options.max_rows, stream.n_rows) if n is not None), default=None),
        quiet=quiet,
    )


def title_of(stream: dict[str, Any], selector: str | None) -> str:
    """Return the title of a run: selector and stream."""
    where = stream.get("name") or Path(str(stream.get("path", "a stream"))).name
    return f"{selector or 'Every feature'} on {'standard input' if where == '-' else where}"


@dataclass
class RunOutput(Output):
    """Destinations of the result of a run, and the models for --save."""

    models: dict[str, Any] = field(default_factory=dict)

    def finish_run(
        self, result: PrequentialResult, error: str | None = None, closing: str = "", **more: Any
    ) -> int:
        """Show the result, write the output files, and return the exit code."""
        if result.settings["interrupted"] and len(result.frames["steps"]["step"]) == 0:
            return INTERRUPTED
        _check_steps(result)
        self.finish(result, self.writers(result), closing=closing, error=error, **more)
        return INTERRUPTED if result.settings["interrupted"] else 0

    def writers(self, result: PrequentialResult) -> dict[str, tuple[str | None, Callable[[str], object]]]:
        """Return the output files, and what writes each."""

        def save(place: str) -> None:
            import tamis

            whole = {"pipeline": result.pipeline()} if len(result.frames["steps"]["step"]) else {}
            names = {} if self.models["feature_names"] is None else {"feature_names": result.feature_names}
            tamis.save(self.models | names | whole, place)

        return {
            "results": (self.folders.get("--out"), result.save),
            "models": (self.files.get("--save"), save),
            "columns": (self.files.get("--columns"), lambda place: _write_names(result.selected(), place)),
        }


def _check_steps(result: PrequentialResult) -> None:
    """Raise if no batch was tested."""
    if len(result.frames["steps"]["step"]) == 0:
        size = result.options.rows_per_block
        raise DataError(
            f"The stream ends within its first batch of {size:,} rows, used for training only:"
            " choose a smaller --batch-size, or give at least two rows, one for training and one for testing."
        )


def _write_names(names: list[str], place: str) -> None:
    """Write one name per line, unquoted, or a table if the path ends in .csv."""
    from tamis.streams.dialect import RANKING

    if Path(place).suffix.lower() == ".csv":
        write_csv(place, dict(zip(RANKING, (range(1, len(names) + 1), names), strict=True)))
    else:
        write_output(place, lambda file: file.write("".join(f"{name}\n" for name in names).encode()))
