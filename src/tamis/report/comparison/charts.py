"""The charts of a comparison: curves with the true drifts, maps of the selection and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tamis.evaluate import ExperimentResult
from tamis.evaluate.experiment.score_table import ScoreTable
from tamis.report.charts.axes import draw_stacked
from tamis.report.charts.chart import (
    Band,
    Chart,
    Line,
    Mark,
    Points,
    Reference,
    VerticalLines,
    axis,
    limits,
    row_count_axis,
    trend,
)
from tamis.report.comparison.numbers import Curve, StreamMaps, drifts_of, mean_curves
from tamis.report.page.number_format import scientific
from tamis.report.page.text import shorten
from tamis.report.run.charts import map_chart
from tamis.report.run.numbers import Numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curves_chart", "map_charts", "plot_experiment", "scores_chart"]


def plot_experiment(result: ExperimentResult, column: str = "accuracy_windowed") -> Figure:
    """Draw a column of the steps over time: mean and deviation over seeds, one panel per stream, with the true drifts.

    Parameters
    ----------
    result : ExperimentResult
        What :func:`tamis.run_experiment` returns.
    column : str, default="accuracy_windowed"
        One of :data:`tamis.evaluate.prequential.result.STEP_COLUMNS`.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed; ``figure.savefig(path)`` writes it.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra to install.
    ValueError
        If the column does not exist, or no cell has a value for it.
    """
    mapping = {stream: curves for stream, curves in mean_curves(result, column).items() if curves}
    if not mapping:
        raise ValueError(f"No finished cell has a value of {column!r}.")
    charts = [
        curves_chart("", stream, curves, drifts_of(result, stream), has_bands=True)
        for stream, curves in mapping.items()
    ]
    figure = draw_stacked(charts, [2.1] * len(charts), "rows seen", share_x=False)
    figure.supylabel(column.replace("_", " "), fontsize=9)
    return figure


def curves_chart(
    key: str,
    title: str,
    curves: Sequence[Curve],
    drifts: Numbers,
    within: tuple[float, float] | None = None,
    *,
    has_bands: bool = False,
) -> Chart:
    """Return a chart of the mean over seeds of each method.

    Parameters
    ----------
    key : str
        Unique on the page.
    title : str
    curves : sequence of Curve
        At most six.
    drifts : ndarray of shape (n_drifts,)
        Rows of the true drifts.
    within : (float, float), optional
        The range of the measure.
    has_bands : bool
        Whether the deviation over seeds is drawn.
    """
    lines: list[Mark] = [
        Line(curve.at, curve.mean, curve.method, style, note="" if has_bands else scientific(curve.level))
        for style, curve in enumerate(curves, start=1)
    ]
    values, bands = [curve.mean for curve in curves], list[Mark]()
    for style, curve in enumerate(curves if has_bands else (), start=1):
        if np.isfinite(curve.low).any():
            bands.append(Band(curve.at, curve.low, curve.high, style=style))
            values += [curve.low, curve.high]
    said = "; ".join(f"{shorten(curve.method, 40)}: {trend(curve.mean)}" for curve in curves)
    where = ", ".join(f"{at:,.0f}" for at in drifts)
    drifted = f" True drifts at {where}." if where else ""
    return Chart(
        key, title, "by rows seen", f"{said}.{drifted} Horizontal: rows seen.",
        row_count_axis(float(max(curve.at[-1] for curve in curves))), axis(*limits(*values, within=within)),
        [*lines, *bands, VerticalLines(drifts, "true drift" if where else "")],
    )  # fmt: skip


def scores_chart(key: str, scores: ScoreTable, baseline: Numbers) -> Chart:
    """Return a chart of the mean over seeds of each method on each stream: a row of points per stream.

    Parameters
    ----------
    key : str
        Unique on the page.
    scores : ScoreTable
        Of more than six methods, those with the highest mean over the streams are drawn.
    baseline : ndarray of shape (n_streams,)
        Accuracy of the majority class on each stream, or average precision of a random ranking.
    """
    rows, methods = np.arange(len(scores.streams)), _highest(scores.mean, 6)
    x = axis(*limits(scores.mean[:, methods].ravel(), baseline, within=(0.0, 1.0)), 4)
    points = [
        Points(scores.mean[:, j], rows, scores.methods[j], style) for style, j in enumerate(methods, start=1)
    ]
    best = "; ".join(
        f"{shorten(stream, 40)}: {_best_of(scores, i)}" for i, stream in enumerate(scores.streams)
    )
    is_accuracy = scores.metric == "accuracy"
    title = "Accuracy" if is_accuracy else "Average precision"
    label = "majority class" if is_accuracy else "random ranking"
    chart = Chart(
        key, title, "of each method, a line for each stream", f"The best on each stream. {best}.", x, None,
        [*points, Reference(baseline, label)], "dots",
    )  # fmt: skip
    return replace(chart, rows=scores.streams, row_height=34)


def _highest(means: Numbers, at_most: int) -> list[int]:
    """Return the columns with the highest means over the rows, in their order."""
    known = np.isfinite(means)
    level = np.where(known, means, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    there = np.flatnonzero(known.any(axis=0))
    return sorted(there[np.argsort(-level[there], kind="stable")][:at_most].tolist())


def _best_of(scores: ScoreTable, i: int) -> str:
    best = np.flatnonzero(scores.best[i])
    if not len(best):
        return "none"
    return f"{shorten(scores.methods[best[0]], 40)} {scientific(float(scores.mean[i, best[0]]))}"


def map_charts(key: str, maps: StreamMaps) -> list[Chart]:
    """Return a map for each method, all of the same features."""
    height = 18 if len(next(iter(maps.maps.values())).names) <= 10 else 13
    return [
        replace(
            map_chart(maps.runs[method], selection, f"{key}-{i}", method),
            caption="",
            row_height=height,
            shape="small",
        )
        for i, (method, selection) in enumerate(maps.maps.items())
    ]
