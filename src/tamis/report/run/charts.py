"""The charts of a run: panels of the page and of the figure of :meth:`PrequentialResult.plot`, over the rows seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.charts.axes import draw_stacked
from tamis.report.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    HeatStrip,
    Line,
    Mark,
    VerticalLines,
    axis,
    limits,
    row_count_axis,
    trend,
)
from tamis.report.charts.thinning import mean_per_bucket
from tamis.report.page.number_format import scientific, size
from tamis.report.page.text import plural, shorten
from tamis.report.run import numbers
from tamis.report.run.numbers import Numbers, SelectionMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BASELINES", "accuracy_chart", "auc_chart", "change_chart", "error_chart", "line_chart", "map_chart",
    "memory_chart", "plot", "quality_chart", "r2_chart", "score_chart", "stability_chart", "time_chart", "timings",
    "truth_chart", "window_name",
]  # fmt: skip

# Name in the frame of the steps, label, style, whether the line is thin.
BASELINES = (
    ("majority", "majority class", 6, True), ("no_change", "no-change baseline", 5, True),
    ("mean", "mean so far", 6, True), ("last", "no-change baseline", 5, True),
    ("frozen", "frozen selection", 7, True), ("random", "random subsets", 3, False),
    ("all", "every feature", 4, True),
)  # fmt: skip


def plot(result: PrequentialResult) -> Figure:
    """Draw accuracy, stability, the selection map and the leading scores of a run, one below the other.

    A run with a regressor begins with the mean absolute error, one with a rare class with the AUC.

    Parameters
    ----------
    result : PrequentialResult
        What :func:`tamis.prequential` returns.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot, so it need not be closed; ``figure.savefig(path)`` writes it, a notebook shows it.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra to install.

    Examples
    --------
    >>> from tamis import FIRES, load_dataset, prequential
    >>> result = prequential(load_dataset("electricity"), FIRES(n_features_to_select=4), max_rows=3000)
    >>> [axes.get_title(loc="left") for axes in plot(result).axes]
    ['Accuracy', 'Stability', 'Features selected', 'Score']
    """
    selection = numbers.selection_map(result)
    if "mae_windowed" in result.frames["steps"]:
        first = error_chart(result)
    else:
        first = auc_chart(result) if result.is_imbalanced else accuracy_chart(result)
    charts = [first, stability_chart(result), map_chart(result, selection), score_chart(result)]
    return draw_stacked(charts, [2.2, 1.6, max(1.0, 0.14 * len(selection.names)), 2.4], "rows seen")


def rows_axis(result: PrequentialResult, n_ticks: int = 5) -> Axis:
    """Return the horizontal axis that all charts share."""
    n_seen = result.frames["steps"]["n_seen"]
    return row_count_axis(float(n_seen[-1]) if len(n_seen) else 1.0, n_ticks)


def line_chart(
    result: PrequentialResult,
    key: str,
    title: str,
    lines: Sequence[Line],
    y: Axis,
    *,
    shape: str = "",
    band: Band | None = None,
) -> Chart:
    """Return a chart of lines over the rows seen, the first on top."""
    drifts = numbers.drift_rows(result)
    said = "; ".join(f"{shorten(line.name, 40)}: {trend(np.asarray(line.y, np.float64))}" for line in lines)
    caption = "by rows seen; dotted: true drifts" if len(drifts) else "by rows seen"
    marks: list[Mark] = [*lines, *([band] if band is not None else []), VerticalLines(drifts)]
    return Chart(key, title, caption, f"{said}. Horizontal: rows seen.", rows_axis(result), y, marks, shape)


def _step_line(
    result: PrequentialResult, column: str, name: str, style: int = 1, is_thin: bool = False
) -> Line:
    steps = result.frames["steps"]
    return Line(steps["n_seen"], steps[column], name, style, is_thin)


def window_name(result: PrequentialResult) -> str:
    """Return the label of the window of the windowed measures."""
    window = result.options.window
    return f"last {plural(window, 'row', 'rows')}" if isinstance(window, int) else "recent rows"


def _of_all(lines: Sequence[Line], within: tuple[float, float]) -> Axis:
    return axis(*limits(*(line.y for line in lines), within=within))


def _with_baselines(result: PrequentialResult, measure: str) -> list[Line]:
    """Return the lines of a measure and of its baselines."""
    lines = [
        _step_line(result, f"{measure}_windowed", window_name(result)),
        _step_line(result, f"{measure}_cumulative", "whole run", 2),
    ]
    for name, label, style, is_thin in BASELINES:
        if numbers.is_known(result, column := f"{name}_{measure}_windowed"):
            lines.append(_step_line(result, column, label, style, is_thin))
    return lines


def accuracy_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the accuracy and its baselines."""
    lines = _with_baselines(result, "accuracy")
    return line_chart(result, "acc", "Accuracy", lines, _of_all(lines, (0, 1)))


def auc_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the AUC and its baselines, the first chart for imbalanced classes."""
    lines = _with_baselines(result, "auc")
    return line_chart(result, "auc", "AUC", lines, _of_all(lines, (0, 1)))


def error_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the mean absolute error and its baselines."""
    lines = _with_baselines(result, "mae")
    return line_chart(result, "mae", "Mean absolute error", lines, _of_all(lines, (0, np.inf)))


def r2_chart(result: PrequentialResult) -> Chart:
    """Return the chart of R²."""
    lines = [
        _step_line(result, "r2_windowed", window_name(result)),
        _step_line(result, "r2_cumulative", "whole run", 2),
    ]
    return line_chart(result, "rsq", "R²", lines, _of_all(lines, (-1, 1)))


def quality_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the measures besides accuracy: balanced accuracy, kappa and ranking."""
    candidates = (
        ("auc", "AUC", 1, False), ("macro_auc", "macro AUC", 1, False),
        ("average_precision", "average precision", 2, False),
        ("recall_at_precision", "recall at precision 0.9", 5, False),
        ("balanced_accuracy", "balanced accuracy", 4, False), ("kappa", "kappa", 3, False),
        ("frozen_auc", "AUC of the frozen selection", 7, True), ("random_auc", "AUC of random subsets", 6, True),
    )  # fmt: skip
    always = ("balanced_accuracy", "kappa")
    lines = [
        _step_line(result, f"{name}_windowed", label, style, is_thin)
        for name, label, style, is_thin in candidates
        if name in always or numbers.is_known(result, f"{name}_windowed")
    ]
    title = "Ranking, balanced accuracy and kappa" if len(lines) > 2 else "Balanced accuracy and kappa"
    return line_chart(result, "kap", title, lines, _of_all(lines, (-1, 1)))


def stability_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the stability with its interval."""
    steps, line = result.frames["steps"], _step_line(result, "stability", "stability")
    low, high = steps["stability_low"], steps["stability_high"]
    y = axis(*limits(line.y, low, high, within=(-1, 1)))
    band = Band(steps["n_seen"], low, high, "95 % interval")
    return line_chart(result, "sta", "Stability", [line], y, shape="wide", band=band)


def truth_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the selection accuracy and its two parts."""
    lines = [
        _step_line(result, "selection_accuracy", "selection accuracy"),
        _step_line(result, "rsr", "relevant, selected (RSR)", 3),
        _step_line(result, "cucp", "irrelevant, unselected (CUCP)", 4),
    ]
    return line_chart(result, "tru", "Selection accuracy", lines, _of_all(lines, (0, 1)), shape="wide")


def score_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the scores of the leading features."""
    at, leaders = numbers.score_lines(result)
    lines = [
        Line(at, leader.scores, leader.name, style, note=scientific(leader.last))
        for style, leader in enumerate(leaders, start=1)
    ]
    y = axis(*limits(np.empty(0), *(line.y for line in lines)))
    return line_chart(result, "sco", "Score", lines, y, shape="wide")


def timings(result: PrequentialResult) -> list[tuple[str, Numbers, int]]:
    """Return a component of the processing time: its name, the seconds of each step, and its style."""
    steps = result.frames["steps"]
    parts = [
        ("selector", steps["seconds_select"], 1),
        ("prediction", steps["seconds_predict"], 2),
        ("learner", steps["seconds_learn"], 3),
    ]
    rest = steps["seconds_total"] - sum(seconds for _, seconds, _ in parts)
    return [*parts, ("the rest (reading, scoring)", np.maximum(rest, 0), 6)]


def time_chart(result: PrequentialResult) -> Chart:
    """Return the chart of the time per batch; each point is a mean, as single batches vary with the machine's load."""
    at = mean_per_bucket(result.frames["steps"]["n_seen"], 100)
    lines = [
        Line(at, 1e3 * mean_per_bucket(seconds, 100), name, style)
        for name, seconds, style in timings(result)[:3]
    ]
    y = axis(0, limits(*(line.y for line in lines))[1], unit="milliseconds")
    return line_chart(result, "tim", "Time per batch", lines, y)


def memory_chart(result: PrequentialResult) -> Chart | None:
    """Return the chart of the memory of the process; None if the system does not report it."""
    line = _step_line(result, "memory_bytes", "memory")
    if not np.max(line.y) > 0:
        return None
    y = axis(0, limits(line.y)[1], 5, size)
    return line_chart(result, "mem", "Memory of the process", [line], y)


def change_chart(result: PrequentialResult, at_most: int = 160) -> Chart:
    """Return the chart of the number of features that entered (up) and left (down)."""
    entered, left, edges = numbers.change_rates(result, at_most)
    top = numbers.most_changes(entered, left)
    n_cut, largest = int(np.sum((entered > top) | (left > top))), max(entered.max(), left.max())
    cut = f" Cut off: {n_cut} bar{'s' * (n_cut > 1)}, the longest {scientific(largest)}." if n_cut else ""
    said = f"Up to {scientific(entered.max())} features entered and {scientific(left.max())} left per batch."
    marks = [Bars(edges, entered, "entered", 1), Bars(edges, -left, "left", 2)]
    y = axis(-top, top, 5, lambda value: f"{abs(value):g}")
    caption = f"per batch, by rows seen.{cut}"
    return Chart(
        "cha", "Features that entered and left", caption, said, rows_axis(result), y, marks, "wide low"
    )


def map_chart(
    result: PrequentialResult, shown: SelectionMap, key: str = "map", title: str = "Features selected"
) -> Chart:
    """Return the chart of the selected features over time, a row of pixels for each, with the truth where known."""
    steps, drifts = result.frames["steps"], numbers.drift_rows(result)
    begin = float(steps["n_seen"][0] - steps["n_rows"][0]) if len(steps["step"]) else 0.0
    pixels, palette = numbers.map_pixels(shown)
    x = rows_axis(result, 4)  # the names leave it little room on a phone
    colours = {} if shown.relevant is None else numbers.MAP_COLOURS
    longest = np.argsort(-shown.kept, kind="stable")[:10]
    said = ", ".join(f"{shorten(shown.names[j], 40)} {shown.kept[j]:.0%}" for j in longest)
    marks: list[Mark] = [VerticalLines(drifts), HeatStrip(pixels, palette, begin, x.high, colours)]
    chart = Chart(key, title, "by rows seen", f"Selected longest: {said}.", x, None, marks)
    height = 26 if len(shown.names) <= 12 else 17
    return replace(
        chart, rows=shown.names, shares=[_percent(share) for share in shown.kept], row_height=height
    )


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"
