"""`tamis watch`: the state of each feature, and alerts, from a log of features, predictions and labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis._json import null_nonfinite
from tamis.cli.failure import MisuseError
from tamis.cli.options import AsJSON, Debug, Force, Quiet, check_whole, grouped, option
from tamis.cli.output import check_outputs, print_json, progress, terminal, write_output
from tamis.cli.reading import Reading
from tamis.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from tamis.streams import Stream
    from tamis.watch import Rule, Watch

__all__ = ["add", "watch"]

_EXAMPLES = """\
Examples:

[bold]tamis watch predictions.parquet --label default --prediction score --time ts[/]

[bold]tamis watch log.csv --label y --prediction p --delay 500 --rule 'auc drops by more than 0.05'[/]"""

_WATCHING = "Watching"


@dataclass
class _Reading(Reading):
    missing: Annotated[
        str, option("Reading the file", "HOW", "Missing numbers: keep (they are skipped), mean, or error.")
    ] = "keep"


def add(root: typer.Typer) -> None:
    """Add the command."""
    root.command(epilog=_EXAMPLES)(grouped(watch))


def watch(
    *,
    prediction: Annotated[
        str,
        option(
            _WATCHING, "NAME", "Column of the predictions: scores of the larger label, labels or numbers."
        ),
    ],
    time: Annotated[
        str | None, option(_WATCHING, "NAME", "Column of the time of each row; alerts name the time.")
    ] = None,
    task: Annotated[str, option(_WATCHING, "NAME", "classification or regression.")] = "classification",
    rule: Annotated[
        list[str] | None,
        option(
            _WATCHING,
            "TEXT",
            "When to raise an alert; may be repeated.  [dim]\\[default: a feature is used but no longer relevant,"
            " or its psi is above 0.2][/]",
            show_default=False,
        ),
    ] = None,
    delay: Annotated[int, option(_WATCHING, "ROWS", "After how many rows a label is known.")] = 0,
    half_life: Annotated[
        float, option(_WATCHING, "ROWS", "Number of rows after which a row counts half.")
    ] = 500,
    patience: Annotated[int, option(_WATCHING, "ROWS", "For how many rows a state must hold.")] = 500,
    batch_size: Annotated[int, option(_WATCHING, "N", "Rows after which rules are applied.")] = 100,
    reading: _Reading,
    alerts: Annotated[
        str | None, option("Output", "FILE", "Write the alerts as JSON lines, instead of printing them.")
    ] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Find the features that logged predictions rely on although they are no longer relevant, and other drift."""
    from tamis.watch import Watch

    check_whole("--delay", delay, 0)
    check_whole("--patience", patience, 0)
    check_whole("--batch-size", batch_size, 1)
    if task not in ("classification", "regression"):
        raise MisuseError(f"--task {task} must be classification or regression.")
    if reading.dataset is not None:
        raise MisuseError("tamis watch reads a FILE of predictions; a data set has none.")
    rules = _rules(rule)
    check_outputs(reading.inputs, {"--alerts": alerts}, force=force)
    reading.keep = [*(reading.keep or []), prediction]
    clock = () if time is None else (time,)
    stream = reading.open(classes=task == "classification", quiet=quiet, clock=clock)
    batches = stream.batches(batch_size)
    first = next(batches, None)  # the stream knows its categories from then on
    if first is None:
        raise DataError(f"{reading.file!r} has no rows: add rows below its header, or name another file.")
    log = _Log.of(stream, prediction, has_time=time is not None)
    _check_features(rules, log.names)
    found = Watch(
        rules=rules, task=task, feature_names=log.names, categorical=log.categorical, half_life=half_life,
        patience=patience, max_pending=delay + batch_size,
    )  # fmt: skip
    lines = []
    with progress(quiet) as show:
        for alert in _run(found, log, chain([first], batches), delay):
            show(None, f"{found.n_rows_:,} rows")
            lines.append(json.dumps(null_nonfinite(alert), default=str))
            if alerts is None and not as_json:
                print(lines[-1], flush=True)
    if alerts is not None:
        write_output(alerts, lambda file: file.write("".join(f"{line}\n" for line in lines).encode()))
    if as_json:
        print_json({
            "n_rows": found.n_rows_, "n_labelled": found.n_labelled_, "features": found.table(),
            "performance": found.performance(), "alerts": [json.loads(line) for line in lines],
        })  # fmt: skip
    else:
        _show(found)


def _rules(texts: list[str] | None) -> list[Rule]:
    from tamis.watch import Rule
    from tamis.watch.watch import DEFAULT_RULES

    try:
        return [Rule(text) for text in (DEFAULT_RULES if texts is None else texts)]
    except ValueError as error:
        raise MisuseError(f"--rule: {error}") from None


def _check_features(rules: list[Rule], names: list[str]) -> None:
    for rule in rules:
        unknown = [name for name in rule.features if name not in ("*", *names)]
        if unknown:
            raise MisuseError(f"--rule {rule.text} names {unknown[0]!r}, which is not a feature of the file.")


@dataclass
class _Log:
    """Where the features, the prediction and the time are in the rows of a stream."""

    features: list[int]
    names: list[str]
    prediction: int
    is_text: bool  # the prediction
    time: int | None
    categorical: list[str]
    stream: Stream

    @classmethod
    def of(cls, stream: Stream, prediction: str, *, has_time: bool) -> _Log:
        """Find the columns.

        Raises
        ------
        MisuseError
            If the file lacks the column of predictions.
        """
        names = list(stream.feature_names or [])
        if prediction not in names:
            raise MisuseError(
                f"--prediction {prediction} is not a column of the file: {', '.join(names[:20])}."
            )
        at, last = names.index(prediction), len(names) - 1 if has_time else None
        features = [j for j in range(len(names)) if j not in (at, last)]
        if not features:
            raise MisuseError("The file has no features beside the label, the prediction and the time.")
        known, kept = getattr(stream, "categories", {}), [names[j] for j in features]
        categorical = [name for name in kept if name in known]
        return cls(features, kept, at, prediction in known, last, categorical, stream)

    def predictions(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the predictions in rows of the stream: numbers, or labels."""
        import numpy as np

        values = X[:, self.prediction]
        if not self.is_text:
            return values
        name = (self.stream.feature_names or [])[self.prediction]
        labels: NDArray[Any] = np.array(self.stream.categories[name])  # type: ignore[attr-defined]
        return labels[values.astype(np.int64)]


def _run(watched: Watch, log: _Log, batches: Iterable[Any], delay: int) -> Iterator[dict[str, Any]]:
    """Yield the alerts, with the time of the last row read."""
    import numpy as np

    waiting_keys, waiting = list[int](), list[Any]()
    for X, y in batches:
        predictions = log.predictions(X)
        rows, first = np.ascontiguousarray(X[:, log.features]), watched.n_rows_
        if delay == 0:
            found = watched.update(rows, predictions, y=y)
        else:
            found = watched.update(rows, predictions)
            waiting_keys += range(first, first + len(rows))
            waiting += list(y)
            due = sum(key < watched.n_rows_ - delay for key in waiting_keys)
            if due:
                found += watched.update_labels(waiting_keys[:due], np.array(waiting[:due]))
                del waiting_keys[:due], waiting[:due]
        for alert in found:
            yield alert | ({} if log.time is None else {"time": _iso(float(X[-1, log.time]))})


def _iso(seconds: float) -> str | None:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # missing, or not a time
        return None


def _show(found: Watch) -> None:
    from rich.table import Table
    from rich.text import Text

    from tamis.terminal import printable

    grid = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("feature", "state", "since", "relevance", "reliance", "psi"):
        if name == "feature":
            grid.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            grid.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
    order = {"used but no longer relevant": 0, "relevant but unused": 1, "used and relevant": 2}
    rows = sorted(found.table(), key=lambda row: (order.get(row["state"], 3), -row["reliance_share"]))
    for row in rows:
        numbers = [row[name] for name in ("relevance_share", "reliance_share", "psi")]
        shown = ["" if number != number else f"{number:.3f}" for number in numbers]
        since = "" if row["state"] == "unknown" else f"{row['since']:,}"
        grid.add_row(Text(printable(row["feature"])), row["state"], since, *shown)
    console = terminal()
    console.print(grid)
    measures = {name: value for name, value in found.performance().items() if value == value}
    if measures:
        console.print(Text(", ".join(f"{name} {value:.3f}" for name, value in measures.items()), style="dim"))
    n = len(found.alerts_)
    counts = f"{found.n_rows_:,} rows, {found.n_labelled_:,} with labels, {n:,} alert{'s' * (n != 1)}"
    console.print(Text(counts, style="dim"))
