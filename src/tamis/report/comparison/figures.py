"""The figures of a comparison as inline SVG: curves with the true drifts, maps of what was kept beside the truth."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.report.comparison.numbers import Curve, StreamMaps
from tamis.report.figures import svg
from tamis.report.figures.figure import course, figure, limits, rows_label
from tamis.report.figures.thinning import thin
from tamis.report.page.markup import name, shorten, text
from tamis.report.page.number_format import scientific
from tamis.report.run.figures import bare_map, map_key
from tamis.report.run.numbers import Numbers

__all__ = ["curves_figure", "maps_figure"]


def curves_figure(
    key: str,
    title: str,
    curves: Sequence[Curve],
    drifts: Numbers,
    within: tuple[float, float] | None = None,
) -> str:
    """Return a figure of the mean over seeds of each method.

    Parameters
    ----------
    key : str
        Unique on the page.
    title : str
        Plain text.
    curves : sequence of Curve
        At most six.
    drifts : ndarray of shape (n_drifts,)
        Rows of the true drifts.
    within : (float, float), optional
        What the values cannot leave.
    """
    last = float(max(curve.at[-1] for curve in curves))
    x = svg.axis(0, last, 5, rows_label(last))
    y = svg.axis(*limits(*(curve.mean for curve in curves), within=within))
    marks = [svg.uprights(x, drifts)]
    for i, curve in reversed(list(enumerate(curves, start=1))):
        marks.append(svg.line(x, y, *thin(curve.at, curve.mean), f"s{i}", text(curve.method, 60)))
    said = "; ".join(f"{shorten(curve.method, 40)}: {course(curve.mean)}" for curve in curves)
    where = ", ".join(f"{at:,.0f}" for at in drifts)
    drifted = f" True drifts at {where}." if where else ""
    chart = svg.chart(key, text(title), text(f"{said}.{drifted} Horizontal: rows seen.", 900), x, y, marks)
    legend = [
        (f"line s{i}", "M0 4h24", f'{name(curve.method)} <span class="unit">{scientific(curve.level)}</span>')
        for i, curve in enumerate(curves, start=1)
    ]
    if where:
        legend.append(("upright", "M12 -3v14", "true drift"))
    return figure(f"<b>{text(title)}</b> by rows seen", legend, chart, "")


def maps_figure(key: str, maps: StreamMaps) -> str:
    """Return a map for each method, all of the same features."""
    first = next(iter(maps.maps.values()))
    height = 18 if len(first.names) <= 10 else 13
    figures = "".join(
        f"<figure><figcaption><b>{name(method)}</b></figcaption>"
        f"{bare_map(f'{key}-{i}', maps.runs[method], shown, height, 'small')}</figure>"
        for i, (method, shown) in enumerate(maps.maps.items())
    )
    return f'{map_key(first)}<div class="pair">{figures}</div>'
