"""The figures of a comparison as inline SVG: curves with the true drifts, maps of what was kept beside the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.evaluate.experiment.score_table import ScoreTable
from tamis.report.comparison.numbers import Curve, StreamMaps
from tamis.report.figures import svg
from tamis.report.figures.figure import course, figure, limits, rows_label
from tamis.report.figures.thinning import thin
from tamis.report.page.markup import name, shorten, text
from tamis.report.page.number_format import scientific
from tamis.report.run.figures import bare_map, map_key
from tamis.report.run.numbers import Numbers

__all__ = ["curves_figure", "maps_figure"]


def scores_figure(key: str, scores: ScoreTable, baseline: Numbers) -> str:
    """Return a figure of the mean over seeds of each method on each stream: a line of dots per stream.

    Parameters
    ----------
    key : str
        Unique on the page.
    scores : ScoreTable
        Of more than six methods, those with the highest mean over the streams are drawn.
    baseline : ndarray of shape (n_streams,)
        What predicting the majority class has on each stream.
    """
    n = len(scores.streams)
    shown = _highest(scores.mean, 6)
    x = svg.axis(*limits(scores.mean[:, shown].ravel(), baseline, within=(0.0, 1.0)), 4)
    y = svg.Axis(0.0, float(n), [])
    middle = n - 0.5 - np.arange(n)
    marks = [svg.separators(n)]
    marks += [svg.tick(x, y, at, row) for at, row in zip(baseline, middle, strict=True) if np.isfinite(at)]
    for i, j in reversed(list(enumerate(shown, start=1))):
        values = np.column_stack([scores.mean[:, j], np.full(n, np.nan)]).ravel()  # gaps make dots of them
        marks.append(svg.line(x, y, values, np.repeat(middle, 2), f"s{i}", text(scores.methods[j], 60)))
    best = [_best_of(scores, i) for i in range(n)]
    said = "; ".join(
        f"{shorten(stream, 40)}: {one}" for stream, one in zip(scores.streams, best, strict=True)
    )
    chart = svg.chart(
        key, "Accuracy of each method", text(f"The best on each stream. {said}.", 900), x, None, marks
    )
    names = "".join(f'<li title="{text(one)}">{name(one, 60)}</li>' for one in scores.streams)
    legend = [(f"line s{i} dot", "M12 4h0", name(scores.methods[j])) for i, j in enumerate(shown, start=1)]
    legend.append(("upright", "M12 -3v14", "majority class"))
    content = (
        f'<div class="map dots" style="--row:34px;--rows:{n}"><ol class="names">{names}</ol>{chart}</div>'
    )
    return figure("<b>Accuracy</b> of each method, a line for each stream", legend, content, "bare")


def _highest(means: Numbers, at_most: int) -> list[int]:
    """Return the columns with the highest means over the rows, in their order."""
    known = np.isfinite(means)
    level = np.where(known, means, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    there = np.flatnonzero(known.any(axis=0))
    return sorted(there[np.argsort(-level[there], kind="stable")][:at_most].tolist())


def _best_of(scores: ScoreTable, i: int) -> str:
    found = np.flatnonzero(scores.best[i])
    return (
        f"{shorten(scores.methods[found[0]], 40)} {scientific(float(scores.mean[i, found[0]]))}"
        if len(found)
        else "none"
    )


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
