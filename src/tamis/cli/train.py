"""`tamis train`: a model that acquires values one by one, fitted to a file and saved for `tamis acquire`."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.catalog import find
from tamis.cli.failure import MisuseError
from tamis.cli.methods import assignment, cells, keys
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, check_word, command
from tamis.cli.output import Output, note, progress
from tamis.cli.reading import Reading
from tamis.errors import DataError, did_you_mean
from tamis.options import model_parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.cells import CellClassifier
    from tamis.cells.evaluation import Candidate
    from tamis.streams import Stream

_AUTO = "auto"
_COMPARED = 2_000  # rows of a comparison


@dataclass
class _Reading(Reading):
    """The rows to learn from, and their label.

    Parameters
    ----------
    task : NAME
        classification, or regression: the label is a number, with a squared-error cost.
    """

    task: str = "classification"


@command(panel="Learning")
def train(
    *,
    reading: _Reading,
    method: Annotated[str, typer.Option(autocompletion=keys(cells()))] = "auto",
    cost: str = "0.01",
    error_cost: float | None = None,
    missingness: str = "uninformative",
    set_: Annotated[list[str] | None, typer.Option("--set")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    max_rows: Annotated[int | None, typer.Option(min=10)] = None,
    held_out: float = 0.25,
    save: Annotated[str | None, OUTPUT] = None,
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Train a model that acquires the values of a row one by one.

    It decides which value to acquire next, and when to stop.

    Parameters
    ----------
    method : NAME
        auto (the best of the others on held-out rows), adaptive, ifc2f, etana, fetana, aaco or fixed-subset.
    cost : PRICE
        Price of each column, in units of --error-cost; or a JSON or CSV file of prices by column name.
    error_cost : PRICE
        Cost of a wrong decision, or of a squared error of one variance, in the currency of the prices; 1 by default,
        unless the prices of a file are in a currency.
    missingness : NAME
        informative if values are recorded for the same reason where the model is used; uninformative: that a value was
        recorded is not evidence.
    set_ : NAME=VALUE
        A parameter of the method; may be repeated.
    seed : N
        Seed of the method, and of the choice of held-out rows.
    max_rows : N
        Use this many rows, drawn at random; all by default.
    held_out : SHARE
        Share of held-out rows, to evaluate the model; 0 for none.
    save : FILE
        File to save the model in, for tamis acquire.
    report : FILE
        Write an HTML report: the costs and paths of the held-out rows.

    Examples
    --------
    `tamis train patients.csv --label ill --save clinic.tamis`

    `tamis train patients.csv --label ill --method ifc2f --cost prices.json --save clinic.tamis --report clinic.html`

    Then `tamis acquire clinic.tamis` asks for values one by one.
    """
    import tamis
    from tamis.cells.acquisition_result import AcquisitionResult
    from tamis.cells.evaluation import winner

    check_word("--task", reading.task, ("classification", "regression"))
    check_word("--missingness", missingness, ("uninformative", "informative"))
    is_number = reading.task == "regression"
    compares = method == _AUTO
    if compares and set_:
        raise MisuseError(f"--set {set_[0]} needs a method that has the parameter: name one with --method.")
    entry = find({_AUTO: "fixed-subset", "adaptive": "adaptive-ifc2f"}.get(method, method), "cells")
    parameters = dict(assignment(entry, text) for text in set_ or [])
    prices = _prices(cost)
    if error_cost is not None and not 0 < error_cost < math.inf:
        raise MisuseError(f"--error-cost {error_cost:g} must be above 0, and finite.")
    if save is None and report is None:
        raise MisuseError("Name an output: --save FILE for the model, or --report FILE for the report only.")
    if not 0 <= held_out < 1 or (report is not None and held_out == 0):
        raise MisuseError(f"--held-out {held_out} must be a share below 1, and above 0 for a report.")
    inputs = [*reading.inputs, *([] if isinstance(prices, float) else [cost])]
    output = Output(as_json, quiet, report, {"--save": save})
    output.check(inputs, force)
    table = Table.read(reading.open(classes=not is_number, quiet=quiet))
    prices = _prices_of_columns(prices, cost, table, quiet=quiet)
    if error_cost is None and "misclassification_cost" not in parameters:
        _reject_currency(prices, cost, table.y, is_number=is_number)
    learned, held = table.split(held_out, seed, max_rows, is_number=is_number)
    its_classes = None if is_number else table.y[learned]
    costs = {"cost": prices, **_error_costs(error_cost or 1.0, its_classes, parameters)}
    costs |= {"objective": "squared-error"} if is_number else {}
    costs |= {"missingness": missingness} if missingness != "uninformative" else {}
    with progress(quiet) as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the remarks of the result repeat them
        candidates = []
        if compares:
            candidates = _compare(
                table, learned, costs, seed, lambda share, name: show(0.8 * share, f"comparing {name}")
            )
            entry = find(winner(candidates).name, "cells")
        show(0.8 if compares else 0.0, "training")
        fitted = table.rows(learned)
        model = entry.load()(**model_parameters(entry, seed=seed) | parameters | costs)
        model.fit(fitted, table.y[learned])
        table.name_columns(model)
        result = AcquisitionResult(
            model, fitted, table.y[learned], table.rows(held), table.y[held], table.title,
            candidates=[vars(one) for one in candidates], on_progress=show,
        )  # fmt: skip
        if len(held):
            show(0.95 if compares else 0.5, "comparing with baselines")
            _ = result.baselines, result.gain, report is None or result.curves
    closing = "" if save is None else f"Ask for values one by one: tamis acquire {shlex.quote(save)}"
    output.finish(result, {"model": (save, lambda place: tamis.save(model, place))}, closing=closing)


def _prices(text: str) -> Any:
    """Return one price, or the price of each column by name."""
    with contextlib.suppress(ValueError):
        price = float(text)
        if not 0 <= price < math.inf:
            raise MisuseError(f"--cost {text} must be 0 or more, and finite.")
        return price
    try:
        content = Path(text).read_text(encoding="utf-8-sig")
    except OSError:
        raise MisuseError(
            f"--cost {text} is neither a price nor a readable JSON or CSV file of prices."
        ) from None
    if text.lower().endswith(".csv"):
        return _listed_prices(text, content)
    try:
        result = json.loads(content)
    except ValueError as error:
        raise MisuseError(f"--cost {text} is not a JSON document: {error}.") from None
    if isinstance(result, dict) and "prices" in result:
        from tamis.base import PriceList

        try:
            return PriceList.from_dict(result)
        except (ValueError, TypeError) as error:
            raise MisuseError(f"--cost {text}: {error}") from None
    if not isinstance(result, dict) or not all(isinstance(price, int | float) for price in result.values()):
        raise MisuseError(f'--cost {text} must be one object of prices, such as {{"age": 0, "scan": 0.2}}.')
    return result


def _listed_prices(path: str, content: str) -> Any:
    """Return the prices of a CSV file, each line a column, its price, unit and range; a header is skipped."""
    import csv

    result, units, ranges = dict[Any, float](), dict[Any, str](), dict[Any, tuple[float, float]]()
    for number, line in enumerate(csv.reader(content.splitlines()), start=1):
        if not any(part.strip() for part in line):
            continue
        name, price = line[0].strip(), None
        with contextlib.suppress(ValueError, IndexError):
            price = float(line[1])
        if price is None and number == 1:
            continue
        if price is None or not 0 <= price < math.inf:
            raise MisuseError(
                f"--cost {path}, line {number}: write a column and its price, such as scan,0.2."
            )
        if len(line) > 2 and line[2].strip():
            units[name] = line[2].strip()
        if len(line) > 3:
            try:
                ranges[name] = float(line[3]), float(line[4])
            except (ValueError, IndexError):
                raise MisuseError(
                    f"--cost {path}, line {number}: write a column, its price, its unit, and its lowest and highest"
                    " value, such as temperature,0.1,°C,30,45."
                ) from None
        if name in result:
            raise MisuseError(
                f"--cost {path}, line {number}: column {name!r} has a price already; keep one of them."
            )
        result[name] = price
    if not result:
        raise MisuseError(
            f"--cost {path} has no prices: write a column and its price on each line, such as scan,0.2."
        )
    if units or ranges:
        from tamis.base import PriceList

        try:
            return PriceList(result, units=units, ranges=ranges)
        except ValueError as error:
            raise MisuseError(f"--cost {path}: {error}") from None
    return result


def _prices_of_columns(prices: Any, path: str, table: Table, *, quiet: bool) -> Any:
    """Return the prices of the columns that are used; raise if one has no price, or a price has no column."""
    if not isinstance(prices, dict) or table.names is None:
        return prices
    known, unused = set(table.names), [name for name in prices if name in table.excluded]
    for name in prices:
        if name not in known and name not in unused:
            hint = did_you_mean(name, table.names, ": remove it.")
            raise MisuseError(f"--cost {path} has a price for {name!r}, which is not a column{hint}")
    if lacking := [name for name in table.names if name not in prices]:
        raise MisuseError(f"--cost {path} has no price for column {lacking[0]!r}: add it, 0 if it is free.")
    if unused and not quiet:
        note(f"the price of {', '.join(unused)} is not used: the column is excluded.")
    return {name: prices[name] for name in table.names}


def _reject_currency(prices: Any, path: str, y: NDArray[Any], *, is_number: bool) -> None:
    """Raise if the prices of a file are in a currency, or no value can be worth its price at an error cost of 1."""
    import numpy as np

    from tamis.base import PriceList

    currency, own = "", prices
    if isinstance(prices, PriceList):
        currency, own = prices.currency, prices.prices
        own = {
            **(own if isinstance(own, dict) else {"every column": own}),
            "fees": sum(fee for _, fee in prices.fees),
        }
    if not isinstance(own, dict):  # one price, stated in the command
        return
    paid = np.array([price for price in own.values() if price > 0])
    share = 1.0 if is_number else 1.0 - np.unique(y, return_counts=True)[1].max() / len(y)
    if not len(paid) or not (currency or paid.max() >= 1.0 or paid.min() >= share):
        return
    what = "a squared error of one variance" if is_number else "a wrong decision"
    raise MisuseError(
        f"--cost {path} has prices up to {f'{paid.max():g} {currency}'.strip()}, but {what} costs 1 by default: state"
        f" its cost in the same unit, such as --error-cost {10 * paid.max():g}, ten times the highest price."
    )


def _error_costs(error_cost: float, y: NDArray[Any] | None, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the costs of errors as a parameter, one number without classes; nothing for the default."""
    import numpy as np

    if error_cost == 1.0:
        return {}
    if "misclassification_cost" in parameters:
        raise MisuseError(
            "--error-cost and --set misclassification_cost are mutually exclusive: give one of them."
        )
    if y is None:
        return {"misclassification_cost": error_cost}
    return {"misclassification_cost": error_cost * (1.0 - np.eye(len(np.unique(y))))}


class Table:
    """All rows of a stream, with the names of its columns.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    names : list of str or None
    categories : dict of str to list
        Values of the text columns, by code.
    title : str
    excluded : sequence of str
        Columns of the file that are not features.
    """

    def __init__(
        self, X: Any, y: NDArray[Any], names: list[str] | None, categories: dict[str, list[Any]], title: str,
        excluded: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.X, self.y, self.names, self.categories, self.title = X, y, names, categories, title
        self.excluded = excluded

    @classmethod
    def read(cls, stream: Stream) -> Table:
        """Read every row of a stream."""
        import numpy as np
        import scipy.sparse as sp

        parts = list(stream.batches(10_000))
        if not parts:
            raise DataError("No rows were read: pass a file with rows.")
        blocks = [X for X, _ in parts]
        X = sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)
        described = stream.describe()
        title = described.get("name") or Path(str(described.get("path", "a stream"))).name
        y = np.concatenate([y for _, y in parts])
        excluded = [*described.get("drop", []), str(described.get("label", ""))]
        return cls(X, y, stream.feature_names, dict(getattr(stream, "categories", {})), str(title), excluded)

    def split(
        self, share: float, seed: int, max_rows: int | None = None, *, is_number: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return random training and held-out rows, `max_rows` together."""
        import numpy as np

        order = np.random.default_rng(seed).permutation(len(self.y))[:max_rows]
        n = round(share * len(order))
        learned, held = np.sort(order[n:]), np.sort(order[:n])
        if is_number:
            return learned, held
        classes = np.unique(self.y[learned]).tolist()
        if len(classes) < 2:
            which = f"all of class {classes[0]!r}" if classes else f"none of {len(order)}"
            raise DataError(
                f"The {len(learned)} training rows are {which}: give rows of two classes or more, or lower"
                " --held-out."
            )
        return learned, held

    def name_columns(self, model: CellClassifier) -> None:
        """Give a fitted model the name of the label, and one fitted to sparse rows the column names of the file."""
        import numpy as np

        model.target_name_ = (
            "" if not self.excluded or self.excluded[-1].lstrip("-").isdigit() else self.excluded[-1]
        )
        if self.names is not None and not hasattr(model, "feature_names_in_"):
            model.feature_names_in_ = np.array(self.names, dtype=object)

    def rows(self, which: NDArray[Any]) -> Any:
        """Return some rows: a frame with text for categories, if the columns have names."""
        import scipy.sparse as sp

        if self.names is None or sp.issparse(self.X):
            return self.X[which]
        import pyarrow as pa

        columns = {name: self.X[which, j] for j, name in enumerate(self.names)}
        for name, values in self.categories.items():
            texts = [None if value is None else str(value) for value in values]
            code = columns[name]
            columns[name] = pa.array(
                [None if at != at else texts[int(at)] for at in code.tolist()], type=pa.string()
            )
        return pa.table(columns)


def _compare(
    table: Table, learned: NDArray[Any], costs: dict[str, Any], seed: int,
    on_progress: Callable[[float, str], None],
) -> list[Candidate]:  # fmt: skip
    """Return the results of all methods, each row held out once."""
    import numpy as np

    from tamis.cells.evaluation import compare_classifiers

    rows = learned
    if len(rows) > _COMPARED:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _COMPARED, replace=False))
    entries = sorted(cells(), key=lambda entry: entry.key != "fixed-subset")  # the reference first
    models = {entry.key: entry.load()(**model_parameters(entry, seed=seed) | costs) for entry in entries}
    return compare_classifiers(models, lambda at: table.rows(rows[at]), table.y[rows], on_progress)
