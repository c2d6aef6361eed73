"""The report on a classifier that acquires values: accuracy against cost, missing values, and paths of single rows."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._validation import as_rows
from tamis.report.acquisition.charts import (
    acquired_chart,
    costs_chart,
    missing_charts,
    path_chart,
    prediction_chart,
)
from tamis.report.acquisition.numbers import Curve, cost_curves, gain_over_fixed, missing_curve
from tamis.report.page.cells import Cell, Names, Table
from tamis.report.page.document import Section, render_page, write_page
from tamis.report.page.number_format import count, fraction, scientific
from tamis.report.page.text import shorten

if TYPE_CHECKING:
    from tamis.cells import CellClassifier

__all__ = ["acquisition_page", "write_report"]

_ROWS = 1000  # held-out rows whose acquisitions are recorded
_MOST_COLUMNS = 20


def write_report(
    model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any, path: str | os.PathLike[str],
    title: str = "held-out rows", *,
    on_progress: Callable[[float, str], None] | None = None, repeat: dict[str, str] | None = None,
) -> Path:  # fmt: skip
    """Write a report of a classifier's acquisitions, accuracy or error and cost, as one HTML file that opens offline.

    Parameters
    ----------
    model : CellClassifier
        Fitted to `X` and `y`. Copies of it are fitted at other prices, for the curve.
    X, y : training rows and labels
    X_held, y_held : held-out rows and labels
    path : str or path
        The file. An existing one is replaced atomically, or left unchanged on failure.
    title : str
        Heading of the page.
    on_progress : callable, optional
        Called with the completed fraction and the name of the next step.
    repeat : dict of str to str, optional
        Lines that reproduce the result, by where they are run (shell, Python).

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 4)) + 2 * y[:, None]
    >>> model = IFC2F(random_state=0).fit(X[:300], y[:300])
    >>> path = write_report(model, X[:300], y[:300], X[300:], y[300:], tempfile.mkdtemp() + "/report.html")
    >>> "Accuracy against cost" in path.read_text(encoding="utf-8")
    True
    """
    return write_page(
        path,
        lambda: acquisition_page(model, X, y, X_held, y_held, title, on_progress=on_progress, repeat=repeat),
    )


def acquisition_page(
    model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any, title: str = "held-out rows",
    *,
    on_progress: Callable[[float, str], None] | None = None, repeat: dict[str, str] | None = None,
) -> str:  # fmt: skip
    """Return the report as HTML; parameters as for :func:`write_report`."""
    curves = cost_curves(model, X, y, X_held, y_held, on_progress)
    sample = _HeldOutRows(model, X_held, y_held)
    costs = {
        "gain": gain_over_fixed(model, X, y, X_held, y_held),
        "charts": [
            costs_chart(curves, measure) for measure in curves[0].measures if _is_known(curves, measure)
        ],
        "table": _points(curves),
        "is_number": model._is_regression,
    }
    measure = "error" if model._is_regression else "accuracy"
    missing = missing_charts(*missing_curve(model, X_held, y_held), measure)
    paths = [_path(sample, i, verdict) for i, verdict in _example_rows(sample)]
    sections = [
        Section("costs", f"{'Squared error' if model._is_regression else 'Accuracy'} against cost", costs),
        Section(
            "values", "Acquired values", {"chart": acquired_chart(sample.acquired), "table": _columns(sample)}
        ),
        Section("missing", "Missing values", missing),
        Section("paths", "Single rows", paths),
        Section("repeat", "Repeat this run", {**(repeat or {}), "In Python": _in_python(model)}),
    ]
    heading = f"{type(model).__name__} on {title}"
    top = {
        "n_rows": len(sample.y),
        "n_classes": 0 if model._is_regression else len(model.classes_),
        "error_cost": model._unit_loss,
        "tiles": _tiles(sample, curves),
    }
    return render_page("acquisition/page.html.j2", heading, top, sections)


def _in_python(model: CellClassifier) -> str:
    made = re.sub(r"\s+", " ", repr(model))
    return "\n".join(
        [
            f"from tamis import {type(model).__name__}",
            "from tamis.report.acquisition import write_report",
            "",
            "# X, y: training rows and labels; X_held, y_held: held-out rows and labels",
            f"model = {made}.fit(X, y)",
            'write_report(model, X, y, X_held, y_held, "report.html")',
        ]
    )


@dataclass
class _HeldOutRows:
    """The model and its results on the held-out rows.

    Attributes
    ----------
    right : ndarray of shape (n_rows,), bool
        Whether the decision is correct; for a numeric target, whether the target is within one standard deviation of
        the prediction.
    """

    model: CellClassifier
    X: Any
    y: Any

    def __post_init__(self) -> None:
        self.y = np.asarray(self.y)
        posterior = self.model.predict_proba(self.X)
        self.predicted = self.model._decide(posterior)
        self.right = self.predicted == self.y
        if (deviation := self.model._deviation(posterior)) is not None:
            self.right = np.abs(self.predicted - self.y) <= deviation
        self.acquired, self.cost = self.model.n_features_used_.copy(), self.model.cost_.copy()
        rows = self.X if self.model.categories_ else as_rows(self.X)[0]
        self.traces: Any = self.model.acquire(rows[:_ROWS])


def _value(value: Any) -> str:
    """Return a numeric or categorical value as text."""
    return scientific(value) if isinstance(value, float) else str(value)


def _tiles(sample: _HeldOutRows, curves: list[Curve]) -> list[tuple[str, str, str]]:
    whole, model = curves[-1], sample.model
    losses = model._losses(sample.y, sample.predicted)
    measure, text, unit = "accuracy", fraction(float(sample.right.mean())), ""
    if model._is_regression:
        measure, text, unit = "error", f"{losses.mean() / model._unit_loss:.3f}", "of the variance"
    of_all = fraction(float(whole.measures[measure].value[0]))
    return [
        ("Squared error" if model._is_regression else "Accuracy", text, unit),
        ("Acquired values", f"{sample.acquired.mean():.2f}", f"per row, of {count(model.n_features_in_)} features"),
        ("Paid", scientific(float(sample.cost.mean())), "per row"),
        ("Errors and prices", scientific(float((losses + sample.cost).mean())), "per row"),
        ("Decided without a value", f"{np.mean(sample.acquired == 0):.0%}", "of the rows"),
        ("All features", of_all, f"{whole.name}, for {scientific(float(whole.cost[0]))}"),
    ]  # fmt: skip


def _is_known(curves: list[Curve], measure: str) -> bool:
    return all(bool(np.isfinite(curve.measures[measure].value).all()) for curve in curves)


def _points(curves: list[Curve]) -> Table:
    rows = [
        [curve.name, scientific(float(curve.cost[i])), f"{curve.acquired[i]:.2f}", *_measures(curve, i)]
        for curve in curves
        for i in range(len(curve.cost))
    ]
    head = [("", "method"), ("n", "price per row"), ("n", "values")]
    names = {"accuracy": "accuracy", "auc": "AUC", "error": "squared error"}
    for measure in curves[0].measures:
        head += [("n", names[measure]), ("n", f"95 % interval of {names[measure]}")]
    return Table("Points of the chart", head, rows)


def _measures(curve: Curve, i: int) -> list[str]:
    """Return the measures at a point, each with its interval."""
    texts = []
    for own in curve.measures.values():
        low, high = own.band[:, i].tolist()
        texts += [fraction(float(own.value[i])), f"{fraction(low)} to {fraction(high)}"]
    return texts


def _columns(sample: _HeldOutRows) -> Table:
    """Return a table of the features that are acquired most often."""
    places: dict[Any, list[int]] = {}
    for trace in sample.traces:
        for place, feature in enumerate(trace.features, start=1):
            places.setdefault(feature, []).append(place)
    order = sorted(places, key=lambda feature: -len(places[feature]))[:_MOST_COLUMNS]
    names = map(sample.model.name_of, range(len(sample.model.candidates_)))
    prices = dict(zip(names, sample.model.prices_, strict=True))
    rows: list[list[Cell]] = [
        [
            Names([str(feature)]), f"{len(places[feature]) / len(sample.traces):.0%}",
            f"{np.mean(places[feature]):.1f}", scientific(float(prices[feature])),
        ]
        for feature in order
    ]  # fmt: skip
    of = "" if len(sample.traces) == len(sample.y) else f", in the first {count(len(sample.traces))} rows"
    head = [("", "feature"), ("n", "rows"), ("n", "mean position"), ("n", "price")]
    return Table(f"Features acquired most often{of}", head, rows)


def _example_rows(sample: _HeldOutRows) -> list[tuple[int, str]]:
    """Return examples of short, typical and long paths, of correct and of wrong decisions."""
    n = np.array([len(trace.features) for trace in sample.traces])
    right = sample.right[: len(n)]
    mapping: dict[int, str] = {}
    for verdict, mine in (("right", np.flatnonzero(right)), ("wrong", np.flatnonzero(~right))):
        ranked = mine[np.argsort(n[mine], kind="stable")]
        for share in (0.05, 0.5, 0.99) if len(ranked) else ():
            mapping.setdefault(int(ranked[int(share * (len(ranked) - 1))]), verdict)
    return sorted(mapping.items(), key=lambda item: n[item[0]])


def _path(sample: _HeldOutRows, i: int, verdict: str) -> dict[str, Any]:
    trace, classes = sample.traces[i], sample.model.classes_
    if sample.model._is_regression:
        return _path_of_number(sample, i, verdict)
    actual = "" if verdict == "right" else f", it is {shorten(sample.y[i], 40)}"
    chart = path_chart(trace, classes, f"p{i}", f"Row {i}: {shorten(trace.label, 40)}")
    said = f"Decision {trace.label} after {len(trace.features)} values; true class {sample.y[i]}."
    decided = int(np.flatnonzero(classes == trace.label)[0])
    moves = [
        f"{before[decided]:.3f} → {after[decided]:.3f}"
        for before, after in itertools.pairwise(trace.posteriors)
    ]
    table = _steps(sample, trace, moves, f"P({shorten(trace.label, 20)})")
    return {"chart": replace(chart, caption=f", {verdict}{actual}", description=said), "table": table}


def _path_of_number(sample: _HeldOutRows, i: int, verdict: str) -> dict[str, Any]:
    trace, true = sample.traces[i], float(sample.y[i])
    predicted, deviation = sample.model._decide(trace.posteriors), sample.model._deviation(trace.posteriors)
    assert deviation is not None
    title = f"Row {i}: {predicted[-1]:.4g} ± {deviation[-1]:.2g}"
    chart = prediction_chart(predicted, deviation, true, f"p{i}", title)
    within = "within" if verdict == "right" else "beyond"
    said = f"Prediction {predicted[-1]:.4g} after {len(trace.features)} values; true value {true:.4g}."
    moves = [
        f"{before:.4g} → {after:.4g} ± {own:.2g}"
        for (before, after), own in zip(itertools.pairwise(predicted), deviation[1:], strict=True)
    ]
    caption = f", {within} one standard deviation of {true:.4g}"
    return {
        "chart": replace(chart, caption=caption, description=said),
        "table": _steps(sample, trace, moves, "prediction"),
    }


def _steps(sample: _HeldOutRows, trace: Any, moves: list[str], heading: str) -> Table | None:
    """Return a table of the acquired values and the effect of each; None without values."""
    rows: list[list[Cell]] = [
        [str(step), Names([str(feature)]), shorten(_value(value), 30), move]
        for step, (feature, value, move) in enumerate(
            zip(trace.features, trace.values, moves, strict=True), start=1
        )
    ]
    has_texts = any(feature in sample.model.categories_ for feature in trace.features)
    head = [("n", ""), ("", "feature"), ("" if has_texts else "n", "value"), ("n", heading)]
    return Table(f"Paid {scientific(trace.cost)}", head, rows) if rows else None
