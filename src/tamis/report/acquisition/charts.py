"""The charts of acquired values: accuracy or squared error against cost, missing values, paths of single rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.report.acquisition.numbers import Curve, Floats
from tamis.report.charts.axes import draw, new_figure, plain_text
from tamis.report.charts.chart import Band, Bars, Chart, Line, axis, limits
from tamis.report.page.number_format import scientific
from tamis.report.page.text import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tamis.cells import Acquisition

__all__ = [
    "acquired_chart", "costs_chart", "missing_charts", "path_chart", "plot_costs", "plot_missing", "plot_paths",
    "prediction_chart",
]  # fmt: skip

_MOST_CLASSES = 6
# Key, title and range of the chart of each measure.
_MEASURES = {
    "accuracy": ("cos", "Accuracy", (0.0, 1.0)),
    "auc": ("cau", "AUC", (0.0, 1.0)),
    "error": ("cse", "Squared error as a share of the variance", (0.0, np.inf)),
}
_FIRST = 5  # points of each other method that the chart always shows


def plot_paths(
    traces: Sequence[Acquisition],
    classes: Sequence[Any] | NDArray[Any],
    titles: Sequence[str] | None = None,
    *,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw the posterior of each class after each acquired value, one panel for each row.

    Parameters
    ----------
    traces : list of Acquisition
        What :meth:`CellClassifier.acquire` returns.
    classes : sequence of n_classes labels
    titles : list of str, optional
        By default the decision and its cost.
    names : list of str, optional
        Names of the features, if the model was fitted without names.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot, so it need not be closed.

    Examples
    --------
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + 2 * y[:, None]
    >>> model = IFC2F(random_state=0).fit(X, y)
    >>> figure = plot_paths(model.acquire(X[:2]), model.classes_)
    >>> len(figure.axes)
    2
    """
    across = min(len(traces), 2)
    down = -(-len(traces) // max(across, 1))
    figure = new_figure(6.2 * across, 3.1 * down)
    for i, trace in enumerate(traces):
        axes = figure.add_subplot(down, across, i + 1)
        paid = f"{trace.label}, paid {scientific(trace.cost)}"
        draw(axes, path_chart(trace, classes, "", paid if titles is None else f"{titles[i]}: {paid}"))
        values = [
            f"{shorten(f if names is None else names[int(f)], 18)} = "
            + (scientific(value) if isinstance(value, float) else shorten(value, 18))
            for f, value in zip(trace.features, trace.values, strict=True)
        ]
        labels = [plain_text(label, 40) for label in ("at first", *values)]
        axes.set_xticks(np.arange(len(labels)), labels, rotation=35, ha="right", fontsize=7)
    return figure


def plot_costs(curves: Sequence[Curve], measure: str = "accuracy") -> Figure:
    """Draw accuracy, AUC or squared error against the mean cost per row, the model with its 95 % confidence interval.

    A model that needs every feature is a horizontal line.

    Parameters
    ----------
    curves : list of Curve
        What :func:`tamis.report.acquisition.numbers.cost_curves` returns.
    measure : {"accuracy", "auc", "error"}, default="accuracy"
        "error" for numeric targets, the others for classes.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(8, 3.8)
    axes = figure.add_subplot()
    draw(axes, costs_chart(curves, measure))
    axes.set_xlabel("mean price paid per row")
    return figure


def plot_missing(shares: Floats, measured: Floats, acquired: Floats, measure: str = "accuracy") -> Figure:
    """Draw accuracy or squared error, and the number of acquired values, against the share of missing values.

    Parameters
    ----------
    shares, measured, acquired : ndarray of shape (n_points,)
        What :func:`tamis.report.acquisition.numbers.missing_curve` returns.
    measure : {"accuracy", "error"}, default="accuracy"

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(7.6, 3.2)
    for place, chart in enumerate(missing_charts(shares, measured, acquired, measure), start=1):
        axes = figure.add_subplot(1, 2, place)
        draw(axes, chart)
        axes.set_xlabel("share of values missing")
    return figure


def costs_chart(curves: Sequence[Curve], measure: str = "accuracy") -> Chart:
    """Return the chart of a measure against cost; a method with a single, large cost is a horizontal line.

    The band is the 95 % confidence interval of the first curve, the model.
    """
    several = [curve for curve in curves if len(curve.cost) > 1]
    most = max([1.6 * float(several[0].cost.max()), *(float(c.cost[:_FIRST].max()) for c in several[1:])])
    heights = [curve.measures[measure].value for curve in curves]
    band, near = several[0].measures[measure].band, several[0].cost <= most
    marks: list[Any] = [Band(several[0].cost[near], band[0, near], band[1, near], "95 % interval")]
    for style, curve in enumerate([*several, *(c for c in curves if len(c.cost) == 1)], start=1):
        height = curve.measures[measure].value
        if len(curve.cost) == 1:
            ends, price = np.array([0.0, most]), f"for {scientific(float(curve.cost[0]))}"
            marks.append(Line(ends, np.repeat(height, 2), curve.name, min(style, 6), note=price))
        else:
            near = curve.cost <= most
            marks.append(Line(curve.cost[near], height[near], curve.name, min(style, 6), has_points=True))
    said = "; ".join(
        f"{c.name}: {own.min():.3f} to {own.max():.3f}" for c, own in zip(curves, heights, strict=True)
    )
    key, title, within = _MEASURES[measure]
    y = axis(*limits(*heights, *band, within=within))
    return Chart(key, title, "by mean price paid per row", said, axis(0.0, most, 6), y, marks, "wide")


def acquired_chart(acquired: NDArray[Any]) -> Chart:
    """Return the chart of the share of rows by number of acquired values."""
    share = np.bincount(acquired).astype(np.float64) / len(acquired)
    x = axis(-0.5, len(share) - 0.5, 8, _whole)
    y = axis(0.0, float(share.max()) * 1.05, 4, lambda value: f"{value:.0%}")
    bars = Bars(np.linspace(-0.5, len(share) - 0.5, len(share) + 1), share)
    said = f"Between {acquired.min()} and {acquired.max()} values, {acquired.mean():.2f} on average."
    return Chart("num", "Rows", "by number of acquired values", said, x, y, [bars], "low")


def missing_charts(
    shares: Floats, measured: Floats, acquired: Floats, measure: str = "accuracy"
) -> list[Chart]:
    """Return the charts of a measure and of the number of acquired values by share of values missing."""
    x, charts = axis(0.0, float(shares[-1]), 5, lambda value: f"{value:.0%}"), []
    _, name, within = _MEASURES[measure]
    most = limits(acquired, within=(0.0, np.inf))[1]
    for key, title, values, style, y in (
        ("hac", name, measured, 1, axis(*limits(measured, within=within), 5)),
        ("hnu", "Acquired values per row", acquired, 2, axis(0.0, most, 5)),
    ):
        said = f"From {values[0]:.3f} with none missing to {values[-1]:.3f} with {shares[-1]:.0%} missing."
        line = Line(shares, values, style=style)
        charts.append(Chart(key, title, "by share of values missing", said, x, y, [line]))
    return charts


def path_chart(trace: Acquisition, classes: Sequence[Any] | NDArray[Any], key: str, title: str) -> Chart:
    """Return the chart of the posterior of the likeliest classes after each value."""
    posteriors = trace.posteriors
    likeliest = sorted(np.argsort(-posteriors.max(axis=0), kind="stable")[:_MOST_CLASSES])
    steps = np.arange(len(posteriors), dtype=np.float64)
    lines = [
        Line(steps, posteriors[:, c], str(classes[c]), style, has_points=True)
        for style, c in enumerate(likeliest, start=1)
    ]
    x = axis(0.0, max(float(len(posteriors) - 1), 1.0), 8, _whole)
    return Chart(key, title, "", "", x, axis(0.0, 1.0, 5), lines, "low")


def prediction_chart(predicted: Floats, deviation: Floats, true: float, key: str, title: str) -> Chart:
    """Return the chart of a predicted number after each value, with one standard deviation to each side."""
    steps = np.arange(len(predicted), dtype=np.float64)
    low, high = predicted - deviation, predicted + deviation
    marks: list[Any] = [
        Band(steps, low, high, "one standard deviation"),
        Line(steps, predicted, "prediction", 1, has_points=True),
        Line(steps, np.full(len(steps), true), "true value", 2),
    ]
    x = axis(0.0, max(float(len(predicted) - 1), 1.0), 8, _whole)
    return Chart(key, title, "", "", x, axis(*limits(low, high, np.array([true])), 5), marks, "low")


def _whole(value: float) -> str:
    return f"{value:g}" if float(value).is_integer() else ""
