"""The figure of a run, with matplotlib; only here, and only when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.figures.thinning import thin, thin_band
from tamis.report.run import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "STYLES", "plot", "short_label"]

# Seen on white and on near-black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#77818c")
STYLES = ("-", "-", "-", "--", "--", "--")
_NAME = 24


def plot(result: PrequentialResult) -> Figure:
    """Draw accuracy, stability, the selection map and the leading scores of a run, one below the other.

    Parameters
    ----------
    result : PrequentialResult
        What :func:`tamis.prequential` returns.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed; ``figure.savefig(path)`` writes it, and a notebook shows it.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message says which extra brings it.

    Examples
    --------
    >>> from tamis import FIRES, load_dataset, prequential
    >>> result = prequential(load_dataset("electricity"), FIRES(n_features_to_select=4), max_rows=3000)
    >>> [axes.get_title(loc="left") for axes in plot(result).axes]
    ['Accuracy', 'Stability', 'Features kept', 'Score']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("A plot needs matplotlib: pip install 'tamis[plots]'.") from None
    shown = numbers.selection_map(result)
    heights = [2.2, 1.6, max(1.0, 0.14 * len(shown.names)), 2.4]
    figure = Figure(figsize=(8, sum(heights) + 1.9), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True, height_ratios=heights)
    for draw, panel in zip((_accuracy, _stability, _map, _scores), axes, strict=True):
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        draw(panel, result)
        for at in numbers.drift_rows(result):
            panel.axvline(at, color="#59636e", linewidth=0.8, linestyle=":")
    axes[-1].set_xlabel("rows seen")
    axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def _line(axes: Axes, x: Any, y: Any, number: int, name: str, **style: Any) -> None:
    axes.plot(
        *thin(x, y),
        color=COLOURS[number],
        linestyle=STYLES[number],
        marker="o" if len(y) == 1 else None,
        label=name,
        **style,
    )


def _accuracy(axes: Axes, result: PrequentialResult) -> None:
    steps = result.frames["steps"]
    if "mae_windowed" in steps:
        _errors(axes, steps)
        return
    axes.set_title("Accuracy", loc="left")
    _line(axes, steps["n_seen"], steps["accuracy_cumulative"], 1, "whole run", linewidth=1.2)
    _line(axes, steps["n_seen"], steps["accuracy_windowed"], 0, "recent rows", linewidth=1.4)
    _line(axes, steps["n_seen"], steps["majority_accuracy_windowed"], 5, "majority class", linewidth=0.9)
    _line(axes, steps["n_seen"], steps["no_change_accuracy_windowed"], 4, "last label again", linewidth=0.9)
    for name, label, number in (("random", "random subsets", 2), ("all", "every feature", 3)):
        if np.isfinite(values := steps.get(f"{name}_accuracy_windowed", np.empty(0))).any():
            _line(axes, steps["n_seen"], values, number, label, linewidth=0.9)
    _legend(axes)


def _errors(axes: Axes, steps: dict[str, Any]) -> None:
    axes.set_title("Mean absolute error", loc="left")
    _line(axes, steps["n_seen"], steps["mae_cumulative"], 1, "whole run", linewidth=1.2)
    _line(axes, steps["n_seen"], steps["mae_windowed"], 0, "recent rows", linewidth=1.4)
    beside = {"mean": ("mean so far", 5), "last": ("last target again", 4), "random": ("random subsets", 2),
              "all": ("every feature", 3)}  # fmt: skip
    for name, (label, number) in beside.items():
        if np.isfinite(values := steps[f"{name}_mae_windowed"]).any():
            _line(axes, steps["n_seen"], values, number, label, linewidth=0.9)
    _legend(axes)


def _stability(axes: Axes, result: PrequentialResult) -> None:
    steps = result.frames["steps"]
    axes.set_title("Stability", loc="left")
    if len(steps["step"]):
        band = thin_band(steps["n_seen"], steps["stability_low"], steps["stability_high"])
        axes.fill_between(*band, color=COLOURS[0], alpha=0.18, linewidth=0, label="95 % interval")
    _line(axes, steps["n_seen"], steps["stability"], 0, "stability", linewidth=1.4)
    _legend(axes)


def _map(axes: Axes, result: PrequentialResult) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    axes.set_title("Features kept", loc="left")
    shown, steps = numbers.selection_map(result), result.frames["steps"]
    if not shown.names:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "nothing was selected", transform=axes.transAxes, ha="center", va="center")
        return
    begin, end = float(steps["n_seen"][0] - steps["n_rows"][0]), float(steps["n_seen"][-1])
    image: Any = shown.shares
    if shown.relevant is not None:
        pixels, palette = numbers.map_pixels(shown)
        image = palette[pixels]
        for label, (*rgb, opacity) in numbers.MAP_COLOURS.items():
            axes.bar(begin, 0, color=(*(part / 255 for part in rgb), opacity / 255), label=label)
        _legend(axes)
    axes.imshow(
        image,
        aspect="auto",
        interpolation="nearest",
        cmap=LinearSegmentedColormap.from_list("kept", ["#2f7fc100", "#2f7fc1ff"]),
        vmin=0,
        vmax=1,
        extent=(begin, end, len(shown.names) - 0.5, -0.5),
    )
    for row in range(1, len(shown.names)):
        axes.axhline(row - 0.5, color=axes.get_facecolor(), linewidth=1)
    axes.set_yticks(np.arange(len(shown.names)), [short_label(name) for name in shown.names], fontsize=7)
    axes.tick_params(axis="y", length=0)


def _scores(axes: Axes, result: PrequentialResult) -> None:
    axes.set_title("Score", loc="left")
    at, lines = numbers.score_lines(result)
    for number, line in enumerate(lines):
        _line(axes, at, line.scores, number, short_label(line.name), linewidth=1.4)
    _legend(axes)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8, borderaxespad=0)


def short_label(name: str) -> str:
    """Shorten a name, and keep matplotlib from reading mathematics or a hidden label into it."""
    shown = name if len(name) <= _NAME else f"{name[: _NAME - 9]}…{name[-8:]}"
    return shown.replace("$", r"\$").lstrip("_") or "?"
