"""The charts of streaming features: evidence against the threshold, wealth, and number of accepted features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.report.charts.axes import draw_stacked
from tamis.report.charts.chart import Axis, Chart, Line, Mark, Points, VerticalLines, axis, row_count_axis
from tamis.report.columns.numbers import Course, Floats, course_of, evidence_limits
from tamis.report.page.number_format import count, scientific

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["accepted_chart", "evidence_chart", "plot_columns", "wealth_chart"]

Stages = Sequence[tuple[int, str]]


def plot_columns(selector: Any, *, stages: Stages = ()) -> Figure:
    """Draw the trace of a feature selector: evidence against the threshold, wealth if it has any, accepted features.

    Parameters
    ----------
    selector : ColumnSelector
        Fitted with ``trace="all"``.
    stages : list of (int, str)
        The first candidate of each kind of feature, counted from 1, and the name of the kind.

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
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 50))
    >>> figure = plot_columns(AlphaInvesting(target_fdr=0.05).fit(X, X[:, 3] + X[:, 30]))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['P-value of each candidate', 'Wealth after each candidate', 'Features accepted']
    """
    course = course_of(selector)
    empty = Chart("", "No evidence", "", "", _offers_axis(course), Axis(0.0, 1.0, []), [], "wide")
    small = (wealth_chart(course, stages), accepted_chart(course, stages))
    charts = [evidence_chart(course, stages, 2000) or empty, *(chart for chart in small if chart is not None)]
    figure = draw_stacked(
        charts, [2.6 if chart.shape == "wide" else 1.6 for chart in charts], "candidates offered"
    )
    top = figure.axes[0]
    top.set_title(top.get_title(loc="left"), loc="left", pad=16)
    for first, kind in stages if len(stages) > 1 else ():
        top.annotate(
            kind, (first, 1.0), xycoords=("data", "axes fraction"), xytext=(3, 5), textcoords="offset points",
            fontsize=7, color="#59636e",
        )  # fmt: skip
    return figure


def _offers_axis(course: Course) -> Axis:
    return row_count_axis(float(course.offer[-1]) if len(course.offer) else 1.0)


def _borders(stages: Stages) -> VerticalLines:
    return VerticalLines(np.array([first - 0.5 for first, _ in stages[1:]]))


def wealth_chart(course: Course, stages: Stages) -> Chart | None:
    """Return the chart of the wealth after each candidate; None if the selector has none."""
    if not np.isfinite(course.wealth).any():
        return None
    line = Line(course.offer, course.standing(course.wealth))
    return _line_chart(course, "wea", "Wealth after each candidate", line, stages)


def accepted_chart(course: Course, stages: Stages) -> Chart:
    """Return the chart of the number of accepted features."""
    line = Line(course.offer, course.n_accepted(), style=3, is_stepped=True)
    return _line_chart(course, "acc", "Features accepted", line, stages)


def _line_chart(course: Course, key: str, title: str, line: Line, stages: Stages) -> Chart:
    values: Floats = line.y if len(line.y) else np.zeros(1)
    whole = (lambda at: f"{at:,.0f}" if at.is_integer() else "") if line.is_stepped else None
    highest = float(np.nanmax(values))
    y = axis(0.0, max(highest, 1e-12) * 1.06, 5, whole)
    said = f"{scientific(highest)} at most, {scientific(float(values[-1]))} at the end."
    return Chart(key, title, "by candidates offered", said, _offers_axis(course), y, [line, _borders(stages)])


def evidence_chart(course: Course, stages: Stages, most_points: int = 500) -> Chart | None:
    """Return the chart of the evidence for each candidate and its threshold; None without evidence."""
    scale = course.scale
    if not np.isfinite(course.evidence).any():
        return None
    low, high, is_cut = evidence_limits(course)
    n_refused = int(np.count_nonzero(~course.accepted & np.isfinite(course.evidence)))
    n_shown = n_refused if n_refused <= 2 * most_points else most_points
    best, entered = course.best_refused(n_shown), course.entered()
    of = "" if n_shown == n_refused else f", the best of every {count(n_refused / n_shown)}"
    marks: list[Mark] = [
        Points(course.offer[entered], course.evidence[entered], f"accepted ({count(len(entered))})"),
        Line(course.offer, course.standing(course.bar), f"the {scale.bar}", 2),
        Points(course.offer[best], course.evidence[best], f"rejected{of}", 6, is_small=True),
        _borders(stages),
    ]
    evidence = course.evidence[entered] if len(entered) else course.evidence
    highest = scale.written(float(np.nanmax(evidence)))
    up = "smaller values higher" if scale.sign < 0 else "larger values higher"
    edge = " Values beyond the axis are drawn at its edge." if is_cut else ""
    return Chart(
        "evi", f"{scale.evidence[0].upper()}{scale.evidence[1:]} of each candidate",
        f"and its {scale.bar}, {up}.{edge}",
        f"{count(len(entered))} accepted, best {scale.evidence} {highest}.",
        _offers_axis(course), axis(low, high, 6, scale.label), marks, "wide",
    )  # fmt: skip
