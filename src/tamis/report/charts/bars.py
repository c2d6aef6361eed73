"""A figure of a ranking: the best features and their scores as bars, with matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tamis._validation import Floats
from tamis.report.charts.axes import new_figure, plain_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def plot_ranking(names: Sequence[str], scores: dict[str, Floats], title: str = "") -> Figure:
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
