"""`tamis watch`: the state of each feature, and alerts, from a log of features, predictions and labels."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis._json import null_nonfinite
from tamis.cli.alerting import Alerting, check_names, update_watch
from tamis.cli.failure import MisuseError
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.output import Output, alone, progress
from tamis.cli.reading import Reading
from tamis.cli.watch_checkpoint import SavedWatch, saved_watch
from tamis.errors import CheckpointError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from tamis.streams import Stream


@command(panel="Watching")
def watch(
    *,
    prediction: str,
    time: str | None = None,
    task: str = "classification",
    delay: Annotated[int, typer.Option(min=0)] = 0,
    half_life: float = 500,
    patience: Annotated[int, typer.Option(min=0)] = 500,
    batch_size: Annotated[int, typer.Option(min=1)] = 100,
    reading: Reading,
    alerting: Alerting,
    alerts: Annotated[str | None, OUTPUT] = None,
    report: Annotated[str | None, OUTPUT] = None,
    checkpoint: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Find features of a prediction log that lost their relevance.

    Alerts name features that the predictions rely on although they are no longer relevant, and other drift.

    Parameters
    ----------
    prediction : NAME
        Column with the predictions: scores of the larger label, labels or numbers.
    time : NAME
        Column with the time of each row, shown in alerts.
    task : NAME
        classification or regression.
    delay : ROWS
        Delay of the labels, in rows.
    half_life : ROWS
        Number of rows after which the weight of a row is halved.
    patience : ROWS
        Rows for which a state must persist.
    batch_size : N
        Rows between two checks of the rules.
    alerts : FILE
        Write the alerts as JSON lines, instead of printing them.
    report : FILE
        Write an HTML report.
    checkpoint : FILE
        Save the state to this file; if it exists, continue with the next row.

    Examples
    --------
    `tamis watch predictions.parquet --label default --prediction score --time ts`

    `tamis watch log.csv --label y --prediction p --delay 500 --rule 'auc drops by more than 0.05'`
    """
    from tamis.watch import Watch

    _check(reading, task, checkpoint)
    rules, send = alerting.read_rules(), alerting.sender()
    output = Output(as_json, quiet, report, {"--alerts": alerts, "--checkpoint": checkpoint})
    output.check(reading.inputs, force)
    settings = {"task": task, "delay": delay, "half_life": half_life, "patience": patience}
    with alone(checkpoint, alerts):
        saved = saved_watch(checkpoint, settings | {"rules": [repr(rule) for rule in rules]})
        clock = () if time is None else (time,)
        stream = reading.open(
            classes=task == "classification", quiet=quiet, clock=clock, predictions=[prediction]
        )
        saved.check_log(stream, str(reading.file))
        batches = stream.batches(batch_size, start=0 if saved.watched is None else saved.watched.n_rows_)
        first = next(batches, None)  # the categories of the stream are known from then on
        if first is None and saved.watched is None:
            raise DataError(f"{reading.file!r} has no rows: add rows below its header, or name another file.")
        log = PredictionLog.find(
            stream, prediction, first if task == "classification" else None, has_time=time is not None
        )
        check_names(rules, log.names, task)
        if saved.watched is None:
            saved.watched = Watch(
                rules=rules, task=task, feature_names=log.names, categorical=log.categorical,
                half_life=half_life, patience=patience, max_pending=delay + batch_size,
            )  # fmt: skip
        elif saved.watched.feature_names != log.names:
            raise CheckpointError(
                f"{checkpoint!r} belongs to a log with other features: choose another file, or remove it."
            )
        journal = saved.journal(alerts)
        with progress(quiet) as show:
            for item in _run(saved, log, chain([] if first is None else [first], batches), delay):
                show(None, f"{saved.watched.n_rows_:,} rows")
                for alert in item:
                    send(alert)
                    if alerts is None and not as_json:
                        print(json.dumps(null_nonfinite(alert), default=str), flush=True)
                if journal is not None:
                    journal.write(item)
                saved.keep()
        saved.keep(at_once=True)
    output.finish(saved.watched, title=f"Watch of {Path(str(reading.file)).name}", alerts=saved.alerts)


def _check(reading: Reading, task: str, checkpoint: str | None) -> None:
    if task not in ("classification", "regression"):
        raise MisuseError(f"--task {task} must be classification or regression.")
    if reading.dataset is not None:
        raise MisuseError("tamis watch reads a FILE of predictions; a data set has none.")
    if reading.file == "-" and checkpoint is not None:
        raise MisuseError(
            "--checkpoint cannot resume standard input, which can be read only once: name a file."
        )


@dataclass
class PredictionLog:
    """Positions of the features, the prediction and the time in the rows of a stream."""

    features: list[int]
    names: list[str]
    prediction: int
    is_text: bool  # the prediction
    is_label: bool  # the prediction, if it is a number
    time: int | None
    categorical: list[str]
    stream: Stream

    @classmethod
    def find(cls, stream: Stream, prediction: str, first: Any, *, has_time: bool) -> PredictionLog:
        """Find the columns; the first batch shows whether the prediction is a label.

        Raises
        ------
        MisuseError
            If the file has no column of predictions, or these are read otherwise than the labels.
        """
        names = list(stream.feature_names or [])
        if prediction not in names:
            raise MisuseError(
                f"--prediction {prediction} is not a column of the file: {', '.join(names[:20])}."
            )
        at, last = names.index(prediction), len(names) - 1 if has_time else None
        features = [j for j in range(len(names)) if j not in (at, last)]
        if not features:
            raise MisuseError("The file has no features besides the label, the prediction and the time.")
        known, kept = getattr(stream, "categories", {}), [names[j] for j in features]
        categorical = [name for name in kept if name in known]
        is_text = prediction in known
        if first is not None and not is_text and _are_spelled_otherwise(first[0][:, at], first[1]):
            raise MisuseError(
                f"--prediction {prediction} is read as numbers, which differ from labels such as {first[1][0]}: add"
                f" --categorical {prediction}, so that both are read alike."
            )
        is_label = first is not None and not is_text and _are_labels(first[0][:, at], first[1])
        return cls(features, kept, at, is_text, is_label, last, categorical, stream)

    def predictions(self, X: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """Return the predictions in rows of the stream: numbers, or labels in the type of `y`."""
        import numpy as np

        values = X[:, self.prediction]
        if not self.is_text:
            is_whole = self.is_label and bool(np.all(values == np.floor(values)))
            return values.astype(np.int64) if is_whole else values
        name = (self.stream.feature_names or [])[self.prediction]
        labels: NDArray[Any] = np.array(self.stream.categories[name])  # type: ignore[attr-defined]
        if y.dtype.kind in "iuf":
            with contextlib.suppress(ValueError):  # labels that cannot be converted count as wrong
                labels = labels.astype(y.dtype)
        return labels[values.astype(np.int64)]


def _are_labels(predictions: NDArray[Any], y: NDArray[Any]) -> bool:
    """Return whether predictions are labels: integers other than 0 and 1."""
    import numpy as np

    if y.dtype.kind not in "iuf" or not np.all(predictions == np.floor(predictions)):
        return False
    return not bool(np.isin(np.concatenate([predictions, y]), [0, 1]).all())


def _are_spelled_otherwise(predictions: NDArray[Any], y: NDArray[Any]) -> bool:
    """Return whether predictions are labels that numbers do not represent: 007, or integers beyond 2**53."""
    import numpy as np

    if not np.all(predictions == np.floor(predictions)) or np.isin(predictions, [0, 1]).all():
        return False
    return y.dtype.kind in "US" or (y.dtype.kind in "iuO" and bool(np.abs(predictions).max() >= 1 << 53))


def _run(
    saved: SavedWatch, log: PredictionLog, batches: Iterable[Any], delay: int
) -> Iterator[list[dict[str, Any]]]:
    """Yield the alerts of each batch, with the time of its last row."""
    import numpy as np

    watched = saved.watched
    for X, y in batches:
        predictions = log.predictions(X, y)
        rows = np.ascontiguousarray(X[:, log.features])
        alerts = update_watch(watched, saved.waiting, rows, predictions, y, delay)
        if log.time is not None:
            alerts = [alert | {"time": _iso(float(X[-1, log.time]))} for alert in alerts]
        saved.alerts = [*saved.alerts, *alerts][-1000:]
        saved.note_rows(X)
        yield alerts


def _iso(seconds: float) -> str | None:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # missing, or not a time
        return None
