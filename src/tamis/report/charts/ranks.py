"""Diagrams of lines and texts, for a page as SVG and for a figure with matplotlib; critical differences as such.

A critical-difference diagram (Demsar 2006) has the mean ranks on a line, and bars over the methods that do not differ.
The best rank is at the right, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tamis.report.charts.axes import new_figure
from tamis.report.page import render
from tamis.report.text import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


@dataclass
class Diagram:
    """Lines and texts in a frame, in hundredths of an inch from its upper left corner.

    Attributes
    ----------
    title, description : str
        The description is read aloud in place of the picture.
    width, height : float
    lines : list of (list of (float, float), float)
        The points of each line, and its width.
    texts : list of (float, float, str, str, float)
        Place, anchor ("start", "middle" or "end"), words and size.

    Examples
    --------
    >>> Diagram("", "A word.", 60.0, 20.0, texts=[(30.0, 10.0, "middle", "<a>", 13.0)]).svg().count("&lt;a&gt;")
    1
    """

    title: str
    description: str
    width: float
    height: float = 0.0
    lines: list[tuple[list[tuple[float, float]], float]] = field(default_factory=list)
    texts: list[tuple[float, float, str, str, float]] = field(default_factory=list)

    def svg(self) -> str:
        """Return the diagram as SVG, in the colour of the text around it; names are shown, never run."""
        return render("diagram.html.j2", drawing=self)

    def figure(self) -> Figure:
        """Return the diagram as a matplotlib figure, which pyplot does not know.

        Raises
        ------
        ImportError
            If matplotlib is missing; the message names the extra to install.
        """
        figure = new_figure(self.width / 100, self.height / 100)
        # The axes fill it; the constrained layout would warn that it has no grid.
        figure.set_layout_engine("none")
        from matplotlib import rcParams

        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        for points, width in self.lines:
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, color=rcParams["text.color"], linewidth=0.72 * width, solid_capstyle="butt")
        for x, y, anchor, words, size in self.texts:
            escaped = words.replace("$", r"\$")  # matplotlib would typeset it as mathematics
            axes.text(x, y, escaped, ha=_ANCHORS[anchor], va="center", fontsize=0.72 * size)
        return figure


# -- critical-difference diagrams --------------------------------------------------------------------------


_WIDTH, _ROW, _BAR = 760.0, 19.0, 8.0
_SIZE, _SMALL = 13.0, 11.0
_LONGEST = 26  # letters of a name


class Ranks(Protocol):
    """Mean ranks by method, the groups of methods that do not differ, and the critical difference."""

    @property
    def ranks(self) -> dict[str, float]: ...
    @property
    def groups(self) -> list[list[str]]: ...
    @property
    def critical_difference(self) -> float: ...


def plot_ranks(result: Ranks) -> Figure:
    """Draw a critical-difference diagram with matplotlib.

    Parameters
    ----------
    result : Nemenyi
        What :func:`tamis.evaluate.significance.nemenyi` returns.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed; ``figure.savefig(path)`` writes it.

    Raises
    ------
    ImportError
        If matplotlib is missing; the message names the extra to install.

    Examples
    --------
    >>> from tamis.evaluate.significance import nemenyi
    >>> figure = plot_ranks(nemenyi([[0.9, 0.8, 0.1]] * 6, ["a", "b", "c"]))
    >>> sorted(text.get_text() for text in figure.axes[0].texts)
    ['1', '2', '2.00  b', '3', '3.00  c', 'CD = 1.35', 'a  1.00']
    """
    return rank_diagram(result).figure()


def draw_ranks(result: Ranks) -> str:
    """Return a critical-difference diagram as inline SVG, in the colour of the text around it.

    Parameters
    ----------
    result : Nemenyi
        What :func:`tamis.evaluate.significance.nemenyi` returns.

    Returns
    -------
    str
        Names are shown, never run.

    Examples
    --------
    >>> from tamis.evaluate.significance import nemenyi
    >>> svg = draw_ranks(nemenyi([[0.9, 0.8, 0.1]] * 6, ["<a>", "b", "c"]))
    >>> svg[:4], "&lt;a&gt;  1.00" in svg, "CD = 1.35" in svg
    ('<svg', True, True)
    """
    return rank_diagram(result).svg()


def _said(result: Ranks) -> str:
    order = sorted(result.ranks, key=result.ranks.__getitem__)
    ranks = ", ".join(f"{name} {result.ranks[name]:.2f}" for name in order)
    same = "; ".join(", ".join(group) for group in result.groups) or "none"
    return (
        f"Mean ranks: {ranks}. Critical difference {result.critical_difference:.2f}. Not different: {same}."
    )


def rank_diagram(result: Ranks, title: str = "") -> Diagram:
    """Return the diagram: difference and axis on top, bars below, names to the left and right of their ranks."""
    order = sorted(result.ranks, key=result.ranks.__getitem__)
    m, top, drawing = len(order), 58.0, Diagram(title, _said(result), _WIDTH)
    right, left = order[: m // 2], order[m // 2 :][::-1]
    start, end = _room_for(left), _WIDTH - _room_for(right)

    def at(rank: float) -> float:
        return end - (rank - 1) / (m - 1) * (end - start)

    _draw_axis(drawing, at, m, top, result.critical_difference)
    below = (
        top
        + 8
        + _BAR * _draw_bars(drawing, at, [[result.ranks[name] for name in g] for g in result.groups], top)
    )
    for names, edge, anchor, step in ((right, end, "start", 1), (left, start, "end", -1)):
        for row, name in enumerate(names, start=1):
            x, y, rank = at(result.ranks[name]), below + row * _ROW, result.ranks[name]
            drawing.lines.append(([(x, top), (x, y), (edge + 6 * step, y)], 1.0))
            label = shorten(name, _LONGEST)
            words = f"{label}  {rank:.2f}" if step > 0 else f"{rank:.2f}  {label}"
            drawing.texts.append((edge + 11 * step, y, anchor, words, _SIZE))
    drawing.height = below + len(left) * _ROW + 14
    return drawing


def _room_for(names: list[str]) -> float:
    """Return how wide the names are, with their ranks, in the widest of the usual fonts."""
    widest = max(sum(_letter(one) for one in shorten(name, _LONGEST)) for name in names)
    return 62 + _SIZE * widest


def _letter(one: str) -> float:
    return 1.0 if ord(one) > 0x2E7F else 0.74 if one.isupper() else 0.6


def _draw_axis(drawing: Diagram, at: Callable[[float], float], m: int, top: float, difference: float) -> None:
    drawing.lines.append(([(at(m), top), (at(1), top)], 1.5))
    every = 1 if m <= 15 else 5
    for rank in range(1, m + 1):
        drawing.lines.append(([(at(rank), top), (at(rank), top - 6)], 1.0))
        if rank in (1, m) or (rank % every == 0 and every <= rank + every // 2 <= m):
            drawing.texts.append((at(rank), top - 15, "middle", f"{rank}", _SMALL))
    start, end = at(m), min(at(m) + abs(at(1) - at(2)) * difference, _WIDTH - 4)
    drawing.lines.append(([(start, 20.0), (end, 20.0)], 2.5))
    for x in (start, end):
        drawing.lines.append(([(x, 16.0), (x, 24.0)], 1.0))
    drawing.texts.append(((start + end) / 2, 8.0, "middle", f"CD = {difference:.2f}", _SMALL))


def _draw_bars(drawing: Diagram, at: Callable[[float], float], groups: list[list[float]], top: float) -> int:
    """Draw a bar for each group, as high as there is room; return the number of levels."""
    levels: list[float] = []  # where the last bar of each level ends, at its left
    for ranks in groups:
        left, right = at(max(ranks)) - 4, at(min(ranks)) + 4
        level = next((i for i, last in enumerate(levels) if right < last - 4), len(levels))
        levels[level : level + 1] = [left]
        y = top + 9 + _BAR * level
        drawing.lines.append(([(left, y), (right, y)], 4.0))
    return len(levels)
