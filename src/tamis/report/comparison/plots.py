"""The figure of a comparison, with matplotlib; only here, and only when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.evaluate import ExperimentResult
from tamis.report.comparison.numbers import drifts_of, mean_curves
from tamis.report.figures.thinning import thin, thin_band
from tamis.report.run.plots import COLOURS, STYLES, short_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_experiment"]


def plot_experiment(result: ExperimentResult, column: str = "accuracy_windowed") -> Figure:
    """Draw a column of the steps over time: mean and deviation over seeds, one panel per stream, with the true drifts.

    Parameters
    ----------
    result : ExperimentResult
        What :func:`tamis.run_experiment` returns.
    column : str, default="accuracy_windowed"
        One of :data:`tamis.evaluate.test_then_train.result.STEP_COLUMNS`.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed; ``figure.savefig(path)`` writes it.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message says which extra brings it.
    ValueError
        If there is no such column, or no cell has a value of it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("A plot needs matplotlib: pip install 'tamis[plots]'.") from None
    found = {stream: curves for stream, curves in mean_curves(result, column).items() if curves}
    if not found:
        raise ValueError(f"No finished cell has a value of {column!r}.")
    figure = Figure(figsize=(8, 0.5 + 2.4 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 1, squeeze=False)[:, 0]
    for panel, (stream, curves) in zip(axes, found.items(), strict=True):
        panel.set_title(short_label(stream), loc="left")
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        for at in drifts_of(result, stream):
            panel.axvline(at, color="#59636e", linestyle=":", linewidth=1)
        for number, curve in enumerate(curves):
            style = {"color": COLOURS[number], "linewidth": 0}
            if np.isfinite(curve.low).any():
                panel.fill_between(*thin_band(curve.at, curve.low, curve.high), alpha=0.12, **style)
            panel.plot(
                *thin(curve.at, curve.mean),
                color=COLOURS[number],
                linestyle=STYLES[number],
                linewidth=1.4,
                label=short_label(curve.method),
            )
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8, borderaxespad=0)
    axes[-1].set_xlabel("rows seen")
    figure.supylabel(column.replace("_", " "), fontsize=9)
    return figure
