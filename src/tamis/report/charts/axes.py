"""Charts drawn with matplotlib, which is imported only when a figure is asked for."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import import_extra
from tamis.report.charts import chart as charts
from tamis.report.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Visible on white and on near-black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#77818c", "#0072b2")
_DASHES = ("-", "-", "-", "--", "--", "--", ":")
_QUIET = "#59636e"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that is not registered with pyplot, so it need not be closed.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra that installs it.
    """
    figures = import_extra("matplotlib.figure", "A plot needs matplotlib", "plots")
    figure: Figure = figures.Figure(figsize=(width, height), layout="constrained")
    figure._repr_png_ = functools.partial(_as_png, figure)  # type: ignore[attr-defined]  # a notebook shows it
    return figure


def _as_png(figure: Figure) -> bytes:
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=96)
    return image.getvalue()


def plain_text(words: str, at_most: int = 24) -> str:
    """Return a short text in which matplotlib reads neither mathematics nor a hidden label."""
    return shorten(words, at_most).replace("$", r"\$").lstrip("_") or "?"


def draw_stacked(stacked: Sequence[charts.Chart]) -> Figure:
    """Draw charts one below the other; they share the horizontal axis if it is the same."""
    heights = [_height(chart) for chart in stacked]
    figure = new_figure(8, sum(heights) + 0.5 + 0.35 * len(stacked))
    is_shared = len({(chart.x.low, chart.x.high, chart.x.unit) for chart in stacked}) == 1
    panels = figure.subplots(len(stacked), 1, sharex=is_shared, height_ratios=heights, squeeze=False)[:, 0]
    for chart, axes in zip(stacked, panels, strict=True):
        draw(axes, chart)
        if chart is stacked[-1] or not is_shared:
            axes.set_xlabel(chart.x.unit)
    return figure


def _height(chart: charts.Chart) -> float:
    """Return the height in inches."""
    if chart.y is None:
        return max(1.0, (0.011 if chart.row_height else 0.2) * max(chart.row_height, 1) * len(chart.rows))
    return 2.4 if "wide" in chart.shape else 1.6 if "low" in chart.shape else 2.0


def draw(axes: Axes, chart: charts.Chart) -> None:
    """Draw a chart with its title, ticks and legend."""
    axes.set_title(plain_text(chart.title, 60), loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    for place, mark in enumerate(chart.marks):
        _draw_mark(axes, mark, chart, zorder=3.0 - place / (len(chart.marks) + 1))
    axes.set_xlim(chart.x.low, chart.x.high)
    axes.set_xticks(*zip(*chart.x.ticks, strict=True) if chart.x.ticks else ([],))
    y = chart.vertical
    axes.set_yticks(*zip(*y.ticks, strict=True) if y.ticks else ([],))
    axes.set_ylim(y.low, y.high)
    axes.set_ylabel(y.unit, fontsize=8)
    axes.grid(axis="y", color="#8a949e", alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    if chart.y is None:
        axes.set_yticks(
            np.arange(len(chart.rows)), [name and plain_text(name) for name in chart.rows], fontsize=7
        )
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False)
    if chart.legend or chart.key_colours:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8, borderaxespad=0)


def _draw_mark(axes: Axes, mark: charts.Mark, chart: charts.Chart, zorder: float) -> None:
    if isinstance(mark, charts.Line):
        _draw_line(axes, mark, chart, zorder)
    elif isinstance(mark, charts.Points):
        low, high = sorted((chart.vertical.low, chart.vertical.high))
        axes.scatter(
            mark.x, np.clip(mark.y, low, high), s=4 if mark.is_small else 14, color=_COLOURS[mark.style - 1],
            label=_label(mark), linewidths=0, clip_on=False, zorder=zorder,
        )  # fmt: skip
    elif isinstance(mark, charts.Band):
        band = charts.thin_band(mark.x, mark.low, mark.high)
        colour = _COLOURS[mark.style - 1]
        axes.fill_between(*band, color=colour, alpha=0.15, linewidth=0, label=_label(mark), zorder=zorder)
    elif isinstance(mark, charts.Bars):
        axes.stairs(mark.heights, mark.edges, fill=True, color=_COLOURS[mark.style - 1], label=_label(mark))
    elif isinstance(mark, charts.HeatStrip):
        _draw_strip(axes, mark, zorder)
    elif isinstance(mark, charts.VerticalLines):
        for at in mark.at:
            axes.axvline(at, color=_QUIET, linewidth=0.8, linestyle=":", zorder=zorder)
    else:
        rows = np.arange(len(mark.at))
        axes.vlines(mark.at, rows - 0.25, rows + 0.25, color=_QUIET, linestyle=":", label=mark.name)


def _draw_line(axes: Axes, mark: charts.Line, chart: charts.Chart, zorder: float) -> None:
    at, values = charts.thin(mark.x, mark.y)
    values = np.clip(values, chart.vertical.low, chart.vertical.high)  # as on a page
    axes.plot(
        at, values, color=_COLOURS[mark.style - 1], linestyle=_DASHES[mark.style - 1], zorder=zorder,
        linewidth=0.9 if mark.is_thin else 1.4, marker="o" if mark.has_points or len(at) == 1 else None, markersize=4,
        drawstyle="steps-post" if mark.is_stepped else "default", label=_label(mark), clip_on=False,
    )  # fmt: skip


def _draw_strip(axes: Axes, mark: charts.HeatStrip, zorder: float) -> None:
    n_rows, _ = mark.pixels.shape
    if not n_rows:
        axes.text(0.5, 0.5, "nothing was selected", transform=axes.transAxes, ha="center", va="center")
        return
    extent = (mark.low, mark.high, n_rows - 0.5, -0.5)
    image: Any = mark.palette[mark.pixels]
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=extent, zorder=zorder)
    for row in range(1, n_rows):
        axes.axhline(row - 0.5, color=axes.get_facecolor(), linewidth=1, zorder=zorder)
    for label, (*rgb, opacity) in mark.key.items():
        axes.bar(mark.low, 0, color=(*(part / 255 for part in rgb), opacity / 255), label=label)


def _label(mark: Any) -> str | None:
    return plain_text(f"{mark.name} {getattr(mark, 'note', '')}".strip(), 40) if mark.name else None


# -- bars --------------------------------------------------------------------------------------------------


_FORMATS = (".png", ".svg", ".pdf")
_BAR, _INFINITE = "#2f7fc1", "#d55e00"


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise if no picture can be written: matplotlib is missing, or the name has no known format.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra to install.
    ValueError
        If the name ends in none of the formats.

    Examples
    --------
    >>> check_picture("scores.gif")
    Traceback (most recent call last):
    ...
    ValueError: The picture 'scores.gif' has an unsupported format: end its name with .png, .svg or .pdf.
    """
    if Path(path).suffix.lower() not in _FORMATS:
        raise ValueError(
            f"The picture {os.fspath(path)!r} has an unsupported format: end its name with .png, .svg or .pdf."
        )
    new_figure(1, 1)


def plot_ranking(names: Sequence[str], scores: dict[str, charts.Floats], title: str = "") -> Figure:
    """Draw the scores of some features as bars, the first feature on top; one panel for each score.

    Parameters
    ----------
    names : sequence of str
    scores : dict of str to ndarray of shape (len(names),)
        What each score is called, and its values; an infinite one is drawn as long as the panel.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra to install.

    Examples
    --------
    >>> figure = plot_ranking(["heat", "light"], {"Gini index": np.array([0.3, 0.1])})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['heat', 'light']
    """
    figure = new_figure(4.2 + 2.6 * len(scores), 1.3 + 0.24 * len(names))
    panels = np.atleast_1d(figure.subplots(1, len(scores), sharey=True))
    for panel, (called, values) in zip(panels, scores.items(), strict=True):
        finite = np.isfinite(values)
        longest = float(values[finite].max(initial=0.0)) * 1.05 or 1.0
        panel.barh(
            np.arange(len(names)),
            np.where(finite, values, longest),
            color=np.where(finite, _BAR, _INFINITE),
            height=0.72,
        )
        for i in np.flatnonzero(~finite):
            panel.text(longest * 0.98, i, "∞", ha="right", va="center", color="white", fontsize=9)
        panel.set_xlim(0, longest)
        panel.set_title(called, loc="left", fontsize=10)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="x", labelsize=8)
        panel.tick_params(axis="y", length=0, labelsize=8)
        panel.grid(axis="x", color="#8a949e", alpha=0.4, linewidth=0.6)
        panel.set_axisbelow(True)
    panels[0].set_yticks(np.arange(len(names)), [plain_text(name, 32) for name in names])
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    if title:
        figure.suptitle(title.replace("$", r"\$"), x=0.01, ha="left", fontsize=10)
    return figure
