"""The figures of the report: lines, bars and the selection map over the rows seen, each with caption and legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.figures import svg
from tamis.report.figures.figure import course, figure, rows_label
from tamis.report.figures.png import png
from tamis.report.figures.thinning import thin, thin_band
from tamis.report.page.markup import name, shorten, text
from tamis.report.page.number_format import scientific
from tamis.report.run import numbers
from tamis.report.run.numbers import Column, Numbers, SelectionMap

__all__ = [
    "Series",
    "bare_map",
    "change_bars",
    "lines",
    "map_key",
    "map_of",
]


@dataclass(frozen=True)
class Series:
    """A line: its name, its values at each step, its style class, and a note for the legend."""

    name: str
    values: Numbers
    kind: str
    note: str = ""


def rows_axis(result: PrequentialResult, n_ticks: int = 5) -> svg.Axis:
    """Return the horizontal axis that all figures share."""
    last = float(result.frames["steps"]["n_seen"][-1])
    return svg.axis(0, last, n_ticks, rows_label(last))


def lines(
    result: PrequentialResult,
    key: str,
    title: str,
    series: Sequence[Series],
    y: svg.Axis,
    *,
    kind: str = "",
    band: tuple[Column, Column] | None = None,
    at: Numbers | None = None,
) -> str:
    """Return a figure of lines.

    Parameters
    ----------
    result : PrequentialResult
    key : str
        Unique on the page.
    title : str
        Plain text.
    series : list of Series
        The first lies on top.
    y : Axis
    kind : str
        Style class of the figure.
    band : (low, high), optional
        A band to fill behind the lines.
    at : ndarray, optional
        Rows seen at each value; by default those of the steps.
    """
    x = rows_axis(result)
    at = result.frames["steps"]["n_seen"] if at is None else at
    drifts = numbers.drift_rows(result)
    marks = [svg.uprights(x, drifts)]
    marks += [] if band is None else [svg.area(x, y, *thin_band(at, *band))]
    for one in reversed(series):
        marks.append(svg.line(x, y, *thin(at, one.values), one.kind, text(one.name, 60)))
    said = "; ".join(f"{shorten(one.name, 40)}: {course(one.values)}" for one in series)
    chart = svg.chart(key, text(title), text(f"{said}. Horizontal: rows seen.", 900), x, y, marks)
    unit = f' <span class="unit">({y.unit})</span>' if y.unit else ""
    legend = [(f"line {one.kind}", "M0 4h24", name(one.name) + one.note) for one in series]
    dotted = "; dotted: true drifts" if len(drifts) else ""
    caption = f"<b>{text(title)}</b>{unit} by rows seen{dotted}"
    return figure(caption, legend if len(series) > 1 else [], chart, kind)


def change_bars(result: PrequentialResult, at_most: int = 160) -> str:
    """Return a figure of how many features entered (up) and left (down)."""
    entered, left, edges = numbers.change_rates(result, at_most)
    top = numbers.most_changes(entered, left)
    x, y = rows_axis(result), svg.axis(-top, top, 5, lambda value: f"{abs(value):g}")
    marks = [svg.bars(x, y, edges, entered, "s1"), svg.bars(x, y, edges, -left, "s2")]
    n_cut, largest = int(np.sum((entered > top) | (left > top))), max(entered.max(), left.max())
    cut = f" Cut off: {n_cut} bar{'s' * (n_cut > 1)}, the longest {scientific(largest)}." if n_cut else ""
    said = f"Up to {scientific(entered.max())} features entered and {scientific(left.max())} left per batch."
    chart = svg.chart("cha", "Features that entered and left", text(said), x, y, marks)
    legend = [(f"bar {kind}", "M0 0h24v8h-24z", label) for kind, label in (("s1", "entered"), ("s2", "left"))]
    caption = f"<b>Features that entered and left</b> per batch, by rows seen.{cut}"
    return figure(caption, legend, chart, "wide low")


def map_of(result: PrequentialResult, shown: SelectionMap) -> str:
    """Return the figure of which features were kept when, a row of pixels each."""
    caption = "<b>Features kept</b> by rows seen"
    height = 26 if len(shown.names) <= 12 else 17
    content = map_key(shown) + bare_map("map", result, shown, height)
    return f"<figure><figcaption>{caption}</figcaption>{content}</figure>"


def bare_map(key: str, result: PrequentialResult, shown: SelectionMap, height: int, kind: str = "") -> str:
    """Return the map without caption and legend.

    Parameters
    ----------
    key : str
        Unique on the page.
    result : PrequentialResult
    shown : SelectionMap
    height : int
        Of a row, in pixels.
    kind : str
        Style class.
    """
    steps, n_shown = result.frames["steps"], len(shown.names)
    x = rows_axis(result, 4)  # the names leave it little room on a phone
    tested = float(steps["n_seen"][0] - steps["n_rows"][0]), float(steps["n_seen"][-1])
    pixels, palette = numbers.map_pixels(shown)
    longest = np.argsort(-shown.kept, kind="stable")[:10]
    said = "Kept longest: " + ", ".join(f"{shorten(shown.names[j], 40)} {shown.kept[j]:.0%}" for j in longest)
    drifts = numbers.drift_rows(result)
    marks = [svg.image(x, *tested, png(pixels, palette)), svg.separators(n_shown), svg.uprights(x, drifts)]
    chart = svg.chart(key, "Which features were kept when", text(f"{said}.", 900), x, None, marks)
    labels = "".join(f'<li title="{text(one)}">{name(one, 60)}</li>' for one in shown.names)
    kept = "".join(f"<li>{_percent(share)}</li>" for share in shown.kept)
    return (
        f'<div class="map {kind}" style="--row:{height}px;--rows:{n_shown}"><ol class="names">{labels}</ol>{chart}'
        f'<ol class="kept" aria-label="share of the run">{kept}</ol></div>'
    )


def map_key(shown: SelectionMap) -> str:
    """Return the legend of a map beside the truth; nothing where that is not known."""
    if shown.relevant is None:
        return ""
    items = "".join(
        f'<li><i class="key" style="background:rgb({r} {g} {b}/{alpha / 255:.2f})"></i>{label}</li>'
        for label, (r, g, b, alpha) in numbers.MAP_COLOURS.items()
    )
    return f'<ul class="legend">{items}</ul>'


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "&lt; 1 %"
    return "&gt; 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"
