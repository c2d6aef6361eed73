"""`tamis run`: a selector and a learner over a stream, test-then-train; and what any such run shows and writes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.catalog import LEARNERS, Entry, find_learner
from tamis.cli.failure import INTERRUPTED, MisuseError
from tamis.cli.methods import make, make_selector, replaying, selectors
from tamis.cli.options import (
    BASELINES,
    SCALES,
    AsJSON,
    Debug,
    Force,
    Quiet,
    check_whole,
    check_word,
    clock_of,
    grouped,
    keys,
    lateness,
    option,
)
from tamis.cli.output import (
    alone,
    check_outputs,
    print_json,
    terminal,
    unhurried_interrupt,
    warnings_in_one_line,
    write_output,
)
from tamis.cli.reading import Reading
from tamis.errors import DataError, TamisError

if TYPE_CHECKING:
    from tamis.evaluate import PrequentialResult, Step
    from tamis.streams import Stream
    from tamis.terminal import Watch

__all__ = [
    "Output", "Selecting", "Testing", "add", "evaluate", "features_of", "learner_of", "title_of", "watch_of"
]  # fmt: skip

_EXAMPLES = """\
Examples:

[bold]tamis run sensors.csv --label state --report sensors.html[/]

[bold]tamis run clicks.parquet --label clicked --select 20 --out results[/]

[bold]tamis run --dataset electricity --selector ofs --set learning_rate=0.5[/]

[bold]tamis run houses.csv --label price --task regression[/]

[bold]zcat big.csv.gz | tamis run - --label -1 --json > result.json[/]"""

_USUAL = {"classification": "perceptron", "regression": "sgd-regressor"}
_LINEAR = ("Perceptron", "SGDClassifier")  # what a race of selectors should predict with
_SELECTION, _EVALUATION, _OUTPUT = "Selection", "Evaluation", "Output"


def add(root: typer.Typer) -> None:
    """Add the command."""
    root.command(epilog=_EXAMPLES)(grouped(run))


@dataclass
class Selecting:
    """Which selector, and with what parameters."""

    selector: Annotated[
        str | None,
        option(
            _SELECTION,
            "NAME",
            "Which method: see [bold]tamis list[/]; none keeps all, auto races several and follows the best."
            "  [dim]\\[default: auto; forward where numbers are predicted][/]",
            show_default=False,
            autocompletion=keys(selectors()),
        ),
    ] = None
    select: Annotated[
        str | None,
        option(
            _SELECTION,
            "N",
            "How many features to keep (5), or which fraction (0.1).  [dim]\\[default: a tenth, or as the method"
            " decides][/]",
            show_default=False,
        ),
    ] = None
    assign: Annotated[
        list[str] | None,
        option(
            _SELECTION, "KEY=VALUE", "A parameter, see [bold]tamis list NAME[/]; may be repeated.", "--set"
        ),
    ] = None
    seed: Annotated[int, option(_SELECTION, "N", "Seed of selector and learner.")] = 0

    def make(self, learner: Entry, categorical: Sequence[int] = ()) -> Any:
        """Return the selector that goes with a learner."""
        check_whole("--seed", self.seed, 0)
        kind, task = "linear" if learner.name in _LINEAR else "naive-bayes", _task_of(learner)
        name = self.selector or ("forward" if task == "regression" else "auto")
        return make_selector(
            name, self.select, self.assign or [], self.seed, categorical, learner=kind, task=task
        )


@dataclass
class Testing:
    """What is predicted by which learner, and how it is tested."""

    task: Annotated[
        str | None,
        option(
            _EVALUATION,
            "WHAT",
            "What the label is: classification (classes) or regression (a number).  [dim]\\[default: as the learner,"
            " or classification][/]",
            show_default=False,
        ),
    ] = None
    learner: Annotated[
        str | None,
        option(
            _EVALUATION,
            "NAME",
            "The learner: see [bold]tamis list[/].  [dim]\\[default: perceptron; sgd-regressor for numbers][/]",
            show_default=False,
            autocompletion=keys(LEARNERS),
        ),
    ] = None
    batch_size: Annotated[int, option(_EVALUATION, "N", "Rows per step.")] = 100
    max_rows: Annotated[int | None, option(_EVALUATION, "N", "Stop after this many rows.")] = None
    protocol: Annotated[
        str,
        option(
            _EVALUATION, "ORDER", "honest: select before the labels are seen; paper: as in the FIRES paper."
        ),
    ] = "honest"
    delay: Annotated[
        str,
        option(
            _EVALUATION,
            "N",
            "How many rows later the label of a row comes; or two columns, the time of a row and that of its label:"
            " sold,returned.",
        ),
    ] = "0"
    window: Annotated[int, option(_EVALUATION, "N", "Rows behind the current accuracy.")] = 1000
    stability_window: Annotated[int, option(_EVALUATION, "N", "Selections that the stability compares.")] = 10
    replay: Annotated[
        str,
        option(
            _EVALUATION,
            "WHEN",
            "When the learner restarts: auto (if the selector asks for it), never, or a number: at each change of the"
            " selection, from so many of the last rows.",
        ),
    ] = "auto"
    scale: Annotated[
        str,
        option(
            _EVALUATION,
            "HOW",
            "Columns for the learner: auto (standardised where it needs that), standard or none.",
        ),
    ] = "auto"
    baselines: Annotated[
        str,
        option(
            _EVALUATION,
            "WHICH",
            "Baselines beside the selector: random (subsets of the same size), all (features), both or none.",
        ),
    ] = "random"
    n_draws: Annotated[int, option(_EVALUATION, "N", "Number of random subsets.")] = 3

    def check(self) -> None:
        """Refuse what cannot be meant."""
        check_whole("--batch-size", self.batch_size, 1)
        check_whole("--max-rows", self.max_rows, 1)
        lateness(self.delay)
        check_whole("--window", self.window, 1)
        check_whole("--stability-window", self.stability_window, 2)
        check_whole("--n-draws", self.n_draws, 1)
        check_word("--scale", self.scale, SCALES)
        check_word("--baselines", self.baselines, BASELINES)
        self.entry()

    def entry(self) -> Entry:
        """Return the row of the learner in the catalogue."""
        if self.task is not None:
            check_word("--task", self.task, tuple(_USUAL))
        entry = find_learner(self.learner or _USUAL[self.task or "classification"])
        if self.task not in (None, _task_of(entry)):
            told = "numbers" if _task_of(entry) == "regression" else "classes"
            raise MisuseError(
                f"--learner {self.learner} predicts {told}: choose another one for --task {self.task}."
            )
        return entry

    def options(self) -> dict[str, Any]:
        """Return the options of :func:`tamis.prequential`."""
        return {
            **{
                one.name: getattr(self, one.name)
                for one in fields(self)
                if one.name not in ("learner", "task")
            },
            "delay": lateness(self.delay),
            "replay": replaying(self.replay),
        }

    @property
    def clock(self) -> tuple[str, ...]:
        """Columns that tell when labels come."""
        return clock_of(lateness(self.delay))


def run(
    *,
    selecting: Selecting,
    testing: Testing,
    reading: Reading,
    report: Annotated[str | None, option(_OUTPUT, "FILE", "Write an HTML report.")] = None,
    out: Annotated[str | None, option(_OUTPUT, "FOLDER", "Save the result as Parquet and JSON.")] = None,
    checkpoint: Annotated[
        str | None,
        option(_OUTPUT, "FILE", "Save the run now and then to this file; if it exists, continue from it."),
    ] = None,
    checkpoint_every: Annotated[int, option(_OUTPUT, "N", "Steps between two savings.")] = 100,
    save: Annotated[
        str | None,
        option(
            _OUTPUT,
            "FILE",
            "Save selector and learner at the end, and both as one pipeline for new rows.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        option(
            _OUTPUT, "FILE", "Write the names of the columns kept at the end, one a line (.csv: a table)."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Select features over a stream, test-then-train: accuracy, stability, and the selection over time."""
    testing.check()
    check_whole("--checkpoint-every", checkpoint_every, 1)
    check_whole("--n-features", reading.n_features, 1)
    if reading.file == "-" and checkpoint is not None:
        raise MisuseError(
            "--checkpoint cannot go on in standard input, whose rows come once: save them to a file first."
        )
    output = Output(report, out, checkpoint, as_json, quiet, save=save, columns=columns)
    output.check(reading.inputs, force)
    with alone(checkpoint, out):
        entry, options = testing.entry(), testing.options()
        selecting.make(entry)  # wrong words are told before a file is opened
        stream = reading.open(classes=_task_of(entry) == "classification", quiet=quiet, clock=testing.clock)
        categorical = features_of(stream, testing.clock)[1]
        chosen = selecting.make(entry, categorical)
        learner = learner_of(entry, selecting.seed, categorical)
        result = evaluate(
            stream,
            chosen,
            learner,
            output,
            **options,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        return output.finish(result)


def _task_of(entry: Entry) -> str:
    return "regression" if "regression" in entry.targets else "classification"


def learner_of(entry: Entry, seed: int, categorical: list[int]) -> Any:
    """Return a learner of the catalogue for columns some of which are categories."""
    return make(entry, {"random_state": seed, "categorical": categorical or None})


def features_of(stream: Stream, clock: tuple[str, ...]) -> tuple[list[str] | None, list[int]]:
    """Return the names of the features, without those of columns that tell times, and which are categories."""
    names, categorical = stream.feature_names, list(stream.categorical)
    if names is None or not clock:
        return names, categorical
    kept = [j for j, name in enumerate(names) if name not in clock]
    return [names[j] for j in kept], [at for at, j in enumerate(kept) if j in categorical]


def evaluate(
    stream: Stream, selector: Any, learner: Any, output: Output, **options: Any
) -> PrequentialResult:
    """Run test-then-train under the eyes of the user; what was seen before an error is kept and shown."""
    from tamis.evaluate import prequential

    console = terminal(stderr=True)
    output.models = {
        "selector": selector, "learner": learner, "feature_names": _names_of(stream, options),
        "categories": getattr(stream, "categories", {}),
    }  # fmt: skip
    watch = watch_of(console, stream, selector, learner, options, quiet=output.quiet)
    with warnings_in_one_line(console), unhurried_interrupt() as stop_if_asked, watch:

        def on_step(step: Step) -> None:
            watch(step)
            stop_if_asked()

        try:
            result = prequential(stream, selector, learner, on_step=on_step, **options)
            with contextlib.suppress(KeyboardInterrupt):
                stop_if_asked()
                return result
            # The stream has ended because what fed it was interrupted too.
            result.settings["interrupted"] = True
            return result
        except TamisError as error:
            error.__cause__ = error.__cause__ or error.__context__
            partial = getattr(error, "result", None)
            failure = error
    if partial is not None and len(partial.frames["steps"]["step"]):
        output.finish(partial, str(failure))
    raise failure


def watch_of(
    console: Any, stream: Stream, selector: Any, learner: Any, options: dict[str, Any], *, quiet: bool
) -> Watch:
    """Return what shows a run while it goes on."""
    from tamis.terminal import Watch

    return Watch(
        console,
        title_of(stream.describe(), None if selector is None else type(selector).__name__),
        f"{type(learner).__name__}, batches of {options['batch_size']:,}, {options['protocol']} order",
        window=options["window"],
        stability_window=options["stability_window"],
        names=_names_of(stream, options),
        n_rows=min((n for n in (options.get("max_rows"), stream.n_rows) if n is not None), default=None),
        quiet=quiet,
    )


def _names_of(stream: Stream, options: dict[str, Any]) -> list[str] | None:
    """Return the names of the features of a run with these options."""
    return features_of(stream, clock_of(options.get("delay", 0)))[0]


def title_of(stream: dict[str, Any], selector: str | None) -> str:
    """Return what runs on what."""
    where = stream.get("name") or Path(str(stream.get("path", "a stream"))).name
    return f"{selector or 'Every feature'} on {'standard input' if where == '-' else where}"


@dataclass
class Output:
    """Where the result goes; every place is tried before the run."""

    report: str | None
    out: str | None
    checkpoint: str | None
    as_json: bool
    quiet: bool

    save: str | None = None
    columns: str | None = None
    models: dict[str, Any] = field(default_factory=dict)  # what --save saves

    def check(self, inputs: list[str], force: bool) -> None:
        """Refuse places that cannot be written, or hold something else."""
        files = {
            "--report": self.report, "--checkpoint": self.checkpoint, "--save": self.save, "--columns": self.columns,
        }  # fmt: skip
        check_outputs(inputs, files, {"--out": self.out}, force=force)

    def finish(
        self,
        result: PrequentialResult,
        error: str | None = None,
        event: tuple[int, str] | None = None,
        closing: str = "",
        **more: Any,
    ) -> int:
        """Show the result and write it where it is wanted; return the exit code."""
        if len(result.frames["steps"]["step"]) == 0:
            if result.settings["interrupted"]:
                return INTERRUPTED
            size = result.settings["options"]["batch_size"]
            raise DataError(
                f"The stream ends within its first batch of {size:,} rows, which only trains:"
                " choose a smaller --batch-size, or give two rows at least, one to train on and one to test."
            )
        if not self.as_json:
            self._show(result, event, closing)
        written = self.write(result)
        if self.as_json:
            print_json({**_document(result), "written": written, "error": error, **more})
        else:
            for name, place in written.items():
                print(f"The {name}: {place}")
        return INTERRUPTED if result.settings["interrupted"] else 0

    def write(self, result: PrequentialResult) -> dict[str, str]:
        """Write the result where it is wanted; return the places."""
        written = {}
        if self.out is not None:
            written["results"] = str(result.save(self.out))
        if self.report is not None:
            written["report"] = str(result.report(self.report))
        if self.save is not None:
            import tamis

            has_run = len(result.frames["steps"]["step"]) > 0
            whole = {"pipeline": result.pipeline()} if has_run else {}
            tamis.save(self.models | whole, self.save)
            written["models"] = self.save
        if self.columns is not None:
            _write_names(result.selected(), self.columns)
            written["columns"] = self.columns
        return written

    def _show(self, result: PrequentialResult, event: tuple[int, str] | None, closing: str) -> None:
        from tamis.terminal import show_result

        console = terminal()
        show_result(console, result, *_headline(result), event)
        console.print()
        if closing:
            console.print(closing, markup=False)


def _write_names(names: list[str], place: str) -> None:
    """Write a name a line as it is, or a table for spreadsheets where the place ends in .csv."""
    import csv
    import io

    from tamis.streams.dialect import RANKING, as_text

    text = io.StringIO(newline="")
    if Path(place).suffix.lower() == ".csv":
        rows = ((k, as_text(name)) for k, name in enumerate(names, start=1))
        csv.writer(text).writerows([RANKING, *rows])
    else:
        text.writelines(f"{name}\n" for name in names)
    write_output(place, lambda file: file.write(text.getvalue().encode()))


def _headline(result: PrequentialResult) -> tuple[str, str]:
    settings, total = result.settings, result.summary()
    selector, learner = (
        settings[part]["class"].rsplit(".", 1)[-1] if settings[part] else None
        for part in ("selector", "learner")
    )
    options = settings["options"]
    end = f", interrupted after {total['n_rows']:,.0f} rows" if settings["interrupted"] else ""
    return (
        title_of(settings["stream"], selector) + end,
        f"{total['n_selected']:,.0f} of {total['n_features']:,.0f} features, {learner}"
        f"{' (standardised)' if settings.get('scale') == 'standard' else ''},"
        f" batches of {options['batch_size']:,}, {options['protocol']} order",
    )


def _document(result: PrequentialResult) -> dict[str, Any]:
    from tamis.terminal import chosen_features, chosen_steps

    summary = result.summary()
    return {
        "summary": {name: int(n) if name.startswith("n_") and n == n else n for name, n in summary.items()},
        "remarks": result.remarks(),
        "selected": result.selected(),
        "chosen": {
            result.feature_names[j]: float(chosen_steps(result, j).mean())
            for j in chosen_features(result, 100)
        },
        "settings": result.settings,
    }
