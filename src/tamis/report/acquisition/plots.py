"""Figures of bought values with matplotlib: paths of single rows, accuracy against cost, holes in the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.report.acquisition.numbers import Curve
from tamis.report.page.markup import shorten
from tamis.report.page.number_format import scientific

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tamis.cells import Acquisition

__all__ = ["plot_costs", "plot_missing", "plot_paths"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#77818c")
_MOST_CLASSES = 6


def plot_paths(
    traces: Sequence[Acquisition],
    classes: Sequence[Any] | NDArray[Any],
    titles: Sequence[str] | None = None,
    *,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw the posterior of each class against the values bought, one panel for each row.

    Parameters
    ----------
    traces : list of Acquisition
        What :meth:`CellClassifier.acquire` returns.
    classes : sequence of n_classes labels
    titles : list of str, optional
        By default the decision and what it cost.
    names : list of str, optional
        Names of the columns, where the model knows only their numbers.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed.

    Examples
    --------
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + 2 * y[:, None]
    >>> model = IFC2F(random_state=0).fit(X, y)
    >>> figure = plot_paths(model.acquire(X[:2]), model.classes_)
    >>> len(figure.axes)
    2
    """
    figure = _figure()
    across = min(len(traces), 2)
    down = -(-len(traces) // max(across, 1))
    figure.set_size_inches(5.2 * across, 3.1 * down)
    for i, trace in enumerate(traces):
        axes = figure.add_subplot(down, across, i + 1)
        _path(axes, trace, list(classes), names)
        said = f"{trace.label}, paid {scientific(trace.cost)}"
        axes.set_title(_plain(said if titles is None else f"{titles[i]}: {said}"), loc="left", fontsize=9)
    return figure


def _path(axes: Axes, trace: Acquisition, classes: list[Any], names: Sequence[str] | None) -> None:
    likeliest = np.argsort(-trace.posteriors.max(axis=0), kind="stable")[:_MOST_CLASSES]
    steps = np.arange(len(trace.posteriors))
    for number, c in enumerate(sorted(likeliest)):
        axes.plot(
            steps, trace.posteriors[:, c], marker="o", markersize=3.5, linewidth=1.4, color=_COLOURS[number],
            label=_plain(shorten(str(classes[c]), 20)),
        )  # fmt: skip
    shown = [
        shorten(str(f if names is None else names[int(f)]), 18) + f" = {scientific(v)}"
        for f, v in zip(trace.features, trace.values, strict=True)
    ]
    axes.set_xticks(steps, [_plain(one) for one in ["at first", *shown]], rotation=35, ha="right", fontsize=7)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.3, max(len(steps) - 0.7, 0.7))
    _calm(axes)
    axes.legend(fontsize=7, frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.5))


def plot_costs(curves: Sequence[Curve]) -> Figure:
    """Draw accuracy against the mean price paid per row; a model that needs every column is a dashed line.

    Parameters
    ----------
    curves : list of Curve
        What :func:`tamis.report.acquisition.numbers.cost_curves` returns.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = _figure()
    figure.set_size_inches(6.4, 3.8)
    axes = figure.add_subplot()
    for number, curve in enumerate(curves):
        colour = _COLOURS[number % len(_COLOURS)]
        if len(curve.cost) == 1:
            label = f"{curve.name}, {scientific(curve.cost[0])}"
            axes.axhline(curve.accuracy[0], color=colour, linestyle="--", linewidth=1.1, label=_plain(label))
        else:
            axes.plot(
                curve.cost, curve.accuracy, marker="o", markersize=4, color=colour, label=_plain(curve.name)
            )
    axes.set_xlabel("mean price paid per row")
    axes.set_ylabel("accuracy")
    _calm(axes)
    axes.legend(fontsize=8, frameon=False)
    return figure


def plot_missing(
    shares: NDArray[np.float64], accuracy: NDArray[np.float64], bought: NDArray[np.float64]
) -> Figure:
    """Draw accuracy and values bought against the share of values that are missing.

    Parameters
    ----------
    shares, accuracy, bought : ndarray of shape (n_points,)
        What :func:`tamis.report.acquisition.numbers.missing_curve` returns.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = _figure()
    figure.set_size_inches(7.6, 3.2)
    left, right = figure.subplots(1, 2)
    for axes, values, label, colour in (
        (left, accuracy, "accuracy", _COLOURS[0]), (right, bought, "values bought per row", _COLOURS[1]),
    ):  # fmt: skip
        axes.plot(shares, values, marker="o", markersize=4, color=colour)
        axes.set_xlabel("share of values missing")
        axes.set_ylabel(label)
        _calm(axes)
    right.set_ylim(bottom=0)
    return figure


def _figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("A plot needs matplotlib: pip install 'tamis[plots]'.") from None
    return Figure(layout="constrained")


def _calm(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#8a949e", alpha=0.4, linewidth=0.6)
    axes.set_axisbelow(True)


def _plain(words: str) -> str:
    """Return words in which matplotlib reads no mathematics."""
    return words.replace("$", r"\$")
