"""The report on a classifier that buys values: what it pays for what accuracy, holes, and the paths of single rows."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._check import as_rows
from tamis.report.acquisition.numbers import Curve, Gain, cost_curves, gain_over_fixed, missing_curve
from tamis.report.acquisition.plots import plot_costs, plot_missing, plot_paths
from tamis.report.figures import svg
from tamis.report.figures.figure import figure, limits
from tamis.report.page.document import document, write_page
from tamis.report.page.markup import name, plural, repeat_lines, table, text, tiles
from tamis.report.page.number_format import count, fraction, scientific

if TYPE_CHECKING:
    from tamis.cells import Acquisition, CellClassifier

__all__ = ["acquisition_page", "plot_costs", "plot_missing", "plot_paths", "write_report"]

_ROWS = 1000  # held-out rows whose paths are followed
_MOST_CLASSES = 6
_MOST_COLUMNS = 20
_FIRST = 5  # points of the other ways to spend that the figure has room for at least


def write_report(
    model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any, path: str | os.PathLike[str],
    title: str = "the rows held out", *, categories: dict[str, list[Any]] | None = None,
    on_progress: Callable[[float, str], None] | None = None, repeat: dict[str, str] | None = None,
) -> Path:  # fmt: skip
    """Write a report of what a classifier buys, and at what accuracy and cost, as one HTML file that opens offline.

    Parameters
    ----------
    model : CellClassifier
        Fitted to `X` and `y`. Copies of it are fitted at other prices, for the curve.
    X, y : rows and labels that it learned from
    X_held, y_held : rows and labels that it did not learn from
    path : str or path
        The file; one that exists is replaced in one step, or stays as it is if anything fails.
    title : str
        Heading of the page.
    categories : dict of str to list, optional
        Names of the values of columns that hold codes of text.
    on_progress : callable, optional
        Called with the share that is done, and the name of the next step.
    repeat : dict of str to str, optional
        Lines that repeat the result, by where they are typed.

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
        lambda: acquisition_page(
            model, X, y, X_held, y_held, title, categories=categories, on_progress=on_progress, repeat=repeat
        ),
    )


def acquisition_page(
    model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any, title: str = "the rows held out",
    *, categories: dict[str, list[Any]] | None = None,
    on_progress: Callable[[float, str], None] | None = None, repeat: dict[str, str] | None = None,
) -> str:  # fmt: skip
    """Return the report as HTML; parameters as for :func:`write_report`."""
    curves = cost_curves(model, X, y, X_held, y_held, on_progress)
    gain = gain_over_fixed(model, X, y, X_held, y_held)
    shown = _Shown(model, X_held, y_held, categories or {})
    parts = [
        ("costs", "Accuracy against cost", _gain(gain) + _costs(curves)),
        ("values", "Values bought", _bought(shown)),
        ("holes", "Missing values", _holes(model, X_held, y_held)),
        ("paths", "Single rows", _paths(shown)),
        ("repeat", "Repeat this run", repeat_lines({**(repeat or {}), "In Python": _in_python(model)})),
    ]
    heading = f"{type(model).__name__} on {title}"
    lead = (
        f"{plural(len(shown.y), 'row', 'rows')} that it did not learn from,"
        f" {plural(len(model.classes_), 'class', 'classes')}. A wrong decision costs 1 where nothing else was said."
    )
    return document(heading, lead, _tiles(shown, curves), parts)


def _in_python(model: CellClassifier) -> str:
    made = re.sub(r"\s+", " ", repr(model))
    return "\n".join(
        [
            f"from tamis import {type(model).__name__}",
            "from tamis.report.acquisition import write_report",
            "",
            "# X, y: the rows learned from and their labels; X_held, y_held: the rows held out",
            f"model = {made}.fit(X, y)",
            'write_report(model, X, y, X_held, y_held, "report.html")',
        ]
    )


@dataclass
class _Shown:
    """The model, what it did with the rows held out, and the names of their values."""

    model: CellClassifier
    X: Any
    y: Any
    categories: dict[str, list[Any]]

    def __post_init__(self) -> None:
        self.y = np.asarray(self.y)
        self.right = self.model.predict(self.X) == self.y
        self.bought, self.cost = self.model.n_features_used_.copy(), self.model.cost_.copy()
        rows = as_rows(self.X)[0][:_ROWS]
        self.traces: Any = self.model.acquire(rows)

    def value(self, feature: Any, value: float) -> str:
        """Return a value as text."""
        known = self.categories.get(str(feature))
        return scientific(value) if known is None else str(known[int(value)])


def _tiles(shown: _Shown, curves: list[Curve]) -> str:
    whole = curves[-1]
    return tiles((
        ("Accuracy", fraction(float(shown.right.mean())), ""),
        ("Values bought", f"{shown.bought.mean():.2f}", f"per row, of {count(shown.model.n_features_in_)} columns"),
        ("Paid", scientific(float(shown.cost.mean())), "per row"),
        ("Errors and prices", scientific(float(1 - shown.right.mean() + shown.cost.mean())), "per row"),
        ("Decided unasked", f"{np.mean(shown.bought == 0):.0%}", "of the rows"),
        ("All columns", fraction(float(whole.accuracy[0])), f"{whole.name}, for {scientific(float(whole.cost[0]))}"),
    ))  # fmt: skip


# -- accuracy against cost ---------------------------------------------------------------------------------


def _gain(gain: Gain) -> str:
    """Say whether asking each row for its own values has a point."""
    if gain.n_values == 0:
        return "<p><b>Nothing is bought:</b> no value is worth its price on these data.</p>"
    beside = (
        f"As many values, {gain.n_values:.2f} a row, but the same ones for every row, decide {fraction(gain.fixed)}"
        f" of the rows rightly. Asking each row for its own changes that by {fraction(gain.mean)}"
        f" (95 % interval {fraction(gain.low)} to {fraction(gain.high)})."
    )
    if gain.low > 0.0:
        return f"<p><b>Buying row by row pays:</b> {beside}</p>"
    verdict = "costs accuracy here" if gain.high < 0.0 else "has no proven point here"
    return f"<p><b>Buying row by row {verdict}:</b> {beside}</p>"


def _costs(curves: list[Curve]) -> str:
    lines = [curve for curve in curves if len(curve.cost) > 1]
    flat = [curve for curve in curves if len(curve.cost) == 1]
    most = max([1.6 * float(lines[0].cost.max()), *(float(c.cost[:_FIRST].max()) for c in lines[1:])])
    x = svg.axis(0.0, most, 6)
    y = svg.axis(*limits(*(curve.accuracy for curve in curves), within=(0.0, 1.0)))
    marks, legend = [], []
    for number, curve in enumerate([*lines, *flat], start=1):
        kind, price = f"s{min(number, 6)}", ""
        xs, ys = curve.cost[curve.cost <= most], curve.accuracy[curve.cost <= most]
        if curve in flat:  # one price, far to the right: a line at its height
            xs, ys = np.array([0.0, most]), np.repeat(curve.accuracy, 2)
            price = f' <span class="unit">for {scientific(float(curve.cost[0]))}</span>'
        else:
            marks += [svg.line(x, y, xs[[i]], ys[[i]], kind) for i in range(len(xs))]
        marks.append(svg.line(x, y, xs, ys, kind, text(curve.name)))
        legend.append((f"line {kind}", "M0 4h24", text(curve.name) + price))
    said = "; ".join(f"{c.name}: {c.accuracy.min():.3f} to {c.accuracy.max():.3f}" for c in curves)
    chart = svg.chart("cos", "Accuracy against cost", text(said, 900), x, y, marks[::-1])
    return (
        "<p>The model at a tenth to ten times its prices, beside a fixed subset, whose values are the same for every"
        " row, and gradient boosting on random values. Dashed lines have every column.</p>"
        + figure("<b>Accuracy</b> by mean price paid per row", legend, chart, "wide")
        + f"<details><summary>Numbers</summary>{_points(curves)}</details>"
    )


def _points(curves: list[Curve]) -> str:
    rows = [
        [text(c.name), scientific(float(p)), f"{n:.2f}", fraction(float(a))]
        for c in curves for p, n, a in zip(c.cost, c.bought, c.accuracy, strict=True)
    ]  # fmt: skip
    head = ["spent how", "price per row", "values", "accuracy"]
    return table("The points of the figure", head, rows, ["", "n", "n", "n"])


# -- what is bought ----------------------------------------------------------------------------------------


def _bought(shown: _Shown) -> str:
    n = np.bincount(shown.bought).astype(np.float64)
    x = svg.axis(-0.5, len(n) - 0.5, 8, lambda value: f"{value:g}" if float(value).is_integer() else "")
    y = svg.axis(0.0, float(n.max() / n.sum()) * 1.05, 4, lambda value: f"{value:.0%}")
    marks = [svg.bars(x, y, np.linspace(-0.5, len(n) - 0.5, len(n) + 1), n / float(n.sum()), "s1")]
    said = (
        f"Between {shown.bought.min()} and {shown.bought.max()} values, {shown.bought.mean():.2f} on average."
    )
    chart = svg.chart("num", "Values bought per row", text(said), x, y, marks)
    return figure("<b>Rows</b> by number of values bought", [], chart, "low") + _columns(shown)


def _columns(shown: _Shown) -> str:
    """Return a table of the columns that are bought most."""
    places: dict[Any, list[int]] = {}
    for trace in shown.traces:
        for place, feature in enumerate(trace.features, start=1):
            places.setdefault(feature, []).append(place)
    order = sorted(places, key=lambda feature: -len(places[feature]))[:_MOST_COLUMNS]
    prices = dict(
        zip(map(shown.model.name_of, range(len(shown.model.candidates_))), shown.model.prices_, strict=True)
    )
    rows = [
        [name(str(f)), f"{len(places[f]) / len(shown.traces):.0%}", f"{np.mean(places[f]):.1f}",
         scientific(float(prices[f]))]
        for f in order
    ]  # fmt: skip
    of = "" if len(shown.traces) == len(shown.y) else f", in the first {count(len(shown.traces))} rows"
    return table(
        f"Columns bought most{of}", ["column", "rows", "mean place", "price"], rows, ["", "n", "n", "n"]
    )


# -- missing values ----------------------------------------------------------------------------------------


def _holes(model: CellClassifier, X: Any, y: Any) -> str:
    shares, accuracy, bought = missing_curve(model, X, y)
    x = svg.axis(0.0, float(shares[-1]), 5, lambda value: f"{value:.0%}")
    figures = []
    for key, label, values, kind, within in (
        ("hac", "Accuracy", accuracy, "s1", (0.0, 1.0)), ("hnu", "Values bought per row", bought, "s2", (0.0, np.inf)),
    ):  # fmt: skip
        low, high = limits(values, within=within)
        y_axis = svg.axis(0.0 if key == "hnu" else low, high, 5)
        said = f"From {values[0]:.3f} with none missing to {values[-1]:.3f} with {shares[-1]:.0%} missing."
        chart = svg.chart(key, label, text(said), x, y_axis, [svg.line(x, y_axis, shares, values, kind)])
        figures.append(figure(f"<b>{label}</b> by share of values missing", [], chart, ""))
    return (
        "<p>Values of the rows held out are taken away at random; what is not to be had is passed over for free.</p>"
        f'<div class="pair">{"".join(figures)}</div>'
    )


# -- single rows -------------------------------------------------------------------------------------------


def _paths(shown: _Shown) -> str:
    chosen = _chosen(shown)
    return (
        "<p>What is believed of some rows after each value, from the shortest path to the longest.</p>"
        f'<div class="pair">{"".join(_path(shown, i, says) for i, says in chosen)}</div>'
    )


def _chosen(shown: _Shown) -> list[tuple[int, str]]:
    """Return short, usual and long paths, right and wrong."""
    n = np.array([len(trace.features) for trace in shown.traces])
    right = shown.right[: len(n)]
    found: dict[int, str] = {}
    for verdict, mine in (("right", np.flatnonzero(right)), ("wrong", np.flatnonzero(~right))):
        ranked = mine[np.argsort(n[mine], kind="stable")]
        for share in (0.05, 0.5, 0.99) if len(ranked) else ():
            found.setdefault(int(ranked[int(share * (len(ranked) - 1))]), verdict)
    return sorted(found.items(), key=lambda item: n[item[0]])


def _path(shown: _Shown, i: int, says: str) -> str:
    trace: Acquisition = shown.traces[i]
    classes, posteriors = shown.model.classes_, trace.posteriors
    likeliest = sorted(np.argsort(-posteriors.max(axis=0), kind="stable")[:_MOST_CLASSES])
    x = svg.axis(
        0.0, max(float(len(posteriors) - 1), 1.0), 8, lambda at: f"{at:g}" if float(at).is_integer() else ""
    )
    y, steps = svg.axis(0.0, 1.0, 5), np.arange(len(posteriors), dtype=np.float64)
    marks, legend = [], []
    for number, c in enumerate(likeliest, start=1):
        marks.append(svg.line(x, y, steps, posteriors[:, c], f"s{number}", text(classes[c])))
        marks += [svg.line(x, y, steps[[k]], posteriors[[k], c], f"s{number}") for k in range(len(steps))]
        legend.append((f"line s{number}", "M0 4h24", text(classes[c], 30)))
    said = f"Decision {trace.label} after {len(trace.features)} values; true class {shown.y[i]}."
    chart = svg.chart(f"p{i}", f"Row {i}", text(said), x, y, marks)
    caption = f"<b>Row {i}: {text(trace.label, 40)}</b>, {says}" + (
        "" if says == "right" else f", it is {text(shown.y[i], 40)}"
    )
    decided = int(np.flatnonzero(classes == trace.label)[0])
    rows = [
        [
            str(step),
            name(str(feature)),
            text(shown.value(feature, value), 30),
            f"{before[decided]:.3f} → {after[decided]:.3f}",
        ]
        for step, (feature, value, (before, after)) in enumerate(
            zip(trace.features, trace.values, itertools.pairwise(posteriors), strict=True), start=1
        )
    ]
    has_texts = any(str(feature) in shown.categories for feature in trace.features)
    listing = (
        table(
            f"Paid {scientific(trace.cost)}",
            ["", "column", "value", f"P({text(trace.label, 20)})"],
            rows,
            ["n", "", "" if has_texts else "n", "n"],
        )
        if rows
        else '<p class="note">Nothing is worth its price here: the decision of the class shares.</p>'
    )
    return f"<div>{figure(caption, legend, chart, 'low')}{listing}</div>"
