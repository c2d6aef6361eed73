"""`tamis retire`: the columns of a model that can be switched off, with an any-time bound on the loss."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tamis.cli.failure import MisuseError
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.output import Output
from tamis.cli.reading import Reading
from tamis.cli.watch import PredictionLog
from tamis.errors import DataError

if TYPE_CHECKING:
    from tamis.watch.retirement import Retirement


@command(panel="Watching")
def retire(
    *,
    prediction: str,
    prices: str | None = None,
    task: str = "classification",
    most: float = 0.01,
    level: float = 0.95,
    reading: Reading,
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Find columns of a prediction log that can be switched off.

    A bound on the loss holds after all rows at once, also if they drift. It is that of a model refitted without the
    columns, compared with the logged predictions; `tamis.watch.retire` compares those of the live model.

    Parameters
    ----------
    prediction : NAME
        Column with the predictions: scores of the larger label, labels or numbers.
    prices : PRICES
        Price of each column per row: JSON or CSV by column name. Columns without a price stay on. [default: 1 each]
    task : NAME
        classification or regression.
    most : SHARE
        Largest acceptable bound of the loss: of accuracy, or of the mean absolute error relative to that of the mean.
    level : SHARE
        Probability with which the bound holds.
    report : FILE
        Write an HTML report.

    Examples
    --------
    `tamis retire predictions.parquet --label default --prediction score --prices prices.json`
    """
    if task not in ("classification", "regression"):
        raise MisuseError(f"--task {task} must be classification or regression.")
    if reading.dataset is not None:
        raise MisuseError("tamis retire reads a FILE of predictions; a data set has none.")
    for name, value, low, high in (("most", most, 0.0, math.inf), ("level", level, 0.5, 1.0)):
        if not low <= value < high:
            raise MisuseError(f"--{name} {value} must be at least {low:g} and below {high:g}.")
    costs = None if prices is None else _read_prices(prices)
    output = Output(as_json, quiet, report, {})
    output.check([*reading.inputs, *([] if prices is None else [prices])], force)
    found = _retirement(reading, prediction, costs, task, most, level, quiet=quiet)
    output.finish(found, title=f"Columns of {Path(str(reading.file)).name}")


def _retirement(
    reading: Reading, prediction: str, costs: dict[str, float] | None, task: str, most: float, level: float, *,
    quiet: bool,
) -> Retirement:  # fmt: skip
    import numpy as np

    from tamis.watch.retirement import retire as retire_columns

    stream = reading.open(classes=task == "classification", quiet=quiet, predictions=[prediction])
    parts = list(stream.batches(1000))
    if not parts:
        raise DataError(f"{reading.file!r} has no rows: add rows below its header, or name another file.")
    log = PredictionLog.find(
        stream, prediction, parts[0] if task == "classification" else None, has_time=False
    )
    if unknown := sorted(set(costs or {}) - set(log.names)):
        raise MisuseError(f"--prices names {unknown[0]}, which is not a column: {', '.join(log.names[:20])}.")
    X, y = np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    given = np.concatenate([log.predictions(*part) for part in parts])
    rows = np.ascontiguousarray(X[:, log.features])
    return retire_columns(rows, y, given, costs, task=task, most=most, level=level, feature_names=log.names)


def _read_prices(path: str) -> dict[str, float]:
    """Return the price of each column of a JSON object, or of a CSV file with one column and its price per line."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise MisuseError(f"--prices {path} cannot be read: name a JSON or CSV file of prices.") from None
    try:
        found: Any = (
            _unique((line[0].strip(), line[1]) for line in csv.reader(text.splitlines()) if len(line) > 1)
            if path.lower().endswith(".csv")
            else json.loads(text, object_pairs_hook=_unique)
        )
        found = found.get("prices", found) if isinstance(found, dict) else found
        values = {str(name): _price(price) for name, price in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise MisuseError(
            f'--prices {path} must have a price per column, such as {{"age": 0, "scan": 0.2}}.'
        ) from None
    priced = {name: price for name, price in values.items() if price is not None}
    if not priced or any(not 0.0 <= price < math.inf for price in priced.values()):
        raise MisuseError(
            f"--prices {path} must have prices of 0 or more, each in a line or member of its own."
        )
    return priced


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict of pairs, of which no two have a name in common."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise MisuseError(f"--prices has two prices of {name}: remove one.")
        found[name] = value
    return found


def _price(text: Any) -> float | None:
    """Return a price; None for the head of a table."""
    try:
        return float(text)
    except ValueError:
        return None
