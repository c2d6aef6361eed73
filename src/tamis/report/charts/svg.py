"""Charts as inline SVG of any width: lines stretch with the page, text and strokes keep their size.

The marks live in a coordinate system of 1000 by 1000 that is stretched to the chart; ticks and grid lines are placed
in percent. Colours and fonts come from the page's style sheet, so both follow light and dark. Paths are computed here,
the markup is in ``charts/figure.html.j2``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tamis.report.charts import chart as charts

UNIT = 1000


@dataclass(frozen=True)
class Shape:
    """A path with its style classes, or an image if `source` is given; `note` is for the legend."""

    style: str
    path: str
    name: str = ""
    note: str = ""
    x: float = 0.0
    width: float = 0.0
    source: str = ""


def tick_positions(axis: charts.Axis) -> list[tuple[float, str]]:
    """Return the ticks in percent of the axis."""
    return [(round(100 * float(axis.fraction(at)), 3), label) for at, label in axis.ticks]


def sample(mark: charts.Mark) -> Shape:
    """Return how the legend shows a mark."""
    name = getattr(mark, "name", "")
    if isinstance(mark, charts.VerticalLines | charts.Reference):
        return Shape("upright", "M12 -3v14", name)
    if isinstance(mark, charts.Bars | charts.Band):
        style = f"bar s{mark.style}" if isinstance(mark, charts.Bars) else "band"
        return Shape(style, "M0 0h24v8h-24z", name)
    if isinstance(mark, charts.Points):
        return Shape(f"line {_points_style(mark)}", "M12 4h0", name)
    assert isinstance(mark, charts.Line)
    return Shape(f"line {_line_style(mark)}", "M0 4h24", name, note=mark.note)


def shapes(chart: charts.Chart) -> list[Shape]:
    """Return the elements to draw, from the bottom to the top."""
    items = [shape for mark in reversed(chart.marks) for shape in _shapes_of(mark, chart)]
    if len(chart.rows) > 1 and any(
        isinstance(mark, charts.HeatStrip | charts.Points) for mark in chart.marks
    ):
        path = "".join(f"M0 {UNIT * row / len(chart.rows):.5g}h{UNIT}" for row in range(1, len(chart.rows)))
        at = 1 if isinstance(chart.marks[-1], charts.HeatStrip) else 0
        items.insert(at, Shape("between", path))
    return [shape for shape in items if shape.path or shape.source]


def _shapes_of(mark: charts.Mark, chart: charts.Chart) -> list[Shape]:
    x, y = chart.x, chart.vertical
    if isinstance(mark, charts.Line):
        return _line(mark, x, y)
    if isinstance(mark, charts.Points):
        at, values = charts.thin(mark.x, mark.y, 1000)
        return [
            Shape(f"line {_points_style(mark)}", _dots(_place(x, at), _place(y, values, up=True)), mark.name)
        ]
    if isinstance(mark, charts.Band):
        at, low, high = charts.thin_band(mark.x, mark.low, mark.high)
        return [Shape("band", _area(_place(x, at), _place(y, low, up=True), _place(y, high, up=True)))]
    if isinstance(mark, charts.Bars):
        return [Shape(f"bar s{mark.style}", _bars(mark, x, y))]
    if isinstance(mark, charts.HeatStrip):
        left, right = _place(x, [mark.low, mark.high])
        return [Shape("", "", x=float(left), width=float(right - left), source=mark.source)]
    if isinstance(mark, charts.VerticalLines):
        return [Shape("upright", "".join(f"M{at:.4g} 0v{UNIT}" for at in _place(x, mark.at)))]
    rows = np.arange(len(mark.at))
    ends = zip(
        _place(x, mark.at), _place(y, rows - 0.25, up=True), _place(y, rows + 0.25, up=True), strict=True
    )
    return [Shape("upright", f"M{at:.4g} {top:.4g}V{end:.4g}") for at, top, end in ends if np.isfinite(at)]


def _line_style(mark: charts.Line) -> str:
    return f"s{mark.style} thin" if mark.is_thin else f"s{mark.style}"


def _points_style(mark: charts.Points) -> str:
    return f"s{mark.style} dot speck" if mark.is_small else f"s{mark.style} dot"


def _line(mark: charts.Line, x: charts.Axis, y: charts.Axis) -> list[Shape]:
    at, values = charts.thin(mark.x, mark.y)
    if mark.is_stepped:
        at, values = np.repeat(at, 2)[1:], np.repeat(values, 2)[:-1]
    px, py = _place(x, at), _place(y, values, up=True)
    parts, style = list(_unbroken(px, py)), f"line {_line_style(mark)}"
    line = "".join(_segment(*part) for part in parts if len(part[0]) > 1)
    lonely = "".join(_segment(*part) for part in parts if len(part[0]) == 1)
    dots = _dots(px, py) if mark.has_points else lonely
    return [
        shape
        for shape in (Shape(style, line, mark.name), Shape(f"{style} dot", dots, mark.name))
        if shape.path
    ]


def _place(axis: charts.Axis, values: object, *, up: bool = False) -> charts.Floats:
    position = axis.fraction(values)
    return UNIT * (1.0 - position if up else position)


def _area(xs: charts.Floats, low: charts.Floats, high: charts.Floats) -> str:
    return "".join(
        _segment(np.append(px, px[::-1]), np.append(bottom, top[::-1])) + "z"
        for px, bottom, top in _unbroken(xs, low, high)
    )


def _bars(mark: charts.Bars, x: charts.Axis, y: charts.Axis) -> str:
    left, zero, tops = _place(x, mark.edges), float(_place(y, 0.0, up=True)), _place(y, mark.heights, up=True)
    path = ""
    for start, stop, top in zip(left[:-1], left[1:], tops, strict=True):
        if top != zero:
            gap = min(1.0, (stop - start) / 5)
            path += f"M{start:.4g} {zero:.4g}V{top:.4g}H{stop - gap:.4g}V{zero:.4g}z"
    return path


def _dots(xs: charts.Floats, ys: charts.Floats) -> str:
    there = np.isfinite(xs) & np.isfinite(ys)
    return "".join(_segment(*point) for point in zip(xs[there, None], ys[there, None], strict=True))


def _unbroken(*columns: charts.Floats) -> Iterator[list[charts.Floats]]:
    """Yield the stretches of rows in which no column is NaN."""
    there = np.isfinite(sum(columns, np.zeros(len(columns[0]))))
    cuts = np.flatnonzero(np.diff(there)) + 1
    for rows in np.split(np.arange(len(there)), cuts):
        if len(rows) and there[rows[0]]:
            yield [column[rows] for column in columns]


def _segment(xs: charts.Floats, ys: charts.Floats) -> str:
    """Return a path in whole units, in relative steps (they are shorter)."""
    px, py = np.rint(xs).astype(int), np.rint(ys).astype(int)
    moves = zip(np.diff(px), np.diff(py), strict=True)
    return f"M{px[0]} {py[0]}" + ("".join(f"l{dx} {dy}" for dx, dy in moves) or "h0")  # h0: a dot
