"""The heat strips of a watch: relevance and reliance of each feature on one time axis, with its alerts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tamis.report.charts.axes import draw_stacked
from tamis.report.charts.chart import Chart, HeatStrip, Mark, Points, row_count_axis
from tamis.report.page.text import plural, shorten
from tamis.watch import Watch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["heat_chart", "plot_watch"]

_COLOURS = {"relevance": (47, 127, 193, 255), "reliance": (213, 94, 0, 255)}  # on white and on near-black
_LEVELS = 64
_MOST_FEATURES = 20


def plot_watch(watch: Watch) -> Figure:
    """Draw relevance and reliance of each feature over the rows, and the alerts.

    Parameters
    ----------
    watch : Watch

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed; ``figure.savefig(path)`` writes it, and a notebook shows it.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra that installs it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> watch = Watch(feature_names=["age", "income", "debt"])
    >>> for i in range(0, 2000, 100):
    ...     _ = watch.update(X[i : i + 100], X[i : i + 100, 0] > 0, y=X[i : i + 100, 1] > 0)
    >>> [text.get_text() for text in plot_watch(watch).axes[0].get_yticklabels()][::2]
    ['income', 'age', 'debt']
    """
    chart = heat_chart(watch)
    return draw_stacked([chart], [max(1.2, 0.22 * len(chart.rows))], "rows")


def heat_chart(watch: Watch) -> Chart:
    """Return the chart: two rows of pixels for each of the leading features, those with alerts first."""
    history, names = watch.history(), watch.feature_names_
    alerts = [alert for alert in watch.alerts_ if alert["feature"] in names]
    first = _leading(history["relevance"], history["reliance"], names, {alert["feature"] for alert in alerts})
    position = {names[j]: 2 * row for row, j in enumerate(first)}
    marked = [alert for alert in alerts if alert["feature"] in position]
    x = row_count_axis(float(watch.n_rows_), 4)
    marks: list[Mark] = [
        Points(
            np.array([alert["row"] for alert in marked], dtype=np.float64),
            np.array([position[alert["feature"]] + 0.5 for alert in marked]), "alert", 6,
        ),
    ]  # fmt: skip
    if len(history["row"]) and first:
        marks.append(_strip(history["relevance"][:, first], history["reliance"][:, first], x.high))
    last = {names[j]: [float(history[name][-1, j]) for name in _COLOURS] for j in first[:10]}
    said = "; ".join(f"{shorten(name, 40)} {a:.0%} and {b:.0%}" for name, (a, b) in last.items())
    chart = Chart(
        "hea", "Relevance and reliance", "by rows; a stronger colour is a larger share, points are alerts",
        f"{plural(len(alerts), 'alert', 'alerts')}. Shares of relevance and reliance at the end: {said}.",
        x, None, marks,
    )  # fmt: skip
    rows = [text for j in first for text in (names[j], "")]
    return replace(chart, rows=rows, row_height=13)


def _leading(
    relevance: NDArray[np.float32], reliance: NDArray[np.float32], names: list[str], alerted: set[str]
) -> list[int]:
    """Return the features to show: those with alerts, then by their largest share."""
    if not len(relevance):
        return []
    largest = np.maximum(relevance.max(axis=0), reliance.max(axis=0))
    order = sorted(range(len(names)), key=lambda j: (names[j] not in alerted, -largest[j]))
    return order[:_MOST_FEATURES]


def _strip(relevance: NDArray[np.float32], reliance: NDArray[np.float32], high: float) -> HeatStrip:
    shares = np.stack([relevance.T, reliance.T], axis=1)  # (j, 2, t)
    largest = np.maximum(shares.max(axis=(0, 2)), 1e-9)
    levels = np.rint((_LEVELS - 1) * shares / largest[None, :, None]).astype(np.uint8)
    levels[:, 1] += _LEVELS
    palette = np.tile(np.repeat(np.array([*_COLOURS.values()]), _LEVELS, axis=0), 1)
    palette[:, 3] = np.tile(np.rint(np.linspace(0, 255, _LEVELS)), 2)
    return HeatStrip(levels.reshape(-1, levels.shape[2]), palette.astype(np.uint8), 0.0, high, _COLOURS)
