"""Figures of features that arrived, with matplotlib: evidence against the bar, wealth, and how many were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.report.columns.numbers import Course, course_of, evidence_limits
from tamis.report.figures.thinning import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_columns"]

_ACCEPTED, _BAR, _COUNT, _REFUSED = "#0072b2", "#d55e00", "#009e73", "#8a949e"
_SPECKS = 2000


def plot_columns(selector: Any, *, stages: Sequence[tuple[int, str]] = ()) -> Figure:
    """Draw the course of a column selector: evidence against the bar, wealth if it has any, features accepted.

    Parameters
    ----------
    selector : ColumnSelector
        A selector that was offered columns, with ``trace="all"``.
    stages : list of (int, str)
        The first candidate of each kind of feature, counted from 1, and the name of the kind.

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
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 50))
    >>> figure = plot_columns(AlphaInvesting(target_fdr=0.05).fit(X, X[:, 3] + X[:, 30]))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['p-value and bar', 'Wealth', 'Features accepted']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("A plot needs matplotlib: pip install 'tamis[plots]'.") from None
    course = course_of(selector)
    panels = [_evidence, *([_wealth] if np.isfinite(course.wealth).any() else []), _accepted]
    heights = [2.6, *([1.6] * (len(panels) - 1))]
    figure = Figure(figsize=(8, sum(heights) + 1.2), layout="constrained")
    drawn = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights)
    for draw, axes in zip(panels, drawn, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        draw(axes, course)
        for first, _ in stages[1:]:
            axes.axvline(first - 0.5, color="#59636e", linewidth=0.8, linestyle=":")
    for first, kind in stages if len(stages) > 1 else ():
        drawn[0].annotate(
            kind, (first, 1.0), xycoords=("data", "axes fraction"), xytext=(3, 5), textcoords="offset points",
            fontsize=7, color="#59636e",
        )  # fmt: skip
    drawn[-1].set_xlabel("candidates offered")
    drawn[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def _evidence(axes: Axes, course: Course) -> None:
    scale = course.scale
    axes.set_title(f"{scale.evidence} and {scale.bar}", loc="left", pad=16)
    if not np.isfinite(course.evidence).any():
        return
    low, high, _ = evidence_limits(course)
    best, entered = course.best_refused(_SPECKS), course.entered()
    for where, colour, size, label in ((best, _REFUSED, 4, "refused"), (entered, _ACCEPTED, 14, "accepted")):
        shown = np.clip(course.evidence[where], low, high)
        axes.scatter(
            course.offer[where], shown, s=size, color=colour, label=label, linewidths=0, clip_on=False
        )
    axes.plot(
        *thin(course.offer, course.standing(course.bar)), color=_BAR, linewidth=1.4, label=f"the {scale.bar}"
    )
    axes.set_ylim(low, high)
    if scale.logarithmic:
        _whole(axes)
        axes.yaxis.set_major_formatter(lambda value, _: f"$10^{{{round(scale.sign * value)}}}$")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8, borderaxespad=0)


def _wealth(axes: Axes, course: Course) -> None:
    axes.set_title("Wealth", loc="left")
    axes.plot(*thin(course.offer, course.standing(course.wealth)), color=_ACCEPTED, linewidth=1.4)
    axes.set_ylim(bottom=0)


def _accepted(axes: Axes, course: Course) -> None:
    axes.set_title("Features accepted", loc="left")
    axes.step(*thin(course.offer, course.n_accepted()), where="post", color=_COUNT, linewidth=1.4)
    axes.set_ylim(bottom=0)
    _whole(axes)


def _whole(axes: Axes) -> None:
    """Have ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
