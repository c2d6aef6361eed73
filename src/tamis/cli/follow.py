"""`tamis follow`: a selection on an endless stream, which survives the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tamis.cli.alerting import Alerting
from tamis.cli.failure import FAILED, INTERRUPTED, MisuseError
from tamis.cli.follow_watch import FollowedWatch
from tamis.cli.methods import Models
from tamis.cli.options import OUTPUT, Force, HelpPanel, Quiet, command
from tamis.cli.output import alone, note, terminal, warnings_in_one_line
from tamis.cli.reading import TargetOptions
from tamis.cli.run import RunOutput, title_of, watch_of
from tamis.options import RunOptions

if TYPE_CHECKING:
    from tamis.cli.live import LivePage
    from tamis.evaluate import PrequentialResult, Step
    from tamis.evaluate.prequential.targets import TargetsResult, TargetSteps
    from tamis.persistence.journal import Journal
    from tamis.streams.tables import Table
    from tamis.streams.tail import FollowedStream

_RECORDS = 2000  # that are kept
_IGNORED_PROBLEMS = ("missing", "drop_unlabelled")  # handled by --dead-letters or --label-key


@dataclass
class _Reading(TargetOptions):
    """How rows are read.

    Parameters
    ----------
    missing : HOW
        Missing numbers: error (such a row is rejected), mean of the column so far, or keep.
    """

    panel: ClassVar[str] = "Reading the file"
    missing: str = "error"


@dataclass
class _Source:
    """The rows that are followed.

    Parameters
    ----------
    source : SOURCE
        A growing file, a folder or pattern of CSV, JSON lines or Parquet files, kafka://host/topic, or - (standard
        input).
    number : NAME
        Column with increasing row numbers, so that standard input can be resumed.
    label_key : NAME
        Column that matches delayed labels to rows: a row without a label waits for one with the same key.
    max_waiting : N
        Maximum number of rows that wait for a label; beyond it, the oldest are dropped.
    max_columns : N
        Maximum number of columns; further ones that later rows name are ignored. [default: unlimited]
    idle : SECONDS
        End when no row has arrived for this long; 0: read only the existing rows.
    dead_letters : FILE
        Write rows that cannot be read to this file, and continue.
    labels : TOPIC
        Kafka topic of the delayed labels, matched by --label-key.
    schema : SCHEMA
        File of the Avro schema of Kafka messages, or TOPIC=SCHEMA; may be repeated. [default: messages are JSON]
    client_config : SETTINGS
        File of further settings of the Kafka client, such as passwords, one NAME=VALUE per line.
    """

    panel: ClassVar[str] = "Following"

    source: Annotated[str | None, typer.Argument()] = None
    number: str | None = None
    label_key: str | None = None
    max_waiting: Annotated[int, typer.Option(min=1)] = RunOptions.max_waiting
    max_columns: Annotated[int | None, typer.Option(min=1)] = None
    idle: float | None = None
    dead_letters: str | None = None
    labels: str | None = None
    schema: list[str] | None = None
    client_config: str | None = None

    def check(self, reading: TargetOptions, checkpoint: str | None, options: RunOptions) -> str:
        """Return the source; raise if the options exclude each other."""
        if self.label_key is not None and options.delay != 0:
            raise MisuseError("--label-key and --delay both define when labels arrive: choose one.")
        if self.source is None:
            raise MisuseError("Name what to follow: a FILE, a folder, a pattern such as 'parts/*.csv', or -.")
        if reading.label is None:
            raise MisuseError("Name the label column: --label NAME (or its position).")
        if self.label_key is not None and reading.targets():
            raise MisuseError("--label-key matches the labels of one column: give --label once.")
        reading.reject_width()
        if reading.zero_based is not None or reading.format == "svmlight":
            raise MisuseError("svmlight files cannot be followed: only CSV, JSON lines and Parquet.")
        if self.source == "-" and checkpoint is not None and self.number is None:
            raise MisuseError(
                "--checkpoint cannot resume standard input, which can be read only once: save the rows to a file and"
                " follow that, or let the producer number them and add --number NAME."
            )
        if self.source != "-" and self.number is not None:
            raise MisuseError(
                "--number is for standard input: the rows of files are identified by their position."
            )
        return self.source

    def open(
        self, reading: TargetOptions, clock: tuple[str, ...], models: dict[str, Models], *, quiet: bool
    ) -> FollowedStream:
        """Open the stream, which waits for rows; set the models of several labels when the first ones arrive."""
        from tamis.streams import follow_files

        ignored = _IGNORED_PROBLEMS if self.dead_letters is not None or self.label_key is not None else ()
        labels, one = reading.targets(), reading.of()

        def judge(table: Table) -> dict[str, Any]:
            drop: list[str] = []
            for at, (label, own) in enumerate(models.items()):
                given = {"learner": own.learner, "task": own.task}
                if labels and reading.predicts_numbers(label, table, given, numbers=own.is_regression):
                    models[label] = replace(own, task="regression")
                options = reading.of(label or None).column_options(
                    table, classes=not models[label].is_regression, quiet=quiet or at > 0, ignored=ignored, clock=clock,
                    grows=True,
                )  # fmt: skip
                drop += options["drop"]
            return options | {"drop": [name for name in dict.fromkeys(drop) if name not in labels]}

        own = {**vars(self), **reading.dialect(), **one.user_options(), "label": labels or one.label_column()}
        if labels:
            own["drop"] = reading.of_labels(labels).user_options()["drop"]
        own |= {"schema": self.schema or (), "client": _read_settings(own.pop("client_config"))}
        return follow_files(
            own.pop("source"), format=reading.format, header=reading.header, judge=judge, **own
        )


@command(panel="Following")
def follow(
    *,
    models: Models,
    options: Annotated[RunOptions, HelpPanel("Evaluation", without=("metrics",))],
    reading: _Reading,
    followed: _Source,
    checkpoint: str | None = None,
    checkpoint_seconds: float = 10.0,
    out: Annotated[str, OUTPUT] = "-",
    every: Annotated[int, typer.Option(min=1), OUTPUT] = 1000,
    live: Annotated[bool, OUTPUT] = False,
    port: Annotated[int, OUTPUT] = 0,
    watch: Annotated[bool, OUTPUT] = False,
    alerting: Alerting,
    report: Annotated[str | None, OUTPUT] = None,
    save: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> int:
    """Select features on an endless stream, also across restarts.

    Evaluated test-then-train; each row is used once, even across restarts.

    Parameters
    ----------
    checkpoint : FILE
        Save models, scores and position to this file; if it exists, continue from it.
    checkpoint_seconds : SECONDS
        Time between checkpoints.
    out : FILE
        Selections, drifts and scores as JSON lines; - is standard output.
    every : N
        Rows between two lines of scores.
    live : bool
        Show a page in the browser that is updated during the run.
    port : N
        Port of that page and its /metrics; 0: any free port.
    watch : bool
        Track the relevance and reliance of each feature, and raise alerts by rules.
    report : FILE
        Write an HTML report at the end.
    save : FILE
        Save selector and learner at the end.

    Examples
    --------
    `tamis follow sensors.csv --label state --checkpoint sensors.tamis --out sensors.jsonl`

    `tamis follow 'parts/*.parquet' --label clicked --checkpoint clicks.tamis --live`

    `tamis follow sensors.csv --label state --watch --live`

    `tamis follow posts.csv --label python --label sql --checkpoint posts.tamis`

    `tamis follow kafka://localhost/rows --labels labels --label-key id --label state --checkpoint run.tamis`

    `producer | tamis follow - --label -1 --number serial --checkpoint run.tamis`
    """
    source = followed.check(reading, checkpoint, options)
    _check_watch(watch, alerting, live, port, options)
    labels = reading.targets()
    for name, given in (("--watch", watch), ("--live", live), ("--save", save)):
        if labels and given:
            raise MisuseError(f"{name} is for one label, but --label names {len(labels)}: follow each alone.")
    out_file = None if out == "-" else out
    files = {"--checkpoint": checkpoint, "--out": out_file, "--save": save}
    output = RunOutput(False, quiet, report, {"--dead-letters": followed.dead_letters, **files})
    output.check([source], force)
    with alone(checkpoint, out_file, followed.dead_letters):
        position, tasks = (None, {}) if checkpoint is None else _saved_position(checkpoint, source, labels)
        own = dict.fromkeys(labels or [""], models)
        if models.task is models.learner is None:
            own |= {label: replace(models, task=task) for label, task in tasks.items() if label in labels}
        for place in (out_file, followed.dead_letters) if position is None else ():
            _truncate(place)
        stream = followed.open(reading, options.clock, own, quiet=quiet)
        from tamis.persistence.journal import Journal

        journal = Journal(out)
        with warnings_in_one_line(terminal(stderr=True)):
            if position is not None:
                _seek(stream, position, checkpoint)
            elif not _wait_for_first_batch(stream, options.rows_per_block):
                note("nothing was learned: there are too few rows for a first batch.")
                journal.write(stream.events_after_batch())
                return _exit_code(stream)
        from tamis.evaluate.prequential.settings import features_of

        names, categorical = features_of(stream, options)
        pairs = {label: one.make(categorical) for label, one in own.items()}
        ((selector, learner), *_) = pairs.values()
        output.models = {"selector": selector, "learner": learner, "feature_names": names}
        events = Events(journal, stream, every, labels)
        if watch:
            known = list(stream.feature_names or []) if names is None else names
            events.watched = FollowedWatch(
                alerting,
                known,
                categorical,
                is_regression=models.is_regression,
                delay=int(options.delay),  # type: ignore[arg-type]
            )
        page = _open_live_page(stream, selector, events, port) if live else None
        options = replace(
            options, checkpoint=checkpoint, checkpoint_seconds=checkpoint_seconds, checkpoint_every=1 << 62,
            keep_steps=_RECORDS,
        )  # fmt: skip
        result, was_interrupted = _run(stream, pairs, events, options, quiet=quiet or out_file is None)
        why = "interrupted" if was_interrupted else "end"
        at = {"n_seen": events.n_seen}
        last = {"event": why, **at, "waiting": stream.n_waiting, **stream.counts}
        rest = [*stream.pop_events(), *stream.events_after_batch()]
        events.emit([*({**one, **at} for one in rest), last])
        if page is not None:
            page.close()
        output.models["categories"] = stream.categories
        _finish(result, output, is_shown=out_file is not None)
        return INTERRUPTED if was_interrupted else _exit_code(stream)


def _read_settings(file: str | None) -> dict[str, str]:
    """Return the settings in a file of NAME=VALUE lines."""
    if file is None:
        return {}
    try:
        with open(file, encoding="utf-8") as opened:
            lines = [line.strip() for line in opened]
    except OSError as error:
        raise MisuseError(
            f"--client-config {file!r} cannot be read ({error.strerror}): check the path."
        ) from error
    settings = {}
    for number, line in enumerate(lines, start=1):
        name, is_setting, value = line.partition("=")
        if line and not line.startswith("#"):
            if not is_setting:  # the line is not quoted, as it may contain a password
                raise MisuseError(f"--client-config {file!r} has no = in line {number}: write NAME=VALUE.")
            settings[name.strip()] = value.strip()
    return settings


def _exit_code(stream: FollowedStream) -> int:
    """Name the files that could not be read, and return the exit code."""
    if names := list(stream.unreadable):
        first = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        note(f"{len(names):,} file{'s' * (len(names) > 1)} could not be read: {first}.")
    return FAILED if stream.has_damaged_files else 0


def _seek(stream: FollowedStream, position: Any, checkpoint: str | None) -> None:
    """Resume at a saved position."""
    from tamis.errors import CheckpointError

    try:
        stream.seek(position)
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint!r} cannot be resumed. {error}") from error


def _wait_for_first_batch(stream: FollowedStream, size: int) -> bool:
    """Wait for the first batch, with all modules loaded; return whether it arrived."""
    from importlib import import_module

    needed = ("numba", "pyarrow.csv", "sklearn.linear_model", "tamis.evaluate", "tamis.persistence.journal")
    for name in needed:  # takes a second or two, which the first batch should not wait for
        import_module(name)
    return stream.begin(size)


def _open_live_page(stream: FollowedStream, selector: Any, events: Events, port: int) -> LivePage:
    """Open the live page and print its address."""
    from tamis.cli.live import LivePage

    title = title_of(stream.describe(), None if selector is None else type(selector).__name__)
    try:
        page = LivePage(title, port)
    except OSError as error:
        raise MisuseError(
            f"--port {port} cannot be opened ({error.strerror}): choose another port."
        ) from error
    events.listeners.append(page.publish)
    note(f"the page is at {page.address}")
    return page


def _check_watch(watch: bool, alerting: Alerting, live: bool, port: int, options: RunOptions) -> None:
    if alerting.is_given and not watch:
        raise MisuseError("--rule, --rules, --on-alert and --webhook are for --watch: add it.")
    if watch and options.clock:
        raise MisuseError("--watch needs labels that are delayed by a number of rows: add --delay N.")
    if port and not live:
        raise MisuseError("--port is for --live: add it.")
    if not 0 <= port <= 65535:
        raise MisuseError(f"--port must be 0 to 65535, got {port}.")
    if watch:  # invalid rules are reported before the first row
        alerting.read_rules()
        alerting.sender()


def _saved_position(checkpoint: str, source: str, labels: list[str]) -> tuple[Any, dict[str, str]]:
    """Return the position of a saved run, None if no run was saved or none with rows, and the task of each label."""
    import os

    from tamis import load
    from tamis.errors import CheckpointError

    if not os.path.exists(checkpoint):
        return None, {}
    content = load(checkpoint)
    run = content.get("run") if isinstance(content, dict) else None
    if not isinstance(run, dict):
        raise CheckpointError(
            f"{checkpoint!r} is not a checkpoint of a run: choose another file, or remove it."
        )
    settings = content.get("settings")
    then = settings.get("stream") if isinstance(settings, dict) else None
    for name, now in (("path", source), *([("label", labels)] if labels else [])):
        if isinstance(then, dict) and then.get(name) != now:
            raise CheckpointError(
                f"{checkpoint!r} is the checkpoint of another run, whose stream.{name} is {then.get(name)!r}, not"
                f" {now!r}: choose another file, or remove it."
            )
    if (position := run.get("position")) is None and run.get("n_seen") != 0:
        raise CheckpointError(
            f"{checkpoint!r} has no position in a followed stream, so the next row is unknown: choose another file, or"
            " remove it to start again."
        )
    tasks = settings.get("task") if isinstance(settings, dict) else None
    return position, tasks if isinstance(tasks, dict) else {}


def _truncate(place: str | None) -> None:
    """Truncate a file."""
    import os

    if place is not None and os.path.isfile(place):
        os.truncate(place, 0)


def _run(
    stream: FollowedStream, pairs: dict[str, Any], events: Events, options: RunOptions, *, quiet: bool
) -> tuple[PrequentialResult | TargetsResult, bool]:
    """Return the result of the run, or of those of several labels, and whether it was interrupted."""
    from tamis.evaluate import prequential
    from tamis.evaluate.prequential.loop import drive
    from tamis.evaluate.prequential.targets import TargetRuns

    console = terminal(stderr=True)
    if "" not in pairs:
        runs = TargetRuns(stream, pairs, options)
        with warnings_in_one_line(console):
            return drive(runs, events, "return"), runs.interrupted
    selector, learner = pairs[""]
    watch = watch_of(console, stream, selector, learner, options, quiet=quiet)
    events.watchers.append(watch)
    with warnings_in_one_line(console), watch:
        result = prequential(
            stream, selector, learner, on_step=events, on_interrupt="return", **options.keywords()
        )
        return result, result.settings["interrupted"]


def _finish(result: PrequentialResult | TargetsResult, output: RunOutput, *, is_shown: bool) -> None:
    """Show the result if rows were tested, and write the files."""
    of_label: dict[str, PrequentialResult] | None = getattr(result, "results", None)
    if of_label is None:
        writers = output.writers(result)  # type: ignore[arg-type]
        is_tested = len(result.frames["steps"]["step"]) > 0  # type: ignore[union-attr]
    else:
        writers, is_tested = {}, bool(of_label)
    if is_shown and is_tested:
        output.finish(result, writers)
    elif is_tested or of_label is None:
        output.write(result, writers)


class Events:
    """Writes the events of a running evaluation as lines of JSON; to be called after each step.

    Parameters
    ----------
    journal : Journal
    stream : FollowedStream
    every : int
        Rows between two lines of scores.
    labels : list of str
        The labels if there are several, which the lines name.
    """

    def __init__(self, journal: Journal, stream: FollowedStream, every: int, labels: list[str]) -> None:
        self.journal, self.stream, self.every = journal, stream, every
        self.watchers: list[Callable[[Step], object]] = []
        self.listeners: list[Callable[[dict[str, Any]], object]] = []
        self.watched: FollowedWatch | None = None
        self.selected: dict[str, list[str]] = {label: [] for label in labels or [""]}
        self.n_seen = self._n_reported = 0

    def __call__(self, step: Step | TargetSteps) -> None:
        """Write the events of a step."""
        self.n_seen = int(step.n_seen)
        of_label: dict[str, Step] = getattr(step, "of_target", {"": step})
        of_row = {"n_seen": self.n_seen}
        if "" in of_label:
            of_row = {"step": int(of_label[""].step), **of_row}
        lines = [{**one, **of_row} for one in self.stream.pop_events()]
        is_due = self.n_seen // self.every > self._n_reported // self.every
        for label, one in of_label.items():
            at = {"step": int(one.step), "n_seen": int(one.n_seen), **({"label": label} if label else {})}
            lines += self._events_of(label, one, at)
            if is_due:
                if self.watched is not None:
                    lines.append({**self.watched.line(), **at})
                lines.append({"event": "scores", **at, **_scores(one), **self.stream.counts})
        if is_due:
            self._n_reported = self.n_seen
        self.emit(lines)
        for watch in self.watchers:
            watch(of_label[""])

    def _events_of(self, label: str, step: Step, at: dict[str, Any]) -> list[dict[str, Any]]:
        """Return changes of the selection, drifts and alerts of one label."""
        lines = []
        selected = [step.names[j] for j in step.selected]
        if selected != self.selected[label]:
            before, now = set(self.selected[label]), set(selected)
            entered = [name for name in selected if name not in before]
            left = [name for name in self.selected[label] if name not in now]
            lines.append(
                {"event": "selection", **at, "entered": entered, "left": left, "n_selected": len(selected)}
            )
            self.selected[label] = selected
        if getattr(step.models.selector, "drift_detected_", False):
            lines.append({"event": "drift", **at})
        if self.watched is not None:
            lines += [{**one, **at} for one in self.watched.update(step, self.stream.categorical)]
        return lines

    def emit(self, lines: list[dict[str, Any]]) -> None:
        """Write lines, and pass them to the listeners."""
        self.journal.write(lines)
        for listen in self.listeners:
            for line in lines:
                listen(line)

    def state(self) -> dict[str, Any]:
        """Return the files of a checkpoint."""
        if self.journal.is_torn:  # a line is incomplete: the previous checkpoint remains valid
            raise KeyboardInterrupt
        self.journal.flush()
        return {
            "journal": self.journal.mark(), "selected": self.selected, "n_seen": self.n_seen,
            "n_reported": self._n_reported, "watch": None if self.watched is None else self.watched.state(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint: events after it are written again.

        Raises
        ------
        CheckpointError
            If no run can reach this state.
        """
        from tamis._validation import is_integer
        from tamis.errors import CheckpointError

        known = state if isinstance(state, dict) else {}
        selected: Any = known.get("selected")
        counts = [known.get(name, -1) for name in ("n_seen", "n_reported")]
        is_known = isinstance(selected, dict) and selected.keys() == self.selected.keys()
        if not is_known or not all(is_integer(n) and n >= 0 for n in counts):
            raise CheckpointError(
                "The events of the run in the checkpoint are invalid, so it was changed from outside: choose another"
                " file, or remove it to start again."
            )
        self.journal.truncate(known.get("journal"))
        self.selected, (self.n_seen, self._n_reported) = selected, counts
        if self.watched is not None and state.get("watch") is not None:
            self.watched.restore(state["watch"])
        for label, names in self.selected.items():
            line = {"event": "selection", "entered": names, "left": [], "n_selected": len(names)}
            for listen in self.listeners:
                listen({**line, "n_seen": self.n_seen, **({"label": label} if label else {})})


def _scores(step: Step) -> dict[str, Any]:
    """Return the scores of the last rows, and of all."""
    columns = {
        "mae": "mae_windowed", "mae_all": "mae_cumulative", "r2": "r2_windowed",
        "frozen_selection": "frozen_mae_windowed", "random_subsets": "random_mae_windowed",
        "every_feature": "all_mae_windowed",
        "mean_so_far": "mean_mae_windowed", "last_target": "last_mae_windowed", "stability": "stability",
    } if "mae" in step.values else {
        "accuracy": "accuracy_windowed", "accuracy_all": "accuracy_cumulative",
        "balanced_accuracy": "balanced_accuracy_windowed", "auc": "auc_windowed",
        "macro_auc": "macro_auc_windowed",
        "frozen_selection": "frozen_accuracy_windowed", "random_subsets": "random_accuracy_windowed",
        "every_feature": "all_accuracy_windowed",
        "majority": "majority_accuracy_windowed", "last_label": "no_change_accuracy_windowed",
        "stability": "stability",
    }  # fmt: skip
    scores = {name: step.values[column] for name, column in columns.items()}
    top = {name: round(score, 6) for name, score in step.top}
    return {**scores, "n_selected": int(step.n_selected), "top": top}
